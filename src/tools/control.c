/* control.c - the tools for jobs: bash_output, bash_input, kill.

   bash_output reads the log of a job from an offset. It waits for more output,
   for the end, or for a prompt: an unfinished line that has not been shown yet
   and has not changed for HFSBI_PROMPT_MS. An unfinished line that keeps
   changing is a progress bar.

   A model pays for each answer, so it gets pages (hfsb_call_opts.page). Its
   wait ends only with

       a page of new output, or the end of the job
       a question: a prompt that ends like one; "Compiling x ..." does not
       a pause of HFSBI_PAUSE_MS after new output, if the caller named no time,
       and after input

   and an answer without an offset continues where the last one ended. Of
   output that is much longer than a page only the head and the tail are shown.

   kill asks jobs to end and waits until they have; the grace between TERM and
   KILL applies. Processes that a finished job left running get KILL at once
   when the job is named: a confined command cannot end those of another one.
   bash_input waits only when it answers by pages. */
#include "tools_private.h"

enum {
    HFSBI_KILL_PASSES = 4,     /* over what a finished job left running */
    HFSBI_OUTPUT_MAX = 100000, /* bytes that bash_output shows at once */
    HFSBI_PROMPT_MS = 300,     /* an unfinished line unchanged is a prompt */
    HFSBI_PAUSE_MS = 500,      /* silence that ends an answer */
    HFSBI_LISTEN_MS = 5000,  /* for an answer, if the caller gives no time */
    HFSBI_PAGE_MAX = 100000, /* bytes */
    HFSBI_PENDING = 200,     /* bytes of an unfinished line that always fit */
    HFSBI_STDERR_END = 300,  /* bytes of stderr that a page adds */
    HFSBI_JOBS_NAMED = 8,    /* that "No such job" names */
    HFSBI_JOBS_LISTED = 50   /* that bash_output lists */
};

/* ---- names of jobs ---- */

/* Appends the state of a job: "running", "exit code 3", "killed by SIGINT". */
static void hfsbi_put_state(hfsb_buf *out, const hfsbi_job *job) {
    const char *name = hfsbi_signal_name(job->end.signal);
    if (job->state == HFSBI_JOB_WAITING)
        hfsb_buf_append(out, HFSB_LIT("waiting"));
    else if (job->state == HFSBI_JOB_RUNNING)
        hfsb_buf_append(out, HFSB_LIT("running"));
    else if (job->end.timed_out) hfsb_buf_append(out, HFSB_LIT("timed out"));
    else if (job->end.end == HFSB_PROC_EXITED)
        hfsb_buf_printf(out, "exit code %d", job->end.exit_code);
    else if (job->end.end == HFSB_PROC_SIGNALED && *name)
        hfsb_buf_printf(out, "killed by %s", name);
    else if (job->end.end == HFSB_PROC_SIGNALED)
        hfsb_buf_printf(out, "killed by signal %d", job->end.signal);
    else hfsb_buf_append(out, HFSB_LIT("ended"));
}

/* Fails with "No such job: {id}" and the names of the newest jobs. HFSB_OK or
   HFSB_NOMEM. Under the lock. */
static hfsb_status hfsbi_job_unknown(hfsb_tools *tools, hfsb_str id,
                                     hfsb_tool_result *result, hfsb_err *err) {
    const hfsbi_job *job = hfsbi_jobs_first(tools);
    hfsb_buf        *out = &result->error;
    size_t           n;
    hfsbi_fail(err, HFSB_NOT_FOUND, 0, "No such job: ");
    hfsbi_err_quote(err, id, 80);
    if (hfsbi_result_err(result, err) != HFSB_OK) return HFSB_NOMEM;
    hfsb_buf_append(out,
                    hfsb_cstr(job ? ". There are: " : ". There are none"));
    for (n = 0; job && n < HFSBI_JOBS_NAMED;
         n++, job = hfsbi_jobs_next(tools, job)) {
        if (n) hfsb_buf_append(out, HFSB_LIT(", "));
        hfsbi_put_shown(out, hfsb_cstr(job->id));
        hfsb_buf_append(out, HFSB_LIT(" ("));
        hfsbi_put_state(out, job);
        hfsb_buf_append_byte(out, ')');
    }
    hfsb_buf_append(out, job ? HFSB_LIT(" ...") : HFSB_LIT("."));
    return hfsb_buf_finish(out, 0);
}

