/* test_mcp_show.c - the results of tools as blocks of MCP. */
#define T_SERVER
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp_private.h"
#endif

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define MIB         ((size_t)1024 * 1024)

static hfsb_tool_result made(bool success, const char *output,
                             const char *error, const char *extra) {
    hfsb_tool_result r = HFSB_INIT;
    r.success = success;
    T_CHECK(hfsb_buf_append(&r.output, hfsb_cstr(output)) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&r.error, hfsb_cstr(error)) == HFSB_OK);
    if (*extra)
        T_CHECK(hfsb_json_parse(hfsb_cstr(extra), NULL, &r.fields, NULL) ==
                HFSB_OK);
    return r;
}

/* The blocks, parsed; *doc is to be freed. */
static const hfsb_json_value *parsed(const hfsbi_mcp_blocks *b,
                                     hfsb_json_doc          *doc) {
    hfsb_buf text = HFSB_INIT;
    memset(doc, 0, sizeof *doc);
    T_CHECK(hfsb_buf_printf(&text, "[%s]", b->json.len ? b->json.ptr : "") ==
            HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_find_byte(hfsb_buf_str(&text), '\n') == HFSB_NPOS);
    hfsb_buf_free(&text);
    return doc->root;
}

static hfsb_str member(const hfsb_json_value *block, const char *key) {
    return hfsb_json_str(hfsb_json_get(block, key), HFSB_LIT("(none)"));
}

/* The text of the only block, into *out. */
static void text_of(hfsbi_mcp_blocks *b, hfsb_buf *out) {
    hfsb_json_doc          doc;
    const hfsb_json_value *list = parsed(b, &doc);
    T_CHECK(b->status == HFSB_OK && hfsb_json_count(list) == 1);
    T_STR(member(hfsb_json_at(list, 0), "type"), "text");
    hfsb_buf_truncate(out, 0);
    T_CHECK(hfsb_buf_append(out, member(hfsb_json_at(list, 0), "text")) ==
            HFSB_OK);
    hfsb_json_free(&doc);
    hfsb_buf_free(&b->json);
}

static void show(const char *tool, hfsb_tool_result *r, hfsb_buf *out) {
    hfsbi_mcp_blocks b = HFSB_INIT;
    hfsbi_mcp_show(hfsb_cstr(tool), r, &b);
    T_CHECK(b.is_error == !r->success);
    text_of(&b, out);
    hfsb_tool_result_free(r);
}

#define LINES(first, last) "\"first_line\":" #first ",\"last_line\":" #last

