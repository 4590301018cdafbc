/* t_dialect_calls.h - every route and method of every dialect, as requests
   that work. A test that breaks something runs each of them. */
#ifndef T_DIALECT_CALLS_H
#define T_DIALECT_CALLS_H
#include "t_dialect.h"

#define TD_END                                         \
    {                                                  \
        NULL, NULL, NULL, NULL, TD_PLAIN, 0, 0, NULL   \
    }
#define TD_GET(target) \
    {"GET", target, NULL, NULL, TD_PLAIN, 0, 200, NULL}
#define TD_SEND(method, target, body) \
    {method, target, NULL, body, TD_PLAIN, 0, 200, NULL}

/* ---- hf: one sandbox ---- */

#define TD_HF "X-Sandbox-Token: " TS_TOKEN "\r\n"
#define TD_HF_PROXY(method, body)                                        \
    {                                                                    \
        method, "/v1/proxy/$PORT/x?y=z", NULL, body, TD_PLAIN, 0, 200, NULL \
    }

static const td_call td_hf_calls[] = {
    TD_GET("/health"),
    TD_SEND("POST", "/v1/exec",
            "{\"cmd\":[\"echo\",\"hi\"],\"env\":{\"A\":\"1\"},\"cwd\":\"d\","
            "\"timeout\":5}"),
    TD_SEND("POST", "/v1/exec",
            "{\"cmd\":\"cat >&2\",\"stdin\":\"input\"}"),
    TD_SEND("POST", "/v1/exec",
            "{\"cmd\":[\"echo\",\"hi\"],\"background\":true}"),
    TD_SEND("POST", "/v1/processes", "{\"cmd\":[\"echo\",\"hi\"],\"tag\":7}"),
    {"GET", "/v1/processes", NULL, NULL, TD_PLAIN, 1, 200, NULL},
    {"DELETE", "/v1/processes/p-0", NULL, NULL, TD_PLAIN, 1, 200, NULL},
    TD_GET("/v1/files/read?path=d%2Fx"),
    TD_GET("/v1/files/read?path=d%2Fx&offset=2&length=3"),
    {"HEAD", "/v1/files/read?path=d%2Fx", NULL, NULL, TD_PLAIN, 0, 200, NULL},
    TD_SEND("PUT", "/v1/files/write?path=d%2Fn%2Fz&mode=640", "content"),
    TD_SEND("PUT", "/v1/files/write?path=d%2Fx&offset=3&truncate_to=9", "abc"),
    TD_GET("/v1/files/list?path=d"),
    TD_GET("/v1/files/list?path=d&limit=1&after=e"),
    TD_GET("/v1/files/stat?path=d%2Fl"),
    TD_SEND("POST", "/v1/files/mkdir?path=d%2Fm%2Fn", NULL),
    TD_SEND("DELETE", "/v1/files/delete?path=d%2Fx", NULL),
    TD_SEND("DELETE", "/v1/files/delete?path=d&recursive=true", NULL),
    TD_HF_PROXY("GET", NULL),
    TD_HF_PROXY("POST", "a body"),
    TD_HF_PROXY("PUT", "a body"),
    TD_HF_PROXY("DELETE", NULL),
    TD_HF_PROXY("OPTIONS", NULL),
    TD_HF_PROXY("PATCH", "a body"),
    {"GET", "/v1/proxy/1/", NULL, NULL, TD_PLAIN, 0, 502, NULL},
    {"GET", "/v1/files/read?path=none", NULL, NULL, TD_PLAIN, 0, 404, NULL},
    {"GET", "/none", NULL, NULL, TD_PLAIN, 0, 404, NULL},
    {"GET", "/v1/files/list", "X-Sandbox-Token: wrong\r\n", NULL, TD_PLAIN, 0,
     403, NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_hf = {
    "hf",
    "hf",
    NULL,
    false,
    TD_HF,
    {{"POST", "/v1/processes", NULL, "{\"cmd\":[\"sleep\",\"20\"]}", TD_PLAIN,
      0, 200, NULL},
     TD_END},
    TD_GET("/v1/files/stat?path=."),
    td_hf_calls};

/* ---- hf: a host of sandboxes ---- */

#define TD_HOST "X-Sandbox-Token: $TOKEN\r\n"
#define TD_IN(method, rest, body)                                         \
    {                                                                     \
        method, "/v1/sandboxes/$ID" rest, TD_HOST, body, TD_PLAIN, 1, 200, \
            NULL                                                          \
    }

static const char *const td_host_settings[] = {
    "SBX_HOST_MODE=1", "SBX_CAPACITY=3", "SBX_ALLOW_UNCONFINED=1", NULL};

static const td_call td_host_calls[] = {
    TD_GET("/health"),
    TD_SEND("POST", "/v1/sandboxes",
            "{\"count\":2,\"env\":{\"A\":\"1\"},\"idle_timeout_secs\":60}"),
    {"GET", "/v1/sandboxes", NULL, NULL, TD_PLAIN, 1, 200, NULL},
    {"DELETE", "/v1/sandboxes", NULL, NULL, TD_PLAIN, 1, 200, NULL},
    {"GET", "/v1/sandboxes/$ID/token", NULL, NULL, TD_PLAIN, 1, 200, NULL},
    TD_IN("DELETE", "", NULL),
    TD_IN("POST", "/exec", "{\"cmd\":[\"echo\",\"hi\"]}"),
    TD_IN("POST", "/processes", "{\"cmd\":[\"echo\",\"hi\"]}"),
    TD_IN("GET", "/processes", NULL),
    TD_IN("DELETE", "/processes/p-7", NULL),
    TD_IN("PUT", "/files/write?path=a%2Fb", "content"),
    TD_IN("GET", "/files/list?path=%2F", NULL),
    TD_IN("GET", "/files/stat?path=.tmp", NULL),
    TD_IN("POST", "/files/mkdir?path=c", NULL),
    TD_IN("DELETE", "/files/delete?path=.tmp&recursive=1", NULL),
    {"GET", "/v1/sandboxes/$ID/files/read?path=none", TD_HOST, NULL, TD_PLAIN,
     1, 404, NULL},
    {"GET", "/v1/sandboxes/$ID/proxy/8000/", TD_HOST, NULL, TD_PLAIN, 1, 502,
     NULL},
    {"GET", "/v1/sandboxes/$ID/processes", TD_HF, NULL, TD_PLAIN, 1, 403,
     NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_host = {
    "hf host",
    "hf",
    td_host_settings,
    false,
    TD_HF,
    {{"POST", "/v1/sandboxes", NULL, "{}", TD_PLAIN, 0, 200, NULL}, TD_END},
    TD_GET("/v1/sandboxes"),
    td_host_calls};

/* ---- agent-sandbox ---- */

#define TD_KUBE "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n"
#define TD_CUT  TD_KUBE "Content-Type: multipart/form-data; boundary=cut\r\n"
#define TD_PART(name, file)                                        \
    "--cut\r\nContent-Disposition: form-data; name=\"" name "\"; " \
    "filename=\"" file "\"\r\n\r\n"

static const td_call td_kube_calls[] = {
    TD_GET("/"),
    TD_SEND("POST", "/execute", "{\"command\":\"sh -c 'echo a; echo b >&2'\"}"),
    {"POST", "/execute", TD_KUBE "X-Request-ID: one\r\n",
     "{\"command\":\"echo 'a b' c\"}", TD_PLAIN, 0, 200, NULL},
    {"POST", "/execute", TD_KUBE "X-Request-ID: two\r\n",
     "{\"command\":\"echo once\"}", TD_PLAIN, 1, 200, NULL},
    TD_SEND("POST", "/execute", "{\"command\":\"no-such-program x\"}"),
    {"POST", "/upload", TD_CUT,
     TD_PART("file", "d/n/up") "content\r\n--cut--\r\n", TD_PLAIN, 0, 200,
     NULL},
    TD_GET("/download/d%2Fx"),
    TD_GET("/list/d"),
    TD_GET("/exists/d%2Fx"),
    TD_GET("/v1/files/d/x"),
    {"GET", "/v1/files/d/x", TD_KUBE "Range: bytes=1-3\r\n", NULL, TD_PLAIN, 0,
     206, NULL},
    TD_GET("/v1/files/d"),
    {"HEAD", "/v1/files/d", NULL, NULL, TD_PLAIN, 0, 200, NULL},
    {"PUT", "/v1/files/d/n/z?mode=0600", NULL, "content", TD_PLAIN, 0, 204,
     NULL},
    {"PUT", "/v1/files/d/m", TD_CUT,
     TD_PART("file", "ignored") "m\r\n--cut--", TD_PLAIN, 0, 204, NULL},
    {"DELETE", "/v1/files/d/x", NULL, NULL, TD_PLAIN, 0, 204, NULL},
    {"DELETE", "/v1/files/d?recursive=true", NULL, NULL, TD_PLAIN, 0, 204,
     NULL},
    TD_GET("/v1/health"),
    TD_GET("/v1/metadata"),
    {"GET", "/v1/files/none", NULL, NULL, TD_PLAIN, 0, 404, NULL},
    {"GET", "/list/d", "", NULL, TD_PLAIN, 0, 401, NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_kube = {
    "agent-sandbox",
    "agent-sandbox",
    NULL,
    false,
    TD_KUBE,
    {{"POST", "/execute", TD_KUBE "X-Request-ID: two\r\n",
      "{\"command\":\"echo once\"}", TD_PLAIN, 0, 200, NULL},
     TD_END},
    TD_GET("/exists/f"),
    td_kube_calls};

/* ---- codex ---- */

#define TD_SAY(method, params, needs) \
    {method, "", NULL, params, TD_MESSAGE, (needs) | 1u, 200, NULL}
#define TD_URI(path) "\"file://$DIR/" path "\""
#define TD_PROCESS   "\"processId\":\"w\""

static const td_call td_codex_calls[] = {
    {"initialize", "", NULL, "{\"clientName\":\"t\"}", TD_MESSAGE, 0, 200,
     NULL},
    TD_SAY("initialized", "{}", 0),
    TD_SAY("environment/info", "null", 0),
    TD_SAY("environment/status", "{}", 0),
    {"process/start", "", NULL,
     "{\"processId\":\"p\",\"argv\":[\"/bin/echo\",\"hi\"],\"cwd\":" TD_URI(
         "d") ",\"env\":{\"A\":\"1\"},\"envPolicy\":{\"inherit\":\"core\"},"
              "\"tty\":false,\"arg0\":null}",
     TD_MESSAGE, 1, 200, NULL},
    {"process/start", "", NULL,
     "{\"processId\":\"p\",\"argv\":[\"/bin/echo\",\"hi\"],\"cwd\":" TD_URI(
         "d") ",\"env\":{},\"tty\":true,\"arg0\":null}",
     TD_MESSAGE, 1, 200, NULL},
    TD_SAY("process/read", "{" TD_PROCESS ",\"waitMs\":20}", 2),
    TD_SAY("process/read", "{\"processId\":\"p\",\"waitMs\":5000}", 4),
    TD_SAY("process/write", "{" TD_PROCESS ",\"chunk\":\"eAo=\"}", 2),
    TD_SAY("process/signal", "{" TD_PROCESS ",\"signal\":\"interrupt\"}", 2),
    TD_SAY("process/terminate", "{" TD_PROCESS "}", 2),
    TD_SAY("fs/getMetadata", "{\"path\":" TD_URI("d/x") "}", 0),
    TD_SAY("fs/readFile", "{\"path\":" TD_URI("d/x") "}", 0),
    TD_SAY("fs/writeFile",
           "{\"path\":" TD_URI("d/z") ",\"dataBase64\":\"aGVsbG8=\"}", 0),
    TD_SAY("fs/createDirectory",
           "{\"path\":" TD_URI("d/m/n") ",\"recursive\":true}", 0),
    TD_SAY("fs/remove", "{\"path\":" TD_URI("d") ",\"recursive\":true}", 0),
    TD_SAY("fs/copy",
           "{\"sourcePath\":" TD_URI("d/e") ",\"destinationPath\":" TD_URI(
               "d/f") ",\"recursive\":true}",
           0),
    TD_SAY("fs/canonicalize", "{\"path\":" TD_URI("d/l") "}", 0),
    TD_SAY("fs/readDirectory", "{\"path\":" TD_URI("d") "}", 0),
    TD_SAY("fs/walk",
           "{\"path\":" TD_URI("d") ",\"options\":{\"maxDepth\":3,"
                                    "\"maxDirectories\":9,\"maxEntries\":9}}",
           0),
    TD_SAY("fs/open", "{\"path\":" TD_URI("d/x") ",\"handleId\":\"g\"}", 0),
    TD_SAY("fs/readBlock", "{\"handleId\":\"h\",\"offset\":2,\"len\":3}", 8),
    TD_SAY("fs/close", "{\"handleId\":\"h\"}", 8),
    {"fs/readFile", "", NULL, "{\"path\":" TD_URI("none") "}", TD_MESSAGE, 1,
     500, NULL},
    {"no/such", "", NULL, "{}", TD_MESSAGE, 1, 500, NULL},
    TD_END};

#define TD_CODEX_BEFORE                                                     \
    {                                                                       \
        {"initialize", "", NULL, "{\"clientName\":\"t\"}", TD_MESSAGE, 0,   \
         200, NULL},                                                        \
            {"process/start", "", NULL,                                     \
             "{" TD_PROCESS ",\"argv\":[\"/bin/cat\"],\"cwd\":" TD_URI(     \
                 "d") ",\"env\":{},\"tty\":false,\"pipeStdin\":true,"       \
                      "\"arg0\":null}",                                     \
             TD_MESSAGE, 0, 200, NULL},                                     \
            {"process/start", "", NULL,                                     \
             "{\"processId\":\"p\",\"argv\":[\"/bin/echo\",\"hi\"],"        \
             "\"cwd\":" TD_URI("d") ",\"env\":{},\"tty\":false,"            \
                                    "\"arg0\":null}",                       \
             TD_MESSAGE, 0, 200, NULL},                                     \
            {"fs/open", "", NULL,                                           \
             "{\"path\":" TD_URI("d/x") ",\"handleId\":\"h\"}", TD_MESSAGE, \
             0, 200, NULL},                                                 \
            TD_END                                                          \
    }

HFSBI_UNUSED static const td_kind td_codex = {
    "codex",
    "codex",
    NULL,
    false,
    "Authorization: Bearer " TS_TOKEN "\r\n" TD_UPGRADE,
    TD_CODEX_BEFORE,
    {"environment/status", "", NULL, "{}", TD_MESSAGE, 0, 200, NULL},
    td_codex_calls};

HFSBI_UNUSED static const td_kind td_codex_fds = {
    "codex over descriptors",
    "codex",
    NULL,
    true,
    "",
    TD_CODEX_BEFORE,
    {"environment/status", "", NULL, "{}", TD_MESSAGE, 0, 200, NULL},
    td_codex_calls};

/* ---- e2b ---- */

#define TD_E2B    "X-Access-Token: " TS_TOKEN "\r\nX-API-Key: " TS_TOKEN "\r\n"
#define TD_STREAM TD_E2B "Content-Type: application/connect+json\r\n"
#define TD_RPC    TD_E2B "Content-Type: application/json\r\n"
#define TD_C      "{\"process\":{\"tag\":\"c\"}"
#define TD_FILES(name, body, needs)                                           \
    {                                                                         \
        "POST", "/filesystem.Filesystem/" name, TD_RPC, body, TD_PLAIN, needs, \
            200, NULL                                                         \
    }
#define TD_PROC(name, body, needs)                                             \
    {                                                                          \
        "POST", "/process.Process/" name, TD_RPC, body, TD_PLAIN, needs, 200, \
            NULL                                                               \
    }
#define TD_BOX(method, rest, body, status) \
    {method, rest, TD_RPC, body, TD_PLAIN, 2, status, NULL}

static const td_call td_e2b_calls[] = {
    {"GET", "/health", NULL, NULL, TD_PLAIN, 0, 204, NULL},
    TD_GET("/metrics"),
    TD_GET("/envs"),
    {"POST", "/init", TD_RPC,
     "{\"envVars\":{\"A\":\"1\",\"B\":\"2\"},\"defaultWorkdir\":\"$DIR/d\"}",
     TD_PLAIN, 0, 204, NULL},
    TD_GET("/files?path=d/x"),
    {"GET", "/files?path=d/x", TD_E2B "Range: bytes=1-2\r\n", NULL, TD_PLAIN,
     0, 206, NULL},
    TD_SEND("POST", "/files?path=d/n/z", "bytes"),
    {"POST", "/files?path=d/x", TD_E2B "X-Metadata-a: b\r\n", "bytes",
     TD_PLAIN, 0, 200, NULL},
    {"POST", "/files", TD_E2B
     "Content-Type: multipart/form-data; boundary=cut\r\n",
     TD_PART("file", "d/b") "1\r\n" TD_PART("file", "d/c") "2\r\n--cut--\r\n",
     TD_PLAIN, 0, 200, NULL},
    {"POST", "/files/compose", TD_RPC,
     "{\"source_paths\":[\"d/x\",\"d/e/y\"],\"destination\":\"d/z\"}", TD_PLAIN,
     0, 200, NULL},
    {"POST", "/process.Process/Start", TD_STREAM,
     "{\"process\":{\"cmd\":\"/bin/echo\",\"args\":[\"hi\"],\"envs\":{\"A\":"
     "\"1\"},\"cwd\":\"d\"},\"tag\":\"x\",\"stdin\":false}",
     TD_ENVELOPE, 0, 200, NULL},
    /* -n: in a terminal a line feed may come as a piece of its own */
    {"POST", "/process.Process/Start", TD_STREAM,
     "{\"process\":{\"cmd\":\"/bin/echo\",\"args\":[\"-n\",\"hi\"]},\"pty\":{"
     "\"size\":{\"cols\":80,\"rows\":24}}}",
     TD_ENVELOPE, 0, 200, NULL},
    {"POST", "/process.Process/Connect", TD_STREAM, TD_C "}", TD_ENVELOPE, 1,
     200, "\"start\""},
    TD_PROC("List", "{}", 1),
    TD_PROC("SendSignal", TD_C ",\"signal\":\"SIGNAL_SIGKILL\"}", 1),
    {"POST", "/process.Process/Update", TD_RPC,
     "{\"process\":{\"tag\":\"t\"},\"pty\":{\"size\":{\"cols\":9,\"rows\":9}}}",
     TD_PLAIN, 8, 200, NULL},
    TD_PROC("SendInput", TD_C ",\"input\":{\"stdin\":\"eAo=\"}}", 1),
    TD_PROC("CloseStdin", TD_C "}", 1),
    {"POST", "/process.Process/StreamInput", TD_STREAM,
     "{\"start\":{\"process\":{\"tag\":\"c\"}}}\n{\"keepalive\":{}}\n"
     "{\"data\":{\"input\":{\"stdin\":\"eAo=\"}}}",
     TD_CHUNKS, 1, 200, NULL},
    TD_FILES("Stat", "{\"path\":\"d/l\"}", 0),
    TD_FILES("MakeDir", "{\"path\":\"d/m/n\"}", 0),
    TD_FILES("Move", "{\"source\":\"d/x\",\"destination\":\"d/m/z\"}", 0),
    TD_FILES("ListDir", "{\"path\":\"d\",\"depth\":2}", 0),
    TD_FILES("Remove", "{\"path\":\"d\"}", 0),
    {"POST", "/filesystem.Filesystem/WatchDir", TD_STREAM,
     "{\"path\":\"d\",\"recursive\":true,\"include_entry\":true}", TD_ENVELOPE,
     0, 200, "\"start\""},
    TD_FILES("CreateWatcher", "{\"path\":\"d\",\"recursive\":true}", 0),
    TD_FILES("GetWatcherEvents", "{\"watcherId\":\"$WATCH\"}", 4),
    TD_FILES("RemoveWatcher", "{\"watcherId\":\"$WATCH\"}", 4),
    {"POST", "/v2/sandboxes", TD_RPC,
     "{\"templateID\":\"t\",\"metadata\":{\"k\":\"v\"},\"envVars\":{\"A\":"
     "\"1\"},\"timeout\":60}",
     TD_PLAIN, 0, 201, NULL},
    {"POST", "/sandboxes", TD_RPC, "{}", TD_PLAIN, 0, 201, NULL},
    TD_BOX("GET", "/v2/sandboxes?metadata=k%3Dv", NULL, 200),
    TD_BOX("GET", "/sandboxes", NULL, 200),
    TD_BOX("POST", "/v2/sandboxes/$ID/connect", "{\"timeout\":600}", 200),
    TD_BOX("POST", "/sandboxes/$ID/connect", "{}", 200),
    TD_BOX("GET", "/sandboxes/$ID", NULL, 200),
    TD_BOX("DELETE", "/sandboxes/$ID", NULL, 204),
    TD_BOX("POST", "/sandboxes/$ID/timeout", "{\"timeout\":60}", 204),
    TD_BOX("POST", "/sandboxes/$ID/refreshes", "{\"duration\":60}", 204),
    TD_BOX("POST", "/sandboxes/$ID/pause", "{}", 501),
    {"POST", "/files?path=f",
     "E2b-Sandbox-Id: $ID\r\nX-Access-Token: $TOKEN\r\n", "bytes", TD_PLAIN, 2,
     200, NULL},
    {"POST", "/process.Process/Start",
     "E2b-Sandbox-Id: $ID\r\nX-Access-Token: $TOKEN\r\n"
     "Content-Type: application/connect+json\r\n",
     "{\"process\":{\"cmd\":\"/bin/echo\",\"args\":[\"hi\"]}}", TD_ENVELOPE, 2,
     200, NULL},
    {"GET", "/files?path=none", NULL, NULL, TD_PLAIN, 0, 404, NULL},
    {"GET", "/envs", "", NULL, TD_PLAIN, 0, 401, NULL},
    {"POST", "/process.Process/None", TD_RPC, "{}", TD_PLAIN, 0, 404, NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_e2b = {
    "e2b",
    "e2b",
    NULL,
    false,
    TD_E2B,
    {{"POST", "/process.Process/Start", TD_STREAM,
      "{\"process\":{\"cmd\":\"/bin/cat\"},\"tag\":\"c\"}", TD_ENVELOPE, 0,
      200, "\"start\""},
     {"POST", "/v2/sandboxes", TD_RPC, "{\"metadata\":{\"k\":\"v\"}}",
      TD_PLAIN, 0, 201, NULL},
     {"POST", "/filesystem.Filesystem/CreateWatcher", TD_RPC,
      "{\"path\":\"d\"}", TD_PLAIN, 0, 200, NULL},
     {"POST", "/process.Process/Start", TD_STREAM,
      "{\"process\":{\"cmd\":\"/bin/cat\"},\"tag\":\"t\",\"pty\":{\"size\":{"
      "\"cols\":80,\"rows\":24}}}",
      TD_ENVELOPE, 0, 200, "\"start\""},
     TD_END},
    {"GET", "/envs", NULL, NULL, TD_PLAIN, 0, 200, NULL},
    td_e2b_calls};

/* ---- ports: /proxy and /open ---- */

#define TD_API "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n"

static const td_call td_ports_calls[] = {
    TD_GET("/proxy/$PORT/x?y=z"),
    {"PROPFIND", "/proxy/$PORT/%00", TD_API "Cookie: hfsb-a=1; b=2\r\n",
     "a body", TD_PLAIN, 0, 200, NULL},
    {"POST", "/api/open", TD_API TS_JSON, "{\"port\":$PORT}", TD_PLAIN, 0, 200,
     NULL},
    {"GET", "$PATHx", "Cookie: hfsb-a=1\r\nOrigin: null\r\n", NULL, TD_PLAIN, 1,
     200, NULL},
    {"POST", "$PATHx", "", "a body", TD_PLAIN, 1, 200, NULL},
    {"OPTIONS", "$PATHx",
     "Origin: null\r\nAccess-Control-Request-Method: PUT\r\n", NULL, TD_PLAIN,
     1, 204, NULL},
    {"GET", "/open/0/x", "", NULL, TD_PLAIN, 0, 404, NULL},
    {"GET", "/proxy/1/", NULL, NULL, TD_PLAIN, 0, 502, NULL},
    {"BREW", "/x", NULL, NULL, TD_PLAIN, 0, 501, NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_ports = {
    "ports",
    NULL,
    NULL,
    false,
    TD_API,
    {{"POST", "/api/open", TD_API TS_JSON, "{\"port\":$PORT}", TD_PLAIN, 0, 200,
      NULL},
     TD_END},
    TD_GET("/api/jobs"),
    td_ports_calls};

/* ---- what the page asks for, and the page ---- */

static const td_call td_page_calls[] = {
    {"GET", "/", "Accept: text/html\r\n", NULL, TD_PLAIN, 0, 200, NULL},
    /* it lists ports of whoever runs commands here: not compared */
    {"GET", "/api/stats", NULL, NULL, TD_PLAIN, 0, 200, "\"ports\":"},
    TD_GET("/api/openapi.json"),
    TD_GET("/api/plan"),
    {"POST", "/api/plan_tool", TD_API TS_JSON,
     "{\"todos\":[{\"id\":1,\"content\":\"x\",\"status\":\"pending\"}]}",
     TD_PLAIN, 0, 200, NULL},
    {"GET", "/api/jobs/r/raw", TD_API, NULL, TD_PLAIN, 1, 200, NULL},
    {"POST", "/reset", TD_API TS_JSON, "{\"empty\":true}", TD_PLAIN, 1, 200,
     NULL},
    TD_END};

HFSBI_UNUSED static const td_kind td_page = {
    "page",
    NULL,
    NULL,
    false,
    TD_API,
    {{"POST", "/api/bash", TD_API TS_JSON,
      "{\"command\":\"echo x\",\"id\":\"r\"}", TD_PLAIN, 0, 200, NULL},
     TD_END},
    TD_GET("/api/jobs"),
    td_page_calls};

HFSBI_UNUSED static const td_kind *const td_kinds[] = {
    &td_hf, &td_host, &td_kube, &td_codex, &td_codex_fds, &td_e2b, &td_ports};
#endif
