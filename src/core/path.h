#pragma once

/* ==== PATH: what a string is; paths, Space ids and host names =========== */

#include "base.h"

/* What a job's "script" is:
   - url: starts with http:// or https://, in upper or lower case;
   - path: no white space around it (as Python strips it), no CR, LF or NUL,
     and starts with "/", "./" or "../", or ends in ".py" and has no white
     space inside;
   - inline: has a line break, or looks like a line of Python;
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

/* Appends path to *out without "." components, doubled slashes and a slash at
   the end, and with "a/.." taken out; ".." at the start of a relative path
   stays, of an absolute one vanishes; nothing left is ".". Strings only: no
   symlink is looked at, so use it for display and comparison, never to
   decide what a path may reach. HFSB_OK; HFSB_NOMEM or HFSB_LIMIT. */
HFSB_API hfsb_status hfsb_path_clean(hfsb_str path, hfsb_buf *out)
    HFSBI_CHECKED;

/* Appends base/path, cleaned; path alone when it is absolute. */
HFSB_API hfsb_status hfsb_path_join(hfsb_str base, hfsb_str path,
                                    hfsb_buf *out) HFSBI_CHECKED;

/* The part behind the last slash; its suffix from the last dot on (".py"), or
   empty when there is none (leading dots start no suffix). Both show path's
   own bytes. */
HFSB_API hfsb_str hfsb_path_base(hfsb_str path);
HFSB_API hfsb_str hfsb_path_suffix(hfsb_str path);

/* Checks "owner/name" of a Space: owner 2 to 42 of [A-Za-z0-9-], no "--", no
   "-" at either end; name 1 to 96 of [A-Za-z0-9._-], no "--" or "..", not
   starting or ending with "-" or "."; not ending in ".git". HFSB_OK, or
   HFSB_ARG with a message that says what is wrong. */
HFSB_API hfsb_status hfsb_space_check(hfsb_str id, hfsb_err *err);

/* Appends the host name the Hub gives a Space: lower case, each run of other
   characters than [a-z0-9] one "-", then ".hf.space". The Hub's own answer
   ("subdomain") is the authority. HFSB_OK; HFSB_ARG when the id is not valid
   or its label is over 63 characters; HFSB_NOMEM or HFSB_LIMIT. */
HFSB_API hfsb_status hfsb_space_host(hfsb_str id, hfsb_buf *out,
                                     hfsb_err *err);
