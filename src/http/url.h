#pragma once

/* ==== URL: parse and resolve URLs of http and https ===================== */

#include "../core/base.h"

/* The parts of a URL; views of the text it was parsed from. */
typedef struct hfsb_url {
    hfsb_str scheme;    /* "http" or "https", in whatever case it came */
    hfsb_str user;      /* before "@", not decoded; "" without one */
    hfsb_str host;      /* without the brackets of an IPv6 address */
    hfsb_str authority; /* host and port as given, with brackets, without
                           user: the value of a Host field */
    hfsb_str target; /* path and query, from the first "/" or "?" on, without
                        the fragment; may be "" (meaning "/") or start with
                        "?" (meaning "/?") */
    unsigned port;   /* 80 or 443 by default */
    bool     secure; /* https */
} hfsb_url;

/* HFSB_OK with views of text in *url; HFSB_ARG for any other scheme, a missing
   or invalid host or port, and for blanks, control bytes or bytes beyond ASCII
   anywhere: then *url is empty. */
HFSB_API hfsb_status hfsb_url_parse(hfsb_str text, hfsb_url *url,
                                    hfsb_err *err);

/* Appends `reference` (a Location) resolved against `base` by RFC 3986 section
   5.2, with dot segments removed and without a fragment. HFSB_OK; HFSB_ARG
   when either is invalid; HFSB_NOMEM or HFSB_LIMIT. On failure the bytes of
   *out are unchanged. */
HFSB_API hfsb_status hfsb_url_resolve(hfsb_str base, hfsb_str reference,
                                      hfsb_buf *out, hfsb_err *err);

/* True when both have the same scheme, host (in any case) and port. */
HFSB_API bool hfsb_url_same_origin(const hfsb_url *a, const hfsb_url *b);
