/* http_curl.c - the transport on libcurl: https, HTTP/2 and proxies.

   The transport keeps a list of idle slots, each a libcurl handle with its own
   connections. A call takes one slot for itself, so that no two threads ever
   share anything of libcurl, sets all options again, runs libcurl's loop until
   a result, a timeout or its cancel, and gives the slot back.

   libcurl reports what happens through callbacks; a callback that ends the
   call records the reason first (hfsbi_curl_end), because libcurl only reports
   that it was aborted. A stream has a slot of its own, which is never idle.
   libcurl repeats requests on its own when a kept connection turns out to be
   closed: on_request prevents that, except for GET and HEAD. */
#include "curl_private.h"

enum { HFSBI_CURL_KEPT = 4, HFSBI_CURL_SOCKETS = 8 };

/* A libcurl handle with its own connections, used by one call at a time. */
typedef struct hfsbi_curl_slot {
    struct hfsbi_curl_slot *next; /* in the list of idle slots */
    CURL                   *easy;
    CURLM                  *multi;
    long                    pid;    /* of the process that made it */
    hfsb_buf                origin; /* "https://host:port" of its last call */
    int  fds[HFSBI_CURL_SOCKETS];   /* its connections; -1: none */
    int  code; /* errno of a socket that could not be made; or 0 */
    char text[CURL_ERROR_SIZE]; /* libcurl's description of a failure */
} hfsbi_curl_slot;

/* The transport. */
typedef struct hfsbi_curl {
    hfsbi_libcurl lib; /* its functions */
    hfsb_alloc    alloc;
    hfsb_buf      ca_file, ca_dir, proxy, secure_proxy, no_proxy;
    bool          http1;
    size_t        max_kept, max_head;
    long          kept_seconds;

    pthread_mutex_t  lock; /* protects the list: */
    hfsbi_curl_slot *idle; /* most recently used first */
    size_t           idle_count;
} hfsbi_curl;

/* One call. */
typedef struct hfsbi_curl_call {
    const hfsbi_curl     *curl;
    const hfsb_http_call *call;
    hfsb_err             *err;
    hfsb_url              url;
    hfsbi_curl_slot      *slot;
    hfsb_buf              method, address; /* as libcurl wants them */
    struct curl_slist    *fields;          /* to send */
    unsigned long long    body_left;       /* of body_read */
    bool        requested; /* bytes of the request may have reached the peer */
    bool        again;     /* libcurl tried to send it a second time */
    hfsb_status ended;     /* why a callback ended the call, or HFSB_OK */

    hfsb_buf           head;     /* of the reply, one line per field */
    int                status;   /* of that head; 0: none has begun */
    bool               has_head; /* the final head was passed to on_head */
    unsigned long long moved;    /* bytes seen by callbacks */
    long long          moved_at, begun_at; /* on hfsb_clock_ms() */
} hfsbi_curl_call;

/* ---- errors ---- */

/* Ends the call from within a callback with `code` and *err; the first reason
   counts. */
HFSBI_PRINTF(3, 4)
static void hfsbi_curl_end(hfsbi_curl_call *x, hfsb_status code,
                           const char *format, ...) {
    char    text[256];
    va_list ap;
    if (x->ended) return;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    x->ended = hfsbi_fail(x->err, code, 0, "%s", text);
}

static bool hfsbi_curl_has_word(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return true;
    return false;
}

/* Why a certificate is not trusted, and what to do. Only the text of the TLS
   library shows it, and each library has its own words. */
static const char *hfsbi_curl_distrust(const char *text) {
    static const char *const expired[] = {"expired", "has passed", NULL};
    static const char *const early[] = {"not yet valid", "not activated",
                                        NULL};
    static const char *const name[] = {"subject name", "host name", "hostname",
                                       NULL};
    static const char *const issuer[] = {
        "issuer", "self-signed", "self signed", "unknown CA",
        "CAfile", "not trusted", NULL};
    if (hfsbi_curl_has_word(text, expired))
        return "its certificate has expired. Renew it, or correct this "
               "machine's clock if that is wrong.";
    if (hfsbi_curl_has_word(text, early))
        return "its certificate is not valid yet. Is this machine's clock "
               "right?";
    if (hfsbi_curl_has_word(text, name))
        return "its certificate is for another host name. Use the name in the "
               "certificate.";
    if (hfsbi_curl_has_word(text, issuer))
        return "its certificate was issued by an unknown authority. To trust "
               "it, "
               "set ca_file, or SSL_CERT_FILE in the environment, to the "
               "authority's certificate.";
    return "its certificate cannot be trusted.";
}

static hfsb_status hfsbi_curl_refused(hfsbi_curl_call *x, CURLcode code,
                                      const char *text) {
    hfsb_str origin = hfsb_buf_str(&x->slot->origin);
    if (code == CURLE_SSL_CACERT_BADFILE)
        return hfsbi_fail(x->err, HFSB_REFUSED, 0,
                          "The certificates to trust cannot be read, so "
                          "%.*s cannot be verified (%s).",
                          (int)origin.len, origin.ptr, text);
    return hfsbi_fail(x->err, HFSB_REFUSED, 0, "%.*s is refused: %s (%s)",
                      (int)origin.len, origin.ptr, hfsbi_curl_distrust(text),
                      text);
}

