/* edit.c - apply one or many edits. */
#include "edit_private.h"

typedef struct hfsbi_place {
    size_t start, end;         /* in the content */
    size_t text_pos, text_len; /* in plan->texts */
    size_t order;              /* as found: breaks ties */
    bool   appended;           /* put behind a match */
    size_t edit;
} hfsbi_place;

typedef struct hfsbi_edit_plan {
    hfsb_str              content;
    const hfsb_edit      *edits;
    size_t                count;
    const hfsb_edit_opts *opts;
    hfsb_alloc            alloc;
    hfsb_buf              texts; /* replacements, one behind the other */
    hfsbi_place          *places;
    size_t                place_count, place_cap;
    unsigned              rungs; /* bit of each rung used */
    bool                  stripped, reindented;
    hfsb_err             *err;
} hfsbi_edit_plan;

/* ==== edit plan ==== */

/* one edit: checked, searched, refused or turned into places
   with their new text. */

/* One edit of the plan while it is looked at. */
typedef struct hfsbi_case {
    hfsbi_edit_plan *plan;
    const hfsb_edit *edit;
    size_t           index;
    hfsbi_file       file;
    hfsbi_line_cache cache[2];
    hfsb_buf         old_copy, new_copy;
    hfsb_str         old_text, new_text; /* LF only */
    hfsb_str         raw_new;
    hfsbi_found      found;
} hfsbi_case;

/* "Edit 2 of 3: " when there are several. */
static hfsb_status hfsbi_refuse(const hfsbi_case *c, hfsb_status code,
                                const char *format, ...) HFSBI_PRINTF(3, 4);

static hfsb_status hfsbi_refuse(const hfsbi_case *c, hfsb_status code,
                                const char *format, ...) {
    hfsb_err *err = c->plan->err;
    char      text[400];
    va_list   ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    hfsbi_fail(err, code, 0, "%s", "");
    if (c->plan->count > 1)
        hfsbi_err_add(err, "Edit %zu of %zu: ", c->index + 1, c->plan->count);
    hfsbi_err_add(err, "%s", text);
    return code;
}

static hfsbi_hint hfsbi_case_hint(const hfsbi_case *c) {
    hfsbi_hint hint;
    hint.alloc = &c->plan->alloc;
    hint.file = &c->file;
    hint.old_text = c->old_text;
    hint.new_text = c->new_text;
    return hint;
}

/* ---- refusals ---- */

static bool hfsbi_equal_any_case(hfsb_str a, hfsb_str b) {
    size_t i;
    for (i = 0; i < a.len && i < b.len; i++)
        if (hfsbi_lower(a.ptr[i]) != hfsbi_lower(b.ptr[i])) return false;
    return a.len == b.len;
}

static bool hfsbi_is_prose(const hfsbi_edit_plan *plan) {
    hfsb_str suffix =
        plan->opts ? hfsb_path_suffix(plan->opts->path) : HFSB_LIT("");
    return hfsbi_equal_any_case(suffix, HFSB_LIT(".md")) ||
           hfsbi_equal_any_case(suffix, HFSB_LIT(".txt"));
}

static hfsb_status hfsbi_check_omission(const hfsbi_case *c) {
    hfsb_str    line;
    hfsb_status st;
    if (c->edit->exact || hfsbi_is_prose(c->plan)) return HFSB_OK;
    line = hfsbi_find_omission(c->new_text, c->old_text, c->file.text);
    if (!line.len) return HFSB_OK;
    st = hfsbi_refuse(c, HFSB_REFUSED,
                      "new_str has a line that stands for code left out: \"");
    hfsbi_err_quote(c->plan->err, line, 120);
    hfsbi_err_add(c->plan->err,
                  "\". It would be written into the file as it is. Send the "
                  "code itself, or a smaller old_str and new_str; exact=true "
                  "writes the line. Nothing was changed.");
    return st;
}

