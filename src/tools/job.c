/* job.c - jobs: the commands of a tools object.

   A job is one command with an id, from the call of bash until it can no
   longer be asked for:

       add --> WAITING --> RUNNING --> DONE --> text dropped --> freed
                  |                      ^
                  +-- killed, expired ---+

   At most max_running commands of the objects that share a root run; the
   others wait in order, and their timeout counts from the moment they were
   added. Programs may run as long as they like, so a program that waits gives
   up after HFSBI_PROGRAM_WAIT. No thread belongs to a job: the loop of the
   tools steps its process, and a timer ends its wait.

   When a command ends, the result of bash is written once and kept for
   repeats. Finished jobs are freed by age and number, except while a call
   refers to them (users). A job with a caller's id or key must not run twice,
   so its record is kept after its text is dropped.

   A command may end while processes that it started live on (survivors). Their
   pipes are drained here, so that they do not block; their sessions are
   remembered as spans, so that a sweep finds them. */
#include "tools_private.h"

enum {
    HFSBI_JOB_HOUR = 3600 * 1000,     /* ms that a finished job is kept */
    HFSBI_JOB_HELD = 8 * 1024 * 1024, /* bytes of text of all finished jobs */
    HFSBI_JOB_TAPS = 4 * 1024 * 1024, /* bytes that their taps keep */
    HFSBI_JOB_COMMAND = 200,          /* characters of a command in a report */
    HFSBI_DRAINS = 64,                /* pipes drained in this process */
    HFSBI_PROGRAM_WAIT = 10000,       /* ms that a program waits for a slot */
    HFSBI_START_MS = 20               /* of a server's turn: then the rest of
                                         the commands start in the next one */
};

/* ---- the spec of a command ---- */

HFSBI_FN void hfsbi_job_spec_init(hfsbi_job_spec   *spec,
                                  const hfsb_alloc *alloc) {
    memset(spec, 0, sizeof *spec);
    spec->id.alloc = spec->command.alloc = spec->description.alloc = *alloc;
    spec->work_dir.alloc = spec->work_dir_given.alloc = *alloc;
    spec->shell.alloc = spec->input.alloc = spec->env.alloc = *alloc;
    spec->raw.argv.alloc = spec->raw.tag.alloc = *alloc;
}

HFSBI_FN hfsb_status hfsbi_job_spec_status(const hfsbi_job_spec *spec) {
    const hfsb_buf *all[10];
    size_t          i;
    all[0] = &spec->command;
    all[1] = &spec->description;
    all[2] = &spec->work_dir;
    all[3] = &spec->work_dir_given;
    all[4] = &spec->shell;
    all[5] = &spec->input;
    all[6] = &spec->env;
    all[7] = &spec->id;
    all[8] = &spec->raw.argv;
    all[9] = &spec->raw.tag;
    for (i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->status != HFSB_OK) return all[i]->status;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_job_spec_free(hfsbi_job_spec *spec) {
    hfsb_buf_free(&spec->id);
    hfsb_buf_free(&spec->command);
    hfsb_buf_free(&spec->description);
    hfsb_buf_free(&spec->work_dir);
    hfsb_buf_free(&spec->work_dir_given);
    hfsb_buf_free(&spec->shell);
    hfsb_buf_free(&spec->input);
    hfsb_buf_free(&spec->env);
    hfsb_buf_free(&spec->raw.argv);
    hfsb_buf_free(&spec->raw.tag);
}

/* ---- the environment of a command ---- */

HFSBI_FN hfsb_str hfsbi_env_name(const char *entry) {
    hfsb_str all = hfsb_cstr(entry);
    size_t   at = hfsb_str_find_byte(all, '=');
    return at == HFSB_NPOS ? all : hfsb_str_slice(all, 0, at);
}

/* True when a list of entries, each ending in NUL, contains that name. */
static bool hfsbi_env_has(const hfsb_buf *list, hfsb_str name) {
    size_t at;
    for (at = 0; at < list->len; at += strlen(list->ptr + at) + 1)
        if (hfsb_str_equal(hfsbi_env_name(list->ptr + at), name)) return true;
    return false;
}

HFSBI_FN const char **hfsbi_env_merge(const hfsb_tools     *tools,
                                      const hfsbi_job_spec *spec,
                                      size_t               *size) {
    const char    **list;
    size_t          i, n = 0, at;
    const hfsb_buf *late = &tools->group->env;
    *size = tools->env.count + 1;
    for (at = 0; at < spec->env.len; at += strlen(spec->env.ptr + at) + 1)
        ++*size;
    for (at = 0; at < late->len; at += strlen(late->ptr + at) + 1) ++*size;
    list = (const char **)hfsbi_array(&tools->alloc, *size, sizeof(char *));
    if (!list) return NULL;
    for (i = 0; i < tools->env.count && !spec->raw.bare_env; i++)
        if (!hfsbi_env_has(&spec->env, hfsbi_env_name(tools->env.list[i])) &&
            !hfsbi_env_has(late, hfsbi_env_name(tools->env.list[i])))
            list[n++] = tools->env.list[i];
    for (at = 0; at < late->len && !spec->raw.bare_env;
         at += strlen(late->ptr + at) + 1)
        if (strchr(late->ptr + at, '=') &&
            !hfsbi_env_has(&spec->env, hfsbi_env_name(late->ptr + at)))
            list[n++] = late->ptr + at;
    for (at = 0; at < spec->env.len; at += strlen(spec->env.ptr + at) + 1)
        if (strchr(spec->env.ptr + at, '=')) /* else it is unset */
            list[n++] = spec->env.ptr + at;
    list[n] = NULL;
    return list;
}

/* ---- pipes that survivors hold open ---- */

/* One such pipe, an event of the loop. */
struct hfsbi_drain {
    hfsbi_io     io; /* first: its function casts it back */
    hfsb_tools  *tools;
    hfsbi_drain *next;
};

/* Ends a drain and returns its descriptor. */
static int hfsbi_drain_end(hfsbi_drain *drain) {
    hfsb_tools   *tools = drain->tools;
    hfsbi_drain **link = &tools->left.drains;
    int           fd = drain->io.fd;
    while (*link != drain) link = &(*link)->next;
    *link = drain->next;
    tools->left.drain_count--;
    hfsbi_loop_io_forget(tools->loop, &drain->io);
    hfsbi_array_free(&tools->alloc, drain, 1, sizeof *drain);
    return fd;
}

/* Reads and discards output of survivors. */
static void hfsbi_drain_ready(hfsbi_io *io, unsigned events) {
    char    block[16384];
    ssize_t n = hfsbi_read(io->fd, block, sizeof block);
    int     fd;
    (void)events;
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) return;
    fd = hfsbi_drain_end((hfsbi_drain *)(void *)io);
    hfsbi_close(&fd);
}

