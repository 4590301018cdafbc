/* message.c - messages of MCP, read and written.

   Reading turns a parsed JSON value and the HTTP fields that came with it into
   a hfsbi_mcp_message: the request, or the error and its answer. The checks
   run in the order that clients and the conformance suite expect:

       shape (JSON-RPC) -> era -> headers -> method -> params of the method

   A message is "modern" (2026-07-28: every request carries its version in
   params._meta) or "legacy" (all earlier revisions: initialize agrees on one
   version). Both are served side by side, message by message.

   Writing appends one message as one line. Foreign bytes always go through the
   JSON writer, which escapes line feeds and repairs invalid UTF-8. */
#include "mcp_private.h"
#include "../core/core_private.h"

#define HFSBI_MCP_KEY "io.modelcontextprotocol/"

/* ---- words of the protocol ---- */

/* The last one is the modern one. */
static const char *const hfsbi_mcp_versions[] = {
    "2024-11-05", "2025-03-26", "2025-06-18", HFSBI_MCP_LATEST,
    HFSBI_MCP_MODERN};

HFSBI_FN hfsbi_mcp_era hfsbi_mcp_era_of(hfsb_str version) {
    size_t i, n = sizeof hfsbi_mcp_versions / sizeof *hfsbi_mcp_versions;
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(version, hfsb_cstr(hfsbi_mcp_versions[i])))
            return i == n - 1 ? HFSBI_ERA_MODERN : HFSBI_ERA_LEGACY;
    return HFSBI_ERA_UNKNOWN;
}

HFSBI_FN int hfsbi_mcp_level(hfsb_str name) {
    static const char *const names[] = {"debug",   "info",     "notice",
                                        "warning", "error",    "critical",
                                        "alert",   "emergency"};
    int                      i;
    for (i = 0; i < 8; i++)
        if (hfsb_str_equal(name, hfsb_cstr(names[i]))) return i;
    return -1;
}

/* ---- ids ---- */

/* A string or a number: a valid id or progress token. */
static bool hfsbi_mcp_is_id(const hfsb_json_value *value) {
    switch (hfsb_json_type_of(value)) {
    case HFSB_JSON_INT:
    case HFSB_JSON_UINT:
    case HFSB_JSON_DOUBLE:
    case HFSB_JSON_STRING: return true;
    case HFSB_JSON_NULL:
    case HFSB_JSON_BOOL:
    case HFSB_JSON_ARRAY:
    case HFSB_JSON_OBJECT: break;
    }
    return false;
}

HFSBI_FN bool hfsbi_mcp_same_id(const hfsb_json_value *a,
                                const hfsb_json_value *b) {
    hfsb_json_type type = hfsb_json_type_of(a);
    double         x = hfsb_json_double(a, 0), y = hfsb_json_double(b, 0);
    if (!hfsbi_mcp_is_id(a) || type != hfsb_json_type_of(b)) return false;
    if (type == HFSB_JSON_STRING)
        return hfsb_str_equal(hfsb_json_str(a, HFSB_LIT("")),
                              hfsb_json_str(b, HFSB_LIT("")));
    if (type == HFSB_JSON_INT)
        return hfsb_json_int(a, 0) == hfsb_json_int(b, 0);
    if (type == HFSB_JSON_UINT)
        return hfsb_json_uint(a, 0) == hfsb_json_uint(b, 0);
    return x >= y && x <= y;
}

/* ---- faults ---- */

HFSBI_FN bool hfsbi_mcp_refuse(hfsbi_mcp_message *m, int code, int status) {
    m->kind = HFSBI_MCP_FAULT;
    m->code = code;
    m->status = status;
    return false;
}

