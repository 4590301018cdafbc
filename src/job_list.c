/* job_list.c - what there is to tell about the commands of a tools object.
   Depends on: job. */
#include "tool.h"

enum { HFSBI_JOB_COMMAND = 200 }; /* characters of a command that are told */

static const char *hfsbi_job_state_name(hfsbi_job_state state) {
    switch (state) {
    case HFSBI_JOB_WAITING: return "waiting";
    case HFSBI_JOB_RUNNING: return "running";
    case HFSBI_JOB_DONE: break;
    }
    return "done";
}

static void hfsbi_put_job(hfsb_json_writer *w, const hfsbi_job *job,
                          long long now) {
    hfsb_str command = hfsb_buf_str(&job->spec.command);
    size_t   shown = hfsb_utf8_offset(command, HFSBI_JOB_COMMAND);
    hfsb_json_put_object(w);
    hfsbi_put_member_str(w, "id", hfsb_cstr(job->id));
    hfsbi_put_member_str(w, "state",
                         hfsb_cstr(hfsbi_job_state_name(job->state)));
    hfsbi_put_member_str(w, "description",
                         hfsb_buf_str(&job->spec.description));
    hfsbi_put_member_str(w, "command", hfsb_str_slice(command, 0, shown));
    hfsbi_put_member_bool(w, "command_cut", shown < command.len);
    hfsbi_put_member_int(w, "pid", job->pid);
    hfsbi_put_member_bool(w, "background", job->spec.background);
    hfsbi_put_member_int(w, "age_ms", now - job->created);
    hfsbi_put_member_int(w, "duration_ms",
                         (job->state == HFSBI_JOB_DONE ? job->ended : now) -
                             job->created);
    hfsbi_put_ending(w, job);
    hfsbi_put_member_int(w, "output_bytes", (long long)job->record.total);
    hfsb_json_put_end(w);
}

hfsb_status hfsb_tools_jobs(hfsb_tools *tools, hfsb_str id, hfsb_buf *out,
                            hfsb_err *err) {
    long long        now = hfsb_clock_ms();
    const hfsbi_job *job;
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, out, NULL);
    pthread_mutex_lock(&tools->lock);
    job = id.len ? hfsbi_job_find(tools, id) : tools->jobs;
    if (id.len && !job) {
        pthread_mutex_unlock(&tools->lock);
        hfsbi_fail(err, HFSB_NOT_FOUND, 0, "No such job: ");
        hfsbi_err_quote(err, id, 80);
        return HFSB_NOT_FOUND;
    }
    if (id.len) {
        hfsbi_put_job(&w, job, now);
    } else {
        hfsb_json_put_array(&w);
        for (; job; job = job->next) hfsbi_put_job(&w, job, now);
        hfsb_json_put_end(&w);
    }
    pthread_mutex_unlock(&tools->lock);
    return hfsb_json_writer_finish(&w, err);
}

HFSBI_FN bool hfsbi_job_exists(hfsb_tools *tools, hfsb_str id) {
    bool found;
    pthread_mutex_lock(&tools->lock);
    found = hfsbi_job_find(tools, id) != NULL;
    pthread_mutex_unlock(&tools->lock);
    return found;
}

HFSBI_FN void hfsbi_jobs_end(hfsb_tools *tools, hfsb_str id) {
    hfsbi_job *job;
    pthread_mutex_lock(&tools->lock);
    for (job = tools->jobs; job; job = job->next)
        if (!id.len || hfsb_str_equal(id, hfsb_cstr(job->id)))
            (void)hfsbi_job_kill(tools, job);
    pthread_mutex_unlock(&tools->lock);
    hfsb_tools_wake(tools);
}

HFSBI_FN hfsbi_jobs_figures hfsbi_jobs_count_all(hfsb_tools *tools) {
    hfsbi_jobs_figures f = HFSB_INIT;
    pthread_mutex_lock(&tools->lock);
    f.running = hfsbi_jobs_count(tools, HFSBI_JOB_RUNNING);
    f.waiting = hfsbi_jobs_count(tools, HFSBI_JOB_WAITING);
    f.ever = tools->job_count;
    pthread_mutex_unlock(&tools->lock);
    return f;
}
