/* list.c - the tools and the instructions that clients are offered.

   The list is made before the server serves and never changes afterwards, so
   calls may point into it. It has two parts, in this order:

       built_in   pointers into one document with the definitions of all
                  built-in tools, local or remote; options choose among them,
                  by their names or by the name of a set
       own        tools of the program: a definition and a function

   Each name occurs once. tools/list sends `text`, which is printed whenever
   the list changes. Descriptions name other tools only if they are offered: a
   model would call them. */
#include "mcp_private.h"

/* ---- definitions ---- */

static hfsb_str hfsbi_mcp_tool_name(const hfsb_json_value *definition) {
    return hfsbi_json_get_str(definition, "name");
}

/* True when a tool changes nothing. bash_output counts as changing: without
   bash it has nothing to show. */
static bool hfsbi_mcp_only_reads(const hfsb_json_value *definition) {
    const hfsb_json_value *hints = hfsb_json_get(definition, "annotations");
    return !hfsb_str_equal(hfsbi_mcp_tool_name(definition),
                           HFSB_LIT("bash_output")) &&
           hfsb_json_bool(hfsb_json_get(hints, "readOnlyHint"), false);
}

HFSBI_FN bool hfsbi_mcp_list_find(const hfsbi_mcp_list *list, hfsb_str name,
                                  const hfsbi_mcp_tool **own) {
    size_t i;
    if (own) *own = NULL;
    for (i = 0; i < list->built_in_count; i++)
        if (hfsb_str_equal(hfsbi_mcp_tool_name(list->built_in[i]), name))
            return true;
    for (i = 0; i < list->own_count; i++) {
        const hfsbi_mcp_tool *tool = &list->own[i];
        if (!hfsb_str_equal(hfsbi_mcp_tool_name(tool->definition.root), name))
            continue;
        if (own) *own = tool;
        return true;
    }
    return false;
}

/* Replaces the first `words` in *text. */
static void hfsbi_mcp_reword(hfsb_buf *text, const char *words, hfsb_str by) {
    hfsb_buf rest = HFSB_INIT;
    size_t   at = hfsb_str_find(hfsb_buf_str(text), hfsb_cstr(words));
    if (at == HFSB_NPOS || text->status != HFSB_OK) return;
    rest.alloc = text->alloc;
    hfsb_buf_append(&rest, hfsb_str_slice(hfsb_buf_str(text),
                                          at + strlen(words), text->len));
    hfsb_buf_truncate(text, at);
    hfsb_buf_append(text, by);
    hfsb_buf_append(text, hfsb_buf_str(&rest));
    if (rest.status != HFSB_OK) text->status = rest.status;
    hfsb_buf_free(&rest);
}

static bool hfsbi_mcp_list_has(const hfsbi_mcp_list *list, const char *name) {
    return hfsbi_mcp_list_find(list, hfsb_cstr(name), NULL);
}

#define HFSBI_MCP_FILE_TOOLS "read, write, edit, glob, grep, list"

/* Fits the description of bash to the tools on offer. */
static void hfsbi_mcp_fit_bash(const hfsbi_mcp_list *list, hfsb_buf *text) {
    static const char *const names[] = {"read", "write", "edit", "apply_patch",
                                        "glob", "grep",  "list"};
    bool                     edits = hfsbi_mcp_list_has(list, "edit");
    hfsb_buf                 files = HFSB_INIT;
    size_t                   i;
    files.alloc = text->alloc;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!hfsbi_mcp_list_has(list, names[i]) || (i == 3 && edits)) continue;
        if (files.len) hfsb_buf_append(&files, HFSB_LIT(", "));
        hfsb_buf_append(&files, hfsb_cstr(names[i]));
    }
    if (files.len)
        hfsbi_mcp_reword(text, HFSBI_MCP_FILE_TOOLS, hfsb_buf_str(&files));
    else
        hfsbi_mcp_reword(text,
                         " For files prefer " HFSBI_MCP_FILE_TOOLS
                         " over cat, echo, sed, find, grep, ls.",
                         HFSB_LIT(""));
    if (!hfsbi_mcp_list_has(list, "bash_output"))
        hfsbi_mcp_reword(text, ", then bash_output", HFSB_LIT(""));
    if (files.status != HFSB_OK) text->status = files.status;
    hfsb_buf_free(&files);
}

