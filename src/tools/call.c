/* call.c - one call of a tool, from its arguments to its result.

   hfsb_call_open() prepares a call: it checks and reads the arguments, and
   joins an earlier call with the same key if there is one. Then it starts the
   tool. The file tools finish at once. Other calls set `wait` and finish in
   hfsb_call_done(), once their event has come; until then a listener follows
   their progress:

       prepare --> WAIT_START --> start --> WAIT_NOTHING --------> done
          |                         |                               ^
          |                         +--> WAIT_SCAN, _JOB, _ENDS, ---+
          |                              _OUTPUT                    |
          +--> WAIT_ONCE: a repeat of a call that has the key ------+

   A call with an idempotency key leaves a record (hfsbi_once) that holds its
   result for repeats, or for bash its job. Results are dropped by bytes,
   records by age and number. A record without a result, and the key of a
   record that was dropped before its time, still refuse a second run. Two
   calls are the same when tool and arguments have the same digest; a key that
   comes with another digest is refused.

   hfsb_tools_call() is open, wait, take and close in one. */
#include "tools_private.h"

enum {
    HFSBI_ONCE_MS = 10 * 60 * 1000,     /* ms that a record is kept */
    HFSBI_ONCE_COUNT = 256,             /* records kept */
    HFSBI_ONCE_BYTES = 8 * 1024 * 1024, /* of all results in records */
    HFSBI_SPENT_COUNT = 65536,          /* keys of a table without records */
    HFSBI_KEY_MAX = 255                 /* bytes of a key */
};

/* ---- idempotency records ---- */

/* Copies *from to the empty result *to. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_result_copy(hfsb_tool_result       *to,
                                     const hfsb_tool_result *from) {
    hfsbi_build fields;
    to->success = from->success;
    to->code = from->code;
    memcpy(to->key, from->key, sizeof to->key);
    hfsb_buf_append(&to->output, hfsb_buf_str(&from->output));
    hfsb_buf_append(&to->error, hfsb_buf_str(&from->error));
    if (to->output.status != HFSB_OK || to->error.status != HFSB_OK)
        return HFSB_NOMEM;
    if (!from->fields.root) return HFSB_OK;
    hfsbi_build_init(&fields, &to->fields.alloc);
    hfsbi_build_value(&fields, NULL, from->fields.root);
    return hfsbi_build_finish(&fields, &to->fields);
}

/* Computes the SHA-256 of tool and arguments. Arguments about the delivery of
   the reply do not count: a repeat may ask for another delivery. */
static hfsb_status hfsbi_call_digest(hfsb_call             *call,
                                     const hfsb_json_value *arguments) {
    hfsb_json_iter it = hfsb_json_begin(arguments);
    hfsb_buf       text = HFSB_INIT;
    hfsb_sha256    sha;
    hfsb_status    st;
    text.alloc = call->tools->alloc;
    hfsb_buf_append(&text, hfsb_cstr(call->tool->name));
    hfsb_buf_append(&text, call->opts.id);
    while (hfsb_json_next(&it)) {
        const hfsbi_param *p = hfsbi_param_find(call->tool->params, it.key);
        if (p && p->flags & HFSBI_DELIVERY) continue;
        hfsbi_json_put_quoted(&text, it.key);
        (void)hfsb_json_write(it.value, NULL, &text, NULL);
    }
    st = text.status;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(&text));
    hfsb_sha256_finish(&sha, call->digest);
    hfsb_buf_free(&text);
    return st;
}

/* The functions on records run under the lock, except hfsbi_once_publish(). */

static void hfsbi_once_free(hfsb_tools *tools, hfsbi_once *once) {
    if (once->job) once->job->once = NULL;
    hfsb_buf_free(&once->key);
    hfsb_tool_result_free(&once->result);
    hfsbi_array_free(&tools->alloc, once, 1, sizeof *once);
}

/* ---- keys without a record ---- */

/* Two tables: keys are added to the newer one, which becomes the older one
   when it is full or as old as a record gets. So a key is kept at least that
   long, or until HFSBI_SPENT_COUNT others are added. */

/* Returns the slot of a key, or the free one where it belongs. */
static hfsbi_spent_key *hfsbi_spent_slot(const hfsbi_spent   *spent,
                                         const unsigned char *key) {
    static const unsigned char free_key[16] = {0};
    hfsbi_spent_key           *slot;
    size_t                     i = 0, n;
    for (n = 0; n < 4; n++) i = i << 8 | key[n];
    do slot = &spent->slots[i++ & (spent->cap - 1)];
    while (memcmp(slot->key, key, sizeof slot->key) != 0 &&
           memcmp(slot->key, free_key, sizeof free_key) != 0);
    return slot;
}

static void hfsbi_spent_free(hfsb_tools *tools, hfsbi_spent *spent) {
    hfsbi_array_free(&tools->alloc, spent->slots, spent->cap,
                     sizeof *spent->slots);
    memset(spent, 0, sizeof *spent);
}

