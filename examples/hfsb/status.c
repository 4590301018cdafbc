/* status.c - hfsb ls, hfsb status: the state of sandboxes.

   ls lists the recorded sandboxes, then the Spaces and jobs of the owner that
   hfsb created elsewhere. Both ask the Hub for the stage of each. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* ---- ls ---- */

typedef struct listing {
    client           c;
    known_list       known;
    hfsb_buf         text; /* the output without --json */
    hfsb_json_writer w;
    hfsb_buf         shown;    /* names, each followed by a newline */
    bool             recorded; /* do not ask the Hub */
} listing;

static void show_one(listing *l, hfsb_str id, hfsb_str url, const known *k,
                     const char *stage, const char *hardware) {
    hfsb_str name = id.len ? id : url;
    must(hfsb_buf_printf(&l->text, "%.*s%*s  %-10s  %-12s  %s\n",
                         (int)name.len, name.ptr,
                         name.len < 36 ? (int)(36 - name.len) : 0, "",
                         *stage ? stage : "-", *hardware ? hardware : "-",
                         !k           ? "not recorded here"
                         : k->created ? "created"
                                      : "connected"));
    hfsb_json_put_object(&l->w);
    put_str(&l->w, "id", id);
    put_str(&l->w, "url", url);
    put_str(&l->w, "stage", hfsb_cstr(stage));
    put_str(&l->w, "hardware", hfsb_cstr(hardware));
    put_bool(&l->w, "recorded", k != NULL);
    put_bool(&l->w, "created", k && k->created);
    hfsb_json_put_end(&l->w);
    must(hfsb_buf_printf(&l->shown, "%.*s\n", (int)name.len, name.ptr));
}

/* Asks the Hub for the stage of a Space or job; "NOT_FOUND" if it has
   none. */
static hfsb_status show_space(listing *l, hfsb_str id, const known *k,
                              hfsb_err *err) {
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_str           url = k ? k->url : HFSB_LIT("");
    hfsb_sandbox_opts  opts = HFSB_INIT;
    hfsb_sandbox      *sandbox = NULL;
    hfsb_status        st;
    opts.hub = l->c.hub;
    opts.cancel = l->c.cancel;
    st = hfsb_sandbox_open(id, false, &opts, &sandbox, err);
    if (st == HFSB_OK) st = hfsb_sandbox_status(sandbox, &is, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    if (st == HFSB_NOT_FOUND) snprintf(is.stage, sizeof is.stage, "NOT_FOUND");
    else if (st != HFSB_OK) return st;
    show_one(l, id, url, k, is.stage,
             is.hardware[0] ? is.hardware : is.requested);
    return HFSB_OK;
}

static hfsb_status show_recorded(listing *l, bool ask, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < l->known.count && st == HFSB_OK; i++) {
        const known *k = &l->known.list[i];
        if (ask && k->id.len) st = show_space(l, k->id, k, err);
        else show_one(l, k->id, k->url, k, "", "");
    }
    return st;
}

/* The ids of the owner's sandboxes that are not shown yet. */
typedef struct others {
    const hfsb_buf *shown;
    hfsb_buf        ids; /* each followed by a newline */
} others;

static bool take_other(void *user, hfsb_str id, hfsb_str modified) {
    others  *o = (others *)user;
    hfsb_buf line = HFSB_INIT;
    (void)modified;
    must(hfsb_buf_printf(&line, "%.*s\n", (int)id.len, id.ptr));
    if (hfsb_str_find(hfsb_buf_str(o->shown), hfsb_buf_str(&line)) ==
        HFSB_NPOS)
        must(hfsb_buf_append(&o->ids, hfsb_buf_str(&line)));
    hfsb_buf_free(&line);
    return true;
}

static hfsb_status show_others(listing *l, const char *owner, hfsb_err *err) {
    others      o = HFSB_INIT;
    hfsb_str    left;
    hfsb_status st;
    o.shown = &l->shown;
    st = hfsb_sandbox_list(l->c.hub, owner ? hfsb_cstr(owner) : l->c.set.owner,
                           take_other, &o, l->c.cancel, err);
    left = hfsb_buf_str(&o.ids);
    while (st == HFSB_OK && left.len) {
        size_t end = hfsb_str_find_byte(left, '\n');
        st = show_space(l, hfsb_str_slice(left, 0, end), NULL, err);
        left = hfsb_str_slice(left, end + 1, left.len);
    }
    hfsb_buf_free(&o.ids);
    return st;
}

