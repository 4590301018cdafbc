/* tree.c - finds the processes of commands in /proc, and signals them.

   A command is started as the leader of a session, but its processes may leave
   that session, clear their environment or lose their parent. A process
   belongs to a command when one of these holds for it, or for one of its
   ancestors:

       session   it was born into the command's session
       marker    its environment has the command's HFSB_JOB
       known     an earlier search found it (pid and start time agree)

   There is one search. A snapshot reads each process of /proc once; any number
   of trees, each the processes of one command, and the sweep of a tools object
   are then matched against that snapshot: members by themselves first, then
   the descendants of those.

   Commands that a loop drives share the snapshots of its scan, which a thread
   of the loop reads. While thousands of processes are killed, a pass over /proc
   takes long, and the loop must go on serving.

   A number alone never decides who gets a signal: pids and session numbers are
   reused. A session number counts for processes that were started while it was
   certainly the command's, and a signal goes to a pid only after its start
   time was compared again.

   Where the command has a cgroup of its own (see limits.c), KILL goes there as
   well, which no process escapes.

   Where /proc cannot be read (other systems, no descriptors left) a snapshot
   is blind: then only the command's process group is signalled. */
#include "proc_private.h"

#define HFSBI_NO_PROCESS UINT_MAX /* no index */

/* With more threads on the system even a pass over /proc that reads only a few
   processes takes a millisecond. */
#define HFSBI_TREE_MANY 1000

/* ms that one snapshot waits for processes in the middle of execve() */
#define HFSBI_TREE_PATIENCE 100

/* What a match has determined about a process. */
enum {
    HFSBI_KIN_OPEN,     /* not examined yet */
    HFSBI_KIN_STRANGER, /* does not belong to the family */
    HFSBI_KIN_MEMBER,
    HFSBI_KIN_HELD, /* a member by the session of a command that still runs */
    HFSBI_KIN_KNOWN /* a member that the family knew before */
};

/* ---- /proc ---- */

#ifdef HFSBI_LINUX

/* The clock that start times are measured by: ticks since boot; 0: unknown. */
static unsigned long long hfsbi_ticks_now(void) {
    struct timespec now = HFSB_INIT;
    long            ticks = sysconf(_SC_CLK_TCK);
    if (ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    return (unsigned long long)now.tv_sec * (unsigned long long)ticks +
           (unsigned long long)now.tv_nsec * (unsigned long long)ticks /
               1000000000u;
}

/* Opens a file of /proc/PID; -1 with errno. */
static int hfsbi_proc_file(long pid, const char *name) {
    char path[64];
    int  fd;
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    do fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Reads the first bytes of a file of /proc/PID and appends a NUL. Returns
   their number, 0 on failure. */
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

/* Fills *p from /proc/PID/stat; false with errno when it cannot be read. The
   line is: pid (name) state parent group session ..., the number of threads its
   20th field, the start time its 22nd. A name may contain any character, ") "
   included. A process whose first thread has ended looks like a zombie while
   the others run. */
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
        if (i == 20) p->headless = p->state == 'Z' && value > 1;
        if (i == 22) p->start = strtoull(at, &end, 10);
        at = end;
    }
    return true;
}

/* The part of a job's id that names its tools object: abc of abc-1, and of
   build.abc-1 where a caller chose the id (see job.c). Empty: it has none. */
static hfsb_str hfsbi_job_owner(hfsb_str id) {
    hfsb_str none = HFSB_INIT;
    size_t   end = id.len, start;
    while (end > 0 && hfsbi_is_digit(id.ptr[end - 1])) end--;
    if (end == id.len || end == 0 || id.ptr[--end] != '-') return none;
    for (start = end; start > 0 && id.ptr[start - 1] != '.'; start--) continue;
    return hfsb_str_make(id.ptr + start, end - start);
}

/* A thread that has the memory of a process: not a first one that has ended. */
static long hfsbi_process_thread(const hfsbi_process *p) {
    char           path[64];
    struct dirent *entry;
    DIR           *dir;
    long           thread = p->pid;
    if (!p->headless) return thread;
    (void)snprintf(path, sizeof path, "/proc/%ld/task", p->pid);
    dir = opendir(path);
    while (dir && thread == p->pid && (entry = readdir(dir)) != NULL) {
        long other = strtol(entry->d_name, NULL, 10);
        if (other > 0) thread = other;
    }
    if (dir) (void)closedir(dir);
    return thread;
}

/* Finds HFSB_JOB in the environment and stores the hashes of its value. Reads
   in pieces, since an environment may have megabytes. Hashes are enough: a
   process that could choose a colliding value could just as well copy the
   right one. *empty becomes false if a byte came. False with errno when the
   environment cannot be read. */
