/* test_file_range.c - parts of files are read and written

   in/     the root                    out/     must stay as it is */
#include "../support/t_file.h"

static hfsb_err   err;
static hfsb_root *in;

static hfsb_root *open_root(const hfsb_alloc *alloc) {
    static const char *const deny = "denied";
    hfsb_root_opts           opts;
    hfsb_root               *root = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("in");
    opts.deny = &deny;
    opts.deny_count = 1;
    if (alloc) opts.alloc = *alloc;
    (void)hfsb_root_open(&opts, &root, &err);
    return root;
}

static void begin(void) {
    t_remove_tree("in");
    t_remove_tree("out");
    T_CHECK(mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
    T_CHECK(mkdir("in/d", 0755) == 0);
    t_put("out/secret", "secret");
    t_put("in/f", "0123456789");
    T_CHECK(symlink("f", "in/link") == 0);
    T_CHECK(symlink("../out/secret", "in/olink") == 0);
    T_CHECK(mkfifo("in/fifo", 0600) == 0);
    in = open_root(NULL);
    if (!in) abort();
}

static void end(void) {
    T_FILE("out/secret", "secret");
    T_CHECK(t_entries("out", "") == 1);
    hfsb_root_close(in);
}

/* ---- reading ---- */

static void read_part(const char *path, unsigned long long at,
                      unsigned long long n, const char *want) {
    hfsbi_file_range range;
    hfsb_buf         all = HFSB_INIT;
    char             piece[3];
    size_t           got = 1;
    T_CHECK(hfsbi_file_range_open(in, hfsb_cstr(path), at, n, &range, &err) ==
            HFSB_OK);
    T_CHECK(range.length == strlen(want));
    while (got) {
        T_CHECK(hfsbi_file_range_read(&range, piece, sizeof piece, &got,
                                      &err) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&all, hfsb_str_make(piece, got)) == HFSB_OK);
    }
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&all), hfsb_cstr(want)));
    hfsbi_file_range_close(&range);
    hfsb_buf_free(&all);
}

static void reads_are_cut_to_what_the_file_has(void) {
    hfsbi_file_range range;
    char             piece[16];
    size_t           got;
    begin();
    read_part("f", 0, 10, "0123456789");
    read_part("link", 3, 4, "3456");
    read_part("f", 8, ~0ull, "89");
    read_part("f", 10, 5, "");
    read_part("f", ~0ull, ~0ull, "");
    t_put("in/empty", "");
    read_part("empty", 0, 5, "");
    T_CHECK(hfsbi_file_range_open(in, HFSB_LIT("f"), 5, 5, &range, &err) ==
            HFSB_OK);
    T_CHECK(truncate("in/f", 7) == 0); /* meanwhile */
    T_CHECK(hfsbi_file_range_read(&range, piece, 16, &got, &err) == HFSB_OK &&
            got == 2);
    T_CHECK(hfsbi_file_range_read(&range, piece, 16, &got, &err) == HFSB_OK &&
            got == 0);
    hfsbi_file_range_close(&range);
    end();
}

static void reads_refuse_what_is_no_file(void) {
    static const struct {
        const char *path;
        hfsb_status st;
    } cases[] = {{"fifo", HFSB_NOT_REGULAR}, {"d", HFSB_IS_DIR},
                 {"olink", HFSB_OUTSIDE},    {"none", HFSB_NOT_FOUND},
                 {"denied", HFSB_DENIED},    {"f/x", HFSB_NOT_FOUND}};
    hfsbi_file_range range;
    size_t           i;
    begin();
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        T_CHECK(hfsbi_file_range_open(in, hfsb_cstr(cases[i].path), 0, 9,
                                      &range, &err) == cases[i].st);
    end();
}

