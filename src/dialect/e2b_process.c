/* e2b_process.c - E2B's process.Process: commands and terminals.

   Start and Connect answer with a stream of a program (program.c):

       Start ---> WAITING --> BEGUN: start, data ..., end --> freed
       Connect -------------->  |
                                +-- deadline, client gone --> freed

   A stream takes the output at the pace of its client: while 256 KiB wait to
   be sent it takes nothing, and the program is held when its buffer is full.
   A client that goes away leaves the program running; the exit is kept for a
   later Connect.

   e2b_input.c has the other direction. */
#include "dialect_private.h"

enum {
    HFSBI_E2B_TAKE = 12 << 10 /* bytes of output in one message */
};

/* ---- programs ---- */

/* Finds the program of {"pid":1} or {"tag":""}, which the caller holds; NULL
   after an error reply. */
static hfsbi_job *hfsbi_e2b_select(hfsbi_e2b_box *box, hfsb_request *request,
                                   const hfsb_json_value *selector) {
    long long  pid = hfsb_json_int(hfsb_json_get(selector, "pid"), 0);
    hfsb_str   tag = hfsbi_json_get_str(selector, "tag");
    hfsbi_job *job = NULL;
    if (pid < 0 || pid > LONG_MAX) pid = 0;
    if (!pid && !tag.len) {
        hfsbi_e2b_fail(request, HFSBI_CONNECT_INVALID_ARGUMENT,
                       "process must have a pid or a tag.");
        return NULL;
    }
    job = hfsbi_program_find(box->guest.tools, HFSB_LIT(""), (long)pid, tag);
    if (job) return job;
    if (pid)
        hfsbi_e2b_fail(request, HFSBI_CONNECT_NOT_FOUND,
                       "There is no process with pid %lld.", pid);
    else
        hfsbi_e2b_fail(request, HFSBI_CONNECT_NOT_FOUND,
                       "There is no process with tag \"%.*s\".",
                       (int)(tag.len < 200 ? tag.len : 200), tag.ptr);
    return NULL;
}

HFSBI_FN hfsbi_job *hfsbi_e2b_select_running(hfsbi_e2b_box         *box,
                                             hfsb_request          *request,
                                             const hfsb_json_value *message) {
    hfsbi_job *job =
        hfsbi_e2b_select(box, request, hfsb_json_get(message, "process"));
    if (!job || job->state == HFSBI_JOB_RUNNING) return job;
    hfsbi_e2b_fail(
        request, HFSBI_CONNECT_NOT_FOUND, "Process %ld %s.", job->pid,
        job->state == HFSBI_JOB_DONE ? "has ended" : "has not started");
    hfsbi_program_release(job);
    return NULL;
}

/* ---- streams of a program ---- */

typedef struct hfsbi_e2b_stream {
    hfsbi_e2b_box    *box;
    hfsb_request     *request;
    hfsbi_job        *job;
    hfsbi_feed_reader reader;
    hfsbi_timer       beat, deadline;
    long long         every; /* ms between keepalives */
    long long         until; /* the deadline; 0: none */
    long long         sent;  /* when the last message was */
    bool              begun;
    bool              starts; /* the deadline is also that of the program */
} hfsbi_e2b_stream;

static void hfsbi_e2b_stream_free(hfsbi_e2b_stream *s) {
    hfsbi_loop *loop = s->box->guest.tools->loop;
    hfsb_alloc  alloc = s->box->guest.tools->alloc;
    hfsbi_loop_timer_clear(loop, &s->beat);
    hfsbi_loop_timer_clear(loop, &s->deadline);
    hfsbi_feed_detach(&s->reader);
    if (s->job) {
        (void)hfsbi_program_on_start(s->job, NULL, s);
        hfsbi_program_release(s->job);
    }
    hfsbi_guest_release(&s->box->guest);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

/* Ends the stream; message: of an error (NULL: none). */
static void hfsbi_e2b_stream_end(hfsbi_e2b_stream *s, hfsbi_connect_code code,
                                 const char *message) {
    hfsb_request *request = s->request;
    hfsb_request_on_gone(request, NULL, NULL);
    hfsb_reply_on_drained(request, NULL, NULL);
    if (s->begun) hfsbi_e2b_end(request, code, message);
    else hfsbi_e2b_fail(request, code, "%s", message ? message : "");
    hfsbi_e2b_stream_free(s);
}

static void hfsbi_e2b_stream_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_e2b_stream_free((hfsbi_e2b_stream *)user);
}

