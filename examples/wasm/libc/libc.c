/* libc.c - the C library of hfsb.wasm: memory, strings, and the part of
   printf() that the pure part of hfsb uses. Slow where it does not matter.

   Memory: the size of a block is a power of two; a freed block goes to the
   list of its size and is used again. New ones are cut from the end of the
   module's memory, which grows and, as always in WebAssembly, never
   shrinks. */
#include "libc.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- memory ---- */

enum { HEAD = 16, SIZES = 32, PAGE = 65536 };

typedef struct block {
    size_t        order; /* its size is 1 << order, with this head */
    struct block *next;  /* in the list of free ones */
} block;

extern unsigned char __heap_base; /* the linker's: where free memory begins */

static block    *unused[SIZES];
static uintptr_t end; /* of the blocks; 0: none yet */

static block *cut(size_t order) {
    uintptr_t at = end ? end : ((uintptr_t)&__heap_base + 15) / 16 * 16;
    uintptr_t have = __builtin_wasm_memory_size(0) * (uintptr_t)PAGE;
    size_t    size = (size_t)1 << order;
    block    *b = (block *)at;
    if (have == 0) have = UINTPTR_MAX; /* all 4 GiB */
    if (size > UINTPTR_MAX - at) return NULL;
    if (at + size > have &&
        __builtin_wasm_memory_grow(0, (at + size - have - 1) / PAGE + 1) ==
            SIZE_MAX)
        return NULL;
    end = at + size;
    b->order = order;
    return b;
}

void *malloc(size_t size) {
    size_t order = 5;
    block *b;
    while (order < SIZES && ((size_t)1 << order) - HEAD < size) order++;
    if (order == SIZES) return NULL;
    b = unused[order];
    if (b) unused[order] = b->next;
    else b = cut(order);
    return b ? (char *)b + HEAD : NULL;
}

void free(void *ptr) {
    block *b = (block *)(void *)((char *)ptr - HEAD);
    if (!ptr) return;
    b->next = unused[b->order];
    unused[b->order] = b;
}

void *realloc(void *ptr, size_t size) {
    const block *b = (const block *)(void *)((char *)ptr - HEAD);
    size_t       have;
    void        *now;
    if (!ptr) return malloc(size);
    have = ((size_t)1 << b->order) - HEAD;
    if (size <= have) return ptr;
    now = malloc(size);
    if (!now) return NULL;
    memcpy(now, ptr, have);
    free(ptr);
    return now;
}

/* ---- bytes: the builtins are one instruction with -mbulk-memory ---- */

void *memcpy(void *to, const void *from, size_t n) {
    return __builtin_memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n) {
    return __builtin_memmove(to, from, n);
}

void *memset(void *to, int c, size_t n) {
    return __builtin_memset(to, c, n);
}

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *x = (const unsigned char *)a;
    const unsigned char *y = (const unsigned char *)b;
    for (; n; n--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}

void *memchr(const void *ptr, int c, size_t n) {
    const unsigned char *p = (const unsigned char *)ptr;
    for (; n; n--, p++)
        if (*p == (unsigned char)c) return (void *)(uintptr_t)p;
    return NULL;
}

size_t strlen(const char *s) {
    const char *p = s;
    while (*p) p++;
    return (size_t)(p - s);
}

char *strchr(const char *s, int c) {
    for (; *s != (char)c; s++)
        if (!*s) return NULL;
    return (char *)(uintptr_t)s;
}

int strncmp(const char *a, const char *b, size_t n) {
    for (; n; n--, a++, b++)
        if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
    return 0;
}

int strcmp(const char *a, const char *b) {
    return strncmp(a, b, SIZE_MAX);
}

/* ---- numbers ---- */

/* The product of two numbers of 128 bits, which the compiler calls: digits of
   64 bits, the lowest pair of them in four products of 32. */
__int128 __multi3(__int128 a, __int128 b);
__int128 __multi3(__int128 a, __int128 b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    uint64_t xl = (uint32_t)x, xh = x >> 32, yl = (uint32_t)y, yh = y >> 32;
    uint64_t low = xl * yl, mid = xh * yl + (low >> 32);
    uint64_t other = xl * yh + (uint32_t)mid;
    uint64_t high = xh * yh + (mid >> 32) + (other >> 32) +
                    x * (uint64_t)(b >> 64) + y * (uint64_t)(a >> 64);
    low = other << 32 | (uint32_t)low;
    return (__int128)((unsigned __int128)high << 64 | low);
}

