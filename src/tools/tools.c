/* tools.c - the tools object: open, close, wait.

   One object runs tools for one session, in any number of threads. Commands
   are events of its loop: that of a server, or one of its own, which is turned
   by the threads that wait in calls and by the host's own loop:

       threads in calls --- hfsbi_loop_turn(): one waits for all
       host's own loop ---- watch(), its own poll(), step()

   While a thread in a call waits, it does the work of the host too. So each of
   its turns writes to the pipe `host`, which only hfsb_tools_step() empties;
   between a step of the host and its next watch() the turn is only recorded.

   Whatever may complete a call stirs the object: the loop then starts waiting
   jobs and calls the listeners of the calls that have news. */
#include "tools_private.h"

/* ---- open and close ---- */

/* How long a reply waits for the check of a Python file, where another one
   follows it. */
enum { HFSBI_CHECK_PATIENCE_MS = 50 };

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

/* Set for every command, so that no tool waits for a terminal. */
static const char *const hfsbi_env_defaults[] = {"TERM=dumb",
                                                 "NO_COLOR=1",
                                                 "PAGER=cat",
                                                 "GIT_PAGER=cat",
                                                 "GIT_TERMINAL_PROMPT=0",
                                                 "PYTHONUNBUFFERED=1"};

enum {
    HFSBI_ENV_DEFAULTS = sizeof hfsbi_env_defaults / sizeof *hfsbi_env_defaults
};

/* True when commands get this variable; no_secrets: it is the host's own, and
   may be a secret. */
static bool hfsbi_env_allowed(const char *entry, const char *const *hide,
                              bool no_secrets) {
    hfsb_str name = hfsbi_env_name(entry);
    size_t   i;
    for (i = 0; i < HFSBI_ENV_DEFAULTS; i++)
        if (hfsb_str_equal(name, hfsbi_env_name(hfsbi_env_defaults[i])))
            return false;
    if (name.len == 0 || entry[name.len] != '=' ||
        hfsb_str_equal(name, HFSB_LIT("SANDBOX_API_TOKEN")) ||
        hfsb_str_equal(name, HFSB_LIT("HFSB_JOB")) ||
        (no_secrets && hfsbi_confine_is_secret(name)))
        return false;
    for (; hide && *hide; hide++)
        if (hfsb_str_equal(name, hfsb_cstr(*hide))) return false;
    return true;
}

static void hfsbi_env_add(hfsbi_tools_env *env, const char *entry) {
    hfsb_buf_append(&env->text, hfsb_str_make(entry, strlen(entry) + 1));
    env->count++;
}

/* Copies the environment: the host may change its own later. */
static hfsb_status hfsbi_tools_copy_env(hfsb_tools            *tools,
                                        const hfsb_tools_opts *o) {
    const char *const *from = o->env ? o->env : (const char *const *)hfsbi_environ();
    bool   no_secrets = !o->env && o->confine.level == HFSB_CONFINE_STRICT;
    size_t at = 0, i;
    hfsbi_journal_hide_env(o->journal, from);
    for (; from && *from; from++)
        if (hfsbi_env_allowed(*from, o->hide_env, no_secrets))
            hfsbi_env_add(&tools->env, *from);
    for (i = 0; i < HFSBI_ENV_DEFAULTS; i++)
        hfsbi_env_add(&tools->env, hfsbi_env_defaults[i]);
    if (tools->env.text.status != HFSB_OK) return tools->env.text.status;
    tools->env.list = (const char **)hfsbi_array(
        &o->alloc, tools->env.count + 1, sizeof(char *));
    if (!tools->env.list) return HFSB_NOMEM;
    for (i = 0; i < tools->env.count; i++) {
        tools->env.list[i] = tools->env.text.ptr + at;
        at += strlen(tools->env.list[i]) + 1;
    }
    tools->env.list[i] = NULL;
    return HFSB_OK;
}

static void hfsbi_tools_free_env(hfsb_tools *tools) {
    hfsb_buf_free(&tools->env.text);
    if (tools->env.list && !tools->borrows)
        hfsbi_array_free(&tools->alloc, (void *)tools->env.list,
                         tools->env.count + 1, sizeof(char *));
}