/* The connection could not be made, or ended early. */
static hfsb_status hfsbi_curl_disconnected(hfsbi_curl_call *x,
                                           const char      *text) {
    hfsb_str origin = hfsb_buf_str(&x->slot->origin);
    int      code = x->slot->code;
    if (x->requested)
        return hfsbi_fail(x->err, HFSB_LOST, 0,
                          "The connection to %.*s ended before the reply "
                          "did: %s.",
                          (int)origin.len, origin.ptr, text);
    if (code == EMFILE || code == ENFILE || code == ENOMEM)
        return hfsbi_fail_os(x->err, code, "Cannot connect to %.*s",
                             (int)origin.len, origin.ptr);
    (void)hfsbi_fail(x->err, HFSB_CONNECT, 0, "Cannot connect to %.*s: %s.",
                     (int)origin.len, origin.ptr, text);
    if (x->url.secure && strstr(text, "wrong version number"))
        hfsbi_err_add(x->err, " Does that port speak TLS? If not, use "
                              "http:// in the address.");
    return HFSB_CONNECT;
}

static hfsb_status hfsbi_curl_connect_timeout(hfsbi_curl_call *x,
                                              const char      *text) {
    hfsb_str  origin = hfsb_buf_str(&x->slot->origin);
    long long ms = x->call->connect_ms ? x->call->connect_ms : 30000;
    return hfsbi_fail(x->err, HFSB_TIMEOUT, 0,
                      "No connection to %.*s within %lld ms (%s).",
                      (int)origin.len, origin.ptr, ms, text);
}

/* The status for libcurl's result, with *err filled. */
static hfsb_status hfsbi_curl_result(hfsbi_curl_call *x, CURLcode code) {
    hfsb_str    origin = hfsb_buf_str(&x->slot->origin);
    const char *text =
        x->slot->text[0] ? x->slot->text : x->curl->lib.easy_strerror(code);
    if (x->ended) return x->ended;
    if (x->again)
        return hfsbi_fail(x->err, HFSB_LOST, 0,
                          "A pooled connection to %.*s was closed without a "
                          "reply. The request may have arrived, so it was not "
                          "sent again.",
                          (int)origin.len, origin.ptr);
    switch ((int)code) {
    case CURLE_OK:
        if (x->has_head) return hfsbi_ok(x->err);
        return hfsbi_curl_disconnected(x, "its head is not complete");
    case CURLE_OUT_OF_MEMORY:
        return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    case CURLE_URL_MALFORMAT:
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "libcurl cannot use the URL at %.*s: %s.",
                          (int)origin.len, origin.ptr, text);
    case CURLE_OPERATION_TIMEDOUT: return hfsbi_curl_connect_timeout(x, text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS: return hfsbi_curl_refused(x, code, text);
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9, or libcurl without TLS */
        if (!x->requested)
            return hfsbi_fail(x->err, HFSB_REFUSED, 0,
                              "libcurl will not connect to %.*s: %s.",
                              (int)origin.len, origin.ptr, text);
        break;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case 100: /* CURLE_TOO_LARGE of libcurl 8.6 */ break;
    case CURLE_RECV_ERROR: /* also for invalid chunks */
        if (x->requested && strstr(text, "chunk")) break;
        return hfsbi_curl_disconnected(x, text);
    default: return hfsbi_curl_disconnected(x, text);
    }
    return hfsbi_fail(x->err, HFSB_REMOTE, 0, "Invalid reply from %.*s: %s.",
                      (int)origin.len, origin.ptr, text);
}

/* ---- sockets ---- */

/* libcurl's callback that opens a socket; user is the slot. */
static curl_socket_t hfsbi_curl_on_socket(void *user, curlsocktype purpose,
                                          struct curl_sockaddr *at) {
    hfsbi_curl_slot *slot = (hfsbi_curl_slot *)user;
    int              fd, i;
    (void)purpose;
#ifdef HFSBI_LINUX
    fd = socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
    fd = hfsbi_fd_above_2(fd);
#else
    fd = hfsbi_fd_above_2(socket(at->family, at->socktype, at->protocol));
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) hfsbi_close(&fd);
#endif
    if (fd < 0) {
        slot->code = errno;
        return CURL_SOCKET_BAD;
    }
    for (i = 0; i < HFSBI_CURL_SOCKETS && slot->fds[i] >= 0;) i++;
    if (i < HFSBI_CURL_SOCKETS) slot->fds[i] = fd;
    return fd;
}

/* libcurl's callback that closes a socket; user is the slot. */
static int hfsbi_curl_on_close(void *user, curl_socket_t fd) {
    hfsbi_curl_slot *slot = (hfsbi_curl_slot *)user;
    int              i;
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++)
        if (slot->fds[i] == fd) slot->fds[i] = -1;
    return close(fd);
}

