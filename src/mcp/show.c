/* show.c - the result of a tool as content blocks of MCP.

   A model sees text and images, nothing else. So the facts of a result that it
   needs for its next step (line numbers, offsets, exit codes, job ids) become
   a line in brackets at the end of the text:

       1\tfirst line
       2\tsecond line
       [lines 1-2 of 9; read on with offset=3]

   Hosts silently cut long results, at 8,000 to 50,000 characters, some by
   lines. So a result stays below the option max_result, and is cut here: lines
   of a file, entries of a folder and the log of a job are cut at the end of a
   line, with the offset to continue with. The output of a command loses its
   middle, because its end matters most, whether it failed or not:

       HEAD
       ... (893 of 9,893 chars omitted, showing first 3,000 + last 6,000) ...
       Full output saved to /tmp/bash_output_1.txt - use the read tool ...
       TAIL

       ERROR: Exit code 1
       [full output saved to /tmp/bash_output_1.txt]

   The last line names the file again, for hosts that still cut the result and
   keep its end. */
#include "mcp_private.h"

enum {
    HFSBI_MCP_PER_LINE = 10, /* bytes for each of its lines */
    HFSBI_MCP_MARGIN = 400,  /* bytes for a marker and footers of the cut */
    HFSBI_MCP_IMAGE = 5 * 1024 * 1024, /* bytes of base64 */
    /* Bytes of all blocks: clients close the connection at 10 MiB. */
    HFSBI_MCP_BLOCKS = 8 * 1024 * 1024,
    HFSBI_MCP_NOTES = 64 * 1024, /* more bytes for notes about lost blocks */
    HFSBI_MCP_ERROR = 4000, /* bytes of the reason of a failure, of notes */
    /* A truncated output has this many characters before its marker, and after
       it, whatever server it comes from. */
    HFSBI_MCP_SURE_HEAD = 6250,
    HFSBI_MCP_SURE_TAIL = 18750,
    HFSBI_MCP_LEFT = 8,  /* processes that are named */
    HFSBI_MCP_LINE = 120 /* characters of a line for progress */
};

/* ---- blocks ---- */

static size_t hfsbi_mcp_begin_block(hfsbi_mcp_blocks *b, const char *type) {
    size_t mark = b->json.len;
    if (b->json.len) hfsb_buf_append_byte(&b->json, ',');
    hfsb_buf_printf(&b->json, "{\"type\":\"%s\",", type);
    return mark;
}

/* Ends a block; false, and the block removed, when it does not fit. */
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

/* Adds a note instead of a block that is too large. */
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

/* ---- cutting ---- */

/* The room for a text. */
typedef struct hfsbi_mcp_room {
    size_t bytes, lines;
} hfsbi_mcp_room;

static size_t hfsbi_mcp_max(const hfsbi_mcp_blocks *b) {
    return b->max ? b->max : (size_t)HFSBI_MCP_RESULT;
}

/* The room for the reason of a failure, and for notes. */
static hfsbi_mcp_room hfsbi_mcp_few(const hfsbi_mcp_blocks *b) {
    hfsbi_mcp_room room = {HFSBI_MCP_ERROR, HFSBI_MCP_ERROR};
    if (room.bytes > hfsbi_mcp_max(b) / 4) room.bytes = hfsbi_mcp_max(b) / 4;
    return room;
}

/* The room for an output that `others` bytes of text follow. */
static hfsbi_mcp_room hfsbi_mcp_room_for(const hfsbi_mcp_blocks *b,
                                         size_t                  others) {
    size_t         max = hfsbi_mcp_max(b);
    hfsbi_mcp_room room;
    others += HFSBI_MCP_MARGIN;
    room.bytes = max / 4 + others < max ? max - others : max / 4;
    room.lines = room.bytes / HFSBI_MCP_PER_LINE;
    return room;
}

/* The offset up to which text fits; it is between characters. */
static size_t hfsbi_mcp_fit(hfsb_str text, hfsbi_mcp_room room) {
    hfsb_str part = hfsb_str_slice(text, 0, room.bytes);
    size_t   at = 0, line;
    for (; room.lines > 0; room.lines--) {
        line = hfsb_str_find_byte(hfsb_str_slice(part, at, part.len), '\n');
        if (line == HFSB_NPOS) return hfsbi_utf8_floor(text, part.len);
        at += line + 1;
    }
    return at;
}

