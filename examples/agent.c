/* agent.c - a whole coding agent: a model at any OpenAI-compatible endpoint
   (llama.cpp's server, vLLM, Ollama, OpenAI, HF's router), tools, a loop.

       cc -o agent examples/agent.c -pthread    # `make` adds https
       llama-server -m model.gguf --jinja --port 8080 &
       ./agent --stream 'Make the tests of this project pass'
       ./agent --on ssh:gpu1 'Find out why the training is slow'
       ./agent --undo

   It asks before it runs a command or changes a file: y, n, a (always, for
   this kind of call), or a sentence, which the model gets instead of a result.
   A token of the Hub is needed for --sandbox-tools and HF's router only. */
#define _XOPEN_SOURCE 700 /* isatty(); before any include */
#define HFSB_IMPLEMENTATION
#define HFSB_HUB
#include "../hfsb.h"
#include "agent_remote.h" /* https, --wait, --on, --sandbox-tools */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CALLS = 16, SHOWN_LINES = 200 };

/* What a call may do, and so what the user is asked. */
typedef enum kind { READS, WRITES, RUNS } kind;

typedef struct tool_call {
    hfsb_buf id, name, arguments;
} tool_call;

typedef struct agent {
    const char        *url, *model, *root;
    bool stream, colours, undo, always[RUNS + 1]; /* kinds not asked about */
    int                turns, wait; /* wait: seconds */
    FILE              *terminal; /* for questions; NULL: there is none */
    hfsb_runtime       runtime;
    hfsb_confine_level confine;
    hfsb_transport     transport;
    hfsb_session      *session; /* has the tools */
    remote             on;      /* with --on it works there */
    hfsb_buf           key;     /* "Bearer ...", or empty */
    hfsb_buf messages, tools;   /* JSON: objects with commas between; a list */
    hfsb_buf           text;    /* of the current turn, and its calls: */
    tool_call          calls[MAX_CALLS];
    size_t             call_count;
    hfsb_sse           events;
} agent;

static const hfsb_str nothing = HFSB_INIT;
static agent         *running; /* its Space is deleted on every exit */
static hfsb_cancel   *stop;    /* set by Ctrl-C */

static void on_signal(int number) {
    (void)number;
    hfsb_cancel_set(stop);
}

static void end_session(void) {
    hfsb_err err = HFSB_INIT;
    if (running && hfsb_session_close(running->session, &err) != HFSB_OK)
        fprintf(stderr, "agent: %s\n", err.msg); /* what is left */
    if (running) remote_close(&running->on);
    running = NULL;
}

/* more: a text, or JSON that has one as its error. */
static void give_up(const char *why, hfsb_str more) {
    const hfsb_json_value *error;
    hfsb_json_doc          doc = HFSB_INIT;
    (void)hfsb_json_parse(more, NULL, &doc, NULL);
    error = hfsb_json_get(doc.root, "error");
    more = hfsb_json_str(error, more);
    more = hfsb_json_str(hfsb_json_get(error, "message"), more);
    if (more.len > 300) more.len = 300;
    fprintf(stderr, "agent: %s" HFSB_F "\n", why, HFSB_V(more));
    end_session();
    exit(1);
}

static void must(hfsb_status st, const hfsb_err *err) {
    if (st != HFSB_OK) give_up(err ? err->msg : hfsb_status_text(st), nothing);
}

/* Prints text of a model or a command: it must not control the terminal. */
static void show(hfsb_str text) {
    size_t i;
    for (i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool c1 = i && (unsigned char)text.ptr[i - 1] == 0xC2 && c < 0xA0;
        if ((c >= ' ' && c != 0x7F && !c1) || c == '\n' || c == '\t')
            putchar(c);
    }
    if (fflush(stdout) != 0) hfsb_cancel_set(stop); /* the reader has gone */
}

static void colour(const agent *a, const char *code) {
    if (a->colours) printf("\033[%sm", code);
}

/* Shows lines, each after a mark; those of a diff (mark "") by its own. */
static void show_lines(const agent *a, const char *mark, hfsb_str text) {
    hfsb_str line;
    int      n = 0;
    for (; hfsb_text_line(&text, &line, NULL) && n < SHOWN_LINES; n++) {
        char c = *mark ? *mark : line.len ? *line.ptr : ' ';
        colour(a, c == '+' ? "32" : c == '-' || c == '!' ? "31" : "2");
        printf("%s", mark);
        show(line);
        colour(a, "0");
        printf("\n");
    }
    if (text.len) printf("  ... and more\n");
}

