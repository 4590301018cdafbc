/* read.c - the tool read: numbered lines of a file, or an image.

   A text file passes through a line reader in blocks. Blocks are counted and
   hashed, then cut into lines; a line that crosses blocks is collected in
   `text`, up to the number of characters that is shown.

       file --> block --> count, sha256
                  |
                  +-----> skip to `first` --> lines --> output, `last` at most

   A negative offset needs two passes: the first counts all lines, then the
   file is searched backwards for the first line wanted.

   Small files are always read to the end, even past the last line wanted, so
   that the result has their sha256 and total_lines. Larger files are read only
   as far as needed. Reading has a time limit, output a size limit; if the
   output is full, `line` is the line to continue with.

   If the caller shows images, a file whose first bytes are a valid PNG, JPEG,
   GIF or WebP header is returned in base64 instead. */
#include "tools_private.h"

enum {
    HFSBI_READ_LINES = 2000,      /* lines, without an argument `limit` */
    HFSBI_READ_CHARS = 4000,      /* characters shown of a line */
    HFSBI_READ_BLOCK = 32 * 1024, /* bytes of a block, on the stack */
    HFSBI_READ_PROBE = 8192,      /* bytes that show the format: a NUL in
                                     them means binary */
    HFSBI_READ_MS = 30000,        /* time limit of a call */
    HFSBI_READ_OUTPUT = 8 * 1024 * 1024, /* bytes of output */
    HFSBI_READ_HASH = 16 * 1024 * 1024,  /* smaller files are read whole */
    HFSBI_IMAGE_HEAD = 81920,      /* bytes examined: a JPEG may contain a
                                      thumbnail before its size */
    HFSBI_IMAGE_BLOCK = 24 * 1024, /* a multiple of three, for base64 */
    HFSBI_IMAGE_SIDE = 8000,       /* most pixels a side that models accept */
    HFSBI_IMAGE_MAX = 3840 * 1024  /* 5 MiB in base64, which hosts accept */
};

/* ---- image headers ---- */

typedef struct hfsbi_image {
    const char   *mime; /* NULL: not an image that hosts can show */
    unsigned long width, height;
} hfsbi_image;

/* The unsigned number of n bytes at offset `at`, big or little endian; 0 if
   head is too short. */
static unsigned long hfsbi_image_number(hfsb_str head, size_t at, size_t n,
                                        bool big) {
    unsigned long value = 0;
    size_t        i;
    if (head.len < n || at > head.len - n) return 0;
    for (i = 0; i < n; i++)
        value =
            value << 8 | (unsigned char)head.ptr[at + (big ? i : n - 1 - i)];
    return value;
}

/* True if head contains part at offset `at`. */
static bool hfsbi_image_has(hfsb_str head, size_t at, hfsb_str part) {
    return at <= head.len &&
           hfsb_str_starts(hfsb_str_slice(head, at, head.len), part);
}

static void hfsbi_image_png(hfsb_str head, hfsbi_image *out) {
    if (!hfsbi_image_has(head, 0, HFSB_LIT("\x89PNG\r\n\x1A\n")) ||
        !hfsbi_image_has(head, 12, HFSB_LIT("IHDR")) || head.len < 33)
        return;
    out->mime = "image/png";
    out->width = hfsbi_image_number(head, 16, 4, true);
    out->height = hfsbi_image_number(head, 20, 4, true);
}

/* A text may begin with "GIF89a" too. In a real header at least one
   of the seven bytes that follow, size and flags, is below TAB. */
static void hfsbi_image_gif(hfsb_str head, hfsbi_image *out) {
    bool   text = true;
    size_t i;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("GIF87a")) &&
        !hfsbi_image_has(head, 0, HFSB_LIT("GIF89a")))
        return;
    for (i = 6; i < 13 && i < head.len; i++)
        if ((unsigned char)head.ptr[i] < '\t') text = false;
    if (text || head.len < 13) return;
    out->mime = "image/gif";
    out->width = hfsbi_image_number(head, 6, 2, false);
    out->height = hfsbi_image_number(head, 8, 2, false);
}

/* A JPEG is a list of segments with lengths. The segment that starts a frame
   contains the size. */
static void hfsbi_image_jpeg(hfsb_str head, hfsbi_image *out) {
    size_t at = 2;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("\xFF\xD8\xFF"))) return;
    while (at + 9 <= head.len && (unsigned char)head.ptr[at] == 0xFF) {
        unsigned      kind = (unsigned char)head.ptr[at + 1];
        unsigned long length = hfsbi_image_number(head, at + 2, 2, true);
        if (kind == 0xFF) { /* padding */
            at++;
            continue;
        }
        if (kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 &&
            kind != 0xCC) {
            out->mime = "image/jpeg";
            out->height = hfsbi_image_number(head, at + 5, 2, true);
            out->width = hfsbi_image_number(head, at + 7, 2, true);
            return;
        }
        if (kind < 0xC0 || length < 2) return;
        at += 2 + length;
    }
}

