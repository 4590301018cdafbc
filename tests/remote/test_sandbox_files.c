/* test_sandbox_files.c - files to and from a sandbox, byte for byte: through
   connections that break, and from a server that has no /api/files. */
#include "../support/t_calls.h"

static ts_server server;
static tc_proxy  proxy;
static tc_box    box;

static void begin(bool raw, bool foreign) {
    ts_start(&server, NULL, NULL);
    tc_proxy_open(&proxy, server.port);
    proxy.raw = raw;
    proxy.foreign = foreign;
    tc_open(&box, proxy.port, NULL);
}

static void end(void) {
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&server, false);
}

/* The next connections are new ones, and end after so many bytes. */
static void break_after(bool up, const size_t *cuts, size_t n) {
    hfsb_net_opts net = HFSB_INIT;
    hfsb_transport_close(&box.transport);
    net.no_proxy = true;
    net.alloc = tt_alloc();
    T_CHECK(hfsb_net_open(&net, &box.transport, NULL) == HFSB_OK);
    box.sandbox->transport = box.transport;
    memcpy(proxy.cuts, cuts, n * sizeof *cuts);
    proxy.cut_up = up;
    proxy.cut_at = 0;
    proxy.cut_count = n;
}

static hfsb_status up(const char *local, const char *remote, hfsb_err *err) {
    hfsb_status st;
    memset(err, 0, sizeof *err);
    st = hfsb_sandbox_upload(box.sandbox, NULL, hfsb_cstr(local),
                             hfsb_cstr(remote), NULL, err);
    tc_settle();
    tc_no_secret(hfsb_cstr(err->msg));
    return st;
}

static hfsb_status down(const char *remote, const char *local, hfsb_err *err) {
    hfsb_status st;
    memset(err, 0, sizeof *err);
    st = hfsb_sandbox_download(box.sandbox, hfsb_cstr(remote), NULL,
                               hfsb_cstr(local), NULL, err);
    tc_settle();
    tc_no_secret(hfsb_cstr(err->msg));
    return st;
}

static unsigned mode_of(const char *path) {
    struct stat st;
    return stat(path, &st) ? 0 : (unsigned)st.st_mode & 07777u;
}

/* ---- small ones ---- */

#define BYTES(lit) \
    { lit, sizeof(lit) - 1 }

static const struct {
    const char *name;
    hfsb_str    bytes;
} contents[] = {
    {"an empty file", BYTES("")},
    {"one byte", BYTES("x")},
    {"tabs, CRLF, no last newline", BYTES("a\tb\r\nc\r\n\td")},
    {"bytes that are no text", BYTES("\0\1\377\376\0\n\r\200")},
    {"escapes of a terminal", BYTES("\033[1mx\033[0m\rprogress\b\b")},
    {"a byte order mark", BYTES("\357\273\277x\n")}};

static const char *const names[] = {"plain", "a b'c\"d$e", "%2e&mode=7", "-n",
                                    "\303\251.txt"};

static void every_byte_comes_back_from_both_kinds_of_servers(void) {
    hfsb_buf got = HFSB_INIT;
    hfsb_err err;
    size_t   i, k;
    int      foreign;
    got.alloc = tt_alloc();
    for (foreign = 0; foreign < 2; foreign++) {
        begin(false, foreign);
        for (i = 0; i < TT_COUNT(contents); i++)
            for (k = 0; k < TT_COUNT(names); k++) {
                if (i != 3 && i % TT_COUNT(names) != k) continue;
                tt_put(names[k], contents[i].bytes);
                got.len = 0;
                T_CHECK(hfsb_buf_append(&got, HFSB_LIT("before")) == HFSB_OK);
                if (hfsb_sandbox_get(box.sandbox, hfsb_cstr(names[k]), 0, NULL,
                                     &got, &err) != HFSB_OK)
                    printf("%s: %s\n", contents[i].name, err.msg);
                T_CHECK(
                    hfsb_str_starts(hfsb_buf_str(&got), HFSB_LIT("before")));
                T_CHECK(hfsb_str_equal(
                    hfsb_str_slice(hfsb_buf_str(&got), 6, got.len),
                    contents[i].bytes));
                T_CHECK(down(names[k], "copy", &err) == HFSB_OK);
                T_CHECK(tt_file_is("copy", contents[i].bytes));
                unlink("copy");
                unlink(names[k]);
            }
        end();
    }
    hfsb_buf_free(&got);
}

