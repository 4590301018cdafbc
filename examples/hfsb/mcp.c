/* mcp.c - hfsb mcp: serve the tools over MCP on standard input and output.

   The server runs in a child process (mcp_keeper.c), so that it can clean up
   even if the host kills the parent. It ends at the end of input or by a
   signal: first it kills what the commands left running, then it releases the
   parent, then it deletes the Space or the job, if it has one, or ends in the
   sandbox of --on what its commands left running there. */
#define _XOPEN_SOURCE 700 /* isatty; before any include */
#include "mcp.h"

#include "cli.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS = 64,      /* for calls that wait for a disk or a sandbox */
    STOP_MS = 900,     /* to stop after a signal */
    CLOSE_MS = 300,    /* to close the server after that */
    DELETE_MS = 90000, /* the same when a Space must be deleted */
    KILL_MS = 100,     /* to kill what the commands left running */
    MAX_LOGGED = 500   /* bytes of a command or path in the log */
};

typedef struct mcp_options {
    texts           roots, deny;
    confinement     confine;
    hfsb_tools_opts where; /* made of these and work_dir */
    const char     *on, *work_dir, *tools, *journal, *checkpoints;
    size_t          journal_size;
    bool            journal_sync;
    double          patience; /* seconds */
    size_t          max_result;
    bool            read_only, sandbox, log;
    session_home    home; /* with sandbox */
} mcp_options;

/* False if a write to stderr would block: nobody reads it. */
static bool log_has_room(void) {
    struct pollfd p;
    p.fd = 2;
    p.events = POLLOUT;
    p.revents = 0;
    return poll(&p, 1, 0) != 0;
}

/* Prints the end of a call: bash: make test: exit code 2, 1269 ms. Any thread,
   one at a time. A line that nobody reads is dropped. */
static void log_call(void *user, const hfsb_journal_event *e) {
    static unsigned long long lost;
    hfsb_buf                  line = HFSB_INIT;
    hfsb_str                  what = e->command.len ? e->command : e->path;
    size_t                    i;
    (void)user;
    if (e->running) return;
    if (!log_has_room()) {
        lost++;
        return;
    }
    hfsb_buf_printf(&line, "hfsb: ");
    if (lost) hfsb_buf_printf(&line, "(%llu lines lost) ", lost);
    lost = 0;
    hfsb_buf_printf(&line, "%s%s%.*s: ", e->tool, what.len ? ": " : "",
                    (int)(what.len < MAX_LOGGED ? what.len : MAX_LOGGED),
                    what.ptr ? what.ptr : "");
    if (e->exited) hfsb_buf_printf(&line, "exit code %d", e->exit_code);
    else if (e->signal) hfsb_buf_printf(&line, "signal %d", e->signal);
    else hfsb_buf_printf(&line, "%s", e->success ? "ok" : "failed");
    hfsb_buf_printf(&line, ", %lld ms", e->duration_ms);
    for (i = 0; i < line.len; i++) /* a command must not forge lines */
        if (line.ptr[i] == '\n') line.ptr[i] = ' ';
    blank_controls(&line);
    hfsb_buf_append_byte(&line, '\n');
    if (line.status == HFSB_OK) fwrite(line.ptr, 1, line.len, stderr);
    hfsb_buf_free(&line);
}

/* Opens the journal that the options name or that --log needs, or none. */
static hfsb_status open_journal(const mcp_options *o, hfsb_journal **out,
                                hfsb_err *err) {
    hfsb_journal_opts opts = HFSB_INIT;
    *out = NULL;
    if (!o->journal && !o->log) return HFSB_OK;
    opts.path = o->journal;
    opts.max_size = o->journal_size;
    opts.sync = o->journal_sync;
    opts.max_events = 1; /* nobody reads them from memory */
    opts.on_failure = print_journal_failure;
    if (o->log) opts.on_event = log_call;
    return hfsb_journal_open(&opts, out, err);
}

/* Prints the lines about confinement also without a terminal: a person should
   find them. */
