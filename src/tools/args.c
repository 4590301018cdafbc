/* args.c - the arguments of a tool, described once.

   A tool has a list of parameters (hfsbi_param) next to its function. From
   that list come the JSON Schema that a model sees, the check for unknown and
   repeated keys, the reading into the tool's struct with defaults and limits,
   and the name of the argument in an error. Adding a parameter is one row in
   the list and one member in the struct.

       {"limit": "50"}  --read-->  struct { hfsb_str path; long long limit; }

   Reading is lenient where the meaning is plain (hfsb_json_arg_*): numbers and
   booleans may come as strings, arrays and objects as a string of JSON, null
   means absent. It is strict about everything else, because a model can fix
   what an error names. */
#include "tools_private.h"

enum { HFSBI_KEYS_NAMED = 10 /* unknown keys that a note names */ };

HFSBI_FN const hfsbi_param *hfsbi_param_find(const hfsbi_param *params,
                                             hfsb_str           name) {
    for (; params->name; params++)
        if (hfsb_str_equal(name, hfsb_cstr(params->name))) return params;
    return NULL;
}

/* Returns the name of p's type in a schema: "string", "integer" ... */
static const char *hfsbi_param_type(const hfsbi_param *p) {
    static const char *const words[] = {"string",  "integer", "number",
                                        "boolean", "boolean", "object",
                                        "array"};
    return words[p->type];
}

HFSBI_FN bool hfsbi_param_choice(hfsb_str *rest, hfsb_str *choice) {
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != ' ' && rest->ptr[n] != '|') n++;
    *choice = hfsb_str_slice(*rest, 0, n);
    *rest = hfsb_str_slice(*rest, n + 1, HFSB_NPOS);
    return choice->len > 0;
}

/* ---- keys ---- */

/* True when the key occurs earlier in the same object. */
static bool hfsbi_key_repeats(const hfsb_json_value *object,
                              const hfsb_json_iter  *it) {
    hfsb_json_iter before = hfsb_json_begin(object);
    while (hfsb_json_next(&before) && before.value != it->value)
        if (hfsb_str_equal(before.key, it->key)) return true;
    return false;
}

static hfsb_status hfsbi_key_unknown(const hfsbi_param *params, hfsb_str key,
                                     hfsb_err *err) {
    hfsbi_fail(err, HFSB_ARG, 0, "Unknown key: ");
    hfsbi_err_quote(err, key, 80);
    hfsbi_err_add(err, ". Known are:");
    for (; params->name; params++) hfsbi_err_add(err, " %s", params->name);
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

/* One note for each of the first unknown keys, then how many more. */
static void hfsbi_key_note(const hfsbi_args_how *how, hfsb_str key,
                           size_t ignored) {
    hfsb_err name = HFSB_INIT;
    if (!how->notes || ignored > HFSBI_KEYS_NAMED) return;
    hfsbi_err_quote(&name, key, 80);
    hfsb_buf_printf(how->notes, "\n(unknown key ignored: %s)", name.msg);
}

HFSBI_FN hfsb_status hfsbi_args_check(const hfsbi_param     *params,
                                      const hfsb_json_value *object,
                                      const hfsbi_args_how  *how,
                                      hfsb_err              *err) {
    hfsb_json_iter it = hfsb_json_begin(object);
    hfsb_json_type type = hfsb_json_type_of(object);
    size_t         ignored = 0;
    if (object && type != HFSB_JSON_OBJECT)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The arguments must be a JSON object, not %s.",
                          hfsb_json_type_name(type));
    while (hfsb_json_next(&it)) {
        const hfsbi_param *p = hfsbi_param_find(params, it.key);
        if (!p && how->strict) return hfsbi_key_unknown(params, it.key, err);
        if (!p) hfsbi_key_note(how, it.key, ++ignored);
        if (!p || !hfsbi_key_repeats(object, &it)) continue;
        hfsbi_fail(err, HFSB_ARG, 0,
                   "The key %s is given twice: expected it once.", p->name);
        hfsbi_err_key(err, p->name);
        return HFSB_ARG;
    }
    if (how->notes && ignored > HFSBI_KEYS_NAMED)
        hfsb_buf_printf(how->notes, "\n(and %zu more)",
                        ignored - HFSBI_KEYS_NAMED);
    if (how->notes && how->notes->status != HFSB_OK)
        return hfsbi_fail_status(err, how->notes->status, "Arguments");
    return HFSB_OK;
}

/* ---- one value ---- */

/* Begins a message with the name of the parameter, which is a key or an option
   of the command line: "max_depth must be " or "--max-depth must be ". */
