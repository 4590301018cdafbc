/* test_mcp_results.c - what a model sees of long output, failures and answers,
   over a real connection. */
#include "../support/t_mcp.h"

/* The numbers from 1 on, one in a line. */
static void put_numbers(hfsb_buf *out, int last) {
    int i;
    for (i = 1; i <= last; i++)
        if (hfsb_buf_printf(out, "%d\n", i) != HFSB_OK) abort();
}

static hfsb_str last_line(const hfsb_buf *text) {
    size_t at = text->len;
    while (at > 0 && text->ptr[at - 1] != '\n') at--;
    return hfsb_str_slice(hfsb_buf_str(text), at, text->len);
}

/* The number after `before`, without the commas between its digits. */
static size_t number_after(hfsb_str text, const char *before) {
    size_t at = hfsb_str_find(text, hfsb_cstr(before)), n = 0;
    T_CHECK(at != HFSB_NPOS);
    if (at == HFSB_NPOS) return 0;
    for (at += strlen(before); at < text.len; at++) {
        if (text.ptr[at] >= '0' && text.ptr[at] <= '9')
            n = n * 10 + (size_t)(text.ptr[at] - '0');
        else if (text.ptr[at] != ',') break;
    }
    return n;
}

/* Checks a result that lost its middle: head and tail, the count, and the file
   that the last line names, whose content is `all`. */
static void check_cut(tm_client *c, const hfsb_buf *all, const char *rest) {
    hfsb_str text = hfsb_buf_str(&c->text), end = last_line(&c->text);
    hfsb_str path;
    char     name[300];
    size_t   first = number_after(text, "showing first ");
    size_t   last = number_after(text, " + last "), marker;
    T_CHECK(text.len < 20000);
    T_CHECK(hfsb_str_count_byte(text, '\n') < 2000);
    T_CHECK(first > 1000 && last > 3 * first / 2);
    T_CHECK(number_after(text, "... (") == all->len - first - last);
    T_CHECK(number_after(text, " of ") == all->len);
    T_CHECK(hfsb_str_starts(text, hfsb_str_slice(hfsb_buf_str(all), 0,
                                                 first)));
    marker = hfsb_str_find(text, HFSB_LIT("sections.\n"));
    T_CHECK(marker != HFSB_NPOS);
    T_CHECK(hfsb_str_starts(
        hfsb_str_slice(text, marker + 10, text.len),
        hfsb_str_slice(hfsb_buf_str(all), all->len - last, all->len)));
    T_CHECK(hfsb_str_find(text, hfsb_cstr(rest)) != HFSB_NPOS);
    T_CHECK(hfsb_str_starts(end, HFSB_LIT("[full output saved to /")));
    path = hfsb_str_slice(end, 22, end.len - 1);
    snprintf(name, sizeof name, "%.*s", (int)path.len, path.ptr);
    T_CHECK(tt_file_is(name, hfsb_buf_str(all)));
}

static void a_failed_command_keeps_what_a_successful_one_keeps(void) {
    static const struct {
        const char *arguments, *rest;
        bool        failed;
    } rows[] = {
        {"{\"command\":\"seq 20000\"}", "\n20000\n[full", false},
        {"{\"command\":\"seq 20000; exit 3\"}",
         "\n20000\n\n\nERROR: Exit code 3\n[full", true},
        {"{\"command\":\"seq 20000; kill -9 $$\"}",
         "\n20000\n\n\nERROR: Exit code -9 (killed by SIGKILL)\n[full", true},
        {"{\"command\":\"seq 20000; sleep 61\",\"timeout\":0.5}",
         "\n20000\n\n\nERROR: Timeout after 0.5s\n[full", true},
        {"{\"command\":\"seq 10000; seq 10001 20000 >&2; exit 3\"}",
         "\n20000\n\n\nERROR: Exit code 3\n[full", true},
        {"{\"command\":\"seq 20000; grep x /dev/null\"}",
         "\n20000\n[exit code 1: no match]\n[full", false},
    };
    tm_client c;
    hfsb_buf  all = HFSB_INIT;
    size_t    i;
    put_numbers(&all, 20000);
    tm_start(&c, NULL);
    for (i = 0; i < TT_COUNT(rows); i++) {
        char id[8];
        snprintf(id, sizeof id, "%zu", i);
        tm_call(&c, id, "bash", rows[i].arguments);
        T_CHECK(tm_wait(&c, id) && tm_failed(&c) == rows[i].failed);
        check_cut(&c, &all, rows[i].rest);
    }
    tm_end(&c);
    hfsb_buf_free(&all);
}

