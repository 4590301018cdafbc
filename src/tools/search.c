/* search.c - what glob, grep and list share: a finder set up for a call, pages
   of results, and the notes and fields that report pages, skipped folders and
   timeouts. */
#include "tools_private.h"

enum { HFSBI_FINDER_PAGE = 40000 }; /* bytes of output, by default */

/* Spill files may be searched although they are outside the root. A symlink
   that replaced one is not followed. */
static void hfsbi_finder_set_root(hfsb_call *call, hfsbi_finder *f,
                                  hfsb_str path) {
    hfsb_tools *tools = call->tools;
    bool        spill = hfsbi_spills_has(&tools->spills, path);
    if (spill) f->flags |= HFSBI_FIND_NO_FOLLOW;
    f->place = spill ? NULL : tools->place;
    f->alloc = tools->alloc;
    f->cancel = call->opts.cancel;
}

HFSBI_FN hfsb_status hfsbi_finder_begin(hfsb_call *call, hfsbi_finder *f,
                                        hfsb_str path, bool all,
                                        hfsb_err *err) {
    call->notes_counted = true;
    hfsbi_finder_set_root(call, f, path);
    f->spot.dir = -1;
    if (all) f->flags |= HFSBI_FIND_ALL;
    return hfsbi_finder_open(f, path, err);
}

HFSBI_FN hfsbi_results_page hfsbi_results_page_make(const hfsb_call *call,
                                                    long long        offset,
                                                    long long        limit,
                                                    size_t           preset) {
    size_t             bytes = call->tools->limits.page;
    size_t             lines = bytes / HFSBI_PAGE_LINE;
    hfsbi_results_page page;
    page.offset = (size_t)offset;
    page.limit = limit ? (size_t)limit : preset;
    if (lines && page.limit > lines) page.limit = lines;
    page.bytes = bytes ? bytes : (size_t)HFSBI_FINDER_PAGE;
    return page;
}

HFSBI_FN hfsb_status hfsbi_finder_note(hfsb_call *call, const char *format,
                                       ...) {
    size_t  mark = call->notes.len;
    va_list ap;
    if (call->result.output.len || call->notes.len)
        hfsb_buf_append_byte(&call->notes, '\n');
    va_start(ap, format);
    if (call->notes.status == HFSB_OK)
        call->notes.status = hfsbi_buf_vprintf(&call->notes, format, ap);
    va_end(ap);
    return hfsb_buf_finish(&call->notes, mark);
}

/* True when the walk was cut short, by its deadline or by a cancel. */
static bool hfsbi_finder_cut(const hfsbi_finder *f) {
    return f->end == HFSBI_WALK_LATE || f->end == HFSBI_WALK_CANCELLED;
}

HFSBI_FN const char *hfsbi_finder_all(const hfsb_call *call) {
    return call->opts.names == HFSB_EDIT_NAMES_FLAGS ? "--all" : "all=true";
}

HFSBI_FN hfsb_status hfsbi_finder_page(hfsb_call *call, const hfsbi_finder *f,
                                       const hfsbi_results_page *page,
                                       unsigned long long        shown,
                                       unsigned long long        total,
                                       const char               *what) {
    unsigned long long first = page->offset, next = first + shown;
    const char        *more = f->end == HFSBI_WALK_COMPLETE ? "" : "at least ";
    const char        *by =
        call->opts.names == HFSB_EDIT_NAMES_FLAGS ? "--offset " : "offset=";
    if (!shown && first && total)
        return hfsbi_finder_note(call, "[past the end: there are %s%llu%s]",
                                 more, total, what);
    if (!shown || (!first && next >= total)) return HFSB_OK;
    if (next >= total)
        return hfsbi_finder_note(call, "[%llu-%llu of %s%llu%s]", first + 1,
                                 next, more, total, what);
    if (!first)
        return hfsbi_finder_note(
            call, "[first %llu of %s%llu%s; read on with %s%llu]", next,
            more, total, what, by, next);
    return hfsbi_finder_note(
        call, "[%llu-%llu of %s%llu%s; read on with %s%llu]", first + 1,
        next, more, total, what, by, next);
}

/* Adds notes about folders not read and a walk stopped early. */
static hfsb_status hfsbi_finder_put_warnings(hfsb_call    *call,
                                             hfsbi_finder *f) {
    hfsb_status st = hfsb_buf_append(&call->notes, hfsb_buf_str(&f->notes));
    if (st == HFSB_OK && f->failed > HFSBI_FINDER_NAMED)
        st = hfsbi_finder_note(call, "(and %zu more folders like that)",
                               f->failed - HFSBI_FINDER_NAMED);
    if (st == HFSB_OK && f->end == HFSBI_WALK_CANCELLED)
        st = hfsbi_finder_note(call,
                               "(stopped early, the rest was not looked at: "
                               "give a path further down)");
    else if (st == HFSB_OK && f->end == HFSBI_WALK_LATE)
        st = hfsbi_finder_note(call,
                               "(stopped after %d s, the rest was not looked "
                               "at: give a path further down)",
                               HFSBI_FINDER_MS / 1000);
    return st;
}

HFSBI_FN hfsb_status hfsbi_finder_result(hfsb_call *call, hfsbi_finder *f,
                                         unsigned long long count,
                                         unsigned long long next_offset) {
    hfsb_status st = hfsbi_finder_put_warnings(call, f);
    call->result.success = st == HFSB_OK;
    hfsbi_build_int(&call->fields, "count", (long long)count);
    hfsbi_build_bool(&call->fields, "truncated",
                     next_offset || hfsbi_finder_cut(f));
    if (next_offset)
        hfsbi_build_int(&call->fields, "next_offset", (long long)next_offset);
    return st;
}
