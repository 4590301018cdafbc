/* program.h - what the parts of hfsb-server share. */
#ifndef HFSB_SERVER_PROGRAM_H
#define HFSB_SERVER_PROGRAM_H

#include "../../hfsb_server.h"

/* Exit codes: 0 stopped as asked; the rest says why it did not serve. */
enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* Says a sentence on stderr, with the program's name before it; gives code. */
int complain(int code, const char *format, ...) HFSBI_PRINTF(2, 3);

/* ---- options.c: the command line and the environment ---- */

enum { MAX_TEXTS = 16, DEFAULT_PORT = 7860 };

/* What an option that may be repeated was given; ends with NULL. */
typedef struct texts {
    const char *list[MAX_TEXTS + 1];
    size_t      count;
} texts;

typedef struct options {
    texts       hosts, unix_paths, listen_fds, allow_hosts;
    long long   port; /* -1: not given */
    const char *work_dir, *root;
    const char *token_file;
    long long   token_fd; /* -1: not given */
    bool        no_auth, is_public, no_mcp;
    bool        kill_on_disconnect, log, quiet;
    long long   max_body, max_bodies, max_head; /* 0: the library's own */
    long long   min_rate;
    long long   max_connections, max_running, max_waiting;
    long long   threads; /* -1: not given */
    long long   timeout_ms, max_timeout_ms;
    long long   head_ms, body_ms, idle_ms, beat_ms;
    bool        has_token; /* found by secret.c */
} options;

/* Fills *o. False when there is nothing left to do, since help or the version
   was asked for or the line was not understood; either has been printed, and
   *code is the exit code. */
bool take_options(int argc, char **argv, options *o, int *code);

/* Whether it listens on a TCP address of its own: yes, unless only other
   places were given. */
bool wants_tcp(const options *o);

/* A whole number from text, or false. */
bool read_number(const char *text, long long *out);

/* The n-th place to listen, from 0 on; NULL behind the last. */
const char *tcp_host(const options *o, size_t n);

/* True when the text itself names loopback: nothing is looked up. */
bool is_loopback(const char *host);
/* True when all places are loopback or Unix sockets, as far as known. */
bool only_loopback(const options *o);

/* ---- secret.c: the token, and leaving no copy of it ---- */

enum { SECRET_SIZE = 4096 };

typedef struct secret {
    char   bytes[SECRET_SIZE];
    size_t len;
    bool   made_up; /* here, to be shown to whoever sits at the terminal */
} secret;

/* Overwrites memory in a way that no compiler leaves out. */
void wipe(void *ptr, size_t n);
/* The same for what calls that have returned left on the stack. */
void wipe_stack(void);

/* Other processes of this user cannot look into this one's memory. */
void hide_memory(void);

/* Overwrites the token in the block of memory that /proc shows as this
   process's environment and takes the variable out of the environment; before
   that its value is copied to *out (may be NULL; as it was when there is no
   such variable). False when it does not fit. */
bool take_environment_token(secret *out, bool *found);

/* Finds the token wherever the options say, or makes one up. DONE, also when
   there is none; or the exit code after saying what is wrong. */
int find_token(options *o, secret *out);

/* ---- init.c: as process 1 of a container ---- */

/* When this is process 1: goes on in a child and keeps this process as what
   hands on signals, reaps orphans and ends as the child ends. Otherwise does
   nothing. */
void become_init(void);

/* ---- signals.c ---- */

/* Whoever started this program may have let it ignore SIGCHLD; then the kernel
   would not tell how a command ended, nor process 1 that its child did. */
void notice_children(void);

/* From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT stop the server, unless
   they were ignored when the program started; a second one ends it at once.
   SIGPIPE is ignored. */
void stop_on_signals(hfsb_server *server);

/* Room for as many descriptors as the options may need, as far as allowed. */
void raise_descriptor_limit(const options *o);

/* ---- log.c ---- */

/* For hfsb_server_opts.on_event; user is the options. Each event is a line of
   JSON on stderr; without --log requests are left out, and of the rest at most
   one a second is told. */
void log_event(void *user, const hfsb_server_event *event);

/* All of it to a descriptor; false when that fails. */
bool write_all(int fd, const char *ptr, size_t n);

/* ---- greeting.c ---- */

/* An address as it can be asked for, kept by the caller. */
typedef struct place {
    char     text[256]; /* host, or path of a Unix socket */
    unsigned port;
    bool     is_unix;
} place;

/* Fills *out for a socket that listens already. */
void describe_socket(int fd, place *out);

/* Says on stdout, in one write, where it listens and how to call it. token
   (may be NULL) is shown. */
void greet(const options *o, const place *places, size_t count,
           const secret *token);

#endif
