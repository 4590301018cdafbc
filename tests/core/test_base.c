/* test_base.c - views, search, buffers, errors and memory. */
#include "../support/t.h"

/* ---- views ---- */

static void views_are_cut_and_compared(void) {
    hfsb_str s = hfsb_cstr("hello"), none = hfsb_cstr(NULL);
    hfsb_str null = hfsb_str_make(NULL, 0);
    T_STR(s, "hello");
    T_CHECK(none.ptr && none.len == 0);
    T_STR(HFSB_LIT("a\0b"), "a\0b");
    T_STR(hfsb_str_slice(s, 1, 3), "el");
    T_STR(hfsb_str_slice(s, 3, 99), "lo");
    T_STR(hfsb_str_slice(s, 4, 2), "");
    T_STR(hfsb_str_slice(s, HFSB_NPOS, HFSB_NPOS), "");
    T_CHECK(hfsb_str_slice(s, 9, 9).ptr == s.ptr + 5);
    T_CHECK(hfsb_str_slice(null, 1, 2).len == 0);
    T_CHECK(hfsb_str_equal(null, hfsb_str_slice(s, 2, 2)));
    T_CHECK(hfsb_str_equal(s, HFSB_LIT("hello")));
    T_CHECK(!hfsb_str_equal(s, HFSB_LIT("hellO")));
    T_CHECK(!hfsb_str_equal(s, HFSB_LIT("hello ")));
    T_CHECK(!hfsb_str_equal(HFSB_LIT("a\0b"), HFSB_LIT("a\0c")));
    T_CHECK(hfsb_str_starts(s, HFSB_LIT("he")) && hfsb_str_starts(s, s));
    T_CHECK(hfsb_str_starts(s, null) && hfsb_str_starts(null, null));
    T_CHECK(!hfsb_str_starts(s, HFSB_LIT("el")));
    T_CHECK(!hfsb_str_starts(s, HFSB_LIT("hello!")));
    T_CHECK(hfsb_str_ends(s, HFSB_LIT("lo")) && hfsb_str_ends(s, s));
    T_CHECK(hfsb_str_ends(s, null) && !hfsb_str_ends(s, HFSB_LIT("l")));
    T_CHECK(!hfsb_str_ends(s, HFSB_LIT("!hello")));
}

static void bytes_are_found_and_counted(void) {
    unsigned long long seed = 1;
    hfsb_str           null = hfsb_str_make(NULL, 0);
    char               text[9000];
    size_t             len, i;
    T_CHECK(hfsb_str_find_byte(null, 'a') == HFSB_NPOS);
    T_CHECK(hfsb_str_count_byte(null, 'a') == 0);
    for (i = 0; i < sizeof text; i++)
        text[i] = (char)(t_random(&seed) % 5 == 0 ? 0xFF : 'a');
    for (len = 0; len < sizeof text; len += len < 600 ? 1 : 997) {
        hfsb_str s = t_exact(text, len);
        size_t   first = HFSB_NPOS, count = 0;
        for (i = len; i-- > 0;)
            if ((unsigned char)text[i] == 0xFF) {
                first = i;
                count++;
            }
        T_CHECK(hfsb_str_find_byte(s, (char)0xFF) == first);
        T_CHECK(hfsb_str_count_byte(s, (char)0xFF) == count);
        T_CHECK(hfsb_str_count_byte(s, 'a') == len - count);
        T_CHECK(hfsb_str_count_byte(s, 'b') == 0);
        T_CHECK(hfsb_str_find_byte(s, 'b') == HFSB_NPOS);
        t_drop(s);
    }
    memset(text, 'a', sizeof text); /* a lane counts to 255 */
    T_CHECK(hfsb_str_count_byte(hfsb_str_make(text, sizeof text), 'a') ==
            sizeof text);
}

/* ---- find, compared with a naive search ---- */

static size_t naive_find(hfsb_str s, hfsb_str needle) {
    size_t i;
    for (i = 0; i + needle.len <= s.len; i++)
        if (!needle.len || !memcmp(s.ptr + i, needle.ptr, needle.len))
            return i;
    return HFSB_NPOS;
}

static void check_find(hfsb_str text, hfsb_str word) {
    hfsb_str s = t_exact(text.ptr, text.len);
    hfsb_str needle = t_exact(word.ptr, word.len);
    T_CHECK(hfsb_str_find(s, needle) == naive_find(s, needle));
    t_drop(s);
    t_drop(needle);
}

