/* wall.c - Landlock around the threads that run the file tools.

   A root is first of all enforced by the way its files are opened (root.c).
   Where the kernel has Landlock, a server also runs the file tools in threads
   that the kernel confines to the roots and the few folders that the tools
   need themselves. Should a path ever get past the first wall, the second one
   holds.

   A thread that has entered a wall cannot leave it, nor can anything it
   starts. So such threads have a pool of their own, and a check after a write,
   which may run any program, runs outside, see hfsbi_loop_outside().

   In ABI 1 of Landlock no file can be moved from one folder to another, so
   there is no wall then. */
#include "proc_private.h"

enum { HFSBI_WALL_ABI = 2 };

typedef struct hfsbi_file_wall {
    hfsbi_wall wall; /* first */
    int        ruleset;
    hfsb_buf   places;
} hfsbi_file_wall;

/* If this fails, the thread has only the first wall. */
static void hfsbi_file_wall_enter(const hfsbi_wall *wall) {
#ifdef HFSBI_LINUX
    const hfsbi_file_wall *w = (const hfsbi_file_wall *)(const void *)wall;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)hfsbi_landlock_enter(w->ruleset);
#else
    (void)wall;
#endif
}

static void hfsbi_file_wall_free(hfsbi_wall *wall) {
    hfsbi_file_wall *w = (hfsbi_file_wall *)(void *)wall;
    hfsb_alloc       alloc = w->places.alloc;
    hfsbi_close(&w->ruleset);
    hfsb_buf_free(&w->places);
    hfsbi_array_free(&alloc, w, 1, sizeof *w);
}

static hfsbi_file_wall *hfsbi_file_wall_new(const hfsb_buf *places) {
    int              abi = hfsbi_landlock_abi();
    hfsbi_file_wall *w;
    if (abi < HFSBI_WALL_ABI) return NULL;
    w = (hfsbi_file_wall *)hfsbi_array(&places->alloc, 1, sizeof *w);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->wall.enter = hfsbi_file_wall_enter;
    w->wall.free = hfsbi_file_wall_free;
    w->places.alloc = places->alloc;
    w->ruleset = hfsbi_landlock_open(abi, HFSB_CONFINE_STRICT, places, NULL);
    if (w->ruleset >= 0 &&
        hfsb_buf_append(&w->places, hfsb_buf_str(places)) == HFSB_OK)
        return w;
    hfsbi_file_wall_free(&w->wall);
    return NULL;
}

HFSBI_FN bool hfsbi_wall_raise(hfsbi_loop *loop, const hfsb_buf *places) {
    const hfsbi_file_wall *w =
        (const hfsbi_file_wall *)(const void *)hfsbi_loop_wall(loop);
    if (!w) {
        hfsbi_file_wall *made = hfsbi_file_wall_new(places);
        if (made && !hfsbi_loop_set_wall(loop, &made->wall)) {
            hfsbi_file_wall_free(&made->wall);
            made = NULL;
        }
        w = made;
    }
    return w && hfsb_str_equal(hfsb_buf_str(&w->places), hfsb_buf_str(places));
}
