/* hub.c - the handle of the Hub: its environment, its options, its token's
   owner, and helpers of all its calls.

   A hub is constant once it is open, except for two things that calls learn
   and that its lock protects: the name of the token's owner, asked for once,
   and the topics of warnings that were already logged. Every copy of the token
   is wiped before its memory is given back. */
#include "hub_private.h"

HFSBI_FN void hfsbi_hub_wipe(hfsb_buf *b) {
    if (b->ptr) hfsb_secret_wipe(b->ptr, b->cap);
    hfsb_buf_free(b);
}

/* ---- the environment ---- */

/* The value of a variable, "" when it is unset. */
static hfsb_str hfsbi_env_get(const char *name) {
    return hfsb_cstr(getenv(name));
}

/* True for 1, ON, YES or TRUE, in any case. */
static bool hfsbi_env_is_true(const char *name) {
    hfsb_str value = hfsbi_env_get(name);
    return hfsb_http_same(value, HFSB_LIT("1")) ||
           hfsb_http_same(value, HFSB_LIT("on")) ||
           hfsb_http_same(value, HFSB_LIT("yes")) ||
           hfsb_http_same(value, HFSB_LIT("true"));
}

/* Appends the value of the variable at the start of text ("$NAME", "${NAME}"),
   or the text itself when it is unset, as Python does. Returns the number of
   bytes used. */
static size_t hfsbi_env_variable(hfsb_buf *sink, hfsb_str text) {
    char     name[256];
    bool     braces = text.len > 1 && text.ptr[1] == '{';
    size_t   from = braces ? 2 : 1, to = from, end;
    hfsb_str value = HFSB_INIT;
    if (braces) to = hfsb_str_find_byte(text, '}');
    else
        while (to < text.len && hfsbi_is_word_char(text.ptr[to])) to++;
    if (to == HFSB_NPOS || to == from || to - from >= sizeof name) {
        hfsb_buf_append_byte(sink, '$');
        return 1;
    }
    end = to + (braces ? 1 : 0);
    memcpy(name, text.ptr + from, to - from);
    name[to - from] = '\0';
    if (getenv(name)) value = hfsbi_env_get(name);
    else value = hfsb_str_slice(text, 0, end);
    hfsb_buf_append(sink, value);
    return end;
}

/* Appends a path with "~/" and variables expanded. */
static hfsb_status hfsbi_env_expand(hfsb_str text, hfsb_buf *out) {
    hfsb_str home = hfsbi_env_get("HOME");
    size_t   mark = out->len;
    if (home.len && (hfsb_str_equal(text, HFSB_LIT("~")) ||
                     hfsb_str_starts(text, HFSB_LIT("~/")))) {
        hfsb_buf_append(out, home);
        text = hfsb_str_slice(text, 1, text.len);
    }
    while (text.len) {
        size_t n = 1;
        if (*text.ptr == '$') n = hfsbi_env_variable(out, text);
        else hfsb_buf_append_byte(out, *text.ptr);
        text = hfsb_str_slice(text, n, text.len);
    }
    return hfsb_buf_finish(out, mark);
}

/* Appends a token without line breaks and surrounding white space. */
static hfsb_status hfsbi_env_clean(hfsb_str raw, hfsb_buf *out) {
    size_t i, from = 0;
    while (from < raw.len && strchr(" \t\r\n\v\f", raw.ptr[from])) from++;
    while (raw.len > from && strchr(" \t\r\n\v\f", raw.ptr[raw.len - 1]))
        raw.len--;
    for (i = from; i < raw.len; i++)
        if (raw.ptr[i] != '\r' && raw.ptr[i] != '\n')
            hfsb_buf_append_byte(out, raw.ptr[i]);
    return out->status;
}

/* Appends the path of the token file; nothing when it is not known. */
static hfsb_status hfsbi_env_token_path(hfsb_buf *path) {
    hfsb_str file = hfsbi_env_get("HF_TOKEN_PATH");
    hfsb_str home = hfsbi_env_get("HF_HOME");
    hfsb_str cache = hfsbi_env_get("XDG_CACHE_HOME");
    if (file.len) return hfsbi_env_expand(file, path);
    if (home.len) (void)hfsbi_env_expand(home, path);
    else {
        if (!cache.len && !hfsbi_env_get("HOME").len) return HFSB_OK;
        if (!cache.len) cache = HFSB_LIT("~/.cache");
        (void)hfsbi_env_expand(cache, path);
        hfsb_buf_append(path, HFSB_LIT("/huggingface"));
    }
    return hfsb_buf_append(path, HFSB_LIT("/token"));
}

enum { HFSBI_ENV_TOKEN_FILE = 65536 }; /* bytes */

