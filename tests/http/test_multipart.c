/* test_multipart.c - bodies of multipart/form-data, whole and cut anywhere. */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http_private.h"
#endif

#define TYPE "multipart/form-data; boundary=b"

/* ---- the boundary ---- */

static void boundary_is_found(void) {
    static const struct {
        const char *type, *want;
    } cases[] = {
        {"multipart/form-data; boundary=abc", "abc"},
        {"Multipart/FORM-DATA;BOUNDARY=abc", "abc"},
        {"multipart/form-data ; charset=utf-8 ; boundary=abc", "abc"},
        {"multipart/form-data; boundary=abc; charset=\"a;b\\\"\"", "abc"},
        {"multipart/form-data; boundary=\"abc\"", "abc"},
        {"multipart/form-data; boundary=\"a b'()+_,-./:=?9\"",
         "a b'()+_,-./:=?9"},
        {"multipart/form-data;; boundary=abc; ;", "abc"},
        {"multipart/form-data; boundary=----WebKitFormBoundaryABC123",
         "----WebKitFormBoundaryABC123"},
        {"multipart/form-data; boundary="
         "1234567890123456789012345678901234567890123456789012345678901234567"
         "890",
         "1234567890123456789012345678901234567890123456789012345678901234567"
         "890"},
        {"multipart/form-data; boundary=1", "1"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str        type = t_exact(cases[i].type, strlen(cases[i].type));
        hfsbi_multipart m = HFSB_INIT;
        hfsb_err        err;
        T_CHECK(hfsbi_multipart_begin(&m, type, &err) == HFSB_OK);
        T_CHECK(err.code == HFSB_OK && !err.msg[0]);
        T_CHECK(hfsb_str_equal(hfsb_str_make(m.delim + 4, m.delim_len - 4u),
                               hfsb_cstr(cases[i].want)));
        T_CHECK(hfsbi_multipart_begin(&m, type, NULL) == HFSB_OK);
        hfsbi_multipart_free(&m);
        t_drop(type);
    }
}

static void content_types_without_a_boundary_are_refused(void) {
#define BAD_TYPE \
    "The Content-Type is malformed. Expected multipart/form-data; " \
    "boundary=..."
#define BAD_BOUNDARY                                                     \
    "The boundary of the Content-Type must have 1 to 70 letters, digits " \
    "or any of '()+_,-./:=? and not end in a blank."
#define OTHER "The Content-Type is not multipart/form-data."
    static const struct {
        const char *type;
        hfsb_status code;
        size_t      pos;
        const char *msg;
    } cases[] = {
        {"", HFSB_ARG, 0, OTHER},
        {"text/plain; boundary=a", HFSB_ARG, 0, OTHER},
        {"multipart/mixed; boundary=a", HFSB_ARG, 0, OTHER},
        {"multipart/form-data boundary=a", HFSB_ARG, 0, OTHER},
        {"multipart/form-data", HFSB_SYNTAX, 19,
         "The Content-Type has no boundary."},
        {"multipart/form-data; charset=utf-8", HFSB_SYNTAX, 34,
         "The Content-Type has no boundary."},
        {"multipart/form-data; boundary=a; boundary=a", HFSB_SYNTAX, 42,
         "The Content-Type has more than one boundary."},
        {"multipart/form-data; boundary=", HFSB_SYNTAX, 30, BAD_TYPE},
        {"multipart/form-data; boundary=\"\"", HFSB_SYNTAX, 31,
         BAD_BOUNDARY},
        {"multipart/form-data; boundary=\"a", HFSB_SYNTAX, 31, BAD_TYPE},
        {"multipart/form-data; boundary", HFSB_SYNTAX, 29, BAD_TYPE},
        {"multipart/form-data; boundary = a", HFSB_SYNTAX, 29, BAD_TYPE},
        {"multipart/form-data; =a", HFSB_SYNTAX, 21, BAD_TYPE},
        {"multipart/form-data; boundary=a/b", HFSB_SYNTAX, 31, BAD_TYPE},
        {"multipart/form-data; boundary=a b", HFSB_SYNTAX, 32, BAD_TYPE},
        {"multipart/form-data; boundary=\"a \"", HFSB_SYNTAX, 31,
         BAD_BOUNDARY},
        {"multipart/form-data; boundary=\"a\\\"\"", HFSB_SYNTAX, 31,
         BAD_BOUNDARY},
        {"multipart/form-data; boundary=a*", HFSB_SYNTAX, 30, BAD_BOUNDARY},
        {"multipart/form-data; boundary=\"\xc3\xa9\"", HFSB_SYNTAX, 31,
         BAD_BOUNDARY},
        {"multipart/form-data; boundary="
         "1234567890123456789012345678901234567890123456789012345678901234567"
         "8901", HFSB_SYNTAX, 30, BAD_BOUNDARY},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str        type = t_exact(cases[i].type, strlen(cases[i].type));
        hfsbi_multipart m = HFSB_INIT;
        hfsb_err        err;
        hfsb_str        data;
        size_t          used;
        bool ok = hfsbi_multipart_begin(&m, type, &err) == cases[i].code &&
                  err.code == cases[i].code && err.pos == cases[i].pos &&
                  !strcmp(err.msg, cases[i].msg);
        T_CHECK(ok);
        if (!ok) printf("  %zu: %zu %s\n", i, err.pos, err.msg);
        T_CHECK(hfsbi_multipart_begin(&m, type, NULL) == cases[i].code);
        /* what was not begun refuses everything */
        T_CHECK(hfsbi_multipart_next(&m, HFSB_LIT("--b"), false, &data, &used,
                                     NULL) == HFSBI_MULTIPART_BAD);
        hfsbi_multipart_free(&m);
        t_drop(type);
    }
    {
        hfsbi_multipart m = HFSB_INIT;
        T_CHECK(hfsbi_multipart_begin(&m, hfsb_str_make(NULL, 0), NULL) ==
                HFSB_ARG);
        T_CHECK(hfsbi_multipart_begin(
                    &m, HFSB_LIT("multipart/form-data; boundary=\"a\0b\""),
                    NULL) == HFSB_SYNTAX);
    }
}

/* ---- bodies ---- */

typedef struct reading {
    hfsbi_multipart m;
    hfsb_buf        events, body;
    bool            done;
} reading;

static void say(reading *r, const char *what, hfsb_str s) {
    T_CHECK(hfsb_buf_append(&r->events, hfsb_cstr(what)) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&r->events, s) == HFSB_OK);
}

