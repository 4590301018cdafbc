/* mcp.c - MCP on a server: what is offered, messages and their methods,
   the end. */
#include "mcp_private.h"

/* ---- messages ---- */

HFSBI_FN void hfsbi_mcp_input_release(hfsb_mcp *mcp, hfsbi_mcp_input *input) {
    if (--input->users) return;
    hfsb_json_free(&input->doc);
    hfsb_buf_free(&input->text);
    hfsbi_array_free(&mcp->alloc, input, 1, sizeof *input);
}

/* An answer; st is what came of writing it. */
static void hfsbi_mcp_send(hfsbi_mcp_channel *channel, int status,
                           hfsb_status st, hfsb_buf *message) {
    if (st != HFSB_OK) hfsb_buf_truncate(message, 0);
    channel->reply(channel, message->len ? status : 503, message);
    hfsb_buf_free(message);
}

static void hfsbi_mcp_send_error(hfsbi_mcp_channel *channel, int status,
                                 hfsb_str id, int code, hfsb_str sentence) {
    hfsb_buf message = HFSB_INIT;
    message.alloc = channel->mcp->alloc;
    hfsbi_mcp_send(channel, status,
                   hfsbi_mcp_put_error(id, code, sentence, &message),
                   &message);
}

/* The revision that a session speaks: the one that was asked for, or our
   newest with initialize. */
static void hfsbi_mcp_agree(hfsbi_mcp_session *session, hfsb_str asked) {
    bool modern = false;
    if (!hfsbi_mcp_version_known(asked, &modern) || modern)
        asked = HFSB_LIT(HFSBI_MCP_LATEST);
    (void)snprintf(session->version, sizeof session->version, "%.*s",
                   (int)asked.len, asked.ptr);
}

static hfsb_status hfsbi_mcp_set_level(hfsbi_mcp_session       *session,
                                       const hfsbi_mcp_message *m, hfsb_str id,
                                       hfsb_buf *out) {
    int level = hfsbi_mcp_level(
        hfsb_json_str(hfsb_json_get(m->params, "level"), HFSB_LIT("")));
    if (level < 0)
        return hfsbi_mcp_put_error(
            id, HFSBI_MCP_PARAMS,
            HFSB_LIT("`level` must be one of debug, info, notice, warning, "
                     "error, critical, alert and emergency."),
            out);
    session->log_level = level;
    return hfsbi_mcp_put_empty(id, out);
}

static hfsb_status hfsbi_mcp_unknown(hfsb_str id, hfsb_str tool,
                                     hfsb_buf *out) {
    hfsb_err err;
    (void)hfsbi_tool_unknown(tool, &err);
    return hfsbi_mcp_put_error(id, HFSBI_MCP_PARAMS, hfsb_cstr(err.msg), out);
}

/* Begins a call. When that is not possible the answer is in *out: HFSB_OK, or
   HFSB_NOMEM; HFSB_REFUSED when it was begun. */
static hfsb_status hfsbi_mcp_try_call(hfsbi_mcp_channel       *channel,
                                      const hfsbi_mcp_message *m,
                                      hfsbi_mcp_input *input, hfsb_str id,
                                      hfsb_buf *out) {
    hfsb_mcp *mcp = channel->mcp;
    hfsb_str  why = HFSB_LIT("Out of memory; nothing was done.");
    if (!hfsbi_mcp_lists(hfsb_buf_str(&mcp->about.tools), m->tool))
        return hfsbi_mcp_unknown(id, m->tool, out);
    if (mcp->ended) why = HFSB_LIT("The server is stopping.");
    else if (mcp->call_count >= HFSBI_MCP_CALLS)
        why = HFSB_LIT("Too many calls are under way: wait for some to end.");
    else if (hfsbi_mcp_call_start(channel, m, input) == HFSB_OK)
        return HFSB_REFUSED;
    return hfsbi_mcp_put_error(id, HFSBI_MCP_INTERNAL, why, out);
}

