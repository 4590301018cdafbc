/* http_date.c - the time as HTTP writes it. Depends on: base. */
#include "http_parts.h"

/* Days since 1970 of the first of March of a year: with the leap day at the
   end of a year, its length and that of the months before follow a rule. */
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
    year = (day + 719468) * 400 / 146097 + 1; /* at most one too many */
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

void hfsb_http_date(long long seconds, char out[HFSB_HTTP_DATE]) {
    static const char days[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    hfsbi_date        d = hfsbi_date_of(seconds);
    (void)snprintf(out, HFSB_HTTP_DATE,
                   "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                   days + 3 * d.weekday, d.day, months + 3 * (d.month - 1),
                   d.year, d.hour, d.minute, d.second);
}
