/* openapi.c - GET /api/openapi.json: the HTTP API as OpenAPI 3.1.

   The document is written for each request from the server's own routes, in
   the order they were added, and for /api/TOOL from the row of the tool. So it
   lists what answers here, routes of a host program too, but none of the
   dialects, whose protocols are described elsewhere.

       route "GET /api/jobs/" "*"  -->  "/api/jobs/{id}": {"get": {...}}

   A table below adds words, parameters and replies to the routes that are not
   tools; a route without a row is listed with its method and path only. A
   route for any method, such as /proxy, is left out: OpenAPI cannot express
   it. Schemas that several routes share are components. */
#include "api_private.h"

/* ---- the table ---- */

typedef struct hfsbi_files_query {
    hfsb_str path, mode;
} hfsbi_files_query;

static const hfsbi_param hfsbi_openapi_path[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_files_query, path,
                "Absolute, or relative to the working directory"),
    HFSBI_PARAM_END};

static const hfsbi_param hfsbi_openapi_write[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_files_query, path,
                "Absolute, or relative to the working directory"),
    HFSBI_PARAM("mode", HFSBI_ARG_STR, 0, hfsbi_files_query, mode,
                "Octal, such as 755; default: that of the old file, or 644"),
    HFSBI_PARAM_END};

/* A body or a reply is named by its schema if it is JSON, else by its media
   type. */
typedef struct hfsbi_operation {
    const char        *method, *path; /* as in the route */
    const char        *id, *summary;
    const char        *reply, *stream; /* stream: another form (NULL: none) */
    const char        *body;  /* (NULL: none, or the arguments of `tool`) */
    const char        *tool;  /* its parameters are those of the body, or of
                                 the query of a GET (NULL: none) */
    const hfsbi_param *query; /* (NULL: none) */
} hfsbi_operation;

static const char hfsbi_openapi_bytes[] = "application/octet-stream";
static const char hfsbi_openapi_sse[] = "text/event-stream";
static const char hfsbi_openapi_upgrade[] = "101"; /* another protocol */

static const hfsbi_operation hfsbi_operations[] = {
    {"GET", "/api/health", "health",
     "Whether the server is up, and with a token how it is.", "Health", NULL,
     NULL, NULL, NULL},
    {"GET", "/healthz", "healthz", "The same, at the path of probes.",
     "Health", NULL, NULL, NULL, NULL},
    {"GET", "/api/openapi.json", "openapi", "This document.", "object", NULL,
     NULL, NULL, NULL},
    {"GET", "/api/metrics", "metrics", "Counters for Prometheus.",
     "text/plain", NULL, NULL, NULL, NULL},
    {"GET", "/api/events", "events",
     "The journal: what was called, by whom, with what result.", "Events",
     hfsbi_openapi_sse, NULL, NULL, NULL},
    {"GET", "/api/exec", "exec",
     "A program, byte for byte: an upgrade to a WebSocket.",
     hfsbi_openapi_upgrade, NULL, NULL, NULL, NULL},
    {"POST", "/reset", "reset",
     "Ends all processes and restores the first checkpoint, or empties the "
     "roots.",
     "Result", NULL, "Reset", NULL, NULL},
    {"POST", "/init", "init",
     "Sets the token, variables and the working directory; the first caller "
     "wins.",
     "Health", NULL, "Init", NULL, NULL},
    {"GET", "/api/jobs", "jobs", "Commands, newest first.", "Jobs", NULL, NULL,
     NULL, NULL},
    {"GET", "/api/jobs/*", "job", "One command.", "Job", NULL, NULL, NULL,
     NULL},
    {"DELETE", "/api/jobs/*", "job_kill", "Ends a command.", "Result", NULL,
     NULL, NULL, NULL},
    {"GET",
     "/api/jobs/*"
     "/output",
     "job_output", "The output of a command from an offset on.", "Result",
     NULL, NULL, "bash_output", NULL},
    {"POST",
     "/api/jobs/*"
     "/input",
     "job_input", "Writes to the standard input of a command.", "Result", NULL,
     NULL, "bash_input", NULL},
    {"GET", "/api/files", "file_get",
     "The bytes of a file, or a range of them.", hfsbi_openapi_bytes, NULL,
     NULL, NULL, hfsbi_openapi_path},
    {"PUT", "/api/files", "file_put",
     "Replaces or creates a file with the bytes of the body.", "Result", NULL,
     hfsbi_openapi_bytes, NULL, hfsbi_openapi_write},
    {"DELETE", "/api/files", "file_delete", "Removes a file.", "Result", NULL,
     NULL, NULL, hfsbi_openapi_path},
    {"POST", "/api/open", "open",
     "Makes an address for a browser to a server that a command has started.",
     "Opened", NULL, "Open", NULL, NULL},
    {"GET",
     "/api/jobs/*"
     "/raw",
     "job_raw", "The output of a command as it came, and as it comes.",
     hfsbi_openapi_bytes, NULL, NULL, NULL, NULL},
    {"GET", "/api/stats", "stats",
     "Figures of the machine, and ports on which commands listen.", "object",
     NULL, NULL, NULL, NULL},
    {"GET", "/api/plan", "plan", "The plan that an agent sent last.", "Plan",
     NULL, NULL, NULL, NULL},
    {"POST", "/api/plan_tool", "plan_tool", "Sets the plan.", "Result", NULL,
     "object", NULL, NULL},
    {"GET", "/", "page", "The page for people; only for text/html.",
     "text/html", NULL, NULL, NULL, NULL},
    {"POST", "/mcp", "mcp", "A message of the Model Context Protocol.",
     "object", hfsbi_openapi_sse, "object", NULL, NULL},
    {"DELETE", "/mcp", "mcp_end", "Ends a session of that protocol.", "object",
     NULL, NULL, NULL, NULL}};

