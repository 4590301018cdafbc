/* tool_patch.c - apply_patch: many files at once. Depends on: file, patch,
   call. */
#include "tool.h"

/* A file that the patch looked at, as it was then. */
typedef struct hfsbi_patch_seen {
    hfsb_str       path; /* shows the patch's bytes, or those of a change */
    hfsb_file_info info;
    bool           used;
} hfsbi_patch_seen;

typedef struct hfsbi_patch_call {
    hfsb_call         *call;
    hfsb_patch_result  result;
    hfsb_file_writer **writers; /* one for each change; NULL for a deletion */
    hfsbi_patch_seen  *seen;
    size_t             seen_count, seen_cap;
    bool               refused; /* the result says why */
} hfsbi_patch_call;

static hfsb_status hfsbi_patch_load(void *user, hfsb_str path, hfsb_buf *out,
                                    hfsb_err *err) {
    hfsbi_patch_call *p = (hfsbi_patch_call *)user;
    hfsb_tools       *tools = p->call->tools;
    hfsbi_patch_seen  one, *grown = p->seen;
    hfsb_status       st;
    if (!hfsbi_may_change(p->call, path, true, &st)) {
        p->refused = true;
        return st == HFSB_OK ? hfsbi_fail(err, HFSB_REFUSED, 0, "not read")
                             : st;
    }
    memset(&one, 0, sizeof one);
    one.path = path;
    st = hfsb_file_read(tools->place, path, 0, out, &one.info, err);
    if (st != HFSB_OK) return st;
    if (p->seen_count == p->seen_cap)
        grown = (hfsbi_patch_seen *)hfsbi_array_grow(
            &tools->alloc, p->seen, &p->seen_cap, p->seen_count + 1,
            sizeof one);
    if (!grown) return HFSB_NOMEM;
    p->seen = grown;
    p->seen[p->seen_count++] = one;
    return HFSB_OK;
}

/* The file as it was when it was read; NULL when it was not, or when an earlier
   change of the same patch has used that. */
static hfsbi_patch_seen *hfsbi_patch_was(hfsbi_patch_call *p, hfsb_str path) {
    size_t i;
    for (i = 0; i < p->seen_count; i++)
        if (!p->seen[i].used && hfsb_str_equal(p->seen[i].path, path))
            return &p->seen[i];
    return NULL;
}

/* Writes the new content of one change beside its place. A file that moves
   keeps its mode. */
static hfsb_status hfsbi_patch_prepare(hfsbi_patch_call        *p,
                                       const hfsb_patch_change *c,
                                       hfsb_file_writer       **writer,
                                       hfsb_err                *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsbi_patch_seen    *was;
    hfsb_str             path = c->new_path.len ? c->new_path : c->path;
    hfsb_status          st;
    if (c->kind == HFSB_PATCH_DELETE || *writer) return HFSB_OK;
    was = hfsbi_patch_was(p, c->path);
    if (was && c->new_path.len) opts.mode = was->info.mode;
    else if (was) opts.if_same = &was->info;
    st =
        hfsb_file_writer_open(p->call->tools->place, path, &opts, writer, err);
    if (st != HFSB_OK) return st;
    if (was) was->used = true;
    return hfsb_file_writer_append(*writer, hfsb_buf_str(&c->content), err);
}

/* Carries one change out. */
static hfsb_status hfsbi_patch_commit(hfsbi_patch_call        *p,
                                      const hfsb_patch_change *c,
                                      hfsb_file_writer       **writer,
                                      hfsb_err                *err) {
    hfsb_tools *tools = p->call->tools;
    hfsb_status st = hfsbi_patch_prepare(p, c, writer, err);
    if (st == HFSB_OK && *writer) {
        st = hfsb_file_writer_commit(*writer, NULL, err);
        if (st == HFSB_OK)
            hfsbi_seen_add(tools, c->new_path.len ? c->new_path : c->path);
    }
    if (st == HFSB_OK && (!*writer || c->new_path.len))
        st = hfsb_file_remove(tools->place, c->path, err);
    return st;
}

/* All new contents are on the disk before the first file changes, so that a
   full disk or a missing permission costs nothing. What cannot be prepared
   because an earlier part of the patch must make room for it (it deletes or
   moves the file that becomes a directory) waits for its turn. */