/* The data that came so far, which depends on no cut. */
static void say_data(reading *r) {
    if (r->body.len) {
        say(r, " <", hfsb_buf_str(&r->body));
        say(r, ">", HFSB_LIT(""));
    }
    hfsb_buf_truncate(&r->body, 0);
}

static void say_part(reading *r) {
    say(r, "[", r->m.name);
    if (r->m.filename.ptr) say(r, " file ", r->m.filename);
    if (r->m.type.ptr) say(r, " type ", r->m.type);
}

/* One call on the bytes from *at on; false after the last event. */
static bool call(reading *r, hfsb_str piece, size_t *at, bool last) {
    hfsb_err              err;
    hfsb_str              data;
    size_t                used;
    hfsb_str              in = hfsb_str_slice(piece, *at, piece.len);
    hfsbi_multipart_event event =
        hfsbi_multipart_next(&r->m, in, last, &data, &used, &err);
    T_CHECK(used <= in.len);
    *at += used;
    switch (event) {
    case HFSBI_MULTIPART_MORE:
        T_CHECK(!last && *at == piece.len);
        return false;
    case HFSBI_MULTIPART_PART: say_part(r); return true;
    case HFSBI_MULTIPART_DATA:
        T_CHECK(data.len > 0);
        T_CHECK(hfsb_buf_append(&r->body, data) == HFSB_OK);
        return true;
    case HFSBI_MULTIPART_PART_END:
        say_data(r);
        say(r, "]", HFSB_LIT(""));
        return true;
    case HFSBI_MULTIPART_END:
        T_CHECK(last);
        say(r, "end", HFSB_LIT(""));
        break;
    default:
        say_data(r);
        T_CHECK(hfsb_buf_printf(&r->events, "%s at %zu: %s",
                                err.code == HFSB_LIMIT ? "limit" : "bad",
                                err.pos, err.msg) == HFSB_OK);
        T_CHECK(err.code == HFSB_LIMIT || err.code == HFSB_SYNTAX);
    }
    r->done = true;
    return false;
}

static void read_cut(reading *r, hfsb_str body, size_t first, size_t step,
                     bool early) {
    size_t at = 0, n = first;
    while (!r->done) {
        hfsb_str piece = hfsb_str_slice(body, at, at + n);
        size_t   used = 0;
        bool     last = early ? at + piece.len == body.len : !piece.len;
        piece = t_exact(piece.ptr, piece.len);
        while (call(r, piece, &used, last)) continue;
        t_drop(piece);
        at += piece.len;
        n = step;
    }
}

