/* fake_hub_build.h - what a Space runs on: a server in this process, or a real
   build of what was committed. Part of fake_hub.h.

   A build reads of a Dockerfile: RUN lines of its first stage that begin with
   make, cc or gcc (run in the directory with the committed files), COPY --from
   (the program gets its name from there), CMD in its exec form, in which the
   values of --host, --port and --work-dir are replaced. */

enum { FH_WORDS = 64 };

/* ---- directories ---- */

static void fh_make_dirs(const char *path) {
    char  *copy = fh_keep(path), *at = copy;
    while ((at = strchr(at + 1, '/')) != NULL) {
        *at = '\0';
        (void)mkdir(copy, 0755);
        *at = '/';
    }
    free(copy);
}

static void fh_write_file(const char *path, hfsb_str content) {
    FILE *f;
    fh_make_dirs(path);
    f = fopen(path, "wb");
    if (!f || fwrite(content.ptr ? content.ptr : "", 1, content.len, f) !=
                  content.len)
        fh_die(path);
    fclose(f);
}

/* Removes what we made: only beneath a directory of mkdtemp(). */
static void fh_remove_dir(const char *dir) {
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(127);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
}

static void fh_scratch(hfsb_buf *out) {
    const char *tmp = getenv("TMPDIR");
    FH_MUST(hfsb_buf_printf(out, "%s/fake-hub-XXXXXX", tmp ? tmp : "/tmp"));
    if (!mkdtemp(out->ptr)) fh_die(out->ptr);
}

/* ---- commands ---- */

/* Called every 50 ms: what is to end is asked once more, then made to. */
static void fh_nudge(fh_machine *m, int *turns) {
    fh_lock(m->hub);
    if (m->stop && m->pid > 0) {
        ++*turns;
        if (*turns == 4) kill(m->pid, SIGTERM); /* twice: at once */
        if (*turns == 40) kill(-m->pid, SIGKILL);
    }
    fh_unlock(m->hub);
}

/* Reads what is printed line by line, until its end. */
static void fh_read_lines(fh_machine *m, int fd, hfsb_buf *log,
                          void (*each)(fh_machine *m, hfsb_str line)) {
    hfsb_buf      in = HFSB_INIT;
    char          piece[4096];
    struct pollfd p;
    int           turns = 0;
    memset(&p, 0, sizeof p);
    p.fd = fd;
    p.events = POLLIN;
    for (;;) {
        size_t  end;
        ssize_t n = 0;
        if (poll(&p, 1, 50) > 0 && (n = read(fd, piece, sizeof piece)) <= 0)
            break;
        if (!n) fh_nudge(m, &turns);
        FH_MUST(hfsb_buf_append(&in, hfsb_str_make(piece, (size_t)n)));
        while ((end = hfsb_str_find_byte(hfsb_buf_str(&in), '\n')) !=
               HFSB_NPOS) {
            fh_lock(m->hub);
            FH_MUST(hfsb_buf_append(log, hfsb_str_make(in.ptr, end + 1)));
            fh_unlock(m->hub);
            if (each) each(m, hfsb_str_make(in.ptr, end));
            fh_shift(&in, end + 1);
        }
    }
    hfsb_buf_free(&in);
}

