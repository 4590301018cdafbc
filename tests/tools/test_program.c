/* test_program.c - programs of other protocols: raw processes as jobs, their
   events, their ids, their places, what is kept of them. */
#include "../support/t_undo.h"

/* ---- specs ---- */

/* A spec with these arguments; the last one is NULL. */
static hfsbi_job_spec words(const hfsb_alloc *alloc, const char *first, ...) {
    hfsbi_job_spec spec;
    const char    *word = first;
    va_list        ap;
    hfsbi_job_spec_init(&spec, alloc);
    va_start(ap, first);
    for (; word; word = va_arg(ap, const char *))
        (void)hfsb_buf_append(&spec.raw.argv,
                              hfsb_str_make(word, strlen(word) + 1));
    va_end(ap);
    return spec;
}

static hfsbi_job_spec script(const hfsb_tools *tools, const char *text) {
    return words(&tools->alloc, "/bin/sh", "-c", text, NULL);
}

static void set(hfsb_buf *text, const char *value) {
    if (hfsb_buf_append(text, hfsb_cstr(value)) != HFSB_OK) abort();
}

static void set_env(hfsbi_job_spec *spec, const char *entry) {
    if (hfsb_buf_append(&spec->env, hfsb_str_make(entry, strlen(entry) + 1)) !=
        HFSB_OK)
        abort();
}

/* Starts it, which must work. */
static hfsbi_job *start(hfsb_tools *tools, hfsbi_job_spec *spec) {
    hfsbi_job *job = NULL;
    hfsb_err   err = HFSB_INIT;
    T_CHECK(hfsbi_program_start(tools, spec, 0, &job, &err) == HFSB_OK);
    hfsbi_job_spec_free(spec);
    if (!job) {
        printf("%s\n", err.msg);
        abort();
    }
    return job;
}

static hfsbi_job *run(hfsb_tools *tools, const char *text) {
    hfsbi_job_spec spec = script(tools, text);
    return start(tools, &spec);
}

/* Starts one with an id: the status; *out: the program. */
static hfsb_status start_as(hfsb_tools *tools, const char *id,
                            const char *text, hfsbi_job **out, hfsb_err *err) {
    hfsbi_job_spec spec = script(tools, text);
    hfsb_status    st;
    set(&spec.id, id);
    st = hfsbi_program_start(tools, &spec, 0, out, err);
    hfsbi_job_spec_free(&spec);
    return st;
}

/* ---- events ---- */

enum { PATIENCE = 30000 };

typedef struct reading {
    hfsbi_feed_reader  reader;
    char               text[2000]; /* "1<out>2{err}3[pty]4=0;5." */
    size_t             len;
    unsigned long long bytes;
    bool               closed;
    hfsbi_feed_exit    exit;
} reading;

static void note(reading *r, const char *form, ...) {
    va_list ap;
    int     n;
    va_start(ap, form);
    n = vsnprintf(r->text + r->len, sizeof r->text - r->len, form, ap);
    va_end(ap);
    if (n > 0) r->len += (size_t)n;
    if (r->len >= sizeof r->text) r->len = sizeof r->text - 1;
}

/* Takes what there is. */
static void take(reading *r) {
    char             piece[HFSBI_FEED_EVENT + 3];
    hfsbi_feed_event e;
    while (hfsbi_feed_take(&r->reader, piece, sizeof piece, &e)) {
        static const char *const marks[] = {"", "<>", "{}", "[]"};
        r->bytes += e.bytes.len;
        if (e.kind <= HFSBI_FEED_PTY)
            note(r, "%llu%c%.*s%c", e.seq, marks[e.kind][0], (int)e.bytes.len,
                 e.bytes.ptr, marks[e.kind][1]);
        else if (e.kind == HFSBI_FEED_GAP)
            note(r, "gap %llu,%llu;", e.gone_events, e.gone_bytes);
        else if (e.kind == HFSBI_FEED_EXITED)
            note(r, "%llu=%d,%d;", e.seq, e.exit.exit_code, e.exit.signal);
        else note(r, "%llu.", e.seq);
        if (e.kind >= HFSBI_FEED_EXITED) r->exit = e.exit;
        r->closed = r->closed || e.kind == HFSBI_FEED_CLOSED;
    }
}

static void attach(reading *r, hfsbi_job *job, unsigned long long from) {
    memset(r, 0, sizeof *r);
    hfsbi_feed_attach(job->feed, &r->reader, from);
}

/* Reads until the text contains this; NULL: to the last event. */
static void await(hfsb_tools *tools, reading *r, const char *until) {
    long long end = hfsb_clock_ms() + PATIENCE;
    for (take(r); until ? !strstr(r->text, until) : !r->closed; take(r)) {
        if (hfsb_clock_ms() > end) {
            printf("%s: still \"%s\"\n", t_name, r->text);
            T_CHECK(r->closed); /* or what was awaited */
            return;
        }
        hfsb_tools_poll(tools, 100);
    }
}

/* All that a program prints, and its end; the program is released. */
static const char *told(hfsb_tools *tools, hfsbi_job *job) {
    static reading r;
    attach(&r, job, 0);
    await(tools, &r, NULL);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    return r.text;
}

static void told_is(int line, const char *is, const char *want) {
    t_checks++;
    if (!strcmp(is, want)) return;
    t_failed++;
    printf("line %d: %s: is \"%s\", want \"%s\"\n", line, t_name, is, want);
}
#define TOLD(is, want) told_is(__LINE__, is, want)

static void await_state(hfsb_tools *tools, const hfsbi_job *job,
                        hfsbi_job_state state) {
    long long end = hfsb_clock_ms() + PATIENCE;
    while (job->state != state && hfsb_clock_ms() < end)
        hfsb_tools_poll(tools, 100);
    T_CHECK(job->state == state);
}

/* ---- what a program is given ---- */

static void words_stay_apart(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec =
        words(&tools->alloc, "printf", "(%s)", "a b", "$HOME", "", "*",
              "'\"; exit 9", "\xff\n", NULL);
    hfsbi_job *job = start(tools, &spec);
    T_CHECK(job->pid > 0 && !hfsbi_program_failure(job));
    T_STR(job->spec.command, "printf (%s) a b $HOME  * '\"; exit 9 \xff\n");
    TOLD(told(tools, job),
         "1<(a b)($HOME)()(*)('\"; exit 9)(\xff\n)>2=0,0;3.");
    /* without arguments, a command for the shell */
    hfsbi_job_spec_init(&spec, &tools->alloc);
    set(&spec.command, "echo $((1 + 1)); exit 3");
    job = start(tools, &spec);
    TOLD(told(tools, job), "1<2\n>2=3,0;3.");
    hfsb_tools_close(tools);
}