/* Shuts down the connections on which the peer sent something since the last
   call; most of them were closed. libcurl checks for that too, but takes a TLS
   close_notify as a sign of life and relies on sending the request again. No
   call may be in progress. */
static void hfsbi_curl_drop_stale(hfsbi_curl_slot *slot) {
    char          scrap[512];
    struct pollfd p;
    int           i;
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++) {
        p.fd = slot->fds[i];
        p.events = POLLIN;
        p.revents = 0;
        if (p.fd < 0 || poll(&p, 1, 0) <= 0) continue;
        (void)shutdown(p.fd, SHUT_RDWR);
        while (recv(p.fd, scrap, sizeof scrap, MSG_DONTWAIT) > 0) continue;
    }
}

/* ---- handles ---- */

static void hfsbi_curl_slot_free(const hfsbi_curl *curl,
                                 hfsbi_curl_slot  *slot) {
    hfsbi_signal_guard guard; /* libcurl may send a TLS close_notify */
    if (slot->pid != (long)getpid()) return; /* the parent still uses it */
    hfsbi_signal_guard_begin(&guard);
    if (slot->easy) curl->lib.easy_cleanup(slot->easy);
    if (slot->multi) (void)curl->lib.multi_cleanup(slot->multi);
    hfsbi_signal_guard_end(&guard);
    hfsb_buf_free(&slot->origin);
    hfsbi_array_free(&curl->alloc, slot, 1, sizeof *slot);
}

static hfsbi_curl_slot *hfsbi_curl_slot_new(const hfsbi_curl *curl) {
    int              i;
    hfsbi_curl_slot *slot =
        (hfsbi_curl_slot *)hfsbi_array(&curl->alloc, 1, sizeof *slot);
    if (!slot) return NULL;
    memset(slot, 0, sizeof *slot);
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++) slot->fds[i] = -1;
    slot->pid = (long)getpid();
    slot->origin.alloc = curl->alloc;
    slot->easy = curl->lib.easy_init();
    slot->multi = curl->lib.multi_init();
    if (slot->easy && slot->multi) {
        (void)curl->lib.multi_setopt(slot->multi, CURLMOPT_MAXCONNECTS,
                                     (long)HFSBI_CURL_KEPT);
        return slot;
    }
    hfsbi_curl_slot_free(curl, slot);
    return NULL;
}

/* An idle handle that last talked to this origin, else the last one used, else
   a new one; NULL without memory. Handles of the process that forked this one
   are left alone: two processes cannot share a connection. */
static hfsbi_curl_slot *hfsbi_curl_take(hfsbi_curl *curl, hfsb_str origin) {
    hfsbi_curl_slot **at, **best = NULL, *slot = NULL;
    long              pid = (long)getpid();
    (void)pthread_mutex_lock(&curl->lock);
    for (at = &curl->idle; *at; at = &(*at)->next) {
        bool same = hfsb_str_equal(hfsb_buf_str(&(*at)->origin), origin);
        if ((*at)->pid == pid && (same || !best)) best = at;
        if (same && best == at) break;
    }
    if (best) {
        slot = *best;
        *best = slot->next;
        curl->idle_count--;
    }
    (void)pthread_mutex_unlock(&curl->lock);
    if (!slot) slot = hfsbi_curl_slot_new(curl);
    if (!slot) return NULL;
    hfsb_buf_truncate(&slot->origin, 0);
    if (!hfsb_buf_append(&slot->origin, origin)) return slot;
    hfsbi_curl_slot_free(curl, slot);
    return NULL;
}

static void hfsbi_curl_give_back(hfsbi_curl *curl, hfsbi_curl_slot *slot) {
    bool keep;
    (void)pthread_mutex_lock(&curl->lock);
    keep = curl->idle_count < curl->max_kept;
    if (keep) {
        slot->next = curl->idle;
        curl->idle = slot;
        curl->idle_count++;
    }
    (void)pthread_mutex_unlock(&curl->lock);
    if (!keep) hfsbi_curl_slot_free(curl, slot);
}

/* ---- the reply ---- */

/* What a callback that was given n bytes returns to end the call. */
static size_t hfsbi_curl_stop(size_t n) {
    return n ? 0 : 1;
}

/* Splits the lines of *head, each ended by LF, into at most room fields;
   returns how many there are. */
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

/* Called at the empty line that ends a head. */
static void hfsbi_curl_head_done(hfsbi_curl_call *x) {
    size_t           room = hfsb_str_count_byte(hfsb_buf_str(&x->head), '\n');
    hfsb_http_field *fields;
    if (x->status < 200) return; /* interim: the final one follows */
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

/* The status in "HTTP/2 200"; 0 when it is invalid. */
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
                       "The head of the reply contains an invalid line.");
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

/* libcurl's callback for each line of a head, also of interim replies and
   trailers. */
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
        hfsbi_curl_end(x, HFSB_ARG,
                       "body_read returned %zu bytes, expected 1 to %zu.", got,
                       room);
        return CURL_READFUNC_ABORT;
    }
    x->body_left -= got;
    x->moved += got;
    return got;
}

