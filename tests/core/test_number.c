/* test_number.c - numbers from text and back, against libc and published
   lists. */
#include "../support/t.h"

static uint64_t bits_of(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Parses text from an exact-size block with one blank after it. *used gets
   the length read. */
static hfsbi_number parse(hfsb_str text, size_t *used) {
    hfsbi_number n = HFSB_INIT;
    hfsb_buf     b = HFSB_INIT;
    hfsb_str     exact;
    bool         ok = hfsb_buf_append(&b, text) == HFSB_OK &&
              hfsb_buf_append_byte(&b, ' ') == HFSB_OK;
    T_CHECK(ok);
    exact = t_exact(b.ptr, b.len);
    *used = (size_t)(hfsbi_number_parse(exact.ptr, exact.ptr + exact.len,
                                        &n) - exact.ptr);
    t_drop(exact);
    hfsb_buf_free(&b);
    return n;
}

static bool same(const char *text, hfsb_str got) {
    bool ok = hfsb_str_equal(got, hfsb_cstr(text));
    if (!ok) printf("want %s, got %.*s\n", text, (int)got.len, got.ptr);
    return ok;
}

/* ---- reading ---- */

static void number_integers_are_exact(void) {
    static const struct {
        const char       *text;
        hfsbi_number_type type;
        uint64_t          value; /* two's complement, or the double's bits */
    } cases[] = {
        {"0", HFSBI_NUMBER_INT, 0},
        {"7", HFSBI_NUMBER_INT, 7},
        {"-1", HFSBI_NUMBER_INT, (uint64_t)-1},
        {"120", HFSBI_NUMBER_INT, 120},
        {"999999999999999999", HFSBI_NUMBER_INT, 999999999999999999u},
        {"9223372036854775807", HFSBI_NUMBER_INT, 0x7FFFFFFFFFFFFFFFu},
        {"-9223372036854775808", HFSBI_NUMBER_INT, 0x8000000000000000u},
        {"9223372036854775808", HFSBI_NUMBER_UINT, 0x8000000000000000u},
        {"9999999999999999999", HFSBI_NUMBER_UINT, 9999999999999999999u},
        {"10000000000000000000", HFSBI_NUMBER_UINT, 10000000000000000000u},
        {"18446744073709551609", HFSBI_NUMBER_UINT, 0xFFFFFFFFFFFFFFF9u},
        {"18446744073709551615", HFSBI_NUMBER_UINT, 0xFFFFFFFFFFFFFFFFu},
        {"18446744073709551616", HFSBI_NUMBER_DOUBLE, 0x43F0000000000000u},
        {"18446744073709551620", HFSBI_NUMBER_DOUBLE, 0x43F0000000000000u},
        {"18446744073709552000", HFSBI_NUMBER_DOUBLE, 0x43F0000000000000u},
        {"184467440737095516150", HFSBI_NUMBER_DOUBLE, 0x4424000000000000u},
        {"99999999999999999999", HFSBI_NUMBER_DOUBLE, 0x4415AF1D78B58C40u},
        {"-9223372036854775809", HFSBI_NUMBER_DOUBLE, 0xC3E0000000000000u},
        {"-18446744073709551615", HFSBI_NUMBER_DOUBLE, 0xC3F0000000000000u},
        {"-10000000000000000000", HFSBI_NUMBER_DOUBLE, 0xC3E158E460913D00u},
        {"-0", HFSBI_NUMBER_DOUBLE, 0x8000000000000000u},
        {"1.0", HFSBI_NUMBER_DOUBLE, 0x3FF0000000000000u},
        {"1e0", HFSBI_NUMBER_DOUBLE, 0x3FF0000000000000u},
    };
    size_t i, used;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsbi_number n = parse(hfsb_cstr(cases[i].text), &used);
        uint64_t     value =
            n.type == HFSBI_NUMBER_INT    ? (uint64_t)n.as.i
                : n.type == HFSBI_NUMBER_UINT ? n.as.u
                                              : bits_of(n.as.d);
        T_CHECK(used == strlen(cases[i].text));
        T_CHECK(n.type == cases[i].type);
        T_CHECK(value == cases[i].value);
        if (value != cases[i].value) printf("%s\n", cases[i].text);
    }
}

