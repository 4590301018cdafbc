/* write.c - write, edit and multi_edit; whether a file is there. */
#include "tools_private.h"

/* ---- what write and edit share ---- */

/* A session refuses to change a file that it has not read. True when it may;
   else the failure is in the result, or *st says why not even that. */
HFSBI_FN bool hfsbi_may_change(hfsb_call *call, hfsb_str path, bool edit,
                               hfsb_status *st) {
    hfsb_file_info info;
    hfsb_err       err;
    *st = HFSB_OK;
    if (!call->tools->session || hfsbi_seen_has(call->tools, path))
        return true;
    *st = hfsb_file_stat(call->tools->place, path, &info, &err);
    if (*st != HFSB_OK && *st != HFSB_NOT_FOUND && *st != HFSB_OUTSIDE &&
        *st != HFSB_REFUSED) {
        *st = hfsbi_result_err(&call->result, &err); /* it may be there */
        return false;
    }
    if (*st != HFSB_OK || info.type != HFSB_FILE_REGULAR) {
        *st = HFSB_OK;
        return true; /* new, or an error that says more than this one */
    }
    *st = edit ? hfsbi_result_fail(
                     &call->result,
                     "File %.*s has not been read this session. Read it "
                     "first.",
                     (int)path.len, path.ptr)
               : hfsbi_result_fail(
                     &call->result,
                     "File %.*s exists but has not been read this session. "
                     "Read it first, or use sandbox_edit for targeted "
                     "changes.",
                     (int)path.len, path.ptr);
    return false;
}

/* Appends what the checks have to say about the file as it is now. */
HFSBI_FN hfsb_status hfsbi_add_warnings(hfsb_call *call, hfsb_str path,
                                        hfsb_str content) {
    hfsb_buf    warnings = HFSB_INIT;
    hfsb_str    rest, line;
    size_t      mark = call->result.output.len;
    hfsb_status st;
    if (!call->tools->checker) return HFSB_OK;
    warnings.alloc = call->tools->alloc;
    hfsbi_checker_run(call->tools->checker, &call->opts, path, content,
                      &warnings);
    rest = hfsb_buf_str(&warnings);
    if (rest.len)
        hfsb_buf_append(&call->result.output,
                        HFSB_LIT("\n\nValidation warnings:"));
    while (hfsb_text_line(&rest, &line, NULL)) {
        hfsb_buf_append(&call->result.output, HFSB_LIT("\n  ! "));
        hfsb_buf_append(&call->result.output, line);
    }
    st = hfsb_buf_finish(&call->result.output, mark);
    hfsb_buf_free(&warnings);
    return st;
}

/* ---- write ---- */

static hfsb_status hfsbi_write_extra(hfsb_call               *call,
                                     const hfsb_file_written *written) {
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, &call->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_int(&w, "bytes", (long long)written->bytes);
    hfsbi_put_member_bool(&w, "created", written->created);
    hfsbi_put_member_bool(&w, "in_place", written->in_place);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, NULL);
}

