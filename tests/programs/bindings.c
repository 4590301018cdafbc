/* bindings.c - every allocation of hfsb_bind_call() fails in turn: the reply is
   valid JSON or NULL, and nothing leaks. For bindings.sh, with sanitisers. */
#include <stdio.h>
#include <stdlib.h>

static long left = -1, held; /* allocations that succeed (-1: all); blocks */

static void *get(void *ptr, size_t size) {
    void *now;
    if (left == 0) return NULL;
    if (left > 0) left--;
    now = realloc(ptr, size);
    if (now && !ptr) held++;
    return now;
}

static void drop(void *ptr) {
    if (ptr) held--;
    free(ptr);
}

#define HFSB_PURE
#define HFSB_REALLOC(p, n) get(p, n)
#define HFSB_FREE(p)       drop(p)
#define malloc(n)          get(NULL, n)
#define free(p)            drop(p)
#include "../../examples/bindings/hfsb_json.c"

static int check(const char *name, const char *json) {
    hfsb_json_doc doc = HFSB_INIT;
    long          n;
    for (n = 0; n < 100000; n++) {
        char *reply;
        bool  ran_out;
        left = n;
        reply = hfsb_bind_call(name, json, strlen(json));
        ran_out = left == 0;
        left = -1;
        if (reply && hfsb_json_parse(hfsb_cstr(reply), NULL, &doc, NULL)) {
            printf("FAIL  %s, allocation %ld: %s\n", name, n, reply);
            return 1;
        }
        hfsb_json_free(&doc);
        hfsb_bind_free(reply);
        if (held != 0) {
            printf("FAIL  %s, allocation %ld: %ld blocks left\n", name, n,
                   held);
            return 1;
        }
        if (!ran_out) return 0;
    }
    printf("FAIL  %s never has enough memory\n", name);
    return 1;
}

int main(void) {
    static const char *const calls[][2] = {
        {"edit", "{\"content\":\"a\\nb\\n\",\"old_str\":\"a\",\"new_str\":"
                 "\"c\"}"},
        {"edit", "{\"content\":\"a\\nb\\n\",\"old_str\":\"x y z\",\"new_str\":"
                 "\"c\"}"},
        {"edit", "{\"content\":\"a\\nb\\n\",\"edits\":[{\"old_str\":\"a\","
                 "\"new_str\":\"c\"},{\"old_str\":\"b\",\"new_str\":\"d\"}]}"},
        {"patch", "{\"patch\":\"*** Begin Patch\\n*** Update File: f\\n@@\\n"
                  "-a\\n+b\\n*** End Patch\\n\",\"files\":{\"f\":\"a\\n\"}}"},
        {"patch", "{\"patch\":\"*** Begin Patch\\n*** Update File: f\\n@@\\n"
                  "-a\\n+b\\n*** End Patch\\n\"}"},
        {"truncate", "{\"text\":\"abcdefghij\",\"chars\":2}"},
        {"strip", "{\"text\":\"\\u001b[1mx\\ry\"}"},
        {"edit", "{\"content\":"},
        {"none", "{}"}};
    size_t i;
    int    bad = 0;
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        bad += check(calls[i][0], calls[i][1]);
    return bad != 0;
}