static hfsb_status hfsbi_param_fail(const hfsbi_param    *p,
                                    const hfsbi_args_how *how, hfsb_err *err) {
    bool   flag = how->names == HFSB_EDIT_NAMES_FLAGS;
    size_t i;
    hfsbi_fail(err, HFSB_ARG, 0, "%s%s must be ", flag ? "--" : "", p->name);
    for (i = 0; flag && err && i < strlen(p->name); i++)
        if (p->name[i] == '_') err->msg[i + 2] = '-';
    return HFSB_ARG;
}

/* "must be 'a', 'b' or 'c'" without quotes, as a sentence. */
static hfsb_status hfsbi_param_no_choice(const hfsbi_param    *p,
                                         const hfsbi_args_how *how,
                                         hfsb_str given, hfsb_err *err) {
    hfsb_str    rest = hfsb_cstr(p->choices), one, next;
    const char *end = strchr(p->choices, '|');
    bool        more;
    if (end) rest.len = (size_t)(end - p->choices);
    hfsbi_param_fail(p, how, err);
    more = hfsbi_param_choice(&rest, &one);
    hfsbi_err_add(err, "%.*s", (int)one.len, one.ptr);
    for (more = more && hfsbi_param_choice(&rest, &one); more; one = next) {
        more = hfsbi_param_choice(&rest, &next);
        hfsbi_err_add(err, "%s%.*s", more ? ", " : " or ", (int)one.len,
                      one.ptr);
    }
    hfsbi_err_add(err, ", not ");
    hfsbi_err_quote(err, given, 40);
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

static bool hfsbi_is_number(const hfsb_json_value *value) {
    hfsb_json_type type = hfsb_json_type_of(value);
    return type == HFSB_JSON_INT || type == HFSB_JSON_UINT ||
           type == HFSB_JSON_DOUBLE;
}

static hfsb_status hfsbi_param_text(const hfsbi_param     *p,
                                    const hfsb_json_value *object,
                                    const hfsbi_args_how *how, hfsb_str *out,
                                    hfsb_err *err) {
    const hfsb_json_value *given = hfsb_json_get(object, p->name);
    hfsb_str               rest, one;
    hfsb_status            st;
    if (p->flags & HFSBI_OR_NUMBER && how->number && hfsbi_is_number(given)) {
        hfsb_buf_truncate(how->number, 0);
        st = hfsb_json_write(given, NULL, how->number, err);
        *out = hfsb_buf_str(how->number);
        return st;
    }
    st = hfsb_json_arg_str(object, p->name, p->flags & HFSBI_REQUIRED, out,
                           err);
    if (st != HFSB_OK || !out->ptr) return st;
    if (p->flags & HFSBI_NO_NUL && hfsb_str_find_byte(*out, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0, "%s must be a path without NUL.",
                          p->name);
    if (!(p->flags & HFSBI_ONE_OF) || !out->len) return HFSB_OK;
    rest = hfsb_cstr(p->choices);
    while (hfsbi_param_choice(&rest, &one))
        if (hfsb_str_equal(one, *out)) return HFSB_OK;
    return hfsbi_param_no_choice(p, how, *out, err);
}

static hfsb_status hfsbi_param_int(const hfsbi_param     *p,
                                   const hfsb_json_value *object,
                                   const hfsbi_args_how *how, long long *out,
                                   hfsb_err *err) {
    const hfsb_json_value *value = hfsb_json_get(object, p->name);
    hfsb_status            st;
    *out = p->preset;
    if (value && p->flags & HFSBI_NULL_IS_0 &&
        hfsb_json_type_of(value) == HFSB_JSON_NULL)
        *out = 0;
    st = hfsb_json_arg_int(object, p->name, p->flags & HFSBI_REQUIRED, out,
                           err);
    if (st != HFSB_OK || !p->must) return st;
    if (hfsb_json_type_of(value) == HFSB_JSON_NULL) return st; /* not given */
    if (*out > p->max && p->flags & HFSBI_CLAMPED) *out = p->max;
    if (*out >= p->min && *out <= p->max) return HFSB_OK;
    hfsbi_param_fail(p, how, err);
    hfsbi_err_add(err, "%s, not %lld.", p->must, *out);
    return HFSB_ARG;
}

static hfsb_status hfsbi_param_number(const hfsbi_param     *p,
                                      const hfsb_json_value *object,
                                      const hfsbi_args_how *how, double *out,
                                      hfsb_err *err) {
    char        text[32];
    size_t      n;
    hfsb_status st = hfsb_json_arg_double(object, p->name,
                                          p->flags & HFSBI_REQUIRED, out, err);
    if (st != HFSB_OK || !p->must || *out >= (double)p->min) return st;
    n = hfsbi_number_write_double(*out, text);
    if (n > 2 && text[n - 1] == '0' && text[n - 2] == '.') n -= 2;
    hfsbi_param_fail(p, how, err);
    hfsbi_err_add(err, "%s, not %.*s.", p->must, (int)n, text);
    return HFSB_ARG;
}

static hfsb_status hfsbi_param_switch(const hfsbi_param     *p,
                                      const hfsb_json_value *object, int *out,
                                      hfsb_err *err) {
    const hfsb_json_value *given = hfsb_json_get(object, p->name);
    bool                   on = false;
    hfsb_status st = hfsb_json_arg_bool(object, p->name, false, &on, err);
    *out = hfsb_json_type_of(given) == HFSB_JSON_NULL ? -1 : on;
    return st;
}

/* parsed receives an object or list that came as a string. */
static hfsb_status hfsbi_param_read(const hfsbi_param     *p,
                                    const hfsb_json_value *object,
                                    const hfsbi_args_how  *how,
                                    hfsb_json_doc *parsed, void *field,
                                    hfsb_err *err) {
    bool required = p->flags & HFSBI_REQUIRED;
    switch (p->type) {
    case HFSBI_ARG_STR:
        return hfsbi_param_text(p, object, how, (hfsb_str *)field, err);
    case HFSBI_ARG_INT:
        return hfsbi_param_int(p, object, how, (long long *)field, err);
    case HFSBI_ARG_NUMBER:
        return hfsbi_param_number(p, object, how, (double *)field, err);
    case HFSBI_ARG_BOOL:
        return hfsb_json_arg_bool(object, p->name, required, (bool *)field,
                                  err);
    case HFSBI_ARG_SWITCH:
        return hfsbi_param_switch(p, object, (int *)field, err);
    case HFSBI_ARG_OBJECT:
    case HFSBI_ARG_LIST:
        return hfsb_json_arg_parsed(
            object, p->name, required,
            p->type == HFSBI_ARG_LIST ? HFSB_JSON_ARRAY : HFSB_JSON_OBJECT,
            parsed, (const hfsb_json_value **)field, err);
    }
    return HFSB_ARG;
}

/* ---- all of them ---- */

static size_t hfsbi_param_size(hfsbi_arg_type type) {
    static const size_t sizes[] = {
        sizeof(hfsb_str), sizeof(long long), sizeof(double), sizeof(bool),
        sizeof(int),      sizeof(void *),    sizeof(void *)};
    return sizes[type];
}

HFSBI_FN hfsb_status hfsbi_args_fill(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err) {
    const hfsbi_param *p;
    hfsb_json_doc     *parsed = how->parsed;
    hfsb_status        st = HFSB_OK;
    size_t             used = 0;
    for (p = params; st == HFSB_OK && p->name; p++) {
        char *field = (char *)out + p->field;
        bool  nests = p->type == HFSBI_ARG_OBJECT || p->type == HFSBI_ARG_LIST;
        if (p->flags & HFSBI_BY_TOOL) continue;
        if (nests && parsed && used++ == how->parsed_count)
            return hfsbi_fail(err, HFSB_LIMIT, 0,
                              "At most %zu parameters may be objects or lists.",
                              how->parsed_count);
        HFSB_ASSERT(p->field + hfsbi_param_size(p->type) <=
                    sizeof(hfsbi_args));
        memset(field, 0, hfsbi_param_size(p->type));
        if (how->id.ptr && strcmp(p->name, "id") == 0)
            *(hfsb_str *)(void *)field = how->id;
        else st = hfsbi_param_read(p, object, how, parsed, field, err);
        if (nests && parsed) parsed++;
        if (st == HFSB_ARG) hfsbi_err_key(err, p->name);
    }
    return st;
}

HFSBI_FN hfsb_status hfsbi_args_read(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err) {
    hfsb_status st = hfsbi_args_check(params, object, how, err);
    return st == HFSB_OK ? hfsbi_args_fill(params, object, how, out, err) : st;
}

HFSBI_FN bool hfsbi_param_fits(const hfsbi_param     *p,
                               const hfsb_json_value *object,
                               const hfsb_alloc      *alloc) {
    hfsb_json_doc  parsed = HFSB_INIT;
    hfsbi_args_how how = HFSB_INIT;
    hfsbi_args     value;
    hfsbi_param    plain = *p;
    bool           fits;
    memset(&value, 0, sizeof value);
    plain.flags &= ~(unsigned)(HFSBI_REQUIRED | HFSBI_NO_NUL | HFSBI_ONE_OF);
    plain.must = NULL;
    parsed.alloc = *alloc;
    fits = hfsbi_param_read(&plain, object, &how, &parsed, &value, NULL) ==
           HFSB_OK;
    hfsb_json_free(&parsed);
    return fits;
}

/* ---- the schema ---- */

/* Three kinds, see hfsbi_schema: strict mode has neither optional parameters
   nor objects with arbitrary keys. */

static void hfsbi_params_object(const hfsbi_param *params, hfsbi_schema kind,
                                bool brief, hfsb_buf *out);

/* True when a schema of that kind lists the parameter. */
static bool hfsbi_param_listed(const hfsbi_param *p, hfsbi_schema kind) {
    if (p->flags & HFSBI_UNLISTED) return false;
    if (p->flags & HFSBI_FLAT_ONLY && kind != HFSBI_SCHEMA_FULL) return false;
    return p->type != HFSBI_ARG_OBJECT || kind != HFSBI_SCHEMA_STRICT;
}

/* True when a strict schema allows null, for "not given". A parameter whose
   null has a meaning of its own must be given. */
static bool hfsbi_param_nullable(const hfsbi_param *p, hfsbi_schema kind) {
    return kind == HFSBI_SCHEMA_STRICT &&
           !(p->flags & (HFSBI_REQUIRED | HFSBI_NULL_IS_0));
}

static void hfsbi_param_choices(const hfsbi_param *p, bool nullable,
                                hfsb_buf *out) {
    hfsb_str    rest = hfsb_cstr(p->choices), one;
    const char *end = strchr(p->choices, '|');
    const char *comma = "";
    if (end) rest.len = (size_t)(end - p->choices);
    hfsb_buf_printf(out, ",\"enum\":[");
    while (hfsbi_param_choice(&rest, &one)) {
        hfsb_buf_printf(out, "%s\"%.*s\"", comma, (int)one.len, one.ptr);
        comma = ",";
    }
    hfsb_buf_append(out, nullable ? HFSB_LIT(",null]") : HFSB_LIT("]"));
}

static void hfsbi_param_schema(const hfsbi_param *p, hfsbi_schema kind,
                               bool brief, hfsb_buf *out) {
    bool nullable = hfsbi_param_nullable(p, kind);
    hfsb_buf_printf(out,
                    nullable ? "\"%s\":{\"type\":[\"%s\",\"null\"]"
                             : "\"%s\":{\"type\":\"%s\"",
                    p->name, hfsbi_param_type(p));
    if (!brief && p->choices) hfsbi_param_choices(p, nullable, out);
    if (p->type == HFSBI_ARG_LIST) hfsb_buf_printf(out, ",\"items\":");
    if (p->items)
        hfsbi_params_object(p->items, kind, p->flags & HFSBI_BRIEF, out);
    else if (p->type == HFSBI_ARG_LIST)
        hfsb_buf_printf(out, "{\"type\":\"string\"}");
    if (!brief && p->words) {
        hfsb_buf_printf(out, ",\"description\":");
        hfsbi_json_put_quoted(out, hfsb_cstr(p->words));
    }
    hfsb_buf_append_byte(out, '}');
}

/* brief: names and types only, where another tool has the same parameters
   with their descriptions. */
static void hfsbi_params_object(const hfsbi_param *params, hfsbi_schema kind,
                                bool brief, hfsb_buf *out) {
    const hfsbi_param *p;
    const char        *comma = "";
    hfsb_buf_printf(out, "{\"type\":\"object\",\"properties\":{");
    for (p = params; p->name; p++) {
        if (!hfsbi_param_listed(p, kind)) continue;
        hfsb_buf_printf(out, "%s", comma);
        hfsbi_param_schema(p, kind, brief, out);
        comma = ",";
    }
    hfsb_buf_printf(out, "},\"required\":[");
    for (p = params, comma = ""; p->name; p++) {
        if (!(p->flags & HFSBI_REQUIRED) && kind != HFSBI_SCHEMA_STRICT)
            continue;
        if (!hfsbi_param_listed(p, kind)) continue;
        hfsb_buf_printf(out, "%s\"%s\"", comma, p->name);
        comma = ",";
    }
    hfsb_buf_printf(out, "],\"additionalProperties\":false}");
}

HFSBI_FN void hfsbi_params_schema(const hfsbi_param *params, hfsbi_schema kind,
                                  hfsb_buf *out) {
    hfsbi_params_object(params, kind, false, out);
}
