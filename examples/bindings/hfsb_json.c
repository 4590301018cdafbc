/* hfsb_json.c - the pure core of hfsb for other languages: a name and JSON in,
   JSON out. A language that can call one C function, or run WebAssembly, has
   the edit engine:

       edit      {content, old_str, new_str, mode?, replace_all?, exact?, line?}
                 or {content, edits: [{old_str, ...}]}, with path? for the diff
                 -> {content, count, note, diff, diff_cut, lines: [[1, 2]]}
       patch     {patch, files: {path: content, or null where none exists}}
                 -> {changes: [{kind, path, new_path, content, diff, note}]}
                 or {needs: path}: call again with that file
       truncate  {text, chars?, head?, path?} -> {text, truncated}
       strip     {text} -> {text}: no escape sequences, no rewritten lines
       version   {} -> {version}

   or {error: {status, message, line?, column?, key?}}, where status is the
   name of an hfsb_status: "NOT_FOUND", "AMBIGUOUS". The message is written for
   a model. `make shared` builds build/libhfsb.so from this file, `make wasm`
   build/hfsb.wasm; examples/python and examples/wasm have the wrappers. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include <stdlib.h>
#include <string.h>

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(#name)))
#else
#define EXPORT(name)
#endif

/* Memory for the arguments of hfsb_bind_call(), for callers that have none of
   their own (WebAssembly); NULL without memory. */
EXPORT(hfsb_bind_alloc) char *hfsb_bind_alloc(size_t size);

/* Frees what hfsb_bind_alloc() or hfsb_bind_call() returned; NULL is fine. */
EXPORT(hfsb_bind_free) void hfsb_bind_free(char *ptr);

/* Performs the call `name` with the arguments in json, `length` bytes of UTF-8.
   The reply is JSON that ends with NUL; NULL without memory. Any number of
   threads may call it. */
EXPORT(hfsb_bind_call)
char *hfsb_bind_call(const char *name, const char *json, size_t length);

/* ---- a call ---- */

typedef struct call {
    const hfsb_json_value *args;
    hfsb_json_writer       w; /* the reply */
    hfsb_buf               needs;
    hfsb_err               err;
} call;

static void put_str(call *c, const char *key, hfsb_str value) {
    hfsb_json_put_key(&c->w, hfsb_cstr(key));
    hfsb_json_put_str(&c->w, value);
}

static void put_bool(call *c, const char *key, bool value) {
    hfsb_json_put_key(&c->w, hfsb_cstr(key));
    hfsb_json_put_bool(&c->w, value);
}

static void put_size(call *c, const char *key, size_t value) {
    hfsb_json_put_key(&c->w, hfsb_cstr(key));
    hfsb_json_put_uint(&c->w, value);
}

static hfsb_status take_str(call *c, const char *key, bool required,
                            hfsb_str *out) {
    return hfsb_json_arg_str(c->args, key, required, out, &c->err);
}

static hfsb_status invalid(call *c, const char *message) {
    size_t n = strlen(message);
    c->err.code = HFSB_ARG;
    memcpy(c->err.msg, message, n + 1);
    return HFSB_ARG;
}

/* A number from 1 on. The library takes 0 as its default, which no caller
   means by it. */
static hfsb_status take_size(call *c, const char *key, size_t *out) {
    long long   value = 0;
    hfsb_status st = hfsb_json_arg_int(c->args, key, false, &value, &c->err);
    if (st != HFSB_OK) return st;
    if (value < 0 || (unsigned long long)value > (size_t)-1 / 8)
        return invalid(c, "A number is negative or too large.");
    if (value == 0 && hfsb_json_type_of(hfsb_json_get(c->args, key)) !=
                          HFSB_JSON_NULL)
        return invalid(c, "chars and head must be at least 1; without them "
                          "there are defaults.");
    *out = (size_t)value;
    return HFSB_OK;
}

/* ---- edit ---- */

static void put_edited(call *c, const hfsb_buf *content,
                       const hfsb_edit_result *r) {
    size_t i;
    put_str(c, "content", hfsb_buf_str(content));
    put_size(c, "count", r->count);
    put_str(c, "note", hfsb_cstr(r->note));
    put_str(c, "diff", hfsb_buf_str(&r->diff));
    put_bool(c, "diff_cut", r->diff_cut);
    hfsb_json_put_key(&c->w, HFSB_LIT("lines"));
    hfsb_json_put_array(&c->w);
    for (i = 0; i < r->count; i++) {
        hfsb_json_put_array(&c->w);
        hfsb_json_put_uint(&c->w, r->spans[i].first_line);
        hfsb_json_put_uint(&c->w, r->spans[i].last_line);
        hfsb_json_put_end(&c->w);
    }
    hfsb_json_put_end(&c->w);
}

