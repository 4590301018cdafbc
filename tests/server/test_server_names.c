/* test_server_names.c - names of files over HTTP: any bytes are used as they
   are, and no spelling leaves the root. */
#include "../support/t_server.h"

static const hfsb_str no_body = HFSB_INIT;

/* Appends JSON text of {"path":name, more}. */
static void named_body(hfsb_buf *out, const char *name, const char *more) {
    hfsb_json_writer w;
    hfsb_buf_truncate(out, 0);
    t_repeat(out, "{\"path\":", 1);
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_str(&w, hfsb_cstr(name));
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    t_repeat(out, more, 1);
    t_repeat(out, "}", 1);
}

static void named_target(char *out, size_t size, const char *name) {
    size_t n = (size_t)snprintf(out, size, "/api/files?path=");
    for (; *name; name++)
        n += (size_t)snprintf(out + n, size - n, "%%%02x",
                              (unsigned)(unsigned char)*name);
}

/* A name is a name: never part of a command line, an option or a pattern, and
   never trimmed. */
static void file_names_are_used_byte_for_byte(void) {
    static const char *const names[] = {
        "$(touch ran)", "`touch ran`", ";touch ran", "|touch ran", "a\nb",
        "&& touch ran", "-rf",         "--output=x", "f.txt.",     "f.txt ",
        " f.txt",       "F.txt",       "%2e%2e",     "*",          "~",
        "\\..\\x",      "'",           "\"",         "\xC3\xA9"};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  body = HFSB_INIT;
    char      target[200];
    size_t    i;
    ts_start(&s, NULL, NULL);
    T_CHECK(!mkdir("names", 0755));
    tt_put("names/f.txt", HFSB_LIT("mine"));
    for (i = 0; i < TT_COUNT(names); i++) {
        char path[80];
        snprintf(path, sizeof path, "names/%s", names[i]);
        named_body(&body, path, ",\"content\":\"one\"");
        ts_post(&s, &r, "/api/write", body.ptr);
        TS_OK(&r, NULL);
        T_CHECK(tt_file_is(path, HFSB_LIT("one")));
        named_body(&body, path, ",\"old_str\":\"one\",\"new_str\":\"two\"");
        ts_post(&s, &r, "/api/edit", body.ptr);
        TS_OK(&r, NULL);
        named_body(&body, path, "");
        ts_post(&s, &r, "/api/read", body.ptr);
        TS_OK(&r, "1\ttwo");
        named_target(target, sizeof target, path);
        ts_call(&s, &r, "PUT", target, "", HFSB_LIT("three"));
        TS_IS(&r, 200, "\"created\":false");
        ts_get(&s, &r, target);
        T_STR(r.body, "three");
        T_CHECK(tt_file_is(path, HFSB_LIT("three")));
        T_CHECK(tt_entries("names", "") == 2);
        ts_call(&s, &r, "DELETE", target, "", no_body);
        TS_IS(&r, 200, NULL);
        T_CHECK(access(path, F_OK) != 0);
    }
    ts_get(&s, &r, "/api/files?path=names/f.txt/");
    TS_REFUSED(&r, 404, NULL);
    T_CHECK(tt_file_is("names/f.txt", HFSB_LIT("mine")));
    T_CHECK(access("ran", F_OK) != 0 && tt_entries("names", "") == 1);
    hfsb_buf_free(&body);
    ts_drop(&r);
    ts_end(&s, false);
}

/* Decoded once, resolved, then compared part by part. */
static void no_path_spelling_leaves_the_root(void) {
    static const struct {
        const char *query;
        int         status;
    } list[] = {
        {"in/f", 200},
        {"%69n%2Ff", 200},
        {"in//./f", 200},
        {"lok", 200},
        {"..%2fsecret", 403},
        {"%2e%2e/secret", 403},
        {"in%2f..%2f..%2fsecret", 403},
        {"../rooted-evil/f", 403},
        {"in//..//../secret", 403},
        {"l2", 403},
        {"ld/secret", 403},
        {"/proc/self/root/etc/passwd", 403},
        {"/proc/self/cwd/secret", 403},
        {"/dev/fd/0", 403},
        {"/dev/null", 403},
        {"/etc//passwd", 403},
        {"/etc/./passwd", 403},
        {"/", 403},
        {"..", 403},
        {"%252e%252e/secret", 404},
        {"%c0%ae%c0%ae/secret", 404},
        {"..%5csecret", 404},
        {"in/f.", 404},
        {"in/f%20", 404},
        {"in/f/", 404},
        {".", 400},
        {"in", 400},
        {"in/f%00", 400},
        {"in/f%0", 400},
    };
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    ts_server         s;
    ts_reply          r = HFSB_INIT;
    char              target[120];
    size_t            i;
    T_CHECK(!mkdir("rooted", 0755) && !mkdir("rooted/in", 0755) &&
            !mkdir("rooted-evil", 0755));
    tt_put("rooted/in/f", HFSB_LIT("inside"));
    tt_put("rooted-evil/f", HFSB_LIT("secret"));
    tt_put("secret", HFSB_LIT("secret"));
    T_CHECK(!symlink("in/f", "rooted/lok") && !symlink("..", "rooted/ld") &&
            !symlink("../secret", "rooted/l1") && !symlink("l1", "rooted/l2"));
    tools.root = HFSB_LIT("rooted");
    box.tools = &tools;
    ts_start(&s, NULL, &box);
    for (i = 0; i < TT_COUNT(list); i++) {
        snprintf(target, sizeof target, "/api/files?path=%s", list[i].query);
        ts_get(&s, &r, target);
        if (r.status != list[i].status) printf("%s\n", list[i].query);
        TS_IS(&r, list[i].status, list[i].status == 200 ? "inside" : NULL);
        T_CHECK(r.status == 200 ||
                hfsb_json_get(r.json.root, "error") != NULL);
        /* never write to a file of the machine, also when this goes wrong */
        if (r.status != 403 || list[i].query[0] == '/') continue;
        ts_call(&s, &r, "PUT", target, "", HFSB_LIT("evil"));
        TS_REFUSED(&r, 403, NULL);
    }
    T_CHECK(tt_file_is("secret", HFSB_LIT("secret")) &&
            tt_file_is("rooted-evil/f", HFSB_LIT("secret")));
    ts_drop(&r);
    ts_end(&s, false);
}

/* Dates that no calendar has, and files that the kernel shows but does not
   read. */
static void unusual_files_do_not_cause_a_500(void) {
    static const long long dates[] = {-1, -2147483648ll, 0, 253402300800ll,
                                      15032385535ll};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    tt_put("dated", HFSB_LIT("x"));
    ts_start(&s, NULL, NULL);
    for (i = 0; i < TT_COUNT(dates); i++) {
        struct timespec when[2];
        memset(when, 0, sizeof when);
        when[0].tv_sec = when[1].tv_sec = (time_t)dates[i];
        (void)utimensat(AT_FDCWD, "dated", when, 0);
        ts_get(&s, &r, "/api/files?path=dated");
        TS_IS(&r, 200, "x");
        T_CHECK(ts_field(&r, "Last-Modified").len == 29);
    }
    if (access("/proc/self/mem", F_OK) == 0) {
        ts_get(&s, &r, "/api/files?path=/proc/self/mem");
        TS_REFUSED(&r, 400, "/proc/self/mem");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(file_names_are_used_byte_for_byte);
    TT_RUN(no_path_spelling_leaves_the_root);
    TT_RUN(unusual_files_do_not_cause_a_500);
    return TT_END();
}