/* Fits the description of write: it advises edit. */
static void hfsbi_mcp_fit_write(const hfsbi_mcp_list *list, hfsb_buf *text) {
    if (hfsbi_mcp_list_has(list, "edit")) return;
    if (hfsbi_mcp_list_has(list, "apply_patch"))
        hfsbi_mcp_reword(text, "prefer edit", HFSB_LIT("prefer apply_patch"));
    else
        hfsbi_mcp_reword(text, ", and prefer edit to change parts",
                         HFSB_LIT(""));
}

/* Prints the definition of a built-in tool. */
static void hfsbi_mcp_put_definition(const hfsbi_mcp_list  *list,
                                     const hfsb_json_value *definition,
                                     hfsb_json_writer      *w) {
    hfsb_str       name = hfsbi_mcp_tool_name(definition);
    hfsb_json_iter it = hfsb_json_begin(definition);
    hfsb_buf       text = HFSB_INIT;
    text.alloc = list->alloc;
    hfsb_json_put_object(w);
    while (hfsb_json_next(&it)) {
        hfsb_json_put_key(w, it.key);
        if (!hfsb_str_equal(it.key, HFSB_LIT("description"))) {
            hfsb_json_put_value(w, it.value);
            continue;
        }
        hfsb_buf_append(&text, hfsb_json_str(it.value, HFSB_LIT("")));
        if (hfsb_str_equal(name, HFSB_LIT("bash")))
            hfsbi_mcp_fit_bash(list, &text);
        if (hfsb_str_equal(name, HFSB_LIT("write")))
            hfsbi_mcp_fit_write(list, &text);
        hfsb_json_put_str(w, hfsb_buf_str(&text));
    }
    hfsb_json_put_end(w);
    if (text.status != HFSB_OK) w->out->status = text.status;
    hfsb_buf_free(&text);
}

/* Prints the list into its text. HFSB_OK; or HFSB_NOMEM with the old text and
   *err. */
static hfsb_status hfsbi_mcp_list_print(hfsbi_mcp_list *list, hfsb_err *err) {
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    size_t           i;
    text.alloc = list->alloc;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_array(&w);
    for (i = 0; i < list->built_in_count; i++)
        hfsbi_mcp_put_definition(list, list->built_in[i], &w);
    for (i = 0; i < list->own_count; i++)
        hfsb_json_put_value(&w, list->own[i].definition.root);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) {
        hfsb_buf_free(&text);
        return hfsbi_fail_status(err, HFSB_NOMEM, "The list of tools");
    }
    hfsb_buf_free(&list->text);
    list->text = text;
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_mcp_list_free(hfsbi_mcp_list *list) {
    size_t i;
    for (i = 0; i < list->own_count; i++)
        hfsb_json_free(&list->own[i].definition);
    if (list->own)
        hfsbi_array_free(&list->alloc, list->own, list->own_cap,
                         sizeof *list->own);
    if (list->built_in)
        hfsbi_array_free(&list->alloc, (void *)list->built_in,
                         hfsb_json_count(list->doc.root),
                         sizeof *list->built_in);
    hfsb_json_free(&list->doc);
    hfsb_buf_free(&list->text);
}

/* ---- choosing built-in tools ---- */

/* Sets of tools that suit a family of models. Claude and most others edit by
   replacing text; GPT models are trained to write patches; small models choose
   better among few tools. A tool that does not exist is left out: some exist
   only on a Space, others only with checkpoints. */
static const struct {
    const char *name, *tools;
} hfsbi_mcp_sets[] = {
    {"claude", "bash,bash_output,bash_input,kill,read,write,edit,multi_edit,"
               "glob,grep,list,plan_tool,sandbox_create,hf_jobs,undo,changes,"
               "checkpoint,checkpoints"},
    {"gpt", "bash,bash_output,bash_input,kill,read,write,apply_patch,glob,"
            "grep,list,plan_tool,sandbox_create,hf_jobs,undo,changes,"
            "checkpoint,checkpoints"},
    {"small", "bash,bash_output,kill,read,write,edit,undo"}};

enum { HFSBI_MCP_SETS = sizeof hfsbi_mcp_sets / sizeof *hfsbi_mcp_sets };

/* Returns the tools of the set of that name; "" if not found. */
static hfsb_str hfsbi_mcp_set(hfsb_str name) {
    size_t i;
    for (i = 0; i < HFSBI_MCP_SETS; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_mcp_sets[i].name)))
            return hfsb_cstr(hfsbi_mcp_sets[i].tools);
    return HFSB_LIT("");
}

