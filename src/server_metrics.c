/* server_metrics.c - how the server does: for probes and for Prometheus.
   Depends on: server_sandbox. */
#include "server_sandbox.h"

/* ---- /api/health ---- */

static void hfsbi_health(void *user, hfsb_request *request) {
    hfsbi_sandbox            *box = (hfsbi_sandbox *)user;
    const hfsbi_server_stats *stats;
    hfsbi_jobs_figures        jobs;
    char                      text[400];
    int                       n;
    if (!hfsbi_request_trusted(request)) {
        hfsb_reply(request, 200, "application/json",
                   HFSB_LIT("{\"status\":\"ok\"}"));
        return;
    }
    stats = hfsbi_server_stats_of(box->server);
    jobs = hfsbi_jobs_count_all(box->tools);
    n = snprintf(text, sizeof text,
                 "{\"status\":\"ok\",\"version\":\"%s\",\"instance\":\"%s\","
                 "\"uptime_s\":%lld,\"running\":%zu,\"waiting\":%zu,"
                 "\"connections\":%zu,\"stopping\":%s}",
                 HFSB_VERSION, hfsbi_server_instance(box->server),
                 (hfsb_clock_ms() - box->began) / 1000, jobs.running,
                 jobs.waiting, stats->open,
                 hfsbi_server_stopping(box->server) ? "true" : "false");
    hfsb_reply(request, 200, "application/json",
               hfsb_str_make(text, n > 0 ? (size_t)n : 0));
}

/* ---- /api/metrics ---- */

/* HELP, TYPE and, unless labels follow, the value. */
static void hfsbi_put_metric(hfsbi_sink *s, const char *name, const char *type,
                             const char *help, unsigned long long value) {
    hfsbi_putf(s, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name,
               type, name, value);
}

/* Bytes of memory that this process has in use, 0: not known. */
static unsigned long long hfsbi_resident(void) {
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
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        pages = pages * 10 + (unsigned long long)(*at - '0');
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static void hfsbi_put_requests(hfsbi_sink               *s,
                               const hfsbi_server_stats *stats) {
    int i;
    hfsbi_putf(s, "# HELP hfsb_requests_total Requests answered, by the class "
                  "of the status.\n# TYPE hfsb_requests_total counter\n");
    for (i = 1; i <= 5; i++)
        hfsbi_putf(s, "hfsb_requests_total{class=\"%dxx\"} %llu\n", i,
                   stats->by_class[i]);
}

static void hfsbi_put_server_metrics(hfsbi_sink               *s,
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

static void hfsbi_put_commands(hfsbi_sink *s, hfsbi_jobs_figures jobs) {
    hfsbi_put_metric(s, "hfsb_commands_running", "gauge",
                     "Commands that run now.", jobs.running);
    hfsbi_put_metric(s, "hfsb_commands_waiting", "gauge",
                     "Commands that wait for a place.", jobs.waiting);
    hfsbi_put_metric(s, "hfsb_commands_total", "counter",
                     "Commands ever taken.", jobs.ever);
}

static void hfsbi_metrics(void *user, hfsb_request *request) {
    hfsbi_sandbox     *box = (hfsbi_sandbox *)user;
    hfsb_buf           out = HFSB_INIT;
    unsigned long long resident = hfsbi_resident();
    hfsbi_sink         s;
    out.alloc = box->alloc;
    s = hfsbi_sink_begin(&out);
    hfsbi_putf(&s,
               "# HELP hfsb_info What runs here.\n# TYPE hfsb_info gauge\n"
               "hfsb_info{version=\"%s\",instance=\"%s\"} 1\n",
               HFSB_VERSION, hfsbi_server_instance(box->server));
    hfsbi_put_metric(
        &s, "hfsb_uptime_seconds", "gauge", "Since the sandbox was opened.",
        (unsigned long long)(hfsb_clock_ms() - box->began) / 1000);
    hfsbi_put_server_metrics(&s, hfsbi_server_stats_of(box->server));
    hfsbi_put_commands(&s, hfsbi_jobs_count_all(box->tools));
    if (resident)
        hfsbi_put_metric(&s, "process_resident_memory_bytes", "gauge",
                         "Memory of the server in use.", resident);
    if (hfsbi_sink_end(&s) == HFSB_OK)
        hfsbi_reply_take(request, 200, "text/plain; version=0.0.4", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}

static hfsb_status hfsbi_health_route(hfsbi_sandbox *box, const char *path,
                                      hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = path;
    route.fn = hfsbi_health;
    route.user = box;
    route.no_token = true;
    route.max_body = 1; /* no stranger's bytes are kept in memory */
    return hfsb_server_add(box->server, &route, err);
}

HFSBI_FN hfsb_status hfsbi_health_add(hfsbi_sandbox *box, hfsb_err *err) {
    return hfsbi_health_route(box, "/api/health", err);
}

HFSBI_FN hfsb_status hfsbi_metrics_add(hfsbi_sandbox *box, hfsb_err *err) {
    /* what probes ask for elsewhere */
    hfsb_status st = hfsbi_health_route(box, "/healthz", err);
    if (st != HFSB_OK) return st;
    return hfsbi_sandbox_route(box, "GET", "/api/metrics", hfsbi_metrics, box,
                               err);
}
