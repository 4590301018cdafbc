/* e2b_control.c - E2B's control plane: makes, lists and ends sandboxes.

   A sandbox is a directory beneath the work directory of the server, which is
   its root, and a tools object with variables, a token and jobs of its own.
   Its commands are confined as those of the server are, and run as the same
   user: sandboxes keep their files apart, not hostile users.

       create: thread: directory, root -> loop: tools -> 201
       end:    processes are killed -> no user is left -> thread: the directory
               is removed -> freed

   It ends when its timeout has passed, when it is killed, and with the server.
   Pausing would need a copy of its processes: it is refused. */
#include "dialect_private.h"

enum {
    HFSBI_E2B_BOXES = 256,   /* at a time */
    HFSBI_E2B_TIMEOUT = 300, /* seconds, without one in the request */
    HFSBI_E2B_LONGEST = 30 * 24 * 3600,
    HFSBI_E2B_REAP_MS = 100,  /* between looks at a dead sandbox */
    HFSBI_E2B_META = 64 << 10 /* bytes of metadata */
};

static long long hfsbi_e2b_now(void) {
    return hfsbi_time_ns() / 1000000000;
}

/* ---- the end of a sandbox ---- */

HFSBI_FN void hfsbi_e2b_box_free(hfsbi_e2b_box *box) {
    hfsbi_e2b      *e2b = box->e2b;
    hfsb_alloc      alloc = box->env.alloc;
    hfsbi_e2b_box **link = &e2b->boxes;
    while (*link && *link != box) link = &(*link)->next;
    if (*link) *link = box->next;
    hfsbi_loop_timer_clear(e2b->dialect.loop, &box->lease.timer);
    if (box->tools) {
        hfsbi_e2b_end_watchers(box);
        hfsbi_tools_free(box->tools);
    }
    if (box->lease.root) hfsb_root_close(box->lease.root);
    if (box->lease.dir.len) { /* the server closes: nobody knows it then */
        hfsbi_remove_opts opts = HFSB_INIT;
        opts.tree = opts.force = true;
        (void)hfsbi_path_remove_all(e2b->own.tools->place,
                                    hfsb_buf_str(&box->lease.dir), &opts, NULL,
                                    NULL);
    }
    if (box->token.len) hfsbi_wipe(box->token.ptr, box->token.len);
    hfsb_buf_free(&box->token);
    hfsb_buf_free(&box->env);
    hfsb_buf_free(&box->work_dir);
    hfsb_buf_free(&box->lease.dir);
    hfsb_buf_free(&box->lease.template_id);
    hfsb_buf_free(&box->lease.metadata);
    hfsbi_array_free(&alloc, box, 1, sizeof *box);
}

static hfsbi_e2b_box *hfsbi_e2b_box_of_task(hfsbi_task *task) {
    return (hfsbi_e2b_box *)(void *)((char *)task -
                                     offsetof(hfsbi_e2b_box, lease.task));
}

static void hfsbi_e2b_remove_run(hfsbi_task *task) {
    hfsbi_e2b_box    *box = hfsbi_e2b_box_of_task(task);
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = opts.force = true;
    (void)hfsbi_path_remove_all(box->e2b->own.tools->place,
                                hfsb_buf_str(&box->lease.dir), &opts, NULL,
                                NULL);
}

static void hfsbi_e2b_remove_done(hfsbi_task *task) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_task(task);
    hfsb_buf_free(&box->lease.dir);
    hfsbi_e2b_box_free(box);
}

static hfsbi_e2b_box *hfsbi_e2b_box_of_timer(hfsbi_timer *timer) {
    return (hfsbi_e2b_box *)(void *)((char *)timer -
                                     offsetof(hfsbi_e2b_box, lease.timer));
}

/* Looks whether a dead sandbox can go. */
static void hfsbi_e2b_reap(hfsbi_timer *timer) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_timer(timer);
    hfsbi_loop    *loop = box->e2b->dialect.loop;
    if (box->users || hfsbi_tools_in_use(box->tools)) {
        hfsbi_loop_timer(loop, timer, hfsb_clock_ms() + HFSBI_E2B_REAP_MS);
        return;
    }
    box->lease.removing = true;
    box->lease.task.run = hfsbi_e2b_remove_run;
    box->lease.task.done = hfsbi_e2b_remove_done;
    box->lease.task.walled = box->tools->walled;
    hfsbi_loop_work(loop, &box->lease.task);
}

