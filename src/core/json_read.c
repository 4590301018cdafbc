/* json_read.c - reading a JSON tree, strictly or as the arguments of a tool.

   The accessors at the top never convert: a value of another type gives the
   fallback. hfsb_json_arg_*() at the end are lenient, because models send
   "120" and 120.0 where an integer is meant: a value that can mean only one
   thing is accepted; any other is an error with the key in err->key. */
#include "core_private.h"

static size_t hfsbi_json_count_of(const hfsb_json_value *value) {
    return (size_t)(value->tag >> HFSBI_JSON_COUNT);
}

/* ---- what a value is ---- */

hfsb_json_type hfsb_json_type_of(const hfsb_json_value *value) {
    return value ? (hfsb_json_type)(value->tag & HFSBI_JSON_TYPE)
                 : HFSB_JSON_NULL;
}

const char *hfsb_json_type_name(hfsb_json_type type) {
    static const char *const names[] = {"null",    "boolean", "integer",
                                        "integer", "number",  "string",
                                        "array",   "object"};
    return (unsigned)type < 8 ? names[type] : "unknown";
}

bool hfsb_json_bool(const hfsb_json_value *value, bool fallback) {
    return hfsb_json_type_of(value) == HFSB_JSON_BOOL
               ? hfsbi_json_count_of(value) != 0
               : fallback;
}

long long hfsb_json_int(const hfsb_json_value *value, long long fallback) {
    return hfsb_json_type_of(value) == HFSB_JSON_INT ? value->as.i : fallback;
}

unsigned long long hfsb_json_uint(const hfsb_json_value *value,
                                  unsigned long long     fallback) {
    hfsb_json_type type = hfsb_json_type_of(value);
    if (type == HFSB_JSON_UINT || (type == HFSB_JSON_INT && value->as.i >= 0))
        return value->as.u;
    return fallback;
}

double hfsb_json_double(const hfsb_json_value *value, double fallback) {
    switch (hfsb_json_type_of(value)) {
    case HFSB_JSON_INT: return (double)value->as.i;
    case HFSB_JSON_UINT: return (double)value->as.u;
    case HFSB_JSON_DOUBLE: return value->as.d;
    default: return fallback;
    }
}

hfsb_str hfsb_json_str(const hfsb_json_value *value, hfsb_str fallback) {
    if (hfsb_json_type_of(value) != HFSB_JSON_STRING) return fallback;
    return hfsb_str_make(value->as.str, hfsbi_json_count_of(value));
}

/* ---- arrays and objects ---- */

size_t hfsb_json_count(const hfsb_json_value *value) {
    return hfsb_json_type_of(value) >= HFSB_JSON_ARRAY
               ? hfsbi_json_count_of(value)
               : 0;
}

const hfsb_json_value *hfsb_json_at(const hfsb_json_value *array,
                                    size_t                 index) {
    const hfsb_json_value *item;
    if (hfsb_json_type_of(array) != HFSB_JSON_ARRAY ||
        index >= hfsbi_json_count_of(array))
        return NULL;
    item = array + 1;
    /* no containers in it: every node is an element */
    if (array->as.span == hfsbi_json_count_of(array) + 1) return item + index;
    while (index-- > 0) item = hfsbi_json_after(item);
    return item;
}

static const hfsb_json_value *hfsbi_json_member(const hfsb_json_value *object,
                                                hfsb_str               key) {
    hfsb_json_iter         it = hfsb_json_begin(object);
    const hfsb_json_value *found = NULL;
    if (!it.keyed) return NULL;
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(it.key, key)) found = it.value;
    return found;
}

const hfsb_json_value *hfsb_json_get(const hfsb_json_value *object,
                                     const char            *key) {
    return hfsbi_json_member(object, hfsb_cstr(key));
}

const hfsb_json_value *hfsb_json_path(const hfsb_json_value *value,
                                      const char            *path) {
    hfsb_str           rest = hfsb_cstr(path), part;
    unsigned long long index;
    size_t             dot = rest.len ? 0 : HFSB_NPOS;
    while (value && dot != HFSB_NPOS) {
        dot = hfsb_str_find_byte(rest, '.');
        part = hfsb_str_slice(rest, 0, dot);
        rest = hfsb_str_slice(rest, part.len + 1, rest.len);
        if (hfsb_json_type_of(value) != HFSB_JSON_ARRAY)
            value = hfsbi_json_member(value, part);
        else if (part.len &&
                 hfsbi_read_decimal(part, HFSB_NPOS, &index) == part.len)
            value = hfsb_json_at(value, (size_t)index);
        else value = NULL;
    }
    return value;
}

hfsb_json_iter hfsb_json_begin(const hfsb_json_value *value) {
    hfsb_json_iter it = HFSB_INIT;
    it.left = hfsb_json_count(value);
    it.next = value ? value + 1 : NULL;
    it.keyed = hfsb_json_type_of(value) == HFSB_JSON_OBJECT;
    return it;
}