static hfsb_status hfsbi_env_token_file(hfsb_buf *out, hfsb_err *err) {
    hfsb_buf    path = HFSB_INIT, raw = HFSB_INIT;
    hfsb_err    why = HFSB_INIT;
    hfsb_status status;
    path.alloc = raw.alloc = out->alloc;
    status = hfsbi_env_token_path(&path);
    if (status == HFSB_OK && path.len) {
        status = hfsb_file_read(NULL, hfsb_buf_str(&path),
                                HFSBI_ENV_TOKEN_FILE, &raw, NULL, &why);
        if (status == HFSB_NOT_FOUND) status = HFSB_OK;
        else if (status != HFSB_OK && status != HFSB_NOMEM)
            status =
                hfsbi_fail(err, HFSB_IO, 0,
                           "The file with the Hub's token cannot be read: "
                           "%s",
                           why.msg);
    }
    if (status == HFSB_OK) status = hfsbi_env_clean(hfsb_buf_str(&raw), out);
    if (status == HFSB_NOMEM)
        hfsbi_fail_status(err, status, "The Hub's token");
    hfsb_buf_free(&path);
    hfsbi_hub_wipe(&raw);
    return status;
}

static hfsb_status hfsbi_env_token(hfsb_buf *out, hfsb_err *err) {
    hfsb_status status;
    if (hfsbi_env_is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return HFSB_OK;
    status = hfsbi_env_clean(hfsbi_env_get("HF_TOKEN"), out);
    if (status == HFSB_OK && !out->len)
        status = hfsbi_env_clean(hfsbi_env_get("HUGGING_FACE_HUB_TOKEN"), out);
    if (status != HFSB_OK)
        return hfsbi_fail_status(err, status, "The Hub's token");
    if (out->len) return HFSB_OK;
    return hfsbi_env_token_file(out, err);
}

hfsb_status hfsb_hub_env_read(hfsb_hub_env *env, hfsb_err *err) {
    hfsb_str    endpoint = hfsbi_env_get("HF_ENDPOINT");
    hfsb_status status;
    while (hfsb_str_ends(endpoint, HFSB_LIT("/"))) endpoint.len--;
    if (!endpoint.len && hfsbi_env_is_true("HUGGINGFACE_CO_STAGING"))
        endpoint = HFSB_LIT("https://hub-ci.huggingface.co");
    env->offline = hfsbi_env_is_true("HF_HUB_OFFLINE") ||
                   hfsbi_env_is_true("TRANSFORMERS_OFFLINE");
    hfsb_buf_append(&env->endpoint, endpoint);
    hfsb_buf_append(&env->origin, hfsbi_env_get("HF_HUB_USER_AGENT_ORIGIN"));
    status = env->endpoint.status;
    if (status == HFSB_OK) status = env->origin.status;
    if (status != HFSB_OK)
        hfsbi_fail_status(err, status, "The Hub's environment");
    else status = hfsbi_env_token(&env->token, err);
    if (status == HFSB_OK) return hfsbi_ok(err);
    hfsb_hub_env_free(env);
    return status;
}

void hfsb_hub_env_free(hfsb_hub_env *env) {
    hfsb_buf_free(&env->endpoint);
    hfsbi_hub_wipe(&env->token);
    hfsb_buf_free(&env->origin);
    env->offline = false;
}

/* ---- open and close ---- */

/* True when s is printable ASCII, with or without blanks. */
static bool hfsbi_hub_is_plain(hfsb_str s, bool blanks) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c > '~' || c < (blanks ? ' ' : '!')) return false;
    }
    return true;
}

static hfsb_status hfsbi_hub_check(const hfsb_hub_opts *opts, hfsb_err *err) {
    hfsb_url url;
    if (!opts || !opts->transport || !opts->transport->perform)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The Hub needs a transport: hfsb_net_open() opens "
                          "one for http, hfsb_http_curl.h one for https.");
    if (!hfsbi_hub_is_plain(opts->token, false))
        return hfsbi_fail(
            err, HFSB_ARG, 0,
            "The Hub's token contains a blank, a line break or "
            "a byte that is not ASCII. Set HF_TOKEN to the token "
            "alone.");
    if (!hfsbi_hub_is_plain(opts->user_agent, true))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "user_agent contains a control byte or a byte that "
                          "is not ASCII.");
    if (!opts->endpoint.len) return HFSB_OK;
    if (hfsb_url_parse(opts->endpoint, &url, err) != HFSB_OK) {
        hfsbi_err_add(err, " (HF_ENDPOINT)");
        return HFSB_ARG;
    }
    if (url.user.len || hfsb_str_find_byte(opts->endpoint, '?') != HFSB_NPOS ||
        hfsb_str_find_byte(opts->endpoint, '#') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The Hub's endpoint must be an address like "
                          "https://huggingface.co, without user, \"?\" or "
                          "\"#\" (HF_ENDPOINT).");
    return HFSB_OK;
}