/* The edits of the list, or of the arguments themselves. */
static hfsb_status take_edits(call *c, const hfsb_json_value *list,
                              hfsb_edit *edits, size_t count) {
    hfsb_json_iter it = hfsb_json_begin(list);
    hfsb_status    st = HFSB_OK;
    size_t         i;
    memset(edits, 0, count * sizeof *edits);
    if (!list) return hfsb_edit_from_json(c->args, edits, &c->err);
    for (i = 0; st == HFSB_OK && hfsb_json_next(&it); i++)
        st = hfsb_edit_from_json(it.value, &edits[i], &c->err);
    return st;
}

/* Refuses keys that would be ignored next to edits: they belong in each
   edit. */
static hfsb_status check_alone(call *c) {
    static const char *const keys[] = {"old_str", "new_str", "mode",
                                       "replace_all", "exact", "line"};
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hfsb_json_type_of(hfsb_json_get(c->args, keys[i])) !=
            HFSB_JSON_NULL)
            return invalid(c, "old_str, new_str, mode, replace_all, exact and "
                              "line belong in each of the edits, not next "
                              "to them.");
    return HFSB_OK;
}

static hfsb_status call_edit(call *c) {
    const hfsb_json_value *list = NULL;
    hfsb_edit_opts         opts = HFSB_INIT;
    hfsb_edit_result       result = HFSB_INIT;
    hfsb_str               content = HFSB_INIT;
    hfsb_buf               out = HFSB_INIT;
    hfsb_edit             *edits;
    size_t                 count;
    hfsb_status            st = take_str(c, "content", true, &content);
    if (st == HFSB_OK) st = take_str(c, "path", false, &opts.path);
    if (st == HFSB_OK)
        st = hfsb_json_arg_value(c->args, "edits", false, HFSB_JSON_ARRAY,
                                 &list, &c->err);
    if (st == HFSB_OK && list) st = check_alone(c);
    if (st != HFSB_OK) return st;
    count = list ? hfsb_json_count(list) : 1;
    if (count == 0) return invalid(c, "edits is empty.");
    if (count > (size_t)-1 / sizeof *edits) return HFSB_NOMEM;
    edits = (hfsb_edit *)malloc(count * sizeof *edits);
    if (!edits) return HFSB_NOMEM;
    st = take_edits(c, list, edits, count);
    if (st == HFSB_OK)
        st = hfsb_edit_apply(content, edits, count, &opts, &out, &result,
                             &c->err);
    if (st == HFSB_OK) put_edited(c, &out, &result);
    hfsb_edit_result_free(&result);
    hfsb_buf_free(&out);
    free(edits);
    return st;
}

/* ---- patch ---- */

/* The file, as the caller gave it; one that was not given is needed. */
static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    call          *c = (call *)user;
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(c->args, "files"));
    while (hfsb_json_next(&it)) {
        hfsb_json_type type = hfsb_json_type_of(it.value);
        if (!hfsb_str_equal(it.key, path)) continue;
        if (type == HFSB_JSON_STRING)
            return hfsb_buf_append(out, hfsb_json_str(it.value, path));
        if (type == HFSB_JSON_NULL) return HFSB_NOT_FOUND;
        /* a Buffer, a Promise: taken for no file it would be overwritten */
        return hfsb_err_set(err, HFSB_ARG,
                            "files: \"" HFSB_F "\" must be a text, or null "
                            "where there is no such file.",
                            HFSB_V(path));
    }
    hfsb_buf_truncate(&c->needs, 0);
    if (hfsb_buf_append(&c->needs, path)) return HFSB_NOMEM;
    return HFSB_IO;
}

static void put_change(call *c, const hfsb_patch_change *change) {
    static const char *const kinds[] = {"add", "delete", "update"};
    hfsb_json_put_object(&c->w);
    put_str(c, "kind", hfsb_cstr(kinds[change->kind]));
    put_str(c, "path", change->path);
    if (change->new_path.len) put_str(c, "new_path", change->new_path);
    if (change->kind != HFSB_PATCH_DELETE)
        put_str(c, "content", hfsb_buf_str(&change->content));
    put_str(c, "diff", hfsb_buf_str(&change->diff));
    put_str(c, "note", hfsb_cstr(change->note));
    hfsb_json_put_end(&c->w);
}

