/* libcurl.c - finds libcurl: linked with the program, or loaded at run time.

   With HFSB_CURL_DLOPEN a program is built without libcurl's header and
   library, and runs where libcurl is missing: opening the transport then
   returns an error that names the package to install. Each transport loads
   libcurl for itself, so nothing here is global. It is never unloaded: a
   thread of libcurl that looks up a name may outlive its transport, and the
   TLS library may have work to do when the process exits. */
#include "curl_private.h"

#ifdef HFSB_CURL_DLOPEN

#include <dlfcn.h>

#ifndef RTLD_NODELETE
#define RTLD_NODELETE 0 /* then the library is not closed, see below */
#endif

static void *hfsbi_libcurl_find(void) {
    static const char *const names[] = {
#ifdef __APPLE__
        "libcurl.4.dylib",
        "/usr/lib/libcurl.4.dylib",
#else
        "libcurl.so.4",
        "libcurl-gnutls.so.4",
        "libcurl.so",
#endif
    };
    void  *handle = NULL;
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return handle;
}

/* Stores the function at *to, a pointer to a function: ISO C has no cast for
   that. */
static bool hfsbi_libcurl_symbol(void *handle, const char *name, void *to) {
    void *found = dlsym(handle, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

static const char *hfsbi_libcurl_resolve(hfsbi_libcurl *lib) {
#define HFSBI_CURL_RESOLVE(type, name, args)              \
    if (!hfsbi_libcurl_symbol(lib->handle, "curl_" #name, \
                              (void *)&lib->name))        \
        return "curl_" #name;
    HFSBI_CURL_FUNCTIONS(HFSBI_CURL_RESOLVE)
    return NULL;
}

static hfsb_status hfsbi_libcurl_load(hfsbi_libcurl *lib, hfsb_err *err) {
    const char *missing;
    lib->handle = hfsbi_libcurl_find();
    if (!lib->handle)
        return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                          "https needs libcurl, which is not installed: "
                          "install the package libcurl4 (Debian, Ubuntu), "
                          "libcurl (Alpine, Fedora) or curl (other systems).");
    missing = hfsbi_libcurl_resolve(lib);
    if (!missing) return HFSB_OK;
    hfsbi_libcurl_close(lib);
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "libcurl is too old: %s is missing, need 7.80.0.",
                      missing);
}

HFSBI_FN void hfsbi_libcurl_close(hfsbi_libcurl *lib) {
    if (lib->handle && RTLD_NODELETE) (void)dlclose(lib->handle);
    lib->handle = NULL;
}

#else

static hfsb_status hfsbi_libcurl_load(hfsbi_libcurl *lib, hfsb_err *err) {
    (void)err;
#define HFSBI_CURL_LINK(type, name, args) lib->name = curl_##name;
    HFSBI_CURL_FUNCTIONS(HFSBI_CURL_LINK)
    return HFSB_OK;
}

HFSBI_FN void hfsbi_libcurl_close(hfsbi_libcurl *lib) {
    (void)lib;
}

#endif

HFSBI_FN hfsb_status hfsbi_libcurl_open(hfsbi_libcurl *lib, hfsb_err *err) {
    const curl_version_info_data *is;
    hfsb_status                   st;
    memset(lib, 0, sizeof *lib);
    st = hfsbi_libcurl_load(lib, err);
    if (st) return st;
    is = lib->version_info(CURLVERSION_FIRST);
    if (is->version_num >= 0x075000) return HFSB_OK;
    st = hfsbi_fail(err, HFSB_REFUSED, 0,
                    "libcurl is too old: found %s, need 7.80.0.", is->version);
    hfsbi_libcurl_close(lib);
    return st;
}
