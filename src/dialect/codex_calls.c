/* codex_calls.c - what codex_bridge.c remembers while a connection may break:
   the calls that are not answered, and the remote processes that run.

   A call stays in the queue until it is answered. A call that must not be
   carried out twice keeps only its id once it is sent; the start of a process
   is kept, since it is repeated after a resume. The events of a process are
   numbered, and each passes once: only the next number passes. */
#include "dialect_private.h"

/* ---- kinds ---- */

/* Methods that change nothing, or not twice: they may be sent again when the
   answer was lost. process/start joins after a resume. */
static const struct {
    const char       *name;
    hfsbi_bridge_kind kind;
} hfsbi_bridge_methods[] = {{"initialize", HFSBI_BRIDGE_INIT},
                            {"environment/info", HFSBI_BRIDGE_REPEAT},
                            {"environment/status", HFSBI_BRIDGE_REPEAT},
                            {"process/start", HFSBI_BRIDGE_START},
                            {"process/read", HFSBI_BRIDGE_REPEAT},
                            {"process/terminate", HFSBI_BRIDGE_REPEAT},
                            {"fs/getMetadata", HFSBI_BRIDGE_REPEAT},
                            {"fs/readFile", HFSBI_BRIDGE_REPEAT},
                            {"fs/canonicalize", HFSBI_BRIDGE_REPEAT},
                            {"fs/readDirectory", HFSBI_BRIDGE_REPEAT},
                            {"fs/walk", HFSBI_BRIDGE_REPEAT},
                            {"fs/readBlock", HFSBI_BRIDGE_REPEAT}};

HFSBI_FN hfsbi_bridge_kind hfsbi_bridge_kind_of(const hfsb_json_value *root) {
    hfsb_str name = hfsbi_json_get_str(root, "method");
    hfsb_str write =
        hfsbi_json_get_str(hfsb_json_get(root, "params"), "writeId");
    size_t i, n = sizeof hfsbi_bridge_methods / sizeof *hfsbi_bridge_methods;
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_bridge_methods[i].name)))
            return hfsbi_bridge_methods[i].kind;
    /* the server writes an id only once */
    return write.len && hfsb_str_equal(name, HFSB_LIT("process/write"))
               ? HFSBI_BRIDGE_REPEAT
               : HFSBI_BRIDGE_ONCE;
}

/* ---- processes ---- */

HFSBI_FN hfsbi_bridge_process *hfsbi_bridge_find(const hfsbi_bridge_calls *c,
                                                 hfsb_str id) {
    hfsbi_bridge_process *p = c->processes;
    while (p && !hfsb_str_equal(hfsb_buf_str(&p->id), id)) p = p->next;
    return p;
}

HFSBI_FN void hfsbi_bridge_process_free(hfsbi_bridge_calls   *c,
                                        hfsbi_bridge_process *p) {
    hfsbi_bridge_process **link = &c->processes;
    hfsbi_bridge_message  *m;
    while (*link != p) link = &(*link)->next;
    *link = p->next;
    for (m = c->queue; m; m = m->next)
        if (m->process == p) m->process = NULL;
    c->starts -= p->start.len;
    hfsb_buf_free(&p->id);
    hfsb_buf_free(&p->start);
    hfsb_buf_free(&p->call);
    hfsbi_array_free(&c->alloc, p, 1, sizeof *p);
}

HFSBI_FN hfsbi_bridge_process *hfsbi_bridge_process_new(hfsbi_bridge_calls *c,
                                                        hfsb_str            id,
                                                        hfsb_str  call,
                                                        hfsb_buf *text) {
    hfsbi_bridge_process *p =
        (hfsbi_bridge_process *)hfsbi_array(&c->alloc, 1, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->id.alloc = p->call.alloc = c->alloc;
    p->seq = 1;
    p->start = *text;
    memset(text, 0, sizeof *text);
    text->alloc = c->alloc;
    c->starts += p->start.len;
    p->next = c->processes;
    c->processes = p;
    if (hfsb_buf_append(&p->id, id) == HFSB_OK &&
        hfsb_buf_append(&p->call, call) == HFSB_OK)
        return p;
    hfsbi_bridge_process_free(c, p);
    return NULL;
}

/* ---- calls ---- */

static void hfsbi_bridge_drop_text(hfsbi_bridge_calls   *c,
                                   hfsbi_bridge_message *m) {
    c->held -= m->text.len;
    hfsb_buf_free(&m->text);
}

HFSBI_FN void hfsbi_bridge_message_free(hfsbi_bridge_calls   *c,
                                        hfsbi_bridge_message *m) {
    hfsbi_bridge_message **link = &c->queue;
    while (*link && *link != m) link = &(*link)->next;
    if (*link) {
        *link = m->next;
        c->count--;
    }
    hfsbi_bridge_drop_text(c, m);
    hfsb_buf_free(&m->id);
    hfsbi_array_free(&c->alloc, m, 1, sizeof *m);
}

HFSBI_FN hfsbi_bridge_message *hfsbi_bridge_add(hfsbi_bridge_calls *c,
                                                hfsbi_bridge_kind   kind,
                                                hfsb_str id, hfsb_buf *text,
                                                bool first) {
    hfsbi_bridge_message **link = &c->queue;
    hfsbi_bridge_message  *m =
        (hfsbi_bridge_message *)hfsbi_array(&c->alloc, 1, sizeof *m);
    bool whole = text->status == HFSB_OK;
    if (!m) {
        hfsb_buf_free(text);
        return NULL;
    }
    memset(m, 0, sizeof *m);
    m->kind = kind;
    m->id.alloc = c->alloc;
    m->text = *text;
    memset(text, 0, sizeof *text);
    text->alloc = c->alloc;
    c->held += m->text.len;
    c->count++;
    while (!first && *link) link = &(*link)->next;
    m->next = *link;
    *link = m;
    if (whole && (!id.len || hfsb_buf_append(&m->id, id) == HFSB_OK)) return m;
    hfsbi_bridge_message_free(c, m);
    return NULL;
}

HFSBI_FN void hfsbi_bridge_kill(hfsbi_bridge_calls         *c,
                                const hfsbi_bridge_process *p) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = c->alloc;
    hfsb_buf_append(&text, HFSB_LIT("{\"method\":\"process/terminate\","
                                    "\"params\":{\"processId\":"));
    hfsbi_json_put_quoted(&text, hfsb_buf_str(&p->id));
    hfsb_buf_append(&text, HFSB_LIT("}}"));
    (void)hfsbi_bridge_add(c, HFSBI_BRIDGE_ONCE, HFSB_LIT(""), &text, false);
}