static void find_handles_the_small_cases(void) {
    hfsb_str null = hfsb_str_make(NULL, 0);
    T_CHECK(hfsb_str_find(null, null) == 0);
    T_CHECK(hfsb_str_find(HFSB_LIT("abc"), null) == 0);
    T_CHECK(hfsb_str_find(null, HFSB_LIT("a")) == HFSB_NPOS);
    T_CHECK(hfsb_str_find(HFSB_LIT("abc"), HFSB_LIT("abcd")) == HFSB_NPOS);
    T_CHECK(hfsb_str_find(HFSB_LIT("abc"), HFSB_LIT("abc")) == 0);
    T_CHECK(hfsb_str_find(HFSB_LIT("abc"), HFSB_LIT("c")) == 2);
    T_CHECK(hfsb_str_find(HFSB_LIT("a\0b\0c"), HFSB_LIT("\0c")) == 3);
    T_CHECK(hfsb_str_find(HFSB_LIT("\xFF\xFE\xFF"), HFSB_LIT("\xFE\xFF")) ==
            1);
}

/* Every word over {a, b} of up to 6 in every text of up to 10. */
static void find_agrees_on_all_short_texts(void) {
    char   text[10], word[6];
    size_t n, m, i, bits, wbits, wrong = 0;
    for (n = 0; n <= 10; n++)
        for (bits = 0; bits < (size_t)1 << n; bits++) {
            for (i = 0; i < n; i++) text[i] = bits >> i & 1 ? 'b' : 'a';
            for (m = 1; m <= 6 && m <= n; m++)
                for (wbits = 0; wbits < (size_t)1 << m; wbits++) {
                    hfsb_str s = hfsb_str_make(text, n), w;
                    for (i = 0; i < m; i++)
                        word[i] = wbits >> i & 1 ? 'b' : 'a';
                    w = hfsb_str_make(word, m);
                    if (hfsb_str_find(s, w) != naive_find(s, w)) wrong++;
                }
        }
    T_CHECK(wrong == 0);
}

/* A needle that is only at `at`, for every place near the ends and for
   lengths around the sixteen that are compared at a time. */
static void find_works_at_every_offset(void) {
    static const char word[] = "needle in the haystack, a longer one indeed";
    char              text[140];
    size_t            len, n, at;
    for (n = 1; n < sizeof word; n += n < 20 ? 1 : 7)
        for (len = n; len < sizeof text; len += 5)
            for (at = 0; at + n <= len; at++) {
                hfsb_str s;
                memset(text, 'n', sizeof text);
                memcpy(text + at, word, n);
                s = t_exact(text, len);
                T_CHECK(hfsb_str_find(s, hfsb_str_make(word, n)) ==
                        naive_find(s, hfsb_str_make(word, n)));
                t_drop(s);
            }
}

static void find_agrees_on_random_texts(void) {
    unsigned long long seed = 2;
    char               text[400], word[40];
    size_t             i;
    int                round;
    for (round = 0; round < 20000; round++) {
        size_t letters = 1 + t_random(&seed) % 4;
        size_t len = t_random(&seed) % sizeof text;
        size_t n = 1 + t_random(&seed) % sizeof word;
        size_t from = len > n ? t_random(&seed) % (len - n) : 0;
        for (i = 0; i < len; i++)
            text[i] = (char)('a' + t_random(&seed) % letters);
        for (i = 0; i < n; i++)
            word[i] = (char)('a' + t_random(&seed) % letters);
        if (round % 2 && n <= len) { /* one that is there, or nearly */
            memcpy(word, text + from, n);
            if (round % 4 == 1) word[t_random(&seed) % n] ^= 1;
        }
        check_find(hfsb_str_make(text, len), hfsb_str_make(word, n));
    }
}

/* Texts that make the fast search give up: the budget is spent after some
   16,000 compared bytes, and the two-way algorithm takes over. */