/* Ends all drains: a keeper process keeps reading, or the pipes are closed. */
static void hfsbi_drains_release(hfsb_tools *tools) {
    int    held[HFSBI_DRAINS], fd;
    size_t n = 0;
    while (tools->left.drains) {
        fd = hfsbi_drain_end(tools->left.drains);
        if (tools->no_keeper || hfsbi_pipe_ended(fd)) hfsbi_close(&fd);
        else held[n++] = fd;
        if (n == HFSBI_DRAINS || !tools->left.drains) {
            hfsb_proc_keep_pipes(held, n);
            n = 0;
        }
    }
}

/* Takes ownership of the descriptor. Without memory a keeper reads it. */
static void hfsbi_drain_add(hfsb_tools *tools, int fd) {
    hfsbi_drain *drain;
    if (tools->left.drain_count >= HFSBI_DRAINS && !tools->no_keeper)
        hfsbi_drains_release(tools);
    drain = (hfsbi_drain *)hfsbi_array(&tools->alloc, 1, sizeof *drain);
    if (!drain) {
        hfsb_proc_keep_pipes(&fd, 1);
        return;
    }
    memset(drain, 0, sizeof *drain);
    drain->io.fd = fd;
    drain->io.fn = hfsbi_drain_ready;
    drain->tools = tools;
    drain->next = tools->left.drains;
    tools->left.drains = drain;
    tools->left.drain_count++;
    if (!hfsbi_loop_io(tools->loop, &drain->io, HFSBI_IO_READ)) {
        fd = hfsbi_drain_end(drain);
        hfsb_proc_keep_pipes(&fd, 1);
    }
}

/* ---- sessions of commands, for the sweep ---- */

/* The os room tracks the process tree of a running command. Survivors are
   found by the session of their command: a span is the session's number and
   the time during which that number belonged to the command. */

static hfsbi_session_span *hfsbi_span_find(hfsb_tools      *tools,
                                           const hfsbi_job *job) {
    size_t i;
    for (i = 0; i < HFSBI_JOB_SPANS; i++)
        if (tools->left.spans[i].running &&
            tools->left.spans[i].session == job->pid)
            return &tools->left.spans[i];
    return NULL;
}

/* When all spans are in use, one is overwritten. A sweep then finds processes
   of that session only by their marker. */
static void hfsbi_span_begin(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_session_span span = hfsbi_proc_span(job->proc);
    size_t             i = 0;
    if (span.session == 0) return;
    if (tools->left.since == 0) tools->left.since = span.since;
    while (i < HFSBI_JOB_SPANS && tools->left.spans[i].session) i++;
    if (i == HFSBI_JOB_SPANS) {
        i = tools->left.next;
        tools->left.next = (i + 1) % HFSBI_JOB_SPANS;
    }
    tools->left.spans[i] = span;
}

/* Keeps the span of a finished command only if it has survivors. */
static void hfsbi_span_end(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_session_span *span = hfsbi_span_find(tools, job), none = HFSB_INIT;
    if (!span) return;
    *span = job->left_count ? hfsbi_proc_span(job->proc) : none;
    span->running = false;
    job->span = *span;
}

/* ---- one job ---- */

/* The checkpoint before a command, taken in a thread of a server. The job may
   end meanwhile. */
struct hfsbi_job_scan {
    hfsbi_task     task; /* first: its functions cast it back */
    hfsbi_history *history;
    hfsb_tools    *tools;
    hfsbi_job     *job; /* NULL: freed */
    hfsb_alloc     alloc;
};

static void hfsbi_job_enter(hfsbi_job *job, hfsbi_job_state state) {
    hfsbi_tools_group *group = job->tools->group;
    hfsbi_history     *history = job->tools->history;
    bool               ran = job->state == HFSBI_JOB_RUNNING;
    group->jobs[job->state]--;
    group->jobs[state]++;
    job->state = state;
    if (history && ran != (state == HFSBI_JOB_RUNNING))
        hfsbi_history_busy(history, !ran);
}

/* Frees the standard input that was not written. */
static void hfsbi_job_drop_input(hfsbi_job *job) {
    job->tools->group->input -= job->input;
    job->input = 0;
    hfsb_buf_free(&job->spec.input);
}

/* Makes the object, and the one that oversees the group, look at their calls.
   */
static void hfsbi_job_stir(hfsbi_job *job) {
    hfsb_tools *overseer = job->tools->group->overseer;
    hfsbi_tools_stir(job->tools);
    if (overseer) hfsbi_tools_stir(overseer);
}

/* The name of the tool that started it. */
static const char *hfsbi_job_tool(const hfsbi_job *job) {
    return job->spec.raw.on ? "process" : "bash";
}

static const char *hfsbi_job_who(const hfsbi_job *job) {
    return job->spec.who ? job->spec.who : job->tools->who;
}

/* Adds the event that the job has been added or, with a result, has ended. */
static unsigned long long hfsbi_job_report(hfsbi_job *job, bool ended) {
    hfsbi_event e = HFSB_INIT;
    if (!job->tools->journal) return 0;
    e.who = hfsbi_job_who(job);
    e.tool = hfsbi_job_tool(job);
    e.brief = &job->brief;
    e.call = job->event;
    e.job = job;
    if (ended) e.result = &job->result;
    e.duration_ms = (ended ? job->ended : hfsb_clock_ms()) - job->created;
    e.output_bytes = job->record.taken;
    return hfsbi_journal_add(job->tools->journal, &e);
}

