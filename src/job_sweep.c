/* job_sweep.c - the end of all that a tools object ever started. Depends on:
   job, proc_tree. */
#include "tool.h"

/* ---- where it may be ---- */

static hfsbi_span *hfsbi_span_of(hfsb_tools *tools, const hfsbi_job *job) {
    size_t i;
    for (i = 0; i < HFSBI_JOB_SPANS; i++)
        if (tools->spans[i].running && tools->spans[i].session == job->pid)
            return &tools->spans[i];
    return NULL;
}

/* When all are in use the oldest is forgotten: what is in that session and
   not marked will not be found. */
HFSBI_FN void hfsbi_span_begin(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_span span = hfsbi_proc_span(job->proc);
    size_t     i = 0;
    if (span.session == 0) return;
    if (tools->since == 0) tools->since = span.since;
    while (i < HFSBI_JOB_SPANS && tools->spans[i].session) i++;
    if (i == HFSBI_JOB_SPANS) {
        i = tools->span_next;
        tools->span_next = (i + 1) % HFSBI_JOB_SPANS;
    }
    tools->spans[i] = span;
}

HFSBI_FN void hfsbi_span_end(hfsb_tools *tools, hfsbi_job *job) {
    hfsbi_span *span = hfsbi_span_of(tools, job), none = HFSB_INIT;
    if (!span) return;
    *span = job->left_count ? hfsbi_proc_span(job->proc) : none;
    span->running = false;
}

/* ---- the end of it ---- */

/* Those that run have a tree, which knows also those that left the session,
   lost their parent and have an environment of their own. */
static size_t hfsbi_jobs_signal(hfsb_tools *tools, bool hard) {
    hfsbi_job *job;
    size_t     count = 0;
    for (job = tools->jobs; job; job = job->next) {
        if (job->state == HFSBI_JOB_RUNNING)
            count += hfsbi_proc_signal(job->proc, hard ? SIGKILL : 0);
        (void)hfsbi_job_kill(tools, job);
    }
    return count;
}

HFSBI_FN size_t hfsbi_tools_sweep(hfsb_tools *tools, bool hard) {
    hfsbi_remains remains = HFSB_INIT;
    size_t        running, all;
    pthread_mutex_lock(&tools->lock);
    remains.owner = hfsb_cstr(tools->prefix);
    remains.since = tools->since;
    remains.spans = tools->spans;
    remains.count = HFSBI_JOB_SPANS;
    remains.gently = !hard;
    /* gently: the search comes before the signals to those that run, which
       make orphans of their children */
    all = hard ? 0 : hfsbi_remains_signal(&remains);
    running = hfsbi_jobs_signal(tools, hard);
    if (hard) all = hfsbi_remains_signal(&remains);
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
    return all > running ? all : running;
}
