#pragma once

/* ==== PATH: kinds of scripts, paths, Space ids and host names =========== */

#include "base.h"

/* The kind of a job's "script":
   - url: starts with http:// or https://, in upper or lower case;
   - path: no white space around it (as Python strips it), no CR, LF or NUL,
     and starts with "/", "./" or "../", or ends in ".py" and has no white
     space inside;
   - inline: contains a line break, or looks like a line of Python;
   - command: anything else. */
typedef enum hfsb_script_kind {
    HFSB_SCRIPT_PATH,   /* a file of the sandbox: read it, send its text */
    HFSB_SCRIPT_URL,    /* http:// or https://: passed through */
    HFSB_SCRIPT_INLINE, /* source code */
    HFSB_SCRIPT_COMMAND /* a command line */
} hfsb_script_kind;

HFSB_API hfsb_script_kind hfsb_script_classify(hfsb_str script);

/* "path", "url", "inline" or "command". */
HFSB_API const char *hfsb_script_kind_name(hfsb_script_kind kind);

/* Appends path without "." components, doubled slashes and a trailing slash,
   and with "a/.." removed. A leading ".." is kept in a relative path, dropped
   in an absolute one; an empty result becomes ".". Symlinks are ignored, so
   use it for display and comparison, never to decide what a path may reach.
   HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_path_clean(hfsb_str path, hfsb_buf *out)
    HFSBI_CHECKED;

/* Appends base/path, cleaned; path alone when it is absolute. */
HFSB_API hfsb_status hfsb_path_join(hfsb_str base, hfsb_str path,
                                    hfsb_buf *out) HFSBI_CHECKED;

/* The part after the last slash; and its suffix from the last dot on (".py"),
   empty when there is none (leading dots start no suffix). Both are views of
   path. */
HFSB_API hfsb_str hfsb_path_base(hfsb_str path);
HFSB_API hfsb_str hfsb_path_suffix(hfsb_str path);

/* Checks "owner/name" of a Space: owner 2 to 42 of [A-Za-z0-9-], no "--", no
   "-" at either end; name 1 to 96 of [A-Za-z0-9._-], no "--" or "..", not
   starting or ending with "-" or "."; not ending in ".git". HFSB_OK, or
   HFSB_ARG with the reason. */
HFSB_API hfsb_status hfsb_space_check(hfsb_str id, hfsb_err *err);

/* Appends the host name that the Hub gives to a Space: lower case, each run of
   characters outside [a-z0-9] replaced by one "-", then ".hf.space". The
   Hub's reply ("subdomain") is the authority. HFSB_OK; HFSB_ARG when the id is
   invalid or its label exceeds 63 characters; HFSB_NOMEM or HFSB_LIMIT. On
   failure *out is unchanged. */
HFSB_API hfsb_status hfsb_space_host(hfsb_str id, hfsb_buf *out,
                                     hfsb_err *err);
