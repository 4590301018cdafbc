/* test_failed_open.c - what a failed open leaves: NULL, which every close
   takes, so that a program may clean up in one place. */
#include "../support/t_file.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#endif

static hfsb_err err;

/* No memory at all. */
static void *nothing_left(void *user, void *ptr, size_t old_size,
                          size_t new_size) {
    (void)user;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

static hfsb_alloc poor(void) {
    hfsb_alloc alloc = HFSB_INIT;
    alloc.fn = nothing_left;
    return alloc;
}

#define FAILS(type, call)                                        \
    do {                                                         \
        char  other;                                             \
        type *out = (type *)(void *)&other; /* left by nobody */ \
        err.msg[0] = '\0';                                       \
        T_CHECK((call) != HFSB_OK && !out && err.msg[0]);        \
    } while (0)

static void failed_opens_give_null(void) {
    hfsb_alloc           none = poor();
    hfsb_root_opts       root = HFSB_INIT;
    hfsb_tools_opts      tools = HFSB_INIT;
    hfsb_proc_opts       proc = HFSB_INIT;
    hfsb_journal_opts    journal = HFSB_INIT;
    hfsb_file_write_opts create = HFSB_INIT;
    hfsb_sandbox_opts    sandbox = HFSB_INIT;
    hfsb_session_opts    session = HFSB_INIT;
    hfsb_hub_opts        hub = HFSB_INIT;
    hfsb_transport       transport = HFSB_INIT;
    FAILS(hfsb_cancel, hfsb_cancel_open(&none, &out, &err));
    FAILS(hfsb_regex, hfsb_regex_open(HFSB_LIT("("), NULL, &out, &err));
    FAILS(hfsb_glob, hfsb_glob_open(HFSB_LIT("*"), &none, &out, &err));
    root.root = HFSB_LIT("no/such/folder");
    FAILS(hfsb_root, hfsb_root_open(&root, &out, &err));
    tools.root = root.root;
    FAILS(hfsb_tools, hfsb_tools_open(&tools, &out, &err));
    session.tools = &tools;
    session.model_local = true;
    FAILS(hfsb_session, hfsb_session_open(&session, &out, &err));
    session.model_local = false; /* a token is missing */
    FAILS(hfsb_session, hfsb_session_open(&session, &out, &err));
    proc.command = HFSB_LIT("true");
    proc.work_dir = "no/such/folder";
    FAILS(hfsb_proc, hfsb_proc_open(&proc, &out, &err));
    journal.path = "no/such/folder/file";
    FAILS(hfsb_journal, hfsb_journal_open(&journal, &out, &err));
    create.create = true;
    FAILS(hfsb_file_writer, hfsb_file_writer_open(NULL, HFSB_LIT("."), &create,
                                                  &out, &err));
    FAILS(hfsb_hub, hfsb_hub_open(&hub, &out, &err)); /* no transport */
    FAILS(hfsb_sandbox, hfsb_sandbox_connect_url(HFSB_LIT("http://127.0.0.1"),
                                                 &sandbox, &out, &err));
    sandbox.transport = &transport;
    FAILS(hfsb_sandbox,
          hfsb_sandbox_connect_url(HFSB_LIT("nonsense"), &sandbox, &out, &err));
    sandbox.protocol = hfsb_protocol_v1();
    FAILS(hfsb_sandbox,
          hfsb_sandbox_connect_url(HFSB_LIT("nonsense"), &sandbox, &out, &err));
}

static void closes_take_null(void) {
    hfsb_transport   transport = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_edit_result edit = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_buf         buf = HFSB_INIT;
    hfsb_cancel_close(NULL);
    hfsb_regex_close(NULL);
    hfsb_glob_close(NULL);
    hfsb_root_close(NULL);
    hfsb_tools_close(NULL);
    hfsb_call_close(NULL);
    hfsb_proc_close(NULL);
    hfsb_journal_close(NULL);
    hfsb_file_writer_close(NULL);
    hfsb_text_filter_close(NULL);
    hfsb_text_window_close(NULL);
    hfsb_hub_close(NULL);
    T_CHECK(hfsb_session_close(NULL, NULL) == HFSB_OK);
    T_CHECK(hfsb_sandbox_close(NULL, true, NULL) == HFSB_OK);
    hfsb_transport_close(&transport);
    hfsb_tool_result_free(&result);
    hfsb_edit_result_free(&edit);
    hfsb_json_free(&doc);
    hfsb_buf_free(&buf);
}

int main(void) {
    t_begin_files();
    T_RUN(failed_opens_give_null);
    T_RUN(closes_take_null);
    return t_end_files(__FILE__);
}