HFSBI_FN void hfsbi_e2b_box_kill(hfsbi_e2b_box *box) {
    if (box->dead) return;
    box->dead = true;
    hfsbi_e2b_end_watchers(box);
    (void)hfsbi_tools_sweep(box->tools, true); /* survivors too */
    box->lease.timer.fn = hfsbi_e2b_reap;
    hfsbi_loop_timer(box->e2b->dialect.loop, &box->lease.timer,
                     hfsb_clock_ms());
}

static void hfsbi_e2b_expire(hfsbi_timer *timer) {
    hfsbi_e2b_box_kill(hfsbi_e2b_box_of_timer(timer));
}

/* Lets the sandbox end in so many seconds. */
static void hfsbi_e2b_extend(hfsbi_e2b_box *box, long long seconds) {
    if (seconds < 0) seconds = 0;
    if (seconds > HFSBI_E2B_LONGEST) seconds = HFSBI_E2B_LONGEST;
    box->lease.ends = hfsbi_e2b_now() + seconds;
    box->lease.timer.fn = hfsbi_e2b_expire;
    hfsbi_loop_timer(box->e2b->dialect.loop, &box->lease.timer,
                     hfsb_clock_ms() + seconds * 1000);
}

/* ---- replies ---- */

static void hfsbi_e2b_put_date(hfsbi_build *b, const char *key,
                               long long seconds) {
    hfsbi_date d = hfsbi_date_of(seconds);
    char       text[32];
    (void)snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02uZ", d.year,
                   d.month, d.day, d.hour, d.minute, d.second);
    hfsbi_build_str(b, key, hfsb_cstr(text));
}

static void hfsbi_e2b_put_ids(hfsbi_build *b, const hfsbi_e2b_box *box,
                              bool secret) {
    hfsbi_build_str(b, "sandboxID", hfsb_cstr(box->id));
    hfsbi_build_str(b, "templateID", hfsb_buf_str(&box->lease.template_id));
    hfsbi_build_str(b, "alias", hfsb_buf_str(&box->lease.template_id));
    hfsbi_build_str(b, "clientID", HFSB_LIT("hfsb"));
    hfsbi_build_str(b, "envdVersion", HFSB_LIT("0.6.13"));
    if (!secret) return;
    hfsbi_build_str(b, "envdAccessToken", hfsb_buf_str(&box->token));
    hfsbi_build_null(b, "domain");
}

/* Puts what a list shows of a sandbox, as an object. */
static void hfsbi_e2b_put_box(hfsbi_build *b, const hfsbi_e2b_box *box,
                              bool secret) {
    hfsb_json_doc metadata = HFSB_INIT;
    long          cpus = sysconf(_SC_NPROCESSORS_ONLN);
    metadata.alloc = box->env.alloc;
    hfsbi_build_object(b, NULL);
    hfsbi_e2b_put_ids(b, box, secret);
    hfsbi_e2b_put_date(b, "startedAt", box->lease.started);
    hfsbi_e2b_put_date(b, "endAt", box->lease.ends);
    hfsbi_build_str(b, "state", HFSB_LIT("running"));
    hfsbi_build_int(b, "cpuCount", cpus > 0 ? cpus : 1);
    hfsbi_build_int(b, "memoryMB", 0);
    hfsbi_build_int(b, "diskSizeMB", 0);
    if (box->lease.metadata.len &&
        hfsb_json_parse(hfsb_buf_str(&box->lease.metadata), NULL, &metadata,
                        NULL) == HFSB_OK)
        hfsbi_build_value(b, "metadata", metadata.root);
    hfsbi_build_end(b);
    hfsb_json_free(&metadata);
}

static void hfsbi_e2b_reply_box(const hfsbi_e2b_box *box,
                                hfsb_request *request, int status) {
    hfsbi_build b;
    hfsbi_build_init(&b, &box->env.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_e2b_put_ids(&b, box, true);
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, status, &b);
}

/* The sandbox of the path; NULL after a 404. */
static hfsbi_e2b_box *hfsbi_e2b_box_of_path(void         *user,
                                            hfsb_request *request) {
    hfsb_str       id = hfsb_request_part(request, 0);
    hfsbi_e2b_box *box = ((hfsbi_e2b *)user)->boxes;
    for (; box; box = box->next)
        if (!box->dead && hfsb_str_equal(hfsb_cstr(box->id), id)) return box;
    hfsb_reply_error(request, 404, "There is no such sandbox.");
    return NULL;
}

/* ---- create ---- */

