/* options.c - the options of a command: parsing, --help, completion.

   A command lists its own options as rows that point at its variables. A
   command that calls a tool also gets a row for each parameter of that tool,
   made from the JSON Schema in its definition. So a parameter that is added to
   a tool is at once an option, a line of --help and a completion:

       {"--on SANDBOX", OPTION_TEXT, &on, "use this sandbox"}  --> on
       "limit":{"type":"integer","description":"Lines"}  --> --limit N  Lines

   Values of tool options are kept as text until put_options() writes them as
   JSON: {"limit":5}. */
#define _XOPEN_SOURCE 700 /* realpath; before any include */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 48, MAX_COLUMN = 24, LINE_WIDTH = 78 };

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

/* ---- the parameters of a tool ---- */

param *find_param(args *a, hfsb_str key) {
    size_t i;
    for (i = 0; i < a->param_count; i++)
        if (hfsb_str_equal(a->params[i].key, key)) return &a->params[i];
    return NULL;
}

/* How a type of JSON Schema is written on the command line. An array of
   objects is given as JSON text, which the tools accept as well. */
typedef struct param_type {
    const char *type;
    option_kind kind;
    const char *value; /* its name in --help */
} param_type;

static const param_type *find_type(const hfsb_json_value *schema) {
    static const param_type types[] = {{"boolean", OPTION_FLAG, ""},
                                       {"integer", OPTION_INTEGER, " N"},
                                       {"number", OPTION_NUMBER, " N"},
                                       {"array", OPTION_TEXTS, " TEXT"},
                                       {"object", OPTION_PAIRS, " NAME=VALUE"},
                                       {"string", OPTION_TEXT, " TEXT"},
                                       {"", OPTION_TEXT, " JSON"}};
    enum { LAST = sizeof types / sizeof *types - 1 };
    hfsb_str type = get_str(schema, "type");
    size_t   i = 0;
    if (hfsb_json_get(hfsb_json_get(schema, "items"), "properties"))
        return &types[LAST];
    while (i < LAST && !hfsb_str_equal(type, hfsb_cstr(types[i].type))) i++;
    return &types[i];
}

/* The description, or the choices: "replace, append_after ...". */
static void describe_param(param *p, const hfsb_json_value *schema) {
    hfsb_json_iter it = hfsb_json_begin(p->choices);
    hfsb_str       words = get_str(schema, "description");
    size_t         n = 0;
    snprintf(p->words, sizeof p->words, "%s", words.ptr);
    if (p->words[0] >= 'A' && p->words[0] <= 'Z' && p->words[1] > 'Z')
        p->words[0] = (char)(p->words[0] - 'A' + 'a'); /* as in own rows */
    while (!words.len && n < sizeof p->words && hfsb_json_next(&it)) {
        snprintf(p->words + n, sizeof p->words - n, "%s%s", n ? ", " : "",
                 hfsb_json_str(it.value, HFSB_LIT("")).ptr);
        n = strlen(p->words);
    }
}

static void add_param(args *a, hfsb_str key, const hfsb_json_value *schema,
                      const hfsb_json_value *required) {
    const param_type *type = find_type(schema);
    hfsb_json_iter    it = hfsb_json_begin(required);
    param            *p = &a->params[a->param_count++];
    size_t            i;
    p->key = key;
    p->kind = type->kind;
    p->choices = hfsb_json_get(schema, "enum");
    while (!p->required && hfsb_json_next(&it))
        p->required =
            hfsb_str_equal(hfsb_json_str(it.value, HFSB_LIT("")), key);
    snprintf(p->name, sizeof p->name, "--%s%s", key.ptr,
             p->choices ? " WORD" : type->value);
    for (i = 0; p->name[i]; i++)
        if (p->name[i] == '_') p->name[i] = '-';
    describe_param(p, schema);
}

void load_params(args *a, const char *tool) {
    const hfsb_json_value *schema;
    hfsb_json_iter         it;
    hfsb_buf               text = HFSB_INIT;
    hfsb_status            st;
    st = hfsb_tools_define_one(hfsb_cstr(tool), HFSB_TOOLS_FLAT, &text, NULL);
    if (st == HFSB_NOT_FOUND) return;
    must(st);
    must(hfsb_json_parse(hfsb_buf_str(&text), NULL, &a->definition, NULL));
    hfsb_buf_free(&text);
    a->about = get_str(a->definition.root, "description").ptr;
    schema = hfsb_json_get(a->definition.root, "parameters");
    it = hfsb_json_begin(hfsb_json_get(schema, "properties"));
    while (a->param_count < MAX_PARAMS && hfsb_json_next(&it))
        add_param(a, it.key, it.value, hfsb_json_get(schema, "required"));
}

