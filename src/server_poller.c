/* server_poller.c - the kernel's set of descriptors: epoll on Linux, kqueue on
   BSD and macOS, poll() elsewhere. Depends on: base, os. */
#include "server_loop_parts.h"

#define HFSBI_IO_BOTH ((unsigned)HFSBI_IO_READ | (unsigned)HFSBI_IO_WRITE)

/* What each of the three ways brings: */

/* Puts io into the set or changes what is asked for; false with errno. */
static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want);
/* Takes it out of the set. */
static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io);
/* Empties its entries among the events that are found and not told yet. */
static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io);

/* ---- the same for all ---- */

/* Out of the set, but for the owner still as it was. */
static void hfsbi_poller_mute(hfsbi_poller *poller, hfsbi_io *io) {
    if (io->known) hfsbi_poller_drop(poller, io);
    io->known = false;
}

HFSBI_FN bool hfsbi_poller_set(hfsbi_poller *poller, hfsbi_io *io,
                               unsigned want) {
    want &= HFSBI_IO_BOTH | (unsigned)HFSBI_IO_EOF;
    if (want & HFSBI_IO_READ) want &= ~(unsigned)HFSBI_IO_EOF;
    if (io->gone && !(want & HFSBI_IO_BOTH)) { /* nothing more to tell */
        hfsbi_poller_mute(poller, io);
        io->want = (unsigned char)want;
        return true;
    }
    if (io->known && io->want == want) return true;
    if (!hfsbi_poller_put(poller, io, want)) {
        hfsbi_poller_mute(poller, io);
        hfsbi_poller_unfind(poller, io);
        io->want = 0;
        return false;
    }
    io->known = true;
    io->want = (unsigned char)want;
    return true;
}

HFSBI_FN void hfsbi_poller_forget(hfsbi_poller *poller, hfsbi_io *io) {
    hfsbi_poller_unfind(poller, io);
    hfsbi_poller_mute(poller, io);
    io->want = 0;
    io->gone = false;
}

/* Tells io, unless what was found is no longer asked for. The kernel would
   say again and again that a connection is gone. */
static void hfsbi_poller_tell_one(hfsbi_poller *poller, hfsbi_io *io,
                                  unsigned events) {
    bool quiet = !(io->want & HFSBI_IO_BOTH);
    if (io->gone && quiet) return;
    events &= io->want | (unsigned)HFSBI_IO_GONE;
    if (events & HFSBI_IO_GONE) {
        io->gone = true;
        if (quiet) hfsbi_poller_mute(poller, io);
    }
    if (events) io->fn(io, events);
}

#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)

/* A nap in place of a wait that failed, so that nobody spins. */
static void hfsbi_poller_nap(int ms) {
    (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
}

/* Waits for the set's own descriptor and the guests with poll(). True when the
   set has something. */
static bool hfsbi_poller_wait_guests(hfsbi_poller *poller, struct pollfd *list,
                                     size_t n, int ms) {
    size_t i;
    list[0].fd = poller->fd;
    list[0].events = POLLIN;
    list[0].revents = 0;
    if (poll(list, (nfds_t)(n + 1), ms) >= 0) return list[0].revents != 0;
    if (errno == EINTR) return false;
    hfsbi_poller_nap(ms);
    for (i = 0; i <= n; i++) list[i].revents = POLLERR; /* look at them all */
    return true;
}

HFSBI_FN void hfsbi_poller_close(hfsbi_poller *poller) {
    hfsbi_close(&poller->fd);
}

HFSBI_FN size_t hfsbi_poller_watch(const hfsbi_poller *poller,
                                   hfsb_watch *list, size_t max) {
    if (max > 0) {
        list[0].fd = poller->fd;
        list[0].readable = true;
        list[0].writable = false;
    }
    return 1;
}

#endif

/* ---- epoll ---- */

#if defined(HFSBI_EPOLL)

HFSBI_FN bool hfsbi_poller_open(hfsbi_poller     *poller,
                                const hfsb_alloc *alloc) {
    (void)alloc;
    poller->at = poller->count = 0;
    poller->fd = hfsbi_above_standard(epoll_create1(EPOLL_CLOEXEC));
    return poller->fd >= 0;
}

static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = (want & HFSBI_IO_READ ? (uint32_t)EPOLLIN : 0) |
                   (want & HFSBI_IO_WRITE ? (uint32_t)EPOLLOUT : 0) |
                   (want & HFSBI_IO_EOF ? (uint32_t)EPOLLRDHUP : 0);
    event.data.ptr = io;
    return epoll_ctl(poller->fd, io->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                     io->fd, &event) == 0;
}

static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    struct epoll_event unused; /* early kernels want one */
    memset(&unused, 0, sizeof unused);
    (void)epoll_ctl(poller->fd, EPOLL_CTL_DEL, io->fd, &unused);
}

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
    size_t i;
    for (i = poller->at; i < poller->count; i++)
        if (poller->batch[i].data.ptr == io) poller->batch[i].data.ptr = NULL;
}

HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms) {
    int found = 0;
    if (n == 0 || hfsbi_poller_wait_guests(poller, list, n, ms))
        found = epoll_wait(poller->fd, poller->batch, HFSBI_POLLER_BATCH,
                           n == 0 ? ms : 0);
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    poller->at = 0;
    poller->count = found > 0 ? (size_t)found : 0;
}

HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller) {
    while (poller->at < poller->count) {
        const struct epoll_event *event = &poller->batch[poller->at++];
        uint32_t                  found = event->events;
        hfsbi_io                 *io = (hfsbi_io *)event->data.ptr;
        if (!io) continue;
        hfsbi_poller_tell_one(
            poller, io,
            (found & EPOLLIN ? (unsigned)HFSBI_IO_READ : 0) |
                (found & EPOLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
                (found & EPOLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
                (found & (EPOLLERR | EPOLLHUP) ? (unsigned)HFSBI_IO_GONE : 0));
    }
}

/* ---- kqueue ---- */

#elif defined(HFSBI_KQUEUE)

/* hfsbi_io.place holds which filters there are: */
enum {
    HFSBI_FILTER_READ = 1,
    HFSBI_FILTER_END = 2, /* the read filter too, but only for its end */
    HFSBI_FILTER_WRITE = 4
};

HFSBI_FN bool hfsbi_poller_open(hfsbi_poller     *poller,
                                const hfsb_alloc *alloc) {
    (void)alloc;
    poller->at = poller->count = 0;
    poller->fd = hfsbi_above_standard(kqueue());
    return poller->fd >= 0 && fcntl(poller->fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool hfsbi_poller_filter(hfsbi_poller *poller, hfsbi_io *io, int filter,
                                int flags, unsigned fflags) {
    struct kevent change;
    EV_SET(&change, (uintptr_t)io->fd, (short)filter, (unsigned short)flags,
           fflags, fflags ? INT_MAX : 0, (void *)io);
    return kevent(poller->fd, &change, 1, NULL, 0, NULL) == 0;
}

/* The end is told by the read filter, whatever is asked for: each change once
   (EV_CLEAR), and where the kernel can, without those of mere bytes. */
static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    size_t now =
        (want & HFSBI_IO_READ ? HFSBI_FILTER_READ : HFSBI_FILTER_END) |
        (want & HFSBI_IO_WRITE ? (size_t)HFSBI_FILTER_WRITE : 0);
    size_t before = io->known ? io->place : 0, changed = now ^ before;
    bool   ok = true;
    if (before & changed & (HFSBI_FILTER_READ | HFSBI_FILTER_END))
        (void)hfsbi_poller_filter(poller, io, EVFILT_READ, EV_DELETE, 0);
    if (before & changed & HFSBI_FILTER_WRITE)
        (void)hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_DELETE, 0);
    if (now & HFSBI_FILTER_READ & changed)
        ok = hfsbi_poller_filter(poller, io, EVFILT_READ, EV_ADD, 0);
    else if (now & HFSBI_FILTER_END)
        /* again when it is there, to be told of an end that came before */
        ok = hfsbi_poller_filter(poller, io, EVFILT_READ, EV_ADD | EV_CLEAR,
                                 NOTE_LOWAT);
    if (ok && (now & HFSBI_FILTER_WRITE & changed))
        ok = hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_ADD, 0);
    io->place = now;
    return ok;
}

static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    (void)hfsbi_poller_filter(poller, io, EVFILT_READ, EV_DELETE, 0);
    (void)hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_DELETE, 0);
}

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
    size_t i;
    for (i = poller->at; i < poller->count; i++)
        if ((const void *)poller->batch[i].udata == (const void *)io)
            poller->batch[i].udata = NULL;
}

HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms) {
    struct timespec time = HFSB_INIT;
    int             found = 0, wait = n == 0 ? ms : 0;
    time.tv_sec = wait / 1000;
    time.tv_nsec = (long)(wait % 1000) * 1000000L;
    if (n == 0 || hfsbi_poller_wait_guests(poller, list, n, ms))
        found = kevent(poller->fd, NULL, 0, poller->batch, HFSBI_POLLER_BATCH,
                       wait < 0 ? NULL : &time);
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    poller->at = 0;
    poller->count = found > 0 ? (size_t)found : 0;
}

/* kqueue tells of an end, not whether of one side or of both: poll() does. */
static unsigned hfsbi_poller_end(const hfsbi_io *io) {
    struct pollfd one = HFSB_INIT;
    one.fd = io->fd;
    (void)poll(&one, 1, 0);
    return (unsigned)HFSBI_IO_EOF |
           (one.revents & (POLLHUP | POLLERR | POLLNVAL)
                ? (unsigned)HFSBI_IO_GONE
                : 0);
}

HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller) {
    while (poller->at < poller->count) {
        const struct kevent *event = &poller->batch[poller->at++];
        hfsbi_io            *io = (hfsbi_io *)event->udata;
        unsigned             events;
        if (!io) continue;
        events = event->filter == EVFILT_READ ? (unsigned)HFSBI_IO_READ
                                              : (unsigned)HFSBI_IO_WRITE;
        if (event->flags & EV_EOF) events |= hfsbi_poller_end(io);
        if (event->flags & EV_ERROR) events |= (unsigned)HFSBI_IO_GONE;
        hfsbi_poller_tell_one(poller, io, events);
    }
}

/* ---- poll() ---- */

#else

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* an end is only seen by reading */
#endif

/* Room for n of ours and all guests. */
static bool hfsbi_poller_room(hfsbi_poller *poller, size_t n) {
    void *grown;
    if (n + HFSBI_POLLER_GUESTS > poller->fds_cap) {
        grown = hfsbi_array_grow(&poller->alloc, poller->fds, &poller->fds_cap,
                                 n + HFSBI_POLLER_GUESTS, sizeof *poller->fds);
        if (!grown) return false;
        poller->fds = (struct pollfd *)grown;
    }
    if (n > poller->ios_cap) {
        grown = hfsbi_array_grow(&poller->alloc, (void *)poller->ios,
                                 &poller->ios_cap, n, sizeof *poller->ios);
        if (!grown) return false;
        poller->ios = (hfsbi_io **)grown;
    }
    return true;
}

HFSBI_FN bool hfsbi_poller_open(hfsbi_poller     *poller,
                                const hfsb_alloc *alloc) {
    memset(poller, 0, sizeof *poller);
    poller->alloc = *alloc;
    errno = ENOMEM;
    return hfsbi_poller_room(poller, 1);
}

HFSBI_FN void hfsbi_poller_close(hfsbi_poller *poller) {
    hfsbi_array_free(&poller->alloc, poller->fds, poller->fds_cap,
                     sizeof *poller->fds);
    hfsbi_array_free(&poller->alloc, (void *)poller->ios, poller->ios_cap,
                     sizeof *poller->ios);
    poller->fds = NULL;
    poller->ios = NULL;
}

static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    struct pollfd *item;
    if (!io->known) {
        if (!hfsbi_poller_room(poller, poller->count + 1)) {
            errno = ENOMEM;
            return false;
        }
        io->place = poller->count++;
        poller->ios[io->place] = io;
        poller->fds[io->place].revents = 0;
    }
    item = &poller->fds[io->place];
    item->fd = io->fd;
    item->events = (short)((want & HFSBI_IO_READ ? POLLIN : 0) |
                           (want & HFSBI_IO_WRITE ? POLLOUT : 0) |
                           (want & HFSBI_IO_EOF ? POLLRDHUP : 0));
    return true;
}

/* Leaves a hole: others may be on their way through the list. */
static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    poller->ios[io->place] = NULL;
    poller->fds[io->place].fd = -1;
}

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
    if (io->known) poller->fds[io->place].revents = 0;
}

static void hfsbi_poller_close_holes(hfsbi_poller *poller) {
    size_t from, to = 0;
    for (from = 0; from < poller->count; from++) {
        if (!poller->ios[from]) continue;
        poller->fds[to] = poller->fds[from];
        poller->ios[to] = poller->ios[from];
        poller->ios[to]->place = to;
        to++;
    }
    poller->count = to;
}

HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms) {
    size_t i, all;
    int    found;
    hfsbi_poller_close_holes(poller);
    all = poller->count + n;
    if (n) memcpy(poller->fds + poller->count, list + 1, n * sizeof *list);
    found = poll(poller->fds, (nfds_t)all, ms);
    if (found < 0) {
        bool odd = errno != EINTR;
        if (odd) (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
        for (i = 0; i < all; i++) poller->fds[i].revents = 0;
        for (i = poller->count; odd && i < all; i++)
            poller->fds[i].revents = POLLERR; /* look at them all */
    }
    if (n) memcpy(list + 1, poller->fds + poller->count, n * sizeof *list);
}

HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller) {
    size_t i, n = poller->count; /* what comes behind is new */
    for (i = 0; i < n; i++) {
        int found = poller->fds[i].revents;
        poller->fds[i].revents = 0;
        if (!found || !poller->ios[i]) continue;
        hfsbi_poller_tell_one(
            poller, poller->ios[i],
            (found & POLLIN ? (unsigned)HFSBI_IO_READ : 0) |
                (found & POLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
                (found & POLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
                (found & (POLLERR | POLLHUP | POLLNVAL)
                     ? (unsigned)HFSBI_IO_GONE
                     : 0));
    }
}

HFSBI_FN size_t hfsbi_poller_watch(const hfsbi_poller *poller,
                                   hfsb_watch *list, size_t max) {
    size_t i, n = 0;
    for (i = 0; i < poller->count; i++) {
        if (!poller->ios[i]) continue;
        if (n < max) {
            list[n].fd = poller->fds[i].fd;
            list[n].readable = (poller->fds[i].events & POLLIN) != 0;
            list[n].writable = (poller->fds[i].events & POLLOUT) != 0;
        }
        n++;
    }
    return n;
}

#endif