static void a_mode_goes_both_ways(void) {
    hfsb_err err;
    begin(false, false);
    tt_put("script", HFSB_LIT("#!/bin/sh\n"));
    T_CHECK(!chmod("script", 0750));
    T_CHECK(up("script", "there/script", &err) == HFSB_OK);
    T_CHECK(mode_of("there/script") == 0750);
    TT_FILE("there/script", "#!/bin/sh\n");
    T_CHECK(down("there/script", "back/script", &err) == HFSB_OK);
    T_CHECK(mode_of("back/script") == 0750);
    /* also onto files that are there */
    T_CHECK(!chmod("script", 0600));
    T_CHECK(up("script", "there/script", &err) == HFSB_OK);
    T_CHECK(mode_of("there/script") == 0600);
    /* one that has no size of its own */
    T_CHECK(up("/proc/self/stat", "stat", &err) == HFSB_OK);
    T_CHECK(tt_lines_in("stat") == 1);
    end();
}

/* What a server says of the mode is less than what we take from it. */
static void download_never_grants_write_to_others(void) {
    static const struct {
        const char *said;
        unsigned    mode;
    } modes[] = {{"6777", 0755}, {"1666", 0644}, {"0600", 0600},
                 {"4711", 0711}, {"0022", 0},    {"77777", 0755}};
    char     text[256];
    hfsb_err err;
    size_t   i;
    begin(false, false);
    for (i = 0; i < TT_COUNT(modes); i++) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 200 OK\r\nX-Hfsb: 1; instance=i\r\nX-Hfsb-Mode: "
                 "%s\r\nContent-Length: 1\r\n\r\nx",
                 modes[i].said);
        tc_can(&proxy, text, 1);
        T_CHECK(down("there", "here", &err) == HFSB_OK);
        if (modes[i].mode) T_CHECK(mode_of("here") == modes[i].mode);
        else T_CHECK(!(mode_of("here") & 022u)); /* as any new file */
        unlink("here");
    }
    end();
}

static void copy_reports_bad_paths_and_refusals(void) {
    hfsb_buf got = HFSB_INIT;
    hfsb_err err;
    int      foreign;
    for (foreign = 0; foreign < 2; foreign++) {
        begin(false, foreign);
        (void)mkdir("dir", 0755);
        T_CHECK(down("none", "copy", &err) == HFSB_NOT_FOUND);
        T_CHECK(strstr(err.msg, "File not found: none") == err.msg);
        T_CHECK(down("dir", "copy", &err) == HFSB_REFUSED);
        T_CHECK(strstr(err.msg, "Is a directory: dir") == err.msg);
        T_CHECK(access("copy", F_OK));
        tt_put("five", HFSB_LIT("12345"));
        T_CHECK(hfsb_sandbox_get(box.sandbox, HFSB_LIT("five"), 4, NULL, &got,
                                 &err) == HFSB_LIMIT);
        T_CHECK(got.len == 0);
        T_CHECK(hfsb_sandbox_get(box.sandbox, HFSB_LIT("five"), 5, NULL, &got,
                                 &err) == HFSB_OK);
        T_STR(got, "12345");
        hfsb_buf_free(&got);
        T_CHECK(down("five", "dir", &err) == HFSB_IS_DIR);
        T_CHECK(down("", "copy", &err) == HFSB_ARG);
        T_CHECK(up("none", "x", &err) == HFSB_NOT_FOUND);
        if (foreign) {
            T_CHECK(up("five", "x", &err) == HFSB_REFUSED);
            T_CHECK(strstr(err.msg, "has no /api/files") != NULL);
        } else {
            T_CHECK(up("five", "dir", &err) == HFSB_REFUSED);
        }
        end();
    }
}

/* ---- on bad lines ---- */

