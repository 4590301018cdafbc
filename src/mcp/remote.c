/* remote.c - tools of a session, which run in its remote sandbox.

   A remote call blocks, so it runs in a thread. A command is a job whose id is
   chosen here, so that the wait for it can end at any time:

       the deadline passes   the command goes on; the answer is its output so
                             far, and the id to ask for the rest
       cancelled             the command is killed
       the server stops      nothing: the sandbox ends with its session, or
                             the session kills the command when it is closed

   The thread notices all three by call->cancel, and hfsbi_mcp_call_stop()
   returns which one it was. The cancel is reset for the calls that follow. */
#include "mcp_private.h"

#ifdef HFSB_HUB

enum {
    HFSBI_MCP_REMOTE_ID = 8
}; /* hex digits of a job id: models retype it */

/* Resets the cancel for another call, if the last one stopped for this reason.
   False when the reason has changed: the cancel is set again then. */
static bool hfsbi_mcp_remote_resume(hfsb_mcp_call *call, hfsbi_mcp_stop why) {
    if (hfsbi_mcp_call_stop(call) != why) return false;
    hfsb_cancel_reset(&call->cancel);
    /* a stop between the two lines was reset, but is seen here */
    return hfsbi_mcp_call_stop(call) == why;
}

static long long hfsbi_mcp_remote_seconds(const hfsb_mcp_call *call) {
    return (hfsb_clock_ms() - call->started) / 1000;
}

/* ---- calls of the session ---- */

static hfsb_status hfsbi_mcp_remote_call(hfsb_mcp_call *call, hfsb_str tool,
                                         const hfsb_json_value *arguments,
                                         hfsb_tool_result      *result) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.strict = opts.images = true;
    opts.page = call->mcp->limits.page;
    if (hfsb_str_equal(tool, HFSB_LIT("bash"))) {
        opts.on_text = hfsbi_mcp_call_printed;
        opts.user = call;
    }
    opts.cancel = &call->cancel;
    return hfsb_session_call(call->mcp->remote.session, tool, arguments, &opts,
                             result);
}

/* Copies arguments into *out with one key replaced: by a text, or by 0 when
   text is NULL. HFSB_OK, HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_remote_replace(const hfsb_json_value *arguments,
                                            const char *key, const char *text,
                                            const hfsb_alloc *alloc,
                                            hfsb_json_doc    *out) {
    hfsb_json_iter it = hfsb_json_begin(arguments);
    hfsbi_build    copy;
    hfsb_status    st;
    out->alloc = *alloc;
    hfsbi_build_init(&copy, alloc);
    hfsbi_build_object(&copy, NULL);
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, hfsb_cstr(key))) continue;
        hfsbi_build_key(&copy, it.key);
        hfsbi_build_value(&copy, NULL, it.value);
    }
    if (text) hfsbi_build_str(&copy, key, hfsb_cstr(text));
    else hfsbi_build_int(&copy, key, 0);
    hfsbi_build_end(&copy);
    st = hfsbi_build_finish(&copy, out);
    hfsbi_build_free(&copy);
    return st;
}

/* Calls a tool about a job, without waiting for output. *result must be freed
   in any case. */
static hfsb_status hfsbi_mcp_remote_ask(hfsb_mcp_call *call, const char *tool,
                                        const char       *job,
                                        hfsb_tool_result *result) {
    const hfsb_alloc *alloc = &call->mcp->alloc;
    hfsb_json_doc     by_id = HFSB_INIT, at_once = HFSB_INIT;
    bool              kill = strcmp(tool, "kill") == 0;
    hfsb_status st = hfsbi_mcp_remote_replace(NULL, "id", job, alloc, &by_id);
    memset(result, 0, sizeof *result);
    if (st == HFSB_OK && !kill)
        st = hfsbi_mcp_remote_replace(by_id.root, "wait_ms", NULL, alloc,
                                      &at_once);
    if (st == HFSB_OK)
        st = hfsbi_mcp_remote_call(call, hfsb_cstr(tool),
                                   kill ? by_id.root : at_once.root, result);
    hfsb_json_free(&at_once);
    hfsb_json_free(&by_id);
    return st;
}

/* ---- results ---- */

/* Reports that the Hub did not answer: a job costs money and must not start
   twice. */
static void hfsbi_mcp_remote_no_hub(hfsb_mcp_call *call, long long seconds) {
    hfsb_str operation = hfsbi_json_get_str(call->ask.arguments, "operation");
    bool     starts = hfsb_str_equal(operation, HFSB_LIT("run"));
    hfsb_mcp_fail(call, "The Hugging Face Hub did not answer within %lld s%s",
                  seconds,
                  starts ? "; it is not known whether the job was started. "
                           "Look with operation ps before you repeat it."
                         : ".");
}