/* Replaces environment, root and confinement with those of `like`, and counts
   the spill files of both together. */
static void hfsbi_tools_borrow(hfsb_tools *tools, const hfsb_tools *like) {
    hfsb_root_close(tools->place);
    tools->place = like->place;
    tools->history = like->history;
    if (tools->checker) tools->checker->place = tools->place;
    hfsbi_tools_free_env(tools);
    tools->env.list = like->env.list;
    tools->env.count = like->env.count;
    tools->borrows = true;
    if (tools->checker) tools->checker->env = tools->env.list;
    tools->confine = like->confine;
    tools->rights = like->rights;
    if (like->own_loop) hfsbi_spills_share(&tools->spills, &like->spills);
}

/* ---- confinement ---- */

/* Writes the roots and the working directory into *list, each ended by NUL.
   Without a root, "/" is left out: nobody chose it. */
static hfsb_status hfsbi_tools_dirs(const hfsb_tools *tools, hfsb_buf *list) {
    const hfsb_root *root = tools->place;
    hfsb_str         work = hfsb_root_work_dir(tools->place);
    char             here[PATH_MAX];
    for (; root; root = hfsb_root_next(root)) {
        if (!hfsb_root_path(root).len) continue;
        hfsb_buf_append(list, hfsb_root_path(root));
        hfsb_buf_append_byte(list, '\0');
    }
    if (!work.len && getcwd(here, sizeof here)) work = hfsb_cstr(here);
    if (work.len && (list->len || work.len > 1)) {
        hfsb_buf_append(list, work);
        hfsb_buf_append_byte(list, '\0');
    }
    return list->status;
}

/* Uses the confinement of another object of the group that was opened with the
   same options: limits apply to the commands of both together. */
static bool hfsbi_tools_share_confine(hfsb_tools              *tools,
                                      const hfsb_confine_opts *opts) {
    const hfsb_tools *other;
    if (!tools->loop) return false; /* its loop is its own */
    hfsbi_loop_lock(tools->loop);
    for (other = tools->group->first; other; other = other->group_next)
        if (hfsbi_confine_is_like(other->confine, opts)) break;
    if (other) {
        tools->confine = other->confine;
        tools->confine->users++;
    }
    hfsbi_loop_unlock(tools->loop);
    return other != NULL;
}

static void hfsbi_tools_close_confine(hfsb_tools *tools) {
    if (tools->borrows) return;
    if (tools->loop) hfsbi_loop_lock(tools->loop);
    hfsb_confine_close(tools->confine);
    if (tools->loop) hfsbi_loop_unlock(tools->loop);
}

/* Prepares the confinement of commands. */
static hfsb_status hfsbi_tools_open_confine(hfsb_tools            *tools,
                                            const hfsb_tools_opts *o,
                                            hfsb_err              *err) {
    hfsb_confine_opts opts = o->confine;
    const char       *dirs[HFSBI_ROOTS + 2];
    hfsb_buf          text = HFSB_INIT;
    size_t            at;
    hfsb_status       st;
    text.alloc = opts.alloc = tools->alloc;
    opts.dirs = dirs;
    opts.dir_count = 0;
    if (tools->history) opts.keep = tools->history->store.path.ptr;
    st = hfsbi_tools_dirs(tools, &text);
    for (at = 0; at < text.len && opts.dir_count < HFSBI_ROOTS + 2;
         at += strlen(text.ptr + at) + 1)
        dirs[opts.dir_count++] = text.ptr + at;
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Opening the tools");
    else if (!hfsbi_tools_share_confine(tools, &opts))
        st = hfsb_confine_open(&opts, &tools->confine, err);
    hfsb_buf_free(&text);
    return st;
}

/* In the loop of a server: keeps the threads of the file tools beneath the
   roots, and the folders that they need themselves. */
