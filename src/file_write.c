/* file_write.c - write files whole or not at all. Depends on: base, os, file,
   file_temp, file_rewrite. */
#include "file_place.h"

struct hfsb_file_writer {
    const hfsb_place    *place;
    hfsb_alloc           alloc;
    hfsb_buf             path; /* as given */
    hfsbi_spot           spot;
    bool                 had_old; /* there was a file, */
    struct stat          old;     /* and this is what it was last seen as */
    hfsb_file_write_opts opts;    /* its views and pointers are not kept ... */
    hfsb_file_info       same;    /* ... but here */
    char                 sha256[HFSB_SHA256_HEX]; /* "": no matter */
    int                  fd;                      /* the new bytes */
    char                 temp[HFSBI_NAME_SIZE];   /* its name; "": none */
    hfsbi_lock           lock;
    bool                 in_place;
    bool                 done;
    unsigned long long   bytes;
    hfsb_err             err; /* what went wrong, for good */
};

static hfsb_str hfsbi_writer_path(const hfsb_file_writer *w) {
    return hfsb_buf_str(&w->path);
}

static hfsb_status hfsbi_writer_os(hfsb_file_writer *w, int code) {
    return hfsbi_path_fail(w->place, hfsbi_writer_path(w), code, "write",
                           &w->err);
}

/* ---- conditions ---- */

static bool hfsbi_same_info(const hfsb_file_info *a, const hfsb_file_info *b) {
    return a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed == b->changed &&
           a->changed_nanos == b->changed_nanos;
}

/* What the caller asked for, of the spot as it was looked at last. */
static hfsb_status hfsbi_writer_check(hfsb_file_writer *w) {
    hfsb_file_info now;
    hfsb_status    st;
    bool           wanted = w->opts.if_same || w->sha256[0];
    if (!w->spot.exists) return wanted ? hfsbi_writer_os(w, ENOENT) : HFSB_OK;
    st = hfsbi_path_regular(hfsbi_writer_path(w), w->spot.st.st_mode, &w->err);
    if (st != HFSB_OK) return st;
    if (w->opts.create)
        return hfsbi_path_say(&w->err, HFSB_REFUSED, "File exists already",
                              hfsbi_writer_path(w));
    hfsbi_file_info_fill(&now, &w->spot.st);
    if (w->opts.if_same && !hfsbi_same_info(&now, &w->same))
        return hfsbi_path_changed(hfsbi_writer_path(w), &w->err);
    if (!w->sha256[0]) return HFSB_OK;
    return hfsbi_spot_check_sha256(w->place, hfsbi_writer_path(w), &w->spot,
                                   w->sha256, &w->err);
}

/* ---- opening ---- */

static hfsb_status hfsbi_writer_take_opts(hfsb_file_writer           *w,
                                          const hfsb_file_write_opts *opts) {
    size_t i;
    if (!opts) return HFSB_OK;
    w->opts = *opts;
    if (opts->if_same) w->same = *opts->if_same;
    if (opts->if_sha256.len == 0) return HFSB_OK;
    for (i = 0; i < opts->if_sha256.len && i + 1 < sizeof w->sha256; i++) {
        char c = hfsbi_lower(opts->if_sha256.ptr[i]);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) break;
        w->sha256[i] = c;
    }
    if (i == opts->if_sha256.len && i + 1 == sizeof w->sha256) return HFSB_OK;
    hfsbi_fail(&w->err, HFSB_ARG, 0,
               "A sha256 is 64 hexadecimal digits, not \"");
    hfsbi_err_quote(&w->err, opts->if_sha256, 80);
    hfsbi_err_add(&w->err, "\".");
    return HFSB_ARG;
}

/* An errno when the file may not be written, even where its directory would
   let us replace it. */
static int hfsbi_writer_permission(const hfsbi_spot *spot) {
    int rc = faccessat(spot->dir, spot->name, W_OK, AT_EACCESS);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS))
        rc = faccessat(spot->dir, spot->name, W_OK, 0);
    return rc == 0 ? 0 : errno;
}

/* Somewhere for the new bytes: beside the file, or when the directory is not
   ours to write, where temporary files are. */
