/* test_tools_read.c - the tool read, and the warnings after a change. */
#include "../support/t_tools.h"

#include <sys/socket.h>
#include <sys/un.h>

/* ---- read ---- */

static const struct {
    hfsb_str    content;
    const char *offset, *limit; /* JSON, NULL: not given */
    const char *output;
    long long   lines;
} read_cases[] = {
    {{"a\nb\n", 4}, NULL, NULL, "1\ta\n2\tb", 2},
    {{"a\nb", 3}, NULL, NULL, "1\ta\n2\tb", 2},
    {{"", 0}, NULL, NULL, "", 0},
    {{"\n", 1}, NULL, NULL, "1\t", 1},
    {{"\n\n", 2}, NULL, NULL, "1\t\n2\t", 2},
    {{"a\r\nb\r\n\r\nc", 9}, NULL, NULL, "1\ta\n2\tb\n3\t\n4\tc", 4},
    {{"a\rb\fc\vd\xC2\x85"
      "e\xE2\x80\xA8"
      "f\n",
      14},
     NULL,
     NULL,
     "1\ta\rb\fc\vd\xC2\x85"
     "e\xE2\x80\xA8"
     "f",
     1},
    {{"a\nb\nc\n", 6}, "2", NULL, "2\tb\n3\tc", 3},
    {{"a\nb\nc\n", 6}, "0", NULL, "1\ta\n2\tb\n3\tc", 3},
    {{"a\nb\nc\n", 6}, "null", "null", "1\ta\n2\tb\n3\tc", 3},
    {{"a\nb\nc\n", 6}, "1", "0", "1\ta\n2\tb\n3\tc", 3},
    {{"a\nb\nc\n", 6}, "2", "1", "2\tb", 3},
    {{"a\nb\nc\n", 6}, "\"2\"", "\"1\"", "2\tb", 3},
    {{"a\nb\nc\n", 6}, "2.0", "1.0", "2\tb", 3},
    {{"a\nb\nc\n", 6}, "3", "99", "3\tc", 3},
    {{"a\nb\nc\n", 6}, "4", NULL, "", 3},
    {{"a\nb\nc\n", 6}, "99", "1", "", 3},
    {{"a\nb\nc\n", 6}, "-1", NULL, "3\tc", 3},
    {{"a\nb\nc", 5}, "-1", NULL, "3\tc", 3},
    {{"a\nb\nc\n", 6}, "-2", "1", "2\tb", 3},
    {{"a\nb\nc\n", 6}, "-3", NULL, "1\ta\n2\tb\n3\tc", 3},
    {{"a\nb\nc\n", 6}, "-99", NULL, "1\ta\n2\tb\n3\tc", 3},
    {{"\xEF\xBB\xBFx\n", 5}, "2", NULL, "", 1},
    {{"a\nb\n", 4}, "9223372036854775807", NULL, "", 2},
    {{"a\nb\n", 4}, "-9223372036854775808", NULL, "1\ta\n2\tb", 2},
    {{"a\nb\n", 4}, "2", "9223372036854775807", "2\tb", 2},
};

/* True when first_line and last_line are the numbers in the output. */
static bool has_lines(const tt_reply *r) {
    hfsb_str output = hfsb_buf_str(&r->res.output);
    size_t   at = output.len;
    if (!output.len)
        return !hfsb_json_get(r->res.fields.root, "first_line") &&
               !hfsb_json_get(r->res.fields.root, "last_line");
    while (at > 0 && output.ptr[at - 1] != '\n') at--;
    return tt_int(r, "first_line") == atoll(output.ptr) &&
           tt_int(r, "last_line") == atoll(output.ptr + at);
}