static hfsb_status list_all(listing *l, const char *owner, hfsb_err *err) {
    hfsb_status st = read_known(&l->known, err);
    bool        ask;
    if (st == HFSB_OK) st = open_client(&l->c, false, err);
    if (st != HFSB_OK) return st;
    ask = !l->recorded && !l->c.env.offline && l->c.env.token.len;
    if (!ask && !l->recorded)
        fprintf(stderr, "hfsb: %s: only the recorded sandboxes are listed\n",
                l->c.env.offline ? "HF_HUB_OFFLINE is set"
                                 : "no Hugging Face token (HF_TOKEN)");
    st = show_recorded(l, ask, err);
    if (st == HFSB_OK && ask) st = show_others(l, owner, err);
    return st;
}

int run_ls(args *a) {
    listing          l;
    const char      *owner = NULL;
    bool             json = false;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--recorded", OPTION_FLAG, &l.recorded,
         "only the recorded ones, without asking the Hub"},
        {"--owner O", OPTION_TEXT, &owner, "whose Spaces (yours)"},
        OPTION_JSON(&json, ", sandboxes (id, url, stage, hardware, recorded, "
                           "created)"),
        OPTIONS_END};
    memset(&l, 0, sizeof l);
    if (!take_all(a, options, NULL)) return a->status;
    begin_object(&l.w, &result.fields);
    hfsb_json_put_key(&l.w, HFSB_LIT("sandboxes"));
    hfsb_json_put_array(&l.w);
    st = list_all(&l, owner, &err);
    hfsb_json_put_end(&l.w);
    end_object(&l.w);
    if (l.text.len) hfsb_buf_truncate(&l.text, l.text.len - 1);
    if (!json) must(hfsb_buf_append(&result.output, hfsb_buf_str(&l.text)));
    if (st == HFSB_OK && !l.text.len && !json)
        fprintf(stderr, "hfsb: no sandboxes; `hfsb create` makes one\n");
    close_client(&l.c);
    free_known(&l.known);
    hfsb_buf_free(&l.text);
    hfsb_buf_free(&l.shown);
    return show_outcome(&result, st, &err, json);
}

/* ---- status ---- */

static void describe(const target *t, const hfsb_space_runtime *is,
                     hfsb_tool_result *result) {
    hfsb_buf        *out = &result->output;
    hfsb_json_writer w;
    must(hfsb_buf_printf(out, "%s  %s", target_name(t).ptr, is->stage));
    if (is->hardware[0]) must(hfsb_buf_printf(out, "  %s", is->hardware));
    if (is->requested[0] && strcmp(is->requested, is->hardware) != 0)
        must(hfsb_buf_printf(out, "  (requested: %s)", is->requested));
    if (is->sleep_time > 0)
        must(hfsb_buf_printf(out, "  sleeps after %lld s", is->sleep_time));
    if (is->error[0]) must(hfsb_buf_printf(out, "\n%s", is->error));
    begin_object(&w, &result->fields);
    put_str(&w, "id", hfsb_buf_str(&t->id));
    put_str(&w, "url", hfsb_buf_str(&t->url));
    put_str(&w, "stage", hfsb_cstr(is->stage));
    put_str(&w, "hardware", hfsb_cstr(is->hardware));
    put_str(&w, "requested", hfsb_cstr(is->requested));
    put_str(&w, "sha", hfsb_cstr(is->sha));
    put_str(&w, "message", hfsb_cstr(is->error));
    put_int(&w, "sleep_time", is->sleep_time);
    put_bool(&w, "recorded", t->recorded);
    put_bool(&w, "created", t->created);
    end_object(&w);
}

/* Asks the Hub for the stage of a Space. The server of a URL that answers is
   RUNNING. */
static hfsb_status ask(client *c, const char *name, target *t,
                       hfsb_space_runtime *is, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = find_target(name, t, err);
    if (st == HFSB_OK && t->id.len) st = open_client(c, true, err);
    if (st != HFSB_OK) return st;
    if (t->id.len) {
        opts.hub = c->hub;
        opts.cancel = c->cancel;
        st = hfsb_sandbox_open(hfsb_buf_str(&t->id), false, &opts, &sandbox,
                               err);
        if (st == HFSB_OK) st = hfsb_sandbox_status(sandbox, is, err);
        if (st == HFSB_NOT_FOUND) add_advice(t, st, err);
    } else {
        st = open_target(c, t, &opts, &sandbox, err);
        if (st == HFSB_OK) snprintf(is->stage, sizeof is->stage, "RUNNING");
    }
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    return st;
}

int run_status(args *a) {
    const char        *name = NULL;
    bool               json = false;
    client             c = HFSB_INIT;
    target             t = HFSB_INIT;
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_tool_result   result = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    hfsb_status        st;

    const option options[] = {
        OPTION_JSON(&json, ", id, url, stage, hardware, requested, sha, "
                           "message, sleep_time, recorded, created"),
        OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    name = named_sandbox(name);
    if (!name) return usage(a, "SANDBOX is missing");
    st = ask(&c, name, &t, &is, &err);
    if (st == HFSB_OK) describe(&t, &is, &result);
    free_target(&t);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}
