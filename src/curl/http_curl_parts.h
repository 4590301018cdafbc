#pragma once

/* Private to the http_curl*.c files: libcurl, and what one call is. */

#include "../http_parts.h"
#include "../os.h"
#include "../url.h"
#include "http_curl.h"

#include <curl/curl.h>

/* CURLOPT_PREREQFUNCTION tells when a request begins to be sent, and lets us
   keep it from being sent twice. */
#if LIBCURL_VERSION_NUM < 0x075000
#error "hfsb_http_curl.h needs libcurl 7.80.0 or newer"
#endif

enum { HFSBI_CURL_KEPT = 4, HFSBI_CURL_SOCKETS = 8 };

/* A handle with connections of its own. One call has it at a time, so that no
   two threads ever share anything of libcurl's. */
typedef struct hfsbi_curl_slot {
    struct hfsbi_curl_slot *next; /* of those that no call has */
    CURL                   *easy;
    CURLM                  *multi;
    long     pid;    /* of the process that made it */
    hfsb_buf origin; /* "https://host:port" of its last call */
    int      fds[HFSBI_CURL_SOCKETS]; /* its connections; -1: none */
    int      code;   /* errno of a socket that could not be made; or 0 */
    char     text[CURL_ERROR_SIZE]; /* libcurl's words for a failure */
} hfsbi_curl_slot;

/* The transport. What is below the lock is used with it held. */
typedef struct hfsbi_curl {
    hfsb_alloc alloc;
    hfsb_buf   ca_file, ca_dir, proxy, secure_proxy, no_proxy;
    bool       http1;
    size_t     max_kept, max_head;
    long       kept_seconds;

    pthread_mutex_t  lock;
    hfsbi_curl_slot *idle; /* the last one used is the first */
    size_t           idle_count;
} hfsbi_curl;

/* One call under way. */
typedef struct hfsbi_curl_call {
    const hfsbi_curl     *curl;
    const hfsb_http_call *call;
    hfsb_err             *err;
    hfsb_url              url;
    hfsbi_curl_slot      *slot;
    hfsb_buf              method, address; /* as libcurl wants them */
    struct curl_slist    *fields;          /* to send */
    unsigned long long    body_left;       /* of body_read */
    bool requested; /* what is sent from here on may reach the peer */
    bool again;     /* libcurl wanted to send it a second time */
    hfsb_status ended; /* why a callback ended it (HFSB_OK: none did) */

    hfsb_buf           head;  /* of the reply, a line for each field */
    int                status; /* of that head; 0: none has begun */
    bool               has_head; /* the final one has been told */
    unsigned long long moved; /* bytes that callbacks have seen */
    long long          moved_at, begun_at; /* on hfsb_clock_ms() */
} hfsbi_curl_call;

/* ---- handles ---- */

/* One that has talked to that peer, else the last one used, else a new one;
   NULL without memory. Those of a process that has forked this one stay where
   they are: two cannot talk through one connection. */
HFSBI_FN hfsbi_curl_slot *hfsbi_curl_take(hfsbi_curl *curl, hfsb_str origin);
HFSBI_FN void hfsbi_curl_give_back(hfsbi_curl *curl, hfsbi_curl_slot *slot);
HFSBI_FN void hfsbi_curl_slot_free(const hfsbi_curl *curl,
                                   hfsbi_curl_slot  *slot);

/* Ends its connections on which the peer has said something since the last
   call: most have been closed. No call may be under way. */
HFSBI_FN void hfsbi_curl_freshen(hfsbi_curl_slot *slot);

/* libcurl's ways to make and close a socket; user is the slot. */
HFSBI_FN curl_socket_t hfsbi_curl_on_socket(void *user, curlsocktype purpose,
                                            struct curl_sockaddr *at);
HFSBI_FN int           hfsbi_curl_on_close(void *user, curl_socket_t fd);

/* ---- calls ---- */

/* Ends the call from within a callback: with `code` and *err, once. */
HFSBI_FN void hfsbi_curl_end(hfsbi_curl_call *x, hfsb_status code,
                             const char *format, ...) HFSBI_PRINTF(3, 4);

/* What libcurl's result means, with *err filled. */
HFSBI_FN hfsb_status hfsbi_curl_result(hfsbi_curl_call *x, CURLcode code);

/* Tells libcurl all about the call; false when there was no memory. */
HFSBI_FN bool hfsbi_curl_set(hfsbi_curl_call *x);

/* Checks the call and makes what libcurl is told of it. */
HFSBI_FN hfsb_status hfsbi_curl_prepare(hfsbi_curl_call *x);

/* Performs what was set, until its end. */
HFSBI_FN hfsb_status hfsbi_curl_drive(hfsbi_curl_call *x);
