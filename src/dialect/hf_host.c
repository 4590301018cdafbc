/* hf_host.c - host mode of the sandbox API of Hugging Face: many sandboxes in
   one server.

   A sandbox is a folder (its home), an environment of its own, a token, and a
   tools object whose root is the home:

     POST ---> home made (thread) --> LIVE --DELETE, or idle--> ENDING
                                                                  |
     freed <--- home removed (thread) <--- REMOVING <-- last user gone

   The token of the server makes, lists and removes all sandboxes and recovers
   their tokens; whatever works in one sandbox needs the token of that sandbox
   (protocol 3). All commands run as the user of the server: what keeps them
   apart is their confinement (Landlock), without which the mode is refused
   unless it is asked for. A port of a sandbox is a Unix socket in its home. */
#include "dialect_private.h"

enum { HFSBI_HF_CAPACITY = 64, HFSBI_HF_TOKEN = 64, HFSBI_HF_ID = 16 };

typedef enum hfsbi_hf_life {
    HFSBI_HF_NEW,    /* its home is being made */
    HFSBI_HF_LIVE,   /* in the list of sandboxes */
    HFSBI_HF_ENDING, /* its commands were killed */
    HFSBI_HF_REMOVING
} hfsbi_hf_life;

/* A request that waits until sandboxes are removed. */
typedef struct hfsbi_hf_wait {
    hfsb_request *request; /* NULL: gone */
    size_t        left, count;
    char          id[HFSBI_HF_ID + 1]; /* "": all sandboxes */
} hfsbi_hf_wait;

typedef struct hfsbi_hf_sandbox {
    hfsbi_hf_place           place; /* first: its functions cast it back */
    struct hfsbi_hf_sandbox *next;
    hfsbi_hf_host           *host;
    hfsbi_hf_life            life;
    char                     id[HFSBI_HF_ID + 1];
    char                     token[HFSBI_HF_TOKEN + 1]; /* to recover it */
    unsigned char            digest[HFSB_SHA256_SIZE];
    hfsb_buf                 home;
    long long                created; /* ms since 1970 */
    long long                idle_ms; /* 0: it is never removed for that */
    hfsbi_task               task;    /* the last user has gone; the removal */
    hfsbi_hf_wait           *wait;    /* for the removal; NULL: nobody */
} hfsbi_hf_sandbox;

struct hfsbi_hf_host {
    hfsbi_hf         *hf;
    hfsbi_hf_sandbox *list;            /* not removed yet, oldest first */
    size_t            count, capacity; /* count: LIVE, or being made */
    hfsb_buf          homes;           /* the folder of their homes */
    hfsb_confine_opts confine;
    bool              compat; /* the server's token opens every sandbox */
};

/* A request for new sandboxes. */
typedef struct hfsbi_hf_create {
    hfsbi_hf_host    *host;
    hfsbi_hf_sandbox *made; /* NEW; not in the host's list */
    size_t            rejected;
    hfsb_buf          env; /* of the request, for all of them */
    hfsb_confine_opts confine;
    hfsb_err          err;
} hfsbi_hf_create;

HFSBI_FN size_t hfsbi_hf_host_count(const hfsbi_hf_host *host) {
    return host->count;
}

static hfsbi_hf_sandbox *hfsbi_hf_find(const hfsbi_hf_host *host,
                                       hfsb_str             id) {
    hfsbi_hf_sandbox *s = host->list;
    while (s &&
           (s->life != HFSBI_HF_LIVE || !hfsb_str_equal(hfsb_cstr(s->id), id)))
        s = s->next;
    return s;
}

HFSBI_FN hfsbi_hf_place *hfsbi_hf_host_find(hfsbi_hf_host *host, hfsb_str id) {
    hfsbi_hf_sandbox *s = hfsbi_hf_find(host, id);
    return s ? &s->place : NULL;
}

/* ---- tokens ---- */

static void hfsbi_hf_digest(hfsb_str s, unsigned char out[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, s);
    hfsb_sha256_finish(&sha, out);
    hfsbi_wipe(&sha, sizeof sha);
}

