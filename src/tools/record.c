/* record.c - what a command printed. */
#include "tools_private.h"

enum {
    HFSBI_REPLY_CHARS = 25000, /* longest text that a reply shows whole */
    HFSBI_REPLY_TAIL = HFSBI_REPLY_CHARS - HFSBI_REPLY_CHARS / 4,
    HFSBI_LOG_KEEP = 48 * 1024, /* of the end, once there is a spill file */
    HFSBI_LOG_SLACK = 4 * HFSBI_REPLY_CHARS + 4096, /* a whole reply fits */
    HFSBI_RECORD_BLOCK = 32 * 1024 /* bytes cleaned at a time: more than the
                                       tail of a reply, for speed */
};

/* ---- spill files ---- */

/* dir as an absolute path: a reply names it, and the reader of that may be
   anywhere. */
static char *hfsbi_spills_dir(const char *dir, const hfsb_alloc *alloc) {
    hfsb_buf path = HFSB_INIT;
    char     here[PATH_MAX], *copy = NULL;
    path.alloc = *alloc;
    if (*dir == '/' || !getcwd(here, sizeof here))
        return hfsbi_cstr_copy(alloc, hfsb_cstr(dir));
    if (hfsb_path_join(hfsb_cstr(here), hfsb_cstr(dir), &path) == HFSB_OK)
        copy = hfsbi_cstr_copy(alloc, hfsb_buf_str(&path));
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

static void hfsbi_spills_drop_oldest(hfsbi_spills *spills) {
    char *path = spills->paths[spills->first];
    (void)unlink(path);
    hfsbi_spill_path_free(spills, path);
    spills->first = (spills->first + 1) % spills->max;
    spills->count--;
}

HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills) {
    size_t i;
    while (spills->dropped && spills->count) hfsbi_spills_drop_oldest(spills);
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
        if (hfsb_str_equal(
                path,
                hfsb_cstr(spills->paths[(spills->first + i) % spills->max])))
            return true;
    return false;
}

/* A new file: its descriptor, and its path in *name. -1 when it cannot be
   made; *name is then empty. */
