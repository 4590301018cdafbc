#pragma once

/* ==== HTTP_CURL: the transport on libcurl: https, HTTP/2, proxies ======= */

#include "../net.h"

typedef struct hfsb_curl_opts {
    hfsb_str   ca_file;  /* PEM file of trusted certificates, instead of the
                            system's (empty: $SSL_CERT_FILE, else libcurl's
                            default) */
    hfsb_str   ca_dir;   /* directory of them (empty: $SSL_CERT_DIR, else
                            libcurl's default) */
    hfsb_str   proxy;    /* for every call: "http://host:3128",
                            "socks5h://..." (empty: http_proxy, https_proxy and
                            all_proxy of the environment; the last two also in
                            upper case) */
    hfsb_str   no_proxy; /* hosts reached without a proxy: "localhost,
                            .example.com" (empty: $no_proxy) */
    bool       direct;   /* use no proxy, whatever the environment says */
    bool       http1;    /* do not use HTTP/2 */
    size_t     max_kept; /* idle connections to keep, each with its libcurl
                            handle (0: 8) */
    long long  kept_ms;  /* how long to keep them, in whole seconds
                            (0: 30,000) */
    size_t     max_head; /* bytes of a reply's head (0: 64 KiB) */
    hfsb_alloc alloc;    /* called by every thread that makes a call; libcurl
                            itself uses malloc() */
} hfsb_curl_opts;

/* Opens a transport for http and https. opts may be NULL; its texts are
   copied, and the environment is read, before this returns.
   HFSB_OK; HFSB_NOMEM; HFSB_ARG for a text that contains a NUL; HFSB_REFUSED
   when the libcurl found at run time is too old; with HFSB_CURL_DLOPEN
   HFSB_NOT_FOUND when there is none; for an unreadable ca_file or ca_dir the
   status of its errno.

   Certificates are always verified. .netrc and cookies are not used, and only
   http and https are supported. A name lookup can be cancelled; libcurl may
   start a thread for it.

   This calls curl_global_init(), and closing the transport calls
   curl_global_cleanup(). With a libcurl older than 7.84, or built without
   "threadsafe", these must not run in several threads at once: call
   curl_global_init() at the start of main() there. */
HFSB_API hfsb_status hfsb_curl_open(const hfsb_curl_opts *opts,
                                    hfsb_transport *out, hfsb_err *err);
