/* options.c - the command line and the environment.

   One table maps each option to its kind and to a field of `options`. Values
   are checked by kind first, then options that contradict each other. */
#define _XOPEN_SOURCE 700 /* inet_pton; before any include */
#include "program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef enum option_kind {
    OPTION_FLAG,   /* target: bool */
    OPTION_TEXT,   /* const char * */
    OPTION_TEXTS,  /* texts */
    OPTION_COUNT,  /* long long, at least 1 */
    OPTION_NUMBER, /* long long, at least 0 */
    OPTION_PORT,   /* long long */
    OPTION_SIZE,   /* long long: bytes, at least 1, or 64K, 16M, 1G */
    OPTION_SECONDS /* long long: milliseconds, at least 1 */
} option_kind;

typedef struct option {
    const char *name;
    option_kind kind;
    void       *target;
} option;

/* Several literals: a compiler need not accept one of more than 4095 bytes. */
static const char help_where[] =
    "hfsb-server [OPTIONS]\n"
    "Serves bash, read, write, edit and more to agents over HTTP, and to\n"
    "hosts of the Model Context Protocol at /mcp.\n"
    "\n"
    "Where it listens (default: 127.0.0.1:7860):\n"
    "  --host ADDRESS      listen on this address; may be repeated; 0.0.0.0\n"
    "                      or :: means all\n"
    "  --port N            listen on this port, or $PORT; 0: any free port\n"
    "  --unix PATH         listen on a Unix socket; may be repeated\n"
    "  --listen-fd N       use an inherited listening socket; may be\n"
    "                      repeated. Sockets of systemd units need no option\n"
    "  --stdio             do not listen: serve the client at the other end\n"
    "                      of standard input and output (hfsb --on\n"
    "                      ssh:HOST), without a token\n"
    "  --linger SECONDS    how long --stdio waits for the client to come\n"
    "                      back when the pipe breaks (default: 60)\n"
    "\n"
    "What it serves:\n"
    "  --work-dir DIR      where commands and relative paths start (default:\n"
    "                      the first root, or the current directory); must\n"
    "                      be beneath the first root, if there is one\n"
    "  --root DIR          confine the file tools to DIR; may be repeated.\n"
    "                      It does not confine bash: see --confine\n"
    "  --deny PATTERN      make the file tools refuse paths that match as in\n"
    "                      .gitignore: .env, *.pem, secrets/; may be\n"
    "                      repeated. It does not confine bash either\n"
    "  --checkpoints WHERE on, off or a folder with a \"/\" in its name:\n"
    "                      keep checkpoints of the root there, for undo,\n"
    "                      changes and POST /reset; on: in\n"
    "                      $XDG_STATE_HOME/hfsb/undo or ~/.local/state\n"
    "                      (default: off)\n"
    "  --checkpoint-ignored  include .git and what .gitignore names\n"
    "  --api NAME[:PORT]   also serve the protocol of other clients, next to\n"
    "                      /api or on a port of its own; may be repeated:\n"
    "                      see docs/dialects.md\n"
    "  --no-mcp            do not serve /mcp\n"
    "  --no-page           do not serve the page at /\n"
    "  --max-result SIZE   limit the text of a result at /mcp to SIZE bytes,\n"
    "                      and to a tenth as many lines (default: 20000)\n"
    "\n"
    "Who may call it, with X-Sandbox-Authorization: Bearer TOKEN (or\n"
    "Authorization: Bearer TOKEN):\n"
    "  $SANDBOX_API_TOKEN  the token; commands do not see it\n"
    "  $SBX_TOKEN          the token of --api hf, and of everything else if\n"
    "                      $SANDBOX_API_TOKEN is not set\n"
    "  --token-file FILE   read the token from a file\n"
    "  --token-fd N        read the token from a descriptor\n"
    "  --init              wait for POST /init {\"token\":...}: the first\n"
    "                      caller sets the token; for pools of warm servers\n"
    "  --no-auth           require no token; on loopback addresses only\n"
    "  --public            allow --no-auth on any address\n"
    "  --allow-host NAME   accept NAME in Host and Origin, in addition to\n"
    "                      loopback names, the bound address and\n"
    "                      $SPACE_HOST; may be repeated; \"*\" accepts any.\n"
    "                      With --no-auth an Origin must be the Host with\n"
    "                      its port, or a NAME given here\n";

