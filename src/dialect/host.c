/* host.c - a host of many sandboxes: its guests.

   A guest is a directory, a token, a tools object whose root is the directory,
   and, where the server is root, a uid (uids.c). The dialects hf (host mode)
   and e2b (control plane) make guests, and add their own members to them:

     order --> MAKING --thread: uid, directory--> tools --> LIVE
                  |                                           |
                  | failure, client gone       end, idle, timeout
                  v                                           |
     freed <-- REMOVING <--no user, no command-- ENDING <-----+
               thread: processes of the uid
               end, the directory is removed

   An order makes all its guests or none. A guest counts for the limit of the
   host from the beginning of MAKING to the end of REMOVING: until then it has
   processes, files and a uid.

   A request that is answered later, or works in a thread, holds the guest. A
   guest can be found by its id while it is LIVE; one that is ENDING waits for
   its last holder and its last command, both of which are events of the loop.
   The uid is reused once no process and no file is left. */
#include "dialect_private.h"

/* ---- the list ---- */

HFSBI_FN hfsbi_guest *hfsbi_host_find(const hfsbi_host *host, hfsb_str id) {
    hfsbi_guest *g = host->guests;
    while (g && (g->state != HFSBI_GUEST_LIVE ||
                 !hfsb_str_equal(hfsb_cstr(g->id), id)))
        g = g->next;
    return g;
}

HFSBI_FN size_t hfsbi_host_live(const hfsbi_host *host) {
    const hfsbi_guest *g = host->guests;
    size_t             n = 0;
    for (; g; g = g->next) n += g->state <= HFSBI_GUEST_LIVE;
    return n;
}

/* Frees a guest without tools and directory. */
static void hfsbi_guest_free(hfsbi_guest *g) {
    hfsbi_host   *host = g->host;
    hfsb_alloc    alloc = host->dialect->alloc;
    hfsbi_guest **link = &host->guests;
    while (*link && *link != g) link = &(*link)->next;
    if (*link) {
        *link = g->next;
        host->count--;
    }
    if (host->kind->free) host->kind->free(g);
    if (g->token.len) hfsb_secret_wipe(g->token.ptr, g->token.len);
    hfsb_buf_free(&g->token);
    hfsb_buf_free(&g->dir);
    hfsbi_array_free(&alloc, g, host->kind->size, 1);
}

HFSBI_FN bool hfsbi_guest_set_token(hfsbi_guest *g, hfsb_str token) {
    hfsb_buf copy = HFSB_INIT;
    copy.alloc = g->token.alloc;
    if (hfsb_buf_append(&copy, token) != HFSB_OK) {
        hfsb_buf_free(&copy);
        return false;
    }
    if (g->token.len) hfsb_secret_wipe(g->token.ptr, g->token.len);
    hfsb_buf_free(&g->token);
    g->token = copy;
    hfsbi_dialect_digest(token, g->digest);
    return true;
}

/* Gives a guest its id, token and directory. */
static bool hfsbi_guest_name(hfsbi_guest *g) {
    const hfsbi_host_kind *kind = g->host->kind;
    size_t                 prefix = strlen(kind->id_prefix);
    char                   token[HFSBI_GUEST_TOKEN + 1];
    bool                   ok;
    HFSB_ASSERT(prefix + kind->id_digits < sizeof g->id &&
                kind->token_digits < sizeof token);
    memcpy(g->id, kind->id_prefix, prefix);
    ok = hfsbi_random_hex(g->id + prefix, kind->id_digits) &&
         hfsbi_random_hex(token, kind->token_digits) &&
         hfsbi_guest_set_token(g, hfsb_cstr(token));
    hfsb_secret_wipe(token, sizeof token);
    hfsb_buf_append(&g->dir, hfsb_buf_str(&g->host->dir));
    return hfsb_buf_printf(&g->dir, "/%s", g->id) == HFSB_OK && ok;
}

/* ---- the end ---- */

/* Calls fn in a thread outside of walls. Without memory it is not called. */
static void hfsbi_host_outside(const hfsbi_host *host, void (*fn)(void *user),
                               void             *user) {
    if (host->rights.walled)
        hfsbi_tools_outside(host->dialect->tools, fn, user);
    else fn(user);
}

static void hfsbi_guest_end_uid(void *user) {
    hfsbi_guest *g = (hfsbi_guest *)user;
    g->stuck = !hfsbi_uid_end(g->uid);
}

