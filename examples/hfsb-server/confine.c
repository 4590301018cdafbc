/* confine.c - what commands may touch: the options, and their default.

   In a container the default is none: the container confines commands, and
   what they may write is what its owner put there. */
#define _XOPEN_SOURCE 700 /* access; before any include */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* True when process 1 has this variable, as systemd-nspawn and podman set it.
   Only root can look. */
static bool first_process_has(const char *name) {
    char   text[8192];
    size_t n, i, len = strlen(name);
    bool   found = false;
    FILE  *f = fopen("/proc/1/environ", "r");
    if (!f) return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    for (i = 0; i < n && !found; i += strlen(text + i) + 1)
        found = strncmp(text + i, name, len) == 0 && text[i + len] == '=';
    wipe(text, sizeof text);
    return found;
}

/* Docker, podman, Kubernetes, a Space, systemd-nspawn. */
static bool in_container(void) {
    return access("/.dockerenv", F_OK) == 0 ||
           access("/run/.containerenv", F_OK) == 0 ||
           getenv("KUBERNETES_SERVICE_HOST") || getenv("SPACE_ID") ||
           getenv("container") || first_process_has("container");
}

const char *why_unconfined(const options *o) {
    if (o->confine) return "--confine none";
    return in_container() ? "the default in a container"
                          : "this system has no means for it";
}

void fill_confinement(const options *o, hfsb_confine_opts *out) {
    memset(out, 0, sizeof *out);
    out->if_possible = !o->confine;
    if (o->confine)
        (void)hfsb_confine_level_find(hfsb_cstr(o->confine), &out->level);
    else if (!in_container()) out->level = HFSB_CONFINE_WRITE;
    out->allow_write = o->allow_write.list;
    out->allow_write_count = o->allow_write.count;
    out->allow_read = o->allow_read.list;
    out->allow_read_count = o->allow_read.count;
    out->net = o->net;
    out->max_memory = (unsigned long long)o->max_memory;
    out->max_processes = (unsigned long long)o->max_processes;
    out->max_file_size = (unsigned long long)o->max_file_size;
    out->max_cpu = (unsigned long long)o->max_cpu;
}
