/* options.c - the command line and the environment. */
#define _XOPEN_SOURCE 700 /* inet_pton; before any include */
#include "program.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind {
    OPTION_FLAG,   /* target: bool */
    OPTION_TEXT,   /* const char * */
    OPTION_TEXTS,  /* texts */
    OPTION_COUNT,  /* long long, from 1 on */
    OPTION_NUMBER, /* long long, from 0 on */
    OPTION_PORT,   /* long long */
    OPTION_SIZE,   /* long long: bytes, from 1 on, or 64K, 16M, 1G */
    OPTION_SECONDS /* long long: milliseconds, from 1 on */
} option_kind;

typedef struct option {
    const char *name;
    option_kind kind;
    void       *target;
} option;

/* Long lines would not fit a terminal; a compiler need only take 4095 bytes
   of one literal, so there are two. */
static const char help_where[] =
    "hfsb-server [OPTIONS]\n"
    "Serves bash, read, write, edit and more over HTTP, for agents; at /mcp\n"
    "for hosts of the Model Context Protocol.\n"
    "\n"
    "Where it listens (127.0.0.1:7860 when none of these is given):\n"
    "  --host ADDRESS      may be repeated; 0.0.0.0 or :: is all there are\n"
    "  --port N            or $PORT; 0: one that is free\n"
    "  --unix PATH         a Unix socket; may be repeated\n"
    "  --listen-fd N       a socket that listens already; may be repeated\n"
    "\n"
    "What it serves:\n"
    "  --work-dir DIR      where commands and relative paths begin (here)\n"
    "  --root DIR          file tools stay beneath it. It does not confine\n"
    "                      bash: commands can go anywhere this user can\n"
    "  --no-mcp            /mcp is not served\n"
    "\n"
    "Who may call it, with X-Sandbox-Authorization: Bearer TOKEN (at /mcp\n"
    "Authorization: Bearer TOKEN as well):\n"
    "  $SANDBOX_API_TOKEN  the token; commands do not see it\n"
    "  --token-file FILE   or the token is the text of a file\n"
    "  --token-fd N        or what can be read from a descriptor\n"
    "  --no-auth           no token is asked for; on loopback only,\n"
    "  --public            or with this anywhere\n"
    "  --allow-host NAME   what Host and Origin may say, besides loopback "
    "and\n"
    "                      the address; may be repeated; \"*\": anything.\n"
    "                      $SPACE_HOST is allowed too\n";

static const char help_limits[] =
    "\n"
    "Limits (and what they are when not given):\n"
    "  --timeout SECONDS       of a command that gives none (120)\n"
    "  --max-timeout SECONDS   of any command (1200)\n"
    "  --max-running N         commands at once (64); others wait\n"
    "  --max-waiting N         ... of which this many may (256)\n"
    "  --max-connections N     (1024)\n"
    "  --max-head SIZE         bytes of a request's head (16K)\n"
    "  --max-body SIZE         bytes of a JSON body (64M)\n"
    "  --max-bodies SIZE       of all bodies in memory (256M)\n"
    "  --head-timeout SECONDS  for a head, or a body without a token (10)\n"
    "  --body-timeout SECONDS  for a body that does not move (30)\n"
    "  --min-rate SIZE         bytes a second that bodies must average (1K)\n"
    "  --idle-timeout SECONDS  between two requests (60)\n"
    "  --beat SECONDS          a blank this often while a command runs (10)\n"
    "  --threads N             for work with files (8); 0: none\n"
    "  --kill-on-disconnect    a command ends when its caller is gone\n"
    "\n"
    "  --log      a line of JSON on stderr for each request\n"
    "  --quiet    no text at the start\n"
    "  --version, --help\n"
    "\n"
    "TERM or Ctrl-C stops it within 10 s; twice: at once. As process 1 of a\n"
    "container it reaps orphans. Exit codes: 0 stopped, 1 it could not "
    "serve,\n"
    "2 the options were not understood or contradict each other.\n";

