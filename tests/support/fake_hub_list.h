/* fake_hub_list.h - calls that look at Spaces, lists in pages, whoami. Part of
   fake_hub.h. */

/* ---- looking ---- */

/* With expand only _id, id and what it lists. */
static bool fh_wanted(hfsb_str query, const char *key) {
    bool any = false;
    while (query.len) {
        size_t   end = hfsb_str_find_byte(query, '&');
        hfsb_str item = hfsb_str_slice(query, 0, end);
        size_t   is = hfsb_str_find_byte(item, '=');
        hfsb_str name = hfsb_str_slice(item, 0, is);
        query = hfsb_str_slice(query, end == HFSB_NPOS ? query.len : end + 1,
                               query.len);
        if (!fh_same(name, "expand") && !fh_same(name, "expand[]") &&
            !fh_same(name, "expand%5B%5D"))
            continue;
        any = true;
        if (is != HFSB_NPOS &&
            fh_same(hfsb_str_slice(item, is + 1, item.len), key))
            return true;
    }
    return !any;
}

static void fh_put_siblings(hfsb_json_writer *w, const fh_space *s) {
    const fh_entry *e;
    fh_key(w, "siblings");
    hfsb_json_put_array(w);
    for (e = s->files; e; e = e->next) {
        hfsb_json_put_object(w);
        fh_key(w, "rfilename");
        hfsb_json_put_str(w, hfsb_buf_str(&e->path));
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

static void fh_put_info(fh_call *c, hfsb_json_writer *w, fh_space *s,
                        bool siblings) {
    hfsb_str q = c->query, id = hfsb_buf_str(&s->id);
    char     sub[128], host[160], owner[128];
    fh_stage now = fh_stage_now(c->hub, s, false);
    fh_subdomain(id, sub);
    snprintf(host, sizeof host, "https://%s.hf.space", sub);
    fh_copy(owner, sizeof owner, fh_owner(id));
    hfsb_json_put_object(w);
    fh_text(w, "_id", s->object);
    fh_text(w, "id", s->id.ptr);
    if (fh_wanted(q, "author")) fh_text(w, "author", owner);
    if (fh_wanted(q, "sha")) fh_text(w, "sha", s->head);
    if (fh_wanted(q, "lastModified"))
        fh_text(w, "lastModified", s->modified);
    if (fh_wanted(q, "createdAt")) fh_text(w, "createdAt", s->created);
    if (fh_wanted(q, "private")) fh_bool(w, "private", s->hidden);
    if (fh_wanted(q, "likes")) fh_int(w, "likes", 0);
    if (fh_wanted(q, "sdk")) fh_text(w, "sdk", s->sdk);
    if (fh_wanted(q, "subdomain")) fh_text(w, "subdomain", sub);
    if (fh_wanted(q, "host")) fh_text(w, "host", host);
    if (fh_wanted(q, "xetEnabled")) fh_bool(w, "xetEnabled", false);
    if (fh_wanted(q, "runtime") && !now.status) {
        fh_key(w, "runtime");
        fh_put_runtime(w, s, &now);
    }
    if (siblings && fh_wanted(q, "siblings")) fh_put_siblings(w, s);
    hfsb_json_put_end(w);
}

static void fh_info(fh_call *c) {
    hfsb_json_writer w;
    fh_space        *s = fh_visible(c, false);
    if (!s) return;
    if (c->count > 5 && !fh_part(c, 5, "main") && !fh_part(c, 5, "HEAD") &&
        !fh_part(c, 5, s->head)) {
        fh_error(c->reply, 404, "RevisionNotFound",
                 "Invalid rev id: that revision is not there");
        return;
    }
    fh_json(&w, c->reply);
    fh_put_info(c, &w, s, true);
    fh_done(&w);
}

static void fh_host(fh_call *c) {
    fh_space *s = fh_visible(c, false);
    char      sub[128], body[384];
    if (!s) return;
    fh_subdomain(hfsb_buf_str(&s->id), sub);
    snprintf(body, sizeof body,
             "{\"subdomain\":\"%s\",\"host\":\"https://%s.hf.space\"}", sub,
             sub);
    fh_raw(c->reply, 200, FH_JSON, body);
}

/* ---- lists ---- */

/* Where a page begins: the cursor is the number in base64, without "=". */
static size_t fh_cursor(const fh_call *c) {
    hfsb_buf text = HFSB_INIT, number = HFSB_INIT;
    size_t   n = 0;
    if (fh_query(c, "cursor", &text)) {
        while (text.len % 4) fh_put(&text, "=");
        if (hfsb_base64_decode(hfsb_buf_str(&text), &number, NULL) == HFSB_OK)
            n = (size_t)strtoul(number.ptr ? number.ptr : "0", NULL, 10);
    }
    hfsb_buf_free(&text);
    hfsb_buf_free(&number);
    return n;
}

/* The query without its cursor, and one with that of the next page. */
static void fh_next_page(fh_call *c, size_t next) {
    hfsb_buf    link = HFSB_INIT, cursor = HFSB_INIT;
    hfsb_str    q = c->query;
    char        number[32];
    const char *mark = "?";
    snprintf(number, sizeof number, "%zu", next);
    FH_MUST(hfsb_base64_encode(hfsb_cstr(number), &cursor));
    while (cursor.ptr[cursor.len - 1] == '=')
        hfsb_buf_truncate(&cursor, cursor.len - 1);
    FH_MUST(hfsb_buf_printf(&link, "<%s%s",
                            c->hub->o.link_base ? c->hub->o.link_base
                                                : c->hub->url,
                            c->record->path.ptr));
    while (q.len) {
        size_t   end = hfsb_str_find_byte(q, '&');
        hfsb_str item = hfsb_str_slice(q, 0, end);
        q = hfsb_str_slice(q, end == HFSB_NPOS ? q.len : end + 1, q.len);
        if (hfsb_str_starts(item, HFSB_LIT("cursor="))) continue;
        FH_MUST(hfsb_buf_printf(&link, "%s%.*s", mark, (int)item.len,
                                item.ptr));
        mark = "&";
    }
    FH_MUST(hfsb_buf_printf(&link, "%scursor=%s>; rel=\"next\"", mark,
                            cursor.ptr));
    fh_head_field(c->reply, "Link", link.ptr);
    hfsb_buf_free(&link);
    hfsb_buf_free(&cursor);
}

static bool fh_listed(const fh_call *c, const fh_space *s, const char *author,
                      const char *search) {
    hfsb_str id = hfsb_buf_str(&s->id);
    if (s->gone || s->model) return false;
    if (s->hidden && !(fh_trusted(c->hub, c->record) &&
                       fh_owns(c->hub, fh_owner(id))))
        return false;
    if (*author && !hfsb_http_same(fh_owner(id), hfsb_cstr(author)))
        return false;
    return !*search || hfsb_str_find(id, hfsb_cstr(search)) != HFSB_NPOS;
}

static void fh_list(fh_call *c) {
    hfsb_buf         author = HFSB_INIT, search = HFSB_INIT;
    size_t           from = fh_cursor(c), n = 0;
    size_t           page = c->hub->o.page ? c->hub->o.page : 2;
    hfsb_json_writer w;
    fh_space        *s;
    if (!fh_authorized(c, false)) return;
    (void)fh_query(c, "author", &author);
    (void)fh_query(c, "search", &search);
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (s = c->hub->spaces; s; s = s->next) {
        if (!fh_listed(c, s, author.len ? author.ptr : "",
                       search.len ? search.ptr : ""))
            continue;
        if (n >= from && n < from + page) fh_put_info(c, &w, s, true);
        n++;
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
    if (n > from + page) fh_next_page(c, from + page);
    hfsb_buf_free(&author);
    hfsb_buf_free(&search);
}

static void fh_whoami(fh_call *c) {
    hfsb_json_writer w;
    if (!fh_authorized(c, true)) return;
    fh_json(&w, c->reply);
    hfsb_json_put_object(&w);
    fh_text(&w, "type", "user");
    fh_text(&w, "id", "5dfcb1aadd0a9ea6a2e4d4a1");
    fh_text(&w, "name", fh_user(c->hub));
    fh_text(&w, "fullname", "A. User");
    fh_bool(&w, "isPro", true);
    fh_bool(&w, "canPay", true);
    fh_key(&w, "orgs");
    hfsb_json_put_array(&w);
    hfsb_json_put_object(&w);
    fh_text(&w, "type", "org");
    fh_text(&w, "name", "acme");
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    fh_key(&w, "auth");
    hfsb_json_put_object(&w);
    fh_text(&w, "type", "access_token");
    fh_key(&w, "accessToken");
    hfsb_json_put_object(&w);
    fh_text(&w, "displayName", "a token");
    fh_text(&w, "role", "write");
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    fh_done(&w);
}
