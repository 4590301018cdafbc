/* e2b_control.c - E2B's control plane: makes, lists and ends sandboxes.

   A sandbox is a guest of host.c: a directory beneath the work directory of
   the server, which is its root, and a tools object with variables, a token
   and jobs of its own. Its commands are confined like those of the server. If
   the server is root, each sandbox has a uid of its own; else all run as the
   same user, and sandboxes keep their files apart, not hostile users.

   It ends when its timeout has passed, when it is killed, and with the server.
   Pausing is refused: it would need a copy of its processes. */
#include "dialect_private.h"

enum {
    HFSBI_E2B_BOXES = 256,   /* at a time */
    HFSBI_E2B_PAGE = 100,    /* of these in one reply */
    HFSBI_E2B_TIMEOUT = 300, /* seconds, without one in the request */
    HFSBI_E2B_LONGEST = 30 * 24 * 3600,
    HFSBI_E2B_META = 64 << 10 /* bytes of metadata */
};

static long long hfsbi_e2b_now(void) {
    return hfsbi_time_ns() / 1000000000;
}

/* Makes the sandbox end after that many seconds. */
static void hfsbi_e2b_extend(hfsbi_e2b_box *box, long long seconds) {
    if (seconds < 0) seconds = 0;
    if (seconds > HFSBI_E2B_LONGEST) seconds = HFSBI_E2B_LONGEST;
    box->ends = hfsbi_e2b_now() + seconds;
    hfsbi_guest_set_timeout(&box->guest, seconds * 1000);
}

/* ---- replies ---- */

static void hfsbi_e2b_put_date(hfsbi_build *b, const char *key,
                               long long seconds) {
    hfsbi_date d = hfsbi_date_of(seconds);
    char       text[32];
    (void)snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02uZ", d.year,
                   d.month, d.day, d.hour, d.minute, d.second);
    hfsbi_build_str(b, key, hfsb_cstr(text));
}

static void hfsbi_e2b_put_ids(hfsbi_build *b, const hfsbi_e2b_box *box,
                              bool secret) {
    hfsbi_build_str(b, "sandboxID", hfsb_cstr(box->guest.id));
    hfsbi_build_str(b, "templateID", hfsb_buf_str(&box->template_id));
    hfsbi_build_str(b, "alias", hfsb_buf_str(&box->template_id));
    hfsbi_build_str(b, "clientID", HFSB_LIT("hfsb"));
    hfsbi_build_str(b, "envdVersion", HFSB_LIT("0.6.13"));
    if (!secret) return;
    hfsbi_build_str(b, "envdAccessToken", hfsb_buf_str(&box->guest.token));
    hfsbi_build_null(b, "domain");
}

/* Puts what a list shows of a sandbox, as an object. */
static void hfsbi_e2b_put_box(hfsbi_build *b, const hfsbi_e2b_box *box,
                              bool secret) {
    hfsb_json_doc metadata = HFSB_INIT;
    long          cpus = sysconf(_SC_NPROCESSORS_ONLN);
    metadata.alloc = box->env.alloc;
    hfsbi_build_object(b, NULL);
    hfsbi_e2b_put_ids(b, box, secret);
    hfsbi_e2b_put_date(b, "startedAt", box->guest.since / 1000);
    hfsbi_e2b_put_date(b, "endAt", box->ends);
    hfsbi_build_str(b, "state", HFSB_LIT("running"));
    hfsbi_build_int(b, "cpuCount", cpus > 0 ? cpus : 1);
    hfsbi_build_int(b, "memoryMB", 0);
    hfsbi_build_int(b, "diskSizeMB", 0);
    if (box->metadata.len && hfsb_json_parse(hfsb_buf_str(&box->metadata),
                                             NULL, &metadata, NULL) != HFSB_OK)
        hfsbi_build_fail(b, HFSB_NOMEM);
    else if (metadata.root) hfsbi_build_value(b, "metadata", metadata.root);
    hfsbi_build_end(b);
    hfsb_json_free(&metadata);
}

