/* date.c - seconds since 1970 to a UTC date, without libc.

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