/* Shows a result, or what there is of a call that was stopped early. */
static void hfsbi_mcp_remote_show(hfsb_mcp_call *call, hfsb_status st,
                                  const hfsb_tool_result *result) {
    long long seconds = hfsbi_mcp_remote_seconds(call);
    bool      nothing = st == HFSB_CANCELLED && !result->output.len;
    if (st == HFSB_NOMEM) call->blocks.status = HFSB_NOMEM;
    else if (nothing && hfsbi_mcp_call_is(call, "hf_jobs"))
        hfsbi_mcp_remote_no_hub(call, seconds);
    else if (nothing)
        hfsb_mcp_fail(call, "The sandbox did not answer within %lld s. %s",
                      seconds, result->error.len ? result->error.ptr : "");
    else hfsbi_mcp_show(call->ask.tool, result, &call->blocks);
}

static void hfsbi_mcp_remote_plain(hfsb_mcp_call         *call,
                                   const hfsb_json_value *arguments) {
    hfsb_tool_result result;
    hfsb_status      st =
        hfsbi_mcp_remote_call(call, call->ask.tool, arguments, &result);
    hfsbi_mcp_remote_show(call, st, &result);
    hfsb_tool_result_free(&result);
}

/* bash_output may wait for output. At the deadline it is called again without
   waiting. */
static void hfsbi_mcp_remote_output(hfsb_mcp_call *call) {
    const hfsb_json_value *arguments = call->ask.arguments;
    hfsb_tool_result       result;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_status            st =
        hfsbi_mcp_remote_call(call, call->ask.tool, arguments, &result);
    if (st == HFSB_CANCELLED &&
        hfsbi_mcp_remote_resume(call, HFSBI_MCP_CALL_TIMED_OUT)) {
        st = hfsbi_mcp_remote_replace(arguments, "wait_ms", NULL,
                                      &call->mcp->alloc, &doc);
        if (st == HFSB_OK) hfsbi_mcp_remote_plain(call, doc.root);
        else call->blocks.status = HFSB_NOMEM;
        hfsb_json_free(&doc);
    } else {
        hfsbi_mcp_remote_show(call, st, &result);
    }
    hfsb_tool_result_free(&result);
}

/* ---- bash ---- */

/* Answers for a command that continues as a job. */
static void hfsbi_mcp_remote_running(hfsb_mcp_call *call, const char *job) {
    long long        seconds = hfsbi_mcp_remote_seconds(call);
    hfsb_tool_result so_far;
    hfsb_status st = hfsbi_mcp_remote_ask(call, "bash_output", job, &so_far);
    if (st == HFSB_NOMEM) call->blocks.status = HFSB_NOMEM;
    else if (st == HFSB_OK && so_far.success)
        hfsbi_mcp_show_running(hfsb_cstr(job), seconds, &so_far,
                               &call->blocks);
    else
        hfsb_mcp_fail(call,
                      "The sandbox did not answer within %lld s; it is not "
                      "known whether the command runs. Ask for job %s with "
                      "bash_output before you repeat it. (%s)",
                      seconds, job, so_far.error.len ? so_far.error.ptr : "");
    hfsb_tool_result_free(&so_far);
}

/* Chooses the id of the job: that of the model, else a new one. False when the
   model's id is invalid; the sandbox refuses it with a reason. */
static bool hfsbi_mcp_remote_job(const hfsb_json_value *arguments,
                                 char                   job[HFSBI_JOB_ID]) {
    const hfsb_json_value *given = hfsb_json_get(arguments, "id");
    hfsb_str               id = hfsb_json_str(given, HFSB_LIT(""));
    hfsb_json_type         type = hfsb_json_type_of(given);
    if (type != HFSB_JSON_NULL && type != HFSB_JSON_STRING) return false;
    if (id.len >= HFSBI_JOB_ID || hfsb_str_find_byte(id, '\0') != HFSB_NPOS)
        return false;
    memcpy(job, id.ptr, id.len);
    job[id.len] = '\0';
    if (!id.len) hfsbi_random_hex(job, HFSBI_MCP_REMOTE_ID);
    return true;
}

