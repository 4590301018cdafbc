/* test_confine.c - confined commands: each mechanism by itself and together.

   What this machine cannot do is skipped: no Landlock, no seccomp (other
   architectures, emulators), namespaces refused. */
#include "../support/t_proc.h"

#ifdef HFSBI_LINUX

static char top[] = "/tmp/hfsb-confine-XXXXXX"; /* top/root, top/tmp,
                                                   top/outside */
static char              root_path[64], out_path[64], tmp_path[64];
static hfsb_confine_opts opts;
static hfsbi_confine_how how;
static bool              can_landlock, can_seccomp, can_mount;

static void put(const char *dir, const char *name, const char *text) {
    char  path[256];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    T_CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
}

static bool is(const char *dir, const char *name, const char *text) {
    char  path[256], got[256] = "";
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    if (!f) return text == NULL;
    if (!fgets(got, sizeof got, f)) got[0] = '\0';
    fclose(f);
    return text && strcmp(got, text) == 0;
}

static void begin(hfsb_confine_level level) {
    static const char *dirs[1];
    memset(&opts, 0, sizeof opts);
    memset(&how, 0, sizeof how);
    dirs[0] = root_path;
    opts.level = level;
    opts.dirs = dirs;
    opts.dir_count = 1;
}

/* Runs a command as opts and how say; its output with what the guard found.
   The exit code, or 200 when it could not be started. */
static int run(const char *command, hfsb_buf *out) {
    hfsb_confine    *confine = NULL;
    hfsbi_guard     *guard;
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result r = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = hfsbi_confine_open(&opts, &how, &confine, &err);
    hfsb_buf_truncate(out, 0);
    if (st == HFSB_OK) {
        guard = hfsbi_guard_open(confine);
        o.command = hfsb_cstr(command);
        o.work_dir = root_path;
        o.merge_stderr = true;
        o.confine = confine;
        o.timeout_ms = 30000;
        st = hfsb_proc_run(&o, out, NULL, &r, &err);
        hfsbi_guard_check(guard, NULL, NULL, out);
        hfsbi_guard_close(guard);
    }
    hfsb_confine_close(confine);
    if (st != HFSB_OK) printf("%s: %s\n", command, err.msg);
    if (st != HFSB_OK) return 200;
    return r.end == HFSB_PROC_EXITED ? r.exit_code : 128 + r.signal;
}

/* The exit code is `code`, and the output contains `part`. */
static void gives(int line, const char *command, int code, const char *part) {
    hfsb_buf out = HFSB_INIT;
    int      got = run(command, &out);
    bool     ok = got == code && out.status == HFSB_OK &&
              hfsb_str_find(hfsb_buf_str(&out), hfsb_cstr(part)) != HFSB_NPOS;
    if (!ok)
        printf("line %d: %s: %d instead of %d: %s\n", line, command, got, code,
               out.ptr ? out.ptr : "");
    T_CHECK(ok);
    hfsb_buf_free(&out);
}
#define GIVES(command, code, part) gives(__LINE__, command, code, part)

/* True for a program that can be found. */
static bool have(const char *name) {
    char line[100];
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", name);
    return system(line) == 0;
}

/* ---- levels ---- */

static void write_level_writes_only_in_its_places(void) {
    begin(HFSB_CONFINE_WRITE);
    GIVES("echo in > a && cat a", 0, "in");
    GIVES("echo t > \"$TMPDIR/t\" && rm \"$TMPDIR/t\"", 0, "");
    GIVES("cat ../outside/file", 0, "old");
    GIVES("echo new > ../outside/file", 2, "cannot create");
    GIVES("mkdir ../outside/d", 1, "");
    GIVES("rm -f ../outside/file", 1, "");
    GIVES("mv ../outside/file stolen", 1, "");
    GIVES("ln -s ../outside/file link && echo new > link", 2, "");
    GIVES(": > /dev/null && head -c 1 /dev/urandom | wc -c", 0, "1");
    T_CHECK(is(out_path, "file", "old"));
}

static void strict_level_reads_only_its_places(void) {
    begin(HFSB_CONFINE_STRICT);
    GIVES("echo in > a && cat a && ls /usr > /dev/null", 0, "in");
    GIVES("cat ../outside/file", 1, "Permission denied");
    GIVES("ls ../outside", 2, "Permission denied");
    GIVES("ls /root /home", 2, "Permission denied");
}

static void named_folders_are_added(void) {
    const char *out = out_path, *missing = "/no/such/folder";
    hfsb_err    err = HFSB_INIT;
    hfsb_confine *c = NULL;
    begin(HFSB_CONFINE_WRITE);
    opts.allow_write = &out;
    opts.allow_write_count = 1;
    GIVES("echo x > ../outside/more && rm ../outside/more", 0, "");
    begin(HFSB_CONFINE_STRICT);
    opts.allow_read = &out;
    opts.allow_read_count = 1;
    GIVES("cat ../outside/file", 0, "old");
    GIVES("echo x > ../outside/file", 2, "");
    opts.allow_read = &missing;
    T_CHECK(hfsb_confine_open(&opts, &c, &err) == HFSB_NOT_FOUND && !c);
    T_CHECK(strcmp(err.msg, "Cannot allow commands to read /no/such/folder: "
                            "no such file or directory") == 0);
}

