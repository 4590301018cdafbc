/* exit.c - exit codes that are answers, not failures.

   grep exits with 1 when nothing matches, diff when the files differ, test
   when the condition is false. The result of bash is still a failure, as for
   any code but 0, but it has the field exit_meaning, and MCP does not mark it
   as an error: hosts show errors in red, and models start to repair what is
   not broken.

   The code of a command line is that of its last command, or of a command that
   && follows:

       cd src && find . -name '*.c' | LC_ALL=C xargs grep -l foo
       ------    ------------------   -------- ----- ----
       may       any                  skipped  code  the name that is
       fail                                    123   looked up

   So each command of the line is classified: it gives an answer, it does not
   fail (echo), it would have complained on stderr if it had failed (cd), or it
   may be what failed. In `make && grep x log` make may have failed. The other
   rules all report a failure too many rather than one too few:
   - no command that changes how a line ends: set -e, pipefail, exit, eval;
   - nothing that needs more than words and quotes to be read: subshells,
     here-documents, substitutions within quotes;
   - no complaint on stderr where the shell, sudo or xargs may have failed
     instead of the command: `grep x < missing` has the code 1 too. */
#include "tools_private.h"

enum { HFSBI_EXIT_WORDS = 12 }; /* words of a command that are kept */

/* Commands whose exit code 1 is an answer. */
static const struct {
    const char *name, *second; /* the word after it (NULL: any) */
    const char *meaning;
    bool        silent; /* with output on stderr it is a failure */
} hfsbi_exit_answers[] = {{"grep", NULL, "no match", false},
                          {"egrep", NULL, "no match", false},
                          {"fgrep", NULL, "no match", false},
                          {"zgrep", NULL, "no match", false},
                          {"rg", NULL, "no match", false},
                          {"ag", NULL, "no match", true},
                          {"ack", NULL, "no match", true},
                          {"locate", NULL, "no match", true},
                          {"git", "grep", "no match", false},
                          {"git", "show-ref", "no match", false},
                          {"git", "diff", "there are differences", true},
                          {"git", "merge-base", "not an ancestor", false},
                          {"git", "check-ignore", "not ignored", false},
                          {"diff", NULL, "the files differ", false},
                          {"colordiff", NULL, "the files differ", false},
                          {"cmp", NULL, "the files differ", false},
                          {"test", NULL, "the condition is false", false},
                          {"[", NULL, "the condition is false", false},
                          {"[[", NULL, "the condition is false", true},
                          {"expr", NULL, "the value is 0 or empty", false},
                          {"pgrep", NULL, "no such process", false},
                          {"pkill", NULL, "no such process", true},
                          {"pidof", NULL, "no such process", false},
                          {"which", NULL, "not found", false},
                          {"type", NULL, "not found", false},
                          {"command", "-v", "not found", false}};

/* The words of one command, views of the line as it was written. */
typedef struct hfsbi_exit_command {
    hfsb_str words[HFSBI_EXIT_WORDS];
    size_t   count;
    bool     away;     /* its stderr may be redirected */
    bool     may_stop; /* a redirection or an expansion may fail, and the shell
                          complains on stderr, */
    bool     may_hide; /* or where nobody sees it */
} hfsbi_exit_command;

/* A line that is being read. */
typedef struct hfsbi_exit_line {
    hfsb_str           rest;
    hfsbi_exit_command now;
    int                code;
    bool               quiet;  /* nothing was written to stderr */
    bool               failed; /* the code may be that of a failure */
    const char        *answer; /* what the code means otherwise, or NULL */
} hfsbi_exit_line;

/* True when `word` is one of the words in list, with blanks between. */
static bool hfsbi_exit_in(hfsb_str word, const char *list) {
    hfsb_str rest = hfsb_cstr(list), one;
    while (hfsbi_list_next(&rest, ' ', &one))
        if (hfsb_str_equal(word, one)) return true;
    return false;
}

