/* v1.c - a sandbox whose server speaks HF's /v1 (sbx-server, protocol 1 to 3).

   That server runs commands and stores bytes; it has no tools. So the tools
   run here, in a tools object whose files and commands are elsewhere
   (tools/far.c), and their output is the same as for local files:

       call --> tools --> read, write, edit ... --> /v1/files (v1_files.c)
                     \--> bash, kill -------------> POST /v1/exec

   The reply to a command is a series of lines, each a JSON object; one line is
   held at a time:

       {"event":"start","pid":7}            first
       {"event":"stdout","data":"..."}      also stderr; any number
       {"event":"ping"}                     ignored, as all unknown ones
       {"event":"exit","exit_code":0, ...}  without it the command may still
                                            run

   A command is sent once. Each has a variable in its environment by which kill
   finds its processes, even those that left their process group. */
#include "remote_private.h"
#include "../http/url.h"

enum {
    HFSBI_V1_EVENT = 8 << 20, /* bytes of one event */
    HFSBI_V1_PIDS = 1 << 20,  /* of what kill prints */
    HFSBI_V1_IDLE = 70,       /* seconds without an event: a ping should come
                                 after 15 */
    HFSBI_V1_KILL = 30        /* seconds for kill */
};

#define HFSBI_V1_MARK "HFSB_V1_JOB"

/* ---- commands: the request ---- */

/* Variables that `env` unsets, as a line of the script. */
static void hfsbi_v1_put_unset(const hfsb_buf *env, hfsb_buf *out) {
    size_t at, i;
    for (at = 0; at < env->len; at += strlen(env->ptr + at) + 1) {
        const char *name = env->ptr + at;
        bool        plain = !hfsbi_is_digit(name[0]);
        for (i = 0; name[i] && plain; i++)
            plain = hfsbi_is_alpha(name[i]) || hfsbi_is_digit(name[i]) ||
                    name[i] == '_';
        if (plain) hfsb_buf_printf(out, "unset %s; ", name);
    }
}

/* The script that starts the command, its argument 1, with the shell that is
   its argument 0. Servers of protocol 1 report the end of a command before
   they have read all of its output: there the script waits a moment. */
static void hfsbi_v1_put_script(const hfsbi_job *job, long long protocol,
                                hfsb_buf *out) {
    const hfsbi_job_spec *spec = &job->spec;
    char                  log[HFSBI_FAR_LOG];
    hfsbi_far_log(job, log);
    if (spec->background)
        hfsb_buf_printf(out, "exec >%s%s 2>&1; ",
                        log[0] == '/' ? "" : "\"$HOME\"/", log);
    else if (spec->merge_stderr) hfsb_buf_printf(out, "exec 2>&1; ");
    hfsbi_v1_put_unset(&spec->env, out);
    if (!spec->shell.len)
        hfsb_buf_printf(out,
                        "if [ -x /bin/bash ]; then set -- \"$1\" /bin/bash; "
                        "elif [ -x /usr/bin/bash ]; then set -- \"$1\" "
                        "/usr/bin/bash; else set -- \"$1\" /bin/sh; fi; ");
    else hfsb_buf_printf(out, "set -- \"$1\" \"$0\"; ");
    if (protocol >= 2 || spec->background)
        hfsb_buf_printf(out, "exec \"$2\" -c \"$1\"");
    else
        hfsb_buf_printf(out, "\"$2\" -c \"$1\"; s=$?; sleep 0.2 2>/dev/null "
                             "|| sleep 1; exit $s");
}

static void hfsbi_v1_put_env(const hfsbi_job *job, hfsb_json_writer *w,
                             const char *const *list) {
    hfsb_json_put_key(w, HFSB_LIT("env"));
    hfsb_json_put_object(w);
    for (; *list; list++) {
        hfsb_str name = hfsbi_env_name(*list);
        if (hfsb_str_equal(name, HFSB_LIT(HFSBI_V1_MARK))) continue;
        hfsb_json_put_key(w, name);
        hfsb_json_put_str(w, hfsb_cstr(*list + name.len + 1));
    }
    hfsb_json_put_member_str(w, HFSBI_V1_MARK, hfsb_cstr(job->id));
    hfsb_json_put_end(w);
}

