/* fake_hub_commit.h - preupload, commits, LFS, logs of a Space. Part of
   fake_hub.h. */

static bool fh_revision(fh_call *c) {
    if (fh_part(c, 5, "main")) return true;
    fh_error(c->reply, 404, "RevisionNotFound",
             "Invalid rev id: only main is there");
    return false;
}

/* Simple patterns of a .gitignore: names with "*". */
static bool fh_ignored(hfsb_str rules, hfsb_str path) {
    size_t slash;
    while ((slash = hfsb_str_find_byte(path, '/')) != HFSB_NPOS)
        path = hfsb_str_slice(path, slash + 1, path.len);
    while (rules.len) {
        size_t   end = hfsb_str_find_byte(rules, '\n');
        hfsb_str rule = hfsb_str_slice(rules, 0, end);
        char     pattern[256];
        fh_copy(pattern, sizeof pattern, rule);
        if (rule.len && fh_match(path, pattern)) return true;
        rules = hfsb_str_slice(rules, end == HFSB_NPOS ? rules.len : end + 1,
                               rules.len);
    }
    return false;
}

/* Large files and those that are not text are for LFS. */
static bool fh_is_lfs(const hfsb_json_value *file) {
    hfsb_buf  bytes = HFSB_INIT;
    hfsb_str  none = HFSB_INIT;
    long long size = hfsb_json_int(hfsb_json_get(file, "size"), 0);
    bool      lfs = hfsb_str_ends(
        hfsb_json_str(hfsb_json_get(file, "path"), none), HFSB_LIT(".bin"));
    if (hfsb_base64_decode(hfsb_json_str(hfsb_json_get(file, "sample"), none),
                           &bytes, NULL) == HFSB_OK &&
        hfsb_str_find_byte(hfsb_buf_str(&bytes), '\0') != HFSB_NPOS)
        lfs = true;
    hfsb_buf_free(&bytes);
    return size > 0 && (lfs || size > 10 * 1024 * 1024);
}

static void fh_preupload(fh_call *c) {
    fh_space              *s = fh_visible(c, true);
    const hfsb_json_value *files = hfsb_json_get(c->json.root, "files");
    hfsb_json_iter         it = hfsb_json_begin(files);
    hfsb_json_writer       w;
    hfsb_str               none = HFSB_INIT;
    if (!s || !fh_revision(c)) return;
    if (hfsb_json_type_of(files) != HFSB_JSON_ARRAY ||
        hfsb_json_count(files) > 1000) {
        fh_error(c->reply, 422, NULL, "\"files\" must be an array");
        return;
    }
    fh_json(&w, c->reply);
    hfsb_json_put_object(&w);
    fh_key(&w, "files");
    hfsb_json_put_array(&w);
    while (hfsb_json_next(&it)) {
        hfsb_str path = hfsb_json_str(hfsb_json_get(it.value, "path"), none);
        const fh_entry *old = fh_entry_find(s->files, path);
        hfsb_json_put_object(&w);
        fh_key(&w, "path");
        hfsb_json_put_str(&w, path);
        fh_text(&w, "uploadMode", fh_is_lfs(it.value) ? "lfs" : "regular");
        fh_bool(&w, "shouldIgnore", fh_ignored(fh_arg(c, "gitIgnore"), path));
        if (old) fh_text(&w, "oid", old->oid);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    fh_text(&w, "commitOid", s->head);
    hfsb_json_put_end(&w);
    fh_done(&w);
}

/* ---- commit ---- */

/* NULL: done; else what is wrong. The whole commit is looked at before any of
   it is done: apply false, then true. */
static const char *fh_commit_line(fh_hub *hub, fh_space *s, hfsb_str line,
                                  bool first, bool apply) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      none = HFSB_INIT, key, path;
    const char   *wrong = NULL;
    if (hfsb_json_parse(line, NULL, &doc, NULL) != HFSB_OK)
        return "a line is not JSON";
    key = hfsb_json_str(hfsb_json_get(doc.root, "key"), none);
    path = hfsb_json_str(
        hfsb_json_get(hfsb_json_get(doc.root, "value"), "path"), none);
    if (first != fh_same(key, "header"))
        wrong = "the header is the first line";
    else if (!first && !path.len) wrong = "\"path\" is required";
    if (fh_same(key, "header")) {
        if (!hfsb_json_str(hfsb_json_get(hfsb_json_get(doc.root, "value"),
                                         "summary"), none).len)
            wrong = "\"summary\" is required";
    } else if (fh_same(key, "file")) {
        if (!wrong && !fh_put_file(apply ? &s->files : NULL,
                                   hfsb_json_get(doc.root, "value")))
            wrong = "\"content\" is not base64";
    } else if (fh_same(key, "lfsFile")) {
        if (!wrong)
            wrong = fh_put_lfs(hub, apply ? &s->files : NULL,
                               hfsb_json_get(doc.root, "value"));
    } else if (fh_same(key, "deletedFile")) {
        if (apply) fh_entry_remove(&s->files, path, false);
    } else if (fh_same(key, "deletedFolder") ||
               fh_same(key, "deletedEntry")) {
        if (apply)
            fh_entry_remove(&s->files, path,
                            hfsb_str_ends(path, HFSB_LIT("/")));
    } else {
        wrong = "an unknown key";
    }
    hfsb_json_free(&doc);
    return wrong;
}

