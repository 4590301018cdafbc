/* show.c - the result of a tool as blocks of MCP. */
#include "mcp_private.h"

enum {
    /* Bytes of all blocks together: clients drop the connection at a message
       of 10 MiB. */
    HFSBI_MCP_BLOCKS = 8 * 1024 * 1024,
    HFSBI_MCP_NOTES = 64 * 1024, /* ... and of what says that some are not */
    /* Characters of what failed: some hosts cut a longer text, and with it
       why it failed. */
    HFSBI_MCP_FAILURE = 9000,
    HFSBI_MCP_ERROR = 4000, /* ... of these of the reason */
    HFSBI_MCP_LEFT = 8,     /* processes that are named */
    HFSBI_MCP_LINE = 120    /* characters of a line for progress */
};

/* ---- blocks ---- */

static size_t hfsbi_mcp_begin_block(hfsbi_mcp_blocks *b, const char *type) {
    size_t mark = b->json.len;
    if (b->json.len) hfsb_buf_append_byte(&b->json, ',');
    hfsb_buf_printf(&b->json, "{\"type\":\"%s\",", type);
    return mark;
}

/* False, with the block taken back, when it does not fit. */
static bool hfsbi_mcp_end_block(hfsbi_mcp_blocks *b, size_t mark,
                                size_t most) {
    hfsb_buf_append_byte(&b->json, '}');
    if (hfsb_buf_finish(&b->json, mark) != HFSB_OK) b->status = HFSB_NOMEM;
    if (b->json.len <= most) return true;
    hfsb_buf_truncate(&b->json, mark);
    return false;
}

static bool hfsbi_mcp_try_text(hfsbi_mcp_blocks *b, hfsb_str text,
                               size_t most) {
    size_t mark = hfsbi_mcp_begin_block(b, "text");
    hfsb_buf_append(&b->json, HFSB_LIT("\"text\":"));
    hfsbi_json_put_quoted(&b->json, text);
    return hfsbi_mcp_end_block(b, mark, most);
}

/* In place of a block that is too large. */
static void hfsbi_mcp_add_note(hfsbi_mcp_blocks *b, const char *what,
                               size_t size, const char *advice) {
    char note[256];
    snprintf(note, sizeof note, "(%s of %zu bytes was left out: %s)", what,
             size, advice);
    hfsbi_mcp_try_text(b, hfsb_cstr(note), HFSBI_MCP_BLOCKS + HFSBI_MCP_NOTES);
}

HFSBI_FN void hfsbi_mcp_add_text(hfsbi_mcp_blocks *b, hfsb_str text) {
    if (text.len > HFSBI_MCP_BLOCKS ||
        !hfsbi_mcp_try_text(b, text, HFSBI_MCP_BLOCKS))
        hfsbi_mcp_add_note(b, "a text", text.len,
                           "a result may have 8 MiB; ask for less");
}

HFSBI_FN void hfsbi_mcp_add_data(hfsbi_mcp_blocks *b, const char *type,
                                 hfsb_str mime_type, hfsb_str data) {
    size_t mark;
    bool   fits = false;
    if (data.len <= HFSBI_MCP_IMAGE) {
        mark = hfsbi_mcp_begin_block(b, type);
        hfsb_buf_append(&b->json, HFSB_LIT("\"data\":"));
        hfsbi_json_put_quoted(&b->json, data);
        hfsb_buf_append(&b->json, HFSB_LIT(",\"mimeType\":"));
        hfsbi_json_put_quoted(&b->json, mime_type);
        fits = hfsbi_mcp_end_block(b, mark, HFSBI_MCP_BLOCKS);
    }
    if (!fits)
        hfsbi_mcp_add_note(b, strcmp(type, "image") ? "a sound" : "an image",
                           data.len / 4 * 3,
                           "more than 5 MiB in base64 cannot be sent; make a "
                           "smaller copy with a command and look at that");
}

