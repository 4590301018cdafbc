/* glob.c - patterns for paths, and the rules of .gitignore files.

   A glob becomes a program like a regular expression, so matching is linear
   and never backtracks. "*" and "?" stay within a name, "**" is any number of
   names. A .gitignore file is a list of rules; most are plain names or
   suffixes, which need no program. The rules of nested folders form a stack
   that follows a directory walk, and the last rule that matches decides. */
#include "pattern_private.h"

/* ---- reading a glob ---- */

typedef struct hfsbi_glob_reader {
    hfsbi_reader r;
    bool         git;
    bool         name_start; /* a name begins here */
    bool         special;    /* something other than plain text was read */
    uint32_t     inside;     /* class of bytes within a name, plus one; 0: not
                                made yet */
} hfsbi_glob_reader;

static bool hfsbi_glob_at_end(const hfsbi_glob_reader *g) {
    return g->r.at >= g->r.text.len || g->r.status != HFSB_OK ||
           g->r.tree->program->status != HFSB_OK;
}

static uint32_t hfsbi_glob_slash(hfsbi_glob_reader *g) {
    return hfsbi_syntax_add(g->r.tree, HFSBI_SYNTAX_BYTE, '/');
}

/* At least `min` bytes of a name, valid UTF-8 or not. */
static uint32_t hfsbi_glob_inside(hfsbi_glob_reader *g, uint32_t min) {
    hfsbi_syntax *tree = g->r.tree;
    if (!g->inside) g->inside = hfsbi_program_bytes(tree->program, '/') + 1;
    return hfsbi_syntax_repeat(
        tree, hfsbi_syntax_add(tree, HFSBI_SYNTAX_CLASS, g->inside - 1), min,
        HFSBI_SYNTAX_MANY);
}

/* "**" and the slash after it: any number of names, each with a slash; at the
   end of the pattern one name and any number more. A name has at least `min`
   bytes. */
static uint32_t hfsbi_glob_names(hfsbi_glob_reader *g, bool last,
                                 uint32_t min) {
    hfsbi_syntax *tree = g->r.tree;
    uint32_t list = hfsbi_syntax_add(tree, HFSBI_SYNTAX_LIST, 0), all, more;
    if (!last) {
        hfsbi_syntax_append(tree, list, hfsbi_glob_inside(g, min));
        hfsbi_syntax_append(tree, list, hfsbi_glob_slash(g));
        return hfsbi_syntax_repeat(tree, list, 0, HFSBI_SYNTAX_MANY);
    }
    hfsbi_syntax_append(tree, list, hfsbi_glob_slash(g));
    hfsbi_syntax_append(tree, list, hfsbi_glob_inside(g, min));
    more = hfsbi_syntax_repeat(tree, list, 0, HFSBI_SYNTAX_MANY);
    all = hfsbi_syntax_add(tree, HFSBI_SYNTAX_LIST, 0);
    hfsbi_syntax_append(tree, all, hfsbi_glob_inside(g, min));
    hfsbi_syntax_append(tree, all, more);
    return all;
}

/* Reads "*" or "**". */
static uint32_t hfsbi_glob_star(hfsbi_glob_reader *g) {
    size_t stars = 1;
    char   c;
    bool   last, names;
    while (hfsbi_reader_peek(&g->r, stars) == '*') stars++;
    g->r.at += stars;
    c = hfsbi_reader_peek(&g->r, 0);
    last =
        g->r.at == g->r.text.len || (g->r.depth > 0 && (c == ',' || c == '}'));
    /* git compares plain text first and treats the rest as a new pattern:
       "a**" also matches everything beneath a */
    names = g->name_start || (g->git && !g->special);
    g->special = true;
    if (stars < 2 || !names || (!last && c != '/')) {
        g->name_start = false;
        return hfsbi_glob_inside(g, 0);
    }
    if (!last) g->r.at++;
    names = g->name_start;
    g->name_start = true;
    return hfsbi_glob_names(g, last, names ? 1 : 0);
}

static uint32_t hfsbi_glob_list(hfsbi_glob_reader *g);

