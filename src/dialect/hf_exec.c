/* hf_exec.c - commands of the sandbox API of Hugging Face.

   A command is a program (program.c) whose output is sent as lines of JSON
   while it runs, or a background program, whose output is dropped:

     POST /v1/exec -------> WAITING --> stream: start, stdout ..., exit
     POST /v1/processes --> WAITING --> reply --> in the list until DELETE,
                               |                  or 256 newer ones have ended
                               +-- it cannot be started: 400

   Each has one reader of its feed. The reader of a stream stops while its
   client has much to read, which holds the process; that of a background
   process drops the output. A client that goes away ends its command, and the
   object lives until the command has ended.

   Output is text: no event ends inside a character, and characters at which
   clients split lines are escaped. A ping says that a silent command runs. */
#include "dialect_private.h"

enum {
    HFSBI_HF_PING_MS = 15000,
    HFSBI_HF_PROBE_MS = 1000, /* between pings to a client that may be gone */
    HFSBI_HF_AHEAD = 256 << 10,   /* unsent bytes at which reading stops */
    HFSBI_HF_PIECE = 16 << 10,    /* bytes of output of one event */
    HFSBI_HF_DROPPED = 4 << 10,   /* the same of output that is dropped */
    HFSBI_HF_LIST = 256,          /* ended processes that are listed ... */
    HFSBI_HF_LIST_BYTES = 4 << 20 /* ... and the bytes of their commands */
};

/* How a request for a command is answered. */
typedef enum hfsbi_hf_form {
    HFSBI_HF_STREAM,
    HFSBI_HF_BACKGROUND, /* of /v1/exec: {"id","pid","tag"} */
    HFSBI_HF_PROCESS     /* of /v1/processes: the same and "cmd" */
} hfsbi_hf_form;

struct hfsbi_hf_process {
    hfsbi_feed_reader reader;
    hfsbi_timer       timer; /* of pings */
    hfsbi_hf_process *next;
    hfsbi_hf         *hf;
    hfsbi_hf_place   *place;
    hfsb_request     *request; /* that waits for a reply, or gets the stream;
                                  NULL: answered or gone */
    hfsbi_job        *job;     /* held; NULL: it has ended */
    hfsbi_hf_form     form;
    bool              started; /* the stream has begun */
    bool              eof;     /* the client sends no more: it may be gone */
    long long         told;    /* hfsb_clock_ms() of the last event */
    unsigned long     number;  /* of the list; 0: not in it */
    hfsb_buf          cmd;     /* JSON, as it was sent */
    hfsb_buf          tag;
    bool              has_tag, has_code;
    int               code; /* of its exit */
    long              pid;
    long long         began; /* ms since 1970 */
};

/* ---- the life of a process ---- */

static void hfsbi_hf_process_free(hfsbi_hf_process *p) {
    hfsbi_hf_place    *place = p->place;
    hfsb_alloc         alloc = p->hf->base.alloc;
    hfsbi_hf_process **link = &place->processes;
    bool               held = p->job != NULL;
    while (*link && *link != p) link = &(*link)->next;
    if (*link) *link = p->next;
    hfsbi_feed_detach(&p->reader);
    hfsbi_loop_timer_clear(p->hf->base.loop, &p->timer);
    if (p->job) (void)hfsbi_program_on_start(p->job, NULL, p);
    hfsbi_program_release(p->job);
    hfsb_buf_free(&p->cmd);
    hfsb_buf_free(&p->tag);
    hfsbi_array_free(&alloc, p, 1, sizeof *p);
    if (held) hfsbi_guest_release(&place->guest);
}

HFSBI_FN void hfsbi_hf_place_clear(hfsbi_hf_place *place) {
    while (place->processes) hfsbi_hf_process_free(place->processes);
}

/* Frees the oldest of those in the list that have ended, while they are too
   many or their commands too long. */
static void hfsbi_hf_trim(hfsbi_hf_place *place) {
    hfsbi_hf_process *p, *oldest;
    size_t            n, bytes;
    do {
        oldest = NULL;
        n = bytes = 0;
        for (p = place->processes; p; p = p->next) {
            if (p->job || !p->number) continue;
            if (!oldest) oldest = p;
            n++;
            bytes += p->cmd.len + p->tag.len;
        }
        if (n <= HFSBI_HF_LIST && bytes <= HFSBI_HF_LIST_BYTES) oldest = NULL;
        if (oldest) hfsbi_hf_process_free(oldest);
    } while (oldest);
}

