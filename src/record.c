/* record.c - what a command printed. Depends on: text, os. */
#include "record.h"

enum {
    HFSBI_REPLY_CHARS = 25000,  /* longest text that a reply shows whole */
    HFSBI_LOG_KEEP = 48 * 1024, /* of the end, once there is a spill file */
    HFSBI_LOG_SLACK = 4 * HFSBI_REPLY_CHARS + 4096, /* a whole reply fits */
    HFSBI_RECORD_BLOCK = 16 * 1024 /* bytes that are cleaned at a time */
};

/* ---- spill files ---- */

/* dir as an absolute path: a reply names it, and the reader of that may be
   anywhere. */
static char *hfsbi_spills_dir(const char *dir, const hfsb_alloc *alloc) {
    hfsb_buf path = HFSB_INIT;
    char     here[PATH_MAX], *copy = NULL;
    path.alloc = *alloc;
    if (*dir == '/' || !getcwd(here, sizeof here))
        return hfsbi_terminated(alloc, hfsb_cstr(dir));
    if (hfsb_path_join(hfsb_cstr(here), hfsb_cstr(dir), &path) == HFSB_OK)
        copy = hfsbi_terminated(alloc, hfsb_buf_str(&path));
    hfsb_buf_free(&path);
    return copy;
}

HFSBI_FN bool hfsbi_spills_init(hfsbi_spills *spills, const char *dir,
                                size_t max, size_t max_bytes,
                                const hfsb_alloc *alloc) {
    memset(spills, 0, sizeof *spills);
    if (!dir) dir = getenv("TMPDIR");
    if (!dir || !*dir) dir = "/tmp";
    spills->alloc = *alloc;
    spills->max = max ? max : 32;
    spills->max_bytes = max_bytes ? max_bytes : (size_t)64 << 20;
    spills->paths = (char **)hfsbi_array(alloc, spills->max, sizeof(char *));
    spills->dir = hfsbi_spills_dir(dir, alloc);
    if (spills->paths && spills->dir) return true;
    hfsbi_spills_free(spills);
    return false;
}

static void hfsbi_spill_path_free(hfsbi_spills *spills, char *path) {
    hfsbi_array_free(&spills->alloc, path, strlen(path) + 1, 1);
}

HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills) {
    size_t i;
    for (i = 0; i < spills->count; i++)
        hfsbi_spill_path_free(
            spills, spills->paths[(spills->first + i) % spills->max]);
    hfsbi_array_free(&spills->alloc, spills->paths, spills->max,
                     sizeof(char *));
    if (spills->dir)
        hfsbi_array_free(&spills->alloc, spills->dir, strlen(spills->dir) + 1,
                         1);
    memset(spills, 0, sizeof *spills);
}

HFSBI_FN bool hfsbi_spills_has(const hfsbi_spills *spills, hfsb_str path) {
    size_t i;
    for (i = 0; i < spills->count; i++)
        if (hfsb_str_equal(path, hfsb_cstr(spills->paths[(spills->first + i) %
                                                         spills->max])))
            return true;
    return false;
}

static void hfsbi_spills_drop_oldest(hfsbi_spills *spills) {
    char *path = spills->paths[spills->first];
    (void)unlink(path);
    hfsbi_spill_path_free(spills, path);
    spills->first = (spills->first + 1) % spills->max;
    spills->count--;
}

/* A new file: its descriptor, and its path in *name. -1 when it cannot be
   made; *name is then empty. */