/* The word with number i, "" after the last. */
static hfsb_str hfsbi_exit_word(const hfsbi_exit_command *c, size_t i) {
    return i < c->count ? c->words[i] : HFSB_LIT("");
}

/* ---- reading a line ---- */

/* The length of a quoted text or substitution at the start of s; 0 when it is
   too hard to parse. */
static size_t hfsbi_exit_quoted(hfsb_str s) {
    char   first = s.ptr[0];
    size_t i = 1, depth = 0;
    if (first == '\\') return s.len > 1 ? 2 : 0;
    if (first == '$' && (s.len < 2 || !strchr("({'\"", s.ptr[1]))) return 1;
    if (first == '$' && s.ptr[1] != '(' && s.ptr[1] != '{') return 0;
    for (; i < s.len; i++) {
        char c = s.ptr[i];
        if (first != '\'' && c == '`') return 0;
        if (first == '"' && c == '\\') i++;
        if (first == '$' && c == '\\') return 0;
        if (first == '"' && c == '$' && i + 1 < s.len && s.ptr[i + 1] == '(')
            return 0;
        if (first != '$' && c == first) return i + 1;
        if (first == '$' && (c == '\'' || c == '"')) return 0;
        if (first == '$' && (c == '(' || c == '{')) depth++;
        if (first == '$' && (c == ')' || c == '}') && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* Notes what the redirection at s[at] may do; the word starts with s. */
static void hfsbi_exit_redirect(hfsbi_exit_command *c, hfsb_str s, size_t at) {
    char before = at > 0 ? s.ptr[at - 1] : '\0';
    bool copies = false; /* a descriptor: >&1 */
    while (++at < s.len && strchr(">|&", s.ptr[at]))
        copies = copies || s.ptr[at] == '&';
    while (at < s.len && (s.ptr[at] == ' ' || s.ptr[at] == '\t')) at++;
    s = hfsb_str_slice(s, at, s.len);
    if (!hfsb_str_starts(s, HFSB_LIT("/dev/null")) &&
        !(copies && s.len && (s.ptr[0] == '1' || s.ptr[0] == '2'))) {
        c->may_stop = true;
        c->may_hide = c->may_hide || c->away;
    }
    if (before == '2' || before == '&' || (copies && before != '1'))
        c->away = true;
}

/* Moves the next word to *word, "" at an operator or the end. False when it
   cannot be read. */
static bool hfsbi_exit_next_word(hfsbi_exit_line *line, hfsb_str *word) {
    hfsb_str s = line->rest;
    size_t   i = 0, n;
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '\t')) i++;
    if (i < s.len && s.ptr[i] == '#') {
        i = hfsb_str_find_byte(s, '\n');
        if (i == HFSB_NPOS) i = s.len;
    }
    s = line->rest = hfsb_str_slice(s, i, s.len);
    for (i = 0; i < s.len && !strchr(" \t\n;|", s.ptr[i]); i += n) {
        char c = s.ptr[i];
        n = 1;
        if (!c || strchr("()`", c)) return false;
        if (c == '<' && i + 1 < s.len && s.ptr[i + 1] == '<') return false;
        if ((c == '<' || c == '>') && (i == 0 || s.ptr[i - 1] != c))
            hfsbi_exit_redirect(&line->now, s, i);
        if (c == '&' && !(i > 0 && strchr("<>", s.ptr[i - 1])) &&
            !(i + 1 < s.len && s.ptr[i + 1] == '>'))
            break;
        if (strchr("'\"$\\", c))
            n = hfsbi_exit_quoted(hfsb_str_slice(s, i, s.len));
        if (!n) return false;
    }
    *word = hfsb_str_slice(s, 0, i);
    if (hfsb_str_find(*word, HFSB_LIT("${")) != HFSB_NPOS ||
        hfsb_str_find(*word, HFSB_LIT("$((")) != HFSB_NPOS)
        line->now.may_stop = true;
    line->rest = hfsb_str_slice(s, i, s.len);
    return true;
}

/* Removes the operator at the start of the rest: '&' for &&, '/' for ||, '|',
   or ';' also for a line feed. 0: none of them. */
static char hfsbi_exit_operator(hfsbi_exit_line *line) {
    hfsb_str s = line->rest;
    size_t   n = 1;
    char     op = s.len ? s.ptr[0] : '\0';
    bool     twice = s.len > 1 && s.ptr[1] == op;
    if (op == '\n') op = ';';
    else if (twice && op == ';') op = '\0';
    else if (twice && op == '|') op = '/';
    else if (op == '&' && !twice) op = '\0';
    if (op == '&' || op == '/') n = 2;
    if (op == '|' && s.len > 1 && s.ptr[1] == '&') n = 2;
    line->rest = hfsb_str_slice(s, n, s.len);
    return op;
}

/* ---- judging a command ---- */

/* True for NAME=value. */
static bool hfsbi_exit_assigns(hfsb_str word) {
    size_t i = 0;
    while (i < word.len && hfsbi_is_word_char(word.ptr[i])) i++;
    return i > 0 && i < word.len && word.ptr[i] == '=';
}

/* The name of a program without its folder. */
static hfsb_str hfsbi_exit_name(hfsb_str word) {
    size_t i = word.len;
    while (i > 0 && word.ptr[i - 1] != '/') i--;
    return hfsb_str_slice(word, i, word.len);
}

/* The number of the word after xargs, which is word i, and its options. */
static size_t hfsbi_exit_after_xargs(const hfsbi_exit_command *c, size_t i) {
    hfsb_str word = hfsbi_exit_word(c, ++i);
    while (hfsb_str_starts(word, HFSB_LIT("-"))) {
        if (hfsbi_exit_in(word, "-n -P -I -L -d -s -a")) i++; /* its value */
        word = hfsbi_exit_word(c, ++i);
    }
    return i;
}

/* The number of the word that names the program: after assignments and
   programs that run another one. *by_xargs: xargs is one of them. */
static size_t hfsbi_exit_program(const hfsbi_exit_command *c, bool *by_xargs) {
    size_t i = 0;
    *by_xargs = false;
    while (i + 1 < c->count) {
        hfsb_str name = hfsbi_exit_name(c->words[i]);
        char     next = c->words[i + 1].ptr[0];
        if (hfsbi_exit_assigns(c->words[i])) {
            i++;
        } else if (hfsbi_exit_in(name, "xargs")) {
            *by_xargs = true;
            i = hfsbi_exit_after_xargs(c, i);
        } else if (hfsbi_exit_in(name, "timeout") && hfsbi_is_digit(next)) {
            i += 2;
        } else if (next != '-' && hfsbi_exit_in(name, "command env time sudo "
                                                      "nice nohup")) {
            i++;
        } else {
            return i;
        }
    }
    return i;
}

/* True when sudo, xargs or a redirection may have failed, not the program. */
static bool hfsbi_exit_doubts(const hfsbi_exit_line *line, size_t program) {
    const hfsbi_exit_command *c = &line->now;
    size_t                    i;
    if (c->may_hide) return true;
    if (line->quiet) return false;
    for (i = 0; i < program; i++)
        if (hfsbi_exit_in(hfsbi_exit_name(c->words[i]), "sudo xargs"))
            return true;
    return c->may_stop;
}

/* What the code means if it is that of this command, or NULL. */
static const char *hfsbi_exit_answer(const hfsbi_exit_line *line) {
    const hfsbi_exit_command *c = &line->now;
    bool                      by_xargs;
    size_t   i, n = sizeof hfsbi_exit_answers / sizeof *hfsbi_exit_answers;
    size_t   at = hfsbi_exit_program(c, &by_xargs);
    hfsb_str name = hfsbi_exit_name(hfsbi_exit_word(c, at));
    hfsb_str second = hfsbi_exit_word(c, at + 1);
    if (by_xargs != (line->code == 123)) return NULL;
    if (hfsbi_exit_doubts(line, at)) return NULL;
    if (hfsbi_exit_in(name, "git") && hfsbi_exit_in(second, "-C -c"))
        second = hfsbi_exit_word(c, at + 3);
    for (i = 0; i < n; i++) {
        const char *must = hfsbi_exit_answers[i].second;
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_exit_answers[i].name)) &&
            (!must || hfsb_str_equal(second, hfsb_cstr(must))))
            break;
    }
    if (i == n || (hfsbi_exit_answers[i].silent && !line->quiet)) return NULL;
    return hfsbi_exit_answers[i].meaning;
}

