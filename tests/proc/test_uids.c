/* test_uids.c - sandboxes that are users of their own: taking uids, commands
   and tasks with the rights of another user, and the end of all processes of
   one. As root only. */
#include "../support/t_loop.h"
#include "../support/t_proc.h"
#include "../support/t_tools.h"

#ifdef HFSBI_LINUX
#include <grp.h>
#include <sys/prctl.h>
#if defined(__has_include) && defined(SYS_setfsuid) && \
    !defined(SYS_setfsuid32)
#if __has_include(<linux/seccomp.h>) && __has_include(<linux/filter.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#define HAS_SECCOMP
#endif
#endif

static hfsbi_uids uids; /* of the current directory */

static unsigned take(void) {
    hfsb_err err = HFSB_INIT;
    unsigned uid = 0;
    if (hfsbi_uids_take(&uids, &uid, &err) != HFSB_OK) printf("%s\n", err.msg);
    T_CHECK(uid >= 20000 && uid < 65000);
    return uid;
}

static hfsb_status open_uids(hfsbi_uids *out, const char *dir,
                             const char *setting, hfsb_err *err) {
    hfsb_alloc alloc = tt_alloc();
    return hfsbi_uids_open(out, dir, hfsb_cstr(setting), &alloc, err);
}

static bool same(const hfsb_buf *out, const char *want) {
    if (hfsb_str_equal(hfsb_buf_str(out), hfsb_cstr(want))) return true;
    printf("not %s, but %s\n", want, out->len ? out->ptr : "");
    return false;
}

/* ---- taking ---- */

static void a_uid_is_taken_once(void) {
    hfsbi_uids other;
    unsigned   a = take(), b = take(), c = 0;
    T_CHECK(a != b);
    T_CHECK(open_uids(&other, ".", "1", NULL) == HFSB_OK && other.on);
    T_CHECK(hfsbi_uids_take(&other, &c, NULL) == HFSB_OK);
    T_CHECK(c && c != a && c != b);
    hfsbi_uids_put(&uids, b);
    T_CHECK(take() != b); /* all others come first */
    hfsbi_uids_put(&uids, a);
    hfsbi_uids_put(&uids, c);
    hfsbi_uids_put(&uids, 0);
}

/* Writes into the table which uid is next. */
static void set_next(unsigned uid) {
    int fd = open(uids.table, O_WRONLY);
    T_CHECK(pwrite(fd, &uid, sizeof uid, 0) == (ssize_t)sizeof uid);
    (void)close(fd);
}

static void uids_in_use_are_not_taken(void) {
    hfsb_proc_opts o = t_quick_opts();
    unsigned       a = take(), b, c;
    hfsb_proc     *proc;
    hfsbi_uids_put(&uids, a);
    o.uid = a;
    proc = t_start(&o, "sleep 60", NULL);
    set_next(a);
    b = take(); /* a process has a */
    T_CHECK(b != a);
    hfsb_proc_close(proc);
    hfsbi_uids_put(&uids, b);
    tt_put("left", HFSB_LIT(""));
    T_CHECK(lchown("left", b, b) == 0);
    T_CHECK(open_uids(&uids, ".", "1", NULL) == HFSB_OK);
    set_next(b);
    c = take(); /* a file here belongs to b */
    T_CHECK(c != b);
    T_CHECK(unlink("left") == 0);
    hfsbi_uids_put(&uids, b);
    hfsbi_uids_put(&uids, c);
    set_next(7); /* nonsense */
    a = take();
    hfsbi_uids_put(&uids, a);
    set_next(64999);
    a = take();
    b = take();
    T_CHECK(a != b);
    hfsbi_uids_put(&uids, a);
    hfsbi_uids_put(&uids, b);
}

static void the_setting_decides(void) {
    hfsbi_uids other;
    hfsb_err   err = HFSB_INIT;
    unsigned   uid = 1;
    T_CHECK(open_uids(&other, ".", "0", &err) == HFSB_OK && !other.on);
    T_CHECK(hfsbi_uids_take(&other, &uid, &err) == HFSB_OK && uid == 0);
    T_CHECK(hfsbi_uid_end(0));
    T_CHECK(open_uids(&other, ".", "yes", &err) == HFSB_ARG);
    T_STR(hfsb_cstr(err.msg), "HFSB_SANDBOX_UIDS must be 0 or 1.");
    T_CHECK(mkdir("closed", 0700) == 0 && mkdir("closed/in", 0755) == 0);
    T_CHECK(open_uids(&other, "closed/in", "", &err) == HFSB_OK && !other.on);
    T_CHECK(open_uids(&other, "closed/in", "1", &err) == HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "chmod o+x") != NULL);
    T_CHECK(rmdir("closed/in") == 0 && rmdir("closed") == 0);
}

