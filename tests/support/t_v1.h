/* t_v1.h - a server that speaks HF's /v1, as the fact sheet has it, behind a
   transport: files of this machine, commands that really run, and on demand
   its weaknesses, lost connections and changes by others. */
#ifndef T_V1_H
#define T_V1_H
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#endif

#define TV_TOKEN "a7363b49bea4acc16b5e6e290390988be2e081e1f52a31bb"

typedef struct tv_server {
    int         protocol;   /* 1: /health does not name it */
    const char *prefix;     /* of its routes, "v1/" */
    bool        races;      /* output of the last 100 ms is lost */
    const char *events;     /* reply to every exec (NULL: run it) */
    const char *page;       /* body of every reply but /health, with 502 */
    size_t      piece;      /* bytes of a body at a time (0: all) */
    size_t      cut;        /* replies end after so many bytes (NPOS: not) */
    const char *cut_method; /* ... of requests with this method */
    size_t      cut_times;  /* ... that many of them */
    bool        no_connection;
    void (*before)(struct tv_server *s, hfsb_str method, hfsb_str route);
    size_t   gets, puts, posts, deletes, asked; /* asked: before was called */
    hfsb_buf body, query;                       /* of the last request */
    char     token[80], authorization[80];
} tv_server;

/* What one request gets. */
typedef struct tv_reply {
    int         status;
    const char *type;
    hfsb_buf    body;
} tv_reply;

HFSBI_UNUSED static void tv_init(tv_server *s) {
    memset(s, 0, sizeof *s);
    s->protocol = 3;
    s->prefix = "v1/";
    s->cut = HFSB_NPOS;
}

HFSBI_UNUSED static void tv_free(tv_server *s) {
    hfsb_buf_free(&s->body);
    hfsb_buf_free(&s->query);
}

static void tv_error(tv_reply *r, int status, const char *text) {
    hfsb_json_writer w;
    r->status = status;
    hfsb_buf_truncate(&r->body, 0);
    hfsb_json_writer_init(&w, &r->body, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("error"));
    hfsb_json_put_str(&w, hfsb_cstr(text));
    hfsb_json_put_end(&w);
}

/* As Rust's io::Error is shown. */
static void tv_errno(tv_reply *r, int code) {
    char text[160];
    snprintf(text, sizeof text, "%s (os error %d)", strerror(code), code);
    tv_error(r, code == ENOENT ? 404 : code == EISDIR ? 409 : 400, text);
}

/* The value of a key of the query, decoded; "" if there is none. */
static const char *tv_get(const tv_server *s, const char *key) {
    static char values[4][5000];
    static int  at;
    const char *p = s->query.ptr ? s->query.ptr : "";
    size_t      n = strlen(key), k = 0;
    char       *out = values[at = (at + 1) % 4];
    while (*p && !(strncmp(p, key, n) == 0 && p[n] == '=')) {
        p += strcspn(p, "&");
        p += *p == '&';
    }
    for (p += *p ? n + 1 : 0; *p && *p != '&' && k < 4999; p++) {
        char hex[3] = "";
        if (*p == '%') {
            hex[0] = p[1];
            hex[1] = p[2];
            out[k++] = (char)strtol(hex, NULL, 16);
            p += 2;
        } else {
            out[k++] = *p == '+' ? ' ' : *p;
        }
    }
    out[k] = '\0';
    return out;
}

/* ---- files ---- */

static void tv_stat(tv_server *s, tv_reply *r) {
    const char *path = tv_get(s, "path");
    struct stat st;
    if (lstat(path, &st) != 0) {
        tv_errno(r, errno);
        return;
    }
    (void)hfsb_buf_printf(
        &r->body,
        "{\"name\":\"x\",\"path\":\"x\",\"type\":\"%s\",\"size\":%lld,"
        "\"mtime_ms\":%lld,\"mode\":\"%o\"}",
        S_ISDIR(st.st_mode)   ? "dir"
        : S_ISLNK(st.st_mode) ? "symlink"
                              : "file",
        (long long)st.st_size,
        (long long)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
        (unsigned)st.st_mode & 07777u);
}

