/* job_home.c - sandboxes that are jobs: their address, their token, their life.

   A job exposes the port of its server, and the Hub gives that port a URL. The
   token of the server is HMAC-SHA-256(token of the Hub, "hf-sandbox:" N), as
   huggingface_hub derives it, where N is a label of the job. So the job itself
   has all that another machine with the same token of the Hub needs to
   connect, and nothing must be stored. job_create.c makes such a job.

   The id of such a sandbox is "jobs/OWNER/ID". It cannot be paused; cancelling
   the job deletes it. */
#include "hub_private.h"

enum { HFSBI_HUBJOB_POLL_MS = 2000, HFSBI_HUBJOB_API_POLL_MS = 250 };

/* ---- ids ---- */

HFSBI_FN bool hfsbi_hubjob_split(hfsb_str id, hfsb_str *owner, hfsb_str *job) {
    const hfsb_str begin = HFSB_LIT("jobs/");
    size_t         slash;
    if (!hfsb_str_starts(id, begin)) return false;
    id = hfsb_str_slice(id, begin.len, id.len);
    slash = hfsb_str_find_byte(id, '/');
    if (slash == HFSB_NPOS) return false;
    *owner = hfsb_str_slice(id, 0, slash);
    *job = hfsb_str_slice(id, slash + 1, id.len);
    return true;
}

static hfsb_str hfsbi_hubjob_owner(const hfsb_sandbox *s) {
    hfsb_str owner = HFSB_INIT, job;
    (void)hfsbi_hubjob_split(s->id, &owner, &job);
    return owner;
}

static hfsb_str hfsbi_hubjob_id(const hfsb_sandbox *s) {
    hfsb_str owner, job = HFSB_INIT;
    (void)hfsbi_hubjob_split(s->id, &owner, &job);
    return job;
}

/* ---- its token ---- */

/* HMAC-SHA-256 (RFC 2104) in hexadecimal. */
static void hfsbi_hubjob_hmac(hfsb_str key, hfsb_str text,
                              char hex[HFSB_SHA256_HEX]) {
    unsigned char pad[64], digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    size_t        i;
    memset(pad, 0, sizeof pad);
    hfsb_sha256_init(&sha);
    if (key.len > sizeof pad) {
        hfsb_sha256_write(&sha, key);
        hfsb_sha256_finish(&sha, pad);
        hfsb_sha256_init(&sha);
    } else if (key.len) {
        memcpy(pad, key.ptr, key.len);
    }
    for (i = 0; i < sizeof pad; i++) pad[i] ^= 0x36;
    hfsb_sha256_write(&sha, hfsb_str_make((const char *)pad, sizeof pad));
    hfsb_sha256_write(&sha, text);
    hfsb_sha256_finish(&sha, digest);
    for (i = 0; i < sizeof pad; i++) pad[i] ^= 0x36 ^ 0x5C;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make((const char *)pad, sizeof pad));
    hfsb_sha256_write(&sha,
                      hfsb_str_make((const char *)digest, sizeof digest));
    hfsbi_sha256_finish_hex(&sha, hex);
    hfsb_secret_wipe(pad, sizeof pad);
}

HFSBI_FN hfsb_status hfsbi_hubjob_token(const hfsb_hub *hub, hfsb_str nonce,
                                        hfsb_buf *out) {
    hfsb_str key =
        hfsb_str_slice(hfsb_buf_str(&hub->authorization), 7, HFSB_NPOS);
    char        text[128], hex[HFSB_SHA256_HEX];
    hfsb_status st;
    (void)snprintf(text, sizeof text, "hf-sandbox:%.*s", (int)nonce.len,
                   nonce.ptr);
    hfsbi_hubjob_hmac(key, hfsb_cstr(text), hex);
    st = hfsb_buf_append(out, hfsb_cstr(hex));
    hfsb_secret_wipe(hex, sizeof hex);
    return st;
}

/* ---- what the Hub says about it ---- */

/* One request of at most wait_ms milliseconds. */
static hfsb_status hfsbi_hubjob_ask(hfsb_sandbox *s, long long wait_ms,
                                    hfsb_json_doc *doc, hfsb_err *err) {
    hfsb_str          owner = hfsbi_hubjob_owner(s), id = hfsbi_hubjob_id(s);
    hfsbi_hub_request request;
    hfsb_status st = hfsbi_hub_begin(s->o.hub, &request, HFSBI_HUB_JOB, owner,
                                     id, s->o.cancel, err);
    request.retry.tries = 1;
    request.retry.deadline = hfsb_clock_ms() + wait_ms;
    request.out = doc;
    if (st == HFSB_OK) st = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return st;
}

