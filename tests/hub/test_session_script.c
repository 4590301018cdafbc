/* test_session_script.c - what a job is given for a script: files byte for
   byte, from this machine, a sandbox, and one that runs the server of the
   reference. */
#include "../support/t_calls.h"
#include "../support/t_session_hub.h"

/* ---- three places for a script ---- */

typedef enum place { ON_THIS_MACHINE, IN_A_SANDBOX, ON_THE_REFERENCE } place;

static struct {
    place         where;
    sh_world      world;
    ts_server     server;
    tc_proxy      proxy;
    hfsb_session *session;
    char          url[64];
} here;

/* The files are in the current directory in all three. */
static void begin(place where) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    char                     dir[80];
    here.where = where;
    if (where == ON_THIS_MACHINE) {
        here.session = sn_open_local();
        return;
    }
    snprintf(dir, sizeof dir, "%s/work", tt_dir);
    tools.work_dir = hfsb_cstr(dir);
    tools.alloc = tt_alloc();
    box.tools = &tools;
    ts_start(&here.server, NULL, &box);
    tc_proxy_open(&here.proxy, here.server.port);
    here.proxy.foreign = where == ON_THE_REFERENCE;
    snprintf(here.url, sizeof here.url, "http://127.0.0.1:%u",
             here.proxy.port);
    sh_begin(&here.world, NULL);
    here.world.sandbox.space_url = hfsb_cstr(here.url);
    here.world.sandbox.api_token = HFSB_LIT(TS_TOKEN);
    here.world.sandbox.work_dir = hfsb_cstr(dir);
    here.world.sandbox.times.delay_ms = 1;
    here.world.opts.alloc = tt_alloc();
    sh_open(&here.world);
    here.session = here.world.session;
}

static void end(void) {
    if (here.where == ON_THIS_MACHINE) {
        sn_close(here.session);
        return;
    }
    sh_close(&here.world);
    sh_end(&here.world);
    tc_proxy_close(&here.proxy);
    ts_end(&here.server, true);
}

/* ---- files ---- */

static void script_is(const char *name, hfsb_str path, hfsb_str want) {
    hfsb_buf         out = HFSB_INIT;
    hfsb_script_kind kind = HFSB_SCRIPT_PATH;
    hfsb_err         err = HFSB_INIT;
    hfsb_status st = hfsb_session_script(here.session, path, &kind, NULL, &out,
                                         &err);
    bool        ok = st == HFSB_OK && kind == HFSB_SCRIPT_INLINE &&
              hfsb_str_equal(hfsb_buf_str(&out), want);
    if (!ok) printf("  %s: %d, %zu bytes: %s\n", name, st, out.len, err.msg);
    T_CHECK(ok);
    hfsb_buf_free(&out);
}

static void files_come_byte_for_byte(void) {
    static const struct {
        const char *name;
        hfsb_str    content;
    } table[] = {
#define BYTES(s) {"" s "", sizeof(s) - 1}
        {"plain", BYTES("print(1)\n")},
        {"tabs", BYTES("if x:\n\tprint(1)\t\n\t\n")},
        {"CRLF", BYTES("a = 1\r\nb = 2\r\n")},
        {"both ends of lines", BYTES("a\r\nb\nc\rd\r\n\r\r\n")},
        {"no newline at the end", BYTES("a\nb")},
        {"newlines at the end", BYTES("a\n\n\n")},
        {"empty", BYTES("")},
        {"only a newline", BYTES("\n")},
        {"blanks around", BYTES("  \n a  ")},
        {"byte order mark", BYTES("\xEF\xBB\xBFx = 1\n")},
        {"not UTF-8", BYTES("caf\xE9 \xFF\xFE\n")},
        {"NUL", BYTES("a\0b\n\0")},
        {"escapes", BYTES("\033[31mred\033[0m \b\b \a\f\v\n")},
        {"looks like a URL", BYTES("https://example.com/x.py\n")},
        {"looks like a path", BYTES("/etc/hosts")},
        {"quotes", BYTES("print('a', \"b\", `c`, $d, \\e)\n")},
#undef BYTES
    };
    size_t i;
    for (i = 0; i < TT_COUNT(table); i++) {
        char path[200];
        tt_put("script.py", table[i].content);
        script_is(table[i].name, HFSB_LIT("script.py"), table[i].content);
        script_is(table[i].name, HFSB_LIT("./script.py"), table[i].content);
        snprintf(path, sizeof path, "%s/work/script.py", tt_dir);
        script_is(table[i].name, hfsb_cstr(path), table[i].content);
    }
    unlink("script.py");
}