static void tell_confinement(const mcp_options *o, const hfsb_mcp *mcp) {
    const hfsb_tools *tools = hfsb_mcp_tools(mcp);
    const char       *text = hfsb_confine_text(hfsb_tools_confine(tools));
    if (hfsb_tools_exposed(tools))
        fprintf(stderr,
                "hfsb: commands can delete the checkpoints, which lie where "
                "they may write: %s. Choose another folder with "
                "--checkpoints DIR.\n",
                hfsb_tools_exposed(tools));
    if (o->where.confine.level == HFSB_CONFINE_NONE) return;
    fprintf(stderr, "hfsb: %s\n",
            *text ? text
                  : "commands are not confined: this system has no means "
                    "for it");
}

static hfsb_status start(const mcp_options *o, hfsb_session *session,
                         hfsb_journal *journal, const stdio_pair *io,
                         hfsb_server *server, hfsb_err *err) {
    hfsb_mcp_opts   opts = HFSB_INIT;
    hfsb_tools_opts tools = o->where;
    hfsb_mcp       *mcp = NULL;
    hfsb_status     st;
    if (session) memset(&tools.confine, 0, sizeof tools.confine);
    tools.no_keeper = true; /* no command outlives this process */
    tools.journal = journal;
    opts.tools = &tools;
    opts.no_tools = session != NULL;
    opts.read_only = o->read_only;
    opts.only = hfsb_cstr(o->tools);
    opts.path = ""; /* no HTTP */
    opts.answer_ms = (long long)(o->patience * 1000);
    opts.max_result = o->max_result;
    st = hfsb_server_add_mcp(server, &opts, &mcp, err);
    if (st == HFSB_OK && !session) tell_confinement(o, mcp);
    if (st == HFSB_OK && session) st = hfsb_mcp_use_session(mcp, session, err);
    if (st == HFSB_OK) st = hfsb_mcp_stdio(mcp, io->in, io->out, err);
    return st;
}

/* Starts to create the Space, after the command line has been checked. A wait
   with a cancel that is already set starts it and returns at once. */
static void begin_preload(hfsb_session *session) {
    hfsb_cancel *at_once = NULL;
    if (hfsb_cancel_open(NULL, &at_once, NULL) != HFSB_OK) return;
    hfsb_cancel_set(at_once);
    (void)hfsb_session_wait_ready(session, at_once, NULL);
    hfsb_cancel_close(at_once);
}

/* Only on a terminal: hosts show stderr as a failure. */
static void greet(const mcp_options *o, hfsb_runtime runtime) {
    size_t i;
    if (!o->log && !isatty(2)) return;
    fprintf(stderr, "hfsb %s: MCP on standard input and output, tools: %s",
            HFSB_VERSION, o->on ? o->on : hfsb_runtime_text(runtime));
    for (i = 0; i < o->roots.count; i++)
        fprintf(stderr, "%s%s", i ? ", " : ", files beneath ",
                o->roots.list[i]);
    fputc('\n', stderr);
}

/* Kills what commands left running. With a session no command runs here; a
   child carries the pipe to the sandbox. */
static void kill_left(const hfsb_session *session) {
    if (!session) hfsb_orphans_kill(0, KILL_MS);
}

static void poll_until_end(hfsb_server *server, const hfsb_session *session) {
    static hfsb_orphans orphans;
    stop_on_signals(server);
    if (caught_signal()) hfsb_server_stop(server); /* came earlier */
    while (hfsb_server_poll(server,
                            session ? -1 : hfsb_orphans_reap(&orphans)))
        continue;
    stop_on_signals(NULL);
}

/* Serves until the end of input or a signal. Nothing is left running on this
   machine afterwards. */
static int serve(const mcp_options *o, hfsb_session *session, keeper *k) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_journal    *journal = NULL;
    stdio_pair       io;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    opts.max_threads = THREADS;
    opts.stop_ms = STOP_MS;
    if (!take_stdio(&io)) return REFUSED;
    st = open_journal(o, &journal, &err);
    if (st == HFSB_OK) st = hfsb_server_open(&opts, &server, &err);
    if (st == HFSB_OK) st = start(o, session, journal, &io, server, &err);
    if (st == HFSB_OK) {
        if (session) begin_preload(session);
        greet(o, session ? HFSB_RUNTIME_SANDBOX : HFSB_RUNTIME_LOCAL);
        poll_until_end(server, session);
    } else {
        print_log(NULL,
                  hfsb_cstr(err.msg[0] ? err.msg : hfsb_status_text(st)));
    }
    leave_stdio(&io);
    release_parent(k, st == HFSB_OK ? DONE : REFUSED);
    /* the disk or the Hub may hang */
    end_within(session ? DELETE_MS : CLOSE_MS);
    kill_left(session); /* now: closing may take until the alarm */
    hfsb_server_close(server);
    hfsb_journal_close(journal);
    kill_left(session);
    return st == HFSB_OK ? DONE : REFUSED;
}