static void the_environment_may_be_bare(void) {
    static const char *const env[] = {"PATH=/usr/bin:/bin", "KEPT=1", "GONE=1",
                                      NULL};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_tools              *tools;
    hfsbi_job_spec           spec;
    opts.env = env;
    tools = tt_open(&opts);
    spec = script(tools, "echo ${KEPT-no} ${GONE-no} ${NEW-no}");
    set_env(&spec, "NEW=2");
    set_env(&spec, "GONE");
    TOLD(told(tools, start(tools, &spec)), "1<1 no 2\n>2=0,0;3.");
    spec = script(tools, "echo ${KEPT-no} ${GONE-no} ${NEW-no}");
    set_env(&spec, "NEW=2");
    spec.raw.bare_env = true;
    TOLD(told(tools, start(tools, &spec)), "1<no no 2\n>2=0,0;3.");
    spec = script(tools, "echo ${KEPT-no}");
    spec.raw.bare_env = true;
    TOLD(told(tools, start(tools, &spec)), "1<no\n>2=0,0;3.");
    hfsb_tools_close(tools);
}

static void it_begins_where_the_tools_do(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job_spec  spec;
    if (mkdir("home", 0700) || mkdir("home/inner", 0700)) abort();
    opts.work_dir = HFSB_LIT("home");
    tools = tt_open(&opts);
    TOLD(told(tools, run(tools, "echo ${PWD##*/work}")), "1</home\n>2=0,0;3.");
    spec = script(tools, "echo ${PWD##*/work}");
    set(&spec.work_dir, "inner");
    TOLD(told(tools, start(tools, &spec)), "1</home/inner\n>2=0,0;3.");
    spec = script(tools, "pwd");
    set(&spec.work_dir, "/");
    TOLD(told(tools, start(tools, &spec)), "1</\n>2=0,0;3.");
    hfsb_tools_close(tools);
}

/* ---- events ---- */

static void events_of_two_streams_are_numbered(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job  *job;
    reading     r, late;
    T_CHECK(!mkfifo("go1", 0600) && !mkfifo("go2", 0600));
    job = run(tools, "echo a; read x < go1; echo b >&2; read x < go2; echo c; "
                     "exit 7");
    attach(&r, job, 0);
    await(tools, &r, "a\n");
    T_CHECK(job->state == HFSBI_JOB_RUNNING && job->pid > 0);
    tt_put("go1", HFSB_LIT("\n"));
    await(tools, &r, "b\n");
    tt_put("go2", HFSB_LIT("\n"));
    await(tools, &r, NULL);
    TOLD(r.text, "1<a\n>2{b\n}3<c\n>4=7,0;5.");
    T_CHECK(r.exit.end == HFSB_PROC_EXITED);
    T_CHECK(job->state == HFSBI_JOB_DONE && job->end.exit_code == 7);
    /* the end is replayed, and what comes before it */
    attach(&late, job, 3);
    take(&late);
    TOLD(late.text, "3<c\n>4=7,0;5.");
    hfsbi_feed_detach(&late.reader);
    attach(&late, job, HFSBI_FEED_NOW);
    take(&late);
    TOLD(late.text, "4=7,0;5.");
    hfsbi_feed_detach(&late.reader);
    TOLD(told(tools, job), "1<a\n>2{b\n}3<c\n>4=7,0;5.");
    hfsbi_feed_detach(&r.reader);
    /* a signal ends one */
    job = run(tools, "kill -9 $$");
    TOLD(told(tools, job), "1=0,9;2.");
    hfsb_tools_close(tools);
}

static void a_late_reader_learns_what_is_gone(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec = script(tools, "seq 10000; echo end");
    hfsbi_job     *job;
    reading        r;
    spec.raw.keep = 400;
    job = start(tools, &spec);
    await_state(tools, job, HFSBI_JOB_DONE);
    attach(&r, job, 0);
    take(&r);
    T_CHECK(!strncmp(r.text, "gap ", 4) && strstr(r.text, "end\n"));
    T_CHECK(r.closed && r.bytes <= 400);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    hfsb_tools_close(tools);
}

/* ---- programs that do not start ---- */

static void one_that_cannot_start_says_why(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec = words(&tools->alloc, "no-such-program", "x", NULL);
    hfsbi_job     *job = start(tools, &spec);
    const char    *why = hfsbi_program_failure(job);
    T_CHECK(job->state == HFSBI_JOB_DONE && job->pid == 0);
    T_CHECK(why && strstr(why, "no-such-program"));
    T_CHECK(job->result.code == HFSB_NOT_FOUND);
    TOLD(told(tools, job), "1=0,0;2.");
    spec = script(tools, "echo ran");
    set(&spec.work_dir, "/no/such/folder");
    job = start(tools, &spec);
    why = hfsbi_program_failure(job);
    T_CHECK(why && strstr(why, "/no/such/folder"));
    T_CHECK(job->result.code == HFSB_NOT_FOUND);
    hfsbi_program_release(job);
    spec = words(&tools->alloc, "/", NULL);
    job = start(tools, &spec);
    T_CHECK(hfsbi_program_failure(job) && job->result.code == HFSB_DENIED);
    hfsbi_program_release(job);
    spec = script(tools, "echo ran");
    spec.raw.cols = 10;
    job = start(tools, &spec);
    T_CHECK(hfsbi_program_failure(job) && job->result.code == HFSB_ARG);
    hfsbi_program_release(job);
    hfsb_tools_close(tools);
}

/* ---- programs that wait ---- */

typedef struct waiter {
    int        calls;
    hfsbi_job *job;
    long       pid;
    bool       failed;
} waiter;

static void on_start(void *user, hfsbi_job *job) {
    waiter *w = (waiter *)user;
    w->calls++;
    w->job = job;
    w->pid = job->pid;
    w->failed = hfsbi_program_failure(job) != NULL;
}

