/* guard.c - files that a command must not plant.

   Some files run later with the rights of the user, without confinement: git
   hooks, shell start-up files, what editors and agents load with a project.
   Those that exist are mounted read-only (namespaces.c). What does not exist
   cannot be mounted over, and without namespaces nothing can. So the guard
   looks at a few names before a command and after it; a file that has appeared
   or changed is renamed to NAME.refused, which nothing runs, and the reply
   says so.

   A file that is replaced by rename() loses its mount; the guard still looks
   at it, and the next command has the mount again.

   The file tools may write these files: the host that offers them can ask the
   person. A file that they have written is left alone.

   This is a net, not a wall: it does not look at a command that is still
   running, or at a repository deeper in the root. */
#include "proc_private.h"

typedef struct hfsbi_guarded {
    const char *name;
    bool        kept;    /* mounted read-only */
    bool        watched; /* checked by the guard */
    bool        link;    /* ... but only if it is a symlink, which may lead to
                            others of the list */
} hfsbi_guarded;

/* clang-format off */
#define HFSBI_HOOK(name) {".git/hooks/" name, false, true, false}
#define HFSBI_LINK(name) {name, false, true, true}
/* clang-format on */

static const hfsbi_guarded hfsbi_guarded_names[] = {
    /* of a project */
    HFSBI_LINK(".git"),
    HFSBI_LINK(".git/hooks"),
    {".git/hooks", true, false, false}, /* git init fills it with samples */
    HFSBI_HOOK("applypatch-msg"),
    HFSBI_HOOK("commit-msg"),
    HFSBI_HOOK("fsmonitor-watchman"),
    HFSBI_HOOK("post-applypatch"),
    HFSBI_HOOK("post-checkout"),
    HFSBI_HOOK("post-commit"),
    HFSBI_HOOK("post-index-change"),
    HFSBI_HOOK("post-merge"),
    HFSBI_HOOK("post-rewrite"),
    HFSBI_HOOK("pre-applypatch"),
    HFSBI_HOOK("pre-auto-gc"),
    HFSBI_HOOK("pre-commit"),
    HFSBI_HOOK("pre-merge-commit"),
    HFSBI_HOOK("pre-push"),
    HFSBI_HOOK("pre-rebase"),
    HFSBI_HOOK("prepare-commit-msg"),
    HFSBI_HOOK("reference-transaction"),
    {".envrc", true, true, false},
    {".mcp.json", true, true, false},
    {".vscode", true, true, false},
    {".vscode/tasks.json", false, true, false},
    {".vscode/settings.json", false, true, false},
    {".idea", true, true, false},
    HFSBI_LINK(".cursor"),
    {".cursor/mcp.json", true, true, false},
    HFSBI_LINK(".claude"),
    {".claude/settings.json", true, true, false},
    {".claude/settings.local.json", true, true, false},
    /* of a home */
    {".bashrc", true, true, false},
    {".bash_profile", true, true, false},
    {".bash_login", true, true, false},
    {".bash_logout", true, true, false},
    {".bash_aliases", true, true, false},
    {".profile", true, true, false},
    {".zshenv", true, true, false},
    {".zshrc", true, true, false},
    {".zprofile", true, true, false},
    {".zlogin", true, true, false},
    {".kshrc", true, true, false},
    {".gitconfig", true, true, false},
    {".xprofile", true, true, false},
    {".xsessionrc", true, true, false},
    {".pam_environment", true, true, false},
    {".ssh", true, true, false},
    HFSBI_LINK(".config"),
    {".config/fish", true, true, false},
    {".config/git", true, true, false},
    {".config/autostart", true, true, false},
    {".config/systemd", true, true, false},
    HFSBI_LINK(".local"),
    {".local/bin", true, true, false}};

enum {
    HFSBI_GUARDED = sizeof hfsbi_guarded_names / sizeof *hfsbi_guarded_names
};

