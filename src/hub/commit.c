/* commit.c - a commit of small files: only what changed, all or nothing.

       check paths --> README.md valid? --> preupload --> commit
                                                ^            | reply lost
                                                +--- look ---+

   preupload lists the files, and the Hub answers which of them it has,
   ignores, or wants in LFS. Only the others are sent. When the reply to the
   commit is lost, another preupload shows whether the head has moved and
   contains the files. If the head has not moved, the commit is sent again on
   top of exactly that head, so that it cannot be made twice. */
#include "hub_private.h"

/* One file of the commit. */
typedef struct hfsbi_commit_item {
    hfsb_str path;    /* without "/" and "./" in front */
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
    char               head[48]; /* before the commit; "": not known */
} hfsbi_committing;

/* ---- paths ---- */

/* HFSB_ARG for a path. */
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
            path,
            "a path in a repository must not contain \"..\", \".\" or \"//\"",
            err);
    if (hfsb_http_same(part, HFSB_LIT(".git")) ||
        hfsb_str_equal(part, HFSB_LIT(".cache")))
        return hfsbi_commit_bad_path(
            path, ".git and .cache cannot be part of a repository", err);
    return HFSB_OK;
}

/* Checks the path; *out is the part of it that the Hub gets. */
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
            return hfsbi_commit_bad_path(path, "it contains a control byte",
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

/* Allocates c->items and checks all paths. */
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

/* ---- README.md ---- */

/* Logs the warnings about the metadata. */
static void hfsbi_commit_log_warnings(const hfsb_hub *hub, hfsb_str reply) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    doc.alloc = hub->alloc;
    if (!hub->log || hfsb_json_parse(reply, NULL, &doc, NULL) != HFSB_OK)
        return;
    it = hfsb_json_begin(hfsb_json_get(doc.root, "warnings"));
    while (hfsb_json_next(&it)) {
        hfsb_str text = hfsbi_json_get_str(it.value, "message");
        hfsbi_hub_log(hub, "README.md: %.*s",
                      (int)(text.len < 500 ? text.len : 500), text.ptr);
    }
    hfsb_json_free(&doc);
}

/* Has the Hub check the metadata of a README.md: a mistake in them would only
   show later, as a Space that does not build. */
static hfsb_status hfsbi_commit_readme(const hfsbi_committing *c,
                                       hfsb_str text, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_json_writer *w;
    hfsb_status status = hfsbi_hub_begin(c->hub, &request, HFSBI_HUB_VALIDATE,
                                         none, none, c->cancel, err);
    if (status == HFSB_OK) {
        w = hfsbi_hub_object(&request);
        hfsbi_hub_put(w, "content", text);
        hfsbi_hub_put(w, "repoType",
                      c->commit->model ? HFSB_LIT("model")
                                       : HFSB_LIT("space"));
        hfsb_json_put_end(w);
        status = hfsbi_hub_send(&request, err);
    }
    if (status == HFSB_OK)
        hfsbi_commit_log_warnings(c->hub, hfsb_buf_str(&request.reply.body));
    hfsbi_hub_end(&request);
    return status;
}

/* ---- preupload: what to do with each file ---- */

enum {
    HFSBI_COMMIT_BATCH = 256, /* files in one preupload */
    HFSBI_COMMIT_SAMPLE = 512 /* bytes of each */
};