bool hfsb_json_next(hfsb_json_iter *it) {
    if (!it->left) return false;
    it->left--;
    if (it->keyed) {
        it->key =
            hfsb_str_make(it->next->as.str, hfsbi_json_count_of(it->next));
        it->next++;
    }
    it->value = it->next;
    it->next = hfsbi_json_after(it->next);
    return true;
}

/* ---- arguments ---- */

/* The type with its article, for messages. */
static const char *hfsbi_json_a(hfsb_json_type type) {
    static const char *const names[] = {
        "null",     "a boolean", "an integer", "an integer",
        "a number", "a string",  "an array",   "an object"};
    return names[(unsigned)type & 7u];
}

/* Looks up the argument; *value is NULL when it is optional and absent or
   null. */
static hfsb_status hfsbi_json_arg(const hfsb_json_value *object,
                                  const char *key, bool required,
                                  hfsb_json_type          want,
                                  const hfsb_json_value **value,
                                  hfsb_err               *err) {
    hfsb_json_type type = hfsb_json_type_of(object);
    const char    *how = "is missing";
    *value = NULL;
    if (object && type != HFSB_JSON_OBJECT)
        return hfsbi_fail_key(err, HFSB_ARG, key,
                              "the arguments must be an object with \"%s\", "
                              "not %s",
                              key, hfsbi_json_a(type));
    *value = hfsb_json_get(object, key);
    if (hfsb_json_type_of(*value) != HFSB_JSON_NULL) return hfsbi_ok(err);
    if (*value) how = "is null";
    *value = NULL;
    if (!required) return hfsbi_ok(err);
    return hfsbi_fail_key(err, HFSB_ARG, key, "\"%s\" %s: %s is required", key,
                          how, hfsbi_json_a(want));
}

/* Fails with what was expected and what was found: a number, the first 40
   characters of a string, or the type of anything else. */
static hfsb_status hfsbi_json_arg_wrong(const char *key, const char *expected,
                                        const hfsb_json_value *value,
                                        hfsb_err              *err) {
    hfsb_json_type type = hfsb_json_type_of(value);
    char           number[32];
    size_t         n = 0;
    hfsb_str       text = hfsb_json_str(value, HFSB_LIT(""));
    hfsbi_fail_key(err, HFSB_ARG, key, "\"%s\": expected %s, found ", key,
                   expected);
    if (type == HFSB_JSON_STRING) {
        hfsbi_err_add(err, "the string \"");
        hfsbi_err_quote(err, text, 40);
        hfsbi_err_add(err, "\"");
        return HFSB_ARG;
    }
    if (type == HFSB_JSON_INT) n = hfsbi_number_write_int(value->as.i, number);
    if (type == HFSB_JSON_UINT)
        n = hfsbi_number_write_uint(value->as.u, number);
    if (type == HFSB_JSON_DOUBLE)
        n = hfsbi_number_write_double(value->as.d, number);
    if (n) hfsbi_err_add(err, "%.*s", (int)n, number);
    else hfsbi_err_add(err, "%s", hfsbi_json_a(type));
    return HFSB_ARG;
}

/* A string value without the blanks around it; "" for any other value. */
static hfsb_str hfsbi_json_trimmed(const hfsb_json_value *value) {
    hfsb_str s = hfsb_json_str(value, HFSB_LIT(""));
    size_t   from = 0;
    while (s.len && hfsbi_json_is_blank(s.ptr[s.len - 1])) s.len--;
    while (from < s.len && hfsbi_json_is_blank(s.ptr[from])) from++;
    return hfsb_str_slice(s, from, s.len);
}

/* Reads a number, or a string that contains one. A decoded string is followed
   by a NUL, as hfsbi_number_parse() needs. */
static bool hfsbi_json_as_number(const hfsb_json_value *value,
                                 hfsbi_number          *n) {
    hfsb_str s;
    switch (hfsb_json_type_of(value)) {
    case HFSB_JSON_INT:
        n->type = HFSBI_NUMBER_INT;
        n->as.i = value->as.i;
        return true;
    case HFSB_JSON_UINT:
        n->type = HFSBI_NUMBER_UINT;
        n->as.u = value->as.u;
        return true;
    case HFSB_JSON_DOUBLE:
        n->type = HFSBI_NUMBER_DOUBLE;
        n->as.d = value->as.d;
        return true;
    case HFSB_JSON_STRING:
        s = hfsbi_json_trimmed(value);
        return s.len &&
               hfsbi_number_parse(s.ptr, s.ptr + s.len + 1, n) ==
                   s.ptr + s.len &&
               n->type >= HFSBI_NUMBER_INT;
    default: return false;
    }
}

hfsb_status hfsb_json_arg_bool(const hfsb_json_value *object, const char *key,
                               bool required, bool *out, hfsb_err *err) {
    const hfsb_json_value *value;
    hfsb_str               s;
    hfsb_status            st =
        hfsbi_json_arg(object, key, required, HFSB_JSON_BOOL, &value, err);
    if (st != HFSB_OK || !value) return st;
    s = hfsbi_json_trimmed(value);
    if (hfsb_json_type_of(value) == HFSB_JSON_BOOL)
        *out = hfsb_json_bool(value, false);
    else if (hfsb_str_equal(s, HFSB_LIT("true")) ||
             hfsb_str_equal(s, HFSB_LIT("True")))
        *out = true;
    else if (hfsb_str_equal(s, HFSB_LIT("false")) ||
             hfsb_str_equal(s, HFSB_LIT("False")))
        *out = false;
    else return hfsbi_json_arg_wrong(key, "true or false", value, err);
    return HFSB_OK;
}