static hfsb_str arg(const hfsb_json_value *arguments, const char *key) {
    return hfsb_json_str(hfsb_json_get(arguments, key), nothing);
}

static bool is(hfsb_str key, const char *name) {
    return hfsb_str_equal(key, hfsb_cstr(name));
}

/* What show_call() shows after the name of a tool. */
static const char *main_key(const tool_call *c) {
    return is(hfsb_buf_str(&c->name), "bash") ? "command" : "path";
}

/* Shows the texts in the arguments, except for the one of that key. */
static void show_arguments(const agent *a, const hfsb_json_value *arguments,
                           const char *shown) {
    hfsb_json_iter it = hfsb_json_begin(arguments);
    while (hfsb_json_next(&it)) {
        bool        added = is(it.key, "new_str") || is(it.key, "content");
        const char *mark = added                     ? "+"
                           : is(it.key, "old_str") ? "-"
                           : is(it.key, "patch")   ? ""
                                                   : "  ";
        show_arguments(a, it.value, ""); /* edits, env */
        if (is(it.key, shown)) continue;
        if (*mark == ' ' && hfsb_json_str(it.value, nothing).len)
            show_lines(a, "", it.key);
        show_lines(a, mark, hfsb_json_str(it.value, nothing));
    }
}

static void show_call(const agent *a, const tool_call *c,
                      const hfsb_json_value *arguments) {
    hfsb_str what = arg(arguments, main_key(c));
    colour(a, "1");
    show(*main_key(c) == 'c' ? HFSB_LIT("$") : hfsb_buf_str(&c->name));
    printf(" ");
    if (!what.len) what = hfsb_str_slice(hfsb_buf_str(&c->arguments), 0, 200);
    show(what);
    colour(a, "0");
    printf("\n");
}

static void show_output(void *user, hfsb_proc_stream stream, hfsb_str text) {
    const agent *a = (const agent *)user;
    colour(a, stream == HFSB_PROC_STDERR ? "33" : "2");
    show(text);
    colour(a, "0");
}

