/* test_hash.c - SHA-256, base64, FNV-1a. */
#include "../support/t.h"

/* ---- SHA-256 ---- */

static void check_sha(hfsb_str s, const char *want) {
    char hex[HFSB_SHA256_HEX];
    hfsb_sha256_hex(s, hex);
    t_str(__FILE__, __LINE__, hex, strlen(hex), want, strlen(want));
}

static void sha256_matches_the_nist_vectors(void) {
    char   *million = (char *)malloc(1000000);
    size_t  i;
    check_sha(HFSB_LIT(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c"
                            "a495991b7852b855");
    check_sha(HFSB_LIT("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a39617"
                               "7a9cb410ff61f20015ad");
    check_sha(HFSB_LIT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnop"
                       "nopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06"
              "c1");
    check_sha(HFSB_LIT("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghij"
                       "klmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrst"
                       "nopqrstu"),
              "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9"
              "d1");
    check_sha(HFSB_LIT("\xbd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4"
                                "b5aae11204c08ffe732b");
    if (!million) abort();
    for (i = 0; i < 1000000; i++) million[i] = 'a';
    check_sha(hfsb_str_make(million, 1000000),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112c"
              "d0");
    free(million);
}

/* Only long pieces use the SHA instructions of the CPU. */
static void sha256_matches_with_and_without_cpu_instructions(void) {
    unsigned long long state = 7;
    char               hex[HFSB_SHA256_HEX], again[HFSB_SHA256_HEX];
    size_t             len = 100000, i, at, n;
    char              *text = (char *)malloc(len);
    if (!text) abort();
    for (i = 0; i < len; i++) text[i] = (char)t_random(&state);
    for (i = 0; i < 20; i++) {
        hfsb_sha256 sha;
        size_t      from = i, to = len - 37 * i;
        hfsb_sha256_hex(hfsb_str_make(text + from, to - from), hex);
        hfsb_sha256_init(&sha);
        for (at = from; at < to; at += n) {
            n = 1 + t_random(&state) % 500;
            if (n > to - at) n = to - at;
            hfsb_sha256_write(&sha, hfsb_str_make(text + at, n));
        }
        hfsbi_sha256_finish_hex(&sha, again);
        T_CHECK(strcmp(hex, again) == 0);
    }
    free(text);
}

/* Lengths around those where the padding needs another block: sha256sum of
   that many bytes 'a'; a hash over all digests pins the others. */
static void sha256_handles_every_short_length(void) {
    hfsb_sha256   all, one;
    unsigned char digest[HFSB_SHA256_SIZE];
    const void   *bytes = digest;
    char          text[200], hex[HFSB_SHA256_HEX];
    size_t        len, i;
    memset(text, 'a', sizeof text);
    hfsb_sha256_init(&all);
    for (len = 0; len < sizeof text; len++) {
        hfsb_str s = t_exact(text, len);
        hfsb_sha256_init(&one);
        hfsb_sha256_write(&one, s);
        hfsb_sha256_finish(&one, digest);
        hfsb_sha256_write(&all, hfsb_str_make((const char *)bytes,
                                              sizeof digest));
        t_drop(s);
    }
    hfsb_sha256_finish(&all, digest);
    for (i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)digest[i]);
    T_STR(hfsb_cstr(hex), "752c007f38611cfbf5fa42cb1cea3d8e086491c8"
                          "44d0cc4defd632cb81423506");
}

static void sha256_ignores_how_the_input_is_cut(void) {
    unsigned long long seed = 3;
    unsigned char      whole[HFSB_SHA256_SIZE], cut[HFSB_SHA256_SIZE];
    char               text[1000];
    size_t             i, at;
    int                round;
    hfsb_sha256        sha;
    for (i = 0; i < sizeof text; i++) text[i] = (char)(t_random(&seed) & 127);
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make(text, sizeof text));
    hfsb_sha256_finish(&sha, whole);
    for (round = 0; round < 300; round++) {
        hfsb_sha256_init(&sha);
        hfsb_sha256_write(&sha, hfsb_str_make(NULL, 0));
        for (at = 0; at < sizeof text;) {
            size_t n = round == 0 ? 1 : t_random(&seed) % 150;
            if (n > sizeof text - at) n = sizeof text - at;
            hfsb_sha256_write(&sha, hfsb_str_make(text + at, n));
            at += n;
        }
        hfsb_sha256_finish(&sha, cut);
        T_CHECK(!memcmp(whole, cut, sizeof whole));
    }
}

/* ---- base64 ---- */

static void base64_matches_the_vectors_of_rfc_4648(void) {
    static const struct {
        const char *plain, *code;
    } cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"}, {"\xFB\xEF\xFF", "++//"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf code = HFSB_INIT, plain = HFSB_INIT;
        T_CHECK(hfsb_base64_encode(hfsb_cstr(cases[i].plain), &code) ==
                HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&code),
                               hfsb_cstr(cases[i].code)));
        T_CHECK(code.ptr[code.len] == '\0');
        T_CHECK(hfsb_base64_decode(hfsb_cstr(cases[i].code), &plain, NULL) ==
                HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&plain),
                               hfsb_cstr(cases[i].plain)));
        T_CHECK(plain.ptr[plain.len] == '\0');
        hfsb_buf_free(&code);
        hfsb_buf_free(&plain);
    }
}

