/* test_mcp_stdio.c - MCP over descriptors: lines in, lines out, kinds of
   descriptors, and a client that does not read. */
#include "../support/t_mcp.h"

#include <sys/socket.h>

#define META                                                                 \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* ---- methods ---- */

static void both_eras_are_answered(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_ping(&c, "\"early\"");
    T_CHECK(tm_wait(&c, "\"early\""));
    T_CHECK(hfsb_json_count(hfsb_json_get(c.doc.root, "result")) == 0);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\","
                "\"params\":{" META "}}");
    T_CHECK(tm_wait(&c, "1"));
    T_STR(hfsb_json_str(hfsb_json_at(tm_result(&c, "supportedVersions"), 0),
                        HFSB_LIT("")),
          "2026-07-28");
    tm_initialize(&c, "2025-03-26");
    T_CHECK(tm_wait(&c, "\"init\""));
    T_STR(hfsb_json_str(tm_result(&c, "protocolVersion"), HFSB_LIT("")),
          "2025-03-26");
    T_CHECK(hfsb_json_str(tm_result(&c, "instructions"), HFSB_LIT("")).len <
            500);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"method\":"
                "\"notifications/initialized\"}");
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    T_CHECK(tm_wait(&c, "2"));
    T_CHECK(hfsb_json_count(tm_result(&c, "tools")) >= 10);
    T_CHECK(!tm_result(&c, "resultType"));
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\","
                "\"params\":{" META "}}");
    T_CHECK(tm_wait(&c, "3"));
    T_STR(hfsb_json_str(tm_result(&c, "resultType"), HFSB_LIT("")),
          "complete");
    T_CHECK(tm_count(&c, "") == 5);
    tm_end(&c);
}

static void unknown_methods_and_tools_are_errors(void) {
    static const struct {
        const char *id, *line;
        long long   code;
    } cases[] = {
        {"1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}", -32601},
        {"2",
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
         "\"params\":{\"name\":\"no_such\",\"arguments\":{}}}",
         -32602},
        {"3",
         "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"logging/setLevel\","
         "\"params\":{\"level\":\"info\"}}",
         -32601},
        {"4",
         "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":{" META
         "}}",
         -32601},
        {"5",
         "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\","
         "\"params\":{\"name\":\"exists\",\"arguments\":{\"path\":\"a\"}}}",
         -32602},
        {"null", "this is not json", -32700},
        {"null", "[]", -32600},
    };
    tm_client c;
    size_t    i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        tm_start(&c, NULL);
        tm_send(&c, "%s", cases[i].line);
        T_CHECK(tm_wait(&c, cases[i].id));
        T_CHECK(tm_code(&c) == cases[i].code);
        tm_ping(&c, "99"); /* still serving */
        T_CHECK(tm_wait(&c, "99"));
        T_CHECK(tm_count(&c, "") == 2);
        tm_end(&c);
    }
}

static void each_message_of_a_batch_is_answered(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_send(&c, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},"
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\","
                "\"params\":{" META "}},7,"
                "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\","
                "\"params\":{\"name\":\"bash\",\"arguments\":"
                "{\"command\":\"echo batch\"}}}]");
    T_CHECK(tm_wait(&c, "1") && tm_code(&c) == 0);
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == -32600);
    T_CHECK(tm_wait(&c, "null") && tm_code(&c) == -32600);
    T_CHECK(tm_wait(&c, "3") && tm_says(&c, "batch"));
    T_CHECK(tm_count(&c, "") == 4);
    tm_end(&c);
}

static void a_long_batch_is_refused_as_a_whole(void) {
    tm_client c;
    hfsb_buf  b = HFSB_INIT;
    tt_fill(&b, "[1", 1);
    tt_fill(&b, ",1", 100);
    tt_fill(&b, "]\n", 1);
    tm_start(&c, NULL);
    tm_raw(&c, b.ptr);
    tm_ping(&c, "1");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(tm_wait(&c, "null") && tm_code(&c) == -32600);
    T_CHECK(tm_count(&c, "") == 2);
    hfsb_buf_free(&b);
    tm_end(&c);
}

/* ---- lines ---- */

