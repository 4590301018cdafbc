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
    hfsb_json_doc    json; /* of the body; root NULL: it is not JSON */
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
    if (s && s->model != fh_part(c, 1, "models")) s = NULL;
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
    if (!s->model) fh_machine_start(hub, s);
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
    bool           model;
    if (!fh_authorized(c, true)) return;
    fh_named(c, &id);
    model = fh_same(fh_arg(c, "type"), "model");
    if (!fh_arg(c, "name").len ||
        (!model && (!fh_same(fh_arg(c, "type"), "space") ||
                    !fh_arg(c, "sdk").len)))
        fh_error(c->reply, 400, NULL,
                 "\"name\", \"type\" and \"sdk\" are required");
    else s = fh_make(c, hfsb_buf_str(&id), false);
    hfsb_buf_free(&id);
    if (!s) return;
    s->model = s->reserved = model;
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
