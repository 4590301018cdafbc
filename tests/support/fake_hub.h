/* fake_hub.h - the Hugging Face Hub as far as sandboxes and jobs see it, in
   threads of a test, on ports that the kernel picks. Answers as the real one
   does (status, body, fields), misbehaves on demand, and remembers every
   request.

       #define T_SERVER
       #include "t_tools.h"
       #include "fake_hub.h"

       fh_hub *hub = fh_start(NULL);       (NULL: all the defaults)
       ... endpoint  fh_url(hub)           "http://127.0.0.1:PORT"
       ... space_url fh_edge(hub)          the edge in front of all Spaces
       ... token     FH_TOKEN              of the user "alice"
       T_CHECK(fh_count(hub, "POST", "/api/spaces/ *" "/secrets") == 2);
       fh_stop(hub);

   What is there at the start: the public Space burtenshaw/sandbox (the
   template), the user alice, her organisation acme; no jobs.

   A new Space goes through stages: the first question for its runtime is 404,
   then one stage a question: BUILDING, BUILDING, APP_STARTING, RUNNING (with
   its hardware and the sha of its newest commit); its first health is 503 with
   an HTML page. fh_opts.prompt: RUNNING at once, none of that. fh_stages()
   says otherwise, for one Space or all: items parted by commas, the last one
   stays,
       STAGE[:HARDWARE][@SHA]    "RUNNING:t4-small@old": the current hardware
                                 is this one; the sha is that of the template
                                 ("old"), of the newest commit ("new", the
                                 default) or missing ("none")
       404, 500 ...              that status instead of an answer
   A commit, a restart and new hardware restart them; pause is PAUSED.

   A Space is reached through the edge, fh_edge(): a second port for
   every https://{name}.hf.space. Which Space is meant is said by Host
   ("alice-sandbox-1a2b3c4d.hf.space"), by a path in front ("/alice/sandbox-
   1a2b3c4d/api/health"), by the token in X-Sandbox-Authorization, and without
   these it is the newest. A private Space needs Authorization there; one that
   is not RUNNING answers 503 with an HTML page (each health is a question for
   its stage, too). What answers after the edge depends on fh_opts.mode:
       FH_STUB   health, and {"success":true,...} for every other call
       FH_EMBED  hfsb-server's endpoints, in this process, in a directory of
                 the Space's own (fh_work_dir()), from the first commit on
       FH_BUILD  the real thing: a commit with a Dockerfile is built by running
                 its compile lines in that directory, then its CMD is run; the
                 stages are the true ones. Restart, pause and delete stop it

   A job with exposed ports is reached through the edge as well, by Host
   ("ID--49983.localhost"), with the Hub's token. It answers like a Space of
   this mode; with fh_opts.run_jobs its command is run.

   Faults: fh_fault() adds one, for the n-th request that matches; see
   fh_fault_spec. They are for the edge, too.

   fake_hub.c is a program around it for shells and other languages; what it
   understands beneath /_fake is in fake_hub_control.h. */
#ifndef FAKE_HUB_H
#define FAKE_HUB_H
#ifdef HFSBI_SPLIT
#include "../../src/server/server.h"
#include "../../src/server/server_private.h"
#else
#include "../../hfsb_server.h"
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FH_TOKEN    "hf_goodtoken"
#define FH_TEMPLATE "burtenshaw/sandbox"

typedef struct fh_hub fh_hub;

typedef enum fh_mode { FH_STUB, FH_EMBED, FH_BUILD } fh_mode;

typedef struct fh_opts {
    const char *token; /* that is good (NULL: FH_TOKEN) */
    const char *user;  /* whose it is (NULL: "alice") */
    fh_mode     mode;
    bool        prompt; /* new Spaces are RUNNING at once, and healthy */
    const char *stages; /* of a Space after a commit, see above (NULL: those
                           above) */
    const char *fresh_stages; /* of a Space that was only duplicated (NULL:
                           "RUNNING@old") */
    long long   stage_ms; /* each stage takes this long (0: one question) */
    size_t      missing;  /* every call of a new Space is 404 so often first */
    size_t      page;     /* Spaces or jobs on a page of a list (0: 2) */
    const char *link_base;  /* of the links to the next page (NULL: our own;
                           "https://huggingface.co" as the real one has) */
    const char *job_stages; /* of a job (NULL: "SCHEDULING,RUNNING,
                           COMPLETED"), one for each question */
    const char *box_stages; /* of a job with an exposed port, which is not
                           run (NULL: "SCHEDULING,RUNNING") */
    size_t      late_urls; /* exposeUrls are missing in so many answers */
    bool        run_jobs;  /* run the command of such a job, in a directory of
                           its own and with its volumes there */
    const char *job_log; /* its lines (NULL: "===== Job started ...", "hi",
                           "done") */
    long long   log_open_ms; /* logs stay open and silent this long at their
                           end (0: they end) */
    const char *build_vars; /* arguments of make: "STATIC_CFLAGS=-O0" (NULL:
                           none) */
    const char *work_dir; /* FH_EMBED, FH_BUILD: that every Space's commands
                           begin in; must be there (NULL: a new one of its own
                           with every start) */
} fh_opts;

/* Aborts when it cannot. Texts of opts must stay. */
static fh_hub *fh_start(const fh_opts *opts);
/* Ends it all: connections, servers, builds; removes their directories. */
static void fh_stop(fh_hub *hub);

static const char *fh_url(const fh_hub *hub);
static const char *fh_edge(const fh_hub *hub);

/* ---- what is in it; all of these from any thread ---- */