static void one_waits_for_a_place(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *first, *second, *third;
    hfsbi_job_spec  spec;
    waiter          a = HFSB_INIT, b = HFSB_INIT, c = HFSB_INIT;
    reading         r;
    opts.max_running = 1;
    opts.max_waiting = 2;
    tools = tt_open(&opts);
    T_CHECK(!mkfifo("place", 0600));
    first = run(tools, "read x < place");
    T_CHECK(!hfsbi_program_on_start(first, on_start, &a));
    second = run(tools, "echo second");
    T_CHECK(second->state == HFSBI_JOB_WAITING && !second->pid);
    T_CHECK(!hfsbi_program_failure(second));
    T_CHECK(hfsbi_program_on_start(second, on_start, &b));
    T_CHECK(hfsbi_program_input(second, HFSB_LIT("x"), false, NULL) ==
            HFSB_REFUSED);
    T_CHECK(hfsbi_program_signal(second, SIGTERM, HFSB_PROC_TREE, NULL) ==
            HFSB_REFUSED);
    T_CHECK(hfsbi_program_resize(second, 10, 10, NULL) == HFSB_REFUSED);
    attach(&r, second, 0); /* events come to a reader that is early */
    spec = words(&tools->alloc, "no-such-program", NULL);
    third = start(tools, &spec);
    T_CHECK(third->state == HFSBI_JOB_WAITING);
    T_CHECK(hfsbi_program_on_start(third, on_start, &c));
    spec = words(&tools->alloc, "echo", "fourth", NULL);
    {
        hfsbi_job *none = third;
        T_CHECK(hfsbi_program_start(tools, &spec, 0, &none, NULL) ==
                HFSB_LIMIT);
        T_CHECK(!none);
        hfsbi_job_spec_free(&spec);
    }
    hfsb_tools_poll(tools, 50);
    T_CHECK(b.calls == 0 && c.calls == 0);
    tt_put("place", HFSB_LIT("\n"));
    await(tools, &r, NULL);
    TOLD(r.text, "1<second\n>2=0,0;3.");
    await_state(tools, third, HFSBI_JOB_DONE);
    T_CHECK(a.calls == 0 && b.calls == 1 && c.calls == 1);
    T_CHECK(b.job == second && b.pid > 0 && !b.failed);
    T_CHECK(c.job == third && !c.pid && c.failed);
    T_CHECK(third->result.code == HFSB_NOT_FOUND);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(first);
    hfsbi_program_release(second);
    hfsbi_program_release(third);
    hfsb_tools_close(tools);
}

