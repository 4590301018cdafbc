/* growth.c - one call of the library on an input that is made to be hard,
   for tests/checks/growth.sh to count its instructions.
       growth              names of the cases
       growth CASE BYTES   makes an input of about BYTES, then calls once
       growth CASE BYTES - only makes the input: what to subtract */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

typedef struct input {
    hfsb_buf text;
    hfsb_buf old;   /* what is looked for */
    hfsb_buf fresh; /* what takes its place */
    hfsb_buf out;
    hfsb_err err;
    bool     all; /* every place */
} input;

/* ---- making texts ---- */

static void put(hfsb_buf *b, const char *s) {
    if (hfsb_buf_append(b, hfsb_cstr(s)) != HFSB_OK) abort();
}

/* head, then unit until there are size bytes, then tail. Doubles, so that
   making it costs little beside the call. */
static void fill(hfsb_buf *b, const char *head, const char *unit,
                 const char *tail, size_t size) {
    size_t start, unit_len = strlen(unit);
    put(b, head);
    start = b->len;
    put(b, unit);
    while (b->len - start < size) {
        size_t   have = b->len - start, left = size - have;
        hfsb_str piece = hfsb_str_make(b->ptr + start, have);
        if (piece.len > left)
            piece.len = (left + unit_len - 1) / unit_len * unit_len;
        if (hfsb_buf_append(b, piece) != HFSB_OK) abort();
    }
    put(b, tail);
}

/* Lines that all differ: head, a number counted from `from`, tail. */
static void number(hfsb_buf *b, const char *head, unsigned long from,
                   unsigned long count, const char *tail) {
    unsigned long i;
    for (i = from; i < from + count; i++)
        if (hfsb_buf_printf(b, "%s%08lu%s", head, i, tail) != HFSB_OK)
            abort();
}

/* ---- JSON ---- */

static bool parse(input *in, bool unique, bool write) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    bool                 ok;
    opts.max_depth = (size_t)-1;
    opts.unique_keys = unique;
    ok = hfsb_json_parse(hfsb_buf_str(&in->text), &opts, &doc, &in->err) ==
         HFSB_OK;
    if (ok && write)
        ok = hfsb_json_write(doc.root, NULL, &in->out, NULL) == HFSB_OK;
    hfsb_json_free(&doc);
    return ok;
}

static void nesting_make(input *in, size_t n) {
    fill(&in->text, "", "[", "", n / 2);
    fill(&in->text, "", "]", "", n / 2);
}
static bool nesting_run(input *in) { return parse(in, false, false); }

static void escapes_make(input *in, size_t n) {
    fill(&in->text, "\"", "\\u00e9\\n\\ud83d\\ude00\\\\", "\"", n);
}
static void controls_make(input *in, size_t n) {
    fill(&in->text, "\"", "\\u0001\\\"", "\"", n);
}
static bool round_trip(input *in) { return parse(in, false, true); }

static void broken_make(input *in, size_t n) {
    fill(&in->text, "[", "\"\xc3\xa9\",\n", "x", n);
}
static bool broken_run(input *in) { return !parse(in, false, false); }

static void digits_make(input *in, size_t n) {
    fill(&in->text, "0.", "1234567890", "e-5", n);
}
static void numbers_make(input *in, size_t n) {
    fill(&in->text, "[", "2.2250738585072011e-308,", "1]", n);
}
static void keys_make(input *in, size_t n) {
    put(&in->text, "{");
    number(&in->text, "\"key ", 0, n / 16, "\":1,");
    put(&in->text, "\"last\":0}");
}
static bool keys_run(input *in) { return parse(in, true, true); }

static void same_key_make(input *in, size_t n) {
    fill(&in->text, "{", "\"k\":1,", "\"k\":2}", n);
}

/* ---- text ---- */

