/* agent_sandbox_exec.c - POST /execute of Kubernetes' agent-sandbox, and what
   its clients may know of the environment of commands.

   A command line is split into words as by a shell, but without one, and run
   as a program (program.c); the reply has all its output:

       words --> program --> feed --> head and tail of stdout and stderr
                    |                          |
               X-Request-ID                the reply, 200

   Its clients retry a POST after a 5xx or a lost connection. So nothing that
   happens after the start leads to a 5xx, and a repeat with the same
   X-Request-ID joins the program that runs or has run. */
#include "dialect_private.h"

enum {
    HFSBI_KUBE_HEAD =
        4 << 20, /* bytes of an output that are kept: the first */
    HFSBI_KUBE_TAIL = 2 << 20, /* and the last ones */
    HFSBI_KUBE_JSON = 7 << 20, /* bytes of an output as JSON, two thirds of
                                  them the head: the clients take 16 MiB of
                                  both */
    HFSBI_KUBE_KEEP = 4 << 20, /* bytes of events kept for a repeat */
    HFSBI_KUBE_WORDS = 4096    /* most words of a command */
};

/* ---- words ---- */

/* Removes the next word from *rest and appends it with a NUL; quotes and
   backslashes as in a POSIX shell, nothing else is special. False at the end,
   or with *why. */
static bool hfsbi_kube_word(hfsb_str *rest, hfsb_buf *out, const char **why) {
    hfsb_str s = *rest;
    size_t   i = 0;
    char     quote = '\0';
    while (i < s.len && strchr(" \t\r\n", s.ptr[i]) && s.ptr[i]) i++;
    if (i == s.len) return false;
    for (; i < s.len; i++) {
        char c = s.ptr[i];
        if (quote ? c == quote : c == '\'' || c == '"') {
            quote = quote ? '\0' : c;
        } else if (c == '\\' && quote != '\'') {
            *why = "No escaped character";
            if (++i == s.len) return false;
            /* in double quotes it escapes only a quote and itself */
            if (quote && s.ptr[i] != '"' && s.ptr[i] != '\\')
                hfsb_buf_append_byte(out, '\\');
            hfsb_buf_append_byte(out, s.ptr[i]);
            *why = NULL;
        } else if (!quote && strchr(" \t\r\n", c)) {
            break;
        } else {
            hfsb_buf_append_byte(out, c);
        }
    }
    if (quote) *why = "No closing quotation";
    hfsb_buf_append_byte(out, '\0');
    *rest = hfsb_str_slice(s, i, s.len);
    return !quote;
}

HFSBI_FN const char *hfsbi_kube_split(hfsb_str command, hfsb_buf *out) {
    const char *why = NULL;
    size_t      n = 0;
    if (hfsb_str_find_byte(command, '\0') != HFSB_NPOS)
        return "embedded null byte";
    while (hfsbi_kube_word(&command, out, &why))
        if (++n > HFSBI_KUBE_WORDS) return "too many words";
    if (!why && n == 0) return "the command is empty";
    return why;
}

/* ---- output ---- */

/* One output of a program, as much of it as is kept. */
typedef struct hfsbi_kube_output {
    hfsb_buf           head, tail;
    unsigned long long gone; /* bytes between them */
} hfsbi_kube_output;

/* Keeps the last `most` bytes of the tail. */
static void hfsbi_kube_output_cut(hfsbi_kube_output *o, size_t most) {
    size_t extra = o->tail.len > most ? o->tail.len - most : 0;
    if (!extra) return;
    memmove(o->tail.ptr, o->tail.ptr + extra, most);
    hfsb_buf_truncate(&o->tail, most);
    o->gone += extra;
}

