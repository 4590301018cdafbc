/* session_tools.c - the tools of the session itself, and the definitions of
   all. Depends on: tool_table, plan, session_preload, session_jobs. */
#include "session_parts.h"

enum { HFSBI_CREATE_SLEEP = 2700 }; /* seconds without use */

/* clang-format off */
static const hfsbi_tool hfsbi_create_row =
    {"sandbox_create", "Make a sandbox with other hardware",
     "Replace the sandbox by one with other hardware, such as a GPU. A "
     "sandbox on cpu-basic is there from the start: call this only when the "
     "work needs more, and choose well: what you get is not replaced again. "
     "Files of the old one are lost, so do it first. Takes minutes, and costs "
     "money by the hour; it sleeps when it is not used.",
     NULL,
     HFSBI_OBJECT(
         "",
         HFSBI_TYPE("hardware", "string",
                    "cpu-basic (default), cpu-upgrade, t4-small, t4-medium, "
                    "a10g-small, a10g-large, a100-large or another that the "
                    "Hub has") ","
         HFSBI_TYPE("trackio_space_id", "string",
                    "Space with the trackio dashboard, owner/name; set as "
                    "TRACKIO_SPACE_ID in the sandbox") ","
         HFSBI_TYPE("trackio_project", "string",
                    "Set as TRACKIO_PROJECT")),
     "{\"readOnlyHint\":false,\"destructiveHint\":true,"
     "\"idempotentHint\":false,\"openWorldHint\":true}",
     "hardware trackio_space_id trackio_project", false, NULL};
/* clang-format on */

/* ---- sandbox_create ---- */

/* What it is asked for. */
typedef struct hfsbi_wish {
    hfsb_str hardware; /* empty: whatever there is */
    hfsb_str space, project;
} hfsbi_wish;

static hfsb_status hfsbi_wish_read(const hfsb_json_value *arguments,
                                   hfsbi_wish *wish, hfsb_err *err) {
    hfsb_status st;
    memset(wish, 0, sizeof *wish);
    st = hfsb_json_arg_str(arguments, "hardware", false, &wish->hardware, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "trackio_space_id", false,
                               &wish->space, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "trackio_project", false,
                               &wish->project, err);
    return st;
}

/* True when a sandbox with this hardware is not what was asked for. */
static bool hfsbi_wish_differs(const hfsbi_wish *wish, hfsb_str hardware) {
    return wish->space.len || wish->project.len ||
           (wish->hardware.len && !hfsb_str_equal(wish->hardware, hardware));
}

/* Waits until this call alone may make a sandbox; a preload under way is
   waited for, or cancelled when it is not what is wanted. Under the lock;
   false when it was cancelled. */
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
            session->claimed = false;
            (void)pthread_cond_broadcast(&session->changed);
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

/* Makes it; the texts of the wish stay until it is done. Under the lock. */
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
            cancel = NULL; /* it ends soon: the Space is being deleted */
        }
    if (st == HFSB_OK && session->made != HFSB_OK) {
        st = session->made;
        if (err) *err = session->made_err;
    }
    return st;
}

