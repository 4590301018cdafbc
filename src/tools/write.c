/* write.c - the tools write, edit, multi_edit and exists.

   write replaces a whole file. edit and multi_edit read a file, compute the
   new content (edit room) and write it back:

       read --> apply edits --> write if the file is still the same --> result
         ^                                   |
         +------------- stale: retry --------+

   The condition of the write is the content that was read, so parallel calls
   that edit one file lose no change. All writes are atomic (os room).

   In a session, a file that exists must have been read before it is changed,
   and must not have changed since (seen.c). write is refused then; an edit is
   still made if it matches exactly and in one place. if_sha256 asks for the
   same without a session.

   After a write the checks append their warnings to the output; they never
   fail the call. */
#include "tools_private.h"

/* ---- shared by the tools that write ---- */

HFSBI_FN bool hfsbi_may_change(hfsb_call *call, hfsb_str path, bool edit,
                               hfsb_status *st) {
    hfsb_file_info info;
    hfsb_err       err;
    *st = HFSB_OK;
    if (!call->tools->session || hfsbi_tools_has_seen(call->tools, path))
        return true;
    *st = hfsb_file_stat(call->tools->place, path, &info, &err);
    if (*st != HFSB_OK && *st != HFSB_NOT_FOUND && *st != HFSB_OUTSIDE &&
        *st != HFSB_REFUSED) {
        *st = hfsbi_result_err(&call->result, &err); /* the file may exist */
        return false;
    }
    if (*st != HFSB_OK || info.type != HFSB_FILE_REGULAR) {
        *st = HFSB_OK;
        return true; /* new, or the write reports a better error */
    }
    *st = edit ? hfsbi_result_fail(
                     &call->result, HFSB_REFUSED,
                     "File %.*s has not been read this session. Read it "
                     "first.",
                     (int)path.len, path.ptr)
               : hfsbi_result_fail(
                     &call->result, HFSB_REFUSED,
                     "File %.*s exists but has not been read this session. "
                     "Read it first, or use edit for targeted changes.",
                     (int)path.len, path.ptr);
    return false;
}

/* A file whose checks run. */
typedef struct hfsbi_checked {
    hfsb_call *call;
    hfsb_str   path, content;
    hfsb_buf   warnings;
} hfsbi_checked;

static void hfsbi_checked_run(void *user) {
    hfsbi_checked *c = (hfsbi_checked *)user;
    hfsbi_checker_run(c->call->tools->checker, c->call->opts.cancel, c->path,
                      c->content, &c->warnings);
}

HFSBI_FN hfsb_status hfsbi_add_warnings(hfsb_call *call, hfsb_str path,
                                        hfsb_str content) {
    hfsbi_checked c = HFSB_INIT;
    hfsbi_change_unlock(call); /* checks may take long */
    if (!call->tools->checker) return HFSB_OK;
    c.call = call;
    c.path = path;
    c.content = content;
    c.warnings.alloc = call->tools->alloc;
    if (hfsbi_checker_runs_code(call->tools->checker, path, content))
        hfsbi_tools_outside(call->tools, hfsbi_checked_run, &c);
    else hfsbi_checked_run(&c);
    hfsbi_check_put(&call->result.output, HFSB_LIT(""),
                    hfsb_buf_str(&c.warnings));
    hfsb_buf_free(&c.warnings);
    return HFSB_OK;
}

/* ---- write ---- */

typedef struct hfsbi_write_args {
    hfsb_str path, content, if_sha256;
} hfsbi_write_args;

static const hfsbi_param hfsbi_write_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_write_args, path,
                NULL),
    HFSBI_PARAM("content", HFSBI_ARG_STR, HFSBI_REQUIRED | HFSBI_UNTOLD,
                hfsbi_write_args, content, NULL),
    HFSBI_PARAM("if_sha256", HFSBI_ARG_STR, 0, hfsbi_write_args, if_sha256,
                "Refuse if the file has changed from this"),
    HFSBI_PARAM_END};

