/* list.c - the tool list: the entries of a folder, one line each: names, or
   with `details` also type, size and time of change:

       main.c            file 1234 2026-11-16T16:42Z main.c
       lib/              dir - 2026-11-16T16:42Z lib/
       now -> main.c     link - 2026-11-16T16:42Z now -> main.c

   Details triple the length of a listing, and a model rarely needs them. With
   them the result has the same as data for programs, in the field `entries`,
   with the raw names, which a line escapes and decorates:

       {"name":"main.c","type":"file","size":1234,"time":1794847320}
       {"name":"now","type":"link","target":"main.c","time":1794847320}

   The walk visits entries sorted by name, down to `depth` levels. Entries that
   .gitignore names are listed and marked, but ignored folders are not entered
   unless `all` is given. A path to anything but a folder gets one line.

   `found` counts all entries, `shown` those in the output. Entries before
   `offset`, beyond `limit` or beyond the size of the output are only
   counted. */
#include "tools_private.h"

enum { HFSBI_LIST_LIMIT = 500 }; /* without an argument `limit` */

/* One call of list. */
typedef struct hfsbi_listing {
    hfsbi_finder       finder;
    hfsbi_results_page page;
    bool               details;
    bool               full; /* the output has no room for more */
    hfsb_buf          *out;
    hfsbi_build       *fields; /* `entries` is open in it once one is shown */
    unsigned long long found, shown;
} hfsbi_listing;

/* ---- one line ---- */

/* The word for the type of a file. */
static const char *hfsbi_type_word(mode_t mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "dir";
    if (S_ISLNK(mode)) return "link";
    if (S_ISFIFO(mode)) return "fifo";
    return S_ISSOCK(mode) ? "socket" : "device";
}

/* The time of change, in seconds since 1970. */
static long long hfsbi_changed(const struct stat *at) {
    hfsb_file_info info;
    hfsbi_file_info_fill(&info, at);
    return info.changed;
}

/* Appends the time of change: "2026-11-16T16:42Z". */
static void hfsbi_put_minute(hfsb_buf *sink, const struct stat *at) {
    hfsbi_date d = hfsbi_date_of(hfsbi_changed(at));
    hfsb_buf_printf(sink, "%04u-%02u-%02uT%02u:%02uZ", d.year, d.month, d.day,
                    d.hour, d.minute);
}

/* The target of a symlink, in space; empty for other files, and if it cannot
   be read. */
static hfsb_str hfsbi_link_target(const hfsbi_entry *entry,
                                  const struct stat *at,
                                  char               space[PATH_MAX]) {
    ssize_t n = S_ISLNK(at->st_mode)
                    ? readlinkat(entry->dir, entry->name, space, PATH_MAX)
                    : 0;
    return hfsb_str_make(space, n > 0 ? (size_t)n : 0);
}

/* Appends type, size and time of change: "file 1234 2026-11-16T16:42Z ". */
static void hfsbi_put_details(hfsb_buf *sink, const struct stat *at) {
    hfsb_buf_printf(sink, "%s ", hfsbi_type_word(at->st_mode));
    if (S_ISREG(at->st_mode))
        hfsb_buf_printf(sink, "%llu ", (unsigned long long)at->st_size);
    else hfsb_buf_printf(sink, "- ");
    hfsbi_put_minute(sink, at);
    hfsb_buf_append_byte(sink, ' ');
}

/* Appends the line of an entry. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_list_line(hfsbi_listing *l, const hfsbi_entry *entry,
                                   const struct stat *at, hfsb_str target) {
    size_t mark = l->out->len;
    if (mark) hfsb_buf_append_byte(l->out, '\n');
    if (l->details) hfsbi_put_details(l->out, at);
    hfsbi_put_shown(l->out, entry->path);
    if (S_ISDIR(at->st_mode)) hfsb_buf_append_byte(l->out, '/');
    if (target.len) hfsb_buf_printf(l->out, " -> ");
    hfsbi_put_shown(l->out, target);
    if (entry->ignored) hfsb_buf_printf(l->out, " (ignored)");
    return hfsb_buf_finish(l->out, mark);
}

/* ---- entries ---- */

/* Adds an entry to the fields. */
static void hfsbi_list_data(hfsbi_build *b, const hfsbi_entry *entry,
                            const struct stat *at, hfsb_str target) {
    hfsbi_build_object(b, NULL);
    hfsbi_build_str(b, "name", entry->path);
    hfsbi_build_str(b, "type", hfsb_cstr(hfsbi_type_word(at->st_mode)));
    if (S_ISREG(at->st_mode))
        hfsbi_build_int(b, "size", (long long)at->st_size);
    if (target.len) hfsbi_build_str(b, "target", target);
    hfsbi_build_int(b, "time", hfsbi_changed(at));
    if (entry->ignored) hfsbi_build_bool(b, "ignored", true);
    hfsbi_build_end(b);
}

