/* secrets.c - secrets for a Space or a job, from the environment or files; and
   other lists of pairs.

   The command line has only names, because every user can read it. No message
   shows a value, not even one given by mistake instead of a name. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static hfsb_status check_name(hfsb_str name, hfsb_err *err) {
    size_t i;
    for (i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || (c != '_' && (c < '0' || c > '9')))) break;
    }
    if (name.len && i == name.len) return HFSB_OK;
    /* not shown: it may be a value */
    return fail(err, HFSB_ARG,
                "The name of a secret is a letter, then letters, digits and "
                "_. Never put its value on the command line: --secret NAME "
                "takes it from the environment, --secret-file NAME=FILE from "
                "a file");
}

static hfsb_status add_secret(secrets *s, hfsb_str key, hfsb_str value,
                              hfsb_err *err) {
    size_t i;
    for (i = 0; i < s->count; i++)
        if (hfsb_str_equal(s->pairs[i].key, key))
            return fail(err, HFSB_ARG, "The secret %.*s is given twice",
                        (int)key.len, key.ptr);
    s->pairs[s->count].key = key;
    s->pairs[s->count++].value = value;
    return HFSB_OK;
}

static hfsb_status take_variable(const client *c, const char *name,
                                 secrets *out, hfsb_err *err) {
    const char *value;
    hfsb_status st = check_name(hfsb_cstr(name), err);
    if (st != HFSB_OK) return st;
    value = getenv(name);
    if ((!value || !*value) && strcmp(name, "HF_TOKEN") == 0)
        value = c->env.token.ptr;
    if (!value)
        return fail(err, HFSB_ARG,
                    "--secret %s: there is no variable %s in the environment. "
                    "Set and export it, or use --secret-file %s=FILE",
                    name, name, name);
    return add_secret(out, hfsb_cstr(name), hfsb_cstr(value), err);
}

static hfsb_status take_file(const char *word, hfsb_buf *text, secrets *out,
                             hfsb_err *err) {
    size_t      len = strcspn(word, "=");
    hfsb_str    name = hfsb_str_make(word, len);
    hfsb_status st = check_name(name, err);
    if (st != HFSB_OK) return st;
    if (!word[len] || !word[len + 1])
        return fail(err, HFSB_ARG, "--secret-file needs NAME=FILE");
    st = read_input(word + len + 1, text, err);
    if (st != HFSB_OK) return st;
    while (text->len && strchr("\r\n", text->ptr[text->len - 1]))
        hfsb_buf_truncate(text, text->len - 1); /* added by editors */
    if (hfsb_utf8_validate(hfsb_buf_str(text)) != text->len)
        return fail(err, HFSB_ARG, "The secret in %s is not UTF-8",
                    word + len + 1);
    return add_secret(out, name, hfsb_buf_str(text), err);
}

hfsb_status take_secrets(const client *c, const texts *names,
                         const texts *files, secrets *out, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < names->count && st == HFSB_OK; i++)
        st = take_variable(c, names->list[i], out, err);
    for (i = 0; i < files->count && st == HFSB_OK; i++)
        st = take_file(files->list[i], &out->files[i], out, err);
    return st;
}

hfsb_status take_volumes(const texts *words, hfsb_job_volume *out,
                         hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < words->count && st == HFSB_OK; i++)
        st = hfsb_job_volume_parse(hfsb_cstr(words->list[i]), &out[i], err);
    return st;
}

hfsb_status take_pairs(const char *what, const texts *words,
                       hfsb_hub_pair *out, hfsb_err *err) {
    size_t i;
    for (i = 0; i < words->count; i++) {
        const char *word = words->list[i];
        size_t      len = strcspn(word, "=");
        if (!len || !word[len])
            return fail(err, HFSB_ARG, "%s needs NAME=VALUE, not %s", what,
                        word);
        out[i].key = hfsb_str_make(word, len);
        out[i].value = hfsb_cstr(word + len + 1);
    }
    return HFSB_OK;
}

void free_secrets(secrets *s) {
    size_t i;
    for (i = 0; i < MAX_TEXTS; i++) hfsb_buf_free(&s->files[i]);
}