/* The end or the refusal is final. */
static void check_final(reading *r) {
    hfsb_err err;
    hfsb_str data;
    size_t   used;
    bool over = hfsb_str_ends(hfsb_buf_str(&r->events), HFSB_LIT("end"));
    T_CHECK(hfsbi_multipart_next(&r->m, HFSB_LIT("x"), false, &data, &used,
                                 &err) ==
            (over ? HFSBI_MULTIPART_END : HFSBI_MULTIPART_BAD));
    if (!over) T_CHECK(!strcmp(err.msg, "The body was refused before."));
    T_CHECK(hfsbi_multipart_next(&r->m, hfsb_str_make(NULL, 0), true, &data,
                                 &used, NULL) ==
            (over ? HFSBI_MULTIPART_END : HFSBI_MULTIPART_BAD));
}

/* The events of the body must be `want` as a whole, in single bytes, in pieces
   of 3, and in two pieces cut at each place. */
static void check_limited(hfsb_str body, const hfsbi_multipart *limits,
                          hfsb_str type, const char *want) {
    size_t k;
    for (k = 0; k < 2 * body.len + 4; k++) {
        reading r = HFSB_INIT;
        size_t  cut = k / 2;
        bool    ok;
        if (limits) r.m = *limits;
        T_CHECK(hfsbi_multipart_begin(&r.m, type, NULL) == HFSB_OK);
        read_cut(&r, body, cut < 2 ? 1 + 2 * cut : cut - 1,
                 cut < 2 ? 1 + 2 * cut : body.len, k % 2);
        ok = hfsb_str_equal(hfsb_buf_str(&r.events), hfsb_cstr(want));
        T_CHECK(ok);
        if (!ok)
            printf("  cut %zu of %.60s: is   %s\n  want %s\n", k, body.ptr,
                   r.events.ptr, want);
        check_final(&r);
        hfsbi_multipart_free(&r.m);
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
    }
}

static void check(const char *body, const char *want) {
    check_limited(hfsb_cstr(body), NULL, HFSB_LIT(TYPE), want);
}

#define PART(name) \
    "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define NEXT(name) "\r\n" PART(name)
#define CLOSE      "\r\n--b--\r\n"

static void bodies_give_their_events(void) {
    static const struct {
        const char *body, *want;
    } cases[] = {
        {PART("a") "1" CLOSE, "[a <1>]end"},
        {PART("a") "1" NEXT("b") "22" CLOSE, "[a <1>][b <22>]end"},
        {PART("a") CLOSE, "[a]end"},
        /* the CRLF of the delimiter is that of the empty line */
        {PART("a") "--b--\r\n", "[a]end"},
        {PART("a") PART("b") "--b--", "[a][b]end"},
        {PART("a") "1\r\n--b--", "[a <1>]end"},
        {"--b--", "end"}, /* no part */
        {"--b--\r\n", "end"},
        {"\r\n--b--\r\n", "end"},
        /* preamble and epilogue */
        {"\r\n" PART("a") "1" CLOSE, "[a <1>]end"},
        {"a preamble\r\nof lines\r\n" PART("a") "1" CLOSE, "[a <1>]end"},
        {"--\r\n--x\r\n" PART("a") "1" CLOSE, "[a <1>]end"},
        {"x--b\r\n" PART("a") "1" CLOSE, "[a <1>]end"},
        {PART("a") "1" CLOSE "an epilogue\r\n--b\r\n", "[a <1>]end"},
        {PART("a") "1" CLOSE "\r\n\r\n", "[a <1>]end"},
        /* padding */
        {"--b \t \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b-- "
         "\t\r\n", "[a <1>]end"},
        {PART("a") "1\r\n--b-- \t ", "[a <1>]end"},
        /* almost a delimiter */
        {PART("a") "\r" CLOSE, "[a <\r>]end"},
        {PART("a") "\n" CLOSE, "[a <\n>]end"},
        {PART("a") "\r\n" CLOSE, "[a <\r\n>]end"},
        {PART("a") "\r\r\n\r\n-\r\n--\r\r\n--a\r\n--\r\n--B\n--b\r--b" CLOSE,
         "[a <\r\r\n\r\n-\r\n--\r\r\n--a\r\n--\r\n--B\n--b\r--b>]end"},
        {PART("a") "-" CLOSE, "[a <->]end"},
        {PART("a") "--" CLOSE, "[a <-->]end"},
        {PART("a") "--c\r\n" CLOSE, "[a <--c\r\n>]end"},
        {PART("a") "x--b--" CLOSE, "[a <x--b-->]end"},
        {PART("a") "\n--b\r\n" CLOSE, "[a <\n--b\r\n>]end"},
        {PART("a") "\r\r\r\r" CLOSE, "[a <\r\r\r\r>]end"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].body, cases[i].want);
}

