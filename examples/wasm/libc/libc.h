/* libc.h - what the pure part of hfsb needs of a C library, for WebAssembly,
   which has none; implemented in libc.c. <stdio.h>, <stdlib.h>, <string.h>
   and <assert.h> here are this file. */
#ifndef HFSB_WASM_LIBC_H
#define HFSB_WASM_LIBC_H

#include <stdarg.h>
#include <stddef.h>

#define assert(x) ((x) ? (void)0 : __builtin_trap())

void *malloc(size_t size);
void *realloc(void *ptr, size_t size);
void  free(void *ptr);

void  *memchr(const void *ptr, int c, size_t n);
int    memcmp(const void *a, const void *b, size_t n);
void  *memcpy(void *to, const void *from, size_t n);
void  *memmove(void *to, const void *from, size_t n);
void  *memset(void *to, int c, size_t n);
char  *strchr(const char *s, int c);
int    strcmp(const char *a, const char *b);
int    strncmp(const char *a, const char *b, size_t n);
size_t strlen(const char *s);

int snprintf(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int vsnprintf(char *to, size_t size, const char *format, va_list ap);

#endif
