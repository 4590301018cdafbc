/* e2b_rest.c - E2B's envd: the calls that are plain HTTP.

       GET  /health          204 while the sandbox lives
       GET  /metrics, /envs  figures of the machine; variables of the sandbox
       POST /init            sets token, variables, work directory and the name
                             of the user after the start: the first caller
                             sets the token, later ones need it; if two arrive
                             out of order, the newer timestamp counts

   The calls of files are in e2b_transfer.c. */
#include "dialect_private.h"

/* ---- health, variables, init ---- */

static void hfsbi_e2b_health(void *user, hfsb_request *request) {
    if (hfsbi_server_is_stopping(hfsb_request_server(request)))
        hfsb_reply_error(request, 503, "The server is stopping.");
    else if (hfsbi_e2b_box_named((hfsbi_e2b *)user, request))
        hfsb_reply(request, 204, "", HFSB_LIT(""));
    else hfsb_reply_error(request, 502, "The sandbox was not found");
}

static void hfsbi_e2b_envs(void *user, hfsb_request *request) {
    hfsbi_e2b_box   *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsb_json_writer w;
    hfsb_buf         out = HFSB_INIT;
    if (!box) return;
    out.alloc = box->env.alloc;
    hfsb_json_writer_init(&w, &out, NULL);
    hfsb_json_put_object(&w);
    hfsbi_e2b_put_env(&w, &box->env);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}

/* The text of a member of the message; "" without one. */
static hfsb_str hfsbi_e2b_init_text(const hfsb_json_value *message,
                                    const char *name, const char *other) {
    return hfsb_json_str(hfsbi_e2b_get(message, name, other), HFSB_LIT(""));
}

/* Moves *from to *to; *from gets the old value. */
static void hfsbi_e2b_init_set(hfsb_buf *to, hfsb_buf *from) {
    hfsb_buf old = *to;
    *to = *from;
    *from = old;
}

/* Applies the message of /init, all of it or nothing. */
static hfsb_status hfsbi_e2b_init_apply(hfsbi_e2b_box         *box,
                                        const hfsb_json_value *message,
                                        hfsb_err              *err) {
    hfsb_str token =
        hfsbi_e2b_init_text(message, "accessToken", "access_token");
    hfsb_str work =
        hfsbi_e2b_init_text(message, "defaultWorkdir", "default_workdir");
    hfsb_str user =
        hfsbi_e2b_init_text(message, "defaultUser", "default_user");
    hfsb_buf    env = HFSB_INIT, dir = HFSB_INIT, name = HFSB_INIT;
    hfsb_status st;
    env.alloc = dir.alloc = name.alloc = box->env.alloc;
    hfsb_buf_append(&env, hfsb_buf_str(&box->env));
    hfsb_buf_append(&name, user.len ? user : hfsb_buf_str(&box->user));
    st = hfsbi_e2b_set_env(&env, hfsbi_e2b_get(message, "envVars", "env_vars"),
                           err);
    if (st == HFSB_OK &&
        (name.status != HFSB_OK || !hfsbi_e2b_path(box, work, &dir) ||
         (token.len && !hfsbi_guest_set_token(&box->guest, token))))
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Init");
    if (st == HFSB_OK) {
        hfsbi_e2b_init_set(&box->env, &env);
        hfsbi_e2b_init_set(&box->work_dir, &dir);
        hfsbi_e2b_init_set(&box->user, &name);
    }
    hfsb_buf_free(&env);
    hfsb_buf_free(&dir);
    hfsb_buf_free(&name);
    return st;
}

/* Applies it unless one with a later timestamp, or the same, has come. */
static hfsb_status hfsbi_e2b_init_once(hfsbi_e2b_box         *box,
                                       const hfsb_json_value *message,
                                       hfsb_err              *err) {
    hfsb_str    text = hfsbi_e2b_init_text(message, "timestamp", "timestamp");
    double      at = 0;
    hfsb_status st;
    if (text.len && !hfsbi_date_parse(text, &at))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "timestamp must be a date such as "
                          "2026-01-31T23:59:59.123Z.");
    if (text.len && at <= box->set_at) return HFSB_OK;
    st = hfsbi_e2b_init_apply(box, message, err);
    if (st == HFSB_OK && text.len) box->set_at = at;
    return st;
}

/* The message of /init, which no web page may send. E2B's own caller declares
   no type. False when it was refused. */
static bool hfsbi_e2b_init_read(hfsb_request *request, hfsb_json_doc *doc) {
    const hfsb_http_head *head = hfsb_request_head(request);
    if (!hfsbi_request_is_direct(request)) return false;
    if (!hfsb_request_body(request).len) return true;
    if (!hfsb_http_field_count(head, "Content-Type") ||
        hfsbi_request_is_json(request))
        return hfsbi_dialect_parse(request, doc);
    hfsb_reply_error(request, 415, "Content-Type must be application/json.");
    return false;
}

