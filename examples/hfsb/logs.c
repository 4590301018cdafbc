/* logs.c - hfsb logs, hfsb events: what a sandbox has printed and done.

   logs prints what the Hub has recorded: the build or run log of a Space, the
   log of a job. events prints the journal of a sandbox's server, or of this
   machine the file that $HFSB_JOURNAL names: a line for each call, or with
   --json the events themselves. A command has two events; the line of the first
   is printed at once with --follow, else at the end, if it still runs then. */
#define _XOPEN_SOURCE 700 /* nanosleep, fseeko; before any include */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- logs ---- */

typedef struct logs_call {
    hfsb_log_opts opts;
    bool          build, json;
    job_follow    f;
} logs_call;

static hfsb_status print_logs(client *c, const target *t, logs_call *l,
                              hfsb_err *err) {
    job_name    name;
    hfsb_status st;
    if (is_job(hfsb_buf_str(&t->id))) {
        if (l->build)
            return fail(err, HFSB_ARG, "%s is a job, which has no build",
                        t->id.ptr);
        split_job(t->id.ptr, NULL, &name);
        st = hfsb_hub_job_logs(c->hub, name.space, name.id, &l->opts,
                               print_log_line, &l->f, err);
    } else {
        st = hfsb_hub_space_logs(c->hub, hfsb_buf_str(&t->id),
                                 l->build ? "build" : "run", &l->opts,
                                 print_log_line, &l->f, err);
    }
    if (st == HFSB_OK && l->f.broken)
        st = fail(err, HFSB_IO, "The log could not be printed to its end");
    if (st == HFSB_OK && !l->f.lines && !l->json)
        fprintf(stderr, "hfsb: the log is empty%s\n",
                l->build || is_job(hfsb_buf_str(&t->id))
                    ? ""
                    : "; --build shows that of the build");
    return st;
}

int run_logs(args *a) {
    const char      *name = NULL;
    logs_call        l;
    client           c = HFSB_INIT;
    target           t = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--build", OPTION_FLAG, &l.build,
         "of a Space: print the build log, not the run log"},
        {"--follow", OPTION_FLAG, &l.opts.follow,
         "print new lines until the log ends, or Ctrl-C"},
        {"-f", OPTION_ALIAS, NULL, "--follow"},
        {"--tail N", OPTION_COUNT, &l.opts.tail, "only the last N lines"},
        {"-n N", OPTION_ALIAS, NULL, "--tail"},
        {"--json", OPTION_FLAG, &l.json,
         "print each line as {\"text\":...,\"timestamp\":...}, then success, "
         "output, error"},
        OPTIONS_END};
    memset(&l, 0, sizeof l);
    if (!take_all(a, options, &name)) return a->status;
    name = chosen_sandbox(name);
    if (!name) return no_sandbox(a);
    l.f.json = l.json;
    st = find_target(name, &t, &err);
    if (st == HFSB_OK && t.is_pipe)
        st = fail(&err, HFSB_ARG,
                  "%s has no log: its server ends with each command of hfsb",
                  name);
    else if (st == HFSB_OK && !t.id.len)
        st = fail(&err, HFSB_ARG,
                  "%s is a URL, whose server keeps no log: see `hfsb events`",
                  name);
    if (st == HFSB_OK) st = open_client(&c, true, &err);
    l.opts.cancel = c.cancel;
    if (st == HFSB_OK) st = print_logs(&c, &t, &l, &err);
    free_target(&t);
    close_client(&c);
    return show_outcome(&result, st, &err, l.json);
}

/* ---- events ---- */

/* A call that has not ended, as far as is known. */
typedef struct started {
    hfsb_buf  run, line;
    long long call;
} started;

typedef struct events_call {
    bool     json, follow;
    bool     broken; /* standard output is */
    bool     headed; /* print_heads() was called */
    hfsb_buf line;
    started *list; /* left to the system */
    size_t   count;
} events_call;

static void add_field(hfsb_buf *out, const hfsb_json_value *event,
                      const char *key, const char *before) {
    hfsb_str text = get_str(event, key);
    size_t   cut = hfsb_utf8_offset(text, 100);
    size_t   i, at = out->len;
    if (!text.len) return;
    must(hfsb_buf_printf(out, "%s%.*s%s", before, (int)cut, text.ptr,
                         cut < text.len ? "..." : ""));
    for (i = at; i < out->len; i++)
        if (out->ptr[i] == '\n') out->ptr[i] = ' ';
}

