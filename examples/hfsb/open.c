/* open.c - hfsb open: the page of a sandbox, in a browser.

   The URL has the token of the sandbox after its "#", which a browser sends to
   nobody. It must not be an argument of another program either, where all
   users of the machine could read it: the browser is given a temporary file
   that redirects to the URL. */
#define _XOPEN_SOURCE 700 /* mkstemp, isatty; before any include */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The URL of the page. HFSB_ARG when there is none. */
static hfsb_status find_page(const target *t, hfsb_buf *out, hfsb_err *err) {
    hfsb_str url = hfsb_buf_str(&t->url);
    hfsb_url parts;
    if (t->is_pipe)
        return fail(err, HFSB_ARG,
                    "%s ends with each command that uses it, and has no page.",
                    t->url.ptr);
    if (hfsb_str_starts(url, HFSB_LIT("v1+")))
        return fail(err, HFSB_ARG,
                    "A server that speaks HF's /v1 has no page.");
    if (!url.len || hfsb_url_parse(url, &parts, NULL) != HFSB_OK) {
        snprintf(err->msg, sizeof err->msg,
                 "The address of %.*s is not known: `hfsb connect` it first.",
                 (int)target_name(t).len, target_name(t).ptr);
        return HFSB_ARG;
    }
    must(hfsb_buf_append(out, url));
    must(hfsb_buf_append(out, HFSB_LIT("/")));
    if (!t->token.len) return HFSB_OK;
    must(hfsb_buf_append(out, HFSB_LIT("#")));
    must(hfsb_http_encode(hfsb_buf_str(&t->token), false, out));
    return HFSB_OK;
}

/* Writes the file that redirects to the page. False when that fails, which
   leaves no file. */
static bool write_way(char *path, int size, const hfsb_buf *url) {
    const char *dir = getenv("TMPDIR");
    hfsb_buf    text = HFSB_INIT;
    size_t      i;
    bool        ok;
    int         fd;
    snprintf(path, (size_t)size, "%s/hfsb-open-XXXXXX",
             dir && *dir ? dir : "/tmp");
    fd = mkstemp(path); /* mode 0600 */
    if (fd < 0) return false;
    must(hfsb_buf_printf(&text, "<!doctype html><meta http-equiv=refresh "
                                "content=\"0; url="));
    for (i = 0; i < url->len; i++) /* no markup, whatever the URL has */
        if (strchr("\"&<>", url->ptr[i]))
            must(hfsb_buf_printf(&text, "&#%d;", url->ptr[i]));
        else must(hfsb_buf_append_byte(&text, url->ptr[i]));
    must(hfsb_buf_append(&text, HFSB_LIT("\">\n")));
    ok = write(fd, text.ptr, text.len) == (ssize_t)text.len;
    close(fd);
    if (!ok) (void)unlink(path); /* it may have a part of the token */
    hfsb_buf_free(&text);
    return ok;
}

/* Starts the program that opens files. False when there is none. */
static bool open_file(const char *path) {
    static const char *const programs[] = {"xdg-open", "open", NULL};
    int                      status = 1;
    pid_t                    pid = fork();
    size_t                   i;
    if (pid < 0) return false;
    if (pid == 0) {
        for (i = 0; programs[i]; i++)
            execlp(programs[i], programs[i], path, (char *)NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void open_browser(const hfsb_buf *url) {
    char path[1024], named[1040];
    catch_signals(NULL, NULL); /* the file has the token: remove it */
    if (write_way(path, (int)sizeof path, url)) {
        snprintf(named, sizeof named, "%s.html", path);
        if (rename(path, named) != 0)
            snprintf(named, sizeof named, "%s", path);
        if (!caught_signal() && open_file(named) && !caught_signal())
            sleep(3); /* until the browser has read it */
        (void)unlink(named);
    }
    release_signals();
}

int run_open(args *a) {
    const char      *name = NULL;
    bool             json = false, print = false;
    target           t = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--print", OPTION_FLAG, &print, "only print the URL"},
        OPTION_JSON(&json, ", url"), OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    name = chosen_sandbox(name);
    if (!name) return no_sandbox(a);
    st = find_target(name, &t, &err);
    if (st == HFSB_OK) st = find_page(&t, &result.output, &err);
    if (st == HFSB_OK && !print && !json && isatty(1))
        open_browser(&result.output);
    if (st == HFSB_OK) {
        result.success = true;
        begin_object(&w, &result.fields);
        put_str(&w, "url", hfsb_buf_str(&result.output));
        end_object(&w);
    }
    free_target(&t);
    return show_outcome(&result, st, &err, json);
}
