/* test_file_faults.c - full disks, missing permissions, mount points: success
   or a clear error, the old file intact, no temporary left. Tests that need a
   file system of their own mount it in a child process. */
#include "../support/t_file.h"
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

#define BIG 200000 /* more than the small file system holds */

static hfsb_err err;
static char     big[BIG + 1];

static hfsb_status put(const char *path, const char *text,
                       hfsb_file_written *w) {
    hfsb_file_written none;
    return hfsb_file_write(NULL, hfsb_cstr(path), hfsb_cstr(text), NULL,
                           w ? w : &none, &err);
}

/* A write that must fail with this message and leave no descriptor. */
static void put_fails(const char *path, const char *text, hfsb_status code,
                      const char *message) {
    int         fds = t_descriptors();
    hfsb_status st = put(path, text, NULL);
    T_CHECK(st == code && err.code == code);
    T_CHECK(strcmp(err.msg, message) == 0);
    if (st != code || strcmp(err.msg, message) != 0)
        printf("  is   %d %s\n  want %d %s\n", (int)st, err.msg, (int)code,
               message);
    T_CHECK(t_descriptors() == fds);
}

/* ---- limits of the process ---- */

/* SIGXFSZ has its default action, which would kill the process. */
static const char *file_size_limit(void) {
    struct rlimit     limit;
    hfsb_file_writer *w = NULL;
    limit.rlim_cur = limit.rlim_max = 8192;
    (void)signal(SIGXFSZ, SIG_DFL);
    t_put("limited", "old");
    t_put("limited-hard", "old");
    T_CHECK(link("limited-hard", "limited-link") == 0);
    T_CHECK(put("larger", big, NULL) == HFSB_OK);
    T_CHECK(link("larger", "larger-link") == 0);
    T_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    put_fails("larger", "small", HFSB_FULL, /* no room for a backup */
              "Cannot write larger: the file size limit is reached");
    T_FILE("larger", big);
    put_fails("limited", big, HFSB_FULL,
              "Cannot write limited: the file size limit is reached");
    T_FILE("limited", "old");
    put_fails("limited-hard", big, HFSB_FULL,
              "Cannot write limited-hard: the file size limit is reached");
    T_FILE("limited-hard", "old");
    T_CHECK(put("limited", "fits", NULL) == HFSB_OK);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("limited"), NULL, &w,
                                  &err) == HFSB_OK);
    T_CHECK(hfsb_file_writer_append(w, hfsb_cstr(big), &err) == HFSB_FULL);
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("x"), &err) == HFSB_FULL);
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_FULL);
    hfsb_file_writer_close(w);
    T_FILE("limited", "fits");
    T_CLEAN(".");
    return NULL;
}

static const char *descriptor_limit(void) {
    struct rlimit limit;
    hfsb_buf      out = HFSB_INIT;
    int           n, good = 0;
    t_put("fds", "old");
    T_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (n = t_descriptors(); n < t_descriptors() + 8; n++) {
        hfsb_status st;
        limit.rlim_cur = (rlim_t)n;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return "no limit here";
        st = put("fds", good ? "new" : "first", NULL);
        T_CHECK(st == HFSB_OK || st == HFSB_BUSY);
        if (st == HFSB_BUSY)
            T_CHECK(strcmp(err.msg, "Cannot write fds: too many open files "
                                    "in this process") == 0);
        good += st == HFSB_OK;
        limit.rlim_cur = limit.rlim_max;
        T_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        T_CLEAN(".");
        T_FILE("fds", good == 0 ? "old" : good == 1 ? "first" : "new");
    }
    T_CHECK(good > 0);
    hfsb_buf_free(&out);
    return NULL;
}

/* ---- another user ---- */

