/* The built-in transport keeps what every transport promises; tests/checks/
   tls.sh runs the same list through libcurl. */
#include "../support/t_transport_list.h"

static void built_in_transport_conforms(void) {
    hfsb_net_opts  opts = HFSB_INIT;
    hfsb_transport net;
    hfsb_err       err;
    opts.no_proxy = true;
    T_CHECK(hfsb_net_open(&opts, &net, &err) == HFSB_OK);
    tt_conforms(&net);
    hfsb_transport_close(&net);
}

int main(void) {
    T_RUN(built_in_transport_conforms);
    return T_END();
}
