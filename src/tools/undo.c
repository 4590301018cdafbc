/* undo.c - the tools checkpoint, checkpoints, undo and changes.

   undo brings the root, or one path, back to a checkpoint:

       scan --> plan --> conflicts? refuse --> checkpoint of what is lost
                                                  |
       state: done <-- scan <-- restore <-- state: undo_to

   It is itself undone by an undo to the checkpoint that it took first, which
   its reply names. Files that somebody else has changed since the last
   checkpoint are kept, or refused when the undo would overwrite them; `force`
   restores them too.

   `undo_to` is the journal. It is stored before the first file changes and
   cleared after the last. If the process dies in between, each path is in its
   old state or in its new one, and the next undo does the rest. */
#include "tools_private.h"
#include "../edit/edit_private.h"

enum {
    HFSBI_UNDO_LISTED = 50,         /* checkpoints in a list */
    HFSBI_CHANGES_LISTED = 200,     /* paths in a list */
    HFSBI_CHANGES_DIFF = 4000,      /* bytes of a diff of one file */
    HFSBI_CHANGES_DIFFS = 24000,    /* ... of all */
    HFSBI_CHANGES_FILE = 512 * 1024 /* bytes of a file that is compared */
};

/* ---- shared ---- */

/* True when the caller is the command line, and messages name its commands. */
static bool hfsbi_undo_flags(const hfsb_call *call) {
    return call->opts.names == HFSB_EDIT_NAMES_FLAGS;
}

/* Fails because the root has no checkpoint. */
static hfsb_status hfsbi_undo_none(hfsb_call *call) {
    hfsb_str root = hfsb_root_path(call->tools->place); /* "": none */
    if (hfsbi_undo_flags(call))
        return hfsbi_result_fail(
            &call->result, HFSB_NOT_FOUND,
            "There are no checkpoints%s%s. `hfsb edit` and `hfsb bash` take "
            "none; `hfsb mcp --root DIR` and `hfsb-server --root DIR "
            "--checkpoints on` do.",
            root.len ? " of " : "", root.len ? root.ptr : "");
    return hfsbi_result_fail(
        &call->result, HFSB_REFUSED,
        "There are no checkpoints: they are off. A person can start "
        "hfsb-server --root DIR --checkpoints on, or hfsb mcp --root DIR.");
}

/* Begins a call that needs checkpoints. HFSB_OK; otherwise the result contains
   the reason, and *st is the status of the call. Leave it in either case. */
static bool hfsbi_undo_enter(hfsb_call *call, hfsb_status *st, hfsb_err *err) {
    hfsbi_history *h = call->tools->history;
    *st = h ? hfsbi_history_enter(h, err) : HFSB_OK;
    if (*st != HFSB_OK) {
        *st = hfsbi_result_err(&call->result, err);
        return false;
    }
    if (h && (!h->no_create || hfsbi_history_floor(h, (uint64_t)-1)))
        return true;
    *st = hfsbi_undo_none(call);
    return false;
}

static void hfsbi_undo_leave(hfsb_call *call) {
    if (call->tools->history) hfsbi_history_leave(call->tools->history);
}

/* Finds a checkpoint by number, by name, or as "first". HFSB_OK, or
   HFSB_NOT_FOUND with *err. */
static hfsb_status hfsbi_undo_find(const hfsb_call *call, hfsb_str text,
                                   uint64_t *out, hfsb_err *err) {
    hfsbi_history     *h = call->tools->history;
    unsigned long long number = 0;
    hfsbi_checkpoint   head;
    uint64_t          *list;
    size_t             count, cap, i;
    bool by_number = hfsbi_read_decimal(text, 1ull << 53, &number) == text.len;
    *out = 0;
    if (hfsbi_store_list(&h->store, &list, &count, &cap) != 0) count = 0;
    if (count && hfsb_str_equal(text, HFSB_LIT("first"))) *out = list[0];
    for (i = count; !*out && i-- > 0;) {
        if (by_number ? list[i] == number
                      : hfsbi_checkpoint_read(&h->store, list[i], &head,
                                              NULL) == 0 &&
                            hfsb_str_equal(hfsb_cstr(head.name), text))
            *out = list[i];
    }
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    if (*out) return HFSB_OK;
    hfsbi_fail(err, HFSB_NOT_FOUND, 0, "There is no checkpoint \"");
    hfsbi_err_quote(err, text, HFSBI_CHECKPOINT_NAME);
    hfsbi_err_add(err, "\": %s lists those that are kept.",
                  hfsbi_undo_flags(call) ? "`hfsb checkpoints`"
                                         : "the tool checkpoints");
    return HFSB_NOT_FOUND;
}