static bool filter_run(input *in) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_str          rest = hfsb_buf_str(&in->text);
    bool              ok = f != NULL;
    while (ok && rest.len) { /* as a pipe would cut it */
        hfsb_str piece = hfsb_str_slice(rest, 0, 4096);
        ok = hfsb_text_filter_write(f, piece, &in->out) == HFSB_OK;
        rest = hfsb_str_slice(rest, piece.len, rest.len);
    }
    ok = ok && hfsb_text_filter_finish(f, &in->out) == HFSB_OK;
    hfsb_text_filter_close(f);
    return ok;
}
static void progress_make(input *in, size_t n) {
    fill(&in->text, "", "12% |###   |\r", "done\n", n);
}
static void backspaces_make(input *in, size_t n) {
    fill(&in->text, "", "ab\b\b\x1b[K", "\n", n);
}
static void long_line_make(input *in, size_t n) {
    fill(&in->text, "", "x\xe2\x82\xac", "\r.\n", n);
}
static void open_escape_make(input *in, size_t n) {
    fill(&in->text, "", "\x1b]0;title", "\n", n);
}

static bool truncate_run(input *in) {
    hfsb_text_limit limit = HFSB_INIT;
    hfsb_str        none = HFSB_INIT;
    limit.chars = 1000; /* small, so that it does not show in the count */
    return hfsb_text_truncate(hfsb_buf_str(&in->text), &limit, none,
                              &in->out, NULL, &in->err) == HFSB_OK;
}

static void damaged_make(input *in, size_t n) {
    fill(&in->text, "", "\xf0\x9f\x98\xff\xc3", "", n);
}
static bool repair_run(input *in) {
    return hfsb_utf8_repair(hfsb_buf_str(&in->text), &in->out) == HFSB_OK;
}

/* ---- search ---- */

static void find_make(input *in, size_t n) {
    fill(&in->text, "", "a", "", n);
    fill(&in->old, "", "a", "b", n / 2);
}
static bool find_run(input *in) {
    return hfsb_str_find(hfsb_buf_str(&in->text), hfsb_buf_str(&in->old)) ==
           HFSB_NPOS;
}
static void find_front_make(input *in, size_t n) {
    fill(&in->text, "", "a", "", n);
    fill(&in->old, "b", "a", "", n / 2);
}

/* ---- edit: a text, what is looked for, and what must come of it ---- */

static hfsb_status edit(input *in) {
    hfsb_edit        e = HFSB_INIT;
    hfsb_edit_result result = HFSB_INIT;
    hfsb_status      st;
    if (!in->fresh.len) put(&in->fresh, "something new\n");
    e.old_str = hfsb_buf_str(&in->old);
    e.new_str = hfsb_buf_str(&in->fresh);
    e.replace_all = in->all;
    st = hfsb_edit_apply(hfsb_buf_str(&in->text), &e, 1, NULL, &in->out,
                         &result, &in->err);
    hfsb_edit_result_free(&result);
    return st;
}
static bool edit_done(input *in) { return edit(in) == HFSB_OK; }
static bool edit_missing(input *in) { return edit(in) == HFSB_NOT_FOUND; }
static bool edit_several(input *in) { return edit(in) == HFSB_AMBIGUOUS; }
static bool edit_refused(input *in) {
    hfsb_status st = edit(in);
    return st != HFSB_OK && st != HFSB_NOMEM && st != HFSB_LIMIT;
}

#define LINE "    total += price * count;\n"

static void lines_nowhere_make(input *in, size_t n) {
    fill(&in->text, "", LINE, "", n);
    put(&in->old, "    total -= price / count;\n    return total;\n");
}
static void lines_everywhere_make(input *in, size_t n) {
    fill(&in->text, "", LINE, "", n);
    put(&in->old, LINE);
    in->all = true;
}
static void lines_ambiguous_make(input *in, size_t n) {
    fill(&in->text, "", LINE, "", n);
    put(&in->old, LINE);
}
/* Matches overlap each other everywhere. */
static void lines_overlap_make(input *in, size_t n) {
    fill(&in->text, "", LINE, "", n);
    fill(&in->old, "", LINE, "", 100 * strlen(LINE));
}
/* 10,000 lines that fit everywhere but for the last of them. */
static void block_nowhere_make(input *in, size_t n) {
    fill(&in->text, "", "}\n", "", n);
    fill(&in->old, "", "}\n", "end\n", 20000);
}
static void block_indented_make(input *in, size_t n) {
    fill(&in->text, "", "\tx;\n", "", n);
    fill(&in->old, "", "  x;\n", "  y;\n", 50000);
}
/* 10,000 different lines (fewer in a small file) from the end of the file,
   each followed by blanks, or with another indentation. */