/* What can be told before any search. */
static hfsb_status hfsbi_check_texts(const hfsbi_case *c) {
    if (c->edit->mode == HFSB_EDIT_REPLACE &&
        hfsb_str_equal(c->old_text, c->new_text))
        return hfsbi_refuse(c, HFSB_REFUSED,
                            "old_str and new_str must differ.%s Nothing was "
                            "changed.",
                            hfsb_str_equal(c->edit->old_str, c->edit->new_str)
                                ? ""
                                : " They differ in line endings only, and "
                                  "those are the file's.");
    if (!c->old_text.len && c->file.text.len)
        return hfsbi_refuse(
            c, HFSB_REFUSED,
            "old_str is empty but the file is not. To replace the whole file "
            "use write; to insert text give the text before it as old_str "
            "and mode append_after. Nothing was changed.");
    return hfsbi_check_omission(c);
}

static hfsb_status hfsbi_not_found(const hfsbi_case *c) {
    hfsbi_hint  hint = hfsbi_case_hint(c);
    hfsb_status st = hfsbi_refuse(
        c, HFSB_NOT_FOUND, "old_str not found in file. Nothing was changed.");
    size_t i;
    for (i = 0; i < c->index; i++)
        if (hfsb_str_find(c->plan->edits[i].new_str, c->edit->old_str) !=
            HFSB_NPOS) {
            hfsbi_err_add(c->plan->err,
                          " It is in new_str of edit %zu, but every edit is "
                          "looked for in the file as it was before: join the "
                          "two edits into one.",
                          i + 1);
            return st;
        }
    hfsbi_hint_not_found(&hint, c->plan->err);
    return st;
}

static hfsb_status hfsbi_ambiguous(const hfsbi_case *c) {
    hfsbi_hint  hint = hfsbi_case_hint(c);
    size_t      n = c->found.count;
    hfsb_status st = hfsbi_refuse(
        c, HFSB_AMBIGUOUS,
        "old_str appears %zu times. Use replace_all=true or provide more "
        "context. Nothing was changed.",
        n > 1 ? n : 2);
    hfsbi_hint_ambiguous(&hint, &c->found, c->plan->err);
    return st;
}

static size_t hfsbi_count_visible(hfsb_str s) {
    size_t i, n = 0;
    for (i = 0; i < s.len; i++) /* characters, not bytes */
        n += (unsigned char)s.ptr[i] > ' ' &&
             ((unsigned char)s.ptr[i] & 0xC0u) != 0x80u;
    return n;
}

/* The part of the file where `whole` would stand if it were there already:
   around the match for a replacement, next to it for an insertion. */
static hfsb_str hfsbi_applied_zone(const hfsbi_case *c, size_t len,
                                   size_t *from) {
    const hfsbi_match *m = c->found.items;
    hfsb_str           text = c->file.text;
    bool               replace = c->edit->mode == HFSB_EDIT_REPLACE;
    bool               append = c->edit->mode == HFSB_EDIT_APPEND_AFTER;
    size_t             last = replace ? m->end : m->start;
    size_t             first = replace ? m->start : m->end;
    size_t             to = len < text.len - first ? first + len : text.len;
    *from = last > len ? last - len : 0;
    if (append) *from = m->end;
    else if (!replace) to = m->start;
    return hfsb_str_slice(text, *from, to);
}

/* An insertion that is there already, at the only match: a repeated call, or
   a model that forgot. */
static hfsb_status hfsbi_check_applied(const hfsbi_case *c) {
    hfsb_buf copy = HFSB_INIT;
    size_t   mark;
    hfsb_str whole = c->new_text, zone;
    size_t   visible = hfsbi_count_visible(whole), old_visible = 0, from, at;
    hfsb_status st;
    if (c->found.rung > HFSBI_RUNG_EOF || c->found.count != 1) return HFSB_OK;
    if (c->edit->mode == HFSB_EDIT_REPLACE)
        old_visible = hfsbi_count_visible(c->old_text);
    if (visible < old_visible + 8) return HFSB_OK;
    if (c->found.items[0].drop_newline && hfsb_str_ends(whole, HFSB_LIT("\n")))
        whole.len--;
    copy.alloc = c->plan->alloc;
    mark = copy.len;
    hfsbi_put_newlines(&copy, whole,
                       hfsbi_file_newline(&c->file, c->found.items[0].start));
    st = hfsb_buf_finish(&copy, mark);
    zone = hfsbi_applied_zone(c, copy.len, &from);
    at = st == HFSB_OK ? hfsb_str_find(zone, hfsb_buf_str(&copy)) : HFSB_NPOS;
    hfsb_buf_free(&copy);
    if (at == HFSB_NPOS) return st;
    return hfsbi_refuse(
        c, HFSB_REFUSED,
        "The change is already applied at line %zu: the file reads new_str "
        "there. Nothing was changed.",
        hfsb_text_line_number(c->file.text, from + at));
}

