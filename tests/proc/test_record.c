/* test_record.c - what a command printed: the same however it was cut, in
   bounded memory, readable from any offset. */
#include "../support/t_tools.h"

typedef struct session {
    hfsbi_spills spills;
    hfsbi_record record;
} session;

static void begin(session *s, size_t max_bytes, bool merged) {
    hfsb_alloc alloc = tt_alloc();
    memset(s, 0, sizeof *s);
    T_CHECK(hfsbi_spills_init(&s->spills, getenv("TMPDIR"), 32, max_bytes,
                              &alloc));
    T_CHECK(hfsbi_record_init(&s->record, &s->spills, merged, &alloc));
}

static void end(session *s) {
    if (s->record.path.len) unlink(s->record.path.ptr);
    hfsbi_record_free(&s->record);
    hfsbi_spills_free(&s->spills);
}

/* All of the log, in steps of max bytes; what is missing as "<from-to>". */
static void read_all(const hfsbi_record *c, size_t max, hfsb_buf *out) {
    unsigned long long from = 0, next = 0, gone_from = 0, gone_to = 0;
    size_t             rounds = 0;
    for (;; from = next) {
        size_t mark = out->len;
        T_CHECK(hfsbi_record_read(c, from, max, out, &next, &gone_from,
                                  &gone_to) == HFSB_OK);
        if (gone_to)
            T_CHECK(hfsb_buf_printf(out, "<%llu-%llu>", gone_from, gone_to) ==
                    HFSB_OK);
        T_CHECK(next >= from);
        if (next == from || out->len == mark || ++rounds > 1000000) break;
    }
}

/* ---- cuts ---- */

/* An emoji, bytes that are no UTF-8, every kind of escape sequence, progress
   lines, and an unfinished end. */
static const char nasty[] =
    "\xF0\x9F\x98\x80 plain \xC3\xA9\xE2\x82\xAC\n"
    "\x1b[31mred\x1b[0m \x1b[38;5;208;1mx\x1b[?25l\x1b[2 q\n"
    "\x1b]0;title\x07"
    "a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"
    "\x1bPq\x1b\\b\x1b_c\x1b\\d\x1b^e\x1b\\f\x1bXg\x1b\\h\n"
    "\x1b(B\x1b=\x1b"
    "7\x1b"
    "8 i\x1b]never ended\nnext\r\n"
    " 10%\r 50%\r100%\x1b[K\n12345\b\b\bX\nabc\rde\x1b[K\r\n"
    "bad \xFF\xF0\x9F\x98 \xE2\x82 \xC0\xAF \xED\xA0\x80.\n"
    "tail \xF0\x9F\x8E\x89\x1b[1mlast \xE2\x82";

static const char nasty_clean[] =
    "\xF0\x9F\x98\x80 plain \xC3\xA9\xE2\x82\xAC\n"
    "red x\n"
    "alink\n"
    "bdfh\n"
    " i\nnext\n"
    "100%\n12X45\nde\n"
    "bad \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD "
    "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD.\n"
    "tail \xF0\x9F\x8E\x89last \xEF\xBF\xBD";

static void check_nasty(session *s, const char *what, size_t a, size_t b) {
    hfsb_buf shown = HFSB_INIT, log = HFSB_INIT;
    size_t   failed = t_failed;
    hfsbi_record_finish(&s->record);
    T_CHECK(hfsbi_record_show(&s->record, &shown) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&shown), hfsb_cstr(nasty_clean)));
    read_all(&s->record, 7, &log);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&log), hfsb_cstr(nasty_clean)));
    T_CHECK(hfsbi_record_chars(&s->record) ==
            hfsb_utf8_count(hfsb_cstr(nasty_clean)));
    T_CHECK(!hfsbi_record_truncated(&s->record) && !s->record.lost);
    if (failed != t_failed)
        printf("  %s, cut at %zu and %zu: %s\n", what, a, b, shown.ptr);
    hfsb_buf_free(&shown);
    hfsb_buf_free(&log);
}

/* [0, a) [a, b) [b, end) on one stream. */
static void in_three(hfsb_proc_stream stream, size_t a, size_t b) {
    size_t  cuts[4], i;
    session s;
    cuts[0] = 0, cuts[1] = a, cuts[2] = b, cuts[3] = sizeof nasty - 1;
    begin(&s, 1 << 20, false);
    for (i = 0; i < 3; i++) {
        hfsb_str piece = t_exact(nasty + cuts[i], cuts[i + 1] - cuts[i]);
        hfsbi_record_write(&s.record, stream, piece);
        t_drop(piece);
    }
    check_nasty(&s, "three pieces", a, b);
    end(&s);
}

