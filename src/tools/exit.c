/* exit.c - exit codes that are answers, not failures.

   grep exits with 1 when nothing matches, diff when the files differ, test
   when the condition is false. The result of bash is a failure all the same,
   as any code but 0 is, but it has the field exit_meaning, and MCP does not
   mark it as an error: hosts show errors in red, and models start to repair
   what is not broken.

   The code of a command line is that of its last command, or of a command that
   && follows:

       cd src && find . -name '*.c' | LC_ALL=C xargs grep -l foo
       ------    ------------------   -------- ----- ----
       may       any                  skipped  code  the name that is
       fail                                    123   looked up

   So each of these is judged: it gives an answer, it does not fail (echo), it
   would have complained on stderr if it had failed (cd), or it may be what
   failed. `make && grep x log` may be the failure of make. Other rules, which
   all report a failure too many rather than one too few:
   - no command that changes how a line ends: set -e, pipefail, exit, eval;
   - nothing that needs more than words and quotes to be read: subshells,
     here-documents, substitutions within quotes. */
#include "tools_private.h"

enum { HFSBI_EXIT_WORDS = 12 }; /* words of a command that are kept */

/* Commands whose exit code 1 is an answer. */
static const struct {
    const char *name, *second; /* the word after it (NULL: any) */
    const char *meaning;
} hfsbi_exit_answers[] = {{"grep", NULL, "no match"},
                          {"egrep", NULL, "no match"},
                          {"fgrep", NULL, "no match"},
                          {"zgrep", NULL, "no match"},
                          {"rg", NULL, "no match"},
                          {"ag", NULL, "no match"},
                          {"ack", NULL, "no match"},
                          {"locate", NULL, "no match"},
                          {"git", "grep", "no match"},
                          {"git", "show-ref", "no match"},
                          {"git", "diff", "there are differences"},
                          {"git", "merge-base", "not an ancestor"},
                          {"git", "check-ignore", "not ignored"},
                          {"diff", NULL, "the files differ"},
                          {"colordiff", NULL, "the files differ"},
                          {"cmp", NULL, "the files differ"},
                          {"test", NULL, "the condition is false"},
                          {"[", NULL, "the condition is false"},
                          {"[[", NULL, "the condition is false"},
                          {"expr", NULL, "the value is 0 or empty"},
                          {"pgrep", NULL, "no such process"},
                          {"pkill", NULL, "no such process"},
                          {"pidof", NULL, "no such process"},
                          {"which", NULL, "not found"},
                          {"type", NULL, "not found"},
                          {"command", "-v", "not found"}};

/* The words of one command, views of the line as it was written. */
typedef struct hfsbi_exit_command {
    hfsb_str words[HFSBI_EXIT_WORDS];
    size_t   count;
    bool     redirects; /* its stderr may be elsewhere */
} hfsbi_exit_command;

/* A line while it is read. */
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
   too hard to read. */
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
        if (c == '<' || c == '>') line->now.redirects = true;
        if (c == '&' && !(i > 0 && strchr("<>", s.ptr[i - 1])) &&
            !(i + 1 < s.len && s.ptr[i + 1] == '>'))
            break;
        if (strchr("'\"$\\", c))
            n = hfsbi_exit_quoted(hfsb_str_slice(s, i, s.len));
        if (!n) return false;
    }
    *word = hfsb_str_slice(s, 0, i);
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
    while (i < word.len && (hfsbi_is_alpha(word.ptr[i]) ||
                            hfsbi_is_digit(word.ptr[i]) || word.ptr[i] == '_'))
        i++;
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

/* What the code means if it is that of this command, or NULL. */
static const char *hfsbi_exit_answer(const hfsbi_exit_command *c, int code) {
    bool     by_xargs;
    size_t   i, at = hfsbi_exit_program(c, &by_xargs);
    hfsb_str name = hfsbi_exit_name(hfsbi_exit_word(c, at));
    hfsb_str second = hfsbi_exit_word(c, at + 1);
    if (by_xargs != (code == 123)) return NULL;
    if (hfsbi_exit_in(name, "git") && hfsbi_exit_in(second, "-C -c"))
        second = hfsbi_exit_word(c, at + 3);
    for (i = 0; i < sizeof hfsbi_exit_answers / sizeof *hfsbi_exit_answers;
         i++) {
        const char *must = hfsbi_exit_answers[i].second;
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_exit_answers[i].name)) &&
            (!must || hfsb_str_equal(second, hfsb_cstr(must))))
            return hfsbi_exit_answers[i].meaning;
    }
    return NULL;
}

/* Takes the command as one that the code may belong to. */
static void hfsbi_exit_judge(hfsbi_exit_line *line) {
    const hfsbi_exit_command *c = &line->now;
    hfsb_str                  first = hfsbi_exit_word(c, 0);
    const char               *answer = hfsbi_exit_answer(c, line->code);
    if (answer && line->answer && strcmp(answer, line->answer) != 0)
        answer = "a condition is false, or there is no match";
    if (answer) line->answer = answer;
    else if (hfsbi_exit_in(first, "true : echo printf export")) return;
    else if (!line->quiet || c->redirects ||
             !hfsbi_exit_in(first, "cd pushd cat head tail ls wc"))
        line->failed = true;
}

/* ---- the line ---- */

/* Reads the line to its end. False when it cannot be judged, or the code may be
   that of a failure. */
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
        if (c->count && hfsbi_exit_in(c->words[0], "set exit return exec trap "
                                                   "eval source ."))
            return false;
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