static void lines_come_with_numbers(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(read_cases); i++) {
        char hex[HFSB_SHA256_HEX];
        tt_put("lines", read_cases[i].content);
        tt_call(&r, tools, "read", "path=s offset=j limit=j", "lines",
                read_cases[i].offset, read_cases[i].limit);
        TT_OK(&r, read_cases[i].output);
        T_CHECK(tt_int(&r, "size") == (long long)read_cases[i].content.len);
        T_CHECK(tt_int(&r, "total_lines") == read_cases[i].lines);
        hfsb_file_sha256(NULL, HFSB_LIT("lines"), hex, NULL);
        T_CHECK(hfsb_str_equal(tt_text(&r, "sha256"), hfsb_cstr(hex)));
        T_CHECK(!tt_flag(&r, "truncated"));
        T_CHECK(has_lines(&r));
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void reads_are_as_the_reference_gives_them(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    file = HFSB_INIT;
    hfsb_str    rest, line;
    size_t      count = 0;
    if (t_data_file("vectors/reads.jsonl", &file)) {
        for (rest = hfsb_buf_str(&file); hfsb_text_line(&rest, &line, NULL);) {
            hfsb_json_doc doc = HFSB_INIT;
            hfsb_buf      args = HFSB_INIT, offset = HFSB_INIT;
            hfsb_str      want;
            T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
            tt_put("vector", hfsb_json_str(hfsb_json_get(doc.root, "text"),
                                           HFSB_LIT("?")));
            T_CHECK(hfsb_json_write(hfsb_json_get(doc.root, "offset"), NULL,
                                    &offset, NULL) == HFSB_OK);
            T_CHECK(hfsb_json_write(hfsb_json_get(doc.root, "limit"), NULL,
                                    &args, NULL) == HFSB_OK);
            tt_call(&r, tools, "read", "path=s offset=j limit=j", "vector",
                    offset.ptr, args.ptr);
            want = hfsb_json_str(hfsb_json_get(doc.root, "result"),
                                 HFSB_LIT("?"));
            T_CHECK(r.res.success &&
                    hfsb_str_equal(want, hfsb_buf_str(&r.res.output)));
            count++;
            hfsb_json_free(&doc);
            hfsb_buf_free(&args);
            hfsb_buf_free(&offset);
        }
        T_CHECK(count == 200);
    }
    hfsb_buf_free(&file);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void two_thousand_lines_by_default(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    tt_fill(&text, "x\n", 2500);
    tt_put("many", hfsb_buf_str(&text));
    tt_call(&r, tools, "read", "path=s", "many");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("\n2000\tx")));
    T_CHECK(tt_int(&r, "total_lines") == 2500);
    tt_call(&r, tools, "read", "path=s offset=j", "many", "400");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("\n2399\tx")));
    tt_call(&r, tools, "read", "path=s limit=j", "many", "null");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("\n2500\tx")));
    tt_call(&r, tools, "read", "path=s offset=j limit=j", "many", "-2", "5");
    TT_OK(&r, "2499\tx\n2500\tx");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void long_lines_are_cut_and_say_so(void) {
    static const char *const parts[] = {"x", "\xC3\xA9", "\xF0\x9F\x98\x80"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < TT_COUNT(parts); i++) {
        hfsb_buf text = HFSB_INIT, want = HFSB_INIT;
        hfsb_str line = HFSB_INIT, rest;
        tt_fill(&text, parts[i], 4000);
        tt_fill(&want, "1\t", 1);
        tt_fill(&want, parts[i], 4000);
        tt_put("long", hfsb_buf_str(&text));
        tt_call(&r, tools, "read", "path=s", "long");
        TT_OK(&r, want.ptr);
        tt_fill(&text, parts[i], 1234);
        tt_fill(&text, "\r\nnext\n", 1);
        tt_put("long", hfsb_buf_str(&text));
        tt_call(&r, tools, "read", "path=s", "long");
        rest = hfsb_buf_str(&r.res.output);
        T_CHECK(r.res.success && hfsb_text_line(&rest, &line, NULL));
        T_CHECK(hfsb_str_starts(line, hfsb_buf_str(&want)));
        line = hfsb_str_slice(line, want.len, line.len);
        T_CHECK(hfsb_str_find(line, HFSB_LIT("1,234")) != HFSB_NPOS ||
                hfsb_str_find(line, HFSB_LIT("1234")) != HFSB_NPOS);
        T_CHECK(hfsb_str_find(line, hfsb_cstr(parts[i])) == HFSB_NPOS ||
                i == 0);
        T_CHECK(hfsb_str_equal(rest, HFSB_LIT("2\tnext")));
        hfsb_buf_free(&text);
        hfsb_buf_free(&want);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* 8 MiB a reply; then it says where to go on. */
/* Existing clients fetch whole scripts with a limit of 100000 lines, or of
   all: nothing is cut, and nothing else is in the output. */
static void a_large_limit_gives_whole_lines_and_nothing_else(void) {
    static const char *const limits[] = {"2001", "100000", "0", "null"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    hfsb_buf                 text = HFSB_INIT;
    size_t                   i;
    tt_fill(&text, "0123456789", 1000);
    tt_fill(&text, "\xFF", 1);
    tt_put("long", hfsb_buf_str(&text));
    for (i = 0; i < TT_COUNT(limits); i++) {
        tt_call(&r, tools, "read", "path=s limit=j color=s", "long", limits[i],
                "red");
        T_CHECK(r.sane && r.res.success);
        T_CHECK(r.res.output.len == 2 + 10000 + 3); /* the number; U+FFFD */
        T_CHECK(!tt_flag(&r, "truncated"));
        T_CHECK(tt_text(&r, "notes").len > 0);
        T_CHECK(hfsb_str_find(tt_text(&r, "notes"),
                              HFSB_LIT("(unknown key ignored: color)")) == 0);
        T_CHECK(hfsb_str_find(tt_text(&r, "notes"), HFSB_LIT("not UTF-8")) !=
                HFSB_NPOS);
    }
    tt_call(&r, tools, "read", "path=s limit=j", "long", "2000");
    T_CHECK(tt_flag(&r, "truncated") && r.res.output.len < 4200);
    T_CHECK(tt_text(&r, "notes").len == 0);
    T_CHECK(tt_says(&r.res.output, "more characters in this line"));
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A line longer than a reply is cut where the reply is full. */
static void a_line_longer_than_a_reply_is_cut(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    tt_fill(&text, "0123456789abcdef", (9 << 20) / 16);
    tt_fill(&text, "\nend\n", 1);
    tt_put("vast", hfsb_buf_str(&text));
    tt_call(&r, tools, "read", "path=s limit=j", "vast", "0");
    T_CHECK(r.sane && r.res.success && tt_flag(&r, "truncated"));
    T_CHECK(r.res.output.len > 2 << 20 && r.res.output.len < 9 << 20);
    unlink("vast");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* It is cut between two characters, whichever byte the reply is full at. */
static void a_line_longer_than_a_page_is_cut_between_characters(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        text = HFSB_INIT;
    size_t          shift;
    o.max_page = 6000;
    tools = tt_open(&o);
    for (shift = 0; shift < 3; shift++) {
        const char *more;
        hfsb_str    out;
        hfsb_buf_truncate(&text, 0);
        tt_fill(&text, "a", shift);
        tt_fill(&text, "\xE2\x82\xAC", 20000);
        tt_put("euros", hfsb_buf_str(&text));
        tt_call(&r, tools, "read", "path=s limit=j", "euros", "0");
        T_CHECK(r.sane && r.res.success && tt_flag(&r, "truncated"));
        out = hfsb_buf_str(&r.res.output);
        T_CHECK(!tt_says(&r.res.output, "not UTF-8"));
        T_CHECK(!tt_text(&r, "notes").len);
        more = strstr(out.ptr, "... (");
        T_CHECK(more != NULL);
        if (more) /* "1", a tab, and what is shown */
            T_CHECK(hfsb_utf8_count(hfsb_str_make(
                        out.ptr, (size_t)(more - out.ptr))) -
                        2 + (size_t)atol(more + 5) ==
                    shift + 20000);
    }
    unlink("euros");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void big_reads_go_on_at_next_offset(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    long long   next = 1, lines = 0;
    int         rounds = 0;
    tt_fill(&text, "0123456789012345678901234567890123456789\n", 500000);
    tt_put("big", hfsb_buf_str(&text));
    while (rounds++ < 10) {
        char offset[32];
        snprintf(offset, sizeof offset, "%lld", next);
        tt_call(&r, tools, "read", "path=s offset=j limit=j", "big", offset,
                "0");
        T_CHECK(r.res.success && r.res.output.len <= 8 << 20);
        lines +=
            (long long)hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\t');
        T_CHECK(tt_int(&r, "first_line") == next);
        T_CHECK(tt_int(&r, "last_line") == lines);
        if (!tt_flag(&r, "truncated")) break;
        T_CHECK(r.res.output.len > 7 << 20);
        T_CHECK(tt_int(&r, "next_offset") == lines + 1);
        next = tt_int(&r, "next_offset");
    }
    T_CHECK(lines == 500000 && rounds == 3);
    T_CHECK(tt_int(&r, "size") == 500000 * 41);
    tt_call(&r, tools, "read", "path=s limit=j", "big", "1");
    T_CHECK(r.res.success && !tt_text(&r, "sha256").len);
    T_CHECK(hfsb_json_get(r.extra.root, "total_lines") == NULL ||
            hfsb_json_type_of(hfsb_json_get(r.extra.root, "total_lines")) ==
                HFSB_JSON_NULL);
    hfsb_buf_free(&text);
    unlink("big");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Over 16 MiB, but all of it was seen. */
static void a_big_file_read_to_its_end_is_known(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX];
    int         i;
    for (i = 0; i < 5; i++) {
        tt_fill(&text, "0123456789abcde ", 230000);
        tt_fill(&text, "\n", 1);
    }
    T_CHECK(text.len > 16 << 20);
    tt_put("wide", hfsb_buf_str(&text));
    tt_call(&r, tools, "read", "path=s", "wide");
    T_CHECK(r.res.success && r.res.output.len < 30000);
    T_CHECK(tt_int(&r, "total_lines") == 5);
    hfsb_file_sha256(NULL, HFSB_LIT("wide"), hex, NULL);
    T_CHECK(hfsb_str_equal(tt_text(&r, "sha256"), hfsb_cstr(hex)));
    T_CHECK(tt_flag(&r, "truncated")); /* its lines were cut */
    unlink("wide");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Ten gigabytes, most of them a hole: only the beginning or end is touched. */
static void a_huge_file_is_read_in_parts(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    long long   before, begin;
    int         fd;
    tt_fill(&text, "a line of the huge file\n", 3000);
    tt_put("huge", hfsb_buf_str(&text));
    fd = open("huge", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)1000000000000) ||
        lseek(fd, 0, SEEK_END) < 0 || write(fd, "\nlast\n", 6) != 6) {
        printf("no file of 1 TB can be made here\n");
        t_skipped++;
    } else {
        before = tt_peak();
        begin = hfsb_clock_ms();
        tt_call(&r, tools, "read", "path=s", "huge");
        T_CHECK(r.res.success &&
                hfsb_str_ends(hfsb_buf_str(&r.res.output),
                              HFSB_LIT("2000\ta line of the huge file")));
        T_CHECK(tt_int(&r, "size") == 1000000000006ll);
        T_CHECK(!tt_text(&r, "sha256").len);
        T_CHECK(hfsb_clock_ms() - begin < 15000);
        T_CHECK(TT_SANITIZED || tt_peak() - before < 8 << 20);
    }
    if (fd >= 0) close(fd);
    unlink("huge");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void reports_files_it_cannot_read(void) {
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    hfsb_buf                 text = HFSB_INIT;
    struct sockaddr_un       addr;
    int                      s = socket(AF_UNIX, SOCK_STREAM, 0);
    static const char *const odd[] = {"fifo", "sock", "/dev/zero", "/dev/null",
                                      "to-fifo"};
    size_t                   i;
    mkdir("dir", 0755);
    T_CHECK(!mkfifo("fifo", 0600) && !symlink("fifo", "to-fifo"));
    memset(&addr, 0, sizeof addr);
    addr.sun_family = AF_UNIX;
    snprintf(addr.sun_path, sizeof addr.sun_path, "sock");
    T_CHECK(!bind(s, (struct sockaddr *)&addr, sizeof addr));
    close(s);
    tt_call(&r, tools, "read", "path=s", "nothing");
    T_STR(r.res.error, "File not found: nothing");
    tt_call(&r, tools, "read", "path=s", "/no/such/file");
    T_STR(r.res.error, "File not found: /no/such/file");
    tt_call(&r, tools, "read", "path=s", "dir");
    TT_FAIL(&r, "Is a directory: dir");
    tt_call(&r, tools, "read", "path=s", "~/x");
    TT_FAIL(&r, "File not found: ~/x");
    T_CHECK(tt_says(&r.res.error, "expanded"));
    T_CHECK(!symlink("loop", "loop"));
    tt_call(&r, tools, "read", "path=s", "loop");
    TT_FAIL(&r, "");
    tt_fill(&text, "n/", 3000);
    tt_call(&r, tools, "read", "path=v", hfsb_buf_str(&text));
    TT_FAIL(&r, "");
    hfsb_buf_truncate(&text, 0);
    for (i = 0; i < TT_COUNT(odd); i++) {
        tt_call(&r, tools, "read", "path=s", odd[i]);
        TT_FAIL(&r, "");
        T_CHECK(tt_says(&r.res.error, odd[i]));
    }
    tt_put("binary", hfsb_str_make("ELF\0\1\2", 6));
    tt_call(&r, tools, "read", "path=s", "binary");
    TT_FAIL(&r, "");
    T_CHECK(tt_says(&r.res.error, "6 bytes") &&
            tt_says(&r.res.error, "binary"));
    tt_fill(&text, "x\n", 4096); /* 8192 bytes, then a NUL */
    T_CHECK(hfsb_buf_append_byte(&text, '\0') == HFSB_OK);
    tt_put("late", hfsb_buf_str(&text));
    tt_call(&r, tools, "read", "path=s offset=j", "late", "-1");
    T_CHECK(r.res.success);
    T_STR(r.res.output, "4097\t\0");
    tt_put("latin", HFSB_LIT("caf\xE9 \xFF\n"));
    tt_call(&r, tools, "read", "path=s", "latin");
    T_CHECK(r.res.success);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("1\tcaf\xEF\xBF\xBD \xEF\xBF\xBD")));
    T_CHECK(tt_says(&r.res.output, "UTF-8"));
    tt_call(&r, tools, "read", "path=s", "/proc/self/status");
    T_CHECK(r.res.success && tt_says(&r.res.output, "\tPid:"));
    T_CHECK(r.res.output.len > 100);
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- warnings ---- */

static bool has_python(void) {
    return system("python3 -c '' >/dev/null 2>&1") == 0;
}

static const struct {
    const char *path, *content;
    const char *warning; /* begins so; NULL: none */
    bool        python;  /* needs it */
} warn_cases[] = {
    {"w.py", "x = 1\n", NULL, false},
    {"w.py", "def f(:\n    pass\n", "Python syntax error at line 1: ", true},
    {"w.py", "\n\nprint 'x'\n", "Python syntax error at line 3: ", true},
    {"w.py", "import json\njson.dumps(1, nosuch=2)\n", NULL, true},
    {"w.py", "import textwrap\ntextwrap.dedent(text='', wrong=1)\n", NULL,
     true}, /* only names that are imported themselves, as the reference */
    {"w.py", "from textwrap import dedent\nx.dedent(text='', wrong=1)\n",
     "Invalid kwarg: dedent(wrong=...) at line 2 -- not accepted by "
     "textwrap.dedent()",
     true},
    {"w.py", "from textwrap import dedent\ndedent(text='', wrong=1)\n",
     "Invalid kwarg: dedent(wrong=...) at line 2 -- not accepted by "
     "textwrap.dedent()",
     true},
    {"w.py", "import nosuchmodule_x\nnosuchmodule_x.f(wrong=1)\n", NULL, true},
    {"w.py", "from textwrap import dedent\ndedent(**{'wrong': 1}, w=1)\n",
     NULL, true},
    {"w.py", "SFTConfig(push_to_hub=True, hub_model_id='x')\n", NULL, false},
    {"w.py", "SFTConfig(hub_model_id='x')\n",
     "Training script warning: no 'push_to_hub' found", false},
    {"w.py", "TrainingArguments(push_to_hub=True)\n",
     "Training script warning: no 'hub_model_id' found", false},
    {"w.txt", "def f(:\n", NULL, false},
    {"w.json", "{\"a\": 1}\n", NULL, false},
    {"w.json", "{\"a\": }\n", "", false},
    {"w.sh", "#!/bin/sh\nif then\n", "", false},
    {"w.sh", "#!/bin/sh\necho ok\n", NULL, false},
    {"script", "#!/bin/sh\nif then\n", "", false},
    {"script", "#!/usr/bin/env sh\nfor\n", "", false},
    {"script", "if then\n", NULL, false},
};

static void writes_warn_of_what_is_wrong(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    bool        python = has_python();
    size_t      i;
    if (!python) {
        printf("no python3: its checks are not tried\n");
        t_skipped++;
    }
    for (i = 0; i < TT_COUNT(warn_cases); i++) {
        char   done[100], want[300];
        size_t failed = t_failed;
        if (warn_cases[i].python && !python) continue;
        snprintf(done, sizeof done, "Wrote %zu bytes to %s",
                 strlen(warn_cases[i].content), warn_cases[i].path);
        snprintf(want, sizeof want, "%s\n\nValidation warnings:\n  ! %s", done,
                 warn_cases[i].warning ? warn_cases[i].warning : "");
        tt_call(&r, tools, "write", "path=s content=s", warn_cases[i].path,
                warn_cases[i].content);
        if (warn_cases[i].warning)
            T_CHECK(
                r.res.success &&
                hfsb_str_starts(hfsb_buf_str(&r.res.output), hfsb_cstr(want)));
        else TT_OK(&r, done);
        if (failed != t_failed)
            printf("  %s\n  is %s\n", warn_cases[i].content, r.res.output.ptr);
    }
    /* both, and also after an edit */
    tt_call(&r, tools, "write", "path=s content=s", "t.py", "DPOConfig(1)\n");
    TT_OK(&r, "Wrote 13 bytes to t.py\n\nValidation warnings:\n  ! Training "
              "script warning: no 'push_to_hub' found\n  ! Training script "
              "warning: no 'hub_model_id' found");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "t.py", "DPO",
            "GRPO");
    T_CHECK(hfsb_str_starts(
        hfsb_buf_str(&r.res.output),
        HFSB_LIT("Edited t.py (1 replacement)\n\nValidation warnings:\n  ! "
                 "Training script warning: no 'push_to_hub' found\n")));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_module_of_the_work_directory_is_never_imported(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    if (has_python()) {
        tt_put("evil_mod.py",
               HFSB_LIT("open('imported', 'w').close()\ndef f(): pass\n"));
        tt_put(
            "textwrap.py",
            HFSB_LIT("open('imported', 'w').close()\ndef dedent(): pass\n"));
        tt_call(&r, tools, "write", "path=s content=s", "uses.py",
                "import evil_mod, textwrap\nevil_mod.f(x=1)\n"
                "textwrap.dedent(text='')\n");
        TT_OK(&r, "Wrote 67 bytes to uses.py");
        T_CHECK(access("imported", F_OK) != 0);
        unlink("textwrap.py");
    } else {
        t_skipped++;
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static hfsb_status shout(void *user, hfsb_str path, hfsb_str content,
                         hfsb_buf *warnings) {
    ++*(int *)user;
    if (hfsb_buf_printf(warnings, "loud %.*s\nand %zu\n", (int)path.len,
                        path.ptr, content.len) != HFSB_OK)
        return HFSB_NOMEM;
    return HFSB_IO; /* never fails a write */
}

static void a_caller_can_have_checks_of_its_own(void) {
    hfsb_tools_check checks[2];
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools;
    tt_reply         r = HFSB_INIT;
    int              calls = 0;
    memset(checks, 0, sizeof checks);
    checks[0].suffix = ".loud";
    checks[0].fn = shout;
    checks[0].user = &calls;
    checks[1].suffix = ".json"; /* none at all */
    opts.checks = checks;
    opts.check_count = 2;
    tools = tt_open(&opts);
    tt_call(&r, tools, "write", "path=s content=s", "x.loud", "abc");
    T_CHECK(r.res.success && calls == 1);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("Wrote 3 bytes to x.loud")));
    tt_call(&r, tools, "write", "path=s content=s", "x.json", "{");
    TT_OK(&r, "Wrote 1 bytes to x.json");
    tt_call(&r, tools, "write", "path=s content=s", "x.sh",
            "#!/bin/sh\nif then\n");
    T_CHECK(tt_says(&r.res.output, "Validation warnings"));
    hfsb_tools_close(tools);
    opts.check_count = 0;
    opts.no_checks = true;
    tools = tt_open(&opts);
    tt_call(&r, tools, "write", "path=s content=s", "x.json", "{");
    TT_OK(&r, "Wrote 1 bytes to x.json");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- pictures ---- */

#define PNG_640_480 \
    "\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xE0\x08\x02\0\0\0more"

static const struct {
    hfsb_str    content;
    const char *output, *mime; /* NULL: it is no picture */
} image_cases[] = {
    {{PNG_640_480, 33}, "image/png, 640x480, 33 bytes", "image/png"},
    {{"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16}, NULL, NULL}, /* cut short */
    {{"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0\x08\x02\0\0\0more", 33},
     NULL, NULL},
    {{"GIF89a\x01\0\x02\0\0\0\0;", 14}, "image/gif, 1x2, 14 bytes",
     "image/gif"},
    {{"GIF87a\0\x0A\x20\x0A\x20\x20\0", 13}, "image/gif, 2560x2592, 13 bytes",
     "image/gif"},
    {{"\xFF\xD8\xFF\xE0\0\x04JF\xFF\xFF\xC0\0\x11\x08\x01\0\x02\0", 18},
     "image/jpeg, 512x256, 18 bytes", "image/jpeg"},
    {{"\xFF\xD8\xFF\xC4\0\x04JF\xFF\xC2\0\x11\x08\0\x07\0\x09", 17},
     "image/jpeg, 9x7, 17 bytes", "image/jpeg"},
    {{"\xFF\xD8\xFF\xE0\0\x01JFIF\0\xFF\xC0\0\x11\x08\x01\0\x02\0", 20}, NULL,
     NULL},
    {{"RIFF\x40\0\0\0WEBPVP8 \x20\0\0\0abc\x9D\x01\x2A\x40\x01\xF0\x40", 30},
     "image/webp, 320x240, 30 bytes", "image/webp"},
    {{"RIFF\x40\0\0\0WEBPVP8L\x20\0\0\0\x2F\x09\xC0\x01\0\0\0\0\0\0", 30},
     "image/webp, 10x8, 30 bytes", "image/webp"},
    {{"RIFF\x40\0\0\0WEBPVP8X\x0A\0\0\0abcd\x0F\0\0\x1F\0\0", 30},
     "image/webp, 16x32, 30 bytes", "image/webp"},
    {{"RIFF\x40\0\0\0WEBPVP8 \x20\0\0\0abc\x9D\x01\x2B\x40\x01\xF0\0", 30},
     NULL, NULL},
    {{"RIFF\x04\0\0\0WAVE", 12}, NULL, NULL},
    {{"GIF89a is a format\n", 19}, "1\tGIF89a is a format", NULL},
    {{"GIF", 3}, "1\tGIF", NULL},
    {{"\x89PNG", 4}, "1\t\xEF\xBF\xBDPNG", NULL},
    {{"", 0}, "", NULL},
};

static bool decodes_to(hfsb_str data, hfsb_str content) {
    hfsb_buf bytes = HFSB_INIT;
    bool     ok = hfsb_base64_decode(data, &bytes, NULL) == HFSB_OK &&
              hfsb_str_equal(hfsb_buf_str(&bytes), content);
    hfsb_buf_free(&bytes);
    return ok;
}

/* By the first bytes, not by the name. */
static void pictures_come_as_base64_when_they_are_wanted(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    size_t         i;
    for (i = 0; i < TT_COUNT(image_cases); i++) {
        bool     is = image_cases[i].mime != NULL;
        hfsb_str content = image_cases[i].content;
        char     hex[HFSB_SHA256_HEX];
        opts.images = true;
        tt_put("p.txt", content);
        tt_do(&r, tools, "read", HFSB_LIT("{\"path\":\"p.txt\"}"), &opts);
        T_CHECK(r.sane && r.st == HFSB_OK);
        T_CHECK(r.res.success == (image_cases[i].output != NULL));
        if (image_cases[i].output)
            T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                                    hfsb_cstr(image_cases[i].output)));
        T_CHECK(hfsb_str_equal(tt_text(&r, "mime_type"),
                               hfsb_cstr(image_cases[i].mime)));
        T_CHECK(!is || decodes_to(tt_text(&r, "data"), content));
        if (r.res.success)
            T_CHECK(tt_int(&r, "size") == (long long)content.len);
        hfsb_sha256_hex(content, hex);
        if (is)
            T_CHECK(hfsb_str_equal(tt_text(&r, "sha256"), hfsb_cstr(hex)));
        /* the same by a key of the call, which also says no */
        tt_call(&r, tools, "read", "path=s image=j", "p.txt", "true");
        T_CHECK(tt_text(&r, "data").len > 0 || !is);
        tt_do(&r, tools, "read",
              HFSB_LIT("{\"path\":\"p.txt\",\"image\":false}"), &opts);
        T_CHECK(tt_text(&r, "data").len == 0);
        tt_call(&r, tools, "read", "path=s", "p.txt");
        T_CHECK(tt_text(&r, "data").len == 0);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_picture_that_is_too_large_is_refused_with_advice(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    all = HFSB_INIT;
    T_CHECK(hfsb_buf_append(&all, hfsb_str_make(PNG_640_480, 33)) == HFSB_OK);
    tt_fill(&all, "0123456789abcdef", (3840 * 1024 - 33) / 16);
    while (all.len < 3840 * 1024) tt_fill(&all, "x", 1);
    tt_put("large", hfsb_buf_str(&all));
    tt_call(&r, tools, "read", "path=s image=j", "large", "true");
    TT_OK(&r, "image/png, 640x480, 3932160 bytes");
    T_CHECK(tt_text(&r, "data").len == 5 * 1024 * 1024);
    T_CHECK(decodes_to(tt_text(&r, "data"), hfsb_buf_str(&all)));
    tt_fill(&all, "y", 1);
    tt_put("large", hfsb_buf_str(&all));
    tt_call(&r, tools, "read", "path=s image=j", "large", "true");
    T_CHECK(r.st == HFSB_OK && !r.res.success && !r.res.fields.root);
    T_CHECK(tt_says(&r.res.error, "3932161 bytes"));
    T_CHECK(tt_says(&r.res.error, "smaller copy"));
    hfsb_buf_free(&all);
    /* points that no model takes */
    tt_put("wide", hfsb_str_make("\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x1F\x41\0\0\0"
                                 "\x01\x08\x02\0\0\0more", 33));
    tt_call(&r, tools, "read", "path=s image=j", "wide", "true");
    T_CHECK(!r.res.success &&
            hfsb_str_find(hfsb_buf_str(&r.res.error),
                          HFSB_LIT("too large to be shown (image/png, 8001x1, "
                                   "33 bytes; the limit is 8000 a side")) !=
                HFSB_NPOS);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_picture_that_was_seen_counts_as_read(void) {
    hfsb_tools_opts how = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    how.session = true;
    tools = tt_open(&how);
    tt_put("p.png", hfsb_str_make(PNG_640_480, 33));
    tt_call(&r, tools, "write", "path=s content=s", "p.png", "x");
    T_CHECK(!r.res.success);
    tt_call(&r, tools, "read", "path=s image=s", "p.png", "true");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "write", "path=s content=s", "p.png", "x");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "read", "path=s image=s", "p.png", "maybe");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "\"image\""));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Each allocation in turn. */
static void read_reports_lack_of_memory_for_an_image(void) {
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    size_t         n;
    bool           done = false;
    opts.images = true;
    tt_put("p.png", hfsb_str_make(PNG_640_480, 33));
    for (n = 0; !done && n < 50; n++) {
        tt_drop(&r);
        tt_memory.heap.fail_at = tt_memory.heap.calls + n + 1;
        tt_do(&r, tools, "read", HFSB_LIT("{\"path\":\"p.png\"}"), &opts);
        done = tt_memory.heap.calls < tt_memory.heap.fail_at;
        tt_memory.heap.fail_at = 0;
        T_CHECK(done ? r.st == HFSB_OK && r.res.success
                     : r.st == HFSB_NOMEM && !r.res.success);
    }
    T_CHECK(done && n > 3);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- files that are not UTF-8 text ---- */

static void put_utf16(const char *path, const char *text, bool big,
                      bool mark) {
    hfsb_buf out = HFSB_INIT;
    if (mark) t_repeat(&out, big ? "\xFE\xFF" : "\xFF\xFE", 1);
    for (; *text; text++) {
        if (big) (void)hfsb_buf_append_byte(&out, '\0');
        (void)hfsb_buf_append_byte(&out, *text);
        if (!big) (void)hfsb_buf_append_byte(&out, '\0');
    }
    tt_put(path, hfsb_buf_str(&out));
    hfsb_buf_free(&out);
}

/* The command in a refusal prints the text. */
static void check_advice(hfsb_tools *tools, const char *path,
                         const char *begin) {
    tt_reply    r = HFSB_INIT, done = HFSB_INIT;
    const char *at;
    tt_call(&r, tools, "read", "path=s", path);
    T_CHECK(!r.res.success && r.res.code == HFSB_REFUSED);
    at = strstr(r.res.error.ptr, "Read it with the command: ");
    T_CHECK(at && hfsb_str_starts(hfsb_cstr(at + 26), hfsb_cstr(begin)));
    if (!at) printf("  %s\n", r.res.error.ptr);
    if (at) {
        tt_call(&done, tools, "bash", "command=s", at + 26);
        TT_OK(&done, "first line\nsecond\n");
    }
    tt_drop(&r);
    tt_drop(&done);
}

static void utf16_gets_a_command_that_converts_it(void) {
    static const char text[] = "first line\nsecond\n";
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_tools       *tools = tt_open(NULL);
    const char       *env[2] = {"PATH=/no/such/folder", NULL};
    tt_reply          r = HFSB_INIT;
    put_utf16("little", text, false, true);
    put_utf16("big", text, true, true);
    put_utf16("it's here.txt", text, false, true);
    put_utf16("-f", text, false, true);
    put_utf16("bare", text, false, false);
    put_utf16("bare.be", text, true, false);
    tt_call(&r, tools, "bash", "command=s", "command -v iconv");
    if (r.res.success) {
        check_advice(tools, "little", "iconv -f UTF-16 -t UTF-8 little");
        check_advice(tools, "big", "iconv -f UTF-16 -t UTF-8 big");
        check_advice(tools, "it's here.txt",
                     "iconv -f UTF-16 -t UTF-8 'it'\\''s here.txt'");
        check_advice(tools, "-f", "iconv -f UTF-16 -t UTF-8 ./-f");
        check_advice(tools, "bare", "iconv -f UTF-16LE -t UTF-8 bare");
        check_advice(tools, "bare.be", "iconv -f UTF-16BE -t UTF-8 bare.be");
    }
    hfsb_tools_close(tools);
    o.env = env;
    tools = tt_open(&o);
    tt_call(&r, tools, "read", "path=s", "little");
    TT_FAIL(&r, "little is UTF-16 (38 bytes), not UTF-8 text. No program that "
                "converts it was found in PATH; one of these would do: "
                "iconv, python3.");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The program that exists is named, and no other. */
static void a_pdf_gets_a_command_that_reads_it(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    char            path[600];
    const char     *env[2] = {path, NULL};
    tt_reply        r = HFSB_INIT;
    snprintf(path, sizeof path, "PATH=/no/such/folder:%s/work/bin", tt_dir);
    if (mkdir("bin", 0700) || mkdir("bin/pdftotext", 0700)) abort();
    tt_put("a.pdf", HFSB_LIT("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj\n"));
    tt_put("b.pdf", HFSB_LIT("%PDF-1.7\n\0\n"));
    tt_put("plain.pdf", HFSB_LIT("%PDF- is how it begins\n"));
    o.env = env;
    tools = tt_open(&o);
    tt_call(&r, tools, "read", "path=s", "a.pdf");
    TT_FAIL(&r, "a.pdf is a PDF document (23 bytes), not UTF-8 text. No "
                "program that converts it was found in PATH; one of these "
                "would do: pdftotext, mutool, gs.");
    tt_put("bin/mutool", HFSB_LIT("#!/bin/sh\n"));
    tt_call(&r, tools, "read", "path=s", "a.pdf");
    T_CHECK(tt_says(&r.res.error, "found in PATH")); /* it cannot be run */
    if (chmod("bin/mutool", 0755)) abort();
    tt_call(&r, tools, "read", "path=s", "b.pdf");
    TT_FAIL(&r, "b.pdf is a PDF document (11 bytes), not UTF-8 text. Read it "
                "with the command: mutool draw -F txt b.pdf");
    tt_call(&r, tools, "read", "path=s", "plain.pdf");
    TT_OK(&r, "1\t%PDF- is how it begins");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Numbers of 16 bits are not text. */
static void other_bytes_are_binary(void) {
    static const hfsb_str heads[] = {
        {"\1\0\2\0\3\0", 6}, {"a\0b\0\0c", 6}, {"\0\0\0\0", 4},
        {"abcdefg\0", 8},     {"\0", 1},          {"\xFF\xD8\xFF\0", 4}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(heads); i++) {
        tt_put("bytes", heads[i]);
        tt_call(&r, tools, "read", "path=s", "bytes");
        T_CHECK(!r.res.success && tt_says(&r.res.error, "bytes is binary ("));
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(a_huge_file_is_read_in_parts); /* first: it looks at the peak */
    TT_RUN(lines_come_with_numbers);
    TT_RUN(reads_are_as_the_reference_gives_them);
    TT_RUN(two_thousand_lines_by_default);
    TT_RUN(long_lines_are_cut_and_say_so);
    TT_RUN(a_large_limit_gives_whole_lines_and_nothing_else);
    TT_RUN(a_line_longer_than_a_reply_is_cut);
    TT_RUN(a_line_longer_than_a_page_is_cut_between_characters);
    TT_RUN(big_reads_go_on_at_next_offset);
    TT_RUN(a_big_file_read_to_its_end_is_known);
    TT_RUN(reports_files_it_cannot_read);
    TT_RUN(pictures_come_as_base64_when_they_are_wanted);
    TT_RUN(a_picture_that_is_too_large_is_refused_with_advice);
    TT_RUN(a_picture_that_was_seen_counts_as_read);
    TT_RUN(read_reports_lack_of_memory_for_an_image);
    TT_RUN(writes_warn_of_what_is_wrong);
    TT_RUN(a_module_of_the_work_directory_is_never_imported);
    TT_RUN(a_caller_can_have_checks_of_its_own);
    TT_RUN(utf16_gets_a_command_that_converts_it);
    TT_RUN(a_pdf_gets_a_command_that_reads_it);
    TT_RUN(other_bytes_are_binary);
    return TT_END();
}
