/* exec.c - /api/exec: a program, byte for byte, over a WebSocket.

     GET /api/exec                          Sec-WebSocket-Protocol: hfsb-exec
       client, first     {"argv":["tar","x"],"work_dir":"src"}
       client, then      binary: standard input; {"eof":true}: its end;
                         {"cols":100,"rows":30}, {"signal":2}
       server            {"pid":4711}; binary: a byte 1 (output, or all of a
                         terminal) or 2 (errors), then bytes;
       server, last      {"exit_code":0,"signal":0,"timed_out":false}, or
                         {"error":"...","code":"not_found"}; then it closes

   Without argv and `command` the program is the shell of the commands, and
   with cols and rows it has a terminal: `hfsb shell` and the page open one. It
   is a program like those of the dialects (program.c): one of the jobs,
   confined like all of them, and recorded in the journal.

     open --> SPEC --first message--> STARTING --on_start--> RUNNING --+
                |                         |                     |      | exit
                +---- the client goes: the program is killed ---+--> ENDED

   Neither side buffers without limit. A client that reads slowly, or not at
   all (`| less`, Ctrl-Z), holds the program, since its feed has a limit; while
   the program does not read, the client's input waits here, and no more is
   read from the client. */
#include "api_private.h"

enum {
    HFSBI_EXEC_TAKE = 32768,      /* bytes of output in one message */
    HFSBI_EXEC_FULL = 512 * 1024, /* unsent bytes that hold the program */
    HFSBI_EXEC_NOTE = 1 << 20,    /* longest text message */
    HFSBI_EXEC_GIVE = 256 * 1024, /* bytes of input given at once */
    HFSBI_EXEC_SILENCE_MS = 30000
};

typedef enum hfsbi_exec_state {
    HFSBI_EXEC_SPEC,
    HFSBI_EXEC_STARTING,
    HFSBI_EXEC_RUNNING,
    HFSBI_EXEC_ENDED /* the last message is sent */
} hfsbi_exec_state;

typedef struct hfsbi_exec {
    hfsbi_api        *api;
    hfsbi_websocket  *socket;
    hfsbi_exec_state  state;
    hfsbi_job        *job; /* held; NULL before STARTING */
    hfsbi_feed_reader reader;
    hfsbi_job_writer  writer; /* waits until the program takes input */
    hfsb_buf          note;   /* a text message, as far as it has come */
    hfsb_buf          input;  /* for the program ... */
    size_t            given;  /* ... of which it has so many bytes */
    bool              eof;    /* the input ends after these */
    bool              paused;
    unsigned          cols, rows; /* asked for, and not set yet; 0: none */
    int               signal;     /* the same */
} hfsbi_exec;

/* ---- to the client ---- */

static void hfsbi_exec_end(hfsbi_exec *x, hfsb_buf *last) {
    x->state = HFSBI_EXEC_ENDED;
    hfsbi_program_forget_room(&x->writer);
    if (last->status == HFSB_OK)
        (void)hfsbi_websocket_send(x->socket, true, hfsb_buf_str(last));
    hfsb_buf_free(last);
    hfsbi_websocket_close(x->socket, 1000, HFSB_LIT(""));
}

static void hfsbi_exec_fail(hfsbi_exec *x, hfsb_status st, const char *why) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = x->api->alloc;
    hfsb_buf_append(&text, HFSB_LIT("{\"error\":"));
    hfsbi_json_put_quoted(&text, hfsb_cstr(why));
    hfsb_buf_printf(&text, ",\"code\":\"%s\"}",
                    st == HFSB_NOT_FOUND ? "not_found"
                    : st == HFSB_DENIED  ? "denied"
                    : st == HFSB_ARG     ? "invalid"
                                         : "failed");
    hfsbi_exec_end(x, &text);
}

static void hfsbi_exec_exit(hfsbi_exec *x, const hfsbi_feed_exit *end) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = x->api->alloc;
    hfsb_buf_printf(&text, "{\"exit_code\":%d,\"signal\":%d,\"timed_out\":%s}",
                    end->end == HFSB_PROC_EXITED ? end->exit_code : -1,
                    end->end == HFSB_PROC_SIGNALED ? end->signal : 0,
                    x->job->end.timed_out ? "true" : "false");
    hfsbi_exec_end(x, &text);
}

