/* test_tools_output.c - what bash shows of a command: cleaned, cut, saved, in
   bounded memory. */
#include "../support/t_tools.h"

/* ---- output ---- */

static const struct {
    const char *command, *output;
} output_cases[] = {
    {"echo o; echo e >&2; echo p", "o\np\ne\n"},
    {"printf abc; printf def >&2", "abcdef"},
    {"printf '\\377\\376ok\\n'", "\xEF\xBF\xBD\xEF\xBF\xBDok\n"},
    {"printf '\\342'; sleep 0.05; printf '\\202'; sleep 0.05; printf '\\254'",
     "\xE2\x82\xAC"},
    {"printf '\\360\\237'; sleep 0.05; printf '\\230\\200'",
     "\xF0\x9F\x98\x80"},
    {"printf '\\342\\202'", "\xEF\xBF\xBD"},
    {"printf '\\033[3'; sleep 0.05; printf '1mred\\033[0m'", "red"},
    {"printf '\\033[38;2;1;2;3mx\\033[?25l\\033[>4;2my\\033[1 qz'", "xyz"},
    {"printf '\\033]0;ti'; sleep 0.05; printf 'tle\\007x'", "x"},
    {"printf '\\033]8;;http://x\\033\\\\link\\033]8;;\\033\\\\'", "link"},
    {"printf '\\033Pq#0\\033\\\\a\\033_b\\033\\\\c\\033^d\\033\\\\e\\033Xf"
     "\\033\\\\g'",
     "aceg"},
    {"printf '\\0337a\\0338\\033(Bb\\033=c\\033Md'", "abcd"},
    {"printf '\\033]0;never ends'; printf '\\nnext line\\n'", "\nnext line\n"},
    {"printf 'a\\r\\nb\\r\\n'", "a\nb\n"},
    {"printf ' 10%%\\r 50%%\\r100%%\\n'", "100%\n"},
    {"printf 'long line\\rshort\\n'", "shortline\n"},
    {"printf 'abc\\b\\bX\\n'", "aXc\n"},
    {"printf 'a\\r'; sleep 0.05; printf '\\nb'", "a\nb"},
    {"printf '\"\\\\\\001\\037\\177\\342\\200\\250}]'",
     "\"\\\001\037\177\xE2\x80\xA8}]"},
    {"for i in 1 2 3; do echo o$i; echo e$i >&2; done",
     "o1\no2\no3\ne1\ne2\ne3\n"},
};

static void output_is_cleaned(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(output_cases); i++) {
        tt_call(&r, tools, "bash", "command=s", output_cases[i].command);
        TT_OK(&r, output_cases[i].output);
        T_CHECK(tt_int(&r, "total_chars") ==
                (long long)hfsb_utf8_count(hfsb_buf_str(&r.res.output)));
    }
    tt_call(&r, tools, "bash", "command=s merge_stderr=j",
            "for i in 1 2 3; do echo o$i; echo e$i >&2; done", "true");
    TT_OK(&r, "o1\ne1\no2\ne2\no3\ne3\n");
    tt_call(&r, tools, "bash", "command=s", "printf 'a\\0b'");
    T_CHECK(r.res.success);
    T_STR(r.res.output, "a\0b");
    tt_call(&r, tools, "bash", "command=s", "head -c 300000 /dev/urandom");
    T_CHECK(r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

typedef struct heard {
    hfsb_buf text[2];
    size_t   times;
} heard;

static void hear(void *user, hfsb_proc_stream stream, hfsb_str text) {
    heard *h = (heard *)user;
    h->times++;
    if (hfsb_buf_append(&h->text[stream], text) != HFSB_OK) abort();
}

static void text_is_passed_on_while_it_arrives(void) {
    hfsb_tools    *tools = tt_open(NULL);
    heard          h;
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    hfsb_call     *call;
    long long      end = hfsb_clock_ms() + 20000;
    memset(&h, 0, sizeof h);
    opts.on_text = hear;
    opts.user = &h;
    T_CHECK(!mkfifo("fifo", 0600));
    call = tt_start(tools, "bash", &opts, "command=s",
                    "printf 'one\\033[1m\\n'; echo e >&2; read x < fifo; "
                    "printf 'two\\r\\n\\303\\251'; printf f >&2");
    while ((!h.text[0].len || !h.text[1].len) && hfsb_clock_ms() < end)
        hfsb_tools_poll(tools, 100);
    T_STR(h.text[0], "one\n");
    T_STR(h.text[1], "e\n");
    T_CHECK(!hfsb_call_done(call));
    tt_put("fifo", HFSB_LIT("go\n"));
    tt_finish(&r, tools, call);
    TT_OK(&r, "one\ntwo\n\xC3\xA9"
              "e\nf");
    T_STR(h.text[0], "one\ntwo\n\xC3\xA9");
    T_STR(h.text[1], "e\nf");
    hfsb_buf_free(&h.text[0]);
    hfsb_buf_free(&h.text[1]);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- long output ---- */

/* The text itself, and what is to be shown of it. */
static void check_cut(const tt_reply *r, hfsb_str text) {
    hfsb_buf want = HFSB_INIT, spilt = HFSB_INIT;
    bool     cut = false;
    hfsb_str path = tt_text(r, "spill_path");
    T_CHECK(hfsb_text_truncate(text, NULL, path, &want, &cut, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&want), hfsb_buf_str(&r->res.output)));
    T_CHECK(tt_flag(r, "truncated") == cut && (path.len > 0) == cut);
    T_CHECK(tt_int(r, "total_chars") == (long long)hfsb_utf8_count(text));
    if (cut) {
        struct stat st;
        const char *name = strrchr(path.ptr, '/');
        T_CHECK(t_read_file(path.ptr, &spilt));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&spilt), text));
        T_CHECK(!stat(path.ptr, &st) && (st.st_mode & 07777) == 0600);
        T_CHECK(hfsb_str_starts(path, hfsb_cstr(getenv("TMPDIR"))));
        T_CHECK(name && !strncmp(name, "/bash_output_", 13) &&
                hfsb_str_ends(path, HFSB_LIT(".txt")));
    }
    hfsb_buf_free(&want);
    hfsb_buf_free(&spilt);
}

