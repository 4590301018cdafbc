/* seccomp.c - system calls that a command may not make.

   A short list of calls that builds, tests and scripts do not need and that
   reach beyond files: mounts and namespaces, kernel modules, BPF, performance
   events, keys, io_uring (it opens files and sockets that no filter sees),
   setting the clock, rebooting. These fail with EPERM, as without privileges.

   The program is BPF, a list of instructions of 8 bytes. It is written once,
   as blocks that each jump over their own verdict:

       the architecture is not ours ........... ENOSYS (i386 on x86-64)
       the number is of x32 ................... ENOSYS
       the number is N ........................ EPERM      for each of the list
       the number is N and an argument ........ EPERM      clone, ioctl, socket
       ........................................ allow

   A call can be refused by an argument only if that is passed in a register.
   clone3() takes a struct, so it fails with ENOSYS, and libc uses clone(). */
#include "proc_private.h"

#if defined(HFSBI_LINUX) && defined(__x86_64__) && !defined(__ILP32__)
#define HFSBI_SECCOMP_ARCH 0xC000003Eu
#elif defined(HFSBI_LINUX) && defined(__aarch64__) && !defined(__AARCH64EB__)
#define HFSBI_SECCOMP_ARCH 0xC00000B7u
#elif defined(HFSBI_LINUX) && defined(__riscv) && __riscv_xlen == 64
#define HFSBI_SECCOMP_ARCH 0xC00000F3u
#endif

#ifdef HFSBI_SECCOMP_ARCH

enum {                            /* instructions */
       HFSBI_BPF_LOAD = 0x20,     /* a word of seccomp_data */
       HFSBI_BPF_AND = 0x54,      /* with a constant */
       HFSBI_BPF_IF_EQUAL = 0x15, /* else jump */
       HFSBI_BPF_IF_BITS = 0x45,  /* any of the bits */
       HFSBI_BPF_IF_AT_LEAST = 0x35,
       HFSBI_BPF_RETURN = 0x06
};

#define HFSBI_SECCOMP_ALLOW  0x7FFF0000u
#define HFSBI_SECCOMP_ERRNO  0x00050000u
#define HFSBI_SECCOMP_DENIED (HFSBI_SECCOMP_ERRNO | EPERM)
#define HFSBI_SECCOMP_ABSENT (HFSBI_SECCOMP_ERRNO | ENOSYS)

/* Offsets in seccomp_data; arguments as the lower halves of 8 bytes. */
#define HFSBI_DATA_NUMBER 0u
#define HFSBI_DATA_ARCH   4u
#define HFSBI_DATA_ARG(n) (16u + 8u * (n))

/* CLONE_NEW*: namespaces. */
#define HFSBI_CLONE_SPACES 0x7E020000u
#define HFSBI_CLONE_TIME   0x00000080u

static void hfsbi_bpf(hfsbi_seccomp *s, unsigned code, unsigned jump_true,
                      unsigned jump_false, unsigned value) {
    hfsbi_bpf_step *step;
    if (s->count == HFSBI_SECCOMP_STEPS) {
        s->full = true;
        return;
    }
    step = &s->steps[s->count++];
    step->code = (unsigned short)code;
    step->jump_true = (unsigned char)jump_true;
    step->jump_false = (unsigned char)jump_false;
    step->value = value;
}

static void hfsbi_bpf_return(hfsbi_seccomp *s, unsigned verdict) {
    hfsbi_bpf(s, HFSBI_BPF_RETURN, 0, 0, verdict);
}

/* The call number is loaded before and after each block. */
static void hfsbi_seccomp_deny(hfsbi_seccomp *s, long number,
                               unsigned verdict) {
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 1, (unsigned)number);
    hfsbi_bpf_return(s, verdict);
}

/* Denies the call when an argument has any of these bits. */
static void hfsbi_seccomp_deny_bits(hfsbi_seccomp *s, long number,
                                    unsigned arg, unsigned bits) {
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 4, (unsigned)number);
    hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARG(arg));
    hfsbi_bpf(s, HFSBI_BPF_IF_BITS, 0, 1, bits);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_DENIED);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ALLOW);
}

/* Denies the call when an argument is one of two values. */
static void hfsbi_seccomp_deny_values(hfsbi_seccomp *s, long number,
                                      unsigned arg, unsigned a, unsigned b) {
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 5, (unsigned)number);
    hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARG(arg));
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 1, 0, a);
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 1, b);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_DENIED);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ALLOW);
}

/* Denies calls, in ascending order of their numbers. When a filter is
   installed, the kernel tries every call number, so that a call that is always
   allowed costs nothing later; jumping over groups makes that several times
   faster. */
static void hfsbi_seccomp_deny_list(hfsbi_seccomp *s, const long *list,
                                    size_t count) {
    const size_t group = 6;
    for (; count > 0; list += group) {
        size_t n = count < group ? count : group, i;
        hfsbi_bpf(s, HFSBI_BPF_IF_AT_LEAST, (unsigned)(2 * n), 0,
                  (unsigned)list[n - 1] + 1);
        for (i = 0; i < n; i++)
            hfsbi_seccomp_deny(s, list[i], HFSBI_SECCOMP_DENIED);
        count -= n;
        if (n < group) return;
    }
}

