/* server_mcp_reply.c - messages of MCP to a client. Depends on: json. */
#include "server_mcp.h"

/* Each is written as one line: the only bytes that are not ours go through
   the JSON writer, which escapes line feeds and repairs what is not UTF-8. */

static void hfsbi_mcp_put_str(hfsbi_sink *sink, hfsb_str text) {
    hfsb_json_writer w;
    if (sink->status != HFSB_OK) return;
    hfsb_json_writer_init(&w, sink->buf, NULL);
    hfsb_json_put_str(&w, text);
    sink->status = hfsb_json_writer_finish(&w, NULL);
}

/* A whole number is written as one: some clients read no other. What is no
   number is 0. */
static void hfsbi_mcp_put_number(hfsbi_sink *sink, double value) {
    const double     most = 9007199254740992.0;
    hfsb_json_writer w;
    if (sink->status != HFSB_OK) return;
    hfsb_json_writer_init(&w, sink->buf, NULL);
    if (!(value - value <= 0)) value = 0;
    if (value >= -most && value <= most &&
        value - (double)(long long)value >= 0 &&
        value - (double)(long long)value <= 0)
        hfsb_json_put_int(&w, (long long)value);
    else hfsb_json_put_double(&w, value);
    sink->status = hfsb_json_writer_finish(&w, NULL);
}

HFSBI_FN hfsb_status hfsbi_mcp_id_text(const hfsb_json_value *id,
                                       hfsb_buf              *out) {
    return hfsb_json_write(id, NULL, out, NULL);
}

/* ---- frames ---- */

static hfsbi_sink hfsbi_mcp_begin_reply(hfsb_buf *out, hfsb_str id,
                                        const char *member) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    hfsbi_put(&sink, HFSB_LIT("{\"jsonrpc\":\"2.0\",\"id\":"));
    hfsbi_put(&sink, id);
    hfsbi_putf(&sink, ",\"%s\":{", member);
    return sink;
}

static hfsb_status hfsbi_mcp_end_frame(hfsbi_sink *sink) {
    hfsbi_put(sink, HFSB_LIT("}}"));
    return hfsbi_sink_end(sink);
}

static hfsbi_sink hfsbi_mcp_begin_notification(hfsb_buf   *out,
                                               const char *name) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    hfsbi_putf(&sink,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\","
               "\"params\":{",
               name);
    return sink;
}

/* ---- errors ---- */

static hfsbi_sink hfsbi_mcp_begin_error(hfsb_buf *out, hfsb_str id, int code,
                                        hfsb_str sentence) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "error");
    hfsbi_putf(&sink, "\"code\":%d,\"message\":", code);
    hfsbi_mcp_put_str(&sink, sentence);
    return sink;
}

