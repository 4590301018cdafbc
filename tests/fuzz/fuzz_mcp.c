/* fuzz_mcp.c - libFuzzer target for MCP: messages as they come over stdio and
   over HTTP.

   The input: a byte for the way, a byte for memory that fails (0: none does),
   then for stdio lines, for HTTP requests: the fields MCP-Protocol-Version,
   Mcp-Method and Mcp-Name (empty: absent) and the body, 0x1F after each
   field, 0x1E between the requests. They go to a server with the tools that
   only read, in a small root, and one tool of the program's own.
   Oracle: every message to the client is one line of JSON-RPC; a request is
   answered once, with its own id, and with an envelope of the right era; a
   notification is not answered; a cancelled call may be without an answer;
   nothing is under way in the end. Without memory: as many answers, whole or
   empty. */
#define T_SERVER
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp_private.h"
#endif
#include "must.h"

#define MOST 4200 /* answers of one input */

static hfsb_server       *server;
static hfsb_mcp          *mcp;
static hfsbi_mcp_session *session;
static t_heap             heap;
static char               root[64];

/* What a message is to be answered with. */
typedef struct answer {
    hfsb_buf id;     /* as JSON */
    bool     modern; /* a result of that era */
    bool     given;
} answer;

static struct client {
    hfsbi_mcp_channel channel; /* first */
    answer            list[MOST];
    size_t            count;
    size_t            replies, dropped;
    bool              cancels; /* some message did */
} client;

/* ---- the server ---- */

static void echo(void *user, hfsb_mcp_call *call,
                 const hfsb_json_value *arguments) {
    hfsb_str text =
        hfsb_json_str(hfsb_json_get(arguments, "text"), HFSB_LIT("\xFF\n"));
    (void)user;
    hfsb_mcp_progress(call, hfsb_json_double(hfsb_json_get(arguments, "at"),
                                             0),
                      1, "a\nb");
    hfsb_mcp_log(call, "warning", text);
    hfsb_mcp_str(call, text);
    hfsb_mcp_image(call, "image/png", text);
    hfsb_mcp_resource(call, text, "text/plain", text);
    if (hfsb_json_get(arguments, "fail")) hfsb_mcp_fail(call, "no\n%d", 5);
}

static void remove_root(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    if (root[0] && system(command) != 0) return;
}

static void put(const char *name, const char *text, size_t len) {
    char  path[128];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", root, name);
    f = fopen(path, "wb");
    MUST(f && fwrite(text, 1, len, f) == len && fclose(f) == 0);
}

static void open_server(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_mcp_opts    m = HFSB_INIT;
    hfsb_tools_opts  t = HFSB_INIT;
    hfsb_mcp_tool    tool = HFSB_INIT;
    snprintf(root, sizeof root, "/tmp/hfsb-fuzz-XXXXXX");
    MUST(mkdtemp(root));
    atexit(remove_root);
    put("a", "one\ntwo\n\xFFthree", 14);
    put("b.png", "\x89PNG\r\n\x1a\n\0\0", 10);
    o.token = HFSB_LIT("t");
    o.no_threads = true;
    o.alloc.fn = t_heap_fn;
    o.alloc.user = &heap;
    MUST(hfsb_server_open(&o, &server, NULL) == HFSB_OK);
    t.root = hfsb_cstr(root);
    m.tools = &t;
    m.read_only = true;
    m.path = "";
    m.logging = true;
    MUST(hfsb_server_add_mcp(server, &m, &mcp, NULL) == HFSB_OK);
    tool.name = "echo";
    tool.fn = echo;
    MUST(hfsb_mcp_add_tool(mcp, &tool, NULL) == HFSB_OK);
    session = hfsbi_mcp_session_new(mcp);
    MUST(session);
}

/* ---- the client ---- */

/* One line of JSON-RPC. */
static void parse_message(hfsb_str text, hfsb_json_doc *doc) {
    MUST(hfsb_str_find_byte(text, '\n') == HFSB_NPOS);
    MUST(hfsb_utf8_validate(text) == text.len);
    MUST(hfsb_json_parse(text, NULL, doc, NULL) == HFSB_OK);
    MUST(hfsb_str_equal(hfsb_json_str(hfsb_json_get(doc->root, "jsonrpc"),
                                      HFSB_LIT("")),
                        HFSB_LIT("2.0")));
}

static void check_result(const hfsb_json_value *result, bool modern) {
    hfsb_str type = hfsb_json_str(hfsb_json_get(result, "resultType"),
                                  HFSB_LIT(""));
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(result, "content"));
    MUST(hfsb_json_type_of(result) == HFSB_JSON_OBJECT);
    MUST(hfsb_str_equal(type, HFSB_LIT("complete")) == modern);
    MUST((hfsb_json_get(result, "_meta") != NULL) == modern);
    while (hfsb_json_next(&it))
        MUST(hfsb_json_type_of(hfsb_json_get(it.value, "type")) ==
             HFSB_JSON_STRING);
}