static void base64_round_trips_every_byte(void) {
    unsigned long long seed = 5;
    char               text[300];
    size_t             len, i;
    for (i = 0; i < sizeof text; i++)
        text[i] = (char)(unsigned char)(i < 256 ? i : t_random(&seed) & 255);
    for (len = 0; len <= sizeof text; len++) {
        hfsb_str s = t_exact(text, len);
        hfsb_buf code = HFSB_INIT, plain = HFSB_INIT;
        hfsb_err err;
        T_CHECK(hfsb_base64_encode(s, &code) == HFSB_OK);
        T_CHECK(code.len == (len + 2) / 3 * 4);
        T_CHECK(hfsb_base64_decode(hfsb_buf_str(&code), &plain, &err) ==
                HFSB_OK);
        T_CHECK(err.code == HFSB_OK && err.msg[0] == '\0');
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&plain), s));
        hfsb_buf_free(&code);
        hfsb_buf_free(&plain);
        t_drop(s);
    }
}

#define PADDING " only the last two characters may be \"=\"."
#define ALLOWED                                                            \
    " only A-Z, a-z, 0-9, \"+\" and \"/\" are allowed, no blanks or line " \
    "breaks."
#define CUT " characters, which is not a multiple of four: it was cut off " \
            "or lacks its padding."

static void base64_refuses_inexact_input(void) {
    static const struct {
        const char *code;
        size_t      pos;
        const char *msg;
    } cases[] = {
        {"Zg", 2, "Base64 has 2" CUT},
        {"Zm9vY", 5, "Base64 has 5" CUT},
        {"Zg=", 3, "Base64 has 3" CUT},
        {"=", 1, "Base64 has 1" CUT},
        {"Z===", 1, "Base64 has padding at offset 1:" PADDING},
        {"====", 0, "Base64 has padding at offset 0:" PADDING},
        {"Zg==Zg==", 2, "Base64 has padding at offset 2:" PADDING},
        {"Zg==\n", 2, "Base64 has padding at offset 2:" PADDING},
        {"Zm9v\n", 4, "Base64 has the byte 0x0A at offset 4:" ALLOWED},
        {"Zm 9v", 2, "Base64 has the byte 0x20 at offset 2:" ALLOWED},
        {"Zm-_", 2, "Base64 has the byte 0x2D at offset 2:" ALLOWED},
        {"\xC3\xA9==", 0, "Base64 has the byte 0xC3 at offset 0:" ALLOWED},
        {"Zh==", 1, "Base64 ends in \"h\" before the padding, whose spare "
                    "bits are not zero: it was damaged."},
        {"Zm9=", 2, "Base64 ends in \"9\" before the padding, whose spare "
                    "bits are not zero: it was damaged."}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str s = t_exact(cases[i].code, strlen(cases[i].code));
        hfsb_buf out = HFSB_INIT;
        hfsb_err err;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("was")) == HFSB_OK);
        T_CHECK(hfsb_base64_decode(s, &out, &err) == HFSB_SYNTAX);
        T_CHECK(err.code == HFSB_SYNTAX && err.pos == cases[i].pos);
        T_CHECK(err.line == 0 && err.column == 0);
        t_str(__FILE__, __LINE__, err.msg, strlen(err.msg), cases[i].msg,
              strlen(cases[i].msg));
        T_STR(out, "was");
        hfsb_buf_free(&out);
        t_drop(s);
    }
}

