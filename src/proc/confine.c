/* confine.c - joins the mechanisms of confinement.

   A confinement is prepared once:

       options --> places: what may be read, written, is kept, hidden
               --> network: on, off, loopback, ports
                      |
                      +--> landlock.c   a ruleset
                      +--> seccomp.c    a filter
                      +--> namespaces.c     namespaces
                      +--> limits.c     limits, a cgroup

   and entered by each command between its fork and its exec, in this order:
   limits, namespaces, another user, no new privileges, Landlock, seccomp. Each
   step is a few system calls on what was prepared; the later ones would refuse
   the earlier ones.

   Mechanisms that the kernel lacks are left out and named in the text. Without
   Landlock WRITE is refused unless `if_possible`, and STRICT always. */
#include "proc_private.h"

/* ---- places ---- */

HFSBI_FN bool hfsbi_place_add(hfsb_buf *places, char use, const char *path) {
    char   real[PATH_MAX];
    size_t at;
    if (!path || *path != '/' || !realpath(path, real)) {
        if (path && *path != '/') errno = ENOENT;
        return false;
    }
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1)
        if (places->ptr[at] == use && strcmp(places->ptr + at + 1, real) == 0)
            return true;
    hfsb_buf_append_byte(places, use);
    hfsb_buf_append(places, hfsb_str_make(real, strlen(real) + 1));
    return true;
}

static void hfsbi_places_add(hfsb_buf *places, char use,
                             const char *const *list) {
    for (; *list; list++) (void)hfsbi_place_add(places, use, *list);
}

/* Adds dir/name if it exists. */
static void hfsbi_place_add_in(hfsb_buf *places, char use, const char *dir,
                               const char *name) {
    char path[PATH_MAX];
    int  len;
    if (!dir || *dir != '/') return;
    len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (len > 0 && (size_t)len < sizeof path)
        (void)hfsbi_place_add(places, use, path);
}

/* Covers a file or folder that exists. */
static void hfsbi_place_hide(hfsb_buf *places, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return;
    (void)hfsbi_place_add(places,
                          S_ISDIR(st.st_mode) ? HFSBI_PLACE_HIDDEN_DIR
                                              : HFSBI_PLACE_HIDDEN_FILE,
                          path);
}

/* Adds the devices that every program needs. */
static void hfsbi_places_devices(hfsb_buf *places) {
    static const char *const list[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
        "/dev/tty",  "/dev/ptmx", "/dev/pts",  NULL};
    hfsbi_places_add(places, HFSBI_PLACE_DEVICE, list);
}

/* Processors for computing, which the user may use anyway. */
static void hfsbi_places_accelerators(hfsb_buf *places) {
    static const char *const list[] = {"/dev/dri",
                                       "/dev/kfd",
                                       "/dev/dxg",
                                       "/dev/accel",
                                       "/dev/nvidiactl",
                                       "/dev/nvidia-uvm",
                                       "/dev/nvidia-uvm-tools",
                                       "/dev/nvidia-modeset",
                                       "/dev/nvidia-caps",
                                       NULL};
    char                     path[32];
    int                      i;
    hfsbi_places_add(places, HFSBI_PLACE_DEVICE, list);
    for (i = 0; i < 16; i++) {
        (void)snprintf(path, sizeof path, "/dev/nvidia%d", i);
        (void)hfsbi_place_add(places, HFSBI_PLACE_DEVICE, path);
    }
}

HFSBI_FN bool hfsbi_place_is_inner(const hfsb_buf *places, const char *path) {
    size_t at;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *other = places->ptr + at + 1;
        size_t      len = strlen(other);
        if (other[-1] == HFSBI_PLACE_WRITE && len < strlen(path) &&
            memcmp(other, path, len) == 0 && (path[len] == '/' || len == 1))
            return true;
    }
    return false;
}

/* Adds a writable place that the environment names, unless it lies beneath one
   already added: it is writable anyway, and a command may have put a symlink
   there that leads out. False when there is no such place. */
static bool hfsbi_place_add_outer(hfsb_buf *places, const char *path) {
    char   part[PATH_MAX], real[PATH_MAX + 2];
    size_t i;
    for (i = 0; path && path[i] && i < sizeof part; i++) {
        if (path[i] == '/' && i > 0) {
            part[i] = '\0';
            if (!realpath(part, real)) return false;
            memcpy(real + strlen(real), "/.", 3);
            if (hfsbi_place_is_inner(places, real)) return true;
        }
        part[i] = path[i];
    }
    return hfsbi_place_add(places, HFSBI_PLACE_WRITE, path);
}

/* Adds caches, but nothing in them that is in PATH: ~/.cargo without its
   bin. */
