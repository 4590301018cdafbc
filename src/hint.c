/* hint.c - what a refusal says. Depends on: base, utf8, text, view, match. */
#include "match.h"

HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint, hfsb_err *err) {
    (void)hint;
    (void)err;
}

HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint  *hint,
                                   const hfsbi_found *found, hfsb_err *err) {
    (void)hint;
    (void)found;
    (void)err;
}
