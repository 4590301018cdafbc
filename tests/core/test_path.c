/* test_path.c - kinds of scripts, paths, Space ids. */
#include "../support/t.h"

static void check_text(hfsb_str got, const char *want) {
    t_str(__FILE__, __LINE__, got.ptr, got.len, want, strlen(want));
}

/* ---- scripts ---- */

static void check_kind(hfsb_str text, const char *want) {
    hfsb_str    s = t_exact(text.ptr, text.len);
    const char *kind = hfsb_script_kind_name(hfsb_script_classify(s));
    T_CHECK(!strcmp(kind, want));
    if (strcmp(kind, want) != 0)
        printf("  \"%.*s\" is %s, not %s\n", (int)s.len, s.ptr, kind, want);
    t_drop(s);
}

static void scripts_are_classified(void) {
    static const struct {
        const char *script, *kind;
    } cases[] = {
        {"/app/train.py", "path"},
        {"./train", "path"},
        {"../a b/run.sh", "path"},
        {"train.py", "path"},
        {"dir/train.py", "path"},
        {".py", "path"},
        {"/print(1)", "path"},
        {"tr\xC3\xA4in.py", "path"},
        {"tr\xFFin.py", "path"},
        {"train.PY", "command"},
        {"~/train", "command"},
        {"C:\\train", "command"},
        {"my train.py", "command"},
        {"my\xC2\xA0train.py", "command"},
        {"train.py ", "command"},
        {" train.py", "command"},
        {"\xE3\x80\x80train.py", "command"},
        {"train.py\xC2\x85", "command"},
        {"/app/train.py\x1F", "command"},
        {"./x\xE2\x80\xA8", "command"},
        {"http://host/train.py", "url"},
        {"https://host/train.py", "url"},
        {"HTTPS://HOST/TRAIN.PY", "url"},
        {"http://", "url"},
        {"http:/host/train", "command"},
        {"ftp://host/train.py", "path"},
        {"print(1)", "inline"},
        {"  print(1)", "inline"},
        {"import os; print(os.getcwd())", "inline"},
        {"import torch", "inline"},
        {"import -window root shot.png", "command"},
        {"from x import y", "inline"},
        {"from somebody", "command"},
        {"x = 1", "inline"},
        {"x += 1", "inline"},
        {"a, b = 1, 2", "inline"},
        {"d[\"k\"].v = 2", "inline"},
        {"x: int = 1", "inline"},
        {"x=1", "command"},
        {"x=1; print(x)", "inline"},
        {"x=1; echo $x", "command"},
        {"=1; print(1)", "command"},
        {"x09 = 1", "inline"},
        {"AZaz_ = 1", "inline"},
        {"9x = 1", "command"},
        {"\xC3\xA9(1)", "inline"},
        {"CUDA_VISIBLE_DEVICES=0 python train.py", "command"},
        {"test a = b", "command"},
        {"[ a = b ]", "command"},
        {"x == 1", "command"},
        {"os.system('ls')", "inline"},
        {"f() { ls; }; f", "command"},
        {"f()", "inline"},
        {"(cd x && make)", "command"},
        {"for i in range(3): print(i)", "inline"},
        {"for i in 1 2; do echo a:$i; done", "command"},
        {"if x: y()", "inline"},
        {"if true; then echo a:b; fi", "command"},
        {"while true", "command"},
        {"with open(p) as f: print(f.read())", "inline"},
        {"class A: pass", "inline"},
        {"def f(x): return x", "inline"},
        {"assert x", "inline"},
        {"del x", "inline"},
        {"# /// script", "inline"},
        {"\"\"\"doc\"\"\"", "inline"},
        {"echo hi\necho ho", "inline"},
        {"echo hi\r", "inline"},
        {"/app/train.py\n", "inline"},
        {"train.py --epochs 1", "command"},
        {"python train.py", "command"},
        {"python -c \"print(1)\"", "command"},
        {"echo hi", "command"},
        {"echo \"a; print(1)\"", "command"},
        {"nvidia-smi", "command"},
        {"train", "command"},
        {"awk '{print $1}' f", "command"},
        {"ls *.py", "command"},
        {"cat < a > b", "command"},
        {"uv run https://host/train.py", "command"},
        {"[", "command"},
        {"a.", "command"},
        {"a[", "command"},
        {"a,", "command"},
        {"a (", "command"},
        {"x:", "command"},
        {"x=", "command"},
        {"import ", "command"},
        {"", "command"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_kind(hfsb_cstr(cases[i].script), cases[i].kind);
    check_kind(HFSB_LIT("/a\0b"), "inline");
    check_kind(hfsb_str_make(NULL, 0), "command");
}

/* Each kind of white space that Python strips, before and after a path. */
static void path_with_white_space_around_is_refused(void) {
    static const unsigned long spaces[] = {
        0x09,   0x0B,   0x0C,   0x1C,   0x1D,   0x1E,   0x1F,   0x20,
        0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2005, 0x200A, 0x2028,
        0x2029, 0x202F, 0x205F, 0x3000};
    static const unsigned long others[] = {0x08,   0x0E,   0x1B,   0x21,
                                           0x84,   0x86,   0x9F,   0xA1,
                                           0x167F, 0x180E, 0x1FFF, 0x200B,
                                           0x2027, 0x202A, 0x2060, 0xFEFF};
    size_t i;
    for (i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        char     text[32], c[4];
        int      n = (int)hfsb_utf8_encode(spaces[i], c);
        snprintf(text, sizeof text, "%.*sa.py", n, c);
        check_kind(hfsb_cstr(text), "command");
        snprintf(text, sizeof text, "/a%.*s", n, c);
        check_kind(hfsb_cstr(text), "command");
        snprintf(text, sizeof text, "/a%.*sb", n, c);
        check_kind(hfsb_cstr(text), "path");
        snprintf(text, sizeof text, "a%.*sb.py", n, c);
        check_kind(hfsb_cstr(text), "command");
    }
    for (i = 0; i < sizeof others / sizeof *others; i++) {
        char text[32], c[4];
        int  n = (int)hfsb_utf8_encode(others[i], c);
        snprintf(text, sizeof text, "%.*sa%.*s.py", n, c, n, c);
        check_kind(hfsb_cstr(text), "path");
    }
}

static void scripts_agree_with_the_reference(void) {
    hfsb_buf file = HFSB_INIT;
    hfsb_str rest, line;
    size_t   count = 0;
    if (!t_data_file("vectors/scripts.jsonl", &file)) return;
    for (rest = hfsb_buf_str(&file); hfsb_text_line(&rest, &line, NULL);) {
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_str      s;
        bool          path;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        s = hfsb_json_str(hfsb_json_get(doc.root, "script"), HFSB_LIT("?"));
        path = hfsb_script_classify(s) == HFSB_SCRIPT_PATH;
        T_CHECK(path == hfsb_json_bool(hfsb_json_get(doc.root,
                                                     "looks_like_path"),
                                       !path));
        count++;
        hfsb_json_free(&doc);
    }
    T_CHECK(count == 400);
    hfsb_buf_free(&file);
}

/* ---- paths ---- */

static void paths_are_cleaned(void) {
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"", "."}, {".", "."}, {"./", "."}, {"/", "/"}, {"//", "/"},
        {"/.", "/"}, {"/..", "/"}, {"/../..", "/"}, {"/../a", "/a"},
        {"a", "a"}, {"a/", "a"}, {"a//b", "a/b"}, {"a/./b", "a/b"},
        {"./a", "a"}, {"a/..", "."}, {"a/../..", ".."}, {"..", ".."},
        {"../..", "../.."}, {"../a/..", ".."}, {"../../a/../b", "../../b"},
        {"a/b/..", "a"}, {"a/b/../..", "."}, {"a/b/../../..", ".."},
        {"/a/b/../../..", "/"}, {"/a/b/../c", "/a/c"}, {"...", "..."},
        {"a/.../..", "a"}, {"..a/..", "."}, {"a../b", "a../b"},
        {"/a//b///c/", "/a/b/c"}, {"\xC3\xA9/../\xFF", "\xFF"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str s = t_exact(cases[i].path, strlen(cases[i].path));
        hfsb_buf out = HFSB_INIT;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("x/..")) == HFSB_OK);
        T_CHECK(hfsb_path_clean(s, &out) == HFSB_OK);
        T_STR(hfsb_str_slice(hfsb_buf_str(&out), 0, 4), "x/..");
        check_text(hfsb_str_slice(hfsb_buf_str(&out), 4, out.len),
                   cases[i].want);
        hfsb_buf_free(&out);
        t_drop(s);
    }
}

