/* text.c - hfsb json, strip, truncate, classify: functions on text.

   Each reads standard input, a file or a word, applies one function of the
   library, and prints the text. With --json the text is the output of a
   result. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Prints the text, or with --json a result with the text as its output. */
static int put_text_out(hfsb_buf *text, hfsb_status st, const hfsb_err *err,
                        bool json) {
    hfsb_tool_result result = HFSB_INIT;
    int              code;
    if (json) {
        result.output = *text;
        memset(text, 0, sizeof *text);
        return show_outcome(&result, st, err, true);
    }
    if (st == HFSB_OK) code = put_out(hfsb_buf_str(text));
    else {
        fprintf(stderr, "hfsb: %s\n", err->msg);
        code = REFUSED;
    }
    hfsb_buf_free(text);
    return code;
}

/* ---- json ---- */

int run_json(args *a) {
    hfsb_json_write_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT, out = HFSB_INIT;
    hfsb_err             why, err = HFSB_INIT;
    const char          *file = NULL;
    bool                 json = false;
    hfsb_status          st;

    const option options[] = {
        {"--pretty", OPTION_FLAG, &opts.pretty, "indent it for reading"},
        OPTION_JSON(&json, ""),
        OPTIONS_END};
    if (!take_all(a, options, &file)) return a->status;
    st = read_input(file, &text, &err);
    if (st == HFSB_OK &&
        hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, &why) != HFSB_OK)
        st = fail(&err, why.code, "%s: %s",
                  file && strcmp(file, "-") != 0 ? file : "standard input",
                  why.msg);
    if (st == HFSB_OK) {
        must(hfsb_json_write(doc.root, &opts, &out, NULL));
        if (!json) must(hfsb_buf_append_byte(&out, '\n'));
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    return put_text_out(&out, st, &err, json);
}

/* ---- strip, truncate ---- */

/* HFSB_OK, or HFSB_IO when standard input could not be read to its end. */
static hfsb_status check_input(hfsb_err *err) {
    if (!ferror(stdin)) return HFSB_OK;
    return fail(err, HFSB_IO, "standard input cannot be read");
}

/* Prints piece by piece, except with --json. */
int run_strip(args *a) {
    static char       piece[65536];
    hfsb_text_filter *filter;
    hfsb_buf          out = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st = HFSB_OK;
    bool              json = false;
    size_t            n;
    int               code = DONE;

    const option options[] = {OPTION_JSON(&json, ""), OPTIONS_END};
    if (!take_all(a, options, NULL)) return a->status;
    filter = hfsb_text_filter_open(NULL);
    must(filter ? HFSB_OK : HFSB_NOMEM);
    while (code == DONE && (n = fread(piece, 1, sizeof piece, stdin)) > 0) {
        must(hfsb_text_filter_write(filter, hfsb_str_make(piece, n), &out));
        if (json) continue;
        code = put_out(hfsb_buf_str(&out));
        hfsb_buf_truncate(&out, 0);
    }
    if (code == DONE) st = check_input(&err);
    if (code == DONE && st == HFSB_OK)
        must(hfsb_text_filter_finish(filter, &out));
    hfsb_text_filter_close(filter);
    if (code == DONE) return put_text_out(&out, st, &err, json);
    hfsb_buf_free(&out);
    return code;
}

int run_truncate(args *a) {
    static char       piece[65536];
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *window;
    hfsb_utf8_stream  stream = HFSB_INIT;
    hfsb_buf          text = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    bool              json = false;
    size_t            n;

    const option options[] = {
        {"--limit N", OPTION_COUNT, &limit.chars,
         "longest text that is not cut, in characters (25,000)"},
        OPTION_JSON(&json, ""),
        OPTIONS_END};
    if (!take_all(a, options, NULL)) return a->status;
    window = hfsb_text_window_open(&limit, NULL);
    must(window ? HFSB_OK : HFSB_NOMEM);
    do {
        n = fread(piece, 1, sizeof piece, stdin);
        hfsb_buf_truncate(&text, 0);
        must(hfsb_utf8_stream_write(&stream, hfsb_str_make(piece, n),
                                    n < sizeof piece, &text));
        must(hfsb_text_window_write(window, hfsb_buf_str(&text)));
    } while (n == sizeof piece);
    st = check_input(&err);
    hfsb_buf_truncate(&text, 0);
    if (st == HFSB_OK)
        must(hfsb_text_window_show(window, HFSB_LIT(""), &text));
    hfsb_text_window_close(window);
    return put_text_out(&text, st, &err, json);
}

/* ---- classify ---- */

int run_classify(args *a) {
    const char      *word = NULL, *kind;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_writer w;
    bool             json = false;

    const option options[] = {OPTION_JSON(&json, ", kind"), OPTIONS_END};
    if (!take_all(a, options, &word)) return a->status;
    if (!word) return usage(a, "STRING is missing");
    kind = hfsb_script_kind_name(hfsb_script_classify(hfsb_cstr(word)));
    must(hfsb_buf_append(&result.output, hfsb_cstr(kind)));
    begin_object(&w, &result.fields);
    put_str(&w, "kind", hfsb_cstr(kind));
    end_object(&w);
    return show_outcome(&result, HFSB_OK, NULL, json);
}