static void hfsbi_job_free_feed(hfsb_tools *tools, hfsbi_feed *feed) {
    if (!feed) return;
    hfsbi_feed_free(feed);
    hfsbi_array_free(&tools->alloc, feed, 1, sizeof *feed);
}

static void hfsbi_job_free(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_job_waiter *waiter;
    if (job->state != HFSBI_JOB_DONE) { /* closing it below kills it */
        job->killed = true;
        job->ended = hfsb_clock_ms();
        (void)hfsbi_job_report(job, true);
    }
    tools->group->jobs[job->state]--;
    if (tools->history && job->state == HFSBI_JOB_RUNNING)
        hfsbi_history_busy(tools->history, false);
    if (job->scan) job->scan->job = NULL;
    hfsbi_job_drop_input(job);
    hfsbi_loop_timer_clear(tools->loop, &job->timer);
    hfsb_proc_close(job->proc);
    hfsbi_record_free(&job->record);
    hfsbi_job_free_feed(tools, job->feed);
    hfsbi_job_free_feed(tools, job->tap);
    while ((waiter = job->waiters) != NULL) {
        job->waiters = waiter->next;
        hfsbi_array_free(&tools->alloc, waiter, 1, sizeof *waiter);
    }
    hfsbi_job_spec_free(&job->spec);
    hfsb_buf_free(&job->brief.text);
    hfsbi_guard_close(job->guard);
    hfsb_buf_free(&job->notes);
    hfsb_tool_result_free(&job->result);
    hfsbi_array_free(&tools->alloc, job, 1, sizeof *job);
}

static void hfsbi_job_output(void *user, hfsb_proc_stream stream,
                             hfsb_str bytes) {
    hfsbi_job      *job = (hfsbi_job *)user;
    hfsbi_feed_kind kind = job->spec.raw.cols           ? HFSBI_FEED_PTY
                           : stream == HFSB_PROC_STDERR ? HFSBI_FEED_STDERR
                                                        : HFSBI_FEED_STDOUT;
    if (!job->feed) {
        hfsbi_record_write(&job->record, stream, bytes);
        if (job->tap) hfsbi_feed_write(job->tap, kind, bytes);
        return;
    }
    job->record.taken += bytes.len;
    hfsbi_feed_write(job->feed, kind, bytes);
}

/* The feed is full, or has room again. */
static void hfsbi_job_hold(void *user, bool hold) {
    hfsbi_job *job = (hfsbi_job *)user;
    if (job->proc) hfsbi_proc_hold(job->proc, hold && !job->loose);
}

/* A reader that takes no more events must not keep a program that was killed
   or timed out from ending. Once the program has exited its output is read,
   and the feed drops what it has no room for. */
static void hfsbi_job_loosen(hfsbi_job *job) {
    hfsb_proc_result now;
    if (!job->feed || job->loose) return;
    now = hfsb_proc_status(job->proc);
    if (!now.killed && !now.timed_out) return;
    if (now.end == HFSB_PROC_RUNNING && !now.incomplete) return;
    job->loose = true;
    hfsbi_proc_hold(job->proc, false);
}

/* The job runs, or has ended without running. */
static void hfsbi_job_started(hfsbi_job *job) {
    hfsbi_job_waiter *w;
    while ((w = job->waiters) != NULL) {
        void (*fn)(void *user, hfsbi_job *job) = w->fn;
        void *user = w->user;
        job->waiters = w->next;
        hfsbi_array_free(&job->tools->alloc, w, 1, sizeof *w);
        fn(user, job);
    }
}

/* The process takes input again, or has ended. Writers may wait again, and end
   the wait of others. */
static void hfsbi_job_call_writers(hfsbi_job *job) {
    hfsbi_job_writer *w;
    size_t            n = 0;
    for (w = job->writers; w; w = w->next) n++;
    for (; n && (w = job->writers) != NULL; n--) {
        if (job->proc && !hfsbi_proc_has_room(job->proc)) return;
        job->writers = w->next;
        w->job = NULL;
        w->on_room(w->user);
    }
}

/* The status of a program that was not started, if nothing else is known. */
static hfsb_status hfsbi_job_reason(const hfsbi_job *job) {
    if (job->status != HFSB_OK) return job->status;
    return job->end.timed_out ? HFSB_TIMEOUT : HFSB_CANCELLED;
}

/* Ends a job and writes the result of bash. err is the reason why the command
   did not start, or NULL. */
static void hfsbi_job_finish(hfsbi_job *job, const hfsb_err *err) {
    hfsbi_loop_timer_clear(job->tools->loop, &job->timer);
    hfsbi_job_enter(job, HFSBI_JOB_DONE);
    job->ended = hfsb_clock_ms();
    hfsbi_record_finish(&job->record);
    job->status = hfsbi_bash_result(job, err);
    if (job->feed && !job->pid && job->result.code == HFSB_OK)
        job->result.code = hfsbi_job_reason(job);
    job->result_held = true;
    (void)hfsbi_job_report(job, true);
    if (job->once) {
        job->once->running = false;
        job->once->when = job->ended;
    }
    hfsbi_record_settle(&job->record);
    hfsbi_job_drop_input(job);
    hfsb_buf_free(&job->spec.env);
    hfsb_buf_free(&job->brief.text);
    job->tools->job_ended = true;
    hfsbi_job_stir(job);
    job->users++; /* waiters may release it, and start others */
    hfsbi_job_started(job);
    hfsbi_job_call_writers(job);
    if (job->feed)
        hfsbi_feed_end(job->feed, job->end.end, job->end.exit_code,
                       job->end.signal);
    if (job->tap)
        hfsbi_feed_end(job->tap, job->end.end, job->end.exit_code,
                       job->end.signal);
    job->users--;
}

