/* fake_hub.c - the fake Hub of fake_hub.h as a program, for shells and other
   languages. Prints "HUB EDGE", two addresses ("http://127.0.0.1:PORT"), and
   serves until its standard input ends or SIGTERM comes. A client needs both:
   HF_ENDPOINT=HUB, and HFSB_SPACE_URL=EDGE, because the names of Spaces
   (OWNER-NAME.hf.space) do not lead here. Try it, with another shell for hfsb:
       build/fake_hub --mode embed
       export HF_ENDPOINT=HUB HFSB_SPACE_URL=EDGE HF_TOKEN=hf_goodtoken
       build/hfsb create --poll 0.1
       fake_hub [OPTION...]
       --token T          that is good (hf_goodtoken)
       --user NAME        whose it is (alice)
       --mode stub|embed|build
       --prompt           new Spaces run at once
       --stages LIST      of a Space after a commit: BUILDING,RUNNING
       --stage-ms N       each takes so long (0: one question)
       --missing N        a new Space is 404 so often
       --page N           items on a page of a list
       --job-stages LIST
       --run-jobs         run the command of a job with an exposed port
       --log-open-ms N    how long logs stay open at their end
       --build-vars TEXT  arguments of make: STATIC_CFLAGS=-O0
       --work-dir DIR     where the commands of every Space begin
   What to do while it runs: fake_hub_control.h. Build it at the top of the
   project:
       cc -I. -o build/fake_hub tests/programs/fake_hub.c -pthread */
#ifndef HFSBI_SPLIT
#define HFSB_IMPLEMENTATION
#endif
#include "../support/fake_hub.h"

static bool number(const char *text, long long *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    return *text && !*end && *out >= 0;
}

static bool take(fh_opts *o, const char *name, const char *value) {
    static const char *const modes[] = {"stub", "embed", "build"};
    long long                n = 0;
    bool                     is_number = number(value, &n);
    int                      i;
    if (!strcmp(name, "--token")) o->token = value;
    else if (!strcmp(name, "--user")) o->user = value;
    else if (!strcmp(name, "--stages")) o->stages = value;
    else if (!strcmp(name, "--job-stages")) o->job_stages = value;
    else if (!strcmp(name, "--build-vars")) o->build_vars = value;
    else if (!strcmp(name, "--work-dir")) o->work_dir = value;
    else if (!strcmp(name, "--mode")) {
        for (i = 0; i < 3 && strcmp(value, modes[i]) != 0; i++) continue;
        o->mode = (fh_mode)i;
        return i < 3;
    } else if (!is_number) return false;
    else if (!strcmp(name, "--stage-ms")) o->stage_ms = n;
    else if (!strcmp(name, "--missing")) o->missing = (size_t)n;
    else if (!strcmp(name, "--page")) o->page = (size_t)n;
    else if (!strcmp(name, "--log-open-ms")) o->log_open_ms = n;
    else return false;
    return true;
}

static int usage(const char *word) {
    fprintf(stderr, "fake_hub: cannot use \"%s\": see the top of "
                    "tests/programs/fake_hub.c\n", word);
    return 2;
}

/* Until the input ends or a signal of *set comes. */
static void wait_for_end(const sigset_t *set) {
    struct timespec none;
    struct pollfd   p;
    char            piece[256];
    memset(&none, 0, sizeof none);
    memset(&p, 0, sizeof p);
    p.fd = 0;
    p.events = POLLIN;
    for (;;) {
        if (sigtimedwait(set, NULL, &none) > 0) return;
        if (poll(&p, 1, 50) > 0 && read(0, piece, sizeof piece) <= 0) return;
    }
}

int main(int argc, char **argv) {
    fh_opts  o = HFSB_INIT;
    fh_hub  *hub;
    sigset_t set;
    int      i;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--prompt")) {
            o.prompt = true;
            continue;
        }
        if (!strcmp(argv[i], "--run-jobs")) {
            o.run_jobs = true;
            continue;
        }
        if (i + 1 == argc || !take(&o, argv[i], argv[i + 1]))
            return usage(argv[i]);
        i++;
    }
    sigemptyset(&set); /* blocked before any thread is there */
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    hub = fh_start(&o);
    printf("%s %s\n", fh_url(hub), fh_edge(hub));
    fflush(stdout);
    wait_for_end(&set);
    fh_stop(hub);
    return 0;
}
