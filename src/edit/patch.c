/* patch.c - apply a patch in memory.

   A patch is computed section by section; later sections see the files as
   earlier ones leave them, and nothing is written. patch_parse.c makes the
   sections, patch_update.c applies the hunks of one of them to its file. */
#include "edit_private.h"

/* A patch being applied. */
typedef struct hfsbi_patching {
    const hfsb_patch_files *files;
    hfsbi_patch             patch;
    hfsb_patch_result      *result;
    hfsb_err               *err;
} hfsbi_patching;

static hfsb_status hfsbi_fail_path(hfsb_err *err, hfsb_status code,
                                   const char *before, hfsb_str path,
                                   const char *after) {
    hfsbi_fail(err, code, 0, "%s", before);
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, "%s", after);
    return code;
}

/* Reads a file as the sections so far leave it; `clean` is its clean path.
   HFSB_NOT_FOUND sets no message. */
static hfsb_status hfsbi_patch_read(hfsbi_patching *p, hfsb_str path,
                                    const hfsb_buf *clean, hfsb_buf *out) {
    hfsb_str    name = hfsb_buf_str(clean);
    size_t      i = p->result->count;
    hfsb_status st;
    while (i-- > 0) {
        const hfsb_patch_change *c = p->result->changes + i;
        hfsb_str from = hfsb_buf_str(&c->from), to = hfsb_buf_str(&c->to);
        if (c->kind != HFSB_PATCH_DELETE &&
            hfsb_str_equal(c->new_path.len ? to : from, name))
            return hfsb_buf_append(out, hfsb_buf_str(&c->content));
        if (hfsb_str_equal(from, name)) return HFSB_NOT_FOUND;
    }
    st = p->files->read(p->files->user, path, out, p->err);
    if (st != HFSB_OK && st != HFSB_NOT_FOUND && p->err && p->err->code != st)
        hfsbi_fail_path(p->err, st, "", path,
                        " cannot be read. Nothing was changed.");
    return st;
}

static hfsb_status hfsbi_refuse_existing(hfsbi_patching *p, hfsb_str path,
                                         const hfsb_buf *clean,
                                         const char     *what) {
    hfsb_buf    there = HFSB_INIT;
    hfsb_status st;
    there.alloc = p->result->alloc;
    st = hfsbi_patch_read(p, path, clean, &there);
    hfsb_buf_free(&there);
    if (st == HFSB_NOT_FOUND) return HFSB_OK;
    if (st != HFSB_OK) return st;
    return hfsbi_fail_path(p->err, HFSB_REFUSED, what, path,
                           ": there is such a file already. Delete it in the "
                           "same patch, or update it. Nothing was changed.");
}

static hfsb_status hfsbi_patch_diff(hfsb_str before, hfsb_span *spans,
                                    size_t count, hfsb_patch_change *c) {
    hfsb_diff_opts opts = HFSB_INIT;
    opts.path = c->new_path.len ? c->new_path : c->path;
    opts.old_path = c->path;
    return hfsb_diff_unified(before, hfsb_buf_str(&c->content), spans, count,
                             &opts, &c->diff, NULL);
}

static hfsb_status hfsbi_patch_add(hfsbi_patching *p, const hfsbi_section *s,
                                   hfsb_patch_change *c) {
    hfsb_span         all = HFSB_INIT;
    const hfsbi_hunk *hunk =
        s->hunk < s->hunk_end ? p->patch.hunks + s->hunk : NULL;
    size_t      i;
    hfsb_status st = hfsbi_refuse_existing(p, s->path, &c->from, "Add File ");
    if (st != HFSB_OK) return st;
    for (i = hunk ? hunk->body : 0; hunk && i < hunk->end; i++) {
        hfsb_buf_append(&c->content, p->patch.lines[i].text);
        if (i + 1 < hunk->end || !hunk->open_end)
            hfsb_buf_append_byte(&c->content, '\n');
    }
    if (c->content.status != HFSB_OK) return c->content.status;
    all.new_len = c->content.len;
    return hfsbi_patch_diff(HFSB_LIT(""), &all, 1, c);
}

static hfsb_status hfsbi_missing_file(hfsbi_patching *p, hfsb_status st,
                                      hfsb_str path) {
    if (st != HFSB_NOT_FOUND) return st;
    return hfsbi_fail_path(p->err, HFSB_IO, "File not found: ", path,
                           ". Nothing was changed.");
}

