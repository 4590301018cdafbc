/* test_undo_random.c - random commands and edits on random trees: an undo to
   any checkpoint gives the same tree as a photo made then: paths, kinds,
   modes, bytes, symlinks, hard links. Once as we are, and as root once more
   as nobody, for whom some files and folders are closed. */
#include "../support/t_undo.h"

enum { PHOTOS = 12 };

static unsigned long long seed;

static unsigned dice(unsigned n) {
    return (unsigned)(t_random(&seed) % n);
}

/* ---- random commands ---- */

/* Names differ in case, have blanks and other bytes, and are few, so that
   files, folders and links meet at the same paths. */
static const char *name(void) {
    static const char *const list[] = {"a",      "A",    "b",  "B.txt",
                                       "c d",    "-e",   ".f", "\xC3\xBC",
                                       "new\nl", "x\xFF"};
    return list[dice(TT_COUNT(list))];
}

/* Appends a quoted path of one to three names. */
static void put_path(hfsb_buf *out) {
    unsigned depth = 1 + dice(3);
    tt_fill(out, "'./", 1);
    while (depth--) {
        tt_fill(out, name(), 1);
        if (depth) tt_fill(out, "/", 1);
    }
    tt_fill(out, "'", 1);
}

/* $p and $q are paths. What fails does nothing, and that is fine. No symlink
   leads out of the tree: commands would follow it. */
static const char *const snippets[] = {
    "mkdir -p \"$p\"",
    "mkdir -p \"$(dirname \"$p\")\"; echo $RANDOM > \"$p\"",
    "mkdir -p \"$(dirname \"$p\")\"; echo $RANDOM > \"$p\"",
    "mkdir -p \"$(dirname \"$p\")\"; seq $RANDOM > \"$p\"",
    "[ -f \"$p\" ] && echo more >> \"$p\"",
    "[ -f \"$p\" ] && printf X | dd of=\"$p\" conv=notrunc status=none",
    "[ -f \"$p\" ] && truncate -s $((RANDOM * 40)) \"$p\"",
    "mkdir -p \"$(dirname \"$p\")\"; truncate -s 3000000 \"$p\"",
    "rm -f \"$p\"",
    "rm -rf \"$p\"",
    "rmdir \"$p\"",
    "mv -f \"$p\" \"$q\"",
    "mv -fT \"$p\" \"$q\"",
    "mv -f \"$p\" \"$p.old\"; mv -f \"$p.old\" \"$p\"",
    "cp -a \"$p\" \"$q\"",
    "ln -f \"$p\" \"$q\"",
    "file; ln -f \"$p\" \"$q\"; ln -f \"$p\" ./link1",
    "file; mkdir -p \"$(dirname \"$q\")\"; ln -f \"$p\" \"$q\"",
    "file; mkdir -p \"$(dirname \"$q\")\"; ln -f \"$p\" \"$q\"",
    "echo in place >> ./link1",
    "ln -sfn \"$q\" \"$p\"",
    "ln -sfn nowhere/at/all \"$p\"",
    "ln -sfn . \"$p\"",
    "[ -f \"$p\" ] && [ ! -L \"$p\" ] && chmod $((4 + RANDOM % "
    "4))$((RANDOM % 8))1 \"$p\"",
    "[ -d \"$p\" ] && [ ! -L \"$p\" ] && chmod 5$((RANDOM % 8))7 \"$p\"",
    "[ -f \"$p\" ] && [ ! -L \"$p\" ] && chmod 4711 \"$p\"",
    "[ -d \"$p\" ] && [ ! -L \"$p\" ] && chmod 555 \"$p\"",
    "[ -f \"$p\" ] && [ ! -L \"$p\" ] && chmod 444 \"$p\"",
    "[ -d \"$p\" ] && [ ! -L \"$p\" ] && chmod 755 \"$p\"",
    "touch \"$p\"",
    "touch -d @1000000000 \"$p\"",
    "cp -a \"$p\" t && mv -f t \"$p\"",
    "find . -type f -exec chmod u+w {} +",
    "rm -rf ./a; echo file > ./a",
    "rm -f ./a; mkdir -p ./a/b"};

/* Set p to a path that exists, to a file. */
static const char pick[] =
    "pick() { mapfile -d '' -t all < <(find . -mindepth 1 \"$@\" -print0 | "
    "sort -z); [ ${#all[@]} -eq 0 ] || p=${all[RANDOM % ${#all[@]}]}; }\n"
    "file() { pick -type f; }\n";

