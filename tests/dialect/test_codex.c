/* test_codex.c - the exec-server of Codex: every method over a WebSocket, over
   pipes and through a bridge; lost connections, slow readers. */
#include "../support/t_codex.h"

/* ---- tests that all channels pass ---- */

static client *who;

static void the_environment_is_told(void) {
    const hfsb_json_value *r = call(who, "environment/info", "null");
    hfsb_buf               want = HFSB_INIT;
    T_CHECK(text_of(hfsb_json_get(r, "shell"), "path").ptr[0] == '/');
    T_CHECK(hfsb_json_get(r, "capabilities") != NULL);
    T_CHECK(hfsb_str_starts(text_of(r, "cwd"), HFSB_LIT("file:///")));
    r = call(who, "environment/status", "{}");
    T_STR(text_of(r, "status"), "ready");
    hfsb_buf_free(&want);
}

static void errors_have_codes(void) {
    static const struct {
        const char *text;
        long long   code;
    } list[] = {
        {"\"method\":\"http/request\",\"params\":{}", -32601},
        {"\"method\":\"fs/readFile\",\"params\":[]", -32602},
        {"\"method\":\"fs/readFile\",\"params\":{}", -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":\"/etc/passwd\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file:///a%00b\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file://host/a\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file:///no/such\"}",
         -32004},
        {"\"method\":\"fs/readBlock\",\"params\":{\"handleId\":\"x\"}",
         -32004},
        {"\"method\":\"process/read\",\"params\":{\"processId\":\"x\"}",
         -32600},
        {"\"method\":\"process/signal\",\"params\":{\"processId\":\"x\","
         "\"signal\":\"interrupt\"}",
         -32600},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[],\"cwd\":\"file:///\",\"env\":{}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"a\\u0000b\"],\"cwd\":\"file:///\",\"env\":{}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/no/such\"],\"cwd\":\"file:///\",\"env\":{}}",
         -32603},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{\"a=b\":"
         "\"c\"}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{},"
         "\"enforceManagedNetwork\":true}",
         -32600},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{},"
         "\"arg0\":\"sh\"}",
         -32600},
        {"\"method\":\"initialize\",\"params\":{}", -32600}};
    char   text[600];
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        snprintf(text, sizeof text, "{\"id\":%ld,%s}", ++who->ids,
                 list[i].text);
        say(who, hfsb_cstr(text));
        T_CHECK(answered(who, who->ids));
        if (error_code(who) != list[i].code)
            printf("%s: %lld\n", list[i].text, error_code(who));
        T_CHECK(error_code(who) == list[i].code);
    }
    say(who, HFSB_LIT("{\"id\":"));
    T_CHECK(finds(who, "{\"id\":null,", "-32700", WAIT_MS));
    say(who, HFSB_LIT("{\"id\":true,\"method\":\"initialize\"}"));
    T_CHECK(finds(who, "{\"id\":null,", "-32600", WAIT_MS));
    say(who, HFSB_LIT("{\"id\":77777,\"result\":{}}")); /* not answered */
    say(who, HFSB_LIT("{\"method\":\"no/such\"}"));
    T_CHECK(call(who, "environment/status", "{}") != NULL);
    T_CHECK(!finds(who, "{\"id\":77777", "", 0));
    /* ids may be texts */
    say(who, HFSB_LIT("{\"id\":\"a b\",\"method\":\"environment/status\"}"));
    T_CHECK(finds(who, "{\"id\":\"a b\",\"result\"", "ready", WAIT_MS));
}

static void a_command_has_streams_and_a_code(void) {
    T_CHECK(starts(who, "one", "echo out; echo err >&2; exit 7", ""));
    is_output(who, "one", "stdout", "out\n", 7);
    is_output(who, "one", "stderr", "err\n", 7);
    T_CHECK(starts(who, "sig", "kill -9 $$", ""));
    is_output(who, "sig", "stdout", "", 137);
    T_CHECK(!flag_of(callf(who, "process/terminate",
                           "{\"processId\":\"one\"}"),
                     "running"));
    T_CHECK(!flag_of(callf(who, "process/terminate",
                           "{\"processId\":\"none\"}"),
                     "running"));
    T_CHECK(!starts(who, "one", "echo again", ""));
    T_CHECK(error_code(who) == -32600);
}

