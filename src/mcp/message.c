/* message.c - messages of MCP to a client. */
#include "mcp_private.h"
#include "../core/core_private.h"

/* ==== server mcp message ==== */

/* what a message of MCP says, or what is wrong with
   it. */

#define HFSBI_MCP_KEY "io.modelcontextprotocol/"

/* ---- words of the protocol ---- */

/* The modern one is the last. */
static const char *const hfsbi_mcp_versions[] = {
    "2024-11-05", "2025-03-26", "2025-06-18", HFSBI_MCP_LATEST,
    HFSBI_MCP_MODERN};

HFSBI_FN bool hfsbi_mcp_version_known(hfsb_str text, bool *modern) {
    size_t i, n = sizeof hfsbi_mcp_versions / sizeof *hfsbi_mcp_versions;
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(text, hfsb_cstr(hfsbi_mcp_versions[i]))) {
            *modern = i == n - 1;
            return true;
        }
    *modern = false;
    return false;
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

/* What JSON-RPC allows as an id, and MCP as a token. */
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

/* Takes the text of one character of a JSON string, as our writer writes it,
   off *text; false when it is another. Compared so, and not by writing the id
   and comparing texts, because that can not fail for want of memory: a cancel
   must not get lost. */
static bool hfsbi_mcp_same_char(unsigned char c, hfsb_str *text) {
    static const char control[] = "\0\0\0\0\0\0\0\0btn\0fr";
    static const char hex[] = "0123456789abcdef";
    char              want[6] = {'\\', 'u', '0', '0', '0', '0'};
    size_t            n = 1;
    if (c < sizeof control && control[c]) {
        want[1] = control[c];
        n = 2;
    } else if (c < 0x20) {
        want[4] = hex[c >> 4];
        want[5] = hex[c & 15];
        n = 6;
    } else if (c == '"' || c == '\\') {
        want[1] = (char)c;
        n = 2;
    } else {
        want[0] = (char)c;
    }
    if (!hfsb_str_starts(*text, hfsb_str_make(want, n))) return false;
    *text = hfsb_str_slice(*text, n, text->len);
    return true;
}

static bool hfsbi_mcp_same_string(hfsb_str s, hfsb_str text) {
    size_t i;
    if (text.len < 2 || text.ptr[0] != '"') return false;
    text = hfsb_str_slice(text, 1, text.len);
    for (i = 0; i < s.len; i++)
        if (!hfsbi_mcp_same_char((unsigned char)s.ptr[i], &text)) return false;
    return hfsb_str_equal(text, HFSB_LIT("\""));
}

HFSBI_FN bool hfsbi_mcp_same_id(const hfsb_json_value *a, hfsb_str b_text) {
    char   text[32];
    size_t n = 0;
    switch (hfsb_json_type_of(a)) {
    case HFSB_JSON_STRING:
        return hfsbi_mcp_same_string(hfsb_json_str(a, HFSB_LIT("")), b_text);
    case HFSB_JSON_INT:
        n = hfsbi_number_write_int(hfsb_json_int(a, 0), text);
        break;
    case HFSB_JSON_UINT:
        n = hfsbi_number_write_uint(hfsb_json_uint(a, 0), text);
        break;
    case HFSB_JSON_DOUBLE:
        n = hfsbi_number_write_double(hfsb_json_double(a, 0), text);
        break;
    case HFSB_JSON_NULL:
    case HFSB_JSON_BOOL:
    case HFSB_JSON_ARRAY:
    case HFSB_JSON_OBJECT: return false;
    }
    return hfsb_str_equal(hfsb_str_make(text, n), b_text);
}

/* ---- faults ---- */

/* The sentence is in m->err already. False, for the checks below. */
static bool hfsbi_mcp_refuse(hfsbi_mcp_message *m, int code, int status) {
    m->kind = HFSBI_MCP_FAULT;
    m->code = code;
    m->status = status;
    return false;
}

