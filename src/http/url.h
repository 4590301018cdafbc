#pragma once

/* ==== URL: addresses of http and https ================================== */

#include "../core/base.h"

/* The parts of a URL; views of the text it was parsed from. */
typedef struct hfsb_url {
    hfsb_str scheme; /* "http" or "https", in whatever case it came */
    hfsb_str user;   /* in front of "@", not decoded; "" when there is none */
    hfsb_str host;   /* without the brackets of an IPv6 address */
    hfsb_str authority; /* host and port as they came, brackets and all,
                          without user: what a Host field says */
    hfsb_str target; /* path and query, from the first "/" or "?" on, without
                          the fragment; may be "" (then "/" is meant) or begin
                          with "?" (then "/" comes first) */
    unsigned port;   /* 80 or 443 when none is given */
    bool     secure; /* https */
} hfsb_url;

/* HFSB_OK, or HFSB_ARG with a message that says what is wrong: another scheme,
   no host, a host or port that is none, blanks or control bytes anywhere,
   bytes above ASCII. *url shows bytes of text. */
HFSB_API hfsb_status hfsb_url_parse(hfsb_str text, hfsb_url *url,
                                    hfsb_err *err);

/* Appends what `reference` (a Location) means at `base`, as RFC 3986 section
   5.2 has it, dot segments removed, without a fragment. HFSB_ARG when either
   cannot be; HFSB_NOMEM or HFSB_LIMIT with *out as it was. */
HFSB_API hfsb_status hfsb_url_resolve(hfsb_str base, hfsb_str reference,
                                      hfsb_buf *out, hfsb_err *err);

/* True when both have the same scheme, host (in any case) and port. */
HFSB_API bool hfsb_url_same_origin(const hfsb_url *a, const hfsb_url *b);
