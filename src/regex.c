/* regex.c - regular expressions for lines of text. Depends on: base, find,
   regex_parse, regex_program, regex_nfa, regex_dfa. */
#include "regex_parts.h"

/* ---- making ---- */

/* A pattern that is taken as it is, as a tree: only for the sake of case. */
static uint32_t hfsbi_regex_plain(hfsbi_syntax *tree, hfsb_str pattern) {
    uint32_t list = hfsbi_syntax_add(tree, HFSBI_SYNTAX_LIST, 0);
    size_t   at = 0;
    while (at < pattern.len && tree->program->status == HFSB_OK) {
        unsigned long code;
        bool          valid;
        size_t        n = hfsb_utf8_step(pattern, at, &code, &valid), i;
        for (i = 0; !valid && i < n; i++)
            hfsbi_syntax_append(
                tree, list,
                hfsbi_syntax_add(tree, HFSBI_SYNTAX_BYTE,
                                 (unsigned char)pattern.ptr[at + i]));
        if (valid)
            hfsbi_syntax_append(tree, list,
                                hfsbi_syntax_char(tree, (uint32_t)code));
        at += n;
    }
    return list;
}

static hfsb_status hfsbi_regex_syntax(hfsb_regex *re, hfsbi_syntax *tree,
                                      hfsb_str               pattern,
                                      const hfsb_regex_opts *opts,
                                      hfsb_err              *err) {
    uint32_t    root = 0;
    hfsb_status st = HFSB_OK;
    tree->fold = opts->ignore_case;
    if (opts->literal && pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_fail(err, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                          "A text to be found in any case may have at most "
                          "65,536 bytes.");
    if (opts->literal) root = hfsbi_regex_plain(tree, pattern);
    else st = hfsbi_regex_parse(tree, pattern, &root, err);
    if (st != HFSB_OK) return st;
    if (re->program.status == HFSB_OK)
        re->program.status =
            hfsbi_syntax_literal(tree, root, &re->literal, &re->pure);
    if (re->program.status == HFSB_OK && !re->pure)
        hfsbi_program_make(&re->program, tree, root);
    if (re->program.status == HFSB_LIMIT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The pattern needs more than %zu states once its "
                          "repeats are written out. Use smaller numbers in "
                          "{n,m}, or * and +.",
                          re->program.max_states);
    if (re->program.status != HFSB_OK)
        return hfsbi_fail_status(err, re->program.status, "the pattern");
    if (re->pure) return HFSB_OK;
    st = hfsbi_runner_init(&re->runner, &re->program);
    re->runner.cancelled = opts->cancelled;
    re->runner.user = opts->user;
    return st;
}

static hfsb_status hfsbi_regex_make(hfsb_regex *re, hfsb_str pattern,
                                    const hfsb_regex_opts *opts,
                                    hfsb_err              *err) {
    hfsbi_syntax tree;
    hfsb_status  st;
    if (opts->literal && !opts->ignore_case) {
        re->pure = true;
        re->never = hfsb_str_find_byte(pattern, '\n') != HFSB_NPOS;
        return hfsb_buf_append(&re->literal, pattern);
    }
    hfsbi_syntax_init(&tree, &re->program);
    st = hfsbi_regex_syntax(re, &tree, pattern, opts, err);
    hfsbi_syntax_free(&tree);
    return st;
}

hfsb_status hfsb_regex_open(hfsb_str pattern, const hfsb_regex_opts *opts,
                            hfsb_regex **out, hfsb_err *err) {
    hfsb_regex_opts none = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_status     st;
    if (!opts) opts = &none;
    *out = NULL;
    re = (hfsb_regex *)hfsbi_array(&opts->alloc, 1, sizeof *re);
    if (!re) return hfsbi_fail_status(err, HFSB_NOMEM, "the pattern");
    memset(re, 0, sizeof *re);
    re->program.alloc = re->literal.alloc = opts->alloc;
    re->program.max_states =
        opts->max_states ? opts->max_states : HFSBI_REGEX_STATES;
    if (err) memset(err, 0, sizeof *err);
    st = hfsbi_regex_make(re, pattern, opts, err);
    if (st == HFSB_OK) {
        *out = re;
        return hfsbi_ok(err);
    }
    if (err && err->code == HFSB_OK) hfsbi_fail_status(err, st, "the pattern");
    hfsb_regex_close(re);
    return st;
}

void hfsb_regex_close(hfsb_regex *regex) {
    hfsb_alloc alloc;
    if (!regex) return;
    alloc = regex->program.alloc;
    hfsbi_runner_free(&regex->runner);
    hfsbi_program_free(&regex->program);
    hfsb_buf_free(&regex->literal);
    hfsbi_array_free(&alloc, regex, 1, sizeof *regex);
}

/* ---- in a line ---- */

bool hfsb_regex_find(hfsb_regex *regex, hfsb_str text, size_t from,
                     size_t *begin, size_t *end) {
    hfsb_str literal = hfsb_buf_str(&regex->literal);
    size_t   hit;
    if (from > text.len || regex->never) return false;
    hit = hfsb_str_find(hfsb_str_slice(text, from, text.len), literal);
    if (hit == HFSB_NPOS) return false;
    if (regex->pure) {
        *begin = from + hit;
        *end = *begin + literal.len;
        return true;
    }
    return hfsbi_nfa_find(&regex->runner, text, from, false, begin, end);
}

/* ---- among lines ---- */

/* The line that holds text[at], or that this line feed ends; not before
   `from`, where a line begins. *next: where the one behind it begins. */
static hfsb_str hfsbi_regex_around(hfsb_str text, size_t from, size_t at,
                                   size_t *next) {
    size_t      begin = at, end;
    const void *feed =
        at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    while (begin > from && text.ptr[begin - 1] != '\n') begin--;
    end = feed ? (size_t)((const char *)feed - text.ptr) : text.len;
    *next = feed ? end + 1 : end;
    if (feed && end > begin && text.ptr[end - 1] == '\r') end--;
    return hfsb_str_slice(text, begin, end);
}

/* The first line that matches from `from` on, and before `to`, where a line
   begins or the text ends, without looking for the literal. */
static bool hfsbi_regex_plod(hfsb_regex *re, hfsb_str text, size_t from,
                             size_t to, hfsb_str *line) {
    hfsb_str part = hfsb_str_slice(text, 0, to);
    while (from < to) {
        size_t     at = from, next, begin, end;
        hfsbi_scan scan = HFSBI_SCAN_CANNOT;
        if (re->runner.without == 0)
            scan = hfsbi_dfa_lines(&re->runner, part, &at);
        if (scan == HFSBI_SCAN_NONE) return false;
        *line = hfsbi_regex_around(part, from, at, &next);
        if (scan == HFSBI_SCAN_FOUND) return true;
        if (hfsbi_nfa_find(&re->runner, *line, 0, true, &begin, &end))
            return true;
        if (re->runner.stopped) return false;
        if (re->runner.without > 0) {
            size_t done = next - from;
            re->runner.without -=
                done < re->runner.without ? done : re->runner.without;
        }
        from = next;
    }
    return false;
}

/* True when places of the literal come so close to each other, and to no
   avail, that it is quicker to read on than to look for them. */
static bool hfsbi_regex_is_crowded(hfsb_regex *re, size_t distance) {
    re->crowd = distance < 200 ? re->crowd + 1 : 0;
    if (re->crowd < 16) return false;
    re->crowd = 0;
    return true;
}

/* Where the line ends that is `size` bytes on from `from`. */
static size_t hfsbi_regex_ahead(hfsb_str text, size_t from, size_t size) {
    size_t next;
    if (text.len - from <= size) return text.len;
    hfsbi_regex_around(text, from + size, from + size, &next);
    return next;
}

/* By the literal: only the lines that hold it are looked at. */
static bool hfsbi_regex_jump(hfsb_regex *re, hfsb_str text, size_t from,
                             hfsb_str *line) {
    hfsb_str literal = hfsb_buf_str(&re->literal);
    while (from < text.len && !re->runner.stopped) {
        size_t hit, next, at;
        if (re->straight) {
            next = hfsbi_regex_ahead(text, from, re->straight);
            if (hfsbi_regex_plod(re, text, from, next, line)) return true;
            from = next;
            re->straight = 0;
            continue;
        }
        hit = hfsb_str_find(hfsb_str_slice(text, from, text.len), literal);
        if (hit == HFSB_NPOS) return false;
        at = from + hit;
        *line = hfsbi_regex_around(text, from, at, &next);
        if (re->pure) {
            /* unless it takes in the CR at the line's end */
            if (at + literal.len <= (size_t)(line->ptr - text.ptr) + line->len)
                return true;
        } else if (hfsbi_regex_plod(re, text, (size_t)(line->ptr - text.ptr),
                                    next, line)) {
            return true;
        }
        if (!re->pure && hfsbi_regex_is_crowded(re, next - from))
            re->straight = 1u << 16;
        from = next;
    }
    return false;
}

bool hfsb_regex_line(hfsb_regex *regex, hfsb_str text, size_t from,
                     size_t *begin, size_t *end) {
    hfsb_str line;
    bool     found;
    if (from >= text.len || regex->never) return false;
    if (regex->pure || regex->literal.len > 0)
        found = hfsbi_regex_jump(regex, text, from, &line);
    else found = hfsbi_regex_plod(regex, text, from, text.len, &line);
    if (!found) return false;
    *begin = (size_t)(line.ptr - text.ptr);
    *end = *begin + line.len;
    return true;
}
