/* hash.c - SHA-256 (FIPS 180-4), SHA-1 (RFC 3174), base64 (RFC 4648), FNV-1a.

   SHA-256 identifies the content of files; for long inputs it uses the SHA
   instructions of the CPU, about five times as fast. SHA-1 is here only
   because git object names and the WebSocket handshake use it. FNV-1a hashes
   lines and table keys. base64 decodes strictly: exactly one text for each
   sequence of bytes. */
#include "core_private.h"

/* ---- SHA-256 ---- */

static const uint32_t hfsbi_sha_k[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu,
    0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, 0xd807aa98u, 0x12835b01u,
    0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u,
    0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu,
    0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u,
    0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u,
    0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u,
    0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u, 0x1e376c08u,
    0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu,
    0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u,
    0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};

static uint32_t hfsbi_ror(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static void hfsbi_sha_schedule(const unsigned char *p, uint32_t w[64]) {
    size_t i;
    for (i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
               (uint32_t)p[2] << 8 | p[3];
    for (; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] +
               (hfsbi_ror(a, 7) ^ hfsbi_ror(a, 18) ^ a >> 3) +
               (hfsbi_ror(b, 17) ^ hfsbi_ror(b, 19) ^ b >> 10);
    }
}

static void hfsbi_sha_plain(unsigned int         state[8],
                            const unsigned char *block) {
    uint32_t w[64], s[8];
    size_t   i;
    hfsbi_sha_schedule(block, w);
    for (i = 0; i < 8; i++) s[i] = state[i];
    for (i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] +
                      (hfsbi_ror(e, 6) ^ hfsbi_ror(e, 11) ^ hfsbi_ror(e, 25)) +
                      ((e & s[5]) ^ (~e & s[6])) + hfsbi_sha_k[i] + w[i];
        uint32_t t2 = (hfsbi_ror(a, 2) ^ hfsbi_ror(a, 13) ^ hfsbi_ror(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6];
        s[6] = s[5];
        s[5] = e;
        s[4] = s[3] + t1;
        s[3] = s[2];
        s[2] = s[1];
        s[1] = a;
        s[0] = t1 + t2;
    }
    for (i = 0; i < 8; i++) state[i] = (state[i] + s[i]);
}

#ifdef HFSBI_SHA_X86

/* The SHA instructions keep the state as (a b e f) and (c d g h), the first
   word highest, and do two rounds each with the lower half of their input. */

typedef int  hfsbi_v4 __attribute__((vector_size(16)));
typedef char hfsbi_v16 __attribute__((vector_size(16)));

/* CPUID is queried only for long inputs: in a virtual machine it takes as long
   as hashing a few kilobytes. */
static bool hfsbi_sha_fast(hfsb_sha256 *sha, size_t blocks) {
    unsigned a, b, c, d;
    if (!sha->asked && blocks >= 128) {
        sha->asked = true;
        sha->fast =
            __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
    }
    return sha->fast;
}

/* The four words of the message schedule that follow w0 w1 w2 w3. */
__attribute__((target("sha,ssse3"))) static inline __m128i
hfsbi_sha_next(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
    __m128i seven =
        _mm_or_si128(_mm_srli_si128(w2, 4), _mm_slli_si128(w3, 12));
    __m128i sum =
        (__m128i)__builtin_ia32_sha256msg1((hfsbi_v4)w0, (hfsbi_v4)w1);
    sum = _mm_add_epi32(sum, seven);
    return (__m128i)__builtin_ia32_sha256msg2((hfsbi_v4)sum, (hfsbi_v4)w3);
}

/* Four rounds with the words w. */
__attribute__((target("sha,ssse3"))) static inline void
hfsbi_sha_four(__m128i *abef, __m128i *cdgh, __m128i w, size_t round) {
    __m128i k =
        _mm_loadu_si128((const __m128i *)(const void *)(hfsbi_sha_k + round));
    __m128i x = _mm_add_epi32(w, k);
    *cdgh = (__m128i)__builtin_ia32_sha256rnds2((hfsbi_v4)*cdgh,
                                                (hfsbi_v4)*abef, (hfsbi_v4)x);
    x = _mm_shuffle_epi32(x, 0x0E);
    *abef = (__m128i)__builtin_ia32_sha256rnds2((hfsbi_v4)*abef,
                                                (hfsbi_v4)*cdgh, (hfsbi_v4)x);
}

/* Sixteen bytes as four big-endian words. */
__attribute__((target("sha,ssse3"))) static inline __m128i
hfsbi_sha_load(const unsigned char *p) {
    __m128i swap =
        _mm_set_epi32(0x0C0D0E0F, 0x08090A0B, 0x04050607, 0x00010203);
    __m128i raw = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (__m128i)__builtin_ia32_pshufb128((hfsbi_v16)raw, (hfsbi_v16)swap);
}

__attribute__((target("sha,ssse3"))) static void
hfsbi_sha_x86(unsigned int state[8], const unsigned char *p, size_t blocks) {
    unsigned int *s = state;
    __m128i abef = _mm_set_epi32((int)s[0], (int)s[1], (int)s[4], (int)s[5]);
    __m128i cdgh = _mm_set_epi32((int)s[2], (int)s[3], (int)s[6], (int)s[7]);
    for (; blocks > 0; blocks--, p += 64) {
        __m128i old_abef = abef, old_cdgh = cdgh;
        __m128i w0 = hfsbi_sha_load(p), w1 = hfsbi_sha_load(p + 16);
        __m128i w2 = hfsbi_sha_load(p + 32), w3 = hfsbi_sha_load(p + 48);
        size_t  round;
        for (round = 0; round < 64; round += 16) {
            hfsbi_sha_four(&abef, &cdgh, w0, round);
            hfsbi_sha_four(&abef, &cdgh, w1, round + 4);
            hfsbi_sha_four(&abef, &cdgh, w2, round + 8);
            hfsbi_sha_four(&abef, &cdgh, w3, round + 12);
            if (round == 48) break;
            w0 = hfsbi_sha_next(w0, w1, w2, w3);
            w1 = hfsbi_sha_next(w1, w2, w3, w0);
            w2 = hfsbi_sha_next(w2, w3, w0, w1);
            w3 = hfsbi_sha_next(w3, w0, w1, w2);
        }
        abef = _mm_add_epi32(abef, old_abef);
        cdgh = _mm_add_epi32(cdgh, old_cdgh);
    }
    {
        int out[8];
        _mm_storeu_si128((__m128i *)(void *)out, abef);
        _mm_storeu_si128((__m128i *)(void *)(out + 4), cdgh);
        s[0] = (unsigned)out[3], s[1] = (unsigned)out[2];
        s[4] = (unsigned)out[1], s[5] = (unsigned)out[0];
        s[2] = (unsigned)out[7], s[3] = (unsigned)out[6];
        s[6] = (unsigned)out[5], s[7] = (unsigned)out[4];
    }
}
#endif

static void hfsbi_sha_blocks(hfsb_sha256 *sha, const unsigned char *p,
                             size_t blocks) {
#ifdef HFSBI_SHA_X86
    if (hfsbi_sha_fast(sha, blocks)) {
        hfsbi_sha_x86(sha->state, p, blocks);
        return;
    }
#endif
    for (; blocks > 0; blocks--, p += 64) hfsbi_sha_plain(sha->state, p);
}

void hfsb_sha256_init(hfsb_sha256 *sha) {
    static const uint32_t start[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u,
                                      0xa54ff53au, 0x510e527fu, 0x9b05688cu,
                                      0x1f83d9abu, 0x5be0cd19u};
    size_t                i;
    memset(sha, 0, sizeof *sha);
    for (i = 0; i < 8; i++) sha->state[i] = start[i];
}

void hfsb_sha256_write(hfsb_sha256 *sha, hfsb_str piece) {
    size_t fill = (size_t)(sha->total % 64), n;
    sha->total += piece.len;
    if (fill > 0) {
        n = piece.len < 64 - fill ? piece.len : 64 - fill;
        if (n) memcpy(sha->block + fill, piece.ptr, n);
        if (fill + n < 64) return;
        hfsbi_sha_blocks(sha, sha->block, 1);
        piece = hfsb_str_slice(piece, n, piece.len);
    }
    n = piece.len / 64;
    if (n) hfsbi_sha_blocks(sha, (const unsigned char *)piece.ptr, n);
    piece = hfsb_str_slice(piece, n * 64, piece.len);
    if (piece.len) memcpy(sha->block, piece.ptr, piece.len);
}

void hfsb_sha256_finish(hfsb_sha256  *sha,
                        unsigned char digest[HFSB_SHA256_SIZE]) {
    unsigned long long bits = sha->total * 8;
    size_t             fill = (size_t)(sha->total % 64), i;
    sha->block[fill++] = 0x80;
    if (fill > 56) {
        memset(sha->block + fill, 0, 64 - fill);
        hfsbi_sha_blocks(sha, sha->block, 1);
        fill = 0;
    }
    memset(sha->block + fill, 0, 56 - fill);
    for (i = 0; i < 8; i++)
        sha->block[56 + i] = (unsigned char)(bits >> (56 - 8 * i) & 0xFFu);
    hfsbi_sha_blocks(sha, sha->block, 1);
    for (i = 0; i < HFSB_SHA256_SIZE; i++)
        digest[i] =
            (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)) & 0xFFu);
}

