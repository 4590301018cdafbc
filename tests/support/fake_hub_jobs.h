/* fake_hub_jobs.h - jobs, scheduled jobs, lists of hardware. Part of
   fake_hub.h. */

static fh_job *fh_job_find(fh_call *c, bool scheduled) {
    fh_job *j;
    for (j = c->hub->jobs; j; j = j->next)
        if (!j->gone && j->scheduled == scheduled &&
            hfsb_str_equal(hfsb_buf_str(&j->owner), c->parts[2]) &&
            fh_same(c->parts[3], j->id))
            return j;
    fh_error(c->reply, 404, NULL, scheduled ? "Scheduled job not found"
                                            : "Job not found");
    return NULL;
}

static void fh_job_stage(const fh_job *j, char out[32]) {
    size_t n = j->asked - (j->asked > 0);
    fh_copy(out, 32, fh_item(hfsb_buf_str(&j->stages), n));
    if (j->box && j->box->machine && j->box->machine->command.len)
        fh_copy(out, 32, hfsb_cstr(j->box->machine->stage
                                       ? j->box->machine->stage
                                       : "SCHEDULING"));
    if (j->cancelled) strcpy(out, "CANCELED");
}

static bool fh_job_is_live(const fh_job *j) {
    char stage[32];
    fh_job_stage(j, stage);
    return !j->gone && !j->scheduled &&
           (!strcmp(stage, "SCHEDULING") || !strcmp(stage, "RUNNING"));
}

HFSBI_UNUSED static size_t fh_live_jobs(fh_hub *hub) {
    const fh_job *j;
    size_t        n = 0;
    fh_lock(hub);
    for (j = hub->jobs; j; j = j->next) n += fh_job_is_live(j);
    fh_unlock(hub);
    return n;
}

/* ---- a job with an exposed port ---- */

/* The files of the models among its volumes, as HFSB_SERVER_MOUNT. */
static void fh_job_mount(fh_hub *hub, fh_machine *m,
                         const hfsb_json_value *volumes) {
    hfsb_json_iter it = hfsb_json_begin(volumes);
    hfsb_str       none = HFSB_INIT;
    hfsb_buf       path = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        fh_space *s = fh_find(
            hub, hfsb_json_str(hfsb_json_get(it.value, "source"), none));
        fh_entry *e;
        if (!s || !s->model) continue;
        for (e = s->files; e; e = e->next) {
            hfsb_buf_truncate(&path, 0);
            FH_MUST(hfsb_buf_printf(&path, "%s/mount/%s", m->dir.ptr,
                                    e->path.ptr));
            fh_write_file(path.ptr, hfsb_buf_str(&e->content));
        }
        hfsb_buf_truncate(&path, 0);
        FH_MUST(hfsb_buf_printf(&path, "%s/mount", m->dir.ptr));
        fh_pair_put(&m->space->variables, HFSB_LIT("HFSB_SERVER_MOUNT"),
                    hfsb_buf_str(&path), none);
    }
    hfsb_buf_free(&path);
}

static void fh_job_pairs(fh_pair **list, const hfsb_json_value *map) {
    hfsb_json_iter it = hfsb_json_begin(map);
    hfsb_str       none = HFSB_INIT;
    while (hfsb_json_next(&it))
        fh_pair_put(list, it.key, hfsb_json_str(it.value, none), none);
}

/* Its machine: the command itself, or hfsb-server's endpoints here. */
static void fh_job_start(fh_hub *hub, fh_job *j, const hfsb_json_value *spec) {
    const hfsb_str none = HFSB_INIT;
    fh_machine    *m;
    j->box = (fh_space *)fh_new(sizeof *j->box);
    fh_set(&j->box->id, HFSB_LIT("job"));
    fh_job_pairs(&j->box->secrets, hfsb_json_get(spec, "secrets"));
    fh_job_pairs(&j->box->variables, hfsb_json_get(spec, "environment"));
    if (hub->o.mode == FH_STUB && !hub->o.run_jobs) return;
    m = (fh_machine *)fh_new(sizeof *m);
    m->hub = hub;
    m->space = j->box;
    fh_scratch(&m->dir);
    fh_machine_work(m);
    if (hub->o.run_jobs) {
        fh_pair **v = &j->box->variables;
        char      host[64];
        /* on loopback the server wants to know its name */
        snprintf(host, sizeof host, "%s--49983.localhost", j->id);
        fh_pair_put(v, HFSB_LIT("SPACE_HOST"), hfsb_cstr(host), none);
        fh_pair_put(v, HFSB_LIT("SBX_PORT"), HFSB_LIT("0"), none);
        fh_pair_put(v, HFSB_LIT("HFSB_HOST"), HFSB_LIT("127.0.0.1"), none);
        fh_pair_put(v, HFSB_LIT("HFSB_WORK_DIR"), hfsb_buf_str(&m->work),
                    none);
        fh_pair_put(v, HFSB_LIT("TMPDIR"), hfsb_buf_str(&m->dir), none);
        fh_job_mount(hub, m, hfsb_json_get(spec, "volumes"));
        FH_MUST(hfsb_json_write(hfsb_json_get(spec, "command"), NULL,
                                &m->command, NULL));
    } else {
        fh_embed(m);
    }
    if (pthread_create(&m->thread, NULL, fh_machine_run, m)) fh_die("thread");
    m->next = hub->machines;
    hub->machines = m;
    j->box->machine = m;
}