/* WebP has three variants, each with its size at another offset. */
static void hfsbi_image_webp(hfsb_str head, hfsbi_image *out) {
    unsigned long bits;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("RIFF")) ||
        !hfsbi_image_has(head, 8, HFSB_LIT("WEBP")) || head.len < 30)
        return;
    if (hfsbi_image_has(head, 12, HFSB_LIT("VP8X"))) {
        out->width = hfsbi_image_number(head, 24, 3, false) + 1;
        out->height = hfsbi_image_number(head, 27, 3, false) + 1;
    } else if (hfsbi_image_has(head, 12, HFSB_LIT("VP8L")) &&
               (unsigned char)head.ptr[20] == 0x2F) {
        bits = hfsbi_image_number(head, 21, 4, false);
        out->width = (bits & 0x3FFF) + 1;
        out->height = (bits >> 14 & 0x3FFF) + 1;
    } else if (hfsbi_image_has(head, 12, HFSB_LIT("VP8 ")) &&
               hfsbi_image_has(head, 23, HFSB_LIT("\x9D\x01\x2A"))) {
        out->width = hfsbi_image_number(head, 26, 2, false) & 0x3FFF;
        out->height = hfsbi_image_number(head, 28, 2, false) & 0x3FFF;
    }
    out->mime = "image/webp";
}

/* Detects PNG, JPEG, GIF and WebP. head is the start of a file, at most
   HFSBI_IMAGE_HEAD bytes. An image without a size is not detected: some hosts
   lose the whole conversation over an image that they cannot show. */
static hfsbi_image hfsbi_image_detect(hfsb_str head) {
    hfsbi_image image = HFSB_INIT;
    hfsbi_image_png(head, &image);
    if (!image.mime) hfsbi_image_gif(head, &image);
    if (!image.mime) hfsbi_image_jpeg(head, &image);
    if (!image.mime) hfsbi_image_webp(head, &image);
    if (!image.width || !image.height) image.mime = NULL;
    return image;
}

/* ---- files that are not text ---- */

typedef enum hfsbi_format {
    HFSBI_FORMAT_TEXT,
    HFSBI_FORMAT_BINARY,
    HFSBI_FORMAT_UTF16, /* with a byte order mark */
    HFSBI_FORMAT_UTF16LE,
    HFSBI_FORMAT_UTF16BE,
    HFSBI_FORMAT_UTF32,
    HFSBI_FORMAT_PDF
} hfsbi_format;

/* The encoding of a text, as programs call it; NULL: not an encoding. */
static const char *hfsbi_format_encoding(hfsbi_format format) {
    switch (format) {
    case HFSBI_FORMAT_UTF16: return "UTF-16";
    case HFSBI_FORMAT_UTF16LE: return "UTF-16LE";
    case HFSBI_FORMAT_UTF16BE: return "UTF-16BE";
    case HFSBI_FORMAT_UTF32: return "UTF-32";
    case HFSBI_FORMAT_TEXT:
    case HFSBI_FORMAT_BINARY:
    case HFSBI_FORMAT_PDF: break;
    }
    return NULL;
}

/* Detects UTF-16 without a mark: every other byte is NUL, except for a few
   characters, and no byte of the others is a control character. */
static hfsbi_format hfsbi_format_utf16(hfsb_str head) {
    size_t nuls[2] = {0, 0}, i;
    for (i = 0; i < head.len; i++) {
        unsigned char c = (unsigned char)head.ptr[i];
        if (!c) nuls[i % 2]++;
        else if (c < 32 && c != '\t' && c != '\n' && c != '\r')
            return HFSBI_FORMAT_BINARY;
    }
    if (head.len < 4) return HFSBI_FORMAT_BINARY;
    if (!nuls[0] && nuls[1] > head.len / 4) return HFSBI_FORMAT_UTF16LE;
    if (!nuls[1] && nuls[0] > head.len / 4) return HFSBI_FORMAT_UTF16BE;
    return HFSBI_FORMAT_BINARY;
}

/* Detects the format of a file by its first bytes. */
static hfsbi_format hfsbi_format_detect(hfsb_str head) {
    bool nul = hfsb_str_find_byte(head, '\0') != HFSB_NPOS;
    if (hfsb_str_starts(head, HFSB_LIT("\xFF\xFE\0\0")) ||
        hfsb_str_starts(head, HFSB_LIT("\0\0\xFE\xFF")))
        return HFSBI_FORMAT_UTF32;
    if (hfsb_str_starts(head, HFSB_LIT("\xFF\xFE")) ||
        hfsb_str_starts(head, HFSB_LIT("\xFE\xFF")))
        return HFSBI_FORMAT_UTF16;
    if (hfsb_str_starts(head, HFSB_LIT("%PDF-")) &&
        (nul || hfsb_utf8_validate(head) < hfsbi_utf8_floor(head, head.len)))
        return HFSBI_FORMAT_PDF;
    return nul ? hfsbi_format_utf16(head) : HFSBI_FORMAT_TEXT;
}

/* Appends a path as one word of a shell. */
static void hfsbi_put_word(hfsb_buf *out, hfsb_str path) {
    static const char plain[] = "+,-./:=@_";
    size_t            i = 0;
    while (i < path.len &&
           (hfsbi_is_alpha(path.ptr[i]) || hfsbi_is_digit(path.ptr[i]) ||
            hfsb_str_find_byte(hfsb_cstr(plain), path.ptr[i]) != HFSB_NPOS))
        i++;
    if (hfsb_str_starts(path, HFSB_LIT("-")))
        hfsb_buf_append(out, HFSB_LIT("./"));
    if (i == path.len) {
        hfsb_buf_append(out, path);
        return;
    }
    hfsb_buf_append_byte(out, '\'');
    for (i = 0; i < path.len; i++)
        if (path.ptr[i] == '\'') hfsb_buf_append(out, HFSB_LIT("'\\''"));
        else hfsb_buf_append_byte(out, path.ptr[i]);
    hfsb_buf_append_byte(out, '\'');
}