/* Serves in two processes: if one is killed, the other kills what the commands
   left running. */
static int serve_here(const mcp_options *o) {
    keeper k, none = {-1}; /* the parent waits for the child to exit */
    int    code = REFUSED;
    hfsb_orphans_adopt();
    if (!split_process(&k, &code)) {
        hfsb_orphans_kill(0, KILL_MS);
        return code;
    }
    hfsb_orphans_adopt(); /* not inherited */
    return serve(o, NULL, &none);
}

/* Serves the tools of a Space, or of the sandbox of --on. */
static int serve_sandbox(const mcp_options *o) {
    sandbox_session s = HFSB_INIT;
    keeper          k;
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st;
    int             code = REFUSED;
    if (!split_process(&k, &code)) return code;
    s.quiet = !o->log;
    s.no_preload = true;
    s.home = o->home;
    st = o->on ? open_session_on(&s, o->on, &err)
               : open_session(&s, o->where.work_dir, &err);
    if (st == HFSB_OK) code = serve(o, s.session, &k);
    else print_log(NULL, hfsb_cstr(err.msg));
    if (o->on) ignore_signals();
    st = close_session(&s, &err);
    if (st != HFSB_OK && code == DONE) /* a Space may be left */
        print_log(NULL, hfsb_cstr(err.msg));
    return st == HFSB_OK ? code : REFUSED;
}

/* Without the option: on with a root. */
static bool set_checkpoints(args *a, mcp_options *o) {
    const char *where = o->checkpoints;
    if (where && strcmp(where, "off") == 0) return true;
    if (!where && (!o->roots.count || o->read_only || o->sandbox)) return true;
    if (!o->roots.count)
        return usage(a, "--checkpoints needs --root") == DONE;
    return set_store(a, where, &o->where);
}

static bool take_mcp(args *a, mcp_options *o) {
    const option options[] = {
        {"--on SANDBOX", OPTION_TEXT, &o->on,
         "serve the tools of this sandbox instead of this machine: a URL, a "
         "Space, a job, ssh:HOST, docker:CONTAINER, exec:COMMAND ... Its "
         "server decides where relative paths start and what the tools can "
         "touch. Commands that still run there at the end are killed"},
        {"--root DIR", OPTION_TEXTS, &o->roots,
         "confine the file tools to DIR; for commands see --confine. May be "
         "repeated: relative paths start in the first"},
        {"--deny PATTERN", OPTION_TEXTS, &o->deny,
         "make the file tools, but not commands, refuse paths that match as "
         "in .gitignore: .env, *.pem, secrets/. May be repeated"},
        {"--work-dir DIR", OPTION_TEXT, &o->work_dir,
         "where relative paths and commands start"},
        OPTIONS_CONFINE(&o->confine,
                        "Default: write, as far as the kernel allows. "
                        "Confined commands cannot signal those of earlier "
                        "calls, but the kill tool can"),
        {"--checkpoints WHERE", OPTION_TEXT, &o->checkpoints,
         "on, off, or a folder with a \"/\" in its name: keep checkpoints of "
         "the root there, for the tools undo and changes; at most 50,000 "
         "files and 512 MiB. Default: on with --root, in hfsb/undo in "
         "$XDG_STATE_HOME or ~/.local/state"},
        {"--checkpoint-ignored", OPTION_FLAG, &o->where.checkpoints.ignored,
         "include .git and what .gitignore names in checkpoints"},
        {"--read-only", OPTION_FLAG, &o->read_only,
         "serve only the tools that change nothing"},
        {"--tools TOOLS", OPTION_TEXT, &o->tools,
         "serve only these tools, separated by commas: read,grep,edit; bash "
         "also needs bash_output and kill. Or a set: claude, gpt (apply_patch "
         "instead of edit), small (bash, read, write, edit and what they "
         "need); small,grep adds grep to it"},
        {"--patience SECONDS", OPTION_SECONDS, &o->patience,
         "answer a call that takes longer with its output so far; the command "
         "continues (50)"},
        {"--max-result BYTES", OPTION_COUNT, &o->max_result,
         "limit the text of a result to BYTES, and to a tenth as many lines "
         "(20000)"},
        {"--sandbox-tools", OPTION_FLAG, &o->sandbox,
         "serve the tools of a Space that is created at the start (needs "
         "HF_TOKEN) and deleted at the end; also set by \"tool_runtime\": "
         "\"sandbox\" in config.json"},
        OPTIONS_HOME(&o->home),
        {"--journal FILE", OPTION_TEXT, &o->journal,
         "append a line of JSON for each call: tool, command, exit code, "
         "diff ...; secrets are hidden"},
        {"--journal-size BYTES", OPTION_COUNT, &o->journal_size,
         "rename FILE to FILE.1 at this size (67108864)"},
        {"--journal-sync", OPTION_FLAG, &o->journal_sync,
         "sync to disk after each line"},
        {"--log", OPTION_FLAG, &o->log,
         "print a line for each call on stderr: tool, command or file, exit "
         "code"},
        OPTIONS_END};
    memset(o, 0, sizeof *o);
    if (!take_all(a, options, NULL)) return false;
    if (!set_roots(a, &o->roots, &o->where)) return false;
    if (!set_work_dir(a, o->work_dir, &o->where)) return false;
    o->where.deny = o->deny.list;
    o->where.deny_count = o->deny.count;
    if (!o->journal && (o->journal_size || o->journal_sync))
        return usage(a, "--journal-size and --journal-sync need --journal") ==
               DONE;
    if (!set_confinement(a, &o->confine, HFSB_CONFINE_WRITE, &o->where))
        return false;
    if (!set_checkpoints(a, o)) return false;
    if (!o->tools || o->tools[strspn(o->tools, ", \t")]) return true;
    return usage(a, "--tools names no tool") == DONE; /* it is not "all" */
}

