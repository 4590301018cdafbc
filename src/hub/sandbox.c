/* sandbox.c - sandboxes that are Spaces: their address, their life; and the
   list of an owner's Spaces and jobs (job_home.c), and of those that programs
   left behind.

   A handle of a Space is a handle of a server (room remote) whose home is the
   Hub. Its address follows from its name by the Hub's rule; where the rule is
   not certain, the Hub is asked once. While its server does not answer, the
   Hub says whether to wait for it:

       starting, running, asleep, unknown    wait
       paused                                HFSB_CONNECT; after a restart wait
       failed, being deleted                 HFSB_REMOTE
       not shown to this token               HFSB_NOT_FOUND
       the Hub refuses the token             HFSB_AUTH, key "hub_token" */
#include "hub_private.h"

/* ---- its address ---- */

/* The Space's page, and its server's address by the Hub's rule; api stays
   empty for a name that is too long for the rule. */
static hfsb_status hfsbi_space_address(hfsb_sandbox *s, hfsb_err *err) {
    hfsb_str    endpoint = hfsb_hub_endpoint(s->o.hub);
    hfsb_buf    host = HFSB_INIT;
    hfsb_status st = hfsb_space_check(s->id, err);
    if (st != HFSB_OK) return st;
    st = hfsb_buf_printf(&s->page, "%.*s/spaces/%s", (int)endpoint.len,
                         endpoint.ptr, s->id.ptr);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Address");
    if (s->o.space_url.len)
        return hfsbi_sandbox_address(s->o.space_url, NULL, &s->api, err);
    host.alloc = s->o.alloc;
    st = hfsb_space_host(s->id, &host, err);
    if (st == HFSB_OK)
        st = hfsb_buf_printf(&s->api, "https://%s/api/", host.ptr);
    else if (st == HFSB_ARG) st = HFSB_OK;
    hfsb_buf_free(&host);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Address");
}

/* The rule is certain for letters, digits and "-". Only the Hub knows what it
   makes of other characters and of names over 63 characters. */
static bool hfsbi_space_is_plain(const hfsb_sandbox *s) {
    return s->api.len && hfsb_str_find_byte(s->id, '.') == HFSB_NPOS &&
           hfsb_str_find_byte(s->id, '_') == HFSB_NPOS;
}

HFSBI_FN hfsb_status hfsbi_space_locate(hfsb_sandbox *s, hfsb_err *err) {
    hfsb_buf    url = HFSB_INIT;
    hfsb_status st;
    if (s->o.space_url.len || hfsbi_space_is_plain(s)) return HFSB_OK;
    url.alloc = s->o.alloc;
    st = hfsb_hub_space_url(s->o.hub, s->id, s->o.cancel, &url, err);
    if (st == HFSB_OK) {
        hfsb_buf_truncate(&s->api, 0);
        st = hfsbi_sandbox_address(hfsb_buf_str(&url), NULL, &s->api, err);
    }
    hfsb_buf_free(&url);
    return st;
}

/* ---- its home ---- */

/* Asks the Hub whether there is anything to wait for: HFSB_OK if so, or if
   the Hub does not answer. After a restart a paused Space is one that the Hub
   has not started yet. */
static hfsb_status hfsbi_space_look(hfsb_sandbox *s, bool fresh,
                                    hfsb_err *err) {
    hfsb_space_runtime runtime;
    hfsb_err           why = HFSB_INIT;
    hfsbi_space_state  state = hfsbi_hub_look(
         s->o.hub, s->id, s->o.times.health_ms, s->o.cancel, &runtime, &why);
    if (why.code == HFSB_AUTH) {
        hfsbi_err_key(&why, "hub_token"); /* not that of the server */
        if (err) *err = why;
        return HFSB_AUTH;
    }
    if (state == HFSBI_SPACE_GONE && !runtime.stage[0])
        return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                          "The Hub shows no Space %s: check the name, and "
                          "whether the token may see it.",
                          s->id.ptr);
    if (state == HFSBI_SPACE_PAUSED && !fresh)
        return hfsbi_fail(err, HFSB_CONNECT, 0,
                          "The Space %s is %s: restart it (hfsb restart %s).",
                          s->id.ptr, runtime.stage, s->id.ptr);
    if (state != HFSBI_SPACE_FAILED && state != HFSBI_SPACE_GONE)
        return HFSB_OK;
    hfsbi_sandbox_scrub(s, runtime.error);
    return hfsbi_fail(err, HFSB_REMOTE, 0, "The Space %s is %s%s%s. Check %s",
                      s->id.ptr, runtime.stage, runtime.error[0] ? ": " : "",
                      runtime.error, s->page.ptr);
}

