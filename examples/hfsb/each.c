/* each.c - hfsb each: a command on many sandboxes at once.

   Each sandbox is a child of this program, `hfsb bash --on SANDBOX COMMAND`,
   so that none can hold up or harm another. Up to --jobs of them run at a
   time:

       WAITING --start--> RUNNING --it ends--> DONE

   Lines are printed when they are complete, after the name of their sandbox;
   with --json one object is printed for each sandbox when it has ended. On a
   terminal, a line names those that still run when nothing was printed for a
   while. When standard output breaks, all commands are killed, as in a
   pipeline. */
#define _XOPEN_SOURCE 700 /* poll; before any include */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOBS = 16,
    MAX_JOBS = 1024,
    MAX_LINE = 65536, /* bytes of a line that are printed at once */
    MAX_OUTPUT = 64 << 20,
    GRACE_MS = 15000, /* for a child to end its command over there */
    SILENT_MS = 2000, /* without output, then the waiting line is drawn */
    FAILED_START = 125
};

typedef struct each_call each_call;

typedef struct each_run {
    each_call *call;
    hfsb_str   name;
    hfsb_proc *proc; /* NULL unless it runs */
    hfsb_buf   out, errors;
    int        code;
} each_run;

struct each_call {
    texts       on;
    const char *from;
    double      timeout;
    const char *work_dir;
    size_t      jobs;
    bool        json;
    hfsb_buf    names; /* of --from */
    hfsb_buf    command;
    char        seconds[32];
    each_run   *runs;
    size_t      count, next, running;
    int         worst;
    int         why; /* errno of writing to stdout or stderr; 0: none */
    bool        killed;
    bool        waits;   /* the line of those that still run is drawn */
    long long   printed; /* when a line of output was, last */
};

/* ---- output ---- */

/* Removes the waiting line, before something else is printed. */
static void note_output(each_call *c) {
    if (c->waits) rewrite_line(HFSB_LIT(""));
    c->waits = false;
    c->printed = hfsb_clock_ms();
}

/* Names those that still run, as many as fit on the terminal. */
static void draw_waiting(each_call *c) {
    hfsb_buf line = HFSB_INIT;
    size_t   i;
    if (!can_rewrite(2) || hfsb_clock_ms() - c->printed < SILENT_MS) return;
    must(hfsb_buf_printf(&line, "waiting for %zu of %zu:",
                         c->running + (c->count - c->next), c->count));
    for (i = 0; i < c->next; i++)
        if (c->runs[i].proc)
            must(hfsb_buf_printf(&line, " %.*s", (int)c->runs[i].name.len,
                                 c->runs[i].name.ptr));
    rewrite_line(hfsb_buf_str(&line));
    hfsb_buf_free(&line);
    c->waits = true;
}

/* Notes whether what was printed has been written. */
static void note_written(each_call *c, FILE *to) {
    bool failed = fflush(to) != 0 || ferror(to);
    if (failed && !c->why) c->why = errno ? errno : EIO;
}

static void print_lines(each_run *r, hfsb_buf *text, FILE *to, bool all) {
    hfsb_str s = hfsb_buf_str(text);
    size_t   at = 0, end;
    note_output(r->call);
    while (at < s.len && !r->call->why) {
        end = hfsb_str_find_byte(hfsb_str_slice(s, at, s.len), '\n');
        if (end == HFSB_NPOS && !all && s.len - at < MAX_LINE) break;
        end = end == HFSB_NPOS ? s.len : at + end;
        fprintf(to, "%.*s: ", (int)r->name.len, r->name.ptr);
        (void)put_shown(to, hfsb_str_slice(s, at, end));
        fputc('\n', to);
        note_written(r->call, to);
        at = end < s.len ? end + 1 : end;
    }
    if (at < s.len) memmove(text->ptr, text->ptr + at, s.len - at);
    hfsb_buf_truncate(text, s.len > at ? s.len - at : 0);
}

static void take_output(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    each_run *r = (each_run *)user;
    hfsb_buf *to = stream == HFSB_PROC_STDERR ? &r->errors : &r->out;
    to->max = MAX_OUTPUT;
    (void)!hfsb_buf_append(to, bytes); /* beyond the limit it is dropped */
    if (!r->call->json)
        print_lines(r, to, stream == HFSB_PROC_STDERR ? stderr : stdout,
                    false);
}

/* One line of JSON: the result of the tool, and whose it is. */
static void print_result(each_run *r) {
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_json_iter   it;
    hfsb_buf         line = HFSB_INIT;
    bool             whole = hfsb_json_parse(hfsb_buf_str(&r->out), NULL, &doc,
                                 NULL) == HFSB_OK;
    hfsb_json_writer_init(&w, &line, NULL);
    hfsb_json_put_object(&w);
    put_str(&w, "on", r->name);
    put_int(&w, "exit_code", r->code);
    if (!whole) {
        put_bool(&w, "success", false);
        put_str(&w, "output", HFSB_LIT(""));
        hfsb_json_put_key(&w, HFSB_LIT("error"));
        hfsb_json_put_str(&w, hfsb_buf_str(&r->errors));
    }
    it = hfsb_json_begin(doc.root);
    while (whole && hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, HFSB_LIT("exit_code"))) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    hfsb_json_put_end(&w);
    (void)hfsb_json_writer_finish(&w, NULL);
    note_output(r->call);
    printf("%s\n", line.len ? line.ptr : "");
    note_written(r->call, stdout);
    hfsb_buf_free(&line);
    hfsb_json_free(&doc);
}

