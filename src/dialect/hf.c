/* hf.c - the sandbox API of Hugging Face (/v1), protocol 3.

   What huggingface_hub.Sandbox and its kin call. The routes of commands are in
   hf_exec.c, those of files in hf_files.c; here are the tokens, the errors,
   the arguments of commands, the proxy to a port, and the clock of a server
   that nobody uses.

   A request works in a place: the tools of the dialect, or in host mode those
   of one sandbox (hf_host.c), for which the same routes exist beneath its id.
   Whoever answers later, or works in a thread, is a user of the place. */
#include "dialect_private.h"

enum { HFSBI_HF_LOOK_MS = 5000 }; /* between looks for an idle server */

HFSBI_FN bool hfsbi_hf_number(hfsb_str s, unsigned long long max,
                              long long *out) {
    unsigned long long n = 0;
    if (s.len == 0 || hfsbi_read_decimal(s, max, &n) != s.len) return false;
    *out = (long long)n;
    return true;
}

/* ---- places ---- */

HFSBI_FN void hfsbi_hf_place_hold(hfsbi_hf_place *place) {
    place->users++;
    place->used = hfsb_clock_ms();
}

HFSBI_FN void hfsbi_hf_place_release(hfsbi_hf_place *place) {
    HFSB_ASSERT(place->users > 0);
    place->users--;
    place->used = hfsb_clock_ms();
    if (place->users == 0 && place->unused) place->unused(place);
}

HFSBI_FN hfsbi_hf_place *hfsbi_hf_place_of(hfsbi_hf     *hf,
                                           hfsb_request *request) {
    hfsbi_hf_place *place = &hf->own;
    if (hf->host)
        place = hfsbi_hf_host_find(hf->host, hfsb_request_part(request, 0));
    if (place) hfsbi_hf_place_hold(place);
    else hfsb_reply_error(request, 404, "no such sandbox");
    return place;
}

HFSBI_FN hfsb_str hfsbi_hf_part(const hfsbi_hf *hf, hfsb_request *request) {
    return hfsb_request_part(request, hf->host ? 1 : 0);
}

/* ---- the arguments of a command ---- */

static bool hfsbi_hf_refuse(hfsb_request *request, const char *why) {
    hfsb_reply_error(request, 400, "%s", why);
    return false;
}

static bool hfsbi_hf_has_nul(hfsb_str s) {
    return hfsb_str_find_byte(s, '\0') != HFSB_NPOS;
}

HFSBI_FN bool hfsbi_hf_put_env(hfsb_request          *request,
                               const hfsb_json_value *env, hfsb_buf *out) {
    hfsb_json_iter it = hfsb_json_begin(env);
    if (hfsb_json_type_of(env) != HFSB_JSON_OBJECT) return true;
    while (hfsb_json_next(&it)) {
        hfsb_str text = hfsb_json_str(it.value, HFSB_LIT(""));
        if (!it.key.len || hfsbi_hf_has_nul(it.key) ||
            hfsb_str_find_byte(it.key, '=') != HFSB_NPOS ||
            hfsbi_hf_has_nul(text))
            return hfsbi_hf_refuse(request,
                                   "'env' has an invalid name or value");
        hfsb_buf_append(out, it.key);
        hfsb_buf_append_byte(out, '=');
        if (hfsb_json_type_of(it.value) == HFSB_JSON_STRING)
            hfsb_buf_append(out, text);
        else if (hfsb_json_type_of(it.value) != HFSB_JSON_NULL)
            (void)hfsb_json_write(it.value, NULL, out, NULL);
        hfsb_buf_append_byte(out, '\0');
    }
    return true;
}

