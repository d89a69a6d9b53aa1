/* fork, pipes and seccomp, each checked once here so that the tests can be about their
 * own subject. */
#include "child.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    abort();
}

pid_t child_start(int (*fn)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(fn(arg));
}

int child_reap(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        must(errno == EINTR, "waitpid");
    return status;
}

int child_run(int (*fn)(void *arg), void *arg)
{
    int status = child_reap(child_start(fn, arg));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    child_reap(pid);
}

void *child_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED, "mmap");
    return at;
}

/* A child is in our own pid namespace, also where that has another number for each process that
 * asks (gVisor). */
int child_becomes(const struct process_id *id, const char *word)
{
    uint64_t end = clock_ns() + (uint64_t)PATIENCE_S * 1000000000u;
    struct process_id here = *id;
    here.pid_namespace = 0;
    for (;;) {
        const char *state = process_state(&here, NULL);
        if (strcmp(state, word) == 0)
            return 1;
        if (strcmp(state, "gone") == 0
            || (strcmp(state, "zombie") == 0 && strcmp(word, "gone") != 0) || clock_ns() > end)
            return 0;
        sched_yield();
    }
}

void child_pipe_open(struct child_pipe *p)
{
    must(pipe(p->ends) == 0, "pipe");
}

void child_pipe_close(struct child_pipe *p)
{
    close(p->ends[0]);
    close(p->ends[1]);
}

int child_say(const struct child_pipe *p)
{
    return write(p->ends[1], "!", 1) == 1 ? 0 : -1;
}

int child_hear(const struct child_pipe *p)
{
    char byte;
    ssize_t got;
    do
        got = read(p->ends[0], &byte, 1);
    while (got < 0 && errno == EINTR);
    return got == 1 ? 0 : -1;
}

int child_forbid(int number, int arg, unsigned value, int error)
{
    size_t field_at = arg < 0 ? offsetof(struct seccomp_data, nr)
                              : offsetof(struct seccomp_data, args) + 8 * (size_t)arg;
    /* the low half of an argument, on the machines we build for */
    unsigned field = (unsigned)field_at;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arg < 0 ? (unsigned)number : value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -1;
}
