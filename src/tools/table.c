/* table.c - the list of tools, and their definitions for a model.

   Each tool describes itself in a row (hfsbi_tool) in its own file. A new tool
   needs its name in HFSBI_TOOL_LIST of tools_private.h. The functions of the
   tools are in a table of their own, in call.c, so that a remote client does
   not link them. Definitions are written from the rows in the shape of the
   caller's API. Every request to a model pays for their words: all definitions
   together stay under 8,000 bytes in any format (tested). Tools on request are
   left out of the list. */
#include "tools_private.h"

typedef const hfsbi_tool *(*hfsbi_tool_row)(void);

static const hfsbi_tool_row hfsbi_tool_rows[HFSBI_TOOLS] = {
#define HFSBI_X(name, prepare) hfsbi_tool_##name,
    HFSBI_TOOL_LIST(HFSBI_X)
#undef HFSBI_X
};

HFSBI_FN const hfsbi_tool *hfsbi_tool_at(size_t i) {
    return hfsbi_tool_rows[i]();
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_find(hfsb_str name) {
    size_t i;
    for (i = 0; i < HFSBI_TOOLS; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_tool_rows[i]()->name)))
            return hfsbi_tool_rows[i]();
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
                     {"mcp", "inputSchema"},
                     {"openai-strict", "parameters"}};

bool hfsb_tools_format_find(hfsb_str name, hfsb_tools_format *out) {
    size_t i;
    for (i = 0; i < sizeof hfsbi_formats / sizeof *hfsbi_formats; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_formats[i].name))) {
            *out = (hfsb_tools_format)i;
            return true;
        }
    return false;
}

/* Hosts ask before a call that may write, and some assume the worst of a tool
   without hints, so each tool states whether it only reads. Hints that repeat
   the protocol's defaults are left out. */
static const char *hfsbi_tool_hints(hfsbi_tool_kind kind) {
    switch (kind) {
    case HFSBI_TOOL_READS:
        return "{\"readOnlyHint\":true,\"openWorldHint\":false}";
    case HFSBI_TOOL_CHANGES:
        return "{\"readOnlyHint\":false,\"openWorldHint\":false}";
    case HFSBI_TOOL_REPEATS:
        return "{\"readOnlyHint\":false,\"idempotentHint\":true,"
               "\"openWorldHint\":false}";
    case HFSBI_TOOL_RUNS: break;
    }
    return "{\"readOnlyHint\":false}";
}

static hfsbi_schema hfsbi_schema_of(hfsb_tools_format format) {
    if (format == HFSB_TOOLS_OPENAI_STRICT) return HFSBI_SCHEMA_STRICT;
    return format == HFSB_TOOLS_MCP ? HFSBI_SCHEMA_PLAIN : HFSBI_SCHEMA_FULL;
}

/* What commands of a level may touch, in a few words. */
static const char *const hfsbi_level_words[] = {
    "which no root confines",
    "confined: it writes only beneath the root, the working directory and "
    "the temporary directory",
    "confined: it reads and writes only beneath the root, the working "
    "directory and the temporary directory, and reads system folders; by "
    "default without network"};

HFSBI_FN void hfsbi_tool_put_description(const hfsbi_tool  *t,
                                         const char        *shell,
                                         hfsb_confine_level level,
                                         hfsb_buf          *out) {
    const char *names[2] = {"{shell}", "{confined}"}, *values[2];
    const char *text = !shell && t->remote ? t->remote : t->description;
    hfsb_buf    words = HFSB_INIT;
    size_t      i;
    words.alloc = out->alloc;
    values[0] = shell;
    values[1] = hfsbi_level_words[level];
    for (i = 0; shell && i < 2; i++) {
        const char *at = strstr(text, names[i]);
        if (!at) continue;
        hfsb_buf_append(&words, hfsb_str_make(text, (size_t)(at - text)));
        hfsb_buf_append(&words, hfsb_cstr(values[i]));
        text = at + strlen(names[i]);
    }
    hfsb_buf_append(&words, hfsb_cstr(text));
    hfsbi_json_put_quoted(out, hfsb_buf_str(&words));
    if (words.status != HFSB_OK) out->status = words.status;
    hfsb_buf_free(&words);
}

