/* hf_create.c - host mode of the sandbox API of Hugging Face: new sandboxes.

     POST --> ids and tokens --> homes (thread) --> tools --> LIVE, reply
                                   |                  |
                                   +---- a failure ---+--> homes removed

   A request makes all that it asks for and there is room for, or none. Its
   sandboxes count from the beginning, so that two requests do not take the
   same room. */
#include "dialect_private.h"

/* A request for new sandboxes. */
typedef struct hfsbi_hf_create {
    hfsbi_hf_host    *host;
    hfsbi_hf_sandbox *made; /* NEW; not in the host's list */
    size_t            rejected;
    hfsb_buf          env; /* of the request, for all of them */
    hfsb_confine_opts confine;
    hfsb_err          err;
} hfsbi_hf_create;

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

HFSBI_FN void hfsbi_hf_put_sandbox(hfsbi_build *b, const hfsbi_hf_sandbox *s) {
    hfsbi_build_str(b, "id", hfsb_cstr(s->id));
    hfsbi_build_int(b, "uid", (long long)geteuid());
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

HFSBI_FN void hfsbi_hf_sandboxes_post(void *user, hfsb_request *request) {
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