static void it_does_not_matter_where_it_was_cut(void) {
    size_t a, b, step = t_quick() ? 17 : 1;
    for (a = 0; a < sizeof nasty; a += step)
        for (b = a; b < sizeof nasty; b += a % 8 ? 29 : step)
            in_three(b % 2 ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT, a, b);
}

static void pieces_of_any_size_give_the_same(void) {
    size_t size, at;
    for (size = 1; size < 40; size++) {
        session s;
        begin(&s, 1 << 20, size % 2);
        for (at = 0; at < sizeof nasty - 1; at += size)
            hfsbi_record_write(
                &s.record, HFSB_PROC_STDOUT,
                hfsb_str_slice(hfsb_cstr(nasty), at, at + size));
        check_nasty(&s, "pieces", size, 0);
        end(&s);
    }
}

/* A character begun on one stream is not ended by the other. */
static void streams_do_not_mix(void) {
    session  s;
    hfsb_buf shown = HFSB_INIT, log = HFSB_INIT;
    size_t   i;
    begin(&s, 1 << 20, false);
    for (i = 0; i < sizeof nasty - 1; i++) {
        hfsbi_record_write(&s.record, HFSB_PROC_STDERR,
                           hfsb_str_make(nasty + i, 1));
        hfsbi_record_write(&s.record, HFSB_PROC_STDOUT,
                           hfsb_str_make(nasty + i, 1));
    }
    hfsbi_record_finish(&s.record);
    T_CHECK(hfsbi_record_show(&s.record, &shown) == HFSB_OK);
    T_CHECK(shown.len == 2 * (sizeof nasty_clean - 1));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&shown), hfsb_cstr(nasty_clean)));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&shown), hfsb_cstr(nasty_clean)));
    read_all(&s.record, 1000, &log);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&log), hfsb_buf_str(&shown)));
    hfsb_buf_free(&shown);
    hfsb_buf_free(&log);
    end(&s);
}

/* ---- an end that is not there yet ---- */

static void an_unfinished_line_is_shown_but_not_passed(void) {
    static const struct {
        const char        *piece, *shown; /* from the last next on */
        unsigned long long next;
    } steps[] = {{"ab", "ab", 0},
                 {"c", "abc", 0},
                 {"\rX", "Xbc", 0},
                 {"\n", "Xbc\n", 4},
                 {"", "", 4},
                 {"1\n2\n3", "1\n2\n3", 8},
                 {"\xF0\x9F", "3", 8},
                 {"\x98\x80", "3\xF0\x9F\x98\x80", 8},
                 {"\x1b[3", "3\xF0\x9F\x98\x80", 8},
                 {"1m!\n", "3\xF0\x9F\x98\x80!\n", 15}};
    session            s;
    unsigned long long from = 0, next, gone_from, gone_to;
    size_t             i;
    begin(&s, 1 << 20, true);
    for (i = 0; i < TT_COUNT(steps); i++) {
        hfsb_buf out = HFSB_INIT;
        next = gone_from = gone_to = 99;
        hfsbi_record_write(&s.record, HFSB_PROC_STDOUT,
                           hfsb_cstr(steps[i].piece));
        T_CHECK(hfsbi_record_read(&s.record, from, 1000, &out, &next,
                                  &gone_from, &gone_to) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(steps[i].shown)));
        T_CHECK(next == steps[i].next && gone_from == 0 && gone_to == 0);
        if (next != steps[i].next)
            printf("  step %zu: next %llu, \"%s\"\n", i, next, out.ptr);
        from = next;
        hfsb_buf_free(&out);
    }
    hfsbi_record_write(&s.record, HFSB_PROC_STDOUT, HFSB_LIT("end"));
    hfsbi_record_finish(&s.record);
    {
        hfsb_buf out = HFSB_INIT;
        T_CHECK(hfsbi_record_read(&s.record, from, 1000, &out, &next,
                                  &gone_from, &gone_to) == HFSB_OK);
        T_STR(out, "end");
        T_CHECK(next == 18);
        hfsb_buf_free(&out);
    }
    end(&s);
}