static void fh_put_urls(hfsb_json_writer *w, const fh_hub *hub,
                        const fh_job *j, const hfsb_json_value *spec) {
    hfsb_json_iter it = hfsb_json_begin(
        hfsb_json_get(hfsb_json_get(spec, "expose"), "ports"));
    char url[160];
    if (!j->box || j->asked < hub->o.late_urls) return;
    fh_key(w, "exposeUrls");
    hfsb_json_put_array(w);
    while (hfsb_json_next(&it)) {
        snprintf(url, sizeof url, "http://%s--%lld.localhost:%s", j->id,
                 hfsb_json_int(it.value, 0), strrchr(hub->edge, ':') + 1);
        hfsb_json_put_str(w, hfsb_cstr(url));
    }
    hfsb_json_put_end(w);
}

/* ---- jobs as JSON ---- */

static void fh_put_member(hfsb_json_writer *w, const hfsb_json_value *spec,
                          const char *key) {
    const hfsb_json_value *v = hfsb_json_get(spec, key);
    if (!v) return;
    fh_key(w, key);
    hfsb_json_put_value(w, v);
}

/* The names of the secrets, never their values. */
static void fh_put_names(hfsb_json_writer *w, const hfsb_json_value *secrets) {
    hfsb_json_iter it = hfsb_json_begin(secrets);
    fh_key(w, "secrets");
    hfsb_json_put_array(w);
    while (hfsb_json_next(&it)) hfsb_json_put_str(w, it.key);
    hfsb_json_put_end(w);
}

static void fh_put_owner(hfsb_json_writer *w, const fh_job *j) {
    fh_key(w, "owner");
    hfsb_json_put_object(w);
    fh_text(w, "id", "5dfcb1aadd0a9ea6a2e4d4a1");
    fh_text(w, "name", j->owner.ptr);
    fh_text(w, "type", "user");
    hfsb_json_put_end(w);
}

static void fh_put_job(hfsb_json_writer *w, const fh_hub *hub,
                       const fh_job *j) {
    static const char *const keys[] = {"dockerImage", "spaceId", "command",
                                       "arguments",   "environment",
                                       "flavor",      "labels", "volumes",
                                       "expose"};
    hfsb_json_doc spec = HFSB_INIT;
    char          stage[32];
    size_t        i;
    FH_MUST(hfsb_json_parse(hfsb_buf_str(&j->spec), NULL, &spec, NULL));
    fh_job_stage(j, stage);
    hfsb_json_put_object(w);
    fh_text(w, "type", "job");
    fh_text(w, "id", j->id);
    fh_text(w, "createdAt", j->created);
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        fh_put_member(w, spec.root, keys[i]);
    fh_put_names(w, hfsb_json_get(spec.root, "secrets"));
    fh_key(w, "status");
    hfsb_json_put_object(w);
    fh_text(w, "stage", stage);
    fh_text_or_null(w, "message",
                    strcmp(stage, "ERROR") ? "" : "Job failed");
    fh_int(w, "failureCount", 0);
    fh_put_urls(w, hub, j, spec.root);
    hfsb_json_put_end(w);
    fh_put_owner(w, j);
    hfsb_json_put_end(w);
    hfsb_json_free(&spec);
}

static void fh_put_scheduled(hfsb_json_writer *w, const fh_job *j) {
    hfsb_json_doc spec = HFSB_INIT;
    FH_MUST(hfsb_json_parse(hfsb_buf_str(&j->spec), NULL, &spec, NULL));
    hfsb_json_put_object(w);
    fh_text(w, "type", "scheduled-job");
    fh_text(w, "id", j->id);
    fh_text(w, "createdAt", j->created);
    fh_put_member(w, spec.root, "jobSpec");
    fh_put_member(w, spec.root, "schedule");
    fh_bool(w, "suspend", j->suspended);
    fh_bool(w, "concurrency",
            hfsb_json_bool(hfsb_json_get(spec.root, "concurrency"), false));
    fh_key(w, "status");
    hfsb_json_put_object(w);
    fh_text_or_null(w, "lastJob", "");
    fh_text_or_null(w, "nextJobRunAt", "");
    hfsb_json_put_end(w);
    fh_put_owner(w, j);
    hfsb_json_put_end(w);
    hfsb_json_free(&spec);
}

