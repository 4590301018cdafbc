/* codex_process.c - the processes of a client of codex.c.

   A process is a program (program.c), found by the id that the client chose.
   Its events are pushed by a reader of its feed:

       start --> STARTING --> pushed as they come --> CLOSED was sent
                    |                                     |
                 on_start                          the job is released; a read
              answers the start                    finds it while it is kept

   Numbers are those of the feed. A client needs every number: where events are
   lost for lack of memory, it gets a note with the first of their numbers, and
   empty events with the others.

   process/read is for a client that was away: it has a reader of its own, from
   the number that the client names. */
#include "dialect_private.h"

enum {
    HFSBI_CODEX_PROCESSES = 256,  /* of a session, */
    HFSBI_CODEX_FINISHED = 64,    /* and of these known after their end */
    HFSBI_CODEX_READS = 64,       /* of a session that wait */
    HFSBI_CODEX_CHUNKS = 8192,    /* of one read */
    HFSBI_CODEX_READ = 4 << 20,   /* bytes of one read at most */
    HFSBI_CODEX_WAIT_MS = 60000,  /* longest wait of a read */
    HFSBI_CODEX_REUSE_MS = 30000, /* an id is free that long after its end */
    HFSBI_CODEX_WRITES = 32       /* ids of writes that are remembered */
};

struct hfsbi_codex_process {
    hfsbi_codex_process *next;
    hfsbi_codex_session *session;
    hfsb_buf             id;       /* the client's */
    char                 name[64]; /* the id of the job */
    hfsbi_job           *job;      /* held; NULL: all of it was sent */
    hfsbi_codex_call    *starting; /* waits for the start */
    hfsbi_feed_reader    reader;
    unsigned long        epoch;  /* connection that started it */
    unsigned long        pushed; /* connection that got the last event, */
    bool                 whole;  /* and all before it */
    long long            closed; /* hfsb_clock_ms(); 0: not yet */
    bool                 input;  /* it takes input */
    unsigned long long   lost;   /* events that are gone, to report, */
    unsigned long long   lost_bytes;
    unsigned long long   lost_seq;                   /* from this number on */
    unsigned long long   writes[HFSBI_CODEX_WRITES]; /* hashes; a ring */
    size_t               write_count;                /* ever */
};

/* ---- the table ---- */

static hfsb_tools *hfsbi_codex_tools(const hfsbi_codex_session *s) {
    return s->codex->dialect.tools;
}

static hfsbi_codex_process *
hfsbi_codex_process_find(const hfsbi_codex_session *s, hfsb_str id) {
    hfsbi_codex_process *p = s->processes;
    while (p && !hfsb_str_equal(hfsb_buf_str(&p->id), id)) p = p->next;
    return p;
}

/* Stops following the process. */
static void hfsbi_codex_process_release(hfsbi_codex_process *p) {
    if (!p->job) return;
    (void)hfsbi_program_on_start(p->job, NULL, p);
    hfsbi_feed_detach(&p->reader);
    hfsbi_program_release(p->job);
    p->job = NULL;
}

static void hfsbi_codex_process_free(hfsbi_codex_process *p) {
    hfsbi_codex_session  *s = p->session;
    hfsbi_codex_process **link = &s->processes;
    while (*link != p) link = &(*link)->next;
    *link = p->next;
    s->process_count--;
    hfsbi_codex_process_release(p);
    hfsb_buf_free(&p->id);
    hfsbi_array_free(&s->codex->dialect.alloc, p, 1, sizeof *p);
}

/* Forgets the oldest ended processes, if there are many. */
static void hfsbi_codex_processes_trim(hfsbi_codex_session *s) {
    hfsbi_codex_process *p, *oldest = NULL;
    size_t               n = 0;
    for (p = s->processes; p; p = p->next) {
        if (!p->closed) continue;
        n++;
        oldest = p;
    }
    if (n > HFSBI_CODEX_FINISHED) hfsbi_codex_process_free(oldest);
}