/* ---- rows ---- */

static size_t name_length(const char *name) {
    return strcspn(name, " ");
}

/* "--work-dir" and "--work_dir" are the same option. */
static bool is_named(const option *o, const char *word, size_t len) {
    size_t i;
    if (name_length(o->name) != len) return false;
    for (i = 0; i < len; i++)
        if (o->name[i] != (word[i] == '_' ? '-' : word[i])) return false;
    return true;
}

const option *find_row(const option *rows, const char *word, size_t len) {
    const option *o = rows;
    while (o->name && !is_named(o, word, len)) o++;
    if (!o->name) return NULL;
    if (o->kind != OPTION_ALIAS) return o;
    return find_row(rows, o->words, name_length(o->words));
}

/* True when the command takes this parameter in another way. */
static bool is_filled(const args *a, const param *p) {
    size_t i;
    for (i = 0; a->command->filled[i]; i++)
        if (hfsb_str_equal(hfsb_cstr(a->command->filled[i]), p->key))
            return true;
    return false;
}

/* The rows of the tool's parameters, then those of the command, which hide a
   parameter of the same name. */
static void join_rows(args *a, const option *own, option *rows) {
    size_t n = 0, i;
    if (a->command->tool && !a->definition.root)
        load_params(a, a->command->tool);
    for (i = 0; i < a->param_count; i++) {
        param        *p = &a->params[i];
        const option *o = find_row(own, p->name, name_length(p->name));
        if (is_filled(a, p) || (o && o->kind != OPTION_PARAM)) continue;
        rows[n].name = p->name;
        rows[n].kind = OPTION_PARAM;
        rows[n].target = p;
        rows[n++].words = o && !*p->words ? o->words : p->words;
    }
    for (; own->name && n + 1 < MAX_ROWS; own++)
        if (own->kind != OPTION_PARAM) rows[n++] = *own;
    rows[n].name = NULL;
    for (i = n = 0; rows[i].name; i++) /* not of a parameter of other tools */
        if (rows[i].kind != OPTION_ALIAS ||
            find_row(rows, rows[i].words, name_length(rows[i].words)))
            rows[n++] = rows[i];
    rows[n].name = NULL;
}

static option_kind value_kind(const option *o) {
    return o->kind == OPTION_PARAM ? ((const param *)o->target)->kind
                                   : o->kind;
}

/* ---- values ---- */

static bool read_integer(const char *text, long long *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0;
}

static bool read_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= -1e300 && *out <= 1e300;
}

static bool read_above_0(const char *text, double *out) {
    return read_number(text, out) && *out > 0 && *out <= 1e9;
}

/* "65536", "64K", "16M", "1G". */
static bool read_size(const char *text, unsigned long long *out) {
    static const char units[] = "KMG";
    char             *end;
    const char       *unit;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*text < '1' || *text > '9' || errno != 0) return false;
    if (!*end) return true;
    unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);
    if (!unit || end[1] || *out > 1ull << 20) return false;
    *out <<= 10 * (unit - units + 1);
    return true;
}

static bool add_text(texts *list, const char *value) {
    if (list->count == MAX_TEXTS) return false;
    list->list[list->count++] = value;
    return true;
}

static bool set_param(param *p, const char *value) {
    long long integer;
    double    number;
    if (p->kind == OPTION_INTEGER && !read_integer(value, &integer))
        return false;
    if (p->kind == OPTION_NUMBER && !read_number(value, &number)) return false;
    if (p->kind == OPTION_PAIRS && (!strchr(value, '=') || *value == '='))
        return false;
    if (p->kind != OPTION_TEXTS && p->kind != OPTION_PAIRS)
        p->given.count = 0; /* the last one counts */
    return add_text(&p->given, value);
}

/* True for the name of a sandbox, which must not be empty: an empty one comes
   from a variable that an earlier command left empty, and must not stand for
   this machine or the default sandbox. */
static bool is_sandbox(const char *words) {
    return strstr(words, "SANDBOX") != NULL;
}

/* value: the text, for a flag "true" or "false". False when the value is not
   of the option's kind. */
