/* program.h - declarations shared by the parts of hfsb-server. */
#ifndef HFSB_SERVER_PROGRAM_H
#define HFSB_SERVER_PROGRAM_H

#include "../../hfsb_server.h"
#include "suggest.h"

#include <signal.h>

/* Exit codes: stopped as asked; could not serve; invalid options. */
enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* Prints a sentence on stderr after the program's name; returns code. */
int complain(int code, const char *format, ...) HFSBI_PRINTF(2, 3);

/* ---- options.c: the command line and the environment ---- */

enum { MAX_TEXTS = 16, DEFAULT_PORT = 7860 };

/* Values of an option that may be repeated; ends with NULL. */
typedef struct texts {
    const char *list[MAX_TEXTS + 1];
    size_t      count;
} texts;

typedef struct options {
    texts       hosts, unix_paths, listen_fds, allow_hosts;
    texts       roots, deny, apis;
    long long   port; /* -1: not given */
    const char *check; /* a URL: only look whether it answers */
    const char *work_dir, *checkpoints;
    bool        checkpoint_ignored;
    const char *token_file;
    const char *journal; /* file; NULL: only in memory */
    long long   journal_size;
    bool        journal_sync;
    long long   token_fd; /* -1: not given */
    bool        no_auth, is_public, no_mcp, no_page;
    bool        init; /* the token comes by POST /init */
    bool        kill_on_disconnect, log, quiet;
    long long   max_body, max_bodies, max_head; /* 0: the library's own */
    long long   min_rate, max_result;
    long long   max_connections, max_per_peer, max_running, max_waiting;
    long long   threads; /* -1: not given */
    long long   timeout_ms, max_timeout_ms;
    long long   head_ms, body_ms, idle_ms, beat_ms, drain_ms, max_idle_ms;
    bool        has_token; /* found by secret.c */
    bool        stdio;     /* serve a pipe, see stdio.c ... */
    long long   linger_ms; /* ... and wait so long for another one */
    const char *confine, *net; /* NULL: not given */
    texts       allow_write, allow_read;
    long long   max_memory, max_processes, max_file_size, max_cpu;
} options;

/* Fills *o. False if the program is to exit with *code: help or the version
   was printed, or an error. */
bool take_options(int argc, char **argv, options *o, int *code);

/* True if the server listens on a TCP address of its own: always, unless only
   Unix sockets or descriptors were given. */
bool wants_tcp(const options *o);

/* Reads a whole number; false if text is anything else. */
bool read_number(const char *text, long long *out);

/* The n-th TCP address to listen on, counted from 0; NULL after the last. */
const char *tcp_host(const options *o, size_t n);

/* True if the text itself names loopback; nothing is resolved. */
bool is_loopback(const char *host);
/* True if all addresses are known to be loopback or Unix sockets. */
bool only_loopback(const options *o);

/* ---- secret.c: the token, and leaving no copy of it ---- */

enum { SECRET_SIZE = 4096 };

typedef struct secret {
    char   bytes[SECRET_SIZE];
    size_t len;
    bool   made_up; /* generated, to be shown on the terminal */
} secret;

/* Overwrites memory; the compiler cannot optimise it away. */
void wipe(void *ptr, size_t n);
/* Overwrites what returned calls left on the stack. */
void wipe_stack(void);

/* Hides this process's memory from other processes of this user. */
void hide_memory(void);

/* Removes a variable from the environment and overwrites its bytes, which
   /proc shows. Its value is copied to *out first (may be NULL; unchanged
   without the variable). False if it does not fit. */
bool take_environment_token(const char *name, secret *out, bool *found);
/* The environment, without the variables that were taken. */
const char *const *environment(void);

/* Finds the token as the options say, or generates one; *sbx is that of
   $SBX_TOKEN, for --api hf, or empty. Returns DONE, also without a token, or
   the exit code after printing an error. */
int find_token(options *o, secret *out, secret *sbx);

/* ---- stdio.c: a client at the other end of standard input and output ---- */

