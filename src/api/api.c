/* api.c - the HTTP API of the tools: its routes, its start and its end.

   hfsb_server_add_sandbox() makes one hfsbi_api per server. It owns the tools
   and adds these routes:

     POST   /api/bash, /api/read ...     a call of a tool (call.c, fields.c)
     GET    /api/jobs, /api/jobs/ID      the jobs as JSON
     GET    /api/jobs/ID/output          a call of bash_output
     POST   /api/jobs/ID/input           a call of bash_input, or raw bytes
     DELETE /api/jobs/ID                 a call of kill
     GET, PUT, DELETE /api/files         files as bytes (files.c)
     GET    /api/health, /healthz        for probes, without a token
     GET    /api/metrics                 for Prometheus
     GET    /api/events                  the journal (events.c)
     GET    /api/openapi.json            all of these (openapi.c)
     GET    /api/exec                    a program, byte for byte (exec.c)
     POST   /reset                       see reset.c
     POST   /api/open, any /proxy, /open see open.c

   The tools live in the server's loop. They oversee those of MCP sessions: the
   routes for jobs, kill and the metrics cover all commands of the server. The
   object is a part of the server: end() cancels calls and kills commands,
   free() closes the tools. Once a route refers to the object, only free() may
   free it. */
#include "api_private.h"

/* Adds a route with the default options. */
static hfsb_status hfsbi_api_route(hfsbi_api *api, const char *method,
                                   const char *path, hfsb_route_fn fn,
                                   void *user, hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = method;
    route.path = path;
    route.fn = fn;
    route.user = user;
    return hfsb_server_add(api->server, &route, err);
}

/* ---- /api/jobs: the list, and one job ---- */