static void hfsbi_guest_put_uid(void *user) {
    const hfsbi_guest *g = (const hfsbi_guest *)user;
    hfsbi_uids_put(&g->host->uids, g->uid);
}

/* Ends all processes of the uid and removes the directory; in a thread, or
   when the server closes. */
static void hfsbi_guest_clear(hfsbi_guest *g) {
    hfsbi_remove_opts opts = HFSB_INIT;
    hfsb_status       st;
    opts.tree = opts.force = true;
    g->stuck = true;
    hfsbi_host_outside(g->host, hfsbi_guest_end_uid, g);
    st = hfsbi_path_remove_all(g->host->root, hfsb_buf_str(&g->dir), &opts,
                               NULL, NULL);
    if (!g->stuck && (st == HFSB_OK || st == HFSB_NOT_FOUND))
        hfsbi_host_outside(g->host, hfsbi_guest_put_uid, g);
}

static hfsbi_guest *hfsbi_guest_of_task(hfsbi_task *task) {
    return (hfsbi_guest *)(void *)((char *)task - offsetof(hfsbi_guest, task));
}

static void hfsbi_guest_removal_run(hfsbi_task *task) {
    hfsbi_guest_clear(hfsbi_guest_of_task(task));
}

static void hfsbi_guest_removal_done(hfsbi_task *task) {
    hfsbi_guest_free(hfsbi_guest_of_task(task));
}

/* Closes what a guest has open. Survivors of its commands end too. */
static void hfsbi_guest_close(hfsbi_guest *g) {
    g->state = HFSBI_GUEST_REMOVING;
    hfsbi_loop_timer_clear(g->host->dialect->loop, &g->timer);
    if (g->tools) {
        (void)hfsbi_tools_sweep(g->tools, true);
        if (g->host->kind->close) g->host->kind->close(g);
        hfsbi_tools_free(g->tools);
    }
    g->tools = NULL;
    hfsb_root_close(g->root);
    g->root = NULL;
}

static bool hfsbi_guest_is_unused(const hfsbi_guest *g) {
    return !g->users && (!g->tools || !hfsbi_tools_in_use(g->tools));
}

/* In the loop, with no caller that may use the guest. */
static void hfsbi_guest_remove(hfsbi_task *task) {
    hfsbi_guest *g = hfsbi_guest_of_task(task);
    memset(task, 0, sizeof *task);
    if (!hfsbi_guest_is_unused(g)) return;
    hfsbi_guest_close(g);
    task->run = hfsbi_guest_removal_run;
    task->done = hfsbi_guest_removal_done;
    task->rights = g->host->rights;
    hfsbi_loop_work(g->host->dialect->loop, task);
}

/* A holder or a command has gone: removes a guest that is ENDING with its
   last one, but not while its caller may still use it. */
static void hfsbi_guest_look(void *user) {
    hfsbi_guest *g = (hfsbi_guest *)user;
    if (g->state != HFSBI_GUEST_ENDING || g->task.done ||
        !hfsbi_guest_is_unused(g))
        return;
    g->task.done = hfsbi_guest_remove;
    hfsbi_loop_post(g->host->dialect->loop, &g->task);
}

HFSBI_FN void hfsbi_guest_end(hfsbi_guest *g) {
    if (g->state >= HFSBI_GUEST_ENDING) return;
    g->state = HFSBI_GUEST_ENDING;
    hfsbi_loop_timer_clear(g->host->dialect->loop, &g->timer);
    if (g->tools) {
        hfsbi_tools_on_idle(g->tools, hfsbi_guest_look, g);
        if (g->host->kind->end) g->host->kind->end(g);
        (void)hfsbi_tools_sweep(g->tools, true);
    }
    hfsbi_guest_look(g);
}

/* ---- time ---- */

/* Sets the timer for when a guest may have to end. */
static void hfsbi_guest_set_timer(hfsbi_guest *g) {
    hfsbi_loop *loop = g->host->dialect->loop;
    long long   at = g->until, idle = g->used + g->idle_ms;
    if (g->state != HFSBI_GUEST_LIVE) return;
    if (g->idle_ms && !g->users && (!at || idle < at)) at = idle;
    if (at) hfsbi_loop_timer(loop, &g->timer, at);
    else hfsbi_loop_timer_clear(loop, &g->timer);
}

