/* sandbox_sweep.c - Spaces of ours that were left behind: found by name and
   age. Depends on: json, hub. */
#include "sandbox_parts.h"

/* ---- dates ---- */

/* n digits at *at of text as a number; false when there is something else. */
static bool hfsbi_date_digits(hfsb_str text, size_t *at, size_t n,
                              long long *out) {
    long long value = 0;
    for (; n; n--, ++*at) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9')
            return false;
        value = value * 10 + (text.ptr[*at] - '0');
    }
    *out = value;
    return true;
}

static bool hfsbi_date_byte(hfsb_str text, size_t *at, char c) {
    if (*at >= text.len || text.ptr[*at] != c) return false;
    ++*at;
    return true;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar: the year is taken
   to begin in March, so that the leap day is its last. */
static long long hfsbi_date_days(long long y, long long m, long long d) {
    long long in_year;
    y -= m <= 2;
    in_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

/* "Z", "+02:00" or "-0530" in seconds; false when it is none. */
static bool hfsbi_date_zone(hfsb_str text, size_t at, long long *out) {
    bool      west;
    long long h, m;
    *out = 0;
    if (hfsbi_date_byte(text, &at, 'Z')) return at == text.len;
    west = hfsbi_date_byte(text, &at, '-');
    if (!west && !hfsbi_date_byte(text, &at, '+')) return false;
    if (!hfsbi_date_digits(text, &at, 2, &h)) return false;
    (void)hfsbi_date_byte(text, &at, ':');
    if (!hfsbi_date_digits(text, &at, 2, &m) || h > 23 || m > 59) return false;
    *out = (h * 60 + m) * (west ? -60 : 60);
    return at == text.len;
}

HFSBI_FN bool hfsbi_date_parse(hfsb_str text, double *out) {
    static const char marks[] = "--T::";
    long long         part[6], zone;
    size_t            at = 0, i;
    double            fraction = 0, scale = 0.1;
    for (i = 0; i < 6; i++) {
        if (!hfsbi_date_digits(text, &at, i ? 2 : 4, &part[i])) return false;
        if (i < 5 && !hfsbi_date_byte(text, &at, marks[i])) return false;
    }
    if (hfsbi_date_byte(text, &at, '.')) {
        size_t first = at;
        for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
             at++, scale /= 10)
            fraction += scale * (text.ptr[at] - '0');
        if (at - first > 9) return false;
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 ||
        part[3] > 23 || part[4] > 59 || part[5] > 60 ||
        !hfsbi_date_zone(text, at, &zone))
        return false;
    *out = (double)(hfsbi_date_days(part[0], part[1], part[2]) * 86400 +
                    part[3] * 3600 + part[4] * 60 + part[5] - zone) +
           fraction;
    return true;
}

/* ---- what is ours ---- */

typedef struct hfsbi_sweep {
    const hfsb_sweep_opts *opts;
    hfsb_str               owner;
    double                 now, days;
    size_t                 max;
    hfsb_buf               found; /* id, NUL, date, NUL of each */
    hfsb_status            status;
} hfsbi_sweep;

/* "owner/sandbox-0123abcd" */
static bool hfsbi_sweep_is_ours(hfsb_str id, hfsb_str owner) {
    const hfsb_str base = HFSB_LIT("/sandbox-");
    size_t         i;
    if (id.len != owner.len + base.len + 8 ||
        !hfsb_http_same(hfsb_str_slice(id, 0, owner.len), owner) ||
        !hfsb_str_starts(hfsb_str_slice(id, owner.len, id.len), base))
        return false;
    for (i = id.len - 8; i < id.len; i++) {
        char c = id.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

static double hfsbi_sweep_age(const hfsbi_sweep *w, hfsb_str modified) {
    double then;
    if (!hfsbi_date_parse(modified, &then)) return -1;
    return (w->now - then) / 86400;
}

/* They are collected first: deleting one while the pages are read could move
   another to a page that was read already. */
static bool hfsbi_sweep_space(void *user, const hfsb_json_value *space) {
    const hfsb_str none = HFSB_LIT("");
    hfsbi_sweep   *w = (hfsbi_sweep *)user;
    hfsb_str       id = hfsb_json_str(hfsb_json_get(space, "id"), none);
    hfsb_str date = hfsb_json_str(hfsb_json_get(space, "lastModified"), none);
    hfsbi_sink sink;
    if (!hfsbi_sweep_is_ours(id, w->owner) ||
        !(hfsbi_sweep_age(w, date) >= w->days))
        return true; /* without a date it is not known to be old */
    sink = hfsbi_sink_begin(&w->found);
    hfsbi_put(&sink, id);
    hfsbi_put_byte(&sink, '\0');
    hfsbi_put(&sink, date);
    hfsbi_put_byte(&sink, '\0');
    w->status = hfsbi_sink_end(&sink);
    return w->status == HFSB_OK;
}

/* ---- what becomes of them ---- */

/* Deletes it, unless it is only to be told. */
static void hfsbi_sweep_remove(hfsb_hub *hub, hfsbi_sweep *w,
                               hfsb_sweep_item *item, hfsb_err *err) {
    (void)hfsbi_ok(err);
    if (!w->opts->remove) return;
    if (!w->max) {
        item->status = hfsbi_fail(err, HFSB_LIMIT, 0,
                                  "not deleted: as many as were allowed at "
                                  "once are");
        return;
    }
    w->max--;
    item->status = hfsb_hub_delete(hub, item->id, w->opts->cancel, err);
    if (item->status == HFSB_NOT_FOUND) item->status = hfsbi_ok(err);
    item->removed = item->status == HFSB_OK;
}

/* Takes the next text, up to its NUL. */
static hfsb_str hfsbi_sweep_next(hfsb_str *rest) {
    size_t   at = hfsb_str_find_byte(*rest, '\0');
    hfsb_str text = hfsb_str_slice(*rest, 0, at);
    *rest = hfsb_str_slice(*rest, at == HFSB_NPOS ? at : at + 1, rest->len);
    return text;
}

static hfsb_status hfsbi_sweep_tell(hfsb_hub *hub, hfsbi_sweep *w,
                                    bool (*each)(void                  *user,
                                                 const hfsb_sweep_item *item),
                                    void *user, hfsb_err *err) {
    hfsb_str rest = hfsb_buf_str(&w->found);
    hfsb_err why = HFSB_INIT;
    while (rest.len) {
        hfsb_sweep_item item = HFSB_INIT;
        item.id = hfsbi_sweep_next(&rest);
        item.modified = hfsbi_sweep_next(&rest);
        item.days = hfsbi_sweep_age(w, item.modified);
        item.message = why.msg;
        hfsbi_sweep_remove(hub, w, &item, &why);
        if (each && !each(user, &item)) break;
        if (item.status == HFSB_CANCELLED || item.status == HFSB_NOMEM) {
            if (err) *err = why;
            return item.status;
        }
    }
    return hfsbi_ok(err);
}

hfsb_status hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                               bool (*each)(void                  *user,
                                            const hfsb_sweep_item *item),
                               void *user, hfsb_err *err) {
    const hfsb_sweep_opts plain = HFSB_INIT;
    hfsbi_sweep           w = HFSB_INIT;
    hfsb_space_filter     filter = HFSB_INIT;
    struct timespec       now = HFSB_INIT;
    hfsb_buf              owner = HFSB_INIT;
    hfsb_status           st;
    w.opts = opts ? opts : &plain;
    w.days = w.opts->days == 0 ? 7 : w.opts->days;
    w.max = w.opts->max ? w.opts->max : 20;
    if (!(w.days > 0))
        return hfsbi_fail(err, HFSB_ARG, 0, "the age in days is above 0");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    w.now = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    if (w.opts->owner.len) st = hfsb_buf_append(&owner, w.opts->owner);
    else st = hfsb_hub_user(hub, w.opts->cancel, &owner, err);
    w.owner = filter.author = hfsb_buf_str(&owner);
    filter.full = true;
    if (st == HFSB_OK)
        st = hfsb_hub_spaces(hub, &filter, hfsbi_sweep_space, &w,
                             w.opts->cancel, err);
    if (st == HFSB_OK) st = w.status;
    if (st == HFSB_OK) st = hfsbi_sweep_tell(hub, &w, each, user, err);
    else if (st == HFSB_NOMEM) (void)hfsbi_fail_status(err, st, "Sweep");
    hfsb_buf_free(&w.found);
    hfsb_buf_free(&owner);
    return st;
}
