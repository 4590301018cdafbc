/* io.c - input, output and results.

   Every command ends with a result: success, output, error and fields. It is
   printed as text, or with --json as one line. Text from a server is cleaned
   of control characters before it reaches a terminal. */
#define _XOPEN_SOURCE 700 /* fileno; before any include */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void must(hfsb_status st) {
    if (st == HFSB_OK) return;
    fprintf(stderr, "hfsb: %s\n", hfsb_status_text(st));
    exit(REFUSED);
}

hfsb_status fail(hfsb_err *err, hfsb_status code, const char *format, ...) {
    va_list ap;
    memset(err, 0, sizeof *err);
    err->code = code;
    va_start(ap, format);
    vsnprintf(err->msg, sizeof err->msg, format, ap);
    va_end(ap);
    return code;
}

hfsb_status read_input(const char *path, hfsb_buf *out, hfsb_err *err) {
    static char piece[65536];
    bool        named = path && strcmp(path, "-") != 0;
    FILE       *f = named ? fopen(path, "rb") : stdin;
    hfsb_status st = HFSB_OK;
    size_t      n;
    if (!named) path = "Standard input";
    if (!f && errno == ENOENT)
        return fail(err, HFSB_NOT_FOUND, "File not found: %s", path);
    if (!f) return fail(err, HFSB_IO, "%s: %s", path, strerror(errno));
    if (!named && isatty(STDIN_FILENO))
        fprintf(stderr, "hfsb: reading what you type; Ctrl-D ends it\n");
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        must(hfsb_buf_append(out, hfsb_str_make(piece, n)));
    if (ferror(f))
        st =
            fail(err, HFSB_IO, "%s cannot be read: %s", path, strerror(errno));
    if (named) fclose(f);
    return st;
}

int put_out(hfsb_str text) {
    if (fwrite(text.ptr, 1, text.len, stdout) == text.len &&
        fflush(stdout) == 0 && !ferror(stdout))
        return DONE;
    fprintf(stderr, "hfsb: cannot write to standard output\n");
    return REFUSED;
}

void set_outcome(hfsb_tool_result *result, hfsb_status st,
                 const hfsb_err *err) {
    result->success = st == HFSB_OK;
    if (!result->success)
        must(hfsb_buf_append(
            &result->error,
            hfsb_cstr(err->msg[0] ? err->msg : hfsb_status_text(st))));
}

static void blank(hfsb_buf *text, bool cells) {
    size_t i;
    for (i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->ptr[i];
        unsigned char next =
            i + 1 < text->len ? (unsigned char)text->ptr[i + 1] : 0;
        bool kept = cells ? c == '\0' : c == '\n' || c == '\t';
        if ((c < ' ' && !kept) || c == 0x7f) text->ptr[i] = ' ';
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) /* U+0080 to U+009F */
            text->ptr[i] = text->ptr[i + 1] = ' ';
    }
}

void blank_controls(hfsb_buf *text) {
    blank(text, false);
}

void blank_controls_of_cells(hfsb_buf *text) {
    blank(text, true);
}

bool put_shown(FILE *to, hfsb_str text) {
    hfsb_buf copy = HFSB_INIT;
    bool     ok;
    if (isatty(fileno(to))) {
        must(hfsb_buf_append(&copy, text));
        blank_controls(&copy);
        text = hfsb_buf_str(&copy);
    }
    ok = fwrite(text.ptr, 1, text.len, to) == text.len && fflush(to) == 0;
    hfsb_buf_free(&copy);
    return ok;
}

/* A server may have chosen the text of the line. */
static void print_error(hfsb_str line) {
    hfsb_buf text = HFSB_INIT;
    must(hfsb_buf_append(&text, line));
    blank_controls(&text);
    must(hfsb_buf_append_byte(&text, '\n'));
    fwrite(text.ptr, 1, text.len, stderr);
    hfsb_buf_free(&text);
}

static int show(const hfsb_tool_result *result, hfsb_str more, bool json,
                bool diffs) {
    hfsb_buf text = HFSB_INIT;
    bool     colours = diffs && has_colours(STDOUT_FILENO);
    int      code = DONE;
    if (json) {
        must(hfsb_tool_result_write(result, &text, NULL));
        must(hfsb_buf_append_byte(&text, '\n'));
    } else {
        must(hfsb_buf_append(&text, hfsb_buf_str(&result->output)));
        if (text.len) must(hfsb_buf_append_byte(&text, '\n'));
        must(hfsb_buf_append(&text, more));
        if (isatty(STDOUT_FILENO) || colours) blank_controls(&text);
        if (colours) colour_diffs(&text);
        if (!result->success) print_error(hfsb_buf_str(&result->error));
    }
    code = put_out(hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return result->success ? code : REFUSED;
}

int show_result(const hfsb_tool_result *result, hfsb_str more, bool json) {
    return show(result, more, json, false);
}

int show_with_diff(const hfsb_tool_result *result, hfsb_str more, bool json) {
    return show(result, more, json, true);
}

int show_outcome(hfsb_tool_result *result, hfsb_status st, const hfsb_err *err,
                 bool json) {
    int code;
    set_outcome(result, st, err);
    code = show_result(result, HFSB_LIT(""), json);
    hfsb_tool_result_free(result);
    return st != HFSB_OK && caught_signal() ? 128 + caught_signal() : code;
}

bool is_blank(hfsb_str text) {
    size_t i = 0;
    while (i < text.len && strchr(" \t\r\n", text.ptr[i]) && text.ptr[i]) i++;
    return i == text.len;
}

hfsb_str get_str(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}

void put_str(hfsb_json_writer *w, const char *key, hfsb_str text) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    if (text.len) hfsb_json_put_str(w, text);
    else hfsb_json_put_null(w);
}

void put_int(hfsb_json_writer *w, const char *key, long long value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_int(w, value);
}

void put_bool(hfsb_json_writer *w, const char *key, bool value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_bool(w, value);
}

bool check_text(const char *what, hfsb_str text) {
    size_t good = hfsb_utf8_validate(text);
    if (good == text.len) return true;
    fprintf(stderr, "hfsb: %s is not UTF-8, from byte %zu on\n", what, good);
    return false;
}

bool put_text(hfsb_json_writer *w, const char *key, const char *what,
              hfsb_str text) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, text);
    return check_text(what, text);
}

void begin_object(hfsb_json_writer *w, hfsb_json_doc *doc) {
    hfsb_json_writer_init_doc(w, doc);
    hfsb_json_put_object(w);
}

void end_object(hfsb_json_writer *w) {
    hfsb_json_put_end(w);
    must(hfsb_json_writer_finish(w, NULL));
}

void print_log(void *user, hfsb_str line) {
    (void)user;
    fprintf(stderr, "hfsb: ");
    print_error(line);
}

void print_notes(hfsb_str notes) {
    while (notes.len) {
        size_t end = hfsb_str_find_byte(notes, '\n');
        print_log(NULL, hfsb_str_slice(notes, 0, end));
        notes = end == HFSB_NPOS ? hfsb_str_make(NULL, 0)
                                 : hfsb_str_slice(notes, end + 1, notes.len);
    }
}
