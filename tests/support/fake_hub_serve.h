/* fake_hub_serve.h - the routes, start and stop. Part of fake_hub.h. */

/* ---- which call it is ---- */

/* /{owner}/{name}/resolve/main/{file} of a model. */
static void fh_resolve(fh_call *c) {
    hfsb_buf  id = HFSB_INIT;
    fh_space *s;
    fh_entry *e;
    FH_MUST(hfsb_buf_printf(&id, "%.*s/%.*s", (int)c->parts[0].len,
                            c->parts[0].ptr, (int)c->parts[1].len,
                            c->parts[1].ptr));
    s = fh_find(c->hub, hfsb_buf_str(&id));
    hfsb_buf_free(&id);
    e = s && s->model && fh_trusted(c->hub, c->record)
            ? fh_entry_find(s->files, c->parts[4])
            : NULL;
    if (!e) {
        fh_no_repo(c->reply);
        return;
    }
    fh_raw(c->reply, 200, "text/plain; charset=utf-8", "");
    fh_set(&c->reply->body, hfsb_buf_str(&e->content));
}

static void fh_nothing_here(fh_call *c) {
    fh_error(c->reply, 404, NULL,
             "Sorry, we can't find the page you are looking for.");
}

/* /api/spaces/{owner}/{name}... */
static void fh_route_space(fh_call *c) {
    static const char *const runtime[] = {"pause", "restart", "hardware",
                                          "sleeptime"};
    bool   get = fh_method(c, "GET"), post = fh_method(c, "POST");
    size_t i;
    for (i = 0; i < 4; i++)
        if (c->count == 5 && post && fh_part(c, 4, runtime[i])) {
            fh_change_runtime(c, runtime[i]);
            return;
        }
    if (c->count == 4 && get) fh_info(c);
    else if (c->count == 6 && get && fh_part(c, 4, "revision")) fh_info(c);
    else if (c->count == 6 && get && fh_part(c, 4, "logs")) fh_space_logs(c);
    else if (c->count == 6 && post && fh_part(c, 4, "preupload"))
        fh_preupload(c);
    else if (c->count == 6 && post && fh_part(c, 4, "commit")) fh_commit(c);
    else if (c->count != 5) fh_nothing_here(c);
    else if (fh_part(c, 4, "runtime") && get) fh_get_runtime(c);
    else if (fh_part(c, 4, "duplicate") && post) fh_duplicate(c);
    else if (fh_part(c, 4, "secrets")) fh_pairs(c, true);
    else if (fh_part(c, 4, "variables")) fh_pairs(c, false);
    else if (fh_part(c, 4, "volumes") && !get && !post) fh_volumes(c);
    else if (fh_part(c, 4, "host") && get) fh_host(c);
    else fh_nothing_here(c);
}

static void fh_route_api(fh_call *c) {
    bool jobs = fh_part(c, 1, "jobs"), later = fh_part(c, 1, "scheduled-jobs");
    if (c->count == 2 && fh_part(c, 1, "whoami-v2")) fh_whoami(c);
    else if (c->count == 2 && fh_part(c, 1, "spaces")) fh_list(c);
    else if (c->count == 2 && fh_part(c, 1, "validate-yaml"))
        fh_raw(c->reply, 200, FH_JSON, "{\"errors\":[],\"warnings\":[]}");
    else if (fh_part(c, 1, "repos") && fh_part(c, 2, "create")) fh_create(c);
    else if (fh_part(c, 1, "repos") && fh_part(c, 2, "delete") &&
             fh_method(c, "DELETE"))
        fh_delete(c);
    else if (c->count == 3 && fh_part(c, 2, "hardware") &&
             (jobs || fh_part(c, 1, "spaces")))
        fh_hardware(c);
    else if (c->count > 3 &&
             (fh_part(c, 1, "spaces") || fh_part(c, 1, "models")))
        fh_route_space(c);
    else if (fh_part(c, 1, "buckets") && fh_authorized(c, true))
        fh_raw(c->reply, 200, FH_JSON, "{}");
    else if ((jobs || later) && !fh_authorized(c, true)) return;
    else if ((jobs || later) && !fh_owns(c->hub, c->parts[2]))
        fh_error(c->reply, 403, NULL,
                 "You don't have the rights to run jobs in this namespace");
    else if ((jobs || later) && c->count == 3) fh_jobs(c, later);
    else if (jobs && c->count > 3) fh_job_one(c);
    else if (later && c->count > 3) fh_scheduled_one(c);
    else fh_nothing_here(c);
}