static void hfsbi_e2b_reply_box(const hfsbi_e2b_box *box,
                                hfsb_request *request, int status) {
    hfsbi_build b;
    hfsbi_build_init(&b, &box->env.alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_e2b_put_ids(&b, box, true);
    hfsbi_build_end(&b);
    hfsbi_dialect_reply(request, status, &b);
}

/* The sandbox of the path; NULL after a 404. */
static hfsbi_e2b_box *hfsbi_e2b_box_of_path(void         *user,
                                            hfsb_request *request) {
    hfsbi_guest *guest = hfsbi_host_find(&((hfsbi_e2b *)user)->host,
                                         hfsb_request_part(request, 0));
    if (!guest) hfsb_reply_error(request, 404, "There is no such sandbox.");
    return (hfsbi_e2b_box *)(void *)guest;
}

/* ---- create ---- */

typedef struct hfsbi_e2b_create {
    hfsbi_order order; /* first */
    hfsb_alloc  alloc;
    long long   timeout, began;
} hfsbi_e2b_create;

/* open of a guest: its tools are like those of the server, in another root. */
static hfsb_status hfsbi_e2b_box_tools(hfsbi_order *order, hfsbi_guest *guest,
                                       hfsb_err *err) {
    const hfsb_tools *like = order->host->dialect->tools;
    hfsb_root_opts    opts = HFSB_INIT;
    hfsb_status       st;
    opts.root = opts.work_dir = hfsb_buf_str(&guest->dir);
    opts.alloc = guest->dir.alloc;
    st = hfsb_root_open(&opts, &guest->root, err);
    if (st == HFSB_OK)
        st = hfsbi_tools_open_like(like, "e2b", &guest->tools, err);
    if (st == HFSB_OK) hfsbi_tools_set_place(guest->tools, guest->root);
    return st;
}

static void hfsbi_e2b_create_done(hfsbi_order *order, hfsb_request *request) {
    hfsbi_e2b_create *c = (hfsbi_e2b_create *)(void *)order;
    hfsbi_e2b_box    *box = (hfsbi_e2b_box *)(void *)order->first;
    hfsb_alloc        alloc = c->alloc;
    hfsbi_api_report(order->host->dialect->tools, "create",
                     hfsb_buf_str(&box->guest.dir), "",
                     hfsb_cstr(order->st == HFSB_OK ? "" : order->err.msg),
                     c->began, 0);
    if (order->st == HFSB_OK) {
        hfsbi_e2b_extend(box, c->timeout);
        hfsbi_e2b_reply_box(box, request, 201);
    } else hfsb_reply_error(request, 500, "%s", order->err.msg);
    hfsbi_array_free(&alloc, c, 1, sizeof *c);
}

/* Fills a sandbox from the message. HFSB_OK; HFSB_ARG; HFSB_NOMEM. */
static hfsb_status hfsbi_e2b_box_fill(hfsbi_e2b_box         *box,
                                      const hfsb_json_value *message,
                                      hfsb_err              *err) {
    const hfsb_json_value *metadata = hfsb_json_get(message, "metadata");
    hfsb_str               name = hfsbi_json_get_str(message, "templateID");
    hfsb_buf_append(&box->template_id, name.len ? name : HFSB_LIT("base"));
    box->metadata.max = HFSBI_E2B_META;
    if (metadata) (void)hfsb_json_write(metadata, NULL, &box->metadata, NULL);
    if (box->metadata.status == HFSB_LIMIT)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "metadata must have at most %d bytes as JSON.",
                          (int)HFSBI_E2B_META);
    if (box->template_id.status != HFSB_OK || box->metadata.status != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
    hfsb_buf_append(&box->env, HFSB_LIT("HOME="));
    hfsb_buf_append(&box->env, hfsb_buf_str(&box->guest.dir));
    hfsb_buf_append_byte(&box->env, '\0');
    return hfsbi_e2b_set_env(
        &box->env, hfsbi_e2b_get(message, "envVars", "env_vars"), err);
}

/* Takes a number of seconds from a message, if it has one, from 0 to the
   longest; false after an error reply. */
static bool hfsbi_e2b_take_seconds(hfsb_request          *request,
                                   const hfsb_json_value *message,
                                   const char *key, long long *seconds) {
    const hfsb_json_value *value = hfsb_json_get(message, key);
    hfsb_json_type         type = hfsb_json_type_of(value);
    double                 n = hfsb_json_double(value, 0);
    if (type == HFSB_JSON_NULL) return true; /* null counts as absent */
    *seconds = HFSBI_E2B_LONGEST;
    if (n < (double)HFSBI_E2B_LONGEST) *seconds = n > 0 ? (long long)n : 0;
    if (type == HFSB_JSON_INT || type == HFSB_JSON_UINT ||
        type == HFSB_JSON_DOUBLE)
        return true;
    hfsb_reply_error(request, 400, "%s must be a number of seconds.", key);
    return false;
}

/* True when another sandbox may be made; else replies. */
static bool hfsbi_e2b_may_create(const hfsbi_e2b *e2b, hfsb_request *request) {
    const hfsb_root *root = e2b->own.guest.tools->place;
    if (e2b->host.count >= e2b->host.max)
        hfsb_reply_error(request, 429, "There are %zu sandboxes: end some.",
                         e2b->host.count);
    else if (root && root->deny && root->deny->rules)
        hfsb_reply_error(request, 501,
                         "A server with a deny list has no sandboxes but its "
                         "own: their files would not be protected by it.");
    else return true;
    return false;
}

static void hfsbi_e2b_create_start(hfsbi_e2b *e2b, hfsb_request *request,
                                   const hfsb_json_value *message,
                                   long long              timeout) {
    hfsb_alloc       *alloc = &e2b->dialect.alloc;
    hfsbi_e2b_create *c = (hfsbi_e2b_create *)hfsbi_array(alloc, 1, sizeof *c);
    hfsbi_e2b_box    *box = NULL;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st = HFSB_NOMEM;
    if (c) {
        memset(c, 0, sizeof *c);
        c->order.host = &e2b->host;
        c->order.done = hfsbi_e2b_create_done;
        c->alloc = *alloc;
        c->began = hfsb_clock_ms();
        c->timeout = timeout;
        box = (hfsbi_e2b_box *)(void *)hfsbi_order_add(&c->order);
    }
    if (box) {
        hfsbi_e2b_box_init(box, e2b);
        st = hfsbi_e2b_box_fill(box, message, &err);
    }
    if (st == HFSB_OK) {
        hfsbi_order_start(&c->order, request);
        return;
    }
    if (c) hfsbi_order_drop(&c->order);
    hfsbi_array_free(alloc, c, 1, sizeof *c);
    hfsb_reply_error(request, st == HFSB_ARG ? 400 : 503, "%s",
                     err.msg[0] ? err.msg : "Out of memory.");
}

static void hfsbi_e2b_create_box(void *user, hfsb_request *request) {
    hfsbi_e2b    *e2b = (hfsbi_e2b *)user;
    hfsb_json_doc doc;
    long long     timeout = HFSBI_E2B_TIMEOUT;
    if (!hfsbi_e2b_may_create(e2b, request) ||
        !hfsbi_dialect_parse(request, &doc))
        return;
    if (hfsbi_e2b_take_seconds(request, doc.root, "timeout", &timeout))
        hfsbi_e2b_create_start(e2b, request, doc.root, timeout);
    hfsb_json_free(&doc);
}

/* ---- the other calls ---- */

/* Reads the seconds of {"timeout":...}; false after an error reply. */
static bool hfsbi_e2b_read_timeout(hfsb_request *request, const char *key,
                                   long long *seconds) {
    hfsb_json_doc doc = HFSB_INIT;
    bool          ok;
    if (!hfsb_request_body(request).len) return true;
    if (!hfsbi_dialect_parse(request, &doc)) return false;
    ok = hfsbi_e2b_take_seconds(request, doc.root, key, seconds);
    hfsb_json_free(&doc);
    return ok;
}

static void hfsbi_e2b_connect_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = -1;
    if (!box || !hfsbi_e2b_read_timeout(request, "timeout", &seconds)) return;
    if (hfsbi_e2b_now() + seconds > box->ends) hfsbi_e2b_extend(box, seconds);
    hfsbi_e2b_reply_box(box, request, 200);
}