/* ---- one edit ---- */

static hfsb_status hfsbi_add_place(hfsbi_case *c, hfsbi_match match,
                                   size_t mark) {
    hfsbi_edit_plan *plan = c->plan;
    hfsbi_place     *p = (hfsbi_place *)hfsbi_array_grow(
            &plan->alloc, plan->places, &plan->place_cap, plan->place_count + 1,
            sizeof *p);
    if (!p) return HFSB_NOMEM;
    plan->places = p;
    p += plan->place_count;
    p->start = c->file.offset + match.start;
    p->end = c->file.offset + match.end;
    p->text_pos = mark;
    p->text_len = plan->texts.len - mark;
    p->order = plan->place_count++;
    p->appended = c->edit->mode == HFSB_EDIT_APPEND_AFTER;
    p->edit = c->index;
    return HFSB_OK;
}

/* Picks the match that `line` means: the one that starts there, else the only
   one within three lines. */
static bool hfsbi_pick_line(hfsbi_case *c) {
    size_t i, pos = 0, line = 1, nearby = 0, there = 0, far;
    size_t nearby_count = 0, there_count = 0, want = c->edit->line;
    for (i = 0; i < c->found.count; i++) {
        size_t at = c->found.items[i].start;
        line += hfsb_str_count_byte(hfsb_str_slice(c->file.text, pos, at),
                                    c->file.lone_cr ? '\r' : '\n');
        pos = at;
        if (line == want) {
            there = i;
            there_count++;
        }
        far = line > want ? line - want : want - line;
        if (far <= 3) {
            nearby = i;
            nearby_count++;
        }
    }
    if (there_count != 1) {
        there = nearby;
        there_count = there_count ? there_count : nearby_count;
    }
    if (there_count != 1 || c->found.items[there].overlaps) return false;
    c->found.items[0] = c->found.items[there];
    c->found.count = 1;
    return true;
}

/* True when every match has only blanks before it on its line. */
static bool hfsbi_begin_lines(const hfsbi_case *c) {
    hfsb_str text = c->file.text;
    size_t   i;
    for (i = 0; i < c->found.count; i++) {
        size_t pos = c->found.items[i].start;
        while (pos > 0 &&
               (text.ptr[pos - 1] == ' ' || text.ptr[pos - 1] == '\t'))
            pos--;
        if (pos > 0 && text.ptr[pos - 1] != (c->file.lone_cr ? '\r' : '\n'))
            return false;
    }
    return true;
}

/* A numbered listing copied into old_str (and perhaps new_str): the same
   search without the numbers. */
static hfsb_status hfsbi_find_stripped(hfsbi_case *c, bool *stripped) {
    hfsbi_numbered olds = hfsbi_numbered_scan(c->old_text);
    hfsbi_numbered news = hfsbi_numbered_scan(c->new_text);
    hfsb_buf       old_copy = HFSB_INIT, new_copy = HFSB_INIT;
    hfsb_status    st;
    *stripped = false;
    if (!olds.consecutive || (news.prefixed && news.prefixed < news.lines))
        return HFSB_OK;
    old_copy.alloc = new_copy.alloc = c->plan->alloc;
    st = hfsbi_numbered_strip(c->old_text, &old_copy);
    if (st == HFSB_OK && news.prefixed)
        st = hfsbi_numbered_strip(c->new_text, &new_copy);
    if (st == HFSB_OK && old_copy.len)
        st = hfsbi_match_find(&c->plan->alloc, &c->file,
                              hfsb_buf_str(&old_copy), false, &c->found);
    /* A listing shows whole lines: what stands behind other text is data
       that begins with a number. */
    if (st == HFSB_OK && c->found.count && !hfsbi_begin_lines(c))
        hfsbi_found_free(&c->plan->alloc, &c->found);
    if (st == HFSB_OK && c->found.count) {
        *stripped = true;
        hfsb_buf_free(&c->old_copy);
        c->old_copy = old_copy;
        c->old_text = hfsb_buf_str(&c->old_copy);
        if (!news.prefixed) return HFSB_OK;
        hfsb_buf_free(&c->new_copy);
        c->new_copy = new_copy;
        c->new_text = c->raw_new = hfsb_buf_str(&c->new_copy);
        return HFSB_OK;
    }
    hfsb_buf_free(&old_copy);
    hfsb_buf_free(&new_copy);
    return st;
}