static void hfsbi_mcp_request(hfsbi_mcp_channel       *channel,
                              const hfsbi_mcp_message *m,
                              hfsbi_mcp_input         *input) {
    const hfsbi_mcp_about *about = &channel->mcp->about;
    hfsb_buf               text = HFSB_INIT, out = HFSB_INIT;
    hfsb_str               id;
    hfsb_status            st;
    text.alloc = out.alloc = channel->mcp->alloc;
    st = hfsbi_mcp_id_text(m->id, &text);
    id = hfsb_buf_str(&text);
    if (st == HFSB_OK) switch (m->method) {
        case HFSBI_MCP_INITIALIZE:
            hfsbi_mcp_agree(channel->session, m->version);
            st = hfsbi_mcp_put_initialize(about, id, m->version, &out);
            break;
        case HFSBI_MCP_DISCOVER:
            st = hfsbi_mcp_put_discover(about, id, &out);
            break;
        case HFSBI_MCP_LIST:
            st = hfsbi_mcp_put_list(about, id, m->modern, &out);
            break;
        case HFSBI_MCP_CALL:
            st = hfsbi_mcp_try_call(channel, m, input, id, &out);
            break;
        case HFSBI_MCP_SET_LEVEL:
            st = hfsbi_mcp_set_level(channel->session, m, id, &out);
            break;
        case HFSBI_MCP_PING:
        case HFSBI_MCP_CANCELLED:
        case HFSBI_MCP_OTHER: st = hfsbi_mcp_put_empty(id, &out);
        }
    hfsb_buf_free(&text);
    if (st != HFSB_REFUSED) hfsbi_mcp_send(channel, 200, st, &out);
}

/* Who shares a session with others may not cancel what they have begun, whose
   ids are the same as its own: over HTTP those without an id of a session, and
   the newest revision, which closes the stream of an answer instead. */
static bool hfsbi_mcp_may_cancel(const hfsbi_mcp_session *session,
                                 const hfsbi_mcp_message *m) {
    return session->unnamed || (session->id.len && !m->modern);
}

/* One message; gives how many answers it has. */
static size_t hfsbi_mcp_take(hfsbi_mcp_channel     *channel,
                             const hfsb_json_value *root,
                             const hfsbi_mcp_head  *head,
                             hfsbi_mcp_input *input, bool in_batch) {
    hfsbi_mcp_message m;
    hfsb_buf          out = HFSB_INIT;
    hfsbi_mcp_read(root, head, channel->mcp->about.logging, &m);
    if (in_batch && m.kind == HFSBI_MCP_REQUEST &&
        (m.modern || m.method == HFSBI_MCP_INITIALIZE)) {
        m.kind = HFSBI_MCP_FAULT;
        m.code = HFSBI_MCP_INVALID;
        m.status = 400;
        (void)hfsbi_fail(&m.err, HFSB_ARG, 0,
                         "This request may not be part of a batch.");
    }
    switch (m.kind) {
    case HFSBI_MCP_RESPONSE: return 0;
    case HFSBI_MCP_NOTIFICATION:
        if (m.method == HFSBI_MCP_CANCELLED &&
            hfsbi_mcp_may_cancel(channel->session, &m))
            hfsbi_mcp_call_cancel(channel->session, m.target);
        return 0;
    case HFSBI_MCP_FAULT:
        out.alloc = channel->mcp->alloc;
        /* of a batch the others are answered all the same */
        hfsbi_mcp_send(channel, in_batch ? 200 : m.status,
                       hfsbi_mcp_put_fault(&m, &out), &out);
        return 1;
    case HFSBI_MCP_REQUEST: break;
    }
    hfsbi_mcp_request(channel, &m, input);
    return 1;
}