/* Makes room for one more key, at most half full; false without memory. */
static bool hfsbi_spent_grow(hfsb_tools *tools, hfsbi_spent *spent) {
    hfsbi_spent more = *spent;
    size_t      i;
    if (spent->count < spent->cap / 2) return true;
    more.cap = spent->cap ? 2 * spent->cap : 256;
    more.slots = (hfsbi_spent_key *)hfsbi_array(&tools->alloc, more.cap,
                                                sizeof *more.slots);
    if (!more.slots) return false;
    memset(more.slots, 0, more.cap * sizeof *more.slots);
    for (i = 0; i < spent->cap; i++) /* a free slot maps to a free slot */
        *hfsbi_spent_slot(&more, spent->slots[i].key) = spent->slots[i];
    hfsbi_array_free(&tools->alloc, spent->slots, spent->cap,
                     sizeof *spent->slots);
    *spent = more;
    return true;
}

/* The newer table becomes the older one when it is full or old. */
static void hfsbi_spent_turn(hfsb_tools *tools) {
    hfsbi_spent *newer = &tools->spent[0], none = HFSB_INIT;
    if (newer->count == 0 || (newer->count < HFSBI_SPENT_COUNT &&
                              hfsb_clock_ms() - newer->since <= HFSBI_ONCE_MS))
        return;
    hfsbi_spent_free(tools, &tools->spent[1]);
    tools->spent[1] = *newer;
    *newer = none;
}

/* The name of an id ('i') or a key ('k') in the tables. */
static void hfsbi_spent_name(char kind, hfsb_str text,
                             unsigned char name[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make(&kind, 1));
    hfsb_sha256_write(&sha, text);
    hfsb_sha256_finish(&sha, name);
}

/* Adds an id or a key, unless it is empty; false without memory. */
static bool hfsbi_spent_add(hfsb_tools *tools, char kind, hfsb_str text,
                            const unsigned char *digest) {
    hfsbi_spent     *spent = &tools->spent[0];
    hfsbi_spent_key *slot;
    unsigned char    name[HFSB_SHA256_SIZE];
    if (text.len == 0) return true;
    hfsbi_spent_turn(tools);
    if (!hfsbi_spent_grow(tools, spent)) return false;
    if (spent->count++ == 0) spent->since = hfsb_clock_ms();
    hfsbi_spent_name(kind, text, name);
    slot = hfsbi_spent_slot(spent, name);
    memcpy(slot->key, name, sizeof slot->key);
    memcpy(slot->digest, digest, sizeof slot->digest);
    return true;
}

/* Returns the slot of an id or a key, or NULL. */
static const hfsbi_spent_key *hfsbi_spent_find(const hfsb_tools *tools,
                                               char kind, hfsb_str text) {
    unsigned char name[HFSB_SHA256_SIZE];
    size_t        i;
    if (text.len == 0) return NULL;
    hfsbi_spent_name(kind, text, name);
    for (i = 0; i < 2; i++) {
        const hfsbi_spent     *spent = &tools->spent[i];
        const hfsbi_spent_key *slot;
        if (!spent->cap) continue;
        slot = hfsbi_spent_slot(spent, name);
        if (!memcmp(slot->key, name, sizeof slot->key)) return slot;
    }
    return NULL;
}

HFSBI_FN hfsb_status hfsbi_spent_check(const hfsb_tools    *tools,
                                       const unsigned char *digest,
                                       hfsb_str id, hfsb_str key,
                                       hfsb_err *err) {
    const hfsbi_spent_key *slot = hfsbi_spent_find(tools, 'k', key);
    if (!slot) slot = hfsbi_spent_find(tools, 'i', id);
    if (!slot) return HFSB_OK;
    if (memcmp(slot->digest, digest, sizeof slot->digest) != 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This id or key was used for another call; nothing "
                          "was done.");
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "The call with this id or key was made; its result is "
                      "no longer held.");
}

/* Keeps the key of a record that is dropped before its time, and the id of its
   job; false without memory. */
static bool hfsbi_once_spend(hfsb_tools *tools, const hfsbi_once *once) {
    hfsb_str id = HFSB_LIT("");
    if (once->job) id = hfsb_buf_str(&once->job->spec.id);
    return hfsbi_spent_add(tools, 'i', id, once->digest) &&
           hfsbi_spent_add(tools, 'k', hfsb_buf_str(&once->key), once->digest);
}

/* ---- the age of records ---- */

HFSBI_FN void hfsbi_onces_free(hfsb_tools *tools) {
    hfsbi_once *once;
    while ((once = tools->onces) != NULL) {
        tools->onces = once->next;
        hfsbi_once_free(tools, once);
    }
    hfsbi_spent_free(tools, &tools->spent[0]);
    hfsbi_spent_free(tools, &tools->spent[1]);
}