static bool hfsbi_process_read_env(hfsbi_process *p, bool *empty) {
    static const char  name[] = "HFSB_JOB=";
    char               piece[4096], id[512];
    const size_t       skip = sizeof name - 1;
    size_t             len = 0; /* of the variable so far */
    bool               named = true, found = false;
    unsigned long long hash = HFSB_FNV_START;
    ssize_t            n = 0, i;
    int fd = hfsbi_proc_file(hfsbi_process_thread(p), "environ");
    p->env_read = true;
    if (fd < 0) return false;
    while (!found && (n = hfsbi_read(fd, piece, sizeof piece)) > 0) {
        *empty = false;
        for (i = 0; i < n && !found; i++) {
            if (piece[i] == '\0') {
                found = named && len > skip;
                if (found) break;
                len = 0;
                named = true;
                continue;
            }
            if (len < skip) {
                named = named && piece[i] == name[len];
            } else if (named) {
                hash = hfsb_fnv_add(hash, hfsb_str_make(piece + i, 1));
                if (len - skip < sizeof id) id[len - skip] = piece[i];
            }
            len++;
        }
    }
    hfsbi_close(&fd);
    if (!found) return true;
    p->job = hash;
    if (len - skip <= sizeof id) {
        hfsb_str owner = hfsbi_job_owner(hfsb_str_make(id, len - skip));
        if (owner.len) p->owner = hfsb_fnv(owner);
    }
    return true;
}

/* True if a process whose environment was just read as empty has one: execve()
   replaces the memory first, and fills in arguments and environment a moment
   later. Its line in /proc has the size of its memory as 23rd field (0: it has
   none, as threads of the kernel), and where its environment begins and ends
   as 50th and 51st (0: not set up yet). */
static bool hfsbi_process_executes(const hfsbi_process *p) {
    char               line[1024];
    const char        *at = line;
    unsigned long long memory = 0, begin = 0, end = 0;
    int                i;
    if (hfsbi_proc_head(p->pid, "stat", line, sizeof line) == 0 ||
        (at = strrchr(line, ')')) == NULL || !at[1] || !at[2])
        return false;
    at += 3;
    for (i = 4; i <= 51; i++) {
        char *next;
        begin = end;
        end = strtoull(at, &next, 10);
        if (next == at) return false;
        if (i == 23) memory = end;
        at = next;
    }
    return memory > 0 && (end == 0 || end > begin);
}

/* Reads the marker of a process, again while it executes and *patience, in ms,
   lasts; if that is too short, the next search reads it. */
static bool hfsbi_process_read_job(hfsbi_process *p, int *patience) {
    bool empty = true;
    if (!hfsbi_process_read_env(p, &empty)) return false;
    while (empty && hfsbi_process_executes(p)) {
        if (--*patience < 0) {
            p->env_read = false;
            break;
        }
        (void)poll(NULL, 0, 1);
        if (!hfsbi_process_read_env(p, &empty)) return false;
    }
    return true;
}

/* The pid of the newest process, 0 when unknown, and the number of threads of
   the system, LONG_MAX when unknown. The line ends in "running/threads
   pid". */
static long hfsbi_last_pid(long *threads) {
    char        line[128];
    const char *at;
    ssize_t     n;
    int         fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    *threads = LONG_MAX;
    if (fd < 0) return 0;
    n = hfsbi_read(fd, line, sizeof line - 1);
    hfsbi_close(&fd);
    if (n <= 0) return 0;
    line[n] = '\0';
    at = strchr(line, '/');
    if (at) *threads = strtol(at + 1, NULL, 10);
    at = strrchr(line, ' ');
    return at ? strtol(at + 1, NULL, 10) : 0;
}

/* Fills the entry of a survivor: its arguments with blanks between, in valid
   UTF-8. */
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

/* Signals one process. A pidfd names the same process even if its pid is
   reused; the start time shows that it is the right one. */
static void hfsbi_process_signal(const hfsbi_process *p, int number) {
    hfsbi_process now;
    int           fd = -1;
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    fd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0u);
#endif
    if (hfsbi_process_read(p->pid, &now) && now.start == p->start) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
        if (fd >= 0)
            (void)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0u);
#endif
        if (fd < 0) (void)kill((pid_t)p->pid, number); /* an old kernel */
    }
    hfsbi_close(&fd);
}

#else /* no /proc: every snapshot is blind, so that no list has an entry */

static unsigned long long hfsbi_ticks_now(void) {
    return 0;
}

static int hfsbi_proc_file(long pid, const char *name) {
    (void)pid, (void)name;
    return -1;
}

static bool hfsbi_process_read(long pid, hfsbi_process *p) {
    (void)pid, (void)p;
    return false;
}

static bool hfsbi_process_read_job(hfsbi_process *p, int *patience) {
    (void)p, (void)patience;
    return true;
}