/* True for "/v1/sandboxes", "/v1/sandboxes/{id}/token" and what is not about
   sandboxes. */
static bool hfsbi_hf_is_hosts(hfsb_str path, hfsb_str id) {
    hfsb_str start = HFSB_LIT("/v1/sandboxes/");
    if (!hfsb_str_starts(path, start)) return true;
    return hfsb_str_equal(hfsb_str_slice(path, start.len + id.len, path.len),
                          HFSB_LIT("/token"));
}

HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request) {
    const char             *field = "X-Sandbox-Token";
    const hfsb_http_head   *head = hfsb_request_head(request);
    hfsb_str                id = hfsb_request_part(request, 0);
    hfsb_str                sent = hfsb_http_field_find(head, field);
    const hfsbi_hf_sandbox *s;
    unsigned char           mine[HFSB_SHA256_SIZE], none[HFSB_SHA256_SIZE];
    if (hfsbi_hf_is_hosts(head->path, id))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    s = hfsbi_hf_find(hf->host, id);
    if (!s) { /* that of a sandbox that is gone, for example: 404 */
        bool any = sent.len > 0;
        memset(none, 0, sizeof none);
        (void)hfsbi_request_proves(request, field, NULL, none);
        return any || hfsbi_server_is_open(hf->base.server);
    }
    hfsbi_hf_digest(sent, mine);
    if (memcmp(mine, s->digest, sizeof mine) != 0 &&
        (hf->host->compat || hfsbi_server_is_open(hf->base.server)))
        return hfsbi_dialect_trusts(&hf->base, request, field, NULL);
    return hfsbi_request_proves(request, field, NULL, s->digest);
}

/* ---- removing ---- */

static void hfsbi_hf_sandbox_free(hfsbi_hf_sandbox *s) {
    hfsb_alloc alloc = s->host->hf->base.alloc;
    hfsb_buf_free(&s->home);
    hfsbi_wipe(s->token, sizeof s->token);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

static void hfsbi_hf_unlink(hfsbi_hf_sandbox *s) {
    hfsbi_hf_sandbox **link = &s->host->list;
    while (*link && *link != s) link = &(*link)->next;
    if (*link) *link = s->next;
}

/* In a thread. */
static void hfsbi_hf_remove_home(const hfsb_buf *home) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = opts.force = true;
    (void)hfsbi_path_remove_all(NULL, hfsb_buf_str(home), &opts, NULL, NULL);
}

static void hfsbi_hf_wait_reply(hfsbi_hf_wait *w, const hfsb_alloc *alloc) {
    hfsbi_build b;
    if (w->request) {
        hfsb_request_on_gone(w->request, NULL, NULL);
        hfsbi_build_init(&b, alloc);
        hfsbi_build_object(&b, NULL);
        if (w->id[0]) {
            hfsbi_build_str(&b, "id", hfsb_cstr(w->id));
            hfsbi_build_bool(&b, "deleted", true);
        } else {
            hfsbi_build_int(&b, "deleted", (long long)w->count);
        }
        hfsbi_build_end(&b);
        hfsbi_dialect_reply(w->request, 200, &b);
    }
    hfsbi_array_free(alloc, w, 1, sizeof *w);
}

static void hfsbi_hf_removal_run(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    hfsbi_hf_remove_home(&s->home);
}

static void hfsbi_hf_removal_done(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    hfsbi_hf_wait *w = s->wait;
    hfsb_alloc     alloc = s->host->hf->base.alloc;
    hfsbi_hf_unlink(s);
    hfsbi_hf_sandbox_free(s);
    if (w && --w->left == 0) hfsbi_hf_wait_reply(w, &alloc);
}

