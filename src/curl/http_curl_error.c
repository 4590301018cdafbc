/* http_curl_error.c - what libcurl says, as statuses and sentences. Depends
   on: base, url, net. */
#include "http_curl_parts.h"

HFSBI_FN void hfsbi_curl_end(hfsbi_curl_call *x, hfsb_status code,
                             const char *format, ...) {
    char    text[256];
    va_list ap;
    if (x->ended) return;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    x->ended = hfsbi_fail(x->err, code, 0, "%s", text);
}

static bool hfsbi_curl_says(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return true;
    return false;
}

/* Why a certificate is not trusted, and what to do. TLS libraries say it in
   their own words, which libcurl hands on. */
static const char *hfsbi_curl_distrust(const char *text) {
    static const char *const expired[] = {"expired", "has passed", NULL};
    static const char *const early[] = {"not yet valid", "not activated",
                                        NULL};
    static const char *const name[] = {"subject name", "host name", "hostname",
                                       NULL};
    static const char *const issuer[] = {
        "issuer", "self-signed", "self signed", "unknown CA",
        "CAfile", "not trusted", NULL};
    if (hfsbi_curl_says(text, expired))
        return "its certificate has expired. Have it renewed, or set this "
               "machine's clock if that is wrong.";
    if (hfsbi_curl_says(text, early))
        return "its certificate is not valid yet. Is this machine's clock "
               "right?";
    if (hfsbi_curl_says(text, name))
        return "its certificate is for another host name. Use the name that "
               "the certificate has.";
    if (hfsbi_curl_says(text, issuer))
        return "its certificate was issued by an authority that is not known "
               "here. If it is to be trusted, name the authority's "
               "certificate: ca_file, or SSL_CERT_FILE in the environment.";
    return "its certificate is not to be trusted.";
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

/* The connection could not be made, or is no more. */
static hfsb_status hfsbi_curl_no_line(hfsbi_curl_call *x, const char *text) {
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
        hfsbi_err_add(x->err, " Does that port speak TLS? If not, the "
                              "address begins with http://.");
    return HFSB_CONNECT;
}

static hfsb_status hfsbi_curl_late(hfsbi_curl_call *x, const char *text) {
    hfsb_str  origin = hfsb_buf_str(&x->slot->origin);
    long long ms = x->call->connect_ms ? x->call->connect_ms : 30000;
    return hfsbi_fail(x->err, HFSB_TIMEOUT, 0,
                      "No connection to %.*s within %lld ms (%s).",
                      (int)origin.len, origin.ptr, ms, text);
}

HFSBI_FN hfsb_status hfsbi_curl_result(hfsbi_curl_call *x, CURLcode code) {
    hfsb_str    origin = hfsb_buf_str(&x->slot->origin);
    const char *text =
        x->slot->text[0] ? x->slot->text : curl_easy_strerror(code);
    if (x->ended) return x->ended;
    if (x->again)
        return hfsbi_fail(x->err, HFSB_LOST, 0,
                          "The connection to %.*s, kept from a call before, "
                          "was closed without a reply. The request may have "
                          "arrived, so it was not sent again.",
                          (int)origin.len, origin.ptr);
    switch ((int)code) {
    case CURLE_OK:
        if (x->has_head) return hfsbi_ok(x->err);
        return hfsbi_curl_no_line(x, "its head is not complete");
    case CURLE_OUT_OF_MEMORY:
        return hfsbi_fail_status(x->err, HFSB_NOMEM, "request");
    case CURLE_URL_MALFORMAT:
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "libcurl cannot use the URL at %.*s: %s.",
                          (int)origin.len, origin.ptr, text);
    case CURLE_OPERATION_TIMEDOUT: return hfsbi_curl_late(x, text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS: return hfsbi_curl_refused(x, code, text);
    case CURLE_UNSUPPORTED_PROTOCOL: /* it says HTTP/0.9, or no TLS here */
        if (!x->requested)
            return hfsbi_fail(x->err, HFSB_REFUSED, 0,
                              "libcurl will not connect to %.*s: %s.",
                              (int)origin.len, origin.ptr, text);
        break;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case 100: /* CURLE_TOO_LARGE of libcurl 8.6 */ break;
    case CURLE_RECV_ERROR: /* also for chunks that are none */
        if (x->requested && strstr(text, "chunk")) break;
        return hfsbi_curl_no_line(x, text);
    default: return hfsbi_curl_no_line(x, text);
    }
    return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                      "The reply of %.*s is not what HTTP allows: %s.",
                      (int)origin.len, origin.ptr, text);
}
