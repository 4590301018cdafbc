/* landlock.c - which files, ports and processes a command may reach.

   A ruleset names the rights that it handles, which are then denied, and
   grants some of them beneath certain folders. It is built once; each command
   enforces it on itself with one system call.

   The kernel's version of the interface (ABI) decides which rights exist:

       1  files and folders            4  TCP ports
       2  moving between folders       5  ioctl on devices
       3  truncating                   6  signals, abstract Unix sockets

   A right that the kernel does not have is left out. In ABI 1 nothing can be
   moved or linked from one folder to another, whatever is granted. The
   numbers are from the kernel's documentation: headers of libc may lack them.
   */
#include "proc_private.h"

#ifdef HFSBI_LINUX

#define HFSBI_SYS_LANDLOCK_CREATE   444
#define HFSBI_SYS_LANDLOCK_ADD_RULE 445
#define HFSBI_SYS_LANDLOCK_RESTRICT 446

/* Rights on files. */
#define HFSBI_LL_EXECUTE    (1u << 0)
#define HFSBI_LL_WRITE_FILE (1u << 1)
#define HFSBI_LL_READ_FILE  (1u << 2)
#define HFSBI_LL_READ_DIR   (1u << 3)
#define HFSBI_LL_CHANGE_DIR /* remove, and make all but devices */ \
    (0x30u | 1u << 7 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 12)
#define HFSBI_LL_MAKE_DEVICE (1u << 6 | 1u << 11)
#define HFSBI_LL_REFER       (1u << 13)
#define HFSBI_LL_TRUNCATE    (1u << 14)
#define HFSBI_LL_IOCTL       (1u << 15)

#define HFSBI_LL_READ \
    (HFSBI_LL_EXECUTE | HFSBI_LL_READ_FILE | HFSBI_LL_READ_DIR)
#define HFSBI_LL_WRITE                                            \
    (HFSBI_LL_WRITE_FILE | HFSBI_LL_CHANGE_DIR | HFSBI_LL_REFER | \
     HFSBI_LL_TRUNCATE)
/* The rights that a file, not a folder, can have. */
#define HFSBI_LL_OF_FILE                                           \
    (HFSBI_LL_EXECUTE | HFSBI_LL_WRITE_FILE | HFSBI_LL_READ_FILE | \
     HFSBI_LL_TRUNCATE | HFSBI_LL_IOCTL)

typedef struct hfsbi_landlock_attr {
    unsigned long long files, net, scoped;
} hfsbi_landlock_attr;

typedef struct hfsbi_landlock_port {
    unsigned long long rights, port;
} hfsbi_landlock_port;

HFSBI_FN int hfsbi_landlock_abi(void) {
    long abi = syscall(HFSBI_SYS_LANDLOCK_CREATE, NULL, (size_t)0, 1u);
    return abi < 1 ? 0 : abi > 7 ? 7 : (int)abi;
}

static unsigned hfsbi_landlock_has(int abi) {
    unsigned all =
        HFSBI_LL_READ | HFSBI_LL_WRITE | HFSBI_LL_MAKE_DEVICE | HFSBI_LL_IOCTL;
    if (abi < 2) all &= ~HFSBI_LL_REFER;
    if (abi < 3) all &= ~HFSBI_LL_TRUNCATE;
    if (abi < 5) all &= ~HFSBI_LL_IOCTL;
    return all;
}

/* The rights that a use of a place needs; 0: none, other mechanisms handle
   it. */
static unsigned hfsbi_landlock_rights(char use) {
    switch (use) {
    case HFSBI_PLACE_READ: return HFSBI_LL_READ;
    case HFSBI_PLACE_WRITE: return HFSBI_LL_READ | HFSBI_LL_WRITE;
    case HFSBI_PLACE_DEVICE:
        return HFSBI_LL_READ | HFSBI_LL_WRITE_FILE | HFSBI_LL_TRUNCATE |
               HFSBI_LL_IOCTL;
    default: return 0;
    }
}

/* The kernel's struct has 12 bytes: rights 8 | descriptor 4. False with errno;
   a place that is gone is skipped. */
static bool hfsbi_landlock_allow(int ruleset, const char *path,
                                 unsigned rights) {
    unsigned char      rule[12];
    unsigned long long wide = rights;
    struct stat        st;
    bool               ok;
    int                fd = hfsbi_openat(AT_FDCWD, path, O_PATH, 0);
    if (fd < 0) return errno == ENOENT || errno == EACCES;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) wide &= HFSBI_LL_OF_FILE;
    memcpy(rule, &wide, 8);
    memcpy(rule + 8, &fd, 4);
    ok = wide == 0 ||
         syscall(HFSBI_SYS_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0u) == 0;
    hfsbi_close(&fd);
    return ok;
}

static bool hfsbi_landlock_allow_ports(int ruleset, const hfsbi_reach *net) {
    size_t i;
    for (i = 0; i < net->port_count; i++) {
        hfsbi_landlock_port rule;
        rule.rights = 3; /* bind and connect */
        rule.port = net->ports[i];
        if (syscall(HFSBI_SYS_LANDLOCK_ADD_RULE, ruleset, 2, &rule, 0u) != 0)
            return false;
    }
    return true;
}

HFSBI_FN int hfsbi_landlock_open(int abi, hfsb_confine_level level,
                                 const hfsb_buf    *places,
                                 const hfsbi_reach *net) {
    hfsbi_landlock_attr attr = HFSB_INIT;
    unsigned            handled = hfsbi_landlock_has(abi);
    size_t              size = abi < 4 ? 8 : abi < 6 ? 16 : 24, at;
    bool                ports =
        net && abi >= 4 &&
        (net->mode == HFSBI_REACH_OFF || net->mode == HFSBI_REACH_PORTS);
    int fd;
    if (level == HFSB_CONFINE_WRITE) handled &= ~HFSBI_LL_READ;
    attr.files = handled;
    if (ports) attr.net = 3;
    if (net && abi >= 6) attr.scoped = 3; /* abstract sockets, signals */
    fd = (int)syscall(HFSBI_SYS_LANDLOCK_CREATE, &attr, size, 0u);
    fd = hfsbi_raise(fd, HFSBI_CONFINE_FD);
    if (fd < 0) return -1;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *place = places->ptr + at;
        unsigned    rights = hfsbi_landlock_rights(*place) & handled;
        if (rights && !hfsbi_landlock_allow(fd, place + 1, rights)) {
            hfsbi_close(&fd);
            return -1;
        }
    }
    if (ports && !hfsbi_landlock_allow_ports(fd, net)) hfsbi_close(&fd);
    return fd;
}

HFSBI_FN bool hfsbi_landlock_enter(int ruleset) {
    return ruleset < 0 ||
           syscall(HFSBI_SYS_LANDLOCK_RESTRICT, ruleset, 0u) == 0;
}

#else

HFSBI_FN int hfsbi_landlock_abi(void) {
    return 0;
}

HFSBI_FN int hfsbi_landlock_open(int abi, hfsb_confine_level level,
                                 const hfsb_buf    *places,
                                 const hfsbi_reach *net) {
    (void)abi, (void)level, (void)places, (void)net;
    errno = ENOSYS;
    return -1;
}

HFSBI_FN bool hfsbi_landlock_enter(int ruleset) {
    return ruleset < 0;
}

#endif
