/* fake_hub_edge.h - the edge in front of the Spaces, like
   https://{name}.hf.space: one thread per connection, which answers itself or
   forwards bytes. Part of fake_hub.h. */

enum { FH_EDGE_KEPT = 65536 }; /* bytes of a body that are remembered */

/* One head; what follows it is left in *in. */
static bool fh_read_head(int fd, hfsb_buf *in, fh_record *r) {
    size_t   end, line, space;
    hfsb_str head;
    while ((end = hfsb_str_find(hfsb_buf_str(in), HFSB_LIT("\r\n\r\n"))) ==
           HFSB_NPOS)
        if (!fh_receive(fd, in)) return false;
    head = hfsb_str_make(in->ptr, end + 2);
    line = hfsb_str_find(head, HFSB_LIT("\r\n"));
    fh_set(&r->fields, hfsb_str_slice(head, line + 2, head.len));
    head = hfsb_str_slice(head, 0, line);
    space = hfsb_str_find_byte(head, ' ');
    fh_set(&r->method, hfsb_str_slice(head, 0, space));
    head = hfsb_str_slice(head, space == HFSB_NPOS ? head.len : space + 1,
                          head.len);
    fh_set(&r->target,
           hfsb_str_slice(head, 0, hfsb_str_find_byte(head, ' ')));
    fh_set(&r->path, hfsb_str_slice(hfsb_buf_str(&r->target), 0,
                                    hfsb_str_find_byte(
                                        hfsb_buf_str(&r->target), '?')));
    fh_shift(in, end + 4);
    return true;
}

/* The whole body, for an answer of our own; false: it ended early. */
static bool fh_read_body(int fd, hfsb_buf *in, fh_record *r) {
    size_t length = 0;
    if (hfsb_http_same(fh_field(r, "Transfer-Encoding"),
                       HFSB_LIT("chunked"))) {
        for (;;) {
            size_t end, size;
            while ((end = hfsb_str_find(hfsb_buf_str(in),
                                        HFSB_LIT("\r\n"))) == HFSB_NPOS)
                if (!fh_receive(fd, in)) return false;
            size = (size_t)strtoul(in->ptr, NULL, 16);
            while (in->len < end + 2 + size + 2)
                if (!fh_receive(fd, in)) return false;
            FH_MUST(hfsb_buf_append(
                &r->body, hfsb_str_make(in->ptr + end + 2, size)));
            fh_shift(in, end + 2 + size + 2);
            if (!size) return true;
        }
    }
    if (fh_field(r, "Content-Length").len)
        length = (size_t)strtoul(fh_field(r, "Content-Length").ptr, NULL, 10);
    while (in->len < length)
        if (!fh_receive(fd, in)) return false;
    FH_MUST(hfsb_buf_append(&r->body, hfsb_str_make(in->ptr, length)));
    if (length) fh_shift(in, length);
    return true;
}

/* ---- which Space ---- */

/* By the path in front, which is taken away then. */
static fh_space *fh_edge_prefixed(fh_hub *hub, fh_record *r) {
    fh_space *s;
    for (s = hub->spaces; s; s = s->next) {
        hfsb_str path = hfsb_buf_str(&r->path);
        hfsb_str id = hfsb_buf_str(&s->id);
        if (s->gone || path.len < id.len + 2 || path.ptr[id.len + 1] != '/' ||
            !hfsb_str_starts(hfsb_str_slice(path, 1, path.len), id))
            continue;
        fh_shift(&r->path, id.len + 1);
        fh_shift(&r->target, id.len + 1);
        return s;
    }
    return NULL;
}

static fh_space *fh_edge_space(fh_hub *hub, fh_record *r) {
    fh_space *s, *newest = NULL, *named = fh_edge_prefixed(hub, r);
    hfsb_str  host = fh_field(r, "Host");
    hfsb_str  token = fh_bearer(r, "X-Sandbox-Authorization");
    char      sub[128];
    if (named) return named;
    if (hfsb_str_find(host, HFSB_LIT(".hf.space")) != HFSB_NPOS) {
        for (s = hub->spaces; s; s = s->next) {
            fh_subdomain(hfsb_buf_str(&s->id), sub);
            strcat(sub, ".");
            if (!s->gone && hfsb_str_starts(host, hfsb_cstr(sub))) return s;
        }
        return NULL;
    }
    for (s = hub->spaces; s; s = s->next) {
        fh_pair *p = fh_pair_find(s->secrets, HFSB_LIT("SANDBOX_API_TOKEN"));
        if (s->gone || s->reserved) continue;
        newest = s;
        if (token.len && p && hfsb_str_equal(hfsb_buf_str(&p->value), token))
            named = s;
    }
    return named ? named : newest;
}

/* ---- its answers ---- */