static void data_may_be_any_bytes(void) {
    hfsb_buf body = HFSB_INIT;
    size_t   i, k;
    t_repeat(&body, PART("a"), 1);
    for (k = 0; k < 2; k++)
        for (i = 0; i < 256; i++)
            T_CHECK(hfsb_buf_append_byte(&body, (char)i) == HFSB_OK);
    t_repeat(&body, CLOSE, 1);
    for (i = 0; i < body.len; i++) {
        reading  r = HFSB_INIT;
        hfsb_str got;
        T_CHECK(hfsbi_multipart_begin(&r.m, HFSB_LIT(TYPE), NULL) == HFSB_OK);
        read_cut(&r, hfsb_buf_str(&body), i + 1, body.len, false);
        got = hfsb_buf_str(&r.events);
        T_CHECK(got.len == 4 + 512 + 5 && !memcmp(got.ptr + 260, "\0\1\2", 3));
        hfsbi_multipart_free(&r.m);
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
    }
    hfsb_buf_free(&body);
}

static void example_of_rfc_7578(void) {
    /* section 4.2 and 4.6; the shape that browsers send */
    check_limited(
        HFSB_LIT("--AaB03x\r\n"
                 "content-disposition: form-data; name=\"_charset_\"\r\n\r\n"
                 "iso-8859-1\r\n"
                 "--AaB03x\r\n"
                 "content-disposition: form-data; name=\"field1\"\r\n"
                 "content-type: text/plain;charset=UTF-8\r\n\r\n"
                 "Joe owes =E2=82=AC100.\r\n"
                 "--AaB03x\r\n"
                 "Content-Disposition: form-data; name=\"file\"; "
                 "filename=\"a.txt\"\r\n"
                 "Content-Type: application/octet-stream\r\n"
                 "X-Other: ignored\r\n\r\n"
                 "x\r\ny\r\n\r\n"
                 "--AaB03x--\r\n"),
        NULL, HFSB_LIT("multipart/form-data; boundary=AaB03x"),
        "[_charset_ <iso-8859-1>]"
        "[field1 type text/plain;charset=UTF-8 <Joe owes =E2=82=AC100.>]"
        "[file file a.txt type application/octet-stream <x\r\ny\r\n>]end");
}

static void quoted_boundary_may_have_blanks(void) {
    check_limited(HFSB_LIT("--a b?\r\nContent-Disposition: form-data; "
                           "name=x\r\n\r\n1\r\n--a b\r\n--a b?--"),
                  NULL, HFSB_LIT("multipart/form-data; boundary=\"a b?\""),
                  "[x <1\r\n--a b>]end");
}