static bool hfsbi_mcp_invalid(hfsbi_mcp_message *m, const char *sentence) {
    hfsbi_fail(&m->err, HFSB_ARG, 0, "%s", sentence);
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* {before}"{text}"{after} */
static void hfsbi_mcp_say(hfsbi_mcp_message *m, const char *before,
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
    /* a notification is never answered, not even with what is wrong */
    if (type == HFSB_JSON_OBJECT || type == HFSB_JSON_NULL ||
        m->kind == HFSBI_MCP_NOTIFICATION)
        return true;
    hfsbi_fail(&m->err, HFSB_ARG, 0, "params must be an object, not %s.",
               hfsb_json_type_name(type));
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* Fills kind, id and params, and *method with its name. */
static bool hfsbi_mcp_read_shape(const hfsb_json_value *root,
                                 hfsbi_mcp_message *m, hfsb_str *method) {
    const hfsb_json_value *id = hfsb_json_get(root, "id");
    const hfsb_json_value *name = hfsb_json_get(root, "method");
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT)
        return hfsbi_mcp_invalid(m, "A message must be a JSON object of "
                                    "JSON-RPC 2.0.");
    if (hfsbi_mcp_is_id(id)) m->id = id;
    if (!hfsb_str_equal(
            hfsb_json_str(hfsb_json_get(root, "jsonrpc"), HFSB_LIT("")),
            HFSB_LIT("2.0")))
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

/* ---- the newest revision: what every request carries ---- */

static bool hfsbi_mcp_mismatch(hfsbi_mcp_message *m) {
    return hfsbi_mcp_refuse(m, HFSBI_MCP_HEADER, 400);
}

/* True when a header holds `text`, as it is or as =?base64?...?=. */
static bool hfsbi_mcp_header_is(hfsb_str header, hfsb_str text) {
    char     room[65];
    hfsb_buf piece = HFSB_INIT;
    size_t   at = 0;
    if (header.len < 11 || !hfsb_str_starts(header, HFSB_LIT("=?base64?")) ||
        !hfsb_str_ends(header, HFSB_LIT("?=")))
        return hfsb_str_equal(header, text);
    header = hfsb_str_slice(header, 9, header.len - 2);
    piece.ptr = room;
    piece.cap = sizeof room; /* for 48 bytes in base64: it never grows */
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

/* A header must be there and hold what the message says. */
static bool hfsbi_mcp_check_header(hfsbi_mcp_message *m, const char *name,
                                   hfsb_str header, hfsb_str want,
                                   bool encoded) {
    if (!header.ptr) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "The header %s is missing: it must be ", name);
    } else {
        header = hfsbi_trim(header);
        if (encoded ? hfsbi_mcp_header_is(header, want)
                    : hfsb_str_equal(header, want))
            return true;
        hfsbi_fail(&m->err, HFSB_ARG, 0, "The header %s is \"", name);
        hfsbi_err_quote(&m->err, header, 100);
        hfsbi_err_add(&m->err, "\" and not as in the message, ");
    }
    hfsbi_err_add(&m->err, "\"");
    hfsbi_err_quote(&m->err, want, 100);
    hfsbi_err_add(&m->err, "\".");
    return hfsbi_mcp_mismatch(m);
}

/* The member of params that Mcp-Name repeats, or NULL. */
static const hfsb_json_value *hfsbi_mcp_named(const hfsbi_mcp_message *m,
                                              hfsb_str method) {
    if (hfsb_str_equal(method, HFSB_LIT("tools/call")) ||
        hfsb_str_equal(method, HFSB_LIT("prompts/get")))
        return hfsb_json_get(m->params, "name");
    if (hfsb_str_equal(method, HFSB_LIT("resources/read")))
        return hfsb_json_get(m->params, "uri");
    return NULL;
}

static bool hfsbi_mcp_check_heads(const hfsbi_mcp_head *head, hfsb_str method,
                                  hfsbi_mcp_message *m) {
    const hfsb_json_value *named = hfsbi_mcp_named(m, method);
    if (!hfsbi_mcp_check_header(m, "MCP-Protocol-Version", head->version,
                                m->version, false) ||
        !hfsbi_mcp_check_header(m, "Mcp-Method", head->method, method, true))
        return false;
    if (hfsb_json_type_of(named) != HFSB_JSON_STRING) return true;
    return hfsbi_mcp_check_header(m, "Mcp-Name", head->name,
                                  hfsb_json_str(named, HFSB_LIT("")), true);
}

/* In the order that clients and the conformance suite expect. */
static bool hfsbi_mcp_check_modern(const hfsbi_mcp_head *head, hfsb_str method,
                                   hfsbi_mcp_message *m) {
    const hfsb_json_value *meta = hfsb_json_get(m->params, "_meta");
    const hfsb_json_value *version =
        hfsb_json_get(meta, HFSBI_MCP_KEY "protocolVersion");
    const hfsb_json_value *able =
        hfsb_json_get(meta, HFSBI_MCP_KEY "clientCapabilities");
    bool named = hfsb_json_type_of(version) == HFSB_JSON_STRING, modern;
    m->version = hfsb_json_str(version, HFSB_LIT(""));
    if (head->http && head->version.ptr && named &&
        !hfsbi_mcp_check_header(m, "MCP-Protocol-Version", head->version,
                                m->version, false))
        return false;
    if (!named || hfsb_json_type_of(able) != HFSB_JSON_OBJECT) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "params._meta must have \"" HFSBI_MCP_KEY "%s\", %s.",
                   named ? "clientCapabilities" : "protocolVersion",
                   named ? "an object" : "a string");
        return hfsbi_mcp_refuse(m, HFSBI_MCP_PARAMS, 400);
    }
    if (!hfsbi_mcp_version_known(m->version, &modern) || !modern) {
        hfsbi_mcp_say(m, "Protocol version ", m->version,
                      " is not supported in a request's _meta; use "
                      "\"" HFSBI_MCP_MODERN "\", or initialize.");
        return hfsbi_mcp_refuse(m, HFSBI_MCP_VERSION, 400);
    }
    m->log_level = hfsb_json_str(hfsb_json_get(meta, HFSBI_MCP_KEY "logLevel"),
                                 HFSB_LIT(""));
    if (hfsbi_mcp_level(m->log_level) < 0) m->log_level = HFSB_LIT("");
    return !head->http || hfsbi_mcp_check_heads(head, method, m);
}