static bool hfsbi_mcp_invalid(hfsbi_mcp_message *m, const char *sentence) {
    hfsbi_fail(&m->err, HFSB_ARG, 0, "%s", sentence);
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* Sets the sentence {before}"{text}"{after}; text may be hostile. */
static void hfsbi_mcp_explain(hfsbi_mcp_message *m, const char *before,
                              hfsb_str text, const char *after) {
    hfsbi_fail(&m->err, HFSB_ARG, 0, "%s\"", before);
    hfsbi_err_quote(&m->err, text, 100);
    hfsbi_err_add(&m->err, "\"%s", after);
}

/* ---- the shape: JSON-RPC ---- */

static bool hfsbi_mcp_read_params(const hfsb_json_value *params,
                                  hfsbi_mcp_message     *m) {
    hfsb_json_type type = hfsb_json_type_of(params);
    if (type == HFSB_JSON_OBJECT) m->params = params;
    /* a notification is never answered, not even a malformed one */
    if (type == HFSB_JSON_OBJECT || type == HFSB_JSON_NULL ||
        m->kind == HFSBI_MCP_NOTIFICATION)
        return true;
    hfsbi_fail(&m->err, HFSB_ARG, 0, "params must be an object, not %s.",
               hfsb_json_type_name(type));
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* Fills kind, id and params; *method becomes the name of the method. */
static bool hfsbi_mcp_read_shape(const hfsb_json_value *root,
                                 hfsbi_mcp_message *m, hfsb_str *method) {
    const hfsb_json_value *id = hfsb_json_get(root, "id");
    const hfsb_json_value *name = hfsb_json_get(root, "method");
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT)
        return hfsbi_mcp_invalid(m, "A message must be a JSON-RPC 2.0 "
                                    "object.");
    if (hfsbi_mcp_is_id(id)) m->id = id;
    if (!hfsb_str_equal(hfsbi_json_get_str(root, "jsonrpc"), HFSB_LIT("2.0")))
        return hfsbi_mcp_invalid(m, "A message must have \"jsonrpc\": "
                                    "\"2.0\".");
    if (!name &&
        (hfsb_json_get(root, "result") || hfsb_json_get(root, "error"))) {
        m->kind = HFSBI_MCP_RESPONSE;
        return true;
    }
    if (hfsb_json_type_of(name) != HFSB_JSON_STRING)
        return hfsbi_mcp_invalid(m, "A message must have a method, a string.");
    if (id && !m->id)
        return hfsbi_mcp_invalid(m, "The id of a request must be a string or "
                                    "an integer.");
    *method = hfsb_json_str(name, HFSB_LIT(""));
    m->kind = id ? HFSBI_MCP_REQUEST : HFSBI_MCP_NOTIFICATION;
    return hfsbi_mcp_read_params(hfsb_json_get(root, "params"), m);
}

/* ---- modern requests: headers and _meta ---- */

/* True when a header contains `text`, plain or as =?base64?...?=. Encodes the
   text piece by piece on the stack, so that it cannot fail. */
static bool hfsbi_mcp_header_is(hfsb_str header, hfsb_str text) {
    char     room[65];
    hfsb_buf piece = HFSB_INIT;
    size_t   at = 0;
    if (header.len < 11 || !hfsb_str_starts(header, HFSB_LIT("=?base64?")) ||
        !hfsb_str_ends(header, HFSB_LIT("?=")))
        return hfsb_str_equal(header, text);
    header = hfsb_str_slice(header, 9, header.len - 2);
    piece.ptr = room;
    piece.cap = sizeof room; /* 48 bytes are 64 in base64: it never grows */
    for (; at < text.len; at += 48) {
        piece.len = 0;
        if (hfsb_base64_encode(hfsb_str_slice(text, at, at + 48), &piece) !=
                HFSB_OK ||
            !hfsb_str_starts(header, hfsb_buf_str(&piece)))
            return false;
        header = hfsb_str_slice(header, piece.len, header.len);
    }
    return header.len == 0;
}

/* A header must exist and repeat the value of the message. */
static bool hfsbi_mcp_check_header(hfsbi_mcp_message *m, const char *name,
                                   hfsb_str header, hfsb_str want,
                                   bool encoded) {
    if (!header.ptr) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "The header %s is missing: it must be ", name);
    } else {
        if (encoded ? hfsbi_mcp_header_is(header, want)
                    : hfsb_str_equal(header, want))
            return true;
        hfsbi_fail(&m->err, HFSB_ARG, 0, "The header %s is \"", name);
        hfsbi_err_quote(&m->err, header, 100);
        hfsbi_err_add(&m->err, "\", but the message has ");
    }
    hfsbi_err_add(&m->err, "\"");
    hfsbi_err_quote(&m->err, want, 100);
    hfsbi_err_add(&m->err, "\".");
    return hfsbi_mcp_refuse(m, HFSBI_MCP_HEADER, 400);
}