static long hfsbi_last_pid(long *threads) {
    *threads = 0;
    return 0;
}

static void hfsbi_entry_fill(hfsb_proc_entry *entry, long pid) {
    (void)entry, (void)pid;
}

static void hfsbi_process_signal(const hfsbi_process *p, int number) {
    (void)p, (void)number;
}

#endif

HFSBI_FN unsigned long long hfsbi_process_start(long pid) {
    hfsbi_process p;
    return hfsbi_process_read(pid, &p) ? p.start : 0;
}

/* A zombie has ended, though its pid is still in use. */
static bool hfsbi_process_ended(const hfsbi_process *p) {
    return (p->state == 'Z' && !p->headless) || p->state == 'X' ||
           p->state == 'x';
}

/* ---- snapshots ---- */

HFSBI_FN void hfsbi_snapshot_init(hfsbi_snapshot   *snap,
                                  const hfsb_alloc *alloc) {
    snap->alloc = *alloc;
    snap->since = 0;
    snap->at = -1;
    snap->cost_ms = 0;
    snap->patience = 0;
    snap->blind = true;
    snap->list = snap->few;
    snap->count = 0;
    snap->cap = HFSBI_SNAPSHOT_FEW;
}

HFSBI_FN void hfsbi_snapshot_free(hfsbi_snapshot *snap) {
    if (snap->list != snap->few)
        hfsbi_array_free(&snap->alloc, snap->list, snap->cap,
                         sizeof *snap->list);
    hfsbi_snapshot_init(snap, &snap->alloc);
}

/* Appends a process. When out of memory, the snapshot keeps those that fit. */
static void hfsbi_snapshot_add(hfsbi_snapshot *snap, const hfsbi_process *p) {
    if (snap->count == snap->cap) {
        size_t         cap = snap->cap * 2;
        hfsbi_process *grown =
            (hfsbi_process *)hfsbi_array(&snap->alloc, cap, sizeof *grown);
        if (!grown) {
            snap->blind = true;
            return;
        }
        memcpy(grown, snap->list, snap->count * sizeof *grown);
        if (snap->list != snap->few)
            hfsbi_array_free(&snap->alloc, snap->list, snap->cap,
                             sizeof *grown);
        snap->list = grown;
        snap->cap = cap;
    }
    snap->list[snap->count++] = *p;
}

/* Marks the snapshot blind when errno is about this process's own limits: then
   more processes may exist than can be seen. */
static void hfsbi_snapshot_note_errno(hfsbi_snapshot *snap) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        snap->blind = true;
}

static int hfsbi_process_order(const void *a, const void *b) {
    long x = ((const hfsbi_process *)a)->pid;
    long y = ((const hfsbi_process *)b)->pid;
    return x < y ? -1 : x > y;
}

/* Converts a name in /proc to a pid; 0: not a pid. */
static long hfsbi_pid_of_name(const char *name) {
    long pid = 0;
    for (; hfsbi_is_digit(*name) && pid < LONG_MAX / 10 - 1; name++)
        pid = pid * 10 + (*name - '0');
    return *name ? 0 : pid;
}

static hfsbi_process *hfsbi_snapshot_find(const hfsbi_snapshot *snap,
                                          long                  pid) {
    size_t low = 0, high = snap->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (snap->list[middle].pid < pid) low = middle + 1;
        else high = middle;
    }
    return low < snap->count && snap->list[low].pid == pid ? &snap->list[low]
                                                           : NULL;
}

/* Links each process to its parent, if that is listed. */
static void hfsbi_snapshot_link(hfsbi_snapshot *snap) {
    size_t i;
    for (i = 0; i < snap->count; i++) snap->list[i].child = HFSBI_NO_PROCESS;
    for (i = 0; i < snap->count; i++) {
        hfsbi_process *p = &snap->list[i];
        hfsbi_process *parent = hfsbi_snapshot_find(snap, p->parent);
        p->sibling = HFSBI_NO_PROCESS;
        if (!parent || parent == p) continue;
        p->sibling = parent->child;
        parent->child = (unsigned)i;
    }
}

/* Reads the processes from the pid `first` on. A /proc that does not list this
   process is not a real one, or hides too much to rely on. */
