#pragma once

/* What the two directions of /api/files share. Private to them. */

#include "server_sandbox.h"

/* The endpoint, once a server. */
typedef struct hfsbi_files {
    hfsbi_server_part part; /* first: the server knows only this */
    hfsb_server      *server;
    hfsbi_loop       *loop;
    const hfsb_place *place;
    hfsb_alloc        alloc;
    size_t            pending; /* jobs that are not freed yet */
} hfsbi_files;

/* A request on its way through a thread. It outlives the request when the
   peer is gone: whoever works on it in a thread knows only the job, and the
   request is looked at in the loop alone. */
typedef struct hfsbi_file_job {
    hfsbi_task    task;
    hfsbi_files  *files;
    hfsb_request *request; /* NULL: no one waits for a reply any more */
    size_t        size;    /* of the whole, for its free */
    hfsb_buf      path;
    hfsb_buf match, none_match; /* If-Match, If-None-Match; ptr NULL: none */
    int      http;              /* status to reply with; 0: it goes on */
    hfsb_err err; /* ... and the sentence, when it is a refusal */
} hfsbi_file_job;

/* Makes a job of that size, all-zero behind its head, from a request: its path
   and conditions. Replies itself, and gives NULL, when that cannot be. gone
   gets the job. */
HFSBI_FN hfsbi_file_job *hfsbi_file_job_open(hfsbi_files  *files,
                                             hfsb_request *request,
                                             size_t size, hfsb_route_fn gone);
HFSBI_FN void            hfsbi_file_job_free(hfsbi_file_job *job);

/* Gives the request, for its reply, and lets go of it. */
HFSBI_FN hfsb_request *hfsbi_file_job_reply(hfsbi_file_job *job);
/* Replies with job->http and the sentence in job->err. */
HFSBI_FN void hfsbi_file_job_refuse(hfsbi_file_job *job);

/* 422 about a key of the query; type is one of pydantic's. input.ptr NULL:
   there was none. */
HFSBI_FN void hfsbi_files_bad_key(hfsb_request *request, const char *key,
                                  const char *type, hfsb_str input,
                                  const char *sentence);

/* ---- in threads ---- */

/* Sets job->http for a failure of FILE that job->err tells of. */
HFSBI_FN void hfsbi_file_job_failed(hfsbi_file_job *job);

/* The strong validator of a file, with its quotes. */
enum { HFSBI_ETAG = 96 };
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
                              char                  etag[HFSBI_ETAG]);

/* True when a list of If-Match and the like names the tag, or is "*"; `weak`
   tags are good enough for some. */
HFSBI_FN bool hfsbi_etag_listed(hfsb_str list, const char *etag, bool weak);

/* Holds If-Match (and for changes If-None-Match) against the file, info NULL:
   there is none. False: 412, and job->err says why. */
HFSBI_FN bool hfsbi_file_job_may(hfsbi_file_job       *job,
                                 const hfsb_file_info *info, bool change);

/* The part of a file that a Range asks for. */
typedef enum hfsbi_range {
    HFSBI_RANGE_NONE, /* none, or one to be ignored: the whole */
    HFSBI_RANGE_PART,
    HFSBI_RANGE_BEYOND /* 416 */
} hfsbi_range;
HFSBI_FN hfsbi_range hfsbi_range_parse(hfsb_str text, unsigned long long size,
                                       unsigned long long *first,
                                       unsigned long long *length);

/* ---- the routes; user is the hfsbi_files ---- */

HFSBI_FN void hfsbi_download(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_remove(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_upload_begin(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_upload_body(void *user, hfsb_request *request,
                                hfsb_str piece);
HFSBI_FN void hfsbi_upload_end(void *user, hfsb_request *request);