/* As in gVisor: programs can be run as another user, but a thread cannot work
   on files as one. */
static void lack_setfsuid(void) {
#ifdef HAS_SECCOMP
    struct sock_filter lines[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_setfsuid},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog filter = {TT_COUNT(lines), lines};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0L, 0L) == 0)
        return;
#endif
    _exit(77);
}

static void no_uid_where_threads_cannot_have_it(void) {
    hfsbi_uids other;
    hfsb_err   err = HFSB_INIT;
    unsigned   uid = 0;
    int        status = 0;
    pid_t      pid = fork();
    if (pid == 0) {
        lack_setfsuid();
        status = open_uids(&other, ".", "1", &err) != HFSB_REFUSED;
        if (!strstr(err.msg, "work on files")) status |= 2;
        if (open_uids(&other, ".", "", &err) != HFSB_OK || other.on)
            status |= 4;
        if (hfsbi_uids_take(&uids, &uid, &err) != HFSB_REFUSED || uid)
            status |= 8;
        _exit(status);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) t_skipped++;
    else T_CHECK(WEXITSTATUS(status) == 0);
}

/* With this flag of the process a thread keeps what root may do with files. */
static void no_uid_where_threads_keep_capabilities(void) {
    hfsbi_uids other;
    hfsb_err   err = HFSB_INIT;
    unsigned   uid = 0;
    int        status = 0;
    pid_t      pid = fork();
    if (pid == 0) {
        if (prctl(28 /* PR_SET_SECUREBITS */, 4L /* NO_SETUID_FIXUP */, 0L, 0L,
                  0L) != 0)
            _exit(77);
        status = open_uids(&other, ".", "1", &err) != HFSB_REFUSED;
        if (!strstr(err.msg, "work on files")) status |= 2;
        if (hfsbi_uids_take(&uids, &uid, &err) != HFSB_REFUSED || uid)
            status |= 4;
        _exit(status);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) t_skipped++;
    else T_CHECK(WEXITSTATUS(status) == 0);
}

static void a_thread_has_the_rights_of_a_user_and_its_own_again(void) {
    unsigned uid = take();
    T_CHECK(mkdir("private", 0700) == 0);
    T_CHECK(hfsbi_thread_set_uid(uid));
    T_CHECK(open("private/x", O_WRONLY | O_CREAT, 0600) < 0);
    T_CHECK(hfsbi_thread_set_uid(0));
    T_CHECK(rmdir("private") == 0);
    T_CHECK(!hfsbi_thread_set_uid(~0u) && hfsbi_thread_set_uid(0));
    hfsbi_uids_put(&uids, uid);
}

static void without_memory_none_is_taken(void) {
    unsigned uid = 0;
    size_t   k, all;
    tt_faults(0, false);
    T_CHECK(hfsbi_uids_take(&uids, &uid, NULL) == HFSB_OK);
    hfsbi_uids_put(&uids, uid);
    all = tt_allocations();
    for (k = 1; k <= all; k++) {
        hfsb_err err = HFSB_INIT;
        tt_faults(k, true);
        T_CHECK(hfsbi_uids_take(&uids, &uid, &err) == HFSB_NOMEM && !uid);
        T_CHECK(err.code == HFSB_NOMEM && err.msg[0]);
    }
    tt_faults(0, false);
}

/* ---- commands ---- */