static void pages_and_losses_are_tried_again(void) {
    static const tc_act bad[] = {TC_PAGE_BEFORE, TC_DROP_BEFORE, TC_TRUNCATE,
                                 TC_DROP_AFTER, TC_PAGE_AFTER};
    hfsb_err            err;
    size_t              i;
    begin(false, false);
    tt_put("f", HFSB_LIT("content of f\n"));
    for (i = 0; i < TT_COUNT(bad); i++) {
        tc_plan_one(&proxy, bad[i], 2);
        T_CHECK(up("f", "g", &err) == HFSB_OK);
        TT_FILE("g", "content of f\n");
        tc_plan_one(&proxy, bad[i], 2);
        T_CHECK(down("g", "h", &err) == HFSB_OK);
        TT_FILE("h", "content of f\n");
        unlink("g");
        unlink("h");
    }
    tc_plan_one(&proxy, TC_PAGE_BEFORE, 3);
    T_CHECK(up("f", "g", &err) == HFSB_BUSY);
    tc_plan_one(&proxy, TC_DROP_BEFORE, 12); /* a GET may be sent again */
    T_CHECK(down("f", "h", &err) == HFSB_LOST);
    /* a page is not taken for the file */
    tc_can(&proxy, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", 3);
    T_CHECK(down("f", "h", &err) == HFSB_BUSY);
    T_CHECK(access("h", F_OK) && access("g", F_OK));
    T_CHECK(tt_entries(".", ".h.hfsb") == 0);
    end();
}

/* ... when the whole was asked for, in the place of it. */
static void a_part_that_was_not_asked_for_is_refused(void) {
    static const char part[] =
        "HTTP/1.1 206 Partial Content\r\nX-Hfsb: 1; instance=i\r\n"
        "Content-Range: bytes 0-4/5\r\nContent-Length: 5\r\n\r\nhello";
    hfsb_buf got = HFSB_INIT;
    hfsb_err err;
    begin(false, false);
    tt_put("f", HFSB_LIT("content of f\n"));
    tc_can(&proxy, part, 3);
    T_CHECK(down("f", "h", &err) == HFSB_REMOTE);
    T_CHECK(strstr(err.msg, "a part of the file that was not") != NULL);
    T_CHECK(access("h", F_OK) && tt_entries(".", ".h.hfsb") == 0);
    tc_can(&proxy, part, 3);
    T_CHECK(hfsb_sandbox_get(box.sandbox, HFSB_LIT("f"), 0, NULL, &got,
                             &err) == HFSB_REMOTE);
    T_CHECK(got.len == 0);
    tc_can(&proxy, part, 1); /* and asked for again */
    T_CHECK(down("f", "h", &err) == HFSB_OK);
    TT_FILE("h", "content of f\n");
    hfsb_buf_free(&got);
    end();
}

/* The bytes came in chunks that ended early: a whole reply, half a file. */
static void half_a_file_is_not_taken_for_the_whole(void) {
    static const char half[] =
        "HTTP/1.1 200 OK\r\nX-Hfsb: 1; instance=i\r\nX-Hfsb-Size: 13\r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\nconte\r\n0\r\n\r\n";
    hfsb_err err;
    begin(false, false);
    tt_put("f", HFSB_LIT("content of f\n"));
    tc_can(&proxy, half, 2);
    T_CHECK(down("f", "h", &err) == HFSB_OK);
    TT_FILE("h", "content of f\n");
    unlink("h");
    tc_can(&proxy, half, 3);
    T_CHECK(down("f", "h", &err) == HFSB_LOST);
    T_CHECK(strstr(err.msg, "after 5 of 13 bytes") != NULL);
    T_CHECK(access("h", F_OK) && tt_entries(".", ".h.hfsb") == 0);
    end();
}

/* A file that changes between two parts is taken from its beginning. */
typedef struct changer {
    int times;
} changer;

static void change(void *user, unsigned long long done,
                   unsigned long long total) {
    changer *c = (changer *)user;
    (void)total;
    if (done && !c->times++) {
        hfsb_buf b = HFSB_INIT;
        tt_fill(&b, "new ", 100000);
        tt_put("next", hfsb_buf_str(&b));
        if (rename("next", "big")) abort();
        hfsb_buf_free(&b);
    }
}

static void download_starts_over_when_the_file_changed(void) {
    size_t         cut = 200000;
    hfsb_copy_opts opts = HFSB_INIT;
    changer        c = HFSB_INIT;
    hfsb_buf       b = HFSB_INIT;
    hfsb_err       err;
    begin(true, false);
    tt_fill(&b, "old ", 100000);
    tt_put("big", hfsb_buf_str(&b));
    break_after(false, &cut, 1);
    opts.progress = change;
    opts.user = &c;
    T_CHECK(hfsb_sandbox_download(box.sandbox, HFSB_LIT("big"), NULL,
                                  HFSB_LIT("copy"), &opts, &err) == HFSB_OK);
    hfsb_buf_truncate(&b, 0);
    tt_fill(&b, "new ", 100000);
    T_CHECK(c.times > 1 && tt_file_is("copy", hfsb_buf_str(&b)));
    hfsb_buf_free(&b);
    unlink("big");
    unlink("copy");
    end();
}

typedef struct watcher {
    unsigned long long last, total;
    size_t             calls;
    hfsb_cancel       *cancel; /* set half-way */
} watcher;

static void watch(void *user, unsigned long long done,
                  unsigned long long total) {
    watcher *w = (watcher *)user;
    w->calls++;
    w->last = done;
    w->total = total;
    if (w->cancel && done > total / 2) hfsb_cancel_set(w->cancel);
}

/* 64 MB, both ways, cut in the middle. */
static void a_large_file_survives_cuts(void) {
    const size_t       mega = 1u << 20, size = (t_quick() ? 8 : 64) * mega;
    size_t             cuts[3];
    unsigned long long seed = 5;
    hfsb_copy_opts     opts = HFSB_INIT;
    watcher            w = HFSB_INIT;
    hfsb_err           err;
    char               want[HFSB_SHA256_HEX], is[HFSB_SHA256_HEX];
    FILE              *f = fopen("large", "wb");
    size_t             i;
    for (i = 0; f && i < size; i += sizeof seed) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        if (fwrite(&seed, sizeof seed, 1, f) != 1) abort();
    }
    if (!f || fclose(f)) abort();
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("large"), want, NULL) == HFSB_OK);
    begin(true, false);
    opts.progress = watch;
    opts.user = &w;
    cuts[0] = size / 2;
    cuts[1] = size / 3;
    cuts[2] = 100;
    break_after(true, cuts, 2);
    if (hfsb_sandbox_upload(box.sandbox, NULL, HFSB_LIT("large"),
                            HFSB_LIT("large-there"), &opts, &err) != HFSB_OK)
        printf("up: %s\n", err.msg);
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("large-there"), is, NULL) ==
            HFSB_OK);
    T_CHECK(!strcmp(want, is));
    T_CHECK(w.last == size && w.total == size && w.calls > 10);
    memset(&w, 0, sizeof w);
    break_after(false, cuts, 3);
    if (hfsb_sandbox_download(box.sandbox, HFSB_LIT("large-there"), NULL,
                              HFSB_LIT("large-back"), &opts, &err) != HFSB_OK)
        printf("down: %s\n", err.msg);
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("large-back"), is, NULL) ==
            HFSB_OK);
    T_CHECK(!strcmp(want, is));
    T_CHECK(w.last == size && w.total == size);
    T_CHECK(proxy.cut_at == 3); /* it was resumed, not restarted */
    end();
    unlink("large");
    unlink("large-there");
    unlink("large-back");
}

