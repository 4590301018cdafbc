#pragma once

/* What the first bytes of a file say of a picture. Private; pure. */

#include "internal.h"

typedef struct hfsbi_image {
    const char   *mime; /* NULL: none that hosts show, or not to be trusted */
    unsigned long width, height;
} hfsbi_image;

enum {
    HFSBI_IMAGE_HEAD = 81920
}; /* bytes that are looked at: a JPEG may
                                      have a small picture before its size */

/* head: the beginning of a file, HFSBI_IMAGE_HEAD bytes or all of it. PNG,
   JPEG, GIF and WebP. One that is cut short before its size is known, or has
   none, is no picture: a model's host may lose the whole conversation over
   one that cannot be shown. */
HFSBI_FN hfsbi_image hfsbi_image_look(hfsb_str head);