static void hfsbi_places_caches(hfsb_buf *places) {
    static const char *const names[] = {".cache",
                                        ".npm",
                                        ".cargo/registry",
                                        ".cargo/git",
                                        ".cargo/.package-cache",
                                        ".cargo/.package-cache-mutate",
                                        ".local/share/uv"};
    const char              *home = getenv("HOME");
    char                     path[PATH_MAX];
    size_t                   i;
    for (i = 0; home && i < sizeof names / sizeof *names; i++) {
        int len = snprintf(path, sizeof path, "%s/%s", home, names[i]);
        if (len > 0 && (size_t)len < sizeof path)
            (void)hfsbi_place_add_outer(places, path);
    }
    (void)hfsbi_place_add_outer(places, getenv("XDG_CACHE_HOME"));
    (void)hfsbi_place_add_outer(places, getenv("HF_HOME"));
}

static void hfsbi_places_system(hfsb_buf *places) {
    static const char *const list[] = {"/usr",    "/bin",
                                       "/sbin",   "/lib",
                                       "/lib32",  "/lib64",
                                       "/libx32", "/etc",
                                       "/opt",    "/nix",
                                       "/gnu",    "/proc",
                                       "/sys",    "/run/current-system",
                                       NULL};
    hfsbi_places_add(places, HFSBI_PLACE_READ, list);
}

/* Hides services that run commands for every client that may connect. */
static void hfsbi_places_services(hfsb_buf *places) {
    static const char *const list[] = {"/run/docker.sock",
                                       "/run/containerd/containerd.sock",
                                       "/run/podman/podman.sock",
                                       "/run/crio/crio.sock",
                                       "/run/dbus/system_bus_socket",
                                       "/run/systemd/private",
                                       "/run/snapd.socket",
                                       "/run/libvirt/libvirt-sock",
                                       "/tmp/.X11-unix/X0",
                                       "/tmp/.X11-unix/X1"};
    static const char *const own[][2] = {
        {"/run/user/", "/bus"},         {"/run/user/", "/systemd"},
        {"/run/user/", "/docker.sock"}, {"/run/user/", "/podman"},
        {"/run/user/", "/emacs"},       {"/tmp/tmux-", "/default"}};
    char   path[64];
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        hfsbi_place_hide(places, list[i]);
    /* In a user namespace root's files seem to belong to nobody, and ssh
       refuses to include them. */
    if (geteuid() != 0) hfsbi_place_hide(places, "/etc/ssh/ssh_config.d");
    for (i = 0; i < sizeof own / sizeof *own; i++) {
        (void)snprintf(path, sizeof path, "%s%lu%s", own[i][0],
                       (unsigned long)geteuid(), own[i][1]);
        hfsbi_place_hide(places, path);
    }
}

/* True when a path is in a read-only (kept) place. */
static bool hfsbi_place_is_kept(const hfsb_buf *places, const char *path) {
    size_t at;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *kept = places->ptr + at + 1;
        size_t      len = strlen(kept);
        if (kept[-1] == HFSBI_PLACE_KEPT && strncmp(kept, path, len) == 0 &&
            (path[len] == '/' || path[len] == '\0'))
            return true;
    }
    return false;
}

/* Keeps the folder dir/name if commands could write it, and pins the folders
   above it. Others may have put something else there, in /tmp for example:
   dir/name itself must not be a symlink. */
static void hfsbi_place_keep(hfsb_buf *places, const char *dir,
                             const char *name) {
    char        path[PATH_MAX], real[PATH_MAX];
    struct stat st;
    size_t      i;
    int         len;
    if (!dir || *dir != '/') return;
    len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (len <= 0 || (size_t)len >= sizeof path || lstat(path, &st) != 0 ||
        !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        !realpath(path, real) || !hfsbi_place_is_inner(places, real) ||
        hfsbi_place_is_kept(places, real))
        return;
    for (i = 1; real[i]; i++) {
        if (real[i] != '/') continue;
        real[i] = '\0';
        if (hfsbi_place_is_inner(places, real))
            (void)hfsbi_place_add(places, HFSBI_PLACE_PINNED, real);
        real[i] = '/';
    }
    (void)hfsbi_place_add(places, HFSBI_PLACE_KEPT, real);
}

/* The folders of hfsb itself: the copies of hfsb-server that `hfsb --on` has
   sent here, which later run with the user's rights (the script in
   net/pipe.c), and the checkpoints of all roots, which undo what commands do;
   and `keep`. */