static void paths_are_joined(void) {
    static const struct {
        const char *base, *path, *want;
    } cases[] = {
        {"/app", "a.py", "/app/a.py"}, {"/app/", "./a.py", "/app/a.py"},
        {"/app", "../a", "/a"}, {"/app", "../../a", "/a"},
        {"/app", "/etc/x", "/etc/x"}, {"/app", "/", "/"},
        {"/app", "", "/app"}, {"", "a", "a"}, {"", "", "."}, {"", "/a", "/a"},
        {"b", "..", "."}, {"b", "../..", ".."}, {"..", "a", "../a"},
        {"/", "a", "/a"}, {"/", "..", "/"}, {"b/c", "../d", "b/d"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf out = HFSB_INIT;
        T_CHECK(hfsb_path_join(hfsb_cstr(cases[i].base),
                               hfsb_cstr(cases[i].path), &out) == HFSB_OK);
        check_text(hfsb_buf_str(&out), cases[i].want);
        hfsb_buf_free(&out);
    }
}

static void bases_and_suffixes_are_found(void) {
    static const struct {
        const char *path, *base, *suffix;
    } cases[] = {
        {"", "", ""}, {"a", "a", ""}, {"a.py", "a.py", ".py"},
        {"/x/a.tar.gz", "a.tar.gz", ".gz"}, {"a/", "", ""}, {"/", "", ""},
        {".bashrc", ".bashrc", ""}, {"x/.bashrc", ".bashrc", ""},
        {".a.py", ".a.py", ".py"}, {"..", "..", ""}, {"...py", "...py", ""},
        {"a.", "a.", "."}, {"a.b/c", "c", ""}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str s = t_exact(cases[i].path, strlen(cases[i].path));
        check_text(hfsb_path_base(s), cases[i].base);
        check_text(hfsb_path_suffix(s), cases[i].suffix);
        t_drop(s);
    }
    T_CHECK(hfsb_path_base(hfsb_str_make(NULL, 0)).len == 0);
    T_CHECK(hfsb_path_suffix(hfsb_str_make(NULL, 0)).len == 0);
}

/* ---- Spaces ---- */

#define NAME96                                                        \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define OWNER42 "oooooooooooooooooooooooooooooooooooooooooo"

static void good_space_ids_pass(void) {
    static const char *const ids[] = {
        "burtenshaw/sandbox", "ab/c", "A-1/x_y.z-1", "user/tmp_test_space",
        "microsoft/TRELLIS.2", "user/_x_", OWNER42 "/" NAME96, "ab/x.gitt",
        "ab/git", "ab/a__b"};
    size_t i;
    for (i = 0; i < sizeof ids / sizeof *ids; i++) {
        hfsb_str s = t_exact(ids[i], strlen(ids[i]));
        hfsb_err err;
        T_CHECK(hfsb_space_check(s, &err) == HFSB_OK);
        T_CHECK(err.code == HFSB_OK && err.msg[0] == '\0');
        T_CHECK(hfsb_space_check(s, NULL) == HFSB_OK);
        t_drop(s);
    }
}

#define OWNER_CHARS ": only A-Z, a-z, 0-9 and \"-\" are allowed."
#define NAME_CHARS \
    ": only A-Z, a-z, 0-9 and \"-\", \"_\" and \".\" are allowed."

static void bad_space_ids_are_explained(void) {
    static const struct {
        const char *id;
        size_t      pos;
        const char *msg;
    } cases[] = {
        {"", 0, "A Space id is \"owner/name\", this one has no \"/\"."},
        {"sandbox", 7, "A Space id is \"owner/name\", this one has no "
                       "\"/\"."},
        {"a/b", 0, "The owner of a Space id has 2 to 42 characters, not 1."},
        {"/b", 0, "The owner of a Space id has 2 to 42 characters, not 0."},
        {OWNER42 "o/b", 0,
         "The owner of a Space id has 2 to 42 characters, not 43."},
        {"ab/", 3, "The name of a Space id has 1 to 96 characters, not 0."},
        {"ab/" NAME96 "n", 3,
         "The name of a Space id has 1 to 96 characters, not 97."},
        {"-ab/c", 0, "The owner of a Space id has \"-\" at an end, which is "
                     "not allowed."},
        {"ab-/c", 2, "The owner of a Space id has \"-\" at an end, which is "
                     "not allowed."},
        {"a--b/c", 2, "The owner of a Space id has \"-\" twice in a row, "
                      "which is not allowed."},
        {"a_b/c", 1, "Character 2 of the owner of a Space id is "
                     "\"_\"" OWNER_CHARS},
        {"a.b/c", 1, "Character 2 of the owner of a Space id is "
                     "\".\"" OWNER_CHARS},
        {"ab/c--d", 5, "The name of a Space id has \"-\" twice in a row, "
                       "which is not allowed."},
        {"ab/c..d", 5, "The name of a Space id has \".\" twice in a row, "
                       "which is not allowed."},
        {"ab/.d", 3, "The name of a Space id has \".\" at an end, which is "
                     "not allowed."},
        {"ab/d.", 4, "The name of a Space id has \".\" at an end, which is "
                     "not allowed."},
        {"ab/-", 3, "The name of a Space id has \"-\" at an end, which is "
                    "not allowed."},
        {"ab/c/d", 4, "Character 2 of the name of a Space id is "
                      "\"/\"" NAME_CHARS},
        {"ab/c d", 4, "Character 2 of the name of a Space id is a "
                      "blank" NAME_CHARS},
        {"ab/\xC3\xA9", 3, "Character 1 of the name of a Space id is the "
                           "byte 0xC3" NAME_CHARS},
        {"ab/c.git", 4, "The name of a Space id must not end in \".git\": "
                        "give it without."}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str s = t_exact(cases[i].id, strlen(cases[i].id));
        hfsb_buf out = HFSB_INIT;
        hfsb_err err;
        T_CHECK(hfsb_space_check(s, &err) == HFSB_ARG);
        T_CHECK(err.code == HFSB_ARG && err.pos == cases[i].pos);
        check_text(hfsb_cstr(err.msg), cases[i].msg);
        T_CHECK(hfsb_space_host(s, &out, &err) == HFSB_ARG && out.len == 0);
        check_text(hfsb_cstr(err.msg), cases[i].msg);
        hfsb_buf_free(&out);
        t_drop(s);
    }
}

static void spaces_have_host_names(void) {
    static const struct {
        const char *id, *host;
    } cases[] = {
        {"NimaBoscarino/hotdog-gradio",
         "nimaboscarino-hotdog-gradio.hf.space"},
        {"user/tmp_test_space", "user-tmp-test-space.hf.space"},
        {"microsoft/TRELLIS.2", "microsoft-trellis-2.hf.space"},
        {"ab/_-x", "ab-x.hf.space"},
        {"AZaz09/AZ", "azaz09-az.hf.space"},
        {OWNER42 "/sandbox-01234567", OWNER42 "-sandbox-01234567.hf.space"},
        {OWNER42 "/01234567890123456789",
         OWNER42 "-01234567890123456789.hf.space"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf out = HFSB_INIT;
        hfsb_err err;
        T_CHECK(hfsb_space_host(hfsb_cstr(cases[i].id), &out, &err) ==
                HFSB_OK);
        T_CHECK(err.code == HFSB_OK);
        check_text(hfsb_buf_str(&out), cases[i].host);
        hfsb_buf_free(&out);
    }
}

static void too_long_host_names_are_refused(void) {
    hfsb_buf out = HFSB_INIT;
    hfsb_err err;
    out.max = 20;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("was")) == HFSB_OK);
    T_CHECK(hfsb_space_host(HFSB_LIT("owner/namenamename"), &out, &err) ==
            HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT);
    T_STR(hfsb_cstr(err.msg), "Host name of a Space: size limit exceeded.");
    T_STR(out, "was");
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    out.max = 0;
    T_CHECK(hfsb_space_host(HFSB_LIT(OWNER42 "/012345678901234567890"), &out,
                            &err) == HFSB_ARG);
    T_CHECK(err.code == HFSB_ARG && err.pos == 0);
    T_STR(hfsb_cstr(err.msg),
          "The host name of this Space would be 64 characters long, 63 are "
          "possible: ask the Hub for its subdomain.");
    T_STR(out, "was");
    hfsb_buf_free(&out);
}

static void paths_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_err    err;
    hfsb_status st;
    size_t      was;
    out.alloc = alloc;
    st = hfsb_path_join(HFSB_LIT("/a/b/"), HFSB_LIT("../" NAME96), &out);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && out.len == 0));
    was = out.len;
    st = hfsb_path_clean(HFSB_LIT("x/../" NAME96), &out);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && out.len == was));
    was = out.len;
    st = hfsb_space_host(HFSB_LIT("owner/name"), &out, &err);
    T_CHECK(st == err.code);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && out.len == was));
    if (!heap->fail_at)
        T_STR(out, "/a/" NAME96 NAME96 "owner-name.hf.space");
    hfsb_buf_free(&out);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(paths_without_memory);
}

int main(void) {
    T_RUN(scripts_are_classified);
    T_RUN(path_with_white_space_around_is_refused);
    T_RUN(scripts_agree_with_the_reference);
    T_RUN(paths_are_cleaned);
    T_RUN(paths_are_joined);
    T_RUN(bases_and_suffixes_are_found);
    T_RUN(good_space_ids_pass);
    T_RUN(bad_space_ids_are_explained);
    T_RUN(spaces_have_host_names);
    T_RUN(too_long_host_names_are_refused);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
