/* hf.c - the sandbox API of Hugging Face (/v1), protocol 3.

   The API that huggingface_hub.Sandbox and its kin call. The routes of
   commands are in hf_exec.c, those of files in hf_files.c; here are the
   tokens, the errors, the arguments of commands, and the proxy to a port.

   A request works in a place: the tools of the dialect, or in host mode those
   of one sandbox (hf_host.c), for which the same routes exist beneath its id.
   A request that is answered later, or works in a thread, holds the place. */
#include "dialect_private.h"

HFSBI_FN bool hfsbi_hf_number(hfsb_str s, unsigned long long max,
                              long long *out) {
    unsigned long long n = 0;
    if (s.len == 0 || hfsbi_read_decimal(s, max, &n) != s.len) return false;
    *out = (long long)n;
    return true;
}

/* ---- places ---- */

HFSBI_FN hfsbi_hf_place *hfsbi_hf_place_of(hfsbi_hf     *hf,
                                           hfsb_request *request) {
    hfsbi_guest *guest = &hf->own.guest;
    if (hf->host)
        guest =
            hfsbi_host_find(&hf->host->host, hfsb_request_part(request, 0));
    if (guest) hfsbi_guest_hold(guest);
    else hfsb_reply_error(request, 404, "no such sandbox");
    return (hfsbi_hf_place *)(void *)guest;
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
    if (spec->raw.argv.status != HFSB_OK) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return false;
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

static void hfsbi_hf_proxy_done(void *user) {
    hfsbi_guest_release(&((hfsbi_hf_place *)user)->guest);
}

/* A sandbox of a host has no ports but sockets in its home. */
static int hfsbi_hf_proxy_dial(void *user, unsigned port) {
    return hfsbi_hf_host_connect((hfsbi_hf_place *)user, port);
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
        hfsbi_guest_release(&place->guest);
        return;
    }
    opts.port = (unsigned)port;
    opts.dial = hf->host ? hfsbi_hf_proxy_dial : NULL;
    opts.prefix =
        hfsbi_relay_prefix(hfsb_request_head(request)->path, hf->host ? 5 : 3);
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
    if (hfsbi_server_is_stopping(hf->base.server)) {
        hfsb_reply_error(request, 503, "The server is stopping.");
        return;
    }
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "status", HFSB_LIT("ok"));
    hfsbi_build_int(&b, "protocol", 3);
    if (hfsbi_request_is_trusted(request)) {
        hfsbi_build_str(&b, "version", HFSB_LIT("hfsb " HFSB_VERSION));
        hfsbi_build_int(&b, "uptime_ms", hfsb_clock_ms() - hf->began);
        hfsbi_build_int(&b, "sandboxes",
                        hf->host ? (long long)hfsbi_host_live(&hf->host->host)
                                 : 0);
        hfsbi_build_str(&b, "mode",
                        hf->host ? HFSB_LIT("host") : HFSB_LIT("dedicated"));
        if (hf->host) hfsbi_build_bool(&b, "uids", hf->host->host.uids.on);
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
    if (hf->host) return hfsbi_hf_host_trusts(hf, request);
    return hfsbi_dialect_trusts(&hf->base, request, "X-Sandbox-Token", NULL);
}

/* {"error":...}. A path with another method is not a route. A token for a
   sandbox that does not exist, or no longer does, gets 404. */
static void hfsbi_hf_refuse_as(hfsbi_face *face, hfsb_request *request,
                               int status, hfsb_str message) {
    const hfsbi_hf *hf =
        (const hfsbi_hf *)(const void *)hfsbi_dialect_of(face);
    hfsb_buf body = HFSB_INIT;
    body.alloc = hf->base.alloc;
    if (status == face->denied && hf->host && hfsbi_hf_host_lacks(hf->host)) {
        status = 404;
        message = HFSB_LIT("no such sandbox");
    }
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

static hfsb_status hfsbi_hf_add_proxy(hfsbi_hf *hf, hfsb_err *err) {
    return hfsbi_relay_add(hf->base.server, &hf->base.face,
                           hf->host ? "/v1/sandboxes/*"
                                      "/proxy/*"
                                      "/**"
                                    : "/v1/proxy/*"
                                      "/**",
                           hfsbi_hf_proxy, hf, err);
}

static const hfsbi_dialect_route hfsbi_hf_open_routes[] = {
    {"GET", "/health", hfsbi_hf_health, true, NULL, NULL},
    {NULL, NULL, NULL, false, NULL, NULL}};

static void hfsbi_hf_end(hfsbi_server_part *part) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)part;
    hfsbi_jobs_end(hf->base.tools, HFSB_LIT(""));
    if (hf->host) hfsbi_host_end(&hf->host->host);
}