/* "18:47:04  mcp:claude-code  bash  make  Exit code 2  1269 ms". */
static void describe_event(const hfsb_json_value *event, hfsb_buf *out) {
    hfsb_str  time = get_str(event, "time");
    hfsb_str  who = get_str(event, "who"), tool = get_str(event, "tool");
    long long ms =
        hfsb_json_int(hfsb_json_get(event, "duration_ms"), -1);
    bool done = hfsb_str_equal(get_str(event, "state"), HFSB_LIT("done"));
    must(hfsb_buf_printf(out, "%.*s  %-12.*s  %-11.*s",
                         time.len >= 19 ? 8 : 0, time.ptr + 11, (int)who.len,
                         who.ptr, (int)tool.len, tool.ptr));
    add_field(out, event, "command", "  ");
    add_field(out, event, "path", "  ");
    if (!done) add_field(out, event, "state", "  ");
    add_field(out, event, "error", "  ");
    if (done && ms >= 0) must(hfsb_buf_printf(out, "  %lld ms", ms));
}

/* Keeps the line of a call that has been started; forgets that of one that has
   ended. True when there is nothing to print now. */
static bool is_for_later(events_call *e, const hfsb_json_value *event) {
    started   one = HFSB_INIT;
    hfsb_str  run = get_str(event, "run");
    size_t    i = 0;
    one.call = hfsb_json_int(hfsb_json_get(event, "call"), 0);
    while (i < e->count && (e->list[i].call != one.call ||
                            !hfsb_str_equal(hfsb_buf_str(&e->list[i].run), run)))
        i++;
    if (i < e->count) {
        hfsb_buf_free(&e->list[i].run);
        hfsb_buf_free(&e->list[i].line);
        memmove(e->list + i, e->list + i + 1,
                (--e->count - i) * sizeof *e->list);
    }
    if (hfsb_str_equal(get_str(event, "state"), HFSB_LIT("done")))
        return false;
    must(hfsb_buf_append(&one.run, run));
    must(hfsb_buf_append(&one.line, hfsb_buf_str(&e->line)));
    e->list = (started *)realloc(e->list, (e->count + 1) * sizeof *e->list);
    must(e->list ? HFSB_OK : HFSB_NOMEM);
    e->list[e->count++] = one;
    return true;
}

/* On a terminal, before the first line. */
static void print_heads(events_call *e) {
    hfsb_buf text = HFSB_INIT;
    char     heads[64];
    if (e->headed || e->json || !can_rewrite(STDOUT_FILENO)) return;
    e->headed = true;
    snprintf(heads, sizeof heads, "%-8s  %-12s  %-11s  %s", "TIME", "WHO",
             "TOOL", "CALL");
    put_painted(&text, has_colours(STDOUT_FILENO) ? PAINT_HEAD : PAINT_NONE,
                hfsb_cstr(heads));
    must(hfsb_buf_append_byte(&text, '\n'));
    if (put_out(hfsb_buf_str(&text)) != DONE) e->broken = true;
    hfsb_buf_free(&text);
}

static void print_event(events_call *e, const hfsb_json_value *event) {
    print_heads(e);
    hfsb_buf_truncate(&e->line, 0);
    if (e->json) must(hfsb_json_write(event, NULL, &e->line, NULL));
    else describe_event(event, &e->line);
    blank_controls(&e->line);
    must(hfsb_buf_append_byte(&e->line, '\n'));
    if (!e->json && !e->follow && is_for_later(e, event)) return;
    if (put_out(hfsb_buf_str(&e->line)) != DONE) e->broken = true;
}

/* Prints those that have not ended. */
static void print_started(events_call *e) {
    size_t i;
    for (i = 0; i < e->count && !e->broken; i++)
        if (put_out(hfsb_buf_str(&e->list[i].line)) != DONE) e->broken = true;
}

