/* http_curl.c - the transport on libcurl: perform, open and close. Depends on:
   net, http_curl_slot, http_curl_call. */
#include "http_curl_parts.h"

/* ---- the interface ---- */

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
    curl_slist_free_all(x.fields);
    hfsb_buf_free(&x.method);
    hfsb_buf_free(&x.address);
    hfsb_buf_free(&x.head);
    return st;
}

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
    hfsbi_array_free(&alloc, curl, 1, sizeof *curl);
    curl_global_cleanup();
}

/* ---- open ---- */

/* Text, or the first of these variables that is set, into *out. */
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
    /* HTTP_PROXY in capitals may be a field of a request to a CGI program */
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

/* What would else be told at the first https call only. */
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
        return hfsbi_fail(err, st, 0, "A text of hfsb_curl_opts holds a NUL.");
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
    if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075000)
        return hfsbi_fail(
            err, HFSB_REFUSED, 0,
            "libcurl is too old: it is %s, and 7.80.0 is needed.",
            curl_version_info(CURLVERSION_NOW)->version);
    curl = (hfsbi_curl *)hfsbi_array(&o->alloc, 1, sizeof *curl);
    if (!curl) return hfsbi_fail_status(err, HFSB_NOMEM, "transport");
    memset(curl, 0, sizeof *curl);
    curl->alloc = o->alloc;
    if (pthread_mutex_init(&curl->lock, NULL) ||
        curl_global_init(CURL_GLOBAL_DEFAULT)) {
        hfsbi_array_free(&o->alloc, curl, 1, sizeof *curl);
        return hfsbi_fail(err, HFSB_IO, 0, "libcurl cannot be started.");
    }
    st = hfsbi_curl_init(curl, o, err);
    if (st) {
        hfsbi_curl_close(curl);
        return st;
    }
    out->perform = hfsbi_curl_perform;
    out->close = hfsbi_curl_close;
    out->user = curl;
    return hfsbi_ok(err);
}