/* Reads {one,two}, after its brace. */
static uint32_t hfsbi_glob_braces(hfsbi_glob_reader *g) {
    uint32_t either = hfsbi_syntax_add(g->r.tree, HFSBI_SYNTAX_EITHER, 0);
    size_t   open = g->r.at - 1;
    bool     name_start = g->name_start;
    if (++g->r.depth > HFSBI_REGEX_DEPTH)
        hfsbi_reader_fail(&g->r, HFSB_LIMIT, open,
                          "Braces are nested too deeply: 200 levels at most.");
    while (g->r.status == HFSB_OK && g->r.tree->program->status == HFSB_OK) {
        g->name_start = name_start;
        hfsbi_syntax_append(g->r.tree, either, hfsbi_glob_list(g));
        if (hfsbi_reader_peek(&g->r, 0) != ',') break;
        g->r.at++;
    }
    if (hfsbi_reader_peek(&g->r, 0) != '}')
        hfsbi_reader_fail(&g->r, HFSB_ARG, open,
                          "This { is not closed by a }. Write \\{ for the "
                          "character itself.");
    g->r.at++;
    g->r.depth--;
    g->name_start = false;
    return either;
}

/* Reads an ordinary byte, or the one after a backslash. */
static uint32_t hfsbi_glob_byte(hfsbi_glob_reader *g) {
    if (g->r.at >= g->r.text.len) {
        hfsbi_reader_fail(&g->r, HFSB_ARG, g->r.at - 1,
                          "The pattern ends in a backslash. Write \\\\ for "
                          "the character itself.");
        return 0;
    }
    return hfsbi_syntax_add(g->r.tree, HFSBI_SYNTAX_BYTE,
                            (unsigned char)g->r.text.ptr[g->r.at++]);
}

static uint32_t hfsbi_glob_piece(hfsbi_glob_reader *g) {
    char c = hfsbi_reader_peek(&g->r, 0);
    if (c == '*') return hfsbi_glob_star(g);
    if (c == '{' && !g->git && hfsbi_reader_peek(&g->r, 1) != '}') {
        g->r.at++;
        return hfsbi_glob_braces(g);
    }
    g->name_start = c == '/';
    if (c == '?' || c == '[' || c == '\\') g->special = true;
    if (c == '{' && !g->git) { /* {} is plain text, as in a shell */
        uint32_t list = hfsbi_syntax_add(g->r.tree, HFSBI_SYNTAX_LIST, 0);
        hfsbi_syntax_append(g->r.tree, list, hfsbi_glob_byte(g));
        hfsbi_syntax_append(g->r.tree, list, hfsbi_glob_byte(g));
        return list;
    }
    if (c == '?') {
        g->r.at++;
        g->r.tree->set.count = 0;
        return hfsbi_syntax_class(g->r.tree, true, '/');
    }
    if (c == '[') {
        g->r.at++;
        return hfsbi_read_bracket(&g->r);
    }
    if (c == '\\') g->r.at++;
    return hfsbi_glob_byte(g);
}

static uint32_t hfsbi_glob_list(hfsbi_glob_reader *g) {
    uint32_t list = hfsbi_syntax_add(g->r.tree, HFSBI_SYNTAX_LIST, 0);
    while (!hfsbi_glob_at_end(g)) {
        char c = hfsbi_reader_peek(&g->r, 0);
        if (g->r.depth > 0 && (c == ',' || c == '}')) break;
        hfsbi_syntax_append(g->r.tree, list, hfsbi_glob_piece(g));
    }
    return list;
}

/* Appends the names before the first one with a special character, each but
   the last with its slash. */
static hfsb_status hfsbi_glob_find_base(hfsb_str pattern, bool git,
                                        hfsb_buf *base) {
    size_t      i, kept = 0;
    hfsb_status st;
    for (i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        if (c == '*' || c == '?' || c == '[' || (c == '{' && !git)) break;
        if (c == '/') kept = base->len ? base->len : 1;
        if (c == '\\' && i + 1 < pattern.len) c = pattern.ptr[++i];
        hfsb_buf_append_byte(base, c);
    }
    st = base->status;
    hfsb_buf_truncate(base, kept);
    return st;
}