/* Sends the items [from, to) as a preupload. */
static hfsb_status hfsbi_commit_ask(const hfsbi_committing *c, size_t from,
                                    size_t to, hfsbi_hub_request *request,
                                    hfsb_err *err) {
    hfsb_buf          sample = HFSB_INIT;
    hfsb_json_writer *w = hfsbi_hub_object(request);
    hfsb_status       status = HFSB_OK;
    size_t            i;
    sample.alloc = c->hub->alloc;
    hfsb_json_put_key(w, HFSB_LIT("files"));
    hfsb_json_put_array(w);
    for (i = from; i < to && status == HFSB_OK; i++) {
        const hfsbi_commit_item *item = &c->items[i];
        if (!item->content.ptr) continue;
        hfsb_buf_truncate(&sample, 0);
        status = hfsb_base64_encode(
            hfsb_str_slice(item->content, 0, HFSBI_COMMIT_SAMPLE), &sample);
        hfsb_json_put_object(w);
        hfsbi_hub_put(w, "path", item->path);
        hfsbi_hub_put(w, "sample", hfsb_buf_str(&sample));
        hfsb_json_put_key(w, HFSB_LIT("size"));
        hfsb_json_put_uint(w, item->content.len);
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
    for (i = 0; i < c->count; i++)
        if (c->items[i].content.ptr &&
            hfsb_str_equal(c->items[i].path, HFSB_LIT(".gitignore")))
            hfsbi_hub_put(w, "gitIgnore", c->items[i].content);
    hfsb_json_put_end(w);
    hfsb_buf_free(&sample);
    if (status != HFSB_OK)
        return hfsbi_fail_status(err, status, request->what);
    return hfsbi_hub_send(request, err);
}

/* Applies the Hub's answer about one file. */
static hfsb_status hfsbi_commit_apply(hfsbi_commit_item     *item,
                                      const hfsb_json_value *file,
                                      hfsb_err              *err) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_str mode = hfsb_json_str(hfsb_json_get(file, "uploadMode"), none);
    hfsb_str oid = hfsb_json_str(hfsb_json_get(file, "oid"), none);
    char     own[HFSBI_SHA1_HEX];
    bool     lfs = hfsb_str_equal(mode, HFSB_LIT("lfs"));
    if (!lfs && !hfsb_str_equal(mode, HFSB_LIT("regular")))
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub's answer to preupload has no known "
                          "uploadMode.");
    item->known = true;
    item->skip = hfsb_json_bool(hfsb_json_get(file, "shouldIgnore"), false);
    if (item->skip) return HFSB_OK;
    if (lfs && item->content.len) {
        (void)hfsbi_fail(err, HFSB_REFUSED, 0, "The Hub wants \"");
        hfsbi_err_quote(err, item->path, 200);
        hfsbi_err_add(err,
                      "\" in LFS (it is large or not text), which is not "
                      "supported. Leave it out, or upload it with another "
                      "client.");
        return HFSB_REFUSED;
    }
    hfsbi_git_blob(item->content, own);
    item->same = item->skip = hfsb_str_equal(oid, hfsb_cstr(own));
    return HFSB_OK;
}

