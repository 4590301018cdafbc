/* date.c - seconds since 1970 to a UTC date, and back, without libc.

   gmtime() needs a buffer or a reentrant variant that not every libc has, and
   localtime() reads the environment. The Gregorian calendar is a short
   calculation once years begin in March: the leap day is then the last day of
   a year, and the lengths of the months before it follow a formula. */
#include "core_private.h"

/* Days from 1970-01-01 to the first of March of a year. */
static long long hfsbi_date_march(long long year) {
    return 365 * year + year / 4 - year / 100 + year / 400 - 719468;
}

HFSBI_FN hfsbi_date hfsbi_date_of(long long seconds) {
    hfsbi_date d;
    long long  day, year, month, rest;
    if (seconds < 0) seconds = 0;
    if (seconds > 253402300799) seconds = 253402300799; /* the end of 9999 */
    day = seconds / 86400;
    rest = seconds % 86400;
    d.weekday = (unsigned)(day % 7);
    year = (day + 719468) * 400 / 146097 + 1; /* at most one too high */
    while (hfsbi_date_march(year) > day) year--;
    day -= hfsbi_date_march(year);
    month = (5 * day + 2) / 153; /* from March on: 31 30 31 30 31 ... */
    day -= (153 * month + 2) / 5;
    if (month >= 10) year++;
    d.year = (unsigned)year % 10000;
    d.month = (unsigned)((month + 2) % 12 + 1);
    d.day = (unsigned)(day + 1) % 100;
    d.hour = (unsigned)(rest / 3600) % 100;
    d.minute = (unsigned)(rest / 60 % 60) % 100;
    d.second = (unsigned)(rest % 60) % 100;
    return d;
}

/* Reads n digits at *at of text; false if there are others. */
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

/* "Z", "+02:00" or "-0530" in seconds; false for anything else. */
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
    long long         part[6], zone, days;
    size_t            at = 0, i;
    double            fraction = 0, scale = 0.1;
    for (i = 0; i < 6; i++) {
        if (!hfsbi_date_digits(text, &at, i ? 2 : 4, &part[i])) return false;
        if (i < 5 && !hfsbi_date_byte(text, &at, marks[i])) return false;
    }
    if (hfsbi_date_byte(text, &at, '.')) {
        size_t first = at;
        for (; at < text.len && hfsbi_is_digit(text.ptr[at]);
             at++, scale /= 10)
            fraction += scale * (text.ptr[at] - '0');
        if (at - first > 9) return false;
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 ||
        part[3] > 23 || part[4] > 59 || part[5] > 60 ||
        !hfsbi_date_zone(text, at, &zone))
        return false;
    days = hfsbi_date_march(part[0] - (part[1] < 3)) +
           (153 * ((part[1] + 9) % 12) + 2) / 5 + part[2] - 1;
    *out = (double)(days * 86400 + part[3] * 3600 + part[4] * 60 + part[5] -
                    zone) +
           fraction;
    return true;
}