static hfsb_status hfsbi_search_case(hfsbi_case *c) {
    const hfsb_alloc *alloc = &c->plan->alloc;
    bool              stripped = false;
    hfsb_status       st;
    bool number_like = !c->edit->exact && c->edit->mode == HFSB_EDIT_REPLACE &&
                       hfsbi_numbered_scan(c->old_text).consecutive;
    st = hfsbi_match_find(alloc, &c->file, c->old_text,
                          c->edit->exact || number_like, &c->found);
    if (st != HFSB_OK || c->found.count || !number_like) return st;
    st = hfsbi_find_stripped(c, &stripped);
    if (stripped) {
        c->plan->stripped = true;
        st = hfsbi_check_omission(c); /* numbers may have hidden it */
    }
    if (st != HFSB_OK || c->found.count) return st;
    return hfsbi_match_find(alloc, &c->file, c->old_text, false, &c->found);
}

static hfsb_str hfsbi_without_newline(hfsb_str text) {
    if (!hfsb_str_ends(text, HFSB_LIT("\n"))) return text;
    text.len--;
    if (hfsb_str_ends(text, HFSB_LIT("\r"))) text.len--;
    return text;
}

static hfsb_status hfsbi_refuse_indent(const hfsbi_case  *c,
                                       const hfsbi_match *m, size_t line) {
    size_t first = hfsb_text_line_number(c->file.text, m->start);
    size_t last = hfsb_text_line_number(
        c->file.text, m->end > m->start ? m->end - 1 : m->end);
    return hfsbi_refuse(
        c, HFSB_REFUSED,
        "old_str not found in file. Lines %zu-%zu are the same but for their "
        "indentation, and the indentation of line %zu of new_str does not "
        "tell where it belongs. Read the lines and send old_str and new_str "
        "indented as the file is. Nothing was changed.",
        first, last, line + 1);
}

static hfsb_status hfsbi_compose_match(hfsbi_case         *c,
                                       const hfsbi_script *script,
                                       hfsbi_match        *match) {
    hfsbi_edit_plan *plan = c->plan;
    size_t           mark = plan->texts.len;
    size_t           line = 0;
    hfsb_status      st;
    if (c->edit->mode == HFSB_EDIT_REPLACE) {
        st = hfsbi_compose_replace(&plan->alloc, &c->file, &c->found, script,
                                   match, &plan->texts, &plan->reindented,
                                   &line);
    } else {
        bool before = c->edit->mode == HFSB_EDIT_PREPEND_BEFORE;
        st = hfsbi_compose_insert(&plan->alloc, &c->file, &c->found, script,
                                  *match, before, &plan->texts,
                                  &plan->reindented, &line);
        if (before) match->end = match->start;
        else match->start = match->end;
    }
    if (st == HFSB_REFUSED) return hfsbi_refuse_indent(c, match, line);
    if (st == HFSB_OK) st = hfsb_buf_finish(&plan->texts, mark);
    return st == HFSB_OK ? hfsbi_add_place(c, *match, mark) : st;
}

/* A match at the end of a file that lacks the last newline: old and new text
   do without it too; text put before the match needs its own. */
