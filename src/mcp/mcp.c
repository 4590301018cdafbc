/* mcp.c - MCP on a server: options, start and shutdown.

   The object is a part of its server and lives as long. At the start it opens
   the local tools once, to report errors early; sessions open theirs with the
   same options. Then it may get tools of the program, a session, stdio.

   Shutdown: a stop of the server ends stdio at once, while requests over HTTP
   have time to finish; then calls in threads are cancelled and commands asked
   to end; the rest dies with the object. */
#include "mcp_private.h"

/* Defaults of the options. */
enum {
    HFSBI_MCP_ANSWER_MS = 50000,
    HFSBI_MCP_BEAT_MS = 5000,
    HFSBI_MCP_GRACE_MS = 500,
    HFSBI_MCP_MESSAGE = 32 * 1024 * 1024, /* bytes */
    HFSBI_MCP_RESULT_LEAST = 4000,
    HFSBI_MCP_PAGE_REST = 1400, /* bytes of a result that are not a page */
    HFSBI_MCP_SPILL = 8000      /* bytes: the first cut of any host */
};

/* ---- instructions ---- */

/* A path for the model: the end of a very long one. */
static hfsb_str hfsbi_mcp_short_path(hfsb_str path) {
    return path.len > 160 ? hfsb_str_slice(path, path.len - 160, path.len)
                          : path;
}

static bool hfsbi_mcp_offers(const hfsb_mcp *mcp, const char *tool) {
    return hfsbi_mcp_list_find(&mcp->list, hfsb_cstr(tool), NULL);
}

static bool hfsbi_mcp_writes(const hfsb_mcp *mcp) {
    static const char *const names[] = {"write", "edit", "multi_edit",
                                        "apply_patch", "edit_lines"};
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hfsbi_mcp_offers(mcp, names[i])) return true;
    return false;
}

/* Explains that long commands become jobs, and which tools handle these. */
static void hfsbi_mcp_put_jobs(const hfsb_mcp *mcp, hfsb_buf *sink) {
    static const char *const names[] = {"bash_output", "bash_input", "kill"};
    const char              *before = ": see ";
    size_t                   i;
    hfsb_buf_printf(sink,
                    " A command that runs for over %lld s goes on as a job",
                    mcp->limits.answer_ms / 1000);
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!hfsbi_mcp_offers(mcp, names[i])) continue;
        hfsb_buf_printf(sink, "%s%s", before, names[i]);
        before = ", ";
    }
    hfsb_buf_append_byte(sink, '.');
    if (hfsbi_mcp_offers(mcp, "bash_output"))
        hfsb_buf_append(sink, HFSB_LIT(" bash_output goes on where its last "
                                       "answer ended; with wait_ms it waits "
                                       "for the end, a question or a page of "
                                       "output."));
}

/* Names the root, or all of several. */
static void hfsbi_mcp_put_roots(const hfsb_root *place, hfsb_buf *sink) {
    hfsb_str    work = hfsb_root_work_dir(place);
    const char *before = ". The file tools stay beneath ";
    if (!hfsb_root_next(place)) {
        before = ". The file tools stay beneath the root ";
        if (hfsb_str_equal(hfsb_root_path(place), work)) {
            hfsb_buf_printf(sink, "%sdirectory", before);
            return;
        }
    }
    for (; place; place = hfsb_root_next(place)) {
        hfsb_buf_printf(sink, "%s", before);
        hfsb_buf_append(sink, hfsbi_mcp_short_path(hfsb_root_path(place)));
        before = " or ";
    }
}

/* Writes the instructions for local tools: where they work, and what a model
   would not expect of the tools on offer. */