/* The member of params that Mcp-Name repeats, or NULL. */
static const hfsb_json_value *hfsbi_mcp_subject(const hfsbi_mcp_message *m,
                                                hfsb_str method) {
    if (hfsb_str_equal(method, HFSB_LIT("tools/call")) ||
        hfsb_str_equal(method, HFSB_LIT("prompts/get")))
        return hfsb_json_get(m->params, "name");
    if (hfsb_str_equal(method, HFSB_LIT("resources/read")))
        return hfsb_json_get(m->params, "uri");
    return NULL;
}

static bool hfsbi_mcp_check_headers(const hfsbi_mcp_head *head,
                                    hfsb_str method, hfsbi_mcp_message *m) {
    const hfsb_json_value *subject = hfsbi_mcp_subject(m, method);
    if (!hfsbi_mcp_check_header(m, "MCP-Protocol-Version", head->version,
                                m->version, false) ||
        !hfsbi_mcp_check_header(m, "Mcp-Method", head->method, method, true))
        return false;
    if (hfsb_json_type_of(subject) != HFSB_JSON_STRING) return true;
    return hfsbi_mcp_check_header(m, "Mcp-Name", head->name,
                                  hfsb_json_str(subject, HFSB_LIT("")), true);
}

static bool hfsbi_mcp_check_modern(const hfsbi_mcp_head *head, hfsb_str method,
                                   hfsbi_mcp_message *m) {
    const hfsb_json_value *meta = hfsb_json_get(m->params, "_meta");
    const hfsb_json_value *version =
        hfsb_json_get(meta, HFSBI_MCP_KEY "protocolVersion");
    const hfsb_json_value *capabilities =
        hfsb_json_get(meta, HFSBI_MCP_KEY "clientCapabilities");
    const hfsb_json_value *info =
        hfsb_json_get(meta, HFSBI_MCP_KEY "clientInfo");
    bool named = hfsb_json_type_of(version) == HFSB_JSON_STRING;
    int  level;
    m->version = hfsb_json_str(version, HFSB_LIT(""));
    if (head->version.ptr && named &&
        !hfsbi_mcp_check_header(m, "MCP-Protocol-Version", head->version,
                                m->version, false))
        return false;
    if (!named || hfsb_json_type_of(capabilities) != HFSB_JSON_OBJECT) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "params._meta must have \"" HFSBI_MCP_KEY "%s\", %s.",
                   named ? "clientCapabilities" : "protocolVersion",
                   named ? "an object" : "a string");
        return hfsbi_mcp_refuse(m, HFSBI_MCP_PARAMS, 400);
    }
    if (hfsbi_mcp_era_of(m->version) != HFSBI_ERA_MODERN) {
        hfsbi_mcp_explain(m, "Protocol version ", m->version,
                          " is not supported in a request's _meta; use "
                          "\"" HFSBI_MCP_MODERN "\", or initialize.");
        return hfsbi_mcp_refuse(m, HFSBI_MCP_VERSION, 400);
    }
    level =
        hfsbi_mcp_level(hfsbi_json_get_str(meta, HFSBI_MCP_KEY "logLevel"));
    if (level >= 0) m->level = level;
    m->client = hfsbi_json_get_str(info, "name");
    m->client_version = hfsbi_json_get_str(info, "version");
    return !head->http || hfsbi_mcp_check_headers(head, method, m);
}

