/* e2b_input.c - E2B's process.Process: input of programs.

   Input that a program has not read yet is kept in the request, and offered
   again when the program has read some. Until then the client waits for its
   reply, or its stream is paused, so one request keeps one message at most. */
#include "dialect_private.h"

enum {
    HFSBI_E2B_GIVE = 256 << 10, /* bytes offered at once */
    HFSBI_E2B_MESSAGE = 4 << 20 /* bytes of a message of StreamInput */
};

/* Input on its way to a program: of SendInput and CloseStdin, which are
   answered once the program has got it, or of StreamInput:

       READING --message complete--> GIVING --given--> READING ... --> answered
                                       | not yet: paused until there is room

   What had arrived after the message waits in `held`. */
typedef struct hfsbi_e2b_input {
    hfsbi_e2b_box       *box;
    hfsb_request        *request;
    hfsbi_job           *job; /* of StreamInput NULL until its start */
    hfsbi_job_writer     writer;
    hfsb_buf             bytes; /* for the program */
    size_t               given; /* of them */
    bool                 end;   /* then the input ends */
    bool                 stream;
    hfsbi_connect_reader reader;
    hfsb_buf             message; /* so far */
    hfsb_buf             held;
} hfsbi_e2b_input;

static void hfsbi_e2b_input_again(void *user);

/* True while the program does not take input. */
static bool hfsbi_e2b_input_waits(const hfsbi_e2b_input *in) {
    return in->writer.job != NULL;
}

static hfsbi_e2b_input *hfsbi_e2b_input_new(hfsbi_e2b_box *box,
                                            hfsb_request  *request) {
    const hfsb_alloc *alloc = &box->guest.tools->alloc;
    hfsbi_e2b_input *in = (hfsbi_e2b_input *)hfsbi_array(alloc, 1, sizeof *in);
    if (!in) {
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
        return NULL;
    }
    memset(in, 0, sizeof *in);
    in->box = box;
    in->request = request;
    in->bytes.alloc = in->message.alloc = in->held.alloc = *alloc;
    in->message.max = HFSBI_E2B_MESSAGE + 1;
    in->writer.on_room = hfsbi_e2b_input_again;
    in->writer.user = in;
    hfsbi_guest_hold(&box->guest);
    return in;
}

static void hfsbi_e2b_input_free(hfsbi_e2b_input *in) {
    hfsb_alloc alloc = in->bytes.alloc;
    hfsbi_program_forget_room(&in->writer);
    hfsbi_program_release(in->job);
    hfsbi_guest_release(&in->box->guest);
    hfsb_buf_free(&in->bytes);
    hfsb_buf_free(&in->message);
    hfsb_buf_free(&in->held);
    hfsbi_array_free(&alloc, in, 1, sizeof *in);
}

static void hfsbi_e2b_input_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_e2b_input_free((hfsbi_e2b_input *)user);
}

static void hfsbi_e2b_input_fail(hfsbi_e2b_input *in, hfsbi_connect_code code,
                                 const char *message) {
    hfsb_request *request = in->request;
    hfsb_request_set(request, NULL);
    hfsb_request_on_gone(request, NULL, NULL);
    hfsbi_e2b_fail(request, code, "%s", message);
    hfsbi_e2b_input_free(in);
}

/* Decodes base64 of either alphabet, padded or not. */
static hfsb_status hfsbi_e2b_decode(hfsb_str text, hfsb_buf *out,
                                    hfsb_err *err) {
    hfsb_buf    plain = HFSB_INIT;
    hfsb_status st;
    size_t      i;
    plain.alloc = out->alloc;
    while (text.len && text.ptr[text.len - 1] == '=')
        text = hfsb_str_slice(text, 0, text.len - 1);
    hfsb_buf_append(&plain, text);
    for (i = 0; plain.status == HFSB_OK && i < text.len; i++)
        if (plain.ptr[i] == '-' || plain.ptr[i] == '_')
            plain.ptr[i] = plain.ptr[i] == '-' ? '+' : '/';
    for (; i % 4; i++) hfsb_buf_append_byte(&plain, '=');
    st = plain.status == HFSB_OK
             ? hfsb_base64_decode(hfsb_buf_str(&plain), out, err)
             : plain.status;
    hfsb_buf_free(&plain);
    return st;
}

/* Reads {"stdin":...} or {"pty":...}. HFSB_OK; HFSB_REFUSED for the wrong one
   of them; HFSB_SYNTAX; HFSB_NOMEM. */
