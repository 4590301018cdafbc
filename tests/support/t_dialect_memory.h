/* t_dialect_memory.h - a dialect without memory: every allocation of every
   route fails, once and from then on. The client gets an error or a whole
   reply, the server serves on, and nothing is left. */
#ifndef T_DIALECT_MEMORY_H
#define T_DIALECT_MEMORY_H
#include "t_dialect_calls.h"

static t_heap heap;

static td   open_one; /* the server of the calls */
static bool is_open;

static void open_server(const td_kind *kind) {
    hfsb_alloc alloc;
    hfsb_err   err = HFSB_INIT;
    if (is_open) return;
    memset(&heap, 0, sizeof heap);
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    if (!td_open(&open_one, kind, &alloc, &err)) {
        printf("%s: %s\n", kind->name, err.msg);
        abort();
    }
    is_open = true;
}

/* True when nothing is left. */
static bool close_server(void) {
    if (is_open) td_close(&open_one);
    is_open = false;
    return heap.live == 0 && !heap.wrong;
}

/* Sandboxes that are confined take long to make: calls within one share it. */
static bool shares(const td_call *call) {
    return strstr(call->target, "$ID/") != NULL;
}

/* One call; the allocation `at` of it fails (0: none). Returns how many there
   were. */
static size_t one_call(const td_kind *kind, const td_call *call, size_t at,
                       bool forever, td_reply *out) {
    td     *t = &open_one;
    td_conn c;
    size_t  n;
    bool    ended, alive, clean = true, first = !is_open;
    if (first) td_files();
    open_server(kind);
    if (!td_reach(t, call, &c) || (first && !td_prepare(t, &c, call))) abort();
    heap.calls = 0;
    heap.fail_at = at;
    heap.forever = forever;
    if (call->form != TD_MESSAGE && at) { /* accepting it is a part of it */
        td_hang_up(&c);
        c = td_connect(t);
    }
    ended = td_ask(t, &c, call, 99, out);
    n = heap.calls;
    heap.fail_at = 0;
    alive = td_is_alive(t, &c);
    td_hang_up(&c);
    if (!shares(call)) clean = close_server();
    if (!ended || !alive || !clean)
        printf("%s: %s %s, allocation %zu%s: %s, %s, %zu bytes left\n",
               kind->name, call->method, call->target, at,
               forever ? " and all after it" : "",
               ended ? "answered" : "no answer", alive ? "alive" : "dead",
               heap.live);
    T_CHECK(ended && alive && clean);
    return n;
}

/* A reply of the same status has the same content, or says what is lost. */
static void compare(const td_kind *kind, const td_call *call, size_t at,
                    const td_reply *right, td_reply *r) {
    static const char *const losses[] = {"ut of memory", "omitted", "lost",
                                         "\"cmd\":null", "uploaded",
                                         "\"path\":\"", "\"stderr\":\"Cls",
                                         "\"pty\":\"Cls"};
    hfsb_str is = hfsb_buf_str(&r->body);
    size_t   i;
    bool     same = is.len == 0;
    for (i = 0; !same && i < TT_COUNT(losses); i++)
        same = hfsb_str_find(is, hfsb_cstr(losses[i])) != HFSB_NPOS;
    td_blot(&r->body);
    is = hfsb_buf_str(&r->body);
    if (!same) same = hfsb_str_equal(is, hfsb_buf_str(&right->body));
    if (!same)
        printf("%s: %s %s, allocation %zu: %.*s\n  not %.*s\n", kind->name,
               call->method, call->target, at, (int)is.len, is.ptr,
               (int)right->body.len, right->body.ptr ? right->body.ptr : "");
    T_CHECK(same);
}

/* Sanitisers take many times as long: there every fourth allocation fails, or
   with HFSB_TEST_LONG every one, as without them. */
static size_t stride(void) {
    bool slow = false;
#ifdef __SANITIZE_ADDRESS__
    slow = getenv("HFSB_TEST_LONG") == NULL;
#endif
    return t_quick() ? 7 : slow ? 4 : 1;
}

/* Every allocation of a call, in turn. */
static void sweep(const td_kind *kind, const td_call *call) {
    td_reply right = HFSB_INIT, r = HFSB_INIT;
    size_t   total = one_call(kind, call, 0, false, &right), k, mode;
    if (right.status != call->status)
        printf("%s: %s %s: %d %.*s\n", kind->name, call->method, call->target,
               right.status, (int)right.body.len,
               right.body.ptr ? right.body.ptr : "");
    T_CHECK(right.status == call->status);
    td_blot(&right.body);
    for (mode = 0; mode < 2; mode++)
        for (k = 1; k <= total + 2; k += stride()) {
            (void)one_call(kind, call, k, mode == 1, &r);
            if (!call->until && r.whole && r.status == right.status &&
                strcmp(call->method, "process/read")) /* output comes later */
                compare(kind, call, k, &right, &r);
        }
    T_CHECK(close_server());
    td_drop(&right);
    td_drop(&r);
}

static void every_call(const td_kind *kind) {
    const td_call *call = kind->calls;
    for (; call->method; call++) {
        sweep(kind, call);
        tt_lap(*call->target ? call->target : call->method);
    }
}

/* ---- adding a dialect ---- */

static size_t first_failing;
static bool   all_failing;

static void fail_while_on(bool on) {
    if (on) heap.calls = 0;
    heap.fail_at = on ? first_failing : 0;
    heap.forever = all_failing;
}

static void adding(const td_kind *kind) {
    hfsb_alloc alloc;
    size_t     mode;
    bool       reached;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    td_files();
    for (mode = 0; mode < 2; mode++)
        for (first_failing = 1, reached = true; reached; first_failing++) {
            hfsb_err err = HFSB_INIT;
            td       t;
            bool     added;
            memset(&heap, 0, sizeof heap);
            all_failing = mode == 1;
            td_arm = fail_while_on;
            added = td_open(&t, kind, &alloc, &err);
            td_arm = NULL;
            reached = heap.calls >= first_failing;
            T_CHECK(added || (reached && err.code == HFSB_NOMEM));
            td_close(&t);
            T_CHECK(heap.live == 0 && !heap.wrong);
        }
}

HFSBI_UNUSED static void lacks_memory(const td_kind *kind) {
    (void)umask(022);
    t_name = kind->name;
    adding(kind);
    every_call(kind);
}
#endif