static hfsb_status hfsbi_patch_store(hfsbi_patch_call *p, size_t *done,
                                     hfsb_err *err) {
    const hfsb_patch_change *c = p->result.changes;
    hfsb_status              st = HFSB_OK;
    bool                     room = false;
    size_t                   i;
    for (i = 0; st == HFSB_OK && i < p->result.count; i++) {
        st = hfsbi_patch_prepare(p, c + i, p->writers + i, err);
        if (st != HFSB_OK && st != HFSB_NOMEM && room) st = HFSB_OK;
        if (c[i].kind == HFSB_PATCH_DELETE || c[i].new_path.len) room = true;
    }
    for (*done = 0; st == HFSB_OK && *done < p->result.count;) {
        st = hfsbi_patch_commit(p, c + *done, p->writers + *done, err);
        if (st == HFSB_OK) ++*done;
    }
    return st;
}

static hfsb_status hfsbi_patch_say(hfsbi_patch_call *p) {
    static const char *const words[] = {"Added", "Deleted", "Updated"};
    hfsbi_sink               sink = hfsbi_sink_begin(&p->call->result.output);
    size_t                   i;
    for (i = 0; i < p->result.count; i++) {
        const hfsb_patch_change *c = p->result.changes + i;
        hfsbi_putf(&sink, "%s%s ", i ? "\n" : "", words[c->kind]);
        hfsbi_put(&sink, c->path);
        if (c->new_path.len) {
            hfsbi_put(&sink, HFSB_LIT(", moved to "));
            hfsbi_put(&sink, c->new_path);
        }
    }
    if (p->result.fuzzy)
        hfsbi_put(&sink, HFSB_LIT("\n(context matched after trimming)"));
    p->call->result.success = true;
    return hfsbi_sink_end(&sink);
}

static hfsb_status hfsbi_patch_extra(hfsbi_patch_call *p) {
    hfsb_json_writer w;
    hfsb_buf         diff = HFSB_INIT;
    hfsb_status      st = HFSB_OK, end;
    size_t           i;
    diff.alloc = p->call->tools->alloc;
    for (i = 0; st == HFSB_OK && i < p->result.count; i++)
        st = hfsb_buf_append(&diff, hfsb_buf_str(&p->result.changes[i].diff));
    hfsb_json_writer_init(&w, &p->call->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_int(&w, "count", (long long)p->result.count);
    hfsbi_put_member_str(&w, "diff", hfsb_buf_str(&diff));
    hfsb_json_put_end(&w);
    end = hfsb_json_writer_finish(&w, NULL);
    hfsb_buf_free(&diff);
    return st == HFSB_OK ? end : st;
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

static hfsb_status hfsbi_patch_call_run(hfsbi_patch_call *p, hfsb_str text,
                                        hfsb_err *err) {
    hfsb_tool_result *r = &p->call->result;
    hfsb_patch_files  files;
    size_t            done = 0;
    hfsb_status       st;
    files.read = hfsbi_patch_load;
    files.user = p;
    st = hfsb_patch_apply(text, &files, &p->result, err);
    if (p->refused) return st == HFSB_NOMEM ? st : HFSB_OK;
    if (st != HFSB_OK) return hfsbi_result_err(r, err);
    p->writers = (hfsb_file_writer **)hfsbi_array(
        &p->call->tools->alloc, p->result.count, sizeof *p->writers);
    if (!p->writers) return HFSB_NOMEM;
    memset((void *)p->writers, 0, p->result.count * sizeof *p->writers);
    st = hfsbi_patch_store(p, &done, err);
    if (st != HFSB_OK && done > 0)
        hfsbi_err_add(err, " (%zu of %zu changes were carried out before.)",
                      done, p->result.count);
    if (st != HFSB_OK) return hfsbi_result_err(r, err);
    st = hfsbi_patch_say(p);
    if (st == HFSB_OK) st = hfsbi_patch_extra(p);
    return st == HFSB_OK ? hfsbi_patch_warn(p) : st;
}

HFSBI_FN hfsb_status hfsbi_tool_apply_patch(hfsb_call *call, hfsb_err *err) {
    const hfsb_alloc *alloc = &call->tools->alloc;
    hfsbi_patch_call  p;
    hfsb_str          text = HFSB_LIT("");
    size_t            i;
    hfsb_status       st =
        hfsb_json_arg_str(call->arguments, "patch", true, &text, err);
    if (st != HFSB_OK) return st;
    memset(&p, 0, sizeof p);
    p.call = call;
    p.result.alloc = *alloc;
    st = hfsbi_patch_call_run(&p, text, err);
    for (i = 0; p.writers && i < p.result.count; i++)
        hfsb_file_writer_close(p.writers[i]);
    hfsbi_array_free(alloc, (void *)p.writers, p.result.count,
                     sizeof *p.writers);
    hfsbi_array_free(alloc, p.seen, p.seen_cap, sizeof *p.seen);
    hfsb_patch_free(&p.result);
    return st;
}
