/* hf_host.c - host mode of the sandbox API of Hugging Face: many sandboxes in
   one server.

   A sandbox is a folder (its home), an environment of its own, a token, and a
   tools object whose root is the home:

     POST ---> home made (thread) --> LIVE --DELETE, or idle--> ENDING
                                                                  |
     freed <--- home removed (thread) <--- REMOVING <-- last user gone

   The token of the server makes, lists and removes all sandboxes and recovers
   their tokens; whatever works in one sandbox needs the token of that sandbox
   (protocol 3). All commands run as the user of the server: what keeps them
   apart is their confinement (Landlock), without which the mode is refused
   unless it is asked for. A port of a sandbox is a Unix socket in its home. */
#include "dialect_private.h"

enum { HFSBI_HF_CAPACITY = 64 };

/* A request that waits until sandboxes are removed. */
struct hfsbi_hf_wait {
    hfsb_request *request; /* NULL: gone */
    size_t        left, count;
    char          id[HFSBI_HF_ID + 1]; /* "": all sandboxes */
};

HFSBI_FN size_t hfsbi_hf_host_count(const hfsbi_hf_host *host) {
    return host->count;
}

static hfsbi_hf_sandbox *hfsbi_hf_find(const hfsbi_hf_host *host,
                                       hfsb_str             id) {
    hfsbi_hf_sandbox *s = host->list;
    while (s &&
           (s->life != HFSBI_HF_LIVE || !hfsb_str_equal(hfsb_cstr(s->id), id)))
        s = s->next;
    return s;
}

HFSBI_FN hfsbi_hf_place *hfsbi_hf_host_find(hfsbi_hf_host *host, hfsb_str id) {
    hfsbi_hf_sandbox *s = hfsbi_hf_find(host, id);
    return s ? &s->place : NULL;
}

/* ---- tokens ---- */

HFSBI_FN void hfsbi_hf_digest(hfsb_str      s,
                              unsigned char out[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, s);
    hfsb_sha256_finish(&sha, out);
    hfsbi_wipe(&sha, sizeof sha);
}

/* True for "/v1/sandboxes", "/v1/sandboxes/{id}/token" and what is not about
   sandboxes. */
static bool hfsbi_hf_is_hosts(hfsb_str path, hfsb_str id) {
    hfsb_str start = HFSB_LIT("/v1/sandboxes/");
    if (!hfsb_str_starts(path, start)) return true;
    return hfsb_str_equal(hfsb_str_slice(path, start.len + id.len, path.len),
                          HFSB_LIT("/token"));
}

HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request) {
    const char             *field = "X-Sandbox-Token";
    const hfsb_http_head   *head = hfsb_request_head(request);
    hfsb_str                id = hfsb_request_part(request, 0);
    hfsb_str                sent = hfsb_http_field_find(head, field);
    const hfsbi_hf_sandbox *s;
    unsigned char           mine[HFSB_SHA256_SIZE], none[HFSB_SHA256_SIZE];
    if (hfsbi_hf_is_hosts(head->path, id))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    s = hfsbi_hf_find(hf->host, id);
    if (!s) { /* that of a sandbox that is gone, for example: 404 */
        bool any = sent.len > 0;
        memset(none, 0, sizeof none);
        (void)hfsbi_request_proves(request, field, NULL, none);
        return any || hfsbi_server_is_open(hf->base.server);
    }
    hfsbi_hf_digest(sent, mine);
    if (memcmp(mine, s->digest, sizeof mine) != 0 &&
        (hf->host->compat || hfsbi_server_is_open(hf->base.server)))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    return hfsbi_request_proves(request, field, NULL, s->digest);
}

/* ---- removing ---- */

HFSBI_FN void hfsbi_hf_sandbox_free(hfsbi_hf_sandbox *s) {
    hfsb_alloc alloc = s->host->hf->base.alloc;
    hfsb_buf_free(&s->home);
    hfsbi_wipe(s->token, sizeof s->token);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

static void hfsbi_hf_unlink(hfsbi_hf_sandbox *s) {
    hfsbi_hf_sandbox **link = &s->host->list;
    while (*link && *link != s) link = &(*link)->next;
    if (*link) *link = s->next;
}

/* In a thread. */
HFSBI_FN void hfsbi_hf_remove_home(const hfsb_buf *home) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = opts.force = true;
    (void)hfsbi_path_remove_all(NULL, hfsb_buf_str(home), &opts, NULL, NULL);
}