/* The list is newest first. A job keeps its record while it has its result. */
HFSBI_FN void hfsbi_onces_drop_old(hfsb_tools *tools) {
    hfsbi_once **link = &tools->onces, *once;
    long long    now = hfsb_clock_ms();
    size_t       n = 0, bytes = 0;
    hfsbi_spent_turn(tools);
    while ((once = *link) != NULL) {
        bool idle = !once->running && !once->users &&
                    !(once->job && once->job->result_held);
        if (idle &&
            (now - once->when > HFSBI_ONCE_MS ||
             (n >= HFSBI_ONCE_COUNT && hfsbi_once_spend(tools, once)))) {
            *link = once->next;
            hfsbi_once_free(tools, once);
            continue;
        }
        n++;
        bytes += once->key.len + once->result.output.len +
                 once->result.error.len + once->result.fields.size;
        if (bytes > HFSBI_ONCE_BYTES && !once->running && !once->users) {
            hfsb_tool_result_free(&once->result);
            once->dropped = true;
        }
        link = &once->next;
    }
}

HFSBI_FN hfsbi_once *hfsbi_once_add(hfsb_tools *tools, hfsb_str key,
                                    const unsigned char *digest) {
    hfsbi_once *once =
        (hfsbi_once *)hfsbi_array(&tools->alloc, 1, sizeof *once);
    if (!once) return NULL;
    memset(once, 0, sizeof *once);
    once->key.alloc = tools->alloc;
    hfsbi_result_init(&once->result, &tools->alloc);
    if (hfsb_buf_append(&once->key, key) != HFSB_OK) {
        hfsbi_once_free(tools, once);
        return NULL;
    }
    memcpy(once->digest, digest, sizeof once->digest);
    once->running = true;
    once->next = tools->onces;
    tools->onces = once;
    return once;
}

HFSBI_FN hfsbi_once *hfsbi_once_find(hfsb_tools *tools, hfsb_str key) {
    hfsbi_once *once = tools->onces;
    while (once && !hfsb_str_equal(hfsb_buf_str(&once->key), key))
        once = once->next;
    return once;
}

/* The call waits for that event. Under the lock. */
HFSBI_FN void hfsbi_call_wait(hfsb_call *call, hfsbi_wait wait) {
    call->wait = wait;
    call->next_waiting = call->tools->waiting;
    call->tools->waiting = call;
}

/* Joins the first call with this key, or makes this call the first. HFSB_OK,
   HFSB_NOMEM, or HFSB_REFUSED with *err. */
static hfsb_status hfsbi_once_join(hfsb_call *call, hfsb_err *err) {
    hfsb_tools *tools = call->tools;
    hfsbi_once *once;
    hfsbi_onces_drop_old(tools);
    once = hfsbi_once_find(tools, call->opts.key);
    if (!once) {
        hfsb_status st = hfsbi_spent_check(tools, call->digest, HFSB_LIT(""),
                                           call->opts.key, err);
        if (st != HFSB_OK) return st;
        call->once = hfsbi_once_add(tools, call->opts.key, call->digest);
        return call->once ? HFSB_OK : HFSB_NOMEM;
    }
    if (memcmp(once->digest, call->digest, HFSB_SHA256_SIZE) != 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This key was used for another call; nothing was "
                          "done.");
    if (once->dropped)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The call with this key was made; its result is no "
                          "longer held.");
    once->users++;
    call->once = once;
    hfsbi_call_wait(call, HFSBI_WAIT_ONCE);
    return HFSB_OK;
}

/* Copies the result of the first call to its record. Takes the lock. */
static void hfsbi_once_publish(hfsb_call *call) {
    hfsbi_once *once = call->once;
    hfsbi_loop_lock(call->tools->loop);
    once->running = false;
    once->when = hfsb_clock_ms();
    once->status = call->status;
    if (hfsbi_result_copy(&once->result, &call->result) != HFSB_OK) {
        hfsb_tool_result_free(&once->result);
        once->dropped = true;
    }
    call->once = NULL;
    hfsbi_tools_stir(call->tools);
    hfsbi_loop_unlock(call->tools->loop);
}

/* ---- a call ---- */

/* Computes the digest when the call has an id or a key, and joins an earlier
   call with the same key. */
static hfsb_status hfsbi_call_find_first(hfsb_call             *call,
                                         const hfsb_json_value *arguments,
                                         hfsb_err              *err) {
    hfsb_status st = HFSB_OK;
    if (call->opts.key.len > HFSBI_KEY_MAX)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The key of a call must have at most %d bytes.",
                          HFSBI_KEY_MAX);
    if (call->opts.key.len || call->opts.id.ptr ||
        hfsb_json_get(arguments, "id"))
        st = hfsbi_call_digest(call, arguments);
    if (st != HFSB_OK || !call->opts.key.len ||
        !(call->tool->flags & HFSBI_TOOL_ONCE))
        return st;
    hfsbi_loop_lock(call->tools->loop);
    st = hfsbi_once_join(call, err);
    hfsbi_loop_unlock(call->tools->loop);
    return st;
}

typedef hfsb_status (*hfsbi_tool_fn)(hfsb_call *call, const void *args,
                                     hfsb_err *err);

/* The functions of a tool, which are named only here. */
typedef struct hfsbi_tool_code {
    hfsbi_tool_fn run, prepare;
} hfsbi_tool_code;

