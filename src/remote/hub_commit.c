/* hub_commit.c - a commit of small files: what has changed, all at once. */
#include "remote_private.h"
#include "../core/core_private.h"

/* One file on its way. */
typedef struct hfsbi_commit_item {
    hfsb_str path;    /* cleaned */
    hfsb_str content; /* ptr NULL: deleted */
    bool     skip;    /* unchanged, or the Hub ignores it */
    bool     same;    /* ... because it is unchanged */
    bool     known;   /* the Hub has answered for it */
} hfsbi_commit_item;

typedef struct hfsbi_committing {
    hfsb_hub          *hub;
    hfsb_str           id;
    const hfsb_commit *commit;
    hfsb_str           revision;
    const hfsb_cancel *cancel;
    hfsbi_commit_item *items;
    size_t             count;
    char               head[48]; /* before it, as far as the Hub says */
} hfsbi_committing;

/* ---- paths ---- */

static hfsb_status hfsbi_commit_bad_path(hfsb_str path, const char *why,
                                         hfsb_err *err) {
    (void)hfsbi_fail(err, HFSB_ARG, 0, "Cannot commit \"");
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, "\": %s.", why);
    return HFSB_ARG;
}

static hfsb_status hfsbi_commit_check_part(hfsb_str path, hfsb_str part,
                                           hfsb_err *err) {
    if (hfsb_str_equal(part, HFSB_LIT("..")) ||
        hfsb_str_equal(part, HFSB_LIT(".")) || !part.len)
        return hfsbi_commit_bad_path(
            path, "a path in a repository has no \"..\", \".\" or \"//\"",
            err);
    if (hfsb_http_same(part, HFSB_LIT(".git")) ||
        hfsb_str_equal(part, HFSB_LIT(".cache")))
        return hfsbi_commit_bad_path(
            path, ".git and .cache cannot be part of a repository", err);
    return HFSB_OK;
}

/* The path as the Hub is told it: a view of the caller's. */
static hfsb_status hfsbi_commit_path(const hfsb_commit_file *file,
                                     hfsb_str *out, hfsb_err *err) {
    hfsb_str    path = hfsb_cstr(file->path), rest;
    hfsb_status status = HFSB_OK;
    size_t      i;
    while (hfsb_str_starts(path, HFSB_LIT("/")) ||
           hfsb_str_starts(path, HFSB_LIT("./")))
        path = hfsb_str_slice(path, *path.ptr == '/' ? 1 : 2, path.len);
    rest = path;
    if (!file->content.ptr && hfsb_str_ends(path, HFSB_LIT("/"))) rest.len--;
    for (i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] < ' ' || path.ptr[i] == 0x7F)
            return hfsbi_commit_bad_path(path, "it has a control byte in it",
                                         err);
    do {
        size_t end = hfsb_str_find_byte(rest, '/');
        status = hfsbi_commit_check_part(hfsb_cstr(file->path),
                                         hfsb_str_slice(rest, 0, end), err);
        if (end == HFSB_NPOS) break;
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    } while (status == HFSB_OK);
    *out = path;
    return status;
}