static void reads_are_cut_between_characters(void) {
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\n";
    session           s;
    size_t            max, from;
    begin(&s, 1 << 20, true);
    hfsbi_record_write(&s.record, HFSB_PROC_STDOUT, hfsb_cstr(text));
    for (max = 4; max < sizeof text + 2; max++)
        for (from = 0; from < sizeof text + 3; from++) {
            hfsb_buf           out = HFSB_INIT;
            unsigned long long next = 0, gone_from, gone_to;
            T_CHECK(hfsbi_record_read(&s.record, from, max, &out, &next,
                                      &gone_from, &gone_to) == HFSB_OK);
            T_CHECK(out.len <= max && next <= sizeof text - 1);
            T_CHECK(gone_from == 0 && gone_to == 0);
            /* a whole beginning gives whole characters */
            if (from >= sizeof text - 1 ||
                ((unsigned char)text[from] & 0xC0) != 0x80)
                T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&out)) == out.len);
            if (from < sizeof text - 1) T_CHECK(out.len && next > from);
            hfsb_buf_free(&out);
        }
    end(&s);
}

/* ---- long ones ---- */

/* Line i of the log; each has another length. */
static void put_line(hfsb_buf *out, size_t i) {
    if (hfsb_buf_printf(out, "%zu", i) != HFSB_OK) abort();
    tt_fill(out, i % 3 ? "\xC3\xA9" : "x", i % 50);
    tt_fill(out, "\n", 1);
}

static void write_lines(session *s, hfsb_buf *all, size_t from, size_t to,
                        hfsb_proc_stream stream) {
    for (; from < to; from++) {
        hfsb_buf line = HFSB_INIT;
        put_line(&line, from);
        if (all && hfsb_buf_append(all, hfsb_buf_str(&line)) != HFSB_OK)
            abort();
        hfsbi_record_write(&s->record, stream, hfsb_buf_str(&line));
        hfsb_buf_free(&line);
    }
}

static bool begins_character(hfsb_str text, size_t at) {
    return at >= text.len || ((unsigned char)text.ptr[at] & 0xC0) != 0x80;
}

/* A read at an offset returns the bytes there, or reports that they are gone.
 */
static size_t check_window(const hfsbi_record *c, hfsb_str all, size_t from,
                           size_t max) {
    hfsb_buf           out = HFSB_INIT;
    unsigned long long next = 0, gone_from = 0, gone_to = 0;
    T_CHECK(hfsbi_record_read(c, from, max, &out, &next, &gone_from,
                              &gone_to) == HFSB_OK);
    T_CHECK(next <= all.len && out.len <= max);
    if (gone_to) {
        T_CHECK(begins_character(all, (size_t)gone_from));
        T_CHECK(begins_character(all, (size_t)gone_to));
        T_CHECK(gone_from >= from && gone_to > gone_from && gone_to <= next);
        T_CHECK(out.len + (size_t)(gone_to - gone_from) ==
                (size_t)next - from);
        T_CHECK(hfsb_str_equal(
            hfsb_str_slice(hfsb_buf_str(&out), 0, (size_t)gone_from - from),
            hfsb_str_slice(all, from, (size_t)gone_from)));
        T_CHECK(hfsb_str_equal(
            hfsb_str_slice(hfsb_buf_str(&out), (size_t)gone_from - from,
                           out.len),
            hfsb_str_slice(all, (size_t)gone_to, (size_t)next)));
    } else {
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out),
                               hfsb_str_slice(all, from, (size_t)next)));
    }
    T_CHECK(next > from || from == all.len);
    hfsb_buf_free(&out);
    return (size_t)next;
}

static void check_windows(const session *s, hfsb_str all) {
    static const size_t max[] = {4, 100, 5000, 30000, 1000000};
    size_t              i, from;
    for (i = 0; i < TT_COUNT(max); i++)
        for (from = 0; from <= all.len; from += 1 + all.len / 200)
            /* offsets that a reply can have given: between characters */
            if (from == all.len ||
                ((unsigned char)all.ptr[from] & 0xC0) != 0x80)
                check_window(&s->record, all, from, max[i]);
    check_window(&s->record, all, all.len, 100);
}