/* What a model is told of the sandbox that is in use. Under the lock. */
static hfsb_status hfsbi_session_tell(hfsb_session     *session,
                                      const hfsbi_wish *wish, bool is_new,
                                      hfsb_tool_result *result) {
    const hfsbi_box *box = session->box;
    hfsb_str         id = hfsb_sandbox_id(box->sandbox);
    hfsb_str         hardware = hfsb_buf_str(&box->hardware);
    hfsb_json_writer w;
    hfsb_status      st;
    hfsb_json_writer_init(&w, &result->extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", id);
    hfsbi_put_member_str(&w, "url", hfsb_sandbox_page(box->sandbox));
    hfsbi_put_member_str(&w, "hardware", hardware);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    if (st != HFSB_OK) return st;
    if (!is_new && hfsbi_wish_differs(wish, hardware))
        return hfsbi_result_fail(result,
                                 "A sandbox is active already: %.*s on %.*s. "
                                 "It was asked for and is not replaced.",
                                 (int)id.len, id.ptr, (int)hardware.len,
                                 hardware.ptr);
    return hfsbi_result_ok(
        result, "%s: %.*s on %.*s. bash, read, write and edit work there.",
        is_new ? "Sandbox created" : "A sandbox is active already",
        (int)id.len, id.ptr, (int)hardware.len, hardware.ptr);
}

/* Gives back the one that was replaced, and tells what became of it. */
static hfsb_status hfsbi_session_leave(hfsb_session *session, hfsbi_box *old,
                                       hfsb_tool_result *result) {
    hfsb_str    id = hfsb_sandbox_id(old->sandbox);
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    if (result->success)
        st = hfsb_buf_printf(&result->output,
                             "\nIt took the place of %.*s, whose files are "
                             "lost.",
                             (int)id.len, id.ptr);
    if (hfsbi_session_release(session, old, &why) != HFSB_OK &&
        result->success && st == HFSB_OK)
        st = hfsb_buf_printf(&result->output, "\n(%s)", why.msg);
    return st;
}

static hfsb_status hfsbi_session_create(hfsb_session          *session,
                                        const hfsb_json_value *arguments,
                                        const hfsb_cancel     *cancel,
                                        hfsb_tool_result      *result,
                                        hfsb_err              *err) {
    hfsbi_wish  wish;
    hfsbi_box  *old = NULL;
    bool        make;
    hfsb_status st = hfsbi_wish_read(arguments, &wish, err), left = HFSB_OK;
    if (st != HFSB_OK) return st;
    pthread_mutex_lock(&session->lock);
    if (!hfsbi_session_claim(session, &wish, cancel)) {
        pthread_mutex_unlock(&session->lock);
        return hfsbi_fail(err, HFSB_CANCELLED, 0,
                          "Cancelled before a sandbox was made.");
    }
    make = !session->box ||
           (session->box->automatic &&
            hfsbi_wish_differs(&wish, hfsb_buf_str(&session->box->hardware)));
    if (make && session->box) {
        old = session->box;
        old->users++;
    }
    if (make) st = hfsbi_session_make(session, &wish, cancel, err);
    if (st == HFSB_OK) st = hfsbi_session_tell(session, &wish, make, result);
    session->claimed = false;
    (void)pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    if (old) left = hfsbi_session_leave(session, old, result);
    return st == HFSB_OK ? left : st;
}

/* ---- the tools of the session ---- */

static const hfsbi_tool *hfsbi_create_tool(void) {
    return &hfsbi_create_row;
}

static hfsb_status hfsbi_session_set_plan(hfsb_session          *session,
                                          const hfsb_json_value *arguments,
                                          const hfsb_cancel     *cancel,
                                          hfsb_tool_result      *result,
                                          hfsb_err              *err) {
    hfsb_status st;
    (void)cancel;
    pthread_mutex_lock(&session->lock);
    st = hfsbi_plan_set(&session->plan, arguments, result, err);
    pthread_mutex_unlock(&session->lock);
    return st;
}

/* The local runtime has only the first. */
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

HFSBI_FN const hfsbi_own_tool *hfsbi_session_tool(const hfsb_session *session,
                                                  hfsb_str            name) {
    size_t i, n = hfsbi_own_tool_count(session);
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_own_tools[i].row()->name)))
            return &hfsbi_own_tools[i];
    return NULL;
}

hfsb_status hfsb_session_define(const hfsb_session *session,
                                hfsb_tools_format format, hfsb_buf *out,
                                hfsb_err *err) {
    hfsbi_tool rows[HFSBI_OWN_TOOLS];
    size_t     i, n = hfsbi_own_tool_count(session);
    for (i = 0; i < n; i++) rows[i] = *hfsbi_own_tools[i].row();
    return hfsbi_tools_define(session->runtime == HFSB_RUNTIME_SANDBOX, rows,
                              n, format, out, err);
}
