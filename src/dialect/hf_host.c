/* hf_host.c - host mode of the sandbox API of Hugging Face: many sandboxes in
   one server.

   A sandbox is a guest of host.c, with an environment of its own; its
   directory is its home. A DELETE is answered when the home is removed; it is
   also removed when nobody has used the sandbox for as long as its creator
   allows.

   The token of the server makes, lists and removes all sandboxes and recovers
   their tokens; requests to one sandbox need the token of that sandbox
   (protocol 3). Their commands are kept apart by confinement (Landlock),
   without which the mode is refused unless it is asked for, and as root by a
   uid for each sandbox (uids.c); else all run as the user of the server. A
   port of a sandbox is a Unix socket in its home. */
#include "dialect_private.h"

enum { HFSBI_HF_CAPACITY = 64 };

/* A request that waits until sandboxes are removed. */
struct hfsbi_hf_wait {
    hfsb_request *request; /* NULL: gone */
    size_t        left, count;
    bool          stuck;                  /* processes did not end */
    char          id[HFSBI_GUEST_ID + 1]; /* "": all sandboxes */
};

/* ---- tokens ---- */

/* True for "/v1/sandboxes", "/v1/sandboxes/{id}/token" and what is not about
   sandboxes. */
static bool hfsbi_hf_is_hosts(hfsb_str path) {
    hfsb_str start = HFSB_LIT("/v1/sandboxes/");
    size_t   slash;
    if (!hfsb_str_starts(path, start)) return true;
    path = hfsb_str_slice(path, start.len, path.len);
    slash = hfsb_str_find_byte(path, '/');
    return slash != HFSB_NPOS &&
           hfsb_str_equal(hfsb_str_slice(path, slash, path.len),
                          HFSB_LIT("/token"));
}

HFSBI_FN bool hfsbi_hf_host_lacks(const hfsbi_hf_host *host) {
    return host->lacks;
}

HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request) {
    const char           *field = "X-Sandbox-Token";
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              id = hfsb_request_part(request, 0);
    hfsb_str              sent = hfsb_http_field_find(head, field);
    const hfsbi_guest    *guest;
    unsigned char         mine[HFSB_SHA256_SIZE];
    hf->host->lacks = false;
    if (hfsbi_hf_is_hosts(head->path))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    guest = hfsbi_host_find(&hf->host->host, id);
    if (!guest) { /* no token is right */
        hf->host->lacks = sent.len > 0;
        memset(mine, 0, sizeof mine);
        (void)hfsbi_request_proves(request, field, NULL, mine);
        return hfsbi_server_is_open(hf->base.server);
    }
    hfsbi_dialect_digest(sent, mine);
    if (memcmp(mine, guest->digest, sizeof mine) != 0 &&
        (hf->host->compat || hfsbi_server_is_open(hf->base.server)))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    return hfsbi_request_proves(request, field, NULL, guest->digest);
}

/* ---- removing ---- */

