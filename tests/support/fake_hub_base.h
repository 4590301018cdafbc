/* fake_hub_base.h - small things: texts, times, sha1, connections. Part of
   fake_hub.h. */

/* ---- small things ---- */

#define FH_MUST(x) ((x) == HFSB_OK ? (void)0 : fh_die(#x))

static void fh_die(const char *what) {
    printf("fake hub: %s\n", what);
    abort();
}

static void fh_put(hfsb_buf *out, const char *text) {
    FH_MUST(hfsb_buf_append(out, hfsb_cstr(text)));
}

static void fh_set(hfsb_buf *out, hfsb_str text) {
    hfsb_buf_truncate(out, 0);
    FH_MUST(hfsb_buf_append(out, text));
}

static void *fh_new(size_t size) {
    void *p = calloc(1, size);
    if (!p) fh_die("memory");
    return p;
}

static bool fh_is(const hfsb_buf *b, const char *text) {
    return hfsb_str_equal(hfsb_buf_str(b), hfsb_cstr(text));
}

static bool fh_same(hfsb_str a, const char *text) {
    return hfsb_str_equal(a, hfsb_cstr(text));
}

static void fh_copy(char *out, size_t room, hfsb_str text) {
    size_t n = text.len < room ? text.len : room - 1;
    if (n) memcpy(out, text.ptr, n);
    out[n] = '\0';
}

/* A "*" in the pattern matches any text. */
static bool fh_match(hfsb_str s, const char *pattern) {
    while (*pattern && *pattern != '*') {
        if (!s.len || *s.ptr != *pattern) return false;
        s = hfsb_str_slice(s, 1, s.len);
        pattern++;
    }
    if (!*pattern) return s.len == 0;
    for (;; s = hfsb_str_slice(s, 1, s.len)) {
        if (fh_match(s, pattern + 1)) return true;
        if (!s.len) return false;
    }
}

/* "2025-03-07T12:24:18.657Z", so many days ago. */
static void fh_time(char out[32], double days) {
    struct timespec now;
    struct tm       tm;
    time_t          t;
    clock_gettime(CLOCK_REALTIME, &now);
    t = now.tv_sec - (time_t)(days * 86400);
    gmtime_r(&t, &tm);
    snprintf(out, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100,
             tm.tm_mday % 100, tm.tm_hour % 100, tm.tm_min % 100,
             tm.tm_sec % 100, (int)(now.tv_nsec / 1000000) % 1000);
}

/* ---- sha1, of git ---- */

static unsigned fh_rol(unsigned x, int n) {
    return (x << n) | (x >> (32 - n));
}

static void fh_sha1_block(unsigned h[5], const unsigned char *p) {
    unsigned w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f, k, t;
    int      i;
    for (i = 0; i < 16; i++)
        w[i] = (unsigned)p[4 * i] << 24 | (unsigned)p[4 * i + 1] << 16 |
               (unsigned)p[4 * i + 2] << 8 | (unsigned)p[4 * i + 3];
    for (; i < 80; i++)
        w[i] = fh_rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (i = 0; i < 80; i++) {
        if (i < 20) f = (b & c) | (~b & d), k = 0x5A827999u;
        else if (i < 40) f = b ^ c ^ d, k = 0x6ED9EBA1u;
        else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDCu;
        else f = b ^ c ^ d, k = 0xCA62C1D6u;
        t = fh_rol(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = fh_rol(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

static void fh_sha1(hfsb_str s, char hex[41]) {
    unsigned h[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u,
                     0xC3D2E1F0u};
    unsigned long long bits = (unsigned long long)s.len * 8;
    hfsb_buf           b = HFSB_INIT;
    size_t             i;
    FH_MUST(hfsb_buf_append(&b, s));
    FH_MUST(hfsb_buf_append_byte(&b, (char)-128));
    while (b.len % 64 != 56) FH_MUST(hfsb_buf_append_byte(&b, '\0'));
    for (i = 8; i-- > 0;)
        FH_MUST(hfsb_buf_append_byte(&b, (char)(bits >> (8 * i) & 255)));
    for (i = 0; i < b.len; i += 64)
        fh_sha1_block(h, (const unsigned char *)b.ptr + i);
    for (i = 0; i < 5; i++) snprintf(hex + 8 * i, 9, "%08x", h[i]);
    hfsb_buf_free(&b);
}

/* As `git hash-object`. */
static void fh_blob_oid(hfsb_str content, char hex[41]) {
    hfsb_buf b = HFSB_INIT;
    FH_MUST(hfsb_buf_printf(&b, "blob %zu", content.len));
    FH_MUST(hfsb_buf_append_byte(&b, '\0'));
    FH_MUST(hfsb_buf_append(&b, content));
    fh_sha1(hfsb_buf_str(&b), hex);
    hfsb_buf_free(&b);
}

/* ---- bytes of a connection ---- */

static void fh_shift(hfsb_buf *in, size_t n) {
    memmove(in->ptr, in->ptr + n, in->len - n);
    hfsb_buf_truncate(in, in->len - n);
}

/* False when the peer is gone. */
static bool fh_send(int fd, hfsb_str bytes) {
    while (bytes.len) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
    }
    return true;
}

/* Reads more bytes after those already there; false at the end. */
static bool fh_receive(int fd, hfsb_buf *in) {
    char    piece[16384];
    ssize_t n;
    do n = recv(fd, piece, sizeof piece, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    FH_MUST(hfsb_buf_append(in, hfsb_str_make(piece, (size_t)n)));
    return true;
}

static int fh_dial(unsigned port) {
    struct sockaddr_in a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        fd = -1;
    }
    return fd;
}