static void hfsbi_guest_tick(hfsbi_timer *timer) {
    hfsbi_guest *g =
        (hfsbi_guest *)(void *)((char *)timer - offsetof(hfsbi_guest, timer));
    long long now = hfsb_clock_ms();
    if ((g->until && now >= g->until) ||
        (g->idle_ms && !g->users && now - g->used >= g->idle_ms))
        hfsbi_guest_end(g);
    else hfsbi_guest_set_timer(g);
}

HFSBI_FN void hfsbi_guest_set_timeout(hfsbi_guest *g, long long ms) {
    g->until = hfsb_clock_ms() + ms;
    hfsbi_guest_set_timer(g);
}

HFSBI_FN void hfsbi_guest_hold(hfsbi_guest *g) {
    g->users++;
    g->used = hfsb_clock_ms();
}

HFSBI_FN void hfsbi_guest_release(hfsbi_guest *g) {
    HFSB_ASSERT(g->users > 0);
    g->users--;
    g->used = hfsb_clock_ms();
    if (!g->host || g->users) return;
    hfsbi_guest_set_timer(g);
    hfsbi_guest_look(g);
}

/* ---- orders ---- */

HFSBI_FN hfsbi_guest *hfsbi_order_add(hfsbi_order *order) {
    hfsbi_host   *host = order->host;
    hfsb_alloc   *alloc = &host->dialect->alloc;
    hfsbi_guest **link = &host->guests, **peer = &order->first;
    hfsbi_guest  *g = (hfsbi_guest *)hfsbi_array(alloc, host->kind->size, 1);
    if (!g) return NULL;
    memset(g, 0, host->kind->size);
    g->host = host;
    g->token.alloc = g->dir.alloc = *alloc;
    g->timer.fn = hfsbi_guest_tick;
    g->since = hfsbi_time_ns() / 1000000;
    if (!hfsbi_guest_name(g)) {
        hfsbi_guest_free(g);
        return NULL;
    }
    while (*link) link = &(*link)->next;
    *link = g;
    host->count++;
    while (*peer) peer = &(*peer)->peer;
    *peer = g;
    return g;
}

HFSBI_FN void hfsbi_order_drop(hfsbi_order *order) {
    hfsbi_guest *g;
    while ((g = order->first) != NULL) {
        order->first = g->peer;
        hfsbi_guest_free(g);
    }
}

typedef struct hfsbi_guest_maker { /* of a uid */
    hfsbi_guest *guest;
    hfsb_status  st;
    hfsb_err    *err;
} hfsbi_guest_maker;

static void hfsbi_guest_take_uid(void *user) {
    hfsbi_guest_maker *m = (hfsbi_guest_maker *)user;
    m->st = hfsbi_uids_take(&m->guest->host->uids, &m->guest->uid, m->err);
}

/* Makes the directory of all guests, which their users must be able to search
   whatever the umask is. */
static hfsb_status hfsbi_host_make_dir(const hfsbi_host *host, hfsb_err *err) {
    hfsb_str    dir = hfsb_buf_str(&host->dir);
    bool        made = false;
    hfsb_status st = hfsbi_path_make_folder(host->root, dir, 0755,
                                            HFSBI_MAKE_PARENTS, &made, err);
    if (st == HFSB_OK && made && host->uids.on)
        st = hfsbi_path_set_mode(host->root, dir, 0711, true, err);
    return st;
}

/* Makes the directory of a guest and the folders in it, which belong to its
   user. */
static hfsb_status hfsbi_guest_make_dirs(hfsbi_guest *g, hfsb_err *err) {
    const hfsb_root   *root = g->host->root;
    const char *const *folders = g->host->kind->folders;
    size_t             len = g->dir.len;
    hfsb_status st = hfsbi_path_make_folder(root, hfsb_buf_str(&g->dir), 0700,
                                            HFSBI_MAKE_NEW, NULL, err);
    if (st == HFSB_OK) st = hfsbi_uid_give(g->dir.ptr, g->uid, err);
    for (; st == HFSB_OK && folders && *folders; folders++) {
        if (hfsb_buf_printf(&g->dir, "/%s", *folders) != HFSB_OK)
            st = hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
        if (st == HFSB_OK)
            st = hfsbi_path_make_folder(root, hfsb_buf_str(&g->dir), 0700,
                                        HFSBI_MAKE_NEW, NULL, err);
        if (st == HFSB_OK) st = hfsbi_uid_give(g->dir.ptr, g->uid, err);
        hfsb_buf_truncate(&g->dir, len);
    }
    return st;
}