static void hfsbi_kube_output_add(hfsbi_kube_output *o, hfsb_str bytes) {
    size_t room = HFSBI_KUBE_HEAD - o->head.len;
    size_t n = bytes.len < room ? bytes.len : room;
    if (o->gone || o->tail.len) n = 0; /* the head is complete */
    if (n && hfsb_buf_append(&o->head, hfsb_str_slice(bytes, 0, n)) != HFSB_OK)
        o->gone += n;
    bytes = hfsb_str_slice(bytes, n, bytes.len);
    if (bytes.len && hfsb_buf_append(&o->tail, bytes) != HFSB_OK) {
        hfsbi_kube_output_cut(o, 0);
        o->gone += bytes.len;
    }
    if (o->tail.len > 2 * (size_t)HFSBI_KUBE_TAIL)
        hfsbi_kube_output_cut(o, HFSBI_KUBE_TAIL);
}

/* Bytes that the character at a position takes in JSON; *len: its own. */
static size_t hfsbi_kube_json_size(hfsb_str text, size_t at, size_t *len) {
    unsigned long code;
    bool          valid;
    *len = hfsb_utf8_step(text, at, &code, &valid);
    if (!valid) return 3; /* U+FFFD */
    return code < ' ' ? 6 : code == '"' || code == '\\' ? 2 : *len;
}

/* Returns how many bytes at the start of text, whole characters, take at most
   `most` bytes in JSON. */
static size_t hfsbi_kube_fit(hfsb_str text, size_t most) {
    size_t at = 0, len, n;
    for (; at < text.len; at += len, most -= n) {
        n = hfsbi_kube_json_size(text, at, &len);
        if (n > most) break;
    }
    return at;
}

/* The length of text without a character that is cut at its end. */
static size_t hfsbi_kube_whole(hfsb_str text) {
    size_t        at = text.len, len = 0;
    unsigned long code;
    bool          valid = true;
    while (at > 0 && text.len - at < 3 &&
           ((unsigned char)text.ptr[at - 1] & 0xC0) == 0x80)
        at--;
    if (at > 0) len = hfsb_utf8_step(text, at - 1, &code, &valid);
    return !valid && at - 1 + len == text.len ? at - 1 : text.len;
}

/* Shortens head and tail to what may be sent. Where something is missing, the
   head ends after a character, and the tail begins with one. */
static void hfsbi_kube_output_fit(hfsbi_kube_output *o) {
    hfsb_str head = hfsb_buf_str(&o->head), tail = hfsb_buf_str(&o->tail);
    size_t   fit = hfsbi_kube_fit(head, HFSBI_KUBE_JSON / 3 * 2);
    size_t   all = 0, at, len, n;
    bool     cut = o->gone || fit < head.len;
    for (at = 0; at < tail.len; at += len)
        all += hfsbi_kube_json_size(tail, at, &len);
    if (!cut && all <= HFSBI_KUBE_JSON / 3) return; /* nothing is missing */
    fit = hfsbi_kube_whole(hfsb_str_slice(head, 0, fit));
    o->gone += head.len - fit;
    hfsb_buf_truncate(&o->head, fit);
    for (at = 0; at < tail.len &&
                 (all > HFSBI_KUBE_JSON / 3 || (tail.ptr[at] & 0xC0) == 0x80);
         at += len) {
        n = hfsbi_kube_json_size(tail, at, &len);
        all -= n;
    }
    hfsbi_kube_output_cut(o, tail.len - at);
}