/* The condition of a write in a session: that the file is in the state that is
   known, or does not exist. A condition of the caller replaces it. */
typedef struct hfsbi_write_if {
    hfsbi_version  version;
    hfsb_file_info info;
} hfsbi_write_if;

/* Sets the condition. Returns as hfsbi_may_change(); *st may also be
   HFSB_STALE: the file has changed. */
static bool hfsbi_write_condition(hfsb_call *call, hfsb_str path,
                                  hfsbi_write_if       *known,
                                  hfsb_file_write_opts *opts,
                                  hfsb_status          *st) {
    hfsb_root    *place = call->tools->place;
    hfsbi_version now;
    *st = HFSB_OK;
    if (!call->tools->session) return true;
    if (!hfsbi_may_change(call, path, false, st)) return false;
    *st = hfsb_file_stat(place, path, &known->info, NULL);
    opts->create = *st == HFSB_NOT_FOUND;
    if (*st != HFSB_OK || opts->if_sha256.len ||
        !hfsbi_tools_version(call->tools, path, &known->version)) {
        *st = HFSB_OK; /* or the write reports a better error */
        return true;
    }
    if (!hfsbi_version_is_info(&known->version)) {
        opts->if_sha256 = hfsb_cstr(known->version.hex);
        return true;
    }
    opts->if_same = &known->info;
    hfsbi_version_of_info(&known->info, &now);
    if (strcmp(now.hex, known->version.hex) == 0) return true;
    *st = HFSB_STALE;
    return false;
}

/* Refuses to write over a file that has changed. */
static hfsb_status hfsbi_write_refuse(hfsb_call *call, hfsb_str path,
                                      hfsb_err *err) {
    hfsb_buf          content = HFSB_INIT;
    hfsb_file_info    info;
    hfsbi_file_change change;
    hfsb_status       st;
    content.alloc = call->tools->alloc;
    st = hfsb_file_read(call->tools->place, path, 0, &content, &info, err);
    if (st == HFSB_OK) {
        hfsbi_file_change_open(call, path, NULL, hfsb_buf_str(&content), &info,
                               &change);
        st = hfsbi_file_change_refuse(call, path, &change, NULL);
        hfsbi_file_change_free(&change);
    } else {
        st = hfsbi_result_err(&call->result, err);
    }
    hfsb_buf_free(&content);
    return st;
}

/* Writes the file. HFSB_STALE with *err when the file appears or disappears
   meanwhile. Otherwise HFSB_OK or HFSB_NOMEM, and the result contains a
   failure. */
static hfsb_status hfsbi_write_try(hfsb_call *call, const hfsbi_write_args *a,
                                   hfsb_file_written *written, hfsb_err *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsbi_write_if       known = HFSB_INIT;
    hfsb_status          st;
    bool                 own; /* the condition is not the caller's */
    opts.if_sha256 = a->if_sha256;
    if (!hfsbi_write_condition(call, a->path, &known, &opts, &st))
        return st == HFSB_STALE ? hfsbi_write_refuse(call, a->path, err) : st;
    own = !a->if_sha256.len && (opts.if_sha256.len || opts.if_same);
    st = hfsb_file_write(call->tools->place, a->path, a->content, &opts,
                         written, err);
    call->result.success = st == HFSB_OK;
    if (st == HFSB_OK) return st;
    if (own && st == HFSB_STALE) return hfsbi_write_refuse(call, a->path, err);
    if ((own && st == HFSB_NOT_FOUND) || (opts.create && st == HFSB_EXISTS))
        return HFSB_STALE;
    return hfsbi_result_err(&call->result, err);
}