static void hfsbi_snapshot_read(hfsbi_snapshot *snap, long first) {
    long           pid, self = (long)getpid();
    struct dirent *entry;
    hfsbi_process  p;
    DIR           *dir = opendir("/proc");
    snap->at = hfsb_clock_ms();
    snap->count = 0;
    snap->patience = HFSBI_TREE_PATIENCE;
    snap->blind = false;
    while (dir && (entry = readdir(dir)) != NULL) {
        pid = hfsbi_pid_of_name(entry->d_name);
        if (pid == self) self = 0;
        if (pid < first) continue;
        errno = 0;
        if (!hfsbi_process_read(pid, &p)) hfsbi_snapshot_note_errno(snap);
        else if (p.start >= snap->since) hfsbi_snapshot_add(snap, &p);
    }
    if (dir) (void)closedir(dir);
    if (self) snap->blind = true;
    hfsbi_sort(snap->list, snap->count, sizeof *snap->list,
               hfsbi_process_order);
    hfsbi_snapshot_link(snap);
    snap->cost_ms = hfsb_clock_ms() - snap->at;
}

HFSBI_FN void hfsbi_snapshot_take(hfsbi_snapshot *snap) {
    hfsbi_snapshot_read(snap, 1);
}

/* ---- scans: snapshots that a thread takes ---- */

/* Copies what an earlier snapshot knows of the same processes, and reads the
   environments of the others. A marker that a process once had still counts,
   whatever it executes later. */
static void hfsbi_snapshot_read_jobs(hfsbi_snapshot       *snap,
                                     const hfsbi_snapshot *before) {
    size_t i;
    for (i = 0; i < snap->count; i++) {
        hfsbi_process       *p = &snap->list[i];
        const hfsbi_process *old = hfsbi_snapshot_find(before, p->pid);
        if (old && old->start == p->start && old->env_read) {
            p->job = old->job;
            p->owner = old->owner;
            p->env_read = true;
            continue;
        }
        errno = 0;
        if (!hfsbi_process_read_job(p, &snap->patience))
            hfsbi_snapshot_note_errno(snap);
    }
}

static hfsbi_scanner *hfsbi_scanner_by_task(hfsbi_task *task) {
    return (hfsbi_scanner *)(void *)((char *)task -
                                     offsetof(hfsbi_scanner, task));
}

/* Called in a thread. The loop may match `before` meanwhile: that only writes
   what this does not read. */
static void hfsbi_scanner_run(hfsbi_task *task) {
    hfsbi_scanner  *scan = hfsbi_scanner_by_task(task);
    hfsbi_snapshot *snap = &scan->pair[1 - scan->last];
    hfsbi_snapshot_read(snap, 1);
    hfsbi_snapshot_read_jobs(snap, &scan->pair[scan->last]);
    snap->cost_ms = hfsb_clock_ms() - snap->at;
}

/* Called in the loop: wakes all waits to use the new snapshot. Those that need
   a newer one ask again. */
static void hfsbi_scanner_done(hfsbi_task *task) {
    hfsbi_scanner *scan = hfsbi_scanner_by_task(task);
    hfsbi_look    *look;
    scan->last = 1 - scan->last;
    scan->busy = false;
    if (scan->pair[scan->last].since > scan->since)
        scan->pair[scan->last].at = -1; /* may lack older processes */
    while ((look = scan->looks) != NULL) {
        scan->looks = look->next;
        look->waits = false;
        hfsbi_loop_timer(scan->loop, look->timer, 0);
    }
}

static void hfsbi_scanner_free(hfsbi_companion *companion) {
    hfsbi_scanner *scan = (hfsbi_scanner *)(void *)companion;
    hfsb_alloc     alloc = scan->pair[0].alloc;
    hfsbi_snapshot_free(&scan->pair[0]);
    hfsbi_snapshot_free(&scan->pair[1]);
    hfsbi_array_free(&alloc, scan, 1, sizeof *scan);
}

static hfsbi_scanner *hfsbi_scanner_new(hfsbi_loop *loop) {
    hfsb_alloc     alloc = hfsbi_loop_alloc(loop);
    hfsbi_scanner *scan =
        (hfsbi_scanner *)hfsbi_array(&alloc, 1, sizeof *scan);
    if (!scan) return NULL;
    memset(scan, 0, offsetof(hfsbi_scanner, pair));
    scan->companion.free = hfsbi_scanner_free;
    scan->task.run = hfsbi_scanner_run;
    scan->task.done = hfsbi_scanner_done;
    scan->task.urgent = true;
    scan->loop = loop;
    hfsbi_snapshot_init(&scan->pair[0], &alloc);
    hfsbi_snapshot_init(&scan->pair[1], &alloc);
    return scan;
}

HFSBI_FN hfsbi_scanner *hfsbi_scanner_of(hfsbi_loop *loop) {
    hfsbi_companion **companion = hfsbi_loop_companion(loop);
    if (!*companion) {
        hfsbi_scanner *scan = hfsbi_scanner_new(loop);
        if (scan) *companion = &scan->companion;
    }
    return (hfsbi_scanner *)(void *)*companion;
}

