/* fetch.c - a file as the reply to a request, and the conditions of requests.

     loop: read the head -> thread: open, decide -> loop: reply
                                      -> (thread: close) -> free

   The thread opens the file and decides on the status, the range and the
   length; the loop sends the head and hands the descriptor to the reply. A
   file of /proc, whose size reads as 0, is read by the thread and sent from
   memory: so the reply always has an exact Content-Length. */
#include "api_private.h"

HFSBI_FN int hfsbi_file_http_status(hfsb_status st) {
    switch (st) {
    case HFSB_NOT_FOUND: return 404;
    case HFSB_ARG:
    case HFSB_REFUSED:
    case HFSB_NOT_REGULAR:
    case HFSB_IS_DIR: return 400;
    case HFSB_EXISTS:
    case HFSB_STALE: return 412;
    case HFSB_OUTSIDE:
    case HFSB_DENIED:
    case HFSB_LIMIT: return 403;
    case HFSB_FULL: return 507;
    case HFSB_BUSY:
    case HFSB_NOMEM: return 503;
    default: return 500;
    }
}

/* ---- conditions ---- */

/* Appends all fields of that name as one list. False without memory. */
static bool hfsbi_field_join(const hfsb_http_head *head, const char *name,
                             hfsb_buf *out) {
    size_t i;
    bool   ok = true;
    for (i = 0; ok && i < head->field_count; i++) {
        if (!hfsb_http_same(head->fields[i].name, hfsb_cstr(name))) continue;
        if (out->ptr) ok = hfsb_buf_append_byte(out, ',') == HFSB_OK;
        ok = ok && hfsb_buf_append(out, head->fields[i].value) == HFSB_OK;
    }
    return ok;
}

HFSBI_FN bool hfsbi_conditions_read(const hfsb_http_head *head,
                                    const hfsb_alloc     *alloc,
                                    hfsbi_conditions     *c) {
    memset(c, 0, sizeof *c);
    c->match.alloc = c->none_match.alloc = *alloc;
    return hfsbi_field_join(head, "If-Match", &c->match) &&
           hfsbi_field_join(head, "If-None-Match", &c->none_match);
}

HFSBI_FN void hfsbi_conditions_free(hfsbi_conditions *c) {
    hfsb_buf_free(&c->match);
    hfsb_buf_free(&c->none_match);
}

/* A file that is replaced by a rename has another inode; one that is modified
   in place has another time of change. */
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
                              char                  etag[HFSBI_ETAG]) {
    (void)snprintf(etag, HFSBI_ETAG, "\"%llx-%llx-%llx-%llx.%lx\"",
                   info->device, info->inode, info->size,
                   (unsigned long long)info->changed,
                   (unsigned long)info->changed_nanos);
}

/* True if the list of If-Match or If-None-Match contains the tag, or is "*".
   weak: tags marked as weak match too. */
static bool hfsbi_etag_listed(hfsb_str list, const char *etag, bool weak) {
    const hfsb_str tag = hfsb_cstr(etag);
    list = hfsbi_trim(list);
    if (hfsb_str_equal(list, HFSB_LIT("*"))) return true;
    while (list.len) {
        bool   is_weak = hfsb_str_starts(list, HFSB_LIT("W/"));
        size_t end;
        if (list.ptr[0] == ',' || list.ptr[0] == ' ' || list.ptr[0] == '\t') {
            list = hfsb_str_slice(list, 1, list.len);
            continue;
        }
        if (is_weak) list = hfsb_str_slice(list, 2, list.len);
        if (!list.len || list.ptr[0] != '"') return false;
        end = hfsb_str_find_byte(hfsb_str_slice(list, 1, list.len), '"');
        if (end == HFSB_NPOS) return false;
        if ((weak || !is_weak) &&
            hfsb_str_equal(hfsb_str_slice(list, 0, end + 2), tag))
            return true;
        list = hfsb_str_slice(list, end + 2, list.len);
    }
    return false;
}

HFSBI_FN bool hfsbi_etag_is_any(const hfsb_buf *list) {
    return hfsb_str_equal(hfsbi_trim(hfsb_buf_str(list)), HFSB_LIT("*"));
}