/* True when the token may be sent to this address of the job: that of its
   port, and encrypted unless the Hub itself is not. */
static bool hfsbi_hubjob_is_address(const hfsb_sandbox *s, hfsb_str url) {
    hfsb_str job = hfsbi_hubjob_id(s);
    hfsb_url parts;
    char     port[16];
    if (hfsb_url_parse(url, &parts, NULL) != HFSB_OK || parts.user.len ||
        (!parts.secure && s->o.hub->origin.secure))
        return false;
    (void)snprintf(port, sizeof port, "--%d.", (int)HFSBI_HUBJOB_PORT);
    return hfsb_str_starts(parts.host, job) &&
           hfsb_str_starts(hfsb_str_slice(parts.host, job.len, parts.host.len),
                           hfsb_cstr(port));
}

HFSBI_FN hfsb_status hfsbi_hubjob_take_url(hfsb_sandbox          *s,
                                           const hfsb_json_value *job,
                                           hfsb_err              *err) {
    hfsb_json_iter it = hfsb_json_begin(
        hfsb_json_get(hfsb_json_get(job, "status"), "exposeUrls"));
    if (s->api.len) return HFSB_OK;
    while (hfsb_json_next(&it)) {
        hfsb_str url = hfsb_json_str(it.value, HFSB_LIT(""));
        if (hfsbi_hubjob_is_address(s, url))
            return hfsbi_sandbox_address(url, NULL, &s->api, err);
    }
    return hfsbi_fail(err, HFSB_BUSY, 0,
                      "The Hub gives no URL for port %d of the job %s. Check "
                      "%s",
                      (int)HFSBI_HUBJOB_PORT, s->id.ptr, s->page.ptr);
}