static void find_agrees_on_adversarial_texts(void) {
    const size_t size = 30000;
    char        *text = (char *)malloc(size), *word = (char *)malloc(size);
    size_t       period, n, i, k;
    if (!text || !word) abort();
    for (period = 1; period <= 40; period += period < 6 ? 1 : 11)
        for (n = 30; n <= 5000; n = n * 3 + period) {
            for (i = 0; i < size; i++)
                text[i] = i % period == period - 1 ? 'b' : 'a';
            memcpy(word, text, n);
            for (k = 0; k < 6; k++) {
                size_t   at = k == 0 ? 0 : k == 1 ? n / 2 : n - 1;
                char     was = word[at], tail = text[size - 1];
                hfsb_str s = hfsb_str_make(text, size - n % 7);
                hfsb_str w = hfsb_str_make(word, n);
                word[at] = k % 2 ? 'c' : 'b';
                if (k > 2) /* only at the end */
                    memcpy(text + s.len - n, word, n);
                T_CHECK(hfsb_str_find(s, w) == naive_find(s, w));
                s = hfsb_str_slice(s, 0, s.len - 1);
                T_CHECK(hfsb_str_find(s, w) == naive_find(s, w));
                word[at] = was;
                for (i = 0; i < size; i++)
                    text[i] = i % period == period - 1 ? 'b' : 'a';
                text[size - 1] = tail;
            }
        }
    free(text);
    free(word);
}

/* A text whose start spends the budget (every second place looks right for a
   needle that begins with "ab"), so that two-way searches the rest, made of
   pieces of the needle: near misses on both sides of its cut. */
static void two_way_search_finds_the_needle(void) {
    unsigned long long seed = 4;
    char               text[9000], word[80];
    int                round, rounds = t_quick() ? 400 : 4000;
    for (round = 0; round < rounds; round++) {
        size_t   period = 2 + t_random(&seed) % 30, n, i, from, part;
        hfsb_str s = hfsb_str_make(text, sizeof text), w;
        n = 17 + t_random(&seed) % (sizeof word - 17);
        for (i = 0; i < n; i++)
            word[i] = i < 2          ? "ab"[i]
                      : i < period   ? (char)('a' + t_random(&seed) % 2)
                                     : word[i - period];
        if (round % 3 == 0) word[2 + t_random(&seed) % (n - 2)] ^= 3;
        for (i = 0; i < 6000; i++) text[i] = "ab"[i % 2];
        while (i < sizeof text) {
            from = t_random(&seed) % n;
            part = 1 + t_random(&seed) % (n - from);
            if (part > sizeof text - i) part = sizeof text - i;
            memcpy(text + i, word + from, part);
            i += part;
        }
        if (round % 4 == 1) memcpy(text + sizeof text - n, word, n);
        w = hfsb_str_make(word, n);
        T_CHECK(hfsb_str_find(s, w) == naive_find(s, w));
    }
}

/* a^n b in a^m: a quadratic search would take minutes. */
static void find_takes_linear_time(void) {
    const size_t size = 8000000, n = 2000000;
    char        *text = (char *)malloc(size), *word = (char *)malloc(n);
    hfsb_str     s, w;
    if (!text || !word) abort();
    memset(text, 'a', size);
    memset(word, 'a', n);
    s = hfsb_str_make(text, size);
    w = hfsb_str_make(word, n);
    word[n - 1] = 'b';
    T_CHECK(hfsb_str_find(s, w) == HFSB_NPOS);
    text[size - 1] = 'b';
    T_CHECK(hfsb_str_find(s, w) == size - n);
    word[n - 1] = 'a';
    word[0] = 'b';
    T_CHECK(hfsb_str_find(s, w) == HFSB_NPOS);
    word[0] = 'a';
    word[n / 2] = 'b';
    T_CHECK(hfsb_str_find(s, w) == HFSB_NPOS);
    free(text);
    free(word);
}

/* ---- buffers ---- */

static void buffers_grow_and_end_in_nul(void) {
    hfsb_buf b = HFSB_INIT;
    size_t   i;
    T_CHECK(hfsb_buf_str(&b).ptr && hfsb_buf_str(&b).len == 0);
    T_CHECK(hfsb_buf_append(&b, hfsb_str_make(NULL, 0)) == HFSB_OK);
    T_CHECK(b.ptr && b.len == 0 && b.ptr[0] == '\0');
    for (i = 0; i < 1000; i++) {
        T_CHECK(hfsb_buf_append_byte(&b, (char)('a' + i % 26)) == HFSB_OK);
        T_CHECK(b.len == i + 1 && b.ptr[b.len] == '\0' && b.cap > b.len);
    }
    for (i = 0; i < 1000; i++) T_CHECK(b.ptr[i] == (char)('a' + i % 26));
    hfsb_buf_truncate(&b, 2000);
    T_CHECK(b.len == 1000);
    hfsb_buf_truncate(&b, 3);
    T_STR(b, "abc");
    T_CHECK(b.ptr[3] == '\0');
    hfsb_buf_free(&b);
    T_CHECK(!b.ptr && !b.len && !b.cap);
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("again\0x")) == HFSB_OK);
    T_STR(b, "again\0x");
    hfsb_buf_free(&b);
    hfsb_buf_free(&b);
}

