/* test_tools_args.c - what holds for every tool: definitions, schemas,
   arguments, unknown keys, results. */
#include "../support/t_tools.h"

/* ---- definitions ---- */

/* The least that each tool needs to work, in the directory of this test. */
static const struct base {
    const char *tool, *json;
} bases[] = {
    {"bash", "{\"command\":\"true\"}"},
    {"bash_output", "{\"id\":\"job\"}"},
    {"bash_input", "{\"id\":\"job\",\"text\":\"\"}"},
    {"kill", "{\"id\":\"done\"}"},
    {"read", "{\"path\":\"file\"}"},
    {"write", "{\"path\":\"file\",\"content\":\"x\\n\"}"},
    {"edit", "{\"path\":\"file\",\"old_str\":\"x\",\"new_str\":\"y\"}"},
    {"multi_edit",
     "{\"path\":\"file\",\"edits\":[{\"old_str\":\"x\",\"new_str\":\"y\"}]}"},
    {"apply_patch", "{\"patch\":\"*** Begin Patch\\n*** Update File: file\\n"
                    "@@\\n-x\\n+y\\n*** End Patch\\n\"}"},
    {"glob", "{\"pattern\":\"f*\"}"},
    {"grep", "{\"pattern\":\"x\"}"},
    {"list", "{}"},
    {"exists", "{\"path\":\"file\"}"},
};

static const struct base *base_of(hfsb_str tool) {
    size_t i;
    for (i = 0; i < TT_COUNT(bases); i++)
        if (hfsb_str_equal(tool, hfsb_cstr(bases[i].tool))) return &bases[i];
    return NULL;
}

/* A session in which each of them works: a file, a job that reads, one that
   is over. */
static hfsb_tools *prepared(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("file", HFSB_LIT("x\n"));
    tt_call(&r, tools, "bash", "command=s background=j id=s", "cat", "true",
            "job");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash", "command=s id=s", "true", "done");
    T_CHECK(r.res.success);
    tt_drop(&r);
    return tools;
}

/* The arguments of base with one key put in, changed (value NULL: left out).
 */
static void with_key(const struct base *base, hfsb_str key, const char *value,
                     hfsb_buf *out) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    bool           first = true;
    hfsb_buf_truncate(out, 0);
    T_CHECK(hfsb_json_parse(hfsb_cstr(base->json), NULL, &doc, NULL) ==
            HFSB_OK);
    if (hfsb_buf_append_byte(out, '{') != HFSB_OK) abort();
    for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
        if (hfsb_str_equal(it.key, key)) continue;
        if (hfsb_buf_printf(out, "%s\"%s\":", first ? "" : ",", it.key.ptr) !=
                HFSB_OK ||
            hfsb_json_write(it.value, NULL, out, NULL) != HFSB_OK)
            abort();
        first = false;
    }
    if (value && hfsb_buf_printf(out, "%s\"%.*s\":%s", first ? "" : ",",
                                 (int)key.len, key.ptr, value) != HFSB_OK)
        abort();
    if (hfsb_buf_append_byte(out, '}') != HFSB_OK) abort();
    hfsb_json_free(&doc);
}

static bool in_list(const hfsb_json_value *array, hfsb_str text) {
    hfsb_json_iter it = hfsb_json_begin(array);
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(hfsb_json_str(it.value, HFSB_LIT("")), text))
            return true;
    return false;
}

/* A schema of an object: closed, required keys are properties; and so are the
   objects inside it. */
static void check_schema(const hfsb_json_value *s) {
    const hfsb_json_value *closed = hfsb_json_get(s, "additionalProperties");
    const hfsb_json_value *all = hfsb_json_get(s, "properties");
    hfsb_json_iter         it;
    T_CHECK(
        hfsb_str_equal(hfsb_json_str(hfsb_json_get(s, "type"), HFSB_LIT("")),
                       HFSB_LIT("object")));
    T_CHECK(hfsb_json_type_of(closed) == HFSB_JSON_BOOL &&
            !hfsb_json_bool(closed, true));
    T_CHECK(hfsb_json_type_of(all) == HFSB_JSON_OBJECT);
    for (it = hfsb_json_begin(hfsb_json_get(s, "required"));
         hfsb_json_next(&it);)
        T_CHECK(hfsb_json_get(
                    all, hfsb_json_str(it.value, HFSB_LIT("?")).ptr) != NULL);
    for (it = hfsb_json_begin(all); hfsb_json_next(&it);) {
        T_CHECK(
            hfsb_json_str(hfsb_json_get(it.value, "type"), HFSB_LIT("")).len >
            0);
        if (hfsb_json_get(it.value, "items"))
            check_schema(hfsb_json_get(it.value, "items"));
    }
}