/* Sends output as long as the client takes it. */
static void hfsbi_exec_pump(hfsbi_exec *x) {
    hfsbi_feed_event event;
    char             bytes[1 + HFSBI_EXEC_TAKE];
    if (x->state != HFSBI_EXEC_RUNNING) return;
    while (hfsbi_websocket_waiting(x->socket) < HFSBI_EXEC_FULL &&
           hfsbi_feed_take(&x->reader, bytes + 1, HFSBI_EXEC_TAKE, &event)) {
        if (event.kind == HFSBI_FEED_EXITED) {
            hfsbi_exec_exit(x, &event.exit);
            return;
        }
        if (event.kind == HFSBI_FEED_GAP && event.gone_bytes) {
            hfsbi_exec_fail(x, HFSB_LOST, "Output was lost: out of memory.");
            return;
        }
        if (!event.bytes.len) continue;
        if (event.bytes.ptr != bytes + 1)
            memmove(bytes + 1, event.bytes.ptr, event.bytes.len);
        bytes[0] = event.kind == HFSBI_FEED_STDERR ? 2 : 1;
        if (hfsbi_websocket_send(x->socket, false,
                                 hfsb_str_make(bytes, 1 + event.bytes.len)) !=
            HFSB_OK)
            return; /* the connection is lost: `closed` follows */
    }
}

static void hfsbi_exec_news(void *user) {
    hfsbi_exec_pump((hfsbi_exec *)user);
}

static void hfsbi_exec_drained(void *user, hfsbi_websocket *socket) {
    (void)socket;
    hfsbi_exec_pump((hfsbi_exec *)user);
}

/* ---- input ---- */

static void hfsbi_exec_drop_input(hfsbi_exec *x) {
    hfsb_buf_free(&x->input);
    x->given = 0;
}

static void hfsbi_exec_pause(hfsbi_exec *x, bool pause) {
    if (pause == x->paused) return;
    x->paused = pause;
    hfsbi_websocket_pause(x->socket, pause);
}

/* Gives the program what it takes; the rest waits for room, and no more is
   read from the client until then. Input of a program that reads no more is
   dropped, as by a pipe. */
static void hfsbi_exec_give(hfsbi_exec *x) {
    hfsb_status st = HFSB_OK;
    if (x->state != HFSBI_EXEC_RUNNING) return;
    while (st == HFSB_OK && x->given < x->input.len) {
        hfsb_str part = hfsb_str_slice(hfsb_buf_str(&x->input), x->given,
                                       x->given + HFSBI_EXEC_GIVE);
        st = hfsbi_program_input(x->job, part, false, NULL);
        if (st == HFSB_OK) x->given += part.len;
    }
    if (st == HFSB_OK && x->eof) /* a full queue refuses the end too */
        st = hfsbi_program_input(x->job, HFSB_LIT(""), true, NULL);
    if (st == HFSB_NOMEM) {
        hfsbi_exec_fail(x, HFSB_NOMEM, "Out of memory.");
        return;
    }
    if (st == HFSB_LIMIT) {
        hfsbi_exec_pause(x, true);
        hfsbi_program_await_room(x->job, &x->writer);
        return;
    }
    hfsbi_exec_drop_input(x);
    hfsbi_exec_pause(x, false);
}

static void hfsbi_exec_room(void *user) {
    hfsbi_exec_give((hfsbi_exec *)user);
}

/* Sets the size and sends the signal that the client has asked for. Messages
   that come in one piece with the first one are read before the program is
   there: then both wait for it. */
static void hfsbi_exec_steer(hfsbi_exec *x) {
    if (x->state != HFSBI_EXEC_RUNNING) return;
    if (x->cols) (void)hfsbi_program_resize(x->job, x->cols, x->rows, NULL);
    if (x->signal)
        (void)hfsbi_program_signal(x->job, x->signal, HFSB_PROC_GROUP, NULL);
    x->cols = 0;
    x->signal = 0;
}

/* ---- the start ---- */

/* The program runs, or could not be started. */
static void hfsbi_exec_started(void *user, hfsbi_job *job) {
    hfsbi_exec *x = (hfsbi_exec *)user;
    const char *failure = hfsbi_program_failure(job);
    char        text[40];
    hfsbi_exec_pause(x, false);
    if (failure) { /* not_found is for the program alone */
        hfsbi_exec_fail(x,
                        strcmp(job->result.key, "work_dir") == 0
                            ? HFSB_ARG
                            : job->result.code,
                        failure);
        return;
    }
    x->state = HFSBI_EXEC_RUNNING;
    (void)snprintf(text, sizeof text, "{\"pid\":%ld}", job->pid);
    (void)hfsbi_websocket_send(x->socket, true, hfsb_cstr(text));
    hfsbi_exec_steer(x);
    hfsbi_exec_give(x);
    hfsbi_exec_pump(x);
}