/* Makes what the guests have on the disk; in a thread. */
static void hfsbi_order_run(void *user) {
    hfsbi_order      *order = (hfsbi_order *)user;
    hfsbi_guest_maker m;
    order->st = hfsbi_host_make_dir(order->host, &order->err);
    m.err = &order->err;
    for (m.guest = order->first; m.guest && order->st == HFSB_OK;
         m.guest = m.guest->peer) {
        m.st = hfsbi_fail_status(&order->err, HFSB_NOMEM, "Sandbox");
        hfsbi_host_outside(order->host, hfsbi_guest_take_uid, &m);
        if (m.st == HFSB_OK) m.st = hfsbi_guest_make_dirs(m.guest, m.err);
        order->st = m.st;
    }
}

/* The directories exist: opens the tools. If that fails, or the client, which
   alone knows of the guests, is gone, there are none. */
static void hfsbi_order_finish(void *user, hfsb_request *request) {
    hfsbi_order      *order = (hfsbi_order *)user;
    const hfsbi_host *host = order->host;
    hfsbi_guest      *g, *first = order->first, *next;
    bool              ok;
    for (g = first; g && order->st == HFSB_OK; g = g->peer)
        order->st = host->kind->open(order, g, &order->err);
    if (order->st == HFSB_OK && hfsbi_request_is_gone(request))
        order->st = hfsbi_fail_status(&order->err, HFSB_CANCELLED, "Sandbox");
    ok = order->st == HFSB_OK;
    for (g = ok ? first : NULL; g; g = g->peer) {
        g->state = HFSBI_GUEST_LIVE;
        g->serial = ++order->host->made;
        g->used = hfsb_clock_ms();
        hfsbi_root_nest(host->dialect->tools->place, g->tools->place);
        hfsbi_tools_set_uid(g->tools, g->uid);
        hfsbi_guest_set_timer(g);
    }
    order->done(order, request); /* frees the order */
    for (g = ok ? NULL : first; g; g = next) {
        next = g->peer;
        hfsbi_guest_end(g);
    }
}

HFSBI_FN void hfsbi_order_start(hfsbi_order *order, hfsb_request *request) {
    hfsbi_request_work(request, &order->host->rights, hfsbi_order_run,
                       hfsbi_order_finish, order);
}

/* ---- the host ---- */

HFSBI_FN hfsb_status hfsbi_host_open(hfsbi_host *host, hfsbi_dialect *dialect,
                                     hfsb_str dir, hfsb_str uids,
                                     hfsb_err *err) {
    hfsb_buf    probe = HFSB_INIT;
    hfsb_status st;
    host->dialect = dialect;
    host->dir.alloc = probe.alloc = dialect->alloc;
    hfsb_buf_append(&host->dir, dir);
    hfsb_buf_append(&probe, dir);
    st = probe.status == HFSB_OK ? host->dir.status : probe.status;
    if (st != HFSB_OK) (void)hfsbi_fail_status(err, st, "Sandboxes");
    /* the first guest makes it */
    if (st == HFSB_OK && access(probe.ptr, F_OK) != 0)
        hfsb_buf_truncate(&probe, dir.len - hfsb_path_base(dir).len);
    if (st == HFSB_OK)
        st = hfsbi_uids_open(&host->uids, probe.ptr, uids, &dialect->alloc,
                             err);
    hfsb_buf_free(&probe);
    return st;
}

HFSBI_FN void hfsbi_host_end(hfsbi_host *host) {
    hfsbi_guest *g = host->guests;
    for (; g; g = g->next) {
        if (!g->tools) continue;
        if (host->kind->end) host->kind->end(g);
        hfsbi_jobs_end(g->tools, HFSB_LIT(""));
    }
}

HFSBI_FN bool hfsbi_host_busy(const hfsbi_host *host) {
    const hfsbi_guest *g = host->guests;
    while (g && g->tools && !hfsbi_tools_in_use(g->tools)) g = g->next;
    return g != NULL;
}

HFSBI_FN void hfsbi_host_close(hfsbi_host *host) {
    hfsbi_guest *g;
    while ((g = host->guests) != NULL) {
        if (g->tools && host->kind->end) host->kind->end(g);
        hfsbi_guest_close(g);
        hfsbi_guest_clear(g);
        hfsbi_guest_free(g);
    }
    hfsb_buf_free(&host->dir);
}
