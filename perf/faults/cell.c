/* Launchers put their ranks into sessions of their own and die before them, so the keeper of a cell
 * is a subreaper: whatever a system has started becomes its child in the end, and is killed by its
 * own id. Where it may, the keeper has a /dev/shm of its own, so that cells do not meet there and
 * what a killed job leaves can be counted. */
#include "faults/cell.h"

#include "harness/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 512, START_MS = 30000, LOG_BYTES = 4000 };

static volatile sig_atomic_t stopped;
static void stop(int sig) { stopped = sig; }

struct keeper {
    const struct cell *cell;
    struct page *page;
    char folder[64], page_path[PATH_BYTES], log_path[PATH_BYTES], meet[PATH_BYTES],
        temporary[PATH_BYTES];
    bool own_shm;
    int64_t fault_at;
    struct fate fates[FAULT_RANKS_MAX];
    int files;
    double bytes;
};

static bool prepare(struct keeper *k)
{
    snprintf(k->folder, sizeof k->folder, "/tmp/faults.XXXXXX");
    if (!mkdtemp(k->folder))
        return false;
    snprintf(k->page_path, PATH_BYTES, "%s/page", k->folder);
    snprintf(k->log_path, PATH_BYTES, "%s/log", k->folder);
    snprintf(k->meet, PATH_BYTES, "%s/meet", k->folder);
    snprintf(k->temporary, PATH_BYTES, "%s/tmp", k->folder);
    k->page = page_map(k->page_path, 1);
    if (!k->page || mkdir(k->meet, 0700) < 0 || mkdir(k->temporary, 0700) < 0)
        return false;
    const struct cell *c = k->cell;
    bool asked = c->fault == DEADLINE || c->fault == STOP || c->fault == CYCLE;
    k->page->fault = c->fault;
    k->page->ranks = (uint32_t)c->ranks;
    k->page->timeout_ms = asked && !c->system->patient ? (uint32_t)c->timeout_ms : 0;
    k->page->fatal = c->system->fatal;
    k->page->grace_ms = (uint32_t)c->grace_ms;
    k->own_shm = unshare(CLONE_NEWNS) == 0
        && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount("faults", "/dev/shm", "tmpfs", 0, "mode=1777") == 0;
    return true;
}

/* ---- processes ---- */

