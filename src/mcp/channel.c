/* channel.c - serves one message of a client: its method and its answer.

   A channel passes in a text and is owed an answer for each request in it:
   answers come at once, or later from the calls that were started.

       text -> parsed document -> message -> method -> answer
                    |                         tools/call -> call ... -> answer
                    +-> batch: each message in turn

   Batches exist only in revisions before 2025-06-18, and no known client sends
   them. They are answered message by message, like single messages; a channel
   may join the answers. */
#include "mcp_private.h"

enum {
    HFSBI_MCP_BATCH = 100, /* messages in one batch */
    HFSBI_MCP_CALLS = 512  /* running at once; more are refused */
};

/* ---- answers ---- */

static void hfsbi_mcp_send_fault(hfsbi_mcp_channel       *channel,
                                 const hfsbi_mcp_message *m) {
    hfsb_buf out = HFSB_INIT;
    out.alloc = channel->mcp->alloc;
    (void)hfsbi_mcp_put_fault(m, &out);
    channel->reply(channel, m->status, &out);
    hfsb_buf_free(&out);
}

HFSBI_FN void hfsbi_mcp_reject(hfsbi_mcp_channel *channel, int code,
                               int status, const char *sentence) {
    hfsb_buf out = HFSB_INIT;
    out.alloc = channel->mcp->alloc;
    (void)hfsbi_mcp_put_error(NULL, code, hfsb_cstr(sentence), &out);
    channel->owed++;
    channel->reply(channel, status, &out);
    hfsb_buf_free(&out);
}

/* ---- methods ---- */

/* Starts a call; false when the message became a fault instead. */
static bool hfsbi_mcp_begin_call(hfsbi_mcp_channel *channel,
                                 hfsbi_mcp_message *m,
                                 hfsbi_mcp_input   *input) {
    hfsb_mcp             *mcp = channel->mcp;
    const hfsbi_mcp_tool *own;
    const char           *why = "Out of memory; nothing was done.";
    if (!hfsbi_mcp_list_find(&mcp->list, m->tool, &own)) {
        (void)hfsbi_tool_unknown(m->tool, &m->err);
        hfsbi_mcp_report_refused(channel->session, m->tool, m->arguments,
                                 m->err.msg);
        return hfsbi_mcp_refuse(m, HFSBI_MCP_PARAMS, 200);
    }
    if (mcp->stopping) why = "The server is stopping.";
    else if (mcp->call_count >= HFSBI_MCP_CALLS)
        why = "Too many calls are running: wait for some to end.";
    else if (hfsbi_mcp_call_start(channel, m, own, input) == HFSB_OK)
        return true;
    (void)hfsbi_fail(&m->err, HFSB_ARG, 0, "%s", why);
    hfsbi_mcp_report_refused(channel->session, m->tool, m->arguments, why);
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INTERNAL, 200);
}

/* The first name that a client gives becomes that of its session. */
static void hfsbi_mcp_session_name(hfsbi_mcp_session *session, hfsb_str name) {
    if (session->who[0] || !name.len) return;
    (void)snprintf(session->who, sizeof session->who, "mcp:%.*s",
                   (int)hfsb_utf8_offset(name, 40), name.ptr);
}

static void hfsbi_mcp_serve_request(hfsbi_mcp_channel *channel,
                                    hfsbi_mcp_message *m,
                                    hfsbi_mcp_input   *input) {
    const hfsbi_mcp_about *about = &channel->mcp->about;
    hfsbi_mcp_session     *session = channel->session;
    hfsb_buf               out = HFSB_INIT;
    out.alloc = channel->mcp->alloc;
    hfsbi_mcp_session_name(session, m->client);
    switch (m->method) {
    case HFSBI_MCP_INITIALIZE:
        (void)snprintf(session->version, sizeof session->version, "%.*s",
                       (int)m->version.len, m->version.ptr);
        (void)hfsbi_mcp_put_initialize(about, m->id, m->version, &out);
        break;
    case HFSBI_MCP_DISCOVER:
        (void)hfsbi_mcp_put_discover(about, m->id, &out);
        break;
    case HFSBI_MCP_LIST:
        (void)hfsbi_mcp_put_list(about, m->id, m->modern,
                                 hfsb_buf_str(&channel->mcp->list.text), &out);
        break;
    case HFSBI_MCP_CALL:
        if (!hfsbi_mcp_begin_call(channel, m, input))
            hfsbi_mcp_send_fault(channel, m);
        return;
    case HFSBI_MCP_SET_LEVEL:
        session->log_level = m->level;
        (void)hfsbi_mcp_put_empty(m->id, &out);
        break;
    case HFSBI_MCP_PING:
    case HFSBI_MCP_CANCELLED:
    case HFSBI_MCP_OTHER: (void)hfsbi_mcp_put_empty(m->id, &out);
    }
    channel->reply(channel, 200, &out);
    hfsb_buf_free(&out);
}

/* Cancels a call, if the session belongs to this client alone. Over HTTP,
   clients without a session id and modern ones share a session, and their ids
   may be equal; a modern client closes its request instead. */