static void hfsbi_e2b_stream_late(hfsbi_timer *timer) {
    hfsbi_e2b_stream *s =
        (hfsbi_e2b_stream *)(void *)((char *)timer -
                                     offsetof(hfsbi_e2b_stream, deadline));
    hfsbi_e2b_stream_end(s, HFSBI_CONNECT_DEADLINE_EXCEEDED,
                         "The timeout of the request has passed.");
}

static void hfsbi_e2b_stream_beat(hfsbi_timer *timer) {
    hfsbi_e2b_stream *s =
        (hfsbi_e2b_stream *)(void *)((char *)timer -
                                     offsetof(hfsbi_e2b_stream, beat));
    long long now = hfsb_clock_ms();
    if (now - s->sent >= s->every) {
        s->sent = now;
        (void)hfsbi_e2b_send(s->request,
                             HFSB_LIT("{\"event\":{\"keepalive\":{}}}"));
    }
    hfsbi_loop_timer(s->box->guest.tools->loop, timer, s->sent + s->every);
}

/* The words of a shell for a signal. */
static const char *hfsbi_e2b_signal_name(int number) {
    switch (number) {
    case SIGHUP: return "hangup";
    case SIGINT: return "interrupt";
    case SIGQUIT: return "quit";
    case SIGILL: return "illegal instruction";
    case SIGTRAP: return "trace/breakpoint trap";
    case SIGABRT: return "aborted";
    case SIGBUS: return "bus error";
    case SIGFPE: return "floating point exception";
    case SIGKILL: return "killed";
    case SIGSEGV: return "segmentation fault";
    case SIGPIPE: return "broken pipe";
    case SIGALRM: return "alarm clock";
    case SIGTERM: return "terminated";
    default: return NULL;
    }
}

/* Sends how the program has ended. */
static void hfsbi_e2b_send_exit(hfsb_request          *request,
                                const hfsbi_feed_exit *end) {
    bool exited = end->end == HFSB_PROC_EXITED;
    int  code = exited ? end->exit_code : -1;
    char status[64], text[256];
    if (exited) (void)snprintf(status, sizeof status, "exit status %d", code);
    else if (hfsbi_e2b_signal_name(end->signal))
        (void)snprintf(status, sizeof status, "signal: %s",
                       hfsbi_e2b_signal_name(end->signal));
    else if (end->end == HFSB_PROC_SIGNALED)
        (void)snprintf(status, sizeof status, "signal %d", end->signal);
    else (void)snprintf(status, sizeof status, "unknown");
    (void)snprintf(text, sizeof text,
                   "{\"event\":{\"end\":{\"exitCode\":%d,\"exited\":%s,"
                   "\"status\":\"%s\"%s%s%s}}}",
                   code, exited ? "true" : "false", status,
                   code ? ",\"error\":\"" : "", code ? status : "",
                   code ? "\"" : "");
    (void)hfsbi_e2b_send(request, hfsb_cstr(text));
}

/* Sends a piece of output. */
static bool hfsbi_e2b_send_data(hfsb_request           *request,
                                const hfsbi_feed_event *event) {
    char        text[64 + (HFSBI_E2B_TAKE + 2) / 3 * 4];
    const char *name = event->kind == HFSBI_FEED_PTY      ? "pty"
                       : event->kind == HFSBI_FEED_STDERR ? "stderr"
                                                          : "stdout";
    size_t      n = (size_t)snprintf(text, sizeof text,
                                     "{\"event\":{\"data\":{\"%s\":\"", name);
    n = (size_t)(hfsbi_base64_write(event->bytes, text + n) - text);
    memcpy(text + n, "\"}}}", 4);
    return hfsbi_e2b_send(request, hfsb_str_make(text, n + 4));
}