static void buffer_appends_its_own_bytes(void) {
    t_heap   heap = HFSB_INIT; /* always moves the block */
    hfsb_buf b = HFSB_INIT;
    size_t   i, len;
    b.alloc.fn = t_heap_fn;
    b.alloc.user = &heap;
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("abc")) == HFSB_OK);
    for (len = 3; len < 5000; len *= 2) {
        T_CHECK(hfsb_buf_append(&b, hfsb_buf_str(&b)) == HFSB_OK);
        T_CHECK(b.len == 2 * len);
    }
    for (i = 0; i < b.len; i++) T_CHECK(b.ptr[i] == "abc"[i % 3]);
    T_CHECK(hfsb_buf_append(&b, hfsb_str_slice(hfsb_buf_str(&b), 1, 2)) ==
            HFSB_OK);
    T_CHECK(b.ptr[b.len - 1] == 'b');
    hfsb_buf_free(&b);
    T_CHECK(heap.live == 0 && !heap.wrong);
}

static void buffers_respect_their_limit(void) {
    hfsb_buf b = HFSB_INIT;
    char    *ptr;
    size_t   cap;
    b.max = 5;
    T_CHECK(hfsb_buf_reserve(&b, 6) == HFSB_LIMIT && !b.ptr);
    T_CHECK(hfsb_buf_reserve(&b, 5) == HFSB_OK && b.len == 0);
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("12345")) == HFSB_OK);
    ptr = b.ptr;
    cap = b.cap;
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("6")) == HFSB_LIMIT);
    T_CHECK(hfsb_buf_append_byte(&b, '6') == HFSB_LIMIT);
    T_CHECK(hfsb_buf_printf(&b, "%d", 6) == HFSB_LIMIT);
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("")) == HFSB_LIMIT);
    hfsb_buf_truncate(&b, b.len); /* forget the failure */
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("")) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&b, "%s", "") == HFSB_OK);
    T_STR(b, "12345");
    T_CHECK(b.ptr == ptr && b.cap == cap && b.ptr[5] == '\0');
    hfsb_buf_free(&b);
    T_CHECK(b.max == 5);
    b.max = 0;
    T_CHECK(hfsb_buf_reserve(&b, HFSB_NPOS) == HFSB_LIMIT);
    T_CHECK(hfsb_buf_append_byte(&b, 'x') == HFSB_OK);
    T_CHECK(hfsb_buf_reserve(&b, HFSB_NPOS - 1) == HFSB_LIMIT);
    T_CHECK(hfsb_buf_reserve(&b, HFSB_NPOS) == HFSB_LIMIT);
    T_STR(b, "x");
    hfsb_buf_free(&b);
}

static void printf_appends(void) {
    hfsb_buf b = HFSB_INIT;
    char     big[500];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    T_CHECK(hfsb_buf_printf(&b, "%s=%d;", "a", -7) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&b, "%zu %.*s", (size_t)12, 2, "abc") == HFSB_OK);
    T_STR(b, "a=-7;12 ab");
    hfsb_buf_truncate(&b, 0);
    T_CHECK(hfsb_buf_printf(&b, "%s|%s", big, big) == HFSB_OK);
    T_CHECK(b.len == 999 && b.ptr[499] == '|' && b.ptr[999] == '\0');
    hfsb_buf_free(&b);
}