/* Heads without the Content-Disposition's name, and what they give. */
static void heads_are_read(void) {
    static const struct {
        const char *fields, *want;
    } cases[] = {
        {"Content-Disposition: form-data; name=a\r\n", "[a]end"},
        {"CONTENT-DISPOSITION:Form-Data;NAME=\"a\"\r\n", "[a]end"},
        {"Content-Disposition: form-data; name=\"\"\r\n", "[]end"},
        {"Content-Disposition: form-data; name=\"a\";\r\n", "[a]end"},
        {"Content-Disposition: form-data; x=y; name=a; z=\";\"\r\n",
         "[a]end"},
        {"Content-Disposition: form-data; name=a; filename=\"\"\r\n",
         "[a file ]end"},
        {"Content-Disposition: form-data; filename=b; name=a\r\n",
         "[a file b]end"},
        {"Content-Disposition: form-data; name=\"a;b=\\\"c\\\"\"\r\n",
         "[a;b=\"c\"]end"},
        {"Content-Disposition: form-data; name=a; filename=\"C:\\a\\b\"\r\n",
         "[a file C:\\a\\b]end"},
        {"Content-Disposition: form-data; name=a; filename=\"\\\\x\\\"y\"\r\n",
         "[a file \\x\"y]end"},
        {"Content-Disposition: form-data; name=a; filename=\"a\\\\\"\r\n",
         "[a file a\\]end"},
        {"Content-Disposition: form-data; name=a; filename=\"a%22b\"\r\n",
         "[a file a%22b]end"}, /* as browsers write a quote: not decoded */
        {"Content-Disposition: form-data; name=\"\xc3\xa9\"\r\n",
         "[\xc3\xa9]end"},
        /* filename* */
        {"Content-Disposition: form-data; name=a; "
         "filename*=UTF-8''%e2%82%ac%20rates\r\n",
         "[a file \xe2\x82\xac rates]end"},
        {"Content-Disposition: form-data; name=a; filename=\"EURO\"; "
         "filename*=utf-8'en'%e2%82%ac\r\n",
         "[a file \xe2\x82\xac]end"},
        {"Content-Disposition: form-data; name=a; "
         "filename*=utf-8''b; filename=c\r\n",
         "[a file b]end"},
        {"Content-Disposition: form-data; name=a; "
         "filename*=iso-8859-1'en'%A3%20rates\r\n",
         "[a file \xc2\xa3 rates]end"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''\r\n",
         "[a file ]end"},
        /* other fields */
        {"A: b\r\nContent-Disposition: form-data; name=a\r\nC:\r\n",
         "[a]end"},
        {"Content-Type: text/html\r\n"
         "Content-Disposition: form-data; name=a\r\n",
         "[a type text/html]end"},
        {"Content-Disposition: form-data; name=a\r\nContent-Type:\r\n",
         "[a type ]end"},
        {"Content-Disposition: form-data; name=a\r\n"
         "Content-Transfer-Encoding: Binary\r\n",
         "[a]end"},
        {"Content-Disposition: form-data; name=a\r\n"
         "Content-Transfer-Encoding: 8bit\r\n",
         "[a]end"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf body = HFSB_INIT;
        T_CHECK(hfsb_buf_printf(&body, "--b\r\n%s\r\n" CLOSE,
                                cases[i].fields) == HFSB_OK);
        check(body.ptr, cases[i].want);
        hfsb_buf_free(&body);
    }
}

static void malformed_bodies_are_refused(void) {
#define DISP "Content-Disposition: form-data; name=a"
#define LINE                                                              \
    "A line that starts with the boundary must end in CRLF after it, or " \
    "in \"--\" and CRLF."
#define EARLY                                                           \
    "The body ends before its last boundary, which is followed by \"--\"."
#define NONE "The body does not contain the boundary of its Content-Type."
#define STAR                                                              \
    "A filename* is malformed. Expected UTF-8''text, with %XX for all "   \
    "but letters, digits and some signs."
#define TWICE \
    "A Content-Disposition has a name or filename more than once."
#define MALFORMED                                                    \
    "A Content-Disposition is malformed. Expected form-data; name=\"...\""
    static const struct {
        const char *body, *want;
    } cases[] = {
        {"", "bad at 0: " NONE},
        {"abc", "bad at 3: " NONE},
        {"--", "bad at 2: " NONE},
        {"\r\n--", "bad at 4: " NONE},
        {"--c\r\n", "bad at 5: " NONE},
        {"--b", "bad at 3: " EARLY},
        {"--b-", "bad at 4: " EARLY},
        {"--b\r", "bad at 4: " EARLY},
        {"--b\r\n", "bad at 5: " EARLY},
        {"--b\r\nContent", "bad at 12: " EARLY},
        {PART("a"), "[abad at 49: " EARLY},
        {PART("a") "1", "[a <1>bad at 50: " EARLY},
        {PART("a") "1\r\n--", "[a <1>bad at 54: " EARLY},
        {PART("a") "1\r\n--b", "[a <1>]bad at 55: " EARLY},
        {PART("a") "1\r\n--b--\r", "[a <1>]bad at 58: " LINE},
        /* after a boundary */
        {"--bc\r\n", "bad at 3: " LINE},
        {"--b\n", "bad at 3: " LINE},
        {"--b\rx", "bad at 4: " LINE},
        {"--b-x", "bad at 4: " LINE},
        {"--b --", "bad at 4: " LINE},
        {"--b--x", "bad at 5: " LINE},
        {"--b--\n", "bad at 5: " LINE},
        {"--b--\rx", "bad at 6: " LINE},
        {PART("a") "1\r\n--b2", "[a <1>]bad at 55: " LINE},
        /* heads */
        {"--b\r\n\r\n", "bad at 5: A part has no Content-Disposition."},
        {"--b\r\nA: b\r\n\r\n",
         "bad at 11: A part has no Content-Disposition."},
        {"--b\r\nA b\r\n",
         "bad at 6: A blank in the name of a field, or between it and its "
         "colon."},
        {"--b\r\nA\r\n", "bad at 5: A line of the head has no colon."},
        {"--b\r\n b\r\n",
         "bad at 5: A line of the head begins with a blank; folded lines are "
         "not accepted."},
        {"--b\r\n" DISP "\r\n b\r\n",
         "bad at 45: A line of the head begins with a blank; folded lines "
         "are not accepted."},
        {"--b\r\nA: b\n",
         "bad at 9: A line feed without a carriage return before it in the "
         "value of a field."},
        {"--b\r\nA: \x01\r\n",
         "bad at 8: The byte 0x01 is not allowed in the value of a field."},
        {"--b\r\n" DISP "\r\n" DISP "\r\n",
         "bad at 66: A part has more than one Content-Disposition."},
        {"--b\r\n" DISP "\r\nContent-Type: a/b\r\nContent-Type: a/b\r\n",
         "bad at 78: A part has more than one Content-Type."},
        {"--b\r\nContent-Disposition: attachment; name=a\r\n",
         "bad at 26: The Content-Disposition of a part must be form-data."},
        {"--b\r\nContent-Disposition:\r\n",
         "bad at 25: The Content-Disposition of a part must be form-data."},
        {"--b\r\nContent-Disposition: form-data\r\n",
         "bad at 26: A Content-Disposition has no name."},
        {"--b\r\nContent-Disposition: form-data; filename=a\r\n",
         "bad at 26: A Content-Disposition has no name."},
        {"--b\r\nContent-Disposition: form-data, name=a\r\n",
         "bad at 35: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name\r\n",
         "bad at 41: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name=\r\n",
         "bad at 42: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name=\"a\r\n",
         "bad at 43: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name=\"a\\\"\r\n",
         "bad at 43: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name=a b\r\n",
         "bad at 44: " MALFORMED},
        {"--b\r\nContent-Disposition: form-data; name=\"a\"b\r\n",
         "bad at 45: " MALFORMED},
        {"--b\r\n" DISP "; name=a\r\n", "bad at 45: " TWICE},
        {"--b\r\n" DISP "; filename=a; filename=a\r\n", "bad at 57: " TWICE},
        {"--b\r\n" DISP "; filename*=UTF-8''a; filename*=UTF-8''a\r\n",
         "bad at 65: " TWICE},
        {"--b\r\n" DISP "; filename*=a\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8'a\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-7''a\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8''%\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8''%4\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8''%xx\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8''a%00\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=\"UTF-8''a\"\r\n", "bad at 45: " STAR},
        {"--b\r\n" DISP "; filename*=UTF-8''%ff\r\n",
         "bad at 55: The name of a part or of its file is not valid UTF-8."},
        {"--b\r\nContent-Disposition: form-data; name=\"\xff\"\r\n",
         "bad at 43: The name of a part or of its file is not valid UTF-8."},
        {"--b\r\n" DISP "\r\nContent-Transfer-Encoding: base64\r\n",
         "bad at 72: The Content-Transfer-Encoding of a part is not "
         "supported. Send its bytes as they are."},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].body, cases[i].want);
}