/* True for a tool that is offered only when it is named. exists is one: read
   reports the same and more, and each definition costs tokens in every request
   of a model. */
static bool hfsbi_mcp_on_request(hfsb_str name) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    return hfsb_str_equal(name, HFSB_LIT("exists")) ||
           (tool && (tool->flags & HFSBI_TOOL_ON_REQUEST) &&
            !(tool->flags & HFSBI_TOOL_HISTORY)); /* requested by an option */
}

HFSBI_FN hfsb_status hfsbi_mcp_define_requested(bool history, hfsb_buf *all,
                                                hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    hfsb_buf_truncate(all, all->len - 1);
    for (i = 0; st == HFSB_OK && i < HFSBI_TOOLS; i++) {
        const hfsbi_tool *tool = hfsbi_tool_at(i);
        if (!(tool->flags & HFSBI_TOOL_ON_REQUEST)) continue;
        if (tool->flags & HFSBI_TOOL_HISTORY && !history) continue;
        hfsb_buf_append_byte(all, ',');
        st = hfsb_tools_define_one(hfsb_cstr(tool->name), HFSB_TOOLS_MCP, all,
                                   err);
    }
    if (st == HFSB_OK) st = hfsb_buf_append_byte(all, ']');
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Tool definitions");
}

static hfsb_status hfsbi_mcp_no_tool(const hfsb_json_value *all, hfsb_str name,
                                     hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(all);
    const char    *before = "\". There are: ";
    size_t         i;
    hfsbi_fail(err, HFSB_ARG, 0, "There is no tool \"");
    hfsbi_err_quote(err, name, 64);
    while (hfsb_json_next(&it)) {
        hfsbi_err_add(err, "%s", before);
        hfsbi_err_quote(err, hfsbi_mcp_tool_name(it.value), 64);
        before = ", ";
    }
    before = "; and the sets ";
    for (i = 0; i < HFSBI_MCP_SETS; i++) {
        hfsbi_err_add(err, "%s%s", before, hfsbi_mcp_sets[i].name);
        before = ", ";
    }
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

/* Checks that every name in `only` may be offered, or is that of a set. *any:
   there are names. */
static hfsb_status hfsbi_mcp_check_names(const hfsbi_mcp_list  *list,
                                         const hfsb_json_value *all,
                                         hfsb_str only, bool *any,
                                         hfsb_err *err) {
    hfsb_str name;
    *any = false;
    while (hfsbi_list_next(&only, ',', &name)) {
        hfsb_json_iter it = hfsb_json_begin(all);
        bool           found = false;
        name = hfsbi_trim(name);
        if (!name.len) continue;
        *any = true;
        if (hfsbi_mcp_set(name).len) continue;
        while (!found && hfsb_json_next(&it))
            found = hfsb_str_equal(hfsbi_mcp_tool_name(it.value), name);
        if (!found) return hfsbi_mcp_no_tool(all, name, err);
        if (!list->read_only || hfsbi_mcp_only_reads(it.value)) continue;
        hfsbi_fail(err, HFSB_ARG, 0, "The tool \"");
        hfsbi_err_quote(err, name, 64);
        hfsbi_err_add(err, "\" is not read-only: leave it out, or do not ask "
                           "for read-only tools.");
        return HFSB_ARG;
    }
    return HFSB_OK;
}

/* True when `only` contains the name, or a set that contains it. */
static bool hfsbi_mcp_is_named(hfsb_str only, hfsb_str name) {
    hfsb_str one, set, tool;
    while (hfsbi_list_next(&only, ',', &one)) {
        one = hfsbi_trim(one);
        if (hfsb_str_equal(one, name)) return true;
        set = hfsbi_mcp_set(one);
        while (hfsbi_list_next(&set, ',', &tool))
            if (hfsb_str_equal(tool, name)) return true;
    }
    return false;
}

/* Fills next->built_in from next->doc. */
static hfsb_status hfsbi_mcp_pick(const hfsbi_mcp_list *list, hfsb_str only,
                                  bool any, hfsbi_mcp_list *next,
                                  hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(next->doc.root);
    size_t         i;
    while (hfsb_json_next(&it)) {
        hfsb_str name = hfsbi_mcp_tool_name(it.value);
        bool     wanted =
            any ? hfsbi_mcp_is_named(only, name) : !hfsbi_mcp_on_request(name);
        if (wanted && (!list->read_only || hfsbi_mcp_only_reads(it.value)))
            next->built_in[next->built_in_count++] = it.value;
    }
    for (i = 0; i < list->own_count; i++) {
        hfsb_str name = hfsbi_mcp_tool_name(list->own[i].definition.root);
        if (hfsbi_mcp_list_find(next, name, NULL))
            return hfsbi_fail(err, HFSB_ARG, 0,
                              "There is a tool \"%.*s\" already.",
                              (int)name.len, name.ptr);
    }
    return HFSB_OK;
}

/* Swaps the built-in tools of two lists. */
static void hfsbi_mcp_list_swap(hfsbi_mcp_list *a, hfsbi_mcp_list *b) {
    hfsbi_mcp_list old = *a;
    a->doc = b->doc;
    a->built_in = b->built_in;
    a->built_in_count = b->built_in_count;
    b->doc = old.doc;
    b->built_in = old.built_in;
    b->built_in_count = old.built_in_count;
}

HFSBI_FN hfsb_status hfsbi_mcp_list_choose(hfsbi_mcp_list *list, hfsb_str all,
                                           hfsb_str only, hfsb_err *err) {
    hfsbi_mcp_list next = HFSB_INIT;
    hfsb_status    st;
    bool           any = false;
    next.alloc = next.doc.alloc = list->alloc;
    st = hfsb_json_parse(all, NULL, &next.doc, err);
    if (st != HFSB_OK) return st;
    next.built_in = (const hfsb_json_value **)hfsbi_array(
        &next.alloc, hfsb_json_count(next.doc.root), sizeof *next.built_in);
    st = next.built_in
             ? hfsbi_mcp_check_names(list, next.doc.root, only, &any, err)
             : hfsbi_fail_status(err, HFSB_NOMEM, "The list of tools");
    if (st == HFSB_OK) st = hfsbi_mcp_pick(list, only, any, &next, err);
    if (st == HFSB_OK) {
        hfsbi_mcp_list_swap(list, &next);
        st = hfsbi_mcp_list_print(list, err);
        if (st != HFSB_OK) hfsbi_mcp_list_swap(list, &next);
    }
    hfsbi_mcp_list_free(&next);
    return st;
}

/* ---- tools of the program ---- */

static hfsb_status hfsbi_mcp_check_name(const hfsbi_mcp_list *list,
                                        const char *name, hfsb_err *err) {
    size_t n = 0;
    while (name && (hfsbi_is_word_char(name[n]) || name[n] == '-')) n++;
    if (!name || name[n] || n == 0 || n > 64) {
        hfsbi_fail(err, HFSB_ARG, 0,
                   "The name of a tool must have 1 to 64 letters, digits, _ "
                   "and -, not \"");
        hfsbi_err_quote(err, hfsb_cstr(name), 80);
        hfsbi_err_add(err, "\".");
        return HFSB_ARG;
    }
    if (!hfsbi_mcp_list_find(list, hfsb_cstr(name), NULL)) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0, "There is a tool \"%s\" already.",
                      name);
}

