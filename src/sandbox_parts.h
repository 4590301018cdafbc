#pragma once

/* The inside of a sandbox handle. Private to sandbox_*.c. */

#include "os.h"
#include "sandbox.h"

struct hfsb_sandbox {
    /* what does not change once it is made */
    hfsb_sandbox_opts o; /* its texts are in the buffers below; defaults are
                            filled in */
    hfsb_transport    transport;     /* not ours to close */
    hfsb_buf          id, page, api; /* api: "https://.../api/" */
    hfsb_buf          hub_token, api_token, work_dir, space_url;
    bool              is_url, owned;

    pthread_mutex_t lock; /* what follows belongs to it */
    bool            deleted;
    bool            ours;         /* the server has said X-Hfsb */
    char            instance[64]; /* of that */
    hfsb_buf        seen; /* cleaned absolute paths that were read or written,
                             a NUL behind each */
};

/* ---- sandbox_handle.c ---- */

/* A handle for id (or is_url: a server at `api`), all options copied and
   resolved, nothing asked of anyone yet. */
HFSBI_FN hfsb_status hfsbi_sandbox_new(const hfsb_sandbox_opts *opts,
                                       hfsb_str id, hfsb_str url, bool owned,
                                       hfsb_sandbox **out, hfsb_err *err);
/* Frees it, secrets overwritten. */
HFSBI_FN void hfsbi_sandbox_free(hfsb_sandbox *sandbox);
/* One line to the log, when there is one. */
HFSBI_FN void hfsbi_sandbox_log(const hfsb_sandbox *sandbox,
                                const char *format, ...) HFSBI_PRINTF(2, 3);
/* Asks for health until it answers 200; wait_ms in all. HFSB_OK, HFSB_TIMEOUT,
   HFSB_CANCELLED, HFSB_AUTH. */
HFSBI_FN hfsb_status hfsbi_sandbox_wait(hfsb_sandbox *sandbox,
                                        long long wait_ms, hfsb_err *err);

/* The same for a server that was just started: one that refuses the token, or
   is the instance `before` (may be ""), is what ran there until now, and is
   waited for to go. Never HFSB_AUTH. */
HFSBI_FN hfsb_status hfsbi_sandbox_wait_new(hfsb_sandbox *sandbox,
                                            long long     wait_ms,
                                            const char   *before,
                                            hfsb_err     *err);
/* Asks the Hub for the address of a Space whose name does not tell it. */
HFSBI_FN hfsb_status hfsbi_sandbox_locate(hfsb_sandbox *sandbox,
                                          hfsb_err     *err);
/* "600" or "0.25": milliseconds as seconds, for messages. */
#define HFSBI_SECONDS 24 /* with the NUL */
HFSBI_FN void hfsbi_seconds_text(long long ms, char out[HFSBI_SECONDS]);

/* ---- sandbox_start.c ---- */

/* How long is waited for a Space that was just duplicated and is not visible
   everywhere yet. All zero at first. */
typedef struct hfsbi_patience {
    int    seconds; /* waited so far */
    size_t waits;
} hfsbi_patience;

/* Waits for 1, 2, 4, 5, 5 ... seconds (in fifths of poll_ms); HFSB_LIMIT when
   it has been a minute, HFSB_CANCELLED. */
HFSBI_FN hfsb_status hfsbi_sandbox_patience(const hfsb_sandbox *sandbox,
                                            hfsbi_patience     *patience);
/* Takes the tokens and what was given as a secret out of a text. */
HFSBI_FN void hfsbi_sandbox_scrub(const hfsb_sandbox_opts *opts,
                                  const hfsb_sandbox_spec *spec, char *text);
/* Takes the handle's tokens out of a text: a peer may echo them. */
HFSBI_FN void hfsbi_sandbox_hide(const hfsb_sandbox *sandbox, char *text);
/* Waits until the Space runs the commit `sha` ("": any) on the hardware of
   spec. *seen becomes true once the Hub has told of it. */
HFSBI_FN hfsb_status hfsbi_sandbox_start(hfsb_sandbox            *sandbox,
                                         const hfsb_sandbox_spec *spec,
                                         const char *sha, bool *seen,
                                         hfsb_err *err);

/* hfsb_sandbox_create() that also appends to *left (may be NULL) the id of a
   Space that it made and could not delete. */
HFSBI_FN hfsb_status hfsbi_sandbox_make(const hfsb_sandbox_spec *spec,
                                        const hfsb_sandbox_opts *opts,
                                        hfsb_buf *left, hfsb_sandbox **out,
                                        hfsb_err *err);

/* ---- sandbox_sweep.c ---- */

/* "2025-03-07T12:24:18.657Z" (0 to 9 digits behind the point, a zone) as
   seconds since 1970; false when it is none. */
HFSBI_FN bool hfsbi_date_parse(hfsb_str text, double *out);

/* ---- sandbox_request.c ---- */

/* One request to the server, both tokens added; what X-Hfsb says is noted.
   The call's url is set here to api + `path` (which may have a query); its
   fields are sent besides. Results as hfsb_http_send(). */
HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *sandbox, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply *reply, hfsb_err *err);