static void hfsbi_mcp_serve_cancel(hfsbi_mcp_session       *session,
                                   const hfsbi_mcp_message *m) {
    if (session->unnamed || (session->id.len && !m->modern))
        hfsbi_mcp_call_cancel(session, m->target);
}

/* ---- messages ---- */

/* Opens the session of the channel if need be; false when it has refused. */
static bool hfsbi_mcp_has_session(hfsbi_mcp_channel       *channel,
                                  const hfsbi_mcp_message *m) {
    return channel->session || channel->open(channel, m);
}

static void hfsbi_mcp_serve(hfsbi_mcp_channel     *channel,
                            const hfsb_json_value *root,
                            const hfsbi_mcp_head *head, hfsbi_mcp_input *input,
                            bool in_batch) {
    hfsbi_mcp_message m;
    hfsbi_mcp_read(root, head, channel->mcp->about.logging, &m);
    if (in_batch && m.kind == HFSBI_MCP_REQUEST &&
        (m.modern || m.method == HFSBI_MCP_INITIALIZE)) {
        (void)hfsbi_fail(&m.err, HFSB_ARG, 0,
                         "This request may not be part of a batch.");
        (void)hfsbi_mcp_refuse(&m, HFSBI_MCP_INVALID, 200);
    }
    if (in_batch) m.status = 200; /* the other messages are served */
    switch (m.kind) {
    case HFSBI_MCP_RESPONSE: break;
    case HFSBI_MCP_FAULT:
        channel->owed++;
        hfsbi_mcp_send_fault(channel, &m);
        break;
    case HFSBI_MCP_NOTIFICATION:
        if (m.method == HFSBI_MCP_CANCELLED &&
            hfsbi_mcp_has_session(channel, &m))
            hfsbi_mcp_serve_cancel(channel->session, &m);
        break;
    case HFSBI_MCP_REQUEST:
        if (!hfsbi_mcp_has_session(channel, &m)) break;
        channel->owed++;
        hfsbi_mcp_serve_request(channel, &m, input);
        break;
    }
}

static void hfsbi_mcp_serve_batch(hfsbi_mcp_channel    *channel,
                                  const hfsbi_mcp_head *head,
                                  hfsbi_mcp_input      *input) {
    hfsb_json_iter it = hfsb_json_begin(input->doc.root);
    size_t         count = hfsb_json_count(input->doc.root);
    hfsb_err       err;
    if ((head->version.ptr &&
         hfsbi_mcp_era_of(head->version) != HFSBI_ERA_LEGACY) ||
        count == 0 || count > HFSBI_MCP_BATCH) {
        (void)hfsbi_fail(&err, HFSB_ARG, 0,
                         "A batch must have 1 to %d messages, and its "
                         "MCP-Protocol-Version, if any, must be one of those "
                         "from 2024-11-05 to " HFSBI_MCP_LATEST ".",
                         HFSBI_MCP_BATCH);
        hfsbi_mcp_reject(channel, HFSBI_MCP_INVALID, 400, err.msg);
        return;
    }
    if (!hfsbi_mcp_has_session(channel, NULL)) return;
    while (hfsb_json_next(&it))
        hfsbi_mcp_serve(channel, it.value, head, input, true);
}

/* ---- documents ---- */

/* Parses *text, which is moved into *out. HFSB_OK; HFSB_NOMEM; HFSB_SYNTAX or
   HFSB_LIMIT with *err. *out, if not NULL, must be released. */
static hfsb_status hfsbi_mcp_parse(hfsb_mcp *mcp, hfsb_buf *text,
                                   hfsbi_mcp_input **out, hfsb_err *err) {
    char                 empty[1] = ""; /* an empty text is not JSON */
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsbi_mcp_input     *input =
        (hfsbi_mcp_input *)hfsbi_array(&mcp->alloc, 1, sizeof *input);
    *out = input;
    if (!input) return HFSB_NOMEM;
    memset(input, 0, sizeof *input);
    input->users = 1;
    input->doc.alloc = mcp->alloc;
    input->text = *text;
    memset(text, 0, sizeof *text);
    text->alloc = input->text.alloc;
    how.max_values = HFSBI_ARGUMENT_VALUES;
    return hfsb_json_parse_in_place(input->text.ptr ? input->text.ptr : empty,
                                    input->text.len, &how, &input->doc, err);
}

HFSBI_FN void hfsbi_mcp_receive(hfsbi_mcp_channel *channel, hfsb_buf *text,
                                const hfsbi_mcp_head *head) {
    hfsb_mcp        *mcp = channel->mcp;
    hfsbi_mcp_input *input;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = hfsbi_mcp_parse(mcp, text, &input, &err);
    if (st == HFSB_NOMEM)
        hfsbi_mcp_reject(channel, HFSBI_MCP_INTERNAL, 503,
                         "Out of memory; nothing was done.");
    else if (st != HFSB_OK)
        hfsbi_mcp_reject(channel, HFSBI_MCP_PARSE, 400, err.msg);
    else if (hfsb_json_type_of(input->doc.root) == HFSB_JSON_ARRAY)
        hfsbi_mcp_serve_batch(channel, head, input);
    else hfsbi_mcp_serve(channel, input->doc.root, head, input, false);
    if (input) hfsbi_mcp_input_release(mcp, input);
}
