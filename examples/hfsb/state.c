/* state.c - sandboxes.json: the recorded sandboxes and their tokens. Only its
   owner may read it.

       {"sandboxes": [{"id": "alice/sandbox-1a2b3c4d", "url": "https://...",
                       "token": "...", "created": true}, ...]}

   "default", which `hfsb create` and `hfsb use` set, is used by commands about
   sandboxes that name none. The file is replaced as a whole, so a reader needs
   no lock. A writer locks sandboxes.lock, so that no change is lost. */
#define _XOPEN_SOURCE 700 /* fcntl's locks, mkdir; before any include */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_STATE = 16 << 20 };

static hfsb_status state_path(const char *name, hfsb_buf *out, hfsb_err *err) {
    return xdg_path("XDG_STATE_HOME", ".local/state", name, out, err);
}

/* ---- reading ---- */

static void fill_known(const hfsb_json_value *entry, known *k) {
    k->id = get_str(entry, "id");
    k->url = get_str(entry, "url");
    k->token = get_str(entry, "token");
    k->created = hfsb_json_bool(hfsb_json_get(entry, "created"), false);
    k->is_own = hfsb_json_bool(hfsb_json_get(entry, "private"), false);
}

static hfsb_status parse_known(const char *path, hfsb_str text,
                               known_list *out, hfsb_err *err) {
    hfsb_err               why;
    const hfsb_json_value *array;
    hfsb_json_iter         it;
    hfsb_status            st = hfsb_json_parse(text, NULL, &out->doc, &why);
    if (st == HFSB_NOMEM) must(st);
    out->chosen = get_str(out->doc.root, "default");
    array = hfsb_json_get(out->doc.root, "sandboxes");
    if (st == HFSB_OK && hfsb_json_type_of(array) != HFSB_JSON_ARRAY)
        st = fail(&why, HFSB_SYNTAX, "it has no list of sandboxes");
    if (st != HFSB_OK)
        return fail(err, st,
                    "%s is not what hfsb writes: %s. Repair it, or move it "
                    "away; it holds the tokens of your sandboxes.",
                    path, why.msg);
    out->list = (known *)calloc(hfsb_json_count(array) + 1, sizeof *out->list);
    must(out->list ? HFSB_OK : HFSB_NOMEM);
    it = hfsb_json_begin(array);
    while (hfsb_json_next(&it)) fill_known(it.value, &out->list[out->count++]);
    return HFSB_OK;
}

hfsb_status read_known(known_list *out, hfsb_err *err) {
    hfsb_buf    path = HFSB_INIT, text = HFSB_INIT;
    hfsb_status st = state_path("sandboxes.json", &path, err);
    memset(out, 0, sizeof *out);
    if (st == HFSB_OK) {
        st = hfsb_file_read(NULL, hfsb_buf_str(&path), MAX_STATE, &text, NULL,
                            err);
        if (st == HFSB_OK)
            st = parse_known(path.ptr, hfsb_buf_str(&text), out, err);
        else if (st == HFSB_NOT_FOUND) st = HFSB_OK;
    }
    hfsb_buf_free(&path);
    hfsb_buf_free(&text);
    return st;
}

void free_known(known_list *l) {
    hfsb_json_free(&l->doc);
    free(l->list);
    memset(l, 0, sizeof *l);
}

static bool is_called(const known *k, hfsb_str name) {
    return hfsb_str_equal(k->id.len ? k->id : k->url, name);
}

const known *find_known(const known_list *l, hfsb_str name) {
    size_t i;
    for (i = 0; i < l->count; i++)
        if (is_called(&l->list[i], name)) return &l->list[i];
    return NULL;
}

/* ---- changing ---- */

/* Creates the directories of a path, for their owner only. */
static hfsb_status make_parents(char *path, hfsb_err *err) {
    char *slash = path;
    while ((slash = strchr(slash + 1, '/')) != NULL) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            hfsb_status st = fail(err, HFSB_IO, "Cannot create %s: %s", path,
                                  strerror(errno));
            *slash = '/';
            return st;
        }
        *slash = '/';
    }
    return HFSB_OK;
}

