/* stats.c - /api/stats: what the machine is busy with, for small charts, and
   the ports that commands listen on.

     {"cpus":4,"cpu_ms":81250,"memory":N,"memory_max":N,"disk":N,"disk_max":N,
      "ports":[{"port":8000,"pid":4711,"command":"python3 -m http.server"}]}

   cpu_ms is the time that processors were busy, since some moment in the past:
   the difference of two calls is the busy time between them. Members that the
   system does not report are 0. In a container with a cgroup of its own the
   figures are the container's.

   A port is listed when the process that listens on it has the marker of a
   command, HFSB_JOB, in its environment: those of other services are left out.
   The sockets of commands are found first, since a busy machine may have any
   number of others. All of it is read from files, in a pool thread. */
#include "api_private.h"

enum {
    HFSBI_STATS_PORTS = 64,      /* that are listed */
    HFSBI_STATS_SOCKETS = 16384, /* of commands that are looked at */
    HFSBI_STATS_TEXT = 8 << 20,  /* longest file that is read, bytes */
    HFSBI_STATS_COMMAND = 200,   /* bytes of a command line that are shown */
    HFSBI_STATS_LISTEN = 10      /* the state of a socket that listens */
};

/* ---- figures of the machine ---- */

/* Replaces the text with the content of a file; "" if it cannot be read. */
static hfsb_str hfsbi_stats_read(hfsb_buf *text, const char *path) {
    hfsb_buf_truncate(text, 0);
    (void)hfsb_file_read(NULL, hfsb_cstr(path), HFSBI_STATS_TEXT, text, NULL,
                         NULL);
    return hfsb_buf_str(text);
}

/* The number after a key of a text, such as "MemTotal:"; 0: there is none. */
static unsigned long long hfsbi_stats_number(hfsb_str text, const char *key) {
    size_t             at = hfsb_str_find(text, hfsb_cstr(key));
    unsigned long long n = 0;
    if (at == HFSB_NPOS) return 0;
    text = hfsbi_trim(hfsb_str_slice(text, at + strlen(key), text.len));
    (void)hfsbi_read_decimal(text, ~0ull >> 12, &n);
    return n;
}

static void hfsbi_figures_read_cpu(hfsbi_figures *f, hfsb_str text) {
    unsigned long long n;
    size_t             digits, i;
    if (!hfsb_str_starts(text, HFSB_LIT("cpu "))) return;
    text = hfsb_str_slice(text, 4, text.len);
    for (i = 0; i < 8; i++) { /* user nice system idle iowait irq ... */
        while (text.len && text.ptr[0] == ' ')
            text = hfsb_str_slice(text, 1, text.len);
        digits = hfsbi_read_decimal(text, ~0ull >> 8, &n);
        if (!digits) return;
        f->cpu_all += n;
        if (i == 3 || i == 4) f->cpu_idle += n;
        text = hfsb_str_slice(text, digits, text.len);
    }
}

static void hfsbi_figures_read_disk(hfsbi_figures *f, const char *path) {
#ifdef __linux__
    struct statfs fs;
    int dir = hfsbi_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (dir >= 0 && fstatfs(dir, &fs) == 0) {
        unsigned long long block = (unsigned long long)fs.f_bsize;
        f->disk_total = (unsigned long long)fs.f_blocks * block;
        f->disk_used = (unsigned long long)(fs.f_blocks - fs.f_bfree) * block;
    }
    hfsbi_close(&dir);
#else
    (void)f, (void)path;
#endif
}

HFSBI_FN void hfsbi_figures_read(hfsbi_figures *f, const char *dir,
                                 const hfsb_alloc *alloc) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str all;
    memset(f, 0, sizeof *f);
    text.alloc = *alloc;
    if (dir) hfsbi_figures_read_disk(f, dir);
    all = hfsbi_stats_read(&text, "/proc/meminfo");
    f->mem_total = hfsbi_stats_number(all, "MemTotal:") * 1024;
    f->mem_free = hfsbi_stats_number(all, "MemAvailable:") * 1024;
    f->mem_cache = hfsbi_stats_number(all, "\nCached:") * 1024;
    hfsbi_figures_read_cpu(f, hfsbi_stats_read(&text, "/proc/stat"));
    hfsb_buf_free(&text);
}