/* `times` times part on stdout and then on stderr, in characters. */
static void print_both(hfsb_tools *tools, const char *part, size_t out,
                       size_t err, bool merge) {
    tt_reply r = HFSB_INIT;
    hfsb_buf text = HFSB_INIT;
    char     command[300];
    tt_fill(&text, part, out);
    tt_fill(&text, part, err);
    snprintf(command, sizeof command,
             "p() { head -c $1 /dev/zero | sed 's/\\x00/%s/g'; }; p %zu; p "
             "%zu >&2",
             part, out, err);
    tt_call(&r, tools, "bash", "command=s merge_stderr=j", command,
            merge ? "true" : "false");
    T_CHECK(r.res.success);
    check_cut(&r, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    tt_drop(&r);
}

/* A closed call gets no more output. */
static void a_call_that_was_closed_hears_nothing(void) {
    hfsb_tools    *tools = tt_open(NULL);
    heard          h;
    hfsb_call_opts opts = HFSB_INIT;
    long long      end = hfsb_clock_ms() + 20000;
    size_t         times;
    memset(&h, 0, sizeof h);
    opts.on_text = hear;
    opts.user = &h;
    {
        hfsb_call *call = tt_start(tools, "bash", &opts, "command=s",
                                   "for i in 1 2 3 4 5 6 7 8; do echo $i; "
                                   "sleep 0.1; done");
        while (!h.times && hfsb_clock_ms() < end) hfsb_tools_poll(tools, 100);
        hfsb_call_close(call);
    }
    times = h.times;
    while (hfsb_tools_busy(tools) && hfsb_clock_ms() < end)
        hfsb_tools_poll(tools, 100);
    T_CHECK(times > 0 && h.times == times);
    hfsb_buf_free(&h.text[0]);
    hfsb_buf_free(&h.text[1]);
    hfsb_tools_close(tools);
}

static void long_output_is_cut_and_saved(void) {
    static const size_t sizes[][2] = {
        {25000, 0},     {25001, 0},     {0, 25000},      {0, 25001},
        {12500, 12500}, {12500, 12501}, {6250, 18751},   {6251, 18750},
        {6249, 40000},  {30000, 10},    {30000, 30000},  {100, 100000},
        {65536, 0},     {65537, 0},     {200000, 200000}};
    static const char *const parts[] = {"x", "\xC3\xA9", "\xF0\x9F\x98\x80"};
    hfsb_tools              *tools = tt_open(NULL);
    size_t                   i, k;
    for (i = 0; i < TT_COUNT(sizes); i++)
        for (k = 0; k < TT_COUNT(parts); k++) {
            if (t_quick() && (i + k) % 3) continue;
            print_both(tools, parts[k], sizes[i][0], sizes[i][1], false);
            print_both(tools, parts[k], sizes[i][0], sizes[i][1], true);
        }
    hfsb_tools_close(tools);
}

static void the_marker_reads_as_in_the_reference(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    want = HFSB_INIT;
    hfsb_str    path;
    tt_call(&r, tools, "bash", "command=s",
            "head -c 1259567 /dev/zero | tr '\\0' a; exit 3");
    T_STR(r.res.error, "Exit code 3");
    path = tt_text(&r, "spill_path");
    tt_fill(&want, "a", 6250);
    T_CHECK(hfsb_buf_printf(
                &want,
                "\n\n... (1,234,567 of 1,259,567 chars omitted, showing "
                "first 6,250 + last 18,750) ...\nFull output saved to %.*s "
                "\xE2\x80\x94 use the read tool with offset/limit to inspect "
                "specific sections.\n",
                (int)path.len, path.ptr) == HFSB_OK);
    tt_fill(&want, "a", 18750);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&want), hfsb_buf_str(&r.res.output)));
    hfsb_buf_free(&want);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void spills_have_a_size_and_a_number(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        file = HFSB_INIT;
    char            dir[100], first[200];
    size_t          i;
    snprintf(dir, sizeof dir, "%s/work/spills", tt_dir);
    T_CHECK(!mkdir(dir, 0700));
    tt_put("spills/bash_output_theirs.txt", HFSB_LIT("not ours"));
    opts.spill_dir = dir;
    opts.max_spill = 40000;
    opts.max_spills = 3;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s",
            "head -c 100000 /dev/zero | tr '\\0' a; head -c 100000 /dev/zero "
            "| tr '\\0' b >&2");
    T_CHECK(r.res.success && tt_flag(&r, "truncated"));
    T_CHECK(tt_int(&r, "total_chars") == 200000);
    snprintf(first, sizeof first, "%.*s", 199, tt_text(&r, "spill_path").ptr);
    T_CHECK(!strncmp(first, dir, strlen(dir)));
    T_CHECK(t_read_file(first, &file) && file.len <= 40000 &&
            file.len > 30000);
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&file), 'a') == file.len);
    /* the marker says that it is not all */
    T_CHECK(!tt_says(&r.res.output, "Full output saved to"));
    T_CHECK(tt_says(&r.res.output, first));
    hfsb_buf_free(&file);
    for (i = 0; i < 5; i++) {
        T_CHECK((access(first, F_OK) == 0) == (i < 3));
        T_CHECK(tt_entries(dir, "bash_output_") == 1 + (i < 2 ? i + 1 : 3));
        tt_call(&r, tools, "bash", "command=s",
                "head -c 30000 /dev/zero | tr '\\0' a");
        T_CHECK(access(tt_text(&r, "spill_path").ptr, R_OK) == 0);
    }
    TT_FILE("spills/bash_output_theirs.txt", "not ours");
    tt_drop(&r);
    hfsb_tools_close(tools);
    T_CHECK(tt_remove_all(dir, "bash_output_"));
}

