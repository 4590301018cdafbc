/* program.c - programs that clients of other protocols run.

   A program is a job (job.c) with arguments instead of a command for a shell,
   whose output is not cleaned and cut for a model but kept as numbered events
   (feed.c), and which may have a terminal:

       start --> job: WAITING --> RUNNING --> DONE
                        |            |          |
                     on_start     on_start   feed: EXITED, CLOSED

   So it counts among the commands of the server, appears in its list of jobs,
   in the journal and in checkpoints, is confined like them, and the kill tool
   ends it.

   A caller's id makes it run once: a second start with the same id joins the
   first, whose events can be read from the beginning as long as they are kept.
   Whoever starts or finds a program holds it until it is released; a program
   that nobody holds stays readable for a while after its end. */
#include "tools_private.h"

/* The longest timeout in seconds: as ms it fits any clock. */
#define HFSBI_PROGRAM_TIME 1e9

static void hfsbi_program_hash_number(hfsb_sha256       *sha,
                                      unsigned long long n) {
    unsigned char bytes[8];
    size_t        i;
    for (i = 0; i < sizeof bytes; i++, n >>= 8)
        bytes[i] = (unsigned char)(n & 255u);
    hfsb_sha256_write(sha, hfsb_str_make((const char *)bytes, sizeof bytes));
}

/* Adds a text of a spec to a digest, with its length. */
static void hfsbi_program_hash(hfsb_sha256 *sha, const hfsb_buf *text) {
    hfsbi_program_hash_number(sha, text->len);
    hfsb_sha256_write(sha, hfsb_buf_str(text));
}

static void hfsbi_program_digest(const hfsbi_job_spec *spec,
                                 unsigned char out[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, HFSB_LIT("process"));
    hfsbi_program_hash(&sha, &spec->raw.argv);
    hfsbi_program_hash(&sha, &spec->command);
    hfsbi_program_hash(&sha, &spec->work_dir);
    hfsbi_program_hash(&sha, &spec->input);
    hfsbi_program_hash(&sha, &spec->env);
    hfsbi_program_hash(&sha, &spec->raw.tag);
    hfsbi_program_hash_number(&sha, spec->raw.cols);
    hfsbi_program_hash_number(&sha, spec->raw.rows);
    hfsbi_program_hash_number(&sha, (spec->raw.bare_env ? 1u : 0) |
                                        (spec->raw.keep_input ? 2u : 0) |
                                        (spec->merge_stderr ? 4u : 0));
    hfsbi_program_hash_number(
        &sha, (unsigned long long)(spec->timeout > 0 ? spec->timeout * 1000.0
                                                     : 0.0));
    hfsb_sha256_finish(&sha, out);
}

/* The arguments as one line, for people. */
static void hfsbi_program_describe(hfsbi_job_spec *spec) {
    const hfsb_buf *argv = &spec->raw.argv;
    size_t          at;
    if (!argv->len || spec->command.len) return;
    for (at = 0; at < argv->len; at += strlen(argv->ptr + at) + 1) {
        if (at) hfsb_buf_append_byte(&spec->command, ' ');
        hfsb_buf_append(&spec->command, hfsb_cstr(argv->ptr + at));
    }
}

/* Fills the brief of the journal. */
static void hfsbi_program_brief(const hfsb_tools     *tools,
                                const hfsbi_job_spec *spec,
                                hfsbi_brief          *brief) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsbi_build   b;
    brief->text.alloc = tools->alloc;
    hfsbi_build_init(&b, &tools->alloc);
    hfsbi_build_object(&b, NULL);
    hfsbi_build_str(&b, "command", hfsb_buf_str(&spec->command));
    hfsbi_build_end(&b);
    if (hfsbi_build_finish(&b, &doc) == HFSB_OK)
        hfsbi_brief_fill(tools->journal, brief, NULL, doc.root,
                         hfsb_buf_str(&spec->id));
    hfsb_json_free(&doc);
}

/* Joins the existing job with the id of the spec, if it is the same program.
   */
