/* test_hf_host.c - the sandbox API of Hugging Face: several sandboxes in one
   server, servers that stop when nobody uses them, and a lack of memory. */
#include "../support/t_hf.h"

/* ---- sandboxes ---- */

typedef struct box {
    char id[32], token[80], home[PATH_MAX];
    long uid;
} box;

static const char *const host_mode[] = {"SBX_HOST_MODE=1", "SBX_CAPACITY=3",
                                        "SBX_ALLOW_UNCONFINED=1", NULL};

static void start_host(void) {
    start_with(host_mode, NULL);
}

/* Makes a sandbox from the options in JSON. */
static void make(box *b, const char *body) {
    ts_reply               r = HFSB_INIT;
    const hfsb_json_value *e;
    struct stat            st = HFSB_INIT;
    memset(b, 0, sizeof *b);
    call(&r, "POST", "/v1/sandboxes", body);
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_int(&r, "rejected") == 0);
    e = hfsb_json_at(hfsb_json_get(r.json.root, "sandboxes"), 0);
    b->uid = (long)hfsb_json_int(hfsb_json_get(e, "uid"), -1);
    (void)snprintf(b->id, sizeof b->id, "%s",
                   hfsb_json_str(hfsb_json_get(e, "id"), HFSB_LIT("")).ptr);
    (void)snprintf(b->token, sizeof b->token, "%s",
                   hfsb_json_str(hfsb_json_get(e, "token"), HFSB_LIT("")).ptr);
    (void)snprintf(b->home, sizeof b->home, "%s",
                   hfsb_json_str(hfsb_json_get(e, "home"), HFSB_LIT("")).ptr);
    T_CHECK(stat(b->home, &st) == 0 && (st.st_mode & 07777) == 0700);
    T_CHECK((long)st.st_uid == b->uid);
    T_CHECK(b->uid == (long)getuid() ||
            (getuid() == 0 && b->uid >= 20000 && b->uid < 65000));
    T_CHECK(strlen(b->id) == 16 && strlen(b->token) == 64);
    T_CHECK(strspn(b->token, "0123456789abcdef") == 64);
    ts_drop(&r);
}

/* A request in a sandbox, with a token (NULL: its own). */
static void ask_as(ts_reply *r, const box *b, const char *token,
                   const char *method, const char *rest, const char *body) {
    char target[400], fields[300];
    (void)snprintf(target, sizeof target, "/v1/sandboxes/%s%s", b->id, rest);
    (void)snprintf(fields, sizeof fields, "X-Sandbox-Token: %s\r\n%s",
                   token ? token : b->token, body ? TS_JSON : "");
    ts_call(&srv, r, method, target, fields,
            body ? hfsb_cstr(body) : nothing);
}

static void ask(ts_reply *r, const box *b, const char *method,
                const char *rest, const char *body) {
    ask_as(r, b, NULL, method, rest, body);
}

static void run_in(hf_run *x, const box *b, const char *body) {
    char target[100], fields[300];
    (void)snprintf(target, sizeof target, "/v1/sandboxes/%s/exec", b->id);
    (void)snprintf(fields, sizeof fields, "X-Sandbox-Token: %s\r\n%s",
                   b->token, TS_JSON);
    run_at(x, target, fields, body);
}