/* Sends what there is, as long as the client takes it. */
static void hfsbi_e2b_stream_pump(hfsbi_e2b_stream *s) {
    hfsbi_feed_event event;
    char             bytes[HFSBI_E2B_TAKE], note[80];
    while (hfsb_reply_waiting(s->request) < HFSBI_E2B_FULL &&
           hfsbi_feed_take(&s->reader, bytes, sizeof bytes, &event)) {
        s->sent = hfsb_clock_ms();
        if (event.kind == HFSBI_FEED_GAP) {
            if (!event.gone_bytes) continue;
            (void)snprintf(note, sizeof note,
                           "\n[%llu bytes of output were lost]\n",
                           event.gone_bytes);
            /* the client of a terminal reads nothing else */
            event.kind =
                s->job->spec.raw.cols ? HFSBI_FEED_PTY : HFSBI_FEED_STDERR;
            event.bytes = hfsb_cstr(note);
        }
        if (event.kind != HFSBI_FEED_EXITED) {
            if (!hfsbi_e2b_send_data(s->request, &event)) return;
            continue;
        }
        if (s->starts && s->job->end.timed_out) {
            hfsbi_e2b_stream_late(&s->deadline);
            return;
        }
        hfsbi_e2b_send_exit(s->request, &event.exit);
        hfsbi_e2b_stream_end(s, HFSBI_CONNECT_UNKNOWN, NULL);
        return;
    }
}

static void hfsbi_e2b_stream_news(void *user) {
    hfsbi_e2b_stream *s = (hfsbi_e2b_stream *)user;
    if (s->begun) hfsbi_e2b_stream_pump(s);
}

static void hfsbi_e2b_stream_drained(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_e2b_stream_pump((hfsbi_e2b_stream *)user);
}

/* The program runs, or could not be started. */
static void hfsbi_e2b_stream_begin(void *user, hfsbi_job *job) {
    hfsbi_e2b_stream *s = (hfsbi_e2b_stream *)user;
    hfsbi_loop       *loop = s->box->guest.tools->loop;
    const char       *failure = hfsbi_program_failure(job);
    char              text[80];
    if (failure) {
        hfsb_status st = job->result.code;
        hfsbi_e2b_stream_end(s,
                             job->end.timed_out
                                 ? HFSBI_CONNECT_DEADLINE_EXCEEDED
                             : st == HFSB_NOT_FOUND || st == HFSB_DENIED
                                 ? HFSBI_CONNECT_INVALID_ARGUMENT
                                 : hfsbi_e2b_code(st),
                             failure);
        return;
    }
    s->begun = true;
    s->sent = hfsb_clock_ms();
    hfsb_reply_begin(s->request, 200, "application/connect+json");
    hfsb_reply_on_drained(s->request, hfsbi_e2b_stream_drained, s);
    (void)snprintf(text, sizeof text, "{\"event\":{\"start\":{\"pid\":%ld}}}",
                   job->pid);
    (void)hfsbi_e2b_send(s->request, hfsb_cstr(text));
    hfsbi_loop_timer(loop, &s->beat, s->sent + s->every);
    if (s->until) hfsbi_loop_timer(loop, &s->deadline, s->until);
    hfsbi_e2b_stream_pump(s);
}

/* A stream for a request, without a program yet; NULL after an error
   reply. */