static void long_logs_can_be_read_from_anywhere(size_t cap, bool whole) {
    session            s;
    hfsb_buf           all = HFSB_INIT, file = HFSB_INIT, log = HFSB_INIT;
    unsigned long long next, gone_from, gone_to;
    begin(&s, cap, true);
    write_lines(&s, &all, 0, 300, HFSB_PROC_STDOUT);
    check_windows(&s, hfsb_buf_str(&all));
    T_CHECK(!s.record.path.len); /* a reply would show it whole */
    write_lines(&s, &all, 300, 5000, HFSB_PROC_STDOUT);
    check_windows(&s, hfsb_buf_str(&all));
    T_CHECK(s.record.path.len && t_read_file(s.record.path.ptr, &file));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&all), hfsb_buf_str(&file)));
    T_CHECK(begins_character(hfsb_buf_str(&all), file.len));
    T_CHECK(file.len <= cap &&
            (whole ? file.len == all.len : file.len > cap - 64));
    hfsbi_record_finish(&s.record);
    check_windows(&s, hfsb_buf_str(&all));
    hfsbi_record_settle(&s.record);
    check_windows(&s, hfsb_buf_str(&all));
    read_all(&s.record, 1000, &log);
    T_CHECK(!whole || hfsb_str_equal(hfsb_buf_str(&log), hfsb_buf_str(&all)));
    hfsbi_record_forget(&s.record);
    T_CHECK(hfsbi_record_held(&s.record) == 0);
    check_windows(&s, hfsb_buf_str(&all));
    hfsb_buf_truncate(&log, 0);
    T_CHECK(hfsbi_record_read(&s.record, all.len + 50, 10, &log, &next,
                              &gone_from, &gone_to) == HFSB_OK);
    T_CHECK(log.len == 0);
    hfsb_buf_free(&all);
    hfsb_buf_free(&file);
    hfsb_buf_free(&log);
    end(&s);
}

static void a_log_that_is_saved_loses_nothing(void) {
    long_logs_can_be_read_from_anywhere(1 << 20, true);
}

static void a_log_over_its_cap_says_what_is_gone(void) {
    size_t cap;
    for (cap = 50000; cap < 50006; cap++)
        long_logs_can_be_read_from_anywhere(cap, false);
}

/* Pieces of any size, of characters of any length: what is let go of begins
   and ends between characters. */
static void characters_are_not_split(void) {
    static const char *const parts[] = {"\xC3\xA9", "xy\xE2\x82\xAC",
                                        "x\xF0\x9F\x98\x80"};
    static const size_t      sizes[] = {1000, 70001, 300000};
    size_t                   i, k, cap;
    for (i = 0; i < TT_COUNT(parts); i++)
        for (k = 0; k < TT_COUNT(sizes); k++)
            for (cap = 60000; cap < 60004; cap++) {
                hfsb_buf all = HFSB_INIT;
                session  s;
                size_t   at;
                tt_fill(&all, "x", cap % 4);
                tt_fill(&all, parts[i], 300000 / (i + 2));
                begin(&s, cap, true);
                for (at = 0; at < all.len; at += sizes[k])
                    hfsbi_record_write(
                        &s.record, HFSB_PROC_STDOUT,
                        hfsb_str_slice(hfsb_buf_str(&all), at, at + sizes[k]));
                hfsbi_record_finish(&s.record);
                for (at = 0; at < all.len;)
                    at = check_window(&s.record, hfsb_buf_str(&all), at,
                                      1000000);
                end(&s);
                hfsb_buf_free(&all);
            }
}

/* stderr is stashed, and appended to stdout at the end. */
static void stderr_follows_stdout(void) {
    static const size_t counts[][2] = {{10, 10},   {3000, 0},  {0, 3000},
                                       {10, 3000}, {3000, 10}, {3000, 3000},
                                       {600, 600}};
    size_t              i, k;
    for (i = 0; i < TT_COUNT(counts); i++) {
        session  s;
        hfsb_buf out = HFSB_INIT, err = HFSB_INIT, want = HFSB_INIT;
        hfsb_buf got = HFSB_INIT, log = HFSB_INIT, file = HFSB_INIT;
        begin(&s, 1 << 20, false);
        for (k = 0; k < counts[i][0] || k < counts[i][1]; k++) {
            if (k < counts[i][1])
                write_lines(&s, &err, k, k + 1, HFSB_PROC_STDERR);
            if (k < counts[i][0])
                write_lines(&s, &out, k, k + 1, HFSB_PROC_STDOUT);
        }
        hfsbi_record_finish(&s.record);
        T_CHECK(hfsb_buf_append(&out, hfsb_buf_str(&err)) == HFSB_OK);
        T_CHECK(hfsb_text_truncate(hfsb_buf_str(&out), NULL,
                                   hfsb_buf_str(&s.record.path), &want, NULL,
                                   NULL) == HFSB_OK);
        T_CHECK(hfsbi_record_show(&s.record, &got) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&want)));
        T_CHECK(hfsbi_record_chars(&s.record) ==
                hfsb_utf8_count(hfsb_buf_str(&out)));
        read_all(&s.record, 4000, &log);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&log), hfsb_buf_str(&out)));
        if (s.record.path.len) {
            T_CHECK(t_read_file(s.record.path.ptr, &file));
            T_CHECK(hfsb_str_equal(hfsb_buf_str(&file), hfsb_buf_str(&out)));
        } else {
            T_CHECK(!hfsbi_record_truncated(&s.record));
        }
        hfsb_buf_free(&out);
        hfsb_buf_free(&err);
        hfsb_buf_free(&want);
        hfsb_buf_free(&got);
        hfsb_buf_free(&log);
        hfsb_buf_free(&file);
        end(&s);
    }
}