/* The start of text that fits, in whole lines if there are any. */
static hfsb_str hfsbi_mcp_cut(hfsb_str text, hfsbi_mcp_room room) {
    size_t end = hfsbi_mcp_fit(text, room), at = end;
    if (end == text.len) return text;
    while (at > 0 && text.ptr[at - 1] != '\n') at--;
    return hfsb_str_slice(text, 0, at > 0 ? at : end);
}

/* The same in whole lines unless that costs over half. */
static hfsb_str hfsbi_mcp_cut_end(hfsb_str text, hfsbi_mcp_room room) {
    hfsb_str whole = hfsbi_mcp_cut(text, room);
    size_t   end = hfsbi_mcp_fit(text, room);
    return whole.len < end / 2 ? hfsb_str_slice(text, 0, end) : whole;
}

/* The end of text that fits, in whole lines unless that costs over half. */
static hfsb_str hfsbi_mcp_cut_start(hfsb_str text, hfsbi_mcp_room room) {
    size_t from = text.len > room.bytes ? text.len - room.bytes : 0;
    size_t at = text.len, most;
    from = hfsbi_utf8_ceil(text, from);
    while (at > from && room.lines > 0) /* a line feed at the end is not one */
        if (text.ptr[--at] == '\n' && at + 1 < text.len) room.lines--;
    if (room.lines == 0) return hfsb_str_slice(text, at + 1, text.len);
    if (from == 0) return text;
    most = from + (text.len - from) / 2;
    for (at = from; at < most && text.ptr[at - 1] != '\n';) at++;
    return hfsb_str_slice(text, at < most ? at : from, text.len);
}

/* ---- facts ---- */

#define HFSBI_MCP_ABSENT (~0ULL)

typedef enum hfsbi_mcp_job_state {
    HFSBI_MCP_JOB_ENDED, /* how is not known */
    HFSBI_MCP_JOB_RUNS,
    HFSBI_MCP_JOB_TIMED_OUT,
    HFSBI_MCP_JOB_EXITED,
    HFSBI_MCP_JOB_SIGNALLED
} hfsbi_mcp_job_state;

/* How a command ended, if it has. */
typedef struct hfsbi_mcp_job_end {
    hfsbi_mcp_job_state state;
    long long           value;   /* exit code or signal */
    hfsb_str            signal;  /* its name, or "" */
    hfsb_str            meaning; /* of an exit code that is an answer, or "" */
} hfsbi_mcp_job_end;

/* The lines of a file that a result of read contains. */
typedef struct hfsbi_mcp_lines {
    unsigned long long first, last; /* 0: not known */
    unsigned long long total;       /* or HFSBI_MCP_ABSENT */
} hfsbi_mcp_lines;

/* The facts of a result that a model needs. All values belong to the
   result. */
typedef struct hfsbi_mcp_facts {
    hfsbi_mcp_lines    lines;
    unsigned long long offset;      /* of bash_output, or HFSBI_MCP_ABSENT */
    unsigned long long next_offset; /* of read too; 0: none */
    bool               follows_job; /* of bash_output, bash_input: it is the
                                       output of one job */
    hfsbi_mcp_job_end  job;
    const hfsb_json_value *left; /* processes left running, or NULL */
    hfsb_str               image, mime_type; /* base64; "": not an image */
    hfsb_str               notes; /* those that are not in the output, or "" */
    hfsb_str               tag;   /* of the file that was read, or "" */
    hfsb_str spill_path;  /* of the file with the whole output, or "" */
    size_t   spill_bytes; /* the file holds only these; 0: all */
    size_t   total_chars; /* of an output that was truncated; 0: whole */
    hfsb_str id;          /* of the job, or "" */
} hfsbi_mcp_facts;

static void hfsbi_mcp_read_job_end(const hfsb_json_value *x,
                                   hfsbi_mcp_job_end     *job) {
    const hfsb_json_value *code = hfsb_json_get(x, "exit_code");
    const hfsb_json_value *by = hfsb_json_get(x, "signal");
    if (hfsb_json_bool(hfsb_json_get(x, "running"), false))
        job->state = HFSBI_MCP_JOB_RUNS;
    else if (hfsb_json_bool(hfsb_json_get(x, "timed_out"), false))
        job->state = HFSBI_MCP_JOB_TIMED_OUT;
    else if (hfsb_json_type_of(code) == HFSB_JSON_INT)
        job->state = HFSBI_MCP_JOB_EXITED;
    else if (hfsb_json_type_of(by) == HFSB_JSON_INT)
        job->state = HFSBI_MCP_JOB_SIGNALLED;
    job->value =
        hfsb_json_int(job->state == HFSBI_MCP_JOB_SIGNALLED ? by : code, 0);
    job->signal = hfsbi_json_get_str(x, "signal_name");
    job->meaning = hfsbi_json_get_str(x, "exit_meaning");
}