static hfsb_status hfsbi_compose_last(hfsbi_case         *c,
                                      const hfsbi_script *script,
                                      hfsbi_match        *match) {
    hfsbi_script shorter;
    hfsb_str     new_text = script->new_text, raw_new = script->raw_new;
    hfsb_status  st;
    if (c->edit->mode != HFSB_EDIT_PREPEND_BEFORE) {
        new_text = hfsbi_without_newline(new_text);
        raw_new = hfsbi_without_newline(raw_new);
    }
    st = hfsbi_script_make(&c->plan->alloc,
                           hfsbi_without_newline(script->old_text), new_text,
                           raw_new, &shorter);
    if (st == HFSB_OK) st = hfsbi_compose_match(c, &shorter, match);
    hfsbi_script_free(&c->plan->alloc, &shorter);
    return st;
}

static hfsb_status hfsbi_compose_all(hfsbi_case *c) {
    const hfsbi_found *f = &c->found;
    hfsbi_script       script;
    hfsb_str           old_text = c->old_text, new_text = c->new_text;
    size_t             i, head = f->drop_head, tail = f->drop_tail;
    hfsb_status        st;
    old_text = hfsbi_drop_edges(old_text, f->flags, &head, &tail);
    if (c->edit->mode == HFSB_EDIT_REPLACE)
        new_text = hfsbi_drop_edges(new_text, f->flags, &head, &tail);
    st = hfsbi_script_make(&c->plan->alloc, old_text, new_text, c->raw_new,
                           &script);
    for (i = 0; st == HFSB_OK && i < f->count; i++) {
        hfsbi_match match = f->items[i];
        st = match.drop_newline ? hfsbi_compose_last(c, &script, &match)
                                : hfsbi_compose_match(c, &script, &match);
    }
    hfsbi_script_free(&c->plan->alloc, &script);
    return st;
}

static bool hfsbi_within_line(hfsb_str s) {
    return hfsb_str_find_byte(s, '\n') == HFSB_NPOS &&
           hfsb_str_find_byte(s, '\r') == HFSB_NPOS;
}

/* The everyday edit: a part of a line for another, there once. Line ends do
   not matter then, and a large file is spared a pass. *done tells whether it
   was one. */
static hfsb_status hfsbi_plan_quick(hfsbi_case *c, bool *done) {
    hfsb_status st;
    *done = false;
    if (!c->old_text.len || !hfsbi_within_line(c->old_text) ||
        !hfsbi_within_line(c->new_text))
        return HFSB_OK;
    st = hfsbi_match_bytes(&c->plan->alloc, &c->file, c->old_text, &c->found);
    *done = st == HFSB_OK && c->found.count == 1 && !c->found.overlapping;
    if (!*done) hfsbi_found_free(&c->plan->alloc, &c->found);
    return st;
}

/* The long way: every rung, and refusals. */
static hfsb_status hfsbi_plan_search(hfsbi_case *c) {
    hfsb_status st = hfsbi_search_case(c);
    if (st != HFSB_OK) return st;
    if (!c->found.count) return hfsbi_not_found(c);
    if ((c->found.count > 1 || c->found.overlapping) &&
        !c->edit->replace_all &&
        !(c->edit->line && c->found.rung <= HFSBI_RUNG_EOF &&
          hfsbi_pick_line(c)))
        return hfsbi_ambiguous(c);
    return HFSB_OK;
}

static hfsb_status hfsbi_fold_texts(hfsbi_case *c) {
    hfsb_status st = hfsbi_fold_newlines(c->edit->old_str, c->file.lone_cr,
                                         &c->old_copy, &c->old_text);
    if (st == HFSB_OK)
        st = hfsbi_fold_newlines(c->edit->new_str, c->file.lone_cr,
                                 &c->new_copy, &c->new_text);
    return st;
}

static hfsb_status hfsbi_plan_case(hfsbi_case *c) {
    hfsbi_match whole = HFSB_INIT;
    bool        done;
    hfsb_status st;
    c->old_text = c->edit->old_str;
    c->new_text = c->edit->new_str;
    st = hfsbi_plan_quick(c, &done);
    if (st == HFSB_OK && !done) {
        hfsbi_file_scan(&c->file);
        memset(c->cache, 0, sizeof c->cache);
        st = hfsbi_fold_texts(c);
    }
    if (st == HFSB_OK) st = hfsbi_check_texts(c);
    if (st != HFSB_OK) return st;
    if (!c->old_text.len) { /* and so is the file */
        st = hfsb_buf_append(&c->plan->texts, c->raw_new);
        return st == HFSB_OK
                   ? hfsbi_add_place(c, whole,
                                     c->plan->texts.len - c->raw_new.len)
                   : st;
    }
    if (!done) st = hfsbi_plan_search(c);
    if (st == HFSB_OK) st = hfsbi_check_applied(c);
    c->plan->rungs |= 1u << c->found.rung;
    return st == HFSB_OK ? hfsbi_compose_all(c) : st;
}