static void results_become_text_with_a_footer(void) {
    static const struct {
        const char *tool;
        bool        success;
        const char *output, *error, *extra, *shown;
    } rows[] = {
        {"bash", true, "hello\n", "", "", "hello\n"},
        {"bash", true, "", "", "", "(no output)"},
        {"bash", false, "", "Exit code 1", "{}", "ERROR: Exit code 1"},
        {"bash", true, "x", "", "{\"spill_path\":\"/tmp/x\"}",
         "x\n[full output saved to /tmp/x]"},
        {"bash", true, "x", "",
         "{\"spill_path\":\"/tmp/x\",\"left_running\":[{\"pid\":1}]}",
         "x\n[left running: 1 (?)]\n[full output saved to /tmp/x]"},
        {"bash", true, "x", "", "{\"notes\":\"(a note)\"}", "x\n(a note)"},
        {"bash", false, "a\n", "Exit code 1", "{}",
         "a\n\n\nERROR: Exit code 1"},
        {"read", true, "x", "", "{\"data\":\"aGk=\"}", "x"},
        {"bash", true, "x", "",
         "{\"left_running\":[{\"pid\":12,\"command\":\"sleep 60\"},"
         "{\"pid\":13,\"command\":\"a \\u00e9\"}]}",
         "x\n[left running: 12 (sleep 60), 13 (a \xC3\xA9)]"},
        {"bash", true, "x\n", "", "{\"left_running\":[]}", "x\n"},
        {"bash", false, "x", "Exit code 2",
         "{\"left_running\":[{\"pid\":12,\"command\":\"s\"}]}",
         "x\n\nERROR: Exit code 2\n[left running: 12 (s)]"},
        {"bash", true, "x", "",
         "{\"left_running\":[{\"pid\":1},{\"pid\":2},{\"pid\":3},{\"pid\":4},"
         "{\"pid\":5},{\"pid\":6},{\"pid\":7},{\"pid\":8},{\"pid\":9},"
         "{\"pid\":10}]}",
         "x\n[left running: 1 (?), 2 (?), 3 (?), 4 (?), 5 (?), 6 (?), 7 (?), "
         "8 (?) and 2 more]"},
        /* read: which lines, when that is not all */
        {"read", true, "1\ta\n2\tb", "", "{\"total_lines\":2," LINES(1, 2) "}",
         "1\ta\n2\tb"},
        {"read", true, "1\ta\n2\tb", "",
         "{\"total_lines\":9,\"next_offset\":3," LINES(1, 2) "}",
         "1\ta\n2\tb\n[lines 1-2 of 9; read on with offset=3]"},
        {"read", true, "1\ta\n2\tb", "", "{\"next_offset\":3," LINES(1, 2) "}",
         "1\ta\n2\tb\n[lines 1-2; read on with offset=3]"},
        {"read", true, "2\tb", "", "{\"total_lines\":2," LINES(2, 2) "}",
         "2\tb\n[lines 2-2 of 2]"},
        {"read", true, "3\ta\n4\tb", "", "{\"total_lines\":4," LINES(3, 4) "}",
         "3\ta\n4\tb\n[lines 3-4 of 4]"},
        {"read", true, "3\ta\n4\t7\tb\n(bytes that are not UTF-8)", "",
         "{\"total_lines\":5,\"next_offset\":5," LINES(3, 4) "}",
         "3\ta\n4\t7\tb\n(bytes that are not UTF-8)\n[lines 3-4 of 5; read on "
         "with offset=5]"},
        {"read", true, "", "", "{\"total_lines\":0}",
         "(no output)\n[the file is empty: 0 lines]"},
        {"read", true, "", "", "{\"total_lines\":7}",
         "(no output)\n[past the end: the file has 7 lines]"},
        {"read", true, "8\ta", "", "{\"notes\":\"(a note)\"," LINES(8, 8) "}",
         "8\ta\n(a note)\n[lines 8-8]"},
        /* the numbers in the text count for nothing */
        {"read", true, "7\ta\n8\tb", "", "{\"total_lines\":8}", "7\ta\n8\tb"},
        {"read", true, "1\ta", "", "", "1\ta"},
        {"read", false, "", "File not found: x", "",
         "ERROR: File not found: x"},
        /* bash_output: whether it runs, and where to go on */
        {"bash_output", true, "a\n", "",
         "{\"next_offset\":2,\"running\":true,\"exit_code\":null}",
         "a\n[running; next_offset=2]"},
        {"bash_output", true, "a", "",
         "{\"next_offset\":0,\"running\":true,\"exit_code\":null}",
         "a\n[running; next_offset=0]"},
        {"bash_output", true, "", "",
         "{\"next_offset\":5,\"running\":false,\"exit_code\":0,"
         "\"signal\":null,\"timed_out\":false}",
         "(no output)\n[ended, exit code 0; next_offset=5]"},
        {"bash_output", true, "b", "",
         "{\"next_offset\":1,\"running\":false,\"exit_code\":null,"
         "\"signal\":15,\"timed_out\":false}",
         "b\n[ended by signal 15; next_offset=1]"},
        {"bash_output", true, "b", "",
         "{\"next_offset\":1,\"running\":false,\"exit_code\":null,"
         "\"signal\":15,\"timed_out\":true}",
         "b\n[ended by its timeout; next_offset=1]"},
        {"bash_output", true, "b", "",
         "{\"next_offset\":1,\"running\":false,\"exit_code\":null,"
         "\"signal\":15,\"signal_name\":\"SIGTERM\"}",
         "b\n[killed by SIGTERM; next_offset=1]"},
        {"bash_input", true, "a\n", "",
         "{\"offset\":0,\"next_offset\":2,\"running\":true}",
         "a\n[running; next_offset=2]"},
        /* the list of jobs */
        {"bash_output", true, "b", "", "", "b"},
        {"bash", true, "Started", "", "{\"id\":\"j\",\"running\":true}",
         "Started"},
        {"bash", false, "", "Exit code -11",
         "{\"exit_code\":null,\"signal\":11,\"signal_name\":\"SIGSEGV\"}",
         "ERROR: Exit code -11 (killed by SIGSEGV)"},
        {"bash_output", false, "", "No such job: x", "",
         "ERROR: No such job: x"},
        {"grep", true, "a:1:x", "", "{\"truncated\":true}", "a:1:x"},
    };
    size_t   i;
    hfsb_buf text = HFSB_INIT;
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_tool_result r = made(rows[i].success, rows[i].output,
                                  rows[i].error, rows[i].extra);
        show(rows[i].tool, &r, &text);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(rows[i].shown)));
        if (!hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(rows[i].shown)))
            printf("  is   %s\n  want %s\n", text.ptr, rows[i].shown);
    }
    hfsb_buf_free(&text);
}

