/* hub_space.c - Spaces: made, set, paused, looked at, listed, deleted. */
#include "remote_private.h"

/* A request about a Space: its target is /api/spaces/{id}{rest}. The id is
   checked before anything is sent. */
static hfsb_status
hfsbi_space_begin(const hfsb_hub *hub, hfsbi_hub_request *request,
                  const char *method, const char *verb, hfsb_str id,
                  const char *rest, const hfsb_cancel *cancel, hfsb_err *err) {
    hfsb_status status = hfsb_space_check(id, err);
    hfsbi_hub_begin(hub, request, method, cancel, "%s %.*s", verb,
                    (int)(id.len < 150 ? id.len : 150), id.ptr);
    if (status != HFSB_OK) return status;
    status = hfsb_buf_printf(&request->target, "/api/spaces/%.*s%s",
                             (int)id.len, id.ptr, rest);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    return status;
}

/* ---- made and deleted ---- */

static void hfsbi_space_put(hfsb_json_writer *w, const hfsb_space_spec *spec) {
    if (spec->hardware.len) hfsbi_hub_put(w, "hardware", spec->hardware);
    if (spec->sleep_time) {
        hfsb_json_put_key(w, HFSB_LIT("sleepTimeSeconds"));
        hfsb_json_put_int(w, spec->sleep_time);
    }
    hfsbi_hub_put_list(w, "secrets", spec->secrets, spec->secret_count);
    hfsbi_hub_put_list(w, "variables", spec->variables, spec->variable_count);
}

static void hfsbi_space_put_visibility(hfsb_json_writer      *w,
                                       const hfsb_space_spec *spec) {
    hfsbi_hub_put(w, "visibility",
                  spec->visible ? HFSB_LIT("public") : HFSB_LIT("private"));
}

static hfsb_status hfsbi_space_check_spec(const hfsb_space_spec *spec,
                                          hfsb_err              *err) {
    hfsb_status status = hfsb_space_check(spec->id, err);
    if (status == HFSB_OK)
        status =
            hfsbi_hub_check_keys(spec->secrets, spec->secret_count, 1, err);
    if (status == HFSB_OK)
        status = hfsbi_hub_check_keys(spec->variables, spec->variable_count, 1,
                                      err);
    return status;
}

/* The request may have been carried out, but no one said so: is it there now?
   A new Space is not seen at once, so it is looked for as often as a request
   is tried. *err is what the request gave, and stays when it is not there. */
static hfsb_status hfsbi_space_look(hfsb_hub *hub, hfsb_str id,
                                    hfsb_status        status,
                                    const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_request look;
    hfsb_err          why = HFSB_INIT;
    hfsb_status       found = HFSB_NOT_FOUND;
    size_t            n;
    if (hfsbi_space_begin(hub, &look, "GET", "see whether there is", id, "",
                          cancel, &why) == HFSB_OK) {
        look.repeat = true;
        for (n = 1; found == HFSB_NOT_FOUND; n++) {
            found = hfsbi_hub_send(hub, &look, &why);
            if (found != HFSB_NOT_FOUND || n >= hub->tries) break;
            if (!hfsbi_hub_wait(hub, &look, n, &why)) found = HFSB_CANCELLED;
        }
    }
    hfsbi_hub_end(&look);
    if (found == HFSB_OK) {
        hfsbi_hub_log(hub, "The Hub's answer was lost, but %.*s was made.",
                      (int)id.len, id.ptr);
        return hfsbi_ok(err);
    }
    if (found == HFSB_NOT_FOUND)
        hfsbi_err_add(err, " There is no %.*s now, as far as one can see.",
                      (int)id.len, id.ptr);
    else
        hfsbi_err_add(err, " Whether %.*s was made is not known.", (int)id.len,
                      id.ptr);
    if (found == HFSB_CANCELLED && err) err->code = found;
    return found == HFSB_CANCELLED ? found : status;
}