static void reads_work_in_proc(void) {
#ifdef __linux__
    hfsbi_file_range range, part;
    T_CHECK(hfsbi_file_range_open(NULL, HFSB_LIT("/proc/self/status"), 0,
                                  ~0ull, &range, &err) == HFSB_OK);
    T_CHECK(range.fd < 0 && range.length == range.content.len);
    T_CHECK(range.info.size == range.length && range.length > 100);
    T_CHECK(strncmp(range.content.ptr, "Name:", 5) == 0);
    T_CHECK(hfsbi_file_range_open(NULL, HFSB_LIT("/proc/self/status"), 1, 3,
                                  &part, &err) == HFSB_OK);
    T_STR(part.content, "ame");
    hfsbi_file_range_close(&range);
    hfsbi_file_range_close(&part);
#endif
}

/* ---- writing ---- */

static hfsb_status put(const char *path, unsigned long long at,
                       const char *text, hfsbi_range_opts *opts,
                       hfsb_file_written *written) {
    hfsbi_range_opts    none = HFSB_INIT;
    hfsbi_range_writer *w;
    hfsb_status         st;
    if (!opts) opts = &none;
    opts->offset = at;
    st = hfsbi_range_writer_open(in, hfsb_cstr(path), opts, &w, &err);
    if (st != HFSB_OK) return st;
    st = hfsbi_range_writer_append(w, hfsb_cstr(text), &err);
    if (st == HFSB_OK) st = hfsbi_range_writer_commit(w, written, &err);
    hfsbi_range_writer_close(w);
    return st;
}

static void writes_change_only_their_bytes(void) {
    hfsb_file_written written;
    hfsbi_range_opts  opts = HFSB_INIT;
    hfsb_buf          got = HFSB_INIT;
    begin();
    T_CHECK(chmod("in/f", 0640) == 0);
    T_CHECK(put("link", 3, "abc", NULL, &written) == HFSB_OK);
    T_FILE("in/f", "012abc6789");
    T_CHECK(written.bytes == 3 && !written.created && written.in_place);
    T_CHECK(written.info.size == 10 && t_mode("in/f") == 0640);
    T_CHECK(put("f", 8, "xyz", NULL, NULL) == HFSB_OK);
    T_FILE("in/f", "012abc67xyz");
    opts.truncate = true;
    opts.truncate_to = 5;
    opts.mode = 0600;
    T_CHECK(put("f", 0, "", &opts, NULL) == HFSB_OK);
    T_FILE("in/f", "012ab");
    T_CHECK(t_mode("in/f") == 0600);
    T_CHECK(put("new/a/b", 4, "tail", NULL, &written) == HFSB_OK);
    T_CHECK(written.created && t_read_file("in/new/a/b", &got));
    T_STR(got, "\0\0\0\0tail");
    T_CHECK(t_mode("in/new/a/b") == 0644);
    hfsb_buf_free(&got);
    end();
}

static void writes_refuse_what_is_no_file(void) {
    hfsbi_range_opts opts = HFSB_INIT;
    begin();
    T_CHECK(put("fifo", 0, "x", NULL, NULL) == HFSB_NOT_REGULAR);
    T_CHECK(put("d", 0, "x", NULL, NULL) == HFSB_IS_DIR);
    T_CHECK(put("olink", 0, "x", NULL, NULL) == HFSB_OUTSIDE);
    T_CHECK(put("../out/new", 0, "x", NULL, NULL) == HFSB_OUTSIDE);
    T_CHECK(put("denied", 0, "x", NULL, NULL) == HFSB_DENIED);
    T_CHECK(put("f", ~0ull, "x", NULL, NULL) == HFSB_FULL);
    T_CHECK(put("f", 0x7FFFFFFFFFFFFFFFull, "x", NULL, NULL) == HFSB_FULL);
    opts.no_parents = true;
    T_CHECK(put("n/f", 0, "x", &opts, NULL) == HFSB_NOT_FOUND);
    T_CHECK(!t_exists("in/n"));
    T_FILE("in/f", "0123456789");
    end();
}

