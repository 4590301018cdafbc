/* space.c - Spaces: duplicate, delete, set a secret, pause, restart, inspect,
   list.

   Each call is a row of the table of endpoints (hub_private.h), a body
   where it has one, and the reading of its reply. Two calls need more care,
   because their reply may be lost after they took effect. A duplicate must not
   be sent again: the Hub is asked whether the new Space exists. A delete is
   sent again, and "not found" then means that it had succeeded. */
#include "hub_private.h"

/* ---- duplicate ---- */

/* Puts [{"key":..., "value":...}]; nothing when there are no pairs. */
static void hfsbi_space_put_pairs(hfsb_json_writer *w, const char *name,
                                  const hfsb_hub_pair *pairs, size_t count) {
    size_t i;
    if (!count) return;
    hfsb_json_put_key(w, hfsb_cstr(name));
    hfsb_json_put_array(w);
    for (i = 0; i < count; i++) {
        hfsb_json_put_object(w);
        hfsbi_hub_put(w, "key", pairs[i].key);
        hfsbi_hub_put(w, "value", pairs[i].value);
        if (pairs[i].description.len)
            hfsbi_hub_put(w, "description", pairs[i].description);
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

static void hfsbi_space_put_spec(hfsb_json_writer      *w,
                                 const hfsb_space_spec *spec) {
    hfsbi_hub_put(w, "repository", spec->id);
    hfsbi_hub_put(w, "visibility",
                  spec->visible ? HFSB_LIT("public") : HFSB_LIT("private"));
    if (spec->hardware.len) hfsbi_hub_put(w, "hardware", spec->hardware);
    if (spec->sleep_time) {
        hfsb_json_put_key(w, HFSB_LIT("sleepTimeSeconds"));
        hfsb_json_put_int(w, spec->sleep_time);
    }
    hfsbi_space_put_pairs(w, "secrets", spec->secrets, spec->secret_count);
    hfsbi_space_put_pairs(w, "variables", spec->variables,
                          spec->variable_count);
    hfsb_json_put_end(w);
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

/* HFSB_OK when the Space exists. A new Space is not visible at once, so "not
   found" is retried as often as a failed request. */
static hfsb_status hfsbi_space_find(hfsb_hub *hub, hfsb_str id,
                                    const hfsb_cancel *cancel) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request look;
    hfsbi_retry       retry;
    hfsb_status       status =
        hfsbi_hub_begin(hub, &look, HFSBI_HUB_SPACE, id, none, cancel, NULL);
    retry = look.retry;
    while (status == HFSB_OK) {
        status = hfsbi_hub_send(&look, NULL);
        if (status != HFSB_NOT_FOUND) break;
        status = hfsbi_retry_again(&retry);
        if (status == HFSB_LIMIT) status = HFSB_NOT_FOUND;
    }
    hfsbi_hub_end(&look);
    return status;
}

/* The reply to a request that makes a Space was lost, and *err says so: finds
   out whether it was made, and adds that to *err. */
static hfsb_status hfsbi_space_settle(hfsb_hub *hub, hfsb_str id,
                                      hfsb_status        status,
                                      const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    hfsb_status found = status == HFSB_CANCELLED
                            ? HFSB_CANCELLED
                            : hfsbi_space_find(hub, id, cancel);
    if (found == HFSB_OK) {
        hfsbi_hub_log(hub, "The Hub's answer was lost, but %.*s was made.",
                      (int)id.len, id.ptr);
        return hfsbi_ok(err);
    }
    if (found == HFSB_NOT_FOUND)
        hfsbi_err_add(err, " %.*s does not seem to exist.", (int)id.len,
                      id.ptr);
    else
        hfsbi_err_add(err, " Whether %.*s was made is not known.", (int)id.len,
                      id.ptr);
    if (found != HFSB_CANCELLED) return status;
    return err->code = found;
}

HFSBI_FN hfsb_status hfsbi_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                                         const hfsb_space_spec *spec,
                                         const hfsb_cancel     *cancel,
                                         hfsbi_hub_fate *fate, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_err          own = HFSB_INIT; /* settle needs the message */
    hfsb_status       status = hfsbi_space_check_spec(spec, err);
    fate->later = fate->unknown = false;
    if (status != HFSB_OK) return status;
    status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_DUPLICATE, from,
                             spec->id, cancel, &own);
    if (status == HFSB_OK) {
        request.secrets = spec->secrets;
        request.secret_count = spec->secret_count;
        hfsbi_space_put_spec(hfsbi_hub_object(&request), spec);
        status = hfsbi_hub_send(&request, &own);
    }
    if (status != HFSB_OK && request.unclear && status != HFSB_NOMEM)
        status = hfsbi_space_settle(hub, spec->id, status, cancel, &own);
    fate->later = status == HFSB_CONFLICT && request.again;
    fate->unknown = status == HFSB_CANCELLED && request.unclear;
    hfsbi_hub_end(&request);
    if (err) *err = own;
    return status;
}