/* Appends the path as seen from the root, "" for the root itself. */
static hfsb_status hfsbi_undo_path(hfsb_call *call, hfsb_str path,
                                   hfsb_buf *out, hfsb_err *err) {
    const hfsb_root *place = call->tools->place;
    hfsbi_target     target;
    hfsb_status      st;
    int              code;
    if (path.len == 0) return HFSB_OK;
    st = hfsbi_resolve(place, path,
                       HFSBI_RESOLVE_NO_FOLLOW | HFSBI_RESOLVE_DEEPEST,
                       "restore", &target, err);
    if (st != HFSB_OK) return st;
    code = target.root == place ? hfsbi_target_place(&target, out) : EXDEV;
    hfsbi_target_close(&target);
    if (code != 0)
        return hfsbi_file_fail_os(place, path, code, "restore", err);
    if (hfsb_str_equal(hfsb_buf_str(out), HFSB_LIT(".")))
        hfsb_buf_truncate(out, 0);
    return out->len < PATH_MAX
               ? HFSB_OK
               : hfsbi_file_fail_os(place, path, ENAMETOOLONG, "restore", err);
}

static void hfsbi_put_diff_count(hfsb_buf *out, hfsbi_diff_count n) {
    hfsb_buf_printf(out, "%lu changed, %lu created, %lu deleted",
                    (unsigned long)n.changed, (unsigned long)n.created,
                    (unsigned long)n.deleted);
}

static void hfsbi_build_diff_count(hfsbi_build *b, hfsbi_diff_count n) {
    hfsbi_build_int(b, "created", n.created);
    hfsbi_build_int(b, "changed", n.changed);
    hfsbi_build_int(b, "deleted", n.deleted);
}

/* ---- checkpoint ---- */

typedef struct hfsbi_checkpoint_args {
    hfsb_str name;
} hfsbi_checkpoint_args;

static const hfsbi_param hfsbi_checkpoint_params[] = {
    HFSBI_PARAM("name", HFSBI_ARG_STR, HFSBI_NO_NUL, hfsbi_checkpoint_args,
                name, NULL),
    HFSBI_PARAM_END};