/* Lists the jobs, the newest first, a line for each. Under the lock. */
static hfsb_status hfsbi_jobs_result(hfsb_call *call) {
    const hfsbi_job *job = hfsbi_jobs_first(call->tools);
    hfsb_buf        *out = &call->result.output;
    long long        now = hfsb_clock_ms();
    size_t           n = 0;
    call->result.success = true;
    if (!job) hfsb_buf_append(out, HFSB_LIT("There are no jobs."));
    for (; job && n < HFSBI_JOBS_LISTED;
         n++, job = hfsbi_jobs_next(call->tools, job)) {
        hfsb_str what =
            hfsb_buf_str(job->spec.description.len ? &job->spec.description
                                                   : &job->spec.command);
        long long end = job->state == HFSBI_JOB_DONE ? job->ended : now;
        hfsbi_put_shown(out, hfsb_cstr(job->id));
        hfsb_buf_append(out, HFSB_LIT(": "));
        hfsbi_put_state(out, job);
        hfsb_buf_printf(out, ", %lld s: ", (end - job->created) / 1000);
        hfsbi_put_shown(out,
                        hfsb_str_slice(what, 0, hfsb_utf8_offset(what, 100)));
        hfsb_buf_append_byte(out, '\n');
    }
    if (job) hfsb_buf_append(out, HFSB_LIT("(and older ones)\n"));
    return hfsb_buf_finish(out, 0);
}

/* ---- bash_output: what it shows ---- */

/* The part of a log that an answer shows: bytes [from, next). Those from
   gone_from to gone_to are no longer held. */
typedef struct hfsbi_page {
    unsigned long long from, next, gone_from, gone_to;
} hfsbi_page;

/* Shortens the unfinished line at the end of *out, which starts at `at`, to
   its last `room` bytes: a question ends it, and a later page shows it whole.
   */
static void hfsbi_page_cut_pending(hfsb_buf *out, size_t at, size_t room) {
    hfsb_str all = hfsb_buf_str(out);
    size_t   from;
    if (room < HFSBI_PENDING) room = HFSBI_PENDING;
    if (all.len - at <= room) return;
    from = hfsbi_utf8_ceil(all, all.len - room + 3);
    memcpy(out->ptr + at, "...", 3);
    memmove(out->ptr + at + 3, out->ptr + from, all.len - from);
    hfsb_buf_truncate(out, at + 3 + all.len - from);
}

/* Appends at most max bytes of the log from `from` on to *out, and as much of
   an unfinished line as fits. HFSB_OK or the failure of the buffer. */
static hfsb_status hfsbi_page_read(const hfsbi_record *r,
                                   unsigned long long from, size_t max,
                                   hfsb_buf *out, hfsbi_page *p) {
    size_t      mark = out->len, log;
    hfsb_status st = hfsbi_record_read(r, from, max, out, &p->next,
                                       &p->gone_from, &p->gone_to);
    p->from = p->gone_from != p->gone_to ? p->gone_to : from;
    if (p->from > p->next) p->from = p->next;
    if (st != HFSB_OK) return st;
    log = (size_t)(p->next - p->from);
    hfsbi_page_cut_pending(out, mark + log, max - log);
    return st;
}

/* Cuts a text of the page to whole lines, at most `lines` of them. The last
   line of a log need not be whole. */
static void hfsbi_page_cut(const hfsbi_record *r, size_t lines, hfsb_buf *text,
                           hfsbi_page *p) {
    size_t end = 0, n, at;
    for (n = 0; n < lines; n++) {
        at = hfsb_str_find_byte(
            hfsb_str_slice(hfsb_buf_str(text), end, text->len), '\n');
        if (at == HFSB_NPOS) break;
        end += at + 1;
    }
    if (n < lines && (p->next == r->total || end == 0)) return;
    if (end == text->len) return;
    hfsb_buf_truncate(text, end);
    p->next = p->from + end;
}

/* Returns where the last lines of a text start, at most `lines` of them. Its
   first line may be a part of one, and does not count unless it is the only
   one. */