static void forbidden_setup(void) {
    (void)mkdir("closed", 0755); /* 65534 may write the file only */
    t_put("closed/file", "a rather long old content");
    t_put("closed/theirs", "old");
    t_put("closed/readonly", "old");
    t_put("closed/blind", "old");
    T_CHECK(chown("closed/file", 65534, 65534) == 0);
    T_CHECK(chmod("closed/theirs", 0666) == 0);
    T_CHECK(chmod("closed/blind", 0222) == 0);
    (void)mkdir("locked", 0700);
    t_put("locked/file", "old");
    (void)mkdir("open", 0777);
    T_CHECK(chmod("open", 0777) == 0);
    t_put("open/readonly", "old");
    t_put("open/theirs", "old");
    T_CHECK(chmod("open/theirs", 0666) == 0);
    t_put("open/mine", "old"); /* owned by 65534, but read-only */
    T_CHECK(chown("open/mine", 65534, 65534) == 0);
    T_CHECK(chmod("open/mine", 0444) == 0);
    t_put("open/setuid", "old");
    T_CHECK(chown("open/setuid", 65534, 65534) == 0);
    T_CHECK(chmod("open/setuid", 04755) == 0);
    T_CHECK(link("open/setuid", "open/setuid2") == 0);
    t_put("open/secret", "old");
    T_CHECK(chmod("open/secret", 0600) == 0);
}

static const char *forbidden(void) {
    hfsb_file_written w;
    hfsb_buf          out = HFSB_INIT;
    if (!t_root_user()) return "needs root";
    forbidden_setup();
    if (setgid(65534) != 0 || setuid(65534) != 0) return "no other user";
    /* the directory cannot be written: in place */
    T_CHECK(put("closed/file", "new", &w) == HFSB_OK && w.in_place);
    T_FILE("closed/file", "new");
    T_CHECK(put("closed/theirs", "a longer one", &w) == HFSB_OK &&
            w.in_place);
    T_FILE("closed/theirs", "a longer one");
    T_CHECK(t_mode("closed/theirs") == 0666);
    put_fails("closed/new", "x", HFSB_DENIED,
              "Cannot write closed/new: permission denied");
    put_fails("closed/new/file", "x", HFSB_DENIED,
              "Cannot write closed/new/file: permission denied");
    put_fails("closed/readonly", "x", HFSB_DENIED,
              "Cannot write closed/readonly: permission denied");
    put_fails("closed/blind", "x", HFSB_DENIED, /* unreadable: no backup */
              "Cannot write closed/blind: permission denied");
    /* the directory can be written, the file or its owner cannot */
    put_fails("open/readonly", "x", HFSB_DENIED,
              "Cannot write open/readonly: permission denied");
    T_FILE("open/readonly", "old");
    put_fails("open/mine", "x", HFSB_DENIED,
              "Cannot write open/mine: permission denied");
    T_FILE("open/mine", "old");
    /* writing drops setuid for unprivileged users */
    T_CHECK(put("open/setuid", "new", &w) == HFSB_OK && w.in_place);
    T_CHECK(t_mode("open/setuid") == 04755 && w.info.mode == 04755);
    T_CHECK(put("open/theirs", "new", &w) == HFSB_OK && w.in_place);
    T_FILE("open/theirs", "new");
    T_CHECK(put("open/new", "new", &w) == HFSB_OK && !w.in_place);
    T_CLEAN("open");
    /* a directory without search permission */
    put_fails("locked/file", "x", HFSB_DENIED,
              "Cannot write locked/file: permission denied");
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("locked/file"), 0, &out, NULL,
                           &err) == HFSB_DENIED);
    T_STR(hfsb_cstr(err.msg), "Cannot read locked/file: permission denied");
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("open/secret"), 0, &out, NULL,
                           &err) == HFSB_DENIED);
    T_STR(hfsb_cstr(err.msg), "Cannot read open/secret: permission denied");
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("closed/file"), &err) ==
            HFSB_DENIED);
    T_STR(hfsb_cstr(err.msg), "Cannot remove closed/file: permission denied");
    hfsb_buf_free(&out);
    return NULL;
}

/* A sticky directory like /tmp: files of others can be written but not replaced. */
static const char *sticky(void) {
    hfsb_file_written w;
    if (!t_root_user()) return "needs root";
    (void)mkdir("sticky", 0777);
    T_CHECK(chmod("sticky", 01777) == 0);
    t_put("sticky/file", "old");
    T_CHECK(chmod("sticky/file", 0666) == 0);
    if (setgid(65534) != 0 || setuid(65534) != 0) return "no other user";
    T_CHECK(put("sticky/file", "new", &w) == HFSB_OK && w.in_place);
    T_FILE("sticky/file", "new");
    T_CLEAN("sticky");
    return NULL;
}

enum { COUNT_TO = 20 };

