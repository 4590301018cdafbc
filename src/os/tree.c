/* tree.c - finds and signals the processes of a command, also those that
   left its group. */
#include "os_private.h"

/* A chain of parents longer than this is not followed. */
#define HFSBI_TREE_DEPTH 128

#ifdef HFSBI_LINUX

/* Now, as the kernel stamps processes: in ticks since boot; 0: not known. */
static unsigned long long hfsbi_ticks_now(void) {
    struct timespec now = HFSB_INIT;
    long            ticks = sysconf(_SC_CLK_TCK);
    if (ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    return (unsigned long long)now.tv_sec * (unsigned long long)ticks +
           (unsigned long long)now.tv_nsec * (unsigned long long)ticks /
               1000000000u;
}

#endif

HFSBI_FN void hfsbi_tree_init(hfsbi_tree *tree, const hfsb_alloc *alloc) {
    memset(tree, 0, sizeof *tree);
    tree->alloc = *alloc;
    tree->pidfd = -1;
#ifdef HFSBI_LINUX
    tree->since = hfsbi_ticks_now();
    if (tree->since > 0) tree->since--;
#endif
}

HFSBI_FN void hfsbi_tree_free(hfsbi_tree *tree) {
    hfsbi_close(&tree->pidfd);
    if (tree->known)
        hfsbi_array_free(&tree->alloc, tree->known, tree->known_cap,
                         sizeof *tree->known);
    tree->known = NULL;
    tree->known_count = tree->known_cap = 0;
}

#ifdef HFSBI_LINUX

/* ---- what /proc says about one process ---- */

static int hfsbi_proc_file(long pid, const char *name) {
    char path[64];
    int  fd;
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    do fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* The first bytes of the file, NUL-terminated; their number, 0 on failure. */
static size_t hfsbi_proc_head(long pid, const char *name, char *out,
                              size_t size) {
    int    fd = hfsbi_proc_file(pid, name);
    size_t len = 0;
    if (fd < 0) return 0;
    while (len < size - 1) {
        ssize_t n = hfsbi_read(fd, out + len, size - 1 - len);
        if (n <= 0) break;
        len += (size_t)n;
    }
    hfsbi_close(&fd);
    out[len] = '\0';
    return len;
}

/* The line of stat is: pid (name) state parent group session ... with the
   start as its 22nd field. A name may hold anything, also ") ". */
static bool hfsbi_process_read(long pid, hfsbi_process *p) {
    char        line[1024];
    const char *at;
    int         i;
    if (hfsbi_proc_head(pid, "stat", line, sizeof line) == 0) return false;
    at = strrchr(line, ')');
    if (!at || at[1] != ' ' || !at[2]) return false;
    memset(p, 0, sizeof *p);
    p->pid = pid;
    p->state = at[2];
    at += 3;
    for (i = 4; i <= 22; i++) {
        char *end;
        long  value = strtol(at, &end, 10);
        if (end == at) return false;
        if (i == 4) p->parent = value;
        if (i == 5) p->group = value;
        if (i == 6) p->session = value;
        if (i == 22) p->start = strtoull(at, &end, 10);
        at = end;
    }
    return true;
}

static bool hfsbi_process_dead(const hfsbi_process *p) {
    return p->state == 'Z' || p->state == 'X' || p->state == 'x';
}

/* True when the environment has the marker as a whole variable. Read in
   pieces, since it may be megabytes. */
static bool hfsbi_process_marked(long pid, hfsb_str marker) {
    char    piece[4096];
    int     fd = hfsbi_proc_file(pid, "environ");
    size_t  same = 0; /* bytes that agree so far; above len: none any more */
    bool    found = false;
    ssize_t n, i;
    while (fd >= 0 && !found && (n = hfsbi_read(fd, piece, sizeof piece)) > 0)
        for (i = 0; i < n && !found; i++) {
            if (piece[i] == '\0') {
                found = same == marker.len;
                same = 0;
            } else if (same < marker.len && piece[i] == marker.ptr[same]) {
                same++;
            } else {
                same = marker.len + 1;
            }
        }
    hfsbi_close(&fd);
    return found;
}

/* A thread's number opens the same files as a process's. */
static bool hfsbi_process_is_thread(long pid) {
    char        text[512];
    const char *at;
    if (hfsbi_proc_head(pid, "status", text, sizeof text) == 0) return true;
    at = strstr(text, "\nTgid:");
    return at && strtol(at + 6, NULL, 10) != pid;
}

#endif

/* ---- the leader ---- */

HFSBI_FN void hfsbi_tree_start(hfsbi_tree *tree, pid_t leader) {
    tree->leader = leader;
    tree->held = true;
#ifdef HFSBI_LINUX
#ifdef SYS_pidfd_open
    tree->pidfd =
        hfsbi_above_standard((int)syscall(SYS_pidfd_open, leader, 0u));
#endif
    if (tree->pidfd < 0) {
        hfsbi_process p;
        if (hfsbi_process_read((long)leader, &p)) tree->leader_start = p.start;
    }
#endif
}

/* True when the number is another process's by now: the host has waited for
   the leader, and another child of it got the number. */
static bool hfsbi_tree_number_reused(const hfsbi_tree *tree) {
#ifdef HFSBI_LINUX
    hfsbi_process p;
    return tree->leader_start && hfsbi_process_read((long)tree->leader, &p) &&
           p.start != tree->leader_start;
#else
    (void)tree;
    return false;
#endif
}

static int hfsbi_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    int rc;
    memset(info, 0, sizeof *info);
    do rc = waitid(type, id, info, WEXITED | WNOHANG | options);
    while (rc < 0 && errno == EINTR);
    return rc;
}

HFSBI_FN int hfsbi_tree_wait(const hfsbi_tree *tree, siginfo_t *info,
                             int options) {
    if (tree->pidfd >= 0) {
        idtype_t by_descriptor = (idtype_t)3; /* P_PIDFD, Linux 5.4 */
        int rc = hfsbi_waitid(by_descriptor, (id_t)tree->pidfd, info, options);
        if (rc == 0 || errno != EINVAL) return rc;
    }
    if (hfsbi_tree_number_reused(tree)) {
        errno = ECHILD;
        return -1;
    }
    return hfsbi_waitid(P_PID, (id_t)tree->leader, info, options);
}

/* True while the leader is held; notes when the host took it away. */
static bool hfsbi_tree_holds(hfsbi_tree *tree) {
    siginfo_t info;
    if (tree->held) tree->held = hfsbi_tree_wait(tree, &info, WNOWAIT) == 0;
    return tree->held;
}

#ifdef HFSBI_LINUX

/* ---- who belongs to it ---- */

static hfsbi_process *hfsbi_tree_known(const hfsbi_tree    *tree,
                                       const hfsbi_process *p) {
    size_t i;
    for (i = 0; i < tree->known_count; i++)
        if (tree->known[i].pid == p->pid && tree->known[i].start == p->start)
            return &tree->known[i];
    return NULL;
}

/* By its own number, group, session or environment, or by an ancestor's. */
static bool hfsbi_tree_has(const hfsbi_tree *tree, const hfsbi_process *p) {
    hfsbi_process q = *p;
    int           depth;
    for (depth = 0; depth < HFSBI_TREE_DEPTH; depth++) {
        if (q.start < tree->since) return false;
        if (tree->numbers_ours &&
            (q.pid == tree->leader || q.group == tree->leader ||
             q.session == tree->leader))
            return true;
        if (hfsbi_tree_known(tree, &q)) return true;
        if (tree->marker.len && hfsbi_process_marked(q.pid, tree->marker))
            return true;
        if (q.parent <= 1 || !hfsbi_process_read(q.parent, &q)) return false;
    }
    return false;
}

/* Without memory it is not remembered, but the next search finds it again. */
static void hfsbi_tree_remember(hfsbi_tree *tree, const hfsbi_process *p) {
    hfsbi_process *item = hfsbi_tree_known(tree, p), *grown;
    if (!item) {
        if (tree->known_count == tree->known_cap) {
            grown = (hfsbi_process *)hfsbi_array_grow(
                &tree->alloc, tree->known, &tree->known_cap,
                tree->known_count + 1, sizeof *grown);
            if (!grown) return;
            tree->known = grown;
        }
        item = &tree->known[tree->known_count++];
    }
    *item = *p;
    item->seen = true;
}

static void hfsbi_tree_forget_unseen(hfsbi_tree *tree) {
    size_t i, kept = 0;
    for (i = 0; i < tree->known_count; i++)
        if (tree->known[i].seen) tree->known[kept++] = tree->known[i];
    tree->known_count = kept;
}

/* ---- the search ---- */

/* True when pid is a process of the tree that runs. What cannot be read for
   want of descriptors or memory leaves the search blind. */
static bool hfsbi_tree_visit(hfsbi_tree *tree, long pid, hfsbi_process *p) {
    errno = 0;
    if (!hfsbi_process_read(pid, p)) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            tree->blind = true;
        return false;
    }
    return p->start >= tree->since && !hfsbi_process_dead(p) &&
           pid != (long)getpid() && hfsbi_tree_has(tree, p);
}

