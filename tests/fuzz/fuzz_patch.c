/* fuzz_patch.c - libFuzzer target for patch.

   The input: the contents of the files a and b, then the patch, with 0x1F
   between them. Oracle: carried out in order, every change starts from a file
   that is there (or, for an added one, is not), every diff turns the old
   content into the new, an exact update alone changes the number of lines as
   its marks say, the same patch gives the same result twice; a refusal leaves
   no output. */
#include "../support/t_edit.h"
#include "must.h"

#define MAX_FILES 64

typedef struct disk {
    hfsb_str path[MAX_FILES];
    hfsb_buf text[MAX_FILES];
    size_t   count;
} disk;

/* "./a" and "a" are one file. */
static bool same_path(hfsb_str a, hfsb_str b) {
    hfsb_buf x = HFSB_INIT, y = HFSB_INIT;
    bool     same;
    MUST(hfsb_path_clean(a, &x) == HFSB_OK);
    MUST(hfsb_path_clean(b, &y) == HFSB_OK);
    same = hfsb_str_equal(hfsb_buf_str(&x), hfsb_buf_str(&y));
    hfsb_buf_free(&x);
    hfsb_buf_free(&y);
    return same;
}

static size_t find(const disk *d, hfsb_str path) {
    size_t i;
    for (i = 0; i < d->count; i++)
        if (same_path(d->path[i], path)) return i;
    return HFSB_NPOS;
}

/* Lines of text; only those that begin with `mark` unless that is 0. */
static size_t count_lines(hfsb_str text, char mark) {
    hfsb_str line;
    size_t   n = 0;
    while (hfsb_text_line(&text, &line, NULL))
        n += !mark || (line.len && line.ptr[0] == mark);
    return n;
}

/* An exact update alone makes the file longer by the lines it adds, less those
   it removes; the head of a diff counts once for each. Blocks have no marks.
   Where a lone CR may end a line, they are counted otherwise. */
static void check_length(hfsb_str before, hfsb_str patch,
                         const hfsb_patch_change *c) {
    hfsb_str after = hfsb_buf_str(&c->content);
    hfsb_str whole = patch;
    size_t   begin = hfsb_str_find(patch, HFSB_LIT("*** Begin Patch"));
    /* a line of a shell, cat <<'EOF', may stand before it, and begin so */
    patch = hfsb_str_slice(patch, begin, patch.len);
    if (c->kind != HFSB_PATCH_UPDATE || c->note[0] || begin == HFSB_NPOS ||
        (begin && whole.ptr[begin - 1] != '\n') || /* part of a line */
        hfsb_str_find(patch, HFSB_LIT("\n-- ")) != HFSB_NPOS ||
        hfsb_str_find(whole, HFSB_LIT("<<<<<<< SEARCH")) != HFSB_NPOS ||
        hfsb_str_find_byte(before, '\r') != HFSB_NPOS)
        return;
    MUST(count_lines(after, 0) + count_lines(patch, '-') ==
         count_lines(before, 0) + count_lines(patch, '+'));
}

static void put(disk *d, hfsb_str path, hfsb_str text) {
    size_t i = find(d, path);
    if (i == HFSB_NPOS) {
        i = d->count++;
        d->path[i] = path;
        memset(d->text + i, 0, sizeof d->text[i]);
    }
    hfsb_buf_truncate(d->text + i, 0);
    te_append(d->text + i, text);
}

static void drop(disk *d, size_t i) {
    hfsb_buf_free(d->text + i);
    d->count--;
    d->path[i] = d->path[d->count];
    d->text[i] = d->text[d->count];
}

static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    const disk *d = (const disk *)user;
    size_t      i = find(d, path);
    (void)err;
    if (i == HFSB_NPOS) return HFSB_NOT_FOUND;
    return hfsb_buf_append(out, hfsb_buf_str(d->text + i));
}

static void carry_out(disk *d, const hfsb_patch_change *c, hfsb_str alone) {
    size_t   i = find(d, c->path);
    hfsb_str before =
        i == HFSB_NPOS ? HFSB_LIT("") : hfsb_buf_str(d->text + i);
    MUST((i == HFSB_NPOS) == (c->kind == HFSB_PATCH_ADD));
    MUST(te_diff_fits(before, hfsb_buf_str(&c->content),
                      hfsb_buf_str(&c->diff)));
    if (alone.len) check_length(before, alone, c);
    if (c->kind == HFSB_PATCH_DELETE) {
        MUST(!c->content.len);
        drop(d, i);
        return;
    }
    put(d, c->path, hfsb_buf_str(&c->content));
    if (!c->new_path.len) return;
    MUST(!same_path(c->new_path, c->path));
    drop(d, find(d, c->path));
    MUST(find(d, c->new_path) == HFSB_NPOS);
    put(d, c->new_path, hfsb_buf_str(&c->content));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    const void       *bytes = data;
    hfsb_str          rest = hfsb_str_make((const char *)bytes, size), patch;
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT, again = HFSB_INIT;
    hfsb_err          err;
    hfsb_status       st;
    size_t            i;
    for (i = 0; i < 2; i++) {
        size_t end = hfsb_str_find_byte(rest, '\x1F');
        put(&d, i ? HFSB_LIT("b") : HFSB_LIT("a"),
            hfsb_str_slice(rest, 0, end));
        rest = end == HFSB_NPOS ? HFSB_LIT("")
                                : hfsb_str_slice(rest, end + 1, rest.len);
    }
    patch = t_exact(rest.ptr, rest.len);
    files.read = read_file;
    files.user = &d;
    st = hfsb_patch_apply(patch, &files, &r, &err);
    MUST(hfsb_patch_apply(patch, &files, &again, NULL) == st);
    MUST(again.count == r.count && again.fuzzy == r.fuzzy);
    if (st != HFSB_OK) {
        MUST(err.code == st && err.msg[0] && !r.count && !r.changes);
        MUST(te_holds_text(err.msg, "Nothing was changed"));
    }
    for (i = 0; i < r.count && d.count < MAX_FILES - 2; i++) {
        MUST(te_same(&again.changes[i].content,
                     hfsb_buf_str(&r.changes[i].content)));
        MUST(!r.changes[i].note[0] || r.fuzzy);
        carry_out(&d, r.changes + i,
                  r.count == 1 ? patch : hfsb_str_make("", 0));
    }
    hfsb_patch_free(&r);
    hfsb_patch_free(&again);
    while (d.count) drop(&d, 0);
    t_drop(patch);
    return 0;
}
