/* job.c - jobs: the commands of a tools object.

   A job is one command with an id, from the call of bash until nobody may ask
   for it any more:

       add --> WAITING --> RUNNING --> DONE --> text dropped --> freed
                  |                      ^
                  +-- killed, expired ---+

   At most max_running commands run; the others wait in order, and their
   timeout counts from the moment they were added. No thread belongs to a job:
   hfsbi_jobs_step() does what is possible without waiting, in whichever thread
   drives the tools.

   When a command ends, the result of bash is written once and kept for
   repeats. Finished jobs are freed by age and number, except while a call
   refers to them (users). A job with a caller's id or key must not run twice,
   so its record outlives its text.

   A command may end while processes that it started live on (survivors). Their
   pipes are drained here, so that they do not block; their sessions are
   remembered as spans, so that a sweep finds them. */
#include "tools_private.h"

enum {
    HFSBI_JOB_HOUR = 3600 * 1000,     /* ms that a finished job is kept */
    HFSBI_JOB_HELD = 8 * 1024 * 1024, /* bytes of text of all finished jobs */
    HFSBI_JOB_KEYED_MS = 600 * 1000,  /* ms that jobs with a caller's id or key
                                         are kept at least */
    HFSBI_JOB_KEYED = 256,            /* number of these */
    HFSBI_JOB_COMMAND = 200,          /* characters of a command in a report */
    HFSBI_DRAINS = 64                 /* pipes drained in this process */
};

/* ---- the spec of a command ---- */

HFSBI_FN void hfsbi_job_spec_init(hfsbi_job_spec   *spec,
                                  const hfsb_alloc *alloc) {
    memset(spec, 0, sizeof *spec);
    spec->command.alloc = spec->description.alloc = *alloc;
    spec->work_dir.alloc = spec->work_dir_given.alloc = *alloc;
    spec->shell.alloc = spec->input.alloc = spec->env.alloc = *alloc;
}

