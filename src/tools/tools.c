/* tools.c - the tools object: open, close, wait, and the files of a session.

   One object runs tools for one session, in any number of threads. It starts
   no thread: work is done by the threads that wait in it.

       threads in calls --- one drives: poll() on all descriptors
                        \-- the others follow: wait for `changed`
       host's own loop ---- watch(), its own poll(), step()

   Every thread that changes the set of events to wait for wakes the driver
   through the pipe `wake`. Only the driver empties that pipe, so no wake is
   lost. A host that waits in its own loop has the pipe `host`, which only
   hfsb_tools_step() empties. News between its step and its next watch is kept
   in `stirred`, and that watch reports it.

   A step wakes other threads only for news: new output, a start, an end, other
   descriptors, or an earlier deadline. Otherwise two waiting threads would
   wake each other for ever. */
#include "tools_private.h"

/* ---- open and close ---- */

HFSBI_FN const char *hfsbi_default_shell(void) {
    static const char *const list[] = {"/bin/bash", "/usr/bin/bash"};
    size_t                   i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (access(list[i], X_OK) == 0) return list[i];
    return "/bin/sh";
}

/* Limits seconds to thirty years: more does not fit the clock. */
static double hfsbi_seconds_or(double value, double fallback) {
    return value > 1e9 ? 1e9 : value > 0 ? value : fallback;
}

static size_t hfsbi_size_or(size_t value, size_t fallback) {
    return value ? value : fallback;
}

/* True when commands get this variable. */
static bool hfsbi_env_allowed(const char *entry, const char *const *hide) {
    hfsb_str name = hfsbi_env_name(entry);
    if (name.len == 0 || entry[name.len] != '=' ||
        hfsb_str_equal(name, HFSB_LIT("SANDBOX_API_TOKEN")) ||
        hfsb_str_equal(name, HFSB_LIT("HFSB_JOB")))
        return false;
    for (; hide && *hide; hide++)
        if (hfsb_str_equal(name, hfsb_cstr(*hide))) return false;
    return true;
}

/* Copies the environment: the host may change its own later. */
static hfsb_status hfsbi_tools_copy_env(hfsb_tools            *tools,
                                        const hfsb_tools_opts *o) {
    const char *const *from = o->env ? o->env : (const char *const *)environ;
    hfsb_status        st = HFSB_OK;
    size_t             at = 0, i = 0;
    for (; st == HFSB_OK && from && *from; from++) {
        if (!hfsbi_env_allowed(*from, o->hide_env)) continue;
        st = hfsb_buf_append(&tools->env_text,
                             hfsb_str_make(*from, strlen(*from) + 1));
        if (st == HFSB_OK) tools->env_count++;
    }
    if (st != HFSB_OK) return st;
    tools->env = (const char **)hfsbi_array(&o->alloc, tools->env_count + 1,
                                            sizeof(char *));
    if (!tools->env) return HFSB_NOMEM;
    for (; i < tools->env_count; i++) {
        tools->env[i] = tools->env_text.ptr + at;
        at += strlen(tools->env[i]) + 1;
    }
    tools->env[i] = NULL;
    return HFSB_OK;
}

/* Resolves the options and copies them. HFSB_OK or HFSB_NOMEM; the caller
   frees the tools in either case. */
