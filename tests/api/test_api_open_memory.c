/* test_api_open_memory.c - /proxy and /open without memory, the page and what
   it asks for, and a reset. */
#include "../support/t_dialect_memory.h"

int main(void) {
    tt_begin();
    lacks_memory(&td_ports);
    every_call(&td_page);
    return TT_END();
}