HFSBI_FN hfsb_status hfsbi_run_checkpoint(hfsb_call *call, const void *args,
                                          hfsb_err *err) {
    hfsb_str    name = ((const hfsbi_checkpoint_args *)args)->name;
    hfsb_status st;
    if (hfsbi_undo_enter(call, &st, err)) {
        st = hfsbi_history_take(call->tools->history, name, err);
        if (st != HFSB_OK) {
            st = hfsbi_result_err(&call->result, err);
        } else {
            uint64_t at = call->tools->history->at;
            hfsbi_build_int(&call->fields, "checkpoint", (long long)at);
            st = hfsbi_result_ok(&call->result,
                                 "Checkpoint %llu. To come back to it: undo "
                                 "with to=%llu.",
                                 (unsigned long long)at,
                                 (unsigned long long)at);
        }
    }
    hfsbi_undo_leave(call);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_checkpoint(void) {
    static const hfsbi_tool row = {
        "checkpoint",
        "Take a checkpoint",
        "Remember the state of all files, for undo. Checkpoints are also "
        "taken before and after changes and commands.",
        NULL,
        HFSBI_TOOL_REPEATS,
        HFSBI_TOOL_ON_DISK | HFSBI_TOOL_ON_REQUEST | HFSBI_TOOL_HISTORY,
        hfsbi_checkpoint_params};
    return &row;
}

/* ---- checkpoints ---- */

/* Appends "5 min ago". */
static void hfsbi_put_age(hfsb_buf *out, int64_t when) {
    long long s = hfsbi_time_ns() / 1000000000 - (long long)when;
    if (s < 0) s = 0;
    if (s < 120) hfsb_buf_printf(out, "%lld s ago", s);
    else if (s < 7200) hfsb_buf_printf(out, "%lld min ago", s / 60);
    else if (s < 172800) hfsb_buf_printf(out, "%lld h ago", s / 3600);
    else hfsb_buf_printf(out, "%lld days ago", s / 86400);
}

static void hfsbi_list_checkpoint(hfsb_call              *call,
                                  const hfsbi_checkpoint *head) {
    const hfsbi_history *h = call->tools->history;
    hfsb_buf            *out = &call->result.output;
    hfsbi_build         *b = &call->fields;
    bool                 here = head->number == h->state.at;
    if (out->len) hfsb_buf_append_byte(out, '\n');
    hfsb_buf_printf(out, "%llu  ", (unsigned long long)head->number);
    hfsbi_put_age(out, head->when);
    hfsb_buf_printf(out, "  %s", head->by);
    if (head->name[0]) hfsb_buf_printf(out, "  \"%s\"", head->name);
    if (head->parent) hfsb_buf_printf(out, "  (");
    if (head->parent) hfsbi_put_diff_count(out, head->diff);
    if (head->parent) hfsb_buf_append_byte(out, ')');
    if (here) hfsb_buf_printf(out, "  <- last seen state");
    hfsbi_build_object(b, NULL);
    hfsbi_build_int(b, "number", (long long)head->number);
    hfsbi_build_int(b, "parent", (long long)head->parent);
    hfsbi_build_int(b, "time", (long long)head->when);
    hfsbi_build_str(b, "by", hfsb_cstr(head->by));
    hfsbi_build_str(b, "name", hfsb_cstr(head->name));
    hfsbi_build_diff_count(b, head->diff);
    hfsbi_build_bool(b, "here", here);
    hfsbi_build_end(b);
}

/* The newest first, and the first one always. */
static hfsb_status hfsbi_list_checkpoints(hfsb_call *call) {
    hfsbi_history   *h = call->tools->history;
    hfsbi_checkpoint head;
    uint64_t        *list;
    size_t           count, cap, i, shown = 0;
    if (hfsbi_store_list(&h->store, &list, &count, &cap) != 0) count = 0;
    hfsbi_build_array(&call->fields, "checkpoints");
    for (i = count; i-- > 0;) {
        if (shown >= HFSBI_UNDO_LISTED && i > 0) continue;
        if (hfsbi_checkpoint_read(&h->store, list[i], &head, NULL) != 0)
            continue;
        if (shown == HFSBI_UNDO_LISTED)
            hfsb_buf_printf(&call->result.output, "\n...");
        hfsbi_list_checkpoint(call, &head);
        shown++;
    }
    hfsbi_build_end(&call->fields);
    hfsbi_build_int(&call->fields, "count", (long long)count);
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    return hfsbi_result_ok(&call->result, "%s",
                           count ? "" : "(no checkpoints yet)");
}

HFSBI_FN hfsb_status hfsbi_run_checkpoints(hfsb_call *call, const void *args,
                                           hfsb_err *err) {
    hfsb_status st;
    (void)args;
    if (hfsbi_undo_enter(call, &st, err)) st = hfsbi_list_checkpoints(call);
    hfsbi_undo_leave(call);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_checkpoints(void) {
    static const hfsbi_param none[] = {HFSBI_PARAM_END};
    static const hfsbi_tool  row = {
         "checkpoints",
         "List checkpoints",
         "The states that undo can restore, newest first, with the tool or "
          "command that made each.",
         NULL,
         HFSBI_TOOL_READS,
         HFSBI_TOOL_ON_DISK | HFSBI_TOOL_ON_REQUEST | HFSBI_TOOL_HISTORY,
         none};
    return &row;
}

/* ---- undo ---- */

typedef struct hfsbi_undo_args {
    hfsb_str to, path;
    bool     force;
} hfsbi_undo_args;

static const hfsbi_param hfsbi_undo_params[] = {
    HFSBI_PARAM("to", HFSBI_ARG_STR, HFSBI_NO_NUL | HFSBI_OR_NUMBER,
                hfsbi_undo_args, to,
                "Number or name of a checkpoint, or first; default: one step "
                "back"),
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_NO_NUL, hfsbi_undo_args, path,
                "Restore only this file or folder"),
    HFSBI_PARAM("force", HFSBI_ARG_BOOL, 0, hfsbi_undo_args, force,
                "Also overwrite what others have changed"),
    HFSBI_PARAM_END};

/* One undo. */
typedef struct hfsbi_undo {
    hfsb_call       *call;
    hfsbi_history   *h;
    hfsbi_checkpoint head;   /* of the goal */
    hfsbi_checkpoint step;   /* what is undone; number 0: `to` was given */
    uint64_t         before; /* the checkpoint that takes the undo back */
    bool             again;  /* it completes one that was interrupted */
    size_t           differ; /* paths that the scan before it did not show */
    hfsb_buf         path;
    hfsbi_root_scan  now, goal, after;
    hfsbi_restore    plan;
} hfsbi_undo;

/* Finds the goal: the one given, that of an interrupted undo, or the state
   before the last step of a tool. HFSB_OK, or HFSB_NOT_FOUND with *err. */
static hfsb_status hfsbi_undo_goal(hfsbi_undo *u, const hfsbi_undo_args *a,
                                   uint64_t *to, hfsb_err *err) {
    hfsbi_store_state *state = &u->h->state;
    if (a->to.len) return hfsbi_undo_find(u->call, a->to, to, err);
    *to = state->undo_to;
    if (*to && !a->path.len) {
        u->again = true;
        return hfsb_buf_append(&u->path, hfsb_cstr(state->undo_path)) ==
                       HFSB_OK
                   ? HFSB_OK
                   : hfsbi_fail_status(err, HFSB_NOMEM, "Undo");
    }
    *to = hfsbi_history_back(u->h, &u->step);
    if (*to) return HFSB_OK;
    return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                      "Nothing to undo: no tool or command has changed files "
                      "before checkpoint %llu, the present one. %s lists all.",
                      (unsigned long long)state->at,
                      hfsbi_undo_flags(u->call) ? "`hfsb checkpoints`"
                                                : "The tool checkpoints");
}