static void none_only_limits(void) {
    struct rlimit core;
    core.rlim_cur = core.rlim_max = 1000000;
    (void)setrlimit(RLIMIT_CORE, &core); /* unless it is 0 for good */
    begin(HFSB_CONFINE_NONE);
    GIVES("echo x > ../outside/more && rm ../outside/more", 0, "");
    GIVES("ulimit -Sc; ulimit -Hc", 0, "0\n0\n");
    GIVES("test $(cat /proc/self/oom_score_adj) -ge 500", 0, "");
    GIVES("grep NoNewPrivs /proc/self/status", 0, "0");
}

/* ---- one mechanism at a time ---- */

static void landlock_alone_confines(void) {
    int abi;
    for (abi = 1; abi <= 7; abi++) {
        begin(HFSB_CONFINE_WRITE);
        how.no_spaces = true;
        how.max_abi = abi;
        GIVES("echo in > a && cat a", 0, "in");
        GIVES("echo new > ../outside/file", 2, "Permission denied");
        GIVES("mkdir -p d && mv a d/a && cat d/a", 0, "in");
        T_CHECK(is(out_path, "file", "old"));
    }
}

static void landlock_stops_by_version(void) {
    int abi = hfsbi_landlock_abi();
    begin(HFSB_CONFINE_WRITE);
    how.no_spaces = true;
    if (abi >= 3) {
        GIVES("perl -e 'truncate \"../outside/file\", 0' || true", 0, "");
        T_CHECK(is(out_path, "file", "old"));
    }
    if (abi >= 6) {
        char command[64];
        snprintf(command, sizeof command, "kill -0 %ld", (long)getpid());
        GIVES(command, 1, "Operation not permitted");
        how.max_abi = 5;
        GIVES(command, 0, "");
    }
}

static void mounts_alone_confine(void) {
    begin(HFSB_CONFINE_WRITE);
    opts.if_possible = true;
    how.max_abi = -1;
    GIVES("echo in > a && cat a", 0, "in");
    GIVES("echo new > ../outside/file", 2, "Read-only file system");
    GIVES("chmod 600 ../outside/file", 1, "Read-only file system");
    GIVES("touch ../outside/file", 1, "Read-only file system");
    T_CHECK(is(out_path, "file", "old"));
}

static void seccomp_refuses_calls(void) {
    begin(HFSB_CONFINE_WRITE);
    how.no_spaces = true;
    if (have("unshare"))
        GIVES("unshare -U true", 1, "Operation not permitted");
    GIVES("grep -E 'Seccomp:|NoNewPrivs' /proc/self/status", 0, "2");
}

/* What the filter answers to a call, as the kernel would compute it; ~0u when
   the program is invalid. words: number, architecture, two of the address,
   then each argument as two. */
static unsigned filtered(const hfsbi_seccomp *f, const unsigned *words) {
    unsigned value = 0;
    size_t   at = 0;
    while (at < f->count) {
        const hfsbi_bpf_step *step = &f->steps[at++];
        bool                  yes = false;
        switch (step->code) {
        case 0x06: return step->value;
        case 0x20: value = words[step->value / 4]; continue;
        case 0x54: value &= step->value; continue;
        case 0x15: yes = value == step->value; break;
        case 0x35: yes = value >= step->value; break;
        case 0x45: yes = (value & step->value) != 0; break;
        default: return ~0u;
        }
        at += yes ? step->jump_true : step->jump_false;
    }
    return ~0u;
}

typedef struct filter_case {
    long     number;
    unsigned arg, value; /* of one argument; the others are 0 */
    int      code;       /* an errno; 0: allowed */
} filter_case;