typedef struct hfsbi_e2b_create {
    hfsbi_e2b_box *box;
    hfsb_str       token;
    long long      timeout, began;
    hfsb_status    st;
    hfsb_err       err;
} hfsbi_e2b_create;

/* In a thread: makes the directory and opens it. */
static void hfsbi_e2b_create_run(void *user) {
    hfsbi_e2b_create *c = (hfsbi_e2b_create *)user;
    hfsbi_e2b_box    *box = c->box;
    hfsb_root_opts    opts = HFSB_INIT;
    c->st = hfsbi_path_make_folder(
        box->e2b->own.tools->place, hfsb_buf_str(&box->lease.dir), 0700,
        HFSBI_MAKE_PARENTS | HFSBI_MAKE_NEW, NULL, &c->err);
    opts.root = opts.work_dir = hfsb_buf_str(&box->lease.dir);
    opts.alloc = box->env.alloc;
    if (c->st == HFSB_OK)
        c->st = hfsb_root_open(&opts, &box->lease.root, &c->err);
}

static void hfsbi_e2b_create_done(void *user, hfsb_request *request) {
    hfsbi_e2b_create *c = (hfsbi_e2b_create *)user;
    hfsbi_e2b_box    *box = c->box;
    hfsbi_e2b        *e2b = box->e2b;
    hfsb_alloc        alloc = box->env.alloc;
    if (c->st == HFSB_OK)
        c->st =
            hfsbi_tools_open_like(e2b->own.tools, "e2b", &box->tools, &c->err);
    hfsbi_api_report(e2b->own.tools, "create", hfsb_buf_str(&box->lease.dir),
                     "", hfsb_cstr(c->st == HFSB_OK ? "" : c->err.msg),
                     c->began, 0);
    if (c->st == HFSB_OK && !hfsbi_request_is_gone(request)) {
        hfsbi_tools_set_place(box->tools, box->lease.root);
        box->next = e2b->boxes;
        e2b->boxes = box;
        e2b->controlled = true;
        box->lease.started = hfsbi_e2b_now();
        hfsbi_e2b_extend(box, c->timeout);
        hfsbi_e2b_reply_box(box, request, 201);
    } else {
        if (c->st != HFSB_OK) hfsb_reply_error(request, 500, "%s", c->err.msg);
        hfsbi_e2b_box_free(box);
    }
    hfsbi_array_free(&alloc, c, 1, sizeof *c);
}

/* A sandbox with a name, a token and variables; NULL without memory. */
static hfsbi_e2b_box *hfsbi_e2b_box_new(hfsbi_e2b *e2b) {
    const hfsb_alloc *alloc = &e2b->dialect.alloc;
    hfsbi_e2b_box *box = (hfsbi_e2b_box *)hfsbi_array(alloc, 1, sizeof *box);
    if (!box) return NULL;
    memset(box, 0, sizeof *box);
    box->e2b = e2b;
    box->token.alloc = box->env.alloc = box->work_dir.alloc = *alloc;
    box->lease.dir.alloc = box->lease.template_id.alloc = *alloc;
    box->lease.metadata.alloc = *alloc;
    return box;
}

/* Fills it from the message. HFSB_OK; HFSB_ARG; HFSB_NOMEM; HFSB_IO: there are
   no secrets. */
static hfsb_status hfsbi_e2b_box_fill(hfsbi_e2b_box         *box,
                                      const hfsb_json_value *message,
                                      hfsb_err              *err) {
    const hfsb_json_value *metadata = hfsb_json_get(message, "metadata");
    hfsb_str               name = hfsbi_json_get_str(message, "templateID");
    char                   token[41];
    hfsb_buf               dir = HFSB_INIT;
    hfsb_status            st;
    bool                   ok = true;
    dir.alloc = box->env.alloc;
    if (!hfsbi_random_hex(box->id + 1, 19) || !hfsbi_random_hex(token, 40))
        return hfsbi_fail(err, HFSB_IO, 0, "The system has no random bytes.");
    box->id[0] = 'i';
    hfsb_buf_append(&box->lease.template_id,
                    name.len ? name : HFSB_LIT("base"));
    box->lease.metadata.max = HFSBI_E2B_META;
    if (metadata)
        ok = hfsb_json_write(metadata, NULL, &box->lease.metadata, NULL) ==
             HFSB_OK;
    hfsb_buf_printf(&dir, "sandboxes/%s", box->id);
    ok = ok && dir.status == HFSB_OK &&
         hfsbi_e2b_path(&box->e2b->own, hfsb_buf_str(&dir), &box->lease.dir) &&
         hfsbi_e2b_set_token(box, hfsb_cstr(token)) &&
         box->lease.template_id.status == HFSB_OK;
    hfsbi_wipe(token, sizeof token);
    hfsb_buf_free(&dir);
    if (!ok) return hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
    hfsb_buf_append(&box->env, HFSB_LIT("HOME="));
    hfsb_buf_append(&box->env, hfsb_buf_str(&box->lease.dir));
    hfsb_buf_append_byte(&box->env, '\0');
    st = hfsbi_e2b_set_env(&box->env,
                           hfsbi_e2b_get(message, "envVars", "env_vars"), err);
    return st;
}

