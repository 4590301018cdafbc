#pragma once

/* ==== CHECKPOINT: states of a root that undo can restore ================ */

#include "../core/base.h"

/* How checkpoints are kept. */
typedef struct hfsb_checkpoint_opts {
    const char *dir;       /* they are stored in a folder of this one ("":
                            hfsb/undo in $XDG_STATE_HOME or ~/.local/state;
                            NULL: no checkpoints) */
    bool        ignored;   /* include what .gitignore names, and .git */
    bool        no_create; /* use a store that exists; if there is none, as if
                              dir were NULL */
    size_t      max_files; /* paths beneath the root; with more there are no
                              checkpoints (0: 50,000) */
    unsigned long long max_bytes; /* of the store: beyond this the oldest
                              checkpoints are dropped (0: 512 MiB). A file over
                              64 MiB is not stored */
} hfsb_checkpoint_opts;