static void input_is_written_once(void) {
    T_CHECK(starts(who, "in", "read a; echo $a; read b; echo $b",
                   ",\"pipeStdin\":true"));
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"eHkK\","
                        "\"writeId\":\"w1\"}"),
                  "status"),
          "accepted");
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"eHkK\","
                        "\"writeId\":\"w1\"}"),
                  "status"),
          "accepted");
    T_CHECK(callf(who, "process/write",
                  "{\"processId\":\"in\",\"chunk\":\"e\","
                  "\"writeId\":\"w3\"}") == NULL);
    T_CHECK(error_code(who) == -32602);
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"ego=\","
                        "\"writeId\":\"w2\"}"),
                  "status"),
          "accepted");
    is_output(who, "in", "stdout", "xy\nz\n", 0);
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"ego=\","
                        "\"writeId\":\"w9\"}"),
                  "status"),
          "stdinClosed");
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"other\",\"chunk\":\"\"}"),
                  "status"),
          "unknownProcess");
    T_CHECK(starts(who, "noin", "cat; sleep 0.2", ""));
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"noin\",\"chunk\":\"ego=\"}"),
                  "status"),
          "stdinClosed");
    is_output(who, "noin", "stdout", "", 0);
}

static void a_terminal_is_one_stream(void) {
    T_CHECK(call(who, "process/start",
                 "{\"processId\":\"tty\",\"argv\":[\"/bin/sh\",\"-c\","
                 "\"test -t 0 && test -t 2 && stty size\"],"
                 "\"cwd\":\"file:///\",\"env\":{\"PATH\":\"/bin:/usr/bin\"},"
                 "\"tty\":true,\"arg0\":null}") != NULL);
    is_output(who, "tty", "pty", "24 80\r\n", 0);
}

static void signals_reach_commands(void) {
    T_CHECK(starts(who, "int",
                   "trap 'echo got; exit 3' INT; echo ready; "
                   "while :; do sleep 0.05; done",
                   ""));
    T_CHECK(finds(who, "\"process/output\"", "\"int\"", WAIT_MS));
    T_CHECK(callf(who, "process/signal",
                  "{\"processId\":\"int\",\"signal\":\"hangup\"}") == NULL);
    T_CHECK(error_code(who) == -32602);
    T_CHECK(callf(who, "process/signal",
                  "{\"processId\":\"int\",\"signal\":\"interrupt\"}") != NULL);
    is_output(who, "int", "stdout", "ready\ngot\n", 3);
    T_CHECK(starts(who, "term", "sleep 60", ""));
    T_CHECK(flag_of(callf(who, "process/terminate",
                          "{\"processId\":\"term\"}"),
                    "running"));
    is_output(who, "term", "stdout", "", 143);
}

static void reads_wait_for_output(void) {
    const hfsb_json_value *r, *chunk;
    long                   id;
    T_CHECK(starts(who, "rd", "read a; echo one; read a; echo two >&2",
                   ",\"pipeStdin\":true"));
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":null,\"maxBytes\":10,"
              "\"waitMs\":1}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 0);
    T_CHECK(int_of(r, "nextSeq") == 1 && !flag_of(r, "exited"));
    id = ask(who, "process/read",
             "{\"processId\":\"rd\",\"afterSeq\":0,\"waitMs\":20000}");
    (void)callf(who, "process/write",
                "{\"processId\":\"rd\",\"chunk\":\"Cg==\"}");
    T_CHECK(answered(who, id));
    r = hfsb_json_get(who->doc.root, "result");
    chunk = hfsb_json_at(hfsb_json_get(r, "chunks"), 0);
    T_STR(text_of(chunk, "chunk"), "b25lCg==");
    T_STR(text_of(chunk, "stream"), "stdout");
    T_CHECK(int_of(chunk, "seq") == 1 && int_of(r, "nextSeq") == 2);
    (void)callf(who, "process/write",
                "{\"processId\":\"rd\",\"chunk\":\"Cg==\"}");
    is_output(who, "rd", "stderr", "two\n", 0);
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":0,\"maxBytes\":1,"
              "\"waitMs\":9999}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 1);
    T_CHECK(int_of(r, "nextSeq") == 2 && !flag_of(r, "closed"));
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":1,\"maxBytes\":99,"
              "\"waitMs\":9999}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 1);
    T_CHECK(int_of(r, "nextSeq") == 5 && flag_of(r, "closed"));
    T_CHECK(flag_of(r, "exited") && int_of(r, "exitCode") == 0);
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":4,\"waitMs\":9999}");
    T_CHECK(int_of(r, "nextSeq") == 5 && flag_of(r, "closed"));
}