/* Adds the places of one edit, or says in plan->err why there are none. */
static hfsb_status hfsbi_plan_edit(hfsbi_edit_plan *plan, size_t index) {
    hfsbi_case  c;
    hfsb_status st;
    memset(&c, 0, sizeof c);
    c.plan = plan;
    c.edit = plan->edits + index;
    c.index = index;
    c.raw_new = c.edit->new_str;
    c.old_copy.alloc = c.new_copy.alloc = plan->alloc;
    c.file = hfsbi_file_make(
        plan->content,
        hfsb_str_starts(c.edit->old_str, HFSB_LIT("\xEF\xBB\xBF")));
    c.file.cache = c.cache;
    if ((int)c.edit->mode < 0 || c.edit->mode > HFSB_EDIT_PREPEND_BEFORE)
        st = hfsbi_refuse(&c, HFSB_ARG,
                          "Unknown mode: %d. Nothing was "
                          "changed.",
                          (int)c.edit->mode);
    else st = hfsbi_plan_case(&c);
    hfsbi_found_free(&plan->alloc, &c.found);
    hfsb_buf_free(&c.old_copy);
    hfsb_buf_free(&c.new_copy);
    return st;
}

hfsb_status hfsb_edit_set_mode(hfsb_edit *edit, hfsb_str name, hfsb_err *err) {
    if (hfsb_str_equal(name, HFSB_LIT("replace"))) {
        edit->mode = HFSB_EDIT_REPLACE;
    } else if (hfsb_str_equal(name, HFSB_LIT("replace_all"))) {
        edit->mode = HFSB_EDIT_REPLACE;
        edit->replace_all = true;
    } else if (hfsb_str_equal(name, HFSB_LIT("append_after"))) {
        edit->mode = HFSB_EDIT_APPEND_AFTER;
    } else if (hfsb_str_equal(name, HFSB_LIT("prepend_before"))) {
        edit->mode = HFSB_EDIT_PREPEND_BEFORE;
    } else {
        hfsbi_fail(err, HFSB_ARG, 0, "Unknown mode: ");
        hfsbi_err_quote(err, name, 100);
        hfsbi_err_add(err, ". Use replace, append_after or prepend_before. "
                           "Nothing was changed.");
        return HFSB_ARG;
    }
    return hfsbi_ok(err);
}

hfsb_status hfsb_edit_from_json(const hfsb_json_value *arguments,
                                hfsb_edit *edit, hfsb_err *err) {
    hfsb_edit   fresh = *edit;
    hfsb_str    mode = HFSB_INIT;
    long long   line = 0;
    hfsb_status st;
    st = hfsb_json_arg_str(arguments, "old_str", true, &fresh.old_str, err);
    if (st == HFSB_OK)
        st =
            hfsb_json_arg_str(arguments, "new_str", true, &fresh.new_str, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "replace_all", false,
                                &fresh.replace_all, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "exact", false, &fresh.exact, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_int(arguments, "line", false, &line, err);
    if (st == HFSB_OK && line < 0)
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "line: expected a line number from 1 on, found %lld.",
                        line);
    if (st == HFSB_OK && line > 0) fresh.line = (size_t)line;
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "mode", false, &mode, err);
    if (st == HFSB_OK && mode.ptr) st = hfsb_edit_set_mode(&fresh, mode, err);
    if (st == HFSB_OK) *edit = fresh;
    return st;
}

/* ---- splice ---- */