HFSBI_FN bool hfsbi_conditions_hold(const hfsbi_conditions *c,
                                    const hfsb_file_info *info, bool change,
                                    hfsb_err *err) {
    char etag[HFSBI_ETAG];
    if (info) hfsbi_file_etag(info, etag);
    if (c->match.ptr &&
        (!info || !hfsbi_etag_listed(hfsb_buf_str(&c->match), etag, false)))
        hfsbi_fail(err, HFSB_REFUSED, 0,
                   info ? "The file is not the one that If-Match names: it "
                          "has changed. Read it again."
                        : "No such file, but If-Match requires one.");
    else if (change && info && c->none_match.ptr &&
             hfsbi_etag_listed(hfsb_buf_str(&c->none_match), etag, true))
        hfsbi_fail(err, HFSB_REFUSED, 0,
                   "The file exists already, and If-None-Match does not want "
                   "that.");
    else return true;
    return false;
}

/* ---- ranges ---- */

/* Removes the digits at the start of *s and parses them; a number too large
   for the type becomes its maximum. False if there are no digits. */
static bool hfsbi_range_number(hfsb_str *s, unsigned long long *out) {
    const unsigned long long max = ~0ull;
    size_t                   i = 0;
    *out = 0;
    for (; i < s->len && hfsbi_is_digit(s->ptr[i]); i++) {
        unsigned digit = (unsigned)(s->ptr[i] - '0');
        *out = *out > (max - digit) / 10 ? max : *out * 10 + digit;
    }
    *s = hfsb_str_slice(*s, i, s->len);
    return i > 0;
}

HFSBI_FN hfsbi_range hfsbi_range_parse(hfsb_str text, unsigned long long size,
                                       unsigned long long *first,
                                       unsigned long long *length) {
    unsigned long long last;
    bool               has_first, has_last;
    if (text.len < 6 ||
        !hfsb_http_same(hfsb_str_slice(text, 0, 6), HFSB_LIT("bytes=")))
        return HFSBI_RANGE_NONE;
    text = hfsbi_trim(hfsb_str_slice(text, 6, text.len));
    has_first = hfsbi_range_number(&text, first);
    if (!text.len || text.ptr[0] != '-') return HFSBI_RANGE_NONE;
    text = hfsb_str_slice(text, 1, text.len);
    has_last = hfsbi_range_number(&text, &last);
    if (text.len || (!has_first && !has_last)) return HFSBI_RANGE_NONE;
    if (!has_first) { /* a suffix: the last bytes */
        if (last == 0 || size == 0) return HFSBI_RANGE_BEYOND;
        *length = last < size ? last : size;
        *first = size - *length;
        return HFSBI_RANGE_PART;
    }
    if (has_last && last < *first) return HFSBI_RANGE_NONE;
    if (*first >= size) return HFSBI_RANGE_BEYOND;
    if (!has_last || last >= size) last = size - 1;
    *length = last - *first + 1;
    return HFSBI_RANGE_PART;
}

/* ---- in a pool thread ---- */

typedef struct hfsbi_fetch {
    hfsbi_fetch_opts opts; /* its path is a view of `path` */
    hfsb_buf         path;
    long long        began;  /* hfsb_clock_ms() */
    bool             ranges; /* GET: Range applies; HEAD ignores it */
    hfsbi_conditions conditions;
    hfsb_buf         range, if_range, since; /* ptr NULL: none */
    hfsbi_file_range file; /* its fd is -1 when it has none */
    int              http; /* status of the reply */
    hfsb_err         err;  /* of a reply from 400 on */
} hfsbi_fetch;

/* True for a file without a size, such as those of /proc. */
static bool hfsbi_fetch_is_sizeless(const hfsbi_fetch *f) {
    return f->file.content.len > 0;
}

/* True for a 304: by If-None-Match, or without it by If-Modified-Since, whose
   date must equal our Last-Modified. */
static bool hfsbi_fetch_unchanged(const hfsbi_fetch *f, const char *etag) {
    char            date[HFSB_HTTP_DATE];
    const hfsb_buf *none_match = &f->conditions.none_match;
    if (none_match->ptr)
        return hfsbi_etag_listed(hfsb_buf_str(none_match), etag, true);
    if (!f->since.ptr) return false;
    hfsb_http_date(f->file.info.changed, date);
    return hfsb_str_equal(hfsb_buf_str(&f->since), hfsb_cstr(date));
}