static void a_writer_reports_that_its_file_was_replaced(void) {
    hfsbi_range_opts    opts = HFSB_INIT;
    hfsbi_range_writer *w;
    begin();
    T_CHECK(hfsbi_range_writer_open(in, HFSB_LIT("f"), &opts, &w, &err) ==
            HFSB_OK);
    T_CHECK(hfsbi_range_writer_append(w, HFSB_LIT("ab"), &err) == HFSB_OK);
    T_CHECK(hfsb_file_write(in, HFSB_LIT("f"), HFSB_LIT("whole"), NULL, NULL,
                            &err) == HFSB_OK);
    T_CHECK(hfsbi_range_writer_append(w, HFSB_LIT("cd"), &err) == HFSB_STALE);
    T_ERR(HFSB_STALE,
          "File was replaced while a part of it was written: f");
    T_CHECK(hfsbi_range_writer_commit(w, NULL, &err) == HFSB_STALE);
    hfsbi_range_writer_close(w);
    T_FILE("in/f", "whole");
    T_CHECK(hfsbi_range_writer_open(in, HFSB_LIT("f"), &opts, &w, &err) ==
            HFSB_OK);
    T_CHECK(unlink("in/f") == 0);
    T_CHECK(hfsbi_range_writer_commit(w, NULL, &err) == HFSB_STALE);
    hfsbi_range_writer_close(w);
    hfsbi_range_writer_close(NULL);
    end();
}

/* Writers of ranges share the lock; a whole-file writer waits for it, and they
   wait for a whole-file writer. */
static void writers_of_ranges_take_the_locks_shared(void) {
    int dir;
    begin();
    dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    T_CHECK(flock(dir, LOCK_SH) == 0);
    T_CHECK(put("f", 0, "a", NULL, NULL) == HFSB_OK);
    T_CHECK(flock(dir, LOCK_EX) == 0);
    T_CHECK(put("f", 0, "b", NULL, NULL) == HFSB_BUSY);
    close(dir);
    T_FILE("in/f", "a123456789");
    end();
}

static const char *size_limit(void) {
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = 100;
    (void)signal(SIGXFSZ, SIG_DFL);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit here";
    T_CHECK(put("f", 99, "ab", NULL, NULL) == HFSB_FULL);
    return NULL;
}

static void a_size_limit_is_an_error(void) {
    begin();
    t_in_child(size_limit);
    end();
}

/* ---- many at once ---- */

enum { PARTS = 64, PART = 3000 };

typedef struct part_job {
    hfsb_root *root;
    size_t     first, step; /* parts first, first + step, ... backwards */
    size_t     failed;
} part_job;

static char part_byte(size_t at) {
    return (char)('a' + at * 7 / 5 % 26);
}

static void *write_parts(void *user) {
    part_job *job = (part_job *)user;
    char      bytes[PART];
    size_t    i, k;
    for (i = job->first; i < PARTS; i += job->step) {
        size_t              part = PARTS - 1 - i;
        hfsbi_range_opts    opts = HFSB_INIT;
        hfsbi_range_writer *w;
        hfsb_err            mine;
        for (k = 0; k < PART; k++) bytes[k] = part_byte(part * PART + k);
        opts.offset = part * PART;
        opts.truncate = part == PARTS - 1; /* as clients do: with the last */
        opts.truncate_to = PARTS * PART;
        if (hfsbi_range_writer_open(job->root, HFSB_LIT("up/load/big"), &opts,
                                    &w, &mine) != HFSB_OK) {
            job->failed++;
            continue;
        }
        for (k = 0; k < PART; k += 700)
            if (hfsbi_range_writer_append(
                    w,
                    hfsb_str_make(bytes + k, PART - k < 700 ? PART - k : 700),
                    &mine) != HFSB_OK)
                job->failed++;
        if (hfsbi_range_writer_commit(w, NULL, &mine) != HFSB_OK)
            job->failed++;
        hfsbi_range_writer_close(w);
    }
    return NULL;
}