/* body_read cannot be rewound. */
static int hfsbi_curl_on_seek(void *user, curl_off_t offset, int origin) {
    (void)user, (void)offset, (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

/* libcurl's callback before it sends the request. libcurl repeats a request of
   any method when a kept connection ends without a byte of reply, although the
   peer may have carried it out: only GET and HEAD may go out twice. */
static int hfsbi_curl_on_request(void *user, char *ip, char *local_ip,
                                 int port, int local_port) {
    hfsbi_curl_call *x = (hfsbi_curl_call *)user;
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    x->again = x->requested &&
               !hfsb_str_equal(x->call->method, HFSB_LIT("GET")) &&
               !hfsb_str_equal(x->call->method, HFSB_LIT("HEAD"));
    if (x->again) return CURL_PREREQFUNC_ABORT;
    x->requested = true;
    x->moved++; /* idle_ms starts here */
    return CURL_PREREQFUNC_OK;
}

static hfsb_status hfsbi_curl_add(hfsbi_curl_call *x, const char *line) {
    struct curl_slist *list = x->curl->lib.slist_append(x->fields, line);
    if (!list) return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    x->fields = list;
    return HFSB_OK;
}

static hfsb_status hfsbi_curl_add_field(hfsbi_curl_call       *x,
                                        const hfsb_http_field *field,
                                        hfsb_buf              *line) {
    hfsb_status st;
    hfsb_buf_truncate(line, 0);
    st = hfsbi_net_put_field(field, line, x->err);
    if (st) return st;
    hfsb_buf_truncate(line, line->len - 2); /* libcurl adds the CRLF */
    if (hfsbi_trim(field->value).len) return hfsbi_curl_add(x, line->ptr);
    /* to libcurl "name:" means no such field, "name;" an empty one */
    hfsb_buf_truncate(line, field->name.len + 1);
    line->ptr[field->name.len] = ';';
    return hfsbi_curl_add(x, line->ptr);
}

/* Adds all fields, and removes those that libcurl would add by itself. */
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

/* Checks the call and makes libcurl's copies of its texts. */
static hfsb_status hfsbi_curl_prepare(hfsbi_curl_call *x) {
    const hfsb_http_call *call = x->call;
    hfsb_status           st = hfsbi_net_check_call(call, &x->url, x->err);
    if (st) return st;
    if (hfsb_str_equal(call->method, HFSB_LIT("HEAD")) &&
        (call->body.ptr || call->body_read))
        return hfsbi_fail(x->err, HFSB_ARG, 0, "HEAD must not have a body.");
    st = hfsb_buf_append(&x->method, call->method);
    if (!st) st = hfsb_buf_append(&x->address, call->url);
    if (st) return hfsbi_fail_status(x->err, st, "request");
    return hfsbi_curl_add_fields(x);
}

/* ---- options of libcurl ---- */

static void hfsbi_curl_set_body(hfsbi_curl_call *x) {
    CURL                 *easy = x->slot->easy;
    const hfsb_http_call *call = x->call;
    x->body_left = call->body_read ? call->body_length : call->body.len;
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_POST, 1L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                   (curl_off_t)x->body_left);
    if (x->body_left > 65536)
        (void)x->curl->lib.easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
                                       262144L);
    if (!x->body_left || !call->body_read) {
        (void)x->curl->lib.easy_setopt(easy, CURLOPT_POSTFIELDS,
                                       x->body_left ? call->body.ptr : "");
        return;
    }
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_READFUNCTION,
                                   hfsbi_curl_on_read);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_READDATA, x);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_SEEKFUNCTION,
                                   hfsbi_curl_on_seek);
}

/* libcurl knows GET, HEAD and POST; any other method is one of them with
   another name. False: no memory. */
static bool hfsbi_curl_set_method(hfsbi_curl_call *x) {
    CURL    *easy = x->slot->easy;
    hfsb_str method = x->call->method, known = HFSB_LIT("GET");
    if (hfsb_str_equal(method, HFSB_LIT("HEAD")))
        return !x->curl->lib.easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (x->call->body.ptr || x->call->body_read ||
        hfsb_str_equal(method, HFSB_LIT("POST")) ||
        hfsb_str_equal(method, HFSB_LIT("PUT")) ||
        hfsb_str_equal(method, HFSB_LIT("PATCH"))) {
        hfsbi_curl_set_body(x);
        known = HFSB_LIT("POST");
    } else {
        (void)x->curl->lib.easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    return hfsb_str_equal(method, known) ||
           !x->curl->lib.easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                                     x->method.ptr);
}

/* Trusts only the given certificates, not also those of the system. */
static bool hfsbi_curl_set_trust(const hfsbi_curl_call *x) {
    const hfsbi_curl *c = x->curl;
    CURL             *easy = x->slot->easy;
    if (!c->ca_file.len && !c->ca_dir.len) return true;
    return !x->curl->lib.easy_setopt(easy, CURLOPT_CAINFO, c->ca_file.ptr) &&
           !x->curl->lib.easy_setopt(easy, CURLOPT_CAPATH, c->ca_dir.ptr);
}

