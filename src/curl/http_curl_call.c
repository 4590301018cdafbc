/* http_curl_call.c - one request through a handle of libcurl. Depends on:
   http, url, net, http_curl_error. */
#include "http_curl_parts.h"

/* What a callback returns for n bytes when it wants the call to end. */
static size_t hfsbi_curl_stop(size_t n) {
    return n ? 0 : 1;
}

/* ---- the reply ---- */

/* The fields of x->head, which ends in LF; how many, at most room. */
static size_t hfsbi_curl_split(const hfsb_buf *head, hfsb_http_field *fields,
                               size_t room) {
    hfsb_str rest = hfsb_buf_str(head);
    size_t   n = 0;
    while (rest.len && n < room) {
        size_t   end = hfsb_str_find_byte(rest, '\n');
        hfsb_str line = hfsb_str_slice(rest, 0, end);
        size_t   colon = hfsb_str_find_byte(line, ':');
        fields[n].name = hfsb_str_slice(line, 0, colon);
        fields[n++].value =
            hfsbi_trim(hfsb_str_slice(line, colon + 1, line.len));
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    return n;
}

/* The empty line behind a head came. */
static void hfsbi_curl_head_done(hfsbi_curl_call *x) {
    size_t           room = hfsb_str_count_byte(hfsb_buf_str(&x->head), '\n');
    hfsb_http_field *fields;
    if (x->status < 200) return; /* interim: the next one counts */
    x->has_head = true;
    if (!x->call->on_head) return;
    fields =
        (hfsb_http_field *)hfsbi_array(&x->curl->alloc, room, sizeof *fields);
    if (!fields) {
        hfsbi_curl_end(x, HFSB_NOMEM, "No memory for the head of the reply.");
        return;
    }
    if (!x->call->on_head(x->call->user, x->status, fields,
                          hfsbi_curl_split(&x->head, fields, room)))
        hfsbi_curl_end(x, HFSB_CANCELLED,
                       "Cancelled at the head of the reply.");
    hfsbi_array_free(&x->curl->alloc, fields, room, sizeof *fields);
}

/* "HTTP/2 200": 200; 0 when it is none. */
static int hfsbi_curl_status(hfsb_str line) {
    size_t at = hfsb_str_find_byte(line, ' ');
    int    status = 0, i;
    if (at == HFSB_NPOS || line.len < at + 4) return 0;
    for (i = 1; i <= 3; i++) {
        int digit = line.ptr[at + (size_t)i] - '0';
        if (digit < 0 || digit > 9) return 0;
        status = 10 * status + digit;
    }
    return status >= 100 ? status : 0;
}

static void hfsbi_curl_head_line(hfsbi_curl_call *x, hfsb_str line) {
    hfsb_status st = HFSB_OK;
    bool        folded = line.len && (*line.ptr == ' ' || *line.ptr == '\t');
    size_t      colon = hfsb_str_find_byte(line, ':');
    if (folded && x->head.len) {
        x->head.ptr[x->head.len - 1] = ' ';
        line = hfsbi_trim(line);
    } else if (colon == HFSB_NPOS ||
               !hfsbi_http_all(hfsb_str_slice(line, 0, colon),
                               HFSBI_HTTP_TOKEN)) {
        hfsbi_curl_end(x, HFSB_REMOTE,
                       "A line in the head of the reply is no field.");
        return;
    }
    st = hfsb_buf_append(&x->head, line);
    if (!st) st = hfsb_buf_append_byte(&x->head, '\n');
    if (st == HFSB_LIMIT)
        hfsbi_curl_end(x, HFSB_REMOTE,
                       "The head of the reply has more than %zu bytes.",
                       x->head.max);
    else if (st) hfsbi_curl_end(x, st, "No memory for the head of the reply.");
}

/* Each line of a head, those of interim replies and trailers included. */
static size_t hfsbi_curl_on_line(char *ptr, size_t size, size_t n,
                                 void *user) {
    hfsbi_curl_call *x = (hfsbi_curl_call *)user;
    hfsb_str         line = hfsb_str_make(ptr, size * n);
    x->moved += line.len;
    if (x->has_head) return size * n;
    if (line.len && line.ptr[line.len - 1] == '\n') line.len--;
    if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
    if (hfsb_str_starts(line, HFSB_LIT("HTTP/"))) {
        hfsb_buf_truncate(&x->head, 0);
        x->status = hfsbi_curl_status(line);
        if (!x->status)
            hfsbi_curl_end(x, HFSB_REMOTE, "The reply is not HTTP.");
    } else if (!line.len) {
        hfsbi_curl_head_done(x);
    } else {
        hfsbi_curl_head_line(x, line);
    }
    return x->ended ? hfsbi_curl_stop(size * n) : size * n;
}

static size_t hfsbi_curl_on_body(char *ptr, size_t size, size_t n,
                                 void *user) {
    hfsbi_curl_call *x = (hfsbi_curl_call *)user;
    hfsb_str         piece = hfsb_str_make(ptr, size * n);
    x->moved += piece.len;
    if (!piece.len || !x->call->on_body) return piece.len;
    if (x->call->on_body(x->call->user, piece)) return piece.len;
    hfsbi_curl_end(x, HFSB_CANCELLED, "Cancelled in the body of the reply.");
    return hfsbi_curl_stop(piece.len);
}

/* ---- the request ---- */

static size_t hfsbi_curl_on_read(char *ptr, size_t size, size_t n,
                                 void *user) {
    hfsbi_curl_call *x = (hfsbi_curl_call *)user;
    size_t           room = size * n, got = 0;
    hfsb_status      st;
    if (room > x->body_left) room = (size_t)x->body_left;
    if (!room) return 0;
    st = x->call->body_read(x->call->user, ptr, room, &got, x->err);
    if (st) {
        x->ended = st;
        return CURL_READFUNC_ABORT;
    }
    if (!got || got > room) {
        hfsbi_curl_end(x, HFSB_ARG, "body_read gave %zu bytes, of 1 to %zu.",
                       got, room);
        return CURL_READFUNC_ABORT;
    }
    x->body_left -= got;
    x->moved += got;
    return got;
}

/* What body_read gave is gone. */
static int hfsbi_curl_on_seek(void *user, curl_off_t offset, int origin) {
    (void)user, (void)offset, (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

/* libcurl comes here each time it is about to send the request. It sends one
   again, of any method, when a kept connection ends without a byte of reply;
   the peer may have done what was asked all the same. */
static int hfsbi_curl_on_request(void *user, char *ip, char *local_ip,
                                 int port, int local_port) {
    hfsbi_curl_call *x = (hfsbi_curl_call *)user;
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    x->again = x->requested &&
               !hfsb_str_equal(x->call->method, HFSB_LIT("GET")) &&
               !hfsb_str_equal(x->call->method, HFSB_LIT("HEAD"));
    if (x->again) return CURL_PREREQFUNC_ABORT;
    x->requested = true;
    x->moved++; /* here idle_ms begins */
    return CURL_PREREQFUNC_OK;
}

/* Those that the transport makes itself. */
static bool hfsbi_curl_own_field(hfsb_str name) {
    return hfsbi_http_is(name, "host") || hfsbi_http_is(name, "connection") ||
           hfsbi_http_is(name, "content-length") ||
           hfsbi_http_is(name, "transfer-encoding");
}

static hfsb_status hfsbi_curl_add(hfsbi_curl_call *x, const char *line) {
    struct curl_slist *list = curl_slist_append(x->fields, line);
    if (!list) return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    x->fields = list;
    return HFSB_OK;
}

static hfsb_status hfsbi_curl_add_field(hfsbi_curl_call       *x,
                                        const hfsb_http_field *field,
                                        hfsb_buf              *line) {
    hfsb_status st = HFSB_ARG;
    hfsb_buf_truncate(line, 0);
    if (!hfsbi_curl_own_field(field->name))
        st = hfsb_http_put_field(line, field->name, field->value);
    if (st == HFSB_ARG) {
        (void)hfsbi_fail(x->err, st, 0, "The field ");
        hfsbi_err_quote(x->err, field->name, 60);
        hfsbi_err_add(x->err, hfsbi_curl_own_field(field->name)
                                  ? " is set by the transport."
                                  : " cannot be sent: its name is none, or "
                                    "its value holds a control byte.");
        return st;
    }
    if (st) return hfsbi_fail_status(x->err, st, "request");
    hfsb_buf_truncate(line, line->len - 2); /* CRLF is libcurl's */
    if (hfsbi_trim(field->value).len) return hfsbi_curl_add(x, line->ptr);
    /* "name:" would mean to leave it out */
    hfsb_buf_truncate(line, field->name.len + 1);
    line->ptr[field->name.len] = ';';
    return hfsbi_curl_add(x, line->ptr);
}

/* All fields, and those that libcurl would add on its own left out. */
static hfsb_status hfsbi_curl_add_fields(hfsbi_curl_call *x) {
    static const char *const not_sent[] = {
        "Accept:", "Expect:", "Content-Type:"};
    hfsb_buf    line = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      i;
    line.alloc = x->curl->alloc;
    for (i = 0; i < x->call->field_count && !st; i++)
        st = hfsbi_curl_add_field(x, &x->call->fields[i], &line);
    hfsb_buf_free(&line);
    for (i = 0; i < sizeof not_sent / sizeof *not_sent && !st; i++)
        st = hfsbi_curl_add(x, not_sent[i]);
    return st;
}

HFSBI_FN hfsb_status hfsbi_curl_prepare(hfsbi_curl_call *x) {
    const hfsb_http_call *call = x->call;
    hfsb_status           st = hfsb_url_parse(call->url, &x->url, x->err);
    if (st) return st;
    if (x->url.user.ptr)
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "The URL holds a user's name: send it in a field "
                          "Authorization.");
    if (!hfsbi_http_all(call->method, HFSBI_HTTP_TOKEN) ||
        hfsb_str_equal(call->method, HFSB_LIT("CONNECT")))
        return hfsbi_fail(x->err, HFSB_ARG, 0, "The method cannot be used.");
    if (call->body.ptr && call->body_read)
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "Both body and body_read are given.");
    if (hfsb_str_equal(call->method, HFSB_LIT("HEAD")) &&
        (call->body.ptr || call->body_read))
        return hfsbi_fail(x->err, HFSB_ARG, 0, "HEAD is sent without a body.");
    st = hfsb_buf_append(&x->method, call->method);
    if (!st) st = hfsb_buf_append(&x->address, call->url);
    if (st) return hfsbi_fail_status(x->err, st, "request");
    return hfsbi_curl_add_fields(x);
}

/* ---- what libcurl is told ---- */

static void hfsbi_curl_set_body(hfsbi_curl_call *x) {
    CURL                 *easy = x->slot->easy;
    const hfsb_http_call *call = x->call;
    x->body_left = call->body_read ? call->body_length : call->body.len;
    (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)x->body_left);
    if (x->body_left > 65536)
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 262144L);
    if (!x->body_left || !call->body_read) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                               x->body_left ? call->body.ptr : "");
        return;
    }
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, hfsbi_curl_on_read);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, hfsbi_curl_on_seek);
}