static void hfsbi_tree_look(hfsbi_tree *tree) {
    hfsbi_process leader;
    tree->blind = false;
    /* when the number of a leader that is gone is in use, it is reused */
    tree->numbers_ours = hfsbi_tree_holds(tree) ||
                         !hfsbi_process_read((long)tree->leader, &leader);
}

static long hfsbi_pid_of_name(const char *name) {
    long pid = 0;
    for (; *name >= '0' && *name <= '9' && pid < LONG_MAX / 10 - 1; name++)
        pid = pid * 10 + (*name - '0');
    return *name ? 0 : pid;
}

/* The next number of a process in the list of /proc; 0 at its end. */
static long hfsbi_next_pid(DIR *dir) {
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        long pid = hfsbi_pid_of_name(entry->d_name);
        if (pid > 0) return pid;
    }
    return 0;
}

/* ---- what a survivor is called ---- */

/* Its arguments with blanks between, in valid UTF-8. */
static void hfsbi_entry_fill(hfsb_proc_entry *entry, long pid) {
    char     raw[256];
    hfsb_str text;
    size_t   at = 0, len = 0, i;
    entry->pid = pid;
    text.ptr = raw;
    text.len = hfsbi_proc_head(pid, "cmdline", raw, sizeof raw);
    if (text.len == 0)
        text.len = hfsbi_proc_head(pid, "comm", raw, sizeof raw);
    while (text.len &&
           (raw[text.len - 1] == '\0' || raw[text.len - 1] == '\n'))
        text.len--;
    for (i = 0; i < text.len; i++)
        if ((unsigned char)raw[i] < ' ' || raw[i] == 0x7F) raw[i] = ' ';
    while (at < text.len) {
        unsigned long code;
        char          out[4];
        size_t        n;
        at += hfsb_utf8_step(text, at, &code, NULL);
        n = hfsb_utf8_encode(code, out);
        if (len + n >= sizeof entry->command) break;
        memcpy(entry->command + len, out, n);
        len += n;
    }
    entry->command[len] = '\0';
}