static hfsbi_codex_process *hfsbi_codex_process_new(hfsbi_codex_session *s,
                                                    hfsb_str             id) {
    const hfsb_alloc    *alloc = &s->codex->dialect.alloc;
    hfsbi_codex_process *p =
        (hfsbi_codex_process *)hfsbi_array(alloc, 1, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->session = s;
    p->id.alloc = *alloc;
    p->next = s->processes;
    s->processes = p;
    s->process_count++;
    if (hfsb_buf_append(&p->id, id) != HFSB_OK) {
        hfsbi_codex_process_free(p);
        return NULL;
    }
    (void)snprintf(p->name, sizeof p->name, "codex-%.16s-%lu", s->id,
                   ++s->started);
    return p;
}

/* Answers the start that waits, if one does. */
static void hfsbi_codex_give_up(hfsbi_codex_process *p, const char *why) {
    hfsbi_codex_call *call = p->starting;
    p->starting = NULL;
    if (!call) return;
    hfsbi_codex_fail(call, HFSBI_CODEX_INTERNAL, "%s", why);
    hfsbi_codex_answer(call);
}

HFSBI_FN void hfsbi_codex_processes_end(hfsbi_codex_session *s) {
    while (s->processes) {
        hfsbi_codex_process *p = s->processes;
        if (p->job) { /* hfsbi_codex_started() must not see it */
            (void)hfsbi_program_on_start(p->job, NULL, p);
            (void)hfsbi_job_kill(hfsbi_codex_tools(s), p->job);
        }
        hfsbi_codex_give_up(p, "The session has ended.");
        hfsbi_codex_process_free(p);
    }
}

/* ---- events ---- */

static const char *hfsbi_codex_stream(hfsbi_feed_kind kind) {
    return kind == HFSBI_FEED_PTY      ? "pty"
           : kind == HFSBI_FEED_STDERR ? "stderr"
                                       : "stdout";
}

static int hfsbi_codex_exit(const hfsbi_feed_exit *e) {
    if (e->end == HFSB_PROC_EXITED) return e->exit_code;
    return e->end == HFSB_PROC_SIGNALED ? 128 + e->signal : -1;
}

/* Appends "seq", "stream" and "chunk". */
static void hfsbi_codex_put_chunk(hfsb_buf *out, unsigned long long seq,
                                  hfsbi_feed_kind kind, hfsb_str bytes) {
    hfsb_buf_printf(out, "\"seq\":%llu,\"stream\":\"%s\",\"chunk\":", seq,
                    hfsbi_codex_stream(kind));
    hfsbi_codex_put_base64(out, bytes);
}

static void hfsbi_codex_send_event(hfsbi_codex_process    *p,
                                   const hfsbi_feed_event *e) {
    const char *method = e->kind == HFSBI_FEED_EXITED   ? "exited"
                         : e->kind == HFSBI_FEED_CLOSED ? "closed"
                                                        : "output";
    hfsb_buf    out = HFSB_INIT;
    if (p->pushed != p->session->epoch) p->whole = e->seq == 1;
    p->pushed = p->session->epoch;
    out.alloc = p->id.alloc;
    hfsb_buf_printf(
        &out, "{\"method\":\"process/%s\",\"params\":{\"processId\":", method);
    hfsbi_json_put_quoted(&out, hfsb_buf_str(&p->id));
    hfsb_buf_append_byte(&out, ',');
    if (e->kind == HFSBI_FEED_EXITED)
        hfsb_buf_printf(&out,
                        "\"seq\":%llu,\"exitCode\":%d,"
                        "\"sandboxDenied\":false",
                        e->seq, hfsbi_codex_exit(&e->exit));
    else if (e->kind == HFSBI_FEED_CLOSED)
        hfsb_buf_printf(&out, "\"seq\":%llu", e->seq);
    else hfsbi_codex_put_chunk(&out, e->seq, e->kind, e->bytes);
    hfsb_buf_append(&out, HFSB_LIT("}}"));
    hfsbi_codex_notify(p->session, &out);
    hfsb_buf_free(&out);
}

/* Sends one of the events that are lost. */
static void hfsbi_codex_send_lost(hfsbi_codex_process *p) {
    hfsbi_feed_event e;
    char             note[80];
    memset(&e, 0, sizeof e);
    e.kind = HFSBI_FEED_STDERR;
    e.seq = p->lost_seq++;
    p->lost--;
    if (p->lost_bytes) {
        (void)snprintf(note, sizeof note,
                       "\n[%llu bytes of output were lost]\n", p->lost_bytes);
        e.bytes = hfsb_cstr(note);
        p->lost_bytes = 0;
    }
    hfsbi_codex_send_event(p, &e);
}

/* Sends what there is, as far as the client takes it. */
static void hfsbi_codex_process_push(hfsbi_codex_process *p) {
    char             block[HFSBI_FEED_EVENT + 3];
    hfsbi_feed_event e;
    while (p->job && !p->starting && hfsbi_codex_may_send(p->session)) {
        if (p->lost) {
            hfsbi_codex_send_lost(p);
            continue;
        }
        if (!hfsbi_feed_take(&p->reader, block, sizeof block, &e)) return;
        if (e.kind == HFSBI_FEED_GAP) {
            p->lost = e.gone_events;
            p->lost_bytes = e.gone_bytes;
            p->lost_seq = e.seq - e.gone_events;
            continue;
        }
        hfsbi_codex_send_event(p, &e);
        if (e.kind != HFSBI_FEED_CLOSED) continue;
        p->closed = hfsb_clock_ms();
        hfsbi_codex_process_release(p);
    }
}

static void hfsbi_codex_news(void *user) {
    hfsbi_codex_process_push((hfsbi_codex_process *)user);
}

HFSBI_FN void hfsbi_codex_push(hfsbi_codex_session *s) {
    hfsbi_codex_process *p;
    for (p = s->processes; p; p = p->next) hfsbi_codex_process_push(p);
}

/* ---- process/start ---- */

/* The process runs, or has failed to. */
static void hfsbi_codex_started(void *user, hfsbi_job *job) {
    hfsbi_codex_process *p = (hfsbi_codex_process *)user;
    hfsbi_codex_call    *call = p->starting;
    const char          *why = hfsbi_program_failure(job);
    hfsb_buf            *out;
    p->starting = NULL;
    if (why) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INTERNAL, "%s", why);
        hfsbi_codex_process_free(p);
        hfsbi_codex_answer(call);
        return;
    }
    out = hfsbi_codex_result(call);
    hfsb_buf_append(out, HFSB_LIT("{\"processId\":"));
    hfsbi_json_put_quoted(out, hfsb_buf_str(&p->id));
    hfsb_buf_append(out, HFSB_LIT(",\"sandboxType\":\"none\"}"));
    hfsbi_codex_answer(call);
    hfsbi_codex_process_push(p);
}