/* The filter of this architecture, also where an emulator has no seccomp. */
static void filters_answer_by_number_and_argument(void) {
    static const filter_case cases[] = {
        {SYS_mount, 0, 0, EPERM},        {SYS_setns, 0, 0, EPERM},
        {SYS_bpf, 0, 0, EPERM},          {SYS_reboot, 0, 0, EPERM},
        {SYS_keyctl, 0, 0, EPERM},       {SYS_init_module, 0, 0, EPERM},
        {SYS_finit_module, 0, 0, EPERM}, {SYS_clock_settime, 0, 0, EPERM},
        {425, 0, 0, EPERM},              {442, 0, 0, EPERM},
        {467, 0, 0, EPERM},              {435, 0, 0, ENOSYS},
        {SYS_read, 0, 0, 0},             {SYS_openat, 0, 0, 0},
        {SYS_execve, 0, 0, 0},           {SYS_ptrace, 0, 16, 0},
        {SYS_clone, 0, 0x10000000, EPERM}, {SYS_clone, 0, 0x3D0F00, 0},
        {SYS_unshare, 0, 0x20000, EPERM},  {SYS_unshare, 0, 0x80, EPERM},
        {SYS_unshare, 0, 0x400, 0},      {SYS_ioctl, 1, 0x5412, EPERM},
        {SYS_ioctl, 1, 0x5401, 0},       {SYS_socket, 0, AF_INET, EACCES},
        {SYS_socket, 0, 17, EACCES},     {SYS_socket, 0, AF_UNIX, 0},
        {500, 0, 0, 0}};
    hfsbi_seccomp f = HFSB_INIT;
    hfsbi_reach   net = HFSB_INIT;
    unsigned      words[16], arch;
    size_t        i;
    net.mode = HFSBI_REACH_OFF;
    if (!hfsbi_seccomp_build(&f, &net, true)) {
        t_skip("no filters for this architecture");
        return;
    }
    T_CHECK(f.count > 4 && f.count <= HFSBI_SECCOMP_STEPS);
    arch = f.steps[1].value;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned want = cases[i].code ? 0x50000u | (unsigned)cases[i].code
                                      : 0x7FFF0000u;
        memset(words, 0, sizeof words);
        words[0] = (unsigned)cases[i].number;
        words[1] = arch;
        words[4 + 2 * cases[i].arg] = cases[i].value;
        T_CHECK(filtered(&f, words) == want);
        words[1] = 0x40000003u; /* i386 */
        T_CHECK(filtered(&f, words) == (0x50000u | ENOSYS));
        words[1] = arch;
        words[0] |= 0x40000000u; /* x32 */
#ifdef __x86_64__
        T_CHECK(filtered(&f, words) == (0x50000u | ENOSYS));
#endif
    }
}

static void capabilities_do_not_survive(void) {
    begin(HFSB_CONFINE_WRITE);
    GIVES("grep CapEff /proc/self/status", 0,
          getuid() == 0 ? "00000000000024fb" : "0000000000000000");
}

/* As some container engines leave them: the bounding set does not limit
   inheritable capabilities, and ambient ones need no root. */
static void inherited_capabilities_do_not_survive(void) {
    unsigned head[2] = {0x20080522u, 0}, caps[6], more[6];
    if (syscall(SYS_capget, head, caps) != 0) return;
    memcpy(more, caps, sizeof more);
    more[2] = caps[1]; /* all that is permitted */
    more[5] = caps[4];
    T_CHECK(syscall(SYS_capset, head, more) == 0);
    begin(HFSB_CONFINE_WRITE);
    how.no_spaces = true;
    GIVES("grep CapPrm /proc/self/status", 0,
          getuid() == 0 ? "00000000000024fb" : "0000000000000000");
    GIVES("grep CapInh /proc/self/status", 0, "0000000000000000");
    T_CHECK(syscall(SYS_capset, head, caps) == 0);
}

/* A command can replace a folder in a place to write by a symlink. Named by a
   variable, it must not become a place of the next host. */
static void planted_places_are_not_added(void) {
    static const char *const names[] = {"HF_HOME", "XDG_CACHE_HOME", "TMPDIR"};
    char                     path[256], old[256];
    size_t                   i;
    T_CHECK(symlink(out_path, "root/planted") == 0);
    for (i = 0; i < 2 * (sizeof names / sizeof *names); i++) {
        const char *name = names[i / 2], *was = getenv(name);
        snprintf(old, sizeof old, "%s", was ? was : "");
        snprintf(path, sizeof path, "%s/planted%s", root_path,
                 i % 2 ? "/deeper" : "");
        T_CHECK(setenv(name, path, 1) == 0);
        begin(HFSB_CONFINE_WRITE);
        GIVES("mkdir -p ../outside/deeper/x", 1, "");
        T_CHECK((was ? setenv(name, old, 1) : unsetenv(name)) == 0);
    }
    T_CHECK(unlink("root/planted") == 0);
}

static void the_network_is_limited(void) {
    static const char udp[] =
        "exec 3<>/dev/udp/127.0.0.1/9 && echo sent >&3";
    char command[256];
    snprintf(command, sizeof command, "bash -c '%s'", udp);
    begin(HFSB_CONFINE_WRITE);
    if (!have("bash")) {
        t_skip("no bash");
        return;
    }
    GIVES(command, 0, "");
    opts.net = "off";
    GIVES(command, 1, "");
    opts.net = "443";
    if (hfsbi_landlock_abi() >= 4) GIVES(command, 1, "");
    opts.net = "443,53";
    if (hfsbi_landlock_abi() >= 4) GIVES(command, 0, "");
    opts.net = "loopback";
    if (can_mount) GIVES(command, 0, "");
    if (can_mount) GIVES("cat /proc/net/dev | wc -l", 0, "3");
}