static void hfsbi_e2b_set_timeout(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = HFSBI_E2B_TIMEOUT;
    if (!box || !hfsbi_e2b_read_timeout(request, "timeout", &seconds)) return;
    hfsbi_e2b_extend(box, seconds);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_refresh(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    long long      seconds = HFSBI_E2B_TIMEOUT;
    if (!box || !hfsbi_e2b_read_timeout(request, "duration", &seconds)) return;
    if (hfsbi_e2b_now() + seconds > box->ends) hfsbi_e2b_extend(box, seconds);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_pause(void *user, hfsb_request *request) {
    if (hfsbi_e2b_box_of_path(user, request))
        hfsb_reply_error(request, 501,
                         "This server cannot pause a sandbox: its processes "
                         "cannot be saved. Set a longer timeout instead.");
}

static void hfsbi_e2b_kill_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    if (!box) return;
    hfsbi_guest_end(&box->guest);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
}

static void hfsbi_e2b_get_box(void *user, hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_of_path(user, request);
    hfsbi_build    b;
    if (!box) return;
    hfsbi_build_init(&b, &box->env.alloc);
    hfsbi_e2b_put_box(&b, box, true);
    hfsbi_dialect_reply(request, 200, &b);
}

/* True if the sandbox has all pairs of "k=v&k=v" in its metadata. Without
   memory the list fails. */
static bool hfsbi_e2b_box_has(const hfsbi_e2b_box *box, hfsb_str pairs,
                              hfsbi_build *list) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      pair;
    bool          ok = true;
    doc.alloc = box->env.alloc;
    if (!pairs.len) return true;
    if (box->metadata.len && hfsb_json_parse(hfsb_buf_str(&box->metadata),
                                             NULL, &doc, NULL) != HFSB_OK) {
        hfsbi_build_fail(list, HFSB_NOMEM);
        ok = false;
    }
    while (ok && hfsbi_list_next(&pairs, '&', &pair)) {
        hfsb_buf key = HFSB_INIT, value = HFSB_INIT;
        size_t   at = hfsb_str_find_byte(pair, '=');
        key.alloc = value.alloc = box->env.alloc;
        if (at == HFSB_NPOS) at = pair.len;
        ok = hfsb_http_decode(hfsb_str_slice(pair, 0, at), &key, NULL) ==
                 HFSB_OK &&
             hfsb_http_decode(hfsb_str_slice(pair, at + 1, pair.len), &value,
                              NULL) == HFSB_OK &&
             key.len &&
             hfsb_str_equal(hfsbi_json_get_str(doc.root, key.ptr),
                            hfsb_buf_str(&value));
        if (key.status == HFSB_NOMEM || value.status == HFSB_NOMEM)
            hfsbi_build_fail(list, HFSB_NOMEM);
        hfsb_buf_free(&key);
        hfsb_buf_free(&value);
    }
    hfsb_json_free(&doc);
    return ok;
}