/* Appends the body of the request. */
static hfsb_status hfsbi_v1_put_command(hfsbi_v1 *v1, const hfsbi_job *job,
                                        hfsb_buf *out, hfsb_err *err) {
    const hfsbi_job_spec *spec = &job->spec;
    const hfsb_alloc     *alloc = &v1->sandbox->o.alloc;
    hfsb_buf              script = HFSB_INIT;
    hfsb_json_writer      w;
    size_t                size;
    long long             protocol;
    const char          **env = hfsbi_env_merge(v1->tools, spec, &size);
    hfsb_status           st;
    if (!env) return hfsbi_fail_status(err, HFSB_NOMEM, "Command");
    pthread_mutex_lock(&v1->sandbox->lock);
    protocol = v1->protocol;
    pthread_mutex_unlock(&v1->sandbox->lock);
    script.alloc = *alloc;
    hfsbi_v1_put_script(job, protocol, &script);
    st = script.status;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("cmd"));
    hfsb_json_put_array(&w);
    hfsb_json_put_str(&w, HFSB_LIT("/bin/sh"));
    hfsb_json_put_str(&w, HFSB_LIT("-c"));
    hfsb_json_put_str(&w, hfsb_buf_str(&script));
    hfsb_json_put_str(&w, spec->shell.len ? hfsb_buf_str(&spec->shell)
                                          : HFSB_LIT("sh"));
    hfsb_json_put_str(&w, hfsb_buf_str(&spec->command));
    hfsb_json_put_end(&w);
    hfsbi_v1_put_env(job, &w, env);
    if (spec->work_dir.len)
        hfsb_json_put_member_str(&w, "cwd", hfsb_buf_str(&spec->work_dir));
    if (spec->has_input)
        hfsb_json_put_member_str(&w, "stdin", hfsb_buf_str(&spec->input));
    if (spec->timeout > 0) {
        hfsb_json_put_key(&w, HFSB_LIT("timeout"));
        hfsb_json_put_double(&w, spec->timeout);
    }
    hfsb_json_put_end(&w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, err);
    else st = hfsbi_fail_status(err, st, "Command");
    hfsbi_array_free(alloc, (void *)env, size, sizeof *env);
    hfsb_buf_free(&script);
    return st;
}

/* ---- commands: the events ---- */

typedef struct hfsbi_v1_stream {
    const hfsb_alloc *alloc;
    hfsbi_job        *job;   /* receives output (NULL: `out` does) */
    hfsb_buf         *out;   /* stdout of a command of our own */
    hfsb_buf          line;  /* the event that arrives */
    long              pid;   /* 0: it has not started */
    bool              ended; /* the event exit has come */
    hfsb_proc_result  end;
    hfsb_status       status; /* of our side, or HFSB_REMOTE */
} hfsbi_v1_stream;

static void hfsbi_v1_read_exit(hfsbi_v1_stream       *t,
                               const hfsb_json_value *event) {
    const hfsb_json_value *code = hfsb_json_get(event, "exit_code");
    const hfsb_json_value *number = hfsb_json_get(event, "signal");
    t->ended = true;
    t->end.timed_out =
        hfsb_json_bool(hfsb_json_get(event, "timed_out"), false);
    if (hfsb_json_type_of(code) == HFSB_JSON_INT) {
        t->end.end = HFSB_PROC_EXITED;
        t->end.exit_code = (int)(hfsb_json_int(code, 1) & 0xFFFF);
    } else if (hfsb_json_type_of(number) == HFSB_JSON_INT) {
        t->end.end = HFSB_PROC_SIGNALED;
        t->end.signal = (int)(hfsb_json_int(number, 9) & 0xFF);
    } else {
        t->end.end = HFSB_PROC_SIGNALED; /* it says no more than that */
        t->end.signal = SIGKILL;
    }
}