/* ---- compiling a glob ---- */

static hfsb_status hfsbi_glob_compile(hfsb_glob *glob, hfsb_str pattern,
                                      bool git, hfsb_err *err) {
    hfsbi_syntax      tree;
    hfsbi_glob_reader g = HFSB_INIT;
    uint32_t          root;
    if (pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_fail(err, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                          "A pattern may have at most 65,536 bytes.");
    hfsbi_syntax_init(&tree, &glob->program);
    g.r.text = pattern;
    g.r.tree = &tree;
    g.r.err = err;
    g.r.glob = true;
    g.git = git;
    g.name_start = true;
    root = hfsbi_glob_list(&g);
    if (g.r.status == HFSB_OK && glob->program.status == HFSB_OK)
        hfsbi_program_make(&glob->program, &tree, root);
    hfsbi_syntax_free(&tree);
    if (g.r.status != HFSB_OK) return g.r.status;
    if (glob->program.status == HFSB_LIMIT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The pattern needs more than %zu states: split it "
                          "into several.",
                          glob->program.max_states);
    if (glob->program.status != HFSB_OK) return glob->program.status;
    if (hfsbi_glob_find_base(pattern, git, &glob->base) != HFSB_OK)
        return HFSB_NOMEM;
    return hfsbi_runner_init(&glob->runner, &glob->program);
}

HFSBI_FN hfsb_status hfsbi_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                                     bool git, hfsb_glob **out,
                                     hfsb_err *err) {
    hfsb_alloc  none = HFSB_INIT;
    hfsb_glob  *glob;
    hfsb_status st;
    if (!alloc) alloc = &none;
    *out = NULL;
    glob = (hfsb_glob *)hfsbi_array(alloc, 1, sizeof *glob);
    if (!glob) return hfsbi_fail_status(err, HFSB_NOMEM, "the pattern");
    memset(glob, 0, sizeof *glob);
    glob->program.alloc = glob->base.alloc = *alloc;
    glob->program.max_states = HFSBI_REGEX_STATES;
    glob->program.whole = true;
    if (err) memset(err, 0, sizeof *err);
    st = hfsbi_glob_compile(glob, pattern, git, err);
    if (st == HFSB_OK) {
        *out = glob;
        return hfsbi_ok(err);
    }
    if (err && err->code == HFSB_OK) hfsbi_fail_status(err, st, "the pattern");
    hfsb_glob_close(glob);
    return st;
}

hfsb_status hfsb_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                           hfsb_glob **out, hfsb_err *err) {
    return hfsbi_glob_open(pattern, alloc, false, out, err);
}

void hfsb_glob_close(hfsb_glob *glob) {
    hfsb_alloc alloc;
    if (!glob) return;
    alloc = glob->program.alloc;
    hfsbi_runner_free(&glob->runner);
    hfsbi_program_free(&glob->program);
    hfsb_buf_free(&glob->base);
    hfsbi_array_free(&alloc, glob, 1, sizeof *glob);
}

/* ---- matching a glob ---- */

bool hfsb_glob_match(hfsb_glob *glob, hfsb_str path) {
    return hfsbi_runner_whole(&glob->runner, path, false);
}

hfsb_str hfsb_glob_base(const hfsb_glob *glob) {
    return hfsb_buf_str(&glob->base);
}

bool hfsb_glob_enters(hfsb_glob *glob, hfsb_str folder) {
    if (hfsb_str_ends(folder, HFSB_LIT("/"))) folder.len--;
    else if (folder.len == 0) return true;
    return hfsbi_runner_whole(&glob->runner, folder, true);
}

/* ---- .gitignore: rules ---- */

typedef enum hfsbi_rule_kind {
    HFSBI_RULE_TEXT,   /* equal to the text */
    HFSBI_RULE_SUFFIX, /* the name ends with it: "*.o" */
    HFSBI_RULE_GLOB
} hfsbi_rule_kind;

typedef struct hfsbi_rule {
    hfsbi_rule_kind kind;
    hfsb_buf        text;
    hfsb_glob      *glob;
    bool            negated;     /* "!": a match is not ignored */
    bool            folder_only; /* "build/" */
    bool            whole_path;  /* matches the path below the folder of the
                                    .gitignore, not only the name */
} hfsbi_rule;

