/* glob.c - glob: files by a pattern, the newest first. */
#include "tools_private.h"

enum {
    HFSBI_NAMED_LIMIT = 200,
    HFSBI_NAMED_HELD = 4096 /* found ones, or four times those wanted */
};

/* A file that was found. */
typedef struct hfsbi_named_file {
    long long   changed;
    long        nanos;
    const char *path; /* once the texts stay where they are */
    size_t      at, len;
} hfsbi_named_file;

typedef struct hfsbi_named_run {
    hfsbi_finder       finder;
    hfsb_glob         *glob;
    bool               by_name; /* the pattern has no slash */
    bool               folders; /* some match */
    bool               linked;  /* one that the pattern names is a link */
    size_t             limit;
    hfsbi_named_file  *hits;
    size_t             count, cap;
    hfsb_buf           texts; /* their paths, a NUL behind each */
    unsigned long long found;
    unsigned long long shown;
    hfsb_buf           given;         /* the pattern, without empty parts */
    hfsb_buf           path, pattern; /* as they are split, when they must
                                         be */
} hfsbi_named_run;

/* ---- the newest ones ---- */

static int hfsbi_compare_files(const void *a, const void *b) {
    const hfsbi_named_file *x = (const hfsbi_named_file *)a;
    const hfsbi_named_file *y = (const hfsbi_named_file *)b;
    if (x->changed != y->changed) return x->changed < y->changed ? 1 : -1;
    if (x->nanos != y->nanos) return x->nanos < y->nanos ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void hfsbi_named_sort(hfsbi_named_run *g) {
    size_t i;
    for (i = 0; i < g->count; i++)
        g->hits[i].path = g->texts.ptr + g->hits[i].at;
    if (g->count > 1)
        hfsbi_sort(g->hits, g->count, sizeof *g->hits, hfsbi_compare_files);
}

/* Those that are left out before the ones to show are among the newest. */
static size_t hfsbi_named_wanted(const hfsbi_named_run *g) {
    return g->finder.offset + g->limit;
}

/* Forgets all but the newest: what is held stays in proportion to what is
   shown, however many there are. */
static hfsb_status hfsbi_named_thin(hfsbi_named_run *g) {
    hfsb_buf    texts = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      i;
    texts.alloc = g->finder.alloc;
    hfsbi_named_sort(g);
    if (g->count > hfsbi_named_wanted(g)) g->count = hfsbi_named_wanted(g);
    for (i = 0; st == HFSB_OK && i < g->count; i++) {
        hfsbi_named_file *hit = &g->hits[i];
        hit->at = texts.len;
        st = hfsb_buf_append(&texts, hfsb_str_make(hit->path, hit->len + 1));
    }
    hfsb_buf_free(&g->texts);
    g->texts = texts;
    return st;
}

static hfsb_status hfsbi_named_add(hfsbi_named_run *g, hfsb_str path,
                                   const struct stat *at) {
    hfsb_file_info    info;
    hfsbi_named_file *hits = g->hits;
    hfsb_status       st;
    g->found++;
    if (g->count >= HFSBI_NAMED_HELD &&
        g->count >= 4 * hfsbi_named_wanted(g)) {
        st = hfsbi_named_thin(g);
        if (st != HFSB_OK) return st;
    }
    if (g->count == g->cap) {
        hits = (hfsbi_named_file *)hfsbi_array_grow(
            &g->finder.alloc, hits, &g->cap, g->count + 1, sizeof *hits);
        if (!hits) return HFSB_NOMEM;
        g->hits = hits;
    }
    hfsbi_file_info_fill(&info, at);
    hits += g->count++;
    hits->changed = info.changed;
    hits->nanos = info.changed_nanos;
    hits->path = NULL;
    hits->at = g->texts.len;
    hits->len = path.len;
    st = hfsb_buf_append(&g->texts, path);
    return st == HFSB_OK ? hfsb_buf_append_byte(&g->texts, '\0') : st;
}

/* ---- the walk ---- */

/* True when the pattern names it as a folder that all matches are in. */
static bool hfsbi_named_leads(const hfsbi_named_run *g, hfsb_str path) {
    hfsb_str base = hfsb_glob_base(g->glob);
    return hfsb_str_starts(base, path) &&
           (base.len == path.len || base.ptr[path.len] == '/');
}

static bool hfsbi_named_wants(void *user, const hfsbi_entry *entry) {
    hfsbi_named_run *g = (hfsbi_named_run *)user;
    hfsb_str         name = g->by_name ? hfsb_cstr(entry->name) : entry->path;
    if (entry->type == HFSBI_ENTRY_OTHER) return false;
    if (entry->type == HFSBI_ENTRY_LINK && hfsbi_named_leads(g, entry->path))
        g->linked = true;
    if (entry->type != HFSBI_ENTRY_FOLDER)
        return hfsb_glob_match(g->glob, name);
    g->folders = g->folders || hfsb_glob_match(g->glob, name);
    return g->by_name || hfsb_glob_enters(g->glob, entry->path);
}

static hfsb_status hfsbi_named_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_named_run *g = (hfsbi_named_run *)user;
    struct stat      at;
    if (entry->type == HFSBI_ENTRY_FOLDER) return HFSB_OK;
    if (fstatat(entry->dir, entry->name, &at, AT_SYMLINK_NOFOLLOW) != 0)
        return HFSB_OK; /* it is gone */
    return hfsbi_named_add(g, entry->path, &at);
}

