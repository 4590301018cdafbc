/* circle.c - the whole circle for real, for circle.sh: a sandbox is made on
   the fake Hub out of the files of hfsb_space.h, which builds them as the
   Dockerfile says and runs what came of it; the tools are called through the
   client; then it is deleted, and nothing is left. */
#define T_SERVER
#include "../support/t_create.h"
#include "hfsb_space.h"

static hfsb_sandbox *box;

/* Calls a tool; the output must hold `part`, or the error when ok is false. */
static void call(const char *name, const char *arguments, bool ok,
                 const char *part) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    T_CHECK(hfsb_json_parse(hfsb_cstr(arguments), NULL, &doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_sandbox_call(box, hfsb_cstr(name), doc.root, NULL, &result) == HFSB_OK);
    T_CHECK(hfsb_tool_result_text(&result, &text) == HFSB_OK);
    T_CHECK(result.success == ok && tc_has(hfsb_buf_str(&text), part));
    printf("%s %s\n    %.*s\n", name, arguments,
           (int)(text.len < 200 ? text.len : 200), text.ptr ? text.ptr : "");
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
    hfsb_tool_result_free(&result);
}

static void tools_work(void) {
    call("bash", "{\"command\":\"pwd; echo hello; echo err >&2\"}", true,
         "hello\nerr\n");
    call("bash", "{\"command\":\"exit 3\"}", false, "Exit code 3");
    call("write", "{\"path\":\"a.txt\",\"content\":\"one\\ntwo\\n\"}", true,
         "Wrote 8 bytes to ");
    call("read", "{\"path\":\"a.txt\"}", true, "1\tone\n2\ttwo");
    call("edit",
         "{\"path\":\"a.txt\",\"old_str\":\"two\",\"new_str\":\"three\"}",
         true, "(1 replacement)");
    call("edit",
         "{\"path\":\"a.txt\",\"old_str\":\"none\",\"new_str\":\"x\"}", false,
         "old_str not found in file.");
    call("bash", "{\"command\":\"cat a.txt\"}", true, "one\nthree\n");
    call("exists", "{\"path\":\"a.txt\"}", true, "true");
    call("exists", "{\"path\":\"b.txt\"}", true, "false");
}

/* The secrets are there for commands; the token of the server is not. */
static void secrets_are_where_they_belong(void) {
    call("bash", "{\"command\":\"echo ${#HF_TOKEN} ${#MINE}\"}", true,
         "12 18\n");
    call("bash", "{\"command\":\"env | grep -c SANDBOX_API_TOKEN\"}", false,
         "0\n");
}

static void *kill_soon(void *user) {
    hfsb_tool_result result = HFSB_INIT;
    (void)user;
    (void)hfsb_cancel_wait(NULL, 300);
    T_CHECK(hfsb_sandbox_kill_all(box, &result) == HFSB_OK);
    T_CHECK(result.success &&
            tc_has(hfsb_buf_str(&result.output), "Killed 1 process(es): ["));
    hfsb_tool_result_free(&result);
    return NULL;
}

static void a_command_is_killed(void) {
    pthread_t thread;
    long long began = hfsb_clock_ms();
    T_CHECK(pthread_create(&thread, NULL, kill_soon, NULL) == 0);
    call("bash", "{\"command\":\"echo begun; sleep 60\"}", false, "begun");
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(hfsb_clock_ms() - began < 20000);
}

static void files_go_there_and_back(void) {
    hfsb_buf           big = HFSB_INIT, back = HFSB_INIT;
    unsigned long long seed = 7;
    hfsb_err           err = HFSB_INIT;
    FILE              *f;
    T_CHECK(hfsb_buf_reserve(&big, 3000000) == HFSB_OK);
    while (big.len < 3000000) big.ptr[big.len++] = (char)t_random(&seed);
    f = fopen("up.bin", "wb");
    T_CHECK(f && fwrite(big.ptr, 1, big.len, f) == big.len);
    if (f) fclose(f);
    T_CHECK(hfsb_sandbox_upload(box, NULL, HFSB_LIT("up.bin"),
                                HFSB_LIT("there.bin"), NULL,
                                &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_download(box, HFSB_LIT("there.bin"), NULL,
                                  HFSB_LIT("down.bin"), NULL,
                                  &err) == HFSB_OK);
    if (err.msg[0]) printf("  %s\n", err.msg);
    T_CHECK(t_read_file("down.bin", &back));
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&big), hfsb_buf_str(&back)));
    hfsb_buf_truncate(&back, 0);
    T_CHECK(hfsb_sandbox_get(box, HFSB_LIT("there.bin"), 0, NULL, &back,
                             &err) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&big), hfsb_buf_str(&back)));
    (void)unlink("up.bin");
    (void)unlink("down.bin");
    hfsb_buf_free(&big);
    hfsb_buf_free(&back);
}

/* Files survive when only the server restarts. */
static void a_restart_brings_another_server(void) {
    char     before[64];
    hfsb_err err = HFSB_INIT;
    memcpy(before, box->instance, sizeof before);
    T_CHECK(hfsb_sandbox_restart(box, false, &err) == HFSB_OK);
    if (err.msg[0]) printf("  %s\n", err.msg);
    T_CHECK(before[0] && strcmp(before, box->instance) != 0);
    call("bash", "{\"command\":\"echo again\"}", true, "again\n");
}

static void the_space_shows_the_code_it_runs(tc_world *w) {
    size_t i;
    for (i = 0; i < hfsb_space_file_count; i++) {
        hfsb_buf text = HFSB_INIT;
        T_CHECK(fh_file(w->fake, hfsb_sandbox_id(box).ptr,
                        hfsb_space_files[i].path, &text));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&text),
                               hfsb_space_files[i].content));
        hfsb_buf_free(&text);
    }
}

int main(void) {
    fh_opts   real = HFSB_INIT;
    tc_world  w;
    long long began;
    tt_begin();
    real.mode = FH_BUILD;
    real.build_vars = getenv("CIRCLE_MAKE");
    tc_open(&w, &real);
    w.opts.times.poll_ms = 500;
    w.opts.times.api_poll_ms = 50;
    w.opts.times.wait_ms = w.opts.times.api_wait_ms = 240000;
    w.opts.work_dir = HFSB_LIT("."); /* there is no /app here */
    w.secrets[1].key = HFSB_LIT("MINE");
    w.secrets[1].value = HFSB_LIT(TC_SECRET);
    w.spec.secret_count = 2;
    w.spec.files = hfsb_space_files;
    w.spec.file_count = hfsb_space_file_count;
    began = hfsb_clock_ms();
    box = tc_create(&w);
    printf("%s", w.log.ptr);
    printf("created in %lld ms\n", hfsb_clock_ms() - began);
    if (box) {
        T_CHECK(hfsb_sandbox_ours(box));
        TT_RUN(tools_work);
        TT_RUN(secrets_are_where_they_belong);
        TT_RUN(a_command_is_killed);
        TT_RUN(files_go_there_and_back);
        TT_RUN(a_restart_brings_another_server);
        the_space_shows_the_code_it_runs(&w);
        tc_delete(box);
    }
    T_CHECK(fh_spaces(w.fake) == 0);
    tc_no_secret(&w, NULL);
    tc_close(&w);
    return TT_END();
}
