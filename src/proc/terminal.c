/* terminal.c - the pseudo-terminal of a command.

   A terminal is a pair of descriptors. The command has the slave as its 0, 1
   and 2, and as its controlling terminal; the host has the master, where it
   reads what the command prints and writes what a person would type.

       host                                  command
       master  ---- keys --> line discipline --> slave 0
               <-- output --               <--       1, 2

   The host keeps a slave of its own until the command has exited. Without it
   the master would report the end of output whenever the command has no
   descriptor of the terminal open, though it may open /dev/tty again; and
   closing the master then would send it SIGHUP. */
#include "proc_private.h"

/* Opens the master. Some systems do not accept O_CLOEXEC here. */
static int hfsbi_terminal_master(void) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == EINVAL) {
        fd = posix_openpt(O_RDWR | O_NOCTTY);
        if (fd >= 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return hfsbi_fd_above_2(fd);
}

static bool hfsbi_terminal_name(int master, char *out, size_t size) {
#if defined(__OpenBSD__) || defined(__DragonFly__)
    const char *name = ptsname(master); /* another thread may overwrite it */
    int         len = name ? snprintf(out, size, "%s", name) : -1;
    return len > 0 && (size_t)len < size;
#else
    int code = ptsname_r(master, out, size);
    if (code > 0) errno = code;
    return code == 0;
#endif
}

/* Opens the slave: by its master where the kernel can, because /dev/pts may
   lack it in a container, else by its name. */
static int hfsbi_terminal_slave(int master) {
    char name[128];
    int  fd = -1;
#if defined(HFSBI_LINUX) && defined(TIOCGPTPEER)
    fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
#endif
    if (fd < 0 && hfsbi_terminal_name(master, name, sizeof name))
        fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return hfsbi_fd_above_2(fd);
}

HFSBI_FN bool hfsbi_terminal_open(unsigned cols, unsigned rows, int *master,
                                  int *slave) {
    *slave = -1;
    *master = hfsbi_terminal_master();
    if (*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0)
        *slave = hfsbi_terminal_slave(*master);
    if (*slave >= 0 && hfsbi_terminal_resize(*master, cols, rows) &&
        hfsbi_set_nonblocking(*master))
        return true;
    hfsbi_close(slave);
    hfsbi_close(master);
    return false;
}

HFSBI_FN bool hfsbi_terminal_enter(int fd) {
    return ioctl(fd, TIOCSCTTY, 0) == 0;
}

HFSBI_FN bool hfsbi_terminal_resize(int master, unsigned cols, unsigned rows) {
    struct winsize size;
    memset(&size, 0, sizeof size);
    size.ws_col = (unsigned short)cols;
    size.ws_row = (unsigned short)rows;
    return ioctl(master, TIOCSWINSZ, &size) == 0;
}

HFSBI_FN char hfsbi_terminal_eof(int master) {
    struct termios t;
    if (tcgetattr(master, &t) != 0 || !(t.c_lflag & ICANON) ||
        t.c_cc[VEOF] == (cc_t)_POSIX_VDISABLE)
        return 4;
    return (char)t.c_cc[VEOF];
}

HFSBI_FN long hfsbi_terminal_group(int master) {
    return (long)tcgetpgrp(master);
}

/* The kernel holds the group itself, not only its number, which may be reused.
   But it only does this for the signals that keys send. */
HFSBI_FN bool hfsbi_terminal_signal(int master, int number) {
#if defined(HFSBI_LINUX) && defined(TIOCSIG)
    return ioctl(master, TIOCSIG, number) == 0;
#else
    (void)master, (void)number;
    return false;
#endif
}
