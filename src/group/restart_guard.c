/* A rank that comes when the world is full would host a second world of the same name and wait
 * there for ever. So the host keeps a marker: a bound socket that nobody answers. The kernel says
 * which process owns it. Through that process's descriptors in /proc the late rank reads the arena.
 * If its seat is free again, that job is ending, and the next one of the name may begin.
 * Cost: without a marker one refused connect. */
#include "group/meet.h"

#include "os/handover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int open_fd_of(int directory, const char *entry)
{
    static const char ours[] = "/memfd:tutti";
    char target[sizeof ours + 16];
    ssize_t n = readlinkat(directory, entry, target, sizeof target - 1);
    if (n < (ssize_t)sizeof ours - 1 || memcmp(target, ours, sizeof ours - 1) != 0)
        return -1;
    return openat(directory, entry, O_RDONLY | O_CLOEXEC);
}

static bool same_job(const struct arena *arena, const char *job)
{
    return strncmp(arena->header->job, job ? job : "", sizeof arena->header->job - 1) == 0;
}

/* -EEXIST: this arena is our job's, and a living process holds our rank's seat. Else 0. */
static int look_inside(struct meeting *m, int fd)
{
    char ignored[256];
    struct text why = TEXT_IN(ignored);
    struct arena arena;
    uint32_t rank = (uint32_t)m->request->rank;
    if (arena_attach_readonly(&arena, fd, &why) < 0) {
        close(fd);
        return 0;
    }
    int held = same_job(&arena, m->request->plan.job) && rank < arena.header->size
        && seat_use(&arena.seats[rank]) == SEAT_LIVE;
    if (held) {
        struct seat *seat = &arena.seats[rank];
        text_add(m->why, "the job '%.200s' is full: rank %u is pid %d (%.*s), %s", m->request->name,
                 rank, (int)seat->id.pid, (int)sizeof seat->program, seat->program,
                 process_state(&seat->id, NULL));
    }
    arena_detach(&arena);
    return held ? -EEXIST : 0;
}

static int look_at_host(struct meeting *m, pid_t pid)
{
    char path[48];
    struct text t = TEXT_IN(path);
    text_add(&t, "/proc/%d/fd", (int)pid);
    DIR *directory = pid > 0 ? opendir(path) : NULL;
    if (!directory) {
        if (pid > 0 && errno == ENOENT)
            return 0;                                /* it has ended meanwhile */
        text_add(m->why, "the job '%.200s' is full (its host, pid %d, cannot be looked at)",
                 m->request->name, (int)pid);
        return -EPERM;
    }
    int found = 0;
    for (struct dirent *entry; !found && (entry = readdir(directory)) != NULL;) {
        int fd = open_fd_of(dirfd(directory), entry->d_name);
        if (fd >= 0)
            found = look_inside(m, fd);
    }
    closedir(directory);
    return found;
}

int meet_late(struct meeting *m)
{
    struct handover_peer peer;
    int fd = m->marker[0] ? handover_connect(m->marker) : -1;
    if (fd < 0)
        return 0;
    int error = handover_peer(fd, &peer);
    close(fd);
    if (error || peer.uid != geteuid())
        return 0;
    return look_at_host(m, peer.pid);
}