static void a_series_of_appends_fails_as_one(void) {
    hfsb_buf b = HFSB_INIT;
    size_t   mark;
    T_CHECK(hfsb_buf_append(&b, HFSB_LIT("was:")) == HFSB_OK);
    mark = b.len;
    hfsb_buf_append(&b, HFSB_LIT("ab"));
    hfsb_buf_append_byte(&b, 'c');
    hfsb_buf_printf(&b, "%d", 42);
    T_CHECK(hfsb_buf_finish(&b, mark) == HFSB_OK);
    T_STR(b, "was:abc42");
    b.max = 12;
    mark = b.len;
    hfsb_buf_append(&b, HFSB_LIT("ab"));
    hfsb_buf_printf(&b, "%s", "cde");
    T_CHECK(b.status == HFSB_LIMIT);
    hfsb_buf_append_byte(&b, 'f'); /* would fit, but the series has failed */
    hfsb_buf_append(&b, HFSB_LIT("g"));
    hfsb_buf_printf(&b, "h");
    T_STR(b, "was:abc42ab");
    T_CHECK(hfsb_buf_finish(&b, mark) == HFSB_LIMIT);
    T_STR(b, "was:abc42");
    T_CHECK(b.ptr[b.len] == '\0');
    hfsb_buf_append_byte(&b, '1'); /* the failure is still remembered */
    T_CHECK(b.status == HFSB_LIMIT && b.len == mark);
    hfsb_buf_truncate(&b, b.len);
    T_CHECK(b.status == HFSB_OK);
    mark = b.len;
    hfsb_buf_append(&b, HFSB_LIT("abcd"));
    T_CHECK(b.status == HFSB_LIMIT);
    mark = b.len;
    hfsb_buf_append_byte(&b, '1');
    hfsb_buf_append_byte(&b, '2');
    hfsb_buf_append_byte(&b, '3');
    hfsb_buf_append_byte(&b, '4');
    T_CHECK(hfsb_buf_finish(&b, mark) == HFSB_LIMIT);
    T_STR(b, "was:abc42");
    hfsb_buf_free(&b);
}

/* ---- errors ---- */

static void statuses_have_texts(void) {
    int i;
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_OK)), "ok");
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_NOMEM)), "out of memory");
    for (i = 0; i < (int)HFSB_STATUS_COUNT; i++)
        T_CHECK(hfsb_status_text((hfsb_status)i)[0] != '\0');
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_STATUS_COUNT)), "unknown status");
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_OUTSIDE)),
          "path is outside the root");
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_EXISTS)), "already exists");
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_NOT_REGULAR)),
          "not a regular file");
    T_STR(hfsb_cstr(hfsb_status_text(HFSB_IS_DIR)), "is a directory");
    T_CHECK(HFSB_REMOTE == 21 && HFSB_IS_DIR == 25); /* values are public */
}

static void errors_are_filled_and_cleared(void) {
    hfsb_err err;
    memset(&err, 'x', sizeof err);
    T_CHECK(hfsbi_fail(&err, HFSB_SYNTAX, 7, "at %d", 7) == HFSB_SYNTAX);
    T_CHECK(err.code == HFSB_SYNTAX && err.pos == 7);
    T_CHECK(err.line == 0 && err.column == 0);
    T_STR(hfsb_cstr(err.msg), "at 7");
    hfsbi_err_add(&err, ", %s", "more");
    T_STR(hfsb_cstr(err.msg), "at 7, more");
    T_CHECK(hfsbi_fail_status(&err, HFSB_NOMEM, "Reading") == HFSB_NOMEM);
    T_CHECK(err.code == HFSB_NOMEM && err.pos == 0);
    T_STR(hfsb_cstr(err.msg), "Reading: out of memory.");
    T_CHECK(hfsbi_ok(&err) == HFSB_OK && err.code == HFSB_OK);
    T_CHECK(err.msg[0] == '\0' && err.pos == 0);
    T_CHECK(hfsbi_fail(NULL, HFSB_ARG, 1, "x") == HFSB_ARG);
    T_CHECK(hfsbi_fail_status(NULL, HFSB_IO, "x") == HFSB_IO);
    T_CHECK(hfsbi_ok(NULL) == HFSB_OK);
    hfsbi_err_add(NULL, "x");
}

/* What a terminal acts on, in bytes and in characters, becomes a blank. */
static void quotes_have_no_control_characters(void) {
    hfsb_err err;
    (void)hfsbi_fail(&err, HFSB_IO, 0, "<");
    hfsbi_err_quote(&err, HFSB_LIT("a\x1b[m\x7f" "b\xc2\x80\xc2\x9b"
                                   "c\xc2\x9f\xc2\xa0\xc3\xa9\n>"),
                    100);
    T_STR(hfsb_cstr(err.msg), "<a [m b  c \xc2\xa0\xc3\xa9 >");
}

