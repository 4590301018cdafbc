/* seen.c - a session reads a file before it changes it.

   With the option session a handle keeps the set of files that were read or
   written through it, by their cleaned absolute paths. For any other file
   edit, multi_edit, edit_lines, apply_patch and a write to an existing file
   are refused before anything is sent; a write asks the server first whether
   the file exists. Only successful calls count.

   hfsb-server also returns the SHA-256 of what it has read or edited, the
   version of the file. A change is sent with the known version, as if_sha256,
   and the server applies the rule of a local session (tools/seen.c) to a file
   that is no longer the same:

       write                refused; the file must be read again
       edit, multi_edit,    made if it matches exactly and in one place, else
       apply_patch          refused; the known version stays the same
       edit_lines           has its tag instead

   As in a local session, the calls that change files take turns: otherwise one
   would take the work of another for a change by somebody else. */
#include "remote_private.h"
#include "../edit/edit_private.h"

/* ---- files by their absolute path ---- */

HFSBI_FN void hfsbi_sandbox_saw(hfsb_sandbox *sandbox, hfsb_str path,
                                const hfsbi_version *version) {
    hfsb_buf key = HFSB_INIT;
    if (!sandbox->o.session || !path.len) return;
    key.alloc = sandbox->o.alloc;
    if (hfsb_path_join(sandbox->o.work_dir, path, &key) == HFSB_OK)
        hfsbi_seen_add(&sandbox->seen, hfsb_buf_str(&key), version);
    hfsb_buf_free(&key);
}

static bool hfsbi_sandbox_version(hfsb_sandbox *sandbox, hfsb_str path,
                                  hfsbi_version *version) {
    hfsb_buf key = HFSB_INIT;
    bool     has;
    key.alloc = sandbox->o.alloc;
    has = hfsb_path_join(sandbox->o.work_dir, path, &key) == HFSB_OK &&
          hfsbi_seen_has(&sandbox->seen, hfsb_buf_str(&key), version);
    hfsb_buf_free(&key);
    return has;
}

static bool hfsbi_sandbox_has_seen(hfsb_sandbox *sandbox, hfsb_str path) {
    hfsbi_version version;
    return hfsbi_sandbox_version(sandbox, path, &version);
}

static void hfsbi_sandbox_lose(hfsb_sandbox *sandbox, hfsb_str path) {
    hfsb_buf key = HFSB_INIT;
    key.alloc = sandbox->o.alloc;
    if (hfsb_path_join(sandbox->o.work_dir, path, &key) == HFSB_OK)
        hfsbi_seen_lose(&sandbox->seen, hfsb_buf_str(&key));
    hfsb_buf_free(&key);
}

/* ---- patches ---- */

static hfsb_str hfsbi_remote_patch(const hfsb_json_value *arguments) {
    hfsb_str patch = HFSB_LIT("");
    (void)hfsb_json_arg_str(arguments, "patch", false, &patch, NULL);
    return patch;
}

static bool hfsbi_remote_is_unread(void *user, hfsb_str path) {
    return !hfsbi_sandbox_has_seen((hfsb_sandbox *)user, path);
}

/* Reads the present version of a file from a reply, or an item of its `files`;
   "" when it is not known. False when the file had changed before, unseen: the
   known version remains the one that was read. */
static bool hfsbi_remote_new_version(const hfsb_json_value *fields,
                                     hfsbi_version         *version) {
    const hfsb_json_value *sha256 = hfsb_json_get(fields, "sha256");
    (void)hfsbi_version_read(hfsb_json_str(sha256, HFSB_LIT("")), version,
                             NULL);
    return !hfsb_json_bool(hfsb_json_get(fields, "had_changed"), false);
}

/* Returns the item of a path in the field `files`, or NULL. */
static const hfsb_json_value *hfsbi_remote_file(const hfsb_json_value *fields,
                                                hfsb_str               path) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(fields, "files"));
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(path, hfsb_json_str(hfsb_json_get(it.value, "path"),
                                               HFSB_LIT(""))))
            return it.value;
    return NULL;
}

static void hfsbi_remote_patch_saw(hfsbi_remote          *r,
                                   const hfsb_json_value *arguments,
                                   const hfsb_json_value *fields) {
    hfsbi_version version;
    hfsbi_patch   p;
    size_t        i;
    if (hfsbi_patch_parse(&r->sandbox->o.alloc, hfsbi_remote_patch(arguments),
                          &p, NULL) != HFSB_OK)
        p.section_count = 0;
    for (i = 0; i < p.section_count; i++) {
        const hfsbi_section *s = p.sections + i;
        hfsb_str             path = s->new_path.len ? s->new_path : s->path;
        if (s->kind != HFSB_PATCH_DELETE &&
            hfsbi_remote_new_version(hfsbi_remote_file(fields, path),
                                     &version))
            hfsbi_sandbox_saw(r->sandbox, path, &version);
    }
    hfsbi_patch_free(&p);
}

