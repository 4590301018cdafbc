/* Both headers; with HFSB_PURE, or when asked for, hfsb.h alone. No guard: a
   program may include them any number of times. */
#if defined(HFSB_PURE) || defined(TEST_WITHOUT_SERVER)
#include "../../hfsb.h"
#else
#include "../../hfsb_server.h"
#endif