static void check_error(const hfsb_json_value *error) {
    MUST(hfsb_json_int(hfsb_json_get(error, "code"), 0) < -32000);
    MUST(hfsb_json_str(hfsb_json_get(error, "message"), HFSB_LIT("")).len);
}

/* An answer that is still to be given, or NULL. *asked: a message with this id
   belongs to the era of the result (an id may be used twice). */
static answer *find_answer(hfsb_str id, bool modern, bool *asked) {
    answer *found = NULL;
    size_t  i;
    *asked = false;
    for (i = 0; i < client.count; i++) {
        answer *a = &client.list[i];
        if (!hfsb_str_equal(hfsb_buf_str(&a->id), id)) continue;
        if (a->modern == modern) *asked = true;
        if (!a->given && (!found || (a->modern == modern &&
                                     found->modern != modern)))
            found = a;
    }
    return found;
}

static void take_reply(hfsbi_mcp_channel *channel, int status,
                       hfsb_buf *message) {
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_buf               id = HFSB_INIT;
    const hfsb_json_value *result;
    answer                *a;
    bool                   modern, asked;
    channel->owed--;
    client.replies++;
    if (!status) { /* a call that was cancelled */
        MUST(client.cancels && !message->len);
        client.dropped++;
        return;
    }
    MUST(message->len || heap.fail_at);
    if (!message->len) return;
    MUST(status == 200 || status == 400 || status == 404 || heap.fail_at);
    parse_message(hfsb_buf_str(message), &doc);
    result = hfsb_json_get(doc.root, "result");
    MUST(!result == (hfsb_json_get(doc.root, "error") != NULL));
    MUST(hfsb_json_write(hfsb_json_get(doc.root, "id"), NULL, &id, NULL) ==
         HFSB_OK);
    modern = hfsb_json_get(result, "resultType") != NULL;
    a = find_answer(hfsb_buf_str(&id), modern, &asked);
    MUST(a || heap.fail_at);
    if (a) a->given = true;
    MUST(asked || !result || heap.fail_at);
    if (result) check_result(result, modern);
    else check_error(hfsb_json_get(doc.root, "error"));
    hfsb_buf_free(&id);
    hfsb_json_free(&doc);
}

static void take_notification(hfsbi_mcp_channel *channel, hfsb_str message) {
    hfsb_json_doc doc = HFSB_INIT;
    (void)channel;
    parse_message(message, &doc);
    MUST(!hfsb_json_get(doc.root, "id"));
    MUST(hfsb_str_starts(hfsb_json_str(hfsb_json_get(doc.root, "method"),
                                       HFSB_LIT("")),
                         HFSB_LIT("notifications/")));
    hfsb_json_free(&doc);
}

/* ---- what is expected ---- */

static bool is_id(const hfsb_json_value *v) {
    hfsb_json_type t = hfsb_json_type_of(v);
    return t == HFSB_JSON_INT || t == HFSB_JSON_UINT ||
           t == HFSB_JSON_DOUBLE || t == HFSB_JSON_STRING;
}

static void expect_answer(const hfsb_json_value *id, bool modern) {
    answer *a = &client.list[client.count++];
    MUST(client.count <= MOST);
    MUST(hfsb_json_write(is_id(id) ? id : NULL, NULL, &a->id, NULL) ==
         HFSB_OK);
    a->modern = modern;
}

/* What a message must be answered with, if at all. */
static void expect(const hfsb_json_value *m, const hfsbi_mcp_head *head) {
    const hfsb_json_value *id = hfsb_json_get(m, "id");
    const hfsb_json_value *method = hfsb_json_get(m, "method");
    const hfsb_json_value *meta =
        hfsb_json_get(hfsb_json_get(m, "params"), "_meta");
    hfsb_str name = hfsb_json_str(method, HFSB_LIT(""));
    bool     quiet = hfsb_str_equal(hfsb_json_str(hfsb_json_get(m, "jsonrpc"),
                                              HFSB_LIT("")),
                                HFSB_LIT("2.0"));
    if (hfsb_str_equal(name, HFSB_LIT("notifications/cancelled")))
        client.cancels = true;
    if (head->version.ptr &&
        hfsbi_mcp_era_of(head->version) == HFSBI_ERA_UNKNOWN)
        quiet = false; /* then even a notification is refused */
    if (method) quiet = quiet && !id &&
                        hfsb_json_type_of(method) == HFSB_JSON_STRING;
    else quiet = quiet && (hfsb_json_get(m, "result") ||
                           hfsb_json_get(m, "error"));
    if (quiet) return;
    expect_answer(id, hfsb_json_get(meta, "io.modelcontextprotocol/"
                                          "protocolVersion") != NULL);
}