static hfsbi_e2b_stream *hfsbi_e2b_stream_new(hfsbi_e2b_box *box,
                                              hfsb_request  *request) {
    long long         ms = hfsbi_e2b_field(request, "connect-timeout-ms", 0);
    hfsbi_e2b_stream *s = (hfsbi_e2b_stream *)hfsbi_array(
        &box->guest.tools->alloc, 1, sizeof *s);
    if (!s) {
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->box = box;
    s->request = request;
    s->every = hfsbi_e2b_beat_ms(request);
    if (ms > 0) s->until = hfsb_clock_ms() + ms;
    s->beat.fn = hfsbi_e2b_stream_beat;
    s->deadline.fn = hfsbi_e2b_stream_late;
    s->reader.on_news = hfsbi_e2b_stream_news;
    s->reader.user = s;
    hfsbi_guest_hold(&box->guest);
    return s;
}

/* Follows a program, which the stream holds from now on. */
static void hfsbi_e2b_stream_follow(hfsbi_e2b_stream *s, hfsbi_job *job,
                                    unsigned long long from) {
    s->job = job;
    hfsbi_feed_attach(job->feed, &s->reader, from);
    hfsb_request_on_gone(s->request, hfsbi_e2b_stream_gone, s);
    if (!hfsbi_program_on_start(job, hfsbi_e2b_stream_begin, s))
        hfsbi_e2b_stream_begin(s, job);
}

/* ---- Start and Connect ---- */

/* Appends a text and a NUL; false if it has a NUL. */
static bool hfsbi_e2b_put_arg(hfsb_buf *out, hfsb_str text) {
    if (hfsb_str_find_byte(text, '\0') != HFSB_NPOS) return false;
    hfsb_buf_append(out, text);
    hfsb_buf_append_byte(out, '\0');
    return true;
}

/* Fills the spec of a program. HFSB_OK; HFSB_ARG; HFSB_NOMEM. */
static hfsb_status hfsbi_e2b_spec_fill(const hfsbi_e2b_box   *box,
                                       const hfsb_json_value *message,
                                       hfsbi_job_spec *spec, hfsb_err *err) {
    const hfsb_json_value *p = hfsb_json_get(message, "process");
    const hfsb_json_value *size =
        hfsb_json_get(hfsb_json_get(message, "pty"), "size");
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(p, "args"));
    long long      cols = hfsb_json_int(hfsb_json_get(size, "cols"), 0);
    long long      rows = hfsb_json_int(hfsb_json_get(size, "rows"), 0);
    hfsb_str       cmd = hfsbi_json_get_str(p, "cmd");
    bool           ok = hfsbi_e2b_put_arg(&spec->raw.argv, cmd);
    hfsb_status    st;
    if (!cmd.len)
        return hfsbi_fail(err, HFSB_ARG, 0, "process.cmd is missing.");
    while (hfsb_json_next(&it))
        ok = hfsbi_e2b_put_arg(&spec->raw.argv,
                               hfsb_json_str(it.value, HFSB_LIT(""))) &&
             ok;
    if (!ok)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A command or argument contains a NUL.");
    if (hfsb_json_type_of(hfsb_json_get(message, "pty")) == HFSB_JSON_OBJECT) {
        spec->raw.cols = cols > 0 && cols <= 65535 ? (unsigned)cols : 80;
        spec->raw.rows = rows > 0 && rows <= 65535 ? (unsigned)rows : 24;
    }
    spec->raw.keep_input =
        spec->raw.cols ||
        hfsb_json_bool(hfsb_json_get(message, "stdin"), true);
    hfsb_buf_append(&spec->raw.tag, hfsbi_json_get_str(message, "tag"));
    hfsb_buf_append(&spec->env, hfsb_buf_str(&box->env));
    st = hfsbi_e2b_set_env(&spec->env, hfsb_json_get(p, "envs"), err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_e2b_path(box, hfsbi_json_get_str(p, "cwd"), &spec->work_dir))
        return HFSB_NOMEM;
    return hfsbi_job_spec_status(spec);
}

