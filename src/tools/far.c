/* far.c - commands of another machine.

   A tools object may have its files and commands elsewhere. Its file tools
   are the same: the root passes their work on (hfsbi_far). A command is a job
   like any other, with the same arguments, record and result, but no process
   of this machine belongs to it:

       bash --> job added, RUNNING --> far->run() in the caller's thread
                                          | output: hfsbi_far_output()
                                          v
                                       job DONE, result written

   So a repeat with the same id or key joins it, as long as the object lives.
   For this object a background command is done once it has started: its end is
   not reported here. */
#include "tools_private.h"

HFSBI_FN void hfsbi_far_output(hfsbi_job *job, hfsb_proc_stream stream,
                               hfsb_str bytes) {
    hfsbi_loop_lock(job->tools->loop);
    hfsbi_job_far_output(job, stream, bytes);
    hfsbi_loop_unlock(job->tools->loop);
}

/* The unique part of the marker has no special characters. */
HFSBI_FN void hfsbi_far_log(const hfsbi_job *job, char out[HFSBI_FAR_LOG]) {
    const char *dot = strrchr(job->marker, '.');
    (void)snprintf(out, HFSBI_FAR_LOG, "%shfsb-%.40s.log",
                   job->tools->far->only_home ? "" : "/tmp/",
                   dot ? dot + 1 : job->marker);
}

HFSBI_FN hfsb_status hfsbi_far_background(hfsbi_job *job) {
    char        log[HFSBI_FAR_LOG];
    hfsbi_build fields;
    hfsb_status st;
    hfsbi_far_log(job, log);
    hfsbi_build_init(&fields, &job->result.fields.alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_str(&fields, "id", hfsb_cstr(job->id));
    hfsbi_build_int(&fields, "pid", job->pid);
    hfsbi_build_bool(&fields, "running", true);
    hfsbi_build_str(&fields, "output_path", hfsb_cstr(log));
    hfsbi_build_end(&fields);
    st = hfsbi_build_finish(&fields, &job->result.fields);
    if (st != HFSB_OK) return st;
    return hfsbi_result_ok(&job->result,
                           "Started in the background as job %s. Its output "
                           "goes to %s there; end it with kill.",
                           job->id, log);
}

HFSBI_FN void hfsbi_far_run(hfsb_call *call) {
    const hfsbi_far_machine *far = call->tools->far;
    hfsbi_job             *job = call->job; /* held by the call */
    hfsb_err               err = HFSB_INIT;
    bool                   refused = false;
    hfsb_status            st =
        far->run(far->user, job, call->opts.cancel, &refused, &err);
    hfsbi_loop_lock(call->tools->loop);
    hfsbi_job_far_end(job, refused ? HFSB_OK : st,
                      st == HFSB_OK ? NULL : &err);
    hfsbi_loop_unlock(call->tools->loop);
}