static int hfsbi_place_order(const void *x, const void *y) {
    const hfsbi_place *a = (const hfsbi_place *)x;
    const hfsbi_place *b = (const hfsbi_place *)y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if ((a->end == a->start) != (b->end == b->start))
        return a->end == a->start ? -1 : 1; /* an insertion before what it is
                                               before */
    if (a->appended != b->appended)
        return a->appended ? -1 : 1; /* behind one text before it stands
                                        before the next */
    return a->order < b->order ? -1 : a->order > b->order;
}

static hfsb_status hfsbi_check_overlap(const hfsbi_edit_plan *plan) {
    size_t i;
    for (i = 1; i < plan->place_count; i++) {
        const hfsbi_place *a = plan->places + i - 1, *b = plan->places + i;
        if (a->end > b->start)
            return hfsbi_fail(
                plan->err, HFSB_REFUSED, 0,
                "Edits %zu and %zu overlap at line %zu: both change the same "
                "text. Join them into one edit. Nothing was changed.",
                (a->edit < b->edit ? a->edit : b->edit) + 1,
                (a->edit < b->edit ? b->edit : a->edit) + 1,
                hfsb_text_line_number(plan->content, b->start));
    }
    return HFSB_OK;
}

static hfsb_str hfsbi_place_text(const hfsbi_edit_plan *plan,
                                 const hfsbi_place     *p) {
    return hfsb_str_slice(hfsb_buf_str(&plan->texts), p->text_pos,
                          p->text_pos + p->text_len);
}

/* The new length, and whether any place changes anything; false when the
   length overflows. */
static bool hfsbi_plan_size(const hfsbi_edit_plan *plan, size_t *size,
                            bool *changed) {
    size_t i;
    *size = plan->content.len;
    *changed = false;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        *size -= p->end - p->start;
        if (!hfsbi_add(*size, p->text_len, size)) return false;
        if (!*changed)
            *changed = !hfsb_str_equal(
                hfsb_str_slice(plan->content, p->start, p->end),
                hfsbi_place_text(plan, p));
    }
    return true;
}

static hfsb_status hfsbi_refuse_no_change(const hfsbi_edit_plan *plan) {
    return hfsbi_fail(plan->err, HFSB_REFUSED, 0,
                      "The edit changes nothing: the file already reads like "
                      "that. Nothing was changed.");
}

static hfsb_status hfsbi_splice(const hfsbi_edit_plan *plan, hfsb_buf *out) {
    size_t      mark = out->len;
    size_t      i, pos = 0, size;
    bool        changed;
    hfsb_status st;
    if (!hfsbi_plan_size(plan, &size, &changed)) return HFSB_LIMIT;
    if (!changed) return hfsbi_refuse_no_change(plan);
    out->status = hfsb_buf_reserve(out, size);
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        hfsb_buf_append(out, hfsb_str_slice(plan->content, pos, p->start));
        hfsb_buf_append(out, hfsbi_place_text(plan, p));
        pos = p->end;
    }
    hfsb_buf_append(out,
                    hfsb_str_slice(plan->content, pos, plan->content.len));
    st = hfsb_buf_finish(out, mark);
    /* Several places can undo each other. */
    if (st == HFSB_OK && plan->place_count > 1 &&
        hfsb_str_equal(plan->content,
                       hfsb_str_slice(hfsb_buf_str(out), mark, out->len)))
        return hfsbi_refuse_no_change(plan);
    return st;
}

/* ---- the report ---- */

static void hfsbi_write_note(const hfsbi_edit_plan *plan,
                             hfsb_edit_result      *r) {
    static const char *const text[] = {
        NULL,
        NULL,
        NULL,
        "(matched after trimming trailing whitespace)",
        "(matched after unicode normalization)",
        "(matched after collapsing runs of blanks)",
        "(matched after trimming whitespace)",
        "(matched after trimming whitespace)",
        "(matched after trimming whitespace)"};
    const char *parts[8];
    size_t      count = 0, i, n = 0;
    for (i = 0; i < sizeof text / sizeof *text; i++)
        if ((plan->rungs >> i & 1u) && text[i] &&
            (!count || strcmp(parts[count - 1], text[i]) != 0))
            parts[count++] = text[i];
    if (plan->stripped) parts[count++] = "(line-number prefixes removed)";
    if (plan->reindented)
        parts[count++] = "(new_str re-indented as the file is)";
    for (i = 0; i < count; i++)
        n += (size_t)snprintf(r->note + n, sizeof r->note - n, "%s%s",
                              i ? " " : "", parts[i]);
}

