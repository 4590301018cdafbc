/* text.c - hfsb json, strip, truncate, classify: texts in, texts out. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* ---- json ---- */

static int run_json(args *a) {
    hfsb_json_write_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT, out = HFSB_INIT;
    hfsb_err             err;
    const char          *file = NULL;
    int                  code = REFUSED;
    const option         options[] = {{"--pretty", OPTION_FLAG, &opts.pretty},
                                      {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &file)) return a->status;
    if (read_input(file, &text, &err) != HFSB_OK) {
        fprintf(stderr, "hfsb: %s\n", err.msg);
    } else if (hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, &err) !=
               HFSB_OK) {
        fprintf(stderr, "hfsb: %s: %s\n",
                file && strcmp(file, "-") != 0 ? file : "standard input",
                err.msg);
    } else {
        must(hfsb_json_write(doc.root, &opts, &out, NULL));
        must(hfsb_buf_append_byte(&out, '\n'));
        code = put_out(hfsb_buf_str(&out));
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
    return code;
}

/* ---- strip, truncate ---- */

static const option no_options[] = {{NULL, OPTION_FLAG, NULL}};

/* DONE unless standard input could not be read to its end. */
static int check_input(void) {
    if (!ferror(stdin)) return DONE;
    fprintf(stderr, "hfsb: standard input cannot be read\n");
    return REFUSED;
}

static int run_strip(args *a) {
    static char       piece[65536];
    hfsb_text_filter *filter;
    hfsb_buf          out = HFSB_INIT;
    size_t            n;
    int               code = DONE;
    if (!take_all(a, no_options, NULL)) return a->status;
    filter = hfsb_text_filter_open(NULL);
    must(filter ? HFSB_OK : HFSB_NOMEM);
    while (code == DONE && (n = fread(piece, 1, sizeof piece, stdin)) > 0) {
        hfsb_buf_truncate(&out, 0);
        must(hfsb_text_filter_write(filter, hfsb_str_make(piece, n), &out));
        code = put_out(hfsb_buf_str(&out));
    }
    if (code == DONE) code = check_input();
    if (code == DONE) {
        hfsb_buf_truncate(&out, 0);
        must(hfsb_text_filter_finish(filter, &out));
        code = put_out(hfsb_buf_str(&out));
    }
    hfsb_text_filter_close(filter);
    hfsb_buf_free(&out);
    return code;
}

static int run_truncate(args *a) {
    static char       piece[65536];
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *window;
    hfsb_utf8_stream  stream = HFSB_INIT;
    hfsb_buf          text = HFSB_INIT;
    size_t            n;
    int               code;
    const option      options[] = {{"--limit", OPTION_COUNT, &limit.chars},
                                   {NULL, OPTION_FLAG, NULL}};
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
    code = check_input();
    if (code == DONE) {
        hfsb_buf_truncate(&text, 0);
        must(hfsb_text_window_show(window, HFSB_LIT(""), &text));
        code = put_out(hfsb_buf_str(&text));
    }
    hfsb_text_window_close(window);
    hfsb_buf_free(&text);
    return code;
}

/* ---- classify ---- */

static int run_classify(args *a) {
    const char  *word = NULL, *kind;
    bool         json = false;
    const option options[] = {{"--json", OPTION_FLAG, &json},
                              {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &word)) return a->status;
    if (!word) return usage(a, "which STRING?");
    kind = hfsb_script_kind_name(hfsb_script_classify(hfsb_cstr(word)));
    if (json) printf("{\"kind\":\"%s\"}\n", kind);
    else printf("%s\n", kind);
    return fflush(stdout) == 0 ? DONE : REFUSED;
}

const cli_command command_json = {
    "json", "[OPTIONS] [FILE]", "check a JSON text and print it again",
    "    Check a JSON text from FILE or standard input and print it again;\n"
    "    exit 1 with the position when it is invalid.\n"
    "    --pretty    for people to read\n",
    run_json};

const cli_command command_strip = {
    "strip", "", "clean the output of a command",
    "    Standard input to standard output without escape sequences, with\n"
    "    rewritten lines (progress bars) as a terminal leaves them.\n",
    run_strip};

const cli_command command_truncate = {
    "truncate", "[OPTIONS]", "leave the middle of a long text out",
    "    Standard input to standard output; of a text that is too long only\n"
    "    the first quarter and the last three.\n"
    "    --limit N    longest text shown whole, in characters (25,000)\n",
    run_truncate};

const cli_command command_classify = {
    "classify", "[OPTIONS] STRING", "what a job's script is",
    "    What a job's script is: path, url, inline or command. A STRING\n"
    "    that may begin with \"-\" comes behind \"--\".\n"
    "    --json    print it as {\"kind\":...}\n",
    run_classify};