/* Appends it to JSON as a string; `more` follows it. */
static void hfsbi_kube_output_put(hfsbi_kube_output *o, hfsb_str more,
                                  hfsb_buf *json) {
    char     marker[96];
    hfsb_buf text = HFSB_INIT;
    text.alloc = json->alloc;
    hfsbi_kube_output_cut(o, HFSBI_KUBE_TAIL);
    hfsbi_kube_output_fit(o);
    (void)snprintf(marker, sizeof marker, "\n... [%llu bytes omitted] ...\n",
                   o->gone);
    hfsb_buf_append(&text, hfsb_buf_str(&o->head));
    if (o->gone) hfsb_buf_append(&text, hfsb_cstr(marker));
    hfsb_buf_append(&text, hfsb_buf_str(&o->tail));
    hfsb_buf_append(&text, more);
    if (text.status != HFSB_OK) json->status = text.status;
    hfsb_buf_free(&o->head);
    hfsb_buf_free(&o->tail);
    hfsbi_json_put_quoted(json, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

/* ---- a run ---- */

typedef struct hfsbi_kube_run {
    hfsbi_feed_reader reader;
    hfsb_request     *request; /* NULL: gone */
    hfsbi_job        *job;
    hfsb_alloc        alloc;
    hfsbi_kube_output out[2]; /* stdout, stderr */
} hfsbi_kube_run;

static void hfsbi_kube_run_free(hfsbi_kube_run *run) {
    hfsb_alloc alloc = run->alloc;
    size_t     i;
    hfsbi_feed_detach(&run->reader);
    hfsbi_program_release(run->job);
    for (i = 0; i < 2; i++) {
        hfsb_buf_free(&run->out[i].head);
        hfsb_buf_free(&run->out[i].tail);
    }
    hfsbi_array_free(&alloc, run, 1, sizeof *run);
}

/* Replies 200 with the end of a command; this must not fail. */
static void hfsbi_kube_reply_end(hfsb_request *request, hfsb_buf *json,
                                 int code) {
    char plain[160];
    if (json->status == HFSB_OK) {
        hfsbi_reply_take(request, 200, "application/json", json);
        return;
    }
    (void)snprintf(plain, sizeof plain,
                   "{\"stdout\":\"\",\"stderr\":\"Out of memory: the output "
                   "of the command is lost.\",\"exit_code\":%d}",
                   code);
    hfsb_reply(request, 200, "application/json", hfsb_cstr(plain));
}

/* Returns why there is no exit code of the command; NULL: there is one. */
static const char *hfsbi_kube_run_problem(const hfsbi_kube_run *run) {
    const char *failure = hfsbi_program_failure(run->job);
    if (failure) return failure;
    if (run->job->end.timed_out) return "the command timed out";
    if (run->job->killed) return "the command was ended";
    return NULL;
}

static void hfsbi_kube_run_reply(hfsbi_kube_run        *run,
                                 const hfsbi_feed_exit *end) {
    const char *problem = hfsbi_kube_run_problem(run);
    hfsb_buf    json = HFSB_INIT, more = HFSB_INIT;
    int         code = end->exit_code;
    if (end->end == HFSB_PROC_SIGNALED) code = -end->signal;
    if (problem || end->end == HFSB_PROC_UNKNOWN) code = 1;
    json.alloc = more.alloc = run->alloc;
    if (problem)
        hfsb_buf_printf(&more, "%sFailed to execute command: %s",
                        run->out[1].head.len ? "\n" : "", problem);
    hfsb_buf_append(&json, HFSB_LIT("{\"stdout\":"));
    hfsbi_kube_output_put(&run->out[0], HFSB_LIT(""), &json);
    hfsb_buf_append(&json, HFSB_LIT(",\"stderr\":"));
    hfsbi_kube_output_put(&run->out[1], hfsb_buf_str(&more), &json);
    hfsb_buf_printf(&json, ",\"exit_code\":%d}", code);
    if (more.status != HFSB_OK) json.status = more.status;
    hfsbi_kube_reply_end(run->request, &json, code);
    hfsb_buf_free(&json);
    hfsb_buf_free(&more);
}

/* Takes what has come; replies at the end. */
static void hfsbi_kube_run_read(void *user) {
    hfsbi_kube_run  *run = (hfsbi_kube_run *)user;
    char             piece[HFSBI_FEED_EVENT + HFSBI_FEED_TAKE];
    hfsbi_feed_event event;
    while (hfsbi_feed_take(&run->reader, piece, sizeof piece, &event)) {
        if (event.kind == HFSBI_FEED_GAP) run->out[0].gone += event.gone_bytes;
        else if (event.kind == HFSBI_FEED_STDOUT)
            hfsbi_kube_output_add(&run->out[0], event.bytes);
        else if (event.kind == HFSBI_FEED_STDERR)
            hfsbi_kube_output_add(&run->out[1], event.bytes);
        else if (event.kind == HFSBI_FEED_EXITED) {
            hfsbi_kube_run_reply(run, &event.exit);
            hfsbi_kube_run_free(run);
            return;
        }
    }
}

/* The program keeps running: a repeat may ask for its output. */
static void hfsbi_kube_run_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_kube_run_free((hfsbi_kube_run *)user);
}

/* ---- the request ---- */

/* Sets an id that all repeats of a request share. */
static void hfsbi_kube_set_id(const hfsb_http_head *head,
                              hfsbi_job_spec       *spec) {
    hfsb_str    id = hfsb_http_field_find(head, "X-Request-ID");
    char        hex[HFSB_SHA256_HEX];
    hfsb_sha256 sha;
    if (!id.len || hfsb_http_field_count(head, "X-Request-ID") != 1) return;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, id);
    hfsbi_sha256_finish_hex(&sha, hex);
    hfsb_buf_printf(&spec->id, "execute-%.40s", hex);
    spec->raw.keep = HFSBI_KUBE_KEEP;
}