static size_t hfsbi_page_last_lines(hfsb_str text, size_t lines) {
    size_t have = hfsb_str_count_byte(text, '\n'), at = 0, end;
    for (;; at += end + 1, have--) {
        end = hfsb_str_find_byte(hfsb_str_slice(text, at, text.len), '\n');
        if (end == HFSB_NPOS || at + end + 1 == text.len) return at;
        if (at > 0 && have <= lines) return at;
    }
}

/* Appends the end of a log, about max bytes in whole lines, but nothing before
   p->next. p->from becomes its start. */
static hfsb_status hfsbi_page_tail(const hfsbi_record *r, size_t max,
                                   hfsb_buf *out, hfsbi_page *p) {
    unsigned long long start = r->total - max;
    hfsb_buf           tail = HFSB_INIT;
    hfsb_str           text;
    size_t             at;
    hfsb_status        st;
    tail.alloc = out->alloc;
    if (start < p->next) start = p->next;
    st = hfsbi_page_read(r, start, max, &tail, p);
    text = hfsb_buf_str(&tail);
    at = hfsbi_utf8_ceil(text, 0); /* start may be within a character */
    at += hfsbi_page_last_lines(hfsb_str_slice(text, at, text.len),
                                max / HFSBI_PAGE_LINE);
    p->from += at;
    if (st == HFSB_OK)
        st = hfsb_buf_append(out, hfsb_str_slice(text, at, text.len));
    hfsb_buf_free(&tail);
    return st;
}

/* Appends head and tail of output that is too long for a page, with a note
   between them on how to see the rest. */
static hfsb_status hfsbi_page_abridge(const hfsbi_record *r,
                                      unsigned long long from, size_t page,
                                      hfsb_buf *out, hfsbi_page *p) {
    size_t      head = page / 4;
    hfsb_buf    tail = HFSB_INIT;
    hfsbi_page  end;
    hfsb_status st = hfsbi_page_read(r, from, head, out, p);
    if (st != HFSB_OK) return st;
    hfsbi_page_cut(r, head / HFSBI_PAGE_LINE, out, p);
    end = *p;
    tail.alloc = out->alloc;
    st = hfsbi_page_tail(r, page - head, &tail, &end);
    if (out->len && out->ptr[out->len - 1] != '\n')
        hfsb_buf_append_byte(out, '\n');
    if (end.from > p->next)
        hfsb_buf_printf(out,
                        "... (bytes %llu to %llu left out here: see them with "
                        "offset=%llu) ...\n",
                        p->next, end.from, p->next);
    hfsb_buf_append(out, hfsb_buf_str(&tail));
    hfsb_buf_free(&tail);
    p->next = end.next;
    return st == HFSB_OK ? hfsb_buf_finish(out, 0) : st;
}

/* Appends the page of a call. */
static hfsb_status hfsbi_page_fill(hfsb_call *call, hfsbi_page *p) {
    const hfsbi_output_wait *w = &call->output;
    const hfsbi_record      *r = &call->job->record;
    hfsb_buf                *out = &call->result.output;
    size_t                   max = w->page + w->page / 4;
    hfsb_status              st;
    if (!w->page)
        return hfsbi_page_read(r, w->offset, HFSBI_OUTPUT_MAX, out, p);
    if (w->follows && r->total > w->offset && r->total - w->offset > max)
        return hfsbi_page_abridge(r, w->offset, w->page, out, p);
    st = hfsbi_page_read(r, w->offset, max, out, p);
    if (st == HFSB_OK) hfsbi_page_cut(r, max / HFSBI_PAGE_LINE, out, p);
    return st;
}

/* Adds the end of stderr to the notes. It reaches the log only when the job
   ends, but many builds report all their progress there. */
static hfsb_status hfsbi_page_note_stderr(hfsb_call *call) {
    hfsb_buf    end = HFSB_INIT;
    hfsb_status st;
    end.alloc = call->notes.alloc;
    st = hfsbi_record_show_stderr(&call->job->record, HFSBI_STDERR_END, &end);
    if (st == HFSB_OK && end.len) {
        hfsb_buf_append(&call->notes,
                        HFSB_LIT("\n(stderr follows when the job has ended; "
                                 "so far its end is:)\n"));
        st = hfsb_buf_append(&call->notes, hfsb_buf_str(&end));
    }
    hfsb_buf_free(&end);
    return st;
}

