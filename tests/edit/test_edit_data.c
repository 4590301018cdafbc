/* test_edit_data.c - edits and patches collected from other tools, found below
   $HFSB_TEST_DATA; without it everything is skipped. */
#include "../support/t_edit.h"

/* ---- files of one JSON object a line ---- */

typedef void case_fn(const hfsb_json_value *value, const char *id);

static size_t each_case(const char *name, case_fn *fn) {
    hfsb_buf file = HFSB_INIT;
    hfsb_str rest;
    size_t   count = 0;
    if (!t_data_file(name, &file)) return HFSB_NPOS;
    for (rest = hfsb_buf_str(&file); rest.len; count++) {
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_str      line = te_line(&rest), id;
        char          number[32];
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        snprintf(number, sizeof number, "line %zu", count + 1);
        id = hfsb_json_str(hfsb_json_get(doc.root, "id"), hfsb_cstr(number));
        fn(doc.root, id.ptr);
        hfsb_json_free(&doc);
    }
    hfsb_buf_free(&file);
    return count;
}

static hfsb_str text_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}

static bool is_debatable(const hfsb_json_value *value) {
    return hfsb_json_bool(hfsb_json_get(value, "debatable"), false);
}

static hfsb_status expected(const hfsb_json_value *value) {
    static const struct {
        const char *name;
        hfsb_status code;
    } list[] = {{"ok", HFSB_OK},
                {"not_found", HFSB_NOT_FOUND},
                {"ambiguous", HFSB_AMBIGUOUS},
                {"refuse", HFSB_REFUSED},
                {"parse_error", HFSB_SYNTAX},
                {"io_error", HFSB_IO}};
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        if (hfsb_str_equal(text_of(value, "expect"), hfsb_cstr(list[i].name)))
            return list[i].code;
    return HFSB_STATUS_COUNT;
}

static void complain(const char *id, const te_run *run) {
    printf("  %s: %s %s\n  %s\n", id, hfsb_status_text(run->st), run->err.msg,
           run->out.ptr ? run->out.ptr : "");
}

/* ---- results of the reference ---- */

static void check_vector(const hfsb_json_value *v, const char *id) {
    hfsb_edit   edit = HFSB_INIT;
    te_run      run = HFSB_INIT;
    bool        ok;
    hfsb_status st = hfsb_edit_from_json(v, &edit, &run.err);
    if (st == HFSB_OK) {
        run = te_edits(text_of(v, "content"), &edit, 1, NULL);
        st = run.st;
    } else {
        T_CHECK(te_refusal_holds(st, &run.err));
    }
    if (hfsb_json_bool(hfsb_json_get(v, "ok"), false))
        ok = st == HFSB_OK && te_same(&run.out, text_of(v, "result")) &&
             (long long)run.r.count ==
                 hfsb_json_int(hfsb_json_get(v, "count"), -1) &&
             hfsb_str_equal(hfsb_cstr(run.r.note), text_of(v, "note"));
    else
        ok = st != HFSB_OK &&
             hfsb_str_starts(hfsb_cstr(run.err.msg), text_of(v, "error"));
    T_CHECK(ok);
    if (!ok) complain(id, &run);
    te_free(&run);
}

static void edit_agrees_with_the_reference(void) {
    size_t count = each_case("vectors/edits.jsonl", check_vector);
    T_CHECK(count == HFSB_NPOS || count == 800);
}

/* ---- cases of other tools ---- */

static size_t undisputed, debatable;

static void check_edit_case(const hfsb_json_value *v, const char *id) {
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    bool      ok;
    T_CHECK(hfsb_edit_from_json(v, &edit, NULL) == HFSB_OK);
    run = te_edits(text_of(v, "content"), &edit, 1, NULL);
    ok = run.st == expected(v) &&
         (run.st != HFSB_OK || te_same(&run.out, text_of(v, "result")));
    /* In the debatable ones, too, our choice is the one proposed there. */
    if (is_debatable(v)) debatable++;
    else undisputed++;
    T_CHECK(ok);
    if (!ok) complain(id, &run);
    te_free(&run);
}

static void edit_passes_the_cases_of_other_tools(void) {
    undisputed = debatable = 0;
    if (each_case("data/edit_cases.jsonl", check_edit_case) == HFSB_NPOS)
        return;
    T_CHECK(undisputed == 410 && debatable == 73);
}

static void check_multi_case(const hfsb_json_value *v, const char *id) {
    hfsb_edit      edits[16];
    size_t         count = 0;
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(v, "edits"));
    hfsb_status    want = expected(v);
    te_run         run;
    bool           ok;
    memset(edits, 0, sizeof edits);
    while (hfsb_json_next(&it) && count < TE_COUNT(edits))
        T_CHECK(hfsb_edit_from_json(it.value, edits + count++, NULL) ==
                HFSB_OK);
    if (!count) want = HFSB_ARG; /* no edits at all */
    run = te_edits(text_of(v, "content"), edits, count, NULL);
    ok = (run.st == want || /* m-seq: reported as "not found", with the reason */
          (is_debatable(v) && run.st == HFSB_NOT_FOUND)) &&
         (run.st != HFSB_OK || te_same(&run.out, text_of(v, "result")));
    T_CHECK(ok);
    if (!ok) complain(id, &run);
    te_free(&run);
}