static void invalid_utf8_is_repaired(void) {
    hfsb_tool_result r = made(true, "a\xFF\x01\r\n", "", "");
    hfsb_buf         text = HFSB_INIT;
    show("bash", &r, &text);
    T_STR(text, "a\xEF\xBF\xBD\x01\r\n");
    hfsb_buf_free(&text);
}

/* ---- texts that are too long ---- */

/* The end of text, from the last line feed on. */
static hfsb_str footer(const hfsb_buf *text) {
    size_t at = text->len;
    while (at > 0 && text->ptr[at - 1] != '\n') at--;
    return hfsb_str_slice(hfsb_buf_str(text), at, text->len);
}

static void a_long_read_names_the_next_offset(void) {
    hfsb_tool_result r =
        made(true, "", "", "{\"total_lines\":3000," LINES(1, 3000) "}");
    hfsb_buf         text = HFSB_INIT;
    int              i;
    for (i = 1; i <= 3000; i++) /* 25 characters, most in several bytes */
        T_CHECK(hfsb_buf_printf(&r.output,
                                "%s%04d\t\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                                "0123456789012345", i > 1 ? "\n" : "", i) ==
                HFSB_OK);
    show("read", &r, &text);
    T_STR(footer(&text), "[lines 1-653 of 3000; read on with offset=654]");
    T_CHECK(text.len < 20000);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&text), HFSB_LIT("\n653\t")) ==
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&text), HFSB_LIT("\n0653\t")) !=
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&text), HFSB_LIT("\n0654\t")) ==
            HFSB_NPOS);
    hfsb_buf_free(&text);
}

/* The first line may be too long; a server may not report the lines. */
static void a_cut_read_names_the_lines_it_knows(void) {
    static const struct {
        const char *extra, *before, *footer;
    } rows[] = {
        {"{" LINES(5, 6) "}", "",
         "[lines 5-5; read on with offset=6]"},
        {"{" LINES(5, 7) "}", "5\ta\n6\tb\n",
         "[lines 5-6; read on with offset=7]"},
        {"{" LINES(5, 5) "}", "5\ta\n(a note)\n",
         "[lines 5-5; read on with offset=6]"},
        {"", "5\ta\n",
         "[cut: the first 4 of 50004 characters; ask for less]"},
    };
    hfsb_buf text = HFSB_INIT;
    size_t   i;
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_tool_result r = made(true, rows[i].before, "", rows[i].extra);
        t_repeat(&r.output, "x", 50000);
        show("read", &r, &text);
        T_CHECK(hfsb_str_equal(footer(&text), hfsb_cstr(rows[i].footer)));
    }
    hfsb_buf_free(&text);
}

