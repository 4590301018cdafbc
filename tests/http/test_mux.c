/* test_mux.c - frames of a pipe, whole and cut anywhere, and what is refused.
   */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http_private.h"
#endif

typedef struct reading {
    hfsbi_mux_reader reader;
    hfsb_buf         seen;
    unsigned long    data_of; /* stream whose data was seen last; 0: none */
    bool             bad;
} reading;

/* Adds an event; pieces of one frame of data become one. */
static void note(reading *r, const hfsbi_mux_frame *f) {
    if (f->kind == HFSBI_MUX_DATA) {
        T_CHECK(f->data.len > 0 && f->n == f->data.len);
        if (r->data_of != f->stream)
            T_CHECK(hfsb_buf_printf(&r->seen, "D%lu:", f->stream) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&r->seen, f->data) == HFSB_OK);
        r->data_of = f->stream;
        return;
    }
    r->data_of = 0;
    T_CHECK(hfsb_buf_printf(&r->seen, "%c%lu,%lu;", (char)f->kind, f->stream,
                            f->n) == HFSB_OK);
}

static void feed(reading *r, hfsb_str in) {
    hfsb_str        piece = t_exact(in.ptr, in.len), rest = piece;
    hfsbi_mux_frame frame;
    hfsb_err        err;
    size_t          used;
    while (!r->bad) {
        hfsbi_mux_event event =
            hfsbi_mux_next(&r->reader, rest, &frame, &used, &err);
        T_CHECK(used <= rest.len);
        rest = hfsb_str_slice(rest, used, rest.len);
        if (event == HFSBI_MUX_MORE) break;
        if (event == HFSBI_MUX_FRAME) note(r, &frame);
        else {
            r->bad = true;
            T_CHECK(err.code == HFSB_SYNTAX);
            T_CHECK(hfsb_buf_printf(&r->seen, "bad %zu %s", err.pos,
                                    err.msg) == HFSB_OK);
        }
    }
    T_CHECK(r->bad || !rest.len);
    t_drop(piece);
}

/* The events are `want`, wherever the bytes are cut in two or in three. */
static void read_all(hfsb_str in, const char *want) {
    size_t a, b;
    for (a = 0; a <= in.len; a++)
        for (b = a; b <= in.len; b += b < a + 9 ? 1 : 7) {
            reading r = HFSB_INIT;
            feed(&r, hfsb_str_slice(in, 0, a));
            feed(&r, hfsb_str_slice(in, a, b));
            feed(&r, hfsb_str_slice(in, b, in.len));
            T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.seen), hfsb_cstr(want)));
            hfsb_buf_free(&r.seen);
        }
}

static void frames_are_read_wherever_they_are_cut(void) {
    static const char bytes[] = "\nO\0\0\0\0\0\0\1"
                                "D\0\0\3\0\0\0\1a\nc\n\n"
                                "C\1\2\3\377\377\377\377"
                                "E\0\0\0\0\1\0\0"
                                "D\0\0\1\0\0\0\2x"
                                "B\0\0\0\0\0\0\0\n";
    read_all(hfsb_str_make(bytes, sizeof bytes - 1),
             "O1,0;D1:a\ncC4294967295,66051;E65536,0;D2:xB0,0;");
}

static void senseless_frames_are_refused(void) {
    static const struct {
        const char *bytes, *want;
        size_t      len;
    } cases[] = {
        {"X", "bad 0 Invalid frame in the pipe: unknown kind.", 1},
        {"\n\nHTTP/1.1", "bad 2 Invalid frame in the pipe: unknown kind.", 10},
        {"O\0\0\1\0\0\0\1", "bad 8 Invalid frame in the pipe: wrong length.",
         8},
        {"D\0\0\0\0\0\0\1", "bad 8 Invalid frame in the pipe: wrong length.",
         8},
        {"C\0\0\0\0\0\0\1", "bad 8 Invalid frame in the pipe: wrong length.",
         8},
        {"E\0\0\0\0\0\0\0", "bad 8 Invalid frame in the pipe: wrong stream.",
         8},
        {"B\0\0\0\0\0\0\1", "bad 8 Invalid frame in the pipe: wrong stream.",
         8},
        {"D\4\0\1\0\0\0\1",
         "bad 8 Invalid frame in the pipe: longer than the window.", 8}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        read_all(hfsb_str_make(cases[i].bytes, cases[i].len), cases[i].want);
}

static void refusal_is_final(void) {
    hfsbi_mux_reader r = HFSB_INIT;
    hfsbi_mux_frame  frame;
    size_t           used;
    T_CHECK(hfsbi_mux_next(&r, HFSB_LIT("?"), &frame, &used, NULL) ==
            HFSBI_MUX_BAD);
    T_CHECK(hfsbi_mux_next(&r, HFSB_LIT("\n"), &frame, &used, NULL) ==
            HFSBI_MUX_BAD);
}

static void heads_are_read_as_written(void) {
    static const hfsbi_mux_kind kinds[] = {HFSBI_MUX_OPEN, HFSBI_MUX_CREDIT,
                                           HFSBI_MUX_END, HFSBI_MUX_BYE};
    size_t                      i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        unsigned long n = kinds[i] == HFSBI_MUX_CREDIT ? 0x12345 : 0;
        unsigned long id = kinds[i] == HFSBI_MUX_BYE ? 0 : 0x89ABCDEF;
        hfsbi_mux_reader r = HFSB_INIT;
        hfsbi_mux_frame  f;
        char             head[HFSBI_MUX_HEAD];
        size_t           used;
        hfsbi_mux_write_head(kinds[i], n, id, head);
        T_CHECK(hfsbi_mux_next(&r, hfsb_str_make(head, sizeof head), &f, &used,
                               NULL) == HFSBI_MUX_FRAME);
        T_CHECK(f.kind == kinds[i] && f.n == n && f.stream == id);
        T_CHECK(used == sizeof head);
    }
}

int main(void) {
    T_RUN(frames_are_read_wherever_they_are_cut);
    T_RUN(senseless_frames_are_refused);
    T_RUN(refusal_is_final);
    T_RUN(heads_are_read_as_written);
    return T_END();
}