static void hfsbi_places_own(hfsb_buf *places, const char *keep) {
    const char *temp = getenv("TMPDIR");
    char        name[32];
    (void)snprintf(name, sizeof name, "hfsb-%lu", (unsigned long)geteuid());
    hfsbi_place_keep(places, getenv("XDG_STATE_HOME"), "hfsb");
    hfsbi_place_keep(places, getenv("HOME"), ".local/state/hfsb");
    hfsbi_place_keep(places, getenv("XDG_DATA_HOME"), "hfsb");
    hfsbi_place_keep(places, getenv("HOME"), ".local/share/hfsb");
    hfsbi_place_keep(places, temp && *temp ? temp : "/tmp", name);
    hfsbi_place_keep(places, keep, ".");
}

/* ---- secrets, for STRICT ---- */

HFSBI_FN bool hfsbi_confine_binds(const hfsb_confine *confine,
                                  hfsbi_bound         bound) {
    const hfsbi_quota *limits = &confine->limits;
    bool confined = hfsb_confine_level_of(confine) != HFSB_CONFINE_NONE;
    switch (bound) {
    case HFSBI_BOUND_MEMORY: return limits->memory != 0;
    case HFSBI_BOUND_PROCESSES: return limits->processes != 0;
    case HFSBI_BOUND_FILE_SIZE: return limits->file_size != 0;
    case HFSBI_BOUND_CPU: return limits->cpu != 0;
    case HFSBI_BOUND_NET:
        return confined && confine->net.mode != HFSBI_REACH_ON;
    case HFSBI_BOUND_FILES: break;
    }
    return confined;
}

HFSBI_FN unsigned long long hfsbi_confine_kills(const hfsb_confine *confine) {
    return hfsbi_quota_kills(&confine->limits);
}

HFSBI_FN bool hfsbi_confine_is_secret(hfsb_str name) {
    static const char *const starts[] = {
        "AWS_",      "AZURE_", "GOOGLE_",       "GCP_",
        "CLOUDSDK_", "ARM_",   "DIGITALOCEAN_", "KUBE"};
    static const char *const parts[] = {"TOKEN",  "SECRET",     "PASSWORD",
                                        "PASSWD", "CREDENTIAL", "API_KEY",
                                        "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"};
    static const char *const wholes[] = {
        "SSH_AUTH_SOCK",  "SSH_AGENT_PID",
        "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS",
        "DATABASE_URL",   "DOCKER_HOST"};
    size_t i;
    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (hfsb_str_starts(name, hfsb_cstr(starts[i]))) return true;
    for (i = 0; i < sizeof parts / sizeof *parts; i++)
        if (hfsb_str_find(name, hfsb_cstr(parts[i])) != HFSB_NPOS) return true;
    for (i = 0; i < sizeof wholes / sizeof *wholes; i++)
        if (hfsb_str_equal(name, hfsb_cstr(wholes[i]))) return true;
    return hfsb_str_ends(name, HFSB_LIT("_KEY"));
}

/* True for .env, .env.local ..., but not for those meant to be read. */
static bool hfsbi_is_env_file(const char *name) {
    static const char *const open_ones[] = {".example", ".sample", ".template",
                                            ".dist"};
    hfsb_str                 rest;
    size_t                   i;
    if (strncmp(name, ".env", 4) != 0 || (name[4] && name[4] != '.'))
        return false;
    rest = hfsb_cstr(name + 4);
    for (i = 0; i < sizeof open_ones / sizeof *open_ones; i++)
        if (hfsb_str_ends(rest, hfsb_cstr(open_ones[i]))) return false;
    return true;
}

/* Hides the .env files beneath dir. `left` bounds how many names are read. */
static void hfsbi_places_env(hfsb_buf *places, const char *dir, int depth,
                             int *left) {
    char           path[PATH_MAX];
    struct dirent *entry;
    struct stat    st;
    DIR           *list = opendir(dir);
    if (!list) return;
    while (*left > 0 && (entry = readdir(list)) != NULL) {
        const char *name = entry->d_name;
        int         len = snprintf(path, sizeof path, "%s/%s", dir, name);
        --*left;
        if (len <= 0 || (size_t)len >= sizeof path) continue;
        if (hfsbi_is_env_file(name) && stat(path, &st) == 0 &&
            !S_ISDIR(st.st_mode)) /* a folder .env is a Python venv */
            hfsbi_place_hide(places, path);
        else if (depth > 0 && name[0] != '.' &&
                 strcmp(name, "node_modules") != 0 && lstat(path, &st) == 0 &&
                 S_ISDIR(st.st_mode))
            hfsbi_places_env(places, path, depth - 1, left);
    }
    (void)closedir(list);
}