enum { HFSBI_OPERATIONS = sizeof hfsbi_operations / sizeof *hfsbi_operations };

static const char hfsbi_openapi_components[] =
    "\"components\":{\"securitySchemes\":{"
    "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
    "\"sandbox\":{\"type\":\"apiKey\",\"in\":\"header\","
    "\"name\":\"X-Sandbox-Authorization\","
    "\"description\":\"Bearer TOKEN; decides alone where both are sent\"}},"
    "\"parameters\":{\"once\":{\"name\":\"Idempotency-Key\","
    "\"in\":\"header\",\"description\":\"A call with this key runs once; a "
    "repeat gets the first result\",\"schema\":{\"type\":\"string\","
    "\"maxLength\":255}}},"
    "\"responses\":{\"error\":{\"description\":\"The request was refused\","
    "\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
    "\"#/components/schemas/Error\"}}}}},";

/* Names of schemas and their JSON. */
static const char *const hfsbi_openapi_schemas[][2] = {
    {"Result",
     "{\"type\":\"object\",\"description\":\"A tool's result, also of one "
     "that "
     "failed; each tool adds members of its own\",\"properties\":{"
     "\"success\":{\"type\":\"boolean\"},\"output\":{\"type\":\"string\"},"
     "\"error\":{\"type\":\"string\"}},"
     "\"required\":[\"success\",\"output\",\"error\"]}"},
    {"Error",
     "{\"type\":\"object\",\"properties\":{\"detail\":{\"description\":"
     "\"The error, or for 422 a list of items with type, loc, msg, input\"},"
     "\"error\":{\"type\":\"string\"}},\"required\":[\"detail\",\"error\"]}"},
    {"Health",
     "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"},"
     "\"version\":{\"type\":\"string\"},\"instance\":{\"type\":\"string\"},"
     "\"uptime_s\":{\"type\":\"integer\"},\"running\":{\"type\":\"integer\"},"
     "\"waiting\":{\"type\":\"integer\"},\"connections\":{\"type\":"
     "\"integer\"},\"confine\":{\"type\":\"string\"},\"stopping\":{\"type\":"
     "\"boolean\"}},\"required\":[\"status\"]}"},
    {"Job",
     "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
     "\"state\":{\"type\":\"string\",\"enum\":[\"waiting\",\"running\","
     "\"done\"]},\"who\":{\"type\":\"string\"},\"description\":{\"type\":"
     "\"string\"},\"command\":{\"type\":\"string\"},\"pid\":{\"type\":"
     "\"integer\"},\"background\":{\"type\":\"boolean\"},\"age_ms\":{"
     "\"type\":\"integer\"},\"duration_ms\":{\"type\":\"integer\"},"
     "\"exit_code\":{\"type\":[\"integer\",\"null\"]}},"
     "\"required\":[\"id\",\"state\",\"command\"]}"},
    {"Jobs", "{\"type\":\"object\",\"properties\":{\"jobs\":{\"type\":"
             "\"array\",\"items\":{\"$ref\":\"#/components/schemas/Job\"}}},"
             "\"required\":[\"jobs\"]}"},
    {"Events", "{\"type\":\"object\",\"properties\":{\"events\":{\"type\":"
               "\"array\",\"items\":{\"type\":\"object\"}},\"next\":{\"type\":"
               "\"integer\"},\"lost\":{\"type\":\"integer\"}},\"required\":["
               "\"events\",\"next\",\"lost\"]}"},
    {"Plan", "{\"type\":\"array\",\"items\":{\"type\":\"object\","
             "\"properties\":{\"id\":{\"type\":\"string\"},\"content\":{"
             "\"type\":\"string\"},\"status\":{\"type\":\"string\",\"enum\":["
             "\"pending\",\"in_progress\",\"completed\"]}},\"required\":["
             "\"id\",\"content\",\"status\"]}}"},
    {"Reset", "{\"type\":\"object\",\"properties\":{\"empty\":{\"type\":"
              "\"boolean\"}}}"},
    {"Open", "{\"type\":\"object\",\"properties\":{\"port\":{\"type\":"
             "\"integer\",\"minimum\":1,\"maximum\":65535}},\"required\":["
             "\"port\"]}"},
    {"Opened", "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
               "\"string\"}},\"required\":[\"path\"]}"},
    {"Init",
     "{\"type\":\"object\",\"properties\":{\"token\":{\"type\":"
     "\"string\"},\"env\":{\"type\":\"object\",\"additionalProperties"
     "\":{\"type\":\"string\"}},\"work_dir\":{\"type\":\"string\"}}}"}};