static const char *fh_commit_lines(fh_hub *hub, fh_space *s, hfsb_str body,
                                   bool apply) {
    bool        first = true;
    const char *wrong = NULL;
    while (body.len && !wrong) {
        size_t   end = hfsb_str_find_byte(body, '\n');
        hfsb_str line = hfsb_str_slice(body, 0, end);
        body = hfsb_str_slice(body, end == HFSB_NPOS ? body.len : end + 1,
                              body.len);
        if (!line.len) continue;
        wrong = fh_commit_line(hub, s, line, first, apply);
        first = false;
    }
    return first ? "the header is missing" : wrong;
}

/* parentCommit of the first line is another one than the head. */
static bool fh_commit_stale(const fh_space *s, hfsb_str body) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      parent = HFSB_INIT;
    bool          stale;
    if (hfsb_json_parse(
            hfsb_str_slice(body, 0, hfsb_str_find_byte(body, '\n')), NULL,
            &doc, NULL) != HFSB_OK)
        return false;
    parent = hfsb_json_str(hfsb_json_get(hfsb_json_get(doc.root, "value"),
                                         "parentCommit"), parent);
    stale = parent.len && !fh_same(parent, s->head);
    hfsb_json_free(&doc);
    return stale;
}

static void fh_commit(fh_call *c) {
    fh_space        *s = fh_visible(c, true);
    hfsb_str         body = hfsb_buf_str(&c->record->body);
    const char      *wrong;
    char             url[320];
    hfsb_json_writer w;
    if (!s || !fh_revision(c)) return;
    wrong = fh_commit_lines(c->hub, s, body, false);
    if (!hfsb_str_starts(fh_field(c->record, "Content-Type"),
                         HFSB_LIT("application/x-ndjson")))
        wrong = "Content-Type must be application/x-ndjson";
    if (wrong) {
        fh_error(c->reply, 400, NULL, wrong);
        return;
    }
    if (fh_commit_stale(s, body)) {
        fh_error(c->reply, 412, NULL, fh_fault_text(412));
        return;
    }
    (void)fh_commit_lines(c->hub, s, body, true);
    s->commits++;
    fh_new_head(s);
    fh_time(s->modified, 0);
    fh_rebuild(c->hub, s);
    snprintf(url, sizeof url, "https://huggingface.co/spaces/%.200s/commit/%s",
             s->id.ptr, s->head);
    fh_json(&w, c->reply);
    hfsb_json_put_object(&w);
    fh_bool(&w, "success", true);
    fh_text(&w, "commitOid", s->head);
    fh_text(&w, "commitUrl", url);
    fh_text(&w, "hookOutput", "");
    hfsb_json_put_end(&w);
    fh_done(&w);
}

/* ---- LFS ---- */