static void fh_reply_job(fh_call *c, const fh_job *j) {
    hfsb_json_writer w;
    fh_json(&w, c->reply);
    if (j->scheduled) fh_put_scheduled(&w, j);
    else fh_put_job(&w, c->hub, j);
    fh_done(&w);
}

static fh_job *fh_job_new(fh_call *c, const hfsb_json_value *spec,
                          bool scheduled) {
    static const char log[] =
        "===== Job started at 2025-03-07 12:24:18 =====\nhi\ndone\n";
    fh_job  *j = (fh_job *)fh_new(sizeof *j), **at = &c->hub->jobs;
    fh_opts *o = &c->hub->o;
    snprintf(j->id, sizeof j->id, scheduled ? "68a5b3c1%016zx"
                                            : "68a5b3c0%016zx",
             scheduled ? ++c->hub->scheduled_count : ++c->hub->job_count);
    fh_time(j->created, 0);
    j->scheduled = scheduled;
    fh_set(&j->owner, c->parts[2]);
    fh_set(&j->stages, hfsb_cstr(o->job_stages
                                     ? o->job_stages
                                     : "SCHEDULING,RUNNING,COMPLETED"));
    fh_set(&j->log, hfsb_cstr(o->job_log ? o->job_log : log));
    FH_MUST(hfsb_json_write(spec, NULL, &j->spec, NULL));
    if (!scheduled && hfsb_json_get(spec, "expose")) {
        fh_set(&j->stages, hfsb_cstr(o->box_stages ? o->box_stages
                                                   : "SCHEDULING,RUNNING"));
        fh_job_start(c->hub, j, spec);
    }
    while (*at) at = &(*at)->next;
    *at = j;
    return j;
}

static bool fh_job_good(fh_call *c, const hfsb_json_value *spec) {
    hfsb_str none = HFSB_INIT;
    bool     image = hfsb_json_get(spec, "dockerImage") != NULL;
    bool     space = hfsb_json_get(spec, "spaceId") != NULL;
    if (hfsb_json_str(hfsb_json_get(spec, "flavor"), none).len &&
        image != space)
        return true;
    fh_error(c->reply, 400, NULL, "\"flavor\" and one of \"dockerImage\" and "
             "\"spaceId\" are required");
    return false;
}

/* True when a job has every label and one of the stages of the query. */
static bool fh_job_wanted(const fh_call *c, const fh_job *j) {
    hfsb_str      q = c->query, none = HFSB_INIT;
    hfsb_json_doc spec = HFSB_INIT;
    hfsb_buf      item = HFSB_INIT;
    bool          ok = true, staged = false, in_stage = false;
    char          stage[32];
    fh_job_stage(j, stage);
    FH_MUST(hfsb_json_parse(hfsb_buf_str(&j->spec), NULL, &spec, NULL));
    while (q.len) {
        size_t end = hfsb_str_find_byte(q, '&');
        hfsb_buf_truncate(&item, 0);
        FH_MUST(hfsb_http_decode(hfsb_str_slice(q, 0, end), &item, NULL));
        q = hfsb_str_slice(q, end == HFSB_NPOS ? q.len : end + 1, q.len);
        if (!strncmp(item.ptr, "stage=", 6)) {
            staged = true;
            in_stage = in_stage || !strcmp(item.ptr + 6, stage);
        } else if (!strncmp(item.ptr, "label=", 6)) {
            char *is = strchr(item.ptr + 6, '=');
            if (!is) fh_die("a label without a value");
            *is = '\0';
            ok = ok && fh_same(hfsb_json_str(
                                   hfsb_json_get(hfsb_json_get(spec.root,
                                                               "labels"),
                                                 item.ptr + 6),
                                   none),
                               is + 1);
        }
    }
    hfsb_buf_free(&item);
    hfsb_json_free(&spec);
    return ok && (!staged || in_stage);
}