/* Reads "cmd" and "shell". An empty text is a command of the shell too. */
static bool hfsbi_hf_read_cmd(hfsb_request *request, const hfsb_json_value *o,
                              hfsbi_job_spec *spec) {
    const hfsb_json_value *cmd = hfsb_json_get(o, "cmd");
    const hfsb_json_value *shell = hfsb_json_get(o, "shell");
    bool                   text = hfsb_json_type_of(cmd) == HFSB_JSON_STRING;
    hfsb_json_iter         it = hfsb_json_begin(cmd);
    if (!text && (hfsb_json_type_of(cmd) != HFSB_JSON_ARRAY ||
                  hfsb_json_count(cmd) == 0))
        return hfsbi_hf_refuse(request,
                               "'cmd' must be a string or a non-empty array "
                               "of strings");
    if (hfsb_json_type_of(shell) == HFSB_JSON_BOOL &&
        hfsb_json_bool(shell, text) != text)
        return hfsbi_hf_refuse(request,
                               "'shell' true needs a string as 'cmd', false "
                               "an array");
    if (text) {
        hfsb_str command = hfsb_json_str(cmd, HFSB_LIT(""));
        if (hfsbi_hf_has_nul(command))
            return hfsbi_hf_refuse(request, "'cmd' contains a NUL");
        hfsb_buf_append(&spec->command, command.len ? command : HFSB_LIT(":"));
        return true;
    }
    while (hfsb_json_next(&it)) {
        hfsb_str arg = hfsb_json_str(it.value, HFSB_LIT(""));
        if (hfsb_json_type_of(it.value) != HFSB_JSON_STRING ||
            hfsbi_hf_has_nul(arg))
            return hfsbi_hf_refuse(request,
                                   "'cmd' must be an array of strings "
                                   "without NUL");
        hfsb_buf_append(&spec->raw.argv, arg);
        hfsb_buf_append_byte(&spec->raw.argv, '\0');
    }
    return spec->raw.argv.ptr[0] ||
           hfsbi_hf_refuse(request, "failed to spawn '': no such program");
}

HFSBI_FN bool hfsbi_hf_read_spec(hfsb_request          *request,
                                 const hfsb_json_value *o,
                                 const hfsb_tools      *tools,
                                 hfsbi_job_spec        *spec) {
    hfsb_str base = hfsb_root_work_dir(tools->place);
    hfsb_str cwd = hfsb_json_str(hfsb_json_get(o, "cwd"), HFSB_LIT(""));
    double   timeout = hfsb_json_double(hfsb_json_get(o, "timeout"), -1);
    if (!hfsbi_hf_read_cmd(request, o, spec) ||
        !hfsbi_hf_put_env(request, hfsb_json_get(o, "env"), &spec->env))
        return false;
    if (hfsbi_hf_has_nul(cwd))
        return hfsbi_hf_refuse(request, "'cwd' contains a NUL");
    if (base.len && (cwd.len == 0 || cwd.ptr[0] != '/'))
        hfsb_buf_append(&spec->work_dir, base);
    if (spec->work_dir.len && cwd.len)
        hfsb_buf_append_byte(&spec->work_dir, '/');
    hfsb_buf_append(&spec->work_dir, cwd);
    hfsb_buf_append(&spec->input,
                    hfsb_json_str(hfsb_json_get(o, "stdin"), HFSB_LIT("")));
    if (timeout >= 0)
        spec->timeout = timeout < 0.001 ? 0.001
                        : timeout > 1e9 ? 1e9
                                        : timeout;
    return true;
}

/* ---- the proxy ---- */

/* Bytes of the path up to the end of the port. */
static size_t hfsbi_hf_proxy_prefix(const hfsbi_hf *hf, hfsb_str path) {
    size_t at = 0, slashes = hf->host ? 6 : 4;
    while (at < path.len && (path.ptr[at] != '/' || --slashes)) at++;
    return at;
}

static void hfsbi_hf_proxy_done(void *user) {
    hfsbi_hf_place_release((hfsbi_hf_place *)user);
}

static void hfsbi_hf_proxy(void *user, hfsb_request *request) {
    static const char *const hide[] = {"X-Sandbox-Token", NULL};
    hfsbi_hf                *hf = (hfsbi_hf *)user;
    hfsbi_relay_opts         opts = HFSB_INIT;
    hfsbi_hf_place          *place = hfsbi_hf_place_of(hf, request);
    long long                port = 0;
    if (!place) return;
    if (!hfsbi_hf_number(hfsbi_hf_part(hf, request), 65535, &port) || !port) {
        hfsb_reply_error(request, 404, "invalid port");
        hfsbi_hf_place_release(place);
        return;
    }
    opts.port = (unsigned)port;
    if (hf->host) {
        opts.fd = hfsbi_hf_host_connect(place, opts.port);
        if (opts.fd < 0) {
            hfsb_reply_error(request, 502, "nothing listens on port %u: %s",
                             opts.port, hfsbi_os_text(errno));
            hfsbi_hf_place_release(place);
            return;
        }
        opts.port = 0;
    }
    opts.prefix = hfsbi_hf_proxy_prefix(hf, hfsb_request_head(request)->path);
    opts.hide = hide;
    opts.done = hfsbi_hf_proxy_done;
    opts.user = place;
    hfsbi_relay_start(request, &opts);
}