/* The number that was given to the newest process; 0 when not known. */
static long hfsbi_last_pid(void) {
    char        line[128];
    const char *at;
    ssize_t     n;
    int         fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    n = hfsbi_read(fd, line, sizeof line - 1);
    hfsbi_close(&fd);
    if (n <= 0) return 0;
    line[n] = '\0';
    at = strrchr(line, ' ');
    return at ? strtol(at + 1, NULL, 10) : 0;
}

/* Looks at the numbers from first to last, one by one. */
static size_t hfsbi_tree_list_range(hfsbi_tree *tree, long first, long last,
                                    hfsb_proc_entry *list, size_t max) {
    hfsbi_process p;
    size_t        n = 0;
    for (; first <= last && n < max; first++)
        if (hfsbi_tree_visit(tree, first, &p) &&
            !hfsbi_process_is_thread(first))
            hfsbi_entry_fill(&list[n++], first);
    return n;
}

HFSBI_FN size_t hfsbi_tree_list(hfsbi_tree *tree, long long ran_ms,
                                hfsb_proc_entry *list, size_t max) {
    long          leader = (long)tree->leader, above = 0, last, pid;
    hfsbi_process p;
    size_t        n = 0;
    DIR          *dir;
    /* numbers rise until they wrap, which takes longer than a second */
    last = hfsbi_last_pid();
    if (last == leader) return 0;
    if (last > leader && ran_ms < 1000) above = leader;
    hfsbi_tree_look(tree);
    if (above && last - above <= 64)
        return hfsbi_tree_list_range(tree, above + 1, last, list, max);
    dir = opendir("/proc");
    while (dir && n < max && (pid = hfsbi_next_pid(dir)) > 0)
        if (pid > above && pid != leader && hfsbi_tree_visit(tree, pid, &p))
            hfsbi_entry_fill(&list[n++], pid);
    if (dir) (void)closedir(dir);
    return n;
}