/* Parses a text of the program that must be a JSON object. */
static hfsb_status hfsbi_mcp_read_object(const char *tool, const char *what,
                                         const char *text, hfsb_json_doc *doc,
                                         hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = hfsb_json_parse(hfsb_cstr(text), NULL, doc, &why);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "Adding a tool");
    if (st != HFSB_OK)
        return hfsbi_fail(err, HFSB_ARG, 0, "The %s of \"%s\": %s", what, tool,
                          why.msg);
    if (hfsb_json_type_of(doc->root) == HFSB_JSON_OBJECT) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "The %s of \"%s\" must be a JSON object, not %s.", what,
                      tool, hfsb_json_type_name(hfsb_json_type_of(doc->root)));
}

/* Reads schema and annotations. Hosts drop a server when the type of one of
   its schemas is not "object". */
static hfsb_status hfsbi_mcp_read_tool(const hfsb_mcp_tool *tool,
                                       hfsb_json_doc       *schema,
                                       hfsb_json_doc *hints, hfsb_err *err) {
    static const char nothing[] = "{\"type\":\"object\",\"properties\":{},"
                                  "\"additionalProperties\":false}";
    const char       *text = tool->schema ? tool->schema : nothing;
    hfsb_status       st =
        hfsbi_mcp_read_object(tool->name, "schema", text, schema, err);
    hfsb_str type = hfsbi_json_get_str(schema->root, "type");
    if (st != HFSB_OK) return st;
    if (!hfsb_str_equal(type, HFSB_LIT("object")))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The schema of \"%s\" must have \"type\": "
                          "\"object\".",
                          tool->name);
    return hfsbi_mcp_read_object(
        tool->name, "annotations",
        tool->annotations ? tool->annotations : "{\"readOnlyHint\":false}",
        hints, err);
}

