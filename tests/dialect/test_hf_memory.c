/* test_hf_memory.c - every route of the dialect, without memory. */
#include "../support/t_dialect_memory.h"

int main(void) {
    tt_begin();
    lacks_memory(&td_hf);
    return TT_END();
}