/* In the loop, when nobody uses the sandbox any more. */
static void hfsbi_hf_removal(hfsbi_task *task) {
    hfsbi_hf_sandbox *s =
        (hfsbi_hf_sandbox *)(void *)((char *)task -
                                     offsetof(hfsbi_hf_sandbox, task));
    (void)hfsbi_tools_sweep(s->place.tools, true);
    s->life = HFSBI_HF_REMOVING;
    s->place.unused = NULL;
    hfsbi_hf_place_clear(&s->place);
    hfsbi_tools_free(s->place.tools);
    s->place.tools = NULL;
    memset(&s->task, 0, sizeof s->task);
    s->task.run = hfsbi_hf_removal_run;
    s->task.done = hfsbi_hf_removal_done;
    hfsbi_loop_work(s->host->hf->base.loop, &s->task);
}

static void hfsbi_hf_unused(hfsbi_hf_place *place) {
    hfsbi_hf_sandbox *s = (hfsbi_hf_sandbox *)(void *)place;
    if (s->life == HFSBI_HF_ENDING && s->task.done == NULL) {
        s->task.done = hfsbi_hf_removal;
        hfsbi_loop_post(s->host->hf->base.loop, &s->task);
    }
}

/* Ends a sandbox, its processes at once. */
static void hfsbi_hf_sandbox_end(hfsbi_hf_sandbox *s, hfsbi_hf_wait *w) {
    s->life = HFSBI_HF_ENDING;
    s->host->count--;
    s->wait = w;
    if (w) w->left++, w->count++;
    hfsbi_hf_place_hold(&s->place);
    (void)hfsbi_tools_sweep(s->place.tools, true);
    hfsbi_hf_place_release(&s->place);
}

HFSBI_FN void hfsbi_hf_host_look(hfsbi_hf_host *host, long long now) {
    hfsbi_hf_sandbox *s = host->list, *next;
    for (; s; s = next) {
        next = s->next;
        if (s->life == HFSBI_HF_LIVE && s->idle_ms && !s->place.users &&
            now - s->place.used >= s->idle_ms)
            hfsbi_hf_sandbox_end(s, NULL);
    }
}

static void hfsbi_hf_wait_gone(void *user, hfsb_request *request) {
    (void)request;
    ((hfsbi_hf_wait *)user)->request = NULL;
}

/* Removes one sandbox, or with an empty id all of them. */
static void hfsbi_hf_remove_some(hfsbi_hf *hf, hfsb_request *request,
                                 hfsb_str id) {
    hfsb_alloc       *alloc = &hf->base.alloc;
    hfsbi_hf_sandbox *s = hf->host->list, *next;
    hfsbi_hf_wait    *w;
    if (id.len && !hfsbi_hf_find(hf->host, id)) {
        hfsb_reply_error(request, 404, "no such sandbox");
        return;
    }
    w = (hfsbi_hf_wait *)hfsbi_array(alloc, 1, sizeof *w);
    if (!w) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(w, 0, sizeof *w);
    w->request = request;
    if (id.len) memcpy(w->id, id.ptr, HFSBI_HF_ID);
    hfsb_request_on_gone(request, hfsbi_hf_wait_gone, w);
    w->left = 1; /* this function */
    for (; s; s = next) {
        next = s->next;
        if (s->life == HFSBI_HF_LIVE &&
            (!id.len || hfsb_str_equal(hfsb_cstr(s->id), id)))
            hfsbi_hf_sandbox_end(s, w);
    }
    if (--w->left == 0) hfsbi_hf_wait_reply(w, alloc);
}

static void hfsbi_hf_sandboxes_delete(void *user, hfsb_request *request) {
    hfsbi_hf_remove_some((hfsbi_hf *)user, request, HFSB_LIT(""));
}

static void hfsbi_hf_sandbox_delete(void *user, hfsb_request *request) {
    hfsbi_hf_remove_some((hfsbi_hf *)user, request,
                         hfsb_request_part(request, 0));
}

/* ---- making ---- */

static bool hfsbi_hf_env_names(const hfsb_buf *env, hfsb_str name) {
    size_t at;
    for (at = 0; at < env->len; at += strlen(env->ptr + at) + 1)
        if (hfsb_str_equal(hfsbi_env_name(env->ptr + at), name)) return true;
    return false;
}