static hfsb_status call_patch(call *c) {
    hfsb_patch_result result = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_str          patch = HFSB_INIT;
    size_t            i;
    hfsb_status       st = take_str(c, "patch", true, &patch);
    if (st != HFSB_OK) return st;
    files.read = read_file;
    files.user = c;
    st = hfsb_patch_apply(patch, &files, &result, &c->err);
    if (st != HFSB_OK && c->needs.len) {
        put_str(c, "needs", hfsb_buf_str(&c->needs));
        return HFSB_OK;
    }
    if (st != HFSB_OK) return st;
    hfsb_json_put_key(&c->w, HFSB_LIT("changes"));
    hfsb_json_put_array(&c->w);
    for (i = 0; i < result.count; i++) put_change(c, &result.changes[i]);
    hfsb_json_put_end(&c->w);
    hfsb_patch_free(&result);
    return st;
}

/* ---- text ---- */

static hfsb_status call_truncate(call *c) {
    hfsb_text_limit limit = HFSB_INIT;
    hfsb_str        text = HFSB_INIT, path = HFSB_INIT;
    hfsb_buf        out = HFSB_INIT;
    bool            truncated = false;
    hfsb_status     st = take_str(c, "text", true, &text);
    if (st == HFSB_OK) st = take_str(c, "path", false, &path);
    if (st == HFSB_OK) st = take_size(c, "chars", &limit.chars);
    if (st == HFSB_OK) st = take_size(c, "head", &limit.head);
    if (st == HFSB_OK)
        st = hfsb_text_truncate(text, &limit, path, &out, &truncated, &c->err);
    put_str(c, "text", hfsb_buf_str(&out));
    put_bool(c, "truncated", truncated);
    hfsb_buf_free(&out);
    return st;
}

static hfsb_status call_strip(call *c) {
    hfsb_text_filter *filter;
    hfsb_str          text = HFSB_INIT;
    hfsb_buf          out = HFSB_INIT;
    hfsb_status       st = take_str(c, "text", true, &text);
    if (st != HFSB_OK) return st;
    filter = hfsb_text_filter_open(NULL);
    if (!filter) return HFSB_NOMEM;
    st = hfsb_text_filter_write(filter, text, &out);
    if (st == HFSB_OK) st = hfsb_text_filter_finish(filter, &out);
    put_str(c, "text", hfsb_buf_str(&out));
    hfsb_text_filter_close(filter);
    hfsb_buf_free(&out);
    return st;
}

static hfsb_status call_version(call *c) {
    put_str(c, "version", hfsb_cstr(HFSB_VERSION));
    return HFSB_OK;
}

/* ---- the entry ---- */

static hfsb_status perform(call *c, const char *name) {
    static const struct {
        const char *name;
        hfsb_status (*perform)(call *c);
    } calls[] = {{"edit", call_edit},
                 {"patch", call_patch},
                 {"truncate", call_truncate},
                 {"strip", call_strip},
                 {"version", call_version}};
    size_t i;
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0) return calls[i].perform(c);
    return invalid(c, "There is no such call; there are edit, patch, truncate, "
                      "strip and version.");
}

static void put_error(call *c, hfsb_status st) {
#define NAME(name, text) #name,
    static const char *const names[] = {HFSB_STATUS_LIST(NAME)};
    const char *text = c->err.code ? c->err.msg : hfsb_status_text(st);
    hfsb_json_put_key(&c->w, HFSB_LIT("error"));
    hfsb_json_put_object(&c->w);
    put_str(c, "status", hfsb_cstr(names[st]));
    put_str(c, "message", hfsb_cstr(text));
    if (c->err.line) put_size(c, "line", c->err.line);
    if (c->err.column) put_size(c, "column", c->err.column);
    if (c->err.key[0]) put_str(c, "key", hfsb_cstr(c->err.key));
    hfsb_json_put_end(&c->w);
}

char *hfsb_bind_alloc(size_t size) {
    return (char *)malloc(size ? size : 1);
}

void hfsb_bind_free(char *ptr) {
    free(ptr);
}

char *hfsb_bind_call(const char *name, const char *json, size_t length) {
    call          c = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      out = HFSB_INIT;
    hfsb_status   st =
        hfsb_json_parse(hfsb_str_make(json, length), NULL, &doc, &c.err);
    c.args = doc.root;
    hfsb_json_writer_init(&c.w, &out, NULL);
    hfsb_json_put_object(&c.w);
    if (st == HFSB_OK) st = perform(&c, name);
    if (st != HFSB_OK) { /* nothing of what was written before */
        hfsb_buf_truncate(&out, 0);
        hfsb_json_writer_init(&c.w, &out, NULL);
        hfsb_json_put_object(&c.w);
        put_error(&c, st);
    }
    hfsb_json_put_end(&c.w);
    st = hfsb_json_writer_finish(&c.w, NULL);
    hfsb_buf_free(&c.needs);
    hfsb_json_free(&doc);
    if (st == HFSB_OK) return out.ptr; /* of malloc(): there is no other hook */
    hfsb_buf_free(&out);
    return NULL;
}
