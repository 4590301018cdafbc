/* secret.c - the token, of which no copy is left behind. A command may run as
   the same user, or as root, and read this process's memory: so nothing here
   uses stdio, and every buffer is overwritten. */
#define _GNU_SOURCE 1 /* environ; before any include */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifndef __GLIBC__
extern char **environ;
#endif

void wipe(void *ptr, size_t n) {
    volatile unsigned char *p = (volatile unsigned char *)ptr;
    while (n--) *p++ = 0;
}

static void wipe_here(void) {
    char space[16384];
    wipe(space, sizeof space);
}

void wipe_stack(void) {
    /* volatile: keeps it a call, below the frame of the caller */
    void (*volatile call)(void) = wipe_here;
    call();
}

void hide_memory(void) {
#ifdef PR_SET_DUMPABLE
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

/* ---- sources ---- */

const char *const *environment(void) {
    return (const char *const *)environ;
}

bool take_environment_token(const char *name, secret *out, bool *found) {
    const size_t name_len = strlen(name) + 1; /* with "=" */
    char       **from = environ, **to = environ;
    bool         fits = true, seen = false;
    /* there may be several of that name: the first one counts */
    for (; from && *from; from++) {
        char  *value = *from + name_len;
        size_t len;
        if (strncmp(*from, name, name_len - 1) != 0 ||
            (*from)[name_len - 1] != '=') {
            *to++ = *from;
            continue;
        }
        len = strlen(value);
        if (!seen && out) {
            fits = len <= sizeof out->bytes;
            out->len = fits ? len : 0;
            memcpy(out->bytes, value, out->len);
        }
        seen = true;
        wipe(value, len);
    }
    if (to) *to = NULL;
    if (found) *found = seen;
    return fits;
}

/* Reads up to the end, without a last line feed; false with errno. */
static bool read_token(int fd, secret *out) {
    char    more;
    ssize_t n = 1;
    out->len = 0;
    while (n > 0) {
        bool full = out->len == sizeof out->bytes;
        do
            n = full ? read(fd, &more, 1)
                     : read(fd, out->bytes + out->len,
                            sizeof out->bytes - out->len);
        while (n < 0 && errno == EINTR);
        if (n > 0 && full) {
            errno = EFBIG;
            n = -1;
        }
        if (n > 0) out->len += (size_t)n;
    }
    if (n == 0 && out->len && out->bytes[out->len - 1] == '\n') {
        out->len--;
        if (out->len && out->bytes[out->len - 1] == '\r') out->len--;
    }
    return n == 0;
}

static int read_token_from(const options *o, secret *out) {
    int fd = o->token_file ? open(o->token_file, O_RDONLY | O_CLOEXEC)
                           : (int)o->token_fd;
    int code = DONE;
    if (fd < 0 || !read_token(fd, out))
        code = complain(FAILED, "cannot read the token from %s: %s.",
                        o->token_file ? o->token_file : "--token-fd",
                        errno == EFBIG ? "it is too long" : strerror(errno));
    if (fd >= 0) close(fd);
    return code;
}

/* Random hexadecimal digits; false without /dev/urandom. */
static bool make_token(secret *out) {
    static const char digits[] = "0123456789abcdef";
    unsigned char     raw[20];
    int               fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    size_t            i;
    bool              ok = fd >= 0 && read(fd, raw, sizeof raw) == sizeof raw;
    if (fd >= 0) close(fd);
    for (i = 0; ok && i < sizeof raw; i++) {
        out->bytes[2 * i] = digits[raw[i] >> 4];
        out->bytes[2 * i + 1] = digits[raw[i] & 15];
    }
    wipe(raw, sizeof raw);
    out->len = ok ? 2 * sizeof raw : 0;
    out->made_up = ok;
    return ok;
}

/* ---- the choice ---- */

/* A token must fit into a header field, without blanks. The message must not
   contain any part of it. */
static int check_token(const secret *token, const char *from) {
    size_t i;
    if (token->len == 0)
        return complain(USAGE,
                        "the token of %s is empty. Set one, or use --no-auth "
                        "to serve without a token.",
                        from);
    for (i = 0; i < token->len; i++) {
        unsigned char c = (unsigned char)token->bytes[i];
        if (c > ' ' && c < 127) continue;
        return complain(
            USAGE,
            "the token of %s contains a blank, a control character "
            "or a non-ASCII byte at position %zu.",
            from, i + 1);
    }
    return DONE;
}

static int token_of(options *o, secret *out, secret *sbx) {
    const char *from = "SANDBOX_API_TOKEN";
    bool        found, has_sbx;
    bool        fits = take_environment_token(from, out, &found);
    bool        sbx_fits = take_environment_token("SBX_TOKEN", sbx, &has_sbx);
    int         code;
    if (has_sbx && !found) { /* one token for all */
        from = "SBX_TOKEN";
        *out = *sbx;
        found = true;
        fits = sbx_fits;
    }
    if (o->token_file || o->token_fd >= 0) {
        wipe(out, sizeof *out);
        from = o->token_file ? o->token_file : "--token-fd";
        code = read_token_from(o, out);
        if (code != DONE) return code;
    } else if (found && o->no_auth) {
        return complain(USAGE, "--no-auth and %s contradict each other: unset "
                               "one.", from);
    } else if ((found && !fits) || (has_sbx && !sbx_fits)) {
        return complain(USAGE, "%s is too long: at most %d bytes.",
                        fits ? "SBX_TOKEN" : from, (int)SECRET_SIZE);
    } else if (!found) {
        /* only for the person at the terminal, and not on the network */
        if (!o->no_auth && !o->init && only_loopback(o) && isatty(1) && !o->quiet)
            o->has_token = make_token(out);
        return DONE;
    }
    o->has_token = true;
    return check_token(out, from);
}

int find_token(options *o, secret *out, secret *sbx) {
    int code;
    memset(out, 0, sizeof *out);
    memset(sbx, 0, sizeof *sbx);
    code = token_of(o, out, sbx);
    if (code == DONE && sbx->len) code = check_token(sbx, "SBX_TOKEN");
    if (code != DONE) wipe(out, sizeof *out);
    if (code != DONE) wipe(sbx, sizeof *sbx);
    return code;
}