/* Below the limit, but more than some hosts show: it is whole, and saved. */
static void output_that_a_host_may_cut_is_saved(void) {
    tm_client c;
    hfsb_buf  all = HFSB_INIT;
    char      name[300];
    hfsb_str  end;
    put_numbers(&all, 1900);
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash", "{\"command\":\"seq 1900\"}");
    T_CHECK(tm_wait(&c, "1") && !tm_failed(&c));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.text), hfsb_buf_str(&all)));
    end = last_line(&c.text);
    T_CHECK(hfsb_str_starts(end, HFSB_LIT("[full output saved to /")));
    snprintf(name, sizeof name, "{\"path\":\"%.*s\",\"offset\":-1}",
             (int)end.len - 23, end.ptr + 22);
    tm_call(&c, "2", "read", name);
    T_CHECK(tm_wait(&c, "2") && tm_says(&c, "1900\t1900"));
    tm_call(&c, "3", "bash", "{\"command\":\"seq 1500\"}");
    T_CHECK(tm_wait(&c, "3") && !strstr(c.text.ptr, "saved"));
    tm_end(&c);
    hfsb_buf_free(&all);
}

/* Without a file the log of the job has the rest. */
static void a_cut_without_a_file_names_the_job(void) {
    hfsb_mcp_opts   o = HFSB_INIT;
    hfsb_tools_opts tools = HFSB_INIT;
    tm_client       c;
    const char     *at;
    char            ask[200];
    int             n = 0;
    tools.no_spill = true;
    o.tools = &tools;
    tm_start(&c, &o);
    tm_call(&c, "1", "bash", "{\"command\":\"seq 4500\"}");
    T_CHECK(tm_wait(&c, "1") && !strstr(c.text.ptr, "saved"));
    at = strstr(c.text.ptr, "[read on with bash_output id=");
    T_CHECK(at != NULL);
    if (at) {
        hfsb_str id = hfsb_cstr(at + 29);
        id = hfsb_str_slice(id, 0, hfsb_str_find_byte(id, ' '));
        n = atoi(strstr(at, "offset=") + 7);
        snprintf(ask, sizeof ask, "{\"id\":\"%.*s\",\"offset\":%d}",
                 (int)id.len, id.ptr, n);
        T_CHECK(c.text.ptr[n - 1] == '\n');
        for (n--; n > 0 && c.text.ptr[n - 1] != '\n';) n--;
        n = atoi(c.text.ptr + n); /* the last line of the head */
        tm_call(&c, "2", "bash_output", ask);
        T_CHECK(tm_wait(&c, "2") && atoi(c.text.ptr) == n + 1);
    }
    tm_end(&c);
}

/* ---- limits ---- */