static void hfsbi_hf_wait_reply(hfsbi_hf_wait *w, const hfsb_alloc *alloc) {
    hfsbi_build b;
    if (w->request) hfsb_request_on_gone(w->request, NULL, NULL);
    if (w->request && w->stuck) {
        hfsb_reply_error(w->request, 500,
                         "processes of the sandbox could not be ended");
    } else if (w->request) {
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

/* free of a guest: its home is removed. */
static void hfsbi_hf_guest_free(hfsbi_guest *guest) {
    hfsbi_hf_wait *w = ((hfsbi_hf_place *)(void *)guest)->wait;
    if (w && guest->stuck) w->stuck = true;
    if (w && --w->left == 0)
        hfsbi_hf_wait_reply(w, &guest->host->dialect->alloc);
}

/* close of a guest. */
static void hfsbi_hf_guest_close(hfsbi_guest *guest) {
    hfsbi_hf_place_clear((hfsbi_hf_place *)(void *)guest);
}

static void hfsbi_hf_wait_gone(void *user, hfsb_request *request) {
    (void)request;
    ((hfsbi_hf_wait *)user)->request = NULL;
}

/* Removes one sandbox, or with an empty id all of them. */
static void hfsbi_hf_remove_some(hfsbi_hf *hf, hfsb_request *request,
                                 hfsb_str id) {
    hfsb_alloc    *alloc = &hf->base.alloc;
    hfsbi_guest   *g = hf->host->host.guests;
    hfsbi_hf_wait *w;
    if (id.len && !hfsbi_host_find(&hf->host->host, id)) {
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
    if (id.len) memcpy(w->id, id.ptr, id.len);
    hfsb_request_on_gone(request, hfsbi_hf_wait_gone, w);
    w->left = 1;           /* this function */
    for (; g; g = g->next) /* they are freed later */
        if (g->state == HFSBI_GUEST_LIVE &&
            (!id.len || hfsb_str_equal(hfsb_cstr(g->id), id))) {
            ((hfsbi_hf_place *)(void *)g)->wait = w;
            w->left++, w->count++;
            hfsbi_guest_end(g);
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
    hfsbi_hf          *hf = (hfsbi_hf *)user;
    const hfsbi_guest *g = hf->host->host.guests;
    hfsbi_build        b;
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_array(&b, NULL);
    for (; g; g = g->next) {
        if (g->state != HFSBI_GUEST_LIVE) continue;
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_sandbox(&b, g);
        hfsbi_build_int(&b, "created_at_ms", g->since);
        hfsbi_build_end(&b);
    }
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

static void hfsbi_hf_sandbox_token(void *user, hfsb_request *request) {
    hfsbi_hf          *hf = (hfsbi_hf *)user;
    const hfsbi_guest *g =
        hfsbi_host_find(&hf->host->host, hfsb_request_part(request, 0));
    hfsbi_build b;
    if (!g) {
        hfsb_reply_error(request, 404, "no such sandbox");
        return;
    }
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "id", hfsb_cstr(g->id));
    hfsbi_build_str(&b, "token", hfsb_buf_str(&g->token));
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
    if (hfsbi_resolve(place->guest.tools->place, hfsb_cstr(path),
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

HFSBI_FN void hfsbi_hf_host_close(hfsbi_hf *hf) {
    hfsbi_host_close(&hf->host->host);
    hfsbi_array_free(&hf->base.alloc, hf->host, 1, sizeof *hf->host);
    hf->host = NULL;
}

/* Chooses how sandboxes are isolated from each other. */
static hfsb_status hfsbi_hf_choose_confine(hfsbi_hf                *hf,
                                           const hfsb_dialect_opts *opts,
                                           hfsb_err                *err) {
    hfsbi_hf_host *host = hf->host;
    hfsb_confine  *trial = NULL;
    hfsb_status    st;
    host->confine.level = HFSB_CONFINE_STRICT;
    host->confine.net = "on";
    host->confine.no_temp = true;
    host->confine.other_users = host->host.uids.on;
    host->confine.alloc = hf->base.alloc;
    st = hfsb_confine_open(&host->confine, &trial, err);
    hfsb_confine_close(trial);
    if (st != HFSB_REFUSED) return st;
    if (hfsb_str_equal(hfsbi_dialect_setting(opts, "SBX_ALLOW_UNCONFINED"),
                       HFSB_LIT("1"))) {
        memset(&host->confine, 0, sizeof host->confine);
        return HFSB_OK;
    }
    hfsbi_err_add(err, " Sandboxes of host mode could read each other's "
                       "files: set SBX_ALLOW_UNCONFINED=1 to accept that.");
    return st;
}

/* Makes the folder of the homes, and opens the host in it; its path must have
   no symlinks. */
static hfsb_status hfsbi_hf_open_homes(hfsbi_hf                *hf,
                                       const hfsb_dialect_opts *opts,
                                       hfsb_err                *err) {
    hfsb_str    given = hfsbi_dialect_setting(opts, "SBX_HOMES");
    hfsb_str    work = hfsb_root_work_dir(hf->base.tools->place);
    hfsb_buf    path = HFSB_INIT, homes = HFSB_INIT;
    hfsb_status st;
    char        here[PATH_MAX];
    path.alloc = homes.alloc = hf->base.alloc;
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
        st = hfsbi_path_canonical(NULL, hfsb_buf_str(&path), &homes, err);
    if (st == HFSB_OK)
        st = hfsbi_host_open(&hf->host->host, &hf->base, hfsb_buf_str(&homes),
                             hfsbi_dialect_setting(opts, "HFSB_SANDBOX_UIDS"),
                             err);
    hfsb_buf_free(&path);
    hfsb_buf_free(&homes);
    return st;
}

static const hfsbi_dialect_route hfsbi_hf_host_routes[] = {
    {"POST", "/v1/sandboxes", hfsbi_hf_sandboxes_post, false, NULL, NULL},
    {"GET", "/v1/sandboxes", hfsbi_hf_sandboxes_get, false, NULL, NULL},
    {"DELETE", "/v1/sandboxes", hfsbi_hf_sandboxes_delete, false, NULL, NULL},
    {"DELETE", "/v1/sandboxes/*", hfsbi_hf_sandbox_delete, false, NULL, NULL},
    {"GET", "/v1/sandboxes/*/token", hfsbi_hf_sandbox_token, false, NULL,
     NULL},
    {NULL, NULL, NULL, false, NULL, NULL}};

HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err) {
    static const char *const folders[] = {".tmp", ".sbx", ".sbx/proxy", NULL};
    static const hfsbi_host_kind kind = {sizeof(hfsbi_hf_place),
                                         "",
                                         16,
                                         HFSBI_GUEST_TOKEN,
                                         folders,
                                         hfsbi_hf_open_tools,
                                         NULL,
                                         hfsbi_hf_guest_close,
                                         hfsbi_hf_guest_free};
    hfsb_str    capacity = hfsbi_dialect_setting(opts, "SBX_CAPACITY");
    hfsb_alloc *alloc = &hf->base.alloc;
    long long   most = HFSBI_HF_CAPACITY;
    hfsb_status st;
    hf->host = (hfsbi_hf_host *)hfsbi_array(alloc, 1, sizeof *hf->host);
    if (!hf->host) return hfsbi_fail_status(err, HFSB_NOMEM, "Host mode");
    memset(hf->host, 0, sizeof *hf->host);
    hf->host->host.kind = &kind;
    hf->host->compat = hfsb_str_equal(
        hfsbi_dialect_setting(opts, "SBX_COMPAT_HOST_TOKEN"), HFSB_LIT("1"));
    if (capacity.len) (void)hfsbi_hf_number(capacity, 100000, &most);
    hf->host->host.max = (size_t)most;
    st = hfsbi_hf_open_homes(hf, opts, err);
    if (st == HFSB_OK) st = hfsbi_hf_choose_confine(hf, opts, err);
    if (st == HFSB_OK)
        st = hfsbi_dialect_add(&hf->base, hfsbi_hf_host_routes, err);
    return st;
}