/* Finds the era of a message and checks the rules of that era. */
static bool hfsbi_mcp_read_era(const hfsbi_mcp_head *head, hfsb_str method,
                               hfsbi_mcp_message *m) {
    const hfsb_json_value *meta = hfsb_json_get(m->params, "_meta");
    hfsbi_mcp_era          era = hfsbi_mcp_era_of(head->version);
    m->modern = era == HFSBI_ERA_MODERN ||
                hfsb_json_get(meta, HFSBI_MCP_KEY "protocolVersion") ||
                hfsb_str_equal(method, HFSB_LIT("server/discover"));
    if (m->modern && m->kind == HFSBI_MCP_REQUEST)
        return hfsbi_mcp_check_modern(head, method, m);
    if (!head->version.ptr) return true;
    m->version = head->version;
    if (era != HFSBI_ERA_UNKNOWN) return true;
    hfsbi_mcp_explain(
        m, "The header MCP-Protocol-Version is ", m->version,
        ", but must be one of 2024-11-05, 2025-03-26, 2025-06-18, "
        "2025-11-25 and 2026-07-28.");
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* ---- params of a method ---- */

/* Errors of a method are reported in band: 200 over HTTP. */
static bool hfsbi_mcp_bad_params(hfsbi_mcp_message *m) {
    return hfsbi_mcp_refuse(m, HFSBI_MCP_PARAMS, 200);
}

static bool hfsbi_mcp_read_call(hfsbi_mcp_message *m) {
    const hfsb_json_value *name = hfsb_json_get(m->params, "name");
    const hfsb_json_value *arguments = hfsb_json_get(m->params, "arguments");
    hfsb_json_type         type = hfsb_json_type_of(arguments);
    if (hfsb_json_type_of(name) != HFSB_JSON_STRING) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "tools/call: params.name must be a string, the name of a "
                   "tool, not %s.",
                   hfsb_json_type_name(hfsb_json_type_of(name)));
        return hfsbi_mcp_bad_params(m);
    }
    m->tool = hfsb_json_str(name, HFSB_LIT(""));
    if (type == HFSB_JSON_OBJECT) m->arguments = arguments;
    m->bad_arguments = type != HFSB_JSON_OBJECT && type != HFSB_JSON_NULL;
    return true;
}

/* The list has one page, so every cursor is invalid. */
static bool hfsbi_mcp_read_list(hfsbi_mcp_message *m) {
    const hfsb_json_value *cursor = hfsb_json_get(m->params, "cursor");
    hfsb_str               text = hfsb_json_str(cursor, HFSB_LIT("?"));
    if (hfsb_json_type_of(cursor) == HFSB_JSON_NULL || text.len == 0)
        return true;
    hfsbi_mcp_explain(m, "tools/list: invalid cursor ", text,
                      "; leave it out, the list has one page.");
    return hfsbi_mcp_bad_params(m);
}

static bool hfsbi_mcp_read_level(hfsbi_mcp_message *m) {
    hfsb_str level = hfsbi_json_get_str(m->params, "level");
    m->level = hfsbi_mcp_level(level);
    if (m->level >= 0) return true;
    hfsbi_mcp_explain(
        m, "logging/setLevel: level is ", level,
        ", but must be one of debug, info, notice, warning, error, "
        "critical, alert and emergency.");
    return hfsbi_mcp_bad_params(m);
}

/* Agrees on the version that the client asks for, or on the newest legacy
   one. */
static bool hfsbi_mcp_read_initialize(hfsbi_mcp_message *m) {
    m->version = hfsbi_json_get_str(m->params, "protocolVersion");
    if (hfsbi_mcp_era_of(m->version) != HFSBI_ERA_LEGACY)
        m->version = HFSB_LIT(HFSBI_MCP_LATEST);
    m->client = hfsb_json_str(
        hfsb_json_get(hfsb_json_get(m->params, "clientInfo"), "name"),
        HFSB_LIT(""));
    return true;
}