/* What a reply shows whole can be read whole, also when every character has
   four bytes. */
static void a_text_that_is_shown_is_held_whole(void) {
    static const size_t counts[][2] = {
        {24980, 0}, {0, 24980}, {12000, 12980}, {10, 24970}};
    size_t i;
    for (i = 0; i < 2 * TT_COUNT(counts); i++) {
        const size_t *n = counts[i / 2];
        session       s;
        hfsb_buf      out = HFSB_INIT, err = HFSB_INIT, log = HFSB_INIT;
        tt_fill(&out, "hello\n", 1);
        tt_fill(&out, "\xF0\x9F\x98\x80", n[0]);
        tt_fill(&err, "\xF0\x9F\x98\x80", n[1]);
        begin(&s, 1 << 20, i % 2);
        hfsbi_record_write(&s.record, HFSB_PROC_STDERR, hfsb_buf_str(&err));
        hfsbi_record_write(&s.record, HFSB_PROC_STDOUT, hfsb_buf_str(&out));
        hfsbi_record_finish(&s.record);
        hfsbi_record_settle(&s.record);
        T_CHECK(hfsb_buf_append(&out, hfsb_buf_str(&err)) == HFSB_OK);
        read_all(&s.record, 1000000, &log);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&log), hfsb_buf_str(&out)));
        T_CHECK(!s.record.path.len);
        hfsb_buf_free(&out);
        hfsb_buf_free(&err);
        hfsb_buf_free(&log);
        end(&s);
    }
}

/* The end is what matters of a long log: that much of it is held, whatever
   became of the rest, and what is given is what was printed. */
static void check_end(session *s, hfsb_str all, size_t held) {
    size_t from = all.len - held;
    while (!begins_character(all, from)) from++;
    hfsbi_record_finish(&s->record);
    T_CHECK(check_window(&s->record, all, from, held) == all.len);
    hfsbi_record_settle(&s->record);
    T_CHECK(s->record.memory_start <= from && s->record.total == all.len);
    check_windows(s, all);
}

static void the_end_of_a_log_over_its_cap_is_held(void) {
    session  s;
    hfsb_buf all = HFSB_INIT;
    begin(&s, 100000, true);
    write_lines(&s, &all, 0, 6000, HFSB_PROC_STDOUT);
    check_end(&s, hfsb_buf_str(&all), 40000);
    hfsb_buf_free(&all);
    end(&s);
}

/* Without a file for it, or with one that is too small; of one-byte characters
   or of longer ones. */
static void the_end_of_stderr_is_held(void) {
    static const size_t counts[][2] = {
        {0, 2000}, {10, 2000}, {2000, 2000}, {2000, 700}, {100, 1900}};
    size_t i, k;
    for (i = 0; i < 4 * TT_COUNT(counts); i++) {
        const size_t *n = counts[i / 4];
        session       s;
        hfsb_buf      out = HFSB_INIT, err = HFSB_INIT;
        begin(&s, 60000, false);
        s.spills.none = i % 2;
        if (i % 4 < 2) write_lines(&s, &err, 0, n[1], HFSB_PROC_STDERR);
        for (k = 0; i % 4 >= 2 && k < n[1]; k++) {
            size_t mark = err.len;
            T_CHECK(hfsb_buf_printf(&err, "%50zu\n", k) == HFSB_OK);
            hfsbi_record_write(
                &s.record, HFSB_PROC_STDERR,
                hfsb_str_slice(hfsb_buf_str(&err), mark, err.len));
        }
        write_lines(&s, &out, 0, n[0], HFSB_PROC_STDOUT);
        T_CHECK(hfsb_buf_append(&out, hfsb_buf_str(&err)) == HFSB_OK);
        check_end(&s, hfsb_buf_str(&out), 15000);
        hfsb_buf_free(&out);
        hfsb_buf_free(&err);
        end(&s);
    }
}

