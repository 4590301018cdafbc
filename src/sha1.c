/* sha1.c - sha1 (RFC 3174) and git's names of files. Depends on: base. */
#include "sha1.h"

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

static void hfsbi_sha1_finish(hfsbi_sha1 *sha, char hex[HFSBI_SHA1_HEX]) {
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
    for (i = 0; i < 5; i++)
        (void)snprintf(hex + 8 * i, 9, "%08lx", (unsigned long)sha->state[i]);
}

HFSBI_FN void hfsbi_sha1_hex(hfsb_str a, hfsb_str b,
                             char hex[HFSBI_SHA1_HEX]) {
    static const uint32_t start[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu,
                                      0x10325476u, 0xC3D2E1F0u};
    hfsbi_sha1            sha;
    memset(&sha, 0, sizeof sha);
    memcpy(sha.state, start, sizeof start);
    hfsbi_sha1_write(&sha, a);
    hfsbi_sha1_write(&sha, b);
    hfsbi_sha1_finish(&sha, hex);
}

HFSBI_FN void hfsbi_git_blob(hfsb_str content, char hex[HFSBI_SHA1_HEX]) {
    char head[32];
    int  n = snprintf(head, sizeof head, "blob %zu", content.len);
    hfsbi_sha1_hex(hfsb_str_make(head, (size_t)n + 1), content, hex);
}