static void sandboxes_are_made_listed_and_removed(void) {
    ts_reply r = HFSB_INIT;
    box      a, b;
    char     target[100];
    start_host();
    ts_call(&srv, &r, "GET", "/health", HF_TOKEN, nothing);
    T_STR(ts_text(&r, "mode"), "host");
    call(&r, "GET", "/v1/sandboxes", NULL);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), HFSB_LIT("[]")));
    make(&a, "{\"count\":1}");
    make(&b, NULL);
    T_CHECK(strcmp(a.id, b.id) && strcmp(a.token, b.token));
    T_CHECK(access(a.home, F_OK) == 0);
    call(&r, "GET", "/v1/sandboxes", NULL);
    T_CHECK(hfsb_json_count(r.json.root) == 2);
    T_CHECK(!ts_contains(&r, a.token));
    T_CHECK(hfsb_str_equal(
        hfsb_json_str(hfsb_json_get(hfsb_json_at(r.json.root, 0), "id"),
                      HFSB_LIT("")),
        hfsb_cstr(a.id)));
    call(&r, "POST", "/v1/sandboxes", "{\"count\":3}"); /* there is one place */
    TS_IS(&r, 200, "\"rejected\":2");
    T_CHECK(hfsb_json_count(hfsb_json_get(r.json.root, "sandboxes")) == 1);
    call(&r, "POST", "/v1/sandboxes", "{}");
    TS_IS(&r, 200, "{\"sandboxes\":[],\"rejected\":1}");
    call(&r, "POST", "/v1/sandboxes", "{\"count\":-1}");
    TS_IS(&r, 400, NULL);
    (void)snprintf(target, sizeof target, "/v1/sandboxes/%s/token", a.id);
    call(&r, "GET", target, NULL);
    TS_IS(&r, 200, NULL);
    T_CHECK(hfsb_str_equal(ts_text(&r, "token"), hfsb_cstr(a.token)));
    ask(&r, &a, "DELETE", "", NULL);
    TS_IS(&r, 200, "\"deleted\":true");
    T_CHECK(access(a.home, F_OK) != 0);
    ask(&r, &a, "GET", "/processes", NULL);
    TS_IS(&r, 404, NULL);
    ask(&r, &a, "DELETE", "", NULL);
    TS_IS(&r, 404, NULL);
    call(&r, "DELETE", "/v1/sandboxes", NULL);
    TS_IS(&r, 200, "{\"deleted\":2}");
    T_CHECK(access(b.home, F_OK) != 0);
    call(&r, "GET", "/v1/sandboxes", NULL);
    TS_IS(&r, 200, "[]");
    make(&a, NULL);
    ts_drop(&r);
    finish();
    T_CHECK(access(a.home, F_OK) != 0);
}

/* Protocol 3: the token of the server opens no sandbox, that of a sandbox
   nothing else. */
static void tokens_open_one_sandbox(void) {
    static const char *const own[][2] = {
        {"POST", "/exec"},        {"GET", "/processes"},
        {"POST", "/processes"},   {"DELETE", "/processes/p-0"},
        {"GET", "/files/read?path=x"}, {"PUT", "/files/write?path=x"},
        {"GET", "/files/list?path=x"}, {"GET", "/proxy/80/"},
        {"DELETE", ""}};
    ts_reply r = HFSB_INIT;
    box      a, b, c;
    size_t   i;
    start_host();
    make(&a, NULL);
    make(&b, NULL);
    for (i = 0; i < TT_COUNT(own); i++) {
        ask_as(&r, &a, TS_TOKEN, own[i][0], own[i][1], NULL);
        TS_IS(&r, 403, NULL);
        ask_as(&r, &a, b.token, own[i][0], own[i][1], NULL);
        TS_IS(&r, 403, NULL);
        ask_as(&r, &a, "", own[i][0], own[i][1], NULL);
        TS_IS(&r, 403, NULL);
    }
    ask(&r, &a, "GET", "/token", NULL);
    TS_IS(&r, 403, NULL);
    ask(&r, &a, "GET", "/processes", NULL);
    TS_IS(&r, 200, NULL);
    c = a; /* the same id with an escape is still the same sandbox */
    (void)snprintf(c.id, sizeof c.id, "%%%02x%s",
                   (unsigned)(unsigned char)a.id[0], a.id + 1);
    ask_as(&r, &c, b.token, "POST", "/exec", "{\"cmd\":\"id\"}");
    TS_IS(&r, 403, NULL);
    ask_as(&r, &c, "junk", "DELETE", "", NULL);
    TS_IS(&r, 403, NULL);
    ask(&r, &c, "GET", "/processes", NULL);
    TS_IS(&r, 200, "[]");
    (void)snprintf(b.id, sizeof b.id, "0000000000000000");
    ask(&r, &b, "GET", "/processes", NULL);
    TS_IS(&r, 404, NULL);
    ask_as(&r, &b, "", "GET", "/processes", NULL);
    TS_IS(&r, 403, NULL);
    call(&r, "GET", "/v1/processes", NULL); /* of the other mode */
    TS_IS(&r, 404, NULL);
    ts_drop(&r);
    finish();
}

