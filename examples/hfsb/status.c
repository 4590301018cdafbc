/* status.c - hfsb ls, hfsb status: the state of sandboxes.

   ls lists the recorded sandboxes, then the Spaces and jobs of the owner that
   hfsb created elsewhere. Both ask the Hub for the stage of each. */
#define _XOPEN_SOURCE 700 /* STDOUT_FILENO; before any include */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- ls ---- */

typedef struct listing {
    client           c;
    known_list       known;
    table            rows;
    hfsb_json_writer w;
    hfsb_buf         shown;    /* names, each followed by a newline */
    bool             recorded; /* do not ask the Hub */
    bool             asks;     /* it answers */
} listing;

static void show_one(listing *l, hfsb_str id, hfsb_str url, const known *k,
                     const char *stage, const char *hardware) {
    hfsb_str name = id.len ? id : url, cells[4];
    bool     chosen = k && hfsb_str_equal(name, l->known.chosen);
    hfsb_buf made = HFSB_INIT;
    must(hfsb_buf_printf(&made, "%s%s",
                         !k           ? "not recorded here"
                         : k->created ? "created"
                                      : "connected",
                         chosen ? ", default" : ""));
    cells[0] = name;
    cells[1] = hfsb_cstr(*stage ? stage : "-");
    cells[2] = hfsb_cstr(*hardware ? hardware : "-");
    cells[3] = hfsb_buf_str(&made);
    table_add(&l->rows, cells);
    hfsb_buf_free(&made);
    hfsb_json_put_object(&l->w);
    put_str(&l->w, "id", id);
    put_str(&l->w, "url", url);
    put_str(&l->w, "stage", hfsb_cstr(stage));
    put_str(&l->w, "hardware", hfsb_cstr(hardware));
    put_bool(&l->w, "recorded", k != NULL);
    put_bool(&l->w, "created", k && k->created);
    put_bool(&l->w, "default", chosen);
    hfsb_json_put_end(&l->w);
    must(hfsb_buf_printf(&l->shown, "%.*s\n", (int)name.len, name.ptr));
}

/* The stage to show for an error about one Space or job; NULL for an error
   that is not about it. */
static const char *stage_of(hfsb_status st) {
    if (st == HFSB_NOT_FOUND) return "NOT_FOUND";
    if (st == HFSB_DENIED) return "DENIED";
    return st == HFSB_REMOTE ? "UNKNOWN" : NULL;
}

/* Asks the Hub for the stage of a Space or job; a refusal is shown instead. */
static hfsb_status show_space(listing *l, hfsb_str id, const known *k,
                              hfsb_err *err) {
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_str           url = k ? k->url : HFSB_LIT("");
    hfsb_sandbox_opts  opts = HFSB_INIT;
    hfsb_sandbox      *sandbox = NULL;
    const char        *refused;
    hfsb_status        st;
    opts.hub = l->c.hub;
    opts.cancel = l->c.cancel;
    st = hfsb_sandbox_open(id, false, &opts, &sandbox, err);
    if (st == HFSB_OK) st = hfsb_sandbox_status(sandbox, &is, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    refused = stage_of(st);
    if (st != HFSB_OK && !refused) return st;
    if (refused) snprintf(is.stage, sizeof is.stage, "%s", refused);
    if (refused && st != HFSB_NOT_FOUND)
        print_log(NULL, hfsb_cstr(err->msg));
    show_one(l, id, url, k, is.stage,
             is.hardware[0] ? is.hardware : is.requested);
    return HFSB_OK;
}

/* When the Hub does not answer, or refuses the token, it is not asked again;
   what is recorded here is listed all the same. */
static hfsb_status note_answer(listing *l, hfsb_status st,
                               const hfsb_err *err) {
    if (st != HFSB_CONNECT && st != HFSB_LOST && st != HFSB_TIMEOUT &&
        st != HFSB_REMOTE && st != HFSB_AUTH && st != HFSB_DENIED &&
        st != HFSB_RATE)
        return st;
    l->asks = false;
    print_log(NULL, hfsb_cstr(err->msg));
    fprintf(stderr, "hfsb: only the recorded sandboxes are listed\n");
    return HFSB_OK;
}

static hfsb_status show_recorded(listing *l, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < l->known.count && st == HFSB_OK; i++) {
        const known *k = &l->known.list[i];
        bool         ask = l->asks && k->id.len;
        if (ask) st = note_answer(l, show_space(l, k->id, k, err), err);
        if (!ask || !l->asks) show_one(l, k->id, k->url, k, "", "");
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

/* For a token that has expired the Hub shows no Space at all, as if none
   existed: find that out first. */
static hfsb_status check_token(listing *l, hfsb_err *err) {
    hfsb_buf    user = HFSB_INIT;
    hfsb_status st = hfsb_hub_user(l->c.hub, l->c.cancel, &user, err);
    hfsb_buf_free(&user);
    return note_answer(l, st, err);
}

static hfsb_status list_all(listing *l, const char *owner, hfsb_err *err) {
    hfsb_status st = read_known(&l->known, err);
    if (st == HFSB_OK) st = open_client(&l->c, false, err);
    if (st != HFSB_OK) return st;
    l->asks = !l->recorded && !l->c.env.offline && l->c.env.token.len;
    if (!l->asks && !l->recorded)
        fprintf(stderr, "hfsb: %s: only the recorded sandboxes are listed\n",
                l->c.env.offline ? "HF_HUB_OFFLINE is set"
                                 : "no Hugging Face token (HF_TOKEN)");
    if (l->asks) st = check_token(l, err);
    if (st == HFSB_OK) st = show_recorded(l, err);
    if (st == HFSB_OK && l->asks)
        st = note_answer(l, show_others(l, owner, err), err);
    return st;
}

static const table_column columns[] = {{"SANDBOX", 36, false},
                                       {"STAGE", 10, true},
                                       {"HARDWARE", 12, false},
                                       {"RECORD", 0, false}};

int run_ls(args *a) {
    listing          l;
    const char      *owner = NULL;
    bool             json = false, all = false;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--recorded", OPTION_FLAG, &l.recorded,
         "only the recorded ones, without asking the Hub"},
        {"--owner O", OPTION_TEXT, &owner, "whose Spaces to list (yours)"},
        {"--all", OPTION_FLAG, &all, "accepted; all stages are always listed"},
        {"-a", OPTION_ALIAS, NULL, "--all"},
        OPTION_JSON(&json, ", sandboxes (id, url, stage, hardware, recorded, "
                           "created, default)"),
        OPTIONS_END};
    memset(&l, 0, sizeof l);
    if (!take_all(a, options, NULL)) return a->status;
    table_begin(&l.rows, columns, 4);
    begin_object(&l.w, &result.fields);
    hfsb_json_put_key(&l.w, HFSB_LIT("sandboxes"));
    hfsb_json_put_array(&l.w);
    st = list_all(&l, owner, &err);
    hfsb_json_put_end(&l.w);
    end_object(&l.w);
    if (st == HFSB_OK && !l.rows.rows && !json)
        fprintf(stderr, "hfsb: no sandboxes; `hfsb create` makes one\n");
    close_client(&l.c);
    free_known(&l.known);
    hfsb_buf_free(&l.shown);
    return show_table(&result, st, &err, &l.rows, json);
}