/* A megabyte a command, whatever it prints. */
static void memory_is_bounded(void) {
    static const char *const parts[] = {
        "x", "x\n", "\xF0\x9F\x98\x80", "\xFF", "\x1b[1mx\r", "\x1b]0;"};
    size_t i, k, rounds = t_quick() ? 200 : 1000;
    for (i = 0; i < TT_COUNT(parts); i++) {
        session  s;
        hfsb_buf text = HFSB_INIT;
        size_t   before = tt_memory.heap.live, peak = 0;
        tt_fill(&text, parts[i], 4000);
        begin(&s, 300000, false);
        for (k = 0; k < rounds; k++) {
            hfsbi_record_write(&s.record, (hfsb_proc_stream)(k & 1),
                               hfsb_buf_str(&text));
            if (tt_memory.heap.live - before > peak)
                peak = tt_memory.heap.live - before;
        }
        hfsbi_record_finish(&s.record);
        if (tt_memory.heap.live - before > peak)
            peak = tt_memory.heap.live - before;
        T_CHECK(peak < 1 << 20);
        if (peak >= 1 << 20) printf("  part %zu: %zu bytes\n", i, peak);
        hfsbi_record_settle(&s.record);
        T_CHECK(hfsbi_record_held(&s.record) < 1 << 17);
        T_CHECK(!s.record.lost);
        hfsb_buf_free(&text);
        end(&s);
    }
}

/* ---- spill files ---- */

/* Goes to a new folder in that of the tests, or with NULL back. */
static void enter(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/work/%s", tt_dir, name ? name : "");
    if ((name && mkdir(path, 0755)) || chdir(path)) abort();
}

/* Writes a record of n lines; appends the path of its spill file. */
static void spill_lines(hfsbi_spills *spills, size_t n, hfsb_buf *path) {
    hfsb_alloc   alloc = tt_alloc();
    hfsb_buf     text = HFSB_INIT;
    hfsbi_record c;
    tt_fill(&text, "y\n", n);
    T_CHECK(hfsbi_record_init(&c, spills, true, &alloc));
    hfsbi_record_write(&c, HFSB_PROC_STDOUT, hfsb_buf_str(&text));
    hfsbi_record_finish(&c);
    T_CHECK(hfsb_buf_append(path, hfsb_buf_str(&c.path)) == HFSB_OK);
    hfsbi_record_free(&c);
    hfsb_buf_free(&text);
}

static void sessions_of_a_server_share_the_number_of_spills(void) {
    hfsb_alloc   alloc = tt_alloc();
    hfsbi_spills a, b;
    hfsb_buf     path[6];
    size_t       i;
    enter("shared");
    memset(path, 0, sizeof path);
    T_CHECK(hfsbi_spills_init(&a, ".", 3, 1 << 20, &alloc));
    T_CHECK(hfsbi_spills_init(&b, ".", 3, 1 << 20, &alloc));
    hfsbi_spills_share(&b, &a);
    for (i = 0; i < 6; i++) spill_lines(i % 2 ? &b : &a, 20000, &path[i]);
    T_CHECK(tt_entries(".", "bash_output_") == 3);
    /* each may read its own only */
    T_CHECK(hfsbi_spills_has(&b, hfsb_buf_str(&path[5])));
    T_CHECK(!hfsbi_spills_has(&a, hfsb_buf_str(&path[5])));
    T_CHECK(hfsbi_spills_has(&a, hfsb_buf_str(&path[4])));
    a.dropped = true;
    hfsbi_spills_free(&a);
    T_CHECK(tt_entries(".", "bash_output_") == 2);
    b.dropped = true;
    hfsbi_spills_free(&b);
    T_CHECK(tt_entries(".", "bash_output_") == 0);
    for (i = 0; i < 6; i++) hfsb_buf_free(&path[i]);
    enter(NULL);
}