static void wrong_networks_are_refused(void) {
    static const char *const list[] = {"", "of", "0", "65536", ",80", "80,x"};
    hfsb_confine *c = NULL;
    hfsb_err      err = HFSB_INIT;
    size_t        i;
    begin(HFSB_CONFINE_WRITE);
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        opts.net = list[i];
        if (hfsb_confine_open(&opts, &c, &err) != HFSB_ARG)
            printf("%s\n", list[i]);
        T_CHECK(err.code == HFSB_ARG && !c);
        hfsb_confine_close(c);
    }
    begin(HFSB_CONFINE_NONE);
    opts.net = "off";
    T_CHECK(hfsb_confine_open(&opts, &c, &err) == HFSB_ARG && !c);
}

static void limits_hold(void) {
    begin(HFSB_CONFINE_NONE);
    opts.max_file_size = 100000;
    opts.max_cpu = 1;
    opts.max_memory = 200 * 1000 * 1000;
    GIVES("ulimit -f; ulimit -t; ulimit -d", 0, "195\n1\n195312\n");
    GIVES("head -c 200000 /dev/zero > big; ls -l big", 0, " 100000 ");
    GIVES("while :; do :; done", 128 + SIGXCPU, "");
    GIVES("trap '' XCPU; while :; do :; done", 128 + SIGKILL, "");
    if (getuid() == 0) return;
    opts.max_processes = 1;
    GIVES("(:) && echo forked", 2, "");
}

/* ---- what runs later as the person ---- */

static void guarded_files_cannot_change(void) {
    begin(HFSB_CONFINE_WRITE);
    T_CHECK(system("mkdir -p root/.git/hooks root/.vscode") == 0);
    put(root_path, ".git/hooks/pre-commit", "mine");
    put(root_path, ".bashrc", "mine");
    GIVES("echo evil > .git/hooks/pre-commit", 2, "Read-only file system");
    GIVES("echo evil > .vscode/tasks.json", 2, "Read-only file system");
    GIVES("rm -rf .bashrc .git/hooks", 1, "");
    GIVES("mv .git/hooks hooks", 1, "");
    T_CHECK(is(root_path, ".git/hooks/pre-commit", "mine"));
    T_CHECK(is(root_path, ".bashrc", "mine"));
    T_CHECK(system("rm -rf root/.git root/.vscode root/.bashrc") == 0);
}

static void planted_files_are_moved_aside(void) {
    begin(HFSB_CONFINE_WRITE);
    GIVES("mkdir -p .git/hooks .vscode && echo evil > .git/hooks/pre-push && "
          "echo evil > .envrc; touch .git/hooks/pre-push.sample",
          0, "pre-push.refused");
    T_CHECK(is(root_path, ".git/hooks/pre-push", NULL));
    T_CHECK(is(root_path, ".git/hooks/pre-push.refused", "evil\n"));
    T_CHECK(is(root_path, ".git/hooks/pre-push.sample", ""));
    T_CHECK(is(root_path, ".envrc", NULL));
    T_CHECK(access("root/.vscode", F_OK) != 0);
    how.no_spaces = true;
    put(root_path, ".envrc", "mine");
    GIVES("echo evil >> .envrc", 0, ".envrc.refused2");
    GIVES("true", 0, "");
    GIVES("mv .git .g && mkdir -p .git/hooks && echo e > .git/hooks/pre-push",
          0, "pre-push.refused");
    T_CHECK(system("rm -rf root/.[a-z]*") == 0);
}

/* The home may be beneath any place to write, here the temporary folder. */
static void a_home_in_a_place_to_write_is_guarded(void) {
    char home[256];
    snprintf(home, sizeof home, "%s/home", getenv("TMPDIR"));
    T_CHECK(mkdir(home, 0755) == 0 && setenv("HOME", home, 1) == 0);
    begin(HFSB_CONFINE_WRITE);
    GIVES("echo evil > ~/.bashrc", 0, ".bashrc.refused");
    T_CHECK(is(home, ".bashrc", NULL));
    put(home, ".bashrc", "mine");
    if (can_mount) GIVES("echo evil > ~/.bashrc", 2, "");
    T_CHECK(is(home, ".bashrc", "mine"));
    T_CHECK(system("rm -rf \"$HOME\"") == 0);
    T_CHECK(setenv("HOME", out_path, 1) == 0);
}

/* hfsb-server, as `hfsb --on` sends it: in the home, else in the temporary
   folder. A symlink there keeps nothing else from commands. */
