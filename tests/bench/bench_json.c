/* bench_json.c - JSON against others, in one run, as ratios.

   Each figure is the best of many samples, the contestants taking turns, so
   that a noisy machine disturbs all alike. A ratio above 1 means that hfsb is
   faster. Without BENCH_PEERS, or where a library is not installed, that
   contestant is left out and the output says so. General documents need
   HFSB_TEST_DATA. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"

#ifdef __has_include
#if __has_include(<cjson/cJSON.h>)
#include <cjson/cJSON.h>
#define BENCH_CJSON 1
#endif
#endif

#include "bench_json_peers.h"

#ifndef BENCH_PEERS
int    peers_has_simdjson(void) { return 0; }
int    peers_has_rapidjson(void) { return 0; }
size_t peers_begin(const char *text, size_t len) { return (void)text, len; }
void   peers_end(void) {}
size_t peers_simdjson_parse(void) { return 0; }
size_t peers_rapidjson_parse(void) { return 0; }
size_t peers_rapidjson_write(void) { return 0; }
#endif

static hfsb_str      text;
static hfsb_json_doc tree;
static hfsb_buf      written;

/* ---- the contestants: each gives 0 when it cannot run ---- */

static size_t hfsb_parse_run(void) {
    hfsb_json_doc doc = HFSB_INIT;
    size_t        n = hfsb_json_parse(text, NULL, &doc, NULL) == HFSB_OK;
    hfsb_json_free(&doc);
    return n;
}

static size_t hfsb_write_run(void) {
    hfsb_buf_truncate(&written, 0);
    return hfsb_json_write(tree.root, NULL, &written, NULL) == HFSB_OK
               ? written.len
               : 0;
}

#ifdef BENCH_CJSON
static cJSON *cjson_tree;

static size_t cjson_parse_run(void) {
    cJSON *doc = cJSON_ParseWithLength(text.ptr, text.len);
    cJSON_Delete(doc);
    return doc != NULL;
}

static size_t cjson_write_run(void) {
    char *out = cJSON_PrintUnformatted(cjson_tree);
    free(out);
    return out != NULL;
}
#else
static size_t cjson_parse_run(void) { return 0; }
static size_t cjson_write_run(void) { return 0; }
#endif

typedef struct contestant {
    const char *name;
    size_t (*run)(void);
    double best; /* seconds for one run */
} contestant;

/* ---- timing ---- */

/* The processor's time, so that other programs on the machine count less. */
static double now(void) { return bench_clock(CLOCK_PROCESS_CPUTIME_ID); }

static double sample(size_t (*run)(void), long rounds) {
    double start = now();
    long   i;
    for (i = 0; i < rounds; i++) run();
    return (now() - start) / (double)rounds;
}

static void keep(const char *what, const char *name, double best,
                 const contestant *peer) {
    char figure[64];
    snprintf(figure, sizeof figure, "json: %s %s", what, name);
    bench_keep(figure, (double)text.len / best / 1e6, peer->name,
               (double)text.len / peer->best / 1e6, "MB/s");
}

static void measure(const char *what, const char *name, contestant *list,
                    int count) {
    int    i, round;
    long   rounds = 1 + (long)(0.002 / (sample(list[0].run, 3) + 1e-9));
    double best = 0;
    for (round = 0; round < bench_rounds(25); round++)
        for (i = 0; i < count; i++) {
            double t = list[i].run() ? sample(list[i].run, rounds) : 0;
            if (round == 0 || t < list[i].best) list[i].best = t;
        }
    best = list[0].best;
    printf("json %-5s %-16s hfsb %8.1f MB/s", what, name,
           (double)text.len / best / 1e6);
    for (i = 1; i < count; i++)
        if (list[i].best > 0) {
            printf("  %s %.2fx", list[i].name, list[i].best / best);
            keep(what, name, best, &list[i]);
        }
    printf("\n");
    fflush(stdout);
}

