/* Another header has included the declarations before, without those of the
   Hub, and one more does so after. */
#include "../../hfsb.h"
#define HFSB_HUB
#define HFSB_IMPLEMENTATION
#include "headers.h"
#include "headers.h"

int main(void) {
    return hfsb_str_find(HFSB_LIT("abc"), HFSB_LIT("c")) == 2 ? 0 : 1;
}