/* ---- status ---- */

/* In the largest unit that gives a whole number: "2 days". */
static void put_sleep(hfsb_buf *out, long long seconds) {
    static const struct {
        long long   seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t    i = 0;
    long long n;
    while (seconds % units[i].seconds) i++;
    n = seconds / units[i].seconds;
    must(hfsb_buf_printf(out, "%lld %s%s", n, units[i].name,
                         n == 1 ? "" : "s"));
}

static void describe(const target *t, const hfsb_space_runtime *is,
                     const char *confine, hfsb_tool_result *result) {
    hfsb_buf        *out = &result->output;
    hfsb_json_writer w;
    must(hfsb_buf_printf(out, "%s  %s", target_name(t).ptr, is->stage));
    if (is->hardware[0]) must(hfsb_buf_printf(out, "  %s", is->hardware));
    if (is->requested[0] && strcmp(is->requested, is->hardware) != 0)
        must(hfsb_buf_printf(out, "  (requested: %s)", is->requested));
    if (is->sleep_time > 0) must(hfsb_buf_printf(out, "  sleeps after "));
    if (is->sleep_time > 0) put_sleep(out, is->sleep_time);
    if (*confine)
        must(strcmp(confine, "none") != 0
                 ? hfsb_buf_printf(out, "  commands are confined: %s", confine)
                 : hfsb_buf_printf(out, "  commands are not confined"));
    if (is->error[0]) must(hfsb_buf_printf(out, "\n%s", is->error));
    begin_object(&w, &result->fields);
    put_str(&w, "id", hfsb_buf_str(&t->id));
    put_str(&w, "url", hfsb_buf_str(&t->url));
    put_str(&w, "stage", hfsb_cstr(is->stage));
    put_str(&w, "hardware", hfsb_cstr(is->hardware));
    put_str(&w, "requested", hfsb_cstr(is->requested));
    put_str(&w, "sha", hfsb_cstr(is->sha));
    put_str(&w, "message", hfsb_cstr(is->error));
    put_str(&w, "confine", hfsb_cstr(confine));
    put_int(&w, "sleep_time", is->sleep_time);
    put_bool(&w, "recorded", t->recorded);
    put_bool(&w, "created", t->created);
    end_object(&w);
}

/* Asks the server of a pipe what its commands may touch: it has defaults that
   depend on the machine. "" when it does not answer that. */
static void ask_confinement(client *c, hfsb_sandbox *sandbox, char *out,
                            size_t size) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      level = HFSB_LIT("");
    if (hfsb_sandbox_ask(sandbox, HFSB_LIT("health"), c->cancel, &doc, NULL) ==
        HFSB_OK)
        level = get_str(doc.root, "confine");
    snprintf(out, size, "%.*s", (int)level.len, level.ptr);
    hfsb_json_free(&doc);
}

