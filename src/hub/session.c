/* session.c - what an agent holds: tools here or in a sandbox, and a plan.

   The runtime decides where the tools work: on this machine, in a sandbox that
   preload.c creates in the background, or in one of the caller's, to which
   preload.c connects. The session adds tools of its own: plan_tool always,
   sandbox_create and hf_jobs with a sandbox of its own. A call looks for its
   tool among these first, then goes to the runtime.

   The options, the spec and all secrets are copied at open, into one buffer
   that is overwritten at close. */
#include "hub_private.h"

enum {
    HFSBI_SESSION_TEXTS = 12,  /* of the options */
    HFSBI_SESSION_SECRETS = 3, /* HF_TOKEN and two of trackio */
    HFSBI_SESSION_JOB = 8,     /* hex digits of a job id */
    HFSBI_CREATE_SLEEP = 2700  /* seconds without use, unless on cpu-basic */
};

#define HFSBI_CREATE_IDLE "2700" /* the same of a job, on any hardware */

HFSBI_FN void hfsbi_session_log(const hfsb_session *session,
                                const char         *format, ...) {
    hfsb_err line = HFSB_INIT; /* one that is too long is cut */
    va_list  ap;
    if (!session->log) return;
    va_start(ap, format);
    (void)vsnprintf(line.msg, sizeof line.msg, format, ap);
    va_end(ap);
    session->log(session->user, hfsb_cstr(line.msg));
}

/* ---- sandbox_create ---- */

/* The arguments of sandbox_create. */
typedef struct hfsbi_wish {
    hfsb_str hardware; /* empty: any */
    hfsb_str space, project;
} hfsbi_wish;

static const hfsbi_param hfsbi_wish_params[] = {
    HFSBI_PARAM("hardware", HFSBI_ARG_STR, 0, hfsbi_wish, hardware,
                "cpu-basic (default), cpu-upgrade, t4-small, t4-medium, "
                "a10g-small, a10g-large, a100-large or another that the Hub "
                "has"),
    HFSBI_PARAM("trackio_space_id", HFSBI_ARG_STR, 0, hfsbi_wish, space,
                "Space of trackio's dashboard, you/ml-intern-1a2b3c4d, which "
                "trackio makes; set as TRACKIO_SPACE_ID in the sandbox"),
    HFSBI_PARAM("trackio_project", HFSBI_ARG_STR, 0, hfsbi_wish, project,
                "Set as TRACKIO_PROJECT"),
    HFSBI_PARAM_END};

/* True when a sandbox with this hardware does not fulfil the wish. */
static bool hfsbi_wish_differs(const hfsbi_wish *wish, hfsb_str hardware) {
    return wish->space.len || wish->project.len ||
           (wish->hardware.len && !hfsb_str_equal(wish->hardware, hardware));
}

/* Waits until only this call may create a sandbox. A preload under way is
   waited for, or cancelled if it does not fulfil the wish. Under the lock;
   false when cancel is set. */
static bool hfsbi_session_claim(hfsb_session *session, const hfsbi_wish *wish,
                                const hfsb_cancel *cancel) {
    if (hfsb_cancel_is_set(cancel)) return false;
    while (session->claimed)
        if (!hfsbi_session_wait(session, cancel)) return false;
    session->claimed = true;
    if (session->making && hfsbi_wish_differs(wish, session->spec.hardware))
        hfsb_cancel_set(session->making->cancel);
    while (session->making)
        if (!hfsbi_session_wait(session, cancel)) {
            hfsbi_session_unclaim(session);
            return false;
        }
    return true;
}

static void hfsbi_wish_secret(hfsb_session *session, hfsb_sandbox_spec *spec,
                              hfsb_str key, hfsb_str value) {
    hfsb_hub_pair *pair = &session->secrets[spec->secret_count];
    if (!value.len) return;
    memset(pair, 0, sizeof *pair);
    pair->key = key;
    pair->value = value;
    spec->secret_count++;
}