/* ---- the children ---- */

static void end_run(each_run *r, int code) {
    each_call *c = r->call;
    r->code = code;
    if (code > c->worst) c->worst = code;
    if (r->proc) c->running--;
    hfsb_proc_close(r->proc);
    r->proc = NULL;
    if (c->json) print_result(r);
    else {
        print_lines(r, &r->out, stdout, true);
        print_lines(r, &r->errors, stderr, true);
        if (code != DONE)
            fprintf(stderr, "%.*s: exit code %d\n", (int)r->name.len,
                    r->name.ptr, code);
    }
    hfsb_buf_free(&r->out);
    hfsb_buf_free(&r->errors);
}

/* Starts it, or ends it as failed. False: there are no descriptors or processes
   for it until others have ended. */
static bool start_run(each_run *r) {
    each_call     *c = r->call;
    hfsb_proc_opts opts = HFSB_INIT;
    hfsb_buf       name = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    const char    *argv[16];
    size_t         n = 0;
    hfsb_status    st;
    must(hfsb_buf_append(&name, r->name));
    argv[n++] = own_program();
    argv[n++] = "bash";
    argv[n++] = "--on";
    argv[n++] = name.ptr;
    if (c->json) argv[n++] = "--json";
    if (c->timeout > 0) argv[n++] = "--timeout";
    if (c->timeout > 0) argv[n++] = c->seconds;
    if (c->work_dir) argv[n++] = "--work-dir";
    if (c->work_dir) argv[n++] = c->work_dir;
    argv[n++] = "--";
    argv[n++] = c->command.ptr;
    argv[n] = NULL;
    opts.argv = argv;
    opts.grace_ms = GRACE_MS;
    opts.on_output = take_output;
    opts.user = r;
    st = hfsb_proc_open(&opts, &r->proc, &err);
    hfsb_buf_free(&name);
    if (st == HFSB_BUSY && c->running) return false;
    if (st == HFSB_OK) {
        c->running++;
        return true;
    }
    (void)!hfsb_buf_append(&r->errors, hfsb_cstr(err.msg));
    end_run(r, FAILED_START);
    return true;
}

static void step_run(each_run *r) {
    hfsb_proc_result result;
    if (!r->proc || !hfsb_proc_step(r->proc)) return;
    result = hfsb_proc_status(r->proc);
    end_run(r, result.end == HFSB_PROC_EXITED ? result.exit_code
               : result.signal                ? 128 + result.signal
                                              : FAILED_START);
}

/* Waits until a child needs attention. */
static void wait_for_runs(each_call *c, struct pollfd *fds) {
    hfsb_watch list[HFSB_PROC_WATCHES];
    long long  until = -1, wait;
    size_t     n = 0, i, k, count;
    for (i = 0; i < c->next; i++) {
        long long at;
        if (!c->runs[i].proc) continue;
        count = hfsb_proc_watch(c->runs[i].proc, list);
        for (k = 0; k < count; k++, n++) {
            fds[n].fd = list[k].fd;
            fds[n].events = (short)((list[k].readable ? POLLIN : 0) |
                                    (list[k].writable ? POLLOUT : 0));
        }
        at = hfsb_proc_deadline(c->runs[i].proc);
        if (at >= 0 && (until < 0 || at < until)) until = at;
    }
    wait = until < 0 ? 1000 : until - hfsb_clock_ms();
    if (wait > 1000) wait = 1000; /* a signal may come just before poll() */
    (void)poll(fds, (nfds_t)n, wait < 0 ? 0 : (int)wait);
}

/* True when no more is to be started, and what runs is to end. */
static bool is_over(const each_call *c) {
    return caught_signal() || c->why;
}

static void run_all(each_call *c) {
    struct pollfd *fds = (struct pollfd *)calloc(
        c->jobs * HFSB_PROC_WATCHES, sizeof *fds);
    size_t         i;
    if (!fds) must(HFSB_NOMEM);
    c->printed = hfsb_clock_ms();
    while (c->running || (c->next < c->count && !is_over(c))) {
        while (c->next < c->count && c->running < c->jobs && !is_over(c) &&
               start_run(&c->runs[c->next]))
            c->next++;
        if (c->running) wait_for_runs(c, fds);
        if (is_over(c) && !c->killed) {
            c->killed = true;
            for (i = 0; i < c->next; i++)
                if (c->runs[i].proc) hfsb_proc_kill(c->runs[i].proc);
        }
        for (i = 0; i < c->next; i++) step_run(&c->runs[i]);
        if (c->running) draw_waiting(c);
    }
    note_output(c);
    free(fds);
}