/* As many programs as may run in a sandbox keep no other one from running. */
static void a_busy_sandbox_hinders_no_other(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    ts_reply        r = HFSB_INIT;
    hf_run          x = HFSB_INIT;
    box             a, b;
    int             i;
    tools.max_running = 2;
    start_with(host_mode, &tools);
    make(&a, NULL);
    make(&b, NULL);
    for (i = 0; i < 2; i++) {
        ask(&r, &a, "POST", "/processes", "{\"cmd\":[\"sleep\",\"60\"]}");
        TS_IS(&r, 200, NULL);
    }
    run_in(&x, &b, "{\"cmd\":\"echo free\"}");
    T_STR(hfsb_buf_str(&x.out), "free\n");
    ask(&r, &a, "POST", "/processes", "{\"cmd\":[\"sleep\",\"60\"]}");
    TS_IS(&r, 503, "2 programs run here");
    drop_run(&x);
    ts_drop(&r);
    finish();
}

static void old_clients_may_use_the_servers_token(void) {
    static const char *const settings[] = {
        "SBX_HOST_MODE=1", "SBX_COMPAT_HOST_TOKEN=1",
        "SBX_ALLOW_UNCONFINED=1", NULL};
    ts_reply r = HFSB_INIT;
    box      a, b;
    start_with(settings, NULL);
    make(&a, NULL);
    make(&b, NULL);
    ask_as(&r, &a, TS_TOKEN, "GET", "/processes", NULL);
    TS_IS(&r, 200, "[]");
    ask(&r, &a, "GET", "/processes", NULL);
    TS_IS(&r, 200, "[]");
    ask_as(&r, &a, b.token, "GET", "/processes", NULL);
    TS_IS(&r, 403, NULL);
    ts_drop(&r);
    finish();
}

static void a_sandbox_has_its_own_environment(void) {
    hf_run x = HFSB_INIT;
    box    a;
    char   want[3 * PATH_MAX];
    start_host();
    (void)setenv("LEAKED", "yes", 1);
    make(&a, "{\"count\":1,\"env\":{\"OWN\":\"x y\",\"USER\":\"me\",\"N\":7}}");
    run_in(&x, &a, "{\"cmd\":\"echo $HOME,$PWD,$OWN,$USER,$N,${LEAKED-no},"
                   "$SBX_SANDBOX_ID,$TMPDIR\"}");
    (void)snprintf(want, sizeof want, "%s,%s,x y,me,7,no,%s,%s/.tmp\n", a.home,
                   a.home, a.id, a.home);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&x.out), hfsb_cstr(want)));
    run_in(&x, &a, "{\"cmd\":\"echo ${PATH%%:*}; touch $TMPDIR/x && "
                   "test -d $SBX_PROXY_DIR && echo ok\"}");
    (void)snprintf(want, sizeof want, "%s/.local/bin\nok\n", a.home);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&x.out), hfsb_cstr(want)));
    drop_run(&x);
    finish();
    (void)unsetenv("LEAKED");
}

static void paths_begin_at_the_home(void) {
    ts_reply r = HFSB_INIT;
    box      a, b;
    char     rest[300];
    static const char *const ways[] = {"%2Fdir%2Ff", "dir%2Ff",
                                       "..%2F..%2Fdir%2Ff",
                                       "%2F.%2Fx%2F..%2Fdir%2F%2Ff"};
    size_t   i;
    start_host();
    make(&a, NULL);
    make(&b, NULL);
    ask(&r, &a, "PUT", "/files/write?path=%2Fdir%2Ff", "content");
    TS_IS(&r, 200, a.home);
    for (i = 0; i < TT_COUNT(ways); i++) {
        (void)snprintf(rest, sizeof rest, "/files/read?path=%s", ways[i]);
        ask(&r, &a, "GET", rest, NULL);
        TS_IS(&r, 200, "content");
    }
    (void)snprintf(rest, sizeof rest, "/files/read?path=%s/dir/f", a.home);
    ask(&r, &a, "GET", rest, NULL);
    TS_IS(&r, 200, "content");
    (void)snprintf(rest, sizeof rest, "/files/read?path=%s/dir/f", a.home);
    ask(&r, &b, "GET", rest, NULL);
    TS_IS(&r, 404, NULL);
    ask(&r, &a, "GET", "/files/list?path=%2F", NULL);
    TS_IS(&r, 200, "\"path\":\"/dir\"");
    (void)snprintf(rest, sizeof rest, "%s/way", b.home);
    T_CHECK(symlink(a.home, rest) == 0);
    ask(&r, &b, "GET", "/files/read?path=way%2Fdir%2Ff", NULL);
    TS_IS(&r, 400, NULL);
    ts_drop(&r);
    finish();
}