static bool listed(const char *list, const char *name) {
    char word[32];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

static kind kind_of(const char *name) {
    if (listed(" read glob grep list exists bash_output plan_tool ", name))
        return READS;
    return listed(" write edit multi_edit apply_patch ", name) ? WRITES : RUNS;
}

/* Asks the user. False: the call is not made, and *why is the reason. */
static bool may(agent *a, kind k, hfsb_buf *why) {
    char line[1000] = "";
    if (!a->terminal) give_up("no terminal to ask on: use --yes", nothing);
    while (!*line) {
        fprintf(a->terminal, "%s? [y]es, [n]o, [a]lways, or what instead: ",
                k == RUNS ? "Run this" : "Change files");
        fflush(a->terminal);
        if (!fgets(line, sizeof line, a->terminal) || hfsb_cancel_is_set(stop))
            give_up("no answer", nothing);
        line[strcspn(line, "\n")] = '\0';
    }
    if (listed(" a A always Always ", line)) a->always[k] = true;
    if (listed(" y Y yes Yes ", line) || a->always[k]) return true;
    must(hfsb_buf_printf(why, "The user refused this call: %s", line), NULL);
    return false;
}

/* Appends a message. A failure stays in the buffer; ask_model() checks it. */
static void say(agent *a, const char *role, hfsb_str content) {
    hfsb_json_printf(&a->messages, "%s{\"role\":\"%s\",\"content\":\"%.*s\"}",
                     a->messages.len ? "," : "", role, HFSB_V(content));
}

static void say_turn(agent *a) { /* of the model, with its tool calls */
    size_t i;
    hfsb_json_printf(&a->messages,
                     ",{\"role\":\"assistant\",\"content\":\"%.*s\"",
                     HFSB_V(hfsb_buf_str(&a->text)));
    for (i = 0; i < a->call_count; i++)
        hfsb_json_printf(&a->messages,
                         "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":"
                         "{\"name\":\"%s\",\"arguments\":\"%s\"}}",
                         i ? "," : ",\"tool_calls\":[",
                         hfsb_buf_cstr(&a->calls[i].id),
                         hfsb_buf_cstr(&a->calls[i].name),
                         hfsb_buf_cstr(&a->calls[i].arguments));
    hfsb_buf_printf(&a->messages, "%s}", i ? "]" : "");
}

/* The turn of the model, which is one reply or a stream. */
static void begin_turn(agent *a) {
    size_t i;
    for (i = 0; i < a->call_count; i++) {
        hfsb_buf_free(&a->calls[i].id);
        hfsb_buf_free(&a->calls[i].name);
        hfsb_buf_free(&a->calls[i].arguments);
    }
    a->call_count = 0;
    hfsb_buf_truncate(&a->text, 0);
    hfsb_sse_free(&a->events);
}

static void take_call(agent *a, const hfsb_json_value *call, size_t at) {
    const hfsb_json_value *fn = hfsb_json_get(call, "function");
    tool_call             *c;
    long long              index =
        hfsb_json_int(hfsb_json_get(call, "index"), (long long)at);
    if (index < 0 || index >= MAX_CALLS) return;
    c = &a->calls[index];
    if ((size_t)index >= a->call_count) a->call_count = (size_t)index + 1;
    hfsb_buf_append(&c->id, arg(call, "id"));
    hfsb_buf_append(&c->name, arg(fn, "name"));
    must(hfsb_buf_append(&c->arguments, arg(fn, "arguments")), NULL);
}

/* Takes a whole reply, or an event of a stream. */
static void take(agent *a, hfsb_str json) {
    hfsb_json_doc          doc = HFSB_INIT;
    const hfsb_json_value *choice, *message;
    hfsb_json_iter         it;
    hfsb_str               text;
    size_t                 at = 0;
    if (hfsb_str_equal(json, HFSB_LIT("[DONE]"))) return;
    if (hfsb_json_parse(json, NULL, &doc, NULL) != HFSB_OK ||
        hfsb_json_type_of(hfsb_json_get(doc.root, "error")))
        give_up("invalid reply from the endpoint: ", json);
    choice = hfsb_json_at(hfsb_json_get(doc.root, "choices"), 0);
    message = hfsb_json_get(choice, a->stream ? "delta" : "message");
    if (!message && !a->stream) give_up("no message in the reply: ", json);
    text = arg(message, "content");
    must(hfsb_buf_append(&a->text, text), NULL);
    show(text);
    it = hfsb_json_begin(hfsb_json_get(message, "tool_calls"));
    while (hfsb_json_next(&it)) take_call(a, it.value, at++);
    hfsb_json_free(&doc);
}

static bool take_piece(void *user, hfsb_str piece) {
    agent *a = (agent *)user;
    while (hfsb_sse_next(&a->events, &piece))
        take(a, hfsb_buf_str(&a->events.data));
    must(a->events.status, NULL);
    return true;
}

/* Ends unless there is a good reply, with what the user may change. */
static void check_reply(hfsb_status st, const hfsb_http_reply *reply,
                        hfsb_err *err) {
    if (st == HFSB_CONNECT)
        give_up(err->msg, HFSB_LIT(" Is --url or OPENAI_BASE_URL right?"));
    must(st, err);
    if (reply->status / 100 == 2) return;
    hfsb_err_set(err, HFSB_REMOTE, "status %d from the endpoint%s: ",
                 reply->status,
                 reply->status == 401 ? " (is OPENAI_API_KEY right?)" : "");
    give_up(err->msg, hfsb_buf_str(&reply->body));
}

static void ask_model(agent *a) {
    hfsb_http_field fields[2] = {
        {HFSB_LIT("Content-Type"), HFSB_LIT("application/json")},
        {HFSB_LIT("Authorization"), hfsb_buf_str(&a->key)}};
    hfsb_buf        url = HFSB_INIT, body = HFSB_INIT;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    must(a->messages.status, NULL);
    must(hfsb_buf_printf(&url, "%s/chat/completions", a->url), NULL);
    must(hfsb_json_printf(&body,
                          "{\"model\":\"%s\",\"messages\":[%s],"
                          "\"tools\":%s,\"stream\":%s}",
                          a->model, a->messages.ptr, a->tools.ptr,
                          a->stream ? "true" : "false"), NULL);
    call.method = HFSB_LIT("POST");
    call.url = hfsb_buf_str(&url);
    call.fields = fields;
    call.field_count = a->key.len ? 2 : 1;
    call.body = hfsb_buf_str(&body);
    call.idle_ms = 600000; /* a model may think long */
    call.cancel = stop;
    if (a->stream) call.on_body = take_piece;
    call.user = a;
    begin_turn(a);
    check_reply(remote_send(&a->transport, &call, a->wait, &reply, &err),
                &reply, &err);
    if (!a->stream) take(a, hfsb_buf_str(&reply.body));
    if (a->text.len) printf("\n");
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&url);
    hfsb_buf_free(&body);
}