/* Fails for a path that is neither in the goal nor there now. */
static hfsb_status hfsbi_undo_fail_path(const hfsbi_undo *u, hfsb_err *err) {
    hfsbi_file_fail(err, HFSB_NOT_FOUND, "Nothing to restore",
                    hfsb_buf_str(&u->path));
    hfsbi_err_add(err,
                  " is not in checkpoint %llu. It did not exist, or it is "
                  "ignored (.gitignore, .git).",
                  (unsigned long long)u->head.number);
    return HFSB_NOT_FOUND;
}

/* Compares the present state with the goal. */
static hfsb_status hfsbi_undo_compare(hfsbi_undo *u, bool force,
                                      hfsb_err *err) {
    hfsbi_history *h = u->h;
    hfsbi_restore *r = &u->plan;
    hfsb_status    st = hfsbi_history_scan(h, &u->now, err);
    int            code = 0;
    if (st != HFSB_OK) return st;
    r->place = h->place;
    r->store = &h->store;
    r->now = &u->now;
    r->goal = &u->goal;
    r->known = force ? NULL : &h->last;
    r->force = force;
    r->resumed = h->state.undo_to != 0;
    r->path = hfsb_buf_str(&u->path);
    r->alloc = h->alloc;
    st = hfsbi_restore_plan(r);
    if (st == HFSB_OK && r->known)
        code = hfsbi_history_trace(h, u->head.number, hfsbi_restore_trace, r);
    if (code != 0)
        return hfsbi_fail_os(err, code, "The checkpoints cannot be read");
    if (st == HFSB_OK) st = hfsbi_restore_spare(r);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Undo");
}

/* Loads the goal and makes the plan. What a tool has left to store becomes a
   checkpoint first. */
static hfsb_status hfsbi_undo_plan(hfsbi_undo *u, const hfsbi_undo_args *a,
                                   hfsb_err *err) {
    hfsbi_history *h = u->h;
    hfsb_str       path;
    uint64_t       to = 0;
    hfsb_status    st = hfsbi_history_pay(h, err);
    int            code;
    if (st == HFSB_OK) st = hfsbi_undo_goal(u, a, &to, err);
    if (st == HFSB_OK && !u->again)
        st = hfsbi_undo_path(u->call, a->path, &u->path, err);
    if (st != HFSB_OK) return st;
    code = hfsbi_checkpoint_read(&h->store, to, &u->head, &u->goal);
    if (code != 0)
        return hfsbi_fail_os(err, code, "Checkpoint %llu cannot be read",
                             (unsigned long long)to);
    st = hfsbi_undo_compare(u, a->force, err);
    path = hfsb_buf_str(&u->path);
    if (st == HFSB_OK && path.len && !hfsbi_scan_find(&u->goal, path) &&
        !hfsbi_scan_find(&u->now, path))
        st = hfsbi_undo_fail_path(u, err);
    return st;
}

static hfsb_status hfsbi_undo_refuse(hfsbi_undo *u) {
    hfsb_tool_result *r = &u->call->result;
    size_t            n = u->plan.conflict_count;
    bool              flags = hfsbi_undo_flags(u->call);
    hfsbi_result_fail(r, HFSB_STALE,
                      "Nothing was restored. %zu path%s changed since then, "
                      "by a person or by a command that still ran:\n",
                      n, n == 1 ? " has" : "s have");
    hfsb_buf_append(&r->error, hfsb_buf_str(&u->plan.conflicts));
    hfsb_buf_printf(&r->error,
                    "%sTo overwrite %s, repeat it with %s; "
                    "restore other files alone with %s.",
                    n > 20 ? "...\n" : "", n == 1 ? "it" : "them",
                    flags ? "--force" : "force=true",
                    flags ? "--path" : "path");
    return r->error.status == HFSB_OK ? HFSB_OK : HFSB_NOMEM;
}

/* Makes sure that the present state is a checkpoint, and stores the journal.
   The plan keeps its items: the scan becomes the last one, or it stays. */