static hfsb_status hfsbi_e2b_input_read(hfsbi_e2b_input       *in,
                                        const hfsb_json_value *input,
                                        hfsb_err              *err) {
    const hfsb_json_value *pty = hfsb_json_get(input, "pty");
    const hfsb_json_value *text = pty ? pty : hfsb_json_get(input, "stdin");
    bool                   terminal = in->job->spec.raw.cols > 0;
    if (text && terminal != (pty != NULL))
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          terminal ? "The process has a terminal: send pty "
                                     "instead of stdin."
                                   : "The process has no terminal: send stdin "
                                     "instead of pty.");
    hfsb_buf_truncate(&in->bytes, 0);
    in->given = 0;
    return hfsbi_e2b_decode(hfsb_json_str(text, HFSB_LIT("")), &in->bytes,
                            err);
}

/* Gives the program what it takes. HFSB_OK: all of it; HFSB_BUSY: again later;
   else the failure. */
static hfsb_status hfsbi_e2b_input_give(hfsbi_e2b_input *in, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    while (st == HFSB_OK && (in->given < in->bytes.len || in->end)) {
        hfsb_str piece = hfsb_str_slice(hfsb_buf_str(&in->bytes), in->given,
                                        in->given + HFSBI_E2B_GIVE);
        bool     last = in->given + piece.len == in->bytes.len;
        st = hfsbi_program_input(in->job, piece, last && in->end, err);
        if (st != HFSB_OK) break;
        in->given += piece.len;
        if (last) in->end = false;
    }
    if (st != HFSB_LIMIT) return st;
    hfsbi_program_await_room(in->job, &in->writer);
    return HFSB_BUSY;
}

/* Gives, and answers a call without a stream. */
static void hfsbi_e2b_input_step(hfsbi_e2b_input *in) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = hfsbi_e2b_input_give(in, &err);
    if (st == HFSB_BUSY) return;
    if (st == HFSB_OK) {
        hfsb_request_on_gone(in->request, NULL, NULL);
        hfsbi_e2b_reply_empty(in->request);
        hfsbi_e2b_input_free(in);
    } else hfsbi_e2b_input_fail(in, hfsbi_e2b_code(st), err.msg);
}

/* SendInput and CloseStdin. */
static void hfsbi_e2b_input_call(void *user, hfsb_request *request, bool end) {
    hfsbi_e2b_ask    ask;
    hfsb_err         err = HFSB_INIT;
    hfsbi_job       *job;
    hfsbi_e2b_input *in = NULL;
    hfsb_status      st = HFSB_OK;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask)) return;
    job = hfsbi_e2b_select_running(ask.box, request, ask.doc.root);
    if (job) in = hfsbi_e2b_input_new(ask.box, request);
    if (!in) {
        hfsbi_program_release(job);
        hfsb_json_free(&ask.doc);
        return;
    }
    in->job = job;
    in->end = end;
    if (!end)
        st = hfsbi_e2b_input_read(in, hfsb_json_get(ask.doc.root, "input"),
                                  &err);
    else if (job->spec.raw.cols)
        st = hfsbi_fail(&err, HFSB_REFUSED, 0,
                        "The input of a terminal cannot be closed: send "
                        "Ctrl-D (4) instead.");
    hfsb_json_free(&ask.doc);
    if (st != HFSB_OK) {
        hfsbi_e2b_input_fail(in, hfsbi_e2b_code(st), err.msg);
        return;
    }
    hfsb_request_on_gone(request, hfsbi_e2b_input_gone, in);
    hfsbi_e2b_input_step(in);
}

static void hfsbi_e2b_send_input(void *user, hfsb_request *request) {
    hfsbi_e2b_input_call(user, request, false);
}

static void hfsbi_e2b_close_stdin(void *user, hfsb_request *request) {
    hfsbi_e2b_input_call(user, request, true);
}

/* A message of StreamInput is complete. False: it was refused, and `in` is
   freed. */
static bool hfsbi_e2b_input_message(hfsbi_e2b_input *in) {
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_err               err = HFSB_INIT;
    const hfsb_json_value *start, *data;
    hfsb_status            st;
    doc.alloc = in->bytes.alloc;
    st = hfsb_json_parse(hfsb_buf_str(&in->message), NULL, &doc, &err);
    hfsb_buf_truncate(&in->message, 0);
    start = hfsb_json_get(doc.root, "start");
    data = hfsb_json_get(doc.root, "data");
    if (start && !in->job) {
        /* it replies for itself when there is no such process */
        hfsb_request *request = in->request;
        in->job = hfsbi_e2b_select_running(in->box, request, start);
        if (!in->job) {
            hfsb_json_free(&doc);
            hfsb_request_set(request, NULL);
            hfsb_request_on_gone(request, NULL, NULL);
            hfsbi_e2b_input_free(in);
            return false;
        }
    } else if (data && !in->job)
        st = hfsbi_fail(&err, HFSB_ARG, 0,
                        "The first message must be a start, with a process.");
    else if (data)
        st = hfsbi_e2b_input_read(in, hfsb_json_get(data, "input"), &err);
    hfsb_json_free(&doc);
    if (st == HFSB_OK && in->job) st = hfsbi_e2b_input_give(in, &err);
    if (st == HFSB_OK || st == HFSB_BUSY) return true;
    hfsbi_e2b_input_fail(in, hfsbi_e2b_code(st),
                         err.msg[0] ? err.msg : "Out of memory.");
    return false;
}