HFSBI_FN void hfsbi_mcp_add_resource(hfsbi_mcp_blocks *b, hfsb_str uri,
                                     hfsb_str mime_type, hfsb_str text) {
    size_t mark;
    bool   fits = false;
    if (uri.len <= HFSBI_MCP_BLOCKS && text.len <= HFSBI_MCP_BLOCKS) {
        mark = hfsbi_mcp_begin_block(b, "resource");
        hfsb_buf_append(&b->json, HFSB_LIT("\"resource\":{\"uri\":"));
        hfsbi_json_put_quoted(&b->json, uri);
        if (mime_type.len) {
            hfsb_buf_append(&b->json, HFSB_LIT(",\"mimeType\":"));
            hfsbi_json_put_quoted(&b->json, mime_type);
        }
        hfsb_buf_append(&b->json, HFSB_LIT(",\"text\":"));
        hfsbi_json_put_quoted(&b->json, text);
        hfsb_buf_append_byte(&b->json, '}');
        fits = hfsbi_mcp_end_block(b, mark, HFSBI_MCP_BLOCKS);
    }
    if (!fits)
        hfsbi_mcp_add_note(b, "a resource", text.len,
                           "a result may have 8 MiB; ask for less");
}

/* ---- text for a model ---- */

/* As much of text as may be shown, in whole lines when there are some. */
static hfsb_str hfsbi_mcp_cut(hfsb_str text, size_t chars) {
    size_t end = hfsb_utf8_offset(text, chars), at = end;
    if (end == text.len) return text;
    while (at > 0 && text.ptr[at - 1] != '\n') at--;
    return hfsb_str_slice(text, 0, at > 0 ? at : end);
}

/* As much of the end of it, likewise unless its lines are too long. */
static hfsb_str hfsbi_mcp_cut_front(hfsb_str text, size_t chars) {
    size_t all = hfsb_utf8_count(text), from, at, most;
    if (all <= chars) return text;
    from = at = hfsb_utf8_offset(text, all - chars);
    most = from + (text.len - from) / 2;
    while (at < most && text.ptr[at - 1] != '\n') at++;
    return hfsb_str_slice(text, at < most ? at : from, text.len);
}

/* A line in brackets behind what is there. */
static void hfsbi_mcp_put_footer(hfsb_buf *sink, const char *format, ...)
    HFSBI_PRINTF(2, 3);

static void hfsbi_mcp_put_footer(hfsb_buf *sink, const char *format, ...) {
    hfsb_buf *b = sink;
    va_list   ap;
    if (sink->status == HFSB_OK && b->len && b->ptr[b->len - 1] != '\n')
        hfsb_buf_append_byte(sink, '\n');
    if (sink->status != HFSB_OK) return;
    va_start(ap, format);
    sink->status = hfsbi_buf_vprintf(b, format, ap);
    va_end(ap);
}

/* ---- read: which lines these are ---- */

/* The number before the tab at the start of a line of read's output; 0: this
   is a note of ours. */
static unsigned long long hfsbi_mcp_line_number(hfsb_str line) {
    unsigned long long n = 0;
    size_t             i;
    for (i = 0; i < line.len && i < 19; i++) {
        if (line.ptr[i] == '\t') return n;
        if (line.ptr[i] < '0' || line.ptr[i] > '9') return 0;
        n = n * 10 + (unsigned long long)(line.ptr[i] - '0');
    }
    return 0;
}

/* The number of the last line that has one. */
static unsigned long long hfsbi_mcp_last_number(hfsb_str text) {
    while (text.len) {
        size_t             end = text.len, at;
        unsigned long long n;
        if (text.ptr[end - 1] == '\n') end--;
        for (at = end; at > 0 && text.ptr[at - 1] != '\n';) at--;
        n = hfsbi_mcp_line_number(hfsb_str_slice(text, at, end));
        if (n) return n;
        text = hfsb_str_slice(text, 0, at);
    }
    return 0;
}