/* Adds a variable of every sandbox, unless the request has set it. */
static void hfsbi_hf_add_env(hfsb_buf *env, const char *name,
                             const char *format, const char *value) {
    if (hfsbi_hf_env_names(env, hfsb_cstr(name))) return;
    hfsb_buf_printf(env, "%s=", name);
    hfsb_buf_printf(env, format, value);
    hfsb_buf_append_byte(env, '\0');
}

static void hfsbi_hf_fill_env(const hfsbi_hf_sandbox *s, hfsb_buf *env) {
    const char *home = s->home.ptr;
    hfsbi_hf_add_env(env, "PATH",
                     "%s/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                     "/usr/bin:/sbin:/bin",
                     home);
    hfsbi_hf_add_env(env, "HOME", "%s", home);
    hfsbi_hf_add_env(env, "TMPDIR", "%s/.tmp", home);
    hfsbi_hf_add_env(env, "USER", "sbx-%s", s->id);
    hfsbi_hf_add_env(env, "LOGNAME", "sbx-%s", s->id);
    hfsbi_hf_add_env(env, "SBX_SANDBOX_ID", "%s", s->id);
    hfsbi_hf_add_env(env, "SBX_PROXY_DIR", "%s/.sbx/proxy", home);
}

/* Opens the tools of a sandbox whose home exists. */
static hfsb_status hfsbi_hf_open_tools(hfsbi_hf_sandbox      *s,
                                       const hfsbi_hf_create *c,
                                       hfsb_err              *err) {
    const hfsb_tools *like = s->host->hf->base.tools;
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_buf          env = HFSB_INIT;
    const char      **list = NULL;
    size_t            n = 0, i = 0, at;
    hfsb_status       st = HFSB_NOMEM;
    char              who[40];
    env.alloc = like->alloc;
    hfsb_buf_append(&env, hfsb_buf_str(&c->env));
    hfsbi_hf_fill_env(s, &env);
    for (at = 0; at < env.len; at += strlen(env.ptr + at) + 1) n++;
    if (env.status == HFSB_OK)
        list = (const char **)hfsbi_array(&like->alloc, n + 1, sizeof *list);
    if (list) {
        for (at = 0; at < env.len; at += strlen(env.ptr + at) + 1)
            list[i++] = env.ptr + at;
        list[i] = NULL;
        (void)snprintf(who, sizeof who, "hf/%s", s->id);
        o.work_dir = o.root = hfsb_buf_str(&s->home);
        o.env = list;
        o.confine = c->confine;
        o.grace_ms = like->limits.grace_ms;
        o.max_running = like->limits.running;
        o.max_waiting = like->limits.waiting;
        o.no_spill = o.no_checks = o.no_keeper = true;
        o.journal = like->journal;
        o.who = who;
        o.alloc = like->alloc;
        st = hfsbi_tools_open_in(like->group, NULL, &o, &s->place.tools, err);
    }
    hfsbi_array_free(&like->alloc, (void *)list, n + 1, sizeof *list);
    hfsb_buf_free(&env);
    return st == HFSB_NOMEM ? hfsbi_fail_status(err, st, "A sandbox") : st;
}