/* Expects the answers to a text; true when it is a batch, which may also be
   refused as a whole. */
static bool expect_all(hfsb_str text, const hfsbi_mcp_head *head) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    bool           batch = false;
    if (hfsb_json_parse(text, NULL, &doc, NULL) != HFSB_OK) {
        expect_answer(NULL, false);
    } else if (hfsb_json_type_of(doc.root) == HFSB_JSON_ARRAY) {
        batch = true;
        it = hfsb_json_begin(doc.root);
        while (hfsb_json_next(&it)) expect(it.value, head);
    } else {
        expect(doc.root, head);
    }
    hfsb_json_free(&doc);
    return batch;
}

static void send_one(hfsb_str text, const hfsbi_mcp_head *head) {
    hfsb_buf copy = HFSB_INIT;
    size_t   fail_at = heap.fail_at, before = client.count, n, got, i;
    bool     batch;
    heap.fail_at = 0;
    copy.alloc = mcp->alloc;
    MUST(hfsb_buf_append(&copy, text) == HFSB_OK);
    batch = expect_all(text, head);
    n = client.count - before;
    if (batch) expect_answer(NULL, false);
    heap.fail_at = fail_at;
    got = client.channel.owed + client.replies;
    hfsbi_mcp_receive(&client.channel, &copy, head);
    got = client.channel.owed + client.replies - got;
    MUST(got == n || fail_at || (batch && got == 1));
    if (batch) { /* refused, or its refusal is not to come */
        bool refused = got != n || client.list[client.count - 1].given;
        for (i = before; i < client.count; i++)
            if (refused || i == client.count - 1) client.list[i].given = true;
    }
    hfsb_buf_free(&copy);
}

/* Takes the part up to a byte off *rest. */
static hfsb_str part(hfsb_str *rest, char end) {
    size_t   at = hfsb_str_find_byte(*rest, end);
    hfsb_str one = hfsb_str_slice(*rest, 0, at);
    *rest = at == HFSB_NPOS ? HFSB_LIT("")
                            : hfsb_str_slice(*rest, at + 1, rest->len);
    return one;
}

static hfsb_str field(hfsb_str *rest) {
    hfsb_str value = part(rest, '\x1f');
    if (!value.len) value.ptr = NULL;
    return value;
}

static void lines(hfsb_str rest) {
    while (rest.len) {
        hfsbi_mcp_head head = HFSB_INIT;
        hfsb_str       line = hfsbi_trim_end(part(&rest, '\n'));
        if (hfsbi_trim(line).len) send_one(line, &head);
    }
}

static void requests(hfsb_str rest) {
    while (rest.len) {
        hfsbi_mcp_head head = HFSB_INIT;
        hfsb_str       one = part(&rest, '\x1e');
        head.http = true;
        head.version = field(&one);
        head.method = field(&one);
        head.name = field(&one);
        send_one(one, &head);
    }
}

/* All that was begun is over, and was answered. */
static void check_end(void) {
    size_t i, open = 0;
    for (i = 0; i < 1000 && mcp->call_count; i++)
        MUST(hfsb_server_poll(server, 0));
    MUST(mcp->call_count == 0 && mcp->working == 0);
    MUST(client.channel.owed == 0);
    for (i = 0; i < client.count; i++) {
        open += !client.list[i].given;
        hfsb_buf_free(&client.list[i].id);
        client.list[i].given = false;
    }
    MUST(open == client.dropped || heap.fail_at);
}

/* ---- mutations ---- */

#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MODERN                                               \
    ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" \
    "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define PICK(list) \
    ((list)[t_random(random) % (sizeof(list) / sizeof *(list))])

/* The end of the JSON value at `at`, roughly. */
static size_t value_end(hfsb_str s, size_t at) {
    size_t depth = 0;
    bool   quoted = false;
    for (; at < s.len; at++) {
        char c = s.ptr[at];
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') at++;
        if (quoted || c == '"') continue;
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
    }
    return at < s.len ? at : s.len;
}

/* The offset after one of the bytes c, chosen by *random; s.len: none. */
static size_t some_place(hfsb_str s, char c, unsigned long long *random) {
    size_t n = hfsb_str_count_byte(s, c), i, k;
    if (!n) return s.len;
    k = t_random(random) % n;
    for (i = 0; i < s.len; i++)
        if (s.ptr[i] == c && k-- == 0) break;
    return i + 1;
}

/* Replaces the value after a colon: by one of each kind, or by another value of
   the text. Bytes alone hardly ever give valid JSON. */