/* True when another sandbox may be made; else replies. */
static bool hfsbi_e2b_may_create(const hfsbi_e2b *e2b, hfsb_request *request) {
    const hfsb_root     *root = e2b->own.tools->place;
    const hfsbi_e2b_box *box = e2b->boxes;
    size_t               n = 0;
    for (; box; box = box->next) n++;
    if (n >= HFSBI_E2B_BOXES)
        hfsb_reply_error(request, 429, "There are %zu sandboxes: end some.",
                         n);
    else if (root && root->deny && root->deny->rules)
        hfsb_reply_error(request, 501,
                         "A server with a deny list has no sandboxes but its "
                         "own: their files would not be protected by it.");
    else return true;
    return false;
}

static void hfsbi_e2b_create_box(void *user, hfsb_request *request) {
    hfsbi_e2b        *e2b = (hfsbi_e2b *)user;
    hfsb_json_doc     doc;
    hfsb_err          err = HFSB_INIT;
    hfsbi_e2b_box    *box;
    hfsbi_e2b_create *c;
    hfsb_status       st = HFSB_NOMEM;
    if (!hfsbi_e2b_may_create(e2b, request) ||
        !hfsbi_dialect_parse(request, &doc))
        return;
    box = hfsbi_e2b_box_new(e2b);
    c = (hfsbi_e2b_create *)hfsbi_array(&e2b->dialect.alloc, 1, sizeof *c);
    if (box && c) st = hfsbi_e2b_box_fill(box, doc.root, &err);
    if (st == HFSB_OK) {
        memset(c, 0, sizeof *c);
        c->box = box;
        c->began = hfsb_clock_ms();
        c->timeout = hfsb_json_int(hfsb_json_get(doc.root, "timeout"),
                                   HFSBI_E2B_TIMEOUT);
        hfsbi_request_work(request, e2b->own.tools->walled,
                           hfsbi_e2b_create_run, hfsbi_e2b_create_done, c);
    } else {
        if (box) hfsb_buf_free(&box->lease.dir); /* it was not made */
        if (box) hfsbi_e2b_box_free(box);
        hfsbi_array_free(&e2b->dialect.alloc, c, 1, sizeof *c);
        hfsb_reply_error(request, st == HFSB_ARG ? 400 : 503, "%s",
                         err.msg[0] ? err.msg : "Out of memory.");
    }
    hfsb_json_free(&doc);
}

/* ---- the other calls ---- */

/* Reads the seconds of {"timeout":...}; false after an error reply. */
static bool hfsbi_e2b_read_timeout(hfsb_request *request, const char *key,
                                   long long *seconds) {
    hfsb_json_doc doc = HFSB_INIT;
    if (!hfsb_request_body(request).len) return true;
    if (!hfsbi_dialect_parse(request, &doc)) return false;
    *seconds = hfsb_json_int(hfsb_json_get(doc.root, key), *seconds);
    hfsb_json_free(&doc);
    return true;
}

static void hfsbi_e2b_connect_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = -1;
    if (!box || !hfsbi_e2b_read_timeout(request, "timeout", &seconds)) return;
    if (hfsbi_e2b_now() + seconds > box->lease.ends)
        hfsbi_e2b_extend(box, seconds);
    hfsbi_e2b_reply_box(box, request, 200);
}