/* True when a file tool of the session wrote the current content of the file.
   */
static bool hfsbi_job_wrote(void *user, const char *path) {
    hfsb_tools   *tools = (hfsb_tools *)user;
    hfsb_buf      key = HFSB_INIT, content = HFSB_INIT;
    hfsbi_version now, known;
    bool          same;
    key.alloc = content.alloc = tools->alloc;
    same =
        hfsb_file_key(tools->place, hfsb_cstr(path), &key, NULL) == HFSB_OK &&
        hfsbi_seen_wrote(&tools->seen, hfsb_buf_str(&key), &known) &&
        hfsb_file_read(tools->place, hfsb_cstr(path), 1024 * 1024, &content,
                       NULL, NULL) == HFSB_OK;
    hfsbi_version_of(hfsb_buf_str(&content), &now);
    same = same && strcmp(now.hex, known.hex) == 0;
    hfsb_buf_free(&key);
    hfsb_buf_free(&content);
    return same;
}

/* The command has ended. */
static void hfsbi_job_end(hfsbi_job *job) {
    hfsb_tools *tools = job->tools;
    int         fds[2];
    size_t      n;
    job->end = hfsb_proc_status(job->proc);
    if (tools->history)
        hfsbi_history_changed(tools->history, hfsbi_job_tool(job),
                              hfsb_buf_str(&job->spec.command));
    job->left_count =
        hfsb_proc_survivors(job->proc, job->left, HFSBI_JOB_LEFT);
    hfsbi_span_end(tools, job);
    n = hfsb_proc_take_pipes(job->proc, fds);
    while (n > 0) hfsbi_drain_add(tools, fds[--n]);
    hfsb_proc_close(job->proc);
    job->proc = NULL;
    hfsbi_guard_check(job->guard, hfsbi_job_wrote, tools, &job->notes);
    hfsbi_guard_close(job->guard);
    job->guard = NULL;
    hfsbi_job_finish(job, NULL);
    if (tools->history)
        hfsbi_history_after_in(tools->history,
                               tools->own_loop ? NULL : tools->loop);
}

/* The loop has stepped the process. */
static void hfsbi_job_changed(void *user, hfsb_proc *proc, bool done) {
    hfsbi_job *job = (hfsbi_job *)user;
    hfsb_call *call = job->tools->waiting;
    (void)proc;
    for (; call; call = call->next_waiting)
        if (call->streams && call->job == job) call->listener.heard = true;
    hfsbi_job_stir(job);
    if (done) {
        hfsbi_job_end(job);
        return;
    }
    hfsbi_job_loosen(job);
    hfsbi_job_call_writers(job);
}

/* The end of the wait, on hfsb_clock_ms(); 0: none. */
static long long hfsbi_job_deadline(const hfsbi_job *job) {
    return job->spec.timeout > 0
               ? job->created + (long long)(job->spec.timeout * 1000.0) + 1
               : 0;
}

/* Ends a waiting job whose timeout has passed. */
static void hfsbi_job_expire(hfsbi_timer *timer) {
    hfsbi_job *job =
        (hfsbi_job *)(void *)((char *)timer - offsetof(hfsbi_job, timer));
    long long until = hfsbi_job_deadline(job);
    hfsb_err  err = HFSB_INIT;
    job->end.timed_out = until && hfsb_clock_ms() >= until;
    if (!job->end.timed_out)
        (void)hfsbi_fail(&err, HFSB_BUSY, 0,
                         "%zu programs run here, as many as may: end some of "
                         "them.",
                         job->tools->limits.running);
    hfsbi_job_finish(job, job->end.timed_out ? NULL : &err);
}

/* Limits the time that a job waits for a slot. */
static void hfsbi_job_limit_wait(hfsbi_job *job) {
    long long until = hfsbi_job_deadline(job);
    long long most = job->created + HFSBI_PROGRAM_WAIT;
    if (job->feed && (!until || until > most)) until = most;
    if (until) hfsbi_loop_timer(job->tools->loop, &job->timer, until);
}

/* The entries of a list, each ending in NUL, as an array that ends in NULL, of
   *size pointers; NULL without memory. */
static const char **hfsbi_job_list(const hfsb_tools *tools,
                                   const hfsb_buf *text, size_t *size) {
    const char **list;
    size_t       at, n = 0;
    for (at = 0; at < text->len; at += strlen(text->ptr + at) + 1) n++;
    *size = n + 1;
    list = (const char **)hfsbi_array(&tools->alloc, *size, sizeof *list);
    if (!list) return NULL;
    for (at = n = 0; at < text->len; at += strlen(text->ptr + at) + 1)
        list[n++] = text->ptr + at;
    list[n] = NULL;
    return list;
}

static hfsb_status hfsbi_job_spawn(hfsb_tools *tools, hfsbi_job *job,
                                   const char *const *env,
                                   const char *const *argv, hfsb_err *err) {
    hfsb_proc_opts  o = HFSB_INIT;
    hfsbi_job_spec *spec = &job->spec;
    long long       waited = hfsb_clock_ms() - job->created;
    o.argv = argv;
    if (!argv) o.command = hfsb_buf_str(&spec->command);
    o.any_length = !argv;
    o.cols = spec->raw.cols;
    o.rows = spec->raw.rows;
    o.shell = spec->shell.len ? spec->shell.ptr : NULL;
    o.work_dir = spec->work_dir.len ? spec->work_dir.ptr : NULL;
    o.env = env;
    o.job = hfsb_cstr(job->marker);
    o.input = hfsb_buf_str(&spec->input);
    o.keep_input = spec->raw.on ? spec->raw.keep_input
                                : spec->background && !spec->has_input;
    o.merge_stderr = spec->merge_stderr;
    o.grace_ms = tools->limits.grace_ms;
    o.no_keeper = tools->no_keeper;
    o.confine = tools->confine;
    o.uid = tools->rights.uid;
    o.on_output = hfsbi_job_output;
    o.user = job;
    o.alloc = tools->alloc;
    if (spec->timeout > 0) { /* waiting for a slot counts */
        o.timeout_ms = (long long)(spec->timeout * 1000.0 + 0.5) - waited;
        if (o.timeout_ms < 1) o.timeout_ms = 1;
    }
    return hfsbi_proc_open(&o, &spec->input, &job->proc, err);
}