static void tv_read(tv_server *s, tv_reply *r) {
    const char *path = tv_get(s, "path"), *length = tv_get(s, "length");
    struct stat st;
    if (stat(path, &st) != 0) tv_errno(r, errno);
    else if (S_ISDIR(st.st_mode)) tv_errno(r, EISDIR);
    else if (access(path, R_OK) != 0 || !t_read_file(path, &r->body))
        tv_errno(r, EACCES);
    if (r->status == 200 && *length)
        hfsb_buf_truncate(&r->body, (size_t)atoi(length));
    r->type = "application/octet-stream";
}

/* In place, as the real one does. */
static void tv_write(tv_server *s, tv_reply *r) {
    const char *path = tv_get(s, "path"), *offset = tv_get(s, "offset");
    char        dirs[5000];
    char       *p;
    int         fd;
    snprintf(dirs, sizeof dirs, "%s", path);
    for (p = strchr(dirs + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(dirs, 0777);
        *p = '/';
    }
    fd = open(path, O_WRONLY | O_CREAT | (*offset ? 0 : O_TRUNC), 0644);
    if (fd < 0) {
        tv_errno(r, errno);
        return;
    }
    if (pwrite(fd, s->body.ptr, s->body.len, *offset ? atol(offset) : 0) !=
        (ssize_t)s->body.len)
        abort();
    if (*tv_get(s, "mode"))
        (void)fchmod(fd, (mode_t)strtol(tv_get(s, "mode"), NULL, 8));
    close(fd);
    (void)hfsb_buf_printf(&r->body, "{\"path\":\"x\",\"size\":%zu}",
                          s->body.len);
}

static void tv_delete(tv_server *s, tv_reply *r) {
    if (unlink(tv_get(s, "path")) != 0) tv_errno(r, errno);
    else (void)hfsb_buf_printf(&r->body, "{\"deleted\":\"x\"}");
}

/* ---- commands ---- */

enum { TV_WORDS = 64 };

typedef struct tv_run {
    const char *argv[TV_WORDS];
    const char *cwd;
    char        env[TV_WORDS][400];
    size_t      env_count;
    FILE       *in, *out, *err;
} tv_run;

static pid_t tv_spawn(tv_run *run) {
    pid_t  pid = fork();
    size_t i;
    if (pid != 0) return pid;
    setpgid(0, 0);
    for (i = 0; i < run->env_count; i++) putenv(run->env[i]);
    if (run->cwd && chdir(run->cwd) != 0) _exit(99);
    dup2(fileno(run->in), 0);
    dup2(fileno(run->out), 1);
    dup2(fileno(run->err), 2);
    {
        union {
            const char **in;
            char *const *out;
        } words;
        words.in = run->argv;
        execvp(run->argv[0], words.out);
    }
    _exit(98);
}

static void tv_event(tv_reply *r, const char *event, FILE *from) {
    char             block[700];
    size_t           n;
    hfsb_json_writer w;
    rewind(from);
    while ((n = fread(block, 1, sizeof block, from)) > 0) {
        hfsb_buf text = HFSB_INIT;
        if (hfsb_utf8_repair(hfsb_str_make(block, n), &text) != HFSB_OK)
            abort();
        hfsb_json_writer_init(&w, &r->body, NULL);
        hfsb_json_put_object(&w);
        hfsb_json_put_key(&w, HFSB_LIT("data"));
        hfsb_json_put_str(&w, hfsb_buf_str(&text));
        hfsb_json_put_key(&w, HFSB_LIT("event"));
        hfsb_json_put_str(&w, hfsb_cstr(event));
        hfsb_json_put_end(&w);
        (void)hfsb_buf_append(&r->body, HFSB_LIT("\n"));
        hfsb_buf_free(&text);
    }
}

/* Waits for the group, so that no output is missed; KILL at the timeout. */
static void tv_wait(tv_reply *r, const tv_server *s, tv_run *run, pid_t pid,
                    double timeout) {
    long long began = hfsb_clock_ms();
    int       status = 0;
    bool      late = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (timeout > 0 &&
            (double)(hfsb_clock_ms() - began) > timeout * 1000) {
            late = true;
            kill(-pid, SIGKILL);
        }
        usleep(2000);
    }
    (void)hfsb_buf_printf(&r->body, "{\"event\":\"start\",\"pid\":%ld}\n",
                          (long)pid);
    if (!s->races || hfsb_clock_ms() - began > 100) {
        tv_event(r, "stdout", run->out);
        tv_event(r, "stderr", run->err);
    }
    (void)hfsb_buf_printf(&r->body, "{\"event\":\"ping\"}\n");
    if (WIFEXITED(status))
        (void)hfsb_buf_printf(
            &r->body,
            "{\"duration_ms\":3,\"event\":\"exit\",\"exit_code\":%d,"
            "\"signal\":null,\"timed_out\":false}\n",
            WEXITSTATUS(status));
    else
        (void)hfsb_buf_printf(
            &r->body,
            "{\"duration_ms\":3,\"event\":\"exit\",\"exit_code\":null,"
            "\"signal\":%d,\"timed_out\":%s}\n",
            WTERMSIG(status), late ? "true" : "false");
}

