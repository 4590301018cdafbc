/* glob.c - the tool glob: finds files by a pattern, newest first.

   A call squeezes the pattern, splits it, walks the folder and sorts the
   hits:

       path "", pattern "/usr//lib/a*.so"
         squeeze  "/usr/lib/a*.so"
         split    path "/usr/lib/", pattern "a*.so"

   split() moves leading parts that a pattern cannot match, "/", "." and "..",
   from the pattern to the path. A pattern given without a slash matches names
   in any folder; one with a slash matches paths relative to the path.

   Only the newest `offset + limit` hits can be shown. The search holds at most
   four times that many, or HFSBI_GLOB_HELD, and then drops the oldest; `found`
   counts all of them. */
#include "tools_private.h"

enum {
    HFSBI_GLOB_LIMIT = 200, /* hits shown, without an argument `limit` */
    HFSBI_GLOB_HELD = 4096  /* hits held before the oldest are dropped */
};

/* A file that matches. */
typedef struct hfsbi_glob_hit {
    long long   changed; /* seconds since 1970 */
    long        nanos;   /* fraction of that second */
    const char *path;    /* into `texts`; valid after a sort, until an add */
    size_t      at, len; /* of the path in `texts` */
} hfsbi_glob_hit;

/* One call of glob. */
typedef struct hfsbi_glob_search {
    hfsbi_finder       finder;
    hfsb_glob         *glob;
    bool               by_name; /* the pattern has no slash */
    bool               folders; /* the pattern matches a folder */
    bool               linked;  /* a folder in the pattern is a symlink */
    hfsbi_results_page page;
    hfsbi_glob_hit    *hits;
    size_t             count, cap;
    hfsb_buf           texts;         /* paths of `hits`, each with a NUL */
    unsigned long long found;         /* files that match */
    unsigned long long shown;         /* files in the output */
    hfsb_buf           given;         /* the pattern, squeezed */
    hfsb_buf           path, pattern; /* after the split */
} hfsbi_glob_search;

/* ---- hits ---- */

/* Newest first, then by path. */
static int hfsbi_compare_files(const void *a, const void *b) {
    const hfsbi_glob_hit *x = (const hfsbi_glob_hit *)a;
    const hfsbi_glob_hit *y = (const hfsbi_glob_hit *)b;
    if (x->changed != y->changed) return x->changed < y->changed ? 1 : -1;
    if (x->nanos != y->nanos) return x->nanos < y->nanos ? 1 : -1;
    return strcmp(x->path, y->path);
}

/* Sorts the hits, and sets their paths. */
static void hfsbi_glob_sort(hfsbi_glob_search *g) {
    size_t i;
    for (i = 0; i < g->count; i++)
        g->hits[i].path = g->texts.ptr + g->hits[i].at;
    if (g->count > 1)
        hfsbi_sort(g->hits, g->count, sizeof *g->hits, hfsbi_compare_files);
}

/* How many of the newest hits are needed: the page and all before it. */
static size_t hfsbi_glob_newest(const hfsbi_glob_search *g) {
    return g->page.offset + g->page.limit;
}

/* Drops all but the newest hits, so memory depends on the limit and not on the
   number of files. */
static hfsb_status hfsbi_glob_drop_oldest(hfsbi_glob_search *g) {
    hfsb_buf    texts = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      i;
    texts.alloc = g->finder.alloc;
    hfsbi_glob_sort(g);
    if (g->count > hfsbi_glob_newest(g)) g->count = hfsbi_glob_newest(g);
    for (i = 0; st == HFSB_OK && i < g->count; i++) {
        hfsbi_glob_hit *hit = &g->hits[i];
        hit->at = texts.len;
        st = hfsb_buf_append(&texts, hfsb_str_make(hit->path, hit->len + 1));
    }
    hfsb_buf_free(&g->texts);
    g->texts = texts;
    return st;
}

