/* store.c - the folder that holds the checkpoints of one root.

       lock                  locked by whoever works in the store
       root                  the path of the root, for people
       .gitignore            so that searches leave the store out
       state                 hfsbi_store_state
       checkpoints/00000007  a state of the root: its paths, and which object
                             has the content of each file
       objects/ab/cdef...    a content, named by its SHA-256
       new-1234-5            a file that is being written

   Every file is written under another name and renamed, and never changed
   afterwards: a process that dies leaves the old state or the new one, and
   perhaps a "new-" file, which the next sweep removes. Objects are clones
   where the file system can (reflinks), else copies. They are never hard links
   to the files of the root: a program that writes to its file in place would
   change the object too. Nothing is synced to the disk: a checkpoint survives
   the end of this process, but not always a crash of the machine. An object
   damaged by such a crash is detected by its digest before it is used.

   Only its owner can read the store. If it lies in the root, the deny list
   names it (history.c), and confined commands cannot write it where the kernel
   can enforce that. Functions that return int return 0 or an errno. */
#include "history_private.h"

enum {
    HFSBI_STORE_SMALL = 256 * 1024, /* bytes: hashed before it is written */
    HFSBI_STORE_FILE = 1 << 30,     /* longest file that is read whole */
    HFSBI_STORE_PATIENCE = 5        /* times as long as HFSBI_TRIES */
};

#define HFSBI_OBJECT_NAME (sizeof "objects/ab/" + HFSB_SHA256_HEX)

/* ---- open and close ---- */

/* Makes each folder of the path, for us alone, and opens the last. */
static int hfsbi_store_make(const char *path, int *fd) {
    char   part[PATH_MAX];
    size_t i, len = strlen(path);
    if (len >= sizeof part) return ENAMETOOLONG;
    for (i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EISDIR &&
            errno != EROFS && errno != EACCES && errno != EPERM)
            return errno;
    }
    *fd = hfsbi_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return *fd < 0 ? errno : 0;
}

/* Appends the folder of all stores. */
static int hfsbi_store_base(const char *base, hfsb_buf *out) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char        here[PATH_MAX];
    if (base && *base) {
        if (*base != '/') {
            if (!getcwd(here, sizeof here)) return errno;
            hfsb_buf_printf(out, "%s/", here);
        }
        hfsb_buf_printf(out, "%s", base);
    } else if (state && *state == '/') {
        hfsb_buf_printf(out, "%s/hfsb/undo", state);
    } else if (home && *home == '/') {
        hfsb_buf_printf(out, "%s/.local/state/hfsb/undo", home);
    } else {
        return ENOENT;
    }
    return out->status == HFSB_OK ? 0 : ENOMEM;
}

/* Nobody else must be able to change what an undo writes. */
static int hfsbi_store_check(int dir) {
    struct stat st;
    if (fstat(dir, &st) != 0) return errno;
    return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : EPERM;
}