static void every_result_stays_below_the_limit(void) {
    static const struct {
        const char *tool, *arguments;
    } rows[] = {
        {"bash", "{\"command\":\"yes | head -30000\"}"},
        {"bash", "{\"command\":\"yes '' | head -2500\"}"},
        {"bash", "{\"command\":\"printf %024000d 1\"}"},
        {"bash", "{\"command\":\"yes \xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\x97 | "
                 "head -6000; exit 1\"}"},
        {"bash", "{\"command\":\"printf %090000d 1 >&2; exit 1\"}"},
        {"read", "{\"path\":\"long\"}"},
        {"read", "{\"path\":\"long\",\"limit\":0}"},
        {"read", "{\"path\":\"wide\",\"limit\":0}"},
        {"read", "{\"path\":\"thin\",\"limit\":0}"},
        {"grep", "{\"pattern\":\"a\",\"path\":\"long\",\"limit\":5000}"},
        {"grep", "{\"pattern\":\"a\",\"path\":\"long\",\"limit\":5000,"
                 "\"context\":3}"},
        {"grep", "{\"pattern\":\"x\",\"path\":\"thin\",\"limit\":5000}"},
        {"list", "{\"path\":\"many\",\"limit\":5000}"},
        {"list", "{\"path\":\"many\",\"limit\":5000,\"details\":true}"},
        {"glob", "{\"pattern\":\"many/*\",\"limit\":5000}"},
        {"bash_output", "{\"id\":\"job\",\"wait_ms\":60000}"},
        {"write", "{\"path\":\"new.json\",\"content\":\"[\"}"},
    };
    static const size_t limits[] = {0, 4000, 9000, 60000};
    size_t              i, k;
    int                 n;
    hfsb_buf            text = HFSB_INIT;
    t_repeat(&text, "a line of a file, as long as many are\n", 4000);
    tt_put("long", hfsb_buf_str(&text));
    hfsb_buf_truncate(&text, 0);
    t_repeat(&text, "\xC3\xA9", 200000);
    tt_put("wide", hfsb_buf_str(&text));
    hfsb_buf_truncate(&text, 0);
    t_repeat(&text, "x\n", 30000);
    tt_put("thin", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    if (mkdir("many", 0700)) abort();
    for (n = 0; n < 2500; n++) {
        char name[80];
        snprintf(name, sizeof name, "many/%d", n);
        tt_put(name, HFSB_LIT(""));
    }
    for (k = 0; k < TT_COUNT(limits); k++) {
        hfsb_mcp_opts o = HFSB_INIT;
        size_t        most = limits[k] ? limits[k] : 20000;
        tm_client     c;
        o.max_result = limits[k];
        tm_start(&c, &o);
        tm_call(&c, "\"job\"", "bash",
                "{\"command\":\"seq 50000\",\"id\":\"job\"}");
        T_CHECK(tm_wait(&c, "\"job\""));
        for (i = 0; i < TT_COUNT(rows); i++) {
            char   id[8];
            size_t lines;
            snprintf(id, sizeof id, "%zu", i);
            tm_call(&c, id, rows[i].tool, rows[i].arguments);
            T_CHECK(tm_wait(&c, id));
            lines = hfsb_str_count_byte(hfsb_buf_str(&c.text), '\n');
            T_CHECK(c.text.len > 0 && c.text.len <= most);
            T_CHECK(lines < most / 10);
            if (c.text.len > most || lines >= most / 10)
                printf("  %s %s: %zu bytes, %zu lines\n", rows[i].tool,
                       rows[i].arguments, c.text.len, lines);
            T_CHECK(!tm_result(&c, "structuredContent"));
            T_CHECK(!strstr(c.text.ptr, "[cut:")); /* a page, with an offset */
        }
        tm_end(&c);
    }
}

/* What a cut leaves out can be read on with the offset that it names. */
static void pages_of_a_file_fit_together(void) {
    tm_client c;
    hfsb_buf  text = HFSB_INIT;
    long      line = 1, pages = 0;
    int       i;
    for (i = 1; i <= 3000; i++)
        T_CHECK(hfsb_buf_printf(&text, "%d is the number of this line\n", i) ==
                HFSB_OK);
    tt_put("numbered", hfsb_buf_str(&text));
    tm_start(&c, NULL);
    while (line && ++pages < 20) {
        char ask[80], want[80];
        const char *next;
        snprintf(ask, sizeof ask, "{\"path\":\"numbered\",\"offset\":%ld}",
                 line);
        tm_call(&c, "1", "read", ask);
        T_CHECK(tm_wait(&c, "1"));
        snprintf(want, sizeof want, "%ld\t%ld is the", line, line);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.text), hfsb_cstr(want)));
        next = strstr(c.text.ptr, "read on with offset=");
        if (next) {
            snprintf(want, sizeof want, "\n%ld\t", atol(next + 20) - 1);
            T_CHECK(strstr(c.text.ptr, want) != NULL);
        } else {
            T_CHECK(strstr(c.text.ptr, "\n3000\t3000 is") != NULL);
        }
        line = next ? atol(next + 20) : 0;
        hfsb_buf_truncate(&c.got, 0); /* the next answer has the same id */
    }
    T_CHECK(pages > 5 && pages < 10);
    tm_end(&c);
    hfsb_buf_free(&text);
}

/* Checks an answer to the end of a job that has printed `all`: it shows all of
   it, or says what it leaves out. */