/* ---- the pattern ---- */

static bool hfsbi_is_magic(hfsb_str part) {
    size_t i;
    for (i = 0; i < part.len; i++)
        if (strchr("*?[{\\", part.ptr[i])) return true;
    return false;
}

static bool hfsbi_is_dot_part(hfsb_str part) {
    return hfsb_str_equal(part, HFSB_LIT(".")) ||
           hfsb_str_equal(part, HFSB_LIT(".."));
}

/* The folders at the beginning of a pattern up to and with the last one that
   a pattern cannot match: "/" and all that is plain behind it, "." and "..".
   Gives how many bytes that are. */
static size_t hfsbi_named_lead(hfsb_str pattern) {
    bool   absolute = pattern.len && pattern.ptr[0] == '/';
    size_t pos = 0, lead = absolute;
    while (pos < pattern.len) {
        hfsb_str part = hfsb_str_slice(pattern, pos, pattern.len);
        size_t   n = hfsb_str_find_byte(part, '/');
        if (n == HFSB_NPOS) break;
        part = hfsb_str_slice(part, 0, n);
        if (hfsbi_is_magic(part)) break;
        pos += n + 1;
        if (absolute || hfsbi_is_dot_part(part)) lead = pos;
    }
    return lead;
}

/* True when some part of it is "." or "..", which is the name of no file. */
static bool hfsbi_named_climbs(hfsb_str pattern) {
    while (pattern.len) {
        size_t n = hfsb_str_find_byte(pattern, '/');
        if (hfsbi_is_dot_part(hfsb_str_slice(pattern, 0, n))) return true;
        if (n == HFSB_NPOS) break;
        pattern = hfsb_str_slice(pattern, n + 1, pattern.len);
    }
    return false;
}

/* "src//x.c" is what "src/x.c" means. */
static hfsb_status hfsbi_named_given(hfsbi_named_run *g, hfsb_str pattern) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < pattern.len; i++)
        if (i == 0 || pattern.ptr[i] != '/' || pattern.ptr[i - 1] != '/')
            st = hfsb_buf_append_byte(&g->given, pattern.ptr[i]);
    return st;
}

/* What leads elsewhere moves from the pattern to the path. */
static hfsb_status hfsbi_named_split(hfsbi_named_run *g, hfsb_str pattern,
                                     hfsb_str path, hfsb_err *err) {
    size_t   lead = hfsbi_named_lead(pattern);
    bool     absolute = pattern.len && pattern.ptr[0] == '/';
    size_t   mark = g->path.len;
    hfsb_str rest = hfsb_str_slice(pattern, lead, pattern.len);
    if (!rest.len || rest.ptr[rest.len - 1] == '/')
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "pattern must end in the name of a file, such as "
                          "src/*.c or src/**; for folders use list.");
    if (absolute && path.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "pattern begins with / and path is given too: give "
                          "a pattern that begins at path.");
    if (hfsbi_named_climbs(rest))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "pattern must not have . or .. behind a wildcard or "
                          "at its end: give path for where to begin.");
    hfsb_buf_append(&g->path, path);
    if (lead && path.len) hfsb_buf_append_byte(&g->path, '/');
    hfsb_buf_append(&g->path, hfsb_str_slice(pattern, 0, lead));
    if (hfsb_buf_finish(&g->path, mark) != HFSB_OK ||
        hfsb_buf_append(&g->pattern, rest) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
    g->by_name = hfsb_str_find_byte(rest, '/') == HFSB_NPOS && !lead;
    return HFSB_OK;
}

/* ---- the tool ---- */

static hfsb_status hfsbi_named_none(hfsb_call             *call,
                                    const hfsbi_named_run *g) {
    size_t   mark = call->result.output.len;
    hfsb_str pattern = hfsb_buf_str(&g->pattern);
    hfsb_buf_printf(&call->result.output, "(no files match ");
    hfsbi_put_shown(&call->result.output, pattern);
    hfsb_buf_printf(&call->result.output, "; %zu files looked at",
                    g->finder.files);
    if (g->folders)
        hfsb_buf_printf(&call->result.output,
                        "; it names a folder: see what is in it with list, "
                        "or add /**");
    if (g->linked)
        hfsb_buf_printf(&call->result.output,
                        "; a folder in it is a link, which is not "
                        "followed: give the folder as path");
    if (hfsb_str_starts(pattern, HFSB_LIT("~")))
        hfsb_buf_printf(&call->result.output,
                        "; \"~\" is not expanded: give the full path");
    if (g->finder.ignored)
        hfsb_buf_printf(&call->result.output,
                        "; what .gitignore names was left out, all=true "
                        "includes it");
    hfsb_buf_append_byte(&call->result.output, ')');
    return hfsb_buf_finish(&call->result.output, mark);
}