/* Adds a hit. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_glob_add(hfsbi_glob_search *g, hfsb_str path,
                                  const struct stat *at) {
    hfsb_file_info  info;
    hfsbi_glob_hit *hits = g->hits;
    hfsb_status     st;
    g->found++;
    if (g->count >= HFSBI_GLOB_HELD && g->count >= 4 * hfsbi_glob_newest(g)) {
        st = hfsbi_glob_drop_oldest(g);
        if (st != HFSB_OK) return st;
    }
    if (g->count == g->cap) {
        hits = (hfsbi_glob_hit *)hfsbi_array_grow(
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

/* True if path is a leading part of the pattern without wildcards. */
static bool hfsbi_glob_base_has(const hfsbi_glob_search *g, hfsb_str path) {
    hfsb_str base = hfsb_glob_base(g->glob);
    return hfsb_str_starts(base, path) &&
           (base.len == path.len || base.ptr[path.len] == '/');
}

/* Callback of the walk: files that match, folders that may contain some. */
static bool hfsbi_glob_wants(void *user, const hfsbi_entry *entry) {
    hfsbi_glob_search *g = (hfsbi_glob_search *)user;
    hfsb_str name = g->by_name ? hfsb_cstr(entry->name) : entry->path;
    if (entry->type == HFSBI_ENTRY_OTHER) return false;
    if (entry->type == HFSBI_ENTRY_LINK && hfsbi_glob_base_has(g, entry->path))
        g->linked = true;
    if (entry->type != HFSBI_ENTRY_FOLDER)
        return hfsb_glob_match(g->glob, name);
    g->folders = g->folders || hfsb_glob_match(g->glob, name);
    return g->by_name || hfsb_glob_enters(g->glob, entry->path);
}

/* Callback of the walk: adds a file, skips one removed meanwhile. */
static hfsb_status hfsbi_glob_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_glob_search *g = (hfsbi_glob_search *)user;
    struct stat        at;
    if (entry->type == HFSBI_ENTRY_FOLDER) return HFSB_OK;
    if (fstatat(entry->dir, entry->name, &at, AT_SYMLINK_NOFOLLOW) != 0)
        return HFSB_OK;
    return hfsbi_glob_add(g, entry->path, &at);
}

/* ---- the pattern ---- */

/* True if part contains a wildcard or an escape. */
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

/* Bytes of the pattern that belong to the path: up to the last leading "." or
   "..", or for an absolute pattern all folders before the first wildcard. */
static size_t hfsbi_glob_lead(hfsb_str pattern) {
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

/* True if a part of the pattern is "." or "..", which matches no file. */
static bool hfsbi_glob_has_dots(hfsb_str pattern) {
    while (pattern.len) {
        size_t n = hfsb_str_find_byte(pattern, '/');
        if (hfsbi_is_dot_part(hfsb_str_slice(pattern, 0, n))) return true;
        if (n == HFSB_NPOS) break;
        pattern = hfsb_str_slice(pattern, n + 1, pattern.len);
    }
    return false;
}

/* Copies the pattern to g->given with repeated slashes squeezed into one. */
static hfsb_status hfsbi_glob_squeeze(hfsbi_glob_search *g, hfsb_str pattern) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < pattern.len; i++)
        if (i == 0 || pattern.ptr[i] != '/' || pattern.ptr[i - 1] != '/')
            st = hfsb_buf_append_byte(&g->given, pattern.ptr[i]);
    return st;
}

/* Splits the pattern into g->path, after the given path, and g->pattern.
   HFSB_OK; HFSB_ARG with the message; HFSB_NOMEM. */
static hfsb_status hfsbi_glob_split(hfsbi_glob_search *g, hfsb_str pattern,
                                    hfsb_str path, hfsb_err *err) {
    size_t   lead = hfsbi_glob_lead(pattern);
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
    if (hfsbi_glob_has_dots(rest))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "pattern must not have . or .. after a wildcard or "
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

/* ---- result and tool ---- */

/* Appends why nothing matches, with the next step. */
static hfsb_status hfsbi_glob_put_none(hfsb_call               *call,
                                       const hfsbi_glob_search *g) {
    size_t   mark = call->result.output.len;
    hfsb_str pattern = hfsb_buf_str(&g->pattern);
    call->note_lines = 1;
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
                        "; what .gitignore names was left out, %s "
                        "includes it",
                        hfsbi_finder_all(call));
    hfsb_buf_append_byte(&call->result.output, ')');
    return hfsb_buf_finish(&call->result.output, mark);
}