/* libcurl knows GET, HEAD and POST; any other method is one of these under
   another name. False: no memory. */
static bool hfsbi_curl_set_method(hfsbi_curl_call *x) {
    CURL    *easy = x->slot->easy;
    hfsb_str method = x->call->method, known = HFSB_LIT("GET");
    if (hfsb_str_equal(method, HFSB_LIT("HEAD")))
        return !curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (x->call->body.ptr || x->call->body_read ||
        hfsb_str_equal(method, HFSB_LIT("POST")) ||
        hfsb_str_equal(method, HFSB_LIT("PUT")) ||
        hfsb_str_equal(method, HFSB_LIT("PATCH"))) {
        hfsbi_curl_set_body(x);
        known = HFSB_LIT("POST");
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    return hfsb_str_equal(method, known) ||
           !curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, x->method.ptr);
}

/* Only those that were named are trusted, not the system's besides. */
static bool hfsbi_curl_set_trust(const hfsbi_curl_call *x) {
    const hfsbi_curl *c = x->curl;
    CURL             *easy = x->slot->easy;
    if (!c->ca_file.len && !c->ca_dir.len) return true;
    return !curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file.ptr) &&
           !curl_easy_setopt(easy, CURLOPT_CAPATH, c->ca_dir.ptr);
}

