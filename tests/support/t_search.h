/* t_search.h - what the tests of glob, grep and list share: trees of files,
   their ages, calls on them. On top of t_tools.h. */
#ifndef T_SEARCH_H
#define T_SEARCH_H
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/tools/tools_private.h"
#endif

/* A file with its folders. */
HFSBI_UNUSED static void tf_put(const char *path, const char *content) {
    char   folder[1024];
    size_t i;
    for (i = 0; path[i]; i++) {
        if (path[i] != '/' || i == 0) continue;
        snprintf(folder, sizeof folder, "%.*s", (int)i, path);
        if (mkdir(folder, 0755) && errno != EEXIST) abort();
    }
    if (path[i - 1] != '/') tt_put(path, hfsb_cstr(content));
}

/* It was changed so many seconds after a time of ours. */
HFSBI_UNUSED static void tf_age(const char *path, long seconds) {
    struct timespec t[2];
    t[0].tv_sec = t[1].tv_sec = 1700000000 + seconds;
    t[0].tv_nsec = t[1].tv_nsec = 0;
    if (utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW)) abort();
}

/* A folder of its own for a test, which is the current directory then. */
HFSBI_UNUSED static void tf_enter(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/work/%s", tt_dir, name);
    if (mkdir(path, 0755) || chdir(path)) abort();
}

HFSBI_UNUSED static hfsb_tools *tf_rooted(const char *root) {
    hfsb_tools_opts opts = HFSB_INIT;
    opts.root = hfsb_cstr(root);
    return tt_open(&opts);
}

/* Lines in order, for a comparison with what others print. */
static int tf_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

HFSBI_UNUSED static void tf_sort_lines(hfsb_buf *text) {
    size_t       n = hfsb_str_count_byte(hfsb_buf_str(text), '\n') + 1, i = 0;
    const char **lines = (const char **)calloc(n, sizeof *lines);
    hfsb_buf     out = HFSB_INIT;
    char        *at;
    if (!lines) abort();
    for (at = text->len ? strtok(text->ptr, "\n") : NULL; at;
         at = strtok(NULL, "\n"))
        lines[i++] = at;
    n = i;
    qsort(lines, n, sizeof *lines, tf_compare);
    for (i = 0; i < n; i++)
        if (hfsb_buf_printf(&out, "%s\n", lines[i]) != HFSB_OK) abort();
    free(lines);
    hfsb_buf_free(text);
    *text = out;
}

/* What a command prints; false when it fails. */
HFSBI_UNUSED static bool tf_shell(const char *command, hfsb_buf *out) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_buf_truncate(out, 0);
    opts.command = hfsb_cstr(command);
    return hfsb_proc_run(&opts, out, NULL, &result, NULL) == HFSB_OK &&
           result.exit_code == 0;
}

/* Both hold the same lines, in any order; what differs is shown. */
HFSBI_UNUSED static bool tf_same_lines(const char *what, hfsb_buf *ours,
                                       hfsb_buf *theirs) {
    size_t i = 0;
    tf_sort_lines(ours);
    tf_sort_lines(theirs);
    if (hfsb_str_equal(hfsb_buf_str(ours), hfsb_buf_str(theirs))) return true;
    while (i < ours->len && i < theirs->len && ours->ptr[i] == theirs->ptr[i])
        i++;
    while (i > 0 && ours->ptr[i - 1] != '\n') i--;
    printf("  %s: %zu bytes here, %zu there; from here on\n  ours   %.200s\n"
           "  theirs %.200s\n",
           what, ours->len, theirs->len, ours->ptr ? ours->ptr + i : "",
           theirs->ptr ? theirs->ptr + i : "");
    return false;
}

/* No line of these, which are in order, is there twice. */
static bool tf_all_differ(const hfsb_buf *all) {
    hfsb_str rest = hfsb_buf_str(all), last = HFSB_INIT;
    while (rest.len) {
        size_t   n = hfsb_str_find_byte(rest, '\n') + 1;
        hfsb_str line = hfsb_str_slice(rest, 0, n);
        if (hfsb_str_equal(line, last)) return false;
        last = line;
        rest = hfsb_str_slice(rest, n, rest.len);
    }
    return true;
}

/* Adds the lines of a page that are results; gives how many. */
static long long tf_add_page(hfsb_buf *all, hfsb_buf *page) {
    long long n = 0;
    char     *line = page->len ? strtok(page->ptr, "\n") : NULL;
    for (; line; line = strtok(NULL, "\n")) {
        if (line[0] == '[' || strcmp(line, "--") == 0 ||
            strstr(line, "(around)"))
            continue;
        n++;
        if (hfsb_buf_printf(all, "%s\n", line) != HFSB_OK) abort();
    }
    return n;
}

/* Reads page by page, as the last line of each says, `want` results (0: as
   many as the first page says there are) without any twice; lines that are
   context are not counted. How many pages it took; 0: something is wrong. */
HFSBI_UNUSED static int tf_pages(hfsb_tools *tools, const char *tool,
                                 const char *json, long long want) {
    hfsb_buf  all = HFSB_INIT, text = HFSB_INIT;
    long long offset = 0, lines = 0;
    int       pages = 0;
    bool      more = true, good = true;
    while (more && good && pages++ < 1000) {
        tt_reply    r = HFSB_INIT;
        const char *at;
        hfsb_buf_truncate(&text, 0);
        if (hfsb_buf_printf(&text, "{%s,\"offset\":%lld}", json, offset) !=
            HFSB_OK)
            abort();
        tt_do(&r, tools, tool, hfsb_buf_str(&text), NULL);
        good = r.res.success && r.res.output.len < 43000;
        at = r.res.output.len ? strstr(r.res.output.ptr, "read on with") : "";
        more = at != NULL && *at;
        if (more != tt_flag(&r, "truncated")) good = false;
        if (more) offset = strtoll(strchr(at, '=') + 1, NULL, 10);
        if (more && offset != tt_int(&r, "next_offset")) good = false;
        if (!want) want = tt_int(&r, "count");
        lines += tf_add_page(&all, &r.res.output);
        if (more && offset != lines) good = false;
        tt_drop(&r);
    }
    tf_sort_lines(&all);
    good = tf_all_differ(&all) && good;
    if (!good || lines != want)
        printf("  %s %s: %lld of %lld in %d pages\n", tool, json, lines, want,
               pages);
    hfsb_buf_free(&all);
    hfsb_buf_free(&text);
    return good && lines == want ? pages : 0;
}

/* One call with every allocation failing in turn. */
static const char *tf_tool, *tf_json;

static void tf_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools = NULL;
    hfsb_tool_result r;
    hfsb_status      st;
    opts.alloc = alloc;
    st = hfsb_tools_open(&opts, &tools, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !tools));
    if (!tools) return;
    memset(&r, 0xA5, sizeof r); /* filled in any case */
    st = hfsb_tools_call_text(tools, hfsb_cstr(tf_tool), hfsb_cstr(tf_json),
                              NULL, &r);
    T_CHECK((st == HFSB_OK && r.success) ||
            (heap->fail_at && !r.success &&
             (st == HFSB_NOMEM || r.error.len > 0)));
    hfsb_tool_result_free(&r);
    hfsb_tools_close(tools);
}

HFSBI_UNUSED static void tf_each_allocation_fails(const char *tool,
                                                  const char *json) {
    tf_tool = tool;
    tf_json = json;
    t_each_allocation_fails(tf_without_memory);
}
#endif