static void a_command_is_another_user(void) {
    static const char script[] =
        "id -u; id -g; id -G; grep -E '^(CapEff|CapPrm|NoNewPrivs)' "
        "/proc/self/status; echo \"$(stat -c %u:%a \"$PWD\")\"";
    hfsb_proc_opts o = t_quick_opts();
    hfsb_buf       out = HFSB_INIT;
    unsigned       uid = take();
    char           want[200];
    int            terminal;
    T_CHECK(mkdir("home", 0700) == 0 && lchown("home", uid, uid) == 0);
    o.uid = uid;
    o.work_dir = "home";
    for (terminal = 0; terminal < 2; terminal++) {
        const char *n = terminal ? "\r\n" : "\n";
        hfsb_buf_truncate(&out, 0);
        o.cols = o.rows = terminal ? 24 : 0;
        T_CHECK(t_run(&o, script, &out).exit_code == 0);
        snprintf(want, sizeof want,
                 "%u%s%u%s%u%sCapPrm:\t0000000000000000%s"
                 "CapEff:\t0000000000000000%sNoNewPrivs:\t1%s%u:700%s",
                 uid, n, uid, n, uid, n, n, n, n, uid, n);
        T_CHECK(same(&out, want));
    }
    hfsb_buf_truncate(&out, 0); /* it may open its terminal by name */
    T_CHECK(t_run(&o, "stat -c %u $(tty); echo x > $(tty)", &out).exit_code ==
            0);
    snprintf(want, sizeof want, "%u\r\nx\r\n", uid);
    T_CHECK(same(&out, want));
    o.cols = o.rows = 0;
    hfsb_buf_free(&out);
    T_CHECK(rmdir("home") == 0);
    hfsbi_uids_put(&uids, uid);
}

static void a_user_has_no_more_rights_than_its_own(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_err       err = HFSB_INIT;
    hfsb_proc     *proc = NULL;
    unsigned       uid = take();
    T_CHECK(mkdir("closed", 0700) == 0);
    tt_put("closed/f", HFSB_LIT("secret"));
    o.uid = uid;
    T_CHECK(t_run(&o, "cat closed/f || kill -0 $PPID", NULL).exit_code != 0);
    o.command = HFSB_LIT("pwd");
    o.work_dir = "closed";
    T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_DENIED && !proc);
    T_CHECK(strstr(err.msg, "working directory") != NULL);
    T_CHECK(unlink("closed/f") == 0 && rmdir("closed") == 0);
    hfsbi_uids_put(&uids, uid);
}

static void limits_count_the_processes_of_one_user(void) {
    hfsb_confine_opts c = HFSB_INIT;
    hfsb_proc_opts    o = t_quick_opts();
    hfsb_confine     *confine = NULL;
    unsigned          uid = take();
    c.max_processes = 4;
    c.other_users = true;
    T_CHECK(hfsb_confine_open(&c, &confine, NULL) == HFSB_OK);
    o.confine = confine;
    o.uid = uid;
    T_CHECK(t_run(&o, "sleep 0.01 & sleep 0.01 & wait", NULL).exit_code == 0);
    T_CHECK(t_run(&o,
                  "for i in 1 2 3 4 5 6; do sleep 1 2>/dev/null & done 2>&1; "
                  "wait",
                  NULL)
                .exit_code != 0);
    hfsb_confine_close(confine);
    hfsbi_uids_put(&uids, uid);
}

/* ---- the end of a user ---- */

/* A process that never stays: each copy forks the next one and exits. */
static void hop(unsigned uid) {
    if (fork() != 0) return;
    (void)setsid();
    if (!hfsbi_uid_enter(uid)) _exit(1);
    for (;;)
        if (fork() != 0) _exit(0);
}

static void all_processes_of_a_user_end(void) {
    hfsb_proc_opts o = t_quick_opts(), o2 = o;
    unsigned       a = take(), b = take();
    hfsb_proc     *left, *other;
    hfsb_buf       text = HFSB_INIT;
    int            i;
    o.uid = a;
    o2.uid = b;
    other = t_start(&o2, "sleep 60", NULL);
    tt_with_nap("(setsid env -i sleep @ >/dev/null 2>&1 &) ; "
                "(setsid sh -c 'trap \"\" TERM HUP; sleep @; sleep @' "
                ">/dev/null 2>&1 &) ; sleep 60",
                &text);
    left = t_start(&o, text.ptr, NULL);
    for (i = 0; i < 1000 && tt_running(tt_nap()) < 2; i++) t_sleep(10);
    T_CHECK(tt_running(tt_nap()) >= 2);
    if (!T_SANITIZED) hop(a);
    T_CHECK(hfsbi_uid_end(a));
    T_CHECK(tt_running(tt_nap()) == 0);
    T_CHECK(!t_runs(hfsb_proc_status(left).pid));
    T_CHECK(t_runs(hfsb_proc_status(other).pid)); /* of another user */
    T_CHECK(hfsbi_uid_end(a));
    hfsb_proc_close(left);
    hfsb_proc_close(other);
    hfsb_buf_free(&text);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    hfsbi_uids_put(&uids, a);
    hfsbi_uids_put(&uids, b);
}

