/* patch.c - the tool apply_patch: changes to many files at once.

   The edit room parses the patch and computes all changes; it reads files
   through hfsbi_patch_load(), which remembers their state. Then the changes
   are carried out in two rounds:

       load files, compute --> prepare all --> commit one after the other
              ^                     |                    |
              +-- stale, nothing committed yet: retry ---+

   Preparing writes each new content to a temporary next to its target, so that
   a full disk or a missing permission changes no file. Committing renames the
   temporaries, if the files are still in the state that was read. A failure
   after the first commit is not undone; the error contains the number of
   changes carried out.

   if_sha256 is an object: the versions of files, by path, that the caller
   knows. */
#include "tools_private.h"
#include "../edit/edit_private.h"

/* A file in the state that the patch has read. */
typedef struct hfsbi_patch_seen {
    hfsb_str          path; /* a view of the patch, or of a change */
    hfsb_file_info    info;
    char              sha256[HFSB_SHA256_HEX];
    hfsbi_file_change change; /* since the session read it */
    bool              used;   /* by a change */
} hfsbi_patch_seen;

/* The preparation of one change. */
typedef struct hfsbi_patch_step {
    hfsb_file_writer *writer; /* NULL: nothing to write */
    const char       *sha256; /* of the file to update (NULL: not known) */
    const hfsbi_file_change *change; /* of that file (NULL: none) */
} hfsbi_patch_step;

typedef struct hfsbi_patch_call {
    hfsb_call             *call;
    const hfsb_json_value *if_sha256; /* NULL: not given */
    hfsb_patch_result      result;
    hfsbi_patch_step      *steps; /* one for each change */
    hfsbi_patch_seen      *seen;
    size_t                 seen_count, seen_cap;
    bool                   refused; /* the result contains the reason */
} hfsbi_patch_call;

/* ---- files that the session has not read ---- */

/* The files of a patch that were not read. */
typedef struct hfsbi_unread_list {
    hfsbi_unread_fn *is_unread;
    void            *user;
    hfsb_buf         names;
    size_t           count;
    hfsb_str         last; /* listed */
} hfsbi_unread_list;

/* True when a section before section i creates its file. */
static bool hfsbi_patch_makes(const hfsbi_patch *patch, size_t i) {
    hfsb_str path = patch->sections[i].path;
    while (i-- > 0) {
        const hfsbi_section *s = patch->sections + i;
        if (hfsb_str_equal(s->kind == HFSB_PATCH_ADD ? s->path : s->new_path,
                           path))
            return true;
    }
    return false;
}

/* Lists the file of section i, unless it was read or the hunks prove that its
   lines are known. */
static void hfsbi_unread_add(hfsbi_unread_list *l, const hfsbi_patch *patch,
                             size_t i, const hfsb_patch_result *applied) {
    const hfsbi_section *s = patch->sections + i;
    if (s->kind == HFSB_PATCH_ADD || hfsb_str_equal(s->path, l->last) ||
        (applied && applied->changes[i].proven) ||
        !l->is_unread(l->user, s->path) || hfsbi_patch_makes(patch, i))
        return;
    if (l->count++) hfsb_buf_append(&l->names, HFSB_LIT(", "));
    hfsb_buf_append(&l->names, s->path);
    l->last = s->path;
}

HFSBI_FN hfsb_status hfsbi_refuse_unread(
    const hfsb_alloc *alloc, hfsb_str text, hfsbi_unread_fn *is_unread,
    void *user, const hfsb_patch_result *applied, hfsb_tool_result *result,
    bool *refused) {
    hfsbi_unread_list l;
    hfsbi_patch       patch;
    size_t            i;
    hfsb_status       st = hfsbi_patch_parse(alloc, text, &patch, NULL);
    memset(&l, 0, sizeof l);
    l.is_unread = is_unread;
    l.user = user;
    l.names.alloc = *alloc;
    for (i = 0; st == HFSB_OK && i < patch.section_count; i++)
        hfsbi_unread_add(&l, &patch, i, applied);
    if (st != HFSB_NOMEM) st = l.names.status;
    *refused = st == HFSB_OK && l.count > 0;
    if (*refused)
        st = hfsbi_result_fail(
            result, HFSB_REFUSED,
            "File%s %.*s ha%s not been read this session. Read %s first.",
            l.count > 1 ? "s" : "", (int)l.names.len, l.names.ptr,
            l.count > 1 ? "ve" : "s", l.count > 1 ? "them" : "it");
    hfsb_buf_free(&l.names);
    hfsbi_patch_free(&patch);
    return st;
}

