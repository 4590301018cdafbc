#pragma once

/* Private: sha1, by which git names what it holds. Good for nothing else:
   collisions can be made. */

#include "internal.h"

#define HFSBI_SHA1_HEX 41 /* with the NUL */

/* sha1 of a followed by b, in lower-case hexadecimal. */
HFSBI_FN void hfsbi_sha1_hex(hfsb_str a, hfsb_str b, char hex[HFSBI_SHA1_HEX]);

/* The name git gives to a file with that content. */
HFSBI_FN void hfsbi_git_blob(hfsb_str content, char hex[HFSBI_SHA1_HEX]);