/* False, after a message, for options of this machine with a sandbox. */
static bool check_local(args *a, const mcp_options *o, hfsb_runtime runtime) {
    const char *given = o->roots.count         ? "--root"
                        : o->deny.count        ? "--deny"
                        : o->on && o->work_dir ? "--work-dir"
                                               : confine_option(&o->confine);
    if (!given || runtime == HFSB_RUNTIME_LOCAL) return true;
    if (o->on)
        return usage(a, "%s is for this machine, not for a sandbox; its "
                        "hfsb-server takes it: " TAKEN_AFAR, given, given) ==
               DONE;
    return usage(a, "%s is for this machine%s", given,
                 o->sandbox ? ""
                              : ", but config.json sets \"tool_runtime\" to "
                                "sandbox") == DONE;
}

static int serve_named(args *a, mcp_options *o) {
    if (o->sandbox)
        return usage(a, "give --on or --sandbox-tools, not both");
    o->on = named_sandbox(o->on);
    if (!check_home(a, &o->home, HFSB_RUNTIME_REMOTE) ||
        !check_local(a, o, HFSB_RUNTIME_REMOTE))
        return a->status;
    return serve_sandbox(o);
}

int run_mcp(args *a) {
    mcp_options  o;
    hfsb_runtime runtime;
    hfsb_err     err = HFSB_INIT;
    if (!take_mcp(a, &o)) return a->status;
    if (o.on) return serve_named(a, &o);
    if (find_runtime(o.sandbox, &runtime, &err) != HFSB_OK) {
        fprintf(stderr, "hfsb: %s\n", err.msg);
        return REFUSED;
    }
    if (!check_home(a, &o.home, runtime) || !check_local(a, &o, runtime))
        return a->status;
    if (runtime == HFSB_RUNTIME_SANDBOX) return serve_sandbox(&o);
    if (named_sandbox(NULL)) {
        fprintf(stderr,
                "hfsb: HFSB_SANDBOX names %s, but hfsb mcp works on this "
                "machine, or with --sandbox-tools in a Space of its own. "
                "Give --on %s to use that sandbox, or unset HFSB_SANDBOX to "
                "use this machine.\n",
                named_sandbox(NULL), named_sandbox(NULL));
        return REFUSED;
    }
    return serve_here(&o);
}