static void limits_are_kept(void) {
#define BEFORE "There are too many bytes before the first boundary."
#define AFTER  "There are too many bytes after the last boundary."
#define NAME   "The name of a part or of its file is too long."
    static const struct {
        const char *body, *want;
    } cases[] = {
        {PART("12345") "1" NEXT("b") "2" CLOSE, "[12345 <1>][b <2>]end"},
        {PART("a") "1" NEXT("b") "2" NEXT("c") "3" CLOSE,
         "[a <1>][b <2>]limit at 109: The body has too many parts."},
        {PART("123456") "1" CLOSE, "limit at 43: " NAME},
        {"--b\r\n" DISP "; filename=123456\r\n", "limit at 54: " NAME},
        {"--b\r\n" DISP "; filename*=UTF-8''%41%41%41%41%41\r\n\r\n" CLOSE,
         "[a file AAAAA]end"},
        {"--b\r\n" DISP "; filename*=UTF-8''%41%41%41%41%41%41\r\n",
         "limit at 55: " NAME},
        {"1234" "\r\n" PART("a") "1" CLOSE, "[a <1>]end"},
        {"12345" "\r\n" PART("a") "1" CLOSE, "limit at 4: " BEFORE},
        {"12\r\n\r\n--b--", "end"},
        {"123\r\n\r\n--b--", "limit at 4: " BEFORE},
        {"--\r\n\r\n--b--", "end"},
        {"--a\r\n\r\n--b--", "limit at 4: " BEFORE},
        {"\r\n\r\n\r\n--b--", "end"},
        {"\r\n\r\n\r\n\r\n--b--", "limit at 4: " BEFORE},
        {PART("a") "1" CLOSE "1234", "[a <1>]end"},
        {PART("a") "1" CLOSE "12345", "[a <1>]limit at 63: " AFTER},
        /* a head of 80 bytes, and one more */
        {"--b\r\n" DISP "\r\nX: 345678901234567890123456789012345\r\n\r\n1"
         CLOSE, "[a <1>]end"},
        {"--b\r\n" DISP "\r\nX: 3456789012345678901234567890123456\r\n\r\n1"
         CLOSE, "limit at 85: The head of a part is too large."},
    };
    hfsbi_multipart limits = HFSB_INIT;
    size_t          i;
    limits.max_head = 80;
    limits.max_parts = 2;
    limits.max_name = 5;
    limits.max_around = 4;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_limited(hfsb_cstr(cases[i].body), &limits, HFSB_LIT(TYPE),
                      cases[i].want);
}

