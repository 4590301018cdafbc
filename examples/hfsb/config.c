/* config.c - the paths of our files, and config.json.

   The paths follow the XDG base directory specification. config.json holds
   defaults for options; an unknown key is only a warning, so that versions of
   hfsb can share the file. */
#define _XOPEN_SOURCE 700 /* readlink; before any include */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- this program ---- */

static const char *called; /* argv[0] */

void note_program(const char *name) {
    called = name;
}

const char *own_program(void) {
    return access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe" : called;
}

/* Finds argv[0] as the shell did: in PATH, unless it has a slash. */
static bool search_path(char *out, size_t size) {
    const char *path = getenv("PATH");
    if (called && strchr(called, '/'))
        return snprintf(out, size, "%s", called) < (int)size;
    while (called && path && *path) {
        size_t len = strcspn(path, ":");
        if (len && snprintf(out, size, "%.*s/%s", (int)len, path, called) <
                       (int)size &&
            access(out, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

size_t own_folder(char *out, size_t size) {
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n > 0) out[n] = '\0';
    else if (!search_path(out, size)) return 0;
    return (size_t)(strrchr(out, '/') - out) + 1;
}

/* ---- files ---- */

hfsb_status xdg_path(const char *variable, const char *fallback,
                     const char *name, hfsb_buf *out, hfsb_err *err) {
    const char *base = getenv(variable), *home = getenv("HOME");
    /* the specification ignores a relative path */
    if (base && base[0] == '/') {
        must(hfsb_buf_printf(out, "%s/hfsb/%s", base, name));
        return HFSB_OK;
    }
    if (!home || home[0] != '/')
        return fail(err, HFSB_NOT_FOUND,
                    "Neither %s nor HOME is set to an absolute path, so there "
                    "is no place for %s",
                    variable, name);
    must(hfsb_buf_printf(out, "%s/%s/hfsb/%s", home, fallback, name));
    return HFSB_OK;
}

static const char *const known_keys[] = {
    "tool_runtime", "owner", "hardware", "template", "sleep_time"};

static void warn_of_unknown(const char *path, const hfsb_json_value *root) {
    hfsb_json_iter it = hfsb_json_begin(root);
    size_t         i, n = sizeof known_keys / sizeof *known_keys;
    while (hfsb_json_next(&it)) {
        for (i = 0; i < n; i++)
            if (hfsb_str_equal(it.key, hfsb_cstr(known_keys[i]))) break;
        if (i < n) continue;
        fprintf(stderr, "hfsb: %s: unknown key \"%.*s\"; known are", path,
                (int)it.key.len, it.key.ptr);
        for (i = 0; i < n; i++)
            fprintf(stderr, "%s %s", i ? "," : "", known_keys[i]);
        fprintf(stderr, "\n");
    }
}

static hfsb_status read_runtime(const hfsb_json_value *root, config *c,
                                hfsb_err *err) {
    hfsb_str    name = HFSB_LIT("local");
    hfsb_err    why;
    hfsb_status st =
        hfsb_json_arg_str(root, "tool_runtime", false, &name, err);
    if (st != HFSB_OK) return st;
    st = hfsb_runtime_find(name, &c->runtime, &why);
    if (st != HFSB_OK) return fail(err, st, "\"tool_runtime\": %s", why.msg);
    return HFSB_OK;
}

static hfsb_status read_values(const hfsb_json_value *root, config *c,
                               hfsb_err *err) {
    hfsb_status st;
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT)
        return fail(err, HFSB_ARG, "expected an object, found %s",
                    hfsb_json_type_name(hfsb_json_type_of(root)));
    st = read_runtime(root, c, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(root, "owner", false, &c->owner, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(root, "hardware", false, &c->hardware, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(root, "template", false, &c->from, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_int(root, "sleep_time", false, &c->sleep_time, err);
    if (st == HFSB_OK && c->sleep_time < -1)
        st = fail(err, HFSB_ARG,
                  "\"sleep_time\": expected seconds, or -1 for never, found "
                  "%lld",
                  c->sleep_time);
    return st;
}

hfsb_status read_config(config *c, hfsb_err *err) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_buf             path = HFSB_INIT, text = HFSB_INIT;
    hfsb_err             why = HFSB_INIT;
    hfsb_status          st =
        xdg_path("XDG_CONFIG_HOME", ".config", "config.json", &path, &why);
    how.unique_keys = true;
    if (st == HFSB_OK)
        st = hfsb_file_read(NULL, hfsb_buf_str(&path), 1u << 20, &text, NULL,
                            &why);
    if (st == HFSB_NOT_FOUND) {
        st = HFSB_OK;
    } else {
        if (st == HFSB_OK)
            st = hfsb_json_parse(hfsb_buf_str(&text), &how, &c->doc, &why);
        if (st == HFSB_OK) st = read_values(c->doc.root, c, &why);
        if (st == HFSB_OK) warn_of_unknown(path.ptr, c->doc.root);
        else fail(err, st, "%s: %s", path.ptr, why.msg);
    }
    hfsb_buf_free(&path);
    hfsb_buf_free(&text);
    return st;
}

void free_config(config *c) {
    hfsb_json_free(&c->doc);
}