/* A Space that was there before: last modified so many days ago. */
static void fh_add_space(fh_hub *hub, const char *id, double days,
                         bool hidden);
static bool fh_has(fh_hub *hub, const char *id);
/* Spaces that there are, the template left aside. */
static size_t fh_spaces(fh_hub *hub);
/* Appends the id of the n-th of them (from 0); false: there is none. */
static bool fh_space_id(fh_hub *hub, size_t n, hfsb_buf *out);
/* Appends the value of a secret, a variable, the content of a file, the head's
   oid; false: there is none. */
static bool fh_secret(fh_hub *hub, const char *id, const char *key,
                      hfsb_buf *out);
static bool fh_variable(fh_hub *hub, const char *id, const char *key,
                        hfsb_buf *out);
static bool fh_file(fh_hub *hub, const char *id, const char *path,
                    hfsb_buf *out);
static bool fh_head(fh_hub *hub, const char *id, hfsb_buf *out);
/* How many commits it got since it was made. */
static size_t fh_commits(fh_hub *hub, const char *id);
/* id NULL: of all there are, and of those to come after a commit. */
static void fh_stages(fh_hub *hub, const char *id, const char *stages);
/* A line more in logs/{which}, "build" or "run". */
static void fh_log(fh_hub *hub, const char *id, const char *which,
                   const char *line);
/* FH_EMBED, FH_BUILD: appends the directory its commands begin in (its
   work_dir); the address of its server itself. False: it has none (yet). */
static bool fh_work_dir(fh_hub *hub, const char *id, hfsb_buf *out);
static bool fh_direct(fh_hub *hub, const char *id, hfsb_buf *out);

/* Jobs that have neither ended nor been cancelled. */
static size_t fh_live_jobs(fh_hub *hub);

/* ---- what was asked ---- */

typedef struct fh_record { /* good until fh_stop() */
    struct fh_record *next;
    hfsb_buf method, target, path; /* path: target without its query */
    hfsb_buf fields; /* "Name: value" lines with CRLF */
    hfsb_buf body;   /* on its way through the edge: the first 64 KiB */
    bool     edge;   /* asked of a Space */
    int      status; /* of the answer; 0: none yet, or none at all (of what
                        passed the edge: once it is over; fh_status()) */
} fh_record;

/* How many requests there were; method NULL: any; path NULL: any, and a "*" in
   it matches any text. One that begins with "edge:" is for the edge only,
   others for the Hub only: "edge:/api/health". */
static size_t fh_count(fh_hub *hub, const char *method, const char *path);
/* The n-th of them (from 0), or NULL. */
static const fh_record *fh_nth(fh_hub *hub, size_t n, const char *method,
                               const char *path);
/* Its status as it is now. */
static int fh_status(fh_hub *hub, const fh_record *record);
/* The value of a field, "" when it is not there. */
static hfsb_str fh_field(const fh_record *record, const char *name);
/* True when the text occurs in any request or field that was seen: for
   secrets. */
static bool fh_saw(fh_hub *hub, const char *text);
/* The counts begin at 0 again. */
static void fh_forget(fh_hub *hub);

/* ---- faults ---- */

typedef enum fh_shape {    /* of the body of a fault's status: */
    FH_ERROR,              /* {"error":"..."} */
    FH_ERROR_LIST,         /* {"error":["..",".."]} */
    FH_ERRORS,             /* {"errors":[{"message":".."}]} */
    FH_DESCRIPTION,        /* {"error":"code","error_description":".."} */
    FH_TEXT,
    FH_HTML,
    FH_EMPTY,
    FH_RAW                 /* the message, as application/json */
} fh_shape;

typedef enum fh_cut {
    FH_WHOLE,
    FH_CLOSE,     /* closed without a byte */
    FH_RESET,     /* reset without a byte */
    FH_CUT_HEAD,  /* closed in the middle of the head */
    FH_CUT_BODY,  /* closed in the middle of the body */
    FH_RESET_BODY /* reset there */
} fh_cut;

#define FH_ALWAYS ((size_t)-1)

typedef struct fh_fault_spec {
    const char *method; /* NULL: any */
    const char *path;   /* as in fh_count() */
    size_t      nth;    /* the first that is hit, counted from 1 and from now
                           (0: 1) */
    size_t      times;  /* so many in a row (0: 1) or FH_ALWAYS */
    unsigned    percent; /* of these, by chance, the same every time (0:
                           all) */
    int         status;  /* (0: the true answer) */
    fh_shape    shape;
    const char *message; /* (NULL: one that suits the status) */
    const char *code;    /* X-Error-Code (NULL: none) */
    const char *fields;  /* more of them: "Retry-After: 1\r\nX: y" (NULL:
                           none) */
    long long   delay_ms; /* before the answer; what was asked is done at
                           once */
    fh_cut      cut;
    bool        work; /* what was asked is done all the same: with a cut a lost
                         answer, with a status a lie */
} fh_fault_spec;

/* Texts are copied. Of several that match, the oldest that hits counts. A cut
   alone does not do the work; a delay alone does. */
static void fh_fault(fh_hub *hub, const fh_fault_spec *spec);
static void fh_no_faults(fh_hub *hub);

#include "fake_hub_base.h"
#include "fake_hub_state.h"
#include "fake_hub_look.h"
#include "fake_hub_fault.h"
#include "fake_hub_build.h"
#include "fake_hub_space.h"
#include "fake_hub_list.h"
#include "fake_hub_commit.h"
#include "fake_hub_jobs.h"
#include "fake_hub_edge.h"
#include "fake_hub_control.h"
#include "fake_hub_serve.h"
#endif
