/* escape.c - tries to leave confinement, for tests/checks/escapes.sh

     escape run LEVEL DIR [abi=N] [nomounts] [net=N] [mem=N] [procs=N]
            [size=N] [cpu=N] [write=D] [read=D] [nolandlock] [text] -- COMMAND
         runs COMMAND as hfsb runs commands, with DIR as the root; its exit
         code. 99: the confinement was refused, and the reason is printed.
         nolandlock: a seccomp filter answers ENOSYS, as older kernels do;
         text: hfsb_confine_text() is printed first
     escape text LEVEL DIR ...      prints hfsb_confine_text()
     escape cost LEVEL DIR ... -- N  ms for one of N commands, the best of five
     escape NAME [ARG...]           tries something; 0: it worked, 1: refused
         (the errno is printed), 77: not possible on this system         */
#define _GNU_SOURCE
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/timex.h>
#include <sys/xattr.h>

/* ---- run ---- */

static bool hide_landlock(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program;
    program.len = sizeof code / sizeof *code;
    program.filter = code;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const char *after(const char *word, const char *name) {
    size_t len = strlen(name);
    return strncmp(word, name, len) == 0 ? word + len : NULL;
}

static void copy(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    (void)user;
    fwrite(bytes.ptr, 1, bytes.len,
           stream == HFSB_PROC_STDOUT ? stdout : stderr);
}

typedef struct setting {
    hfsb_confine_opts opts;
    hfsbi_confine_how how;
    const char       *dir, *more, *read;
    bool              text;
} setting;

static int take(char **argv, setting *s) {
    int         i;
    const char *v;
    memset(s, 0, sizeof *s);
    if (!hfsb_confine_level_find(hfsb_cstr(argv[0]), &s->opts.level))
        return -1;
    s->dir = argv[1];
    s->opts.dirs = &s->dir;
    s->opts.dir_count = 1;
    for (i = 2; argv[i] && strcmp(argv[i], "--") != 0; i++) {
        if ((v = after(argv[i], "abi=")) != NULL) s->how.max_abi = atoi(v);
        else if ((v = after(argv[i], "net=")) != NULL) s->opts.net = v;
        else if ((v = after(argv[i], "mem=")) != NULL)
            s->opts.max_memory = strtoull(v, NULL, 10);
        else if ((v = after(argv[i], "procs=")) != NULL)
            s->opts.max_processes = strtoull(v, NULL, 10);
        else if ((v = after(argv[i], "size=")) != NULL)
            s->opts.max_file_size = strtoull(v, NULL, 10);
        else if ((v = after(argv[i], "cpu=")) != NULL)
            s->opts.max_cpu = strtoull(v, NULL, 10);
        else if ((v = after(argv[i], "write=")) != NULL) {
            s->more = v;
            s->opts.allow_write = &s->more;
            s->opts.allow_write_count = 1;
        } else if ((v = after(argv[i], "read=")) != NULL) {
            s->read = v;
            s->opts.allow_read = &s->read;
            s->opts.allow_read_count = 1;
        } else if (strcmp(argv[i], "nomounts") == 0) s->how.no_spaces = true;
        else if (strcmp(argv[i], "try") == 0) s->opts.if_possible = true;
        else if (strcmp(argv[i], "text") == 0) s->text = true;
        else if (strcmp(argv[i], "nolandlock") == 0 && hide_landlock()) {}
        else return -1;
    }
    return i;
}

static int refused(const hfsb_err *err) {
    fprintf(stderr, "%s\n", err->msg);
    return 99;
}

static int run(char **argv) {
    setting          s;
    hfsb_confine    *confine = NULL;
    hfsbi_guard     *guard;
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_buf         notes = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    int              at = take(argv, &s);
    if (at < 0 || !argv[at] || !argv[at + 1]) return 98;
    if (hfsbi_confine_open(&s.opts, &s.how, &confine, &err) != HFSB_OK)
        return refused(&err);
    if (s.text) printf("%s\n", hfsb_confine_text(confine));
    o.command = hfsb_cstr(argv[at + 1]);
    o.work_dir = s.dir;
    o.timeout_ms = 20000;
    o.on_output = copy;
    o.confine = confine;
    guard = hfsbi_guard_open(confine);
    if (hfsb_proc_run(&o, NULL, NULL, &r, &err) != HFSB_OK)
        return refused(&err);
    hfsbi_guard_check(guard, NULL, NULL, &notes);
    if (notes.len) printf("%s\n", notes.ptr + 1);
    hfsb_buf_free(&notes);
    hfsbi_guard_close(guard);
    hfsb_confine_close(confine);
    return r.end == HFSB_PROC_EXITED ? r.exit_code : 128 + r.signal;
}

static int text(char **argv) {
    setting       s;
    hfsb_confine *confine = NULL;
    hfsb_err      err = HFSB_INIT;
    if (take(argv, &s) < 0) return 98;
    if (hfsbi_confine_open(&s.opts, &s.how, &confine, &err) != HFSB_OK)
        return refused(&err);
    printf("%s\n", hfsb_confine_text(confine));
    hfsb_confine_close(confine);
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int cost(char **argv) {
    static const char *const program[] = {"/bin/true", NULL};
    setting                  s;
    hfsb_confine            *confine = NULL;
    hfsb_proc_opts           o = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    double                   best = 1e9;
    int i, round, count, at = take(argv, &s);
    if (at < 0 || !argv[at] || !argv[at + 1]) return 98;
    count = atoi(argv[at + 1]);
    if (hfsbi_confine_open(&s.opts, &s.how, &confine, &err) != HFSB_OK)
        return refused(&err);
    o.argv = program;
    o.confine = confine;
    for (round = 0; round < 5; round++) {
        double begin = now();
        for (i = 0; i < count; i++) {
            hfsbi_guard *guard = hfsbi_guard_open(confine);
            if (hfsb_proc_run(&o, NULL, NULL, NULL, &err) != HFSB_OK)
                return refused(&err);
            hfsbi_guard_check(guard, NULL, NULL, NULL);
            hfsbi_guard_close(guard);
        }
        if (now() - begin < best) best = now() - begin;
    }
    printf("%.3f\n", best / count);
    hfsb_confine_close(confine);
    return 0;
}

/* ---- attempts ---- */

static int outcome(bool worked) {
    if (worked) return 0;
    printf("%s\n", hfsbi_os_text(errno));
    return 1;
}

static int connect_to(int family, int type, int protocol, int port) {
    struct sockaddr_in to;
    int                fd = socket(family, type, protocol);
    if (fd < 0 && (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT))
        return 77;
    if (fd < 0) return outcome(false);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((unsigned short)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return outcome(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
}

static int fast_open(int port) {
    struct sockaddr_in to;
    int                fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return outcome(false);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((unsigned short)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return outcome(sendto(fd, "x", 1, 0x20000000, (struct sockaddr *)&to,
                          sizeof to) == 1);
}

static int listen_on(int port) {
    struct sockaddr_in at;
    int                fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (fd < 0) return outcome(false);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((unsigned short)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return outcome(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
}

/* name: a path, or after @ an abstract name. */
static int connect_unix(const char *name) {
    struct sockaddr_un to;
    socklen_t          len;
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memset(&to, 0, sizeof to);
    to.sun_family = AF_UNIX;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    if (*name == '@') to.sun_path[0] = '\0';
    return outcome(connect(fd, (struct sockaddr *)&to, len) == 0);
}

static int serve_unix(const char *name) {
    struct sockaddr_un to;
    socklen_t          len;
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memset(&to, 0, sizeof to);
    to.sun_family = AF_UNIX;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    if (*name == '@') to.sun_path[0] = '\0';
    if (bind(fd, (struct sockaddr *)&to, len) != 0 || listen(fd, 5) != 0)
        return outcome(false);
    if (*name != '@') chmod(name, 0777);
    printf("ready\n");
    fflush(stdout);
    for (;;) close(accept(fd, NULL, NULL)); /* else connect() would wait */
}

static int serve_tcp(int port) {
    int rc = listen_on(port), fd;
    if (rc) return rc;
    for (fd = 3; fd < 10; fd++) (void)listen(fd, 5);
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
}

static int memfd_exec(void) {
    char  buf[65536], path[64];
    char *argv[] = {(char *)"true", NULL};
    int   in = open("/bin/true", O_RDONLY), out;
    ssize_t n;
    out = (int)syscall(SYS_memfd_create, "x", 0u);
    while ((n = read(in, buf, sizeof buf)) > 0)
        if (write(out, buf, (size_t)n) != n) return 77;
    snprintf(path, sizeof path, "/proc/self/fd/%d", out);
    execv(path, argv);
    return outcome(false);
}

static int read_memory(long pid) { /* /proc/PID/mem */
    char path[64];
    int  fd;
    snprintf(path, sizeof path, "/proc/%ld/mem", pid);
    fd = open(path, O_RDWR);
    return outcome(fd >= 0);
}

static int vm_read(long pid) {
    char         here[8];
    struct iovec local = {here, 1}, remote = {here, 1};
    long rc = syscall(SYS_process_vm_readv, (pid_t)pid, &local, 1ul, &remote,
                      1ul, 0ul);
    return outcome(rc == 1 || errno == EFAULT);
}

static int trace(long pid) {
    return outcome(ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL) == 0);
}

static int take_fd(long pid) {
    int fd = (int)syscall(434, (pid_t)pid, 0u);
    if (fd < 0) return outcome(false);
    return outcome(syscall(438, fd, 0, 0u) >= 0);
}

static int type_into_terminal(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return 77;
    setsid();
    slave = open(ptsname(master), O_RDWR);
    if (slave < 0) return outcome(false);
    return outcome(ioctl(slave, 0x5412, "x") == 0);
}

static int by_handle(const char *path) {
    struct {
        struct file_handle head;
        char               room[128];
    } h;
    int mount_id, dir = open("/", O_RDONLY | O_DIRECTORY);
    h.head.handle_bytes = sizeof h.room;
    if (name_to_handle_at(AT_FDCWD, path, &h.head, &mount_id, 0) != 0)
        return 77;
    return outcome(open_by_handle_at(dir, &h.head, O_RDWR) >= 0);
}

static int clone_user(void) {
    struct {
        unsigned long long flags, rest[10];
    } args;
    long pid;
    memset(&args, 0, sizeof args);
    args.flags = CLONE_NEWUSER;
    args.rest[3] = SIGCHLD;
    pid = syscall(435, &args, sizeof args);
    if (pid == 0) _exit(0);
    return outcome(pid > 0);
}

#ifdef __x86_64__
static int old_call(void) { /* getpid() of i386 */
    long rc = 20;
    __asm__ volatile("int $0x80" : "+a"(rc)::"memory");
    errno = rc < 0 ? (int)-rc : 0;
    return outcome(rc > 0);
}
#else
static int old_call(void) {
    return 77;
}
#endif

static int fork_many(int count) {
    int i;
    (void)setpgid(0, 0); /* not the shell */
    for (i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        if (pid < 0) {
            i = outcome(false);
            fflush(stdout); /* the signal ends this process, too */
            kill(0, SIGTERM);
            return i;
        }
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return 0;
}

static int use_memory(size_t bytes) {
    char *p = (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return outcome(p != (char *)MAP_FAILED);
}

static int big_file(const char *path, off_t size) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    signal(SIGXFSZ, SIG_IGN);
    return outcome(fd >= 0 && ftruncate(fd, size) == 0 && unlink(path) == 0);
}

static int set_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return outcome(syscall(SYS_clock_settime, CLOCK_REALTIME, &t) == 0);
}

static int raise_limit(void) {
    struct rlimit r;
    r.rlim_cur = r.rlim_max = RLIM_INFINITY;
    return outcome(setrlimit(RLIMIT_CORE, &r) == 0);
}

static int calm_oom(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    return outcome(fd >= 0 && write(fd, "-1000", 5) == 5);
}

static int bpf_load(void) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr) >= 0);
}

static int ring(void) {
    char params[256];
    memset(params, 0, sizeof params);
    return outcome(syscall(425, 4u, params) >= 0);
}

static int perf(void) {
    unsigned attr[32];
    memset(attr, 0, sizeof attr);
    attr[0] = 1; /* software */
    attr[1] = sizeof attr;
    return outcome(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0ul) >= 0);
}

typedef struct attempt {
    const char *name;
    int (*plain)(void);
    int (*number)(long n);
    int (*path)(const char *path);
} attempt;

static int tcp(long n) { return connect_to(AF_INET, SOCK_STREAM, 0, (int)n); }
static int udp(long n) { return connect_to(AF_INET, SOCK_DGRAM, 0, (int)n); }
static int mptcp(long n) {
    return connect_to(AF_INET, SOCK_STREAM, 262, (int)n);
}
static int sctp(long n) {
    return connect_to(AF_INET, SOCK_STREAM, 132, (int)n);
}
static int tfo(long n) { return fast_open((int)n); }
static int bind_tcp(long n) { return listen_on((int)n); }
static int servetcp(long n) { return serve_tcp((int)n); }
static int raw(void) {
    return outcome(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
}
static int packet(void) {
    return outcome(socket(17 /* AF_PACKET */, SOCK_RAW, 0) >= 0);
}
static int netlink(void) {
    return outcome(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
}
static int vsock(void) {
    int fd = socket(40, SOCK_STREAM, 0);
    return fd < 0 && errno == EAFNOSUPPORT ? 77 : outcome(fd >= 0);
}
static int alg(void) {
    int fd = socket(38, SOCK_SEQPACKET, 0);
    return fd < 0 && errno == EAFNOSUPPORT ? 77 : outcome(fd >= 0);
}
static int sig(long pid) { return outcome(kill((pid_t)pid, SIGUSR1) == 0); }
static int pidfd_sig(long pid) {
    int fd = (int)syscall(434, (pid_t)pid, 0u);
    return outcome(fd >= 0 && syscall(424, fd, SIGUSR1, NULL, 0u) == 0);
}
static int write_to(const char *p) {
    return outcome(open(p, O_WRONLY | O_CREAT | O_APPEND, 0600) >= 0);
}
static int read_from(const char *p) { return outcome(open(p, O_RDONLY) >= 0); }
static int trunc_by_open(const char *p) {
    return outcome(open(p, O_RDONLY | O_TRUNC) >= 0);
}
static int trunc_it(const char *p) { return outcome(truncate(p, 0) == 0); }
static int swap(const char *p) { /* with n, which must exist */
    return outcome(syscall(SYS_renameat2, AT_FDCWD, "n", AT_FDCWD, p,
                           2u /* EXCHANGE */) == 0);
}
static int chmod_it(const char *p) { return outcome(chmod(p, 0777) == 0); }
static int chown_it(const char *p) {
    return outcome(chown(p, getuid(), getgid()) == 0);
}
static int times_it(const char *p) {
    return outcome(utimensat(AT_FDCWD, p, NULL, 0) == 0);
}
static int xattr_it(const char *p) {
    int rc = setxattr(p, "user.x", "1", 1, 0);
    return rc != 0 && errno == ENOTSUP ? 77 : outcome(rc == 0);
}
static int block_device(const char *p) {
    return outcome(mknod(p, S_IFBLK | 0600, 0x0700) == 0 && unlink(p) == 0);
}
static int mount_it(void) {
    return outcome(mount("none", "/tmp", "tmpfs", 0, "") == 0);
}
static int remount(void) {
    return outcome(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
}
static int unmount(const char *p) {
    return outcome(umount2(p, MNT_DETACH) == 0);
}
static int user_space(void) { return outcome(unshare(CLONE_NEWUSER) == 0); }
static int user_mount(void) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return outcome(false);
    return outcome(mount("/etc", "/mnt", NULL, MS_BIND, NULL) == 0);
}
static int join(long pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/mnt", pid);
    return outcome(setns(open(path, O_RDONLY), CLONE_NEWNS) == 0);
}
static int keys(void) {
    return outcome(syscall(SYS_add_key, "user", "x", "y", 1ul, -2) >= 0);
}
static int module(void) {
    long rc = syscall(SYS_init_module, "", 0ul, "");
    return outcome(rc == 0 || errno == ENOEXEC);
}
static int kexec(void) {
    long rc = syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul);
    return outcome(rc == 0);
}
static int memory(long n) { return use_memory((size_t)n); }
static int fill(long n) { /* uses memory, and keeps it for a moment */
    char *p = (char *)malloc((size_t)n);
    if (!p) return outcome(false);
    memset(p, 1, (size_t)n);
    sleep(2);
    return outcome(p[n - 1] == 1);
}
static int forks(long n) { return fork_many((int)n); }
static int mark(const char *p) { /* as systemd does */
    return outcome(setxattr(p, "user.delegate", "1", 1, 0) == 0);
}
/* Flees from a search of /proc: every moment a new process goes on in a
   session of its own, without environment, and the old one exits. Each adds a
   byte to the file. */
static int hop(const char *p) {
    int i, fd = open(p, O_WRONLY | O_CREAT | O_APPEND, 0600);
    signal(SIGTERM, SIG_IGN);
    for (i = 0; i < 20000; i++) {
        pid_t pid = fork();
        if (pid > 0) _exit(0);
        setsid();
        if (pid == 0 && write(fd, "x", 1) != 1) return 1;
    }
    return 0;
}
static int flee(const char *p) {
    int i;
    for (i = 0; i < 4; i++) {
        if (fork() != 0) continue;
        clearenv();
        execl("/proc/self/exe", "fleeing", "hop", p, (char *)NULL);
        _exit(1);
    }
    sleep(100);
    return 0;
}
static int huge(const char *p) { return big_file(p, (off_t)1 << 34); }
static int host_name(void) {
    char name[65];
    gethostname(name, sizeof name);
    return outcome(sethostname(name, strlen(name)) == 0);
}
static int fault_fd(void) {
    return outcome(syscall(SYS_userfaultfd, 1 /* user mode */) >= 0);
}
static int set_user(void) { /* this program belongs to root */
    if (getuid() != 65534) return 77; /* else it is our own */
    errno = EPERM;
    return outcome(geteuid() == 0);
}
static int burn(void) {
    volatile unsigned long n = 0;
    for (;;) n++;
}

static const attempt attempts[] = {
    {"tcp", NULL, tcp, NULL},
    {"udp", NULL, udp, NULL},
    {"mptcp", NULL, mptcp, NULL},
    {"sctp", NULL, sctp, NULL},
    {"tfo", NULL, tfo, NULL},
    {"bind", NULL, bind_tcp, NULL},
    {"servetcp", NULL, servetcp, NULL},
    {"raw", raw, NULL, NULL},
    {"packet", packet, NULL, NULL},
    {"netlink", netlink, NULL, NULL},
    {"vsock", vsock, NULL, NULL},
    {"alg", alg, NULL, NULL},
    {"unix", NULL, NULL, connect_unix},
    {"serve", NULL, NULL, serve_unix},
    {"signal", NULL, sig, NULL},
    {"pidfdsignal", NULL, pidfd_sig, NULL},
    {"ptrace", NULL, trace, NULL},
    {"mem", NULL, read_memory, NULL},
    {"vmread", NULL, vm_read, NULL},
    {"pidfdgetfd", NULL, take_fd, NULL},
    {"write", NULL, NULL, write_to},
    {"read", NULL, NULL, read_from},
    {"otrunc", NULL, NULL, trunc_by_open},
    {"truncate", NULL, NULL, trunc_it},
    {"swap", NULL, NULL, swap},
    {"chmod", NULL, NULL, chmod_it},
    {"chown", NULL, NULL, chown_it},
    {"times", NULL, NULL, times_it},
    {"xattr", NULL, NULL, xattr_it},
    {"blockdev", NULL, NULL, block_device},
    {"handle", NULL, NULL, by_handle},
    {"mount", mount_it, NULL, NULL},
    {"remount", remount, NULL, NULL},
    {"umount", NULL, NULL, unmount},
    {"userns", user_space, NULL, NULL},
    {"usermount", user_mount, NULL, NULL},
    {"clone3", clone_user, NULL, NULL},
    {"setns", NULL, join, NULL},
    {"io_uring", ring, NULL, NULL},
    {"memfd", memfd_exec, NULL, NULL},
    {"tiocsti", type_into_terminal, NULL, NULL},
    {"int80", old_call, NULL, NULL},
    {"bpf", bpf_load, NULL, NULL},
    {"perf", perf, NULL, NULL},
    {"keys", keys, NULL, NULL},
    {"module", module, NULL, NULL},
    {"kexec", kexec, NULL, NULL},
    {"clock", set_clock, NULL, NULL},
    {"hostname", host_name, NULL, NULL},
    {"userfault", fault_fd, NULL, NULL},
    {"corelimit", raise_limit, NULL, NULL},
    {"oom", calm_oom, NULL, NULL},
    {"memory", NULL, memory, NULL},
    {"fill", NULL, fill, NULL},
    {"forks", NULL, forks, NULL},
    {"mark", NULL, NULL, mark},
    {"flee", NULL, NULL, flee},
    {"hop", NULL, NULL, hop},
    {"huge", NULL, NULL, huge},
    {"setuid", set_user, NULL, NULL},
    {"burn", burn, NULL, NULL}};

int main(int argc, char **argv) {
    size_t i;
    if (argc > 3 && strcmp(argv[1], "run") == 0) return run(argv + 2);
    if (argc > 3 && strcmp(argv[1], "text") == 0) return text(argv + 2);
    if (argc > 4 && strcmp(argv[1], "cost") == 0) return cost(argv + 2);
    for (i = 0; argc > 1 && i < sizeof attempts / sizeof *attempts; i++) {
        const attempt *a = &attempts[i];
        if (strcmp(a->name, argv[1]) != 0) continue;
        if (a->plain) return a->plain();
        if (argc > 2 && a->number) return a->number(atol(argv[2]));
        if (argc > 2 && a->path) return a->path(argv[2]);
    }
    fprintf(stderr, "escape: unknown attempt\n");
    return 98;
}
