/* fields.c - the body of a request becomes the arguments of a tool. */
#include "api_private.h"

/* ==== server fields ==== */

/* what is wrong with the arguments of a call, in the shape
   that clients of FastAPI know. */

enum {
    HFSBI_FIELDS_MAX = 16,    /* items in one answer */
    HFSBI_FIELDS_TEXT = 1024, /* bytes of a text that are shown as they are */
    HFSBI_FIELDS_INPUT = 4096 /* bytes of JSON */
};

typedef struct hfsbi_fields {
    hfsb_json_writer w;
    hfsb_alloc       alloc;
    size_t           count;
} hfsbi_fields;

/* A place in the arguments: a key, or the index of an element. */
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

/* What came, unless it is long: no one needs a file's text back. */
static void hfsbi_fields_put_input(hfsbi_fields          *f,
                                   const hfsb_json_value *value) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_str       text = hfsb_json_str(value, HFSB_LIT(""));
    hfsb_buf       try_it = HFSB_INIT;
    if (text.len > HFSBI_FIELDS_TEXT) {
        text = hfsb_str_slice(text, 0, hfsb_utf8_offset(text, 200));
        hfsb_json_put_str(&f->w, text);
        return;
    }
    try_it.alloc = f->alloc;
    try_it.max = HFSBI_FIELDS_INPUT;
    if ((type == HFSB_JSON_ARRAY || type == HFSB_JSON_OBJECT) &&
        hfsb_json_write(value, NULL, &try_it, NULL) != HFSB_OK)
        hfsb_json_put_null(&f->w);
    else hfsb_json_put_value(&f->w, value);
    hfsb_buf_free(&try_it);
}

static void hfsbi_fields_put(hfsbi_fields *f, const hfsbi_loc *loc,
                             const char *type, const char *text,
                             const hfsb_json_value *input) {
    if (f->count++ >= HFSBI_FIELDS_MAX) return;
    hfsb_json_put_object(&f->w);
    hfsbi_put_member_str(&f->w, "type", hfsb_cstr(type));
    hfsb_json_put_key(&f->w, HFSB_LIT("loc"));
    hfsb_json_put_array(&f->w);
    hfsbi_fields_put_loc(&f->w, loc);
    hfsb_json_put_end(&f->w);
    hfsbi_put_member_str(&f->w, "msg", hfsb_cstr(text));
    hfsb_json_put_key(&f->w, HFSB_LIT("input"));
    hfsbi_fields_put_input(f, input);
    hfsb_json_put_end(&f->w);
}

/* ---- one value ---- */