static hfsb_status hfsbi_tools_fill(hfsb_tools            *tools,
                                    const hfsb_tools_opts *o) {
    unsigned char id[4];
    hfsb_status   st;
    tools->shell.alloc = tools->env_text.alloc = o->alloc;
    tools->session = o->session;
    tools->no_keeper = o->no_keeper;
    tools->timeout = hfsbi_seconds_or(o->timeout, 240);
    tools->max_timeout = hfsbi_seconds_or(o->max_timeout, 1200);
    if (tools->timeout > tools->max_timeout)
        tools->timeout = tools->max_timeout;
    tools->grace_ms = o->grace_ms ? o->grace_ms : 2000;
    if (tools->grace_ms > INT_MAX) tools->grace_ms = INT_MAX;
    tools->max_running = hfsbi_size_or(o->max_running, 64);
    tools->max_waiting = hfsbi_size_or(o->max_waiting, 256);
    tools->max_finished = hfsbi_size_or(o->max_finished, 256);
    hfsbi_random(id, sizeof id);
    (void)snprintf(tools->prefix, sizeof tools->prefix, "%02x%02x%02x%02x",
                   id[0], id[1], id[2], id[3]);
    st = hfsb_buf_append(
        &tools->shell, hfsb_cstr(o->shell ? o->shell : hfsbi_default_shell()));
    if (st == HFSB_OK) st = hfsbi_tools_copy_env(tools, o);
    if (st == HFSB_OK &&
        !hfsbi_spills_init(&tools->spills, o->spill_dir, o->max_spills,
                           o->max_spill, &o->alloc))
        st = HFSB_NOMEM;
    tools->spills.none = o->no_spill;
    tools->spills.dropped = o->drop_spills;
    if (st != HFSB_OK || o->no_checks) return st;
    tools->checker = hfsbi_checker_open(o->checks, o->check_count, &o->alloc);
    if (!tools->checker) return HFSB_NOMEM;
    tools->checker->env = tools->env;
    tools->checker->no_imports = o->no_imports;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_tools_free(hfsb_tools *tools) {
    hfsb_alloc alloc = tools->alloc;
    hfsbi_jobs_free(tools);
    hfsbi_onces_free(tools);
    hfsbi_checker_close(tools->checker);
    hfsbi_spills_free(&tools->spills);
    hfsb_root_close(tools->place);
    hfsbi_close(&tools->wake[0]);
    hfsbi_close(&tools->wake[1]);
    hfsbi_close(&tools->host[0]);
    hfsbi_close(&tools->host[1]);
    hfsbi_array_free(&alloc, tools->seen, tools->seen_cap,
                     sizeof *tools->seen);
    hfsb_buf_free(&tools->shell);
    hfsb_buf_free(&tools->env_text);
    if (tools->env)
        hfsbi_array_free(&alloc, (void *)tools->env, tools->env_count + 1,
                         sizeof(char *));
    (void)pthread_cond_destroy(&tools->changed);
    (void)pthread_mutex_destroy(&tools->lock);
    hfsbi_array_free(&alloc, tools, 1, sizeof *tools);
}

hfsb_status hfsb_tools_open(const hfsb_tools_opts *opts, hfsb_tools **out,
                            hfsb_err *err) {
    hfsb_tools_opts none = HFSB_INIT;
    hfsb_root_opts  where = HFSB_INIT;
    hfsb_tools     *tools;
    hfsb_status     st;
    *out = NULL;
    if (!opts) opts = &none;
    tools = (hfsb_tools *)hfsbi_array(&opts->alloc, 1, sizeof *tools);
    if (!tools) return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the tools");
    memset(tools, 0, sizeof *tools);
    tools->alloc = where.alloc = opts->alloc;
    hfsbi_snapshot_init(&tools->snapshot, &opts->alloc);
    tools->wake[0] = tools->wake[1] = tools->host[0] = tools->host[1] = -1;
    (void)pthread_mutex_init(&tools->lock, NULL);
    (void)hfsbi_cond_init(&tools->changed);
    where.work_dir = opts->work_dir;
    where.root = opts->root;
    st = hfsbi_tools_fill(tools, opts);
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Opening the tools");
    if (st == HFSB_OK) st = hfsb_root_open(&where, &tools->place, err);
    if (st == HFSB_OK && tools->checker) tools->checker->place = tools->place;
    if (st == HFSB_OK &&
        (!hfsbi_wake_open(tools->wake) || !hfsbi_wake_open(tools->host)))
        st = hfsbi_fail_os(err, errno, "The tools cannot be opened");
    if (st != HFSB_OK) {
        hfsbi_tools_free(tools);
        return st;
    }
    *out = tools;
    return hfsbi_ok(err);
}

HFSBI_FN hfsb_status hfsbi_tools_open_like(const hfsb_tools *like,
                                           hfsb_tools **out, hfsb_err *err) {
    const hfsbi_checker *checker = like->checker;
    hfsb_tools_opts      o = HFSB_INIT;
    o.work_dir = hfsb_root_work_dir(like->place);
    o.root = hfsb_root_path(like->place);
    o.session = like->session;
    o.env = like->env; /* without the hidden variables already */
    o.shell = like->shell.ptr;
    o.timeout = like->timeout;
    o.max_timeout = like->max_timeout;
    o.grace_ms = like->grace_ms;
    o.max_running = like->max_running;
    o.max_waiting = like->max_waiting;
    o.max_finished = like->max_finished;
    o.spill_dir = like->spills.dir;
    o.no_spill = like->spills.none;
    o.max_spill = like->spills.max_bytes;
    o.max_spills = like->spills.max;
    o.drop_spills = like->spills.dropped;
    o.no_checks = !checker;
    if (checker) {
        o.checks = checker->checks;
        o.check_count = checker->count;
        o.no_imports = checker->no_imports;
    }
    o.no_keeper = like->no_keeper;
    o.alloc = like->alloc;
    return hfsb_tools_open(&o, out, err);
}

void hfsb_tools_close(hfsb_tools *tools) {
    hfsbi_job *job;
    long long  until;
    if (!tools) return;
    for (job = tools->jobs; job; job = job->next)
        (void)hfsbi_job_kill(tools, job);
    /* the grace passes first; hfsbi_tools_free() kills the rest */
    until = hfsb_clock_ms() + 10000 + tools->grace_ms;
    while (hfsb_tools_busy(tools) && hfsb_clock_ms() < until)
        hfsb_tools_poll(tools, 1000);
    hfsbi_tools_free(tools);
}

/* ---- waiting ---- */

void hfsb_tools_wake(hfsb_tools *tools) {
    hfsbi_wake_write(tools->wake[1]);
    hfsbi_wake_write(tools->host[1]);
}

/* Fills list as hfsb_tools_watch() does, with the pipe `wake` first. */
static size_t hfsbi_watch_all(hfsb_tools *tools, int wake, hfsb_watch *list,
                              size_t max) {
    if (max > 0) {
        list[0].fd = wake;
        list[0].readable = true;
        list[0].writable = false;
    }
    return 1 +
           hfsbi_jobs_watch(tools, max ? list + 1 : list, max ? max - 1 : 0);
}

size_t hfsb_tools_watch(hfsb_tools *tools, hfsb_watch *list, size_t max) {
    size_t n;
    pthread_mutex_lock(&tools->lock);
    tools->watched = true;
    if (tools->stirred) hfsbi_wake_write(tools->host[1]);
    tools->stirred = false;
    n = hfsbi_watch_all(tools, tools->host[0], list, max);
    pthread_mutex_unlock(&tools->lock);
    return n;
}

/* Returns the earliest deadline of a job or a call, or -1. Under the lock. */
static long long hfsbi_tools_next_deadline(const hfsb_tools *tools) {
    long long        at = hfsbi_jobs_deadline(tools);
    const hfsb_call *call;
    for (call = tools->waiting; call; call = call->next_waiting)
        if (at < 0 || hfsbi_output_at(call) < at) at = hfsbi_output_at(call);
    return at;
}

long long hfsb_tools_deadline(hfsb_tools *tools) {
    long long at;
    pthread_mutex_lock(&tools->lock);
    at = hfsbi_tools_next_deadline(tools);
    pthread_mutex_unlock(&tools->lock);
    return at;
}

/* Only news wakes the driver and the host, see above. */
HFSBI_FN void hfsbi_tools_touch(hfsb_tools *tools) {
    unsigned long long mark = hfsbi_jobs_mark(tools);
    long long          before = hfsbi_tools_next_deadline(tools), after;
    hfsbi_jobs_step(tools);
    after = hfsbi_tools_next_deadline(tools);
    (void)pthread_cond_broadcast(&tools->changed);
    if (mark == hfsbi_jobs_mark(tools) &&
        (after < 0 || (before >= 0 && after >= before)))
        return;
    if (tools->driving) hfsbi_wake_write(tools->wake[1]);
    if (tools->watched) hfsbi_wake_write(tools->host[1]);
    else tools->stirred = true;
}

void hfsb_tools_step(hfsb_tools *tools) {
    pthread_mutex_lock(&tools->lock);
    tools->watched = false;
    hfsbi_wake_drain(tools->host[0]);
    hfsbi_tools_touch(tools);
    tools->stirred = false; /* the host made this step itself */
    pthread_mutex_unlock(&tools->lock);
}

/* Returns the timeout for poll(), in ms, until `until` or the next deadline.
   crowded: some descriptors are not in the list of poll(). */
static int hfsbi_poll_timeout(const hfsb_tools *tools, long long until,
                              bool crowded) {
    long long now = hfsb_clock_ms(), at = hfsbi_tools_next_deadline(tools), ms;
    if (until >= 0 && (at < 0 || until < at)) at = until;
    ms = at < 0 ? 60000 : at > now ? at - now : 0;
    if (crowded && ms > 20) ms = 20;
    return ms > 60000 ? 60000 : (int)ms;
}

enum { HFSBI_POLL_MAX = 512 }; /* descriptors; with more, step every 20 ms */

/* Waits in poll() for all threads, then steps. Under the lock, which it
   releases while it waits. */
static void hfsbi_tools_drive(hfsb_tools *tools, long long until) {
    hfsb_watch    watch[HFSBI_POLL_MAX];
    struct pollfd fds[HFSBI_POLL_MAX];
    size_t n = hfsbi_watch_all(tools, tools->wake[0], watch, HFSBI_POLL_MAX);
    int    ms = hfsbi_poll_timeout(tools, until, n > HFSBI_POLL_MAX);
    if (n > HFSBI_POLL_MAX) n = HFSBI_POLL_MAX;
    hfsbi_poll_fill(watch, n, fds);
    tools->driving = true;
    pthread_mutex_unlock(&tools->lock);
    (void)poll(fds, (nfds_t)n, ms); /* EINTR: step anyway */
    pthread_mutex_lock(&tools->lock);
    tools->driving = false;
    hfsbi_wake_drain(tools->wake[0]);
    hfsbi_tools_touch(tools);
}

/* Waits for the driver, a second at most: without a monotonic clock for
   conditions, setting the clock back would prolong the wait. Under the
   lock. */
static void hfsbi_tools_follow(hfsb_tools *tools, long long until) {
    long long ms = 1000, left = until - hfsb_clock_ms();
    if (until >= 0 && left < ms) ms = left > 0 ? left : 0;
    hfsbi_cond_wait_ms(&tools->changed, &tools->lock, ms);
}

HFSBI_FN void hfsbi_tools_wait(hfsb_tools *tools, long long until) {
    if (tools->driving) hfsbi_tools_follow(tools, until);
    else hfsbi_tools_drive(tools, until);
}

void hfsb_tools_poll(hfsb_tools *tools, long long wait_ms) {
    if (wait_ms > INT_MAX) wait_ms = INT_MAX;
    pthread_mutex_lock(&tools->lock);
    hfsbi_tools_wait(tools, wait_ms < 0 ? -1 : hfsb_clock_ms() + wait_ms);
    pthread_mutex_unlock(&tools->lock);
}

size_t hfsb_tools_busy(hfsb_tools *tools) {
    size_t n;
    pthread_mutex_lock(&tools->lock);
    n = hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING) +
        hfsbi_jobs_count(tools, HFSBI_JOB_WAITING);
    pthread_mutex_unlock(&tools->lock);
    return n;
}