/* An array of messages, of revisions that still had them. */
static size_t hfsbi_mcp_batch(hfsbi_mcp_channel    *channel,
                              const hfsbi_mcp_head *head,
                              hfsbi_mcp_input      *input) {
    hfsb_json_iter it = hfsb_json_begin(input->doc.root);
    size_t         count = hfsb_json_count(input->doc.root), n = 0;
    bool           modern;
    bool known = hfsbi_mcp_version_known(hfsbi_trim(head->version), &modern) ||
                 !head->version.ptr;
    hfsb_err err;
    if (!known || modern || count == 0 || count > HFSBI_MCP_BATCH) {
        (void)hfsbi_fail(&err, HFSB_ARG, 0,
                         "A batch must hold 1 to %d messages, and its "
                         "MCP-Protocol-Version, if any, must be one of those "
                         "from 2024-11-05 to " HFSBI_MCP_LATEST ".",
                         HFSBI_MCP_BATCH);
        hfsbi_mcp_send_error(channel, 400, HFSB_LIT("null"), HFSBI_MCP_INVALID,
                             hfsb_cstr(err.msg));
        return 1;
    }
    while (hfsb_json_next(&it))
        n += hfsbi_mcp_take(channel, it.value, head, input, true);
    return n;
}

/* A long message is a long text with few values around it. Any number of them
   would keep the loop from all else, and cost many times their bytes: it is
   not parsed. */
static bool hfsbi_mcp_is_bulky(hfsb_str text) {
    size_t i, values = 0;
    bool   inside = false; /* of a string */
    if (text.len < HFSBI_MCP_LONG) return false;
    for (i = 0; i < text.len && values <= HFSBI_MCP_VALUES; i++) {
        char c = text.ptr[i];
        if (c == '"') inside = !inside;
        else if (inside && c == '\\') i++;
        else values += !inside && (c == ',' || c == '[' || c == '{');
    }
    return values > HFSBI_MCP_VALUES;
}

static hfsbi_mcp_input *hfsbi_mcp_input_new(hfsb_mcp *mcp, hfsb_buf *text) {
    hfsbi_mcp_input *input =
        (hfsbi_mcp_input *)hfsbi_array(&mcp->alloc, 1, sizeof *input);
    if (!input) return NULL;
    memset(input, 0, sizeof *input);
    input->users = 1;
    input->doc.alloc = mcp->alloc;
    input->text = *text;
    memset(text, 0, sizeof *text);
    text->alloc = input->text.alloc;
    return input;
}

HFSBI_FN size_t hfsbi_mcp_receive(hfsbi_mcp_channel *channel, hfsb_buf *text,
                                  const hfsbi_mcp_head *head) {
    hfsb_mcp        *mcp = channel->mcp;
    hfsbi_mcp_input *input = hfsbi_mcp_input_new(mcp, text);
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = HFSB_NOMEM;
    size_t           n = 1;
    char             none[1] = "";
    if (input && hfsbi_mcp_is_bulky(hfsb_buf_str(&input->text)))
        st = hfsbi_fail(&err, HFSB_LIMIT, 0,
                        "A message has at most %d values.", HFSBI_MCP_VALUES);
    else if (input)
        st =
            hfsb_json_parse_in_place(input->text.ptr ? input->text.ptr : none,
                                     input->text.len, NULL, &input->doc, &err);
    if (st == HFSB_NOMEM)
        hfsbi_mcp_send_error(channel, 503, HFSB_LIT("null"),
                             HFSBI_MCP_INTERNAL,
                             HFSB_LIT("Out of memory; nothing was done."));
    else if (st != HFSB_OK)
        hfsbi_mcp_send_error(channel, 400, HFSB_LIT("null"), HFSBI_MCP_PARSE,
                             hfsb_cstr(err.msg));
    else if (hfsb_json_type_of(input->doc.root) == HFSB_JSON_ARRAY)
        n = hfsbi_mcp_batch(channel, head, input);
    else n = hfsbi_mcp_take(channel, input->doc.root, head, input, false);
    if (input) hfsbi_mcp_input_release(mcp, input);
    return n;
}

/* ---- what is offered ---- */