/* Which era the message belongs to, and whether it keeps its rules. */
static bool hfsbi_mcp_read_era(const hfsbi_mcp_head *head, hfsb_str method,
                               hfsbi_mcp_message *m) {
    const hfsb_json_value *meta = hfsb_json_get(m->params, "_meta");
    bool has_header = head->http && head->version.ptr, modern = false;
    bool known = has_header &&
                 hfsbi_mcp_version_known(hfsbi_trim(head->version), &modern);
    m->modern = modern ||
                hfsb_json_get(meta, HFSBI_MCP_KEY "protocolVersion") ||
                hfsb_str_equal(method, HFSB_LIT("server/discover"));
    if (m->modern && m->kind == HFSBI_MCP_REQUEST)
        return hfsbi_mcp_check_modern(head, method, m);
    if (has_header) m->version = hfsbi_trim(head->version);
    if (!has_header || known) return true;
    hfsbi_mcp_say(m, "The header MCP-Protocol-Version is ", m->version,
                  ", which is none of 2024-11-05, 2025-03-26, 2025-06-18, "
                  "2025-11-25 and 2026-07-28.");
    return hfsbi_mcp_refuse(m, HFSBI_MCP_INVALID, 400);
}

/* ---- methods ---- */

static const struct {
    const char      *name;
    hfsbi_mcp_method method;
    bool             legacy, modern;
} hfsbi_mcp_methods[] = {
    {"initialize", HFSBI_MCP_INITIALIZE, true, false},
    {"ping", HFSBI_MCP_PING, true, false},
    {"server/discover", HFSBI_MCP_DISCOVER, false, true},
    {"tools/list", HFSBI_MCP_LIST, true, true},
    {"tools/call", HFSBI_MCP_CALL, true, true},
    {"logging/setLevel", HFSBI_MCP_SET_LEVEL, true, false},
};

