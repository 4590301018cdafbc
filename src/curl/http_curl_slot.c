/* http_curl_slot.c - handles of libcurl, each with its connections, and their
   sockets. Depends on: base, os. */
#include "http_curl_parts.h"

/* ---- sockets ---- */

HFSBI_FN curl_socket_t hfsbi_curl_on_socket(void *user, curlsocktype purpose,
                                            struct curl_sockaddr *at) {
    hfsbi_curl_slot *slot = (hfsbi_curl_slot *)user;
    int              fd, i;
    (void)purpose;
#ifdef HFSBI_LINUX
    fd = socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
    fd = hfsbi_above_standard(fd);
#else
    fd = hfsbi_above_standard(socket(at->family, at->socktype, at->protocol));
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) hfsbi_close(&fd);
#endif
    if (fd < 0) {
        slot->code = errno;
        return CURL_SOCKET_BAD;
    }
    for (i = 0; i < HFSBI_CURL_SOCKETS && slot->fds[i] >= 0;) i++;
    if (i < HFSBI_CURL_SOCKETS) slot->fds[i] = fd;
    return fd;
}

HFSBI_FN int hfsbi_curl_on_close(void *user, curl_socket_t fd) {
    hfsbi_curl_slot *slot = (hfsbi_curl_slot *)user;
    int              i;
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++)
        if (slot->fds[i] == fd) slot->fds[i] = -1;
    return close(fd);
}

/* libcurl looks whether a kept connection was closed, but takes the good-bye
   of TLS for a sign of life, and counts on sending the request again. What is
   read and shut down here it finds closed. */
HFSBI_FN void hfsbi_curl_freshen(hfsbi_curl_slot *slot) {
    char          scrap[512];
    struct pollfd p;
    int           i;
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++) {
        p.fd = slot->fds[i];
        p.events = POLLIN;
        p.revents = 0;
        if (p.fd < 0 || poll(&p, 1, 0) <= 0) continue;
        (void)shutdown(p.fd, SHUT_RDWR);
        while (recv(p.fd, scrap, sizeof scrap, MSG_DONTWAIT) > 0) continue;
    }
}

/* ---- handles ---- */

HFSBI_FN void hfsbi_curl_slot_free(const hfsbi_curl *curl,
                                   hfsbi_curl_slot  *slot) {
    hfsbi_signal_guard guard; /* it may say good-bye to a peer that is gone */
    if (slot->pid != (long)getpid()) return; /* not ours to say */
    hfsbi_signal_guard_begin(&guard);
    if (slot->easy) curl_easy_cleanup(slot->easy);
    if (slot->multi) (void)curl_multi_cleanup(slot->multi);
    hfsbi_signal_guard_end(&guard);
    hfsb_buf_free(&slot->origin);
    hfsbi_array_free(&curl->alloc, slot, 1, sizeof *slot);
}

static hfsbi_curl_slot *hfsbi_curl_slot_new(const hfsbi_curl *curl) {
    int              i;
    hfsbi_curl_slot *slot =
        (hfsbi_curl_slot *)hfsbi_array(&curl->alloc, 1, sizeof *slot);
    if (!slot) return NULL;
    memset(slot, 0, sizeof *slot);
    for (i = 0; i < HFSBI_CURL_SOCKETS; i++) slot->fds[i] = -1;
    slot->pid = (long)getpid();
    slot->origin.alloc = curl->alloc;
    slot->easy = curl_easy_init();
    slot->multi = curl_multi_init();
    if (slot->easy && slot->multi) {
        (void)curl_multi_setopt(slot->multi, CURLMOPT_MAXCONNECTS,
                                (long)HFSBI_CURL_KEPT);
        return slot;
    }
    hfsbi_curl_slot_free(curl, slot);
    return NULL;
}

HFSBI_FN hfsbi_curl_slot *hfsbi_curl_take(hfsbi_curl *curl, hfsb_str origin) {
    hfsbi_curl_slot **at, **best = NULL, *slot = NULL;
    long              pid = (long)getpid();
    (void)pthread_mutex_lock(&curl->lock);
    for (at = &curl->idle; *at; at = &(*at)->next) {
        bool same = hfsb_str_equal(hfsb_buf_str(&(*at)->origin), origin);
        if ((*at)->pid == pid && (same || !best)) best = at;
        if (same && best == at) break;
    }
    if (best) {
        slot = *best;
        *best = slot->next;
        curl->idle_count--;
    }
    (void)pthread_mutex_unlock(&curl->lock);
    if (!slot) slot = hfsbi_curl_slot_new(curl);
    if (!slot) return NULL;
    hfsb_buf_truncate(&slot->origin, 0);
    if (!hfsb_buf_append(&slot->origin, origin)) return slot;
    hfsbi_curl_slot_free(curl, slot);
    return NULL;
}

HFSBI_FN void hfsbi_curl_give_back(hfsbi_curl *curl, hfsbi_curl_slot *slot) {
    bool keep;
    (void)pthread_mutex_lock(&curl->lock);
    keep = curl->idle_count < curl->max_kept;
    if (keep) {
        slot->next = curl->idle;
        curl->idle = slot;
        curl->idle_count++;
    }
    (void)pthread_mutex_unlock(&curl->lock);
    if (!keep) hfsbi_curl_slot_free(curl, slot);
}