static void call_tool(agent *a, hfsb_str name, hfsb_str arguments,
                      hfsb_tool_result *result) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.cancel = stop;
    opts.on_text = show_output;
    opts.user = a;
    if (a->undo) opts.names = HFSB_EDIT_NAMES_FLAGS; /* for a person */
    hfsb_session_call_text(a->session, name, arguments, &opts, result);
}

/* Makes one call, if the user lets it, and appends what the model gets. */
static void run_tool(agent *a, const tool_call *c) {
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_str         arguments = hfsb_buf_str(&c->arguments);
    hfsb_buf         shown = HFSB_INIT; /* to the model */
    kind             k = kind_of(hfsb_buf_cstr(&c->name));
    bool             ask = k != READS && !a->always[k];
    if (!arguments.len) arguments = HFSB_LIT("{}");
    (void)hfsb_json_parse(arguments, NULL, &doc, NULL);
    ask = ask && hfsb_session_has(a->session, hfsb_buf_str(&c->name)) &&
          hfsb_json_type_of(doc.root) == HFSB_JSON_OBJECT; /* else refused */
    show_call(a, c, doc.root);
    if (ask) show_arguments(a, doc.root, main_key(c));
    hfsb_json_free(&doc);
    if (!ask || may(a, k, &shown)) {
        call_tool(a, hfsb_buf_str(&c->name), arguments, &result);
        if (!ask) show_lines(a, "", hfsb_tool_result_str(&result, "diff"));
        if (!result.success) show_lines(a, "! ", hfsb_buf_str(&result.error));
        must(hfsb_tool_result_text(&result, &shown), NULL);
        hfsb_tool_result_free(&result);
    }
    hfsb_json_printf(&a->messages,
                     ",{\"role\":\"tool\",\"tool_call_id\":\"%s\","
                     "\"content\":\"%.*s\"}",
                     hfsb_buf_cstr(&c->id), HFSB_V(hfsb_buf_str(&shown)));
    hfsb_buf_free(&shown);
}

static void run(agent *a) {
    for (; a->turns > 0; a->turns--) {
        hfsb_buf reminder = HFSB_INIT;
        size_t   i;
        bool     again;
        ask_model(a);
        if (a->text.len || a->call_count) say_turn(a);
        for (i = 0; i < a->call_count; i++) run_tool(a, &a->calls[i]);
        again = hfsb_session_remind(a->session, a->call_count > 0, &reminder);
        if (again) say(a, "user", hfsb_buf_str(&reminder));
        hfsb_buf_free(&reminder);
        if (!again && !a->call_count) return;
    }
    give_up("not finished after --turns turns", nothing);
}

/* Tools of this machine, of a server, or of a Space. */
static void open_session(agent *a, const hfsb_hub_env *env) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    tools.root = hfsb_cstr(a->root ? a->root : ".");
    tools.confine.level = a->confine;
    tools.checkpoints.dir = ""; /* for --undo */
    opts.runtime = a->runtime;
    opts.model_local = true; /* the model is not the Hub's concern */
    opts.tools = &tools;
    must(remote_prepare(&a->on, env, &opts, &err), &err);
    must(hfsb_session_open(&opts, &a->session, &err), &err);
    must(hfsb_session_wait_ready(a->session, stop, &err), &err);
}

static void open_all(agent *a) {
    hfsb_hub_env env = HFSB_INIT;
    hfsb_err     err = HFSB_INIT;
    must(remote_open_transport(&a->transport, &err), &err);
    must(hfsb_cancel_open(NULL, &stop, &err), &err);
    remote_catch_signals(on_signal);
    must(hfsb_hub_env_read(&env, &err), &err);
    must(remote_key(a->url, &env, &a->key), NULL);
    running = a;
    a->on.http = &a->transport;
    if (a->on.name) a->runtime = HFSB_RUNTIME_REMOTE;
    open_session(a, &env);
    must(hfsb_session_define(a->session, HFSB_TOOLS_OPENAI, &a->tools, &err),
         &err);
    remote_log(NULL, hfsb_cstr(hfsb_runtime_text(a->runtime)));
}