static int hfsbi_spills_make(hfsbi_spills *spills, hfsb_buf *name) {
    char  id[17];
    int   fd = -1, tries;
    char *copy;
    for (tries = 0; fd < 0 && tries < 8 && !spills->none; tries++) {
        hfsb_buf_truncate(name, 0);
        hfsbi_random_hex(id, sizeof id - 1);
        if (hfsb_buf_printf(name, "%s/bash_output_%s.txt", spills->dir, id) !=
            HFSB_OK)
            break;
        fd = open(name->ptr, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    fd = hfsbi_fd_above_2(fd);
    copy = fd < 0 ? NULL : hfsbi_cstr_copy(&spills->alloc, hfsb_buf_str(name));
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

HFSBI_FN bool hfsbi_record_init(hfsbi_record *r, hfsbi_spills *spills,
                                bool merged, const hfsb_alloc *alloc) {
    hfsb_text_limit limit = HFSB_INIT;
    int             i;
    limit.chars = HFSBI_REPLY_CHARS;
    memset(r, 0, sizeof *r);
    r->spill = r->stash = -1;
    r->alloc = r->piece.alloc = r->memory.alloc = r->path.alloc = *alloc;
    r->spills = spills;
    r->merged = merged;
    for (i = 0; i < 2; i++) {
        r->filter[i] = hfsb_text_filter_open(alloc);
        r->window[i] = hfsb_text_window_open(&limit, alloc);
        if (!r->filter[i] || !r->window[i]) {
            hfsbi_record_free(r);
            return false;
        }
    }
    return true;
}

/* What is needed only while the command runs. */
static void hfsbi_record_stop(hfsbi_record *r) {
    int i;
    for (i = 0; i < 2; i++) {
        hfsb_text_filter_close(r->filter[i]);
        hfsb_text_window_close(r->window[i]);
        r->filter[i] = NULL;
        r->window[i] = NULL;
    }
    hfsb_buf_free(&r->piece);
}

HFSBI_FN void hfsbi_record_free(hfsbi_record *r) {
    hfsbi_record_stop(r);
    hfsb_buf_free(&r->memory);
    hfsb_buf_free(&r->path);
    hfsbi_close(&r->spill);
    hfsbi_close(&r->stash);
}

/* Where a character begins, at or before `at`; at or behind it. */
static size_t hfsbi_char_before(hfsb_str text, size_t at) {
    while (at > 0 && at < text.len &&
           ((unsigned char)text.ptr[at] & 0xC0u) == 0x80u)
        at--;
    return at;
}

static size_t hfsbi_char_behind(hfsb_str text, size_t at) {
    while (at < text.len && ((unsigned char)text.ptr[at] & 0xC0u) == 0x80u)
        at++;
    return at;
}

/* Appends to a file up to a number of bytes in all; false when not all of it
   went in. A cut falls between characters, so that the file stays text. */
static bool hfsbi_write_capped(int fd, hfsb_str text, size_t max,
                               unsigned long long *written) {
    size_t room = *written < max ? max - (size_t)*written : 0;
    size_t n = hfsbi_char_before(text, text.len < room ? text.len : room);
    if (n > 0) {
        if (!hfsbi_write_all(fd, hfsb_str_slice(text, 0, n))) return false;
        *written += n;
    }
    return n == text.len;
}

static void hfsbi_log_save(hfsbi_record *r, hfsb_str text) {
    if (r->spill >= 0 && !r->full)
        r->full = !hfsbi_write_capped(r->spill, text, r->spills->max_bytes,
                                      &r->saved);
}

/* The text has become longer than a reply: from now on it is saved. `memory`
   still holds all of it. */
static void hfsbi_log_spill(hfsbi_record *r) {
    if (r->tried) return;
    r->tried = true;
    r->spill = hfsbi_spills_make(r->spills, &r->path);
    hfsbi_log_save(r, hfsb_buf_str(&r->memory));
}

/* `memory` lets go of its beginning once it is long and saved elsewhere. */
static void hfsbi_log_trim(hfsbi_record *r) {
    size_t drop;
    if (!r->tried || r->memory.len <= HFSBI_LOG_SLACK) return;
    drop = hfsbi_char_behind(hfsb_buf_str(&r->memory),
                             r->memory.len - HFSBI_LOG_KEEP);
    memmove(r->memory.ptr, r->memory.ptr + drop, r->memory.len - drop);
    hfsb_buf_truncate(&r->memory, r->memory.len - drop);
    r->memory_start += drop;
}

static void hfsbi_log_append(hfsbi_record *r, hfsb_str text) {
    if (!r->tried && hfsbi_record_truncated(r)) hfsbi_log_spill(r);
    hfsbi_log_save(r, text);
    r->total += text.len;
    if (r->tried &&
        text.len > HFSBI_LOG_SLACK) { /* only its end would stay anyway */
        text = hfsb_str_slice(
            text, hfsbi_char_behind(text, text.len - HFSBI_LOG_SLACK),
            text.len);
        hfsb_buf_truncate(&r->memory, 0);
        r->memory_start = r->total - text.len;
    }
    if (hfsb_buf_append(&r->memory, text) != HFSB_OK) {
        hfsb_buf_truncate(&r->memory, 0);
        r->memory_start = r->total;
        r->lost = true;
    }
    hfsbi_log_trim(r);
}

/* stderr waits for the end of stdout: in its window while it is short; before
   the window lets go of any, all goes to an unlinked file. `more` characters
   are about to come. */
static void hfsbi_stash_begin(hfsbi_record *r, size_t more) {
    hfsb_buf all = HFSB_INIT;
    if (r->stash_tried ||
        hfsb_text_window_total(r->window[1]) + more <= HFSBI_REPLY_CHARS)
        return;
    r->stash_tried = true;
    all.alloc = r->alloc;
    if (!r->spills->none) r->stash = hfsbi_unnamed_file(r->spills->dir);
    r->stash_full =
        r->stash < 0 ||
        hfsb_text_window_show(r->window[1], HFSB_LIT(""), &all) != HFSB_OK ||
        !hfsbi_write_capped(r->stash, hfsb_buf_str(&all), r->spills->max_bytes,
                            &r->stashed);
    hfsb_buf_free(&all);
}

static void hfsbi_stash_append(hfsbi_record *r, hfsb_str text) {
    r->stderr_total += text.len;
    if (r->stash_tried && !r->stash_full)
        r->stash_full = !hfsbi_write_capped(r->stash, text,
                                            r->spills->max_bytes, &r->stashed);
}

/* The cleaned text in r->piece. */
static void hfsbi_record_take(hfsbi_record *r, hfsb_proc_stream stream) {
    hfsb_str text = hfsb_buf_str(&r->piece);
    int      i = stream == HFSB_PROC_STDERR;
    if (text.len == 0) return;
    if (i == 1) hfsbi_stash_begin(r, hfsb_utf8_count(text));
    if (hfsb_text_window_write(r->window[i], text) != HFSB_OK) r->lost = true;
    if (i == 1) hfsbi_stash_append(r, text);
    else hfsbi_log_append(r, text);
    if (r->on_text) r->on_text(r->user, stream, text);
}

HFSBI_FN void hfsbi_record_write(hfsbi_record *r, hfsb_proc_stream stream,
                                 hfsb_str bytes) {
    int    i = stream == HFSB_PROC_STDERR;
    size_t n;
    r->taken += bytes.len;
    if (i == 0) {
        r->bytes += bytes.len;
        r->last_at = hfsb_clock_ms();
    }
    for (; bytes.len; bytes = hfsb_str_slice(bytes, n, bytes.len)) {
        n = bytes.len < HFSBI_RECORD_BLOCK ? bytes.len
                                           : (size_t)HFSBI_RECORD_BLOCK;
        hfsb_buf_truncate(&r->piece, 0);
        if (hfsb_text_filter_write(r->filter[i], hfsb_str_slice(bytes, 0, n),
                                   &r->piece) == HFSB_OK)
            hfsbi_record_take(r, stream);
        else r->lost = true;
    }
}

/* Not all of stderr was kept, only `done` bytes and what its window shows: the
   log goes on with the end of that. */
static void hfsbi_log_skip(hfsbi_record *r, unsigned long long done) {
    hfsb_str text;
    size_t   chars;
    r->full = true;
    r->total += r->stderr_total - done;
    hfsb_buf_truncate(&r->memory, 0);
    hfsb_buf_truncate(&r->piece, 0);
    if (hfsb_text_window_show(r->window[1], HFSB_LIT(""), &r->piece) ==
        HFSB_OK) {
        text = hfsb_buf_str(&r->piece);
        chars = hfsb_utf8_count(text);
        if (chars > HFSBI_REPLY_TAIL) /* not its head, nor the marker */
            text = hfsb_str_slice(
                text, hfsb_utf8_offset(text, chars - HFSBI_REPLY_TAIL),
                text.len);
        if (hfsb_buf_append(&r->memory, text) != HFSB_OK) r->lost = true;
    }
    r->memory_start = r->total - r->memory.len;
}

/* stderr behind stdout in the log, from the stash or the window. */
static void hfsbi_log_append_stderr(hfsbi_record *r) {
    char               block[16384];
    unsigned long long done = 0;
    if (!r->stash_tried) {
        hfsb_buf_truncate(&r->piece, 0);
        if (hfsb_text_window_show(r->window[1], HFSB_LIT(""), &r->piece) ==
            HFSB_OK)
            hfsbi_log_append(r, hfsb_buf_str(&r->piece));
        else r->lost = true;
        return;
    }
    while (r->stash >= 0 && done < r->stashed) {
        ssize_t n = pread(r->stash, block, sizeof block, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        hfsbi_log_append(r, hfsb_str_make(block, (size_t)n));
        done += (unsigned long long)n;
    }
    if (done == r->stderr_total) return;
    hfsbi_log_skip(r, done);
}

HFSBI_FN void hfsbi_record_finish(hfsbi_record *r) {
    int i;
    for (i = 0; i < 2; i++) {
        hfsb_buf_truncate(&r->piece, 0);
        if (hfsb_text_filter_finish(r->filter[i], &r->piece) != HFSB_OK)
            r->lost = true;
        hfsbi_record_take(r, i ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT);
    }
    hfsbi_log_append_stderr(r);
    hfsbi_close(&r->stash);
    hfsbi_close(&r->spill);
    if (r->path.len &&
        (r->saved == 0 || /* the disk is full; or others */
         !hfsbi_spills_has(r->spills, hfsb_buf_str(&r->path)))) {
        (void)unlink(r->path.ptr); /* have pushed it out already */
        hfsb_buf_truncate(&r->path, 0);
        r->saved = 0;
    }
}

HFSBI_FN void hfsbi_record_settle(hfsbi_record *r) {
    hfsbi_record_stop(r);
    if (!r->path.len || r->full) return;
    r->memory_start = r->total; /* it is all in the file, as far as it goes */
    hfsb_buf_free(&r->memory);
}

HFSBI_FN size_t hfsbi_record_held(const hfsbi_record *r) {
    return r->memory.len;
}

HFSBI_FN void hfsbi_record_forget(hfsbi_record *r) {
    hfsb_buf_free(&r->memory);
    r->memory_start = r->total;
}

HFSBI_FN size_t hfsbi_record_chars(const hfsbi_record *r) {
    return hfsb_text_window_total(r->window[0]) +
           hfsb_text_window_total(r->window[1]);
}

HFSBI_FN bool hfsbi_record_truncated(const hfsbi_record *r) {
    return hfsbi_record_chars(r) > HFSBI_REPLY_CHARS;
}

HFSBI_FN bool hfsbi_record_pending(const hfsbi_record *r) {
    hfsb_buf line = HFSB_INIT;
    bool     some;
    line.alloc = r->alloc;
    some = r->filter[0] &&
           hfsb_text_filter_peek(r->filter[0], &line) == HFSB_OK &&
           line.len > 0;
    hfsb_buf_free(&line);
    return some;
}

HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *r, hfsb_buf *out) {
    return hfsbi_text_windows_show(r->window[0], r->window[1],
                                   hfsb_buf_str(&r->path),
                                   r->full ? (size_t)r->saved : 0, out);
}

/* ---- the log from an offset ---- */

/* Up to max bytes of the spill file. Of a finished command it is closed, and
   may have been removed since: then nothing. */
static hfsb_status hfsbi_log_from_file(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out) {
    size_t      left = r->saved - from < max ? (size_t)(r->saved - from) : max;
    hfsb_status st = hfsb_buf_reserve(out, left);
    int         again = -1, fd = r->spill;
    if (fd < 0)
        fd = again = open(r->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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
    hfsb_str text = hfsb_buf_str(out);
    size_t n = text.len > mark ? hfsbi_char_before(text, text.len - 1) : mark;
    unsigned long code;
    bool          valid = true;
    if (n > mark) (void)hfsb_utf8_step(text, n, &code, &valid);
    if (!valid) hfsb_buf_truncate(out, n);
}

HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out, unsigned long long *next,
                                       unsigned long long *gone_from,
                                       unsigned long long *gone_to) {
    size_t      mark = out->len, got;
    hfsb_status st = HFSB_OK;
    *gone_from = *gone_to = 0;
    if (from > r->total) from = r->total;
    if (from < r->memory_start && from >= r->saved) {
        *gone_from = from;
        *gone_to = from = r->memory_start;
    }
    if (from >= r->memory_start) {
        hfsb_str text = hfsb_buf_str(&r->memory);
        size_t   at = (size_t)(from - r->memory_start);
        size_t   n = text.len - at < max ? text.len - at : max;
        st = hfsb_buf_append(out, hfsb_str_slice(text, at, at + n));
    } else {
        st = hfsbi_log_from_file(r, from, max, out);
        if (st == HFSB_OK && out->len == mark) { /* the file is gone */
            *gone_from = from;
            *gone_to = from = r->memory_start;
        }
    }
    if (st == HFSB_OK && from + (out->len - mark) < r->total)
        hfsbi_cut_to_character(out, mark);
    got = out->len - mark;
    *next = from + got;
    if (st == HFSB_OK && *next == r->total && r->filter[0])
        st = hfsb_text_filter_peek(r->filter[0], out);
    if (st != HFSB_OK) hfsb_buf_truncate(out, mark);
    return st;
}