HFSBI_FN hfsb_status hfsbi_tool_write(hfsb_call *call, hfsb_err *err) {
    hfsb_tools          *tools = call->tools;
    hfsb_str             path = HFSB_LIT(""), content = HFSB_LIT("");
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_written    written;
    hfsb_status          st;
    st = hfsb_json_arg_str(call->arguments, "path", true, &path, err);
    if (st == HFSB_OK)
        st =
            hfsb_json_arg_str(call->arguments, "content", true, &content, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(call->arguments, "if_sha256", false,
                               &opts.if_sha256, err);
    if (st != HFSB_OK || !hfsbi_may_change(call, path, false, &st)) return st;
    if (hfsb_file_write(tools->place, path, content, &opts, &written, err) !=
        HFSB_OK)
        return hfsbi_result_err(&call->result, err);
    hfsbi_seen_add(tools, path);
    st = hfsbi_result_ok(&call->result, "Wrote %llu bytes to %.*s",
                         written.bytes, (int)path.len, path.ptr);
    if (st == HFSB_OK) st = hfsbi_write_extra(call, &written);
    return st == HFSB_OK ? hfsbi_add_warnings(call, path, content) : st;
}

/* ---- edit ---- */

enum { HFSBI_EDIT_LINES = 100 }; /* places listed; `count` has them all */

static void hfsbi_put_edit_lines(hfsb_json_writer       *w,
                                 const hfsb_edit_result *r) {
    size_t i;
    hfsb_json_put_key(w, HFSB_LIT("lines"));
    hfsb_json_put_array(w);
    for (i = 0; r->spans && i < r->count && i < HFSBI_EDIT_LINES; i++) {
        hfsb_json_put_array(w);
        hfsb_json_put_uint(w, r->spans[i].first_line);
        hfsb_json_put_uint(w, r->spans[i].last_line);
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

static hfsb_status hfsbi_edit_extra(hfsb_call *call, const hfsb_edit_result *r,
                                    const hfsb_file_written *written) {
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, &call->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_int(&w, "count", (long long)r->count);
    hfsb_json_put_key(&w, HFSB_LIT("note"));
    if (r->note[0]) hfsb_json_put_str(&w, hfsb_cstr(r->note));
    else hfsb_json_put_null(&w);
    hfsbi_put_edit_lines(&w, r);
    hfsbi_put_member_str(&w, "diff", hfsb_buf_str(&r->diff));
    hfsbi_put_member_bool(&w, "in_place", written->in_place);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, NULL);
}

/* The edits were found good: the file is written and the result. HFSB_STALE
   with *err, and no result, when the file is no longer `before`. */
static hfsb_status hfsbi_edit_store(hfsb_call *call, hfsb_str path,
                                    hfsb_str before, hfsb_str content,
                                    const hfsb_edit_result *r, hfsb_err *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_written    written;
    char                 hex[HFSB_SHA256_HEX];
    hfsb_status          st;
    hfsb_sha256_hex(before, hex);
    opts.if_sha256 = hfsb_cstr(hex);
    st = hfsb_file_write(call->tools->place, path, content, &opts, &written,
                         err);
    if (st == HFSB_STALE) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    st = hfsbi_result_ok(&call->result, "Edited %.*s (%zu replacement%s)%s%s",
                         (int)path.len, path.ptr, r->count,
                         r->count > 1 ? "s" : "", r->note[0] ? " " : "",
                         r->note);
    if (st == HFSB_OK) st = hfsbi_edit_extra(call, r, &written);
    return st == HFSB_OK ? hfsbi_add_warnings(call, path, content) : st;
}

/* Reads, edits and writes the file; HFSB_STALE as above. */
static hfsb_status hfsbi_edit_once(hfsb_call *call, hfsb_str path,
                                   const hfsb_edit *edits, size_t count,
                                   hfsb_err *err) {
    hfsb_tools      *tools = call->tools;
    hfsb_buf         before = HFSB_INIT, after = HFSB_INIT;
    hfsb_edit_opts   opts = HFSB_INIT;
    hfsb_edit_result r;
    hfsb_status      st;
    memset(&r, 0, sizeof r);
    before.alloc = after.alloc = tools->alloc;
    opts.path = path;
    st = hfsb_file_read(tools->place, path, 0, &before, NULL, err);
    if (st == HFSB_OK)
        st = hfsb_edit_apply(hfsb_buf_str(&before), edits, count, &opts,
                             &after, &r, err);
    st = st == HFSB_OK ? hfsbi_edit_store(call, path, hfsb_buf_str(&before),
                                          hfsb_buf_str(&after), &r, err)
                       : hfsbi_result_err(&call->result, err);
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    hfsb_edit_result_free(&r);
    return st;
}

/* Parallel calls may edit one file: when another call was quicker, the edits
   are applied to what it wrote. */
static hfsb_status hfsbi_edit_file(hfsb_call *call, hfsb_str path,
                                   const hfsb_edit *edits, size_t count,
                                   hfsb_err *err) {
    unsigned    tries = 0;
    hfsb_status st;
    if (!hfsbi_may_change(call, path, true, &st)) return st;
    while ((st = hfsbi_edit_once(call, path, edits, count, err)) ==
               HFSB_STALE &&
           tries < HFSBI_TRIES)
        hfsbi_pause(tries++);
    return st == HFSB_STALE ? hfsbi_result_err(&call->result, err) : st;
}

/* The keys of one edit. A mode that does not exist is an answer of the tool,
   as in the reference, not a fault in the form: *known is then false. */
static hfsb_status hfsbi_read_edit(hfsb_call             *call,
                                   const hfsb_json_value *object,
                                   hfsb_edit *edit, bool *known,
                                   hfsb_err *err) {
    hfsb_str    mode = HFSB_LIT("replace");
    hfsb_edit   scratch = HFSB_INIT;
    hfsb_status st = hfsb_json_arg_str(object, "mode", false, &mode, err);
    *known = true;
    memset(edit, 0, sizeof *edit);
    if (st != HFSB_OK) return st;
    if (hfsb_edit_set_mode(&scratch, mode, err) == HFSB_OK)
        return hfsb_edit_from_json(object, edit, err);
    *known = false;
    return hfsbi_result_err(&call->result, err);
}

HFSBI_FN hfsb_status hfsbi_tool_edit(hfsb_call *call, hfsb_err *err) {
    hfsb_str    path = HFSB_LIT("");
    hfsb_edit   edit;
    bool        known;
    hfsb_status st =
        hfsb_json_arg_str(call->arguments, "path", true, &path, err);
    if (st == HFSB_OK)
        st = hfsbi_read_edit(call, call->arguments, &edit, &known, err);
    if (st != HFSB_OK || !known) return st;
    return hfsbi_edit_file(call, path, &edit, 1, err);
}

/* One element of `edits`; says which one an error is about. */
static hfsb_status hfsbi_read_nth_edit(hfsb_call             *call,
                                       const hfsb_json_value *object, size_t n,
                                       hfsb_edit *edit, bool *known,
                                       hfsb_err *err) {
    hfsb_err    inner = HFSB_INIT;
    hfsb_status st;
    if (hfsb_json_type_of(object) != HFSB_JSON_OBJECT)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "edits[%zu] must be an object, not %s.", n,
                          hfsb_json_type_name(hfsb_json_type_of(object)));
    st = hfsbi_check_keys(call, object, HFSBI_EDIT_NAMES, &inner);
    if (st == HFSB_OK) st = hfsbi_read_edit(call, object, edit, known, &inner);
    if (st == HFSB_ARG)
        return hfsbi_fail(err, st, 0, "edits[%zu]: %s", n, inner.msg);
    return st;
}

/* All elements of `edits`; their texts are the document's. */
static hfsb_status hfsbi_edit_list(hfsb_call *call, hfsb_str path,
                                   const hfsb_json_value *list,
                                   hfsb_err              *err) {
    const hfsb_alloc *alloc = &call->tools->alloc;
    hfsb_json_iter    it = hfsb_json_begin(list);
    size_t            n = 0, count = hfsb_json_count(list);
    bool              known = true;
    hfsb_status       st = HFSB_OK;
    hfsb_edit *edits = (hfsb_edit *)hfsbi_array(alloc, count, sizeof *edits);
    if (!edits) return HFSB_NOMEM;
    for (; st == HFSB_OK && known && hfsb_json_next(&it); n++)
        st = hfsbi_read_nth_edit(call, it.value, n, edits + n, &known, err);
    if (st == HFSB_OK && known)
        st = hfsbi_edit_file(call, path, edits, count, err);
    hfsbi_array_free(alloc, edits, count, sizeof *edits);
    return st;
}

HFSBI_FN hfsb_status hfsbi_tool_multi_edit(hfsb_call *call, hfsb_err *err) {
    hfsb_str               path = HFSB_LIT("");
    const hfsb_json_value *list = NULL;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_status            st =
        hfsb_json_arg_str(call->arguments, "path", true, &path, err);
    doc.alloc = call->tools->alloc;
    if (st == HFSB_OK)
        st = hfsb_json_arg_parsed(call->arguments, "edits", true,
                                  HFSB_JSON_ARRAY, &doc, &list, err);
    if (st == HFSB_OK) st = hfsbi_edit_list(call, path, list, err);
    hfsb_json_free(&doc);
    return st;
}

/* ---- exists ---- */

HFSBI_FN hfsb_status hfsbi_tool_exists(hfsb_call *call, hfsb_err *err) {
    hfsb_str       path = HFSB_LIT("");
    hfsb_file_info info;
    hfsb_status    st =
        hfsb_json_arg_str(call->arguments, "path", true, &path, err);
    if (st != HFSB_OK) return st;
    st = hfsb_file_stat(call->tools->place, path, &info, err);
    if (st == HFSB_OK) return hfsbi_result_ok(&call->result, "true");
    if (st == HFSB_NOT_FOUND) return hfsbi_result_ok(&call->result, "false");
    return hfsbi_result_err(&call->result, err);
}
