/* All headers; with HFSB_PURE, or when asked for, hfsb.h alone. What
   implements hfsb_http_curl.h needs libcurl: only when asked for. No guard: a
   program may include them any number of times. */
#if defined(HFSB_PURE) || defined(TEST_WITHOUT_SERVER)
#include "../../hfsb.h"
#else
#include "../../hfsb_server.h"
#endif
#if !defined(HFSB_PURE) &&                                                    \
    (defined(TEST_WITH_CURL) || !defined(HFSB_IMPLEMENTATION))
#include "../../hfsb_http_curl.h"
#endif