static void bench(const char *name, hfsb_str input) {
    contestant parsers[] = {{"hfsb", hfsb_parse_run, 0},
                            {"cjson", cjson_parse_run, 0},
                            {"rapidjson", peers_rapidjson_parse, 0},
                            {"simdjson", peers_simdjson_parse, 0}};
    contestant writers[] = {{"hfsb", hfsb_write_run, 0},
                            {"cjson", cjson_write_run, 0},
                            {"rapidjson", peers_rapidjson_write, 0}};
    text = input;
    peers_begin(text.ptr, text.len);
    if (hfsb_json_parse(text, NULL, &tree, NULL) != HFSB_OK) {
        printf("json %s: cannot be parsed\n", name);
        return;
    }
#ifdef BENCH_CJSON
    cjson_tree = cJSON_ParseWithLength(text.ptr, text.len);
#endif
    measure("parse", name, parsers, 4);
    measure("write", name, writers, 3);
#ifdef BENCH_CJSON
    cJSON_Delete(cjson_tree);
#endif
    peers_end();
    hfsb_json_free(&tree);
}

/* ---- the inputs ---- */

static bool append(hfsb_buf *b, const char *s) {
    return hfsb_buf_append(b, hfsb_cstr(s)) == HFSB_OK;
}

/* A source file of 400 kB as a model sends it: one string, lines of about 35
   bytes, a quoted word here and there. */
static void bench_payload(void) {
    static const char word[] = "self.value = compute(index, other) # note ";
    unsigned long     state = 1;
    hfsb_buf          b = HFSB_INIT;
    bool ok = append(&b, "{\"path\":\"/app/train.py\",\"content\":\"");
    while (ok && b.len < 400000) {
        size_t len;
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF;
        len = (state >> 8) % 60 + 4;
        while (len > 40) {
            ok = ok && append(&b, word);
            len -= 40;
        }
        ok = ok && hfsb_buf_append(&b, hfsb_str_make(word, len)) == HFSB_OK;
        if (state % 7 == 0) ok = ok && append(&b, "\\\"name\\\"");
        ok = ok && append(&b, "\\n");
    }
    ok = ok && append(&b, "\"}");
    if (ok) bench("tool-payload", hfsb_buf_str(&b));
    hfsb_buf_free(&b);
}

static void bench_documents(void) {
    static const char *const names[] = {"twitter", "citm_catalog",
                                        "github_events", "canada",
                                        "twitterescaped"};
    const char *root = getenv("HFSB_TEST_DATA");
    size_t      i;
    if (!root) {
        printf("skipped: general documents, HFSB_TEST_DATA is not set\n");
        return;
    }
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        hfsb_buf file = HFSB_INIT;
        char     path[4096], piece[4096];
        FILE    *f;
        size_t   n;
        bool     ok;
        snprintf(path, sizeof path, "%s/data/json/bench/%s.json", root,
                 names[i]);
        f = fopen(path, "rb");
        ok = f != NULL;
        while (ok && (n = fread(piece, 1, sizeof piece, f)) > 0)
            ok = hfsb_buf_append(&file, hfsb_str_make(piece, n)) == HFSB_OK;
        if (f) fclose(f);
        if (ok) bench(names[i], hfsb_buf_str(&file));
        else printf("json %s: cannot be read\n", names[i]);
        hfsb_buf_free(&file);
    }
}

int main(void) {
#ifndef BENCH_CJSON
    printf("skipped: cJSON is not installed\n");
#endif
    if (!peers_has_rapidjson()) printf("skipped: RapidJSON is not installed\n");
    if (!peers_has_simdjson()) printf("skipped: simdjson is not installed\n");
    bench_payload();
    bench("request-90B",
          HFSB_LIT("{\"command\":\"ls -la /app\",\"timeout\":120,"
                   "\"work_dir\":\"/app\",\"env\":{\"A\":\"1\"},"
                   "\"merge\":true}"));
    bench_documents();
    hfsb_buf_free(&written);
    return 0;
}
