/* write.c - heads and chunks.

   Each function appends one part of a message, all of it or nothing, and
   refuses bytes that would end a line: no value can smuggle one into a head. */
#include "http_private.h"

void hfsb_http_date(long long seconds, char out[HFSB_HTTP_DATE]) {
    static const char days[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    hfsbi_date        d = hfsbi_date_of(seconds);
    (void)snprintf(out, HFSB_HTTP_DATE,
                   "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                   days + 3 * d.weekday, d.day, months + 3 * (d.month - 1),
                   d.year, d.hour, d.minute, d.second);
}

const char *hfsb_http_reason(int status) {
    switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 102: return "Processing";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 423: return "Locked";
    case 424: return "Failed Dependency";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    case 511: return "Network Authentication Required";
    default: return "";
    }
}

hfsb_status hfsb_http_put_request(hfsb_buf *out, hfsb_str method,
                                  hfsb_str target) {
    size_t mark = out->len;
    if (!hfsbi_http_all(method, HFSBI_HTTP_TOKEN) ||
        !hfsbi_http_all(target, HFSBI_HTTP_TARGET))
        return HFSB_ARG;
    hfsb_buf_append(out, method);
    hfsb_buf_append_byte(out, ' ');
    hfsb_buf_append(out, target);
    hfsb_buf_append(out, HFSB_LIT(" HTTP/1.1\r\n"));
    return hfsb_buf_finish(out, mark);
}

hfsb_status hfsb_http_put_reply(hfsb_buf *out, int status) {
    if (status < 100 || status > 999) return HFSB_ARG;
    return hfsb_buf_printf(out, "HTTP/1.1 %d %s\r\n", status,
                           hfsb_http_reason(status));
}

hfsb_status hfsb_http_put_field(hfsb_buf *out, hfsb_str name, hfsb_str value) {
    size_t i, mark = out->len;
    if (!hfsbi_http_all(name, HFSBI_HTTP_TOKEN)) return HFSB_ARG;
    for (i = 0; i < value.len; i++)
        if (!(hfsbi_http_class(value.ptr[i]) & HFSBI_HTTP_VALUE) ||
            value.ptr[i] == '\t')
            return HFSB_ARG;
    hfsb_buf_append(out, name);
    hfsb_buf_append(out, HFSB_LIT(": "));
    hfsb_buf_append(out, value);
    hfsb_buf_append(out, HFSB_LIT("\r\n"));
    return hfsb_buf_finish(out, mark);
}

hfsb_status hfsb_http_put_head_end(hfsb_buf *out) {
    return hfsb_buf_append(out, HFSB_LIT("\r\n"));
}

hfsb_status hfsb_http_put_chunk(hfsb_buf *out, hfsb_str bytes) {
    size_t mark = out->len;
    hfsb_buf_printf(out, "%zx\r\n", bytes.len);
    hfsb_buf_append(out, bytes);
    hfsb_buf_append(out, HFSB_LIT("\r\n"));
    return hfsb_buf_finish(out, mark);
}
