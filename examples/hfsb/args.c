/* args.c - the words of the command line: options and what is none. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_help(const cli_command *c) {
    printf("hfsb %s %s\n%s", c->name, c->words, c->details);
}

int usage(args *a, const char *format, ...) {
    va_list ap;
    fprintf(stderr, "hfsb %s: ", a->command->name);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\nTry: hfsb %s --help\n", a->command->name);
    a->status = USAGE;
    return USAGE;
}

static bool read_integer(const char *text, long long *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0;
}

static bool read_above_0(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 0 && *out <= 1e9;
}

/* False when the value is not of the option's kind. */
static bool set_value(const option *o, const char *value) {
    long long n;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)o->target = true; return true;
    case OPTION_TEXT: *(const char **)o->target = value; return true;
    case OPTION_TEXTS:
        if (((texts *)o->target)->count == MAX_TEXTS) return false;
        ((texts *)o->target)->list[((texts *)o->target)->count++] = value;
        return true;
    case OPTION_COUNT:
        if (!read_integer(value, &n) || n < 1) return false;
        *(size_t *)o->target = (size_t)n;
        return true;
    case OPTION_INTEGER: return read_integer(value, (long long *)o->target);
    case OPTION_SECONDS:
    case OPTION_DAYS: return read_above_0(value, (double *)o->target);
    }
    return false;
}

static const char *kind_name(option_kind kind) {
    switch (kind) {
    case OPTION_COUNT: return "a number from 1 on";
    case OPTION_INTEGER: return "a number";
    case OPTION_SECONDS: return "a number of seconds above 0";
    case OPTION_DAYS: return "a number of days above 0, such as 0.5";
    case OPTION_FLAG: return "no value";
    case OPTION_TEXTS:
    case OPTION_TEXT: break;
    }
    return "a value";
}

/* One option, the word before a->next; its value is behind "=" or is the next
   word. */
static bool take_option(args *a, const option *options, const char *word) {
    size_t      len = strcspn(word, "=");
    const char *value = word[len] ? word + len + 1 : NULL;
    while (options->name && (strlen(options->name) != len ||
                             memcmp(options->name, word, len) != 0))
        options++;
    if (!options->name) return usage(a, "unknown option %s", word) == DONE;
    if (options->kind == OPTION_FLAG ? value != NULL
                                     : !value && a->next == a->count)
        return usage(a, "%s needs %s", options->name,
                     kind_name(options->kind)) == DONE;
    if (options->kind != OPTION_FLAG && !value) value = a->list[a->next++];
    if (set_value(options, value)) return true;
    return usage(a, "%s needs %s, not %s", options->name,
                 kind_name(options->kind), value) == DONE;
}

/* The next word when it is an option (a lone "-" is none), or NULL. */
static const char *next_option(args *a) {
    const char *word = a->next < a->count ? a->list[a->next] : NULL;
    if (!word || a->only_words || word[0] != '-' || !word[1]) return NULL;
    a->next++;
    if (strcmp(word, "--") != 0) return word;
    a->only_words = true;
    return NULL;
}

bool take_options(args *a, const option *options) {
    const char *word;
    while ((word = next_option(a)) != NULL) {
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(a->command);
            a->status = fflush(stdout) == 0 ? DONE : REFUSED;
            return false;
        }
        if (!take_option(a, options, word)) return false;
    }
    return true;
}

bool take_words(args *a, const option *options, const char **words,
                size_t max) {
    size_t count = 0, i;
    for (i = 0; i < max; i++) words[i] = NULL;
    for (;;) {
        if (!take_options(a, options)) return false;
        if (a->next == a->count) return true;
        if (count == max)
            return usage(a, "%s is a word too many", a->list[a->next]) == DONE;
        words[count++] = a->list[a->next++];
    }
}

bool take_all(args *a, const option *options, const char **word) {
    const char *first = NULL;
    if (!take_words(a, options, &first, word ? 1 : 0)) return false;
    if (word && first) *word = first;
    return true;
}
