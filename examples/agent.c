/* agent.c - a whole coding agent: a model at any OpenAI-compatible
   endpoint (llama.cpp's server, vLLM, ...), the tools of a session, a loop.

       llama-server -m model.gguf --jinja --port 8080 &
       ./agent --stream 'Make the tests of this project pass'

   --url URL        of the endpoint (http://127.0.0.1:8080/v1, or
                    $OPENAI_BASE_URL); the key is $OPENAI_API_KEY
   --model ID       (llamacpp/local)
   --stream         print the text of the model while it arrives
   --sandbox-tools  the tools work on a Space of the Hub, not on this machine
   --turns N        of the model, at most (50)                             */
#define HFSB_IMPLEMENTATION
#define HFSB_HUB
#include "../hfsb.h"
#ifdef HFSB_WITH_CURL /* for https, and so for the Hub */
#include "../hfsb_http_curl.h"
#endif
#include "../build/hfsb_space.h" /* the server's sources, for a Space */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tool_call {
    hfsb_buf id, name, arguments;
} tool_call;

enum { MAX_CALLS = 16 };

typedef struct agent {
    const char    *url, *model;
    bool           stream;
    int            turns;
    hfsb_runtime   runtime;
    hfsb_transport transport;
    hfsb_session  *session;
    hfsb_buf       messages; /* JSON objects separated by commas */
    hfsb_buf       tools;    /* JSON: their definitions */
    /* the current turn */
    hfsb_buf  text;
    tool_call calls[MAX_CALLS];
    size_t    call_count;
    hfsb_sse  events;
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
    running = NULL;
}

static void give_up(const char *why, hfsb_str more) {
    fprintf(stderr, "agent: %s%.*s\n", why,
            more.len < 300 ? (int)more.len : 300, more.len ? more.ptr : "");
    end_session();
    exit(1);
}

static void must(hfsb_status st, const hfsb_err *err) {
    if (st != HFSB_OK) give_up(err ? err->msg : hfsb_status_text(st), nothing);
}

/* Appends JSON: "%" is replaced by a hfsb_str as a string, "#" by one that is
   JSON already. */
static void put(hfsb_buf *out, const char *format, ...) {
    va_list list;
    va_start(list, format);
    for (; *format; format++) {
        hfsb_json_writer w;
        if (*format == '#') {
            must(hfsb_buf_append(out, va_arg(list, hfsb_str)), NULL);
        } else if (*format == '%') {
            hfsb_json_writer_init(&w, out, NULL);
            hfsb_json_put_str(&w, va_arg(list, hfsb_str));
            must(hfsb_json_writer_finish(&w, NULL), NULL);
        } else {
            must(hfsb_buf_append_byte(out, *format), NULL);
        }
    }
    va_end(list);
}

/* ---- the messages ---- */

static void say(agent *a, const char *role, hfsb_str content, hfsb_str more) {
    put(&a->messages, "#{\"role\":%,\"content\":%#}",
        a->messages.len ? HFSB_LIT(",") : nothing, hfsb_cstr(role), content,
        more);
}

static void say_turn(agent *a) { /* of the model, with its tool calls */
    hfsb_buf calls = HFSB_INIT;
    size_t   i;
    for (i = 0; i < a->call_count; i++)
        put(&calls,
            "#{\"id\":%,\"type\":\"function\",\"function\":{\"name\":%,"
            "\"arguments\":%}}",
            i ? HFSB_LIT(",") : HFSB_LIT(",\"tool_calls\":["),
            hfsb_buf_str(&a->calls[i].id), hfsb_buf_str(&a->calls[i].name),
            hfsb_buf_str(&a->calls[i].arguments));
    if (a->call_count) put(&calls, "]");
    say(a, "assistant", hfsb_buf_str(&a->text), hfsb_buf_str(&calls));
    hfsb_buf_free(&calls);
}