static void fh_stub(const fh_space *s, const fh_record *r, fh_reply *reply) {
    fh_pair *p = fh_pair_find(s->secrets, HFSB_LIT("SANDBOX_API_TOKEN"));
    hfsb_str token = fh_bearer(r, "X-Sandbox-Authorization");
    if (fh_is(&r->path, "/api/health"))
        fh_raw(reply, 200, "application/json", "{\"status\":\"ok\"}");
    else if (!p)
        fh_raw(reply, 503, "application/json",
               "{\"detail\":\"Sandbox API token not configured\"}");
    else if (!token.len)
        fh_raw(reply, 401, "application/json",
               "{\"detail\":\"Missing bearer token\"}");
    else if (!hfsb_str_equal(token, hfsb_buf_str(&p->value)))
        fh_raw(reply, 401, "application/json",
               "{\"detail\":\"Invalid bearer token\"}");
    else
        fh_raw(reply, 200, "application/json",
               "{\"success\":true,\"output\":\"\",\"error\":\"\"}");
}

/* The job whose exposed port Host names; NULL: none. */
static fh_job *fh_edge_job(fh_hub *hub, const fh_record *r) {
    hfsb_str host = fh_field(r, "Host");
    fh_job  *j;
    for (j = hub->jobs; j; j = j->next)
        if (j->box && hfsb_str_starts(host, hfsb_cstr(j->id)) &&
            hfsb_str_find(host, HFSB_LIT("--49983.")) != HFSB_NPOS)
            return j;
    return NULL;
}

static void fh_edge_job_answer(fh_hub *hub, const fh_job *j, fh_record *r,
                               fh_reply *reply, unsigned *port) {
    char stage[32];
    fh_job_stage(j, stage);
    if (!fh_trusted(hub, r))
        fh_raw(reply, 401, "text/plain", "Unauthorized");
    else if (strcmp(stage, "RUNNING")) fh_html(reply, 404, stage);
    else if (j->box->machine) *port = j->box->machine->port;
    else fh_stub(j->box, r, reply);
    if (j->box->machine && !*port && !reply->status)
        fh_html(reply, 502, "Starting");
}

/* The answer of the edge; *port: or the server to hand it to. */
static void fh_edge_answer(fh_hub *hub, fh_record *r, fh_reply *reply,
                           unsigned *port) {
    fh_space *s = fh_edge_space(hub, r);
    fh_stage  now;
    bool      health = fh_is(&r->path, "/api/health");
    fh_job   *job = fh_edge_job(hub, r);
    if (job) {
        fh_edge_job_answer(hub, job, r, reply, port);
        return;
    }
    if (!s || (s->hidden && !fh_trusted(hub, r))) {
        fh_html(reply, 404, "404 - Hugging Face");
        return;
    }
    now = fh_stage_now(hub, s, health && !fh_runs(fh_stage_now(
                                   hub, s, false).name));
    if (!fh_runs(now.name)) {
        fh_html(reply, 503, now.name);
        return;
    }
    if (health && s->asleep) {
        s->asleep--;
        fh_html(reply, 503, "Starting");
        return;
    }
    *port = s->machine ? s->machine->port : 0;
    if (s->machine && !*port) fh_html(reply, 503, "Starting");
    else if (!*port) fh_stub(s, r, reply);
}

/* ---- handing through ---- */

/* The head as it came, but for Connection: a WebSocket stays, all else is for
   one request. */
static void fh_forward_head(const fh_record *r, hfsb_buf *out) {
    hfsb_str left = hfsb_buf_str(&r->fields);
    bool     upgrade =
        hfsb_http_same(fh_field(r, "Upgrade"), HFSB_LIT("websocket"));
    FH_MUST(hfsb_buf_printf(out, "%s %s HTTP/1.1\r\n", r->method.ptr,
                            r->target.ptr));
    while (left.len) {
        size_t   end = hfsb_str_find(left, HFSB_LIT("\r\n"));
        hfsb_str line = hfsb_str_slice(left, 0, end + 2);
        left = hfsb_str_slice(left, end + 2, left.len);
        if (!hfsb_http_same(hfsb_str_slice(line, 0, 11),
                            HFSB_LIT("Connection:")))
            FH_MUST(hfsb_buf_append(out, line));
    }
    fh_put(out, upgrade ? "Connection: Upgrade\r\n\r\n"
                        : "Connection: close\r\n\r\n");
}

