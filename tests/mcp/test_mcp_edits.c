/* test_mcp_edits.c - parallel edits of one file over MCP: every edit that was
   acknowledged is in the file. Hosts run the calls of one turn in parallel, so
   this is an everyday case. */
#include "../support/t_mcp.h"
#include "../support/t_mcp_http.h"

enum { EDITS = 20, SESSIONS = 4 };

/* One file with a line per edit. */
static void put_lines(void) {
    hfsb_buf text = HFSB_INIT;
    int      i;
    for (i = 0; i < EDITS; i++)
        T_CHECK(hfsb_buf_printf(&text, "line %02d old\n", i) == HFSB_OK);
    tt_put("shared", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

/* The message that edits line i; i is also its id. */
static const char *edit_of(int i, char room[300]) {
    snprintf(room, 300,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
             "\"params\":{\"name\":\"edit\",\"arguments\":{\"path\":"
             "\"shared\",\"old_str\":\"line %02d old\",\"new_str\":"
             "\"line %02d new\"}}}",
             i, i, i);
    return room;
}

/* Checks that all edits were acknowledged, and that the file has them. */
static void check_lines(const bool *acknowledged) {
    hfsb_buf text = HFSB_INIT;
    char     line[32];
    int      i;
    T_CHECK(t_read_file("shared", &text));
    for (i = 0; i < EDITS; i++) {
        snprintf(line, sizeof line, "line %02d new\n", i);
        T_CHECK(acknowledged[i]);
        T_CHECK(hfsb_str_find(hfsb_buf_str(&text), hfsb_cstr(line)) !=
                HFSB_NPOS);
    }
    T_CHECK(text.len == EDITS * strlen("line 00 old\n"));
    hfsb_buf_free(&text);
}

/* ---- over stdio: one session ---- */

static void send_edits(tm_client *c, int from, int to) {
    char room[300];
    int  i;
    for (i = from; i < to; i++) tm_send(c, "%s", edit_of(i, room));
}

static void take_edits(tm_client *c, int from, int to, bool *acknowledged) {
    char id[16];
    int  i;
    for (i = from; i < to; i++) {
        snprintf(id, sizeof id, "%d", i);
        acknowledged[i] =
            tm_wait(c, id) && tm_says(c, "Edited shared (1 replacement)");
    }
    hfsb_buf_truncate(&c->got, 0);
}

static void read_shared(tm_client *c) {
    tm_call(c, "\"read\"", "read", "{\"path\":\"shared\"}");
    T_CHECK(tm_wait(c, "\"read\"") && tm_says(c, "1\tline 00"));
}

/* ---- over HTTP: each connection one call, several sessions ---- */

typedef struct edit_client {
    ts_server *server;
    char       ids[SESSIONS][64];
    ts_conn    conns[EDITS];
} edit_client;

static void open_sessions(edit_client *h, ts_server *server) {
    ts_reply r = HFSB_INIT;
    size_t   i;
    h->server = server;
    for (i = 0; i < SESSIONS; i++) {
        mh_session(server, h->ids[i]);
        mh_in(server, &r, h->ids[i],
              CALL(1, "read", "{\"path\":\"shared\"}"));
        TS_IS(&r, 200, "line 00");
    }
    ts_drop(&r);
}

static void post_edits(edit_client *h, int from, int to) {
    char fields[128], room[300];
    int  i;
    for (i = from; i < to; i++) {
        snprintf(fields, sizeof fields, BOTH "Mcp-Session-Id: %s\r\n",
                 h->ids[i % SESSIONS]);
        h->conns[i] = mh_begin(h->server, fields, edit_of(i, room));
    }
}

static void read_replies(edit_client *h, int from, int to,
                         bool *acknowledged) {
    ts_reply r = HFSB_INIT;
    int      i;
    for (i = from; i < to; i++) {
        acknowledged[i] = ts_read(&h->conns[i], &r, false) &&
                          ts_contains(&r, "Edited shared (1 replacement)");
        ts_hang_up(&h->conns[i]);
    }
    ts_drop(&r);
}

/* ---- tests ---- */

static int rounds(void) { return t_quick() ? 2 : 8; }

static void edits_of_one_connection_are_all_kept(void) {
    bool      acknowledged[EDITS];
    tm_client c;
    int       i;
    tm_start(&c, NULL);
    put_lines();
    read_shared(&c);
    for (i = 0; i < rounds(); i++) {
        put_lines();
        send_edits(&c, 0, EDITS);
        take_edits(&c, 0, EDITS, acknowledged);
        check_lines(acknowledged);
    }
    tm_end(&c);
}

static void edits_of_several_http_sessions_are_all_kept(void) {
    bool        acknowledged[EDITS];
    edit_client h;
    ts_server   s;
    int         i;
    mh_start(&s);
    put_lines();
    open_sessions(&h, &s);
    for (i = 0; i < rounds(); i++) {
        put_lines();
        post_edits(&h, 0, EDITS);
        read_replies(&h, 0, EDITS, acknowledged);
        check_lines(acknowledged);
    }
    ts_end(&s, false);
}

/* Two servers share nothing but the file. */
static void edits_of_two_servers_are_all_kept(void) {
    bool        acknowledged[EDITS];
    edit_client h;
    ts_server   s;
    tm_client   c;
    int         i;
    mh_start(&s);
    tm_start(&c, NULL);
    put_lines();
    open_sessions(&h, &s);
    read_shared(&c);
    for (i = 0; i < rounds(); i++) {
        put_lines();
        send_edits(&c, 0, EDITS / 2);
        post_edits(&h, EDITS / 2, EDITS);
        take_edits(&c, 0, EDITS / 2, acknowledged);
        read_replies(&h, EDITS / 2, EDITS, acknowledged);
        check_lines(acknowledged);
    }
    tm_end(&c);
    ts_end(&s, false);
}

/* ---- many clients, many times ---- */

enum { CLIENTS = 20, TIMES = 50 };

static const char *count_up(int client, int from, char room[300]) {
    snprintf(room, 300,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
             "\"params\":{\"name\":\"edit\",\"arguments\":{\"path\":"
             "\"shared\",\"old_str\":\"client %02d made %d.\",\"new_str\":"
             "\"client %02d made %d.\"}}}",
             client, client, from, client, from + 1);
    return room;
}

/* Puts the file that the clients leave after so many edits each. */
static void put_counts(int made, hfsb_buf *text) {
    int i;
    hfsb_buf_truncate(text, 0);
    for (i = 0; i < CLIENTS; i++)
        T_CHECK(hfsb_buf_printf(text, "client %02d made %d.\n", i, made) ==
                HFSB_OK);
}

/* Each client has a session of its own, which has read the file once. It sends
   its next edit as soon as the last one is answered, so all of them are always
   under way, and each finds the file changed by the others. */
static void edits_of_20_clients_are_all_kept(void) {
    static char ids[CLIENTS][64];
    ts_conn     conns[CLIENTS];
    ts_server   s;
    ts_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    char        fields[128], room[300];
    int         i, k, made = 0;
    mh_start(&s);
    put_counts(0, &text);
    tt_put("shared", hfsb_buf_str(&text));
    for (i = 0; i < CLIENTS; i++) {
        mh_session(&s, ids[i]);
        mh_in(&s, &r, ids[i], CALL(1, "read", "{\"path\":\"shared\"}"));
        TS_IS(&r, 200, "client 00");
    }
    for (k = 0; k <= TIMES; k++)
        for (i = 0; i < CLIENTS; i++) {
            if (k > 0) {
                made += ts_read(&conns[i], &r, false) &&
                        ts_contains(&r, "Edited shared (1 replacement)");
                ts_hang_up(&conns[i]);
            }
            if (k == TIMES) continue;
            snprintf(fields, sizeof fields, BOTH "Mcp-Session-Id: %s\r\n",
                     ids[i]);
            conns[i] = mh_begin(&s, fields, count_up(i, k, room));
        }
    T_CHECK(made == CLIENTS * TIMES);
    put_counts(TIMES, &text);
    T_CHECK(tt_file_is("shared", hfsb_buf_str(&text)));
    hfsb_buf_free(&text);
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(edits_of_one_connection_are_all_kept);
    TT_RUN(edits_of_several_http_sessions_are_all_kept);
    TT_RUN(edits_of_two_servers_are_all_kept);
    TT_RUN(edits_of_20_clients_are_all_kept);
    return TT_END();
}
