#pragma once

/* ==== JSON: parse to a tree, read it leniently, write it strictly ======= */

#include "base.h"

typedef enum hfsb_json_type {
    HFSB_JSON_NULL,
    HFSB_JSON_BOOL,
    HFSB_JSON_INT,    /* an integer that fits a signed 64-bit type */
    HFSB_JSON_UINT,   /* a larger one that fits an unsigned 64-bit type */
    HFSB_JSON_DOUBLE, /* any other number, correctly rounded */
    HFSB_JSON_STRING,
    HFSB_JSON_ARRAY,
    HFSB_JSON_OBJECT
} hfsb_json_type;

/* A value of a parsed document; lives as long as the document. Every function
   that takes one also takes NULL, which means "absent". */
typedef struct hfsb_json_value hfsb_json_value;

/* A parsed document: all of it is in one block of memory. */
typedef struct hfsb_json_doc {
    const hfsb_json_value *root;  /* NULL until a parse succeeds */
    void                  *block; /* private */
    size_t                 size;  /* private */
    hfsb_alloc             alloc; /* all-zero: HFSB_REALLOC and HFSB_FREE */
} hfsb_json_doc;

typedef struct hfsb_json_parse_opts {
    size_t max_depth;   /* nesting of arrays and objects (0: 512) */
    size_t max_bytes;   /* longest text accepted (0: 1 GiB) */
    size_t max_values;  /* values and keys of a document, each of which takes
                           at least 16 bytes of memory (0: no limit) */
    bool   unique_keys; /* a repeated key is an error (default: the last one
                           wins) */
} hfsb_json_parse_opts;

/* Parses text into *doc. text must be exactly one JSON value (RFC 8259), with
   optional white space around it. Lone surrogates, bytes that are not UTF-8, a
   byte order mark and numbers beyond the range of a double are errors. text is
   not needed after the call.

   HFSB_OK; HFSB_SYNTAX (at err->pos, line and column); HFSB_LIMIT for depth,
   size or values; HFSB_NOMEM. On failure doc->root is NULL and there is
   nothing to free. Free a document before using it again. */
HFSB_API hfsb_status hfsb_json_parse(hfsb_str                    text,
                                     const hfsb_json_parse_opts *opts,
                                     hfsb_json_doc *doc, hfsb_err *err);

/* The same, but decodes strings in place, which saves the memory of a copy:
   text is overwritten and must live as long as *doc. A failed call leaves text
   unchanged. */
HFSB_API hfsb_status hfsb_json_parse_in_place(char *text, size_t len,
                                              const hfsb_json_parse_opts *opts,
                                              hfsb_json_doc              *doc,
                                              hfsb_err                   *err);

/* Frees the memory. *doc may be used again. */
HFSB_API void hfsb_json_free(hfsb_json_doc *doc);

/* ---- type and content, without conversion ---- */

/* HFSB_JSON_NULL when absent. */
HFSB_API hfsb_json_type hfsb_json_type_of(const hfsb_json_value *value);
/* "null", "boolean", "integer", "number", "string", "array", "object" */
HFSB_API const char *hfsb_json_type_name(hfsb_json_type type);

/* The value if it has that type, else the fallback. An integer that fits is
   accepted as int or uint, and any number as double. */
HFSB_API bool      hfsb_json_bool(const hfsb_json_value *value, bool fallback);
HFSB_API long long hfsb_json_int(const hfsb_json_value *value,
                                 long long              fallback);
HFSB_API unsigned long long hfsb_json_uint(const hfsb_json_value *value,
                                           unsigned long long     fallback);
HFSB_API double             hfsb_json_double(const hfsb_json_value *value,
                                             double                 fallback);
/* The decoded text: valid UTF-8, may contain NUL, followed by a NUL that is
   not counted. Lives as long as the document. */
HFSB_API hfsb_str hfsb_json_str(const hfsb_json_value *value,
                                hfsb_str               fallback);

/* ---- arrays and objects ---- */

/* Number of elements or members (duplicates count); 0 for anything else. */
HFSB_API size_t hfsb_json_count(const hfsb_json_value *value);

/* Element `index` of an array, or NULL. Walks from the start: to visit all
   elements use the iterator. */