/* shown: what of the output is shown; all of it unless it was cut. */
static void hfsbi_mcp_read_footer(hfsb_buf *sink, hfsb_str shown, bool cut,
                                  const hfsb_json_value *extra) {
    unsigned long long first = hfsbi_mcp_line_number(shown);
    unsigned long long last = hfsbi_mcp_last_number(shown);
    unsigned long long next =
        hfsb_json_uint(hfsb_json_get(extra, "next_offset"), 0);
    const hfsb_json_value *lines = hfsb_json_get(extra, "total_lines");
    unsigned long long     total = hfsb_json_uint(lines, 0);
    char                   of[40] = "";
    if (lines) snprintf(of, sizeof of, " of %llu", total);
    if (!shown.len && lines)
        hfsbi_mcp_put_footer(sink,
                             total ? "[past the end: the file has %llu "
                                     "lines]"
                                   : "[the file is empty: %llu lines]",
                             total);
    else if (first && (cut || next))
        hfsbi_mcp_put_footer(sink,
                             "[lines %llu-%llu%s; read on with offset=%llu]",
                             first, last, of, last + 1);
    else if (first > 1)
        hfsbi_mcp_put_footer(sink, "[lines %llu-%llu%s]", first, last, of);
}

/* ---- bash_output: where to go on ---- */

/* The offset behind the part of the output that is shown. next_offset belongs
   to the end of the log in it; behind that may be a line that is not finished
   and a note. `offset` is that of its beginning; who does not tell it has the
   log end at the last line end. */
static unsigned long long hfsbi_mcp_next_offset(hfsb_str               output,
                                                hfsb_str               shown,
                                                const hfsb_json_value *extra) {
    unsigned long long next =
        hfsb_json_uint(hfsb_json_get(extra, "next_offset"), 0);
    const hfsb_json_value *offset = hfsb_json_get(extra, "offset");
    unsigned long long     from = hfsb_json_uint(offset, 0);
    size_t                 end = output.len;
    if (shown.len == output.len) return next;
    if (!offset) {
        while (end > 0 && output.ptr[end - 1] != '\n') end--;
        from = next > end ? next - end : 0;
    }
    return from + shown.len < next ? from + shown.len : next;
}

static void hfsbi_mcp_output_footer(hfsb_buf *sink, unsigned long long next,
                                    const hfsb_json_value *extra) {
    const hfsb_json_value *code = hfsb_json_get(extra, "exit_code");
    const hfsb_json_value *by = hfsb_json_get(extra, "signal");
    char                   state[64] = "ended";
    if (hfsb_json_bool(hfsb_json_get(extra, "running"), false))
        snprintf(state, sizeof state, "running");
    else if (hfsb_json_bool(hfsb_json_get(extra, "timed_out"), false))
        snprintf(state, sizeof state, "ended by its timeout");
    else if (hfsb_json_type_of(code) == HFSB_JSON_INT)
        snprintf(state, sizeof state, "ended, exit code %lld",
                 hfsb_json_int(code, 0));
    else if (hfsb_json_type_of(by) == HFSB_JSON_INT)
        snprintf(state, sizeof state, "ended by signal %lld",
                 hfsb_json_int(by, 0));
    hfsbi_mcp_put_footer(sink, "[%s; next_offset=%llu]", state, next);
}

/* ---- whatever leaves processes behind ---- */