/* Updates, moves or deletes a file. */
static hfsb_status hfsbi_patch_change_file(hfsbi_patching      *p,
                                           const hfsbi_section *s,
                                           hfsb_patch_change   *c) {
    hfsb_buf      before = HFSB_INIT;
    hfsb_span     all = HFSB_INIT;
    hfsbi_updated done = HFSB_INIT;
    bool          deleted = s->kind == HFSB_PATCH_DELETE;
    hfsb_str      content;
    hfsb_status   st;
    before.alloc = p->result->alloc;
    st = hfsbi_missing_file(p, hfsbi_patch_read(p, s->path, &c->from, &before),
                            s->path);
    if (st == HFSB_OK && c->new_path.len)
        st = hfsbi_refuse_existing(p, c->new_path, &c->to, "Move to ");
    content = hfsb_buf_str(&before);
    if (st == HFSB_OK && s->hunk < s->hunk_end)
        st = hfsbi_update_file(&p->patch, s, content, c, &done, p->err);
    else if (st == HFSB_OK && !deleted)
        st = hfsb_buf_append(&c->content, content);
    if (c->note[0]) p->result->fuzzy = true;
    all.old_len = before.len;
    if (st == HFSB_OK)
        st = hfsbi_patch_diff(content, deleted ? &all : done.spans,
                              deleted ? 1 : done.count, c);
    hfsbi_array_free(&p->patch.alloc, done.spans, done.cap,
                     sizeof *done.spans);
    hfsb_buf_free(&before);
    return st;
}

static void hfsbi_change_free(hfsb_patch_change *c) {
    hfsb_buf_free(&c->content);
    hfsb_buf_free(&c->diff);
    hfsb_buf_free(&c->from);
    hfsb_buf_free(&c->to);
}

/* Sets the paths; a move of a file onto itself is dropped. */
static hfsb_status hfsbi_change_paths(hfsb_patch_change   *c,
                                      const hfsbi_section *s) {
    hfsb_status st = hfsb_path_clean(s->path, &c->from);
    c->path = s->path;
    if (st == HFSB_OK && s->new_path.len)
        st = hfsb_path_clean(s->new_path, &c->to);
    if (s->new_path.len &&
        !hfsb_str_equal(hfsb_buf_str(&c->from), hfsb_buf_str(&c->to)))
        c->new_path = s->new_path;
    return st;
}

static hfsb_status hfsbi_patch_one(hfsbi_patching *p, const hfsbi_section *s) {
    hfsb_patch_result *r = p->result;
    hfsb_patch_change  c;
    hfsb_patch_change *grown;
    hfsb_status        st;
    grown = (hfsb_patch_change *)hfsbi_array_grow(
        &r->alloc, r->changes, &r->cap, r->count + 1, sizeof *grown);
    if (!grown) return HFSB_NOMEM;
    r->changes = grown;
    memset(&c, 0, sizeof c);
    c.kind = s->kind;
    c.content.alloc = c.diff.alloc = c.from.alloc = c.to.alloc = r->alloc;
    st = hfsbi_change_paths(&c, s);
    if (st != HFSB_OK) {
        hfsbi_change_free(&c);
        return st;
    }
    st = s->kind == HFSB_PATCH_ADD ? hfsbi_patch_add(p, s, &c)
                                   : hfsbi_patch_change_file(p, s, &c);
    if (st == HFSB_OK) r->changes[r->count++] = c;
    else hfsbi_change_free(&c);
    return st;
}

hfsb_status hfsb_patch_apply(hfsb_str patch, const hfsb_patch_files *files,
                             hfsb_patch_result *result, hfsb_err *err) {
    hfsbi_patching p;
    hfsb_status    st;
    size_t         i;
    hfsbi_ok(err);
    memset(&p, 0, sizeof p);
    p.files = files;
    p.result = result;
    p.err = err;
    result->changes = NULL;
    result->count = result->cap = 0;
    result->fuzzy = false;
    st = hfsbi_patch_parse(&result->alloc, patch, &p.patch, err);
    p.patch.names = files->names;
    for (i = 0; st == HFSB_OK && i < p.patch.section_count; i++)
        st = hfsbi_patch_one(&p, p.patch.sections + i);
    hfsbi_patch_free(&p.patch);
    if (st == HFSB_OK) return hfsbi_ok(err);
    hfsb_patch_free(result);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        return hfsbi_fail_status(err, st, "The patch was not applied");
    return st;
}

void hfsb_patch_free(hfsb_patch_result *result) {
    size_t i;
    for (i = 0; i < result->count; i++) hfsbi_change_free(result->changes + i);
    hfsbi_array_free(&result->alloc, result->changes, result->cap,
                     sizeof *result->changes);
    result->changes = NULL;
    result->count = result->cap = 0;
    result->fuzzy = false;
}