/* Starts a job; a failure ends it. */
static void hfsbi_job_start(hfsb_tools *tools, hfsbi_job *job) {
    const char **own = NULL, **argv = NULL;
    size_t       size = 0, argc = 0;
    bool         has_env =
        job->spec.env.len || job->spec.raw.bare_env || tools->group->env.len;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    job->notes.alloc = tools->alloc;
    if (tools->far) { /* hfsbi_far_run() does the rest */
        hfsbi_job_enter(job, HFSBI_JOB_RUNNING);
        return;
    }
    st = hfsbi_confine_refresh(tools->confine, &err);
    job->guard = hfsbi_guard_open(tools->confine);
    if (tools->confine) job->kills = hfsbi_confine_kills(tools->confine);
    if (has_env) own = hfsbi_env_merge(tools, &job->spec, &size);
    if (job->spec.raw.argv.len)
        argv = hfsbi_job_list(tools, &job->spec.raw.argv, &argc);
    if (st == HFSB_OK &&
        ((has_env && !own) || (job->spec.raw.argv.len && !argv)))
        st = hfsbi_fail_status(&err, HFSB_NOMEM, "Starting the command");
    if (st == HFSB_OK)
        st = hfsbi_job_spawn(tools, job, own ? own : tools->env.list, argv,
                             &err);
    hfsbi_array_free(&tools->alloc, (void *)own, size, sizeof(char *));
    hfsbi_array_free(&tools->alloc, (void *)argv, argc, sizeof(char *));
    if (st != HFSB_OK) {
        hfsbi_job_finish(job, &err);
        return;
    }
    hfsbi_loop_timer_clear(tools->loop, &job->timer);
    hfsbi_job_enter(job, HFSBI_JOB_RUNNING);
    job->pid = hfsb_proc_status(job->proc).pid;
    hfsbi_span_begin(tools, job);
    hfsbi_proc_attach(job->proc, tools->loop, hfsbi_job_changed, job);
    hfsbi_job_started(job);
}

/* ---- the checkpoint before a job starts ---- */

static void hfsbi_job_scan_run(hfsbi_task *task) {
    hfsbi_history_before(((hfsbi_job_scan *)(void *)task)->history);
}

/* In the loop. */
static void hfsbi_job_scan_done(hfsbi_task *task) {
    hfsbi_job_scan *scan = (hfsbi_job_scan *)(void *)task;
    hfsbi_job      *job = scan->job;
    hfsb_alloc      alloc = scan->alloc;
    if (job) {
        job->scan = NULL;
        job->scanned = true;
        if (job->state == HFSBI_JOB_WAITING) hfsbi_job_start(scan->tools, job);
        scan->tools->job_ended = true; /* there may be a slot */
        hfsbi_tools_stir(scan->tools);
    }
    hfsbi_array_free(&alloc, scan, 1, sizeof *scan);
}

/* Starts a job, after a checkpoint if it needs one. A call in a loop of its
   own has taken it already. */
static void hfsbi_job_launch(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_job_scan *scan = NULL;
    if (tools->history && !tools->own_loop && !job->scanned)
        scan = (hfsbi_job_scan *)hfsbi_array(&tools->alloc, 1, sizeof *scan);
    if (!scan) {
        hfsbi_job_start(tools, job);
        return;
    }
    memset(scan, 0, sizeof *scan);
    scan->history = tools->history;
    scan->tools = tools;
    scan->job = job;
    scan->alloc = tools->alloc;
    scan->task.run = hfsbi_job_scan_run;
    scan->task.done = hfsbi_job_scan_done;
    job->scan = scan;
    hfsbi_loop_work(tools->loop, &scan->task);
}

/* ---- all jobs ---- */

HFSBI_FN hfsbi_job *hfsbi_job_find(hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job = tools->jobs;
    while (job && !hfsb_str_equal(hfsb_cstr(job->id), id)) job = job->next;
    return job;
}

/* The newest job of the next object of the group that has one. */
static hfsbi_job *hfsbi_jobs_of_others(const hfsb_tools *tools,
                                       const hfsb_tools *other) {
    while (other && (other == tools || !other->jobs))
        other = other->group_next;
    return other ? other->jobs : NULL;
}

HFSBI_FN hfsbi_job *hfsbi_jobs_first(const hfsb_tools *tools) {
    if (tools->jobs || tools->group->overseer != tools) return tools->jobs;
    return hfsbi_jobs_of_others(tools, tools->group->first);
}

HFSBI_FN hfsbi_job *hfsbi_jobs_next(const hfsb_tools *tools,
                                    const hfsbi_job  *job) {
    if (job->next || tools->group->overseer != tools) return job->next;
    return hfsbi_jobs_of_others(tools, job->tools == tools
                                           ? tools->group->first
                                           : job->tools->group_next);
}

HFSBI_FN hfsbi_job *hfsbi_jobs_find(const hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job = hfsbi_jobs_first(tools);
    while (job && !hfsb_str_equal(hfsb_cstr(job->id), id))
        job = hfsbi_jobs_next(tools, job);
    return job;
}

HFSBI_FN size_t hfsbi_jobs_count(const hfsb_tools *tools,
                                 hfsbi_job_state   state) {
    const hfsbi_job *job;
    size_t           n = 0;
    for (job = tools->jobs; job; job = job->next) n += job->state == state;
    return n;
}

/* Keeps the reason why a program could not be started: it is short, and
   answers a repeat. */