static hfsb_status hfsbi_writer_spool(hfsb_file_writer *w) {
    bool   fresh = !w->spot.exists && w->opts.mode == 0;
    mode_t mode = fresh ? 0666 : 0600; /* the umask decides, or we later */
    int    code =
        hfsbi_temp_open(w->spot.dir, w->spot.name, mode, w->temp, &w->fd);
    if ((code == EACCES || code == EPERM || code == EROFS) && w->spot.exists) {
        w->in_place = true;
        w->fd = hfsbi_unnamed_file(NULL);
        code = w->fd < 0 ? errno : 0;
    }
    return code == 0 ? HFSB_OK : hfsbi_writer_os(w, code);
}

static hfsb_status hfsbi_writer_start(hfsb_file_writer *w, hfsb_str path,
                                      const hfsb_file_write_opts *opts) {
    unsigned    how = HFSBI_SPOT_PARENTS;
    int         code;
    hfsb_status st = hfsbi_writer_take_opts(w, opts);
    if (st == HFSB_OK && hfsb_buf_append(&w->path, path) != HFSB_OK)
        st = hfsbi_fail_status(&w->err, HFSB_NOMEM, "Writer of a file");
    if (st != HFSB_OK) return st;
    /* a file that must be there has its directories */
    if (w->opts.no_parents || w->opts.if_same || w->sha256[0]) how = 0;
    if (w->opts.no_sync) how |= HFSBI_SPOT_NO_SYNC;
    st = hfsbi_spot_find(w->place, path, how, "write", &w->spot, &w->err);
    if (st == HFSB_OK) st = hfsbi_writer_check(w);
    if (st != HFSB_OK) return st;
    if (w->spot.exists) {
        code = hfsbi_writer_permission(&w->spot);
        if (code != 0) return hfsbi_writer_os(w, code);
        w->had_old = true;
        w->old = w->spot.st;
    }
    hfsbi_temp_sweep(w->spot.dir);
    return hfsbi_writer_spool(w);
}

/* ---- committing ---- */

/* The file as it is now; metadata of one that is gone is that of before. */
static hfsb_status hfsbi_writer_look(hfsb_file_writer *w) {
    int code = hfsbi_spot_look(&w->spot);
    if (code != 0) return hfsbi_writer_os(w, code);
    if (!w->spot.exists) return HFSB_OK;
    w->had_old = true;
    w->old = w->spot.st;
    if (w->old.st_nlink > 1) w->in_place = true;
    return hfsbi_path_regular(hfsbi_writer_path(w), w->old.st_mode, &w->err);
}

static mode_t hfsbi_writer_mode(const hfsb_file_writer *w) {
    return (mode_t)(w->opts.mode ? w->opts.mode & 07777u
                                 : w->old.st_mode & 07777u);
}

static int hfsbi_writer_attributes(hfsb_file_writer *w) {
    int code, fd;
    if (!w->spot.exists) return 0;
    fd = hfsbi_spot_open_any(&w->spot);
    if (fd < 0) return errno;
    code = hfsbi_copy_attributes(fd, w->fd, &w->alloc);
    hfsbi_close(&fd);
    return code;
}

/* Owner, attributes and mode, in this order: a change of owner takes the
   setuid bit, and an attribute may hold part of the mode. An errno. */
static int hfsbi_writer_dress(hfsb_file_writer *w) {
    struct stat now;
    int         code;
    if (w->had_old) {
        if (fstat(w->fd, &now) != 0) return errno;
        if ((now.st_uid != w->old.st_uid || now.st_gid != w->old.st_gid) &&
            fchown(w->fd, w->old.st_uid, w->old.st_gid) != 0)
            return errno;
        code = hfsbi_writer_attributes(w);
        if (code != 0) return code;
    }
    if (!w->had_old && w->opts.mode == 0) return 0;
    return hfsbi_set_mode(w->fd, hfsbi_writer_mode(w)) ? 0 : errno;
}

