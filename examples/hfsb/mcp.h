/* mcp.h - the processes of `hfsb mcp`. */
#ifndef HFSB_CLI_MCP_H
#define HFSB_CLI_MCP_H

#ifndef HFSB_HUB
#define HFSB_HUB
#endif
#include "../../hfsb_server.h"

/* ---- mcp_process.c: descriptors, signals, orphans ---- */

/* Copies of standard input and output. */
typedef struct stdio_pair {
    int in, out;
} stdio_pair;

/* Moves them to other descriptors, where no command can write to them, and
   puts /dev/null and stderr in their place. False, after a message, on
   failure. */
bool take_stdio(stdio_pair *io);
/* Closes them, and stderr if it is a pipe, because the host waits for EOF on
   it. The descriptors then point to /dev/null. */
void leave_stdio(const stdio_pair *io);

/* From now on SIGINT, SIGTERM and SIGHUP stop the server (NULL: do nothing),
   and SIGPIPE is ignored. */
void stop_on_signals(hfsb_server *server);

/* The end is under way, and nothing but the alarm may cut it short. */
void ignore_signals(void);

/* Sets an alarm that ends the program after ms milliseconds. */
void end_within(long ms);


/* ---- mcp_keeper.c: a child that the host cannot kill ---- */

typedef struct keeper {
    int done; /* pipe to the parent, for the exit code; -1: none */
} keeper;

/* Forks. True in the child, which has a session of its own and gets SIGTERM
   when the parent dies; also true if fork failed. The parent waits, forwards
   signals, and gets false with the exit code when it may exit. Call it before
   any thread is started. */
bool split_process(keeper *k, int *code);
/* Lets the parent exit with that code. */
void release_parent(keeper *k, int code);

#endif