/* ---- methods ---- */

static const struct {
    const char      *name;
    hfsbi_mcp_method method;
    bool             legacy, modern;
    bool (*read)(hfsbi_mcp_message *m); /* the params; NULL: there are none */
} hfsbi_mcp_methods[] = {
    {"initialize", HFSBI_MCP_INITIALIZE, true, false,
     hfsbi_mcp_read_initialize},
    {"ping", HFSBI_MCP_PING, true, false, NULL},
    {"server/discover", HFSBI_MCP_DISCOVER, false, true, NULL},
    {"tools/list", HFSBI_MCP_LIST, true, true, hfsbi_mcp_read_list},
    {"tools/call", HFSBI_MCP_CALL, true, true, hfsbi_mcp_read_call},
    {"logging/setLevel", HFSBI_MCP_SET_LEVEL, true, false,
     hfsbi_mcp_read_level},
};

static void hfsbi_mcp_read_request(hfsb_str name, bool logging,
                                   hfsbi_mcp_message *m) {
    const hfsb_json_value *token =
        hfsb_json_get(hfsb_json_get(m->params, "_meta"), "progressToken");
    size_t i, n = sizeof hfsbi_mcp_methods / sizeof *hfsbi_mcp_methods;
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_mcp_methods[i].name)) &&
            (m->modern ? hfsbi_mcp_methods[i].modern
                       : hfsbi_mcp_methods[i].legacy))
            break;
    if (i == n ||
        (hfsbi_mcp_methods[i].method == HFSBI_MCP_SET_LEVEL && !logging)) {
        hfsbi_mcp_explain(m, "Unknown method ", name, ".");
        hfsbi_mcp_refuse(m, HFSBI_MCP_NO_METHOD, m->modern ? 404 : 200);
        return;
    }
    m->method = hfsbi_mcp_methods[i].method;
    if (hfsbi_mcp_is_id(token)) m->token = token;
    if (hfsbi_mcp_methods[i].read) (void)hfsbi_mcp_methods[i].read(m);
}

static void hfsbi_mcp_read_notification(hfsb_str           method,
                                        hfsbi_mcp_message *m) {
    const hfsb_json_value *id = hfsb_json_get(m->params, "requestId");
    if (!hfsb_str_equal(method, HFSB_LIT("notifications/cancelled")) ||
        !hfsbi_mcp_is_id(id))
        return;
    m->method = HFSBI_MCP_CANCELLED;
    m->target = id;
}

HFSBI_FN void hfsbi_mcp_read(const hfsb_json_value *root,
                             const hfsbi_mcp_head *head, bool logging,
                             hfsbi_mcp_message *out) {
    hfsb_str method = HFSB_LIT("");
    memset(out, 0, sizeof *out);
    out->version = out->tool = HFSB_LIT("");
    out->client = out->client_version = HFSB_LIT("");
    out->level = HFSBI_MCP_SILENT;
    if (!hfsbi_mcp_read_shape(root, out, &method) ||
        !hfsbi_mcp_read_era(head, method, out))
        return;
    if (out->kind == HFSBI_MCP_NOTIFICATION)
        hfsbi_mcp_read_notification(method, out);
    if (out->kind == HFSBI_MCP_REQUEST)
        hfsbi_mcp_read_request(method, logging, out);
}

/* ---- frames ---- */

/* Writes whole numbers without a fraction: some clients accept no other.
   Infinity and NaN become 0. */
static void hfsbi_mcp_put_number(hfsb_buf *sink, double value) {
    const double     most = 9007199254740992.0;
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, sink, NULL);
    if (!(value - value <= 0)) value = 0;
    if (value >= -most && value <= most &&
        value - (double)(long long)value >= 0 &&
        value - (double)(long long)value <= 0)
        hfsb_json_put_int(&w, (long long)value);
    else hfsb_json_put_double(&w, value);
    (void)hfsb_json_writer_finish(&w, NULL);
}