static void hfsbi_hf_wait_reply(hfsbi_hf_wait *w, const hfsb_alloc *alloc) {
    hfsbi_build b;
    if (w->request) {
        hfsb_request_on_gone(w->request, NULL, NULL);
        hfsbi_build_init(&b, alloc);
        hfsbi_build_object(&b, NULL);
        if (w->id[0]) {
            hfsbi_build_str(&b, "id", hfsb_cstr(w->id));
            hfsbi_build_bool(&b, "deleted", true);
        } else {
            hfsbi_build_int(&b, "deleted", (long long)w->count);
        }
        hfsbi_build_end(&b);
        hfsbi_dialect_reply(w->request, 200, &b);
    }
    hfsbi_array_free(alloc, w, 1, sizeof *w);
}

static void hfsbi_hf_removal_run(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    hfsbi_hf_remove_home(&s->home);
}

static void hfsbi_hf_removal_done(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    hfsbi_hf_wait *w = s->wait;
    hfsb_alloc     alloc = s->host->hf->base.alloc;
    hfsbi_hf_unlink(s);
    hfsbi_hf_sandbox_free(s);
    if (w && --w->left == 0) hfsbi_hf_wait_reply(w, &alloc);
}

/* In the loop, when nobody uses the sandbox any more. */
static void hfsbi_hf_removal(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    (void)hfsbi_tools_sweep(s->place.tools, true);
    s->life = HFSBI_HF_REMOVING;
    s->place.unused = NULL;
    hfsbi_hf_place_clear(&s->place);
    hfsbi_tools_free(s->place.tools);
    s->place.tools = NULL;
    memset(&s->task, 0, sizeof s->task);
    s->task.run = hfsbi_hf_removal_run;
    s->task.done = hfsbi_hf_removal_done;
    hfsbi_loop_work(s->host->hf->base.loop, &s->task);
}

static void hfsbi_hf_unused(hfsbi_hf_place *place) {
    hfsbi_hf_sandbox *s = (hfsbi_hf_sandbox *)(void *)place;
    if (s->task.done) return; /* it was posted */
    s->task.done = hfsbi_hf_removal;
    hfsbi_loop_post(s->host->hf->base.loop, &s->task);
}

/* Ends a sandbox, its processes at once. */
static void hfsbi_hf_sandbox_end(hfsbi_hf_sandbox *s, hfsbi_hf_wait *w) {
    s->life = HFSBI_HF_ENDING;
    s->place.unused = hfsbi_hf_unused;
    s->host->count--;
    s->wait = w;
    if (w) w->left++, w->count++;
    hfsbi_hf_place_hold(&s->place);
    (void)hfsbi_tools_sweep(s->place.tools, true);
    hfsbi_hf_place_release(&s->place);
}

HFSBI_FN void hfsbi_hf_host_look(hfsbi_hf_host *host, long long now) {
    hfsbi_hf_sandbox *s = host->list, *next;
    for (; s; s = next) {
        next = s->next;
        if (s->life == HFSBI_HF_LIVE && s->idle_ms && !s->place.users &&
            now - s->place.used >= s->idle_ms)
            hfsbi_hf_sandbox_end(s, NULL);
    }
}

static void hfsbi_hf_wait_gone(void *user, hfsb_request *request) {
    (void)request;
    ((hfsbi_hf_wait *)user)->request = NULL;
}

/* Removes one sandbox, or with an empty id all of them. */
static void hfsbi_hf_remove_some(hfsbi_hf *hf, hfsb_request *request,
                                 hfsb_str id) {
    hfsb_alloc       *alloc = &hf->base.alloc;
    hfsbi_hf_sandbox *s = hf->host->list, *next;
    hfsbi_hf_wait    *w;
    if (id.len && !hfsbi_hf_find(hf->host, id)) {
        hfsb_reply_error(request, 404, "no such sandbox");
        return;
    }
    w = (hfsbi_hf_wait *)hfsbi_array(alloc, 1, sizeof *w);
    if (!w) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(w, 0, sizeof *w);
    w->request = request;
    if (id.len) memcpy(w->id, id.ptr, HFSBI_HF_ID);
    hfsb_request_on_gone(request, hfsbi_hf_wait_gone, w);
    w->left = 1; /* this function */
    for (; s; s = next) {
        next = s->next;
        if (s->life == HFSBI_HF_LIVE &&
            (!id.len || hfsb_str_equal(hfsb_cstr(s->id), id)))
            hfsbi_hf_sandbox_end(s, w);
    }
    if (--w->left == 0) hfsbi_hf_wait_reply(w, alloc);
}