/* /api/jobs/{ns} */
static void fh_jobs(fh_call *c, bool scheduled) {
    const hfsb_json_value *spec = c->json.root;
    hfsb_json_writer       w;
    size_t                 n = 0, from = fh_cursor(c);
    size_t                 page = c->hub->o.page ? c->hub->o.page : 2;
    fh_job                *j;
    if (fh_method(c, "POST")) {
        if (scheduled) spec = hfsb_json_get(spec, "jobSpec");
        if (!fh_job_good(c, spec)) return;
        j = fh_job_new(c, c->json.root, scheduled);
        j->suspended =
            hfsb_json_bool(hfsb_json_get(c->json.root, "suspend"), false);
        fh_reply_job(c, j);
        return;
    }
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (j = c->hub->jobs; j; j = j->next) {
        if (j->gone || j->scheduled != scheduled ||
            !hfsb_str_equal(hfsb_buf_str(&j->owner), c->parts[2]) ||
            !fh_job_wanted(c, j))
            continue;
        if (n >= from && n < from + page) {
            if (scheduled) fh_put_scheduled(&w, j);
            else fh_put_job(&w, c->hub, j);
        }
        n++;
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
    if (n > from + page) fh_next_page(c, from + page);
}

/* While it waits for a machine there is nothing to see; one that was looked
   at while it ran has ended then. */
static void fh_job_logs(fh_call *c, fh_job *j) {
    char stage[32];
    fh_job_stage(j, stage);
    fh_put(&c->reply->body, ": keep-alive\n\n");
    fh_events(c, j->box && c->hub->o.run_jobs ? hfsb_buf_str(&j->box->run_log)
                 : strcmp(stage, "SCHEDULING") ? hfsb_buf_str(&j->log)
                                               : hfsb_str_make("", 0),
              fh_tail(c));
    if (!strcmp(stage, "RUNNING")) j->asked++;
}

/* /api/jobs/{ns}/{id}[/what] */
static void fh_job_one(fh_call *c) {
    fh_job *j = fh_job_find(c, false);
    if (!j) return;
    if (c->count == 4) {
        j->asked++;
        fh_reply_job(c, j);
    } else if (fh_part(c, 4, "cancel") && fh_method(c, "POST")) {
        j->cancelled = true;
        if (j->box) fh_machine_stop(c->hub, j->box);
        fh_reply_job(c, j);
    } else if (fh_part(c, 4, "logs")) {
        fh_job_logs(c, j);
    } else if (fh_part(c, 4, "duplicate") && fh_method(c, "POST")) {
        hfsb_json_doc spec = HFSB_INIT;
        FH_MUST(hfsb_json_parse(hfsb_buf_str(&j->spec), NULL, &spec, NULL));
        fh_reply_job(c, fh_job_new(c, spec.root, false));
        hfsb_json_free(&spec);
    } else {
        fh_error(c->reply, 404, NULL, "Sorry, we can't find the page you are "
                 "looking for.");
    }
}

static void fh_scheduled_one(fh_call *c) {
    fh_job       *j = fh_job_find(c, true);
    hfsb_json_doc spec = HFSB_INIT;
    if (!j) return;
    if (fh_method(c, "DELETE")) {
        j->gone = true;
        fh_raw(c->reply, 200, FH_JSON, "{}");
        return;
    }
    if (fh_part(c, 4, "suspend")) j->suspended = true;
    else if (fh_part(c, 4, "resume")) j->suspended = false;
    if (!fh_part(c, 4, "run")) {
        fh_reply_job(c, j);
        return;
    }
    FH_MUST(hfsb_json_parse(hfsb_buf_str(&j->spec), NULL, &spec, NULL));
    fh_reply_job(c, fh_job_new(c, hfsb_json_get(spec.root, "jobSpec"),
                               false));
    hfsb_json_free(&spec);
}

static void fh_hardware(fh_call *c) {
    static const struct {
        const char *name, *pretty, *cpu, *ram;
        long long   cost; /* millionths of a dollar a minute */
    } list[] = {
        {"cpu-basic", "CPU Basic", "2 vCPU", "16 GB", 0},
        {"cpu-upgrade", "CPU Upgrade", "8 vCPU", "32 GB", 500},
        {"t4-small", "Nvidia T4 - small", "4 vCPU", "15 GB", 6667},
        {"a10g-small", "Nvidia A10G - small", "4 vCPU", "14 GB", 16667},
    };
    hfsb_json_writer w;
    size_t           i;
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        hfsb_json_put_object(&w);
        fh_text(&w, "name", list[i].name);
        fh_text(&w, "prettyName", list[i].pretty);
        fh_text(&w, "cpu", list[i].cpu);
        fh_text(&w, "ram", list[i].ram);
        fh_text_or_null(&w, "accelerator", "");
        fh_int(&w, "unitCostMicroUSD", list[i].cost);
        fh_key(&w, "unitCostUSD");
        hfsb_json_put_double(&w, (double)list[i].cost / 1e6);
        fh_text(&w, "unitLabel", "minute");
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
}
