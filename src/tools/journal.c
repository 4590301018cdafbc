/* journal.c - the record of every call: a ring in memory, and a file.

   An event is made of a call's data and written as one line of JSON:

       arguments --> brief --> event --> line --> file: one write(2) each
       (prepare)   (no secrets)           |
                                          +-----> ring --> /api/events

   The ring keeps the newest events, limited in number and bytes; older ones
   are lost to readers, who learn how many. Every event gets a number, even one
   for which there was no memory.

   The file is only ever appended to. A line that was cut, by a full disk or
   the end of an earlier run, is ended by a line feed before the next one, so
   that a reader skips one line that is not JSON. When the file is full it is
   renamed to PATH.1 and a new one begins. flock() lets one of several
   processes do that; the others find out when they look at the path, once a
   second.

   One lock protects everything. It is taken last: under the lock of a loop,
   and only a post to a loop happens under it. */
#include "tools_private.h"

enum {
    HFSBI_JOURNAL_EVENTS = 1000,
    HFSBI_JOURNAL_BYTES = 4 * 1024 * 1024,
    HFSBI_JOURNAL_SIZE = 64 * 1024 * 1024, /* of the file */
    HFSBI_JOURNAL_LOOK_MS = 1000, /* between looks at the path of the file */
    HFSBI_BRIEF_PATH = 1000,      /* bytes, like all below */
    HFSBI_BRIEF_COMMAND = 2000,
    HFSBI_BRIEF_USUAL = 200,
    HFSBI_BRIEF_TEXT = 200, /* of another argument */
    HFSBI_BRIEF_KEY = 48,   /* of a name */
    HFSBI_BRIEF_ALL = 6000, /* of a brief, roughly */
    HFSBI_BRIEF_KEYS = 16,  /* names of an object that are listed */
    HFSBI_EVENT_USUAL = 500,
    HFSBI_EVENT_ERROR = 300,
    HFSBI_EVENT_DIFF = 4000,
    HFSBI_HIDE_MORE = 1024, /* bytes after a cut that may belong to a secret */
    HFSBI_HIDE_SPACE = HFSBI_EVENT_DIFF + HFSBI_HIDE_MORE + 4
};

typedef struct hfsbi_journal_entry {
    unsigned long long seq;
    char              *line; /* without LF */
    size_t             len;
} hfsbi_journal_entry;

typedef struct hfsbi_journal_file {
    hfsb_buf           path; /* empty: no file */
    int                fd;   /* -1: not open */
    struct stat        st;   /* which file it is */
    unsigned long long size, max_size;
    long long          looked; /* hfsb_clock_ms() of the last look at path */
    bool               sync;
    bool               torn;   /* it does not end in LF */
    unsigned long long failed; /* lines, ever */
    unsigned long long lost;   /* of these, not reported in the file yet */
} hfsbi_journal_file;

struct hfsb_journal {
    hfsb_alloc           alloc;
    pthread_mutex_t      lock;
    char                 run[9];
    char                 stamp[64]; /* run and time of second stamp_at; the
                                       milliseconds change */
    size_t               stamp_len; /* 0: none yet */
    long long            stamp_at;
    unsigned long long   seq;  /* of the newest event */
    hfsbi_journal_entry *ring; /* `max` of them, oldest at `first` */
    size_t               first, count, max;
    size_t               bytes, max_bytes;
    hfsb_buf             line;    /* the event that is being written */
    hfsb_buf             secrets; /* each ends in NUL */
    hfsb_str            *hidden;  /* views of these */
    size_t               hidden_count, hidden_cap;
    hfsbi_journal_ear   *ears;
    hfsbi_journal_file   file;
    void (*on_event)(void *user, const hfsb_journal_event *event);
    void (*on_failure)(void *user, const char *message);
    void *user;
};

/* ---- secrets ---- */

static hfsb_str hfsbi_journal_secret(const void *owner, size_t i) {
    return ((const hfsb_journal *)owner)->hidden[i];
}

/* Returns at most max bytes of text without secrets, in `space`. What is cut
   off is replaced by dots. */
static hfsb_str hfsbi_journal_hide(const hfsb_journal *j, hfsb_str text,
                                   size_t max, char space[HFSBI_HIDE_SPACE]) {
    size_t n = text.len;
    bool   cut = n > max;
    if (n > max + HFSBI_HIDE_MORE) n = max + HFSBI_HIDE_MORE;
    if (n) memcpy(space, text.ptr, n);
    space[n] = '\0';
    if (j->hidden_count)
        n = hfsbi_redact(hfsbi_journal_secret, j, j->hidden_count, space, n);
    n = hfsbi_redact_shapes(space, n);
    if (n > max || cut) {
        if (n > max) n = max;
        while (n && ((unsigned char)space[n] & 0xC0) == 0x80) n--;
        memcpy(space + n, "...", 3);
        n += 3;
    }
    return hfsb_str_make(space, n);
}