/* Creates the sandbox and waits for it. Under the lock. */
static hfsb_status hfsbi_session_make(hfsb_session      *session,
                                      const hfsbi_wish  *wish,
                                      const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    hfsb_sandbox_spec spec = session->spec;
    hfsb_status       st;
    if (wish->hardware.len) spec.hardware = wish->hardware;
    spec.sleep_time = hfsb_str_equal(spec.hardware, HFSB_LIT("cpu-basic"))
                          ? 0
                          : HFSBI_CREATE_SLEEP;
    hfsbi_wish_secret(session, &spec, HFSB_LIT("TRACKIO_SPACE_ID"),
                      wish->space);
    hfsbi_wish_secret(session, &spec, HFSB_LIT("TRACKIO_PROJECT"),
                      wish->project);
    st = hfsbi_session_start(session, &spec, false, err);
    while (st == HFSB_OK && session->making)
        if (!hfsbi_session_wait(session, cancel)) {
            hfsb_cancel_set(session->making->cancel);
            cancel = NULL; /* the maker ends soon: it deletes the Space */
        }
    if (st == HFSB_OK && session->made != HFSB_OK) {
        st = session->made;
        if (err) *err = session->made_err;
    }
    return st;
}

/* True when the sandbox in use is a job that has ended because it was idle or
   timed out: unlike a Space it does not come back. Under the lock, which is
   released meanwhile; the claim keeps the sandbox from being replaced. */
static bool hfsbi_session_has_ended(hfsb_session *session) {
    hfsbi_box         *box = session->box;
    hfsb_space_runtime runtime;
    hfsb_str           owner, job;
    hfsb_status        st;
    if (!box ||
        !hfsbi_hubjob_split(hfsb_sandbox_id(box->sandbox), &owner, &job))
        return false;
    box->users++;
    pthread_mutex_unlock(&session->lock);
    st = hfsb_sandbox_status(box->sandbox, &runtime, NULL);
    pthread_mutex_lock(&session->lock);
    box->users--;
    return st == HFSB_NOT_FOUND ||
           (st == HFSB_OK && hfsbi_job_is_final(hfsb_cstr(runtime.stage)));
}