static hfsb_status hfsbi_undo_begin(hfsbi_undo *u, hfsb_err *err) {
    hfsbi_history     *h = u->h;
    hfsbi_store_state *state = &h->state;
    hfsbi_diff_count   n = hfsbi_scan_count(&h->last, &u->now);
    hfsbi_origin       from = HFSB_INIT;
    hfsb_status        st = HFSB_OK;
    state->undo_to = u->head.number; /* first: it must not be dropped */
    memset(state->undo_path, 0, sizeof state->undo_path);
    if (u->path.len) memcpy(state->undo_path, u->path.ptr, u->path.len);
    if (n.created || n.changed || n.deleted) {
        u->plan.known = NULL; /* it was the last scan */
        u->plan.now = &h->last;
        from.by = "before undo";
        from.author = hfsbi_history_stranger(h);
        st = hfsbi_history_add(h, &u->now, &from, err);
    }
    if (st != HFSB_OK) return st;
    u->before = h->before = h->at;
    return hfsbi_history_save(h, err);
}

/* Counts a path that differs and was hidden before. */
static hfsb_status hfsbi_undo_count(void *user, const hfsbi_item *goal,
                                    const hfsbi_item *is) {
    hfsbi_undo *u = (hfsbi_undo *)user;
    hfsb_str    path = goal ? hfsbi_item_path(&u->goal, goal)
                            : hfsbi_item_path(&u->after, is);
    u->differ += hfsbi_restore_missed(&u->plan, path);
    return HFSB_OK;
}

/* The root is now equal to the goal, or a new state that follows it. If files
   were kept, it is the goal with changes of others, so that the next undo
   keeps them too. */
static hfsb_status hfsbi_undo_end(hfsbi_undo *u, hfsb_err *err) {
    hfsbi_history   *h = u->h;
    bool             kept = !u->path.len && !u->plan.failed;
    uint64_t         parent = kept          ? u->head.number
                              : u->path.len ? u->before
                                            : u->head.parent;
    hfsbi_origin     from = HFSB_INIT;
    hfsbi_diff_count n;
    char             by[HFSBI_CHECKPOINT_BY];
    hfsb_status      st;
    hfsbi_scan_free(&u->after);
    st = hfsbi_history_scan(h, &u->after, err);
    if (st != HFSB_OK) return st;
    u->differ = 0;
    n = hfsbi_scan_count(&u->goal, &u->after);
    (void)hfsbi_scan_diff(&u->goal, &u->after, hfsbi_undo_count, u);
    h->state.undo_to = 0;
    memset(h->state.undo_path, 0, sizeof h->state.undo_path);
    if (n.created || n.changed || n.deleted) {
        (void)snprintf(by, sizeof by, "undo to %llu",
                       (unsigned long long)u->head.number);
        from.by = by;
        from.parent = &parent;
        from.author = kept ? hfsbi_history_stranger(h) : HFSBI_AUTHOR_TOOL;
        return hfsbi_history_add(h, &u->after, &from, err);
    }
    hfsbi_scan_free(&h->last);
    h->last = u->after;
    hfsbi_scan_init(&u->after, &h->alloc);
    h->at = h->state.at = u->head.number;
    h->base = u->head.base;
    return hfsbi_history_save(h, err);
}

/* Appends what was done, what was kept, and how to take it back. */
static void hfsbi_undo_describe(const hfsbi_undo *u, hfsb_buf *out) {
    const hfsbi_restore *p = &u->plan;
    bool nothing = !p->done.changed && !p->done.created && !p->done.deleted;
    bool same = nothing && !p->kept && !p->held && !p->failed && !u->differ;
    if (u->step.number && !nothing && !u->path.len)
        hfsb_buf_printf(out, "Took back \"%s\", restored checkpoint %llu",
                        u->step.by, (unsigned long long)u->head.number);
    else
        hfsb_buf_printf(out, "%s checkpoint %llu (after: %s)",
                        u->again  ? "Completed the interrupted undo to"
                        : same    ? "All files are already as in"
                        : nothing ? "Nothing was restored of"
                                  : "Restored",
                        (unsigned long long)u->head.number, u->head.by);
    if (u->path.len) hfsb_buf_printf(out, " in ");
    hfsbi_put_shown(out, hfsb_buf_str(&u->path));
    if (!nothing) {
        hfsb_buf_printf(out, ": ");
        hfsbi_put_diff_count(out, p->done);
        hfsb_buf_printf(out, ". To take this back: %s%llu",
                        hfsbi_undo_flags(u->call) ? "hfsb undo "
                                                  : "undo with to=",
                        (unsigned long long)u->before);
    }
    hfsb_buf_append_byte(out, '.');
    if (p->kept)
        hfsb_buf_printf(out,
                        " Kept %zu path%s that somebody else has "
                        "changed since.",
                        p->kept, p->kept == 1 ? "" : "s");
    if (p->held)
        hfsb_buf_printf(out, " Kept %zu folder%s with other files in %s.",
                        p->held, p->held == 1 ? "" : "s",
                        p->held == 1 ? "it" : "them");
}