/* Stops all processes that it may, again and again. */
static pid_t stopper(unsigned uid) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    if (!hfsbi_uid_enter(uid)) _exit(1);
    for (;;) (void)kill(-1, SIGSTOP);
}

static void a_user_cannot_hold_up_the_host(void) {
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_proc_result r = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    unsigned         uid = take();
    long long        began = hfsb_clock_ms();
    pid_t            pid = stopper(uid);
    o.uid = uid;
    o.timeout_ms = 300;
    o.command = HFSB_LIT("sleep 60");
    if (hfsb_proc_run(&o, NULL, NULL, &r, &err) == HFSB_OK)
        T_CHECK(r.timed_out || r.signal);
    else T_CHECK(strstr(err.msg, "Cannot run") != NULL);
    T_CHECK(hfsb_clock_ms() - began < t_patience(1000));
    T_CHECK(hfsbi_uid_end(uid));
    T_CHECK(waitpid(pid, NULL, 0) == pid);
    hfsbi_uids_put(&uids, uid);
}

/* Signals all other processes of its user, again and again, in some threads;
   its first one has ended. */
static void *fight(void *number) {
    for (;;) (void)kill(-1, *(int *)number);
    return NULL;
}

static pid_t fighter(unsigned uid, int number) {
    int       ready[2], i;
    pthread_t thread;
    char      byte;
    pid_t     pid;
    T_CHECK(pipe(ready) == 0);
    pid = fork();
    if (pid == 0) {
        if (!hfsbi_uid_enter(uid)) _exit(1);
        for (i = 0; i < 4; i++)
            if (pthread_create(&thread, NULL, fight, &number) != 0) _exit(1);
        (void)close(ready[0]);
        if (write(ready[1], "", 1) != 1) _exit(1);
        (void)close(ready[1]);
        pthread_exit(NULL);
    }
    (void)close(ready[1]);
    T_CHECK(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    return pid;
}

/* Its first thread may need a moment to end. */
static bool looks_ended(pid_t pid) {
    int i;
    for (i = 0; i < 1000 && t_runs(pid); i++) t_sleep(5);
    return !t_runs(pid);
}

/* Where a helper can have a real uid that no user has: not in every
   container. */
static bool helpers_are_safe(void) {
    bool safe = seteuid((uid_t)0xF0004E20u) == 0;
    T_CHECK(seteuid(0) == 0);
    if (!safe) t_skip("few uids are mapped");
    return safe;
}

static void a_user_cannot_fight_its_end(void) {
    static const int numbers[] = {SIGSTOP, SIGKILL};
    size_t           i, n = T_SANITIZED ? 2 : 20;
    if (!helpers_are_safe()) return;
    for (i = 0; i < n; i++) {
        unsigned uid = take();
        pid_t    pid = fighter(uid, numbers[i % 2]);
        T_CHECK(looks_ended(pid) && waitpid(pid, NULL, WNOHANG) == 0);
        T_CHECK(hfsbi_uid_end(uid));
        T_CHECK(waitpid(pid, NULL, WNOHANG) == pid);
        (void)kill(pid, SIGKILL);
        hfsbi_uids_put(&uids, uid);
    }
}

/* The first uid is one of those that are tried at the start. */
static void a_user_cannot_switch_uids_off(void) {
    hfsbi_uids other;
    unsigned   uid;
    pid_t      pid;
    int        i;
    set_next(20000);
    uid = take();
    if (uid == 20000) {
        pid = fighter(uid, SIGKILL);
        for (i = 0; i < 20; i++)
            T_CHECK(open_uids(&other, ".", "", NULL) != HFSB_OK || other.on);
        (void)kill(pid, SIGKILL);
        T_CHECK(waitpid(pid, NULL, 0) == pid);
    } else t_skip("another test has the first uid");
    hfsbi_uids_put(&uids, uid);
}

/* ---- tasks ---- */

typedef struct visit {
    hfsbi_task  task; /* first */
    bool        made, read, done;
    const char *name;
} visit;

static void visit_run(hfsbi_task *task) {
    visit *v = (visit *)(void *)task;
    int    fd = open(v->name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    v->made = fd >= 0;
    if (fd >= 0) (void)close(fd);
    fd = open("secret", O_RDONLY);
    v->read = fd >= 0;
    if (fd >= 0) (void)close(fd);
}

static void visit_done(hfsbi_task *task) {
    ((visit *)(void *)task)->done = true;
}

static visit visit_as(hfsbi_loop *loop, unsigned uid, const char *name) {
    visit v;
    memset(&v, 0, sizeof v);
    v.task.run = visit_run;
    v.task.done = visit_done;
    v.task.rights.uid = uid;
    v.name = name;
    hfsbi_loop_work(loop, &v.task);
    while (!v.done) hfsbi_loop_turn(loop, 100);
    return v;
}

static unsigned owner_of(const char *name) {
    struct stat st = HFSB_INIT;
    T_CHECK(stat(name, &st) == 0 && st.st_uid == st.st_gid);
    return (unsigned)st.st_uid;
}

static void tasks_have_the_rights_of_their_user(void) {
    hfsb_alloc alloc = HFSB_INIT;
    unsigned   uid = take(), threads;
    gid_t      extra = 4711;
    T_CHECK(setgroups(1, &extra) == 0);
    tt_put("secret", HFSB_LIT("x"));
    T_CHECK(chmod("secret", 0640) == 0 && lchown("secret", 0, extra) == 0);
    T_CHECK(mkdir("d", 0700) == 0 && lchown("d", uid, uid) == 0);
    for (threads = 0; threads < 2; threads++) {
        hfsbi_loop *loop = NULL;
        visit       v;
        T_CHECK(hfsbi_loop_open(&alloc, threads, false, &loop, NULL) ==
                HFSB_OK);
        hfsbi_loop_lock(loop);
        v = visit_as(loop, uid, "d/theirs");
        T_CHECK(v.made && owner_of("d/theirs") == uid);
        T_CHECK(!threads || !v.read); /* its group is not the user's */
        v = visit_as(loop, 0, "d/ours");
        T_CHECK(v.made && owner_of("d/ours") == 0 && v.read);
        v = visit_as(loop, uid, "refused");
        T_CHECK(!v.made && access("refused", F_OK) != 0);
        hfsbi_loop_unlock(loop);
        hfsbi_loop_close(loop);
        T_CHECK(unlink("d/theirs") == 0 && unlink("d/ours") == 0);
    }
    T_CHECK(setgroups(0, NULL) == 0);
    T_CHECK(unlink("secret") == 0 && rmdir("d") == 0);
    hfsbi_uids_put(&uids, uid);
}

static void run_all(void) {
    hfsb_err err = HFSB_INIT;
    if (geteuid() != 0) {
        t_skip("not root");
        return;
    }
    if (open_uids(&uids, ".", "1", &err) != HFSB_OK) {
        t_skip(err.msg);
        return;
    }
    TT_RUN(a_uid_is_taken_once);
    TT_RUN(uids_in_use_are_not_taken);
    TT_RUN(the_setting_decides);
    TT_RUN(no_uid_where_threads_cannot_have_it);
    TT_RUN(no_uid_where_threads_keep_capabilities);
    TT_RUN(a_thread_has_the_rights_of_a_user_and_its_own_again);
    TT_RUN(without_memory_none_is_taken);
    TT_RUN(a_command_is_another_user);
    TT_RUN(a_user_has_no_more_rights_than_its_own);
    TT_RUN(limits_count_the_processes_of_one_user);
    TT_RUN(all_processes_of_a_user_end);
    TT_RUN(a_user_cannot_hold_up_the_host);
    TT_RUN(a_user_cannot_fight_its_end);
    TT_RUN(a_user_cannot_switch_uids_off);
    TT_RUN(tasks_have_the_rights_of_their_user);
}

#else

static void run_all(void) {
    hfsbi_uids uids;
    hfsb_alloc alloc = tt_alloc();
    T_CHECK(hfsbi_uids_open(&uids, ".", HFSB_LIT(""), &alloc, NULL) ==
            HFSB_OK);
    T_CHECK(!uids.on);
    T_CHECK(hfsbi_uids_open(&uids, ".", HFSB_LIT("1"), &alloc, NULL) ==
            HFSB_REFUSED);
    T_CHECK(hfsbi_uid_end(0) && !hfsbi_uid_end(20000));
}

#endif

int main(void) {
    tt_begin();
    run_all();
    return TT_END();
}