/* Sets the status of the reply for an open file, and the part to send. */
static void hfsbi_fetch_decide(hfsbi_fetch *f) {
    char                     etag[HFSBI_ETAG];
    unsigned long long       first, length;
    const unsigned long long size = f->file.info.size;
    hfsbi_file_etag(&f->file.info, etag);
    f->http = 412;
    if (!hfsbi_conditions_hold(&f->conditions, &f->file.info, false, &f->err))
        return;
    f->http = hfsbi_fetch_unchanged(f, etag) ? 304 : 200;
    if (f->http == 304 || !f->ranges || !f->range.ptr) return;
    /* If-Range names another version: send the whole file */
    if (f->if_range.ptr &&
        !hfsb_str_equal(hfsb_buf_str(&f->if_range), hfsb_cstr(etag)))
        return;
    switch (
        hfsbi_range_parse(hfsb_buf_str(&f->range), size, &first, &length)) {
    case HFSBI_RANGE_PART:
        f->http = 206;
        f->file.first = first;
        f->file.length = length;
        break;
    case HFSBI_RANGE_BEYOND:
        f->http = 416;
        hfsbi_fail(&f->err, HFSB_ARG, 0,
                   "The range begins after the end of the file, which has "
                   "%llu bytes.",
                   size);
        break;
    case HFSBI_RANGE_NONE: break;
    }
}

static void hfsbi_fetch_run(void *user) {
    hfsbi_fetch *f = (hfsbi_fetch *)user;
    const bool   part = f->opts.part;
    hfsb_status  st = hfsbi_file_range_open(
         f->opts.root, f->opts.path, part ? f->opts.offset : 0,
        part ? f->opts.length : ~0ull, &f->file, &f->err);
    if (st != HFSB_OK) {
        f->file.fd = -1;
        /* some files of /proc, such as /proc/self/mem, cannot be read: that
           is not an error of the disk */
        f->http = st == HFSB_IO && f->file.info.inode
                      ? 400
                      : hfsbi_file_http_status(st);
        return;
    }
    if (part || hfsbi_fetch_is_sizeless(f)) f->http = 200;
    else hfsbi_fetch_decide(f);
    if (f->http != 200 && f->http != 206) hfsbi_close(&f->file.fd);
}

static void hfsbi_fetch_close(void *user) {
    hfsbi_close(&((hfsbi_fetch *)user)->file.fd);
}

/* ---- in the loop ---- */

static void hfsbi_fetch_free(void *user, hfsb_request *request) {
    hfsbi_fetch *f = (hfsbi_fetch *)user;
    hfsb_alloc   alloc = f->path.alloc;
    (void)request;
    if (f->opts.release) f->opts.release(f->opts.user);
    hfsb_buf_free(&f->path);
    hfsbi_conditions_free(&f->conditions);
    hfsb_buf_free(&f->range);
    hfsb_buf_free(&f->if_range);
    hfsb_buf_free(&f->since);
    hfsb_buf_free(&f->file.content);
    hfsbi_array_free(&alloc, f, 1, sizeof *f);
}

/* Adds the fields that describe the file. False without memory. */
static bool hfsbi_fetch_put_fields(hfsbi_fetch *f, hfsb_request *request) {
    const hfsb_file_info *info = &f->file.info;
    char                  text[HFSBI_ETAG];
    bool                  ok = true;
    if (f->opts.fields)
        ok = f->opts.fields(f->opts.user, request, f->http, info);
    /* /proc reports no times of change */
    if (f->opts.part || hfsbi_fetch_is_sizeless(f)) return ok;
    hfsbi_file_etag(info, text);
    ok = ok && hfsb_reply_field(request, "ETag", hfsb_cstr(text)) == HFSB_OK;
    ok = ok && hfsb_reply_field(request, "Accept-Ranges", HFSB_LIT("bytes")) ==
                   HFSB_OK;
    hfsb_http_date(info->changed, text);
    ok = ok && hfsb_reply_field(request, "Last-Modified", hfsb_cstr(text)) ==
                   HFSB_OK;
    if (f->http == 206)
        (void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu",
                       f->file.first, f->file.first + f->file.length - 1,
                       info->size);
    if (f->http == 416)
        (void)snprintf(text, sizeof text, "bytes */%llu", info->size);
    if (f->http == 206 || f->http == 416)
        ok = ok && hfsb_reply_field(request, "Content-Range",
                                    hfsb_cstr(text)) == HFSB_OK;
    return ok;
}

