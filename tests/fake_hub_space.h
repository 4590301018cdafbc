/* fake_hub_space.h - who is asking, and the calls about Spaces. Part of
   fake_hub.h. */

enum { FH_PARTS = 8 };

typedef struct fh_call { /* one request to the Hub */
    fh_hub          *hub;
    const fh_record *record;
    fh_reply        *reply;
    hfsb_str         parts[FH_PARTS]; /* of the path, decoded */
    size_t           count;
    hfsb_buf         text; /* that they show */
    hfsb_str         query;
    hfsb_json_doc    json; /* of the body; root NULL: it is none */
} fh_call;

static bool fh_method(const fh_call *c, const char *method) {
    return fh_is(&c->record->method, method);
}

static bool fh_part(const fh_call *c, size_t n, const char *text) {
    return n < c->count && fh_same(c->parts[n], text);
}

static hfsb_str fh_arg(const fh_call *c, const char *key) {
    return hfsb_json_str(hfsb_json_get(c->json.root, key),
                         hfsb_str_make("", 0));
}

/* Appends a value of the query; false: there is none. */
static bool fh_query(const fh_call *c, const char *key, hfsb_buf *out) {
    return hfsb_http_query_find(c->query, key, out, NULL) == HFSB_OK;
}

static bool fh_owns(const fh_hub *hub, hfsb_str owner) {
    return fh_same(owner, fh_user(hub)) || fh_same(owner, "acme");
}

static hfsb_str fh_owner(hfsb_str id) {
    return hfsb_str_slice(id, 0, hfsb_str_find_byte(id, '/'));
}

/* A token that is there must be good; false: the answer says so. */
static bool fh_authorized(fh_call *c, bool needed) {
    if (fh_trusted(c->hub, c->record)) return true;
    if (fh_bearer(c->record, "Authorization").len)
        fh_error(c->reply, 401, NULL,
                 "Invalid credentials in Authorization header");
    else if (needed)
        fh_error(c->reply, 401, NULL, "Invalid username or password.");
    else return true;
    return false;
}

/* The Space that the path names, when the caller may see it (change: and
   change it); NULL: the answer says why not. */
static fh_space *fh_visible(fh_call *c, bool change) {
    hfsb_buf  id = HFSB_INIT;
    fh_space *s;
    if (!fh_authorized(c, change)) return NULL;
    FH_MUST(hfsb_buf_append(&id, c->parts[2]));
    fh_put(&id, "/");
    FH_MUST(hfsb_buf_append(&id, c->parts[3]));
    s = fh_find(c->hub, hfsb_buf_str(&id));
    if (s && s->absent) {
        s->absent--;
        s = NULL;
    }
    if (s && s->hidden &&
        !(fh_trusted(c->hub, c->record) &&
          fh_owns(c->hub, fh_owner(hfsb_buf_str(&s->id)))))
        s = NULL;
    if (!s) {
        fh_no_repo(c->reply);
        if (!fh_trusted(c->hub, c->record)) {
            hfsb_buf_truncate(&c->reply->fields, 0);
            fh_error(c->reply, 401, NULL, "Invalid username or password.");
        }
    } else if (change && !fh_owns(c->hub, fh_owner(hfsb_buf_str(&s->id)))) {
        fh_error(c->reply, 403, NULL,
                 "You don't have the rights to change this Space");
        s = NULL;
    }
    hfsb_buf_free(&id);
    return s;
}

/* ---- runtime ---- */

static void fh_put_runtime(hfsb_json_writer *w, const fh_space *s,
                           const fh_stage *stage) {
    char domain[160];
    bool runs = fh_runs(stage->name);
    bool flat = !strcmp(s->sdk, "static");
    fh_subdomain(hfsb_buf_str(&s->id), domain);
    strcat(domain, ".hf.space");
    hfsb_json_put_object(w);
    fh_text(w, "stage", stage->name);
    if (strstr(stage->name, "ERROR"))
        fh_text(w, "errorMessage", "Job failed with exit code: 1");
    fh_key(w, "hardware");
    hfsb_json_put_object(w);
    fh_text_or_null(w, "current", flat ? "" : stage->hardware);
    fh_text_or_null(w, "requested", flat ? "" : s->hardware);
    hfsb_json_put_end(w);
    fh_text_or_null(w, "storage", "");
    if (!flat) fh_int(w, "gcTimeout", s->sleep ? s->sleep : 172800);
    fh_key(w, "replicas");
    hfsb_json_put_object(w);
    fh_int(w, "requested", 1);
    if (runs) fh_int(w, "current", 1);
    hfsb_json_put_end(w);
    if (!flat) {
        fh_bool(w, "devMode", false);
        fh_key(w, "domains");
        hfsb_json_put_array(w);
        hfsb_json_put_object(w);
        fh_text(w, "domain", domain);
        fh_text(w, "stage", "READY");
        hfsb_json_put_end(w);
        hfsb_json_put_end(w);
        if (*stage->sha) fh_text(w, "sha", stage->sha);
    }
    hfsb_json_put_end(w);
}

