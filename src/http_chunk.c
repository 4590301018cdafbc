/* http_chunk.c - the line before a chunk. Depends on: base, http_head. */
#include "http_parts.h"

static const char *hfsbi_http_blanks(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

static const char *hfsbi_http_token(const char *p) {
    while (hfsbi_http_class(*p) & HFSBI_HTTP_TOKEN) p++;
    return p;
}

/* Moves *at from the opening quote to behind the closing one, or to the byte
   that is wrong. */
static bool hfsbi_http_quoted(const char **at) {
    const char *p = *at + 1;
    for (; *p != '"'; p++) {
        if (*p == '\\') p++;
        if (!(hfsbi_http_class(*p) & HFSBI_HTTP_VALUE)) break;
    }
    *at = *p == '"' ? p + 1 : p;
    return *p == '"';
}

/* Extensions, *(";" name ["=" value]) with blanks around: false with *at at
   the byte that is wrong. The line ends in a line feed, which stops every
   step here. */
static bool hfsbi_http_extensions(const char **at) {
    for (;;) {
        const char *p = hfsbi_http_blanks(*at), *name;
        if (*p != ';') return true;
        name = hfsbi_http_blanks(p + 1);
        *at = hfsbi_http_token(name);
        if (*at == name) return false;
        p = hfsbi_http_blanks(*at);
        if (*p != '=') continue;
        p = hfsbi_http_blanks(p + 1);
        *at = *p == '"' ? p : hfsbi_http_token(p);
        if (*p == '"' ? !hfsbi_http_quoted(at) : *at == p) return false;
    }
}

HFSBI_FN bool hfsbi_http_chunk_line(const hfsbi_http_reading *r, const char *p,
                                    const char         *end,
                                    unsigned long long *size) {
    const char        *start = p;
    unsigned long long n = 0;
    for (; hfsbi_http_hex(*p) >= 0; p++) {
        if (n > (~0ull >> 1) / 16)
            return hfsbi_http_refuse(r, 400, start,
                                     "The size of a chunk is too large.");
        n = n * 16 + (unsigned long long)hfsbi_http_hex(*p);
    }
    if (p == start)
        return hfsbi_http_refuse_byte(r, p, "the place of a chunk's size");
    if (!hfsbi_http_extensions(&p) || end - p != 2 || *p != '\r')
        return hfsbi_http_refuse_byte(r, p, "the line before a chunk");
    *size = n;
    return true;
}