/* Describes the sandbox in use to the model. Under the lock. */
static hfsb_status hfsbi_session_describe(hfsb_session     *session,
                                          const hfsbi_wish *wish, bool is_new,
                                          hfsb_tool_result *result) {
    const hfsbi_box *box = session->box;
    hfsb_str         id = hfsb_sandbox_id(box->sandbox);
    hfsb_str         hardware = hfsb_buf_str(&box->hardware);
    hfsbi_build      fields;
    hfsb_status      st;
    hfsbi_build_init(&fields, &session->alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_str(&fields, "id", id);
    hfsbi_build_str(&fields, "url", hfsb_sandbox_page(box->sandbox));
    hfsbi_build_str(&fields, "hardware", hardware);
    hfsbi_build_end(&fields);
    st = hfsbi_build_finish(&fields, &result->fields);
    if (st != HFSB_OK) return st;
    if (!is_new && hfsbi_wish_differs(wish, hardware))
        return hfsbi_result_fail(result, HFSB_CONFLICT,
                                 "A sandbox is active already: %.*s on %.*s. "
                                 "It was asked for and is not replaced.",
                                 (int)id.len, id.ptr, (int)hardware.len,
                                 hardware.ptr);
    return hfsbi_result_ok(
        result, "%s: %.*s on %.*s. bash, read, write and edit work there.",
        is_new ? "Sandbox created" : "A sandbox is active already",
        (int)id.len, id.ptr, (int)hardware.len, hardware.ptr);
}

/* Releases the sandbox that was replaced, and reports it. */
static hfsb_status hfsbi_session_replace(hfsb_session *session, hfsbi_box *old,
                                         hfsb_tool_result *result) {
    hfsb_str    id = hfsb_sandbox_id(old->sandbox);
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    if (result->success)
        st = hfsb_buf_printf(&result->output,
                             "\nIt replaces %.*s, whose files are lost.",
                             (int)id.len, id.ptr);
    if (hfsbi_session_release(session, old, &why) != HFSB_OK &&
        result->success && st == HFSB_OK)
        st = hfsb_buf_printf(&result->output, "\n(%s)", why.msg);
    return st;
}

static hfsb_status hfsbi_session_create(const hfsbi_own_call *call,
                                        const void           *args,
                                        hfsb_tool_result     *result,
                                        hfsb_err             *err) {
    const hfsbi_wish *wish = (const hfsbi_wish *)args;
    hfsb_session     *session = call->session;
    hfsbi_box        *old = NULL;
    bool              make;
    hfsb_status       st = HFSB_OK, left = HFSB_OK;
    pthread_mutex_lock(&session->lock);
    if (!hfsbi_session_claim(session, wish, call->cancel)) {
        pthread_mutex_unlock(&session->lock);
        return hfsbi_fail(err, HFSB_CANCELLED, 0,
                          "Cancelled before a sandbox was created.");
    }
    make = !session->box || hfsbi_session_has_ended(session) ||
           (session->box->automatic &&
            hfsbi_wish_differs(wish, hfsb_buf_str(&session->box->hardware)));
    if (make && session->box) {
        old = session->box;
        old->users++;
    }
    if (make) st = hfsbi_session_make(session, wish, call->cancel, err);
    if (st == HFSB_OK)
        st = hfsbi_session_describe(session, wish, make, result);
    hfsbi_session_unclaim(session);
    pthread_mutex_unlock(&session->lock);
    if (old) left = hfsbi_session_replace(session, old, result);
    return st == HFSB_OK ? left : st;
}

/* ---- the session's own tools ---- */

typedef struct hfsbi_own_tool {
    const hfsbi_tool *(*row)(void);
    /* As hfsbi_run_fn. */
    hfsb_status (*fn)(const hfsbi_own_call *call, const void *args,
                      hfsb_tool_result *result, hfsb_err *err);
} hfsbi_own_tool;

static const hfsbi_tool *hfsbi_create_tool(void) {
    static const hfsbi_tool row = {
        "sandbox_create",
        "Make a sandbox with other hardware",
        "Replace the sandbox by one with other hardware, such as a GPU. A "
        "sandbox on cpu-basic is there from the start: call this only when "
        "the work needs more, and choose well: what you get is not replaced "
        "again. Files of the old one are lost, so do it first. Takes minutes, "
        "and costs money by the hour; it sleeps when it is not used.",
        NULL,
        HFSBI_TOOL_RUNS,
        0,
        hfsbi_wish_params};
    return &row;
}

static hfsb_status hfsbi_session_set_plan(const hfsbi_own_call *call,
                                          const void           *args,
                                          hfsb_tool_result     *result,
                                          hfsb_err             *err) {
    hfsb_session *session = call->session;
    hfsb_status   st;
    pthread_mutex_lock(&session->lock);
    st = hfsbi_plan_set(&session->plan, args, result, err);
    pthread_mutex_unlock(&session->lock);
    return st;
}

/* Only the sandbox runtime has more than the first. */
static const hfsbi_own_tool hfsbi_own_tools[] = {
    {hfsbi_plan_tool, hfsbi_session_set_plan},
    {hfsbi_create_tool, hfsbi_session_create},
    {hfsbi_hf_jobs_tool, hfsbi_session_jobs}};

enum {
    HFSBI_OWN_TOOLS = sizeof hfsbi_own_tools / sizeof *hfsbi_own_tools,
    HFSBI_OWN_TOOLS_LOCAL = 1
};

static size_t hfsbi_own_tool_count(const hfsb_session *session) {
    return session->runtime == HFSB_RUNTIME_SANDBOX ? HFSBI_OWN_TOOLS
                                                    : HFSBI_OWN_TOOLS_LOCAL;
}

/* Fills rows, and returns their number. */
static size_t hfsbi_own_rows(const hfsb_session *session,
                             const hfsbi_tool  **rows) {
    size_t i, n = hfsbi_own_tool_count(session);
    for (i = 0; i < n; i++) rows[i] = hfsbi_own_tools[i].row();
    return n;
}

/* The session's own tool of that name, or NULL. */
static const hfsbi_own_tool *hfsbi_session_tool(const hfsb_session *session,
                                                hfsb_str            name) {
    size_t i, n = hfsbi_own_tool_count(session);
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_own_tools[i].row()->name)))
            return &hfsbi_own_tools[i];
    return NULL;
}

