/* bash.c - the tool bash.

   bash turns its arguments into a spec and adds a job, or joins the job of an
   earlier call with the same id or key. In the foreground the call waits for
   the job and copies its result; in the background it returns the id at once.
   The result belongs to the job: it is written when the command ends, even if
   no call waits for it. */
#include "tools_private.h"

/* ---- bash: arguments ---- */

typedef struct hfsbi_bash_args {
    hfsb_str               command, description, work_dir, shell, input, id;
    hfsb_str               on_disconnect;
    const hfsb_json_value *env;
    double                 timeout;
    bool                   background, merge_stderr, stream;
} hfsbi_bash_args;

static const hfsbi_param hfsbi_bash_params[] = {
    HFSBI_PARAM("command", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_bash_args,
                command, NULL),
    HFSBI_PARAM("description", HFSBI_ARG_STR, 0, hfsbi_bash_args, description,
                "In a few words, for people"),
    HFSBI_PARAM("work_dir", HFSBI_ARG_STR, HFSBI_NO_NUL | HFSBI_SENT,
                hfsbi_bash_args, work_dir, NULL),
    HFSBI_PARAM_RANGE("timeout", HFSBI_ARG_NUMBER, HFSBI_SENT, hfsbi_bash_args,
                      timeout, "Seconds, default 240, at most 1200", 0, 0, 0,
                      "a number of seconds from 0 on (0: the default)"),
    HFSBI_PARAM("background", HFSBI_ARG_BOOL, 0, hfsbi_bash_args, background,
                "Return at once with a job id"),
    HFSBI_PARAM("stdin", HFSBI_ARG_STR, HFSBI_UNTOLD, hfsbi_bash_args, input,
                NULL),
    HFSBI_PARAM("env", HFSBI_ARG_OBJECT, HFSBI_FLAT_ONLY, hfsbi_bash_args, env,
                NULL), /* some hosts refuse an object with arbitrary keys, and
                          a command can set variables itself */
    HFSBI_PARAM("merge_stderr", HFSBI_ARG_BOOL, 0, hfsbi_bash_args,
                merge_stderr, "Keep the order written"),
    HFSBI_PARAM("shell", HFSBI_ARG_STR, HFSBI_UNLISTED | HFSBI_NO_NUL,
                hfsbi_bash_args, shell, NULL),
    HFSBI_PARAM("id", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_bash_args, id,
                NULL),
    HFSBI_PARAM("stream", HFSBI_ARG_BOOL, HFSBI_UNLISTED | HFSBI_DELIVERY,
                hfsbi_bash_args, stream, NULL),
    HFSBI_PARAM_CHOICE("on_disconnect",
                       HFSBI_UNLISTED | HFSBI_DELIVERY | HFSBI_ONE_OF,
                       hfsbi_bash_args, on_disconnect, "kill continue"),
    HFSBI_PARAM_END};

/* Writes seconds without a needless fraction: 120, 0.3. */
static void hfsbi_put_seconds(double seconds, char out[32]) {
    size_t n = hfsbi_number_write_double(seconds, out);
    if (n > 2 && out[n - 1] == '0' && out[n - 2] == '.') n -= 2;
    out[n] = '\0';
}

/* A command without a timeout gets the default, a background command none. A
   timeout above the maximum is reduced, with a note. */
static void hfsbi_spec_timeout(hfsb_call *call, const hfsbi_bash_args *a,
                               hfsbi_job_spec *spec) {
    hfsb_tools *tools = call->tools;
    char        text[32];
    spec->timeout = a->timeout;
    if (a->timeout <= 0)
        spec->timeout = a->background ? 0 : tools->limits.timeout;
    if (spec->timeout <= tools->limits.max_timeout) return;
    spec->timeout = tools->limits.max_timeout;
    hfsbi_put_seconds(tools->limits.max_timeout, text);
    hfsb_buf_printf(&call->notes, "\n(timeout is over the maximum; %s s used)",
                    text);
}

/* Appends one variable of `env` as "NAME=value", or "NAME" for null, which
   unsets it. HFSB_OK, or HFSB_ARG with *err; out->status keeps other
   failures. */