static void commands_are_kept_apart(void) {
    hf_run   x = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    box      a, b;
    char     body[PATH_MAX + 100];
    start_host();
    call(&r, "GET", "/health", NULL);
    make(&a, NULL);
    make(&b, NULL);
    ask(&r, &a, "PUT", "/files/write?path=f", "secret");
    ask(&r, &a, "POST", "/processes", "{\"cmd\":\"sleep 30\"}");
    TS_IS(&r, 200, "\"p-0\"");
    ask(&r, &b, "GET", "/processes", NULL);
    TS_IS(&r, 200, "[]");
    call(&r, "GET", "/v1/sandboxes", NULL);
    if (ts_contains(&r, "\"strict\"")) {
        (void)snprintf(body, sizeof body, "{\"cmd\":\"cat %s/f\"}", a.home);
        run_in(&x, &b, body);
        T_CHECK(x.code != 0 && x.out.len == 0);
        (void)snprintf(body, sizeof body, "{\"cmd\":\"echo x > %s/f\"}",
                       a.home);
        run_in(&x, &b, body);
        T_CHECK(x.code != 0);
        run_in(&x, &b, "{\"cmd\":\"touch /tmp/hfsb-$$ || "
                       "touch /dev/shm/hfsb-$$\"}"); /* shared by all */
        T_CHECK(x.code != 0);
        run_in(&x, &b, "{\"cmd\":\"mktemp && echo ok > ~/x && cat ~/x\"}");
        T_CHECK(x.code == 0 && tt_says(&x.out, "ok\n"));
    } else {
        printf("no Landlock: commands are not confined here\n");
    }
    ask(&r, &a, "GET", "/files/read?path=f", NULL);
    TS_IS(&r, 200, "secret");
    drop_run(&x);
    ts_drop(&r);
    finish();
}

static void removing_a_sandbox_ends_its_processes(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf body = HFSB_INIT;
    box      a;
    ts_conn  c;
    char     target[100], fields[300];
    start_host();
    make(&a, NULL);
    tt_with_nap("{\"cmd\":\"trap '' TERM; setsid sleep @ & sleep @\"}", &body);
    ask(&r, &a, "POST", "/processes", body.ptr);
    TS_IS(&r, 200, NULL);
    (void)snprintf(target, sizeof target, "/v1/sandboxes/%s/exec", a.id);
    (void)snprintf(fields, sizeof fields, "X-Sandbox-Token: %s\r\n%s", a.token,
                   TS_JSON);
    c = ts_connect(&srv);
    ts_ask(&c, "POST", target, fields, hfsb_buf_str(&body));
    T_CHECK(ts_await(&c, "start", 20000) && naps_begin(4));
    ask(&r, &a, "DELETE", "", NULL);
    TS_IS(&r, 200, "\"deleted\":true");
    T_CHECK(tt_running(tt_nap()) == 0 && access(a.home, F_OK) != 0);
    T_CHECK(ts_await(&c, "\"exit\"", 20000));
    ts_hang_up(&c);
    hfsb_buf_free(&body);
    ts_drop(&r);
    finish();
}

/* True where sandboxes have uids of their own; else says so. */
static bool has_uids(const box *b) {
    if (b->uid != (long)getuid()) return true;
    printf("skipped: not root, or not with the rights of root\n");
    t_skipped++;
    return false;
}

static bool is_owner(const box *b, const char *name) {
    char        path[PATH_MAX + 40];
    struct stat st = HFSB_INIT;
    (void)snprintf(path, sizeof path, "%s/%s", b->home, name);
    return lstat(path, &st) == 0 && (long)st.st_uid == b->uid &&
           (b->uid == (long)getuid() || (long)st.st_gid == b->uid);
}