static const hfsbi_tool_code hfsbi_tool_codes[HFSBI_TOOLS] = {
#define HFSBI_X(name, prepare) {hfsbi_run_##name, prepare},
    HFSBI_TOOL_LIST(HFSBI_X)
#undef HFSBI_X
};

/* tool is one of the list. */
static const hfsbi_tool_code *hfsbi_tool_code_of(const hfsbi_tool *tool) {
    size_t i = 0;
    while (hfsbi_tool_at(i) != tool) i++;
    return &hfsbi_tool_codes[i];
}

/* Checks and reads the arguments. A repeat is recognised before the values are
   read: a key that belongs to another call is refused even if the arguments
   are invalid too. */
static hfsb_status hfsbi_call_read(hfsb_call             *call,
                                   const hfsb_json_value *arguments,
                                   hfsb_err              *err) {
    const hfsbi_param *params = call->tool->params;
    hfsbi_tool_fn      prepare = hfsbi_tool_code_of(call->tool)->prepare;
    hfsbi_args_how     how = HFSB_INIT;
    hfsb_status        st;
    how.strict = call->opts.strict;
    how.notes = &call->notes;
    how.id = call->opts.id;
    how.parsed = &call->parsed;
    how.parsed_count = 1;
    how.number = &call->number;
    how.names = call->opts.names;
    st = hfsbi_args_check(params, arguments, &how, err);
    if (st == HFSB_OK) st = hfsbi_call_find_first(call, arguments, err);
    if (st != HFSB_OK || call->wait != HFSBI_WAIT_NOTHING) return st;
    st = hfsbi_args_fill(params, arguments, &how, &call->args, err);
    if (st == HFSB_OK && prepare) st = prepare(call, &call->args, err);
    if (st == HFSB_OK) call->wait = HFSBI_WAIT_START;
    return st;
}

/* Moves the fields that the tool added into the result. */
static hfsb_status hfsbi_call_take_fields(hfsb_call *call) {
    hfsb_status st;
    hfsbi_build_end(&call->fields);
    st = hfsbi_build_finish(&call->fields, &call->result.fields);
    if (st == HFSB_OK && hfsb_json_count(call->result.fields.root) == 0)
        hfsb_json_free(&call->result.fields);
    return st;
}

/* Returns the file that a file tool is called for, or an empty text. Valid
   until its function has returned and the result is complete. */
static hfsb_str hfsbi_call_path(const hfsb_call *call) {
    const hfsb_str     none = HFSB_LIT("");
    const hfsbi_param *p = NULL;
    if (call->tool->flags & HFSBI_TOOL_ON_DISK)
        p = hfsbi_param_find(call->tool->params, HFSB_LIT("path"));
    return p ? *(const hfsb_str *)(const void *)(call->args.bytes + p->field)
             : none;
}

/* Adds the event of the call to the journal. A job has events of its own. */
static void hfsbi_call_report(const hfsb_call *call, bool repeat) {
    hfsb_journal *journal = call->tools->journal;
    hfsbi_event   e = HFSB_INIT;
    if (!journal || !call->tool || call->added) return;
    e.who = call->spec.who ? call->spec.who : call->tools->who;
    e.tool = call->tool->name;
    e.brief = &call->brief;
    e.result = &call->result;
    e.job_id = call->job_id;
    e.repeat = repeat;
    e.duration_ms = hfsb_clock_ms() - call->began;
    e.output_bytes = call->result.output.len;
    (void)hfsbi_journal_add(journal, &e);
}

/* Adds how many lines at the end of the output are notes, for programs that
   show them elsewhere. */
static void hfsbi_call_count_notes(hfsb_call *call, hfsb_str notes) {
    size_t i, lines = call->note_lines;
    if (notes.len && notes.ptr[0] != '\n') lines++;
    for (i = 0; i < notes.len; i++) lines += notes.ptr[i] == '\n';
    if (lines) hfsbi_build_int(&call->fields, "note_lines", (long long)lines);
}

/* Completes the result with notes, fields and status. Notes follow the output,
   or go into a field where the output must stay exact. */
static void hfsbi_call_end(hfsb_call *call, hfsb_status st,
                           const hfsb_err *err) {
    bool repeat =
        call->wait == HFSBI_WAIT_ONCE || call->wait == HFSBI_WAIT_JOB;
    hfsb_str notes;
    call->wait = HFSBI_WAIT_NOTHING;
    if (st == HFSB_OK && call->tools->checker)
        hfsbi_python_late(call->tools->checker, hfsbi_call_path(call),
                          &call->notes);
    if (st == HFSB_OK && call->tools->history &&
        call->tool->kind != HFSBI_TOOL_READS)
        hfsbi_history_note(call->tools->history, &call->notes);
    notes = hfsb_buf_str(&call->notes);
    if (st == HFSB_OK && call->notes_counted && call->result.success)
        hfsbi_call_count_notes(call, notes);
    if (st == HFSB_OK && notes.len && call->notes_apart)
        hfsbi_build_str(&call->fields, "notes",
                        hfsb_str_slice(notes, 1, notes.len));
    else if (st == HFSB_OK && notes.len)
        st = hfsb_buf_append(&call->result.output, notes);
    if (st == HFSB_OK && !call->result.fields.root)
        st = hfsbi_call_take_fields(call);
    call->status = st;
    if (st != HFSB_OK) hfsbi_result_status(&call->result, st, err);
    hfsbi_call_report(call, repeat);
}