int complain(int code, const char *format, ...) {
    va_list ap;
    fputs("hfsb-server: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return code;
}

/* ---- values ---- */

/* Digits, and `*behind` what follows them. */
static bool read_digits(const char *text, long long *out,
                        const char **behind) {
    long long n = 0;
    *behind = text;
    while (**behind >= '0' && **behind <= '9') {
        if (n > 100000000000000ll) return false; /* no one means that */
        n = n * 10 + (**behind - '0');
        (*behind)++;
    }
    *out = n;
    return *behind != text;
}

bool read_number(const char *text, long long *out) {
    const char *behind;
    return read_digits(text, out, &behind) && !*behind;
}

static bool read_size(const char *text, long long *out) {
    static const char units[] = "KMG";
    const char       *behind, *unit;
    int               bits;
    if (!read_digits(text, out, &behind) || *out < 1) return false;
    if (!*behind) return true;
    unit = strchr(units, *behind >= 'a' ? *behind - 'a' + 'A' : *behind);
    if (!unit || behind[1]) return false;
    bits = 10 * (int)(unit - units + 1);
    if (*out > (1ll << 50) >> bits) return false;
    *out <<= bits;
    return true;
}

/* "2" or "0.5" to milliseconds. */
static bool read_seconds(const char *text, long long *out) {
    long long   whole, scale = 100;
    const char *p;
    if (!read_digits(text, &whole, &p) || whole > 1000000000) return false;
    *out = whole * 1000;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10)
            *out += (*p - '0') * scale;
    return !*p && *out > 0;
}

static bool add_text(texts *to, const char *value) {
    if (!*value || to->count == MAX_TEXTS) return false;
    to->list[to->count++] = value;
    return true;
}

/* False when the value is not of the option's kind. */
static bool set_value(const option *o, const char *value) {
    long long *n = (long long *)o->target;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)o->target = true; return true;
    case OPTION_TEXT: *(const char **)o->target = value; return *value != 0;
    case OPTION_TEXTS: return add_text((texts *)o->target, value);
    case OPTION_COUNT: return read_number(value, n) && *n >= 1;
    case OPTION_NUMBER: return read_number(value, n);
    case OPTION_PORT: return read_number(value, n) && *n <= 65535;
    case OPTION_SIZE: return read_size(value, n);
    case OPTION_SECONDS: return read_seconds(value, n);
    }
    return false;
}

static const char *kind_name(option_kind kind) {
    switch (kind) {
    case OPTION_FLAG: return "no value";
    case OPTION_TEXT: break;
    case OPTION_TEXTS: return "a value, at most 16 times";
    case OPTION_COUNT: return "a number from 1 on";
    case OPTION_NUMBER: return "a number from 0 on";
    case OPTION_PORT: return "a number from 0 to 65535";
    case OPTION_SIZE: return "a number of bytes such as 65536 or 64K, 16M, 1G";
    case OPTION_SECONDS: return "a number of seconds above 0";
    }
    return "a value";
}

/* ---- the line ---- */

static bool not_understood(int *code) {
    fputs("Try: hfsb-server --help\n", stderr);
    *code = USAGE;
    return false;
}

/* One option, at argv[*at]; its value is behind "=" or is the next word. */
static bool take_option(const option *list, char **argv, int *at, int *code) {
    const char *word = argv[*at];
    size_t      len = strcspn(word, "=");
    const char *value = word[len] ? word + len + 1 : NULL;
    while (list->name &&
           (strlen(list->name) != len || memcmp(list->name, word, len) != 0))
        list++;
    if (!list->name) {
        complain(USAGE, "there is no option %s.", word);
        return not_understood(code);
    }
    if (list->kind == OPTION_FLAG ? value != NULL : !value && !argv[*at + 1]) {
        complain(USAGE, "%s needs %s.", list->name, kind_name(list->kind));
        return not_understood(code);
    }
    if (list->kind != OPTION_FLAG && !value) value = argv[++*at];
    if (set_value(list, value)) return true;
    complain(USAGE, "%s needs %s, not \"%s\".", list->name,
             kind_name(list->kind), value);
    return not_understood(code);
}