static const char help_confine[] =
    "\n"
    "What commands may touch:\n"
    "  --confine LEVEL     none, write or strict. none: what this user may;\n"
    "                      write: read everything, write only beneath the\n"
    "                      roots, the working directory, $TMPDIR and the\n"
    "                      caches of common tools; strict: also read only\n"
    "                      there and in system folders, without network and\n"
    "                      secrets. Default: none in a container, else write\n"
    "                      as far as the kernel allows. A level that is\n"
    "                      given but cannot be enforced is an error\n"
    "  --allow-write DIR   commands may also write in DIR; may be repeated\n"
    "  --allow-read DIR    commands in strict may also read DIR; may be\n"
    "                      repeated\n"
    "  --net WHAT          on, off, loopback (a network of their own), or\n"
    "                      TCP ports such as 443,80; 53 includes UDP\n"
    "  --max-memory SIZE, --max-file-size SIZE, --max-cpu SECONDS\n"
    "                      limits for each process of a command\n"
    "  --max-processes N   limit the processes of this user; for root only\n"
    "                      where a cgroup is delegated\n"
    "Confined commands cannot signal those of earlier calls; the kill tool\n"
    "can.\n";

static const char help_limits[] =
    "\n"
    "Limits (and their defaults):\n"
    "  --timeout SECONDS       timeout of commands that set none (120)\n"
    "  --max-timeout SECONDS   longest timeout at /api and /mcp (1200)\n"
    "  --max-running N         commands that run at once (64); others wait\n"
    "  --max-waiting N         commands that may wait (256)\n"
    "  --max-connections N     open connections (1024)\n"
    "  --max-per-peer N        open connections from one address (half of\n"
    "                          them, except from loopback)\n"
    "  --max-head SIZE         bytes of a request's head (16K)\n"
    "  --max-body SIZE         bytes of a JSON body (64M)\n"
    "  --max-bodies SIZE       bytes of all bodies in memory (256M)\n"
    "  --head-timeout SECONDS  limit for a head, or body without token (10)\n"
    "  --body-timeout SECONDS  limit without progress of a body (30)\n"
    "  --min-rate SIZE         bytes per second a body must average (1K)\n"
    "  --idle-timeout SECONDS  limit between two requests (60)\n"
    "  --beat SECONDS          send a blank this often during a command (10)\n"
    "  --drain SECONDS         keep serving this long before a stop, while\n"
    "                          health checks of --api get 503 (0)\n"
    "  --max-idle SECONDS      stop after this long without a call and\n"
    "                          without a running command (never)\n"
    "  --threads N             threads for file access (8); 0: none; calls\n"
    "                          that take over a second have their own\n"
    "  --kill-on-disconnect    end a command when its client disconnects\n"
    "\n"
    "  --journal FILE       append a line of JSON for each call: who, tool,\n"
    "                       command, exit code, diff ...; secrets are hidden\n"
    "  --journal-size SIZE  rename FILE to FILE.1 at this size (64M)\n"
    "  --journal-sync       sync to disk after each line\n"
    "  --log      print a line of JSON on stderr for each request and call\n"
    "  --quiet    print nothing at the start\n"
    "\n"
    "Instead of serving:\n"
    "  --check URL         exit with 0 if a server answers at URL, or, if\n"
    "                      URL has no path, at its /api/health; also\n"
    "                      unix:PATH\n"
    "  --man               print the manual page\n"
    "  --completion SHELL  print completions for bash, zsh or fish\n"
    "  --version, --help\n"
    "\n"
    "SIGTERM or Ctrl-C stops the server within 10 s, after --drain; a\n"
    "second one stops it at once. As process 1 of a container it reaps\n"
    "orphans. Exit codes: 0 stopped, 1 could not serve, 2 invalid or\n"
    "contradictory options.\n";

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