HFSBI_FN void hfsbi_scanner_cover(hfsbi_scanner     *scan,
                                  unsigned long long since) {
    if (scan->since && scan->since <= since) return;
    scan->since = since;
    scan->pair[scan->last].at = -1; /* may lack older processes */
}

HFSBI_FN hfsbi_snapshot *hfsbi_scanner_get(hfsbi_scanner *scan,
                                           hfsbi_look *look, long long need) {
    hfsbi_snapshot *last = &scan->pair[scan->last];
    if (last->at >= 0 && last->at >= need) return last;
    if (!scan->busy) scan->pair[1 - scan->last].since = scan->since;
    if (!hfsbi_loop_has_threads(scan->loop)) {
        hfsbi_scanner_run(&scan->task);
        hfsbi_scanner_done(&scan->task);
        return &scan->pair[scan->last];
    }
    if (!look->waits) {
        look->waits = true;
        look->next = scan->looks;
        scan->looks = look;
    }
    if (!scan->busy) {
        scan->busy = true;
        hfsbi_loop_work(scan->loop, &scan->task);
    }
    return NULL;
}

HFSBI_FN long long hfsbi_scanner_cost(const hfsbi_scanner *scan) {
    return scan->pair[scan->last].cost_ms;
}

HFSBI_FN void hfsbi_scanner_leave(hfsbi_scanner *scan, hfsbi_look *look) {
    hfsbi_look **link = &scan->looks;
    if (!look->waits) return;
    while (*link != look) link = &(*link)->next;
    *link = look->next;
    look->waits = false;
}

/* ---- matching a snapshot with a family ---- */

/* The span of the family that p was born into, or NULL. A session that p
   started itself has p's own number: that of a leader, or of no command. */
static hfsbi_session_span *hfsbi_family_span(const hfsbi_family  *family,
                                             const hfsbi_process *p) {
    size_t i;
    for (i = 0; i < family->span_count; i++) {
        hfsbi_session_span *span = &family->spans[i];
        if (span->session > 0 && span->session == p->session &&
            p->start >= span->since &&
            (span->running || p->start <= span->until))
            return span;
    }
    return NULL;
}

/* While a member lives that was born into a session, the session's number is
   in use: so those born into it later belong to it as well. */
static void hfsbi_family_extend_spans(const hfsbi_snapshot *snap,
                                      const hfsbi_family   *family) {
    unsigned long long now = hfsbi_ticks_now();
    size_t             i;
    for (i = 0; i < snap->count; i++) {
        hfsbi_session_span *span =
            hfsbi_process_ended(&snap->list[i])
                ? NULL
                : hfsbi_family_span(family, &snap->list[i]);
        if (span && span->until < now) span->until = now;
    }
}

/* The kinship that p has by itself; OPEN: only an ancestor can decide. */
static unsigned char hfsbi_family_judge(hfsbi_snapshot     *snap,
                                        const hfsbi_family *family,
                                        hfsbi_process      *p) {
    const hfsbi_session_span *span;
    if (p->start < family->since) return HFSBI_KIN_STRANGER;
    span = hfsbi_family_span(family, p);
    if (span) return span->running ? HFSBI_KIN_HELD : HFSBI_KIN_MEMBER;
    if ((family->job || family->owner) && !p->env_read) {
        errno = 0;
        if (!hfsbi_process_read_job(p, &snap->patience))
            hfsbi_snapshot_note_errno(snap);
    }
    if ((family->job && p->job == family->job) ||
        (family->owner && p->owner == family->owner))
        return HFSBI_KIN_MEMBER;
    return HFSBI_KIN_OPEN;
}

/* Judges every process by itself. This process never belongs to a family, nor
   do its children by descent. */
static void hfsbi_snapshot_judge(hfsbi_snapshot     *snap,
                                 const hfsbi_family *family) {
    hfsbi_process *p;
    size_t         i;
    for (i = 0; i < snap->count; i++)
        snap->list[i].kin = hfsbi_family_judge(snap, family, &snap->list[i]);
    for (i = 0; i < family->known_count; i++) {
        p = hfsbi_snapshot_find(snap, family->known[i].pid);
        if (p && p->start == family->known[i].start) p->kin = HFSBI_KIN_KNOWN;
    }
    p = hfsbi_snapshot_find(snap, (long)getpid());
    if (p) p->kin = HFSBI_KIN_STRANGER;
}

static bool hfsbi_process_is_kin(const hfsbi_process *p) {
    return p->kin >= HFSBI_KIN_MEMBER && !hfsbi_process_ended(p);
}

/* Adds the descendants of `from` to its family. `rest` are the members whose
   children were not examined yet. A process is added once, so a parent that
   was replaced during the reading, and now looks like a descendant, does no
   harm. */