/* Increments the number in a file, retrying when another thread did. */
static void *count_up(void *failed) {
    int n = 0;
    while (n < COUNT_TO) {
        hfsb_file_write_opts opts = HFSB_INIT;
        hfsb_buf             text = HFSB_INIT;
        char                 hex[HFSB_SHA256_HEX], next[16];
        hfsb_status          st = hfsb_file_read(
            NULL, HFSB_LIT("blind/count"), 0, &text, NULL, NULL);
        hfsb_sha256_hex(hfsb_buf_str(&text), hex);
        (void)snprintf(next, sizeof next, "%d",
                       text.ptr ? atoi(text.ptr) + 1 : 0);
        opts.if_sha256 = hfsb_cstr(hex);
        opts.no_sync = true;
        if (st == HFSB_OK)
            st = hfsb_file_write(NULL, HFSB_LIT("blind/count"),
                                 hfsb_cstr(next), &opts, NULL, NULL);
        hfsb_buf_free(&text);
        if (st == HFSB_OK) n++;
        else if (st != HFSB_STALE) break;
    }
    if (n < COUNT_TO) *(bool *)failed = true;
    return NULL;
}

/* A directory that can be written but not read cannot be locked: its files
   are. */
static const char *unreadable_directory(void) {
    hfsb_file_written w;
    pthread_t         thread[4];
    bool              failed[4] = HFSB_INIT;
    int               i, fd;
    (void)mkdir("blind", 0300);
    if (t_root_user()) {
        T_CHECK(chown("blind", 65534, 65534) == 0);
        if (setgid(65534) != 0 || setuid(65534) != 0) return "no other user";
    }
    T_CHECK(open("blind", O_RDONLY | O_CLOEXEC) < 0);
    fd = open("blind", HFSBI_O_SEARCH);
    if (fd < 0) return "a directory is opened only for reading here";
    close(fd);
    T_CHECK(put("blind/count", "old", &w) == HFSB_OK && w.created);
    T_CHECK(put("blind/count", "0", &w) == HFSB_OK && !w.in_place);
    for (i = 0; i < 4; i++)
        T_CHECK(pthread_create(&thread[i], NULL, count_up, &failed[i]) == 0);
    for (i = 0; i < 4; i++)
        T_CHECK(pthread_join(thread[i], NULL) == 0 && !failed[i]);
    T_FILE("blind/count", "80");
    fd = open("blind/count", O_RDONLY | O_CLOEXEC);
    T_CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    T_CHECK(put("blind/count", "x", &w) == HFSB_BUSY);
    T_FILE("blind/count", "80");
    close(fd);
    T_CHECK(link("blind/count", "blind/count2") == 0);
    T_CHECK(put("blind/count", "new", &w) == HFSB_OK && w.in_place);
    T_FILE("blind/count2", "new");
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("blind/count"), &err) ==
            HFSB_OK);
    T_CHECK(chmod("blind", 0700) == 0);
    T_CLEAN("blind");
    return NULL;
}

/* ---- file systems ---- */

#ifdef __linux__
/* A small file system at "small", for this process only. */
static const char *mount_small(void) {
    if (!t_root_user()) return "needs root";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
        return "no mounts of our own";
    (void)mkdir("small", 0755);
    if (mount("none", "small", "tmpfs", 0, "size=64k") != 0)
        return "no tmpfs";
    return NULL;
}

static const char *full_disk(void) {
    const char *reason = mount_small();
    if (reason) return reason;
    t_put("small/file", "old");
    t_put("small/hard", "old");
    T_CHECK(link("small/hard", "small/link") == 0);
    put_fails("small/file", big, HFSB_FULL,
              "Cannot write small/file: no space left on the device");
    T_FILE("small/file", "old");
    put_fails("small/hard", big, HFSB_FULL,
              "Cannot write small/hard: no space left on the device");
    T_FILE("small/link", "old");
    put_fails("small/new", big, HFSB_FULL,
              "Cannot write small/new: no space left on the device");
    T_CHECK(!t_exists("small/new"));
    T_CLEAN("small");
    T_CHECK(put("small/file", "new", NULL) == HFSB_OK);
    T_FILE("small/file", "new");
    return NULL;
}