/* Starts a reply whose member `member` stays open. Returns its mark. */
static size_t hfsbi_mcp_begin_reply(hfsb_buf *out, const hfsb_json_value *id,
                                    const char *member) {
    size_t mark = out->len;
    hfsb_buf_append(out, HFSB_LIT("{\"jsonrpc\":\"2.0\",\"id\":"));
    (void)hfsb_json_write(id, NULL, out, NULL);
    hfsb_buf_printf(out, ",\"%s\":{", member);
    return mark;
}

static hfsb_status hfsbi_mcp_end_frame(hfsb_buf *out, size_t mark) {
    hfsb_buf_append(out, HFSB_LIT("}}"));
    return hfsb_buf_finish(out, mark);
}

static size_t hfsbi_mcp_begin_notification(hfsb_buf *out, const char *name) {
    size_t mark = out->len;
    hfsb_buf_printf(out,
                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\","
                    "\"params\":{",
                    name);
    return mark;
}

/* ---- errors ---- */

static size_t hfsbi_mcp_begin_error(hfsb_buf *out, const hfsb_json_value *id,
                                    int code, hfsb_str sentence) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "error");
    hfsb_buf_printf(out, "\"code\":%d,\"message\":", code);
    hfsbi_json_put_quoted(out, sentence);
    return mark;
}