HFSBI_FN hfsb_status hfsbi_job_spec_status(const hfsbi_job_spec *spec) {
    const hfsb_buf *all[7];
    size_t          i;
    all[0] = &spec->command;
    all[1] = &spec->description;
    all[2] = &spec->work_dir;
    all[3] = &spec->work_dir_given;
    all[4] = &spec->shell;
    all[5] = &spec->input;
    all[6] = &spec->env;
    for (i = 0; i < 7; i++)
        if (all[i]->status != HFSB_OK) return all[i]->status;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_job_spec_free(hfsbi_job_spec *spec) {
    hfsb_buf_free(&spec->command);
    hfsb_buf_free(&spec->description);
    hfsb_buf_free(&spec->work_dir);
    hfsb_buf_free(&spec->work_dir_given);
    hfsb_buf_free(&spec->shell);
    hfsb_buf_free(&spec->input);
    hfsb_buf_free(&spec->env);
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

/* Set for every command, so that no tool waits for a terminal. */
static const char *const hfsbi_env_defaults[] = {"TERM=dumb",
                                                 "NO_COLOR=1",
                                                 "PAGER=cat",
                                                 "GIT_PAGER=cat",
                                                 "GIT_TERMINAL_PROMPT=0",
                                                 "PYTHONUNBUFFERED=1"};

/* True unless the spec or a default replaces or unsets the variable. */
static bool hfsbi_env_inherits(const hfsbi_job_spec *spec, const char *entry) {
    hfsb_str name = hfsbi_env_name(entry);
    size_t   i;
    if (hfsbi_env_has(&spec->env, name)) return false;
    for (i = 0; i < sizeof hfsbi_env_defaults / sizeof(char *); i++)
        if (hfsb_str_equal(name, hfsbi_env_name(hfsbi_env_defaults[i])))
            return false;
    return true;
}

/* Fills list, unless it is NULL, and returns the number of variables. */
static size_t hfsbi_env_fill(const hfsb_tools     *tools,
                             const hfsbi_job_spec *spec, const char **list) {
    size_t      i, n = 0, at;
    const char *entry;
    for (i = 0; i < tools->env_count; i++) {
        if (!hfsbi_env_inherits(spec, tools->env[i])) continue;
        if (list) list[n] = tools->env[i];
        n++;
    }
    for (i = 0; i < sizeof hfsbi_env_defaults / sizeof(char *); i++) {
        entry = hfsbi_env_defaults[i];
        if (hfsbi_env_has(&spec->env, hfsbi_env_name(entry))) continue;
        if (list) list[n] = entry;
        n++;
    }
    for (at = 0; at < spec->env.len; at += strlen(entry) + 1) {
        entry = spec->env.ptr + at;
        if (!strchr(entry, '=')) continue; /* unset */
        if (list) list[n] = entry;
        n++;
    }
    return n;
}

/* ---- pipes that survivors hold open ---- */

/* Hands all pipes to a keeper process, or closes them. */
static void hfsbi_drains_release(hfsb_tools *tools) {
    size_t i;
    if (!tools->no_keeper)
        hfsb_proc_keep_pipes(tools->drains, tools->drain_count);
    else
        for (i = 0; i < tools->drain_count; i++)
            hfsbi_close(&tools->drains[i]);
    tools->drain_count = 0;
}

/* Takes ownership of the descriptors. */
static void hfsbi_drains_add(hfsb_tools *tools, const int *fds, size_t n) {
    int *grown = tools->drains;
    if (n == 0) return;
    if (tools->drain_count + n > HFSBI_DRAINS && !tools->no_keeper)
        hfsbi_drains_release(tools);
    if (tools->drain_count + n > tools->drain_cap)
        grown = (int *)hfsbi_array_grow(&tools->alloc, tools->drains,
                                        &tools->drain_cap,
                                        tools->drain_count + n, sizeof(int));
    if (!grown) { /* out of memory: a keeper process reads them */
        hfsb_proc_keep_pipes(fds, n);
        return;
    }
    tools->drains = grown;
    memcpy(grown + tools->drain_count, fds, n * sizeof(int));
    tools->drain_count += n;
}

/* Reads and discards output of survivors, a bounded amount from each pipe so
   that a noisy one does not delay the rest. */
static void hfsbi_drains_step(hfsb_tools *tools) {
    char   block[16384];
    size_t i = 0;
    int    turns;
    while (i < tools->drain_count) {
        ssize_t n = 1;
        for (turns = 0; n > 0 && turns < 64; turns++)
            n = hfsbi_read(tools->drains[i], block, sizeof block);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
            i++;
            continue;
        }
        hfsbi_close(&tools->drains[i]);
        tools->drains[i] = tools->drains[--tools->drain_count];
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
        if (tools->spans[i].running && tools->spans[i].session == job->pid)
            return &tools->spans[i];
    return NULL;
}

/* When all spans are in use, one is overwritten. A sweep then finds processes
   of that session only by their marker. */
static void hfsbi_span_begin(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_session_span span = hfsbi_proc_span(job->proc);
    size_t             i = 0;
    if (span.session == 0) return;
    if (tools->since == 0) tools->since = span.since;
    while (i < HFSBI_JOB_SPANS && tools->spans[i].session) i++;
    if (i == HFSBI_JOB_SPANS) {
        i = tools->span_next;
        tools->span_next = (i + 1) % HFSBI_JOB_SPANS;
    }
    tools->spans[i] = span;
}

/* Keeps the span of a finished command only if it has survivors. */
static void hfsbi_span_end(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_session_span *span = hfsbi_span_find(tools, job), none = HFSB_INIT;
    if (!span) return;
    *span = job->left_count ? hfsbi_proc_span(job->proc) : none;
    span->running = false;
}

/* ---- one job ---- */

static void hfsbi_job_free(hfsb_tools *tools, hfsbi_job *job) {
    hfsb_proc_close(job->proc);
    hfsbi_record_free(&job->record);
    hfsbi_job_spec_free(&job->spec);
    hfsb_buf_free(&job->key);
    hfsb_tool_result_free(&job->result);
    hfsbi_array_free(&tools->alloc, job, 1, sizeof *job);
}

static void hfsbi_job_output(void *user, hfsb_proc_stream stream,
                             hfsb_str bytes) {
    hfsbi_record_write((hfsbi_record *)user, stream, bytes);
}

/* Ends a job and writes the result of bash. err is the reason why the command
   did not start, or NULL. */
static void hfsbi_job_finish(hfsbi_job *job, const hfsb_err *err) {
    job->state = HFSBI_JOB_DONE;
    job->ended = hfsb_clock_ms();
    hfsbi_record_finish(&job->record);
    job->status = hfsbi_bash_result(job, err);
    job->result_held = true;
    hfsbi_record_settle(&job->record);
    hfsb_buf_free(&job->spec.input);
    hfsb_buf_free(&job->spec.env);
}

static hfsb_status hfsbi_job_spawn(hfsb_tools *tools, hfsbi_job *job,
                                   const char *const *env, hfsb_err *err) {
    hfsb_proc_opts  o = HFSB_INIT;
    hfsbi_job_spec *spec = &job->spec;
    long long       waited = hfsb_clock_ms() - job->created;
    hfsb_status     st;
    o.command = hfsb_buf_str(&spec->command);
    o.any_length = true;
    o.shell = spec->shell.len ? spec->shell.ptr : NULL;
    o.work_dir = spec->work_dir.len ? spec->work_dir.ptr : NULL;
    o.env = env;
    o.job = hfsb_cstr(job->marker);
    o.input = hfsb_buf_str(&spec->input);
    o.keep_input = spec->background && !spec->has_input;
    o.merge_stderr = spec->merge_stderr;
    o.grace_ms = tools->grace_ms;
    o.no_keeper = tools->no_keeper;
    o.on_output = hfsbi_job_output;
    o.user = &job->record;
    o.alloc = tools->alloc;
    if (spec->timeout > 0) { /* waiting for a place counts */
        o.timeout_ms = (long long)(spec->timeout * 1000.0 + 0.5) - waited;
        if (o.timeout_ms < 1) o.timeout_ms = 1;
    }
    st = hfsb_proc_open(&o, &job->proc, err);
    if (st == HFSB_OK) hfsbi_proc_share_snapshot(job->proc, &tools->snapshot);
    return st;
}

/* Starts a job; a failure ends it. */
static void hfsbi_job_start(hfsb_tools *tools, hfsbi_job *job) {
    size_t       n = hfsbi_env_fill(tools, &job->spec, NULL);
    const char **env =
        (const char **)hfsbi_array(&tools->alloc, n + 1, sizeof(char *));
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    if (!env) {
        st = hfsbi_fail_status(&err, HFSB_NOMEM, "Starting the command");
    } else {
        (void)hfsbi_env_fill(tools, &job->spec, env);
        env[n] = NULL;
        st = hfsbi_job_spawn(tools, job, env, &err);
        hfsbi_array_free(&tools->alloc, (void *)env, n + 1, sizeof(char *));
    }
    if (st != HFSB_OK) {
        hfsbi_job_finish(job, &err);
        return;
    }
    job->state = HFSBI_JOB_RUNNING;
    job->pid = hfsb_proc_status(job->proc).pid;
    hfsbi_span_begin(tools, job);
}

/* Steps a running job, and ends it when its command has ended. */
static void hfsbi_job_step(hfsb_tools *tools, hfsbi_job *job) {
    int fds[2];
    if (!hfsb_proc_step(job->proc)) return;
    job->end = hfsb_proc_status(job->proc);
    job->left_count =
        hfsb_proc_survivors(job->proc, job->left, HFSBI_JOB_LEFT);
    hfsbi_span_end(tools, job);
    hfsbi_drains_add(tools, fds, hfsb_proc_take_pipes(job->proc, fds));
    hfsb_proc_close(job->proc);
    job->proc = NULL;
    hfsbi_job_finish(job, NULL);
}

/* Ends a waiting job whose timeout has passed. */
static void hfsbi_job_expire(hfsbi_job *job, long long now) {
    if (job->spec.timeout <= 0 ||
        (double)(now - job->created) < job->spec.timeout * 1000.0)
        return;
    job->end.timed_out = true;
    hfsbi_job_finish(job, NULL);
}

/* ---- all jobs ---- */

HFSBI_FN hfsbi_job *hfsbi_job_find(hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job = tools->jobs;
    while (job && !hfsb_str_equal(hfsb_cstr(job->id), id)) job = job->next;
    return job;
}

HFSBI_FN hfsbi_job *hfsbi_job_again(hfsb_tools *tools, hfsb_str id,
                                    hfsb_str key) {
    hfsbi_job *job = id.len ? hfsbi_job_find(tools, id) : NULL;
    if (job || key.len == 0) return job;
    for (job = tools->jobs; job; job = job->next)
        if (hfsb_str_equal(hfsb_buf_str(&job->key), key)) break;
    return job;
}

HFSBI_FN size_t hfsbi_jobs_count(const hfsb_tools *tools,
                                 hfsbi_job_state   state) {
    const hfsbi_job *job;
    size_t           n = 0;
    for (job = tools->jobs; job; job = job->next) n += job->state == state;
    return n;
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

HFSBI_FN hfsbi_job *hfsbi_job_add(hfsb_tools *tools, hfsbi_job_spec *spec,
                                  hfsb_str id, const unsigned char *digest,
                                  const hfsb_call_opts *opts) {
    hfsbi_job *job = (hfsbi_job *)hfsbi_array(&tools->alloc, 1, sizeof *job);
    if (!job) return NULL;
    memset(job, 0, sizeof *job);
    job->key.alloc = tools->alloc;
    if (hfsb_buf_append(&job->key, opts->key) != HFSB_OK ||
        !hfsbi_record_init(&job->record, &tools->spills, spec->merge_stderr,
                           &tools->alloc)) {
        hfsb_buf_free(&job->key);
        hfsbi_array_free(&tools->alloc, job, 1, sizeof *job);
        return NULL;
    }
    job->chosen = id.len || opts->key.len;
    job->record.on_text = opts->on_text;
    job->record.user = opts->user;
    hfsbi_result_init(&job->result, &tools->alloc);
    job->spec = *spec;
    hfsbi_job_spec_init(spec, &tools->alloc);
    hfsbi_job_set_id(tools, job, id);
    memcpy(job->digest, digest, sizeof job->digest);
    job->created = hfsb_clock_ms();
    job->next = tools->jobs;
    tools->jobs = job;
    if (hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING) < tools->max_running)
        hfsbi_job_start(tools, job);
    return job;
}

HFSBI_FN bool hfsbi_job_kill(hfsb_tools *tools, hfsbi_job *job) {
    (void)tools;
    if (job->state == HFSBI_JOB_DONE) return false;
    job->killed = true;
    if (job->state == HFSBI_JOB_RUNNING) hfsb_proc_kill(job->proc);
    else hfsbi_job_finish(job, NULL);
    return true;
}

/* The list has the newest first: the last waiting job has waited longest. */
static hfsbi_job *hfsbi_jobs_oldest_waiting(hfsb_tools *tools) {
    hfsbi_job *job, *oldest = NULL;
    for (job = tools->jobs; job; job = job->next)
        if (job->state == HFSBI_JOB_WAITING) oldest = job;
    return oldest;
}

static void hfsbi_job_drop_text(hfsbi_job *job) {
    hfsb_tool_result_free(&job->result);
    hfsbi_record_forget(&job->record);
    job->result_held = false;
}

/* Frees finished jobs that are too old or too many, and drops the text of
   others when there is too much of it. The idempotency record of a job is kept
   after its text is dropped. */
static void hfsbi_jobs_drop_old(hfsb_tools *tools, long long now) {
    hfsbi_job **link = &tools->jobs, *job;
    size_t      finished = 0, keyed = 0, held = 0;
    while ((job = *link) != NULL) {
        bool keep_text, keep_record;
        if (job->state != HFSBI_JOB_DONE || job->users) {
            link = &job->next;
            continue;
        }
        keep_text = ++finished <= tools->max_finished &&
                    now - job->ended <= HFSBI_JOB_HOUR;
        keep_record = job->chosen && ++keyed <= HFSBI_JOB_KEYED &&
                      now - job->ended <= HFSBI_JOB_KEYED_MS;
        if (!keep_text && !keep_record) {
            *link = job->next;
            hfsbi_job_free(tools, job);
            continue;
        }
        held += job->result.output.len + hfsbi_record_held(&job->record);
        if (job->result_held && (!keep_text || held > HFSBI_JOB_HELD))
            hfsbi_job_drop_text(job);
        link = &job->next;
    }
}

HFSBI_FN void hfsbi_jobs_step(hfsb_tools *tools) {
    long long  now = hfsb_clock_ms();
    hfsbi_job *job;
    for (job = tools->jobs; job; job = job->next)
        if (job->state == HFSBI_JOB_RUNNING) hfsbi_job_step(tools, job);
        else if (job->state == HFSBI_JOB_WAITING) hfsbi_job_expire(job, now);
    while (hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING) < tools->max_running &&
           (job = hfsbi_jobs_oldest_waiting(tools)) != NULL)
        hfsbi_job_start(tools, job);
    hfsbi_drains_step(tools);
    hfsbi_jobs_drop_old(tools, now);
}

HFSBI_FN void hfsbi_jobs_free(hfsb_tools *tools) {
    hfsbi_job *job;
    hfsbi_drains_step(tools); /* a pipe without writers needs no keeper */
    hfsbi_drains_release(tools);
    hfsbi_array_free(&tools->alloc, tools->drains, tools->drain_cap,
                     sizeof(int));
    while ((job = tools->jobs) != NULL) {
        tools->jobs = job->next;
        hfsbi_job_free(tools, job);
    }
    hfsbi_snapshot_free(&tools->snapshot);
}

HFSBI_FN size_t hfsbi_jobs_watch(hfsb_tools *tools, hfsb_watch *list,
                                 size_t max) {
    hfsb_watch own[HFSB_PROC_WATCHES];
    hfsbi_job *job;
    size_t     n = 0, i, count;
    for (job = tools->jobs; job; job = job->next) {
        if (job->state != HFSBI_JOB_RUNNING) continue;
        count = hfsb_proc_watch(job->proc, own);
        for (i = 0; i < count; i++, n++)
            if (n < max) list[n] = own[i];
    }
    for (i = 0; i < tools->drain_count; i++, n++)
        if (n < max) {
            list[n].fd = tools->drains[i];
            list[n].readable = true;
            list[n].writable = false;
        }
    return n;
}

HFSBI_FN long long hfsbi_jobs_deadline(const hfsb_tools *tools) {
    const hfsbi_job *job;
    long long        first = -1, at;
    for (job = tools->jobs; job; job = job->next) {
        at = -1;
        if (job->state == HFSBI_JOB_RUNNING)
            at = hfsb_proc_deadline(job->proc);
        else if (job->state == HFSBI_JOB_WAITING && job->spec.timeout > 0)
            at = job->created + (long long)(job->spec.timeout * 1000.0) + 1;
        if (at >= 0 && (first < 0 || at < first)) first = at;
    }
    return first;
}

HFSBI_FN unsigned long long hfsbi_jobs_mark(hfsb_tools *tools) {
    unsigned long long mark = HFSB_FNV_START, values[2 + HFSB_PROC_WATCHES];
    hfsb_watch         own[HFSB_PROC_WATCHES];
    const hfsbi_job   *job;
    size_t             i, n;
    const void        *bytes = values;
    for (job = tools->jobs; job; job = job->next) {
        if (job->state == HFSBI_JOB_DONE) continue;
        n = job->proc ? hfsb_proc_watch(job->proc, own) : 0;
        values[0] = (unsigned long long)job->state;
        values[1] = job->record.taken;
        for (i = 0; i < n; i++)
            values[2 + i] =
                (unsigned long long)own[i].fd * 2 + (own[i].writable ? 1 : 0);
        mark = hfsb_fnv_add(mark, hfsb_str_make((const char *)bytes,
                                                (2 + n) * sizeof *values));
    }
    return mark;
}

/* ---- sweep: end all processes that a tools object ever started ---- */

/* One snapshot serves the whole sweep. It is taken before any signal: once a
   parent dies its children are reparented and can no longer be found by
   ancestry. */
HFSBI_FN size_t hfsbi_tools_sweep(hfsb_tools *tools, bool hard) {
    hfsbi_family family = HFSB_INIT;
    hfsbi_job   *job;
    size_t       running = 0, all;
    pthread_mutex_lock(&tools->lock);
    family.since = tools->since;
    family.owner = hfsb_fnv(hfsb_cstr(tools->prefix));
    family.spans = tools->spans;
    family.span_count = HFSBI_JOB_SPANS;
    hfsbi_snapshot_renew(&tools->snapshot, hfsb_clock_ms() + 1);
    all = hfsbi_snapshot_signal(&tools->snapshot, &family, !hard);
    for (job = tools->jobs; job; job = job->next) {
        if (job->state == HFSBI_JOB_RUNNING)
            running += hfsbi_proc_signal(job->proc, &tools->snapshot,
                                         hard ? SIGKILL : 0);
        (void)hfsbi_job_kill(tools, job);
    }
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
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
    hfsbi_build_str(b, "description", hfsb_buf_str(&job->spec.description));
    hfsbi_build_str(b, "command", hfsb_str_slice(command, 0, shown));
    hfsbi_build_bool(b, "command_cut", shown < command.len);
    hfsbi_build_int(b, "pid", job->pid);
    hfsbi_build_bool(b, "background", job->spec.background);
    hfsbi_build_int(b, "age_ms", now - job->created);
    hfsbi_build_int(b, "duration_ms", end - job->created);
    hfsbi_put_ending(b, job);
    hfsbi_build_int(b, "output_bytes", (long long)job->record.total);
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
    pthread_mutex_lock(&tools->lock);
    job = id.len ? hfsbi_job_find(tools, id) : tools->jobs;
    if (id.len && job) {
        hfsbi_build_job(&list, job, now);
    } else if (!id.len) {
        hfsbi_build_array(&list, NULL);
        for (; job; job = job->next) hfsbi_build_job(&list, job, now);
        hfsbi_build_end(&list);
    }
    pthread_mutex_unlock(&tools->lock);
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
    pthread_mutex_lock(&tools->lock);
    found = hfsbi_job_find(tools, id) != NULL;
    pthread_mutex_unlock(&tools->lock);
    return found;
}

HFSBI_FN void hfsbi_jobs_end(hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job;
    pthread_mutex_lock(&tools->lock);
    for (job = tools->jobs; job; job = job->next)
        if (!id.len || hfsb_str_equal(id, hfsb_cstr(job->id)))
            (void)hfsbi_job_kill(tools, job);
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
}

HFSBI_FN hfsbi_jobs_figures hfsbi_jobs_count_all(hfsb_tools *tools) {
    hfsbi_jobs_figures f = HFSB_INIT;
    pthread_mutex_lock(&tools->lock);
    f.running = hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING);
    f.waiting = hfsbi_jobs_count(tools, HFSBI_JOB_WAITING);
    f.ever = tools->job_count;
    pthread_mutex_unlock(&tools->lock);
    return f;
}
