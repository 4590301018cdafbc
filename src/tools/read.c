/* read.c - lines of a file with their numbers, or a picture. */
#include "tools_private.h"
#include "../os/os_private.h"
#include "../core/core_private.h"

typedef struct hfsbi_image {
    const char   *mime; /* NULL: none that hosts show, or not to be trusted */
    unsigned long width, height;
} hfsbi_image;

enum {
    HFSBI_IMAGE_HEAD = 81920
}; /* bytes that are looked at: a JPEG may
                                      have a small picture before its size */

/* ==== image ==== */

/* what the first bytes of a file say of a picture. */

/* n bytes from `at` on; 0 when they are not there. */
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

/* It begins with letters, as a text may: its size or what follows it has
   bytes that no text has. */
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

/* Parts, each with its length, up to the one that begins a frame. */
static void hfsbi_image_jpeg(hfsb_str head, hfsbi_image *out) {
    size_t at = 2;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("\xFF\xD8\xFF"))) return;
    while (at + 9 <= head.len && (unsigned char)head.ptr[at] == 0xFF) {
        unsigned      kind = (unsigned char)head.ptr[at + 1];
        unsigned long length = hfsbi_image_number(head, at + 2, 2, true);
        if (kind == 0xFF) { /* filled up */
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

/* Three kinds, each with its size elsewhere. */
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

/* head: the beginning of a file, HFSBI_IMAGE_HEAD bytes or all of it. PNG,
   JPEG, GIF and WebP. One that is cut short before its size is known, or has
   none, is no picture: a model's host may lose the whole conversation over
   one that cannot be shown. */
static hfsbi_image hfsbi_image_look(hfsb_str head) {
    hfsbi_image image = HFSB_INIT;
    hfsbi_image_png(head, &image);
    if (!image.mime) hfsbi_image_gif(head, &image);
    if (!image.mime) hfsbi_image_jpeg(head, &image);
    if (!image.mime) hfsbi_image_webp(head, &image);
    if (!image.width || !image.height) image.mime = NULL;
    return image;
}

enum {
    HFSBI_READ_LINES = 2000,      /* when no limit is given */
    HFSBI_READ_CHARS = 4000,      /* of a line */
    HFSBI_READ_BLOCK = 32 * 1024, /* on the stack */
    HFSBI_READ_PROBE = 8192,      /* where a NUL means binary */
    HFSBI_READ_MS = 30000,        /* it is given up then */
    HFSBI_READ_OUTPUT = 8 * 1024 * 1024,
    HFSBI_READ_HASH = 16 * 1024 * 1024, /* files up to here are read whole */
    HFSBI_IMAGE_BLOCK = 24 * 1024,      /* a multiple of three, for base64 */
    HFSBI_IMAGE_SIDE = 8000,            /* points that models take */
    HFSBI_IMAGE_MAX = 3840 * 1024 /* in base64 the 5 MiB that hosts take */
};

/* A file on its way to numbered lines, block by block. */
typedef struct hfsbi_line_reader {
    const hfsb_call   *call;
    long long          until; /* on hfsb_clock_ms() */
    hfsb_str           path;
    int                fd;
    hfsb_file_info     info;
    unsigned long long first, last; /* lines wanted, from 1 on */
    unsigned long long line;        /* the one that is being read */
    hfsb_buf           text; /* the start of it, when a block ended in it */
    size_t             size; /* of all of it */
    size_t             more; /* characters of it behind `text` */
    bool               open; /* some of it was read */
    bool               ends_in_cr;
    hfsb_buf          *out;
    bool               whole; /* lines are never cut */
    bool               cut;   /* some line was */
    bool               any;   /* line was put out */
    bool               full;  /* no more output fits; `line` is the next */
    bool               at_end, bad_utf8, binary;
    unsigned long long bytes, newlines; /* of the file, so far */
    char               last_byte;
    bool               hashing; /* every byte goes into sha */
    hfsb_sha256        sha;
} hfsbi_line_reader;

/* ---- lines ---- */

static bool hfsbi_line_wanted(const hfsbi_line_reader *r) {
    return r->line >= r->first && r->line <= r->last && !r->full;
}

/* Characters of text, which may begin inside one. */
static size_t hfsbi_count_chars(hfsb_str text) {
    size_t i, n = 0;
    for (i = 0; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xC0u) != 0x80u;
    return n;
}

/* Shortens *text to n bytes; *more counts the characters that are left out. */
static void hfsbi_line_shorten(hfsb_str *text, size_t n, size_t *more) {
    *more += hfsb_utf8_count(hfsb_str_slice(*text, n, text->len));
    *text = hfsb_str_slice(*text, 0, n);
}

/* One line goes out, or its beginning when `more` characters follow. */
static hfsb_status hfsbi_line_put(hfsbi_line_reader *r, hfsb_str text,
                                  size_t more) {
    size_t mark = r->out->len;
    size_t n, need;
    bool   valid;
    char   head[24];
    if (!r->whole && (text.len > HFSBI_READ_CHARS || more))
        hfsbi_line_shorten(&text, hfsb_utf8_offset(text, HFSBI_READ_CHARS),
                           &more);
    valid = hfsb_utf8_validate(text) == text.len;
    need = r->out->len + (valid ? text.len : 3 * text.len) + 64;
    if (need > HFSBI_READ_OUTPUT && r->any) {
        r->full = true;
        return HFSB_OK;
    }
    if (need > HFSBI_READ_OUTPUT) /* longer than a reply: show its start */
        hfsbi_line_shorten(
            &text, hfsbi_utf8_floor(text, (HFSBI_READ_OUTPUT - 64) / 3),
            &more);
    if (more) r->cut = true;
    head[0] = '\n';
    n = 1 + hfsbi_number_write_uint(r->line, head + 1);
    head[n++] = '\t';
    hfsb_buf_append(r->out,
                    hfsb_str_slice(hfsb_str_make(head, n), r->any ? 0 : 1, n));
    if (valid) hfsb_buf_append(r->out, text);
    else if (r->out->status == HFSB_OK)
        r->out->status = hfsb_utf8_repair(text, r->out);
    if (more)
        hfsb_buf_printf(r->out, "... (%zu more characters in this line)",
                        more);
    if (!valid) r->bad_utf8 = true;
    r->any = true;
    return hfsb_buf_finish(r->out, mark);
}

/* A part of the current line; the next part follows. */
static hfsb_status hfsbi_line_hold(hfsbi_line_reader *r, hfsb_str part) {
    size_t room = r->whole ? (size_t)HFSBI_READ_OUTPUT
                           : (size_t)HFSBI_READ_CHARS * 4 + 4;
    r->open = true;
    if (part.len == 0 || !hfsbi_line_wanted(r)) return HFSB_OK;
    r->size += part.len;
    r->ends_in_cr = part.ptr[part.len - 1] == '\r';
    room = room > r->text.len ? room - r->text.len : 0;
    r->more += hfsbi_count_chars(hfsb_str_slice(part, room, part.len));
    return hfsb_buf_append(&r->text, hfsb_str_slice(part, 0, room));
}

/* The current line, with part behind what is held of it. */
static hfsb_status hfsbi_line_finish(hfsbi_line_reader *r, hfsb_str part,
                                     bool newline) {
    hfsb_status st = HFSB_OK;
    bool        cr = newline && part.len && part.ptr[part.len - 1] == '\r';
    if (r->open || part.len > HFSBI_READ_CHARS) {
        st = hfsbi_line_hold(r, part);
        part = hfsb_buf_str(&r->text);
        cr = newline && r->ends_in_cr;
        if (cr && r->more) {
            r->more--;
            cr = false;
        }
    }
    if (cr) part = hfsb_str_slice(part, 0, part.len - 1);
    return st == HFSB_OK ? hfsbi_line_put(r, part, r->more) : st;
}

/* The current line ends with part, and with a newline or the file. */
static hfsb_status hfsbi_line_end(hfsbi_line_reader *r, hfsb_str part,
                                  bool newline) {
    hfsb_status st = HFSB_OK;
    if (hfsbi_line_wanted(r)) st = hfsbi_line_finish(r, part, newline);
    hfsb_buf_truncate(&r->text, 0);
    r->size = r->more = 0;
    r->open = r->ends_in_cr = false;
    if (!r->full) r->line++;
    return st;
}

/* ---- blocks ---- */

/* Lines before the first wanted are only counted: *block is what follows. */
static void hfsbi_line_reader_skip(hfsbi_line_reader *r, hfsb_str *block) {
    unsigned long long left = r->first - r->line;
    size_t             at;
    if (hfsb_str_count_byte(*block, '\n') < left) {
        r->line += hfsb_str_count_byte(*block, '\n');
        r->open = block->ptr[block->len - 1] != '\n';
        *block = hfsb_str_make("", 0);
        return;
    }
    for (; left > 0; left--) {
        at = hfsb_str_find_byte(*block, '\n');
        *block = hfsb_str_slice(*block, at + 1, block->len);
    }
    r->line = r->first;
    r->open = false;
}

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
    if (st == HFSB_OK && block.len && !r->full) { /* behind the last wanted */
        r->line += hfsb_str_count_byte(block, '\n');
        r->open = block.ptr[block.len - 1] != '\n';
    }
    return st;
}

/* Whether the rest of the file matters. */
static bool hfsbi_line_reader_goes_on(const hfsbi_line_reader *r) {
    if (r->at_end || r->binary) return false;
    if (r->info.size <= HFSBI_READ_HASH && r->bytes <= HFSBI_READ_HASH)
        return true;
    return !r->full && r->line <= r->last;
}

/* Fills a block as far as the file goes; its length, or -1 with errno. */
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

/* Room for a file that is small, with its line numbers. */
static size_t hfsbi_read_guess(unsigned long long size) {
    return size < 8 * HFSBI_READ_BLOCK ? (size_t)(size + size / 8)
                                       : (size_t)HFSBI_READ_BLOCK;
}

static hfsb_status hfsbi_read_fails(const hfsbi_line_reader *r,
                                    hfsb_err                *err) {
    return hfsbi_fail_os(err, errno, "%.*s cannot be read", (int)r->path.len,
                         r->path.ptr);
}

/* A file of any size may be read, but not for ever. */
static bool hfsbi_read_over(const hfsbi_line_reader *r, hfsb_err *err) {
    if (hfsbi_call_cancelled(r->call)) {
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

/* What is to be known of every block of the file. */
static void hfsbi_line_reader_note(hfsbi_line_reader *r, hfsb_str text) {
    if (r->bytes == 0)
        r->binary =
            hfsb_str_find_byte(hfsb_str_slice(text, 0, HFSBI_READ_PROBE),
                               '\0') != HFSB_NPOS;
    r->bytes += text.len;
    r->newlines += hfsb_str_count_byte(text, '\n');
    if (text.len) r->last_byte = text.ptr[text.len - 1];
    if (r->hashing) hfsb_sha256_write(&r->sha, text);
}

static hfsb_status hfsbi_line_reader_run(hfsbi_line_reader *r, hfsb_err *err) {
    char        block[HFSBI_READ_BLOCK];
    hfsb_status st = HFSB_OK;
    bool        again = r->at_end; /* all was read once, and noted */
    if (r->info.size)              /* most files are small and read whole */
        st = hfsb_buf_reserve(r->out, hfsbi_read_guess(r->info.size));
    r->at_end = false;
    while (st == HFSB_OK && hfsbi_line_reader_goes_on(r)) {
        ssize_t  n = hfsbi_read_block(r->fd, block, sizeof block);
        hfsb_str text = hfsb_str_make(block, n > 0 ? (size_t)n : 0);
        if (n < 0) return hfsbi_read_fails(r, err);
        if (hfsbi_read_over(r, err)) return HFSB_LIMIT;
        r->at_end = text.len < sizeof block;
        if (!again) hfsbi_line_reader_note(r, text);
        if (!r->binary && text.len && !r->full)
            st = hfsbi_line_reader_take(r, text);
    }
    /* the last line wanted may be the last there is */
    if (st == HFSB_OK && !r->at_end && r->bytes >= r->info.size)
        r->at_end = hfsbi_read_block(r->fd, block, 1) == 0;
    if (st == HFSB_OK && r->at_end && r->open && !r->full)
        st = hfsbi_line_end(r, HFSB_LIT(""), false);
    if (again) r->at_end = true;
    return st;
}

/* ---- from the end ---- */

static unsigned long long hfsbi_line_count(const hfsbi_line_reader *r) {
    return r->newlines + (r->bytes && r->last_byte != '\n');
}

/* Byte offset of the line that is `back` lines before the end of the file: the
   file is read backwards until enough newlines were seen. */
static bool hfsbi_line_reader_seek(hfsbi_line_reader *r,
                                   unsigned long long back) {
    char               block[HFSBI_READ_BLOCK];
    unsigned long long at = r->bytes, left = back;
    size_t             n, i;
    if (r->bytes && r->last_byte == '\n') left++;
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

/* Counts all lines, for their numbers, and goes to the first that is wanted. */
static hfsb_status hfsbi_line_reader_from_end(hfsbi_line_reader *r,
                                              long long          offset,
                                              hfsb_err          *err) {
    char               block[HFSBI_READ_BLOCK];
    unsigned long long back = 0 - (unsigned long long)offset, lines;
    ssize_t            n = 1;
    r->hashing = true;
    while (n > 0 && !r->binary) {
        n = hfsbi_read_block(r->fd, block, sizeof block);
        if (n > 0) hfsbi_line_reader_note(r, hfsb_str_make(block, (size_t)n));
        if (hfsbi_read_over(r, err)) return HFSB_LIMIT;
    }
    lines = hfsbi_line_count(r);
    if (back > lines) back = lines;
    r->first = r->line = lines - back + 1;
    r->at_end = true;
    if (n < 0 || (!r->binary && !hfsbi_line_reader_seek(r, back)))
        return hfsbi_read_fails(r, err);
    return HFSB_OK;
}

/* ---- pictures ---- */

static hfsb_status hfsbi_image_large(hfsb_call               *call,
                                     const hfsbi_line_reader *r,
                                     const hfsbi_image       *image) {
    return hfsbi_result_fail(
        &call->result, HFSB_LIMIT,
        "%.*s is too large to be shown (%s, %lux%lu, %llu bytes; the limit is "
        "%d a side and %d bytes). Make a smaller copy with a command, such as "
        "ImageMagick's convert "
        "with -resize 1024x1024 or python3 with Pillow, and read that.",
        (int)r->path.len, r->path.ptr, image->mime, image->width,
        image->height, r->info.size > r->bytes ? r->info.size : r->bytes,
        HFSBI_IMAGE_SIDE, HFSBI_IMAGE_MAX);
}

/* The bytes of the file in base64, as they are read; r->bytes counts them. */
static hfsb_status hfsbi_image_data(hfsbi_line_reader *r, hfsb_buf *out,
                                    hfsb_err *err) {
    char        block[HFSBI_IMAGE_BLOCK];
    hfsb_status st = hfsb_buf_reserve(out, (size_t)r->info.size / 3 * 4 + 256);
    while (st == HFSB_OK && !r->at_end && r->bytes <= HFSBI_IMAGE_MAX) {
        ssize_t  n = hfsbi_read_block(r->fd, block, sizeof block);
        hfsb_str text = hfsb_str_make(block, n > 0 ? (size_t)n : 0);
        if (n < 0) return hfsbi_read_fails(r, err);
        r->at_end = text.len < sizeof block;
        r->bytes += text.len;
        hfsb_sha256_write(&r->sha, text);
        st = hfsb_base64_encode(text, out);
    }
    return st;
}

/* The file is open and holds a picture. */
static hfsb_status hfsbi_read_image(hfsb_call *call, hfsbi_line_reader *r,
                                    const hfsbi_image *image, hfsb_err *err) {
    hfsb_buf    data = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX];
    hfsb_status st;
    if (r->info.size > HFSBI_IMAGE_MAX || image->width > HFSBI_IMAGE_SIDE ||
        image->height > HFSBI_IMAGE_SIDE)
        return hfsbi_image_large(call, r, image);
    hfsb_sha256_init(&r->sha);
    data.alloc = call->tools->alloc;
    st = hfsbi_image_data(r, &data, err);
    if (st == HFSB_OK && r->bytes > HFSBI_IMAGE_MAX) {
        st = hfsbi_image_large(call, r, image);
    } else if (st == HFSB_OK) {
        hfsbi_sha256_finish_hex(&r->sha, hex);
        hfsbi_build_str(&call->fields, "mime_type", hfsb_cstr(image->mime));
        hfsbi_build_str(&call->fields, "data", hfsb_buf_str(&data));
        hfsbi_build_int(&call->fields, "size", (long long)r->bytes);
        hfsbi_build_str(&call->fields, "sha256", hfsb_cstr(hex));
        st = hfsbi_result_ok(&call->result, "%s, %lux%lu, %llu bytes",
                             image->mime, image->width, image->height,
                             r->bytes);
    } else if (st != HFSB_NOMEM) {
        st = hfsbi_result_err(&call->result, err);
    }
    hfsb_buf_free(&data);
    return st;
}

/* What the file is when pictures are wanted; the place in it stays. */
static hfsbi_image hfsbi_read_look(const hfsbi_line_reader *r) {
    char    head[HFSBI_IMAGE_HEAD];
    size_t  got = 0;
    ssize_t n;
    do {
        n = pread(r->fd, head + got, sizeof head - got, (off_t)got);
        if (n > 0) got += (size_t)n;
    } while (got < sizeof head && (n > 0 || (n < 0 && errno == EINTR)));
    return hfsbi_image_look(hfsb_str_make(head, got));
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
    HFSBI_PARAM("offset", HFSBI_ARG_INT, 0, hfsbi_read_args, offset,
                "First line, from 1; negative: from the end"),
    HFSBI_PARAM_RANGE("limit", HFSBI_ARG_INT, HFSBI_NULL_IS_0, hfsbi_read_args,
                      limit, "Lines, default 2000; 0: all", 0, LLONG_MAX,
                      HFSBI_READ_LINES,
                      "a number of lines from 0 on (0: all of them)"),
    HFSBI_PARAM("image", HFSBI_ARG_SWITCH, HFSBI_UNLISTED, hfsbi_read_args,
                image, NULL),
    HFSBI_PARAM_END};

/* sha256 of a file that was read to its end; "" when it cannot be had. */
static void hfsbi_read_sha256(hfsbi_line_reader *r,
                              char               hex[HFSB_SHA256_HEX]) {
    hex[0] = '\0';
    if (!r->at_end || r->binary) return;
    if (r->hashing) hfsbi_sha256_finish_hex(&r->sha, hex);
    else if (lseek(r->fd, 0, SEEK_SET) != 0 || !hfsbi_fd_sha256(r->fd, hex))
        hex[0] = '\0';
}

static void hfsbi_read_fields(hfsbi_build *fields, hfsbi_line_reader *r) {
    char               hex[HFSB_SHA256_HEX];
    unsigned long long lines = hfsbi_line_count(r);
    bool               more = r->full || !r->at_end || r->last < lines;
    hfsbi_read_sha256(r, hex);
    hfsbi_build_int(fields, "size",
                    (long long)(r->at_end ? r->bytes : r->info.size));
    if (r->at_end) hfsbi_build_int(fields, "total_lines", (long long)lines);
    if (hex[0]) hfsbi_build_str(fields, "sha256", hfsb_cstr(hex));
    hfsbi_build_bool(fields, "truncated", r->full || r->cut);
    if (more)
        hfsbi_build_int(fields, "next_offset",
                        (long long)(r->full ? r->line : r->last + 1));
}

static hfsb_status hfsbi_read_result(hfsb_call *call, hfsbi_line_reader *r) {
    hfsb_status st = HFSB_OK;
    if (r->binary)
        return hfsbi_result_fail(
            &call->result, HFSB_REFUSED,
            "%.*s is binary (%llu bytes, a NUL byte near the start). To see "
            "its bytes use a command such as xxd, od -c or base64.",
            (int)r->path.len, r->path.ptr,
            r->info.size > r->bytes ? r->info.size : r->bytes);
    call->result.success = true;
    hfsbi_read_fields(&call->fields, r);
    if (r->bad_utf8)
        st = hfsb_buf_printf(&call->notes,
                             "\n(bytes that are not UTF-8 are shown as "
                             "\xEF\xBF\xBD)");
    if (st == HFSB_OK && r->full)
        st = hfsb_buf_printf(&call->notes,
                             "\n(the reply is full; go on with offset %llu)",
                             r->line);
    return st;
}

/* The file is open: reads it and writes the result. */
static hfsb_status hfsbi_read_lines(hfsb_call *call, hfsbi_line_reader *r,
                                    long long offset, long long limit,
                                    hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    r->line = 1;
    r->first = offset > 0 ? (unsigned long long)offset : 1;
    r->hashing = r->info.size <= HFSBI_READ_HASH;
    hfsb_sha256_init(&r->sha);
    if (offset < 0) st = hfsbi_line_reader_from_end(r, offset, err);
    r->last = (unsigned long long)-1;
    if (limit) r->last = r->first + (unsigned long long)limit - 1;
    if (st == HFSB_OK && !r->binary) st = hfsbi_line_reader_run(r, err);
    if (st == HFSB_OK) return hfsbi_read_result(call, r);
    return st == HFSB_NOMEM ? st : hfsbi_result_err(&call->result, err);
}

/* A session may read the spill files it was told of, also under a root: the
   file itself, not what a link that took its place leads to. */
static hfsb_status hfsbi_read_open(hfsb_tools *tools, hfsbi_line_reader *r,
                                   hfsb_err *err) {
    const int   flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;
    char       *path = NULL;
    bool        spill;
    r->fd = -1;
    pthread_mutex_lock(&tools->lock);
    spill = hfsbi_spills_has(&tools->spills, r->path);
    pthread_mutex_unlock(&tools->lock);
    if (!spill)
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

static hfsb_status hfsbi_run_read(hfsb_call *call, const void *args,
                                  hfsb_err *err) {
    const hfsbi_read_args *a = (const hfsbi_read_args *)args;
    hfsb_tools            *tools = call->tools;
    hfsbi_image            image = HFSB_INIT;
    hfsbi_line_reader      r;
    hfsb_status            st;
    memset(&r, 0, sizeof r);
    r.text.alloc = tools->alloc;
    r.call = call;
    r.until = hfsb_clock_ms() + HFSBI_READ_MS;
    r.out = &call->result.output;
    r.path = a->path;
    /* Who asks for more lines than a model reads wants the content as it is:
       whole lines, and nothing else in the output. */
    r.whole = a->limit == 0 || a->limit > HFSBI_READ_LINES;
    call->notes_apart = r.whole;
    if (hfsbi_read_open(tools, &r, err) != HFSB_OK)
        return hfsbi_result_err(&call->result, err);
    if (a->image < 0 ? call->opts.images : a->image == 1)
        image = hfsbi_read_look(&r);
    st = image.mime ? hfsbi_read_image(call, &r, &image, err)
                    : hfsbi_read_lines(call, &r, a->offset ? a->offset : 1,
                                       a->limit, err);
    hfsbi_close(&r.fd);
    hfsb_buf_free(&r.text);
    if (st == HFSB_OK && call->result.success) hfsbi_seen_add(tools, r.path);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_read(void) {
    static const hfsbi_tool row = {
        "read",
        "Read a file",
        "Read lines of a text file, each behind its number and a tab. Read a "
        "file before you change it.",
        NULL,
        HFSBI_TOOL_READS,
        false,
        hfsbi_read_params,
        hfsbi_run_read};
    return &row;
}