static void hfsbi_mcp_output_facts(const hfsb_json_value *x,
                                   hfsbi_mcp_facts       *f) {
    f->notes = hfsbi_json_get_str(x, "notes");
    f->spill_path = hfsbi_json_get_str(x, "spill_path");
    f->spill_bytes =
        (size_t)hfsb_json_uint(hfsb_json_get(x, "spill_bytes"), 0);
    if (hfsb_json_bool(hfsb_json_get(x, "truncated"), false))
        f->total_chars =
            (size_t)hfsb_json_uint(hfsb_json_get(x, "total_chars"), 0);
    f->id = hfsbi_json_get_str(x, "id");
}

/* Reads the fields of a result. */
static void hfsbi_mcp_read_facts(const hfsb_tool_result *result,
                                 hfsbi_mcp_facts        *f) {
    const hfsb_json_value *x = result->fields.root;
    memset(f, 0, sizeof *f);
    f->lines.total =
        hfsb_json_uint(hfsb_json_get(x, "total_lines"), HFSBI_MCP_ABSENT);
    f->lines.first = hfsb_json_uint(hfsb_json_get(x, "first_line"), 0);
    f->lines.last = hfsb_json_uint(hfsb_json_get(x, "last_line"), 0);
    f->offset = hfsb_json_uint(hfsb_json_get(x, "offset"), HFSBI_MCP_ABSENT);
    f->next_offset = hfsb_json_uint(hfsb_json_get(x, "next_offset"), 0);
    f->image = hfsbi_json_get_str(x, "data");
    f->mime_type = hfsbi_json_get_str(x, "mime_type");
    if (!f->mime_type.len) f->image = HFSB_LIT("");
    hfsbi_mcp_output_facts(x, f);
    f->tag = hfsbi_json_get_str(x, "tag");
    f->follows_job = hfsb_json_get(x, "running") != NULL;
    hfsbi_mcp_read_job_end(x, &f->job);
    f->left = hfsb_json_get(x, "left_running");
}

/* ---- footers ---- */

/* Appends text that starts a line of its own. */
static void hfsbi_mcp_put_footer(hfsb_buf *out, const char *format, ...)
    HFSBI_PRINTF(2, 3);
static void hfsbi_mcp_put_footer(hfsb_buf *out, const char *format, ...) {
    va_list ap;
    if (out->len && out->ptr[out->len - 1] != '\n')
        hfsb_buf_append_byte(out, '\n');
    va_start(ap, format);
    (void)hfsbi_buf_vprintf(out, format, ap);
    va_end(ap);
}

/* Appends text that begins a line of its own. */
static void hfsbi_mcp_put_lines(hfsb_buf *out, hfsb_str text) {
    if (text.len) hfsbi_mcp_put_footer(out, "%s", "");
    hfsb_buf_append(out, text);
}

/* A text that was cut. */
static void hfsbi_mcp_cut_footer(hfsb_buf *out, hfsb_str output,
                                 hfsb_str shown) {
    if (shown.len < output.len)
        hfsbi_mcp_put_footer(out,
                             "[cut: the first %zu of %zu characters; ask for "
                             "less]",
                             hfsb_utf8_count(shown), hfsb_utf8_count(output));
}

/* The number of the last line shown. A text that was cut ends with a whole
   line, unless its first line is too long. */
static unsigned long long hfsbi_mcp_last_shown(hfsb_str shown, bool cut,
                                               const hfsbi_mcp_facts *f) {
    unsigned long long lines = hfsb_str_count_byte(shown, '\n');
    unsigned long long last = f->lines.first + (lines ? lines - 1 : 0);
    return cut && last < f->lines.last ? last : f->lines.last;
}

/* Which lines of a file are shown. If a server did not report that, the footer
   is the one of other tools. */