HFSBI_FN hfsb_status hfsbi_run_write(hfsb_call *call, const void *args,
                                     hfsb_err *err) {
    const hfsbi_write_args *a = (const hfsbi_write_args *)args;
    hfsbi_sight             sight = HFSB_INIT;
    hfsb_file_written       written;
    unsigned                tries = 0;
    hfsb_status             st;
    hfsbi_change_lock(call);
    while ((st = hfsbi_write_try(call, a, &written, err)) == HFSB_STALE &&
           tries < HFSBI_TRIES)
        hfsbi_pause(tries++);
    if (st == HFSB_STALE) return hfsbi_result_err(&call->result, err);
    if (st != HFSB_OK || !call->result.success) return st;
    hfsbi_version_of(a->content, &sight.version);
    sight.content = a->content;
    sight.first = 1;
    sight.last = a->content.len; /* all lines */
    sight.wrote = true;
    hfsbi_tools_saw(call->tools, a->path, &sight);
    hfsbi_build_int(&call->fields, "bytes", (long long)written.bytes);
    hfsbi_build_bool(&call->fields, "created", written.created);
    hfsbi_build_bool(&call->fields, "in_place", written.in_place);
    st = hfsbi_result_ok(&call->result, "Wrote %llu bytes to %.*s",
                         written.bytes, (int)a->path.len, a->path.ptr);
    return st == HFSB_OK ? hfsbi_add_warnings(call, a->path, a->content) : st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_write(void) {
    static const hfsbi_tool row = {
        "write",
        "Write a file",
        "Write a whole file, making its folders. Replaces what is there: read "
        "an existing file first, and prefer edit to change parts. The reply "
        "warns of syntax errors.",
        NULL,
        HFSBI_TOOL_REPEATS,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK | HFSBI_TOOL_CORE,
        hfsbi_write_params};
    return &row;
}

/* ---- edit ---- */

enum { HFSBI_EDIT_LINES = 100 }; /* places listed; `count` counts all */

static void hfsbi_edit_fields(hfsbi_build *fields, const hfsb_edit_result *r,
                              const hfsb_file_written *written,
                              hfsb_str                 content,
                              const hfsbi_file_change *change) {
    char   hex[HFSB_SHA256_HEX];
    size_t i;
    hfsbi_build_int(fields, "count", (long long)r->count);
    if (r->note[0]) hfsbi_build_str(fields, "note", hfsb_cstr(r->note));
    else hfsbi_build_null(fields, "note");
    hfsbi_build_array(fields, "lines");
    for (i = 0; r->spans && i < r->count && i < HFSBI_EDIT_LINES; i++) {
        hfsbi_build_array(fields, NULL);
        hfsbi_build_int(fields, NULL, (long long)r->spans[i].first_line);
        hfsbi_build_int(fields, NULL, (long long)r->spans[i].last_line);
        hfsbi_build_end(fields);
    }
    hfsbi_build_end(fields);
    hfsbi_build_str(fields, "diff", hfsb_buf_str(&r->diff));
    hfsbi_build_bool(fields, "in_place", written->in_place);
    hfsb_sha256_hex(content, hex);
    hfsbi_build_str(fields, "sha256", hfsb_cstr(hex));
    if (change->changed) hfsbi_build_bool(fields, "had_changed", true);
}

/* Writes the edited file and the result. HFSB_STALE with *err, and no result,
   when the content of the file is no longer `before`. */
static hfsb_status hfsbi_edit_store(hfsb_call *call, hfsb_str path,
                                    hfsb_str before, hfsb_str content,
                                    const hfsb_edit_result  *r,
                                    const hfsbi_file_change *change,
                                    hfsb_err                *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_written    written;
    hfsb_status          st;
    opts.if_content = before;
    if (!before.ptr) opts.if_content = HFSB_LIT("");
    st = hfsb_file_write(call->tools->place, path, content, &opts, &written,
                         err);
    if (st == HFSB_STALE) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    hfsbi_file_change_done(call, path, content, change);
    hfsbi_edit_fields(&call->fields, r, &written, content, change);
    st = hfsbi_result_ok(&call->result, "Edited %.*s (%zu replacement%s)%s%s",
                         (int)path.len, path.ptr, r->count,
                         r->count > 1 ? "s" : "", r->note[0] ? " " : "",
                         r->note);
    /* The text was not replaced literally: show what was written. */
    if (st == HFSB_OK && r->note[0])
        st = hfsbi_result_add_diff(&call->result, hfsb_buf_str(&r->diff),
                                   call->opts.names == HFSB_EDIT_NAMES_FLAGS);
    return st == HFSB_OK ? hfsbi_add_warnings(call, path, content) : st;
}

/* A file that has changed is edited only where each edit matches exactly and
   in one place. Line numbers refer to the file as it was. */
static bool hfsbi_edit_is_safe(hfsb_status st, const hfsb_edit_result *r,
                               size_t count) {
    if (st == HFSB_NOT_FOUND || st == HFSB_AMBIGUOUS) return false;
    return st != HFSB_OK || (!r->note[0] && r->count == count);
}

/* Applies the edits to the content that was read, and writes the result.
   HFSB_STALE as hfsbi_edit_store(). */
static hfsb_status hfsbi_edit_apply(hfsb_call *call, hfsb_str path,
                                    hfsb_str before, hfsb_edit *edits,
                                    size_t                   count,
                                    const hfsbi_file_change *change,
                                    hfsb_err                *err) {
    hfsb_buf         after = HFSB_INIT;
    hfsb_edit_opts   opts = HFSB_INIT;
    hfsb_edit_result r;
    hfsb_status      st;
    size_t           i;
    memset(&r, 0, sizeof r);
    after.alloc = call->tools->alloc;
    opts.path = path;
    opts.names = call->opts.names;
    for (i = 0; change->changed && i < count; i++) edits[i].line = 0;
    st = hfsb_edit_apply(before, edits, count, &opts, &after, &r, err);
    if (change->changed && !hfsbi_edit_is_safe(st, &r, count))
        st = hfsbi_file_change_refuse(call, path, change,
                                      st == HFSB_OK ? NULL : err);
    else if (st == HFSB_OK)
        st = hfsbi_edit_store(call, path, before, hfsb_buf_str(&after), &r,
                              change, err);
    else st = hfsbi_result_err(&call->result, err);
    hfsb_buf_free(&after);
    hfsb_edit_result_free(&r);
    return st;
}

/* Reads, edits and writes the file. HFSB_STALE as hfsbi_edit_store(). */
static hfsb_status hfsbi_edit_try(hfsb_call *call, hfsb_str path,
                                  const hfsbi_version *given, hfsb_edit *edits,
                                  size_t count, hfsb_err *err) {
    hfsb_buf          before = HFSB_INIT;
    hfsb_file_info    info;
    hfsbi_file_change change;
    hfsb_status       st;
    before.alloc = call->tools->alloc;
    st = hfsb_file_read(call->tools->place, path, 0, &before, &info, err);
    if (st == HFSB_OK) {
        hfsbi_file_change_open(call, path, given, hfsb_buf_str(&before), &info,
                               &change);
        st = hfsbi_edit_apply(call, path, hfsb_buf_str(&before), edits, count,
                              &change, err);
        hfsbi_file_change_free(&change);
    } else {
        st = hfsbi_result_err(&call->result, err);
    }
    hfsb_buf_free(&before);
    return st;
}

/* Parallel calls may edit one file: after another call has written it, the
   edits are applied to the new content. */
static hfsb_status hfsbi_edit_file(hfsb_call *call, hfsb_str path,
                                   hfsb_str if_sha256, hfsb_edit *edits,
                                   size_t count, hfsb_err *err) {
    unsigned      tries = 0;
    hfsbi_version given;
    hfsb_status   st;
    if (hfsbi_version_read(if_sha256, &given, err) != HFSB_OK)
        return hfsbi_result_err(&call->result, err);
    hfsbi_change_lock(call);
    if (!hfsbi_may_change(call, path, true, &st)) return st;
    while ((st = hfsbi_edit_try(call, path, &given, edits, count, err)) ==
               HFSB_STALE &&
           tries < HFSBI_TRIES)
        hfsbi_pause(tries++);
    return st == HFSB_STALE ? hfsbi_result_err(&call->result, err) : st;
}

/* ---- edit and multi_edit: arguments ---- */

/* The arguments of edit, and of an item of multi_edit, which has neither path
   nor if_sha256. */
typedef struct hfsbi_edit_args {
    hfsb_str  path, if_sha256, old_str, new_str, mode;
    bool      replace_all, exact;
    long long line;
} hfsbi_edit_args;

#define HFSBI_EDIT_PARAMS                                                    \
    HFSBI_PARAM("old_str", HFSBI_ARG_STR, HFSBI_REQUIRED | HFSBI_UNTOLD,     \
                hfsbi_edit_args, old_str, NULL),                             \
        HFSBI_PARAM("new_str", HFSBI_ARG_STR, HFSBI_REQUIRED | HFSBI_UNTOLD, \
                    hfsbi_edit_args, new_str, NULL),                         \
        HFSBI_PARAM("replace_all", HFSBI_ARG_BOOL, HFSBI_SENT,               \
                    hfsbi_edit_args, replace_all, NULL),                     \
        HFSBI_PARAM_CHOICE("mode", HFSBI_SENT, hfsbi_edit_args, mode,        \
                           "replace append_after prepend_before"),           \
        HFSBI_PARAM_RANGE("line", HFSBI_ARG_INT, 0, hfsbi_edit_args, line,   \
                          "The place at this line", 0, LLONG_MAX, 0,         \
                          "a line number from 1 on"),                        \
        HFSBI_PARAM("exact", HFSBI_ARG_BOOL, 0, hfsbi_edit_args, exact,      \
                    "Match to the letter"),                                  \
        HFSBI_PARAM_END

static const hfsbi_param hfsbi_edit_items[] = {HFSBI_EDIT_PARAMS};

static const hfsbi_param hfsbi_edit_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_edit_args, path,
                NULL),
    HFSBI_PARAM("if_sha256", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_edit_args,
                if_sha256, NULL),
    HFSBI_EDIT_PARAMS};