/* True if commands find the program in their PATH. */
static bool hfsbi_tools_can_run(const hfsb_tools *tools, const char *program) {
    const char *const *env = tools->env.list;
    hfsb_str           rest = HFSB_LIT("/bin:/usr/bin"), dir;
    char               path[PATH_MAX];
    struct stat        st;
    while (*env && strncmp(*env, "PATH=", 5) != 0) env++;
    if (*env) rest = hfsb_cstr(*env + 5);
    while (hfsbi_list_next(&rest, ':', &dir)) {
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)dir.len, dir.ptr,
                         program);
        if (n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Programs that show a file as text, the best first. The command is `before`,
   the encoding, `between`, the path, `after`. */
static const struct {
    bool        pdf; /* of PDF files; they have no encoding */
    const char *program, *before, *between, *after;
} hfsbi_viewers[] = {
    {false, "iconv", "iconv -f ", " -t UTF-8 ", ""},
    {false, "python3",
     "python3 -c 'import sys; sys.stdout.write(open(sys.argv[2], "
     "encoding=sys.argv[1]).read())' ",
     " ", ""},
    {true, "pdftotext", "pdftotext -layout ", "", " -"},
    {true, "mutool", "mutool draw -F txt ", "", ""},
    {true, "gs", "gs -q -sDEVICE=txtwrite -o - ", "", ""}};

enum { HFSBI_VIEWERS = sizeof hfsbi_viewers / sizeof *hfsbi_viewers };

/* Appends a command that shows the file on this machine, or that no program
   for it was found. encoding is NULL for PDF. */
static void hfsbi_put_viewer(const hfsb_tools *tools, hfsb_str path,
                             const char *encoding, hfsb_buf *out) {
    const char *comma = "";
    size_t      i;
    for (i = 0; i < HFSBI_VIEWERS; i++) {
        if (hfsbi_viewers[i].pdf != !encoding ||
            !hfsbi_tools_can_run(tools, hfsbi_viewers[i].program))
            continue;
        hfsb_buf_printf(out, "Read it with the command: %s%s%s",
                        hfsbi_viewers[i].before, encoding ? encoding : "",
                        hfsbi_viewers[i].between);
        hfsbi_put_word(out, path);
        hfsb_buf_printf(out, "%s", hfsbi_viewers[i].after);
        return;
    }
    hfsb_buf_append(out, HFSB_LIT("No program that converts it was found in "
                                  "PATH; one of these would do: "));
    for (i = 0; i < HFSBI_VIEWERS; i++) {
        if (hfsbi_viewers[i].pdf != !encoding) continue;
        hfsb_buf_printf(out, "%s%s", comma, hfsbi_viewers[i].program);
        comma = ", ";
    }
    hfsb_buf_append_byte(out, '.');
}

/* Refuses a file that is not text. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_format_refuse(hfsb_call *call, hfsb_str path,
                                       hfsbi_format       format,
                                       unsigned long long size) {
    hfsb_buf   *out = &call->result.error;
    const char *encoding = hfsbi_format_encoding(format);
    if (format == HFSBI_FORMAT_BINARY)
        return hfsbi_result_fail(
            &call->result, HFSB_REFUSED,
            "%.*s is binary (%llu bytes, a NUL byte near the start). To see "
            "its bytes use a command such as xxd, od -c or base64.",
            (int)path.len, path.ptr, size);
    (void)hfsbi_result_fail(&call->result, HFSB_REFUSED,
                            "%.*s is %s (%llu bytes), not UTF-8 text. ",
                            (int)path.len, path.ptr,
                            encoding ? encoding : "a PDF document", size);
    hfsbi_put_viewer(call->tools, path, encoding, out);
    return hfsb_buf_finish(out, 0);
}

/* ---- lines ---- */

/* The line that is being read, which may span blocks. */
typedef struct hfsbi_current_line {
    hfsb_buf text;       /* its start, from earlier blocks */
    size_t   size;       /* bytes of it so far */
    size_t   more;       /* characters of it after `text` */
    bool     open;       /* a part of it was read */
    bool     ends_in_cr; /* the last part ended in CR */
} hfsbi_current_line;

/* What is known about the file so far. */
typedef struct hfsbi_file_facts {
    unsigned long long bytes, newlines;
    char               last_byte;
    bool               at_end;   /* it was read to its end */
    bool               bad_utf8; /* invalid bytes were replaced */
    hfsbi_format       format;
    bool               hashing; /* all bytes are added to `sha` */
    hfsb_sha256        sha;
    char               sha256[HFSB_SHA256_HEX]; /* at the end; "": unknown */
    bool               keeping; /* all bytes are added to `kept` */
    hfsb_buf           kept;    /* for the session */
} hfsbi_file_facts;

/* Turns a file into numbered lines, block by block. */
typedef struct hfsbi_line_reader {
    const hfsb_call   *call;
    long long          until; /* on hfsb_clock_ms() */
    hfsb_str           path;
    int                fd;
    hfsb_file_info     info;
    unsigned long long first, last; /* lines wanted, counted from 1 */
    unsigned long long line;        /* number of the current line */
    unsigned long long shown;       /* the last one in `out`; 0: none */
    hfsbi_current_line now;
    hfsbi_file_facts   file;
    hfsb_buf          *out;
    size_t             room;  /* bytes of output */
    bool               whole; /* lines are never cut */
    size_t             cut;   /* fewest bytes shown of a line that was cut;
                                 0: none was */
    bool               full;  /* `line` no longer fits into `out` */
} hfsbi_line_reader;

static bool hfsbi_is_text(const hfsbi_line_reader *r) {
    return r->file.format == HFSBI_FORMAT_TEXT;
}

static bool hfsbi_line_wanted(const hfsbi_line_reader *r) {
    return r->line >= r->first && r->line <= r->last && !r->full;
}

/* Counts characters; text may begin inside one, which is not counted. */
static size_t hfsbi_count_chars(hfsb_str text) {
    size_t i, n = 0;
    for (i = 0; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xC0u) != 0x80u;
    return n;
}

/* Shortens *text to n bytes and adds the characters left out to *more. */
static void hfsbi_line_shorten(hfsb_str *text, size_t n, size_t *more) {
    *more += hfsb_utf8_count(hfsb_str_slice(*text, n, text->len));
    *text = hfsb_str_slice(*text, 0, n);
}

/* Appends the current line, or its start if `more` characters follow. Sets
   r->full instead if it does not fit. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_line_put(hfsbi_line_reader *r, hfsb_str text,
                                  size_t more) {
    size_t mark = r->out->len;
    size_t n, need;
    bool   valid;
    char   head[24];
    if (!r->whole && (text.len > HFSBI_READ_CHARS || more))
        hfsbi_line_shorten(&text, hfsb_utf8_offset(text, HFSBI_READ_CHARS),
                           &more);
    else if (more) /* hfsbi_line_hold() may have cut its last character */
        hfsbi_line_shorten(&text, hfsbi_utf8_floor(text, text.len - 1), &more);
    valid = hfsb_utf8_validate(text) == text.len;
    need = r->out->len + (valid ? text.len : 3 * text.len) + 64;
    if (need > r->room && r->shown) {
        r->full = true;
        return HFSB_OK;
    }
    if (need > r->room) /* longer than a reply: show its start */
        hfsbi_line_shorten(&text, hfsbi_utf8_floor(text, (r->room - 64) / 3),
                           &more);
    if (more && (!r->cut || text.len < r->cut)) r->cut = text.len;
    head[0] = '\n';
    n = 1 + hfsbi_number_write_uint(r->line, head + 1);
    head[n++] = '\t';
    hfsb_buf_append(
        r->out, hfsb_str_slice(hfsb_str_make(head, n), r->shown ? 0 : 1, n));
    if (valid) hfsb_buf_append(r->out, text);
    else if (r->out->status == HFSB_OK)
        r->out->status = hfsb_utf8_repair(text, r->out);
    if (more)
        hfsb_buf_printf(r->out, "... (%zu more characters in this line)",
                        more);
    if (!valid) r->file.bad_utf8 = true;
    r->shown = r->line;
    return hfsb_buf_finish(r->out, mark);
}