/* ---- files that a session has read or written ---- */

/* Computes the digest of a file's key. False when the key cannot be made. */
static bool hfsbi_seen_digest(hfsb_tools *tools, hfsb_str path,
                              hfsbi_digest *out) {
    hfsb_buf    key = HFSB_INIT;
    hfsb_sha256 sha;
    bool        ok;
    key.alloc = tools->alloc;
    ok = hfsb_file_key(tools->place, path, &key, NULL) == HFSB_OK;
    if (ok) {
        hfsb_sha256_init(&sha);
        hfsb_sha256_write(&sha, hfsb_buf_str(&key));
        hfsb_sha256_finish(&sha, out->bytes);
    }
    hfsb_buf_free(&key);
    return ok;
}

/* Returns the slot of a digest, or the free slot where it belongs. A free slot
   is all zero, which no digest is. Digests are as good as random, so their
   first bytes serve as the hash. */
static hfsbi_digest *hfsbi_seen_slot(hfsbi_digest *table, size_t cap,
                                     const hfsbi_digest *d) {
    static const hfsbi_digest none = {{0}};
    size_t                    at;
    memcpy(&at, d->bytes, sizeof at);
    for (at &= cap - 1;; at = (at + 1) & (cap - 1))
        if (memcmp(&table[at], &none, sizeof none) == 0 ||
            memcmp(&table[at], d, sizeof *d) == 0)
            return &table[at];
}