static void errors_name_the_key_they_are_about(void) {
    static const char long_key[] =
        "a_key_that_has_forty_six_bytes_before_its_e_is\xC3\xA9_and_more";
    hfsb_err err;
    memset(&err, 'x', sizeof err);
    T_CHECK(hfsbi_fail_key(&err, HFSB_ARG, "path", "bad %s", "path") ==
            HFSB_ARG);
    T_CHECK(err.code == HFSB_ARG && !err.pos && !err.line && !err.column);
    T_STR(hfsb_cstr(err.key), "path");
    T_STR(hfsb_cstr(err.msg), "bad path");
    hfsbi_err_add(&err, "!");
    T_STR(hfsb_cstr(err.key), "path");
    T_CHECK(hfsbi_fail(&err, HFSB_IO, 0, "no key") == HFSB_IO);
    T_STR(hfsb_cstr(err.key), "");
    (void)hfsbi_fail_key(&err, HFSB_ARG, "path", "x");
    T_CHECK(hfsbi_ok(&err) == HFSB_OK && !err.key[0]);
    /* a key that does not fit is cut before a character, not inside */
    (void)hfsbi_fail_key(&err, HFSB_ARG, long_key, "x");
    T_CHECK(strlen(err.key) == 46 && !memcmp(err.key, long_key, 46));
    (void)hfsbi_fail_key(&err, HFSB_ARG, long_key + 1, "x");
    T_CHECK(strlen(err.key) == 47 && !memcmp(err.key, long_key + 1, 47));
    T_CHECK(hfsbi_fail_key(NULL, HFSB_ARG, "k", "x") == HFSB_ARG);
}

static void hex_digits_have_values(void) {
    int c;
    for (c = 0; c < 256; c++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *at = c ? strchr(digits, c) : NULL;
        int         value = at ? (int)(at - digits) : -1;
        if (value > 15) value -= 6;
        T_CHECK(hfsbi_hex_digit((char)c) == value);
    }
}

/* A message of lead ASCII bytes, then characters up to any length: the
   excess is cut between characters, and at most one more is lost. */
static void long_messages_are_cut_between_characters(void) {
    static const char *const part[] = {"a", "\xC3\xA9", "\xE2\x82\xAC",
                                       "\xF0\x9F\x98\x80"};
    size_t kind, lead;
    for (kind = 0; kind < 4; kind++)
        for (lead = 0; lead < 8; lead++) {
            hfsb_buf text = HFSB_INIT;
            hfsb_err err;
            size_t   n;
            T_CHECK(hfsb_buf_printf(&text, "%.*s", (int)lead, "xxxxxxxx") ==
                    HFSB_OK);
            while (text.len < 2 * HFSB_ERR_SIZE) {
                T_CHECK(hfsb_buf_append(&text, hfsb_cstr(part[kind])) ==
                        HFSB_OK);
                (void)hfsbi_fail(&err, HFSB_ARG, 0, "%s", text.ptr);
                n = strlen(err.msg);
                if (text.len < HFSB_ERR_SIZE) T_CHECK(n == text.len);
                else T_CHECK(n + 6 > HFSB_ERR_SIZE && n < HFSB_ERR_SIZE);
                T_CHECK(!memcmp(err.msg, text.ptr, n));
                T_CHECK(hfsb_utf8_validate(hfsb_cstr(err.msg)) == n);
            }
            (void)hfsbi_fail(&err, HFSB_ARG, 0, "%.*s", 1500, text.ptr);
            err.msg[hfsb_utf8_validate(hfsb_cstr(err.msg))] = '\0';
            hfsbi_err_add(&err, "%s", text.ptr + lead);
            n = strlen(err.msg);
            T_CHECK(n + 6 > HFSB_ERR_SIZE && n < HFSB_ERR_SIZE);
            T_CHECK(hfsb_utf8_validate(hfsb_cstr(err.msg)) == n);
            hfsb_buf_free(&text);
        }
}

/* ---- memory ---- */

static void sums_and_products_do_not_wrap(void) {
    size_t out = 1;
    T_CHECK(hfsbi_add(2, 3, &out) && out == 5);
    T_CHECK(hfsbi_add(HFSB_NPOS, 0, &out) && out == HFSB_NPOS);
    T_CHECK(!hfsbi_add(HFSB_NPOS, 1, &out) && out == HFSB_NPOS);
    T_CHECK(hfsbi_mul(0, HFSB_NPOS, &out) && out == 0);
    T_CHECK(hfsbi_mul(HFSB_NPOS, 1, &out) && out == HFSB_NPOS);
    T_CHECK(!hfsbi_mul(HFSB_NPOS / 2 + 1, 2, &out) && out == HFSB_NPOS);
    T_CHECK(hfsbi_mul(HFSB_NPOS / 2, 2, &out) && out == HFSB_NPOS - 1);
}

