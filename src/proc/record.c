/* record.c - the output of a command, kept in bounded memory.

   Output is cleaned as it arrives. stdout goes to its window, which a reply
   shows, and to the log, which bash_output reads. stderr comes after stdout in
   the log, so it waits until the end: in its window while it is short, then in
   an unnamed file, the stash.

       init --> write ... --> finish --> show, read --> settle --> read, free
                  |             stderr is moved to the log
                  read

   The log starts in memory. Once the text is too long for one reply, or longer
   than the option spill_over, the whole log goes to a spill file that the reply
   names, and memory keeps its end.

   What always holds: log offsets never change; spill file, stash and memory
   have limits; every cut falls between characters. Failing to create or write
   a file loses old output, but never fails the command.

   Spill files outlive their command. The oldest is removed when there are too
   many, or too many bytes in all of them, of this object and those that share
   its store; only files created by hfsb are ever removed. */
#include "proc_private.h"

enum {
    HFSBI_REPLY_CHARS = 25000, /* longest text that a reply shows whole */
    /* characters of the end that a reply to longer output shows */
    HFSBI_REPLY_TAIL = HFSBI_REPLY_CHARS - HFSBI_REPLY_CHARS / 4,
    HFSBI_LOG_KEEP = 48 * 1024, /* bytes kept in memory after a trim */
    /* bytes in memory that cause a trim: a whole reply fits */
    HFSBI_LOG_SLACK = 4 * HFSBI_REPLY_CHARS + 4096,
    HFSBI_RECORD_BLOCK = 32 * 1024, /* bytes cleaned at a time: more than the
                                      tail of a reply, for speed */
    HFSBI_LINE_CHARS = 500, /* of an unfinished line, for on_line */
    HFSBI_SPILLS_SHARE = 8,     /* spill files of full size that may exist */
    HFSBI_SPILLS_NAMES = 10000, /* of a directory that are examined */
    HFSBI_SPILLS_SWEEP = 1024,  /* files that others left, examined */
    HFSBI_SPILLS_AGE = 3600     /* seconds that these are kept */
};

/* ---- spill files ---- */

/* A copy of dir as an absolute path, since the reader of a reply may have
   another working directory. NULL when out of memory. */
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

/* A store serves one object, and those that were opened like it. */
static hfsbi_spill_store *hfsbi_spill_store_open(size_t max, size_t max_bytes,
                                                 const hfsb_alloc *alloc) {
    hfsbi_spill_store *store =
        (hfsbi_spill_store *)hfsbi_array(alloc, 1, sizeof *store);
    if (!store) return NULL;
    memset(store, 0, sizeof *store);
    store->list = (hfsbi_spill *)hfsbi_array(alloc, max, sizeof *store->list);
    if (!store->list) {
        hfsbi_array_free(alloc, store, 1, sizeof *store);
        return NULL;
    }
    store->alloc = *alloc;
    store->max = max;
    store->max_bytes = (unsigned long long)max_bytes;
    if (store->max_bytes < ULLONG_MAX / HFSBI_SPILLS_SHARE)
        store->max_bytes *= HFSBI_SPILLS_SHARE;
    (void)pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* Forgets one file, and removes it with `unlinks`. */
static void hfsbi_spill_drop(hfsbi_spill_store *store, size_t i,
                             bool unlinks) {
    hfsbi_spill *spill = &store->list[i];
    if (unlinks) (void)unlink(spill->path);
    store->bytes -= spill->bytes;
    hfsbi_array_free(&store->alloc, spill->path, strlen(spill->path) + 1, 1);
    store->count--;
    memmove(spill, spill + 1, (store->count - i) * sizeof *spill);
}

static void hfsbi_spill_store_close(hfsbi_spill_store *store) {
    hfsb_alloc alloc = store->alloc;
    while (store->count) hfsbi_spill_drop(store, store->count - 1, false);
    hfsbi_array_free(&alloc, store->list, store->max, sizeof *store->list);
    (void)pthread_mutex_destroy(&store->lock);
    hfsbi_array_free(&alloc, store, 1, sizeof *store);
}

HFSBI_FN bool hfsbi_spills_init(hfsbi_spills *spills, const char *dir,
                                size_t max, size_t max_bytes,
                                const hfsb_alloc *alloc) {
    memset(spills, 0, sizeof *spills);
    if (!dir) dir = getenv("TMPDIR");
    if (!dir || !*dir) dir = "/tmp";
    spills->alloc = *alloc;
    spills->max_bytes = max_bytes ? max_bytes : (size_t)64 << 20;
    spills->dir = hfsbi_spills_dir(dir, alloc);
    spills->store =
        hfsbi_spill_store_open(max ? max : 32, spills->max_bytes, alloc);
    if (spills->store) spills->store->users = 1;
    if (spills->dir && spills->store) return true;
    hfsbi_spills_free(spills);
    return false;
}

HFSBI_FN void hfsbi_spills_share(hfsbi_spills       *spills,
                                 const hfsbi_spills *with) {
    hfsbi_spill_store_close(spills->store);
    spills->store = with->store;
    pthread_mutex_lock(&spills->store->lock);
    spills->store->users++;
    pthread_mutex_unlock(&spills->store->lock);
}

/* The files of an object that is freed still count for the others. */
static void hfsbi_spills_leave(hfsbi_spills *spills) {
    hfsbi_spill_store *store = spills->store;
    size_t             i, users;
    pthread_mutex_lock(&store->lock);
    for (i = store->count; i-- > 0;) {
        if (store->list[i].owner != spills) continue;
        store->list[i].owner = NULL;
        if (spills->dropped) hfsbi_spill_drop(store, i, true);
    }
    users = --store->users;
    pthread_mutex_unlock(&store->lock);
    if (users == 0) hfsbi_spill_store_close(store);
}

HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills) {
    if (spills->store) hfsbi_spills_leave(spills);
    if (spills->dir)
        hfsbi_array_free(&spills->alloc, spills->dir, strlen(spills->dir) + 1,
                         1);
    memset(spills, 0, sizeof *spills);
}

