/* remote.c - the tools of a session, which work in a sandbox: its
   calls, in threads. */
#include "mcp_private.h"

/*  A command there is a job with an id that we choose, so that the waiting for
    it can end at any time:

        patience ends    it goes on; the answer is its output so far, and its
                         id to ask for the rest
        abandoned        it is killed
        the server ends  nothing: the sandbox ends with its session */

enum { HFSBI_AFAR_ID = 9 }; /* of a job, with its NUL: models write it */

static hfsbi_mcp_end hfsbi_afar_end(hfsb_mcp_call *call) {
    hfsbi_mcp_end end;
    pthread_mutex_lock(&call->lock);
    end = call->end;
    pthread_mutex_unlock(&call->lock);
    return end;
}

/* Makes the cancel good for another call, when the last one was ended for this
   reason; false when there is a newer one by now. */
static bool hfsbi_afar_again(hfsb_mcp_call *call, hfsbi_mcp_end why) {
    if (hfsbi_afar_end(call) != why) return false;
    hfsb_cancel_reset(call->cancel); /* what comes now is seen below */
    return hfsbi_afar_end(call) == why;
}

static bool hfsbi_afar_is(const hfsb_mcp_call *call, const char *tool) {
    return hfsb_str_equal(call->tool, hfsb_cstr(tool));
}

/* A failure in words for the model. */
static void hfsbi_afar_fail(hfsb_mcp_call *call, const char *format, ...)
    HFSBI_PRINTF(2, 3);
static void hfsbi_afar_fail(hfsb_mcp_call *call, const char *format, ...) {
    hfsb_buf    text = HFSB_INIT;
    va_list     ap;
    hfsb_status st;
    text.alloc = call->mcp->alloc;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(&text, format, ap);
    va_end(ap);
    call->blocks.is_error = true;
    if (st == HFSB_OK) hfsbi_mcp_add_text(&call->blocks, hfsb_buf_str(&text));
    else call->blocks.status = HFSB_NOMEM;
    hfsb_buf_free(&text);
}

/* ---- calls of the session ---- */

static void hfsbi_afar_text(void *user, hfsb_proc_stream stream,
                            hfsb_str text) {
    (void)stream;
    hfsbi_mcp_call_text((hfsb_mcp_call *)user, text);
}

static hfsb_status hfsbi_afar_call(hfsb_mcp_call *call, const char *tool,
                                   const hfsb_json_value *arguments,
                                   hfsb_tool_result      *result) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.strict = opts.images = true;
    if (strcmp(tool, "bash") == 0) {
        opts.on_text = hfsbi_afar_text;
        opts.user = call;
    }
    return hfsb_session_call(call->mcp->remote, hfsb_cstr(tool), arguments,
                             &opts, call->cancel, result);
}

/* Arguments, but for one key, which becomes a text, or 0 when that is NULL. */
static hfsb_status hfsbi_afar_with(const hfsb_json_value *arguments,
                                   const char *key, const char *text,
                                   const hfsb_alloc *alloc,
                                   hfsb_json_doc    *out) {
    hfsb_json_iter   it = hfsb_json_begin(arguments);
    hfsb_buf         json = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    json.alloc = out->alloc = *alloc;
    hfsb_json_writer_init(&w, &json, NULL);
    hfsb_json_put_object(&w);
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, hfsb_cstr(key))) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    if (text) hfsbi_put_member_str(&w, key, hfsb_cstr(text));
    else hfsbi_put_member_int(&w, key, 0);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK)
        st = hfsb_json_parse(hfsb_buf_str(&json), NULL, out, NULL);
    hfsb_buf_free(&json);
    return st;
}

/* A call about the job of this one. */
static hfsb_status hfsbi_afar_ask(hfsb_mcp_call *call, const char *tool,
                                  hfsb_tool_result *result) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st =
        hfsbi_afar_with(NULL, "id", call->job, &call->mcp->alloc, &doc);
    memset(result, 0, sizeof *result);
    if (st != HFSB_OK) return st;
    st = hfsbi_afar_call(call, tool, doc.root, result);
    hfsb_json_free(&doc);
    return st;
}

/* ---- what a call becomes ---- */