/* Makes a sandbox; NULL without memory or random numbers. */
static hfsbi_hf_sandbox *hfsbi_hf_sandbox_new(hfsbi_hf_host *host) {
    hfsb_alloc       *alloc = &host->hf->base.alloc;
    hfsbi_hf_sandbox *s = (hfsbi_hf_sandbox *)hfsbi_array(alloc, 1, sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->host = host;
    s->home.alloc = *alloc;
    s->place.rooted = true;
    s->place.unused = hfsbi_hf_unused;
    s->place.used = hfsb_clock_ms();
    s->created = hfsbi_time_ns() / 1000000;
    hfsb_buf_append(&s->home, hfsb_buf_str(&host->homes));
    if (hfsbi_random_hex(s->id, HFSBI_HF_ID) &&
        hfsbi_random_hex(s->token, HFSBI_HF_TOKEN) &&
        hfsb_buf_printf(&s->home, "/%s", s->id) == HFSB_OK) {
        hfsbi_hf_digest(hfsb_cstr(s->token), s->digest);
        return s;
    }
    hfsbi_hf_sandbox_free(s);
    return NULL;
}

/* Makes the homes; in a thread. */
static void hfsbi_hf_create_run(void *user) {
    static const char *const folders[] = {"", "/.tmp", "/.sbx", "/.sbx/proxy",
                                          NULL};
    hfsbi_hf_create         *c = (hfsbi_hf_create *)user;
    hfsbi_hf_sandbox        *s;
    size_t                   i;
    hfsb_status              st = HFSB_OK;
    for (s = c->made; s && st == HFSB_OK; s = s->next) {
        size_t len = s->home.len;
        for (i = 0; folders[i] && st == HFSB_OK; i++) {
            st = hfsb_buf_append(&s->home, hfsb_cstr(folders[i]));
            if (st == HFSB_OK)
                st = hfsbi_path_make_folder(NULL, hfsb_buf_str(&s->home), 0700,
                                            HFSBI_MAKE_PARENTS, NULL, &c->err);
            else (void)hfsbi_fail_status(&c->err, st, "A sandbox");
            hfsb_buf_truncate(&s->home, len);
        }
    }
}

/* Removes the homes of a failed request; in a thread. */
static void hfsbi_hf_create_undo(void *user) {
    const hfsbi_hf_sandbox *s = ((hfsbi_hf_create *)user)->made;
    for (; s; s = s->next) hfsbi_hf_remove_home(&s->home);
}

static void hfsbi_hf_create_free(hfsbi_hf_create *c) {
    hfsb_alloc        alloc = c->host->hf->base.alloc;
    hfsbi_hf_sandbox *s;
    while ((s = c->made) != NULL) {
        c->made = s->next;
        c->host->count--;
        if (s->place.tools) hfsbi_tools_free(s->place.tools);
        hfsbi_hf_sandbox_free(s);
    }
    hfsb_buf_free(&c->env);
    hfsbi_array_free(&alloc, c, 1, sizeof *c);
}

static void hfsbi_hf_create_undone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_hf_create_free((hfsbi_hf_create *)user);
}

static void hfsbi_hf_put_sandbox(hfsbi_build *b, const hfsbi_hf_sandbox *s) {
    hfsbi_build_str(b, "id", hfsb_cstr(s->id));
    hfsbi_build_int(b, "uid", (long long)getuid());
    hfsbi_build_str(b, "home", hfsb_buf_str(&s->home));
    hfsbi_build_str(b, "confinement",
                    hfsb_cstr(hfsb_confine_level_name(
                        hfsb_confine_level_of(s->place.tools->confine))));
}

/* The homes exist: the sandboxes become known. If one fails, or the client,
   who alone knows of them, is gone, there are none. */