static bool hfsbi_hf_busy(hfsbi_server_part *part) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)part;
    return hfsbi_tools_in_use(hf->base.tools) ||
           (hf->host && hfsbi_host_busy(&hf->host->host));
}

/* A host stops only when it is empty. */
static bool hfsbi_hf_needs(hfsbi_server_part *part) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)part;
    return hf->host && hf->host->host.count > 0;
}

/* Checks all settings, also those that do not matter without host mode: an
   ignored value would seem to be in force. */
static hfsb_status hfsbi_hf_check_settings(const hfsb_dialect_opts *opts,
                                           hfsb_err                *err) {
    static const struct {
        const char *name, *is;
        long long   least, most;
    } list[] = {
        {"SBX_PORT", "a port from 0 to 65535", 0, 65535},
        {"SBX_IDLE_TIMEOUT", "a number of seconds", 0, 100000000},
        {"SBX_CAPACITY", "a number of sandboxes from 1 to 100000", 1, 100000},
        {"SBX_HOST_MODE", "0 or 1", 0, 1},
        {"SBX_COMPAT_HOST_TOKEN", "0 or 1", 0, 1},
        {"SBX_ALLOW_UNCONFINED", "0 or 1", 0, 1},
        {"HFSB_SANDBOX_UIDS", "0 or 1", 0, 1}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        hfsb_str  value = hfsbi_dialect_setting(opts, list[i].name);
        long long n;
        if (value.len &&
            (!hfsbi_hf_number(value, (unsigned long long)list[i].most, &n) ||
             n < list[i].least))
            return hfsbi_fail(err, HFSB_ARG, 0, "%s must be %s.", list[i].name,
                              list[i].is);
    }
    return HFSB_OK;
}

static hfsb_status
hfsbi_hf_open(hfsbi_dialect *d, const hfsb_dialect_opts *opts, hfsb_err *err) {
    hfsbi_hf   *hf = (hfsbi_hf *)(void *)d;
    hfsb_str    idle = hfsbi_dialect_setting(opts, "SBX_IDLE_TIMEOUT");
    hfsb_status st = hfsbi_hf_check_settings(opts, err);
    long long   seconds = 0;
    d->face.guard = hfsbi_dialect_guard(d);
    d->face.trims = true;
    d->face.denied = 403;
    d->face.trusts = hfsbi_hf_trusts;
    d->face.refuse = hfsbi_hf_refuse_as;
    d->part.end = hfsbi_hf_end;
    d->part.busy = hfsbi_hf_busy;
    d->part.needs = hfsbi_hf_needs;
    hf->own.guest.state = HFSBI_GUEST_LIVE;
    hf->own.guest.tools = d->tools;
    hf->began = hfsb_clock_ms();
    if (st != HFSB_OK) return st;
    if (idle.len) (void)hfsbi_hf_number(idle, 100000000, &seconds);
    hfsbi_server_set_idle(d->server, seconds * 1000);
    if (hfsb_str_equal(hfsbi_dialect_setting(opts, "SBX_HOST_MODE"),
                       HFSB_LIT("1")))
        st = hfsbi_hf_host_open(hf, opts, err);
    if (st == HFSB_OK) st = hfsbi_dialect_add(d, hfsbi_hf_open_routes, err);
    if (st == HFSB_OK) st = hfsbi_hf_add(hf, hfsbi_hf_commands(), err);
    if (st == HFSB_OK) st = hfsbi_hf_add(hf, hfsbi_hf_files(), err);
    if (st == HFSB_OK) st = hfsbi_hf_add_proxy(hf, err);
    return st;
}

static void hfsbi_hf_close(hfsbi_dialect *d) {
    hfsbi_hf *hf = (hfsbi_hf *)(void *)d;
    hfsbi_hf_place_clear(&hf->own);
    if (hf->host) hfsbi_hf_host_close(hf);
}

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_hf(void) {
    static const hfsbi_dialect_kind kind = {"hf", sizeof(hfsbi_hf),
                                            hfsbi_hf_open, hfsbi_hf_close};
    return &kind;
}