static void hfsbi_hf_sandboxes_delete(void *user, hfsb_request *request) {
    hfsbi_hf_remove_some((hfsbi_hf *)user, request, HFSB_LIT(""));
}

static void hfsbi_hf_sandbox_delete(void *user, hfsb_request *request) {
    hfsbi_hf_remove_some((hfsbi_hf *)user, request,
                         hfsb_request_part(request, 0));
}

/* ---- looking ---- */

static void hfsbi_hf_sandboxes_get(void *user, hfsb_request *request) {
    hfsbi_hf               *hf = (hfsbi_hf *)user;
    const hfsbi_hf_sandbox *s = hf->host->list;
    hfsbi_build             b;
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_array(&b, NULL);
    for (; s; s = s->next) {
        if (s->life != HFSBI_HF_LIVE) continue;
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_sandbox(&b, s);
        hfsbi_build_int(&b, "created_at_ms", s->created);
        hfsbi_build_end(&b);
    }
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

static void hfsbi_hf_sandbox_token(void *user, hfsb_request *request) {
    hfsbi_hf               *hf = (hfsbi_hf *)user;
    const hfsbi_hf_sandbox *s =
        hfsbi_hf_find(hf->host, hfsb_request_part(request, 0));
    hfsbi_build b;
    if (!s) {
        hfsb_reply_error(request, 404, "no such sandbox");
        return;
    }
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "id", hfsb_cstr(s->id));
    hfsbi_build_str(&b, "token", hfsb_cstr(s->token));
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

/* ---- ports ---- */

/* Opens the socket of a port, by its path beneath the home; -1: there is
   none. */
static int hfsbi_hf_open_socket(const hfsbi_hf_place *place, unsigned port) {
    int at = -1;
#ifdef HFSBI_LINUX
    hfsbi_target target;
    char         path[48];
    (void)snprintf(path, sizeof path, ".sbx/proxy/%u.sock", port);
    if (hfsbi_resolve(place->tools->place, hfsb_cstr(path),
                      HFSBI_RESOLVE_NO_FOLLOW, "open", &target,
                      NULL) != HFSB_OK)
        return -1;
    if (target.exists && S_ISSOCK(target.st.st_mode))
        at = hfsbi_openat(target.dir, target.name, O_PATH | O_NOFOLLOW, 0);
    hfsbi_target_close(&target);
#else
    (void)place;
    (void)port;
#endif
    return at;
}

/* It is connected to by the descriptor, so that a symlink cannot name the
   socket of somebody else, and the path may be long. */
HFSBI_FN int hfsbi_hf_host_connect(hfsbi_hf_place *place, unsigned port) {
    struct sockaddr_un a;
    int                at = hfsbi_hf_open_socket(place, port), fd = -1;
    int                code = ENOENT;
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    (void)snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d", at);
    if (at >= 0) fd = hfsbi_relay_socket(AF_UNIX);
    if (at >= 0 && fd < 0) code = errno;
    if (fd >= 0) {
        code = connect(fd, (struct sockaddr *)(void *)&a, sizeof a) == 0
                   ? 0
                   : errno;
        if (code) hfsbi_close(&fd);
    }
    hfsbi_close(&at);
    errno = code;
    return fd;
}

/* ---- the host ---- */

HFSBI_FN void hfsbi_hf_host_end(hfsbi_hf_host *host) {
    hfsbi_hf_sandbox *s;
    for (s = host->list; s; s = s->next)
        if (s->place.tools) hfsbi_jobs_end(s->place.tools, HFSB_LIT(""));
}

HFSBI_FN bool hfsbi_hf_host_busy(hfsbi_hf_host *host) {
    hfsbi_hf_sandbox *s;
    for (s = host->list; s; s = s->next)
        if (s->place.tools && hfsbi_tools_in_use(s->place.tools)) return true;
    return false;
}

HFSBI_FN void hfsbi_hf_host_close(hfsbi_hf_host *host) {
    hfsb_alloc        alloc = host->hf->base.alloc;
    hfsbi_hf_sandbox *s;
    while ((s = host->list) != NULL) {
        host->list = s->next;
        s->place.unused = NULL;
        hfsbi_hf_place_clear(&s->place);
        (void)hfsbi_tools_sweep(s->place.tools, true);
        hfsbi_tools_free(s->place.tools);
        hfsbi_hf_remove_home(&s->home);
        hfsbi_hf_sandbox_free(s);
    }
    hfsb_buf_free(&host->homes);
    hfsbi_array_free(&alloc, host, 1, sizeof *host);
}

/* Chooses how sandboxes are kept apart. */
static hfsb_status hfsbi_hf_choose_confine(hfsbi_hf_host           *host,
                                           const hfsb_dialect_opts *opts,
                                           hfsb_err                *err) {
    hfsb_confine *trial = NULL;
    hfsb_status   st;
    host->confine.level = HFSB_CONFINE_STRICT;
    host->confine.net = "on";
    host->confine.no_temp = true;
    host->confine.alloc = host->hf->base.alloc;
    st = hfsb_confine_open(&host->confine, &trial, err);
    hfsb_confine_close(trial);
    if (st != HFSB_REFUSED) return st;
    if (hfsbi_dialect_setting(opts, "SBX_ALLOW_UNCONFINED").len) {
        memset(&host->confine, 0, sizeof host->confine);
        return HFSB_OK;
    }
    hfsbi_err_add(err, " Sandboxes of host mode could read each other's "
                       "files: set SBX_ALLOW_UNCONFINED=1 to accept that.");
    return st;
}

/* Appends the folder of the homes, without symlinks. */
static hfsb_status hfsbi_hf_find_homes(hfsbi_hf_host           *host,
                                       const hfsb_dialect_opts *opts,
                                       hfsb_err                *err) {
    hfsb_str    given = hfsbi_dialect_setting(opts, "SBX_HOMES");
    hfsb_str    work = hfsb_root_work_dir(host->hf->base.tools->place);
    hfsb_buf    path = HFSB_INIT;
    hfsb_status st;
    char        here[PATH_MAX];
    path.alloc = host->homes.alloc = host->hf->base.alloc;
    if (!work.len && getcwd(here, sizeof here)) work = hfsb_cstr(here);
    if (given.len) hfsb_buf_append(&path, given);
    else {
        hfsb_buf_append(&path, work);
        hfsb_buf_append(&path, HFSB_LIT("/sbx/homes"));
    }
    st = path.status;
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Host mode");
    if (st == HFSB_OK)
        st = hfsbi_path_make_folder(NULL, hfsb_buf_str(&path), 0711,
                                    HFSBI_MAKE_PARENTS, NULL, err);
    if (st == HFSB_OK)
        st =
            hfsbi_path_canonical(NULL, hfsb_buf_str(&path), &host->homes, err);
    hfsb_buf_free(&path);
    return st;
}

HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err) {
    static const hfsbi_dialect_route routes[] = {
        {"POST", "/v1/sandboxes", hfsbi_hf_sandboxes_post, false, NULL, NULL},
        {"GET", "/v1/sandboxes", hfsbi_hf_sandboxes_get, false, NULL, NULL},
        {"DELETE", "/v1/sandboxes", hfsbi_hf_sandboxes_delete, false, NULL,
         NULL},
        {"DELETE", "/v1/sandboxes/*", hfsbi_hf_sandbox_delete, false, NULL,
         NULL},
        {"GET", "/v1/sandboxes/*/token", hfsbi_hf_sandbox_token, false, NULL,
         NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    hfsb_str       capacity = hfsbi_dialect_setting(opts, "SBX_CAPACITY");
    hfsb_alloc    *alloc = &hf->base.alloc;
    hfsbi_hf_host *host = (hfsbi_hf_host *)hfsbi_array(alloc, 1, sizeof *host);
    long long      most = HFSBI_HF_CAPACITY;
    hfsb_status    st;
    if (!host) return hfsbi_fail_status(err, HFSB_NOMEM, "Host mode");
    memset(host, 0, sizeof *host);
    hf->host = host;
    host->hf = hf;
    host->compat = hfsb_str_equal(
        hfsbi_dialect_setting(opts, "SBX_COMPAT_HOST_TOKEN"), HFSB_LIT("1"));
    if (capacity.len && (!hfsbi_hf_number(capacity, 100000, &most) || !most))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "SBX_CAPACITY must be a number of sandboxes from 1 "
                          "to 100000.");
    host->capacity = (size_t)most;
    st = hfsbi_hf_choose_confine(host, opts, err);
    if (st == HFSB_OK) st = hfsbi_hf_find_homes(host, opts, err);
    if (st == HFSB_OK) st = hfsbi_dialect_add(&hf->base, routes, err);
    return st;
}
