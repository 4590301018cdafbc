#!/bin/sh
# What the compiled implementation shows to the linker:
#   - every external name begins with hfsb_;
#   - without HFSB_HUB nothing of the Hub is there;
#   - nothing is writable: code, constants, and constant tables of pointers
#     (.data.rel.ro, made read-only once loaded) are all there is;
#   - of libc it needs, with HFSB_PURE, only what a pure library may: no
#     printing, no files, no locale, no clock, no environment, no memory past
#     the hook (glibc's qsort takes some); and as a whole only what is listed
#     below: no hidden shell (system, popen, execvp), no signal
#     handler, no exit, no locale, no printing;
#   - a program that calls tools on another machine, or only writes their
#     definitions, links neither the local tools nor what starts processes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/symbols
libc='realloc free memchr memcmp memcpy memmove memset strchr strcmp strlen
      strncmp snprintf vsnprintf __assert_fail'
os='_exit access chdir clock_gettime close closedir connect dirfd dup2 environ
    epoll_create1 epoll_ctl epoll_wait execve faccessat fallocate64 fchmod
    fchmodat fchown fcntl64 fdopendir fgetxattr
    flistxattr flock fork freeaddrinfo fremovexattr fsetxattr fstat64 fstatfs64
    fstatat64 fsync ftruncate64 getaddrinfo getcwd getenv geteuid getpeername
    getegid getpid getrlimit64 getsid getsockname getsockopt getxattr grantpt
    inotify_add_watch inotify_init1 inotify_rm_watch ioctl kill linkat
    lseek64 lstat64 mkdir mkdirat
    open64 openat64 opendir pipe2 poll posix_openpt prctl pread64
    pthread_attr_destroy
    pthread_attr_init pthread_attr_setstacksize pthread_cond_broadcast
    pthread_cond_destroy pthread_cond_init pthread_cond_signal
    pthread_cond_timedwait pthread_condattr_destroy pthread_condattr_init
    pthread_condattr_setclock
    pthread_cond_wait pthread_create pthread_equal pthread_join
    pthread_mutex_destroy
    pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock
    pthread_mutexattr_destroy
    pthread_mutexattr_init pthread_mutexattr_settype
    pthread_self pthread_setcancelstate pthread_sigmask ptsname_r pwrite64 read readdir64 readlinkat
    prctl realpath recv rename renameat rewinddir rmdir sendmsg setrlimit64 setsid
    setsockopt sigaction sigaddset
    sigemptyset sigfillset sigismember sigpending sigprocmask sigwait socket socketpair
    stat64 strcspn strrchr strstr strtol strtoull symlinkat syscall sysconf tcgetattr
    tcgetpgrp unlink unlinkat unlockpt
    vfork waitid waitpid write __errno_location __sysconf'
# hfsb_server.h adds what listens
server='accept accept4 bind chmod htonl htons
    inet_ntop inet_pton listen ntohl ntohs send sendfile64 shutdown'
# hfsb_http_curl.h adds
curl='curl_easy_cleanup curl_easy_getinfo curl_easy_init curl_easy_recv
    curl_easy_reset curl_easy_send
    curl_easy_setopt curl_easy_strerror curl_global_cleanup curl_global_init
    curl_multi_add_handle curl_multi_cleanup curl_multi_info_read
    curl_multi_init curl_multi_perform curl_multi_poll
    curl_multi_remove_handle curl_multi_setopt curl_slist_append
    curl_slist_free_all curl_version_info'
# What optimisers and hardening make of these: realloc(NULL, n) is malloc.
made='malloc bcmp __memcpy_chk __memmove_chk __memset_chk __snprintf_chk
      __vsnprintf_chk __stack_chk_fail _GLOBAL_OFFSET_TABLE_
      __read_chk __pread64_chk __readlinkat_chk __realpath_chk __poll_chk
      __getcwd_chk __open64_2 __openat64_2'

audit() { # OBJECT ALLOWED ABSENT: one line a fault
    # name | value | class | type | size | line | section
    nm -f sysv "$1" | awk -F'|' -v libc=" $(echo $2) " -v absent="$3" '
        NF < 7 || $1 ~ /^Name/ { next }
        {
            for (i = 1; i <= 7; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i)
            name = $1; class = $3; section = $7
            seen++
        }
        absent != "" && name ~ absent { print name " is there" }
        class == "U" || class == "w" {
            if (index(libc, " " name " ") == 0)
                print name "() is used, which is not allowed here"
            next
        }
        class ~ /^[A-Z]$/ && name !~ /^hfsb_/ {
            print "external name " name " does not begin with hfsb_"
        }
        section !~ /^\.(text|rodata|data\.rel\.ro)/ && section != "*ABS*" {
            sub(/\.[0-9]+$/, "", name) # a number for static locals
            print name " is writable"
        }
        END { if (!seen) print "no symbols at all" }'
}