static void tv_exec(tv_server *s, tv_reply *r, bool background) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_str       input;
    tv_run         run;
    size_t         n = 0;
    pid_t          pid;
    memset(&run, 0, sizeof run);
    r->type = "application/x-ndjson";
    if (s->events) {
        (void)hfsb_buf_append(&r->body, hfsb_cstr(s->events));
        return;
    }
    if (hfsb_json_parse(hfsb_buf_str(&s->body), NULL, &doc, NULL) != HFSB_OK)
        abort();
    it = hfsb_json_begin(hfsb_json_get(doc.root, "cmd"));
    while (hfsb_json_next(&it) && n < TV_WORDS - 1)
        run.argv[n++] = hfsb_json_str(it.value, HFSB_LIT("")).ptr;
    it = hfsb_json_begin(hfsb_json_get(doc.root, "env"));
    while (hfsb_json_next(&it) && run.env_count < TV_WORDS)
        snprintf(run.env[run.env_count++], 400, "%s=%s", it.key.ptr,
                 hfsb_json_str(it.value, HFSB_LIT("")).ptr);
    run.cwd =
        hfsb_json_str(hfsb_json_get(doc.root, "cwd"), hfsb_str_make(NULL, 0))
            .ptr;
    input = hfsb_json_str(hfsb_json_get(doc.root, "stdin"), HFSB_LIT(""));
    if (run.cwd && access(run.cwd, X_OK) != 0) {
        tv_errno(r, ENOENT);
        r->status = 400; /* spawning failed: 400, whatever the reason */
        hfsb_json_free(&doc);
        return;
    }
    run.in = tmpfile();
    run.out = tmpfile();
    run.err = tmpfile();
    if (!run.in || !run.out || !run.err) abort();
    fwrite(input.ptr, 1, input.len, run.in);
    rewind(run.in);
    fflush(NULL);
    pid = tv_spawn(&run);
    if (background) {
        r->type = "application/json";
        (void)hfsb_buf_printf(&r->body, "{\"id\":\"p-0\",\"pid\":%ld}",
                              (long)pid);
    } else {
        double timeout = 0;
        (void)hfsb_json_arg_double(doc.root, "timeout", false, &timeout, NULL);
        tv_wait(r, s, &run, pid, timeout);
    }
    fclose(run.in);
    fclose(run.out);
    fclose(run.err);
    hfsb_json_free(&doc);
}

/* ---- one request ---- */