/* ---- the search before a signal ---- */

static size_t hfsbi_tree_find_listed(hfsbi_tree *tree) {
    hfsbi_process p;
    size_t        count = 0, i;
    long          pid;
    DIR          *dir = opendir("/proc");
    hfsbi_tree_look(tree);
    if (!dir) tree->blind = true;
    for (i = 0; i < tree->known_count; i++) tree->known[i].seen = false;
    while (dir && (pid = hfsbi_next_pid(dir)) > 0) {
        if (!hfsbi_tree_visit(tree, pid, &p)) continue;
        count++;
        if (!tree->held || p.group != (long)tree->leader)
            hfsbi_tree_remember(tree, &p);
    }
    if (dir) (void)closedir(dir);
    if (!tree->blind) hfsbi_tree_forget_unseen(tree);
    return count;
}

/* ---- signals ---- */

/* The descriptor holds on to one process, whatever becomes of its number. */
static void hfsbi_process_signal(const hfsbi_process *p, int number) {
    hfsbi_process now;
    int           fd = -1;
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    fd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0u);
#endif
    if (!hfsbi_process_read(p->pid, &now) || now.start != p->start) {
        hfsbi_close(&fd);
        return;
    }
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    if (fd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0u);
        hfsbi_close(&fd);
        return;
    }
#endif
    (void)kill((pid_t)p->pid, number); /* an old kernel: seen just now */
}

#else

HFSBI_FN size_t hfsbi_tree_list(hfsbi_tree *tree, long long ran_ms,
                                hfsb_proc_entry *list, size_t max) {
    (void)tree, (void)ran_ms, (void)list, (void)max;
    return 0;
}

#endif

HFSBI_FN size_t hfsbi_tree_find(hfsbi_tree *tree) {
#ifdef HFSBI_LINUX
    size_t count = hfsbi_tree_find_listed(tree);
    if (!tree->blind) return count;
#endif
    tree->blind = true;
    return hfsbi_tree_holds(tree) && kill(-tree->leader, 0) == 0;
}

HFSBI_FN void hfsbi_tree_signal(hfsbi_tree *tree, int number) {
#ifdef HFSBI_LINUX
    size_t i;
#endif
    if (hfsbi_tree_holds(tree)) (void)kill(-tree->leader, number);
#ifdef HFSBI_LINUX
    for (i = 0; i < tree->known_count; i++)
        hfsbi_process_signal(&tree->known[i], number);
#endif
}

/* ---- what commands left behind ---- */

HFSBI_FN hfsbi_span hfsbi_tree_span(hfsbi_tree *tree) {
    hfsbi_span span = HFSB_INIT;
#ifdef HFSBI_LINUX
    span.until = hfsbi_ticks_now();
#endif
    if (!hfsbi_tree_holds(tree)) return span;
    span.session = (long)tree->leader;
    span.since = tree->since;
    span.running = true;
    return span;
}

#ifdef HFSBI_LINUX

/* A whole variable: HFSB_JOB=abc-1, or behind an id that a caller chose,
   HFSB_JOB=build.abc-1 (see job.c). */