/* Collects a part of the current line whose end is not known yet. */
static hfsb_status hfsbi_line_hold(hfsbi_line_reader *r, hfsb_str part) {
    size_t room = r->whole ? r->room : (size_t)HFSBI_READ_CHARS * 4 + 4;
    r->now.open = true;
    if (part.len == 0 || !hfsbi_line_wanted(r)) return HFSB_OK;
    r->now.size += part.len;
    r->now.ends_in_cr = part.ptr[part.len - 1] == '\r';
    room = room > r->now.text.len ? room - r->now.text.len : 0;
    r->now.more += hfsbi_count_chars(hfsb_str_slice(part, room, part.len));
    return hfsb_buf_append(&r->now.text, hfsb_str_slice(part, 0, room));
}

/* Appends the current line: the text collected, then part, without CR LF. */
static hfsb_status hfsbi_line_finish(hfsbi_line_reader *r, hfsb_str part,
                                     bool newline) {
    hfsb_status st = HFSB_OK;
    bool        cr = newline && part.len && part.ptr[part.len - 1] == '\r';
    if (r->now.open || part.len > HFSBI_READ_CHARS) {
        st = hfsbi_line_hold(r, part);
        part = hfsb_buf_str(&r->now.text);
        cr = newline && r->now.ends_in_cr;
        if (cr && r->now.more) {
            r->now.more--;
            cr = false;
        }
    }
    if (cr) part = hfsb_str_slice(part, 0, part.len - 1);
    return st == HFSB_OK ? hfsbi_line_put(r, part, r->now.more) : st;
}

/* Ends the current line with part, at a newline or at the end of the file. */
static hfsb_status hfsbi_line_end(hfsbi_line_reader *r, hfsb_str part,
                                  bool newline) {
    hfsb_status st = HFSB_OK;
    if (hfsbi_line_wanted(r)) st = hfsbi_line_finish(r, part, newline);
    hfsb_buf_truncate(&r->now.text, 0);
    r->now.size = r->now.more = 0;
    r->now.open = r->now.ends_in_cr = false;
    if (!r->full) r->line++;
    return st;
}

/* ---- blocks ---- */