/* Reads one event; sets t->status. */
static void hfsbi_v1_read_event(hfsbi_v1_stream *t, hfsb_str line) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_str       event, data;
    if (!hfsbi_trim(line).len) return;
    doc.alloc = *t->alloc;
    t->status = hfsb_json_parse(line, NULL, &doc, NULL);
    if (t->status == HFSB_SYNTAX) t->status = HFSB_REMOTE;
    event = hfsb_json_str(hfsb_json_get(doc.root, "event"), none);
    data = hfsb_json_str(hfsb_json_get(doc.root, "data"), none);
    if (t->status != HFSB_OK) {
        hfsb_json_free(&doc);
        return;
    }
    if (hfsb_str_equal(event, HFSB_LIT("start")))
        t->pid = (long)hfsb_json_int(hfsb_json_get(doc.root, "pid"), 0);
    else if (hfsb_str_equal(event, HFSB_LIT("exit")))
        hfsbi_v1_read_exit(t, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("stdout")) && t->job)
        hfsbi_far_output(t->job, HFSB_PROC_STDOUT, data);
    else if (hfsb_str_equal(event, HFSB_LIT("stdout")))
        t->status = hfsb_buf_append(t->out, data);
    else if (hfsb_str_equal(event, HFSB_LIT("stderr")) && t->job)
        hfsbi_far_output(t->job, HFSB_PROC_STDERR, data);
    hfsb_json_free(&doc);
}

static bool hfsbi_v1_on_body(void *user, hfsb_str piece) {
    hfsbi_v1_stream *t = (hfsbi_v1_stream *)user;
    while (piece.len && t->status == HFSB_OK) {
        size_t at = hfsb_str_find_byte(piece, '\n');
        t->status = hfsb_buf_append(&t->line, hfsb_str_slice(piece, 0, at));
        if (at == HFSB_NPOS || t->status != HFSB_OK) break;
        hfsbi_v1_read_event(t, hfsb_buf_str(&t->line));
        hfsb_buf_truncate(&t->line, 0);
        piece = hfsb_str_slice(piece, at + 1, piece.len);
    }
    return t->status == HFSB_OK;
}

/* ---- commands: one run ---- */

#define HFSBI_V1_LOOK                                                        \
    " The command may still run: look before you repeat it, or end it with " \
    "kill."

/* The server refused to start a command, usually because its folder does not
   exist: /bin/sh is always there. */
static hfsb_status hfsbi_v1_not_started(const hfsbi_v1        *v1,
                                        const hfsb_http_reply *reply,
                                        hfsb_str work_dir, bool *refused,
                                        hfsb_err *err) {
    hfsb_str    place = work_dir.len ? work_dir : HFSB_LIT("the sandbox");
    hfsb_status st =
        hfsbi_v1_refuse(v1, reply, place, "start the command in", err);
    *refused = reply->status == 400;
    if (*refused && work_dir.len && st == HFSB_NOT_FOUND)
        hfsbi_err_key(err, "work_dir");
    return st;
}

/* No event reported how the command ended, because of st. */
static hfsb_status hfsbi_v1_lost(const hfsbi_v1 *v1, const hfsbi_v1_stream *t,
                                 hfsb_status st, bool sent, double seconds,
                                 hfsb_err *err) {
    char     text[HFSBI_SECONDS];
    hfsb_err why = *err;
    if (t->status == HFSB_REMOTE)
        return hfsbi_fail(
            err, HFSB_REMOTE, 0,
            "Sandbox sent an event that is not JSON." HFSBI_V1_LOOK);
    if (t->status != HFSB_OK) {
        (void)hfsbi_fail_status(err, t->status, "Reading the output");
        hfsbi_err_add(err, "." HFSBI_V1_LOOK);
        return t->status;
    }
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(err, st, 0, "Cancelled.%s",
                          sent ? " What was begun there goes on." : "");
    if (st == HFSB_CONNECT || !sent) {
        if (st != HFSB_CONNECT && st != HFSB_TIMEOUT && st != HFSB_LOST)
            return st;
        return hfsbi_fail(err, HFSB_CONNECT, 0,
                          "Cannot connect to sandbox. Is %s running? Status: "
                          "%.200s",
                          v1->sandbox->page.ptr, why.msg);
    }
    if (st == HFSB_TIMEOUT) {
        hfsbi_seconds_text((long long)(seconds * 1000.0), text);
        return hfsbi_fail(err, st, 0,
                          "Timeout after %ss, and the sandbox did not report "
                          "the end." HFSBI_V1_LOOK,
                          text);
    }
    return hfsbi_fail(err, st == HFSB_OK ? HFSB_LOST : st, 0,
                      "The connection to the sandbox was lost before the "
                      "command ended (%.200s)." HFSBI_V1_LOOK,
                      st == HFSB_OK ? "the stream ended early" : why.msg);
}