static int hfsbi_store_mkdir(const hfsbi_store *store, const char *name) {
    return mkdirat(store->dir, name, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/* Writes a file of the store unless there is one. */
static int hfsbi_store_begin(hfsbi_store *store, const char *name,
                             hfsb_str text) {
    if (faccessat(store->dir, name, F_OK, 0) == 0) return 0;
    return hfsbi_store_write(store, name, &text, 1);
}

HFSBI_FN int hfsbi_store_open(hfsbi_store *store, const char *base,
                              hfsb_str root, bool create,
                              const hfsb_alloc *alloc) {
    char hex[HFSB_SHA256_HEX];
    int  code;
    memset(store, 0, sizeof *store);
    store->dir = store->lock = -1;
    store->alloc = store->path.alloc = store->block.alloc = *alloc;
    code = hfsbi_store_base(base, &store->path);
    hfsb_sha256_hex(root, hex);
    if (code == 0 && hfsb_buf_printf(&store->path, "/%.24s", hex) != HFSB_OK)
        code = ENOMEM;
    if (code == 0 && !create && access(store->path.ptr, F_OK) != 0)
        code = errno;
    if (code == 0) code = hfsbi_store_make(store->path.ptr, &store->dir);
    if (code == 0) code = hfsbi_store_check(store->dir);
    if (code == 0) code = hfsbi_store_mkdir(store, "objects");
    if (code == 0) code = hfsbi_store_mkdir(store, "checkpoints");
    if (code != 0) return code;
    store->lock = hfsbi_openat(store->dir, "lock", O_RDWR | O_CREAT, 0600);
    if (store->lock < 0) return errno;
    code = hfsbi_store_begin(store, ".gitignore", HFSB_LIT("*\n"));
    return code == 0 ? hfsbi_store_begin(store, "root", root) : code;
}

HFSBI_FN void hfsbi_store_close(hfsbi_store *store) {
    hfsbi_close(&store->lock);
    hfsbi_close(&store->dir);
    hfsb_buf_free(&store->path);
    hfsb_buf_free(&store->block);
}

HFSBI_FN int hfsbi_store_lock(hfsbi_store *store) {
    unsigned tries;
    for (tries = 0; flock(store->lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return 0; /* no locks here */
        if (tries == HFSBI_TRIES * HFSBI_STORE_PATIENCE) return EWOULDBLOCK;
        hfsbi_pause(tries);
    }
    return 0;
}

HFSBI_FN void hfsbi_store_unlock(hfsbi_store *store) {
    (void)flock(store->lock, LOCK_UN);
}

/* ---- files of the store ---- */

/* Opens a new file under a name of its own. */
static int hfsbi_store_temp(hfsbi_store *store, char temp[64], int *fd) {
    do {
        (void)snprintf(temp, 64, "new-%ld-%lu", (long)getpid(),
                       ++store->temps);
        *fd = hfsbi_openat(store->dir, temp, O_RDWR | O_CREAT | O_EXCL, 0600);
    } while (*fd < 0 && errno == EEXIST);
    return *fd < 0 ? errno : 0;
}

/* Gives a new file its name, or removes it after a failure. */
static int hfsbi_store_name(hfsbi_store *store, const char *temp,
                            const char *name, int code) {
    if (code == 0 && renameat(store->dir, temp, store->dir, name) != 0)
        code = errno;
    if (code != 0) (void)unlinkat(store->dir, temp, 0);
    return code;
}

HFSBI_FN int hfsbi_store_write(hfsbi_store *store, const char *name,
                               const hfsb_str *parts, size_t count) {
    char   temp[64];
    int    fd = -1, code = hfsbi_store_temp(store, temp, &fd);
    size_t i;
    if (code != 0) return code;
    for (i = 0; code == 0 && i < count; i++)
        if (!hfsbi_write_all(fd, parts[i])) code = errno;
    hfsbi_close(&fd);
    return hfsbi_store_name(store, temp, name, code);
}

HFSBI_FN int hfsbi_store_read(const hfsbi_store *store, const char *name,
                              hfsb_buf *out) {
    struct stat st;
    int         code = 0, fd = hfsbi_entry_open(store->dir, name, &st);
    ssize_t     n = 1;
    if (fd < 0) return errno;
    if (st.st_size > HFSBI_STORE_FILE) code = EFBIG;
    if (code == 0 && hfsb_buf_reserve(out, (size_t)st.st_size + 1) != HFSB_OK)
        code = ENOMEM;
    while (code == 0 && n > 0 && out->cap - out->len > 1) {
        n = hfsbi_read(fd, out->ptr + out->len, out->cap - out->len - 1);
        if (n < 0) code = errno;
        if (n > 0) out->len += (size_t)n;
    }
    hfsbi_close(&fd);
    return code;
}

HFSBI_FN int hfsbi_store_remove(hfsbi_store *store, const char *name) {
    struct stat st;
    if (fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        unlinkat(store->dir, name, 0) != 0)
        return errno;
    store->bytes -= store->bytes < (unsigned long long)st.st_size
                        ? store->bytes
                        : (unsigned long long)st.st_size;
    return 0;
}

HFSBI_FN int hfsbi_store_read_state(const hfsbi_store *store,
                                    hfsbi_store_state *state) {
    hfsb_buf text = HFSB_INIT;
    int      code;
    memset(state, 0, sizeof *state);
    text.alloc = store->alloc;
    code = hfsbi_store_read(store, "state", &text);
    if (code == 0 && text.len == sizeof *state) {
        memcpy(state, text.ptr, sizeof *state);
        state->undo_path[PATH_MAX - 1] = '\0';
    }
    hfsb_buf_free(&text);
    return code == ENOENT ? 0 : code;
}

HFSBI_FN int hfsbi_store_write_state(hfsbi_store             *store,
                                     const hfsbi_store_state *state) {
    hfsb_str part = hfsb_str_make((const char *)state, sizeof *state);
    return hfsbi_store_write(store, "state", &part, 1);
}

/* ---- objects ---- */

static void hfsbi_object_name(const unsigned char *digest,
                              char                 name[HFSBI_OBJECT_NAME]) {
    static const char digits[] = "0123456789abcdef";
    char             *out = name + sizeof "objects/" - 1;
    size_t            i;
    memcpy(name, "objects/", sizeof "objects/");
    for (i = 0; i < HFSB_SHA256_SIZE; i++) {
        *out++ = digits[digest[i] >> 4];
        *out++ = digits[digest[i] & 15];
        if (i == 0) *out++ = '/';
    }
    *out = '\0';
}

/* True when the object is there. One of another size was left by a crash of
   the machine. */
static bool hfsbi_object_exists(const hfsbi_store *store, const char *name,
                                unsigned long long size) {
    struct stat st;
    return fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (unsigned long long)st.st_size == size;
}

/* Names a new file that has the content of an object. */
static int hfsbi_object_add(hfsbi_store *store, const char *temp,
                            const char *name, unsigned long long size) {
    char folder[sizeof "objects/ab"];
    int  code = 0;
    memcpy(folder, name, sizeof folder - 1);
    folder[sizeof folder - 1] = '\0';
    if (renameat(store->dir, temp, store->dir, name) != 0) {
        code = errno == ENOENT ? hfsbi_store_mkdir(store, folder) : errno;
        code = hfsbi_store_name(store, temp, name, code);
    }
    if (code == 0) store->bytes += size;
    return code;
}

static int hfsbi_object_write(hfsbi_store *store, hfsb_str content,
                              const char *name) {
    char temp[64];
    int  fd = -1, code = hfsbi_store_temp(store, temp, &fd);
    if (code != 0) return code;
    if (!hfsbi_write_all(fd, content)) code = errno;
    hfsbi_close(&fd);
    if (code != 0) return hfsbi_store_name(store, temp, name, code);
    return hfsbi_object_add(store, temp, name, content.len);
}

/* Stores a file that does not fit in the block: copies it while hashing. */
static int hfsbi_store_put_large(hfsbi_store *store, int fd,
                                 unsigned long long max,
                                 unsigned char      digest[HFSB_SHA256_SIZE]) {
    char               temp[64], name[HFSBI_OBJECT_NAME];
    unsigned long long bytes = 0;
    int                to = -1, code = hfsbi_store_temp(store, temp, &to);
    if (code != 0) return code;
    code = hfsbi_fd_copy(fd, to, max, digest, &bytes);
    hfsbi_close(&to);
    if (code == 0) hfsbi_object_name(digest, name);
    if (code != 0 || hfsbi_object_exists(store, name, bytes)) {
        (void)unlinkat(store->dir, temp, 0);
        return code;
    }
    return hfsbi_object_add(store, temp, name, bytes);
}

HFSBI_FN int hfsbi_store_put(hfsbi_store *store, int fd,
                             unsigned long long max,
                             unsigned char      digest[HFSB_SHA256_SIZE]) {
    char        name[HFSBI_OBJECT_NAME];
    hfsb_buf   *b = &store->block;
    hfsb_sha256 sha;
    ssize_t     n = 1;
    hfsb_buf_truncate(b, 0);
    if (hfsb_buf_reserve(b, HFSBI_STORE_SMALL + 1) != HFSB_OK) return ENOMEM;
    while (n > 0 && b->len <= HFSBI_STORE_SMALL) {
        n = hfsbi_read_file(fd, b->ptr + b->len,
                            HFSBI_STORE_SMALL + 1 - b->len);
        if (n < 0) return errno;
        b->len += (size_t)n;
    }
    if (b->len > HFSBI_STORE_SMALL)
        return hfsbi_store_put_large(store, fd, max, digest);
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(b));
    hfsb_sha256_finish(&sha, digest);
    hfsbi_object_name(digest, name);
    if (hfsbi_object_exists(store, name, b->len)) return 0;
    return hfsbi_object_write(store, hfsb_buf_str(b), name);
}

HFSBI_FN int hfsbi_store_get(const hfsbi_store  *store,
                             const unsigned char digest[HFSB_SHA256_SIZE]) {
    char        name[HFSBI_OBJECT_NAME];
    struct stat st;
    hfsbi_object_name(digest, name);
    return hfsbi_entry_open(store->dir, name, &st);
}

/* ---- lists ---- */

/* Calls fn for each name in a folder of the store. */
static int hfsbi_store_each(const hfsbi_store *store, const char *folder,
                            int (*fn)(void *user, int dir, const char *name),
                            void *user) {
    int  fd = hfsbi_openat(store->dir, folder, O_RDONLY | O_DIRECTORY, 0);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    int            code = 0;
    if (!list) {
        code = errno;
        hfsbi_close(&fd);
        return code;
    }
    while (code == 0 && (e = readdir(list)) != NULL)
        if (e->d_name[0] != '.') code = fn(user, fd, e->d_name);
    (void)closedir(list);
    return code;
}

typedef struct hfsbi_numbers {
    uint64_t        **list;
    size_t           *count, *cap;
    const hfsb_alloc *alloc;
} hfsbi_numbers;

static int hfsbi_numbers_add(void *user, int dir, const char *name) {
    hfsbi_numbers     *n = (hfsbi_numbers *)user;
    unsigned long long number;
    uint64_t          *grown;
    (void)dir;
    if (hfsbi_read_decimal(hfsb_cstr(name), 1ull << 53, &number) !=
            strlen(name) ||
        number == 0)
        return 0;
    grown = (uint64_t *)hfsbi_array_grow(n->alloc, *n->list, n->cap,
                                         *n->count + 1, sizeof *grown);
    if (!grown) return ENOMEM;
    *n->list = grown;
    grown[(*n->count)++] = number;
    return 0;
}

static int hfsbi_compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

HFSBI_FN int hfsbi_store_list(const hfsbi_store *store, uint64_t **list,
                              size_t *count, size_t *cap) {
    hfsbi_numbers n;
    int           code;
    *list = NULL;
    *count = *cap = 0;
    n.list = list;
    n.count = count;
    n.cap = cap;
    n.alloc = &store->alloc;
    code = hfsbi_store_each(store, "checkpoints", hfsbi_numbers_add, &n);
    if (*count)
        hfsbi_sort(*list, *count, sizeof **list, hfsbi_compare_numbers);
    return code;
}

/* Calls fn for each object. */
static int hfsbi_store_objects(const hfsbi_store *store,
                               int (*fn)(void *user, int dir,
                                         const char *name),
                               void *user) {
    char     folder[sizeof "objects/ab"];
    unsigned i;
    int      code = 0;
    for (i = 0; code == 0 && i < 256; i++) {
        (void)snprintf(folder, sizeof folder, "objects/%02x", i & 255u);
        code = hfsbi_store_each(store, folder, fn, user);
        if (code == ENOENT) code = 0;
    }
    return code;
}

static int hfsbi_store_add_size(void *user, int dir, const char *name) {
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        *(unsigned long long *)user += (unsigned long long)st.st_size;
    return 0;
}

HFSBI_FN int hfsbi_store_count(hfsbi_store *store) {
    unsigned long long bytes = 0;
    int                code;
    if (store->counted) return 0;
    code = hfsbi_store_objects(store, hfsbi_store_add_size, &bytes);
    if (code == 0)
        code = hfsbi_store_each(store, "checkpoints", hfsbi_store_add_size,
                                &bytes);
    store->counted = code == 0;
    if (code == 0) store->bytes = bytes;
    return code;
}

/* ---- sweep ---- */

typedef struct hfsbi_store_broom {
    bool (*keep)(void *user, const unsigned char *digest);
    void         *user;
    unsigned char first; /* byte of the digests in this folder */
    unsigned char digest[HFSB_SHA256_SIZE];
} hfsbi_store_broom;

/* Removes an object that is not wanted, and anything that is not an object. */
static int hfsbi_broom_object(void *user, int dir, const char *name) {
    hfsbi_store_broom *b = (hfsbi_store_broom *)user;
    size_t             i;
    bool               valid = strlen(name) == 2 * HFSB_SHA256_SIZE - 2;
    b->digest[0] = b->first;
    for (i = 1; valid && i < HFSB_SHA256_SIZE; i++) {
        int high = hfsbi_hex_digit(name[2 * i - 2]);
        int low = hfsbi_hex_digit(name[2 * i - 1]);
        valid = high >= 0 && low >= 0;
        if (valid) b->digest[i] = (unsigned char)(high * 16 + low);
    }
    if (valid && b->keep(b->user, b->digest)) return 0;
    return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

/* Under the lock of the store every "new-" file belongs to a dead process. */
static int hfsbi_broom_temp(void *user, int dir, const char *name) {
    (void)user;
    if (hfsb_str_starts(hfsb_cstr(name), HFSB_LIT("new-")))
        (void)unlinkat(dir, name, 0);
    return 0;
}

HFSBI_FN int hfsbi_store_sweep(hfsbi_store *store,
                               bool (*keep)(void                *user,
                                            const unsigned char *digest),
                               void *user) {
    hfsbi_store_broom b;
    char              folder[sizeof "objects/ab"];
    unsigned          i;
    int code = hfsbi_store_each(store, ".", hfsbi_broom_temp, NULL);
    memset(&b, 0, sizeof b);
    b.keep = keep;
    b.user = user;
    for (i = 0; code == 0 && i < 256; i++) {
        b.first = (unsigned char)i;
        (void)snprintf(folder, sizeof folder, "objects/%02x", i & 255u);
        code = hfsbi_store_each(store, folder, hfsbi_broom_object, &b);
        if (code == ENOENT) code = 0;
    }
    store->counted = false;
    return code == 0 ? hfsbi_store_count(store) : code;
}