enum { CONFINE_NAME = 16 };

/* The same as a row below heads, for a terminal. */
static void describe_in_table(const target *t, const hfsb_space_runtime *is,
                              const char *confine, table *out) {
    static const table_column heads[] = {{"SANDBOX", 0, false},
                                         {"STAGE", 0, true},
                                         {"HARDWARE", 0, false},
                                         {"REQUESTED", 0, false},
                                         {"SLEEPS AFTER", 0, false},
                                         {"CONFINED", 0, false}};
    hfsb_buf sleep = HFSB_INIT;
    hfsb_str cells[6];
    if (is->sleep_time > 0) put_sleep(&sleep, is->sleep_time);
    else must(hfsb_buf_append_byte(&sleep, '-'));
    cells[0] = target_name(t);
    cells[1] = hfsb_cstr(is->stage);
    cells[2] = hfsb_cstr(is->hardware[0] ? is->hardware : "-");
    cells[3] = hfsb_cstr(is->requested[0] ? is->requested : "-");
    cells[4] = hfsb_buf_str(&sleep);
    cells[5] = hfsb_cstr(*confine ? confine : "-");
    table_begin(out, heads, 6);
    table_add(out, cells);
    hfsb_buf_free(&sleep);
}

/* Asks the Hub for the stage of a Space. The server of a URL that answers is
   RUNNING; that of a pipe runs only now. */
static hfsb_status ask(client *c, const char *name, target *t,
                       hfsb_space_runtime *is, char confine[CONFINE_NAME],
                       hfsb_err *err) {
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
        if (st == HFSB_OK)
            snprintf(is->stage, sizeof is->stage,
                     t->is_pipe ? "REACHABLE" : "RUNNING");
        if (st == HFSB_OK && t->is_pipe)
            ask_confinement(c, sandbox, confine, CONFINE_NAME);
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
    char               confine[CONFINE_NAME] = "";
    hfsb_tool_result   result = HFSB_INIT;
    table              rows = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    hfsb_status        st;

    const option options[] = {
        OPTION_JSON(&json, ", id, url, stage, hardware, requested, sha, "
                           "message, confine, sleep_time, recorded, created"),
        OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    name = chosen_sandbox(name);
    if (!name) return no_sandbox(a);
    st = ask(&c, name, &t, &is, confine, &err);
    if (st == HFSB_OK) describe(&t, &is, confine, &result);
    if (st == HFSB_OK && !json && can_rewrite(STDOUT_FILENO)) {
        describe_in_table(&t, &is, confine, &rows);
        hfsb_buf_truncate(&result.output, 0);
        must(hfsb_buf_append(&result.output, hfsb_cstr(is.error)));
    }
    free_target(&t);
    close_client(&c);
    return show_table(&result, st, &err, &rows, json);
}

/* ---- use ---- */

/* A sandbox that is not recorded must be one that the Hub knows, or answer at
   its URL. The command of a pipe is not started for that. */
static hfsb_status check_use(const char *name, target *t, hfsb_err *err) {
    client             c = HFSB_INIT;
    hfsb_space_runtime is = HFSB_INIT;
    char               confine[CONFINE_NAME];
    hfsb_status        st = find_target(name, t, err);
    if (st != HFSB_OK || t->recorded || t->is_pipe) return st;
    free_target(t);
    memset(t, 0, sizeof *t);
    st = ask(&c, name, t, &is, confine, err);
    close_client(&c);
    return st;
}

int run_use(args *a) {
    const char      *name = NULL;
    bool             none = false, json = false;
    target           t = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = HFSB_OK;

    const option options[] = {
        {"--none", OPTION_FLAG, &none, "unset the default sandbox"},
        OPTION_JSON(&json, ", default"),
        OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    if (name && none) return usage(a, "give SANDBOX or --none, not both");
    if (name) st = check_use(name, &t, &err);
    if (st == HFSB_OK && (name || none)) st = set_default(target_name(&t), &err);
    if (st == HFSB_OK && !name && !none) {
        name = default_sandbox();
        if (name && strcmp(name, ".") == 0) st = find_target(name, &t, &err);
        else if (!name)
            st = fail(&err, HFSB_NOT_FOUND,
                      "There is no default sandbox: `hfsb use NAME` sets it, "
                      "and so does `hfsb create`.");
        else must(hfsb_buf_append(&result.output, hfsb_cstr(name)));
    } else if (st == HFSB_OK) {
        must(hfsb_buf_append(&result.output, target_name(&t)));
    }
    begin_object(&w, &result.fields);
    put_str(&w, "default", hfsb_buf_str(&result.output));
    end_object(&w);
    free_target(&t);
    return show_outcome(&result, st, &err, json);
}