/* True for a regular file that the session has not read, and for one that
   cannot be examined. */
static bool hfsbi_patch_is_unread(void *user, hfsb_str path) {
    hfsb_tools    *tools = ((hfsb_call *)user)->tools;
    hfsb_file_info info;
    hfsb_status    st;
    if (!tools->session || hfsbi_tools_has_seen(tools, path)) return false;
    st = hfsb_file_stat(tools->place, path, &info, NULL);
    if (st == HFSB_OK) return info.type == HFSB_FILE_REGULAR;
    return st != HFSB_NOT_FOUND && st != HFSB_OUTSIDE && st != HFSB_REFUSED;
}

/* ---- reading ---- */

/* The version of a file that the caller gives; "" if it gives no version.
   HFSB_OK, or HFSB_ARG with *err. */
static hfsb_status hfsbi_patch_given(const hfsbi_patch_call *p, hfsb_str path,
                                     hfsbi_version *out, hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(p->if_sha256);
    hfsb_str       text = HFSB_LIT("");
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(it.key, path))
            text = hfsb_json_str(it.value, HFSB_LIT("?"));
    return hfsbi_version_read(text, out, err);
}

/* Reads a file for the patch and remembers its state. A file that the session
   has not read is refused later, with all others. */
static hfsb_status hfsbi_patch_load(void *user, hfsb_str path, hfsb_buf *out,
                                    hfsb_err *err) {
    hfsbi_patch_call *p = (hfsbi_patch_call *)user;
    hfsb_tools       *tools = p->call->tools;
    hfsbi_patch_seen  one, *grown = p->seen;
    hfsbi_version     given;
    size_t            mark = out->len;
    hfsb_status       st;
    if (!hfsbi_patch_is_unread(p->call, path) &&
        !hfsbi_may_change(p->call, path, true, &st)) {
        p->refused = true;
        return st == HFSB_OK ? hfsbi_fail(err, HFSB_REFUSED, 0, "refused")
                             : st;
    }
    memset(&one, 0, sizeof one);
    one.path = path;
    st = hfsbi_patch_given(p, path, &given, err);
    if (st == HFSB_OK)
        st = hfsb_file_read(tools->place, path, 0, out, &one.info, err);
    if (st != HFSB_OK) return st;
    hfsb_sha256_hex(hfsb_str_slice(hfsb_buf_str(out), mark, out->len),
                    one.sha256);
    if (p->seen_count == p->seen_cap)
        grown = (hfsbi_patch_seen *)hfsbi_array_grow(
            &tools->alloc, p->seen, &p->seen_cap, p->seen_count + 1,
            sizeof one);
    if (!grown) return HFSB_NOMEM;
    p->seen = grown;
    hfsbi_file_change_open(p->call, path, &given,
                           hfsb_str_slice(hfsb_buf_str(out), mark, out->len),
                           &one.info, &one.change);
    p->seen[p->seen_count++] = one;
    return HFSB_OK;
}

/* Returns the state of the file that was read; NULL when it was not read, or
   when an earlier change of the patch has used that state. */
static hfsbi_patch_seen *hfsbi_patch_seen_find(hfsbi_patch_call *p,
                                               hfsb_str          path) {
    size_t i;
    for (i = 0; i < p->seen_count; i++)
        if (!p->seen[i].used && hfsb_str_equal(p->seen[i].path, path))
            return &p->seen[i];
    return NULL;
}

/* Returns the state of a file that has changed since the session read it, if
   the patch must not be applied to it: its hunks do not match exactly, or it
   is to be deleted. NULL when not found. */
static const hfsbi_patch_seen *hfsbi_patch_unsafe(const hfsbi_patch_call *p,
                                                  hfsb_status             st) {
    bool   fails = st == HFSB_NOT_FOUND || st == HFSB_AMBIGUOUS;
    size_t i, k;
    for (i = 0; i < p->seen_count; i++) {
        const hfsbi_patch_seen *s = p->seen + i;
        if (!s->change.changed) continue;
        if (fails || (st == HFSB_OK && p->result.fuzzy)) return s;
        for (k = 0; st == HFSB_OK && k < p->result.count; k++)
            if (p->result.changes[k].kind == HFSB_PATCH_DELETE &&
                hfsb_str_equal(p->result.changes[k].path, s->path))
                return s;
    }
    return NULL;
}

/* True for an update of a file that the patch changes again later. Only the
   last of these changes is carried out, so no other writer gets in between. */