/* Replies 422 in the form of FastAPI. */
static void hfsbi_kube_refuse_body(hfsb_request *request, const char *key,
                                   const char *type, const char *text) {
    hfsb_buf json = HFSB_INIT;
    json.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    hfsb_buf_append(&json, HFSB_LIT("{\"detail\":"));
    if (json.status == HFSB_OK &&
        hfsbi_fields_detail_item("body", hfsb_cstr(key), type, text, NULL,
                                 &json) == HFSB_OK &&
        hfsb_buf_append(&json, HFSB_LIT("}")) == HFSB_OK)
        hfsbi_reply_take(request, 422, "application/json", &json);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&json);
}

/* Reads the command. False after a reply. */
static bool hfsbi_kube_read_command(hfsb_request *request, hfsb_json_doc *doc,
                                    hfsb_str *command) {
    const hfsb_json_value *value;
    hfsb_status            st;
    memset(doc, 0, sizeof *doc);
    doc->alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsb_json_parse(hfsb_request_body(request), NULL, doc, NULL);
    if (st == HFSB_NOMEM) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return false;
    }
    if (st != HFSB_OK || hfsb_json_type_of(doc->root) != HFSB_JSON_OBJECT) {
        hfsbi_kube_refuse_body(request, "", "json_invalid",
                               "The body must be a JSON object");
        return false;
    }
    value = hfsb_json_get(doc->root, "command");
    if (!value)
        hfsbi_kube_refuse_body(request, "command", "missing",
                               "Field required");
    else if (hfsb_json_type_of(value) != HFSB_JSON_STRING)
        hfsbi_kube_refuse_body(request, "command", "string_type",
                               "Input should be a valid string");
    else {
        *command = hfsb_json_str(value, hfsb_str_make("", 0));
        return true;
    }
    return false;
}

/* Replies to a command that cannot run, as the reference does. */
static void hfsbi_kube_reply_failed(hfsb_request *request, const char *why) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "{\"stdout\":\"\",\"stderr\":\"Failed to execute command: "
                   "%s\",\"exit_code\":1}",
                   why);
    hfsb_reply(request, 200, "application/json", hfsb_cstr(text));
}