typedef struct hfsbi_ignore_folder {
    size_t prefix; /* bytes of a path before the part that rules match */
    size_t rules;  /* number of rules of the folders above */
} hfsbi_ignore_folder;

struct hfsbi_ignore {
    hfsb_alloc           alloc;
    hfsbi_rule          *rules;
    hfsbi_ignore_folder *folders;
    size_t               rule_count, rule_cap, folder_count, folder_cap;
};

HFSBI_FN hfsb_status hfsbi_ignore_open(const hfsb_alloc *alloc,
                                       hfsbi_ignore    **out) {
    hfsb_alloc    none = HFSB_INIT;
    hfsbi_ignore *ig;
    if (!alloc) alloc = &none;
    ig = (hfsbi_ignore *)hfsbi_array(alloc, 1, sizeof *ig);
    *out = ig;
    if (!ig) return HFSB_NOMEM;
    memset(ig, 0, sizeof *ig);
    ig->alloc = *alloc;
    return HFSB_OK;
}

/* Removes the last rules until `rules` are left. */
static void hfsbi_ignore_cut(hfsbi_ignore *ig, size_t rules) {
    while (ig->rule_count > rules) {
        hfsbi_rule *rule = &ig->rules[--ig->rule_count];
        hfsb_buf_free(&rule->text);
        hfsb_glob_close(rule->glob);
    }
}

HFSBI_FN void hfsbi_ignore_close(hfsbi_ignore *ignore) {
    hfsb_alloc alloc;
    if (!ignore) return;
    alloc = ignore->alloc;
    hfsbi_ignore_cut(ignore, 0);
    hfsbi_array_free(&alloc, ignore->rules, ignore->rule_cap,
                     sizeof *ignore->rules);
    hfsbi_array_free(&alloc, ignore->folders, ignore->folder_cap,
                     sizeof *ignore->folders);
    hfsbi_array_free(&alloc, ignore, 1, sizeof *ignore);
}

/* ---- .gitignore: lines ---- */

/* The line without trailing blanks, unless a backslash escapes them. */
static hfsb_str hfsbi_rule_trim(hfsb_str line) {
    size_t i, end = 0;
    for (i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\\' && i + 1 < line.len) i++;
        else if (line.ptr[i] == ' ') continue;
        end = i + 1;
    }
    return hfsb_str_slice(line, 0, end);
}

static bool hfsbi_rule_is_plain(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (strchr("*?[\\", s.ptr[i]) && s.ptr[i]) return false;
    return true;
}

/* Reads a line with a pattern. HFSB_OK; HFSB_NOMEM; any other failure when the
   pattern is invalid. */
static hfsb_status hfsbi_rule_read(const hfsb_alloc *alloc, hfsb_str s,
                                   hfsbi_rule *rule) {
    hfsb_status st;
    memset(rule, 0, sizeof *rule);
    rule->text.alloc = *alloc;
    rule->negated = hfsb_str_starts(s, HFSB_LIT("!"));
    if (rule->negated) s = hfsb_str_slice(s, 1, s.len);
    rule->folder_only = hfsb_str_ends(s, HFSB_LIT("/"));
    if (rule->folder_only) s.len--;
    rule->whole_path = hfsb_str_find_byte(s, '/') != HFSB_NPOS;
    if (hfsb_str_starts(s, HFSB_LIT("/"))) s = hfsb_str_slice(s, 1, s.len);
    if (s.len == 0) return HFSB_ARG;
    rule->kind = HFSBI_RULE_TEXT;
    if (!hfsbi_rule_is_plain(s)) {
        hfsb_str rest = hfsb_str_slice(s, 1, s.len);
        if (rule->whole_path || s.ptr[0] != '*' ||
            !hfsbi_rule_is_plain(rest)) {
            rule->kind = HFSBI_RULE_GLOB;
            return hfsbi_glob_open(s, alloc, true, &rule->glob, NULL);
        }
        rule->kind = HFSBI_RULE_SUFFIX;
        s = rest;
    }
    st = hfsb_buf_append(&rule->text, s);
    return st == HFSB_OK ? HFSB_OK : HFSB_NOMEM;
}