static void check_page(const hfsb_buf *text, const hfsb_buf *all) {
    hfsb_str    shown = hfsb_buf_str(text);
    size_t      from = all->len, to = all->len, end = 0;
    const char *mark = strstr(text->ptr, "... (bytes ");
    if (mark) {
        from = number_after(shown, "... (bytes ");
        to = number_after(shown, " to ");
        end = (size_t)(strchr(mark, '\n') + 1 - text->ptr);
    }
    T_CHECK(from <= to && to <= all->len);
    T_CHECK(mark ? mark == text->ptr + from : from == all->len);
    T_CHECK(memcmp(text->ptr, all->ptr, from) == 0);
    if (!mark) end = from;
    T_CHECK(memcmp(text->ptr + end, all->ptr + to, all->len - to) == 0);
    T_CHECK(number_after(shown, "; next_offset=") == all->len);
}

/* What an answer did not show is not skipped by the next one, however small a
   result may be. */
static void pages_of_a_job_fit_together(void) {
    static const size_t limits[] = {4000, 7000, 20000};
    hfsb_buf            all = HFSB_INIT;
    size_t              i;
    int                 last;
    for (i = 0; i < TT_COUNT(limits); i++) {
        hfsb_mcp_opts o = HFSB_INIT;
        tm_client     c;
        o.max_result = limits[i];
        tm_start(&c, &o);
        for (last = (int)limits[i] / 10; last < (int)limits[i] / 4;
             last += (int)limits[i] / 80) {
            char id[8], ask[100];
            hfsb_buf_truncate(&all, 0);
            put_numbers(&all, last);
            snprintf(id, sizeof id, "%d", last);
            snprintf(ask, sizeof ask,
                     "{\"command\":\"seq %d > n; cat n\",\"id\":\"s%d\","
                     "\"background\":true}",
                     last, last);
            tm_call(&c, id, "bash", ask);
            T_CHECK(tm_wait(&c, id));
            snprintf(id, sizeof id, "%d", last + 1);
            snprintf(ask, sizeof ask, "{\"id\":\"s%d\",\"wait_ms\":5000}",
                     last);
            tm_call(&c, id, "bash_output", ask);
            T_CHECK(tm_wait(&c, id) && c.text.len <= limits[i]);
            if (!strstr(c.text.ptr, " bytes more")) check_page(&c.text, &all);
        }
        tm_end(&c);
    }
    hfsb_buf_free(&all);
}

/* ---- answers ---- */

static void an_answer_is_not_an_error(void) {
    static const struct {
        const char *command, *text;
        bool        failed;
    } rows[] = {
        {"grep x f", "(no output)\n[exit code 1: no match]", false},
        {"cd . && grep -c x f", "0\n[exit code 1: no match]", false},
        {"diff f g | cat; diff f g > out",
         "> b\n[exit code 1: the files differ]", false},
        {"[ -e none ]", "(no output)\n[exit code 1: the condition is false]",
         false},
        {"false", "ERROR: Exit code 1", true},
        {"cd none 2>&1 && grep x f", "ERROR: Exit code 1", true},
        {"grep x none 2>&1", "ERROR: Exit code 2", true},
        {"grep x < none", "ERROR: Exit code 1", true},
    };
    tm_client c;
    size_t    i;
    tt_put("f", HFSB_LIT("a\n"));
    tt_put("g", HFSB_LIT("b\n"));
    tm_start(&c, NULL);
    for (i = 0; i < TT_COUNT(rows); i++) {
        char id[8], ask[200];
        snprintf(id, sizeof id, "%zu", i);
        snprintf(ask, sizeof ask, "{\"command\":\"%s\"}", rows[i].command);
        tm_call(&c, id, "bash", ask);
        T_CHECK(tm_wait(&c, id) && tm_failed(&c) == rows[i].failed);
        T_CHECK(hfsb_str_ends(hfsb_buf_str(&c.text), hfsb_cstr(rows[i].text)));
        if (!hfsb_str_ends(hfsb_buf_str(&c.text), hfsb_cstr(rows[i].text)))
            printf("  %s: %s\n", rows[i].command, c.text.ptr);
    }
    tm_end(&c);
}

int main(void) {
    tt_begin();
    TT_RUN(a_failed_command_keeps_what_a_successful_one_keeps);
    TT_RUN(output_that_a_host_may_cut_is_saved);
    TT_RUN(a_cut_without_a_file_names_the_job);
    TT_RUN(every_result_stays_below_the_limit);
    TT_RUN(pages_of_a_file_fit_together);
    TT_RUN(pages_of_a_job_fit_together);
    TT_RUN(an_answer_is_not_an_error);
    return TT_END();
}