static void hfsbi_kube_start(hfsbi_kube *k, hfsb_request *request,
                             hfsbi_job_spec *spec) {
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st;
    hfsbi_kube_run *run =
        (hfsbi_kube_run *)hfsbi_array(&k->d.alloc, 1, sizeof *run);
    if (!run) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(run, 0, sizeof *run);
    run->alloc = k->d.alloc;
    run->out[0].head.alloc = run->out[0].tail.alloc = run->alloc;
    run->out[1].head.alloc = run->out[1].tail.alloc = run->alloc;
    st = hfsbi_program_start(k->d.tools, spec, hfsbi_request_serial(request),
                             &run->job, &err);
    if (st != HFSB_OK) { /* nothing was started */
        hfsbi_array_free(&k->d.alloc, run, 1, sizeof *run);
        hfsb_reply_error(request, st == HFSB_REFUSED ? 409 : 503, "%s",
                         err.msg[0] ? err.msg : "Out of memory.");
        return;
    }
    run->request = request;
    run->reader.text = true;
    run->reader.on_news = hfsbi_kube_run_read;
    run->reader.user = run;
    hfsb_request_on_gone(request, hfsbi_kube_run_gone, run);
    hfsbi_feed_attach(run->job->feed, &run->reader, 0);
    hfsbi_kube_run_read(run);
}

HFSBI_FN void hfsbi_kube_execute(void *user, hfsb_request *request) {
    hfsbi_kube    *k = (hfsbi_kube *)user;
    hfsb_json_doc  doc;
    hfsb_str       command;
    hfsbi_job_spec spec;
    const char    *why;
    if (!hfsbi_kube_read_command(request, &doc, &command)) {
        hfsb_json_free(&doc);
        return;
    }
    hfsbi_job_spec_init(&spec, &k->d.alloc);
    why = hfsbi_kube_split(command, &spec.raw.argv);
    hfsb_buf_append(&spec.work_dir, hfsb_root_path(k->root));
    hfsbi_kube_set_id(hfsb_request_head(request), &spec);
    spec.timeout = k->timeout;
    if (hfsbi_job_spec_status(&spec) != HFSB_OK)
        hfsb_reply_error(request, 503, "Out of memory.");
    else if (why) hfsbi_kube_reply_failed(request, why);
    else hfsbi_kube_start(k, request, &spec);
    hfsbi_job_spec_free(&spec);
    hfsb_json_free(&doc);
}

/* ---- the environment ---- */

/* True for SANDBOX_* that is not a secret by its name. */
static bool hfsbi_kube_is_shown(hfsb_str name) {
    static const char *const secret[] = {"TOKEN", "SECRET", "PASSWORD",
                                         "CREDENTIAL", "KEY"};
    size_t                   i;
    if (!hfsb_str_starts(name, HFSB_LIT("SANDBOX_"))) return false;
    for (i = 0; i < sizeof secret / sizeof *secret; i++)
        if (hfsb_str_find(name, hfsb_cstr(secret[i])) != HFSB_NPOS)
            return false;
    return true;
}

static void hfsbi_kube_put_env(hfsbi_build *b, const char *entry) {
    hfsb_str name = hfsbi_env_name(entry);
    if (!hfsbi_kube_is_shown(name) || !entry[name.len]) return;
    hfsbi_build_key(b, name);
    hfsbi_build_str(b, NULL, hfsb_cstr(entry + name.len + 1));
}

HFSBI_FN void hfsbi_kube_metadata(void *user, hfsb_request *request) {
    const hfsb_tools *tools = ((const hfsbi_kube *)user)->d.tools;
    hfsbi_job_spec    none;
    hfsbi_build       b;
    const char      **list;
    size_t            i, size;
    hfsbi_job_spec_init(&none, &tools->alloc);
    list = hfsbi_env_merge(tools, &none, &size); /* with those of /init */
    if (!list) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    hfsbi_build_init(&b, &tools->alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_object(&b, "env");
    for (i = 0; list[i]; i++) hfsbi_kube_put_env(&b, list[i]);
    hfsbi_build_end(&b);
    hfsbi_build_end(&b);
    hfsbi_array_free(&tools->alloc, (void *)list, size, sizeof *list);
    hfsbi_dialect_reply(request, 200, &b);
}
