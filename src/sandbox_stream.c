/* sandbox_stream.c - what a command prints, shown while it runs. Depends on:
   sse, json, sandbox_try. */
#include "sandbox_call.h"

enum {
    HFSBI_STREAM_EVENT = 8 << 20,  /* bytes of one event */
    HFSBI_STREAM_ERRORS = 1 << 20, /* of stderr that are remembered */
    HFSBI_STREAM_PLAIN = 64 << 20, /* of a reply that is no stream */
    HFSBI_STREAM_REST = 16 << 20   /* that are shown after a break */
};

/* ---- events ---- */

static void hfsbi_remote_show(hfsbi_remote *r, hfsb_proc_stream stream,
                              hfsb_str text) {
    if (text.len) r->opts.on_text(r->opts.user, stream, text);
}

/* {"offset":0,"text":"..."} */
static void hfsbi_remote_piece(hfsbi_remote *r, hfsb_proc_stream stream,
                               const hfsb_json_value *piece) {
    hfsbi_remote_text     *t = &r->text;
    const hfsb_json_value *at = hfsb_json_get(piece, "offset");
    hfsb_str text = hfsb_json_str(hfsb_json_get(piece, "text"), HFSB_LIT(""));
    unsigned long long offset = hfsb_json_uint(at, t->shown[stream]);
    t->shown[stream] = offset + text.len;
    /* its beginning is enough to find it again */
    if (stream == HFSB_PROC_STDERR && t->errors.len == offset)
        (void)!hfsb_buf_append(&t->errors, text);
    hfsbi_remote_show(r, stream, text);
}

/* {"stream":"stdout","from":5,"to":70000}: we were too slow. */
static void hfsbi_remote_gap(hfsbi_remote *r, const hfsb_json_value *gap) {
    hfsb_str name =
        hfsb_json_str(hfsb_json_get(gap, "stream"), HFSB_LIT("stdout"));
    bool               is_error = hfsb_str_equal(name, HFSB_LIT("stderr"));
    hfsb_proc_stream   stream = is_error ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT;
    unsigned long long from = hfsb_json_uint(hfsb_json_get(gap, "from"), 0);
    unsigned long long to = hfsb_json_uint(hfsb_json_get(gap, "to"), from);
    char               line[96];
    if (to <= from) return;
    r->text.shown[stream] = to;
    (void)snprintf(line, sizeof line, "\n(%llu bytes are not shown)\n",
                   to - from);
    hfsbi_remote_show(r, stream, hfsb_cstr(line));
}

static bool hfsbi_remote_on_event(void *user, hfsb_str event, hfsb_str data) {
    hfsbi_remote      *r = (hfsbi_remote *)user;
    hfsbi_remote_text *t = &r->text;
    hfsb_json_doc      doc = HFSB_INIT;
    if (hfsb_str_equal(event, HFSB_LIT("result"))) {
        hfsb_buf_truncate(&t->result, 0);
        t->status = hfsb_buf_append(&t->result, data);
        t->ended = t->status == HFSB_OK;
        return t->ended;
    }
    doc.alloc = r->sandbox->o.alloc;
    t->status = hfsb_json_parse(data, NULL, &doc, NULL);
    if (t->status == HFSB_SYNTAX) t->status = HFSB_OK; /* not for us */
    if (t->status != HFSB_OK) return false;
    if (hfsb_str_equal(event, HFSB_LIT("stdout")))
        hfsbi_remote_piece(r, HFSB_PROC_STDOUT, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("stderr")))
        hfsbi_remote_piece(r, HFSB_PROC_STDERR, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("gap")))
        hfsbi_remote_gap(r, doc.root);
    hfsb_json_free(&doc);
    return true;
}

HFSBI_FN bool hfsbi_remote_on_head(void *user, int status,
                                   const hfsb_http_field *fields,
                                   size_t                 field_count) {
    hfsbi_remote  *r = (hfsbi_remote *)user;
    const hfsb_str type = HFSB_LIT("text/event-stream");
    size_t         i;
    (void)status;
    for (i = 0; i < field_count; i++)
        if (hfsb_http_same(fields[i].name, HFSB_LIT("Content-Type")) &&
            hfsb_http_same(hfsb_str_slice(fields[i].value, 0, type.len), type))
            r->text.streams = r->text.used = true;
    r->text.errors.max = HFSBI_STREAM_ERRORS;
    r->text.plain.max = HFSBI_STREAM_PLAIN;
    r->text.sse.max = HFSBI_STREAM_EVENT;
    return true;
}