build() { # COMPILER:NUMBER of the flags
    cc=${1%:*} n=${1#*:}
    case $n in
    1) flags="-O0 -DHFSB_PURE" ;;
    2) flags="-O1 -fno-pic -DHFSB_PURE -DHFSB_NO_SIMD" ;;
    3) flags="-O2 -fPIC -DHFSB_PURE $hard" ;;
    4) flags="-O0 -DTEST_WITHOUT_SERVER" ;;
    5) flags="-O0 -DHFSB_HUB" ;;
    6) flags="-O2 -fPIC -DHFSB_HUB $hard" ;;
    7) flags="-O1 -fPIC -DHFSB_HUB -DTEST_WITH_CURL" ;;
    8) flags="-O0" ;;
    9) flags="-O0 -DTEST_WITH_CURL -DHFSB_CURL_DLOPEN" ;;
    esac
    allowed="$libc $made" absent='^hfsbi?_(hub|session|hf_jobs|create)_'
    case $flags in *HUB*) absent= ;; esac
    case $flags in -O0*) allowed="$libc _GLOBAL_OFFSET_TABLE_" ;; esac
    case $flags in *PURE*) ;; *) allowed="$allowed $os" ;; esac
    case $flags in
    *PURE* | *WITHOUT*) ;;
    *) allowed="$allowed $server" ;;
    esac
    case $flags in
    *DLOPEN*) allowed="$allowed dlopen dlsym dlclose" ;;
    *CURL*) allowed="$allowed $curl" ;;
    esac
    # shellcheck disable=SC2086
    if $cc -std=c99 $WARN $WARN_C $WARN_JOINED $flags -c tests/compile/implementation.c \
        -o "$out/$cc$n.o"; then
        audit "$out/$cc$n.o" "$allowed" "$absent"
    else
        echo "does not compile"
    fi | sed "s/\$/ ($cc $flags)/" >> "$out/faults"
}

# A program without the functions that it does not use, as `make` links it.
remote() { # NAME SOURCE
    if gcc -O0 -w -ffunction-sections -fdata-sections -Wl,--gc-sections -I. \
        -o "$out/$1" "$2" -pthread 2> "$out/log"; then
        nm "$out/$1" | awk -v name="$1" '
            $3 ~ /^hfsb/ { seen++ }
            $3 ~ /^hfsbi_(run_|spawn|history_|job_|checker_)/ {
                print $3 " is linked into " name
            }
            END { if (!seen) print name " has no symbols at all" }' \
            >> "$out/faults"
    else
        cat "$out/log"
        echo "$1 does not link" >> "$out/faults"
    fi
}

have nm || { echo "skipped: nm not found"; exit 77; }
rm -rf "$out"
mkdir -p "$out"
hard="-D_FORTIFY_SOURCE=2 -fstack-protector-strong"
list= last=
for cc in gcc clang; do
    works $cc || { echo "skipped: $cc not found"; continue; }
    case $cc in # the longest first; of clang what it makes by itself
    gcc) list="$list $cc:6 $cc:5 $cc:8 $cc:9 $cc:4 $cc:3 $cc:2 $cc:1" ;;
    *) list="$list $cc:5 $cc:2" ;;
    esac
    ! works $cc -include curl/curl.h || [ $cc != gcc ] || list="$list $cc:7"
    last=${last:-$cc}
done
[ -n "$list" ] || exit 77
# shellcheck disable=SC2086
parallel build $list
if works gcc -Wl,--gc-sections; then
    printf '%s\n' '#define HFSB_IMPLEMENTATION' '#include "hfsb.h"' \
        'int main(void) { hfsb_buf b = HFSB_INIT; return hfsb_tools_define(' \
        '    HFSB_TOOLS_OPENAI, &b, 0) != HFSB_OK; }' > "$out/define.c"
    remote define "$out/define.c"
    remote remote_edit examples/remote_edit.c
fi
if [ -s "$out/faults" ]; then # each fault once
    awk '{ key = $0; sub(/ \(.*/, "", key) }
         !(key in seen) { seen[key]; print "FAIL  " $0 }' "$out/faults"
    exit 1
fi
count=$(nm -g --defined-only "$out/${last}5.o" | grep -c .)
# shellcheck disable=SC2086
set -- $list
echo "$# builds: $count public symbols, all hfsb_; nothing writable;" \
    "only allowed libc functions"