static bool set_value(const option *o, const char *value) {
    long long n;
    if (!*value && is_sandbox(o->name)) return false;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)o->target = *value == 't'; return true;
    case OPTION_TEXT: *(const char **)o->target = value; return true;
    case OPTION_TEXTS: return add_text((texts *)o->target, value);
    case OPTION_COUNT:
        if (!read_integer(value, &n) || n < 1) return false;
        *(size_t *)o->target = (size_t)n;
        return true;
    case OPTION_INTEGER: return read_integer(value, (long long *)o->target);
    case OPTION_NUMBER: return read_number(value, (double *)o->target);
    case OPTION_SECONDS:
    case OPTION_DAYS: return read_above_0(value, (double *)o->target);
    case OPTION_SIZE: return read_size(value, (unsigned long long *)o->target);
    case OPTION_PARAM: return set_param((param *)o->target, value);
    case OPTION_PAIRS:
    case OPTION_ALIAS: break;
    }
    return false;
}

/* What an option of this kind needs; in the order of option_kind. */
static const char *kind_name(option_kind kind) {
    static const char *const names[] = {
        "no value",
        "a value",
        "a value",
        "a number from 1 on",
        "a number",
        "a number",
        "NAME=VALUE",
        "a number of seconds above 0",
        "a number of days above 0, such as 0.5",
        "a number of bytes such as 65536 or 64K, 16M, 1G"};
    return names[kind];
}

bool is_alias(const option *o) {
    return o->kind == OPTION_ALIAS;
}

bool takes_value(const option *o) {
    return value_kind(o) != OPTION_FLAG;
}

/* A flag can be turned off: --no-NAME. */
static const option *find_negated(const option *rows, const char *word) {
    const option *o;
    char          name[64];
    if (strncmp(word, "--no-", 5) != 0) return NULL;
    snprintf(name, sizeof name, "--%s", word + 5);
    o = find_row(rows, name, strlen(name));
    return o && !takes_value(o) ? o : NULL;
}

/* What the option of another program is called here; NULL: nothing. */
static const char *other_option(const args *a, const char *word, size_t len) {
    static const char *const others[][3] = {
        {"grep", "-l", "--mode files"},
        {"grep", "-c", "--mode count"},
        {"grep", "-F", "--literal"},
        {"grep", "-C", "--context"},
        {"grep", "--glob", "--include"},
        {"list", "-a", "--all"},
        {"list", "-l", "--details"},
        {"list", "-la", "--details --all"}};
    size_t i;
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(a->command->name, others[i][0]) == 0 &&
            hfsb_str_equal(hfsb_str_make(word, len), hfsb_cstr(others[i][1])))
            return others[i][2];
    return NULL;
}

static int unknown_option(args *a, const option *rows, const char *word,
                          size_t len) {
    suggestion    s;
    const option *o;
    if (other_option(a, word, len))
        return usage(a, "unknown option %.*s; did you mean %s?", (int)len,
                     word, other_option(a, word, len));
    suggest_init(&s, word, len);
    for (o = rows; o->name; o++) suggest_try(&s, o->name);
    suggest_try(&s, "--help");
    if (!s.name) return usage(a, "unknown option %.*s", (int)len, word);
    return usage(a, "unknown option %.*s; did you mean %.*s?", (int)len, word,
                 (int)s.name_len, s.name);
}

/* Takes "-rn" for "-r -n". False unless all are flags. */
static bool take_flags(const option *rows, const char *word) {
    char   name[3] = "-?";
    size_t pass, i;
    if (word[0] != '-' || word[1] == '-') return false;
    for (pass = 0; pass < 2; pass++)
        for (i = 1; word[i]; i++) {
            const option *o;
            name[1] = word[i];
            o = find_row(rows, name, 2);
            if (!o || takes_value(o)) return false;
            if (pass) (void)set_value(o, "true");
        }
    return true;
}

/* Takes one option, the word before a->next. Its value follows "=" or is the
   next word. */
static bool take_option(args *a, const option *rows, const char *word) {
    size_t        len = strcspn(word, "=");
    const char   *value = word[len] ? word + len + 1 : NULL;
    const option *o = find_row(rows, word, len);
    bool          off = !o && (o = find_negated(rows, word)) != NULL;
    int           shown;
    if (!o && take_flags(rows, word)) return true;
    if (!o) return unknown_option(a, rows, word, len) == DONE;
    shown = (int)name_length(o->name);
    if (takes_value(o) ? !value && a->next == a->count : value != NULL)
        return usage(a, "%.*s needs %s", shown, o->name,
                     kind_name(value_kind(o))) == DONE;
    if (!takes_value(o)) value = off ? "false" : "true";
    else if (!value) value = a->list[a->next++];
    if (set_value(o, value)) return true;
    if (!*value && is_sandbox(o->name))
        return usage(a, "%.*s needs a sandbox, not an empty name", shown,
                     o->name) == DONE;
    return usage(a, "%.*s needs %s, not %s", shown, o->name,
                 kind_name(value_kind(o)), value) == DONE;
}