/* Reads the variables, as bash does. NULL, or what is wrong with them. */
static const char *hfsbi_exec_fill_env(const hfsb_json_value *env,
                                       hfsb_buf *out, hfsb_err *err) {
    hfsb_json_type type = hfsb_json_type_of(env);
    if (env && type != HFSB_JSON_OBJECT && type != HFSB_JSON_NULL)
        return "env must be an object of strings.";
    return hfsbi_env_read(env, out, err) == HFSB_OK ? NULL : err->msg;
}

static bool hfsbi_exec_has_nul(hfsb_str text) {
    return hfsb_str_find_byte(text, '\0') != HFSB_NPOS;
}

/* False for an argument that is not a string, or has a NUL. */
static bool hfsbi_exec_fill_argv(const hfsb_json_value *argv, hfsb_buf *out) {
    hfsb_json_iter it = hfsb_json_begin(argv);
    while (hfsb_json_next(&it)) {
        hfsb_str word = hfsb_json_str(it.value, HFSB_LIT(""));
        if (hfsb_json_type_of(it.value) != HFSB_JSON_STRING ||
            hfsbi_exec_has_nul(word))
            return false;
        hfsb_buf_append(out, word);
        hfsb_buf_append_byte(out, '\0');
    }
    return true;
}

static unsigned hfsbi_exec_size(const hfsb_json_value *note, const char *key) {
    long long n = hfsb_json_int(hfsb_json_get(note, key), 0);
    return n > 0 && n <= 1000 ? (unsigned)n : 0;
}

/* Commands get an environment for a model; at a terminal a person reads. */
static void hfsbi_exec_fill_terminal(hfsbi_job_spec *spec) {
    static const char env[] = "TERM=xterm-256color\0COLORTERM=truecolor\0"
                              "NO_COLOR\0PAGER\0GIT_PAGER\0"
                              "GIT_TERMINAL_PROMPT\0PYTHONUNBUFFERED";
    hfsb_buf_append(&spec->env, hfsb_str_make(env, sizeof env));
}

/* Reads the first message. NULL, or what is wrong with it, which may be the
   text of *err. */
static const char *hfsbi_exec_fill(const hfsbi_exec      *x,
                                   const hfsb_json_value *note,
                                   hfsbi_job_spec *spec, hfsb_err *err) {
    hfsb_str command = hfsbi_json_get_str(note, "command");
    hfsb_str dir = hfsbi_json_get_str(note, "work_dir");
    if (hfsb_json_type_of(note) != HFSB_JSON_OBJECT)
        return "The first message must be a JSON object.";
    if (!hfsbi_exec_fill_argv(hfsb_json_get(note, "argv"), &spec->raw.argv))
        return "argv must be an array of strings without NUL.";
    if (hfsbi_exec_has_nul(command) || hfsbi_exec_has_nul(dir))
        return "command and work_dir must not contain a NUL.";
    if (spec->raw.argv.len && command.len)
        return "Give argv or command, not both.";
    hfsb_buf_append(&spec->command, command);
    hfsb_buf_append(&spec->work_dir, dir);
    if (!spec->raw.argv.len && !command.len) {
        hfsb_buf_append(&spec->raw.argv, hfsb_buf_str(&x->api->tools->shell));
        hfsb_buf_append_byte(&spec->raw.argv, '\0');
    }
    spec->raw.cols = hfsbi_exec_size(note, "cols");
    spec->raw.rows = hfsbi_exec_size(note, "rows");
    if (!spec->raw.cols != !spec->raw.rows)
        return "cols and rows must both be given, from 1 to 1000.";
    if (spec->raw.cols) hfsbi_exec_fill_terminal(spec);
    spec->raw.keep_input =
        !hfsb_json_bool(hfsb_json_get(note, "no_input"), false);
    if (hfsb_str_equal(hfsbi_json_get_str(note, "who"), HFSB_LIT("page")))
        spec->who = "page"; /* as in the field X-Hfsb-Who */
    spec->merge_stderr =
        hfsb_json_bool(hfsb_json_get(note, "merge_stderr"), false);
    spec->timeout = hfsb_json_double(hfsb_json_get(note, "timeout"), 0);
    if (!(spec->timeout > 0)) spec->timeout = 0;
    return hfsbi_exec_fill_env(hfsb_json_get(note, "env"), &spec->env, err);
}