static void a_copy_may_be_cancelled(void) {
    hfsb_copy_opts opts = HFSB_INIT;
    watcher        w = HFSB_INIT;
    hfsb_buf       b = HFSB_INIT;
    hfsb_err       err;
    begin(true, false);
    tt_fill(&b, "0123456789", 400000);
    tt_put("some", hfsb_buf_str(&b));
    hfsb_buf_free(&b);
    T_CHECK(hfsb_cancel_open(NULL, &w.cancel, NULL) == HFSB_OK);
    opts.progress = watch;
    opts.user = &w;
    opts.cancel = w.cancel;
    T_CHECK(hfsb_sandbox_download(box.sandbox, HFSB_LIT("some"), NULL,
                                  HFSB_LIT("copy"), &opts,
                                  &err) == HFSB_CANCELLED);
    T_CHECK(access("copy", F_OK) && tt_entries(".", ".copy") == 0);
    hfsb_cancel_reset(w.cancel);
    T_CHECK(hfsb_sandbox_upload(box.sandbox, NULL, HFSB_LIT("some"),
                                HFSB_LIT("copy"), &opts,
                                &err) == HFSB_CANCELLED);
    T_CHECK(access("copy", F_OK));
    hfsb_cancel_close(w.cancel);
    unlink("some");
    end();
    T_CHECK(tt_entries(".", ".copy") == 0);
}

/* ---- in pieces ---- */

static void many_pieces_make_a_file(void) {
    static const size_t sizes[] = {17999, 18000, 18001, 36000, 100003};
    hfsb_buf            b = HFSB_INIT, got = HFSB_INIT;
    hfsb_err            err;
    unsigned long long  seed = 9;
    size_t              i;
    begin(false, true);
    for (i = 0; i < TT_COUNT(sizes); i++) {
        hfsb_buf_truncate(&b, 0);
        hfsb_buf_truncate(&got, 0);
        while (b.len < sizes[i])
            if (hfsb_buf_append_byte(&b, (char)t_random(&seed)) != HFSB_OK)
                abort();
        tt_put("pieces", hfsb_buf_str(&b));
        tc_plan(&proxy, NULL, 0);
        T_CHECK(hfsb_sandbox_get(box.sandbox, HFSB_LIT("pieces"), 0, NULL,
                                 &got, &err) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&b)));
        T_CHECK(proxy.repeats == 0);
    }
    /* one is lost: it is said, not guessed */
    hfsb_buf_truncate(&got, 0);
    tc_plan_one(&proxy, TC_PASS, 3);
    proxy.queue[2] = TC_DROP_AFTER;
    T_CHECK(hfsb_sandbox_get(box.sandbox, HFSB_LIT("pieces"), 0, NULL, &got,
                             &err) == HFSB_LOST);
    T_CHECK(got.len == 0);
    hfsb_buf_free(&b);
    hfsb_buf_free(&got);
    end();
}