static void sent_servers_cannot_change(void) {
    char name[32], line[512];
    T_CHECK(setenv("HOME", root_path, 1) == 0);
    snprintf(name, sizeof name, "hfsb-%lu", (unsigned long)geteuid());
    snprintf(line, sizeof line, "mkdir -p root/.local/share/hfsb $TMPDIR/%s",
             name);
    T_CHECK(system(line) == 0);
    put(root_path, ".local/share/hfsb/hfsb-server-1", "mine");
    begin(HFSB_CONFINE_WRITE);
    GIVES("echo evil > .local/share/hfsb/hfsb-server-1", 2,
          "Read-only file system");
    GIVES("mv .local/share/hfsb x", 1, "");
    GIVES("mv .local/share x", 1, "");
    GIVES("mv .local y", 1, "");
    T_CHECK(is(root_path, ".local/share/hfsb/hfsb-server-1", "mine"));
    GIVES("echo fine > .local/share/other", 0, "");
    snprintf(line, sizeof line, "echo evil > $TMPDIR/%s/x", name);
    GIVES(line, 2, "Read-only file system");
    snprintf(line, sizeof line, "rmdir $TMPDIR/%s && mkdir root/sub && ln -s "
             "%s/sub $TMPDIR/%s", name, root_path, name);
    T_CHECK(system(line) == 0);
    GIVES("echo fine > sub/f", 0, "");
    snprintf(line, sizeof line, "rm -rf root/.local root/[xy] root/sub "
             "$TMPDIR/%s", name);
    T_CHECK(system(line) == 0);
    T_CHECK(setenv("HOME", out_path, 1) == 0);
}

/* Those of all roots, whether or not this one has any. */
static void checkpoints_cannot_change(void) {
    char state_path[512];
    T_CHECK(setenv("HOME", root_path, 1) == 0);
    T_CHECK(system("mkdir -p root/.local/state/hfsb/undo root/xdg/hfsb") == 0);
    begin(HFSB_CONFINE_WRITE);
    GIVES("touch .local/state/hfsb/undo/x", 1, "Read-only file system");
    GIVES("touch .local/state/x && mv .local/state/x .local/y", 0, "");
    GIVES("mv .local/state .local/s || mv .local l", 1, "busy");
    T_CHECK(setenv("XDG_STATE_HOME", "", 1) == 0);
    GIVES("touch xdg/hfsb/x", 0, "");
    snprintf(state_path, sizeof state_path, "%s/xdg", root_path);
    T_CHECK(setenv("XDG_STATE_HOME", state_path, 1) == 0);
    GIVES("touch xdg/hfsb/x", 1, "Read-only file system");
    T_CHECK(unsetenv("XDG_STATE_HOME") == 0);
    T_CHECK(system("rm -rf root/.local root/xdg") == 0);
    T_CHECK(setenv("HOME", out_path, 1) == 0);
}

/* A link must lead the guard neither past a hook nor out of the root. */
static void planted_links_are_moved_aside(void) {
    begin(HFSB_CONFINE_WRITE);
    T_CHECK(system("mkdir -p outside/hooks outside/.vscode") == 0);
    put(out_path, "hooks/pre-commit", "mine");
    put(out_path, ".vscode/tasks.json", "mine");
    GIVES("mkdir -p g/hooks && echo evil > g/hooks/pre-commit && ln -s g .git",
          0, ".git.refused)");
    T_CHECK(access("root/.git", F_OK) != 0);
    GIVES("ln -s ../outside .git && ln -s ../outside/.vscode .vscode", 0,
          ".vscode.refused)");
    GIVES("mkdir -p sub .git && ln -s \"$PWD/g/hooks\" .git/hooks", 0,
          "moved to hooks.refused)");
    T_CHECK(is(out_path, "hooks/pre-commit", "mine"));
    T_CHECK(is(out_path, ".vscode/tasks.json", "mine"));
    T_CHECK(system("rm -rf root/.[a-z]* root/g root/sub") == 0);
}

static void known_files_stay(void) {
    begin(HFSB_CONFINE_WRITE);
    put(root_path, ".mcp.json", "mine");
    GIVES("true", 0, "");
    T_CHECK(is(root_path, ".mcp.json", "mine"));
    T_CHECK(unlink("root/.mcp.json") == 0);
}

static void strict_hides_env_files(void) {
    begin(HFSB_CONFINE_STRICT);
    T_CHECK(system("mkdir -p root/app/deep") == 0);
    put(root_path, ".env", "SECRET");
    put(root_path, "app/deep/.env.local", "SECRET");
    put(root_path, ".env.example", "PLAIN");
    GIVES("cat .env app/deep/.env.local .env.example", 0, "PLAIN");
    GIVES("! grep SECRET .env app/deep/.env.local", 0, "");
    T_CHECK(is(root_path, ".env", "SECRET"));
    T_CHECK(unlink("root/.env") == 0);
}

/* "python3 -m venv .env" is common. It is no secret, and must not cost the
   other covers. */
static void a_folder_named_env_stays(void) {
    T_CHECK(system("mkdir -p root/.env/bin root/app/.env") == 0);
    put(root_path, ".env/bin/activate", "venv");
    put(root_path, ".env.local", "SECRET");
    begin(HFSB_CONFINE_STRICT);
    GIVES("cat .env/bin/activate", 0, "venv");
    GIVES("! grep SECRET .env.local", 0, "");
    T_CHECK(system("rm -r root/.env root/app/.env root/.env.local") == 0);
}