static void hfsbi_snapshot_descend(hfsbi_snapshot *snap, unsigned from) {
    unsigned rest = from, i;
    snap->list[from].rest = HFSBI_NO_PROCESS;
    while (rest != HFSBI_NO_PROCESS) {
        const hfsbi_process *p = &snap->list[rest];
        rest = p->rest;
        for (i = p->child; i != HFSBI_NO_PROCESS; i = snap->list[i].sibling) {
            if (snap->list[i].kin != HFSBI_KIN_OPEN) continue;
            /* the children of a known process are new to the family */
            snap->list[i].kin = p->kin == HFSBI_KIN_KNOWN
                                    ? (unsigned char)HFSBI_KIN_MEMBER
                                    : p->kin;
            snap->list[i].rest = rest;
            rest = i;
        }
    }
}

/* Sets `kin` of every process; returns how many belong to the family and
   run. */
static size_t hfsbi_snapshot_match(hfsbi_snapshot     *snap,
                                   const hfsbi_family *family) {
    size_t i, count = 0;
    hfsbi_family_extend_spans(snap, family);
    hfsbi_snapshot_judge(snap, family);
    for (i = 0; i < snap->count; i++)
        if (snap->list[i].kin >= HFSBI_KIN_MEMBER)
            hfsbi_snapshot_descend(snap, (unsigned)i);
    for (i = 0; i < snap->count; i++)
        count += hfsbi_process_is_kin(&snap->list[i]);
    return count;
}

HFSBI_FN size_t hfsbi_snapshot_signal(hfsbi_snapshot     *snap,
                                      const hfsbi_family *family,
                                      bool                gently) {
    size_t i, count = hfsbi_snapshot_match(snap, family);
    for (i = 0; i < snap->count; i++) {
        const hfsbi_process *p = &snap->list[i];
        if (!hfsbi_process_is_kin(p)) continue;
        if (gently && p->kin == HFSBI_KIN_HELD) continue;
        hfsbi_process_signal(p, gently ? SIGTERM : SIGKILL);
        if (gently) hfsbi_process_signal(p, SIGCONT);
    }
    return count;
}

HFSBI_FN size_t hfsbi_snapshot_members(const hfsbi_snapshot *snap, long *list,
                                       size_t max) {
    size_t i, n = 0;
    for (i = 0; i < snap->count; i++) {
        if (!hfsbi_process_is_kin(&snap->list[i])) continue;
        if (n < max) list[n] = snap->list[i].pid;
        n++;
    }
    return n;
}

/* Adds the processes whose pids a file of /proc lists, separated by blanks.
   False when it cannot be opened. */
static bool hfsbi_snapshot_add_listed(hfsbi_snapshot *snap, const char *name) {
    char          buf[512];
    hfsbi_process p;
    long          pid = 0;
    ssize_t       n, i;
    int           fd = hfsbi_proc_file((long)getpid(), name);
    if (fd < 0) return false;
    while ((n = hfsbi_read(fd, buf, sizeof buf)) > 0)
        for (i = 0; i < n; i++)
            if (hfsbi_is_digit(buf[i]) && pid < LONG_MAX / 10 - 1) {
                pid = pid * 10 + (buf[i] - '0');
            } else {
                if (pid && hfsbi_process_read(pid, &p))
                    hfsbi_snapshot_add(snap, &p);
                pid = 0;
            }
    hfsbi_close(&fd);
    return true;
}

/* Reads the children of this process, which the kernel lists for each of its
   threads; reading all of /proc would take long on a machine with many
   processes. False where the kernel has no such lists. */
static bool hfsbi_snapshot_read_children(hfsbi_snapshot *snap) {
    bool           listed = false;
    struct dirent *entry;
    DIR           *dir = opendir("/proc/self/task");
    while (dir && (entry = readdir(dir)) != NULL) {
        long thread = hfsbi_pid_of_name(entry->d_name);
        char name[64];
        if (!thread) continue;
        (void)snprintf(name, sizeof name, "task/%ld/children", thread);
        if (hfsbi_snapshot_add_listed(snap, name)) listed = true;
    }
    if (dir) (void)closedir(dir);
    return listed;
}

size_t hfsb_proc_children(bool ended, long *list, size_t max) {
    hfsb_alloc     alloc = HFSB_INIT;
    hfsbi_snapshot snap;
    size_t         i, n = 0;
    hfsbi_snapshot_init(&snap, &alloc);
    if (!hfsbi_snapshot_read_children(&snap)) hfsbi_snapshot_read(&snap, 1);
    for (i = 0; i < snap.count && n < max; i++)
        if (snap.list[i].parent == (long)getpid() &&
            hfsbi_process_ended(&snap.list[i]) == ended)
            list[n++] = snap.list[i].pid;
    hfsbi_snapshot_free(&snap);
    return n;
}

/* ---- the leader of a tree ---- */