static void hfsbi_jobs_list(void *user, hfsb_request *request) {
    hfsbi_api *api = (hfsbi_api *)user;
    hfsb_buf   out = HFSB_INIT;
    out.alloc = api->alloc;
    if (hfsb_buf_append(&out, HFSB_LIT("{\"jobs\":")) == HFSB_OK &&
        hfsb_tools_jobs(api->tools, HFSB_LIT(""), &out, NULL) == HFSB_OK &&
        hfsb_buf_append_byte(&out, '}') == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}

static void hfsbi_jobs_one(void *user, hfsb_request *request) {
    hfsbi_api  *api = (hfsbi_api *)user;
    hfsb_buf    out = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    out.alloc = api->alloc;
    st =
        hfsb_tools_jobs(api->tools, hfsb_request_part(request, 0), &out, &err);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else
        hfsb_reply_error(request, st == HFSB_NOT_FOUND ? 404 : 503, "%s",
                         err.msg);
    hfsb_buf_free(&out);
}

/* ---- /api/jobs/ID: calls of the tools that take an id ---- */

/* Returns a new call of the tool, with the job's id from the path; NULL if the
   request is already answered: no such job, or hfsbi_api_call_new() failed. */
static hfsbi_api_call *hfsbi_jobs_call(hfsbi_api *api, hfsb_request *request,
                                       const char *tool) {
    hfsb_str        id = hfsb_request_part(request, 0);
    hfsb_err        err = HFSB_INIT;
    hfsbi_api_call *x;
    if (!hfsbi_job_exists(api->tools, id)) {
        hfsbi_fail(&err, HFSB_NOT_FOUND, 0, "No such job: ");
        hfsbi_err_quote(&err, id, 80);
        hfsb_reply_error(request, 404, "%s", err.msg);
        return NULL;
    }
    x = hfsbi_api_call_new(api, request, hfsbi_tool_find(hfsb_cstr(tool)));
    if (x && hfsb_buf_append(&x->id, id) != HFSB_OK)
        x->status = 503; /* hfsbi_api_call_start() replies */
    return x;
}

/* Writes the member key if the query contains it, as a string: the tools
   accept numbers in strings. HFSB_OK; HFSB_SYNTAX if the query cannot be
   decoded; HFSB_NOMEM. */
static hfsb_status hfsbi_jobs_put_query(const hfsb_request *request,
                                        const char *key, hfsb_json_writer *w,
                                        const hfsb_alloc *alloc,
                                        hfsb_err         *err) {
    hfsb_buf    value = HFSB_INIT;
    hfsb_status st;
    value.alloc = *alloc;
    st = hfsb_request_query(request, key, &value, err);
    if (st == HFSB_OK) hfsb_json_put_member_str(w, key, hfsb_buf_str(&value));
    hfsb_buf_free(&value);
    return st == HFSB_NOT_FOUND ? HFSB_OK : st;
}

static void hfsbi_jobs_output(void *user, hfsb_request *request) {
    hfsbi_api       *api = (hfsbi_api *)user;
    hfsbi_api_call  *x = hfsbi_jobs_call(api, request, "bash_output");
    hfsb_err         err = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    if (!x) return;
    x->where = "query";
    hfsb_buf_truncate(&x->body, 0); /* the body of a GET is ignored */
    hfsb_json_writer_init(&w, &x->body, NULL);
    hfsb_json_put_object(&w);
    st = hfsbi_jobs_put_query(request, "offset", &w, &api->alloc, &err);
    if (st == HFSB_OK)
        st = hfsbi_jobs_put_query(request, "wait_ms", &w, &api->alloc, &err);
    hfsb_json_put_end(&w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, &err);
    if (st == HFSB_SYNTAX)
        hfsbi_api_call_fail(x, 400, HFSB_LIT(""), hfsb_cstr(err.msg));
    else if (st != HFSB_OK) x->status = 503;
    hfsbi_api_call_start(x);
}

static void hfsbi_jobs_kill(void *user, hfsb_request *request) {
    hfsbi_api_call *x = hfsbi_jobs_call((hfsbi_api *)user, request, "kill");
    if (!x) return;
    hfsb_buf_truncate(&x->body, 0);
    if (hfsb_buf_append(&x->body, HFSB_LIT("{}")) != HFSB_OK) x->status = 503;
    hfsbi_api_call_start(x);
}

/* ---- /api/jobs/ID/input ---- */

/* Passes the body to the job unchanged: bytes that need not be UTF-8. */
static void hfsbi_jobs_input_bytes(hfsbi_api *api, hfsb_request *request) {
    hfsb_tool_result result;
    hfsb_buf         out = HFSB_INIT, eof = HFSB_INIT;
    hfsb_str         last, id = hfsb_request_part(request, 0);
    long long        began = hfsb_clock_ms();
    char             job[HFSBI_JOB_ID];
    hfsb_status      st;
    out.alloc = eof.alloc = api->alloc;
    hfsbi_result_init(&result, &api->alloc);
    st = hfsb_request_query(request, "eof", &eof, NULL);
    last = hfsb_buf_str(&eof);
    if (st == HFSB_OK || st == HFSB_NOT_FOUND)
        st = hfsbi_job_input(api->tools, id, hfsb_request_body(request),
                             hfsb_str_equal(last, HFSB_LIT("1")) ||
                                 hfsb_str_equal(last, HFSB_LIT("true")),
                             &result);
    (void)snprintf(job, sizeof job, "%.*s", (int)id.len, id.ptr);
    hfsbi_api_report_request(request, api->tools, "bash_input", HFSB_LIT(""),
                             job, hfsb_buf_str(&result.error), began,
                             result.output.len);
    if (st == HFSB_OK) st = hfsb_tool_result_write(&result, &out, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else if (st == HFSB_SYNTAX)
        hfsb_reply_error(request, 400, "The query cannot be decoded.");
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&eof);
    hfsb_buf_free(&out);
}

static void hfsbi_jobs_input(void *user, hfsb_request *request) {
    hfsbi_api            *api = (hfsbi_api *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_api_call       *x;
    bool raw = hfsb_http_field_lists(head, "Content-Type", "text/plain") ||
               hfsb_http_field_lists(head, "Content-Type",
                                     "application/octet-stream");
    if (!raw && hfsb_request_body(request).len &&
        !hfsbi_request_is_json(request)) {
        hfsb_reply_error(request, 415,
                         "The body must be JSON (application/json), or the "
                         "bytes themselves (text/plain or "
                         "application/octet-stream).");
        return;
    }
    if (raw && hfsbi_job_exists(api->tools, hfsb_request_part(request, 0))) {
        hfsbi_jobs_input_bytes(api, request);
        return;
    }
    x = hfsbi_jobs_call(api, request, "bash_input");
    if (x) hfsbi_api_call_start(x);
}

static hfsb_status hfsbi_jobs_add(hfsbi_api *api, hfsb_err *err) {
    hfsb_route  input = HFSB_INIT;
    hfsb_status st =
        hfsbi_api_route(api, "GET", "/api/jobs", hfsbi_jobs_list, api, err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET", "/api/jobs/*", hfsbi_jobs_one, api,
                             err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "DELETE", "/api/jobs/*", hfsbi_jobs_kill,
                             api, err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET",
                             "/api/jobs/*"
                             "/output",
                             hfsbi_jobs_output, api, err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET",
                             "/api/jobs/*"
                             "/raw",
                             hfsbi_raw_get, api, err);
    if (st != HFSB_OK) return st;
    input.method = "POST";
    input.path = "/api/jobs/*"
                 "/input";
    input.fn = hfsbi_jobs_input;
    input.user = api;
    input.max_body = HFSBI_API_INPUT;
    return hfsb_server_add(api->server, &input, err);
}

/* ---- /api/health ---- */

/* Strangers learn only that the server is up. */
static void hfsbi_health(void *user, hfsb_request *request) {
    hfsbi_api                *api = (hfsbi_api *)user;
    const hfsbi_server_stats *stats;
    hfsbi_jobs_figures        jobs;
    char                      text[400];
    int                       n;
    if (!hfsbi_request_is_trusted(request)) {
        hfsb_reply(request, 200, "application/json",
                   HFSB_LIT("{\"status\":\"ok\"}"));
        return;
    }
    stats = hfsbi_server_stats_of(api->server);
    jobs = hfsbi_jobs_count_all(api->tools);
    n = snprintf(text, sizeof text,
                 "{\"status\":\"ok\",\"version\":\"%s\",\"instance\":\"%s\","
                 "\"uptime_s\":%lld,\"running\":%zu,\"waiting\":%zu,"
                 "\"connections\":%zu,\"confine\":\"%s\",\"stopping\":%s}",
                 HFSB_VERSION, hfsbi_server_instance(api->server),
                 (hfsb_clock_ms() - api->began) / 1000, jobs.running,
                 jobs.waiting, stats->open,
                 hfsb_confine_level_name(
                     hfsb_confine_level_of(hfsb_tools_confine(api->tools))),
                 hfsbi_server_is_stopping(api->server) ? "true" : "false");
    hfsb_reply(request, 200, "application/json",
               hfsb_str_make(text, n > 0 ? (size_t)n : 0));
}

/* ---- /api/metrics ---- */

/* Appends HELP, TYPE and the value of a metric without labels. */
static void hfsbi_put_metric(hfsb_buf *s, const char *name, const char *type,
                             const char *help, unsigned long long value) {
    hfsb_buf_printf(s, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help,
                    name, type, name, value);
}

/* Resident memory of this process in bytes; 0 if unknown. */
static unsigned long long hfsbi_resident_bytes(void) {
    unsigned long long pages = 0;
    char               text[128];
    ssize_t            n;
    const char        *at;
    int                fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    n = hfsbi_read(fd, text, sizeof text - 1);
    hfsbi_close(&fd);
    if (n <= 0) return 0;
    text[n] = '\0';
    at = strchr(text, ' '); /* "size resident ..." */
    for (at = at ? at + 1 : ""; hfsbi_is_digit(*at); at++)
        pages = pages * 10 + (unsigned long long)(*at - '0');
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static void hfsbi_put_requests(hfsb_buf *s, const hfsbi_server_stats *stats) {
    int i;
    hfsb_buf_printf(
        s, "# HELP hfsb_requests_total Requests answered, by the class "
           "of the status.\n# TYPE hfsb_requests_total counter\n");
    for (i = 1; i <= 5; i++)
        hfsb_buf_printf(s, "hfsb_requests_total{class=\"%dxx\"} %llu\n", i,
                        stats->by_class[i]);
}

static void hfsbi_put_server_metrics(hfsb_buf                 *s,
                                     const hfsbi_server_stats *stats) {
    hfsbi_put_requests(s, stats);
    hfsbi_put_metric(s, "hfsb_connections", "gauge", "Connections now.",
                     stats->open);
    hfsbi_put_metric(s, "hfsb_connections_accepted_total", "counter",
                     "Connections ever.", stats->accepted);
    hfsbi_put_metric(s, "hfsb_connections_refused_total", "counter",
                     "Connections closed at once: too many.", stats->refused);
    hfsbi_put_metric(s, "hfsb_received_bytes_total", "counter",
                     "Bytes of bodies received.", stats->bytes_in);
    hfsbi_put_metric(s, "hfsb_sent_bytes_total", "counter",
                     "Bytes of bodies sent.", stats->bytes_out);
    hfsbi_put_metric(s, "hfsb_bodies_bytes", "gauge",
                     "Bytes of bodies in memory now.", stats->bodies);
}

static void hfsbi_put_commands(hfsb_buf *s, hfsbi_jobs_figures jobs) {
    hfsbi_put_metric(s, "hfsb_commands_running", "gauge",
                     "Commands that run now.", jobs.running);
    hfsbi_put_metric(s, "hfsb_commands_waiting", "gauge",
                     "Commands that wait for a place.", jobs.waiting);
    hfsbi_put_metric(s, "hfsb_commands_total", "counter",
                     "Commands ever taken.", jobs.ever);
}

static void hfsbi_put_journal(hfsb_buf *s, hfsbi_journal_figures journal) {
    hfsbi_put_metric(s, "hfsb_events_total", "counter",
                     "Events of the journal ever.", journal.events);
    if (journal.file)
        hfsbi_put_metric(s, "hfsb_journal_failures_total", "counter",
                         "Lines of the journal that could not be written.",
                         journal.failed);
}

static void hfsbi_metrics(void *user, hfsb_request *request) {
    hfsbi_api         *api = (hfsbi_api *)user;
    hfsb_buf           out = HFSB_INIT;
    unsigned long long resident = hfsbi_resident_bytes();
    size_t             mark;
    out.alloc = api->alloc;
    mark = out.len;
    hfsb_buf_printf(
        &out,
        "# HELP hfsb_info What runs here.\n# TYPE hfsb_info gauge\n"
        "hfsb_info{version=\"%s\",instance=\"%s\"} 1\n",
        HFSB_VERSION, hfsbi_server_instance(api->server));
    hfsbi_put_metric(
        &out, "hfsb_uptime_seconds", "gauge", "Since the sandbox was opened.",
        (unsigned long long)(hfsb_clock_ms() - api->began) / 1000);
    hfsbi_put_server_metrics(&out, hfsbi_server_stats_of(api->server));
    hfsbi_put_commands(&out, hfsbi_jobs_count_all(api->tools));
    hfsbi_put_journal(&out, hfsbi_journal_count(api->journal));
    if (resident)
        hfsbi_put_metric(&out, "process_resident_memory_bytes", "gauge",
                         "Memory of the server in use.", resident);
    if (hfsb_buf_finish(&out, mark) == HFSB_OK)
        hfsbi_reply_take(request, 200, "text/plain; version=0.0.4", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}

/* Needs no token. Returns as hfsb_server_add(): HFSB_ARG if the server has an
   API already. */
static hfsb_status hfsbi_health_route(hfsbi_api *api, const char *path,
                                      hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = path;
    route.fn = hfsbi_health;
    route.user = api;
    route.no_token = true;
    route.max_body = 1; /* keep no bytes of strangers in memory */
    return hfsb_server_add(api->server, &route, err);
}

/* ---- the end ---- */

static void hfsbi_api_stop(hfsbi_server_part *part) {
    hfsbi_news_end((hfsbi_api *)(void *)part);
}

static void hfsbi_api_end(hfsbi_server_part *part) {
    hfsbi_api *api = (hfsbi_api *)(void *)part;
    api->ended = true;
    hfsbi_api_calls_end(api);
    hfsbi_resets_end(api);
    hfsbi_jobs_end(api->tools, HFSB_LIT(""));
}

static bool hfsbi_api_busy(hfsbi_server_part *part) {
    hfsbi_api *api = (hfsbi_api *)(void *)part;
    return api->resets || hfsb_tools_busy(api->tools) > 0;
}

static void hfsbi_api_free(hfsbi_server_part *part) {
    hfsbi_api *api = (hfsbi_api *)(void *)part;
    hfsb_alloc alloc = api->alloc;
    hfsbi_news_stop(api);
    if (hfsbi_server_must_end(api->server)) hfsbi_tools_free(api->tools);
    else hfsb_tools_close(api->tools);
    hfsbi_webpage_close(&api->page);
    if (api->own_journal) hfsb_journal_close(api->journal);
    hfsbi_array_free(&alloc, api, 1, sizeof *api);
}

/* ---- the start ---- */

/* Default timeout of a command over HTTP, in seconds. */
#define HFSBI_API_TIMEOUT 120.0

/* A stranger may be the first caller: see init.c. */
static hfsb_status hfsbi_init_route(hfsbi_api *api, hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "POST";
    route.path = "/init";
    route.fn = hfsbi_init_post;
    route.user = api;
    route.no_token = true;
    return hfsb_server_add(api->server, &route, err);
}

/* What a person needs to watch and to steer. */
static hfsb_status hfsbi_api_watch_routes(hfsbi_api *api, hfsb_err *err) {
    static const struct {
        const char   *method, *path;
        hfsb_route_fn fn;
    } rows[] = {{"GET", "/api/stats", hfsbi_stats_get},
                {"GET", "/api/exec", hfsbi_exec_get},
                {"GET", "/api/plan", hfsbi_plan_get},
                {"POST", "/api/plan_tool", hfsbi_plan_post}};
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < sizeof rows / sizeof *rows; i++)
        st = hfsbi_api_route(api, rows[i].method, rows[i].path, rows[i].fn,
                             api, err);
    return st;
}

static hfsb_status hfsbi_api_routes(hfsbi_api *api, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    char        path[64];
    size_t      i;
    for (i = 0; st == HFSB_OK && i < HFSBI_TOOLS; i++) {
        hfsbi_endpoint *at = &api->endpoints[i];
        at->api = api;
        at->tool = hfsbi_tool_at(i);
        (void)snprintf(path, sizeof path, "/api/%s", at->tool->name);
        st = hfsbi_api_route(api, "POST", path, hfsbi_api_tool, at, err);
    }
    /* the path that probes use by convention */
    if (st == HFSB_OK) st = hfsbi_health_route(api, "/healthz", err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET", "/api/metrics", hfsbi_metrics, api,
                             err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET", "/api/events", hfsbi_events_get, api,
                             err);
    if (st == HFSB_OK)
        st = hfsbi_api_route(api, "GET", "/api/openapi.json",
                             hfsbi_openapi_get, api, err);
    if (st == HFSB_OK) st = hfsbi_api_watch_routes(api, err);
    if (st == HFSB_OK)
        st =
            hfsbi_api_route(api, "POST", "/reset", hfsbi_reset_post, api, err);
    if (st == HFSB_OK && hfsbi_server_takes_token(api->server))
        st = hfsbi_init_route(api, err);
    if (st == HFSB_OK) st = hfsbi_jobs_add(api, err);
    if (st == HFSB_OK) st = hfsbi_files_add(api->server, api->tools, err);
    if (st == HFSB_OK) st = hfsbi_open_add(api, err);
    return st;
}

/* Opens the tools, and a journal in memory if the options have none. Returns
   as hfsb_tools_open(). */
static hfsb_status hfsbi_api_open_tools(hfsbi_api             *api,
                                        const hfsb_tools_opts *opts,
                                        hfsb_err              *err) {
    hfsb_journal_opts memory = HFSB_INIT;
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_status       st = HFSB_OK;
    if (opts) o = *opts;
    if (!(o.timeout > 0)) o.timeout = HFSBI_API_TIMEOUT;
    if (!o.alloc.fn) o.alloc = api->alloc;
    if (!o.who) o.who = "api";
    o.session = false; /* requests do not share a session */
    memory.alloc = o.alloc;
    api->own_journal = !o.journal;
    if (!o.journal) st = hfsb_journal_open(&memory, &o.journal, err);
    api->journal = o.journal;
    if (st != HFSB_OK) return st;
    st = hfsbi_tools_open_in(hfsbi_server_group(api->server), NULL, &o,
                             &api->tools, err);
    if (st == HFSB_OK) hfsbi_tools_oversee(api->tools);
    else if (api->own_journal) hfsb_journal_close(api->journal);
    return st;
}

/* Opens the tools and fills a new object, without routes. NULL with *err: out
   of memory, or as hfsb_tools_open(). */
static hfsbi_api *hfsbi_api_new(hfsb_server                    *server,
                                const hfsb_server_sandbox_opts *opts,
                                hfsb_err                       *err) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsbi_api        *api = (hfsbi_api *)hfsbi_array(alloc, 1, sizeof *api);
    if (!api) {
        hfsbi_fail_status(err, HFSB_NOMEM, "Adding the sandbox");
        return NULL;
    }
    memset(api, 0, sizeof *api);
    api->alloc = *alloc;
    api->server = server;
    api->loop = hfsbi_server_loop(server);
    if (hfsbi_api_open_tools(api, opts->tools, err) != HFSB_OK) {
        hfsbi_array_free(alloc, api, 1, sizeof *api);
        return NULL;
    }
    hfsbi_news_init(api);
    api->kill_on_disconnect = opts->kill_on_disconnect;
    api->beat_ms = opts->beat_ms > 0 ? opts->beat_ms : 0;
    api->began = hfsb_clock_ms();
    api->part.stop = hfsbi_api_stop;
    api->part.end = hfsbi_api_end;
    api->part.busy = hfsbi_api_busy;
    api->part.free = hfsbi_api_free;
    return api;
}

hfsb_status hfsb_server_add_sandbox(hfsb_server                    *server,
                                    const hfsb_server_sandbox_opts *opts,
                                    hfsb_err                       *err) {
    hfsb_server_sandbox_opts none = HFSB_INIT;
    hfsb_err                 why = HFSB_INIT;
    hfsbi_api               *api;
    hfsb_status              st;
    if (!err) err = &why;
    api = hfsbi_api_new(server, opts ? opts : &none, err);
    if (!api) return err->code;
    st = hfsbi_health_route(api, "/api/health", err);
    if (st != HFSB_OK) { /* no route refers to it: free it here */
        hfsbi_api_free(&api->part);
        return st;
    }
    /* from here on it lives as long as the server, even if a route fails */
    hfsbi_server_part_add(server, &api->part);
    st = hfsbi_api_routes(api, err);
    if (st != HFSB_OK || (opts && opts->no_page)) return st;
    hfsbi_server_group(server)->tap = HFSBI_API_TAP;
    return hfsbi_webpage_add(api, err);
}

const hfsb_tools *hfsb_server_tools(hfsb_server *server) {
    return hfsbi_server_group(server)->overseer;
}