/* Keys and logins of the system, which only root can read, and of a home. */
static void hfsbi_places_secrets(hfsb_buf *places, const hfsb_buf *bases) {
    static const char *const list[] = {
        "/etc/shadow",   "/etc/shadow-",     "/etc/gshadow",
        "/etc/gshadow-", "/etc/ssl/private", "/etc/ssh",
        "/etc/sudoers",  "/etc/kubernetes",  "/etc/rancher"};
    static const char *const names[] = {".ssh",
                                        ".aws",
                                        ".azure",
                                        ".gnupg",
                                        ".kube",
                                        ".netrc",
                                        ".npmrc",
                                        ".pypirc",
                                        ".docker",
                                        ".git-credentials",
                                        ".config/gcloud",
                                        ".config/gh",
                                        ".cache/huggingface/token",
                                        ".huggingface"};
    char                     path[PATH_MAX];
    int                      left = 5000;
    size_t                   i, at;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        hfsbi_place_hide(places, list[i]);
    for (at = 0; at < bases->len; at += strlen(bases->ptr + at) + 1) {
        for (i = 0; i < sizeof names / sizeof *names; i++) {
            int len = snprintf(path, sizeof path, "%s/%s", bases->ptr + at,
                               names[i]);
            if (len > 0 && (size_t)len < sizeof path)
                hfsbi_place_hide(places, path);
        }
        hfsbi_places_env(places, bases->ptr + at, 4, &left);
        /* also one made later: hfsbi_confine_refresh() notices it */
        if (bases->ptr[at + 1])
            hfsb_buf_printf(places, "%c%s/.env%c", HFSBI_PLACE_HIDDEN_FILE,
                            bases->ptr + at, 0);
    }
}

/* True when commands may read this real path. */
static bool hfsbi_place_is_read(const hfsb_buf *places, const char *path) {
    size_t at;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *other = places->ptr + at + 1;
        size_t      len = strlen(other);
        if ((other[-1] == HFSBI_PLACE_READ ||
             other[-1] == HFSBI_PLACE_WRITE) &&
            strncmp(other, path, len) == 0 &&
            (path[len] == '/' || path[len] == '\0' || len == 1))
            return true;
    }
    return false;
}

/* The user's git settings are empty for commands that may not read them:
   access() reports that they can be read, and git exits when open() then
   fails. */
static void hfsbi_places_git(hfsb_buf *places) {
    static const char *const names[] = {".gitconfig", ".config/git/config",
                                        ".config/git/ignore",
                                        ".config/git/attributes"};
    const char              *home = getenv("HOME");
    char                     path[PATH_MAX], real[PATH_MAX];
    size_t                   i;
    if (!home || *home != '/') return;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        int len = snprintf(path, sizeof path, "%s/%s", home, names[i]);
        if (len > 0 && (size_t)len < sizeof path && realpath(path, real) &&
            !hfsbi_place_is_read(places, real))
            hfsbi_place_hide(places, real);
    }
}

/* ---- all places ---- */

/* Adds the folders that the options name, which must exist. */
static hfsb_status hfsbi_places_named(hfsb_buf *places, char use,
                                      const char *const *list, size_t count,
                                      hfsb_err *err) {
    size_t i;
    for (i = 0; i < count; i++) {
        char full[PATH_MAX];
        if (realpath(list[i], full) && hfsbi_place_add(places, use, full))
            continue;
        hfsbi_fail(err, HFSB_NOT_FOUND, 0, "Cannot allow commands to %s ",
                   use == HFSBI_PLACE_WRITE ? "write" : "read");
        hfsbi_err_quote(err, hfsb_cstr(list[i]), 400);
        hfsbi_err_add(err, ": %s", hfsbi_os_text(errno));
        return HFSB_NOT_FOUND;
    }
    return HFSB_OK;
}

/* Adds a folder that the guard checks. It stays open: a command may put
   another one in its place. */
static void hfsbi_confine_add_base(hfsb_confine *c, const char *path) {
    int fd;
    if (c->base_count == HFSBI_BASES) return;
    fd = hfsbi_raise(open(path, HFSBI_O_SEARCH), HFSBI_CONFINE_FD);
    if (fd < 0) return;
    if (hfsb_buf_append(&c->bases, hfsb_str_make(path, strlen(path) + 1)) ==
        HFSB_OK)
        c->base_fds[c->base_count++] = fd;
    else hfsbi_close(&fd);
}

/* The guard checks where commands work, */
static void hfsbi_confine_add_bases(hfsb_confine *c) {
    const hfsb_buf *places = &c->places;
    size_t          at;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1)
        if (places->ptr[at] == HFSBI_PLACE_WRITE)
            hfsbi_confine_add_base(c, places->ptr + at + 1);
}