static void last_lines(input *in, size_t n, const char *file_head,
                       const char *old_head, const char *old_tail) {
    unsigned long lines = (unsigned long)(n / (strlen(file_head) + 9));
    unsigned long count = lines / 2 < 10000 ? lines / 2 : 10000;
    number(&in->text, file_head, 0, lines, "\n");
    number(&in->old, old_head, lines - count, count, old_tail);
}
static void block_trailing_make(input *in, size_t n) {
    last_lines(in, n, "line ", "line ", "  \n");
}
static void block_shifted_make(input *in, size_t n) {
    last_lines(in, n, "    line ", "  line ", "\n");
    put(&in->fresh, "  another line\n");
}
static void aaab_make(input *in, size_t n) {
    fill(&in->text, "", "a", "\n", n);
    fill(&in->old, "", "a", "b", n / 2);
}
static void ab_lines_make(input *in, size_t n) {
    fill(&in->text, "", "a\n", "", n);
    fill(&in->old, "", "a\n", "b\n", n / 2);
}
static void blanks_make(input *in, size_t n) {
    fill(&in->text, "a", " ", "b\n", n);
    put(&in->old, "a  \n  c\n");
}
static void blank_lines_make(input *in, size_t n) {
    fill(&in->text, "", "  \n", "", n);
    put(&in->old, "\n\n  x\n\n");
}
static void tokens_make(input *in, size_t n) {
    fill(&in->text, "", "f( a,b );\n", "", n);
    put(&in->old, "f(a, b);\ng(a, b);\n");
}
static void cr_make(input *in, size_t n) {
    fill(&in->text, "", "x\r", "", n);
    put(&in->old, "x\ny\n");
}
/* A refusal whose hint has much to compare. */
static void hint_make(input *in, size_t n) {
    number(&in->text, "    value = compute(", 0, n / 31, ");\n");
    number(&in->old, "    value = computed(", 100, 200, ");\n");
}
static void hint_long_line_make(input *in, size_t n) {
    fill(&in->text, "", "abc, ", "end\n", n);
    fill(&in->old, "", "abc, ", "END\n", n - n / 8);
}
/* Many places on one long line. */
static void long_line_all_make(input *in, size_t n) {
    fill(&in->text, "", "ab", "\n", n);
    put(&in->old, "a");
    put(&in->fresh, "c");
    in->all = true;
}

/* An anchor that overlaps itself, and no rarer one beside it. */
static void anchor_aaa_make(input *in, size_t n) {
    fill(&in->text, "", "a", "\n", n);
    fill(&in->text, "", "b\n", "", 40);
    fill(&in->old, "", "a", "  b", n / 2);
    put(&in->fresh, "c");
}

static void hint_long_old_make(input *in, size_t n) {
    number(&in->text, "value ", 0, n / 15, "\n");
    number(&in->old, "value ", 7, n / 15, " \tx\n");
}
static void whole_file_make(input *in, size_t n) {
    number(&in->text, "value ", 0, n / 15, "\n");
    number(&in->old, "value ", 0, n / 15, "\n");
    number(&in->fresh, "other ", 0, n / 15, "\n");
}

/* ---- HTTP ---- */

/* Reads a stream that comes in pieces of 4 KiB; true when one message is
   over at its end. */
