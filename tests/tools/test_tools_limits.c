/* test_tools_limits.c - arguments and files at their limits: the largest
   numbers, the longest lines, files that wait, change or are too big. */
#include "../support/t_tools.h"

#include <limits.h>

/* ---- timeouts ---- */

static void timeouts_may_be_without_end(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    opts.timeout = opts.max_timeout = 1e300;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "sleep 0.2; echo fine");
    TT_OK(&r, "fine\n");
    tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 0.2; echo fine",
            "1e18");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash", "command=s id=s background=j",
            "sleep 0.5; echo late", "b", "true");
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", "b",
            "9223372036854775807");
    TT_OK(&r, "late\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Without a timeout argument there is no note about its size. */
static void the_default_timeout_is_held_to_the_maximum(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    opts.max_timeout = 2.9;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "echo x; sleep 60");
    TT_ENDS(&r, "x\n", "Timeout after 2.9s");
    tt_call(&r, tools, "bash", "command=s", "echo x");
    TT_OK(&r, "x\n");
    tt_call(&r, tools, "bash", "command=s background=j", "sleep 60", "true");
    T_CHECK(r.res.success && !tt_says(&r.res.output, "maximum"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- arguments ---- */

static void a_note_names_only_some_unknown_keys(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    json = HFSB_INIT;
    int         i;
    tt_fill(&json, "{\"path\":\"/\"", 1);
    for (i = 0; i < 5000; i++)
        T_CHECK(hfsb_buf_printf(&json, ",\"key%d\":0", i) == HFSB_OK);
    tt_fill(&json, "}", 1);
    tt_do(&r, tools, "exists", hfsb_buf_str(&json), NULL);
    T_CHECK(r.sane && r.res.success && r.res.output.len < 1000);
    T_CHECK(tt_says(&r.res.output, "key9)") &&
            !tt_says(&r.res.output, "key10)"));
    T_CHECK(tt_says(&r.res.output, "\n(and 4990 more)"));
    tt_do(&r, tools, "exists",
          HFSB_LIT("{\"path\":\"/\",\"b\\u0000c\":1,\"d\\ne\":2}"), NULL);
    TT_OK(&r, NULL);
    T_CHECK(!hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\0'));
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') == 2);
    T_CHECK(tt_says(&r.res.output, "c)") && tt_says(&r.res.output, "e)"));
    hfsb_buf_free(&json);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_shell_with_nul_is_refused(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s shell=v", "echo x > cut",
            hfsb_str_make("/bin/sh\0zzz", 11));
    T_CHECK(r.st == HFSB_ARG);
    TT_FAIL(&r, "shell must be a path without NUL.");
    T_CHECK(access("cut", F_OK) != 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- files that are not what they seem ---- */

/* A file of /proc that waits for the kernel's next word: what there is, at
   once. The program ends by the alarm when it does not. */
static void a_file_that_waits_ends(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    int         fd = open("/proc/kmsg", O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        printf("skipped: /proc/kmsg is not ours to read\n");
        t_skipped++;
    } else {
        close(fd);
        alarm(20);
        tt_call(&r, tools, "read", "path=s", "/proc/kmsg");
        T_CHECK(r.res.success || r.res.error.len);
        tt_call(&r, tools, "read", "path=s offset=j", "/proc/kmsg", "-1");
        T_CHECK(r.res.success || r.res.error.len);
        alarm(0);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The same for everybody: what is read is opened so that it cannot wait, and
   nothing there is the end. */
static void files_are_read_without_waiting(void) {
    hfsb_file_info info;
    int            fd = -1, fds[2] = {-1, -1};
    char           c;
    tt_put("plain", HFSB_LIT("x"));
    T_CHECK(hfsb_file_open(NULL, HFSB_LIT("plain"), &fd, &info, NULL) ==
            HFSB_OK);
    T_CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    T_CHECK(!pipe(fds) && !fcntl(fds[0], F_SETFL, O_NONBLOCK));
    T_CHECK(hfsbi_read_file(fds[0], &c, 1) == 0);
    close(fds[0]);
    close(fds[1]);
}

/* /proc says that its files are empty. */
static void a_binary_file_has_the_size_that_was_read(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    all = HFSB_INIT;
    char        text[64];
    if (t_read_file("/proc/self/cmdline", &all) && all.len) {
        snprintf(text, sizeof text, "is binary (%zu bytes", all.len);
        tt_call(&r, tools, "read", "path=s", "/proc/self/cmdline");
        T_CHECK(!r.res.success && tt_says(&r.res.error, text));
    } else {
        printf("skipped: no /proc/self/cmdline\n");
        t_skipped++;
    }
    hfsb_buf_free(&all);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- long lines ---- */

static void bytes_that_are_no_text_count_as_characters(void) {
    static const struct {
        const char *part;
        size_t      times;
        const char *end;
    } cases[] = {
        {"\x80", 1000, "... (1000 more characters in this line)"},
        {"\xFF", 1000, "... (1000 more characters in this line)"},
        {"\xC3\xA9", 1000, "... (1000 more characters in this line)"},
        {"\x80", 11000, "... (11000 more characters in this line)"},
        {"b", 1, "... (1 more characters in this line)"},
        {"\x80", 0, "aaa"},
    };
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    line = HFSB_INIT, want = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_buf_truncate(&line, 0);
        hfsb_buf_truncate(&want, 0);
        tt_fill(&line, "a", 4000);
        tt_fill(&want, "1\t", 1);
        T_CHECK(hfsb_buf_append(&want, hfsb_buf_str(&line)) == HFSB_OK);
        if (cases[i].times) tt_fill(&want, cases[i].end, 1);
        tt_fill(&line, cases[i].part, cases[i].times);
        tt_fill(&line, "\n", 1);
        tt_put("line", hfsb_buf_str(&line));
        tt_call(&r, tools, "read", "path=s", "line");
        T_CHECK(r.res.success && hfsb_str_equal(hfsb_buf_str(&r.res.output),
                                                hfsb_buf_str(&want)));
        if (!hfsb_str_ends(hfsb_buf_str(&r.res.output),
                           hfsb_cstr(cases[i].end)))
            printf("  case %zu\n", i);
    }
    hfsb_buf_free(&line);
    hfsb_buf_free(&want);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Every bad byte becomes three: the room is that of what is shown. */
static void a_reply_is_bounded_also_when_it_is_repaired(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    line = HFSB_INIT, all = HFSB_INIT;
    size_t      notes;
    tt_fill(&line, "\xFF", 3990);
    tt_fill(&line, "\n", 1);
    tt_fill(&all, line.ptr, 1000);
    tt_put("bad", hfsb_buf_str(&all));
    tt_call(&r, tools, "read", "path=s", "bad");
    T_CHECK(r.res.success && tt_flag(&r, "truncated"));
    notes = hfsb_str_find(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("\n(bytes that are not UTF-8"));
    T_CHECK(notes != HFSB_NPOS && notes <= 8 * 1024 * 1024);
    T_CHECK(notes > 8 * 1024 * 1024 - 20000);
    T_CHECK(tt_int(&r, "next_offset") > 600 &&
            tt_int(&r, "next_offset") < 800);
    unlink("bad");
    hfsb_buf_free(&line);
    hfsb_buf_free(&all);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- from the end ---- */

static void offsets_may_be_as_low_as_can_be(void) {
    static const char *const low[] = {"-9223372036854775808",
                                      "-9223372036854775807", "-4", "-3"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    tt_put("three", HFSB_LIT("a\nb\nc\n"));
    for (i = 0; i < TT_COUNT(low); i++) {
        tt_call(&r, tools, "read", "path=s offset=j", "three", low[i]);
        TT_OK(&r, "1\ta\n2\tb\n3\tc");
    }
    tt_put("empty", HFSB_LIT(""));
    tt_call(&r, tools, "read", "path=s offset=j", "empty", low[0]);
    TT_OK(&r, "");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Bytes that this process has read so far; -1 when nobody counts them. */
static long long bytes_read(void) {
    hfsb_buf  text = HFSB_INIT;
    long long n = -1;
    if (access("/proc/self/io", R_OK) == 0 &&
        t_read_file("/proc/self/io", &text) &&
        hfsb_str_starts(hfsb_buf_str(&text), HFSB_LIT("rchar: ")))
        n = strtoll(text.ptr + 7, NULL, 10);
    hfsb_buf_free(&text);
    return n;
}

/* The first bytes are enough; the gigabyte after them is not read. */
static void read_refuses_a_big_binary_file_at_once(void) {
    static const char *const offsets[] = {"1", "-1", "-100"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    int    fd = open("hole", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t i;
    T_CHECK(fd >= 0 && !ftruncate(fd, (off_t)1 << 30));
    close(fd);
    for (i = 0; i < TT_COUNT(offsets); i++) {
        long long before = bytes_read();
        tt_call(&r, tools, "read", "path=s offset=j", "hole", offsets[i]);
        T_CHECK(!r.res.success &&
                tt_says(&r.res.error, "is binary (1073741824 bytes"));
        T_CHECK(bytes_read() - before < 1 << 20);
    }
    unlink("hole");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- over 16 MiB ---- */

enum { LINES = 135000, WIDE = 127 }; /* 17,280,000 bytes: 128 a line */

/* Line i is its number, right in its room. */
static void make_big(hfsb_buf *out, bool ended, char hex[HFSB_SHA256_HEX]) {
    hfsb_sha256 sha;
    size_t      i;
    hfsb_buf_truncate(out, 0);
    for (i = 1; i <= LINES; i++)
        if (hfsb_buf_printf(out, "%*zu\n", (int)WIDE, i) != HFSB_OK) abort();
    if (!ended) hfsb_buf_truncate(out, out->len - 1);
    tt_put("big", hfsb_buf_str(out));
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(out));
    hfsbi_sha256_finish_hex(&sha, hex);
}

/* The line of that number, and all before it in the reply, have the right
   numbers and texts. */
static bool lines_are(const tt_reply *r, long first, long count) {
    hfsb_str rest = hfsb_buf_str(&r->res.output), line;
    char     want[200];
    long     i;
    for (i = first; i < first + count; i++) {
        snprintf(want, sizeof want, "%ld\t%*ld", i, (int)WIDE, i);
        if (!hfsb_text_line(&rest, &line, NULL) ||
            !hfsb_str_equal(line, hfsb_cstr(want)))
            return false;
    }
    return rest.len == 0;
}

static void a_big_file_can_be_read_from_its_end(void) {
    static const struct {
        const char *offset, *limit;
        long        first, count;
    } cases[] = {{"-1", NULL, LINES, 1},
                 {"-1", "1", LINES, 1},
                 {"-300", "5", LINES - 299, 5},
                 {"-257", NULL, LINES - 256, 257},
                 {"-256", NULL, LINES - 255, 256}, /* 32 KiB */
                 {"-134999", "2", 2, 2},
                 {"-135000", "2", 1, 2},
                 {"-135001", "2", 1, 2}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX];
    size_t      i;
    int         ended;
    for (ended = 0; ended < 2; ended++) {
        make_big(&text, ended, hex);
        for (i = 0; i < TT_COUNT(cases); i++) {
            size_t failed = t_failed;
            tt_call(&r, tools, "read", "path=s offset=j limit=j", "big",
                    cases[i].offset, cases[i].limit);
            T_CHECK(r.res.success);
            T_CHECK(lines_are(&r, cases[i].first, cases[i].count));
            T_CHECK(tt_int(&r, "total_lines") == LINES);
            T_CHECK(tt_int(&r, "size") == (long long)text.len);
            T_CHECK(hfsb_str_equal(tt_text(&r, "sha256"), hfsb_cstr(hex)));
            T_CHECK(tt_int(&r, "next_offset") ==
                    (cases[i].first + cases[i].count > LINES
                         ? -12345
                         : cases[i].first + cases[i].count));
            if (failed != t_failed)
                printf("  offset %s, ended %d\n", cases[i].offset, ended);
        }
    }
    unlink("big");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The last line wanted is the last there is, and ends with a block. */
static void a_big_file_read_to_its_last_line_is_known(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX], offset[32];
    int         i;
    tt_fill(&text, "0123456789abcde\n", (17 << 20) / 16);
    T_CHECK(text.len % (32 * 1024) == 0);
    tt_put("even", hfsb_buf_str(&text));
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("even"), hex, NULL) == HFSB_OK);
    for (i = 0; i < 3; i++) { /* the last, the last two, the last but one */
        snprintf(offset, sizeof offset, "%d", (17 << 20) / 16 - (i > 0));
        tt_call(&r, tools, "read", "path=s offset=j limit=j", "even", offset,
                i == 1 ? "2" : "1");
        T_CHECK(r.res.success);
        T_CHECK(tt_int(&r, "next_offset") ==
                (i == 2 ? (17 << 20) / 16 : -12345));
        if (i == 2) continue;
        T_CHECK(tt_int(&r, "total_lines") == (17 << 20) / 16);
        T_CHECK(hfsb_str_equal(tt_text(&r, "sha256"), hfsb_cstr(hex)));
    }
    unlink("even");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

typedef struct swapper {
    pthread_mutex_t lock;
    bool            stop;
} swapper;

static void *swap_files(void *arg) {
    swapper *s = (swapper *)arg;
    bool     stop = false;
    int      i;
    for (i = 0; !stop; i++) {
        if (link(i % 2 ? "many-a" : "many-b", "next") ||
            rename("next", "swapped"))
            abort();
        tt_sleep_ms(1);
        pthread_mutex_lock(&s->lock);
        stop = s->stop;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* The digest is that of the text which is shown, though the file is another by
   the time it is made. */
static void the_digest_belongs_to_what_was_read(void) {
    static const char *const names[] = {"many-a", "many-b"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    swapper                  s = {PTHREAD_MUTEX_INITIALIZER, false};
    pthread_t                thread;
    char                     hex[2][HFSB_SHA256_HEX];
    int                      i, right = 0;
    for (i = 0; i < 2; i++) {
        hfsb_buf text = HFSB_INIT;
        tt_fill(&text, i ? "bbbbbbbbbbbbbbbb" : "aaaaaaaaaaaaaaaa",
                (17 << 20) / 16);
        tt_put(names[i], hfsb_buf_str(&text));
        T_CHECK(hfsb_file_sha256(NULL, hfsb_cstr(names[i]), hex[i], NULL) ==
                HFSB_OK);
        hfsb_buf_free(&text);
    }
    T_CHECK(!link("many-a", "swapped"));
    T_CHECK(!pthread_create(&thread, NULL, swap_files, &s));
    for (i = 0; i < 10; i++) {
        tt_call(&r, tools, "read", "path=s", "swapped");
        T_CHECK(r.res.output.len > 4000);
        if (r.res.output.len > 4000)
            right +=
                hfsb_str_equal(tt_text(&r, "sha256"),
                               hfsb_cstr(hex[r.res.output.ptr[2] == 'b']));
    }
    pthread_mutex_lock(&s.lock);
    s.stop = true;
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    T_CHECK(right == 10);
    unlink("many-a"), unlink("many-b"), unlink("swapped");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(timeouts_may_be_without_end);
    TT_RUN(the_default_timeout_is_held_to_the_maximum);
    TT_RUN(a_note_names_only_some_unknown_keys);
    TT_RUN(a_shell_with_nul_is_refused);
    TT_RUN(a_file_that_waits_ends);
    TT_RUN(files_are_read_without_waiting);
    TT_RUN(a_binary_file_has_the_size_that_was_read);
    TT_RUN(bytes_that_are_no_text_count_as_characters);
    TT_RUN(a_reply_is_bounded_also_when_it_is_repaired);
    TT_RUN(offsets_may_be_as_low_as_can_be);
    TT_RUN(read_refuses_a_big_binary_file_at_once);
    TT_RUN(a_big_file_can_be_read_from_its_end);
    TT_RUN(a_big_file_read_to_its_last_line_is_known);
    TT_RUN(the_digest_belongs_to_what_was_read);
    return TT_END();
}
