/* list.c - tools of the program's own over MCP: added, and what
   their functions say. */
#include "mcp_private.h"

/* ==== server mcp list ==== */

/* the tools that a server of MCP offers. */

/* ---- names ---- */

/* Takes the next name off a list with commas; false at its end. */
static bool hfsbi_mcp_next_name(hfsb_str *rest, hfsb_str *name) {
    while (rest->len) {
        size_t end = hfsb_str_find_byte(*rest, ',');
        *name = hfsbi_trim(hfsb_str_slice(*rest, 0, end));
        *rest = end == HFSB_NPOS ? HFSB_LIT("")
                                 : hfsb_str_slice(*rest, end + 1, rest->len);
        if (name->len) return true;
    }
    return false;
}

static hfsb_str hfsbi_mcp_tool_name(const hfsb_json_value *tool) {
    return hfsb_json_str(hfsb_json_get(tool, "name"), HFSB_LIT(""));
}

static const hfsb_json_value *hfsbi_mcp_find_tool(const hfsb_json_value *all,
                                                  hfsb_str name) {
    hfsb_json_iter it = hfsb_json_begin(all);
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(hfsbi_mcp_tool_name(it.value), name))
            return it.value;
    return NULL;
}

/* It changes nothing. bash_output counts as one that does: without bash there
   is nothing it could show. */
static bool hfsbi_mcp_only_reads(const hfsb_json_value *tool) {
    return !hfsb_str_equal(hfsbi_mcp_tool_name(tool),
                           HFSB_LIT("bash_output")) &&
           hfsb_json_bool(hfsb_json_get(hfsb_json_get(tool, "annotations"),
                                        "readOnlyHint"),
                          false);
}

static hfsb_status hfsbi_mcp_no_tool(const hfsb_json_value *all, hfsb_str name,
                                     hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(all);
    const char    *before = "\". There are: ";
    hfsbi_fail(err, HFSB_ARG, 0, "There is no tool \"");
    hfsbi_err_quote(err, name, 64);
    while (hfsb_json_next(&it)) {
        hfsbi_err_add(err, "%s", before);
        hfsbi_err_quote(err, hfsbi_mcp_tool_name(it.value), 64);
        before = ", ";
    }
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

/* Every name that was asked for is one that may be offered. */
static hfsb_status hfsbi_mcp_check_names(const hfsb_json_value  *all,
                                         const hfsbi_mcp_choice *choice,
                                         hfsb_err               *err) {
    hfsb_str only = choice->only, name;
    while (hfsbi_mcp_next_name(&only, &name)) {
        const hfsb_json_value *tool = hfsbi_mcp_find_tool(all, name);
        if (!tool) return hfsbi_mcp_no_tool(all, name, err);
        if (!choice->read_only || hfsbi_mcp_only_reads(tool)) continue;
        hfsbi_fail(err, HFSB_ARG, 0, "The tool \"");
        hfsbi_err_quote(err, name, 64);
        hfsbi_err_add(err, "\" is not one of those that only read: leave it "
                           "out, or do not ask for read-only tools.");
        return HFSB_ARG;
    }
    return HFSB_OK;
}

/* Without a list of names, all but exists: read says the same and more, and
   every definition is paid for in each request of a model. */
static bool hfsbi_mcp_chosen(const hfsb_json_value  *tool,
                             const hfsbi_mcp_choice *choice) {
    hfsb_str name = hfsbi_mcp_tool_name(tool), rest = choice->only, one;
    bool     named = false, any = false;
    while (hfsbi_mcp_next_name(&rest, &one)) {
        any = true;
        named = named || hfsb_str_equal(one, name);
    }
    if (any ? !named : hfsb_str_equal(name, HFSB_LIT("exists"))) return false;
    return !choice->read_only || hfsbi_mcp_only_reads(tool);
}

/* ---- the list ---- */

/* Puts `more`, definitions each with a comma before it, at the end of *list.
   Nothing has changed when it fails. */
static hfsb_status hfsbi_mcp_join(hfsb_buf *list, hfsb_str more) {
    bool        first = list->len <= 2; /* "" or "[]" */
    size_t      mark;
    hfsb_status st = hfsb_buf_reserve(list, more.len + 2);
    if (st != HFSB_OK) return st;
    hfsb_buf_truncate(list, first ? 0 : list->len - 1);
    mark = list->len;
    if (first) hfsb_buf_append_byte(list, '[');
    hfsb_buf_append(list, hfsb_str_slice(more, first ? 1 : 0, more.len));
    hfsb_buf_append_byte(list, ']');
    return hfsb_buf_finish(list, mark);
}

static hfsb_status hfsbi_mcp_pick(const hfsb_json_value  *all,
                                  const hfsbi_mcp_choice *choice,
                                  hfsb_buf *list, hfsb_err *err) {
    hfsb_buf       more = HFSB_INIT;
    hfsb_json_iter it = hfsb_json_begin(all);
    hfsb_status    st = HFSB_OK;
    more.alloc = list->alloc;
    while (st == HFSB_OK && hfsb_json_next(&it)) {
        if (!hfsbi_mcp_chosen(it.value, choice)) continue;
        st = hfsb_buf_append_byte(&more, ',');
        if (st == HFSB_OK) st = hfsb_json_write(it.value, NULL, &more, NULL);
    }
    if (st == HFSB_OK) st = hfsbi_mcp_join(list, hfsb_buf_str(&more));
    hfsb_buf_free(&more);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "The list of tools");
}