/* Borders, ties, and inputs where one of the three methods gives way. */
static void number_doubles_are_correctly_rounded(void) {
    static const struct {
        const char *text;
        uint64_t    bits;
    } cases[] = {
        {"0.0", 0},
        {"-0.0", 0x8000000000000000u},
        {"0e999999999999999999999", 0},
        {"1e-999", 0},
        {"-1e-999", 0x8000000000000000u},
        {"1e-99999999999999999999999", 0},
        {"0.1", 0x3FB999999999999Au},
        {"1e22", 0x4480F0CF064DD592u},
        {"1e23", 0x44B52D02C7E14AF6u},
        {"5e-324", 1},
        {"2.4703282292062327e-324", 0},
        {"2.4703282292062328e-324", 1},
        {"2.2250738585072011e-308", 0x000FFFFFFFFFFFFFu},
        {"2.2250738585072014e-308", 0x0010000000000000u},
        {"1.7976931348623157e308", 0x7FEFFFFFFFFFFFFFu},
        {"1.7976931348623158e308", 0x7FEFFFFFFFFFFFFFu},
        {"9007199254740993.0", 0x4340000000000000u},
        {"9007199254740993.0000000000000000000000000000000001",
         0x4340000000000001u},
        {"9007199254740995.0", 0x4340000000000002u},
        {"9007199254740994.9999999999999999999", 0x4340000000000001u},
        {"0.500000000000000166533453693773481063544750213623046875",
         0x3FE0000000000002u},
        {"0.500000000000000166533453693773481063544750213623046874",
         0x3FE0000000000001u},
        {"8.5e-3", 0x3F816872B020C49Cu},
        {"123456789012345678901234567890e-29", 0x3FF3C0CA428C59FBu},
        {"0.000000000000000000000000000000000000000000000000000001e54",
         0x3FF0000000000000u},
    };
    size_t i, used;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsbi_number n = parse(hfsb_cstr(cases[i].text), &used);
        uint64_t     want = cases[i].bits;
        T_CHECK(used == strlen(cases[i].text));
        T_CHECK(n.type == HFSBI_NUMBER_DOUBLE && bits_of(n.as.d) == want);
        if (bits_of(n.as.d) != want) printf("%s\n", cases[i].text);
    }
}

static void number_beyond_a_double_is_reported(void) {
    static const char *const cases[] = {
        "1e309", "-1e309", "1.7976931348623159e308", "1e999999999999999999",
        "17976931348623158079372897140530341507993413271003782693617377898044"
        "49682927647509466490179775872070963302864166928879109465555478519404"
        "02630657488671505820681908902000708383676273854845817711531764475730"
        "27006985557136695962284291481986083493647529271907416844436551070434"
        "2711559699508093042880177904174497792"};
    size_t i, used;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsbi_number n = parse(hfsb_cstr(cases[i]), &used);
        T_CHECK(n.type == HFSBI_NUMBER_RANGE);
        T_CHECK(used == strlen(cases[i]));
    }
}

/* 770 digits that differ from a tie only in the last, and longer ones. */
static void number_reads_any_number_of_digits(void) {
    size_t zeros, used;
    for (zeros = 0; zeros < 2000; zeros += 37) {
        hfsb_buf     b = HFSB_INIT;
        hfsbi_number n;
        size_t       i;
        bool ok = hfsb_buf_append(&b, HFSB_LIT("9007199254740993.0")) == 0;
        for (i = 0; ok && i < zeros; i++)
            ok = hfsb_buf_append_byte(&b, '0') == HFSB_OK;
        T_CHECK(ok);
        n = parse(hfsb_buf_str(&b), &used);
        T_CHECK(bits_of(n.as.d) == 0x4340000000000000u);
        ok = hfsb_buf_append_byte(&b, '1') == HFSB_OK;
        T_CHECK(ok);
        n = parse(hfsb_buf_str(&b), &used);
        T_CHECK(used == b.len);
        T_CHECK(bits_of(n.as.d) == 0x4340000000000001u);
        hfsb_buf_free(&b);
    }
}

