/* http_date.c - the time as HTTP writes it. Depends on: base. */
#include "internal.h"
#include "http.h"

/* Days since 1970 of the first of March of a year: with the leap day at the
   end of a year, its length and that of the months before follow a rule. */
static long long hfsbi_date_march(long long year) {
    return 365 * year + year / 4 - year / 100 + year / 400 - 719468;
}

void hfsb_http_date(long long seconds, char out[HFSB_HTTP_DATE]) {
    static const char days[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    long long         day, year, month, rest;
    if (seconds < 0) seconds = 0;
    if (seconds > 253402300799) seconds = 253402300799; /* the end of 9999 */
    day = seconds / 86400;
    rest = seconds % 86400;
    year = (day + 719468) * 400 / 146097 + 1; /* at most one too many */
    while (hfsbi_date_march(year) > day) year--;
    day -= hfsbi_date_march(year);
    month = (5 * day + 2) / 153; /* from March on: 31 30 31 30 31 ... */
    day -= (153 * month + 2) / 5;
    if (month >= 10) year++;
    (void)snprintf(
        out, HFSB_HTTP_DATE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
        days + 3 * (seconds / 86400 % 7), (unsigned)(day + 1) % 100,
        months + 3 * month, (unsigned)year % 10000,
        (unsigned)(rest / 3600) % 100, (unsigned)(rest / 60 % 60) % 100,
        (unsigned)(rest % 60) % 100);
}