static void hfsbi_put_tool(const hfsbi_tool *t, const char *shell,
                           hfsb_confine_level level, hfsb_tools_format format,
                           hfsb_buf *out) {
    bool strict = format == HFSB_TOOLS_OPENAI_STRICT;
    bool wrapped = format == HFSB_TOOLS_OPENAI || strict;
    bool mcp = format == HFSB_TOOLS_MCP;
    if (wrapped) hfsb_buf_printf(out, "{\"type\":\"function\",\"function\":");
    hfsb_buf_printf(out, "{\"name\":\"%s\"", t->name);
    if (mcp) hfsb_buf_printf(out, ",\"title\":\"%s\"", t->title);
    hfsb_buf_printf(out, ",\"description\":");
    hfsbi_tool_put_description(t, shell, level, out);
    hfsb_buf_printf(out, ",\"%s\":", hfsbi_formats[format].schema_key);
    hfsbi_params_schema(t->params, hfsbi_schema_of(format), out);
    if (strict) hfsb_buf_printf(out, ",\"strict\":true");
    if (mcp)
        hfsb_buf_printf(out, ",\"annotations\":%s", hfsbi_tool_hints(t->kind));
    if (mcp && t->flags & HFSBI_TOOL_CORE) /* for Claude Code */
        hfsb_buf_printf(out, ",\"_meta\":{\"anthropic/alwaysLoad\":true}");
    hfsb_buf_append(out, wrapped ? HFSB_LIT("}}") : HFSB_LIT("}"));
}

HFSBI_FN hfsb_status hfsbi_tools_define(const char              *shell,
                                        hfsb_confine_level       level,
                                        const hfsbi_tool *const *more,
                                        size_t count, hfsb_tools_format format,
                                        hfsb_buf *out, hfsb_err *err) {
    size_t      mark = out->len, i;
    hfsb_status st;
    hfsb_buf_append_byte(out, '[');
    for (i = 0; i < HFSBI_TOOLS + count; i++) {
        const hfsbi_tool *t =
            i < HFSBI_TOOLS ? hfsbi_tool_rows[i]() : more[i - HFSBI_TOOLS];
        if (i < HFSBI_TOOLS && (t->flags & HFSBI_TOOL_ON_REQUEST)) continue;
        if (i) hfsb_buf_append_byte(out, ',');
        hfsbi_put_tool(t, shell, level, format, out);
    }
    hfsb_buf_append_byte(out, ']');
    st = hfsb_buf_finish(out, mark);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Tool definitions");
}

HFSBI_FN void hfsbi_tools_list(const hfsbi_tool *const *more, size_t count,
                               hfsb_buf *out) {
    size_t mark = out->len, i;
    for (i = 0; i < HFSBI_TOOLS + count; i++) {
        const hfsbi_tool *t =
            i < HFSBI_TOOLS ? hfsbi_tool_rows[i]() : more[i - HFSBI_TOOLS];
        if (i < HFSBI_TOOLS && (t->flags & HFSBI_TOOL_ON_REQUEST)) continue;
        hfsb_buf_printf(out, "%s%s", i ? ", " : "The tools are: ", t->name);
    }
    if (out->status != HFSB_OK) hfsb_buf_truncate(out, mark);
}

hfsb_status hfsb_tools_define(hfsb_tools_format format, hfsb_buf *out,
                              hfsb_err *err) {
    return hfsbi_tools_define(hfsbi_default_shell(), HFSB_CONFINE_NONE, NULL,
                              0, format, out, err);
}

hfsb_status hfsb_tools_define_one(hfsb_str name, hfsb_tools_format format,
                                  hfsb_buf *out, hfsb_err *err) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    size_t            mark = out->len;
    hfsb_status       st;
    if (!tool) return hfsbi_tool_unknown(name, err);
    hfsbi_put_tool(tool, hfsbi_default_shell(), HFSB_CONFINE_NONE, format,
                   out);
    st = hfsb_buf_finish(out, mark);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Tool definition");
}
