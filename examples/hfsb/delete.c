/* delete.c - hfsb delete, hfsb sweep: remove sandboxes.

   delete removes Spaces, or cancels jobs, and their records. It refuses
   Spaces that were not created from here, and jobs that are no sandboxes.
   sweep finds old sandboxes that hfsb created anywhere. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* ---- delete ---- */

/* A Space that was not created here is deleted only with --force, which is not
   suggested for one that the Hub does not know. */
static hfsb_status check_space(client *c, const target *t, hfsb_err *err) {
    hfsb_space_runtime is;
    hfsb_status st = hfsb_hub_runtime(c->hub, hfsb_buf_str(&t->id), c->cancel,
                                      &is, err);
    if (st == HFSB_NOT_FOUND)
        return fail(err, st,
                    "The Hub shows no Space %s: check the name, and whether "
                    "the token may see it. `hfsb ls` lists your sandboxes.",
                    t->id.ptr);
    if (st != HFSB_OK) return st;
    return fail(err, HFSB_REFUSED,
                "%s was not created from here. --force deletes the Space all "
                "the same%s.",
                t->id.ptr,
                t->recorded ? "; --forget only removes the record" : "");
}

/* True when the token belongs to the owner of the Space. To others the Hub
   reports a private Space as not found, so 404 proves nothing. */
static bool is_owner(client *c, const target *t) {
    hfsb_buf user = HFSB_INIT;
    hfsb_str id = hfsb_buf_str(&t->id);
    bool     is;
    if (is_job(id)) id = hfsb_str_slice(id, strlen("jobs/"), id.len);
    is = hfsb_hub_user(c->hub, c->cancel, &user, NULL) == HFSB_OK &&
         user.len && user.len < id.len &&
         hfsb_str_starts(id, hfsb_buf_str(&user)) && id.ptr[user.len] == '/';
    hfsb_buf_free(&user);
    return is;
}

/* A label marks a job as a sandbox, wherever it was created. */
static hfsb_status check_label(client *c, const target *t, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    job_name      name;
    hfsb_status   st;
    split_job(t->id.ptr, NULL, &name);
    st = hfsb_hub_job(c->hub, name.space, name.id, c->cancel, &doc, err);
    if (st == HFSB_OK &&
        !get_str(hfsb_json_get(doc.root, "labels"), "hfsb-sandbox").len)
        st = fail(err, HFSB_REFUSED,
                  "%s is a job, but no sandbox of hfsb. --force cancels it "
                  "all the same.",
                  t->id.ptr);
    hfsb_json_free(&doc);
    return st;
}