static void hfsbi_fill_spans(const hfsbi_edit_plan *plan, hfsb_str text,
                             hfsb_span *spans) {
    size_t i, pos = 0, line = 1, old_pos = 0;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        hfsb_span         *s = spans + i;
        hfsb_str           put = hfsbi_place_text(plan, p);
        s->old_start = p->start;
        s->old_len = p->end - p->start;
        s->new_start = pos + (p->start - old_pos);
        s->new_len = put.len;
        line +=
            hfsb_str_count_byte(hfsb_str_slice(text, pos, s->new_start), '\n');
        s->first_line = line;
        line += hfsb_str_count_byte(put, '\n');
        s->last_line = hfsb_str_ends(put, HFSB_LIT("\n")) ? line - 1 : line;
        pos = s->new_start + put.len;
        old_pos = p->end;
    }
}

static hfsb_status hfsbi_report(const hfsbi_edit_plan *plan, hfsb_str text,
                                hfsb_edit_result *r) {
    hfsb_diff_opts diff = HFSB_INIT;
    r->diff.alloc = plan->alloc;
    r->spans = (hfsb_span *)hfsbi_array(&plan->alloc, plan->place_count,
                                        sizeof *r->spans);
    if (!r->spans) return HFSB_NOMEM;
    r->count = plan->place_count;
    hfsbi_fill_spans(plan, text, r->spans);
    hfsbi_write_note(plan, r);
    if (plan->opts && plan->opts->no_diff) return HFSB_OK;
    if (plan->opts) {
        diff.path = plan->opts->path;
        diff.max_bytes = plan->opts->max_diff;
    }
    return hfsb_diff_unified(plan->content, text, r->spans, r->count, &diff,
                             &r->diff, &r->diff_cut);
}

void hfsb_edit_result_free(hfsb_edit_result *r) {
    hfsbi_array_free(&r->diff.alloc, r->spans, r->count, sizeof *r->spans);
    hfsb_buf_free(&r->diff);
    memset(r, 0, sizeof *r);
}

/* ---- all of it ---- */

static hfsb_status hfsbi_run_plan(hfsbi_edit_plan *plan, hfsb_buf *out,
                                  hfsb_edit_result *result) {
    size_t      i, mark = out->len;
    hfsb_status st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i < plan->count; i++)
        st = hfsbi_plan_edit(plan, i);
    if (st == HFSB_OK && plan->count > 1) {
        hfsbi_sort(plan->places, plan->place_count, sizeof *plan->places,
                   hfsbi_place_order);
        st = hfsbi_check_overlap(plan);
    }
    if (st == HFSB_OK) st = hfsbi_splice(plan, out);
    if (st == HFSB_OK && result)
        st = hfsbi_report(
            plan, hfsb_str_slice(hfsb_buf_str(out), mark, out->len), result);
    if (st != HFSB_OK) {
        hfsb_buf_truncate(out, mark);
        if (result) hfsb_edit_result_free(result);
    }
    return st;
}

hfsb_status hfsb_edit_apply(hfsb_str content, const hfsb_edit *edits,
                            size_t count, const hfsb_edit_opts *opts,
                            hfsb_buf *out, hfsb_edit_result *result,
                            hfsb_err *err) {
    hfsbi_edit_plan plan;
    hfsb_status     st;
    hfsbi_ok(err);
    if (result) memset(result, 0, sizeof *result);
    if (!count)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There are no edits. Nothing was changed.");
    memset(&plan, 0, sizeof plan);
    plan.content = content;
    plan.edits = edits;
    plan.count = count;
    plan.opts = opts;
    plan.alloc = plan.texts.alloc = out->alloc;
    plan.err = err;
    st = hfsbi_run_plan(&plan, out, result);
    hfsb_buf_free(&plan.texts);
    hfsbi_array_free(&plan.alloc, plan.places, plan.place_cap,
                     sizeof *plan.places);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        return hfsbi_fail_status(err, st, "The edit was not made");
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}