static void each_sandbox_is_a_user(void) {
    hf_run   x = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    hfsb_buf text = HFSB_INIT;
    box      a, b;
    char     body[PATH_MAX + 100], want[40];
    start_host();
    make(&a, NULL);
    make(&b, "{\"max_procs\":4}");
    call(&r, "GET", "/health", NULL);
    TS_IS(&r, 200, a.uid != (long)getuid() ? "\"uids\":true" : "\"uids\":false");
    run_in(&x, &a, "{\"cmd\":\"id -u; echo x > f; mkdir d\"}");
    (void)snprintf(want, sizeof want, "%ld\n", a.uid);
    T_CHECK(tt_says(&x.out, want) && is_owner(&a, "f") && is_owner(&a, "d"));
    ask(&r, &a, "PUT", "/files/write?path=n/e/w", "secret");
    TS_IS(&r, 200, NULL);
    ask(&r, &a, "POST", "/files/mkdir?path=m/k", NULL);
    TS_IS(&r, 200, NULL);
    ask(&r, &a, "PUT", "/files/write?path=f", "longer text");
    TS_IS(&r, 200, NULL);
    T_CHECK(is_owner(&a, "n/e/w") && is_owner(&a, "n/e") && is_owner(&a, "f"));
    T_CHECK(is_owner(&a, "m") && is_owner(&a, "m/k") && is_owner(&a, ".tmp"));
    if (has_uids(&a)) {
        T_CHECK(a.uid != b.uid);
        tt_with_nap("{\"cmd\":\"(setsid env -i sleep @ >/dev/null 2>&1 &); "
                    "sleep 0.1\"}",
                    &text);
        run_in(&x, &a, text.ptr); /* it outlives its command */
        T_CHECK(x.code == 0 && naps_begin(1));
        run_in(&x, &b,
               "{\"cmd\":\"for i in 1 2 3 4 5 6; do sleep 1 & done; wait\"}");
        T_CHECK(x.code != 0 && tt_says(&x.err, "fork"));
        (void)snprintf(body, sizeof body, "{\"cmd\":\"cat %s/n/e/w\"}",
                       a.home);
        run_in(&x, &b, body);
        T_CHECK(x.code != 0 && x.out.len == 0);
    }
    ask(&r, &a, "DELETE", "", NULL);
    TS_IS(&r, 200, "\"deleted\":true");
    T_CHECK(tt_running(tt_nap()) == 0 && access(a.home, F_OK) != 0);
    drop_run(&x);
    hfsb_buf_free(&text);
    ts_drop(&r);
    finish();
}

/* A file that the user of a sandbox may not write, or reach, is none of the
   routes either: they have its rights, not those of the server. */
static void file_routes_have_the_rights_of_the_user(void) {
    ts_reply r = HFSB_INIT;
    box      a;
    char     path[PATH_MAX + 40];
    start_host();
    make(&a, NULL);
    if (has_uids(&a)) {
        (void)snprintf(path, sizeof path, "%s/ours", a.home);
        tt_put(path, HFSB_LIT("secret"));
        T_CHECK(chmod(path, 0600) == 0);
        ask(&r, &a, "GET", "/files/read?path=ours", NULL);
        T_CHECK(r.status >= 400 && !ts_contains(&r, "secret"));
        (void)snprintf(path, sizeof path, "%s/closed", a.home);
        T_CHECK(mkdir(path, 0700) == 0);
        ask(&r, &a, "PUT", "/files/write?path=closed/f", "x");
        T_CHECK(r.status >= 400);
        ask(&r, &a, "GET", "/files/list?path=closed", NULL);
        T_CHECK(r.status >= 400);
    }
    ts_drop(&r);
    finish();
}

static void uids_can_be_switched_off(void) {
    static const char *const off[] = {"SBX_HOST_MODE=1",
                                      "SBX_ALLOW_UNCONFINED=1",
                                      "HFSB_SANDBOX_UIDS=0", NULL};
    hf_run x = HFSB_INIT;
    box    a;
    char   want[40];
    start_with(off, NULL);
    make(&a, NULL);
    T_CHECK(a.uid == (long)getuid());
    run_in(&x, &a, "{\"cmd\":\"id -u\"}");
    (void)snprintf(want, sizeof want, "%ld\n", a.uid);
    T_CHECK(tt_says(&x.out, want));
    drop_run(&x);
    finish();
}