/* ---- one operation ---- */

static const hfsbi_operation *hfsbi_operation_find(const hfsb_route *route) {
    size_t i;
    for (i = 0; i < HFSBI_OPERATIONS; i++)
        if (strcmp(hfsbi_operations[i].method, route->method) == 0 &&
            strcmp(hfsbi_operations[i].path, route->path) == 0)
            return &hfsbi_operations[i];
    return NULL;
}

/* The tool of POST /api/TOOL, or NULL. */
static const hfsbi_tool *hfsbi_route_tool(const hfsb_route *route) {
    if (route->fn != hfsbi_api_tool) return NULL;
    return ((const hfsbi_endpoint *)route->user)->tool;
}

/* Appends "type":{"schema":...}; shape is a media type or a schema. */
static void hfsbi_openapi_put_media(const char *shape, hfsb_buf *out) {
    if (strchr(shape, '/'))
        hfsb_buf_printf(out, "\"%s\":{\"schema\":{\"type\":\"string\"%s}}",
                        shape,
                        shape == hfsbi_openapi_bytes
                            ? ",\"contentMediaType\":\"application/octet-"
                              "stream\""
                            : "");
    else if (strcmp(shape, "object") == 0)
        hfsb_buf_printf(out, "\"application/json\":{\"schema\":{\"type\":"
                             "\"object\"}}");
    else
        hfsb_buf_printf(out,
                        "\"application/json\":{\"schema\":{\"$ref\":"
                        "\"#/components/schemas/%s\"}}",
                        shape);
}

static void hfsbi_openapi_put_replies(const char *reply, const char *stream,
                                      hfsb_buf *out) {
    bool body = reply && reply != hfsbi_openapi_upgrade;
    hfsb_buf_printf(out, "\"responses\":{\"%s\":{\"description\":\"Done\"",
                    body    ? "200"
                    : reply ? reply
                            : "2XX");
    if (body) {
        hfsb_buf_printf(out, ",\"content\":{");
        hfsbi_openapi_put_media(reply, out);
        if (stream) hfsb_buf_append_byte(out, ',');
        if (stream) hfsbi_openapi_put_media(stream, out);
        hfsb_buf_append_byte(out, '}');
    }
    hfsb_buf_printf(out, "},\"default\":{\"$ref\":"
                         "\"#/components/responses/error\"}}");
}

/* Appends the parameters of a query, each after `comma`. */
static void hfsbi_openapi_put_query(const hfsbi_param *p, const char **comma,
                                    hfsb_buf *out) {
    for (; p && p->name; p++) {
        if (p->flags & HFSBI_UNLISTED || strcmp(p->name, "id") == 0) continue;
        hfsb_buf_printf(out,
                        "%s{\"name\":\"%s\",\"in\":\"query\",\"required\":%s,"
                        "\"schema\":{\"type\":\"%s\"}",
                        *comma, p->name,
                        p->flags & HFSBI_REQUIRED ? "true" : "false",
                        p->type == HFSBI_ARG_INT ? "integer" : "string");
        if (p->words) {
            hfsb_buf_printf(out, ",\"description\":");
            hfsbi_json_put_quoted(out, hfsb_cstr(p->words));
        }
        hfsb_buf_append_byte(out, '}');
        *comma = ",";
    }
}