HFSBI_FN hfsb_status hfsbi_tool_unknown(hfsb_str name, hfsb_err *err) {
    hfsbi_fail(err, HFSB_NOT_FOUND, 0, "Unknown tool: ");
    hfsbi_err_quote(err, name, 80);
    return HFSB_NOT_FOUND;
}

/* Ends the call unless it waits. */
static void hfsbi_call_settle(hfsb_call *call, hfsb_status st,
                              const hfsb_err *err) {
    if (st == HFSB_OK && call->wait != HFSBI_WAIT_NOTHING) return;
    hfsbi_call_end(call, st, err);
    if (call->once) hfsbi_once_publish(call);
}

static void hfsbi_call_look_again(hfsbi_timer *timer) {
    hfsb_call *call = (hfsb_call *)(void *)((char *)timer -
                                            offsetof(hfsb_call, output.timer));
    hfsbi_tools_stir(call->tools);
}

/* Returns an empty call, or NULL without memory. */
static hfsb_call *hfsbi_call_new(hfsb_tools           *tools,
                                 const hfsb_call_opts *opts) {
    hfsb_call *call = (hfsb_call *)hfsbi_array(&tools->alloc, 1, sizeof *call);
    if (!call) return NULL;
    memset(call, 0, sizeof *call);
    call->tools = tools;
    call->output.timer.fn = hfsbi_call_look_again;
    call->notes.alloc = call->parsed.alloc = tools->alloc;
    call->brief.text.alloc = tools->alloc;
    call->began = hfsb_clock_ms();
    call->number.alloc = tools->alloc;
    hfsbi_job_spec_init(&call->spec, &tools->alloc);
    hfsbi_result_init(&call->result, &tools->alloc);
    hfsbi_build_init(&call->fields, &tools->alloc);
    hfsbi_build_object(&call->fields, NULL);
    if (opts) call->opts = *opts;
    if (!call->opts.id.ptr) call->opts.id.len = 0;
    if (!call->opts.key.ptr) call->opts.key.len = 0;
    return call;
}

HFSBI_FN hfsb_status hfsbi_call_prepare(hfsb_tools            *tools,
                                        const hfsbi_tool      *tool,
                                        const hfsb_json_value *arguments,
                                        const hfsb_call_opts  *opts,
                                        hfsb_call            **out) {
    hfsb_call  *call = hfsbi_call_new(tools, opts);
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    *out = call;
    if (!call) return HFSB_NOMEM;
    call->tool = tool;
    hfsbi_brief_fill(tools->journal, &call->brief, tool->params, arguments,
                     call->opts.id);
    st = hfsbi_call_read(call, arguments, &err);
    hfsbi_call_settle(call, st, &err);
    return HFSB_OK;
}

HFSBI_FN void hfsbi_call_own(hfsb_call *call, unsigned long long owner) {
    call->owner = owner;
}

HFSBI_FN void hfsbi_call_name(hfsb_call *call, const char *who) {
    call->spec.who = who;
}

HFSBI_FN void hfsbi_call_on_text(hfsb_call *call, hfsb_tools_text_fn on_text,
                                 hfsb_tools_text_fn on_line) {
    call->opts.on_text = on_text;
    call->opts.on_line = on_line;
}

/* True for a tool that changes files while it runs. */
static bool hfsbi_call_changes(const hfsb_call *call) {
    return call->tools->history && call->tool->flags & HFSBI_TOOL_ON_DISK &&
           !(call->tool->flags & HFSBI_TOOL_HISTORY) &&
           call->tool->kind != HFSBI_TOOL_READS;
}

/* Tells the history about the change that was made; a checkpoint follows. */
static void hfsbi_call_changed(hfsb_call *call) {
    const hfsbi_param *p = call->tool->params;
    hfsb_str           path = HFSB_INIT;
    if (strcmp(p->name, "path") == 0)
        memcpy(&path, call->args.bytes + p->field, sizeof path);
    hfsbi_history_changed(call->tools->history, call->tool->name, path);
    hfsbi_history_busy(call->tools->history, false);
    hfsbi_history_after_in(call->tools->history,
                           call->tools->own_loop ? NULL : call->tools->loop);
}