static bool hfsbi_patch_skips(const hfsbi_patch_call  *p,
                              const hfsb_patch_change *c) {
    const hfsb_patch_change *next = c + 1;
    const hfsb_patch_change *end = p->result.changes + p->result.count;
    if (c->kind != HFSB_PATCH_UPDATE || c->new_path.len) return false;
    while (next < end && !hfsb_str_equal(next->path, c->path)) next++;
    return next < end;
}

/* Writes the new content of one change to a temporary next to its target,
   unless that was done before. A moved file keeps its mode. */
static hfsb_status hfsbi_patch_prepare(hfsbi_patch_call        *p,
                                       const hfsb_patch_change *c,
                                       hfsbi_patch_step *step, hfsb_err *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsbi_patch_seen    *was = NULL;
    hfsb_str             path = c->new_path.len ? c->new_path : c->path;
    hfsb_status          st;
    if (step->writer || hfsbi_patch_skips(p, c)) return HFSB_OK;
    if (c->kind != HFSB_PATCH_ADD) was = hfsbi_patch_seen_find(p, c->path);
    if (was && c->new_path.len) opts.mode = was->info.mode;
    else if (was) opts.if_sha256 = hfsb_cstr(was->sha256);
    st = c->kind == HFSB_PATCH_DELETE
             ? HFSB_OK
             : hfsb_file_writer_open(p->call->tools->place, path, &opts,
                                     &step->writer, err);
    if (st == HFSB_OK && was) {
        was->used = true;
        step->sha256 = was->sha256;
        step->change = &was->change;
    }
    if (st != HFSB_OK || !step->writer) return st;
    return hfsb_file_writer_append(step->writer, hfsb_buf_str(&c->content),
                                   err);
}

/* Ends a move after the new file is written: removes the old file. When that
   fails, or the old file has changed, removes the new file again. */
static hfsb_status hfsbi_patch_end_move(const hfsb_root         *place,
                                        const hfsb_patch_change *c,
                                        const char *sha256, hfsb_err *err) {
    char        hex[HFSB_SHA256_HEX];
    hfsb_status st = hfsbi_file_remove_if(place, c->path, sha256, NULL, err);
    if (st == HFSB_OK) return st;
    hfsb_sha256_hex(hfsb_buf_str(&c->content), hex);
    (void)hfsbi_file_remove_if(place, c->new_path, hex, NULL, NULL);
    return st;
}

/* The session knows the file that was written. */
static void hfsbi_patch_seen_done(hfsbi_patch_call        *p,
                                  const hfsb_patch_change *c,
                                  const hfsbi_patch_step  *step) {
    hfsb_str    content = hfsb_buf_str(&c->content);
    hfsbi_sight sight = HFSB_INIT;
    if (step->change && !c->new_path.len) {
        hfsbi_file_change_done(p->call, c->path, content, step->change);
        return;
    }
    hfsbi_version_of(content, &sight.version);
    sight.content = content;
    sight.first = 1;
    sight.last = c->kind == HFSB_PATCH_ADD ? content.len : 0; /* lines */
    sight.wrote = true;
    hfsbi_tools_saw(p->call->tools, c->new_path.len ? c->new_path : c->path,
                    &sight);
}

/* Carries out one change. HFSB_OK, or the failure with *err. */
static hfsb_status hfsbi_patch_commit(hfsbi_patch_call        *p,
                                      const hfsb_patch_change *c,
                                      hfsbi_patch_step *step, hfsb_err *err) {
    hfsb_tools *tools = p->call->tools;
    hfsb_status st = hfsbi_patch_prepare(p, c, step, err);
    if (st == HFSB_OK && c->kind == HFSB_PATCH_DELETE)
        return hfsbi_file_remove_if(tools->place, c->path, step->sha256, NULL,
                                    err);
    if (st != HFSB_OK || !step->writer) return st;
    st = hfsb_file_writer_commit(step->writer, NULL, err);
    if (st == HFSB_OK && c->new_path.len)
        st = hfsbi_patch_end_move(tools->place, c, step->sha256, err);
    if (st == HFSB_OK) hfsbi_patch_seen_done(p, c, step);
    return st;
}

/* Prepares all changes, then commits them; *done counts those carried out. A
   change after a deletion or a move may fail to prepare, because that one must
   make room for it (a file becomes a directory). It is prepared again when it
   is committed. */