static bool http_run(input *in) {
    hfsb_http_limits limits = HFSB_INIT;
    hfsb_http_parser parser;
    hfsb_http_head   head;
    size_t           room = in->text.len / 4 + 1, at = 0, got = 0, used;
    hfsb_http_field *fields = (hfsb_http_field *)malloc(room * sizeof *fields);
    hfsb_http_event  event = HFSB_HTTP_MORE;
    hfsb_str         piece;
    limits.max_head = limits.max_target = limits.max_fields = (size_t)-1;
    hfsb_http_parser_init(&parser, &limits);
    while (fields && event != HFSB_HTTP_END && event != HFSB_HTTP_BAD &&
           (event != HFSB_HTTP_MORE || got < in->text.len)) {
        if (event == HFSB_HTTP_MORE)
            got = in->text.len - got < 4096 ? in->text.len : got + 4096;
        event = hfsb_http_next(&parser,
                               hfsb_str_make(in->text.ptr + at, got - at),
                               fields, room, &head, &piece, &used, &in->err);
        at += used;
    }
    free(fields);
    return event == HFSB_HTTP_END;
}

#define HTTP_HEAD "PUT / HTTP/1.1\r\nHost: a\r\n"
static void http_field_make(input *in, size_t n) {
    fill(&in->text, HTTP_HEAD "X: ", "value ", "\r\n\r\n", n);
}
static void http_fields_make(input *in, size_t n) {
    fill(&in->text, HTTP_HEAD, "Content-Type: x\r\nConnection: y\r\n",
         "\r\n", n);
}
static void http_list_make(input *in, size_t n) {
    fill(&in->text, HTTP_HEAD "Connection: ", ",, \"a,", "\r\n\r\n", n);
}
static void http_target_make(input *in, size_t n) {
    fill(&in->text, "GET http://", "a@", "b/ HTTP/1.0\r\n\r\n", n);
}
static void http_chunks_make(input *in, size_t n) {
    fill(&in->text, HTTP_HEAD "Transfer-Encoding: chunked\r\n\r\n",
         "1\r\na\r\n", "0\r\n\r\n", n);
}
static void http_trailers_make(input *in, size_t n) {
    fill(&in->text, HTTP_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n",
         "a: b\r\n", "\r\n", n);
}
static void http_query_make(input *in, size_t n) {
    fill(&in->text, "", "%61b=%41&", "a=%41+", n);
}
static bool http_query_run(input *in) {
    return hfsb_http_query_find(hfsb_buf_str(&in->text), "a", &in->out,
                                &in->err) == HFSB_OK;
}

/* ---- frames: pieces of 61 bytes, cut anywhere ---- */

static bool ws_run(input *in) {
    hfsbi_ws_reader reader = HFSB_INIT;
    hfsbi_ws_frame  frame;
    hfsbi_ws_event  event = HFSBI_WS_EVENT_MORE;
    size_t          at = 0, got = 0, used;
    reader.client = true;
    reader.max = (size_t)-1;
    while (event != HFSBI_WS_EVENT_BAD &&
           (event != HFSBI_WS_EVENT_MORE || got < in->text.len)) {
        if (event == HFSBI_WS_EVENT_MORE)
            got = in->text.len - got < 61 ? in->text.len : got + 61;
        event = hfsbi_ws_next(&reader, in->text.ptr + at, got - at, &frame,
                              &used, &in->err);
        at += used;
    }
    return event == HFSBI_WS_EVENT_MORE;
}
static void ws_empty_make(input *in, size_t n) { /* empty fragments */
    fill(&in->text, "12", "12", "", n);
    memset(in->text.ptr, 0, in->text.len);
    in->text.ptr[0] = HFSBI_WS_TEXT;
}
static void ws_pings_make(input *in, size_t n) {
    fill(&in->text, "\x01\x01x", "\x89\x05hello", "", n);
}
static void ws_text_make(input *in, size_t n) { /* a text in one frame */
    size_t   i, head = HFSBI_WS_HEAD - 4;
    fill(&in->text, "1234567890a", "\xe2\x82\xac" "b", "", n);
    in->text.ptr[0] = HFSBI_WS_TEXT;
    in->text.ptr[1] = 127;
    for (i = 0; i < 8; i++)
        in->text.ptr[2 + i] =
            (char)((unsigned long long)(in->text.len - head) >> (56 - 8 * i));
}