static hfsb_status hfsbi_mcp_describe(hfsb_mcp *mcp) {
    const hfsb_root *place = mcp->tools->place;
    hfsb_str         work = hfsb_root_work_dir(place);
    const char      *confined = hfsb_confine_text(mcp->tools->confine);
    bool             bash = hfsbi_mcp_offers(mcp, "bash");
    hfsb_buf         text = HFSB_INIT;
    hfsb_status      st;
    text.alloc = mcp->alloc;
    hfsb_buf_printf(&text, "Tools on this machine. Relative paths%s start in ",
                    bash ? " and commands" : "");
    if (work.len) hfsb_buf_append(&text, hfsbi_mcp_short_path(work));
    else hfsb_buf_append(&text, HFSB_LIT("the server's current directory"));
    if (hfsb_root_path(place).len) hfsbi_mcp_put_roots(place, &text);
    if (hfsb_root_path(place).len && bash && !*confined)
        hfsb_buf_append(&text, HFSB_LIT("; bash is not confined to it"));
    hfsb_buf_append_byte(&text, '.');
    if (bash) hfsbi_confine_describe(mcp->tools->confine, &text);
    if (bash) hfsbi_mcp_put_jobs(mcp, &text);
    if (hfsbi_mcp_offers(mcp, "read"))
        hfsb_buf_append(&text, HFSB_LIT(" read also shows images."));
    st = hfsb_buf_finish(&text, 0);
    if (st == HFSB_OK) st = hfsbi_mcp_instruct(mcp, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return st;
}

/* ---- shutdown ---- */

/* A stop begins: requests over HTTP may finish, stdio ends at once. */
static void hfsbi_mcp_part_stop(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    if (mcp->stdio) hfsbi_mcp_stdio_end(mcp->stdio, true);
}

static void hfsbi_mcp_part_end(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    mcp->stopping = true;
    hfsbi_mcp_calls_stop(mcp, false);
    hfsbi_mcp_sessions_end(mcp);
}

/* With stdio, waits for nothing slow: the host wants the process gone. */
static bool hfsbi_mcp_part_busy(hfsbi_server_part *part) {
    hfsb_mcp *mcp = (hfsb_mcp *)(void *)part;
    if (mcp->stdio) return !hfsbi_mcp_stdio_ended(mcp->stdio);
    return mcp->working > 0 || hfsbi_mcp_sessions_busy(mcp) > 0;
}

static void hfsbi_mcp_free(hfsb_mcp *mcp) {
    hfsb_alloc alloc = mcp->alloc;
    bool       at_once = mcp->stdio || hfsbi_server_must_end(mcp->server);
    mcp->stopping = true;
    hfsbi_mcp_calls_stop(mcp, true);
    if (mcp->stdio) hfsbi_mcp_stdio_free(mcp->stdio);
    hfsbi_mcp_sessions_free(mcp, at_once);
    hfsb_tools_close(mcp->tools);
    hfsbi_mcp_list_free(&mcp->list);
    hfsb_json_free(&mcp->no_arguments);
    hfsb_buf_free(&mcp->only);
    hfsb_buf_free(&mcp->instructions);
    hfsb_buf_free(&mcp->about.name);
    hfsb_buf_free(&mcp->about.title);
    hfsb_buf_free(&mcp->about.version);
    hfsb_buf_free(&mcp->about.instructions);
    hfsbi_array_free(&alloc, mcp, 1, sizeof *mcp);
}

static void hfsbi_mcp_part_free(hfsbi_server_part *part) {
    hfsbi_mcp_free((hfsb_mcp *)(void *)part);
}

/* ---- start ---- */

static long long hfsbi_mcp_or_default(long long value, long long fallback) {
    return value > 0 ? value : fallback;
}

static hfsb_mcp *hfsbi_mcp_new(hfsb_server *server, const hfsb_mcp_opts *o) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsb_mcp         *mcp = (hfsb_mcp *)hfsbi_array(alloc, 1, sizeof *mcp);
    if (!mcp) return NULL;
    memset(mcp, 0, sizeof *mcp);
    mcp->server = server;
    mcp->loop = hfsbi_server_loop(server);
    mcp->alloc = *alloc;
    mcp->list.alloc = mcp->list.doc.alloc = *alloc;
    mcp->only.alloc = mcp->instructions.alloc = *alloc;
    mcp->no_arguments.alloc = *alloc;
    mcp->about.name.alloc = mcp->about.title.alloc = *alloc;
    mcp->about.version.alloc = mcp->about.instructions.alloc = *alloc;
    mcp->about.logging = o->logging;
    if (o->tools) mcp->journal = o->tools->journal;
    mcp->list.read_only = o->read_only;
    mcp->limits.answer_ms =
        hfsbi_mcp_or_default(o->answer_ms, HFSBI_MCP_ANSWER_MS);
    mcp->limits.beat_ms = hfsbi_mcp_or_default(o->beat_ms, HFSBI_MCP_BEAT_MS);
    mcp->limits.grace_ms =
        hfsbi_mcp_or_default(o->grace_ms, HFSBI_MCP_GRACE_MS);
    mcp->limits.max_message =
        o->max_message ? o->max_message : (size_t)HFSBI_MCP_MESSAGE;
    mcp->limits.max_result =
        o->max_result ? o->max_result : (size_t)HFSBI_MCP_RESULT;
    if (mcp->limits.max_result < HFSBI_MCP_RESULT_LEAST)
        mcp->limits.max_result = HFSBI_MCP_RESULT_LEAST;
    /* An answer may have a quarter more, and must not be cut: what follows the
       page would be lost. */
    mcp->limits.page = (mcp->limits.max_result - HFSBI_MCP_PAGE_REST) / 5 * 4;
    mcp->part.stop = hfsbi_mcp_part_stop;
    mcp->part.end = hfsbi_mcp_part_end;
    mcp->part.busy = hfsbi_mcp_part_busy;
    mcp->part.free = hfsbi_mcp_part_free;
    return mcp;
}

