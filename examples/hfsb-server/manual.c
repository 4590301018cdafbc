/* manual.c - the manual page and completions, from the text of --help.

   --help is written once, for people; this file reads it again. Its lines are:

     Where it listens (default: 127.0.0.1:7860):     a heading ends in ":"
       --host ADDRESS      may be repeated;          a term, then words
                           0.0.0.0 or :: means all   more words
     Confined commands cannot ...                    a paragraph

   So an option that is added there is in the manual and in the completions
   too. The manual is mdoc(7), which mandoc and groff read. */
#include "program.h"

#include <stdio.h>
#include <string.h>

enum { MANUAL_WORDS = 2000, MANUAL_TERM = 100, MANUAL_WIDTH = 72 };

#define MANUAL_DATE "November 18, 2026"

typedef enum entry_kind { ENTRY_HEADING, ENTRY_OPTION, ENTRY_TEXT } entry_kind;

/* One entry of the help. */
typedef struct entry {
    entry_kind kind;
    char       term[MANUAL_TERM];   /* "--host ADDRESS" */
    char       words[MANUAL_WORDS]; /* on one line */
} entry;

typedef void (*entry_fn)(void *user, const entry *e);

/* ---- reading ---- */

/* Appends with a blank in between; cuts what does not fit. */
static void add_words(char *to, size_t room, const char *from, size_t n) {
    size_t len = strlen(to);
    if (len && len + 1 < room) to[len++] = ' ';
    if (n >= room - len) n = room - len - 1;
    memcpy(to + len, from, n);
    to[len + n] = '\0';
}

/* True for "--host", "$PORT," and "NAME[:PORT]". */
static bool is_term(const char *word, size_t n) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ[]:,";
    if (word[0] == '-' || word[0] == '$') return true;
    return n > 0 && strspn(word, letters) >= n;
}

/* Splits a line such as "--port N      or $PORT" at the end of its term. */
static void read_option(entry *e, const char *line, size_t n) {
    size_t at = 0;
    while (at < n) {
        size_t len = strcspn(line + at, " \n"), gap;
        if (!is_term(line + at, len)) break;
        add_words(e->term, sizeof e->term, line + at, len);
        at += len;
        gap = strspn(line + at, " ");
        at += gap;
        if (gap > 1) break;
    }
    if (at < n) add_words(e->words, sizeof e->words, line + at, n - at);
}

/* Adds a line to the entry; if another one begins, hands on the old one. */
static void read_line(entry *e, const char *line, size_t n, entry_fn fn,
                      void *user) {
    size_t indent = strspn(line, " ");
    bool   begins = indent == 2 || n == 0 ||
                  (indent == 0 && (e->kind == ENTRY_OPTION || !e->words[0]));
    if (begins) {
        if (e->term[0] || e->words[0]) fn(user, e);
        memset(e, 0, sizeof *e);
        e->kind = indent == 2 ? ENTRY_OPTION : ENTRY_TEXT;
    }
    if (indent > n) return;
    if (begins && indent == 2) read_option(e, line + 2, n - 2);
    else add_words(e->words, sizeof e->words, line + indent, n - indent);
    if (e->kind == ENTRY_OPTION) return;
    n = strlen(e->words);
    e->kind = n && e->words[n - 1] == ':' ? ENTRY_HEADING : ENTRY_TEXT;
}

static void each_entry(const char *const *help, entry_fn fn, void *user) {
    entry e;
    memset(&e, 0, sizeof e);
    for (; *help; help++) {
        const char *at = *help;
        while (*at) {
            size_t n = strcspn(at, "\n");
            read_line(&e, at, n, fn, user);
            at += n + (at[n] == '\n');
        }
    }
    if (e.term[0] || e.words[0]) fn(user, &e);
}

/* ---- the manual ---- */

typedef struct manual {
    bool listing;   /* in a list of options */
    int  paragraph; /* texts so far: the first is the synopsis */
} manual;

/* Prints words on lines of their own, each sentence on a new line, as mdoc
   wants it. */
static void print_words(const char *words) {
    size_t column = 0;
    while (*words) {
        size_t n = strcspn(words, " "), i;
        if (column && column + n > MANUAL_WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column) putchar(' ');
        if (!column && (*words == '.' || *words == '\'')) printf("\\&");
        for (i = 0; i < n; i++) {
            if (words[i] == '\\') printf("\\e");
            else putchar(words[i]);
        }
        column += n + 1;
        if (n > 1 && strchr(".?!", words[n - 1]) && words[n]) {
            putchar('\n');
            column = 0;
        }
        words += n + strspn(words + n, " ");
    }
    if (column) putchar('\n');
}

/* ".It Fl Fl host Ar ADDRESS"; a variable is ".It Ev PORT". */
static void print_term(const char *term) {
    printf(".It");
    while (*term) {
        size_t      n = strcspn(term, " ");
        bool        comma = n && term[n - 1] == ',';
        const char *end = term + n - comma;
        if (strncmp(term, "--", 2) == 0)
            printf(" Fl Fl %.*s", (int)(end - term - 2), term + 2);
        else if (*term == '$')
            printf(" Ev %.*s", (int)(end - term - 1), term + 1);
        else printf(" Ar %.*s", (int)(end - term), term);
        if (comma) printf(" ,");
        term += n + strspn(term + n, " ");
    }
    putchar('\n');
}