static hfsb_status hfsbi_space_make(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_json_writer      *w,
                                    const hfsb_space_spec *spec,
                                    hfsb_err              *err) {
    hfsb_err    own = HFSB_INIT; /* looking adds to the message */
    hfsb_status status;
    request->secrets = spec->secrets;
    request->secret_count = spec->secret_count;
    status = hfsbi_hub_send_json(hub, request, w, &own);
    if (status != HFSB_OK && request->unclear && status != HFSB_CANCELLED &&
        status != HFSB_NOMEM)
        status =
            hfsbi_space_look(hub, spec->id, status, request->cancel, &own);
    else if (status == HFSB_CANCELLED && request->unclear)
        hfsbi_err_add(&own, " Whether %.*s was made is not known.",
                      (int)spec->id.len, spec->id.ptr);
    if (err) *err = own;
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                                         const hfsb_space_spec *spec,
                                         const hfsb_cancel     *cancel,
                                         hfsbi_hub_fate *fate, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "POST", "duplicate", from,
                               "/duplicate", cancel, err);
    if (status == HFSB_OK) status = hfsbi_space_check_spec(spec, err);
    if (status == HFSB_OK) {
        (void)snprintf(request.what, sizeof request.what,
                       "duplicate %.*s as %.*s", (int)from.len, from.ptr,
                       (int)spec->id.len, spec->id.ptr);
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_hub_put(&w, "repository", spec->id);
        hfsbi_space_put_visibility(&w, spec);
        hfsbi_space_put(&w, spec);
        hfsb_json_put_end(&w);
        status = hfsbi_space_make(hub, &request, &w, spec, err);
    }
    fate->later = status == HFSB_CONFLICT && request.again;
    fate->unknown = status == HFSB_CANCELLED && request.unclear;
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                               const hfsb_space_spec *spec,
                               const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_fate fate;
    return hfsbi_hub_duplicate(hub, from, spec, cancel, &fate, err);
}

/* "owner/name" as the calls under /api/repos have it. */
static void hfsbi_space_put_name(hfsb_json_writer *w, hfsb_str id) {
    size_t slash = hfsb_str_find_byte(id, '/');
    hfsbi_hub_put(w, "name", hfsb_str_slice(id, slash + 1, id.len));
    hfsbi_hub_put(w, "organization", hfsb_str_slice(id, 0, slash));
}

