/* table.c - the tools: names, words for a model, schemas, functions. */
#include "tools_private.h"

/* The words are for a model and are paid for in every request: short, exact.
   All definitions together stay under 8,000 bytes in any format (tested). */

#define HFSBI_EDIT_KEYS                                                     \
    HFSBI_PLAIN("old_str", "string")                                        \
    "," HFSBI_PLAIN("new_str", "string") "," HFSBI_PLAIN(                   \
        "replace_all",                                                      \
        "boolean") ","                                                      \
                   "\"mode\":{\"type\":\"string\",\"enum\":[\"replace\","   \
                   "\"append_after\",\"prepend_before\"]}," HFSBI_TYPE(     \
                       "line", "integer",                                   \
                       "The place at this line") "," HFSBI_TYPE("exact",    \
                                                                "boolean",  \
                                                                "Match to " \
                                                                "the letter")

/* Hosts ask before a call that may write, and some take a missing hint for
   the worst: each tool says whether it only reads. Left out is what the
   protocol takes for granted: a tool that does not only read destroys, may
   reach the whole world, and a repeat is one more. */
#define HFSBI_READS   "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define HFSBI_CHANGES "{\"readOnlyHint\":false,\"openWorldHint\":false}"
#define HFSBI_REPEATS                                                    \
    "{\"readOnlyHint\":false,\"idempotentHint\":true,\"openWorldHint\":" \
    "false}"
#define HFSBI_RUNS "{\"readOnlyHint\":false}"

#define HFSBI_BASH_WORDS                                                     \
    "; returns stdout, then stderr. For files prefer read, write, edit, "    \
    "glob, grep, list over cat, echo, sed, find, grep, ls. Each call is a "  \
    "new shell: cd does not carry over. No terminal. Long output is cut in " \
    "the middle and saved to a file that the reply names. For servers and "  \
    "long jobs use background, not &, then bash_output."

