/* t_search.h - what the tests of glob, grep and list share: trees of files,
   their ages, calls on them. On top of t_tools.h. */
#ifndef T_SEARCH_H
#define T_SEARCH_H
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../src/search_lines.h"
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