/* In a group of its own, its output in *out_fd. -1: it cannot. */
static pid_t fh_spawn(fh_machine *m, const char *dir, char *const *argv,
                      char *const *env, int *out_fd) {
    int   p[2];
    pid_t pid;
    if (pipe(p)) return -1;
    (void)fcntl(p[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(p[1], F_SETFD, FD_CLOEXEC);
    fh_lock(m->hub);
    pid = m->stop ? -1 : fork();
    if (pid == 0) {
        sigset_t none;
        int      null = open("/dev/null", O_RDONLY);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setpgid(0, 0);
        dup2(null, 0);
        dup2(p[1], 1);
        dup2(p[1], 2);
        if (chdir(dir) == 0) execve(argv[0], argv, env);
        _exit(127);
    }
    m->pid = pid > 0 ? pid : 0;
    fh_unlock(m->hub);
    close(p[1]);
    *out_fd = p[0];
    if (pid < 0) close(p[0]);
    return pid;
}

/* Its exit status, 256 for a signal. */
static int fh_reap(fh_machine *m, pid_t pid) {
    int  status = 0, turns = 0;
    bool ended = false;
    while (!ended) {
        fh_lock(m->hub);
        ended = waitpid(pid, &status, WNOHANG) == pid;
        if (ended) m->pid = 0;
        fh_unlock(m->hub);
        if (!ended) usleep(10000);
        if (!ended) fh_nudge(m, &turns);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

static void fh_say(fh_machine *m, const char *format, const char *text) {
    fh_lock(m->hub);
    FH_MUST(hfsb_buf_printf(&m->space->build_log, format, text));
    fh_put(&m->space->build_log, "\n");
    fh_unlock(m->hub);
}

extern char **environ;

/* A compile line; true when it went well. */
static bool fh_compile(fh_machine *m, const char *line) {
    char     sh[] = "/bin/sh", c[] = "-c";
    char    *argv[4];
    hfsb_buf command = HFSB_INIT;
    int      fd = -1, status = 1;
    pid_t    pid;
    bool     make = !strncmp(line, "make ", 5);
    FH_MUST(hfsb_buf_printf(&command, "%s %s", line,
                            make && m->hub->o.build_vars
                                ? m->hub->o.build_vars
                                : ""));
    fh_say(m, "--> RUN %s", command.ptr);
    argv[0] = sh;
    argv[1] = c;
    argv[2] = command.ptr;
    argv[3] = NULL;
    pid = fh_spawn(m, m->dir.ptr, argv, environ, &fd);
    if (pid > 0) {
        fh_read_lines(m, fd, &m->space->build_log, NULL);
        close(fd);
        status = fh_reap(m, pid);
    }
    hfsb_buf_free(&command);
    return status == 0;
}

/* ---- the Dockerfile ---- */

/* The next instruction, its continued lines joined; false at the end. */
static bool fh_instruction(hfsb_str *left, hfsb_buf *out) {
    hfsb_buf_truncate(out, 0);
    while (left->len) {
        size_t   end = hfsb_str_find_byte(*left, '\n');
        hfsb_str line = hfsb_str_slice(*left, 0, end);
        *left = hfsb_str_slice(*left, end == HFSB_NPOS ? left->len : end + 1,
                               left->len);
        while (line.len && (*line.ptr == ' ' || *line.ptr == '\t'))
            line = hfsb_str_slice(line, 1, line.len);
        if (!line.len || *line.ptr == '#') continue;
        if (line.ptr[line.len - 1] == '\\') {
            FH_MUST(hfsb_buf_append(out,
                                    hfsb_str_slice(line, 0, line.len - 1)));
            continue;
        }
        FH_MUST(hfsb_buf_append(out, line));
        return true;
    }
    return out->len > 0;
}

static bool fh_begins(const hfsb_buf *line, const char *word) {
    return hfsb_str_starts(hfsb_buf_str(line), hfsb_cstr(word));
}

static bool fh_compiles(const hfsb_buf *line) {
    return fh_begins(line, "RUN make ") || fh_begins(line, "RUN cc ") ||
           fh_begins(line, "RUN gcc ");
}

/* COPY --from=build /src/a/b /usr/local/bin/c: DIR/bin/c leads to DIR/a/b. */
static void fh_copy_from(fh_machine *m, const char *line, const char *home) {
    char     from[256], to[256];
    hfsb_buf link = HFSB_INIT, file = HFSB_INIT;
    char    *name;
    size_t   n = strlen(home);
    if (sscanf(line, "COPY --from=%*s %255s %255s", from, to) != 2) return;
    name = strrchr(to, '/');
    if (n && !strncmp(from, home, n)) memmove(from, from + n,
                                              strlen(from + n) + 1);
    FH_MUST(hfsb_buf_printf(&file, "%s/%s", m->dir.ptr, from));
    FH_MUST(hfsb_buf_printf(&link, "%s/bin/%s", m->dir.ptr,
                            name ? name + 1 : to));
    fh_make_dirs(link.ptr);
    (void)unlink(link.ptr);
    if (symlink(file.ptr, link.ptr)) fh_die(link.ptr);
    hfsb_buf_free(&file);
    hfsb_buf_free(&link);
}

/* Does what it says; the words of CMD are left in *cmd. */
static bool fh_build(fh_machine *m, hfsb_str dockerfile, bool built,
                     hfsb_buf *cmd) {
    hfsb_buf line = HFSB_INIT;
    char     home[256] = ""; /* WORKDIR of the first stage */
    int      stage = 0;
    bool     ok = true;
    while (ok && fh_instruction(&dockerfile, &line)) {
        if (fh_begins(&line, "FROM ")) stage++;
        else if (fh_begins(&line, "WORKDIR ") && stage == 1)
            fh_copy(home, sizeof home,
                    hfsb_str_slice(hfsb_buf_str(&line), 8, line.len));
        else if (fh_compiles(&line) && stage == 1 && !built)
            ok = fh_compile(m, line.ptr + 4);
        else if (fh_begins(&line, "COPY --from=") && !built)
            fh_copy_from(m, line.ptr, home);
        else if (fh_begins(&line, "CMD "))
            fh_set(cmd, hfsb_str_slice(hfsb_buf_str(&line), 4, line.len));
    }
    hfsb_buf_free(&line);
    return ok;
}

/* ---- the program ---- */

/* Asks for its health, once. */
static bool fh_healthy(unsigned port) {
    static const char ask[] = "GET /api/health HTTP/1.1\r\n"
                              "Host: 127.0.0.1\r\nConnection: close\r\n\r\n";
    hfsb_buf in = HFSB_INIT;
    int      fd = fh_dial(port);
    bool     ok = fd >= 0 && fh_send(fd, hfsb_cstr(ask));
    while (ok && fh_receive(fd, &in)) continue;
    ok = ok && hfsb_str_starts(hfsb_buf_str(&in), HFSB_LIT("HTTP/1.1 200"));
    if (fd >= 0) close(fd);
    hfsb_buf_free(&in);
    return ok;
}

/* It runs once it has said where it listens, and answers there. */
static void fh_program_line(fh_machine *m, hfsb_str line) {
    static const char mark[] = "listens on http://127.0.0.1:";
    size_t            at = hfsb_str_find(line, hfsb_cstr(mark));
    unsigned          port;
    if (at == HFSB_NPOS) return;
    port = (unsigned)strtoul(line.ptr + at + sizeof mark - 1, NULL, 10);
    if (!fh_healthy(port)) return;
    fh_lock(m->hub);
    m->port = port;
    m->stage = "RUNNING";
    fh_unlock(m->hub);
}

/* CMD's words with what a scratch run needs; argv[n] is malloc'ed. */
static bool fh_words(fh_machine *m, const hfsb_buf *cmd,
                     char *argv[FH_WORDS]) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    const char    *next = NULL;
    size_t         n = 0;
    hfsb_buf       program = HFSB_INIT;
    if (hfsb_json_parse(hfsb_buf_str(cmd), NULL, &doc, NULL) != HFSB_OK)
        return false;
    it = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&it) && n < FH_WORDS - 1) {
        const char *word =
            hfsb_json_str(it.value, hfsb_str_make("", 0)).ptr;
        if (n == 0 && !strchr(word, '/')) {
            FH_MUST(hfsb_buf_printf(&program, "%s/bin/%s", m->dir.ptr, word));
            word = program.ptr;
        }
        argv[n++] = fh_keep(next ? next : word);
        next = !strcmp(word, "--host")       ? "127.0.0.1"
               : !strcmp(word, "--port")     ? "0"
               : !strcmp(word, "--work-dir") ? m->work.ptr
                                             : NULL;
    }
    argv[n] = NULL;
    hfsb_buf_free(&program);
    hfsb_json_free(&doc);
    return n > 0;
}

static void fh_env_add(char **env, size_t *n, const char *key,
                       const char *value) {
    hfsb_buf text = HFSB_INIT;
    if (*n + 1 >= FH_WORDS) fh_die("too many variables");
    FH_MUST(hfsb_buf_printf(&text, "%s=%s", key, value));
    env[(*n)++] = fh_keep(text.ptr);
    env[*n] = NULL;
    hfsb_buf_free(&text);
}

/* The Space's variables and secrets, and what a shell needs. */
static void fh_environment(fh_machine *m, char *env[FH_WORDS]) {
    fh_pair    *p;
    hfsb_buf    path = HFSB_INIT;
    const char *tmp = getenv("TMPDIR"), *old = getenv("PATH");
    char        host[160];
    size_t      n = 0;
    FH_MUST(hfsb_buf_printf(&path, "%s/bin:%s", m->dir.ptr,
                            old ? old : "/bin:/usr/bin"));
    fh_env_add(env, &n, "PATH", path.ptr);
    fh_env_add(env, &n, "HOME", m->work.ptr);
    if (tmp && !m->command.len) fh_env_add(env, &n, "TMPDIR", tmp);
    fh_lock(m->hub);
    fh_subdomain(hfsb_buf_str(&m->space->id), host);
    strcat(host, ".hf.space");
    if (!m->command.len) fh_env_add(env, &n, "SPACE_HOST", host);
    if (!m->command.len) fh_env_add(env, &n, "SPACE_ID", m->space->id.ptr);
    for (p = m->space->variables; p; p = p->next)
        fh_env_add(env, &n, p->key.ptr, p->value.ptr ? p->value.ptr : "");
    for (p = m->space->secrets; p; p = p->next)
        fh_env_add(env, &n, p->key.ptr, p->value.ptr ? p->value.ptr : "");
    fh_unlock(m->hub);
    hfsb_buf_free(&path);
}

/* Its exit status; 127 when it cannot be run. */
static int fh_run_program(fh_machine *m, const hfsb_buf *cmd) {
    char *argv[FH_WORDS] = {NULL}, *env[FH_WORDS] = {NULL};
    pid_t pid = -1;
    int   fd = -1, status = 127;
    size_t i;
    if (fh_words(m, cmd, argv)) {
        fh_environment(m, env);
        pid = fh_spawn(m, m->work.ptr, argv, env, &fd);
    }
    if (pid > 0) {
        fh_read_lines(m, fd, &m->space->run_log, fh_program_line);
        close(fd);
        status = fh_reap(m, pid);
    }
    for (i = 0; argv[i]; i++) free(argv[i]);
    for (i = 0; env[i]; i++) free(env[i]);
    return status;
}

/* ---- machines ---- */

static void fh_stage_set(fh_machine *m, const char *stage) {
    fh_lock(m->hub);
    m->stage = stage;
    m->port = 0;
    fh_unlock(m->hub);
}

static void *fh_build_run(void *user) {
    fh_machine *m = (fh_machine *)user;
    hfsb_buf    dockerfile = HFSB_INIT, cmd = HFSB_INIT, path = HFSB_INIT;
    FILE       *f;
    char        piece[4096];
    size_t      n;
    FH_MUST(hfsb_buf_printf(&path, "%s/Dockerfile", m->dir.ptr));
    f = fopen(path.ptr, "rb");
    if (!f) fh_die(path.ptr);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        FH_MUST(hfsb_buf_append(&dockerfile, hfsb_str_make(piece, n)));
    fclose(f);
    if (!fh_build(m, hfsb_buf_str(&dockerfile), m->built, &cmd)) {
        fh_say(m, "%s", "--> ERROR: a command of the build failed");
        fh_stage_set(m, "BUILD_ERROR");
    } else {
        fh_lock(m->hub);
        m->built = true;
        m->stage = "APP_STARTING";
        fh_unlock(m->hub);
        (void)fh_run_program(m, &cmd);
        fh_stage_set(m, "RUNTIME_ERROR");
    }
    hfsb_buf_free(&dockerfile);
    hfsb_buf_free(&cmd);
    hfsb_buf_free(&path);
    return NULL;
}

/* hfsb-server's endpoints in this process. */
static void fh_embed(fh_machine *m) {
    static const char *const any[] = {"*", NULL};
    fh_pair *p = fh_pair_find(m->space->secrets,
                              HFSB_LIT("SANDBOX_API_TOKEN"));
    hfsb_server_opts         so = HFSB_INIT;
    hfsb_server_sandbox_opts bo = HFSB_INIT;
    hfsb_tools_opts          to = HFSB_INIT;
    if (p) so.token = hfsb_buf_str(&p->value);
    so.allow_hosts = any;
    to.work_dir = hfsb_buf_str(&m->work);
    to.spill_dir = m->dir.ptr;
    to.no_keeper = true;
    bo.tools = &to;
    FH_MUST(hfsb_server_open(&so, &m->server, NULL));
    FH_MUST(hfsb_server_listen(m->server, "127.0.0.1", 0, &m->port, NULL));
    FH_MUST(hfsb_server_add_sandbox(m->server, &bo, NULL));
}

/* With the lock held. */
static void fh_machine_stop(fh_hub *hub, fh_space *s) {
    fh_machine *m = s->machine;
    (void)hub;
    s->machine = NULL;
    if (!m || m->stop) return;
    m->stop = true;
    if (m->server) {
        hfsb_server_stop(m->server);
        hfsb_server_stop(m->server);
    }
    if (m->pid > 0) kill(m->port ? m->pid : -m->pid,
                         m->port ? SIGTERM : SIGKILL);
}

static void fh_write_entries(const fh_machine *m, const fh_space *s) {
    const fh_entry *e;
    hfsb_buf        path = HFSB_INIT;
    for (e = s->files; e; e = e->next) {
        hfsb_buf_truncate(&path, 0);
        FH_MUST(hfsb_buf_printf(&path, "%s/%s", m->dir.ptr, e->path.ptr));
        if (!strstr(path.ptr, "..")) fh_write_file(path.ptr,
                                                   hfsb_buf_str(&e->content));
    }
    hfsb_buf_free(&path);
}

static void *fh_machine_run(void *user) {
    fh_machine *m = (fh_machine *)user;
    if (m->command.len) {
        fh_stage_set(m, fh_run_program(m, &m->command) ? "ERROR"
                                                       : "COMPLETED");
        return NULL;
    }
    if (!m->server) return fh_build_run(user);
    FH_MUST(hfsb_server_run(m->server, NULL));
    return NULL;
}

static void fh_machine_work(fh_machine *m) {
    if (m->hub->o.work_dir) {
        fh_put(&m->work, m->hub->o.work_dir);
        return;
    }
    FH_MUST(hfsb_buf_printf(&m->work, "%s/work-%zu", m->dir.ptr,
                            ++m->hub->machine_count));
    if (mkdir(m->work.ptr, 0755)) fh_die(m->work.ptr);
}

/* With the lock held. What was built from the same commit is used again. */
static void fh_machine_start(fh_hub *hub, fh_space *s) {
    fh_machine *old = s->machine, *m;
    bool        build = hub->o.mode == FH_BUILD;
    fh_machine_stop(hub, s);
    if (hub->o.mode == FH_STUB || !s->commits) return;
    if (build && !fh_entry_find(s->files, HFSB_LIT("Dockerfile"))) return;
    m = (fh_machine *)fh_new(sizeof *m);
    m->hub = hub;
    m->space = s;
    strcpy(m->sha, s->head);
    m->built = build && old && old->built && !strcmp(old->sha, s->head);
    m->borrowed = m->built;
    if (m->built) fh_set(&m->dir, hfsb_buf_str(&old->dir));
    else fh_scratch(&m->dir);
    fh_machine_work(m);
    if (!build) {
        fh_embed(m);
    } else if (!m->built) {
        fh_write_entries(m, s);
        m->stage = "BUILDING";
    } else {
        m->stage = "APP_STARTING";
    }
    if (pthread_create(&m->thread, NULL, fh_machine_run, m)) fh_die("thread");
    m->next = hub->machines;
    hub->machines = m;
    s->machine = m;
}

/* At the end: nothing else runs any more. */
static void fh_machines_end(fh_hub *hub) {
    fh_machine *m;
    fh_space   *s;
    fh_job     *j;
    fh_lock(hub);
    for (s = hub->spaces; s; s = s->next) fh_machine_stop(hub, s);
    for (j = hub->jobs; j; j = j->next)
        if (j->box) fh_machine_stop(hub, j->box);
    fh_unlock(hub);
    for (m = hub->machines; m; m = m->next) {
        pthread_join(m->thread, NULL);
        if (m->server) hfsb_server_close(m->server);
    }
    while ((m = hub->machines) != NULL) {
        hub->machines = m->next;
        if (!m->borrowed) fh_remove_dir(m->dir.ptr);
        hfsb_buf_free(&m->dir);
        hfsb_buf_free(&m->work);
        hfsb_buf_free(&m->command);
        free(m);
    }
}