/* Counts lines before the first one wanted and removes them from *block. */
static void hfsbi_line_reader_skip(hfsbi_line_reader *r, hfsb_str *block) {
    unsigned long long left = r->first - r->line;
    size_t             at;
    if (hfsb_str_count_byte(*block, '\n') < left) {
        r->line += hfsb_str_count_byte(*block, '\n');
        r->now.open = block->ptr[block->len - 1] != '\n';
        *block = hfsb_str_make("", 0);
        return;
    }
    for (; left > 0; left--) {
        at = hfsb_str_find_byte(*block, '\n');
        *block = hfsb_str_slice(*block, at + 1, block->len);
    }
    r->line = r->first;
    r->now.open = false;
}

/* Appends the wanted lines of a block, counts the others. */
static hfsb_status hfsbi_line_reader_take(hfsbi_line_reader *r,
                                          hfsb_str           block) {
    hfsb_status st = HFSB_OK;
    if (r->line < r->first) hfsbi_line_reader_skip(r, &block);
    while (st == HFSB_OK && block.len && hfsbi_line_wanted(r)) {
        size_t at = hfsb_str_find_byte(block, '\n');
        if (at == HFSB_NPOS) return hfsbi_line_hold(r, block);
        st = hfsbi_line_end(r, hfsb_str_slice(block, 0, at), true);
        if (r->full) return st;
        block = hfsb_str_slice(block, at + 1, block.len);
    }
    if (st == HFSB_OK && block.len && !r->full) { /* past `last` */
        r->line += hfsb_str_count_byte(block, '\n');
        r->now.open = block.ptr[block.len - 1] != '\n';
    }
    return st;
}

/* True if more of the file is needed, for lines or for the sha256. */
static bool hfsbi_line_reader_needs_more(const hfsbi_line_reader *r) {
    if (r->file.at_end || !hfsbi_is_text(r)) return false;
    if (r->info.size <= HFSBI_READ_HASH && r->file.bytes <= HFSBI_READ_HASH)
        return true;
    return !r->full && r->line <= r->last;
}

/* Reads a full block, or up to the end of the file. Returns its length, or -1
   with errno. */