/* Killed or too late before it started. */
static void one_that_waits_may_never_run(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *first, *second, *third, *fourth;
    hfsbi_job_spec  spec;
    waiter          b = HFSB_INIT, c = HFSB_INIT, d = HFSB_INIT;
    tt_reply        r = HFSB_INIT;
    opts.max_running = 1;
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    first = run(tools, "sleep 60");
    second = run(tools, "echo second");
    T_CHECK(hfsbi_program_on_start(second, on_start, &b));
    tt_call(&r, tools, "kill", "id=s", second->id);
    T_CHECK(b.calls == 1 && b.failed && second->state == HFSBI_JOB_DONE);
    T_CHECK(second->result.code != HFSB_OK);
    TOLD(told(tools, second), "1=0,0;2.");
    spec = script(tools, "echo third");
    spec.timeout = 0.1;
    third = start(tools, &spec);
    T_CHECK(hfsbi_program_on_start(third, on_start, &c));
    await_state(tools, third, HFSBI_JOB_DONE);
    T_CHECK(c.calls == 1 && c.failed && third->end.timed_out);
    T_CHECK(third->result.code != HFSB_OK);
    hfsbi_program_release(third);
    /* nobody is called who does not want it any more */
    fourth = run(tools, "echo fourth");
    T_CHECK(hfsbi_program_on_start(fourth, on_start, &d));
    T_CHECK(hfsbi_program_on_start(fourth, NULL, &d));
    T_CHECK(hfsbi_program_signal(first, SIGKILL, HFSB_PROC_TREE, NULL) ==
            HFSB_OK);
    await_state(tools, fourth, HFSBI_JOB_DONE);
    T_CHECK(d.calls == 0);
    hfsbi_program_release(fourth);
    hfsbi_program_release(first);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Two clients wait for the same program. */
static void all_who_wait_hear_of_the_start(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *first, *one = NULL, *two = NULL, *three = NULL;
    waiter          a = HFSB_INIT, b = HFSB_INIT, c = HFSB_INIT;
    opts.max_running = 1;
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    first = run(tools, "sleep 60");
    T_CHECK(start_as(tools, "both", "echo x", &one, NULL) == HFSB_OK);
    T_CHECK(start_as(tools, "both", "echo x", &two, NULL) == HFSB_OK);
    T_CHECK(start_as(tools, "both", "echo x", &three, NULL) == HFSB_OK);
    T_CHECK(one == two && two == three);
    T_CHECK(hfsbi_program_on_start(one, on_start, &a));
    T_CHECK(hfsbi_program_on_start(two, on_start, &b));
    T_CHECK(hfsbi_program_on_start(three, on_start, &c));
    T_CHECK(hfsbi_program_on_start(three, NULL, &c)); /* it hangs up */
    hfsbi_program_release(three);
    T_CHECK(hfsbi_program_signal(first, SIGKILL, HFSB_PROC_TREE, NULL) ==
            HFSB_OK);
    await_state(tools, one, HFSBI_JOB_DONE);
    T_CHECK(a.calls == 1 && b.calls == 1 && c.calls == 0);
    hfsbi_program_release(one);
    hfsbi_program_release(two);
    hfsbi_program_release(first);
    hfsb_tools_close(tools);
}

/* Lets go of the program, and starts another one. */
static void start_another(void *user, hfsbi_job *job) {
    hfsb_tools    *tools = job->tools;
    hfsbi_job_spec spec = script(tools, "true");
    hfsbi_program_release(job);
    *(hfsbi_job **)user = start(tools, &spec);
}

/* Nor is one freed under those who end it. */
static void a_callback_may_let_go_of_its_program(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *first, *second, *third, *another = NULL;
    opts.max_running = 1;
    opts.max_finished = 1;
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    first = run(tools, "sleep 60");
    second = run(tools, "echo second");
    third = run(tools, "echo third");
    T_CHECK(hfsbi_program_on_start(second, start_another, &another));
    T_CHECK(hfsbi_job_kill(tools, third));
    hfsbi_program_release(third);
    T_CHECK(hfsbi_job_kill(tools, second));
    T_CHECK(another && another->state == HFSBI_JOB_WAITING);
    hfsbi_program_release(another);
    hfsbi_program_release(first);
    hfsb_tools_close(tools);
}

/* ---- ids ---- */

static void the_same_id_runs_once(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job  *a = NULL, *b = NULL, *c = NULL;
    hfsb_err    err = HFSB_INIT;
    tt_reply    r = HFSB_INIT;
    T_CHECK(start_as(tools, "id-1", "echo ran >> once; echo out", &a, NULL) ==
            HFSB_OK);
    T_CHECK(start_as(tools, "id-1", "echo ran >> once; echo out", &b, NULL) ==
            HFSB_OK);
    T_CHECK(a == b && a->users == 2 && !strcmp(a->id, "id-1"));
    TOLD(told(tools, a), "1<out\n>2=0,0;3.");
    TOLD(told(tools, b), "1<out\n>2=0,0;3.");
    /* also after its end */
    T_CHECK(start_as(tools, "id-1", "echo ran >> once; echo out", &b, NULL) ==
            HFSB_OK);
    T_CHECK(a == b);
    TOLD(told(tools, b), "1<out\n>2=0,0;3.");
    T_CHECK(start_as(tools, "id-1", "echo other >> once", &c, &err) ==
            HFSB_REFUSED);
    T_CHECK(!c && strstr(err.msg, "id-1"));
    /* bash uses the same ids */
    tt_call(&r, tools, "bash", "command=s id=s", "echo bash >> once", "id-1");
    TT_FAIL(&r, "");
    tt_call(&r, tools, "bash", "command=s id=s", "echo bash", "id-2");
    T_CHECK(r.res.success);
    T_CHECK(start_as(tools, "id-2", "echo bash", &c, &err) == HFSB_REFUSED);
    TT_FILE("once", "ran\n");
    unlink("once");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Whatever makes it another program makes it another command. */
static void another_setting_is_another_command(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job     *job = NULL, *other = NULL;
    hfsbi_job_spec spec;
    size_t         i;
    T_CHECK(start_as(tools, "set", "true", &job, NULL) == HFSB_OK);
    for (i = 0; i < 9; i++) {
        spec = i == 0 ? words(&tools->alloc, "/bin/sh -c", "true", NULL)
                      : script(tools, "true");
        set(&spec.id, "set");
        if (i == 1) set(&spec.work_dir, "/");
        if (i == 2) set_env(&spec, "A=b");
        if (i == 3) set(&spec.input, "x");
        if (i == 4) set(&spec.raw.tag, "x");
        if (i == 5) spec.raw.bare_env = true;
        if (i == 6) spec.raw.cols = spec.raw.rows = 10;
        if (i == 7) spec.raw.keep_input = true;
        if (i == 8) spec.timeout = 1;
        T_CHECK(hfsbi_program_start(tools, &spec, 0, &other, NULL) ==
                HFSB_REFUSED);
        if (other) {
            printf("setting %zu joins\n", i);
            hfsbi_program_release(other);
        }
        hfsbi_job_spec_free(&spec);
    }
    (void)told(tools, job);
    hfsb_tools_close(tools);
}

/* An id that does not fit would be cut, and not be found again. */
static void an_id_that_does_not_fit_is_refused(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job     *job = NULL;
    hfsb_err       err = HFSB_INIT;
    hfsbi_job_spec spec;
    char           id[HFSBI_JOB_ID + 1];
    memset(id, 'i', sizeof id);
    id[HFSBI_JOB_ID] = '\0';
    T_CHECK(start_as(tools, id, "echo ran >> long", &job, &err) == HFSB_ARG);
    T_CHECK(!job && strstr(err.msg, "159"));
    hfsbi_program_release(job);
    id[HFSBI_JOB_ID - 1] = '\0';
    T_CHECK(start_as(tools, id, "echo fits", &job, &err) == HFSB_OK);
    T_CHECK(!strcmp(job->id, id));
    TOLD(told(tools, job), "1<fits\n>2=0,0;3.");
    spec = script(tools, "echo ran >> long");
    T_CHECK(hfsb_buf_append(&spec.id, HFSB_LIT("a\0b")) == HFSB_OK);
    T_CHECK(hfsbi_program_start(tools, &spec, 0, &job, &err) == HFSB_ARG);
    hfsbi_program_release(job);
    hfsbi_job_spec_free(&spec);
    T_CHECK(access("long", F_OK) != 0);
    unlink("long");
    hfsb_tools_close(tools);
}

/* More ids than there are records. */
static void an_id_is_refused_after_its_record_was_dropped(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job  *job = NULL;
    hfsb_err    err = HFSB_INIT;
    int         i;
    tools->limits.finished = 4;
    T_CHECK(start_as(tools, "n-0", "echo ran >> dropped", &job, NULL) ==
            HFSB_OK);
    (void)told(tools, job);
    for (i = 1; i < 5000 && hfsbi_job_find(tools, HFSB_LIT("n-0")); i++) {
        hfsbi_job_spec spec = words(&tools->alloc, "/no/such", NULL);
        T_CHECK(hfsb_buf_printf(&spec.id, "n-%d", i) == HFSB_OK);
        hfsbi_program_release(start(tools, &spec));
        hfsb_tools_poll(tools, 0);
    }
    T_CHECK(!hfsbi_job_find(tools, HFSB_LIT("n-0")));
    T_CHECK(start_as(tools, "n-0", "echo ran >> dropped", &job, &err) ==
            HFSB_REFUSED);
    T_CHECK(!job && strstr(err.msg, "no longer held"));
    T_CHECK(start_as(tools, "n-0", "echo other >> dropped", &job, &err) ==
            HFSB_REFUSED);
    T_CHECK(!job && strstr(err.msg, "another"));
    TT_FILE("dropped", "ran\n");
    unlink("dropped");
    hfsb_tools_close(tools);
}

static void programs_are_found(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job     *a, *b, *found;
    hfsbi_job_spec spec = script(tools, "sleep 60");
    tt_reply       r = HFSB_INIT;
    set(&spec.raw.tag, "shell");
    a = start(tools, &spec);
    spec = script(tools, "sleep 61");
    set(&spec.raw.tag, "shell");
    b = start(tools, &spec);
    found = hfsbi_program_find(tools, hfsb_cstr(a->id), 0, HFSB_LIT(""));
    T_CHECK(found == a && a->users == 2);
    hfsbi_program_release(found);
    found = hfsbi_program_find(tools, HFSB_LIT(""), a->pid, HFSB_LIT(""));
    T_CHECK(found == a);
    hfsbi_program_release(found);
    found = hfsbi_program_find(tools, HFSB_LIT(""), 0, HFSB_LIT("shell"));
    T_CHECK(found == b); /* the newest */
    hfsbi_program_release(found);
    T_CHECK(!hfsbi_program_find(tools, HFSB_LIT("x"), 1, HFSB_LIT("y")));
    T_CHECK(!hfsbi_program_find(tools, HFSB_LIT(""), 0, HFSB_LIT("")));
    tt_call(&r, tools, "bash", "command=s id=s", "true", "not-raw");
    T_CHECK(!hfsbi_program_find(tools, HFSB_LIT("not-raw"), 0, HFSB_LIT("")));
    hfsbi_program_release(a);
    hfsbi_program_release(b);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- while it runs ---- */

static void input_reaches_it(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec =
        script(tools, "while read x; do echo \"($x)\"; done; echo over");
    hfsbi_job *job;
    reading    r;
    spec.raw.keep_input = true;
    set(&spec.input, "zero\n");
    job = start(tools, &spec);
    attach(&r, job, 0);
    await(tools, &r, "(zero)");
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("one\ntw"), false, NULL) ==
            HFSB_OK);
    await(tools, &r, "(one)");
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("o\n"), true, NULL) == HFSB_OK);
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("late\n"), false, NULL) ==
            HFSB_REFUSED);
    await(tools, &r, NULL);
    T_CHECK(strstr(r.text, "(two)\n") && strstr(r.text, "over\n"));
    T_CHECK(!strstr(r.text, "late"));
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("x"), false, NULL) ==
            HFSB_REFUSED);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    /* without keep_input it ends with what was given */
    spec = script(tools, "cat; echo over");
    set(&spec.input, "given\n");
    job = start(tools, &spec);
    attach(&r, job, 0);
    await(tools, &r, NULL);
    T_CHECK(strstr(r.text, "given\n") && strstr(r.text, "over\n"));
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    spec = words(&tools->alloc, "cat", NULL);
    TOLD(told(tools, start(tools, &spec)), "1=0,0;2.");
    hfsb_tools_close(tools);
}