/* Follows a job, which is held, from its first event on. */
static void hfsbi_codex_follow(hfsbi_codex_process *p, hfsbi_job *job) {
    hfsbi_codex_process_release(p);
    p->job = job;
    p->closed = 0;
    p->lost = 0;
    p->reader.on_news = hfsbi_codex_news;
    p->reader.user = p;
    hfsbi_feed_attach(job->feed, &p->reader, 0);
    if (!hfsbi_program_on_start(job, hfsbi_codex_started, p))
        hfsbi_codex_started(p, job);
}

/* Starts the program of a process, or joins it again. Then its events come
   again, unless this connection has got them since it resumed the session. */
static void hfsbi_codex_launch(hfsbi_codex_call *call, hfsbi_codex_process *p,
                               hfsbi_job_spec *spec) {
    hfsbi_codex_session *s = p->session;
    bool                 again = p->epoch != 0;
    bool                 got = again && p->pushed == s->epoch && p->whole;
    hfsbi_job           *job;
    hfsb_buf_append(&spec->id, hfsb_cstr(p->name));
    if (hfsbi_program_start(hfsbi_codex_tools(s), spec, 0, &job, &call->err) !=
        HFSB_OK) {
        if (again || call->err.code == HFSB_REFUSED)
            call->code = HFSBI_CODEX_INVALID;
        if (!again) hfsbi_codex_process_free(p);
        hfsbi_codex_answer(call);
        return;
    }
    p->epoch = s->epoch;
    p->starting = call;
    if (!got) {
        hfsbi_codex_follow(p, job);
        return;
    }
    hfsbi_codex_started(p, job);
    hfsbi_program_release(job);
}

/* True when a start may use the id of a known process. An id is free again a
   while after its process has ended; after the session was resumed the start
   may be a repetition, and joins. */