HFSBI_FN void hfsbi_call_start(hfsb_call *call) {
    hfsb_err    err = HFSB_INIT;
    bool        changes;
    hfsb_status st;
    if (call->wait != HFSBI_WAIT_START) return;
    call->wait = HFSBI_WAIT_NOTHING;
    if (call->tools->checker &&
        hfsbi_checker_expects(call->tools->checker, hfsbi_call_path(call)))
        hfsbi_tools_outside(call->tools, hfsbi_python_expect,
                            call->tools->checker);
    changes = hfsbi_call_changes(call);
    if (changes) {
        hfsbi_history_before(call->tools->history);
        hfsbi_history_busy(call->tools->history, true);
    }
    st = hfsbi_tool_code_of(call->tool)->run(call, &call->args, &err);
    hfsbi_change_unlock(call);
    if (changes) hfsbi_call_changed(call);
    hfsb_json_free(&call->parsed);
    hfsbi_call_settle(call, st, &err);
}

hfsb_status hfsb_call_open(hfsb_tools *tools, hfsb_str name,
                           const hfsb_json_value *arguments,
                           const hfsb_call_opts *opts, hfsb_call **out) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    hfsb_err          err = HFSB_INIT;
    if (tool) {
        if (hfsbi_call_prepare(tools, tool, arguments, opts, out) != HFSB_OK)
            return HFSB_NOMEM;
        hfsbi_call_start(*out);
        return HFSB_OK;
    }
    *out = hfsbi_call_new(tools, opts);
    if (!*out) return HFSB_NOMEM;
    hfsbi_tools_list(NULL, 0, &(*out)->result.output);
    hfsbi_call_settle(*out, hfsbi_tool_unknown(name, &err), &err);
    return HFSB_OK;
}

/* True when the event that the call waits for has come. Under the lock. */
static bool hfsbi_call_ready(hfsb_call *call) {
    size_t i;
    switch (call->wait) {
    case HFSBI_WAIT_NOTHING: return true;
    case HFSBI_WAIT_START: return false;
    case HFSBI_WAIT_JOB: return call->job->state == HFSBI_JOB_DONE;
    case HFSBI_WAIT_SCAN: return !call->job->scan;
    case HFSBI_WAIT_ENDS:
        for (i = 0; i < call->killed.count; i++)
            if (call->killed.list[i]->state != HFSBI_JOB_DONE) return false;
        return true;
    case HFSBI_WAIT_OUTPUT: return hfsbi_output_ready(call);
    case HFSBI_WAIT_ONCE: return !call->once->running;
    }
    return true;
}

/* Removes the call from the list of waiting calls. Under the lock. */
static void hfsbi_call_unlink(hfsb_call *call) {
    hfsb_call **link = &call->tools->waiting;
    hfsbi_loop_timer_clear(call->tools->loop, &call->output.timer);
    while (*link && *link != call) link = &(*link)->next_waiting;
    if (*link) *link = call->next_waiting;
}

/* Takes the result of the job: a copy if repeats may ask for it again. Under
   the lock. */
static hfsb_status hfsbi_call_take_result(hfsb_call *call) {
    hfsbi_job *job = call->job;
    if (job->once || !job->result_held)
        return hfsbi_result_copy(&call->result, &job->result);
    hfsb_tool_result_free(&call->result);
    call->result = job->result;
    hfsbi_result_init(&job->result, &call->tools->alloc);
    job->result_held = false;
    return HFSB_OK;
}

/* Writes the result after the event has come. Under the lock. */
static void hfsbi_call_finish(hfsb_call *call) {
    hfsb_status st = HFSB_OK;
    switch (call->wait) {
    case HFSBI_WAIT_NOTHING:
    case HFSBI_WAIT_START: return;
    case HFSBI_WAIT_JOB:
        st = hfsbi_call_take_result(call);
        if (st == HFSB_OK) st = call->job->status;
        break;
    case HFSBI_WAIT_SCAN:
        hfsbi_call_unlink(call);
        call->wait = HFSBI_WAIT_NOTHING;
        st = hfsbi_bash_reply_background(call);
        if (call->wait != HFSBI_WAIT_NOTHING) { /* it could not start */
            hfsbi_call_finish(call);
            return;
        }
        break;
    case HFSBI_WAIT_ENDS: st = hfsbi_kill_result(call); break;
    case HFSBI_WAIT_OUTPUT: st = hfsbi_output_result(call); break;
    case HFSBI_WAIT_ONCE:
        st = call->once->dropped
                 ? HFSB_NOMEM
                 : hfsbi_result_copy(&call->result, &call->once->result);
        hfsb_buf_truncate(&call->notes, 0); /* the copy contains them */
        if (st == HFSB_OK) st = call->once->status;
        break;
    }
    hfsbi_call_unlink(call);
    hfsbi_call_end(call, st, NULL);
}

HFSBI_FN void hfsbi_call_listen(hfsb_call *call, void (*fn)(void *user),
                                void      *user) {
    call->listener.fn = fn;
    call->listener.user = user;
}

HFSBI_FN void hfsbi_call_hurry(hfsb_call *call) {
    hfsbi_loop_lock(call->tools->loop);
    call->output.until = hfsb_clock_ms();
    hfsbi_tools_stir(call->tools);
    hfsbi_loop_unlock(call->tools->loop);
}

