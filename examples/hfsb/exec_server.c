/* exec_server.c - hfsb exec-server: run the commands of Codex, which speaks
   on standard input and output, here or in a sandbox.

   Codex starts it as a child and ends it by closing its input. As with `hfsb
   mcp` two processes serve (mcp_keeper.c): if one is killed, the other kills
   what the commands left running. For a sandbox one process passes messages
   on: nothing runs here. */
#include "mcp.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

enum {
    THREADS = 16,   /* for calls that wait for a disk */
    GRACE_MS = 300, /* between SIGTERM and SIGKILL */
    STOP_MS = 1200, /* to stop: Codex waits for 2 s */
    CLOSE_MS = 300, /* to close the server after that */
    KILL_MS = 100,  /* to kill what the commands left running */
    AFAR_THREADS = 2
};

typedef struct exec_options {
    texts           roots, deny;
    confinement     confine;
    hfsb_tools_opts where; /* made of these and work_dir */
    const char     *work_dir, *journal, *on;
} exec_options;

static hfsb_status open_journal(const exec_options *o, hfsb_journal **out,
                                hfsb_err *err) {
    hfsb_journal_opts opts = HFSB_INIT;
    *out = NULL;
    if (!o->journal) return HFSB_OK;
    opts.path = o->journal;
    opts.max_events = 1; /* nobody reads them from memory */
    opts.on_failure = print_journal_failure;
    return hfsb_journal_open(&opts, out, err);
}

static hfsb_status start(const exec_options *o, hfsb_journal *journal,
                         const stdio_pair *io, hfsb_server *server,
                         hfsb_err *err) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_dialect_opts        opts = HFSB_INIT;
    hfsb_tools_opts          tools = o->where;
    hfsb_status              st;
    tools.no_keeper = true; /* no command outlives this process */
    tools.grace_ms = GRACE_MS;
    tools.journal = journal;
    box.tools = &tools;
    opts.name = "codex";
    opts.on_fds = true;
    opts.in = io->in;
    opts.out = io->out;
    st = hfsb_server_add_sandbox(server, &box, err);
    if (st == HFSB_OK) st = hfsb_server_add_dialect(server, &opts, NULL, err);
    return st;
}

static void print_failure(hfsb_status st, const hfsb_err *err) {
    print_log(NULL, hfsb_cstr(err->msg[0] ? err->msg : hfsb_status_text(st)));
}

/* Serves until the end of input or a signal. Nothing is left running on this
   machine afterwards. */
static int serve(const exec_options *o) {
    static hfsb_orphans orphans;
    hfsb_server_opts    opts = HFSB_INIT;
    hfsb_server        *server = NULL;
    hfsb_journal       *journal = NULL;
    stdio_pair          io;
    hfsb_err            err = HFSB_INIT;
    hfsb_status         st;
    opts.max_threads = THREADS;
    opts.stop_ms = STOP_MS;
    opts.no_auth = true; /* it does not listen */
    if (!take_stdio(&io)) return REFUSED;
    st = open_journal(o, &journal, &err);
    if (st == HFSB_OK) st = hfsb_server_open(&opts, &server, &err);
    if (st == HFSB_OK) st = start(o, journal, &io, server, &err);
    if (st == HFSB_OK) {
        stop_on_signals(server);
        if (caught_signal()) hfsb_server_stop(server); /* came earlier */
        while (hfsb_server_poll(server, hfsb_orphans_reap(&orphans))) continue;
        stop_on_signals(NULL);
    } else {
        print_failure(st, &err);
    }
    leave_stdio(&io);
    end_within(CLOSE_MS);          /* the disk may hang */
    hfsb_orphans_kill(0, KILL_MS); /* now: closing may take until the alarm */
    hfsb_server_close(server);
    hfsb_journal_close(journal);
    hfsb_orphans_kill(0, KILL_MS);
    return st == HFSB_OK ? DONE : REFUSED;
}

/* Passes messages between Codex and the sandbox until the end of input or a
   signal. */