/* POST /spaces/{owner}/{name}.git/info/lfs/objects/batch */
static void fh_lfs_batch(fh_call *c) {
    hfsb_json_iter   it = hfsb_json_begin(hfsb_json_get(c->json.root,
                                                        "objects"));
    hfsb_json_writer w;
    hfsb_str         none = HFSB_INIT;
    char             url[256];
    if (!fh_authorized(c, true)) return;
    fh_json(&w, c->reply);
    c->reply->type = "application/vnd.git-lfs+json";
    hfsb_json_put_object(&w);
    fh_text(&w, "transfer", "basic");
    fh_key(&w, "objects");
    hfsb_json_put_array(&w);
    while (hfsb_json_next(&it)) {
        hfsb_str oid = hfsb_json_str(hfsb_json_get(it.value, "oid"), none);
        hfsb_json_put_object(&w);
        fh_key(&w, "oid");
        hfsb_json_put_str(&w, oid);
        fh_int(&w, "size",
               hfsb_json_int(hfsb_json_get(it.value, "size"), 0));
        if (!fh_entry_find(c->hub->store, oid)) {
            snprintf(url, sizeof url,
                     "%s/lfs-store/%.*s?X-Amz-Signature=fake", c->hub->url,
                     (int)oid.len, oid.ptr);
            fh_key(&w, "actions");
            hfsb_json_put_object(&w);
            fh_key(&w, "upload");
            hfsb_json_put_object(&w);
            fh_text(&w, "href", url);
            hfsb_json_put_end(&w);
            hfsb_json_put_end(&w);
        }
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    fh_done(&w);
}

/* PUT /lfs-store/{oid}: a signed address, to which no token belongs. */
static void fh_lfs_put(fh_call *c) {
    if (fh_field(c->record, "Authorization").len) {
        fh_raw(c->reply, 400, "application/xml",
               "<Error><Code>InvalidArgument</Code><Message>Only one auth "
               "mechanism allowed</Message></Error>");
        return;
    }
    fh_entry_put(&c->hub->store, c->parts[1],
                 hfsb_buf_str(&c->record->body));
    fh_raw(c->reply, 200, "", "");
}

/* ---- logs ---- */

/* Lines of a text as events, the last `tail` of them (0: all). */
static void fh_events(fh_call *c, hfsb_str lines, size_t tail) {
    hfsb_json_writer w;
    hfsb_buf         one = HFSB_INIT;
    size_t           n = hfsb_str_count_byte(lines, '\n'), i;
    c->reply->status = 200;
    c->reply->type = "text/event-stream";
    c->reply->stream = true;
    c->reply->open_ms = c->hub->o.log_open_ms;
    for (i = 0; lines.len; i++) {
        size_t end = hfsb_str_find_byte(lines, '\n');
        fh_set(&one, hfsb_str_slice(lines, 0, end));
        fh_put(&one, "\n");
        lines = hfsb_str_slice(lines, end == HFSB_NPOS ? lines.len : end + 1,
                               lines.len);
        if (tail && i + tail < n) continue;
        fh_put(&c->reply->body, "data: ");
        hfsb_json_writer_init(&w, &c->reply->body, NULL);
        hfsb_json_put_object(&w);
        fh_key(&w, "data");
        hfsb_json_put_str(&w, hfsb_buf_str(&one));
        fh_text(&w, "timestamp", "2025-03-07T12:24:18.657Z");
        hfsb_json_put_end(&w);
        fh_done(&w);
        fh_put(&c->reply->body, "\n\n");
    }
    hfsb_buf_free(&one);
}

static size_t fh_tail(const fh_call *c) {
    hfsb_buf text = HFSB_INIT;
    size_t   n = 0;
    if (fh_query(c, "tail", &text)) n = (size_t)atoi(text.ptr);
    hfsb_buf_free(&text);
    return n;
}

static void fh_space_logs(fh_call *c) {
    fh_space *s = fh_visible(c, true);
    bool      build = fh_part(c, 5, "build");
    if (!s) return;
    if (!build && !fh_part(c, 5, "run")) {
        fh_error(c->reply, 404, NULL, "Sorry, we can't find the page you are "
                 "looking for.");
        return;
    }
    fh_put(&c->reply->body, ": keep-alive\n\ndata:\n\n");
    fh_events(c, hfsb_buf_str(build ? &s->build_log : &s->run_log),
              fh_tail(c));
}