static ssize_t hfsbi_read_block(int fd, char *block, size_t size) {
    size_t got = 0;
    while (got < size) {
        ssize_t n = hfsbi_read_file(fd, block + got, size - got);
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Bytes to reserve for the output: a small file with its line numbers. */
static size_t hfsbi_read_reserve_size(unsigned long long size) {
    return size < 8 * HFSBI_READ_BLOCK ? (size_t)(size + size / 8)
                                       : (size_t)HFSBI_READ_BLOCK;
}

/* Reports errno of a failed read. */
static hfsb_status hfsbi_read_fail(const hfsbi_line_reader *r, hfsb_err *err) {
    return hfsbi_fail_os(err, errno, "%.*s cannot be read", (int)r->path.len,
                         r->path.ptr);
}

/* True, with the message, if the call was cancelled or its time is up. */
static bool hfsbi_read_stopped(const hfsbi_line_reader *r, hfsb_err *err) {
    if (hfsb_cancel_is_set(r->call->opts.cancel)) {
        hfsbi_fail(err, HFSB_CANCELLED, 0, "Cancelled.");
        return true;
    }
    if (hfsb_clock_ms() <= r->until) return false;
    hfsbi_fail(err, HFSB_LIMIT, 0,
               "%.*s has %llu bytes, and this takes longer than %d s. Use a "
               "command such as tail, head or sed -n.",
               (int)r->path.len, r->path.ptr, r->info.size,
               HFSBI_READ_MS / 1000);
    return true;
}

/* Keeps a block of a small file for the session. */
static void hfsbi_line_reader_keep(hfsbi_line_reader *r, hfsb_str text) {
    hfsb_buf *kept = &r->file.kept;
    if (r->file.keeping && text.len <= HFSBI_SNAPSHOT_MAX - kept->len &&
        hfsb_buf_append(kept, text) == HFSB_OK)
        return;
    hfsb_buf_free(kept);
    r->file.keeping = false;
}

/* Counts and hashes a block of the file, and detects binary content. */
static void hfsbi_line_reader_count(hfsbi_line_reader *r, hfsb_str text) {
    if (r->file.bytes == 0)
        r->file.format =
            hfsbi_format_detect(hfsb_str_slice(text, 0, HFSBI_READ_PROBE));
    r->file.bytes += text.len;
    r->file.newlines += hfsb_str_count_byte(text, '\n');
    if (text.len) r->file.last_byte = text.ptr[text.len - 1];
    if (r->file.hashing) hfsb_sha256_write(&r->file.sha, text);
    hfsbi_line_reader_keep(r, text);
}

/* Reads the file from its current position and appends the wanted lines.
   HFSB_OK; HFSB_NOMEM; any other failure with the message in *err. */
static hfsb_status hfsbi_line_reader_run(hfsbi_line_reader *r, hfsb_err *err) {
    char        block[HFSBI_READ_BLOCK];
    hfsb_status st = HFSB_OK;
    bool        again = r->file.at_end; /* the second pass: already counted */
    if (r->info.size) /* most files are small and read whole */
        st = hfsb_buf_reserve(r->out, hfsbi_read_reserve_size(r->info.size));
    r->file.at_end = false;
    while (st == HFSB_OK && hfsbi_line_reader_needs_more(r)) {
        ssize_t  n = hfsbi_read_block(r->fd, block, sizeof block);
        hfsb_str text = hfsb_str_make(block, n > 0 ? (size_t)n : 0);
        if (n < 0) return hfsbi_read_fail(r, err);
        if (hfsbi_read_stopped(r, err)) return HFSB_LIMIT;
        r->file.at_end = text.len < sizeof block;
        if (!again) hfsbi_line_reader_count(r, text);
        if (hfsbi_is_text(r) && text.len && !r->full)
            st = hfsbi_line_reader_take(r, text);
    }
    /* the last line wanted may be the last line of the file */
    if (st == HFSB_OK && !r->file.at_end && r->file.bytes >= r->info.size)
        r->file.at_end = hfsbi_read_block(r->fd, block, 1) == 0;
    if (st == HFSB_OK && r->file.at_end && r->now.open && !r->full)
        st = hfsbi_line_end(r, HFSB_LIT(""), false);
    if (again) r->file.at_end = true;
    return st;
}

/* ---- offsets from the end ---- */

/* Lines of the file so far; the last one may lack its newline. */
static unsigned long long hfsbi_line_count(const hfsbi_line_reader *r) {
    return r->file.newlines + (r->file.bytes && r->file.last_byte != '\n');
}

/* Seeks to the line that is `back` lines before the end, reading backwards
   until enough newlines were seen. False if that fails. */
static bool hfsbi_line_reader_seek(hfsbi_line_reader *r,
                                   unsigned long long back) {
    char               block[HFSBI_READ_BLOCK];
    unsigned long long at = r->file.bytes, left = back;
    size_t             n, i;
    if (r->file.bytes && r->file.last_byte == '\n') left++;
    while (at > 0) {
        n = at < sizeof block ? (size_t)at : sizeof block;
        at -= n;
        if (lseek(r->fd, (off_t)at, SEEK_SET) < 0 ||
            hfsbi_read_block(r->fd, block, n) != (ssize_t)n)
            return false;
        for (i = n; i > 0; i--)
            if (block[i - 1] == '\n' && --left == 0)
                return lseek(r->fd, (off_t)(at + i), SEEK_SET) >= 0;
    }
    return lseek(r->fd, 0, SEEK_SET) == 0;
}

/* The first pass for a negative offset: counts all lines, sets `first` and
   seeks to it. */
static hfsb_status hfsbi_line_reader_from_end(hfsbi_line_reader *r,
                                              long long          offset,
                                              hfsb_err          *err) {
    char               block[HFSBI_READ_BLOCK];
    unsigned long long back = 0 - (unsigned long long)offset, lines;
    ssize_t            n = 1;
    r->file.hashing = true;
    while (n > 0 && hfsbi_is_text(r)) {
        n = hfsbi_read_block(r->fd, block, sizeof block);
        if (n > 0) hfsbi_line_reader_count(r, hfsb_str_make(block, (size_t)n));
        if (hfsbi_read_stopped(r, err)) return HFSB_LIMIT;
    }
    lines = hfsbi_line_count(r);
    if (back > lines) back = lines;
    r->first = r->line = lines - back + 1;
    r->file.at_end = true;
    if (n < 0 || (hfsbi_is_text(r) && !hfsbi_line_reader_seek(r, back)))
        return hfsbi_read_fail(r, err);
    return HFSB_OK;
}

/* ---- images ---- */

/* The failure for an image over the limits. */
static hfsb_status hfsbi_image_too_large(hfsb_call               *call,
                                         const hfsbi_line_reader *r,
                                         const hfsbi_image       *image) {
    return hfsbi_result_fail(
        &call->result, HFSB_LIMIT,
        "%.*s is too large to be shown (%s, %lux%lu, %llu bytes; the limit is "
        "%d a side and %d bytes). Make a smaller copy with a command, such as "
        "ImageMagick's convert "
        "with -resize 1024x1024 or python3 with Pillow, and read that.",
        (int)r->path.len, r->path.ptr, image->mime, image->width,
        image->height,
        r->info.size > r->file.bytes ? r->info.size : r->file.bytes,
        HFSBI_IMAGE_SIDE, HFSBI_IMAGE_MAX);
}

/* Appends the file in base64, hashed and counted in r->file.bytes. Stops once
   it exceeds HFSBI_IMAGE_MAX. */
static hfsb_status hfsbi_image_data(hfsbi_line_reader *r, hfsb_buf *out,
                                    hfsb_err *err) {
    char        block[HFSBI_IMAGE_BLOCK];
    hfsb_status st = hfsb_buf_reserve(out, (size_t)r->info.size / 3 * 4 + 256);
    while (st == HFSB_OK && !r->file.at_end &&
           r->file.bytes <= HFSBI_IMAGE_MAX) {
        ssize_t  n = hfsbi_read_block(r->fd, block, sizeof block);
        hfsb_str text = hfsb_str_make(block, n > 0 ? (size_t)n : 0);
        if (n < 0) return hfsbi_read_fail(r, err);
        r->file.at_end = text.len < sizeof block;
        r->file.bytes += text.len;
        hfsb_sha256_write(&r->file.sha, text);
        st = hfsb_base64_encode(text, out);
    }
    return st;
}

/* Fills the result with the image in the open file. */
static hfsb_status hfsbi_read_image(hfsb_call *call, hfsbi_line_reader *r,
                                    const hfsbi_image *image, hfsb_err *err) {
    hfsb_buf    data = HFSB_INIT;
    char       *hex = r->file.sha256;
    hfsb_status st;
    if (r->info.size > HFSBI_IMAGE_MAX || image->width > HFSBI_IMAGE_SIDE ||
        image->height > HFSBI_IMAGE_SIDE)
        return hfsbi_image_too_large(call, r, image);
    hfsb_sha256_init(&r->file.sha);
    data.alloc = call->tools->alloc;
    st = hfsbi_image_data(r, &data, err);
    if (st == HFSB_OK && r->file.bytes > HFSBI_IMAGE_MAX) {
        st = hfsbi_image_too_large(call, r, image);
    } else if (st == HFSB_OK) {
        hfsbi_sha256_finish_hex(&r->file.sha, hex);
        hfsbi_build_str(&call->fields, "mime_type", hfsb_cstr(image->mime));
        hfsbi_build_str(&call->fields, "data", hfsb_buf_str(&data));
        hfsbi_build_int(&call->fields, "size", (long long)r->file.bytes);
        hfsbi_build_str(&call->fields, "sha256", hfsb_cstr(hex));
        st = hfsbi_result_ok(&call->result, "%s, %lux%lu, %llu bytes",
                             image->mime, image->width, image->height,
                             r->file.bytes);
    } else if (st != HFSB_NOMEM) {
        st = hfsbi_result_err(&call->result, err);
    }
    hfsb_buf_free(&data);
    return st;
}

/* Detects an image in the open file without moving its position. */
static hfsbi_image hfsbi_read_detect_image(const hfsbi_line_reader *r) {
    char    head[HFSBI_IMAGE_HEAD];
    size_t  got = 0;
    ssize_t n;
    do {
        n = pread(r->fd, head + got, sizeof head - got, (off_t)got);
        if (n > 0) got += (size_t)n;
    } while (got < sizeof head && (n > 0 || (n < 0 && errno == EINTR)));
    return hfsbi_image_detect(hfsb_str_make(head, got));
}

/* ---- the tool ---- */

typedef struct hfsbi_read_args {
    hfsb_str  path;
    long long offset, limit;
    int       image;
} hfsbi_read_args;

static const hfsbi_param hfsbi_read_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_read_args, path,
                NULL),
    HFSBI_PARAM("offset", HFSBI_ARG_INT, HFSBI_SENT, hfsbi_read_args, offset,
                "First line, from 1; negative: from the end"),
    HFSBI_PARAM_RANGE("limit", HFSBI_ARG_INT, HFSBI_NULL_IS_0 | HFSBI_SENT,
                      hfsbi_read_args, limit, "Lines, default 2000; 0: all", 0,
                      LLONG_MAX, HFSBI_READ_LINES,
                      "a number of lines from 0 on (0: all of them)"),
    HFSBI_PARAM("image", HFSBI_ARG_SWITCH, HFSBI_UNLISTED, hfsbi_read_args,
                image, NULL),
    HFSBI_PARAM_END};