static void hfsbi_curl_set_protocols(const hfsbi_curl_call *x) {
    CURL *easy = x->slot->easy;
#if LIBCURL_VERSION_NUM >= 0x075500
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                           (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* a lookup that was cancelled is not waited for */
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    /* a libcurl without HTTP/2 refuses the wish, and speaks 1.1 */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                           (long)(x->curl->http1 ? CURL_HTTP_VERSION_1_1
                                                 : CURL_HTTP_VERSION_2TLS));
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                           (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 102400L);
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, x->curl->kept_seconds);
}

HFSBI_FN bool hfsbi_curl_set(hfsbi_curl_call *x) {
    CURL           *easy = x->slot->easy;
    const hfsb_buf *proxy =
        x->url.secure ? &x->curl->secure_proxy : &x->curl->proxy;
    long long connect_ms = x->call->connect_ms ? x->call->connect_ms : 30000;
    if (connect_ms > 0x7fffffff) connect_ms = 0x7fffffff;
    curl_easy_reset(easy); /* its connections stay */
    x->slot->text[0] = '\0';
    x->slot->code = 0;
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, x->slot->text);
    hfsbi_curl_set_protocols(x);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, hfsbi_curl_on_line);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, hfsbi_curl_on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION,
                           hfsbi_curl_on_request);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                           hfsbi_curl_on_socket);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, x->slot);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION,
                           hfsbi_curl_on_close);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, x->slot);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, x->fields);
    return !curl_easy_setopt(easy, CURLOPT_URL, x->address.ptr) &&
           !curl_easy_setopt(easy, CURLOPT_PROXY,
                             proxy->len ? proxy->ptr : "") &&
           !curl_easy_setopt(easy, CURLOPT_NOPROXY,
                             x->curl->no_proxy.len ? x->curl->no_proxy.ptr
                                                   : "") &&
           hfsbi_curl_set_trust(x) && hfsbi_curl_set_method(x);
}