static void hfsbi_e2b_start(void *user, hfsb_request *request) {
    hfsbi_e2b_ask     ask;
    hfsbi_e2b_stream *s;
    hfsbi_job_spec    spec;
    hfsbi_job        *job = NULL;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, true, &ask)) return;
    s = hfsbi_e2b_stream_new(ask.box, request);
    if (!s) {
        hfsb_json_free(&ask.doc);
        return;
    }
    hfsbi_job_spec_init(&spec, &ask.box->guest.tools->alloc);
    st = hfsbi_e2b_spec_fill(ask.box, ask.doc.root, &spec, &err);
    s->starts = true;
    if (s->until) /* the same deadline ends the program */
        spec.timeout = (double)(s->until - hfsb_clock_ms()) / 1000.0;
    if (s->until && spec.timeout <= 0) spec.timeout = 0.001;
    if (st == HFSB_OK)
        st = hfsbi_program_start(ask.box->guest.tools, &spec, 0, &job, &err);
    hfsb_json_free(&ask.doc);
    hfsbi_job_spec_free(&spec);
    if (st == HFSB_OK) hfsbi_e2b_stream_follow(s, job, 0);
    else
        hfsbi_e2b_stream_end(s, hfsbi_e2b_code(st),
                             err.msg[0] ? err.msg : hfsb_status_text(st));
}

static void hfsbi_e2b_connect(void *user, hfsb_request *request) {
    hfsbi_e2b_ask     ask;
    hfsbi_e2b_stream *s = NULL;
    hfsbi_job        *job = NULL;
    bool              replay;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, true, &ask)) return;
    replay = hfsb_json_bool(hfsb_json_get(ask.doc.root, "replay"), false);
    job = hfsbi_e2b_select(ask.box, request,
                           hfsb_json_get(ask.doc.root, "process"));
    hfsb_json_free(&ask.doc);
    if (job) s = hfsbi_e2b_stream_new(ask.box, request);
    if (s) hfsbi_e2b_stream_follow(s, job, replay ? 0 : HFSBI_FEED_NOW);
    else hfsbi_program_release(job);
}

/* ---- calls without a stream ---- */

static void hfsbi_e2b_put_program(hfsb_json_writer *w, const hfsbi_job *job) {
    const hfsb_buf *argv = &job->spec.raw.argv;
    size_t          at = strlen(argv->ptr) + 1;
    hfsb_json_put_object(w);
    hfsb_json_put_key(w, HFSB_LIT("config"));
    hfsb_json_put_object(w);
    hfsb_json_put_member_str(w, "cmd", hfsb_cstr(argv->ptr));
    hfsb_json_put_key(w, HFSB_LIT("args"));
    hfsb_json_put_array(w);
    for (; at < argv->len; at += strlen(argv->ptr + at) + 1)
        hfsb_json_put_str(w, hfsb_cstr(argv->ptr + at));
    hfsb_json_put_end(w);
    hfsb_json_put_key(w, HFSB_LIT("envs"));
    hfsb_json_put_object(w);
    hfsbi_e2b_put_env(w, &job->spec.env);
    hfsb_json_put_end(w);
    hfsb_json_put_member_str(w, "cwd", hfsb_buf_str(&job->spec.work_dir));
    hfsb_json_put_end(w);
    hfsb_json_put_member_int(w, "pid", job->pid);
    if (job->spec.raw.tag.len)
        hfsb_json_put_member_str(w, "tag", hfsb_buf_str(&job->spec.raw.tag));
    hfsb_json_put_end(w);
}

static void hfsbi_e2b_list(void *user, hfsb_request *request) {
    hfsbi_e2b_ask    ask;
    hfsb_json_writer w;
    hfsb_buf         out = HFSB_INIT;
    const hfsbi_job *job;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask)) return;
    out.alloc = ask.doc.alloc;
    hfsb_json_free(&ask.doc);
    hfsb_json_writer_init(&w, &out, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("processes"));
    hfsb_json_put_array(&w);
    for (job = ask.box->guest.tools->jobs; job; job = job->next)
        if (job->feed && job->state == HFSBI_JOB_RUNNING &&
            job->spec.raw.argv.len)
            hfsbi_e2b_put_program(&w, job);
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
    hfsb_buf_free(&out);
}