/* A file that had to go while the command ran is not promised. */
/* A reader that cuts replies itself still finds all of the output. */
static void output_is_saved_from_the_size_that_was_asked_for(void) {
    static const struct {
        const char *command;
        bool        saved;
    } rows[] = {{"printf %01000d 1", false},
                {"printf %01001d 1", true},
                {"printf %0999d 1; echo x >&2", true},
                {"printf %01001d 1 >&2", true},
                {"printf %0900d 1; sleep 0.1; printf %0900d 1", true},
                {"printf %040000d 1", true}};
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT, log = HFSB_INIT;
    size_t          i;
    opts.spill_over = 1000;
    opts.drop_spills = true;
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(rows); i++) {
        bool whole;
        tt_call(&r, tools, "bash", "command=s", rows[i].command);
        whole = !tt_flag(&r, "truncated");
        T_CHECK(r.res.success && whole == (r.res.output.len < 25000));
        T_CHECK((tt_text(&r, "spill_path").len > 0) == rows[i].saved);
        if (rows[i].saved && whole)
            T_CHECK(tt_file_is(tt_text(&r, "spill_path").ptr,
                               hfsb_buf_str(&r.res.output)));
        tt_call(&log, tools, "bash_output", "id=v", tt_text(&r, "id"));
        T_CHECK(!whole || hfsb_str_equal(hfsb_buf_str(&log.res.output),
                                         hfsb_buf_str(&r.res.output)));
    }
    tt_drop(&r);
    tt_drop(&log);
    hfsb_tools_close(tools);
}

