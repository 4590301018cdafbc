/* fuzz_text.c - libFuzzer target for utf8, text and path.

   The input's first bytes choose how its rest is used:
     0     the limit of the window
     1     the ceiling of the output in the run that fails and is made again
     2..5  sizes of the pieces, in turn
   Oracle: the result does not depend on the pieces, nor on a write that failed
   in between; it is UTF-8, without ESC, CR and BS, and cleaning it again
   changes nothing; cleaning what was repaired before is the same; the window
   shows what truncate gives. */
#define HFSBI_LINE_MAX 64u /* so that short inputs have long lines */
#include "../support/t.h"
#include "must.h"

typedef struct cuts {
    const unsigned char *sizes; /* four */
    size_t               turn;
} cuts;

/* The next piece of s at *at, in a block of its own. */
static hfsb_str next_piece(cuts *c, hfsb_str s, size_t *at) {
    size_t n = c->sizes ? c->sizes[c->turn++ % 4] : s.len, from = *at;
    if (n == 0 && c->turn % 4 == 0) n = 1; /* four zeroes: byte by byte */
    if (n > s.len - from) n = s.len - from;
    *at = from + n;
    return t_exact(s.ptr + from, n);
}

static void clean(hfsb_str s, const unsigned char *sizes, size_t ceiling,
                  hfsb_buf *out) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    cuts              c;
    size_t            at = 0;
    c.sizes = sizes;
    c.turn = 0;
    MUST(f);
    while (at < s.len) {
        hfsb_str piece = next_piece(&c, s, &at);
        size_t   was = out->len;
        out->max = ceiling;
        if (hfsb_text_filter_write(f, piece, out) != HFSB_OK) {
            MUST(ceiling && out->len == was);
            hfsb_buf_truncate(out, was); /* forget the failure */
            out->max = 0;
            MUST(hfsb_text_filter_write(f, piece, out) == HFSB_OK);
        }
        t_drop(piece);
    }
    out->max = 0;
    MUST(hfsb_text_filter_finish(f, out) == HFSB_OK);
    hfsb_text_filter_close(f);
}

static void must_equal(const hfsb_buf *a, const hfsb_buf *b) {
    MUST(hfsb_str_equal(hfsb_buf_str(a), hfsb_buf_str(b)));
}

static void fuzz_filter(hfsb_str s, const unsigned char *head,
                        hfsb_buf *cleaned) {
    hfsb_buf other = HFSB_INIT, repaired = HFSB_INIT;
    hfsb_str view;
    clean(s, NULL, 0, cleaned);
    clean(s, head + 2, 0, &other);
    must_equal(cleaned, &other);
    hfsb_buf_truncate(&other, 0);
    clean(s, head + 2, head[1], &other);
    must_equal(cleaned, &other);
    hfsb_buf_truncate(&other, 0);
    clean(hfsb_buf_str(cleaned), head + 2, 0, &other);
    must_equal(cleaned, &other);
    hfsb_buf_truncate(&other, 0);
    MUST(hfsb_utf8_repair(s, &repaired) == HFSB_OK);
    clean(hfsb_buf_str(&repaired), NULL, 0, &other);
    must_equal(cleaned, &other);
    view = hfsb_buf_str(cleaned);
    MUST(hfsb_utf8_validate(view) == view.len);
    MUST(hfsb_str_find_byte(view, 27) == HFSB_NPOS);
    MUST(hfsb_str_find_byte(view, '\r') == HFSB_NPOS);
    MUST(hfsb_str_find_byte(view, '\b') == HFSB_NPOS);
    hfsb_buf_free(&other);
    hfsb_buf_free(&repaired);
}