static int hfsbi_spills_make(hfsbi_spills *spills, hfsb_buf *name) {
    unsigned char id[6];
    int           fd = -1, tries;
    char         *copy;
    for (tries = 0; fd < 0 && tries < 8 && !spills->none; tries++) {
        hfsb_buf_truncate(name, 0);
        hfsbi_random(id, sizeof id);
        if (hfsb_buf_printf(name, "%s/bash_output_%02x%02x%02x%02x%02x%02x"
                                   ".txt",
                            spills->dir, id[0], id[1], id[2], id[3], id[4],
                            id[5]) != HFSB_OK)
            break;
        fd = open(name->ptr, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    fd = hfsbi_above_standard(fd);
    copy = fd < 0 ? NULL
                  : hfsbi_terminated(&spills->alloc, hfsb_buf_str(name));
    if (fd >= 0 && !copy) {
        (void)unlink(name->ptr);
        hfsbi_close(&fd);
    }
    if (fd < 0) {
        hfsb_buf_truncate(name, 0);
        return -1;
    }
    if (spills->count == spills->max) hfsbi_spills_drop_oldest(spills);
    spills->paths[(spills->first + spills->count++) % spills->max] = copy;
    return fd;
}

/* ---- one command ---- */

HFSBI_FN bool hfsbi_record_init(hfsbi_record *c, hfsbi_spills *spills,
                                 bool merged, const hfsb_alloc *alloc) {
    hfsb_text_limit limit = HFSB_INIT;
    int             i;
    limit.chars = HFSBI_REPLY_CHARS;
    memset(c, 0, sizeof *c);
    c->spill = c->stash = -1;
    c->alloc = c->piece.alloc = c->memory.alloc = c->path.alloc = *alloc;
    c->spills = spills;
    c->merged = merged;
    for (i = 0; i < 2; i++) {
        c->filter[i] = hfsb_text_filter_open(alloc);
        c->window[i] = hfsb_text_window_open(&limit, alloc);
        if (!c->filter[i] || !c->window[i]) {
            hfsbi_record_free(c);
            return false;
        }
    }
    return true;
}

/* What is needed only while the command runs. */
static void hfsbi_record_stop(hfsbi_record *c) {
    int i;
    for (i = 0; i < 2; i++) {
        hfsb_text_filter_close(c->filter[i]);
        hfsb_text_window_close(c->window[i]);
        c->filter[i] = NULL;
        c->window[i] = NULL;
    }
    hfsb_buf_free(&c->piece);
}

HFSBI_FN void hfsbi_record_free(hfsbi_record *c) {
    hfsbi_record_stop(c);
    hfsb_buf_free(&c->memory);
    hfsb_buf_free(&c->path);
    hfsbi_close(&c->spill);
    hfsbi_close(&c->stash);
}

/* Appends to a file up to a number of bytes in all; false when not all of it
   went in. A cut falls between characters, so that the file stays text. */
static bool hfsbi_write_capped(int fd, hfsb_str text, size_t max,
                               unsigned long long *written) {
    size_t room = *written < max ? max - (size_t)*written : 0;
    size_t n = text.len < room ? text.len : room;
    while (n > 0 && n < text.len &&
           ((unsigned char)text.ptr[n] & 0xC0u) == 0x80u)
        n--;
    if (n > 0) {
        if (!hfsbi_write_all(fd, hfsb_str_slice(text, 0, n))) return false;
        *written += n;
    }
    return n == text.len;
}

static void hfsbi_log_save(hfsbi_record *c, hfsb_str text) {
    if (c->spill >= 0 && !c->full)
        c->full = !hfsbi_write_capped(c->spill, text, c->spills->max_bytes,
                                      &c->saved);
}

/* The text has become longer than a reply: from now on it is saved. `memory`
   still holds all of it. */
static void hfsbi_log_spill(hfsbi_record *c) {
    if (c->tried) return;
    c->tried = true;
    c->spill = hfsbi_spills_make(c->spills, &c->path);
    hfsbi_log_save(c, hfsb_buf_str(&c->memory));
}

/* `memory` lets go of its beginning once it is long and saved elsewhere. */
static void hfsbi_log_trim(hfsbi_record *c) {
    size_t drop;
    if (!c->tried || c->memory.len <= HFSBI_LOG_SLACK) return;
    drop = c->memory.len - HFSBI_LOG_KEEP;
    while (drop < c->memory.len &&
           ((unsigned char)c->memory.ptr[drop] & 0xC0u) == 0x80u)
        drop++;
    memmove(c->memory.ptr, c->memory.ptr + drop, c->memory.len - drop);
    hfsb_buf_truncate(&c->memory, c->memory.len - drop);
    c->memory_start += drop;
}

static void hfsbi_log_append(hfsbi_record *c, hfsb_str text) {
    if (!c->tried && hfsbi_record_truncated(c)) hfsbi_log_spill(c);
    hfsbi_log_save(c, text);
    c->total += text.len;
    if (c->tried && text.len > HFSBI_LOG_SLACK) { /* only its end would stay anyway */
        size_t cut = text.len - HFSBI_LOG_SLACK;
        while (cut < text.len &&
               ((unsigned char)text.ptr[cut] & 0xC0u) == 0x80u)
            cut++;
        text = hfsb_str_slice(text, cut, text.len);
        hfsb_buf_truncate(&c->memory, 0);
        c->memory_start = c->total - text.len;
    }
    if (hfsb_buf_append(&c->memory, text) != HFSB_OK) {
        hfsb_buf_truncate(&c->memory, 0);
        c->memory_start = c->total;
        c->lost = true;
    }
    hfsbi_log_trim(c);
}

/* stderr waits for the end of stdout: in its window while it is short; before
   the window lets go of any, all goes to an unlinked file. `more` characters
   are about to come. */
static void hfsbi_stash_begin(hfsbi_record *c, size_t more) {
    hfsb_buf all = HFSB_INIT;
    if (c->stash_tried ||
        hfsb_text_window_total(c->window[1]) + more <= HFSBI_REPLY_CHARS)
        return;
    c->stash_tried = true;
    all.alloc = c->alloc;
    if (!c->spills->none) c->stash = hfsbi_unnamed_file(c->spills->dir);
    c->stash_full =
        c->stash < 0 ||
        hfsb_text_window_show(c->window[1], HFSB_LIT(""), &all) != HFSB_OK ||
        !hfsbi_write_capped(c->stash, hfsb_buf_str(&all),
                            c->spills->max_bytes, &c->stashed);
    hfsb_buf_free(&all);
}

static void hfsbi_stash_append(hfsbi_record *c, hfsb_str text) {
    c->stderr_total += text.len;
    if (c->stash_tried && !c->stash_full)
        c->stash_full = !hfsbi_write_capped(
            c->stash, text, c->spills->max_bytes, &c->stashed);
}

/* The cleaned text in c->piece. */
static void hfsbi_record_take(hfsbi_record *c, hfsb_proc_stream stream) {
    hfsb_str text = hfsb_buf_str(&c->piece);
    int      i = stream == HFSB_PROC_STDERR;
    if (text.len == 0) return;
    if (i == 1) hfsbi_stash_begin(c, hfsb_utf8_count(text));
    if (hfsb_text_window_write(c->window[i], text) != HFSB_OK) c->lost = true;
    if (i == 1) hfsbi_stash_append(c, text);
    else hfsbi_log_append(c, text);
    if (c->on_text) c->on_text(c->user, stream, text);
}

HFSBI_FN void hfsbi_record_write(hfsbi_record *c, hfsb_proc_stream stream,
                                 hfsb_str bytes) {
    int    i = stream == HFSB_PROC_STDERR;
    size_t n;
    if (i == 0) {
        c->bytes += bytes.len;
        c->last_at = hfsb_clock_ms();
    }
    for (; bytes.len; bytes = hfsb_str_slice(bytes, n, bytes.len)) {
        n = bytes.len < HFSBI_RECORD_BLOCK ? bytes.len
                                           : (size_t)HFSBI_RECORD_BLOCK;
        hfsb_buf_truncate(&c->piece, 0);
        if (hfsb_text_filter_write(c->filter[i], hfsb_str_slice(bytes, 0, n),
                                   &c->piece) == HFSB_OK)
            hfsbi_record_take(c, stream);
        else c->lost = true;
    }
}

/* stderr behind stdout in the log, from the stash or the window. */
static void hfsbi_log_append_stderr(hfsbi_record *c) {
    char               block[16384];
    unsigned long long done = 0;
    if (!c->stash_tried) {
        hfsb_buf_truncate(&c->piece, 0);
        if (hfsb_text_window_show(c->window[1], HFSB_LIT(""), &c->piece) ==
            HFSB_OK)
            hfsbi_log_append(c, hfsb_buf_str(&c->piece));
        else c->lost = true;
        return;
    }
    while (c->stash >= 0 && done < c->stashed) {
        ssize_t n = pread(c->stash, block, sizeof block, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        hfsbi_log_append(c, hfsb_str_make(block, (size_t)n));
        done += (unsigned long long)n;
    }
    if (done == c->stderr_total) return;
    /* a gap: what follows it is only in the window */
    c->full = true;
    c->total += c->stderr_total - done;
    hfsb_buf_truncate(&c->memory, 0);
    c->memory_start = c->total;
}

HFSBI_FN void hfsbi_record_finish(hfsbi_record *c) {
    int i;
    for (i = 0; i < 2; i++) {
        hfsb_buf_truncate(&c->piece, 0);
        if (hfsb_text_filter_finish(c->filter[i], &c->piece) != HFSB_OK)
            c->lost = true;
        hfsbi_record_take(c, i ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT);
    }
    hfsbi_log_append_stderr(c);
    hfsbi_close(&c->stash);
    hfsbi_close(&c->spill);
    if (c->path.len && !hfsbi_spills_has(c->spills, hfsb_buf_str(&c->path))) {
        hfsb_buf_truncate(&c->path, 0); /* others have pushed it out */
        c->saved = 0;
    }
}

HFSBI_FN void hfsbi_record_settle(hfsbi_record *c) {
    hfsbi_record_stop(c);
    if (!c->path.len || c->full) return;
    c->memory_start = c->total; /* it is all in the file, as far as it goes */
    hfsb_buf_free(&c->memory);
}

HFSBI_FN size_t hfsbi_record_held(const hfsbi_record *c) {
    return c->memory.len;
}

HFSBI_FN void hfsbi_record_forget(hfsbi_record *c) {
    hfsb_buf_free(&c->memory);
    c->memory_start = c->total;
}

HFSBI_FN size_t hfsbi_record_chars(const hfsbi_record *c) {
    return hfsb_text_window_total(c->window[0]) +
           hfsb_text_window_total(c->window[1]);
}

HFSBI_FN bool hfsbi_record_truncated(const hfsbi_record *c) {
    return hfsbi_record_chars(c) > HFSBI_REPLY_CHARS;
}

HFSBI_FN bool hfsbi_record_pending(const hfsbi_record *c) {
    hfsb_buf line = HFSB_INIT;
    bool     some;
    line.alloc = c->alloc;
    some = c->filter[0] &&
           hfsb_text_filter_peek(c->filter[0], &line) == HFSB_OK &&
           line.len > 0;
    hfsb_buf_free(&line);
    return some;
}

HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *c,
                                        hfsb_buf            *out) {
    return hfsbi_text_windows_show(c->window[0], c->window[1],
                                   hfsb_buf_str(&c->path),
                                   c->full ? (size_t)c->saved : 0, out);
}

/* ---- the log from an offset ---- */

/* Up to max bytes of the spill file. Of a finished command it is closed, and
   may have been removed since: then nothing. */
static hfsb_status hfsbi_log_from_file(const hfsbi_record *c,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out) {
    size_t      left = c->saved - from < max ? (size_t)(c->saved - from) : max;
    hfsb_status st = hfsb_buf_reserve(out, left);
    int         again = -1, fd = c->spill;
    if (fd < 0)
        fd = again = open(c->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && st == HFSB_OK && left > 0) {
        ssize_t n = pread(fd, out->ptr + out->len, left, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
        from += (unsigned long long)n;
        left -= (size_t)n;
    }
    hfsbi_close(&again);
    return st;
}

/* Cuts out[mark..] so that it does not end inside a character. */
static void hfsbi_cut_to_character(hfsb_buf *out, size_t mark) {
    size_t        n = out->len;
    unsigned long code;
    bool          valid;
    while (n > mark && ((unsigned char)out->ptr[n - 1] & 0xC0u) == 0x80u) n--;
    if (n == mark) return;
    n--;
    (void)hfsb_utf8_step(hfsb_buf_str(out), n, &code, &valid);
    if (!valid) hfsb_buf_truncate(out, n);
}

HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *c,
                                        unsigned long long from, size_t max,
                                        hfsb_buf           *out,
                                        unsigned long long *next,
                                        unsigned long long *gone_from,
                                        unsigned long long *gone_to) {
    size_t      mark = out->len, got;
    hfsb_status st = HFSB_OK;
    *gone_from = *gone_to = 0;
    if (from > c->total) from = c->total;
    if (from < c->memory_start && from >= c->saved) {
        *gone_from = from;
        *gone_to = from = c->memory_start;
    }
    if (from >= c->memory_start) {
        hfsb_str text = hfsb_buf_str(&c->memory);
        size_t   at = (size_t)(from - c->memory_start);
        size_t   n = text.len - at < max ? text.len - at : max;
        st = hfsb_buf_append(out, hfsb_str_slice(text, at, at + n));
    } else {
        st = hfsbi_log_from_file(c, from, max, out);
        if (st == HFSB_OK && out->len == mark) { /* the file is gone */
            *gone_from = from;
            *gone_to = from = c->memory_start;
        }
    }
    if (st == HFSB_OK && from + (out->len - mark) < c->total)
        hfsbi_cut_to_character(out, mark);
    got = out->len - mark;
    *next = from + got;
    if (st == HFSB_OK && *next == c->total && c->filter[0])
        st = hfsb_text_filter_peek(c->filter[0], out);
    if (st != HFSB_OK) hfsb_buf_truncate(out, mark);
    return st;
}
