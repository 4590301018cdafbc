/* mcp.h - what `hfsb mcp` is made of: the process around the server. */
#ifndef HFSB_CLI_MCP_H
#define HFSB_CLI_MCP_H

#include "../../hfsb_server.h"

/* ---- mcp_process.c: descriptors, signals, orphans, the end ---- */

/* What standard input and output were. */
typedef struct stdio_pair {
    int in, out;
} stdio_pair;

/* Takes them out of the reach of everything else, commands above all: in their
   places stand /dev/null and stderr. False, and said on stderr, when that
   fails. */
bool take_stdio(stdio_pair *io);
/* Gives them up as they were; and stderr, too, when it is a pipe whose end the
   host waits for. The numbers stay taken. */
void leave_stdio(const stdio_pair *io);

/* From now on SIGINT, SIGTERM and SIGHUP stop the server (NULL: nothing), and
   SIGPIPE is ignored. */
void stop_on_signals(hfsb_server *server);

/* The program ends in ms milliseconds, whatever it does then. */
void end_within(long ms);

/* What commands leave behind becomes a child of this process, where the system
   (Linux) has that. */
void adopt_orphans(void);
/* Waits for orphans that have ended; true when there are children of any
   kind. */
bool reap_orphans(void);
/* Kills all children, and what becomes one by that. */
void kill_orphans(void);

/* ---- mcp_keeper.c: a process that outlives what its host knows ---- */

typedef struct keeper {
    int tell; /* -1: there is no parent to be told */
} keeper;

/* Goes on in a child, in a session of its own: there, and where no child can
   be had, true. The parent stands for it, hands on signals, and when it is to
   end gives false with the exit code. Before there is any thread. When the
   parent is killed the child gets SIGTERM. */
bool split_process(keeper *k, int *code);
/* Lets the parent end, with that code: all that the host waits for is done. */
void release_parent(keeper *k, int code);

#endif