/* Cancels the job or deletes the Space; what was gone already is HFSB_OK. */
static hfsb_status remove_sandbox(client *c, const target *t, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st;
    if (!is_job(hfsb_buf_str(&t->id)))
        return hfsb_hub_delete(c->hub, hfsb_buf_str(&t->id), c->cancel, err);
    opts.hub = c->hub;
    opts.cancel = opts.give_up = c->cancel;
    st = hfsb_sandbox_open(hfsb_buf_str(&t->id), true, &opts, &sandbox, err);
    if (st == HFSB_OK) st = hfsb_sandbox_delete(sandbox, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    return st;
}

/* Deletes the sandbox. For its owner one that no longer exists is a success,
   with *gone set. */
static hfsb_status delete_space(const target *t, bool force, bool *gone,
                                hfsb_err *err) {
    client      c = HFSB_INIT;
    hfsb_status st = open_client(&c, true, err);
    size_t      n;
    if (st == HFSB_OK && !t->created && !force)
        st = is_job(hfsb_buf_str(&t->id)) ? check_label(&c, t, err)
                                          : check_space(&c, t, err);
    if (st == HFSB_OK) st = remove_sandbox(&c, t, err);
    if (st == HFSB_NOT_FOUND && t->recorded) {
        *gone = is_owner(&c, t);
        n = strlen(err->msg);
        if (*gone) st = HFSB_OK;
        else
            snprintf(err->msg + n, sizeof err->msg - n,
                     "\nIts record was kept; --forget removes it.");
    }
    close_client(&c);
    return st;
}

static hfsb_status delete_named(const char *name, bool force, bool forget,
                                hfsb_tool_result *result, hfsb_err *err) {
    target           t = HFSB_INIT;
    hfsb_json_writer w;
    bool             gone = false, space;
    hfsb_status      st = find_target(name, &t, err);
    space = t.id.len && !forget;
    if (st == HFSB_OK && !space && !t.recorded)
        st = fail(err, HFSB_NOT_FOUND,
                  "%s is not recorded; `hfsb ls` lists the recorded ones",
                  name);
    if (st == HFSB_OK && space) st = delete_space(&t, force, &gone, err);
    if (st == HFSB_OK) st = forget_sandbox(target_name(&t), err);
    if (st == HFSB_OK) {
        must(hfsb_buf_printf(&result->output, "%s %s",
                             !space ? "Forgot"
                             : gone ? "Was gone already:"
                                    : "Deleted",
                             target_name(&t).ptr));
        begin_object(&w, &result->fields);
        put_str(&w, "id", hfsb_buf_str(&t.id));
        put_bool(&w, "deleted", space && !gone);
        end_object(&w);
    }
    free_target(&t);
    return st;
}

int run_delete(args *a) {
    const char *names[MAX_TEXTS];
    bool        force = false, forget = false, json = false;
    int         code = DONE, one;
    size_t      i;

    const option options[] = {
        {"--force", OPTION_FLAG, &force,
         "delete a Space even if it was not created here, cancel a job even "
         "if it is not a sandbox"},
        {"--forget", OPTION_FLAG, &forget,
         "remove only the record; the Space or job stays"},
        OPTION_JSON(&json, ", id, deleted; for each of them"),
        OPTIONS_END};
    if (!take_words(a, options, names, MAX_TEXTS)) return a->status;
    if (!names[0]) return usage(a, "SANDBOX is missing");
    for (i = 0; i < MAX_TEXTS && names[i] && !caught_signal(); i++) {
        hfsb_tool_result result = HFSB_INIT;
        hfsb_err         err = HFSB_INIT;
        hfsb_status      st = delete_named(named_sandbox(names[i]), force,
                                           forget, &result, &err);
        one = show_outcome(&result, st, &err, json);
        if (one > code) code = one;
    }
    return code;
}

/* ---- sweep ---- */

typedef struct sweep_call {
    hfsb_buf         text; /* the output without --json */
    hfsb_json_writer w;
    size_t           found, removed, failed;
    bool             remove;
} sweep_call;

static bool list_item(void *user, const hfsb_sweep_item *item) {
    sweep_call *s = (sweep_call *)user;
    hfsb_err    err;
    must(
        hfsb_buf_printf(&s->text, "%.*s  %.1f days  %s%s\n", (int)item->id.len,
                        item->id.ptr, item->days,
                        item->removed             ? "deleted"
                        : !s->remove              ? "would be deleted"
                        : item->status == HFSB_OK ? "left"
                                                  : "not deleted: ",
                        item->removed || !item->message ? "" : item->message));
    s->found++;
    if (item->removed) s->removed++;
    else if (item->status != HFSB_OK) s->failed++;
    if (item->removed && forget_sandbox(item->id, &err) != HFSB_OK)
        fprintf(stderr, "hfsb: %s\n", err.msg);
    hfsb_json_put_object(&s->w);
    put_str(&s->w, "id", item->id);
    put_str(&s->w, "modified", item->modified);
    hfsb_json_put_key(&s->w, HFSB_LIT("days"));
    hfsb_json_put_double(&s->w, item->days);
    put_bool(&s->w, "deleted", item->removed);
    put_str(&s->w, "error", hfsb_cstr(item->message));
    hfsb_json_put_end(&s->w);
    return true;
}

static void sum_up(sweep_call *s, bool whole, hfsb_tool_result *result) {
    hfsb_buf *out = &result->output;
    must(hfsb_buf_append(out, hfsb_buf_str(&s->text)));
    if (!whole) hfsb_buf_truncate(out, out->len ? out->len - 1 : 0);
    else if (s->remove)
        must(hfsb_buf_printf(out, "%zu found, %zu deleted", s->found,
                             s->removed));
    else
        must(hfsb_buf_printf(out, "%zu found%s", s->found,
                             s->found ? "; --delete deletes them" : ""));
    hfsb_json_put_end(&s->w);
    end_object(&s->w);
}

int run_sweep(args *a) {
    hfsb_sweep_opts  opts = HFSB_INIT;
    sweep_call       s;
    const char      *owner = NULL;
    bool             json = false;
    client           c = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    double           days = 0;

    const option options[] = {
        {"--days N", OPTION_DAYS, &days,
         "unchanged for at least N days (7); 0.001 lists all"},
        {"--delete", OPTION_FLAG, &opts.remove, "delete them"},
        {"--max N", OPTION_COUNT, &opts.max, "delete at most N (20)"},
        {"--owner O", OPTION_TEXT, &owner, "whose Spaces to list (yours)"},
        OPTION_JSON(&json, ", spaces (id, modified, days, deleted, error)"),
        OPTIONS_END};
    memset(&s, 0, sizeof s);
    if (!take_all(a, options, NULL)) return a->status;
    st = open_client(&c, true, &err);
    opts.owner = owner ? hfsb_cstr(owner) : c.set.owner;
    opts.days = days;
    opts.cancel = c.cancel;
    s.remove = opts.remove;
    begin_object(&s.w, &result.fields);
    hfsb_json_put_key(&s.w, HFSB_LIT("spaces"));
    hfsb_json_put_array(&s.w);
    if (st == HFSB_OK)
        st = hfsb_sandbox_sweep(c.hub, &opts, list_item, &s, &err);
    sum_up(&s, st == HFSB_OK, &result);
    if (st == HFSB_OK && s.failed)
        st = fail(&err, HFSB_REMOTE, "Not all of them could be deleted");
    close_client(&c);
    hfsb_buf_free(&s.text);
    return show_outcome(&result, st, &err, json);
}