HFSBI_FN hfsb_status hfsbi_mcp_choose(hfsb_str                all,
                                      const hfsbi_mcp_choice *choice,
                                      hfsb_buf *list, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    doc.alloc = list->alloc;
    st = hfsb_json_parse(all, NULL, &doc, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_mcp_check_names(doc.root, choice, err);
    if (st == HFSB_OK) st = hfsbi_mcp_pick(doc.root, choice, list, err);
    hfsb_json_free(&doc);
    return st;
}

/* ---- tools of the program's own ---- */

static hfsb_status hfsbi_mcp_check_name(const char *name, hfsb_str list,
                                        hfsb_err *err) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t            n = name ? strlen(name) : 0, good = 0;
    while (good < n && strchr(allowed, name[good])) good++;
    if (n == 0 || n > 64 || good < n) {
        hfsbi_fail(err, HFSB_ARG, 0,
                   "The name of a tool must have 1 to 64 letters, digits, _ "
                   "and -, not \"");
        hfsbi_err_quote(err, hfsb_cstr(name), 80);
        hfsbi_err_add(err, "\".");
        return HFSB_ARG;
    }
    if (!hfsbi_mcp_lists(list, hfsb_cstr(name))) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0, "There is a tool \"%s\" already.",
                      name);
}

/* Parses a text of the program's that must be a JSON object. */
static hfsb_status hfsbi_mcp_read_object(const char *tool, const char *what,
                                         const char *text, hfsb_json_doc *doc,
                                         hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = hfsb_json_parse(hfsb_cstr(text), NULL, doc, &why);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "A tool");
    if (st != HFSB_OK)
        return hfsbi_fail(err, HFSB_ARG, 0, "The %s of \"%s\": %s", what, tool,
                          why.msg);
    if (hfsb_json_type_of(doc->root) == HFSB_JSON_OBJECT) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "The %s of \"%s\" must be a JSON object, not %s.", what,
                      tool, hfsb_json_type_name(hfsb_json_type_of(doc->root)));
}

static void hfsbi_mcp_write_tool(const hfsb_mcp_tool   *tool,
                                 const hfsb_json_value *schema,
                                 const hfsb_json_value *hints,
                                 hfsb_json_writer      *w) {
    hfsb_json_put_object(w);
    hfsbi_put_member_str(w, "name", hfsb_cstr(tool->name));
    if (tool->title) hfsbi_put_member_str(w, "title", hfsb_cstr(tool->title));
    if (tool->description)
        hfsbi_put_member_str(w, "description", hfsb_cstr(tool->description));
    hfsb_json_put_key(w, HFSB_LIT("inputSchema"));
    hfsb_json_put_value(w, schema);
    hfsb_json_put_key(w, HFSB_LIT("annotations"));
    hfsb_json_put_value(w, hints);
    hfsb_json_put_end(w);
}