static void fh_split_path(fh_call *c) {
    hfsb_str path = hfsb_buf_str(&c->record->path);
    size_t   from[FH_PARTS + 1], i;
    while (path.len && c->count < FH_PARTS) {
        size_t end;
        path = hfsb_str_slice(path, 1, path.len);
        end = hfsb_str_find_byte(path, '/');
        from[c->count++] = c->text.len;
        if (hfsb_http_decode(hfsb_str_slice(path, 0, end), &c->text, NULL) !=
            HFSB_OK)
            fh_put(&c->text, "?");
        path = hfsb_str_slice(path, end, path.len);
    }
    from[c->count] = c->text.len;
    for (i = 0; i < c->count; i++)
        c->parts[i] = hfsb_str_slice(hfsb_buf_str(&c->text), from[i],
                                     from[i + 1]);
}

/* The true answer, and what was asked is done. */
static void fh_answer(fh_hub *hub, const fh_record *record, fh_reply *reply) {
    fh_call c = HFSB_INIT;
    size_t  mark;
    c.hub = hub;
    c.record = record;
    c.reply = reply;
    fh_split_path(&c);
    mark = hfsb_str_find_byte(hfsb_buf_str(&record->target), '?');
    c.query = hfsb_str_slice(hfsb_buf_str(&record->target),
                             mark == HFSB_NPOS ? record->target.len : mark + 1,
                             record->target.len);
    (void)hfsb_json_parse(hfsb_buf_str(&record->body), NULL, &c.json, NULL);
    if (fh_part(&c, 0, "_fake")) fh_control(&c);
    else if (fh_part(&c, 0, "api")) fh_route_api(&c);
    else if (fh_part(&c, 2, "resolve")) fh_resolve(&c);
    else if (fh_part(&c, 0, "spaces")) fh_lfs_batch(&c);
    else if (fh_part(&c, 0, "lfs-store")) fh_lfs_put(&c);
    else fh_nothing_here(&c);
    hfsb_json_free(&c.json);
    hfsb_buf_free(&c.text);
}

/* What comes with every answer. */
static void fh_common_fields(fh_hub *hub, const fh_record *record,
                             fh_reply *reply) {
    hfsb_str trace = fh_field(record, "X-Amzn-Trace-Id");
    char     text[256];
    hub->requests++;
    snprintf(text, sizeof text, "Root=1-67cae56b-%024zx;%.*s", hub->requests,
             (int)(trace.len < 100 ? trace.len : 100), trace.ptr);
    fh_head_field(reply, "X-Request-Id", text);
    fh_head_field(reply, "X-Powered-By", "huggingface-moon");
    if (hfsb_str_find(hfsb_buf_str(&reply->fields), HFSB_LIT("RateLimit:")) ==
        HFSB_NPOS) {
        snprintf(text, sizeof text, "\"api\";r=%zu;t=300",
                 hub->requests < 900 ? 1000 - hub->requests : 100);
        fh_head_field(reply, "RateLimit", text);
        fh_head_field(reply, "RateLimit-Policy",
                      "\"fixed window\";\"api\";q=1000;w=300");
    }
}

static fh_record *fh_record_request(fh_hub *hub, hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    fh_record            *r = fh_record_new(hub);
    size_t                i;
    fh_set(&r->method, head->method);
    if (fh_is(&r->method, "HEAD")) fh_set(&r->method, HFSB_LIT("GET"));
    fh_set(&r->target, head->target);
    fh_set(&r->path, head->path);
    for (i = 0; i < head->field_count; i++)
        FH_MUST(hfsb_buf_printf(&r->fields, "%.*s: %.*s\r\n",
                                (int)head->fields[i].name.len,
                                head->fields[i].name.ptr,
                                (int)head->fields[i].value.len,
                                head->fields[i].value.ptr));
    fh_set(&r->body, hfsb_request_body(request));
    return r;
}

/* Every request to the Hub; in its loop. */
static void fh_serve(void *user, hfsb_request *request) {
    fh_hub              *hub = (fh_hub *)user;
    fh_reply             reply = HFSB_INIT;
    const fh_fault_spec *fault = NULL;
    fh_record            control = HFSB_INIT, *record = &control;
    fh_cut               cut = FH_WHOLE;
    long long            delay = 0;
    reply.type = "";
    fh_lock(hub);
    record = fh_record_request(hub, request);
    if (!hfsb_str_starts(hfsb_buf_str(&record->path), HFSB_LIT("/_fake/")))
        fault = fh_fault_for(hub, record);
    if (!fault || fault->work || (!fault->status && !fault->cut))
        fh_answer(hub, record, &reply);
    else fh_raw(&reply, 200, FH_JSON, "{\"cut\":\"before its end\"}");
    if (fault) {
        fh_fault_answer(fault, &reply);
        cut = fault->cut;
        delay = fault->delay_ms;
    }
    record->status = cut ? 0 : reply.status;
    fh_common_fields(hub, record, &reply);
    fh_unlock(hub);
    fh_deliver(request, &reply, cut, delay);
}

/* ---- start and stop ---- */