static void idle_sandboxes_are_removed(void) {
    ts_reply  r = HFSB_INIT;
    box       a, b;
    long long end = hfsb_clock_ms() + 30000;
    bool      gone = false;
    int       tries = 0; /* it may be idle for long on a busy machine */
    start_host();
    do {
        make(&b, "{\"idle_timeout_secs\":1}");
        ask(&r, &b, "POST", "/processes", "{\"cmd\":\"sleep 60\"}");
    } while (r.status != 200 && tries++ < 10);
    make(&a, "{\"idle_timeout_secs\":1}");
    while (!gone && hfsb_clock_ms() < end) {
        tt_sleep_ms(100);
        gone = access(a.home, F_OK) != 0;
    }
    T_CHECK(gone && access(b.home, F_OK) == 0); /* it has a process */
    call(&r, "GET", "/v1/sandboxes", NULL);
    T_CHECK(hfsb_json_count(r.json.root) == 1);
    ts_drop(&r);
    finish();
}

/* A port of a sandbox is a socket in its home; a symlink to one is not. */
static void ports_are_sockets_in_the_home(void) {
    ts_reply           r = HFSB_INIT;
    struct sockaddr_un u;
    box                a, b;
    int                at, fd;
    char               path[PATH_MAX + 40], other[PATH_MAX + 40];
    ts_conn            c;
    char               bytes[4000], target[100], fields[200];
    start_host();
    make(&a, NULL);
    make(&b, NULL);
    (void)snprintf(path, sizeof path, "%s/.sbx/proxy/80.sock", a.home);
    (void)snprintf(other, sizeof other, "%s/.sbx/proxy/80.sock", b.home);
    memset(&u, 0, sizeof u);
    u.sun_family = AF_UNIX;
    T_CHECK(chdir(a.home) == 0);
    (void)snprintf(u.sun_path, sizeof u.sun_path, ".sbx/proxy/80.sock");
    at = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_CHECK(bind(at, (struct sockaddr *)&u, sizeof u) == 0 &&
            listen(at, 4) == 0);
    T_CHECK(chdir(tt_dir) == 0 && chdir("work") == 0);
    ask(&r, &a, "GET", "/proxy/81/", NULL);
    TS_IS(&r, 502, NULL);
    T_CHECK(symlink(path, other) == 0);
    ask(&r, &b, "GET", "/proxy/80/", NULL);
    TS_IS(&r, 502, NULL);
    (void)snprintf(target, sizeof target, "/v1/sandboxes/%s/proxy/80/x?y",
                   a.id);
    (void)snprintf(fields, sizeof fields, "X-Sandbox-Token: %s\r\n", a.token);
    c = ts_connect(&srv);
    ts_ask(&c, "GET", target, fields, nothing);
    fd = accept(at, NULL, NULL);
    memset(bytes, 0, sizeof bytes);
    T_CHECK(recv(fd, bytes, sizeof bytes - 1, 0) > 0);
    T_CHECK(strstr(bytes, "GET /x?y HTTP/1.1\r\n") == bytes &&
            !strstr(bytes, a.token));
    (void)!send(fd, "HTTP/1.0 200 OK\r\n\r\nfine", 23, MSG_NOSIGNAL);
    close(fd);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "fine");
    ts_hang_up(&c);
    close(at);
    ts_drop(&r);
    finish();
}

static void invalid_settings_are_refused(void) {
    static const char *const bad[] = {
        "SBX_CAPACITY=0",         "SBX_CAPACITY=x",
        "SBX_CAPACITY=100001",    "SBX_IDLE_TIMEOUT=soon",
        "SBX_IDLE_TIMEOUT=-1",    "SBX_PORT=abc",
        "SBX_PORT=65536",         "SBX_PORT=80 ",
        "SBX_HOST_MODE=yes",      "SBX_COMPAT_HOST_TOKEN=true",
        "SBX_ALLOW_UNCONFINED=2", "HFSB_SANDBOX_UIDS=no"};
    size_t i;
    for (i = 0; i < 2 * TT_COUNT(bad); i++) {
        const char       *list[3], *one = bad[i / 2];
        hfsb_dialect_opts o = HFSB_INIT;
        hfsb_err          err = HFSB_INIT;
        list[0] = one;
        list[1] = i % 2 ? "SBX_HOST_MODE=1" : NULL;
        list[2] = NULL;
        ts_open(&srv, NULL);
        T_CHECK(hfsb_server_add_sandbox(srv.server, NULL, NULL) == HFSB_OK);
        o.name = "hf";
        o.settings = list;
        T_CHECK(hfsb_server_add_dialect(srv.server, &o, NULL, &err) ==
                HFSB_ARG);
        T_CHECK(strncmp(err.msg, one, strcspn(one, "=")) == 0);
        hfsb_server_close(srv.server);
    }
}

