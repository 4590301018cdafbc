/* log.c - events as lines of JSON on stderr: requests, calls of tools, and
   other events of the server. Paths and commands are hostile: everything
   except printable ASCII is escaped, so that neither a terminal nor a line
   parser can be fooled. */
#define _XOPEN_SOURCE 700 /* clock_gettime, gmtime_r; before any include */
#include "program.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest text, in bytes: each may become six, and a line must be shorter than
   an atomic write to a pipe (4096). */
enum { MAX_TEXT = 500 };

bool write_all(int fd, const char *ptr, size_t n) {
    while (n > 0) {
        ssize_t k = write(fd, ptr, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        ptr += k;
        n -= (size_t)k;
    }
    return true;
}

static void put_time(hfsb_json_writer *w) {
    struct timespec now;
    struct tm       utc;
    char            text[64];
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        !gmtime_r(&now.tv_sec, &utc))
        return;
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
             utc.tm_min, utc.tm_sec, (int)(now.tv_nsec / 1000000));
    hfsb_json_put_key(w, HFSB_LIT("time"));
    hfsb_json_put_str(w, hfsb_cstr(text));
}

static void put_text(hfsb_json_writer *w, const char *key, hfsb_str text) {
    if (text.len == 0) return;
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, hfsb_str_slice(text, 0, MAX_TEXT));
}

static void put_count(hfsb_json_writer *w, const char *key,
                      unsigned long long n) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_uint(w, n);
}

static void put_event(hfsb_json_writer *w, const void *event,
                      unsigned long long lost) {
    const hfsb_server_event *e = (const hfsb_server_event *)event;
    hfsb_json_put_object(w);
    put_time(w);
    if (lost) put_count(w, "lines_lost", lost);
    put_text(w, "event", hfsb_cstr(e->what));
    put_text(w, "method", e->method);
    put_text(w, "path", e->path);
    if (e->status) {
        put_count(w, "status", (unsigned long long)e->status);
        put_count(w, "ms", (unsigned long long)e->duration_ms);
        put_count(w, "bytes_in", e->bytes_in);
        put_count(w, "bytes_out", e->bytes_out);
    }
    put_text(w, "peer", e->peer);
    put_text(w, "detail", e->detail);
    hfsb_json_put_end(w);
}

static void put_call(hfsb_json_writer *w, const void *event,
                     unsigned long long lost) {
    const hfsb_journal_event *e = (const hfsb_journal_event *)event;
    hfsb_json_put_object(w);
    put_time(w);
    if (lost) put_count(w, "lines_lost", lost);
    put_text(w, "event", HFSB_LIT("call"));
    put_text(w, "who", hfsb_cstr(e->who));
    put_text(w, "tool", hfsb_cstr(e->tool));
    put_text(w, "command", e->command);
    put_text(w, "file", e->path);
    hfsb_json_put_key(w, HFSB_LIT("success"));
    hfsb_json_put_bool(w, e->success);
    if (e->exited) put_count(w, "exit_code", (unsigned long long)e->exit_code);
    if (e->signal) put_count(w, "signal", (unsigned long long)e->signal);
    put_count(w, "ms", (unsigned long long)e->duration_ms);
    put_count(w, "call", e->call);
    hfsb_json_put_end(w);
}

/* Appends JSON with everything except printable ASCII as \uXXXX, and a line
   feed. */
static hfsb_status put_ascii(hfsb_str json, hfsb_buf *out) {
    hfsb_status   st = HFSB_OK;
    size_t        at = 0;
    unsigned long code;
    while (at < json.len && st == HFSB_OK) {
        size_t used = hfsb_utf8_step(json, at, &code, NULL);
        at += used;
        if (code >= ' ' && code < 127)
            st = hfsb_buf_append_byte(out, (char)code);
        else if (code < 0x10000) st = hfsb_buf_printf(out, "\\u%04lx", code);
        else
            st =
                hfsb_buf_printf(out, "\\u%04lx\\u%04lx", 0xd7c0 + (code >> 10),
                                0xdc00 + (code & 0x3ff));
    }
    return st == HFSB_OK ? hfsb_buf_append_byte(out, '\n') : st;
}

/* False if a write would block: the reader is slow, or the terminal is
   stopped. */
static bool has_room(void) {
    struct pollfd p;
    p.fd = 2;
    p.events = POLLOUT;
    p.revents = 0;
    return poll(&p, 1, 0) != 0;
}

/* Writes an event as an object. */
typedef void (*put_fn)(hfsb_json_writer *w, const void *event,
                       unsigned long long lost);

/* An unread log must not stop the server: lines are dropped, and the next one
   that is written reports how many. Calls end in several threads. */
static void log_json(put_fn put, const void *event) {
    static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long long lost;
    hfsb_json_writer          w;
    hfsb_buf                  json = HFSB_INIT, line = HFSB_INIT;
    (void)pthread_mutex_lock(&lock);
    if (has_room()) {
        hfsb_json_writer_init(&w, &json, NULL);
        put(&w, event, lost);
        if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK &&
            put_ascii(hfsb_buf_str(&json), &line) == HFSB_OK &&
            write_all(2, line.ptr, line.len)) /* as one write: one line */
            lost = 0;
    } else {
        lost++;
    }
    (void)pthread_mutex_unlock(&lock);
    hfsb_buf_free(&json);
    hfsb_buf_free(&line);
}

void log_event(void *user, const hfsb_server_event *event) {
    const options   *o = (const options *)user;
    static long long last; /* time of the last line, to limit their rate */
    if (o->log) {
        log_json(put_event, event);
    } else if (strcmp(event->what, "request") != 0 &&
               (!last || hfsb_clock_ms() - last > 1000)) {
        last = hfsb_clock_ms();
        log_json(put_event, event);
    }
}

void log_call(void *user, const hfsb_journal_event *event) {
    (void)user;
    if (!event->running) log_json(put_call, event);
}

void log_journal_failure(void *user, const char *message) {
    hfsb_server_event event = HFSB_INIT;
    (void)user;
    event.what = "journal failed";
    event.detail = hfsb_cstr(message);
    log_json(put_event, &event);
}