static void hfsbi_fields_wrong_int(hfsbi_fields *f, const hfsbi_loc *loc,
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

static void hfsbi_fields_wrong(hfsbi_fields *f, const hfsbi_loc *loc,
                               hfsb_str type, const hfsb_json_value *value) {
    hfsb_json_type is = hfsb_json_type_of(value);
    if (hfsb_str_equal(type, HFSB_LIT("integer"))) {
        hfsbi_fields_wrong_int(f, loc, value);
    } else if (hfsb_str_equal(type, HFSB_LIT("number"))) {
        if (is == HFSB_JSON_STRING)
            hfsbi_fields_put(f, loc, "float_parsing",
                             "Input should be a valid number, unable to parse "
                             "string as a number",
                             value);
        else
            hfsbi_fields_put(f, loc, "float_type",
                             "Input should be a valid number", value);
    } else if (hfsb_str_equal(type, HFSB_LIT("boolean"))) {
        if (is == HFSB_JSON_STRING || is == HFSB_JSON_INT ||
            is == HFSB_JSON_DOUBLE)
            hfsbi_fields_put(f, loc, "bool_parsing",
                             "Input should be a valid boolean, unable to "
                             "interpret input",
                             value);
        else
            hfsbi_fields_put(f, loc, "bool_type",
                             "Input should be a valid boolean", value);
    } else if (hfsb_str_equal(type, HFSB_LIT("array"))) {
        hfsbi_fields_put(f, loc, "list_type", "Input should be a valid list",
                         value);
    } else if (hfsb_str_equal(type, HFSB_LIT("object"))) {
        hfsbi_fields_put(f, loc, "dict_type",
                         "Input should be a valid dictionary", value);
    } else {
        hfsbi_fields_put(f, loc, "string_type",
                         "Input should be a valid string", value);
    }
}

/* Whether the tools take this member for one of that type: they are asked in
   the way they ask themselves. */
static bool hfsbi_fields_fits(const hfsbi_fields    *f,
                              const hfsb_json_value *object, hfsb_str key,
                              hfsb_str type) {
    const hfsb_json_value *value = NULL;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_str               text = HFSB_INIT;
    long long              i = 0;
    double                 d = 0;
    bool                   b = false;
    hfsb_status            st;
    doc.alloc = f->alloc;
    if (hfsb_str_equal(type, HFSB_LIT("integer")))
        st = hfsb_json_arg_int(object, key.ptr, false, &i, NULL);
    else if (hfsb_str_equal(type, HFSB_LIT("number")))
        st = hfsb_json_arg_double(object, key.ptr, false, &d, NULL);
    else if (hfsb_str_equal(type, HFSB_LIT("boolean")))
        st = hfsb_json_arg_bool(object, key.ptr, false, &b, NULL);
    else if (hfsb_str_equal(type, HFSB_LIT("array")))
        st = hfsb_json_arg_parsed(object, key.ptr, false, HFSB_JSON_ARRAY,
                                  &doc, &value, NULL);
    else if (hfsb_str_equal(type, HFSB_LIT("object")))
        st = hfsb_json_arg_parsed(object, key.ptr, false, HFSB_JSON_OBJECT,
                                  &doc, &value, NULL);
    else st = hfsb_json_arg_str(object, key.ptr, false, &text, NULL);
    hfsb_json_free(&doc);
    return st == HFSB_OK;
}

/* ---- an object and what is in it ---- */

static size_t hfsbi_fields_times(const hfsb_json_value *object, hfsb_str key) {
    hfsb_json_iter it = hfsb_json_begin(object);
    size_t         n = 0;
    while (hfsb_json_next(&it)) n += hfsb_str_equal(it.key, key);
    return n;
}

static bool hfsbi_fields_required(const hfsb_json_value *schema,
                                  hfsb_str               key) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(schema, "required"));
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(hfsb_json_str(it.value, HFSB_LIT("")), key))
            return true;
    return false;
}

static void hfsbi_fields_check(hfsbi_fields *f, const hfsbi_loc *loc,
                               const hfsb_json_value *schema,
                               const hfsb_json_value *object);

/* Elements of an array that are to be objects; schemas nest no deeper. */
static void hfsbi_fields_elements(hfsbi_fields *f, const hfsbi_loc *loc,
                                  const hfsb_json_value *items,
                                  const hfsb_json_value *array) {
    hfsb_json_iter it = hfsb_json_begin(array);
    hfsbi_loc      at = hfsbi_loc_key(loc, hfsb_str_make(NULL, 0));
    if (!items) return;
    for (; hfsb_json_next(&it) && f->count < HFSBI_FIELDS_MAX; at.index++)
        if (hfsb_json_type_of(it.value) == HFSB_JSON_OBJECT)
            hfsbi_fields_check(f, &at, items, it.value);
        else hfsbi_fields_wrong(f, &at, HFSB_LIT("object"), it.value);
}

static void hfsbi_fields_member(hfsbi_fields *f, const hfsbi_loc *loc,
                                const hfsb_json_value *schema,
                                const hfsb_json_value *object, hfsb_str key) {
    const hfsb_json_value *property =
        hfsb_json_get(hfsb_json_get(schema, "properties"), key.ptr);
    const hfsb_json_value *value = hfsb_json_get(object, key.ptr);
    hfsb_str               type =
        hfsb_json_str(hfsb_json_get(property, "type"), HFSB_LIT("string"));
    hfsbi_loc at = hfsbi_loc_key(loc, key);
    bool      needed = hfsbi_fields_required(schema, key);
    if (needed && !value)
        hfsbi_fields_put(f, &at, "missing", "Field required", object);
    else if (hfsbi_fields_times(object, key) > 1)
        hfsbi_fields_put(f, &at, "value_error",
                         "Value error, the key is given twice", value);
    else if ((needed && hfsb_json_type_of(value) == HFSB_JSON_NULL) ||
             !hfsbi_fields_fits(f, object, key, type))
        hfsbi_fields_wrong(f, &at, type, value);
    else if (hfsb_json_type_of(value) == HFSB_JSON_ARRAY)
        hfsbi_fields_elements(f, &at, hfsb_json_get(property, "items"), value);
}