static const char *const schema_keys[] = {"parameters", "parameters",
                                          "input_schema", "inputSchema"};
static const char *const format_names[] = {"flat", "openai", "anthropic",
                                           "mcp"};

static void definitions_are_short_and_whole(void) {
    int f;
    for (f = 0; f < 4; f++) {
        hfsb_buf          out = HFSB_INIT, compact = HFSB_INIT;
        hfsb_json_doc     doc = HFSB_INIT;
        hfsb_json_iter    it, other;
        hfsb_tools_format format = HFSB_TOOLS_MCP;
        T_CHECK(hfsb_tools_format_find(hfsb_cstr(format_names[f]), &format));
        T_CHECK((int)format == f);
        T_CHECK(hfsb_tools_define(format, &out, NULL) == HFSB_OK);
        T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) ==
                HFSB_OK);
        T_CHECK(hfsb_json_write(doc.root, NULL, &compact, NULL) == HFSB_OK);
        /* every request pays for them; a host that shows all of them
           beside its own asks for less than that */
        T_CHECK(compact.len < 8000 && out.len < 8000);
        if (out.len >= 8000) printf("  %s: %zu\n", format_names[f], out.len);
        T_CHECK(hfsb_json_count(doc.root) == TT_COUNT(bases));
        for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
            const hfsb_json_value *d = it.value;
            size_t                 same = 0;
            hfsb_str               name;
            if (format == HFSB_TOOLS_OPENAI) {
                T_CHECK(hfsb_str_equal(
                    hfsb_json_str(hfsb_json_get(d, "type"), HFSB_LIT("")),
                    HFSB_LIT("function")));
                d = hfsb_json_get(d, "function");
            }
            name = hfsb_json_str(hfsb_json_get(d, "name"), HFSB_LIT(""));
            T_CHECK(hfsb_tools_has(name) && base_of(name));
            T_CHECK(
                hfsb_json_str(hfsb_json_get(d, "description"), HFSB_LIT(""))
                    .len > 20);
            check_schema(hfsb_json_get(d, schema_keys[f]));
            T_CHECK((hfsb_json_get(d, "annotations") != NULL) ==
                    (format == HFSB_TOOLS_MCP));
            T_CHECK((hfsb_json_get(d, "title") != NULL) ==
                    (format == HFSB_TOOLS_MCP));
            for (other = hfsb_json_begin(doc.root); hfsb_json_next(&other);) {
                const hfsb_json_value *o = other.value;
                if (format == HFSB_TOOLS_OPENAI)
                    o = hfsb_json_get(o, "function");
                same += hfsb_str_equal(
                    name,
                    hfsb_json_str(hfsb_json_get(o, "name"), HFSB_LIT("")));
            }
            T_CHECK(same == 1);
        }
        hfsb_json_free(&doc);
        hfsb_buf_free(&out);
        hfsb_buf_free(&compact);
    }
    {
        hfsb_tools_format format;
        T_CHECK(!hfsb_tools_format_find(HFSB_LIT("OpenAI"), &format));
        T_CHECK(!hfsb_tools_format_find(HFSB_LIT(""), &format));
        T_CHECK(!hfsb_tools_has(HFSB_LIT("Bash")));
        T_CHECK(!hfsb_tools_has(HFSB_LIT("")));
    }
}

static void one_definition_is_an_item_of_all(void) {
    int f;
    for (f = 0; f < 4; f++) {
        hfsb_tools_format format = (hfsb_tools_format)f;
        hfsb_buf          all = HFSB_INIT, joined = HFSB_INIT;
        hfsb_err          err;
        size_t            i;
        for (i = 0; i < HFSBI_TOOLS; i++) {
            if (hfsbi_tool_at(i)->flags & HFSBI_TOOL_ON_REQUEST) continue;
            T_CHECK(hfsb_buf_append_byte(&joined, i ? ',' : '[') == HFSB_OK);
            T_CHECK(hfsb_tools_define_one(hfsb_cstr(hfsbi_tool_at(i)->name),
                                          format, &joined, &err) == HFSB_OK);
        }
        T_CHECK(hfsb_buf_append_byte(&joined, ']') == HFSB_OK);
        T_CHECK(hfsb_tools_define(format, &all, NULL) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&all), hfsb_buf_str(&joined)));
        hfsb_buf_free(&all);
        hfsb_buf_free(&joined);
    }
}