static hfsb_status pass_on(hfsb_sandbox *box, const stdio_pair *io,
                           hfsb_err *err) {
    hfsb_server_opts       opts = HFSB_INIT;
    hfsb_codex_bridge_opts bridge = HFSB_INIT;
    hfsb_server           *server = NULL;
    hfsb_err               why = HFSB_INIT;
    hfsb_status            st;
    opts.max_threads = AFAR_THREADS;
    opts.stop_ms = STOP_MS;
    opts.no_auth = true; /* it does not listen */
    bridge.sandbox = box;
    bridge.in = io->in;
    bridge.out = io->out;
    bridge.why = &why;
    st = hfsb_server_open(&opts, &server, err);
    if (st == HFSB_OK) st = hfsb_server_add_codex_bridge(server, &bridge, err);
    if (st == HFSB_OK) {
        stop_on_signals(server);
        if (caught_signal()) hfsb_server_stop(server); /* came earlier */
        while (hfsb_server_poll(server, -1)) continue;
        stop_on_signals(NULL);
        st = why.code;
        *err = why;
    }
    if (st != HFSB_OK) print_failure(st, err);
    leave_stdio(io);      /* after the message: it may close stderr */
    end_within(CLOSE_MS); /* the network may hang */
    hfsb_server_close(server);
    return st;
}

static int serve_afar(const exec_options *o) {
    client            c = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *box = NULL;
    stdio_pair        io;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    if (!take_stdio(&io)) return REFUSED;
    c.quiet = true;
    st = open_named(&c, o->on, &opts, &box, &err);
    if (st == HFSB_OK) st = pass_on(box, &io, &err);
    else print_failure(st, &err);
    hfsb_sandbox_close(box, false, NULL);
    close_client(&c);
    return st == HFSB_OK ? DONE : REFUSED;
}

static bool take_exec_server(args *a, exec_options *o) {
    const char  *given;
    const option options[] = {
        {"--on SANDBOX", OPTION_TEXT, &o->on,
         "run commands in this sandbox instead of on this machine "
         "($HFSB_SANDBOX). Its hfsb-server, started with --api codex, decides "
         "what they can touch: the other options are for this machine"},
        {"--root DIR", OPTION_TEXTS, &o->roots,
         "confine file access to DIR, where commands start; for commands see "
         "--confine. May be repeated"},
        {"--deny PATTERN", OPTION_TEXTS, &o->deny,
         "refuse to read or change files that match as in .gitignore: .env, "
         "*.pem; commands can still do so. May be repeated"},
        {"--work-dir DIR", OPTION_TEXT, &o->work_dir,
         "the working directory that is reported to Codex"},
        OPTIONS_CONFINE(&o->confine,
                        "Default: write with --root, as far as the kernel "
                        "allows; else none"),
        {"--journal FILE", OPTION_TEXT, &o->journal,
         "append a line of JSON for each command and each file change; "
         "secrets are hidden"},
        OPTIONS_END};
    memset(o, 0, sizeof *o);
    if (!take_all(a, options, NULL)) return false;
    o->on = named_sandbox(o->on);
    given = o->roots.count  ? "--root"
            : o->deny.count ? "--deny"
            : o->work_dir   ? "--work-dir"
            : o->journal    ? "--journal"
                            : confine_option(&o->confine);
    if (o->on && given)
        return usage(a,
                     "%s is for this machine, not for the sandbox %s; its "
                     "hfsb-server takes it: " TAKEN_AFAR,
                     given, o->on, given) == DONE;
    if (!set_roots(a, &o->roots, &o->where)) return false;
    if (!set_work_dir(a, o->work_dir, &o->where)) return false;
    o->where.deny = o->deny.list;
    o->where.deny_count = o->deny.count;
    return set_confinement(
        a, &o->confine,
        o->roots.count ? HFSB_CONFINE_WRITE : HFSB_CONFINE_NONE, &o->where);
}

int run_exec_server(args *a) {
    exec_options o;
    keeper       k;
    int          code = REFUSED;
    if (!take_exec_server(a, &o)) return a->status;
    if (o.on) return serve_afar(&o);
    hfsb_orphans_adopt();
    if (!split_process(&k, &code)) {
        hfsb_orphans_kill(0, KILL_MS);
        return code;
    }
    hfsb_orphans_adopt(); /* not inherited */
    /* the parent waits for this process to exit */
    return serve(&o);
}