/* The name of the n-th "*" of a path, from 0: jobs have an id. */
static void hfsbi_openapi_put_part(const char *path, size_t n, hfsb_buf *out) {
    if (strncmp(path, "/api/jobs/", 10) == 0) hfsb_buf_printf(out, "id");
    else hfsb_buf_printf(out, "part%zu", n + 1);
}

static void hfsbi_openapi_put_parts(const char *path, const char **comma,
                                    hfsb_buf *out) {
    const char *at = path;
    size_t      n = 0;
    while ((at = strchr(at, '*')) != NULL) {
        hfsb_buf_printf(out, "%s{\"name\":\"", *comma);
        hfsbi_openapi_put_part(path, n++, out);
        hfsb_buf_printf(out, "\",\"in\":\"path\",\"required\":true,"
                             "\"schema\":{\"type\":\"string\"}}");
        *comma = ",";
        while (*at == '*') at++;
    }
}

static void hfsbi_openapi_put_params(const hfsb_route      *route,
                                     const hfsbi_operation *op,
                                     hfsb_buf              *out) {
    const hfsbi_tool *tool = hfsbi_route_tool(route);
    const char       *comma = "";
    hfsb_buf_printf(out, "\"parameters\":[");
    hfsbi_openapi_put_parts(route->path, &comma, out);
    if (tool && tool->kind != HFSBI_TOOL_READS)
        hfsb_buf_printf(out, "%s{\"$ref\":\"#/components/parameters/once\"}",
                        comma);
    if (op && op->query) hfsbi_openapi_put_query(op->query, &comma, out);
    if (route->fn == hfsbi_events_get)
        hfsbi_openapi_put_query(hfsbi_events_query_params(), &comma, out);
    if (op && op->tool && strcmp(op->method, "GET") == 0)
        hfsbi_openapi_put_query(hfsbi_tool_find(hfsb_cstr(op->tool))->params,
                                &comma, out);
    hfsb_buf_printf(out, "],");
}

/* The arguments as a schema; without the id if the path has it. */
static void hfsbi_openapi_put_arguments(const hfsbi_param *params, bool has_id,
                                        hfsb_buf *out) {
    hfsbi_param rest[8];
    size_t      n = 0;
    hfsb_buf_printf(out, "\"application/json\":{\"schema\":");
    if (has_id) {
        for (; params->name && n < 7; params++)
            if (strcmp(params->name, "id") != 0) rest[n++] = *params;
        memset(&rest[n], 0, sizeof rest[n]);
        params = rest;
    }
    hfsbi_params_schema(params, HFSBI_SCHEMA_FULL, out);
    hfsb_buf_append_byte(out, '}');
}

static void hfsbi_openapi_put_body(const hfsb_route      *route,
                                   const hfsbi_operation *op, hfsb_buf *out) {
    const hfsbi_tool *tool = hfsbi_route_tool(route);
    bool              via = op && op->tool && strcmp(op->method, "GET") != 0;
    if (!tool && !via && !(op && op->body)) return;
    hfsb_buf_printf(out, "\"requestBody\":{\"required\":%s,\"content\":{",
                    tool && strcmp(tool->name, "kill") == 0 ? "false"
                                                            : "true");
    if (via) tool = hfsbi_tool_find(hfsb_cstr(op->tool));
    if (tool) hfsbi_openapi_put_arguments(tool->params, via, out);
    else hfsbi_openapi_put_media(op->body, out);
    if (via) { /* the bytes themselves */
        hfsb_buf_append_byte(out, ',');
        hfsbi_openapi_put_media(hfsbi_openapi_bytes, out);
    }
    hfsb_buf_printf(out, "}},");
}

static void hfsbi_openapi_put_operation(const hfsbi_api  *api,
                                        const hfsb_route *route,
                                        hfsb_buf         *out) {
    const hfsbi_operation *op = hfsbi_operation_find(route);
    const hfsbi_tool      *tool = hfsbi_route_tool(route);
    const char            *id = tool ? tool->name : op ? op->id : NULL, *at;
    hfsb_buf_append_byte(out, '"');
    for (at = route->method; *at; at++)
        hfsb_buf_append_byte(out, (char)(*at | 0x20)); /* lower case */
    hfsb_buf_printf(out, "\":{");
    if (id) hfsb_buf_printf(out, "\"operationId\":\"%s\",", id);
    if (tool) {
        hfsb_buf_printf(out,
                        "\"summary\":\"%s\",\"description\":", tool->title);
        hfsbi_tool_put_description(
            tool, api->tools->shell.ptr,
            hfsb_confine_level_of(hfsb_tools_confine(api->tools)), out);
        hfsb_buf_append_byte(out, ',');
    }
    if (op) hfsb_buf_printf(out, "\"summary\":\"%s\",", op->summary);
    if (tool || op)
        hfsb_buf_printf(out, "\"tags\":[\"%s\"],", tool ? "tools" : "server");
    if (route->no_token) hfsb_buf_printf(out, "\"security\":[],");
    hfsbi_openapi_put_params(route, op, out);
    hfsbi_openapi_put_body(route, op, out);
    if (tool)
        hfsbi_openapi_put_replies(
            "Result",
            strcmp(tool->name, "bash") == 0 ? hfsbi_openapi_sse : NULL, out);
    else
        hfsbi_openapi_put_replies(op ? op->reply : NULL,
                                  op ? op->stream : NULL, out);
    hfsb_buf_append_byte(out, '}');
}

