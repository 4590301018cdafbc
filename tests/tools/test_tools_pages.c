/* test_tools_pages.c - output of jobs by pages, as a model gets it; names and
   lists of jobs. */
#include "../support/t_tools.h"

static hfsb_call_opts paged(size_t page) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.page = page;
    return opts;
}

/* Calls a tool with pages of that size. */
static void ask(tt_reply *r, hfsb_tools *tools, size_t page, const char *tool,
                const char *json) {
    hfsb_call_opts opts = paged(page);
    tt_do(r, tools, tool, hfsb_cstr(json), &opts);
}

static void begin(hfsb_tools *tools, const char *id, const char *command) {
    tt_reply r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s id=s background=j", command, id,
            "true");
    T_CHECK(r.res.success);
    tt_drop(&r);
}

/* ---- the wait ---- */

static void a_build_is_one_page(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    begin(tools, "b", "i=0; while [ $i -lt 60 ]; do i=$((i + 1)); "
                      "echo line $i; sleep 0.02; done; exit 3");
    ask(&r, tools, 15000, "bash_output", "{\"id\":\"b\",\"wait_ms\":20000}");
    T_CHECK(r.res.success && tt_says(&r.res.output, "line 1\n"));
    T_CHECK(tt_says(&r.res.output, "line 60\n"));
    T_CHECK(!tt_flag(&r, "running") && tt_int(&r, "exit_code") == 3);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A test runner draws dots on one line: that is no question. */
static void only_a_question_ends_the_wait(void) {
    static const struct {
        const char *text;
        bool        asks;
    } rows[] = {
        {"Continue? ", true},    {"Name: ", true},       {">>> ", true},
        {"root# ", true},        {"go on [Y/n] ", true}, {"(yes/no) ", true},
        {"tests .....", false},  {"Compiling x ...", false},
        {"12/20 [00:05]", false}, {"50%", false},
        {"(gdb) ", true},        {"(Pdb) ", true},       {"(50)", false},
        {"linking (bar)", false}, {"()", false},
    };
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        id[8], command[80], json[80];
    size_t      i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        long long begun, took;
        snprintf(id, sizeof id, "q%zu", i);
        snprintf(command, sizeof command,
                 "printf %%s '%s'; echo $$ > said; read x", rows[i].text);
        unlink("said");
        begin(tools, id, command);
        T_CHECK(tt_pid_in("said") > 0); /* not a slow start */
        begun = hfsb_clock_ms();
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"wait_ms\":%d}", id,
                 rows[i].asks ? 20000 : 900);
        ask(&r, tools, 15000, "bash_output", json);
        took = hfsb_clock_ms() - begun;
        TT_OK(&r, rows[i].text);
        T_CHECK(tt_flag(&r, "running"));
        T_CHECK(rows[i].asks ? took < 15000 : took >= 900);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_full_page_ends_the_wait(void) {
    static const char *const commands[] = {
        "head -c 1200 /dev/zero | tr '\\0' a; echo; sleep 60", /* bytes */
        "yes '' | head -n 110; sleep 60"};                      /* lines */
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(commands); i++) {
        char      id[2] = {(char)('a' + i), 0}, json[60];
        long long begun = hfsb_clock_ms();
        begin(tools, id, commands[i]);
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"wait_ms\":20000}", id);
        ask(&r, tools, 1000, "bash_output", json);
        T_CHECK(r.res.output.len == (i ? 110 : 1201));
        T_CHECK(tt_flag(&r, "running") && hfsb_clock_ms() < begun + 15000);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A caller who names no time wants what there is, not the end of a server. */
static void a_pause_ends_a_wait_without_a_time(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        id[8], json[30];
    long long   begun, took = 10000;
    int         i; /* a busy machine adds to each try */
    for (i = 0; i < 5 && took >= 4500; i++) {
        snprintf(id, sizeof id, "s%d", i);
        snprintf(json, sizeof json, "{\"id\":\"%s\"}", id);
        begun = hfsb_clock_ms();
        begin(tools, id, "echo up; echo ready; sleep 60");
        ask(&r, tools, 15000, "bash_output", json);
        took = hfsb_clock_ms() - begun;
        TT_OK(&r, "up\nready\n");
    }
    T_CHECK(took < 4500);
    begun = hfsb_clock_ms(); /* nothing new comes */
    ask(&r, tools, 15000, "bash_output", json);
    TT_OK(&r, "");
    T_CHECK(hfsb_clock_ms() - begun >= 4900);
    snprintf(json, sizeof json, "{\"id\":\"%s\",\"wait_ms\":0}", id);
    for (i = 0, took = 10000; i < 5 && took >= 4500; i++) {
        begun = hfsb_clock_ms();
        ask(&r, tools, 15000, "bash_output", json);
        took = hfsb_clock_ms() - begun;
        TT_OK(&r, "");
    }
    T_CHECK(took < 4500);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what is shown ---- */

static void a_page_follows_the_last_one(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    begin(tools, "f", "echo one; read x; echo two; printf 'three? '; read x; "
                      "echo over");
    ask(&r, tools, 15000, "bash_output", "{\"id\":\"f\"}");
    TT_OK(&r, "one\n");
    T_CHECK(tt_int(&r, "next_offset") == 4);
    tt_call(&r, tools, "bash_input", "id=s text=s", "f", "\n");
    TT_OK(&r, "Sent 1 bytes to job f");
    ask(&r, tools, 15000, "bash_output", "{\"id\":\"f\"}");
    TT_OK(&r, "two\nthree? ");
    ask(&r, tools, 15000, "bash_input", "{\"id\":\"f\",\"text\":\"\\n\"}");
    TT_OK(&r, "three? over\n");
    /* an offset is taken as it is, and without a page the default is 0 */
    ask(&r, tools, 15000, "bash_output", "{\"id\":\"f\",\"offset\":4}");
    TT_OK(&r, "two\nthree? over\n");
    tt_call(&r, tools, "bash_output", "id=s", "f");
    TT_OK(&r, "one\ntwo\nthree? over\n");
    ask(&r, tools, 15000, "bash_output", "{\"id\":\"f\"}");
    TT_OK(&r, "");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void long_output_is_shown_by_head_and_tail(void) {
    hfsb_tools        *tools = tt_open(NULL);
    tt_reply           r = HFSB_INIT;
    const char        *at;
    unsigned long long from = 0, to = 0;
    char               json[80];
    begin(tools, "l", "seq 1 100000; echo fin; exit 1");
    tt_await(&r, tools, "l", "588895", NULL);
    ask(&r, tools, 2000, "bash_output", "{\"id\":\"l\"}");
    T_CHECK(r.res.success && r.res.output.len < 2100);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("1\n2\n")));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("\n100000\nfin\n")));
    T_CHECK(tt_int(&r, "next_offset") == 588899);
    T_CHECK(!tt_flag(&r, "running") && tt_int(&r, "exit_code") == 1);
    at = strstr(r.res.output.ptr, "... (bytes ");
    T_CHECK(at && sscanf(at, "... (bytes %llu to %llu left out", &from,
                         &to) == 2);
    /* what was left out: whole lines, page by page */
    T_CHECK(at && at[-1] == '\n' && from < to);
    snprintf(json, sizeof json, "{\"id\":\"l\",\"offset\":%llu}", from);
    ask(&r, tools, 2000, "bash_output", json);
    T_CHECK(r.res.success && hfsb_str_find(tt_text(&r, "notes"),
                                           HFSB_LIT("bytes more")) != HFSB_NPOS);
    T_CHECK(tt_int(&r, "offset") == (long long)from);
    T_CHECK(tt_int(&r, "next_offset") > (long long)from + 800 &&
            tt_int(&r, "next_offset") <= (long long)from + 2500);
    /* the next page goes on there */
    from = (unsigned long long)tt_int(&r, "next_offset");
    ask(&r, tools, 100000, "bash_output", "{\"id\":\"l\"}");
    T_CHECK(tt_int(&r, "offset") == (long long)from);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* One line that is longer than a page, and lines of one byte. */