/* A file that is a mount point: no rename, but its content changes. */
static const char *mount_point(void) {
    const char       *reason = mount_small();
    hfsb_file_written w;
    if (reason) return reason;
    t_put("small/file", "old");
    t_put("point", "covered");
    if (mount("small/file", "point", "none", MS_BIND, NULL) != 0)
        return "no bind mounts";
    T_CHECK(put("point", "new", &w) == HFSB_OK && w.in_place && !w.created);
    T_FILE("point", "new");
    T_FILE("small/file", "new");
    T_CLEAN(".");
    /* without space for it the file is as it was */
#ifdef HFSBI_LINUX
    put_fails("point", big, HFSB_FULL,
              "Cannot write point: no space left on the device");
#else /* space cannot be reserved */
    put_fails("point", big, HFSB_FULL,
              "Cannot write point: no space left on the device (the old "
              "content was put back)");
#endif
    T_FILE("small/file", "new");
    T_CLEAN(".");
    return NULL;
}

static const char *read_only(void) {
    const char       *reason = mount_small();
    hfsb_file_written w;
    if (reason) return reason;
    t_put("small/file", "old");
    t_put("writable", "old");
    if (mount("writable", "small/file", "none", MS_BIND, NULL) != 0 ||
        mount("none", "small", "none", MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return "no remount";
    /* the directory is read-only, the file mounted into it is not */
    T_CHECK(put("small/file", "new", &w) == HFSB_OK && w.in_place);
    T_FILE("writable", "new");
    T_CHECK(umount("small/file") == 0);
    put_fails("small/file", "x", HFSB_DENIED,
              "Cannot write small/file: the file system is read-only");
    put_fails("small/new", "x", HFSB_DENIED,
              "Cannot write small/new: the file system is read-only");
    put_fails("small/new/file", "x", HFSB_DENIED,
              "Cannot write small/new/file: the file system is read-only");
    T_FILE("small/file", "old");
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("small/file"), &err) == HFSB_DENIED);
    T_STR(hfsb_cstr(err.msg),
          "Cannot remove small/file: the file system is read-only");
    return NULL;
}
#endif

/* ---- a program that runs ---- */

/* A copy of cat that runs until *input is closed. */
static pid_t run_copy(int *input) {
    int   in[2], ready[2];
    char  c;
    pid_t pid;
    T_CHECK(pipe(in) == 0 && pipe(ready) == 0);
    T_CHECK(fcntl(ready[1], F_SETFD, FD_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(in[0], 0);
        close(in[1]);
        execl("./program", "program", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(ready[1]);
    T_CHECK(read(ready[0], &c, 1) == 0); /* EOF at exec: the program runs */
    close(ready[0]);
    *input = in[1];
    return pid;
}

static const char *running_program(void) {
    hfsb_buf          out = HFSB_INIT;
    hfsb_file_written w;
    int               input, status;
    pid_t             pid;
    if (hfsb_file_read(NULL, HFSB_LIT("/bin/cat"), 0, &out, NULL, &err) !=
        HFSB_OK)
        return "no /bin/cat";
    T_CHECK(hfsb_file_write(NULL, HFSB_LIT("program"), hfsb_buf_str(&out),
                            NULL, NULL, &err) == HFSB_OK);
    T_CHECK(chmod("program", 0755) == 0 && link("program", "program2") == 0);
    pid = run_copy(&input);
    put_fails("program", "new", HFSB_BUSY, /* two names: in place, refused */
              "Cannot write program: the program is being executed");
    T_CHECK(unlink("program2") == 0);
    T_CHECK(put("program", "new", &w) == HFSB_OK && !w.in_place);
    T_FILE("program", "new"); /* replaced: the process keeps the old one */
    T_CHECK(t_mode("program") == 0755);
    close(input);
    T_CHECK(waitpid(pid, &status, 0) == pid);
    hfsb_buf_free(&out);
    return NULL;
}

int main(void) {
    static const struct {
        const char *name;
        const char *(*fn)(void);
    } all[] = {{"file_size_limit", file_size_limit},
               {"descriptor_limit", descriptor_limit},
               {"forbidden", forbidden},
               {"sticky", sticky},
               {"unreadable_directory", unreadable_directory},
#ifdef __linux__
               {"full_disk", full_disk},
               {"mount_point", mount_point},
               {"read_only", read_only},
#endif
               {"running_program", running_program}};
    size_t i;
    memset(big, 'x', BIG);
    t_begin_files();
    for (i = 0; i < sizeof all / sizeof *all; i++) {
        t_name = all[i].name;
        t_in_child(all[i].fn);
    }
    return t_end_files(__FILE__);
}
