/* fuzz_regex.c - libFuzzer target for regex, glob and ignore.

   The input's first byte chooses what its rest is:
     0  choices by which a pattern is made as a tree, then a line of text; a
        matcher of a few lines works on that tree, and must agree with find()
        and line()
     1  a pattern, NUL, a text of lines: line() with a table of any size and
        without one, find() and the simulation must agree
     2  a glob, NUL, a path: table and simulation agree; a folder that is not
        entered holds no match; so for rules of .gitignore
   The second holds the flags. */
#include "../support/t_regex.h"
#include "must.h"

/* ---- a pattern as a tree, and the sets of places it leads to ---- */

typedef enum kind {
    EMPTY,
    CHAR,
    ANY,
    WORD,
    NOT_A,
    BORDER,
    LIST,
    EITHER,
    TIMES
} kind;

typedef struct tree {
    kind     what;
    char     letter; /* or which border */
    unsigned min, max, kids;
    unsigned kid[3];
} tree;

typedef struct maker {
    const unsigned char *data;
    size_t               size;
    tree                 nodes[256];
    unsigned             count;
    hfsb_buf             pattern;
    unsigned             steps; /* of the oracle */
} maker;

enum { MAX_STEPS = 200000 };

static unsigned choose(maker *m, unsigned n) {
    if (m->size == 0) return 0;
    m->size--;
    return *m->data++ % n;
}
static void say(hfsb_buf *b, const char *s) {
    MUST(hfsb_buf_append(b, hfsb_cstr(s)) == HFSB_OK);
}

static const char letters[] = "abcA_ 1";
static const char *const border_text[] = {"^",   "$",   "\\b",
                                          "\\B", "\\<", "\\>"};

static unsigned make(maker *m, unsigned depth);

static const unsigned mins[] = {0, 1, 2, 0, 1, 0, 0};
static const unsigned maxs[] = {99, 99, 2, 2, 3, 0, 1};
static const char *const times[] = {"*",     "+",   "{2}", "{0,2}",
                                    "{1,3}", "{0}", "?"};

static unsigned add(maker *m, const tree *t) {
    MUST(m->count < 256);
    m->nodes[m->count] = *t;
    return m->count++;
}

static void make_repeat(maker *m, tree *t, unsigned depth) {
    unsigned how = choose(m, 7);
    say(&m->pattern, "(");
    t->kids = 1;
    t->kid[0] = make(m, depth - 1);
    say(&m->pattern, ")");
    for (;;) {
        say(&m->pattern, times[how]);
        t->min = mins[how];
        t->max = maxs[how];
        if (choose(m, 4) != 3 || m->count > 200) return;
        t->kid[0] = add(m, t); /* a repeat of that repeat */
        how = choose(m, 6);    /* "?" would be a lazy one */
    }
}

/* Makes a node and writes its pattern; its number. */
static unsigned make(maker *m, unsigned depth) {
    tree     t;
    unsigned i, n = depth && m->count < 200 ? 9 : 6;
    char     letter[2] = {0, 0};
    memset(&t, 0, sizeof t);
    t.what = (kind)choose(m, n);
    if (t.what == CHAR) {
        t.letter = letter[0] = letters[choose(m, sizeof letters - 1)];
        say(&m->pattern, letter);
    } else if (t.what == ANY) {
        say(&m->pattern, ".");
    } else if (t.what == WORD) {
        say(&m->pattern, "\\w");
    } else if (t.what == NOT_A) {
        say(&m->pattern, "[^a]");
    } else if (t.what == BORDER) {
        t.letter = (char)choose(m, 6);
        say(&m->pattern, border_text[(int)t.letter]);
    } else if (t.what == LIST || t.what == EITHER) {
        t.kids = 2 + choose(m, 2);
        say(&m->pattern, "(");
        for (i = 0; i < t.kids; i++) {
            if (i && t.what == EITHER) say(&m->pattern, "|");
            t.kid[i] = make(m, depth - 1);
        }
        say(&m->pattern, ")");
    } else if (t.what == TIMES) {
        make_repeat(m, &t, depth);
    }
    return add(m, &t);
}

/* Places in a text of up to 60 bytes, one bit each. */
typedef unsigned long long places;
#define AT(i) (1ull << (i))

static bool same(char a, char b, bool fold) {
    return a == b || (fold && hfsbi_lower(a) == hfsbi_lower(b));
}

static bool holds(char border, hfsb_str s, size_t at) {
    unsigned long code;
    size_t        back = at;
    bool          before = false, after = false, valid;
    if (at < s.len) {
        hfsb_utf8_step(s, at, &code, &valid);
        after = valid && hfsbi_regex_is_word((uint32_t)code);
    }
    while (back > 0 && at - back < 4 && !before) {
        size_t n = hfsb_utf8_step(s, --back, &code, &valid);
        if (valid && back + n == at)
            before = hfsbi_regex_is_word((uint32_t)code);
        if (valid) break;
    }
    if (border == 0) return at == 0;
    if (border == 1) return at == s.len;
    if (border == 2) return before != after;
    if (border == 3) return before == after;
    if (border == 4) return !before && after;
    return before && !after;
}

