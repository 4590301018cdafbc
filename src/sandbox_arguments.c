/* sandbox_arguments.c - the body of a call, as the reference's client writes
   it. Depends on: json, tools. */
#include "sandbox_call.h"

enum {
    HFSBI_REMOTE_SECONDS = 1200, /* the longest timeout */
    HFSBI_REMOTE_LINES = 2000,   /* that are read when nothing is said */
    HFSBI_REMOTE_KILL = 30,      /* seconds for kill */
    HFSBI_REMOTE_FIRST = 6
};

/* The keys that come first, in this order. */
typedef struct hfsbi_remote_order {
    const char *tool;
    const char *keys[HFSBI_REMOTE_FIRST];
} hfsbi_remote_order;

static const hfsbi_remote_order *hfsbi_remote_first(const hfsbi_remote *r) {
    static const hfsbi_remote_order list[] = {
        {"bash", {"command", "work_dir", "timeout", NULL, NULL, NULL}},
        {"read", {"path", "offset", "limit", NULL, NULL, NULL}},
        {"write", {"path", "content", NULL, NULL, NULL, NULL}},
        {"edit", {"path", "old_str", "new_str", "replace_all", "mode", NULL}},
        {"", {NULL, NULL, NULL, NULL, NULL, NULL}}};
    const hfsbi_remote_order *at = list;
    while (at->keys[0] && strcmp(at->tool, r->tool->name) != 0) at++;
    return at;
}

/* What the caller says, NULL when that is nothing. */
static const hfsb_json_value *hfsbi_remote_given(const hfsb_json_value *args,
                                                 const char            *key) {
    const hfsb_json_value *value = hfsb_json_get(args, key);
    return hfsb_json_type_of(value) == HFSB_JSON_NULL ? NULL : value;
}

static bool hfsbi_remote_is(const hfsbi_remote *r, const char *tool) {
    return strcmp(r->tool->name, tool) == 0;
}

/* ---- time ---- */

static bool hfsbi_remote_stays(const hfsb_json_value *args) {
    bool stays = false;
    (void)hfsb_json_arg_bool(args, "background", false, &stays, NULL);
    return stays;
}

/* How long the tool may take. */
static double hfsbi_remote_seconds(const hfsbi_remote    *r,
                                   const hfsb_json_value *args) {
    double    seconds = 0;
    long long wait_ms = 0;
    if (hfsbi_remote_is(r, "kill")) return HFSBI_REMOTE_KILL;
    if (hfsbi_remote_is(r, "bash") && !hfsbi_remote_stays(args))
        (void)hfsb_json_arg_double(args, "timeout", false, &seconds, NULL);
    if (hfsbi_remote_is(r, "bash_output"))
        (void)hfsb_json_arg_int(args, "wait_ms", false, &wait_ms, NULL);
    if (wait_ms > 0) seconds = (double)wait_ms / 1000.0;
    if (!(seconds > 0)) seconds = r->sandbox->o.timeout;
    return seconds > (double)HFSBI_REMOTE_SECONDS
               ? (double)HFSBI_REMOTE_SECONDS
               : seconds;
}

/* In the background a command has no time limit unless it is asked for. A
   server that is not ours sets none itself: no more than the longest is
   sent to it. */
static void hfsbi_put_remote_timeout(hfsb_json_writer *w, hfsbi_remote *r,
                                     const hfsb_json_value *args) {
    const hfsb_json_value *given = hfsbi_remote_given(args, "timeout");
    double                 seconds = 0;
    bool known = hfsb_json_arg_double(args, "timeout", false, &seconds,
                                      NULL) == HFSB_OK;
    bool none = !given || (known && !(seconds < 0 || seconds > 0));
    if (none && hfsbi_remote_stays(args)) return;
    hfsb_json_put_key(w, HFSB_LIT("timeout"));
    if (!none && (r->trusted || seconds <= (double)HFSBI_REMOTE_SECONDS))
        hfsb_json_put_value(w, given);
    else if ((double)(long long)r->timeout >= r->timeout)
        hfsb_json_put_int(w, (long long)r->timeout);
    else hfsb_json_put_double(w, r->timeout);
}

