/* fake_hub_state.h - what the fake Hub knows: Spaces, files, jobs, requests.
   Part of fake_hub.h. */

/* ---- small things ---- */

#define FH_MUST(x) ((x) == HFSB_OK ? (void)0 : fh_die(#x))

static void fh_die(const char *what) {
    printf("fake hub: %s\n", what);
    abort();
}

static void fh_put(hfsb_buf *out, const char *text) {
    FH_MUST(hfsb_buf_append(out, hfsb_cstr(text)));
}

static void fh_set(hfsb_buf *out, hfsb_str text) {
    hfsb_buf_truncate(out, 0);
    FH_MUST(hfsb_buf_append(out, text));
}

static void *fh_new(size_t size) {
    void *p = calloc(1, size);
    if (!p) fh_die("memory");
    return p;
}

static bool fh_is(const hfsb_buf *b, const char *text) {
    return hfsb_str_equal(hfsb_buf_str(b), hfsb_cstr(text));
}

static bool fh_same(hfsb_str a, const char *text) {
    return hfsb_str_equal(a, hfsb_cstr(text));
}

static void fh_copy(char *out, size_t room, hfsb_str text) {
    size_t n = text.len < room ? text.len : room - 1;
    if (n) memcpy(out, text.ptr, n);
    out[n] = '\0';
}

/* A "*" in pattern stands for any text. */
static bool fh_match(hfsb_str s, const char *pattern) {
    while (*pattern && *pattern != '*') {
        if (!s.len || *s.ptr != *pattern) return false;
        s = hfsb_str_slice(s, 1, s.len);
        pattern++;
    }
    if (!*pattern) return s.len == 0;
    for (;; s = hfsb_str_slice(s, 1, s.len)) {
        if (fh_match(s, pattern + 1)) return true;
        if (!s.len) return false;
    }
}

/* "2025-03-07T12:24:18.657Z", so many days ago. */
static void fh_time(char out[32], double days) {
    struct timespec now;
    struct tm       tm;
    time_t          t;
    clock_gettime(CLOCK_REALTIME, &now);
    t = now.tv_sec - (time_t)(days * 86400);
    gmtime_r(&t, &tm);
    snprintf(out, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100,
             tm.tm_mday % 100, tm.tm_hour % 100, tm.tm_min % 100,
             tm.tm_sec % 100, (int)(now.tv_nsec / 1000000) % 1000);
}

/* ---- sha1, of git ---- */

static unsigned fh_rol(unsigned x, int n) {
    return (x << n) | (x >> (32 - n));
}