HFSBI_FN void hfsbi_tree_init(hfsbi_tree *tree, const hfsb_alloc *alloc,
                              hfsb_str job, const hfsb_confine *confine) {
    memset(tree, 0, sizeof *tree);
    tree->alloc = *alloc;
    tree->pidfd = tree->leaf.dir = -1;
    if (confine) hfsbi_leaf_open(&tree->leaf, &confine->limits);
    tree->span.since = hfsbi_ticks_now();
    if (tree->span.since > 0) tree->span.since--;
    if (job.len) tree->job = hfsb_fnv(job);
}

HFSBI_FN void hfsbi_tree_free(hfsbi_tree *tree) {
    hfsbi_leaf_close(&tree->leaf);
    hfsbi_close(&tree->pidfd);
    if (tree->known)
        hfsbi_array_free(&tree->alloc, tree->known, tree->known_cap,
                         sizeof *tree->known);
    tree->known = NULL;
    tree->known_count = tree->known_cap = 0;
}

HFSBI_FN void hfsbi_tree_start(hfsbi_tree *tree, pid_t leader) {
    hfsbi_process p;
    tree->span.session = (long)leader;
    tree->span.running = true;
    tree->span.until = hfsbi_ticks_now();
#if defined(HFSBI_LINUX) && defined(SYS_pidfd_open)
    tree->pidfd = hfsbi_fd_above_2((int)syscall(SYS_pidfd_open, leader, 0u));
#endif
    if (tree->pidfd < 0 && hfsbi_process_read((long)leader, &p))
        tree->leader_start = p.start;
}

/* macOS reports a child that was stopped, too, which nobody asks for. */
static int hfsbi_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    int rc;
    memset(info, 0, sizeof *info);
    do rc = waitid(type, id, info, WEXITED | WNOHANG | options);
    while (rc < 0 && errno == EINTR);
    if (info->si_code != CLD_EXITED && info->si_code != CLD_KILLED &&
        info->si_code != CLD_DUMPED)
        info->si_pid = 0;
    return rc;
}

HFSBI_FN int hfsbi_tree_wait(const hfsbi_tree *tree, siginfo_t *info,
                             int options) {
    hfsbi_process p;
    if (tree->pidfd >= 0) {
        idtype_t by_descriptor = (idtype_t)3; /* P_PIDFD, Linux 5.4 */
        int rc = hfsbi_waitid(by_descriptor, (id_t)tree->pidfd, info, options);
        if (rc == 0 || errno != EINVAL) return rc;
    }
    /* the host may have reaped the leader, and its next child may have got the
       same number */
    if (tree->leader_start && hfsbi_process_read(tree->span.session, &p) &&
        p.start != tree->leader_start) {
        errno = ECHILD;
        return -1;
    }
    return hfsbi_waitid(P_PID, (id_t)tree->span.session, info, options);
}

/* libc's waitid() returns no usage, wait4() would reap the leader. The system
   call writes its own struct: two timevals, then the peak in KiB. */
HFSBI_FN bool hfsbi_tree_usage(const hfsbi_tree *tree, long long *cpu_ms,
                               unsigned long long *peak_bytes) {
#if defined(HFSBI_LINUX) && defined(SYS_waitid) && \
    !(defined(__x86_64__) && defined(__ILP32__))
    long      usage[18];
    siginfo_t info;
    memset(usage, 0, sizeof usage);
    memset(&info, 0, sizeof info);
    if (syscall(SYS_waitid, P_PID, (id_t)tree->span.session, &info,
                WEXITED | WNOHANG | WNOWAIT, usage) != 0 ||
        info.si_pid == 0)
        return false;
    *cpu_ms = ((long long)usage[0] + usage[2]) * 1000 +
              ((long long)usage[1] + usage[3]) / 1000;
    *peak_bytes = (unsigned long long)usage[4] * 1024;
    return true;
#else
    (void)tree;
    (void)cpu_ms;
    (void)peak_bytes;
    return false;
#endif
}

/* True while the leader is our child, running or a zombie: until then its
   number is its own. Records when the host has reaped it. */
static bool hfsbi_tree_holds(hfsbi_tree *tree) {
    hfsbi_session_span *span = &tree->span;
    siginfo_t           info;
    if (!span->running) return false;
    if (hfsbi_tree_wait(tree, &info, WNOWAIT) != 0) span->running = false;
    else span->until = hfsbi_ticks_now();
    return span->running;
}

HFSBI_FN hfsbi_session_span hfsbi_tree_span(hfsbi_tree *tree) {
    hfsbi_session_span none = HFSB_INIT;
    return hfsbi_tree_holds(tree) ? tree->span : none;
}

/* ---- the members of a tree ---- */