/* True when a section before section i changes the same file. */
static bool hfsbi_remote_patch_repeats(const hfsbi_patch *p, size_t i) {
    size_t k;
    for (k = 0; k < i; k++)
        if (hfsb_str_equal(p->sections[k].path, p->sections[i].path))
            return true;
    return false;
}

/* Writes the known versions of the files that a patch changes. */
static void hfsbi_remote_put_versions(const hfsbi_remote    *r,
                                      const hfsb_json_value *arguments,
                                      hfsb_json_writer      *w) {
    hfsbi_version version;
    hfsbi_patch   p;
    size_t        i, count = 0;
    if (hfsbi_patch_parse(&r->sandbox->o.alloc, hfsbi_remote_patch(arguments),
                          &p, NULL) != HFSB_OK)
        p.section_count = 0; /* the server reports why */
    for (i = 0; i < p.section_count; i++) {
        hfsb_str path = p.sections[i].path;
        if (hfsbi_remote_patch_repeats(&p, i) ||
            !hfsbi_sandbox_version(r->sandbox, path, &version) ||
            !version.hex[0])
            continue;
        if (count++ == 0) {
            hfsb_json_put_key(w, HFSB_LIT("if_sha256"));
            hfsb_json_put_object(w);
        }
        hfsb_json_put_key(w, path);
        hfsb_json_put_str(w, hfsb_cstr(version.hex));
    }
    if (count) hfsb_json_put_end(w);
    hfsbi_patch_free(&p);
}

/* ---- checks ---- */

static bool hfsbi_remote_called(const hfsbi_remote *r, const char *tool) {
    return strcmp(r->tool->name, tool) == 0;
}

/* Replacing a text with itself is a mistake; inserting it next to itself is
   not. */
static bool hfsbi_remote_is_idle_edit(const hfsb_json_value *arguments) {
    const hfsb_str none = HFSB_INIT;
    hfsb_str       mode =
        hfsb_json_str(hfsb_json_get(arguments, "mode"), HFSB_LIT("replace"));
    hfsb_str old_str =
        hfsb_json_str(hfsb_json_get(arguments, "old_str"), none);
    hfsb_str new_str =
        hfsb_json_str(hfsb_json_get(arguments, "new_str"), none);
    return old_str.ptr && new_str.ptr && hfsb_str_equal(old_str, new_str) &&
           hfsb_str_starts(mode, HFSB_LIT("replace"));
}

/* Asks the server whether the file exists. */
static hfsb_status hfsbi_remote_exists(hfsbi_remote *r, hfsb_str path,
                                       bool *exists, hfsb_err *err) {
    hfsb_tool_result reply = HFSB_INIT;
    hfsbi_remote     ask;
    hfsb_json_writer w;
    hfsb_status      st;
    hfsbi_result_init(&reply, &r->sandbox->o.alloc);
    hfsbi_remote_init(&ask, r->sandbox, hfsbi_tool_find(HFSB_LIT("exists")),
                      r->cancel);
    hfsb_json_writer_init(&w, &ask.body, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_str(&w, "path", path);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, err);
    if (st == HFSB_OK) st = hfsbi_remote_run(&ask, &reply, err);
    *exists = st == HFSB_OK && reply.success &&
              hfsb_str_equal(hfsb_buf_str(&reply.output), HFSB_LIT("true"));
    /* a server that refuses the question refuses the write as well */
    if (ask.status && ask.status != 200) st = HFSB_OK;
    hfsb_tool_result_free(&reply);
    hfsbi_remote_free(&ask);
    return st;
}

static hfsb_status hfsbi_remote_may_write(hfsbi_remote *r, hfsb_str path,
                                          hfsb_tool_result *result, bool *may,
                                          hfsb_err *err) {
    bool        exists = false;
    hfsb_status st = HFSB_OK;
    *may = hfsbi_sandbox_has_seen(r->sandbox, path);
    if (*may) return st;
    st = hfsbi_remote_exists(r, path, &exists, err);
    *may = st == HFSB_OK && !exists;
    if (st != HFSB_OK || *may) return st;
    return hfsbi_result_fail(result, HFSB_REFUSED,
                             "File %.*s exists but has not been read this "
                             "session. Read it first, or use edit for "
                             "targeted changes.",
                             (int)path.len, path.ptr);
}

