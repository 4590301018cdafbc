/* fields.c - reads the arguments of a call, and reports those that are wrong.

   The body of a request is parsed in place into x->doc; then the options of
   bash that concern delivery (stream, on_disconnect, timeout) are copied into
   the call. The tool itself checks the other arguments when it is opened.

   A failure sets x->status and x->reply: 400 for text that is not JSON, 422
   for wrong arguments, 503 without memory. The "detail" of a 422 is a list of
   items in the form that clients of FastAPI expect:

     {"type":"int_parsing","loc":["body","offset"],"msg":"...","input":"x"}

   When a tool refuses its arguments, each one is compared with the tool's
   parameters. If all fit, one item contains the tool's own error. */
#include "api_private.h"

/* ---- items ---- */

enum {
    HFSBI_FIELDS_MAX = 16,    /* items in one reply */
    HFSBI_FIELDS_TEXT = 1024, /* bytes; a longer string is cut in "input" */
    HFSBI_FIELDS_INPUT = 4096 /* bytes of JSON; a longer value becomes null */
};

/* A detail that is being written. */
typedef struct hfsbi_fields {
    hfsb_json_writer w;
    hfsb_alloc       alloc;
    size_t           count;  /* items found; only the first MAX are written */
    bool             has_id; /* the id comes from the path: do not check it */
} hfsbi_fields;

/* A location in the arguments: a key, or the index of an element. */
typedef struct hfsbi_loc {
    const struct hfsbi_loc *up;
    hfsb_str                key; /* ptr NULL: an index */
    size_t                  index;
} hfsbi_loc;

static hfsbi_loc hfsbi_loc_key(const hfsbi_loc *up, hfsb_str key) {
    hfsbi_loc loc;
    loc.up = up;
    loc.key = key;
    loc.index = 0;
    return loc;
}

static void hfsbi_fields_put_loc(hfsb_json_writer *w, const hfsbi_loc *loc) {
    if (loc->up) hfsbi_fields_put_loc(w, loc->up);
    if (loc->key.ptr) hfsb_json_put_str(w, loc->key);
    else hfsb_json_put_uint(w, loc->index);
}

/* Writes the value as "input", shortened: clients do not need the text of a
   file back. */
static void hfsbi_fields_put_input(hfsbi_fields          *f,
                                   const hfsb_json_value *value) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_str       text = hfsb_json_str(value, HFSB_LIT(""));
    hfsb_buf       json = HFSB_INIT;
    if (text.len > HFSBI_FIELDS_TEXT) {
        text = hfsb_str_slice(text, 0, hfsb_utf8_offset(text, 200));
        hfsb_json_put_str(&f->w, text);
        return;
    }
    json.alloc = f->alloc;
    json.max = HFSBI_FIELDS_INPUT;
    if ((type == HFSB_JSON_ARRAY || type == HFSB_JSON_OBJECT) &&
        hfsb_json_write(value, NULL, &json, NULL) != HFSB_OK)
        hfsb_json_put_null(&f->w);
    else hfsb_json_put_value(&f->w, value);
    hfsb_buf_free(&json);
}

static void hfsbi_fields_put(hfsbi_fields *f, const hfsbi_loc *loc,
                             const char *type, const char *text,
                             const hfsb_json_value *input) {
    if (f->count++ >= HFSBI_FIELDS_MAX) return;
    hfsb_json_put_object(&f->w);
    hfsb_json_put_member_str(&f->w, "type", hfsb_cstr(type));
    hfsb_json_put_key(&f->w, HFSB_LIT("loc"));
    hfsb_json_put_array(&f->w);
    hfsbi_fields_put_loc(&f->w, loc);
    hfsb_json_put_end(&f->w);
    hfsb_json_put_member_str(&f->w, "msg", hfsb_cstr(text));
    hfsb_json_put_key(&f->w, HFSB_LIT("input"));
    hfsbi_fields_put_input(f, input);
    hfsb_json_put_end(&f->w);
}

/* ---- items for one value ---- */

static void hfsbi_fields_put_wrong_int(hfsbi_fields *f, const hfsbi_loc *loc,
                                       const hfsb_json_value *value) {
    switch (hfsb_json_type_of(value)) {
    case HFSB_JSON_STRING:
        hfsbi_fields_put(f, loc, "int_parsing",
                         "Input should be a valid integer, unable to parse "
                         "string as an integer",
                         value);
        break;
    case HFSB_JSON_DOUBLE:
        hfsbi_fields_put(f, loc, "int_from_float",
                         "Input should be a valid integer, got a number with "
                         "a fractional part",
                         value);
        break;
    default:
        hfsbi_fields_put(f, loc, "int_type", "Input should be a valid integer",
                         value);
    }
}