static hfsb_status hfsbi_commit_items(hfsbi_committing *c, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    size_t      i, n = c->commit->file_count;
    if (!n || !c->commit->summary.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A commit needs files and a summary.");
    c->items =
        (hfsbi_commit_item *)hfsbi_array(&c->hub->alloc, n, sizeof *c->items);
    if (!c->items) return hfsbi_fail_status(err, HFSB_NOMEM, "Commit");
    memset(c->items, 0, n * sizeof *c->items);
    c->count = n;
    for (i = 0; i < n && status == HFSB_OK; i++) {
        c->items[i].content = c->commit->files[i].content;
        status =
            hfsbi_commit_path(&c->commit->files[i], &c->items[i].path, err);
    }
    return status;
}

/* ---- requests ---- */

static hfsb_status hfsbi_commit_begin(const hfsbi_committing *c,
                                      hfsbi_hub_request      *request,
                                      const char *method, const char *part,
                                      const char *what, hfsb_err *err) {
    hfsb_status status;
    hfsbi_hub_begin(c->hub, request, method, c->cancel, "%s %.*s", what,
                    (int)c->id.len, c->id.ptr);
    status = hfsb_buf_printf(&request->target, "/api/spaces/%.*s/%s/",
                             (int)c->id.len, c->id.ptr, part);
    if (status == HFSB_OK)
        status = hfsb_http_encode(c->revision, false, &request->target);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    return status;
}

/* The metadata of a README.md are looked at first: a mistake in them would
   only show as a Space that does not build. */
static hfsb_status hfsbi_commit_readme(const hfsbi_committing *c,
                                       hfsb_str text, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsb_status       status;
    hfsb_json_iter    it;
    doc.alloc = c->hub->alloc;
    hfsbi_hub_begin(c->hub, &request, "POST", c->cancel,
                    "have the metadata of README.md checked");
    request.repeat = true;
    status = hfsb_buf_append(&request.target, HFSB_LIT("/api/validate-yaml"));
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    else {
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_hub_put(&w, "content", text);
        hfsbi_hub_put(&w, "repoType", HFSB_LIT("space"));
        hfsb_json_put_end(&w);
        status = hfsbi_hub_send_json(c->hub, &request, &w, err);
    }
    if (status == HFSB_OK && c->hub->log &&
        hfsb_json_parse(hfsb_buf_str(&request.reply.body), NULL, &doc, NULL) ==
            HFSB_OK) {
        it = hfsb_json_begin(hfsb_json_get(doc.root, "warnings"));
        while (hfsb_json_next(&it)) {
            hfsb_str said = hfsb_json_str(hfsb_json_get(it.value, "message"),
                                          hfsb_cstr(""));
            hfsbi_hub_log(c->hub, "README.md: %.*s",
                          (int)(said.len < 500 ? said.len : 500), said.ptr);
        }
        hfsb_json_free(&doc);
    }
    hfsbi_hub_end(&request);
    return status;
}

/* ---- preupload: what the Hub wants of each file ---- */

enum { HFSBI_COMMIT_AT_ONCE = 256, HFSBI_COMMIT_SAMPLE = 512 };

static hfsb_status hfsbi_commit_ask(const hfsbi_committing *c, size_t from,
                                    size_t to, hfsbi_hub_request *request,
                                    hfsb_err *err) {
    hfsb_buf         sample = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      status = HFSB_OK;
    hfsb_str         ignore = HFSB_INIT;
    size_t           i;
    sample.alloc = c->hub->alloc;
    hfsb_json_writer_init(&w, &request->body, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("files"));
    hfsb_json_put_array(&w);
    for (i = from; i < to && status == HFSB_OK; i++) {
        const hfsbi_commit_item *item = &c->items[i];
        if (!item->content.ptr) continue;
        hfsb_buf_truncate(&sample, 0);
        status = hfsb_base64_encode(
            hfsb_str_slice(item->content, 0, HFSBI_COMMIT_SAMPLE), &sample);
        hfsb_json_put_object(&w);
        hfsbi_hub_put(&w, "path", item->path);
        hfsbi_hub_put(&w, "sample", hfsb_buf_str(&sample));
        hfsb_json_put_key(&w, HFSB_LIT("size"));
        hfsb_json_put_uint(&w, item->content.len);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    for (i = 0; i < c->count; i++)
        if (hfsb_str_equal(c->items[i].path, HFSB_LIT(".gitignore")))
            ignore = c->items[i].content;
    if (ignore.ptr) hfsbi_hub_put(&w, "gitIgnore", ignore);
    hfsb_json_put_end(&w);
    hfsb_buf_free(&sample);
    if (status != HFSB_OK)
        return hfsbi_fail_status(err, status, request->what);
    return hfsbi_hub_send_json(c->hub, request, &w, err);
}

static hfsb_status hfsbi_commit_wants(hfsbi_commit_item     *item,
                                      const hfsb_json_value *file,
                                      hfsb_err              *err) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_str mode = hfsb_json_str(hfsb_json_get(file, "uploadMode"), none);
    hfsb_str oid = hfsb_json_str(hfsb_json_get(file, "oid"), none);
    char     own[HFSBI_SHA1_HEX];
    bool     lfs = hfsb_str_equal(mode, HFSB_LIT("lfs"));
    if (!lfs && !hfsb_str_equal(mode, HFSB_LIT("regular")))
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub's answer to preupload has no uploadMode "
                          "that is known.");
    item->known = true;
    item->skip = hfsb_json_bool(hfsb_json_get(file, "shouldIgnore"), false);
    if (item->skip) return HFSB_OK;
    if (lfs && item->content.len) {
        (void)hfsbi_fail(err, HFSB_REFUSED, 0, "The Hub wants \"");
        hfsbi_err_quote(err, item->path, 200);
        hfsbi_err_add(err, "\" in LFS (it is large or not text), which is not "
                           "supported here. Leave it out, or upload it with "
                           "another client.");
        return HFSB_REFUSED;
    }
    hfsbi_git_blob(item->content, own);
    item->same = item->skip = hfsb_str_equal(oid, hfsb_cstr(own));
    return HFSB_OK;
}