/* Waits for the lock; close *fd to release it. */
static hfsb_status lock_state(int *fd, hfsb_err *err) {
    struct flock lock = HFSB_INIT;
    hfsb_buf     path = HFSB_INIT;
    hfsb_status  st = state_path("sandboxes.lock", &path, err);
    *fd = -1;
    if (st == HFSB_OK) st = make_parents(path.ptr, err);
    if (st == HFSB_OK) {
        int got;
        *fd = open(path.ptr, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        do got = *fd < 0 ? -1 : fcntl(*fd, F_SETLKW, &lock);
        while (got != 0 && errno == EINTR && *fd >= 0 && !caught_signal());
        if (got != 0)
            st = fail(err, HFSB_IO, "%s cannot be locked: %s", path.ptr,
                      strerror(errno));
    }
    hfsb_buf_free(&path);
    return st;
}

static void put_known(hfsb_json_writer *w, const known *k) {
    hfsb_json_put_object(w);
    if (k->id.len) put_str(w, "id", k->id);
    put_str(w, "url", k->url);
    put_str(w, "token", k->token);
    put_bool(w, "created", k->created);
    if (k->is_own) put_bool(w, "private", true);
    hfsb_json_put_end(w);
}

/* Writes all sandboxes except `name`, then k (may be NULL). A default sandbox
   that is removed is the default no longer. */
static hfsb_status write_known(const known_list *l, hfsb_str name,
                               const known *k, hfsb_err *err) {
    hfsb_json_write_opts pretty = HFSB_INIT;
    hfsb_file_write_opts how = HFSB_INIT;
    hfsb_json_writer     w;
    hfsb_buf             path = HFSB_INIT, text = HFSB_INIT;
    size_t               i;
    hfsb_status          st = state_path("sandboxes.json", &path, err);
    pretty.pretty = true;
    how.mode = 0600;
    hfsb_json_writer_init(&w, &text, &pretty);
    hfsb_json_put_object(&w);
    if (l->chosen.len && (k || !hfsb_str_equal(l->chosen, name)))
        put_str(&w, "default", l->chosen);
    hfsb_json_put_key(&w, HFSB_LIT("sandboxes"));
    hfsb_json_put_array(&w);
    for (i = 0; i < l->count; i++)
        if (!is_called(&l->list[i], name)) put_known(&w, &l->list[i]);
    if (k) put_known(&w, k);
    hfsb_json_put_end(&w);
    end_object(&w);
    must(hfsb_buf_append_byte(&text, '\n'));
    if (st == HFSB_OK)
        st = hfsb_file_write(NULL, hfsb_buf_str(&path), hfsb_buf_str(&text),
                             &how, NULL, err);
    hfsb_buf_free(&path);
    hfsb_buf_free(&text);
    return st;
}

static hfsb_status change_state(hfsb_str name, const known *k, hfsb_err *err) {
    known_list  l = HFSB_INIT;
    int         lock;
    hfsb_status st = lock_state(&lock, err);
    if (st == HFSB_OK) st = read_known(&l, err);
    if (st == HFSB_OK && (k || find_known(&l, name)))
        st = write_known(&l, name, k, err);
    free_known(&l);
    if (lock >= 0) close(lock);
    return st;
}

hfsb_status record_sandbox(const known *k, hfsb_err *err) {
    return change_state(k->id.len ? k->id : k->url, k, err);
}

hfsb_status forget_sandbox(hfsb_str name, hfsb_err *err) {
    return change_state(name, NULL, err);
}

hfsb_status set_default(hfsb_str name, hfsb_err *err) {
    known_list  l = HFSB_INIT;
    int         lock;
    hfsb_status st = lock_state(&lock, err);
    if (st == HFSB_OK) st = read_known(&l, err);
    l.chosen = name;
    if (st == HFSB_OK) st = write_known(&l, HFSB_LIT(""), NULL, err);
    free_known(&l);
    if (lock >= 0) close(lock);
    return st;
}

const char *default_sandbox(void) {
    static hfsb_buf name; /* exec:COMMAND may be long */
    known_list      l = HFSB_INIT;
    hfsb_err        err;
    hfsb_buf_truncate(&name, 0);
    must(hfsb_buf_append(&name, read_known(&l, &err) == HFSB_OK
                                    ? l.chosen
                                    : HFSB_LIT(".")));
    free_known(&l);
    return name.len ? name.ptr : NULL;
}

int open_log(const char *name, hfsb_buf *path, hfsb_err *err) {
    hfsb_buf    file = HFSB_INIT;
    hfsb_status st;
    int         fd = -1;
    size_t      i;
    must(hfsb_buf_printf(&file, "logs/%s.log", name));
    for (i = 5; i < file.len; i++)
        if (file.ptr[i] == '/') file.ptr[i] = '-';
    st = state_path(file.ptr, path, err);
    if (st == HFSB_OK) st = make_parents(path->ptr, err);
    if (st == HFSB_OK) {
        fd = open(path->ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
            (void)fail(err, HFSB_IO, "%s cannot be written: %s", path->ptr,
                       strerror(errno));
    }
    hfsb_buf_free(&file);
    return fd;
}

hfsb_status check_state(hfsb_err *err) {
    known_list  l = HFSB_INIT;
    int         lock;
    hfsb_status st = lock_state(&lock, err);
    if (st == HFSB_OK) st = read_known(&l, err);
    free_known(&l);
    if (lock >= 0) close(lock);
    return st;
}