HFSB_API const hfsb_json_value *hfsb_json_at(const hfsb_json_value *array,
                                             size_t                 index);

/* The member named key (the last of several), or NULL. */
HFSB_API const hfsb_json_value *hfsb_json_get(const hfsb_json_value *object,
                                              const char            *key);

/* The value at a path of keys, and for arrays of indices, separated by points:
   hfsb_json_path(root, "tls.hosts.0") is element 0 of "hosts" of "tls". NULL
   if any part is absent; "" is the value itself. A key that contains a point
   cannot be named here. */
HFSB_API const hfsb_json_value *hfsb_json_path(const hfsb_json_value *value,
                                               const char            *path);

/* Visits elements or members in order:
       hfsb_json_iter it = hfsb_json_begin(value);
       while (hfsb_json_next(&it)) use(it.key, it.value);            */
typedef struct hfsb_json_iter {
    hfsb_str               key; /* of a member; empty for an element */
    const hfsb_json_value *value;
    const hfsb_json_value *next;  /* private */
    size_t                 left;  /* private */
    bool                   keyed; /* private */
} hfsb_json_iter;

HFSB_API hfsb_json_iter hfsb_json_begin(const hfsb_json_value *value);
HFSB_API bool           hfsb_json_next(hfsb_json_iter *it);

/* ---- arguments of a tool: lenient where the meaning is clear ---- */

/* Reads member `key` of object into *out. A number or a boolean sent as a
   string ("120", "true") and an integral float (120.0) are accepted. If the
   member is absent or null, *out is unchanged, so set the default first; with
   `required` that is an error.

   HFSB_OK; HFSB_ARG with the key in err->key, a message that says what was
   expected and what was found, and *out unchanged. A string is a view of the
   document's bytes. */