/* ---- events ---- */

/* Finds the next character at which a client may split lines: U+0085, U+2028,
   U+2029. Returns its offset, or the length of s; *code is 0 then. */
static size_t hfsbi_hf_find_break(hfsb_str s, size_t at, unsigned *code) {
    *code = 0;
    for (; at + 1 < s.len; at++) {
        unsigned char a = (unsigned char)s.ptr[at];
        unsigned char b = (unsigned char)s.ptr[at + 1];
        if (a == 0xC2 && b == 0x85) *code = 0x85;
        else if (a == 0xE2 && b == 0x80 && at + 2 < s.len &&
                 ((unsigned char)s.ptr[at + 2] & 0xFE) == 0xA8)
            *code = 0x2000u + ((unsigned char)s.ptr[at + 2] & 0x3Fu);
        if (*code) return at;
    }
    return s.len;
}

/* Appends text as a JSON string on one line, whatever a client takes for the
   end of a line. */
static void hfsbi_hf_put_text(hfsb_buf *out, hfsb_str text) {
    hfsb_buf quoted = HFSB_INIT;
    hfsb_str s;
    size_t   at = 0, next;
    unsigned code;
    quoted.alloc = out->alloc;
    hfsbi_json_put_quoted(&quoted, text);
    s = hfsb_buf_str(&quoted);
    if (quoted.status != HFSB_OK) out->status = quoted.status;
    while (at < s.len && out->status == HFSB_OK) {
        next = hfsbi_hf_find_break(s, at, &code);
        hfsb_buf_append(out, hfsb_str_slice(s, at, next));
        if (code) hfsb_buf_printf(out, "\\u%04x", code);
        at = next + (code == 0 ? 0 : code == 0x85 ? 2 : 3);
    }
    hfsb_buf_free(&quoted);
}

static void hfsbi_hf_gone(void *user, hfsb_request *request);

/* Sends a line and frees it. Without memory the client is lost, rather than a
   part of the output. */
static void hfsbi_hf_send(hfsbi_hf_process *p, hfsb_buf *line) {
    hfsb_request *request = p->request;
    hfsb_buf_append_byte(line, '\n');
    p->told = hfsb_clock_ms();
    if (line->status == HFSB_OK) {
        (void)hfsb_reply_write(request, hfsb_buf_str(line));
    } else {
        hfsb_request_on_gone(request, NULL, NULL);
        hfsb_reply_abort(request);
        p->request = NULL;
    }
    hfsb_buf_free(line);
}

static void hfsbi_hf_send_output(hfsbi_hf_process *p, const char *event,
                                 hfsb_str text) {
    hfsb_buf line = HFSB_INIT;
    line.alloc = p->hf->base.alloc;
    hfsb_buf_printf(&line, "{\"event\":\"%s\",\"data\":", event);
    hfsbi_hf_put_text(&line, text);
    hfsb_buf_append_byte(&line, '}');
    hfsbi_hf_send(p, &line);
}

static void hfsbi_hf_send_exit(hfsbi_hf_process *p) {
    const hfsb_proc_result *end = &p->job->end;
    bool     code = end->end == HFSB_PROC_EXITED && !end->timed_out;
    int      signal = end->end == HFSB_PROC_SIGNALED ? end->signal : 0;
    hfsb_buf line = HFSB_INIT;
    line.alloc = p->hf->base.alloc;
    if (!code && signal <= 0) signal = SIGKILL;
    hfsb_buf_append(&line, HFSB_LIT("{\"event\":\"exit\",\"exit_code\":"));
    if (code) hfsb_buf_printf(&line, "%d,\"signal\":null", end->exit_code);
    else hfsb_buf_printf(&line, "null,\"signal\":%d", signal);
    hfsb_buf_printf(&line, ",\"timed_out\":%s,\"duration_ms\":%lld}",
                    end->timed_out ? "true" : "false",
                    p->job->ended - p->job->created);
    hfsbi_hf_send(p, &line);
}