static bool hfsbi_codex_may_start(hfsbi_codex_call     *call,
                                  hfsbi_codex_process **p) {
    hfsbi_codex_session *s = call->session;
    if (*p && (*p)->epoch != s->epoch) {
        hfsbi_codex_give_up(*p, "The connection was lost.");
        return true;
    }
    if (*p && (*p)->closed &&
        hfsb_clock_ms() - (*p)->closed >= HFSBI_CODEX_REUSE_MS) {
        hfsbi_codex_process_free(*p);
        *p = NULL;
    }
    hfsbi_codex_processes_trim(s);
    if (*p)
        hfsbi_codex_fail(
            call, HFSBI_CODEX_INVALID, "process %.*s already exists",
            (int)hfsb_utf8_offset(hfsb_buf_str(&(*p)->id), 80), (*p)->id.ptr);
    else if (s->process_count >= HFSBI_CODEX_PROCESSES)
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID,
                         "This session has %d processes: end some first.",
                         HFSBI_CODEX_PROCESSES);
    else return true;
    return false;
}

HFSBI_FN void hfsbi_codex_start(hfsbi_codex_call *call) {
    hfsbi_codex_process *p;
    hfsbi_job_spec       spec;
    hfsb_str             id = HFSB_INIT;
    bool                 input = false;
    hfsbi_job_spec_init(&spec, &call->codex->dialect.alloc);
    if (!hfsbi_codex_str(call, "processId", &id) ||
        !hfsbi_codex_spec(call, &spec, &input)) {
        hfsbi_codex_answer(call);
    } else {
        p = hfsbi_codex_process_find(call->session, id);
        if (!hfsbi_codex_may_start(call, &p)) {
            hfsbi_codex_answer(call);
        } else {
            if (!p) p = hfsbi_codex_process_new(call->session, id);
            if (p) p->input = input;
            if (p) hfsbi_codex_launch(call, p, &spec);
            else {
                hfsbi_codex_fail(call, HFSBI_CODEX_INTERNAL, "Out of memory.");
                hfsbi_codex_answer(call);
            }
        }
    }
    hfsbi_job_spec_free(&spec);
}

/* ---- process/read ---- */

static void hfsbi_codex_read_end(hfsbi_codex_call *call) {
    hfsbi_codex_session *s = call->session;
    hfsbi_codex_call   **link = &s->reads;
    hfsbi_feed_detach(&call->reader);
    hfsbi_loop_timer_clear(call->codex->dialect.loop, &call->timer);
    while (*link && *link != call) link = &(*link)->next;
    if (*link) {
        *link = call->next;
        s->read_count--;
    }
    hfsbi_program_release(call->job);
    call->job = NULL;
}

/* Appends the chunks from a number on. Returns the number that follows them;
   *rest: there are more. */
static unsigned long long hfsbi_codex_chunks(hfsbi_codex_call  *call,
                                             unsigned long long from,
                                             size_t max, size_t *count,
                                             bool *rest) {
    char             block[HFSBI_FEED_EVENT + 3], note[80];
    hfsbi_feed_event e;
    size_t           bytes = 0;
    *rest = false;
    hfsbi_feed_attach(call->job->feed, &call->reader, from);
    while (hfsbi_feed_take(&call->reader, block, sizeof block, &e)) {
        bool output;
        if (e.kind == HFSBI_FEED_GAP) { /* the last of its numbers */
            if (!e.gone_bytes) continue;
            (void)snprintf(note, sizeof note,
                           "\n[%llu bytes of output were lost]\n",
                           e.gone_bytes);
            e.kind = HFSBI_FEED_STDERR;
            e.bytes = hfsb_cstr(note);
            e.seq--;
        }
        output = e.kind <= HFSBI_FEED_PTY;
        *rest = output && *count &&
                (bytes + e.bytes.len > max || *count == HFSBI_CODEX_CHUNKS);
        if (*rest) break;
        from = e.seq + 1;
        if (!output) continue;
        if ((*count)++) hfsb_buf_append_byte(&call->out, ',');
        hfsb_buf_append_byte(&call->out, '{');
        hfsbi_codex_put_chunk(&call->out, e.seq, e.kind, e.bytes);
        hfsb_buf_append_byte(&call->out, '}');
        bytes += e.bytes.len;
    }
    hfsbi_feed_detach(&call->reader);
    return from;
}

