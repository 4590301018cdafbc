/* threads.c - the library in several threads at once, for ThreadSanitizer
   (tests/checks/sanitize.sh tsan): there is no state they could share. */
#include "../../src/core/core_private.h"

#include <pthread.h>

static const char text[] =
    "{\"name\": \"caf\\u00e9\", \"sizes\": [1, 2.5, -3e10, true, null]}";

static bool round_trip(void) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      once = HFSB_INIT, again = HFSB_INIT;
    bool ok = hfsb_json_parse(hfsb_cstr(text), NULL, &doc, NULL) == HFSB_OK &&
              hfsb_json_write(doc.root, NULL, &once, NULL) == HFSB_OK;
    hfsb_json_free(&doc);
    ok = ok &&
         hfsb_json_parse(hfsb_buf_str(&once), NULL, &doc, NULL) == HFSB_OK &&
         hfsb_json_write(doc.root, NULL, &again, NULL) == HFSB_OK &&
         hfsb_str_equal(hfsb_buf_str(&once), hfsb_buf_str(&again));
    hfsb_json_free(&doc);
    hfsb_buf_free(&once);
    hfsb_buf_free(&again);
    return ok;
}

static bool filtered(void) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_buf          out = HFSB_INIT;
    bool ok = f &&
              hfsb_text_filter_write(f, HFSB_LIT("10%\r20%\x1b[1m done\n"),
                                     &out) == HFSB_OK &&
              hfsb_text_filter_finish(f, &out) == HFSB_OK &&
              hfsb_str_equal(hfsb_buf_str(&out), HFSB_LIT("20% done\n"));
    hfsb_text_filter_close(f);
    hfsb_buf_free(&out);
    return ok;
}

static void *work(void *failed) {
    int i;
    for (i = 0; i < 500; i++)
        if (!round_trip() || !filtered()) *(bool *)failed = true;
    return NULL;
}

int main(void) {
    pthread_t thread[4];
    bool      failed[4] = HFSB_INIT;
    int       i, bad = 0;
    for (i = 0; i < 4; i++)
        if (pthread_create(&thread[i], NULL, work, &failed[i])) return 2;
    for (i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        bad += failed[i];
    }
    printf("%d threads, %d failed\n", 4, bad);
    return bad != 0;
}
