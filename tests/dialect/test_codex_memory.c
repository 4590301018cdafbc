/* test_codex_memory.c - every route of the dialect, without memory. */
#include "../support/t_dialect_memory.h"

int main(void) {
    tt_begin();
    lacks_memory(&td_codex);
    lacks_memory(&td_codex_fds);
    return TT_END();
}