/* Landlock lets access() succeed and open() fail, which ends git. */
static void strict_has_no_settings_of_git(void) {
    char        path[256], *home = getenv("HOME");
    const char *file = path;
    char        old[256];
    snprintf(old, sizeof old, "%s", home ? home : "");
    T_CHECK(setenv("HOME", out_path, 1) == 0);
    put(out_path, ".gitconfig", "[user] name = me");
    begin(HFSB_CONFINE_STRICT);
    GIVES("wc -c < ../outside/.gitconfig", 0, "0");
    if (have("git"))
        GIVES("git init -q g && git -C g status -s && rm -r g", 0, "");
    begin(HFSB_CONFINE_WRITE);
    GIVES("cat ../outside/.gitconfig", 0, "name = me");
    snprintf(path, sizeof path, "%s/.gitconfig", out_path);
    begin(HFSB_CONFINE_STRICT);
    opts.allow_read = &file;
    opts.allow_read_count = 1;
    GIVES("cat ../outside/.gitconfig", 0, "name = me");
    T_CHECK(unlink(path) == 0 && setenv("HOME", old, 1) == 0);
}

/* An editor replaces a file by rename(), and with it the mount on it. */
static void replaced_files_stay_hidden(void) {
    static const char *const argv[] = {"/bin/cat", ".env", "later/.env", NULL};
    const char    *dirs[2];
    char           later[80];
    hfsb_confine  *c = NULL;
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_buf       out = HFSB_INIT;
    int            round;
    snprintf(later, sizeof later, "%s/later", root_path);
    T_CHECK(mkdir(later, 0755) == 0);
    put(root_path, ".env", "SECRET");
    begin(HFSB_CONFINE_STRICT);
    dirs[0] = root_path;
    dirs[1] = later;
    opts.dirs = dirs;
    opts.dir_count = 2;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, NULL) == HFSB_OK);
    o.argv = argv;
    o.work_dir = root_path;
    o.confine = c;
    for (round = 0; round < 3; round++) {
        T_CHECK(hfsbi_confine_refresh(c, NULL) == HFSB_OK);
        T_CHECK(hfsb_proc_run(&o, &out, NULL, NULL, NULL) == HFSB_OK);
        T_STR(out, "");
        hfsb_buf_truncate(&out, 0);
        put(root_path, "new", "SECRET");
        T_CHECK(rename("root/new", "root/.env") == 0);
        put(later, ".env", "SECRET");
    }
    T_CHECK(system("rm -rf root/.env root/later") == 0);
    hfsb_buf_free(&out);
    hfsb_confine_close(c);
}

/* No descriptors are left for the new mounts. */
static void nothing_runs_when_mounts_cannot_be_renewed(void) {
    struct rlimit none, old;
    hfsb_err      err = HFSB_INIT;
    int           possible;
    for (possible = 0; possible < 2; possible++) {
        hfsb_confine *c = NULL;
        bool          mounts;
        put(root_path, ".envrc", "old");
        begin(HFSB_CONFINE_WRITE);
        opts.if_possible = possible;
        T_CHECK(hfsbi_confine_open(&opts, &how, &c, NULL) == HFSB_OK);
        mounts = c->spaces.mounts >= 0;
        put(root_path, "new", "new");
        T_CHECK(rename("root/new", "root/.envrc") == 0);
        T_CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
        none = old;
        none.rlim_cur = 0;
        T_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        T_CHECK((hfsbi_confine_refresh(c, &err) == HFSB_OK) ==
                (possible || !mounts));
        T_CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
        if (mounts)
            T_CHECK(strstr(err.msg, "was not run: a file that it must not") &&
                    strstr(err.msg, "cannot be covered again: "));
        T_CHECK(hfsbi_confine_refresh(c, &err) == HFSB_OK);
        hfsb_confine_close(c);
    }
    T_CHECK(unlink("root/.envrc") == 0);
}

/* Two hosts count as one only when nothing differs. */
static void same_options_are_recognised(void) {
    const char       *list[1] = {root_path};
    hfsb_confine     *c = NULL;
    hfsb_confine_opts o;
    begin(HFSB_CONFINE_WRITE);
    opts.max_memory = 1u << 30;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, NULL) == HFSB_OK);
    o = opts;
    T_CHECK(hfsbi_confine_is_like(c, &o));
    o.max_memory++;
    T_CHECK(!hfsbi_confine_is_like(c, &o));
    o = opts;
    o.net = "off";
    T_CHECK(!hfsbi_confine_is_like(c, &o));
    o = opts;
    o.allow_write = list;
    o.allow_write_count = 1;
    T_CHECK(!hfsbi_confine_is_like(c, &o));
    o = opts;
    o.if_possible = !o.if_possible;
    T_CHECK(!hfsbi_confine_is_like(c, &o));
    o = opts;
    o.keep = root_path;
    T_CHECK(!hfsbi_confine_is_like(c, &o));
    c->users++;
    hfsb_confine_close(c);
    T_CHECK(hfsbi_confine_is_like(c, &opts)); /* it is still there */
    hfsb_confine_close(c);
}