/* Reads digits; *end points to the first other byte. */
static bool read_digits(const char *text, long long *out, const char **end) {
    long long n = 0;
    *end = text;
    while (**end >= '0' && **end <= '9') {
        if (n > 100000000000000ll) return false; /* absurd */
        n = n * 10 + (**end - '0');
        (*end)++;
    }
    *out = n;
    return *end != text;
}

bool read_number(const char *text, long long *out) {
    const char *end;
    return read_digits(text, out, &end) && !*end;
}

static bool read_size(const char *text, long long *out) {
    static const char units[] = "KMG";
    const char       *end, *unit;
    int               bits;
    if (!read_digits(text, out, &end) || *out < 1) return false;
    if (!*end) return true;
    unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);
    if (!unit || end[1]) return false;
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

/* False if the value does not fit the kind of the option. */
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
    case OPTION_COUNT: return "a number of at least 1";
    case OPTION_NUMBER: return "a number of at least 0";
    case OPTION_PORT: return "a number from 0 to 65535";
    case OPTION_SIZE: return "a number of bytes such as 65536 or 64K, 16M, 1G";
    case OPTION_SECONDS: return "a number of seconds above 0";
    }
    return "a value";
}

/* ---- the command line ---- */

static bool refuse_usage(int *code) {
    fputs("Try: hfsb-server --help\n", stderr);
    *code = USAGE;
    return false;
}

static bool refuse_unknown(const option *list, const char *word, size_t len,
                           int *code) {
    suggestion s;
    suggest_init(&s, word, len);
    for (; list->name; list++) suggest_try(&s, list->name);
    if (s.name)
        complain(USAGE, "unknown option %.*s; did you mean %s?", (int)len,
                 word, s.name);
    else complain(USAGE, "unknown option %s.", word);
    return refuse_usage(code);
}

/* One option, at argv[*at]; its value follows "=" or is the next word. */
static bool take_option(const option *all, char **argv, int *at, int *code) {
    const option *list = all;
    const char   *word = argv[*at];
    size_t        len = strcspn(word, "=");
    const char   *value = word[len] ? word + len + 1 : NULL;
    while (list->name &&
           (strlen(list->name) != len || memcmp(list->name, word, len) != 0))
        list++;
    if (!list->name) return refuse_unknown(all, word, len, code);
    if (list->kind == OPTION_FLAG ? value != NULL : !value && !argv[*at + 1]) {
        complain(USAGE, "%s needs %s.", list->name, kind_name(list->kind));
        return refuse_usage(code);
    }
    if (list->kind != OPTION_FLAG && !value) value = argv[++*at];
    if (set_value(list, value)) return true;
    complain(USAGE, "%s needs %s, not \"%s\".", list->name,
             kind_name(list->kind), value);
    return refuse_usage(code);
}

/* Prints what was asked for instead of serving. */
static int print_info(bool help, bool manual, const char *shell) {
    static const char *const all[] = {help_where, help_confine, help_limits,
                                      NULL};
    int                      code = DONE;
    if (help) printf("%s%s%s", help_where, help_confine, help_limits);
    else if (manual) code = print_manual(all);
    else if (shell) code = print_completion(all, shell);
    else printf("hfsb-server %s\n", HFSB_VERSION);
    return fflush(stdout) == 0 ? code : FAILED;
}

