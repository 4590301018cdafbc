/* hf_create.c - host mode of the sandbox API of Hugging Face: new sandboxes.

     POST --> an order of host.c: homes (thread) --> tools --> reply

   A request is granted as many sandboxes as it asks for and there is room for;
   all of these are made, or none. */
#include "dialect_private.h"

enum { /* of a sandbox with a uid of its own, unless a request has others */
       HFSBI_HF_PROCESSES = 256,
       HFSBI_HF_MEGABYTES = 2048
};

/* A request for new sandboxes. */
typedef struct hfsbi_hf_create {
    hfsbi_order       order; /* first */
    size_t            rejected;
    hfsb_buf          env; /* of the request, for all of them */
    hfsb_confine_opts confine;
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

static void hfsbi_hf_fill_env(const hfsbi_guest *guest, hfsb_buf *env) {
    const char *home = guest->dir.ptr;
    hfsbi_hf_add_env(env, "PATH",
                     "%s/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                     "/usr/bin:/sbin:/bin",
                     home);
    hfsbi_hf_add_env(env, "HOME", "%s", home);
    hfsbi_hf_add_env(env, "TMPDIR", "%s/.tmp", home);
    hfsbi_hf_add_env(env, "USER", "sbx-%s", guest->id);
    hfsbi_hf_add_env(env, "LOGNAME", "sbx-%s", guest->id);
    hfsbi_hf_add_env(env, "SBX_SANDBOX_ID", "%s", guest->id);
    hfsbi_hf_add_env(env, "SBX_PROXY_DIR", "%s/.sbx/proxy", home);
}

HFSBI_FN hfsb_status hfsbi_hf_open_tools(hfsbi_order *order,
                                         hfsbi_guest *guest, hfsb_err *err) {
    const hfsbi_hf_create *c = (const hfsbi_hf_create *)(const void *)order;
    const hfsb_tools      *like = guest->host->dialect->tools;
    hfsb_tools_opts        o = HFSB_INIT;
    hfsb_buf               env = HFSB_INIT;
    const char           **list = NULL;
    size_t                 n = 0, i = 0, at;
    hfsb_status            st = HFSB_NOMEM;
    char                   who[40];
    env.alloc = like->alloc;
    hfsb_buf_append(&env, hfsb_buf_str(&c->env));
    hfsbi_hf_fill_env(guest, &env);
    for (at = 0; at < env.len; at += strlen(env.ptr + at) + 1) n++;
    if (env.status == HFSB_OK)
        list = (const char **)hfsbi_array(&like->alloc, n + 1, sizeof *list);
    if (list) {
        for (at = 0; at < env.len; at += strlen(env.ptr + at) + 1)
            list[i++] = env.ptr + at;
        list[i] = NULL;
        (void)snprintf(who, sizeof who, "hf/%s", guest->id);
        o.work_dir = o.root = hfsb_buf_str(&guest->dir);
        o.env = list;
        o.confine = c->confine;
        o.grace_ms = like->limits.grace_ms;
        o.max_running = like->limits.running;
        o.max_waiting = like->limits.waiting;
        o.no_spill = o.no_checks = o.no_keeper = true;
        o.journal = like->journal;
        o.who = who;
        o.alloc = like->alloc;
        st = hfsbi_tools_open_in(like->group, NULL, &o, &guest->tools, err);
    }
    hfsbi_array_free(&like->alloc, (void *)list, n + 1, sizeof *list);
    hfsb_buf_free(&env);
    return st == HFSB_NOMEM ? hfsbi_fail_status(err, st, "A sandbox") : st;
}

static void hfsbi_hf_create_free(hfsbi_hf_create *c) {
    hfsb_alloc alloc = c->env.alloc;
    hfsb_buf_free(&c->env);
    hfsbi_array_free(&alloc, c, 1, sizeof *c);
}

HFSBI_FN void hfsbi_hf_put_sandbox(hfsbi_build *b, const hfsbi_guest *guest) {
    hfsbi_build_str(b, "id", hfsb_cstr(guest->id));
    hfsbi_build_int(b, "uid",
                    guest->uid ? (long long)guest->uid : (long long)geteuid());
    hfsbi_build_str(b, "home", hfsb_buf_str(&guest->dir));
    hfsbi_build_str(b, "confinement",
                    hfsb_cstr(hfsb_confine_level_name(
                        hfsb_confine_level_of(guest->tools->confine))));
}

static void hfsbi_hf_create_done(hfsbi_order *order, hfsb_request *request) {
    hfsbi_hf_create   *c = (hfsbi_hf_create *)(void *)order;
    const hfsbi_guest *g = order->first;
    hfsbi_build        b;
    if (order->st != HFSB_OK) {
        hfsb_reply_error(request, order->st == HFSB_NOMEM ? 503 : 500, "%s",
                         order->err.msg);
        hfsbi_hf_create_free(c);
        return;
    }
    hfsbi_build_init(&b, &c->env.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_array(&b, "sandboxes");
    for (; g; g = g->peer) {
        hfsbi_build_object(&b, NULL);
        hfsbi_hf_put_sandbox(&b, g);
        hfsbi_build_str(&b, "token", hfsb_buf_str(&g->token));
        hfsbi_build_end(&b);
    }
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
    hfsbi_host *host = c->order.host;
    long long   count = 1, idle = 0, procs = 0, megabytes = 0;
    if (host->uids.on) { /* else they would apply to all sandboxes */
        procs = HFSBI_HF_PROCESSES;
        megabytes = HFSBI_HF_MEGABYTES;
    }
    if (!hfsbi_hf_take_int(request, o, "count", 1000000, &count) ||
        !hfsbi_hf_take_int(request, o, "idle_timeout_secs", 100000000,
                           &idle) ||
        !hfsbi_hf_take_int(request, o, "max_procs", 1000000, &procs) ||
        !hfsbi_hf_take_int(request, o, "max_mem_mb", 1 << 30, &megabytes) ||
        !hfsbi_hf_put_env(request, hfsb_json_get(o, "env"), &c->env))
        return false;
    c->confine.max_processes = (unsigned long long)procs;
    c->confine.max_memory = (unsigned long long)megabytes << 20;
    for (; count > 0 && host->count < host->max; count--) {
        hfsbi_guest *guest = hfsbi_order_add(&c->order);
        if (!guest) break;
        guest->idle_ms = idle * 1000;
    }
    c->rejected = (size_t)count;
    if ((count == 0 || host->count >= host->max) && c->env.status == HFSB_OK)
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
        c->order.host = &hf->host->host;
        c->order.done = hfsbi_hf_create_done;
        c->confine = hf->host->confine;
        c->env.alloc = hf->base.alloc;
        ok = hfsbi_hf_create_read(c, request, doc.root);
        if (ok) hfsbi_order_start(&c->order, request);
        else {
            hfsbi_order_drop(&c->order);
            hfsbi_hf_create_free(c);
        }
    } else {
        hfsb_reply_error(request, 503, "Out of memory.");
    }
    hfsb_json_free(&doc);
}