static bool multipart_run(input *in) {
    hfsbi_multipart       m = HFSB_INIT;
    hfsbi_multipart_event event = HFSBI_MULTIPART_MORE;
    size_t                at = 0, got = 0, used;
    hfsb_str              data;
    m.max_head = in->text.len;
    m.max_parts = m.max_name = m.max_around = (size_t)-1;
    if (hfsbi_multipart_begin(
            &m, HFSB_LIT("multipart/form-data; boundary=bbbbbbbbbbb"),
            &in->err) != HFSB_OK)
        return false;
    while (event < HFSBI_MULTIPART_END) {
        if (event == HFSBI_MULTIPART_MORE)
            got = in->text.len - got < 61 ? in->text.len : got + 61;
        event = hfsbi_multipart_next(
            &m, hfsb_str_make(in->text.ptr + at, got - at),
            got == in->text.len, &data, &used, &in->err);
        at += used;
    }
    hfsbi_multipart_free(&m);
    return event == HFSBI_MULTIPART_END;
}
#define FORM_LINE "--bbbbbbbbbbb\r\n"
#define FORM_NAME "Content-Disposition: form-data; name=a"
#define FORM_END  "\r\n--bbbbbbbbbbb--"
static void multipart_cr_make(input *in, size_t n) {
    fill(&in->text, FORM_LINE FORM_NAME "\r\n\r\n", "\r", FORM_END, n);
}
static void multipart_near_make(input *in, size_t n) {
    fill(&in->text, FORM_LINE FORM_NAME "\r\n\r\n", "\r\n--bbbbbbbbbb",
         FORM_END, n);
}
static void multipart_parts_make(input *in, size_t n) {
    fill(&in->text, "", FORM_LINE FORM_NAME "\r\n\r\n", FORM_END, n);
}
static void multipart_fields_make(input *in, size_t n) {
    fill(&in->text, FORM_LINE FORM_NAME "\r\n", "A: b\r\n",
         "\r\n" FORM_END, n);
}
static void multipart_params_make(input *in, size_t n) {
    fill(&in->text, FORM_LINE FORM_NAME, "; x=\"\\\"\";;",
         "\r\n\r\n" FORM_END, n);
}
static void multipart_name_make(input *in, size_t n) {
    fill(&in->text, FORM_LINE FORM_NAME "; filename*=UTF-8''", "%e2%82%ac",
         "\r\n\r\n" FORM_END, n);
}
static void multipart_preamble_make(input *in, size_t n) {
    fill(&in->text, "", "\r\n--b\r", FORM_END, n);
}

static bool connect_run(input *in) {
    hfsbi_connect_reader reader = HFSB_INIT;
    hfsbi_connect_event  event = HFSBI_CONNECT_MORE;
    hfsbi_connect_piece  piece;
    size_t               at = 0, got = 0, used;
    while (event < HFSBI_CONNECT_END) {
        if (event == HFSBI_CONNECT_MORE)
            got = in->text.len - got < 61 ? in->text.len : got + 61;
        event = hfsbi_connect_next(
            &reader, hfsb_str_make(in->text.ptr + at, got - at),
            got == in->text.len, &piece, &used, &in->err);
        at += used;
    }
    return event == HFSBI_CONNECT_END;
}
static void connect_empty_make(input *in, size_t n) {
    fill(&in->text, "", "12345", "", n);
    memset(in->text.ptr, 0, in->text.len);
}

/* ---- regular expressions: the pattern is in `old` ---- */