static void fuzz_repair(hfsb_str s, const unsigned char *head) {
    hfsb_utf8_stream st = HFSB_INIT;
    hfsb_buf         want = HFSB_INIT, got = HFSB_INIT;
    size_t           at = 0;
    cuts             c;
    c.sizes = head + 2;
    c.turn = 0;
    while (at < s.len) {
        hfsb_str piece = next_piece(&c, s, &at);
        MUST(hfsb_utf8_stream_write(&st, piece, false, &got) == HFSB_OK);
        t_drop(piece);
    }
    MUST(hfsb_utf8_stream_write(&st, hfsb_str_make(NULL, 0), true, &got) ==
         HFSB_OK);
    MUST(hfsb_utf8_repair(s, &want) == HFSB_OK);
    must_equal(&want, &got);
    MUST(hfsb_utf8_count(s) == hfsb_utf8_count(hfsb_buf_str(&got)));
    hfsb_buf_free(&want);
    hfsb_buf_free(&got);
}

static void fuzz_window(hfsb_str s, const unsigned char *head) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *w;
    hfsb_buf          want = HFSB_INIT, got = HFSB_INIT;
    size_t            at = 0;
    cuts              c;
    bool              cut;
    limit.chars = 1 + (size_t)head[0];
    if (head[1] % 3 == 0) limit.head = 1 + head[1] % limit.chars;
    c.sizes = head + 2;
    c.turn = 0;
    w = hfsb_text_window_open(&limit, NULL);
    MUST(w);
    while (at < s.len) {
        hfsb_str piece = next_piece(&c, s, &at);
        MUST(hfsb_text_window_write(w, piece) == HFSB_OK);
        t_drop(piece);
    }
    MUST(hfsb_text_truncate(s, &limit, HFSB_LIT("/x"), &want, &cut, NULL) ==
         HFSB_OK);
    MUST(hfsb_text_window_show(w, HFSB_LIT("/x"), &got) == HFSB_OK);
    if (hfsb_utf8_validate(s) == s.len) {
        must_equal(&want, &got);
        MUST(hfsb_text_window_total(w) == hfsb_utf8_count(s));
        MUST(hfsb_text_window_truncated(w) == cut);
    }
    MUST(got.len <= 400 + 4 * limit.chars);
    hfsb_text_window_close(w);
    hfsb_buf_free(&want);
    hfsb_buf_free(&got);
}

static void fuzz_path(hfsb_str s) {
    hfsb_buf once = HFSB_INIT, twice = HFSB_INIT, code = HFSB_INIT;
    hfsb_err err;
    MUST(hfsb_script_kind_name(hfsb_script_classify(s))[0] != 'u' ||
         hfsb_script_classify(s) == HFSB_SCRIPT_URL);
    MUST(hfsb_path_clean(s, &once) == HFSB_OK && once.len > 0);
    MUST(hfsb_path_clean(hfsb_buf_str(&once), &twice) == HFSB_OK);
    must_equal(&once, &twice);
    MUST(hfsb_path_suffix(s).len <= hfsb_path_base(s).len);
    if (hfsb_space_check(s, &err) != HFSB_OK)
        MUST(err.msg[0] && err.pos <= s.len);
    MUST(hfsb_base64_encode(s, &code) == HFSB_OK);
    hfsb_buf_truncate(&once, 0);
    MUST(hfsb_base64_decode(hfsb_buf_str(&code), &once, &err) == HFSB_OK);
    MUST(hfsb_str_equal(s, hfsb_buf_str(&once)));
    hfsb_buf_truncate(&once, 0);
    hfsb_buf_truncate(&code, 0);
    if (hfsb_base64_decode(s, &once, &err) == HFSB_OK) {
        MUST(hfsb_base64_encode(hfsb_buf_str(&once), &code) == HFSB_OK);
        MUST(hfsb_str_equal(s, hfsb_buf_str(&code)));
    } else {
        MUST(err.code == HFSB_SYNTAX && err.pos <= s.len && !once.len);
    }
    hfsb_buf_free(&once);
    hfsb_buf_free(&twice);
    hfsb_buf_free(&code);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    hfsb_buf cleaned = HFSB_INIT;
    hfsb_str s;
    if (size < 6) return 0;
    s = t_exact(data + 6, size - 6);
    fuzz_filter(s, data, &cleaned);
    fuzz_repair(s, data);
    fuzz_window(hfsb_buf_str(&cleaned), data);
    fuzz_window(s, data);
    fuzz_path(s);
    t_drop(s);
    hfsb_buf_free(&cleaned);
    return 0;
}