static void hfsbi_fields_put_wrong_type(hfsbi_fields *f, const hfsbi_loc *loc,
                                        hfsbi_arg_type         type,
                                        const hfsb_json_value *value) {
    hfsb_json_type is = hfsb_json_type_of(value);
    switch (type) {
    case HFSBI_ARG_INT: hfsbi_fields_put_wrong_int(f, loc, value); break;
    case HFSBI_ARG_NUMBER:
        if (is == HFSB_JSON_STRING)
            hfsbi_fields_put(f, loc, "float_parsing",
                             "Input should be a valid number, unable to parse "
                             "string as a number",
                             value);
        else
            hfsbi_fields_put(f, loc, "float_type",
                             "Input should be a valid number", value);
        break;
    case HFSBI_ARG_BOOL:
    case HFSBI_ARG_SWITCH:
        if (is == HFSB_JSON_STRING || is == HFSB_JSON_INT ||
            is == HFSB_JSON_DOUBLE)
            hfsbi_fields_put(f, loc, "bool_parsing",
                             "Input should be a valid boolean, unable to "
                             "interpret input",
                             value);
        else
            hfsbi_fields_put(f, loc, "bool_type",
                             "Input should be a valid boolean", value);
        break;
    case HFSBI_ARG_LIST:
        hfsbi_fields_put(f, loc, "list_type", "Input should be a valid list",
                         value);
        break;
    case HFSBI_ARG_OBJECT:
        hfsbi_fields_put(f, loc, "dict_type",
                         "Input should be a valid dictionary", value);
        break;
    case HFSBI_ARG_STR:
        hfsbi_fields_put(f, loc, "string_type",
                         "Input should be a valid string", value);
    }
}

/* "Input should be 'a', 'b' or 'c'" */
static void hfsbi_fields_put_wrong_choice(hfsbi_fields          *f,
                                          const hfsbi_loc       *loc,
                                          const hfsbi_param     *p,
                                          const hfsb_json_value *value) {
    hfsb_str    rest = hfsb_cstr(p->choices), one;
    const char *alias = strchr(p->choices, '|'), *before = "";
    hfsb_err    text = HFSB_INIT;
    if (alias) rest.len = (size_t)(alias - p->choices);
    hfsbi_err_add(&text, "Input should be ");
    while (hfsbi_param_choice(&rest, &one)) {
        hfsbi_err_add(&text, "%s'%.*s'", before, (int)one.len, one.ptr);
        before = hfsb_str_find_byte(rest, ' ') == HFSB_NPOS ? " or " : ", ";
    }
    hfsbi_fields_put(f, loc, "literal_error", text.msg, value);
}

/* ---- checking an object ---- */

static size_t hfsbi_fields_count_key(const hfsb_json_value *object,
                                     hfsb_str               key) {
    hfsb_json_iter it = hfsb_json_begin(object);
    size_t         n = 0;
    while (hfsb_json_next(&it)) n += hfsb_str_equal(it.key, key);
    return n;
}

static bool hfsbi_fields_is_choice(const hfsbi_param     *p,
                                   const hfsb_json_value *value) {
    hfsb_str rest = hfsb_cstr(p->choices), one;
    hfsb_str text = hfsb_json_str(value, HFSB_LIT(""));
    if (!(p->flags & HFSBI_ONE_OF) || !text.len) return true;
    while (hfsbi_param_choice(&rest, &one))
        if (hfsb_str_equal(one, text)) return true;
    return false;
}

static void hfsbi_fields_check(hfsbi_fields *f, const hfsbi_loc *loc,
                               const hfsbi_param     *params,
                               const hfsb_json_value *object);

/* Checks elements that must be objects; parameters do not nest deeper. */
static void hfsbi_fields_check_elements(hfsbi_fields *f, const hfsbi_loc *loc,
                                        const hfsbi_param     *items,
                                        const hfsb_json_value *array) {
    hfsb_json_iter it = hfsb_json_begin(array);
    hfsbi_loc      at = hfsbi_loc_key(loc, hfsb_str_make(NULL, 0));
    if (!items) return;
    for (; hfsb_json_next(&it) && f->count < HFSBI_FIELDS_MAX; at.index++)
        if (hfsb_json_type_of(it.value) == HFSB_JSON_OBJECT)
            hfsbi_fields_check(f, &at, items, it.value);
        else hfsbi_fields_put_wrong_type(f, &at, HFSBI_ARG_OBJECT, it.value);
}