static void hfsbi_mcp_read_footer(hfsb_buf *out, hfsb_str output,
                                  hfsb_str shown, const hfsbi_mcp_facts *f) {
    bool               cut = shown.len < output.len;
    unsigned long long last = hfsbi_mcp_last_shown(shown, cut, f);
    bool               counted = f->lines.total != HFSBI_MCP_ABSENT;
    char               of[40] = "";
    if (counted) snprintf(of, sizeof of, " of %llu", f->lines.total);
    if (!shown.len && counted)
        hfsbi_mcp_put_footer(out,
                             f->lines.total ? "[past the end: the file has "
                                              "%llu lines]"
                                            : "[the file is empty: %llu "
                                              "lines]",
                             f->lines.total);
    else if (!f->lines.first) hfsbi_mcp_cut_footer(out, output, shown);
    else if (cut || f->next_offset)
        hfsbi_mcp_put_footer(out,
                             "[lines %llu-%llu%s; read on with offset=%llu]",
                             f->lines.first, last, of, last + 1);
    else if (f->lines.first > 1)
        hfsbi_mcp_put_footer(out, "[lines %llu-%llu%s]", f->lines.first, last,
                             of);
}

/* The offset in a job's log that follows the shown part. next_offset belongs
   to the end of the log in `output`; an unfinished line and a note may follow
   there. A server that reports no `offset` ends the log at the last line. */
static unsigned long long hfsbi_mcp_next_offset(hfsb_str               output,
                                                hfsb_str               shown,
                                                const hfsbi_mcp_facts *f) {
    unsigned long long from = f->offset, next = f->next_offset;
    size_t             end = output.len;
    if (shown.len == output.len) return next;
    if (from == HFSBI_MCP_ABSENT) {
        while (end > 0 && output.ptr[end - 1] != '\n') end--;
        from = next > end ? next - end : 0;
    }
    return from + shown.len < next ? from + shown.len : next;
}

/* The state of a job. */
static void hfsbi_mcp_job_footer(hfsb_buf *out, unsigned long long next,
                                 const hfsbi_mcp_facts *f) {
    char state[64] = "ended";
    switch (f->job.state) {
    case HFSBI_MCP_JOB_ENDED: break;
    case HFSBI_MCP_JOB_RUNS: snprintf(state, sizeof state, "running"); break;
    case HFSBI_MCP_JOB_TIMED_OUT:
        snprintf(state, sizeof state, "ended by its timeout");
        break;
    case HFSBI_MCP_JOB_EXITED:
        snprintf(state, sizeof state, "ended, exit code %lld", f->job.value);
        break;
    case HFSBI_MCP_JOB_SIGNALLED:
        if (f->job.signal.len)
            snprintf(state, sizeof state, "killed by %.*s",
                     (int)f->job.signal.len, f->job.signal.ptr);
        else
            snprintf(state, sizeof state, "ended by signal %lld",
                     f->job.value);
        break;
    }
    hfsbi_mcp_put_footer(out, "[%s; next_offset=%llu]", state, next);
}

/* Processes that a command left running. */
static void hfsbi_mcp_left_footer(hfsb_buf *out, const hfsb_json_value *left) {
    hfsb_json_iter it = hfsb_json_begin(left);
    size_t         i, count = hfsb_json_count(left);
    if (!count) return;
    hfsbi_mcp_put_footer(out, "[left running: ");
    for (i = 0; i < HFSBI_MCP_LEFT && hfsb_json_next(&it); i++) {
        hfsb_str command =
            hfsb_json_str(hfsb_json_get(it.value, "command"), HFSB_LIT("?"));
        hfsb_buf_printf(out, "%s%lld (", i ? ", " : "",
                        hfsb_json_int(hfsb_json_get(it.value, "pid"), 0));
        hfsb_buf_append(
            out, hfsb_str_slice(command, 0, hfsb_utf8_offset(command, 80)));
        hfsb_buf_append_byte(out, ')');
    }
    if (i < count) hfsb_buf_printf(out, " and %zu more", count - i);
    hfsb_buf_append_byte(out, ']');
}

/* The file with the whole output. */
static void hfsbi_mcp_saved_footer(hfsb_buf *out, const hfsbi_mcp_facts *f) {
    if (!f->spill_path.len) return;
    if (f->spill_bytes)
        hfsbi_mcp_put_footer(out, "[first %zu bytes of output saved to ",
                             f->spill_bytes);
    else hfsbi_mcp_put_footer(out, "[full output saved to ");
    hfsb_buf_append(out, f->spill_path);
    hfsb_buf_append_byte(out, ']');
}