/* What a list shows. */
typedef struct hfsbi_e2b_page {
    hfsb_buf           pairs, state, name; /* of metadata; of the template */
    double             after;              /* started then or later, seconds */
    unsigned long long cursor;             /* the serial of the last one shown
                                              before; 0: none */
    unsigned long long limit;
    bool               ascending;
} hfsbi_e2b_page;

/* Appends the value of a key of the query, or nothing; false after an error
   reply. */
static bool hfsbi_e2b_list_text(hfsb_request *request, const char *key,
                                hfsb_buf *out) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    out->alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsb_request_query(request, key, out, &err);
    if (st == HFSB_OK || st == HFSB_NOT_FOUND) return true;
    hfsb_reply_error(request, st == HFSB_NOMEM ? 503 : 400, "%s", err.msg);
    return false;
}

/* The same for a number from 1 on; without one *out stays. */
static bool hfsbi_e2b_list_number(hfsb_request *request, const char *key,
                                  unsigned long long  max,
                                  unsigned long long *out) {
    hfsb_buf           text = HFSB_INIT;
    unsigned long long n = 0;
    bool               ok = hfsbi_e2b_list_text(request, key, &text);
    if (ok && text.len) {
        ok = hfsbi_read_decimal(hfsb_buf_str(&text), max, &n) == text.len && n;
        if (ok) *out = n;
        else
            hfsb_reply_error(request, 400,
                             "%s must be a number from 1 to %llu.", key, max);
    }
    hfsb_buf_free(&text);
    return ok;
}

