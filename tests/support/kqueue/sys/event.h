/* event.h - a stand-in for the <sys/event.h> of the BSDs: kqueue() and
   kevent() on top of epoll, so that the code for them is tested on Linux
   (-DHFSBI_KQUEUE -Itests/support/kqueue). Only what the event loop uses:

     EVFILT_READ    level; or with EV_CLEAR and a NOTE_LOWAT that is never
                    reached each end once, as the kernels do
     EVFILT_WRITE   level

   And poll() as on macOS, where it is made of these filters: an end is reported
   by those that were asked for, with POLLIN that of one side, too.

   A queue is an epoll descriptor, so it can be polled and counted as a real
   one. epoll has one entry for a descriptor where kqueue has one for each
   filter: a table, which is global here, maps them. An event is looked up
   there after the wait: one whose filter has been deleted meanwhile is gone,
   as in a kernel, and so is one of an earlier file with the same number. */
#ifndef T_SYS_EVENT_H
#define T_SYS_EVENT_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVFILT_READ = -1, EVFILT_WRITE = -2 };
enum {
    EV_ADD = 0x1,
    EV_DELETE = 0x2,
    EV_CLEAR = 0x20,
    EV_ERROR = 0x4000,
    EV_EOF = 0x8000
};
enum { NOTE_LOWAT = 1 };

struct kevent {
    uintptr_t      ident;
    short          filter;
    unsigned short flags;
    unsigned       fflags;
    intptr_t       data;
    void          *udata;
};

#define EV_SET(to, a, b, c, d, e, f)                            \
    ((to)->ident = (a), (to)->filter = (b), (to)->flags = (c), \
     (to)->fflags = (d), (to)->data = (e), (to)->udata = (f))

#define T_KQ_FN __attribute__((unused)) static

/* The filters of a descriptor in a queue. */
typedef struct t_kq_note {
    struct t_kq_note *next;
    int               queue, fd;
    pid_t             pid;    /* a queue is not inherited by a child */
    unsigned          serial; /* of the registration in epoll */
    int               read, write; /* whether there */
    int               edge;        /* the read filter has EV_CLEAR */
    uint32_t          told;        /* the ends that it has reported */
    void             *read_data, *write_data;
} t_kq_note;

static pthread_mutex_t t_kq_lock = PTHREAD_MUTEX_INITIALIZER;
static t_kq_note      *t_kq_notes[4096];
static unsigned        t_kq_serial;

enum { T_KQ_ENDS = EPOLLRDHUP | EPOLLHUP | EPOLLERR };

T_KQ_FN t_kq_note **t_kq_place(int queue, int fd) {
    t_kq_note **at = &t_kq_notes[((unsigned)queue * 61 + (unsigned)fd) % 4096];
    while (*at && ((*at)->queue != queue || (*at)->fd != fd))
        at = &(*at)->next;
    return at;
}

T_KQ_FN void t_kq_forget(t_kq_note **at) {
    t_kq_note *note = *at;
    *at = note->next;
    free(note);
}

T_KQ_FN int kqueue(void) {
    int    queue = epoll_create1(0);
    size_t i;
    pthread_mutex_lock(&t_kq_lock);
    for (i = 0; queue >= 0 && i < 4096; i++) { /* of a closed one */
        t_kq_note **at = &t_kq_notes[i];
        while (*at)
            if ((*at)->queue == queue) t_kq_forget(at);
            else at = &(*at)->next;
    }
    pthread_mutex_unlock(&t_kq_lock);
    return queue;
}

/* Brings the entry of epoll up to date. An end that was reported must not be
   found again by a filter with EV_CLEAR: epoll reports EPOLLHUP always, so
   its entry has EPOLLET then. */
T_KQ_FN int t_kq_arm(t_kq_note *note) {
    struct epoll_event event;
    int                rc;
    memset(&event, 0, sizeof event);
    if (note->read && !note->edge) event.events = EPOLLIN | EPOLLRDHUP;
    if (note->read && note->edge && !(note->told & EPOLLRDHUP))
        event.events |= EPOLLRDHUP;
    if (note->write) event.events |= EPOLLOUT;
    if (note->read && note->edge && note->told && !note->write)
        event.events |= (uint32_t)EPOLLET;
    event.data.u64 = (uint64_t)note->serial << 32 | (uint32_t)note->fd;
    rc = epoll_ctl(note->queue, EPOLL_CTL_MOD, note->fd, &event);
    if (rc == 0 || errno != ENOENT) return rc;
    note->serial = ++t_kq_serial; /* new, or another file of that number */
    event.data.u64 = (uint64_t)note->serial << 32 | (uint32_t)note->fd;
    return epoll_ctl(note->queue, EPOLL_CTL_ADD, note->fd, &event);
}

