/* fake_hub_fault.h - faults on demand, and how an answer is delivered. Part of
   fake_hub.h. */

static char *fh_keep(const char *text) {
    char *copy;
    if (!text) return NULL;
    copy = (char *)malloc(strlen(text) + 1);
    if (!copy) fh_die("memory");
    return strcpy(copy, text);
}

static void fh_drop(const char *text) {
    free((void *)(uintptr_t)text);
}

HFSBI_UNUSED static void fh_fault(fh_hub *hub, const fh_fault_spec *spec) {
    fh_fault_item *f = (fh_fault_item *)fh_new(sizeof *f), **at = &hub->faults;
    f->spec = *spec;
    f->spec.method = fh_keep(spec->method);
    f->spec.path = fh_keep(spec->path);
    f->spec.message = fh_keep(spec->message);
    f->spec.code = fh_keep(spec->code);
    f->spec.fields = fh_keep(spec->fields);
    fh_lock(hub);
    while (*at) at = &(*at)->next;
    *at = f;
    fh_unlock(hub);
}

HFSBI_UNUSED static void fh_no_faults(fh_hub *hub) {
    fh_lock(hub);
    while (hub->faults) {
        fh_fault_item *f = hub->faults;
        hub->faults = f->next;
        fh_drop(f->spec.method);
        fh_drop(f->spec.path);
        fh_drop(f->spec.message);
        fh_drop(f->spec.code);
        fh_drop(f->spec.fields);
        free(f);
    }
    fh_unlock(hub);
}

static bool fh_fault_hits(fh_hub *hub, fh_fault_item *f) {
    size_t nth = f->spec.nth ? f->spec.nth : 1;
    size_t times = f->spec.times ? f->spec.times : 1;
    if (f->seen < nth) return false;
    if (times != FH_ALWAYS && f->seen - nth >= times) return false;
    if (!f->spec.percent) return true;
    hub->random = hub->random * 6364136223846793005ull +
                  1442695040888963407ull;
    return (hub->random >> 33) % 100 < f->spec.percent;
}

/* The fault that this request meets, or NULL. */
static const fh_fault_spec *fh_fault_for(fh_hub *hub, const fh_record *r) {
    const fh_fault_spec *found = NULL;
    fh_fault_item       *f;
    for (f = hub->faults; f; f = f->next) {
        if (!fh_record_is(r, f->spec.method, f->spec.path)) continue;
        f->seen++;
        if (!found && fh_fault_hits(hub, f)) found = &f->spec;
    }
    return found;
}

static const char *fh_fault_text(int status) {
    static const struct {
        int         status;
        const char *text;
    } list[] = {
        {401, "Invalid credentials in Authorization header"},
        {402, "You need a paid plan to create a Docker Space"},
        {403, "You don't have the rights to do this"},
        {404, "Repository not found"},
        {409, "You already created this space repo"},
        {412, "A commit has happened since. Please refresh and try again."},
        {429, "We had to rate limit you, you hit the quota of 1000 api "
              "requests per 5 minutes period."},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
    };
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].status == status) return list[i].text;
    return "A fault that was asked for";
}