/* The file at path of this object, or NULL. Under the lock. */
static hfsbi_spill *hfsbi_spills_find(const hfsbi_spills *spills,
                                      hfsb_str            path) {
    hfsbi_spill_store *store = spills->store;
    size_t             i;
    for (i = 0; i < store->count; i++)
        if (store->list[i].owner == spills &&
            hfsb_str_equal(path, hfsb_cstr(store->list[i].path)))
            return &store->list[i];
    return NULL;
}

HFSBI_FN bool hfsbi_spills_has(hfsbi_spills *spills, hfsb_str path) {
    bool has;
    pthread_mutex_lock(&spills->store->lock);
    has = hfsbi_spills_find(spills, path) != NULL;
    pthread_mutex_unlock(&spills->store->lock);
    return has;
}

/* Counts bytes that were written to a file. Removes the oldest others while
   all have too many. */
static void hfsbi_spills_count(hfsbi_spills *spills, hfsb_str path,
                               unsigned long long bytes) {
    hfsbi_spill_store *store = spills->store;
    hfsbi_spill       *spill;
    pthread_mutex_lock(&store->lock);
    spill = hfsbi_spills_find(spills, path);
    if (spill) {
        spill->bytes += bytes;
        store->bytes += bytes;
    }
    while (store->bytes > store->max_bytes && store->count > 1 &&
           &store->list[0] != spill) {
        hfsbi_spill_drop(store, 0, true);
        if (spill) spill--;
    }
    pthread_mutex_unlock(&store->lock);
}

/* ---- spill files that others left ----

   The name tells whose file it is: bash_output_{pid}-{start}_{random}.txt. Of
   processes that have ended, the newest files of the last hour stay, as many
   as one object keeps: the caller of a program may still read them. */

typedef struct hfsbi_leftover {
    time_t at;
    char   name[96];
} hfsbi_leftover;