/* ---- idle servers ---- */

static void a_server_stops_when_nobody_uses_it(void) {
    static const char *const settings[] = {"SBX_IDLE_TIMEOUT=2", NULL};
    hf_run    x = HFSB_INIT;
    ts_reply  r = HFSB_INIT;
    long long began;
    start_with(settings, NULL);
    run(&x, "{\"cmd\":\"sleep 2.5; echo done\"}"); /* longer than that */
    T_STR(hfsb_buf_str(&x.out), "done\n");
    call(&r, "POST", "/v1/processes", "{\"cmd\":\"sleep 2\"}");
    TS_IS(&r, 200, NULL);
    began = hfsb_clock_ms();
    pthread_join(srv.thread, NULL);
    T_CHECK(hfsb_clock_ms() - began > 3500 &&
            hfsb_clock_ms() - began < 30000);
    srv.started = false;
    finish();
    drop_run(&x);
    ts_drop(&r);
}

static void an_empty_host_stops(void) {
    static const char *const settings[] = {
        "SBX_IDLE_TIMEOUT=2", "SBX_HOST_MODE=1", "SBX_ALLOW_UNCONFINED=1",
        NULL};
    ts_reply  r = HFSB_INIT;
    long long began;
    box       a;
    start_with(settings, NULL);
    make(&a, NULL);
    tt_sleep_ms(2500);
    ask(&r, &a, "GET", "/processes", NULL); /* a sandbox keeps it alive */
    TS_IS(&r, 200, NULL);
    ask(&r, &a, "DELETE", "", NULL);
    TS_IS(&r, 200, NULL);
    began = hfsb_clock_ms();
    pthread_join(srv.thread, NULL);
    T_CHECK(hfsb_clock_ms() - began < 30000);
    srv.started = false;
    finish();
    ts_drop(&r);
}

/* ---- memory ---- */

#define ASK(line) line " HTTP/1.1\r\nHost: x\r\n" HF_TOKEN
#define NONE "Content-Length: 0\r\n\r\n"

/* A conversation with every route of a sandbox; the last request ends it. */
static const char talk[] =
    ASK("GET /health") "\r\n"
    ASK("PUT /v1/files/write?path=d/f&mode=600") "Content-Length: 3\r\n\r\nabc"
    ASK("PUT /v1/files/write?path=d/f&offset=3") "Content-Length: 3\r\n\r\ndef"
    ASK("GET /v1/files/read?path=d/f&offset=1") "\r\n"
    ASK("GET /v1/files/stat?path=d/f") "\r\n"
    ASK("GET /v1/files/list?path=d&limit=1") "\r\n"
    ASK("POST /v1/files/mkdir?path=d/e") NONE
    ASK("POST /v1/processes") "Content-Length: 24\r\n\r\n"
    "{\"cmd\":\"true\",\"tag\":\"t\"}"
    ASK("GET /v1/processes") "\r\n"
    ASK("DELETE /v1/processes/p-0") "\r\n"
    ASK("GET /v1/proxy/1/x") "\r\n"
    ASK("DELETE /v1/files/delete?path=d&recursive=1") "\r\n"
    ASK("GET /none") "\r\n"
    ASK("POST /v1/exec") "Connection: close\r\nContent-Length: 37\r\n\r\n"
    "{\"cmd\":\"echo $A\",\"env\":{\"A\":\"hello\"}}";

/* The same in host mode. */
static const char host_talk[] =
    ASK("POST /v1/sandboxes") "Content-Length: 31\r\n\r\n"
    "{\"count\":2,\"env\":{\"A\":\"hello\"}}"
    ASK("GET /v1/sandboxes") "\r\n"
    ASK("GET /v1/sandboxes/x/processes") "\r\n"
    ASK("DELETE /v1/sandboxes") "Connection: close\r\n\r\n";

