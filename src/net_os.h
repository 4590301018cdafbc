#pragma once

/* The operating system as the client's network sees it, beyond os.h: sockets
   and the lookup of names. Never part of the public header. */

#include "os.h"

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