static void hfsbi_seccomp_calls(hfsbi_seccomp *s) {
    static const long list[] = {
        /* file systems and namespaces */
        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_setns, SYS_swapon,
        SYS_swapoff, SYS_quotactl, SYS_open_by_handle_at, SYS_fanotify_init,
        428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */,
        431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */,
        442 /* mount_setattr */, 443 /* quotactl_fd */,
        467 /* open_tree_attr */,
        /* the kernel and its clock */
        SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
#ifdef SYS_kexec_file_load
        SYS_kexec_file_load,
#endif
        SYS_reboot, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
        SYS_adjtimex, SYS_acct, SYS_syslog, SYS_sethostname, SYS_setdomainname,
        SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key,
        SYS_request_key, SYS_keyctl, SYS_vhangup, 425 /* io_uring_setup */,
        426 /* io_uring_enter */,
#ifdef SYS_iopl
        SYS_iopl, SYS_ioperm,
#endif
        427 /* io_uring_register */};
    long   sorted[sizeof list / sizeof *list];
    size_t count = sizeof list / sizeof *list, i, at;
    for (i = 0; i < count; i++) {
        for (at = i; at > 0 && sorted[at - 1] > list[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = list[i];
    }
    hfsbi_seccomp_deny_list(s, sorted, count);
    hfsbi_seccomp_deny(s, 435 /* clone3 */, HFSBI_SECCOMP_ABSENT);
    hfsbi_seccomp_deny_bits(s, SYS_clone, 0, HFSBI_CLONE_SPACES);
    hfsbi_seccomp_deny_bits(s, SYS_unshare, 0,
                            HFSBI_CLONE_SPACES | HFSBI_CLONE_TIME);
    /* TIOCSTI and TIOCLINUX type into a terminal */
    hfsbi_seccomp_deny_values(s, SYS_ioctl, 1, 0x5412, 0x541C);
}

/* Without Landlock, nothing else protects the memory of other processes. */
static void hfsbi_seccomp_ptrace(hfsbi_seccomp *s) {
    hfsbi_seccomp_deny(s, SYS_process_vm_readv, HFSBI_SECCOMP_DENIED);
    hfsbi_seccomp_deny(s, SYS_process_vm_writev, HFSBI_SECCOMP_DENIED);
    hfsbi_seccomp_deny(s, 438 /* pidfd_getfd */, HFSBI_SECCOMP_DENIED);
    hfsbi_seccomp_deny_values(s, SYS_ptrace, 0, 16 /* ATTACH */,
                              0x4206 /* SEIZE */);
}

/* Families that are not allowed are reported as not existing. What follows is
   the block of socket(); each path through it ends in a verdict. */
static void hfsbi_seccomp_sockets(hfsbi_seccomp *s, const hfsbi_reach *net) {
    bool tcp = net->mode == HFSBI_REACH_PORTS;
    bool udp = tcp && net->datagrams;
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, tcp ? 14 : 4, SYS_socket);
    hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARG(0));
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 1, AF_UNIX);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ALLOW);
    if (tcp) { /* other protocols, even MPTCP, bypass the rules for ports */
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 1, 0, AF_INET);
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 8, AF_INET6);
        hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARG(1));
        hfsbi_bpf(s, HFSBI_BPF_AND, 0, 0, 0xF);
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 3, SOCK_STREAM);
        hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARG(2));
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 2, 0, 0);
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 1, 2, 6 /* IPPROTO_TCP */);
        hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 0, 1,
                  udp ? (unsigned)SOCK_DGRAM : ~0u);
        hfsbi_bpf_return(s, HFSBI_SECCOMP_ALLOW);
    }
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ERRNO | EACCES);
    if (!tcp) return;
    /* TCP fast open connects without connect() */
    hfsbi_seccomp_deny_bits(s, SYS_sendto, 3, 0x20000000u);
    hfsbi_seccomp_deny_bits(s, SYS_sendmsg, 2, 0x20000000u);
#ifdef SYS_sendmmsg
    hfsbi_seccomp_deny_bits(s, SYS_sendmmsg, 3, 0x20000000u);
#endif
}

/* SECCOMP_GET_ACTION_AVAIL: true where filters can return an error. */
HFSBI_FN bool hfsbi_seccomp_works(void) {
    unsigned action = HFSBI_SECCOMP_ERRNO;
    return syscall(SYS_seccomp, 2u, 0u, &action) == 0;
}

HFSBI_FN bool hfsbi_seccomp_build(hfsbi_seccomp *s, const hfsbi_reach *net,
                                  bool landlock) {
    hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_ARCH);
    hfsbi_bpf(s, HFSBI_BPF_IF_EQUAL, 1, 0, HFSBI_SECCOMP_ARCH);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ABSENT);
    hfsbi_bpf(s, HFSBI_BPF_LOAD, 0, 0, HFSBI_DATA_NUMBER);
#ifdef __x86_64__
    hfsbi_bpf(s, HFSBI_BPF_IF_AT_LEAST, 0, 1, 0x40000000u);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ABSENT);
#endif
    hfsbi_seccomp_calls(s);
    if (!landlock) hfsbi_seccomp_ptrace(s);
    if (net->mode == HFSBI_REACH_OFF || net->mode == HFSBI_REACH_PORTS)
        hfsbi_seccomp_sockets(s, net);
    hfsbi_bpf_return(s, HFSBI_SECCOMP_ALLOW);
    return !s->full;
}

/* The kernel's struct: length, pointer to the steps. */
HFSBI_FN bool hfsbi_seccomp_enter(const hfsbi_seccomp *s) {
    struct {
        unsigned short        length;
        const hfsbi_bpf_step *steps;
    } program;
    if (!s->count) return true;
    program.length = (unsigned short)s->count;
    program.steps = s->steps;
    return syscall(SYS_seccomp, 1u, 0u, &program) == 0;
}

#else

HFSBI_FN bool hfsbi_seccomp_works(void) {
    return false;
}

HFSBI_FN bool hfsbi_seccomp_build(hfsbi_seccomp *s, const hfsbi_reach *net,
                                  bool landlock) {
    (void)s, (void)net, (void)landlock;
    return false;
}

HFSBI_FN bool hfsbi_seccomp_enter(const hfsbi_seccomp *s) {
    return !s->count;
}

#endif
