/* patch_blocks.c - read SEARCH/REPLACE blocks.

       path/of/the/file             before or inside the ``` fence; without it
       <<<<<<< SEARCH               the path of the block before
       old lines                    (none: a new file)
       =======
       new lines
       >>>>>>> REPLACE

   A block is a hunk; those of one file need not come in its order. Other text
   around them is skipped. */
#include "edit_private.h"

/* True for a line of seven times `c` and then the word. */
static bool hfsbi_is_block_mark(hfsb_str line, char c, const char *word) {
    size_t i;
    line = hfsbi_trim_end(line);
    if (line.len < 7) return false;
    for (i = 0; i < 7; i++)
        if (line.ptr[i] != c) return false;
    return hfsb_str_equal(hfsb_str_slice(line, 7, line.len), hfsb_cstr(word));
}

HFSBI_FN bool hfsbi_is_block_head(hfsb_str line) {
    return hfsbi_is_block_mark(line, '<', " SEARCH");
}

/* The path on a line, without the marks of a heading, a list or bold text. */
static hfsb_str hfsbi_block_path(hfsb_str line) {
    line = hfsbi_trim(line);
    while (line.len && (line.ptr[0] == '#' || line.ptr[0] == '*' ||
                        line.ptr[0] == '`' || hfsbi_is_blank(line.ptr[0])))
        line = hfsb_str_slice(line, 1, line.len);
    while (line.len &&
           (line.ptr[line.len - 1] == ':' || line.ptr[line.len - 1] == '*' ||
            line.ptr[line.len - 1] == '`'))
        line.len--;
    return hfsbi_trim(line);
}

/* The path above the block that starts at line `head`, looked for down to line
   `floor`; empty if not found. */
static hfsb_str hfsbi_path_above(const hfsbi_patch *p, size_t floor,
                                 size_t head) {
    const hfsb_str *l = p->text.items;
    while (head-- > floor)
        if (hfsbi_trim(l[head]).len && !hfsbi_is_fence(l[head]))
            return hfsbi_block_path(l[head]);
    return HFSB_LIT("");
}

/* The lines of a block: its marks are at head, middle and end. */
typedef struct hfsbi_block_lines {
    size_t head, middle, end;
} hfsbi_block_lines;

/* Finds the marks of the block at line `head`. */
static hfsb_status hfsbi_find_block(const hfsbi_patch *p, size_t head,
                                    hfsbi_block_lines *b, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    size_t          i;
    b->head = head;
    b->middle = HFSB_NPOS;
    b->end = head;
    for (i = head + 1; i < p->last; i++) {
        if (hfsbi_is_block_mark(l[i], '=', "")) {
            if (b->middle != HFSB_NPOS)
                return hfsbi_patch_error(
                    err, i,
                    "a second ======= in one block. Leave the line out of the "
                    "block, or use another format.");
            b->middle = i;
        }
        if (hfsbi_is_block_head(l[i])) break;
        if (hfsbi_is_block_mark(l[i], '>', " REPLACE")) {
            b->end = i;
            if (b->middle != HFSB_NPOS) return HFSB_OK;
            break;
        }
    }
    return hfsbi_patch_error(err, head,
                             "this block needs a line ======= and then a line "
                             ">>>>>>> REPLACE.");
}

/* True when the last section goes on with this path. */
static bool hfsbi_goes_on(const hfsbi_patch *p, hfsb_str path) {
    const hfsbi_section *s;
    if (!p->section_count) return false;
    s = p->sections + p->section_count - 1;
    return s->kind == HFSB_PATCH_UPDATE && hfsb_str_equal(s->path, path);
}

/* Adds a block to the section of its file. */
static hfsb_status hfsbi_add_block(hfsbi_patch *p, const hfsbi_block_lines *b,
                                   hfsb_str path, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    size_t          i, search = 0;
    hfsb_status     st = HFSB_OK;
    for (i = b->head + 1; i < b->middle; i++) search += hfsbi_trim(l[i]).len;
    if (!search && b->end == b->middle + 1)
        return hfsbi_patch_error(err, b->head, "this block has no lines.");
    if (!search || !hfsbi_goes_on(p, path))
        st = hfsbi_add_section(p, search ? HFSB_PATCH_UPDATE : HFSB_PATCH_ADD,
                               path);
    if (st == HFSB_OK) st = hfsbi_add_hunk(p, b->head);
    if (st != HFSB_OK) return st;
    p->hunks[p->hunk_count - 1].block = true;
    for (i = b->head + 1; st == HFSB_OK && search && i < b->middle; i++)
        st = hfsbi_add_hunk_line(p, '-', l[i]);
    for (i = b->middle + 1; st == HFSB_OK && i < b->end; i++)
        st = hfsbi_add_hunk_line(p, '+', l[i]);
    return st;
}

HFSBI_FN hfsb_status hfsbi_parse_blocks(hfsbi_patch *p, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_str        path = HFSB_LIT(""), above;
    size_t          i, floor = p->first;
    hfsb_status     st = HFSB_OK;
    for (i = p->first; st == HFSB_OK && i < p->last; i++) {
        hfsbi_block_lines b;
        if (!hfsbi_is_block_head(l[i])) continue;
        above = hfsbi_path_above(p, floor, i);
        if (above.len) path = above;
        if (!path.len)
            return hfsbi_patch_error(
                err, i, "a line with the path of the file must come first.");
        st = hfsbi_find_block(p, i, &b, err);
        if (st != HFSB_OK) return st;
        st = hfsbi_add_block(p, &b, path, err);
        i = b.end;
        floor = i + 1;
    }
    return st;
}