static const hfsbi_tool hfsbi_tool_table[] =
    {
        {"bash", "Run a command",
         "Run a command with /bin/sh, which no root "
         "confines" HFSBI_BASH_WORDS,
         "Run a command with /bin/sh in the sandbox, a machine of its "
         "own" HFSBI_BASH_WORDS,
         HFSBI_OBJECT(
             "\"command\"",
             HFSBI_PLAIN("command", "string") "," HFSBI_TYPE("description", "string", "In a few words, for people") "," HFSBI_PLAIN("work_dir", "string") "," HFSBI_TYPE(
                 "timeout", "number",
                 "Seconds, default 240, at most "
                 "1200") "," HFSBI_TYPE("backgrou"
                                        "nd",
                                        "boolean",
                                        "Return "
                                        "at once "
                                        "with a "
                                        "job id") "," HFSBI_PLAIN("stdin",
                                                                  "string") "," HFSBI_PLAIN("env",
                                                                                            "object") "," HFSBI_TYPE("merge_stderr",
                                                                                                                     "boolean",
                                                                                                                     "Keep the order written")),
         HFSBI_RUNS,
         "command description work_dir timeout env stdin background "
         "merge_stderr "
         "shell id stream on_disconnect",
         false, hfsbi_tool_bash},

        {"bash_output", "Output of a job",
         "Output of a background job since offset, whether it runs, its "
         "exit "
         "code. Pass next_offset of the reply as the next offset.",
         NULL,
         HFSBI_OBJECT(
             "\"id\"",
             HFSBI_PLAIN("id", "string") "," HFSBI_TYPE(
                 "offset", "integer",
                 "In bytes, default 0") "," HFSBI_TYPE("wait_ms", "integer",
                                                       "Wait so long for "
                                                       "more")),
         HFSBI_READS, "id offset wait_ms", false, hfsbi_tool_bash_output},

        {"bash_input", "Input for a job",
         "Send text to the standard input of a background job; include "
         "the "
         "newline.",
         NULL,
         HFSBI_OBJECT("\"id\"",
                      HFSBI_PLAIN("id", "string") "," HFSBI_PLAIN(
                          "text", "string") "," HFSBI_TYPE("eof", "boolean",
                                                           "Then close it")),
         HFSBI_RUNS, "id text eof", false, hfsbi_tool_bash_input},

        {"kill", "Kill jobs",
         "End a job and all processes it started; without id every "
         "command and "
         "job that runs.",
         NULL, HFSBI_OBJECT("", HFSBI_PLAIN("id", "string")), HFSBI_REPEATS,
         "id", false, hfsbi_tool_kill},

        {"read", "Read a file",
         "Read lines of a text file, each behind its number and a tab. "
         "Read a "
         "file before you change it.",
         NULL,
         HFSBI_OBJECT("\"path\"",
                      HFSBI_PLAIN("path", "string") "," HFSBI_TYPE(
                          "offset", "integer",
                          "First line, from 1; negative: from "
                          "the end") "," HFSBI_TYPE("limit", "integer",
                                                    "Lines, "
                                                    "default "
                                                    "2000; 0: "
                                                    "all")),
         HFSBI_READS, "path offset limit image", false, hfsbi_tool_read},

        {"write", "Write a file",
         "Write a whole file, making its folders. Replaces what is there: "
         "read an "
         "existing file first, and prefer edit to change parts. The reply "
         "warns "
         "of syntax errors.",
         NULL,
         HFSBI_OBJECT(
             "\"path\",\"content\"",
             HFSBI_PLAIN("path", "string") "," HFSBI_PLAIN(
                 "content",
                 "string") "," HFSBI_TYPE("if_sha256", "string",
                                          "Refuse if the file has changed "
                                          "from this")),
         HFSBI_REPEATS, "path content if_sha256", true, hfsbi_tool_write},

        {"edit", "Edit a file",
         "Replace text in a file that you have read. old_str must mean "
         "one "
         "place: give enough lines around it, or replace_all, or line. "
         "Copy it "
         "without the line-number prefix; blanks and indentation may "
         "differ when "
         "the place is clear. mode append_after or prepend_before inserts "
         "new_str "
         "beside old_str. Write new_str in full, never ... for code left "
         "out.",
         NULL,
         HFSBI_OBJECT("\"path\",\"old_str\",\"new_str\"",
                      HFSBI_PLAIN("path", "string") "," HFSBI_EDIT_KEYS),
         HFSBI_CHANGES, "path " HFSBI_EDIT_NAMES, true, hfsbi_tool_edit},

        {"multi_edit", "Edit a file in several places",
         "Several edits to one file that you have read, all or none. Each "
         "is "
         "found in the file as it was; they must not overlap. Keys as in "
         "edit.",
         NULL,
         HFSBI_OBJECT(
             "\"path\",\"edits\"",
             HFSBI_PLAIN(
                 "path",
                 "string") ","
                           "\"edits\":{\"type\":\"array\","
                           "\"items\":" HFSBI_OBJECT(
                               "\"old_str\",\"new_str\"",
                               HFSBI_PLAIN("old_str", "string") "," HFSBI_PLAIN("new_str", "string") "," HFSBI_PLAIN(
                                   "replace_all",
                                   "boolean") "," HFSBI_PLAIN("mode",
                                                              "string") "," HFSBI_PLAIN("line",
                                                                                        "integer") "," HFSBI_PLAIN("exact",
                                                                                                                   "boolean")) "}"),
         HFSBI_CHANGES, "path edits", true, hfsbi_tool_multi_edit},

        {"apply_patch", "Apply a patch",
         "Change several files that you have read: *** Begin Patch to *** "
         "End "
         "Patch, sections *** Add File: p, *** Delete File: p, *** Update "
         "File: p (then *** Move to: q if wanted), the latter with hunks "
         "of "
         "lines that begin with a blank, - or +, each after a line @@ "
         "that may "
         "name the enclosing function.",
         NULL, HFSBI_OBJECT("\"patch\"", HFSBI_PLAIN("patch", "string")),
         HFSBI_CHANGES, "patch", true, hfsbi_tool_apply_patch},

        {"glob", "Find files by name",
         "Find files by a pattern, newest first. A pattern without a "
         "slash is for "
         "names in any folder: *.py; with one it begins at path: "
         "src/**/*.{c,h}. Leaves out .git and what .gitignore names.",
         NULL,
         HFSBI_OBJECT(
             "\"pattern\"",
             HFSBI_PLAIN("pattern", "string") "," HFSBI_PLAIN(
                 "path",
                 "str"
                 "in"
                 "g") "," HFSBI_TYPE("all", "boolean",
                                     "Leave out nothing") "," HFSBI_PLAIN("lim"
                                                                          "it",
                                                                          "int"
                                                                          "ege"
                                                                          "r") "," HFSBI_PLAIN("offset",
                                                                                               "integer")),
         HFSBI_READS, "pattern path all limit offset", false, hfsbi_tool_glob},

        {"grep", "Search in files",
         "Search lines of text files for a POSIX extended regular "
         "expression "
         "(also \\\\w \\\\d \\\\s \\\\b). Leaves out what glob does, and "
         "binary "
         "files.",
         NULL,
         HFSBI_OBJECT(
             "\"pattern\"",
             HFSBI_PLAIN("pattern", "string") "," HFSBI_TYPE(
                 "path", "string",
                 "File or folder") "," HFSBI_TYPE("include", "string",
                                                  "Such as *.{c,h}") "," HFSBI_TYPE("literal",
                                                                                    "boolean", "pattern is plain text") "," HFSBI_PLAIN("ignore_case", "boolean") "," HFSBI_TYPE("context", "integer", "Lines around a match") ","
                                                                                                                                                                                                                               "\"mode\":{\"type\":\"string\",\"enum\":[\"content\","
                                                                                                                                                                                                                               "\"files\",\"count\"]}," HFSBI_PLAIN("all", "boolean") "," HFSBI_PLAIN("limit",
                                                                                                                                                                                                                                                                                                      "integer") "," HFSBI_PLAIN("offset", "integer")),
         HFSBI_READS,
         "pattern path include literal ignore_case context mode all limit "
         "offset",
         false, hfsbi_tool_grep},

        {"list", "List a folder",
         "Type, size, time of change and name of what is in a folder.", NULL,
         HFSBI_OBJECT(
             "",
             HFSBI_PLAIN("path", "string") "," HFSBI_TYPE("depth", "integer", "1 to 5, default 1") "," HFSBI_TYPE(
                 "all", "boolean",
                 "Enter ignored folders") "," HFSBI_PLAIN("limit",
                                                          "integer") "," HFSBI_PLAIN("offset",
                                                                                     "integer")),
         HFSBI_READS, "path depth all limit offset", false, hfsbi_tool_list},

        {"exists", "Whether a path exists",
         "true or false: is there a file or directory?", NULL,
         HFSBI_OBJECT("\"path\"", HFSBI_PLAIN("path", "string")), HFSBI_READS,
         "path", false, hfsbi_tool_exists},
};

