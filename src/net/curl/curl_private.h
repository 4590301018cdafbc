#pragma once

#include "../../http/http_private.h"
#include "../net_private.h"
#include "http_curl.h"

/* curl_private.h - libcurl as the transport uses it: its functions in a table,
   filled by the linker or, with HFSB_CURL_DLOPEN, at run time.

   With HFSB_CURL_DLOPEN libcurl's header is not needed: the few types and
   numbers are declared here. They are part of libcurl's binary interface,
   which has not changed since 2006 except for additions. Each build that has
   the header compares them with it, so a mistake here does not compile there.
   A file that needs <curl/curl.h> itself includes it first. */

#if !defined(HFSB_CURL_DLOPEN) && !defined(LIBCURL_VERSION_NUM)
#include <curl/curl.h>
#endif

/* for CURLOPT_PREREQFUNCTION */
#if defined(LIBCURL_VERSION_NUM) && LIBCURL_VERSION_NUM < 0x075000
#error "hfsb_http_curl.h needs libcurl 7.80.0 or newer"
#endif

/* clang-format off */
#define HFSBI_CURL_CODES(X)                                                  \
    X(CURLE_OK, 0) X(CURLE_UNSUPPORTED_PROTOCOL, 1)                          \
    X(CURLE_URL_MALFORMAT, 3) X(CURLE_COULDNT_CONNECT, 7)                    \
    X(CURLE_WEIRD_SERVER_REPLY, 8) X(CURLE_OUT_OF_MEMORY, 27)                \
    X(CURLE_OPERATION_TIMEDOUT, 28) X(CURLE_ABORTED_BY_CALLBACK, 42)         \
    X(CURLE_GOT_NOTHING, 52) X(CURLE_RECV_ERROR, 56)                         \
    X(CURLE_SSL_CERTPROBLEM, 58) X(CURLE_PEER_FAILED_VERIFICATION, 60)       \
    X(CURLE_BAD_CONTENT_ENCODING, 61) X(CURLE_SSL_CACERT_BADFILE, 77)        \
    X(CURLE_AGAIN, 81) X(CURLE_SSL_ISSUER_ERROR, 83)                         \
    X(CURLE_SSL_INVALIDCERTSTATUS, 91)

#define HFSBI_CURL_OPTIONS(X)                                                \
    X(CURLOPT_SSLVERSION, 32) X(CURLOPT_NOBODY, 44) X(CURLOPT_POST, 47)      \
    X(CURLOPT_FOLLOWLOCATION, 52) X(CURLOPT_HTTPPROXYTUNNEL, 61)             \
    X(CURLOPT_FORBID_REUSE, 75) X(CURLOPT_HTTPGET, 80)                       \
    X(CURLOPT_HTTP_VERSION, 84) X(CURLOPT_BUFFERSIZE, 98)                    \
    X(CURLOPT_NOSIGNAL, 99) X(CURLOPT_CONNECT_ONLY, 141)                     \
    X(CURLOPT_CONNECTTIMEOUT_MS, 156) X(CURLOPT_TCP_KEEPALIVE, 213)          \
    X(CURLOPT_PATH_AS_IS, 234) X(CURLOPT_SUPPRESS_CONNECT_HEADERS, 265)      \
    X(CURLOPT_UPLOAD_BUFFERSIZE, 280) X(CURLOPT_MAXAGE_CONN, 288)            \
    X(CURLOPT_WRITEDATA, 10001) X(CURLOPT_URL, 10002)                        \
    X(CURLOPT_PROXY, 10004) X(CURLOPT_READDATA, 10009)                       \
    X(CURLOPT_ERRORBUFFER, 10010) X(CURLOPT_POSTFIELDS, 10015)               \
    X(CURLOPT_HTTPHEADER, 10023) X(CURLOPT_HEADERDATA, 10029)                \
    X(CURLOPT_CUSTOMREQUEST, 10036) X(CURLOPT_CAINFO, 10065)                 \
    X(CURLOPT_CAPATH, 10097) X(CURLOPT_OPENSOCKETDATA, 10164)                \
    X(CURLOPT_NOPROXY, 10177) X(CURLOPT_CLOSESOCKETDATA, 10209)              \
    X(CURLOPT_PREREQDATA, 10313) X(CURLOPT_WRITEFUNCTION, 20011)             \
    X(CURLOPT_READFUNCTION, 20012) X(CURLOPT_HEADERFUNCTION, 20079)          \
    X(CURLOPT_OPENSOCKETFUNCTION, 20163) X(CURLOPT_SEEKFUNCTION, 20167)      \
    X(CURLOPT_CLOSESOCKETFUNCTION, 20208)                                    \
    X(CURLOPT_PREREQFUNCTION, 20312) X(CURLOPT_POSTFIELDSIZE_LARGE, 30120)