static void edits_pass_the_cases_of_other_tools(void) {
    size_t count = each_case("data/multi_edit_cases.jsonl", check_multi_case);
    T_CHECK(count == HFSB_NPOS || count == 25);
}

/* ---- patches ---- */

/* Debatable cases where we differ on purpose: Add and Move onto a file that
   exists are refused, and bytes that no hunk names do not change. */
static const struct {
    const char *id;
    hfsb_status code;
    const char *text;
} our_patches[] = {
    {"codex-s010", HFSB_REFUSED, NULL},
    {"codex-s011", HFSB_REFUSED, NULL},
    {"cline-p-dup", HFSB_REFUSED, NULL},
    {"codex-t-crlf-eof", HFSB_OK, "ONE\r\ntwo"},
};

static hfsb_status read_member(void *user, hfsb_str path, hfsb_buf *out,
                               hfsb_err *err) {
    const hfsb_json_value *files = (const hfsb_json_value *)user;
    hfsb_json_iter         it = hfsb_json_begin(files);
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, path))
            return hfsb_buf_append(out,
                                   hfsb_json_str(it.value, HFSB_LIT("")));
        if (hfsb_str_starts(it.key, path) && it.key.ptr[path.len] == '/') {
            err->code = HFSB_IO;
            snprintf(err->msg, sizeof err->msg,
                     "Is a directory. Nothing was changed.");
            return HFSB_IO;
        }
    }
    return HFSB_NOT_FOUND;
}

/* The file after all changes; NULL if it does not exist. */
static const hfsb_buf *last_content(const hfsb_patch_result *r,
                                    hfsb_str path, bool *touched) {
    size_t i = r->count;
    *touched = true;
    while (i-- > 0) {
        const hfsb_patch_change *c = r->changes + i;
        hfsb_str now = c->new_path.len ? c->new_path : c->path;
        if (c->kind != HFSB_PATCH_DELETE && hfsb_str_equal(now, path))
            return &c->content;
        if (hfsb_str_equal(c->path, path)) return NULL;
    }
    *touched = false;
    return NULL;
}

/* The files are exactly those of `want`. */
static bool files_are(const hfsb_json_value *files,
                      const hfsb_json_value *want,
                      const hfsb_patch_result *r) {
    hfsb_json_iter  it;
    const hfsb_buf *now;
    bool            touched;
    size_t          i;
    for (it = hfsb_json_begin(want); hfsb_json_next(&it);) {
        now = last_content(r, it.key, &touched);
        if (touched ? !now || !te_same(now, hfsb_json_str(it.value,
                                                          HFSB_LIT("")))
                    : !hfsb_str_equal(
                          hfsb_json_str(it.value, HFSB_LIT("?")),
                          hfsb_json_str(hfsb_json_get(files, it.key.ptr),
                                        HFSB_LIT("??"))))
            return false;
    }
    for (it = hfsb_json_begin(files); hfsb_json_next(&it);)
        if (!hfsb_json_get(want, it.key.ptr) &&
            (last_content(r, it.key, &touched) || !touched))
            return false;
    for (i = 0; i < r->count; i++) {
        const hfsb_patch_change *c = r->changes + i;
        hfsb_str path = c->new_path.len ? c->new_path : c->path;
        bool     found = !last_content(r, path, &touched);
        for (it = hfsb_json_begin(want); hfsb_json_next(&it);)
            found = found || hfsb_str_equal(it.key, path);
        if (!found) return false;
    }
    return true;
}

static void check_patch_case(const hfsb_json_value *v, const char *id) {
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    hfsb_err          err;
    hfsb_str patch = t_exact(text_of(v, "patch").ptr, text_of(v, "patch").len);
    hfsb_status want = expected(v), st;
    const char *ours = NULL;
    size_t      i;
    bool        ok;
    files.read = read_member;
    files.user = (void *)(uintptr_t)hfsb_json_get(v, "files");
    for (i = 0; i < TE_COUNT(our_patches); i++)
        if (!strcmp(our_patches[i].id, id)) {
            T_CHECK(is_debatable(v));
            want = our_patches[i].code;
            ours = our_patches[i].text;
        }
    st = hfsb_patch_apply(patch, &files, &r, &err);
    ok = st == want;
    if (st == HFSB_OK && ours)
        ok = ok && te_same(&r.changes[0].content, hfsb_cstr(ours));
    else if (st == HFSB_OK)
        ok = ok && files_are(hfsb_json_get(v, "files"),
                             hfsb_json_get(v, "result_files"), &r);
    else
        T_CHECK(te_refusal_holds(st, &err));
    T_CHECK(ok);
    if (!ok)
        printf("  %s: %s %s\n", id, hfsb_status_text(st), err.msg);
    hfsb_patch_free(&r);
    t_drop(patch);
}

static void patch_passes_the_cases_of_other_tools(void) {
    size_t count = each_case("data/patch_cases.jsonl", check_patch_case);
    T_CHECK(count == HFSB_NPOS || count == 100);
}

int main(void) {
    T_RUN(edit_agrees_with_the_reference);
    T_RUN(edit_passes_the_cases_of_other_tools);
    T_RUN(edits_pass_the_cases_of_other_tools);
    T_RUN(patch_passes_the_cases_of_other_tools);
    return T_END();
}