/* A result has at most 20,000 bytes; 400 are kept for footers. */
static void a_long_text_is_cut_between_characters(void) {
    hfsb_tool_result r = made(true, "", "", "");
    hfsb_buf         text = HFSB_INIT;
    t_repeat(&r.output, "\xF0\x9F\x98\x80", 4900);
    show("glob", &r, &text);
    T_CHECK(text.len == 19600);
    r = made(true, "", "", "");
    t_repeat(&r.output, "\xF0\x9F\x98\x80", 4901);
    show("glob", &r, &text);
    T_STR(footer(&text),
          "[cut: the first 4900 of 4901 characters; ask for less]");
    T_CHECK(text.len == 19600 + 1 + footer(&text).len);
    r = made(true, "", "", ""); /* one line for each ten bytes */
    t_repeat(&r.output, "\n", 1960);
    show("glob", &r, &text);
    T_CHECK(text.len == 1960);
    r = made(true, "", "", "");
    t_repeat(&r.output, "\n", 1961);
    show("glob", &r, &text);
    T_STR(footer(&text),
          "[cut: the first 1960 of 1961 characters; ask for less]");
    r = made(false, "", "", "");
    t_repeat(&r.output, "line\n", 10000);
    t_repeat(&r.error, "e", 5000);
    show("glob", &r, &text);
    T_CHECK(text.len > 11000 && text.len < 20000);
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&text), HFSB_LIT("eeee")));
    hfsb_buf_free(&text);
}

static void a_long_reason_leaves_room_for_the_output(void) {
    hfsb_tool_result r = made(false, "", "", "");
    hfsbi_mcp_blocks b = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    t_repeat(&r.output, "a line of output\n", 1000);
    t_repeat(&r.error, "e", 5000);
    b.max = 4000;
    hfsbi_mcp_show(HFSB_LIT("bash"), &r, &b);
    text_of(&b, &text);
    T_CHECK(text.len > 3000 && text.len <= 4000);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&text), HFSB_LIT("a line of")));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&text), HFSB_LIT("eeee")));
    hfsb_tool_result_free(&r);
    hfsb_buf_free(&text);
}

#define SAVED "\"spill_path\":\"/tmp/x\""
#define USE   " \xE2\x80\x94 use the read tool with offset/limit to inspect " \
              "specific sections.\n"

/* A quarter from the start, the rest from the end, in whole lines; the count
   is exact, and a failure shows what a success shows. */
static void a_command_loses_the_middle_of_its_output(void) {
    static const struct {
        bool        success;
        const char *extra, *marker, *end;
    } rows[] = {
        {true, "", "...\nline\n", "line\nlast\n"},
        {false, "", "...\nline\n", "last\n\n\nERROR: Exit code 2"},
        {false, "{" SAVED "}", "...\nFull output saved to /tmp/x" USE "line\n",
         "last\n\n\nERROR: Exit code 2\n[full output saved to /tmp/x]"},
        {true, "{" SAVED "}", "...\nFull output saved to /tmp/x" USE "line\n",
         "last\n[full output saved to /tmp/x]"},
        {true, "{" SAVED ",\"spill_bytes\":5000}",
         "...\nOnly the first 5,000 bytes of output saved to /tmp/x" USE
         "line\n",
         "last\n[first 5000 bytes of output saved to /tmp/x]"},
        {false, "{" SAVED ",\"exit_code\":1,\"exit_meaning\":\"no match\"}",
         "...\nFull output saved to /tmp/x" USE "line\n",
         "last\n[exit code 1: no match]\n[full output saved to /tmp/x]"},
        {true, "{\"id\":\"j-1\"}",
         "...\n[read on with bash_output id=j-1 offset=", "line\nlast\n"},
    };
    hfsb_buf text = HFSB_INIT;
    size_t   i;
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_tool_result r = made(rows[i].success, "first\n",
                                  rows[i].success ? "" : "Exit code 2",
                                  rows[i].extra);
        hfsbi_mcp_blocks b = HFSB_INIT;
        hfsb_str         all;
        size_t           head, tail, at;
        t_repeat(&r.output, "line\n", 8999);
        t_repeat(&r.output, "last\n", 1);
        hfsbi_mcp_show(HFSB_LIT("bash"), &r, &b);
        T_CHECK(b.is_error == (!rows[i].success &&
                               !strstr(rows[i].extra, "meaning")));
        text_of(&b, &text);
        all = hfsb_buf_str(&text);
        T_CHECK(all.len > 9000 && all.len < 20000);
        T_CHECK(hfsb_str_starts(all, HFSB_LIT("first\nline\n")));
        at = hfsb_str_find(all, hfsb_cstr(rows[i].marker));
        T_CHECK(at != HFSB_NPOS && hfsb_str_ends(all, hfsb_cstr(rows[i].end)));
        if (at == HFSB_NPOS) printf("  %s\n", rows[i].marker);
        /* lines bound it: 490 of some 1,950 at the start */
        head = hfsb_str_find(all, HFSB_LIT("\n\n\n... ("));
        T_CHECK(head != HFSB_NPOS);
        head++;
        T_CHECK(head == 6 + 5 * (head / 5 - 1));
        tail = (size_t)(strstr(all.ptr, "last\n") + 5 -
                        strstr(strstr(all.ptr, "... ("), "\nline\n") - 1);
        T_CHECK(head / 5 + tail / 5 > 1900 && head / 5 + tail / 5 <= 1961);
        hfsb_tool_result_free(&r);
    }
    hfsb_buf_free(&text);
}

