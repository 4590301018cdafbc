/* create.c - hfsb create, hfsb connect: sandboxes that are recorded. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* ---- what both tell and keep ---- */

/* The address of the server as it is recorded: without "/api/". */
static hfsb_str base_url(const hfsb_sandbox *sandbox) {
    hfsb_str api = hfsb_sandbox_api(sandbox);
    if (hfsb_str_ends(api, HFSB_LIT("/"))) api.len--;
    if (hfsb_str_ends(api, HFSB_LIT("/api"))) api.len -= 4;
    return api;
}

static hfsb_status record(const hfsb_sandbox *sandbox, bool created,
                          hfsb_err *err) {
    known k = HFSB_INIT;
    k.id = hfsb_sandbox_id(sandbox);
    k.url = base_url(sandbox);
    k.token = hfsb_sandbox_token(sandbox);
    k.created = created;
    return record_sandbox(&k, err);
}

/* Its name; with --json all but the token. */
static void describe(const hfsb_sandbox *sandbox, bool created,
                     hfsb_tool_result *result) {
    hfsb_json_writer w;
    hfsb_str         id = hfsb_sandbox_id(sandbox), url = base_url(sandbox);
    must(hfsb_buf_append(&result->output, id.len ? id : url));
    begin_added(&w, result);
    put_str(&w, "id", id);
    put_str(&w, "url", url);
    put_str(&w, "page", id.len ? hfsb_sandbox_page(sandbox) : HFSB_LIT(""));
    put_bool(&w, "created", created);
    end_added(&w);
}

/* On stderr: what prints the name may be part of a script. */
static void tell_what_next(const hfsb_tool_result *result, bool json) {
    if (json || !result->output.len) return;
    fprintf(stderr, "hfsb: use it with --on %s, or: export HFSB_SANDBOX=%s\n",
            result->output.ptr, result->output.ptr);
}

/* ---- create ---- */

typedef struct create_call {
    const char *name, *owner, *hardware, *from;
    bool        is_public;
    long long   sleep_time;
    texts       names, files; /* of secrets */
    double      wait, poll;   /* seconds */
} create_call;

static hfsb_str choose(const char *given, hfsb_str configured) {
    return given ? hfsb_cstr(given) : configured;
}

static hfsb_status create(client *c, const create_call *call, const secrets *s,
                          hfsb_sandbox **out, hfsb_err *err) {
    hfsb_sandbox_spec spec = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    spec.owner = choose(call->owner, c->set.owner);
    spec.name = hfsb_cstr(call->name);
    spec.from = choose(call->from, c->set.from);
    spec.hardware = choose(call->hardware, c->set.hardware);
    spec.visible = call->is_public;
    spec.sleep_time = call->sleep_time ? call->sleep_time : c->set.sleep_time;
    spec.secrets = s->pairs;
    spec.secret_count = s->count;
    set_space_files(&spec);
    opts.hub = c->hub;
    opts.transport = &c->transport;
    opts.hub_token = hfsb_buf_str(&c->env.token);
    opts.cancel = c->cancel;
    opts.log = print_log;
    opts.times.wait_ms = (long long)(call->wait * 1000);
    opts.times.poll_ms = (long long)(call->poll * 1000);
    if (opts.times.poll_ms && opts.times.poll_ms < 3000) opts.times.api_poll_ms = opts.times.poll_ms;
    return hfsb_sandbox_create(&spec, &opts, out, err);
}

/* A sandbox whose token is not kept is of no use, and may cost money. */
static hfsb_status keep(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = record(sandbox, true, &why);
    hfsb_str    id = hfsb_sandbox_id(sandbox);
    if (st == HFSB_OK) return st;
    if (hfsb_sandbox_delete(sandbox, NULL) == HFSB_OK)
        return fail(err, st, "%s, so that %.*s was deleted again", why.msg,
                    (int)id.len, id.ptr);
    return fail(err, st,
                "%s. %.*s is left behind: delete it on the Hub, or with hfsb "
                "delete --force",
                why.msg, (int)id.len, id.ptr);
}

