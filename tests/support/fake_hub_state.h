/* fake_hub_state.h - what the fake Hub knows: Spaces, files, jobs, requests.
   Part of fake_hub.h. */

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
    hfsb_buf           command; /* of a job that is run: JSON, or empty */
} fh_machine;

typedef struct fh_space {
    struct fh_space *next;
    hfsb_buf         id;
    char             object[25];
    bool             hidden, gone, reserved; /* reserved: the template, or a
                                                model */
    bool             model;
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
    fh_space      *box; /* what a job with an exposed port runs on: not among
                           the Spaces; NULL: it has none */
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
    int  status; /* instead of an answer; 0: none */
    char name[32], hardware[48], sha[41];
} fh_stage;

/* Item n of a list; past its end the last one. */
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

/* The word after "Bearer " in a field; "" when there is none. */
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