/* ---- where the tools work ---- */

hfsb_status hfsb_runtime_find(hfsb_str name, hfsb_runtime *out,
                              hfsb_err *err) {
    if (hfsb_str_equal(name, HFSB_LIT("local"))) {
        *out = HFSB_RUNTIME_LOCAL;
        return hfsbi_ok(err);
    }
    if (hfsb_str_equal(name, HFSB_LIT("sandbox"))) {
        *out = HFSB_RUNTIME_SANDBOX;
        return hfsbi_ok(err);
    }
    hfsbi_fail(err, HFSB_ARG, 0,
               "tool_runtime must be \"local\" or \"sandbox\", not \"");
    hfsbi_err_quote(err, name, 40);
    hfsbi_err_add(err, "\".");
    return HFSB_ARG;
}

const char *hfsb_runtime_text(hfsb_runtime runtime) {
    return runtime == HFSB_RUNTIME_SANDBOX  ? "HF sandbox"
           : runtime == HFSB_RUNTIME_REMOTE ? "remote sandbox"
                                            : "local filesystem";
}

bool hfsb_model_is_local(hfsb_str model) {
    static const char *const begin[] = {"ollama/", "vllm/", "lm_studio/",
                                        "llamacpp/"};
    size_t                   i;
    if (hfsbi_has_space(model)) return false;
    for (i = 0; i < sizeof begin / sizeof *begin; i++) {
        hfsb_str part = hfsb_cstr(begin[i]);
        if (hfsb_str_starts(model, part)) return model.len > part.len;
    }
    return false;
}

bool hfsb_session_needs_token(hfsb_runtime runtime, bool model_local) {
    return runtime == HFSB_RUNTIME_SANDBOX || !model_local;
}

/* ---- open ---- */

static hfsb_status hfsbi_session_check(const hfsb_session_opts *o,
                                       hfsb_err                *err) {
    bool local = o->model_local || hfsb_model_is_local(o->model);
    bool sandbox = o->runtime == HFSB_RUNTIME_SANDBOX;
    if (o->runtime == HFSB_RUNTIME_REMOTE && !o->connect)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "the remote runtime needs the option connect");
    if (!hfsb_session_needs_token(o->runtime, local)) return HFSB_OK;
    if (o->hub && hfsb_hub_has_token(o->hub) && (!sandbox || o->hub_token.len))
        return HFSB_OK;
    if (sandbox)
        return hfsbi_fail(err, HFSB_AUTH, 0,
                          "The sandbox runtime needs a token of the Hugging "
                          "Face Hub, since it makes a Space there: set "
                          "HF_TOKEN, or use the local runtime.");
    hfsbi_fail(err, HFSB_AUTH, 0, "The model ");
    hfsbi_err_quote(err, o->model.len ? o->model : HFSB_LIT("(none named)"),
                    80);
    hfsbi_err_add(err,
                  " needs a token of the Hugging Face Hub: set HF_TOKEN, or "
                  "use a local model (ollama/..., vllm/..., lm_studio/..., "
                  "llamacpp/...).");
    return HFSB_AUTH;
}