HFSBI_FN hfsb_status hfsbi_mcp_offer(hfsb_mcp *mcp, hfsb_str all,
                                     hfsb_err *err) {
    hfsb_buf    list = HFSB_INIT;
    size_t      i;
    hfsb_status st;
    list.alloc = mcp->alloc;
    st = hfsbi_mcp_choose(all, &mcp->choice, &list, err);
    for (i = 0; st == HFSB_OK && i < mcp->own_count; i++)
        st = hfsbi_mcp_define(&mcp->own[i], &list, err);
    if (st != HFSB_OK) {
        hfsb_buf_free(&list);
        return st;
    }
    hfsb_buf_free(&mcp->about.tools);
    mcp->about.tools = list;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_mcp_instruct(hfsb_mcp *mcp, hfsb_str ours) {
    hfsb_buf *out = &mcp->about.instructions;
    size_t    mark;
    hfsb_buf_truncate(out, 0);
    mark = out->len;
    hfsb_buf_append(out, ours);
    if (ours.len && mcp->more.len) hfsb_buf_append_byte(out, '\n');
    hfsb_buf_append(out, hfsb_buf_str(&mcp->more));
    return hfsb_buf_finish(out, mark);
}

/* A path for people: the end of one that is very long. */
static hfsb_str hfsbi_mcp_short_path(hfsb_str path) {
    return path.len > 160 ? hfsb_str_slice(path, path.len - 160, path.len)
                          : path;
}

static bool hfsbi_mcp_offers(const hfsb_mcp *mcp, const char *tool) {
    return hfsbi_mcp_lists(hfsb_buf_str(&mcp->about.tools), hfsb_cstr(tool));
}

/* What becomes of a command that takes long, and the tools for that. */
static void hfsbi_mcp_put_jobs(const hfsb_mcp *mcp, hfsb_buf *sink) {
    static const char *const names[] = {"bash_output", "bash_input", "kill"};
    const char              *before = ": see ";
    size_t                   i;
    hfsb_buf_printf(sink,
                    " A command that runs for over %lld s goes on as a job",
                    mcp->answer_ms / 1000);
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!hfsbi_mcp_offers(mcp, names[i])) continue;
        hfsb_buf_printf(sink, "%s%s", before, names[i]);
        before = ", ";
    }
    hfsb_buf_append_byte(sink, '.');
}

/* Where the tools of this machine work, in a few words; of those that are
   offered. */
