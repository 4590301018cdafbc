#pragma once

/* The rules of .gitignore files, for a walk from a folder downwards. Private;
   pure: the files are read by whoever walks. */

#include "internal.h"
#include "regex.h"

/* The rules of the folders from the top of the walk to where it is now, a
   stack: the last rule that fits decides, as in git. */
typedef struct hfsbi_ignore hfsbi_ignore;

HFSBI_FN hfsb_status hfsbi_ignore_open(const hfsb_alloc *alloc,
                                       hfsbi_ignore    **out);
HFSBI_FN void        hfsbi_ignore_close(hfsbi_ignore *ignore);

/* The walk enters a folder (path from the top, "" for the top itself) that has
   this text in its .gitignore; "" when it has none. A line that is no pattern
   is passed over. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_ignore_push(hfsbi_ignore *ignore, hfsb_str folder,
                                       hfsb_str text);
/* It leaves the folder that it entered last. */
HFSBI_FN void hfsbi_ignore_pop(hfsbi_ignore *ignore);

/* Whether a file or folder at that path (from the top) is ignored. Its folder
   is the one entered last. */
HFSBI_FN bool hfsbi_ignore_has(hfsbi_ignore *ignore, hfsb_str path,
                               bool is_folder);