/* Nor is one taken that changed between two pieces. */
static void a_file_that_changes_between_pieces_is_refused(void) {
    hfsb_copy_opts opts = HFSB_INIT;
    changer        c = HFSB_INIT;
    hfsb_buf       b = HFSB_INIT;
    hfsb_err       err;
    begin(false, true);
    tt_fill(&b, "old ", 100000);
    tt_put("big", hfsb_buf_str(&b));
    hfsb_buf_free(&b);
    opts.progress = change; /* as long as it was, in the same second */
    opts.user = &c;
    T_CHECK(hfsb_sandbox_download(box.sandbox, HFSB_LIT("big"), NULL,
                                  HFSB_LIT("copy"), &opts,
                                  &err) == HFSB_STALE);
    T_CHECK(strstr(err.msg, "big changed while it was read") == err.msg);
    T_CHECK(c.times == 1 && access("copy", F_OK));
    unlink("big");
    end();
}

/* ---- memory ---- */

static unsigned memory_port;

static void copies_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_transport    transport = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_buf          got = HFSB_INIT;
    hfsb_err          err;
    char              url[64];
    hfsb_status       st[3] = {HFSB_OK, HFSB_OK, HFSB_OK};
    net.no_proxy = true;
    net.alloc = o.alloc = got.alloc = alloc;
    o.tries = 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", memory_port);
    if (hfsb_net_open(&net, &transport, NULL) != HFSB_OK) return;
    o.transport = &transport;
    (void)hfsb_sandbox_connect_url(hfsb_cstr(url), &o, &sandbox, NULL);
    if (sandbox) {
        if (!proxy.foreign) {
            st[0] = hfsb_sandbox_upload(sandbox, NULL, HFSB_LIT("five"),
                                        HFSB_LIT("six"), NULL, &err);
            st[1] = hfsb_sandbox_download(sandbox, HFSB_LIT("five"), NULL,
                                          HFSB_LIT("seven"), NULL, &err);
        }
        st[2] =
            hfsb_sandbox_get(sandbox, HFSB_LIT("five"), 0, NULL, &got, &err);
        if (!heap->fail_at)
            T_CHECK(st[0] == HFSB_OK && st[1] == HFSB_OK && st[2] == HFSB_OK);
        if (st[1] == HFSB_OK && !proxy.foreign) TT_FILE("seven", "12345");
        if (st[2] == HFSB_OK) T_STR(got, "12345");
        T_CHECK(st[2] == HFSB_OK || got.len == 0);
        T_CHECK(hfsb_sandbox_close(sandbox, false, NULL) == HFSB_OK);
    }
    hfsb_buf_free(&got);
    hfsb_transport_close(&transport);
}

static void copy_survives_each_failed_allocation(void) {
    int foreign;
    tt_put("five", HFSB_LIT("12345"));
    for (foreign = 0; foreign < 2; foreign++) {
        begin(false, foreign);
        memory_port = proxy.port;
        t_each_allocation_fails(copies_without_memory);
        end();
    }
    T_CHECK(tt_entries(".", ".seven") == 0);
}

int main(void) {
    tt_begin();
    TT_RUN(every_byte_comes_back_from_both_kinds_of_servers);
    TT_RUN(a_mode_goes_both_ways);
    TT_RUN(download_never_grants_write_to_others);
    TT_RUN(copy_reports_bad_paths_and_refusals);
    TT_RUN(pages_and_losses_are_tried_again);
    TT_RUN(a_part_that_was_not_asked_for_is_refused);
    TT_RUN(half_a_file_is_not_taken_for_the_whole);
    TT_RUN(download_starts_over_when_the_file_changed);
    TT_RUN(a_large_file_survives_cuts);
    TT_RUN(a_copy_may_be_cancelled);
    TT_RUN(many_pieces_make_a_file);
    TT_RUN(a_file_that_changes_between_pieces_is_refused);
    TT_RUN(copy_survives_each_failed_allocation);
    return TT_END();
}