static void hfsbi_tools_raise_wall(hfsb_tools *tools) {
    const hfsb_root *root = tools->place;
    const char      *temp = getenv("TMPDIR");
    hfsb_buf         places = HFSB_INIT;
    places.alloc = tools->alloc;
    if (!root || !hfsb_root_path(root).len) return;
    for (; root; root = hfsb_root_next(root))
        (void)hfsbi_place_add(&places, HFSBI_PLACE_WRITE,
                              hfsb_root_path(root).ptr);
    (void)hfsbi_place_add(&places, HFSBI_PLACE_WRITE,
                          temp && *temp ? temp : "/tmp");
    (void)hfsbi_place_add(&places, HFSBI_PLACE_WRITE, tools->spills.dir);
    if (tools->history)
        (void)hfsbi_place_add(&places, HFSBI_PLACE_WRITE,
                              tools->history->store.path.ptr);
    if (tools->journal) hfsbi_journal_place(tools->journal, &places);
    tools->rights.walled =
        places.status == HFSB_OK && hfsbi_wall_raise(tools->loop, &places);
    hfsb_buf_free(&places);
}

HFSBI_FN void hfsbi_tools_outside(hfsb_tools *tools, void (*fn)(void *user),
                                  void       *user) {
    if (tools->rights.walled) hfsbi_loop_outside(tools->loop, fn, user);
    else fn(user);
}

const hfsb_confine *hfsb_tools_confine(const hfsb_tools *tools) {
    return tools->confine;
}

/* Unconfined commands may delete whatever the user may, but are likely to do
   so only in the root. */
const char *hfsb_tools_exposed(const hfsb_tools *tools) {
    const hfsbi_history *h = tools->history;
    char                 real[PATH_MAX];
    if (!h || h->store.dir < 0 || !realpath(h->store.path.ptr, real))
        return NULL;
    if (hfsb_confine_level_of(tools->confine) == HFSB_CONFINE_NONE
            ? !hfsbi_root_contains(tools->place, hfsb_cstr(real))
            : hfsbi_confine_keeps(tools->confine, real))
        return NULL;
    return h->store.path.ptr;
}

/* Resolves the options and copies them. HFSB_OK or HFSB_NOMEM; the caller
   frees the tools in either case. */
static hfsb_status hfsbi_tools_fill(hfsb_tools            *tools,
                                    const hfsb_tools_opts *o) {
    unsigned char id[4];
    hfsb_status   st;
    tools->shell.alloc = tools->env.text.alloc = o->alloc;
    tools->session = o->session;
    tools->no_keeper = o->no_keeper;
    tools->journal = o->journal;
    (void)snprintf(tools->who, sizeof tools->who, "%s", o->who ? o->who : "c");
    tools->limits.timeout = hfsbi_seconds_or(o->timeout, 240);
    tools->limits.max_timeout = hfsbi_seconds_or(o->max_timeout, 1200);
    if (tools->limits.timeout > tools->limits.max_timeout)
        tools->limits.timeout = tools->limits.max_timeout;
    tools->limits.grace_ms = o->grace_ms ? o->grace_ms : 2000;
    if (tools->limits.grace_ms > INT_MAX) tools->limits.grace_ms = INT_MAX;
    tools->limits.running = hfsbi_size_or(o->max_running, 64);
    tools->limits.waiting = hfsbi_size_or(o->max_waiting, 256);
    tools->limits.finished = hfsbi_size_or(o->max_finished, 256);
    tools->limits.page = o->max_page;
    if (o->max_page && o->max_page < HFSBI_PAGE_LEAST)
        tools->limits.page = HFSBI_PAGE_LEAST;
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
    tools->spills.over = o->spill_over;
    tools->spills.dropped = o->drop_spills;
    if (st != HFSB_OK || o->no_checks) return st;
    tools->checker = hfsbi_checker_open(o->checks, o->check_count, &o->alloc);
    if (!tools->checker) return HFSB_NOMEM;
    tools->checker->env = tools->env.list;
    tools->checker->no_imports = o->no_imports;
    if (o->session || tools->loop) /* that of a server */
        tools->checker->patience_ms = HFSBI_CHECK_PATIENCE_MS;
    tools->checker->late_by_path = !o->session;
    return HFSB_OK;
}

/* ---- the group ---- */

static void hfsbi_tools_join(hfsb_tools *tools) {
    hfsbi_tools_group *group = tools->group;
    hfsbi_loop_lock(tools->loop);
    if (group->first)
        hfsbi_spills_share(&tools->spills, &group->first->spills);
    tools->group_next = group->first;
    group->first = tools;
    hfsbi_loop_unlock(tools->loop);
}