HFSBI_FN const char *hfsbi_guard_name(size_t n) {
    size_t i;
    for (i = 0; i < HFSBI_GUARDED; i++)
        if (hfsbi_guarded_names[i].kept && n-- == 0)
            return hfsbi_guarded_names[i].name;
    return NULL;
}

struct hfsbi_guard {
    const hfsb_confine *confine;
    unsigned long long *marks; /* one for each base and name */
    size_t              count;
};

/* A number that changes with the file; 0: no such file. */
static unsigned long long hfsbi_guard_mark(int dir, const char *name,
                                           bool link) {
    hfsb_file_info     info;
    struct stat        st;
    unsigned long long hash = HFSB_FNV_START, parts[6];
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (link && !S_ISLNK(st.st_mode)) return 0;
    hfsbi_file_info_fill(&info, &st);
    parts[0] = info.device;
    parts[1] = info.inode;
    parts[2] = info.size;
    parts[3] = (unsigned long long)info.touched;
    parts[4] = (unsigned long long)info.touched_nanos;
    parts[5] = (unsigned long long)st.st_mode;
    hash =
        hfsb_fnv_add(hash, hfsb_str_make((const char *)parts, sizeof parts));
    return hash ? hash : 1;
}

/* The folder of the last name, opened; the next name is often in it too. No
   symlink is followed: it could lead the guard out of the root. */
typedef struct hfsbi_guard_dir {
    int         base, fd; /* fd: -1 when it cannot be opened */
    const char *path;
    size_t      len;
} hfsbi_guard_dir;

static void hfsbi_guard_leave(hfsbi_guard_dir *d) {
    if (d->fd != d->base) hfsbi_close(&d->fd);
    d->fd = d->base;
    d->len = 0;
}

/* Opens the folder of name, and returns the last part of name. */
static const char *hfsbi_guard_enter(hfsbi_guard_dir *d, const char *name) {
    const char *last = strrchr(name, '/'), *at = name;
    char        part[32];
    if (!last) {
        hfsbi_guard_leave(d);
        return name;
    }
    if (d->len == (size_t)(last - name) && memcmp(d->path, name, d->len) == 0)
        return last + 1;
    hfsbi_guard_leave(d);
    d->path = name;
    d->len = (size_t)(last - name);
    while (at < last && d->fd >= 0) {
        size_t len = strcspn(at, "/");
        int    next, above = d->fd;
        (void)snprintf(part, sizeof part, "%.*s", (int)len, at);
        next = openat(above, part, HFSBI_O_SEARCH | O_NOFOLLOW);
        if (above != d->base) hfsbi_close(&above);
        d->fd = next;
        at += len + 1;
    }
    return last + 1;
}

/* One entry of a pass over the names: its number `n`, its base and name, and
   the open folder with the last part of the name. */
typedef struct hfsbi_guard_entry {
    const char        *base, *name, *last;
    int                dir;
    size_t             n;
    unsigned long long mark;
} hfsbi_guard_entry;

/* Calls fn for each name that is watched, in each base. */
static void hfsbi_guard_each(const hfsb_confine *confine,
                             void (*fn)(void                    *user,
                                        const hfsbi_guard_entry *entry),
                             void *user) {
    hfsbi_guard_entry entry = HFSB_INIT;
    hfsbi_guard_dir   d = HFSB_INIT;
    size_t            at = 0, base, i;
    for (base = 0; base < confine->base_count; base++) {
        entry.base = confine->bases.ptr + at;
        at += strlen(entry.base) + 1;
        d.base = d.fd = confine->base_fds[base];
        for (i = 0; i < HFSBI_GUARDED; i++, entry.n++) {
            entry.name = hfsbi_guarded_names[i].name;
            if (!hfsbi_guarded_names[i].watched) continue;
            entry.last = hfsbi_guard_enter(&d, entry.name);
            entry.dir = d.fd;
            entry.mark = hfsbi_guard_mark(entry.dir, entry.last,
                                          hfsbi_guarded_names[i].link);
            fn(user, &entry);
        }
        hfsbi_guard_leave(&d);
    }
}