/* ---- until its end ---- */

/* Notes whether bytes went either way since the last look. */
static void hfsbi_curl_look(hfsbi_curl_call *x, long long now,
                            unsigned long long *seen) {
    curl_off_t sent = 0;
    /* a body in memory passes through no callback */
    if (x->call->body.len)
        (void)curl_easy_getinfo(x->slot->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (x->moved + (unsigned long long)sent == *seen) return;
    *seen = x->moved + (unsigned long long)sent;
    x->moved_at = now;
}

/* Ends the call when it was cancelled or a time is over; else how long it may
   wait, in milliseconds. */
static int hfsbi_curl_patience(hfsbi_curl_call *x, long long now) {
    const hfsb_http_call *call = x->call;
    hfsb_str              at = hfsb_buf_str(&x->slot->origin);
    long long             left = 60000, n;
    if (hfsb_cancel_is_set(call->cancel))
        hfsbi_curl_end(x, HFSB_CANCELLED, "The call to %.*s was cancelled.",
                       (int)at.len, at.ptr);
    if (call->total_ms) {
        n = x->begun_at + call->total_ms - now;
        if (n <= 0)
            hfsbi_curl_end(x, HFSB_TIMEOUT,
                           "The call to %.*s was not over after %lld ms.",
                           (int)at.len, at.ptr, call->total_ms);
        if (n < left) left = n;
    }
    if (call->idle_ms && x->requested) {
        n = x->moved_at + call->idle_ms - now;
        if (n <= 0)
            hfsbi_curl_end(x, HFSB_TIMEOUT,
                           "Nothing came from %.*s for %lld ms.", (int)at.len,
                           at.ptr, call->idle_ms);
        if (n < left) left = n;
    }
    return (int)left;
}

/* Steps until libcurl has a result or a callback, the clock or another thread
   ended it. */
static CURLcode hfsbi_curl_steps(hfsbi_curl_call *x) {
    unsigned long long seen = 0;
    struct curl_waitfd wake = HFSB_INIT;
    hfsbi_signal_guard guard; /* some TLS libraries write() */
    int                running = 1, wait, none;
    wake.fd = (curl_socket_t)hfsb_cancel_fd(x->call->cancel);
    wake.events = CURL_WAIT_POLLIN;
    for (;;) {
        CURLMcode bad;
        CURLMsg  *message;
        long long now;
        hfsbi_signal_guard_begin(&guard);
        bad = curl_multi_perform(x->slot->multi, &running);
        hfsbi_signal_guard_end(&guard);
        if (bad) return CURLE_OUT_OF_MEMORY;
        if (!running) {
            message = curl_multi_info_read(x->slot->multi, &none);
            return message ? message->data.result : CURLE_OUT_OF_MEMORY;
        }
        now = hfsb_clock_ms();
        hfsbi_curl_look(x, now, &seen);
        wait = hfsbi_curl_patience(x, now);
        if (x->ended) return CURLE_ABORTED_BY_CALLBACK;
        bad = curl_multi_poll(x->slot->multi, &wake, x->call->cancel ? 1 : 0,
                              wait, NULL);
        if (bad) return CURLE_OUT_OF_MEMORY;
    }
}

HFSBI_FN hfsb_status hfsbi_curl_drive(hfsbi_curl_call *x) {
    hfsbi_signal_guard guard;
    CURLcode           code;
    x->begun_at = x->moved_at = hfsb_clock_ms();
    hfsbi_curl_freshen(x->slot);
    if (curl_multi_add_handle(x->slot->multi, x->slot->easy))
        return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    code = hfsbi_curl_steps(x);
    /* one that was left in mid-message is closed, and the peer notices */
    if (code || x->ended)
        (void)curl_easy_setopt(x->slot->easy, CURLOPT_FORBID_REUSE, 1L);
    hfsbi_signal_guard_begin(&guard);
    (void)curl_multi_remove_handle(x->slot->multi, x->slot->easy);
    hfsbi_signal_guard_end(&guard);
    return hfsbi_curl_result(x, code);
}