static void print_entry(void *user, const entry *e) {
    manual *m = (manual *)user;
    if (e->kind == ENTRY_OPTION && !m->listing) printf(".Bl -tag -width Ds\n");
    if (e->kind != ENTRY_OPTION && m->listing) printf(".El\n");
    m->listing = e->kind == ENTRY_OPTION;
    if (e->kind == ENTRY_OPTION) {
        print_term(e->term);
        print_words(e->words);
    } else if (e->kind == ENTRY_HEADING) {
        printf(".Pp\n");
        print_words(e->words);
    } else {
        /* the first is the usage and what the program does */
        const char *text = strstr(e->words, "] ");
        if (m->paragraph++) printf(".Pp\n");
        else printf(".Nm\n");
        if (m->paragraph == 1 && text) {
            putchar((text[2] | 0x20));
            print_words(text + 3);
        } else {
            print_words(e->words);
        }
    }
}

int print_manual(const char *const *help) {
    manual m = {false, 0};
    printf(".\\\" GENERATED by hfsb-server --man\n"
           ".Dd " MANUAL_DATE "\n"
           ".Dt HFSB-SERVER 1\n.Os\n"
           ".Sh NAME\n.Nm hfsb-server\n"
           ".Nd commands and files for agents over HTTP\n"
           ".Sh SYNOPSIS\n.Nm hfsb-server\n.Op Ar OPTIONS\n"
           ".Sh DESCRIPTION\n");
    each_entry(help, print_entry, &m);
    if (m.listing) printf(".El\n");
    printf(".Sh EXIT STATUS\n"
           ".Bl -tag -width Ds\n"
           ".It 0\nStopped as asked, or the server of\n.Fl Fl check\n"
           "answers.\n"
           ".It 1\nCould not serve, or that server does not answer.\n"
           ".It 2\nInvalid or contradictory options.\n.El\n"
           ".Sh EXAMPLES\n"
           "Serve a folder on this machine, and call a tool:\n"
           ".Bd -literal -offset indent\n"
           "export SANDBOX_API_TOKEN=my-secret\n"
           "hfsb-server --work-dir /srv/box --root /srv/box &\n"
           "curl http://127.0.0.1:7860/api/bash \\e\n"
           "    -H \"Authorization: Bearer my-secret\" \\e\n"
           "    -H 'Content-Type: application/json' \\e\n"
           "    -d '{\"command\":\"uname -a\"}'\n"
           ".Ed\n"
           ".Sh SEE ALSO\n"
           "The client is\n.Cm hfsb .\n"
           "The API is described at\n.Pa /api/openapi.json .\n");
    return DONE;
}

/* ---- completions ---- */

typedef enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH } shell;

/* Bytes of the first clause, or of as many words as fit. */
static size_t brief_length(const char *words) {
    size_t n, last = 0;
    for (n = 0; words[n] && n < 60; n++) {
        if (words[n] == ' ') last = n;
        if (strchr(".;:", words[n]) && (words[n + 1] == ' ' || !words[n + 1]))
            return n;
        if (words[n] == ' ' && words[n + 1] == '(') return n;
    }
    return words[n] ? last : n;
}

/* Prints words for a shell's single quotes. */
static void print_brief(shell s, const char *words) {
    size_t n = brief_length(words), i;
    for (i = 0; i < n; i++) {
        if (words[i] == '\'') printf("'\\''");
        else if (s == SHELL_ZSH && strchr("[]\\", words[i]))
            printf("\\%c", words[i]);
        else if (s == SHELL_FISH && words[i] == '\\') printf("\\\\");
        else putchar(words[i]);
    }
}

/* One option, with the name of its value ("": it takes none). */
static void print_completed(shell s, const char *name, size_t n,
                            const char *value, size_t value_len,
                            const char *words) {
    if (s == SHELL_BASH) {
        printf(" %.*s", (int)n, name);
        return;
    }
    if (s == SHELL_ZSH) {
        printf("    '*%.*s[", (int)n, name);
        print_brief(s, words);
        if (value_len) printf("]:%.*s:_files'", (int)value_len, value);
        else printf("]'");
        printf(" \\\n");
        return;
    }
    printf("complete -c hfsb-server -l %.*s%s -d '", (int)n - 2, name + 2,
           value_len ? " -r -F" : "");
    print_brief(s, words);
    printf("'\n");
}

static void print_option(void *user, const entry *e) {
    shell       s = *(const shell *)user;
    const char *at = e->kind == ENTRY_OPTION ? e->term : "";
    while ((at = strstr(at, "--")) != NULL) {
        size_t      n = strcspn(at, " ,"), value_len = 0;
        const char *value = at + n;
        if (*value == ' ' && value[1] != '-') {
            value++;
            value_len = strcspn(value, " ,:[");
        }
        print_completed(s, at, n, value, value_len, e->words);
        at += n;
    }
}

int print_completion(const char *const *help, const char *name) {
    static const char *const names[] = {"bash", "zsh", "fish"};
    static const char *const before[] = {
        ("_hfsb_server() {\n    local IFS=$' \\n'\n"
         "    COMPREPLY=($(compgen -W '"),
        "#compdef hfsb-server\n_hfsb-server() {\n    _arguments \\\n",
        "complete -c hfsb-server -f\n"};
    static const char *const after[] = {
        "' -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
        "complete -o bashdefault -o default -F _hfsb_server hfsb-server\n",
        "    && return\n}\ncompdef _hfsb-server hfsb-server\n"
        "[[ $funcstack[1] != _hfsb-server ]] || _hfsb-server \"$@\"\n",
        ""};
    int s = 0;
    while (s < 3 && strcmp(names[s], name) != 0) s++;
    if (s == 3)
        return complain(USAGE, "--completion needs bash, zsh or fish, not "
                               "\"%s\".", name);
    {
        shell which = (shell)s;
        printf("%s", before[s]);
        each_entry(help, print_option, &which);
        printf("%s", after[s]);
    }
    return DONE;
}