enum { HFSBI_TOOL_COUNT = sizeof hfsbi_tool_table / sizeof *hfsbi_tool_table };

HFSBI_FN const hfsbi_tool *hfsbi_tool_find(hfsb_str name) {
    size_t i;
    for (i = 0; i < HFSBI_TOOL_COUNT; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_tool_table[i].name)))
            return &hfsbi_tool_table[i];
    return NULL;
}

bool hfsb_tools_has(hfsb_str name) {
    return hfsbi_tool_find(name) != NULL;
}

/* ---- definitions ---- */

static const struct {
    const char *name;
    const char *schema_key;
} hfsbi_formats[] = {{"flat", "parameters"},
                     {"openai", "parameters"},
                     {"anthropic", "input_schema"},
                     {"mcp", "inputSchema"}};

bool hfsb_tools_format_find(hfsb_str name, hfsb_tools_format *out) {
    size_t i;
    for (i = 0; i < sizeof hfsbi_formats / sizeof *hfsbi_formats; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_formats[i].name))) {
            *out = (hfsb_tools_format)i;
            return true;
        }
    return false;
}

/* All words of the table are JSON as they stand: no quotes, no backslashes
   (the tests parse what comes out). */
static void hfsbi_put_tool(const hfsbi_tool *t, bool elsewhere,
                           hfsb_tools_format format, hfsb_buf *sink) {
    bool wrapped = format == HFSB_TOOLS_OPENAI;
    bool mcp = format == HFSB_TOOLS_MCP;
    if (wrapped) hfsb_buf_printf(sink, "{\"type\":\"function\",\"function\":");
    hfsb_buf_printf(sink, "{\"name\":\"%s\"", t->name);
    if (mcp) hfsb_buf_printf(sink, ",\"title\":\"%s\"", t->title);
    hfsb_buf_printf(sink, ",\"description\":\"%s\",\"%s\":%s",
                    elsewhere && t->elsewhere ? t->elsewhere : t->description,
                    hfsbi_formats[format].schema_key, t->schema);
    if (mcp) hfsb_buf_printf(sink, ",\"annotations\":%s", t->annotations);
    hfsb_buf_append(sink, wrapped ? HFSB_LIT("}}") : HFSB_LIT("}"));
}

HFSBI_FN hfsb_status hfsbi_tools_define(bool elsewhere, const hfsbi_tool *more,
                                        size_t count, hfsb_tools_format format,
                                        hfsb_buf *out, hfsb_err *err) {
    size_t      mark = out->len;
    hfsb_status st;
    size_t      i;
    hfsb_buf_append_byte(out, '[');
    for (i = 0; i < HFSBI_TOOL_COUNT; i++) {
        if (i) hfsb_buf_append_byte(out, ',');
        hfsbi_put_tool(&hfsbi_tool_table[i], elsewhere, format, out);
    }
    for (i = 0; i < count; i++) {
        hfsb_buf_append_byte(out, ',');
        hfsbi_put_tool(&more[i], elsewhere, format, out);
    }
    hfsb_buf_append_byte(out, ']');
    st = hfsb_buf_finish(out, mark);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Tool definitions");
}

hfsb_status hfsb_tools_define(hfsb_tools_format format, hfsb_buf *out,
                              hfsb_err *err) {
    return hfsbi_tools_define(false, NULL, 0, format, out, err);
}