static void file_names_need_no_suffix_and_may_be_odd(void) {
    static const char *const names[] = {"./it's a file", "./-n", "./$HOME",
                                        "./a;b", "./\xC3\xA9t\xC3\xA9",
                                        "./a\"b", "./a%20b+c?d#e"};
    size_t                   i;
    for (i = 0; i < TT_COUNT(names); i++) {
        tt_put(names[i], HFSB_LIT("x\n"));
        script_is(names[i], hfsb_cstr(names[i]), HFSB_LIT("x\n"));
        unlink(names[i]);
    }
}

/* Up to 90,000 bytes, and what is larger is refused whatever its size. */
static void files_have_a_limit(void) {
    static const size_t sizes[] = {17999, 18000, 18001, 36000, 89999, 90000,
                                   90001, 5000000};
    hfsb_buf            text = HFSB_INIT;
    size_t              i;
    while (text.len < sizes[TT_COUNT(sizes) - 1])
        if (hfsb_buf_printf(&text, "line\t%zu\r\n", text.len) != HFSB_OK)
            abort();
    for (i = 0; i < TT_COUNT(sizes); i++) {
        hfsb_str         all = hfsb_buf_str(&text);
        hfsb_str         part = hfsb_str_slice(all, 0, sizes[i]);
        hfsb_buf         out = HFSB_INIT;
        hfsb_script_kind kind;
        hfsb_err         err;
        tt_put("long.py", part);
        if (sizes[i] <= 90000) {
            script_is("long", HFSB_LIT("long.py"), part);
            continue;
        }
        T_CHECK(hfsb_session_script(here.session, HFSB_LIT("long.py"), &kind,
                                    NULL, &out, &err) == HFSB_LIMIT);
        T_CHECK(out.len == 0 && strstr(err.msg, "longer than 90 kB"));
        T_CHECK(strstr(err.msg, "URL") != NULL);
        hfsb_buf_free(&out);
    }
    unlink("long.py");
    hfsb_buf_free(&text);
}

static void a_file_that_cannot_be_read_is_an_error(void) {
    static const struct {
        const char *path;
        hfsb_status st;
        const char *says;
    } table[] = {
        {"missing.py", HFSB_NOT_FOUND, "File not found: "},
        {"./missing", HFSB_NOT_FOUND, "File not found: "},
        {"/no/such/dir/x.py", HFSB_NOT_FOUND, "File not found: "},
        {"./dir", HFSB_IS_DIR, "Is a directory: "},
    };
    size_t i;
    if (mkdir("dir", 0755)) abort();
    for (i = 0; i < TT_COUNT(table); i++) {
        hfsb_buf         out = HFSB_INIT;
        hfsb_script_kind kind;
        hfsb_err         err = HFSB_INIT;
        hfsb_status      st;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("kept")) == HFSB_OK);
        st = hfsb_session_script(here.session, hfsb_cstr(table[i].path), &kind,
                                 NULL, &out, &err);
        if (st != table[i].st) printf("  %s: %s\n", table[i].path, err.msg);
        /* HTTP has one status for all files that cannot be sent */
        T_CHECK(st == (table[i].st == HFSB_IS_DIR &&
                               here.where != ON_THIS_MACHINE
                           ? HFSB_REFUSED
                           : table[i].st) &&
                err.code == st);
        T_CHECK(kind == HFSB_SCRIPT_PATH);
        T_STR(out, "kept");
        T_CHECK(strstr(err.msg, table[i].says) != NULL);
        T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg), HFSB_LIT("The script ")));
        T_CHECK((strstr(err.msg, "from the sandbox") != NULL) ==
                (here.where != ON_THIS_MACHINE));
        hfsb_buf_free(&out);
    }
    rmdir("dir");
}

static void in_place(place where) {
    begin(where);
    files_come_byte_for_byte();
    file_names_need_no_suffix_and_may_be_odd();
    files_have_a_limit();
    a_file_that_cannot_be_read_is_an_error();
    end();
}

static void scripts_of_this_machine(void) {
    in_place(ON_THIS_MACHINE);
}
static void scripts_of_a_sandbox(void) {
    in_place(IN_A_SANDBOX);
}
static void scripts_of_a_sandbox_with_the_reference_server(void) {
    in_place(ON_THE_REFERENCE);
}

/* ---- what is no file ---- */