static void the_environment_follows_the_policy(void) {
    static const struct {
        const char *policy, *env, *want;
    } list[] = {
        {"null", "{\"A\":\"1\"}", "A=1\n"},
        {"{\"inherit\":\"none\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[],\"set\":{\"B\":\"2\",\"A\":\"0\"},"
         "\"includeOnly\":[]}",
         "{\"A\":\"1\"}", "A=1\nB=2\n"},
        {"{\"inherit\":\"all\",\"ignoreDefaultExcludes\":false,"
         "\"exclude\":[\"x_DROP?\"],\"set\":{\"X_SET\":\"s\"},"
         "\"includeOnly\":[\"X_*\"]}",
         "{\"A\":\"1\"}", "A=1\nX_KEEP=k\nX_SET=s\n"},
        {"{\"inherit\":\"all\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[],\"set\":{},\"includeOnly\":[\"X_*n\"]}",
         "{}", "X_Token=t\n"},
        {"{\"inherit\":\"core\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[\"PATH\",\"*[A-Z]*\"],\"set\":{},"
         "\"includeOnly\":[\"HOME\",\"X_*\",\"PATH\"]}",
         "{}", "HOME=/h\n"}};
    char   id[20];
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        snprintf(id, sizeof id, "env%zu", i);
        T_CHECK(callf(who, "process/start",
                      "{\"processId\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
                      "\"/usr/bin/env | /usr/bin/sort | /bin/grep -v "
                      "-e ^PWD= -e ^HFSB_JOB= -e ^_= -e ^SHLVL= -e ^OLDPWD=\"]"
                      ",\"cwd\":\"file:///\",\"envPolicy\":%s,\"env\":%s,"
                      "\"tty\":false,\"arg0\":null}",
                      id, list[i].policy, list[i].env) != NULL);
        is_output(who, id, "stdout", list[i].want, 0);
    }
}