static void count(void *user) {
    ++*(int *)user;
}

/* Gives input until no more is taken. */
static void fill(hfsbi_job *job) {
    static char bytes[256 << 10];
    while (hfsbi_program_input(job, hfsb_str_make(bytes, sizeof bytes), false,
                               NULL) == HFSB_OK)
        continue;
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("x"), false, NULL) ==
            HFSB_LIMIT);
}

static void poll_until(hfsb_tools *tools, const int *n, int want) {
    long long end = hfsb_clock_ms() + PATIENCE;
    while (*n < want && hfsb_clock_ms() < end) hfsb_tools_poll(tools, 100);
    T_CHECK(*n == want);
}

/* It is free when the program reads, closes its input, or ends. */
static void room_for_input_is_awaited(void) {
#define WAIT "until [ -e go ]; do sleep 0.02; done; "
    static const struct {
        const char *script;
        hfsb_status st; /* of input after that */
    } cases[] = {{WAIT "cat >/dev/null", HFSB_OK},
                 {WAIT "exec 0<&-; exec sleep 60", HFSB_REFUSED},
                 {WAIT "exit 0", HFSB_REFUSED}};
    hfsb_tools      *tools = tt_open(NULL);
    hfsbi_job_writer w = HFSB_INIT, other = HFSB_INIT;
    int              called, others = 0;
    size_t           i;
    w.on_room = other.on_room = count;
    w.user = &called;
    other.user = &others;
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsbi_job_spec spec = script(tools, cases[i].script);
        hfsbi_job     *job;
        spec.raw.keep_input = true;
        job = start(tools, &spec);
        await_state(tools, job, HFSBI_JOB_RUNNING);
        called = 0;
        fill(job);
        hfsbi_program_await_room(job, &other);
        hfsbi_program_await_room(job, &w);
        hfsbi_program_forget_room(&other);
        hfsbi_program_forget_room(&other); /* does nothing */
        hfsb_tools_poll(tools, 50);
        T_CHECK(called == 0);
        tt_put("go", HFSB_LIT(""));
        poll_until(tools, &called, 1);
        T_CHECK(hfsbi_program_input(job, HFSB_LIT("x"), true, NULL) ==
                cases[i].st);
        hfsbi_program_forget_room(&w); /* it does not wait any more */
        T_CHECK(unlink("go") == 0);
        (void)hfsbi_job_kill(tools, job);
        await_state(tools, job, HFSBI_JOB_DONE);
        T_CHECK(called == 1 && others == 0);
        hfsbi_program_release(job);
    }
    hfsb_tools_close(tools);
}

static void signals_reach_it(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job *job = run(tools, "trap 'echo usr' USR1; trap 'echo int; exit 4'"
                                " INT; echo ready; while :; do sleep 0.05; "
                                "done");
    hfsb_err   err = HFSB_INIT;
    reading    r;
    attach(&r, job, 0);
    await(tools, &r, "ready");
    T_CHECK(hfsbi_program_signal(job, 65, HFSB_PROC_TREE, NULL) == HFSB_ARG);
    T_CHECK(kill((pid_t)job->pid, SIGUSR1) == 0);
    await(tools, &r, "usr");
    T_CHECK(hfsbi_program_signal(job, SIGINT, HFSB_PROC_GROUP, NULL) ==
            HFSB_OK);
    await(tools, &r, NULL);
    T_CHECK(strstr(r.text, "int\n") && job->end.exit_code == 4);
    T_CHECK(hfsbi_program_signal(job, SIGINT, HFSB_PROC_TREE, &err) ==
            HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "has ended"));
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    hfsb_tools_close(tools);
}

static void it_may_have_a_terminal(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec = script(
        tools, "trap 'stty size' WINCH; test -t 0 && test -t 2 && stty size; "
               "echo err >&2; while ! read x; do :; done; echo \"($x)\"");
    hfsbi_job *job;
    reading    r;
    spec.raw.cols = 90;
    spec.raw.rows = 33;
    spec.raw.keep_input = true;
    job = start(tools, &spec);
    attach(&r, job, 0);
    await(tools, &r, "err");
    T_CHECK(strstr(r.text, "[33 90") && !strchr(r.text, '{'));
    T_CHECK(hfsbi_program_resize(job, 0, 1, NULL) == HFSB_ARG);
    T_CHECK(hfsbi_program_resize(job, 100, 44, NULL) == HFSB_OK);
    T_CHECK(hfsbi_program_input(job, HFSB_LIT("typed\n"), false, NULL) ==
            HFSB_OK);
    await(tools, &r, NULL);
    T_CHECK(strstr(r.text, "(typed)") && strstr(r.text, "44 100"));
    T_CHECK(hfsbi_program_resize(job, 10, 10, NULL) == HFSB_REFUSED);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    job = run(tools, "sleep 60");
    T_CHECK(hfsbi_program_resize(job, 10, 10, NULL) == HFSB_REFUSED);
    hfsbi_program_release(job);
    hfsb_tools_close(tools);
}

static void await_hold(hfsb_tools *tools, const hfsbi_job *job) {
    long long end = hfsb_clock_ms() + PATIENCE;
    while (!job->feed->held && hfsb_clock_ms() < end)
        hfsb_tools_poll(tools, 100);
    T_CHECK(job->feed->held && job->state == HFSBI_JOB_RUNNING);
}