static void secrets_are_known_by_name(void) {
    static const char *const yes[] = {
        "HF_TOKEN", "GITHUB_TOKEN", "AWS_PROFILE", "OPENAI_API_KEY",
        "SSH_AUTH_SOCK", "DB_PASSWORD", "MY_SECRET", "GOOGLE_APPLICATION_X"};
    static const char *const no[] = {"PATH", "HOME", "LANG", "KEYBOARD",
                                     "TERM", "MONKEY"};
    size_t i;
    for (i = 0; i < sizeof yes / sizeof *yes; i++)
        T_CHECK(hfsbi_confine_is_secret(hfsb_cstr(yes[i])));
    for (i = 0; i < sizeof no / sizeof *no; i++)
        T_CHECK(!hfsbi_confine_is_secret(hfsb_cstr(no[i])));
}

/* ---- programs people use ---- */

static void common_tools_work(void) {
    begin(HFSB_CONFINE_WRITE);
    T_CHECK(setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1) == 0);
    if (have("git")) {
        GIVES("git init -q g && cd g && echo a > f && git add f && "
              "git -c user.name=a -c user.email=b commit -qm x && "
              "git checkout -qb other && git log --oneline | wc -l",
              0, "1");
        GIVES("rm -rf g", 0, "");
    }
    if (access("/usr/bin/cc", X_OK) == 0)
        GIVES("echo 'int main(void){return 7;}' > a.c && cc a.c && ./a.out", 7,
              "");
    GIVES("sleep 30 & kill $! && wait $! || echo ended", 0, "ended");
    GIVES("(exec 3<>/dev/ptmx && echo terminal)", 0, "terminal");
}

static void commands_are_killed_with_their_trees(void) {
    hfsb_confine  *confine = NULL;
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_proc     *proc = NULL;
    hfsb_err       err = HFSB_INIT;
    hfsb_watch     watch[HFSB_PROC_WATCHES];
    long long      end = hfsb_clock_ms() + t_patience(2000);
    begin(HFSB_CONFINE_STRICT);
    T_CHECK(hfsbi_confine_open(&opts, &how, &confine, &err) == HFSB_OK);
    o.command = HFSB_LIT("setsid sleep 60 & sleep 60");
    o.job = hfsb_cstr(t_job());
    o.confine = confine;
    o.grace_ms = -1;
    T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_OK);
    while (t_marked(t_job(), 0) < 3 && hfsb_clock_ms() < end) t_sleep(5);
    hfsb_proc_kill(proc);
    while (!hfsb_proc_step(proc) && hfsb_clock_ms() < end) {
        (void)hfsb_proc_watch(proc, watch);
        t_sleep(5);
    }
    hfsb_proc_close(proc);
    T_CHECK(t_marked(t_job(), 0) == 0);
    hfsb_confine_close(confine);
}

/* ---- systems that lack something ---- */

static void without_landlock_strict_refuses(void) {
    hfsb_confine *c = NULL;
    hfsb_err      err = HFSB_INIT;
    begin(HFSB_CONFINE_STRICT);
    opts.if_possible = true;
    how.max_abi = -1;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, &err) == HFSB_REFUSED && !c);
    T_CHECK(strstr(err.msg, "no Landlock") != NULL);
    begin(HFSB_CONFINE_WRITE);
    how.max_abi = -1;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, &err) == HFSB_REFUSED && !c);
    opts.if_possible = true;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, &err) == HFSB_OK);
    T_CHECK(!can_seccomp || strstr(hfsb_confine_text(c), "no Landlock"));
    hfsb_confine_close(c);
}

static void text_names_the_mechanisms(void) {
    hfsb_confine *c = NULL;
    hfsb_err      err = HFSB_INIT;
    char          want[256];
    begin(HFSB_CONFINE_WRITE);
    how.no_spaces = true;
    opts.net = "443,53";
    if (hfsbi_landlock_abi() < 4 || !can_seccomp) return;
    T_CHECK(hfsbi_confine_open(&opts, &how, &c, &err) == HFSB_OK);
    snprintf(want, sizeof want,
             "commands are confined (write): Landlock ABI %d, seccomp, no "
             "private mounts (git hooks and the like are checked after each "
             "command; chmod is not confined)%s; network TCP port 443,53 and "
             "UDP",
             hfsbi_landlock_abi(), c->limits.join >= 0 ? ", cgroup" : "");
    t_str(__FILE__, __LINE__, hfsb_confine_text(c),
          strlen(hfsb_confine_text(c)), want, strlen(want));
    T_CHECK(hfsb_confine_level_of(c) == HFSB_CONFINE_WRITE);
    hfsb_confine_close(c);
    T_CHECK(hfsb_confine_level_of(NULL) == HFSB_CONFINE_NONE);
    T_CHECK(*hfsb_confine_text(NULL) == '\0');
}