/* Runs a command in the foreground. HFSB_OK with t->end; *refused: the server
   refused it, with the reason in *err. */
static hfsb_status hfsbi_v1_exec(hfsbi_v1 *v1, hfsb_str body, double seconds,
                                 hfsb_str work_dir, hfsbi_v1_stream *t,
                                 bool *refused, hfsb_err *err) {
    static const hfsb_http_field fields[] = {
        {{"Content-Type", 12}, {"application/json", 16}},
        {{"Accept", 6}, {"application/x-ndjson", 20}}};
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    const hfsb_str  none = HFSB_INIT;
    long long       began = hfsb_clock_ms();
    hfsb_status     st;
    t->line.alloc = *t->alloc;
    t->line.max = HFSBI_V1_EVENT;
    call.method = HFSB_LIT("POST");
    call.body = body;
    call.fields = fields;
    call.field_count = 2;
    call.on_body = hfsbi_v1_on_body;
    call.user = t;
    call.idle_ms = HFSBI_V1_IDLE * 1000;
    call.total_ms =
        (long long)(seconds * 1000.0) + v1->sandbox->o.times.margin_ms;
    st = hfsbi_v1_send(v1, "exec", none, "", &call, &reply, err);
    if (t->ended && t->status == HFSB_OK) st = hfsbi_ok(err);
    else if (st == HFSB_OK && reply.status / 100 != 2)
        st = hfsbi_v1_not_started(v1, &reply, work_dir, refused, err);
    else if (st == HFSB_TIMEOUT && reply.sent &&
             hfsb_clock_ms() - began < call.total_ms) {
        (void)snprintf(err->msg, sizeof err->msg, "nothing came for %d s",
                       HFSBI_V1_IDLE);
        st = hfsbi_v1_lost(v1, t, HFSB_LOST, true, seconds, err);
    } else if (st != HFSB_NOMEM || t->status != HFSB_OK)
        st = hfsbi_v1_lost(v1, t, st, reply.sent, seconds, err);
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&t->line);
    return st;
}

/* Starts a command in the background. */
static hfsb_status hfsbi_v1_start(hfsbi_v1 *v1, hfsb_str body, hfsbi_job *job,
                                  bool *refused, hfsb_err *err) {
    static const hfsb_http_field type = {{"Content-Type", 12},
                                         {"application/json", 16}};
    hfsbi_v1_stream              t = HFSB_INIT;
    hfsb_http_call               call = HFSB_INIT;
    hfsb_http_reply              reply = HFSB_INIT;
    hfsb_json_doc                doc = HFSB_INIT;
    const hfsb_str               none = HFSB_INIT;
    hfsb_status                  st;
    doc.alloc = v1->sandbox->o.alloc;
    call.method = HFSB_LIT("POST");
    call.body = body;
    call.fields = &type;
    call.field_count = 1;
    call.total_ms = v1->sandbox->o.times.margin_ms;
    st = hfsbi_v1_send(v1, "processes", none, "", &call, &reply, err);
    if (st != HFSB_OK && st != HFSB_NOMEM)
        st = hfsbi_v1_lost(v1, &t, st, reply.sent, 0, err);
    else if (st == HFSB_OK && reply.status != 200) {
        st = hfsbi_v1_not_started(
            v1, &reply, hfsb_buf_str(&job->spec.work_dir), refused, err);
    } else if (st == HFSB_OK) {
        (void)hfsb_json_parse(hfsb_buf_str(&reply.body), NULL, &doc, NULL);
        job->pid = (long)hfsb_json_int(hfsb_json_get(doc.root, "pid"), 0);
    }
    hfsb_json_free(&doc);
    hfsb_http_reply_free(&reply);
    return st;
}