/* ---- the turn of the model, as one reply or as a stream ---- */

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
    put(&c->id, "#", hfsb_json_str(hfsb_json_get(call, "id"), nothing));
    put(&c->name, "#", hfsb_json_str(hfsb_json_get(fn, "name"), nothing));
    put(&c->arguments, "#",
        hfsb_json_str(hfsb_json_get(fn, "arguments"), nothing));
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
        hfsb_json_get(doc.root, "error"))
        give_up("invalid reply from the endpoint: ", json);
    choice = hfsb_json_at(hfsb_json_get(doc.root, "choices"), 0);
    message = hfsb_json_get(choice, a->stream ? "delta" : "message");
    if (!message && !a->stream)
        give_up("no message from the endpoint: ", json);
    text = hfsb_json_str(hfsb_json_get(message, "content"), nothing);
    put(&a->text, "#", text);
    fwrite(text.ptr, 1, text.len, stdout);
    fflush(stdout);
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

static void ask_model(agent *a) {
    hfsb_buf        url = HFSB_INIT, body = HFSB_INIT, key = HFSB_INIT;
    hfsb_http_field fields[2];
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    const char     *secret = getenv("OPENAI_API_KEY");
    must(hfsb_buf_printf(&url, "%s/chat/completions", a->url), NULL);
    put(&body, "{\"model\":%,\"messages\":[#],\"tools\":#,\"stream\":#}",
        hfsb_cstr(a->model), hfsb_buf_str(&a->messages),
        hfsb_buf_str(&a->tools),
        a->stream ? HFSB_LIT("true") : HFSB_LIT("false"));
    fields[0].name = HFSB_LIT("Content-Type");
    fields[0].value = HFSB_LIT("application/json");
    must(hfsb_buf_printf(&key, "Bearer %s", secret ? secret : ""), NULL);
    fields[1].name = HFSB_LIT("Authorization");
    fields[1].value = hfsb_buf_str(&key);
    call.method = HFSB_LIT("POST");
    call.url = hfsb_buf_str(&url);
    call.fields = fields;
    call.field_count = secret && *secret ? 2 : 1;
    call.body = hfsb_buf_str(&body);
    call.idle_ms = 600000; /* a model may think long */
    call.cancel = stop;
    if (a->stream) call.on_body = take_piece;
    call.user = a;
    begin_turn(a);
    must(hfsb_http_send(&a->transport, &call, &reply, &err), &err);
    if (reply.status / 100 != 2)
        give_up("error from the endpoint: ", hfsb_buf_str(&reply.body));
    if (!a->stream) take(a, hfsb_buf_str(&reply.body));
    if (a->text.len) printf("\n");
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&url);
    hfsb_buf_free(&body);
    hfsb_buf_free(&key);
}

/* ---- the loop ---- */

static void run_tools(agent *a) {
    size_t i;
    for (i = 0; i < a->call_count; i++) {
        tool_call       *c = &a->calls[i];
        hfsb_tool_result result = HFSB_INIT;
        hfsb_call_opts   opts = HFSB_INIT;
        hfsb_buf         shown = HFSB_INIT, id = HFSB_INIT;
        opts.cancel = stop;
        printf("> %s %.200s\n", c->name.len ? c->name.ptr : "?",
               c->arguments.len ? c->arguments.ptr : "{}");
        (void)hfsb_session_call_text(
            a->session, hfsb_buf_str(&c->name),
            c->arguments.len ? hfsb_buf_str(&c->arguments) : HFSB_LIT("{}"),
            &opts, &result);
        must(hfsb_tool_result_text(&result, &shown), NULL);
        put(&id, ",\"tool_call_id\":%", hfsb_buf_str(&c->id));
        say(a, "tool", hfsb_buf_str(&shown), hfsb_buf_str(&id));
        hfsb_buf_free(&shown);
        hfsb_buf_free(&id);
        hfsb_tool_result_free(&result);
    }
}