static void hfsbi_hf_create_done(void *user, hfsb_request *request) {
    hfsbi_hf_create   *c = (hfsbi_hf_create *)user;
    hfsbi_hf_sandbox **link = &c->host->list, *s;
    hfsb_status        st = c->err.code;
    hfsbi_build        b;
    for (s = c->made; s && st == HFSB_OK; s = s->next)
        st = hfsbi_hf_open_tools(s, c, &c->err);
    if (st != HFSB_OK || hfsbi_request_is_gone(request)) {
        hfsb_reply_error(request, st == HFSB_NOMEM ? 503 : 500, "%s",
                         c->err.msg);
        hfsbi_request_work(request, false, hfsbi_hf_create_undo,
                           hfsbi_hf_create_undone, c);
        return;
    }
    hfsbi_build_init(&b, &c->host->hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_array(&b, "sandboxes");
    while (*link) link = &(*link)->next;
    *link = c->made;
    for (s = c->made; s; s = s->next) {
        s->life = HFSBI_HF_LIVE;
        s->place.used = hfsb_clock_ms();
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_sandbox(&b, s);
        hfsbi_build_str(&b, "token", hfsb_cstr(s->token));
        hfsbi_build_end(&b);
    }
    c->made = NULL;
    hfsbi_build_end(&b);
    hfsbi_build_int(&b, "rejected", (long long)c->rejected);
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
    hfsbi_hf_create_free(c);
}

/* Reads a number that is not negative; absent or null: the fallback. */
static bool hfsbi_hf_take_int(hfsb_request *request, const hfsb_json_value *o,
                              const char *key, long long max,
                              long long *value) {
    const hfsb_json_value *v = hfsb_json_get(o, key);
    double                 n;
    if (hfsb_json_type_of(v) == HFSB_JSON_NULL) return true;
    n = hfsb_json_double(v, -1);
    if (n >= 0) {
        *value = n > (double)max ? max : (long long)n;
        return true;
    }
    hfsb_reply_error(request, 400, "'%s' must be a number, 0 or more", key);
    return false;
}

/* Reads the request into *c, with as many new sandboxes as there is room for.
   False after an error reply. */
static bool hfsbi_hf_create_read(hfsbi_hf_create *c, hfsb_request *request,
                                 const hfsb_json_value *o) {
    hfsbi_hf_host     *host = c->host;
    hfsbi_hf_sandbox **link = &c->made;
    long long          count = 1, idle = 0, procs = 0, megabytes = 0;
    if (!hfsbi_hf_take_int(request, o, "count", 1000000, &count) ||
        !hfsbi_hf_take_int(request, o, "idle_timeout_secs", 100000000,
                           &idle) ||
        !hfsbi_hf_take_int(request, o, "max_procs", 1000000, &procs) ||
        !hfsbi_hf_take_int(request, o, "max_mem_mb", 1 << 30, &megabytes) ||
        !hfsbi_hf_put_env(request, hfsb_json_get(o, "env"), &c->env))
        return false;
    c->confine.max_processes = (unsigned long long)procs;
    c->confine.max_memory = (unsigned long long)megabytes << 20;
    for (; count > 0 && host->count < host->capacity; count--) {
        *link = hfsbi_hf_sandbox_new(host);
        if (!*link) break;
        host->count++;
        (*link)->idle_ms = idle * 1000;
        link = &(*link)->next;
    }
    c->rejected = (size_t)count;
    if ((count == 0 || host->count >= host->capacity) &&
        c->env.status == HFSB_OK)
        return true;
    hfsb_reply_error(request, 503, "Out of memory.");
    return false;
}

static void hfsbi_hf_sandboxes_post(void *user, hfsb_request *request) {
    hfsbi_hf        *hf = (hfsbi_hf *)user;
    hfsbi_hf_create *c;
    hfsb_json_doc    doc = HFSB_INIT;
    bool             empty = hfsb_request_body(request).len == 0, ok;
    if (!empty && !hfsbi_dialect_parse(request, &doc)) return;
    c = (hfsbi_hf_create *)hfsbi_array(&hf->base.alloc, 1, sizeof *c);
    if (c) {
        memset(c, 0, sizeof *c);
        c->host = hf->host;
        c->confine = hf->host->confine;
        c->env.alloc = hf->base.alloc;
        ok = hfsbi_hf_create_read(c, request, doc.root);
        if (ok)
            hfsbi_request_work(request, false, hfsbi_hf_create_run,
                               hfsbi_hf_create_done, c);
        else hfsbi_hf_create_free(c);
    } else {
        hfsb_reply_error(request, 503, "Out of memory.");
    }
    hfsb_json_free(&doc);
}

/* ---- looking ---- */

static void hfsbi_hf_sandboxes_get(void *user, hfsb_request *request) {
    hfsbi_hf               *hf = (hfsbi_hf *)user;
    const hfsbi_hf_sandbox *s = hf->host->list;
    hfsbi_build             b;
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_array(&b, NULL);
    for (; s; s = s->next) {
        if (s->life != HFSBI_HF_LIVE) continue;
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_sandbox(&b, s);
        hfsbi_build_int(&b, "created_at_ms", s->created);
        hfsbi_build_end(&b);
    }
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

static void hfsbi_hf_sandbox_token(void *user, hfsb_request *request) {
    hfsbi_hf               *hf = (hfsbi_hf *)user;
    const hfsbi_hf_sandbox *s =
        hfsbi_hf_find(hf->host, hfsb_request_part(request, 0));
    hfsbi_build b;
    if (!s) {
        hfsb_reply_error(request, 404, "no such sandbox");
        return;
    }
    hfsbi_build_init(&b, &hf->base.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "id", hfsb_cstr(s->id));
    hfsbi_build_str(&b, "token", hfsb_cstr(s->token));
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
}

/* ---- ports ---- */

/* Opens the socket of a port, by its path beneath the home; -1: there is
   none. */
static int hfsbi_hf_open_socket(const hfsbi_hf_place *place, unsigned port) {
    int at = -1;
#ifdef HFSBI_LINUX
    hfsbi_target target;
    char         path[48];
    (void)snprintf(path, sizeof path, ".sbx/proxy/%u.sock", port);
    if (hfsbi_resolve(place->tools->place, hfsb_cstr(path),
                      HFSBI_RESOLVE_NO_FOLLOW, "open", &target,
                      NULL) != HFSB_OK)
        return -1;
    if (target.exists && S_ISSOCK(target.st.st_mode))
        at = hfsbi_openat(target.dir, target.name, O_PATH | O_NOFOLLOW, 0);
    hfsbi_target_close(&target);
#else
    (void)place;
    (void)port;
#endif
    return at;
}

/* It is connected to by the descriptor, so that a symlink cannot name the
   socket of somebody else, and the path may be long. */
HFSBI_FN int hfsbi_hf_host_connect(hfsbi_hf_place *place, unsigned port) {
    struct sockaddr_un a;
    int                at = hfsbi_hf_open_socket(place, port), fd = -1;
    int                code = ENOENT;
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    (void)snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d", at);
    if (at >= 0) fd = hfsbi_relay_socket(AF_UNIX);
    if (at >= 0 && fd < 0) code = errno;
    if (fd >= 0) {
        code = connect(fd, (struct sockaddr *)(void *)&a, sizeof a) == 0
                   ? 0
                   : errno;
        if (code) hfsbi_close(&fd);
    }
    hfsbi_close(&at);
    errno = code;
    return fd;
}

/* ---- the host ---- */

HFSBI_FN void hfsbi_hf_host_end(hfsbi_hf_host *host) {
    hfsbi_hf_sandbox *s;
    for (s = host->list; s; s = s->next)
        if (s->place.tools) hfsbi_jobs_end(s->place.tools, HFSB_LIT(""));
}

HFSBI_FN bool hfsbi_hf_host_busy(hfsbi_hf_host *host) {
    hfsbi_hf_sandbox *s;
    for (s = host->list; s; s = s->next)
        if (s->place.tools && hfsbi_tools_in_use(s->place.tools)) return true;
    return false;
}

HFSBI_FN void hfsbi_hf_host_close(hfsbi_hf_host *host) {
    hfsb_alloc        alloc = host->hf->base.alloc;
    hfsbi_hf_sandbox *s;
    while ((s = host->list) != NULL) {
        host->list = s->next;
        s->place.unused = NULL;
        hfsbi_hf_place_clear(&s->place);
        (void)hfsbi_tools_sweep(s->place.tools, true);
        hfsbi_tools_free(s->place.tools);
        hfsbi_hf_remove_home(&s->home);
        hfsbi_hf_sandbox_free(s);
    }
    hfsb_buf_free(&host->homes);
    hfsbi_array_free(&alloc, host, 1, sizeof *host);
}

/* Chooses how sandboxes are kept apart. */
static hfsb_status hfsbi_hf_choose_confine(hfsbi_hf_host           *host,
                                           const hfsb_dialect_opts *opts,
                                           hfsb_err                *err) {
    hfsb_confine *trial = NULL;
    hfsb_status   st;
    host->confine.level = HFSB_CONFINE_STRICT;
    host->confine.net = "on";
    host->confine.no_temp = true;
    host->confine.alloc = host->hf->base.alloc;
    st = hfsb_confine_open(&host->confine, &trial, err);
    hfsb_confine_close(trial);
    if (st != HFSB_REFUSED) return st;
    if (hfsbi_dialect_setting(opts, "SBX_ALLOW_UNCONFINED").len) {
        memset(&host->confine, 0, sizeof host->confine);
        return HFSB_OK;
    }
    hfsbi_err_add(err, " Sandboxes of host mode could read each other's "
                       "files: set SBX_ALLOW_UNCONFINED=1 to accept that.");
    return st;
}

/* Appends the folder of the homes, without symlinks. */
static hfsb_status hfsbi_hf_find_homes(hfsbi_hf_host           *host,
                                       const hfsb_dialect_opts *opts,
                                       hfsb_err                *err) {
    hfsb_str    given = hfsbi_dialect_setting(opts, "SBX_HOMES");
    hfsb_str    work = hfsb_root_work_dir(host->hf->base.tools->place);
    hfsb_buf    path = HFSB_INIT;
    hfsb_status st;
    char        here[PATH_MAX];
    path.alloc = host->homes.alloc = host->hf->base.alloc;
    if (!work.len && getcwd(here, sizeof here)) work = hfsb_cstr(here);
    if (given.len) hfsb_buf_append(&path, given);
    else {
        hfsb_buf_append(&path, work);
        hfsb_buf_append(&path, HFSB_LIT("/sbx/homes"));
    }
    st = path.status;
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Host mode");
    if (st == HFSB_OK)
        st = hfsbi_path_make_folder(NULL, hfsb_buf_str(&path), 0711,
                                    HFSBI_MAKE_PARENTS, NULL, err);
    if (st == HFSB_OK)
        st =
            hfsbi_path_canonical(NULL, hfsb_buf_str(&path), &host->homes, err);
    hfsb_buf_free(&path);
    return st;
}

HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err) {
    static const hfsbi_dialect_route routes[] = {
        {"POST", "/v1/sandboxes", hfsbi_hf_sandboxes_post, false, NULL, NULL},
        {"GET", "/v1/sandboxes", hfsbi_hf_sandboxes_get, false, NULL, NULL},
        {"DELETE", "/v1/sandboxes", hfsbi_hf_sandboxes_delete, false, NULL,
         NULL},
        {"DELETE", "/v1/sandboxes/*", hfsbi_hf_sandbox_delete, false, NULL,
         NULL},
        {"GET", "/v1/sandboxes/*/token", hfsbi_hf_sandbox_token, false, NULL,
         NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    hfsb_str       capacity = hfsbi_dialect_setting(opts, "SBX_CAPACITY");
    hfsb_alloc    *alloc = &hf->base.alloc;
    hfsbi_hf_host *host = (hfsbi_hf_host *)hfsbi_array(alloc, 1, sizeof *host);
    long long      most = HFSBI_HF_CAPACITY;
    hfsb_status    st;
    if (!host) return hfsbi_fail_status(err, HFSB_NOMEM, "Host mode");
    memset(host, 0, sizeof *host);
    hf->host = host;
    host->hf = hf;
    host->compat = hfsb_str_equal(
        hfsbi_dialect_setting(opts, "SBX_COMPAT_HOST_TOKEN"), HFSB_LIT("1"));
    if (capacity.len && (!hfsbi_hf_number(capacity, 100000, &most) || !most))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "SBX_CAPACITY must be a number of sandboxes from 1 "
                          "to 100000.");
    host->capacity = (size_t)most;
    st = hfsbi_hf_choose_confine(host, opts, err);
    if (st == HFSB_OK) st = hfsbi_hf_find_homes(host, opts, err);
    if (st == HFSB_OK) st = hfsbi_dialect_add(&hf->base, routes, err);
    return st;
}