/* Copies the secrets: HF_TOKEN, then the caller's; with room for trackio's. */
static hfsb_status hfsbi_session_secrets(hfsb_session *s) {
    size_t n = s->spec.secret_count, all;
    if (!hfsbi_add(n, HFSBI_SESSION_SECRETS, &all)) return HFSB_LIMIT;
    s->secrets =
        (hfsb_hub_pair *)hfsbi_array(&s->alloc, all, sizeof *s->secrets);
    if (!s->secrets) return HFSB_NOMEM;
    s->secret_cap = all;
    memset(s->secrets, 0, all * sizeof *s->secrets);
    s->secrets[0].key = HFSB_LIT("HF_TOKEN");
    s->secrets[0].value = s->opts.hub_token;
    if (n) memcpy(s->secrets + 1, s->spec.secrets, n * sizeof *s->secrets);
    s->spec.secrets = s->secrets;
    s->spec.secret_count = n + 1;
    return HFSB_OK;
}

static hfsb_status hfsbi_session_copy(hfsb_session            *s,
                                      const hfsb_session_opts *o) {
    hfsb_str  **list;
    hfsb_status st;
    size_t      n = 0, i, all;
    if (o->sandbox) s->opts = *o->sandbox;
    if (o->spec) s->spec = *o->spec;
    if (!s->spec.hardware.len) s->spec.hardware = HFSB_LIT("cpu-basic");
    if (!s->spec.idle_timeout.len)
        s->spec.idle_timeout = HFSB_LIT(HFSBI_CREATE_IDLE);
    s->opts.hub = o->hub;
    s->opts.hub_token = o->hub_token;
    s->opts.session = true;
    s->opts.give_up = s->give_up;
    if (!s->opts.log) {
        s->opts.log = o->log;
        s->opts.user = o->user;
    }
    if (!s->opts.alloc.fn) s->opts.alloc = o->alloc;
    st = hfsbi_session_secrets(s);
    if (st != HFSB_OK) return st;
    all = HFSBI_SESSION_TEXTS + 3 * s->spec.secret_count;
    list = (hfsb_str **)hfsbi_array(&s->alloc, all, sizeof *list);
    if (!list) return HFSB_NOMEM;
    list[n++] = &s->opts.hub_token;
    list[n++] = &s->opts.api_token;
    list[n++] = &s->opts.space_url;
    list[n++] = &s->opts.work_dir;
    list[n++] = &s->spec.owner;
    list[n++] = &s->spec.name;
    list[n++] = &s->spec.from;
    list[n++] = &s->spec.hardware;
    list[n++] = &s->spec.image;
    list[n++] = &s->spec.timeout;
    list[n++] = &s->spec.idle_timeout;
    list[n++] = &s->spec.api;
    for (i = 0; i < s->spec.secret_count; i++) {
        list[n++] = &s->secrets[i].key;
        list[n++] = &s->secrets[i].value;
        list[n++] = &s->secrets[i].description;
    }
    st = hfsbi_keep_texts(&s->texts, list, n);
    hfsbi_array_free(&s->alloc, list, all, sizeof *list);
    return st;
}

static hfsb_status hfsbi_session_open_local(hfsb_session            *s,
                                            const hfsb_session_opts *o,
                                            hfsb_err                *err) {
    hfsb_tools_opts tools = HFSB_INIT;
    if (o->tools) tools = *o->tools;
    tools.session = true;
    if (!tools.alloc.fn) tools.alloc = o->alloc;
    return hfsb_tools_open(&tools, &s->tools, err);
}