static hfsb_status hfsbi_mcp_add_definition(const hfsb_mcp_tool   *tool,
                                            const hfsb_json_value *schema,
                                            const hfsb_json_value *hints,
                                            hfsb_buf *list, hfsb_err *err) {
    hfsb_buf         more = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    more.alloc = list->alloc;
    st = hfsb_buf_append_byte(&more, ',');
    hfsb_json_writer_init(&w, &more, NULL);
    hfsbi_mcp_write_tool(tool, schema, hints, &w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK) st = hfsbi_mcp_join(list, hfsb_buf_str(&more));
    hfsb_buf_free(&more);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "A tool");
}

HFSBI_FN hfsb_status hfsbi_mcp_define(const hfsb_mcp_tool *tool,
                                      hfsb_buf *list, hfsb_err *err) {
    const char *schema = tool->schema
                             ? tool->schema
                             : "{\"type\":\"object\",\"properties\":{},"
                               "\"additionalProperties\":false}";
    const char *hints =
        tool->annotations ? tool->annotations : "{\"readOnlyHint\":false}";
    hfsb_json_doc shape = HFSB_INIT, doc = HFSB_INIT;
    hfsb_status st = hfsbi_mcp_check_name(tool->name, hfsb_buf_str(list), err);
    shape.alloc = doc.alloc = list->alloc;
    if (st == HFSB_OK)
        st = hfsbi_mcp_read_object(tool->name, "schema", schema, &shape, err);
    /* hosts drop a server one of whose schemas has another type */
    if (st == HFSB_OK &&
        !hfsb_str_equal(
            hfsb_json_str(hfsb_json_get(shape.root, "type"), HFSB_LIT("")),
            HFSB_LIT("object")))
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "The schema of \"%s\" must have \"type\": "
                        "\"object\".",
                        tool->name);
    if (st == HFSB_OK)
        st =
            hfsbi_mcp_read_object(tool->name, "annotations", hints, &doc, err);
    if (st == HFSB_OK)
        st = hfsbi_mcp_add_definition(tool, shape.root, doc.root, list, err);
    hfsb_json_free(&shape);
    hfsb_json_free(&doc);
    return st;
}

/* ---- whether there is one ---- */

/* Behind the string that begins at `at`, with its quote; *inside is what is
   between the quotes, not decoded. */
static size_t hfsbi_mcp_skip_string(hfsb_str s, size_t at, hfsb_str *inside) {
    size_t from = ++at;
    while (at < s.len && s.ptr[at] != '"') at += s.ptr[at] == '\\' ? 2 : 1;
    *inside = hfsb_str_slice(s, from, at);
    return at + 1;
}

/* The text is walked as it is, without memory, for this is asked in every
   call: a key "name" of an object in the array, and the string behind it.
   Names have no escapes. */
HFSBI_FN bool hfsbi_mcp_lists(hfsb_str list, hfsb_str name) {
    size_t   depth = 0, at = 0;
    bool     key = false; /* the last string was "name" */
    hfsb_str text;
    while (at < list.len) {
        switch (list.ptr[at]) {
        case '"':
            at = hfsbi_mcp_skip_string(list, at, &text);
            if (depth != 2) continue;
            if (key && hfsb_str_equal(text, name)) return true;
            key = at < list.len && list.ptr[at] == ':' &&
                  hfsb_str_equal(text, HFSB_LIT("name"));
            continue;
        case '{':
        case '[': depth++; break;
        case '}':
        case ']': depth--; break;
        default: break;
        }
        at++;
    }
    return false;
}

/* ---- the tools ---- */

HFSBI_FN const hfsb_mcp_tool *hfsbi_mcp_own(const hfsb_mcp *mcp,
                                            hfsb_str        name) {
    size_t i;
    for (i = 0; i < mcp->own_count; i++)
        if (hfsb_str_equal(hfsb_cstr(mcp->own[i].name), name))
            return &mcp->own[i];
    return NULL;
}