HFSBI_FN bool hfsbi_remote_on_body(void *user, hfsb_str piece) {
    hfsbi_remote *r = (hfsbi_remote *)user;
    hfsb_status   st;
    if (!r->text.streams) {
        r->text.status = hfsb_buf_append(&r->text.plain, piece);
        return r->text.status == HFSB_OK;
    }
    st = hfsb_sse_feed(&r->text.sse, piece, hfsbi_remote_on_event, r);
    if (st != HFSB_OK && st != HFSB_CANCELLED) r->text.status = st;
    return st == HFSB_OK;
}

/* ---- after a break ---- */

/* What the command has printed from offset on; *next is where that ends. */
static hfsb_status hfsbi_remote_output(hfsbi_remote *r, hfsb_str id,
                                       unsigned long long  offset,
                                       unsigned long long *next,
                                       hfsb_buf           *out) {
    hfsbi_remote     ask;
    hfsb_json_writer w;
    hfsb_err         err;
    hfsb_status      st;
    hfsbi_remote_init(&ask, r->sandbox,
                      hfsbi_tool_find(HFSB_LIT("bash_output")), r->cancel);
    hfsb_json_writer_init(&w, &ask.body, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", id);
    hfsb_json_put_key(&w, HFSB_LIT("offset"));
    hfsb_json_put_uint(&w, offset);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, &err);
    if (st == HFSB_OK) st = hfsbi_remote_send(&ask, &err);
    *next = hfsb_json_uint(hfsb_json_get(ask.doc.root, "next_offset"), offset);
    if (st == HFSB_OK && ask.status == 200)
        st = hfsb_buf_append(
            out, hfsb_json_str(hfsb_json_get(ask.doc.root, "output"),
                               HFSB_LIT("")));
    hfsbi_remote_free(&ask);
    return st;
}

/* The log of a command that has ended: stdout, then stderr. What was shown of
   stderr is in the middle of the rest, and is taken out. */
static void hfsbi_remote_show_log(hfsbi_remote *r, hfsb_str log) {
    hfsb_str errors = hfsb_buf_str(&r->text.errors);
    size_t   at = errors.len ? hfsb_str_find(log, errors) : HFSB_NPOS;
    size_t   shown = (size_t)r->text.shown[HFSB_PROC_STDERR];
    if (at == HFSB_NPOS) {
        hfsbi_remote_show(r, HFSB_PROC_STDOUT, log);
        return;
    }
    hfsbi_remote_show(r, HFSB_PROC_STDOUT, hfsb_str_slice(log, 0, at));
    hfsbi_remote_show(r, HFSB_PROC_STDERR,
                      hfsb_str_slice(log, at + shown, log.len));
}

HFSBI_FN void hfsbi_remote_show_rest(hfsbi_remote *r, hfsb_str output) {
    hfsb_str id =
        hfsb_json_str(hfsb_json_get(r->doc.root, "id"), HFSB_LIT(""));
    unsigned long long offset = r->text.shown[HFSB_PROC_STDOUT], next;
    hfsb_buf           log = HFSB_INIT;
    size_t             had;
    if (!r->opts.on_text || r->text.ended) return;
    if (!r->text.used || !id.len) {
        hfsbi_remote_show(r, HFSB_PROC_STDOUT, output);
        return;
    }
    log.alloc = r->sandbox->o.alloc;
    log.max = HFSBI_STREAM_REST;
    /* without text it is the end, also when the offset says otherwise */
    for (had = HFSB_NPOS; had != log.len; offset = next) {
        had = log.len;
        if (hfsbi_remote_output(r, id, offset, &next, &log) != HFSB_OK ||
            next <= offset)
            break;
    }
    hfsbi_remote_show_log(r, hfsb_buf_str(&log));
    hfsb_buf_free(&log);
}
