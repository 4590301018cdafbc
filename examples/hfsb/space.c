/* space.c - the files that `hfsb create` uploads: the source of the server and
   its Dockerfile, from the generated hfsb_space.h. */
#include "cli.h"

#ifdef __has_include
#if !__has_include("../../build/hfsb_space.h")
#error "build/hfsb_space.h is missing: run make, or \
./amalgamate.sh --space build/hfsb_space.h"
#endif
#endif
#include "../../build/hfsb_space.h"

void set_space_files(hfsb_sandbox_spec *spec) {
    if (spec->from.len &&
        !hfsb_str_equal(spec->from, HFSB_LIT("burtenshaw/sandbox")))
        return;
    spec->files = hfsb_space_files;
    spec->file_count = hfsb_space_file_count;
}
