/* bash.c - run a command; look at it, write to it, end it. */
#include "tools_private.h"
#include "../core/core_private.h"

enum {
    HFSBI_OUTPUT_MAX = 100000, /* bytes that bash_output shows at once */
    HFSBI_PROMPT_MS = 300      /* that a prompt stands still */
};

/* ---- the arguments of bash ---- */

/* Seconds as a person writes them: 120, 0.3. */
static void hfsbi_put_seconds(double seconds, char out[32]) {
    size_t n = hfsbi_number_write_double(seconds, out);
    if (n > 2 && out[n - 1] == '0' && out[n - 2] == '.') n -= 2;
    out[n] = '\0';
}

/* timeout: 0 and null are the default; in the background there is none unless
   it was asked for. */
static hfsb_status hfsbi_read_timeout(hfsb_call *call, hfsbi_job_spec *spec,
                                      hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    double      seconds = 0;
    char        text[32];
    hfsb_status st =
        hfsb_json_arg_double(call->arguments, "timeout", false, &seconds, err);
    if (st != HFSB_OK) return st;
    hfsbi_put_seconds(seconds, text);
    if (seconds < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "timeout must be a number of seconds from 0 on (0: "
                          "the default), not %s.",
                          text);
    spec->timeout = seconds;
    if (seconds <= 0) spec->timeout = spec->background ? 0 : tools->timeout;
    if (spec->timeout <= tools->max_timeout) return HFSB_OK;
    spec->timeout = tools->max_timeout;
    hfsbi_put_seconds(tools->max_timeout, text);
    return hfsb_buf_printf(&call->notes,
                           "\n(timeout is over the maximum; %s s used)", text);
}

/* One variable of `env` as "NAME=value", or "NAME" to unset it. */
static hfsb_status hfsbi_read_variable(hfsb_str               name,
                                       const hfsb_json_value *value,
                                       hfsb_buf *out, hfsb_err *err) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_str       text = hfsb_json_str(value, HFSB_LIT(""));
    hfsb_status    st;
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
    st = hfsb_buf_append(out, name);
    if (st == HFSB_OK && type != HFSB_JSON_NULL)
        st = hfsb_buf_append_byte(out, '=');
    if (st == HFSB_OK && type == HFSB_JSON_STRING)
        st = hfsb_buf_append(out, text);
    else if (st == HFSB_OK && type != HFSB_JSON_NULL)
        st = hfsb_json_write(value, NULL, out, err);
    return st == HFSB_OK ? hfsb_buf_append_byte(out, '\0') : st;
}

static hfsb_status hfsbi_read_env(hfsb_call *call, hfsb_buf *out,
                                  hfsb_err *err) {
    const hfsb_json_value *object = NULL;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_json_iter         it;
    hfsb_status            st;
    doc.alloc = call->tools->alloc;
    st = hfsb_json_arg_parsed(call->arguments, "env", false, HFSB_JSON_OBJECT,
                              &doc, &object, err);
    it = hfsb_json_begin(object);
    while (st == HFSB_OK && hfsb_json_next(&it))
        st = hfsbi_read_variable(it.key, it.value, out, err);
    hfsb_json_free(&doc);
    return st;
}

/* Copies an optional text argument. */
static hfsb_status hfsbi_read_text(hfsb_call *call, const char *key,
                                   bool required, hfsb_buf *out,
                                   hfsb_err *err) {
    hfsb_str    text = HFSB_LIT("");
    hfsb_status st =
        hfsb_json_arg_str(call->arguments, key, required, &text, err);
    return st == HFSB_OK ? hfsb_buf_append(out, text) : st;
}