static void hfsbi_curl_set_protocols(const hfsbi_curl_call *x) {
    CURL *easy = x->slot->easy;
    /* http and https */
    if (x->curl->lib.easy_setopt(easy, (CURLoption)HFSBI_CURLOPT_PROTOCOLS_STR,
                                 "http,https"))
        (void)x->curl->lib.easy_setopt(
            easy, (CURLoption)HFSBI_CURLOPT_PROTOCOLS, 3L);
    /* do not wait for a cancelled name lookup */
    (void)x->curl->lib.easy_setopt(easy, (CURLoption)HFSBI_CURLOPT_QUICK_EXIT,
                                   1L);
    /* fails harmlessly in a libcurl without HTTP/2 */
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_HTTP_VERSION,
                                   (long)(x->curl->http1
                                              ? CURL_HTTP_VERSION_1_1
                                              : CURL_HTTP_VERSION_2TLS));
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_SSLVERSION,
                                   (long)CURL_SSLVERSION_TLSv1_2);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_BUFFERSIZE, 102400L);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_MAXAGE_CONN,
                                   x->curl->kept_seconds);
}

/* Sets all options of the call; false without memory. */
static bool hfsbi_curl_set(hfsbi_curl_call *x) {
    CURL           *easy = x->slot->easy;
    const hfsb_buf *proxy =
        x->url.secure ? &x->curl->secure_proxy : &x->curl->proxy;
    long long connect_ms = x->call->connect_ms ? x->call->connect_ms : 30000;
    if (connect_ms > 0x7fffffff) connect_ms = 0x7fffffff;
    x->curl->lib.easy_reset(easy); /* keeps its connections */
    x->slot->text[0] = '\0';
    x->slot->code = 0;
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_ERRORBUFFER, x->slot->text);
    hfsbi_curl_set_protocols(x);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                                   (long)connect_ms);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_HEADERFUNCTION,
                                   hfsbi_curl_on_line);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_HEADERDATA, x);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_WRITEFUNCTION,
                                   hfsbi_curl_on_body);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_WRITEDATA, x);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_PREREQFUNCTION,
                                   hfsbi_curl_on_request);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_PREREQDATA, x);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                                   hfsbi_curl_on_socket);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_OPENSOCKETDATA, x->slot);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION,
                                   hfsbi_curl_on_close);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, x->slot);
    (void)x->curl->lib.easy_setopt(easy, CURLOPT_HTTPHEADER, x->fields);
    return !x->curl->lib.easy_setopt(easy, CURLOPT_URL, x->address.ptr) &&
           !x->curl->lib.easy_setopt(easy, CURLOPT_PROXY,
                                     proxy->len ? proxy->ptr : "") &&
           !x->curl->lib.easy_setopt(
               easy, CURLOPT_NOPROXY,
               x->curl->no_proxy.len ? x->curl->no_proxy.ptr : "") &&
           hfsbi_curl_set_trust(x) && hfsbi_curl_set_method(x);
}

/* ---- running a call ---- */

/* Records the time when bytes have moved since the last call. */
static void hfsbi_curl_note_progress(hfsbi_curl_call *x, long long now,
                                     unsigned long long *seen) {
    curl_off_t sent = 0;
    /* no callback sees a body that is in memory */
    if (x->call->body.len)
        (void)x->curl->lib.easy_getinfo(x->slot->easy, CURLINFO_SIZE_UPLOAD_T,
                                        &sent);
    if (x->moved + (unsigned long long)sent == *seen) return;
    *seen = x->moved + (unsigned long long)sent;
    x->moved_at = now;
}

/* Ends the call when it was cancelled or has timed out; else returns how many
   milliseconds it may wait. */
