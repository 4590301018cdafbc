/* search_show.c - arguments and results of glob, grep and list. Depends on:
   base, json, call, search_walk. */
#include "search.h"

/* A session may search the spill files it was told of, also under a root: the
   file itself, not what a link that took its place leads to. */
static void hfsbi_finder_place(hfsb_call *call, hfsbi_finder *f,
                               hfsb_str path) {
    hfsb_tools *tools = call->tools;
    pthread_mutex_lock(&tools->lock);
    f->no_follow = hfsbi_spills_has(&tools->spills, path);
    pthread_mutex_unlock(&tools->lock);
    f->place = f->no_follow ? NULL : tools->place;
    f->alloc = tools->alloc;
    f->call = call;
}

static hfsb_status hfsbi_finder_offset(const hfsb_json_value *args,
                                       hfsbi_finder *f, hfsb_err *err) {
    long long   n = 0;
    hfsb_status st = hfsb_json_arg_int(args, "offset", false, &n, err);
    if (st != HFSB_OK) return st;
    if (n < 0 || n > HFSBI_FINDER_OFFSET)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "offset must be a number from 0 to %d, not %lld.",
                          HFSBI_FINDER_OFFSET, n);
    f->offset = (size_t)n;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_finder_arguments(hfsb_call *call, hfsbi_finder *f,
                                            hfsb_str path, size_t *limit,
                                            size_t max, hfsb_err *err) {
    const hfsb_json_value *args = call->arguments;
    long long              n = 0;
    hfsb_status            st;
    hfsbi_finder_place(call, f, path);
    f->spot.dir = -1;
    st = hfsb_json_arg_bool(args, "all", false, &f->all, err);
    if (st == HFSB_OK) st = hfsb_json_arg_int(args, "limit", false, &n, err);
    if (st == HFSB_OK && n < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "limit must be a number from 1 to %zu (0: %zu), not "
                          "%lld.",
                          max, *limit, n);
    if (st == HFSB_OK) st = hfsbi_finder_offset(args, f, err);
    if (st != HFSB_OK) return st;
    if (n) *limit = (unsigned long long)n < max ? (size_t)n : max;
    return hfsbi_finder_open(f, path, err);
}

HFSBI_FN void hfsbi_put_shown(hfsbi_sink *sink, hfsb_str path) {
    size_t pos = 0, plain = 0, n;
    while (pos < path.len) {
        unsigned long code;
        bool          valid;
        n = hfsb_utf8_step(path, pos, &code, &valid);
        if (valid && code >= 0x20 && code != 0x7F) {
            pos += n;
            continue;
        }
        hfsbi_put(sink, hfsb_str_slice(path, plain, pos));
        plain = pos + n;
        if (code == '\n') hfsbi_putf(sink, "\\n");
        else if (code == '\t') hfsbi_putf(sink, "\\t");
        else
            for (; pos < plain; pos++)
                hfsbi_putf(sink, "\\x%02X", (unsigned char)path.ptr[pos]);
        pos = plain;
    }
    hfsbi_put(sink, hfsb_str_slice(path, plain, path.len));
}

HFSBI_FN hfsb_status hfsbi_finder_note(hfsb_call *call, const char *format,
                                       ...) {
    hfsbi_sink sink = hfsbi_sink_begin(&call->notes);
    va_list    ap;
    if (call->result.output.len || call->notes.len)
        hfsbi_put_byte(&sink, '\n');
    va_start(ap, format);
    if (sink.status == HFSB_OK)
        sink.status = hfsbi_buf_vprintf(&call->notes, format, ap);
    va_end(ap);
    return hfsbi_sink_end(&sink);
}

HFSBI_FN hfsb_status hfsbi_finder_page(hfsb_call *call, const hfsbi_finder *f,
                                       unsigned long long shown,
                                       unsigned long long total, bool at_least,
                                       const char *what) {
    unsigned long long first = f->offset, next = first + shown;
    const char        *more = at_least || f->late ? "at least " : "";
    if (!shown && first && total)
        return hfsbi_finder_note(call, "[past the end: there are %s%llu%s]",
                                 more, total, what);
    if (!shown || (!first && next >= total)) return HFSB_OK;
    if (next >= total)
        return hfsbi_finder_note(call, "[%llu-%llu of %s%llu%s]", first + 1,
                                 next, more, total, what);
    if (!first)
        return hfsbi_finder_note(
            call, "[first %llu of %s%llu%s; read on with offset=%llu]", next,
            more, total, what, next);
    return hfsbi_finder_note(
        call, "[%llu-%llu of %s%llu%s; read on with offset=%llu]", first + 1,
        next, more, total, what, next);
}

/* What the walk could not do. */
static hfsb_status hfsbi_finder_tell_all(hfsb_call *call, hfsbi_finder *f) {
    hfsb_status st = hfsb_buf_append(&call->notes, hfsb_buf_str(&f->notes));
    if (st == HFSB_OK && f->failed > HFSBI_FINDER_TOLD)
        st = hfsbi_finder_note(call, "(and %zu more folders like that)",
                               f->failed - HFSBI_FINDER_TOLD);
    if (st == HFSB_OK && f->cancelled)
        st = hfsbi_finder_note(call,
                               "(stopped early, the rest was not looked at: "
                               "give a path further down)");
    else if (st == HFSB_OK && f->late)
        st = hfsbi_finder_note(call,
                               "(stopped after %d s, the rest was not looked "
                               "at: give a path further down)",
                               HFSBI_FINDER_MS / 1000);
    return st;
}

HFSBI_FN hfsb_status hfsbi_finder_result(hfsb_call *call, hfsbi_finder *f,
                                         unsigned long long count,
                                         unsigned long long next_offset) {
    hfsb_json_writer w;
    hfsb_status      st = hfsbi_finder_tell_all(call, f);
    if (st != HFSB_OK) return st;
    call->result.success = true;
    hfsb_json_writer_init(&w, &call->result.extra, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_int(&w, "count", (long long)count);
    hfsbi_put_member_bool(&w, "truncated", next_offset || f->late);
    if (next_offset)
        hfsbi_put_member_int(&w, "next_offset", (long long)next_offset);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, NULL);
}