/* Replies {} or with the failure, and releases the program. */
static void hfsbi_e2b_reply_status(hfsb_request *request, hfsbi_job *job,
                                   hfsb_status st, const hfsb_err *err) {
    if (st == HFSB_OK) hfsbi_e2b_reply_empty(request);
    else hfsbi_e2b_fail(request, hfsbi_e2b_code(st), "%s", err->msg);
    hfsbi_program_release(job);
}

static void hfsbi_e2b_signal(void *user, hfsb_request *request) {
    hfsbi_e2b_ask ask;
    hfsb_err      err = HFSB_INIT;
    hfsbi_job    *job;
    hfsb_str      name;
    int           number;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask)) return;
    name = hfsbi_json_get_str(ask.doc.root, "signal");
    number = (int)hfsb_json_int(hfsb_json_get(ask.doc.root, "signal"), 0);
    if (hfsb_str_equal(name, HFSB_LIT("SIGNAL_SIGKILL"))) number = SIGKILL;
    if (hfsb_str_equal(name, HFSB_LIT("SIGNAL_SIGTERM"))) number = SIGTERM;
    job = hfsbi_e2b_select_running(ask.box, request, ask.doc.root);
    hfsb_json_free(&ask.doc);
    if (!job) return;
    if (number != SIGKILL && number != SIGTERM) {
        hfsbi_program_release(job);
        hfsbi_e2b_fail(request, HFSBI_CONNECT_INVALID_ARGUMENT,
                       "signal must be SIGNAL_SIGKILL or SIGNAL_SIGTERM.");
        return;
    }
    hfsbi_e2b_reply_status(
        request, job, hfsbi_program_signal(job, number, HFSB_PROC_TREE, &err),
        &err);
}

static void hfsbi_e2b_update(void *user, hfsb_request *request) {
    hfsbi_e2b_ask          ask;
    hfsb_err               err = HFSB_INIT;
    const hfsb_json_value *size;
    hfsbi_job             *job;
    unsigned long long     cols, rows;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask)) return;
    size = hfsb_json_get(hfsb_json_get(ask.doc.root, "pty"), "size");
    cols = hfsb_json_uint(hfsb_json_get(size, "cols"), 0);
    rows = hfsb_json_uint(hfsb_json_get(size, "rows"), 0);
    job = hfsbi_e2b_select_running(ask.box, request, ask.doc.root);
    hfsb_json_free(&ask.doc);
    if (!job) return;
    if (!size) { /* nothing is to be changed */
        hfsbi_e2b_reply_status(request, job, HFSB_OK, &err);
        return;
    }
    hfsbi_e2b_reply_status(
        request, job,
        hfsbi_program_resize(job, cols > 65535 ? 0 : (unsigned)cols,
                             rows > 65535 ? 0 : (unsigned)rows, &err),
        &err);
}

/* ---- the routes ---- */

HFSBI_FN hfsb_status hfsbi_e2b_add_process(hfsbi_e2b *e2b, hfsb_err *err) {
#define HFSBI_E2B_ROUTE(name, fn) \
    { "POST", "/process.Process/" name, fn, false, NULL, NULL }
    static const hfsbi_dialect_route routes[] = {
        HFSBI_E2B_ROUTE("Start", hfsbi_e2b_start),
        HFSBI_E2B_ROUTE("Connect", hfsbi_e2b_connect),
        HFSBI_E2B_ROUTE("List", hfsbi_e2b_list),
        HFSBI_E2B_ROUTE("SendSignal", hfsbi_e2b_signal),
        HFSBI_E2B_ROUTE("Update", hfsbi_e2b_update),
        {NULL, NULL, NULL, false, NULL, NULL}};
#undef HFSBI_E2B_ROUTE
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