bool set_roots(args *a, const texts *roots, hfsb_tools_opts *where) {
    size_t i;
    for (i = 0; i < roots->count; i++)
        if (!roots->list[i][0])
            return usage(a, "--root needs a directory") == DONE;
    if (roots->count == 0) return true;
    where->root = hfsb_cstr(roots->list[0]);
    where->more_roots = roots->list + 1;
    where->more_root_count = roots->count - 1;
    return true;
}

bool set_work_dir(args *a, const char *dir, hfsb_tools_opts *where) {
    static char whole[PATH_MAX];
    where->work_dir = hfsb_cstr(dir);
    if (!dir || !*dir || !where->root.len) return true;
    if (!realpath(dir, whole))
        return usage(a, "--work-dir %s: %s", dir, strerror(errno)) == DONE;
    where->work_dir = hfsb_cstr(whole);
    return true;
}

bool set_store(args *a, const char *store, hfsb_tools_opts *where) {
    bool on = !store || strcmp(store, "on") == 0;
    if (!on && !strchr(store, '/'))
        return usage(a,
                     "--checkpoints needs on, off or a folder with a \"/\" "
                     "in it: ./%s",
                     *store ? store : "NAME") == DONE;
    where->checkpoints.dir = on ? "" : store;
    return true;
}

const char *confine_option(const confinement *c) {
    return c->level           ? "--confine"
           : c->write.count   ? "--allow-write"
           : c->read.count    ? "--allow-read"
           : c->net           ? "--net"
           : c->max_memory    ? "--max-memory"
           : c->max_processes ? "--max-processes"
           : c->max_file_size ? "--max-file-size"
           : c->max_cpu       ? "--max-cpu"
                              : NULL;
}

bool check_confinement(args *a, const confinement *c, bool afar) {
    const char *given = confine_option(c);
    if (!given || !afar) return true;
    return usage(a,
                 "%s is for commands of this machine; for others their "
                 "hfsb-server takes it: " TAKEN_AFAR,
                 given, given) == DONE;
}

bool set_confinement(args *a, const confinement *c,
                     hfsb_confine_level by_default, hfsb_tools_opts *where) {
    hfsb_confine_opts *to = &where->confine;
    to->level = by_default;
    to->if_possible = !c->level;
    if (c->level && !hfsb_confine_level_find(hfsb_cstr(c->level), &to->level))
        return usage(a, "--confine needs none, write or strict, not %s",
                     c->level) == DONE;
    if (to->level != HFSB_CONFINE_STRICT && c->read.count)
        return usage(a, "--allow-read is for --confine strict; otherwise "
                        "commands read everything") == DONE;
    if (to->level == HFSB_CONFINE_NONE && (c->write.count || c->net))
        return usage(a, "%s needs --confine write or strict",
                     c->net ? "--net" : "--allow-write") == DONE;
    to->allow_write = c->write.list;
    to->allow_write_count = c->write.count;
    to->allow_read = c->read.list;
    to->allow_read_count = c->read.count;
    to->net = c->net;
    to->max_memory = c->max_memory;
    to->max_file_size = c->max_file_size;
    to->max_processes = c->max_processes;
    to->max_cpu = c->max_cpu;
    return true;
}

/* ---- help ---- */

/* Prints one line of text from a column on, wrapped at LINE_WIDTH. */
static void print_wrapped(const char *text, int column) {
    int at = column, len;
    for (; *text && *text != '\n'; text += len + (text[len] == ' ')) {
        len = (int)strcspn(text + 1, " \n") + 1; /* may start with a blank */
        if (at > column && at + 1 + len > LINE_WIDTH) {
            printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", len, text);
    }
    printf("\n");
}

void print_about(const char *text) {
    print_wrapped(text, 0);
}

/* Prints paragraphs, indented; one that starts with blanks is an example. */
static void print_paragraphs(const char *text) {
    while (text) {
        printf("    ");
        print_wrapped(text, 4);
        text = strchr(text, '\n');
        if (text) text++;
    }
}

static void print_row(const option *o, int width) {
    int used = printf("    %s", o->name);
    if (*o->words && used > width - 2) printf("\n%*s", width, "");
    else if (*o->words) printf("%*s", width - used, "");
    if (o->kind == OPTION_ALIAS) printf("the same as %s\n", o->words);
    else print_wrapped(o->words, width);
}

static void print_help(const args *a, const option *rows) {
    const cli_command *c = a->command;
    size_t             longest = 0;
    const option      *o;
    for (o = rows; o->name; o++) {
        size_t len = strlen(o->name);
        if (len > longest && len <= MAX_COLUMN) longest = len;
    }
    printf("hfsb %s %s\n", c->name, c->words);
    if (c->details) print_paragraphs(c->details);
    if (c->details && !c->tool && a->about) printf("\n");
    if (!c->details || !c->tool) print_paragraphs(a->about);
    printf("\n");
    for (o = rows; o->name; o++) print_row(o, (int)longest + 6);
}

/* ---- words ---- */

/* The next word when it is an option (a lone "-" is not), or NULL. */
static const char *next_option(args *a) {
    const char *word = a->next < a->count ? a->list[a->next] : NULL;
    if (!word || a->only_words || word[0] != '-' || !word[1]) return NULL;
    a->next++;
    if (strcmp(word, "--") != 0) return word;
    a->only_words = true;
    return NULL;
}

bool take_options(args *a, const option *own) {
    option      rows[MAX_ROWS];
    const char *word;
    join_rows(a, own, rows);
    if (a->on_rows) {
        a->status = DONE;
        a->on_rows(a, rows);
        return false;
    }
    while ((word = next_option(a)) != NULL) {
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(a, rows);
            a->status = put_out(HFSB_LIT(""));
            return false;
        }
        if (!take_option(a, rows, word)) return false;
    }
    return true;
}