T_KQ_FN int t_kq_delete(t_kq_note **at, int filter) {
    t_kq_note *note = *at;
    int       *there = NULL, rc = 0;
    if (note) there = filter == EVFILT_READ ? &note->read : &note->write;
    if (!there || !*there) {
        errno = ENOENT;
        return -1;
    }
    *there = 0;
    if (note->read || note->write) return t_kq_arm(note);
    rc = epoll_ctl(note->queue, EPOLL_CTL_DEL, note->fd, NULL);
    t_kq_forget(at);
    return rc;
}

T_KQ_FN int t_kq_add(t_kq_note **at, int queue, const struct kevent *change) {
    t_kq_note *note = *at;
    if (!note) {
        note = (t_kq_note *)calloc(1, sizeof *note);
        if (!note) return -1;
        note->queue = queue;
        note->fd = (int)change->ident;
        note->pid = getpid();
        *at = note;
    }
    if (change->filter == EVFILT_READ) {
        note->read = 1;
        note->edge = (change->flags & EV_CLEAR) != 0;
        note->told = 0;
        note->read_data = change->udata;
    } else {
        note->write = 1;
        note->write_data = change->udata;
    }
    if (t_kq_arm(note) == 0) return 0;
    t_kq_forget(at);
    return -1;
}

/* The events of one note; returns how many, up to two. */
T_KQ_FN int t_kq_found(t_kq_note *note, uint32_t found, struct kevent *out) {
    uint32_t       ends = found & (uint32_t)T_KQ_ENDS;
    unsigned short eof = ends ? EV_EOF : 0;
    int            n = 0;
    if (note->read && (note->edge ? (ends & ~note->told) != 0
                                  : (found & EPOLLIN) || ends)) {
        EV_SET(&out[n], (uintptr_t)note->fd, EVFILT_READ, eof, 0, 0,
               note->read_data);
        n++;
        if (note->edge) {
            note->told |= ends;
            (void)t_kq_arm(note);
        }
    }
    ends &= ~(uint32_t)EPOLLRDHUP; /* the peer still reads */
    if (note->write && ((found & EPOLLOUT) || ends)) {
        EV_SET(&out[n], (uintptr_t)note->fd, EVFILT_WRITE,
               (unsigned short)(ends ? EV_EOF : 0), 0, 0, note->write_data);
        n++;
    }
    return n;
}

/* One wait; the number of events, 0 also when all were of no filter. */
T_KQ_FN int t_kq_wait(int queue, struct kevent *events, int room, int ms,
                      int *ready) {
    struct epoll_event found[128];
    int                i, n = 0;
    *ready = epoll_wait(queue, found, room / 2 < 128 ? room / 2 : 128, ms);
    pthread_mutex_lock(&t_kq_lock);
    for (i = 0; i < *ready; i++) {
        t_kq_note *note =
            *t_kq_place(queue, (int)(uint32_t)found[i].data.u64);
        if (note && note->serial == (unsigned)(found[i].data.u64 >> 32))
            n += t_kq_found(note, found[i].events, events + n);
    }
    pthread_mutex_unlock(&t_kq_lock);
    return n;
}

T_KQ_FN long long t_kq_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Either one change, or a wait with room for two events at least. */
T_KQ_FN int kevent(int queue, const struct kevent *change, int changes,
                   struct kevent *events, int room, const struct timespec *t) {
    int       ready = 0, n, rc, ms = -1;
    long long until = 0;
    if (changes == 1) {
        t_kq_note **at;
        pthread_mutex_lock(&t_kq_lock);
        at = t_kq_place(queue, (int)change->ident);
        if (*at && (*at)->pid != getpid()) {
            errno = EBADF;
            rc = -1;
        } else if (change->flags & EV_DELETE) {
            rc = t_kq_delete(at, change->filter);
        } else {
            rc = t_kq_add(at, queue, change);
        }
        pthread_mutex_unlock(&t_kq_lock);
        return rc;
    }
    if (t) until = t_kq_now() + t->tv_sec * 1000 + t->tv_nsec / 1000000;
    do {
        if (t) ms = (int)(until - t_kq_now());
        n = t_kq_wait(queue, events, room, t && ms < 0 ? 0 : ms, &ready);
    } while (n == 0 && ready > 0 && (!t || t_kq_now() < until));
    return ready < 0 ? -1 : n;
}

T_KQ_FN int t_kq_poll(struct pollfd *list, nfds_t count, int ms) {
    int    rc, n = 0;
    nfds_t i;
    for (i = 0; i < count; i++)
        if (list[i].events & POLLIN) list[i].events |= POLLRDHUP;
    rc = poll(list, count, ms);
    for (i = 0; i < count; i++) {
        if (!(list[i].events & (POLLIN | POLLOUT))) list[i].revents = 0;
        list[i].events = (short)(list[i].events & ~POLLRDHUP);
        if (rc < 0) continue;
        if (list[i].revents & POLLRDHUP)
            list[i].revents =
                (short)((list[i].revents & ~POLLRDHUP) | POLLHUP);
        n += list[i].revents != 0;
    }
    return rc < 0 ? rc : n;
}

#define poll t_kq_poll

#endif