/* ... and in the home if they may write it: it may be beneath any place. */
static void hfsbi_confine_add_home(hfsb_confine *c) {
    const char *home = getenv("HOME");
    char        real[PATH_MAX];
    if (home && *home == '/' && realpath(home, real) &&
        hfsbi_place_is_inner(&c->places, real))
        hfsbi_confine_add_base(c, real);
}

/* The roots first, so that the guard checks these and not caches. */
static hfsb_status hfsbi_confine_places(hfsb_confine            *c,
                                        const hfsb_confine_opts *o, bool bare,
                                        hfsb_err *err) {
    hfsb_buf   *places = &c->places;
    size_t      n;
    hfsb_status st;
    hfsbi_places_devices(places);
    if (bare) return places->status;
    st = hfsbi_places_named(places, HFSBI_PLACE_WRITE, o->dirs, o->dir_count,
                            err);
    if (st == HFSB_OK)
        st = hfsbi_places_named(places, HFSBI_PLACE_WRITE, o->allow_write,
                                o->allow_write_count, err);
    if (st != HFSB_OK) return st;
    hfsbi_confine_add_bases(c);
    if (!o->no_temp) {
        if (!hfsbi_place_add_outer(places, getenv("TMPDIR")))
            (void)hfsbi_place_add(places, HFSBI_PLACE_WRITE, "/tmp");
        (void)hfsbi_place_add(places, HFSBI_PLACE_WRITE, "/dev/shm");
    }
    hfsbi_confine_add_home(c);
    if (c->level == HFSB_CONFINE_STRICT) {
        hfsbi_places_system(places);
        st = hfsbi_places_named(places, HFSBI_PLACE_READ, o->allow_read,
                                o->allow_read_count, err);
        hfsbi_places_secrets(places, &c->bases);
        hfsbi_places_git(places);
    } else {
        hfsbi_places_caches(places);
        hfsbi_places_accelerators(places);
    }
    for (n = 0; hfsbi_guard_name(n); n++) {
        size_t at;
        for (at = 0; at < c->bases.len; at += strlen(c->bases.ptr + at) + 1)
            hfsbi_place_add_in(places, HFSBI_PLACE_KEPT, c->bases.ptr + at,
                               hfsbi_guard_name(n));
    }
    hfsbi_places_own(places, o->keep);
    hfsbi_places_services(places);
    if (st == HFSB_OK && (places->status || c->bases.status))
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Confinement");
    return st;
}

/* ---- network ---- */

static hfsb_status hfsbi_reach_parse(const char        *text,
                                     hfsb_confine_level level,
                                     hfsbi_reach *net, hfsb_err *err) {
    hfsb_str rest = hfsb_cstr(text), item;
    if (!text) {
        net->mode =
            level == HFSB_CONFINE_STRICT ? HFSBI_REACH_OFF : HFSBI_REACH_ON;
        return HFSB_OK;
    }
    if (strcmp(text, "on") == 0) return HFSB_OK;
    net->mode = strcmp(text, "off") == 0        ? HFSBI_REACH_OFF
                : strcmp(text, "loopback") == 0 ? HFSBI_REACH_LOOPBACK
                                                : HFSBI_REACH_PORTS;
    if (net->mode != HFSBI_REACH_PORTS) return HFSB_OK;
    while (hfsbi_list_next(&rest, ',', &item)) {
        unsigned long long port;
        if (!item.len || hfsbi_read_decimal(item, 65535, &port) != item.len ||
            port < 1 || net->port_count == HFSBI_REACH_PORTS_MAX)
            break;
        net->ports[net->port_count++] = (unsigned short)port;
        net->datagrams = net->datagrams || port == 53;
        item.len = 0;
    }
    if (net->port_count && !item.len) return HFSB_OK;
    hfsbi_fail(err, HFSB_ARG, 0,
               "The network must be on, off, loopback, or "
               "up to 32 ports such as 443,80, not \"");
    hfsbi_err_quote(err, hfsb_cstr(text), 80);
    hfsbi_err_add(err, "\".");
    return HFSB_ARG;
}

/* ---- open ---- */