/* Connects the pipe to the server of its client, which is started if it does
   not run. True in the process that is to become that server, with *o changed
   so that it listens for the pipe; false, with the exit code in *code, when
   the pipe has ended. */
bool serve_pipe(options *o, int *code);
/* In the server: its token; the routes of the pipe; "it listens"; instead of
   hfsb_server_run(). All do nothing, or false, without --stdio. */
void        take_pipe_token(options *o, secret *out);
hfsb_status add_pipe(const options *o, hfsb_server *server, hfsb_err *err);
void        report_pipe(const options *o);
void        run_pipe(const options *o, hfsb_server *server);
/* In its keeper: forgets the key, and returns a descriptor to keep open, or
   -1. */
int keep_pipe(void);
/* Removes its files, after the server and everything that commands left
   running have ended. For the keeper, or a server without one. */
void end_pipe(void);

/* ---- keeper.c: the process that the server is a child of ---- */

enum {
    KEEPER_GONE = SIGUSR1, /* the child gets it when the keeper dies */
    CHILD_READY = SIGUSR1  /* the keeper gets it when the server is ready */
};

/* Continues in a child. This process forwards signals, reaps orphans, and when
   the child ends kills what is left and exits. */
void continue_in_child(void);

/* In the child: false if the keeper has gone, or could not be started. */
bool has_keeper(void);

/* Reports to a service manager, through the keeper, that the server is
   ready. */
void report_ready(void);

/* ---- systemd.c: being a service ---- */

/* Adds the sockets that systemd has opened for this process to o->listen_fds,
   and removes their variables. False with *code if there are too many. */
bool take_sockets(options *o, int *code);
/* Remembers $NOTIFY_SOCKET, and removes the variable. */
void take_notify_socket(void);
/* Sends a state such as "READY=1" there, if there was one. */
void notify(const char *state);

/* ---- probe.c: --check ---- */

/* Asks the server at that URL for its health. Returns the exit code, after one
   line on stdout or stderr. */
int probe(const char *url);

/* ---- manual.c: --man and --completion ---- */

/* Prints the manual page, from the texts of --help (NULL-terminated). Returns
   the exit code. */
int print_manual(const char *const *help);
/* Prints the completions for bash, zsh or fish. */
int print_completion(const char *const *help, const char *shell);

/* ---- confine.c: what commands may touch ---- */

/* Fills *out from the options. Without --confine: none in a container, which
   confines commands itself; else write, as far as the system can enforce
   it. */
void fill_confinement(const options *o, hfsb_confine_opts *out);
/* The reason why commands run unconfined, where they do. */
const char *why_unconfined(const options *o);

/* ---- signals.c ---- */

/* Lets SIGINT, SIGTERM, SIGHUP and SIGQUIT stop the server, unless they were
   ignored when the program started; a second signal, or the end of the keeper,
   stops it at once. Ignores SIGPIPE. */
void stop_on_signals(hfsb_server *server, long long drain_ms);

/* Raises the descriptor limit to what the options may need, if allowed. */
void raise_descriptor_limit(const options *o);

/* ---- log.c ---- */

/* For hfsb_server_opts.on_event; user is the options. Prints each event as a
   line of JSON on stderr; without --log no requests, and at most one other
   event per second. */
void log_event(void *user, const hfsb_server_event *event);

/* For hfsb_journal_opts: prints the end of each call, with --log; and that the
   journal could not be written. user is the options. Any thread. */
void log_call(void *user, const hfsb_journal_event *event);
void log_journal_failure(void *user, const char *message);

/* Writes all n bytes; false on failure. */
bool write_all(int fd, const char *ptr, size_t n);

/* ---- greeting.c ---- */

/* An address that the server listens on. */
typedef struct place {
    char     text[256]; /* host, or path of a Unix socket */
    unsigned port;
    bool     is_unix;
} place;

/* Fills *out for an inherited listening socket. */
void describe_socket(int fd, place *out);

/* Prints on stdout, in one write, where the server listens and how to call it.
   confined: hfsb_confine_text(). A generated token (may be NULL) is shown. */
void greet(const options *o, const place *places, size_t count,
           const char *confined, const secret *token);

#endif
