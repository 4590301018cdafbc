/* codex_params.c - reads the parameters of a call of codex.c, and writes values
   of its answer.

   The environment of a process comes from a policy:

       ours --inherit, default excludes, exclude--> + set --includeOnly--> + env

   Patterns have "*" and "?" and ignore case. Without a policy it is `env`
   alone. */
#include "dialect_private.h"

enum {
    HFSBI_CODEX_VARIABLES = 2048, /* of a process, */
    HFSBI_CODEX_PATTERNS = 256,   /* and of its policy; */
    HFSBI_CODEX_NAME = 1024       /* bytes of a name */
};

/* ---- the answer ---- */

HFSBI_FN hfsb_buf *hfsbi_codex_result(hfsbi_codex_call *call) {
    hfsb_buf_append(&call->out, HFSB_LIT("{\"id\":"));
    (void)hfsb_json_write(call->id, NULL, &call->out, NULL);
    hfsb_buf_append(&call->out, HFSB_LIT(",\"result\":"));
    return &call->out;
}

HFSBI_FN void hfsbi_codex_fail(hfsbi_codex_call *call, int code,
                               const char *format, ...) {
    va_list ap;
    call->code = code;
    (void)hfsbi_fail(&call->err, HFSB_ARG, 0, "%s", "");
    va_start(ap, format);
    (void)vsnprintf(call->err.msg, sizeof call->err.msg, format, ap);
    va_end(ap);
}

/* ---- parameters ---- */

HFSBI_FN bool hfsbi_codex_str(hfsbi_codex_call *call, const char *key,
                              hfsb_str *out) {
    hfsb_err err = HFSB_INIT;
    if (hfsb_json_arg_str(call->params, key, true, out, &err) == HFSB_OK)
        return true;
    hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS, "%s", err.msg);
    return false;
}

HFSBI_FN bool hfsbi_codex_bool(hfsbi_codex_call *call, const char *key,
                               bool *out) {
    hfsb_err err = HFSB_INIT;
    if (hfsb_json_arg_bool(call->params, key, false, out, &err) == HFSB_OK)
        return true;
    hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS, "%s", err.msg);
    return false;
}

/* ---- URIs and bytes ---- */

HFSBI_FN bool hfsbi_codex_path(hfsbi_codex_call *call, const char *key,
                               hfsb_buf *out) {
    hfsb_str    uri;
    hfsb_status st = HFSB_SYNTAX;
    if (!hfsbi_codex_str(call, key, &uri)) return false;
    if (hfsb_str_starts(uri, HFSB_LIT("file://localhost/")))
        uri = hfsb_str_slice(uri, 16, uri.len);
    else if (hfsb_str_starts(uri, HFSB_LIT("file:///")))
        uri = hfsb_str_slice(uri, 7, uri.len);
    else uri.len = 0;
    if (uri.len && hfsbi_url_until(uri, "?#") == uri.len)
        st = hfsb_http_decode(uri, out, NULL);
    if (st == HFSB_OK &&
        hfsb_str_find_byte(hfsb_buf_str(out), '\0') == HFSB_NPOS)
        return true;
    hfsbi_codex_fail(
        call, st == HFSB_NOMEM ? HFSBI_CODEX_INTERNAL : HFSBI_CODEX_PARAMS,
        st == HFSB_NOMEM ? "%s: out of memory."
                         : "%s must be a file URI of an absolute "
                           "path: file:///dir/file.",
        key);
    return false;
}