/* The middle was cut by the tool already: the count is that of all. */
static void a_second_cut_counts_what_the_first_left_out(void) {
    hfsb_tool_result r =
        made(false, "", "Exit code 1",
             "{" SAVED ",\"truncated\":true,\"total_chars\":1000000}");
    hfsb_buf text = HFSB_INIT;
    t_repeat(&r.output, "0123456789", 625);
    t_repeat(&r.output, "\n\n... (975,000 of 1,000,000 chars omitted) ...\n"
                        "Full output saved to /tmp/x\n", 1);
    t_repeat(&r.output, "abcdefghij", 1875);
    show("bash", &r, &text);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&text),
                          HFSB_LIT("5\n\n... (980,454 of 1,000,000 chars "
                                   "omitted, showing first 4,886 + last "
                                   "14,660) ...\nFull output saved to /tmp/x"
                                   USE)) != HFSB_NPOS ||
            !printf("  %.*s\n", 200, strstr(text.ptr, "... (")));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&text), HFSB_LIT("975,000")) ==
            HFSB_NPOS);
    hfsb_buf_free(&text);
}

/* How often text contains part. */
static size_t count_of(const hfsb_buf *text, hfsb_str part) {
    hfsb_str rest = hfsb_buf_str(text);
    size_t   n = 0, at;
    while ((at = hfsb_str_find(rest, part)) != HFSB_NPOS) {
        rest = hfsb_str_slice(rest, at + part.len, rest.len);
        n++;
    }
    return n;
}

/* With more room than the tool showed, its own cut stays; with a little less
   nothing of its marker is taken for output. */
static void the_cut_of_a_tool_is_not_shown_twice(void) {
    hfsb_buf text = HFSB_INIT;
    size_t   max, whole = 0;
    for (max = 25000; max < 26000; max += 13) {
        hfsb_tool_result r = made(
            true, "", "",
            "{" SAVED ",\"truncated\":true,\"total_chars\":1000000}");
        hfsbi_mcp_blocks b = HFSB_INIT;
        t_repeat(&r.output, "0123456789", 625);
        t_repeat(&r.output, "\n\n... (975,000 of 1,000,000 chars omitted, "
                            "showing first 6,250 + last 18,750) ...\nFull "
                            "output saved to /tmp/x" USE, 1);
        t_repeat(&r.output, "abcdefghij", 1875);
        b.max = max;
        hfsbi_mcp_show(HFSB_LIT("bash"), &r, &b);
        text_of(&b, &text);
        T_CHECK(text.len < max);
        T_CHECK(count_of(&text, HFSB_LIT("... (")) == 1);
        T_CHECK(count_of(&text, HFSB_LIT("Full output")) == 1);
        whole += count_of(&text, HFSB_LIT("(975,000"));
        hfsb_tool_result_free(&r);
    }
    T_CHECK(whole > 10 && whole < 60);
    hfsb_buf_free(&text);
}

/* The log is `lines` of ten bytes; then a line that is not finished, then a
   note. offset is where the log begins, -1: not reported. */
