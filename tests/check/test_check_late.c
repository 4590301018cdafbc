/* Tests of src/tools/python.c: one helper for many checks, and warnings that
   come after the reply to their write. The python3 of these tests counts its
   starts in the file `starts`, and answers with each content once the file
   `go` exists; it repeats the word "bad" as a warning. */
#include "../support/t_tools.h"

static char path_var[4200];

static void put_python(void) {
    hfsb_buf script = HFSB_INIT;
    char     bin[80], file[100];
    int      n = snprintf(bin, sizeof bin, "%s/tmp/bin", tt_dir);
    T_CHECK(n > 0 && (mkdir(bin, 0755) == 0 || errno == EEXIST));
    snprintf(file, sizeof file, "%s/python3", bin);
    T_CHECK(hfsb_buf_printf(&script,
                            "#!/bin/sh\ncd '%s/tmp'; echo x >> starts\n"
                            "while read n; do text=$(head -c $n)\n"
                            "until [ -e go ]; do sleep 0.02; done\n"
                            "case $text in bad*) echo \"Invalid kwarg: "
                            "$text\";; esac; echo .; done\n",
                            tt_dir) == HFSB_OK);
    tt_put(file, hfsb_buf_str(&script));
    T_CHECK(chmod(file, 0755) == 0);
    snprintf(path_var, sizeof path_var, "PATH=%s:%s", bin, getenv("PATH"));
    hfsb_buf_free(&script);
}

static const char *in_tmp(char out[100], const char *name) {
    snprintf(out, 100, "%s/tmp/%s", tt_dir, name);
    return out;
}

static size_t starts(void) {
    char     name[100];
    hfsb_buf text = HFSB_INIT;
    size_t   n;
    (void)t_read_file(in_tmp(name, "starts"), &text);
    n = text.len / 2;
    hfsb_buf_free(&text);
    return n;
}

static void let_python_answer(bool yes) {
    char name[100];
    if (yes) tt_put(in_tmp(name, "go"), HFSB_LIT(""));
    else (void)unlink(in_tmp(name, "go"));
}

/* python3 here leaves a trace, which its confinement would refuse. */
static void let_python_write(hfsb_tools *tools) {
    hfsb_confine_opts none = HFSB_INIT;
    none.alloc = tools->alloc;
    T_CHECK(hfsb_confine_open(&none, &tools->checker->confine, NULL) ==
            HFSB_OK);
}

static hfsb_tools *open_tools(bool session) {
    static const char *env[2];
    hfsb_tools_opts    opts = HFSB_INIT;
    hfsb_tools        *tools;
    char               name[100];
    env[0] = path_var;
    opts.env = env;
    opts.session = session;
    (void)unlink(in_tmp(name, "starts"));
    tools = tt_open(&opts);
    let_python_write(tools);
    return tools;
}

static void drop(const char *name) {
    T_CHECK(unlink(name) == 0);
}

#define LATE(path, text)                                 \
    "\n\nValidation warnings for " path ", written before:" \
    "\n  ! Invalid kwarg: " text

/* Calls exists for path until its replies, after "true", have ended in `last`,
   for some seconds; all of it must be `want`. */
static void await_at(hfsb_tools *tools, const char *path, const char *last,
                     const char *want) {
    hfsb_buf all = HFSB_INIT;
    tt_reply r = HFSB_INIT;
    int      i;
    for (i = 0; i < 2000; i++) {
        tt_call(&r, tools, "exists", "path=s", path);
        T_CHECK(r.res.output.len >= 4);
        hfsb_buf_append(&all, hfsb_str_slice(hfsb_buf_str(&r.res.output), 4,
                                             r.res.output.len));
        if (hfsb_str_ends(hfsb_buf_str(&all), hfsb_cstr(last))) break;
        (void)poll(NULL, 0, 20);
    }
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&all), hfsb_cstr(want)));
    tt_call(&r, tools, "exists", "path=s", path); /* reported once */
    TT_OK(&r, "true");
    hfsb_buf_free(&all);
    tt_drop(&r);
}

static void await(hfsb_tools *tools, const char *last, const char *want) {
    await_at(tools, ".", last, want);
}

/* The answer never comes in time: a call that waited for it would wait for
   a minute, and show no warning. */
static void a_session_gets_late_warnings_with_the_next_reply(void) {
    hfsb_tools *tools = open_tools(true);
    tt_reply    r = HFSB_INIT;
    long long   begin = hfsb_clock_ms();
    tools->checker->timeout_ms = 60000;
    let_python_answer(false);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 1");
    TT_OK(&r, "Wrote 5 bytes to a.py");
    tt_call(&r, tools, "write", "path=s content=s", "b.py", "bad 2");
    TT_OK(&r, "Wrote 5 bytes to b.py");
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    let_python_answer(true);
    await(tools, "bad 2", LATE("a.py", "bad 1") LATE("b.py", "bad 2"));
    T_CHECK(starts() == 1);
    hfsb_tools_close(tools);
    drop("a.py");
    drop("b.py");
    tt_drop(&r);
}

