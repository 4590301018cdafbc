/* reset.c - POST /reset: makes a server ready for its next user.

     KILLING    the kill tool asks every command to end, with its grace
     SWEEPING   processes left running are killed, until none is found
     RESTORING  in a pool thread: the first checkpoint, or empty roots
     the reply

   A command that is started meanwhile is killed too, or sees the files of
   before or after. Output of commands, addresses of /open and the plan are
   forgotten; the journal stays.

   A client that goes away changes nothing: half a reset would leave the next
   user with files of the last one. Only the end of the server aborts it,
   before RESTORING. */
#include "api_private.h"

enum {
    HFSBI_RESET_SWEEPS = 200, /* of a process that forks all the time */
    HFSBI_RESET_PAUSE = 5     /* ms between two */
};

typedef enum hfsbi_reset_state {
    HFSBI_RESET_KILLING,
    HFSBI_RESET_SWEEPING,
    HFSBI_RESET_RESTORING
} hfsbi_reset_state;

struct hfsbi_reset {
    hfsbi_task        task; /* first: its functions cast it back */
    hfsbi_reset      *next; /* in api->resets */
    hfsbi_api        *api;
    hfsb_request     *request; /* NULL: its client is gone */
    hfsbi_reset_state state;
    bool              empty; /* remove all files */
    hfsb_call        *kill;
    hfsbi_timer       timer;
    int               sweeps;
    hfsb_buf          reply;
    hfsb_status       status;
};

static void hfsbi_reset_free(hfsbi_reset *x) {
    hfsb_alloc    alloc = x->api->alloc;
    hfsbi_reset **link = &x->api->resets;
    while (*link && *link != x) link = &(*link)->next;
    if (*link) *link = x->next;
    hfsbi_loop_timer_clear(x->api->loop, &x->timer);
    hfsb_call_close(x->kill);
    hfsb_buf_free(&x->reply);
    hfsbi_array_free(&alloc, x, 1, sizeof *x);
}

/* ---- RESTORING ---- */

static void hfsbi_reset_undo(hfsbi_reset *x, hfsb_tool_result *result) {
    x->status = hfsb_tools_call_text(
        x->api->tools, HFSB_LIT("undo"),
        HFSB_LIT("{\"to\":\"first\",\"force\":true}"), NULL, result);
}

/* Removes all that is in the roots, as far as possible. */
static void hfsbi_reset_empty(hfsbi_reset *x, hfsb_tool_result *result) {
    const hfsb_root   *root = x->api->tools->place;
    hfsbi_remove_opts  opts = HFSB_INIT;
    hfsb_err           err = HFSB_INIT, first = HFSB_INIT;
    long long          began = hfsb_clock_ms();
    unsigned long long all = 0, removed;
    opts.tree = opts.force = true;
    hfsbi_result_init(result, &x->api->alloc);
    for (; root; root = hfsb_root_next(root)) {
        hfsb_status st = hfsbi_path_remove_all(
            x->api->tools->place, hfsb_root_path(root), &opts, &removed, &err);
        if (st != HFSB_OK && first.code == HFSB_OK) first = err;
        all += removed;
    }
    result->success = first.code == HFSB_OK;
    hfsb_buf_printf(&result->output, "Removed %llu file(s) and folder(s).",
                    all);
    hfsb_buf_append(&result->error, hfsb_cstr(first.msg));
    x->status = result->output.status;
    if (x->status == HFSB_OK) x->status = result->error.status;
    hfsbi_api_report(x->api->tools, "reset", HFSB_LIT(""), "",
                     hfsb_buf_str(&result->error), began, 0);
}

static void hfsbi_reset_run(hfsbi_task *task) {
    hfsbi_reset     *x = (hfsbi_reset *)(void *)task;
    hfsb_tool_result result;
    if (x->empty) hfsbi_reset_empty(x, &result);
    else hfsbi_reset_undo(x, &result);
    if (x->status == HFSB_OK)
        x->status = hfsb_tool_result_write(&result, &x->reply, NULL);
    hfsb_tool_result_free(&result);
}

/* Forgets what the last user has left here. Called at the start and at the
   end: an agent may send more of it while its commands are being ended. */
static void hfsbi_reset_forget(hfsbi_api *api) {
    hfsbi_open_forget(api);
    hfsbi_plan_free(&hfsbi_server_group(api->server)->plan);
}

static void hfsbi_reset_ran(hfsbi_task *task) {
    hfsbi_reset *x = (hfsbi_reset *)(void *)task;
    hfsbi_reset_forget(x->api);
    if (x->request && x->status == HFSB_OK)
        hfsbi_reply_take(x->request, 200, "application/json", &x->reply);
    else if (x->request) hfsb_reply_error(x->request, 503, "Out of memory.");
    hfsbi_reset_free(x);
}

/* ---- KILLING, SWEEPING ---- */