static void hfsbi_job_drop_text(hfsbi_job *job) {
    if (!job->feed || job->pid) hfsb_tool_result_free(&job->result);
    hfsbi_record_forget(&job->record);
    if (job->feed) hfsbi_feed_free(job->feed); /* its end is kept */
    if (job->tap) hfsbi_feed_free(job->tap);
    job->result_held = false;
}

/* Bytes of output in memory. */
static size_t hfsbi_job_held(const hfsbi_job *job) {
    return hfsbi_record_held(&job->record) + (job->feed ? job->feed->cap : 0);
}

/* keep: the number of finished jobs that stay with their text. */
static void hfsbi_jobs_drop(hfsb_tools *tools, size_t keep) {
    hfsbi_job **link = &tools->jobs, *job;
    long long   now = hfsb_clock_ms();
    size_t      finished = 0, held = 0, taps = 0;
    hfsbi_onces_drop_old(tools);
    while ((job = *link) != NULL) {
        bool keep_text;
        if (job->state != HFSBI_JOB_DONE || job->users) {
            link = &job->next;
            continue;
        }
        keep_text = ++finished <= keep &&
                    now - job->ended <= HFSBI_JOB_HOUR;
        if (!keep_text && !job->once) {
            *link = job->next;
            hfsbi_job_free(tools, job);
            continue;
        }
        held += job->result.output.len + hfsbi_job_held(job);
        if ((job->result_held || hfsbi_job_held(job)) &&
            (!keep_text || held > HFSBI_JOB_HELD))
            hfsbi_job_drop_text(job);
        taps += job->tap ? job->tap->cap : 0;
        if (job->tap && taps > HFSBI_JOB_TAPS) hfsbi_feed_free(job->tap);
        link = &job->next;
    }
}

HFSBI_FN void hfsbi_jobs_drop_old(hfsb_tools *tools) {
    hfsbi_jobs_drop(tools, tools->limits.finished);
}

HFSBI_FN size_t hfsbi_tools_end_all(hfsb_tools *tools) {
    hfsb_tools *t = tools->group->first;
    size_t      found = 0;
    for (; t; t = t->group_next) {
        found += hfsbi_tools_sweep(t, true);
        hfsbi_loop_lock(t->loop);
        hfsbi_jobs_drop(t, 0);
        hfsbi_loop_unlock(t->loop);
    }
    return found;
}

/* True when a server should serve others before it starts this job. Starting a
   program takes milliseconds, and many requests may come at once. The reply to
   a background job names its process, so that one starts now. */
static bool hfsbi_job_is_put_off(const hfsb_tools *tools,
                                 const hfsbi_job  *job) {
    return !tools->own_loop && !job->spec.background &&
           hfsb_clock_ms() - hfsbi_loop_now(tools->loop) > HFSBI_START_MS;
}

/* True if the two objects have the same root: those of /api, of sessions and
   of clients of other protocols do, sandboxes of a host do not. */
static bool hfsbi_tools_share_root(const hfsb_tools *a, const hfsb_tools *b) {
    return a->place == b->place ||
           hfsb_str_equal(hfsb_root_path(a->place), hfsb_root_path(b->place));
}

/* Commands that run, or start after a scan, in the objects that share this
   one's root. */
static size_t hfsbi_jobs_placed(const hfsb_tools *tools) {
    const hfsb_tools *t = tools->group->first;
    const hfsbi_job  *job;
    size_t            n = 0;
    for (; t; t = t->group_next)
        for (job = hfsbi_tools_share_root(t, tools) ? t->jobs : NULL; job;
             job = job->next)
            n += job->state == HFSBI_JOB_RUNNING || job->scan;
    return n;
}

/* Returns the job that has waited longest and may start now, or NULL. The
   lists are newest first. */
static hfsbi_job *hfsbi_jobs_oldest(const hfsbi_tools_group *group) {
    hfsbi_job        *oldest = NULL, *job;
    const hfsb_tools *tools = group->first;
    if (!group->jobs[HFSBI_JOB_WAITING]) return NULL;
    for (; tools; tools = tools->group_next) {
        if (!hfsbi_jobs_count(tools, HFSBI_JOB_WAITING) ||
            hfsbi_jobs_placed(tools) >= tools->limits.running)
            continue;
        for (job = tools->jobs; job; job = job->next)
            if (job->state == HFSBI_JOB_WAITING && !job->scan &&
                (!oldest || job->created <= oldest->created))
                oldest = job;
    }
    return oldest;
}

HFSBI_FN void hfsbi_jobs_start(hfsbi_tools_group *group) {
    hfsbi_job *job;
    while ((job = hfsbi_jobs_oldest(group)) != NULL) {
        if (hfsbi_job_is_put_off(job->tools, job)) {
            job->tools->job_ended = true; /* looks again */
            hfsbi_tools_stir(job->tools);
            return;
        }
        hfsbi_job_launch(job->tools, job);
    }
}

/* Sets id and marker. Callers may give the same id to two tools objects, so
   the marker of a caller's id gets a unique suffix: a kill by marker must not
   reach the other object's processes. */
static void hfsbi_job_set_id(hfsb_tools *tools, hfsbi_job *job, hfsb_str id) {
    char own[40];
    do
        (void)snprintf(own, sizeof own, "%s-%lu", tools->prefix,
                       ++tools->job_count);
    while (hfsbi_job_find(tools, hfsb_cstr(own))); /* taken by a caller */
    (void)snprintf(job->id, sizeof job->id, "%.*s", (int)id.len, id.ptr);
    if (id.len == 0) memcpy(job->id, own, sizeof own);
    (void)snprintf(job->marker, sizeof job->marker, "%s%s%s", job->id,
                   id.len ? "." : "", id.len ? own : "");
}

