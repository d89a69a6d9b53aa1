/* Plain fork and shared anonymous memory; a child that is waited for is waited for by a futex and
 * by its end, never by time. */
#include "joiners.h"

#include "base/text.h"
#include "group/seat.h"
#include "os/futex.h"
#include "support/resources.h"
#include "support/robust_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void joiners_open(struct joiners *joiners)
{
    size_t bytes = JOINERS_MOST * sizeof *joiners->report + 4096;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    memset(joiners, 0, sizeof *joiners);
    joiners->let_go = (shared32 *)(void *)at;
    joiners->report = (struct joiners_report *)(void *)(at + 4096);
}

void joiners_close(struct joiners *joiners)
{
    for (int i = 0; i < JOINERS_MOST; i++)
        if (joiners->pid[i])
            joiners_kill(joiners, i);
    munmap((void *)joiners->let_go, JOINERS_MOST * sizeof *joiners->report + 4096);
}

/* The kernel kills this process `ns` from now, whoever has the CPU then: a parent that would have
 * to see and kill it may not be given one. */
static void die_in(uint64_t ns)
{
    struct sigevent death = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
    struct itimerspec when = {
        .it_value = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) }
    };
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &death, &timer) != 0
        || timer_settime(timer, 0, &when, NULL) != 0)
        abort();
}

static void child(struct joiners *joiners, struct joiners_report *report,
                  const struct join_request *request, uint64_t dies_ns)
{
    struct text why = TEXT_IN(report->why);
    struct arena arena;
    int host_fd;
    int fds = resources_descriptors(), maps = resources_arena_maps();
    if (dies_ns)
        die_in(dies_ns);
    if (joiners->unmarked)
        robust_list_replace();
    report->began_ns = clock_ns();
    report->error = join_world(&arena, request, &host_fd, &why);
    report->ended_ns = clock_ns();
    report->hosted = host_fd >= 0;
    if (report->error == 0) {
        report->cpus = load_relaxed32(&arena.join->cpus);
        report->size = arena.header->size;
        report->birth = arena.header->birth;
        report->mark_mine = process_mark_mine(&arena.seats[request->rank].mark);
    } else if (resources_descriptors() != fds || resources_arena_maps() != maps || host_fd != -1) {
        text_add(&why, " LEFT BEHIND: descriptors %d -> %d, maps %d -> %d", fds,
                 resources_descriptors(), maps, resources_arena_maps());
        report->error = -ENOTRECOVERABLE;
    }
    store_release32(&report->done, 1);
    futex_wake(&report->done, INT_MAX);
    while (load_acquire32(joiners->let_go) == 0)
        futex_wait(joiners->let_go, 0, 1000000000);
    if (report->error == 0) {
        seat_leave(&arena, request->rank);
        if (host_fd >= 0)
            close(host_fd);
        arena_detach(&arena);
    }
}

void joiners_start_mortal(struct joiners *joiners, int slot, const struct join_request *request,
                          uint64_t dies_ns)
{
    struct joiners_report *report = &joiners->report[slot];
    if (joiners->pid[slot])
        joiners_kill(joiners, slot);
    memset((void *)report, 0, sizeof *report);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child(joiners, report, request, dies_ns);
        _exit(0);
    }
    joiners->pid[slot] = pid;
}

void joiners_start(struct joiners *joiners, int slot, const struct join_request *request)
{
    joiners_start_mortal(joiners, slot, request, 0);
}

struct joiners_report *joiners_wait(struct joiners *joiners, int slot)
{
    struct joiners_report *report = &joiners->report[slot];
    uint64_t end = clock_ns() + JOINERS_PATIENCE_S * UINT64_C(1000000000);
    while (load_acquire32(&report->done) == 0) {
        siginfo_t info = { 0 };
        if (clock_ns() > end
            || (waitid(P_PID, (id_t)joiners->pid[slot], &info, WEXITED | WNOHANG | WNOWAIT) == 0
                && info.si_pid))
            return load_acquire32(&report->done) ? report : NULL;
        futex_wait(&report->done, 0, 10000000);
    }
    return report;
}

int joiners_reap(struct joiners *joiners, int slot)
{
    int status = 0;
    waitpid(joiners->pid[slot], &status, 0);
    joiners->pid[slot] = 0;
    return status;
}

void joiners_kill(struct joiners *joiners, int slot)
{
    kill(joiners->pid[slot], SIGKILL);
    joiners_reap(joiners, slot);
}

void joiners_let_go(struct joiners *joiners)
{
    store_release32(joiners->let_go, 1);
    futex_wake(joiners->let_go, INT_MAX);
    for (int i = 0; i < JOINERS_MOST; i++)
        if (joiners->pid[i])
            joiners_reap(joiners, i);
    store_release32(joiners->let_go, 0);
}

static bool seat_is_joined(int fd, int rank)
{
    char room[256];
    struct text why = TEXT_IN(room);
    struct arena arena;
    if (arena_attach_readonly(&arena, fd, &why) != 0) {
        close(fd);
        return false;
    }
    /* the count first: if it has as many as sit now, each who sits is counted */
    uint32_t counted = load_acquire32(&arena.join->joined), sit = 0;
    for (uint32_t p = 0; p < arena.header->size; p++)
        sit += load_acquire32(&arena.seats[p].state) != SEAT_EMPTY;
    bool joined = load_acquire32(&arena.seats[rank].state) == SEAT_JOINED && counted >= sit;
    arena_detach(&arena);
    return joined;
}

static bool sits_now(pid_t pid, int rank)
{
    char path[300], target[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target);
        int fd = n > 12 && memcmp(target, "/memfd:tutti", 12) == 0
            ? openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC)
            : -1;
        found = fd >= 0 && seat_is_joined(fd, rank);
    }
    if (d)
        closedir(d);
    return found;
}

bool joiners_sits(struct joiners *joiners, int slot, int rank)
{
    uint64_t end = clock_ns() + JOINERS_PATIENCE_S * UINT64_C(1000000000);
    while (clock_ns() < end && load_acquire32(&joiners->report[slot].done) == 0) {
        if (sits_now(joiners->pid[slot], rank))
            return true;
        sched_yield();
    }
    return sits_now(joiners->pid[slot], rank);
}

struct join_request joiners_request(const char *name, int rank, int size)
{
    return (struct join_request){
        .name = name, .fd = -1, .rank = rank, .size = size, .timeout_ms = JOINERS_PATIENCE_S * 1000,
        .plan = { .size = size, .job = name, .span_bytes = UINT64_C(16) << 20, .rules = "" }
    };
}

const char *joiners_name(char room[96], const char *what)
{
    static int count;
    snprintf(room, 96, "tutti-test-%s-%d-%d", what, (int)getpid(), count++);
    return room;
}

int joiners_prove(int normal, int proving)
{
    const char *prove = getenv("TUTTI_PROVE");
    return prove && *prove == '1' ? proving : normal;
}