static void parts_in_any_order_from_many_threads_give_the_file(void) {
    pthread_t thread[8];
    part_job  job[8];
    hfsb_buf  got = HFSB_INIT;
    size_t    i, wrong = 0;
    begin();
    for (i = 0; i < 8; i++) {
        job[i].root = in;
        job[i].first = i;
        job[i].step = 8;
        job[i].failed = 0;
        T_CHECK(pthread_create(&thread[i], NULL, write_parts, &job[i]) == 0);
    }
    for (i = 0; i < 8; i++)
        T_CHECK(pthread_join(thread[i], NULL) == 0 && job[i].failed == 0);
    T_CHECK(t_read_file("in/up/load/big", &got));
    T_CHECK(got.len == PARTS * PART);
    for (i = 0; i < got.len; i++) wrong += got.ptr[i] != part_byte(i);
    T_CHECK(wrong == 0);
    hfsb_buf_free(&got);
    end();
}

/* ---- faults and races ---- */

static void ranges_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_root          *root = open_root(&alloc);
    hfsbi_range_opts    opts = HFSB_INIT;
    hfsbi_range_writer *w;
    hfsbi_file_range    range;
    hfsb_status         st;
    if (!root) return;
    st = hfsbi_range_writer_open(root, HFSB_LIT("x/y"), &opts, &w, &err);
    T_CHECK(st == HFSB_OK || (heap->fail_at && (st == HFSB_NOMEM ||
                                                st == HFSB_DENIED)));
    if (st == HFSB_OK)
        T_CHECK(hfsbi_range_writer_append(w, HFSB_LIT("z"), &err) ==
                    HFSB_OK &&
                hfsbi_range_writer_commit(w, NULL, &err) == HFSB_OK);
    hfsbi_range_writer_close(w);
    st = hfsbi_file_range_open(root, HFSB_LIT("f"), 0, 3, &range, &err);
    T_CHECK(st == HFSB_OK || (heap->fail_at && (st == HFSB_NOMEM ||
                                                st == HFSB_DENIED)));
    if (st == HFSB_OK) hfsbi_file_range_close(&range);
    hfsb_root_close(root);
    t_remove_tree("in/x");
}

static void every_allocation_of_a_range_fails(void) {
    begin();
    t_each_allocation_fails(ranges_without_memory);
    end();
}

static int swapping;

static void *swap_file(void *user) {
    (void)user;
    while (__atomic_load_n(&swapping, __ATOMIC_SEQ_CST)) {
        (void)rename("in/f", "in/f2");
        (void)symlink("../out/secret", "in/f");
        (void)unlink("in/f");
        (void)rename("in/f2", "in/f");
    }
    return NULL;
}

static void swapped_links_are_not_written_through(void) {
    pthread_t        thread;
    hfsbi_file_range range;
    char             piece[16];
    size_t           got;
    int              i, n = t_quick() ? 100 : 3000;
    begin();
    __atomic_store_n(&swapping, 1, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_create(&thread, NULL, swap_file, NULL) == 0);
    for (i = 0; i < n; i++) {
        (void)put("f", 0, "XXXXXX", NULL, NULL);
        if (hfsbi_file_range_open(in, HFSB_LIT("f"), 0, 9, &range, &err) !=
            HFSB_OK)
            continue;
        T_CHECK(hfsbi_file_range_read(&range, piece, 6, &got, &err) ==
                    HFSB_OK &&
                (got < 6 || memcmp(piece, "secret", 6) != 0));
        hfsbi_file_range_close(&range);
    }
    __atomic_store_n(&swapping, 0, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_join(thread, NULL) == 0);
    end();
}

int main(void) {
    int fds;
    t_begin_files();
    fds = t_descriptors();
    T_RUN(reads_are_cut_to_what_the_file_has);
    T_RUN(reads_refuse_what_is_no_file);
    T_RUN(reads_work_in_proc);
    T_RUN(writes_change_only_their_bytes);
    T_RUN(writes_refuse_what_is_no_file);
    T_RUN(a_writer_reports_that_its_file_was_replaced);
    T_RUN(writers_of_ranges_take_the_locks_shared);
    T_RUN(a_size_limit_is_an_error);
    T_RUN(parts_in_any_order_from_many_threads_give_the_file);
    T_RUN(every_allocation_of_a_range_fails);
    T_RUN(swapped_links_are_not_written_through);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
