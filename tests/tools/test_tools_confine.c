/* test_tools_confine.c - confined commands as the tools show them: the
   description, hints after a refusal, planted files, variables. */
#include "../support/t_tools.h"

static hfsb_tools *open_at(hfsb_confine_level level, bool session) {
    hfsb_tools_opts o = HFSB_INIT;
    o.root = HFSB_LIT(".");
    o.session = session;
    o.confine.level = level;
    return tt_open(&o);
}

static void refused_commands_get_a_hint(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, false);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s", "touch ../outside");
    TT_FAIL(&r, "Exit code 1");
    T_CHECK(tt_says(&r.res.output,
                    "\n(commands are confined: files can be changed only "
                    "where commands may write. A person can allow more: "
                    "--allow-write DIR"));
    tt_call(&r, tools, "bash", "command=s",
            "echo kill: Operation not permitted; exit 1");
    T_CHECK(tt_says(&r.res.output, "by the kill tool."));
    tt_call(&r, tools, "bash", "command=s", "echo Permission denied");
    TT_OK(&r, "Permission denied\n");
    tt_call(&r, tools, "bash", "command=s", "exit 1");
    TT_ENDS(&r, "", "Exit code 1");
    tt_call(&r, tools, "bash", "command=s",
            "echo Network is unreachable; exit 1");
    TT_ENDS(&r, "Network is unreachable\n", "Exit code 1");
    hfsb_tools_close(tools);
    tools = open_at(HFSB_CONFINE_STRICT, false);
    tt_call(&r, tools, "bash", "command=s",
            "echo curl: Could not resolve host: x; exit 6");
    T_CHECK(tt_says(&r.res.output, "A person can allow it: --net on)"));
    hfsb_tools_close(tools);
    tools = open_at(HFSB_CONFINE_NONE, false);
    tt_call(&r, tools, "bash", "command=s",
            "echo Permission denied; touch ../outside && rm ../outside; "
            "exit 1");
    TT_ENDS(&r, "Permission denied\n", "Exit code 1");
    hfsb_tools_close(tools);
    tt_drop(&r);
}

/* The options that a hint names are those that the level has. */
static void hints_name_what_can_be_allowed(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, false);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s", "echo Permission denied; exit 1");
    T_CHECK(tt_says(&r.res.output, "allow more: --allow-write DIR)"));
    hfsb_tools_close(tools);
    tools = open_at(HFSB_CONFINE_STRICT, false);
    tt_call(&r, tools, "bash", "command=s", "echo Permission denied; exit 1");
    T_CHECK(tt_says(&r.res.output, "allow more: --allow-write DIR, reading: "
                                   "--allow-read DIR, the network: --net "
                                   "on)"));
    hfsb_tools_close(tools);
    tt_drop(&r);
}

typedef struct limit_case {
    const char *command, *hint;
} limit_case;

static void commands_over_a_limit_get_a_hint(void) {
    static const limit_case cases[] = {
        {"while :; do :; done", "too much CPU time"},
        {"sh -c 'while :; do :; done'; exit $?", "too much CPU time"},
        {"head -c 5000000 /dev/zero > big; rm -f big; exit 1",
         "a file grew too large"},
        {"exec head -c 5000000 /dev/zero > big", "a file grew too large"},
        {"echo MemoryError; exit 1", "memory is used up"},
        {"echo sh: Cannot fork; exit 2", "too many processes"},
        {"echo resource temporarily unavailable; exit 2",
         "too many processes"}};
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    size_t          i;
    o.root = HFSB_LIT(".");
    o.confine.max_cpu = 1;
    o.confine.max_file_size = 1000000;
    o.confine.max_memory = 4000000000u;
    o.confine.max_processes = 100000;
    tools = tt_open(&o);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tt_call(&r, tools, "bash", "command=s", cases[i].command);
        T_CHECK(!r.res.success);
        T_CHECK(tt_says(&r.res.output, "(commands are limited: "));
        T_CHECK(tt_says(&r.res.output, cases[i].hint));
    }
    (void)unlink("big");
    hfsb_tools_close(tools);
    tools = open_at(HFSB_CONFINE_WRITE, false);
    tt_call(&r, tools, "bash", "command=s", "echo MemoryError; exit 1");
    TT_ENDS(&r, "MemoryError\n", "Exit code 1");
    hfsb_tools_close(tools);
    tt_drop(&r);
}

/* Where the kernel gives commands mounts; elsewhere a program can warn. */
static void commands_cannot_delete_checkpoints(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    bool            mounts;
    T_CHECK(mkdir("kept", 0755) == 0);
    tt_put("kept/f", HFSB_LIT("mine\n"));
    o.root = HFSB_LIT("kept");
    o.checkpoints.dir = "kept/s";
    o.confine.level = HFSB_CONFINE_WRITE;
    tools = tt_open(&o);
    mounts = hfsb_tools_confine(tools)->spaces.mounts >= 0;
    T_CHECK((hfsb_tools_exposed(tools) == NULL) == mounts);
    if (mounts) {
        tt_call(&r, tools, "bash", "command=s", "rm -rf f s; mv s t");
        T_CHECK(!r.res.success && access("kept/f", F_OK) != 0);
        tt_call(&r, tools, "undo", "");
        T_CHECK(r.res.success);
        TT_FILE("kept/f", "mine\n");
    }
    hfsb_tools_close(tools);
    o.checkpoints.dir = "elsewhere"; /* the root is all that they may write */
    o.confine.no_temp = true;
    tools = tt_open(&o);
    T_CHECK(hfsb_tools_exposed(tools) == NULL);
    hfsb_tools_close(tools);
    T_CHECK(system("rm -rf kept elsewhere") == 0);
    tt_drop(&r);
}