/* unit so many times between head and tail. */
static void check_repeated(const char *head, const char *unit, size_t times,
                           const char *tail, const char *want) {
    hfsb_buf body = HFSB_INIT;
    size_t   k;
    t_repeat(&body, head, 1);
    t_repeat(&body, unit, times);
    t_repeat(&body, tail, 1);
    for (k = 1; k < 5000; k = k * 3 + 1) {
        reading r = HFSB_INIT;
        bool    ok;
        T_CHECK(hfsbi_multipart_begin(&r.m, HFSB_LIT(TYPE), NULL) == HFSB_OK);
        read_cut(&r, hfsb_buf_str(&body), k, k, k % 2);
        ok = hfsb_str_ends(hfsb_buf_str(&r.events), hfsb_cstr(want));
        T_CHECK(ok);
        if (!ok) printf("  is %s\n  want %s\n", r.events.ptr, want);
        hfsbi_multipart_free(&r.m);
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
    }
    hfsb_buf_free(&body);
}

static void usual_limits_are_kept(void) {
    check_repeated("", "x", 4096, "\r\n--b--", "end");
    check_repeated("", "x", 4097, "\r\n--b--", "limit at 4096: " BEFORE);
    check_repeated("--b--\r\n", "x", 4096, "", "end");
    check_repeated("--b--\r\n", "x", 4097, "", "limit at 4103: " AFTER);
    check_repeated("--b", " ", 256, "\r\n" DISP "\r\n\r\n" CLOSE, "[a]end");
    check_repeated("--b", " ", 257, "\r\n" DISP "\r\n\r\n" CLOSE,
                   "limit at 259: There are too many blanks after a "
                   "boundary.");
    check_repeated("--b--", "\t", 257, "\r\n",
                   "limit at 261: There are too many blanks after a "
                   "boundary.");
    check_repeated("--b\r\n" DISP "\r\nX: ", "x", 16384 - 40 - 3 - 4,
                   "\r\n\r\n" CLOSE, "[a]end");
    check_repeated("--b\r\n" DISP "\r\nX: ", "x", 16384 - 40 - 3 - 3,
                   "\r\n\r\n" CLOSE,
                   "limit at 16389: The head of a part is too large.");
    check_repeated("--b\r\nContent-Disposition: form-data; name=", "x", 4096,
                   "\r\n\r\n" CLOSE, "x]end");
    check_repeated("--b\r\nContent-Disposition: form-data; name=", "x", 4097,
                   "\r\n\r\n" CLOSE, "limit at 42: " NAME);
}

