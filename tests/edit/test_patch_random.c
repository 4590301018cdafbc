/* test_patch_random.c - random patches give the described file. */
#include "../support/t_patch.h"

/* A patch that describes the change of a random file, and its result. */
static void random_patch(unsigned long long *seed, hfsb_str file,
                         hfsb_buf *patch, hfsb_buf *want) {
    te_append(patch, HFSB_LIT("*** Begin Patch\n*** Update File: f\n"));
    while (file.len) {
        size_t hunk = te_below(seed, 3), i, lines = 1 + te_below(seed, 5);
        if (hunk == 0 || file.len < 8) { /* lines that stay */
            for (i = 0; i < lines; i++) te_append(want, te_line(&file));
            continue;
        }
        te_append(patch, HFSB_LIT("@@\n"));
        for (i = 0; i < lines && file.len; i++) {
            hfsb_str line = te_line(&file);
            size_t   kind = i == 0 ? 1 : te_below(seed, 3);
            if (kind == 0) {
                te_append(patch, HFSB_LIT("+put\n"));
                te_append(want, HFSB_LIT("put\n"));
            }
            te_append(patch, kind == 1 ? HFSB_LIT("-") : HFSB_LIT(" "));
            te_append(patch, line);
            if (kind != 1) te_append(want, line);
        }
    }
    te_append(patch, HFSB_LIT("*** End Patch\n"));
}

static void random_patches_give_the_described_file(void) {
    unsigned long long seed = 99;
    size_t rounds = t_quick() ? 1000 : 10000, applied = 0;
    while (rounds--) {
        hfsb_buf          file = HFSB_INIT, patch = HFSB_INIT;
        hfsb_buf          want = HFSB_INIT;
        one_file          one = HFSB_INIT;
        disk              d = HFSB_INIT;
        hfsb_patch_files  files = HFSB_INIT;
        hfsb_patch_result r = HFSB_INIT;
        hfsb_err          err;
        hfsb_str          text;
        size_t            i, n = 1 + te_below(&seed, 25);
        hfsb_status       st;
        for (i = 0; i < n; i++)
            if (hfsb_buf_printf(&file, "%sline %zu\n",
                                te_below(&seed, 2) ? "  " : "",
                                te_below(&seed, 9) ? i : 0) != HFSB_OK)
                abort();
        random_patch(&seed, hfsb_buf_str(&file), &patch, &want);
        one.path = "f";
        one.text = file.ptr;
        d.files = &one;
        d.count = 1;
        files.read = read_file;
        files.user = &d;
        text = t_exact(patch.ptr, patch.len);
        st = hfsb_patch_apply(text, &files, &r, &err);
        /* the same lines twice make it ambiguous, or take another place */
        if (st == HFSB_OK) {
            applied += te_same(&r.changes[0].content, hfsb_buf_str(&want));
            T_CHECK(te_diff_fits(hfsb_buf_str(&file),
                                 hfsb_buf_str(&r.changes[0].content),
                                 hfsb_buf_str(&r.changes[0].diff)));
        } else {
            T_CHECK(te_refusal_holds(st, &err) && st != HFSB_NOMEM);
        }
        hfsb_patch_free(&r);
        t_drop(text);
        hfsb_buf_free(&file);
        hfsb_buf_free(&patch);
        hfsb_buf_free(&want);
    }
    T_CHECK(applied > (t_quick() ? 300 : 3000));
}

int main(void) {
    T_RUN(random_patches_give_the_described_file);
    return T_END();
}