static void planted_files_are_named_in_the_reply(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, true);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s", "echo evil > .envrc");
    T_CHECK(r.res.success && tt_says(&r.res.output, ".envrc.refused)"));
    TT_FILE(".envrc.refused", "evil\n");
    T_CHECK(access(".envrc", F_OK) != 0);
    T_CHECK(unlink(".envrc.refused") == 0);
    hfsb_tools_close(tools);
    tt_drop(&r);
}

/* The host can ask the person before a write, so that is not the command's. */
static void files_that_the_tools_write_stay(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, true);
    hfsb_call  *call;
    tt_reply    r = HFSB_INIT, w = HFSB_INIT;
    call = tt_start(tools, "bash", NULL, "command=s",
                    "while [ ! -e go ]; do sleep 0.02; done");
    tt_call(&w, tools, "write", "path=s content=s", ".envrc", "mine\n");
    T_CHECK(w.res.success);
    tt_put("go", HFSB_LIT(""));
    tt_finish(&r, tools, call);
    TT_OK(&r, "");
    TT_FILE(".envrc", "mine\n");
    T_CHECK(unlink(".envrc") == 0 && unlink("go") == 0);
    hfsb_tools_close(tools);
    tt_drop(&r);
    tt_drop(&w);
}

static void strict_hides_variables(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    T_CHECK(setenv("MY_TOKEN", "x", 1) == 0 && setenv("PLAIN", "y", 1) == 0);
    tools = open_at(HFSB_CONFINE_STRICT, false);
    tt_call(&r, tools, "bash", "command=s", "echo \"$MY_TOKEN-$PLAIN\"");
    TT_OK(&r, "-y\n");
    hfsb_tools_close(tools);
    tools = open_at(HFSB_CONFINE_WRITE, false);
    tt_call(&r, tools, "bash", "command=s", "echo \"$MY_TOKEN-$PLAIN\"");
    TT_OK(&r, "x-y\n");
    hfsb_tools_close(tools);
    T_CHECK(unsetenv("MY_TOKEN") == 0 && unsetenv("PLAIN") == 0);
    tt_drop(&r);
}

/* Sessions of a server share the confinement of the tools they are like. */
static void tools_like_others_are_confined_as_they_are(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, true), *like = NULL;
    tt_reply    r = HFSB_INIT;
    T_CHECK(hfsbi_tools_open_like(tools, NULL, &like, NULL) == HFSB_OK);
    tt_call(&r, like, "bash", "command=s", "touch ../outside");
    TT_FAIL(&r, "Exit code 1");
    T_CHECK(hfsb_tools_confine(like) == hfsb_tools_confine(tools));
    hfsb_tools_close(like);
    hfsb_tools_close(tools);
    tt_drop(&r);
}

static void the_description_names_the_level(void) {
    static const struct {
        hfsb_confine_level level;
        const char        *words;
    } rows[] = {{HFSB_CONFINE_NONE, "which no root confines"},
                {HFSB_CONFINE_WRITE, "confined: it writes only beneath"},
                {HFSB_CONFINE_STRICT, "confined: it reads and writes only"}};
    size_t i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_buf text = HFSB_INIT;
        T_CHECK(hfsbi_tools_define("/bin/sh", rows[i].level, NULL, 0,
                                   HFSB_TOOLS_FLAT, &text, NULL) == HFSB_OK);
        T_CHECK(tt_says(&text, rows[i].words));
        T_CHECK(!tt_says(&text, "{confined}"));
        hfsb_buf_free(&text);
    }
}

static void wrong_options_are_refused(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    hfsb_err        err = HFSB_INIT;
    const char     *missing = "/no/such/folder";
    o.confine.level = HFSB_CONFINE_WRITE;
    o.confine.allow_write = &missing;
    o.confine.allow_write_count = 1;
    T_CHECK(hfsb_tools_open(&o, &tools, &err) == HFSB_NOT_FOUND && !tools);
    T_CHECK(strstr(err.msg, "Cannot allow commands to write") != NULL);
}

/* Commands cannot signal what an earlier one left running; kill can. */
static void kill_ends_what_confined_commands_left(void) {
    hfsb_tools *tools = open_at(HFSB_CONFINE_WRITE, false);
    tt_reply    r = HFSB_INIT;
    char        want[80];
    long        pid;
    tt_call(&r, tools, "bash", "command=s id=s", "sleep 60 & echo $!", "b");
    pid = tt_number(hfsb_buf_str(&r.res.output), 0);
    T_CHECK(pid > 1 && tt_alive(pid));
    tt_call(&r, tools, "kill", ""); /* only what still runs as a job */
    TT_OK(&r, "Killed 0 process(es): []");
    T_CHECK(tt_alive(pid));
    tt_call(&r, tools, "kill", "id=s", "b");
    snprintf(want, sizeof want, "Killed 1 process(es): [%ld]", pid);
    TT_OK(&r, want);
    T_CHECK(tt_gone(pid));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(the_description_names_the_level);
    TT_RUN(wrong_options_are_refused);
    TT_RUN(commands_over_a_limit_get_a_hint);
    if (hfsbi_landlock_abi() >= 3 && hfsbi_seccomp_works()) {
        TT_RUN(refused_commands_get_a_hint);
        TT_RUN(hints_name_what_can_be_allowed);
        TT_RUN(commands_cannot_delete_checkpoints);
        TT_RUN(planted_files_are_named_in_the_reply);
        TT_RUN(files_that_the_tools_write_stay);
        TT_RUN(strict_hides_variables);
        TT_RUN(kill_ends_what_confined_commands_left);
        TT_RUN(tools_like_others_are_confined_as_they_are);
    } else {
        printf("skipped: no Landlock or seccomp here\n");
        t_skipped++;
    }
    return TT_END();
}