static int hfsbi_curl_time_left(hfsbi_curl_call *x, long long now) {
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
                           "The call to %.*s did not finish within %lld ms.",
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

/* Runs libcurl until it has a result, or a callback, a timeout or the cancel
   ends the call. */
static CURLcode hfsbi_curl_loop(hfsbi_curl_call *x) {
    unsigned long long seen = 0;
    struct curl_waitfd wake = HFSB_INIT;
    struct pollfd      cancel;
    hfsbi_signal_guard guard; /* some TLS libraries use write() */
    int                running = 1, wait, none;
    wake.events = CURL_WAIT_POLLIN;
    for (;;) {
        CURLMcode bad;
        CURLMsg  *message;
        long long now;
        hfsbi_signal_guard_begin(&guard);
        bad = x->curl->lib.multi_perform(x->slot->multi, &running);
        hfsbi_signal_guard_end(&guard);
        if (bad) return CURLE_OUT_OF_MEMORY;
        if (!running) {
            message = x->curl->lib.multi_info_read(x->slot->multi, &none);
            return message ? message->data.result : CURLE_OUT_OF_MEMORY;
        }
        now = hfsb_clock_ms();
        hfsbi_curl_note_progress(x, now, &seen);
        wait = hfsbi_curl_time_left(x, now);
        if (x->ended) return CURLE_ABORTED_BY_CALLBACK;
        wait = hfsbi_cancel_watch(x->call->cancel, &cancel, wait);
        wake.fd = (curl_socket_t)cancel.fd;
        bad = x->curl->lib.multi_poll(x->slot->multi, &wake, wake.fd >= 0,
                                      wait, NULL);
        if (bad) return CURLE_OUT_OF_MEMORY;
    }
}

/* Performs the call as it was set, and returns its status. */
static hfsb_status hfsbi_curl_drive(hfsbi_curl_call *x) {
    hfsbi_signal_guard guard;
    CURLcode           code;
    x->begun_at = x->moved_at = hfsb_clock_ms();
    hfsbi_curl_drop_stale(x->slot);
    if (x->curl->lib.multi_add_handle(x->slot->multi, x->slot->easy))
        return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    code = hfsbi_curl_loop(x);
    /* a connection left in the middle of a message must be closed */
    if (code || x->ended)
        (void)x->curl->lib.easy_setopt(x->slot->easy, CURLOPT_FORBID_REUSE,
                                       1L);
    hfsbi_signal_guard_begin(&guard);
    (void)x->curl->lib.multi_remove_handle(x->slot->multi, x->slot->easy);
    hfsbi_signal_guard_end(&guard);
    return hfsbi_curl_result(x, code);
}

/* ---- the transport ---- */

/* The URL up to the end of its host and port. */
static hfsb_str hfsbi_curl_origin(const hfsbi_curl_call *x) {
    const char *end = x->url.authority.ptr + x->url.authority.len;
    return hfsb_str_make(x->call->url.ptr, (size_t)(end - x->call->url.ptr));
}

static hfsb_status hfsbi_curl_run(hfsbi_curl *curl, hfsbi_curl_call *x) {
    hfsb_status st = hfsbi_curl_prepare(x);
    if (st) return st;
    if (hfsb_cancel_is_set(x->call->cancel))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0,
                          "The call was cancelled before anything was sent.");
    x->slot = hfsbi_curl_take(curl, hfsbi_curl_origin(x));
    if (!x->slot) return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    if (hfsbi_curl_set(x)) st = hfsbi_curl_drive(x);
    else st = hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    hfsbi_curl_give_back(curl, x->slot);
    return st;
}

static hfsb_status hfsbi_curl_perform(void *user, const hfsb_http_call *call,
                                      bool *sent, hfsb_err *err) {
    hfsbi_curl     *curl = (hfsbi_curl *)user;
    hfsbi_curl_call x = HFSB_INIT;
    hfsb_status     st;
    x.curl = curl;
    x.call = call;
    x.err = err;
    x.method.alloc = x.address.alloc = x.head.alloc = curl->alloc;
    x.head.max = curl->max_head;
    st = hfsbi_curl_run(curl, &x);
    *sent = x.requested;
    curl->lib.slist_free_all(x.fields);
    hfsb_buf_free(&x.method);
    hfsb_buf_free(&x.address);
    hfsb_buf_free(&x.head);
    return st;
}

/* ---- a stream ---- */

/* A connection that libcurl made and keeps for us. The handle stays in its
   slot's multi handle, which owns the connection. */
typedef struct hfsbi_curl_stream {
    hfsbi_curl      *curl;
    hfsbi_curl_slot *slot;
} hfsbi_curl_stream;

static hfsb_status hfsbi_curl_stream_result(const hfsbi_curl_stream *s,
                                            CURLcode code, hfsb_err *err) {
    hfsb_str    origin = hfsb_buf_str(&s->slot->origin);
    const char *text =
        s->slot->text[0] ? s->slot->text : s->curl->lib.easy_strerror(code);
    if (code == CURLE_OK || code == CURLE_AGAIN) return HFSB_OK;
    return hfsbi_fail(err, HFSB_LOST, 0, "The connection to %.*s ended: %s.",
                      (int)origin.len, origin.ptr, text);
}

static hfsb_status hfsbi_curl_stream_send(void *user, hfsb_str bytes,
                                          size_t *n, hfsb_err *err) {
    const hfsbi_curl_stream *s = (const hfsbi_curl_stream *)user;
    hfsbi_signal_guard       guard;
    CURLcode                 code;
    *n = 0;
    s->slot->text[0] = '\0';
    hfsbi_signal_guard_begin(&guard);
    code = s->curl->lib.easy_send(s->slot->easy, bytes.ptr, bytes.len, n);
    hfsbi_signal_guard_end(&guard);
    return hfsbi_curl_stream_result(s, code, err);
}