static void other_scripts_are_passed_through(void) {
    static const struct {
        const char      *script;
        hfsb_script_kind kind;
    } table[] = {
        {"https://example.com/train.py", HFSB_SCRIPT_URL},
        {"HTTP://example.com/train.py", HFSB_SCRIPT_URL},
        {"print(1)\nprint(2)\n", HFSB_SCRIPT_INLINE},
        {"/a/path.py\n", HFSB_SCRIPT_INLINE},
        {"a.py\rb.py", HFSB_SCRIPT_INLINE},
        {"x = 1", HFSB_SCRIPT_INLINE},
        {"import os", HFSB_SCRIPT_INLINE},
        {"python train.py", HFSB_SCRIPT_COMMAND},
        {" train.py", HFSB_SCRIPT_COMMAND},
        {"train.py ", HFSB_SCRIPT_COMMAND},
        {"/bin/x ", HFSB_SCRIPT_COMMAND},
        {"train", HFSB_SCRIPT_COMMAND},
        {"~/train", HFSB_SCRIPT_COMMAND},
        {"", HFSB_SCRIPT_COMMAND},
    };
    hfsb_session *s = sn_open_local();
    size_t        i;
    for (i = 0; i < TT_COUNT(table); i++) {
        hfsb_str script = t_exact(table[i].script, strlen(table[i].script));
        hfsb_buf         out = HFSB_INIT;
        hfsb_script_kind kind = HFSB_SCRIPT_PATH;
        T_CHECK(hfsb_session_script(s, script, &kind, NULL, &out, NULL) ==
                HFSB_OK);
        if (kind != table[i].kind) printf("  \"%s\"\n", table[i].script);
        T_CHECK(kind == table[i].kind);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), script));
        hfsb_buf_free(&out);
        t_drop(script);
    }
    sn_close(s);
}

static void inline_scripts_have_the_same_limit(void) {
    hfsb_session    *s = sn_open_local();
    hfsb_buf         text = HFSB_INIT, out = HFSB_INIT;
    hfsb_script_kind kind;
    hfsb_err         err;
    t_repeat(&text, "print(1)\n", 10000);
    T_CHECK(hfsb_session_script(s, hfsb_buf_str(&text), &kind, NULL, &out,
                                &err) == HFSB_OK);
    T_CHECK(kind == HFSB_SCRIPT_INLINE && out.len == 90000);
    hfsb_buf_truncate(&out, 0);
    t_repeat(&text, "#", 1);
    T_CHECK(hfsb_session_script(s, hfsb_buf_str(&text), &kind, NULL, &out,
                                &err) == HFSB_LIMIT);
    T_CHECK(out.len == 0 && strstr(err.msg, "upload it") != NULL);
    hfsb_buf_free(&out);
    hfsb_buf_free(&text);
    sn_close(s);
}

/* Only a path needs the sandbox; without one it is an error. */
static void only_files_need_the_sandbox(void) {
    fh_fault_spec    fault = HFSB_INIT;
    sh_world         w;
    hfsb_buf         out = HFSB_INIT;
    hfsb_script_kind kind;
    hfsb_err         err;
    sh_begin(&w, NULL);
    fault.path = DUPLICATE;
    fault.status = 403;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    w.opts.no_preload = true;
    sh_open(&w);
    T_CHECK(hfsb_session_script(w.session, HFSB_LIT("https://x/y.py"), &kind,
                                NULL, &out, &err) == HFSB_OK);
    T_CHECK(hfsb_session_script(w.session, HFSB_LIT("x = 1\n"), &kind, NULL,
                                &out, &err) == HFSB_OK);
    T_CHECK(fh_count(w.fh, NULL, NULL) == 0);
    T_CHECK(hfsb_session_script(w.session, HFSB_LIT("train.py"), &kind, NULL,
                                &out, &err) == HFSB_DENIED);
    T_CHECK(strstr(err.msg, "There is no sandbox") != NULL);
    T_STR(out, "https://x/y.pyx = 1\n");
    hfsb_buf_free(&out);
    sh_close(&w);
    sh_end(&w);
}

/* ---- memory ---- */

static void resolve(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_session     *s = NULL;
    hfsb_buf          out = HFSB_INIT;
    hfsb_script_kind  kind;
    hfsb_err          err;
    hfsb_status       st;
    bool              sound = heap->fail_at == 0;
    opts.alloc = out.alloc = alloc;
    opts.model_local = true;
    if (hfsb_session_open(&opts, &s, &err) != HFSB_OK) return;
    st = hfsb_session_script(s, HFSB_LIT("memory.py"), &kind, NULL, &out,
                             &err);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM && !out.len));
    if (st == HFSB_OK) T_STR(out, "x\n");
    hfsb_buf_free(&out);
    st = hfsb_session_script(s, HFSB_LIT("x = 1"), &kind, NULL, &out, &err);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM && !out.len));
    hfsb_buf_free(&out);
    T_CHECK(hfsb_session_close(s, &err) == HFSB_OK);
}

static void script_reports_each_failed_allocation(void) {
    tt_put("memory.py", HFSB_LIT("x\n"));
    t_each_allocation_fails(resolve);
    unlink("memory.py");
}

int main(void) {
    tt_begin();
    TT_RUN(scripts_of_this_machine);
    TT_RUN(scripts_of_a_sandbox);
    TT_RUN(scripts_of_a_sandbox_with_the_reference_server);
    TT_RUN(other_scripts_are_passed_through);
    TT_RUN(inline_scripts_have_the_same_limit);
    TT_RUN(only_files_need_the_sandbox);
    TT_RUN(script_reports_each_failed_allocation);
    return TT_END();
}