static bool regex_missing(input *in) {
    hfsb_regex *re;
    size_t      begin, end, from = 0, count = 0;
    hfsb_str    text = hfsb_buf_str(&in->text);
    if (hfsb_regex_open(hfsb_buf_str(&in->old), NULL, &re, &in->err) !=
        HFSB_OK)
        return false;
    while (hfsb_regex_line(re, text, from, &begin, &end)) {
        count++;
        from = end + 1;
    }
    hfsb_regex_close(re);
    return count == 0;
}
/* The place of the match, by simulation. */
static bool regex_find_run(input *in) {
    hfsb_regex *re;
    size_t      begin, end;
    bool        found;
    if (hfsb_regex_open(hfsb_buf_str(&in->old), NULL, &re, &in->err) !=
        HFSB_OK)
        return false;
    found = hfsb_regex_find(re, hfsb_buf_str(&in->text), 0, &begin, &end);
    hfsb_regex_close(re);
    return !found;
}
static void regex_stars_make(input *in, size_t n) {
    fill(&in->text, "", "a", "\n", n);
    put(&in->old, "(a*)*[bc]");
}
/* Simulation is slower: less text. */
static void regex_stars_find_make(input *in, size_t n) {
    regex_stars_make(in, n / 16);
}
static void regex_either_make(input *in, size_t n) {
    fill(&in->text, "", "a", "b\n", n);
    put(&in->old, "(a|aa)+$");
}
static void regex_dots_make(input *in, size_t n) {
    fill(&in->text, "", "x=", "\n", n);
    put(&in->old, ".*.*.*=.*=.*[qz]$");
}
static void regex_dots_find_make(input *in, size_t n) {
    regex_dots_make(in, n / 16);
}
/* More sets of states than the table can hold. */
static void regex_thrash_make(input *in, size_t n) {
    uint32_t x = 1;
    size_t   i;
    n /= 16;
    fill(&in->text, "", "0", "\n", n);
    for (i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        in->text.ptr[i] = i % 4096 == 4095 ? '\n' : "ab"[x >> 31];
    }
    put(&in->old, "a.{24}[yz]");
}
/* The literal is on every line, and no line matches. */
static void regex_literal_make(input *in, size_t n) {
    fill(&in->text, "", "the literal\n", "", n);
    put(&in->old, "literal.*x");
}
static void regex_words_make(input *in, size_t n) {
    fill(&in->text, "", "\xc3\xa9t\xc3\xa9 ", "\n", n / 16);
    put(&in->old, "\\b[x-z]+\\b");
}
static bool glob_run(input *in) {
    hfsb_glob *glob;
    bool       match;
    if (hfsb_glob_open(hfsb_buf_str(&in->old), NULL, &glob, &in->err) !=
        HFSB_OK)
        return false;
    match = hfsb_glob_match(glob, hfsb_buf_str(&in->text));
    hfsb_glob_close(glob);
    return !match;
}
static void glob_stars_make(input *in, size_t n) {
    fill(&in->text, "", "a/ab", "", n);
    put(&in->old, "**/a*a*a*/**/{a,ab}*{b,a}*/**/x");
}

/* ---- the table ---- */

typedef struct growth_case {
    const char *name;
    void (*make)(input *in, size_t n);
    bool (*run)(input *in); /* true: the result was the expected kind */
} growth_case;

