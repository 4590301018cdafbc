#pragma once

/* ==== CHECKPOINT: states of a root that undo goes back to =============== */

#include "../core/base.h"

/* How checkpoints are kept. */
typedef struct hfsb_checkpoint_opts {
    const char *dir;       /* they are stored in a folder in this one ("":
                            hfsb/undo in $XDG_STATE_HOME or ~/.local/state;
                            NULL: no checkpoints) */
    bool        ignored;   /* also of what .gitignore names, and .git */
    bool        no_create; /* use those that exist; without any, as if dir
                              were NULL */
    size_t      max_files; /* paths beneath the root: there are no checkpoints
                              of more (0: 50,000) */
    unsigned long long max_bytes; /* of the store: the oldest checkpoints are
                              dropped (0: 512 MiB). A file over 64 MiB is not
                              stored */
} hfsb_checkpoint_opts;