static void hfsbi_space_stage(hfsb_sandbox *s, const hfsb_cancel *cancel,
                              char *out, size_t size) {
    hfsb_space_runtime runtime = HFSB_INIT;
    (void)hfsb_hub_runtime(s->o.hub, s->id, cancel, &runtime, NULL);
    (void)snprintf(out, size, "%s",
                   runtime.stage[0] ? runtime.stage : "unknown");
}

static bool hfsbi_space_is_job(hfsb_str id) {
    hfsb_str owner, job;
    return hfsbi_hubjob_split(id, &owner, &job);
}

/* Deletes the Space, or cancels the job. */
static hfsb_status hfsbi_space_remove(hfsb_hub *hub, hfsb_str id,
                                      const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    return hfsbi_space_is_job(id)
               ? hfsbi_hubjob_end(hub, id, 0, cancel, NULL, err)
               : hfsb_hub_delete(hub, id, cancel, err);
}

static hfsb_status hfsbi_space_check_home(const hfsb_sandbox *s,
                                          const char *verb, hfsb_err *err) {
    if (s->home) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "%s is a server at a URL, not a Space: nothing to %s",
                      s->page.ptr, verb);
}

/* A job that has ended is gone; only a Space can be stopped and started. */
static hfsb_status hfsbi_space_check_space(const hfsb_sandbox *s,
                                           const char *verb, hfsb_err *err) {
    if (!hfsbi_space_is_job(s->id))
        return hfsbi_space_check_home(s, verb, err);
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "%s is a job, which cannot be paused or restarted: "
                      "delete it and create another",
                      s->id.ptr);
}

hfsb_status hfsb_sandbox_delete(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_status st = hfsbi_space_check_home(sandbox, "delete", err);
    bool        deleted;
    if (st != HFSB_OK) return st;
    if (!sandbox->owned)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This Sandbox did not create %s.", sandbox->id.ptr);
    pthread_mutex_lock(&sandbox->lock);
    deleted = sandbox->removed;
    pthread_mutex_unlock(&sandbox->lock);
    if (deleted) return hfsbi_ok(err);
    hfsbi_sandbox_log(sandbox, "Deleting sandbox: %s...", sandbox->id.ptr);
    /* o.cancel ends the work; the deletion comes after it */
    st = hfsbi_space_remove(sandbox->o.hub, sandbox->id, sandbox->o.give_up,
                            err);
    if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
    pthread_mutex_lock(&sandbox->lock);
    sandbox->removed = true;
    pthread_mutex_unlock(&sandbox->lock);
    hfsbi_sandbox_log(sandbox, "Deleted.");
    return hfsbi_ok(err);
}

/* ---- open and connect ---- */

HFSBI_FN hfsb_status hfsbi_space_new(const hfsb_sandbox_opts *opts,
                                     hfsb_str id, bool owned,
                                     hfsb_sandbox **out, hfsb_err *err) {
    static const hfsbi_home home = {hfsbi_space_look, hfsbi_space_stage,
                                    hfsb_sandbox_delete};
    const char             *instead = getenv("HFSB_SPACE_URL");
    hfsb_sandbox_opts       o;
    hfsb_status             st;
    *out = NULL;
    if (!opts || !opts->hub)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a sandbox on a Space needs the option hub");
    o = *opts;
    if (!o.transport) o.transport = hfsbi_hub_transport(o.hub);
    if (!o.work_dir.len) o.work_dir = HFSB_LIT("/app"); /* see usual_dir */
    if (!o.space_url.len && instead) o.space_url = hfsb_cstr(instead);
    st = hfsbi_sandbox_new(&o, id, out, err);
    if (st != HFSB_OK) return st;
    (*out)->home = &home;
    (*out)->owned = owned;
    (*out)->at_edge = true;
    (*out)->usual_dir = !opts->work_dir.len;
    st = hfsbi_space_address(*out, err);
    if (st == HFSB_OK) return st;
    hfsbi_sandbox_free(*out);
    *out = NULL;
    return st;
}

hfsb_status hfsb_sandbox_open(hfsb_str id, bool owned,
                              const hfsb_sandbox_opts *opts,
                              hfsb_sandbox **out, hfsb_err *err) {
    return hfsbi_space_is_job(id) ? hfsbi_hubjob_new(opts, id, owned, out, err)
                                  : hfsbi_space_new(opts, id, owned, out, err);
}