static size_t swap_value(unsigned char *data, size_t size, size_t max,
                         unsigned long long *random) {
    static const char *const values[] = {
        "null", "true", "0", "-1", "1.5", "1e3", "18446744073709551615",
        "\"\"", "\"x\"", "\"\\u0000\\n\\\"\"", "[]", "{}", "[1]",
        "{\"a\":1}", "\"2.0\"", "\"2025-11-25\"", "\"2026-07-28\"",
        "\"" LONG "\""};
    const size_t count = sizeof values / sizeof *values;
    hfsb_str     s = hfsb_str_make((const char *)data, size), value;
    size_t       at = some_place(s, ':', random), end = value_end(s, at);
    size_t       from = some_place(s, ':', random);
    size_t       pick = t_random(random) % (count + 4), n;
    char         copy[256];
    value = pick < count ? hfsb_cstr(values[pick])
                         : hfsb_str_slice(s, from, value_end(s, from));
    n = value.len;
    if (n > sizeof copy || size - (end - at) + n > max) return 0;
    memcpy(copy, value.ptr, n);
    memmove(data + at + n, data + end, size - end);
    memcpy(data + at, copy, n);
    return size - (end - at) + n;
}

/* A message from its parts, most of which fit each other. */
static size_t compose(unsigned char *data, size_t max,
                      unsigned long long *random) {
    static const char *const methods[] = {
        "tools/call", "tools/call", "tools/call",      "tools/list",
        "ping",       "initialize", "server/discover", "logging/setLevel",
        "resources/read"};
    static const char *const names[] = {"echo", "read", "list", "none", LONG};
    static const char *const ids[] = {"1", "\"a\"", "1.5", "null", "-7"};
    static const char *const inside[] = {"", ",\"arguments\":{\"path\":\"a\"}",
                                         ",\"arguments\":[]",
                                         ",\"uri\":\"" LONG "\""};
    static const char *const metas[] = {
        "", ",\"_meta\":{\"progressToken\":1}", MODERN};
    static const char *const versions[] = {"", "2025-06-18", "2026-07-28",
                                           "2026-07-28", "x"};
    const char *method = PICK(methods), *name = PICK(names);
    hfsb_buf    out = HFSB_INIT;
    size_t      n;
    bool        http = t_random(random) % 2 != 0;
    MUST(hfsb_buf_append_byte(&out, (char)(http + t_random(random) % 4 * 2)) ==
         HFSB_OK);
    MUST(hfsb_buf_append_byte(&out, (char)(t_random(random) % 4
                                               ? 0
                                               : t_random(random) % 80)) ==
         HFSB_OK);
    if (http) {
        bool encoded = t_random(random) % 2 != 0;
        MUST(hfsb_buf_printf(&out, "%s\x1f%s\x1f%s", PICK(versions), method,
                             encoded ? "=?base64?" : name) == HFSB_OK);
        if (encoded)
            MUST(hfsb_base64_encode(hfsb_cstr(name), &out) == HFSB_OK &&
                 hfsb_buf_printf(&out, "?=") == HFSB_OK);
        MUST(hfsb_buf_append_byte(&out, '\x1f') == HFSB_OK);
    }
    MUST(hfsb_buf_printf(&out,
                         "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\","
                         "\"params\":{\"name\":\"%s\"%s%s}}",
                         PICK(ids), method, name, PICK(inside),
                         PICK(metas)) == HFSB_OK);
    n = out.len <= max ? out.len : 0;
    memcpy(data, out.ptr, n);
    hfsb_buf_free(&out);
    return n;
}

extern size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t max);
extern size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size,
                                      size_t max, unsigned int seed);

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t max,
                               unsigned int seed) {
    unsigned long long random = seed;
    size_t             n = 0, way = t_random(&random) % 6;
    if (way == 0) n = compose(data, max, &random);
    else if (way < 4) n = swap_value(data, size, max, &random);
    return n ? n : LLVMFuzzerMutate(data, size, max);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    hfsb_str rest;
    if (!server) open_server();
    if (size < 3) return 0;
    client.count = client.replies = client.dropped = 0;
    client.cancels = false;
    client.channel.mcp = mcp;
    client.channel.session = session;
    client.channel.reply = take_reply;
    client.channel.notify = take_notification;
    client.channel.can_notify = (data[0] & 4) == 0;
    heap.calls = 0;
    heap.fail_at = data[1];
    heap.forever = (data[0] & 2) != 0;
    rest = t_exact(data + 2, size - 2);
    if (data[0] & 1) requests(rest);
    else lines(rest);
    check_end();
    heap.fail_at = 0;
    t_drop(rest);
    return 0;
}
