/* suggest.h - "did you mean", for hfsb and hfsb-server. */
#ifndef HFSB_SUGGEST_H
#define HFSB_SUGGEST_H

#include <stddef.h>

/* The closest of the names that were tried; name NULL: none is near. */
typedef struct suggestion {
    const char *word;
    size_t      len;
    const char *name; /* its first name_len bytes */
    size_t      name_len;
    size_t      best; /* private */
} suggestion;

void suggest_init(suggestion *s, const char *word, size_t len);
/* Only the part of the name before a blank counts. */
void suggest_try(suggestion *s, const char *name);

#endif