/* False with *err when the system lacks what the options need. */
static bool hfsbi_confine_check(const hfsb_confine      *c,
                                const hfsb_confine_opts *o, hfsb_err *err) {
    const char *lacks = NULL, *hint = "";
    if (c->ruleset < 0 && o->level == HFSB_CONFINE_STRICT)
        lacks = "Commands cannot be confined strictly: this system has no "
                "Landlock (Linux 5.13 or later)";
    else if (c->ruleset < 0 && !o->if_possible)
        lacks = "Commands cannot be confined: this system has no Landlock "
                "(Linux 5.13 or later)";
    else if (c->net.mode == HFSBI_REACH_LOOPBACK && c->spaces.net < 0)
        lacks = "Commands cannot have a network of their own: the system "
                "refuses namespaces";
    else if (c->net.mode == HFSBI_REACH_PORTS &&
             (c->abi < 4 || !c->filter.count))
        lacks = "The network cannot be limited to ports: that needs Landlock "
                "of Linux 6.7 or later, and seccomp";
    else if (c->net.mode == HFSBI_REACH_OFF && !c->filter.count &&
             c->spaces.net < 0)
        lacks = "The network cannot be switched off: the system has neither "
                "seccomp filters nor namespaces";
    if (!lacks) return true;
    if (c->ruleset < 0) hint = ". Run them in a container, or allow all";
    (void)hfsbi_fail(err, HFSB_REFUSED, 0, "%s%s.", lacks, hint);
    return false;
}

/* A number computed from the inodes of the files that mounts cover. */
static unsigned long long hfsbi_confine_covered(const hfsb_confine *c) {
    const hfsb_buf    *places = &c->places;
    unsigned long long hash = HFSB_FNV_START;
    size_t             at;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        unsigned long long inode = 0;
        struct stat        st;
        if (places->ptr[at] != HFSBI_PLACE_KEPT &&
            places->ptr[at] != HFSBI_PLACE_HIDDEN_FILE)
            continue;
        if (lstat(places->ptr + at + 1, &st) == 0)
            inode = (unsigned long long)st.st_ino;
        hash = hfsb_fnv_add(hash,
                            hfsb_str_make((const char *)&inode, sizeof inode));
    }
    return hash;
}

HFSBI_FN hfsb_status hfsbi_confine_refresh(hfsb_confine *confine,
                                           hfsb_err     *err) {
    hfsbi_namespaces   fresh;
    unsigned long long covered;
    if (!confine || confine->spaces.mounts < 0) return HFSB_OK;
    covered = hfsbi_confine_covered(confine);
    if (covered == confine->covered) return HFSB_OK;
    if (!hfsbi_namespaces_open(&fresh, &confine->places,
                               confine->spaces.net >= 0, confine->other_users))
        return confine->if_possible
                   ? HFSB_OK
                   : hfsbi_fail_os(err, errno,
                                   "The command was not run: a file that it "
                                   "must not touch was replaced, and cannot "
                                   "be covered again");
    hfsbi_namespaces_close(&confine->spaces);
    confine->spaces = fresh;
    confine->covered = covered;
    return HFSB_OK;
}

/* Prepares each mechanism as far as the kernel has it. */
static bool hfsbi_confine_mechanisms(hfsb_confine            *c,
                                     const hfsbi_confine_how *how) {
    bool filter = hfsbi_seccomp_works();
    bool network = c->net.mode == HFSBI_REACH_LOOPBACK ||
                   (c->net.mode == HFSBI_REACH_OFF && !filter);
    c->abi = how->max_abi < 0 ? 0 : hfsbi_landlock_abi();
    if (how->max_abi > 0 && c->abi > how->max_abi) c->abi = how->max_abi;
    if (c->abi > 0) {
        c->ruleset =
            hfsbi_landlock_open(c->abi, c->level, &c->places, &c->net);
        if (c->ruleset < 0 && (errno == EMFILE || errno == ENFILE))
            return false;
    }
    if (c->ruleset < 0) c->abi = 0;
    if (filter && !hfsbi_seccomp_build(&c->filter, &c->net, c->ruleset >= 0))
        c->filter.count = 0;
    if (how->bare || how->no_spaces) return true;
    c->covered = hfsbi_confine_covered(c);
    (void)hfsbi_namespaces_open(&c->spaces, &c->places, network,
                                c->other_users);
    return true;
}

static void hfsbi_confine_put_net(const hfsbi_reach *net, hfsb_buf *out) {
    static const char *const names[] = {"on", "off", "loopback", "TCP port"};
    size_t                   i;
    hfsb_buf_printf(out, "; network %s", names[net->mode]);
    for (i = 0; i < net->port_count; i++)
        hfsb_buf_printf(out, "%s%u", i ? "," : " ", net->ports[i]);
    if (net->datagrams) hfsb_buf_printf(out, " and UDP");
}