/* ---- health ---- */

/* Everybody learns that it works and which protocol it speaks. */
static void hfsbi_hf_health(void *user, hfsb_request *request) {
    hfsbi_hf   *hf = (hfsbi_hf *)user;
    hfsbi_build b;
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "status", HFSB_LIT("ok"));
    hfsbi_build_int(&b, "protocol", 3);
    if (hfsbi_request_is_trusted(request)) {
        hfsbi_build_str(&b, "version", HFSB_LIT("hfsb " HFSB_VERSION));
        hfsbi_build_int(&b, "uptime_ms", hfsb_clock_ms() - hf->began);
        hfsbi_build_int(&b, "sandboxes",
                        hf->host ? (long long)hfsbi_hf_host_count(hf->host)
                                 : 0);
        hfsbi_build_str(&b, "mode",
                        hf->host ? HFSB_LIT("host") : HFSB_LIT("dedicated"));
        hfsbi_build_bool(&b, "auth", !hfsbi_server_is_open(hf->base.server));
        hfsbi_build_object(&b, "landlock");
        hfsbi_build_int(&b, "abi", hfsbi_landlock_abi());
        hfsbi_build_array(&b, "features");
        hfsbi_build_end(&b);
        hfsbi_build_end(&b);
    }
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

/* ---- the face ---- */

static bool hfsbi_hf_trusts(hfsbi_face *face, hfsb_request *request) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)hfsbi_dialect_of(face);
    bool      ok = hf->host ? hfsbi_hf_host_trusts(hf, request)
                            : hfsbi_dialect_trusts(&hf->base, request,
                                                   "X-Sandbox-Token", NULL);
    if (ok) hf->own.used = hfsb_clock_ms();
    return ok;
}

/* {"error":...}. A path with another method is no route. */
static void hfsbi_hf_refuse_as(hfsbi_face *face, hfsb_request *request,
                               int status, hfsb_str message) {
    hfsb_buf body = HFSB_INIT;
    body.alloc = hfsbi_dialect_of(face)->alloc;
    if (status == 405) {
        status = 404;
        message = HFSB_LIT("no such route");
    }
    hfsb_buf_append(&body, HFSB_LIT("{\"error\":"));
    hfsbi_json_put_quoted(&body, message);
    hfsb_buf_append_byte(&body, '}');
    if (body.status == HFSB_OK)
        hfsbi_reply_take(request, status, "application/json", &body);
    else hfsb_reply_abort(request);
    hfsb_buf_free(&body);
}

/* ---- the dialect ---- */

/* Stops a server that nobody uses. In host mode only requests for sandboxes
   and the sandboxes themselves count. */
static void hfsbi_hf_look(hfsbi_timer *timer) {
    hfsbi_hf *hf =
        (hfsbi_hf *)(void *)((char *)timer - offsetof(hfsbi_hf, idle));
    long long now = hfsb_clock_ms(), wait = HFSBI_HF_LOOK_MS;
    bool      busy = hf->own.users > 0;
    if (hf->host) hfsbi_hf_host_look(hf->host, now);
    if (hf->host && hfsbi_hf_host_count(hf->host)) busy = true;
    if (busy) hf->own.used = now;
    if (hf->idle_ms && hf->idle_ms < wait) wait = hf->idle_ms;
    if (hf->idle_ms && now - hf->own.used >= hf->idle_ms)
        hfsb_server_stop(hf->base.server);
    else hfsbi_loop_timer(hf->base.loop, timer, now + wait);
}