HFSBI_FN hfsb_status hfsbi_mcp_put_error(hfsb_str id, int code,
                                         hfsb_str sentence, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_error(out, id, code, sentence);
    return hfsbi_mcp_end_frame(&sink);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_fault(const hfsbi_mcp_message *m,
                                         hfsb_buf                *out) {
    hfsb_buf    id = HFSB_INIT;
    hfsbi_sink  sink;
    hfsb_status st;
    id.alloc = out->alloc;
    st = hfsbi_mcp_id_text(m->id, &id);
    if (st == HFSB_OK) {
        sink = hfsbi_mcp_begin_error(out, hfsb_buf_str(&id), m->code,
                                     hfsb_cstr(m->err.msg));
        if (m->code == HFSBI_MCP_VERSION) { /* what a client goes on with */
            hfsbi_put(&sink, HFSB_LIT(",\"data\":{\"supported\":"
                                      "[\"" HFSBI_MCP_MODERN "\"],"
                                      "\"requested\":"));
            hfsbi_mcp_put_str(&sink, m->version);
            hfsbi_put_byte(&sink, '}');
        }
        st = hfsbi_mcp_end_frame(&sink);
    }
    hfsb_buf_free(&id);
    return st;
}

/* ---- results ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_empty(hfsb_str id, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "result");
    return hfsbi_mcp_end_frame(&sink);
}

static void hfsbi_mcp_put_server(const hfsbi_mcp_about *about,
                                 hfsbi_sink            *sink) {
    hfsbi_put(sink, HFSB_LIT("{\"name\":"));
    hfsbi_mcp_put_str(sink, hfsb_buf_str(&about->name));
    if (about->title.len) {
        hfsbi_put(sink, HFSB_LIT(",\"title\":"));
        hfsbi_mcp_put_str(sink, hfsb_buf_str(&about->title));
    }
    hfsbi_put(sink, HFSB_LIT(",\"version\":"));
    hfsbi_mcp_put_str(sink, hfsb_buf_str(&about->version));
    hfsbi_put_byte(sink, '}');
}

/* No listChanged: the list stays as it is while the server lives. */
static void hfsbi_mcp_put_abilities(const hfsbi_mcp_about *about,
                                    hfsbi_sink            *sink) {
    hfsbi_put(sink, HFSB_LIT("\"capabilities\":{"));
    if (about->logging) hfsbi_put(sink, HFSB_LIT("\"logging\":{},"));
    hfsbi_put(sink, HFSB_LIT("\"tools\":{}}"));
}

static void hfsbi_mcp_put_words(const hfsbi_mcp_about *about,
                                hfsbi_sink            *sink) {
    if (!about->instructions.len) return;
    hfsbi_put(sink, HFSB_LIT(",\"instructions\":"));
    hfsbi_mcp_put_str(sink, hfsb_buf_str(&about->instructions));
}

/* What every result of the newest revision ends with. */
static void hfsbi_mcp_put_envelope(const hfsbi_mcp_about *about,
                                   hfsbi_sink            *sink) {
    hfsbi_put(sink, HFSB_LIT(",\"resultType\":\"complete\",\"_meta\":{"
                             "\"io.modelcontextprotocol/serverInfo\":"));
    hfsbi_mcp_put_server(about, sink);
    hfsbi_put_byte(sink, '}');
}

/* How long a client may keep what it was told: it does not change while the
   server lives, but the next one may be started with other options, which
   should be seen within a minute. Private, since what is offered is for who
   has the token: no cache between us may give it to others. */
static void hfsbi_mcp_put_cache(hfsbi_sink *sink) {
    hfsbi_put(sink, HFSB_LIT(",\"ttlMs\":60000,\"cacheScope\":\"private\""));
}

HFSBI_FN hfsb_status hfsbi_mcp_put_initialize(const hfsbi_mcp_about *about,
                                              hfsb_str id, hfsb_str version,
                                              hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "result");
    bool       modern;
    if (!hfsbi_mcp_version_known(version, &modern) || modern)
        version = HFSB_LIT(HFSBI_MCP_LATEST);
    hfsbi_put(&sink, HFSB_LIT("\"protocolVersion\":"));
    hfsbi_mcp_put_str(&sink, version);
    hfsbi_put_byte(&sink, ',');
    hfsbi_mcp_put_abilities(about, &sink);
    hfsbi_put(&sink, HFSB_LIT(",\"serverInfo\":"));
    hfsbi_mcp_put_server(about, &sink);
    hfsbi_mcp_put_words(about, &sink);
    return hfsbi_mcp_end_frame(&sink);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_discover(const hfsbi_mcp_about *about,
                                            hfsb_str id, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "result");
    hfsbi_put(&sink,
              HFSB_LIT("\"supportedVersions\":[\"" HFSBI_MCP_MODERN "\"],"));
    hfsbi_mcp_put_abilities(about, &sink);
    hfsbi_mcp_put_words(about, &sink);
    hfsbi_mcp_put_cache(&sink);
    hfsbi_mcp_put_envelope(about, &sink);
    return hfsbi_mcp_end_frame(&sink);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_list(const hfsbi_mcp_about *about,
                                        hfsb_str id, bool modern,
                                        hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "result");
    hfsbi_put(&sink, HFSB_LIT("\"tools\":"));
    hfsbi_put(&sink,
              about->tools.len ? hfsb_buf_str(&about->tools) : HFSB_LIT("[]"));
    if (modern) {
        hfsbi_mcp_put_cache(&sink);
        hfsbi_mcp_put_envelope(about, &sink);
    }
    return hfsbi_mcp_end_frame(&sink);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_result(const hfsbi_mcp_about *about,
                                          hfsb_str id, bool modern,
                                          hfsb_str blocks, bool is_error,
                                          hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_reply(out, id, "result");
    hfsbi_put(&sink, HFSB_LIT("\"content\":["));
    hfsbi_put(&sink, blocks);
    hfsbi_put_byte(&sink, ']');
    if (is_error) hfsbi_put(&sink, HFSB_LIT(",\"isError\":true"));
    if (modern) hfsbi_mcp_put_envelope(about, &sink);
    return hfsbi_mcp_end_frame(&sink);
}

/* ---- notifications ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_progress(hfsb_str token, double progress,
                                            double total, hfsb_str message,
                                            hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_notification(out, "progress");
    hfsbi_put(&sink, HFSB_LIT("\"progressToken\":"));
    hfsbi_put(&sink, token);
    hfsbi_put(&sink, HFSB_LIT(",\"progress\":"));
    hfsbi_mcp_put_number(&sink, progress);
    if (total > 0) {
        hfsbi_put(&sink, HFSB_LIT(",\"total\":"));
        hfsbi_mcp_put_number(&sink, total);
    }
    if (message.len) {
        hfsbi_put(&sink, HFSB_LIT(",\"message\":"));
        hfsbi_mcp_put_str(&sink, message);
    }
    return hfsbi_mcp_end_frame(&sink);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_log(const char *level, hfsb_str text,
                                       hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_mcp_begin_notification(out, "message");
    hfsbi_put(&sink, HFSB_LIT("\"level\":"));
    hfsbi_mcp_put_str(&sink, hfsb_cstr(level));
    hfsbi_put(&sink, HFSB_LIT(",\"data\":"));
    hfsbi_mcp_put_str(&sink, text);
    return hfsbi_mcp_end_frame(&sink);
}