static void arrays_grow_to_any_size(void) {
    hfsb_alloc none = HFSB_INIT;
    size_t     cap = 0, i;
    int       *items = NULL;
    void      *p = hfsbi_array(&none, 0, 8);
    T_CHECK(p != NULL);
    hfsbi_array_free(&none, p, 0, 8);
    hfsbi_array_free(&none, NULL, 5, 8);
    T_CHECK(hfsbi_array(&none, HFSB_NPOS / 4, 8) == NULL);
    for (i = 0; i < 1000; i++) {
        items = (int *)hfsbi_array_grow(&none, items, &cap, i + 1,
                                        sizeof *items);
        if (!items) abort();
        T_CHECK(cap > i);
        items[i] = (int)i;
    }
    for (i = 0; i < 1000; i++) T_CHECK(items[i] == (int)i);
    T_CHECK(hfsbi_array_grow(&none, items, &cap, HFSB_NPOS, 8) == NULL);
    T_CHECK(cap == 1024 && items[999] == 999);
    hfsbi_array_free(&none, items, cap, sizeof *items);
}

static void everything_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    b = HFSB_INIT;
    size_t      mark;
    hfsb_status st;
    size_t      i, cap = 0;
    void       *array, *grown;
    b.alloc = alloc;
    for (i = 0; i < 40; i++) {
        size_t was = b.len;
        st = hfsb_buf_printf(&b, "%040d", 7);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
        T_CHECK(b.len == was + (st == HFSB_OK ? 40 : 0));
    }
    mark = b.len;
    for (i = 0; i < 100; i++) hfsb_buf_append(&b, HFSB_LIT("some more text"));
    st = hfsb_buf_finish(&b, mark);
    T_CHECK(b.len == mark + (st == HFSB_OK ? 1400 : 0));
    array = hfsbi_array_grow(&alloc, NULL, &cap, 3, 8);
    grown = array ? hfsbi_array_grow(&alloc, array, &cap, 100, 8) : NULL;
    T_CHECK(array || (cap == 0 && heap->fail_at));
    T_CHECK(!array || grown || (cap == 16 && heap->fail_at));
    hfsbi_array_free(&alloc, grown ? grown : array, cap, 8);
    hfsb_buf_free(&b);
}

typedef struct item {
    unsigned char key, rest[69]; /* more than a block of the swaps */
    unsigned      number;
} item;

static int item_order(const void *a, const void *b) {
    const item *x = (const item *)a, *y = (const item *)b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void sort_moves_whole_items(void) {
    static item list[300];
    unsigned    seed = 1, sum;
    size_t      n, i;
    for (n = 0; n <= 300; n += n < 20 ? 1 : 40) {
        for (i = 0, sum = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            list[i].key = (unsigned char)(seed >> 16 & 15);
            memset(list[i].rest, list[i].key, sizeof list[i].rest);
            list[i].number = (unsigned)i;
            sum += (unsigned)i;
        }
        hfsbi_sort(list, n, sizeof *list, item_order);
        for (i = 0; i < n; i++) {
            T_CHECK(list[i].rest[0] == list[i].key &&
                    list[i].rest[68] == list[i].key);
            T_CHECK(i == 0 || item_order(&list[i - 1], &list[i]) < 0);
            sum -= list[i].number;
        }
        T_CHECK(sum == 0);
    }
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(everything_without_memory);
}

static void lists_are_split_at_the_separator(void) {
    hfsb_str rest = HFSB_LIT("a,,bc"), item;
    T_CHECK(hfsbi_list_next(&rest, ',', &item));
    T_STR(item, "a");
    T_CHECK(hfsbi_list_next(&rest, ',', &item));
    T_STR(item, "");
    T_CHECK(hfsbi_list_next(&rest, ',', &item));
    T_STR(item, "bc");
    T_CHECK(!hfsbi_list_next(&rest, ',', &item));
    T_CHECK(hfsbi_list_has(HFSB_LIT("read write"), ' ', HFSB_LIT("write")));
    T_CHECK(!hfsbi_list_has(HFSB_LIT("read write"), ' ', HFSB_LIT("writ")));
    T_CHECK(!hfsbi_list_has(hfsb_cstr(NULL), ' ', HFSB_LIT("")));
}

static void case_blind_compare_knows_ascii_only(void) {
    T_CHECK(hfsbi_str_equal_nocase(HFSB_LIT("Bearer"), HFSB_LIT("bEARER")));
    T_CHECK(!hfsbi_str_equal_nocase(HFSB_LIT("Bearer"), HFSB_LIT("Beare")));
    T_CHECK(!hfsbi_str_equal_nocase(HFSB_LIT("\xC3\x84"),
                                    HFSB_LIT("\xC3\xA4")));
}

static void decimal_digits_are_read_up_to_a_limit(void) {
    unsigned long long n = 7;
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("120s"), 1200, &n) == 3 && n == 120);
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("1200"), 1200, &n) == 4 && n == 1200);
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("1201"), 1200, &n) == 0 && n == 1200);
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("-1"), 1200, &n) == 0 && n == 1200);
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("18446744073709551615"),
                               18446744073709551615ull, &n) == 20 &&
            n == 18446744073709551615ull);
    T_CHECK(hfsbi_read_decimal(HFSB_LIT("18446744073709551616"),
                               18446744073709551615ull, &n) == 0);
}