static hfsb_status hfsbi_program_join(hfsbi_job *job, const hfsbi_once *once,
                                      const unsigned char *digest,
                                      hfsb_err            *err) {
    if (!job->feed || !once ||
        memcmp(once->digest, digest, HFSB_SHA256_SIZE) != 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This id was used for another command (job %s); "
                          "nothing was run.",
                          job->id);
    return HFSB_OK;
}

static hfsb_status hfsbi_program_add(hfsb_tools *tools, hfsbi_job_spec *spec,
                                     unsigned long long   owner,
                                     const unsigned char *digest,
                                     hfsbi_job **out, hfsb_err *err) {
    hfsbi_job_asked asked = HFSB_INIT;
    hfsbi_brief     brief = HFSB_INIT;
    hfsb_status     st = hfsbi_spent_check(
            tools, digest, hfsb_buf_str(&spec->id), HFSB_LIT(""), err);
    if (st == HFSB_OK) st = hfsbi_job_admit(tools, spec->input.len, err);
    if (st != HFSB_OK) return st;
    hfsbi_program_brief(tools, spec, &brief);
    asked.digest = digest;
    asked.owner = owner;
    asked.brief = &brief;
    *out = hfsbi_job_add(tools, spec, &asked);
    hfsb_buf_free(&brief.text);
    return *out ? HFSB_OK : hfsbi_fail_status(err, HFSB_NOMEM, "Process");
}

/* Resolves a relative or missing directory against that of bash commands. */
static void hfsbi_program_work_dir(const hfsb_tools *tools,
                                   hfsbi_job_spec   *spec) {
    hfsb_buf given = spec->work_dir;
    hfsb_str base = hfsb_root_work_dir(tools->place);
    if (!base.len || (given.len && given.ptr[0] == '/')) return;
    memset(&spec->work_dir, 0, sizeof spec->work_dir);
    spec->work_dir.alloc = given.alloc;
    hfsb_buf_append(&spec->work_dir, base);
    if (given.len) hfsb_buf_append_byte(&spec->work_dir, '/');
    hfsb_buf_append(&spec->work_dir, hfsb_buf_str(&given));
    if (given.status != HFSB_OK) spec->work_dir.status = given.status;
    hfsb_buf_free(&given);
}

/* Completes a spec. An id that does not fit would be cut, and a repeat would
   not find it; a text that lacks bytes would be another command. */