HFSBI_FN bool hfsbi_remote_may(hfsbi_remote          *r,
                               const hfsb_json_value *arguments,
                               hfsb_tool_result *result, hfsb_status *st,
                               hfsb_err *err) {
    bool     may = true, refused, edit = hfsbi_remote_called(r, "edit");
    hfsb_str path = HFSB_LIT("");
    *st = HFSB_OK;
    if (edit && hfsbi_remote_is_idle_edit(arguments)) {
        *st = hfsbi_result_fail(result, HFSB_REFUSED,
                                "old_str and new_str are identical.");
        return false;
    }
    if (!r->sandbox->o.session) return true;
    (void)hfsb_json_arg_str(arguments, "path", false, &path, NULL);
    if (hfsbi_remote_called(r, "write") && path.len) {
        *st = hfsbi_remote_may_write(r, path, result, &may, err);
        return may;
    }
    if (hfsbi_remote_called(r, "apply_patch")) {
        *st = hfsbi_refuse_unread(
            &r->sandbox->o.alloc, hfsbi_remote_patch(arguments),
            hfsbi_remote_is_unread, r->sandbox, NULL, result, &refused);
        return *st == HFSB_OK && !refused;
    }
    if ((!edit && !hfsbi_remote_called(r, "multi_edit") &&
         !hfsbi_remote_called(r, "edit_lines")) ||
        !path.len || hfsbi_sandbox_has_seen(r->sandbox, path))
        return true;
    *st = hfsbi_result_fail(
        result, HFSB_REFUSED,
        "File %.*s has not been read this session. Read it first.",
        (int)path.len, path.ptr);
    return false;
}

/* ---- versions ---- */

/* True when a call is sent with the known versions. Its caller may give
   others. */
static bool hfsbi_remote_is_guarded(const hfsbi_remote    *r,
                                    const hfsb_json_value *arguments) {
    return r->sandbox->o.session && r->trusted &&
           hfsbi_param_find(r->tool->params, HFSB_LIT("if_sha256")) &&
           !hfsb_json_get(arguments, "if_sha256");
}

HFSBI_FN void hfsbi_remote_put_condition(const hfsbi_remote    *r,
                                         const hfsb_json_value *arguments,
                                         hfsb_json_writer      *w) {
    hfsb_str      path = HFSB_LIT("");
    hfsbi_version version;
    if (!hfsbi_remote_is_guarded(r, arguments)) return;
    (void)hfsb_json_arg_str(arguments, "path", false, &path, NULL);
    if (hfsbi_remote_called(r, "apply_patch"))
        hfsbi_remote_put_versions(r, arguments, w);
    else if (path.len && hfsbi_sandbox_version(r->sandbox, path, &version) &&
             version.hex[0])
        hfsb_json_put_member_str(w, "if_sha256", hfsb_cstr(version.hex));
}

/* The version that the file has after the call, as hfsbi_remote_new_version().
   */
static bool hfsbi_remote_version(const hfsbi_remote     *r,
                                 const hfsb_json_value  *arguments,
                                 const hfsb_tool_result *result,
                                 hfsbi_version          *version) {
    hfsb_str text = HFSB_LIT("");
    if (!hfsbi_remote_called(r, "write"))
        return hfsbi_remote_new_version(result->fields.root, version);
    (void)hfsb_json_arg_str(arguments, "content", false, &text, NULL);
    hfsbi_version_of(text, version);
    return true;
}

HFSBI_FN void hfsbi_remote_saw(hfsbi_remote           *r,
                               const hfsb_json_value  *arguments,
                               const hfsb_tool_result *result) {
    hfsb_str      path = HFSB_LIT("");
    hfsbi_version version;
    if (!r->sandbox->o.session) return;
    (void)hfsb_json_arg_str(arguments, "path", false, &path, NULL);
    if (!result->success) {
        /* perhaps because the file has changed */
        if (hfsbi_remote_called(r, "write") &&
            hfsbi_remote_is_guarded(r, arguments) &&
            hfsbi_sandbox_version(r->sandbox, path, &version) &&
            version.hex[0])
            hfsbi_sandbox_lose(r->sandbox, path);
    } else if (hfsbi_remote_called(r, "apply_patch")) {
        hfsbi_remote_patch_saw(r, arguments, result->fields.root);
    } else if (hfsbi_remote_called(r, "read") ||
               hfsbi_remote_called(r, "write") ||
               hfsbi_remote_called(r, "edit") ||
               hfsbi_remote_called(r, "multi_edit") ||
               hfsbi_remote_called(r, "edit_lines")) {
        if (hfsbi_remote_version(r, arguments, result, &version))
            hfsbi_sandbox_saw(r->sandbox, path, &version);
    }
}