static void all_spills_together_have_a_limit_of_bytes(void) {
    hfsb_alloc   alloc = tt_alloc();
    hfsbi_spills spills;
    hfsb_buf     path = HFSB_INIT;
    size_t       i;
    enter("bytes");
    T_CHECK(hfsbi_spills_init(&spills, ".", 32, 50000, &alloc));
    for (i = 0; i < 12; i++) {
        hfsb_buf_truncate(&path, 0);
        spill_lines(&spills, 30000, &path); /* is cut to 50,000 bytes */
    }
    T_CHECK(tt_entries(".", "bash_output_") == 8);
    T_CHECK(hfsbi_spills_has(&spills, hfsb_buf_str(&path)));
    spills.dropped = true;
    hfsbi_spills_free(&spills);
    hfsb_buf_free(&path);
    enter(NULL);
}

#ifdef HFSBI_LINUX
static void leave_spill(long pid, unsigned long long start, int number,
                        long age) {
    struct timespec times[2];
    char            name[96];
    snprintf(name, sizeof name, "bash_output_%ld-%llu_%016x.txt", pid, start,
             (unsigned)number);
    tt_put(name, HFSB_LIT("x"));
    times[0].tv_sec = times[1].tv_sec = time(NULL) - age;
    times[0].tv_nsec = times[1].tv_nsec = 0;
    T_CHECK(utimensat(AT_FDCWD, name, times, 0) == 0);
}

static void what_ended_processes_left_is_swept(void) {
    hfsb_alloc   alloc = tt_alloc();
    hfsbi_spills spills;
    hfsb_buf     path = HFSB_INIT;
    long         me = (long)getpid();
    int          i;
    enter("left");
    for (i = 0; i < 10; i++) leave_spill(me, 1, i, 10 + i); /* a reused pid */
    leave_spill(me, 1, 10, 4000);                           /* too old */
    for (i = 11; i < 14; i++) /* one that runs: this one */
        leave_spill(me, hfsbi_process_start(me), i, 5000);
    tt_put("bash_output_other.txt", HFSB_LIT("x"));
    T_CHECK(hfsbi_spills_init(&spills, ".", 4, 1 << 20, &alloc));
    T_CHECK(tt_entries(".", "bash_output_") == 15);
    spill_lines(&spills, 20000, &path);
    T_CHECK(tt_entries(".", "bash_output_") == 1 + 3 + 1 + 4);
    T_CHECK(access("bash_output_other.txt", F_OK) == 0);
    spills.dropped = true;
    hfsbi_spills_free(&spills);
    hfsb_buf_free(&path);
    enter(NULL);
}
#endif

static void only_our_own_spills_are_removed(void) {
    hfsb_alloc   alloc = tt_alloc();
    hfsbi_spills spills;
    hfsb_buf     text = HFSB_INIT, path[6];
    size_t       i, k;
    char         dir[100];
    snprintf(dir, sizeof dir, "%s/work", tt_dir);
    memset(path, 0, sizeof path);
    tt_put("bash_output_other.txt", HFSB_LIT("x"));
    T_CHECK(hfsbi_spills_init(&spills, dir, 3, 1 << 20, &alloc));
    tt_fill(&text, "y\n", 20000);
    for (i = 0; i < 6; i++) {
        hfsbi_record c;
        T_CHECK(hfsbi_record_init(&c, &spills, true, &alloc));
        hfsbi_record_write(&c, HFSB_PROC_STDOUT, hfsb_buf_str(&text));
        hfsbi_record_finish(&c);
        T_CHECK(hfsb_buf_append(&path[i], hfsb_buf_str(&c.path)) == HFSB_OK);
        T_CHECK(path[i].len > 0);
        for (k = 0; k <= i; k++) {
            T_CHECK((access(path[k].ptr, F_OK) == 0) == (k + 3 > i));
            T_CHECK(hfsbi_spills_has(&spills, hfsb_buf_str(&path[k])) ==
                    (k + 3 > i));
        }
        hfsbi_record_free(&c);
    }
    T_CHECK(tt_entries(".", "bash_output_") == 4);
    T_CHECK(!hfsbi_spills_has(&spills, HFSB_LIT("/etc/passwd")));
    hfsbi_spills_free(&spills);
    T_CHECK(access("bash_output_other.txt", F_OK) == 0);
    for (i = 0; i < 6; i++) {
        unlink(path[i].ptr);
        hfsb_buf_free(&path[i]);
    }
    hfsb_buf_free(&text);
}

