/* create.c - hfsb create, hfsb connect: make or find a sandbox, and record it.

   A sandbox is a Space, or with --image a job. Both commands print the id, or
   the URL, and record address and token in the state file. A sandbox that was
   created but cannot be recorded is deleted again. */
#define _XOPEN_SOURCE 700 /* unlink, write; before any include */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- common to both ---- */

/* The address to record: that of the server, without "/api/". */
static hfsb_str base_url(const hfsb_sandbox *sandbox) {
    hfsb_str api = hfsb_sandbox_api(sandbox);
    if (hfsb_str_ends(api, HFSB_LIT("/"))) api.len--;
    if (hfsb_str_ends(api, HFSB_LIT("/api"))) api.len -= 4;
    return api;
}

static hfsb_status record(const hfsb_sandbox *sandbox, hfsb_str url,
                          bool created, bool is_own, hfsb_err *err) {
    known k = HFSB_INIT;
    k.id = hfsb_sandbox_id(sandbox);
    k.url = url;
    k.token = hfsb_sandbox_token(sandbox);
    k.created = created;
    k.is_own = is_own;
    return record_sandbox(&k, err);
}

/* Its name, and fields with everything except the token. */
static void describe(const hfsb_sandbox *sandbox, hfsb_str url, bool created,
                     hfsb_tool_result *result) {
    hfsb_json_writer w;
    hfsb_str         id = hfsb_sandbox_id(sandbox);
    must(hfsb_buf_append(&result->output, id.len ? id : url));
    begin_object(&w, &result->fields);
    put_str(&w, "id", id);
    put_str(&w, "url", url);
    put_str(&w, "page", id.len ? hfsb_sandbox_page(sandbox) : HFSB_LIT(""));
    put_bool(&w, "created", created);
    end_object(&w);
}

/* On stderr, because a script may read the name from stdout. */
static void print_next_step(const hfsb_tool_result *result, bool chosen,
                            bool json) {
    if (json || !result->output.len) return;
    fprintf(stderr, "hfsb: use it with --on %s, or: export HFSB_SANDBOX=%s\n",
            result->output.ptr, result->output.ptr);
    if (chosen)
        fprintf(stderr, "hfsb: it is the default sandbox now: hfsb shell, "
                        "hfsb status, hfsb cp FILE :, --on .\n");
}

/* ---- create ---- */

typedef struct create_call {
    const char *name, *owner, *hardware, *from;
    bool        is_public, json, keep;
    bool        failed; /* after it was made */
    client     *via;
    progress   *shown;
    hfsb_buf    log; /* path of the log of a failure */
    long long   sleep_time;
    texts       names, files; /* of secrets */
    double      wait, poll;   /* seconds */
    /* of a job */
    const char     *image, *server, *timeout, *idle_timeout, *api;
    bool            download;
    texts           mounts;
    hfsb_job_volume volumes[MAX_TEXTS];
    hfsb_buf        bytes; /* of the server */
} create_call;

static hfsb_str choose(const char *given, hfsb_str configured) {
    return given ? hfsb_cstr(given) : configured;
}

static void show_stage(void *user, hfsb_str id, const char *stage) {
    progress_stage(((create_call *)user)->shown, id, stage);
}

/* ---- the log of a failure ---- */

typedef struct log_file {
    int    fd;
    size_t lines;
} log_file;

static bool keep_line(void *user, hfsb_str line, hfsb_str timestamp) {
    log_file *f = (log_file *)user;
    hfsb_buf  text = HFSB_INIT;
    bool      ok;
    must(hfsb_buf_printf(&text, "%.*s%s%.*s\n", (int)timestamp.len,
                         timestamp.ptr, timestamp.len ? " " : "",
                         (int)line.len, line.ptr));
    ok = write(f->fd, text.ptr, text.len) == (ssize_t)text.len;
    hfsb_buf_free(&text);
    f->lines++;
    return ok;
}

/* Records a sandbox that --keep leaves behind, so that `ls` shows it as ours
   and `delete` may delete it. Nobody knows its token. */
static void record_kept(hfsb_str id) {
    known    k = HFSB_INIT;
    hfsb_err err;
    k.id = id;
    k.created = true;
    if (record_sandbox(&k, &err) != HFSB_OK)
        fprintf(stderr, "hfsb: %s\n", err.msg);
}

/* Writes the logs of a sandbox whose creation has failed to a file: they are
   gone with it. True with --keep. */
