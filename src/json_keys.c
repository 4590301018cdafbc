/* json_keys.c - finds a key that an object holds twice. Depends on: base. */
#include "json_tree.h"

/* Objects with more keys than this are sorted, not compared pair by pair. */
#define HFSBI_JSON_FEW 16

typedef const hfsb_json_value *hfsbi_json_key;

/* Orders by length, then bytes; *equal keys by their place. */
static int hfsbi_json_key_order(hfsbi_json_key a, hfsbi_json_key b) {
    uint64_t m = a->tag >> HFSBI_JSON_COUNT, n = b->tag >> HFSBI_JSON_COUNT;
    if (m != n) return m < n ? -1 : 1;
    return m ? memcmp(a->as.str, b->as.str, (size_t)m) : 0;
}

static int hfsbi_json_key_place(const void *a, const void *b) {
    hfsbi_json_key x = *(const hfsbi_json_key *)a;
    hfsbi_json_key y = *(const hfsbi_json_key *)b;
    int            order = hfsbi_json_key_order(x, y);
    if (order != 0) return order;
    return x < y ? -1 : x > y;
}

static void hfsbi_json_collect(const hfsb_json_value *object,
                               hfsbi_json_key *keys, size_t n) {
    const hfsb_json_value *key = object + 1;
    size_t                 i;
    for (i = 0; i < n; i++) {
        keys[i] = key;
        key = hfsbi_json_after(key + 1);
    }
}

/* The first key that repeats an earlier one, or NULL. */
static hfsbi_json_key hfsbi_json_repeat(hfsbi_json_key *keys, size_t n) {
    hfsbi_json_key found = NULL;
    size_t         i, j;
    if (n <= HFSBI_JSON_FEW) {
        for (i = 1; i < n; i++)
            for (j = 0; j < i; j++)
                if (!hfsbi_json_key_order(keys[i], keys[j])) return keys[i];
        return NULL;
    }
    hfsbi_sort(keys, n, sizeof *keys, hfsbi_json_key_place);
    for (i = 1; i < n; i++)
        if (!hfsbi_json_key_order(keys[i - 1], keys[i]) &&
            (!found || keys[i] < found))
            found = keys[i];
    return found;
}

static size_t hfsbi_json_keys_in(const hfsb_json_value *value) {
    return (value->tag & HFSBI_JSON_TYPE) == HFSB_JSON_OBJECT
               ? (size_t)(value->tag >> HFSBI_JSON_COUNT)
               : 0;
}

HFSBI_FN size_t hfsbi_json_repeated_key(const hfsbi_json_parser *p,
                                        bool                    *nomem) {
    const hfsb_alloc *alloc = &p->doc->alloc;
    hfsbi_json_key    few[HFSBI_JSON_FEW], *many = NULL, found = NULL;
    size_t            most = 0, i, n;
    *nomem = false;
    for (i = 0; i < p->used; i++) {
        n = hfsbi_json_keys_in(p->nodes + i);
        if (n > most) most = n;
    }
    if (most > HFSBI_JSON_FEW) {
        many = (hfsbi_json_key *)hfsbi_array(alloc, most, sizeof *many);
        *nomem = !many;
        if (!many) return HFSB_NPOS;
    }
    for (i = 0; i < p->used; i++) {
        hfsbi_json_key *keys, repeat;
        n = hfsbi_json_keys_in(p->nodes + i);
        if (n < 2) continue;
        keys = n > HFSBI_JSON_FEW ? many : few;
        hfsbi_json_collect(p->nodes + i, keys, n);
        repeat = hfsbi_json_repeat(keys, n);
        if (repeat && (!found || repeat < found)) found = repeat;
    }
    hfsbi_array_free(alloc, (void *)many, most, sizeof *many);
    return found ? (size_t)(found - p->nodes) : HFSB_NPOS;
}

/* Behind the string whose opening quote is at `at`. */
static const char *hfsbi_json_pass_string(const char *at) {
    for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
    return at + 1;
}

HFSBI_FN const char *hfsbi_json_locate(hfsb_str text, size_t index) {
    const char *at = text.ptr;
    for (;;) {
        while (strchr(" \n\r\t,:]}", *at)) at++;
        if (index-- == 0) return at;
        if (*at == '"') {
            at = hfsbi_json_pass_string(at);
        } else if (*at == '{' || *at == '[') {
            at++;
        } else {
            while (!strchr(" \n\r\t,]}", *at)) at++;
        }
    }
}