/* Computes the sha256 of a file that was read to its end. */
static void hfsbi_read_sha256(hfsbi_line_reader *r) {
    char *hex = r->file.sha256;
    hex[0] = '\0';
    if (!r->file.at_end || !hfsbi_is_text(r)) return;
    if (r->file.hashing) hfsbi_sha256_finish_hex(&r->file.sha, hex);
    else if (lseek(r->fd, 0, SEEK_SET) != 0 || !hfsbi_fd_sha256(r->fd, hex))
        hex[0] = '\0';
}

/* Adds the fields of the result. */
static void hfsbi_read_fields(hfsbi_build *fields, hfsbi_line_reader *r) {
    const char        *hex = r->file.sha256;
    unsigned long long lines = hfsbi_line_count(r);
    bool               more = r->full || !r->file.at_end || r->last < lines;
    hfsbi_read_sha256(r);
    hfsbi_build_int(
        fields, "size",
        (long long)(r->file.at_end ? r->file.bytes : r->info.size));
    if (r->file.at_end)
        hfsbi_build_int(fields, "total_lines", (long long)lines);
    if (hex[0]) {
        hfsbi_build_str(fields, "sha256", hfsb_cstr(hex));
        hfsbi_build_str(fields, "tag", hfsb_str_make(hex, HFSBI_TAG));
    }
    hfsbi_build_bool(fields, "truncated", r->full || r->cut > 0);
    if (r->shown) {
        hfsbi_build_int(fields, "first_line", (long long)r->first);
        hfsbi_build_int(fields, "last_line", (long long)r->shown);
    }
    if (more)
        hfsbi_build_int(fields, "next_offset",
                        (long long)(r->full ? r->line : r->last + 1));
}

/* Fills the result after the lines; refuses a binary file. */
static hfsb_status hfsbi_read_result(hfsb_call *call, hfsbi_line_reader *r) {
    hfsb_status st = HFSB_OK;
    if (!hfsbi_is_text(r))
        return hfsbi_format_refuse(
            call, r->path, r->file.format,
            r->info.size > r->file.bytes ? r->info.size : r->file.bytes);
    call->result.success = true;
    hfsbi_read_fields(&call->fields, r);
    if (r->file.bad_utf8)
        st = hfsb_buf_printf(&call->notes,
                             "\n(bytes that are not UTF-8 are shown as "
                             "\xEF\xBF\xBD)");
    /* a full page needs no note: next_offset is enough */
    if (st == HFSB_OK && r->full && !call->tools->limits.page)
        st = hfsb_buf_printf(&call->notes,
                             "\n(the reply is full; go on with offset %llu)",
                             r->line);
    return st;
}