/* Copies the texts of the options. */
static hfsb_status hfsbi_hub_copy_texts(hfsb_hub            *hub,
                                        const hfsb_hub_opts *opts) {
    hfsb_str endpoint = opts->endpoint;
    while (hfsb_str_ends(endpoint, HFSB_LIT("/"))) endpoint.len--;
    if (!endpoint.len) endpoint = HFSB_LIT("https://huggingface.co");
    hfsb_buf_append(&hub->endpoint, endpoint);
    if (opts->token.len)
        hfsb_buf_append(&hub->authorization, HFSB_LIT("Bearer "));
    hfsb_buf_append(&hub->authorization, opts->token);
    hfsb_buf_append(&hub->agent, opts->user_agent);
    if (opts->user_agent.len) hfsb_buf_append(&hub->agent, HFSB_LIT("; "));
    hfsb_buf_append(&hub->agent, HFSB_LIT("hfsb/" HFSB_VERSION));
    if (hub->endpoint.status != HFSB_OK || hub->agent.status != HFSB_OK ||
        hub->authorization.status != HFSB_OK)
        return HFSB_NOMEM;
    return hfsb_url_parse(hfsb_buf_str(&hub->endpoint), &hub->origin, NULL);
}

hfsb_status hfsb_hub_open(const hfsb_hub_opts *opts, hfsb_hub **out,
                          hfsb_err *err) {
    hfsb_hub   *hub;
    hfsb_status status = hfsbi_hub_check(opts, err);
    *out = NULL;
    if (status != HFSB_OK) return status;
    hub = (hfsb_hub *)hfsbi_array(&opts->alloc, 1, sizeof *hub);
    if (!hub) return hfsbi_fail_status(err, HFSB_NOMEM, "Hub");
    memset(hub, 0, sizeof *hub);
    hub->alloc = opts->alloc;
    if (pthread_mutex_init(&hub->lock, NULL) != 0) {
        hfsbi_array_free(&opts->alloc, hub, 1, sizeof *hub);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Hub");
    }
    hub->endpoint.alloc = hub->authorization.alloc = hub->agent.alloc =
        hub->owner.alloc = hub->topics.alloc = opts->alloc;
    hub->topics.max = 16384;
    hub->transport = opts->transport;
    hub->offline = opts->offline;
    hub->timeout_ms = opts->timeout_ms > 0 ? opts->timeout_ms : 60000;
    hub->max_wait_ms = opts->max_wait_ms > 0 ? opts->max_wait_ms : 60000;
    hub->retry.tries = opts->tries ? opts->tries : 5;
    hub->retry.delay_ms = opts->delay_ms > 0 ? opts->delay_ms : 1000;
    hub->retry.max_delay_ms = 8 * hub->retry.delay_ms;
    hub->log = opts->log;
    hub->user = opts->user;
    if (hfsbi_hub_copy_texts(hub, opts) != HFSB_OK) {
        hfsb_hub_close(hub);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Hub");
    }
    *out = hub;
    return hfsbi_ok(err);
}

void hfsb_hub_close(hfsb_hub *hub) {
    hfsb_alloc alloc;
    if (!hub) return;
    alloc = hub->alloc;
    hfsb_buf_free(&hub->endpoint);
    hfsbi_hub_wipe(&hub->authorization);
    hfsb_buf_free(&hub->agent);
    hfsb_buf_free(&hub->owner);
    hfsb_buf_free(&hub->topics);
    pthread_mutex_destroy(&hub->lock);
    hfsbi_array_free(&alloc, hub, 1, sizeof *hub);
}

hfsb_str hfsb_hub_endpoint(const hfsb_hub *hub) {
    return hfsb_buf_str(&hub->endpoint);
}

bool hfsb_hub_has_token(const hfsb_hub *hub) {
    return hub->authorization.len != 0;
}

HFSBI_FN const hfsb_transport *hfsbi_hub_transport(const hfsb_hub *hub) {
    return hub->transport;
}

/* ---- the log ---- */

HFSBI_FN void hfsbi_hub_log(const hfsb_hub *hub, const char *format, ...) {
    char    line[1024];
    int     n;
    va_list ap;
    if (!hub->log) return;
    va_start(ap, format);
    n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n >= sizeof line) n = (int)sizeof line - 1;
    hub->log(hub->user, hfsb_str_make(line, (size_t)n));
}