/* Moves what is there from one to the other; false at the end of `from`. */
static bool fh_move(int from, int to, hfsb_buf *keep, size_t max) {
    char    piece[65536];
    ssize_t n;
    do n = recv(from, piece, sizeof piece, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    if (keep && keep->len < max)
        FH_MUST(hfsb_buf_append(
            keep, hfsb_str_slice(hfsb_str_make(piece, (size_t)n), 0,
                                 max - keep->len)));
    return to < 0 || fh_send(to, hfsb_str_make(piece, (size_t)n));
}

static void fh_nap(fh_hub *hub, long long ms) {
    struct pollfd p;
    memset(&p, 0, sizeof p);
    p.fd = hub->edge_stop[0];
    p.events = POLLIN;
    (void)poll(&p, 1, (int)ms);
}

/* Both ways until the server is done. With a cut or a delay the answer is
   held until it is whole. */
static void fh_relay(fh_hub *hub, fh_conn *c, hfsb_buf *in, fh_record *r,
                     fh_cut cut, long long delay_ms) {
    hfsb_buf      out = HFSB_INIT, held = HFSB_INIT;
    struct pollfd p[2];
    bool          up = true, hold = cut || delay_ms;
    size_t        max = 64 << 20;
    memset(p, 0, sizeof p);
    fh_forward_head(r, &out);
    FH_MUST(hfsb_buf_append(&out, hfsb_buf_str(in)));
    fh_lock(hub);
    FH_MUST(hfsb_buf_append(&r->body, hfsb_str_slice(hfsb_buf_str(in), 0,
                                                     FH_EDGE_KEPT)));
    fh_unlock(hub);
    hfsb_buf_truncate(in, 0);
    up = fh_send(c->back, hfsb_buf_str(&out));
    for (;;) {
        p[0].fd = c->back;
        p[1].fd = up ? c->fd : -1;
        p[0].events = p[1].events = POLLIN;
        if (poll(p, 2, -1) < 0 && errno != EINTR) break;
        if (p[0].revents &&
            !fh_move(c->back, hold ? -1 : c->fd, &held, hold ? max : 16))
            break;
        if (p[1].revents) {
            fh_lock(hub); /* the record is looked at by others */
            up = fh_move(c->fd, c->back, &r->body, FH_EDGE_KEPT);
            fh_unlock(hub);
            if (!up && !hold) break; /* the client is gone: so are we */
        }
    }
    if (delay_ms) fh_nap(hub, delay_ms);
    fh_lock(hub);
    if (!cut && held.len > 12) r->status = atoi(held.ptr + 9);
    fh_unlock(hub);
    if (delay_ms && !cut) (void)fh_send(c->fd, hfsb_buf_str(&held));
    else if (cut >= FH_CUT_HEAD)
        (void)fh_send(c->fd,
                      hfsb_str_slice(hfsb_buf_str(&held), 0,
                                     cut == FH_CUT_HEAD ? 20
                                                        : held.len - 2));
    hfsb_buf_free(&out);
    hfsb_buf_free(&held);
}

/* ---- one request ---- */

static bool fh_edge_reply(fh_conn *c, fh_record *r, fh_reply *reply,
                          fh_cut cut) {
    hfsb_buf out = HFSB_INIT;
    bool     keep = !hfsb_http_same(fh_field(r, "Connection"),
                                    HFSB_LIT("close"));
    if (cut) {
        fh_cut_send(c->fd, reply, cut);
        return false;
    }
    fh_head_bytes(reply, keep, &out);
    if (!fh_is(&r->method, "HEAD"))
        FH_MUST(hfsb_buf_append(&out, hfsb_buf_str(&reply->body)));
    keep = fh_send(c->fd, hfsb_buf_str(&out)) && keep;
    hfsb_buf_free(&out);
    return keep;
}

/* Closing the descriptor sends a reset instead of an end. */
static void fh_linger_none(int fd, fh_cut cut) {
    struct linger now;
    now.l_onoff = 1;
    now.l_linger = 0;
    if (cut == FH_RESET || cut == FH_RESET_BODY)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static bool fh_edge_dial(fh_hub *hub, fh_conn *c, unsigned port) {
    int fd = fh_dial(port);
    fh_lock(hub);
    c->back = fd;
    if (fd >= 0 && hub->stopping) shutdown(fd, SHUT_RDWR);
    fh_unlock(hub);
    return fd >= 0;
}

/* False: the connection is at its end. */
static bool fh_edge_one(fh_hub *hub, fh_conn *c, hfsb_buf *in,
                        fh_record *seen) {
    const fh_fault_spec *fault;
    fh_fault_spec        f = HFSB_INIT;
    fh_record           *r;
    fh_reply             reply = HFSB_INIT;
    unsigned             port = 0;
    fh_cut               cut;
    bool                 keep = false;
    reply.type = "";
    fh_lock(hub);
    r = fh_record_new(hub);
    r->edge = true;
    r->method = seen->method;
    r->target = seen->target;
    r->path = seen->path;
    r->fields = seen->fields;
    memset(seen, 0, sizeof *seen);
    fault = fh_fault_for(hub, r);
    if (fault) f = *fault;
    if (!fault || f.work || (!f.status && !f.cut))
        fh_edge_answer(hub, r, &reply, &port);
    else fh_raw(&reply, 200, "application/json", "{\"cut\":true}");
    if (fault && (f.status || !port)) fh_fault_answer(&f, &reply);
    r->status = port || f.cut ? 0 : reply.status;
    /* a lie after the work: the true answer is thrown away */
    cut = port && f.status && !f.cut ? FH_CLOSE : f.cut;
    fh_unlock(hub);
    if (port && fh_edge_dial(hub, c, port)) {
        fh_linger_none(c->fd, cut);
        fh_relay(hub, c, in, r, cut, f.delay_ms);
        fh_lock(hub);
        close(c->back);
        c->back = -1;
        fh_unlock(hub);
        if (f.status && !f.cut)
            (void)fh_edge_reply(c, r, &reply, FH_WHOLE);
    } else if (port) {
        fh_html(&reply, 502, "Bad Gateway");
        keep = fh_edge_reply(c, r, &reply, FH_WHOLE);
    } else if (fh_read_body(c->fd, in, r)) {
        if (f.delay_ms) fh_nap(hub, f.delay_ms);
        keep = fh_edge_reply(c, r, &reply, cut);
    }
    fh_reply_free(&reply);
    return keep;
}

/* ---- connections ---- */

static void *fh_edge_serve(void *user) {
    fh_conn  *c = (fh_conn *)user, **at;
    fh_hub   *hub = c->hub;
    hfsb_buf  in = HFSB_INIT;
    fh_record seen = HFSB_INIT;
    while (fh_read_head(c->fd, &in, &seen) &&
           fh_edge_one(hub, c, &in, &seen))
        continue;
    hfsb_buf_free(&seen.method);
    hfsb_buf_free(&seen.target);
    hfsb_buf_free(&seen.path);
    hfsb_buf_free(&seen.fields);
    hfsb_buf_free(&in);
    fh_lock(hub);
    close(c->fd);
    for (at = &hub->conns; *at != c; at = &(*at)->next) continue;
    *at = c->next;
    free(c);
    pthread_cond_signal(&hub->quiet);
    fh_unlock(hub);
    return NULL;
}

static void fh_edge_accept(fh_hub *hub) {
    pthread_attr_t attr;
    pthread_t      thread;
    fh_conn       *c;
    int            fd = accept4(hub->edge_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    c = (fh_conn *)fh_new(sizeof *c);
    c->hub = hub;
    c->fd = fd;
    c->back = -1;
    fh_lock(hub);
    c->next = hub->conns;
    hub->conns = c;
    fh_unlock(hub);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, fh_edge_serve, c)) fh_die("thread");
    pthread_attr_destroy(&attr);
}

static void *fh_edge_run(void *user) {
    fh_hub       *hub = (fh_hub *)user;
    struct pollfd p[2];
    memset(p, 0, sizeof p);
    p[0].fd = hub->edge_fd;
    p[1].fd = hub->edge_stop[0];
    p[0].events = p[1].events = POLLIN;
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR) fh_die("poll");
        if (p[1].revents) return NULL;
        if (p[0].revents) fh_edge_accept(hub);
    }
}