static void files_are_read_and_written(void) {
    const hfsb_json_value *r;
    T_CHECK(callf(who, "fs/writeFile",
                  "{\"path\":\"file://%s/work/a%%20b.txt\","
                  "\"dataBase64\":\"aGVsbG8=\",\"sandbox\":null}",
                  tt_dir) != NULL);
    T_CHECK(tt_file_is("a b.txt", HFSB_LIT("hello")));
    r = callf(who, "fs/readFile", "{\"path\":\"file://%s/work/a%%20b.txt\"}",
              tt_dir);
    T_STR(text_of(r, "dataBase64"), "aGVsbG8=");
    r = callf(who, "fs/getMetadata",
              "{\"path\":\"file://%s/work/a%%20b.txt\"}", tt_dir);
    T_CHECK(flag_of(r, "isFile") && !flag_of(r, "isDirectory"));
    T_CHECK(!flag_of(r, "isSymlink") && int_of(r, "size") == 5);
    T_CHECK(int_of(r, "modifiedAtMs") > 1600000000000ll);
    T_CHECK(symlink("a b.txt", "link") == 0);
    r = callf(who, "fs/getMetadata", "{\"path\":\"file://%s/work/link\"}",
              tt_dir);
    T_CHECK(flag_of(r, "isFile") && flag_of(r, "isSymlink"));
    r = callf(who, "fs/getMetadata",
              "{\"path\":\"file://%s/work/link\",\"followSymlinks\":false}",
              tt_dir);
    T_CHECK(!flag_of(r, "isFile") && flag_of(r, "isSymlink"));
    r = callf(who, "fs/canonicalize", "{\"path\":\"file://%s/work/link\"}",
              tt_dir);
    T_CHECK(hfsb_str_ends(text_of(r, "path"), HFSB_LIT("work/a%20b.txt")));
    T_CHECK(!callf(who, "fs/writeFile",
                   "{\"path\":\"file://%s/work/no/x\",\"dataBase64\":\"\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    T_CHECK(!callf(who, "fs/writeFile",
                   "{\"path\":\"file://%s/work/x\",\"dataBase64\":\"a\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
    T_CHECK(!callf(who, "fs/readFile", "{\"path\":\"file://%s/work\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
}

static void folders_are_made_copied_and_removed(void) {
    const hfsb_json_value *r, *e;
    T_CHECK(!callf(who, "fs/createDirectory",
                   "{\"path\":\"file://%s/work/d/e\",\"recursive\":false}",
                   tt_dir));
    T_CHECK(callf(who, "fs/createDirectory",
                  "{\"path\":\"file://%s/work/d/e\",\"recursive\":true}",
                  tt_dir) != NULL);
    T_CHECK(callf(who, "fs/createDirectory",
                  "{\"path\":\"file://%s/work/d/.h\"}", tt_dir) != NULL);
    tt_put("d/z", HFSB_LIT("zz"));
    tt_put("d/e/f", HFSB_LIT("f"));
    tt_put("d/.h/i", HFSB_LIT("i"));
    r = callf(who, "fs/readDirectory", "{\"path\":\"file://%s/work/d\"}",
              tt_dir);
    e = hfsb_json_get(r, "entries");
    T_CHECK(hfsb_json_count(e) == 3);
    T_STR(text_of(hfsb_json_at(e, 0), "fileName"), ".h");
    T_CHECK(flag_of(hfsb_json_at(e, 1), "isDirectory"));
    T_CHECK(flag_of(hfsb_json_at(e, 2), "isFile"));
    r = callf(who, "fs/walk",
              "{\"path\":\"file://%s/work/d\",\"options\":{\"maxDepth\":4,"
              "\"maxDirectories\":10,\"maxEntries\":10,"
              "\"followDirectorySymlinks\":false,"
              "\"pruneHiddenDirectories\":true}}",
              tt_dir);
    e = hfsb_json_get(r, "entries");
    T_CHECK(hfsb_json_count(e) == 4 && !flag_of(r, "truncated"));
    T_STR(text_of(hfsb_json_at(e, 0), "kind"), "directory");
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 1), "path"),
                          HFSB_LIT("/d/e")));
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 2), "path"),
                          HFSB_LIT("/d/z")));
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 3), "path"),
                          HFSB_LIT("/d/e/f")));
    T_STR(text_of(hfsb_json_at(e, 3), "kind"), "file");
    r = callf(who, "fs/walk",
              "{\"path\":\"file://%s/work/d\",\"options\":{\"maxDepth\":0,"
              "\"maxDirectories\":10,\"maxEntries\":2}}",
              tt_dir);
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "entries")) == 2);
    T_CHECK(flag_of(r, "truncated"));
    T_CHECK(!callf(who, "fs/copy",
                   "{\"sourcePath\":\"file://%s/work/d\",\"destinationPath\":"
                   "\"file://%s/work/d2\",\"recursive\":false}",
                   tt_dir, tt_dir));
    T_CHECK(callf(who, "fs/copy",
                  "{\"sourcePath\":\"file://%s/work/d\",\"destinationPath\":"
                  "\"file://%s/work/d2\",\"recursive\":true}",
                  tt_dir, tt_dir) != NULL);
    T_CHECK(tt_file_is("d2/e/f", HFSB_LIT("f")));
    T_CHECK(!callf(who, "fs/remove",
                   "{\"path\":\"file://%s/work/d2\",\"recursive\":false}",
                   tt_dir));
    T_CHECK(callf(who, "fs/remove", "{\"path\":\"file://%s/work/d2\"}",
                  tt_dir) != NULL);
    T_CHECK(callf(who, "fs/remove", "{\"path\":\"file://%s/work/d2\"}",
                  tt_dir) != NULL);
    T_CHECK(!callf(who, "fs/remove",
                   "{\"path\":\"file://%s/work/d2\",\"force\":false}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    T_CHECK(access("d2", F_OK) != 0 && access("d/z", F_OK) == 0);
}

static void open_files_are_read_in_blocks(void) {
    const hfsb_json_value *r;
    tt_put("blocks", HFSB_LIT("0123456789"));
    r = callf(who, "fs/open",
              "{\"handleId\":\"h\",\"path\":\"file://%s/work/blocks\"}",
              tt_dir);
    T_STR(text_of(r, "handleId"), "h");
    T_CHECK(!callf(who, "fs/open",
                   "{\"handleId\":\"h\",\"path\":\"file://%s/work/blocks\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
    r = call(who, "fs/readBlock",
             "{\"handleId\":\"h\",\"offset\":2,\"len\":3}");
    T_STR(text_of(r, "chunk"), "MjM0");
    T_CHECK(!flag_of(r, "eof"));
    r = call(who, "fs/readBlock",
             "{\"handleId\":\"h\",\"offset\":8,\"len\":30}");
    T_STR(text_of(r, "chunk"), "ODk=");
    T_CHECK(flag_of(r, "eof"));
    T_CHECK(!call(who, "fs/readBlock",
                  "{\"handleId\":\"h\",\"offset\":-1,\"len\":30}"));
    T_CHECK(call(who, "fs/close", "{\"handleId\":\"h\"}") != NULL);
    T_CHECK(call(who, "fs/close", "{\"handleId\":\"h\"}") != NULL);
    T_CHECK(!call(who, "fs/readBlock",
                  "{\"handleId\":\"h\",\"offset\":2,\"len\":3}"));
    T_CHECK(!callf(who, "fs/open",
                   "{\"handleId\":\"n\",\"path\":\"file://%s/work/none\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    /* left open: the end of the session closes it */
    T_CHECK(callf(who, "fs/open",
                  "{\"handleId\":\"n\",\"path\":\"file://%s/work/blocks\"}",
                  tt_dir) != NULL);
}

static void long_output_arrives_whole(void) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(starts(who, "long", "seq 1 300000", ""));
    T_CHECK(output_of(who, "long", "stdout", &out) == 0);
    T_CHECK(out.len == 1988895);
    T_CHECK(out.len > 14 && !strcmp(out.ptr + out.len - 14, "299999\n300000\n"));
    hfsb_buf_free(&out);
}

static void all_methods(client *c) {
    who = c;
    initialize(c, NULL, session);
    T_CHECK(strlen(session) == 32);
    TT_RUN(the_environment_is_told);
    TT_RUN(errors_have_codes);
    TT_RUN(a_command_has_streams_and_a_code);
    TT_RUN(input_is_written_once);
    TT_RUN(a_terminal_is_one_stream);
    TT_RUN(signals_reach_commands);
    TT_RUN(reads_wait_for_output);
    TT_RUN(the_environment_follows_the_policy);
    TT_RUN(files_are_read_and_written);
    TT_RUN(folders_are_made_copied_and_removed);
    TT_RUN(open_files_are_read_in_blocks);
    TT_RUN(long_output_arrives_whole);
    (void)!system("rm -rf d link 'a b.txt' blocks");
}

/* ---- the channels ---- */

static void pipes_serve_every_method(void) {
    client    c;
    long long began;
    open_pipes(&c);
    all_methods(&c);
    T_CHECK(starts_nap(&c, "left"));
    T_CHECK(comes_up(tt_nap()));
    close(c.to);
    began = hfsb_clock_ms();
    close_pipes(&c);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    T_CHECK(tt_running(tt_nap()) == 0);
}

static void a_bridge_serves_every_method(void) {
    client c;
    bridge b;
    open_bridge(&c, &b);
    all_methods(&c);
    close_bridge(&c, &b);
    T_CHECK(b.why.code == HFSB_OK);
    T_CHECK(tt_running("64.5") == 0);
    ts_end(&s, true);
}

static void sockets_serve_every_method(void) {
    client c;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    all_methods(&c);
    hang_up(&c);
    ts_end(&s, true);
}

static void tokens_are_needed(void) {
    ts_conn   c;
    ts_server alone;
    unsigned  port = 0;
    open_server(NULL);
    add_codex(&s, false, 0, 0, true, &port);
    ts_run(&s);
    alone = s;
    alone.port = port;
    c = ts_connect(&alone);
    T_CHECK(!upgrade(&c, "/codex", NULL));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 401 ")));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(!upgrade(&c, "/", "wrong"));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(upgrade(&c, "/", TS_TOKEN));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(upgrade(&c, "/codex", TS_TOKEN));
    ts_hang_up(&c);
    c = ts_connect(&s); /* it is not shown at the other port */
    T_CHECK(!upgrade(&c, "/codex", TS_TOKEN));
    ts_hang_up(&c);
    ts_end(&s, true);
}

static void nothing_works_before_initialize(void) {
    client c;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    T_CHECK(!call(&c, "environment/info", "null"));
    T_CHECK(error_code(&c) == -32600);
    T_CHECK(!call(&c, "initialize", "{\"resumeSessionId\":\"unknown\"}"));
    T_CHECK(error_code(&c) == -32600);
    hang_up(&c);
    ts_end(&s, true);
}

static void the_root_holds(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    char            root[80];
    client          c;
    snprintf(root, sizeof root, "%s/work/in", tt_dir);
    T_CHECK(mkdir("in", 0777) == 0);
    tt_put("secret", HFSB_LIT("s"));
    T_CHECK(symlink("../secret", "in/out") == 0);
    tools.root = hfsb_cstr(root);
    open_server(&tools);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(!callf(&c, "fs/readFile", "{\"path\":\"file://%s/out\"}", root));
    T_CHECK(error_code(&c) == -32600);
    T_CHECK(!callf(&c, "fs/readFile", "{\"path\":\"file://%s/%%2e%%2e/"
                                      "secret\"}", root));
    T_CHECK(error_code(&c) == -32600);
    /* what is outside does not exist, for a client that searches upwards */
    T_CHECK(!callf(&c, "fs/getMetadata", "{\"path\":\"file://%s/work/.git\"}",
                   tt_dir));
    T_CHECK(error_code(&c) == -32004);
    T_CHECK(callf(&c, "fs/writeFile", "{\"path\":\"file://%s/new\","
                                      "\"dataBase64\":\"\"}", root) != NULL);
    hang_up(&c);
    ts_end(&s, true);
    (void)!system("rm -rf in secret");
}

/* ---- lost connections ---- */

static void sessions_are_resumed(void) {
    client                 c, d;
    char                   id[40], again[40];
    const hfsb_json_value *r;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, id);
    T_CHECK(starts(&c, "p", "echo a; while [ ! -f go ]; do sleep 0.02; done; "
                            "echo b; exit 5", ""));
    T_CHECK(finds(&c, "\"process/output\"", "\"YQo=\"", WAIT_MS));
    dial(&d); /* two connections cannot have it */
    T_CHECK(!callf(&d, "initialize", "{\"resumeSessionId\":\"%s\"}", id));
    T_CHECK(error_code(&d) == -32010);
    (void)ask(&c, "process/read", "{\"processId\":\"p\",\"afterSeq\":1,"
                                  "\"waitMs\":60000}"); /* it waits */
    T_CHECK(call(&c, "environment/status", "{}") != NULL);
    ts_reset(&c.conn);
    hang_up(&c);
    tt_put("go", HFSB_LIT(""));
    do {
        tt_sleep_ms(20);
        r = callf(&d, "initialize", "{\"resumeSessionId\":\"%s\"}", id);
    } while (!r && error_code(&d) == -32010);
    snprintf(again, sizeof again, "%s", text_of(r, "sessionId").ptr);
    T_CHECK(!strcmp(id, again));
    r = callf(&d, "process/read", "{\"processId\":\"p\",\"afterSeq\":1,"
                                  "\"waitMs\":20000}");
    T_STR(text_of(hfsb_json_at(hfsb_json_get(r, "chunks"), 0), "chunk"),
          "Ygo=");
    T_CHECK(finds(&d, "\"process/output\"", "\"seq\":2,", WAIT_MS));
    T_CHECK(finds(&d, "\"process/exited\"", "\"exitCode\":5", WAIT_MS));
    T_CHECK(finds(&d, "\"process/closed\"", "\"seq\":4", WAIT_MS));
    T_CHECK(!finds(&d, "\"process/output\"", "\"seq\":1,", 0));
    hang_up(&d);
    ts_end(&s, true);
    (void)unlink("go");
}

/* Resumes a session as soon as its old connection is known to be lost. */
static void resume(client *c, const char *id) {
    const hfsb_json_value *r = NULL;
    long long              end = hfsb_clock_ms() + WAIT_MS;
    dial(c);
    while (!r && hfsb_clock_ms() < end) {
        r = callf(c, "initialize", "{\"resumeSessionId\":\"%s\"}", id);
        if (!r) tt_sleep_ms(2);
    }
    T_CHECK(r != NULL);
}

/* The connection is cut after each byte of a start, which is then repeated:
   the command runs once. */
static void a_cut_start_runs_once(void) {
    client   c, d;
    char     id[40], pid[20], command[80], text[5000];
    hfsb_buf out = HFSB_INIT;
    size_t   n, all, step;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, id);
    put_frame(&out, HFSBI_WS_TEXT, HFSB_LIT(""));
    step = t_quick() ? 37 : 1;
    for (n = 0, all = 1; n <= all; n += step) {
        snprintf(pid, sizeof pid, "cut%zu", n);
        snprintf(command, sizeof command, "echo %zu >> runs; echo done", n);
        snprintf(text, sizeof text,
                 "{\"id\":9,\"method\":\"process/start\",\"params\":%s}",
                 shell(pid, command, ""));
        hfsb_buf_truncate(&out, 0);
        put_frame(&out, HFSBI_WS_TEXT, hfsb_cstr(text));
        all = out.len;
        T_CHECK(ts_send(&c.conn, hfsb_str_make(out.ptr, n < all ? n : all)));
        hang_up(&c);
        resume(&d, id);
        T_CHECK(starts(&d, pid, command, ""));
        is_output(&d, pid, "stdout", "done\n", 0);
        T_CHECK(!starts(&d, pid, command, "")); /* not after a resume */
        c = d;
    }
    T_CHECK(tt_lines_in("runs") == (long)(all / step + 1));
    /* another command with the same id is not the same start */
    hang_up(&c);
    resume(&d, id);
    T_CHECK(!starts(&d, pid, "echo other >> runs", ""));
    T_CHECK(error_code(&d) == -32600);
    T_CHECK(tt_lines_in("runs") == (long)(all / step + 1));
    hang_up(&d);
    hfsb_buf_free(&out);
    ts_end(&s, true);
    (void)unlink("runs");
}

/* A client that does not read costs little, and loses nothing. */
static void reads_slowly(client *c) {
    hfsb_buf out = HFSB_INIT;
    size_t   before;
    int      i;
    initialize(c, NULL, session);
    before = tt_memory_held();
    T_CHECK(starts(c, "slow", "seq 1 4000000; echo end >> slow", ""));
    for (i = 0; i < 50; i++) {
        tt_sleep_ms(20);
        T_CHECK(tt_memory_held() < before + (4u << 20));
    }
    T_CHECK(access("slow", F_OK) != 0); /* it waits */
    T_CHECK(output_of(c, "slow", "stdout", &out) == 0);
    T_CHECK(out.len == 30888896);
    T_CHECK(access("slow", F_OK) == 0);
    hfsb_buf_free(&out);
    (void)unlink("slow");
}

static void a_slow_reader_holds_the_process(void) {
    client c;
    int    size = 65536;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    (void)setsockopt(c.conn.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    reads_slowly(&c);
    hang_up(&c);
    ts_end(&s, true);
}

static void a_slow_pipe_holds_the_process(void) {
    client c;
    open_pipes(&c);
    reads_slowly(&c);
    close(c.to);
    close_pipes(&c);
}

static void old_sessions_make_room(void) {
    client c;
    char   first[40], id[40];
    int    i;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, first);
    T_CHECK(starts_nap(&c, "nap"));
    T_CHECK(comes_up(tt_nap()));
    hang_up(&c);
    for (i = 0; i < 64; i++) {
        dial(&c);
        initialize(&c, NULL, id);
        hang_up(&c);
    }
    for (i = 0; i < 400 && tt_running(tt_nap()); i++) tt_sleep_ms(50);
    T_CHECK(tt_running(tt_nap()) == 0);
    dial(&c);
    T_CHECK(!callf(&c, "initialize", "{\"resumeSessionId\":\"%s\"}", first));
    T_CHECK(error_code(&c) == -32600);
    hang_up(&c);
    ts_end(&s, true);
}

static void a_lost_client_ends_its_processes_later(void) {
    client c;
    int    i;
    if (!t_long()) return;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(starts_nap(&c, "nap"));
    hang_up(&c);
    tt_sleep_ms(55000);
    T_CHECK(tt_running(tt_nap()) == 1);
    for (i = 0; i < 600 && tt_running(tt_nap()); i++) tt_sleep_ms(50);
    T_CHECK(tt_running(tt_nap()) == 0);
    ts_end(&s, true);
}

/* Many commands at once: more than run at a time. */
static void starts_wait_for_a_place(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    client          c;
    long            id;
    tools.max_running = 1;
    open_server(&tools);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(starts(&c, "a", "read x; echo a", ",\"pipeStdin\":true"));
    id = ask(&c, "process/start", shell("b", "echo b", ""));
    T_CHECK(!call(&c, "process/read", "{\"processId\":\"b\"}"));
    T_STR(text_of(call(&c, "process/write",
                       "{\"processId\":\"b\",\"chunk\":\"\"}"),
                  "status"),
          "starting");
    (void)ask(&c, "process/start", shell("d", "echo d >> never", ""));
    T_CHECK(flag_of(call(&c, "process/terminate", "{\"processId\":\"d\"}"),
                    "running"));
    (void)call(&c, "process/write",
               "{\"processId\":\"a\",\"chunk\":\"Cg==\"}");
    T_CHECK(answered(&c, id) && hfsb_json_get(c.doc.root, "result"));
    is_output(&c, "a", "stdout", "a\n", 0);
    is_output(&c, "b", "stdout", "b\n", 0);
    T_CHECK(access("never", F_OK) != 0);
    /* one that waits when the server ends */
    T_CHECK(starts(&c, "e", "sleep 64.5", ""));
    (void)ask(&c, "process/start", shell("f", "echo f", ""));
    (void)call(&c, "environment/status", "{}");
    ts_end(&s, true);
    hang_up(&c);
    T_CHECK(tt_running("64.5") == 0);
}

int main(void) {
    tt_begin();
    setenv("X_KEEP", "k", 1);
    setenv("X_DROP1", "d", 1);
    setenv("X_Token", "t", 1);
    setenv("HOME", "/h", 1);
    pipes_serve_every_method();
    a_bridge_serves_every_method();
    sockets_serve_every_method();
    TT_RUN(tokens_are_needed);
    TT_RUN(nothing_works_before_initialize);
    TT_RUN(the_root_holds);
    TT_RUN(sessions_are_resumed);
    TT_RUN(a_cut_start_runs_once);
    TT_RUN(a_slow_reader_holds_the_process);
    TT_RUN(a_slow_pipe_holds_the_process);
    TT_RUN(old_sessions_make_room);
    TT_RUN(starts_wait_for_a_place);
    TT_RUN(a_lost_client_ends_its_processes_later);
    return TT_END();
}