/* Appends a page of the hits. */
static hfsb_status hfsbi_glob_put_hits(hfsb_call *call, hfsbi_glob_search *g) {
    hfsb_buf   *out = &call->result.output;
    size_t      mark = out->len;
    hfsb_status st;
    size_t      i;
    if (!g->count) return hfsbi_glob_put_none(call, g);
    hfsbi_glob_sort(g);
    if (g->count > hfsbi_glob_newest(g)) g->count = hfsbi_glob_newest(g);
    for (i = g->page.offset; i < g->count && out->status == HFSB_OK; i++) {
        if (out->len && out->len + g->hits[i].len > g->page.bytes) break;
        if (out->len) hfsb_buf_append_byte(out, '\n');
        g->shown++;
        hfsbi_put_shown(out, hfsb_buf_str(&g->finder.shown));
        hfsbi_put_shown(out, hfsb_str_make(g->hits[i].path, g->hits[i].len));
    }
    st = hfsb_buf_finish(out, mark);
    return st == HFSB_OK ? hfsbi_finder_page(call, &g->finder, &g->page,
                                             g->shown, g->found, "")
                         : st;
}

/* Walks the folder and fills the result. */
static hfsb_status hfsbi_glob_walk(hfsb_call *call, hfsbi_glob_search *g,
                                   hfsb_err *err) {
    hfsbi_finder      *f = &g->finder;
    unsigned long long next;
    hfsb_status        st;
    if (!S_ISDIR(f->spot.st.st_mode)) {
        st = hfsbi_file_fail(err, HFSB_REFUSED, "Not a directory",
                             hfsb_buf_str(&g->path));
        return hfsbi_result_err(&call->result, err);
    }
    f->wants = hfsbi_glob_wants;
    f->visit = hfsbi_glob_visit;
    f->user = g;
    st = hfsbi_finder_run(f, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    st = hfsbi_glob_put_hits(call, g);
    next = g->page.offset + g->shown;
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

/* Prepares pattern and walk from the arguments, then runs the search. */
static hfsb_status hfsbi_glob_begin(hfsb_call *call, hfsbi_glob_search *g,
                                    const hfsbi_glob_args *a, hfsb_err *err) {
    hfsb_status st;
    if (hfsbi_glob_squeeze(g, a->pattern) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
    st = hfsbi_glob_split(g, hfsb_buf_str(&g->given), a->path, err);
    if (st != HFSB_OK) return st;
    st = hfsb_glob_open(hfsb_buf_str(&g->pattern), &call->tools->alloc,
                        &g->glob, err);
    if (st == HFSB_OK)
        st = hfsbi_finder_begin(call, &g->finder, hfsb_buf_str(&g->path),
                                a->all, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    return hfsbi_glob_walk(call, g, err);
}

HFSBI_FN hfsb_status hfsbi_run_glob(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    const hfsbi_glob_args *a = (const hfsbi_glob_args *)args;
    hfsbi_glob_search      g;
    hfsb_status            st;
    memset(&g, 0, sizeof g);
    g.page =
        hfsbi_results_page_make(call, a->offset, a->limit, HFSBI_GLOB_LIMIT);
    g.texts.alloc = g.given.alloc = call->tools->alloc;
    g.path.alloc = g.pattern.alloc = call->tools->alloc;
    g.finder.alloc = call->tools->alloc;
    g.finder.spot.dir = -1;
    st = hfsbi_glob_begin(call, &g, a, err);
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
        HFSBI_TOOL_ON_DISK | HFSBI_TOOL_CORE,
        hfsbi_glob_params};
    return &row;
}