/* Reads the query; false after an error reply. */
static bool hfsbi_e2b_page_read(hfsbi_e2b_page *p, hfsb_request *request) {
    hfsb_str path = hfsb_request_head(request)->path;
    hfsb_buf after = HFSB_INIT, order = HFSB_INIT;
    bool     ok;
    /* the older route has no pages */
    p->limit = hfsb_str_starts(path, HFSB_LIT("/v2/")) ? HFSBI_E2B_PAGE
                                                       : HFSBI_E2B_BOXES;
    ok = hfsbi_e2b_list_text(request, "metadata", &p->pairs) &&
         hfsbi_e2b_list_text(request, "state", &p->state) &&
         hfsbi_e2b_list_text(request, "template", &p->name) &&
         hfsbi_e2b_list_text(request, "startedAfter", &after) &&
         hfsbi_e2b_list_text(request, "order", &order) &&
         hfsbi_e2b_list_number(request, "limit", HFSBI_E2B_PAGE, &p->limit) &&
         hfsbi_e2b_list_number(request, "nextToken", ~0ull >> 1, &p->cursor);
    p->ascending = hfsb_str_equal(hfsb_buf_str(&order), HFSB_LIT("asc"));
    if (ok && after.len &&
        !hfsbi_date_parse(hfsb_buf_str(&after), &p->after)) {
        ok = false;
        hfsb_reply_error(request, 400,
                         "startedAfter must be a date such as "
                         "2026-01-31T23:59:59Z.");
    }
    hfsb_buf_free(&after);
    hfsb_buf_free(&order);
    return ok;
}

/* True if the query selects the sandbox, on any page. */
static bool hfsbi_e2b_page_has(const hfsbi_e2b_page *p,
                               const hfsbi_e2b_box *box, hfsbi_build *list) {
    hfsb_str state = hfsb_buf_str(&p->state);
    return box->guest.state == HFSBI_GUEST_LIVE &&
           (!state.len ||
            hfsb_str_find(state, HFSB_LIT("running")) != HFSB_NPOS) &&
           (!p->name.len || hfsb_str_equal(hfsb_buf_str(&p->name),
                                           hfsb_buf_str(&box->template_id))) &&
           (double)box->guest.since / 1000 + 1 > p->after &&
           hfsbi_e2b_box_has(box, hfsb_buf_str(&p->pairs), list);
}

/* The sandbox that follows the cursor in the order asked for; NULL: none. */
static const hfsbi_e2b_box *hfsbi_e2b_page_next(const hfsbi_e2b_page *p,
                                                const hfsbi_e2b      *e2b,
                                                hfsbi_build          *list) {
    const hfsbi_guest   *g = e2b->host.guests;
    const hfsbi_e2b_box *found = NULL;
    for (; g; g = g->next) { /* oldest first */
        const hfsbi_e2b_box *box = (const hfsbi_e2b_box *)(const void *)g;
        unsigned long long   n = g->serial;
        if (p->cursor && (p->ascending ? n <= p->cursor : n >= p->cursor))
            continue;
        if (found &&
            (p->ascending ? n > found->guest.serial : n < found->guest.serial))
            continue;
        if (hfsbi_e2b_page_has(p, box, list)) found = box;
    }
    return found;
}

static void hfsbi_e2b_list_boxes(void *user, hfsb_request *request) {
    hfsbi_e2b           *e2b = (hfsbi_e2b *)user;
    hfsbi_e2b_page       page = HFSB_INIT;
    const hfsbi_e2b_box *box = NULL;
    hfsbi_build          b;
    char                 token[24];
    if (hfsbi_e2b_page_read(&page, request)) {
        hfsbi_build_init(&b, &e2b->dialect.alloc);
        hfsbi_build_array(&b, NULL);
        while ((box = hfsbi_e2b_page_next(&page, e2b, &b)) != NULL) {
            if (page.limit-- == 0) break;
            page.cursor = box->guest.serial;
            hfsbi_e2b_put_box(&b, box, false);
        }
        hfsbi_build_end(&b);
        (void)snprintf(token, sizeof token, "%llu", page.cursor);
        if (box && hfsb_reply_field(request, "X-Next-Token",
                                    hfsb_cstr(token)) != HFSB_OK)
            hfsbi_build_fail(&b, HFSB_NOMEM);
        hfsbi_dialect_reply(request, 200, &b);
    }
    hfsb_buf_free(&page.pairs);
    hfsb_buf_free(&page.state);
    hfsb_buf_free(&page.name);
}