static hfsb_status hfsbi_patch_store(hfsbi_patch_call *p, size_t *done,
                                     hfsb_err *err) {
    const hfsb_patch_change *c = p->result.changes;
    hfsb_status              st = HFSB_OK;
    bool                     room = false;
    size_t                   i;
    for (i = 0; st == HFSB_OK && i < p->result.count; i++) {
        st = hfsbi_patch_prepare(p, c + i, p->steps + i, err);
        if (st != HFSB_OK && st != HFSB_NOMEM && st != HFSB_STALE && room)
            st = HFSB_OK;
        if (c[i].kind == HFSB_PATCH_DELETE || c[i].new_path.len) room = true;
    }
    for (i = 0; st == HFSB_OK && i < p->result.count; i++) {
        st = hfsbi_patch_commit(p, c + i, p->steps + i, err);
        if (st == HFSB_OK && !hfsbi_patch_skips(p, c + i)) ++*done;
    }
    return st;
}

/* ---- the reply ---- */

/* One line for each file, with the diff where a hunk did not match exactly. */
static hfsb_status hfsbi_patch_report(hfsbi_patch_call *p) {
    static const char *const words[] = {"Added", "Deleted", "Updated"};
    hfsb_buf                *out = &p->call->result.output;
    size_t                   mark = out->len;
    size_t                   i;
    hfsb_status              st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i < p->result.count; i++) {
        const hfsb_patch_change *c = p->result.changes + i;
        if (hfsbi_patch_skips(p, c) && !c->note[0]) continue;
        hfsb_buf_printf(out, "%s%s ", out->len > mark ? "\n" : "",
                        words[c->kind]);
        hfsb_buf_append(out, c->path);
        if (c->new_path.len) {
            hfsb_buf_append(out, HFSB_LIT(", moved to "));
            hfsb_buf_append(out, c->new_path);
        }
        if (!c->note[0]) continue;
        hfsb_buf_printf(out, " %s", c->note);
        st = hfsbi_result_add_diff(&p->call->result, hfsb_buf_str(&c->diff),
                                   false);
    }
    p->call->result.success = true;
    return st == HFSB_OK ? hfsb_buf_finish(out, mark) : st;
}

/* The files that were written, with their new versions. */
static void hfsbi_patch_files(const hfsbi_patch_call *p, hfsbi_build *fields) {
    size_t i;
    hfsbi_build_array(fields, "files");
    for (i = 0; i < p->result.count; i++) {
        const hfsb_patch_change *c = p->result.changes + i;
        const hfsbi_file_change *change = p->steps[i].change;
        hfsbi_version            version;
        if (!p->steps[i].writer) continue; /* deleted, or changed again */
        hfsbi_version_of(hfsb_buf_str(&c->content), &version);
        hfsbi_build_object(fields, NULL);
        hfsbi_build_str(fields, "path",
                        c->new_path.len ? c->new_path : c->path);
        hfsbi_build_str(fields, "sha256", hfsb_cstr(version.hex));
        if (change && change->changed && !c->new_path.len)
            hfsbi_build_bool(fields, "had_changed", true);
        hfsbi_build_end(fields);
    }
    hfsbi_build_end(fields);
}

static hfsb_status hfsbi_patch_fields(hfsbi_patch_call *p) {
    hfsbi_build *fields = &p->call->fields;
    hfsb_buf     diff = HFSB_INIT;
    hfsb_status  st;
    size_t       i;
    diff.alloc = p->call->tools->alloc;
    for (i = 0; i < p->result.count; i++)
        hfsb_buf_append(&diff, hfsb_buf_str(&p->result.changes[i].diff));
    st = diff.status;
    hfsbi_build_int(fields, "count", (long long)p->result.count);
    hfsbi_build_str(fields, "diff", hfsb_buf_str(&diff));
    hfsbi_patch_files(p, fields);
    hfsb_buf_free(&diff);
    return st;
}

static hfsb_status hfsbi_patch_warn(hfsbi_patch_call *p) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < p->result.count; i++) {
        const hfsb_patch_change *c = p->result.changes + i;
        if (c->kind != HFSB_PATCH_DELETE)
            st = hfsbi_add_warnings(p->call,
                                    c->new_path.len ? c->new_path : c->path,
                                    hfsb_buf_str(&c->content));
    }
    return st;
}

/* Applies the patch and writes the result. HFSB_STALE with *err, and no
   result, when a file has changed since it was read and nothing was carried
   out. */