/* Writes the line of hfsb_confine_text(). */
static void hfsbi_confine_put_text(hfsb_confine *c) {
    hfsb_buf *out = &c->text;
    bool      write = c->level == HFSB_CONFINE_WRITE;
    if (c->level == HFSB_CONFINE_NONE) return;
    hfsb_buf_printf(out, "commands are confined (%s): ",
                    hfsb_confine_level_name(c->level));
    if (c->abi) hfsb_buf_printf(out, "Landlock ABI %d", c->abi);
    else hfsb_buf_printf(out, "no Landlock");
    hfsb_buf_printf(out, ", %sseccomp, ", c->filter.count ? "" : "no ");
    if (c->spaces.mounts >= 0) hfsb_buf_printf(out, "private mounts");
    else
        hfsb_buf_printf(out,
                        "no private mounts (git hooks and the like are "
                        "checked after each command; chmod is not "
                        "confined%s)",
                        write ? "" : "; .env files can be read");
    if (c->limits.join >= 0) hfsb_buf_printf(out, ", cgroup");
    hfsbi_confine_put_net(&c->net, out);
}

/* Appends a list of texts, each and the whole ended by NUL. */
static void hfsbi_confine_put_list(const char *const *list, size_t count,
                                   hfsb_buf *out) {
    size_t i;
    for (i = 0; i < count; i++)
        hfsb_buf_append(out, hfsb_str_make(list[i], strlen(list[i]) + 1));
    hfsb_buf_append_byte(out, '\0');
}

/* Writes all options except the allocator into one text. */
static hfsb_status hfsbi_confine_put_options(const hfsb_confine_opts *o,
                                             hfsb_buf                *out) {
    hfsb_buf_printf(out, "%d %d %d %d %llu %llu %llu %llu %s%c", (int)o->level,
                    o->if_possible ? 1 : 0, o->no_temp ? 1 : 0,
                    o->other_users ? 1 : 0, o->max_memory, o->max_processes,
                    o->max_file_size, o->max_cpu, o->net ? o->net : "", 0);
    hfsbi_confine_put_list(o->dirs, o->dir_count, out);
    hfsbi_confine_put_list(o->allow_write, o->allow_write_count, out);
    hfsbi_confine_put_list(o->allow_read, o->allow_read_count, out);
    hfsbi_confine_put_list(&o->keep, o->keep ? 1 : 0, out);
    return out->status;
}

HFSBI_FN bool hfsbi_confine_is_like(const hfsb_confine      *confine,
                                    const hfsb_confine_opts *opts) {
    hfsb_buf text = HFSB_INIT;
    bool     like;
    text.alloc = opts->alloc;
    like =
        opts->alloc.fn == confine->alloc.fn &&
        opts->alloc.user == confine->alloc.user &&
        hfsbi_confine_put_options(opts, &text) == HFSB_OK &&
        hfsb_str_equal(hfsb_buf_str(&text), hfsb_buf_str(&confine->options));
    hfsb_buf_free(&text);
    return like;
}

static hfsb_status hfsbi_confine_fill(hfsb_confine            *c,
                                      const hfsb_confine_opts *o,
                                      const hfsbi_confine_how *how,
                                      hfsb_err                *err) {
    hfsb_status st = hfsbi_reach_parse(o->net, o->level, &c->net, err);
    if (st == HFSB_OK && hfsbi_confine_put_options(o, &c->options) != HFSB_OK)
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Confinement");
    if (st != HFSB_OK) return st;
    hfsbi_quota_open(&c->limits, o, how->bare);
    if (o->level == HFSB_CONFINE_NONE) {
        if (c->net.mode == HFSBI_REACH_ON) return HFSB_OK;
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The network can be limited only for commands that "
                          "are confined: level write or strict.");
    }
    st = hfsbi_confine_places(c, o, how->bare, err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_confine_mechanisms(c, how))
        return hfsbi_fail_os(err, errno, "Commands cannot be confined");
    if (!hfsbi_confine_check(c, o, err)) return HFSB_REFUSED;
    if (c->ruleset < 0 && c->spaces.mounts < 0 && !c->filter.count)
        c->level = HFSB_CONFINE_NONE;
    hfsbi_confine_put_text(c);
    if (c->text.status == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Confinement");
}

HFSBI_FN hfsb_status hfsbi_confine_open(const hfsb_confine_opts *opts,
                                        const hfsbi_confine_how *how,
                                        hfsb_confine **out, hfsb_err *err) {
    hfsb_confine *c = (hfsb_confine *)hfsbi_array(&opts->alloc, 1, sizeof *c);
    hfsb_status   st;
    *out = NULL;
    if (!c) return hfsbi_fail_status(err, HFSB_NOMEM, "Confinement");
    memset(c, 0, sizeof *c);
    c->alloc = c->places.alloc = c->bases.alloc = c->text.alloc = opts->alloc;
    c->options.alloc = opts->alloc;
    c->users = 1;
    c->level = opts->level;
    c->if_possible = opts->if_possible;
    c->other_users = opts->other_users;
    c->ruleset = c->limits.join = c->limits.above = -1;
    c->spaces.user = c->spaces.mounts = c->spaces.net = -1;
    st = hfsbi_confine_fill(c, opts, how, err);
    if (st != HFSB_OK) {
        hfsb_confine_close(c);
        return st;
    }
    *out = c;
    return hfsbi_ok(err);
}