/* Derives the token from the job's label, unless it is known. */
static hfsb_status hfsbi_hubjob_take_token(hfsb_sandbox          *s,
                                           const hfsb_json_value *job,
                                           hfsb_err              *err) {
    hfsb_str nonce = hfsbi_json_get_str(hfsb_json_get(job, "labels"),
                                        HFSBI_HUBJOB_NONCE_LABEL);
    if (s->o.api_token.len) return HFSB_OK;
    if (!nonce.len || nonce.len > 100)
        return hfsbi_fail(err, HFSB_AUTH, 0,
                          "The job %s has no label " HFSBI_HUBJOB_NONCE_LABEL
                          ", so its token cannot be derived: give the token "
                          "(SANDBOX_API_TOKEN), if it is a sandbox at all.",
                          s->id.ptr);
    if (hfsbi_hubjob_token(s->o.hub, nonce, &s->token) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Token");
    s->o.api_token = hfsb_buf_str(&s->token);
    return HFSB_OK;
}

/* HFSB_REMOTE for a job that has ended, with the end of its log. */
static hfsb_status hfsbi_hubjob_ended(hfsb_sandbox            *s,
                                      const hfsb_sandbox_spec *spec,
                                      const hfsb_json_value   *job,
                                      hfsb_err                *err) {
    const hfsb_json_value *status = hfsb_json_get(job, "status");
    hfsb_str               stage = hfsbi_job_stage(job);
    char                   why[256];
    (void)hfsbi_fail(err, HFSB_REMOTE, 0, "The job %s is %.*s", s->id.ptr,
                     (int)(stage.len < 32 ? stage.len : 32), stage.ptr);
    hfsbi_hub_copy(hfsb_json_get(status, "message"), why, sizeof why);
    if (!why[0])
        hfsbi_hub_copy(hfsb_json_get(status, "cancelReason"), why, sizeof why);
    hfsbi_create_scrub(&s->o, spec, why);
    if (why[0]) hfsbi_err_add(err, ": %s", why);
    hfsbi_err_add(err, ". Check %s", s->page.ptr);
    hfsbi_log_end_add(s, spec, "job", err);
    return HFSB_REMOTE;
}

/* ---- its home ---- */

static hfsb_status hfsbi_hubjob_look(hfsb_sandbox *s, bool fresh,
                                     hfsb_err *err) {
    const hfsb_sandbox_spec none = HFSB_INIT;
    hfsb_json_doc           doc = HFSB_INIT;
    hfsb_status             st;
    (void)fresh;
    doc.alloc = s->o.alloc;
    st = hfsbi_hubjob_ask(s, s->o.times.health_ms, &doc, NULL);
    if (st == HFSB_NOT_FOUND)
        return hfsbi_fail(err, st, 0,
                          "The Hub shows no job %s: check the id, and whether "
                          "the token may see it.",
                          s->id.ptr);
    if (st == HFSB_OK && hfsbi_job_is_final(hfsbi_job_stage(doc.root)))
        st = hfsbi_hubjob_ended(s, &none, doc.root, err);
    else st = HFSB_OK; /* it starts or runs, or the Hub does not answer */
    hfsb_json_free(&doc);
    return st;
}

HFSBI_FN hfsb_status hfsbi_hubjob_status(hfsb_sandbox       *s,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    doc.alloc = s->o.alloc;
    memset(out, 0, sizeof *out);
    st = hfsb_hub_job(s->o.hub, hfsbi_hubjob_owner(s), hfsbi_hubjob_id(s),
                      s->o.cancel, &doc, err);
    if (st != HFSB_OK) return st;
    hfsbi_hub_copy(hfsb_json_get(hfsb_json_get(doc.root, "status"), "stage"),
                   out->stage, sizeof out->stage);
    hfsbi_hub_copy(hfsb_json_get(hfsb_json_get(doc.root, "status"), "message"),
                   out->error, sizeof out->error);
    hfsbi_hub_copy(hfsb_json_get(doc.root, "flavor"), out->hardware,
                   sizeof out->hardware);
    hfsb_json_free(&doc);
    return hfsbi_ok(err);
}

static void hfsbi_hubjob_write_stage(hfsb_sandbox      *s,
                                     const hfsb_cancel *cancel, char *out,
                                     size_t size) {
    hfsb_json_doc doc = HFSB_INIT;
    doc.alloc = s->o.alloc;
    if (hfsb_hub_job(s->o.hub, hfsbi_hubjob_owner(s), hfsbi_hubjob_id(s),
                     cancel, &doc, NULL) == HFSB_OK)
        hfsbi_hub_copy(
            hfsb_json_get(hfsb_json_get(doc.root, "status"), "stage"), out,
            size);
    else (void)snprintf(out, size, "unknown");
    hfsb_json_free(&doc);
}

HFSBI_FN hfsb_status hfsbi_hubjob_new(const hfsb_sandbox_opts *opts,
                                      hfsb_str id, bool owned,
                                      hfsb_sandbox **out, hfsb_err *err) {
    static const hfsbi_home home = {
        hfsbi_hubjob_look, hfsbi_hubjob_write_stage, hfsb_sandbox_delete};
    hfsb_sandbox_opts o;
    hfsb_str          endpoint;
    hfsb_status       st;
    *out = NULL;
    if (!opts || !opts->hub)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a sandbox that is a job needs the option hub");
    o = *opts;
    endpoint = hfsb_hub_endpoint(o.hub);
    if (!o.transport) o.transport = hfsbi_hub_transport(o.hub);
    if (!o.times.poll_ms) o.times.poll_ms = HFSBI_HUBJOB_POLL_MS;
    if (!o.times.api_poll_ms) o.times.api_poll_ms = HFSBI_HUBJOB_API_POLL_MS;
    st = hfsbi_sandbox_new(&o, id, out, err);
    if (st != HFSB_OK) return st;
    (*out)->home = &home;
    (*out)->owned = owned;
    (*out)->at_edge = true;
    st = hfsb_buf_printf(&(*out)->page, "%.*s/%s", (int)endpoint.len,
                         endpoint.ptr, (*out)->id.ptr);
    if (st != HFSB_OK) (void)hfsbi_fail_status(err, st, "Address");
    else if (o.space_url.len)
        st = hfsbi_sandbox_address(o.space_url, NULL, &(*out)->api, err);
    if (st == HFSB_OK) return st;
    hfsbi_sandbox_free(*out);
    *out = NULL;
    return st;
}

HFSBI_FN hfsb_status hfsbi_hubjob_locate(hfsb_sandbox *s, hfsb_err *err) {
    const hfsb_sandbox_spec none = HFSB_INIT;
    hfsb_json_doc           doc = HFSB_INIT;
    hfsb_status             st;
    if (s->api.len && s->o.api_token.len) return HFSB_OK;
    doc.alloc = s->o.alloc;
    st = hfsb_hub_job(s->o.hub, hfsbi_hubjob_owner(s), hfsbi_hubjob_id(s),
                      s->o.cancel, &doc, err);
    if (st != HFSB_OK) return st;
    if (hfsbi_job_is_final(hfsbi_job_stage(doc.root)))
        st = hfsbi_hubjob_ended(s, &none, doc.root, err);
    if (st == HFSB_OK) st = hfsbi_hubjob_take_token(s, doc.root, err);
    if (st == HFSB_OK) st = hfsbi_hubjob_take_url(s, doc.root, err);
    hfsb_json_free(&doc);
    return st;
}

HFSBI_FN hfsb_status hfsbi_hubjob_await_url(hfsb_sandbox            *s,
                                            const hfsb_sandbox_spec *spec,
                                            long long                deadline,
                                            hfsb_err                *err) {
    hfsb_status st = HFSB_OK, wait;
    int         failures = 0;
    while (!s->api.len) {
        hfsb_json_doc doc = HFSB_INIT;
        doc.alloc = s->o.alloc;
        st = hfsbi_hubjob_ask(s, s->o.times.health_ms, &doc, err);
        if (st == HFSB_OK) {
            hfsb_str stage = hfsbi_job_stage(doc.root);
            if (spec->on_stage && stage.len)
                spec->on_stage(spec->user, s->id, stage.ptr);
            failures = 0;
            if (hfsbi_job_is_final(stage))
                st = hfsbi_hubjob_ended(s, spec, doc.root, err);
            else st = hfsbi_hubjob_take_url(s, doc.root, err);
            if (st == HFSB_BUSY && hfsb_str_equal(stage, HFSB_LIT("RUNNING")))
                st = HFSB_REMOTE;
        } else if (st != HFSB_CANCELLED && st != HFSB_NOMEM &&
                   ++failures < 3) {
            st = HFSB_BUSY;
        }
        hfsb_json_free(&doc);
        if (st != HFSB_BUSY) return st;
        wait = hfsbi_poll_wait(s->o.cancel, s->o.times.poll_ms, deadline);
        if (wait == HFSB_CANCELLED) return wait;
        if (wait == HFSB_LIMIT) return HFSB_TIMEOUT;
    }
    return st;
}

/* ---- its end ---- */

/* The Hub refused to cancel: HFSB_OK when that is because the job has
   ended. */
static hfsb_status hfsbi_hubjob_check_end(hfsb_hub *hub, hfsb_str owner,
                                          hfsb_str           job,
                                          const hfsb_cancel *cancel,
                                          hfsb_status st, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    doc.alloc = hub->alloc;
    if (hfsb_hub_job(hub, owner, job, cancel, &doc, NULL) == HFSB_OK &&
        hfsbi_job_is_final(hfsbi_job_stage(doc.root)))
        st = hfsbi_ok(err);
    hfsb_json_free(&doc);
    return st;
}

HFSBI_FN hfsb_status hfsbi_hubjob_end(hfsb_hub *hub, hfsb_str id,
                                      long long          until,
                                      const hfsb_cancel *cancel,
                                      hfsbi_hub_tried *tried, hfsb_err *err) {
    hfsb_str          owner = HFSB_INIT, job = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status       st;
    (void)hfsbi_hubjob_split(id, &owner, &job);
    st = hfsbi_hub_begin(hub, &request, HFSBI_HUB_JOB_CANCEL, owner, job,
                         cancel, err);
    if (tried) request.retry.tries = 1;
    request.retry.deadline = until;
    if (st == HFSB_OK) st = hfsbi_hub_send(&request, err);
    if (tried)
        tried->asked_ms = request.retry.asked_ms <= hub->max_wait_ms
                              ? request.retry.asked_ms
                              : 0;
    hfsbi_hub_end(&request);
    if (st == HFSB_ARG || st == HFSB_CONFLICT || st == HFSB_DENIED)
        st = hfsbi_hubjob_check_end(hub, owner, job, cancel, st, err);
    return st;
}