/* True when the command does not fail, or complains on stderr if it does. */
static bool hfsbi_exit_succeeds(const hfsbi_exit_line *line) {
    const hfsbi_exit_command *c = &line->now;
    hfsb_str                  first = hfsbi_exit_word(c, 0);
    if (hfsbi_exit_in(first, "true : echo") && !c->may_stop) return true;
    return line->quiet && !c->away &&
           hfsbi_exit_in(first, "true : echo printf export cd pushd cat head "
                                "tail ls wc");
}

/* Judges a command that may have returned the code. */
static void hfsbi_exit_judge(hfsbi_exit_line *line) {
    const char *answer = hfsbi_exit_answer(line);
    if (answer && line->answer && strcmp(answer, line->answer) != 0)
        answer = "a condition is false, or there is no match";
    if (answer) line->answer = answer;
    else if (!hfsbi_exit_succeeds(line)) line->failed = true;
}

/* True for a command that changes how the line ends, or what its words mean:
   `then exit 1`. */
static bool hfsbi_exit_changes(const hfsbi_exit_command *c) {
    size_t i = 0;
    while (hfsbi_exit_in(hfsbi_exit_word(c, i), "if then elif else while "
                                                "until do { ! time command"))
        i++;
    return hfsbi_exit_in(hfsbi_exit_word(c, i),
                         "set shopt exit return exec trap eval source . alias "
                         "function builtin enable readonly");
}