/* Tries to answer a read: with output, the end, or `late` with nothing. */
static bool hfsbi_codex_read_try(hfsbi_codex_call *call, bool late) {
    long long after =
        hfsb_json_int(hfsb_json_get(call->params, "afterSeq"), 0);
    long long  asked = hfsb_json_int(hfsb_json_get(call->params, "maxBytes"),
                                     HFSBI_CODEX_READ);
    hfsbi_job *job = call->job;
    bool       rest, done = job->state == HFSBI_JOB_DONE;
    size_t     count = 0;
    hfsbi_feed_exit    end;
    unsigned long long next, from = after > 0 ? (unsigned long long)after : 0;
    hfsb_buf_truncate(&call->out, 0);
    hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{\"chunks\":["));
    if (asked < 0 || asked > HFSBI_CODEX_READ) asked = HFSBI_CODEX_READ;
    next = hfsbi_codex_chunks(call, from + 1, (size_t)asked, &count, &rest);
    if (!count && !done && !late) return false;
    end.end = job->end.end;
    end.exit_code = job->end.exit_code;
    end.signal = job->end.signal;
    done = done && !rest;
    hfsb_buf_printf(&call->out, "],\"nextSeq\":%llu,\"exited\":%s,", next,
                    done ? "true" : "false");
    if (done)
        hfsb_buf_printf(&call->out, "\"exitCode\":%d,",
                        hfsbi_codex_exit(&end));
    else hfsb_buf_append(&call->out, HFSB_LIT("\"exitCode\":null,"));
    hfsb_buf_printf(&call->out,
                    "\"closed\":%s,\"failure\":null,\"sandboxDenied\":false}",
                    done ? "true" : "false");
    return true;
}

static void hfsbi_codex_read_now(hfsbi_codex_call *call, bool late) {
    hfsbi_feed_detach(&call->reader);
    (void)hfsbi_codex_read_try(call, late);
    hfsbi_codex_read_end(call);
    hfsbi_codex_answer(call);
}

static void hfsbi_codex_read_news(void *user) {
    hfsbi_codex_read_now((hfsbi_codex_call *)user, true);
}

static void hfsbi_codex_read_late(hfsbi_timer *timer) {
    hfsbi_codex_read_now(
        (hfsbi_codex_call *)(void *)((char *)timer -
                                     offsetof(hfsbi_codex_call, timer)),
        true);
}

HFSBI_FN void hfsbi_codex_reads_end(hfsbi_codex_session *s) {
    while (s->reads) hfsbi_codex_read_now(s->reads, true);
}

/* Makes a read wait for news. */
static void hfsbi_codex_read_wait(hfsbi_codex_call *call, long long wait) {
    hfsbi_codex_session *s = call->session;
    if (wait > HFSBI_CODEX_WAIT_MS) wait = HFSBI_CODEX_WAIT_MS;
    call->next = s->reads;
    s->reads = call;
    s->read_count++;
    call->timer.fn = hfsbi_codex_read_late;
    hfsbi_loop_timer(call->codex->dialect.loop, &call->timer,
                     hfsb_clock_ms() + wait);
    call->reader.on_news = hfsbi_codex_read_news;
    call->reader.user = call;
    hfsbi_feed_attach(call->job->feed, &call->reader, HFSBI_FEED_NOW);
}

/* The process that a call names and its job, which the caller releases; NULL
   when it is not known. */
static hfsbi_codex_process *hfsbi_codex_named(hfsbi_codex_call *call,
                                              hfsbi_job       **job) {
    hfsbi_codex_process *p;
    hfsb_str             id = HFSB_INIT;
    *job = NULL;
    if (!hfsbi_codex_str(call, "processId", &id)) return NULL;
    p = hfsbi_codex_process_find(call->session, id);
    if (p)
        *job = hfsbi_program_find(hfsbi_codex_tools(call->session),
                                  hfsb_cstr(p->name), 0, HFSB_LIT(""));
    return p && *job ? p : NULL;
}

