/* greeting.c - the text at the start: where the server listens, how to call
   it. It may hold a token, so it is one buffer and one write, wiped
   afterwards. */
#define _XOPEN_SOURCE 700 /* inet_ntop; before any include */
#include "program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct sheet {
    char   text[8192];
    size_t len;
} sheet;

/* Drops what does not fit. */
static void put(sheet *s, const char *ptr, size_t n) {
    if (n > sizeof s->text - s->len) n = sizeof s->text - s->len;
    memcpy(s->text + s->len, ptr, n);
    s->len += n;
}

static void say(sheet *s, const char *text) {
    put(s, text, strlen(text));
}

/* Quotes a word for a shell if necessary. */
static void say_word(sheet *s, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ/._-";
    if (strspn(word, plain) == strlen(word)) {
        say(s, word);
        return;
    }
    say(s, "'");
    for (; *word; word++) {
        if (*word == '\'') say(s, "'\\''");
        else put(s, word, 1);
    }
    say(s, "'");
}

static void say_url(sheet *s, const char *host, unsigned port) {
    char number[16];
    bool six = strchr(host, ':') != NULL;
    snprintf(number, sizeof number, ":%u", port);
    say(s, six ? "http://[" : "http://");
    say(s, host);
    if (six) say(s, "]");
    say(s, number);
}

static void say_place(sheet *s, const place *p) {
    if (!p->is_unix) {
        say_url(s, p->text, p->port);
        return;
    }
    say(s, "unix:");
    say_word(s, p->text);
}

/* An address to connect to, for a listener on all addresses. */
static const char *reachable(const char *host) {
    if (strcmp(host, "0.0.0.0") == 0) return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

/* The URL to call; over a Unix socket curl ignores its host. */
static void say_base(sheet *s, const place *p) {
    if (p->is_unix) say(s, "http://localhost");
    else say_url(s, reachable(p->text), p->port);
}

static void say_token(sheet *s, const secret *token) {
    if (token && token->made_up) put(s, token->bytes, token->len);
    else say(s, "$SANDBOX_API_TOKEN");
}

/* The page; a browser keeps what follows the # to itself. A token that was
   given is not repeated. */
static void say_page(sheet *s, const options *o, const place *p,
                     const secret *token) {
    bool shown = token && token->made_up;
    if (o->no_page || p->is_unix) return;
    say(s, "Watch it in a browser: ");
    say_base(s, p);
    say(s, "/");
    if (shown) {
        say(s, "#");
        say_token(s, token);
    } else if (!o->no_auth) {
        say(s, " (it asks for the token)");
    }
    say(s, "\n");
}

static void say_call(sheet *s, const options *o, const place *p,
                     const secret *token) {
    say(s, "Call it from a shell:\n  curl ");
    if (p->is_unix) {
        say(s, "--unix-socket ");
        say_word(s, p->text);
        say(s, " ");
    }
    say_base(s, p);
    say(s, "/api/bash \\\n");
    if (!o->no_auth) {
        say(s, "    -H \"X-Sandbox-Authorization: Bearer ");
        say_token(s, token);
        say(s, "\" \\\n");
    }
    say(s, "    -H 'Content-Type: application/json' "
           "-d '{\"command\":\"uname -a\"}'\n");
    if (!o->no_mcp) {
        say(s, "MCP, for hosts such as Claude Code: ");
        say_base(s, p);
        say(s, "/mcp");
        if (!o->no_auth) say(s, " (with Authorization: Bearer TOKEN)");
        say(s, "\n");
    }
    say_page(s, o, p, token);
    if (token && token->made_up)
        say(s, "The token was generated for this run, since none was set.\n");
}

static void say_work_dir(sheet *s, const options *o) {
    const char *dir = o->work_dir      ? o->work_dir
                      : o->roots.count ? o->roots.list[0]
                                       : ".";
    char       *whole = realpath(dir, NULL);
    say(s, ", work directory ");
    say_word(s, whole ? whole : dir);
    free(whole);
}

static void say_confined(sheet *s, const options *o, const char *confined) {
    say(s, confined);
    if (*confined) return;
    say(s, "commands are not confined (");
    say(s, why_unconfined(o));
    say(s, ")");
}

void describe_socket(int fd, place *out) {
    union {
        struct sockaddr         any;
        struct sockaddr_in      four;
        struct sockaddr_in6     six;
        struct sockaddr_un      un;
        struct sockaddr_storage room;
    } a;
    socklen_t len = sizeof a;
    memset(&a, 0, sizeof a);
    memset(out, 0, sizeof *out);
    if (getsockname(fd, &a.any, &len) != 0) return;
    if (a.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a.four.sin_addr, out->text, sizeof out->text);
        out->port = ntohs(a.four.sin_port);
    } else if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.six.sin6_addr, out->text, sizeof out->text);
        out->port = ntohs(a.six.sin6_port);
    } else if (a.any.sa_family == AF_UNIX) {
        memcpy(out->text, a.un.sun_path, sizeof a.un.sun_path);
        out->is_unix = true;
    }
}

void greet(const options *o, const place *places, size_t count,
           const char *confined, const secret *token) {
    sheet  s;
    size_t i;
    s.len = 0;
    say(&s, "hfsb-server " HFSB_VERSION " listens on ");
    for (i = 0; i < count; i++) {
        if (i) say(&s, " and ");
        say_place(&s, &places[i]);
    }
    say_work_dir(&s, o);
    say(&s, "; ");
    say_confined(&s, o, confined);
    say(&s, "\n");
    if (o->has_token || o->no_auth) say_call(&s, o, &places[0], token);
    (void)write_all(1, s.text, s.len);
    wipe(&s, sizeof s);
}