static bool take_line(char **argv, options *o, int *code) {
    bool         help = false, version = false;
    const option list[] = {
        {"--host", OPTION_TEXTS, &o->hosts},
        {"--port", OPTION_PORT, &o->port},
        {"--unix", OPTION_TEXTS, &o->unix_paths},
        {"--listen-fd", OPTION_TEXTS, &o->listen_fds},
        {"--work-dir", OPTION_TEXT, &o->work_dir},
        {"--root", OPTION_TEXT, &o->root},
        {"--token-file", OPTION_TEXT, &o->token_file},
        {"--token-fd", OPTION_NUMBER, &o->token_fd},
        {"--no-auth", OPTION_FLAG, &o->no_auth},
        {"--public", OPTION_FLAG, &o->is_public},
        {"--allow-host", OPTION_TEXTS, &o->allow_hosts},
        {"--timeout", OPTION_SECONDS, &o->timeout_ms},
        {"--max-timeout", OPTION_SECONDS, &o->max_timeout_ms},
        {"--max-running", OPTION_COUNT, &o->max_running},
        {"--max-waiting", OPTION_COUNT, &o->max_waiting},
        {"--max-connections", OPTION_COUNT, &o->max_connections},
        {"--max-head", OPTION_SIZE, &o->max_head},
        {"--max-body", OPTION_SIZE, &o->max_body},
        {"--max-bodies", OPTION_SIZE, &o->max_bodies},
        {"--head-timeout", OPTION_SECONDS, &o->head_ms},
        {"--body-timeout", OPTION_SECONDS, &o->body_ms},
        {"--min-rate", OPTION_SIZE, &o->min_rate},
        {"--idle-timeout", OPTION_SECONDS, &o->idle_ms},
        {"--beat", OPTION_SECONDS, &o->beat_ms},
        {"--threads", OPTION_NUMBER, &o->threads},
        {"--no-mcp", OPTION_FLAG, &o->no_mcp},
        {"--kill-on-disconnect", OPTION_FLAG, &o->kill_on_disconnect},
        {"--log", OPTION_FLAG, &o->log},
        {"--quiet", OPTION_FLAG, &o->quiet},
        {"--version", OPTION_FLAG, &version},
        {"--help", OPTION_FLAG, &help},
        {"-h", OPTION_FLAG, &help},
        {NULL, OPTION_FLAG, NULL}};
    int at;
    for (at = 1; argv[at] && !help && !version; at++)
        if (!take_option(list, argv, &at, code)) return false;
    if (!help && !version) return true;
    if (help) printf("%s%s", help_where, help_limits);
    else printf("hfsb-server %s\n", HFSB_VERSION);
    *code = fflush(stdout) == 0 ? DONE : FAILED;
    return false;
}

/* What the environment says where the line does not. */
static bool take_environment(options *o, int *code) {
    const char *port = getenv("PORT");
    if (o->port >= 0 || !port || !*port || !wants_tcp(o)) return true;
    if (read_number(port, &o->port) && o->port <= 65535) return true;
    *code = complain(USAGE, "the variable PORT must be %s, not \"%s\".",
                     kind_name(OPTION_PORT), port);
    return false;
}

static bool check_descriptors(const options *o, int *code) {
    size_t    i;
    long long n;
    for (i = 0; i < o->listen_fds.count; i++) {
        const char *text = o->listen_fds.list[i];
        if (!read_number(text, &n) || n > 1000000) {
            complain(USAGE, "--listen-fd needs a number, not \"%s\".", text);
            return not_understood(code);
        }
        if (n != o->token_fd) continue;
        *code = complain(USAGE, "--listen-fd and --token-fd are the same.");
        return false;
    }
    return true;
}

/* Options that contradict each other. */
static bool check_options(const options *o, int *code) {
    const char *what = NULL;
    if (o->is_public && !o->no_auth)
        what = "--public is for --no-auth: it serves without a token "
               "anywhere. With a token, --host alone is enough.";
    else if (o->no_auth && (o->token_file || o->token_fd >= 0))
        what = "--no-auth and a token contradict each other: give one.";
    else if (o->token_file && o->token_fd >= 0)
        what = "--token-file and --token-fd: give one of them.";
    else if (o->token_fd > 1000000)
        what = "--token-fd needs the number of an open descriptor.";
    if (!what) return check_descriptors(o, code);
    *code = complain(USAGE, "%s", what);
    return false;
}

bool take_options(int argc, char **argv, options *o, int *code) {
    memset(o, 0, sizeof *o);
    o->port = o->token_fd = o->threads = -1;
    if (argc < 1) return true; /* no name, no words */
    return take_line(argv, o, code) && take_environment(o, code) &&
           check_options(o, code);
}

/* ---- what follows from them ---- */

bool wants_tcp(const options *o) {
    return o->hosts.count > 0 || o->port >= 0 ||
           o->unix_paths.count + o->listen_fds.count == 0;
}

const char *tcp_host(const options *o, size_t n) {
    if (!wants_tcp(o)) return NULL;
    if (n == 0 && o->hosts.count == 0) return "127.0.0.1";
    return n < o->hosts.count ? o->hosts.list[n] : NULL;
}

bool is_loopback(const char *host) {
    struct in_addr  four;
    struct in6_addr six;
    if (strcmp(host, "localhost") == 0) return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return (ntohl(four.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return false;
}

bool only_loopback(const options *o) {
    const char *host;
    size_t      i;
    for (i = 0; (host = tcp_host(o, i)) != NULL; i++)
        if (!is_loopback(host)) return false;
    return o->listen_fds.count == 0;
}