/* Adds the rule of a line. HFSB_NOMEM, or HFSB_OK: an empty line, a comment and
   an invalid pattern add nothing. */
static hfsb_status hfsbi_ignore_add(hfsbi_ignore *ig, hfsb_str line) {
    hfsbi_rule  rule;
    hfsb_status st;
    void       *grown;
    /* a byte order mark; the text may be two files joined */
    if (hfsb_str_starts(line, HFSB_LIT("\xEF\xBB\xBF")))
        line = hfsb_str_slice(line, 3, line.len);
    if (hfsb_str_ends(line, HFSB_LIT("\r"))) line.len--;
    if (hfsb_str_starts(line, HFSB_LIT("#"))) return HFSB_OK;
    line = hfsbi_rule_trim(line);
    if (line.len == 0) return HFSB_OK;
    grown = hfsbi_array_grow(&ig->alloc, ig->rules, &ig->rule_cap,
                             ig->rule_count + 1, sizeof *ig->rules);
    if (!grown) return HFSB_NOMEM;
    ig->rules = (hfsbi_rule *)grown;
    st = hfsbi_rule_read(&ig->alloc, line, &rule);
    if (st != HFSB_OK) return st == HFSB_NOMEM ? st : HFSB_OK;
    ig->rules[ig->rule_count++] = rule;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_ignore_push(hfsbi_ignore *ignore, hfsb_str folder,
                                       hfsb_str text) {
    size_t   before = ignore->rule_count;
    hfsb_str line;
    void    *grown =
        hfsbi_array_grow(&ignore->alloc, ignore->folders, &ignore->folder_cap,
                         ignore->folder_count + 1, sizeof *ignore->folders);
    if (!grown) return HFSB_NOMEM;
    ignore->folders = (hfsbi_ignore_folder *)grown;
    while (hfsbi_list_next(&text, '\n', &line)) {
        if (hfsbi_ignore_add(ignore, line) == HFSB_OK) continue;
        hfsbi_ignore_cut(ignore, before);
        return HFSB_NOMEM;
    }
    ignore->folders[ignore->folder_count].prefix =
        folder.len ? folder.len + 1 : 0;
    ignore->folders[ignore->folder_count++].rules = before;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_ignore_pop(hfsbi_ignore *ignore) {
    if (ignore->folder_count == 0) return;
    ignore->folder_count--;
    hfsbi_ignore_cut(ignore, ignore->folders[ignore->folder_count].rules);
}

HFSBI_FN size_t hfsbi_ignore_count(const hfsbi_ignore *ignore) {
    return ignore->rule_count;
}

/* ---- .gitignore: matching ---- */

static bool hfsbi_rule_matches(hfsbi_rule *rule, hfsb_str path, hfsb_str name,
                               bool is_folder) {
    hfsb_str s = rule->whole_path ? path : name;
    if (rule->folder_only && !is_folder) return false;
    switch (rule->kind) {
    case HFSBI_RULE_TEXT: return hfsb_str_equal(s, hfsb_buf_str(&rule->text));
    case HFSBI_RULE_SUFFIX: return hfsb_str_ends(s, hfsb_buf_str(&rule->text));
    default: return hfsb_glob_match(rule->glob, s);
    }
}

/* From the innermost folder outwards, and in it from the last rule to the
   first: the first match decides. */
HFSBI_FN bool hfsbi_ignore_has(hfsbi_ignore *ignore, hfsb_str path,
                               bool is_folder) {
    hfsb_str name = hfsb_path_base(path);
    size_t   folder = ignore->folder_count, rule = ignore->rule_count;
    while (folder-- > 0) {
        size_t   prefix = ignore->folders[folder].prefix;
        hfsb_str below = hfsb_str_slice(path, prefix, path.len);
        while (rule > ignore->folders[folder].rules) {
            hfsbi_rule *r = &ignore->rules[--rule];
            if (hfsbi_rule_matches(r, below, name, is_folder))
                return !r->negated;
        }
    }
    return false;
}