static size_t hfsbi_tree_match(hfsbi_tree *tree, hfsbi_snapshot *snap) {
    hfsbi_family family = HFSB_INIT;
    hfsbi_tree_holds(tree);
    /* While no process has the number of a leader that the host reaped, the
       number was not reused. */
    if (!tree->span.running && !snap->blind &&
        !hfsbi_snapshot_find(snap, tree->span.session))
        tree->span.until = hfsbi_ticks_now();
    family.since = tree->span.since;
    family.job = tree->job;
    family.spans = &tree->span;
    family.span_count = 1;
    family.known = tree->known;
    family.known_count = tree->known_count;
    return hfsbi_snapshot_match(snap, &family);
}

/* Keeps the members. The next signal may kill their parents, which ends their
   descent. After a blind snapshot those known before are kept as well. When
   out of memory it keeps those that fit: the next search finds the others
   again. */
static void hfsbi_tree_remember(hfsbi_tree *tree, const hfsbi_snapshot *snap) {
    size_t i, n = snap->blind ? tree->known_count : 0;
    for (i = 0; i < snap->count; i++) {
        const hfsbi_process *p = &snap->list[i];
        if (!hfsbi_process_is_kin(p) ||
            (snap->blind && p->kin == HFSBI_KIN_KNOWN))
            continue;
        if (n == tree->known_cap) {
            hfsbi_process *grown = (hfsbi_process *)hfsbi_array_grow(
                &tree->alloc, tree->known, &tree->known_cap, n + 1,
                sizeof *grown);
            if (!grown) break;
            tree->known = grown;
        }
        tree->known[n++] = *p;
    }
    tree->known_count = n;
}

HFSBI_FN size_t hfsbi_tree_find(hfsbi_tree *tree, hfsbi_snapshot *snap) {
    size_t count = hfsbi_tree_match(tree, snap);
    hfsbi_tree_remember(tree, snap);
    if (!snap->blind) {
        tree->empty = count == 0;
        return count;
    }
    return hfsbi_tree_holds(tree) && kill(-(pid_t)tree->span.session, 0) == 0;
}

HFSBI_FN void hfsbi_tree_signal(hfsbi_tree *tree, int number) {
    bool   held = hfsbi_tree_holds(tree);
    size_t i;
    if (number == SIGKILL) (void)hfsbi_leaf_kill(&tree->leaf);
    if (held) (void)kill(-(pid_t)tree->span.session, number);
    for (i = 0; i < tree->known_count; i++)
        if (!held || tree->known[i].group != tree->span.session)
            hfsbi_process_signal(&tree->known[i], number);
}

/* Pids increase until they wrap, which takes longer than a second: no process
   of a young command has a lower one than its leader. */
static bool hfsbi_tree_is_young(hfsbi_tree *tree, long long ran_ms,
                                long last) {
    return last > tree->span.session && ran_ms < 1000 &&
           hfsbi_tree_holds(tree);
}

HFSBI_FN bool hfsbi_tree_list_takes_long(hfsbi_tree *tree, long long ran_ms) {
    long threads, last = hfsbi_last_pid(&threads);
    if (last == tree->span.session || tree->empty) return false;
    return threads > HFSBI_TREE_MANY ||
           !hfsbi_tree_is_young(tree, ran_ms, last);
}

HFSBI_FN size_t hfsbi_tree_list_known(const hfsbi_tree *tree,
                                      hfsb_proc_entry *list, size_t max) {
    size_t i, n = 0;
    for (i = 0; i < tree->known_count && n < max; i++)
        if (tree->known[i].pid != tree->span.session)
            hfsbi_entry_fill(&list[n++], tree->known[i].pid);
    return n;
}

HFSBI_FN size_t hfsbi_tree_list(const hfsbi_tree *tree, long long ran_ms,
                                hfsb_proc_entry *list, size_t max) {
    hfsbi_tree     copy = *tree; /* matched; the tree is not changed */
    long           leader = tree->span.session, threads;
    long           last = hfsbi_last_pid(&threads);
    hfsbi_snapshot snap;
    size_t         i, n = 0;
    /* most commands leave nothing: no process is newer than the leader */
    if (last == leader || tree->empty) return 0;
    hfsbi_snapshot_init(&snap, &tree->alloc);
    snap.since = tree->span.since;
    hfsbi_snapshot_read(&snap,
                        hfsbi_tree_is_young(&copy, ran_ms, last) ? leader : 1);
    (void)hfsbi_tree_match(&copy, &snap);
    for (i = 0; i < snap.count && n < max; i++)
        if (hfsbi_process_is_kin(&snap.list[i]) && snap.list[i].pid != leader)
            hfsbi_entry_fill(&list[n++], snap.list[i].pid);
    hfsbi_snapshot_free(&snap);
    return n;
}