static void check_offset(size_t lines, const char *rest, long long offset,
                         unsigned long long next, const char *foot) {
    hfsb_tool_result r = made(true, "", "", "");
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    t_repeat(&r.output, "123456789\n", lines);
    t_repeat(&r.output, rest, 1);
    hfsb_json_writer_init_doc(&w, &r.fields);
    hfsb_json_put_object(&w);
    if (offset >= 0) hfsb_json_put_member_int(&w, "offset", offset);
    hfsb_json_put_member_int(&w, "next_offset", (long long)next);
    hfsb_json_put_member_bool(&w, "running", true);
    hfsb_json_put_end(&w);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    show("bash_output", &r, &text);
    T_CHECK(hfsb_str_equal(footer(&text), hfsb_cstr(foot)));
    if (!hfsb_str_equal(footer(&text), hfsb_cstr(foot)))
        printf("  is %s want %s\n", footer(&text).ptr, foot);
    hfsb_buf_free(&text);
}

static void next_offset_points_to_where_output_was_cut(void) {
    check_offset(1960, "", 100, 19700, "[running; next_offset=19700]");
    check_offset(1961, "", 100, 19710, "[running; next_offset=19700]");
    check_offset(6000, "", 100, 60100, "[running; next_offset=19700]");
    check_offset(6000, "unfinished", 100, 60100,
                 "[running; next_offset=19700]");
    check_offset(6000, "unfinished", -1, 60100,
                 "[running; next_offset=19700]");
    check_offset(6000, "", -1, 60100, "[running; next_offset=19700]");
    check_offset(6000, "", -1, 0, "[running; next_offset=0]");
    /* all of the log is shown, not all of the line after it */
    check_offset(1959, "12345678901234567890", 5, 19595,
                 "[running; next_offset=19595]");
}

static void next_offset_may_point_into_a_line(void) {
    hfsb_tool_result r =
        made(true, "", "",
             "{\"offset\":7,\"next_offset\":90007,\"running\":true}");
    hfsb_buf text = HFSB_INIT;
    t_repeat(&r.output, "\xC3\xA9", 50000);
    show("bash_output", &r, &text);
    T_STR(footer(&text), "[running; next_offset=19607]");
    T_CHECK(text.len == 19600 + 1 + footer(&text).len);
    hfsb_buf_free(&text);
}

/* ---- a command that goes on ---- */

static void a_running_command_names_its_job(void) {
    static const struct {
        bool        success;
        const char *output, *extra, *shown;
    } rows[] = {
        {true, "a\nb", "{\"offset\":0,\"next_offset\":2,\"running\":true}",
         "Still running after 50 s as job j-1. Output so far:\na\nb\n[poll "
         "with bash_output id=j-1 offset=2 wait_ms=45000; end it with kill "
         "id=j-1]"},
        {true, "", "{\"next_offset\":0,\"running\":true}",
         "Still running after 50 s as job j-1. No output so far.\n[poll with "
         "bash_output id=j-1 offset=0 wait_ms=45000; end it with kill "
         "id=j-1]"},
        {false, "", "",
         "Still running after 50 s as job j-1. No output so far.\n[poll with "
         "bash_output id=j-1 offset=0 wait_ms=45000; end it with kill "
         "id=j-1]"}};
    size_t   i;
    hfsb_buf text = HFSB_INIT;
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_tool_result r = made(rows[i].success, rows[i].output,
                                  rows[i].success ? "" : "gone",
                                  rows[i].extra);
        hfsbi_mcp_blocks b = HFSB_INIT;
        hfsbi_mcp_show_running(HFSB_LIT("j-1"), 50, &r, &b);
        T_CHECK(!b.is_error);
        text_of(&b, &text);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(rows[i].shown)));
        hfsb_tool_result_free(&r);
    }
    hfsb_buf_free(&text);
}

static void long_output_of_a_running_command_is_cut(void) {
    hfsb_tool_result r =
        made(true, "", "",
             "{\"offset\":0,\"next_offset\":60000,\"running\":true}");
    hfsbi_mcp_blocks b = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    t_repeat(&r.output, "123456789\n", 6000);
    hfsbi_mcp_show_running(HFSB_LIT("j"), 50, &r, &b);
    text_of(&b, &text);
    T_CHECK(hfsb_str_find(footer(&text), HFSB_LIT("offset=19590 ")) !=
            HFSB_NPOS);
    T_CHECK(text.len < 20000);
    hfsb_tool_result_free(&r);
    hfsb_buf_free(&text);
}