static hfsb_status hfsbi_v1_run_job(void *user, hfsbi_job *job,
                                    const hfsb_cancel *cancel, bool *refused,
                                    hfsb_err *err) {
    hfsbi_v1       *v1 = (hfsbi_v1 *)user;
    hfsbi_v1_stream t = HFSB_INIT;
    hfsb_buf        body = HFSB_INIT;
    hfsb_status     st;
    (void)cancel; /* that of the thread */
    body.alloc = v1->sandbox->o.alloc;
    t.alloc = &v1->sandbox->o.alloc;
    t.job = job;
    st = hfsbi_v1_put_command(v1, job, &body, err);
    if (st == HFSB_OK && job->spec.background) {
        st = hfsbi_v1_start(v1, hfsb_buf_str(&body), job, refused, err);
    } else if (st == HFSB_OK) {
        st =
            hfsbi_v1_exec(v1, hfsb_buf_str(&body), job->spec.timeout,
                          hfsb_buf_str(&job->spec.work_dir), &t, refused, err);
        job->pid = t.pid;
        job->end = t.end;
    }
    hfsb_buf_free(&body);
    return st;
}

/* ---- kill ---- */

/* Prints the processes of a job, or of all, and ends them: TERM, then KILL
   after two seconds. $1: what follows the name of the variable. */
static const char hfsbi_v1_kill_script[] =
    "for s in TERM 0 0 0 KILL; do f=; "
    "for p in $(grep -lsz \"^" HFSBI_V1_MARK "=$1\" /proc/[0-9]*/environ); do "
    "p=${p#/proc/}; p=${p%/environ}; kill -$s $p 2>/dev/null && f=1; "
    "[ $s = TERM ] && echo $p; done; "
    "[ -n \"$f\" ] || break; [ $s = KILL ] || sleep 0.5 2>/dev/null || "
    "sleep 1; done; true";

static hfsb_status hfsbi_v1_put_kill(hfsb_str id, hfsb_buf *out,
                                     hfsb_err *err) {
    char             end[3 * HFSBI_JOB_ID + 8];
    hfsb_json_writer w;
    size_t           i, n = 0;
    for (i = 0; i < id.len && n + 5 < sizeof end; i++) /* for grep */
        n += (size_t)snprintf(end + n, sizeof end - n,
                              id.ptr[i] == '.' ? "[%c]" : "%c", id.ptr[i]);
    (void)snprintf(end + n, sizeof end - n, "%s", id.ptr ? "$" : "");
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("cmd"));
    hfsb_json_put_array(&w);
    hfsb_json_put_str(&w, HFSB_LIT("/bin/sh"));
    hfsb_json_put_str(&w, HFSB_LIT("-c"));
    hfsb_json_put_str(&w, hfsb_cstr(hfsbi_v1_kill_script));
    hfsb_json_put_str(&w, HFSB_LIT("sh"));
    hfsb_json_put_str(&w, hfsb_cstr(end));
    hfsb_json_put_end(&w);
    hfsb_json_put_key(&w, HFSB_LIT("timeout"));
    hfsb_json_put_int(&w, HFSBI_V1_KILL);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, err);
}

