/* suggest.c - "did you mean": the same for both programs. */
#include "../hfsb-server/suggest.c"