static void fh_sha1_block(unsigned h[5], const unsigned char *p) {
    unsigned w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f, k, t;
    int      i;
    for (i = 0; i < 16; i++)
        w[i] = (unsigned)p[4 * i] << 24 | (unsigned)p[4 * i + 1] << 16 |
               (unsigned)p[4 * i + 2] << 8 | (unsigned)p[4 * i + 3];
    for (; i < 80; i++)
        w[i] = fh_rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (i = 0; i < 80; i++) {
        if (i < 20) f = (b & c) | (~b & d), k = 0x5A827999u;
        else if (i < 40) f = b ^ c ^ d, k = 0x6ED9EBA1u;
        else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDCu;
        else f = b ^ c ^ d, k = 0xCA62C1D6u;
        t = fh_rol(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = fh_rol(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

static void fh_sha1(hfsb_str s, char hex[41]) {
    unsigned h[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u,
                     0xC3D2E1F0u};
    unsigned long long bits = (unsigned long long)s.len * 8;
    hfsb_buf           b = HFSB_INIT;
    size_t             i;
    FH_MUST(hfsb_buf_append(&b, s));
    FH_MUST(hfsb_buf_append_byte(&b, (char)-128));
    while (b.len % 64 != 56) FH_MUST(hfsb_buf_append_byte(&b, '\0'));
    for (i = 8; i-- > 0;)
        FH_MUST(hfsb_buf_append_byte(&b, (char)(bits >> (8 * i) & 255)));
    for (i = 0; i < b.len; i += 64)
        fh_sha1_block(h, (const unsigned char *)b.ptr + i);
    for (i = 0; i < 5; i++) snprintf(hex + 8 * i, 9, "%08x", h[i]);
    hfsb_buf_free(&b);
}

/* As `git hash-object`. */
static void fh_blob_oid(hfsb_str content, char hex[41]) {
    hfsb_buf b = HFSB_INIT;
    FH_MUST(hfsb_buf_printf(&b, "blob %zu", content.len));
    FH_MUST(hfsb_buf_append_byte(&b, '\0'));
    FH_MUST(hfsb_buf_append(&b, content));
    fh_sha1(hfsb_buf_str(&b), hex);
    hfsb_buf_free(&b);
}

/* ---- bytes of a connection ---- */

static void fh_shift(hfsb_buf *in, size_t n) {
    memmove(in->ptr, in->ptr + n, in->len - n);
    hfsb_buf_truncate(in, in->len - n);
}

/* False when the peer is gone. */
static bool fh_send(int fd, hfsb_str bytes) {
    while (bytes.len) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
    }
    return true;
}

/* More bytes behind those that are there; false at the end. */
static bool fh_receive(int fd, hfsb_buf *in) {
    char    piece[16384];
    ssize_t n;
    do n = recv(fd, piece, sizeof piece, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    FH_MUST(hfsb_buf_append(in, hfsb_str_make(piece, (size_t)n)));
    return true;
}

static int fh_dial(unsigned port) {
    struct sockaddr_in a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        fd = -1;
    }
    return fd;
}


/* ---- the objects ---- */

typedef struct fh_pair { /* a secret, a variable */
    struct fh_pair *next;
    hfsb_buf        key, value, description;
    char            updated[32];
} fh_pair;

typedef struct fh_entry { /* a file of a repository, or of the LFS store */
    struct fh_entry   *next;
    hfsb_buf           path, content;
    bool               lfs;
    char               oid[65];
    unsigned long long size;
} fh_entry;

typedef struct fh_machine { /* what a Space runs on; fake_hub_build.h */
    struct fh_machine *next;
    fh_hub            *hub;
    struct fh_space   *space;
    hfsb_buf           dir, work; /* its own; where its commands begin */
    pthread_t          thread;
    bool               stop;          /* it is to end */
    bool               built, borrowed; /* borrowed: dir is another's */
    hfsb_server       *server;        /* FH_EMBED */
    pid_t              pid;           /* FH_BUILD: of the program, or of the
                                         compile line that runs now */
    unsigned           port;          /* 0: not yet */
    const char        *stage;
    char               sha[41];
} fh_machine;

typedef struct fh_space {
    struct fh_space *next;
    hfsb_buf         id;
    char             object[25];
    bool             hidden, gone, reserved; /* reserved: the template */
    char             sdk[16], hardware[48];
    long long        sleep; /* seconds; 0: not set */
    fh_pair         *secrets, *variables;
    fh_entry        *files;
    hfsb_buf         volumes; /* JSON, or empty */
    char             head[41], old[41];
    size_t           commits;
    char             created[32], modified[32];
    hfsb_buf         stages;
    size_t           asked;   /* so often, since these stages began */
    long long        since;   /* when that was */
    size_t           absent;  /* every call is 404 so often */
    size_t           unknown; /* the runtime is */
    size_t           asleep;  /* health is 503 so often */
    hfsb_buf         build_log, run_log;
    fh_machine      *machine; /* or NULL */
} fh_space;

typedef struct fh_job {
    struct fh_job *next;
    char           id[25], created[32];
    hfsb_buf       owner, spec; /* spec: the JSON it was made from */
    hfsb_buf       stages, log;
    size_t         asked;
    bool           cancelled, scheduled, suspended, gone;
} fh_job;

typedef struct fh_fault_item {
    struct fh_fault_item *next;
    fh_fault_spec         spec; /* its texts are owned */
    size_t                seen;
} fh_fault_item;

typedef struct fh_reply {
    int         status;
    const char *type;
    hfsb_buf    body, fields; /* fields: "Name: value" lines, CRLF or LF */
    bool        stream;       /* an event stream */
    long long   open_ms;
} fh_reply;

typedef struct fh_conn { /* of the edge */
    struct fh_conn *next;
    fh_hub         *hub;
    int             fd, back;
} fh_conn;

struct fh_hub {
    fh_opts         o;
    pthread_mutex_t lock; /* all below but the threads */
    pthread_cond_t  quiet; /* a connection of the edge ended */
    hfsb_server    *server;
    pthread_t       thread, edge_thread;
    int             edge_fd, edge_stop[2];
    char            url[64], edge[64];
    fh_space       *spaces; /* oldest first, also those that are gone */
    fh_entry       *store;  /* LFS */
    fh_job         *jobs;
    fh_machine     *machines;
    fh_record      *records, *first, *last; /* first: that counts */
    fh_fault_item  *faults;
    fh_conn        *conns;
    hfsb_buf        stages; /* after a commit */
    size_t          space_count, job_count, scheduled_count, requests;
    size_t          machine_count;
    unsigned long long random;
    bool            stopping;
};

static void fh_lock(fh_hub *hub) {
    pthread_mutex_lock(&hub->lock);
}
static void fh_unlock(fh_hub *hub) {
    pthread_mutex_unlock(&hub->lock);
}

/* ---- Spaces ---- */

static fh_space *fh_find(fh_hub *hub, hfsb_str id) {
    fh_space *s;
    for (s = hub->spaces; s; s = s->next)
        if (!s->gone && hfsb_http_same(hfsb_buf_str(&s->id), id)) return s;
    return NULL;
}

/* "alice-my-space" of "alice/My_Space". */
static void fh_subdomain(hfsb_str id, char out[128]) {
    size_t i, n = 0;
    for (i = 0; i < id.len && n < 126; i++) {
        char c = id.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (letter) out[n++] = c;
        else if (n && out[n - 1] != '-') out[n++] = '-';
    }
    out[n] = '\0';
}

/* The same for the same Space in every run. */
static void fh_new_head(fh_space *s) {
    char text[256];
    snprintf(text, sizeof text, "commit %.180s %zu", s->id.ptr, s->commits);
    fh_sha1(hfsb_cstr(text), s->head);
}

static void fh_stages_begin(fh_space *s, const char *stages) {
    fh_set(&s->stages, hfsb_cstr(stages));
    s->asked = 0;
    s->since = hfsb_clock_ms();
}

static fh_space *fh_space_new(fh_hub *hub, hfsb_str id) {
    fh_space *s = (fh_space *)fh_new(sizeof *s), **at = &hub->spaces;
    fh_set(&s->id, id);
    snprintf(s->object, sizeof s->object, "67cae56f%016zx",
             ++hub->space_count);
    strcpy(s->sdk, "docker");
    strcpy(s->hardware, "cpu-basic");
    fh_time(s->created, 0);
    fh_time(s->modified, 0);
    fh_new_head(s);
    strcpy(s->old, s->head);
    s->absent = hub->o.missing;
    if (!hub->o.prompt) s->unknown = s->asleep = 1;
    fh_stages_begin(s, hub->o.fresh_stages ? hub->o.fresh_stages
                                           : "RUNNING@old");
    while (*at) at = &(*at)->next;
    *at = s;
    return s;
}

static void fh_pairs_free(fh_pair **list) {
    while (*list) {
        fh_pair *p = *list;
        *list = p->next;
        hfsb_buf_free(&p->key);
        hfsb_buf_free(&p->value);
        hfsb_buf_free(&p->description);
        free(p);
    }
}

static void fh_entries_free(fh_entry **list) {
    while (*list) {
        fh_entry *e = *list;
        *list = e->next;
        hfsb_buf_free(&e->path);
        hfsb_buf_free(&e->content);
        free(e);
    }
}

static void fh_space_free(fh_space *s) {
    fh_pairs_free(&s->secrets);
    fh_pairs_free(&s->variables);
    fh_entries_free(&s->files);
    hfsb_buf_free(&s->id);
    hfsb_buf_free(&s->volumes);
    hfsb_buf_free(&s->stages);
    hfsb_buf_free(&s->build_log);
    hfsb_buf_free(&s->run_log);
    free(s);
}

static fh_pair *fh_pair_find(fh_pair *list, hfsb_str key) {
    while (list && !hfsb_str_equal(hfsb_buf_str(&list->key), key))
        list = list->next;
    return list;
}

/* description.ptr NULL: it stays as it was. */
static void fh_pair_put(fh_pair **list, hfsb_str key, hfsb_str value,
                        hfsb_str description) {
    fh_pair *p = fh_pair_find(*list, key);
    while (!p && *list) list = &(*list)->next;
    if (!p) {
        p = *list = (fh_pair *)fh_new(sizeof *p);
        fh_set(&p->key, key);
    }
    fh_set(&p->value, value);
    if (description.ptr) fh_set(&p->description, description);
    fh_time(p->updated, 0);
}

static void fh_pair_remove(fh_pair **list, hfsb_str key) {
    for (; *list; list = &(*list)->next)
        if (hfsb_str_equal(hfsb_buf_str(&(*list)->key), key)) {
            fh_pair *one = *list;
            *list = one->next;
            one->next = NULL;
            fh_pairs_free(&one);
            return;
        }
}

/* ---- files ---- */

static fh_entry *fh_entry_find(fh_entry *list, hfsb_str path) {
    while (list && !hfsb_str_equal(hfsb_buf_str(&list->path), path))
        list = list->next;
    return list;
}

static fh_entry *fh_entry_put(fh_entry **list, hfsb_str path,
                              hfsb_str content) {
    fh_entry *e = fh_entry_find(*list, path);
    while (!e && *list) list = &(*list)->next;
    if (!e) {
        e = *list = (fh_entry *)fh_new(sizeof *e);
        fh_set(&e->path, path);
    }
    fh_set(&e->content, content);
    e->lfs = false;
    e->size = content.len;
    fh_blob_oid(content, e->oid);
    return e;
}

/* folder: all that is beneath path, which ends in "/". */
static void fh_entry_remove(fh_entry **list, hfsb_str path, bool folder) {
    while (*list) {
        hfsb_str at = hfsb_buf_str(&(*list)->path);
        if (hfsb_str_equal(at, path) ||
            (folder && hfsb_str_starts(at, path))) {
            fh_entry *one = *list;
            *list = one->next;
            one->next = NULL;
            fh_entries_free(&one);
        } else {
            list = &(*list)->next;
        }
    }
}

/* ---- stages ---- */

typedef struct fh_stage {
    int  status; /* in place of an answer; 0: none */
    char name[32], hardware[48], sha[41];
} fh_stage;

/* Item n of a list, the last one for those behind it. */
static hfsb_str fh_item(hfsb_str list, size_t n) {
    for (;;) {
        size_t comma = hfsb_str_find_byte(list, ',');
        if (comma == HFSB_NPOS || !n--)
            return hfsb_str_slice(list, 0, comma);
        list = hfsb_str_slice(list, comma + 1, list.len);
    }
}

static bool fh_runs(const char *stage) {
    return !strncmp(stage, "RUNNING", 7);
}

static fh_stage fh_stage_parse(const fh_space *s, hfsb_str item) {
    fh_stage out = HFSB_INIT;
    size_t   at = hfsb_str_find_byte(item, '@'), colon;
    hfsb_str sha = hfsb_str_make("new", 3);
    if (at != HFSB_NPOS) {
        sha = hfsb_str_slice(item, at + 1, item.len);
        item = hfsb_str_slice(item, 0, at);
    }
    colon = hfsb_str_find_byte(item, ':');
    fh_copy(out.name, sizeof out.name, hfsb_str_slice(item, 0, colon));
    if (colon != HFSB_NPOS)
        fh_copy(out.hardware, sizeof out.hardware,
                hfsb_str_slice(item, colon + 1, item.len));
    else if (fh_runs(out.name)) strcpy(out.hardware, s->hardware);
    if (out.name[0] >= '0' && out.name[0] <= '9') out.status = atoi(out.name);
    if (!fh_runs(out.name) || fh_same(sha, "none")) return out;
    if (fh_same(sha, "old")) strcpy(out.sha, s->old);
    else if (fh_same(sha, "new")) strcpy(out.sha, s->head);
    else fh_copy(out.sha, sizeof out.sha, sha);
    return out;
}

/* ask: this is a question, and the stages go on by it. */
static fh_stage fh_stage_now(fh_hub *hub, fh_space *s, bool ask) {
    size_t   n;
    fh_stage out = HFSB_INIT;
    if (s->machine && s->machine->stage) {
        fh_copy(out.name, sizeof out.name, hfsb_cstr(s->machine->stage));
        if (!fh_runs(out.name)) return out;
        strcpy(out.hardware, s->hardware);
        strcpy(out.sha, s->machine->sha);
        return out;
    }
    if (ask) s->asked++;
    n = hub->o.stage_ms
            ? (size_t)((hfsb_clock_ms() - s->since) / hub->o.stage_ms)
            : s->asked - (s->asked > 0);
    return fh_stage_parse(s, fh_item(hfsb_buf_str(&s->stages), n));
}

/* ---- replies ---- */

static void fh_reply_free(fh_reply *r) {
    hfsb_buf_free(&r->body);
    hfsb_buf_free(&r->fields);
}

static void fh_head_field(fh_reply *r, const char *name, const char *value) {
    FH_MUST(hfsb_buf_printf(&r->fields, "%s: %s\r\n", name, value));
}

#define FH_JSON "application/json; charset=utf-8"

static void fh_json(hfsb_json_writer *w, fh_reply *r) {
    hfsb_buf_truncate(&r->body, 0);
    r->status = 200;
    r->type = FH_JSON;
    hfsb_json_writer_init(w, &r->body, NULL);
}

static void fh_done(hfsb_json_writer *w) {
    FH_MUST(hfsb_json_writer_finish(w, NULL));
}

static void fh_key(hfsb_json_writer *w, const char *key) {
    hfsb_json_put_key(w, hfsb_cstr(key));
}
static void fh_text(hfsb_json_writer *w, const char *key, const char *value) {
    fh_key(w, key);
    hfsb_json_put_str(w, hfsb_cstr(value));
}
static void fh_text_or_null(hfsb_json_writer *w, const char *key,
                            const char *value) {
    if (*value) {
        fh_text(w, key, value);
        return;
    }
    fh_key(w, key);
    hfsb_json_put_null(w);
}
static void fh_int(hfsb_json_writer *w, const char *key, long long value) {
    fh_key(w, key);
    hfsb_json_put_int(w, value);
}
static void fh_bool(hfsb_json_writer *w, const char *key, bool value) {
    fh_key(w, key);
    hfsb_json_put_bool(w, value);
}

static void fh_raw(fh_reply *r, int status, const char *type,
                   const char *body) {
    r->status = status;
    r->type = type;
    fh_set(&r->body, hfsb_cstr(body));
}

/* {"error":message}, with X-Error-Message and X-Error-Code. */
static void fh_error(fh_reply *r, int status, const char *code,
                     const char *message) {
    hfsb_json_writer w;
    fh_json(&w, r);
    r->status = status;
    hfsb_json_put_object(&w);
    fh_text(&w, "error", message);
    hfsb_json_put_end(&w);
    fh_done(&w);
    if (code) fh_head_field(r, "X-Error-Code", code);
    fh_head_field(r, "X-Error-Message", message);
}

static void fh_no_repo(fh_reply *r) {
    fh_error(r, 404, "RepoNotFound", "Repository not found");
}

#define FH_PAGE                                                            \
    "<!DOCTYPE html>\n<html><head><title>%s</title></head>\n"              \
    "<body><h1>%s</h1><p>Your space is preparing.</p></body></html>\n"

static void fh_html(fh_reply *r, int status, const char *title) {
    r->status = status;
    r->type = "text/html; charset=utf-8";
    hfsb_buf_truncate(&r->body, 0);
    FH_MUST(hfsb_buf_printf(&r->body, FH_PAGE, title, title));
}

/* ---- requests ---- */

static fh_record *fh_record_new(fh_hub *hub) {
    fh_record *r = (fh_record *)fh_new(sizeof *r);
    if (hub->last) hub->last->next = r;
    else hub->records = r;
    hub->last = r;
    if (!hub->first) hub->first = r;
    return r;
}

static bool fh_record_is(const fh_record *r, const char *method,
                         const char *path) {
    bool edge = path && !strncmp(path, "edge:", 5);
    if (method && !fh_is(&r->method, method)) return false;
    if (!path) return true;
    return edge == r->edge &&
           fh_match(hfsb_buf_str(&r->path), path + (edge ? 5 : 0));
}

static hfsb_str fh_field(const fh_record *record, const char *name) {
    hfsb_str left = hfsb_buf_str(&record->fields);
    while (left.len) {
        size_t   end = hfsb_str_find(left, HFSB_LIT("\r\n"));
        hfsb_str line = hfsb_str_slice(left, 0, end);
        size_t   colon = hfsb_str_find_byte(line, ':');
        if (colon != HFSB_NPOS &&
            hfsb_http_same(hfsb_str_slice(line, 0, colon), hfsb_cstr(name))) {
            line = hfsb_str_slice(line, colon + 1, line.len);
            while (line.len && *line.ptr == ' ')
                line = hfsb_str_slice(line, 1, line.len);
            return line;
        }
        left = hfsb_str_slice(left, end == HFSB_NPOS ? left.len : end + 2,
                              left.len);
    }
    return hfsb_str_make("", 0);
}

/* The word behind "Bearer " in a field; "" when there is none. */
static hfsb_str fh_bearer(const fh_record *record, const char *name) {
    hfsb_str value = fh_field(record, name);
    if (value.len < 7 ||
        !hfsb_http_same(hfsb_str_slice(value, 0, 7), HFSB_LIT("Bearer ")))
        return hfsb_str_make("", 0);
    return hfsb_str_slice(value, 7, value.len);
}

static const char *fh_token(const fh_hub *hub) {
    return hub->o.token ? hub->o.token : FH_TOKEN;
}
static const char *fh_user(const fh_hub *hub) {
    return hub->o.user ? hub->o.user : "alice";
}

static bool fh_trusted(const fh_hub *hub, const fh_record *record) {
    return fh_same(fh_bearer(record, "Authorization"), fh_token(hub));
}

/* ---- what the tests ask ---- */

HFSBI_UNUSED static size_t fh_count(fh_hub *hub, const char *method,
                                    const char *path) {
    const fh_record *r;
    size_t           n = 0;
    fh_lock(hub);
    for (r = hub->first; r; r = r->next) n += fh_record_is(r, method, path);
    fh_unlock(hub);
    return n;
}

HFSBI_UNUSED static const fh_record *fh_nth(fh_hub *hub, size_t n,
                                            const char *method,
                                            const char *path) {
    const fh_record *r;
    fh_lock(hub);
    for (r = hub->first; r; r = r->next)
        if (fh_record_is(r, method, path) && !n--) break;
    fh_unlock(hub);
    return r;
}

HFSBI_UNUSED static bool fh_saw(fh_hub *hub, const char *text) {
    const fh_record *r;
    hfsb_str         what = hfsb_cstr(text);
    fh_lock(hub);
    for (r = hub->records; r; r = r->next)
        if (hfsb_str_find(hfsb_buf_str(&r->target), what) != HFSB_NPOS ||
            hfsb_str_find(hfsb_buf_str(&r->fields), what) != HFSB_NPOS ||
            hfsb_str_find(hfsb_buf_str(&r->body), what) != HFSB_NPOS)
            break;
    fh_unlock(hub);
    return r != NULL;
}

HFSBI_UNUSED static void fh_forget(fh_hub *hub) {
    fh_lock(hub);
    hub->first = NULL;
    fh_unlock(hub);
}

HFSBI_UNUSED static const char *fh_url(const fh_hub *hub) {
    return hub->url;
}
HFSBI_UNUSED static const char *fh_edge(const fh_hub *hub) {
    return hub->edge;
}

HFSBI_UNUSED static void fh_add_space(fh_hub *hub, const char *id, double days,
                                      bool hidden) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (!s) s = fh_space_new(hub, hfsb_cstr(id));
    s->hidden = hidden;
    s->absent = s->unknown = s->asleep = 0;
    fh_time(s->created, days);
    fh_time(s->modified, days);
    fh_stages_begin(s, "RUNNING");
    fh_unlock(hub);
}

HFSBI_UNUSED static bool fh_has(fh_hub *hub, const char *id) {
    bool has;
    fh_lock(hub);
    has = fh_find(hub, hfsb_cstr(id)) != NULL;
    fh_unlock(hub);
    return has;
}

HFSBI_UNUSED static bool fh_space_id(fh_hub *hub, size_t n, hfsb_buf *out) {
    fh_space *s;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next)
        if (!s->gone && !s->reserved && !n--) break;
    if (s) FH_MUST(hfsb_buf_append(out, hfsb_buf_str(&s->id)));
    fh_unlock(hub);
    return s != NULL;
}

HFSBI_UNUSED static size_t fh_spaces(fh_hub *hub) {
    fh_space *s;
    size_t    n = 0;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next) n += !s->gone && !s->reserved;
    fh_unlock(hub);
    return n;
}