static void base64_is_checked_without_decoding(void) {
    size_t   size = 7;
    hfsb_err err;
    T_CHECK(hfsbi_base64_check(HFSB_LIT(""), &size, &err) == HFSB_OK &&
            size == 0);
    T_CHECK(hfsbi_base64_check(HFSB_LIT("Zg=="), &size, &err) == HFSB_OK &&
            size == 1);
    T_CHECK(hfsbi_base64_check(HFSB_LIT("Zm8="), &size, &err) == HFSB_OK &&
            size == 2);
    T_CHECK(hfsbi_base64_check(HFSB_LIT("Zm9v"), &size, &err) == HFSB_OK &&
            size == 3 && !err.msg[0]);
    T_CHECK(hfsbi_base64_check(HFSB_LIT("Zm9!"), &size, &err) ==
                HFSB_SYNTAX &&
            size == 3 && err.pos == 3);
    T_CHECK(hfsbi_base64_check(HFSB_LIT("Zm9"), &size, NULL) == HFSB_SYNTAX);
}

static void base64_is_written_with_a_nul(void) {
    char *out = (char *)malloc(9);
    T_CHECK(hfsbi_base64_write(HFSB_LIT("fooba"), out) == out + 8);
    T_CHECK(!strcmp(out, "Zm9vYmE="));
    T_CHECK(hfsbi_base64_write(hfsb_str_make(NULL, 0), out) == out);
    T_CHECK(!*out);
    free(out);
}

static void base64_respects_the_buffers_limit(void) {
    hfsb_buf out = HFSB_INIT;
    hfsb_err err;
    out.max = 5;
    T_CHECK(hfsb_base64_encode(HFSB_LIT("abcd"), &out) == HFSB_LIMIT);
    T_CHECK(out.len == 0);
    T_CHECK(hfsb_base64_encode(HFSB_LIT("abc"), &out) == HFSB_OK);
    T_STR(out, "YWJj");
    T_CHECK(hfsb_base64_decode(HFSB_LIT("YWI="), &out, &err) == HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT && err.pos == 0);
    T_STR(hfsb_cstr(err.msg), "Decoded base64: size limit exceeded.");
    T_STR(out, "YWJj");
    hfsb_buf_free(&out);
}

static void code_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    code = HFSB_INIT, plain = HFSB_INIT;
    hfsb_status st;
    hfsb_err    err;
    code.alloc = plain.alloc = alloc;
    st = hfsb_base64_encode(HFSB_LIT("some text"), &code);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && code.len == 0));
    st = hfsb_base64_decode(HFSB_LIT("c29tZQ=="), &plain, &err);
    T_CHECK(st == err.code);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && plain.len == 0));
    if (st == HFSB_NOMEM)
        T_STR(hfsb_cstr(err.msg), "Decoded base64: out of memory.");
    if (!heap->fail_at) {
        T_STR(code, "c29tZSB0ZXh0");
        T_STR(plain, "some");
    }
    hfsb_buf_free(&code);
    hfsb_buf_free(&plain);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(code_without_memory);
}

/* ---- FNV-1a ---- */