static hfsb_status hfsbi_undo_report(hfsbi_undo *u) {
    hfsb_tool_result *r = &u->call->result;
    hfsbi_restore    *p = &u->plan;
    hfsbi_build      *b = &u->call->fields;
    bool              flags = hfsbi_undo_flags(u->call);
    hfsbi_undo_describe(u, &r->output);
    hfsbi_build_int(b, "checkpoint", (long long)u->head.number);
    hfsbi_build_int(b, "before", (long long)u->before);
    hfsbi_build_diff_count(b, p->done);
    hfsbi_build_int(b, "kept", (long long)(p->kept + p->held));
    hfsbi_build_int(b, "failed", (long long)p->failed);
    r->success = p->failed == 0;
    if (p->failed)
        hfsbi_result_fail(r, HFSB_IO, "%zu path%s not restored:\n%s",
                          p->failed, p->failed == 1 ? " was" : "s were",
                          p->notes.len ? p->notes.ptr : "");
    if (u->differ)
        hfsbi_result_fail(
            r, HFSB_REFUSED,
            "%zu path%s still differ%s, in folders that were "
            "ignored or could not be read. To restore them "
            "too, repeat it with %s%llu%s.",
            u->differ, u->differ == 1 ? "" : "s", u->differ == 1 ? "s" : "",
            flags ? "--force " : "to=", (unsigned long long)u->head.number,
            flags ? "" : " and force=true");
    return r->output.status == HFSB_OK && r->error.status == HFSB_OK
               ? HFSB_OK
               : HFSB_NOMEM;
}

/* Carries out the plan. */
static hfsb_status hfsbi_undo_restore(hfsbi_undo *u, hfsb_err *err) {
    hfsb_status st = hfsbi_undo_begin(u, err);
    if (st != HFSB_OK) return st;
    hfsbi_restore_run(&u->plan);
    return hfsbi_undo_end(u, err);
}

/* Restores what the first round revealed: the content of folders that were
   ignored or unreadable. It is in a checkpoint by now. */
static hfsb_status hfsbi_undo_repeat(hfsbi_undo *u, hfsb_err *err) {
    hfsbi_diff_count done = u->plan.done;
    uint64_t         before = u->before;
    hfsb_status      st;
    hfsbi_restore_free(&u->plan);
    hfsbi_scan_free(&u->now);
    memset(&u->plan, 0, sizeof u->plan);
    st = hfsbi_undo_compare(u, true, err);
    if (st == HFSB_OK) st = hfsbi_undo_restore(u, err);
    u->before = u->h->before = before;
    u->plan.done.created += done.created;
    u->plan.done.changed += done.changed;
    u->plan.done.deleted += done.deleted;
    return st;
}

static hfsb_status hfsbi_undo_run(hfsbi_undo *u, const hfsbi_undo_args *a,
                                  hfsb_err *err) {
    hfsb_status st = hfsbi_undo_plan(u, a, err);
    if (st != HFSB_OK) return hfsbi_result_err(&u->call->result, err);
    if (u->plan.conflict_count) return hfsbi_undo_refuse(u);
    st = hfsbi_undo_restore(u, err);
    if (st == HFSB_OK && a->force && u->differ) st = hfsbi_undo_repeat(u, err);
    if (st != HFSB_OK) return hfsbi_result_err(&u->call->result, err);
    return hfsbi_undo_report(u);
}

HFSBI_FN hfsb_status hfsbi_run_undo(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    hfsbi_undo  u;
    hfsb_status st;
    hfsbi_change_lock(call);
    if (hfsbi_undo_enter(call, &st, err)) {
        memset(&u, 0, sizeof u);
        u.call = call;
        u.h = call->tools->history;
        u.path.alloc = call->tools->alloc;
        hfsbi_scan_init(&u.now, &u.h->alloc);
        hfsbi_scan_init(&u.goal, &u.h->alloc);
        hfsbi_scan_init(&u.after, &u.h->alloc);
        st = hfsbi_undo_run(&u, (const hfsbi_undo_args *)args, err);
        hfsbi_restore_free(&u.plan);
        hfsbi_scan_free(&u.now);
        hfsbi_scan_free(&u.goal);
        hfsbi_scan_free(&u.after);
        hfsb_buf_free(&u.path);
    }
    hfsbi_undo_leave(call);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_undo(void) {
    static const hfsbi_tool row = {
        "undo",
        "Restore a checkpoint",
        "Take back what edits and commands did to files: content, modes, "
        "links, new and deleted files. Without to: the last step. Can itself "
        "be undone. .git and ignored files stay as they are.",
        NULL,
        HFSBI_TOOL_CHANGES,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK | HFSBI_TOOL_ON_REQUEST |
            HFSBI_TOOL_HISTORY,
        hfsbi_undo_params};
    return &row;
}

/* ---- changes ---- */

typedef struct hfsbi_changes_args {
    hfsb_str since, path;
} hfsbi_changes_args;

static const hfsbi_param hfsbi_changes_params[] = {
    HFSBI_PARAM("since", HFSBI_ARG_STR, HFSBI_NO_NUL | HFSBI_OR_NUMBER,
                hfsbi_changes_args, since,
                "Number or name of a checkpoint, or first; default: where "
                "the session began"),
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_NO_NUL, hfsbi_changes_args, path,
                "Only this file or folder"),
    HFSBI_PARAM_END};