/* ---- the document ---- */

/* Methods that OpenAPI has. */
static bool hfsbi_openapi_knows(const char *method) {
    static const char *const known[] = {"GET",     "PUT",   "POST", "DELETE",
                                        "OPTIONS", "PATCH", "HEAD"};
    size_t                   i;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(method, known[i]) == 0) return true;
    return false;
}

/* The path with a name in braces for each "*". */
static void hfsbi_openapi_put_path(const char *path, hfsb_buf *out) {
    const char *at = path;
    size_t      n = 0;
    hfsb_buf_append_byte(out, '"');
    while (*at) {
        if (*at != '*') {
            if (*at == '"' || *at == '\\') hfsb_buf_append_byte(out, '\\');
            hfsb_buf_append_byte(out, *at++);
            continue;
        }
        hfsb_buf_append_byte(out, '{');
        hfsbi_openapi_put_part(path, n++, out);
        hfsb_buf_append_byte(out, '}');
        while (*at == '*') at++;
    }
    hfsb_buf_printf(out, "\":{");
}

/* Appends all operations of the path of the n-th route, unless a route before
   has that path. */
static void hfsbi_openapi_put_item(const hfsbi_api *api, size_t n,
                                   const char **comma, hfsb_buf *out) {
    const hfsb_route *first = hfsbi_server_route(api->server, n), *route;
    const char       *between = "";
    size_t            i;
    if (!hfsbi_openapi_knows(first->method)) return;
    for (i = 0; i < n; i++) {
        route = hfsbi_server_route(api->server, i);
        if (hfsbi_openapi_knows(route->method) &&
            strcmp(route->path, first->path) == 0)
            return;
    }
    hfsb_buf_printf(out, "%s", *comma);
    hfsbi_openapi_put_path(first->path, out);
    for (i = n; (route = hfsbi_server_route(api->server, i)) != NULL; i++) {
        if (strcmp(route->path, first->path) != 0) continue;
        if (!hfsbi_openapi_knows(route->method)) continue;
        hfsb_buf_printf(out, "%s", between);
        hfsbi_openapi_put_operation(api, route, out);
        between = ",";
    }
    hfsb_buf_append_byte(out, '}');
    *comma = ",";
}

/* Appends the document; a failure stays in out->status. */
static void hfsbi_openapi_put(const hfsbi_api *api, hfsb_buf *out) {
    const char *comma = "";
    size_t      i;
    hfsb_buf_printf(
        out,
        "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"hfsb\",\"version\":"
        "\"%s\",\"description\":\"A sandbox for agents: commands, files, "
        "search and edits.\",\"license\":{\"name\":\"MIT\",\"identifier\":"
        "\"MIT\"}},\"servers\":[{\"url\":\"/\"}],\"security\":[%s],"
        "\"paths\":{",
        HFSB_VERSION,
        hfsbi_server_is_open(api->server)
            ? ""
            : "{\"bearer\":[]},{\"sandbox\":[]}");
    for (i = 0; hfsbi_server_route(api->server, i); i++)
        hfsbi_openapi_put_item(api, i, &comma, out);
    hfsb_buf_printf(out, "},%s\"schemas\":{", hfsbi_openapi_components);
    for (i = 0;
         i < sizeof hfsbi_openapi_schemas / sizeof *hfsbi_openapi_schemas; i++)
        hfsb_buf_printf(out, "%s\"%s\":%s", i ? "," : "",
                        hfsbi_openapi_schemas[i][0],
                        hfsbi_openapi_schemas[i][1]);
    hfsb_buf_printf(out, "}}}\n");
}

HFSBI_FN void hfsbi_openapi_get(void *user, hfsb_request *request) {
    hfsbi_api *api = (hfsbi_api *)user;
    hfsb_buf   out = HFSB_INIT;
    out.alloc = api->alloc;
    hfsbi_openapi_put(api, &out);
    if (hfsb_buf_finish(&out, 0) == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}