/* Strict mode: all properties are required, those that need not be given may be
   null, and nothing is open. */
static void check_strict(const hfsb_json_value *schema) {
    const hfsb_json_value *all = hfsb_json_get(schema, "properties");
    hfsb_json_iter         it = hfsb_json_begin(all);
    T_CHECK(!hfsb_json_bool(hfsb_json_get(schema, "additionalProperties"),
                            true));
    T_CHECK(hfsb_json_count(all) > 0);
    T_CHECK(hfsb_json_count(all) ==
            hfsb_json_count(hfsb_json_get(schema, "required")));
    while (hfsb_json_next(&it)) {
        const hfsb_json_value *type = hfsb_json_get(it.value, "type");
        T_CHECK(in_list(hfsb_json_get(schema, "required"), it.key));
        T_CHECK(hfsb_json_type_of(type) == HFSB_JSON_STRING ||
                (hfsb_json_count(type) == 2 &&
                 in_list(type, HFSB_LIT("null"))));
        if (hfsb_json_get(it.value, "enum") &&
            hfsb_json_type_of(type) == HFSB_JSON_ARRAY)
            T_CHECK(hfsb_json_type_of(hfsb_json_at(
                        hfsb_json_get(it.value, "enum"),
                        hfsb_json_count(hfsb_json_get(it.value, "enum")) -
                            1)) == HFSB_JSON_NULL);
        T_CHECK(!hfsb_str_equal(hfsb_json_str(type, HFSB_LIT("")),
                                HFSB_LIT("object")));
        if (hfsb_json_get(hfsb_json_get(it.value, "items"), "properties"))
            check_strict(hfsb_json_get(it.value, "items"));
    }
}

static void strict_definitions_leave_nothing_open(void) {
    hfsb_buf          out = HFSB_INIT;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsb_json_iter    it;
    hfsb_tools_format format = HFSB_TOOLS_FLAT;
    T_CHECK(hfsb_tools_format_find(HFSB_LIT("openai-strict"), &format));
    T_CHECK(format == HFSB_TOOLS_OPENAI_STRICT);
    T_CHECK(hfsb_tools_define(format, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_count(doc.root) == TT_COUNT(bases));
    for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
        const hfsb_json_value *d = hfsb_json_get(it.value, "function");
        T_CHECK(hfsb_json_bool(hfsb_json_get(d, "strict"), false));
        check_strict(hfsb_json_get(d, "parameters"));
    }
    /* null as read's limit is "all", so null is not offered */
    T_CHECK(tt_says(&out, "\"limit\":{\"type\":\"integer\",\"description\":"
                          "\"Lines"));
    T_CHECK(tt_says(&out, "\"offset\":{\"type\":[\"integer\",\"null\"]"));
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

static void tool_on_request_is_defined_alone(void) {
    hfsb_buf      out = HFSB_INIT, all = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    T_CHECK(hfsb_tools_has(HFSB_LIT("edit_lines")));
    T_CHECK(hfsb_tools_define_one(HFSB_LIT("edit_lines"), HFSB_TOOLS_FLAT,
                                  &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    check_schema(hfsb_json_get(doc.root, "parameters"));
    T_CHECK(hfsb_tools_define(HFSB_TOOLS_FLAT, &all, NULL) == HFSB_OK);
    T_CHECK(!tt_says(&all, "edit_lines"));
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
    hfsb_buf_free(&all);
}

static void a_failed_definition_appends_nothing(void) {
    hfsb_buf out = HFSB_INIT;
    hfsb_err err;
    out.max = 100;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("x")) == HFSB_OK);
    T_CHECK(hfsb_tools_define_one(HFSB_LIT("Bash"), HFSB_TOOLS_FLAT, &out,
                                  &err) == HFSB_NOT_FOUND);
    T_CHECK(err.code == HFSB_NOT_FOUND);
    T_CHECK(strcmp(err.msg, "Unknown tool: Bash") == 0);
    T_CHECK(hfsb_tools_define_one(HFSB_LIT("bash"), HFSB_TOOLS_FLAT, &out,
                                  &err) == HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT && err.msg[0]);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), HFSB_LIT("x")));
    hfsb_buf_free(&out);
}