/* One call of changes. */
typedef struct hfsbi_changes {
    hfsb_call       *call;
    hfsbi_history   *h;
    hfsbi_checkpoint head;
    hfsb_buf         path;
    hfsbi_root_scan  was, now;
    hfsbi_diff_count count;
    size_t           listed;
    size_t           room; /* bytes for diffs */
    hfsb_buf         list, diffs;
} hfsbi_changes;

/* Appends the content of a file that is text and not too large; false
   otherwise. No item: empty. */
static bool hfsbi_changes_text(const hfsbi_changes *c, const hfsbi_item *item,
                               hfsb_buf *out) {
    ssize_t n = 1;
    int     fd;
    if (!item) return true;
    if (!(item->flags & HFSBI_ITEM_STORED) ||
        item->size > HFSBI_CHANGES_FILE ||
        hfsb_buf_reserve(out, (size_t)item->size + 1) != HFSB_OK)
        return false;
    fd = hfsbi_store_get(&c->h->store, item->digest);
    if (fd < 0) return false;
    while (n > 0 && out->len < item->size) {
        n = hfsbi_read(fd, out->ptr + out->len, (size_t)item->size - out->len);
        if (n > 0) out->len += (size_t)n;
    }
    hfsbi_close(&fd);
    return n >= 0 && hfsb_str_find_byte(hfsb_buf_str(out), '\0') == HFSB_NPOS;
}

/* Appends the diff of a file, as far as there is room. */
static void hfsbi_changes_diff(hfsbi_changes *c, hfsb_str path,
                               const hfsbi_item *was, const hfsbi_item *is) {
    hfsb_buf       before = HFSB_INIT, after = HFSB_INIT;
    hfsb_diff_opts opts = HFSB_INIT;
    bool           cut;
    if ((was && was->kind != HFSBI_ITEM_FILE) ||
        (is && is->kind != HFSBI_ITEM_FILE) || c->room < 200)
        return;
    before.alloc = after.alloc = c->h->alloc;
    opts.path = path;
    opts.max_bytes =
        c->room < HFSBI_CHANGES_DIFF ? c->room : (size_t)HFSBI_CHANGES_DIFF;
    if (hfsbi_changes_text(c, was, &before) &&
        hfsbi_changes_text(c, is, &after)) {
        size_t mark = c->diffs.len;
        (void)hfsbi_diff_texts(hfsb_buf_str(&before), hfsb_buf_str(&after),
                               &opts, &c->diffs, &cut);
        c->room -=
            c->diffs.len - mark < c->room ? c->diffs.len - mark : c->room;
    }
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
}

/* Appends a line, and the same as fields, with the path as undo takes it. */
static void hfsbi_changes_list(hfsbi_changes *c, hfsb_str path,
                               const hfsbi_item *was, const hfsbi_item *is) {
    const char  *word = !was ? "created" : !is ? "deleted" : "changed";
    hfsbi_build *b = &c->call->fields;
    hfsb_buf_printf(&c->list, "\n%s ", word);
    hfsbi_put_shown(&c->list, path);
    hfsbi_build_object(b, NULL);
    hfsbi_build_str(b, "path", path);
    hfsbi_build_str(b, "change", hfsb_cstr(word));
    hfsbi_build_end(b);
    if ((is ? is : was)->kind == HFSBI_ITEM_FOLDER)
        hfsb_buf_append_byte(&c->list, '/');
    if (was && is && was->mode != is->mode && is->kind != HFSBI_ITEM_LINK)
        hfsb_buf_printf(&c->list, " (mode %04o, was %04o)", is->mode,
                        was->mode);
}

/* Callback of the comparison. */
static hfsb_status hfsbi_changes_add(void *user, const hfsbi_item *was,
                                     const hfsbi_item *is) {
    hfsbi_changes *c = (hfsbi_changes *)user;
    hfsb_str       path =
        is ? hfsbi_item_path(&c->now, is) : hfsbi_item_path(&c->was, was);
    if (c->path.len &&
        (!hfsb_str_starts(path, hfsb_buf_str(&c->path)) ||
         (path.len > c->path.len && path.ptr[c->path.len] != '/')))
        return HFSB_OK;
    if (!was) c->count.created++;
    else if (!is) c->count.deleted++;
    else c->count.changed++;
    if (c->listed++ >= HFSBI_CHANGES_LISTED) return HFSB_OK;
    hfsbi_changes_list(c, path, was, is);
    hfsbi_changes_diff(c, path, was, is);
    return c->list.status;
}