/* Why there may be a word too many. */
static int extra_word(args *a, const char *word) {
    static const char *const hints[][2] = {
        {"ls", "; hfsb ls lists sandboxes, hfsb list files"},
        {"glob", "; quote the pattern: hfsb glob '*.py'"},
        {"grep", "; for many files give their folder, and --include '*.py'"}};
    const char *hint = "";
    size_t      i;
    for (i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(a->command->name, hints[i][0]) == 0) hint = hints[i][1];
    return usage(a, "%s is a word too many%s", word, hint);
}

bool take_words(args *a, const option *own, const char **words, size_t max) {
    size_t count = 0, i;
    for (i = 0; i < max; i++) words[i] = NULL;
    for (;;) {
        if (!take_options(a, own)) return false;
        if (a->next == a->count) return true;
        if (count == max) return extra_word(a, a->list[a->next]) == DONE;
        if (!*a->list[a->next] && is_sandbox(a->command->words))
            return usage(a, "SANDBOX is an empty name") == DONE;
        words[count++] = a->list[a->next++];
    }
}

bool take_all(args *a, const option *own, const char **word) {
    const char *first = NULL;
    if (!take_words(a, own, &first, word ? 1 : 0)) return false;
    if (word && first) *word = first;
    return true;
}

/* ---- arguments of a tool ---- */

bool options_given(const args *a) {
    size_t i;
    for (i = 0; i < a->param_count; i++)
        if (a->params[i].given.count) return true;
    return false;
}

/* Writes an array, or of NAME=VALUE pairs an object. */
static void put_texts(hfsb_json_writer *w, const texts *given, bool pairs) {
    size_t i;
    if (pairs) hfsb_json_put_object(w);
    else hfsb_json_put_array(w);
    for (i = 0; i < given->count; i++) {
        const char *text = given->list[i];
        size_t      len = strcspn(text, "=");
        if (pairs) hfsb_json_put_key(w, hfsb_str_make(text, len));
        hfsb_json_put_str(w, hfsb_cstr(pairs ? text + len + 1 : text));
    }
    hfsb_json_put_end(w);
}

static void put_given(hfsb_json_writer *w, const param *p) {
    const char *first = p->given.list[0];
    long long   integer = 0;
    double      number = 0;
    hfsb_json_put_key(w, p->key);
    if (p->kind == OPTION_FLAG) {
        hfsb_json_put_bool(w, *first == 't');
    } else if (p->kind == OPTION_INTEGER) {
        (void)read_integer(first, &integer);
        hfsb_json_put_int(w, integer);
    } else if (p->kind == OPTION_NUMBER) {
        (void)read_number(first, &number);
        hfsb_json_put_double(w, number);
    } else if (p->kind == OPTION_PAIRS || p->kind == OPTION_TEXTS) {
        put_texts(w, &p->given, p->kind == OPTION_PAIRS);
    } else {
        hfsb_json_put_str(w, hfsb_cstr(first));
    }
}

bool put_options(const args *a, hfsb_json_writer *w) {
    bool   ok = true;
    size_t i, k;
    for (i = 0; i < a->param_count && ok; i++) {
        const param *p = &a->params[i];
        for (k = 0; k < p->given.count && ok; k++)
            ok = check_text(p->key.ptr, hfsb_cstr(p->given.list[k]));
        if (p->given.count) put_given(w, p);
    }
    return ok;
}