static void fh_fault_json(const fh_fault_spec *f, const char *text,
                          fh_reply *r) {
    hfsb_json_writer w;
    fh_json(&w, r);
    hfsb_json_put_object(&w);
    if (f->shape == FH_ERRORS || f->shape == FH_ERROR_LIST) {
        fh_key(&w, f->shape == FH_ERRORS ? "errors" : "error");
        hfsb_json_put_array(&w);
        if (f->shape == FH_ERRORS) {
            hfsb_json_put_object(&w);
            fh_text(&w, "message", text);
            hfsb_json_put_end(&w);
        } else {
            hfsb_json_put_str(&w, hfsb_cstr(text));
            hfsb_json_put_str(&w, HFSB_LIT("and a second message"));
        }
        hfsb_json_put_end(&w);
    } else if (f->shape == FH_DESCRIPTION) {
        fh_text(&w, "error", "a_code");
        fh_text(&w, "error_description", text);
    } else {
        fh_text(&w, "error", text);
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
}

/* The answer that the fault gives instead of the true one. */
static void fh_fault_answer(const fh_fault_spec *f, fh_reply *r) {
    const char *text = f->message ? f->message : fh_fault_text(f->status);
    if (f->status) {
        r->stream = false;
        hfsb_buf_truncate(&r->fields, 0);
        if (f->shape == FH_TEXT) fh_raw(r, f->status, "text/plain", text);
        else if (f->shape == FH_HTML) fh_html(r, f->status, text);
        else if (f->shape == FH_EMPTY) fh_raw(r, f->status, "", "");
        else if (f->shape == FH_RAW) fh_raw(r, f->status, FH_JSON, text);
        else fh_fault_json(f, text, r);
        r->status = f->status;
    }
    if (f->code) fh_head_field(r, "X-Error-Code", f->code);
    if (f->fields) {
        fh_put(&r->fields, f->fields);
        fh_put(&r->fields, "\r\n");
    }
}

/* ---- delivery of the Hub's answers, in its loop ---- */

typedef struct fh_delivery {
    hfsbi_timer   timer; /* first: found by its address */
    hfsb_request *request;
    fh_reply      reply;
    fh_cut        cut;
    bool          begun; /* a stream, which is to be ended */
} fh_delivery;

static void fh_delivery_free(fh_delivery *d) {
    fh_reply_free(&d->reply);
    free(d);
}

/* The head as bytes. */
static void fh_head_bytes(const fh_reply *r, bool keep, hfsb_buf *out) {
    FH_MUST(hfsb_buf_printf(out, "HTTP/1.1 %d %s\r\n", r->status,
                            hfsb_http_reason(r->status)));
    if (*r->type)
        FH_MUST(hfsb_buf_printf(out, "Content-Type: %s\r\n", r->type));
    FH_MUST(hfsb_buf_append(out, hfsb_buf_str(&r->fields)));
    if (!r->stream)
        FH_MUST(hfsb_buf_printf(out, "Content-Length: %zu\r\n", r->body.len));
    if (!keep) fh_put(out, "Connection: close\r\n");
    fh_put(out, "\r\n");
}

/* Sends what comes before the cut; then the caller closes. */
static void fh_cut_send(int fd, const fh_reply *r, fh_cut cut) {
    hfsb_buf      out = HFSB_INIT;
    struct linger now;
    size_t        half;
    now.l_onoff = 1;
    now.l_linger = 0;
    fh_head_bytes(r, true, &out);
    half = out.len / 2;
    if (cut == FH_CUT_BODY || cut == FH_RESET_BODY) {
        half = out.len + r->body.len / 2;
        FH_MUST(hfsb_buf_append(&out, hfsb_buf_str(&r->body)));
    }
    if (cut != FH_CLOSE && cut != FH_RESET)
        (void)!send(fd, out.ptr, half, MSG_NOSIGNAL);
    if (cut == FH_RESET || cut == FH_RESET_BODY)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    hfsb_buf_free(&out);
}

/* "Name: value" lines as fields of the reply. */
static void fh_send_fields(hfsb_request *request, hfsb_str lines) {
    while (lines.len) {
        size_t   end = hfsb_str_find_byte(lines, '\n'), colon;
        hfsb_str line = hfsb_str_slice(lines, 0, end);
        char     name[64];
        lines = hfsb_str_slice(lines, end == HFSB_NPOS ? lines.len : end + 1,
                               lines.len);
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        colon = hfsb_str_find_byte(line, ':');
        if (colon == HFSB_NPOS) continue;
        fh_copy(name, sizeof name, hfsb_str_slice(line, 0, colon));
        line = hfsb_str_slice(line, colon + 1, line.len);
        while (line.len && *line.ptr == ' ')
            line = hfsb_str_slice(line, 1, line.len);
        FH_MUST(hfsb_reply_field(request, name, line));
    }
}

static void fh_delivery_gone(void *user, hfsb_request *request) {
    fh_delivery *d = (fh_delivery *)user;
    hfsbi_loop_timer_clear(request->conn->server->loop, &d->timer);
    fh_delivery_free(d);
}

static void fh_delivery_now(fh_delivery *d) {
    hfsb_request *request = d->request;
    hfsb_request_on_gone(request, NULL, NULL);
    if (d->begun) {
        hfsb_reply_end(request);
    } else if (d->cut >= FH_CUT_BODY && d->reply.stream) {
        fh_send_fields(request, hfsb_buf_str(&d->reply.fields));
        hfsb_reply_begin(request, d->reply.status, d->reply.type);
        (void)!hfsb_reply_write(
            request, hfsb_str_slice(hfsb_buf_str(&d->reply.body), 0,
                                    d->reply.body.len / 2));
        hfsb_reply_abort(request);
    } else if (d->cut) {
        fh_cut_send(request->conn->io.fd, &d->reply, d->cut);
        hfsb_reply_abort(request);
    } else {
        fh_send_fields(request, hfsb_buf_str(&d->reply.fields));
        if (d->reply.stream) {
            hfsb_reply_begin(request, d->reply.status, d->reply.type);
            (void)!hfsb_reply_write(request, hfsb_buf_str(&d->reply.body));
            if (d->reply.open_ms > 0) {
                d->begun = true;
                hfsb_request_on_gone(request, fh_delivery_gone, d);
                hfsbi_loop_timer(request->conn->server->loop, &d->timer,
                                 hfsb_clock_ms() + d->reply.open_ms);
                return;
            }
            hfsb_reply_end(request);
        } else {
            hfsb_reply(request, d->reply.status, d->reply.type,
                       hfsb_buf_str(&d->reply.body));
        }
    }
    fh_delivery_free(d);
}

static void fh_delivery_due(hfsbi_timer *timer) {
    fh_delivery_now((fh_delivery *)(void *)timer);
}

/* Takes what is in *reply. */
static void fh_deliver(hfsb_request *request, fh_reply *reply, fh_cut cut,
                       long long delay_ms) {
    fh_delivery *d = (fh_delivery *)fh_new(sizeof *d);
    d->request = request;
    d->reply = *reply;
    d->cut = cut;
    d->timer.fn = fh_delivery_due;
    hfsb_request_on_gone(request, fh_delivery_gone, d);
    if (delay_ms > 0)
        hfsbi_loop_timer(request->conn->server->loop, &d->timer,
                         hfsb_clock_ms() + delay_ms);
    else fh_delivery_now(d);
}