HFSBI_FN bool hfsbi_bridge_resume(hfsbi_bridge_calls *c, const char *session) {
    hfsbi_bridge_process *p;
    hfsbi_bridge_message *m;
    hfsb_buf              text = HFSB_INIT;
    text.alloc = c->alloc;
    for (p = c->processes; p; p = p->next) {
        if (!p->started) continue; /* the start is in the queue */
        m = hfsbi_bridge_add(c, HFSBI_BRIDGE_REJOIN, hfsb_buf_str(&p->call),
                             &text, true);
        if (!m) return false;
        m->process = p;
    }
    hfsb_buf_append(&text, HFSB_LIT("{\"method\":\"initialized\"}"));
    if (!hfsbi_bridge_add(c, HFSBI_BRIDGE_RESUME, HFSB_LIT(""), &text, true))
        return false;
    hfsb_buf_append(&text,
                    HFSB_LIT("{\"id\":\"hfsb-resume\",\"method\":"
                             "\"initialize\",\"params\":{\"clientName\":"
                             "\"hfsb\",\"resumeSessionId\":"));
    hfsbi_json_put_quoted(&text, hfsb_cstr(session));
    hfsb_buf_append(&text, HFSB_LIT("}}"));
    return hfsbi_bridge_add(c, HFSBI_BRIDGE_RESUME,
                            HFSB_LIT("\"hfsb-resume\""), &text, true) != NULL;
}

HFSBI_FN hfsbi_bridge_message *hfsbi_bridge_next(const hfsbi_bridge_calls *c,
                                                 bool resuming) {
    hfsbi_bridge_message *m = c->queue;
    while (m && (m->sent || (resuming && m->kind != HFSBI_BRIDGE_RESUME)))
        m = m->next;
    return m;
}

HFSBI_FN void hfsbi_bridge_sent(hfsbi_bridge_calls   *c,
                                hfsbi_bridge_message *m) {
    m->sent = true;
    if (!m->id.len) hfsbi_bridge_message_free(c, m);
    else if (m->kind == HFSBI_BRIDGE_ONCE) hfsbi_bridge_drop_text(c, m);
}

HFSBI_FN hfsbi_bridge_message *
hfsbi_bridge_match(const hfsbi_bridge_calls *c, const hfsb_json_value *root) {
    hfsbi_bridge_message *m = c->queue;
    hfsb_buf              id = HFSB_INIT;
    id.alloc = c->alloc;
    if (hfsb_json_write(hfsb_json_get(root, "id"), NULL, &id, NULL) != HFSB_OK)
        m = NULL;
    while (m && !(m->sent &&
                  hfsb_str_equal(hfsb_buf_str(&m->id), hfsb_buf_str(&id))))
        m = m->next;
    hfsb_buf_free(&id);
    return m;
}

HFSBI_FN bool hfsbi_bridge_event(hfsbi_bridge_calls *c, hfsb_str method,
                                 const hfsb_json_value *params,
                                 hfsbi_bridge_process **p, bool *closed) {
    hfsb_str           id = hfsbi_json_get_str(params, "processId");
    unsigned long long seq = hfsb_json_uint(hfsb_json_get(params, "seq"), 0);
    if (!hfsb_str_starts(method, HFSB_LIT("process/"))) return true;
    *p = hfsbi_bridge_find(c, id); /* NULL: closed, and sent again */
    if (!*p || seq != (*p)->seq) return false;
    (*p)->seq++;
    *closed = hfsb_str_equal(method, HFSB_LIT("process/closed"));
    return true;
}

HFSBI_FN void hfsbi_bridge_forget(hfsbi_bridge_calls *c) {
    while (c->queue) hfsbi_bridge_message_free(c, c->queue);
    while (c->processes) hfsbi_bridge_process_free(c, c->processes);
}