HFSBI_FN hfsb_status hfsbi_job_admit(const hfsb_tools *tools, size_t input,
                                     hfsb_err *err) {
    const hfsbi_tools_group *group = tools->group;
    const hfsb_tools        *t = group->first;
    size_t                   waiting = 0;
    for (; t && group->jobs[HFSBI_JOB_WAITING]; t = t->group_next)
        if (hfsbi_tools_share_root(t, tools))
            waiting += hfsbi_jobs_count(t, HFSBI_JOB_WAITING);
    if (waiting >= tools->limits.waiting)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "Too many commands are waiting (%zu): try again "
                          "when some have ended.",
                          tools->limits.waiting);
    if (group->max_input && input && group->input + input > group->max_input)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "There is no memory for this stdin now: other "
                          "commands have not read theirs. Try again later, "
                          "or pass the bytes in a file.");
    return HFSB_OK;
}

/* Opens what takes the output of a new job. A tap does not hold the command: a
   slow reader loses output. False without memory. */
static bool hfsbi_job_open_output(hfsb_tools *tools, hfsbi_job *job,
                                  const hfsbi_job_spec *spec) {
    size_t      tap = tools->group->tap;
    hfsbi_feed *feed = NULL;
    if (spec->raw.on || tap) {
        feed = (hfsbi_feed *)hfsbi_array(&tools->alloc, 1, sizeof *feed);
        if (!feed) return false;
        hfsbi_feed_init(feed, spec->raw.on ? spec->raw.keep : tap,
                        spec->raw.on ? hfsbi_job_hold : NULL, job,
                        &tools->alloc);
    }
    if (spec->raw.on) job->feed = feed;
    else job->tap = feed;
    if (hfsbi_record_init(&job->record, &tools->spills, spec->merge_stderr,
                          &tools->alloc))
        return true;
    hfsbi_job_free_feed(tools, feed);
    return false;
}

/* Makes a job with its idempotency record, if it needs one; NULL without
   memory. */
static hfsbi_job *hfsbi_job_new(hfsb_tools *tools, const hfsbi_job_spec *spec,
                                const hfsbi_job_asked *asked) {
    hfsbi_job *job = (hfsbi_job *)hfsbi_array(&tools->alloc, 1, sizeof *job);
    if (!job) return NULL;
    memset(job, 0, sizeof *job);
    if (!hfsbi_job_open_output(tools, job, spec)) {
        hfsbi_array_free(&tools->alloc, job, 1, sizeof *job);
        return NULL;
    }
    if (!spec->id.len && !asked->key.len) return job;
    job->once = hfsbi_once_add(tools, asked->key, asked->digest);
    if (job->once) {
        job->once->job = job;
        return job;
    }
    hfsbi_record_free(&job->record);
    hfsbi_job_free_feed(tools, job->feed);
    hfsbi_job_free_feed(tools, job->tap);
    hfsbi_array_free(&tools->alloc, job, 1, sizeof *job);
    return NULL;
}

HFSBI_FN hfsbi_job *hfsbi_job_add(hfsb_tools *tools, hfsbi_job_spec *spec,
                                  const hfsbi_job_asked *asked) {
    hfsbi_job *job = hfsbi_job_new(tools, spec, asked);
    if (!job) return NULL;
    job->record.on_text = asked->on_text;
    job->record.on_line = asked->on_line;
    job->record.user = asked->user;
    hfsbi_result_init(&job->result, &tools->alloc);
    job->spec = *spec;
    hfsbi_job_spec_init(spec, &tools->alloc);
    hfsbi_job_set_id(tools, job, hfsb_buf_str(&job->spec.id));
    job->tools = tools;
    job->owner = asked->owner;
    job->brief = *asked->brief;
    memset(asked->brief, 0, sizeof *asked->brief);
    job->timer.fn = hfsbi_job_expire;
    job->created = hfsb_clock_ms();
    job->next = tools->jobs;
    tools->jobs = job;
    job->input = job->spec.input.len;
    tools->group->input += job->input;
    tools->group->jobs[HFSBI_JOB_WAITING]++;
    tools->group->ever++;
    hfsbi_jobs_start(tools->group);
    if (job->state != HFSBI_JOB_DONE)
        job->event = hfsbi_job_report(job, false);
    if (job->state == HFSBI_JOB_WAITING) hfsbi_job_limit_wait(job);
    return job;
}

HFSBI_FN bool hfsbi_job_kill(hfsb_tools *tools, hfsbi_job *job) {
    (void)tools;
    if (job->state == HFSBI_JOB_DONE) return false;
    job->killed = true;
    if (job->proc) {
        hfsb_proc_kill(job->proc);
        hfsbi_job_loosen(job);
    } else if (job->state == HFSBI_JOB_WAITING) {
        hfsbi_job_finish(job, NULL);
    }
    return true;
}

HFSBI_FN size_t hfsbi_job_kill_left(hfsbi_job *job, hfsbi_snapshot *snap,
                                    long *list, size_t max) {
    hfsbi_family family = HFSB_INIT;
    if (job->state != HFSBI_JOB_DONE || !job->left_count) return 0;
    family.since = job->span.since;
    family.job = hfsb_fnv(hfsb_cstr(job->marker));
    family.spans = &job->span;
    family.span_count = 1;
    (void)hfsbi_snapshot_signal(snap, &family, false);
    return hfsbi_snapshot_members(snap, list, max);
}

HFSBI_FN void hfsbi_job_far_output(hfsbi_job *job, hfsb_proc_stream stream,
                                   hfsb_str bytes) {
    hfsbi_job_output(job, stream, bytes);
    hfsbi_job_changed(job, NULL, false);
}

HFSBI_FN void hfsbi_job_far_end(hfsbi_job *job, hfsb_status st,
                                const hfsb_err *err) {
    hfsbi_job_finish(job, err);
    if (job->status == HFSB_OK) job->status = st;
}

HFSBI_FN void hfsbi_jobs_step(hfsb_tools *tools) {
    hfsbi_job *job;
    hfsbi_loop_lock(tools->loop);
    for (job = tools->jobs; job; job = job->next)
        if (job->proc) hfsbi_proc_drive(job->proc);
    hfsbi_loop_unlock(tools->loop);
}

HFSBI_FN void hfsbi_jobs_free(hfsb_tools *tools) {
    hfsbi_job *job;
    hfsbi_drains_release(tools);
    while ((job = tools->jobs) != NULL) {
        tools->jobs = job->next;
        hfsbi_job_free(tools, job);
    }
}

