/* check_shell.c - the syntax of scripts for sh, bash and dash. Depends on:
   base, proc, check. */
#include "check.h"

/* ---- whose script it is ---- */

/* Takes the next word off *line; empty at its end. */
static hfsb_str hfsbi_shebang_word(hfsb_str *line) {
    hfsb_str rest = hfsbi_trim(*line), word;
    size_t   n = 0;
    while (n < rest.len && rest.ptr[n] != ' ' && rest.ptr[n] != '\t') n++;
    word = hfsb_str_slice(rest, 0, n);
    *line = hfsb_str_slice(rest, n, rest.len);
    return word;
}

HFSBI_FN const char *hfsbi_check_shell_of(hfsb_str content) {
    static const char *const shells[] = {"sh", "bash", "dash"};
    hfsb_str                 line, word;
    size_t                   i;
    if (!hfsb_str_starts(content, HFSB_LIT("#!"))) return NULL;
    if (!hfsb_text_line(&content, &line, NULL)) return NULL;
    line = hfsb_str_slice(line, 2, line.len);
    word = hfsbi_shebang_word(&line);
    if (hfsb_str_equal(hfsb_path_base(word), HFSB_LIT("env"))) do
            word = hfsbi_shebang_word(&line); /* past options and variables */
        while (hfsb_str_starts(word, HFSB_LIT("-")) ||
               hfsb_str_find_byte(word, '=') != HFSB_NPOS);
    word = hfsb_path_base(word);
    for (i = 0; i < sizeof shells / sizeof *shells; i++)
        if (hfsb_str_equal(word, hfsb_cstr(shells[i]))) return shells[i];
    return NULL;
}

/* ---- what the shell says ---- */

/* The name by which the shell reads its standard input as a file; without a
   file's name bash leaves the line numbers out. */
#define HFSBI_SHELL_FILE "/dev/stdin"

/* s without prefix (in lower case), whatever the case in s; else s. */
static hfsb_str hfsbi_shell_strip(hfsb_str s, const char *prefix) {
    size_t i;
    for (i = 0; prefix[i]; i++)
        if (i >= s.len || hfsbi_lower(s.ptr[i]) != prefix[i]) return s;
    return hfsb_str_slice(s, i, s.len);
}

/* Reads "/dev/stdin: line 3: message", as shells write it in any language:
       /dev/stdin: line 3: ...   bash, busybox
       /dev/stdin: 3: ...        dash
       /dev/stdin[3]: ...        ksh                                      */
static bool hfsbi_shell_message(hfsb_str line, hfsb_str *number,
                                hfsb_str *message) {
    size_t from = sizeof HFSBI_SHELL_FILE - 1, to, colon;
    size_t limit = from + 24; /* room for the word "line" */
    if (!hfsb_str_starts(line, HFSB_LIT(HFSBI_SHELL_FILE))) return false;
    while (from < line.len && from < limit &&
           !(line.ptr[from] >= '0' && line.ptr[from] <= '9'))
        from++;
    to = from;
    while (to < line.len && line.ptr[to] >= '0' && line.ptr[to] <= '9') to++;
    *number = hfsb_str_slice(line, from, to);
    *message = hfsb_str_slice(line, to, line.len);
    colon = hfsb_str_find_byte(*message, ':');
    if (number->len == 0 || colon > 1) return false;
    *message = hfsbi_trim(hfsb_str_slice(*message, colon + 1, message->len));
    return message->len > 0;
}

/* Tells of one line that the shell wrote. "warning" is what bash says of a
   here-document without end. */
static bool hfsbi_shell_tell(hfsb_str number, hfsb_str message,
                             hfsb_buf *lines) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str plain = hfsbi_shell_strip(message, "warning: ");
    bool     kept;
    text.alloc = lines->alloc;
    kept = hfsb_buf_printf(&text, "Shell syntax %s at line %.*s: ",
                           plain.len < message.len ? "warning" : "error",
                           (int)number.len, number.ptr) == HFSB_OK;
    plain = hfsbi_shell_strip(plain, "syntax error");
    plain = hfsbi_trim(hfsbi_shell_strip(plain, ":"));
    kept = kept && hfsb_buf_append(&text, plain) == HFSB_OK &&
           hfsbi_check_tell(lines, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return kept;
}

HFSBI_FN bool hfsbi_check_shell(const hfsbi_checker  *checker,
                                const hfsb_call_opts *how, const char *name,
                                hfsb_str content, hfsb_buf *lines) {
    const char *argv[6];
    hfsbi_fence fence;
    hfsb_buf    said = HFSB_INIT;
    hfsb_str    text, line, number, message;
    size_t      n = 0;
    bool        ended, found = false;
    if (!hfsbi_fence_init(&fence, checker->place)) return false;
    argv[n++] = name;
    if (strcmp(name, "bash") == 0 &&
        hfsb_str_find(content, HFSB_LIT("extglob")) != HFSB_NPOS) {
        argv[n++] = "-O"; /* -n does not run the script's own shopt */
        argv[n++] = "extglob";
    }
    argv[n++] = "-n";
    argv[n++] = HFSBI_SHELL_FILE;
    argv[n] = NULL;
    said.alloc = lines->alloc;
    ended = hfsbi_check_program(checker, &fence, how, argv, content,
                                HFSB_PROC_STDERR, &said);
    text = hfsb_buf_str(&said);
    while (!found && hfsb_text_line(&text, &line, NULL))
        found = hfsbi_shell_message(line, &number, &message);
    if (found) ended = hfsbi_shell_tell(number, message, lines) && ended;
    hfsb_buf_free(&said);
    return ended;
}