static bool keep_log(void *user, hfsb_str id) {
    static const char *const which[] = {"build", "run"};
    create_call             *call = (create_call *)user;
    hfsb_log_opts            opts = HFSB_INIT;
    log_file                 f = HFSB_INIT;
    hfsb_err                 err;
    job_name                 name;
    size_t                   i;
    call->failed = true;
    if (call->keep) record_kept(id);
    opts.cancel = call->via->cancel;
    opts.idle_ms = call->poll > 0 && call->poll < 5 ? 1000 : 5000;
    f.fd = open_log(id.ptr, &call->log, &err);
    if (f.fd < 0) {
        fprintf(stderr, "hfsb: %s\n", err.msg);
        return call->keep;
    }
    if (is_job(id)) {
        split_job(id.ptr, NULL, &name);
        (void)hfsb_hub_job_logs(call->via->hub, name.space, name.id, &opts,
                                keep_line, &f, NULL);
    }
    for (i = 0; i < 2 && !is_job(id); i++)
        (void)hfsb_hub_space_logs(call->via->hub, id, which[i], &opts,
                                  keep_line, &f, NULL);
    close(f.fd);
    if (!f.lines) {
        (void)unlink(call->log.ptr);
        hfsb_buf_truncate(&call->log, 0);
    }
    return call->keep;
}

static hfsb_status create(client *c, create_call *call, const secrets *s,
                          hfsb_sandbox **out, hfsb_err *err) {
    hfsb_sandbox_spec spec = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_status       st;
    spec.owner = choose(call->owner, c->set.owner);
    spec.name = hfsb_cstr(call->name);
    spec.from = choose(call->from, c->set.from);
    spec.hardware = choose(call->hardware, c->set.hardware);
    spec.visible = call->is_public;
    spec.sleep_time = call->sleep_time ? call->sleep_time : c->set.sleep_time;
    spec.secrets = s->pairs;
    spec.secret_count = s->count;
    set_space_files(&spec);
    spec.image = hfsb_cstr(call->image);
    spec.server = hfsb_buf_str(&call->bytes);
    spec.download = call->download;
    spec.timeout = hfsb_cstr(call->timeout);
    spec.idle_timeout = hfsb_cstr(call->idle_timeout);
    spec.api = hfsb_cstr(call->api);
    spec.volumes = call->volumes;
    spec.volume_count = call->mounts.count;
    opts.hub = c->hub;
    opts.transport = &c->transport;
    opts.hub_token = hfsb_buf_str(&c->env.token);
    opts.cancel = c->cancel;
    call->via = c;
    spec.on_failure = keep_log;
    spec.on_stage = show_stage;
    spec.user = call;
    call->shown = progress_open(c->hub, "CREATING", call->json);
    opts.log = progress_log;
    opts.user = call->shown;
    opts.times.wait_ms = (long long)(call->wait * 1000);
    opts.times.poll_ms = (long long)(call->poll * 1000);
    if (opts.times.poll_ms && opts.times.poll_ms < 3000)
        opts.times.api_poll_ms = opts.times.poll_ms;
    st = hfsb_sandbox_create(&spec, &opts, out, err);
    progress_close(call->shown);
    if (call->log.len)
        fprintf(stderr, "hfsb: its log is in %s\n", call->log.ptr);
    else if (call->failed && !call->json)
        fprintf(stderr, "hfsb: the Hub has no log of it\n");
    hfsb_buf_free(&call->log);
    return st;
}

/* Refuses hardware that the Hub does not list, before anything is made. A Hub
   that gives no list decides itself. */
static hfsb_status check_hardware(client *c, const create_call *call,
                                  hfsb_err *err) {
    hfsb_str       wanted = choose(call->hardware, c->set.hardware);
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    suggestion     s;
    size_t         count = 0;
    hfsb_status    st = HFSB_OK;
    bool           found = false;
    if (!wanted.len) return st;
    suggest_init(&s, wanted.ptr, wanted.len);
    (void)hfsb_hub_hardware(c->hub, call->image != NULL, c->cancel, &doc,
                            NULL);
    it = hfsb_json_begin(doc.root);
    for (; !found && hfsb_json_next(&it); count++) {
        found = hfsb_str_equal(get_str(it.value, "name"), wanted);
        suggest_try(&s, get_str(it.value, "name").ptr);
    }
    if (count && !found)
        st = fail(err, HFSB_ARG,
                  "The Hub has no hardware %.*s%s%.*s. `hfsb hardware%s` "
                  "lists what there is.",
                  (int)wanted.len, wanted.ptr,
                  s.name ? ", did you mean " : "", (int)s.name_len,
                  s.name ? s.name : "", call->image ? " --jobs" : "");
    hfsb_json_free(&doc);
    return st;
}

