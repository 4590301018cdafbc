/* test_api_wall.c - the second wall around the file tools of a server. The
   first one, how paths are resolved, is taken down here: the root becomes /. */
#include "../support/t_server.h"

#ifdef HFSBI_LINUX

static char check_saw[64];

/* A check of the host is not bound to the root. */
static hfsb_status check_reads(void *user, hfsb_str path, hfsb_str content,
                               hfsb_buf *warnings) {
    FILE *f = fopen((const char *)user, "r");
    (void)path, (void)content, (void)warnings;
    if (f && !fgets(check_saw, sizeof check_saw, f)) check_saw[0] = '\0';
    if (f) (void)fclose(f);
    return HFSB_OK;
}

static void start(ts_server *s, hfsb_server_opts *opts) {
    static hfsb_tools_check  check;
    static char              secret[PATH_MAX];
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    (void)mkdir("home", 0755);
    (void)mkdir("home/root", 0755);
    tt_put("home/secret", HFSB_LIT("secret\n"));
    T_CHECK(realpath("home/secret", secret) != NULL);
    check.suffix = ".x";
    check.fn = check_reads;
    check.user = secret;
    tools.root = HFSB_LIT("home/root");
    tools.checks = &check;
    tools.check_count = 1;
    box.tools = &tools;
    ts_start(s, opts, &box);
}

static hfsb_tools *tools_of(ts_server *s) {
    return hfsbi_server_group(s->server)->first;
}

static void finish(ts_server *s) {
    ts_end(s, false);
    tt_remove_all("home", NULL);
}

/* Makes the root of the tools its parent, as a fault in root.c might. */
static int take_down_the_first_wall(ts_server *s) {
    hfsb_root *place = tools_of(s)->place;
    int        old = place->root_fd;
    place->root_fd = open("home", O_PATH | O_DIRECTORY | O_CLOEXEC);
    T_CHECK(place->root_fd >= 0);
    return old;
}

static void put_up_the_first_wall(ts_server *s, int fd) {
    hfsb_root *place = tools_of(s)->place;
    hfsbi_close(&place->root_fd);
    place->root_fd = fd;
}

static void nothing_outside_the_root_is_reached(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    int       fd;
    start(&s, NULL);
    T_CHECK(tools_of(&s)->rights.walled == (hfsbi_landlock_abi() >= 2));
    if (tools_of(&s)->rights.walled) {
        fd = take_down_the_first_wall(&s);
        ts_post(&s, &r, "/api/read", "{\"path\":\"secret\"}");
        TS_FAIL(&r, "Cannot");
        ts_post(&s, &r, "/api/write", "{\"path\":\"new\",\"content\":\"x\"}");
        TS_FAIL(&r, "Cannot");
        ts_post(&s, &r, "/api/grep", "{\"pattern\":\"secret\"}");
        T_CHECK(!strstr(r.body.ptr, "secret\\n"));
        ts_get(&s, &r, "/api/files?path=secret");
        T_CHECK(r.status != 200);
        T_CHECK(access("home/new", F_OK) != 0);
        /* what the tools may do is still done */
        ts_post(&s, &r, "/api/write",
                "{\"path\":\"root/in\",\"content\":\"x\"}");
        TS_OK(&r, NULL);
        put_up_the_first_wall(&s, fd);
    }
    ts_drop(&r);
    finish(&s);
}

static void commands_and_checks_are_not_walled(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start(&s, NULL);
    ts_post(&s, &r, "/api/write", "{\"path\":\"a.x\",\"content\":\"x\"}");
    TS_OK(&r, NULL);
    T_CHECK(strcmp(check_saw, "secret\n") == 0);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"cat ../secret\"}");
    TS_OK(&r, "secret\n");
    ts_post(&s, &r, "/api/write",
            "{\"path\":\"a.sh\",\"content\":\"#!/bin/sh\\nif\\n\"}");
    T_CHECK(strstr(r.body.ptr, "Shell syntax error") != NULL);
    ts_drop(&r);
    finish(&s);
}

#endif

int main(void) {
    tt_begin();
#ifdef HFSBI_LINUX
    TT_RUN(nothing_outside_the_root_is_reached);
    TT_RUN(commands_and_checks_are_not_walled);
#endif
    return TT_END();
}