typedef struct hfsbi_multi_edit_args {
    hfsb_str               path, if_sha256;
    const hfsb_json_value *edits;
} hfsbi_multi_edit_args;

static const hfsbi_param hfsbi_multi_edit_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_multi_edit_args,
                path, NULL),
    HFSBI_PARAM("if_sha256", HFSBI_ARG_STR, HFSBI_UNLISTED,
                hfsbi_multi_edit_args, if_sha256, NULL),
    HFSBI_PARAM_LIST("edits", HFSBI_REQUIRED | HFSBI_BRIEF,
                     hfsbi_multi_edit_args, edits, hfsbi_edit_items),
    HFSBI_PARAM_END};

/* Makes an edit from its arguments. HFSB_REFUSED with *err for an unknown
   mode: as in the reference, the tool fails, not the call. */
static hfsb_status hfsbi_edit_make(const hfsbi_edit_args *a, hfsb_edit *edit,
                                   hfsb_err *err) {
    memset(edit, 0, sizeof *edit);
    edit->old_str = a->old_str;
    edit->new_str = a->new_str;
    edit->line = (size_t)a->line;
    edit->exact = a->exact;
    if (a->mode.ptr && hfsb_edit_set_mode(edit, a->mode, err) != HFSB_OK)
        return HFSB_REFUSED;
    edit->replace_all = edit->replace_all || a->replace_all;
    return HFSB_OK;
}

