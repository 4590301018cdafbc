/* must.h - what the fuzz targets share. */
#ifndef MUST_H
#define MUST_H

/* Not assert: it must hold with NDEBUG too. */
#define MUST(x)                                                    \
    do {                                                           \
        if (!(x)) {                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
            abort();                                               \
        }                                                          \
    } while (0)

extern int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#endif