static hfsb_status hfsbi_curl_stream_receive(void *user, char *ptr,
                                             size_t room, size_t *n,
                                             hfsb_err *err) {
    const hfsbi_curl_stream *s = (const hfsbi_curl_stream *)user;
    hfsbi_signal_guard       guard; /* TLS may have to answer */
    CURLcode                 code;
    *n = 0;
    s->slot->text[0] = '\0';
    hfsbi_signal_guard_begin(&guard);
    code = s->curl->lib.easy_recv(s->slot->easy, ptr, room, n);
    hfsbi_signal_guard_end(&guard);
    if (code == CURLE_OK && !*n) code = CURLE_GOT_NOTHING; /* the end */
    return hfsbi_curl_stream_result(s, code, err);
}

static void hfsbi_curl_stream_close(void *user) {
    hfsbi_curl_stream *s = (hfsbi_curl_stream *)user;
    hfsbi_curl        *curl = s->curl;
    hfsbi_curl_slot_free(curl, s->slot);
    hfsbi_array_free(&curl->alloc, s, 1, sizeof *s);
}

/* Connects with the handle of a slot of its own. */
static hfsb_status hfsbi_curl_dial(hfsbi_curl_call *x, curl_socket_t *fd) {
    CURL       *easy = x->slot->easy;
    CURLcode    code;
    hfsb_status st = hfsbi_curl_prepare(x);
    if (st) return st;
    if (hfsb_buf_append(&x->slot->origin, hfsbi_curl_origin(x)) ||
        !hfsbi_curl_set(x) ||
        x->curl->lib.easy_setopt(easy, CURLOPT_HTTPHEADER, NULL) ||
        x->curl->lib.easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) ||
        x->curl->lib.easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L) ||
        x->curl->lib.easy_setopt(easy, CURLOPT_HTTP_VERSION,
                                 (long)CURL_HTTP_VERSION_1_1) ||
        x->curl->lib.multi_add_handle(x->slot->multi, easy))
        return hfsbi_fail_status(x->err, HFSB_NOMEM, "connection");
    x->begun_at = x->moved_at = hfsb_clock_ms();
    code = hfsbi_curl_loop(x);
    if (!code && !x->ended)
        code = x->curl->lib.easy_getinfo(easy, CURLINFO_ACTIVESOCKET, fd);
    if (!code && !x->ended && *fd == CURL_SOCKET_BAD)
        code = CURLE_COULDNT_CONNECT;
    return code || x->ended ? hfsbi_curl_result(x, code) : HFSB_OK;
}

static hfsb_status hfsbi_curl_stream_open(void                 *user,
                                          const hfsb_http_call *call,
                                          hfsb_stream *out, hfsb_err *err) {
    hfsbi_curl        *curl = (hfsbi_curl *)user;
    hfsbi_curl_stream *s =
        (hfsbi_curl_stream *)hfsbi_array(&curl->alloc, 1, sizeof *s);
    hfsbi_curl_call x = HFSB_INIT;
    curl_socket_t   fd = CURL_SOCKET_BAD;
    hfsb_status     st;
    memset(out, 0, sizeof *out);
    out->fd = -1;
    x.curl = curl;
    x.call = call;
    x.err = err;
    x.method.alloc = x.address.alloc = x.head.alloc = curl->alloc;
    x.slot = s ? hfsbi_curl_slot_new(curl) : NULL;
    st = x.slot ? hfsbi_curl_dial(&x, &fd)
                : hfsbi_fail_status(err, HFSB_NOMEM, "connection");
    curl->lib.slist_free_all(x.fields);
    hfsb_buf_free(&x.method);
    hfsb_buf_free(&x.address);
    hfsb_buf_free(&x.head);
    if (st) {
        if (x.slot) hfsbi_curl_slot_free(curl, x.slot);
        hfsbi_array_free(&curl->alloc, s, 1, sizeof *s);
        return st;
    }
    s->curl = curl;
    s->slot = x.slot;
    out->fd = (int)fd;
    out->send = hfsbi_curl_stream_send;
    out->receive = hfsbi_curl_stream_receive;
    out->close = hfsbi_curl_stream_close;
    out->user = s;
    return hfsbi_ok(err);
}

/* ---- the end ---- */

static void hfsbi_curl_close(void *user) {
    hfsbi_curl *curl = (hfsbi_curl *)user;
    hfsb_alloc  alloc = curl->alloc;
    while (curl->idle) {
        hfsbi_curl_slot *slot = curl->idle;
        curl->idle = slot->next;
        hfsbi_curl_slot_free(curl, slot);
    }
    (void)pthread_mutex_destroy(&curl->lock);
    hfsb_buf_free(&curl->ca_file);
    hfsb_buf_free(&curl->ca_dir);
    hfsb_buf_free(&curl->proxy);
    hfsb_buf_free(&curl->secure_proxy);
    hfsb_buf_free(&curl->no_proxy);
    curl->lib.global_cleanup();
    hfsbi_libcurl_close(&curl->lib);
    hfsbi_array_free(&alloc, curl, 1, sizeof *curl);
}

/* ---- open ---- */