static void put_command(hfsb_buf *out) {
    unsigned n = 1 + dice(8);
    char     text[64];
    tt_fill(out, "exec 2>/dev/null; ", 1);
    snprintf(text, sizeof text, "RANDOM=%u\n", dice(30000));
    tt_fill(out, text, 1);
    tt_fill(out, pick, 1);
    while (n--) {
        tt_fill(out, "p=", 1);
        put_path(out);
        if (dice(3)) tt_fill(out, "; pick", 1);
        tt_fill(out, "; q=", 1);
        put_path(out);
        tt_fill(out, "\n", 1);
        tt_fill(out, snippets[dice(TT_COUNT(snippets))], 1);
        tt_fill(out, "\n", 1);
    }
}

/* A command, or a write by the tool. */
static void change(hfsb_tools *tools) {
    hfsb_buf text = HFSB_INIT;
    tt_reply r = HFSB_INIT;
    if (dice(4)) {
        put_command(&text);
        tt_call(&r, tools, "bash", "command=v", hfsb_buf_str(&text));
    } else {
        put_path(&text); /* without its quotes */
        tt_call(&r, tools, "write", "path=v content=s",
                hfsb_str_slice(hfsb_buf_str(&text), 1, text.len - 1),
                "written\n");
    }
    tt_drop(&r);
    hfsb_buf_free(&text);
}

/* ---- the property ---- */

typedef struct photo {
    long long number;
    char     *tree;
} photo;

static void print_where(unsigned long long began, int step) {
    printf("  seed %llu, step %d\n", began, step);
}

/* Takes photos of some states and goes back to them in any order. */
static void undo_restores_any_checkpoint(unsigned long long began, int steps) {
    hfsb_tools *tools = tu_open();
    photo       album[PHOTOS];
    size_t      count = 0, i;
    int         step;
    seed = began;
    memset(album, 0, sizeof album);
    for (step = 0; step < steps; step++) {
        bool ok = true;
        change(tools);
        i = count < PHOTOS ? count++ : dice(PHOTOS);
        free(album[i].tree);
        album[i].number = tu_checkpoint(tools);
        album[i].tree = tu_photo();
        if (dice(3) == 0) {
            i = dice((unsigned)count);
            ok = tu_undo(tools, album[i].number) &&
                 tu_same(album[i].tree, tu_photo());
        }
        T_CHECK(ok);
        if (!ok) print_where(began, step);
        if (dice(10) == 0) { /* another process */
            hfsb_tools_close(tools);
            tools = tu_open();
        }
    }
    for (i = 0; i < count; i++) free(album[i].tree);
    T_CHECK(system("chmod -R u+rwx " TU_ROOT) == 0);
    tu_close(tools);
}

/* HFSB_TEST_SEED=N repeats one tree. */
static void runs(void) {
    const char *one = getenv("HFSB_TEST_SEED");
    int         n = getenv("HFSB_TEST_LONG") ? 100 : 3, i;
    int         steps = getenv("HFSB_TEST_QUICK") ? 15 : 40;
    for (i = 0; !one && i < n; i++)
        undo_restores_any_checkpoint((unsigned long long)i * 7919 + 1, steps);
    if (one) undo_restores_any_checkpoint(strtoull(one, NULL, 10), steps);
}

static void undo_restores_any_checkpoint_as_we_are(void) {
    runs();
}

/* Closed files and folders are closed to nobody only. */
static void undo_restores_any_checkpoint_as_nobody(void) {
    if (geteuid() == 0) tu_as_nobody(runs);
}

/* ---- files that we may not read ---- */

/* Their content is not stored: they are renamed back, never lost. */
static void unreadable_files_are_kept(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    char       *before;
    tu_bash(tools, "mkdir d; echo secret > d/s; chmod 000 d/s; echo 1 > f");
    before = tu_photo();
    tu_bash(tools, "mkdir e; mv d/s e/t; rmdir d; echo 2 > f");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(tu_same(before, tu_photo()));
    tu_bash(tools, "chmod 644 d/s");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(tu_same(before, tu_photo()));
    tu_bash(tools, "echo new > u; chmod 000 u");
    tt_call(&r, tools, "undo", "");
    TT_ENDS(&r, NULL, "1 path was not restored:\nLeft as it is, because its "
                      "content is not stored: u\n");
    tt_call(&r, tools, "undo", "to=s force=j", "2", "true");
    T_CHECK(r.res.success);
    T_CHECK(tu_same(before, tu_photo()));
    tt_drop(&r);
    free(before);
    tu_close(tools);
}

static void unreadable_files_are_kept_as_nobody(void) {
    tu_as_nobody(unreadable_files_are_kept);
}

int main(void) {
    tt_begin();
    TT_RUN(undo_restores_any_checkpoint_as_we_are);
    TT_RUN(undo_restores_any_checkpoint_as_nobody);
    TT_RUN(unreadable_files_are_kept_as_nobody);
    return TT_END();
}