HFSBI_FN void hfsbi_codex_put_uri(hfsb_buf *out, hfsb_str path) {
    static const char plain[] = "/-._~!$&'()*+,;=:@";
    size_t            i;
    hfsb_buf_append(out, HFSB_LIT("\"file://"));
    for (i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (hfsbi_is_alpha(c) || hfsbi_is_digit(c) || (c && strchr(plain, c)))
            hfsb_buf_append_byte(out, c);
        else hfsb_buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
    hfsb_buf_append_byte(out, '"');
}

HFSBI_FN void hfsbi_codex_put_base64(hfsb_buf *out, hfsb_str bytes) {
    hfsb_buf_append_byte(out, '"');
    if (hfsb_base64_encode(bytes, out) != HFSB_OK)
        out->status = HFSB_NOMEM; /* the answer has failed */
    hfsb_buf_append_byte(out, '"');
}

/* ---- the environment of a process ---- */

/* True when a pattern with "*" and "?" matches the whole name, ignoring case.
   */
static bool hfsbi_codex_matches(hfsb_str pattern, hfsb_str name) {
    size_t p = 0, n = 0, star = HFSB_NPOS, from = 0;
    while (n < name.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.len &&
                   (pattern.ptr[p] == '?' ||
                    hfsbi_lower(pattern.ptr[p]) == hfsbi_lower(name.ptr[n]))) {
            p++;
            n++;
        } else if (star != HFSB_NPOS) { /* the star takes one more */
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') p++;
    return p == pattern.len;
}

/* True when one of the patterns of a list matches. */
static bool hfsbi_codex_listed(const hfsb_json_value *list, hfsb_str name) {
    hfsb_json_iter it = hfsb_json_begin(list);
    while (hfsb_json_next(&it))
        if (hfsbi_codex_matches(hfsb_json_str(it.value, HFSB_LIT("")), name))
            return true;
    return false;
}

static bool hfsbi_codex_is_core(hfsb_str name) {
    return hfsbi_list_has(HFSB_LIT("PATH SHELL TMPDIR TEMP TMP HOME LANG "
                                   "LC_ALL LC_CTYPE LOGNAME USER"),
                          ' ', name);
}

static bool hfsbi_codex_is_secret(hfsb_str name) {
    return hfsbi_codex_matches(HFSB_LIT("*KEY*"), name) ||
           hfsbi_codex_matches(HFSB_LIT("*SECRET*"), name) ||
           hfsbi_codex_matches(HFSB_LIT("*TOKEN*"), name);
}

/* True when the policy lets a variable through: inherited, or one of `set`. */
static bool hfsbi_codex_lets(const hfsb_json_value *policy, hfsb_str name,
                             bool inherited) {
    const hfsb_json_value *only = hfsb_json_get(policy, "includeOnly");
    hfsb_str               from = hfsbi_json_get_str(policy, "inherit");
    if (hfsb_json_count(only) && !hfsbi_codex_listed(only, name)) return false;
    if (!inherited) return true;
    if (hfsb_str_equal(from, HFSB_LIT("none"))) return false;
    if (hfsb_str_equal(from, HFSB_LIT("core")) && !hfsbi_codex_is_core(name))
        return false;
    if (!hfsb_json_bool(hfsb_json_get(policy, "ignoreDefaultExcludes"),
                        false) &&
        hfsbi_codex_is_secret(name))
        return false;
    return !hfsbi_codex_listed(hfsb_json_get(policy, "exclude"), name);
}

static bool hfsbi_codex_has(const hfsb_json_value *object, hfsb_str name) {
    hfsb_json_iter it = hfsb_json_begin(object);
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(it.key, name)) return true;
    return false;
}

/* Appends the variables of an object that another one does not replace. False
   when one of them cannot be a variable. */
static bool hfsbi_codex_set(const hfsb_json_value *object,
                            const hfsb_json_value *policy,
                            const hfsb_json_value *later, hfsb_buf *env) {
    hfsb_json_iter it = hfsb_json_begin(object);
    while (hfsb_json_next(&it)) {
        hfsb_str value = hfsb_json_str(it.value, HFSB_LIT(""));
        if (!it.key.len || it.key.len > HFSBI_CODEX_NAME ||
            hfsb_str_find_byte(it.key, '=') != HFSB_NPOS ||
            hfsb_str_find_byte(it.key, '\0') != HFSB_NPOS ||
            hfsb_str_find_byte(value, '\0') != HFSB_NPOS ||
            hfsb_json_type_of(it.value) != HFSB_JSON_STRING)
            return false;
        if (hfsbi_codex_has(later, it.key) ||
            (policy && !hfsbi_codex_lets(policy, it.key, false)))
            continue;
        hfsb_buf_append(env, it.key);
        hfsb_buf_append_byte(env, '=');
        hfsb_buf_append(env, value);
        hfsb_buf_append_byte(env, '\0');
    }
    return true;
}

/* True when the environment is small enough for the loop. */
static bool hfsbi_codex_env_is_small(const hfsb_json_value *policy,
                                     const hfsb_json_value *set,
                                     const hfsb_json_value *own) {
    return hfsb_json_count(set) <= HFSBI_CODEX_VARIABLES &&
           hfsb_json_count(own) <= HFSBI_CODEX_VARIABLES &&
           hfsb_json_count(hfsb_json_get(policy, "exclude")) <=
               HFSBI_CODEX_PATTERNS &&
           hfsb_json_count(hfsb_json_get(policy, "includeOnly")) <=
               HFSBI_CODEX_PATTERNS;
}

/* Appends the variables of the server, also those of POST /init, that the
   policy lets through and the call does not set. */
static void hfsbi_codex_inherit(const hfsb_tools      *tools,
                                const hfsb_json_value *policy,
                                const hfsb_json_value *set,
                                const hfsb_json_value *own, hfsb_buf *env) {
    hfsbi_job_spec none;
    const char   **list;
    size_t         i, size;
    hfsbi_job_spec_init(&none, &tools->alloc);
    list = hfsbi_env_merge(tools, &none, &size);
    if (!list) env->status = HFSB_NOMEM;
    for (i = 0; list && list[i]; i++) {
        hfsb_str name = hfsbi_env_name(list[i]);
        if (!hfsbi_codex_lets(policy, name, true) ||
            hfsbi_codex_has(set, name) || hfsbi_codex_has(own, name))
            continue;
        hfsb_buf_append(env, hfsb_cstr(list[i]));
        hfsb_buf_append_byte(env, '\0');
    }
    hfsbi_array_free(&tools->alloc, (void *)list, size, sizeof *list);
    hfsbi_job_spec_free(&none);
}

/* Appends the whole environment, each variable ending in NUL: without a policy
   only `env`. False after hfsbi_codex_fail(). */
static bool hfsbi_codex_env(hfsbi_codex_call *call, hfsb_buf *env) {
    const hfsb_json_value *policy = hfsb_json_get(call->params, "envPolicy");
    const hfsb_json_value *own = hfsb_json_get(call->params, "env");
    const hfsb_json_value *set = hfsb_json_get(policy, "set");
    const hfsb_tools      *tools = call->codex->dialect.tools;
    bool                   few = hfsbi_codex_env_is_small(policy, set, own);
    if (few && hfsb_json_type_of(policy) == HFSB_JSON_OBJECT)
        hfsbi_codex_inherit(tools, policy, set, own, env);
    if (few && hfsbi_codex_set(set, policy, own, env) &&
        hfsbi_codex_set(own, NULL, NULL, env))
        return true;
    hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS,
                     few ? "env: a variable has a name of up to 1024 bytes "
                           "without \"=\", and a string without NUL."
                         : "env: too many variables or patterns.");
    return false;
}