static void hfsbi_mcp_own_drop(hfsb_mcp *mcp, const char *text) {
    if (text)
        hfsbi_array_free(&mcp->alloc, (void *)(uintptr_t)text,
                         strlen(text) + 1, 1);
}

static void hfsbi_mcp_own_clear(hfsb_mcp *mcp, hfsb_mcp_tool *tool) {
    hfsbi_mcp_own_drop(mcp, tool->name);
    hfsbi_mcp_own_drop(mcp, tool->title);
    hfsbi_mcp_own_drop(mcp, tool->description);
    hfsbi_mcp_own_drop(mcp, tool->schema);
    hfsbi_mcp_own_drop(mcp, tool->annotations);
}

HFSBI_FN void hfsbi_mcp_own_free(hfsb_mcp *mcp) {
    size_t i;
    for (i = 0; i < mcp->own_count; i++)
        hfsbi_mcp_own_clear(mcp, &mcp->own[i]);
    hfsbi_array_free(&mcp->alloc, mcp->own, mcp->own_cap, sizeof *mcp->own);
}

/* A copy of *text in its place; false without memory. */
static bool hfsbi_mcp_own_copy(hfsb_mcp *mcp, const char *from,
                               const char **text) {
    *text = from ? hfsbi_terminated(&mcp->alloc, hfsb_cstr(from)) : NULL;
    return *text || !from;
}

static bool hfsbi_mcp_own_fill(hfsb_mcp *mcp, const hfsb_mcp_tool *from,
                               hfsb_mcp_tool *to) {
    bool ok;
    memset(to, 0, sizeof *to);
    to->fn = from->fn;
    to->user = from->user;
    ok = hfsbi_mcp_own_copy(mcp, from->name, &to->name);
    ok = hfsbi_mcp_own_copy(mcp, from->title, &to->title) && ok;
    ok = hfsbi_mcp_own_copy(mcp, from->description, &to->description) && ok;
    ok = hfsbi_mcp_own_copy(mcp, from->schema, &to->schema) && ok;
    ok = hfsbi_mcp_own_copy(mcp, from->annotations, &to->annotations) && ok;
    if (!ok) hfsbi_mcp_own_clear(mcp, to);
    return ok;
}

/* A tool that may change something, when none of these is wanted: it is
   checked as any other, and left out. */
static hfsb_status hfsbi_mcp_own_leave(hfsb_mcp            *mcp,
                                       const hfsb_mcp_tool *tool, bool *leave,
                                       hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      list = HFSB_INIT;
    hfsb_status   st;
    *leave = false;
    if (!mcp->choice.read_only) return HFSB_OK;
    doc.alloc = list.alloc = mcp->alloc;
    st = hfsbi_mcp_define(tool, &list, err);
    if (st == HFSB_OK && tool->annotations)
        st = hfsb_json_parse(hfsb_cstr(tool->annotations), NULL, &doc, err);
    *leave = !hfsb_json_bool(hfsb_json_get(doc.root, "readOnlyHint"), false);
    hfsb_json_free(&doc);
    hfsb_buf_free(&list);
    return st;
}

/* Room in the array first: nothing fails once the list has it. */
hfsb_status hfsb_mcp_add_tool(hfsb_mcp *mcp, const hfsb_mcp_tool *tool,
                              hfsb_err *err) {
    hfsb_mcp_tool *grown, copy;
    hfsb_status    st;
    bool           leave;
    if (!tool->name || !tool->fn)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A tool has a name and a function.");
    if (hfsbi_mcp_lists(hfsb_buf_str(&mcp->about.tools),
                        hfsb_cstr(tool->name)))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There is a tool of the name %.64s already.",
                          tool->name);
    st = hfsbi_mcp_own_leave(mcp, tool, &leave, err);
    if (st != HFSB_OK || leave) return st;
    grown =
        (hfsb_mcp_tool *)hfsbi_array_grow(&mcp->alloc, mcp->own, &mcp->own_cap,
                                          mcp->own_count + 1, sizeof *grown);
    if (grown) mcp->own = grown;
    if (!grown || !hfsbi_mcp_own_fill(mcp, tool, &copy))
        return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a tool");
    st = hfsbi_mcp_define(tool, &mcp->about.tools, err);
    if (st != HFSB_OK) {
        hfsbi_mcp_own_clear(mcp, &copy);
        return st;
    }
    mcp->own[mcp->own_count++] = copy;
    return hfsbi_ok(err);
}

