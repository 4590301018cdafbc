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

/* ---- sandbox_request.c ---- */

/* One request to the server, both tokens added; what X-Hfsb says is noted.
   The call's url is set here to api + `path` (which may have a query); its
   fields are sent besides. Results as hfsb_http_send(). */
HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *sandbox, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply *reply, hfsb_err *err);