/* Reads the lines of the open file and fills the result. */
static hfsb_status hfsbi_read_lines(hfsb_call *call, hfsbi_line_reader *r,
                                    long long offset, long long limit,
                                    hfsb_err *err) {
    size_t      page = call->tools->limits.page;
    hfsb_status st = HFSB_OK;
    r->line = 1;
    r->first = offset > 0 ? (unsigned long long)offset : 1;
    r->file.hashing = r->info.size <= HFSBI_READ_HASH;
    hfsb_sha256_init(&r->file.sha);
    if (offset < 0) st = hfsbi_line_reader_from_end(r, offset, err);
    r->last = (unsigned long long)-1;
    if (limit) r->last = r->first + (unsigned long long)limit - 1;
    if (page && (!limit || (unsigned long long)limit > page / HFSBI_PAGE_LINE))
        r->last = r->first + page / HFSBI_PAGE_LINE - 1;
    if (st == HFSB_OK && hfsbi_is_text(r)) st = hfsbi_line_reader_run(r, err);
    if (st == HFSB_OK) return hfsbi_read_result(call, r);
    return st == HFSB_NOMEM ? st : hfsbi_result_err(&call->result, err);
}

/* Opens the file. Spill files may be read although they are outside the root;
   a symlink that replaced one is not followed. */
static hfsb_status hfsbi_read_open(hfsb_tools *tools, hfsbi_line_reader *r,
                                   hfsb_err *err) {
    const int   flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;
    char       *path = NULL;
    r->fd = -1;
    if (!hfsbi_spills_has(&tools->spills, r->path))
        return hfsb_file_open(tools->place, r->path, &r->fd, &r->info, err);
    path = hfsbi_cstr_copy(&tools->alloc, r->path);
    if (!path) return hfsbi_fail_status(err, HFSB_NOMEM, "Opening a file");
    r->fd = hfsbi_openat(AT_FDCWD, path, flags, 0);
    hfsbi_array_free(&tools->alloc, path, r->path.len + 1, 1);
    if (r->fd < 0 || fstat(r->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        hfsbi_close(&r->fd);
        return hfsbi_file_fail(err, HFSB_NOT_FOUND, "File not found", r->path);
    }
    hfsbi_file_info_fill(&r->info, &st);
    return HFSB_OK;
}

/* Records in the session what was read. */
static void hfsbi_read_seen(const hfsbi_line_reader *r, unsigned long since) {
    hfsbi_sight sight = HFSB_INIT;
    sight.since = since;
    if (r->file.sha256[0])
        memcpy(sight.version.hex, r->file.sha256, sizeof sight.version.hex);
    else hfsbi_version_of_info(&r->info, &sight.version);
    if (r->file.keeping && r->file.at_end)
        sight.content = hfsb_buf_str(&r->file.kept);
    sight.first = r->first;
    sight.last = r->shown;
    sight.longest = r->cut;
    hfsbi_tools_saw(r->call->tools, r->path, &sight);
}

HFSBI_FN hfsb_status hfsbi_run_read(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    const hfsbi_read_args *a = (const hfsbi_read_args *)args;
    hfsb_tools            *tools = call->tools;
    hfsbi_image            image = HFSB_INIT;
    hfsbi_line_reader      r;
    unsigned long          since = hfsbi_tools_writes(tools);
    hfsb_status            st;
    memset(&r, 0, sizeof r);
    r.now.text.alloc = r.file.kept.alloc = tools->alloc;
    r.call = call;
    r.until = hfsb_clock_ms() + HFSBI_READ_MS;
    r.out = &call->result.output;
    r.room =
        tools->limits.page ? tools->limits.page : (size_t)HFSBI_READ_OUTPUT;
    r.path = a->path;
    /* A caller that asks for more lines than a model reads wants the exact
       content: whole lines, and notes in a field of their own. */
    r.whole = a->limit == 0 || a->limit > HFSBI_READ_LINES;
    call->notes_apart = r.whole;
    if (hfsbi_read_open(tools, &r, err) != HFSB_OK)
        return hfsbi_result_err(&call->result, err);
    r.file.keeping = tools->session && r.info.size <= HFSBI_SNAPSHOT_MAX;
    if (a->image < 0 ? call->opts.images : a->image == 1)
        image = hfsbi_read_detect_image(&r);
    st = image.mime ? hfsbi_read_image(call, &r, &image, err)
                    : hfsbi_read_lines(call, &r, a->offset ? a->offset : 1,
                                       a->limit, err);
    hfsbi_close(&r.fd);
    hfsb_buf_free(&r.now.text);
    if (st == HFSB_OK && call->result.success) hfsbi_read_seen(&r, since);
    hfsb_buf_free(&r.file.kept);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_read(void) {
    static const hfsbi_tool row = {
        "read",
        "Read a file",
        "Read lines of a text file, each after its number and a tab. Read a "
        "file before you change it.",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_ON_DISK | HFSBI_TOOL_CORE,
        hfsbi_read_params};
    return &row;
}