HFSBI_FN void hfsbi_codex_read(hfsbi_codex_call *call) {
    long long wait = hfsb_json_int(hfsb_json_get(call->params, "waitMs"), 0);
    hfsbi_codex_process *p = hfsbi_codex_named(call, &call->job);
    bool                 full = call->session->read_count >= HFSBI_CODEX_READS;
    if (!p) {
        if (call->err.code == HFSB_OK)
            hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "unknown process id");
    } else if (p->starting) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "process id is starting");
    } else if (!hfsbi_codex_read_try(call, wait <= 0 || full)) {
        hfsbi_codex_read_wait(call, wait);
        return;
    }
    if (call->job) hfsbi_program_release(call->job);
    call->job = NULL;
    hfsbi_codex_answer(call);
}

/* ---- process/write, signal, terminate ---- */

/* True for a write that was done: its answer may have been lost. */
static bool hfsbi_codex_is_repeated(hfsbi_codex_process *p, hfsb_str id) {
    unsigned long long hash = hfsb_fnv(id);
    size_t             i;
    if (!id.len) return false;
    for (i = 0; i < HFSBI_CODEX_WRITES && i < p->write_count; i++)
        if (p->writes[i] == hash) return true;
    return false;
}

static void hfsbi_codex_note_write(hfsbi_codex_process *p, hfsb_str id) {
    if (id.len)
        p->writes[p->write_count++ % HFSBI_CODEX_WRITES] = hfsb_fnv(id);
}

/* Writes to a process; returns the status for the client, NULL after a
   failure. */
static const char *hfsbi_codex_input(hfsbi_codex_call    *call,
                                     hfsbi_codex_process *p, hfsbi_job *job) {
    hfsb_str    id = hfsbi_json_get_str(call->params, "writeId"), chunk;
    hfsb_status st;
    if (!hfsbi_codex_str(call, "chunk", &chunk)) return NULL;
    if (hfsb_base64_decode(chunk, &call->path, &call->err) != HFSB_OK) {
        call->code = HFSBI_CODEX_PARAMS;
        return NULL;
    }
    if (p->starting) return "starting";
    if (!p->input) return "stdinClosed";
    if (hfsbi_codex_is_repeated(p, id)) return "accepted";
    st =
        hfsbi_program_input(job, hfsb_buf_str(&call->path), false, &call->err);
    if (st == HFSB_OK) hfsbi_codex_note_write(p, id);
    if (st != HFSB_OK && st != HFSB_REFUSED) {
        call->code = HFSBI_CODEX_INTERNAL;
        return NULL;
    }
    (void)hfsbi_ok(&call->err);
    return st == HFSB_OK ? "accepted" : "stdinClosed";
}

HFSBI_FN void hfsbi_codex_write(hfsbi_codex_call *call) {
    const char          *status = "unknownProcess";
    hfsbi_job           *job;
    hfsbi_codex_process *p = hfsbi_codex_named(call, &job);
    if (p) status = hfsbi_codex_input(call, p, job);
    if (status && call->err.code == HFSB_OK)
        hfsb_buf_printf(hfsbi_codex_result(call), "{\"status\":\"%s\"}",
                        status);
    if (job) hfsbi_program_release(job);
    hfsbi_codex_answer(call);
}

HFSBI_FN void hfsbi_codex_signal(hfsbi_codex_call *call) {
    hfsb_str             name = hfsbi_json_get_str(call->params, "signal");
    hfsbi_job           *job;
    hfsbi_codex_process *p = hfsbi_codex_named(call, &job);
    if (call->err.code == HFSB_OK &&
        !hfsb_str_equal(name, HFSB_LIT("interrupt")))
        hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS,
                         "signal must be \"interrupt\".");
    else if (call->err.code == HFSB_OK && !p)
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "unknown process id");
    else if (p) (void)hfsbi_program_signal(job, SIGINT, HFSB_PROC_GROUP, NULL);
    if (call->err.code == HFSB_OK)
        hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{}"));
    if (job) hfsbi_program_release(job);
    hfsbi_codex_answer(call);
}

HFSBI_FN void hfsbi_codex_terminate(hfsbi_codex_call *call) {
    hfsbi_job           *job;
    hfsbi_codex_process *p = hfsbi_codex_named(call, &job);
    bool running = p && hfsbi_job_kill(hfsbi_codex_tools(call->session), job);
    if (call->err.code == HFSB_OK)
        hfsb_buf_printf(hfsbi_codex_result(call), "{\"running\":%s}",
                        running ? "true" : "false");
    if (job) hfsbi_program_release(job);
    hfsbi_codex_answer(call);
}