static void the_last_line_with_text_is_found(void) {
    static const struct {
        const char *text, *line;
    } rows[] = {{"", ""},
                {"\n\n", ""},
                {" \t\r\n", ""},
                {"a", "a"},
                {"a\nb", "b"},
                {"a\nb\n", "b"},
                {"a\n b \r\n\n \n", "b"},
                {"\na\n", "a"}};
    hfsb_buf text = HFSB_INIT;
    size_t   i;
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_str exact = t_exact(rows[i].text, strlen(rows[i].text));
        T_CHECK(hfsb_str_equal(hfsbi_mcp_last_line(exact),
                               hfsb_cstr(rows[i].line)));
        t_drop(exact);
    }
    t_repeat(&text, "\xC3\xA9", 121);
    T_CHECK(hfsbi_mcp_last_line(hfsb_buf_str(&text)).len == 240);
    hfsb_buf_free(&text);
}

/* ---- other blocks ---- */

static void images_become_image_blocks(void) {
    hfsb_tool_result r =
        made(true, "image/png, 2 x 3", "",
             "{\"mime_type\":\"image/png\",\"data\":\"aGk=\"}");
    hfsbi_mcp_blocks       b = HFSB_INIT;
    hfsb_json_doc          doc;
    const hfsb_json_value *list;
    hfsbi_mcp_show(HFSB_LIT("read"), &r, &b);
    list = parsed(&b, &doc);
    T_CHECK(hfsb_json_count(list) == 2 && !b.is_error);
    T_STR(member(hfsb_json_at(list, 0), "text"), "image/png, 2 x 3");
    T_STR(member(hfsb_json_at(list, 1), "type"), "image");
    T_STR(member(hfsb_json_at(list, 1), "data"), "aGk=");
    T_STR(member(hfsb_json_at(list, 1), "mimeType"), "image/png");
    hfsb_json_free(&doc);
    hfsb_buf_free(&b.json);
    hfsb_tool_result_free(&r);
}

static void blocks_keep_their_order(void) {
    hfsbi_mcp_blocks b = HFSB_INIT;
    hfsbi_mcp_add_text(&b, HFSB_LIT("a\n\"b\""));
    hfsbi_mcp_add_data(&b, "audio", HFSB_LIT("audio/wav"), HFSB_LIT("aGk="));
    hfsbi_mcp_add_resource(&b, HFSB_LIT("file:///x"), HFSB_LIT("text/plain"),
                           HFSB_LIT("\xFF"));
    hfsbi_mcp_add_resource(&b, HFSB_LIT("u"), HFSB_LIT(""), HFSB_LIT(""));
    T_STR(b.json,
          "{\"type\":\"text\",\"text\":\"a\\n\\\"b\\\"\"},{\"type\":\"audio\","
          "\"data\":\"aGk=\",\"mimeType\":\"audio/wav\"},{\"type\":"
          "\"resource\",\"resource\":{\"uri\":\"file:///x\",\"mimeType\":"
          "\"text/plain\",\"text\":\"\xEF\xBF\xBD\"}},{\"type\":\"resource\","
          "\"resource\":{\"uri\":\"u\",\"text\":\"\"}}");
    hfsb_buf_free(&b.json);
}

/* Whatever a tool adds, a message stays under what clients take. */
static void a_block_that_is_too_large_becomes_a_note(void) {
    hfsb_buf         big = HFSB_INIT;
    hfsbi_mcp_blocks b = HFSB_INIT;
    int              i;
    T_CHECK(hfsb_buf_reserve(&big, 9 * MIB) == HFSB_OK);
    memset(big.ptr, 'A', 9 * MIB);
    hfsbi_mcp_add_data(&b, "image", HFSB_LIT("image/png"),
                       hfsb_str_make(big.ptr, 5 * MIB + 4));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.json),
                          HFSB_LIT("an image of 3932163 bytes was left "
                                   "out")) != HFSB_NPOS);
    hfsbi_mcp_add_data(&b, "image", HFSB_LIT("image/png"),
                       hfsb_str_make(big.ptr, 5 * MIB));
    T_CHECK(b.json.len > 5 * MIB);
    hfsbi_mcp_add_data(&b, "audio", HFSB_LIT("audio/wav"),
                       hfsb_str_make(big.ptr, 4 * MIB));
    hfsbi_mcp_add_resource(&b, HFSB_LIT("u"), HFSB_LIT(""),
                           hfsb_str_make(big.ptr, 4 * MIB));
    memset(big.ptr, '\1', 9 * MIB); /* six bytes each */
    hfsbi_mcp_add_text(&b, hfsb_str_make(big.ptr, MIB));
    hfsbi_mcp_add_text(&b, hfsb_str_make(big.ptr, 9 * MIB));
    T_CHECK(b.json.len < 5 * MIB + 2000);
    for (i = 0; i < 20; i++)
        hfsbi_mcp_add_text(&b, hfsb_str_make(big.ptr, 100000));
    T_CHECK(b.json.len > 7 * MIB && b.json.len < 8 * MIB + 65 * 1024);
    for (i = 0; i < 2000; i++)
        hfsbi_mcp_add_text(&b, hfsb_str_make(big.ptr, 9 * MIB));
    T_CHECK(b.json.len < 8 * MIB + 65 * 1024 && b.status == HFSB_OK);
    hfsb_buf_free(&b.json);
    hfsb_buf_free(&big);
}