/* ---- the line ---- */

/* Reads the line to its end. False when it cannot be judged, or the code may
   be that of a failure. */
static bool hfsbi_exit_read(hfsbi_exit_line *line) {
    hfsbi_exit_command *c = &line->now;
    hfsb_str            word;
    char                op = ';'; /* the last operator */
    while (hfsbi_exit_next_word(line, &word)) {
        if (word.len && !c->count && (op == ';' || op == '/')) {
            line->failed = false; /* earlier codes do not matter */
            line->answer = NULL;
        }
        if (word.len && c->count < HFSBI_EXIT_WORDS)
            c->words[c->count++] = word;
        if (word.len) continue;
        if (hfsbi_exit_changes(c)) return false;
        if (c->count && (!line->rest.len || line->rest.ptr[0] != '|' ||
                         hfsb_str_starts(line->rest, HFSB_LIT("||"))))
            hfsbi_exit_judge(line);
        if (!line->rest.len) return !line->failed && (c->count || op == ';');
        if (c->count) op = hfsbi_exit_operator(line);
        else if (line->rest.ptr[0] != '\n') return false;
        else line->rest = hfsb_str_slice(line->rest, 1, line->rest.len);
        if (!op) return false;
        memset(c, 0, sizeof *c);
    }
    return false;
}

HFSBI_FN const char *hfsbi_exit_meaning(hfsb_str command, int code,
                                        bool quiet) {
    hfsbi_exit_line line;
    if (code != 1 && code != 123) return NULL;
    memset(&line, 0, sizeof line);
    line.rest = command;
    line.code = code;
    line.quiet = quiet;
    return hfsbi_exit_read(&line) ? line.answer : NULL;
}