static const char help[] =
    "agent [OPTION...] TASK\n"
    "  --url URL        endpoint ($OPENAI_BASE_URL, http://127.0.0.1:8080/v1)\n"
    "  --model NAME     its name there ($OPENAI_MODEL); key: $OPENAI_API_KEY\n"
    "  --stream         show the text of the model as it arrives\n"
    "  --turns N        stop after N turns of the model (50)\n"
    "  --wait SECONDS   wait for an endpoint that is starting (60)\n"
    "  --yes            do not ask\n"
    "  --root DIR       root of the file tools (.)\n"
    "  --confine LEVEL  confine commands: none, write or strict (none)\n"
    "  --on SANDBOX     tools at a URL (with $SANDBOX_API_TOKEN), or\n"
    "                   ssh:HOST, docker:NAME, exec:COMMAND ...\n"
    "  --sandbox-tools  tools in a Space of the Hub\n"
    "  --undo           revert the last run's changes (on this machine only)";

static void wrong(const char *what, const char *which) {
    fprintf(stderr, "agent: %s%s: see agent --help\n", what, which);
    exit(2);
}

/* Takes an option; returns how many arguments it has. */
static int option(agent *a, const char *name, const char *value) {
    const char **text = !strcmp(name, "--url")     ? &a->url
                        : !strcmp(name, "--model") ? &a->model
                        : !strcmp(name, "--root")  ? &a->root
                        : !strcmp(name, "--on")    ? &a->on.name
                                                   : NULL;
    if (!value && (text || listed(" --turns --wait --confine ", name)))
        wrong(name, " needs a value");
    if (text) *text = value;
    else if (!strcmp(name, "--turns")) a->turns = atoi(value);
    else if (!strcmp(name, "--wait")) a->wait = atoi(value);
    else if (!strcmp(name, "--stream")) return a->stream = true;
    else if (!strcmp(name, "--undo")) return a->undo = true;
    else if (!strcmp(name, "--yes"))
        return a->always[WRITES] = a->always[RUNS] = true;
    else if (!strcmp(name, "--sandbox-tools"))
        return a->runtime = HFSB_RUNTIME_SANDBOX, 1;
    else if (listed(" --help -h ", name)) exit(puts(help) < 0);
    else if (strcmp(name, "--confine")) wrong("unknown option ", name);
    else if (!hfsb_confine_level_find(hfsb_cstr(value), &a->confine))
        wrong("--confine takes none, write or strict, not ", value);
    return 2;
}

/* A run takes a checkpoint first, where they are kept; --undo restores it. */
static int run_or_undo(agent *a, const char *task) {
    hfsb_tool_result r = HFSB_INIT;
    if (a->undo) {
        call_tool(a, HFSB_LIT("undo"), HFSB_LIT("{\"to\":\"agent\"}"), &r);
        if (strstr(hfsb_buf_cstr(&r.error), "no checkpoint \"agent\""))
            give_up("nothing to undo: there was no run here", nothing);
        show(hfsb_buf_str(r.success ? &r.output : &r.error));
        printf("\n%s", r.success ? "" : "`hfsb undo` has these options.\n");
        return !r.success;
    }
    call_tool(a, HFSB_LIT("checkpoint"), HFSB_LIT("{\"name\":\"agent\"}"), &r);
    say(a, "system",
        HFSB_LIT("You are a coding agent. Use the tools, keep a plan with "
                 "plan_tool, stop calling tools when the task is done."));
    say(a, "user", hfsb_cstr(task));
    run(a);
    return 0;
}

int main(int argc, char **argv) {
    agent a = HFSB_INIT;
    int   i, code;
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* in order with stderr */
    a.url = remote_setting("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1");
    a.model = remote_setting("OPENAI_MODEL", "local");
    a.turns = 50;
    a.wait = 60;
    a.on.self = argv[0];
    a.colours = isatty(1) && !getenv("NO_COLOR");
    for (i = 1; i < argc && argv[i][0] == '-';)
        i += option(&a, argv[i], argv[i + 1]);
    if (a.undo && (a.on.name || a.runtime))
        wrong("--undo works on this machine only", "");
    if (a.on.name && a.runtime) wrong("--on or --sandbox-tools, not both", "");
    if (i != argc - !a.undo)
        wrong(a.undo ? "--undo takes no task" : "expected one TASK", "");
    if ((a.on.name || a.runtime) && (a.root || a.confine))
        give_up("--root and --confine are for this machine", nothing);
    a.terminal = fopen("/dev/tty", "r+");
    open_all(&a);
    code = run_or_undo(&a, argv[i]);
    end_session();
    return code; /* the system frees the rest */
}