hfsb_status hfsb_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                               const hfsb_space_spec *spec,
                               const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_fate fate;
    return hfsbi_hub_duplicate(hub, from, spec, cancel, &fate, err);
}

/* ---- delete ---- */

/* Begins the request and writes its body. */
static hfsb_status hfsbi_space_delete(hfsb_hub          *hub,
                                      hfsbi_hub_request *request, hfsb_str id,
                                      const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    const hfsb_str    none = HFSB_INIT;
    size_t            slash = hfsb_str_find_byte(id, '/');
    hfsb_json_writer *w;
    hfsb_status       status =
        hfsbi_hub_begin(hub, request, HFSBI_HUB_DELETE, id, none, cancel, err);
    if (status != HFSB_OK) return status;
    w = hfsbi_hub_object(request);
    hfsbi_hub_put(w, "name", hfsb_str_slice(id, slash + 1, id.len));
    hfsbi_hub_put(w, "organization", hfsb_str_slice(id, 0, slash));
    hfsbi_hub_put(w, "type", HFSB_LIT("space"));
    hfsb_json_put_end(w);
    return HFSB_OK;
}

hfsb_status hfsb_hub_delete(hfsb_hub *hub, hfsb_str id,
                            const hfsb_cancel *cancel, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_space_delete(hub, &request, id, cancel, err);
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_delete_once(hfsb_hub *hub, hfsb_str id,
                                           long long          until,
                                           const hfsb_cancel *cancel,
                                           hfsbi_hub_tried   *tried,
                                           hfsb_err          *err) {
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_space_delete(hub, &request, id, cancel, err);
    request.retry.tries = 1;
    request.retry.deadline = until;
    request.unclear = tried->unclear;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    tried->unclear = request.unclear;
    tried->asked_ms = request.retry.asked_ms <= hub->max_wait_ms
                          ? request.retry.asked_ms
                          : 0;
    hfsbi_hub_end(&request);
    return status;
}

/* ---- secrets and variables ---- */

hfsb_status hfsb_hub_set(hfsb_hub *hub, hfsb_str id, hfsb_hub_store store,
                         const hfsb_hub_pair *pair, const hfsb_cancel *cancel,
                         hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer *w;
    hfsb_status       status = hfsbi_hub_check_keys(pair, 1, 1, err);
    if (status != HFSB_OK) return status;
    status = hfsbi_hub_begin(hub, &request,
                             store == HFSB_HUB_SECRETS ? HFSBI_HUB_SECRET
                                                       : HFSBI_HUB_VARIABLE,
                             id, pair->key, cancel, err);
    if (status == HFSB_OK) {
        request.secrets = pair;
        request.secret_count = 1;
        w = hfsbi_hub_object(&request);
        hfsbi_hub_put(w, "key", pair->key);
        hfsbi_hub_put(w, "value", pair->value);
        if (pair->description.len)
            hfsbi_hub_put(w, "description", pair->description);
        hfsb_json_put_end(w);
        status = hfsbi_hub_send(&request, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_variables(hfsb_hub *hub, hfsb_str id,
                                         const hfsb_cancel *cancel,
                                         hfsb_json_doc *out, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_VARIABLES,
                                         id, none, cancel, err);
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

/* ---- runtime ---- */

static void hfsbi_space_read_runtime(const hfsb_json_value *root,
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

/* Calls an endpoint whose reply is a runtime, within the tries (0: the hub's)
   and by the deadline (0: none). out NULL: the reply does not matter. */
static hfsb_status
hfsbi_space_runtime(hfsb_hub *hub, hfsbi_hub_endpoint endpoint, hfsb_str id,
                    size_t tries, long long deadline,
                    const hfsb_cancel *cancel, hfsb_space_runtime *out,
                    hfsb_err *err) {
    const hfsb_str     none = HFSB_INIT;
    hfsbi_hub_request  request;
    hfsb_json_doc      doc = HFSB_INIT;
    hfsb_space_runtime runtime;
    hfsb_status        status =
        hfsbi_hub_begin(hub, &request, endpoint, id, none, cancel, err);
    doc.alloc = hub->alloc;
    if (tries) request.retry.tries = tries;
    request.retry.deadline = deadline;
    if (out) request.out = &doc;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    if (status == HFSB_OK && out) {
        hfsbi_space_read_runtime(doc.root, &runtime);
        if (runtime.stage[0]) *out = runtime;
        else
            status =
                hfsbi_hub_bad_reply(&request, "the reply has no stage", err);
    }
    hfsb_json_free(&doc);
    hfsbi_hub_end(&request);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_runtime_until(hfsb_hub *hub, hfsb_str id,
                                             long long           until,
                                             const hfsb_cancel  *cancel,
                                             hfsb_space_runtime *out,
                                             hfsb_err           *err) {
    return hfsbi_space_runtime(hub, HFSBI_HUB_RUNTIME, id, 0, until, cancel,
                               out, err);
}

hfsb_status hfsb_hub_runtime(hfsb_hub *hub, hfsb_str id,
                             const hfsb_cancel  *cancel,
                             hfsb_space_runtime *out, hfsb_err *err) {
    return hfsbi_space_runtime(hub, HFSBI_HUB_RUNTIME, id, 0, 0, cancel, out,
                               err);
}

hfsb_status hfsb_hub_pause(hfsb_hub *hub, hfsb_str id,
                           const hfsb_cancel *cancel, hfsb_space_runtime *out,
                           hfsb_err *err) {
    return hfsbi_space_runtime(hub, HFSBI_HUB_PAUSE, id, 0, 0, cancel, out,
                               err);
}

hfsb_status hfsb_hub_restart(hfsb_hub *hub, hfsb_str id, bool factory,
                             const hfsb_cancel  *cancel,
                             hfsb_space_runtime *out, hfsb_err *err) {
    return hfsbi_space_runtime(hub,
                               factory ? HFSBI_HUB_REBUILD : HFSBI_HUB_RESTART,
                               id, 0, 0, cancel, out, err);
}

HFSBI_FN hfsbi_space_state hfsbi_space_state_of(const char *stage) {
    static const struct {
        const char       *stage;
        hfsbi_space_state state;
    } stages[] = {{"RUNNING", HFSBI_SPACE_RUNNING},
                  {"RUNNING_BUILDING", HFSBI_SPACE_RUNNING},
                  {"RUNNING_APP_STARTING", HFSBI_SPACE_RUNNING},
                  {"BUILDING", HFSBI_SPACE_STARTING},
                  {"APP_STARTING", HFSBI_SPACE_STARTING},
                  {"SLEEPING", HFSBI_SPACE_ASLEEP},
                  {"STOPPED", HFSBI_SPACE_ASLEEP},
                  {"PAUSED", HFSBI_SPACE_PAUSED},
                  {"BUILD_ERROR", HFSBI_SPACE_FAILED},
                  {"RUNTIME_ERROR", HFSBI_SPACE_FAILED},
                  {"CONFIG_ERROR", HFSBI_SPACE_FAILED},
                  {"NO_APP_FILE", HFSBI_SPACE_FAILED},
                  {"DELETING", HFSBI_SPACE_GONE}};
    size_t i;
    for (i = 0; i < sizeof stages / sizeof *stages; i++)
        if (!strcmp(stage, stages[i].stage)) return stages[i].state;
    return HFSBI_SPACE_UNKNOWN;
}

HFSBI_FN hfsbi_space_state hfsbi_hub_look(hfsb_hub *hub, hfsb_str id,
                                          long long           wait_ms,
                                          const hfsb_cancel  *cancel,
                                          hfsb_space_runtime *out,
                                          hfsb_err           *err) {
    hfsb_status status;
    memset(out, 0, sizeof *out);
    status = hfsbi_space_runtime(hub, HFSBI_HUB_RUNTIME, id, 1,
                                 hfsb_clock_ms() + wait_ms, cancel, out, err);
    if (status == HFSB_NOT_FOUND) return HFSBI_SPACE_GONE;
    return hfsbi_space_state_of(out->stage);
}

/* ---- info, address, lists ---- */

/* Appends "key=value", percent-encoded, after "?" or "&"; nothing for an empty
   value. */
static void hfsbi_space_put_query(hfsb_buf *target, const char *key,
                                  hfsb_str value) {
    bool more = hfsb_str_find_byte(hfsb_buf_str(target), '?') != HFSB_NPOS;
    if (!value.len) return;
    hfsb_buf_printf(target, "%c%s=", more ? '&' : '?', key);
    hfsbi_hub_put_encoded(target, value);
}

/* Appends expand=a&expand=b for "a,b". */
static void hfsbi_space_put_expand(hfsb_buf *target, hfsb_str expand) {
    hfsb_str key;
    while (hfsbi_list_next(&expand, ',', &key))
        hfsbi_space_put_query(target, "expand", hfsbi_trim(key));
}

hfsb_status hfsb_hub_space(hfsb_hub *hub, hfsb_str id, hfsb_str revision,
                           hfsb_str expand, const hfsb_cancel *cancel,
                           hfsb_json_doc *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status = hfsbi_hub_begin(
              hub, &request, revision.len ? HFSBI_HUB_REVISION : HFSBI_HUB_SPACE, id,
              revision, cancel, err);
    if (status == HFSB_OK) {
        hfsbi_space_put_expand(&request.target, expand);
        status = request.target.status;
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

/* True for one valid label of a host name: a token is sent to that host. */
static bool hfsbi_space_is_label(hfsb_str s) {
    size_t i;
    if (!s.len || s.len > 63) return false;
    for (i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= 'a' && s.ptr[i] <= 'z') ||
              hfsbi_is_digit(s.ptr[i]) || s.ptr[i] == '-'))
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
    hfsb_buf_append(out, HFSB_LIT("https://"));
    if (hfsbi_space_is_label(label)) {
        hfsb_buf_append(out, label);
        status = hfsb_buf_append(out, HFSB_LIT(".hf.space"));
        if (status != HFSB_OK) hfsbi_fail_status(err, status, "Space");
    } else status = hfsb_space_host(id, out, err);
    if (status != HFSB_OK) hfsb_buf_truncate(out, mark);
    hfsb_json_free(&doc);
    return status == HFSB_OK ? hfsbi_ok(err) : status;
}

static void hfsbi_space_put_filter(const hfsb_space_filter *filter,
                                   hfsb_buf                *target) {
    char limit[24] = "";
    if (filter->limit)
        (void)snprintf(limit, sizeof limit, "%zu", filter->limit);
    hfsbi_space_put_query(target, "author", filter->author);
    hfsbi_space_put_query(target, "search", filter->search);
    hfsbi_space_put_query(target, "sort", filter->sort);
    hfsbi_space_put_query(target, "limit", hfsb_cstr(limit));
    hfsbi_space_put_query(target, "full",
                          hfsb_cstr(filter->full ? "true" : ""));
    hfsbi_space_put_expand(target, filter->expand);
}

hfsb_status
hfsb_hub_spaces(hfsb_hub *hub, const hfsb_space_filter *filter,
                bool (*each)(void *user, const hfsb_json_value *space),
                void *user, const hfsb_cancel *cancel, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_SPACES, none,
                                         none, cancel, err);
    if (status == HFSB_OK && filter) {
        hfsbi_space_put_filter(filter, &request.target);
        status = request.target.status;
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    if (status == HFSB_OK)
        status = hfsbi_hub_pages(&request, filter ? filter->limit : 0, each,
                                 user, err);
    hfsbi_hub_end(&request);
    return status;
}