HFSBI_FN hfsb_status hfsbi_hf_add(hfsbi_hf                  *hf,
                                  const hfsbi_dialect_route *routes,
                                  hfsb_err                  *err) {
    hfsb_status st = HFSB_OK;
    for (; st == HFSB_OK && routes->method; routes++) {
        hfsbi_dialect_route list[2];
        char                path[80];
        memset(list, 0, sizeof list);
        list[0] = *routes;
        (void)snprintf(path, sizeof path, "/v1%s%s",
                       hf->host ? "/sandboxes/*" : "", routes->path);
        list[0].path = path;
        st = hfsbi_dialect_add(&hf->base, list, err);
    }
    return st;
}

/* The same proxy for every method. */
static hfsb_status hfsbi_hf_add_proxy(hfsbi_hf *hf, hfsb_err *err) {
    static const char *const methods[] = {"GET",     "POST",  "PUT", "DELETE",
                                          "OPTIONS", "PATCH", NULL};
    hfsb_status              st = HFSB_OK;
    size_t                   i;
    for (i = 0; st == HFSB_OK && methods[i]; i++) {
        hfsbi_dialect_route list[2];
        memset(list, 0, sizeof list);
        list[0].method = methods[i];
        list[0].path = "/proxy/*/**";
        list[0].begin = hfsbi_hf_proxy;
        list[0].body = hfsbi_relay_body;
        list[0].fn = hfsbi_relay_finish;
        st = hfsbi_hf_add(hf, list, err);
    }
    return st;
}

static const hfsbi_dialect_route hfsbi_hf_open_routes[] = {
    {"GET", "/health", hfsbi_hf_health, true, NULL, NULL},
    {NULL, NULL, NULL, false, NULL, NULL}};

static void hfsbi_hf_end(hfsbi_server_part *part) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)part;
    hfsbi_jobs_end(hf->base.tools, HFSB_LIT(""));
    if (hf->host) hfsbi_hf_host_end(hf->host);
}

static bool hfsbi_hf_busy(hfsbi_server_part *part) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)part;
    return hfsbi_tools_in_use(hf->base.tools) ||
           (hf->host && hfsbi_hf_host_busy(hf->host));
}

static hfsb_status
hfsbi_hf_open(hfsbi_dialect *d, const hfsb_dialect_opts *opts, hfsb_err *err) {
    hfsbi_hf   *hf = (hfsbi_hf *)(void *)d;
    hfsb_str    idle = hfsbi_dialect_setting(opts, "SBX_IDLE_TIMEOUT");
    hfsb_status st = HFSB_OK;
    long long   seconds = 0;
    d->face.any_host = true;
    d->face.denied = 403;
    d->face.trusts = hfsbi_hf_trusts;
    d->face.refuse = hfsbi_hf_refuse_as;
    d->part.end = hfsbi_hf_end;
    d->part.busy = hfsbi_hf_busy;
    hf->own.tools = d->tools;
    hf->began = hf->own.used = hfsb_clock_ms();
    hf->idle.fn = hfsbi_hf_look;
    if (idle.len && (!hfsbi_hf_number(idle, 100000000, &seconds)))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "SBX_IDLE_TIMEOUT must be a number of seconds.");
    hf->idle_ms = seconds * 1000;
    if (hfsb_str_equal(hfsbi_dialect_setting(opts, "SBX_HOST_MODE"),
                       HFSB_LIT("1")))
        st = hfsbi_hf_host_open(hf, opts, err);
    if (st == HFSB_OK) st = hfsbi_dialect_add(d, hfsbi_hf_open_routes, err);
    if (st == HFSB_OK) st = hfsbi_hf_add(hf, hfsbi_hf_commands(), err);
    if (st == HFSB_OK) st = hfsbi_hf_add(hf, hfsbi_hf_files(), err);
    if (st == HFSB_OK) st = hfsbi_hf_add_proxy(hf, err);
    if (st == HFSB_OK && (hf->idle_ms || hf->host))
        hfsbi_loop_timer(d->loop, &hf->idle, hf->began + 1);
    return st;
}

static void hfsbi_hf_close(hfsbi_dialect *d) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)d;
    hfsbi_loop_timer_clear(d->loop, &hf->idle);
    hfsbi_hf_place_clear(&hf->own);
    if (hf->host) hfsbi_hf_host_close(hf->host);
}

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_hf(void) {
    static const hfsbi_dialect_kind kind = {"hf", sizeof(hfsbi_hf),
                                            hfsbi_hf_open, hfsbi_hf_close};
    return &kind;
}
