/* A peer's rank has its own program, its own address space and, in OpenMP's case, only its own
 * thread; what it shares with the job is the stage, found by a path. It sleeps in a futex of ours
 * while others are measured, whatever its system does when it waits by itself. */
#include "harness/member.h"

#include "harness/run_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

static struct stage *refuse(const char *path, const char *why)
{
    fprintf(stderr, "perf: %s: %s\n", path, why);
    return NULL;
}

struct stage *member_join(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return refuse(path, strerror(errno));
    if ((size_t)st.st_size < sizeof(struct stage))
        return refuse(path,
                      "is not what a measuring program of this version shares with its ranks");
    struct stage *s = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        return refuse(path, strerror(errno));
    close(fd);
    if (s->stage_bytes != sizeof(struct stage))
        return refuse(path, "is of another version");
    return s;
}

void member_first(struct stage *s, int me)
{
    s->first[me] = stamp_now();
}

uint64_t member_now(void)
{
    return stamp_now();
}

void member_up(struct stage *s, int me, uint64_t took)
{
    s->up[me] = took;
}

int member_ranks(const struct stage *s)
{
    return s->size;
}

void member_version(struct stage *s, const char *version)
{
    snprintf(s->version, sizeof s->version, "%s", version);
}

int member_serve(struct stage *s, int me, const struct system *system)
{
    static const struct contender only = {
        "peer", "", NULL, 0, false, 0, 0, operation_run, operation_rewrite, OP_NONE
    };
    struct rank r = {
        .me = me, .size = s->size, .crowded = s->crowded, .bare = &s->bare,
        .room = s->pool, .system = system
    };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stamp_calibrate();
    if (s->pool && !operation_pools(&r)) {
        perror("perf: buffers");
        return 1;
    }
    int error = run_tasks(s, &r, &only);
    if (error < 0)
        fprintf(stderr, "perf: rank %d, %s: %s\n", me, operations[r.op].name, strerror(-error));
    return error != 0;
}
