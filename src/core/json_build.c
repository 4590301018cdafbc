/* json_build.c - a JSON document made value by value, without its text.

   A tool's result has typed fields (exit code, line numbers, a diff). They
   are collected here as the nodes that the parser would make of their text,
   so the functions that read a document can read them too. They become text
   only once, at the very end.

       nodes:  { "id" "7-1"  "pid" 4711  "left_running" [ { ... } ] }
       texts:  id\0 7-1\0 pid\0 left_running\0 ...

   While a document grows, a string node holds its offset in texts, and an open
   container holds the index of the one around it. finish() moves both arrays
   into one block and turns offsets into pointers. The buffers remember a
   failed append; finish() reports it. */
#include "core_private.h"

HFSBI_FN void hfsbi_build_init(hfsbi_build *b, const hfsb_alloc *alloc) {
    memset(b, 0, sizeof *b);
    b->nodes.alloc = b->texts.alloc = *alloc;
}

HFSBI_FN void hfsbi_build_free(hfsbi_build *b) {
    hfsb_buf_free(&b->nodes);
    hfsb_buf_free(&b->texts);
    b->open = 0;
}

HFSBI_FN void hfsbi_build_fail(hfsbi_build *b, hfsb_status st) {
    if (b->nodes.status == HFSB_OK) b->nodes.status = st;
}

static hfsb_json_value *hfsbi_build_at(hfsbi_build *b, size_t index) {
    return (hfsb_json_value *)(void *)b->nodes.ptr + index;
}

static size_t hfsbi_build_count(const hfsbi_build *b) {
    return b->nodes.len / sizeof(hfsb_json_value);
}

static void hfsbi_build_add(hfsbi_build *b, const hfsb_json_value *node) {
    const void *bytes = node;
    hfsb_buf_append(&b->nodes,
                    hfsb_str_make((const char *)bytes, sizeof *node));
}

/* A string node, for a key or a value; bytes that are not UTF-8 become
   U+FFFD, as in any document. */
static void hfsbi_build_text(hfsbi_build *b, hfsb_str text) {
    hfsb_json_value node = HFSB_INIT;
    size_t          at = b->texts.len;
    if (hfsb_utf8_repair(text, &b->texts) != HFSB_OK)
        b->nodes.status = b->texts.status;
    node.tag = HFSB_JSON_STRING | (uint64_t)(b->texts.len - at)
                                      << HFSBI_JSON_COUNT;
    node.as.u = at;
    hfsb_buf_append_byte(&b->texts, '\0');
    hfsbi_build_add(b, &node);
}

HFSBI_FN void hfsbi_build_key(hfsbi_build *b, hfsb_str key) {
    if (b->nodes.status == HFSB_OK) hfsbi_build_text(b, key);
}

/* Called before each value: adds its key and counts it in its container. */
static bool hfsbi_build_begin(hfsbi_build *b, const char *key) {
    if (b->nodes.status != HFSB_OK) return false;
    if (b->open)
        hfsbi_build_at(b, b->open - 1)->tag += (uint64_t)1 << HFSBI_JSON_COUNT;
    if (key) hfsbi_build_text(b, hfsb_cstr(key));
    return b->nodes.status == HFSB_OK;
}

static void hfsbi_build_open(hfsbi_build *b, const char *key,
                             hfsb_json_type type) {
    hfsb_json_value node = HFSB_INIT;
    if (!hfsbi_build_begin(b, key)) return;
    node.tag = (uint64_t)type;
    node.as.span = b->open;
    b->open = hfsbi_build_count(b) + 1;
    hfsbi_build_add(b, &node);
}

HFSBI_FN void hfsbi_build_object(hfsbi_build *b, const char *key) {
    hfsbi_build_open(b, key, HFSB_JSON_OBJECT);
}

HFSBI_FN void hfsbi_build_array(hfsbi_build *b, const char *key) {
    hfsbi_build_open(b, key, HFSB_JSON_ARRAY);
}

