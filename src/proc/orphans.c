/* orphans.c - the processes that commands leave behind, in a program of ours.

   A process whose parent ends becomes a child of process 1, or of the nearest
   ancestor that adopts orphans. A program that runs commands adopts them, so
   that it can end what its commands started, even a daemon that left their
   sessions and cleared its environment:

       adopt    once, at the start
       reap     now and then, while it serves
       kill     at the end: nothing outlives the program

   Only the library may reap its own children: the leaders of commands stay
   zombies until their trees are gone. Orphans are told apart by session: a
   command leads one, or is in ours until it does. A daemon leads one too; it
   is recognised because nobody reaps it for seconds.

   This is process-wide, so the library never does it unasked. */
#include "proc_private.h"

enum {
    HFSBI_ORPHANS_STALE = 10000, /* ms that no zombie of ours stays */
    HFSBI_ORPHANS_ROUND = 256,   /* reaped in one call */
    HFSBI_ORPHANS_NAP = 5        /* ms between two rounds of killing */
};

void hfsb_orphans_adopt(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL; /* ignored, the kernel would reap for us */
    (void)sigaction(SIGCHLD, &action, NULL);
#if defined(HFSBI_LINUX) && defined(PR_SET_CHILD_SUBREAPER)
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

static bool hfsbi_is_orphan(pid_t pid) {
    pid_t session = getsid(pid);
    return session != pid && session != getsid(0);
}

/* Reaps all zombies that have been there for a while: all at once, because a
   command can leave them faster than one per call. first: one zombie, or 0. */
static void hfsbi_orphans_reap_stale(hfsb_orphans *orphans, pid_t first) {
    long long now = hfsb_clock_ms();
    if (!first) orphans->count = 0; /* the pids may be reused */
    if (!first ||
        (orphans->count && now - orphans->since < HFSBI_ORPHANS_STALE))
        return;
    while (orphans->count)
        (void)waitpid((pid_t)orphans->list[--orphans->count], NULL, WNOHANG);
    orphans->count =
        hfsb_proc_children(true, orphans->list, HFSB_ORPHANS_LIST);
    if (!orphans->count) /* without /proc */
        orphans->list[orphans->count++] = (long)first;
    orphans->since = now;
}

long long hfsb_orphans_reap(hfsb_orphans *orphans) {
    siginfo_t info;
    int       i, rc = 0;
    for (i = 0; i < HFSBI_ORPHANS_ROUND; i++) {
        memset(&info, 0, sizeof info);
        rc = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
        if (rc != 0 || !info.si_pid || !hfsbi_is_orphan(info.si_pid)) break;
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
    if (i == HFSBI_ORPHANS_ROUND) return HFSBI_ORPHANS_NAP;
    hfsbi_orphans_reap_stale(orphans, rc == 0 ? info.si_pid : 0);
    return rc != 0 && errno == ECHILD ? -1 : 1000;
}

static void hfsbi_children_signal(int number) {
    long   list[HFSB_ORPHANS_LIST];
    size_t n = hfsb_proc_children(false, list, HFSB_ORPHANS_LIST);
    while (n) (void)kill((pid_t)list[--n], number);
}

/* Reaps all children that have ended; false when no children are left. */
static bool hfsbi_children_reap(void) {
    pid_t pid;
    do pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

void hfsb_orphans_kill(long long grace_ms, long long limit_ms) {
    long long begin = hfsb_clock_ms(), now = begin;
    if (!hfsbi_children_reap()) return;
    if (grace_ms > 0) {
        hfsbi_children_signal(SIGTERM);
        hfsbi_children_signal(SIGCONT);
    }
    for (; now - begin <= grace_ms + limit_ms; now = hfsb_clock_ms()) {
        if (!hfsbi_children_reap()) return;
        if (now - begin >= grace_ms) hfsbi_children_signal(SIGKILL);
        (void)poll(NULL, 0, HFSBI_ORPHANS_NAP);
    }
}