static size_t length_at(const tree *t, hfsb_str s, size_t at, bool fold) {
    unsigned long code;
    bool          valid;
    size_t        n;
    if (at >= s.len) return 0;
    n = hfsb_utf8_step(s, at, &code, &valid);
    if (t->what == CHAR) return same(t->letter, s.ptr[at], fold);
    if (!valid || code == '\n') return 0;
    if (t->what == WORD) return hfsbi_regex_is_word((uint32_t)code) ? n : 0;
    if (t->what == NOT_A) return same('a', s.ptr[at], fold) ? 0 : n;
    return n;
}

/* Repeats of repeats of repeats take it too long: then it gives up. */
static places lead(maker *m, unsigned id, hfsb_str s, places from, bool fold) {
    const tree *t = &m->nodes[id];
    places      to = 0;
    unsigned    i;
    if (!from || ++m->steps > MAX_STEPS) return 0;
    switch (t->what) {
    case EMPTY: return from;
    case LIST:
        for (i = 0; i < t->kids; i++) from = lead(m, t->kid[i], s, from, fold);
        return from;
    case EITHER:
        for (i = 0; i < t->kids; i++) to |= lead(m, t->kid[i], s, from, fold);
        return to;
    case TIMES:
        for (i = 0; i < t->min; i++) from = lead(m, t->kid[0], s, from, fold);
        for (to = from; i < t->max && i < 70; i++) {
            from = lead(m, t->kid[0], s, from, fold);
            if ((to | from) == to) break;
            to |= from;
        }
        return to;
    default:
        for (i = 0; i <= s.len; i++) {
            if (!(from & AT(i))) continue;
            if (t->what == BORDER)
                to |= holds(t->letter, s, i) ? AT(i) : 0;
            else if (length_at(t, s, i, fold))
                to |= AT(i + length_at(t, s, i, fold));
        }
        return to;
    }
}

/* The leftmost-longest match, by trying every place. */
static bool oracle(maker *m, unsigned root, hfsb_str s, size_t from,
                   bool fold, size_t *begin, size_t *end) {
    unsigned long code;
    bool          valid;
    size_t        at = from, n;
    for (;;) {
        places to = lead(m, root, s, AT(at), fold);
        if (to) {
            *begin = at;
            for (*end = s.len; !(to & AT(*end));) --*end;
            return true;
        }
        if (at >= s.len) return false;
        n = hfsb_utf8_step(s, at, &code, &valid);
        at += valid ? n : 1;
    }
}

/* True when there is a match, which the engine finds too; *from is its end.
   Nothing is compared when the oracle has given up. */
static bool agrees(maker *m, unsigned root, hfsb_regex *re, hfsb_str text,
                   size_t *from, bool fold) {
    size_t a = 0, b = 0, c = 0, d = 0;
    bool   want = oracle(m, root, text, *from, fold, &a, &b);
    if (m->steps > MAX_STEPS) return false;
    MUST(hfsb_regex_find(re, text, *from, &c, &d) == want);
    MUST(!want || (a == c && b == d));
    *from = b;
    return want;
}

static void fuzz_tree(const unsigned char *data, size_t size, unsigned flags) {
    static maker    m;
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_err        err;
    hfsb_str        text;
    size_t          c = 0, d = 0, from = 0, n = 0;
    unsigned        root;
    bool            want;
    memset(&m, 0, sizeof m);
    m.data = data;
    m.size = size > 60 ? 60 : size;
    root = make(&m, 4);
    data = m.data;
    size -= m.size > size ? size : (size > 60 ? 60 : size) - m.size;
    while (n < size && n < 50 && data[n] != '\n' && data[n] != '\r') n++;
    text = t_exact(data, n);
    opts.ignore_case = flags & 1;
    if (hfsb_regex_open(hfsb_buf_str(&m.pattern), &opts, &re, &err) !=
        HFSB_OK) {
        MUST(err.code == HFSB_LIMIT); /* repeats of repeats of repeats */
        hfsb_buf_free(&m.pattern);
        t_drop(text);
        return;
    }
    if (flags & 2) re->runner.table.max_bytes = 64u << (flags >> 4);
    want = agrees(&m, root, re, text, &from, opts.ignore_case);
    if (m.steps <= MAX_STEPS)
        MUST(n == 0 || hfsb_regex_line(re, text, 0, &c, &d) == want);
    if (want && from < text.len) /* after it, where a character begins */
        (void)agrees(&m, root, re, text, &from, opts.ignore_case);
    hfsb_regex_close(re);
    hfsb_buf_free(&m.pattern);
    t_drop(text);
}

/* ---- any pattern ---- */