static void hosts_fill_errors_of_their_own(void) {
    hfsb_err err;
    memset(&err, 'x', sizeof err);
    T_CHECK(hfsb_err_set(&err, HFSB_IO, "disk %d: %s", 3, "gone") == HFSB_IO);
    T_CHECK(err.code == HFSB_IO && !strcmp(err.msg, "disk 3: gone"));
    T_CHECK(!err.key[0] && !err.pos && !err.line && !err.column);
    T_CHECK(hfsb_err_set(NULL, HFSB_BUSY, "%s", "nobody asks") == HFSB_BUSY);
    T_CHECK(strcmp(hfsb_version(), HFSB_VERSION) == 0);
}

static void buffers_and_views_can_be_printed(void) {
    hfsb_buf b = HFSB_INIT;
    hfsb_str none = HFSB_INIT, name = hfsb_str_make("abcdef", 3);
    char     text[32];
    T_CHECK(hfsb_buf_cstr(&b)[0] == '\0');
    hfsb_buf_append(&b, HFSB_LIT("some"));
    T_CHECK(strcmp(hfsb_buf_cstr(&b), "some") == 0);
    snprintf(text, sizeof text, "<" HFSB_F "|" HFSB_F ">", HFSB_V(name),
             HFSB_V(none));
    T_CHECK(strcmp(text, "<abc|>") == 0);
    hfsb_buf_free(&b);
}

int main(void) {
    T_RUN(hosts_fill_errors_of_their_own);
    T_RUN(buffers_and_views_can_be_printed);
    T_RUN(views_are_cut_and_compared);
    T_RUN(bytes_are_found_and_counted);
    T_RUN(find_handles_the_small_cases);
    T_RUN(find_agrees_on_all_short_texts);
    T_RUN(find_works_at_every_offset);
    T_RUN(find_agrees_on_random_texts);
    T_RUN(find_agrees_on_adversarial_texts);
    T_RUN(two_way_search_finds_the_needle);
    T_RUN(find_takes_linear_time);
    T_RUN(buffers_grow_and_end_in_nul);
    T_RUN(buffer_appends_its_own_bytes);
    T_RUN(buffers_respect_their_limit);
    T_RUN(printf_appends);
    T_RUN(a_series_of_appends_fails_as_one);
    T_RUN(lists_are_split_at_the_separator);
    T_RUN(case_blind_compare_knows_ascii_only);
    T_RUN(decimal_digits_are_read_up_to_a_limit);
    T_RUN(statuses_have_texts);
    T_RUN(errors_are_filled_and_cleared);
    T_RUN(quotes_have_no_control_characters);
    T_RUN(errors_name_the_key_they_are_about);
    T_RUN(hex_digits_have_values);
    T_RUN(long_messages_are_cut_between_characters);
    T_RUN(sums_and_products_do_not_wrap);
    T_RUN(arrays_grow_to_any_size);
    T_RUN(sort_moves_whole_items);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