#define HFSBI_CURL_INFOS(X)                                                  \
    X(CURLINFO_ACTIVESOCKET, 0x50002c) X(CURLINFO_SIZE_UPLOAD_T, 0x600007)

#define HFSBI_CURL_NUMBERS(X)                                                \
    X(CURL_SOCKET_BAD, -1) X(CURL_ERROR_SIZE, 256)                           \
    X(CURL_READFUNC_ABORT, 0x10000000) X(CURL_SEEKFUNC_FAIL, 1)              \
    X(CURL_PREREQFUNC_OK, 0) X(CURL_PREREQFUNC_ABORT, 1)                     \
    X(CURL_GLOBAL_DEFAULT, 3) X(CURL_HTTP_VERSION_1_1, 2)                    \
    X(CURL_HTTP_VERSION_2TLS, 4) X(CURL_SSLVERSION_TLSv1_2, 6)               \
    X(CURL_WAIT_POLLIN, 1)

/* Type, name without "curl_", parameters. */
#define HFSBI_CURL_FUNCTIONS(X)                                              \
    X(CURL *, easy_init, (void))                                             \
    X(void, easy_cleanup, (CURL *))                                          \
    X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                      \
    X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                       \
    X(void, easy_reset, (CURL *))                                            \
    X(const char *, easy_strerror, (CURLcode))                               \
    X(CURLcode, easy_send, (CURL *, const void *, size_t, size_t *))         \
    X(CURLcode, easy_recv, (CURL *, void *, size_t, size_t *))               \
    X(CURLcode, global_init, (long))                                         \
    X(void, global_cleanup, (void))                                          \
    X(CURLM *, multi_init, (void))                                           \
    X(CURLMcode, multi_cleanup, (CURLM *))                                   \
    X(CURLMcode, multi_setopt, (CURLM *, CURLMoption, ...))                  \
    X(CURLMcode, multi_add_handle, (CURLM *, CURL *))                        \
    X(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                     \
    X(CURLMcode, multi_perform, (CURLM *, int *))                            \
    X(CURLMcode, multi_poll,                                                 \
      (CURLM *, struct curl_waitfd *, unsigned, int, int *))                 \
    X(CURLMsg *, multi_info_read, (CURLM *, int *))                          \
    X(struct curl_slist *, slist_append,                                     \
      (struct curl_slist *, const char *))                                   \
    X(void, slist_free_all, (struct curl_slist *))                           \
    X(curl_version_info_data *, version_info, (CURLversion))
/* clang-format on */

#define HFSBI_CURL_ENUM(name, value) name = value,

#ifndef LIBCURL_VERSION_NUM

typedef void      CURL;
typedef void      CURLM;
typedef int       curl_socket_t;
typedef long long curl_off_t;
typedef enum { HFSBI_CURL_CODES(HFSBI_CURL_ENUM) HFSBI_CURLE_LAST } CURLcode;
typedef enum {
    HFSBI_CURL_OPTIONS(HFSBI_CURL_ENUM) HFSBI_CURLOPT_LAST
} CURLoption;
typedef enum {
    HFSBI_CURL_INFOS(HFSBI_CURL_ENUM) HFSBI_CURLINFO_LAST
} CURLINFO;
typedef enum { CURLM_OK } CURLMcode;
typedef enum { CURLMOPT_MAXCONNECTS = 6 } CURLMoption;
typedef enum { CURLMSG_NONE, CURLMSG_DONE } CURLMSG;
typedef enum { CURLVERSION_FIRST } CURLversion;
typedef enum { CURLSOCKTYPE_IPCXN } curlsocktype;
enum { HFSBI_CURL_NUMBERS(HFSBI_CURL_ENUM) HFSBI_CURL_LAST };

struct curl_slist;
struct curl_sockaddr { /* begins so */
    int family, socktype, protocol;
};
struct curl_waitfd {
    curl_socket_t fd;
    short         events, revents;
};
typedef struct CURLMsg {
    CURLMSG msg;
    CURL   *easy_handle;
    union {
        void    *whatever;
        CURLcode result;
    } data;
} CURLMsg;
typedef struct curl_version_info_data { /* begins so */
    CURLversion age;
    const char *version;
    unsigned    version_num;
} curl_version_info_data;

#else /* the header is there: compare it with the above */

#define HFSBI_CURL_SAME(name, value) \
    char same_##name[(long)(name) == (long)(value) ? 1 : -1];
typedef struct hfsbi_curl_checked {
    HFSBI_CURL_CODES(HFSBI_CURL_SAME)
    HFSBI_CURL_OPTIONS(HFSBI_CURL_SAME)
    HFSBI_CURL_INFOS(HFSBI_CURL_SAME)
    HFSBI_CURL_SAME(CURLM_OK, 0)
    HFSBI_CURL_SAME(CURLMOPT_MAXCONNECTS, 6)
    HFSBI_CURL_SAME(CURLVERSION_FIRST, 0)
    HFSBI_CURL_NUMBERS(HFSBI_CURL_SAME)
    char sizes[sizeof(curl_socket_t) == sizeof(int) &&
                       sizeof(curl_off_t) == sizeof(long long) &&
                       sizeof(CURLcode) == sizeof(int)
                   ? 1
                   : -1];
    char at_protocol
        [offsetof(struct curl_sockaddr, protocol) == 2 * sizeof(int) ? 1 : -1];
    char at_events[offsetof(struct curl_waitfd, events) == sizeof(int) &&
                           sizeof(struct curl_waitfd) == 2 * sizeof(int)
                       ? 1
                       : -1];
    char at_result[offsetof(CURLMsg, data) == 2 * sizeof(void *) ? 1 : -1];
    char at_version[offsetof(curl_version_info_data, version_num) ==
                            2 * sizeof(void *)
                        ? 1
                        : -1];
} hfsbi_curl_checked;

#endif

/* Two options that older headers do not have, and one that newer ones call
   deprecated. An older libcurl refuses the first two. */
enum {
    HFSBI_CURLOPT_PROTOCOLS = 181,
    HFSBI_CURLOPT_QUICK_EXIT = 322,
    HFSBI_CURLOPT_PROTOCOLS_STR = 10318
};

#define HFSBI_CURL_MEMBER(type, name, args) type(*name) args;

/* libcurl's functions. */
typedef struct hfsbi_libcurl {
    HFSBI_CURL_FUNCTIONS(HFSBI_CURL_MEMBER)
    void *handle; /* of dlopen(), or NULL */
} hfsbi_libcurl;

/* Fills *lib. HFSB_OK; with HFSB_CURL_DLOPEN also HFSB_NOT_FOUND: libcurl is
   not installed. HFSB_REFUSED: it is too old. */
HFSBI_FN hfsb_status hfsbi_libcurl_open(hfsbi_libcurl *lib, hfsb_err *err);
HFSBI_FN void        hfsbi_libcurl_close(hfsbi_libcurl *lib);