HFSBI_FN hfsb_status hfsbi_output_result(hfsb_call *call) {
    hfsbi_job  *job = call->job;
    hfsbi_page  p = HFSB_INIT;
    hfsb_status st = hfsbi_page_fill(call, &p);
    if (st != HFSB_OK) return st;
    call->result.success = true;
    if (job->tools == call->tools) job->shown = job->record.bytes;
    if (call->output.page) job->read_to = p.next;
    hfsbi_build_str(&call->fields, "id", hfsb_cstr(job->id));
    hfsbi_build_int(&call->fields, "offset", (long long)p.from);
    hfsbi_build_int(&call->fields, "next_offset", (long long)p.next);
    hfsbi_build_bool(&call->fields, "running", job->state != HFSBI_JOB_DONE);
    hfsbi_put_ending(&call->fields, job);
    if (call->output.page && p.next < job->record.total)
        hfsb_buf_printf(&call->notes,
                        "\n(%llu bytes more: call bash_output again)",
                        job->record.total - p.next);
    if (call->output.page && job->state != HFSBI_JOB_DONE)
        st = hfsbi_page_note_stderr(call);
    if (st != HFSB_OK) return st;
    if (p.gone_from == p.gone_to) return call->notes.status;
    hfsbi_build_array(&call->fields, "dropped");
    hfsbi_build_int(&call->fields, NULL, (long long)p.gone_from);
    hfsbi_build_int(&call->fields, NULL, (long long)p.gone_to);
    hfsbi_build_end(&call->fields);
    return hfsb_buf_printf(&call->notes,
                           "\n(bytes %llu to %llu of the output are no "
                           "longer held)",
                           p.gone_from, p.gone_to);
}

/* ---- bash_output: how long it waits ---- */

/* True when the output ends in an unfinished line that was not shown yet. It
   is a prompt once it has not changed for HFSBI_PROMPT_MS. */
static bool hfsbi_output_may_prompt(const hfsb_call *call) {
    const hfsbi_job *job = call->job;
    return job->record.bytes != job->shown &&
           hfsbi_record_pending(&job->record);
}

static bool hfsbi_is_one_of(char c, const char *list) {
    return hfsb_str_find_byte(hfsb_cstr(list), c) != HFSB_NPOS;
}

/* "(gdb)", "(lldb)", "(Pdb)": a debugger's prompt is all of the line. */
static bool hfsbi_is_debugger_prompt(hfsb_str line) {
    size_t i;
    if (line.len < 3 || line.ptr[0] != '(' || line.ptr[line.len - 1] != ')')
        return false;
    for (i = 1; i + 1 < line.len; i++) {
        char c = hfsbi_lower(line.ptr[i]);
        if (c < 'a' || c > 'z') return false;
    }
    return true;
}

/* True when the unfinished line ends as questions do: "Name:", "Sure?",
   ">>>", "root#", "[Y/n]", "(yes/no)", "(gdb)". */
static bool hfsbi_output_asks(const hfsb_call *call) {
    const hfsbi_record *r = &call->job->record;
    hfsb_buf            line = HFSB_INIT;
    hfsb_str            text;
    bool                asks = false;
    line.alloc = r->alloc;
    if (r->filter[0] &&
        hfsb_text_filter_peek(r->filter[0], &line) == HFSB_OK) {
        text = hfsbi_trim(hfsb_buf_str(&line));
        asks =
            (text.len > 0 &&
             hfsbi_is_one_of(text.ptr[text.len - 1], ":?>$#")) ||
            (text.len > 1 && hfsbi_is_one_of(text.ptr[text.len - 1], "])") &&
             hfsbi_is_one_of(text.ptr[text.len - 2], "nNo")) ||
            hfsbi_is_debugger_prompt(text);
    }
    hfsb_buf_free(&line);
    return asks;
}

/* True when the output since the offset fills a page. What `memory` does not
   hold is more than that. */