static hfsb_status hfsbi_spec_variable(hfsb_str               name,
                                       const hfsb_json_value *value,
                                       hfsb_buf *out, hfsb_err *err) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_str       text = hfsb_json_str(value, HFSB_LIT(""));
    if (name.len == 0 || hfsb_str_find_byte(name, '=') != HFSB_NPOS ||
        hfsb_str_find_byte(name, '\0') != HFSB_NPOS) {
        hfsbi_fail(err, HFSB_ARG, 0, "env: a variable cannot be called \"");
        hfsbi_err_quote(err, name, 40);
        hfsbi_err_add(err, "\": a name is not empty and has no \"=\".");
        return HFSB_ARG;
    }
    if (type == HFSB_JSON_ARRAY || type == HFSB_JSON_OBJECT ||
        hfsb_str_find_byte(text, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "env: %.*s must be a string without NUL, not %s.",
                          (int)hfsb_utf8_offset(name, 40), name.ptr,
                          type == HFSB_JSON_STRING
                              ? "one with NUL"
                              : hfsb_json_type_name(type));
    hfsb_buf_append(out, name);
    if (type != HFSB_JSON_NULL) hfsb_buf_append_byte(out, '=');
    if (type == HFSB_JSON_STRING) hfsb_buf_append(out, text);
    else if (type != HFSB_JSON_NULL)
        (void)hfsb_json_write(value, NULL, out, NULL);
    hfsb_buf_append_byte(out, '\0');
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_env_read(const hfsb_json_value *object,
                                    hfsb_buf *out, hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(object);
    hfsb_status    st = HFSB_OK;
    while (st == HFSB_OK && hfsb_json_next(&it))
        st = hfsbi_spec_variable(it.key, it.value, out, err);
    return st;
}

/* Resolves the folder of the command against the working directory. */
static void hfsbi_spec_work_dir(const hfsb_tools *tools, hfsb_str given,
                                hfsbi_job_spec *spec) {
    hfsb_str base = hfsb_root_work_dir(tools->place);
    hfsb_buf_append(&spec->work_dir_given, given);
    if (base.len && (given.len == 0 || given.ptr[0] != '/'))
        hfsb_buf_append(&spec->work_dir, base);
    if (spec->work_dir.len && given.len)
        hfsb_buf_append_byte(&spec->work_dir, '/');
    hfsb_buf_append(&spec->work_dir, given);
}

/* Fills the spec from the arguments. HFSB_OK; HFSB_ARG with *err; or the
   failure of a buffer. */
static hfsb_status hfsbi_spec_fill(hfsb_call *call, const hfsbi_bash_args *a,
                                   hfsbi_job_spec *spec, hfsb_err *err) {
    hfsb_status st;
    if (a->id.len >= HFSBI_JOB_ID ||
        hfsb_str_find_byte(a->id, '\0') != HFSB_NPOS) {
        hfsbi_fail(err, HFSB_ARG, 0,
                   "id must have at most %d bytes and no NUL.",
                   HFSBI_JOB_ID - 1);
        hfsbi_err_key(err, "id");
        return HFSB_ARG;
    }
    hfsb_buf_append(&spec->id, a->id);
    hfsb_buf_append(&spec->command, a->command);
    hfsb_buf_append(&spec->description, a->description);
    hfsb_buf_append(&spec->input, a->input);
    hfsb_buf_append(&spec->shell, a->shell.len
                                      ? a->shell
                                      : hfsb_buf_str(&call->tools->shell));
    hfsbi_spec_work_dir(call->tools, a->work_dir, spec);
    hfsbi_spec_timeout(call, a, spec);
    spec->has_input = a->input.ptr != NULL;
    spec->background = a->background;
    spec->merge_stderr = a->merge_stderr || a->background;
    st = hfsbi_env_read(a->env, &spec->env, err);
    if (st == HFSB_ARG) hfsbi_err_key(err, "env");
    return st == HFSB_OK ? hfsbi_job_spec_status(spec) : st;
}

/* ---- bash: result ---- */

static void hfsbi_put_survivors(hfsbi_build *fields, const hfsbi_job *job) {
    size_t i;
    hfsbi_build_array(fields, "left_running");
    for (i = 0; i < job->left_count; i++) {
        hfsbi_build_object(fields, NULL);
        hfsbi_build_int(fields, "pid", job->left[i].pid);
        hfsbi_build_str(fields, "command", hfsb_cstr(job->left[i].command));
        hfsbi_build_end(fields);
    }
    hfsbi_build_end(fields);
}

HFSBI_FN const char *hfsbi_signal_name(int number) {
    static const struct {
        int         number;
        const char *name;
    } list[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
        {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
        {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
        {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
        {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
        {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].number == number) return list[i].name;
    return "";
}

HFSBI_FN void hfsbi_put_ending(hfsbi_build *fields, const hfsbi_job *job) {
    if (job->end.end == HFSB_PROC_EXITED)
        hfsbi_build_int(fields, "exit_code", job->end.exit_code);
    else hfsbi_build_null(fields, "exit_code");
    if (job->end.end == HFSB_PROC_SIGNALED)
        hfsbi_build_int(fields, "signal", job->end.signal);
    else hfsbi_build_null(fields, "signal");
    if (job->end.end == HFSB_PROC_SIGNALED &&
        *hfsbi_signal_name(job->end.signal))
        hfsbi_build_str(fields, "signal_name",
                        hfsb_cstr(hfsbi_signal_name(job->end.signal)));
    hfsbi_build_bool(fields, "timed_out", job->end.timed_out);
    if (job->killed) hfsbi_build_bool(fields, "killed", true);
}

/* Adds what the exit code means, when it is an answer. */
static void hfsbi_put_meaning(hfsbi_build *fields, const hfsbi_job *job) {
    const hfsbi_record *r = &job->record;
    const char         *meaning = NULL;
    if (job->end.end == HFSB_PROC_EXITED && !job->end.timed_out &&
        !job->killed)
        meaning = hfsbi_exit_meaning(hfsb_buf_str(&job->spec.command),
                                     job->end.exit_code,
                                     !r->merged && !r->stderr_total);
    if (meaning) hfsbi_build_str(fields, "exit_meaning", hfsb_cstr(meaning));
}

static hfsb_status hfsbi_bash_fields(hfsbi_job *job) {
    const hfsbi_record *c = &job->record;
    hfsbi_build         fields;
    hfsbi_build_init(&fields, &job->result.fields.alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_str(&fields, "id", hfsb_cstr(job->id));
    hfsbi_build_int(&fields, "pid", job->pid);
    hfsbi_put_ending(&fields, job);
    hfsbi_put_meaning(&fields, job);
    hfsbi_build_int(&fields, "duration_ms", job->ended - job->created);
    hfsbi_build_bool(&fields, "truncated", hfsbi_record_truncated(c));
    hfsbi_build_int(&fields, "total_chars", (long long)hfsbi_record_chars(c));
    if (c->path.len)
        hfsbi_build_str(&fields, "spill_path", hfsb_buf_str(&c->path));
    else hfsbi_build_null(&fields, "spill_path");
    if (c->path.len && c->spill.full)
        hfsbi_build_int(&fields, "spill_bytes", (long long)c->spill.bytes);
    hfsbi_put_survivors(&fields, job);
    if (job->notes.len) /* begins with a line feed */
        hfsbi_build_str(
            &fields, "notes",
            hfsb_str_slice(hfsb_buf_str(&job->notes), 1, job->notes.len));
    hfsbi_build_end(&fields);
    return hfsbi_build_finish(&fields, &job->result.fields);
}

/* Writes the reason of a failure to job->result.error; nothing for success.
   err is the reason why the command did not start, or NULL. */
static hfsb_status hfsbi_bash_error(hfsbi_job *job, const hfsb_err *err) {
    hfsb_buf *out = &job->result.error;
    char      seconds[32];
    if (err && strcmp(err->key, "work_dir") == 0 &&
        job->spec.work_dir_given.len)
        return hfsb_buf_printf(
            out, "Working directory not found: %s%s",
            job->spec.work_dir_given.ptr,
            job->spec.work_dir_given.ptr[0] == '~'
                ? " (\"~\" is not expanded: give the full path)"
                : "");
    if (err) return hfsb_buf_printf(out, "%s", err->msg);
    if (job->end.timed_out) {
        hfsbi_put_seconds(job->spec.timeout, seconds);
        return hfsb_buf_printf(
            out, "Timeout after %ss%s", seconds,
            job->pid ? ""
                     : " (it waited for other commands to end and was "
                       "not started)");
    }
    switch (job->end.end) {
    case HFSB_PROC_RUNNING:
        return job->pid
                   ? hfsb_buf_printf(out,
                                     "Process %ld could not be killed and "
                                     "still runs",
                                     job->pid)
                   : hfsb_buf_printf(out, "Killed before it was started");
    case HFSB_PROC_EXITED:
        return job->end.exit_code
                   ? hfsb_buf_printf(out, "Exit code %d", job->end.exit_code)
                   : HFSB_OK;
    case HFSB_PROC_SIGNALED:
        return hfsb_buf_printf(out, "Exit code -%d", job->end.signal);
    case HFSB_PROC_UNKNOWN: break;
    }
    return hfsb_buf_printf(out, "Exit code unknown: the program that hosts "
                                "these tools collected it first (it ignores "
                                "SIGCHLD or waits for every child)");
}

/* What programs print when the kernel refuses something, and the signal that
   they get then. */
typedef struct hfsbi_refusal {
    hfsbi_bound bound;
    const char *words;
    int         signal; /* 0: none */
    const char *hint;
} hfsbi_refusal;

#define HFSBI_REFUSAL_FILES                                            \
    "confined: files can be changed only where commands may write. A " \
    "person can allow more: --allow-write DIR"
#define HFSBI_REFUSAL_NET \
    "confined: the network is limited. A person can allow it: --net on"
#define HFSBI_REFUSAL_MEMORY                                              \
    "limited: memory is used up. Use less at a time; a person can allow " \
    "more: --max-memory SIZE"
#define HFSBI_REFUSAL_PROCESSES                                             \
    "limited: there are too many processes. End some, or start fewer at a " \
    "time; a person can allow more: --max-processes N"
#define HFSBI_REFUSAL_FILE_SIZE                                 \
    "limited: a file grew too large. A person can allow more: " \
    "--max-file-size SIZE"

static const hfsbi_refusal hfsbi_refusals[] = {
    {HFSBI_BOUND_NET, "Network is unreachable", 0, HFSBI_REFUSAL_NET},
    {HFSBI_BOUND_NET, "Could not resolve host", 0, HFSBI_REFUSAL_NET},
    {HFSBI_BOUND_NET, "name resolution", 0, HFSBI_REFUSAL_NET},
    {HFSBI_BOUND_NET, "Name or service not known", 0, HFSBI_REFUSAL_NET},
    {HFSBI_BOUND_MEMORY, "annot allocate memory", 0, HFSBI_REFUSAL_MEMORY},
    {HFSBI_BOUND_MEMORY, "MemoryError", 0, HFSBI_REFUSAL_MEMORY},
    {HFSBI_BOUND_MEMORY, "bad_alloc", 0, HFSBI_REFUSAL_MEMORY},
    {HFSBI_BOUND_MEMORY, "ut of memory", 0, HFSBI_REFUSAL_MEMORY},
    {HFSBI_BOUND_PROCESSES, "esource temporarily unavailable", 0,
     HFSBI_REFUSAL_PROCESSES},
    {HFSBI_BOUND_PROCESSES, "annot fork", 0, HFSBI_REFUSAL_PROCESSES},
    {HFSBI_BOUND_FILE_SIZE, "File too large", SIGXFSZ,
     HFSBI_REFUSAL_FILE_SIZE},
    {HFSBI_BOUND_FILE_SIZE, "File size limit exceeded", 0,
     HFSBI_REFUSAL_FILE_SIZE},
    {HFSBI_BOUND_CPU, "CPU time limit exceeded", SIGXCPU,
     "limited: a process used too much CPU time. A person can allow more: "
     "--max-cpu SECONDS"},
    {HFSBI_BOUND_FILES, "Read-only file system", 0, HFSBI_REFUSAL_FILES},
    {HFSBI_BOUND_FILES, "Permission denied", 0, HFSBI_REFUSAL_FILES},
    {HFSBI_BOUND_FILES, "Operation not permitted", 0,
     "confined: they get no new privileges, and end processes of earlier "
     "calls only by the kill tool. A person can allow all: --confine none"}};

/* Comes first: it is known, not guessed from words. */
static const hfsbi_refusal hfsbi_refusal_killed = {
    HFSBI_BOUND_MEMORY, "", 0,
    "limited: the kernel killed a process because they used up their memory "
    "together. Use less at a time; a person can allow more: "
    "--max-memory SIZE"};

/* Appends text that begins with a line feed, without it if the output ends in
   one. */
static hfsb_status hfsbi_bash_put_note(hfsb_buf *out, hfsb_str text) {
    bool ended = out->len && out->ptr[out->len - 1] == '\n';
    return hfsb_buf_append(out, hfsb_str_slice(text, ended ? 1 : 0, text.len));
}

/* Returns the refusal that seems to have made the command fail; NULL: none of
   ours. */
static const hfsbi_refusal *hfsbi_bash_refusal(const hfsbi_job *job,
                                               hfsb_str         out) {
    const hfsb_confine *confine = job->tools->confine;
    int                 code = job->end.exit_code, sig = job->end.signal;
    size_t              i;
    if (!confine || !job->pid) return NULL;
    if (hfsbi_confine_kills(confine) > job->kills)
        return &hfsbi_refusal_killed;
    if (job->end.end == HFSB_PROC_EXITED && code == 0) return NULL;
    if (job->end.end == HFSB_PROC_EXITED && code > 128) sig = code - 128;
    for (i = 0; i < sizeof hfsbi_refusals / sizeof *hfsbi_refusals; i++) {
        const hfsbi_refusal *r = &hfsbi_refusals[i];
        if (!hfsbi_confine_binds(confine, r->bound)) continue;
        if (r->signal && r->signal == sig) return r;
        if (job->end.end == HFSB_PROC_EXITED &&
            hfsb_str_find(out, hfsb_cstr(r->words)) != HFSB_NPOS)
            return r;
    }
    return NULL;
}

/* If the command seems to have failed because it is confined, puts a note that
   says so before those of the guard. EACCES may also come from a read or a
   socket, where these are confined. */
static hfsb_status hfsbi_bash_note_refusal(hfsbi_job *job) {
    const hfsb_confine  *confine = job->tools->confine;
    const hfsbi_refusal *r =
        hfsbi_bash_refusal(job, hfsb_buf_str(&job->result.output));
    hfsb_buf note = HFSB_INIT;
    bool     denied;
    if (!r) return HFSB_OK;
    note.alloc = job->notes.alloc;
    denied = strcmp(r->words, "Permission denied") == 0;
    hfsb_buf_printf(&note, "\n(commands are %s", r->hint);
    if (denied && hfsb_confine_level_of(confine) == HFSB_CONFINE_STRICT)
        hfsb_buf_append(&note, HFSB_LIT(", reading: --allow-read DIR"));
    if (denied && hfsbi_confine_binds(confine, HFSBI_BOUND_NET))
        hfsb_buf_append(&note, HFSB_LIT(", the network: --net on"));
    hfsb_buf_append_byte(&note, ')');
    hfsb_buf_append(&note, hfsb_buf_str(&job->notes));
    hfsb_buf_free(&job->notes);
    job->notes = note;
    return note.status;
}

HFSBI_FN hfsb_status hfsbi_bash_result(hfsbi_job *job, const hfsb_err *err) {
    hfsb_status st;
    if (job->tools->far && job->spec.background && !err)
        return hfsbi_far_background(job);
    st = hfsbi_record_show(&job->record, &job->result.output);
    if (st == HFSB_OK) st = hfsbi_bash_note_refusal(job);
    if (st == HFSB_OK)
        st = hfsbi_bash_put_note(&job->result.output,
                                 hfsb_buf_str(&job->notes));
    if (st == HFSB_OK && job->record.lost)
        st = hfsb_buf_printf(&job->result.output,
                             "\n(some of the output was lost: out of memory)");
    if (st == HFSB_OK) st = hfsbi_bash_error(job, err);
    job->result.success = st == HFSB_OK && job->result.error.len == 0;
    if (err) {
        job->result.code = err->code;
        memcpy(job->result.key, err->key, sizeof job->result.key);
    }
    return st == HFSB_OK ? hfsbi_bash_fields(job) : st;
}

/* ---- bash: call ---- */

/* A command that could not be started has its result already. */
HFSBI_FN hfsb_status hfsbi_bash_reply_background(hfsb_call *call) {
    hfsbi_job *job = call->job;
    if (job->state == HFSBI_JOB_DONE && !job->pid) { /* not started */
        hfsbi_call_wait(call, HFSBI_WAIT_JOB);
        return HFSB_OK;
    }
    hfsbi_build_str(&call->fields, "id", hfsb_cstr(job->id));
    hfsbi_build_int(&call->fields, "pid", job->pid);
    hfsbi_build_bool(&call->fields, "running", job->state != HFSBI_JOB_DONE);
    return hfsbi_result_ok(
        &call->result,
        "%s in the background as job %s. See its output with bash_output, end "
        "it with kill.",
        job->pid ? "Started" : "Waits for other commands to end, then runs",
        job->id);
}

/* Joins the job of an earlier call with the same id or key. once: its record,
   or NULL; job: the job of that id, or NULL. HFSB_OK, or HFSB_REFUSED with
   *err. */
static hfsb_status hfsbi_bash_join(hfsb_call *call, const hfsbi_once *once,
                                   hfsbi_job *job, hfsb_err *err) {
    if (!job) job = once->job;
    if (!job)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This key was used for another call; nothing was "
                          "run.");
    if (!once || memcmp(once->digest, call->digest, HFSB_SHA256_SIZE) != 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This id or key was used for another command (job "
                          "%s); nothing was run.",
                          job->id);
    if (job->state == HFSBI_JOB_DONE && !job->result_held)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This command has run (job %s); its result is no "
                          "longer held.",
                          job->id);
    call->job = job;
    return HFSB_OK;
}

/* Adds the job of a call that is not a repeat. HFSB_OK, or the failure with
   *err. */
static hfsb_status hfsbi_bash_add(hfsb_call *call, hfsbi_job_spec *spec,
                                  hfsb_err *err) {
    hfsbi_job_asked asked = HFSB_INIT;
    hfsb_status     st =
        hfsbi_spent_check(call->tools, call->digest, hfsb_buf_str(&spec->id),
                          call->opts.key, err);
    if (st == HFSB_OK) st = hfsbi_job_admit(call->tools, spec->input.len, err);
    if (st != HFSB_OK) return st;
    asked.key = call->opts.key;
    asked.digest = call->digest;
    asked.on_text = call->opts.on_text;
    asked.on_line = call->opts.on_line;
    asked.user = call->opts.user;
    asked.owner = call->owner;
    asked.brief = &call->brief;
    call->job = hfsbi_job_add(call->tools, spec, &asked);
    if (!call->job) return HFSB_NOMEM;
    call->added = true;
    call->streams = call->opts.on_text != NULL;
    return HFSB_OK;
}

/* Joins or adds the job of the call. HFSB_OK, or the failure with *err. Under
   the lock. */
static hfsb_status hfsbi_bash_run(hfsb_call *call, hfsbi_job_spec *spec,
                                  hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    bool        background = spec->background;
    hfsbi_job  *job;
    hfsbi_once *once;
    hfsb_status st;
    hfsbi_jobs_drop_old(tools);
    job = spec->id.len ? hfsbi_job_find(tools, hfsb_buf_str(&spec->id)) : NULL;
    once = job                  ? job->once
           : call->opts.key.len ? hfsbi_once_find(tools, call->opts.key)
                                : NULL;
    st = job || once ? hfsbi_bash_join(call, once, job, err)
                     : hfsbi_bash_add(call, spec, err);
    if (st != HFSB_OK) return st;
    call->job->users++;
    memcpy(call->job_id, call->job->id, sizeof call->job_id);
    if (background && !call->job->scan && !tools->far)
        return hfsbi_bash_reply_background(call);
    hfsbi_call_wait(call, background && !tools->far ? HFSBI_WAIT_SCAN
                                                    : HFSBI_WAIT_JOB);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_prepare_bash(hfsb_call *call, const void *args,
                                        hfsb_err *err) {
    return hfsbi_spec_fill(call, (const hfsbi_bash_args *)args, &call->spec,
                           err);
}

HFSBI_FN hfsb_status hfsbi_run_bash(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    hfsb_status st;
    (void)args;
    if (call->tools->history && call->tools->own_loop)
        hfsbi_history_before(call->tools->history);
    hfsbi_loop_lock(call->tools->loop);
    st = hfsbi_bash_run(call, &call->spec, err);
    hfsbi_loop_unlock(call->tools->loop);
    if (st == HFSB_OK && call->tools->far && call->added) hfsbi_far_run(call);
    return st;
}

HFSBI_FN hfsbi_delivery hfsbi_call_delivery(const hfsb_call *call) {
    const hfsbi_bash_args *a =
        (const hfsbi_bash_args *)(const void *)&call->args;
    hfsbi_delivery d = HFSB_INIT;
    d.stream = a->stream;
    d.timeout = a->timeout;
    d.on_disconnect = a->on_disconnect;
    return d;
}

#define HFSBI_BASH_WORDS                                                     \
    "; returns stdout, then stderr. For files prefer read, write, edit, "    \
    "glob, grep, list over cat, echo, sed, find, grep, ls. Each call is a "  \
    "new shell: cd does not carry over. No terminal. Long output is cut in " \
    "the middle and saved to a file that the reply names. For servers and "  \
    "long jobs use background, not &, then bash_output."

HFSBI_FN const hfsbi_tool *hfsbi_tool_bash(void) {
    static const hfsbi_tool row = {
        "bash",
        "Run a command",
        "Run a command with {shell}, {confined}" HFSBI_BASH_WORDS,
        "Run a command with bash or sh in the sandbox, a machine of its "
        "own" HFSBI_BASH_WORDS,
        HFSBI_TOOL_RUNS,
        HFSBI_TOOL_CORE,
        hfsbi_bash_params};
    return &row;
}
