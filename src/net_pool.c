/* net_pool.c - connections that are kept for the next call. Depends on:
   net_socket. */
#include "net_parts.h"

/* Bytes that are read at once, and what a kept one may hold for the head of
   its next request. */
#define HFSBI_LINK_ROOM    ((size_t)65536)
#define HFSBI_LINK_MAX_OUT ((size_t)65536)

/* ---- one connection ---- */

HFSBI_FN void hfsbi_link_close(hfsbi_link *link) {
    hfsb_alloc alloc;
    if (!link) return;
    alloc = link->alloc;
    hfsbi_close(&link->fd);
    hfsb_buf_free(&link->out);
    hfsbi_array_free(&alloc, link->in, link->room, 1);
    hfsbi_array_free(&alloc, link->fields, link->max_fields,
                     sizeof *link->fields);
    hfsbi_array_free(&alloc, link, 1, sizeof *link);
}

static hfsbi_link *hfsbi_link_make(const hfsbi_net *net, hfsb_str host,
                                   unsigned port) {
    hfsbi_link *link = (hfsbi_link *)hfsbi_array(&net->alloc, 1, sizeof *link);
    size_t      i;
    if (!link) return NULL;
    memset(link, 0, sizeof *link);
    link->alloc = link->out.alloc = net->alloc;
    link->fd = -1;
    link->port = port;
    for (i = 0; i < host.len && i + 1 < sizeof link->host; i++)
        link->host[i] = hfsbi_lower(host.ptr[i]);
    link->room = net->limits.max_head > HFSBI_LINK_ROOM ? net->limits.max_head
                                                        : HFSBI_LINK_ROOM;
    link->max_fields = net->limits.max_fields;
    link->in = (char *)hfsbi_array(&net->alloc, link->room, 1);
    link->fields = (hfsb_http_field *)hfsbi_array(
        &net->alloc, link->max_fields, sizeof *link->fields);
    if (link->in && link->fields) return link;
    if (!link->in) link->room = 0;
    if (!link->fields) link->max_fields = 0;
    hfsbi_link_close(link);
    return NULL;
}

/* ---- all of them; the lock is held only to change the list, never while
   something is closed or looked at ---- */

static void hfsbi_pool_close_all(hfsbi_link *list) {
    while (list) {
        hfsbi_link *next = list->next;
        hfsbi_link_close(list);
        list = next;
    }
}

/* Takes out those that are too old, and the first that leads to the place;
   both are put in front of the lists. */
static void hfsbi_pool_sort(hfsbi_net *net, hfsb_str host, unsigned port,
                            hfsbi_link **found, hfsbi_link **old) {
    hfsbi_link **at = &net->kept, *link;
    long long    now = hfsb_clock_ms();
    long         pid = (long)getpid();
    while ((link = *at) != NULL) {
        bool fits = !*found && link->port == port &&
                    hfsb_http_same(hfsb_cstr(link->host), host);
        bool stale = link->until <= now || link->pid != pid;
        if (!fits && !stale) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        net->count--;
        link->next = stale ? *old : NULL;
        *(stale ? old : found) = link;
    }
}

HFSBI_FN hfsbi_link *hfsbi_pool_take(hfsbi_net *net, hfsb_str host,
                                     unsigned port, bool fresh, bool *kept) {
    *kept = false;
    while (!fresh) {
        hfsbi_link *found = NULL, *old = NULL;
        (void)pthread_mutex_lock(&net->lock);
        hfsbi_pool_sort(net, host, port, &found, &old);
        (void)pthread_mutex_unlock(&net->lock);
        hfsbi_pool_close_all(old);
        if (!found) break;
        *kept = hfsbi_link_quiet(found);
        if (*kept) return found;
        hfsbi_link_close(found);
    }
    return hfsbi_link_make(net, host, port);
}

HFSBI_FN void hfsbi_pool_keep(hfsbi_net *net, hfsbi_link *link, long long ms) {
    hfsbi_link **last, *old = NULL;
    link->until = hfsb_clock_ms() + (ms < net->kept_ms ? ms : net->kept_ms);
    link->have = 0;
    if (link->out.cap > HFSBI_LINK_MAX_OUT) hfsb_buf_free(&link->out);
    (void)pthread_mutex_lock(&net->lock);
    link->next = net->kept;
    net->kept = link;
    if (net->count++ == net->max_kept) {
        for (last = &net->kept; (*last)->next;) last = &(*last)->next;
        old = *last;
        *last = NULL;
        net->count--;
    }
    (void)pthread_mutex_unlock(&net->lock);
    hfsbi_pool_close_all(old);
}

HFSBI_FN void hfsbi_pool_clear(hfsbi_net *net) {
    hfsbi_pool_close_all(net->kept);
    net->kept = NULL;
    net->count = 0;
}
