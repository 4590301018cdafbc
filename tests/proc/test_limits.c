/* test_limits.c - the cgroups of hosts and commands, when several are made and
   removed at the same time. Where /sys/fs/cgroup is not of version 2, root
   mounts one there that nobody else sees. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare() */
#endif
#include "../support/t.h"

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

static void open_quota(hfsbi_quota *l) {
    hfsb_confine_opts opts = HFSB_INIT;
    memset(l, 0, sizeof *l);
    l->join = l->above = -1;
    hfsbi_quota_open(l, &opts, false);
}

/* True when this process gets a cgroup. */
static bool has_cgroups(void) {
    hfsbi_quota l;
    bool        has;
#if defined(__linux__) && defined(CLONE_NEWNS)
    if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) != 0 &&
        (unshare(CLONE_NEWNS) != 0 ||
         mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
         mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL) != 0))
        return false;
#endif
    open_quota(&l);
    has = l.join >= 0;
    hfsbi_quota_close(&l);
    return has;
}

/* Hosts that start remove what hosts that were killed have left, and must not
   take the new cgroup of another one for that. */
static void hosts_start_at_the_same_time(void) {
    enum { HOSTS = 4, TIMES = 60 };
    int i, status;
    for (i = 0; i < HOSTS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            int  n;
            bool all = true;
            for (n = 0; n < TIMES; n++) {
                hfsbi_quota l;
                open_quota(&l);
                all = all && l.join >= 0;
                hfsbi_quota_close(&l);
            }
            _exit(all ? 0 : 1);
        }
    }
    for (i = 0; i < HOSTS; i++) {
        T_CHECK(wait(&status) > 0);
        T_CHECK(status == 0);
    }
}

typedef struct leaves {
    hfsbi_quota     quota;
    pthread_mutex_t lock;
    int             missing, dead;
} leaves;

static void *open_leaves(void *user) {
    leaves *all = (leaves *)user;
    int     i;
    for (i = 0; i < 300; i++) {
        hfsbi_leaf leaf;
        bool       lives;
        hfsbi_leaf_open(&leaf, &all->quota);
        lives = hfsbi_leaf_kill(&leaf);
        (void)pthread_mutex_lock(&all->lock);
        if (leaf.dir < 0) all->missing++;
        else if (!lives) all->dead++;
        (void)pthread_mutex_unlock(&all->lock);
        (void)usleep(100);
        hfsbi_leaf_close(&leaf);
    }
    return NULL;
}

/* More commands than there are slots. */
static void commands_start_while_others_end(void) {
    enum { THREADS = 16 };
    pthread_t thread[THREADS];
    leaves    all;
    int       i;
    memset(&all, 0, sizeof all);
    (void)pthread_mutex_init(&all.lock, NULL);
    open_quota(&all.quota);
    T_CHECK(all.quota.join >= 0);
    for (i = 0; i < THREADS; i++)
        T_CHECK(!pthread_create(&thread[i], NULL, open_leaves, &all));
    for (i = 0; i < THREADS; i++) T_CHECK(!pthread_join(thread[i], NULL));
    T_CHECK(all.missing == 0 && all.dead == 0);
    hfsbi_quota_close(&all.quota);
    (void)pthread_mutex_destroy(&all.lock);
}

/* The child of a command is born in its cgroup, in our memory. */
static void commands_are_born_in_their_cgroup(void) {
    hfsb_confine_opts opts = HFSB_INIT;
    hfsb_confine     *confine = NULL;
    int               i;
    T_CHECK(hfsb_confine_open(&opts, &confine, NULL) == HFSB_OK);
    for (i = 0; i < 20; i++) {
        hfsb_proc_opts   o = HFSB_INIT;
        hfsb_proc_result r = HFSB_INIT;
        hfsb_buf         out = HFSB_INIT;
        o.command = HFSB_LIT("cat /proc/self/cgroup");
        o.confine = confine;
        T_CHECK(hfsb_proc_run(&o, &out, NULL, &r, NULL) == HFSB_OK);
        T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0);
        T_CHECK(hfsb_str_find(hfsb_buf_str(&out), HFSB_LIT("/slot-")) !=
                HFSB_NPOS);
        hfsb_buf_free(&out);
    }
    hfsb_confine_close(confine);
}

int main(void) {
    if (!has_cgroups()) {
        t_skipped++;
        return T_END();
    }
    T_RUN(hosts_start_at_the_same_time);
    T_RUN(commands_start_while_others_end);
    T_RUN(commands_are_born_in_their_cgroup);
    return T_END();
}