/* Loads the checkpoint to compare with, and scans. What others have changed
   does not become a checkpoint: an undo must still know it. */
static hfsb_status hfsbi_changes_load(hfsbi_changes            *c,
                                      const hfsbi_changes_args *a,
                                      hfsb_err                 *err) {
    hfsbi_history *h = c->h;
    hfsb_status    st = hfsbi_history_pay(h, err);
    uint64_t       since;
    int            code;
    if (st != HFSB_OK) return st;
    since = hfsbi_history_floor(h, h->began ? h->baseline : h->state.baseline);
    if (!since) since = h->state.at;
    if (a->since.len) st = hfsbi_undo_find(c->call, a->since, &since, err);
    if (st == HFSB_OK) st = hfsbi_undo_path(c->call, a->path, &c->path, err);
    if (st == HFSB_OK) st = hfsbi_history_scan(h, &c->now, err);
    if (st != HFSB_OK) return st;
    code = hfsbi_checkpoint_read(&h->store, since, &c->head, &c->was);
    if (code == 0) return HFSB_OK;
    return hfsbi_fail_os(err, code, "Checkpoint %llu cannot be read",
                         (unsigned long long)since);
}

static hfsb_status hfsbi_changes_report(hfsbi_changes *c) {
    hfsb_buf *out = &c->call->result.output;
    c->call->result.success = true;
    hfsb_buf_printf(out, "Since checkpoint %llu (%s, ",
                    (unsigned long long)c->head.number, c->head.by);
    hfsbi_put_age(out, c->head.when);
    hfsb_buf_printf(out, "): ");
    if (c->listed) hfsbi_put_diff_count(out, c->count);
    else hfsb_buf_printf(out, "nothing has changed");
    hfsb_buf_append(out, hfsb_buf_str(&c->list));
    if (c->listed > HFSBI_CHANGES_LISTED)
        hfsb_buf_printf(out, "\n... and %zu more",
                        c->listed - HFSBI_CHANGES_LISTED);
    if (c->diffs.len) hfsb_buf_printf(out, "\n\n");
    hfsbi_append_repaired(out, hfsb_buf_str(&c->diffs));
    if (c->room < 200) hfsb_buf_printf(out, "(no more diffs: give a path)");
    return out->status;
}

static hfsb_status hfsbi_changes_run(hfsbi_changes            *c,
                                     const hfsbi_changes_args *a,
                                     hfsb_err                 *err) {
    hfsbi_build *b = &c->call->fields;
    hfsb_status  st = hfsbi_changes_load(c, a, err);
    if (st != HFSB_OK) return hfsbi_result_err(&c->call->result, err);
    hfsbi_build_int(b, "since", (long long)c->head.number);
    hfsbi_build_array(b, "files");
    st = hfsbi_scan_diff(&c->was, &c->now, hfsbi_changes_add, c);
    hfsbi_build_end(b);
    hfsbi_build_diff_count(b, c->count);
    return st == HFSB_OK ? hfsbi_changes_report(c) : st;
}

HFSBI_FN hfsb_status hfsbi_run_changes(hfsb_call *call, const void *args,
                                       hfsb_err *err) {
    size_t        page = call->tools->limits.page;
    hfsbi_changes c;
    hfsb_status   st;
    if (hfsbi_undo_enter(call, &st, err)) {
        memset(&c, 0, sizeof c);
        c.call = call;
        c.h = call->tools->history;
        c.room = HFSBI_CHANGES_DIFFS;
        if (page && page / 2 < c.room) c.room = page / 2;
        c.path.alloc = c.list.alloc = c.diffs.alloc = call->tools->alloc;
        hfsbi_scan_init(&c.now, &c.h->alloc);
        hfsbi_scan_init(&c.was, &c.h->alloc);
        st = hfsbi_changes_run(&c, (const hfsbi_changes_args *)args, err);
        hfsbi_scan_free(&c.now);
        hfsbi_scan_free(&c.was);
        hfsb_buf_free(&c.path);
        hfsb_buf_free(&c.list);
        hfsb_buf_free(&c.diffs);
    }
    hfsbi_undo_leave(call);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_changes(void) {
    static const hfsbi_tool row = {
        "changes",
        "What has changed",
        "Files that edits, commands or people changed, created or deleted "
        "since a checkpoint, with diffs.",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_ON_DISK | HFSBI_TOOL_ON_REQUEST | HFSBI_TOOL_HISTORY,
        hfsbi_changes_params};
    return &row;
}
