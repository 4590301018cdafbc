/* fuzz_tools.c - libFuzzer target for the file tools in a session with a root.

   The input: calls, each a tool's name and a JSON text with 0x1F between, 0x1E
   between the calls. Before each input the root holds the same few files and
   links. Oracle: every answer is valid JSON with success, output and error; a
   failure says why; a file outside the root, to which a link leads, stays as
   it was; nothing is left but what was written (no temporary); what a
   successful write wrote can be read back. */
#include "../support/t.h"
#include "must.h"

#include <ftw.h>

static char     top[64], root[80], outside[80];
static hfsb_str input;

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *where) {
    (void)st;
    (void)where;
    if (strcmp(path, root) == 0) return 0;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_all(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", top);
    if (top[0] && system(command) != 0) return;
}

static void put(const char *name, const char *text) {
    char  path[256];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", root, name);
    f = fopen(path, "wb");
    MUST(f && fwrite(text, 1, strlen(text), f) == strlen(text));
    fclose(f);
}

/* The text of the file outside the root: the hash of the input, which no input
   can contain, so that an output with it is a leak. */
static char kept[HFSB_SHA256_HEX];

static void make_root(void) {
    char name[256];
    if (!top[0]) {
        snprintf(top, sizeof top, "/tmp/hfsb-fuzz-XXXXXX");
        MUST(mkdtemp(top));
        snprintf(root, sizeof root, "%s/root", top);
        snprintf(outside, sizeof outside, "%s/outside", top);
        MUST(mkdir(root, 0700) == 0);
        atexit(remove_all);
    }
    MUST(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
    put("a", "one\ntwo\nthree\n");
    put("b.json", "{\"k\": [1, 2]}\n");
    hfsb_sha256_hex(input, kept);
    put("../outside", kept);
    snprintf(name, sizeof name, "%s/d", root);
    MUST(mkdir(name, 0700) == 0);
    put("d/c", "x\r\ny\r\n");
    snprintf(name, sizeof name, "%s/in", root);
    MUST(symlink("d/c", name) == 0);
    snprintf(name, sizeof name, "%s/out", root);
    MUST(symlink(outside, name) == 0);
    snprintf(name, sizeof name, "%s/up", root);
    MUST(symlink("..", name) == 0);
}

static int no_temporary(const char *path, const struct stat *st, int type,
                        struct FTW *where) {
    char mark[32];
    (void)st;
    (void)type;
    snprintf(mark, sizeof mark, ".hfsb-%ld-", (long)getpid());
    MUST(!strstr(path + where->base, mark) || /* unless it was asked for */
         hfsb_str_find(input, hfsb_cstr(mark)) != HFSB_NPOS);
    return 0;
}

/* A write that went well can be read back, unless a later part of the same
   name is no path for us. */
static void check_written(hfsb_tools *tools, const hfsb_json_value *args) {
    hfsb_str path = hfsb_json_str(hfsb_json_get(args, "path"), HFSB_LIT(""));
    hfsb_str want =
        hfsb_json_str(hfsb_json_get(args, "content"), HFSB_LIT(""));
    hfsb_buf is = HFSB_INIT;
    MUST(hfsb_file_read(tools->place, path, 0, &is, NULL, NULL) == HFSB_OK);
    MUST(hfsb_str_equal(hfsb_buf_str(&is), want));
    hfsb_buf_free(&is);
}

static void one_call(hfsb_tools *tools, hfsb_str name, hfsb_str text,
                     const hfsb_call_opts *opts) {
    hfsb_tool_result r;
    hfsb_json_doc    doc = HFSB_INIT, args = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_status      st = hfsb_tools_call_text(tools, name, text, opts, &r);
    MUST(st == HFSB_OK || !r.success);
    MUST(r.success == (r.error.len == 0));
    MUST(hfsb_tool_result_write(&r, &out, NULL) == HFSB_OK);
    MUST(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    MUST(hfsb_json_bool(hfsb_json_get(doc.root, "success"), !r.success) ==
         r.success);
    MUST(hfsb_str_find(hfsb_buf_str(&r.output), hfsb_cstr(kept)) ==
         HFSB_NPOS);
    if (r.success && hfsb_str_equal(name, HFSB_LIT("write")) &&
        hfsb_json_parse(text, NULL, &args, NULL) == HFSB_OK)
        check_written(tools, args.root);
    hfsb_json_free(&args);
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
    hfsb_tool_result_free(&r);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    hfsb_str        rest = hfsb_str_make((const char *)data, size);
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_call_opts  how = HFSB_INIT;
    hfsb_tools     *tools;
    hfsb_buf        is = HFSB_INIT;
    input = rest;
    make_root();
    opts.root = hfsb_cstr(root);
    opts.session = size % 2 == 0;
    how.strict = size % 3 == 0;
    opts.no_checks = true; /* they start programs */
    MUST(hfsb_tools_open(&opts, &tools, NULL) == HFSB_OK);
    while (rest.len) {
        size_t   end = hfsb_str_find_byte(rest, '\x1e');
        hfsb_str one = hfsb_str_slice(rest, 0, end);
        size_t   mid = hfsb_str_find_byte(one, '\x1f');
        hfsb_str name = hfsb_str_slice(one, 0, mid);
        rest = end == HFSB_NPOS ? HFSB_LIT("")
                                : hfsb_str_slice(rest, end + 1, rest.len);
        if (mid == HFSB_NPOS || hfsb_str_equal(name, HFSB_LIT("bash")))
            continue; /* no command of the fuzzer's making */
        one_call(tools, name, hfsb_str_slice(one, mid + 1, one.len), &how);
    }
    hfsb_tools_close(tools);
    MUST(t_read_file(outside, &is));
    MUST(hfsb_str_equal(hfsb_buf_str(&is), hfsb_cstr(kept)));
    hfsb_buf_free(&is);
    MUST(nftw(root, no_temporary, 16, FTW_PHYS) == 0);
    return 0;
}