HFSBI_FN void hfsbi_sha256_finish_hex(hfsb_sha256 *sha,
                                      char         hex[HFSB_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char     digest[HFSB_SHA256_SIZE];
    size_t            i;
    hfsb_sha256_finish(sha, digest);
    for (i = 0; i < HFSB_SHA256_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * HFSB_SHA256_SIZE] = '\0';
}

void hfsb_sha256_hex(hfsb_str s, char hex[HFSB_SHA256_HEX]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, s);
    hfsbi_sha256_finish_hex(&sha, hex);
}

/* ---- base64 ---- */

HFSBI_FN char *hfsbi_base64_write(hfsb_str s, char *to) {
    static const char    digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "abcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t               i, k;
    for (i = 0; i < s.len; i += 3) {
        size_t   n = s.len - i < 3 ? s.len - i : 3;
        uint32_t bits = (uint32_t)p[i] << 16;
        if (n > 1) bits |= (uint32_t)p[i + 1] << 8;
        if (n > 2) bits |= p[i + 2];
        for (k = 0; k < 4; k++)
            *to++ = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    *to = '\0';
    return to;
}

hfsb_status hfsb_base64_encode(hfsb_str s, hfsb_buf *out) {
    size_t      quads = s.len / 3 + (s.len % 3 > 0), size;
    hfsb_status st;
    if (!hfsbi_mul(quads, 4, &size)) return HFSB_LIMIT;
    st = hfsb_buf_reserve(out, size);
    if (st != HFSB_OK) return st;
    hfsbi_base64_write(s, out->ptr + out->len);
    out->len += size;
    return HFSB_OK;
}

/* Value of a base64 digit; 64 for any other byte. */
static unsigned hfsbi_base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z') return (unsigned)(c - 'a') + 26;
    if (c >= '0' && c <= '9') return (unsigned)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

HFSBI_FN hfsb_status hfsbi_base64_check(hfsb_str s, size_t *size,
                                        hfsb_err *err) {
    size_t i, n = s.len; /* n: without the padding */
    while (n > 0 && s.len - n < 2 && s.ptr[n - 1] == '=') n--;
    for (i = 0; i < n; i++) {
        if (hfsbi_base64_digit(s.ptr[i]) < 64) continue;
        if (s.ptr[i] == '=')
            return hfsbi_fail(err, HFSB_SYNTAX, i,
                              "Base64 has padding at offset %zu: only the "
                              "last two characters may be \"=\".",
                              i);
        return hfsbi_fail(err, HFSB_SYNTAX, i,
                          "Base64 has the byte 0x%02X at offset %zu: only "
                          "A-Z, a-z, 0-9, \"+\" and \"/\" are allowed, no "
                          "blanks or line breaks.",
                          (unsigned)(unsigned char)s.ptr[i], i);
    }
    if (s.len % 4 != 0)
        return hfsbi_fail(err, HFSB_SYNTAX, s.len,
                          "Base64 has %zu characters, which is not a "
                          "multiple of four: it was cut off or lacks its "
                          "padding.",
                          s.len);
    if (n < s.len &&
        (hfsbi_base64_digit(s.ptr[n - 1]) & (s.len - n == 2 ? 15u : 3u)) != 0)
        return hfsbi_fail(err, HFSB_SYNTAX, n - 1,
                          "Base64 ends in \"%c\" before the padding, whose "
                          "spare bits are not zero: it was damaged.",
                          s.ptr[n - 1]);
    *size = n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0);
    return hfsbi_ok(err);
}