/* Copies the texts of the options. HFSB_OK, HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_copy_texts(hfsb_mcp            *mcp,
                                        const hfsb_mcp_opts *o) {
    hfsbi_mcp_about *about = &mcp->about;
    const char      *name = o->name ? o->name : "hfsb";
    const char      *version = o->version ? o->version : HFSB_VERSION;
    if (hfsb_buf_append(&about->name, hfsb_cstr(name)) != HFSB_OK ||
        hfsb_buf_append(&about->title, hfsb_cstr(o->title)) != HFSB_OK ||
        hfsb_buf_append(&about->version, hfsb_cstr(version)) != HFSB_OK ||
        hfsb_buf_append(&mcp->instructions, o->instructions) != HFSB_OK ||
        hfsb_buf_append(&mcp->only, o->only) != HFSB_OK)
        return HFSB_NOMEM;
    return hfsb_json_parse(HFSB_LIT("{}"), NULL, &mcp->no_arguments, NULL);
}

/* Lists the local tools that are offered. */
static hfsb_status hfsbi_mcp_choose_tools(hfsb_mcp *mcp, hfsb_err *err) {
    hfsb_buf          all = HFSB_INIT;
    const hfsbi_tool *plan = hfsbi_plan_tool();
    hfsb_status       st;
    all.alloc = mcp->alloc;
    st = hfsbi_tools_define(mcp->tools->shell.ptr,
                            hfsb_confine_level_of(mcp->tools->confine), &plan,
                            1, HFSB_TOOLS_MCP, &all, err);
    if (st == HFSB_OK)
        st = hfsbi_mcp_define_requested(mcp->tools->history != NULL, &all,
                                        err);
    if (st == HFSB_OK)
        st = hfsbi_mcp_list_choose(&mcp->list, hfsb_buf_str(&all),
                                   hfsb_buf_str(&mcp->only), err);
    hfsb_buf_free(&all);
    return st;
}

/* Opens the local tools whose options those of sessions copy, and offers them.
   */
static hfsb_status hfsbi_mcp_open_tools(hfsb_mcp              *mcp,
                                        const hfsb_tools_opts *opts,
                                        hfsb_err              *err) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_status     st;
    if (opts) o = *opts;
    if (!o.alloc.fn) o.alloc = mcp->alloc;
    if (!o.who) o.who = "mcp";
    o.session = true;
    o.drop_spills = true; /* only the session knows their names */
    if (!o.spill_over)
        o.spill_over = mcp->limits.max_result / 2 < HFSBI_MCP_SPILL
                           ? mcp->limits.max_result / 2
                           : (size_t)HFSBI_MCP_SPILL;
    if (!o.max_page) /* leaves room for notes */
        o.max_page = mcp->limits.max_result - mcp->limits.max_result / 8;
    st = hfsbi_tools_open_in(hfsbi_server_group(mcp->server), NULL, &o,
                             &mcp->tools, err);
    if (st == HFSB_OK) st = hfsbi_mcp_choose_tools(mcp, err);
    if (st != HFSB_OK) return st;
    hfsbi_tools_check_less(mcp->tools, hfsbi_mcp_writes(mcp),
                           hfsbi_mcp_offers(mcp, "bash"));
    st = hfsbi_mcp_describe(mcp);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Adding MCP");
}

static hfsb_status hfsbi_mcp_fill(hfsb_mcp *mcp, const hfsb_mcp_opts *o,
                                  hfsb_err *err) {
    hfsb_status st = hfsbi_mcp_copy_texts(mcp, o);
    if (st == HFSB_OK && o->no_tools) {
        hfsbi_journal_hide_env(mcp->journal, (const char *const *)hfsbi_environ());
        st = hfsbi_mcp_instruct(mcp, HFSB_LIT(""));
    }
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Adding MCP");
    return o->no_tools ? HFSB_OK : hfsbi_mcp_open_tools(mcp, o->tools, err);
}

hfsb_status hfsb_server_add_mcp(hfsb_server *server, const hfsb_mcp_opts *opts,
                                hfsb_mcp **out, hfsb_err *err) {
    hfsb_mcp_opts none = HFSB_INIT;
    const char   *path;
    hfsb_mcp     *mcp;
    hfsb_status   st;
    if (!opts) opts = &none;
    path = opts->path ? opts->path : "/mcp";
    if (out) *out = NULL;
    mcp = hfsbi_mcp_new(server, opts);
    if (!mcp) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding MCP");
    st = hfsbi_mcp_fill(mcp, opts, err);
    if (st == HFSB_OK && *path) st = hfsbi_mcp_route(mcp, "POST", path, err);
    if (st != HFSB_OK) { /* the server does not know it yet */
        hfsbi_mcp_free(mcp);
        return st;
    }
    /* from here on it lives as long as the server */
    hfsbi_server_part_add(server, &mcp->part);
    if (*path) st = hfsbi_mcp_route(mcp, "DELETE", path, err);
    if (st == HFSB_NOMEM) return st; /* any other: the host has its DELETE */
    if (out) *out = mcp;
    return hfsbi_ok(err);
}

const hfsb_tools *hfsb_mcp_tools(const hfsb_mcp *mcp) {
    return mcp->tools;
}
