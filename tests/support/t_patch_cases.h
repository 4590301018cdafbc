/* t_patch_cases.h - tables of patches: files, a patch, and the files after it
   or the refusal. */
#ifndef T_PATCH_CASES_H
#define T_PATCH_CASES_H
#include "t_patch.h"

/* ---- the files after a patch ---- */

#define MAX_FILES 8

/* The files after the changes were carried out in order; every diff must apply
   to the file before its change. */
typedef struct world {
    hfsb_str path[MAX_FILES];
    hfsb_buf text[MAX_FILES];
    size_t   count;
} world;

static size_t world_find(const world *w, hfsb_str path) {
    size_t i;
    for (i = 0; i < w->count; i++)
        if (hfsb_str_equal(w->path[i], path)) return i;
    return HFSB_NPOS;
}

static void world_remove(world *w, hfsb_str path) {
    size_t i = world_find(w, path);
    T_CHECK(i != HFSB_NPOS);
    if (i == HFSB_NPOS) return;
    hfsb_buf_free(w->text + i);
    w->count--;
    w->path[i] = w->path[w->count];
    w->text[i] = w->text[w->count];
}

static void world_put(world *w, hfsb_str path, hfsb_str text) {
    size_t i = world_find(w, path);
    if (i == HFSB_NPOS) {
        i = w->count++;
        w->path[i] = path;
        memset(w->text + i, 0, sizeof w->text[i]);
    }
    hfsb_buf_truncate(w->text + i, 0);
    te_append(w->text + i, text);
}

static void world_change(world *w, const hfsb_patch_change *c) {
    size_t   i = world_find(w, c->path);
    hfsb_str before =
        i == HFSB_NPOS ? HFSB_LIT("") : hfsb_buf_str(w->text + i);
    T_CHECK((i == HFSB_NPOS) == (c->kind == HFSB_PATCH_ADD));
    T_CHECK(te_diff_fits(before, hfsb_buf_str(&c->content),
                         hfsb_buf_str(&c->diff)));
    if (c->kind == HFSB_PATCH_DELETE) {
        T_CHECK(!c->content.len);
        world_remove(w, c->path);
        return;
    }
    world_put(w, c->path, hfsb_buf_str(&c->content));
    if (!c->new_path.len) return;
    world_remove(w, c->path);
    T_CHECK(world_find(w, c->new_path) == HFSB_NPOS);
    world_put(w, c->new_path, hfsb_buf_str(&c->content));
}

/* ---- one case ---- */

typedef struct patch_case {
    const char *patch;          /* between Begin and End, unless `whole` */
    one_file    files[3];
    hfsb_status code;
    const char *message;        /* a part of it */
    size_t      line;           /* of the patch, when refused */
    one_file    results[3];
    bool        fuzzy;
} patch_case;

static size_t count_files(const one_file *files, size_t max) {
    size_t n = 0;
    while (n < max && files[n].path) n++;
    return n;
}

static void check_world(const patch_case *c, const hfsb_patch_result *r,
                        bool *ok) {
    world  w = HFSB_INIT;
    size_t n = count_files(c->results, 3), i, at;
    for (i = 0; i < count_files(c->files, 3); i++)
        world_put(&w, hfsb_cstr(c->files[i].path),
                  hfsb_cstr(c->files[i].text));
    for (i = 0; i < r->count; i++) world_change(&w, r->changes + i);
    *ok = w.count == n && r->fuzzy == c->fuzzy;
    for (i = 0; i < n; i++) {
        at = world_find(&w, hfsb_cstr(c->results[i].path));
        *ok = *ok && at != HFSB_NPOS &&
              te_same(w.text + at, hfsb_cstr(c->results[i].text));
    }
    if (!*ok)
        for (i = 0; i < w.count; i++)
            printf("  %.*s: \"%s\"\n", (int)w.path[i].len, w.path[i].ptr,
                   w.text[i].ptr);
    for (i = 0; i < w.count; i++) hfsb_buf_free(w.text + i);
}

static void check_patch(const patch_case *c, hfsb_str patch, size_t number) {
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    hfsb_err          err;
    hfsb_str          text = t_exact(patch.ptr, patch.len);
    hfsb_status       st;
    bool              ok;
    d.files = c->files;
    d.count = count_files(c->files, 3);
    files.read = read_file;
    files.user = &d;
    st = hfsb_patch_apply(text, &files, &r, &err);
    ok = st == c->code && err.code == st;
    if (st == HFSB_OK) {
        bool same;
        T_CHECK(!err.msg[0] && r.count > 0);
        check_world(c, &r, &same);
        ok = ok && same;
    } else {
        T_CHECK(!r.count && !r.changes);
        ok = ok && te_holds_text(err.msg, c->message ? c->message : "") &&
             err.line == c->line && hfsb_utf8_validate(hfsb_cstr(err.msg)) ==
                                        strlen(err.msg);
        T_CHECK(st == HFSB_IO || te_refusal_holds(st, &err));
        T_CHECK(st != HFSB_SYNTAX || !d.reads);
    }
    T_CHECK(ok);
    if (!ok)
        printf("  case %zu: %s, line %zu: %s\n", number, hfsb_status_text(st),
               st == HFSB_OK ? 0 : err.line, err.msg);
    hfsb_patch_free(&r);
    T_CHECK(!r.changes && !r.count && !r.fuzzy);
    T_CHECK(hfsb_patch_apply(text, &files, &r, NULL) == st);
    hfsb_patch_free(&r);
    t_drop(text);
}

/* The bodies between the Begin and End lines. */
static void check_bodies(const patch_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        hfsb_buf text = HFSB_INIT;
        T_CHECK(hfsb_buf_printf(&text, "*** Begin Patch\n%s*** End Patch\n",
                                list[i].patch) == HFSB_OK);
        check_patch(list + i, hfsb_buf_str(&text), i);
        hfsb_buf_free(&text);
    }
}

#define NO_FILES    {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}}
#define ONE(p, t)   {{p, t}, {NULL, NULL}, {NULL, NULL}}
#define TWO(p, t, q, u) {{p, t}, {q, u}, {NULL, NULL}}
#define REFUSED(code, message, line) code, message, line, NO_FILES, false
#define BECOMES(text)     HFSB_OK, NULL, 0, ONE("f", text), false
#define FUZZY(text)       HFSB_OK, NULL, 0, ONE("f", text), true
#define UPDATE            "*** Update File: f\n"

#endif