/* Removes the object from its group, which may then start waiting commands. */
static void hfsbi_tools_leave(hfsb_tools *tools) {
    hfsbi_tools_group *group = tools->group;
    hfsb_tools       **link = &group->first;
    hfsbi_loop_lock(tools->loop);
    while (*link && *link != tools) link = &(*link)->group_next;
    if (*link) *link = tools->group_next;
    if (group->overseer == tools) group->overseer = NULL;
    if (group->first) {
        group->first->job_ended = true;
        hfsbi_tools_stir(group->first);
    }
    hfsbi_loop_unlock(tools->loop);
}

HFSBI_FN void hfsbi_tools_oversee(hfsb_tools *tools) {
    hfsbi_loop_lock(tools->loop);
    tools->group->overseer = tools;
    hfsbi_loop_unlock(tools->loop);
}

HFSBI_FN bool hfsbi_tools_in_use(hfsb_tools *tools) {
    const hfsbi_job *job;
    hfsbi_loop_lock(tools->loop);
    for (job = tools->jobs; job; job = job->next)
        if (job->state != HFSBI_JOB_DONE || job->users) break;
    hfsbi_loop_unlock(tools->loop);
    return job != NULL;
}

HFSBI_FN void hfsbi_tools_on_idle(hfsb_tools *tools, void (*fn)(void *user),
                                  void       *user) {
    tools->on_idle = fn;
    tools->idle_user = user;
}

HFSBI_FN void hfsbi_tools_free(hfsb_tools *tools) {
    hfsb_alloc alloc = tools->alloc;
    if (tools->loop) {
        hfsbi_onces_free(tools);
        hfsbi_jobs_free(tools);
        hfsbi_tools_leave(tools);
        hfsbi_loop_unpost(tools->loop, &tools->look);
    }
    hfsbi_checker_close(tools->checker);
    if (!tools->borrows) hfsbi_history_close(tools->history);
    hfsbi_spills_free(&tools->spills);
    if (!tools->borrows) hfsb_root_close(tools->place);
    hfsbi_tools_close_confine(tools);
    hfsbi_close(&tools->host.pipe[0]);
    hfsbi_close(&tools->host.pipe[1]);
    hfsbi_seen_free(&tools->seen);
    hfsb_buf_free(&tools->shell);
    hfsbi_tools_free_env(tools);
    if (tools->own_loop) hfsbi_loop_close(tools->loop);
    hfsbi_array_free(&alloc, tools, 1, sizeof *tools);
}

/* ---- waiting ---- */

HFSBI_FN void hfsbi_tools_stir(hfsb_tools *tools) {
    if (tools->looks) return;
    tools->looks = true;
    hfsbi_loop_post(tools->loop, &tools->look);
}

static void hfsbi_tools_look(hfsbi_task *task) {
    hfsb_tools *tools =
        (hfsb_tools *)(void *)((char *)task - offsetof(hfsb_tools, look));
    bool ended = tools->job_ended;
    tools->looks = false;
    if (ended) {
        tools->job_ended = false;
        hfsbi_jobs_start(tools->group);
        hfsbi_jobs_drop_old(tools);
    }
    hfsbi_calls_notify(tools);
    if (ended && tools->on_idle && !hfsbi_tools_in_use(tools))
        tools->on_idle(tools->idle_user);
}

/* Opens a loop of its own and the pipe of the host. */
static hfsb_status hfsbi_tools_open_loop(hfsb_tools *tools, hfsb_err *err) {
    hfsb_status st =
        hfsbi_loop_open(&tools->alloc, 0, true, &tools->loop, err);
    if (st != HFSB_OK) return st;
    tools->own_loop = true;
    tools->alone.loop = tools->loop;
    if (hfsbi_wake_open(tools->host.pipe)) return HFSB_OK;
    return hfsbi_fail_os(err, errno, "The tools cannot be opened");
}