/* Which hints tell a client what may be run without asking. */
static void only_tools_that_change_nothing_say_so(void) {
    static const char *const readers[] = {"bash_output", "read", "glob",
                                          "grep",        "list", "exists"};
    hfsb_buf                 out = HFSB_INIT;
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_json_iter           it;
    size_t                   i, found = 0;
    T_CHECK(hfsb_tools_define(HFSB_TOOLS_MCP, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
        const hfsb_json_value *a = hfsb_json_get(it.value, "annotations");
        bool                   reads = false;
        for (i = 0; i < TT_COUNT(readers); i++)
            reads = reads || hfsb_str_equal(
                                 hfsb_json_str(hfsb_json_get(it.value, "name"),
                                               HFSB_LIT("")),
                                 hfsb_cstr(readers[i]));
        T_CHECK(hfsb_json_bool(hfsb_json_get(a, "readOnlyHint"), !reads) ==
                reads); /* each says so, one way or the other */
        found += reads;
    }
    T_CHECK(found == TT_COUNT(readers));
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

/* ---- every property of every schema ---- */

/* A value of the type that a schema asks for. */
static const char *value_for(const struct base *base, hfsb_str type,
                             hfsb_str key) {
    if (hfsb_str_equal(key, HFSB_LIT("mode")))
        return strcmp(base->tool, "grep") ? "\"replace\"" : "\"count\"";
    if (hfsb_str_equal(key, HFSB_LIT("work_dir"))) return "\"/\"";
    if (hfsb_str_equal(key, HFSB_LIT("id"))) return "\"done\"";
    if (hfsb_str_equal(type, HFSB_LIT("boolean"))) return "false";
    if (hfsb_str_equal(type, HFSB_LIT("integer"))) return "1";
    if (hfsb_str_equal(type, HFSB_LIT("number"))) return "5.5";
    if (hfsb_str_equal(type, HFSB_LIT("object"))) return "{\"A\":\"b\"}";
    if (hfsb_str_equal(type, HFSB_LIT("string"))) return "\"\"";
    return NULL; /* an array: as in the base */
}

typedef void property_fn(const struct base *base, hfsb_str key, hfsb_str type,
                         bool required);

static void each_property(property_fn *fn) {
    hfsb_buf       out = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it, p;
    T_CHECK(hfsb_tools_define(HFSB_TOOLS_FLAT, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
        const hfsb_json_value *s = hfsb_json_get(it.value, "parameters");
        const struct base     *base = base_of(
                hfsb_json_str(hfsb_json_get(it.value, "name"), HFSB_LIT("")));
        if (!base) continue;
        for (p = hfsb_json_begin(hfsb_json_get(s, "properties"));
             hfsb_json_next(&p);)
            fn(base, p.key,
               hfsb_json_str(hfsb_json_get(p.value, "type"), HFSB_LIT("")),
               in_list(hfsb_json_get(s, "required"), p.key));
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

static hfsb_tools *shared;

/* Calls with the key set to value, strictly. */
static void call_with(tt_reply *r, const struct base *base, hfsb_str key,
                      const char *value) {
    hfsb_buf       json = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    opts.strict = true;
    tt_put("file", HFSB_LIT("x\n"));
    with_key(base, key, value, &json);
    tt_do(r, shared, base->tool, hfsb_buf_str(&json), &opts);
    T_CHECK(r->sane);
    hfsb_buf_free(&json);
}

static void complain(const struct base *base, hfsb_str key, const char *value,
                     const tt_reply *r) {
    printf("  %s, %.*s: %s: %s %s\n", base->tool, (int)key.len, key.ptr,
           value ? value : "left out", hfsb_status_text(r->st),
           r->res.error.ptr ? r->res.error.ptr : "");
}

/* The sentence names the key. */
static void check_refusal(const struct base *base, hfsb_str key,
                          const char *value, const tt_reply *r) {
    bool ok = r->st == HFSB_ARG && !r->res.success && r->res.error.len > 0 &&
              hfsb_str_find(hfsb_buf_str(&r->res.error), key) != HFSB_NPOS;
    T_CHECK(ok);
    if (!ok) complain(base, key, value, r);
}

static void a_property_is_accepted(const struct base *base, hfsb_str key,
                                   hfsb_str type, bool required) {
    tt_reply    r = HFSB_INIT;
    const char *value = value_for(base, type, key);
    if (!required && value) {
        if (hfsb_str_equal(key, HFSB_LIT("if_sha256"))) /* of "x\n" */
            value = "\"73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79"
                    "dda2aac7d9ac\"";
        call_with(&r, base, key, value);
        T_CHECK(r.st == HFSB_OK);
        if (r.st != HFSB_OK || !r.res.success) complain(base, key, value, &r);
        T_CHECK(r.res.success);
    }
    call_with(&r, base, HFSB_LIT("?"), NULL); /* only what is required */
    T_CHECK(r.st == HFSB_OK && r.res.success);
    if (!r.res.success) complain(base, key, "base", &r);
    tt_drop(&r);
}

static void what_a_schema_offers_is_taken(void) {
    shared = prepared();
    each_property(a_property_is_accepted);
    hfsb_tools_close(shared);
}

static void a_property_may_be_null(const struct base *base, hfsb_str key,
                                   hfsb_str type, bool required) {
    tt_reply r = HFSB_INIT;
    (void)type;
    if (hfsb_str_equal(key, HFSB_LIT("text"))) return; /* in the base */
    if (hfsb_str_equal(hfsb_cstr(base->tool), HFSB_LIT("kill"))) return;
    call_with(&r, base, key, "null");
    if (required) {
        check_refusal(base, key, "null", &r);
        call_with(&r, base, key, NULL);
        check_refusal(base, key, NULL, &r);
    } else {
        T_CHECK(r.st == HFSB_OK && r.res.success);
        if (!r.res.success) complain(base, key, "null", &r);
    }
    tt_drop(&r);
}

static void null_is_absent_and_required_keys_are_required(void) {
    shared = prepared();
    each_property(a_property_may_be_null);
    hfsb_tools_close(shared);
}

static void a_property_of_a_wrong_type(const struct base *base, hfsb_str key,
                                       hfsb_str type, bool required) {
    static const struct {
        const char *type, *values[6];
    } wrong[] = {
        {"string", {"5", "true", "[\"a\"]", "{\"a\":1}", "1.5", NULL}},
        {"boolean", {"\"perhaps\"", "[]", "{}", "7", "1.5", NULL}},
        {"integer", {"\"one\"", "true", "[1]", "{}", "1.5", "\"\""}},
        {"number", {"\"soon\"", "false", "[1]", "{}", "\"1s\"", "\"\""}},
        {"object", {"\"x\"", "5", "[1]", "true", NULL, NULL}},
        {"array", {"5", "true", "{}", "\"x\"", NULL, NULL}}};
    tt_reply r = HFSB_INIT;
    size_t   i, k;
    (void)required;
    for (i = 0; i < TT_COUNT(wrong); i++)
        for (k = 0; k < 6 && wrong[i].values[k]; k++) {
            if (!hfsb_str_equal(type, hfsb_cstr(wrong[i].type))) continue;
            call_with(&r, base, key, wrong[i].values[k]);
            check_refusal(base, key, wrong[i].values[k], &r);
        }
    tt_drop(&r);
}

static void wrong_types_are_named(void) {
    shared = prepared();
    each_property(a_property_of_a_wrong_type);
    TT_FILE("file", "x\n"); /* nothing ran */
    hfsb_tools_close(shared);
}

static void a_property_given_twice(const struct base *base, hfsb_str key,
                                   hfsb_str type, bool required) {
    hfsb_buf      json = HFSB_INIT, twice = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    tt_reply      r = HFSB_INIT;
    const char   *value = value_for(base, type, key);
    (void)required;
    if (!value) value = "[]";
    with_key(base, key, value, &json);
    T_CHECK(hfsb_buf_printf(&twice, "%.*s,\"%.*s\":%s}", (int)json.len - 1,
                            json.ptr, (int)key.len, key.ptr,
                            value) == HFSB_OK);
    tt_do(&r, shared, base->tool, hfsb_buf_str(&twice), NULL);
    T_CHECK(r.sane);
    check_refusal(base, key, "twice", &r);
    /* the same from a tree that has it twice */
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&twice), NULL, &doc, NULL) ==
            HFSB_OK);
    tt_drop(&r);
    r.st =
        hfsb_tools_call(shared, hfsb_cstr(base->tool), doc.root, NULL, &r.res);
    tt_look(&r);
    T_CHECK(r.sane);
    check_refusal(base, key, "twice, parsed", &r);
    hfsb_json_free(&doc);
    hfsb_buf_free(&json);
    hfsb_buf_free(&twice);
    tt_drop(&r);
}

static void keys_given_twice_are_named(void) {
    shared = prepared();
    each_property(a_property_given_twice);
    hfsb_tools_close(shared);
}

/* ---- arguments that need a second look ---- */

static const struct {
    const char *tool, *json;
    const char *parts[3]; /* of the error */
} argument_cases[] = {
    {"bash", "{}", {"command", "missing", "string"}},
    {"bash", "{\"command\":5}", {"command", "string", "5"}},
    {"bash", "{\"command\":null}", {"command", "string", NULL}},
    {"bash", "{\"command\":\"echo \\u0000\"}", {"command", "NUL", NULL}},
    {"bash", "{\"command\":\"true\",\"timeout\":-1}", {"timeout", "-1", NULL}},
    {"bash",
     "{\"command\":\"true\",\"timeout\":\"soon\"}",
     {"timeout", "number", "soon"}},
    {"bash", "{\"command\":\"true\",\"timeout\":1e999}", {NULL, NULL, NULL}},
    {"bash",
     "{\"command\":\"true\",\"env\":{\"A\":{}}}",
     {"env", "A", "object"}},
    {"bash",
     "{\"command\":\"true\",\"background\":\"perhaps\"}",
     {"background", "true or false", "perhaps"}},
    {"read",
     "{\"path\":\"file\",\"offset\":1.5}",
     {"offset", "integer", "1.5"}},
    {"read",
     "{\"path\":\"file\",\"offset\":99999999999999999999}",
     {"offset", NULL, NULL}},
    {"read",
     "{\"path\":\"file\",\"limit\":\"ten\"}",
     {"limit", "integer", "ten"}},
    {"read", "{\"path\":\"\"}", {NULL, NULL, NULL}},
    {"read", "{\"path\":\"a\\u0000b\"}", {NULL, NULL, NULL}},
    {"write", "{\"path\":\"file\"}", {"content", "missing", "string"}},
    {"write",
     "{\"path\":\"file\",\"content\":{\"a\":1}}",
     {"content", "string", "object"}},
    {"edit",
     "{\"path\":\"file\",\"new_str\":\"y\"}",
     {"old_str", "missing", "string"}},
    {"edit",
     "{\"path\":\"file\",\"old_str\":\"x\"}",
     {"new_str", "missing", "string"}},
    {"multi_edit",
     "{\"path\":\"file\",\"edits\":{\"old_str\":\"x\"}}",
     {"edits", "array", "object"}},
    {"multi_edit",
     "{\"path\":\"file\",\"edits\":[{\"old_str\":\"x\"}]}",
     {"new_str", "missing", NULL}},
    {"multi_edit",
     "{\"path\":\"file\",\"edits\":[{\"old_str\":\"x\",\"new_str\":5}]}",
     {"new_str", "string", "5"}},
    {"multi_edit",
     "{\"path\":\"file\",\"edits\":[{\"old_str\":\"x\",\"new_str\":\"y\","
     "\"new_str\":\"z\"}]}",
     {"new_str", NULL, NULL}},
    {"bash_output", "{\"id\":\"job\",\"offset\":-1}", {"offset", NULL, NULL}},
    {"kill", "{\"id\":5}", {"id", "string", "5"}},
    {"read", "[\"file\"]", {"object", "array", NULL}},
    {"read", "\"file\"", {"object", "string", NULL}},
    {"read", "{\"path\":\"file\"", {NULL, NULL, NULL}},
    {"read", "{path:\"file\"}", {NULL, NULL, NULL}},
};

static void wrong_arguments_say_what_was_expected(void) {
    size_t   i, k;
    tt_reply r = HFSB_INIT;
    shared = prepared();
    for (i = 0; i < TT_COUNT(argument_cases); i++) {
        bool ok;
        tt_do(&r, shared, argument_cases[i].tool,
              hfsb_cstr(argument_cases[i].json), NULL);
        T_CHECK(r.sane);
        ok = !r.res.success;
        for (k = 0; k < 3 && argument_cases[i].parts[k]; k++)
            ok = ok && tt_says(&r.res.error, argument_cases[i].parts[k]);
        T_CHECK(ok);
        if (!ok)
            printf("  %s %s: %s: %s\n", argument_cases[i].tool,
                   argument_cases[i].json, hfsb_status_text(r.st),
                   r.res.error.ptr);
    }
    TT_FILE("file", "x\n");
    tt_drop(&r);
    hfsb_tools_close(shared);
}

static void what_was_meant_is_taken(void) {
    static const struct {
        const char *tool, *json, *output;
    } cases[] = {
        {"bash", "{\"command\":\"echo a\",\"timeout\":\"120\"}", "a\n"},
        {"bash", "{\"command\":\"echo a\",\"timeout\":120.0}", "a\n"},
        {"bash", "{\"command\":\"echo a\",\"background\":\"false\"}", "a\n"},
        {"bash",
         "{\"command\":\"echo a >&2; echo b\",\"merge_stderr\":"
         "\"true\"}",
         "a\nb\n"},
        {"read", "{\"path\":\"three\",\"offset\":\"2\",\"limit\":\"1\"}",
         "2\tb"},
        {"read", "{\"path\":\"three\",\"offset\":2.0,\"limit\":1.0}", "2\tb"},
        {"read", "{\"path\":\"three\",\"offset\":\"-1\"}", "3\tc"},
        {"bash_output",
         "{\"id\":\"done\",\"offset\":\"0\",\"wait_ms\":"
         "\"10\"}",
         ""},
    };
    size_t   i;
    tt_reply r = HFSB_INIT;
    shared = prepared();
    tt_put("three", HFSB_LIT("a\nb\nc\n"));
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_do(&r, shared, cases[i].tool, hfsb_cstr(cases[i].json), NULL);
        T_CHECK(r.sane && r.st == HFSB_OK);
        TT_OK(&r, cases[i].output);
    }
    tt_drop(&r);
    hfsb_tools_close(shared);
}

/* ---- keys that nobody knows, tools that nobody knows ---- */

static void unknown_keys_are_noted_or_refused(void) {
    size_t         i;
    hfsb_call_opts strict = HFSB_INIT;
    tt_reply       r = HFSB_INIT, plain = HFSB_INIT;
    strict.strict = true;
    shared = prepared();
    for (i = 0; i < TT_COUNT(bases); i++) {
        hfsb_buf json = HFSB_INIT;
        with_key(&bases[i], HFSB_LIT("flavour_x"), "7", &json);
        tt_put("file", HFSB_LIT("x\n"));
        tt_do(&r, shared, bases[i].tool, hfsb_buf_str(&json), &strict);
        check_refusal(&bases[i], HFSB_LIT("flavour_x"), "7", &r);
        TT_FILE("file", "x\n");
        tt_do(&r, shared, bases[i].tool, hfsb_buf_str(&json), NULL);
        T_CHECK(r.sane && r.st == HFSB_OK);
        TT_OK(&r, NULL);
        T_CHECK(tt_says(&r.res.output, "flavour_x"));
        tt_put("file", HFSB_LIT("x\n"));
        tt_do(&plain, shared, bases[i].tool, hfsb_cstr(bases[i].json), NULL);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                                hfsb_buf_str(&plain.res.output)) ||
                !strcmp(bases[i].tool, "bash"));
        hfsb_buf_free(&json);
    }
    /* also on the way to a failure */
    tt_call(&r, shared, "bash", "command=s flavour_x=j", "echo o; exit 3",
            "1");
    TT_FAIL(&r, "Exit code 3");
    T_CHECK(tt_says(&r.res.output, "flavour_x") &&
            hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("o\n")));
    /* inside an edit of many */
    tt_put("file", HFSB_LIT("x\n"));
    tt_do(&r, shared, "multi_edit",
          HFSB_LIT("{\"path\":\"file\",\"edits\":[{\"old_str\":\"x\","
                   "\"new_str\":\"y\",\"flavour_x\":1}]}"),
          &strict);
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "flavour_x"));
    TT_FILE("file", "x\n");
    tt_drop(&r);
    tt_drop(&plain);
    hfsb_tools_close(shared);
}