/* Adds a value to the list of those that are hidden, as far as memory
   allows. */
static void hfsbi_journal_add_secret(hfsb_journal *j, hfsb_str value) {
    hfsb_str *grown;
    size_t    i, at = 0;
    for (i = 0; i < j->hidden_count; i++)
        if (hfsb_str_equal(j->hidden[i], value)) return;
    grown = (hfsb_str *)hfsbi_array_grow(&j->alloc, j->hidden, &j->hidden_cap,
                                         j->hidden_count + 1, sizeof *grown);
    if (!grown) return;
    j->hidden = grown;
    j->hidden[j->hidden_count].ptr = NULL;
    j->hidden[j->hidden_count].len = value.len;
    hfsb_buf_append(&j->secrets, value);
    if (hfsb_buf_append_byte(&j->secrets, '\0') == HFSB_OK) j->hidden_count++;
    for (i = 0; i < j->hidden_count; i++) { /* the buffer may have moved */
        j->hidden[i].ptr = j->secrets.ptr + at;
        at += j->hidden[i].len + 1;
    }
    hfsb_buf_truncate(&j->secrets, at);
}

HFSBI_FN void hfsbi_journal_hide_env(hfsb_journal *j, const char *const *env) {
    if (!j) return;
    (void)pthread_mutex_lock(&j->lock);
    for (; env && *env; env++) {
        hfsb_str name = hfsbi_env_name(*env);
        hfsb_str value = hfsb_cstr(*env + name.len);
        if (value.len > 8 && hfsbi_is_secret_name(name))
            hfsbi_journal_add_secret(j, hfsb_str_slice(value, 1, value.len));
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* ---- the arguments in short ---- */

/* Appends the key of a member, with a suffix, and the colon. */
static void hfsbi_brief_key(const hfsb_journal *j, hfsb_buf *out, hfsb_str key,
                            const char *suffix) {
    char     space[HFSBI_HIDE_SPACE];
    hfsb_str text = hfsbi_journal_hide(j, key, HFSBI_BRIEF_KEY, space);
    size_t   n = strlen(suffix);
    memcpy(space + text.len, suffix, n);
    if (out->len && out->ptr[out->len - 1] != '{')
        hfsb_buf_append_byte(out, ',');
    hfsbi_json_put_quoted(out, hfsb_str_make(space, text.len + n));
    hfsb_buf_append_byte(out, ':');
}

/* Appends the names of an object, not its values. */
static void hfsbi_brief_keys(const hfsb_journal *j, hfsb_buf *out,
                             const hfsb_json_value *object) {
    hfsb_json_iter it = hfsb_json_begin(object);
    char           space[HFSBI_HIDE_SPACE];
    size_t         n;
    hfsb_buf_append_byte(out, '[');
    for (n = 0; n < HFSBI_BRIEF_KEYS && hfsb_json_next(&it); n++) {
        if (n) hfsb_buf_append_byte(out, ',');
        hfsbi_json_put_quoted(
            out, hfsbi_journal_hide(j, it.key, HFSBI_BRIEF_KEY, space));
    }
    hfsb_buf_append_byte(out, ']');
}

static void hfsbi_brief_member(const hfsb_journal *j, hfsb_buf *out,
                               const hfsbi_param *p, hfsb_str key,
                               const hfsb_json_value *value) {
    char     space[HFSBI_HIDE_SPACE];
    hfsb_str text = hfsb_json_str(value, HFSB_LIT(""));
    switch (hfsb_json_type_of(value)) {
    case HFSB_JSON_STRING:
        if (p && p->flags & HFSBI_UNTOLD) {
            hfsbi_brief_key(j, out, key, "_bytes");
            hfsb_buf_printf(out, "%zu", text.len);
            break;
        }
        text = hfsbi_is_secret_name(key)
                   ? HFSB_LIT("***")
                   : hfsbi_journal_hide(j, text, HFSBI_BRIEF_TEXT, space);
        hfsbi_brief_key(j, out, key, "");
        hfsbi_json_put_quoted(out, text);
        break;
    case HFSB_JSON_OBJECT:
        hfsbi_brief_key(j, out, key, "");
        hfsbi_brief_keys(j, out, value);
        break;
    case HFSB_JSON_ARRAY:
        hfsbi_brief_key(j, out, key, "_count");
        hfsb_buf_printf(out, "%zu", hfsb_json_count(value));
        break;
    default:
        hfsbi_brief_key(j, out, key, "");
        (void)hfsb_json_write(value, NULL, out, NULL);
    }
}

/* Appends an argument that has a field of its own in events; true if it is a
   text. */
static bool hfsbi_brief_apart(const hfsb_journal *j, hfsb_buf *out,
                              const hfsb_json_value *arguments,
                              const char *key, size_t max) {
    const hfsb_json_value *value = hfsb_json_get(arguments, key);
    char                   space[HFSBI_HIDE_SPACE];
    if (hfsb_json_type_of(value) != HFSB_JSON_STRING) return false;
    hfsb_buf_append(
        out,
        hfsbi_journal_hide(j, hfsb_json_str(value, HFSB_LIT("")), max, space));
    return true;
}

HFSBI_FN void hfsbi_brief_fill(hfsb_journal *j, hfsbi_brief *brief,
                               const hfsbi_param     *params,
                               const hfsb_json_value *arguments, hfsb_str id) {
    hfsb_json_iter it = hfsb_json_begin(arguments);
    hfsb_buf      *out = &brief->text;
    bool           path, command;
    char           space[HFSBI_HIDE_SPACE];
    if (!j || hfsb_buf_reserve(out, HFSBI_BRIEF_USUAL) != HFSB_OK) return;
    (void)pthread_mutex_lock(&j->lock);
    path = hfsbi_brief_apart(j, out, arguments, "path", HFSBI_BRIEF_PATH);
    brief->path = out->len;
    command =
        hfsbi_brief_apart(j, out, arguments, "command", HFSBI_BRIEF_COMMAND);
    brief->command = out->len;
    hfsb_buf_append_byte(out, '{');
    if (id.ptr) {
        hfsbi_brief_key(j, out, HFSB_LIT("id"), "");
        hfsbi_json_put_quoted(
            out, hfsbi_journal_hide(j, id, HFSBI_BRIEF_TEXT, space));
    }
    while (hfsb_json_next(&it) && out->len < HFSBI_BRIEF_ALL)
        if (!(path && hfsb_str_equal(it.key, HFSB_LIT("path"))) &&
            !(command && hfsb_str_equal(it.key, HFSB_LIT("command"))))
            hfsbi_brief_member(
                j, out, params ? hfsbi_param_find(params, it.key) : NULL,
                it.key, it.value);
    hfsb_buf_append_byte(out, '}');
    (void)pthread_mutex_unlock(&j->lock);
    if (out->status == HFSB_OK) return;
    hfsb_buf_free(out);
    brief->path = brief->command = 0;
}

HFSBI_FN void hfsbi_brief_path(hfsb_journal *j, hfsbi_brief *brief,
                               hfsb_str path) {
    char space[HFSBI_HIDE_SPACE];
    if (!j) return;
    (void)pthread_mutex_lock(&j->lock);
    hfsb_buf_append(&brief->text,
                    hfsbi_journal_hide(j, path, HFSBI_BRIEF_PATH, space));
    (void)pthread_mutex_unlock(&j->lock);
    brief->path = brief->command = brief->text.len;
}

/* ---- an event as a line ---- */

/* Each call pays for this, so a line is built from few pieces, and without
   printf(), which would take longer than the rest. */

#define HFSBI_KEY(name) HFSB_LIT(",\"" name "\":")

static void hfsbi_event_int(hfsb_buf *out, hfsb_str key, long long value) {
    char text[64]; /* keys have less than 32 bytes */
    memcpy(text, key.ptr, key.len);
    key.len += hfsbi_number_write_int(value, text + key.len);
    hfsb_buf_append(out, hfsb_str_make(text, key.len));
}

static void hfsbi_event_text(const hfsb_journal *j, hfsb_buf *out,
                             hfsb_str key, hfsb_str text, size_t max) {
    char space[HFSBI_HIDE_SPACE];
    if (!text.len) return;
    hfsb_buf_append(out, key);
    hfsbi_json_put_quoted(out, hfsbi_journal_hide(j, text, max, space));
}

/* Puts a text without secrets, or with its secrets hidden. */
static void hfsbi_event_plain(hfsb_buf *out, hfsb_str key, hfsb_str text) {
    if (!text.len) return;
    hfsb_buf_append(out, key);
    hfsbi_json_put_quoted(out, text);
}

/* Puts run and time. The time of day is written once a second, the
   milliseconds each time. */
static void hfsbi_event_time(hfsb_journal *j) {
    long long now = hfsbi_time_ns() / 1000000, second = now / 1000;
    unsigned  ms = (unsigned)(now % 1000);
    char     *digits;
    if (!j->stamp_len || second != j->stamp_at) {
        hfsbi_date d = hfsbi_date_of(second);
        j->stamp_len = (size_t)snprintf(
            j->stamp, sizeof j->stamp,
            ",\"run\":\"%.8s\",\"time\":\"%04u-%02u-%02uT%02u:%02u:%02u"
            ".000Z\"",
            j->run, d.year % 10000, d.month % 100, d.day % 100, d.hour % 100,
            d.minute % 100, d.second % 100);
        j->stamp_at = second;
    }
    digits = j->stamp + j->stamp_len - sizeof "000Z\"" + 1;
    digits[0] = (char)('0' + ms / 100);
    digits[1] = (char)('0' + ms / 10 % 10);
    digits[2] = (char)('0' + ms % 10);
    hfsb_buf_append(&j->line, hfsb_str_make(j->stamp, j->stamp_len));
}

static void hfsbi_event_head(hfsb_journal *j, const hfsbi_event *e) {
    hfsb_buf *out = &j->line;
    hfsbi_event_int(out, HFSB_LIT("{\"seq\":"), (long long)j->seq);
    hfsbi_event_int(out, HFSBI_KEY("call"),
                    (long long)(e->call ? e->call : j->seq));
    hfsbi_event_time(j);
    hfsbi_event_plain(out, HFSBI_KEY("who"), hfsb_cstr(e->who));
    hfsbi_event_plain(out, HFSBI_KEY("tool"), hfsb_cstr(e->tool));
    hfsb_buf_append(out, e->result ? HFSB_LIT(",\"state\":\"done\"")
                         : e->job && !e->job->pid
                             ? HFSB_LIT(",\"state\":\"waiting\"")
                             : HFSB_LIT(",\"state\":\"running\""));
}

static void hfsbi_event_brief(hfsb_buf *out, const hfsbi_brief *b) {
    hfsb_str all = hfsb_buf_str(&b->text), rest;
    rest = hfsb_str_slice(all, b->command, all.len);
    hfsbi_event_plain(out, HFSBI_KEY("path"), hfsb_str_slice(all, 0, b->path));
    hfsbi_event_plain(out, HFSBI_KEY("command"),
                      hfsb_str_slice(all, b->path, b->command));
    if (rest.len <= 2) return; /* {} */
    hfsb_buf_append(out, HFSB_LIT(",\"arguments\":"));
    hfsb_buf_append(out, rest);
}

/* Puts how a command ended and what it used. */
static void hfsbi_event_end(hfsb_journal *j, const hfsbi_job *job) {
    hfsb_buf *out = &j->line;
    size_t    i;
    if (job->end.end == HFSB_PROC_EXITED)
        hfsbi_event_int(out, HFSBI_KEY("exit_code"), job->end.exit_code);
    if (job->end.end == HFSB_PROC_SIGNALED)
        hfsbi_event_int(out, HFSBI_KEY("signal"), job->end.signal);
    if (job->end.timed_out)
        hfsb_buf_append(out, HFSB_LIT(",\"timed_out\":true"));
    if (job->killed) hfsb_buf_append(out, HFSB_LIT(",\"killed\":true"));
    if (job->end.peak_bytes) {
        hfsbi_event_int(out, HFSBI_KEY("cpu_ms"), job->end.cpu_ms);
        hfsbi_event_int(out, HFSBI_KEY("peak_bytes"),
                        (long long)job->end.peak_bytes);
    }
    for (i = 0; i < job->left_count; i++) {
        hfsb_buf_printf(out, "%s{\"pid\":%ld", i ? "," : ",\"left_running\":[",
                        job->left[i].pid);
        hfsbi_event_text(j, out, HFSBI_KEY("command"),
                         hfsb_cstr(job->left[i].command), HFSBI_BRIEF_TEXT);
        hfsb_buf_append_byte(out, '}');
    }
    if (i) hfsb_buf_append_byte(out, ']');
}

/* The number of lines in "-3,2" or "+3" in the head of a hunk. */
static unsigned long long hfsbi_hunk_count(hfsb_str head, const char *mark) {
    size_t             at = hfsb_str_find(head, hfsb_cstr(mark));
    unsigned long long count = 1, first;
    if (at == HFSB_NPOS) return 0;
    head = hfsb_str_slice(head, at + strlen(mark), head.len);
    at = hfsbi_read_decimal(head, ~0ull >> 1, &first);
    head = hfsb_str_slice(head, at, head.len);
    if (hfsb_str_starts(head, HFSB_LIT(",")))
        (void)hfsbi_read_decimal(hfsb_str_slice(head, 1, head.len), ~0ull >> 1,
                                 &count);
    return count;
}

/* Counts the lines that a diff of any number of files adds and removes. A
   hunk ends by its counts: its lines may look like the head of a file. */
static void hfsbi_event_count_lines(hfsb_str diff, long long *added,
                                    long long *removed) {
    unsigned long long olds = 0, news = 0; /* left of the hunk */
    hfsb_str           line;
    while (hfsb_text_line(&diff, &line, NULL)) {
        char mark = line.len ? line.ptr[0] : ' ';
        if (!olds && !news) {
            if (!hfsb_str_starts(line, HFSB_LIT("@@ "))) continue;
            olds = hfsbi_hunk_count(line, " -");
            news = hfsbi_hunk_count(line, " +");
            continue;
        }
        *added += mark == '+';
        *removed += mark == '-';
        olds -= olds && (mark == '-' || mark == ' ');
        news -= news && (mark == '+' || mark == ' ');
    }
}

/* Puts how many lines a diff adds and removes, and the diff if it is short.
   One that shows *** for a secret cannot be applied, in either direction. */
static void hfsbi_event_diff(hfsb_journal *j, const hfsb_tool_result *result) {
    hfsb_str diff = hfsb_json_str(hfsb_json_get(result->fields.root, "diff"),
                                  HFSB_LIT("")),
             shown;
    long long added = 0, removed = 0;
    char      space[HFSBI_HIDE_SPACE];
    if (!diff.len) return;
    hfsbi_event_count_lines(diff, &added, &removed);
    hfsbi_event_int(&j->line, HFSBI_KEY("added"), added);
    hfsbi_event_int(&j->line, HFSBI_KEY("removed"), removed);
    if (diff.len > HFSBI_EVENT_DIFF) return;
    shown = hfsbi_journal_hide(j, diff, HFSBI_EVENT_DIFF, space);
    hfsbi_event_plain(&j->line, HFSBI_KEY("diff"), shown);
    if (!hfsb_str_equal(shown, diff))
        hfsb_buf_append(&j->line, HFSB_LIT(",\"diff_hidden\":true"));
}

/* Writes the event to j->line. */
static void hfsbi_journal_format(hfsb_journal *j, const hfsbi_event *e) {
    hfsb_buf *out = &j->line;
    hfsb_buf_truncate(out, 0);
    if (hfsb_buf_reserve(out, HFSBI_EVENT_USUAL) != HFSB_OK) {
        out->status = HFSB_NOMEM;
        return;
    }
    hfsbi_event_head(j, e);
    hfsbi_event_brief(out, e->brief);
    if (e->repeat) hfsb_buf_append(out, HFSB_LIT(",\"repeat\":true"));
    if (e->result) {
        hfsb_buf_append(out, e->result->success
                                 ? HFSB_LIT(",\"success\":true")
                                 : HFSB_LIT(",\"success\":false"));
        if (!e->result->success)
            hfsbi_event_text(j, out, HFSBI_KEY("error"),
                             hfsb_buf_str(&e->result->error),
                             HFSBI_EVENT_ERROR);
        if (e->job) hfsbi_event_end(j, e->job);
        hfsbi_event_int(out, HFSBI_KEY("duration_ms"), e->duration_ms);
        hfsbi_event_int(out, HFSBI_KEY("output_bytes"),
                        (long long)e->output_bytes);
        hfsbi_event_diff(j, e->result);
    }
    if (e->job || e->job_id)
        hfsbi_event_plain(out, HFSBI_KEY("job"),
                          hfsb_cstr(e->job ? e->job->id : e->job_id));
    if (e->job && e->job->pid)
        hfsbi_event_int(out, HFSBI_KEY("pid"), e->job->pid);
    hfsb_buf_append_byte(out, '}');
}

/* ---- the file ---- */

/* Syncs the folder of a new file, so that its name survives a crash as its
   lines do. */
static void hfsbi_journal_file_sync_name(const hfsbi_journal_file *f) {
    hfsb_buf dir = HFSB_INIT;
    size_t   len = f->path.len;
    int      fd;
    dir.alloc = f->path.alloc;
    while (len && f->path.ptr[len - 1] != '/') len--;
    if (hfsb_buf_printf(&dir, "%.*s.", (int)len, f->path.ptr) != HFSB_OK)
        return;
    fd = hfsbi_openat(AT_FDCWD, dir.ptr, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) (void)hfsbi_sync(fd);
    hfsbi_close(&fd);
    hfsb_buf_free(&dir);
}

/* Opens the file at its end. 0 or an errno; -1: it is not a regular file. */
static int hfsbi_journal_file_open(hfsbi_journal_file *f) {
    char last = '\n';
    int  flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
                O_NOCTTY | O_CLOEXEC;
    do f->fd = open(f->path.ptr, flags, 0600);
    while (f->fd < 0 && errno == EINTR);
    f->fd = hfsbi_fd_above_2(f->fd);
    if (f->fd < 0) return errno;
    if (fstat(f->fd, &f->st) != 0 || !S_ISREG(f->st.st_mode)) {
        hfsbi_close(&f->fd);
        return -1;
    }
    if (f->st.st_mode & 077) (void)fchmod(f->fd, 0600);
    f->size = (unsigned long long)f->st.st_size;
    if (f->size && pread(f->fd, &last, 1, f->st.st_size - 1) != 1) last = ' ';
    f->torn = last != '\n';
    if (f->sync && !f->size) hfsbi_journal_file_sync_name(f);
    f->looked = hfsb_clock_ms();
    return 0;
}

/* True when the path still names the open file, whose size it updates. */
static bool hfsbi_journal_file_is_same(hfsbi_journal_file *f) {
    struct stat st;
    f->looked = hfsb_clock_ms();
    if (stat(f->path.ptr, &st) != 0 || st.st_dev != f->st.st_dev ||
        st.st_ino != f->st.st_ino)
        return false;
    f->size = (unsigned long long)st.st_size;
    return true;
}

/* Renames the file to PATH.1, unless another process holds the lock or has
   renamed it. After a failure the file stays in use and keeps growing. */
static void hfsbi_journal_file_rotate(hfsbi_journal_file *f) {
    hfsb_buf old = HFSB_INIT;
    old.alloc = f->path.alloc;
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0) return;
    if (hfsb_buf_printf(&old, "%s.1", f->path.ptr) == HFSB_OK &&
        (!hfsbi_journal_file_is_same(f) || f->size <= f->max_size / 2 ||
         renameat(AT_FDCWD, f->path.ptr, AT_FDCWD, old.ptr) == 0))
        hfsbi_close(&f->fd);
    else (void)flock(f->fd, LOCK_UN);
    hfsb_buf_free(&old);
}

/* Opens the file if need be, for a line of n bytes. 0 or an errno. */
static int hfsbi_journal_file_ready(hfsbi_journal_file *f, size_t n) {
    int code;
    if (f->fd >= 0 && hfsb_clock_ms() - f->looked >= HFSBI_JOURNAL_LOOK_MS &&
        !hfsbi_journal_file_is_same(f))
        hfsbi_close(&f->fd);
    if (f->fd >= 0 && f->size && f->size + n > f->max_size)
        hfsbi_journal_file_rotate(f);
    if (f->fd >= 0) return 0;
    code = hfsbi_journal_file_open(f);
    return code < 0 ? EINVAL : code;
}

/* Appends bytes with one write(), and no signal: a regular file raises one
   only at a limit on its size. 0 or an errno. */
static int hfsbi_journal_file_put(hfsbi_journal_file *f, hfsb_str bytes) {
    hfsbi_signal_guard guard;
    struct rlimit      limit;
    bool               guarded = getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
                   limit.rlim_cur != RLIM_INFINITY;
    ssize_t n;
    int     code = 0;
    if (guarded) hfsbi_signal_guard_begin(&guard);
    n = hfsbi_write(f->fd, bytes.ptr, bytes.len);
    if (n < 0) code = errno;
    if (guarded) hfsbi_signal_guard_end(&guard);
    if (n <= 0) return code ? code : EIO;
    f->size += (size_t)n;
    f->torn = (size_t)n < bytes.len;
    if (f->torn) return ENOSPC;
    return f->sync && !hfsbi_sync(f->fd) ? errno : 0;
}

/* Appends j->line to the file. What must precede it is put in front, so that
   all of it is one write. */
static int hfsbi_journal_file_line(hfsb_journal *j) {
    hfsbi_journal_file *f = &j->file;
    hfsb_buf            more = HFSB_INIT;
    int                 code = hfsbi_journal_file_ready(f, j->line.len);
    if (code != 0) return code;
    if (!f->torn && !f->lost)
        return hfsbi_journal_file_put(f, hfsb_buf_str(&j->line));
    more.alloc = j->alloc;
    if (f->torn) hfsb_buf_append_byte(&more, '\n');
    if (f->lost)
        hfsb_buf_printf(&more, "{\"run\":\"%s\",\"lines_lost\":%llu}\n",
                        j->run, f->lost);
    hfsb_buf_append(&more, hfsb_buf_str(&j->line));
    code = more.status == HFSB_OK
               ? hfsbi_journal_file_put(f, hfsb_buf_str(&more))
               : ENOMEM;
    hfsb_buf_free(&more);
    if (code == 0) f->lost = 0;
    return code;
}

/* A call never fails because its line could not be written. */
static void hfsbi_journal_save(hfsb_journal *j) {
    hfsb_err err = HFSB_INIT;
    int      code;
    code = j->line.status == HFSB_OK ? hfsbi_journal_file_line(j) : ENOMEM;
    if (code == 0) return;
    j->file.lost++;
    if (j->file.failed++ || !j->on_failure) return;
    hfsbi_fail_os(&err, code,
                  "The journal %.400s is incomplete: a line was not written",
                  j->file.path.ptr);
    j->on_failure(j->user, err.msg);
}

/* ---- the ring ---- */

static void hfsbi_journal_drop_entry(hfsb_journal *j) {
    hfsbi_journal_entry *oldest = &j->ring[j->first];
    j->bytes -= oldest->len;
    hfsbi_array_free(&j->alloc, oldest->line, oldest->len, 1);
    j->first = (j->first + 1) % j->max;
    j->count--;
}

/* Without memory the event is lost to readers. */
static void hfsbi_journal_add_entry(hfsb_journal *j, hfsb_str line) {
    hfsbi_journal_entry *e;
    char                *copy;
    if (!line.len || line.len > j->max_bytes) return;
    while (j->count &&
           (j->count == j->max || j->bytes + line.len > j->max_bytes))
        hfsbi_journal_drop_entry(j);
    copy = (char *)hfsbi_array(&j->alloc, line.len, 1);
    if (!copy) return;
    memcpy(copy, line.ptr, line.len);
    e = &j->ring[(j->first + j->count++) % j->max];
    e->seq = j->seq;
    e->line = copy;
    e->len = line.len;
    j->bytes += line.len;
}

HFSBI_FN void hfsbi_journal_visit(hfsb_journal *j, unsigned long long since,
                                  bool (*fn)(void              *user,
                                             unsigned long long seq,
                                             hfsb_str           line),
                                  void *user, hfsb_journal_page *page) {
    size_t i;
    memset(page, 0, sizeof *page);
    (void)pthread_mutex_lock(&j->lock);
    if (since > j->seq) since = 0;
    page->next = j->seq;
    for (i = 0; i < j->count; i++) {
        const hfsbi_journal_entry *e = &j->ring[(j->first + i) % j->max];
        if (e->seq <= since) continue;
        if (!fn(user, e->seq, hfsb_str_make(e->line, e->len))) {
            page->next = e->seq - 1;
            break;
        }
        page->count++;
    }
    page->lost = page->next - since - page->count;
    (void)pthread_mutex_unlock(&j->lock);
}

typedef struct hfsbi_journal_reading {
    hfsb_buf *out;
    size_t    left;
    bool      some;
} hfsbi_journal_reading;

static bool hfsbi_journal_read_one(void *user, unsigned long long seq,
                                   hfsb_str line) {
    hfsbi_journal_reading *r = (hfsbi_journal_reading *)user;
    (void)seq;
    if (!r->left) return false;
    r->left--;
    if (r->some) hfsb_buf_append_byte(r->out, ',');
    r->some = true;
    return hfsb_buf_append(r->out, line) == HFSB_OK;
}

hfsb_status hfsb_journal_read(hfsb_journal *journal, unsigned long long since,
                              size_t limit, hfsb_buf *out,
                              hfsb_journal_page *page, hfsb_err *err) {
    hfsbi_journal_reading r;
    size_t                mark = out->len;
    r.out = out;
    r.left = limit ? limit : HFSB_NPOS;
    r.some = false;
    hfsb_buf_append_byte(out, '[');
    hfsbi_journal_visit(journal, since, hfsbi_journal_read_one, &r, page);
    hfsb_buf_append_byte(out, ']');
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        return hfsbi_fail_status(err, out->status, "Reading the journal");
    return hfsbi_ok(err);
}

/* ---- the object ---- */

/* Hands the event to the host's own log. */
static void hfsbi_journal_tell(hfsb_journal *j, const hfsbi_event *e) {
    hfsb_journal_event data = HFSB_INIT;
    hfsb_str           all = hfsb_buf_str(&e->brief->text);
    data.seq = j->seq;
    data.call = e->call ? e->call : j->seq;
    data.who = e->who;
    data.tool = e->tool;
    data.running = !e->result;
    data.path = hfsb_str_slice(all, 0, e->brief->path);
    data.command = hfsb_str_slice(all, e->brief->path, e->brief->command);
    data.success = e->result && e->result->success;
    data.duration_ms = e->duration_ms;
    data.line = hfsb_buf_str(&j->line);
    if (e->job && e->result) {
        data.exited = e->job->end.end == HFSB_PROC_EXITED;
        data.exit_code = e->job->end.exit_code;
        if (e->job->end.end == HFSB_PROC_SIGNALED)
            data.signal = e->job->end.signal;
    }
    j->on_event(j->user, &data);
}

HFSBI_FN unsigned long long hfsbi_journal_add(hfsb_journal      *j,
                                              const hfsbi_event *event) {
    hfsbi_journal_ear *ear;
    unsigned long long seq;
    (void)pthread_mutex_lock(&j->lock);
    seq = ++j->seq;
    hfsbi_journal_format(j, event);
    if (j->line.status == HFSB_OK) {
        hfsbi_journal_add_entry(j, hfsb_buf_str(&j->line));
        if (j->on_event) hfsbi_journal_tell(j, event);
        hfsb_buf_append_byte(&j->line, '\n');
    }
    if (j->file.path.len) hfsbi_journal_save(j);
    for (ear = j->ears; ear; ear = ear->next) {
        if (ear->called) continue;
        ear->called = true;
        ear->fn(ear);
    }
    (void)pthread_mutex_unlock(&j->lock);
    return seq;
}

HFSBI_FN void hfsbi_journal_listen(hfsb_journal      *journal,
                                   hfsbi_journal_ear *ear) {
    hfsbi_journal_ear *other;
    (void)pthread_mutex_lock(&journal->lock);
    ear->called = false;
    for (other = journal->ears; other && other != ear; other = other->next)
        continue;
    if (!other) {
        ear->next = journal->ears;
        journal->ears = ear;
    }
    (void)pthread_mutex_unlock(&journal->lock);
}

HFSBI_FN void hfsbi_journal_unlisten(hfsb_journal      *journal,
                                     hfsbi_journal_ear *ear) {
    hfsbi_journal_ear **link;
    (void)pthread_mutex_lock(&journal->lock);
    for (link = &journal->ears; *link && *link != ear; link = &(*link)->next)
        continue;
    if (*link) *link = ear->next;
    (void)pthread_mutex_unlock(&journal->lock);
}

HFSBI_FN void hfsbi_journal_place(const hfsb_journal *journal,
                                  hfsb_buf           *places) {
    hfsb_str path = hfsb_buf_str(&journal->file.path);
    int      folder = (int)(path.len - hfsb_path_base(path).len);
    hfsb_buf dir = HFSB_INIT;
    char     real[PATH_MAX];
    if (!path.len) return;
    dir.alloc = journal->alloc;
    if (hfsb_buf_printf(&dir, "%.*s.", folder, path.ptr) != HFSB_OK)
        places->status = HFSB_NOMEM;
    else if (realpath(dir.ptr, real))
        (void)hfsbi_place_add(places, HFSBI_PLACE_WRITE, real);
    hfsb_buf_free(&dir);
}

HFSBI_FN hfsbi_journal_figures hfsbi_journal_count(hfsb_journal *journal) {
    hfsbi_journal_figures f;
    (void)pthread_mutex_lock(&journal->lock);
    f.events = journal->seq;
    f.failed = journal->file.failed;
    f.held = journal->count;
    f.bytes = journal->bytes;
    f.file = journal->file.path.len > 0;
    (void)pthread_mutex_unlock(&journal->lock);
    return f;
}

/* Opens the file that the options name. */
static hfsb_status hfsbi_journal_open_file(hfsb_journal *j, const char *path,
                                           hfsb_err *err) {
    int code;
    if (!path) return HFSB_OK;
    if (hfsb_buf_append(&j->file.path, hfsb_cstr(path)) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the journal");
    code = hfsbi_journal_file_open(&j->file);
    if (code == 0) return HFSB_OK;
    if (code < 0)
        return hfsbi_fail(err, HFSB_NOT_REGULAR, 0,
                          "The journal must be a regular file: %.400s", path);
    return hfsbi_fail_os(err, code, "Cannot open the journal %.400s", path);
}

/* Fills a new object from the options. */
static void hfsbi_journal_fill(hfsb_journal *j, const hfsb_journal_opts *o) {
    memset(j, 0, sizeof *j);
    (void)pthread_mutex_init(&j->lock, NULL);
    j->alloc = j->line.alloc = j->secrets.alloc = o->alloc;
    j->file.path.alloc = o->alloc;
    j->file.fd = -1;
    j->file.sync = o->sync;
    j->file.max_size = o->max_size;
    if (!o->max_size) j->file.max_size = HFSBI_JOURNAL_SIZE;
    j->max = o->max_events;
    if (!j->max) j->max = HFSBI_JOURNAL_EVENTS;
    j->max_bytes = o->max_bytes;
    if (!j->max_bytes) j->max_bytes = HFSBI_JOURNAL_BYTES;
    j->on_event = o->on_event;
    j->on_failure = o->on_failure;
    j->user = o->user;
    (void)hfsbi_random_hex(j->run, sizeof j->run - 1);
}

hfsb_status hfsb_journal_open(const hfsb_journal_opts *opts,
                              hfsb_journal **out, hfsb_err *err) {
    hfsb_journal_opts none = HFSB_INIT;
    hfsb_journal     *j;
    hfsb_status       st = HFSB_NOMEM;
    *out = NULL;
    if (!opts) opts = &none;
    j = (hfsb_journal *)hfsbi_array(&opts->alloc, 1, sizeof *j);
    if (!j) return hfsbi_fail_status(err, st, "Opening the journal");
    hfsbi_journal_fill(j, opts);
    j->ring =
        (hfsbi_journal_entry *)hfsbi_array(&j->alloc, j->max, sizeof *j->ring);
    if (j->ring) st = hfsbi_journal_open_file(j, opts->path, err);
    else hfsbi_fail_status(err, st, "Opening the journal");
    if (st != HFSB_OK) {
        hfsb_journal_close(j);
        return st;
    }
    *out = j;
    return hfsbi_ok(err);
}

void hfsb_journal_close(hfsb_journal *j) {
    hfsb_alloc alloc;
    if (!j) return;
    alloc = j->alloc;
    while (j->count) hfsbi_journal_drop_entry(j);
    if (j->ring) hfsbi_array_free(&alloc, j->ring, j->max, sizeof *j->ring);
    hfsbi_close(&j->file.fd);
    if (j->secrets.ptr) hfsb_secret_wipe(j->secrets.ptr, j->secrets.len);
    hfsb_buf_free(&j->secrets);
    hfsbi_array_free(&alloc, j->hidden, j->hidden_cap, sizeof(hfsb_str));
    hfsb_buf_free(&j->line);
    hfsb_buf_free(&j->file.path);
    (void)pthread_mutex_destroy(&j->lock);
    hfsbi_array_free(&alloc, j, 1, sizeof *j);
}