static bool hfsbi_output_is_full(const hfsb_call *call) {
    const hfsbi_record *r = &call->job->record;
    unsigned long long  from = call->output.offset;
    size_t              page = call->output.page, at;
    hfsb_str            text = hfsb_buf_str(&r->memory);
    if (r->total <= from) return false;
    if (r->total - from >= page || from < r->memory_start) return true;
    at = (size_t)(from - r->memory_start);
    text = hfsb_str_slice(text, at, text.len);
    return hfsb_str_count_byte(text, '\n') >= page / HFSBI_PAGE_LINE;
}

/* True when there is new output, so that a pause now ends the wait. */
static bool hfsbi_output_may_pause(const hfsb_call *call) {
    return call->output.pauses &&
           call->job->record.bytes != call->output.heard;
}

/* With a page: true when the wait ends before the job does. */
static bool hfsbi_output_page_ready(const hfsb_call *call) {
    long long silent = hfsb_clock_ms() - call->job->record.last_at;
    return hfsbi_output_is_full(call) ||
           (hfsbi_output_may_pause(call) && silent >= HFSBI_PAUSE_MS) ||
           (hfsbi_output_may_prompt(call) && silent >= HFSBI_PROMPT_MS &&
            hfsbi_output_asks(call));
}

/* Without a page: true when the wait ends before the job does. */
static bool hfsbi_output_line_ready(const hfsb_call *call) {
    return call->job->record.total > call->output.offset ||
           (hfsbi_output_may_prompt(call) &&
            hfsb_clock_ms() >= call->job->record.last_at + HFSBI_PROMPT_MS);
}

/* A wait that has ended stays ended: a pause or a question must not be undone
   by output that comes before the caller takes the result. */
HFSBI_FN bool hfsbi_output_ready(hfsb_call *call) {
    bool ready = hfsb_clock_ms() >= call->output.until ||
                 call->job->state == HFSBI_JOB_DONE ||
                 (call->output.page ? hfsbi_output_page_ready(call)
                                    : hfsbi_output_line_ready(call));
    if (ready) call->output.until = 0;
    return ready;
}

/* Skips a time that has passed: it did not end the wait. */
HFSBI_FN long long hfsbi_output_at(const hfsb_call *call) {
    long long at = call->output.until, now = hfsb_clock_ms();
    long long prompt = call->job->record.last_at + HFSBI_PROMPT_MS;
    long long pause = call->job->record.last_at + HFSBI_PAUSE_MS;
    if (prompt > now && hfsbi_output_may_prompt(call))
        at = hfsbi_earlier(at, prompt);
    if (pause > now && hfsbi_output_may_pause(call))
        at = hfsbi_earlier(at, pause);
    return at;
}

/* ---- bash_output ---- */

typedef struct hfsbi_output_args {
    hfsb_str  id;
    long long offset, wait_ms; /* below 0: not given */
    long long page;
} hfsbi_output_args;

#define HFSBI_PARAM_PAGE(args)                                           \
    HFSBI_PARAM_RANGE("page", HFSBI_ARG_INT, HFSBI_UNLISTED, args, page, \
                      NULL, HFSBI_PAGE_LEAST, HFSBI_PAGE_MAX, 0,         \
                      "a number of bytes from 1000 to 100000")

static const hfsbi_param hfsbi_output_params[] = {
    HFSBI_PARAM("id", HFSBI_ARG_STR, 0, hfsbi_output_args, id, NULL),
    HFSBI_PARAM_RANGE("offset", HFSBI_ARG_INT, 0, hfsbi_output_args, offset,
                      "In bytes", 0, LLONG_MAX, -1, "0 or more"),
    HFSBI_PARAM_RANGE("wait_ms", HFSBI_ARG_INT, 0, hfsbi_output_args, wait_ms,
                      "Wait so long for more", 0, LLONG_MAX, -1, "0 or more"),
    HFSBI_PARAM_PAGE(hfsbi_output_args), HFSBI_PARAM_END};

/* The size of the pages of a call: the argument's, else the option's. */
static size_t hfsbi_page_size(const hfsb_call *call, long long argument) {
    size_t page = argument ? (size_t)argument : call->opts.page;
    if (page == 0) return 0;
    if (page < HFSBI_PAGE_LEAST) return HFSBI_PAGE_LEAST;
    return page < HFSBI_PAGE_MAX ? page : (size_t)HFSBI_PAGE_MAX;
}

