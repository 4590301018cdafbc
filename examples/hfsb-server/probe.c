/* probe.c - hfsb-server --check URL: a health check without curl, for images
   that have nothing else. One GET, a few seconds, an exit code.

   The client of the library would do, but costs 40 kB in a static binary; here
   a numeric address, "localhost" or unix:PATH is enough, and only the status
   of the reply counts. */
#define _XOPEN_SOURCE 700 /* inet_pton; before any include */
#include "program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PROBE_MS = 5000, PROBE_PORT = 80 };

typedef struct target {
    union {
        struct sockaddr     any;
        struct sockaddr_in  four;
        struct sockaddr_in6 six;
        struct sockaddr_un  un;
    } address;
    socklen_t len;
    char      host[300]; /* as in the field Host */
    char      path[1024];
} target;

/* ---- where ---- */

/* "127.0.0.1", "[::1]" or "localhost"; port in network order. */
static bool set_address(target *t, const char *host, unsigned short port) {
    if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &t->address.four.sin_addr) == 1) {
        t->address.four.sin_family = AF_INET;
        t->address.four.sin_port = port;
        t->len = sizeof t->address.four;
    } else if (inet_pton(AF_INET6, host, &t->address.six.sin6_addr) == 1) {
        t->address.six.sin6_family = AF_INET6;
        t->address.six.sin6_port = port;
        t->len = sizeof t->address.six;
    }
    return t->len > 0;
}

/* A host with a port, "[::1]:80", up to `len` bytes. */
static bool read_host(target *t, const char *text, size_t len) {
    char      host[sizeof t->host];
    char     *end, *colon;
    long long port = PROBE_PORT;
    if (len == 0 || len >= sizeof host) return false;
    snprintf(t->host, sizeof t->host, "%.*s", (int)len, text);
    memcpy(host, t->host, sizeof host);
    end = host[0] == '[' ? strchr(host, ']') : host;
    if (!end) return false;
    colon = strchr(end, ':');
    if (colon && (!read_number(colon + 1, &port) || port > 65535))
        return false;
    if (colon) *colon = '\0';
    if (host[0] == '[') *end = '\0';
    return set_address(t, host + (host[0] == '['),
                       htons((unsigned short)port));
}

/* A URL without a path is that of a server: its health is asked for. */
static bool read_target(target *t, const char *url) {
    const char *path = "";
    size_t      len = strlen(url);
    memset(t, 0, sizeof *t);
    if (strncmp(url, "unix:", 5) == 0) {
        if (len == 5 || len - 5 >= sizeof t->address.un.sun_path) return false;
        t->address.un.sun_family = AF_UNIX;
        memcpy(t->address.un.sun_path, url + 5, len - 5);
        t->len = sizeof t->address.un;
        snprintf(t->host, sizeof t->host, "localhost");
    } else {
        if (strncmp(url, "http://", 7) == 0) url += 7;
        len = strcspn(url, "/?#");
        path = url + len;
        if (!read_host(t, url, len)) return false;
    }
    if (!*path || strcmp(path, "/") == 0) path = "/api/health";
    len = strcspn(path, "# \r\n");
    if (len >= sizeof t->path || *path != '/') return false;
    memcpy(t->path, path, len);
    return true;
}

/* ---- the request ---- */

/* Waits for the descriptor; false at the deadline. */
static bool wait_for(int fd, short events, long long deadline) {
    struct pollfd p;
    long long     left = deadline - hfsb_clock_ms();
    int           n;
    p.fd = fd;
    p.events = events;
    p.revents = 0;
    n = left > 0 ? poll(&p, 1, (int)left) : 0;
    if (n == 0) errno = ETIMEDOUT;
    return n > 0;
}

static bool connect_to(int fd, const target *t, long long deadline) {
    int       failed = 0;
    socklen_t len = sizeof failed;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (connect(fd, &t->address.any, t->len) == 0) return true;
    if (errno != EINPROGRESS) return false;
    if (!wait_for(fd, POLLOUT, deadline) ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
        return false;
    errno = failed;
    return failed == 0;
}

/* Sends the request and reads "HTTP/1.1 200"; 0 with errno, which is EPROTO if
   the reply is anything else. */
static int ask(int fd, const target *t, long long deadline) {
    char    text[sizeof t->path + sizeof t->host + 80];
    int     len = snprintf(text, sizeof text,
                           "GET %s HTTP/1.1\r\nHost: %s\r\n"
                           "Connection: close\r\n\r\n",
                           t->path, t->host);
    size_t  have = 0;
    ssize_t n;
    if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != (ssize_t)len) return 0;
    while (have < 12) {
        if (!wait_for(fd, POLLIN, deadline)) return 0;
        n = recv(fd, text + have, 12 - have, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return 0;
        if (n == 0) break;
        have += (size_t)n;
    }
    errno = EPROTO;
    if (have < 12 || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ')
        return 0;
    text[12] = '\0';
    return strspn(text + 9, "0123456789") == 3
               ? (text[9] - '0') * 100 + (text[10] - '0') * 10 + text[11] - '0'
               : 0;
}

int probe(const char *url) {
    target t;
    int    fd, status = 0, why;
    if (!read_target(&t, url))
        return complain(USAGE,
                        "--check needs a URL such as http://127.0.0.1:7860 "
                        "with a numeric address or localhost, or unix:PATH, "
                        "not \"%s\".",
                        url);
    fd = socket(t.address.any.sa_family, SOCK_STREAM, 0);
    if (fd >= 0) {
        long long deadline = hfsb_clock_ms() + PROBE_MS;
        if (connect_to(fd, &t, deadline)) status = ask(fd, &t, deadline);
    }
    why = errno;
    if (fd >= 0) close(fd);
    if (!status) return complain(FAILED, "%s: %s.", url, strerror(why));
    if (status < 200 || status > 299)
        return complain(FAILED, "%s: %s answers %d.", url, t.path, status);
    printf("%s: %s answers %d.\n", url, t.path, status);
    return fflush(stdout) == 0 ? DONE : FAILED;
}
