/* Many ranks start by vfork and exec: a child borrows our memory until its exec has read the
 * program's name, which is shorter than a copy of our page tables; the rest of the execs runs side
 * by side. The child makes system calls only; to bind it to a node needs more, and a memory of its
 * own.
 * Few ranks borrow our memory while we go on: each has a stack, vectors and texts of its own until
 * the pipe below says that all have become the program. Such a child has our errno, too: until its
 * exec it makes calls that cannot fail, and its exec leaves errno alone. What cannot do this
 * (valgrind, a sanitizer, another processor, a system that refuses the clone) forks.
 * Before Linux 5.16 all fork: there a child that a signal ends with a core dump, before its exec,
 * takes along all that share its memory, so the launcher.
 * A child that cannot become the program reports this through a pipe. A successful exec closes the
 * pipe, so "no such file" is not mistaken for a program that ran.
 *
 * Between fork and exec: signals as we found them (at a terminal SIGQUIT is ignored); SIGTERM if we
 * die, and a check whether we have died already; its descriptors; its CPU; exec. */
#include "launch/start.h"

#include "base/atomic.h"
#include "os/checked.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/release.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(TUTTI_TSAN)
#define LENDS 1                        /* a sanitizer knows the stack of no such child */
#if defined(__SANITIZE_ADDRESS__)
#undef LENDS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef LENDS
#endif
#endif
#endif

enum { STACK = 24 * 1024 };

/* A rank's, until its exec. */
struct borrowed {
    _Alignas(16) char stack[STACK];
    struct program program;
    struct start start;                /* as it is now: we go on, and change it */
    int rank, out, err;
    struct borrowed *next;
};

int start_begin(struct start *s)
{
    int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    s->at_terminal = terminal >= 0;
    if (terminal >= 0)
        close(terminal);
    s->parent = getpid();
    s->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->nothing < 0)
        return -errno;
    if (pipe2(s->report, O_CLOEXEC | O_NONBLOCK) < 0) {
        int error = -errno;
        close(s->nothing);
        return error;
    }
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void start_all_done(struct start *s)
{
    close_one(&s->report[1]);
    close_one(&s->nothing);
}

void start_end(struct start *s)
{
    start_all_done(s);
    close_one(&s->report[0]);
}

/* execve that leaves errno alone. -errno; -ENOSYS: not on this processor. */
static int become(const char *path, char **argv, char **envp)
{
#if defined(__x86_64__)
    long r;
    __asm__ __volatile__("syscall" : "=a"(r) : "0"((long)SYS_execve), "D"(path), "S"(argv),
                         "d"(envp) : "rcx", "r11", "memory");
    return (int)r;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_execve;
    register long r __asm__("x0") = (long)path;
    register char **second __asm__("x1") = argv, **third __asm__("x2") = envp;
    __asm__ __volatile__("svc 0" : "+r"(r) : "r"(number), "r"(second), "r"(third) : "memory");
    return (int)r;
#else
    (void)path, (void)argv, (void)envp;
    return -ENOSYS;
#endif
}

static _Noreturn void give_up(const struct start *s, int rank, enum start_step step, int error)
{
    struct start_failure failure = { rank, error, step };
    ssize_t n = write(s->report[1], &failure, sizeof failure);
    (void)n;                             /* a full pipe has others' reports in it */
    _exit(JOB_NOT_FOUND);
}

static int put_at(int fd, int number)
{
    if (fd == number)
        return fcntl(fd, F_SETFD, 0);
    return dup2(fd, number);
}

/* As a rank: all but the exec. */
static void set_up(const struct start *s, int rank, int out, int err)
{
    int bound = 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (s->at_terminal)
        signal(SIGQUIT, SIG_IGN);        /* launch/requests */
    signals_in_child(s->signals);
    if (getppid() != s->parent)
        _exit(128 + SIGTERM);
    if ((rank > 0 && put_at(s->nothing, STDIN_FILENO) < 0)
        || (out >= 0 && put_at(out, STDOUT_FILENO) < 0)
        || (err >= 0 && put_at(err, STDERR_FILENO) < 0) || fcntl(s->arena_fd, F_SETFD, 0) < 0)
        give_up(s, rank, START_DESCRIPTORS, errno);
    if (s->bind == JOB_BIND_CORE)
        bound = cpu_bind(rank);
    else if (s->bind == JOB_BIND_NUMA)
        bound = numa_bind(rank);
    if (bound < 0)
        give_up(s, rank, START_BIND, -bound);
    setrlimit(RLIMIT_NOFILE, &s->descriptors);
}

static _Noreturn void start_child(const struct start *s, const struct program *program, int rank,
                                  int out, int err)
{
    set_up(s, rank, out, err);
    /* not execve: the shell runs a script without #! */
    execvpe(program->path, program->argv, program->envp);
    give_up(s, rank, START_EXEC, errno);
}

static int start_borrower(void *arg)
{
    static char shell[] = "/bin/sh";
    const struct borrowed *b = arg;
    const struct program *is = &b->program;
    set_up(&b->start, b->rank, b->out, b->err);
    int error = become(is->path, is->argv, is->envp);
    if (error == -ENOEXEC) {             /* as execvpe: the shell runs a script without #! */
        is->argv[-1] = shell;
        is->argv[0] = (char *)is->path;
        error = become(shell, is->argv - 1, is->envp);
    }
    give_up(&b->start, b->rank, START_EXEC, -error);
}

/* True: who shares our memory and dumps core ends alone. */
static bool dumps_alone(void)
{
    return release_since(5, 16, false);
}

/* True: ranks can borrow our memory and we go on meanwhile. */
static bool lends(const struct start *s)
{
#if defined(LENDS)
    return s->few && s->bind == JOB_BIND_NONE && dumps_alone() && !checked_by_memcheck();
#else
    (void)s;
    return false;
#endif
}

/* The pid; 0: not to be had. */
static pid_t lend(struct start *s, const struct program *program, int rank, int out, int err)
{
    struct borrowed *b = malloc(sizeof *b);
    if (!b || program_copy(&b->program, program, rank) < 0) {
        free(b);
        return 0;
    }
    b->start = *s;
    b->rank = rank;
    b->out = out;
    b->err = err;
    pid_t pid = clone(start_borrower, b->stack + STACK, CLONE_VM | SIGCHLD, b);
    if (pid < 0) {
        program_free(&b->program);
        free(b);
        return 0;
    }
    b->next = s->borrowed;
    s->borrowed = b;
    return pid;
}

static void free_borrowed(struct start *s)
{
    while (s->borrowed) {
        struct borrowed *b = s->borrowed;
        s->borrowed = b->next;
        program_free(&b->program);
        free(b);
    }
}

pid_t start_rank(struct start *s, struct program *program, int rank, int out, int err)
{
    program_for_rank(program, rank);
    pid_t pid = lends(s) ? lend(s, program, rank, out, err) : 0;
    if (pid > 0)
        return pid;
    /* vfork: the child leaves no function that the parent is in */
    pid = s->few || s->bind == JOB_BIND_NUMA || !dumps_alone() ? fork() : vfork();
    if (pid == 0)
        start_child(s, program, rank, out, err);
    return pid < 0 ? -errno : pid;
}

int start_failed(struct start *s, struct start_failure *failure)
{
    ssize_t n = read(s->report[0], failure, sizeof *failure);
    if (n == (ssize_t)sizeof *failure)
        return 1;
    if (n == 0)                          /* all have memories of their own, or none at all */
        free_borrowed(s);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}
