#pragma once

/* ==== DIALECT: the protocols of others =================================== */

#include "../remote/sandbox.h"
#include "../server/server.h"

/* A dialect lets clients of another protocol use the sandbox unchanged: it has
   the routes and errors of that protocol, and its way to send a token. Their
   commands are jobs of the server, and their calls are in its journal.

   A build that wants fewer of them defines HFSB_DIALECTS as a list of these:
   HFSB_DIALECT_HF, HFSB_DIALECT_CODEX, HFSB_DIALECT_AGENT_SANDBOX,
   HFSB_DIALECT_E2B; or as NULL. */
typedef struct hfsb_dialect_opts {
    const char *name;     /* see hfsb_dialect_name() */
    bool        own_port; /* listen on a port of its own; else its routes are
                             added to those of the server */
    const char *host;     /* of that port, as hfsb_server_listen() */
    unsigned    port;     /* (0: the kernel picks one) */
    hfsb_str    token;    /* that its clients send (empty: that of the server);
                             copied */
    bool        on_fds;   /* no routes: serve one client over a pair of
                             descriptors, one message per line: "codex". At
                             the end of its input the server stops, and the
                             processes of the client end */
    int         in, out;  /* these descriptors, which stay the caller's */
    const char *const *settings; /* "NAME=value", NULL-terminated: variables
                             that the dialect reads, see docs/dialects.md; a
                             whole environment is fine (NULL: none); copied */
} hfsb_dialect_opts;

/* Adds a dialect to a server that has the sandbox. *bound (may be NULL)
   receives its port. HFSB_OK; HFSB_ARG: there is no such dialect, no sandbox,
   another dialect has the same routes on the same port, or this one is not for
   descriptors; else as hfsb_server_listen() and hfsb_tools_open(). After a
   failure the server may have some of its routes: close it. */
HFSB_API hfsb_status hfsb_server_add_dialect(hfsb_server             *server,
                                             const hfsb_dialect_opts *opts,
                                             unsigned *bound, hfsb_err *err);
/* The name of the n-th dialect, counted from 0; NULL after the last. */
HFSB_API const char *hfsb_dialect_name(size_t n);

/* Codex's exec-server in a sandbox: passes messages between a pair of
   descriptors, one message per line, and hfsb-server --api codex in the
   sandbox. */
typedef struct hfsb_codex_bridge_opts {
    hfsb_sandbox *sandbox; /* must stay open until the server is closed */
    int           in, out; /* stay the caller's */
    hfsb_err     *why; /* receives the reason when the bridge ends before its
                          input, because the connection is lost for good (NULL:
                          not wanted); must last as long as the server */
} hfsb_codex_bridge_opts;

/* Connects, and adds the bridge to a server, which needs no sandbox of its
   own. If the connection is lost later, reconnects for up to 50 s and resumes
   the session. At the end of its input the remote processes are ended, and the
   server stops. HFSB_OK; HFSB_NOT_FOUND: the remote server was started without
   --api codex; HFSB_AUTH; HFSB_ARG: it speaks HF's /v1; HFSB_REFUSED: the
   transport has no streams; else as hfsb_transport. */
HFSB_API hfsb_status hfsb_server_add_codex_bridge(
    hfsb_server *server, const hfsb_codex_bridge_opts *opts, hfsb_err *err);