/* What costs money is not to be begun twice. */
static void hfsbi_afar_no_hub(hfsb_mcp_call *call, long long seconds) {
    hfsb_str operation = hfsb_json_str(
        hfsb_json_get(call->arguments, "operation"), HFSB_LIT(""));
    if (hfsb_str_equal(operation, HFSB_LIT("run")))
        hfsbi_afar_fail(call,
                        "The Hugging Face Hub did not answer within %lld s, "
                        "so that it is not known whether the job was "
                        "started. Look with operation ps before you repeat "
                        "it.",
                        seconds);
    else
        hfsbi_afar_fail(call,
                        "The Hugging Face Hub did not answer within %lld s.",
                        seconds);
}

/* Shows a result; of a call that was ended early what there is of it. */
static void hfsbi_afar_show(hfsb_mcp_call *call, hfsb_status st,
                            const hfsb_tool_result *result) {
    long long seconds = (hfsb_clock_ms() - call->began) / 1000;
    if (st == HFSB_NOMEM) call->blocks.status = HFSB_NOMEM;
    else if (st == HFSB_CANCELLED && hfsbi_afar_is(call, "hf_jobs") &&
             !result->output.len)
        hfsbi_afar_no_hub(call, seconds);
    else if (st == HFSB_CANCELLED && !result->output.len)
        hfsbi_afar_fail(call,
                        "There was no answer from the sandbox within %lld s. "
                        "%s",
                        seconds, result->error.len ? result->error.ptr : "");
    else hfsbi_mcp_show(call->tool, result, &call->blocks);
}

static void hfsbi_afar_plain(hfsb_mcp_call         *call,
                             const hfsb_json_value *arguments) {
    char             name[65];
    hfsb_tool_result result;
    hfsb_status      st;
    if (call->tool.len >= sizeof name) return; /* there is no such tool */
    memcpy(name, call->tool.ptr, call->tool.len);
    name[call->tool.len] = '\0';
    st = hfsbi_afar_call(call, name, arguments, &result);
    hfsbi_afar_show(call, st, &result);
    hfsb_tool_result_free(&result);
}

/* bash_output may be asked to wait: then it is asked again, not to. */
static void hfsbi_afar_output(hfsb_mcp_call *call) {
    hfsb_tool_result result;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_status      st =
        hfsbi_afar_call(call, "bash_output", call->arguments, &result);
    if (st == HFSB_CANCELLED && hfsbi_afar_again(call, HFSBI_MCP_PATIENCE)) {
        st = hfsbi_afar_with(call->arguments, "wait_ms", NULL,
                             &call->mcp->alloc, &doc);
        if (st == HFSB_OK) hfsbi_afar_plain(call, doc.root);
        else call->blocks.status = HFSB_NOMEM;
        hfsb_json_free(&doc);
    } else {
        hfsbi_afar_show(call, st, &result);
    }
    hfsb_tool_result_free(&result);
}

static void hfsbi_afar_running(hfsb_mcp_call *call) {
    long long        seconds = (hfsb_clock_ms() - call->began) / 1000;
    hfsb_tool_result so_far;
    hfsb_status      st = hfsbi_afar_ask(call, "bash_output", &so_far);
    if (st == HFSB_NOMEM) call->blocks.status = HFSB_NOMEM;
    else if (st == HFSB_OK && so_far.success)
        hfsbi_mcp_show_running(hfsb_cstr(call->job), seconds, &so_far,
                               &call->blocks);
    else
        hfsbi_afar_fail(call,
                        "There was no answer from the sandbox within %lld s, "
                        "so that it is not known whether the command runs. "
                        "Ask for job %s with bash_output before you repeat "
                        "it. (%s)",
                        seconds, call->job,
                        so_far.error.len ? so_far.error.ptr : "");
    hfsb_tool_result_free(&so_far);
}

/* A command whose waiting ended early. */
static void hfsbi_afar_left(hfsb_mcp_call *call) {
    hfsb_tool_result killed;
    if (hfsbi_afar_again(call, HFSBI_MCP_PATIENCE)) hfsbi_afar_running(call);
    if (!hfsbi_afar_again(call, HFSBI_MCP_ABANDONED)) return;
    (void)hfsbi_afar_ask(call, "kill", &killed);
    hfsb_tool_result_free(&killed);
}

/* The id of its job: what the model gave, else one of ours. False when what it
   gave is none; the sandbox says why. */