/* Returns a call whose listener must be called, or NULL. A call of bash_output
   that keeps waiting is checked again at its deadline. */
static hfsb_call *hfsbi_calls_news(hfsb_tools *tools) {
    hfsb_call *call = tools->waiting;
    for (; call; call = call->next_waiting) {
        bool ready = hfsbi_call_ready(call);
        if (!ready && call->wait == HFSBI_WAIT_OUTPUT)
            hfsbi_loop_timer(tools->loop, &call->output.timer,
                             hfsbi_output_at(call));
        if (!call->listener.fn || call->listener.notified ||
            (!ready && !call->listener.heard))
            continue;
        call->listener.notified = ready;
        call->listener.heard = false;
        return call;
    }
    return NULL;
}

/* Starts again after each call: a listener may close any of them. */
HFSBI_FN void hfsbi_calls_notify(hfsb_tools *tools) {
    hfsb_call *call;
    while ((call = hfsbi_calls_news(tools)) != NULL)
        call->listener.fn(call->listener.user);
}

/* A call that is complete or prepared needs no lock: only its owner uses
   it. */
bool hfsb_call_done(hfsb_call *call) {
    bool done;
    if (call->wait == HFSBI_WAIT_NOTHING) return true;
    if (call->wait == HFSBI_WAIT_START) return false;
    hfsbi_loop_lock(call->tools->loop);
    done = hfsbi_call_ready(call);
    if (done) hfsbi_call_finish(call);
    hfsbi_loop_unlock(call->tools->loop);
    return done;
}

hfsb_status hfsb_call_take(hfsb_call *call, hfsb_tool_result *result) {
    memset(result, 0, sizeof *result);
    if (call->taken || !hfsb_call_done(call)) return HFSB_REFUSED;
    call->taken = true;
    *result = call->result;
    memset(&call->result, 0, sizeof call->result);
    return call->status;
}

const char *hfsb_call_job(const hfsb_call *call) {
    return call->job_id;
}

void hfsb_call_close(hfsb_call *call) {
    hfsb_tools *tools;
    size_t      i;
    if (!call) return;
    tools = call->tools;
    if (call->wait == HFSBI_WAIT_START) /* repeats must not wait for it */
        hfsbi_call_settle(call, HFSB_CANCELLED, NULL);
    if (call->wait != HFSBI_WAIT_NOTHING) hfsbi_call_report(call, false);
    hfsbi_loop_lock(tools->loop);
    hfsbi_call_unlink(call);
    if (call->job) {
        call->job->users--;
        if (call->streams)
            call->job->record.on_text = call->job->record.on_line = NULL;
    }
    for (i = 0; i < call->killed.count; i++) call->killed.list[i]->users--;
    if (call->once) call->once->users--;
    if (call->job || call->killed.list) hfsbi_jobs_drop_old(tools);
    hfsbi_loop_unlock(tools->loop);
    hfsbi_array_free(&tools->alloc, call->killed.list, call->killed.cap,
                     sizeof(hfsbi_job *));
    hfsb_json_free(&call->parsed);
    hfsb_buf_free(&call->number);
    hfsbi_job_spec_free(&call->spec);
    hfsb_buf_free(&call->notes);
    hfsb_buf_free(&call->brief.text);
    hfsbi_build_free(&call->fields);
    hfsb_tool_result_free(&call->result);
    hfsbi_array_free(&tools->alloc, call, 1, sizeof *call);
}

/* ---- waiting for a call, or until it is cancelled ---- */

/* Polling interval of a cancel for which no descriptor could be made. */
enum { HFSBI_CANCEL_LOOK_MS = 50 };

static void hfsbi_cancel_ready(hfsbi_io *io, unsigned events) {
    hfsb_call *call =
        (hfsb_call *)(void *)((char *)io - offsetof(hfsb_call, cancelled));
    (void)events;
    hfsbi_loop_io_forget(call->tools->loop, io); /* it stays readable */
}

/* Makes the loop wait for the cancel too. Calls may share a cancel, but a loop
   accepts a descriptor only once: each call gets its own. False if there is
   none. Under the lock. */
static bool hfsbi_cancel_attach(hfsb_call *call) {
    int fd = hfsb_cancel_fd(call->opts.cancel);
    call->cancelled.fn = hfsbi_cancel_ready;
    call->cancelled.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return call->cancelled.fd >= 0 &&
           hfsbi_loop_io(call->tools->loop, &call->cancelled, HFSBI_IO_READ);
}

static void hfsbi_cancel_detach(hfsb_call *call) {
    hfsbi_loop_io_forget(call->tools->loop, &call->cancelled);
    hfsbi_close(&call->cancelled.fd);
}

/* Ends the wait of a call that was cancelled: at once, or for bash once its
   command, which is killed, has ended. Under the lock. */
static void hfsbi_call_stop(hfsb_call *call) {
    if (call->wait == HFSBI_WAIT_JOB) {
        (void)hfsbi_job_kill(call->tools, call->job);
    } else if (call->wait == HFSBI_WAIT_OUTPUT) {
        call->output.until = hfsb_clock_ms();
    } else {
        hfsbi_call_unlink(call);
        hfsbi_call_end(call, HFSB_CANCELLED, NULL);
    }
}