static hfsb_str next_line(hfsb_str *rest) {
    size_t   n = hfsb_str_find_byte(*rest, '\n');
    hfsb_str line = *rest;
    if (n == HFSB_NPOS) {
        *rest = hfsb_str_slice(line, line.len, line.len);
        return line;
    }
    *rest = hfsb_str_slice(line, n + 1, line.len);
    line.len = n;
    if (n > 0 && line.ptr[n - 1] == '\r') line.len--;
    return line;
}

static void check_text(hfsb_regex *re, hfsb_str text) {
    hfsb_str rest = text;
    size_t   from = 0, begin = 0, end = 0, a, b;
    bool     more = hfsb_regex_line(re, text, from, &begin, &end);
    while (rest.len > 0) {
        size_t   at = (size_t)(rest.ptr - text.ptr);
        hfsb_str line = next_line(&rest);
        bool     hit = more && begin == at;
        MUST(!hit || end == at + line.len);
        MUST(hfsb_regex_find(re, line, 0, &a, &b) == hit);
        if (!hit) continue;
        MUST(a <= b && b <= line.len);
        from = (size_t)(rest.ptr - text.ptr);
        more = hfsb_regex_line(re, text, from, &begin, &end);
    }
    MUST(!more);
}

static void fuzz_text(hfsb_str pattern, hfsb_str text, unsigned flags) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_err        err;
    hfsb_status     st;
    opts.ignore_case = flags & 1;
    opts.literal = (flags & 12) == 12;
    opts.max_states = 2000;
    st = hfsb_regex_open(pattern, &opts, &re, &err);
    if (st != HFSB_OK) {
        MUST(!re && err.code == st && err.msg[0] && err.pos <= pattern.len);
        MUST(st == HFSB_LIMIT || (st == HFSB_ARG && !opts.literal));
        return;
    }
    if (flags & 2) re->runner.table.max_bytes = 64u << (flags >> 4);
    check_text(re, text);
    check_text(re, text); /* with the table filled */
    hfsb_regex_close(re);
}

/* ---- globs ---- */

static void fuzz_glob(hfsb_str pattern, hfsb_str path, unsigned flags) {
    hfsb_glob *glob;
    hfsb_err   err;
    size_t     i;
    bool       match;
    if (hfsbi_glob_open(pattern, NULL, flags & 1, &glob, &err) != HFSB_OK) {
        MUST(!glob && err.msg[0] && err.pos <= pattern.len);
        return;
    }
    if (flags & 2) glob->runner.table.max_bytes = 64u << (flags >> 4);
    match = hfsb_glob_match(glob, path);
    MUST(hfsbi_nfa_whole(&glob->runner, path, false) == match);
    MUST(hfsb_glob_match(glob, path) == match);
    for (i = 1; i < path.len; i++) {
        hfsb_str folder = hfsb_str_slice(path, 0, i);
        if (path.ptr[i] != '/') continue;
        MUST(hfsb_glob_enters(glob, folder) ==
             (folder.ptr[i - 1] == '/'
                  ? hfsb_glob_enters(glob, folder)
                  : hfsbi_nfa_whole(&glob->runner, folder, true)));
        if (match && i + 1 < path.len) /* something beneath it */
            MUST(hfsb_glob_enters(glob, folder));
    }
    if (match) MUST(hfsb_str_starts(path, hfsb_glob_base(glob)));
    hfsb_glob_close(glob);
}

static void fuzz_ignore(hfsb_str rules, hfsb_str path, bool folder) {
    hfsbi_ignore *ig;
    bool          top;
    MUST(hfsbi_ignore_open(NULL, &ig) == HFSB_OK);
    MUST(hfsbi_ignore_push(ig, HFSB_LIT(""), rules) == HFSB_OK);
    top = hfsbi_ignore_has(ig, path, folder);
    MUST(hfsbi_ignore_push(ig, HFSB_LIT("a"), HFSB_LIT("")) == HFSB_OK);
    MUST(hfsbi_ignore_has(ig, path, folder) == top);
    hfsbi_ignore_pop(ig);
    MUST(hfsbi_ignore_push(ig, HFSB_LIT(""), HFSB_LIT("!*")) == HFSB_OK);
    MUST(!hfsbi_ignore_has(ig, path, folder));
    hfsbi_ignore_close(ig);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    const void *cut;
    hfsb_str    pattern, text;
    if (size < 3 || size > 600) return 0;
    if (data[0] % 3 == 0) {
        fuzz_tree(data + 2, size - 2, data[1]);
        return 0;
    }
    cut = memchr(data + 2, 0, size - 2);
    if (!cut) return 0;
    pattern = t_exact(data + 2, (size_t)((const unsigned char *)cut - data) -
                                    2);
    text = t_exact((const unsigned char *)cut + 1, size - pattern.len - 3);
    if (data[0] % 3 == 1) {
        fuzz_text(pattern, text, data[1]);
    } else {
        fuzz_glob(pattern, text, data[1]);
        fuzz_ignore(pattern, text, data[1] & 1);
    }
    t_drop(pattern);
    t_drop(text);
    return 0;
}