static void lines_may_come_in_any_pieces(void) {
    static const char text[] =
        "\n\r\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n";
    tm_client c;
    char      one[2] = "";
    size_t    i;
    tm_start(&c, NULL);
    tm_raw(&c, text);
    for (i = 0; i < sizeof text - 1; i++) {
        one[0] = text[i];
        tm_raw(&c, one);
    }
    tm_ping(&c, "4");
    T_CHECK(tm_wait(&c, "4"));
    T_CHECK(tm_count(&c, "\"id\":1") == 2 && tm_count(&c, "\"id\":2") == 2 &&
            tm_count(&c, "\"id\":3") == 2 && tm_count(&c, "") == 7);
    tm_end(&c);
}

static void a_line_that_is_too_long_is_skipped(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    hfsb_buf      b = HFSB_INIT;
    size_t        at;
    o.max_message = 100000;
    tm_start(&c, &o);
    tt_fill(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},", 5000);
    tt_fill(&b, "\n", 1);
    for (at = 0; at < b.len; at += 5000) {
        char piece[5001];
        snprintf(piece, sizeof piece, "%s", b.ptr + at);
        tm_raw(&c, piece);
    }
    T_CHECK(tm_wait(&c, "null"));
    T_CHECK(tm_code(&c) == -32600);
    tm_ping(&c, "2");
    T_CHECK(tm_wait(&c, "2"));
    T_CHECK(tm_count(&c, "") == 2);
    T_CHECK(tt_memory_held() < 180000); /* the line has 210,000 */
    hfsb_buf_free(&b);
    tm_end(&c);
}

/* The pipe is filled and closed before the server starts. */
static void lines_before_the_end_of_input_are_answered(void) {
    tm_client c;
    tm_open(&c, NULL);
    tm_pipes(&c);
    tm_initialize(&c, "2025-06-18");
    tm_call(&c, "1", "bash", "{\"command\":\"echo quick\"}");
    tt_put("seen.txt", HFSB_LIT("some text\n"));
    tm_call(&c, "2", "read", "{\"path\":\"seen.txt\"}");
    tm_raw(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    tm_shut(&c.to);
    tm_run_fds(&c, c.theirs[0], c.theirs[1]);
    T_CHECK(tm_join(&c) < 1500);
    tm_listen(&c, 20);
    T_CHECK(tm_wait(&c, "\"init\""));
    if (!t_quick()) /* under valgrind and the like a command is slow */
        T_CHECK(tm_wait(&c, "1") && tm_says(&c, "quick"));
    T_CHECK(tm_wait(&c, "2") && tm_says(&c, "some text"));
    T_CHECK(tm_wait(&c, "3"));
    tm_end(&c);
}

/* ---- descriptors ---- */

static void files_are_read_and_written(void) {
    tm_client c;
    hfsb_buf  lines = HFSB_INIT;
    size_t    i;
    int       in, out;
    for (i = 0; i < 3000; i++) /* more than a read */
        T_CHECK(hfsb_buf_printf(&lines,
                                "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":"
                                "\"ping\"}\n",
                                i) == HFSB_OK);
    tt_put("in.txt", hfsb_buf_str(&lines));
    in = open("in.txt", O_RDONLY | O_CLOEXEC);
    out = open("out.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    tm_open(&c, NULL);
    tm_run_fds(&c, in, out);
    (void)tm_join(&c);
    T_CHECK(tt_lines_in("out.txt") == 3000);
    tm_end(&c);
    close(in);
    in = open("/dev/null", O_RDWR | O_CLOEXEC);
    tm_open(&c, NULL);
    tm_run_fds(&c, in, in);
    T_CHECK(tm_join(&c) < 1500);
    tm_end(&c);
    close(in);
    close(out);
    hfsb_buf_free(&lines);
}

static void one_socket_serves_as_both_descriptors(void) {
    tm_client c;
    int       pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) abort();
    tm_open(&c, NULL);
    tm_run_fds(&c, pair[1], pair[1]);
    c.from = pair[0];
    c.to = dup(pair[0]);
    tm_ping(&c, "1");
    T_CHECK(tm_wait(&c, "1"));
    shutdown(pair[0], SHUT_WR);
    T_CHECK(tm_join(&c) < 1500);
    close(pair[1]);
    tm_end(&c);
}

static void descriptor_flags_stay_as_they_were(void) {
    tm_client c;
    hfsb_err  err = HFSB_INIT;
    int       in, out;
    tm_start(&c, NULL);
    tm_ping(&c, "1");
    T_CHECK(tm_wait(&c, "1"));
    in = fcntl(c.theirs[0], F_GETFL);
    out = fcntl(c.theirs[1], F_GETFL);
    T_CHECK(!(in & O_NONBLOCK) && !(out & O_NONBLOCK));
    tm_end(&c);
    tm_open(&c, NULL);
    T_CHECK(hfsb_server_run(c.server, &err) == HFSB_ARG);
    T_CHECK(hfsb_mcp_stdio(c.mcp, 9999, 1, &err) == HFSB_IO);
    T_CHECK(strstr(err.msg, "9999") != NULL);
    tm_end(&c);
}

/* ---- a client that does not read ---- */

/* True when the pipe takes more within ms. */
static bool writable(int fd, int ms) {
    struct pollfd p;
    memset(&p, 0, sizeof p);
    p.fd = fd;
    p.events = POLLOUT;
    return poll(&p, 1, ms) > 0;
}

static void input_is_not_read_while_output_is_choked(void) {
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}\n";
    tm_client c;
    size_t    sent = 0;
    tm_start(&c, NULL);
    while (sent < 100000 && writable(c.to, 300)) {
        tm_raw(&c, line);
        sent++;
    }
    T_CHECK(sent > 100 && sent < 100000);
    T_CHECK(tt_memory_held() < (32u << 20));
    while (tm_more(&c, 500)) continue;
    T_CHECK(tm_count(&c, "\"id\":7") == sent); /* none was lost */
    T_CHECK(writable(c.to, 1000));
    tm_end(&c);
}

