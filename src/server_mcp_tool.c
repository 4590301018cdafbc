/* server_mcp_tool.c - tools of the program's own over MCP: added, and what
   their functions say. Depends on: server_mcp_call, server_mcp_show,
   server_mcp_list, server_mcp_reply, hash. */
#include "server_mcp.h"

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