hfsb_status hfsb_sandbox_connect(hfsb_str id, bool owned,
                                 const hfsb_sandbox_opts *opts,
                                 hfsb_sandbox **out, hfsb_err *err) {
    hfsb_status st = hfsb_sandbox_open(id, owned, opts, out, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_space_is_job(id) ? hfsbi_hubjob_locate(*out, err)
                                : hfsbi_space_locate(*out, err);
    /* if the Hub does not answer, the address by the rule must suffice */
    if (st == HFSB_OK || ((*out)->api.len && st != HFSB_NOT_FOUND &&
                          st != HFSB_CANCELLED && st != HFSB_NOMEM))
        return hfsbi_sandbox_connect(opts, out, err);
    hfsbi_sandbox_free(*out);
    *out = NULL;
    return st;
}

/* ---- pause, restart, status ---- */

hfsb_status hfsb_sandbox_pause(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_status st = hfsbi_space_check_space(sandbox, "pause", err);
    if (st != HFSB_OK) return st;
    return hfsb_hub_pause(sandbox->o.hub, sandbox->id, sandbox->o.cancel, NULL,
                          err);
}

hfsb_status hfsb_sandbox_restart(hfsb_sandbox *sandbox, bool factory,
                                 hfsb_err *err) {
    const hfsb_sandbox_times *t = &sandbox->o.times;
    char                      before[sizeof sandbox->instance];
    hfsbi_probe               p = HFSB_INIT;
    hfsb_status st = hfsbi_space_check_space(sandbox, "restart", err);
    if (st == HFSB_OK) st = hfsbi_space_locate(sandbox, err);
    if (st != HFSB_OK) return st;
    hfsbi_sandbox_find_instance(sandbox, before);
    st = hfsb_hub_restart(sandbox->o.hub, sandbox->id, factory,
                          sandbox->o.cancel, NULL, err);
    if (st != HFSB_OK) return st;
    p.before = before;
    p.fresh = p.look = true;
    /* at first the Hub may still show the stage before the restart */
    p.look_at = hfsb_clock_ms() + t->poll_ms;
    return hfsbi_probe_run(sandbox, &p, t->api_wait_ms, err);
}

hfsb_status hfsb_sandbox_status(hfsb_sandbox *sandbox, hfsb_space_runtime *out,
                                hfsb_err *err) {
    hfsb_status st = hfsbi_space_check_home(sandbox, "ask about", err);
    memset(out, 0, sizeof *out);
    if (st != HFSB_OK) return st;
    if (hfsbi_space_is_job(sandbox->id))
        return hfsbi_hubjob_status(sandbox, out, err);
    return hfsb_hub_runtime(sandbox->o.hub, sandbox->id, sandbox->o.cancel,
                            out, err);
}

/* ---- list ---- */

/* An owner's Spaces that may be ours. They are collected before anything is
   done with them: deleting one while pages are read could move another to a
   page that was read already. */
typedef struct hfsbi_space_list {
    hfsb_hub          *hub;
    const hfsb_cancel *cancel;
    hfsb_buf           owner;
    double             now, days; /* days: only those that old (0: all) */
    hfsb_buf           found;     /* id, NUL, date, NUL of each */
    hfsb_str           rest;      /* of found, not returned yet */
    hfsb_status        status;    /* of collecting */
} hfsbi_space_list;

static double hfsbi_space_list_age(const hfsbi_space_list *l,
                                   hfsb_str                modified) {
    double then;
    if (!hfsbi_date_parse(modified, &then)) return -1;
    return (l->now - then) / 86400;
}

/* The name before "-" and 8 digits in "owner/name-0123abcd"; "" for any other
   id. */
static hfsb_str hfsbi_space_list_base(hfsb_str id, hfsb_str owner) {
    size_t i, end = id.len - HFSBI_SUFFIX - 1; /* of the base */
    if (id.len < owner.len + HFSBI_SUFFIX + 3 || id.ptr[owner.len] != '/' ||
        !hfsb_http_same(hfsb_str_slice(id, 0, owner.len), owner) ||
        id.ptr[end] != '-')
        return HFSB_LIT("");
    for (i = end + 1; i < id.len; i++) {
        char c = id.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return HFSB_LIT("");
    }
    return hfsb_str_slice(id, owner.len + 1, end);
}

/* Adds prefix + id, if it is old enough. */
static bool hfsbi_space_list_put(hfsbi_space_list *l, hfsb_str prefix,
                                 hfsb_str id, hfsb_str date) {
    size_t mark = l->found.len;
    if (l->days > 0 && !(hfsbi_space_list_age(l, date) >= l->days))
        return true; /* without a date its age is unknown */
    hfsb_buf_append(&l->found, prefix);
    hfsb_buf_append(&l->found, id);
    hfsb_buf_append_byte(&l->found, '\0');
    hfsb_buf_append(&l->found, date);
    hfsb_buf_append_byte(&l->found, '\0');
    l->status = hfsb_buf_finish(&l->found, mark);
    return l->status == HFSB_OK;
}

static bool hfsbi_space_list_add(void *user, const hfsb_json_value *space) {
    hfsbi_space_list *l = (hfsbi_space_list *)user;
    hfsb_str          id = hfsbi_json_get_str(space, "id");
    if (!hfsbi_space_list_base(id, hfsb_buf_str(&l->owner)).len ||
        hfsb_space_check(id, NULL) != HFSB_OK)
        return true;
    return hfsbi_space_list_put(l, HFSB_LIT(""), id,
                                hfsbi_json_get_str(space, "lastModified"));
}

static bool hfsbi_space_list_add_job(void *user, const hfsb_json_value *job) {
    hfsbi_space_list *l = (hfsbi_space_list *)user;
    hfsb_str          id = hfsbi_json_get_str(job, "id");
    hfsb_buf          prefix = HFSB_INIT;
    bool              go;
    if (!id.len || hfsbi_job_is_final(hfsbi_job_stage(job))) return true;
    prefix.alloc = l->found.alloc;
    l->status = hfsb_buf_printf(&prefix, "jobs/%s/", l->owner.ptr);
    go = l->status == HFSB_OK &&
         hfsbi_space_list_put(l, hfsb_buf_str(&prefix), id,
                              hfsbi_json_get_str(job, "createdAt"));
    hfsb_buf_free(&prefix);
    return go;
}

/* Adds the jobs that are sandboxes. An account or a token that may not use
   jobs has none. */
static hfsb_status hfsbi_space_list_jobs(hfsbi_space_list *l, hfsb_err *err) {
    static const char *const live[] = {"RUNNING", "SCHEDULING"};
    hfsb_job_filter          filter = HFSB_INIT;
    hfsb_hub_pair            label = HFSB_INIT;
    hfsb_str                 stages[2];
    hfsb_status              st;
    stages[0] = hfsb_cstr(live[0]);
    stages[1] = hfsb_cstr(live[1]);
    label.key = HFSB_LIT(HFSBI_HUBJOB_LABEL);
    label.value = HFSB_LIT("1");
    filter.space = hfsb_buf_str(&l->owner);
    filter.labels = &label;
    filter.label_count = 1;
    filter.stages = stages;
    filter.stage_count = 2;
    st = hfsb_hub_jobs(l->hub, &filter, hfsbi_space_list_add_job, l, l->cancel,
                       err);
    return st == HFSB_DENIED || st == HFSB_NOT_FOUND || st == HFSB_PAYMENT
               ? HFSB_OK
               : st;
}

static void hfsbi_space_list_close(hfsbi_space_list *l) {
    hfsb_buf_free(&l->found);
    hfsb_buf_free(&l->owner);
}

/* Collects the Spaces; close it in any case. */
static hfsb_status hfsbi_space_list_open(hfsbi_space_list *l, hfsb_hub *hub,
                                         hfsb_str owner, double days,
                                         const hfsb_cancel *cancel,
                                         hfsb_err          *err) {
    hfsb_space_filter filter = HFSB_INIT;
    hfsb_status       st;
    memset(l, 0, sizeof *l);
    l->hub = hub;
    l->cancel = cancel;
    l->days = days;
    l->owner.alloc = l->found.alloc = hub->alloc;
    l->now = (double)hfsbi_time_ns() / 1e9;
    st = owner.len ? hfsb_buf_append(&l->owner, owner)
                   : hfsb_hub_user(hub, cancel, &l->owner, err);
    filter.author = hfsb_buf_str(&l->owner);
    filter.full = true;
    if (st == HFSB_OK)
        st = hfsb_hub_spaces(hub, &filter, hfsbi_space_list_add, l, cancel,
                             err);
    if (st == HFSB_OK) st = l->status;
    if (st == HFSB_OK) st = hfsbi_space_list_jobs(l, err);
    if (st == HFSB_OK) st = l->status;
    l->rest = hfsb_buf_str(&l->found);
    if (st == HFSB_NOMEM) (void)hfsbi_fail_status(err, st, "Listing");
    return st;
}

/* Takes the next text off l->rest, up to its NUL. */
static hfsb_str hfsbi_space_list_text(hfsbi_space_list *l) {
    size_t   at = hfsb_str_find_byte(l->rest, '\0');
    hfsb_str text = hfsb_str_slice(l->rest, 0, at);
    l->rest = hfsb_str_slice(l->rest, at + 1, l->rest.len);
    return text;
}

/* A Space of another name is ours if create marked it with a variable. One
   whose variables the token may not see is not. */
static hfsb_status hfsbi_space_list_is_ours(hfsbi_space_list *l, hfsb_str id,
                                            bool *ours, hfsb_err *err) {
    hfsb_str      base = hfsbi_space_list_base(id, hfsb_buf_str(&l->owner));
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    *ours =
        hfsb_str_equal(base, HFSB_LIT("sandbox")) || hfsbi_space_is_job(id);
    if (*ours) return HFSB_OK;
    doc.alloc = l->hub->alloc;
    st = hfsbi_hub_variables(l->hub, id, l->cancel, &doc, err);
    if (st == HFSB_NOT_FOUND || st == HFSB_DENIED || st == HFSB_AUTH)
        return HFSB_OK;
    *ours = st == HFSB_OK && hfsb_json_get(doc.root, HFSBI_CREATE_MARK);
    hfsb_json_free(&doc);
    return st;
}

/* The next of our Spaces; id->len is 0 at the end. */
static hfsb_status hfsbi_space_list_next(hfsbi_space_list *l, hfsb_str *id,
                                         hfsb_str *modified, hfsb_err *err) {
    bool        ours = false;
    hfsb_status st = HFSB_OK;
    id->len = 0;
    while (st == HFSB_OK && !ours && l->rest.len) {
        *id = hfsbi_space_list_text(l);
        *modified = hfsbi_space_list_text(l);
        st = hfsbi_space_list_is_ours(l, *id, &ours, err);
    }
    if (!ours) id->len = 0;
    return st;
}

hfsb_status
hfsb_sandbox_list(hfsb_hub *hub, hfsb_str owner,
                  bool (*each)(void *user, hfsb_str id, hfsb_str modified),
                  void *user, const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_space_list l;
    hfsb_str         id = HFSB_LIT(""), modified = HFSB_LIT("");
    hfsb_status st = hfsbi_space_list_open(&l, hub, owner, 0, cancel, err);
    while (st == HFSB_OK) {
        st = hfsbi_space_list_next(&l, &id, &modified, err);
        if (st != HFSB_OK || !id.len || !each(user, id, modified)) break;
    }
    hfsbi_space_list_close(&l);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- sweep ---- */

/* Deletes the Space, unless the caller only wants a report or the maximum is
   reached. */
static void hfsbi_sweep_remove(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                               size_t *left, hfsb_sweep_item *item,
                               hfsb_err *err) {
    (void)hfsbi_ok(err);
    if (!opts->remove) return;
    if (!*left) {
        item->status = hfsbi_fail(err, HFSB_LIMIT, 0,
                                  "the maximum number of deletions is "
                                  "reached");
        return;
    }
    --*left;
    item->status = hfsbi_space_remove(hub, item->id, opts->cancel, err);
    if (item->status == HFSB_NOT_FOUND) item->status = hfsbi_ok(err);
    item->removed = item->status == HFSB_OK;
}

hfsb_status hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                               bool (*each)(void                  *user,
                                            const hfsb_sweep_item *item),
                               void *user, hfsb_err *err) {
    const hfsb_sweep_opts plain = HFSB_INIT;
    hfsbi_space_list      l;
    hfsb_err              why = HFSB_INIT;
    double                days;
    size_t                left;
    hfsb_status           st;
    if (!opts) opts = &plain;
    days = opts->days > 0 || opts->days < 0 ? opts->days : 7;
    left = opts->max ? opts->max : 20;
    if (!(days > 0))
        return hfsbi_fail(err, HFSB_ARG, 0, "the age in days must be above 0");
    st = hfsbi_space_list_open(&l, hub, opts->owner, days, opts->cancel, err);
    while (st == HFSB_OK) {
        hfsb_sweep_item item = HFSB_INIT;
        st = hfsbi_space_list_next(&l, &item.id, &item.modified, err);
        if (st != HFSB_OK || !item.id.len) break;
        item.days = hfsbi_space_list_age(&l, item.modified);
        item.message = why.msg;
        hfsbi_sweep_remove(hub, opts, &left, &item, &why);
        if (each && !each(user, &item)) break;
        if (item.status == HFSB_CANCELLED || item.status == HFSB_NOMEM) {
            st = item.status;
            if (err) *err = why;
        }
    }
    hfsbi_space_list_close(&l);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}