/* ---- a request ---- */

/* A socket of a command. */
typedef struct hfsbi_stats_socket {
    unsigned long long inode;
    long               pid;
} hfsbi_stats_socket;

typedef struct hfsbi_port {
    unsigned number;
    long     pid;
    char     command[HFSBI_STATS_COMMAND];
} hfsbi_port;

typedef struct hfsbi_stats {
    hfsb_buf           dir;  /* of the disk that is meant; its allocator is
                                ours */
    hfsb_buf           text; /* of a file */
    hfsbi_figures      figures;
    unsigned long long cpu_ms, memory, memory_max;
    long               cpus;

    hfsbi_stats_socket *sockets;
    size_t              socket_count, socket_room;
    hfsbi_port          ports[HFSBI_STATS_PORTS];
    size_t              port_count;
} hfsbi_stats;

/* The processors that a cgroup may use, from its cpu.max, "200000 100000" for
   two of them or "max 100000" for all: a fraction of one counts as one. */
HFSBI_FN long hfsbi_stats_cpus(hfsb_str max, long cpus) {
    unsigned long long quota, period, n;
    size_t             digits = hfsbi_read_decimal(max, ~0ull >> 1, &quota);
    max = hfsbi_trim(hfsb_str_slice(max, digits, max.len));
    if (!digits || !hfsbi_read_decimal(max, ~0ull >> 1, &period) || !period)
        return cpus;
    n = quota / period + (quota % period != 0);
    if (!n) n = 1;
    return n < (unsigned long long)cpus ? (long)n : cpus;
}

/* Figures of the container where it has its own, else those of the
   machine. */
static void hfsbi_stats_weigh(hfsbi_stats *s) {
    const hfsbi_figures *f = &s->figures;
    long                 ticks = sysconf(_SC_CLK_TCK);
    unsigned long long   n;
    hfsb_str             text;
    s->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (s->cpus < 1) s->cpus = 1;
    s->cpus = hfsbi_stats_cpus(
        hfsbi_stats_read(&s->text, "/sys/fs/cgroup/cpu.max"), s->cpus);
    s->cpu_ms = (f->cpu_all - f->cpu_idle) * 1000 /
                (unsigned long long)(ticks > 0 ? ticks : 100);
    s->memory = f->mem_total - f->mem_free;
    s->memory_max = f->mem_total;
    n = hfsbi_stats_number(
        hfsbi_stats_read(&s->text, "/sys/fs/cgroup/cpu.stat"), "usage_usec ");
    if (n) s->cpu_ms = n / 1000;
    text = hfsbi_stats_read(&s->text, "/sys/fs/cgroup/memory.current");
    if (!hfsbi_read_decimal(text, ~0ull >> 1, &s->memory)) return;
    text = hfsbi_stats_read(&s->text, "/sys/fs/cgroup/memory.max");
    if (hfsbi_read_decimal(text, ~0ull >> 1, &n) && n < s->memory_max)
        s->memory_max = n;
}

/* ---- ports ---- */

#ifdef HFSBI_LINUX

/* Moves the next word of a line to *word; false at its end. */
static bool hfsbi_stats_word(hfsb_str *line, hfsb_str *word) {
    size_t n = 0;
    *line = hfsbi_trim(*line);
    while (n < line->len && line->ptr[n] != ' ') n++;
    *word = hfsb_str_slice(*line, 0, n);
    *line = hfsb_str_slice(*line, n, line->len);
    return n > 0;
}

static unsigned hfsbi_stats_hex(hfsb_str s) {
    unsigned n = 0;
    size_t   i;
    for (i = 0; i < s.len && i < 4 && hfsbi_hex_digit(s.ptr[i]) >= 0; i++)
        n = n * 16 + (unsigned)hfsbi_hex_digit(s.ptr[i]);
    return n;
}