static hfsb_status hfsbi_named_show(hfsb_call *call, hfsbi_named_run *g) {
    hfsb_buf   *out = &call->result.output;
    size_t      mark = out->len;
    hfsb_status st;
    size_t      i;
    if (!g->count) return hfsbi_named_none(call, g);
    hfsbi_named_sort(g);
    if (g->count > hfsbi_named_wanted(g)) g->count = hfsbi_named_wanted(g);
    for (i = g->finder.offset; i < g->count && out->status == HFSB_OK; i++) {
        if (out->len && out->len + g->hits[i].len > HFSBI_FINDER_CHARS) break;
        if (out->len) hfsb_buf_append_byte(out, '\n');
        g->shown++;
        hfsbi_put_shown(out, hfsb_buf_str(&g->finder.shown));
        hfsbi_put_shown(out, hfsb_str_make(g->hits[i].path, g->hits[i].len));
    }
    st = hfsb_buf_finish(out, mark);
    return st == HFSB_OK ? hfsbi_finder_page(call, &g->finder, g->shown,
                                             g->found, false, "")
                         : st;
}

static hfsb_status hfsbi_named_run_all(hfsb_call *call, hfsbi_named_run *g,
                                       hfsb_err *err) {
    hfsbi_finder      *f = &g->finder;
    unsigned long long next;
    hfsb_status        st;
    if (!S_ISDIR(f->spot.st.st_mode)) {
        st = hfsbi_file_fail(err, HFSB_REFUSED, "Not a directory",
                             hfsb_buf_str(&g->path));
        return hfsbi_result_err(&call->result, err);
    }
    f->wants = hfsbi_named_wants;
    f->visit = hfsbi_named_visit;
    f->user = g;
    st = hfsbi_finder_run(f, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    st = hfsbi_named_show(call, g);
    next = f->offset + g->shown;
    if (st == HFSB_OK)
        st = hfsbi_finder_result(call, f, g->found,
                                 g->shown && next < g->found ? next : 0);
    return st;
}

typedef struct hfsbi_glob_args {
    hfsb_str  pattern, path;
    bool      all;
    long long limit, offset;
} hfsbi_glob_args;

static const hfsbi_param hfsbi_glob_params[] = {
    HFSBI_PARAM("pattern", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_glob_args,
                pattern, NULL),
    HFSBI_PARAM("path", HFSBI_ARG_STR, 0, hfsbi_glob_args, path, NULL),
    HFSBI_FINDER_PARAMS(hfsbi_glob_args, "Leave out nothing", 10000, 200),
    HFSBI_PARAM_END};

static hfsb_status hfsbi_named_begin(hfsb_call *call, hfsbi_named_run *g,
                                     const hfsbi_glob_args *a, hfsb_err *err) {
    hfsb_status st;
    if (hfsbi_named_given(g, a->pattern) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
    st = hfsbi_named_split(g, hfsb_buf_str(&g->given), a->path, err);
    if (st != HFSB_OK) return st;
    st = hfsb_glob_open(hfsb_buf_str(&g->pattern), &call->tools->alloc,
                        &g->glob, err);
    if (st == HFSB_OK)
        st = hfsbi_finder_begin(call, &g->finder, hfsb_buf_str(&g->path),
                                a->all, a->offset, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    return hfsbi_named_run_all(call, g, err);
}

static hfsb_status hfsbi_run_glob(hfsb_call *call, const void *args,
                                  hfsb_err *err) {
    const hfsbi_glob_args *a = (const hfsbi_glob_args *)args;
    hfsbi_named_run        g;
    hfsb_status            st;
    memset(&g, 0, sizeof g);
    g.limit = a->limit ? (size_t)a->limit : (size_t)HFSBI_NAMED_LIMIT;
    g.texts.alloc = g.given.alloc = call->tools->alloc;
    g.path.alloc = g.pattern.alloc = call->tools->alloc;
    g.finder.alloc = call->tools->alloc;
    g.finder.spot.dir = -1;
    st = hfsbi_named_begin(call, &g, a, err);
    hfsbi_finder_close(&g.finder);
    hfsb_glob_close(g.glob);
    hfsb_buf_free(&g.texts);
    hfsb_buf_free(&g.given);
    hfsb_buf_free(&g.path);
    hfsb_buf_free(&g.pattern);
    hfsbi_array_free(&call->tools->alloc, g.hits, g.cap, sizeof *g.hits);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_glob(void) {
    static const hfsbi_tool row = {
        "glob",
        "Find files by name",
        "Find files by a pattern, newest first. A pattern without a slash is "
        "for names in any folder: *.py; with one it begins at path: "
        "src/**/*.{c,h}. Leaves out .git and what .gitignore names.",
        NULL,
        HFSBI_TOOL_READS,
        false,
        hfsbi_glob_params,
        hfsbi_run_glob};
    return &row;
}