static bool hfsbi_afar_name(hfsb_mcp_call *call) {
    const hfsb_json_value *given = hfsb_json_get(call->arguments, "id");
    hfsb_str               id = hfsb_json_str(given, HFSB_LIT(""));
    char                   random[17];
    if (id.len) {
        if (id.len >= sizeof call->job ||
            hfsb_str_find_byte(id, '\0') != HFSB_NPOS)
            return false;
        memcpy(call->job, id.ptr, id.len);
        call->job[id.len] = '\0';
        return true;
    }
    if (given && hfsb_json_type_of(given) != HFSB_JSON_NULL &&
        hfsb_json_type_of(given) != HFSB_JSON_STRING)
        return false;
    hfsbi_random_hex(random, sizeof random - 1);
    memcpy(call->job, random, HFSBI_AFAR_ID - 1);
    call->job[HFSBI_AFAR_ID - 1] = '\0';
    return true;
}

static void hfsbi_afar_bash(hfsb_mcp_call *call) {
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result;
    hfsb_status      st;
    if (!hfsbi_afar_name(call)) {
        hfsbi_afar_plain(call, call->arguments);
        return;
    }
    st = hfsbi_afar_with(call->arguments, "id", call->job, &call->mcp->alloc,
                         &doc);
    if (st != HFSB_OK) {
        call->blocks.status = HFSB_NOMEM;
        return;
    }
    st = hfsbi_afar_call(call, "bash", doc.root, &result);
    if (st == HFSB_CANCELLED) hfsbi_afar_left(call);
    else hfsbi_afar_show(call, st, &result);
    hfsb_tool_result_free(&result);
    hfsb_json_free(&doc);
}

/* True once there is a sandbox; else what is the matter was said. */
static bool hfsbi_afar_ready(hfsb_mcp_call *call) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st =
        hfsb_session_wait_ready(call->mcp->remote, call->cancel, &err);
    if (st == HFSB_OK) return true;
    if (st == HFSB_CANCELLED)
        hfsbi_afar_fail(call, "The sandbox is still starting, which can take "
                              "minutes; nothing was run. Call again.");
    else hfsbi_afar_fail(call, "%s", err.msg);
    return false;
}

/* In a thread. */
static void hfsbi_mcp_run_remote(hfsb_mcp_call *call) {
    if (hfsbi_afar_is(call, "plan_tool") ||
        hfsbi_afar_is(call, "sandbox_create") ||
        hfsbi_afar_is(call, "hf_jobs")) /* it may need none */
        hfsbi_afar_plain(call, call->arguments);
    else if (!hfsbi_afar_ready(call)) return;
    else if (hfsbi_afar_is(call, "bash")) hfsbi_afar_bash(call);
    else if (hfsbi_afar_is(call, "bash_output")) hfsbi_afar_output(call);
    else hfsbi_afar_plain(call, call->arguments);
}

/* In the loop. To end a sandbox_create would delete what it is making, so it
   goes on without its client. */
static bool hfsbi_mcp_late_remote(hfsb_mcp_call *call, hfsbi_mcp_blocks *out) {
    if (!hfsbi_afar_is(call, "sandbox_create")) return false;
    hfsbi_mcp_add_text(
        out, HFSB_LIT("The sandbox is still being made, which can take "
                      "minutes. Other calls wait for it; or call "
                      "sandbox_create again with the same arguments to wait "
                      "for it."));
    return true;
}

/* ---- setting it up ---- */

static const char hfsbi_afar_words[] =
    "The tools work in a sandbox: a private Space of the Hugging Face Hub, a "
    "Linux machine of its own, not the user's. It is started when the session "
    "begins, which takes a minute or more, and deleted with all its files "
    "when "
    "the session ends: push what is to be kept to the Hub.";

hfsb_status hfsb_mcp_use_session(hfsb_mcp *mcp, hfsb_session *session,
                                 hfsb_err *err) {
    hfsb_buf    all = HFSB_INIT;
    hfsb_status st;
    if (hfsb_session_runtime(session) != HFSB_RUNTIME_SANDBOX)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A session of the local runtime has the tools of "
                          "this machine, which are offered without one.");
    all.alloc = mcp->alloc;
    st = hfsb_session_define(session, HFSB_TOOLS_MCP, &all, err);
    if (st == HFSB_OK) st = hfsbi_mcp_offer(mcp, hfsb_buf_str(&all), err);
    hfsb_buf_free(&all);
    if (st != HFSB_OK) return st;
    st = hfsbi_mcp_instruct(mcp, hfsb_cstr(hfsbi_afar_words));
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Using the session");
    mcp->remote = session;
    mcp->run_remote = hfsbi_mcp_run_remote;
    mcp->late_remote = hfsbi_mcp_late_remote;
    return hfsbi_ok(err);
}