/* Where the command runs; relative to the work directory. */
static hfsb_status hfsbi_read_work_dir(hfsb_call *call, hfsbi_job_spec *spec,
                                       hfsb_err *err) {
    hfsb_str    base = hfsb_place_work_dir(call->tools->place), given;
    hfsb_status st =
        hfsbi_read_text(call, "work_dir", false, &spec->work_dir_given, err);
    if (st != HFSB_OK) return st;
    given = hfsb_buf_str(&spec->work_dir_given);
    if (hfsb_str_find_byte(given, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "work_dir must be a path without NUL.");
    if (base.len && (given.len == 0 || given.ptr[0] != '/'))
        st = hfsb_buf_append(&spec->work_dir, base);
    if (st == HFSB_OK && spec->work_dir.len && given.len)
        st = hfsb_buf_append_byte(&spec->work_dir, '/');
    return st == HFSB_OK ? hfsb_buf_append(&spec->work_dir, given) : st;
}

static hfsb_status hfsbi_read_spec(hfsb_call *call, hfsbi_job_spec *spec,
                                   hfsb_err *err) {
    const hfsb_json_value *args = call->arguments;
    hfsb_status            st =
        hfsbi_read_text(call, "command", true, &spec->command, err);
    if (st == HFSB_OK)
        st = hfsbi_read_text(call, "description", false, &spec->description,
                             err);
    if (st == HFSB_OK) st = hfsbi_read_work_dir(call, spec, err);
    if (st == HFSB_OK)
        st = hfsbi_read_text(call, "shell", false, &spec->shell, err);
    if (st == HFSB_OK &&
        hfsb_str_find_byte(hfsb_buf_str(&spec->shell), '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "shell must be a path without NUL.");
    if (st == HFSB_OK && spec->shell.len == 0)
        st = hfsb_buf_append(&spec->shell, hfsb_buf_str(&call->tools->shell));
    if (st == HFSB_OK)
        st = hfsbi_read_text(call, "stdin", false, &spec->input, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(args, "background", false, &spec->background,
                                err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(args, "merge_stderr", false,
                                &spec->merge_stderr, err);
    if (st == HFSB_OK) st = hfsbi_read_timeout(call, spec, err);
    if (st == HFSB_OK) st = hfsbi_read_env(call, &spec->env, err);
    spec->has_input =
        hfsb_json_type_of(hfsb_json_get(args, "stdin")) == HFSB_JSON_STRING;
    if (spec->background) spec->merge_stderr = true;
    return st;
}

/* The id the caller chose, or none. */
static hfsb_status hfsbi_read_id(hfsb_call *call, hfsb_str *id,
                                 hfsb_err *err) {
    hfsb_status st = hfsb_json_arg_str(call->arguments, "id", false, id, err);
    if (st != HFSB_OK) return st;
    if (id->len < HFSBI_JOB_ID && hfsb_str_find_byte(*id, '\0') == HFSB_NPOS)
        return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "id must have at most %d bytes and no NUL.",
                      HFSBI_JOB_ID - 1);
}

/* ---- the reply of bash ---- */

static void hfsbi_put_left(hfsb_json_writer *w, const hfsbi_job *job) {
    size_t i;
    hfsb_json_put_key(w, HFSB_LIT("left_running"));
    hfsb_json_put_array(w);
    for (i = 0; i < job->left_count; i++) {
        hfsb_json_put_object(w);
        hfsbi_put_member_int(w, "pid", job->left[i].pid);
        hfsbi_put_member_str(w, "command", hfsb_cstr(job->left[i].command));
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

HFSBI_FN void hfsbi_put_ending(hfsb_json_writer *w, const hfsbi_job *job) {
    hfsb_json_put_key(w, HFSB_LIT("exit_code"));
    if (job->end.end == HFSB_PROC_EXITED)
        hfsb_json_put_int(w, job->end.exit_code);
    else hfsb_json_put_null(w);
    hfsb_json_put_key(w, HFSB_LIT("signal"));
    if (job->end.end == HFSB_PROC_SIGNALED)
        hfsb_json_put_int(w, job->end.signal);
    else hfsb_json_put_null(w);
    hfsbi_put_member_bool(w, "timed_out", job->end.timed_out);
    if (job->killed) hfsbi_put_member_bool(w, "killed", true);
}

static hfsb_status hfsbi_bash_extra(hfsbi_job *job) {
    const hfsbi_record *c = &job->record;
    hfsb_json_writer    w;
    hfsb_json_writer_init(&w, &job->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", hfsb_cstr(job->id));
    hfsbi_put_member_int(&w, "pid", job->pid);
    hfsbi_put_ending(&w, job);
    hfsbi_put_member_int(&w, "duration_ms", job->ended - job->created);
    hfsbi_put_member_bool(&w, "truncated", hfsbi_record_truncated(c));
    hfsbi_put_member_int(&w, "total_chars", (long long)hfsbi_record_chars(c));
    hfsb_json_put_key(&w, HFSB_LIT("spill_path"));
    if (c->path.len) hfsb_json_put_str(&w, hfsb_buf_str(&c->path));
    else hfsb_json_put_null(&w);
    hfsbi_put_left(&w, job);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, NULL);
}

/* How it ended, as the error of a reply; "" when it went well. */
static hfsb_status hfsbi_bash_error(hfsbi_job *job, const hfsb_err *err) {
    hfsb_buf *out = &job->result.error;
    char      seconds[32];
    if (err && err->code == HFSB_NOT_FOUND && job->spec.work_dir_given.len &&
        hfsb_str_starts(hfsb_cstr(err->msg),
                        HFSB_LIT("Working directory not found")))
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

HFSBI_FN hfsb_status hfsbi_bash_result(hfsbi_job *job, const hfsb_err *err) {
    hfsb_status st = hfsbi_record_show(&job->record, &job->result.output);
    if (st == HFSB_OK && job->record.lost)
        st = hfsb_buf_printf(&job->result.output,
                             "\n(some of the output was lost: out of memory)");
    if (st == HFSB_OK) st = hfsbi_bash_error(job, err);
    job->result.success = st == HFSB_OK && job->result.error.len == 0;
    return st == HFSB_OK ? hfsbi_bash_extra(job) : st;
}

/* ---- bash ---- */

static hfsb_status hfsbi_bash_started(hfsb_call *call) {
    hfsb_json_writer w;
    hfsbi_job       *job = call->job;
    hfsb_status      st;
    if (job->state == HFSBI_JOB_DONE && !job->pid) { /* it never ran */
        call->wait = HFSBI_WAIT_JOB;
        return HFSB_OK;
    }
    st = hfsbi_result_ok(&call->result,
                         "%s in the background as job %s. See its output with "
                         "bash_output, end it with kill.",
                         job->pid ? "Started"
                                  : "Waits for other commands to end, then "
                                    "runs",
                         job->id);
    hfsb_json_writer_init(&w, &call->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", hfsb_cstr(job->id));
    hfsbi_put_member_int(&w, "pid", job->pid);
    hfsbi_put_member_bool(&w, "running", job->state != HFSBI_JOB_DONE);
    hfsb_json_put_end(&w);
    return st == HFSB_OK ? hfsb_json_writer_finish(&w, NULL) : st;
}

/* A command with this id has been seen before. */
static hfsb_status hfsbi_bash_again(hfsb_call *call, hfsbi_job *job,
                                    hfsb_err *err) {
    if (memcmp(job->digest, call->digest, HFSB_SHA256_SIZE) != 0)
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

/* Under the lock. */
static hfsb_status hfsbi_bash_run(hfsb_call *call, hfsbi_job_spec *spec,
                                  hfsb_str id, hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    bool        background = spec->background;
    hfsbi_job  *job = hfsbi_job_again(tools, id, call->opts.key);
    hfsb_status st = HFSB_OK;
    if (!job && call->opts.key.len && hfsbi_once_find(tools, call->opts.key))
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This key was used for another call; nothing was "
                          "run.");
    if (job) {
        st = hfsbi_bash_again(call, job, err);
    } else if (hfsbi_jobs_count(tools, HFSBI_JOB_WAITING) >=
               tools->max_waiting) {
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "Too many commands are waiting (%zu): try again "
                          "when some have ended.",
                          tools->max_waiting);
    } else {
        call->job = hfsbi_job_add(tools, spec, id, call->digest, &call->opts);
        if (!call->job) return HFSB_NOMEM;
        call->streams = call->opts.on_text != NULL;
    }
    if (st != HFSB_OK) return st;
    call->job->users++;
    memcpy(call->job_id, call->job->id, sizeof call->job_id);
    if (background) return hfsbi_bash_started(call);
    call->wait = HFSBI_WAIT_JOB;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_tool_bash(hfsb_call *call, hfsb_err *err) {
    hfsb_tools    *tools = call->tools;
    hfsbi_job_spec spec;
    hfsb_str       id = HFSB_LIT("");
    hfsb_status    st;
    hfsbi_job_spec_init(&spec, &tools->alloc);
    st = hfsbi_read_spec(call, &spec, err);
    if (st == HFSB_OK) st = hfsbi_read_id(call, &id, err);
    if (st == HFSB_OK) {
        pthread_mutex_lock(&tools->lock);
        st = hfsbi_bash_run(call, &spec, id, err);
        pthread_mutex_unlock(&tools->lock);
        hfsb_tools_wake(tools);
    }
    hfsbi_job_spec_free(&spec);
    return st;
}

/* ---- the others ---- */

static hfsb_status hfsbi_no_such_job(hfsb_tool_result *result, hfsb_str id,
                                     hfsb_err *err) {
    hfsbi_fail(err, HFSB_OK, 0, "No such job: ");
    hfsbi_err_quote(err, id, 80);
    return hfsbi_result_fail(result, "%s", err->msg);
}

/* The job that `id` names, or a failed result. Under the lock. */
static hfsb_status hfsbi_job_of(hfsb_call *call, hfsbi_job **job,
                                hfsb_err *err) {
    hfsb_str    id = HFSB_LIT("");
    hfsb_status st = hfsb_json_arg_str(call->arguments, "id", true, &id, err);
    *job = NULL;
    if (st != HFSB_OK) return st;
    *job = hfsbi_job_find(call->tools, id);
    return *job ? HFSB_OK : hfsbi_no_such_job(&call->result, id, err);
}

HFSBI_FN hfsb_status hfsbi_output_result(hfsb_call *call) {
    hfsbi_job         *job = call->job;
    hfsb_tool_result  *r = &call->result;
    unsigned long long next, gone_from, gone_to, from = call->offset;
    hfsb_json_writer   w;
    hfsb_status        st =
        hfsbi_record_read(&job->record, call->offset, HFSBI_OUTPUT_MAX,
                          &r->output, &next, &gone_from, &gone_to);
    if (st != HFSB_OK) return st;
    if (gone_from != gone_to) from = gone_to;
    if (from > next) from = next;
    r->success = true;
    job->shown = job->record.bytes;
    hfsb_json_writer_init(&w, &r->extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", hfsb_cstr(job->id));
    hfsbi_put_member_int(&w, "offset", (long long)from);
    hfsbi_put_member_int(&w, "next_offset", (long long)next);
    hfsbi_put_member_bool(&w, "running", job->state != HFSBI_JOB_DONE);
    hfsbi_put_ending(&w, job);
    if (gone_from != gone_to) {
        hfsb_json_put_key(&w, HFSB_LIT("dropped"));
        hfsb_json_put_array(&w);
        hfsb_json_put_uint(&w, gone_from);
        hfsb_json_put_uint(&w, gone_to);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK && gone_from != gone_to)
        st = hfsb_buf_printf(&call->notes,
                             "\n(bytes %llu to %llu of the output are no "
                             "longer held)",
                             gone_from, gone_to);
    return st;
}

/* A line that is not finished, was not shown and stands still is a prompt; one
   that moves is a progress bar. */
static bool hfsbi_output_prompts(const hfsb_call *call) {
    const hfsbi_job *job = call->job;
    return job->record.bytes != job->shown &&
           hfsbi_record_pending(&job->record);
}

HFSBI_FN bool hfsbi_output_ready(const hfsb_call *call) {
    return call->job->state == HFSBI_JOB_DONE ||
           call->job->record.total > call->offset ||
           (hfsbi_output_prompts(call) &&
            hfsb_clock_ms() >= call->job->record.last_at + HFSBI_PROMPT_MS);
}

HFSBI_FN long long hfsbi_output_at(const hfsb_call *call) {
    long long at = call->job->record.last_at + HFSBI_PROMPT_MS;
    return at < call->until && hfsbi_output_prompts(call) ? at : call->until;
}

HFSBI_FN hfsb_status hfsbi_tool_bash_output(hfsb_call *call, hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    long long   offset = 0, wait_ms = 0;
    hfsb_status st =
        hfsb_json_arg_int(call->arguments, "offset", false, &offset, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_int(call->arguments, "wait_ms", false, &wait_ms,
                               err);
    if (st != HFSB_OK) return st;
    if (offset < 0 || wait_ms < 0)
        return hfsbi_fail(err, HFSB_ARG, 0, "%s must be 0 or more.",
                          offset < 0 ? "offset" : "wait_ms");
    if (wait_ms > (long long)(tools->max_timeout * 1000.0))
        wait_ms = (long long)(tools->max_timeout * 1000.0);
    pthread_mutex_lock(&tools->lock);
    hfsbi_tools_touch(tools); /* what is in the pipes counts as printed */
    st = hfsbi_job_of(call, &call->job, err);
    if (call->job) {
        call->job->users++;
        memcpy(call->job_id, call->job->id, sizeof call->job_id);
        call->offset = (unsigned long long)offset;
        call->until = hfsb_clock_ms() + wait_ms;
        call->wait = HFSBI_WAIT_OUTPUT;
        call->next_waiting = tools->waiting;
        tools->waiting = call;
    }
    pthread_mutex_unlock(&tools->lock);
    return st;
}

HFSBI_FN hfsb_status hfsbi_job_input(hfsb_tools *tools, hfsb_str id,
                                     hfsb_str bytes, bool eof,
                                     hfsb_tool_result *result) {
    hfsb_err    err = HFSB_INIT;
    hfsbi_job  *job;
    hfsb_status st;
    pthread_mutex_lock(&tools->lock);
    job = hfsbi_job_find(tools, id);
    if (!job) {
        st = hfsbi_no_such_job(result, id, &err);
    } else if (job->state != HFSBI_JOB_RUNNING) {
        st = hfsbi_result_fail(result, "Job %s %s.", job->id,
                               job->state == HFSBI_JOB_DONE
                                   ? "has ended"
                                   : "waits for other commands to end");
    } else {
        st = hfsb_proc_input(job->proc, bytes, eof, &err);
        st = st == HFSB_OK
                 ? hfsbi_result_ok(result, "Sent %zu bytes to job %s%s",
                                   bytes.len, job->id,
                                   eof ? ", then the end of input" : "")
                 : hfsbi_result_err(result, &err);
    }
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
    return st;
}

HFSBI_FN hfsb_status hfsbi_tool_bash_input(hfsb_call *call, hfsb_err *err) {
    hfsb_str    text = HFSB_INIT, id = HFSB_LIT("");
    bool        eof = false;
    hfsb_status st =
        hfsb_json_arg_bool(call->arguments, "eof", false, &eof, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(call->arguments, "text", false, &text, err);
    if (st == HFSB_OK && !text.ptr && !eof)
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "Give \"text\" (a string), \"eof\" (true), or "
                        "both.");
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(call->arguments, "id", true, &id, err);
    return st == HFSB_OK
               ? hfsbi_job_input(call->tools, id, text, eof, &call->result)
               : st;
}

/* Under the lock: asks one job, or all, to end; call->killed are those. */
static hfsb_status hfsbi_kill_begin(hfsb_call *call, hfsbi_job *only) {
    hfsb_tools *tools = call->tools;
    hfsbi_job  *job;
    size_t      n = 0;
    for (job = tools->jobs; job; job = job->next) n++;
    call->killed =
        (hfsbi_job **)hfsbi_array(&tools->alloc, n + 1, sizeof(hfsbi_job *));
    if (!call->killed) return HFSB_NOMEM;
    call->killed_cap = n + 1;
    for (job = tools->jobs; job; job = job->next) {
        if ((only && job != only) || !hfsbi_job_kill(tools, job)) continue;
        job->users++;
        call->killed[call->killed_count++] = job;
    }
    call->wait = HFSBI_WAIT_ENDS;
    return HFSB_OK;
}

/* One that ran and has ended. */
static bool hfsbi_kill_counts(const hfsbi_job *job) {
    return job->pid > 0 && job->end.end != HFSB_PROC_RUNNING;
}

HFSBI_FN hfsb_status hfsbi_kill_result(hfsb_call *call) {
    size_t mark = call->result.output.len;
    size_t i, n = 0;
    for (i = 0; i < call->killed_count; i++)
        n += hfsbi_kill_counts(call->killed[i]);
    hfsb_buf_printf(&call->result.output, "Killed %zu process(es): [", n);
    for (i = n = 0; i < call->killed_count; i++)
        if (hfsbi_kill_counts(call->killed[i]))
            hfsb_buf_printf(&call->result.output, "%s%ld", n++ ? ", " : "",
                            call->killed[i]->pid);
    hfsb_buf_append(&call->result.output, HFSB_LIT("]"));
    for (i = 0; i < call->killed_count; i++)
        if (call->killed[i]->pid > 0 && !hfsbi_kill_counts(call->killed[i]))
            hfsb_buf_printf(&call->result.output,
                            "\n(%ld could not be killed)",
                            call->killed[i]->pid);
    call->result.success = true;
    return hfsb_buf_finish(&call->result.output, mark);
}

HFSBI_FN hfsb_status hfsbi_tool_kill(hfsb_call *call, hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    bool all = hfsb_json_type_of(hfsb_json_get(call->arguments, "id")) ==
               HFSB_JSON_NULL;
    hfsbi_job  *only = NULL;
    hfsb_status st = HFSB_OK;
    pthread_mutex_lock(&tools->lock);
    if (!all) st = hfsbi_job_of(call, &only, err);
    if (st == HFSB_OK && (all || only)) st = hfsbi_kill_begin(call, only);
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
    return st;
}
