/* test_edit_file.c - hfsb_edit_file(): read, edit and write in one call; and
   what a host's own loop needs. */
#include "../support/t_file.h"

static hfsb_err err;

static hfsb_edit change(const char *old_str, const char *new_str) {
    hfsb_edit edit = HFSB_INIT;
    edit.old_str = hfsb_cstr(old_str);
    edit.new_str = hfsb_cstr(new_str);
    return edit;
}

static void a_file_is_edited_in_one_call(void) {
    hfsb_edit        edit = change("    two", "    2");
    hfsb_edit_result r;
    t_put("a.py", "one\n\ttwo\nthree\n");
    T_CHECK(chmod("a.py", 0750) == 0);
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("a.py"), &edit, 1, NULL, &r, &err) ==
            HFSB_OK);
    T_FILE("a.py", "one\n\t2\nthree\n");
    T_CHECK(t_mode("a.py") == 0750);
    T_CHECK(r.count == 1 && r.note[0]);
    T_CHECK(strstr(hfsb_buf_cstr(&r.diff), "--- a/a.py\n") != NULL);
    T_CHECK(strstr(hfsb_buf_cstr(&r.diff), "-\ttwo\n+\t2\n") != NULL);
    hfsb_edit_result_free(&r);
    edit = change("2", "two");
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("a.py"), &edit, 1, NULL, NULL,
                           NULL) == HFSB_OK);
    T_FILE("a.py", "one\n\ttwo\nthree\n");
    T_CLEAN(".");
}

static void a_refused_edit_changes_nothing(void) {
    hfsb_edit        edits[2];
    hfsb_edit_result r;
    edits[0] = change("one", "1");
    edits[1] = change("four", "4");
    t_put("b", "one\ntwo\n");
    memset(&r, 'x', sizeof r);
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("b"), edits, 2, NULL, &r, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(err.msg[0] && !r.count && !r.diff.ptr && !r.spans);
    T_FILE("b", "one\ntwo\n");
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("none"), edits, 1, NULL, &r, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(strcmp(err.msg, "File not found: none") == 0);
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("."), edits, 1, NULL, NULL, &err) ==
            HFSB_IS_DIR);
    T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("b"), edits, 0, NULL, NULL, &err) ==
            HFSB_ARG);
}

static void edits_stay_beneath_the_root(void) {
    hfsb_root_opts opts = HFSB_INIT;
    hfsb_root     *root;
    hfsb_edit      edit = change("one", "1");
    T_CHECK(mkdir("in", 0755) == 0);
    t_put("in/c", "one\n");
    opts.root = HFSB_LIT("in");
    T_CHECK(hfsb_root_open(&opts, &root, &err) == HFSB_OK);
    T_CHECK(hfsb_edit_file(root, HFSB_LIT("c"), &edit, 1, NULL, NULL, &err) ==
            HFSB_OK);
    T_FILE("in/c", "1\n");
    T_CHECK(hfsb_edit_file(root, HFSB_LIT("../b"), &edit, 1, NULL, NULL,
                           &err) == HFSB_OUTSIDE);
    T_FILE("b", "one\ntwo\n");
    hfsb_root_close(root);
}

enum { WRITERS = 4, EDITS = 25 };

static void *edit_often(void *user) {
    int i, n = *(int *)user;
    for (i = 0; i < EDITS; i++) {
        char      from[16], to[16];
        hfsb_edit edit;
        snprintf(from, sizeof from, "n%d=%d.", n, i);
        snprintf(to, sizeof to, "n%d=%d.", n, i + 1);
        edit = change(from, to);
        T_CHECK(hfsb_edit_file(NULL, HFSB_LIT("shared"), &edit, 1, NULL, NULL,
                               NULL) == HFSB_OK);
    }
    return NULL;
}

static void parallel_edits_are_all_made(void) {
    pthread_t threads[WRITERS];
    int       n[WRITERS], i;
    t_put("shared", "n0=0.\nn1=0.\nn2=0.\nn3=0.\n");
    for (i = 0; i < WRITERS; i++) {
        n[i] = i;
        if (pthread_create(&threads[i], NULL, edit_often, &n[i])) abort();
    }
    for (i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
    T_FILE("shared", "n0=25.\nn1=25.\nn2=25.\nn3=25.\n");
}

static void edit_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_root_opts   opts = HFSB_INIT;
    hfsb_root       *root;
    hfsb_edit        edit = change("one", "1");
    hfsb_edit_result r = HFSB_INIT;
    hfsb_status      st;
    opts.alloc = alloc;
    t_put("d", "one\n");
    st = hfsb_root_open(&opts, &root, &err);
    if (st == HFSB_OK) {
        st = hfsb_edit_file(root, HFSB_LIT("d"), &edit, 1, NULL, &r, &err);
        hfsb_edit_result_free(&r);
        hfsb_root_close(root);
    }
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    T_FILE("d", st == HFSB_OK ? "1\n" : "one\n");
}

static void an_edit_without_memory_changes_nothing(void) {
    t_each_allocation_fails(edit_without_memory);
}

/* ---- a loop of the host's own ---- */

static void watches_become_entries_of_poll(void) {
    const hfsb_watch list[3] = {{3, true, false}, {4, false, true},
                                {5, true, true}};
    struct pollfd    fds[3];
    memset(fds, 'x', sizeof fds);
    hfsb_poll_fill(list, 3, fds);
    T_CHECK(fds[0].fd == 3 && fds[0].events == POLLIN && !fds[0].revents);
    T_CHECK(fds[1].fd == 4 && fds[1].events == POLLOUT && !fds[1].revents);
    T_CHECK(fds[2].fd == 5 && fds[2].events == (POLLIN | POLLOUT));
}

static void deadlines_become_timeouts_of_poll(void) {
    int ms;
    T_CHECK(hfsb_wait_ms(-1) == -1);
    T_CHECK(hfsb_wait_ms(0) == 0);
    T_CHECK(hfsb_wait_ms(hfsb_clock_ms() - 5) == 0);
    T_CHECK(hfsb_wait_ms(LLONG_MAX) == INT_MAX);
    ms = hfsb_wait_ms(hfsb_clock_ms() + 100000);
    T_CHECK(ms > 50000 && ms <= 100000);
}

int main(void) {
    int fds = t_descriptors();
    t_begin_files();
    T_RUN(a_file_is_edited_in_one_call);
    T_RUN(a_refused_edit_changes_nothing);
    T_RUN(edits_stay_beneath_the_root);
    T_RUN(parallel_edits_are_all_made);
    T_RUN(an_edit_without_memory_changes_nothing);
    T_RUN(watches_become_entries_of_poll);
    T_RUN(deadlines_become_timeouts_of_poll);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
