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

static const struct {
    int         status;
    const char *reason;
} hfsbi_http_reasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {511, "Network Authentication Required"},
};

const char *hfsb_http_reason(int status) {
    size_t i;
    for (i = 0; i < sizeof hfsbi_http_reasons / sizeof *hfsbi_http_reasons;
         i++)
        if (hfsbi_http_reasons[i].status == status)
            return hfsbi_http_reasons[i].reason;
    return "";
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