/* ---- the command line ---- */

/* A sandbox that is named twice is one sandbox. */
static void add_run(each_call *c, hfsb_str name) {
    size_t i;
    for (i = 0; i < c->count; i++)
        if (hfsb_str_equal(c->runs[i].name, name)) return;
    if (!name.len) return;
    c->runs = (each_run *)realloc(c->runs, (c->count + 1) * sizeof *c->runs);
    if (!c->runs) must(HFSB_NOMEM);
    memset(&c->runs[c->count], 0, sizeof *c->runs);
    c->runs[c->count].call = c;
    c->runs[c->count++].name = name;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* A line of --from, without blanks around it; "" for a comment. */
static hfsb_str trim_line(hfsb_str line) {
    while (line.len && is_space(line.ptr[line.len - 1])) line.len--;
    while (line.len && is_space(*line.ptr))
        line = hfsb_str_slice(line, 1, line.len);
    return line.len && *line.ptr == '#' ? HFSB_LIT("") : line;
}

/* The sandboxes of --on, then the lines of --from. */
static bool list_runs(each_call *c, hfsb_err *err) {
    hfsb_str rest;
    size_t   i, end;
    for (i = 0; i < c->on.count; i++) add_run(c, hfsb_cstr(c->on.list[i]));
    if (!c->from) return true;
    if (read_input(c->from, &c->names, err) != HFSB_OK) return false;
    for (rest = hfsb_buf_str(&c->names); rest.len;
         rest = hfsb_str_slice(rest, end + 1, rest.len)) {
        end = hfsb_str_find_byte(rest, '\n');
        if (end == HFSB_NPOS) end = rest.len;
        add_run(c, trim_line(hfsb_str_slice(rest, 0, end)));
    }
    return true;
}

/* Appends a word in quotes of the shell: it stays one, whatever is in it. */
static void add_quoted(hfsb_buf *line, const char *word) {
    must(hfsb_buf_append_byte(line, '\''));
    for (; *word; word++)
        if (*word == '\'') must(hfsb_buf_append(line, HFSB_LIT("'\\''")));
        else must(hfsb_buf_append_byte(line, *word));
    must(hfsb_buf_append_byte(line, '\''));
}

/* One word is a command for the shell, several are a program and its
   arguments. */
static void make_line(args *a, hfsb_buf *line) {
    if (a->count - a->next == 1) {
        must(hfsb_buf_append(line, hfsb_cstr(a->list[a->next++])));
        return;
    }
    for (; a->next < a->count; a->next++) {
        if (line->len) must(hfsb_buf_append_byte(line, ' '));
        add_quoted(line, a->list[a->next]);
    }
}

static int exit_code(const each_call *c) {
    if (caught_signal()) return 128 + caught_signal();
    if (c->why == EPIPE) return 128 + SIGPIPE;
    if (!c->why) return c->worst;
    fprintf(stderr, "hfsb: cannot write to standard output: %s\n",
            strerror(c->why));
    return FAILED_START;
}

static int run_list(args *a, each_call *c) {
    hfsb_err err = HFSB_INIT;
    make_line(a, &c->command);
    snprintf(c->seconds, sizeof c->seconds, "%.3f", c->timeout);
    if (!list_runs(c, &err)) {
        fprintf(stderr, "hfsb: %s\n", err.msg);
        return REFUSED;
    }
    if (!c->count) return usage(a, "--on SANDBOX is missing");
    if (c->jobs > c->count) c->jobs = c->count;
    catch_signals(NULL, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    name_parent();
    run_all(c);
    release_signals();
    return exit_code(c);
}

int run_each(args *a) {
    each_call c = HFSB_INIT;
    int       code;

    const option options[] = {
        {"--on SANDBOX", OPTION_TEXTS, &c.on,
         "run COMMAND in this sandbox; may be repeated"},
        {"--from FILE", OPTION_TEXT, &c.from,
         "and in every sandbox listed in FILE, one a line (-: standard "
         "input); blank lines and lines that begin with # are ignored"},
        {"--jobs N", OPTION_COUNT, &c.jobs,
         "run on N sandboxes at a time (16)"},
        {"--timeout S", OPTION_SECONDS, &c.timeout,
         "end a command after S seconds (1200)"},
        {"--work-dir DIR", OPTION_TEXT, &c.work_dir, "run it in DIR"},
        {"--json", OPTION_FLAG, &c.json,
         "print a line of JSON for each sandbox: on, exit_code, success, "
         "output, error ..."},
        OPTIONS_END};
    if (!take_options(a, options)) return a->status;
    if (a->next == a->count) return usage(a, "COMMAND is missing");
    if (!c.jobs) c.jobs = JOBS;
    if (c.jobs > MAX_JOBS) return usage(a, "--jobs: at most %d", MAX_JOBS);
    code = run_list(a, &c);
    free(c.runs);
    hfsb_buf_free(&c.names);
    hfsb_buf_free(&c.command);
    return code;
}
