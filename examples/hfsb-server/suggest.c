/* suggest.c - "did you mean": the name closest to a mistyped word.

   The distance of two words is the least number of letters to insert, delete,
   replace or swap with their neighbour (optimal string alignment). A word of n
   letters may be off by one for every three of them, and a prefix of a name is
   always near. */
#include "suggest.h"

#include <string.h>

enum { MAX_WORD = 40 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Both words have at most MAX_WORD letters. */
static size_t distance(const char *a, size_t m, const char *b, size_t n) {
    size_t rows[3][MAX_WORD + 1];
    size_t i, k;
    for (k = 0; k <= n; k++) rows[0][k] = k;
    for (i = 1; i <= m; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3];
        now[0] = i;
        for (k = 1; k <= n; k++) {
            size_t same = a[i - 1] == b[k - 1] ? 0 : 1;
            now[k] = least(least(last[k] + 1, now[k - 1] + 1),
                           last[k - 1] + same);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], rows[(i + 1) % 3][k - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

void suggest_init(suggestion *s, const char *word, size_t len) {
    memset(s, 0, sizeof *s);
    s->word = word;
    s->len = len;
    s->best = 1 + len / 3; /* a distance below this is near */
    if (len > MAX_WORD) s->best = 0;
}

void suggest_try(suggestion *s, const char *name) {
    size_t n = strcspn(name, " "), far;
    if (n > MAX_WORD || !s->best) return;
    far = distance(s->word, s->len, name, n);
    if (s->len > 2 && n > s->len && strncmp(name, s->word, s->len) == 0)
        far = 0; /* it was cut */
    if (far >= s->best || far == n) return;
    s->best = far;
    s->name = name;
    s->name_len = n;
}