static bool take_line(char **argv, options *o, int *code) {
    bool         help = false, version = false, manual = false;
    const char  *shell = NULL;
    const option list[] = {
        {"--host", OPTION_TEXTS, &o->hosts},
        {"--port", OPTION_PORT, &o->port},
        {"--unix", OPTION_TEXTS, &o->unix_paths},
        {"--listen-fd", OPTION_TEXTS, &o->listen_fds},
        {"--stdio", OPTION_FLAG, &o->stdio},
        {"--linger", OPTION_SECONDS, &o->linger_ms},
        {"--work-dir", OPTION_TEXT, &o->work_dir},
        {"--root", OPTION_TEXTS, &o->roots},
        {"--deny", OPTION_TEXTS, &o->deny},
        {"--confine", OPTION_TEXT, &o->confine},
        {"--allow-write", OPTION_TEXTS, &o->allow_write},
        {"--allow-read", OPTION_TEXTS, &o->allow_read},
        {"--net", OPTION_TEXT, &o->net},
        {"--max-memory", OPTION_SIZE, &o->max_memory},
        {"--max-processes", OPTION_COUNT, &o->max_processes},
        {"--max-file-size", OPTION_SIZE, &o->max_file_size},
        {"--max-cpu", OPTION_COUNT, &o->max_cpu},
        {"--checkpoints", OPTION_TEXT, &o->checkpoints},
        {"--checkpoint-ignored", OPTION_FLAG, &o->checkpoint_ignored},
        {"--token-file", OPTION_TEXT, &o->token_file},
        {"--token-fd", OPTION_NUMBER, &o->token_fd},
        {"--init", OPTION_FLAG, &o->init},
        {"--no-auth", OPTION_FLAG, &o->no_auth},
        {"--public", OPTION_FLAG, &o->is_public},
        {"--allow-host", OPTION_TEXTS, &o->allow_hosts},
        {"--timeout", OPTION_SECONDS, &o->timeout_ms},
        {"--max-timeout", OPTION_SECONDS, &o->max_timeout_ms},
        {"--max-running", OPTION_COUNT, &o->max_running},
        {"--max-waiting", OPTION_COUNT, &o->max_waiting},
        {"--max-connections", OPTION_COUNT, &o->max_connections},
        {"--max-per-peer", OPTION_COUNT, &o->max_per_peer},
        {"--max-head", OPTION_SIZE, &o->max_head},
        {"--max-body", OPTION_SIZE, &o->max_body},
        {"--max-bodies", OPTION_SIZE, &o->max_bodies},
        {"--head-timeout", OPTION_SECONDS, &o->head_ms},
        {"--body-timeout", OPTION_SECONDS, &o->body_ms},
        {"--min-rate", OPTION_SIZE, &o->min_rate},
        {"--idle-timeout", OPTION_SECONDS, &o->idle_ms},
        {"--beat", OPTION_SECONDS, &o->beat_ms},
        {"--drain", OPTION_SECONDS, &o->drain_ms},
        {"--max-idle", OPTION_SECONDS, &o->max_idle_ms},
        {"--threads", OPTION_NUMBER, &o->threads},
        {"--api", OPTION_TEXTS, &o->apis},
        {"--no-mcp", OPTION_FLAG, &o->no_mcp},
        {"--no-page", OPTION_FLAG, &o->no_page},
        {"--max-result", OPTION_SIZE, &o->max_result},
        {"--kill-on-disconnect", OPTION_FLAG, &o->kill_on_disconnect},
        {"--journal", OPTION_TEXT, &o->journal},
        {"--journal-size", OPTION_SIZE, &o->journal_size},
        {"--journal-sync", OPTION_FLAG, &o->journal_sync},
        {"--log", OPTION_FLAG, &o->log},
        {"--quiet", OPTION_FLAG, &o->quiet},
        {"--check", OPTION_TEXT, &o->check},
        {"--man", OPTION_FLAG, &manual},
        {"--completion", OPTION_TEXT, &shell},
        {"--version", OPTION_FLAG, &version},
        {"--help", OPTION_FLAG, &help},
        {"-h", OPTION_FLAG, &help},
        {NULL, OPTION_FLAG, NULL}};
    int at;
    for (at = 1; argv[at] && !help && !version && !manual && !shell; at++)
        if (!take_option(list, argv, &at, code)) return false;
    if (!help && !version && !manual && !shell) return true;
    *code = print_info(help, manual, shell);
    return false;
}