static bool fh_give(hfsb_buf *out, const hfsb_buf *found) {
    if (found) FH_MUST(hfsb_buf_append(out, hfsb_buf_str(found)));
    return found != NULL;
}

HFSBI_UNUSED static bool fh_secret(fh_hub *hub, const char *id,
                                   const char *key, hfsb_buf *out) {
    fh_space *s;
    fh_pair  *p;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    p = s ? fh_pair_find(s->secrets, hfsb_cstr(key)) : NULL;
    ok = fh_give(out, p ? &p->value : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_variable(fh_hub *hub, const char *id,
                                     const char *key, hfsb_buf *out) {
    fh_space *s;
    fh_pair  *p;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    p = s ? fh_pair_find(s->variables, hfsb_cstr(key)) : NULL;
    ok = fh_give(out, p ? &p->value : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_file(fh_hub *hub, const char *id, const char *path,
                                 hfsb_buf *out) {
    fh_space *s;
    fh_entry *e;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    e = s ? fh_entry_find(s->files, hfsb_cstr(path)) : NULL;
    ok = fh_give(out, e ? &e->content : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_head(fh_hub *hub, const char *id, hfsb_buf *out) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (s) fh_put(out, s->head);
    fh_unlock(hub);
    return s != NULL;
}

HFSBI_UNUSED static size_t fh_commits(fh_hub *hub, const char *id) {
    fh_space *s;
    size_t    n;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    n = s ? s->commits : 0;
    fh_unlock(hub);
    return n;
}

HFSBI_UNUSED static void fh_stages(fh_hub *hub, const char *id,
                                   const char *stages) {
    fh_space *s;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next)
        if (!s->gone && (!id || fh_is(&s->id, id))) fh_stages_begin(s, stages);
    if (!id) fh_set(&hub->stages, hfsb_cstr(stages));
    fh_unlock(hub);
}

HFSBI_UNUSED static void fh_log(fh_hub *hub, const char *id, const char *which,
                                const char *line) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (s)
        FH_MUST(hfsb_buf_printf(
            strcmp(which, "build") ? &s->run_log : &s->build_log, "%s\n",
            line));
    fh_unlock(hub);
}

HFSBI_UNUSED static bool fh_work_dir(fh_hub *hub, const char *id,
                                     hfsb_buf *out) {
    fh_space *s;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    ok = fh_give(out, s && s->machine ? &s->machine->work : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_direct(fh_hub *hub, const char *id,
                                   hfsb_buf *out) {
    fh_space *s;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    ok = s && s->machine && s->machine->port;
    if (ok)
        FH_MUST(hfsb_buf_printf(out, "http://127.0.0.1:%u",
                                s->machine->port));
    fh_unlock(hub);
    return ok;
}

/* ---- files of a commit ---- */

/* {"path","content","encoding"}; list NULL: only looked at. False when its
   content cannot be decoded. */
static bool fh_put_file(fh_entry **list, const hfsb_json_value *file) {
    hfsb_buf bytes = HFSB_INIT;
    hfsb_str none = HFSB_INIT;
    hfsb_str path = hfsb_json_str(hfsb_json_get(file, "path"), none);
    hfsb_str content = hfsb_json_str(hfsb_json_get(file, "content"), none);
    bool     ok = true;
    if (fh_same(hfsb_json_str(hfsb_json_get(file, "encoding"), none),
                "base64"))
        ok = hfsb_base64_decode(content, &bytes, NULL) == HFSB_OK;
    else FH_MUST(hfsb_buf_append(&bytes, content));
    if (ok && list) fh_entry_put(list, path, hfsb_buf_str(&bytes));
    hfsb_buf_free(&bytes);
    return ok;
}

/* {"path","algo","oid","size"}, of the store; NULL: fine. */
static const char *fh_put_lfs(fh_hub *hub, fh_entry **list,
                              const hfsb_json_value *file) {
    hfsb_str  none = HFSB_INIT;
    hfsb_str  path = hfsb_json_str(hfsb_json_get(file, "path"), none);
    hfsb_str  oid = hfsb_json_str(hfsb_json_get(file, "oid"), none);
    fh_entry *stored = fh_entry_find(hub->store, oid), *e;
    if (!stored) return "an LFS object was not uploaded";
    if (!list) return NULL;
    e = fh_entry_put(list, path, hfsb_buf_str(&stored->content));
    e->lfs = true;
    fh_copy(e->oid, sizeof e->oid, oid);
    return NULL;
}