/* ---- edit and multi_edit ---- */

HFSBI_FN hfsb_status hfsbi_run_edit(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    const hfsbi_edit_args *a = (const hfsbi_edit_args *)args;
    hfsb_edit              edit;
    if (hfsbi_edit_make(a, &edit, err) != HFSB_OK)
        return hfsbi_result_err(&call->result, err);
    return hfsbi_edit_file(call, a->path, a->if_sha256, &edit, 1, err);
}

/* Reads item n of `edits`; its errors contain n. HFSB_OK; HFSB_ARG, HFSB_NOMEM
   or HFSB_REFUSED with *err. */
static hfsb_status hfsbi_edit_read_item(hfsb_call             *call,
                                        const hfsb_json_value *object,
                                        size_t n, hfsb_edit *edit,
                                        hfsb_err *err) {
    hfsbi_args_how  how = HFSB_INIT;
    hfsbi_edit_args a;
    hfsb_err        inner = HFSB_INIT;
    hfsb_status     st;
    if (hfsb_json_type_of(object) != HFSB_JSON_OBJECT) {
        hfsbi_fail(err, HFSB_ARG, 0, "edits[%zu] must be an object, not %s.",
                   n, hfsb_json_type_name(hfsb_json_type_of(object)));
        hfsbi_err_key(err, "edits");
        return HFSB_ARG;
    }
    how.strict = call->opts.strict;
    how.notes = &call->notes;
    st = hfsbi_args_read(hfsbi_edit_items, object, &how, &a, &inner);
    if (st == HFSB_OK) return hfsbi_edit_make(&a, edit, err);
    hfsbi_fail(err, st, 0, "edits[%zu]: %s", n, inner.msg);
    hfsbi_err_key(err, "edits");
    return st;
}