/* Writes the definition and parses it into *out, which then owns a copy of all
   texts. HFSB_OK, HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_define(const hfsb_mcp_tool   *tool,
                                    const hfsb_json_value *schema,
                                    const hfsb_json_value *hints,
                                    hfsb_json_doc         *out) {
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    text.alloc = out->alloc;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_str(&w, "name", hfsb_cstr(tool->name));
    if (tool->title) hfsb_json_put_member_str(&w, "title", hfsb_cstr(tool->title));
    if (tool->description)
        hfsb_json_put_member_str(&w, "description", hfsb_cstr(tool->description));
    hfsb_json_put_key(&w, HFSB_LIT("inputSchema"));
    hfsb_json_put_value(&w, schema);
    hfsb_json_put_key(&w, HFSB_LIT("annotations"));
    hfsb_json_put_value(&w, hints);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK)
        st = hfsb_json_parse(hfsb_buf_str(&text), NULL, out, NULL);
    hfsb_buf_free(&text);
    return st;
}

/* Appends a checked tool to the list. HFSB_OK; HFSB_NOMEM with *err. */
static hfsb_status hfsbi_mcp_list_append(hfsbi_mcp_list        *list,
                                         const hfsb_mcp_tool   *tool,
                                         const hfsb_json_value *schema,
                                         const hfsb_json_value *hints,
                                         hfsb_err              *err) {
    hfsbi_mcp_tool  copy = HFSB_INIT;
    hfsb_status     st;
    hfsbi_mcp_tool *grown = (hfsbi_mcp_tool *)hfsbi_array_grow(
        &list->alloc, list->own, &list->own_cap, list->own_count + 1,
        sizeof *grown);
    if (!grown) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a tool");
    list->own = grown;
    copy.fn = tool->fn;
    copy.user = tool->user;
    copy.definition.alloc = list->alloc;
    st = hfsbi_mcp_define(tool, schema, hints, &copy.definition);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Adding a tool");
    if (list->read_only && !hfsbi_mcp_only_reads(copy.definition.root)) {
        hfsb_json_free(&copy.definition);
        return hfsbi_ok(err);
    }
    list->own[list->own_count++] = copy;
    st = hfsbi_mcp_list_print(list, err);
    if (st != HFSB_OK)
        hfsb_json_free(&list->own[--list->own_count].definition);
    return st;
}

HFSBI_FN hfsb_status hfsbi_mcp_list_add(hfsbi_mcp_list      *list,
                                        const hfsb_mcp_tool *tool,
                                        hfsb_err            *err) {
    hfsb_json_doc schema = HFSB_INIT, hints = HFSB_INIT;
    hfsb_status   st = hfsbi_mcp_check_name(list, tool->name, err);
    if (st != HFSB_OK) return st;
    schema.alloc = hints.alloc = list->alloc;
    st = hfsbi_mcp_read_tool(tool, &schema, &hints, err);
    if (st == HFSB_OK)
        st = hfsbi_mcp_list_append(list, tool, schema.root, hints.root, err);
    hfsb_json_free(&schema);
    hfsb_json_free(&hints);
    return st;
}

/* ---- of the object ---- */

HFSBI_FN hfsb_status hfsbi_mcp_instruct(hfsb_mcp *mcp, hfsb_str ours) {
    hfsb_buf *out = &mcp->about.instructions;
    hfsb_buf_truncate(out, 0);
    hfsb_buf_append(out, ours);
    if (ours.len && mcp->instructions.len) hfsb_buf_append_byte(out, '\n');
    hfsb_buf_append(out, hfsb_buf_str(&mcp->instructions));
    return hfsb_buf_finish(out, 0);
}

hfsb_status hfsb_mcp_add_tool(hfsb_mcp *mcp, const hfsb_mcp_tool *tool,
                              hfsb_err *err) {
    if (!tool->name || !tool->fn)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A tool must have a name and a function.");
    return hfsbi_mcp_list_add(&mcp->list, tool, err);
}