static hfsb_status hfsbi_patch_call_run(hfsbi_patch_call *p, hfsb_str text,
                                        hfsb_err *err) {
    hfsb_tool_result       *r = &p->call->result;
    const hfsbi_patch_seen *unsafe;
    hfsb_patch_files        files = HFSB_INIT;
    size_t                  done = 0;
    bool                    unread = false;
    hfsb_status             st, read = HFSB_OK;
    files.read = hfsbi_patch_load;
    files.user = p;
    files.names = p->call->opts.names;
    st = hfsb_patch_apply(text, &files, &p->result, err);
    if (p->refused || st == HFSB_NOMEM) return st == HFSB_NOMEM ? st : HFSB_OK;
    if (p->call->tools->session && st != HFSB_IO)
        read = hfsbi_refuse_unread(
            &p->call->tools->alloc, text, hfsbi_patch_is_unread, p->call,
            st == HFSB_OK ? &p->result : NULL, r, &unread);
    if (unread || read == HFSB_NOMEM) return read;
    unsafe = hfsbi_patch_unsafe(p, st);
    if (unsafe)
        return hfsbi_file_change_refuse(p->call, unsafe->path, &unsafe->change,
                                        st == HFSB_OK ? NULL : err);
    if (st != HFSB_OK) return hfsbi_result_err(r, err);
    p->steps = (hfsbi_patch_step *)hfsbi_array(
        &p->call->tools->alloc, p->result.count, sizeof *p->steps);
    if (!p->steps) return HFSB_NOMEM;
    memset(p->steps, 0, p->result.count * sizeof *p->steps);
    st = hfsbi_patch_store(p, &done, err);
    if (st == HFSB_STALE && done == 0) return st;
    if (st != HFSB_OK && done > 0)
        hfsbi_err_add(err, " (%zu of %zu changes were carried out before.)",
                      done, p->result.count);
    if (st != HFSB_OK) return hfsbi_result_err(r, err);
    st = hfsbi_patch_report(p);
    if (st == HFSB_OK) st = hfsbi_patch_fields(p);
    return st == HFSB_OK ? hfsbi_patch_warn(p) : st;
}

typedef struct hfsbi_patch_args {
    hfsb_str               patch;
    const hfsb_json_value *if_sha256;
} hfsbi_patch_args;

/* Tries once; returns as hfsbi_patch_call_run(). */
static hfsb_status hfsbi_patch_try(hfsb_call *call, const hfsbi_patch_args *a,
                                   hfsb_err *err) {
    const hfsb_alloc *alloc = &call->tools->alloc;
    hfsbi_patch_call  p;
    size_t            i;
    hfsb_status       st;
    memset(&p, 0, sizeof p);
    p.call = call;
    p.if_sha256 = a->if_sha256;
    p.result.alloc = *alloc;
    st = hfsbi_patch_call_run(&p, a->patch, err);
    for (i = 0; p.steps && i < p.result.count; i++)
        hfsb_file_writer_close(p.steps[i].writer);
    for (i = 0; i < p.seen_count; i++)
        hfsbi_file_change_free(&p.seen[i].change);
    hfsbi_array_free(alloc, p.steps, p.result.count, sizeof *p.steps);
    hfsbi_array_free(alloc, p.seen, p.seen_cap, sizeof *p.seen);
    hfsb_patch_free(&p.result);
    return st;
}

static const hfsbi_param hfsbi_patch_params[] = {
    HFSBI_PARAM("patch", HFSBI_ARG_STR, HFSBI_REQUIRED | HFSBI_UNTOLD,
                hfsbi_patch_args, patch, NULL),
    HFSBI_PARAM("if_sha256", HFSBI_ARG_OBJECT, HFSBI_UNLISTED,
                hfsbi_patch_args, if_sha256, NULL),
    HFSBI_PARAM_END};

/* Retries when another call has changed a file meanwhile, as edit does. */
HFSBI_FN hfsb_status hfsbi_run_apply_patch(hfsb_call *call, const void *args,
                                           hfsb_err *err) {
    const hfsbi_patch_args *a = (const hfsbi_patch_args *)args;
    unsigned                tries = 0;
    hfsb_status             st;
    hfsbi_change_lock(call);
    while ((st = hfsbi_patch_try(call, a, err)) == HFSB_STALE &&
           tries < HFSBI_TRIES)
        hfsbi_pause(tries++);
    return st == HFSB_STALE ? hfsbi_result_err(&call->result, err) : st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_apply_patch(void) {
    static const hfsbi_tool row = {
        "apply_patch",
        "Apply a patch",
        "Change several files that you have read, all or none. The patch is "
        "*** Begin Patch to *** End Patch, with sections *** Add File: p, *** "
        "Delete File: p, *** Update File: p (then *** Move to: q if wanted), "
        "the latter with hunks of lines that begin with a blank, - or +, each "
        "after a line @@ that may name the enclosing function. Or: a git or "
        "unified diff, or paths with SEARCH/REPLACE blocks.",
        NULL,
        HFSBI_TOOL_CHANGES,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK,
        hfsbi_patch_params};
    return &row;
}