static void a_slow_reader_loses_nothing(void) {
    enum { BYTES = 7 * 400000 };
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job_spec spec = script(tools, "seq -w 400000");
    size_t         before, most = 0, next = 1, width = 0, bytes = 0;
    hfsbi_job     *job;
    reading        r;
    bool           gap = false, wrong = false;
    long long      end = hfsb_clock_ms() + 60000;
    char          *piece = (char *)malloc(40000);
    if (!piece) abort();
    spec.raw.keep = 100000;
    before = tt_memory.heap.live;
    job = start(tools, &spec);
    attach(&r, job, 0);
    await_hold(tools, job);
    hfsb_tools_poll(tools, 300); /* it could write much meanwhile */
    T_CHECK(job->state == HFSBI_JOB_RUNNING);
    while (!r.closed && hfsb_clock_ms() < end) {
        hfsbi_feed_event e;
        size_t           i;
        if (!hfsbi_feed_take(&r.reader, piece, 40000, &e)) {
            hfsb_tools_poll(tools, 100);
            continue;
        }
        if (tt_memory.heap.live > most) most = tt_memory.heap.live;
        gap = gap || e.kind == HFSBI_FEED_GAP;
        r.closed = e.kind == HFSBI_FEED_CLOSED;
        for (i = 0; i < e.bytes.len; i++) {
            char want[16];
            snprintf(want, sizeof want, "%06zu\n", next);
            wrong = wrong || e.bytes.ptr[i] != want[width];
            width = (width + 1) % 7;
            if (width == 0) next++;
        }
        bytes += e.bytes.len;
        if (e.seq % 3 == 0) hfsb_tools_poll(tools, 0);
    }
    T_CHECK(bytes == BYTES && !gap && !wrong && r.closed);
    T_CHECK(most - before < 2 * (100000 + (128 << 10)) + 100000);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    free(piece);
    hfsb_tools_close(tools);
}

/* A reader that reads no more does not keep a program that was killed, or its
   place. */
static void a_stuck_reader_does_not_keep_what_was_killed(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *job;
    hfsbi_job_spec  spec;
    reading         r;
    tt_reply        reply = HFSB_INIT;
    long long       begin;
    opts.grace_ms = 200;
    tools = tt_open(&opts);
    spec = script(tools, "trap '' TERM; while :; do echo 0123456789; done");
    spec.raw.keep = 10000;
    job = start(tools, &spec);
    attach(&r, job, 0);
    await_hold(tools, job);
    begin = hfsb_clock_ms();
    tt_call(&reply, tools, "kill", "id=s", job->id);
    T_CHECK(reply.res.success && hfsb_clock_ms() - begin < 15000);
    T_CHECK(job->state == HFSBI_JOB_DONE);
    take(&r); /* what it printed until then */
    T_CHECK(r.closed && r.bytes >= 10000 && r.exit.signal == SIGKILL);
    T_CHECK(!strstr(r.text, "gap"));
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    /* one that has ended, but for its output */
    spec = script(tools, "head -c 60000 /dev/zero; exit 3");
    spec.raw.keep = 10000;
    job = start(tools, &spec);
    attach(&r, job, 0);
    await_hold(tools, job);
    tt_sleep_ms(100);
    hfsb_tools_poll(tools, 100);
    T_CHECK(job->state == HFSBI_JOB_RUNNING);
    begin = hfsb_clock_ms();
    tt_call(&reply, tools, "kill", "id=s", job->id);
    T_CHECK(reply.res.success && hfsb_clock_ms() - begin < 15000);
    T_CHECK(job->state == HFSBI_JOB_DONE && job->end.exit_code == 3);
    take(&r);
    T_CHECK(r.closed && r.bytes == 60000);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    /* a timeout is the same */
    spec = script(tools, "while :; do echo 0123456789; done");
    spec.raw.keep = 10000;
    spec.timeout = 0.5;
    job = start(tools, &spec);
    attach(&r, job, 0);
    begin = hfsb_clock_ms();
    await_state(tools, job, HFSBI_JOB_DONE);
    T_CHECK(hfsb_clock_ms() - begin < 15000 && job->end.timed_out);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    tt_drop(&reply);
    hfsb_tools_close(tools);
}

static void a_timeout_ends_it(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *job;
    hfsbi_job_spec  spec;
    double          seconds; /* more, if a busy machine prints nothing by then */
    const char     *text = "";
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    for (seconds = 0.7; seconds < 20 && strncmp(text, "1<", 2); seconds *= 4) {
        spec = script(tools, "echo a; sleep 60");
        spec.timeout = seconds;
        job = start(tools, &spec);
        job->users++;
        text = told(tools, job);
        T_CHECK(job->end.timed_out && !hfsbi_program_failure(job));
        hfsbi_program_release(job);
    }
    TOLD(text, "1<a\n>2=0,9;3.");
    /* a number of seconds that no clock has */
    spec = script(tools, "echo a");
    spec.timeout = 1e300;
    TOLD(told(tools, start(tools, &spec)), "1<a\n>2=0,0;3.");
    hfsb_tools_close(tools);
}

/* ---- what is kept ---- */

static void old_programs_are_dropped(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job  *held, *ids[20], *job = NULL;
    reading     r;
    size_t      i, full = 0;
    held = run(tools, "head -c 1000000 /dev/zero");
    await_state(tools, held, HFSBI_JOB_DONE);
    T_CHECK(start_as(tools, "with-id", "head -c 1000000 /dev/zero; echo end",
                     &job, NULL) == HFSB_OK);
    await_state(tools, job, HFSBI_JOB_DONE);
    hfsbi_program_release(job);
    for (i = 0; i < 20; i++) {
        ids[i] = run(tools, "head -c 1000000 /dev/zero; exit 5");
        await_state(tools, ids[i], HFSBI_JOB_DONE);
        hfsbi_program_release(ids[i]);
    }
    hfsb_tools_poll(tools, 0);
    hfsb_tools_poll(tools, 0);
    for (i = 0; i < 20; i++) full += ids[i]->feed->cap > 0;
    T_CHECK(full > 0 && full < 10 && ids[19]->feed->cap > 0);
    T_CHECK(tt_memory.heap.live < 12u << 20);
    /* the end of a dropped one is readable still */
    T_CHECK(ids[0]->feed->cap == 0);
    attach(&r, ids[0], 0);
    take(&r);
    T_CHECK(strstr(r.text, "gap ") == r.text && strstr(r.text, ",1000000;"));
    T_CHECK(strstr(r.text, "=5,0;") && r.closed);
    hfsbi_feed_detach(&r.reader);
    /* so is one that is held, with all it has */
    T_CHECK(held->feed->cap > 0);
    attach(&r, held, 0);
    take(&r);
    T_CHECK(r.bytes == 1000000 && r.closed);
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(held);
    /* the repeat of a dropped one joins it, and learns how it ended */
    T_CHECK(start_as(tools, "with-id", "head -c 1000000 /dev/zero; echo end",
                     &job, NULL) == HFSB_OK);
    attach(&r, job, 0);
    take(&r);
    T_CHECK(strstr(r.text, "=0,0;") && r.closed &&
            !hfsbi_program_failure(job));
    hfsbi_feed_detach(&r.reader);
    hfsbi_program_release(job);
    /* by number */
    tools->limits.finished = 3;
    job = run(tools, "true");
    (void)told(tools, job);
    hfsb_tools_poll(tools, 0);
    for (i = 0, job = tools->jobs; job; job = job->next) i++;
    T_CHECK(i == 4); /* and the one with an id */
    hfsb_tools_close(tools);
}