/* The exact method must not read beyond the number. */
static void number_stops_at_the_first_other_byte(void) {
    static const char digits[] = "9007199254740993.00000000000000000000001";
    static const char *const after[] = {"-92", ".5", "]"};
    size_t i, used, n = sizeof digits - 1;
    for (i = 0; i < 3; i++) {
        char         text[80];
        hfsbi_number got;
        snprintf(text, sizeof text, "%s%s", digits, after[i]);
        got = parse(hfsb_cstr(text), &used);
        T_CHECK(used == n && bits_of(got.as.d) == 0x4340000000000001u);
    }
}

static void number_refuses_other_grammars(void) {
    static const struct {
        const char *text;
        size_t      at;
        const char *expected;
    } cases[] = {
        {"-", 1, "expected a digit after '-'"},
        {"-x", 1, "expected a digit after '-'"},
        {"--1", 1, "expected a digit after '-'"},
        {"01", 1, "expected no digit after a leading 0"},
        {"-012", 2, "expected no digit after a leading 0"},
        {"00", 1, "expected no digit after a leading 0"},
        {"1.", 2, "expected a digit after the decimal point"},
        {"0.e1", 2, "expected a digit after the decimal point"},
        {"1e", 2, "expected a digit in the exponent"},
        {"1e+", 3, "expected a digit in the exponent"},
        {"1E-x", 3, "expected a digit in the exponent"},
        {"1.5e+-1", 5, "expected a digit in the exponent"},
    };
    size_t i, used;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsbi_number n = parse(hfsb_cstr(cases[i].text), &used);
        T_CHECK(n.type == HFSBI_NUMBER_BAD);
        T_CHECK(used == cases[i].at);
        T_CHECK(n.expected && !strcmp(n.expected, cases[i].expected));
    }
}

/* True when text is a number of RFC 8259, all of it. */
static bool is_json_number(const char *p) {
    p += *p == '-';
    if (*p == '0') p++;
    else if (*p >= '1' && *p <= '9') while (*p >= '0' && *p <= '9') p++;
    else return false;
    if (*p == '.') {
        p++;
        if (*p < '0' || *p > '9') return false;
        while (*p >= '0' && *p <= '9') p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (*p < '0' || *p > '9') return false;
        while (*p >= '0' && *p <= '9') p++;
    }
    return *p == '\0';
}

/* One line of the list: "f16 f32 f64 text". */
static void check_listed(char *line, size_t *ran, size_t *dropped) {
    char        *text = line + 5 + 9 + 17;
    uint64_t     want, got;
    hfsbi_number n;
    size_t       used;
    if (strlen(line) < 32) return;
    if (!is_json_number(text)) {
        ++*dropped;
        return;
    }
    ++*ran;
    want = strtoull(line + 14, NULL, 16);
    n = parse(hfsb_cstr(text), &used);
    got = n.type == HFSBI_NUMBER_INT    ? bits_of((double)n.as.i)
          : n.type == HFSBI_NUMBER_UINT ? bits_of((double)n.as.u)
                                        : bits_of(n.as.d);
    if (n.type == HFSBI_NUMBER_RANGE)
        T_CHECK((want << 1) == (uint64_t)0x7FF << 53);
    else T_CHECK(got == want);
    if (got != want) printf("%s\n", line);
}

