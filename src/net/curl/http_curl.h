#pragma once

/* ==== HTTP_CURL: the transport on libcurl: https, HTTP/2, proxies ======= */

#include "../net.h"

typedef struct hfsb_curl_opts {
    hfsb_str   ca_file; /* certificates to trust, PEM, in place of the system's
                         ("": $SSL_CERT_FILE, else what libcurl was built
                         with) */
    hfsb_str   ca_dir;  /* ... in a directory ("": $SSL_CERT_DIR, else the
                         same) */
    hfsb_str   proxy;   /* for every call: "http://host:3128", "socks5h://..."
                         ("": http_proxy, https_proxy and all_proxy of the
                         environment; all but the first in either case) */
    hfsb_str   no_proxy; /* hosts that are reached without one: "localhost,
                          .example.com" ("": no_proxy of the environment) */
    bool       direct;   /* no proxy, whatever the environment says */
    bool       http1;    /* no HTTP/2, which https has when the peer has it */
    size_t     max_kept; /* connections kept for the next call, each with its
                           handle of libcurl (0: 8) */
    long long  kept_ms;  /* ... for this long, in whole seconds (0: 30,000) */
    size_t     max_head; /* bytes of a reply's head (0: 64 KiB) */
    hfsb_alloc alloc;    /* must be usable from the threads that call; libcurl
                           itself uses malloc() */
} hfsb_curl_opts;

/* A transport that carries http and https. opts may be NULL; its texts are
   copied, and the environment is read, now.
   HFSB_OK; HFSB_NOMEM; HFSB_ARG for a text with a NUL; HFSB_REFUSED when the
   libcurl found at run time is too old; for ca_file and ca_dir what the system
   says.

   Certificates are always verified. Neither .netrc nor cookies are used, and
   only http and https are spoken. A call to a name that is being looked up
   can be cancelled; libcurl may start a thread for that.

   This calls curl_global_init() and close calls curl_global_cleanup(), which
   count. Where libcurl is older than 7.84 or built without "threadsafe", those
   two are not for several threads at once: then call curl_global_init() at
   the start of main(). */
HFSB_API hfsb_status hfsb_curl_open(const hfsb_curl_opts *opts,
                                    hfsb_transport *out, hfsb_err *err);
