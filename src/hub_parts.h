#pragma once

/* The inside of the HUB. Private to hub_*.c, but for hfsbi_hub_transport() and
   what hub_space.c gives to sandboxes and sessions. */

#include "hub.h"
#include "os.h"

struct hfsb_hub {
    /* what does not change once it is open */
    const hfsb_transport *transport;
    hfsb_buf              endpoint;      /* without a slash at its end */
    hfsb_buf              authorization; /* "Bearer ...", or "" */
    hfsb_buf              agent;
    bool                  offline;
    long long             timeout_ms, delay_ms, max_wait_ms;
    size_t                tries;
    hfsb_log_fn           log;
    void                 *user;
    hfsb_alloc            alloc;

    pthread_mutex_t lock;   /* what follows belongs to it */
    hfsb_buf        owner;  /* of the token, once it was asked for */
    hfsb_buf        topics; /* of warnings that were told, an LF behind each */
};

/* One request, its repeats and what came of them. */
typedef struct hfsbi_hub_request {
    const char *method;
    char        what[320]; /* "Could not {what}: ..." */
    hfsb_buf    target;    /* "/api/...", or a whole URL */
    hfsb_buf    body;
    bool        has_body;
    const char *content_type; /* (NULL: application/json) */
    bool        repeat;       /* safe to send again */
    bool        gone_is_done; /* 404 at a repeat is HFSB_OK */
    size_t      tries;        /* (0: as many as the hub makes) */
    long long   until;        /* on hfsb_clock_ms(): no try goes on behind it
                                 (0: no such limit) */
    /* never shown, should the Hub echo one; beside the token */
    const hfsb_hub_pair *secrets;
    size_t               secret_count;
    hfsb_json_doc       *out; /* the answer must be JSON: it goes here */
    const hfsb_cancel   *cancel;
    /* a stream in place of an answer: no limit but idle_ms and until */
    bool (*on_body)(void *user, hfsb_str piece);
    void     *user;
    long long idle_ms;

    /* what came of it */
    hfsb_http_reply reply;
    bool            opened;   /* the head of a 2xx reply came */
    bool            again;    /* of the last try: another one may help */
    bool            unclear;  /* of any try: it may have happened, though the
                                 Hub did not say so */
    long long       asked_ms; /* to wait, as the Hub says; -1: it does not */
} hfsbi_hub_request;

/* ---- hub_request.c ---- */

/* Begins a request; end it with hfsbi_hub_end() in any case, which overwrites
   its body. */
HFSBI_FN void hfsbi_hub_begin(const hfsb_hub *hub, hfsbi_hub_request *request,
                              const char *method, const hfsb_cancel *cancel,
                              const char *what, ...) HFSBI_PRINTF(5, 6);
HFSBI_FN void hfsbi_hub_end(hfsbi_hub_request *request);

/* Sends it once: HFSB_OK for 2xx, else as hub.h says. */
HFSBI_FN hfsb_status hfsbi_hub_once(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err);
/* Sends it, again where that is safe and may help. */
HFSBI_FN hfsb_status hfsbi_hub_send(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err);
/* Milliseconds before try n + 1. */
HFSBI_FN long long hfsbi_hub_delay(const hfsb_hub *hub, size_t n);
/* Is there time for try n + 1? */
HFSBI_FN bool hfsbi_hub_has_time(const hfsb_hub          *hub,
                                 const hfsbi_hub_request *request, size_t n);
/* Waits that long, or as the Hub asked for, and tells the log; false when it
   was cancelled, *err filled. */
HFSBI_FN bool hfsbi_hub_wait(hfsb_hub *hub, hfsbi_hub_request *request,
                             size_t n, hfsb_err *err);

/* Sends what *w wrote into the request's body. */
HFSBI_FN hfsb_status hfsbi_hub_send_json(hfsb_hub          *hub,
                                         hfsbi_hub_request *request,
                                         hfsb_json_writer *w, hfsb_err *err);

/* GETs page after page of arrays and calls each for every item, until it says
   false or `limit` (0: none) were told. */