static void fh_add_routes(fh_hub *hub) {
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    static const char *const paths[] = {
        "/api/*",           "/api/*/*",
        "/api/*/*/*",       "/api/*/*/*/*",
        "/api/spaces/*/*/*/*", "/api/models/*/*/*/*",
        "/*/*/resolve/main/*", "/spaces/*/*/info/lfs/objects/batch",
        "/lfs-store/*",     "/_fake/*",
        "/_fake/*/*",       "/_fake/*/*/*"};
    size_t i, k;
    for (i = 0; i < sizeof methods / sizeof *methods; i++)
        for (k = 0; k < sizeof paths / sizeof *paths; k++) {
            hfsb_route route = HFSB_INIT;
            route.method = methods[i];
            route.path = paths[k];
            route.fn = fh_serve;
            route.user = hub;
            route.max_body = 64 << 20;
            FH_MUST(hfsb_server_add(hub->server, &route, NULL));
        }
}

static void fh_add_template(fh_hub *hub) {
    fh_space *s = fh_space_new(hub, HFSB_LIT(FH_TEMPLATE));
    s->reserved = true;
    s->absent = s->unknown = s->asleep = 0;
    fh_entry_put(&s->files, HFSB_LIT("README.md"),
                 HFSB_LIT("---\ntitle: Sandbox\nsdk: docker\n"
                          "app_port: 7860\n---\n"));
    fh_entry_put(&s->files, HFSB_LIT("Dockerfile"),
                 HFSB_LIT("FROM python:3.12\nCMD [\"python\", "
                          "\"sandbox_server.py\"]\n"));
    fh_entry_put(&s->files, HFSB_LIT("sandbox_server.py"),
                 HFSB_LIT("print('the server of the template')\n"));
}

static void *fh_run_server(void *user) {
    hfsb_server *server = (hfsb_server *)user;
    FH_MUST(hfsb_server_run(server, NULL));
    return NULL;
}

HFSBI_UNUSED static fh_hub *fh_start(const fh_opts *opts) {
    static const char *const any[] = {"*", NULL};
    fh_hub          *hub = (fh_hub *)fh_new(sizeof *hub);
    hfsb_server_opts so = HFSB_INIT;
    pthread_mutexattr_t attr;
    unsigned         port = 0;
    if (opts) hub->o = *opts;
    hub->random = 20250307;
    pthread_mutexattr_init(&attr); /* /_fake uses what the tests use */
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    if (pthread_mutex_init(&hub->lock, &attr) ||
        pthread_cond_init(&hub->quiet, NULL))
        fh_die("locks");
    pthread_mutexattr_destroy(&attr);
    fh_add_template(hub);
    so.no_auth = true;
    so.allow_hosts = any;
    FH_MUST(hfsb_server_open(&so, &hub->server, NULL));
    hfsb_buf_truncate(&hub->server->common, 0); /* no X-Hfsb: no sandbox */
    FH_MUST(hfsb_server_listen(hub->server, "127.0.0.1", 0, &port, NULL));
    snprintf(hub->url, sizeof hub->url, "http://127.0.0.1:%u", port);
    fh_add_routes(hub);
    fh_edge_open(hub);
    if (pthread_create(&hub->thread, NULL, fh_run_server, hub->server))
        fh_die("thread");
    return hub;
}

static void fh_free_jobs(fh_hub *hub) {
    while (hub->jobs) {
        fh_job *j = hub->jobs;
        hub->jobs = j->next;
        hfsb_buf_free(&j->owner);
        hfsb_buf_free(&j->spec);
        hfsb_buf_free(&j->stages);
        hfsb_buf_free(&j->log);
        if (j->box) fh_space_free(j->box);
        free(j);
    }
}

static void fh_free_records(fh_hub *hub) {
    while (hub->records) {
        fh_record *r = hub->records;
        hub->records = r->next;
        hfsb_buf_free(&r->method);
        hfsb_buf_free(&r->target);
        hfsb_buf_free(&r->path);
        hfsb_buf_free(&r->fields);
        hfsb_buf_free(&r->body);
        free(r);
    }
}

HFSBI_UNUSED static void fh_stop(fh_hub *hub) {
    hfsb_server_stop(hub->server);
    hfsb_server_stop(hub->server);
    pthread_join(hub->thread, NULL);
    fh_edge_close(hub);
    hfsb_server_close(hub->server);
    fh_machines_end(hub);
    while (hub->spaces) {
        fh_space *s = hub->spaces;
        hub->spaces = s->next;
        fh_space_free(s);
    }
    fh_no_faults(hub);
    fh_free_jobs(hub);
    fh_free_records(hub);
    fh_entries_free(&hub->store);
    hfsb_buf_free(&hub->stages);
    pthread_mutex_destroy(&hub->lock);
    pthread_cond_destroy(&hub->quiet);
    free(hub);
}