static void number_reads_the_published_lists(void) {
    static const char *const files[] = {
        "exhaustive-float16", "freetype-2-7",    "google-wuffs",
        "lemire-fast-float",  "more-test-cases", "tencent-rapidjson"};
    size_t i, ran = 0, dropped = 0;
    for (i = 0; i < sizeof files / sizeof files[0]; i++) {
        hfsb_buf text = HFSB_INIT;
        char     name[80];
        char    *line, *end;
        snprintf(name, sizeof name, "data/json/num_strtod/%s.txt", files[i]);
        if (!t_data_file(name, &text)) continue;
        for (line = text.ptr; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            check_listed(line, &ran, &dropped);
        }
        hfsb_buf_free(&text);
    }
    if (ran + dropped) {
        printf("lists of numbers: %zu lines ran, %zu are not JSON\n", ran,
               dropped);
        T_CHECK(ran + dropped == 52977);
    }
}

/* ---- writing ---- */

static void number_writes_integers(void) {
    static const struct {
        int64_t     value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {9, "9"},
        {10, "10"},
        {99, "99"},
        {100, "100"},
        {-1, "-1"},
        {1234567890123456789, "1234567890123456789"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    size_t i;
    char   out[20];
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = hfsbi_number_write_int(cases[i].value, out);
        T_CHECK(same(cases[i].text, hfsb_str_make(out, n)));
    }
    i = hfsbi_number_write_uint(UINT64_MAX, out);
    T_CHECK(same("18446744073709551615", hfsb_str_make(out, i)));
}

static void number_writes_doubles_as_people_do(void) {
    static const struct {
        double      value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {1.0, "1.0"},
        {-1.0, "-1.0"},
        {10.0, "10.0"},
        {120.0, "120.0"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {-1.2345, "-1.2345"},
        {123456.789, "123456.789"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e15, "1000000000000000.0"},
        {1e20, "100000000000000000000.0"},
        {123456789012345680000.0, "123456789012345680000.0"},
        {1e21, "1e21"},
        {1.5e21, "1.5e21"},
        {1e23, "1e23"},
        {1e100, "1e100"},
        {0.000001, "0.000001"},
        {0.0000012345678901234567, "0.0000012345678901234567"},
        {1e-7, "1e-7"},
        {1.25e-7, "1.25e-7"},
        {-5.684341886080802e-14, "-5.684341886080802e-14"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
    };
    size_t i;
    char   out[32];
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = hfsbi_number_write_double(cases[i].value, out);
        T_CHECK(same(cases[i].text, hfsb_str_make(out, n)));
    }
    i = hfsbi_number_write_double(double_of((uint64_t)1 << 63), out);
    T_CHECK(same("-0.0", hfsb_str_make(out, i)));
}

static void number_writes_no_infinity(void) {
    char out[32];
    T_CHECK(hfsbi_number_write_double(double_of(0x7FF0000000000000u), out)
            == 0);
    T_CHECK(hfsbi_number_write_double(double_of(0xFFF0000000000000u), out)
            == 0);
    T_CHECK(hfsbi_number_write_double(double_of(0x7FF8000000000000u), out)
            == 0);
}

/* The significant digits of text as an integer; *power gets the power of ten
   of the last, *count how many there are. */
static uint64_t digits_of(const char *text, int *power, int *count) {
    uint64_t digits = 0, d;
    bool     point = false, full = false;
    *power = *count = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '.') point = true;
        if (*text < '0' || *text > '9') continue;
        full = full || digits > 100000000000000000u; /* zeros follow */
        *power += full ? !point : -(int)point;
        if (!full) digits = digits * 10 + (uint64_t)(*text - '0');
    }
    for (; digits && digits % 10 == 0; digits /= 10) ++*power;
    if (*text == 'e') *power += atoi(text + 1);
    for (d = digits; d; d /= 10) ++*count;
    return digits;
}

static uint64_t read_bits(const char *text) {
    hfsbi_number n;
    hfsbi_number_parse(text, text + strlen(text) + 1, &n);
    return n.type == HFSBI_NUMBER_INT    ? bits_of((double)n.as.i)
           : n.type == HFSBI_NUMBER_UINT ? bits_of((double)n.as.u)
                                         : bits_of(n.as.d);
}