hfsb_status hfsb_hub_create(hfsb_hub *hub, const hfsb_space_spec *spec,
                            const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status = hfsbi_space_check_spec(spec, err);
    if (status != HFSB_OK) return status;
    hfsbi_hub_begin(hub, &request, "POST", cancel, "create %.*s",
                    (int)spec->id.len, spec->id.ptr);
    status = hfsb_buf_append(&request.target, HFSB_LIT("/api/repos/create"));
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    else {
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_space_put_name(&w, spec->id);
        hfsbi_space_put_visibility(&w, spec);
        hfsbi_hub_put(&w, "type", HFSB_LIT("space"));
        hfsbi_hub_put(&w, "sdk", HFSB_LIT("docker"));
        hfsbi_space_put(&w, spec);
        hfsb_json_put_end(&w);
        status = hfsbi_space_make(hub, &request, &w, spec, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

/* Begins the request: all but the sending. */
static hfsb_status
hfsbi_space_delete_begin(const hfsb_hub *hub, hfsbi_hub_request *request,
                         hfsb_str id, const hfsb_cancel *cancel,
                         hfsb_json_writer *w, hfsb_err *err) {
    hfsb_status status = hfsb_space_check(id, err);
    hfsbi_hub_begin(hub, request, "DELETE", cancel, "delete %.*s",
                    (int)(id.len < 150 ? id.len : 150), id.ptr);
    if (status != HFSB_OK) return status;
    request->repeat = request->gone_is_done = true;
    status = hfsb_buf_append(&request->target, HFSB_LIT("/api/repos/delete"));
    if (status != HFSB_OK)
        return hfsbi_fail_status(err, status, request->what);
    hfsb_json_writer_init(w, &request->body, NULL);
    hfsb_json_put_object(w);
    hfsbi_space_put_name(w, id);
    hfsbi_hub_put(w, "type", HFSB_LIT("space"));
    hfsb_json_put_end(w);
    return HFSB_OK;
}

hfsb_status hfsb_hub_delete(hfsb_hub *hub, hfsb_str id,
                            const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status =
        hfsbi_space_delete_begin(hub, &request, id, cancel, &w, err);
    if (status == HFSB_OK)
        status = hfsbi_hub_send_json(hub, &request, &w, err);
    hfsbi_hub_end(&request);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_delete_once(hfsb_hub *hub, hfsb_str id,
                                           long long          until,
                                           const hfsb_cancel *cancel,
                                           hfsbi_hub_tried   *tried,
                                           hfsb_err          *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status =
        hfsbi_space_delete_begin(hub, &request, id, cancel, &w, err);
    request.tries = 1;
    request.until = until;
    request.unclear = tried->unclear;
    if (status == HFSB_OK)
        status = hfsbi_hub_send_json(hub, &request, &w, err);
    tried->unclear = request.unclear;
    tried->asked_ms =
        request.asked_ms <= hub->max_wait_ms ? request.asked_ms : -1;
    hfsbi_hub_end(&request);
    return status;
}

/* ---- secrets and variables ---- */

static const char *hfsbi_space_store(hfsb_hub_store store) {
    return store == HFSB_HUB_SECRETS ? "/secrets" : "/variables";
}

/* pair->value.ptr NULL and no description: the key alone. */
static hfsb_status
hfsbi_space_store_send(hfsb_hub *hub, hfsb_str id, hfsb_hub_store store,
                       const char *method, const hfsb_hub_pair *pair,
                       const hfsb_cancel *cancel, hfsb_err *err) {
    bool              set = method[0] == 'P';
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    char              verb[128];
    hfsb_status       status = hfsbi_hub_check_key(pair->key, 1, err);
    if (status != HFSB_OK) return status;
    (void)snprintf(
        verb, sizeof verb, "%s the %s %.*s of", set ? "set" : "remove",
        store == HFSB_HUB_SECRETS ? "secret" : "variable",
        (int)(pair->key.len < 80 ? pair->key.len : 80), pair->key.ptr);
    status = hfsbi_space_begin(hub, &request, method, verb, id,
                               hfsbi_space_store(store), cancel, err);
    if (status == HFSB_OK) {
        request.repeat = true;
        request.secrets = pair;
        request.secret_count = set ? 1 : 0;
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_hub_put(&w, "key", pair->key);
        if (set) hfsbi_hub_put(&w, "value", pair->value);
        if (set && pair->description.len)
            hfsbi_hub_put(&w, "description", pair->description);
        hfsb_json_put_end(&w);
        status = hfsbi_hub_send_json(hub, &request, &w, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_set(hfsb_hub *hub, hfsb_str id, hfsb_hub_store store,
                         const hfsb_hub_pair *pair, const hfsb_cancel *cancel,
                         hfsb_err *err) {
    return hfsbi_space_store_send(hub, id, store, "POST", pair, cancel, err);
}

hfsb_status hfsb_hub_unset(hfsb_hub *hub, hfsb_str id, hfsb_hub_store store,
                           hfsb_str key, const hfsb_cancel *cancel,
                           hfsb_err *err) {
    hfsb_hub_pair pair = HFSB_INIT;
    pair.key = key;
    return hfsbi_space_store_send(hub, id, store, "DELETE", &pair, cancel,
                                  err);
}

/* ---- looking ---- */

static hfsb_status hfsbi_space_get(hfsb_hub *hub, hfsb_str id,
                                   const char *verb, const char *rest,
                                   const hfsb_cancel *cancel,
                                   hfsb_json_doc *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    status =
        hfsbi_space_begin(hub, &request, "GET", verb, id, rest, cancel, err);
    request.repeat = true;
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(hub, &request, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_stored(hfsb_hub *hub, hfsb_str id, hfsb_hub_store store,
                            const hfsb_cancel *cancel, hfsb_json_doc *out,
                            hfsb_err *err) {
    return hfsbi_space_get(hub, id,
                           store == HFSB_HUB_SECRETS ? "list the secrets of"
                                                     : "list the variables of",
                           hfsbi_space_store(store), cancel, out, err);
}

static void hfsbi_space_runtime_read(const hfsb_json_value *root,
                                     hfsb_space_runtime    *out) {
    const hfsb_json_value *hardware = hfsb_json_get(root, "hardware");
    memset(out, 0, sizeof *out);
    hfsbi_hub_copy(hfsb_json_get(root, "stage"), out->stage,
                   sizeof out->stage);
    hfsbi_hub_copy(hfsb_json_get(hardware, "current"), out->hardware,
                   sizeof out->hardware);
    hfsbi_hub_copy(hfsb_json_get(hardware, "requested"), out->requested,
                   sizeof out->requested);
    hfsbi_hub_copy(hfsb_json_get(root, "sha"), out->sha, sizeof out->sha);
    hfsbi_hub_copy(hfsb_json_get(root, "errorMessage"), out->error,
                   sizeof out->error);
    out->sleep_time = hfsb_json_int(hfsb_json_get(root, "gcTimeout"), 0);
}

/* Sends it; the answer is a runtime, of which only the stage must be there.
   The request is ended. */
static hfsb_status hfsbi_space_runtime_send(hfsb_hub           *hub,
                                            hfsbi_hub_request  *request,
                                            hfsb_space_runtime *out,
                                            hfsb_err           *err) {
    hfsb_json_doc      doc = HFSB_INIT;
    hfsb_space_runtime runtime = HFSB_INIT;
    hfsb_status        status;
    doc.alloc = hub->alloc;
    request->repeat = true;
    if (out) request->out = &doc;
    status = hfsbi_hub_send(hub, request, err);
    if (status == HFSB_OK && out) {
        hfsbi_space_runtime_read(doc.root, &runtime);
        if (!runtime.stage[0])
            status =
                hfsbi_hub_odd(hub, request, "the answer has no stage", err);
        else *out = runtime;
    }
    hfsb_json_free(&doc);
    hfsbi_hub_end(request);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_runtime_until(hfsb_hub *hub, hfsb_str id,
                                             long long           until,
                                             const hfsb_cancel  *cancel,
                                             hfsb_space_runtime *out,
                                             hfsb_err           *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "GET", "see the state of", id,
                               "/runtime", cancel, err);
    request.until = until;
    if (status == HFSB_OK)
        return hfsbi_space_runtime_send(hub, &request, out, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_runtime(hfsb_hub *hub, hfsb_str id,
                             const hfsb_cancel  *cancel,
                             hfsb_space_runtime *out, hfsb_err *err) {
    return hfsbi_hub_runtime_until(hub, id, 0, cancel, out, err);
}

hfsb_status hfsb_hub_pause(hfsb_hub *hub, hfsb_str id,
                           const hfsb_cancel *cancel, hfsb_space_runtime *out,
                           hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "POST", "pause", id, "/pause",
                               cancel, err);
    if (status == HFSB_OK)
        return hfsbi_space_runtime_send(hub, &request, out, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_restart(hfsb_hub *hub, hfsb_str id, bool factory,
                             const hfsb_cancel  *cancel,
                             hfsb_space_runtime *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "POST", "restart", id,
                               factory ? "/restart?factory=true" : "/restart",
                               cancel, err);
    if (status == HFSB_OK)
        return hfsbi_space_runtime_send(hub, &request, out, err);
    hfsbi_hub_end(&request);
    return status;
}

/* A body of one object with a number in it, behind what was written. */
static hfsb_status hfsbi_space_number(hfsb_json_writer *w, const char *key,
                                      long long number, hfsb_err *err) {
    if (number) {
        hfsb_json_put_key(w, hfsb_cstr(key));
        hfsb_json_put_int(w, number);
    }
    hfsb_json_put_end(w);
    return hfsb_json_writer_finish(w, err);
}

hfsb_status hfsb_hub_hardware(hfsb_hub *hub, hfsb_str id, hfsb_str flavor,
                              long long sleep_time, const hfsb_cancel *cancel,
                              hfsb_space_runtime *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "POST", "set the hardware of",
                               id, "/hardware", cancel, err);
    if (status == HFSB_OK) {
        request.has_body = true;
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_hub_put(&w, "flavor", flavor);
        status = hfsbi_space_number(&w, "sleepTimeSeconds", sleep_time, err);
    }
    if (status == HFSB_OK)
        return hfsbi_space_runtime_send(hub, &request, out, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_sleep_time(hfsb_hub *hub, hfsb_str id, long long seconds,
                                const hfsb_cancel  *cancel,
                                hfsb_space_runtime *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status;
    if (seconds < -1 || seconds == 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A sleep time is seconds above 0, or -1 for never; "
                          "%lld is neither.",
                          seconds);
    status = hfsbi_space_begin(hub, &request, "POST", "set the sleep time of",
                               id, "/sleeptime", cancel, err);
    if (status == HFSB_OK) {
        request.has_body = true;
        hfsb_json_writer_init(&w, &request.body, NULL);
        hfsb_json_put_object(&w);
        status = hfsbi_space_number(&w, "seconds", seconds, err);
    }
    if (status == HFSB_OK)
        return hfsbi_space_runtime_send(hub, &request, out, err);
    hfsbi_hub_end(&request);
    return status;
}

/* ---- info, address, lists ---- */

/* Appends "key=value", percent-encoded, with "?" or "&" in front; nothing for
   an empty value. */
static hfsb_status hfsbi_space_query(hfsb_buf *target, const char *key,
                                     hfsb_str value) {
    bool more = hfsb_str_find_byte(hfsb_buf_str(target), '?') != HFSB_NPOS;
    hfsb_status status;
    if (!value.len) return HFSB_OK;
    status = hfsb_buf_printf(target, "%c%s=", more ? '&' : '?', key);
    if (status != HFSB_OK) return status;
    return hfsb_http_encode(value, false, target);
}

/* expand=a&expand=b for "a,b". */
static hfsb_status hfsbi_space_expand(hfsb_buf *target, hfsb_str expand) {
    hfsb_status status = HFSB_OK;
    while (expand.len && status == HFSB_OK) {
        size_t end = hfsb_str_find_byte(expand, ',');
        status = hfsbi_space_query(target, "expand",
                                   hfsbi_trim(hfsb_str_slice(expand, 0, end)));
        expand = hfsb_str_slice(
            expand, end == HFSB_NPOS ? expand.len : end + 1, expand.len);
    }
    return status;
}

hfsb_status hfsb_hub_space(hfsb_hub *hub, hfsb_str id, hfsb_str revision,
                           hfsb_str expand, const hfsb_cancel *cancel,
                           hfsb_json_doc *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    status = hfsbi_space_begin(hub, &request, "GET", "look at", id,
                               revision.len ? "/revision/" : "", cancel, err);
    if (status == HFSB_OK) {
        status = hfsb_http_encode(revision, false, &request.target);
        if (status == HFSB_OK)
            status = hfsbi_space_expand(&request.target, expand);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    request.repeat = true;
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(hub, &request, err);
    hfsbi_hub_end(&request);
    return status;
}

/* One label of a host name: a token is sent to what it names. */
static bool hfsbi_space_is_label(hfsb_str s) {
    size_t i;
    if (!s.len || s.len > 63) return false;
    for (i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= 'a' && s.ptr[i] <= 'z') ||
              (s.ptr[i] >= '0' && s.ptr[i] <= '9') || s.ptr[i] == '-'))
            return false;
    return true;
}

hfsb_status hfsb_hub_space_url(hfsb_hub *hub, hfsb_str id,
                               const hfsb_cancel *cancel, hfsb_buf *out,
                               hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      label = HFSB_INIT;
    size_t        mark = out->len;
    hfsb_status   status;
    doc.alloc = hub->alloc;
    status = hfsb_hub_space(hub, id, label, HFSB_LIT("subdomain"), cancel,
                            &doc, err);
    if (status == HFSB_CANCELLED || status == HFSB_NOMEM || status == HFSB_ARG)
        return status;
    label = hfsb_json_str(hfsb_json_get(doc.root, "subdomain"), label);
    if (hfsbi_space_is_label(label)) {
        status = hfsb_buf_printf(out, "https://%.*s.hf.space", (int)label.len,
                                 label.ptr);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, "Space");
    } else {
        status = hfsb_buf_append(out, HFSB_LIT("https://"));
        if (status != HFSB_OK) hfsbi_fail_status(err, status, "Space");
        else status = hfsb_space_host(id, out, err);
        if (status != HFSB_OK) hfsb_buf_truncate(out, mark);
    }
    hfsb_json_free(&doc);
    return status == HFSB_OK ? hfsbi_ok(err) : status;
}

static hfsb_status hfsbi_space_filter(const hfsb_space_filter *filter,
                                      hfsb_buf                *target) {
    char        limit[24];
    hfsb_status status = hfsb_buf_append(target, HFSB_LIT("/api/spaces"));
    if (!filter) return status;
    (void)snprintf(limit, sizeof limit, "%zu", filter->limit);
    if (status == HFSB_OK)
        status = hfsbi_space_query(target, "author", filter->author);
    if (status == HFSB_OK)
        status = hfsbi_space_query(target, "search", filter->search);
    if (status == HFSB_OK)
        status = hfsbi_space_query(target, "sort", filter->sort);
    if (status == HFSB_OK && filter->limit)
        status = hfsbi_space_query(target, "limit", hfsb_cstr(limit));
    if (status == HFSB_OK && filter->full)
        status = hfsbi_space_query(target, "full", HFSB_LIT("true"));
    if (status == HFSB_OK) status = hfsbi_space_expand(target, filter->expand);
    return status;
}

hfsb_status
hfsb_hub_spaces(hfsb_hub *hub, const hfsb_space_filter *filter,
                bool (*each)(void *user, const hfsb_json_value *space),
                void *user, const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    hfsbi_hub_begin(hub, &request, "GET", cancel, "list Spaces");
    status = hfsbi_space_filter(filter, &request.target);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    else
        status = hfsbi_hub_pages(hub, &request, filter ? filter->limit : 0,
                                 each, user, err);
    hfsbi_hub_end(&request);
    return status;
}