hfsb_status hfsb_confine_open(const hfsb_confine_opts *opts,
                              hfsb_confine **out, hfsb_err *err) {
    hfsbi_confine_how how = HFSB_INIT;
    return hfsbi_confine_open(opts, &how, out, err);
}

void hfsb_confine_close(hfsb_confine *confine) {
    hfsb_alloc alloc;
    if (!confine || --confine->users > 0) return;
    alloc = confine->alloc;
    while (confine->base_count > 0)
        hfsbi_close(&confine->base_fds[--confine->base_count]);
    hfsbi_close(&confine->ruleset);
    hfsbi_namespaces_close(&confine->spaces);
    hfsbi_quota_close(&confine->limits);
    hfsb_buf_free(&confine->places);
    hfsb_buf_free(&confine->bases);
    hfsb_buf_free(&confine->text);
    hfsb_buf_free(&confine->options);
    hfsbi_array_free(&alloc, confine, 1, sizeof *confine);
}

/* ---- reports ---- */

hfsb_confine_level hfsb_confine_level_of(const hfsb_confine *confine) {
    return confine ? confine->level : HFSB_CONFINE_NONE;
}

HFSBI_FN bool hfsbi_confine_keeps(const hfsb_confine *confine,
                                  const char         *path) {
    return !hfsbi_place_is_inner(&confine->places, path) ||
           (confine->spaces.mounts >= 0 &&
            hfsbi_place_is_kept(&confine->places, path));
}

HFSBI_FN bool hfsbi_confine_reaches(const hfsb_confine *confine,
                                    unsigned            port) {
    const hfsbi_reach *net = confine ? &confine->net : NULL;
    size_t             i;
    if (!net || net->mode == HFSBI_REACH_ON) return true;
    for (i = 0; net->mode == HFSBI_REACH_PORTS && i < net->port_count; i++)
        if (net->ports[i] == port) return true;
    return false;
}

const char *hfsb_confine_text(const hfsb_confine *confine) {
    return confine && confine->text.len ? confine->text.ptr : "";
}

const char *hfsb_confine_level_name(hfsb_confine_level level) {
    static const char *const names[] = {"none", "write", "strict"};
    return names[level];
}

bool hfsb_confine_level_find(hfsb_str name, hfsb_confine_level *out) {
    int i;
    for (i = HFSB_CONFINE_NONE; i <= HFSB_CONFINE_STRICT; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsb_confine_level_name(
                                     (hfsb_confine_level)i)))) {
            *out = (hfsb_confine_level)i;
            return true;
        }
    return false;
}

HFSBI_FN void hfsbi_confine_describe(const hfsb_confine *confine,
                                     hfsb_buf           *out) {
    static const char *const nets[] = {"", " They have no network.",
                                       " Their network is loopback only.",
                                       " They can use a few TCP ports only."};
    size_t                   at, shown = 0;
    if (hfsb_confine_level_of(confine) == HFSB_CONFINE_NONE) return;
    hfsb_buf_printf(out, " Commands are confined: they write only beneath");
    for (at = 0; at < confine->places.len && shown < 4;
         at += strlen(confine->places.ptr + at) + 1) {
        const char *place = confine->places.ptr + at;
        if (strcmp(place, "w/dev/shm") == 0) break; /* caches follow */
        if (*place != HFSBI_PLACE_WRITE) continue;
        hfsb_buf_printf(out, "%s %s", shown++ ? "," : "", place + 1);
    }
    if (confine->level == HFSB_CONFINE_STRICT)
        hfsb_buf_printf(out, ", read only that and system folders");
    else hfsb_buf_printf(out, " and tool caches");
    hfsb_buf_printf(out,
                    ", and reach processes of earlier calls only by the "
                    "kill tool.%s",
                    nets[confine->net.mode]);
}

/* ---- in the child ---- */

HFSBI_FN bool hfsbi_confine_enter(const hfsb_confine *confine, int leaf,
                                  bool inside, unsigned uid) {
    bool none = confine->level == HFSB_CONFINE_NONE;
    if (!hfsbi_quota_enter(&confine->limits, leaf, inside)) return false;
    if (!none && !hfsbi_namespaces_enter(&confine->spaces)) return false;
    if (uid && !hfsbi_uid_enter(uid)) return false;
    if (none) return true;
#ifdef HFSBI_LINUX
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0) return false;
#endif
    return hfsbi_landlock_enter(confine->ruleset) &&
           hfsbi_seccomp_enter(&confine->filter);
}