HFSBI_FN hfsb_status hfsbi_hub_pages(hfsb_hub *hub, hfsbi_hub_request *request,
                                     size_t limit,
                                     bool (*each)(void                  *user,
                                                  const hfsb_json_value *item),
                                     void *user, hfsb_err *err);

/* ---- hub_error.c ---- */

/* The reply's status is not 2xx: what that means, in *err. */
HFSBI_FN hfsb_status hfsbi_hub_refused(const hfsb_hub          *hub,
                                       const hfsbi_hub_request *request,
                                       hfsb_err                *err);
/* A whole reply that cannot be understood. */
HFSBI_FN hfsb_status hfsbi_hub_odd(const hfsb_hub          *hub,
                                   const hfsbi_hub_request *request,
                                   const char *problem, hfsb_err *err);
/* What the Hub says about waiting: milliseconds, or -1. */
HFSBI_FN long long hfsbi_hub_asked(const hfsb_http_reply *reply);
/* Appends text with the token and the request's secrets taken out. */
HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub          *hub,
                                      const hfsbi_hub_request *request,
                                      hfsb_str text, hfsb_buf *out);

/* ---- hub_space.c ---- */

/* What tries to delete a Space have told so far. All zero at first. */
typedef struct hfsbi_hub_tried {
    bool      unclear;  /* it may be gone */
    long long asked_ms; /* to wait before the next one */
} hfsbi_hub_tried;

/* hfsb_hub_delete() of one request, for those who count their tries; not over
   later than `until` on hfsb_clock_ms() (0: the hub's timeout). *tried, the
   same for all tries, makes "not found" HFSB_OK once it is unclear. */
HFSBI_FN hfsb_status hfsbi_hub_delete_once(hfsb_hub *hub, hfsb_str id,
                                           long long          until,
                                           const hfsb_cancel *cancel,
                                           hfsbi_hub_tried   *tried,
                                           hfsb_err          *err);
/* hfsb_hub_runtime() that is over by then, too, repeats and all. */
HFSBI_FN hfsb_status hfsbi_hub_runtime_until(hfsb_hub *hub, hfsb_str id,
                                             long long           until,
                                             const hfsb_cancel  *cancel,
                                             hfsb_space_runtime *out,
                                             hfsb_err           *err);

/* ---- hub_jobs.c ---- */

/* Makes the target of a request about a job, which is {rest} of it, and adds
   its id to what. */
HFSBI_FN hfsb_status hfsbi_hub_job_target(hfsb_hub          *hub,
                                          hfsbi_hub_request *request,
                                          hfsb_str space, hfsb_str id,
                                          const char *rest, hfsb_err *err);

/* ---- hub.c ---- */

/* For the sandboxes of a hub. */
HFSBI_FN const hfsb_transport *hfsbi_hub_transport(const hfsb_hub *hub);
/* One line to the log, when there is one. */
HFSBI_FN void hfsbi_hub_log(const hfsb_hub *hub, const char *format, ...)
    HFSBI_PRINTF(2, 3);
/* True the first time it is asked about that topic. */
HFSBI_FN bool hfsbi_hub_first(hfsb_hub *hub, hfsb_str topic);
/* Overwrites and frees. */
HFSBI_FN void hfsbi_hub_wipe(hfsb_buf *b);

/* ---- pieces of JSON ---- */

HFSBI_FN void hfsbi_hub_put(hfsb_json_writer *w, const char *key,
                            hfsb_str value);
/* [{"key":..,"value":..}], nothing for none. */
HFSBI_FN void hfsbi_hub_put_list(hfsb_json_writer *w, const char *key,
                                 const hfsb_hub_pair *pairs, size_t count);
/* Copies a string of at most size - 1 bytes, "" for anything else; what is
   longer is cut at a character's border. */
HFSBI_FN void hfsbi_hub_copy(const hfsb_json_value *value, char *out,
                             size_t size);
/* A name for a secret or variable: a letter, then letters, digits and "_",
   at least `least` in all. */
HFSBI_FN hfsb_status hfsbi_hub_check_key(hfsb_str key, size_t least,
                                         hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_hub_check_keys(const hfsb_hub_pair *pairs,
                                          size_t count, size_t least,
                                          hfsb_err *err);
