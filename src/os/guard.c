/* guard.c - files that a command must not plant.

   Some files run later as the person, without confinement: git hooks, shell
   start-up files, what editors and agents load with a project. Those that
   exist are mounted read-only (namespaces.c). What does not exist cannot be
   mounted over, and without namespaces nothing can. So the guard looks at a
   few names before a command and after it; a file that has appeared or changed
   is renamed to NAME.refused, which nothing runs, and the reply says so.

   A file that is replaced by rename() loses its mount; the guard looks at it
   all the same, and the next command has the mount again.

   The file tools may write these files: the host that offers them can ask the
   person. A file that they have written is left alone.

   This is a net, not a wall: a command that is still running, or a repository
   deeper in the root, is not looked at. */
#include "os_private.h"

typedef struct hfsbi_guarded {
    const char *name;
    bool        kept;    /* mounted read-only */
    bool        watched; /* looked at by the guard */
} hfsbi_guarded;

#define HFSBI_HOOK(name) \
    { ".git/hooks/" name, false, true }

static const hfsbi_guarded hfsbi_guarded_names[] = {
    /* of a project */
    {".git/hooks", true, false}, /* git init fills it with samples */
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
    {".envrc", true, true},
    {".mcp.json", true, true},
    {".vscode", true, true},
    {".vscode/tasks.json", false, true},
    {".vscode/settings.json", false, true},
    {".idea", true, true},
    {".cursor/mcp.json", true, true},
    {".claude/settings.json", true, true},
    {".claude/settings.local.json", true, true},
    /* of a home */
    {".bashrc", true, true},
    {".bash_profile", true, true},
    {".bash_login", true, true},
    {".bash_logout", true, true},
    {".bash_aliases", true, true},
    {".profile", true, true},
    {".zshenv", true, true},
    {".zshrc", true, true},
    {".zprofile", true, true},
    {".zlogin", true, true},
    {".kshrc", true, true},
    {".gitconfig", true, true},
    {".xprofile", true, true},
    {".xsessionrc", true, true},
    {".pam_environment", true, true},
    {".ssh", true, true},
    {".config/fish", true, true},
    {".config/git", true, true},
    {".config/autostart", true, true},
    {".config/systemd", true, true},
    {".local/bin", true, true}};

enum {
    HFSBI_LAST_HOOK = 17, /* the hooks come first */
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

/* A number that changes with the file; 0: there is none. */
static unsigned long long hfsbi_guard_mark(int dir, const char *name) {
    hfsb_file_info     info;
    struct stat        st;
    unsigned long long hash = HFSB_FNV_START, parts[6];
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
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

/* What a pass over the names meets: entry `n` of all, its base and name. */
typedef struct hfsbi_guard_entry {
    const char        *base, *name;
    size_t             n;
    unsigned long long mark;
} hfsbi_guard_entry;

/* Calls fn for each name that is watched, in each base. */
static void hfsbi_guard_each(const hfsb_confine *confine,
                             void (*fn)(void                    *user,
                                        const hfsbi_guard_entry *entry),
                             void *user) {
    const hfsb_buf   *bases = &confine->bases;
    hfsbi_guard_entry entry = HFSB_INIT;
    size_t            at, i;
    for (at = 0; at < bases->len; at += strlen(bases->ptr + at) + 1) {
        int  dir = open(bases->ptr + at, HFSBI_O_SEARCH);
        bool hooks = dir >= 0 && faccessat(dir, ".git/hooks", F_OK, 0) == 0;
        entry.base = bases->ptr + at;
        for (i = 0; i < HFSBI_GUARDED; i++, entry.n++) {
            entry.name = hfsbi_guarded_names[i].name;
            entry.mark = 0;
            if (dir < 0 || !hfsbi_guarded_names[i].watched) continue;
            if (hooks || i > HFSBI_LAST_HOOK)
                entry.mark = hfsbi_guard_mark(dir, entry.name);
            fn(user, &entry);
        }
        hfsbi_close(&dir);
    }
}

static void hfsbi_guard_note(void *user, const hfsbi_guard_entry *entry) {
    hfsbi_guard *guard = (hfsbi_guard *)user;
    guard->marks[entry->n] = entry->mark;
}

HFSBI_FN hfsbi_guard *hfsbi_guard_open(const hfsb_confine *confine) {
    const hfsb_alloc *alloc;
    hfsbi_guard      *guard;
    size_t            at;
    if (!confine || !confine->bases.len) return NULL;
    alloc = &confine->alloc;
    guard = (hfsbi_guard *)hfsbi_array(alloc, 1, sizeof *guard);
    if (!guard) return NULL;
    memset(guard, 0, sizeof *guard);
    guard->confine = confine;
    for (at = 0; at < confine->bases.len;
         at += strlen(confine->bases.ptr + at) + 1)
        guard->count += HFSBI_GUARDED;
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

/* Renames it to PATH.refused, or PATH.refused2 ... */
static bool hfsbi_guard_refuse(const char *path, char *out, size_t size) {
    struct stat st;
    int         i, len;
    for (i = 1; i < 100; i++) {
        len = i == 1 ? snprintf(out, size, "%s.refused", path)
                     : snprintf(out, size, "%s.refused%d", path, i);
        if (len <= 0 || (size_t)len >= size) return false;
        if (lstat(out, &st) != 0) return rename(path, out) == 0;
    }
    return false;
}

static void hfsbi_guard_compare(void *user, const hfsbi_guard_entry *entry) {
    hfsbi_guard_look *look = (hfsbi_guard_look *)user;
    char              path[PATH_MAX], aside[PATH_MAX];
    bool              moved;
    int               len;
    if (!entry->mark || entry->mark == look->guard->marks[entry->n]) return;
    len = snprintf(path, sizeof path, "%s/%s", entry->base, entry->name);
    if (len <= 0 || (size_t)len >= sizeof path) return;
    if (look->known && look->known(look->user, path)) return;
    moved = hfsbi_guard_refuse(path, aside, sizeof aside);
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