static void hfsbi_e2b_init(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    hfsb_status    st = HFSB_OK;
    if (!box || !hfsbi_e2b_init_read(request, &doc)) return;
    if (!hfsbi_e2b_may_init(
            box, request,
            hfsbi_e2b_init_text(doc.root, "accessToken", "access_token")))
        hfsb_reply_error(request, 401,
                         "The sandbox has a token already: send it.");
    else {
        st = hfsbi_e2b_init_once(box, doc.root, &err);
        if (st == HFSB_OK) hfsb_reply(request, 204, "", HFSB_LIT(""));
        else
            hfsb_reply_error(request, hfsbi_connect_status(hfsbi_e2b_code(st)),
                             "%s", err.msg);
    }
    hfsb_json_free(&doc);
}

/* ---- metrics ---- */

typedef struct hfsbi_e2b_figures {
    hfsbi_e2b_box *box;
    hfsb_buf       dir;
    hfsbi_figures  now;
} hfsbi_e2b_figures;

static void hfsbi_e2b_figures_run(void *user) {
    hfsbi_e2b_figures *f = (hfsbi_e2b_figures *)user;
    hfsbi_figures_read(&f->now, f->dir.ptr, &f->dir.alloc);
}

static void hfsbi_e2b_figures_done(void *user, hfsb_request *request) {
    hfsbi_e2b_figures *f = (hfsbi_e2b_figures *)user;
    hfsbi_e2b         *e2b = f->box->e2b;
    hfsb_alloc         alloc = f->dir.alloc;
    unsigned long long all = f->now.cpu_all - e2b->cpu_all;
    unsigned long long idle = f->now.cpu_idle - e2b->cpu_idle;
    unsigned long long used = f->now.mem_total - f->now.mem_free;
    char               text[512];
    long               cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double             busy =
        all ? 100.0 * (double)(all - (idle < all ? idle : all)) / (double)all
                        : 0.0;
    e2b->cpu_all = f->now.cpu_all; /* the next one covers the time since */
    e2b->cpu_idle = f->now.cpu_idle;
    (void)snprintf(text, sizeof text,
                   "{\"ts\":%lld,\"cpu_count\":%ld,\"cpu_used_pct\":%d.%02d,"
                   "\"mem_total\":%llu,\"mem_used\":%llu,\"mem_cache\":%llu,"
                   "\"mem_total_mib\":%llu,\"mem_used_mib\":%llu,"
                   "\"disk_used\":%llu,\"disk_total\":%llu}",
                   hfsbi_time_ns() / 1000000000, cpus > 0 ? cpus : 1,
                   (int)busy, (int)((busy - (int)busy) * 100), f->now.mem_total,
                   used, f->now.mem_cache, f->now.mem_total >> 20, used >> 20,
                   f->now.disk_used, f->now.disk_total);
    hfsb_reply(request, 200, "application/json", hfsb_cstr(text));
    hfsbi_guest_release(&f->box->guest);
    hfsb_buf_free(&f->dir);
    hfsbi_array_free(&alloc, f, 1, sizeof *f);
}

static void hfsbi_e2b_metrics(void *user, hfsb_request *request) {
    hfsbi_e2b_box     *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsbi_e2b_figures *f;
    if (!box) return;
    f = (hfsbi_e2b_figures *)hfsbi_array(&box->env.alloc, 1, sizeof *f);
    if (!f) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(f, 0, sizeof *f);
    f->box = box;
    f->dir.alloc = box->env.alloc;
    hfsbi_guest_hold(&box->guest);
    (void)hfsbi_e2b_path(box, HFSB_LIT(""), &f->dir);
    hfsbi_request_work(request, NULL, hfsbi_e2b_figures_run,
                       hfsbi_e2b_figures_done, f);
}

HFSBI_FN hfsb_status hfsbi_e2b_add_rest(hfsbi_e2b *e2b, hfsb_err *err) {
    static const hfsbi_dialect_route routes[] = {
        {"GET", "/health", hfsbi_e2b_health, true, NULL, NULL},
        {"GET", "/metrics", hfsbi_e2b_metrics, false, NULL, NULL},
        {"GET", "/envs", hfsbi_e2b_envs, false, NULL, NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    static const hfsbi_dialect_route init[] = {
        {"POST", "/init", hfsbi_e2b_init, true, NULL, NULL}, /* fn checks */
        {NULL, NULL, NULL, false, NULL, NULL}};
    hfsb_status st = hfsbi_dialect_add(&e2b->dialect, routes, err);
    /* a server that waits for its own /init has one first caller */
    if (st == HFSB_OK && !hfsbi_server_takes_token(e2b->dialect.server))
        st = hfsbi_dialect_add(&e2b->dialect, init, err);
    return st;
}