static int run_create(args *a) {
    create_call      call;
    secrets          s;
    bool             json = false;
    client           c = HFSB_INIT;
    hfsb_sandbox    *sandbox = NULL;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    const option     options[] = {
            {"--name", OPTION_TEXT, &call.name},
            {"--owner", OPTION_TEXT, &call.owner},
            {"--hardware", OPTION_TEXT, &call.hardware},
            {"--template", OPTION_TEXT, &call.from},
            {"--public", OPTION_FLAG, &call.is_public},
            {"--sleep-time", OPTION_INTEGER, &call.sleep_time},
            {"--secret", OPTION_TEXTS, &call.names},
            {"--secret-file", OPTION_TEXTS, &call.files},
            {"--wait", OPTION_SECONDS, &call.wait},
            {"--poll", OPTION_SECONDS, &call.poll},
            {"--json", OPTION_FLAG, &json},
            {NULL, OPTION_FLAG, NULL}};
    memset(&call, 0, sizeof call);
    memset(&s, 0, sizeof s);
    if (!take_all(a, options, NULL)) return a->status;
    if (call.sleep_time < -1)
        return usage(a, "--sleep-time is seconds, or -1 for never");
    st = open_client(&c, true, &err);
    if (st == HFSB_OK)
        st = take_secrets(&c, &call.names, &call.files, &s, &err);
    if (st == HFSB_OK) st = check_state(&err);
    if (st == HFSB_OK) st = create(&c, &call, &s, &sandbox, &err);
    if (st == HFSB_OK) st = keep(sandbox, &err);
    if (st == HFSB_OK) describe(sandbox, true, &result);
    tell_what_next(&result, json);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    free_secrets(&s);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}

/* ---- connect ---- */

static hfsb_status connect_to(const char *name, double wait,
                              hfsb_tool_result *result, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            c = HFSB_INIT;
    target            t = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = open_client(&c, false, err);
    opts.times.api_wait_ms = (long long)(wait * 1000);
    opts.log = print_log;
    if (st == HFSB_OK) st = find_target(name, &t, err);
    if (st == HFSB_OK) st = open_target(&c, &t, &opts, &sandbox, err);
    if (st == HFSB_OK) st = record(sandbox, t.created, err);
    if (st == HFSB_OK) describe(sandbox, t.created, result);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    free_target(&t);
    close_client(&c);
    return st;
}

static int run_connect(args *a) {
    const char      *name = NULL;
    double           wait = 0;
    bool             json = false;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    const option     options[] = {{"--wait", OPTION_SECONDS, &wait},
                                  {"--json", OPTION_FLAG, &json},
                                  {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &name)) return a->status;
    if (!name) return usage(a, "to which sandbox? OWNER/NAME or a URL");
    st = connect_to(name, wait, &result, &err);
    if (st == HFSB_OK) tell_what_next(&result, json);
    return show_outcome(&result, st, &err, json);
}

const cli_command command_create = {
    "create", "[OPTIONS]", "make a sandbox on the Hugging Face Hub",
    "    Make a private Space that runs hfsb-server, wait until it answers,\n"
    "    and print its id. Its address and token are kept in\n"
    "    $XDG_STATE_HOME/hfsb/sandboxes.json (~/.local/state), which only\n"
    "    you can read. It costs what its hardware costs until it is paused,\n"
    "    asleep or deleted. Should anything fail, or Ctrl-C end it, the\n"
    "    Space is deleted again.\n"
    "    --hardware H          cpu-basic, cpu-upgrade, t4-small, t4-medium,\n"
    "                          a10g-small, a10g-large, a100-large ...\n"
    "    --sleep-time S        to sleep after S seconds without a call\n"
    "    --owner O             you, or an organisation of yours\n"
    "    --name N              in front of its 8 digits (sandbox)\n"
    "    --template SPACE      the Space to duplicate (burtenshaw/sandbox)\n"
    "    --public              for everyone to see (its token still guards\n"
    "                          it)\n"
    "    --secret NAME         give it the environment variable NAME as a\n"
    "                          secret; may be repeated\n"
    "    --secret-file N=FILE  the content of FILE as the secret N\n"
    "    --wait S              for it to start (600)\n"
    "    --poll S              ask every S seconds (5)\n"
    "    --json                print success, output, error, id, url, page\n"
    "                          and created\n"
    "    Needs a token of the Hub: HF_TOKEN, or the file that `hf auth\n"
    "    login` writes. owner, hardware, template and sleep_time may also\n"
    "    stand in $XDG_CONFIG_HOME/hfsb/config.json (~/.config).\n",
    run_create};

const cli_command command_connect = {
    "connect", "[OPTIONS] SANDBOX", "remember a sandbox that is there",
    "    Ask the server of SANDBOX, a Space OWNER/NAME or a URL such as\n"
    "    http://127.0.0.1:7860, whether it answers, and record it, so that\n"
    "    other commands know its token. That is taken from\n"
    "    SANDBOX_API_TOKEN, or stays what was recorded before.\n"
    "    --wait S    for it to answer (60; at a URL 3)\n"
    "    --json      print success, output, error, id, url, page and "
    "created\n",
    run_connect};