/* Writes "Killed 2 process(es): [7, 8]" from the lines that were printed. */
static hfsb_status hfsbi_v1_killed(hfsb_str          printed,
                                   hfsb_tool_result *result) {
    hfsb_str    rest = printed, line;
    const char *comma = "";
    hfsb_status st = hfsbi_result_ok(result, "Killed %zu process(es): [",
                                     hfsb_str_count_byte(printed, '\n'));
    while (st == HFSB_OK && hfsb_text_line(&rest, &line, NULL)) {
        unsigned long long pid = 0; /* whatever else it printed */
        (void)hfsbi_read_decimal(line, LLONG_MAX, &pid);
        st = hfsb_buf_printf(&result->output, "%s%llu", comma, pid);
        comma = ", ";
    }
    return st == HFSB_OK ? hfsb_buf_append(&result->output, HFSB_LIT("]"))
                         : st;
}

static hfsb_status hfsbi_v1_kill(void *user, hfsb_str id,
                                 const hfsb_cancel *cancel,
                                 hfsb_tool_result *result, hfsb_err *err) {
    hfsbi_v1       *v1 = (hfsbi_v1 *)user;
    hfsbi_v1_stream t = HFSB_INIT;
    hfsb_buf        body = HFSB_INIT, out = HFSB_INIT;
    bool            refused = false;
    size_t          i;
    hfsb_status     st;
    (void)cancel;
    for (i = 0; i < id.len; i++)
        if (!hfsbi_is_alpha(id.ptr[i]) && !hfsbi_is_digit(id.ptr[i]) &&
            !strchr("._-", id.ptr[i]))
            break;
    if (id.ptr && (!id.len || i < id.len || id.len >= HFSBI_JOB_ID))
        return hfsbi_result_fail(result, HFSB_NOT_FOUND,
                                 "No such job: the id of a job has letters, "
                                 "digits and \"._-\".");
    body.alloc = out.alloc = v1->sandbox->o.alloc;
    out.max = HFSBI_V1_PIDS;
    t.alloc = &v1->sandbox->o.alloc;
    t.out = &out;
    st = hfsbi_v1_put_kill(id, &body, err);
    if (st == HFSB_OK)
        st = hfsbi_v1_exec(v1, hfsb_buf_str(&body), HFSBI_V1_KILL,
                           HFSB_LIT(""), &t, &refused, err);
    if (st == HFSB_OK) st = hfsbi_v1_killed(hfsb_buf_str(&out), result);
    hfsb_buf_free(&body);
    hfsb_buf_free(&out);
    return st;
}

/* ---- the wire ---- */

/* True for a failure of the connection, not of the tool. */
static bool hfsbi_v1_is_call(hfsb_status st) {
    return st == HFSB_CONNECT || st == HFSB_LOST || st == HFSB_TIMEOUT ||
           st == HFSB_CANCELLED || st == HFSB_AUTH || st == HFSB_BUSY ||
           st == HFSB_REMOTE;
}

static hfsb_status hfsbi_v1_run(hfsbi_remote *r, hfsb_tool_result *result,
                                hfsb_err *err) {
    hfsbi_v1      *v1 = r->sandbox->v1;
    hfsb_call_opts opts = r->opts;
    hfsbi_v1_use   use;
    hfsb_status    st;
    if (!hfsbi_list_has(HFSB_LIT("bash kill read write edit multi_edit "
                                 "edit_lines apply_patch exists"),
                        ' ', hfsb_cstr(r->tool->name))) {
        return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                          "This sandbox's server has no tool %s; use bash.",
                          r->tool->name);
    }
    opts.cancel = r->cancel;
    memset(&opts.id, 0, sizeof opts.id); /* it is in the body */
    (void)hfsbi_v1_begin(v1, &use, r->cancel);
    st = hfsb_tools_call_text(v1->tools, hfsb_cstr(r->tool->name),
                              hfsb_buf_str(&r->body), &opts, result);
    hfsbi_v1_end(v1, &use);
    if (st == HFSB_OK && !result->success && hfsbi_v1_is_call(result->code))
        st = result->code;
    return st;
}