static void unknown_tools_are_named(void) {
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    static const char *const names[] = {"nosuch", "", "Bash", "sandbox_bash"};
    size_t                   i;
    for (i = 0; i < TT_COUNT(names); i++) {
        tt_do(&r, tools, names[i], HFSB_LIT("{}"), NULL);
        T_CHECK(r.sane && r.st == HFSB_NOT_FOUND);
        TT_FAIL(&r, "Unknown tool: ");
        T_CHECK(tt_says(&r.res.error, names[i]));
        T_CHECK(tt_says(&r.res.output, "The tools are: bash, "));
    }
    /* no arguments at all are an empty object */
    tt_drop(&r);
    r.st = hfsb_tools_call(tools, HFSB_LIT("kill"), NULL, NULL, &r.res);
    tt_look(&r);
    T_CHECK(r.sane && r.st == HFSB_OK);
    TT_OK(&r, "Killed 0 process(es): []");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void results_read_well(void) {
    static const struct {
        const char *command, *text;
    } cases[] = {{"true", "(no output)"},
                 {"echo a", "a\n"},
                 {"exit 3", "ERROR: Exit code 3"},
                 {"echo a; exit 3", "a\n\n\nERROR: Exit code 3"},
                 {"printf a; exit 3", "a\n\nERROR: Exit code 3"}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_buf text = HFSB_INIT;
        tt_call(&r, tools, "bash", "command=s", cases[i].command);
        T_CHECK(hfsb_tool_result_text(&r.res, &text) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(cases[i].text)));
        if (!hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(cases[i].text)))
            printf("  %s: \"%s\"\n", cases[i].command, text.ptr);
        hfsb_buf_free(&text);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A view of no bytes is none, whatever its length. */
static void ids_without_bytes_are_absent(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    opts.id.len = opts.key.len = 7;
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo a\"}"), &opts);
    TT_OK(&r, "a\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

typedef struct two_lists {
    const hfsb_json_value *a, *b;
} two_lists;

static void more_lists_than_documents_are_refused(void) {
    static const hfsbi_param items[] = {HFSBI_PARAM_END};
    static const hfsbi_param params[] = {
        HFSBI_PARAM_LIST("a", 0, two_lists, a, items),
        HFSBI_PARAM_LIST("b", 0, two_lists, b, items), HFSBI_PARAM_END};
    hfsb_json_doc  doc = HFSB_INIT, parsed[2];
    hfsbi_args_how how = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    two_lists      out;
    memset(parsed, 0, sizeof parsed);
    how.parsed = parsed;
    how.parsed_count = 1;
    T_CHECK(hfsb_json_parse(HFSB_LIT("{\"a\":\"[]\",\"b\":\"[]\"}"), NULL,
                            &doc, NULL) == HFSB_OK);
    T_CHECK(hfsbi_args_read(params, doc.root, &how, &out, &err) == HFSB_LIMIT);
    T_STR(hfsb_cstr(err.msg),
          "At most 1 parameters may be objects or lists.");
    T_CHECK(!parsed[1].root);
    hfsb_json_free(&parsed[0]);
    memset(parsed, 0, sizeof parsed);
    how.parsed_count = 2;
    T_CHECK(hfsbi_args_read(params, doc.root, &how, &out, &err) == HFSB_OK);
    T_CHECK(parsed[1].root != NULL);
    hfsb_json_free(&parsed[0]);
    hfsb_json_free(&parsed[1]);
    hfsb_json_free(&doc);
}

int main(void) {
    tt_begin();
    TT_RUN(ids_without_bytes_are_absent);
    TT_RUN(more_lists_than_documents_are_refused);
    TT_RUN(definitions_are_short_and_whole);
    TT_RUN(one_definition_is_an_item_of_all);
    TT_RUN(strict_definitions_leave_nothing_open);
    TT_RUN(tool_on_request_is_defined_alone);
    TT_RUN(a_failed_definition_appends_nothing);
    TT_RUN(only_tools_that_change_nothing_say_so);
    TT_RUN(what_a_schema_offers_is_taken);
    TT_RUN(null_is_absent_and_required_keys_are_required);
    TT_RUN(wrong_types_are_named);
    TT_RUN(keys_given_twice_are_named);
    TT_RUN(wrong_arguments_say_what_was_expected);
    TT_RUN(what_was_meant_is_taken);
    TT_RUN(unknown_keys_are_noted_or_refused);
    TT_RUN(unknown_tools_are_named);
    TT_RUN(results_read_well);
    return TT_END();
}