static void hfsbi_mcp_remote_bash(hfsb_mcp_call *call) {
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result, killed;
    hfsb_status      st;
    char             job[HFSBI_JOB_ID];
    if (!hfsbi_mcp_remote_job(call->ask.arguments, job)) {
        hfsbi_mcp_remote_plain(call, call->ask.arguments);
        return;
    }
    st = hfsbi_mcp_remote_replace(call->ask.arguments, "id", job,
                                  &call->mcp->alloc, &doc);
    if (st != HFSB_OK) {
        call->blocks.status = HFSB_NOMEM;
        return;
    }
    st = hfsbi_mcp_remote_call(call, call->ask.tool, doc.root, &result);
    if (st != HFSB_CANCELLED) hfsbi_mcp_remote_show(call, st, &result);
    else if (hfsbi_mcp_remote_resume(call, HFSBI_MCP_CALL_TIMED_OUT))
        hfsbi_mcp_remote_running(call, job);
    if (st == HFSB_CANCELLED &&
        hfsbi_mcp_remote_resume(call, HFSBI_MCP_CALL_CANCELLED)) {
        (void)hfsbi_mcp_remote_ask(call, "kill", job, &killed);
        hfsb_tool_result_free(&killed);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&doc);
}

/* ---- hooks ---- */

/* Waits for the sandbox; false when the call was answered with a failure. */
static bool hfsbi_mcp_remote_ready(hfsb_mcp_call *call) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = hfsb_session_wait_ready(call->mcp->remote.session,
                                             &call->cancel, &err);
    if (st == HFSB_OK) return true;
    if (st == HFSB_CANCELLED)
        hfsb_mcp_fail(call, "The sandbox is still starting, which can take "
                            "minutes; nothing was run. Call again.");
    else hfsb_mcp_fail(call, "%s", err.msg);
    return false;
}

/* Runs a call, in its thread. The first three tools need no sandbox. */
static void hfsbi_mcp_remote_run(hfsb_mcp_call *call) {
    if (hfsbi_mcp_call_is(call, "plan_tool") ||
        hfsbi_mcp_call_is(call, "sandbox_create") ||
        hfsbi_mcp_call_is(call, "hf_jobs"))
        hfsbi_mcp_remote_plain(call, call->ask.arguments);
    else if (!hfsbi_mcp_remote_ready(call)) return;
    else if (hfsbi_mcp_call_is(call, "bash")) hfsbi_mcp_remote_bash(call);
    else if (hfsbi_mcp_call_is(call, "bash_output"))
        hfsbi_mcp_remote_output(call);
    else hfsbi_mcp_remote_plain(call, call->ask.arguments);
}

/* Cancelling sandbox_create would delete the sandbox, so it continues. */
static bool hfsbi_mcp_remote_on_deadline(hfsb_mcp_call    *call,
                                         hfsbi_mcp_blocks *out) {
    if (!hfsbi_mcp_call_is(call, "sandbox_create")) return false;
    hfsbi_mcp_add_text(
        out, HFSB_LIT("The sandbox is still being made, which can take "
                      "minutes. Other calls wait for it; or call "
                      "sandbox_create again with the same arguments to wait "
                      "for it."));
    return true;
}

static const char hfsbi_mcp_remote_elsewhere[] =
    "The tools work in a sandbox on another machine than the user's: files, "
    "paths and commands are those of that machine. Commands that still run "
    "when the session ends are killed.";

static const char hfsbi_mcp_remote_instructions[] =
    "The tools work in a sandbox: a private Space of the Hugging Face Hub, a "
    "Linux machine of its own, not the user's. It is started when the session "
    "begins, which takes a minute or more, and deleted with all its files "
    "when the session ends: push what is to be kept to the Hub.";

hfsb_status hfsb_mcp_use_session(hfsb_mcp *mcp, hfsb_session *session,
                                 hfsb_err *err) {
    hfsb_buf     all = HFSB_INIT;
    hfsb_runtime runtime = hfsb_session_runtime(session);
    hfsb_status  st;
    if (runtime == HFSB_RUNTIME_LOCAL)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A session of the local runtime has the tools of "
                          "this machine, which are offered without one.");
    all.alloc = mcp->alloc;
    st = hfsb_session_define(session, HFSB_TOOLS_MCP, &all, err);
    if (st == HFSB_OK) st = hfsbi_mcp_define_requested(false, &all, err);
    if (st == HFSB_OK)
        st = hfsbi_mcp_list_choose(&mcp->list, hfsb_buf_str(&all),
                                   hfsb_buf_str(&mcp->only), err);
    hfsb_buf_free(&all);
    if (st != HFSB_OK) return st;
    st = hfsbi_mcp_instruct(mcp,
                            hfsb_cstr(runtime == HFSB_RUNTIME_REMOTE
                                          ? hfsbi_mcp_remote_elsewhere
                                          : hfsbi_mcp_remote_instructions));
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Using the session");
    mcp->remote.session = session;
    mcp->remote.run = hfsbi_mcp_remote_run;
    mcp->remote.on_deadline = hfsbi_mcp_remote_on_deadline;
    return hfsbi_ok(err);
}

#endif /* HFSB_HUB */