static void missing_spill_file_is_not_mentioned(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call;
    hfsb_str        path;
    int             i;
    opts.max_spills = 2;
    opts.spill_dir = ".";
    tools = tt_open(&opts);
    T_CHECK(!mkfifo("spill-fifo", 0600));
    call = tt_start(tools, "bash", NULL, "command=s",
                    "head -c 40000 /dev/zero | tr '\\0' a; echo; "
                    "read x < spill-fifo");
    for (i = 0; i < 400 && !tt_entries(".", "bash_output_"); i++)
        hfsb_tools_poll(tools, 50);
    T_CHECK(tt_entries(".", "bash_output_") == 1);
    for (i = 0; i < 3; i++) {
        tt_call(&r, tools, "bash", "command=s",
                "head -c 30000 /dev/zero | tr '\\0' b");
        T_CHECK(tt_flag(&r, "truncated"));
    }
    tt_put("spill-fifo", HFSB_LIT("go\n"));
    tt_finish(&r, tools, call);
    T_CHECK(r.res.success && tt_int(&r, "total_chars") == 40001);
    path = tt_text(&r, "spill_path");
    T_CHECK(path.len ? access(path.ptr, R_OK) == 0
                     : !tt_says(&r.res.output, "saved to"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void output_is_shown_where_no_spill_can_be(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    opts.spill_dir = "/no/such/dir";
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s",
            "head -c 30000 /dev/zero | tr '\\0' a; echo z >&2");
    T_CHECK(r.res.success && tt_flag(&r, "truncated"));
    T_CHECK(!tt_text(&r, "spill_path").len);
    T_CHECK(tt_says(&r.res.output, "(5,002 of 30,002 chars omitted"));
    T_CHECK(!tt_says(&r.res.output, "saved to"));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("az\n")));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Whatever is printed, the process does not grow by it. */
static void much_output_costs_no_memory(void) {
    long long   size = t_long() ? 2000000000ll : 200000000ll, before, shown;
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    struct stat st;
    char        command[200];
    if (TT_SANITIZED || t_quick()) size /= 20;
    before = tt_peak();
    snprintf(command, sizeof command,
             "echo begin; yes '%s' | head -c %lld; printf '\\nend\\n'",
             "sixty-three characters and a line feed make sixty-four in all "
             "...",
             size);
    tt_call(&r, tools, "bash", "command=s timeout=j", command, "300");
    T_CHECK(r.res.success);
    T_CHECK(tt_int(&r, "total_chars") == size + 11);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("begin\nsixty-three ")));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("\nend\n")));
    T_CHECK(!stat(tt_text(&r, "spill_path").ptr, &st));
    shown = size + 11 < (64ll << 20) ? size + 11 : 64ll << 20;
    T_CHECK(st.st_size <= shown && st.st_size > shown - 65536);
    unlink(tt_text(&r, "spill_path").ptr);
    T_CHECK(TT_SANITIZED || tt_peak() - before < (16ll << 20));
    /* one line without end, and stderr */
    snprintf(command, sizeof command,
             "head -c %lld /dev/zero | tr '\\0' a >&2; printf z >&2",
             size / 10);
    tt_call(&r, tools, "bash", "command=s timeout=j", command, "300");
    T_CHECK(r.res.success && tt_int(&r, "total_chars") == size / 10 + 1);
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output), HFSB_LIT("aaz")));
    unlink(tt_text(&r, "spill_path").ptr);
    T_CHECK(TT_SANITIZED || tt_peak() - before < (16ll << 20));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void endless_output_ends_in_time(void) {
    long long   before, begin, took, seconds = t_long() ? 10 : 2;
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        timeout[16];
    before = tt_peak();
    snprintf(timeout, sizeof timeout, "%lld", seconds);
    begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash", "command=s timeout=j", "yes", timeout);
    took = hfsb_clock_ms() - begin;
    T_CHECK(!r.res.success && tt_flag(&r, "timed_out"));
    TT_FAIL(&r, "Timeout after ");
    T_CHECK(took >= seconds * 1000 - 50 && took < seconds * 1000 + 20000);
    T_CHECK(tt_int(&r, "total_chars") > 25000);
    T_CHECK(
        hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("y\ny\ny\n")));
    T_CHECK(TT_SANITIZED || tt_peak() - before < (16ll << 20));
    unlink(tt_text(&r, "spill_path").ptr);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(much_output_costs_no_memory); /* first: it looks at the peak */
    TT_RUN(endless_output_ends_in_time);
    TT_RUN(output_is_cleaned);
    TT_RUN(text_is_passed_on_while_it_arrives);
    TT_RUN(a_call_that_was_closed_hears_nothing);
    TT_RUN(long_output_is_cut_and_saved);
    TT_RUN(the_marker_reads_as_in_the_reference);
    TT_RUN(spills_have_a_size_and_a_number);
    TT_RUN(output_is_saved_from_the_size_that_was_asked_for);
    TT_RUN(missing_spill_file_is_not_mentioned);
    TT_RUN(output_is_shown_where_no_spill_can_be);
    return TT_END();
}