/* True for the name of a spill file whose process has ended. */
static bool hfsbi_spill_is_left(const char *name) {
    static const char  front[] = "bash_output_";
    char              *at;
    long               pid;
    unsigned long long start, now;
    if (strncmp(name, front, sizeof front - 1) != 0 ||
        strlen(name) >= sizeof((hfsbi_leftover *)0)->name)
        return false;
    pid = strtol(name + sizeof front - 1, &at, 10);
    if (pid <= 0 || *at != '-' || !hfsbi_is_digit(at[1])) return false;
    start = strtoull(at + 1, &at, 10);
    if (*at != '_' || strlen(at) != 1 + 16 + 4) return false;
    now = hfsbi_process_start(pid);
    if (now || start) return now != start;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static int hfsbi_leftover_order(const void *a, const void *b) {
    const hfsbi_leftover *x = (const hfsbi_leftover *)a;
    const hfsbi_leftover *y = (const hfsbi_leftover *)b;
    return x->at > y->at ? -1 : x->at < y->at;
}

/* Lists files that were left in a directory, at most max. */
static size_t hfsbi_spills_list_left(DIR *dir, hfsbi_leftover *list,
                                     size_t max) {
    struct dirent *entry;
    struct stat    st;
    size_t         n = 0, names = 0;
    while (n < max && names++ < HFSBI_SPILLS_NAMES &&
           (entry = readdir(dir)) != NULL) {
        if (!hfsbi_spill_is_left(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(st.st_mode) || st.st_uid != geteuid())
            continue;
        list[n].at = st.st_mtime;
        memcpy(list[n++].name, entry->d_name, strlen(entry->d_name) + 1);
    }
    return n;
}

static void hfsbi_spills_sweep(const hfsbi_spills *spills) {
    long long       now = hfsbi_time_ns() / 1000000000;
    DIR            *dir = opendir(spills->dir);
    hfsbi_leftover *list;
    size_t          i, n;
    if (!dir) return;
    list = (hfsbi_leftover *)hfsbi_array(&spills->alloc, HFSBI_SPILLS_SWEEP,
                                         sizeof *list);
    n = list ? hfsbi_spills_list_left(dir, list, HFSBI_SPILLS_SWEEP) : 0;
    if (n) hfsbi_sort(list, n, sizeof *list, hfsbi_leftover_order);
    for (i = 0; i < n; i++)
        if (i >= spills->store->max || now - list[i].at > HFSBI_SPILLS_AGE)
            (void)unlinkat(dirfd(dir), list[i].name, 0);
    if (list)
        hfsbi_array_free(&spills->alloc, list, HFSBI_SPILLS_SWEEP,
                         sizeof *list);
    (void)closedir(dir);
}

/* Opens a new file; -1 with *name empty. */
static int hfsbi_spill_open(const hfsbi_spills *spills, hfsb_buf *name) {
    long pid = (long)getpid();
    char id[17];
    int  fd = -1, tries;
    for (tries = 0; fd < 0 && tries < 8 && !spills->none; tries++) {
        hfsb_buf_truncate(name, 0);
        hfsbi_random_hex(id, sizeof id - 1);
        if (hfsb_buf_printf(name, "%s/bash_output_%ld-%llu_%s.txt",
                            spills->dir, pid, hfsbi_process_start(pid),
                            id) != HFSB_OK)
            break;
        fd = open(name->ptr, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    return hfsbi_fd_above_2(fd);
}

/* Creates a spill file, and removes the oldest if there are too many. Returns
   its descriptor with the path in *name, or -1 with *name empty. */
static int hfsbi_spills_create(hfsbi_spills *spills, hfsb_buf *name) {
    hfsbi_spill_store *store = spills->store;
    hfsbi_spill        spill = HFSB_INIT;
    int                fd = hfsbi_spill_open(spills, name);
    if (fd >= 0)
        spill.path = hfsbi_cstr_copy(&store->alloc, hfsb_buf_str(name));
    if (fd >= 0 && !spill.path) {
        (void)unlink(name->ptr);
        hfsbi_close(&fd);
    }
    if (fd < 0) {
        hfsb_buf_truncate(name, 0);
        return -1;
    }
    spill.owner = spills;
    pthread_mutex_lock(&store->lock);
    if (!store->swept) hfsbi_spills_sweep(spills);
    store->swept = true;
    if (store->count == store->max) hfsbi_spill_drop(store, 0, true);
    store->list[store->count++] = spill;
    pthread_mutex_unlock(&store->lock);
    return fd;
}

/* ---- one record ---- */

HFSBI_FN bool hfsbi_record_init(hfsbi_record *r, hfsbi_spills *spills,
                                bool merged, const hfsb_alloc *alloc) {
    hfsb_text_limit limit = HFSB_INIT;
    int             i;
    limit.chars = HFSBI_REPLY_CHARS;
    memset(r, 0, sizeof *r);
    r->spill.fd = r->stash.fd = -1;
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

/* Frees filters and windows, which only a running command needs. */
static void hfsbi_record_close_streams(hfsbi_record *r) {
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
    hfsbi_record_close_streams(r);
    hfsb_buf_free(&r->memory);
    hfsb_buf_free(&r->path);
    hfsbi_close(&r->spill.fd);
    hfsbi_close(&r->stash.fd);
}

/* Appends text to a file that may hold max bytes, *written of them so far.
   False if not all of it was written. Cuts between characters, so the file
   stays valid text. */
static bool hfsbi_write_capped(int fd, hfsb_str text, size_t max,
                               unsigned long long *written) {
    size_t room = *written < max ? max - (size_t)*written : 0;
    size_t n = hfsbi_utf8_floor(text, text.len < room ? text.len : room);
    if (n > 0) {
        if (!hfsbi_write_all(fd, hfsb_str_slice(text, 0, n))) return false;
        *written += n;
    }
    return n == text.len;
}

/* ---- the log ---- */

/* Appends text to the spill file, if there is one with room. */
static void hfsbi_log_save(hfsbi_record *r, hfsb_str text) {
    unsigned long long before = r->spill.bytes;
    if (r->spill.fd < 0 || r->spill.full) return;
    r->spill.full = !hfsbi_write_capped(r->spill.fd, text,
                                        r->spills->max_bytes, &r->spill.bytes);
    hfsbi_spills_count(r->spills, hfsb_buf_str(&r->path),
                       r->spill.bytes - before);
}

/* Creates the spill file. `memory` still contains the whole log, and goes into
   the file first. */
static void hfsbi_log_open_spill(hfsbi_record *r) {
    if (r->spill.tried) return;
    r->spill.tried = true;
    r->spill.fd = hfsbi_spills_create(r->spills, &r->path);
    hfsbi_log_save(r, hfsb_buf_str(&r->memory));
}

/* Drops the start of `memory` once it is long and saved. */
static void hfsbi_log_trim(hfsbi_record *r) {
    size_t drop;
    if (!r->spill.tried || r->memory.len <= HFSBI_LOG_SLACK) return;
    drop = hfsbi_utf8_ceil(hfsb_buf_str(&r->memory),
                           r->memory.len - HFSBI_LOG_KEEP);
    memmove(r->memory.ptr, r->memory.ptr + drop, r->memory.len - drop);
    hfsb_buf_truncate(&r->memory, r->memory.len - drop);
    r->memory_start += drop;
}

/* True when the log must be saved once text is appended. */
static bool hfsbi_log_is_long(const hfsbi_record *r, hfsb_str text) {
    size_t over = r->spills->over;
    return hfsbi_record_truncated(r) || (over && r->total + text.len > over);
}

/* Appends text to the log. When out of memory: drops the log in `memory`. */
static void hfsbi_log_append(hfsbi_record *r, hfsb_str text) {
    if (!r->spill.tried && hfsbi_log_is_long(r, text)) hfsbi_log_open_spill(r);
    hfsbi_log_save(r, text);
    r->total += text.len;
    if (r->spill.tried &&
        text.len > HFSBI_LOG_SLACK) { /* a trim would keep only its end */
        text = hfsb_str_slice(
            text, hfsbi_utf8_ceil(text, text.len - HFSBI_LOG_SLACK), text.len);
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

/* ---- both streams ---- */

/* Moves stderr from its window to a stash, an unnamed file, before the window
   drops any of it. `more` characters are about to arrive. */
static void hfsbi_stash_open(hfsbi_record *r, size_t more) {
    hfsb_buf all = HFSB_INIT;
    if (r->stash.tried ||
        hfsb_text_window_total(r->window[1]) + more <= HFSBI_REPLY_CHARS)
        return;
    r->stash.tried = true;
    all.alloc = r->alloc;
    if (!r->spills->none) r->stash.fd = hfsbi_unnamed_file(r->spills->dir);
    r->stash.full =
        r->stash.fd < 0 ||
        hfsb_text_window_show(r->window[1], HFSB_LIT(""), &all) != HFSB_OK ||
        !hfsbi_write_capped(r->stash.fd, hfsb_buf_str(&all),
                            r->spills->max_bytes, &r->stash.bytes);
    hfsb_buf_free(&all);
}

/* Counts text of stderr, and appends it to the stash if there is one. */
static void hfsbi_stash_append(hfsbi_record *r, hfsb_str text) {
    r->stderr_total += text.len;
    if (r->stash.tried && !r->stash.full)
        r->stash.full = !hfsbi_write_capped(
            r->stash.fd, text, r->spills->max_bytes, &r->stash.bytes);
}

/* Appends the cleaned text in r->piece to window and log or stash, and reports
   it to on_text. */
static void hfsbi_record_append(hfsbi_record *r, hfsb_proc_stream stream) {
    hfsb_str text = hfsb_buf_str(&r->piece);
    int      i = stream == HFSB_PROC_STDERR;
    if (text.len == 0) return;
    if (i == 1) hfsbi_stash_open(r, hfsb_utf8_count(text));
    if (hfsb_text_window_write(r->window[i], text) != HFSB_OK) r->lost = true;
    if (i == 1) hfsbi_stash_append(r, text);
    else hfsbi_log_append(r, text);
    r->lined[i] = false;
    if (r->on_text) r->on_text(r->user, stream, text);
}

/* Reports how the unfinished line looks now to on_line. */
static void hfsbi_record_report_line(hfsbi_record    *r,
                                     hfsb_proc_stream stream) {
    int i = stream == HFSB_PROC_STDERR;
    hfsb_buf_truncate(&r->piece, 0);
    if (!r->on_line ||
        hfsb_text_filter_peek(r->filter[i], &r->piece) != HFSB_OK ||
        (!r->piece.len && !r->lined[i]))
        return;
    r->lined[i] = r->piece.len > 0;
    r->on_line(r->user, stream,
               hfsb_str_slice(hfsb_buf_str(&r->piece), 0,
                              hfsb_utf8_offset(hfsb_buf_str(&r->piece),
                                               HFSBI_LINE_CHARS)));
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
            hfsbi_record_append(r, stream);
        else r->lost = true;
    }
    hfsbi_record_report_line(r, stream);
}

/* Handles a stash with only `done` bytes of stderr: skips log offsets up to
   the end of stderr, and keeps the tail that its window shows. */
static void hfsbi_log_skip_stderr(hfsbi_record *r, unsigned long long done) {
    hfsb_str text;
    size_t   chars;
    r->spill.full = true;
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

/* Appends stderr to the log, from the window or the stash. */
static void hfsbi_log_append_stderr(hfsbi_record *r) {
    char               block[16384];
    unsigned long long done = 0;
    if (!r->stash.tried) {
        hfsb_buf_truncate(&r->piece, 0);
        if (hfsb_text_window_show(r->window[1], HFSB_LIT(""), &r->piece) ==
            HFSB_OK)
            hfsbi_log_append(r, hfsb_buf_str(&r->piece));
        else r->lost = true;
        return;
    }
    while (r->stash.fd >= 0 && done < r->stash.bytes) {
        ssize_t n = pread(r->stash.fd, block, sizeof block, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        hfsbi_log_append(r, hfsb_str_make(block, (size_t)n));
        done += (unsigned long long)n;
    }
    if (done == r->stderr_total) return;
    hfsbi_log_skip_stderr(r, done);
}

HFSBI_FN void hfsbi_record_finish(hfsbi_record *r) {
    int i;
    for (i = 0; i < 2; i++) {
        hfsb_buf_truncate(&r->piece, 0);
        if (hfsb_text_filter_finish(r->filter[i], &r->piece) != HFSB_OK)
            r->lost = true;
        hfsbi_record_append(r, i ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT);
    }
    hfsbi_log_append_stderr(r);
    hfsbi_close(&r->stash.fd);
    hfsbi_close(&r->spill.fd);
    /* Do not name a spill file that is empty because the disk is full, or that
       newer ones have already replaced. */
    if (r->path.len &&
        (r->spill.bytes == 0 ||
         !hfsbi_spills_has(r->spills, hfsb_buf_str(&r->path)))) {
        (void)unlink(r->path.ptr);
        hfsb_buf_truncate(&r->path, 0);
        r->spill.bytes = 0;
    }
}

HFSBI_FN void hfsbi_record_settle(hfsbi_record *r) {
    hfsbi_record_close_streams(r);
    if (!r->path.len || r->spill.full) return;
    r->memory_start = r->total; /* the spill file contains the whole log */
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

HFSBI_FN hfsb_status hfsbi_record_show_stderr(const hfsbi_record *r,
                                              size_t max, hfsb_buf *out) {
    hfsb_buf    all = HFSB_INIT;
    hfsb_str    text;
    size_t      line;
    hfsb_status st;
    if (r->merged || !r->window[1]) return HFSB_OK;
    all.alloc = r->alloc;
    st = hfsb_text_window_show(r->window[1], HFSB_LIT(""), &all);
    if (st == HFSB_OK) st = hfsb_text_filter_peek(r->filter[1], &all);
    text = hfsbi_trim_end(hfsb_buf_str(&all));
    if (text.len > max) {
        text = hfsb_str_slice(text, hfsbi_utf8_ceil(text, text.len - max),
                              text.len);
        line = hfsb_str_find_byte(text, '\n');
        if (line != HFSB_NPOS) text = hfsb_str_slice(text, line + 1, text.len);
    }
    if (st == HFSB_OK) st = hfsb_buf_append(out, text);
    hfsb_buf_free(&all);
    return st;
}

HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *r, hfsb_buf *out) {
    return hfsbi_text_windows_show(
        r->window[0], r->window[1], hfsb_buf_str(&r->path),
        r->spill.full ? (size_t)r->spill.bytes : 0, out);
}

/* ---- reading the log ---- */

/* Appends up to max bytes of the spill file. After finish() the file is closed
   and may have been removed since; then nothing is appended. */
static hfsb_status hfsbi_log_read_spill(const hfsbi_record *r,
                                        unsigned long long from, size_t max,
                                        hfsb_buf *out) {
    size_t left =
        r->spill.bytes - from < max ? (size_t)(r->spill.bytes - from) : max;
    hfsb_status st = hfsb_buf_reserve(out, left);
    int         reopened = -1, fd = r->spill.fd;
    if (fd < 0)
        fd = reopened = open(r->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && st == HFSB_OK && left > 0) {
        ssize_t n = pread(fd, out->ptr + out->len, left, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
        from += (unsigned long long)n;
        left -= (size_t)n;
    }
    hfsbi_close(&reopened);
    return st;
}

/* Shortens out[mark..] so that it ends between characters. */
static void hfsbi_cut_to_char(hfsb_buf *out, size_t mark) {
    hfsb_str text = hfsb_buf_str(out);
    size_t   n = text.len > mark ? hfsbi_utf8_floor(text, text.len - 1) : mark;
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
    if (from < r->memory_start && from >= r->spill.bytes) {
        *gone_from = from;
        *gone_to = from = r->memory_start;
    }
    if (from >= r->memory_start) {
        hfsb_str text = hfsb_buf_str(&r->memory);
        size_t   at = (size_t)(from - r->memory_start);
        size_t   n = text.len - at < max ? text.len - at : max;
        st = hfsb_buf_append(out, hfsb_str_slice(text, at, at + n));
    } else {
        st = hfsbi_log_read_spill(r, from, max, out);
        if (st == HFSB_OK && out->len == mark) { /* the file was removed */
            *gone_from = from;
            *gone_to = from = r->memory_start;
        }
    }
    if (st == HFSB_OK && from + (out->len - mark) < r->total)
        hfsbi_cut_to_char(out, mark);
    got = out->len - mark;
    *next = from + got;
    if (st == HFSB_OK && *next == r->total && r->filter[0])
        st = hfsb_text_filter_peek(r->filter[0], out);
    if (st != HFSB_OK) hfsb_buf_truncate(out, mark);
    return st;
}