static void late_warnings_of_a_changed_file_are_dropped(void) {
    hfsb_tools *tools = open_tools(true);
    tt_reply    r = HFSB_INIT;
    let_python_answer(false);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 1");
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 2");
    tt_call(&r, tools, "write", "path=s content=s", "b.py", "bad 3");
    tt_call(&r, tools, "write", "path=s content=s", "c.py", "bad 4");
    tt_put("b.py", HFSB_LIT("good")); /* as a command would */
    let_python_answer(true);
    await(tools, "bad 4", LATE("a.py", "bad 2") LATE("c.py", "bad 4"));
    hfsb_tools_close(tools);
    drop("a.py");
    drop("b.py");
    drop("c.py");
    tt_drop(&r);
}

static void without_a_session_the_write_waits_for_its_warnings(void) {
    hfsb_tools *tools = open_tools(false);
    tt_reply    r = HFSB_INIT;
    pid_t       child;
    int         status;
    let_python_answer(false);
    child = fork();
    if (child == 0) {
        char name[100];
        (void)usleep(400000);
        _exit(open(in_tmp(name, "go"), O_CREAT | O_WRONLY, 0600) < 0);
    }
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad");
    TT_OK(&r, "Wrote 3 bytes to a.py\n\nValidation warnings:\n"
              "  ! Invalid kwarg: bad");
    T_CHECK(waitpid(child, &status, 0) == child && status == 0);
    hfsb_tools_close(tools);
    drop("a.py");
    tt_drop(&r);
}

static void a_helper_that_was_killed_is_replaced(void) {
    hfsb_tools      *tools = open_tools(false);
    tt_reply         r = HFSB_INIT;
    hfsb_proc_result result;
    let_python_answer(true);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 1");
    TT_OK(&r, "Wrote 5 bytes to a.py\n\nValidation warnings:\n"
              "  ! Invalid kwarg: bad 1");
    result = hfsb_proc_status(tools->checker->python.proc);
    T_CHECK(kill((pid_t)result.pid, SIGKILL) == 0);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 2");
    TT_OK(&r, "Wrote 5 bytes to a.py\n\nValidation warnings:\n"
              "  ! Invalid kwarg: bad 2");
    T_CHECK(starts() == 2);
    hfsb_tools_close(tools);
    T_CHECK(kill((pid_t)result.pid, 0) != 0); /* and reaped */
    drop("a.py");
    tt_drop(&r);
}

static void notes_stay_apart_from_whole_content(void) {
    hfsb_tools *tools = open_tools(true);
    tt_reply    r = HFSB_INIT;
    int         i;
    let_python_answer(false);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad");
    let_python_answer(true);
    for (i = 0; i < 2000; i++) {
        tt_call(&r, tools, "read", "path=s limit=j", "a.py", "0");
        TT_OK(&r, "1\tbad");
        if (hfsb_json_get(r.res.fields.root, "notes")) break;
        (void)poll(NULL, 0, 20);
    }
    T_CHECK(i < 2000);
    hfsb_tools_close(tools);
    drop("a.py");
    tt_drop(&r);
}

/* ---- in a server, where clients share the tools ---- */

static hfsbi_tools_group group; /* of a server */

static hfsb_tools *open_server_tools(void) {
    static const char *env[2];
    hfsb_tools_opts    opts = HFSB_INIT;
    hfsb_tools        *tools = NULL;
    char               name[100];
    env[0] = path_var;
    opts.env = env;
    opts.alloc = tt_alloc();
    (void)unlink(in_tmp(name, "starts"));
    memset(&group, 0, sizeof group);
    T_CHECK(hfsbi_loop_open(&opts.alloc, 0, true, &group.loop, NULL) ==
            HFSB_OK);
    T_CHECK(hfsbi_tools_open_in(&group, NULL, &opts, &tools, NULL) == HFSB_OK);
    let_python_write(tools);
    return tools;
}

static void close_server_tools(hfsb_tools *tools) {
    hfsb_tools_close(tools);
    hfsbi_loop_close(group.loop);
}

static void a_server_gives_late_warnings_to_calls_about_the_file(void) {
    hfsb_tools *tools = open_server_tools();
    tt_reply    r = HFSB_INIT;
    long long   begin = hfsb_clock_ms();
    tools->checker->timeout_ms = 60000;
    let_python_answer(false);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 1");
    TT_OK(&r, "Wrote 5 bytes to a.py");
    tt_call(&r, tools, "write", "path=s content=s", "b.py", "bad 2");
    TT_OK(&r, "Wrote 5 bytes to b.py");
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    let_python_answer(true);
    await_at(tools, "b.py", "bad 2", LATE("b.py", "bad 2"));
    tt_call(&r, tools, "exists", "path=s", "."); /* of another client */
    TT_OK(&r, "true");
    tt_call(&r, tools, "read", "path=s", "a.py");
    TT_OK(&r, "1\tbad 1" LATE("a.py", "bad 1"));
    close_server_tools(tools);
    drop("a.py");
    drop("b.py");
    tt_drop(&r);
}