static void hfsbi_reset_sweep(hfsbi_timer *timer) {
    hfsbi_reset *x =
        (hfsbi_reset *)(void *)((char *)timer - offsetof(hfsbi_reset, timer));
    hfsb_call_close(x->kill); /* it refers to jobs */
    x->kill = NULL;
    if (hfsbi_tools_end_all(x->api->tools) &&
        x->sweeps++ < HFSBI_RESET_SWEEPS) {
        hfsbi_loop_timer(x->api->loop, timer,
                         hfsb_clock_ms() + HFSBI_RESET_PAUSE);
        return;
    }
    x->state = HFSBI_RESET_RESTORING;
    x->task.rights = x->api->tools->rights;
    hfsbi_loop_work(x->api->loop, &x->task);
}

static void hfsbi_reset_look(void *user) {
    hfsbi_reset *x = (hfsbi_reset *)user;
    if (x->state != HFSBI_RESET_KILLING || !hfsb_call_done(x->kill)) return;
    x->state = HFSBI_RESET_SWEEPING;
    hfsbi_loop_timer(x->api->loop, &x->timer, hfsb_clock_ms());
}

static void hfsbi_reset_gone(void *user, hfsb_request *request) {
    hfsbi_reset *x = (hfsbi_reset *)user;
    (void)request;
    x->request = NULL;
}

HFSBI_FN void hfsbi_resets_end(hfsbi_api *api) {
    hfsbi_reset *x = api->resets, *next;
    for (; x; x = next) {
        next = x->next;
        if (!x->request && x->state != HFSBI_RESET_RESTORING)
            hfsbi_reset_free(x);
    }
}

/* ---- the request ---- */

/* Reads the body, if there is one; false when that was refused. */
static bool hfsbi_reset_read(hfsb_request *request, const hfsb_alloc *alloc,
                             bool *empty) {
    hfsb_str       body = hfsb_request_body(request);
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_err       err = HFSB_INIT;
    bool           ok = true;
    if (!body.len) return true;
    if (!hfsbi_request_is_json(request)) {
        hfsb_reply_error(request, 415,
                         "The body must be JSON, with Content-Type: "
                         "application/json.");
        return false;
    }
    doc.alloc = *alloc;
    if (hfsb_json_parse(body, NULL, &doc, &err) != HFSB_OK) {
        hfsb_reply_error(request, err.code == HFSB_NOMEM ? 503 : 422, "%s",
                         err.msg);
        return false;
    }
    it = hfsb_json_begin(doc.root);
    ok = hfsb_json_type_of(doc.root) == HFSB_JSON_OBJECT;
    while (ok && hfsb_json_next(&it)) {
        ok = hfsb_str_equal(it.key, HFSB_LIT("empty")) &&
             hfsb_json_type_of(it.value) == HFSB_JSON_BOOL;
        *empty = hfsb_json_bool(it.value, false);
    }
    if (!ok)
        hfsb_reply_error(request, 422,
                         "Send nothing, {}, or {\"empty\":true}.");
    hfsb_json_free(&doc);
    return ok;
}

/* False when it was refused. */
static bool hfsbi_reset_is_possible(const hfsb_tools *tools, bool empty,
                                    hfsb_request *request) {
    if (empty && !hfsb_root_path(tools->place).len)
        hfsb_reply_error(request, 409,
                         "There is no folder to empty: start the server with "
                         "--root DIR.");
    else if (!empty && !tools->history)
        hfsb_reply_error(request, 409,
                         "There are no checkpoints: start the server with "
                         "--root DIR --checkpoints on, or send "
                         "{\"empty\":true} to remove all files in its "
                         "roots.");
    else return true;
    return false;
}

/* Makes the object and the call of kill; NULL without memory. */
static hfsbi_reset *hfsbi_reset_new(hfsbi_api *api, hfsb_request *request,
                                    bool empty) {
    const hfsbi_tool *kill = hfsbi_tool_find(HFSB_LIT("kill"));
    hfsbi_reset *x = (hfsbi_reset *)hfsbi_array(&api->alloc, 1, sizeof *x);
    if (!x) return NULL;
    memset(x, 0, sizeof *x);
    x->api = api;
    x->request = request;
    x->empty = empty;
    x->timer.fn = hfsbi_reset_sweep;
    x->task.run = hfsbi_reset_run;
    x->task.done = hfsbi_reset_ran;
    x->reply.alloc = api->alloc;
    if (hfsbi_call_prepare(api->tools, kill, NULL, NULL, &x->kill) ==
        HFSB_OK) {
        x->next = api->resets;
        api->resets = x;
        return x;
    }
    hfsbi_reset_free(x);
    return NULL;
}

HFSBI_FN void hfsbi_reset_post(void *user, hfsb_request *request) {
    hfsbi_api   *api = (hfsbi_api *)user;
    bool         empty = false;
    hfsbi_reset *x;
    if (!hfsbi_reset_read(request, &api->alloc, &empty) ||
        !hfsbi_reset_is_possible(api->tools, empty, request))
        return;
    x = hfsbi_reset_new(api, request, empty);
    if (!x) {
        hfsb_reply_error(request, 503, "Out of memory; nothing was done.");
        return;
    }
    hfsbi_reset_forget(api);
    hfsb_request_on_gone(request, hfsbi_reset_gone, x);
    hfsbi_call_start(x->kill);
    if (hfsb_call_done(x->kill)) hfsbi_reset_look(x);
    else hfsbi_call_listen(x->kill, hfsbi_reset_look, x);
}