static void hfsbi_fields_check(hfsbi_fields *f, const hfsbi_loc *loc,
                               const hfsb_json_value *schema,
                               const hfsb_json_value *object) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(schema, "properties"));
    while (hfsb_json_next(&it))
        hfsbi_fields_member(f, loc, schema, object, it.key);
}

/* ---- when all keys of the schema fit ---- */

/* The key that a sentence begins with: `"key": ...` or `key must ...`; empty
   when it is none of the arguments. */
static hfsb_str hfsbi_fields_named(hfsb_str               sentence,
                                   const hfsb_json_value *arguments) {
    hfsb_json_iter it = hfsb_json_begin(arguments);
    bool           quoted = hfsb_str_starts(sentence, HFSB_LIT("\""));
    if (quoted) sentence = hfsb_str_slice(sentence, 1, sentence.len);
    while (hfsb_json_next(&it))
        if (it.key.len && hfsb_str_starts(sentence, it.key) &&
            sentence.len > it.key.len &&
            strchr(quoted ? "\"" : " :", sentence.ptr[it.key.len]))
            return it.key;
    return HFSB_LIT("");
}

static void hfsbi_fields_sentence(hfsbi_fields *f, const hfsbi_loc *top,
                                  const hfsb_json_value *arguments,
                                  hfsb_str               sentence) {
    hfsb_str  key = hfsbi_fields_named(sentence, arguments);
    hfsbi_loc at = hfsbi_loc_key(top, key);
    hfsb_err  text = HFSB_INIT;
    hfsbi_fail(&text, HFSB_ARG, 0, "Value error, ");
    hfsbi_err_quote(&text, sentence, HFSB_ERR_SIZE / 4);
    hfsbi_fields_put(f, key.len ? &at : top, "value_error", text.msg,
                     key.len ? hfsb_json_get(arguments, key.ptr) : arguments);
}

static void hfsbi_fields_begin(hfsbi_fields *f, hfsb_buf *out) {
    f->alloc = out->alloc;
    f->count = 0;
    hfsb_json_writer_init(&f->w, out, NULL);
    hfsb_json_put_array(&f->w);
}

static hfsb_status hfsbi_fields_end(hfsbi_fields *f) {
    hfsb_json_put_end(&f->w);
    return hfsb_json_writer_finish(&f->w, NULL);
}

/* The same with one item; key may be "". */
static hfsb_status hfsbi_fields_item(const char *where, hfsb_str key,
                                     const char *type, const char *text,
                                     const hfsb_json_value *input,
                                     hfsb_buf              *out) {
    hfsbi_loc    top = hfsbi_loc_key(NULL, hfsb_cstr(where));
    hfsbi_loc    at = hfsbi_loc_key(&top, key);
    hfsbi_fields f;
    hfsbi_fields_begin(&f, out);
    hfsbi_fields_put(&f, key.len ? &at : &top, type, text, input);
    return hfsbi_fields_end(&f);
}