/* hfsbi_tools_open_in() for this machine, or for that of far (NULL: this). */
static hfsb_status hfsbi_tools_open_at(hfsbi_tools_group     *group,
                                       const hfsb_tools      *like,
                                       const hfsbi_far_machine *far,
                                       const hfsb_tools_opts *opts,
                                       hfsb_tools **out, hfsb_err *err) {
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
    hfsbi_seen_init(&tools->seen, &opts->alloc);
    tools->group = group ? group : &tools->alone;
    tools->loop = tools->group->loop;
    tools->look.done = hfsbi_tools_look;
    tools->host.pipe[0] = tools->host.pipe[1] = -1;
    where.work_dir = opts->work_dir;
    where.root = opts->root;
    where.more_roots = opts->more_roots;
    where.more_root_count = opts->more_root_count;
    where.deny = opts->deny;
    where.deny_count = opts->deny_count;
    st = hfsbi_tools_fill(tools, opts);
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Opening the tools");
    tools->far = far;
    if (st == HFSB_OK)
        st = far ? hfsbi_root_open_far(&far->files, opts->work_dir,
                                       &opts->alloc, &tools->place, err)
                 : hfsb_root_open(&where, &tools->place, err);
    if (st == HFSB_OK && tools->checker) tools->checker->place = tools->place;
    if (st == HFSB_OK && opts->checkpoints.dir)
        st = hfsbi_history_open(&opts->checkpoints, tools->place, &opts->alloc,
                                &tools->history, err);
    if (st == HFSB_OK && !like && !far)
        st = hfsbi_tools_open_confine(tools, opts, err);
    if (st == HFSB_OK && !group) st = hfsbi_tools_open_loop(tools, err);
    if (st != HFSB_OK) {
        hfsbi_tools_free(tools);
        return st;
    }
    if (like) hfsbi_tools_borrow(tools, like);
    hfsbi_tools_join(tools);
    if (group && !like) hfsbi_tools_raise_wall(tools);
    *out = tools;
    return hfsbi_ok(err);
}

HFSBI_FN hfsb_status hfsbi_tools_open_in(hfsbi_tools_group     *group,
                                         const hfsb_tools      *like,
                                         const hfsb_tools_opts *opts,
                                         hfsb_tools **out, hfsb_err *err) {
    return hfsbi_tools_open_at(group, like, NULL, opts, out, err);
}

/* A file there is not checked: this machine's programs are not the ones that
   will run it. Output that a reply cuts is not saved here, where commands
   cannot read it. */
HFSBI_FN hfsb_status hfsbi_tools_open_far(const hfsbi_far_machine *far,
                                          const hfsb_tools_opts *opts,
                                          hfsb_tools **out, hfsb_err *err) {
    static const char *const no_env[] = {NULL};
    hfsb_tools_opts          o = HFSB_INIT;
    o.work_dir = opts->work_dir;
    o.session = opts->session;
    o.timeout = opts->timeout;
    o.max_timeout = opts->max_timeout;
    o.alloc = opts->alloc;
    o.env = no_env; /* nothing of this machine's */
    o.shell = "";   /* chosen there */
    o.max_running = (size_t)-1 / 2; /* each has a thread: none waits */
    o.no_spill = o.no_checks = o.no_keeper = true;
    return hfsbi_tools_open_at(NULL, NULL, far, &o, out, err);
}

hfsb_status hfsb_tools_open(const hfsb_tools_opts *opts, hfsb_tools **out,
                            hfsb_err *err) {
    return hfsbi_tools_open_in(NULL, NULL, opts, out, err);
}

HFSBI_FN void hfsbi_tools_check_less(hfsb_tools *tools, bool writes,
                                     bool runs) {
    if (tools->checker && !runs) tools->checker->no_imports = true;
    if (writes) return;
    hfsbi_checker_close(tools->checker);
    tools->checker = NULL;
}