HFSBI_FN void hfsbi_build_end(hfsbi_build *b) {
    hfsb_json_value *node;
    size_t           index = b->open - 1;
    if (b->nodes.status != HFSB_OK) return;
    node = hfsbi_build_at(b, index);
    b->open = node->as.span;
    node->as.span = hfsbi_build_count(b) - index;
}

HFSBI_FN void hfsbi_build_null(hfsbi_build *b, const char *key) {
    hfsb_json_value node = HFSB_INIT;
    node.tag = HFSB_JSON_NULL;
    if (hfsbi_build_begin(b, key)) hfsbi_build_add(b, &node);
}

HFSBI_FN void hfsbi_build_bool(hfsbi_build *b, const char *key, bool value) {
    hfsb_json_value node = HFSB_INIT;
    node.tag = HFSB_JSON_BOOL | (uint64_t)value << HFSBI_JSON_COUNT;
    if (hfsbi_build_begin(b, key)) hfsbi_build_add(b, &node);
}

HFSBI_FN void hfsbi_build_int(hfsbi_build *b, const char *key,
                              long long value) {
    hfsb_json_value node = HFSB_INIT;
    node.tag = HFSB_JSON_INT;
    node.as.i = value;
    if (hfsbi_build_begin(b, key)) hfsbi_build_add(b, &node);
}

HFSBI_FN void hfsbi_build_str(hfsbi_build *b, const char *key,
                              hfsb_str value) {
    if (hfsbi_build_begin(b, key)) hfsbi_build_text(b, value);
}

HFSBI_FN void hfsbi_build_node(hfsbi_build *b, const char *key,
                               const hfsb_json_value *value) {
    if (hfsbi_build_begin(b, key)) hfsbi_build_add(b, value);
}

HFSBI_FN void hfsbi_build_value(hfsbi_build *b, const char *key,
                                const hfsb_json_value *value) {
    hfsb_json_iter it = hfsb_json_begin(value);
    hfsb_json_type type = hfsb_json_type_of(value);
    if (type == HFSB_JSON_STRING) {
        hfsbi_build_str(b, key, hfsb_json_str(value, HFSB_LIT("")));
    } else if (type == HFSB_JSON_ARRAY || type == HFSB_JSON_OBJECT) {
        hfsbi_build_open(b, key, type);
        while (hfsb_json_next(&it))
            hfsbi_build_value(b, type == HFSB_JSON_OBJECT ? it.key.ptr : NULL,
                              it.value);
        hfsbi_build_end(b);
    } else if (!value) {
        hfsbi_build_null(b, key);
    } else {
        hfsbi_build_node(b, key, value);
    }
}

HFSBI_FN hfsb_status hfsbi_build_finish(hfsbi_build *b, hfsb_json_doc *doc) {
    size_t           count = hfsbi_build_count(b), i, size = 0;
    hfsb_status      st = b->nodes.status ? b->nodes.status : b->texts.status;
    hfsb_json_value *nodes = NULL;
    char            *texts;
    if (st == HFSB_OK && hfsbi_add(b->nodes.len, b->texts.len, &size)) {
        nodes = (hfsb_json_value *)hfsbi_realloc(&b->nodes.alloc, NULL, 0,
                                                 size ? size : 1);
        if (!nodes) st = HFSB_NOMEM;
    }
    if (st != HFSB_OK || !nodes) {
        hfsbi_build_free(b);
        return st == HFSB_OK ? HFSB_NOMEM : st;
    }
    texts = (char *)(void *)nodes + b->nodes.len;
    memcpy(nodes, b->nodes.ptr, b->nodes.len);
    if (b->texts.len) memcpy(texts, b->texts.ptr, b->texts.len);
    for (i = 0; i < count; i++)
        if ((nodes[i].tag & HFSBI_JSON_TYPE) == HFSB_JSON_STRING)
            nodes[i].as.str = texts + nodes[i].as.u;
    doc->alloc = b->nodes.alloc;
    doc->block = nodes;
    doc->size = size ? size : 1;
    doc->root = nodes;
    hfsbi_build_free(b);
    return HFSB_OK;
}