static void tv_answer(tv_server *s, hfsb_str method, hfsb_str route,
                      tv_reply *r) {
    bool get = hfsb_str_equal(method, HFSB_LIT("GET"));
    r->status = 200;
    r->type = "application/json";
    if (hfsb_str_equal(route, HFSB_LIT("health"))) {
        if (s->protocol == 1)
            (void)hfsb_buf_printf(&r->body, "{\"sandboxes\":0,\"status\":"
                                            "\"ok\",\"version\":\"0.5.0\"}");
        else
            (void)hfsb_buf_printf(
                &r->body, "{\"status\":\"ok\",\"protocol\":%d}", s->protocol);
        return;
    }
    if (s->page) {
        r->status = 502;
        r->type = "text/html";
        (void)hfsb_buf_append(&r->body, hfsb_cstr(s->page));
        return;
    }
    if (strcmp(s->token, TV_TOKEN) != 0) {
        tv_error(r, 403, "invalid token " TV_TOKEN);
        return;
    }
    if (!hfsb_str_starts(route, hfsb_cstr(s->prefix))) {
        tv_error(r, 404, "no route");
        return;
    }
    route = hfsb_str_slice(route, strlen(s->prefix), route.len);
    if (get && hfsb_str_equal(route, HFSB_LIT("files/stat"))) tv_stat(s, r);
    else if (get && hfsb_str_equal(route, HFSB_LIT("files/read")))
        tv_read(s, r);
    else if (hfsb_str_equal(route, HFSB_LIT("files/write"))) tv_write(s, r);
    else if (hfsb_str_equal(route, HFSB_LIT("files/delete"))) tv_delete(s, r);
    else if (hfsb_str_equal(route, HFSB_LIT("exec"))) tv_exec(s, r, false);
    else if (hfsb_str_equal(route, HFSB_LIT("processes"))) tv_exec(s, r, true);
    else tv_error(r, 404, "no route");
}

static void tv_count(tv_server *s, const hfsb_http_call *call) {
    size_t i;
    if (hfsb_str_equal(call->method, HFSB_LIT("GET"))) s->gets++;
    if (hfsb_str_equal(call->method, HFSB_LIT("PUT"))) s->puts++;
    if (hfsb_str_equal(call->method, HFSB_LIT("POST"))) s->posts++;
    if (hfsb_str_equal(call->method, HFSB_LIT("DELETE"))) s->deletes++;
    s->token[0] = s->authorization[0] = '\0';
    for (i = 0; i < call->field_count; i++) {
        hfsb_http_field f = call->fields[i];
        if (hfsb_http_same(f.name, HFSB_LIT("X-Sandbox-Token")))
            snprintf(s->token, sizeof s->token, "%.*s", (int)f.value.len,
                     f.value.ptr);
        if (hfsb_http_same(f.name, HFSB_LIT("Authorization")))
            snprintf(s->authorization, sizeof s->authorization, "%.*s",
                     (int)f.value.len, f.value.ptr);
    }
}

/* Reads the body of the request. */
static void tv_take(tv_server *s, const hfsb_http_call *call) {
    unsigned long long left = call->body_read ? call->body_length : 0;
    char               block[3000];
    size_t             got;
    hfsb_buf_truncate(&s->body, 0);
    if (call->body.ptr && hfsb_buf_append(&s->body, call->body) != HFSB_OK)
        abort();
    for (; left; left -= got) {
        size_t room = left < sizeof block ? (size_t)left : sizeof block;
        if (call->body_read(call->user, block, room, &got, NULL) != HFSB_OK ||
            hfsb_buf_append(&s->body, hfsb_str_make(block, got)) != HFSB_OK)
            abort();
    }
}

static hfsb_status tv_send(tv_server *s, const hfsb_http_call *call,
                           const tv_reply *r, hfsb_err *err) {
    hfsb_http_field field;
    hfsb_str        body = hfsb_buf_str(&r->body);
    size_t          at = 0, limit = body.len;
    bool cuts = s->cut != HFSB_NPOS && s->cut_times && s->cut_method &&
                hfsb_str_equal(call->method, hfsb_cstr(s->cut_method));
    field.name = HFSB_LIT("Content-Type");
    field.value = hfsb_cstr(r->type);
    if (cuts) s->cut_times--;
    if (cuts && s->cut < limit) limit = s->cut;
    if (!call->on_head(call->user, r->status, &field, 1))
        return HFSB_CANCELLED;
    while (at < limit) {
        size_t n = s->piece && s->piece < limit - at ? s->piece : limit - at;
        if (!call->on_body(call->user, hfsb_str_slice(body, at, at + n)) ||
            hfsb_cancel_is_set(call->cancel)) {
            (void)snprintf(err->msg, sizeof err->msg, "cancelled");
            return err->code = HFSB_CANCELLED;
        }
        at += n;
    }
    if (!cuts) return HFSB_OK;
    (void)snprintf(err->msg, sizeof err->msg, "connection reset");
    return err->code = HFSB_LOST;
}