/* ---- what they say ---- */

static void hfsbi_mcp_say_text(hfsb_mcp_call *call, const char *format,
                               va_list ap) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = call->mcp->alloc;
    if (hfsbi_buf_vprintf(&text, format, ap) == HFSB_OK)
        hfsbi_mcp_add_text(&call->blocks, hfsb_buf_str(&text));
    else call->blocks.status = HFSB_NOMEM;
    hfsb_buf_free(&text);
}

void hfsb_mcp_text(hfsb_mcp_call *call, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    hfsbi_mcp_say_text(call, format, ap);
    va_end(ap);
}

void hfsb_mcp_str(hfsb_mcp_call *call, hfsb_str text) {
    hfsbi_mcp_add_text(&call->blocks, text);
}

static void hfsbi_mcp_say_data(hfsb_mcp_call *call, const char *type,
                               const char *mime_type, hfsb_str data) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = call->mcp->alloc;
    if (hfsb_base64_encode(data, &text) == HFSB_OK)
        hfsbi_mcp_add_data(&call->blocks, type, hfsb_cstr(mime_type),
                           hfsb_buf_str(&text));
    else call->blocks.status = HFSB_NOMEM;
    hfsb_buf_free(&text);
}

void hfsb_mcp_image(hfsb_mcp_call *call, const char *mime_type,
                    hfsb_str data) {
    hfsbi_mcp_say_data(call, "image", mime_type, data);
}

void hfsb_mcp_audio(hfsb_mcp_call *call, const char *mime_type,
                    hfsb_str data) {
    hfsbi_mcp_say_data(call, "audio", mime_type, data);
}

void hfsb_mcp_resource(hfsb_mcp_call *call, hfsb_str uri,
                       const char *mime_type, hfsb_str text) {
    hfsbi_mcp_add_resource(&call->blocks, uri, hfsb_cstr(mime_type), text);
}

void hfsb_mcp_fail(hfsb_mcp_call *call, const char *format, ...) {
    va_list ap;
    call->blocks.is_error = true;
    va_start(ap, format);
    hfsbi_mcp_say_text(call, format, ap);
    va_end(ap);
}

void hfsb_mcp_progress(hfsb_mcp_call *call, double progress, double total,
                       const char *message) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str words = call->bare ? HFSB_LIT("") : hfsb_cstr(message);
    if (!call->token.len || !call->notifies) return;
    text.alloc = call->mcp->alloc;
    pthread_mutex_lock(&call->lock);
    if ((!call->told || progress > call->progress) &&
        hfsbi_mcp_put_progress(hfsb_buf_str(&call->token), progress, total,
                               words, &text) == HFSB_OK) {
        call->told = call->spoke = true;
        call->progress = progress;
        call->total = total;
        hfsbi_mcp_call_say(call, hfsb_buf_str(&text));
    }
    pthread_mutex_unlock(&call->lock);
    hfsb_buf_free(&text);
}

void hfsb_mcp_log(hfsb_mcp_call *call, const char *level, hfsb_str text) {
    hfsb_buf message = HFSB_INIT;
    int      weight = hfsbi_mcp_level(hfsb_cstr(level));
    if (!call->mcp->about.logging || !call->notifies ||
        weight < call->log_level)
        return;
    message.alloc = call->mcp->alloc;
    if (hfsbi_mcp_put_log(level, text, &message) == HFSB_OK) {
        pthread_mutex_lock(&call->lock);
        hfsbi_mcp_call_say(call, hfsb_buf_str(&message));
        pthread_mutex_unlock(&call->lock);
    }
    hfsb_buf_free(&message);
}

const hfsb_cancel *hfsb_mcp_cancel(const hfsb_mcp_call *call) {
    return call->cancel;
}