static bool hfsbi_mcp_find_method(hfsb_str name, bool logging,
                                  hfsbi_mcp_message *m) {
    size_t i, n = sizeof hfsbi_mcp_methods / sizeof *hfsbi_mcp_methods;
    for (i = 0; i < n; i++) {
        if (!hfsb_str_equal(name, hfsb_cstr(hfsbi_mcp_methods[i].name)) ||
            !(m->modern ? hfsbi_mcp_methods[i].modern
                        : hfsbi_mcp_methods[i].legacy))
            continue;
        m->method = hfsbi_mcp_methods[i].method;
        if (m->method != HFSBI_MCP_SET_LEVEL || logging) return true;
    }
    m->method = HFSBI_MCP_OTHER;
    hfsbi_mcp_say(m, "There is no method ", name, " here.");
    return hfsbi_mcp_refuse(m, HFSBI_MCP_NO_METHOD, m->modern ? 404 : 200);
}

/* What a method finds wrong is in band: 200 over HTTP. */
static bool hfsbi_mcp_bad_params(hfsbi_mcp_message *m) {
    return hfsbi_mcp_refuse(m, HFSBI_MCP_PARAMS, 200);
}

static bool hfsbi_mcp_read_call(hfsbi_mcp_message *m) {
    const hfsb_json_value *name = hfsb_json_get(m->params, "name");
    const hfsb_json_value *arguments = hfsb_json_get(m->params, "arguments");
    hfsb_json_type         type = hfsb_json_type_of(arguments);
    if (hfsb_json_type_of(name) != HFSB_JSON_STRING) {
        hfsbi_fail(&m->err, HFSB_ARG, 0,
                   "tools/call: params.name must be the name of a tool, a "
                   "string, not %s.",
                   hfsb_json_type_name(hfsb_json_type_of(name)));
        return hfsbi_mcp_bad_params(m);
    }
    m->tool = hfsb_json_str(name, HFSB_LIT(""));
    if (type == HFSB_JSON_OBJECT) m->arguments = arguments;
    m->bad_arguments = type != HFSB_JSON_OBJECT && type != HFSB_JSON_NULL;
    return true;
}

/* There is one page, so that no cursor but none is one of ours. */
static bool hfsbi_mcp_read_list(hfsbi_mcp_message *m) {
    const hfsb_json_value *cursor = hfsb_json_get(m->params, "cursor");
    hfsb_str               text = hfsb_json_str(cursor, HFSB_LIT("?"));
    if (hfsb_json_type_of(cursor) == HFSB_JSON_NULL || text.len == 0)
        return true;
    hfsbi_mcp_say(m, "tools/list: there is no page ", text,
                  "; leave cursor out, the list has one page.");
    return hfsbi_mcp_bad_params(m);
}

static bool hfsbi_mcp_read_level(hfsbi_mcp_message *m) {
    hfsb_str level =
        hfsb_json_str(hfsb_json_get(m->params, "level"), HFSB_LIT(""));
    if (hfsbi_mcp_level(level) >= 0) return true;
    hfsbi_mcp_say(m, "logging/setLevel: level is ", level,
                  ", which is none of debug, info, notice, warning, error, "
                  "critical, alert and emergency.");
    return hfsbi_mcp_bad_params(m);
}