static bool hfsbi_owner_named(hfsb_str variable, hfsb_str owner) {
    size_t n = variable.len;
    if (!hfsb_str_starts(variable, HFSB_LIT("HFSB_JOB="))) return false;
    while (n > 0 && variable.ptr[n - 1] >= '0' && variable.ptr[n - 1] <= '9')
        n--;
    if (n == variable.len || n < owner.len + 2) return false;
    if (variable.ptr[--n] != '-') return false;
    n -= owner.len;
    return memcmp(variable.ptr + n, owner.ptr, owner.len) == 0 &&
           (variable.ptr[n - 1] == '=' || variable.ptr[n - 1] == '.');
}

static bool hfsbi_process_owned(long pid, hfsb_str owner) {
    char    piece[4096], variable[512];
    int     fd = hfsbi_proc_file(pid, "environ");
    size_t  len = 0; /* counts on where it no longer fits */
    bool    found = false;
    ssize_t n, i;
    while (fd >= 0 && !found && (n = hfsbi_read(fd, piece, sizeof piece)) > 0)
        for (i = 0; i < n && !found; i++) {
            if (piece[i] != '\0') {
                if (len < sizeof variable) variable[len] = piece[i];
                len++;
                continue;
            }
            found = len <= sizeof variable &&
                    hfsbi_owner_named(hfsb_str_make(variable, len), owner);
            len = 0;
        }
    hfsbi_close(&fd);
    return found;
}

/* The session that it is in by birth, or NULL. One that it made itself has
   its own number, which is the leader's or no command's. */
static hfsbi_span *hfsbi_remains_span(const hfsbi_remains *remains,
                                      const hfsbi_process *p) {
    size_t i;
    for (i = 0; i < remains->count; i++) {
        hfsbi_span *span = &remains->spans[i];
        if (span->session > 0 && span->session == p->session &&
            p->start >= span->since &&
            (span->running || p->start <= span->until))
            return span;
    }
    return NULL;
}

/* By itself or by an ancestor. *told: it has got its signal already. */
static bool hfsbi_remains_has(const hfsbi_remains *remains,
                              const hfsbi_process *p, bool *told) {
    hfsbi_process     q = *p;
    const hfsbi_span *span;
    long              self = (long)getpid();
    int               depth;
    *told = false;
    for (depth = 0; depth < HFSBI_TREE_DEPTH; depth++) {
        if (q.start < remains->since || q.pid == self) return false;
        span = hfsbi_remains_span(remains, &q);
        if (span) {
            *told = remains->gently && span->running;
            return true;
        }
        if (hfsbi_process_owned(q.pid, remains->owner)) return true;
        if (q.parent <= 1 || !hfsbi_process_read(q.parent, &q)) return false;
    }
    return false;
}

/* A session with a member that was born into it has had its number all the
   time: so those born later are of it, too. */
static void hfsbi_remains_lengthen(const hfsbi_remains *remains) {
    unsigned long long now = hfsbi_ticks_now();
    hfsbi_process      p;
    hfsbi_span        *span;
    long               pid;
    DIR               *dir = opendir("/proc");
    while (dir && (pid = hfsbi_next_pid(dir)) > 0)
        if (hfsbi_process_read(pid, &p) && !hfsbi_process_dead(&p) &&
            (span = hfsbi_remains_span(remains, &p)) != NULL &&
            span->until < now)
            span->until = now;
    if (dir) (void)closedir(dir);
}

HFSBI_FN size_t hfsbi_remains_signal(const hfsbi_remains *remains) {
    hfsbi_process p;
    size_t        count = 0;
    bool          told;
    long          pid;
    DIR          *dir;
    hfsbi_remains_lengthen(remains);
    dir = opendir("/proc");
    while (dir && (pid = hfsbi_next_pid(dir)) > 0) {
        if (!hfsbi_process_read(pid, &p) || hfsbi_process_dead(&p) ||
            !hfsbi_remains_has(remains, &p, &told))
            continue;
        count++;
        if (told) continue;
        hfsbi_process_signal(&p, remains->gently ? SIGTERM : SIGKILL);
        if (remains->gently) hfsbi_process_signal(&p, SIGCONT);
    }
    if (dir) (void)closedir(dir);
    return count;
}

#else

HFSBI_FN size_t hfsbi_remains_signal(const hfsbi_remains *remains) {
    (void)remains;
    return 0;
}

#endif
