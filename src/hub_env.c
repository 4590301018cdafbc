/* hub_env.c - what the environment says about the Hub. Depends on: file. */
#include "hub_parts.h"

/* An empty variable counts as unset. */
static hfsb_str hfsbi_env_get(const char *name) {
    return hfsb_cstr(getenv(name));
}

/* 1, ON, YES or TRUE, in any case. */
static bool hfsbi_env_is_true(const char *name) {
    hfsb_str value = hfsbi_env_get(name);
    return hfsb_http_same(value, HFSB_LIT("1")) ||
           hfsb_http_same(value, HFSB_LIT("on")) ||
           hfsb_http_same(value, HFSB_LIT("yes")) ||
           hfsb_http_same(value, HFSB_LIT("true"));
}

/* ---- paths with "~" and variables in them ---- */

static bool hfsbi_env_is_name(char c) {
    char l = hfsbi_lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* text begins with "$": puts the value of the variable there, or the text
   itself when there is none, as Python does. Gives the bytes taken. */
static size_t hfsbi_env_variable(hfsbi_sink *sink, hfsb_str text) {
    char     name[256];
    bool     braces = text.len > 1 && text.ptr[1] == '{';
    size_t   from = braces ? 2 : 1, to = from, end;
    hfsb_str value = HFSB_INIT;
    if (braces) to = hfsb_str_find_byte(text, '}');
    else
        while (to < text.len && hfsbi_env_is_name(text.ptr[to])) to++;
    if (to == HFSB_NPOS || to == from || to - from >= sizeof name) {
        hfsbi_put_byte(sink, '$');
        return 1;
    }
    end = to + (braces ? 1 : 0);
    memcpy(name, text.ptr + from, to - from);
    name[to - from] = '\0';
    if (getenv(name)) value = hfsbi_env_get(name);
    else value = hfsb_str_slice(text, 0, end);
    hfsbi_put(sink, value);
    return end;
}

static hfsb_status hfsbi_env_expand(hfsb_str text, hfsb_buf *out) {
    hfsb_str   home = hfsbi_env_get("HOME");
    hfsbi_sink sink = hfsbi_sink_begin(out);
    if (home.len && (hfsb_str_equal(text, HFSB_LIT("~")) ||
                     hfsb_str_starts(text, HFSB_LIT("~/")))) {
        hfsbi_put(&sink, home);
        text = hfsb_str_slice(text, 1, text.len);
    }
    while (text.len) {
        size_t n = 1;
        if (*text.ptr == '$') n = hfsbi_env_variable(&sink, text);
        else hfsbi_put_byte(&sink, *text.ptr);
        text = hfsb_str_slice(text, n, text.len);
    }
    return hfsbi_sink_end(&sink);
}

/* ---- the token ---- */

/* Appends it without line breaks, and without white space around it. */
static hfsb_status hfsbi_env_clean(hfsb_str raw, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    size_t     i, from = 0;
    while (from < raw.len && strchr(" \t\r\n\v\f", raw.ptr[from])) from++;
    while (raw.len > from && strchr(" \t\r\n\v\f", raw.ptr[raw.len - 1]))
        raw.len--;
    for (i = from; i < raw.len; i++)
        if (raw.ptr[i] != '\r' && raw.ptr[i] != '\n')
            hfsbi_put_byte(&sink, raw.ptr[i]);
    return hfsbi_sink_end(&sink);
}

/* Where the file with the token is; *path stays empty when that is nowhere. */
static hfsb_status hfsbi_env_token_path(hfsb_buf *path) {
    hfsb_str    file = hfsbi_env_get("HF_TOKEN_PATH");
    hfsb_str    home = hfsbi_env_get("HF_HOME");
    hfsb_str    cache = hfsbi_env_get("XDG_CACHE_HOME");
    hfsb_status status;
    if (file.len) return hfsbi_env_expand(file, path);
    if (home.len) status = hfsbi_env_expand(home, path);
    else {
        if (!cache.len && !hfsbi_env_get("HOME").len) return HFSB_OK;
        if (!cache.len) cache = HFSB_LIT("~/.cache");
        status = hfsbi_env_expand(cache, path);
        if (status == HFSB_OK)
            status = hfsb_buf_append(path, HFSB_LIT("/huggingface"));
    }
    if (status != HFSB_OK) return status;
    return hfsb_buf_append(path, HFSB_LIT("/token"));
}

enum { HFSBI_ENV_TOKEN_FILE = 65536 };

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
            status = hfsbi_fail(err, HFSB_IO, 0,
                                "The file with the Hub's token cannot be "
                                "read: %s",
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

/* ---- all of it ---- */

hfsb_status hfsb_hub_env_read(hfsb_hub_env *env, hfsb_err *err) {
    hfsb_str    endpoint = hfsbi_env_get("HF_ENDPOINT");
    hfsb_status status;
    while (hfsb_str_ends(endpoint, HFSB_LIT("/"))) endpoint.len--;
    if (!endpoint.len && hfsbi_env_is_true("HUGGINGFACE_CO_STAGING"))
        endpoint = HFSB_LIT("https://hub-ci.huggingface.co");
    env->offline = hfsbi_env_is_true("HF_HUB_OFFLINE") ||
                   hfsbi_env_is_true("TRANSFORMERS_OFFLINE");
    status = hfsb_buf_append(&env->endpoint, endpoint);
    if (status == HFSB_OK)
        status = hfsb_buf_append(&env->origin,
                                 hfsbi_env_get("HF_HUB_USER_AGENT_ORIGIN"));
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