/* Shows an entry, or finds the output full. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_list_show(hfsbi_listing *l, const hfsbi_entry *entry,
                                   const struct stat *at) {
    char        space[PATH_MAX];
    hfsb_str    target = hfsbi_link_target(entry, at, space);
    size_t      mark = l->out->len;
    hfsb_status st = hfsbi_list_line(l, entry, at, target);
    if (st != HFSB_OK) return st;
    l->full = mark && l->out->len > l->page.bytes;
    if (l->full) {
        hfsb_buf_truncate(l->out, mark);
        return HFSB_OK;
    }
    if (l->details && !l->shown) hfsbi_build_array(l->fields, "entries");
    if (l->details) hfsbi_list_data(l->fields, entry, at, target);
    l->shown++;
    return HFSB_OK;
}

/* Callback of the walk: lists an entry, skips one removed meanwhile. */
static hfsb_status hfsbi_list_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_listing *l = (hfsbi_listing *)user;
    struct stat    at;
    if (l->full || l->shown == l->page.limit || l->found < l->page.offset) {
        l->found++;
        return HFSB_OK;
    }
    if (fstatat(entry->dir, entry->name, &at, AT_SYMLINK_NOFOLLOW) != 0)
        return HFSB_OK;
    l->found++;
    return hfsbi_list_show(l, entry, &at);
}

/* Lists a path that is not a folder. */
static hfsb_status hfsbi_list_file(hfsbi_listing *l, hfsb_str path) {
    hfsbi_entry entry = HFSB_INIT;
    entry.dir = l->finder.spot.dir;
    entry.name = l->finder.spot.name;
    entry.path = path;
    if (l->found++ < l->page.offset) return HFSB_OK;
    return hfsbi_list_show(l, &entry, &l->finder.spot.st);
}

/* ---- the tool ---- */

/* Adds the notes and fields of the result. */
static hfsb_status hfsbi_list_end(hfsb_call *call, hfsbi_listing *l) {
    unsigned long long next = l->page.offset + l->shown;
    hfsb_status        st = HFSB_OK;
    if (l->details && !l->shown) {
        hfsbi_build_array(l->fields, "entries");
        hfsbi_build_end(l->fields);
    }
    call->note_lines = !l->found;
    if (!l->found) st = hfsb_buf_printf(l->out, "(the folder is empty)");
    if (st == HFSB_OK)
        st = hfsbi_finder_page(call, &l->finder, &l->page, l->shown, l->found,
                               "");
    if (st == HFSB_OK)
        st = hfsbi_finder_result(call, &l->finder, l->found,
                                 l->shown && next < l->found ? next : 0);
    return st;
}

typedef struct hfsbi_list_args {
    hfsb_str  path;
    bool      all, details;
    long long depth, limit, offset;
} hfsbi_list_args;

static const hfsbi_param hfsbi_list_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, 0, hfsbi_list_args, path, NULL),
    HFSBI_PARAM_RANGE("depth", HFSBI_ARG_INT, 0, hfsbi_list_args, depth,
                      "1 to 5, default 1", 1, 5, 1, "a number from 1 to 5"),
    HFSBI_PARAM("details", HFSBI_ARG_BOOL, 0, hfsbi_list_args, details,
                "Add type, size, time of change"),
    HFSBI_FINDER_PARAMS(hfsbi_list_args, "Enter ignored folders", 10000, 500),
    HFSBI_PARAM_END};

static hfsb_status hfsbi_list_run(hfsb_call *call, hfsbi_listing *l,
                                  const hfsbi_list_args *a, hfsb_err *err) {
    hfsb_status st =
        hfsbi_finder_begin(call, &l->finder, a->path, a->all, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    l->finder.flags |= HFSBI_FIND_SORTED | HFSBI_FIND_IGNORED;
    l->finder.max_depth = (size_t)a->depth;
    l->finder.visit = hfsbi_list_visit;
    l->finder.user = l;
    st = S_ISDIR(l->finder.spot.st.st_mode) ? hfsbi_finder_run(&l->finder, err)
                                            : hfsbi_list_file(l, a->path);
    if (l->details && l->shown) hfsbi_build_end(l->fields);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    return hfsbi_list_end(call, l);
}

HFSBI_FN hfsb_status hfsbi_run_list(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    const hfsbi_list_args *a = (const hfsbi_list_args *)args;
    hfsbi_listing          l;
    hfsb_status            st;
    memset(&l, 0, sizeof l);
    l.page =
        hfsbi_results_page_make(call, a->offset, a->limit, HFSBI_LIST_LIMIT);
    l.details = a->details;
    l.out = &call->result.output;
    l.fields = &call->fields;
    l.finder.spot.dir = -1;
    st = hfsbi_list_run(call, &l, a, err);
    hfsbi_finder_close(&l.finder);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_list(void) {
    static const hfsbi_tool row = {
        "list",
        "List a folder",
        "Names in a folder; those of folders end in a slash.",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_ON_DISK,
        hfsbi_list_params};
    return &row;
}