HFSBI_FN hfsb_status hfsbi_fields_detail(const hfsbi_tool      *tool,
                                         const char            *where,
                                         const hfsb_json_value *arguments,
                                         hfsb_str sentence, hfsb_buf *out) {
    hfsbi_loc     top = hfsbi_loc_key(NULL, hfsb_cstr(where));
    hfsb_json_doc schema = HFSB_INIT;
    hfsbi_fields  f;
    hfsb_status   st;
    schema.alloc = out->alloc;
    st = hfsb_json_parse(hfsb_cstr(tool->schema), NULL, &schema, NULL);
    if (st != HFSB_OK) return HFSB_NOMEM; /* the schema is ours */
    hfsbi_fields_begin(&f, out);
    hfsbi_fields_check(&f, &top, schema.root, arguments);
    if (f.count == 0) hfsbi_fields_sentence(&f, &top, arguments, sentence);
    st = hfsbi_fields_end(&f);
    hfsb_json_free(&schema);
    return st;
}

/* ---- refusals ---- */

HFSBI_FN void hfsbi_api_fail(hfsbi_api_call *x, int status, hfsb_str detail,
                             hfsb_str error) {
    size_t           mark;
    hfsb_json_writer w;
    hfsb_buf_truncate(&x->reply, 0);
    x->status = status;
    mark = x->reply.len;
    hfsb_json_writer_init(&w, &x->reply, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_bool(&w, "success", false);
    hfsbi_put_member_str(&w, "output", HFSB_LIT(""));
    hfsbi_put_member_str(&w, "error", error);
    if (!detail.len) hfsbi_put_member_str(&w, "detail", error);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK && detail.len) {
        hfsb_buf_truncate(&x->reply, x->reply.len - 1);
        hfsb_buf_append(&x->reply, HFSB_LIT(",\"detail\":"));
        hfsb_buf_append(&x->reply, detail);
        hfsb_buf_append_byte(&x->reply, '}');
    }
    if (hfsb_buf_finish(&x->reply, mark) != HFSB_OK || !x->reply.len) {
        hfsb_buf_free(&x->reply); /* hfsbi_api_answer() has words for it */
        x->status = 503;
    }
}

/* 422 with one item. */
static void hfsbi_api_refuse(hfsbi_api_call *x, hfsb_str key, const char *type,
                             const char *text, const hfsb_json_value *input,
                             const char *error) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = x->box->alloc;
    if (hfsbi_fields_item(x->where, key, type, text, input, &detail) ==
        HFSB_OK)
        hfsbi_api_fail(x, 422, hfsb_buf_str(&detail), hfsb_cstr(error));
    else x->status = 503;
    hfsb_buf_free(&detail);
}

/* ---- JSON ---- */

/* A key was given twice, and that is all that is wrong: true. */
static bool hfsbi_api_repeats(hfsbi_api_call *x, const hfsb_err *err) {
    hfsb_buf detail = HFSB_INIT;
    if (hfsb_json_parse_in_place(x->body.ptr, x->body.len, NULL, &x->doc,
                                 NULL) != HFSB_OK)
        return false;
    detail.alloc = x->box->alloc;
    if (hfsbi_fields_detail(x->tool, x->where, x->doc.root,
                            hfsb_cstr(err->msg), &detail) == HFSB_OK)
        hfsbi_api_fail(x, 422, hfsb_buf_str(&detail), hfsb_cstr(err->msg));
    else x->status = 503;
    hfsb_buf_free(&detail);
    return true;
}

static void hfsbi_api_parse(hfsbi_api_call *x) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_err             err = HFSB_INIT, all = HFSB_INIT;
    hfsb_status          st;
    how.unique_keys = true;
    x->doc.alloc = x->box->alloc;
    st = hfsb_json_parse_in_place(x->body.ptr, x->body.len, &how, &x->doc,
                                  &err);
    if (st == HFSB_NOMEM) x->status = 503;
    if (st == HFSB_OK || st == HFSB_NOMEM) return;
    if (st == HFSB_SYNTAX && hfsbi_api_repeats(x, &err)) return;
    hfsbi_fail(&all, st, 0, "The body is not JSON: %s", err.msg);
    hfsbi_api_fail(x, 400, HFSB_LIT(""), hfsb_cstr(all.msg));
}

/* ---- keys that are for the server ---- */

static bool hfsbi_api_is_own(const hfsbi_api_call *x, hfsb_str key) {
    if (x->id.len && hfsb_str_equal(key, HFSB_LIT("id"))) return true;
    return hfsb_str_equal(key, HFSB_LIT("stream")) ||
           hfsb_str_equal(key, HFSB_LIT("on_disconnect"));
}