static void levels_have_names(void) {
    hfsb_confine_level level = HFSB_CONFINE_NONE;
    T_CHECK(hfsb_confine_level_find(HFSB_LIT("strict"), &level));
    T_CHECK(level == HFSB_CONFINE_STRICT);
    T_CHECK(!hfsb_confine_level_find(HFSB_LIT("Write"), &level));
    T_CHECK(!hfsb_confine_level_find(HFSB_LIT(""), &level));
    T_CHECK(level == HFSB_CONFINE_STRICT);
}

static void open_close(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_confine *c = NULL;
    hfsbi_guard  *guard;
    hfsb_buf      out = HFSB_INIT;
    hfsb_status   st;
    begin(HFSB_CONFINE_STRICT);
    opts.alloc = out.alloc = alloc;
    how.no_spaces = true;
    st = hfsbi_confine_open(&opts, &how, &c, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !c));
    guard = hfsbi_guard_open(c);
    hfsbi_guard_check(guard, NULL, NULL, &out);
    hfsbi_guard_close(guard);
    hfsb_confine_close(c);
    hfsb_buf_free(&out);
}

static void probe(void) {
    hfsb_confine *c = NULL;
    can_landlock = hfsbi_landlock_abi() > 0;
    can_seccomp = hfsbi_seccomp_works();
    begin(HFSB_CONFINE_WRITE);
    opts.if_possible = true;
    if (hfsbi_confine_open(&opts, &how, &c, NULL) == HFSB_OK)
        can_mount = c->spaces.mounts >= 0;
    hfsb_confine_close(c);
}

static void set_up(void) {
    static char tmpdir[80];
    if (!mkdtemp(top) || chdir(top) != 0) abort();
    snprintf(root_path, sizeof root_path, "%s/root", top);
    snprintf(out_path, sizeof out_path, "%s/outside", top);
    snprintf(tmp_path, sizeof tmp_path, "%s/tmp", top);
    T_CHECK(mkdir(root_path, 0755) == 0 && mkdir(out_path, 0755) == 0);
    T_CHECK(mkdir(tmp_path, 0755) == 0);
    snprintf(tmpdir, sizeof tmpdir, "%s", tmp_path);
    T_CHECK(setenv("TMPDIR", tmpdir, 1) == 0);
    T_CHECK(setenv("HOME", out_path, 1) == 0);
    put(out_path, "file", "old");
}

int main(void) {
    char   command[128];
    size_t fds;
    set_up();
    fds = t_open_fds();
    probe();
    T_RUN(levels_have_names);
    T_RUN(secrets_are_known_by_name);
    T_RUN(wrong_networks_are_refused);
    T_RUN(none_only_limits);
    if (!T_SANITIZED) T_RUN(limits_hold);
    T_RUN(without_landlock_strict_refuses);
    T_RUN(filters_answer_by_number_and_argument);
    if (can_landlock && can_seccomp) {
        T_RUN(write_level_writes_only_in_its_places);
        T_RUN(strict_level_reads_only_its_places);
        T_RUN(named_folders_are_added);
        T_RUN(landlock_alone_confines);
        T_RUN(landlock_stops_by_version);
        T_RUN(seccomp_refuses_calls);
        T_RUN(capabilities_do_not_survive);
        T_RUN(inherited_capabilities_do_not_survive);
        T_RUN(planted_places_are_not_added);
        T_RUN(the_network_is_limited);
        T_RUN(planted_files_are_moved_aside);
    T_RUN(a_home_in_a_place_to_write_is_guarded);
        T_RUN(planted_links_are_moved_aside);
        T_RUN(known_files_stay);
        T_RUN(common_tools_work);
        T_RUN(commands_are_killed_with_their_trees);
        T_RUN(text_names_the_mechanisms);
        t_each_allocation_fails(open_close);
    } else {
        t_skip("no Landlock or seccomp here");
    }
    if (can_landlock && can_mount) {
        T_RUN(mounts_alone_confine);
        T_RUN(guarded_files_cannot_change);
        T_RUN(sent_servers_cannot_change);
        T_RUN(checkpoints_cannot_change);
        T_RUN(strict_hides_env_files);
        T_RUN(a_folder_named_env_stays);
        T_RUN(replaced_files_stay_hidden);
        T_RUN(nothing_runs_when_mounts_cannot_be_renewed);
        T_RUN(same_options_are_recognised);
        T_RUN(strict_has_no_settings_of_git);
    } else {
        t_skip("no namespaces here");
    }
    T_CHECK(t_open_fds() == fds && t_no_child());
    T_CHECK(prctl(PR_GET_DUMPABLE) == 1); /* the child shares our memory */
    T_CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 0);
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    T_CHECK(chdir("/") == 0 && system(command) == 0);
    return T_END();
}

#else

int main(void) {
    t_skip("Linux only");
    return T_END();
}

#endif
