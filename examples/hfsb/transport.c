/* transport.c - the HTTP transport: libcurl, which has https, where the
   program was built with it or finds it at run time; else plain sockets. */
#include "cli.h"

#ifdef HFSB_WITH_CURL
#include "../../hfsb_http_curl.h"

hfsb_status open_transport(hfsb_transport *out, hfsb_err *err) {
    hfsb_status st = hfsb_curl_open(NULL, out, err);
    if (st != HFSB_NOT_FOUND && st != HFSB_REFUSED) return st;
    /* not installed, or too old: http works without it, and https says what
       it needs */
    return hfsb_net_open(NULL, out, err);
}
#else
hfsb_status open_transport(hfsb_transport *out, hfsb_err *err) {
    return hfsb_net_open(NULL, out, err);
}
#endif