hfsb_status hfsb_base64_decode(hfsb_str s, hfsb_buf *out, hfsb_err *err) {
    size_t      size = 0, i;
    uint32_t    bits = 0;
    hfsb_status st = hfsbi_base64_check(s, &size, err);
    char       *to;
    if (st != HFSB_OK) return st;
    st = hfsb_buf_reserve(out, size);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Decoded base64");
    to = out->ptr + out->len;
    for (i = 0; i < s.len && s.ptr[i] != '='; i++) {
        bits = bits << 6 | hfsbi_base64_digit(s.ptr[i]);
        if (i % 4 > 0)
            *to++ = (char)(unsigned char)(bits >> (6 - 2 * (i % 4)) & 0xFFu);
    }
    *to = '\0';
    out->len += size;
    return hfsbi_ok(err);
}

/* ---- FNV-1a ---- */

unsigned long long hfsb_fnv(hfsb_str s) {
    return hfsb_fnv_add(HFSB_FNV_START, s);
}

unsigned long long hfsb_fnv_add(unsigned long long hash, hfsb_str s) {
    uint64_t h = hash;
    size_t   i;
    for (i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3u;
    return h;
}

/* ---- SHA-1 ---- */

typedef struct hfsbi_sha1 {
    uint32_t      state[5];
    unsigned char block[64];
    size_t        used; /* of block */
    uint64_t      total;
} hfsbi_sha1;

static uint32_t hfsbi_sha1_rol(uint32_t x, unsigned n) {
    return x << n | x >> (32 - n);
}

static uint32_t hfsbi_sha1_mix(size_t round, uint32_t b, uint32_t c,
                               uint32_t d) {
    if (round < 20) return ((b & c) | (~b & d)) + 0x5A827999u;
    if (round < 40) return (b ^ c ^ d) + 0x6ED9EBA1u;
    if (round < 60) return ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCu;
    return (b ^ c ^ d) + 0xCA62C1D6u;
}

static void hfsbi_sha1_block(hfsbi_sha1 *sha) {
    const unsigned char *p = sha->block;
    uint32_t             w[80], s[5], t;
    size_t               i;
    for (i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
               (uint32_t)p[2] << 8 | p[3];
    for (; i < 80; i++)
        w[i] = hfsbi_sha1_rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, sha->state, sizeof s);
    for (i = 0; i < 80; i++) {
        t = hfsbi_sha1_rol(s[0], 5) + hfsbi_sha1_mix(i, s[1], s[2], s[3]) +
            s[4] + w[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = hfsbi_sha1_rol(s[1], 30);
        s[1] = s[0];
        s[0] = t;
    }
    for (i = 0; i < 5; i++) sha->state[i] += s[i];
    sha->used = 0;
}

static void hfsbi_sha1_write(hfsbi_sha1 *sha, hfsb_str s) {
    sha->total += s.len;
    while (s.len) {
        size_t n = sizeof sha->block - sha->used;
        if (n > s.len) n = s.len;
        memcpy(sha->block + sha->used, s.ptr, n);
        sha->used += n;
        s = hfsb_str_slice(s, n, s.len);
        if (sha->used == sizeof sha->block) hfsbi_sha1_block(sha);
    }
}

/* Pads with 0x80, zeros and the length in bits. */
static void hfsbi_sha1_finish(hfsbi_sha1 *sha) {
    uint64_t bits = sha->total * 8;
    size_t   i;
    sha->block[sha->used++] = 0x80;
    if (sha->used > 56) {
        memset(sha->block + sha->used, 0, sizeof sha->block - sha->used);
        hfsbi_sha1_block(sha);
    }
    memset(sha->block + sha->used, 0, 56 - sha->used);
    for (i = 0; i < 8; i++)
        sha->block[56 + i] = (unsigned char)(bits >> (56 - 8 * i));
    hfsbi_sha1_block(sha);
}

/* SHA-1 of a followed by b. */
static hfsbi_sha1 hfsbi_sha1_of(hfsb_str a, hfsb_str b) {
    static const uint32_t start[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu,
                                      0x10325476u, 0xC3D2E1F0u};
    hfsbi_sha1            sha;
    memset(&sha, 0, sizeof sha);
    memcpy(sha.state, start, sizeof start);
    hfsbi_sha1_write(&sha, a);
    hfsbi_sha1_write(&sha, b);
    hfsbi_sha1_finish(&sha);
    return sha;
}

HFSBI_FN void hfsbi_sha1_digest(hfsb_str a, hfsb_str b,
                                unsigned char digest[HFSBI_SHA1_SIZE]) {
    hfsbi_sha1 sha = hfsbi_sha1_of(a, b);
    size_t     i;
    for (i = 0; i < HFSBI_SHA1_SIZE; i++)
        digest[i] =
            (unsigned char)(sha.state[i / 4] >> (24 - 8 * (i % 4)) & 0xFFu);
}

HFSBI_FN void hfsbi_sha1_hex(hfsb_str a, hfsb_str b,
                             char hex[HFSBI_SHA1_HEX]) {
    hfsbi_sha1 sha = hfsbi_sha1_of(a, b);
    size_t     i;
    for (i = 0; i < 5; i++)
        (void)snprintf(hex + 8 * i, 9, "%08lx", (unsigned long)sha.state[i]);
}

HFSBI_FN void hfsbi_git_blob(hfsb_str content, char hex[HFSBI_SHA1_HEX]) {
    char head[32];
    int  n = snprintf(head, sizeof head, "blob %zu", content.len);
    hfsbi_sha1_hex(hfsb_str_make(head, (size_t)n + 1), content, hex);
}

void hfsb_secret_wipe(void *ptr, size_t n) {
#if defined(__GNUC__) && !defined(__TINYC__)
    if (n) memset(ptr, 0, n);
    __asm__ __volatile__("" : : "r"(ptr) : "memory"); /* it may be read */
#else
    volatile unsigned char *p = (volatile unsigned char *)ptr;
    while (n--) *p++ = 0;
#endif
}

bool hfsb_secret_equal(hfsb_str a, hfsb_str b) {
    volatile unsigned diff = a.len != b.len;
    size_t            i;
    for (i = 0; i < a.len && b.len; i++)
        diff = diff | (unsigned)(a.ptr[i] ^ b.ptr[i % b.len]);
    return diff == 0;
}