static void odd_lines_fit_a_page(void) {
    static const char *const commands[] = {
        "head -c 9000 /dev/zero | tr '\\0' x; echo",
        "head -c 9000 /dev/zero | tr '\\0' x", "yes '' | head -n 9000",
        "yes '' | head -n 1200", "printf 'a\\n'; yes '' | head -n 1200"};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(commands); i++) {
        char id[2] = {(char)('a' + i), 0}, json[60];
        begin(tools, id, commands[i]);
        tt_await(&r, tools, id, "100000", NULL);
        snprintf(json, sizeof json, "{\"id\":\"%s\"}", id);
        ask(&r, tools, 1000, "bash_output", json);
        T_CHECK(r.res.success && r.res.output.len < 1400);
        T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') < 130);
        T_CHECK(tt_int(&r, "next_offset") > 0);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The tail of one long line starts between characters. */
static void a_tail_starts_with_a_character(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    int         i;
    for (i = 0; i < 3; i++) {
        char id[2] = {(char)('a' + i), 0}, command[80], json[40];
        snprintf(command, sizeof command,
                 "printf '%%3000s%%%ds' '' '' | sed 's/ /\xe2\x82\xac/g'",
                 i);
        begin(tools, id, command);
        tt_await(&r, tools, id, "100000", NULL);
        snprintf(json, sizeof json, "{\"id\":\"%s\"}", id);
        ask(&r, tools, 1000 + (size_t)i, "bash_output", json);
        T_CHECK(r.res.success && tt_says(&r.res.output, " left out here"));
        T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&r.res.output)) ==
                r.res.output.len);
        T_CHECK(r.res.output.len > 900 && r.res.output.len < 1250);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* An unfinished line may be longer than a page: its end is shown, where a
   question would be, and once it has ended all of it. */
