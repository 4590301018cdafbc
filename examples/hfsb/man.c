/* man.c - hfsb man: the manual page hfsb(1) in mdoc, from the same table as
   --help and completion.

   Each command is a subsection: its synopsis, its paragraphs, its options. The
   options are those that the command itself takes, which it hands over when it
   is run with a->on_rows set. Exit codes, environment and files are lists of
   their own below, since no other place needs them. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Changed with the text of this file, so that the page is the same wherever it
   is made. */
#define MANUAL_DATE "November 18, 2026"

enum { WIDTH = 76 };

/* ---- text as roff ---- */

/* A hyphen must stay a hyphen, so that options can be copied from the page. */
static void put_byte(char c) {
    if (c == '\\') printf("\\e");
    else if (c == '-') printf("\\-");
    else if (c == '\'') printf("\\(aq");
    else if (c == '`') printf("\\(ga");
    else if (c == '^') printf("\\(ha");
    else if (c == '~') printf("\\(ti");
    else putchar(c);
}

/* Bytes that put_byte() writes for a text. */
static size_t width_of(const char *text, size_t len) {
    size_t i, width = len;
    for (i = 0; i < len; i++) {
        if (text[i] == '\\' || text[i] == '-') width++;
        else if (text[i] && strchr("'`^~", text[i])) width += 3;
    }
    return width;
}

static void put_bytes(const char *text, size_t len) {
    size_t i;
    if (len && (*text == '.' || *text == '\'')) printf("\\&");
    for (i = 0; i < len; i++) put_byte(text[i]);
}

/* An argument of a macro. It must not be taken for the name of another one,
   nor for punctuation. */
static void put_argument(const char *text, size_t len) {
    size_t i;
    printf(" \"\\&");
    for (i = 0; i < len; i++)
        if (text[i] == '"') printf("\\(dq");
        else put_byte(text[i]);
    printf("\"");
}

static bool ends_sentence(const char *word, size_t len) {
    while (len && strchr(")\"`", word[len - 1])) len--;
    return len && strchr(".?!", word[len - 1]);
}

/* One paragraph, wrapped; each sentence begins a line, as mdoc wants it. */
static void put_paragraph(const char *text, size_t len) {
    size_t at = 0, column = 0, n, i;
    for (; at < len; at += n + 1) {
        for (n = 0; at + n < len && text[at + n] != ' ';) n++;
        if (!n) continue;
        if (column && column + 1 + width_of(text + at, n) > WIDTH) {
            printf("\n");
            column = 0;
        }
        if (column) printf(" ");
        if (!column) put_bytes(text + at, n);
        for (i = 0; column && i < n; i++) put_byte(text[at + i]);
        column += width_of(text + at, n) + 1;
        if (at + n >= len || !ends_sentence(text + at, n)) continue;
        printf("\n");
        column = 0;
    }
    if (column) printf("\n");
}

/* Lines that begin with blanks are an example, others are paragraphs. */
static void put_paragraphs(const char *text) {
    bool literal = false, first = true;
    while (text && *text) {
        size_t len = strcspn(text, "\n"), blanks = strspn(text, " ");
        if (blanks && !literal) printf(".Bd -literal -offset indent\n");
        if (!blanks && literal) printf(".Ed\n");
        if (!blanks && !first) printf(".Pp\n");
        literal = blanks > 0;
        first = false;
        if (literal) {
            put_bytes(text + blanks, len - blanks);
            printf("\n");
        } else {
            put_paragraph(text, len);
        }
        text += len + (text[len] == '\n');
    }
    if (literal) printf(".Ed\n");
}

/* ---- commands ---- */

static void put_option(const option *o) {
    size_t len = strcspn(o->name, " ");
    printf(".It Sy");
    put_argument(o->name, len);
    if (o->name[len]) {
        printf(" Ar");
        put_argument(o->name + len + 1, strlen(o->name + len + 1));
    }
    printf("\n");
    if (is_alias(o)) printf("The same as\n.Sy \"\\&");
    if (is_alias(o)) put_bytes(o->words, strcspn(o->words, " "));
    if (is_alias(o)) printf("\" .\n");
    else if (*o->words) put_paragraph(o->words, strlen(o->words));
}

/* The synopsis: upper-case words are arguments. */
static void put_synopsis(const cli_command *c) {
    printf(".Pp\n.Nm\n.Sy");
    put_argument(c->name, strlen(c->name));
    printf("\n");
    if (!*c->words) return;
    printf(".Ar");
    put_argument(c->words, strlen(c->words));
    printf("\n.Pp\n");
}

static void put_command(args *a, const option *rows) {
    const cli_command *c = a->command;
    if (c->details) put_paragraphs(c->details);
    if (c->details && !c->tool && a->about) printf(".Pp\n");
    if ((!c->details || !c->tool) && a->about) put_paragraphs(a->about);
    if (!rows || !rows->name) return;
    printf(".Bl -tag -width Ds\n");
    for (; rows->name; rows++) put_option(rows);
    printf(".El\n");
}

static void describe(void *user, const cli_command *c) {
    args a = HFSB_INIT;
    (void)user;
    if (!c->name) return;
    printf(".Ss ");
    put_bytes(c->name, strlen(c->name));
    printf("\n");
    put_paragraph(c->summary, strlen(c->summary));
    put_synopsis(c);
    a.command = c;
    a.on_rows = put_command;
    if (c->run) (void)c->run(&a);
    else put_command(&a, NULL);
    hfsb_json_free(&a.definition);
}