/* The environment sets what the command line does not. */
static bool take_environment(options *o, int *code) {
    const char *port = getenv("PORT");
    if (o->port >= 0 || !port || !*port || !wants_tcp(o)) return true;
    if (read_number(port, &o->port) && o->port <= 65535) return true;
    *code = complain(USAGE, "$PORT must be %s, not \"%s\".",
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
            return refuse_usage(code);
        }
        if (n != o->token_fd) continue;
        *code = complain(USAGE, "--listen-fd and --token-fd are the same.");
        return false;
    }
    return true;
}

/* Options that contradict each other. */
static bool check_options(const options *o, int *code) {
    const char        *what = NULL;
    hfsb_confine_level level;
    if (o->stdio && (o->hosts.count || o->port >= 0 || o->unix_paths.count ||
                     o->listen_fds.count || o->token_file ||
                     o->token_fd >= 0 || o->init || o->no_auth))
        what = "--stdio listens nowhere and needs no token: omit the options "
               "for these.";
    else if (o->linger_ms && !o->stdio) what = "--linger is for --stdio.";
    else if (o->is_public && !o->no_auth)
        what = "--public needs --no-auth: it allows any address without a "
               "token. With a token, --host alone is enough.";
    else if (o->no_auth && o->init)
        what = "--no-auth and --init contradict each other: use one.";
    else if (o->no_auth && (o->token_file || o->token_fd >= 0))
        what = "--no-auth and a token contradict each other: use one.";
    else if (o->token_file && o->token_fd >= 0)
        what = "--token-file and --token-fd: use one of them.";
    else if (!o->journal && (o->journal_size || o->journal_sync))
        what = "--journal-size and --journal-sync need --journal FILE.";
    else if (o->checkpoints && strcmp(o->checkpoints, "on") != 0 &&
             strcmp(o->checkpoints, "off") != 0 && !strchr(o->checkpoints, '/'))
        what = "--checkpoints needs on, off or a folder with a \"/\" in it: "
               "./NAME for one of this directory.";
    else if (o->checkpoints && strcmp(o->checkpoints, "off") != 0 &&
             !o->roots.count)
        what = "--checkpoints needs --root.";
    else if (o->token_fd > 1000000)
        what = "--token-fd needs the number of an open descriptor.";
    else if (o->confine &&
             !hfsb_confine_level_find(hfsb_cstr(o->confine), &level))
        what = "--confine needs none, write or strict.";
    else if (o->allow_read.count &&
             (!o->confine || strcmp(o->confine, "strict") != 0))
        what = "--allow-read is for --confine strict; otherwise commands "
               "read everything.";
    else if ((o->allow_write.count || o->net) &&
             (!o->confine || strcmp(o->confine, "none") == 0))
        what = "--allow-write and --net need --confine write or strict.";
    if (!what) return check_descriptors(o, code);
    *code = complain(USAGE, "%s", what);
    return false;
}

/* The library resolves a relative working directory beneath the root; on a
   command line it is relative to the current directory. */
static bool settle_work_dir(options *o, int *code) {
    static char whole[PATH_MAX];
    if (!o->work_dir || !*o->work_dir || !o->roots.count) return true;
    if (realpath(o->work_dir, whole)) {
        o->work_dir = whole;
        return true;
    }
    *code = complain(FAILED, "--work-dir %s: %s.", o->work_dir,
                     strerror(errno));
    return false;
}

bool take_options(int argc, char **argv, options *o, int *code) {
    memset(o, 0, sizeof *o);
    o->port = o->token_fd = o->threads = -1;
    if (argc < 1) return true; /* not even a program name */
    if (!take_line(argv, o, code)) return false;
    if (o->check) {
        *code = probe(o->check);
        return false;
    }
    return take_sockets(o, code) && take_environment(o, code) &&
           check_options(o, code) && settle_work_dir(o, code);
}

/* ---- derived ---- */

bool wants_tcp(const options *o) {
    if (o->stdio) return false;
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