static void a_server_drops_late_warnings_of_a_changed_file(void) {
    hfsb_tools *tools = open_server_tools();
    tt_reply    r = HFSB_INIT;
    let_python_answer(false);
    tt_call(&r, tools, "write", "path=s content=s", "a.py", "bad 1");
    tt_call(&r, tools, "write", "path=s content=s", "b.py", "bad 2");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "a.py", "1", "3");
    TT_OK(&r, "Edited a.py (1 replacement)");
    tt_put("b.py", HFSB_LIT("good"));
    let_python_answer(true);
    await_at(tools, "a.py", "bad 3", LATE("a.py", "bad 3"));
    tt_call(&r, tools, "exists", "path=s", "b.py");
    TT_OK(&r, "true");
    close_server_tools(tools);
    drop("a.py");
    drop("b.py");
    tt_drop(&r);
}

static void a_server_keeps_few_late_warnings(void) {
    enum { FILES = 70, KEPT = 64 };
    hfsb_tools *tools = open_server_tools();
    tt_reply    r = HFSB_INIT;
    char        name[16];
    size_t      i, shown = 0;
    tools->checker->patience_ms = 1;
    let_python_answer(false);
    for (i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%zu.py", i);
        tt_call(&r, tools, "write", "path=s content=s", name, name);
        tt_call(&r, tools, "write", "path=s content=s", name, "bad");
    }
    let_python_answer(true);
    await_at(tools, "69.py", "bad", LATE("69.py", "bad"));
    for (i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%zu.py", i);
        tt_call(&r, tools, "exists", "path=s", name);
        shown += r.res.output.len > 4;
        T_CHECK((r.res.output.len > 4) == (i >= FILES - KEPT && i < 69));
        drop(name);
    }
    T_CHECK(shown == KEPT - 1);
    close_server_tools(tools);
    tt_drop(&r);
}

/* ---- the start of the helper ---- */

static bool starts_soon(void) {
    int i;
    for (i = 0; i < 2000 && starts() == 0; i++) (void)poll(NULL, 0, 20);
    return starts() == 1;
}

static void the_helper_starts_with_the_first_call_about_a_python_file(void) {
    tt_reply r = HFSB_INIT;
    int      server;
    let_python_answer(true);
    tt_put("a.py", HFSB_LIT("x\n"));
    tt_put("a.txt", HFSB_LIT("x\n"));
    for (server = 0; server < 2; server++) {
        hfsb_tools *tools = server ? open_server_tools() : open_tools(true);
        tt_call(&r, tools, "read", "path=s", "a.txt");
        T_CHECK(!tools->checker->python.proc);
        tt_call(&r, tools, "read", "path=s", "a.py");
        T_CHECK(r.res.success && starts_soon());
        tt_call(&r, tools, "read", "path=s", "a.py");
        T_CHECK(tools->checker->python.proc && starts() == 1);
        if (server) close_server_tools(tools);
        else hfsb_tools_close(tools);
    }
    drop("a.py");
    drop("a.txt");
    tt_drop(&r);
}

static void where_a_write_waits_a_read_starts_nothing(void) {
    hfsb_tools *tools = open_tools(false);
    tt_reply    r = HFSB_INIT;
    tt_put("a.py", HFSB_LIT("x\n"));
    tt_call(&r, tools, "read", "path=s", "a.py");
    T_CHECK(r.res.success && !tools->checker->python.proc);
    hfsb_tools_close(tools);
    drop("a.py");
    tt_drop(&r);
}

int main(void) {
    char name[100];
    tt_begin();
    put_python();
    TT_RUN(a_session_gets_late_warnings_with_the_next_reply);
    TT_RUN(late_warnings_of_a_changed_file_are_dropped);
    TT_RUN(without_a_session_the_write_waits_for_its_warnings);
    TT_RUN(a_helper_that_was_killed_is_replaced);
    TT_RUN(notes_stay_apart_from_whole_content);
    TT_RUN(a_server_gives_late_warnings_to_calls_about_the_file);
    TT_RUN(a_server_drops_late_warnings_of_a_changed_file);
    TT_RUN(a_server_keeps_few_late_warnings);
    TT_RUN(the_helper_starts_with_the_first_call_about_a_python_file);
    TT_RUN(where_a_write_waits_a_read_starts_nothing);
    drop(in_tmp(name, "bin/python3"));
    T_CHECK(rmdir(in_tmp(name, "bin")) == 0);
    (void)unlink(in_tmp(name, "starts"));
    let_python_answer(false);
    return TT_END();
}