/* Makes the call wait for output of the job, as *a asks. `heard`: bytes of the
   record that are not new. Under the lock. */
static void hfsbi_output_wait_for(hfsb_call *call, hfsbi_job *job,
                                  const hfsbi_output_args *a,
                                  unsigned long long       heard) {
    hfsb_tools        *tools = call->tools;
    hfsbi_output_wait *w = &call->output;
    long long          wait = a->wait_ms;
    long long          most = (long long)(tools->limits.max_timeout * 1000.0);
    call->job = job;
    job->users++;
    memcpy(call->job_id, job->id, sizeof call->job_id);
    w->page = hfsbi_page_size(call, a->page);
    call->notes_apart = w->page > 0; /* they must not look like output */
    w->follows = w->page && a->offset < 0;
    w->offset = w->follows ? job->read_to : 0;
    if (a->offset > 0) w->offset = (unsigned long long)a->offset;
    w->pauses = w->page && wait < 0;
    w->heard = heard;
    if (wait < 0) wait = w->page ? HFSBI_LISTEN_MS : 0;
    w->until = hfsb_clock_ms() + (wait < most ? wait : most);
    hfsbi_call_wait(call, HFSBI_WAIT_OUTPUT);
    if (job->proc) hfsbi_proc_drive(job->proc);
    hfsbi_tools_stir(tools); /* sets the timer */
}