/* Applies the Hub's answer about the items [from, to), which must cover all of
   them. */
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
            status = hfsbi_commit_apply(item, it.value, err);
            break;
        }
        at = at >= to ? at - (to - from) : at;
    }
    for (i = from; i < to && status == HFSB_OK; i++)
        if (c->items[i].content.ptr && !c->items[i].known) {
            status =
                hfsbi_fail(err, HFSB_REMOTE, 0,
                           "The Hub's answer to preupload does not mention "
                           "\"");
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
        for (n = 0, to = from; to < c->count && n < HFSBI_COMMIT_BATCH; to++)
            n += c->items[to].content.ptr ? 1 : 0;
        if (!n) break;
        doc.alloc = c->hub->alloc;
        status = hfsbi_hub_begin(c->hub, &request,
                                 c->commit->model ? HFSBI_HUB_MODEL_PREUPLOAD
                                                  : HFSBI_HUB_PREUPLOAD,
                                 c->id, c->revision, c->cancel, err);
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

static void hfsbi_commit_put_header(hfsb_buf *out, const hfsb_commit *commit,
                                    hfsb_str parent) {
    hfsb_buf_append(out, HFSB_LIT("{\"key\": \"header\", \"value\": "
                                  "{\"summary\": "));
    hfsbi_json_put_quoted(out, commit->summary);
    hfsb_buf_append(out, HFSB_LIT(", \"description\": "));
    hfsbi_json_put_quoted(out, commit->description);
    if (parent.len) {
        hfsb_buf_append(out, HFSB_LIT(", \"parentCommit\": "));
        hfsbi_json_put_quoted(out, parent);
    }
    hfsb_buf_append(out, HFSB_LIT("}}\n"));
}

static void hfsbi_commit_put_item(hfsb_buf                *out,
                                  const hfsbi_commit_item *item) {
    if (item->skip) return;
    if (!item->content.ptr) {
        hfsb_buf_append(out, hfsb_str_ends(item->path, HFSB_LIT("/"))
                                 ? HFSB_LIT("{\"key\": \"deletedFolder\"")
                                 : HFSB_LIT("{\"key\": \"deletedFile\""));
        hfsb_buf_append(out, HFSB_LIT(", \"value\": {\"path\": "));
        hfsbi_json_put_quoted(out, item->path);
        hfsb_buf_append(out, HFSB_LIT("}}\n"));
        return;
    }
    hfsb_buf_append(out, HFSB_LIT("{\"key\": \"file\", \"value\": "
                                  "{\"content\": \""));
    if (out->status == HFSB_OK)
        out->status = hfsb_base64_encode(item->content, out);
    hfsb_buf_append(out, HFSB_LIT("\", \"path\": "));
    hfsbi_json_put_quoted(out, item->path);
    hfsb_buf_append(out, HFSB_LIT(", \"encoding\": \"base64\"}}\n"));
}

/* Sends the commit once. *unclear: it may have been made all the same. */
static hfsb_status hfsbi_commit_send(hfsbi_committing *c, hfsb_str parent,
                                     hfsb_commit_done *out, bool *unclear,
                                     hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_doc     doc = HFSB_INIT;
    size_t            i;
    hfsb_status       status = hfsbi_hub_begin(
              c->hub, &request,
        c->commit->model ? HFSBI_HUB_MODEL_COMMIT : HFSBI_HUB_COMMIT, c->id,
              c->revision, c->cancel, err);
    doc.alloc = c->hub->alloc;
    if (status == HFSB_OK) {
        request.body_type = "application/x-ndjson";
        hfsbi_commit_put_header(&request.body, c->commit, parent);
        for (i = 0; i < c->count; i++)
            hfsbi_commit_put_item(&request.body, &c->items[i]);
        status = request.body.status;
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    request.out = &doc;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    *unclear = request.unclear;
    if (status == HFSB_OK &&
        !hfsb_json_bool(hfsb_json_get(doc.root, "success"), true))
        status = hfsbi_hub_bad_reply(&request, "it says that it failed", err);
    hfsbi_hub_copy(hfsb_json_get(doc.root, "commitOid"), out->oid,
                   sizeof out->oid);
    hfsb_json_free(&doc);
    hfsbi_hub_end(&request);
    return status;
}

/* Gets the newest commit of the revision into out->oid. */
static hfsb_status hfsbi_commit_head(hfsbi_committing *c,
                                     hfsb_commit_done *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsb_status       status = hfsbi_hub_begin(
              c->hub, &request,
        c->commit->model ? HFSBI_HUB_MODEL_REVISION : HFSBI_HUB_REVISION,
              c->id, c->revision, c->cancel, err);
    doc.alloc = c->hub->alloc;
    request.out = &doc;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    if (status != HFSB_OK) return status;
    hfsbi_hub_copy(hfsb_json_get(doc.root, "sha"), out->oid, sizeof out->oid);
    hfsb_json_free(&doc);
    return HFSB_OK;
}

/* ---- lost replies ---- */

/* True when every file is skipped; with `deletions` also every deletion. */
static bool hfsbi_commit_is_done(const hfsbi_committing *c, bool deletions) {
    size_t i;
    for (i = 0; i < c->count; i++)
        if (!c->items[i].skip && (c->items[i].content.ptr || deletions))
            return false;
    return true;
}

/* Compares the repository with the commit. *moved: the head is not the one
   from before; *made: and all files have the new content. */
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
    *made = *moved && hfsbi_commit_is_done(c, false);
    memcpy(out->oid, c->head, sizeof out->oid);
    return status;
}

/* The reply to the commit was lost, and *err says so: finds out whether it was
   made, and adds that to *err. True: send it again on top of c->head. */
static bool hfsbi_commit_settle(hfsbi_committing *c, hfsbi_retry *retry,
                                hfsb_commit_done *out, hfsb_status *status,
                                hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status wait;
    bool        moved, made;
    if (hfsbi_commit_look(c, out, &moved, &made, &why) != HFSB_OK) {
        hfsbi_err_add(err, " Whether the commit was made is not known.");
        return false;
    }
    if (made) {
        hfsbi_hub_log(c->hub,
                      "The Hub's answer was lost, but the commit %s was made.",
                      out->oid);
        *status = hfsbi_ok(err);
        return false;
    }
    hfsbi_err_add(err, " The commit was not made.");
    if (moved || !c->head[0]) return false;
    wait = hfsbi_retry_again(retry);
    if (wait == HFSB_CANCELLED)
        *status = hfsbi_fail(err, wait, 0,
                             "Cancelled: the commit to %.*s was not made.",
                             (int)c->id.len, c->id.ptr);
    return wait == HFSB_OK;
}

static hfsb_status hfsbi_commit_make(hfsbi_committing *c,
                                     hfsb_commit_done *out, hfsb_err *err) {
    hfsbi_retry retry = c->hub->retry;
    hfsb_str    parent = c->commit->parent;
    hfsb_status status = HFSB_OK;
    bool        unclear = false;
    retry.cancel = c->cancel;
    if (!c->head[0]) { /* only deletions: there was no preupload */
        status = hfsbi_commit_head(c, out, err);
        memcpy(c->head, out->oid, sizeof c->head);
    }
    while (status == HFSB_OK) {
        status = hfsbi_commit_send(c, parent, out, &unclear, err);
        /* at a repeat an earlier try may be what moved the head */
        if (status == HFSB_STALE && retry.failed) unclear = true;
        if (status == HFSB_OK || !unclear || status == HFSB_CANCELLED ||
            status == HFSB_NOMEM ||
            !hfsbi_commit_settle(c, &retry, out, &status, err))
            return status;
        status = HFSB_OK;
        if (!parent.len) parent = hfsb_cstr(c->head);
    }
    return status;
}

/* ---- the whole commit ---- */

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
    out->unchanged = hfsbi_commit_is_done(c, true);
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
    hfsb_err         own = HFSB_INIT; /* settle needs the message */
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