static void fh_edge_open(fh_hub *hub) {
    struct sockaddr_in a;
    socklen_t          len = sizeof a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hub->edge_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (hub->edge_fd < 0 ||
        bind(hub->edge_fd, (struct sockaddr *)&a, sizeof a) ||
        listen(hub->edge_fd, 64) ||
        getsockname(hub->edge_fd, (struct sockaddr *)&a, &len) ||
        pipe(hub->edge_stop) ||
        fcntl(hub->edge_stop[0], F_SETFD, FD_CLOEXEC) ||
        fcntl(hub->edge_stop[1], F_SETFD, FD_CLOEXEC))
        fh_die("no edge");
    snprintf(hub->edge, sizeof hub->edge, "http://127.0.0.1:%u",
             (unsigned)ntohs(a.sin_port));
    if (pthread_create(&hub->edge_thread, NULL, fh_edge_run, hub))
        fh_die("thread");
}

static void fh_edge_close(fh_hub *hub) {
    fh_conn *c;
    if (write(hub->edge_stop[1], "x", 1) != 1) fh_die("edge");
    pthread_join(hub->edge_thread, NULL);
    fh_lock(hub);
    hub->stopping = true;
    for (c = hub->conns; c; c = c->next) {
        shutdown(c->fd, SHUT_RDWR);
        if (c->back >= 0) shutdown(c->back, SHUT_RDWR);
    }
    while (hub->conns) pthread_cond_wait(&hub->quiet, &hub->lock);
    fh_unlock(hub);
    close(hub->edge_fd);
    close(hub->edge_stop[0]);
    close(hub->edge_stop[1]);
}
