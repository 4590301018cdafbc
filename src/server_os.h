#pragma once

/* The operating system as the server sees it, beyond os.h: sockets, and the
   kernel's ways to wait for many descriptors. Never part of the public
   header. */

#include "os.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#ifdef HFSBI_LINUX
#define HFSBI_EPOLL 1
#include <sys/epoll.h>
#include <sys/sendfile.h>
#elif !defined(HFSBI_PORTABLE) &&                                         \
    (defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || \
     defined(__OpenBSD__) || defined(__DragonFly__))
#define HFSBI_KQUEUE 1
#include <sys/event.h>
#endif