static void hfsbi_fetch_reply(hfsbi_fetch *f, hfsb_request *request) {
    const char *type =
        f->opts.type ? f->opts.type : "application/octet-stream";
    if ((f->http < 300 || f->http == 304 || f->http == 416) &&
        !hfsbi_fetch_put_fields(f, request)) {
        hfsbi_fail_status(&f->err, HFSB_NOMEM, "Reply");
        hfsb_reply_error(request, 503, "%s", f->err.msg);
    } else if (f->http >= 400 && f->opts.refuse) {
        f->opts.refuse(f->opts.user, request, f->http, &f->err);
    } else if (f->http >= 400) {
        hfsb_reply_error(request, f->http, "%s", f->err.msg);
    } else if (f->http == 304) {
        hfsb_reply(request, f->http, "", hfsb_str_make("", 0));
    } else if (f->file.fd < 0) {
        hfsbi_reply_take(request, f->http, type, &f->file.content);
    } else {
        hfsb_reply_file(request, f->http, type, f->file.fd, f->file.first,
                        f->file.length);
        f->file.fd = -1;
    }
}

static void hfsbi_fetch_done(void *user, hfsb_request *request) {
    hfsbi_fetch *f = (hfsbi_fetch *)user;
    hfsb_str     error = hfsb_cstr(f->http >= 400 ? f->err.msg : "");
    if (!f->opts.refuse || f->err.code != HFSB_IS_DIR)
        hfsbi_api_report_request(request, f->opts.tools, "download",
                                 f->opts.path, "", error, f->began,
                                 f->file.length);
    if (!hfsbi_request_is_gone(request)) hfsbi_fetch_reply(f, request);
    /* closing a removed file may wait for the disk: use a thread */
    if (f->file.fd >= 0)
        hfsbi_request_work(request, NULL, hfsbi_fetch_close, hfsbi_fetch_free,
                           f);
    else hfsbi_fetch_free(f, request);
}

/* Copies a field; one that is repeated is ignored. False without memory. */
static bool hfsbi_fetch_read_field(const hfsb_http_head *head,
                                   const char *name, hfsb_buf *out) {
    if (hfsb_http_field_count(head, name) != 1) return true;
    return hfsb_buf_append(out, hfsb_http_field_find(head, name)) == HFSB_OK;
}

/* Copies the path and what the head asks for. False without memory. */
static bool hfsbi_fetch_read(hfsbi_fetch *f, const hfsb_http_head *head) {
    if (hfsb_buf_append(&f->path, f->opts.path) != HFSB_OK) return false;
    f->opts.path = hfsb_buf_str(&f->path);
    f->ranges = hfsb_str_equal(head->method, HFSB_LIT("GET"));
    return f->opts.part ||
           (hfsbi_conditions_read(head, &f->path.alloc, &f->conditions) &&
            hfsbi_fetch_read_field(head, "Range", &f->range) &&
            hfsbi_fetch_read_field(head, "If-Range", &f->if_range) &&
            hfsbi_fetch_read_field(head, "If-Modified-Since", &f->since));
}

HFSBI_FN void hfsbi_fetch_start(hfsb_request           *request,
                                const hfsbi_fetch_opts *opts) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_fetch      *f = (hfsbi_fetch *)hfsbi_array(alloc, 1, sizeof *f);
    if (!f) {
        hfsb_reply_error(request, 503, "Out of memory.");
        if (opts->release) opts->release(opts->user);
        return;
    }
    memset(f, 0, sizeof *f);
    f->opts = *opts;
    if (!f->opts.root) f->opts.root = opts->tools->place;
    f->began = hfsb_clock_ms();
    f->file.fd = -1;
    f->path.alloc = f->range.alloc = f->if_range.alloc = *alloc;
    f->since.alloc = *alloc;
    if (hfsbi_fetch_read(f, hfsb_request_head(request))) {
        hfsbi_request_work(request, &opts->tools->rights, hfsbi_fetch_run,
                           hfsbi_fetch_done, f);
        return;
    }
    hfsb_reply_error(request, 503, "Out of memory.");
    hfsbi_fetch_free(f, request);
}