static void hfsbi_mcp_left_footer(hfsb_buf              *sink,
                                  const hfsb_json_value *extra) {
    const hfsb_json_value *left = hfsb_json_get(extra, "left_running");
    hfsb_json_iter         it = hfsb_json_begin(left);
    size_t                 n = 0;
    while (hfsb_json_next(&it)) {
        hfsb_str command =
            hfsb_json_str(hfsb_json_get(it.value, "command"), HFSB_LIT("?"));
        if (++n > HFSBI_MCP_LEFT) break;
        if (n == 1) hfsbi_mcp_put_footer(sink, "[left running: ");
        hfsb_buf_printf(sink, "%s%lld (", n > 1 ? ", " : "",
                        hfsb_json_int(hfsb_json_get(it.value, "pid"), 0));
        hfsb_buf_append(
            sink, hfsb_str_slice(command, 0, hfsb_utf8_offset(command, 80)));
        hfsb_buf_append_byte(sink, ')');
    }
    if (n > HFSBI_MCP_LEFT)
        hfsb_buf_printf(sink, " and %zu more",
                        hfsb_json_count(left) - HFSBI_MCP_LEFT);
    if (n) hfsb_buf_append_byte(sink, ']');
}

/* ---- results ---- */

/* The output, as much as may be, and what the model must know besides. */
static void hfsbi_mcp_put_output(hfsb_str tool, hfsb_str output,
                                 const hfsb_json_value *extra,
                                 hfsb_buf              *sink) {
    hfsb_str shown = hfsbi_mcp_cut(output, HFSBI_MCP_TEXT);
    bool     cut = shown.len < output.len;
    hfsb_buf_append(sink, shown.len ? shown : HFSB_LIT("(no output)"));
    if (hfsb_str_equal(tool, HFSB_LIT("read")))
        hfsbi_mcp_read_footer(sink, shown, cut, extra);
    else if (hfsb_str_equal(tool, HFSB_LIT("bash_output")))
        hfsbi_mcp_output_footer(
            sink, hfsbi_mcp_next_offset(output, shown, extra), extra);
    else if (cut)
        hfsbi_mcp_put_footer(sink,
                             "[cut: the first %zu of %zu characters; ask for "
                             "less]",
                             hfsb_utf8_count(shown), hfsb_utf8_count(output));
    hfsbi_mcp_left_footer(sink, extra);
}

/* The line in text that tells where the whole output is, if there is one. */
static hfsb_str hfsbi_mcp_saved_line(hfsb_str text) {
    size_t at = hfsb_str_find(text, HFSB_LIT("\nFull output saved to "));
    if (at == HFSB_NPOS) return HFSB_LIT("");
    text = hfsb_str_slice(text, at + 1, text.len);
    return hfsb_str_slice(text, 0, hfsb_str_find_byte(text, '\n'));
}

/* The beginning and, since it tells most of what failed, more of the end. */
static void hfsbi_mcp_put_ends(hfsb_buf *sink, hfsb_str text, size_t chars) {
    hfsb_str head = hfsbi_mcp_cut(text, chars / 3), tail, saved;
    if (hfsb_utf8_count(text) <= chars) {
        hfsb_buf_append(sink, text);
        return;
    }
    tail = hfsb_str_slice(text, head.len, text.len);
    tail = hfsbi_mcp_cut_front(tail, chars - chars / 3);
    text = hfsb_str_slice(text, head.len, text.len - tail.len);
    saved = hfsbi_mcp_saved_line(text);
    hfsb_buf_append(sink, head);
    hfsbi_mcp_put_footer(sink, "[... %zu characters left out here ...]\n",
                         hfsb_utf8_count(text));
    hfsb_buf_append(sink, hfsbi_mcp_cut(saved, chars / 3));
    if (saved.len) hfsb_buf_append_byte(sink, '\n');
    hfsb_buf_append(sink, tail);
}

/* As hfsb_tool_result_text() puts it, but not as long. */
static void hfsbi_mcp_put_failure(const hfsb_tool_result *result,
                                  hfsb_buf               *sink) {
    hfsb_str output = hfsb_buf_str(&result->output);
    hfsb_str error =
        hfsbi_mcp_cut(hfsb_buf_str(&result->error), HFSBI_MCP_ERROR);
    hfsbi_mcp_put_ends(sink, output,
                       HFSBI_MCP_FAILURE - hfsb_utf8_count(error));
    if (output.len) hfsb_buf_append(sink, HFSB_LIT("\n\n"));
    hfsb_buf_append(sink, HFSB_LIT("ERROR: "));
    hfsb_buf_append(sink, error);
    hfsbi_mcp_left_footer(sink, result->fields.root);
}