/* ---- the other keys ---- */

static void hfsbi_put_remote_limit(hfsb_json_writer      *w,
                                   const hfsb_json_value *args) {
    const hfsb_json_value *limit = hfsb_json_get(args, "limit");
    hfsb_json_put_key(w, HFSB_LIT("limit"));
    if (limit || hfsbi_remote_given(args, "offset"))
        hfsb_json_put_value(w, limit); /* null: all that follow */
    else hfsb_json_put_int(w, HFSBI_REMOTE_LINES);
}

static void hfsbi_put_remote_work_dir(hfsb_json_writer *w, hfsbi_remote *r,
                                      const hfsb_json_value *given) {
    hfsb_str own = hfsb_buf_str(&r->sandbox->work_dir);
    bool     none = !given || (hfsb_json_type_of(given) == HFSB_JSON_STRING &&
                           hfsb_json_str(given, own).len == 0);
    if (none && !own.len) return;
    hfsb_json_put_key(w, HFSB_LIT("work_dir"));
    if (none) hfsb_json_put_str(w, own);
    else hfsb_json_put_value(w, given);
}

/* One of the keys that come first: as it is given, or what the reference's
   client adds; a required one that is missing is for the server to tell. */
static void hfsbi_put_remote_first(hfsb_json_writer *w, hfsbi_remote *r,
                                   const hfsb_json_value *args,
                                   const char            *key) {
    const hfsb_json_value *given = hfsbi_remote_given(args, key);
    if (strcmp(key, "timeout") == 0) hfsbi_put_remote_timeout(w, r, args);
    else if (strcmp(key, "work_dir") == 0)
        hfsbi_put_remote_work_dir(w, r, given);
    else if (strcmp(key, "limit") == 0) hfsbi_put_remote_limit(w, args);
    else if (!given && strcmp(key, "replace_all") == 0)
        hfsbi_put_member_bool(w, key, false);
    else if (!given && strcmp(key, "mode") == 0)
        hfsbi_put_member_str(w, key, HFSB_LIT("replace"));
    else if (hfsb_json_get(args, key) || strcmp(key, "offset") == 0) {
        hfsb_json_put_key(w, hfsb_cstr(key));
        hfsb_json_put_value(w, given);
    }
}

/* How a reply is sent is for us to say, not for the caller. */
static bool hfsbi_remote_is_own_key(const hfsbi_remote       *r,
                                    const hfsbi_remote_order *order,
                                    hfsb_str                  key) {
    size_t i;
    for (i = 0; order->keys[i]; i++)
        if (hfsb_str_equal(key, hfsb_cstr(order->keys[i]))) return true;
    return hfsbi_remote_is(r, "bash") &&
           hfsb_str_equal(key, HFSB_LIT("stream"));
}

HFSBI_FN hfsb_status hfsbi_remote_arguments(hfsbi_remote          *r,
                                            const hfsb_json_value *arguments,
                                            hfsb_err              *err) {
    const hfsbi_remote_order *order = hfsbi_remote_first(r);
    hfsb_json_iter            it = hfsb_json_begin(arguments);
    hfsb_json_writer          w;
    size_t                    i;
    r->timeout = hfsbi_remote_seconds(r, arguments);
    hfsb_json_writer_init(&w, &r->body, NULL);
    hfsb_json_put_object(&w);
    for (i = 0; order->keys[i]; i++)
        hfsbi_put_remote_first(&w, r, arguments, order->keys[i]);
    while (hfsb_json_next(&it)) {
        if (hfsbi_remote_is_own_key(r, order, it.key)) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    /* a stream that breaks is not the end of its command */
    if (r->opts.on_text && r->trusted && hfsbi_remote_is(r, "bash") &&
        !hfsb_json_get(arguments, "on_disconnect"))
        hfsbi_put_member_str(&w, "on_disconnect", HFSB_LIT("continue"));
    if (r->opts.images && r->trusted && hfsbi_remote_is(r, "read") &&
        !hfsb_json_get(arguments, "image"))
        hfsbi_put_member_bool(&w, "image", true);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, err);
}