static void an_unfinished_line_fits_a_page(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    long long   next = -1;
    begin(tools, "u", "echo first; head -c 6000 /dev/zero | tr '\\0' x; "
                      "printf 'Sure? '; read x; echo over");
    ask(&r, tools, 1000, "bash_output", "{\"id\":\"u\",\"wait_ms\":20000}");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("first\n...xxx")));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("xxxSure? ")));
    T_CHECK(r.res.output.len > 1200 && r.res.output.len <= 1250);
    T_CHECK(tt_int(&r, "next_offset") == 6);
    tt_call(&r, tools, "bash_input", "id=s text=s", "u", "\n");
    tt_await(&r, tools, "u", "6000", NULL);
    ask(&r, tools, 10000, "bash_output", "{\"id\":\"u\"}");
    next = tt_int(&r, "next_offset");
    T_CHECK(tt_int(&r, "offset") == 6 && next == 6 + 6000 + 6 + 5);
    T_CHECK(r.res.output.len == 6000 + 6 + 5);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Of any size that a caller gives, none is lost or shown twice. */
static void pages_of_any_size_are_complete(void) {
    static const size_t sizes[] = {1, 1000, 1001, 3333, 99999, (size_t)-1};
    hfsb_tools         *tools = tt_open(NULL);
    tt_reply            r = HFSB_INIT;
    size_t              i;
    begin(tools, "p", "seq 1 5000; printf end");
    tt_await(&r, tools, "p", "23896", NULL);
    for (i = 0; i < TT_COUNT(sizes); i++) {
        long long at = 0, last = -1;
        char      json[60], line[16];
        long      number = 1;
        while (at > last) {
            const char *text;
            snprintf(json, sizeof json, "{\"id\":\"p\",\"offset\":%lld}", at);
            ask(&r, tools, sizes[i], "bash_output", json);
            last = at;
            at = tt_int(&r, "next_offset");
            text = r.res.output.ptr;
            for (; at > last && number <= 5000; number++) {
                int n = snprintf(line, sizeof line, "%ld\n", number);
                if (strncmp(text, line, (size_t)n) != 0) break;
                text += n;
            }
            T_CHECK(at == last || at == text - r.res.output.ptr + last ||
                    strcmp(text, "end") == 0);
        }
        T_CHECK(number == 5001 && at == 23896);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void each_allocation_of_an_answer_may_fail(void) {
    static const char *const calls[] = {
        "{\"id\":\"l\"}",  "{\"id\":\"l\",\"offset\":70000}", "{}",
        "{\"id\":\"none\"}", "{\"id\":\"q\",\"wait_ms\":2000}"};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i, n;
    begin(tools, "q", "printf 'Sure? '; read x");
    begin(tools, "l", "seq 1 100000");
    tt_await(&r, tools, "l", "588895", NULL);
    for (i = 0; i < TT_COUNT(calls); i++) {
        bool done = false;
        for (n = 0; !done && n < 200; n++) {
            tools->jobs->read_to = 0;     /* of l, the newest */
            tools->jobs->next->shown = 0; /* of q */
            tt_memory.heap.fail_at = tt_memory.heap.calls + n + 1;
            ask(&r, tools, 2000, "bash_output", calls[i]);
            done = tt_memory.heap.calls < tt_memory.heap.fail_at;
            tt_memory.heap.fail_at = 0;
            T_CHECK(r.st == HFSB_OK || r.st == HFSB_NOMEM);
            T_CHECK(!done || r.res.success == (i != 3));
        }
        T_CHECK(done && n > 1);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- input ---- */

static void input_is_answered(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    long long   begun;
    begin(tools, "i", "while read x; do sleep 0.1; echo \"<$x>\"; echo done; "
                      "done; echo over; exit 5");
    ask(&r, tools, 15000, "bash_input", "{\"id\":\"i\",\"text\":\"a\\n\"}");
    TT_OK(&r, "<a>\ndone\n");
    T_CHECK(tt_flag(&r, "running"));
    begun = hfsb_clock_ms(); /* a longer time is not used up */
    ask(&r, tools, 15000, "bash_input",
        "{\"id\":\"i\",\"text\":\"b\\n\",\"wait_ms\":30000}");
    TT_OK(&r, "<b>\ndone\n");
    T_CHECK(hfsb_clock_ms() - begun < 15000);
    ask(&r, tools, 15000, "bash_input", "{\"id\":\"i\",\"eof\":true}");
    TT_OK(&r, "over\n");
    T_CHECK(!tt_flag(&r, "running") && tt_int(&r, "exit_code") == 5);
    ask(&r, tools, 15000, "bash_input", "{\"id\":\"i\",\"text\":\"c\\n\"}");
    TT_FAIL(&r, "Job i has ended.");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- names ---- */

static void unknown_jobs_are_answered_with_the_known(void) {
    static const char *const tools_of_jobs[] = {"bash_output", "bash_input",
                                                "kill"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    char                     id[8];
    tt_call(&r, tools, "kill", "id=s", "x");
    TT_FAIL(&r, "No such job: x. There are none.");
    begin(tools, "a\nb", "exit 3");
    tt_await(&r, tools, "a\nb", NULL, NULL);
    begin(tools, "c", "sleep 60");
    for (i = 0; i < TT_COUNT(tools_of_jobs); i++) {
        tt_call(&r, tools, tools_of_jobs[i], "id=s text=s", "x",
                i == 1 ? "t" : NULL);
        TT_FAIL(&r, "No such job: x. There are: c (running), a\\nb (exit "
                    "code 3).");
    }
    for (i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "j%zu", i);
        begin(tools, id, "sleep 60");
    }
    tt_call(&r, tools, "kill", "id=s", "x");
    T_CHECK(tt_says(&r.res.error, "j7 (running), ") &&
            tt_says(&r.res.error, "j0 (running) ...") &&
            !tt_says(&r.res.error, "c (running)"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void jobs_are_listed(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tt_call(&r, tools, "bash_output", "");
    TT_OK(&r, "There are no jobs.");
    begin(tools, "k", "kill -SEGV $$");
    tt_await(&r, tools, "k", NULL, NULL);
    T_STR(tt_text(&r, "signal_name"), "SIGSEGV");
    tt_call(&r, tools, "bash", "command=s id=s timeout=j", "sleep 60", "t",
            "0.2");
    tt_call(&r, tools, "bash", "command=s id=s description=s background=j",
            "sleep 60", "d", "the server", "true");
    tt_call(&r, tools, "bash_output", "");
    T_CHECK(r.res.success &&
            tt_says(&r.res.output, "d: running, 0 s: the server\nt: timed "
                                   "out, ") &&
            tt_says(&r.res.output, " s: sleep 60\nk: killed by SIGSEGV, 0 s: "
                                   "kill -SEGV $$\n"));
    for (i = 0; i < 50; i++)
        tt_call(&r, tools, "bash", "command=s", ":");
    tt_call(&r, tools, "bash_output", "");
    T_CHECK(tt_says(&r.res.output, "(and older ones)\n"));
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') == 51);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(a_build_is_one_page);
    TT_RUN(only_a_question_ends_the_wait);
    TT_RUN(a_full_page_ends_the_wait);
    TT_RUN(a_pause_ends_a_wait_without_a_time);
    TT_RUN(a_page_follows_the_last_one);
    TT_RUN(long_output_is_shown_by_head_and_tail);
    TT_RUN(odd_lines_fit_a_page);
    TT_RUN(a_tail_starts_with_a_character);
    TT_RUN(an_unfinished_line_fits_a_page);
    TT_RUN(pages_of_any_size_are_complete);
    TT_RUN(each_allocation_of_an_answer_may_fail);
    TT_RUN(input_is_answered);
    TT_RUN(unknown_jobs_are_answered_with_the_known);
    TT_RUN(jobs_are_listed);
    return TT_END();
}
