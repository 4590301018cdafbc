#pragma once

/* ==== UTF8: step, validate, count, repair =============================== */

#include "base.h"

/* Decodes the character at byte pos of s (pos < s.len) into *code and returns
   its length, 1 to 4. For an ill-formed sequence *code is 0xFFFD, *valid (may
   be NULL) is false, and the length is that of its maximal subpart, 1 to 3, as
   the Unicode standard recommends for replacement. */
HFSB_API size_t hfsb_utf8_step(hfsb_str s, size_t pos, unsigned long *code,
                               bool *valid);

/* Writes the character (a Unicode scalar value; anything else is written as
   U+FFFD) to out and returns its length, 1 to 4. */
HFSB_API size_t hfsb_utf8_encode(unsigned long code, char out[4]);

/* Offset of the first byte of s that is not part of well-formed UTF-8; s.len
   when all of s is valid. */
HFSB_API size_t hfsb_utf8_validate(hfsb_str s);

/* Number of characters in s; a maximal ill-formed subpart counts as one. */
HFSB_API size_t hfsb_utf8_count(hfsb_str s);

/* Byte offset after the first `count` characters of s; s.len when there are
   fewer. */
HFSB_API size_t hfsb_utf8_offset(hfsb_str s, size_t count);

/* Appends s to *out with each maximal ill-formed subpart replaced by U+FFFD.
   HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_utf8_repair(hfsb_str s, hfsb_buf *out) HFSBI_CHECKED;

/* Repairs a text that arrives in pieces; the result does not depend on how it
   was cut. All-zero is the initial state. */
typedef struct hfsb_utf8_stream {
    unsigned char part[4]; /* private: an incomplete character */
    unsigned char len;
} hfsb_utf8_stream;

/* Appends the repaired piece; up to three bytes are held back for the next
   call. `last` ends the text: bytes held back are then replaced by U+FFFD.
   HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with *stream and *out unchanged. */
HFSB_API hfsb_status hfsb_utf8_stream_write(hfsb_utf8_stream *stream,
                                            hfsb_str piece, bool last,
                                            hfsb_buf *out) HFSBI_CHECKED;