/* A program that was released while it runs goes on. */
static void a_released_program_goes_on(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsbi_job  *job = run(tools, "sleep 0.3; echo end");
    long        pid = job->pid;
    hfsbi_program_release(job);
    hfsb_tools_poll(tools, 0);
    job = hfsbi_program_find(tools, HFSB_LIT(""), pid, HFSB_LIT(""));
    T_CHECK(job != NULL);
    if (job) TOLD(told(tools, job), "1<end\n>2=0,0;3.");
    hfsb_tools_close(tools);
}

/* Why it did not start is known as long as its id. */
static void the_failure_outlives_the_text(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job     *job;
    hfsbi_job_spec spec;
    int            i;
    tools->limits.finished = 2;
    for (i = 0; i < 2; i++) {
        int j;
        spec = words(&tools->alloc, "no-such-program", NULL);
        set(&spec.id, "failed");
        job = start(tools, &spec);
        T_CHECK(strstr(hfsbi_program_failure(job), "no-such-program"));
        T_CHECK(job->result.code == HFSB_NOT_FOUND);
        hfsbi_program_release(job);
        for (j = 0; j < 4; j++) (void)told(tools, run(tools, "true"));
    }
    hfsb_tools_close(tools);
}

/* ---- like other commands ---- */

static void it_is_a_job_like_others(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *job;
    hfsbi_job_spec  spec;
    hfsb_buf        list = HFSB_INIT;
    hfsb_json_doc   doc = HFSB_INIT;
    tt_reply        r = HFSB_INIT;
    reading         reader;
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    spec = words(&tools->alloc, "sh", "-c", "echo 12345; sleep 60", NULL);
    set(&spec.id, "listed");
    job = start(tools, &spec);
    attach(&reader, job, 0);
    await(tools, &reader, "12345");
    T_CHECK(hfsb_tools_busy(tools) == 1);
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT("listed"), &list, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&list), NULL, &doc, NULL) == HFSB_OK);
    T_STR(hfsb_json_str(hfsb_json_get(doc.root, "command"), HFSB_LIT("")),
          "sh -c echo 12345; sleep 60");
    T_STR(hfsb_json_str(hfsb_json_get(doc.root, "state"), HFSB_LIT("")),
          "running");
    T_CHECK(hfsb_json_int(hfsb_json_get(doc.root, "pid"), 0) == job->pid);
    T_CHECK(hfsb_json_int(hfsb_json_get(doc.root, "output_bytes"), 0) == 6);
    hfsb_json_free(&doc);
    hfsb_buf_free(&list);
    tt_call(&r, tools, "kill", "id=s", "listed");
    T_CHECK(r.res.success && job->state == HFSBI_JOB_DONE && job->killed);
    await(tools, &reader, NULL);
    T_CHECK(reader.exit.signal == SIGKILL);
    hfsbi_feed_detach(&reader.reader);
    hfsbi_program_release(job);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void the_journal_has_it(void) {
    hfsb_journal_opts      o = HFSB_INIT;
    hfsb_journal          *journal = NULL;
    hfsb_tools_opts        opts = HFSB_INIT;
    hfsb_tools            *tools;
    hfsb_buf               text = HFSB_INIT;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_journal_page      page;
    const hfsb_json_value *e;
    hfsbi_job_spec         spec;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&o, &journal, NULL) == HFSB_OK);
    opts.journal = journal;
    tools = tt_open(&opts);
    spec = words(&tools->alloc, "sh", "-c", "echo A_TOKEN=hushhush; exit 6",
                 NULL);
    (void)told(tools, start(tools, &spec));
    spec = words(&tools->alloc, "no-such-program", NULL);
    (void)told(tools, start(tools, &spec));
    hfsb_tools_close(tools);
    T_CHECK(hfsb_journal_read(journal, 0, 0, &text, &page, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(page.count == 3);
    e = hfsb_json_at(doc.root, 0);
    T_STR(hfsb_json_str(hfsb_json_get(e, "tool"), HFSB_LIT("")), "process");
    T_STR(hfsb_json_str(hfsb_json_get(e, "state"), HFSB_LIT("")), "running");
    T_STR(hfsb_json_str(hfsb_json_get(e, "command"), HFSB_LIT("")),
          "sh -c echo A_TOKEN=***; exit 6");
    e = hfsb_json_at(doc.root, 1);
    T_STR(hfsb_json_str(hfsb_json_get(e, "tool"), HFSB_LIT("")), "process");
    T_STR(hfsb_json_str(hfsb_json_get(e, "state"), HFSB_LIT("")), "done");
    T_CHECK(hfsb_json_int(hfsb_json_get(e, "exit_code"), 0) == 6);
    T_CHECK(hfsb_json_int(hfsb_json_get(e, "output_bytes"), 0) == 17);
    T_CHECK(hfsb_json_int(hfsb_json_get(e, "call"), 0) == 1);
    e = hfsb_json_at(doc.root, 2);
    T_STR(hfsb_json_str(hfsb_json_get(e, "state"), HFSB_LIT("")), "done");
    T_CHECK(!hfsb_json_bool(hfsb_json_get(e, "success"), true));
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_journal_close(journal);
}

static void checkpoints_see_it(void) {
    hfsb_tools    *tools;
    hfsbi_job_spec spec;
    tt_reply       r = HFSB_INIT;
    tools = tu_open();
    tt_call(&r, tools, "write", "path=s content=s", "kept", "before\n");
    T_CHECK(r.res.success);
    spec = script(tools, "echo after > kept; echo new > added");
    (void)told(tools, start(tools, &spec));
    TT_FILE(TU_ROOT "/kept", "after\n");
    tt_call(&r, tools, "changes", "");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "checkpoints", "");
    T_CHECK(tt_says(&r.res.output, "process"));
    if (!tt_says(&r.res.output, "process")) printf("%s\n", r.res.output.ptr);
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/kept", "before\n");
    T_CHECK(access(TU_ROOT "/added", F_OK) != 0);
    /* what a person changed before it was started */
    tt_put(TU_ROOT "/kept", HFSB_LIT("by hand\n"));
    tt_sleep_ms(1100); /* changes that are close share a checkpoint */
    spec = script(tools, "echo after > kept");
    (void)told(tools, start(tools, &spec));
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/kept", "by hand\n");
    tt_drop(&r);
    tu_close(tools);
}