/* ---- results ---- */

/* Appends the output of a command, or if it does not fit a quarter of the room
   from its start and the rest from its end. */
static void hfsbi_mcp_put_ends(hfsb_buf *out, hfsb_str text,
                               hfsbi_mcp_room room, const hfsbi_mcp_facts *f) {
    hfsb_text_limit shown = HFSB_INIT;
    hfsbi_mcp_room  front;
    hfsb_str        head, tail;
    size_t          total;
    if (hfsbi_mcp_fit(text, room) == text.len) {
        hfsb_buf_append(out, text);
        return;
    }
    front.bytes = room.bytes / 4;
    front.lines = room.lines / 4;
    room.bytes -= front.bytes;
    room.lines -= front.lines;
    if (f->total_chars && front.bytes > HFSBI_MCP_SURE_HEAD)
        front.bytes = HFSBI_MCP_SURE_HEAD;
    if (f->total_chars && room.bytes > HFSBI_MCP_SURE_TAIL)
        room.bytes = HFSBI_MCP_SURE_TAIL;
    head = hfsbi_mcp_cut_end(text, front);
    tail = hfsbi_mcp_cut_start(hfsb_str_slice(text, head.len, text.len), room);
    shown.head = hfsb_utf8_count(head);
    shown.chars = shown.head + hfsb_utf8_count(tail);
    total = f->total_chars ? f->total_chars : hfsb_utf8_count(text);
    if (total < shown.chars) total = shown.chars; /* of a confused server */
    hfsb_buf_append(out, head);
    hfsbi_text_put_marker(out, &shown, total, f->spill_path, f->spill_bytes);
    if (!f->spill_path.len && f->id.len) {
        hfsb_buf_append(out, HFSB_LIT("[read on with bash_output id="));
        hfsb_buf_append(out, f->id);
        hfsb_buf_printf(out, " offset=%zu]\n", head.len);
    }
    hfsb_buf_append(out, tail);
}

/* Appends the output and the footer of its tool. A page of a job's output is
   complete, whatever notes there are: the next one continues after it. */
static void hfsbi_mcp_put_output(hfsb_str tool, hfsb_str output,
                                 hfsbi_mcp_room room, const hfsbi_mcp_facts *f,
                                 hfsb_buf *out) {
    hfsb_str shown = hfsbi_mcp_cut(output, room);
    hfsb_str notes = f->notes;
    if (!output.len) hfsb_buf_append(out, HFSB_LIT("(no output)"));
    if (hfsb_str_equal(tool, HFSB_LIT("bash"))) {
        hfsbi_mcp_put_ends(out, output, room, f);
        hfsbi_mcp_put_lines(out, f->notes);
        return;
    }
    hfsb_buf_append(out, shown);
    if (f->follows_job) {
        room.bytes -= shown.len;
        notes = hfsbi_mcp_cut(notes, room);
    }
    hfsbi_mcp_put_lines(out, notes);
    if (hfsb_str_equal(tool, HFSB_LIT("read")))
        hfsbi_mcp_read_footer(out, output, shown, f);
    else if (f->follows_job)
        hfsbi_mcp_job_footer(out, hfsbi_mcp_next_offset(output, shown, f), f);
    else hfsbi_mcp_cut_footer(out, output, shown);
}