/* ---- the rest ---- */

typedef struct entry {
    const char *name, *words;
} entry;

static void put_entries(const char *macro, const entry *list, size_t count) {
    size_t i;
    printf(".Bl -tag -width Ds\n");
    for (i = 0; i < count; i++) {
        printf(".It %s", macro);
        put_argument(list[i].name, strlen(list[i].name));
        printf("\n");
        put_paragraph(list[i].words, strlen(list[i].words));
    }
    printf(".El\n");
}

static void put_environment(void) {
    static const entry list[] = {
        {"CLICOLOR_FORCE", "If set and not 0, use colours even if the output "
                           "is not a terminal."},
        {"HF_TOKEN", "The token of the Hugging Face Hub. Other variables of "
                     "huggingface_hub are also honoured: HF_ENDPOINT, "
                     "HF_HOME, HF_TOKEN_PATH, HF_HUB_OFFLINE."},
        {"HFSB_JOURNAL", "A file to which each tool call on this machine is "
                         "appended, as a line of JSON."},
        {"HFSB_LINGER", "Seconds that the server at the other end of a pipe "
                        "(--on ssh:HOST ...) waits for hfsb to reconnect "
                        "after the pipe breaks (60)."},
        {"HFSB_SANDBOX", "The sandbox for commands that take --on, unless "
                         "that is given. \".\" is the default sandbox (hfsb "
                         "use). An empty value is the same as unset."},
        {"HFSB_SERVERS", "A folder with static servers, hfsb-server-MACHINE, "
                         "for --on ssh:HOST and the like."},
        {"HFSB_SPACE_URL", "The address of every Space, instead of its own: "
                           "for tests with a fake Hub."},
        {"HFSB_START", "Seconds that a pipe may take to start (60): more for "
                       "a job of slurm:OPTIONS that waits in a queue."},
        {"NO_COLOR", "If set and not empty, use no colours."},
        {"SANDBOX_API_TOKEN", "The token of the server of a sandbox that is "
                              "not recorded, and of hfsb connect."},
        {"TERM", "If dumb, no line is rewritten and nothing is coloured."},
        {"XDG_CONFIG_HOME", "The folder of hfsb/config.json (~/.config)."},
        {"XDG_STATE_HOME", "The folder of the recorded sandboxes "
                           "(~/.local/state)."}};
    printf(".Sh ENVIRONMENT\n");
    put_entries("Ev", list, sizeof list / sizeof *list);
}

static void put_files(void) {
    static const entry list[] = {
        {"~/.config/hfsb/config.json",
         "Defaults: owner, hardware, sleep_time, template, tool_runtime."},
        {"~/.local/state/hfsb/sandboxes.json",
         "The recorded sandboxes with their tokens, readable only by you."},
        {"~/.local/state/hfsb/logs/",
         "Build logs of sandboxes whose creation failed."}};
    printf(".Sh FILES\n");
    put_entries("Pa", list, sizeof list / sizeof *list);
}

static void put_exit_status(void) {
    static const entry list[] = {
        {"0", "Done."},
        {"1", "Refused or invalid; the reason is on standard error, or with "
              "--json in the member error."},
        {"2", "Wrong usage."},
        {"124", "hfsb bash and hfsb exec: the timeout expired."},
        {"125", "hfsb bash and hfsb exec: the command could not be run."},
        {"126, 127", "hfsb exec: the program cannot be executed, or was not "
                     "found."},
        {"128 + N", "Signal N ended the command, or hfsb itself."}};
    printf(".Sh EXIT STATUS\n"
           "bash, exec and shell exit with the code of the command that they "
           "ran.\n");
    put_entries("Sy", list, sizeof list / sizeof *list);
}

static void put_head(void) {
    printf(".\\\" Made by hfsb man, version %s.\n", HFSB_VERSION);
    printf(".Dd %s\n.Dt HFSB 1\n.Os\n.Sh NAME\n.Nm hfsb\n"
           ".Nd a sandbox for LLM agents: run commands and edit files\n"
           ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n"
           ".Op Ar words ...\n.Nm\n.Ar command\n.Sy \\-\\-help\n.Nm\n"
           ".Sy \\-\\-version\n",
           MANUAL_DATE);
    printf(".Sh DESCRIPTION\n.Nm\n");
    put_paragraph(ABOUT_HFSB, strlen(ABOUT_HFSB));
    printf(".Pp\n");
    put_paragraph(ABOUT_ON, strlen(ABOUT_ON));
    printf(".Pp\n");
    put_paragraph(ABOUT_OPTIONS, strlen(ABOUT_OPTIONS));
    printf(".Sh COMMANDS\n");
}

int run_man(args *a) {
    const option none[] = {OPTIONS_END};
    if (!take_all(a, none, NULL)) return a->status;
    put_head();
    each_command(describe, NULL);
    put_environment();
    put_files();
    put_exit_status();
    printf(".Sh EXAMPLES\n.Bd -literal -offset indent\n");
    printf("hfsb edit app.py \\-\\-old \\(aqx = 1\\(aq \\-\\-new "
           "\\(aqx = 2\\(aq\n"
           "hfsb create \\-\\-image python:3.12 && hfsb shell\n"
           "tar c . | hfsb exec \\-\\-on . \\-\\- tar x\n"
           "hfsb cp \\-r src :src\n.Ed\n"
           ".Sh SEE ALSO\nThe server is\n.Cm hfsb\\-server .\n");
    return put_out(HFSB_LIT(""));
}