/* No byte went in: the disk is full. A command goes on all the same, and its
   reply names no file. */
static void empty_spill_file_is_not_mentioned(void) {
    struct rlimit was, none;
    session       s;
    hfsb_buf      all = HFSB_INIT, shown = HFSB_INIT;
    tt_fill(&all, "0123456789abcde\n", 5000);
    begin(&s, 1 << 20, false);
    T_CHECK(!getrlimit(RLIMIT_FSIZE, &was));
    none = was;
    none.rlim_cur = 0;
    T_CHECK(!setrlimit(RLIMIT_FSIZE, &none));
    hfsbi_record_write(&s.record, HFSB_PROC_STDOUT, hfsb_buf_str(&all));
    hfsbi_record_finish(&s.record);
    T_CHECK(!setrlimit(RLIMIT_FSIZE, &was));
    T_CHECK(s.record.path.len == 0);
    T_CHECK(tt_entries(getenv("TMPDIR"), "") == 0);
    T_CHECK(hfsbi_record_show(&s.record, &shown) == HFSB_OK);
    T_CHECK(tt_says(&shown, "(55,000 of 80,000 chars omitted") &&
            !tt_says(&shown, "saved to"));
    hfsbi_record_settle(&s.record);
    check_windows(&s, hfsb_buf_str(&all));
    T_CHECK(s.record.memory_start <= all.len - 40000);
    hfsb_buf_free(&all);
    hfsb_buf_free(&shown);
    end(&s);
}

/* ---- without memory ---- */

/* What cannot be held is lost, but never mixed up, and it is said. */
static void run_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_spills spills;
    hfsbi_record c;
    hfsb_buf     text = HFSB_INIT, out = HFSB_INIT;
    int          i;
    tt_fill(&text, "0123456789\xC3\xA9\n", 500);
    if (!hfsbi_spills_init(&spills, getenv("TMPDIR"), 2, 100000, &alloc)) {
        T_CHECK(heap->fail_at);
        hfsb_buf_free(&text);
        return;
    }
    if (hfsbi_record_init(&c, &spills, false, &alloc)) {
        for (i = 0; i < 10; i++)
            hfsbi_record_write(&c, (hfsb_proc_stream)(i % 2),
                               hfsb_buf_str(&text));
        hfsbi_record_finish(&c);
        if (!heap->fail_at) T_CHECK(!c.lost);
        if (!c.lost) T_CHECK(hfsbi_record_chars(&c) == 10 * 500 * 12);
        T_CHECK(hfsbi_record_show(&c, &out) == HFSB_OK || heap->fail_at);
        T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&out)) == out.len);
        if (c.path.len) unlink(c.path.ptr);
        hfsbi_record_free(&c);
    } else {
        T_CHECK(heap->fail_at);
    }
    for (i = 0; (size_t)i < spills.store->count; i++)
        unlink(spills.store->list[i].path);
    hfsbi_spills_free(&spills);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(run_without_memory);
    T_CHECK(tt_entries(getenv("TMPDIR"), "") == 0);
}

int main(void) {
    tt_begin();
    TT_RUN(it_does_not_matter_where_it_was_cut);
    TT_RUN(pieces_of_any_size_give_the_same);
    TT_RUN(streams_do_not_mix);
    TT_RUN(an_unfinished_line_is_shown_but_not_passed);
    TT_RUN(reads_are_cut_between_characters);
    TT_RUN(a_log_that_is_saved_loses_nothing);
    TT_RUN(a_log_over_its_cap_says_what_is_gone);
    TT_RUN(characters_are_not_split);
    TT_RUN(stderr_follows_stdout);
    TT_RUN(a_text_that_is_shown_is_held_whole);
    TT_RUN(the_end_of_a_log_over_its_cap_is_held);
    TT_RUN(the_end_of_stderr_is_held);
    TT_RUN(memory_is_bounded);
    TT_RUN(only_our_own_spills_are_removed);
    TT_RUN(sessions_of_a_server_share_the_number_of_spills);
    TT_RUN(all_spills_together_have_a_limit_of_bytes);
#ifdef HFSBI_LINUX
    TT_RUN(what_ended_processes_left_is_swept);
#endif
    TT_RUN(empty_spill_file_is_not_mentioned);
    TT_RUN(each_allocation_fails_cleanly);
    return TT_END();
}