static void hfsbi_mcp_read_request(hfsbi_mcp_message *m) {
    const hfsb_json_value *token =
        hfsb_json_get(hfsb_json_get(m->params, "_meta"), "progressToken");
    if (hfsbi_mcp_is_id(token)) m->token = token;
    if (m->method == HFSBI_MCP_CALL) hfsbi_mcp_read_call(m);
    if (m->method == HFSBI_MCP_LIST) hfsbi_mcp_read_list(m);
    if (m->method == HFSBI_MCP_SET_LEVEL) hfsbi_mcp_read_level(m);
    if (m->method == HFSBI_MCP_INITIALIZE)
        m->version = hfsb_json_str(hfsb_json_get(m->params, "protocolVersion"),
                                   HFSB_LIT(""));
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
    out->version = out->log_level = out->tool = HFSB_LIT("");
    if (!hfsbi_mcp_read_shape(root, out, &method) ||
        !hfsbi_mcp_read_era(head, method, out))
        return;
    if (out->kind == HFSBI_MCP_NOTIFICATION)
        hfsbi_mcp_read_notification(method, out);
    if (out->kind == HFSBI_MCP_REQUEST &&
        hfsbi_mcp_find_method(method, logging, out))
        hfsbi_mcp_read_request(out);
}

/* Each is written as one line: the only bytes that are not ours go through
   the JSON writer, which escapes line feeds and repairs what is not UTF-8. */

/* A whole number is written as one: some clients read no other. What is no
   number is 0. */
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

HFSBI_FN hfsb_status hfsbi_mcp_id_text(const hfsb_json_value *id,
                                       hfsb_buf              *out) {
    return hfsb_json_write(id, NULL, out, NULL);
}

/* ---- frames ---- */

static size_t hfsbi_mcp_begin_reply(hfsb_buf *out, hfsb_str id,
                                    const char *member) {
    size_t mark = out->len;
    hfsb_buf_append(out, HFSB_LIT("{\"jsonrpc\":\"2.0\",\"id\":"));
    hfsb_buf_append(out, id);
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

static size_t hfsbi_mcp_begin_error(hfsb_buf *out, hfsb_str id, int code,
                                    hfsb_str sentence) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "error");
    hfsb_buf_printf(out, "\"code\":%d,\"message\":", code);
    hfsbi_json_put_quoted(out, sentence);
    return mark;
}

