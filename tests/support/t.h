/* t.h - the whole test harness. A failing check prints and counts; the test
   goes on, so one run shows every broken expectation. Each test program ends
   with `return T_END();`, which prints "N checks, N failed" (and what was
   skipped). */
#ifndef T_H
#define T_H
#ifndef HFSB_HUB
#define HFSB_HUB
#endif
#ifdef HFSBI_SPLIT
#include "../../src/os/os_private.h"
#include "../../src/core/core_private.h"
#include "../../src/edit/edit_private.h"
#include "../../src/tools/tools_private.h"
#ifdef T_SERVER /* defined by the tests of the server, before this */
#include "../../src/server/server.h"
#endif
#else
#define HFSB_IMPLEMENTATION
#ifdef T_SERVER
#include "../../hfsb_server.h"
#else
#include "../../hfsb.h"
#endif
#endif

static size_t      t_checks, t_failed, t_skipped;
static const char *t_name = "";

#define T_CHECK(x)                                                        \
    ((void)(++t_checks,                                                   \
            (x) ? 0                                                       \
                : (++t_failed, printf("%s:%d: %s: %s\n", __FILE__,        \
                                      __LINE__, t_name, #x))))

/* The view or buffer holds exactly the bytes of the literal. */
#define T_STR(s, lit) t_str(__FILE__, __LINE__, (s).ptr, (s).len, \
                            "" lit "", sizeof(lit) - 1)
#define T_RUN(fn) (t_name = #fn, fn())
#define T_END()   t_end(__FILE__)

HFSBI_UNUSED static void t_str(const char *file, int line, const char *ptr,
                               size_t len, const char *want,
                               size_t want_len) {
    t_checks++;
    if (len == want_len && (!len || !memcmp(ptr, want, len))) return;
    t_failed++;
    printf("%s:%d: %s:\n  is   \"%.*s\"\n  want \"%.*s\"\n", file, line,
           t_name, (int)len, ptr ? ptr : "", (int)want_len, want);
}

HFSBI_UNUSED static int t_end(const char *file) {
    const char *name = strrchr(file, '/');
    printf("%-24s %8zu checks, %zu failed", name ? name + 1 : file, t_checks,
           t_failed);
    if (t_skipped) printf(", %zu skipped", t_skipped);
    printf("\n");
    return t_failed != 0;
}

/* ---- inputs in exact-size blocks, so that a sanitiser sees an over-read --*/

HFSBI_UNUSED static hfsb_str t_exact(const void *bytes, size_t len) {
    char *p = (char *)malloc(len ? len : 1);
    if (!p) abort();
    if (len) memcpy(p, bytes, len);
    return hfsb_str_make(p, len);
}
HFSBI_UNUSED static void t_drop(hfsb_str s) {
    free((void *)(uintptr_t)s.ptr);
}

/* Appends part so many times. */
HFSBI_UNUSED static void t_repeat(hfsb_buf *out, const char *part,
                                  size_t times) {
    while (times-- > 0)
        T_CHECK(hfsb_buf_append(out, hfsb_cstr(part)) == HFSB_OK);
}

/* ---- an allocator that fails on demand ---- */

typedef struct t_heap {
    size_t calls;   /* allocations and growths so far */
    size_t fail_at; /* 1-based call that fails (0: none) */
    bool   forever; /* that call and all later ones */
    size_t live;    /* bytes handed out and not given back */
    bool   wrong;   /* an old_size that was not true */
} t_heap;

/* Each block carries its size in front, to check old_size and leaks. */
HFSBI_UNUSED static void *t_heap_fn(void *user, void *ptr, size_t old_size,
                                    size_t new_size) {
    t_heap *h = (t_heap *)user;
    size_t *block = ptr ? (size_t *)ptr - 2 : NULL, *grown;
    if (block && block[0] != old_size) h->wrong = true;
    if (!block && old_size) h->wrong = true;
    if (!new_size) {
        h->live -= block ? block[0] : 0;
        free(block);
        return NULL;
    }
    h->calls++;
    if (h->fail_at &&
        (h->forever ? h->calls >= h->fail_at : h->calls == h->fail_at))
        return NULL;
    grown = (size_t *)malloc(2 * sizeof *grown + new_size);
    if (!grown) abort();
    grown[0] = new_size;
    h->live += new_size;
    if (block) { /* always moves, so that stale pointers show */
        size_t keep = block[0] < new_size ? block[0] : new_size;
        memcpy(grown + 2, block + 2, keep);
        h->live -= block[0];
        free(block);
    }
    return grown + 2;
}

/* Runs fn once without faults, then with every allocation failing in turn,
   once and from then on. fn must free what it makes and check that
   failures are clean; heap->fail_at is 0 in the run without faults. */
HFSBI_UNUSED static void t_each_allocation_fails(
    void (*fn)(hfsb_alloc alloc, const t_heap *heap)) {
    size_t     total, k;
    int        mode;
    t_heap     heap = HFSB_INIT;
    hfsb_alloc alloc;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    fn(alloc, &heap);
    T_CHECK(heap.live == 0 && !heap.wrong);
    total = heap.calls;
    for (mode = 0; mode < 2; mode++)
        for (k = 1; k <= total; k++) {
            memset(&heap, 0, sizeof heap);
            heap.fail_at = k;
            heap.forever = mode == 1;
            fn(alloc, &heap);
            T_CHECK(heap.live == 0 && !heap.wrong);
        }
}

/* ---- files and the data of others ---- */

/* The whole file in *out; false when it cannot be read. */
HFSBI_UNUSED static bool t_read_file(const char *path, hfsb_buf *out) {
    FILE  *f = fopen(path, "rb");
    char   piece[4096];
    size_t n;
    bool   ok = f != NULL;
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0)
        ok = hfsb_buf_append(out, hfsb_str_make(piece, n)) == HFSB_OK && ok;
    if (f) fclose(f);
    return ok;
}

/* A file below $HFSB_TEST_DATA; counts a skip when that is not set. */
HFSBI_UNUSED static bool t_data_file(const char *name, hfsb_buf *out) {
    const char *root = getenv("HFSB_TEST_DATA");
    hfsb_buf    path = HFSB_INIT;
    bool        ok = false;
    if (!root || !*root) {
        t_skipped++;
        return false;
    }
    if (hfsb_buf_printf(&path, "%s/%s", root, name) == HFSB_OK)
        ok = t_read_file(path.ptr, out);
    if (!ok) printf("cannot read %s/%s\n", root, name);
    T_CHECK(ok);
    hfsb_buf_free(&path);
    return ok;
}

/* True when long loops are to be short: under valgrind or an emulator. */
HFSBI_UNUSED static bool t_quick(void) {
    const char *quick = getenv("HFSB_TEST_QUICK");
    return quick && *quick;
}

/* True when loops that look for rare faults are to be long. */
HFSBI_UNUSED static bool t_long(void) {
    const char *longer = getenv("HFSB_TEST_LONG");
    return longer && *longer;
}

/* ---- random numbers that are the same everywhere ---- */

HFSBI_UNUSED static unsigned long t_random(unsigned long long *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned long)(*state >> 33);
}
#endif