/* ---- sweep: end all processes that a tools object ever started ---- */

/* One snapshot serves the whole sweep. It is taken before any signal: once a
   parent dies its children are reparented and can no longer be found by
   ancestry. */
HFSBI_FN size_t hfsbi_tools_sweep(hfsb_tools *tools, bool hard) {
    hfsbi_snapshot snapshot;
    hfsbi_family   family = HFSB_INIT;
    hfsbi_job     *job;
    size_t         running = 0, all;
    hfsbi_loop_lock(tools->loop);
    hfsbi_snapshot_init(&snapshot, &tools->alloc);
    snapshot.since = tools->left.since;
    family.since = tools->left.since;
    family.owner = hfsb_fnv(hfsb_cstr(tools->prefix));
    family.spans = tools->left.spans;
    family.span_count = HFSBI_JOB_SPANS;
    hfsbi_snapshot_take(&snapshot);
    all = hfsbi_snapshot_signal(&snapshot, &family, !hard);
    for (job = tools->jobs; job; job = job->next) {
        if (job->state == HFSBI_JOB_RUNNING)
            running +=
                hfsbi_proc_signal(job->proc, &snapshot, hard ? SIGKILL : 0);
        (void)hfsbi_job_kill(tools, job);
    }
    hfsbi_snapshot_free(&snapshot);
    hfsbi_loop_unlock(tools->loop);
    return all > running ? all : running;
}

/* ---- reports, and jobs by id; these take the lock ---- */

static const char *hfsbi_job_state_name(hfsbi_job_state state) {
    switch (state) {
    case HFSBI_JOB_WAITING: return "waiting";
    case HFSBI_JOB_RUNNING: return "running";
    case HFSBI_JOB_DONE: break;
    }
    return "done";
}

static void hfsbi_build_job(hfsbi_build *b, const hfsbi_job *job,
                            long long now) {
    hfsb_str  command = hfsb_buf_str(&job->spec.command);
    size_t    shown = hfsb_utf8_offset(command, HFSBI_JOB_COMMAND);
    long long end = job->state == HFSBI_JOB_DONE ? job->ended : now;
    hfsbi_build_object(b, NULL);
    hfsbi_build_str(b, "id", hfsb_cstr(job->id));
    hfsbi_build_str(b, "state", hfsb_cstr(hfsbi_job_state_name(job->state)));
    hfsbi_build_str(b, "who", hfsb_cstr(hfsbi_job_who(job)));
    hfsbi_build_str(b, "description", hfsb_buf_str(&job->spec.description));
    hfsbi_build_str(b, "command", hfsb_str_slice(command, 0, shown));
    hfsbi_build_bool(b, "command_cut", shown < command.len);
    hfsbi_build_int(b, "pid", job->pid);
    hfsbi_build_bool(b, "background", job->spec.background);
    hfsbi_build_int(b, "age_ms", now - job->created);
    hfsbi_build_int(b, "duration_ms", end - job->created);
    hfsbi_put_ending(b, job);
    hfsbi_build_int(
        b, "output_bytes",
        (long long)(job->feed ? job->record.taken : job->record.total));
    if (job->end.peak_bytes) {
        hfsbi_build_int(b, "cpu_ms", job->end.cpu_ms);
        hfsbi_build_int(b, "peak_bytes", (long long)job->end.peak_bytes);
    }
    hfsbi_build_end(b);
}

hfsb_status hfsb_tools_jobs(hfsb_tools *tools, hfsb_str id, hfsb_buf *out,
                            hfsb_err *err) {
    long long        now = hfsb_clock_ms();
    const hfsbi_job *job;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsbi_build      list;
    hfsb_status      st;
    hfsbi_build_init(&list, &out->alloc);
    hfsbi_loop_lock(tools->loop);
    job = id.len ? hfsbi_jobs_find(tools, id) : hfsbi_jobs_first(tools);
    if (id.len && job) {
        hfsbi_build_job(&list, job, now);
    } else if (!id.len) {
        hfsbi_build_array(&list, NULL);
        for (; job; job = hfsbi_jobs_next(tools, job))
            hfsbi_build_job(&list, job, now);
        hfsbi_build_end(&list);
    }
    hfsbi_loop_unlock(tools->loop);
    if (id.len && !job) {
        hfsbi_fail(err, HFSB_NOT_FOUND, 0, "No such job: ");
        hfsbi_err_quote(err, id, 80);
        return HFSB_NOT_FOUND;
    }
    st = hfsbi_build_finish(&list, &doc);
    st = st == HFSB_OK ? hfsb_json_write(doc.root, NULL, out, err)
                       : hfsbi_fail_status(err, st, "Jobs");
    hfsb_json_free(&doc);
    return st;
}

HFSBI_FN bool hfsbi_job_exists(hfsb_tools *tools, hfsb_str id) {
    bool found;
    hfsbi_loop_lock(tools->loop);
    found = hfsbi_jobs_find(tools, id) != NULL;
    hfsbi_loop_unlock(tools->loop);
    return found;
}

HFSBI_FN void hfsbi_jobs_end(hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job;
    hfsbi_loop_lock(tools->loop);
    for (job = tools->jobs; job; job = job->next)
        if (!id.len || hfsb_str_equal(id, hfsb_cstr(job->id)))
            (void)hfsbi_job_kill(tools, job);
    hfsbi_loop_unlock(tools->loop);
}

HFSBI_FN hfsbi_jobs_figures hfsbi_jobs_count_all(hfsb_tools *tools) {
    hfsbi_jobs_figures f = HFSB_INIT;
    hfsbi_loop_lock(tools->loop);
    f.running = tools->group->jobs[HFSBI_JOB_RUNNING];
    f.waiting = tools->group->jobs[HFSBI_JOB_WAITING];
    f.ever = tools->group->ever;
    hfsbi_loop_unlock(tools->loop);
    return f;
}