/* Appends the text of a result: the output, and lines that are never cut. */
static void hfsbi_mcp_put_result_text(hfsb_str                tool,
                                      const hfsb_tool_result *result,
                                      const hfsbi_mcp_blocks *b,
                                      const hfsbi_mcp_facts *f, bool failed,
                                      hfsb_buf *out) {
    hfsb_str       output = hfsb_buf_str(&result->output);
    hfsb_buf       end = HFSB_INIT;
    hfsbi_mcp_room room;
    end.alloc = out->alloc;
    if (failed) {
        hfsbi_mcp_put_footer(&end, "%s", "ERROR: ");
        hfsb_buf_append(&end, hfsbi_mcp_cut(hfsb_buf_str(&result->error),
                                            hfsbi_mcp_few(b)));
        if (f->job.state == HFSBI_MCP_JOB_SIGNALLED && f->job.signal.len)
            hfsb_buf_printf(&end, " (killed by %.*s)", (int)f->job.signal.len,
                            f->job.signal.ptr);
    } else if (f->job.meaning.len) {
        hfsbi_mcp_put_footer(&end, "[exit code %lld: ", f->job.value);
        hfsb_buf_append(&end, f->job.meaning);
        hfsb_buf_append_byte(&end, ']');
    }
    if (!failed && b->tags && f->tag.len &&
        hfsb_str_equal(tool, HFSB_LIT("read")))
        hfsbi_mcp_put_footer(&end, "[tag %.*s]", (int)f->tag.len, f->tag.ptr);
    hfsbi_mcp_left_footer(&end, f->left);
    hfsbi_mcp_saved_footer(&end, f);
    room = hfsbi_mcp_room_for(b, end.len + f->spill_path.len + f->id.len +
                                     (f->follows_job ? 0 : f->notes.len));
    if (!failed) hfsbi_mcp_put_output(tool, output, room, f, out);
    else hfsbi_mcp_put_ends(out, output, room, f);
    if (failed && output.len) hfsb_buf_append(out, HFSB_LIT("\n\n"));
    hfsbi_mcp_put_lines(out, hfsb_buf_str(&end));
    if (end.status != HFSB_OK) out->status = end.status;
    hfsb_buf_free(&end);
}

/* Adds the text as a block and frees it. */
static void hfsbi_mcp_take_text(hfsbi_mcp_blocks *b, hfsb_buf *text) {
    if (text->status != HFSB_OK) b->status = HFSB_NOMEM;
    else if (text->len) hfsbi_mcp_add_text(b, hfsb_buf_str(text));
    hfsb_buf_free(text);
}

HFSBI_FN void hfsbi_mcp_show(hfsb_str tool, const hfsb_tool_result *result,
                             hfsbi_mcp_blocks *out) {
    hfsb_str        output = hfsb_buf_str(&result->output);
    hfsb_buf        text = HFSB_INIT;
    hfsbi_mcp_facts f;
    bool            failed;
    text.alloc = out->json.alloc;
    hfsbi_mcp_read_facts(result, &f);
    f.notes = hfsbi_mcp_cut(f.notes, hfsbi_mcp_few(out));
    failed = !result->success && !f.job.meaning.len;
    if (failed) out->is_error = true;
    if (!failed && f.image.len)
        hfsb_buf_append(&text,
                        hfsbi_mcp_cut(output, hfsbi_mcp_room_for(out, 0)));
    else hfsbi_mcp_put_result_text(tool, result, out, &f, failed, &text);
    hfsbi_mcp_take_text(out, &text);
    if (!failed && f.image.len)
        hfsbi_mcp_add_data(out, "image", f.mime_type, f.image);
}

HFSBI_FN void hfsbi_mcp_show_running(hfsb_str job, long long seconds,
                                     const hfsb_tool_result *so_far,
                                     hfsbi_mcp_blocks       *out) {
    hfsb_str        output = HFSB_LIT(""), shown;
    hfsb_buf        text = HFSB_INIT;
    hfsbi_mcp_facts f;
    text.alloc = out->json.alloc;
    hfsbi_mcp_read_facts(so_far, &f);
    if (so_far->success) output = hfsb_buf_str(&so_far->output);
    shown = hfsbi_mcp_cut(output, hfsbi_mcp_room_for(out, 3 * job.len));
    hfsb_buf_printf(&text, "Still running after %lld s as job ", seconds);
    hfsb_buf_append(&text, job);
    hfsb_buf_append(&text, shown.len ? HFSB_LIT(". Output so far:\n")
                                     : HFSB_LIT(". No output so far.\n"));
    hfsb_buf_append(&text, shown);
    hfsbi_mcp_put_lines(&text, hfsbi_mcp_cut(f.notes, hfsbi_mcp_few(out)));
    hfsbi_mcp_put_footer(&text, "[poll with bash_output id=");
    hfsb_buf_append(&text, job);
    hfsb_buf_printf(&text, " offset=%llu wait_ms=45000; end it with kill id=",
                    hfsbi_mcp_next_offset(output, shown, &f));
    hfsb_buf_append(&text, job);
    hfsb_buf_append_byte(&text, ']');
    hfsbi_mcp_take_text(out, &text);
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