/* ---- its arguments ---- */

/* Appends the words of `argv`, each ending in NUL; false as above. */
static bool hfsbi_codex_argv(hfsbi_codex_call *call, hfsb_buf *out) {
    const hfsb_json_value *argv = hfsb_json_get(call->params, "argv");
    hfsb_json_iter         it = hfsb_json_begin(argv);
    bool                   ok = hfsb_json_type_of(argv) == HFSB_JSON_ARRAY &&
              hfsb_json_count(argv) > 0;
    while (ok && hfsb_json_next(&it)) {
        hfsb_str word = hfsb_json_str(it.value, HFSB_LIT(""));
        ok = hfsb_json_type_of(it.value) == HFSB_JSON_STRING &&
             hfsb_str_find_byte(word, '\0') == HFSB_NPOS;
        hfsb_buf_append(out, word);
        hfsb_buf_append_byte(out, '\0');
    }
    ok = ok && out->ptr && out->ptr[0];
    if (!ok)
        hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS,
                         "argv must be a list of strings: the program and its "
                         "arguments.");
    return ok;
}

/* ---- a process ---- */

enum { HFSBI_CODEX_COLS = 80, HFSBI_CODEX_ROWS = 24 };

HFSBI_FN bool hfsbi_codex_spec(hfsbi_codex_call *call, hfsbi_job_spec *spec,
                               bool *input) {
    const hfsb_json_value *arg0 = hfsb_json_get(call->params, "arg0");
    bool                   tty = false, net = false;
    if (!hfsbi_codex_argv(call, &spec->raw.argv) ||
        !hfsbi_codex_path(call, "cwd", &spec->work_dir) ||
        !hfsbi_codex_env(call, &spec->env) ||
        !hfsbi_codex_bool(call, "tty", &tty) ||
        !hfsbi_codex_bool(call, "pipeStdin", input) ||
        !hfsbi_codex_bool(call, "enforceManagedNetwork", &net))
        return false;
    if (net || hfsb_json_type_of(arg0) != HFSB_JSON_NULL) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID,
                         "%s is not supported; nothing was run.",
                         net ? "enforceManagedNetwork" : "arg0");
        return false;
    }
    *input = *input || tty;
    hfsb_buf_printf(&spec->raw.tag, "codex%s%s", tty ? " tty" : "",
                    *input ? " input" : "");
    spec->raw.bare_env = true;
    spec->raw.keep_input = *input;
    if (tty) {
        spec->raw.cols = HFSBI_CODEX_COLS;
        spec->raw.rows = HFSBI_CODEX_ROWS;
    }
    return true;
}