/* Under the lock. */
static bool hfsbi_seen_find(const hfsb_tools *tools, const hfsbi_digest *d) {
    return tools->seen_cap > 0 &&
           memcmp(hfsbi_seen_slot(tools->seen, tools->seen_cap, d), d,
                  sizeof *d) == 0;
}

/* Makes room for one more digest; the table stays at most half full. False
   without memory. */
static bool hfsbi_seen_grow(hfsb_tools *tools) {
    size_t        cap = tools->seen_cap ? tools->seen_cap * 2 : 64, i;
    hfsbi_digest *table;
    if (tools->seen_count < tools->seen_cap / 2) return true;
    table = (hfsbi_digest *)hfsbi_array(&tools->alloc, cap, sizeof *table);
    if (!table) return false;
    memset(table, 0, cap * sizeof *table);
    for (i = 0; i < tools->seen_cap; i++)
        *hfsbi_seen_slot(table, cap, &tools->seen[i]) = tools->seen[i];
    hfsbi_array_free(&tools->alloc, tools->seen, tools->seen_cap,
                     sizeof *table);
    tools->seen = table;
    tools->seen_cap = cap;
    return true;
}

HFSBI_FN void hfsbi_seen_add(hfsb_tools *tools, hfsb_str path) {
    hfsbi_digest d;
    if (!tools->session || !hfsbi_seen_digest(tools, path, &d)) return;
    pthread_mutex_lock(&tools->lock);
    /* without memory the model must read the file again */
    if (!hfsbi_seen_find(tools, &d) && hfsbi_seen_grow(tools)) {
        *hfsbi_seen_slot(tools->seen, tools->seen_cap, &d) = d;
        tools->seen_count++;
    }
    pthread_mutex_unlock(&tools->lock);
}

HFSBI_FN bool hfsbi_seen_has(hfsb_tools *tools, hfsb_str path) {
    hfsbi_digest d;
    bool         has;
    if (!tools->session) return true;
    if (!hfsbi_seen_digest(tools, path, &d)) return false;
    pthread_mutex_lock(&tools->lock);
    has = hfsbi_seen_find(tools, &d);
    pthread_mutex_unlock(&tools->lock);
    return has;
}