static hfsb_status hfsbi_commit_answer(hfsbi_committing      *c,
                                       const hfsb_json_value *root,
                                       size_t from, size_t to, hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(root, "files"));
    hfsb_status    status = HFSB_OK;
    size_t         i, at = from;
    hfsbi_hub_copy(hfsb_json_get(root, "commitOid"), c->head, sizeof c->head);
    while (status == HFSB_OK && hfsb_json_next(&it)) {
        hfsb_str path = hfsb_json_str(hfsb_json_get(it.value, "path"),
                                      hfsb_str_make("", 0));
        for (i = from; i < to; i++, at++) { /* mostly in order */
            hfsbi_commit_item *item =
                &c->items[at >= to ? at - (to - from) : at];
            if (!item->content.ptr || !hfsb_str_equal(item->path, path))
                continue;
            status = hfsbi_commit_wants(item, it.value, err);
            break;
        }
        at = at >= to ? at - (to - from) : at;
    }
    for (i = from; i < to && status == HFSB_OK; i++)
        if (c->items[i].content.ptr && !c->items[i].known) {
            status = hfsbi_fail(err, HFSB_REMOTE, 0,
                                "The Hub's answer to preupload says nothing "
                                "about \"");
            hfsbi_err_quote(err, c->items[i].path, 200);
            hfsbi_err_add(err, "\".");
        }
    return status;
}

static hfsb_status hfsbi_commit_preupload(hfsbi_committing *c, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    size_t      from, to, i, n;
    for (i = 0; i < c->count; i++) c->items[i].known = false;
    for (from = 0; from < c->count && status == HFSB_OK; from = to) {
        hfsbi_hub_request request;
        hfsb_json_doc     doc = HFSB_INIT;
        for (n = 0, to = from; to < c->count && n < HFSBI_COMMIT_AT_ONCE; to++)
            n += c->items[to].content.ptr ? 1 : 0;
        if (!n) break;
        doc.alloc = c->hub->alloc;
        status = hfsbi_commit_begin(c, &request, "POST", "preupload",
                                    "prepare a commit to", err);
        request.repeat = true;
        request.out = &doc;
        if (status == HFSB_OK)
            status = hfsbi_commit_ask(c, from, to, &request, err);
        if (status == HFSB_OK)
            status = hfsbi_commit_answer(c, doc.root, from, to, err);
        hfsb_json_free(&doc);
        hfsbi_hub_end(&request);
    }
    return status;
}

/* ---- the commit itself: a JSON object a line ---- */

/* "text" in JSON. */
static void hfsbi_commit_put_header(hfsb_buf *sink, const hfsb_commit *commit,
                                    hfsb_str parent) {
    hfsb_buf_append(sink, HFSB_LIT("{\"key\": \"header\", \"value\": "
                                   "{\"summary\": "));
    hfsbi_json_put_quoted(sink, commit->summary);
    hfsb_buf_append(sink, HFSB_LIT(", \"description\": "));
    hfsbi_json_put_quoted(sink, commit->description);
    if (parent.len) {
        hfsb_buf_append(sink, HFSB_LIT(", \"parentCommit\": "));
        hfsbi_json_put_quoted(sink, parent);
    }
    hfsb_buf_append(sink, HFSB_LIT("}}\n"));
}