/* Client and server take turns in one thread. */
static void talks(hfsb_server *server, unsigned port, const char *text,
                  hfsb_buf *all) {
    ts_server at = HFSB_INIT;
    ts_conn   c;
    long long end = hfsb_clock_ms() + 20000;
    at.port = port;
    c = ts_connect(&at);
    (void)ts_send(&c, hfsb_cstr(text));
    while (!c.ended && hfsb_clock_ms() < end) {
        (void)hfsb_server_poll(server, 5);
        (void)ts_more(&c, 0);
    }
    T_CHECK(c.ended);
    T_CHECK(hfsb_buf_append(all, hfsb_buf_str(&c.in)) == HFSB_OK);
    ts_hang_up(&c);
    (void)hfsb_server_poll(server, 0);
}

static hfsb_server *open_in(hfsb_alloc alloc, bool host, unsigned *port) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts sandbox = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    hfsb_server             *server = NULL;
    hfsb_status              st;
    o.token = HFSB_LIT(TS_TOKEN);
    o.alloc = tools.alloc = alloc;
    o.no_threads = true;
    tools.no_checks = true;
    sandbox.tools = &tools;
    d.name = "hf";
    d.own_port = true;
    if (host) d.settings = host_mode;
    st = hfsb_server_open(&o, &server, NULL);
    if (st == HFSB_OK) st = hfsb_server_add_sandbox(server, &sandbox, NULL);
    if (st == HFSB_OK) st = hfsb_server_add_dialect(server, &d, port, NULL);
    if (st == HFSB_OK) return server;
    T_CHECK(st == HFSB_NOMEM);
    hfsb_server_close(server);
    return NULL;
}

static void fail_each(bool host, const char *const *want) {
    const char  *text = host ? host_talk : talk;
    t_heap       heap = HFSB_INIT;
    hfsb_alloc   alloc;
    hfsb_buf     all = HFSB_INIT;
    hfsb_server *server;
    size_t       k, total, opened, step = t_quick() ? 11 : 2;
    unsigned     port = 0;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    server = open_in(alloc, host, &port);
    opened = heap.calls;
    talks(server, port, text, &all);
    for (; *want; want++) T_CHECK(strstr(all.ptr, *want) != NULL);
    total = heap.calls;
    hfsb_server_close(server);
    T_CHECK(heap.live == 0 && !heap.wrong);
    for (k = 1; k <= total + step; k += step) {
        memset(&heap, 0, sizeof heap);
        heap.fail_at = k;
        server = open_in(alloc, host, &port);
        T_CHECK(server != NULL || k <= opened);
        hfsb_buf_truncate(&all, 0);
        if (server) talks(server, port, text, &all);
        hfsb_server_close(server);
        T_CHECK(heap.live == 0 && !heap.wrong);
        T_CHECK(!host || tt_entries("sbx/homes", "") == 0);
        (void)tt_remove_all("d", NULL);
    }
    printf("%zu allocations, %zu of them by the conversation\n", total,
           total - opened);
    hfsb_buf_free(&all);
}

static void failing_allocations_are_survived(void) {
    static const char *const want[] = {"\"data\":\"hello\\n\"", "bcdef",
                                       "\"p-0\"", NULL};
    static const char *const want_host[] = {
        "\"rejected\":0", "\"created_at_ms\"", "{\"deleted\":2}", NULL};
    fail_each(false, want);
    fail_each(true, want_host);
}

int main(void) {
    tt_begin();
    TT_RUN(sandboxes_are_made_listed_and_removed);
    TT_RUN(tokens_open_one_sandbox);
    TT_RUN(a_busy_sandbox_hinders_no_other);
    TT_RUN(old_clients_may_use_the_servers_token);
    TT_RUN(a_sandbox_has_its_own_environment);
    TT_RUN(paths_begin_at_the_home);
    TT_RUN(commands_are_kept_apart);
    TT_RUN(removing_a_sandbox_ends_its_processes);
    TT_RUN(each_sandbox_is_a_user);
    TT_RUN(file_routes_have_the_rights_of_the_user);
    TT_RUN(uids_can_be_switched_off);
    TT_RUN(idle_sandboxes_are_removed);
    TT_RUN(ports_are_sockets_in_the_home);
    TT_RUN(invalid_settings_are_refused);
    TT_RUN(a_server_stops_when_nobody_uses_it);
    TT_RUN(an_empty_host_stops);
    TT_RUN(failing_allocations_are_survived);
    return TT_END();
}