/* ---- printf: %c %s %d %i %u %x %X %%, with - 0, width, precision, l ll z */

typedef struct sheet {
    char  *to;
    size_t size, at; /* at may pass the size */
} sheet;

typedef struct directive {
    bool   left, zero, upper, negative;
    size_t width, precision; /* SIZE_MAX: none */
    int    longs;            /* l: 1, ll: 2, z: 1, as size_t is a long */
} directive;

static void put(sheet *s, char c, size_t n) {
    for (; n; n--, s->at++)
        if (s->at < s->size) s->to[s->at] = c;
}

static void put_text(sheet *s, const directive *d, const char *text,
                     size_t n) {
    size_t pad = d->width > n ? d->width - n : 0;
    if (!d->left) put(s, ' ', pad);
    while (n--) put(s, *text++, 1);
    if (d->left) put(s, ' ', pad);
}

static void put_number(sheet *s, const directive *d, unsigned long long value,
                       unsigned base) {
    char   digits[24], *at = digits + sizeof digits;
    size_t n;
    do *--at = (d->upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    while (value /= base);
    n = (size_t)(digits + sizeof digits - at);
    while (d->zero && n + d->negative < d->width && at > digits + 1) {
        *--at = '0';
        n++;
    }
    if (d->negative) *--at = '-', n++;
    put_text(s, d, at, n);
}

static size_t number(const char **at) {
    size_t n = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        n = 10 * n + (size_t)(**at - '0');
    return n;
}

/* Reads flags, width, precision and length. */
static directive parse(const char **at, va_list *ap) {
    directive d = {false, false, false, false, 0, SIZE_MAX, 0};
    for (; **at == '-' || **at == '0'; (*at)++)
        if (**at == '-') d.left = true;
        else d.zero = true;
    d.width = number(at);
    if (**at == '.') {
        (*at)++;
        if (**at != '*') {
            d.precision = number(at);
        } else {
            int n = va_arg(*ap, int);
            (*at)++;
            d.precision = n < 0 ? SIZE_MAX : (size_t)n;
        }
    }
    for (; **at == 'l' || **at == 'z'; (*at)++) d.longs++;
    return d;
}

static void put_signed(sheet *s, directive *d, va_list *ap) {
    long long value = d->longs == 2   ? va_arg(*ap, long long)
                      : d->longs == 1 ? va_arg(*ap, long)
                                      : va_arg(*ap, int);
    d->negative = value < 0;
    put_number(s, d,
               value < 0 ? 0 - (unsigned long long)value
                         : (unsigned long long)value,
               10);
}

static void put_unsigned(sheet *s, const directive *d, unsigned base,
                         va_list *ap) {
    put_number(s, d,
               d->longs == 2   ? va_arg(*ap, unsigned long long)
               : d->longs == 1 ? va_arg(*ap, unsigned long)
                               : va_arg(*ap, unsigned),
               base);
}

static void put_string(sheet *s, const directive *d, const char *text) {
    size_t n = 0;
    while (n < d->precision && text[n]) n++;
    put_text(s, d, text, n);
}

static void put_directive(sheet *s, const char **at, va_list *ap) {
    directive d = parse(at, ap);
    char      c = **at;
    d.upper = c == 'X';
    switch (c) {
    case '%': put(s, '%', 1); break;
    case 'c': c = (char)va_arg(*ap, int), put_text(s, &d, &c, 1); break;
    case 's': put_string(s, &d, va_arg(*ap, const char *)); break;
    case 'd':
    case 'i': put_signed(s, &d, ap); break;
    case 'u': put_unsigned(s, &d, 10, ap); break;
    case 'x':
    case 'X': put_unsigned(s, &d, 16, ap); break;
    default: __builtin_trap(); /* the tests would see it */
    }
    (*at)++;
}

int vsnprintf(char *to, size_t size, const char *format, va_list ap) {
    sheet   s = {to, size, 0};
    va_list copy;
    va_copy(copy, ap);
    while (*format) {
        if (*format != '%') {
            put(&s, *format++, 1);
            continue;
        }
        format++;
        put_directive(&s, &format, &copy);
    }
    va_end(copy);
    if (size) to[s.at < size ? s.at : size - 1] = '\0';
    return (int)s.at;
}

int snprintf(char *to, size_t size, const char *format, ...) {
    va_list ap;
    int     n;
    va_start(ap, format);
    n = vsnprintf(to, size, format, ap);
    va_end(ap);
    return n;
}