static void hfsbi_commit_put_item(hfsb_buf                *sink,
                                  const hfsbi_commit_item *item) {
    if (item->skip) return;
    if (!item->content.ptr) {
        hfsb_buf_append(sink, hfsb_str_ends(item->path, HFSB_LIT("/"))
                                  ? HFSB_LIT("{\"key\": \"deletedFolder\"")
                                  : HFSB_LIT("{\"key\": \"deletedFile\""));
        hfsb_buf_append(sink, HFSB_LIT(", \"value\": {\"path\": "));
        hfsbi_json_put_quoted(sink, item->path);
        hfsb_buf_append(sink, HFSB_LIT("}}\n"));
        return;
    }
    hfsb_buf_append(sink, HFSB_LIT("{\"key\": \"file\", \"value\": "
                                   "{\"content\": \""));
    if (sink->status == HFSB_OK)
        sink->status = hfsb_base64_encode(item->content, sink);
    hfsb_buf_append(sink, HFSB_LIT("\", \"path\": "));
    hfsbi_json_put_quoted(sink, item->path);
    hfsb_buf_append(sink, HFSB_LIT(", \"encoding\": \"base64\"}}\n"));
}

/* Sends it once. *unclear: it may have been made all the same. */
static hfsb_status hfsbi_commit_send(hfsbi_committing *c, hfsb_str parent,
                                     hfsb_commit_done *out, bool *unclear,
                                     hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_doc     doc = HFSB_INIT;
    size_t            mark;
    hfsb_status       status;
    size_t            i;
    doc.alloc = c->hub->alloc;
    status =
        hfsbi_commit_begin(c, &request, "POST", "commit", "commit to", err);
    if (status == HFSB_OK) {
        request.has_body = true;
        request.content_type = "application/x-ndjson";
        mark = request.body.len;
        hfsbi_commit_put_header(&request.body, c->commit, parent);
        for (i = 0; i < c->count; i++)
            hfsbi_commit_put_item(&request.body, &c->items[i]);
        status = hfsb_buf_finish(&request.body, mark);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    request.out = &doc;
    if (status == HFSB_OK) status = hfsbi_hub_send(c->hub, &request, err);
    *unclear = request.unclear;
    if (status == HFSB_OK &&
        !hfsb_json_bool(hfsb_json_get(doc.root, "success"), true))
        status =
            hfsbi_hub_odd(c->hub, &request, "it says that it failed", err);
    hfsbi_hub_copy(hfsb_json_get(doc.root, "commitOid"), out->oid,
                   sizeof out->oid);
    hfsb_json_free(&doc);
    hfsbi_hub_end(&request);
    return status;
}

/* The newest commit of the revision. */
static hfsb_status hfsbi_commit_head(hfsbi_committing *c,
                                     hfsb_commit_done *out, hfsb_err *err) {
    hfsb_json_doc  doc = HFSB_INIT;
    const hfsb_str none = HFSB_INIT;
    hfsb_status    status;
    doc.alloc = c->hub->alloc;
    status =
        hfsb_hub_space(c->hub, c->id, c->revision, none, c->cancel, &doc, err);
    if (status != HFSB_OK) return status;
    hfsbi_hub_copy(hfsb_json_get(doc.root, "sha"), out->oid, sizeof out->oid);
    hfsb_json_free(&doc);
    return HFSB_OK;
}

/* ---- lost answers ---- */

/* True when nothing is left to do; deletions: of those, too. */
static bool hfsbi_commit_all(const hfsbi_committing *c, bool deletions) {
    size_t i;
    for (i = 0; i < c->count; i++)
        if (!c->items[i].skip && (c->items[i].content.ptr || deletions))
            return false;
    return true;
}

/* The answer was lost: how do things stand? *moved: there is another commit
   than before; *made: and all files are as they should be. */
static hfsb_status hfsbi_commit_look(hfsbi_committing *c,
                                     hfsb_commit_done *out, bool *moved,
                                     bool *made, hfsb_err *err) {
    char        before[sizeof c->head];
    hfsb_status status;
    memcpy(before, c->head, sizeof before);
    c->head[0] = '\0';
    status = hfsbi_commit_preupload(c, err);
    if (status == HFSB_OK && !c->head[0]) {
        status = hfsbi_commit_head(c, out, err);
        memcpy(c->head, out->oid, sizeof c->head);
    }
    *moved = c->head[0] && strcmp(before, c->head) != 0;
    *made = *moved && hfsbi_commit_all(c, false);
    memcpy(out->oid, c->head, sizeof out->oid);
    return status;
}

/* What became of it, told at the end of *err. True: send it again, which can
   not make it twice, since the Hub takes it on top of the old head only. */
static bool hfsbi_commit_unsure(hfsbi_committing *c, size_t n,
                                hfsb_commit_done *out, hfsb_status *status,
                                hfsb_err *err) {
    hfsb_err why = HFSB_INIT;
    bool     moved, made;
    if (hfsbi_commit_look(c, out, &moved, &made, &why) != HFSB_OK) {
        hfsbi_err_add(err, " Whether the commit was made is not known.");
        return false;
    }
    if (made) {
        hfsbi_hub_log(c->hub,
                      "The Hub's answer was lost, but the commit %s "
                      "was made.",
                      out->oid);
        *status = hfsbi_ok(err);
        return false;
    }
    hfsbi_err_add(err, " The commit was not made.");
    if (moved || !c->head[0] || n >= c->hub->tries) return false;
    if (hfsb_cancel_wait(c->cancel, hfsbi_hub_delay(c->hub, n))) return true;
    *status = hfsbi_fail(err, HFSB_CANCELLED, 0,
                         "Cancelled: the commit to %.*s was not made.",
                         (int)c->id.len, c->id.ptr);
    return false;
}

static hfsb_status hfsbi_commit_make(hfsbi_committing *c,
                                     hfsb_commit_done *out, hfsb_err *err) {
    hfsb_str    parent = c->commit->parent;
    hfsb_status status = HFSB_OK;
    bool        unclear = false;
    size_t      n;
    if (!c->head[0]) { /* nothing but deletions */
        status = hfsbi_commit_head(c, out, err);
        memcpy(c->head, out->oid, sizeof c->head);
    }
    for (n = 1; status == HFSB_OK; n++) {
        status = hfsbi_commit_send(c, parent, out, &unclear, err);
        if (status == HFSB_STALE && n > 1) unclear = true;
        if (status == HFSB_OK || !unclear || status == HFSB_CANCELLED ||
            status == HFSB_NOMEM ||
            !hfsbi_commit_unsure(c, n, out, &status, err))
            return status;
        status = HFSB_OK;
        if (!parent.len) parent = hfsb_cstr(c->head);
    }
    return status;
}

/* ---- all of it ---- */

static hfsb_status hfsbi_commit_run(hfsbi_committing *c, hfsb_commit_done *out,
                                    hfsb_err *err) {
    hfsb_status status = hfsbi_commit_items(c, err);
    size_t      i;
    for (i = 0; i < c->count && status == HFSB_OK; i++)
        if (c->items[i].content.ptr &&
            hfsb_str_equal(c->items[i].path, HFSB_LIT("README.md")))
            status = hfsbi_commit_readme(c, c->items[i].content, err);
    if (status == HFSB_OK) status = hfsbi_commit_preupload(c, err);
    if (status != HFSB_OK) return status;
    out->unchanged = hfsbi_commit_all(c, true);
    if (!out->unchanged) status = hfsbi_commit_make(c, out, err);
    if (status == HFSB_OK && (out->unchanged || !out->oid[0]))
        status = hfsbi_commit_head(c, out, err);
    return status;
}

hfsb_status hfsb_hub_commit(hfsb_hub *hub, hfsb_str id,
                            const hfsb_commit *commit,
                            const hfsb_cancel *cancel, hfsb_commit_done *out,
                            hfsb_err *err) {
    hfsbi_committing c = HFSB_INIT;
    hfsb_err         own = HFSB_INIT; /* what is added must have a place */
    hfsb_status      status = hfsb_space_check(id, err);
    memset(out, 0, sizeof *out);
    if (status != HFSB_OK) return status;
    c.hub = hub;
    c.id = id;
    c.commit = commit;
    c.cancel = cancel;
    c.revision = commit->revision.len ? commit->revision : HFSB_LIT("main");
    status = hfsbi_commit_run(&c, out, &own);
    hfsbi_array_free(&hub->alloc, c.items, c.count, sizeof *c.items);
    if (status != HFSB_OK) memset(out, 0, sizeof *out);
    if (err) *err = own;
    return status == HFSB_OK ? hfsbi_ok(err) : status;
}