/* Records the new sandbox, or deletes it: without its token it is useless and
   may cost money. */
static hfsb_status record_or_delete(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = record(sandbox, base_url(sandbox), true, false, &why);
    hfsb_str    id = hfsb_sandbox_id(sandbox);
    if (st == HFSB_OK) return st;
    if (hfsb_sandbox_delete(sandbox, NULL) == HFSB_OK)
        return fail(err, st, "%s, so %.*s was deleted again", why.msg,
                    (int)id.len, id.ptr);
    return fail(err, st,
                "%s. %.*s still exists: delete it on the Hub, or with hfsb "
                "delete --force",
                why.msg, (int)id.len, id.ptr);
}

/* Refuses options of the other kind of sandbox. */
static bool check_kind(args *a, const create_call *call) {
    const char *wrong = NULL;
    if (!call->image)
        wrong = call->server         ? "--server"
                : call->timeout      ? "--timeout"
                : call->idle_timeout ? "--idle-timeout"
                : call->api          ? "--api"
                : call->download     ? "--download"
                : call->mounts.count ? "--volume"
                                     : NULL;
    if (wrong) return usage(a, "%s needs --image", wrong) == DONE;
    if (call->image)
        wrong = call->from         ? "--template"
                : call->is_public  ? "--public"
                : call->sleep_time ? "--sleep-time"
                                   : NULL;
    if (wrong)
        return usage(a, "%s is for a Space, not for --image%s", wrong,
                     call->sleep_time ? "; see --idle-timeout" : "") == DONE;
    return true;
}

static bool take_create(args *a, create_call *call) {
    const option options[] = {
        {"--image I", OPTION_TEXT, &call->image,
         "instead of a Space, a job with this Docker image (python:3.12), "
         "which starts in seconds"},
        {"--hardware H", OPTION_TEXT, &call->hardware,
         "cpu-basic, cpu-upgrade, t4-small, t4-medium, a10g-small, "
         "a10g-large, a100-large ...; see `hfsb hardware`"},
        {"--flavor H", OPTION_ALIAS, NULL, "--hardware"},
        {"--sleep-time S", OPTION_INTEGER, &call->sleep_time,
         "sleep after S seconds without a call"},
        {"--owner O", OPTION_TEXT, &call->owner,
         "your user name (the default), or one of your organisations"},
        {"--name N", OPTION_TEXT, &call->name,
         "prefix of its name, before 8 random digits (sandbox)"},
        {"--template SPACE", OPTION_TEXT, &call->from,
         "duplicate this Space unchanged: its server, on port 7860, must be "
         "hfsb-server or the reference server (default: burtenshaw/sandbox, "
         "with its files replaced by the sources of hfsb-server)"},
        {"--public", OPTION_FLAG, &call->is_public,
         "anyone can see the Space; calls still need its token"},
        {"--secret NAME", OPTION_TEXTS, &call->names,
         "pass the environment variable NAME as a secret; may be repeated"},
        {"--secrets NAME", OPTION_ALIAS, NULL, "--secret"},
        {"-s NAME", OPTION_ALIAS, NULL, "--secret"},
        {"--secret-file NAME=FILE", OPTION_TEXTS, &call->files,
         "pass the content of FILE as the secret NAME"},
        {"--idle-timeout T", OPTION_TEXT, &call->idle_timeout,
         "a job: end after this time without a call and without a running "
         "command, such as 10m"},
        {"--timeout T", OPTION_TEXT, &call->timeout,
         "a job: end after this time in any case (24h)"},
        {"--volume V", OPTION_TEXTS, &call->mounts,
         "a job: TYPE:OWNER/NAME:/MOUNT[:ro], TYPE is model, dataset, space "
         "or bucket; may be repeated"},
        {"--server FILE", OPTION_TEXT, &call->server,
         "a job: the static hfsb-server that it runs (the one next to hfsb)"},
        {"--download", OPTION_FLAG, &call->download,
         "a job: download the server instead of mounting it, for which the "
         "job gets your token"},
        {"--api NAME", OPTION_TEXT, &call->api,
         "a job: its server also speaks this protocol, such as hf"},
        {"--keep", OPTION_FLAG, &call->keep,
         "if it does not start, keep it; it may cost money"},
        {"--wait S", OPTION_SECONDS, &call->wait,
         "how long to wait for its start (600)"},
        {"--poll S", OPTION_SECONDS, &call->poll,
         "ask for its state every S seconds (5; for a job 2)"},
        OPTION_JSON(&call->json, ", id, url, page, created"),
        OPTIONS_END};
    memset(call, 0, sizeof *call);
    if (!take_all(a, options, NULL) || !check_kind(a, call)) return false;
    if (call->sleep_time >= -1) return true;
    return usage(a, "--sleep-time needs seconds, or -1 for never") == DONE;
}