static const growth_case cases[] = {
    {"json_nesting", nesting_make, nesting_run},
    {"json_escapes", escapes_make, round_trip},
    {"json_controls", controls_make, round_trip},
    {"json_error_at_end", broken_make, broken_run},
    {"json_one_long_number", digits_make, round_trip},
    {"json_hard_numbers", numbers_make, round_trip},
    {"json_unique_keys", keys_make, keys_run},
    {"json_same_key", same_key_make, round_trip},
    {"text_progress", progress_make, filter_run},
    {"text_backspaces", backspaces_make, filter_run},
    {"text_long_line", long_line_make, filter_run},
    {"text_open_escape", open_escape_make, filter_run},
    {"text_truncate", long_line_make, truncate_run},
    {"utf8_repair", damaged_make, repair_run},
    {"find_aaab", find_make, find_run},
    {"find_baaa", find_front_make, find_run},
    {"edit_lines_nowhere", lines_nowhere_make, edit_missing},
    {"edit_lines_everywhere", lines_everywhere_make, edit_done},
    {"edit_lines_ambiguous", lines_ambiguous_make, edit_several},
    {"edit_lines_overlap", lines_overlap_make, edit_refused},
    {"edit_block_nowhere", block_nowhere_make, edit_missing},
    {"edit_block_indented", block_indented_make, edit_missing},
    {"edit_block_trailing", block_trailing_make, edit_done},
    {"edit_block_shifted", block_shifted_make, edit_done},
    {"edit_aaab", aaab_make, edit_missing},
    {"edit_ab_lines", ab_lines_make, edit_missing},
    {"edit_blanks", blanks_make, edit_missing},
    {"edit_blank_lines", blank_lines_make, edit_missing},
    {"edit_tokens", tokens_make, edit_missing},
    {"edit_cr", cr_make, edit_missing},
    {"edit_hint", hint_make, edit_missing},
    {"edit_hint_long_line", hint_long_line_make, edit_missing},
    {"edit_hint_long_old", hint_long_old_make, edit_missing},
    {"edit_whole_file", whole_file_make, edit_done},
    {"edit_long_line_all", long_line_all_make, edit_done},
    {"edit_anchor_aaa", anchor_aaa_make, edit_missing},
    {"http_field", http_field_make, http_run},
    {"http_fields", http_fields_make, http_run},
    {"http_list", http_list_make, http_run},
    {"http_target", http_target_make, http_run},
    {"http_chunks", http_chunks_make, http_run},
    {"http_trailers", http_trailers_make, http_run},
    {"http_query", http_query_make, http_query_run},
    {"ws_empty", ws_empty_make, ws_run},
    {"ws_pings", ws_pings_make, ws_run},
    {"ws_text", ws_text_make, ws_run},
    {"multipart_cr", multipart_cr_make, multipart_run},
    {"multipart_near", multipart_near_make, multipart_run},
    {"multipart_parts", multipart_parts_make, multipart_run},
    {"multipart_fields", multipart_fields_make, multipart_run},
    {"multipart_params", multipart_params_make, multipart_run},
    {"multipart_name", multipart_name_make, multipart_run},
    {"multipart_preamble", multipart_preamble_make, multipart_run},
    {"connect_empty", connect_empty_make, connect_run},
    {"regex_stars", regex_stars_make, regex_missing},
    {"regex_stars_find", regex_stars_find_make, regex_find_run},
    {"regex_either", regex_either_make, regex_missing},
    {"regex_dots", regex_dots_make, regex_missing},
    {"regex_dots_find", regex_dots_find_make, regex_find_run},
    {"regex_thrash", regex_thrash_make, regex_missing},
    {"regex_literal", regex_literal_make, regex_missing},
    {"regex_words", regex_words_make, regex_missing},
    {"glob_stars", glob_stars_make, glob_run},
};
#define CASES (sizeof cases / sizeof cases[0])

int main(int argc, char **argv) {
    static input in;
    size_t       i;
    bool         ok;
    if (argc < 3) {
        for (i = 0; i < CASES; i++) printf("%s\n", cases[i].name);
        return argc == 1 ? 0 : 2;
    }
    for (i = 0; i < CASES && strcmp(cases[i].name, argv[1]); i++) continue;
    if (i == CASES) return 2;
    cases[i].make(&in, (size_t)strtoul(argv[2], NULL, 10));
    ok = argc > 3 || cases[i].run(&in);
    hfsb_buf_free(&in.text);
    hfsb_buf_free(&in.old);
    hfsb_buf_free(&in.fresh);
    hfsb_buf_free(&in.out);
    if (!ok)
        fprintf(stderr, "%s: not the expected result, but: %s: %s\n",
                argv[1], hfsb_status_text(in.err.code), in.err.msg);
    return ok ? 0 : 1;
}