HFSB_API hfsb_status hfsb_json_arg_bool(const hfsb_json_value *object,
                                        const char *key, bool required,
                                        bool *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_json_arg_int(const hfsb_json_value *object,
                                       const char *key, bool required,
                                       long long *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_json_arg_double(const hfsb_json_value *object,
                                          const char *key, bool required,
                                          double *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_json_arg_str(const hfsb_json_value *object,
                                       const char *key, bool required,
                                       hfsb_str *out, hfsb_err *err);
/* An array or object, without conversion. */
HFSB_API hfsb_status hfsb_json_arg_value(const hfsb_json_value *object,
                                         const char *key, bool required,
                                         hfsb_json_type          type,
                                         const hfsb_json_value **out,
                                         hfsb_err               *err);
/* The same; a string that contains JSON of that type ("[1, 2]") is accepted
   too. It is parsed into *doc (all-zero except alloc), which the caller frees
   after its last use of *out. Also HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_json_arg_parsed(const hfsb_json_value *object,
                                          const char *key, bool required,
                                          hfsb_json_type          type,
                                          hfsb_json_doc          *doc,
                                          const hfsb_json_value **out,
                                          hfsb_err               *err);

/* ---- writing ---- */

typedef struct hfsb_json_write_opts {
    bool pretty; /* two spaces per level, a space after the colon */
} hfsb_json_write_opts;

/* Appends value as JSON text, at any depth; absent values are written as null.
   HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_json_write(const hfsb_json_value      *value,
                                     const hfsb_json_write_opts *opts,
                                     hfsb_buf *out, hfsb_err *err);

/* Writes JSON call by call:
       hfsb_json_writer w;
       hfsb_json_writer_init(&w, &out, NULL);
       hfsb_json_put_object(&w);
       hfsb_json_put_key(&w, HFSB_LIT("success"));
       hfsb_json_put_bool(&w, true);
       hfsb_json_put_end(&w);
       status = hfsb_json_writer_finish(&w, &err);
   It cannot produce invalid JSON: after a misplaced call (a value where a key
   belongs, one end too many, a second root, NaN or infinity, more than 512
   levels) later calls do nothing and finish() fails. Each maximal ill-formed
   part of UTF-8 is written as U+FFFD; quote, backslash and control characters
   are escaped, all other characters are written unchanged. A double is written
   with the fewest digits that read back as the same double, and always with a
   point or an exponent: 1.0, 0.1, 1e-7, 1e21. */
#define HFSB_JSON_WRITER_DEPTH 512

/* A document that grows. */
typedef struct hfsb_json_tree { /* private */
    hfsb_buf nodes;             /* struct hfsb_json_value each */
    hfsb_buf texts;             /* of the strings, each ended by NUL */
    size_t   open; /* index of the innermost open container, plus 1 */
} hfsb_json_tree;

typedef struct hfsb_json_writer { /* private */
    hfsb_buf      *out;
    size_t         mark;
    size_t         depth;
    const char    *problem;
    bool           pretty;
    unsigned char  state;
    unsigned char  is_object[HFSB_JSON_WRITER_DEPTH / 8];
    hfsb_json_doc *doc; /* NULL: text is written */
    hfsb_json_tree tree;
} hfsb_json_writer;

HFSB_API void hfsb_json_writer_init(hfsb_json_writer *w, hfsb_buf *out,
                                    const hfsb_json_write_opts *opts);
/* The same calls make a document instead of text: *doc, all zero except alloc,
   holds it once finish() has succeeded. Do not copy the writer. */
HFSB_API void hfsb_json_writer_init_doc(hfsb_json_writer *w,
                                        hfsb_json_doc    *doc);
HFSB_API void hfsb_json_put_null(hfsb_json_writer *w);
HFSB_API void hfsb_json_put_bool(hfsb_json_writer *w, bool value);
HFSB_API void hfsb_json_put_int(hfsb_json_writer *w, long long value);
HFSB_API void hfsb_json_put_uint(hfsb_json_writer  *w,
                                 unsigned long long value);
HFSB_API void hfsb_json_put_double(hfsb_json_writer *w, double value);
HFSB_API void hfsb_json_put_str(hfsb_json_writer *w, hfsb_str value);
HFSB_API void hfsb_json_put_value(hfsb_json_writer      *w,
                                  const hfsb_json_value *value);
HFSB_API void hfsb_json_put_key(hfsb_json_writer *w, hfsb_str key);
/* A key and its value. */
HFSB_API void hfsb_json_put_member_str(hfsb_json_writer *w, const char *key,
                                       hfsb_str value);
HFSB_API void hfsb_json_put_member_int(hfsb_json_writer *w, const char *key,
                                       long long value);
HFSB_API void hfsb_json_put_member_double(hfsb_json_writer *w, const char *key,
                                          double value);
HFSB_API void hfsb_json_put_member_bool(hfsb_json_writer *w, const char *key,
                                        bool value);
HFSB_API void hfsb_json_put_array(hfsb_json_writer *w);
HFSB_API void hfsb_json_put_object(hfsb_json_writer *w);
HFSB_API void hfsb_json_put_end(hfsb_json_writer *w);

/* HFSB_OK when exactly one whole value was written; else HFSB_ARG, HFSB_NOMEM
   or HFSB_LIMIT, and the buffer is cut back to where it was at init. */
HFSB_API hfsb_status hfsb_json_writer_finish(hfsb_json_writer *w,
                                             hfsb_err         *err);

/* Appends JSON with the values of arguments in it:
       hfsb_json_printf(&out, "{\"name\":\"%s\",\"size\":%lld,\"done\":%s}",
                        name, size, done ? "true" : "false");
   Inside quotes %s, and %.*s for HFSB_V() of a view, become the text of a JSON
   string: escaped, and ill-formed UTF-8 repaired. Outside quotes they are
   inserted verbatim, for text that is already JSON; NULL becomes null. Numbers
   are %d %u %ld %lu %lld %llu %zu, and %g for a double, written as by
   hfsb_json_put_double(), but NaN and infinities as null; %% is "%". The
   locale does not matter. The format itself is not checked to be JSON.
   HFSB_OK; HFSB_NOMEM, HFSB_LIMIT, or HFSB_ARG for any other "%", with *out as
   it was but for out->status, as in hfsb_buf_finish(). */
HFSB_API hfsb_status hfsb_json_printf(hfsb_buf *out, const char *format, ...)
    HFSBI_PRINTF(2, 3);
