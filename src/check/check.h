#pragma once

/* ==== CHECK: warnings about a file that was just written ================ */

#include "../core/base.h"

/* A check of your own. It receives a file that was just written, and appends a
   line to *warnings for each finding. The first check with a matching suffix
   replaces all built-in checks for that file. A status other than HFSB_OK
   discards its warnings; a check never fails a write. */
typedef struct hfsb_tools_check {
    const char *suffix; /* of the paths to check: ".py" (NULL or "": all) */
    hfsb_status (*fn)(void *user, hfsb_str path, hfsb_str content,
                      hfsb_buf *warnings); /* NULL: such files are not
                                              checked */
    void *user;
} hfsb_tools_check;