HFSBI_FN hfsb_status hfsbi_run_bash_output(hfsb_call *call, const void *args,
                                           hfsb_err *err) {
    const hfsbi_output_args *a = (const hfsbi_output_args *)args;
    hfsb_tools              *tools = call->tools;
    hfsb_status              st = HFSB_OK;
    hfsbi_job               *job;
    hfsbi_loop_lock(tools->loop);
    job = hfsbi_jobs_find(tools, a->id);
    if (!a->id.ptr) st = hfsbi_jobs_result(call);
    else if (job) hfsbi_output_wait_for(call, job, a, job->shown);
    else st = hfsbi_job_unknown(tools, a->id, &call->result, err);
    hfsbi_loop_unlock(tools->loop);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_bash_output(void) {
    static const hfsbi_tool row = {
        "bash_output",
        "Output of a job",
        "Output of a background job since offset, whether it runs, its exit "
        "code. Pass next_offset back as offset. Without id: the list of "
        "jobs.",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_CORE,
        hfsbi_output_params};
    return &row;
}

/* ---- bash_input ---- */

HFSBI_FN hfsb_status hfsbi_job_input(hfsb_tools *tools, hfsb_str id,
                                     hfsb_str bytes, bool eof,
                                     hfsb_tool_result *result) {
    hfsb_err    err = HFSB_INIT;
    hfsbi_job  *job;
    hfsb_status st;
    hfsbi_loop_lock(tools->loop);
    job = hfsbi_jobs_find(tools, id);
    if (!job) {
        st = hfsbi_job_unknown(tools, id, result, &err);
    } else if (job->state != HFSBI_JOB_RUNNING) {
        st = hfsbi_result_fail(result, HFSB_REFUSED, "Job %s %s.", job->id,
                               job->state == HFSBI_JOB_DONE
                                   ? "has ended"
                                   : "waits for other commands to end");
    } else {
        st = hfsb_proc_input(job->proc, bytes, eof, &err);
        st = st == HFSB_OK
                 ? hfsbi_result_ok(result, "Sent %zu bytes to job %s%s",
                                   bytes.len, job->id,
                                   eof ? ", then the end of input" : "")
                 : hfsbi_result_err(result, &err);
    }
    hfsbi_loop_unlock(tools->loop);
    return st;
}

typedef struct hfsbi_input_args {
    hfsb_str  id, text;
    bool      eof;
    long long wait_ms; /* below 0: not given */
    long long page;
} hfsbi_input_args;

static const hfsbi_param hfsbi_input_params[] = {
    HFSBI_PARAM("id", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_input_args, id,
                NULL),
    HFSBI_PARAM("text", HFSBI_ARG_STR, HFSBI_UNTOLD, hfsbi_input_args, text,
                NULL),
    HFSBI_PARAM("eof", HFSBI_ARG_BOOL, 0, hfsbi_input_args, eof,
                "Then close it"),
    HFSBI_PARAM_RANGE("wait_ms", HFSBI_ARG_INT, HFSBI_UNLISTED,
                      hfsbi_input_args, wait_ms, NULL, 0, LLONG_MAX, -1,
                      "0 or more"),
    HFSBI_PARAM_PAGE(hfsbi_input_args),
    HFSBI_PARAM_END};

/* Waits for the answer to input that was sent; then shows the output, not how
   many bytes were sent. */
static void hfsbi_input_listen(hfsb_call *call, const hfsbi_input_args *a,
                               unsigned long long heard) {
    hfsbi_output_args output = HFSB_INIT;
    output.offset = -1;
    output.wait_ms = a->wait_ms;
    output.page = a->page;
    hfsb_buf_truncate(&call->result.output, 0);
    hfsbi_output_wait_for(call, hfsbi_jobs_find(call->tools, a->id), &output,
                          heard);
    call->output.pauses = true;
}

HFSBI_FN hfsb_status hfsbi_run_bash_input(hfsb_call *call, const void *args,
                                          hfsb_err *err) {
    const hfsbi_input_args *a = (const hfsbi_input_args *)args;
    hfsb_tools             *tools = call->tools;
    const hfsbi_job        *job;
    unsigned long long      heard;
    hfsb_status             st;
    if (!a->text.ptr && !a->eof)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Give \"text\" (a string), \"eof\" (true), or "
                          "both.");
    hfsbi_loop_lock(tools->loop);
    job = hfsbi_jobs_find(tools, a->id);
    heard = job ? job->record.bytes : 0;
    st = hfsbi_job_input(tools, a->id, a->text, a->eof, &call->result);
    if (st == HFSB_OK && call->result.success && (a->page || call->opts.page))
        hfsbi_input_listen(call, a, heard);
    hfsbi_loop_unlock(tools->loop);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_bash_input(void) {
    static const hfsbi_tool row = {
        "bash_input",
        "Input for a job",
        "Send text to the standard input of a background job; include the "
        "newline.",
        NULL,
        HFSBI_TOOL_RUNS,
        0,
        hfsbi_input_params};
    return &row;
}

/* ---- kill ---- */

/* True when kill without an id ends the job too: it belongs to the caller, or
   there is only one caller. */
static bool hfsbi_kill_may(const hfsb_call *call, const hfsbi_job *job) {
    return !call->owner || job->owner == call->owner;
}

/* Kills what a finished job left running, again while some is found: it may
   have started more meanwhile. */
static void hfsbi_kill_left(hfsb_call *call, hfsbi_job *job) {
    hfsbi_killed  *k = &call->killed;
    hfsbi_snapshot snap;
    size_t         pass, found = job->left_count;
    hfsbi_snapshot_init(&snap, &call->tools->alloc);
    for (pass = 0; pass < HFSBI_KILL_PASSES && found; pass++) {
        hfsbi_snapshot_take(&snap);
        found = hfsbi_job_kill_left(job, &snap, k->left,
                                    pass ? 0 : HFSBI_JOB_LEFT);
        if (!pass) k->left_count = found;
    }
    hfsbi_snapshot_free(&snap);
}

/* Asks one job, or with NULL all jobs of the caller, to end. call->killed.list
   lists those that had not ended. HFSB_OK or HFSB_NOMEM. Under the lock. */
static hfsb_status hfsbi_kill_begin(hfsb_call *call, hfsbi_job *only) {
    hfsb_tools *tools = call->tools;
    hfsbi_job  *job;
    size_t      n = 0;
    for (job = hfsbi_jobs_first(tools); job; job = hfsbi_jobs_next(tools, job))
        n++;
    call->killed.list =
        (hfsbi_job **)hfsbi_array(&tools->alloc, n + 1, sizeof(hfsbi_job *));
    if (!call->killed.list) return HFSB_NOMEM;
    call->killed.cap = n + 1;
    call->killed.one = only != NULL;
    if (only) hfsbi_kill_left(call, only);
    for (job = hfsbi_jobs_first(tools); job;
         job = hfsbi_jobs_next(tools, job)) {
        if (only ? job != only : !hfsbi_kill_may(call, job)) continue;
        if (!hfsbi_job_kill(tools, job)) continue;
        job->users++;
        call->killed.list[call->killed.count++] = job;
    }
    hfsbi_call_wait(call, HFSBI_WAIT_ENDS);
    return HFSB_OK;
}

/* True for a command that was started and has ended. */
static bool hfsbi_kill_succeeded(const hfsbi_job *job) {
    return job->pid > 0 && job->end.end != HFSB_PROC_RUNNING;
}

/* Names the jobs that keep running because another client may have started
   them. */
static void hfsbi_kill_put_others(hfsb_call *call) {
    hfsb_buf        *out = &call->result.output;
    const hfsbi_job *job = call->tools->jobs;
    const char      *before = "\n(jobs that another client may have started "
                              "go on; end one by its id: ";
    size_t           n = 0;
    for (; job && n < HFSBI_JOBS_NAMED; job = job->next) {
        if (job->state == HFSBI_JOB_DONE || hfsbi_kill_may(call, job))
            continue;
        hfsb_buf_append(out, hfsb_cstr(n++ ? ", " : before));
        hfsbi_put_shown(out, hfsb_cstr(job->id));
    }
    if (n) hfsb_buf_append_byte(out, ')');
}

HFSBI_FN hfsb_status hfsbi_kill_result(hfsb_call *call) {
    size_t mark = call->result.output.len;
    size_t i, n = 0;
    for (i = 0; i < call->killed.count; i++)
        n += hfsbi_kill_succeeded(call->killed.list[i]);
    hfsb_buf_printf(&call->result.output, "Killed %zu process(es): [",
                    n + call->killed.left_count);
    for (i = n = 0; i < call->killed.count; i++)
        if (hfsbi_kill_succeeded(call->killed.list[i]))
            hfsb_buf_printf(&call->result.output, "%s%ld", n++ ? ", " : "",
                            call->killed.list[i]->pid);
    for (i = 0; i < call->killed.left_count && i < HFSBI_JOB_LEFT; i++)
        hfsb_buf_printf(&call->result.output, "%s%ld", n++ ? ", " : "",
                        call->killed.left[i]);
    hfsb_buf_append(&call->result.output, i < call->killed.left_count
                                              ? HFSB_LIT(", ...]")
                                              : HFSB_LIT("]"));
    for (i = 0; i < call->killed.count; i++)
        if (call->killed.list[i]->pid > 0 &&
            !hfsbi_kill_succeeded(call->killed.list[i]))
            hfsb_buf_printf(&call->result.output,
                            "\n(%ld could not be killed)",
                            call->killed.list[i]->pid);
    if (!call->killed.one) hfsbi_kill_put_others(call);
    call->result.success = true;
    return hfsb_buf_finish(&call->result.output, mark);
}

typedef struct hfsbi_kill_args {
    hfsb_str id;
} hfsbi_kill_args;

static const hfsbi_param hfsbi_kill_params[] = {
    HFSBI_PARAM("id", HFSBI_ARG_STR, 0, hfsbi_kill_args, id, NULL),
    HFSBI_PARAM_END};

HFSBI_FN hfsb_status hfsbi_run_kill(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    hfsb_str    id = ((const hfsbi_kill_args *)args)->id;
    hfsb_tools *tools = call->tools;
    hfsbi_job  *only = NULL;
    hfsb_status st;
    if (tools->far)
        return tools->far->kill(tools->far->user, id, call->opts.cancel,
                                &call->result, err);
    hfsbi_loop_lock(tools->loop);
    if (id.ptr) only = hfsbi_jobs_find(tools, id);
    st = id.ptr && !only ? hfsbi_job_unknown(tools, id, &call->result, err)
                         : hfsbi_kill_begin(call, only);
    hfsbi_loop_unlock(tools->loop);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_kill(void) {
    static const hfsbi_tool row = {
        "kill",
        "Kill jobs",
        "End a job and all processes it started; without id every command "
        "and job that runs.",
        NULL,
        HFSBI_TOOL_REPEATS,
        0,
        hfsbi_kill_params};
    return &row;
}
