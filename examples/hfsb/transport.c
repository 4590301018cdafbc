/* transport.c - the HTTP transport: libcurl, which has https, if the program
   was built with it; else plain sockets. */
#include "cli.h"

#ifdef HFSB_WITH_CURL
#include "../../hfsb_http_curl.h"

hfsb_status open_transport(hfsb_transport *out, hfsb_err *err) {
    return hfsb_curl_open(NULL, out, err);
}
#else
hfsb_status open_transport(hfsb_transport *out, hfsb_err *err) {
    return hfsb_net_open(NULL, out, err);
}
#endif