static void the_end_of_input_is_seen_while_output_is_choked(void) {
    tm_client c;
    hfsb_buf  text = HFSB_INIT;
    int       i, way;
    for (i = 0; i < 20000; i++)
        if (hfsb_buf_printf(&text, "%d a line of a file\n", i) != HFSB_OK)
            abort();
    tt_put("long.txt", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    for (way = 0; way < 2; way++) {
        int pair[2];
        tm_open(&c, NULL);
        tm_pipes(&c);
        if (way && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
            abort();
        if (way) { /* a socket that is shut down one way */
            tm_shut(&c.to);
            tm_shut(&c.theirs[0]);
            c.to = pair[0];
            c.theirs[0] = pair[1];
        }
        tm_run_fds(&c, c.theirs[0], c.theirs[1]);
        for (i = 0; i < 30; i++)
            tm_call(&c, "1", "read", "{\"path\":\"long.txt\",\"limit\":0}");
        while (writable(c.to, 0) && i < 2000) { /* until it stops reading */
            tm_call(&c, "2", "read", "{\"path\":\"long.txt\",\"limit\":0}");
            i++;
            usleep(1000);
        }
        if (way) shutdown(c.to, SHUT_WR);
        else tm_shut(&c.to);
        alarm(30); /* ends a test that hangs */
        T_CHECK(tm_join(&c) < 25000);
        alarm(0);
        tm_end(&c);
    }
}

/* False if a busy machine read too late: after the end of input answers have
   800 ms. */
static bool slow_reader_gets_all(void) {
    tm_client c;
    int       i;
    long long began;
    bool      all;
    tm_start(&c, NULL);
    for (i = 0; i < 60; i++) /* more than fits into a pipe */
        tm_send(&c,
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}");
    began = hfsb_clock_ms();
    tm_shut(&c.to);
    usleep(300000); /* longer than LINGERING */
    while (tm_count(&c, "\"id\":7") < 60 && tm_more(&c, 2000)) continue;
    (void)tm_more(&c, 100); /* and no more than that */
    all = tm_count(&c, "\"id\":7") == 60;
    T_CHECK(all || hfsb_clock_ms() - began > 700);
    tm_end(&c);
    return all;
}

static void a_slow_reader_gets_all_answers(void) {
    int i;
    for (i = 0; i < 20 && !slow_reader_gets_all(); i++) continue;
    T_CHECK(i < 20);
}

/* ---- memory ---- */

static void say(void *user, hfsb_mcp_call *call,
                const hfsb_json_value *arguments) {
    (void)user;
    hfsb_mcp_text(call, "%zu keys", hfsb_json_count(arguments));
    hfsb_mcp_image(call, "image/png", HFSB_LIT("abc"));
    hfsb_mcp_progress(call, 1, 2, "half");
    hfsb_mcp_log(call, "error", HFSB_LIT("a line"));
}

static const char memory_lines[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":"
    "{\"name\":\"say\",\"_meta\":{\"progressToken\":3}}}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":"
    "{\"name\":\"read\",\"arguments\":{\"path\":\"no.txt\"}}}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":"
    "{\"name\":\"plan_tool\",\"arguments\":{\"todos\":[]}}}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/call\",\"params\":"
    "{\"name\":\"bash_output\",\"arguments\":{\"id\":\"no\"}}}\n";

/* Client and server in one thread: whatever fails, it ends and frees all. */
static void serves_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const env[] = {"A=b", NULL}, *const hide[] = {"C",
                                                                     NULL};
    hfsb_server_opts so = HFSB_INIT;
    hfsb_tools_opts  to = HFSB_INIT;
    hfsb_mcp_opts    o = HFSB_INIT;
    hfsb_mcp_tool    tool = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_mcp        *mcp = NULL;
    int              in[2], out[2];
    char             answers[65536];
    ssize_t          n = 0;
    bool             all = false;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC | O_NONBLOCK)) abort();
    if (write(in[1], memory_lines, sizeof memory_lines - 1) < 0) abort();
    close(in[1]);
    so.alloc = alloc;
    so.no_threads = true;
    o.path = "";
    to.env = env;
    to.hide_env = hide;
    to.grace_ms = -1;
    o.tools = &to;
    o.logging = true;
    o.instructions = HFSB_LIT("More.");
    tool.name = "say";
    tool.description = "Says something.";
    tool.fn = say;
    if (hfsb_server_open(&so, &server, NULL) == HFSB_OK &&
        hfsb_server_add_mcp(server, &o, &mcp, NULL) == HFSB_OK &&
        hfsb_mcp_add_tool(mcp, &tool, NULL) == HFSB_OK &&
        hfsb_mcp_stdio(mcp, in[0], out[1], NULL) == HFSB_OK)
        all = hfsb_server_run(server, NULL) == HFSB_OK;
    n = read(out[0], answers, sizeof answers - 1);
    if (!heap->fail_at) {
        answers[n > 0 ? n : 0] = '\0';
        T_CHECK(all && strstr(answers, "\"id\":1") &&
                strstr(answers, "\"id\":2") && strstr(answers, "0 keys") &&
                strstr(answers, "notifications/progress") &&
                strstr(answers, "a line") && strstr(answers, "YWJj") &&
                strstr(answers, "\"id\":4") && strstr(answers, "\"id\":5") &&
                strstr(answers, "\"id\":6"));
    }
    hfsb_server_close(server);
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

static void each_allocation_may_fail(void) {
    t_each_allocation_fails(serves_without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(both_eras_are_answered);
    TT_RUN(unknown_methods_and_tools_are_errors);
    TT_RUN(each_message_of_a_batch_is_answered);
    TT_RUN(a_long_batch_is_refused_as_a_whole);
    TT_RUN(lines_may_come_in_any_pieces);
    TT_RUN(a_line_that_is_too_long_is_skipped);
    TT_RUN(lines_before_the_end_of_input_are_answered);
    TT_RUN(files_are_read_and_written);
    TT_RUN(one_socket_serves_as_both_descriptors);
    TT_RUN(descriptor_flags_stay_as_they_were);
    TT_RUN(input_is_not_read_while_output_is_choked);
    TT_RUN(the_end_of_input_is_seen_while_output_is_choked);
    TT_RUN(a_slow_reader_gets_all_answers);
    TT_RUN(each_allocation_may_fail);
    return TT_END();
}
