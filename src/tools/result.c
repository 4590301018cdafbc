/* result.c - the result of a tool: filling it, and writing it for others.

   A result is text for the model, in output or error, and typed fields. A tool
   fills it while it runs; it is written as JSON or as one text at the end. */
#include "tools_private.h"

HFSBI_FN void hfsbi_result_init(hfsb_tool_result *result,
                                const hfsb_alloc *alloc) {
    memset(result, 0, sizeof *result);
    result->output.alloc = result->error.alloc = *alloc;
    result->fields.alloc = *alloc;
}

void hfsb_tool_result_free(hfsb_tool_result *result) {
    hfsb_buf_free(&result->output);
    hfsb_buf_free(&result->error);
    hfsb_json_free(&result->fields);
    result->success = false;
    result->code = HFSB_OK;
    result->key[0] = '\0';
}

hfsb_status hfsb_tool_result_write(const hfsb_tool_result *result,
                                   hfsb_buf *out, hfsb_err *err) {
    hfsb_json_iter   it = hfsb_json_begin(result->fields.root);
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_bool(&w, "success", result->success);
    hfsb_json_put_member_str(&w, "output", hfsb_buf_str(&result->output));
    hfsb_json_put_member_str(&w, "error", hfsb_buf_str(&result->error));
    while (hfsb_json_next(&it)) {
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, err);
}

hfsb_status hfsb_tool_result_text(const hfsb_tool_result *result,
                                  hfsb_buf               *out) {
    size_t mark = out->len;
    if (result->success && result->output.len == 0)
        hfsb_buf_append(out, HFSB_LIT("(no output)"));
    hfsb_buf_append(out, hfsb_buf_str(&result->output));
    if (!result->success) {
        if (result->output.len) hfsb_buf_append(out, HFSB_LIT("\n\n"));
        hfsb_buf_append(out, HFSB_LIT("ERROR: "));
        hfsb_buf_append(out, hfsb_buf_str(&result->error));
    }
    return hfsb_buf_finish(out, mark);
}

HFSBI_FN hfsb_status hfsbi_result_ok(hfsb_tool_result *result,
                                     const char       *format, ...) {
    va_list     ap;
    hfsb_status st;
    result->success = true;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(&result->output, format, ap);
    va_end(ap);
    return st;
}

enum {
    HFSBI_DIFF_LINES = 30,  /* shown of a diff */
    HFSBI_DIFF_REMOVED = 4, /* in a row, if the diff is longer */
    HFSBI_DIFF_BYTES = 2000,
    HFSBI_DIFF_WIDTH = 200 /* characters of a line */
};

static hfsb_status hfsbi_add_diff_line(hfsb_buf *out, hfsb_str line) {
    size_t      end = hfsb_utf8_offset(line, HFSBI_DIFF_WIDTH);
    hfsb_status st;
    hfsb_buf_append_byte(out, '\n');
    st = hfsb_utf8_repair(hfsb_str_slice(line, 0, end), out);
    if (end < line.len) hfsb_buf_append(out, HFSB_LIT("..."));
    return st;
}

static void hfsbi_add_removed(hfsb_buf *out, size_t *removed) {
    if (*removed) hfsb_buf_printf(out, "\n... (%zu more removed)", *removed);
    *removed = 0;
}

/* The model knows what it replaced: most of a long diff's lines are used for
   what was written. */
HFSBI_FN hfsb_status hfsbi_result_add_diff(hfsb_tool_result *result,
                                           hfsb_str diff, bool head) {
    hfsb_buf   *out = &result->output;
    hfsb_status st = HFSB_OK;
    size_t      mark = out->len, n = 0, row = 0, removed = 0;
    hfsb_str    line;
    bool        is_long;
    if (!head) {
        hfsb_text_line(&diff, &line, NULL); /* "--- a/..." */
        hfsb_text_line(&diff, &line, NULL); /* "+++ b/..." */
    }
    is_long = hfsb_str_count_byte(diff, '\n') > HFSBI_DIFF_LINES;
    while (st == HFSB_OK && n < HFSBI_DIFF_LINES &&
           out->len - mark < HFSBI_DIFF_BYTES &&
           hfsb_text_line(&diff, &line, NULL)) {
        row = hfsb_str_starts(line, HFSB_LIT("-")) ? row + 1 : 0;
        if (is_long && row > HFSBI_DIFF_REMOVED) {
            removed++;
            continue;
        }
        hfsbi_add_removed(out, &removed);
        st = hfsbi_add_diff_line(out, line);
        n++;
    }
    hfsbi_add_removed(out, &removed);
    if (diff.len)
        hfsb_buf_printf(out, "\n... (%zu more lines of the diff)",
                        hfsb_str_count_byte(diff, '\n'));
    if (st != HFSB_OK) out->status = st;
    return hfsb_buf_finish(out, mark);
}

HFSBI_FN hfsb_status hfsbi_result_fail(hfsb_tool_result *result,
                                       hfsb_status code, const char *format,
                                       ...) {
    va_list     ap;
    hfsb_status st;
    result->success = false;
    result->code = code;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(&result->error, format, ap);
    va_end(ap);
    return st;
}

HFSBI_FN hfsb_status hfsbi_result_err(hfsb_tool_result *result,
                                      const hfsb_err   *err) {
    if (err->code == HFSB_NOMEM) return HFSB_NOMEM;
    memcpy(result->key, err->key, sizeof result->key);
    return hfsbi_result_fail(result, err->code, "%s", err->msg);
}

HFSBI_FN void hfsbi_append_repaired(hfsb_buf *out, hfsb_str text) {
    if (out->status == HFSB_OK) out->status = hfsb_utf8_repair(text, out);
}

HFSBI_FN void hfsbi_result_status(hfsb_tool_result *result, hfsb_status st,
                                  const hfsb_err *err) {
    result->success = false;
    result->code = st;
    if (err) memcpy(result->key, err->key, sizeof result->key);
    if (result->error.len == 0 &&
        hfsb_buf_append(
            &result->error,
            hfsb_cstr(err && err->msg[0] ? err->msg : hfsb_status_text(st))) !=
            HFSB_OK)
        hfsb_buf_truncate(&result->error, 0);
}

long long hfsb_tool_result_int(const hfsb_tool_result *result, const char *key,
                               long long fallback) {
    return hfsb_json_int(hfsb_json_get(result->fields.root, key), fallback);
}

hfsb_str hfsb_tool_result_str(const hfsb_tool_result *result,
                              const char             *key) {
    return hfsbi_json_get_str(result->fields.root, key);
}