/* Waits until the result is complete. True when the call was cancelled. */
static bool hfsbi_call_block(hfsb_call *call) {
    bool      stopped = false;
    long long ms = -1;
    hfsbi_loop_lock(call->tools->loop);
    if (!hfsbi_call_ready(call) && call->opts.cancel &&
        !hfsbi_cancel_attach(call))
        ms = HFSBI_CANCEL_LOOK_MS;
    while (!hfsbi_call_ready(call)) {
        if (!stopped && hfsb_cancel_is_set(call->opts.cancel)) {
            stopped = true;
            hfsbi_call_stop(call);
        } else {
            hfsbi_tools_turn(call->tools, stopped ? -1 : ms);
        }
    }
    if (call->cancelled.fn) hfsbi_cancel_detach(call);
    hfsbi_loop_unlock(call->tools->loop);
    return stopped;
}

/* Keeps the output of a result, and replaces its error. */
static hfsb_status hfsbi_result_cancelled(hfsb_tool_result *result) {
    hfsb_buf_truncate(&result->error, 0);
    hfsbi_result_status(result, HFSB_CANCELLED, NULL);
    return HFSB_CANCELLED;
}

hfsb_status hfsb_tools_call(hfsb_tools *tools, hfsb_str name,
                            const hfsb_json_value *arguments,
                            const hfsb_call_opts  *opts,
                            hfsb_tool_result      *result) {
    hfsb_call  *call;
    hfsb_status st;
    bool        stopped;
    hfsbi_result_init(result, &tools->alloc);
    if (opts && hfsb_cancel_is_set(opts->cancel))
        return hfsbi_result_cancelled(result);
    if (hfsb_call_open(tools, name, arguments, opts, &call) != HFSB_OK)
        return HFSB_NOMEM;
    stopped = hfsbi_call_block(call);
    st = hfsb_call_take(call, result);
    hfsb_call_close(call);
    return stopped && st == HFSB_OK ? hfsbi_result_cancelled(result) : st;
}

enum { HFSBI_RUN_PARSED = 8 }; /* objects and lists among the parameters */

HFSBI_FN hfsb_status hfsbi_tool_run(const hfsbi_param     *params,
                                    const hfsb_json_value *arguments,
                                    bool strict, hfsbi_run_fn fn, void *user,
                                    hfsb_tool_result *result) {
    const hfsb_alloc alloc = result->output.alloc;
    hfsb_json_doc    parsed[HFSBI_RUN_PARSED];
    hfsb_buf         notes = HFSB_INIT, number = HFSB_INIT;
    hfsbi_args_how   how = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsbi_args       args;
    hfsb_status      st;
    size_t           i;
    memset(&args, 0, sizeof args);
    memset(parsed, 0, sizeof parsed);
    for (i = 0; i < HFSBI_RUN_PARSED; i++) parsed[i].alloc = alloc;
    notes.alloc = number.alloc = alloc;
    how.strict = strict;
    how.notes = &notes;
    how.number = &number;
    how.parsed = parsed;
    how.parsed_count = HFSBI_RUN_PARSED;
    st = hfsbi_args_read(params, arguments, &how, &args, &err);
    if (st == HFSB_OK) st = fn(user, &args, result, &err);
    if (st == HFSB_OK)
        st = hfsb_buf_append(&result->output, hfsb_buf_str(&notes));
    if (st != HFSB_OK) hfsbi_result_status(result, st, &err);
    for (i = 0; i < HFSBI_RUN_PARSED; i++) hfsb_json_free(&parsed[i]);
    hfsb_buf_free(&notes);
    hfsb_buf_free(&number);
    return st;
}

HFSBI_FN hfsb_status hfsbi_arguments_parse(hfsb_str          text,
                                           const hfsb_alloc *alloc,
                                           hfsb_json_doc    *doc,
                                           hfsb_tool_result *result) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_err             err = HFSB_INIT;
    hfsb_status          st;
    hfsbi_result_init(result, alloc);
    doc->alloc = *alloc;
    how.unique_keys = true;
    st = hfsb_json_parse(text, &how, doc, &err);
    if (st == HFSB_OK) return st;
    if (st != HFSB_NOMEM)
        hfsbi_err_add(&err,
                      " (in the arguments, which must be a JSON object)");
    hfsbi_result_status(result, st, &err);
    return st == HFSB_NOMEM ? st : HFSB_ARG;
}

hfsb_status hfsb_tools_call_text(hfsb_tools *tools, hfsb_str name,
                                 hfsb_str              arguments,
                                 const hfsb_call_opts *opts,
                                 hfsb_tool_result     *result) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st =
        hfsbi_arguments_parse(arguments, &tools->alloc, &doc, result);
    if (st != HFSB_OK) return st;
    st = hfsb_tools_call(tools, name, doc.root, opts, result);
    hfsb_json_free(&doc);
    return st;
}