static hfsb_status tv_perform(void *user, const hfsb_http_call *call,
                              bool *sent, hfsb_err *err) {
    tv_server  *s = (tv_server *)user;
    tv_reply    r = HFSB_INIT;
    hfsb_str    url = call->url, route, query;
    size_t      at;
    hfsb_status st;
    hfsb_err    none;
    if (!err) err = &none;
    if (s->no_connection) {
        (void)snprintf(err->msg, sizeof err->msg, "refused");
        return err->code = HFSB_CONNECT;
    }
    *sent = true;
    tv_count(s, call);
    tv_take(s, call);
    at = hfsb_str_find(url, HFSB_LIT("://")) + 3;
    route = hfsb_str_slice(url, at, url.len);
    route =
        hfsb_str_slice(route, hfsb_str_find_byte(route, '/') + 1, route.len);
    at = hfsb_str_find_byte(route, '?');
    query = at == HFSB_NPOS ? hfsb_str_make("", 0)
                            : hfsb_str_slice(route, at + 1, route.len);
    route = hfsb_str_slice(route, 0, at);
    hfsb_buf_truncate(&s->query, 0);
    if (hfsb_buf_append(&s->query, query) != HFSB_OK) abort();
    if (s->before) s->before(s, call->method, route);
    tv_answer(s, call->method, route, &r);
    st = tv_send(s, call, &r, err);
    hfsb_buf_free(&r.body);
    return st;
}

/* ---- a handle on it ---- */

HFSBI_UNUSED static hfsb_sandbox_opts tv_options(void) {
    hfsb_sandbox_opts o = HFSB_INIT;
    o.protocol = hfsb_protocol_v1();
    o.api_token = HFSB_LIT(TV_TOKEN);
    o.hub_token = HFSB_LIT("hf_edge");
    o.times.delay_ms = 1;
    o.times.api_poll_ms = 1;
    o.times.api_wait_ms = 20;
    o.alloc = tt_alloc();
    return o;
}

HFSBI_UNUSED static hfsb_status tv_open(tv_server *s, const char *url,
                                        hfsb_sandbox_opts o,
                                        hfsb_sandbox **out, hfsb_err *err) {
    hfsb_transport t = HFSB_INIT;
    t.perform = tv_perform;
    t.user = s;
    o.transport = &t;
    return hfsb_sandbox_connect_url(hfsb_cstr(url), &o, out, err);
}

HFSBI_UNUSED static void tv_do(tt_reply *r, hfsb_sandbox *box,
                               const char *tool, hfsb_str json,
                               const hfsb_call_opts *opts) {
    hfsb_json_doc doc = HFSB_INIT;
    tt_drop(r);
    if (hfsb_json_parse(json, NULL, &doc, NULL) != HFSB_OK) abort();
    r->st = hfsb_sandbox_call(box, hfsb_cstr(tool), doc.root, opts, &r->res);
    tt_look(r);
    hfsb_json_free(&doc);
}

/* Arguments as tt_call() takes them. */
HFSBI_UNUSED static void tv_call(tt_reply *r, hfsb_sandbox *box,
                                 const char *tool, const char *keys, ...) {
    hfsb_buf json = HFSB_INIT;
    va_list  ap;
    va_start(ap, keys);
    tt_arguments(&json, keys, ap);
    va_end(ap);
    tv_do(r, box, tool, hfsb_buf_str(&json), NULL);
    T_CHECK(r->sane);
    hfsb_buf_free(&json);
}

#endif