/* The command line of a process, its arguments separated by blanks. */
static void hfsbi_stats_describe(hfsbi_stats *s, hfsbi_port *p) {
    char     path[64];
    hfsb_str all;
    size_t   i;
    (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", p->pid);
    all = hfsbi_stats_read(&s->text, path);
    if (all.len > HFSBI_STATS_COMMAND - 1) all.len = HFSBI_STATS_COMMAND - 1;
    for (i = 0; i < all.len; i++)
        p->command[i] = all.ptr[i] ? all.ptr[i] : ' ';
    while (i && p->command[i - 1] == ' ') i--;
    p->command[i] = '\0';
}

/* The command whose socket has this inode; 0: none. */
static long hfsbi_stats_owner(const hfsbi_stats *s, unsigned long long inode) {
    size_t i;
    for (i = 0; i < s->socket_count; i++)
        if (s->sockets[i].inode == inode) return s->sockets[i].pid;
    return 0;
}

/* True for a port that is listed already: it may have both IPv4 and IPv6. */
static bool hfsbi_stats_has_port(const hfsbi_stats *s, unsigned number) {
    size_t i;
    for (i = 0; i < s->port_count; i++)
        if (s->ports[i].number == number) return true;
    return false;
}

/* A line of /proc/net/tcp:
     0: 0100007F:1F40 00000000:0000 0A 0:0 0:0 0 uid timeout inode ... */
static void hfsbi_stats_add_port(hfsbi_stats *s, hfsb_str line) {
    hfsb_str           word[10];
    hfsbi_port        *p = &s->ports[s->port_count];
    unsigned long long inode;
    size_t             colon, i;
    if (s->port_count == HFSBI_STATS_PORTS) return;
    for (i = 0; i < 10; i++)
        if (!hfsbi_stats_word(&line, &word[i])) return;
    colon = hfsb_str_find_byte(word[1], ':');
    if (colon == HFSB_NPOS || hfsbi_stats_hex(word[3]) != HFSBI_STATS_LISTEN ||
        !hfsbi_read_decimal(word[9], ~0ull >> 1, &inode))
        return;
    p->number =
        hfsbi_stats_hex(hfsb_str_slice(word[1], colon + 1, word[1].len));
    p->pid = hfsbi_stats_owner(s, inode);
    if (p->pid && !hfsbi_stats_has_port(s, p->number)) s->port_count++;
}

static void hfsbi_stats_find_ports(hfsbi_stats *s, const char *path) {
    hfsb_str rest = hfsbi_stats_read(&s->text, path), line;
    while (hfsbi_list_next(&rest, '\n', &line)) hfsbi_stats_add_port(s, line);
}

/* True if a process is one of a command's. */
static bool hfsbi_stats_is_command(hfsbi_stats *s, const char *pid) {
    char     path[64];
    hfsb_str env;
    (void)snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    env = hfsbi_stats_read(&s->text, path);
    return hfsb_str_starts(env, HFSB_LIT("HFSB_JOB=")) ||
           hfsb_str_find(env, hfsb_str_make("\0HFSB_JOB=", 10)) != HFSB_NPOS;
}

/* Keeps a descriptor of a command if it is a socket. Without memory the rest
   is not listed. */
static void hfsbi_stats_add_socket(hfsbi_stats *s, long pid, hfsb_str link) {
    const hfsb_str      prefix = HFSB_LIT("socket:[");
    hfsbi_stats_socket *grown, one;
    if (!hfsb_str_starts(link, prefix) ||
        s->socket_count == HFSBI_STATS_SOCKETS ||
        !hfsbi_read_decimal(hfsb_str_slice(link, prefix.len, link.len),
                            ~0ull >> 1, &one.inode))
        return;
    one.pid = pid;
    grown = (hfsbi_stats_socket *)hfsbi_array_grow(
        &s->dir.alloc, s->sockets, &s->socket_room, s->socket_count + 1,
        sizeof one);
    if (!grown) return;
    s->sockets = grown;
    s->sockets[s->socket_count++] = one;
}

static void hfsbi_stats_look_at(hfsbi_stats *s, const char *pid) {
    struct dirent *e;
    DIR           *dir;
    char           path[64], link[64];
    ssize_t        n;
    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    dir = opendir(path);
    if (!dir) return;
    while ((e = readdir(dir)) != NULL) {
        n = readlinkat(dirfd(dir), e->d_name, link, sizeof link);
        if (n > 0)
            hfsbi_stats_add_socket(s, strtol(pid, NULL, 10),
                                   hfsb_str_make(link, (size_t)n));
    }
    (void)closedir(dir);
}

static void hfsbi_stats_ports(hfsbi_stats *s) {
    struct dirent *e;
    DIR           *dir = opendir("/proc");
    long           own = (long)getpid();
    size_t         i;
    if (!dir) return;
    while ((e = readdir(dir)) != NULL)
        if (hfsbi_is_digit(e->d_name[0]) &&
            strtol(e->d_name, NULL, 10) != own &&
            hfsbi_stats_is_command(s, e->d_name))
            hfsbi_stats_look_at(s, e->d_name);
    (void)closedir(dir);
    if (!s->socket_count) return;
    hfsbi_stats_find_ports(s, "/proc/net/tcp");
    hfsbi_stats_find_ports(s, "/proc/net/tcp6");
    for (i = 0; i < s->port_count; i++) hfsbi_stats_describe(s, &s->ports[i]);
}

#else

static void hfsbi_stats_ports(hfsbi_stats *s) {
    (void)s; /* no file lists them */
}

#endif

/* ---- the reply ---- */

static void hfsbi_stats_put(const hfsbi_stats *s, hfsb_json_writer *w) {
    size_t i;
    hfsb_json_put_object(w);
    hfsb_json_put_member_int(w, "cpus", s->cpus);
    hfsb_json_put_member_int(w, "cpu_ms", (long long)s->cpu_ms);
    hfsb_json_put_member_int(w, "memory", (long long)s->memory);
    hfsb_json_put_member_int(w, "memory_max", (long long)s->memory_max);
    hfsb_json_put_member_int(w, "disk", (long long)s->figures.disk_used);
    hfsb_json_put_member_int(w, "disk_max", (long long)s->figures.disk_total);
    hfsb_json_put_key(w, HFSB_LIT("ports"));
    hfsb_json_put_array(w);
    for (i = 0; i < s->port_count; i++) {
        hfsb_json_put_object(w);
        hfsb_json_put_member_int(w, "port", s->ports[i].number);
        hfsb_json_put_member_int(w, "pid", s->ports[i].pid);
        hfsb_json_put_member_str(w, "command", hfsb_cstr(s->ports[i].command));
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
    hfsb_json_put_end(w);
}

static void hfsbi_stats_run(void *user) {
    hfsbi_stats *s = (hfsbi_stats *)user;
    hfsbi_figures_read(&s->figures, s->dir.ptr, &s->dir.alloc);
    hfsbi_stats_weigh(s);
    hfsbi_stats_ports(s);
}

static void hfsbi_stats_done(void *user, hfsb_request *request) {
    hfsbi_stats     *s = (hfsbi_stats *)user;
    hfsb_alloc       alloc = s->dir.alloc;
    hfsb_buf         out = HFSB_INIT;
    hfsb_json_writer w;
    out.alloc = alloc;
    hfsb_json_writer_init(&w, &out, NULL);
    hfsbi_stats_put(s, &w);
    (void)hfsb_reply_field(request, "Cache-Control", HFSB_LIT("no-store"));
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
    hfsb_buf_free(&s->dir);
    hfsb_buf_free(&s->text);
    hfsbi_array_free(&alloc, s->sockets, s->socket_room, sizeof *s->sockets);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

HFSBI_FN void hfsbi_stats_get(void *user, hfsb_request *request) {
    hfsbi_api   *api = (hfsbi_api *)user;
    hfsbi_stats *s = (hfsbi_stats *)hfsbi_array(&api->alloc, 1, sizeof *s);
    hfsb_str     dir = hfsb_root_work_dir(api->tools->place);
    if (!s) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(s, 0, sizeof *s);
    s->dir.alloc = s->text.alloc = api->alloc;
    hfsb_buf_append(&s->dir, dir.len ? dir : HFSB_LIT("."));
    hfsbi_request_work(request, NULL, hfsbi_stats_run, hfsbi_stats_done, s);
}