/* Takes bytes of StreamInput. False: refused, and `in` is freed. */
static bool hfsbi_e2b_input_take(hfsbi_e2b_input *in, hfsb_str bytes,
                                 bool last) {
    hfsbi_connect_piece piece;
    hfsbi_connect_event event;
    hfsb_err            err = HFSB_INIT;
    size_t              used;
    while (!hfsbi_e2b_input_waits(in)) {
        event =
            hfsbi_connect_next(&in->reader, bytes, last, &piece, &used, &err);
        bytes = hfsb_str_slice(bytes, used, bytes.len);
        if (event == HFSBI_CONNECT_MORE || event == HFSBI_CONNECT_END)
            return true;
        if (event == HFSBI_CONNECT_BAD) {
            hfsbi_e2b_input_fail(in, piece.code, err.msg);
            return false;
        }
        hfsb_buf_append(&in->message, piece.data);
        if (in->message.status != HFSB_OK) {
            hfsbi_e2b_input_fail(in, HFSBI_CONNECT_UNAVAILABLE,
                                 "Out of memory.");
            return false;
        }
        if (piece.end_stream) hfsb_buf_truncate(&in->message, 0);
        else if (piece.over && !hfsbi_e2b_input_message(in)) return false;
    }
    if (bytes.len && hfsb_buf_append(&in->held, bytes) != HFSB_OK) {
        hfsbi_e2b_input_fail(in, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
        return false;
    }
    return true;
}

static void hfsbi_e2b_input_again(void *user) {
    hfsbi_e2b_input *in = (hfsbi_e2b_input *)user;
    hfsb_err         err = HFSB_INIT;
    hfsb_buf         held;
    hfsb_status      st;
    bool             ok;
    if (!in->stream) {
        hfsbi_e2b_input_step(in);
        return;
    }
    st = hfsbi_e2b_input_give(in, &err);
    if (st == HFSB_BUSY) return;
    if (st != HFSB_OK) {
        hfsbi_e2b_input_fail(in, hfsbi_e2b_code(st), err.msg);
        return;
    }
    held = in->held;
    memset(&in->held, 0, sizeof in->held);
    in->held.alloc = held.alloc;
    ok = hfsbi_e2b_input_take(in, hfsb_buf_str(&held), false);
    hfsb_buf_free(&held);
    if (ok && !hfsbi_e2b_input_waits(in)) hfsb_request_resume(in->request);
}

static void hfsbi_e2b_stream_input_begin(void *user, hfsb_request *request) {
    hfsbi_e2b_box   *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsbi_e2b_input *in = box ? hfsbi_e2b_input_new(box, request) : NULL;
    if (!in) return;
    in->stream = true;
    in->reader.max = HFSBI_E2B_MESSAGE;
    hfsb_request_set(request, in);
    hfsb_request_on_gone(request, hfsbi_e2b_input_gone, in);
}

static void hfsbi_e2b_stream_input_body(void *user, hfsb_request *request,
                                        hfsb_str piece) {
    hfsbi_e2b_input *in = (hfsbi_e2b_input *)hfsb_request_get(request);
    (void)user;
    if (in && hfsbi_e2b_input_take(in, piece, false) &&
        hfsbi_e2b_input_waits(in))
        hfsb_request_pause(request);
}

static void hfsbi_e2b_stream_input(void *user, hfsb_request *request) {
    hfsbi_e2b_input *in = (hfsbi_e2b_input *)hfsb_request_get(request);
    (void)user;
    if (!in || !hfsbi_e2b_input_take(in, HFSB_LIT(""), true)) return;
    hfsb_request_on_gone(request, NULL, NULL);
    hfsbi_e2b_input_free(in);
    hfsb_reply_begin(request, 200, "application/connect+json");
    (void)hfsbi_e2b_send(request, HFSB_LIT("{}"));
    hfsbi_e2b_end(request, HFSBI_CONNECT_UNKNOWN, NULL);
}

/* ---- the routes ---- */

HFSBI_FN hfsb_status hfsbi_e2b_add_input(hfsbi_e2b *e2b, hfsb_err *err) {
    static const hfsbi_dialect_route routes[] = {
        {"POST", "/process.Process/SendInput", hfsbi_e2b_send_input, false,
         NULL, NULL},
        {"POST", "/process.Process/CloseStdin", hfsbi_e2b_close_stdin, false,
         NULL, NULL},
        {"POST", "/process.Process/StreamInput", hfsbi_e2b_stream_input, false,
         hfsbi_e2b_stream_input_begin, hfsbi_e2b_stream_input_body},
        {NULL, NULL, NULL, false, NULL, NULL}};
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