HFSBI_FN hfsb_status hfsbi_mcp_put_fault(const hfsbi_mcp_message *m,
                                         hfsb_buf                *out) {
    size_t mark =
        hfsbi_mcp_begin_error(out, m->id, m->code, hfsb_cstr(m->err.msg));
    if (m->code == HFSBI_MCP_VERSION) { /* lets the client try again */
        hfsb_buf_append(out, HFSB_LIT(",\"data\":{\"supported\":"
                                      "[\"" HFSBI_MCP_MODERN "\"],"
                                      "\"requested\":"));
        hfsbi_json_put_quoted(out, m->version);
        hfsb_buf_append_byte(out, '}');
    }
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_error(const hfsb_json_value *id, int code,
                                         hfsb_str sentence, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_error(out, id, code, sentence);
    return hfsbi_mcp_end_frame(out, mark);
}

/* ---- results ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_empty(const hfsb_json_value *id,
                                         hfsb_buf              *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    return hfsbi_mcp_end_frame(out, mark);
}

static void hfsbi_mcp_put_server(const hfsbi_mcp_about *about,
                                 hfsb_buf              *sink) {
    hfsb_buf_append(sink, HFSB_LIT("{\"name\":"));
    hfsbi_json_put_quoted(sink, hfsb_buf_str(&about->name));
    if (about->title.len) {
        hfsb_buf_append(sink, HFSB_LIT(",\"title\":"));
        hfsbi_json_put_quoted(sink, hfsb_buf_str(&about->title));
    }
    hfsb_buf_append(sink, HFSB_LIT(",\"version\":"));
    hfsbi_json_put_quoted(sink, hfsb_buf_str(&about->version));
    hfsb_buf_append_byte(sink, '}');
}

/* No listChanged: the list never changes while the server runs. */
static void hfsbi_mcp_put_capabilities(const hfsbi_mcp_about *about,
                                       hfsb_buf              *sink) {
    hfsb_buf_append(sink, HFSB_LIT("\"capabilities\":{"));
    if (about->logging) hfsb_buf_append(sink, HFSB_LIT("\"logging\":{},"));
    hfsb_buf_append(sink, HFSB_LIT("\"tools\":{}}"));
}

static void hfsbi_mcp_put_instructions(const hfsbi_mcp_about *about,
                                       hfsb_buf              *sink) {
    if (!about->instructions.len) return;
    hfsb_buf_append(sink, HFSB_LIT(",\"instructions\":"));
    hfsbi_json_put_quoted(sink, hfsb_buf_str(&about->instructions));
}

/* Ends every result of a modern request. */
static void hfsbi_mcp_put_envelope(const hfsbi_mcp_about *about,
                                   hfsb_buf              *sink) {
    hfsb_buf_append(sink, HFSB_LIT(",\"resultType\":\"complete\",\"_meta\":{"
                                   "\"io.modelcontextprotocol/serverInfo\":"));
    hfsbi_mcp_put_server(about, sink);
    hfsb_buf_append_byte(sink, '}');
}

/* Lets clients cache a result for a minute: it never changes while the server
   runs, but the next server may have other options. Private, because only
   holders of the token may see the tools: no shared cache may store it. */
static void hfsbi_mcp_put_cache(hfsb_buf *sink) {
    hfsb_buf_append(sink,
                    HFSB_LIT(",\"ttlMs\":60000,\"cacheScope\":\"private\""));
}

HFSBI_FN hfsb_status hfsbi_mcp_put_initialize(const hfsbi_mcp_about *about,
                                              const hfsb_json_value *id,
                                              hfsb_str               version,
                                              hfsb_buf              *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(out, HFSB_LIT("\"protocolVersion\":"));
    hfsbi_json_put_quoted(out, version);
    hfsb_buf_append_byte(out, ',');
    hfsbi_mcp_put_capabilities(about, out);
    hfsb_buf_append(out, HFSB_LIT(",\"serverInfo\":"));
    hfsbi_mcp_put_server(about, out);
    hfsbi_mcp_put_instructions(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_discover(const hfsbi_mcp_about *about,
                                            const hfsb_json_value *id,
                                            hfsb_buf              *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(
        out, HFSB_LIT("\"supportedVersions\":[\"" HFSBI_MCP_MODERN "\"],"));
    hfsbi_mcp_put_capabilities(about, out);
    hfsbi_mcp_put_instructions(about, out);
    hfsbi_mcp_put_cache(out);
    hfsbi_mcp_put_envelope(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_list(const hfsbi_mcp_about *about,
                                        const hfsb_json_value *id, bool modern,
                                        hfsb_str tools, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(out, HFSB_LIT("\"tools\":"));
    hfsb_buf_append(out, tools.len ? tools : HFSB_LIT("[]"));
    if (modern) {
        hfsbi_mcp_put_cache(out);
        hfsbi_mcp_put_envelope(about, out);
    }
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_result(const hfsbi_mcp_about *about,
                                          const hfsb_json_value *id,
                                          bool modern, hfsb_str blocks,
                                          bool is_error, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(out, HFSB_LIT("\"content\":["));
    hfsb_buf_append(out, blocks);
    hfsb_buf_append_byte(out, ']');
    if (is_error) hfsb_buf_append(out, HFSB_LIT(",\"isError\":true"));
    if (modern) hfsbi_mcp_put_envelope(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

/* ---- notifications ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_progress(const hfsb_json_value *token,
                                            double progress, double total,
                                            hfsb_str message, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_notification(out, "progress");
    hfsb_buf_append(out, HFSB_LIT("\"progressToken\":"));
    (void)hfsb_json_write(token, NULL, out, NULL);
    hfsb_buf_append(out, HFSB_LIT(",\"progress\":"));
    hfsbi_mcp_put_number(out, progress);
    if (total > 0) {
        hfsb_buf_append(out, HFSB_LIT(",\"total\":"));
        hfsbi_mcp_put_number(out, total);
    }
    if (message.len) {
        hfsb_buf_append(out, HFSB_LIT(",\"message\":"));
        hfsbi_json_put_quoted(out, message);
    }
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_log(const char *level, hfsb_str text,
                                       hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_notification(out, "message");
    hfsb_buf_append(out, HFSB_LIT("\"level\":"));
    hfsbi_json_put_quoted(out, hfsb_cstr(level));
    hfsb_buf_append(out, HFSB_LIT(",\"data\":"));
    hfsbi_json_put_quoted(out, text);
    return hfsbi_mcp_end_frame(out, mark);
}