static void hfsbi_hf_set_timer(hfsbi_hf_process *p) {
    hfsbi_loop_timer(p->hf->base.loop, &p->timer,
                     p->told +
                         (p->eof ? HFSBI_HF_PROBE_MS : HFSBI_HF_PING_MS));
}

static void hfsbi_hf_begin(hfsbi_hf_process *p) {
    (void)hfsb_reply_field(p->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(p->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(p->request, 200, "application/x-ndjson");
    p->started = true;
}

static void hfsbi_hf_ping(hfsbi_hf_process *p) {
    hfsb_buf line = HFSB_INIT;
    line.alloc = p->hf->base.alloc;
    hfsb_buf_append(&line, HFSB_LIT("{\"event\":\"ping\"}"));
    hfsbi_hf_send(p, &line);
}

/* A command may wait longer for a slot than a client waits for bytes: then the
   stream begins with a ping. */
static void hfsbi_hf_tick(hfsbi_timer *timer) {
    hfsbi_hf_process *p =
        (hfsbi_hf_process *)(void *)((char *)timer -
                                     offsetof(hfsbi_hf_process, timer));
    long long wait = p->eof ? HFSBI_HF_PROBE_MS : HFSBI_HF_PING_MS;
    if (!p->request) return;
    if (hfsb_clock_ms() - p->told >= wait) {
        if (!p->started) hfsbi_hf_begin(p);
        if (hfsb_reply_waiting(p->request) == 0) hfsbi_hf_ping(p);
        else p->told = hfsb_clock_ms();
    }
    if (p->request) hfsbi_hf_set_timer(p);
    else hfsbi_hf_gone(p, NULL);
}

/* The client sends no more: bytes that it ignores show whether it still reads.
   */
static void hfsbi_hf_on_eof(void *user, hfsb_request *request) {
    hfsbi_hf_process *p = (hfsbi_hf_process *)user;
    (void)request;
    p->eof = true;
    if (p->form == HFSBI_HF_STREAM)
        hfsbi_loop_timer(p->hf->base.loop, &p->timer, p->told);
}

/* ---- output ---- */

/* The command has ended, and all its output was taken. */
static void hfsbi_hf_process_end(hfsbi_hf_process *p) {
    const hfsb_proc_result *end = &p->job->end;
    if (p->number) {
        hfsbi_job *job = p->job;
        p->has_code = end->end == HFSB_PROC_EXITED;
        p->code = end->exit_code;
        hfsbi_feed_detach(&p->reader);
        p->job = NULL;
        hfsbi_program_release(job);
        hfsbi_guest_release(&p->place->guest);
        hfsbi_hf_trim(p->place);
        return;
    }
    if (p->request) hfsbi_hf_send_exit(p);
    if (p->request) {
        hfsb_request_on_gone(p->request, NULL, NULL);
        hfsb_reply_end(p->request);
    }
    hfsbi_hf_process_free(p);
}

static void hfsbi_hf_show(hfsbi_hf_process *p, const hfsbi_feed_event *event) {
    char text[120];
    if (!p->request) return;
    if (event->kind != HFSBI_FEED_GAP) {
        hfsbi_hf_send_output(
            p, event->kind == HFSBI_FEED_STDERR ? "stderr" : "stdout",
            event->bytes);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "[%llu bytes of output were lost: out of memory]\n",
                   event->gone_bytes);
    hfsbi_hf_send_output(p, "stderr", hfsb_cstr(text));
}

/* Takes output, as much as the client reads. */
static void hfsbi_hf_pump(void *user) {
    hfsbi_hf_process *p = (hfsbi_hf_process *)user;
    bool              stream = p->request && p->form == HFSBI_HF_STREAM;
    char              bytes[HFSBI_HF_PIECE];
    hfsbi_feed_event  event;
    if (stream && !p->started) return;
    while (!p->request || hfsb_reply_waiting(p->request) <= HFSBI_HF_AHEAD) {
        if (!hfsbi_feed_take(&p->reader, bytes, sizeof bytes, &event)) return;
        if (event.kind == HFSBI_FEED_EXITED) {
            hfsbi_hf_process_end(p);
            return;
        }
        if (stream) hfsbi_hf_show(p, &event);
        if (stream && !p->request) { /* no memory */
            hfsbi_hf_gone(p, NULL);
            return;
        }
    }
}

static void hfsbi_hf_drained(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_hf_pump(user);
}

/* ---- the start ---- */

static void hfsbi_hf_put_process(hfsbi_build *b, const hfsbi_hf_process *p) {
    char id[32];
    (void)snprintf(id, sizeof id, "p-%lu", p->number - 1);
    hfsbi_build_str(b, "id", hfsb_cstr(id));
    hfsbi_build_int(b, "pid", p->pid);
    if (p->has_tag) hfsbi_build_str(b, "tag", hfsb_buf_str(&p->tag));
    else hfsbi_build_null(b, "tag");
}

/* "cmd" as it was sent. */
static void hfsbi_hf_put_cmd(hfsbi_build *b, const hfsbi_hf_process *p) {
    hfsb_json_doc doc = HFSB_INIT;
    doc.alloc = p->hf->base.alloc;
    if (hfsb_json_parse(hfsb_buf_str(&p->cmd), NULL, &doc, NULL) == HFSB_NOMEM)
        hfsbi_build_fail(b, HFSB_NOMEM);
    hfsbi_build_value(b, "cmd", doc.root);
    hfsb_json_free(&doc);
}

static void hfsbi_hf_reply_started(hfsbi_hf_process *p) {
    hfsb_request *request = p->request;
    hfsbi_build   b;
    p->request = NULL;
    p->number = ++p->place->next;
    if (!request) return;
    hfsb_request_on_gone(request, NULL, NULL);
    hfsbi_request_on_eof(request, NULL, NULL);
    hfsbi_build_init(&b, &p->hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_hf_put_process(&b, p);
    if (p->form == HFSBI_HF_PROCESS) hfsbi_hf_put_cmd(&b, p);
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

/* It cannot be started. A stream that has begun reports it as a shell would.
   */
static void hfsbi_hf_fail_start(hfsbi_hf_process *p, const char *why) {
    hfsb_status   code = p->job->result.code;
    hfsb_request *request = p->request;
    bool          stream = p->form == HFSBI_HF_STREAM;
    if (request && stream && !p->started && p->job->end.timed_out)
        hfsbi_hf_begin(p);
    if (request && p->started) {
        p->job->end.end = HFSB_PROC_EXITED;
        p->job->end.exit_code = 127;
        hfsbi_hf_send_output(p, "stderr", hfsb_cstr(why));
        if (p->request) hfsbi_hf_send_exit(p);
        if (p->request) hfsb_reply_end(request);
    } else if (request) {
        hfsb_reply_error(request,
                         code == HFSB_NOMEM || code == HFSB_BUSY ? 503 : 400,
                         "failed to spawn: %s", why);
    }
    if (request) hfsb_request_on_gone(request, NULL, NULL);
    p->request = NULL;
    hfsbi_hf_process_free(p);
}

/* The command runs, or has failed to start. */
static void hfsbi_hf_on_start(void *user, hfsbi_job *job) {
    hfsbi_hf_process *p = (hfsbi_hf_process *)user;
    const char       *why = hfsbi_program_failure(job);
    char              text[64];
    hfsb_buf          line = HFSB_INIT;
    p->pid = job->pid;
    p->began = hfsbi_time_ns() / 1000000;
    if (why) {
        hfsbi_hf_fail_start(p, why);
        return;
    }
    if (p->form != HFSBI_HF_STREAM) {
        hfsbi_hf_reply_started(p);
    } else if (p->request) {
        if (!p->started) hfsbi_hf_begin(p);
        line.alloc = p->hf->base.alloc;
        (void)snprintf(text, sizeof text, "{\"event\":\"start\",\"pid\":%ld}",
                       p->pid);
        hfsb_buf_append(&line, hfsb_cstr(text));
        hfsbi_hf_send(p, &line);
        if (!p->request) {
            hfsbi_hf_gone(p, NULL);
            return;
        }
        hfsbi_hf_set_timer(p);
    }
    hfsbi_hf_pump(p);
}

/* The client is gone: its command ends, even one in the background, which
   nobody knows of. */
static void hfsbi_hf_gone(void *user, hfsb_request *request) {
    hfsbi_hf_process *p = (hfsbi_hf_process *)user;
    hfsbi_job        *job = p->job;
    (void)request;
    p->request = NULL;
    hfsbi_loop_timer_clear(p->hf->base.loop, &p->timer);
    if (!hfsbi_job_kill(p->place->guest.tools, job)) hfsbi_hf_pump(p);
    else if (job->state == HFSBI_JOB_RUNNING) hfsbi_hf_pump(p);
}

/* ---- requests for commands ---- */

static hfsbi_hf_process *hfsbi_hf_process_new(hfsbi_hf              *hf,
                                              hfsbi_hf_place        *place,
                                              hfsb_request          *request,
                                              const hfsb_json_value *o) {
    const hfsb_json_value *tag = hfsb_json_get(o, "tag");
    hfsbi_hf_process      *p =
        (hfsbi_hf_process *)hfsbi_array(&hf->base.alloc, 1, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->hf = hf;
    p->place = place;
    p->request = request;
    p->told = hfsb_clock_ms();
    p->reader.text = true;
    p->reader.on_news = hfsbi_hf_pump;
    p->reader.user = p;
    p->timer.fn = hfsbi_hf_tick;
    p->cmd.alloc = p->tag.alloc = hf->base.alloc;
    p->has_tag = hfsb_json_type_of(tag) == HFSB_JSON_STRING;
    hfsb_buf_append(&p->tag, hfsb_json_str(tag, HFSB_LIT("")));
    (void)hfsb_json_write(hfsb_json_get(o, "cmd"), NULL, &p->cmd, NULL);
    if (p->tag.status == HFSB_OK && p->cmd.status == HFSB_OK) return p;
    hfsb_buf_free(&p->cmd);
    hfsb_buf_free(&p->tag);
    hfsbi_array_free(&hf->base.alloc, p, 1, sizeof *p);
    return NULL;
}

/* Starts the program of a process, which then owns the request. */
static void hfsbi_hf_launch(hfsbi_hf_process *p, hfsbi_job_spec *spec) {
    hfsb_request      *request = p->request;
    hfsbi_hf_process **link = &p->place->processes;
    hfsb_err           err = HFSB_INIT;
    unsigned long long owner = hfsbi_request_serial(request);
    if (hfsbi_program_start(p->place->guest.tools, spec, owner, &p->job,
                            &err) != HFSB_OK) {
        hfsb_reply_error(request, 503, "%s", err.msg);
        hfsbi_hf_process_free(p);
        return;
    }
    hfsbi_guest_hold(&p->place->guest);
    while (*link) link = &(*link)->next;
    *link = p;
    hfsbi_feed_attach(p->job->feed, &p->reader, 0);
    hfsb_request_on_gone(request, hfsbi_hf_gone, p);
    hfsbi_request_on_eof(request, hfsbi_hf_on_eof, p);
    if (p->form == HFSBI_HF_STREAM) {
        hfsb_buf_free(&p->cmd); /* it is not listed */
        hfsb_reply_on_drained(request, hfsbi_hf_drained, p);
        hfsbi_hf_set_timer(p);
    }
    if (!hfsbi_program_on_start(p->job, hfsbi_hf_on_start, p))
        hfsbi_hf_on_start(p, p->job);
}

static void hfsbi_hf_start(hfsbi_hf *hf, hfsb_request *request,
                           bool background) {
    hfsbi_hf_place   *place = hfsbi_hf_place_of(hf, request);
    hfsbi_hf_process *p = NULL;
    hfsb_json_doc     doc;
    hfsbi_job_spec    spec;
    bool              ok;
    if (!place) return;
    hfsbi_job_spec_init(&spec, &hf->base.alloc);
    ok = hfsbi_dialect_parse(request, &doc);
    if (ok &&
        hfsbi_hf_read_spec(request, doc.root, place->guest.tools, &spec)) {
        p = hfsbi_hf_process_new(hf, place, request, doc.root);
        if (!p) hfsb_reply_error(request, 503, "Out of memory.");
    }
    if (p) {
        p->form =
            background ? HFSBI_HF_PROCESS
            : hfsb_json_bool(hfsb_json_get(doc.root, "background"), false)
                ? HFSBI_HF_BACKGROUND
                : HFSBI_HF_STREAM;
        spec.raw.keep =
            p->form == HFSBI_HF_STREAM ? HFSBI_HF_AHEAD : HFSBI_HF_DROPPED;
        spec.background = p->form != HFSBI_HF_STREAM;
    }
    if (ok) hfsb_json_free(&doc);
    if (p) hfsbi_hf_launch(p, &spec);
    hfsbi_job_spec_free(&spec);
    hfsbi_guest_release(&place->guest);
}

static void hfsbi_hf_exec(void *user, hfsb_request *request) {
    hfsbi_hf_start((hfsbi_hf *)user, request, false);
}

static void hfsbi_hf_processes_post(void *user, hfsb_request *request) {
    hfsbi_hf_start((hfsbi_hf *)user, request, true);
}

/* ---- the list ---- */

static void hfsbi_hf_processes_get(void *user, hfsb_request *request) {
    hfsbi_hf               *hf = (hfsbi_hf *)user;
    hfsbi_hf_place         *place = hfsbi_hf_place_of(hf, request);
    const hfsbi_hf_process *p;
    hfsbi_build             b;
    if (!place) return;
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_array(&b, NULL);
    for (p = place->processes; p; p = p->next) {
        if (!p->number) continue;
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_process(&b, p);
        hfsbi_hf_put_cmd(&b, p);
        hfsbi_build_int(&b, "started_at_ms", p->began);
        hfsbi_build_bool(&b, "running", p->job != NULL);
        if (p->has_code) hfsbi_build_int(&b, "exit_code", p->code);
        else hfsbi_build_null(&b, "exit_code");
        hfsbi_build_end(&b);
    }
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
    hfsbi_guest_release(&place->guest);
}

/* Reads "p-7", or a pid. */
static bool hfsbi_hf_read_id(hfsb_str id, unsigned long *number, long *pid) {
    bool      own = hfsb_str_starts(id, HFSB_LIT("p-"));
    long long n;
    if (own) id = hfsb_str_slice(id, 2, id.len);
    if (!hfsbi_hf_number(id, 1000000000, &n)) return false;
    *number = own ? (unsigned long)n + 1 : 0;
    *pid = own ? 0 : (long)n;
    return true;
}

/* Kills a process with all that it has started, and forgets it. */
static bool hfsbi_hf_remove(hfsbi_hf_place *place, unsigned long number,
                            long pid) {
    hfsbi_hf_process *p = place->processes;
    hfsbi_job        *job;
    while (p && !(p->number && (number ? p->number == number : p->pid == pid)))
        p = p->next;
    if (!p) return false;
    job = p->job;
    if (!job) {
        hfsbi_hf_process_free(p);
        return false;
    }
    p->number = 0; /* freed at the end of its command */
    (void)hfsbi_program_signal(job, SIGKILL, HFSB_PROC_TREE, NULL);
    return hfsbi_job_kill(place->guest.tools, job);
}

static void hfsbi_hf_processes_delete(void *user, hfsb_request *request) {
    hfsbi_hf       *hf = (hfsbi_hf *)user;
    hfsb_str        id = hfsbi_hf_part(hf, request);
    hfsbi_hf_place *place = hfsbi_hf_place_of(hf, request);
    unsigned long   number;
    long            pid;
    hfsbi_build     b;
    if (!place) return;
    if (hfsbi_hf_read_id(id, &number, &pid)) {
        hfsbi_build_init(&b, &hf->base.alloc);
        hfsbi_build_object(&b, NULL);
        hfsbi_build_str(&b, "id", id);
        hfsbi_build_bool(&b, "killed", hfsbi_hf_remove(place, number, pid));
        hfsbi_build_bool(&b, "ok", true);
        hfsbi_build_end(&b);
        hfsbi_dialect_reply(request, 200, &b);
    } else {
        hfsb_reply_error(request, 400, "a process id is p-N, or a pid");
    }
    hfsbi_guest_release(&place->guest);
}

/* ---- the routes ---- */

HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_commands(void) {
    static const hfsbi_dialect_route routes[] = {
        {"POST", "/exec", hfsbi_hf_exec, false, NULL, NULL},
        {"POST", "/processes", hfsbi_hf_processes_post, false, NULL, NULL},
        {"GET", "/processes", hfsbi_hf_processes_get, false, NULL, NULL},
        {"DELETE", "/processes/*", hfsbi_hf_processes_delete, false, NULL,
         NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    return routes;
}