static void parts_are_limited(void) {
    hfsb_buf body = HFSB_INIT;
    size_t   i;
    for (i = 1000; i < 1002; i++) {
        reading r = HFSB_INIT;
        hfsb_buf_truncate(&body, 0);
        t_repeat(&body, PART("a"), i);
        t_repeat(&body, "--b--", 1);
        T_CHECK(hfsbi_multipart_begin(&r.m, HFSB_LIT(TYPE), NULL) == HFSB_OK);
        read_cut(&r, hfsb_buf_str(&body), 777, 777, true);
        T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.events),
                              i == 1000 ? HFSB_LIT("[a]end")
                                        : HFSB_LIT("[a]limit at 49005: The "
                                                   "body has too many "
                                                   "parts.")));
        hfsbi_multipart_free(&r.m);
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
    }
    hfsb_buf_free(&body);
}

/* All data that cannot be part of a delimiter is passed on at once. */
static void only_a_delimiter_is_held_back(void) {
    hfsbi_multipart m = HFSB_INIT;
    hfsb_str        in = HFSB_LIT(PART("a") "12345\r\n--"), data;
    size_t          used;
    T_CHECK(hfsbi_multipart_begin(&m, HFSB_LIT(TYPE), NULL) == HFSB_OK);
    T_CHECK(hfsbi_multipart_next(&m, in, false, &data, &used, NULL) ==
            HFSBI_MULTIPART_PART);
    in = hfsb_str_slice(in, used, in.len);
    T_CHECK(hfsbi_multipart_next(&m, in, false, &data, &used, NULL) ==
            HFSBI_MULTIPART_DATA);
    T_STR(data, "12345");
    T_CHECK(data.ptr == in.ptr && used == in.len); /* a view, all used */
    T_CHECK(hfsbi_multipart_next(&m, HFSB_LIT("x"), false, &data, &used,
                                 NULL) == HFSBI_MULTIPART_DATA);
    T_STR(data, "\r\n--");
    T_CHECK(used == 0);
    T_CHECK(hfsbi_multipart_next(&m, HFSB_LIT("x"), false, &data, &used,
                                 NULL) == HFSBI_MULTIPART_DATA);
    T_STR(data, "x");
    hfsbi_multipart_free(&m);
}

static void reader_can_begin_again(void) {
    reading r = HFSB_INIT;
    T_CHECK(hfsbi_multipart_begin(&r.m, HFSB_LIT(TYPE), NULL) == HFSB_OK);
    read_cut(&r, HFSB_LIT(PART("a") "1\r\n--bad"), 3, 3, false);
    T_CHECK(hfsbi_multipart_begin(
                &r.m, HFSB_LIT("multipart/form-data; boundary=cc"), NULL) ==
            HFSB_OK);
    r.done = false;
    hfsb_buf_truncate(&r.events, 0);
    read_cut(&r, HFSB_LIT("--cc\r\n" DISP "\r\n\r\n--b--\r\n--cc--"), 3, 3,
             false);
    T_STR(r.events, "[a <--b-->]end");
    hfsbi_multipart_free(&r.m);
    hfsb_buf_free(&r.events);
    hfsb_buf_free(&r.body);
}

static void begin_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_multipart m = HFSB_INIT;
    hfsb_str        in = HFSB_LIT(PART("a") "1" NEXT("b") "2" CLOSE), data;
    hfsb_err        err;
    size_t          used, events = 0;
    hfsb_status     st;
    m.head.alloc = alloc;
    st = hfsbi_multipart_begin(&m, HFSB_LIT(TYPE), &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    if (st != HFSB_OK) {
        T_CHECK(err.code == HFSB_NOMEM && err.pos == 0 &&
                !strcmp(err.msg, "Multipart body: out of memory."));
    } else {
        while (hfsbi_multipart_next(&m, in, true, &data, &used, &err) <
               HFSBI_MULTIPART_END) {
            in = hfsb_str_slice(in, used, in.len);
            events++;
        }
        T_CHECK(events == 6 && heap->calls == 1);
    }
    hfsbi_multipart_free(&m);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(begin_once);
}

int main(void) {
    T_RUN(boundary_is_found);
    T_RUN(content_types_without_a_boundary_are_refused);
    T_RUN(bodies_give_their_events);
    T_RUN(data_may_be_any_bytes);
    T_RUN(example_of_rfc_7578);
    T_RUN(quoted_boundary_may_have_blanks);
    T_RUN(heads_are_read);
    T_RUN(malformed_bodies_are_refused);
    T_RUN(limits_are_kept);
    T_RUN(usual_limits_are_kept);
    T_RUN(parts_are_limited);
    T_RUN(only_a_delimiter_is_held_back);
    T_RUN(reader_can_begin_again);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