static hfsb_status hfsbi_program_prepare(const hfsb_tools *tools,
                                         hfsbi_job_spec   *spec,
                                         hfsb_err         *err) {
    spec->raw.on = true;
    if (spec->id.len >= HFSBI_JOB_ID ||
        hfsb_str_find_byte(hfsb_buf_str(&spec->id), '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "An id must have at most %d bytes and no NUL.",
                          HFSBI_JOB_ID - 1);
    if (spec->timeout > HFSBI_PROGRAM_TIME) spec->timeout = HFSBI_PROGRAM_TIME;
    hfsbi_program_describe(spec);
    hfsbi_program_work_dir(tools, spec);
    if (hfsbi_job_spec_status(spec) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Process");
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_program_start(hfsb_tools *tools,
                                         hfsbi_job_spec    *spec,
                                         unsigned long long owner,
                                         hfsbi_job **out, hfsb_err *err) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_status   st = hfsbi_program_prepare(tools, spec, err);
    *out = NULL;
    if (st != HFSB_OK) return st;
    if (tools->history && tools->own_loop) /* else job.c does */
        hfsbi_history_before(tools->history);
    hfsbi_program_digest(spec, digest);
    hfsbi_loop_lock(tools->loop);
    hfsbi_jobs_drop_old(tools);
    if (spec->id.len) *out = hfsbi_job_find(tools, hfsb_buf_str(&spec->id));
    if (*out) st = hfsbi_program_join(*out, (*out)->once, digest, err);
    else st = hfsbi_program_add(tools, spec, owner, digest, out, err);
    if (st == HFSB_OK) (*out)->users++;
    else *out = NULL;
    hfsbi_loop_unlock(tools->loop);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

static void hfsbi_program_wait_not(hfsbi_job *job, const void *user) {
    hfsbi_job_waiter **link = &job->waiters, *w;
    while ((w = *link) != NULL) {
        if (user && w->user != user) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        hfsbi_array_free(&job->tools->alloc, w, 1, sizeof *w);
    }
}

HFSBI_FN bool hfsbi_program_on_start(hfsbi_job *job,
                                     void (*fn)(void *user, hfsbi_job *job),
                                     void      *user) {
    hfsbi_job_waiter **link = &job->waiters, *w;
    if (job->state != HFSBI_JOB_WAITING) return false;
    if (!fn) {
        hfsbi_program_wait_not(job, user);
        return true;
    }
    w = (hfsbi_job_waiter *)hfsbi_array(&job->tools->alloc, 1, sizeof *w);
    if (!w) { /* nobody would learn of its start */
        (void)hfsbi_job_kill(job->tools, job);
        return false;
    }
    w->next = NULL;
    w->fn = fn;
    w->user = user;
    while (*link) link = &(*link)->next;
    *link = w;
    return true;
}

HFSBI_FN const char *hfsbi_program_failure(const hfsbi_job *job) {
    if (job->state != HFSBI_JOB_DONE || job->pid) return NULL;
    return job->result.error.len ? job->result.error.ptr : "Out of memory";
}

HFSBI_FN hfsbi_job *hfsbi_program_find(hfsb_tools *tools, hfsb_str id,
                                       long pid, hfsb_str tag) {
    hfsbi_job *job = tools->jobs;
    for (; job; job = job->next) {
        if (!job->feed) continue;
        if (id.len && hfsb_str_equal(hfsb_cstr(job->id), id)) break;
        if (pid > 0 && job->pid == pid) break;
        if (tag.len && hfsb_str_equal(hfsb_buf_str(&job->spec.raw.tag), tag))
            break;
    }
    if (job) job->users++;
    return job;
}

HFSBI_FN void hfsbi_program_release(hfsbi_job *job) {
    if (!job) return;
    HFSB_ASSERT(job->users > 0);
    job->users--;
    job->tools->job_ended = true; /* it may be freed now */
    hfsbi_tools_stir(job->tools);
}

static hfsb_status hfsbi_program_check(const hfsbi_job *job, hfsb_err *err) {
    if (job->state == HFSBI_JOB_RUNNING) return HFSB_OK;
    return hfsbi_fail(err, HFSB_REFUSED, 0, "Process %ld %s.", job->pid,
                      job->state == HFSBI_JOB_DONE ? "has ended"
                                                   : "has not started");
}

HFSBI_FN hfsb_status hfsbi_program_input(hfsbi_job *job, hfsb_str bytes,
                                         bool end, hfsb_err *err) {
    hfsb_status st = hfsbi_program_check(job, err);
    return st == HFSB_OK ? hfsb_proc_input(job->proc, bytes, end, err) : st;
}

HFSBI_FN void hfsbi_program_await_room(hfsbi_job        *job,
                                       hfsbi_job_writer *writer) {
    hfsbi_job_writer **link = &job->writers;
    hfsbi_program_forget_room(writer);
    while (*link) link = &(*link)->next;
    *link = writer;
    writer->job = job;
    writer->next = NULL;
}

HFSBI_FN void hfsbi_program_forget_room(hfsbi_job_writer *writer) {
    hfsbi_job_writer **link;
    if (!writer->job) return;
    for (link = &writer->job->writers; *link != writer;)
        link = &(*link)->next;
    *link = writer->next;
    writer->job = NULL;
}

HFSBI_FN hfsb_status hfsbi_program_signal(hfsbi_job *job, int number,
                                          hfsb_proc_target target,
                                          hfsb_err        *err) {
    hfsb_status st = hfsbi_program_check(job, err);
    return st == HFSB_OK ? hfsb_proc_signal(job->proc, number, target, err)
                         : st;
}

HFSBI_FN hfsb_status hfsbi_program_resize(hfsbi_job *job, unsigned cols,
                                          unsigned rows, hfsb_err *err) {
    hfsb_status st = hfsbi_program_check(job, err);
    return st == HFSB_OK ? hfsb_proc_resize(job->proc, cols, rows, err) : st;
}