static void hfsbi_guard_note(void *user, const hfsbi_guard_entry *entry) {
    hfsbi_guard *guard = (hfsbi_guard *)user;
    guard->marks[entry->n] = entry->mark;
}

HFSBI_FN hfsbi_guard *hfsbi_guard_open(const hfsb_confine *confine) {
    const hfsb_alloc *alloc;
    hfsbi_guard      *guard;
    if (!confine || !confine->base_count) return NULL;
    alloc = &confine->alloc;
    guard = (hfsbi_guard *)hfsbi_array(alloc, 1, sizeof *guard);
    if (!guard) return NULL;
    memset(guard, 0, sizeof *guard);
    guard->confine = confine;
    guard->count = confine->base_count * HFSBI_GUARDED;
    guard->marks = (unsigned long long *)hfsbi_array(alloc, guard->count,
                                                     sizeof *guard->marks);
    if (!guard->marks) guard->count = 0;
    else memset(guard->marks, 0, guard->count * sizeof *guard->marks);
    if (!guard->marks) {
        hfsbi_guard_close(guard);
        return NULL;
    }
    hfsbi_guard_each(confine, hfsbi_guard_note, guard);
    return guard;
}

HFSBI_FN void hfsbi_guard_close(hfsbi_guard *guard) {
    const hfsb_alloc *alloc;
    if (!guard) return;
    alloc = &guard->confine->alloc;
    if (guard->marks)
        hfsbi_array_free(alloc, guard->marks, guard->count,
                         sizeof *guard->marks);
    hfsbi_array_free(alloc, guard, 1, sizeof *guard);
}

/* ---- after the command ---- */

typedef struct hfsbi_guard_look {
    const hfsbi_guard *guard;
    bool (*known)(void *user, const char *path);
    void     *user;
    hfsb_buf *notes;
} hfsbi_guard_look;

/* Renames the entry to NAME.refused, or NAME.refused2 ..., and writes that
   name to out. */
static bool hfsbi_guard_refuse(const hfsbi_guard_entry *entry, char *out,
                               size_t size) {
    struct stat st;
    int         i, len;
    for (i = 1; i < 100; i++) {
        len = i == 1 ? snprintf(out, size, "%s.refused", entry->last)
                     : snprintf(out, size, "%s.refused%d", entry->last, i);
        if (len <= 0 || (size_t)len >= size) return false;
        if (fstatat(entry->dir, out, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return renameat(entry->dir, entry->last, entry->dir, out) == 0;
    }
    return false;
}

static void hfsbi_guard_compare(void *user, const hfsbi_guard_entry *entry) {
    hfsbi_guard_look *look = (hfsbi_guard_look *)user;
    char              path[PATH_MAX], aside[64];
    bool              moved;
    int               len;
    if (!entry->mark || entry->mark == look->guard->marks[entry->n]) return;
    len = snprintf(path, sizeof path, "%s/%s", entry->base, entry->name);
    if (len <= 0 || (size_t)len >= sizeof path) return;
    if (look->known && look->known(look->user, path)) return;
    moved = hfsbi_guard_refuse(entry, aside, sizeof aside);
    hfsb_buf_printf(look->notes,
                    "\n(%s runs outside the sandbox later, so commands may "
                    "not write it; it %s%s%s)",
                    path, moved ? "was moved to " : "could not be moved away",
                    moved ? aside : "", moved ? "" : ": tell the person");
}

HFSBI_FN void hfsbi_guard_check(const hfsbi_guard *guard,
                                bool (*known)(void *user, const char *path),
                                void *user, hfsb_buf *notes) {
    hfsbi_guard_look look;
    if (!guard) return;
    look.guard = guard;
    look.known = known;
    look.user = user;
    look.notes = notes;
    hfsbi_guard_each(guard->confine, hfsbi_guard_compare, &look);
}