/* Gives the file its name unless that is taken; an errno. */
static int hfsbi_rename_new(int dir, const char *from, const char *to) {
    struct stat st;
#if defined(HFSBI_LINUX) && defined(SYS_renameat2)
    const unsigned no_replace = 1; /* RENAME_NOREPLACE */
    if (syscall(SYS_renameat2, dir, from, dir, to, no_replace) == 0) return 0;
    if (errno != ENOSYS && errno != EINVAL && errno != EPERM) return errno;
#endif
    if (linkat(dir, from, dir, to, 0) == 0) {
        hfsbi_temp_remove(dir, from);
        return 0;
    }
    if (errno == EEXIST) return EEXIST;
    /* No hard links here: all that is left is to look first. */
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

/* Puts the new file where the old one is, or says that this must be done in
   place. The temporary's own lock would keep out writers that lock the file
   itself. */
static hfsb_status hfsbi_writer_rename(hfsb_file_writer *w) {
    int code, dir = w->spot.dir;
    if (w->opts.create) code = hfsbi_rename_new(dir, w->temp, w->spot.name);
    else code = renameat(dir, w->temp, dir, w->spot.name) == 0 ? 0 : errno;
    if (code == 0) {
        w->temp[0] = '\0';
        (void)flock(w->fd, LOCK_UN);
        return HFSB_OK;
    }
    if (code == EEXIST && w->opts.create)
        return hfsbi_path_say(&w->err, HFSB_REFUSED, "File exists already",
                              hfsbi_writer_path(w));
    w->in_place = w->spot.exists && (code == EBUSY || code == EXDEV ||
                                     code == EPERM || code == EACCES);
    return w->in_place ? HFSB_OK : hfsbi_writer_os(w, code);
}

/* Opens the file that was looked at last, no other; an errno. */
static int hfsbi_writer_target(hfsb_file_writer *w, int *fd) {
    const int   flags = O_RDWR | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;
    *fd = hfsbi_openat(w->spot.dir, w->spot.name, flags, 0);
    if (*fd < 0 || fstat(*fd, &st) != 0) return errno;
    return st.st_dev == w->spot.st.st_dev && st.st_ino == w->spot.st.st_ino
               ? 0
               : ESTALE;
}

static hfsb_status hfsbi_writer_rewrite(hfsb_file_writer *w) {
    hfsbi_rewriting r = HFSB_INIT;
    int             code;
    r.spool = w->fd;
    r.bytes = w->bytes;
    r.mode = hfsbi_writer_mode(w);
    r.no_sync = w->opts.no_sync;
    code = hfsbi_writer_target(w, &r.fd);
    if (code == 0) code = hfsbi_rewrite(&r);
    if (code != 0) {
        hfsbi_close(&r.fd);
        hfsbi_writer_os(w, code);
        if (r.spoilt)
            hfsbi_err_add(&w->err, "; it was being rewritten in place, and "
                                   "its old content could not be put back");
        else if (r.begun)
            hfsbi_err_add(&w->err, " (the old content was put back)");
        return w->err.code;
    }
    hfsbi_close(&w->fd); /* from now on the file itself */
    w->fd = r.fd;
    return HFSB_OK;
}

/* Keeps other writers out, then looks whether the conditions hold. */
static hfsb_status hfsbi_writer_hold(hfsb_file_writer *w, bool file) {
    int         code = hfsbi_spot_lock(&w->spot, file, &w->lock);
    hfsb_status st;
    if (code != 0)
        return hfsbi_lock_fail(w->place, hfsbi_writer_path(w), code, "write",
                               &w->err);
    st = hfsbi_writer_look(w);
    return st == HFSB_OK ? hfsbi_writer_check(w) : st;
}

static hfsb_status hfsbi_writer_replace(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_hold(w, false);
    if (st == HFSB_OK && !w->in_place) st = hfsbi_writer_rename(w);
    if (st == HFSB_OK && w->in_place) st = hfsbi_writer_hold(w, true);
    if (st != HFSB_OK || !w->in_place) return st;
    return w->spot.exists ? hfsbi_writer_rewrite(w)
                          : hfsbi_writer_os(w, ENOENT);
}

static hfsb_status hfsbi_writer_finish(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_look(w);
    int         code = 0;
    if (st != HFSB_OK) return st;
    if (!w->in_place) code = hfsbi_writer_dress(w);
    if (code == ENOMEM || (code != 0 && !w->spot.exists))
        return hfsbi_writer_os(w, code);
    if (code != 0) w->in_place = true;
    if (!w->opts.no_sync && !hfsbi_sync(w->fd))
        return hfsbi_writer_os(w, errno);
    st = hfsbi_writer_replace(w);
    hfsbi_unlock(&w->lock);
    if (st == HFSB_OK && !w->in_place && !w->opts.no_sync)
        hfsbi_sync_dir(w->spot.dir);
    return st;
}

/* ---- public ---- */

hfsb_status hfsb_file_write(const hfsb_place *place, hfsb_str path,
                            hfsb_str content, const hfsb_file_write_opts *opts,
                            hfsb_file_written *written, hfsb_err *err) {
    hfsb_file_writer *w;
    hfsb_status       st = hfsb_file_writer_open(place, path, opts, &w, err);
    if (st != HFSB_OK) return st;
    st = hfsb_file_writer_append(w, content, err);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(w, written, err);
    hfsb_file_writer_close(w);
    return st;
}

hfsb_status hfsb_file_writer_open(const hfsb_place *place, hfsb_str path,
                                  const hfsb_file_write_opts *opts,
                                  hfsb_file_writer **out, hfsb_err *err) {
    hfsb_alloc        alloc = hfsbi_place_alloc(place);
    hfsb_file_writer *w;
    hfsb_status       st;
    *out = NULL;
    w = (hfsb_file_writer *)hfsbi_array(&alloc, 1, sizeof *w);
    if (!w) return hfsbi_fail_status(err, HFSB_NOMEM, "Writer of a file");
    memset(w, 0, sizeof *w);
    w->place = place;
    w->alloc = w->path.alloc = alloc;
    w->fd = w->spot.dir = w->lock.dir = w->lock.file = -1;
    st = hfsbi_writer_start(w, path, opts);
    if (st != HFSB_OK) {
        if (err) *err = w->err;
        hfsb_file_writer_close(w);
        return st;
    }
    *out = w;
    return hfsbi_ok(err);
}

/* What a writer that is done or has failed says. */
static hfsb_status hfsbi_writer_end(hfsb_file_writer *w, hfsb_err *err) {
    if (w->done)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The file is written: only close() is left.");
    if (err) *err = w->err;
    return w->err.code;
}

hfsb_status hfsb_file_writer_append(hfsb_file_writer *writer, hfsb_str piece,
                                    hfsb_err *err) {
    if (!writer->done && writer->err.code == HFSB_OK) {
        if (hfsbi_write_all(writer->fd, piece)) {
            writer->bytes += piece.len;
            return hfsbi_ok(err);
        }
        hfsbi_writer_os(writer, errno);
    }
    return hfsbi_writer_end(writer, err);
}

hfsb_status hfsb_file_writer_commit(hfsb_file_writer  *writer,
                                    hfsb_file_written *written,
                                    hfsb_err          *err) {
    hfsb_file_writer *w = writer;
    struct stat       st;
    if (w->done || w->err.code != HFSB_OK || hfsbi_writer_finish(w) != HFSB_OK)
        return hfsbi_writer_end(w, err);
    w->done = true;
    if (written) {
        memset(written, 0, sizeof *written);
        written->bytes = w->bytes;
        written->created = !w->spot.exists;
        written->in_place = w->in_place;
        if (fstat(w->fd, &st) == 0) hfsbi_file_info_fill(&written->info, &st);
    }
    return hfsbi_ok(err);
}

void hfsb_file_writer_close(hfsb_file_writer *writer) {
    hfsb_alloc alloc;
    if (!writer) return;
    alloc = writer->alloc;
    if (writer->temp[0]) hfsbi_temp_remove(writer->spot.dir, writer->temp);
    hfsbi_close(&writer->fd);
    hfsbi_spot_close(&writer->spot);
    hfsb_buf_free(&writer->path);
    hfsbi_array_free(&alloc, writer, 1, sizeof *writer);
}