HFSBI_FN hfsb_status hfsbi_mcp_put_error(hfsb_str id, int code,
                                         hfsb_str sentence, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_error(out, id, code, sentence);
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_fault(const hfsbi_mcp_message *m,
                                         hfsb_buf                *out) {
    hfsb_buf    id = HFSB_INIT;
    size_t      mark;
    hfsb_status st;
    id.alloc = out->alloc;
    st = hfsbi_mcp_id_text(m->id, &id);
    if (st == HFSB_OK) {
        mark = hfsbi_mcp_begin_error(out, hfsb_buf_str(&id), m->code,
                                     hfsb_cstr(m->err.msg));
        if (m->code == HFSBI_MCP_VERSION) { /* what a client goes on with */
            hfsb_buf_append(out, HFSB_LIT(",\"data\":{\"supported\":"
                                          "[\"" HFSBI_MCP_MODERN "\"],"
                                          "\"requested\":"));
            hfsbi_json_put_quoted(out, m->version);
            hfsb_buf_append_byte(out, '}');
        }
        st = hfsbi_mcp_end_frame(out, mark);
    }
    hfsb_buf_free(&id);
    return st;
}

/* ---- results ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_empty(hfsb_str id, hfsb_buf *out) {
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

/* No listChanged: the list stays as it is while the server lives. */
static void hfsbi_mcp_put_abilities(const hfsbi_mcp_about *about,
                                    hfsb_buf              *sink) {
    hfsb_buf_append(sink, HFSB_LIT("\"capabilities\":{"));
    if (about->logging) hfsb_buf_append(sink, HFSB_LIT("\"logging\":{},"));
    hfsb_buf_append(sink, HFSB_LIT("\"tools\":{}}"));
}

static void hfsbi_mcp_put_words(const hfsbi_mcp_about *about, hfsb_buf *sink) {
    if (!about->instructions.len) return;
    hfsb_buf_append(sink, HFSB_LIT(",\"instructions\":"));
    hfsbi_json_put_quoted(sink, hfsb_buf_str(&about->instructions));
}

/* What every result of the newest revision ends with. */
static void hfsbi_mcp_put_envelope(const hfsbi_mcp_about *about,
                                   hfsb_buf              *sink) {
    hfsb_buf_append(sink, HFSB_LIT(",\"resultType\":\"complete\",\"_meta\":{"
                                   "\"io.modelcontextprotocol/serverInfo\":"));
    hfsbi_mcp_put_server(about, sink);
    hfsb_buf_append_byte(sink, '}');
}

/* How long a client may keep what it was told: it does not change while the
   server lives, but the next one may be started with other options, which
   should be seen within a minute. Private, since what is offered is for who
   has the token: no cache between us may give it to others. */
static void hfsbi_mcp_put_cache(hfsb_buf *sink) {
    hfsb_buf_append(sink,
                    HFSB_LIT(",\"ttlMs\":60000,\"cacheScope\":\"private\""));
}

HFSBI_FN hfsb_status hfsbi_mcp_put_initialize(const hfsbi_mcp_about *about,
                                              hfsb_str id, hfsb_str version,
                                              hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    bool   modern;
    if (!hfsbi_mcp_version_known(version, &modern) || modern)
        version = HFSB_LIT(HFSBI_MCP_LATEST);
    hfsb_buf_append(out, HFSB_LIT("\"protocolVersion\":"));
    hfsbi_json_put_quoted(out, version);
    hfsb_buf_append_byte(out, ',');
    hfsbi_mcp_put_abilities(about, out);
    hfsb_buf_append(out, HFSB_LIT(",\"serverInfo\":"));
    hfsbi_mcp_put_server(about, out);
    hfsbi_mcp_put_words(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_discover(const hfsbi_mcp_about *about,
                                            hfsb_str id, hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(
        out, HFSB_LIT("\"supportedVersions\":[\"" HFSBI_MCP_MODERN "\"],"));
    hfsbi_mcp_put_abilities(about, out);
    hfsbi_mcp_put_words(about, out);
    hfsbi_mcp_put_cache(out);
    hfsbi_mcp_put_envelope(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_list(const hfsbi_mcp_about *about,
                                        hfsb_str id, bool modern,
                                        hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(out, HFSB_LIT("\"tools\":"));
    hfsb_buf_append(out, about->tools.len ? hfsb_buf_str(&about->tools)
                                          : HFSB_LIT("[]"));
    if (modern) {
        hfsbi_mcp_put_cache(out);
        hfsbi_mcp_put_envelope(about, out);
    }
    return hfsbi_mcp_end_frame(out, mark);
}

HFSBI_FN hfsb_status hfsbi_mcp_put_result(const hfsbi_mcp_about *about,
                                          hfsb_str id, bool modern,
                                          hfsb_str blocks, bool is_error,
                                          hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_reply(out, id, "result");
    hfsb_buf_append(out, HFSB_LIT("\"content\":["));
    hfsb_buf_append(out, blocks);
    hfsb_buf_append_byte(out, ']');
    if (is_error) hfsb_buf_append(out, HFSB_LIT(",\"isError\":true"));
    if (modern) hfsbi_mcp_put_envelope(about, out);
    return hfsbi_mcp_end_frame(out, mark);
}

/* ---- notifications ---- */

HFSBI_FN hfsb_status hfsbi_mcp_put_progress(hfsb_str token, double progress,
                                            double total, hfsb_str message,
                                            hfsb_buf *out) {
    size_t mark = hfsbi_mcp_begin_notification(out, "progress");
    hfsb_buf_append(out, HFSB_LIT("\"progressToken\":"));
    hfsb_buf_append(out, token);
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