static void run(agent *a) {
    for (; a->turns > 0; a->turns--) {
        hfsb_buf reminder = HFSB_INIT;
        bool     again;
        ask_model(a);
        if (a->text.len || a->call_count) say_turn(a);
        run_tools(a);
        again = hfsb_session_remind(a->session, a->call_count > 0, &reminder);
        if (again) say(a, "user", hfsb_buf_str(&reminder), nothing);
        hfsb_buf_free(&reminder);
        if (!again && !a->call_count) return;
    }
    give_up("not finished after --turns turns", nothing);
}

static void log_line(void *user, hfsb_str line) {
    (void)user;
    fprintf(stderr, "[%.*s]\n", (int)line.len, line.ptr);
}

static void open_session(agent *a, hfsb_hub_env *env, hfsb_hub **hub) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_sandbox_spec spec = HFSB_INIT;
    hfsb_hub_opts     hub_opts = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
#ifdef HFSB_WITH_CURL
    must(hfsb_curl_open(NULL, &a->transport, &err), &err);
#else
    must(hfsb_net_open(NULL, &a->transport, &err), &err);
#endif
    must(hfsb_hub_env_read(env, &err), &err);
    hub_opts.endpoint = hfsb_buf_str(&env->endpoint);
    hub_opts.token = hfsb_buf_str(&env->token);
    hub_opts.transport = &a->transport;
    must(hfsb_hub_open(&hub_opts, hub, &err), &err);
    opts.runtime = a->runtime;
    opts.model = hfsb_cstr(a->model);
    opts.hub = *hub;
    opts.hub_token = hub_opts.token;
    opts.spec = &spec;
    spec.files = hfsb_space_files;
    spec.file_count = hfsb_space_file_count;
    opts.log = log_line;
    must(hfsb_cancel_open(NULL, &stop, &err), &err);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    must(hfsb_session_open(&opts, &a->session, &err), &err);
    running = a;
    must(hfsb_session_define(a->session, HFSB_TOOLS_OPENAI, &a->tools, &err),
         &err);
    fprintf(stderr, "[tools: %s]\n", hfsb_runtime_text(a->runtime));
}

static int usage(void) {
    fprintf(stderr, "agent [--url URL] [--model ID] [--stream] "
                    "[--sandbox-tools] [--turns N] TASK\n");
    return 2;
}

int main(int argc, char **argv) {
    agent        a = HFSB_INIT;
    hfsb_hub_env env = HFSB_INIT;
    hfsb_hub    *hub = NULL;
    int          i;
    a.url = getenv("OPENAI_BASE_URL");
    if (!a.url) a.url = "http://127.0.0.1:8080/v1";
    a.model = "llamacpp/local";
    a.turns = 50;
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--stream")) a.stream = true;
        else if (!strcmp(argv[i], "--sandbox-tools"))
            a.runtime = HFSB_RUNTIME_SANDBOX;
        else if (next && !strcmp(argv[i], "--url")) a.url = argv[++i];
        else if (next && !strcmp(argv[i], "--model")) a.model = argv[++i];
        else if (next && !strcmp(argv[i], "--turns"))
            a.turns = atoi(argv[++i]);
        else return usage();
    }
    if (i != argc - 1) return usage();
    open_session(&a, &env, &hub);
    say(&a, "system",
        HFSB_LIT("You are a coding agent. Use the tools, keep "
                 "a plan with plan_tool, and stop calling "
                 "tools when the task is done."),
        nothing);
    say(&a, "user", hfsb_cstr(argv[i]), nothing);
    run(&a);
    end_session();
    begin_turn(&a);
    hfsb_buf_free(&a.text);
    hfsb_buf_free(&a.messages);
    hfsb_buf_free(&a.tools);
    hfsb_hub_close(hub);
    hfsb_hub_env_free(&env);
    hfsb_transport_close(&a.transport);
    return 0;
}