static void launch(struct keeper *k, int rank)
{
    const struct peer_system *s = k->cell->system;
    char program[PATH_BYTES], number[16];
    const char *argv[16];
    int n = 0;
    fflush(NULL);
    if (fork() != 0)
        return;
    int log = open(k->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600),
        null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    setenv("TMPDIR", k->temporary, 1);
    setenv("TUTTI_BOX", "none", 1);      /* nothing in the home folder of whoever runs this */
    snprintf(program, sizeof program, "%s/%s", k->cell->programs, s->program);
    snprintf(number, sizeof number, "%d", *s->launcher ? k->cell->ranks : rank);
    for (int i = 0; i < 6 && s->launcher[i]; i++)
        argv[n++] = s->launcher[i];
    if (n) {
        argv[n++] = "-n";
        argv[n++] = number;
    }
    argv[n++] = program;
    argv[n++] = k->page_path;
    if (!*s->launcher) {
        argv[n++] = number;
        argv[n++] = k->meet;
    }
    argv[n] = NULL;
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Whoever is left gets half a second to go by itself. */
static void sweep(struct page *page)
{
    pid_t pid;
    page_store(&page->over, 1);
    for (int64_t until = page_now() + 500000000;
         (pid = waitpid(-1, NULL, WNOHANG)) >= 0 && page_now() < until;)
        if (pid == 0)
            page_nap(1);
    cleanup_end();
}

/* ---- the course of a cell ---- */

static bool all_started(struct keeper *k)
{
    for (int64_t until = page_now() + START_MS * (int64_t)1000000; page_now() < until && !stopped;
         page_nap(1)) {
        uint32_t here = 0;
        for (uint32_t r = 0; r < k->page->ranks; r++)
            here += page_load(&k->page->slot[r].pid) != 0;
        if (here == k->page->ranks)
            return true;
        cleanup_reap();
        pid_t tree[CLEANUP_MAX];
        if (cleanup_tree(getpid(), tree, 0) == 0)
            return false;
    }
    return false;
}

static void await_waiters(struct page *page)
{
    for (int r = 0; r < page_culprit(page) && !stopped; r++)
        while (!(page_load(&page->slot[r].inside) & 1) && !stopped)
            page_nap(1);
    page_nap(200);
}

/* Until the rank at fault has been in a call for a millisecond, which is well before its end. */
static void await_middle(struct page *page)
{
    const uint32_t *inside = &page->slot[page_culprit(page)].inside;
    for (uint32_t seen = 0; !stopped; page_nap(0.1)) {
        uint32_t now = page_load(inside);
        if (now > 6 && (now & 1) && now != seen) {
            seen = now;
            page_nap(1);
            if (page_load(inside) == now)
                return;
        }
    }
}

static void strike(struct keeper *k)
{
    struct page *page = k->page;
    pid_t victim = (pid_t)page->slot[page_culprit(page)].pid;
    switch (k->cell->fault) {
    case KILL_BARRIER: case STOP:
        await_waiters(page);
        k->fault_at = page_now();
        kill(victim, k->cell->fault == STOP ? SIGSTOP : SIGKILL);
        break;
    case KILL_REDUCE:
        await_middle(page);
        k->fault_at = page_now();
        kill(victim, SIGKILL);
        break;
    case WIPE:
        await_middle(page);
        cleanup_kill();
        break;
    default:
        break;
    }
}

static bool settled(struct keeper *k)
{
    bool all = true;
    cleanup_reap();
    for (int r = 0; r < (int)k->page->ranks; r++) {
        const struct slot *s = &k->page->slot[r];
        struct fate *f = &k->fates[r];
        if (!f->gone && kill((pid_t)s->pid, 0) < 0 && errno == ESRCH)
            *f = (struct fate){ true, page_now() };
        if (concerned(k->cell->fault, r, page_culprit(k->page)))
            all &= f->gone || page_load(&s->ending) != UNDER_WAY;
    }
    return all;
}

/* A launcher that has ended its ranks says so after that: it gets some time to do it. */
static void let_launcher_speak(const struct keeper *k)
{
    bool ended = false;
    pid_t tree[CLEANUP_MAX];
    for (uint32_t r = 0; r < k->page->ranks; r++)
        ended |= k->fates[r].gone && page_load(&k->page->slot[r].ending) == UNDER_WAY
            && concerned(k->cell->fault, (int)r, page_culprit(k->page));
    for (int64_t until = page_now() + 3000000000;
         ended && cleanup_tree(getpid(), tree, 0) && page_now() < until; page_nap(1))
        cleanup_reap();
}

static struct keeper *counting;          /* nftw hands nothing through */

static int count(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    if (at->level > 0 && type == FTW_F) {
        counting->files++;
        counting->bytes += (double)st->st_blocks * 512;
    }
    return 0;
}

static void say_what_is_left(struct keeper *k, struct outcome *o)
{
    counting = k;
    if (k->own_shm)
        nftw("/dev/shm", count, 8, FTW_PHYS);
    nftw(k->temporary, count, 8, FTW_PHYS);
    o->concluded = true;
    o->answer = k->files ? LITTER : CLEAN;
    if (k->files)
        snprintf(o->words, sizeof o->words, "%d files are left, %.1f MiB%s", k->files,
                 k->bytes / (1 << 20), k->own_shm ? "" : ", /dev/shm not counted");
    else
        snprintf(o->words, sizeof o->words, "nothing is left%s",
                 k->own_shm ? "" : " in /tmp; /dev/shm not looked at");
}

static void read_log(const struct keeper *k, char log[LOG_BYTES])
{
    FILE *f = fopen(k->log_path, "r");
    size_t n = f ? fread(log, 1, LOG_BYTES - 1, f) : 0;
    log[n] = 0;
    if (f)
        fclose(f);
}

static void keep(struct keeper *k, struct outcome *o)
{
    char log[LOG_BYTES];
    const struct peer_system *s = k->cell->system;
    *o = (struct outcome){ .answer = NOT_RUN, .words = "could not be tried", .concluded = true };
    if (!prepare(k)) {
        snprintf(o->said, sizeof o->said, "a folder in /tmp: %s\n", strerror(errno));
        return;
    }
    for (int r = 0; r < (*s->launcher ? 1 : k->cell->ranks); r++)
        launch(k, r);
    bool started = all_started(k);
    if (started) {
        strike(k);
        int64_t until = page_now() + k->cell->limit_ms * (int64_t)1000000;
        while (k->cell->fault != WIPE && !settled(k) && page_now() < until && !stopped)
            page_nap(0.5);
    }
    if (started)
        let_launcher_speak(k);
    if (k->cell->fault == LEAVE)
        k->fault_at = k->page->slot[page_culprit(k->page)].began;
    read_log(k, log);
    if (started && k->cell->fault != WIPE)
        verdict(o, k->page, k->fates, k->fault_at, *s->launcher != NULL, log);
    else
        snprintf(o->said, sizeof o->said, "%.3000s", log);
    sweep(k->page);
    if (started && k->cell->fault == WIPE)
        say_what_is_left(k, o);
    if (k->own_shm)
        umount2("/dev/shm", MNT_DETACH);
    cleanup_erase(k->folder);
}

pid_t cell_start(const struct cell *cell, struct outcome *o)
{
    fflush(NULL);
    pid_t driver = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    struct keeper k = { .cell = cell };
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getppid() == driver)
        keep(&k, o);
    _exit(stopped ? 1 : 0);
}