HFSBI_FN hfsb_status hfsbi_tools_open_like(const hfsb_tools *like,
                                           const char *who, hfsb_tools **out,
                                           hfsb_err *err) {
    static const char *const no_env[] = {NULL};
    const hfsbi_checker     *checker = like->checker;
    hfsb_tools_opts          o = HFSB_INIT;
    o.session = like->session;
    o.env = no_env; /* replaced by that of `like`, as is the root */
    o.shell = like->shell.ptr;
    o.timeout = like->limits.timeout;
    o.max_timeout = like->limits.max_timeout;
    o.grace_ms = like->limits.grace_ms;
    o.max_running = like->limits.running;
    o.max_waiting = like->limits.waiting;
    o.max_finished = like->limits.finished;
    o.spill_dir = like->spills.dir;
    o.no_spill = like->spills.none;
    o.max_spill = like->spills.max_bytes;
    o.max_spills = like->spills.store->max;
    o.spill_over = like->spills.over;
    o.drop_spills = like->spills.dropped;
    o.max_page = like->limits.page;
    o.no_checks = !checker;
    if (checker) {
        o.checks = checker->checks;
        o.check_count = checker->count;
        o.no_imports = checker->no_imports;
    }
    o.no_keeper = like->no_keeper;
    o.journal = like->journal;
    o.who = who ? who : like->who;
    o.alloc = like->alloc;
    return hfsbi_tools_open_in(like->own_loop ? NULL : like->group, like, &o,
                               out, err);
}

HFSBI_FN void hfsbi_tools_set_place(hfsb_tools *tools, hfsb_root *root) {
    HFSB_ASSERT(tools->borrows);
    tools->place = root;
    if (tools->checker) tools->checker->place = root;
}

HFSBI_FN void hfsbi_tools_set_uid(hfsb_tools *tools, unsigned uid) {
    tools->rights.uid = uid;
}

/* The grace period passes first; hfsbi_tools_free() kills the rest. In a
   server's loop, which its own callbacks must not turn, nothing may be
   running. */
void hfsb_tools_close(hfsb_tools *tools) {
    long long until;
    if (!tools) return;
    hfsbi_jobs_end(tools, HFSB_LIT(""));
    until = hfsb_clock_ms() + 10000 + tools->limits.grace_ms;
    while (hfsb_tools_busy(tools) && hfsb_clock_ms() < until)
        hfsb_tools_poll(tools, 1000);
    hfsbi_tools_free(tools);
}

void hfsb_tools_wake(hfsb_tools *tools) {
    hfsbi_loop_wake(tools->loop);
    hfsbi_wake_write(tools->host.pipe[1]);
}

size_t hfsb_tools_watch(hfsb_tools *tools, hfsb_watch *list, size_t max) {
    size_t n;
    if (max > 0) {
        list[0].fd = tools->host.pipe[0];
        list[0].readable = true;
        list[0].writable = false;
    }
    hfsbi_loop_lock(tools->loop);
    tools->host.watched = true;
    if (tools->host.news) hfsbi_wake_write(tools->host.pipe[1]);
    n = hfsbi_loop_watch(tools->loop, max ? list + 1 : list,
                         max ? max - 1 : 0);
    hfsbi_loop_unlock(tools->loop);
    return 1 + n;
}

long long hfsb_tools_deadline(hfsb_tools *tools) {
    long long at;
    hfsbi_loop_lock(tools->loop);
    at = hfsbi_loop_deadline(tools->loop);
    hfsbi_loop_unlock(tools->loop);
    return at;
}

void hfsb_tools_step(hfsb_tools *tools) {
    hfsbi_loop_lock(tools->loop);
    tools->host.watched = tools->host.news = false;
    hfsbi_wake_drain(tools->host.pipe[0]);
    hfsbi_loop_turn(tools->loop, 0);
    hfsbi_loop_unlock(tools->loop);
}

HFSBI_FN void hfsbi_tools_turn(hfsb_tools *tools, long long wait_ms) {
    hfsbi_loop_turn(tools->loop, wait_ms);
    tools->host.news = true;
    if (tools->host.watched) hfsbi_wake_write(tools->host.pipe[1]);
}

void hfsb_tools_poll(hfsb_tools *tools, long long wait_ms) {
    hfsbi_loop_lock(tools->loop);
    hfsbi_tools_turn(tools, wait_ms < 0 ? 60000 : wait_ms);
    hfsbi_loop_unlock(tools->loop);
}

size_t hfsb_tools_busy(hfsb_tools *tools) {
    size_t n;
    hfsbi_loop_lock(tools->loop);
    n = hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING) +
        hfsbi_jobs_count(tools, HFSBI_JOB_WAITING);
    hfsbi_loop_unlock(tools->loop);
    return n;
}
