/* cp.h - what cp.c and cp_tree.c share. */
#ifndef HFSB_CLI_CP_H
#define HFSB_CLI_CP_H

#include "cli.h"

/* The progress bar of the file that is being copied. */
typedef struct bar {
    bool               wanted; /* stderr is a terminal */
    bool               drawn;
    hfsb_str           name;
    long long          began, last;
    unsigned long long done;
} bar;

/* One run of hfsb cp. */
typedef struct cp_call {
    bool               up; /* to the sandbox */
    bool               recursive, json;
    client             via;
    hfsb_sandbox      *sandbox;
    bar                shown;
    size_t             files;
    unsigned long long bytes;
    size_t             skipped; /* devices, links that leave the tree ... */
    bool               unread;  /* nobody reads standard output any more */
} cp_call;

/* Copies one file, byte for byte. root: of the local path, may be NULL. */
hfsb_status copy_file(cp_call *c, const hfsb_root *root, hfsb_str from,
                      hfsb_str to, hfsb_err *err);
/* True when a shell of the sandbox finds a directory at that path. */
bool is_dir_there(cp_call *c, const char *path);
/* Reports something that was not copied. */
void skip(cp_call *c, hfsb_str path, const char *why);

/* Copies the directory `from` so that it is `to`. */
hfsb_status upload_tree(cp_call *c, const char *from, const char *to,
                        hfsb_err *err);
/* The same from the sandbox; *is_tree: `from` is a directory there, else
   nothing was done. */
hfsb_status download_tree(cp_call *c, const char *from, const char *to,
                          bool *is_tree, hfsb_err *err);

#endif