static hfsb_status hfsbi_session_open_sandbox(hfsb_session            *s,
                                              const hfsb_session_opts *o,
                                              hfsb_err                *err) {
    hfsb_status st = hfsb_cancel_open(&s->alloc, &s->give_up, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_session_copy(s, o);
    if (st != HFSB_OK)
        return hfsbi_fail_status(err, st, "Opening the session");
    if (o->no_preload) return HFSB_OK;
    pthread_mutex_lock(&s->lock);
    st = hfsbi_session_start(s, &s->spec, true, err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void hfsbi_session_free(hfsb_session *s) {
    hfsb_alloc alloc = s->alloc;
    hfsb_tools_close(s->tools);
    hfsb_cancel_close(s->give_up);
    if (s->texts.ptr) hfsb_secret_wipe(s->texts.ptr, s->texts.len);
    hfsb_buf_free(&s->texts);
    hfsb_buf_free(&s->jobs);
    hfsbi_plan_free(&s->plan);
    hfsbi_array_free(&alloc, s->secrets, s->secret_cap, sizeof *s->secrets);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

hfsb_status hfsb_session_open(const hfsb_session_opts *opts,
                              hfsb_session **out, hfsb_err *err) {
    hfsb_session_opts none = HFSB_INIT;
    hfsb_session     *s;
    hfsb_status       st;
    *out = NULL;
    if (!opts) opts = &none;
    st = hfsbi_session_check(opts, err);
    if (st != HFSB_OK) return st;
    s = (hfsb_session *)hfsbi_array(&opts->alloc, 1, sizeof *s);
    if (!s) return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the session");
    memset(s, 0, sizeof *s);
    s->alloc = s->texts.alloc = s->plan.doc.alloc = opts->alloc;
    s->jobs.alloc = opts->alloc;
    s->runtime = opts->runtime;
    s->connect = opts->connect;
    s->log = opts->log;
    s->user = opts->user;
    s->close_ms = opts->close_ms > 0 ? opts->close_ms : 30000;
    if (s->close_ms > LLONG_MAX / 2) s->close_ms = LLONG_MAX / 2;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)hfsbi_cond_init(&s->changed);
    st = s->runtime == HFSB_RUNTIME_LOCAL
             ? hfsbi_session_open_local(s, opts, err)
             : hfsbi_session_open_sandbox(s, opts, err);
    if (st != HFSB_OK) {
        hfsbi_session_free(s);
        return st;
    }
    *out = s;
    return hfsbi_ok(err);
}

hfsb_status hfsb_session_close(hfsb_session *session, hfsb_err *err) {
    hfsb_status st;
    if (!session) return hfsbi_ok(err);
    st = hfsbi_session_end(session, err);
    hfsbi_session_free(session);
    return st;
}

hfsb_runtime hfsb_session_runtime(const hfsb_session *session) {
    return session->runtime;
}

hfsb_status hfsb_session_wait_ready(hfsb_session      *session,
                                    const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_box  *box;
    hfsb_status st;
    if (session->runtime == HFSB_RUNTIME_LOCAL) return hfsbi_ok(err);
    st = hfsbi_session_hold(session, cancel, &box, err);
    if (st != HFSB_OK) return st;
    (void)hfsbi_session_release(session, box, NULL);
    return hfsbi_ok(err);
}

/* ---- calls ---- */

static hfsb_status hfsbi_session_run_own(void *user, const void *args,
                                         hfsb_tool_result *result,
                                         hfsb_err         *err) {
    const hfsbi_own_call *call = (const hfsbi_own_call *)user;
    return call->tool->fn(call, args, result, err);
}

/* The id of the job that a call of bash starts: the caller's, else a new one.
   False when the caller's is invalid, which the sandbox refuses. */
static bool hfsbi_session_job_id(const hfsb_json_value *arguments,
                                 const hfsb_call_opts  *opts,
                                 char                   out[HFSBI_JOB_ID]) {
    const hfsb_json_value *given = hfsb_json_get(arguments, "id");
    hfsb_json_type         type = hfsb_json_type_of(given);
    hfsb_str               id = hfsb_json_str(given, HFSB_LIT(""));
    if (opts->id.ptr) id = opts->id;
    else if (type != HFSB_JSON_NULL && type != HFSB_JSON_STRING) return false;
    if (id.len >= HFSBI_JOB_ID || hfsb_str_find_byte(id, '\0') != HFSB_NPOS)
        return false;
    if (id.len) memcpy(out, id.ptr, id.len);
    out[id.len] = '\0';
    if (!id.len) hfsbi_random_hex(out, HFSBI_SESSION_JOB);
    return true;
}

/* bash in the remote runtime: the sandbox outlives the session, so the session
   remembers what may still run there. */
static hfsb_status hfsbi_session_bash(hfsb_session *session, hfsbi_box *box,
                                      const hfsb_json_value *arguments,
                                      const hfsb_call_opts  *opts,
                                      hfsb_tool_result      *result) {
    const hfsb_str name = HFSB_LIT("bash");
    bool           background = false; /* true, or "true" */
    hfsb_call_opts o = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    char           id[HFSBI_JOB_ID];
    hfsb_status    st;
    if (opts) o = *opts;
    (void)hfsb_json_arg_bool(arguments, "background", false, &background,
                             NULL);
    if (!hfsbi_session_job_id(arguments, &o, id))
        return hfsb_sandbox_call(box->sandbox, name, arguments, opts, result);
    st = hfsbi_session_note_job(session, id);
    if (st != HFSB_OK) {
        hfsbi_fail_status(&err, st, "Starting a command");
        hfsbi_result_status(result, st, &err);
        return st;
    }
    o.id = hfsb_cstr(id);
    st = hfsb_sandbox_call(box->sandbox, name, arguments, &o, result);
    if (st == HFSB_ARG || st == HFSB_REFUSED ||
        (st == HFSB_OK && !(background && result->success)))
        hfsbi_session_forget_job(session, id);
    return st;
}

static hfsb_status hfsbi_session_call_remote(hfsb_session          *session,
                                             hfsb_str               name,
                                             const hfsb_json_value *arguments,
                                             const hfsb_call_opts  *opts,
                                             hfsb_tool_result      *result) {
    hfsb_err    err = HFSB_INIT;
    hfsbi_box  *box;
    hfsb_status st =
        hfsbi_session_hold(session, opts ? opts->cancel : NULL, &box, &err);
    if (st != HFSB_OK) {
        hfsbi_result_status(result, st, &err);
        return st;
    }
    if (session->runtime == HFSB_RUNTIME_REMOTE &&
        hfsb_str_equal(name, HFSB_LIT("bash")))
        st = hfsbi_session_bash(session, box, arguments, opts, result);
    else st = hfsb_sandbox_call(box->sandbox, name, arguments, opts, result);
    (void)hfsbi_session_release(session, box, NULL);
    return st;
}

hfsb_status hfsb_session_call(hfsb_session *session, hfsb_str name,
                              const hfsb_json_value *arguments,
                              const hfsb_call_opts  *opts,
                              hfsb_tool_result      *result) {
    const hfsbi_tool *rows[HFSBI_OWN_TOOLS];
    hfsbi_own_call    own;
    hfsb_err          err = HFSB_INIT;
    own.session = session;
    own.tool = hfsbi_session_tool(session, name);
    own.arguments = arguments;
    own.cancel = opts ? opts->cancel : NULL;
    hfsbi_result_init(result, &session->alloc);
    if (own.tool)
        return hfsbi_tool_run(own.tool->row()->params, arguments,
                              opts && opts->strict, hfsbi_session_run_own,
                              &own, result);
    if (!hfsb_tools_has(name)) {
        hfsb_status st = hfsbi_tool_unknown(name, &err);
        hfsbi_result_status(result, st, &err);
        hfsbi_tools_list(rows, hfsbi_own_rows(session, rows), &result->output);
        return st;
    }
    return session->runtime == HFSB_RUNTIME_LOCAL
               ? hfsb_tools_call(session->tools, name, arguments, opts, result)
               : hfsbi_session_call_remote(session, name, arguments, opts,
                                           result);
}

hfsb_status hfsb_session_call_text(hfsb_session *session, hfsb_str name,
                                   hfsb_str              arguments,
                                   const hfsb_call_opts *opts,
                                   hfsb_tool_result     *result) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st =
        hfsbi_arguments_parse(arguments, &session->alloc, &doc, result);
    if (st != HFSB_OK) return st;
    st = hfsb_session_call(session, name, doc.root, opts, result);
    hfsb_json_free(&doc);
    return st;
}

bool hfsb_session_has(const hfsb_session *session, hfsb_str name) {
    return hfsbi_session_tool(session, name) || hfsb_tools_has(name);
}

hfsb_status hfsb_session_define(const hfsb_session *session,
                                hfsb_tools_format format, hfsb_buf *out,
                                hfsb_err *err) {
    const hfsbi_tool *rows[HFSBI_OWN_TOOLS];
    size_t            n = hfsbi_own_rows(session, rows);
    return hfsbi_tools_define(
        session->tools ? session->tools->shell.ptr : NULL,
        session->tools ? hfsb_confine_level_of(session->tools->confine)
                       : HFSB_CONFINE_NONE,
        rows, n, format, out, err);
}

/* ---- scripts for jobs ---- */

/* A job gets its script base64-encoded in one argument, which Linux limits to
   128 KiB. */
enum { HFSBI_SCRIPT_MAX = 90 * 1000 };

static hfsb_status hfsbi_script_long(hfsb_err *err) {
    return hfsbi_fail(err, HFSB_LIMIT, 0,
                      "The script is longer than 90 kB, the limit of a job: "
                      "upload it to a repository on the Hub and give its URL, "
                      "or split it and let a small script load the rest.");
}

static hfsb_status hfsbi_script_unread(hfsb_session *session, hfsb_str path,
                                       const hfsb_err *why, hfsb_err *err) {
    bool there = session->runtime != HFSB_RUNTIME_LOCAL;
    if (why->code == HFSB_LIMIT) return hfsbi_script_long(err);
    hfsbi_fail(err, why->code, 0, "The script ");
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, " cannot be read%s: %s",
                  there ? " from the sandbox" : "", why->msg);
    return why->code;
}

static hfsb_status hfsbi_script_read(hfsb_session *session, hfsb_str path,
                                     const hfsb_cancel *cancel, hfsb_buf *out,
                                     hfsb_err *why) {
    hfsbi_box  *box;
    hfsb_status st;
    if (session->runtime == HFSB_RUNTIME_LOCAL)
        return hfsb_file_read(session->tools->place, path, HFSBI_SCRIPT_MAX,
                              out, NULL, why);
    st = hfsbi_session_hold(session, cancel, &box, why);
    if (st != HFSB_OK) return st;
    st = hfsb_sandbox_get(box->sandbox, path, HFSBI_SCRIPT_MAX, cancel, out,
                          why);
    (void)hfsbi_session_release(session, box, NULL);
    return st;
}

hfsb_status hfsb_session_script(hfsb_session *session, hfsb_str script,
                                hfsb_script_kind  *kind,
                                const hfsb_cancel *cancel, hfsb_buf *out,
                                hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st;
    *kind = hfsb_script_classify(script);
    if (*kind == HFSB_SCRIPT_PATH) {
        st = hfsbi_script_read(session, script, cancel, out, &why);
        why.code = st;
        if (st != HFSB_OK)
            return hfsbi_script_unread(session, script, &why, err);
        *kind = HFSB_SCRIPT_INLINE;
        return hfsbi_ok(err);
    }
    if (script.len > HFSBI_SCRIPT_MAX) return hfsbi_script_long(err);
    st = hfsb_buf_append(out, script);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Copying a script");
}

/* ---- the plan ---- */

hfsb_status hfsb_session_plan(hfsb_session *session, hfsb_buf *out,
                              hfsb_err *err) {
    hfsb_status st;
    pthread_mutex_lock(&session->lock);
    st = hfsbi_plan_write(&session->plan, out, err);
    pthread_mutex_unlock(&session->lock);
    return st;
}

bool hfsb_session_remind(hfsb_session *session, bool called_tools,
                         hfsb_buf *out) {
    unsigned time;
    size_t   open;
    bool     reminded;
    pthread_mutex_lock(&session->lock);
    reminded = hfsbi_plan_remind(&session->plan, called_tools, out);
    open = hfsbi_plan_open(&session->plan);
    time = session->plan.reminded;
    pthread_mutex_unlock(&session->lock);
    if (reminded)
        hfsbi_session_log(session,
                          "Reminded the model of %zu open item%s of its plan "
                          "(%u of %d)",
                          open, open == 1 ? "" : "s", time,
                          HFSBI_REMIND_TIMES);
    return reminded;
}