/* Reads back as the same; no text with one digit less does; and it is the
   nearest, by libc's rounding to that many digits. */
static void check_shortest(uint64_t bits) {
    char         out[40], other[48];
    size_t       n = hfsbi_number_write_double(double_of(bits), out);
    hfsbi_number back;
    int          power, count, power2, count2;
    uint64_t     digits, fewer;
    bool         ok;
    out[n] = '\0';
    hfsbi_number_parse(out, out + n + 1, &back);
    ok = n <= 25 && back.type == HFSBI_NUMBER_DOUBLE &&
         bits_of(back.as.d) == bits && is_json_number(out);
    digits = digits_of(out, &power, &count);
    ok = ok && count <= 17;
    if (count > 1) {
        for (fewer = digits / 10; fewer <= digits / 10 + 1; fewer++) {
            snprintf(other, sizeof other, "%llue%d",
                     (unsigned long long)fewer, power + 1);
            ok = ok && read_bits(other) != (bits & ~((uint64_t)1 << 63));
        }
    }
    snprintf(other, sizeof other, "%.*e", count - 1, double_of(bits));
    if (bits_of(strtod(other, NULL)) == bits && digits)
        ok = ok && digits_of(other, &power2, &count2) == digits;
    T_CHECK(ok);
    if (!ok) printf("%016llx: %s\n", (unsigned long long)bits, out);
}

static void number_writes_the_shortest_form(void) {
    unsigned long long state = 1;
    long               i, rounds = t_quick() ? 20000 : 1000000;
    int                e;
    for (i = 0; i < rounds; i++) {
        uint64_t bits = (uint64_t)t_random(&state) << 33 ^
                        (uint64_t)t_random(&state) << 16 ^
                        (uint64_t)t_random(&state);
        if ((bits >> 52 & 0x7FF) == 0x7FF) continue;
        check_shortest(bits);
        if (i % 4 == 0) /* few digits, which plain random never makes */
            check_shortest(bits_of((double)(bits % 100000) / 1000.0));
    }
    for (e = 0; e < 2047; e++) { /* each power of two and its neighbours */
        uint64_t bits = (uint64_t)e << 52;
        check_shortest(bits);
        check_shortest(bits + 1);
        check_shortest(bits + ((uint64_t)1 << 52) - 1);
    }
}

/* The table of powers is exact: w * 10^q for every q, against libc. */
static void number_agrees_with_libc_for_every_power(void) {
    unsigned long long state = 2;
    int                q, i;
    for (q = -345; q <= 309; q++)
        for (i = 0; i < (t_quick() ? 5 : 50); i++) {
            char     text[48];
            uint64_t w = ((uint64_t)t_random(&state) << 33 ^
                          (uint64_t)t_random(&state)) >> (i % 40);
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)w, q);
            if (i % 3 == 0)
                snprintf(text, sizeof text, "%llu%09lue%d",
                         (unsigned long long)w, t_random(&state) % 1000000000,
                         q);
            T_CHECK(read_bits(text) == bits_of(strtod(text, NULL)));
            if (read_bits(text) != bits_of(strtod(text, NULL)))
                printf("%s\n", text);
        }
}

int main(void) {
    T_RUN(number_integers_are_exact);
    T_RUN(number_doubles_are_correctly_rounded);
    T_RUN(number_beyond_a_double_is_reported);
    T_RUN(number_reads_any_number_of_digits);
    T_RUN(number_stops_at_the_first_other_byte);
    T_RUN(number_refuses_other_grammars);
    T_RUN(number_reads_the_published_lists);
    T_RUN(number_writes_integers);
    T_RUN(number_writes_doubles_as_people_do);
    T_RUN(number_writes_no_infinity);
    T_RUN(number_writes_the_shortest_form);
    T_RUN(number_agrees_with_libc_for_every_power);
    return T_END();
}
