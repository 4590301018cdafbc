/* ignore.c - the rules of .gitignore files. Depends on: base, glob. */
#include "ignore.h"
#include "regex_parts.h"

typedef enum hfsbi_rule_kind {
    HFSBI_RULE_TEXT,   /* equal to the text */
    HFSBI_RULE_SUFFIX, /* the name ends with it: "*.o" */
    HFSBI_RULE_GLOB
} hfsbi_rule_kind;

typedef struct hfsbi_rule {
    hfsbi_rule_kind kind;
    hfsb_buf        text;
    hfsb_glob      *glob;
    bool            negated;     /* "!": not ignored after all */
    bool            folder_only; /* "build/" */
    bool            whole_path;  /* from the folder of the file on, not the
                                    name alone */
} hfsbi_rule;

typedef struct hfsbi_ignore_folder {
    size_t prefix; /* bytes of a path before what the rules look at */
    size_t rules;  /* how many there were before its own */
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

/* ---- lines ---- */

/* Without the blanks at its end, unless a backslash keeps them. */
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

/* Reads a line that holds a pattern: HFSB_NOMEM, or another failure when it
   is none. */
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

static hfsb_status hfsbi_ignore_add(hfsbi_ignore *ig, hfsb_str line) {
    hfsbi_rule  rule;
    hfsb_status st;
    void       *grown;
    /* at the beginning of a file, of which there may be two in the text */
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
    size_t before = ignore->rule_count, at = 0;
    void  *grown =
        hfsbi_array_grow(&ignore->alloc, ignore->folders, &ignore->folder_cap,
                         ignore->folder_count + 1, sizeof *ignore->folders);
    if (!grown) return HFSB_NOMEM;
    ignore->folders = (hfsbi_ignore_folder *)grown;
    while (at < text.len) {
        hfsb_str rest = hfsb_str_slice(text, at, text.len);
        size_t   end = hfsb_str_find_byte(rest, '\n');
        if (end == HFSB_NPOS) end = rest.len;
        if (hfsbi_ignore_add(ignore, hfsb_str_slice(rest, 0, end)) !=
            HFSB_OK) {
            hfsbi_ignore_cut(ignore, before);
            return HFSB_NOMEM;
        }
        at += end + 1;
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

/* ---- asking ---- */

static bool hfsbi_rule_fits(hfsbi_rule *rule, hfsb_str path, hfsb_str name,
                            bool is_folder) {
    hfsb_str s = rule->whole_path ? path : name;
    if (rule->folder_only && !is_folder) return false;
    switch (rule->kind) {
    case HFSBI_RULE_TEXT: return hfsb_str_equal(s, hfsb_buf_str(&rule->text));
    case HFSBI_RULE_SUFFIX: return hfsb_str_ends(s, hfsb_buf_str(&rule->text));
    default: return hfsb_glob_match(rule->glob, s);
    }
}

HFSBI_FN bool hfsbi_ignore_has(hfsbi_ignore *ignore, hfsb_str path,
                               bool is_folder) {
    hfsb_str name = hfsb_path_base(path);
    size_t   folder = ignore->folder_count, rule = ignore->rule_count;
    while (folder-- > 0) {
        size_t   prefix = ignore->folders[folder].prefix;
        hfsb_str below = hfsb_str_slice(path, prefix, path.len);
        while (rule > ignore->folders[folder].rules) {
            hfsbi_rule *r = &ignore->rules[--rule];
            if (hfsbi_rule_fits(r, below, name, is_folder)) return !r->negated;
        }
    }
    return false;
}