/* FIPS 180-4, and its million times "a". */
static void sha1_matches_the_nist_vectors(void) {
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "a49b2446a02c645bf419f995b67091253a04a259"},
        {NULL, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"}};
    hfsb_buf big = HFSB_INIT;
    size_t   i, k;
    t_repeat(&big, "aaaaaaaaaa", 100000);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str       s = cases[i].text ? hfsb_cstr(cases[i].text)
                                         : hfsb_buf_str(&big);
        unsigned char *digest = (unsigned char *)malloc(HFSBI_SHA1_SIZE);
        char          *hex = (char *)malloc(HFSBI_SHA1_HEX), byte[3];
        s = t_exact(s.ptr, s.len);
        for (k = 0; k <= s.len && k < 70; k++) { /* cut anywhere */
            hfsb_str a = hfsb_str_slice(s, 0, k);
            hfsb_str b = hfsb_str_slice(s, k, s.len);
            size_t   j;
            if (!cases[i].text && k > 2) break;
            hfsbi_sha1_hex(a, b, hex);
            T_CHECK(!strcmp(hex, cases[i].hex));
            hfsbi_sha1_digest(a, b, digest);
            for (j = 0; j < HFSBI_SHA1_SIZE; j++) {
                (void)snprintf(byte, sizeof byte, "%02x",
                               (unsigned)digest[j]);
                T_CHECK(!memcmp(byte, cases[i].hex + 2 * j, 2));
            }
        }
        t_drop(s);
        free(digest);
        free(hex);
    }
    hfsb_buf_free(&big);
}

static void fnv_matches_the_published_values(void) {
    T_CHECK(hfsb_fnv(HFSB_LIT("")) == 0xcbf29ce484222325ull);
    T_CHECK(hfsb_fnv(HFSB_LIT("a")) == 0xaf63dc4c8601ec8cull);
    T_CHECK(hfsb_fnv(HFSB_LIT("foobar")) == 0x85944171f73967e8ull);
    T_CHECK(hfsb_fnv(HFSB_LIT("\xFF\x00\x01")) == 0xf9210a1be4164051ull);
}

static void secrets_are_compared_as_a_whole(void) {
    const hfsb_str none = HFSB_INIT;
    T_CHECK(hfsb_secret_equal(HFSB_LIT("secret"), HFSB_LIT("secret")));
    T_CHECK(!hfsb_secret_equal(HFSB_LIT("secret"), HFSB_LIT("Secret")));
    T_CHECK(!hfsb_secret_equal(HFSB_LIT("secret"), HFSB_LIT("secreT")));
    T_CHECK(!hfsb_secret_equal(HFSB_LIT("abab"), HFSB_LIT("ab")));
    T_CHECK(!hfsb_secret_equal(HFSB_LIT("ab"), HFSB_LIT("abab")));
    T_CHECK(!hfsb_secret_equal(HFSB_LIT("ab"), none));
    T_CHECK(!hfsb_secret_equal(none, HFSB_LIT("ab")));
    T_CHECK(hfsb_secret_equal(none, HFSB_LIT("")));
}

static void secrets_are_overwritten(void) {
    char *text = (char *)malloc(9);
    if (!text) abort();
    memcpy(text, "a secret", 9);
    hfsb_secret_wipe(text, 6);
    T_CHECK(memcmp(text, "\0\0\0\0\0\0et", 9) == 0);
    hfsb_secret_wipe(text + 9, 0);
    hfsb_secret_wipe(NULL, 0);
    free(text);
}

int main(void) {
    T_RUN(secrets_are_overwritten);
    T_RUN(secrets_are_compared_as_a_whole);
    T_RUN(sha256_matches_the_nist_vectors);
    T_RUN(sha256_matches_with_and_without_cpu_instructions);
    T_RUN(sha256_handles_every_short_length);
    T_RUN(sha256_ignores_how_the_input_is_cut);
    T_RUN(base64_matches_the_vectors_of_rfc_4648);
    T_RUN(base64_round_trips_every_byte);
    T_RUN(base64_refuses_inexact_input);
    T_RUN(base64_is_checked_without_decoding);
    T_RUN(base64_is_written_with_a_nul);
    T_RUN(base64_respects_the_buffers_limit);
    T_RUN(each_allocation_fails_cleanly);
    T_RUN(sha1_matches_the_nist_vectors);
    T_RUN(fnv_matches_the_published_values);
    return T_END();
}