/* GET /health, which needs no token and gives the protocol. */
static hfsb_status hfsbi_v1_read_health(struct hfsbi_v1       *v1,
                                        const hfsb_http_reply *reply,
                                        hfsb_err              *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    long long     protocol;
    doc.alloc = v1->sandbox->o.alloc;
    st = hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL);
    if (st != HFSB_NOMEM)
        st = reply->status == 200 && hfsb_json_get(doc.root, "status")
                 ? HFSB_OK
                 : HFSB_BUSY;
    protocol = hfsb_json_int(hfsb_json_get(doc.root, "protocol"), 1);
    hfsb_json_free(&doc);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "Health check");
    if (st != HFSB_OK)
        return hfsbi_fail(err, st, 0, "it is not the health of a /v1 server");
    pthread_mutex_lock(&v1->sandbox->lock);
    v1->protocol = protocol;
    pthread_mutex_unlock(&v1->sandbox->lock);
    return HFSB_OK;
}

/* One request of a check. */
static hfsb_status hfsbi_v1_check_one(hfsb_sandbox *s, hfsbi_probe *p,
                                      hfsb_str path, long long ms,
                                      hfsb_http_reply *reply) {
    hfsb_http_call call = HFSB_INIT;
    hfsb_status    st;
    call.method = HFSB_LIT("GET");
    call.total_ms = ms;
    call.cancel = s->o.cancel;
    call.connect_ms = ms < s->o.times.connect_ms ? ms : s->o.times.connect_ms;
    reply->body.max = 64 * 1024;
    st = hfsbi_sandbox_send(s, path, &call, reply, &p->last);
    p->status = reply->status;
    if (st != HFSB_OK && st != HFSB_NOMEM && st != HFSB_CANCELLED &&
        st != HFSB_REFUSED && st != HFSB_ARG)
        st = HFSB_BUSY;
    if (st == HFSB_NOMEM)
        (void)hfsbi_fail_status(&p->last, st, "Health check");
    return st;
}

static hfsb_status hfsbi_v1_check(hfsb_sandbox *s, hfsbi_probe *p,
                                  long long ms) {
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_buf        path = HFSB_INIT;
    hfsb_status     st;
    path.alloc = s->o.alloc;
    st = hfsbi_v1_check_one(s, p, HFSB_LIT("health"), ms, &reply);
    if (st == HFSB_OK) st = hfsbi_v1_read_health(s->v1, &reply, &p->last);
    hfsb_http_reply_free(&reply);
    if (st == HFSB_OK &&
        hfsbi_v1_path(s->v1, "files/stat", HFSB_LIT("/"), &path) != HFSB_OK)
        st = hfsbi_fail_status(&p->last, HFSB_NOMEM, "Health check");
    if (st == HFSB_OK)
        st = hfsbi_v1_check_one(s, p, hfsb_buf_str(&path), ms, &reply);
    if (st == HFSB_OK && reply.status == 404) /* there is always a "/" */
        st = hfsbi_fail(&p->last, HFSB_NOT_FOUND, 0,
                        "Sandbox API at %s answers, but has no files: one of "
                        "several sandboxes is .../v1/sandboxes/{id}",
                        s->page.ptr);
    else if (st == HFSB_OK && (reply.status == 401 || reply.status == 403))
        st = hfsbi_fail(&p->last, HFSB_AUTH, 0,
                        "Sandbox API at %s answers, but %s", s->page.ptr,
                        s->o.api_token.len
                            ? "does not accept this token"
                            : "wants a token, which was not given");
    else if (st == HFSB_OK && reply.status >= 500)
        st = hfsbi_fail(&p->last, HFSB_BUSY, 0, "HTTP %d", reply.status);
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&path);
    return st == HFSB_AUTH && p->fresh ? HFSB_BUSY : st;
}

/* ---- open and close ---- */