static void hfsbi_fields_check_member(hfsbi_fields *f, const hfsbi_loc *loc,
                                      const hfsbi_param     *p,
                                      const hfsb_json_value *object) {
    const hfsb_json_value *value = hfsb_json_get(object, p->name);
    hfsbi_loc              at = hfsbi_loc_key(loc, hfsb_cstr(p->name));
    bool                   needed = p->flags & HFSBI_REQUIRED;
    if (needed && !value)
        hfsbi_fields_put(f, &at, "missing", "Field required", object);
    else if (hfsbi_fields_count_key(object, hfsb_cstr(p->name)) > 1)
        hfsbi_fields_put(f, &at, "value_error",
                         "Value error, the key is given twice", value);
    else if ((needed && hfsb_json_type_of(value) == HFSB_JSON_NULL) ||
             !hfsbi_param_fits(p, object, &f->alloc))
        hfsbi_fields_put_wrong_type(f, &at, p->type, value);
    else if (!hfsbi_fields_is_choice(p, value))
        hfsbi_fields_put_wrong_choice(f, &at, p, value);
    else if (hfsb_json_type_of(value) == HFSB_JSON_ARRAY)
        hfsbi_fields_check_elements(f, &at, p->items, value);
}

static void hfsbi_fields_check(hfsbi_fields *f, const hfsbi_loc *loc,
                               const hfsbi_param     *params,
                               const hfsb_json_value *object) {
    for (; params->name; params++)
        if (!f->has_id || strcmp(params->name, "id") != 0)
            hfsbi_fields_check_member(f, loc, params, object);
}

/* ---- the detail of a 422 ---- */

/* Writes one item with the error of the tool, for the argument key if that was
   given, else for the whole object. */
static void hfsbi_fields_put_sentence(hfsbi_fields *f, const hfsbi_loc *top,
                                      const hfsb_json_value *arguments,
                                      const char *key, hfsb_str sentence) {
    hfsbi_loc at = hfsbi_loc_key(top, hfsb_cstr(key));
    hfsb_err  text = HFSB_INIT;
    bool      named = key[0] && hfsb_json_get(arguments, key);
    hfsbi_fail(&text, HFSB_ARG, 0, "Value error, ");
    hfsbi_err_quote(&text, sentence, HFSB_ERR_SIZE / 4);
    hfsbi_fields_put(f, named ? &at : top, "value_error", text.msg,
                     named ? hfsb_json_get(arguments, key) : arguments);
}

static void hfsbi_fields_begin(hfsbi_fields *f, hfsb_buf *out) {
    f->alloc = out->alloc;
    f->count = 0;
    f->has_id = false;
    hfsb_json_writer_init(&f->w, out, NULL);
    hfsb_json_put_array(&f->w);
}

static hfsb_status hfsbi_fields_end(hfsbi_fields *f) {
    hfsb_json_put_end(&f->w);
    return hfsb_json_writer_finish(&f->w, NULL);
}

HFSBI_FN hfsb_status hfsbi_fields_detail_item(const char *where, hfsb_str key,
                                              const char            *type,
                                              const char            *text,
                                              const hfsb_json_value *input,
                                              hfsb_buf              *out) {
    hfsbi_loc    top = hfsbi_loc_key(NULL, hfsb_cstr(where));
    hfsbi_loc    at = hfsbi_loc_key(&top, key);
    hfsbi_fields f;
    hfsbi_fields_begin(&f, out);
    hfsbi_fields_put(&f, key.len ? &at : &top, type, text, input);
    return hfsbi_fields_end(&f);
}

HFSBI_FN hfsb_status hfsbi_fields_detail(const hfsbi_api_call *x,
                                         const char *key, hfsb_str sentence,
                                         hfsb_buf *out) {
    hfsbi_loc    top = hfsbi_loc_key(NULL, hfsb_cstr(x->where));
    hfsbi_fields f;
    hfsbi_fields_begin(&f, out);
    f.has_id = x->id.len > 0;
    hfsbi_fields_check(&f, &top, x->tool->params, x->doc.root);
    if (f.count == 0)
        hfsbi_fields_put_sentence(&f, &top, x->doc.root, key, sentence);
    return hfsbi_fields_end(&f);
}