hfsb_status hfsb_json_arg_int(const hfsb_json_value *object, const char *key,
                              bool required, long long *out, hfsb_err *err) {
    const double           limit = 9223372036854775808.0; /* 2^63 */
    const hfsb_json_value *value;
    hfsbi_number           n;
    hfsb_status            st =
        hfsbi_json_arg(object, key, required, HFSB_JSON_INT, &value, err);
    if (st != HFSB_OK || !value) return st;
    if (!hfsbi_json_as_number(value, &n) || n.type == HFSBI_NUMBER_UINT)
        return hfsbi_json_arg_wrong(key, "an integer of 64 bits", value, err);
    if (n.type == HFSBI_NUMBER_DOUBLE) {
        if (!(n.as.d >= -limit && n.as.d < limit) ||
            (double)(int64_t)n.as.d != n.as.d)
            return hfsbi_json_arg_wrong(key, "an integer of 64 bits", value,
                                        err);
        n.as.i = (int64_t)n.as.d;
    }
    *out = n.as.i;
    return HFSB_OK;
}

hfsb_status hfsb_json_arg_double(const hfsb_json_value *object,
                                 const char *key, bool required, double *out,
                                 hfsb_err *err) {
    const hfsb_json_value *value;
    hfsbi_number           n;
    hfsb_status            st =
        hfsbi_json_arg(object, key, required, HFSB_JSON_DOUBLE, &value, err);
    if (st != HFSB_OK || !value) return st;
    if (!hfsbi_json_as_number(value, &n))
        return hfsbi_json_arg_wrong(key, "a number", value, err);
    *out = n.type == HFSBI_NUMBER_INT    ? (double)n.as.i
           : n.type == HFSBI_NUMBER_UINT ? (double)n.as.u
                                         : n.as.d;
    return HFSB_OK;
}

hfsb_status hfsb_json_arg_str(const hfsb_json_value *object, const char *key,
                              bool required, hfsb_str *out, hfsb_err *err) {
    const hfsb_json_value *value;
    hfsb_status            st =
        hfsbi_json_arg(object, key, required, HFSB_JSON_STRING, &value, err);
    if (st != HFSB_OK || !value) return st;
    if (hfsb_json_type_of(value) != HFSB_JSON_STRING)
        return hfsbi_json_arg_wrong(key, "a string", value, err);
    *out = hfsb_json_str(value, *out);
    return HFSB_OK;
}

hfsb_status hfsb_json_arg_value(const hfsb_json_value *object, const char *key,
                                bool required, hfsb_json_type type,
                                const hfsb_json_value **out, hfsb_err *err) {
    const hfsb_json_value *value;
    hfsb_status st = hfsbi_json_arg(object, key, required, type, &value, err);
    if (st != HFSB_OK || !value) return st;
    if (hfsb_json_type_of(value) != type)
        return hfsbi_json_arg_wrong(key, hfsbi_json_a(type), value, err);
    *out = value;
    return HFSB_OK;
}

/* Parses the text of a string. HFSB_OK with doc->root of that type; HFSB_ARG
   with an empty message for JSON of another type. */
static hfsb_status hfsbi_json_arg_inner(hfsb_str text, hfsb_json_type type,
                                        hfsb_json_doc *doc, hfsb_err *err) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_status          st;
    how.unique_keys = true;
    st = hfsb_json_parse(text, &how, doc, err);
    if (st != HFSB_OK || hfsb_json_type_of(doc->root) == type) return st;
    hfsb_json_free(doc);
    return hfsbi_fail(err, HFSB_ARG, 0, "%s", "");
}

hfsb_status hfsb_json_arg_parsed(const hfsb_json_value *object,
                                 const char *key, bool required,
                                 hfsb_json_type type, hfsb_json_doc *doc,
                                 const hfsb_json_value **out, hfsb_err *err) {
    const hfsb_json_value *value;
    hfsb_err               why = HFSB_INIT;
    hfsb_str               text;
    hfsb_status st = hfsbi_json_arg(object, key, required, type, &value, err);
    if (st != HFSB_OK || !value) return st;
    if (hfsb_json_type_of(value) != HFSB_JSON_STRING)
        return hfsb_json_arg_value(object, key, required, type, out, err);
    text = hfsbi_json_trimmed(value);
    st = hfsbi_json_arg_inner(text, type, doc, &why);
    if (st == HFSB_OK) {
        *out = doc->root;
        return hfsbi_ok(err);
    }
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, key);
    hfsbi_json_arg_wrong(key, hfsbi_json_a(type), value, err);
    if (text.len && (text.ptr[0] == '[' || text.ptr[0] == '{') && why.msg[0])
        hfsbi_err_add(err, ", which is not JSON: %s", why.msg);
    return HFSB_ARG;
}