/* Copies text, or else the first of these variables that is set, to *out. */
static hfsb_status hfsbi_curl_text(const hfsbi_curl *curl, hfsb_str text,
                                   const char *name, const char *other,
                                   hfsb_buf *out) {
    const char *value = NULL;
    out->alloc = curl->alloc;
    if (hfsb_str_find_byte(text, '\0') != HFSB_NPOS) return HFSB_ARG;
    if (!text.len && name) value = getenv(name);
    if (!text.len && other && (!value || !*value)) value = getenv(other);
    if (!text.len) text = hfsb_cstr(value);
    return text.len ? hfsb_buf_append(out, text) : HFSB_OK;
}

static hfsb_status hfsbi_curl_texts(hfsbi_curl           *curl,
                                    const hfsb_curl_opts *o) {
    hfsb_status st = hfsbi_curl_text(curl, o->ca_file,
                                     o->ca_dir.len ? NULL : "SSL_CERT_FILE",
                                     NULL, &curl->ca_file);
    if (!st)
        st = hfsbi_curl_text(curl, o->ca_dir,
                             o->ca_file.len ? NULL : "SSL_CERT_DIR", NULL,
                             &curl->ca_dir);
    if (st || o->direct) return st;
    /* not HTTP_PROXY: in a CGI program a client sets it with a Proxy field */
    st = hfsbi_curl_text(curl, o->proxy, "http_proxy", NULL, &curl->proxy);
    if (!st)
        st = hfsbi_curl_text(curl, o->proxy, "https_proxy", "HTTPS_PROXY",
                             &curl->secure_proxy);
    if (!st && !curl->proxy.len)
        st = hfsbi_curl_text(curl, o->proxy, "all_proxy", "ALL_PROXY",
                             &curl->proxy);
    if (!st && !curl->secure_proxy.len)
        st = hfsbi_curl_text(curl, o->proxy, "all_proxy", "ALL_PROXY",
                             &curl->secure_proxy);
    if (!st)
        st = hfsbi_curl_text(curl, o->no_proxy, "no_proxy", "NO_PROXY",
                             &curl->no_proxy);
    return st;
}

/* Reports an unreadable file now rather than at the first https call. */
static hfsb_status hfsbi_curl_readable(const hfsb_buf *path, hfsb_str given,
                                       hfsb_err *err) {
    if (!given.len || !access(path->ptr, R_OK)) return HFSB_OK;
    return hfsbi_fail_os(err, errno,
                         "Cannot read the certificates to trust from %s",
                         path->ptr);
}

static hfsb_status hfsbi_curl_init(hfsbi_curl *curl, const hfsb_curl_opts *o,
                                   hfsb_err *err) {
    hfsb_status st;
    long long   kept_ms = o->kept_ms > 0 ? o->kept_ms : 30000;
    curl->http1 = o->http1;
    curl->max_kept = o->max_kept ? o->max_kept : 8;
    curl->max_head = o->max_head ? o->max_head : 65536;
    curl->kept_seconds =
        kept_ms / 1000 > 86400 ? 86400L : (long)((kept_ms + 999) / 1000);
    st = hfsbi_curl_texts(curl, o);
    if (st == HFSB_ARG)
        return hfsbi_fail(err, st, 0,
                          "hfsb_curl_opts: a text contains a NUL byte.");
    if (st) return hfsbi_fail_status(err, st, "transport");
    st = hfsbi_curl_readable(&curl->ca_file, o->ca_file, err);
    if (!st) st = hfsbi_curl_readable(&curl->ca_dir, o->ca_dir, err);
    return st;
}

HFSB_API hfsb_status hfsb_curl_open(const hfsb_curl_opts *opts,
                                    hfsb_transport *out, hfsb_err *err) {
    static const hfsb_curl_opts defaults = HFSB_INIT;
    const hfsb_curl_opts       *o = opts ? opts : &defaults;
    hfsbi_curl                 *curl;
    hfsb_status                 st;
    memset(out, 0, sizeof *out);
    curl = (hfsbi_curl *)hfsbi_array(&o->alloc, 1, sizeof *curl);
    if (!curl) return hfsbi_fail_status(err, HFSB_NOMEM, "transport");
    memset(curl, 0, sizeof *curl);
    curl->alloc = o->alloc;
    st = hfsbi_libcurl_open(&curl->lib, err);
    if (!st && (pthread_mutex_init(&curl->lock, NULL) ||
                curl->lib.global_init(CURL_GLOBAL_DEFAULT))) {
        hfsbi_libcurl_close(&curl->lib);
        st = hfsbi_fail(err, HFSB_IO, 0, "Cannot initialise libcurl.");
    }
    if (st) {
        hfsbi_array_free(&o->alloc, curl, 1, sizeof *curl);
        return st;
    }
    st = hfsbi_curl_init(curl, o, err);
    if (st) {
        hfsbi_curl_close(curl);
        return st;
    }
    out->perform = hfsbi_curl_perform;
    out->close = hfsbi_curl_close;
    out->connect = hfsbi_curl_stream_open;
    out->user = curl;
    return hfsbi_ok(err);
}