/* stage NULL: the one it is in. */
static void fh_reply_runtime(fh_call *c, fh_space *s, const char *stage) {
    hfsb_json_writer w;
    fh_stage         now = fh_stage_now(c->hub, s, false);
    if (stage) {
        memset(&now, 0, sizeof now);
        fh_copy(now.name, sizeof now.name, hfsb_cstr(stage));
    }
    fh_json(&w, c->reply);
    fh_put_runtime(&w, s, &now);
    fh_done(&w);
}

static void fh_get_runtime(fh_call *c) {
    hfsb_json_writer w;
    fh_stage         now;
    fh_space        *s = fh_visible(c, false);
    if (!s) return;
    if (s->unknown) {
        s->unknown--;
        fh_no_repo(c->reply);
        return;
    }
    now = fh_stage_now(c->hub, s, true);
    if (now.status == 404) {
        fh_no_repo(c->reply);
    } else if (now.status) {
        fh_error(c->reply, now.status, NULL, fh_fault_text(now.status));
    } else {
        fh_json(&w, c->reply);
        fh_put_runtime(&w, s, &now);
        fh_done(&w);
    }
}

/* What the Hub does after a commit or a restart. */
static void fh_rebuild(fh_hub *hub, fh_space *s) {
    const char *stages = hub->stages.len ? hub->stages.ptr
                         : hub->o.stages ? hub->o.stages
                         : hub->o.prompt ? "RUNNING"
                                 : "BUILDING,BUILDING,APP_STARTING,RUNNING";
    fh_stages_begin(s, stages);
    fh_machine_start(hub, s);
}

static void fh_change_runtime(fh_call *c, const char *what) {
    fh_space *s = fh_visible(c, true);
    if (!s) return;
    if (!strcmp(what, "pause")) {
        fh_machine_stop(c->hub, s);
        fh_stages_begin(s, "PAUSED");
        fh_reply_runtime(c, s, "PAUSED");
    } else if (!strcmp(what, "restart")) {
        fh_rebuild(c->hub, s);
        if (!c->hub->o.prompt) s->asleep = 1;
        fh_reply_runtime(c, s, "BUILDING");
    } else if (!strcmp(what, "sleeptime")) {
        s->sleep = hfsb_json_int(hfsb_json_get(c->json.root, "seconds"), 0);
        if (!s->sleep || s->sleep < -1)
            fh_error(c->reply, 400, NULL, "\"seconds\" must be a number");
        else fh_reply_runtime(c, s, NULL);
    } else if (!fh_arg(c, "flavor").len) {
        fh_error(c->reply, 400, NULL, "\"flavor\" is required");
    } else {
        fh_copy(s->hardware, sizeof s->hardware, fh_arg(c, "flavor"));
        s->sleep = hfsb_json_int(
            hfsb_json_get(c->json.root, "sleepTimeSeconds"), s->sleep);
        fh_rebuild(c->hub, s);
        fh_reply_runtime(c, s, "BUILDING");
    }
}

/* ---- secrets and variables ---- */

static bool fh_key_good(hfsb_str key) {
    size_t i;
    for (i = 0; i < key.len; i++) {
        char k = key.ptr[i];
        bool letter = (k >= 'a' && k <= 'z') || (k >= 'A' && k <= 'Z');
        if (!letter && !(i && (k == '_' || (k >= '0' && k <= '9'))))
            return false;
    }
    return key.len > 0;
}