/* ---- the end ---- */

static void closing_ends_all(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsbi_job      *flood, *sleeper, *waits;
    reading         a, b, c;
    waiter          w = HFSB_INIT;
    long            pids[2];
    long long       begin;
    opts.max_running = 2;
    opts.grace_ms = 100;
    tools = tt_open(&opts);
    flood = run(tools, "while :; do echo 0123456789; done");
    sleeper = run(tools, "sleep 60");
    waits = run(tools, "echo waits");
    T_CHECK(hfsbi_program_on_start(waits, on_start, &w));
    attach(&a, flood, 0);
    attach(&b, sleeper, 0);
    attach(&c, waits, 0);
    await_hold(tools, flood);
    pids[0] = flood->pid;
    pids[1] = sleeper->pid;
    begin = hfsb_clock_ms();
    hfsb_tools_close(tools); /* with readers, and programs that are held */
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    T_CHECK(w.calls == 1 && w.failed);
    T_CHECK(!a.reader.feed && !b.reader.feed && !c.reader.feed);
    take(&a); /* nothing comes any more */
    T_CHECK(a.len == 0);
    hfsbi_feed_detach(&a.reader);
    T_CHECK(tt_gone(pids[0]) && tt_gone(pids[1]));
}

/* ---- memory ---- */

static void without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    hfsbi_job      *job = NULL, *again = NULL;
    hfsbi_job_spec  spec;
    hfsb_status     st;
    reading         r;
    int             i;
    opts.alloc = alloc;
    opts.max_running = 1;
    st = hfsb_tools_open(&opts, &tools, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    if (!tools) return;
    for (i = 0; i < 2; i++) {
        waiter w = HFSB_INIT;
        spec =
            words(&alloc, "sh", "-c", "echo out; echo err >&2; exit 3", NULL);
        (void)hfsb_buf_append(&spec.id, hfsb_cstr(i ? "" : "frugal"));
        (void)hfsb_buf_append(&spec.env, hfsb_str_make("A=b", 4));
        st = hfsbi_program_start(tools, &spec, 0, i ? &again : &job, NULL);
        hfsbi_job_spec_free(&spec);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
        T_CHECK((st == HFSB_OK) == ((i ? again : job) != NULL));
        if (i && again) {
            bool waits = hfsbi_program_on_start(again, on_start, &w);
            await_state(tools, again, HFSBI_JOB_DONE);
            T_CHECK(w.calls == (waits ? 1 : 0));
            T_CHECK(waits || job == NULL || heap->fail_at);
        }
    }
    if (job) {
        await_state(tools, job, HFSBI_JOB_DONE);
        attach(&r, job, 0);
        take(&r);
        T_CHECK(r.closed);
        T_CHECK(heap->fail_at || (!hfsbi_program_failure(job) &&
                                  r.exit.exit_code == 3 && r.bytes == 8));
        T_CHECK(!hfsbi_program_failure(job) || job->result.code == HFSB_NOMEM);
        hfsbi_feed_detach(&r.reader);
    }
    hfsbi_program_release(job);
    hfsbi_program_release(again);
    hfsb_tools_close(tools);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(without_memory);
}

/* A repeat without memory is not taken for another command. */
static void repeat_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsbi_job     *job = NULL, *again = NULL;
    hfsbi_job_spec spec;
    hfsb_status    st;
    T_CHECK(start_as(tools, "twice", "echo out", &job, NULL) == HFSB_OK);
    spec = words(&alloc, "/bin/sh", "-c", "echo out", NULL);
    (void)hfsb_buf_append(&spec.id, HFSB_LIT("twice"));
    st = hfsbi_program_start(tools, &spec, 0, &again, NULL);
    hfsbi_job_spec_free(&spec);
    T_CHECK(st == HFSB_OK || (heap->fail_at && st == HFSB_NOMEM));
    T_CHECK((st == HFSB_OK) == (again != NULL));
    hfsbi_program_release(again);
    TOLD(told(tools, job), "1<out\n>2=0,0;3.");
    hfsb_tools_close(tools);
}

static void a_repeat_without_memory_is_not_refused(void) {
    t_each_allocation_fails(repeat_without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(words_stay_apart);
    TT_RUN(the_environment_may_be_bare);
    TT_RUN(it_begins_where_the_tools_do);
    TT_RUN(events_of_two_streams_are_numbered);
    TT_RUN(a_late_reader_learns_what_is_gone);
    TT_RUN(one_that_cannot_start_says_why);
    TT_RUN(one_waits_for_a_place);
    TT_RUN(one_that_waits_may_never_run);
    TT_RUN(all_who_wait_hear_of_the_start);
    TT_RUN(a_callback_may_let_go_of_its_program);
    TT_RUN(the_same_id_runs_once);
    TT_RUN(another_setting_is_another_command);
    TT_RUN(an_id_that_does_not_fit_is_refused);
    TT_RUN(an_id_is_refused_after_its_record_was_dropped);
    TT_RUN(programs_are_found);
    TT_RUN(input_reaches_it);
    TT_RUN(room_for_input_is_awaited);
    TT_RUN(signals_reach_it);
    TT_RUN(it_may_have_a_terminal);
    TT_RUN(a_slow_reader_loses_nothing);
    TT_RUN(a_stuck_reader_does_not_keep_what_was_killed);
    TT_RUN(a_timeout_ends_it);
    TT_RUN(old_programs_are_dropped);
    TT_RUN(a_released_program_goes_on);
    TT_RUN(the_failure_outlives_the_text);
    TT_RUN(it_is_a_job_like_others);
    TT_RUN(the_journal_has_it);
    TT_RUN(checkpoints_see_it);
    TT_RUN(closing_ends_all);
    TT_RUN(each_allocation_fails_cleanly);
    TT_RUN(a_repeat_without_memory_is_not_refused);
    return TT_END();
}