/* The texts of the edits are views of the arguments. */
HFSBI_FN hfsb_status hfsbi_run_multi_edit(hfsb_call *call, const void *args,
                                          hfsb_err *err) {
    const hfsbi_multi_edit_args *a = (const hfsbi_multi_edit_args *)args;
    const hfsb_alloc            *alloc = &call->tools->alloc;
    hfsb_json_iter               it = hfsb_json_begin(a->edits);
    size_t                       n = 0, count = hfsb_json_count(a->edits);
    hfsb_status                  st = HFSB_OK;
    hfsb_edit *edits = (hfsb_edit *)hfsbi_array(alloc, count, sizeof *edits);
    if (!edits) return HFSB_NOMEM;
    for (; st == HFSB_OK && hfsb_json_next(&it); n++)
        st = hfsbi_edit_read_item(call, it.value, n, edits + n, err);
    if (st == HFSB_OK)
        st = hfsbi_edit_file(call, a->path, a->if_sha256, edits, count, err);
    else if (st == HFSB_REFUSED) st = hfsbi_result_err(&call->result, err);
    hfsbi_array_free(alloc, edits, count, sizeof *edits);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_edit(void) {
    static const hfsbi_tool row = {
        "edit",
        "Edit a file",
        "Replace text in a file that you have read. old_str must mean one "
        "place: give enough lines around it, or replace_all, or line. Copy it "
        "without the line-number prefix; blanks and indentation may differ "
        "when the place is clear. mode append_after or prepend_before inserts "
        "new_str beside old_str. Write new_str in full, never ... for code "
        "left out.",
        NULL,
        HFSBI_TOOL_CHANGES,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK | HFSBI_TOOL_CORE,
        hfsbi_edit_params};
    return &row;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_multi_edit(void) {
    static const hfsbi_tool row = {
        "multi_edit",
        "Edit a file in several places",
        "Several edits to one file that you have read, all or none. Each is "
        "found in the file as it was. Keys as in edit.",
        NULL,
        HFSBI_TOOL_CHANGES,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK,
        hfsbi_multi_edit_params};
    return &row;
}

/* ---- exists ---- */

typedef struct hfsbi_exists_args {
    hfsb_str path;
} hfsbi_exists_args;

static const hfsbi_param hfsbi_exists_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_exists_args, path,
                NULL),
    HFSBI_PARAM_END};

HFSBI_FN hfsb_status hfsbi_run_exists(hfsb_call *call, const void *args,
                                      hfsb_err *err) {
    hfsb_str       path = ((const hfsbi_exists_args *)args)->path;
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(call->tools->place, path, &info, err);
    if (st == HFSB_OK) return hfsbi_result_ok(&call->result, "true");
    if (st == HFSB_NOT_FOUND) return hfsbi_result_ok(&call->result, "false");
    return hfsbi_result_err(&call->result, err);
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_exists(void) {
    static const hfsbi_tool row = {
        "exists",
        "Whether a path exists",
        "true or false: is there a file or directory?",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_ON_DISK,
        hfsbi_exists_params};
    return &row;
}
