/* fake_hub_look.h - how the tests inspect and control the fake Hub. Part of
   fake_hub.h. */

HFSBI_UNUSED static size_t fh_count(fh_hub *hub, const char *method,
                                    const char *path) {
    const fh_record *r;
    size_t           n = 0;
    fh_lock(hub);
    for (r = hub->first; r; r = r->next) n += fh_record_is(r, method, path);
    fh_unlock(hub);
    return n;
}

HFSBI_UNUSED static const fh_record *fh_nth(fh_hub *hub, size_t n,
                                            const char *method,
                                            const char *path) {
    const fh_record *r;
    fh_lock(hub);
    for (r = hub->first; r; r = r->next)
        if (fh_record_is(r, method, path) && !n--) break;
    fh_unlock(hub);
    return r;
}

HFSBI_UNUSED static int fh_status(fh_hub *hub, const fh_record *record) {
    int status;
    fh_lock(hub);
    status = record ? record->status : 0;
    fh_unlock(hub);
    return status;
}

HFSBI_UNUSED static bool fh_saw(fh_hub *hub, const char *text) {
    const fh_record *r;
    hfsb_str         what = hfsb_cstr(text);
    fh_lock(hub);
    for (r = hub->records; r; r = r->next)
        if (hfsb_str_find(hfsb_buf_str(&r->target), what) != HFSB_NPOS ||
            hfsb_str_find(hfsb_buf_str(&r->fields), what) != HFSB_NPOS ||
            hfsb_str_find(hfsb_buf_str(&r->body), what) != HFSB_NPOS)
            break;
    fh_unlock(hub);
    return r != NULL;
}

HFSBI_UNUSED static void fh_forget(fh_hub *hub) {
    fh_lock(hub);
    hub->first = NULL;
    fh_unlock(hub);
}

HFSBI_UNUSED static const char *fh_url(const fh_hub *hub) {
    return hub->url;
}
HFSBI_UNUSED static const char *fh_edge(const fh_hub *hub) {
    return hub->edge;
}

HFSBI_UNUSED static void fh_add_space(fh_hub *hub, const char *id, double days,
                                      bool hidden) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (!s) s = fh_space_new(hub, hfsb_cstr(id));
    s->hidden = hidden;
    s->absent = s->unknown = s->asleep = 0;
    fh_time(s->created, days);
    fh_time(s->modified, days);
    fh_stages_begin(s, "RUNNING");
    fh_unlock(hub);
}

HFSBI_UNUSED static bool fh_has(fh_hub *hub, const char *id) {
    bool has;
    fh_lock(hub);
    has = fh_find(hub, hfsb_cstr(id)) != NULL;
    fh_unlock(hub);
    return has;
}

HFSBI_UNUSED static bool fh_space_id(fh_hub *hub, size_t n, hfsb_buf *out) {
    fh_space *s;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next)
        if (!s->gone && !s->reserved && !n--) break;
    if (s) FH_MUST(hfsb_buf_append(out, hfsb_buf_str(&s->id)));
    fh_unlock(hub);
    return s != NULL;
}

HFSBI_UNUSED static size_t fh_spaces(fh_hub *hub) {
    fh_space *s;
    size_t    n = 0;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next) n += !s->gone && !s->reserved;
    fh_unlock(hub);
    return n;
}

static bool fh_give(hfsb_buf *out, const hfsb_buf *found) {
    if (found) FH_MUST(hfsb_buf_append(out, hfsb_buf_str(found)));
    return found != NULL;
}

static bool fh_stored(fh_hub *hub, const char *id, bool secret,
                      const char *key, hfsb_buf *out) {
    fh_space *s;
    fh_pair  *p = NULL;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (s)
        p = fh_pair_find(secret ? s->secrets : s->variables, hfsb_cstr(key));
    ok = fh_give(out, p ? &p->value : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_secret(fh_hub *hub, const char *id,
                                   const char *key, hfsb_buf *out) {
    return fh_stored(hub, id, true, key, out);
}

HFSBI_UNUSED static bool fh_variable(fh_hub *hub, const char *id,
                                     const char *key, hfsb_buf *out) {
    return fh_stored(hub, id, false, key, out);
}

HFSBI_UNUSED static bool fh_file(fh_hub *hub, const char *id, const char *path,
                                 hfsb_buf *out) {
    fh_space *s;
    fh_entry *e;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    e = s ? fh_entry_find(s->files, hfsb_cstr(path)) : NULL;
    ok = fh_give(out, e ? &e->content : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_head(fh_hub *hub, const char *id, hfsb_buf *out) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (s) fh_put(out, s->head);
    fh_unlock(hub);
    return s != NULL;
}

HFSBI_UNUSED static size_t fh_commits(fh_hub *hub, const char *id) {
    fh_space *s;
    size_t    n;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    n = s ? s->commits : 0;
    fh_unlock(hub);
    return n;
}

HFSBI_UNUSED static void fh_stages(fh_hub *hub, const char *id,
                                   const char *stages) {
    fh_space *s;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next)
        if (!s->gone && (!id || fh_is(&s->id, id))) fh_stages_begin(s, stages);
    if (!id) fh_set(&hub->stages, hfsb_cstr(stages));
    fh_unlock(hub);
}

HFSBI_UNUSED static void fh_log(fh_hub *hub, const char *id, const char *which,
                                const char *line) {
    fh_space *s;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    if (s)
        FH_MUST(hfsb_buf_printf(
            strcmp(which, "build") ? &s->run_log : &s->build_log, "%s\n",
            line));
    fh_unlock(hub);
}

HFSBI_UNUSED static bool fh_work_dir(fh_hub *hub, const char *id,
                                     hfsb_buf *out) {
    fh_space *s;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    ok = fh_give(out, s && s->machine ? &s->machine->work : NULL);
    fh_unlock(hub);
    return ok;
}

HFSBI_UNUSED static bool fh_direct(fh_hub *hub, const char *id,
                                   hfsb_buf *out) {
    fh_space *s;
    bool      ok;
    fh_lock(hub);
    s = fh_find(hub, hfsb_cstr(id));
    ok = s && s->machine && s->machine->port;
    if (ok)
        FH_MUST(hfsb_buf_printf(out, "http://127.0.0.1:%u",
                                s->machine->port));
    fh_unlock(hub);
    return ok;
}
