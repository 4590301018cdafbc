#pragma once

#include "../http/url.h"
#include "../os/os_private.h"
#include "net.h"

/* The operating system as the client's network sees it, beyond os.h: sockets
   and the lookup of names. Never part of the public header. */

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Where a send cannot ask for it, the socket does (SO_NOSIGPIPE), or what
   sends is guarded (hfsbi_signal_guard). */
#ifdef MSG_NOSIGNAL
#define HFSBI_NET_SEND_FLAGS MSG_NOSIGNAL
#else
#define HFSBI_NET_SEND_FLAGS 0
#endif

/* Private to the net*.c files: what waits, where connections lead, and those
   that are kept. */

/* ---- proxies ---- */

typedef struct hfsbi_proxy {
    hfsb_buf    text;   /* of the variable; url shows its bytes */
    hfsb_buf    login;  /* of Proxy-Authorization; "": none */
    hfsb_buf    except; /* of no_proxy */
    const char *name;   /* of the variable; NULL: there is no proxy */
    bool        usable;
    hfsb_url    url;
} hfsbi_proxy;

/* Reads the environment. HFSB_OK, also where what it says is not usable;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_proxy_read(hfsbi_proxy *proxy, hfsb_alloc alloc,
                                      hfsb_err *err);
HFSBI_FN void        hfsbi_proxy_free(hfsbi_proxy *proxy);

/* Whether requests to that place go through the proxy. */
HFSBI_FN bool hfsbi_proxy_serves(const hfsbi_proxy *proxy,
                                 const hfsb_url    *url);

/* One of a list like no_proxy has it names this place: "*", a name (and all
   below it), an address, each with or without a port. */
HFSBI_FN bool hfsbi_proxy_excepts(hfsb_str list, hfsb_str host, unsigned port);

/* ---- connections ---- */

#define HFSBI_LINK_HOST 256 /* with the NUL */

/* ---- the pool ---- */