/* True when the result is an image, which is then shown. */
static bool hfsbi_mcp_show_image(const hfsb_tool_result *result,
                                 hfsbi_mcp_blocks       *out) {
    const hfsb_json_value *fields = result->fields.root;
    const hfsb_json_value *data = hfsb_json_get(fields, "data");
    const hfsb_json_value *type = hfsb_json_get(fields, "mime_type");
    if (!result->success || hfsb_json_type_of(data) != HFSB_JSON_STRING ||
        hfsb_json_type_of(type) != HFSB_JSON_STRING)
        return false;
    if (result->output.len)
        hfsbi_mcp_add_text(
            out, hfsbi_mcp_cut(hfsb_buf_str(&result->output), HFSBI_MCP_TEXT));
    hfsbi_mcp_add_data(out, "image", hfsb_json_str(type, HFSB_LIT("")),
                       hfsb_json_str(data, HFSB_LIT("")));
    return true;
}

HFSBI_FN void hfsbi_mcp_show(hfsb_str tool, const hfsb_tool_result *result,
                             hfsbi_mcp_blocks *out) {
    hfsb_buf text = HFSB_INIT;
    size_t   mark;
    text.alloc = out->json.alloc;
    mark = text.len;
    if (!result->success) {
        out->is_error = true;
        hfsbi_mcp_put_failure(result, &text);
    } else if (!hfsbi_mcp_show_image(result, out)) {
        hfsbi_mcp_put_output(tool, hfsb_buf_str(&result->output),
                             result->fields.root, &text);
    }
    if (hfsb_buf_finish(&text, mark) != HFSB_OK) out->status = HFSB_NOMEM;
    else if (text.len) hfsbi_mcp_add_text(out, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

HFSBI_FN void hfsbi_mcp_show_running(hfsb_str job, long long seconds,
                                     const hfsb_tool_result *so_far,
                                     hfsbi_mcp_blocks       *out) {
    hfsb_str output = hfsb_buf_str(&so_far->output), shown;
    hfsb_buf text = HFSB_INIT;
    size_t   mark;
    text.alloc = out->json.alloc;
    mark = text.len;
    if (!so_far->success) output = HFSB_LIT("");
    shown = hfsbi_mcp_cut(output, HFSBI_MCP_TEXT);
    hfsb_buf_printf(&text, "Still running after %lld s as job ", seconds);
    hfsb_buf_append(&text, job);
    hfsb_buf_append(&text, shown.len ? HFSB_LIT(". Output so far:\n")
                                     : HFSB_LIT(". No output so far.\n"));
    hfsb_buf_append(&text, shown);
    hfsbi_mcp_put_footer(&text, "[poll with bash_output id=");
    hfsb_buf_append(&text, job);
    hfsb_buf_printf(&text, " offset=%llu wait_ms=45000; end it with kill id=",
                    hfsbi_mcp_next_offset(output, shown, so_far->fields.root));
    hfsb_buf_append(&text, job);
    hfsb_buf_append_byte(&text, ']');
    if (hfsb_buf_finish(&text, mark) != HFSB_OK) out->status = HFSB_NOMEM;
    else hfsbi_mcp_add_text(out, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

HFSBI_FN hfsb_str hfsbi_mcp_last_line(hfsb_str text) {
    size_t end = text.len;
    while (end > 0) {
        size_t   at = end;
        hfsb_str line;
        while (at > 0 && text.ptr[at - 1] != '\n') at--;
        line = hfsbi_trim(hfsb_str_slice(text, at, end));
        if (line.len)
            return hfsb_str_slice(line, 0,
                                  hfsb_utf8_offset(line, HFSBI_MCP_LINE));
        end = at > 0 ? at - 1 : 0;
    }
    return HFSB_LIT("");
}