static hfsb_status hfsbi_mcp_introduce(hfsb_mcp *mcp) {
    hfsb_str    root = hfsb_place_root(mcp->spare->place);
    hfsb_str    work = hfsb_place_work_dir(mcp->spare->place);
    bool        bash = hfsbi_mcp_offers(mcp, "bash");
    hfsb_buf    text = HFSB_INIT;
    size_t      mark;
    hfsb_status st;
    text.alloc = mcp->alloc;
    mark = text.len;
    hfsb_buf_printf(&text, "Tools on this machine. Relative paths%s start in ",
                    bash ? " and commands" : "");
    if (work.len) hfsb_buf_append(&text, hfsbi_mcp_short_path(work));
    else hfsb_buf_append(&text, HFSB_LIT("the server's current directory"));
    if (root.len) {
        hfsb_buf_append(&text,
                        HFSB_LIT(". The file tools stay beneath the root "));
        hfsb_buf_append(&text, hfsb_str_equal(root, work)
                                   ? HFSB_LIT("directory")
                                   : hfsbi_mcp_short_path(root));
        if (bash)
            hfsb_buf_append(&text, HFSB_LIT("; bash is not confined to it"));
    }
    hfsb_buf_append_byte(&text, '.');
    if (bash) hfsbi_mcp_put_jobs(mcp, &text);
    if (hfsbi_mcp_offers(mcp, "read"))
        hfsb_buf_append(&text, HFSB_LIT(" read shows pictures, too."));
    st = hfsb_buf_finish(&text, mark);
    if (st == HFSB_OK) st = hfsbi_mcp_instruct(mcp, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return st;
}

/* ---- the end ---- */

/* A stop begins: what is under way may end by itself, but for stdio, whose
   end is quick. */
static void hfsbi_mcp_part_stop(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    if (mcp->stdio) hfsbi_mcp_stdio_end(mcp->stdio, true);
}

static void hfsbi_mcp_part_end(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    mcp->ended = true;
    hfsbi_mcp_calls_end(mcp, false);
    hfsbi_mcp_sessions_end(mcp);
}

/* With stdio, what is slow is not waited for. */
static bool hfsbi_mcp_part_busy(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    if (mcp->stdio) return !hfsbi_mcp_stdio_ended(mcp->stdio);
    return mcp->working > 0 || hfsbi_mcp_sessions_busy(mcp) > 0;
}

static void hfsbi_mcp_free(hfsb_mcp *mcp) {
    hfsb_alloc alloc = mcp->alloc;
    bool       at_once = mcp->stdio || hfsbi_server_hurries(mcp->server);
    mcp->ended = true;
    hfsbi_mcp_calls_end(mcp, true);
    if (mcp->stdio) hfsbi_mcp_stdio_free(mcp->stdio);
    hfsbi_mcp_sessions_free(mcp, at_once);
    hfsb_tools_close(mcp->spare);
    hfsbi_mcp_own_free(mcp);
    hfsbi_mcp_drop_opts(mcp);
    hfsb_json_free(&mcp->nothing);
    hfsb_buf_free(&mcp->only);
    hfsb_buf_free(&mcp->more);
    hfsb_buf_free(&mcp->about.name);
    hfsb_buf_free(&mcp->about.title);
    hfsb_buf_free(&mcp->about.version);
    hfsb_buf_free(&mcp->about.instructions);
    hfsb_buf_free(&mcp->about.tools);
    hfsbi_array_free(&alloc, mcp, 1, sizeof *mcp);
}

static void hfsbi_mcp_part_free(hfsbi_server_part *part) {
    hfsbi_mcp_free((hfsb_mcp *)(void *)part);
}

/* ---- the beginning ---- */

static long long hfsbi_mcp_or(long long value, long long fallback) {
    return value > 0 ? value : fallback;
}

static hfsb_mcp *hfsbi_mcp_new(hfsb_server *server, const hfsb_mcp_opts *o) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsb_mcp         *mcp = (hfsb_mcp *)hfsbi_array(alloc, 1, sizeof *mcp);
    if (!mcp) return NULL;
    memset(mcp, 0, sizeof *mcp);
    mcp->server = server;
    mcp->loop = hfsbi_server_loop(server);
    mcp->alloc = *alloc;
    mcp->texts.alloc = mcp->only.alloc = mcp->more.alloc = *alloc;
    mcp->nothing.alloc = *alloc;
    mcp->about.name.alloc = mcp->about.title.alloc = *alloc;
    mcp->about.version.alloc = mcp->about.instructions.alloc = *alloc;
    mcp->about.tools.alloc = *alloc;
    mcp->about.logging = o->logging;
    mcp->choice.read_only = o->read_only;
    mcp->no_tools = o->no_tools;
    mcp->answer_ms = hfsbi_mcp_or(o->answer_ms, HFSBI_MCP_ANSWER_MS);
    mcp->beat_ms = hfsbi_mcp_or(o->beat_ms, HFSBI_MCP_BEAT_MS);
    mcp->grace_ms = hfsbi_mcp_or(o->grace_ms, HFSBI_MCP_GRACE_MS);
    mcp->max_message =
        o->max_message ? o->max_message : (size_t)HFSBI_MCP_MESSAGE;
    mcp->part.stop = hfsbi_mcp_part_stop;
    mcp->part.end = hfsbi_mcp_part_end;
    mcp->part.busy = hfsbi_mcp_part_busy;
    mcp->part.free = hfsbi_mcp_part_free;
    return mcp;
}

/* HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_texts(hfsb_mcp *mcp, const hfsb_mcp_opts *o) {
    hfsbi_mcp_about *about = &mcp->about;
    hfsb_status      st =
        hfsb_buf_append(&about->name, hfsb_cstr(o->name ? o->name : "hfsb"));
    if (st == HFSB_OK)
        st = hfsb_buf_append(&about->title, hfsb_cstr(o->title));
    if (st == HFSB_OK)
        st =
            hfsb_buf_append(&about->version,
                            hfsb_cstr(o->version ? o->version : HFSB_VERSION));
    if (st == HFSB_OK) st = hfsb_buf_append(&mcp->more, o->instructions);
    if (st == HFSB_OK) st = hfsb_buf_append(&mcp->only, o->only);
    if (st == HFSB_OK)
        st = hfsb_json_parse(HFSB_LIT("{}"), NULL, &mcp->nothing, NULL);
    mcp->choice.only = hfsb_buf_str(&mcp->only);
    return st;
}

/* The tools of this machine, opened once to see whether that can be done. */
static hfsb_status hfsbi_mcp_local(hfsb_mcp *mcp, const hfsb_tools_opts *opts,
                                   hfsb_err *err) {
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_buf          all = HFSB_INIT;
    const hfsbi_tool *plan = hfsbi_plan_tool();
    hfsb_status       st;
    all.alloc = mcp->alloc;
    st = hfsbi_tools_define(opts && opts->shell ? opts->shell
                                                : hfsbi_default_shell(),
                            &plan, 1, HFSB_TOOLS_MCP, &all, err);
    if (st == HFSB_OK) st = hfsbi_mcp_offer(mcp, hfsb_buf_str(&all), err);
    hfsb_buf_free(&all);
    if (st != HFSB_OK) return st;
    if (opts) o = *opts;
    if (!o.alloc.fn) o.alloc = mcp->alloc;
    o.session = true;
    o.drop_spills = true; /* nobody but the session knows them */
    if (!hfsbi_mcp_offers(mcp, "bash")) o.no_imports = true;
    st = hfsb_tools_open(&o, &mcp->spare, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_mcp_keep_opts(mcp, &o);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Adding MCP");
    st = hfsbi_mcp_introduce(mcp);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Adding MCP");
}

static hfsb_status hfsbi_mcp_fill(hfsb_mcp *mcp, const hfsb_mcp_opts *o,
                                  hfsb_err *err) {
    hfsb_status st = hfsbi_mcp_texts(mcp, o);
    if (st == HFSB_OK && o->no_tools) {
        st = hfsbi_mcp_instruct(mcp, HFSB_LIT(""));
        if (st == HFSB_OK)
            st = hfsb_buf_append(&mcp->about.tools, HFSB_LIT("[]"));
    }
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Adding MCP");
    return o->no_tools ? HFSB_OK : hfsbi_mcp_local(mcp, o->tools, err);
}

hfsb_status hfsb_server_add_mcp(hfsb_server *server, const hfsb_mcp_opts *opts,
                                hfsb_mcp **out, hfsb_err *err) {
    hfsb_mcp_opts none = HFSB_INIT;
    const char   *path;
    hfsb_mcp     *mcp;
    hfsb_status   st;
    if (!opts) opts = &none;
    path = opts->path ? opts->path : "/mcp";
    if (out) *out = NULL;
    mcp = hfsbi_mcp_new(server, opts);
    if (!mcp) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding MCP");
    st = hfsbi_mcp_fill(mcp, opts, err);
    if (st == HFSB_OK && *path) st = hfsbi_mcp_route(mcp, path, err);
    if (st != HFSB_OK) { /* nobody knows of it */
        hfsbi_mcp_free(mcp);
        return st;
    }
    hfsbi_server_part_add(server, &mcp->part);
    if (out) *out = mcp;
    return hfsbi_ok(err);
}