static void pause_for(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

/* ---- events of a sandbox ---- */

enum { PAGE = 500, WAIT_MS = 20000 };

/* Asks for the events after number *since, and prints them. */
static hfsb_status ask_events(client *c, hfsb_sandbox *sandbox,
                              events_call *e, long long *since, bool wait,
                              hfsb_err *err) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    char           query[96];
    hfsb_status    st;
    long long      lost;
    snprintf(query, sizeof query, "events?since=%lld&limit=%d&wait_ms=%d",
             *since, (int)PAGE, wait ? (int)WAIT_MS : 0);
    st = hfsb_sandbox_ask(sandbox, hfsb_cstr(query), c->cancel, &doc, err);
    if (st != HFSB_OK) return st;
    lost = hfsb_json_int(hfsb_json_get(doc.root, "lost"), 0);
    if (lost > 0 && *since)
        fprintf(stderr, "hfsb: %lld events were missed\n", lost);
    it = hfsb_json_begin(hfsb_json_get(doc.root, "events"));
    while (!e->broken && hfsb_json_next(&it)) print_event(e, it.value);
    *since = hfsb_json_int(hfsb_json_get(doc.root, "next"), *since);
    hfsb_json_free(&doc);
    return HFSB_OK;
}

static hfsb_status show_events(const char *name, events_call *e,
                               hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            c = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    long long         since = 0, last = -1;
    hfsb_status       st = open_named(&c, name, &opts, &sandbox, err);
    do {
        bool wait = e->follow && last == since; /* all is printed */
        last = since;
        if (st == HFSB_OK)
            st = ask_events(&c, sandbox, e, &since, wait, err);
    } while (st == HFSB_OK && !e->broken && (e->follow || since > last));
    if (st == HFSB_CANCELLED && e->follow) st = HFSB_OK; /* Ctrl-C */
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    close_client(&c);
    return st;
}

/* ---- events of this machine ---- */

/* Prints the complete lines after offset *at, and advances it; begins again
   when the file has become shorter. False when the file cannot be read. */
static bool print_file(const char *path, events_call *e, long long *at) {
    FILE    *f = fopen(path, "rb");
    hfsb_buf line = HFSB_INIT;
    int      c;
    if (!f) return false;
    if (fseeko(f, 0, SEEK_END) != 0 || (long long)ftello(f) < *at) *at = 0;
    (void)fseeko(f, (off_t)*at, SEEK_SET);
    while (!e->broken && (c = getc(f)) != EOF) {
        hfsb_json_doc doc = HFSB_INIT;
        if (c != '\n') {
            must(hfsb_buf_append_byte(&line, (char)c));
            continue;
        }
        *at += (long long)line.len + 1;
        if (hfsb_json_parse(hfsb_buf_str(&line), NULL, &doc, NULL) == HFSB_OK)
            print_event(e, doc.root);
        hfsb_json_free(&doc);
        hfsb_buf_truncate(&line, 0);
    }
    hfsb_buf_free(&line);
    fclose(f);
    return true;
}

static hfsb_status follow_file(const char *path, events_call *e,
                               hfsb_err *err) {
    long long at = 0;
    if (!print_file(path, e, &at))
        return fail(err, HFSB_NOT_FOUND, "%s: %s", path, strerror(errno));
    while (e->follow && !e->broken) {
        pause_for(300);
        (void)print_file(path, e, &at);
    }
    return HFSB_OK;
}

int run_events(args *a) {
    const char      *name = NULL, *file = NULL;
    events_call      e;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--journal FILE", OPTION_TEXT, &file,
         "print the events in this file, which `hfsb mcp --journal` or "
         "hfsb-server writes ($HFSB_JOURNAL, without a sandbox)"},
        {"--follow", OPTION_FLAG, &e.follow, "print new events until Ctrl-C"},
        {"-f", OPTION_ALIAS, NULL, "--follow"},
        {"--json", OPTION_FLAG, &e.json, "print the events as lines of JSON"},
        OPTIONS_END};
    memset(&e, 0, sizeof e);
    if (!take_all(a, options, &name)) return a->status;
    if (file && name) return usage(a, "give SANDBOX or --journal, not both");
    if (!file && !name) name = named_sandbox(NULL);
    if (!file && !name) file = getenv("HFSB_JOURNAL");
    if (!name && !(file && *file)) name = chosen_sandbox(NULL);
    else if (name) name = named_sandbox(name);
    if (!name && !(file && *file))
        return usage(a, "which events? Name a sandbox, or give --journal");
    if (name && is_pipe(name))
        st = fail(&err, HFSB_ARG,
                  "%s has no journal: its server ends with each command of "
                  "hfsb",
                  name);
    else st = name ? show_events(name, &e, &err) : follow_file(file, &e, &err);
    if (st == HFSB_OK) print_started(&e);
    hfsb_buf_free(&e.line);
    if (st == HFSB_OK) return e.broken ? REFUSED : DONE;
    return show_outcome(&result, st, &err, false);
}