/* ---- errors as replies ---- */

HFSBI_FN void hfsbi_api_call_fail(hfsbi_api_call *x, int status,
                                  hfsb_str detail, hfsb_str error) {
    size_t           mark;
    hfsb_json_writer w;
    hfsb_buf_truncate(&x->reply, 0);
    x->status = status;
    mark = x->reply.len;
    hfsb_json_writer_init(&w, &x->reply, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_bool(&w, "success", false);
    hfsb_json_put_member_str(&w, "output", HFSB_LIT(""));
    hfsb_json_put_member_str(&w, "error", error);
    if (!detail.len) hfsb_json_put_member_str(&w, "detail", error);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK && detail.len) {
        hfsb_buf_truncate(&x->reply, x->reply.len - 1);
        hfsb_buf_append(&x->reply, HFSB_LIT(",\"detail\":"));
        hfsb_buf_append(&x->reply, detail);
        hfsb_buf_append_byte(&x->reply, '}');
    }
    if (hfsb_buf_finish(&x->reply, mark) != HFSB_OK || !x->reply.len) {
        hfsb_buf_free(&x->reply); /* hfsbi_api_call_reply() sends a text */
        x->status = 503;
    }
}

/* Sets a 422 with one item, or a 503 without memory. */
static void hfsbi_api_call_refuse(hfsbi_api_call *x, hfsb_str key,
                                  const char *type, const char *text,
                                  const hfsb_json_value *input,
                                  const char            *error) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = x->api->alloc;
    if (hfsbi_fields_detail_item(x->where, key, type, text, input, &detail) ==
        HFSB_OK)
        hfsbi_api_call_fail(x, 422, hfsb_buf_str(&detail), hfsb_cstr(error));
    else x->status = 503;
    hfsb_buf_free(&detail);
}

/* ---- reading the body ---- */

/* True if the body is valid JSON except for a repeated key; sets a 422 (503
   without memory). */
static bool hfsbi_api_call_has_repeated_key(hfsbi_api_call *x,
                                            const hfsb_err *err) {
    hfsb_buf detail = HFSB_INIT;
    if (hfsb_json_parse_in_place(x->body.ptr, x->body.len, NULL, &x->doc,
                                 NULL) != HFSB_OK)
        return false;
    detail.alloc = x->api->alloc;
    if (hfsbi_fields_detail(x, "", hfsb_cstr(err->msg), &detail) == HFSB_OK)
        hfsbi_api_call_fail(x, 422, hfsb_buf_str(&detail),
                            hfsb_cstr(err->msg));
    else x->status = 503;
    hfsb_buf_free(&detail);
    return true;
}

static void hfsbi_api_call_parse(hfsbi_api_call *x) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_err             err = HFSB_INIT, all = HFSB_INIT;
    hfsb_status          st;
    how.unique_keys = true;
    how.max_values = HFSBI_ARGUMENT_VALUES;
    x->doc.alloc = x->api->alloc;
    st = hfsb_json_parse_in_place(x->body.ptr, x->body.len, &how, &x->doc,
                                  &err);
    if (st == HFSB_NOMEM) x->status = 503;
    if (st == HFSB_OK || st == HFSB_NOMEM) return;
    if (st == HFSB_SYNTAX && hfsbi_api_call_has_repeated_key(x, &err)) return;
    hfsbi_fail(&all, st, 0, "The body is not JSON: %s", err.msg);
    hfsbi_api_call_fail(x, 400, HFSB_LIT(""), hfsb_cstr(all.msg));
}

HFSBI_FN void hfsbi_api_call_read_arguments(hfsbi_api_call *x) {
    hfsb_str name = hfsb_cstr(x->tool->name);
    if (!x->body.len && hfsb_str_equal(name, HFSB_LIT("kill"))) return;
    if (!x->body.len) {
        hfsbi_api_call_refuse(
            x, HFSB_LIT(""), "missing", "Field required", NULL,
            "The body is empty: expected a JSON object with the "
            "arguments.");
        return;
    }
    hfsbi_api_call_parse(x);
    if (x->status) return;
    if (hfsb_json_type_of(x->doc.root) != HFSB_JSON_OBJECT) {
        hfsbi_api_call_refuse(
            x, HFSB_LIT(""), "model_attributes_type",
            "Input should be a valid dictionary or object to "
            "extract fields from",
            x->doc.root, "The body must be a JSON object with the arguments.");
        return;
    }
}