static void hfsbi_exec_start(hfsbi_exec *x, const hfsb_json_value *note) {
    hfsbi_job_spec spec;
    hfsb_err       err = HFSB_INIT;
    const char    *wrong;
    hfsb_status    st = HFSB_OK;
    hfsbi_job_spec_init(&spec, &x->api->alloc);
    wrong = hfsbi_exec_fill(x, note, &spec, &err);
    if (!wrong)
        st = hfsbi_program_start(x->api->tools, &spec, 0, &x->job, &err);
    hfsbi_job_spec_free(&spec);
    if (wrong || st != HFSB_OK) {
        hfsbi_exec_fail(x, wrong ? HFSB_ARG : st, wrong ? wrong : err.msg);
        return;
    }
    x->state = HFSBI_EXEC_STARTING;
    x->reader.on_news = hfsbi_exec_news;
    x->reader.user = x;
    hfsbi_feed_attach(x->job->feed, &x->reader, 0);
    hfsbi_exec_pause(x, true); /* messages wait for the program */
    if (!hfsbi_program_on_start(x->job, hfsbi_exec_started, x))
        hfsbi_exec_started(x, x->job);
}

/* ---- from the client ---- */

static void hfsbi_exec_control(hfsbi_exec *x, const hfsb_json_value *note) {
    unsigned  cols = hfsbi_exec_size(note, "cols");
    unsigned  rows = hfsbi_exec_size(note, "rows");
    long long number = hfsb_json_int(hfsb_json_get(note, "signal"), 0);
    if (hfsb_json_bool(hfsb_json_get(note, "eof"), false)) {
        x->eof = true;
        hfsbi_exec_give(x);
    }
    if (cols && rows) {
        x->cols = cols;
        x->rows = rows;
    }
    if (number > 0 && number <= 64) x->signal = (int)number;
    hfsbi_exec_steer(x);
}

static void hfsbi_exec_note(hfsbi_exec *x) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    doc.alloc = x->api->alloc;
    st = x->note.status;
    if (st == HFSB_OK)
        st = hfsb_json_parse(hfsb_buf_str(&x->note), NULL, &doc, NULL);
    if (st != HFSB_OK)
        hfsbi_exec_fail(x, HFSB_ARG, "A text message must be JSON.");
    else if (x->state == HFSBI_EXEC_SPEC) hfsbi_exec_start(x, doc.root);
    else hfsbi_exec_control(x, doc.root);
    hfsb_json_free(&doc);
    hfsb_buf_free(&x->note);
}

static void hfsbi_exec_message(void *user, hfsbi_websocket *socket,
                               hfsb_str piece, bool text, bool last) {
    hfsbi_exec *x = (hfsbi_exec *)user;
    (void)socket;
    if (x->state == HFSBI_EXEC_ENDED) return;
    if (text) {
        hfsb_buf_append(&x->note, piece);
        if (last) hfsbi_exec_note(x);
        return;
    }
    if (x->state == HFSBI_EXEC_SPEC) {
        hfsbi_exec_fail(x, HFSB_ARG, "The first message must be JSON.");
        return;
    }
    if (x->eof) return;
    if (hfsb_buf_append(&x->input, piece) != HFSB_OK) {
        hfsbi_exec_fail(x, HFSB_NOMEM, "Out of memory.");
        return;
    }
    if (!x->paused) hfsbi_exec_give(x);
}

/* ---- a connection ---- */

static void hfsbi_exec_free(hfsbi_exec *x) {
    hfsb_buf_free(&x->note);
    hfsb_buf_free(&x->input);
    hfsbi_array_free(&x->api->alloc, x, 1, sizeof *x);
}

static void hfsbi_exec_closed(void *user, hfsbi_websocket *socket) {
    hfsbi_exec *x = (hfsbi_exec *)user;
    (void)socket;
    hfsbi_program_forget_room(&x->writer);
    if (x->job) {
        (void)hfsbi_program_on_start(x->job, NULL, x);
        hfsbi_feed_detach(&x->reader);
        (void)hfsbi_job_kill(x->api->tools, x->job);
        hfsbi_program_release(x->job);
    }
    hfsbi_exec_free(x);
}

HFSBI_FN void hfsbi_exec_get(void *user, hfsb_request *request) {
    static const char *const        protocols[] = {"hfsb-exec", NULL};
    static const hfsbi_websocket_fn fn = {
        hfsbi_exec_message, hfsbi_exec_closed,     hfsbi_exec_drained,
        HFSBI_EXEC_NOTE,    HFSBI_EXEC_SILENCE_MS, true};
    hfsbi_api  *api = (hfsbi_api *)user;
    hfsbi_exec *x = (hfsbi_exec *)hfsbi_array(&api->alloc, 1, sizeof *x);
    if (!x) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(x, 0, sizeof *x);
    x->api = api;
    x->note.alloc = x->input.alloc = api->alloc;
    x->note.max = HFSBI_EXEC_NOTE;
    x->writer.on_room = hfsbi_exec_room;
    x->writer.user = x;
    x->socket = hfsbi_websocket_open(request, protocols, &fn, x);
    if (!x->socket) hfsbi_exec_free(x);
}