HFSBI_FN bool hfsbi_hub_first(hfsb_hub *hub, hfsb_str topic) {
    hfsb_buf *topics = &hub->topics;
    size_t    mark;
    bool      known;
    pthread_mutex_lock(&hub->lock);
    known = hfsbi_list_has(hfsb_buf_str(topics), '\n', topic);
    if (!known) {
        mark = topics->len;
        hfsb_buf_append(topics, topic);
        hfsb_buf_append_byte(topics, '\n');
        /* without memory the warning is logged again: no harm */
        if (topics->status != HFSB_OK) hfsb_buf_truncate(topics, mark);
    }
    pthread_mutex_unlock(&hub->lock);
    return !known;
}

/* ---- the token's owner ---- */

hfsb_status hfsb_hub_whoami(hfsb_hub *hub, const hfsb_cancel *cancel,
                            hfsb_json_doc *out, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_WHOAMI, none,
                                         none, cancel, err);
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_hardware(hfsb_hub *hub, bool jobs,
                              const hfsb_cancel *cancel, hfsb_json_doc *out,
                              hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status       status = hfsbi_hub_begin(hub, &request,
                                         jobs ? HFSBI_HUB_JOB_HARDWARE
                                                    : HFSBI_HUB_SPACE_HARDWARE,
                                               none, none, cancel, err);
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

static hfsb_status
hfsbi_hub_ask_owner(hfsb_hub *hub, const hfsb_cancel *cancel, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      name;
    hfsb_status   status;
    if (!hfsb_hub_has_token(hub))
        return hfsbi_fail(err, HFSB_AUTH, 0,
                          "No token, so the Hub cannot tell who the owner is: "
                          "set HF_TOKEN (create one at %s/settings/tokens), "
                          "or name the owner.",
                          hub->endpoint.ptr);
    doc.alloc = hub->alloc;
    status = hfsb_hub_whoami(hub, cancel, &doc, err);
    if (status != HFSB_OK) return status;
    name = hfsbi_json_get_str(doc.root, "name");
    if (!name.len)
        status = hfsbi_fail(err, HFSB_REMOTE, 0,
                            "The Hub's answer to whoami has no name.");
    else {
        pthread_mutex_lock(&hub->lock);
        if (!hub->owner.len) status = hfsb_buf_append(&hub->owner, name);
        if (status != HFSB_OK) hfsb_buf_truncate(&hub->owner, 0);
        pthread_mutex_unlock(&hub->lock);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, "whoami");
    }
    hfsb_json_free(&doc);
    return status;
}

hfsb_status hfsb_hub_user(hfsb_hub *hub, const hfsb_cancel *cancel,
                          hfsb_buf *out, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    bool        known;
    pthread_mutex_lock(&hub->lock);
    known = hub->owner.len != 0;
    pthread_mutex_unlock(&hub->lock);
    if (!known) status = hfsbi_hub_ask_owner(hub, cancel, err);
    if (status != HFSB_OK) return status;
    /* needs no lock: once set, the name does not change */
    status = hfsb_buf_append(out, hfsb_buf_str(&hub->owner));
    if (status != HFSB_OK) return hfsbi_fail_status(err, status, "whoami");
    return hfsbi_ok(err);
}

/* ---- JSON and names ---- */

HFSBI_FN void hfsbi_hub_put(hfsb_json_writer *w, const char *key,
                            hfsb_str value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, value);
}

HFSBI_FN void hfsbi_hub_put_encoded(hfsb_buf *out, hfsb_str text) {
    if (out->status == HFSB_OK)
        out->status = hfsb_http_encode(text, false, out);
}

HFSBI_FN void hfsbi_hub_copy(const hfsb_json_value *value, char *out,
                             size_t size) {
    hfsb_str text = hfsb_json_str(value, HFSB_LIT(""));
    size_t   n = text.len < size ? text.len : hfsbi_utf8_floor(text, size - 1);
    if (n) memcpy(out, text.ptr, n);
    out[n] = '\0';
}

static bool hfsbi_hub_key_is_good(hfsb_str key, size_t least) {
    size_t i;
    bool   ok = key.len >= least && hfsbi_is_alpha(key.ptr[0]);
    for (i = 1; ok && i < key.len; i++) ok = hfsbi_is_word_char(key.ptr[i]);
    return ok;
}

HFSBI_FN hfsb_status hfsbi_hub_check_keys(const hfsb_hub_pair *pairs,
                                          size_t count, size_t least,
                                          hfsb_err *err) {
    size_t i;
    for (i = 0; i < count; i++) {
        if (hfsbi_hub_key_is_good(pairs[i].key, least)) continue;
        (void)hfsbi_fail(err, HFSB_ARG, i, "\"");
        hfsbi_err_quote(err, pairs[i].key, 60);
        hfsbi_err_add(err,
                      "\" is not a name the Hub accepts: expected a letter, "
                      "then letters, digits and \"_\"%s.",
                      least > 1 ? ", at least two characters" : "");
        return HFSB_ARG;
    }
    return HFSB_OK;
}