/* Writes the arguments anew, without those keys and with the id of the path:
   what a call is remembered by does not depend on how it is answered. */
static void hfsbi_api_rewrite(hfsbi_api_call *x) {
    hfsb_json_iter   it = hfsb_json_begin(x->doc.root);
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    text.alloc = x->box->alloc;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_object(&w);
    if (x->id.len) hfsbi_put_member_str(&w, "id", hfsb_buf_str(&x->id));
    while (hfsb_json_next(&it)) {
        if (hfsbi_api_is_own(x, it.key)) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    hfsb_json_put_end(&w);
    hfsb_json_free(&x->doc);
    hfsb_buf_free(&x->body);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK) {
        x->body = text;
        hfsbi_api_parse(x);
        return;
    }
    hfsb_buf_free(&text);
    x->status = 503;
}

/* `stream` and `on_disconnect` of bash. */
static void hfsbi_api_own_keys(hfsbi_api_call *x) {
    const hfsb_json_value *root = x->doc.root;
    const hfsb_json_value *leave = hfsb_json_get(root, "on_disconnect");
    hfsb_str               how = hfsb_json_str(leave, HFSB_LIT(""));
    hfsb_err               err = HFSB_INIT;
    if (hfsb_json_arg_bool(root, "stream", false, &x->stream, &err) != HFSB_OK)
        hfsbi_api_refuse(x, HFSB_LIT("stream"), "bool_parsing",
                         "Input should be a valid boolean, unable to "
                         "interpret input",
                         hfsb_json_get(root, "stream"), err.msg);
    else if (hfsb_json_type_of(leave) == HFSB_JSON_NULL) return;
    else if (hfsb_str_equal(how, HFSB_LIT("kill")))
        x->disconnect = HFSBI_DISCONNECT_KILL;
    else if (hfsb_str_equal(how, HFSB_LIT("continue")))
        x->disconnect = HFSBI_DISCONNECT_CONTINUE;
    else
        hfsbi_api_refuse(x, HFSB_LIT("on_disconnect"), "literal_error",
                         "Input should be 'kill' or 'continue'", leave,
                         "\"on_disconnect\": expected \"kill\" or "
                         "\"continue\".");
}

static void hfsbi_api_bash_keys(hfsbi_api_call *x) {
    double seconds = 0, most = x->box->tools->max_timeout;
    hfsbi_api_own_keys(x);
    if (hfsb_json_arg_double(x->doc.root, "timeout", false, &seconds, NULL) !=
            HFSB_OK ||
        seconds <= 0)
        seconds = x->box->tools->timeout;
    x->timeout = seconds > most ? most : seconds;
}

HFSBI_FN void hfsbi_api_arguments(hfsbi_api_call *x) {
    hfsb_str name = hfsb_cstr(x->tool->name);
    bool     bash = hfsb_str_equal(name, HFSB_LIT("bash"));
    if (!x->body.len && hfsb_str_equal(name, HFSB_LIT("kill"))) return;
    if (!x->body.len) {
        hfsbi_api_refuse(x, HFSB_LIT(""), "missing", "Field required", NULL,
                         "The body is empty: expected a JSON object with the "
                         "arguments.");
        return;
    }
    hfsbi_api_parse(x);
    if (x->status) return;
    if (hfsb_json_type_of(x->doc.root) != HFSB_JSON_OBJECT) {
        hfsbi_api_refuse(x, HFSB_LIT(""), "model_attributes_type",
                         "Input should be a valid dictionary or object to "
                         "extract fields from",
                         x->doc.root,
                         "The body must be a JSON object with the arguments.");
        return;
    }
    if (bash) hfsbi_api_bash_keys(x);
    if (!x->status &&
        (x->id.len || (bash && (hfsb_json_get(x->doc.root, "stream") ||
                                hfsb_json_get(x->doc.root, "on_disconnect")))))
        hfsbi_api_rewrite(x);
}