/* Splits the path of a URL: *rest is "v1/" or "v1/sandboxes/{id}/". */
static hfsb_status hfsbi_v1_split(hfsb_str *path, hfsb_buf *rest) {
    const hfsb_str tail = HFSB_LIT("/v1"), many = HFSB_LIT("/v1/sandboxes/");
    size_t         at;
    while (hfsb_str_ends(*path, HFSB_LIT("/"))) path->len--;
    at = hfsb_str_find(*path, many);
    if (at != HFSB_NPOS) {
        hfsb_buf_append(rest, hfsb_str_slice(*path, at + 1, path->len));
        path->len = at;
        return hfsb_buf_append(rest, HFSB_LIT("/"));
    }
    if (hfsb_str_ends(*path, tail)) path->len -= tail.len;
    while (hfsb_str_ends(*path, HFSB_LIT("/"))) path->len--;
    return hfsb_buf_append(rest, HFSB_LIT("v1/"));
}

static hfsb_status hfsbi_v1_address(hfsb_sandbox *s, hfsbi_v1 *v1,
                                    hfsb_str url, hfsb_url *u, hfsb_err *err) {
    hfsb_str    path;
    hfsb_status st = hfsb_url_parse(url, u, err);
    if (st != HFSB_OK) return st;
    if (u->user.len || hfsb_str_find_byte(u->target, '?') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "the address of a sandbox is http://host:port or "
                          "https://host, without user, password and \"?\"");
    path = u->target;
    st = hfsbi_v1_split(&path, &v1->prefix);
    hfsb_buf_append(&s->api,
                    u->secure ? HFSB_LIT("https://") : HFSB_LIT("http://"));
    hfsb_buf_append(&s->api, u->authority);
    hfsb_buf_append(&s->api, path);
    hfsb_buf_append(&s->page, hfsb_buf_str(&s->api));
    v1->far.only_home = v1->prefix.len > 3; /* one of several sandboxes */
    if (v1->far.only_home) {
        hfsb_buf_append(&s->page, HFSB_LIT("/"));
        hfsb_buf_append(&s->page, hfsb_str_slice(hfsb_buf_str(&v1->prefix), 0,
                                                 v1->prefix.len - 1));
    }
    hfsb_buf_append(&s->api, HFSB_LIT("/"));
    if (st == HFSB_OK) st = s->api.status;
    if (st == HFSB_OK) st = s->page.status;
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Address");
}

static hfsb_status hfsbi_v1_open(hfsb_sandbox *s, hfsb_str url,
                                 hfsb_url *parsed, hfsb_err *err) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsbi_v1       *v1 = (hfsbi_v1 *)hfsbi_array(&s->o.alloc, 1, sizeof *v1);
    hfsb_status     st;
    if (!v1) return hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
    memset(v1, 0, sizeof *v1);
    s->v1 = v1;
    v1->sandbox = s;
    v1->prefix.alloc = s->o.alloc;
    hfsbi_v1_set_files(v1);
    v1->far.user = v1;
    v1->far.run = hfsbi_v1_run_job;
    v1->far.kill = hfsbi_v1_kill;
    st = hfsbi_v1_address(s, v1, url, parsed, err);
    /* a relative one is where commands run, see hfsbi_remote_put() */
    if (hfsb_str_starts(s->o.work_dir, HFSB_LIT("/")))
        opts.work_dir = s->o.work_dir;
    opts.timeout = s->o.timeout;
    opts.alloc = s->o.alloc;
    /* the session is that of the sandbox, see seen.c */
    if (st == HFSB_OK)
        st = hfsbi_tools_open_far(&v1->far, &opts, &v1->tools, err);
    return st;
}

static void hfsbi_v1_close(hfsb_sandbox *s) {
    if (!s->v1) return;
    hfsb_tools_close(s->v1->tools);
    hfsb_buf_free(&s->v1->prefix);
    hfsbi_array_free(&s->o.alloc, s->v1, 1, sizeof *s->v1);
    s->v1 = NULL;
}

const hfsb_protocol *hfsb_protocol_v1(void) {
    static const hfsb_protocol v1 = {"X-Sandbox-Token", "",
                                     hfsbi_v1_open,     hfsbi_v1_close,
                                     hfsbi_v1_check,    hfsbi_v1_run};
    return &v1;
}