/* ---- the host ---- */

static void hfsbi_e2b_guest_end(hfsbi_guest *guest) {
    hfsbi_e2b_end_watchers((hfsbi_e2b_box *)(void *)guest);
}

static void hfsbi_e2b_guest_free(hfsbi_guest *guest) {
    hfsbi_e2b_box_free((hfsbi_e2b_box *)(void *)guest);
}

/* Sandboxes cannot have uids where commands are confined by a user namespace,
   which has none but that of the server. */
HFSBI_FN hfsb_status hfsbi_e2b_open_host(hfsbi_e2b               *e2b,
                                         const hfsb_dialect_opts *opts,
                                         hfsb_err                *err) {
    static const hfsbi_host_kind kind = {sizeof(hfsbi_e2b_box),
                                         "i",
                                         19,
                                         40,
                                         NULL,
                                         hfsbi_e2b_box_tools,
                                         hfsbi_e2b_guest_end,
                                         NULL,
                                         hfsbi_e2b_guest_free};
    const hfsb_tools            *tools = e2b->own.guest.tools;
    hfsb_str    uids = hfsbi_dialect_setting(opts, "HFSB_SANDBOX_UIDS");
    hfsb_buf    dir = HFSB_INIT;
    hfsb_status st;
    dir.alloc = e2b->dialect.alloc;
    if (tools->confine->spaces.user >= 0) {
        if (hfsb_str_equal(uids, HFSB_LIT("1")))
            return hfsbi_fail(err, HFSB_REFUSED, 0,
                              "Sandboxes cannot have a uid of their own: "
                              "commands are confined by a user namespace.");
        uids = HFSB_LIT("0");
    }
    e2b->host.kind = &kind;
    e2b->host.root = tools->place;
    e2b->host.rights = tools->rights;
    e2b->host.max = HFSBI_E2B_BOXES;
    st = hfsbi_e2b_path(&e2b->own, HFSB_LIT("sandboxes"), &dir)
             ? hfsbi_host_open(&e2b->host, &e2b->dialect, hfsb_buf_str(&dir),
                               uids, err)
             : hfsbi_fail_status(err, HFSB_NOMEM, "Adding e2b");
    hfsb_buf_free(&dir);
    return st;
}

HFSBI_FN hfsb_status hfsbi_e2b_add_control(hfsbi_e2b *e2b, hfsb_err *err) {
#define HFSBI_E2B_ROUTE(method, path, fn) \
    { method, path, fn, false, NULL, NULL }
    static const hfsbi_dialect_route routes[] = {
        HFSBI_E2B_ROUTE("POST", "/v2/sandboxes", hfsbi_e2b_create_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes", hfsbi_e2b_create_box),
        HFSBI_E2B_ROUTE("GET", "/v2/sandboxes", hfsbi_e2b_list_boxes),
        HFSBI_E2B_ROUTE("GET", "/sandboxes", hfsbi_e2b_list_boxes),
        HFSBI_E2B_ROUTE("POST", "/v2/sandboxes/*/connect",
                        hfsbi_e2b_connect_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/connect", hfsbi_e2b_connect_box),
        HFSBI_E2B_ROUTE("GET", "/sandboxes/*", hfsbi_e2b_get_box),
        HFSBI_E2B_ROUTE("DELETE", "/sandboxes/*", hfsbi_e2b_kill_box),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/timeout", hfsbi_e2b_set_timeout),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/refreshes", hfsbi_e2b_refresh),
        HFSBI_E2B_ROUTE("POST", "/sandboxes/*/pause", hfsbi_e2b_pause),
        {NULL, NULL, NULL, false, NULL, NULL}};
#undef HFSBI_E2B_ROUTE
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