/* ---- no memory ---- */

static void try_show(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const tools[] = {"read", "bash_output", "bash"};
    hfsb_tool_result r =
        made(true, "1\ta\n2\tb", "",
             "{\"next_offset\":3,\"left_running\":[{\"pid\":1,\"command\":"
             "\"a\"}]}");
    hfsb_tool_result image =
        made(true, "x", "",
             "{\"mime_type\":\"image/png\",\"data\":\"aGk=\"}");
    hfsb_tool_result cut = made(true, "", "", "{" SAVED "}");
    size_t i;
    t_repeat(&cut.output, "x", 30000);
    for (i = 0; i < 8; i++) {
        hfsbi_mcp_blocks b = HFSB_INIT;
        size_t           calls = heap->calls;
        b.json.alloc = alloc;
        if (i < 3) hfsbi_mcp_show(hfsb_cstr(tools[i]), &r, &b);
        if (i == 3) hfsbi_mcp_show(HFSB_LIT("read"), &image, &b);
        if (i == 4) hfsbi_mcp_show_running(HFSB_LIT("j"), 5, &r, &b);
        if (i == 5)
            hfsbi_mcp_add_resource(&b, HFSB_LIT("u"), HFSB_LIT("m"),
                                   HFSB_LIT("t"));
        r.success = i != 6;
        if (i == 6) hfsbi_mcp_show(HFSB_LIT("bash"), &r, &b);
        if (i == 7) hfsbi_mcp_show(HFSB_LIT("bash"), &cut, &b);
        if (heap->fail_at > calls && heap->fail_at <= heap->calls)
            T_CHECK(b.status == HFSB_NOMEM);
        if (!heap->fail_at) T_CHECK(b.status == HFSB_OK && b.json.len);
        hfsb_buf_free(&b.json);
    }
    hfsb_tool_result_free(&r);
    hfsb_tool_result_free(&image);
    hfsb_tool_result_free(&cut);
}

static void each_allocation_may_fail(void) {
    t_each_allocation_fails(try_show);
}

int main(void) {
    T_RUN(results_become_text_with_a_footer);
    T_RUN(invalid_utf8_is_repaired);
    T_RUN(a_long_read_names_the_next_offset);
    T_RUN(a_cut_read_names_the_lines_it_knows);
    T_RUN(a_long_text_is_cut_between_characters);
    T_RUN(a_long_reason_leaves_room_for_the_output);
    T_RUN(a_command_loses_the_middle_of_its_output);
    T_RUN(a_second_cut_counts_what_the_first_left_out);
    T_RUN(the_cut_of_a_tool_is_not_shown_twice);
    T_RUN(next_offset_points_to_where_output_was_cut);
    T_RUN(next_offset_may_point_into_a_line);
    T_RUN(a_running_command_names_its_job);
    T_RUN(long_output_of_a_running_command_is_cut);
    T_RUN(the_last_line_with_text_is_found);
    T_RUN(images_become_image_blocks);
    T_RUN(blocks_keep_their_order);
    T_RUN(a_block_that_is_too_large_becomes_a_note);
    T_RUN(each_allocation_may_fail);
    return T_END();
}