static void hfsbi_e2b_set_timeout(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = HFSBI_E2B_TIMEOUT;
    if (!box || !hfsbi_e2b_read_timeout(request, "timeout", &seconds)) return;
    hfsbi_e2b_extend(box, seconds);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_refresh(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = HFSBI_E2B_TIMEOUT;
    if (!box || !hfsbi_e2b_read_timeout(request, "duration", &seconds)) return;
    if (hfsbi_e2b_now() + seconds > box->lease.ends)
        hfsbi_e2b_extend(box, seconds);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_pause(void *user, hfsb_request *request) {
    if (hfsbi_e2b_box_of_path(user, request))
        hfsb_reply_error(request, 501,
                         "This server cannot pause a sandbox: its processes "
                         "cannot be saved. Set a longer timeout instead.");
}

static void hfsbi_e2b_kill_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    if (!box) return;
    hfsbi_e2b_box_kill(box);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_get_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    hfsbi_build    b;
    if (!box) return;
    hfsbi_build_init(&b, &box->env.alloc);
    hfsbi_e2b_put_box(&b, box, true);
    hfsbi_dialect_reply(request, 200, &b);
}

/* True if the sandbox has all pairs of "k=v&k=v" in its metadata. */
static bool hfsbi_e2b_box_has(const hfsbi_e2b_box *box, hfsb_str pairs) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      pair;
    bool          ok = true;
    doc.alloc = box->env.alloc;
    if (!pairs.len) return true;
    if (box->lease.metadata.len)
        ok = hfsb_json_parse(hfsb_buf_str(&box->lease.metadata), NULL, &doc,
                             NULL) == HFSB_OK;
    while (ok && hfsbi_list_next(&pairs, '&', &pair)) {
        hfsb_buf key = HFSB_INIT, value = HFSB_INIT;
        size_t   at = hfsb_str_find_byte(pair, '=');
        key.alloc = value.alloc = box->env.alloc;
        if (at == HFSB_NPOS) at = pair.len;
        ok = hfsb_http_decode(hfsb_str_slice(pair, 0, at), &key, NULL) ==
                 HFSB_OK &&
             hfsb_http_decode(hfsb_str_slice(pair, at + 1, pair.len), &value,
                              NULL) == HFSB_OK &&
             key.len &&
             hfsb_str_equal(hfsbi_json_get_str(doc.root, key.ptr),
                            hfsb_buf_str(&value));
        hfsb_buf_free(&key);
        hfsb_buf_free(&value);
    }
    hfsb_json_free(&doc);
    return ok;
}

static void hfsbi_e2b_list_boxes(void *user, hfsb_request *request) {
    hfsbi_e2b     *e2b = (hfsbi_e2b *)user;
    hfsbi_e2b_box *box;
    hfsb_buf       pairs = HFSB_INIT, state = HFSB_INIT;
    hfsbi_build    b;
    pairs.alloc = state.alloc = e2b->dialect.alloc;
    (void)hfsb_request_query(request, "metadata", &pairs, NULL);
    (void)hfsb_request_query(request, "state", &state, NULL);
    hfsbi_build_init(&b, &e2b->dialect.alloc);
    hfsbi_build_array(&b, NULL);
    for (box = e2b->boxes; box; box = box->next)
        if (!box->dead && hfsbi_e2b_box_has(box, hfsb_buf_str(&pairs)) &&
            (!state.len || hfsb_str_find(hfsb_buf_str(&state),
                                         HFSB_LIT("running")) != HFSB_NPOS))
            hfsbi_e2b_put_box(&b, box, false);
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, 200, &b);
    hfsb_buf_free(&pairs);
    hfsb_buf_free(&state);
}

HFSBI_FN hfsb_status hfsbi_e2b_add_control(hfsbi_e2b *e2b, hfsb_err *err) {
#define HFSBI_E2B_ROUTE(method, path, fn) \
    { method, path, fn, false, NULL, NULL }
    static const hfsbi_dialect_route routes[] = {
        HFSBI_E2B_ROUTE("POST", "/v2/sandboxes", hfsbi_e2b_create_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes", hfsbi_e2b_create_box),
        HFSBI_E2B_ROUTE("GET", "/v2/sandboxes", hfsbi_e2b_list_boxes),
        HFSBI_E2B_ROUTE("GET", "/sandboxes", hfsbi_e2b_list_boxes),
        HFSBI_E2B_ROUTE("POST", "/v2/sandboxes/*/connect",
                        hfsbi_e2b_connect_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/connect", hfsbi_e2b_connect_box),
        HFSBI_E2B_ROUTE("GET", "/sandboxes/*", hfsbi_e2b_get_box),
        HFSBI_E2B_ROUTE("DELETE", "/sandboxes/*", hfsbi_e2b_kill_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/timeout", hfsbi_e2b_set_timeout),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/refreshes", hfsbi_e2b_refresh),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/pause", hfsbi_e2b_pause),
        {NULL, NULL, NULL, false, NULL, NULL}};
#undef HFSBI_E2B_ROUTE
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