int run_create(args *a) {
    static create_call call; /* large */
    secrets            s;
    client             c = HFSB_INIT;
    hfsb_sandbox      *sandbox = NULL;
    hfsb_tool_result   result = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    hfsb_status        st;
    memset(&s, 0, sizeof s);
    if (!take_create(a, &call)) return a->status;
    st = open_client(&c, true, &err);
    if (st == HFSB_OK)
        st = take_secrets(&c, &call.names, &call.files, &s, &err);
    if (st == HFSB_OK && call.image)
        st = read_server(call.server, &call.bytes, &err);
    if (st == HFSB_OK) st = take_volumes(&call.mounts, call.volumes, &err);
    if (st == HFSB_OK) st = check_state(&err);
    if (st == HFSB_OK) st = check_hardware(&c, &call, &err);
    if (st == HFSB_OK) st = create(&c, &call, &s, &sandbox, &err);
    if (st == HFSB_OK) st = record_or_delete(sandbox, &err);
    if (st == HFSB_OK) describe(sandbox, base_url(sandbox), true, &result);
    print_next_step(&result,
                    st == HFSB_OK && set_default(hfsb_sandbox_id(sandbox),
                                                 &err) == HFSB_OK,
                    call.json);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    free_secrets(&s);
    hfsb_buf_free(&call.bytes);
    close_client(&c);
    return show_outcome(&result, st, &err, call.json);
}

/* ---- connect ---- */

/* The same for the address of a page: "URL/#TOKEN" names a URL, and the token
   comes with it. */
static hfsb_status find_page_target(const char *name, target *t,
                                    hfsb_err *err) {
    const char *token = page_token(name);
    hfsb_buf    url = HFSB_INIT;
    hfsb_status st;
    if (!token) return find_target(name, t, err);
    must(hfsb_buf_append(&url, hfsb_str_slice(hfsb_cstr(name), 0,
                                              (size_t)(token - 1 - name))));
    st = find_target(url.ptr, t, err);
    hfsb_buf_truncate(&t->token, 0);
    if (st == HFSB_OK) st = hfsb_http_decode(hfsb_cstr(token), &t->token, err);
    t->token_from = "the address";
    hfsb_buf_free(&url);
    return st;
}

static hfsb_status connect_to(const char *name, double wait,
                              hfsb_tool_result *result, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            c = HFSB_INIT;
    target            t = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_str          url = HFSB_LIT("");
    hfsb_status       st = find_page_target(name, &t, err);
    opts.times.api_wait_ms = (long long)(wait * 1000);
    opts.log = print_log;
    if (st == HFSB_OK && t.is_pipe)
        st = fail(err, HFSB_ARG,
                  "%s needs no record: use it with --on, or make it the "
                  "default with `hfsb use`",
                  name);
    if (st == HFSB_OK && !t.token_from) take_env_token(&t);
    if (st == HFSB_OK) st = open_target(&c, &t, &opts, &sandbox, err);
    if (st == HFSB_OK) {
        url = opts.protocol ? hfsb_buf_str(&t.url) : base_url(sandbox);
        st = record(sandbox, url, t.created, opts.hub_token.len > 0, err);
    }
    if (st == HFSB_OK) describe(sandbox, url, t.created, result);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    free_target(&t);
    close_client(&c);
    return st;
}

int run_connect(args *a) {
    const char      *name = NULL;
    double           wait = 0;
    bool             json = false;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--wait S", OPTION_SECONDS, &wait,
         "how long to wait for an answer (60; for a URL 3)"},
        OPTION_JSON(&json, ", id, url, page, created"),
        OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    if (!name)
        return usage(a, "SANDBOX is missing: OWNER/NAME, "
                        "jobs/OWNER/ID or a URL");
    st = connect_to(name, wait, &result, &err);
    if (st == HFSB_OK) print_next_step(&result, false, json);
    return show_outcome(&result, st, &err, json);
}