static void fh_reply_pairs(fh_call *c, const fh_pair *list, bool values) {
    hfsb_json_writer w;
    fh_json(&w, c->reply);
    hfsb_json_put_object(&w);
    for (; list; list = list->next) {
        hfsb_json_put_key(&w, hfsb_buf_str(&list->key));
        hfsb_json_put_object(&w);
        if (values) {
            fh_key(&w, "value");
            hfsb_json_put_str(&w, hfsb_buf_str(&list->value));
        }
        if (list->description.len)
            fh_text(&w, "description", list->description.ptr);
        fh_text(&w, "updatedAt", list->updated);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
}

static void fh_pairs(fh_call *c, bool secret) {
    bool      get = fh_method(c, "GET");
    fh_space *s = fh_visible(c, !get || secret);
    fh_pair **list;
    hfsb_str  key = fh_arg(c, "key"), description = HFSB_INIT;
    if (!s) return;
    list = secret ? &s->secrets : &s->variables;
    if (!get && !fh_key_good(key)) {
        fh_error(c->reply, 400, NULL, "\"key\" with value \"\" fails to match "
                 "the required pattern: /^[a-zA-Z][_a-zA-Z0-9]*$/");
        return;
    }
    description = hfsb_json_str(hfsb_json_get(c->json.root, "description"),
                                description);
    if (fh_method(c, "DELETE")) fh_pair_remove(list, key);
    else if (!get) fh_pair_put(list, key, fh_arg(c, "value"), description);
    if (secret && !get) fh_raw(c->reply, 200, FH_JSON, "{}");
    else fh_reply_pairs(c, *list, !secret);
}

/* The arrays that duplicate and create may have. */
static void fh_take_pairs(fh_pair **list, const hfsb_json_value *array) {
    hfsb_json_iter it = hfsb_json_begin(array);
    hfsb_str       none = HFSB_INIT;
    while (hfsb_json_next(&it))
        fh_pair_put(list,
                    hfsb_json_str(hfsb_json_get(it.value, "key"), none),
                    hfsb_json_str(hfsb_json_get(it.value, "value"), none),
                    hfsb_json_str(hfsb_json_get(it.value, "description"),
                                  none));
}

/* ---- making and removing ---- */

static void fh_page_of(hfsb_str id, char out[256]) {
    snprintf(out, 256, "https://huggingface.co/spaces/%.*s", (int)id.len,
             id.ptr);
}

static void fh_reply_url(fh_call *c, int status, const char *error,
                         const fh_space *s, bool all) {
    hfsb_json_writer w;
    char             url[256];
    fh_page_of(hfsb_buf_str(&s->id), url);
    fh_json(&w, c->reply);
    c->reply->status = status;
    hfsb_json_put_object(&w);
    if (error) fh_text(&w, "error", error);
    fh_text(&w, "url", url);
    if (all) {
        fh_text(&w, "name", s->id.ptr);
        fh_text(&w, "id", s->object);
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
}

/* A new Space with what the body says; NULL: the answer says why not. */
static fh_space *fh_make(fh_call *c, hfsb_str id, bool hidden) {
    fh_space              *s = fh_find(c->hub, id);
    const hfsb_json_value *root = c->json.root;
    if (!fh_owns(c->hub, fh_owner(id))) {
        fh_error(c->reply, 403, NULL, "You don't have the rights to create a "
                 "space under this namespace");
        return NULL;
    }
    if (s) {
        fh_reply_url(c, 409, "You already created this space repo", s, false);
        return NULL;
    }
    if (hfsb_json_get(root, "private") && hfsb_json_get(root, "visibility")) {
        fh_error(c->reply, 400, NULL,
                 "\"private\" cannot be specified along \"visibility\"");
        return NULL;
    }
    s = fh_space_new(c->hub, id);
    s->hidden = hfsb_json_bool(hfsb_json_get(root, "private"), hidden);
    if (fh_arg(c, "visibility").len)
        s->hidden = fh_same(fh_arg(c, "visibility"), "private");
    if (fh_arg(c, "hardware").len)
        fh_copy(s->hardware, sizeof s->hardware, fh_arg(c, "hardware"));
    s->sleep = hfsb_json_int(hfsb_json_get(root, "sleepTimeSeconds"), 0);
    fh_take_pairs(&s->secrets, hfsb_json_get(root, "secrets"));
    if (hfsb_json_get(root, "volumes"))
        FH_MUST(hfsb_json_write(hfsb_json_get(root, "volumes"), NULL,
                                &s->volumes, NULL));
    return s;
}

static void fh_duplicate(fh_call *c) {
    fh_space *from = fh_visible(c, false), *s;
    fh_entry *e;
    fh_pair  *p;
    hfsb_str  id = fh_arg(c, "repository");
    if (!from) return;
    hfsb_buf_truncate(&c->reply->fields, 0);
    if (!fh_authorized(c, true)) return;
    if (hfsb_str_count_byte(id, '/') != 1) {
        fh_error(c->reply, 400, NULL, "\"repository\" is required");
        return;
    }
    s = fh_make(c, id, from->hidden);
    if (!s) return;
    for (e = from->files; e; e = e->next)
        fh_entry_put(&s->files, hfsb_buf_str(&e->path),
                     hfsb_buf_str(&e->content));
    for (p = from->variables; p; p = p->next)
        fh_pair_put(&s->variables, hfsb_buf_str(&p->key),
                    hfsb_buf_str(&p->value), hfsb_buf_str(&p->description));
    fh_take_pairs(&s->variables, hfsb_json_get(c->json.root, "variables"));
    fh_reply_url(c, 200, NULL, s, false);
}

/* "owner/name" of {"name","organization"}. */
static void fh_named(fh_call *c, hfsb_buf *id) {
    hfsb_str owner = fh_arg(c, "organization");
    if (hfsb_str_find_byte(fh_arg(c, "name"), '/') == HFSB_NPOS) {
        FH_MUST(hfsb_buf_append(
            id, owner.len ? owner : hfsb_cstr(fh_user(c->hub))));
        fh_put(id, "/");
    }
    FH_MUST(hfsb_buf_append(id, fh_arg(c, "name")));
}

static void fh_create(fh_call *c) {
    hfsb_buf       id = HFSB_INIT;
    hfsb_json_iter it;
    fh_space      *s = NULL;
    if (!fh_authorized(c, true)) return;
    fh_named(c, &id);
    if (!fh_arg(c, "name").len || !fh_same(fh_arg(c, "type"), "space") ||
        !fh_arg(c, "sdk").len)
        fh_error(c->reply, 400, NULL,
                 "\"name\", \"type\" and \"sdk\" are required");
    else s = fh_make(c, hfsb_buf_str(&id), false);
    hfsb_buf_free(&id);
    if (!s) return;
    fh_copy(s->sdk, sizeof s->sdk, fh_arg(c, "sdk"));
    fh_take_pairs(&s->variables, hfsb_json_get(c->json.root, "variables"));
    fh_stages_begin(s, strcmp(s->sdk, "static") ? "NO_APP_FILE" : "RUNNING");
    it = hfsb_json_begin(hfsb_json_get(c->json.root, "files"));
    while (hfsb_json_next(&it))
        fh_put_file(&s->files, it.value);
    if (s->files) fh_rebuild(c->hub, s);
    fh_reply_url(c, 200, NULL, s, true);
}

static void fh_delete(fh_call *c) {
    hfsb_buf  id = HFSB_INIT;
    fh_space *s;
    if (!fh_authorized(c, true)) return;
    fh_named(c, &id);
    s = fh_find(c->hub, hfsb_buf_str(&id));
    hfsb_buf_free(&id);
    if (!s || !fh_same(fh_arg(c, "type"), "space")) {
        fh_no_repo(c->reply);
    } else if (!fh_owns(c->hub, fh_owner(hfsb_buf_str(&s->id)))) {
        fh_error(c->reply, 403, NULL, "You don't have the rights to delete "
                 "this repository");
    } else {
        fh_machine_stop(c->hub, s);
        s->gone = true;
        fh_raw(c->reply, 200, "text/plain; charset=utf-8", "OK");
    }
}

static void fh_volumes(fh_call *c) {
    fh_space              *s = fh_visible(c, true);
    const hfsb_json_value *list = hfsb_json_get(c->json.root, "volumes");
    if (!s) return;
    if (fh_method(c, "PUT") && !hfsb_json_count(list)) {
        fh_error(c->reply, 400, NULL, "\"volumes\" must contain at least 1 "
                 "items");
        return;
    }
    hfsb_buf_truncate(&s->volumes, 0);
    if (fh_method(c, "PUT"))
        FH_MUST(hfsb_json_write(list, NULL, &s->volumes, NULL));
    fh_raw(c->reply, 200, FH_JSON, "{}");
}

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
    if (s->gone) return false;
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
