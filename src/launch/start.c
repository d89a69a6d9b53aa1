/* Many ranks start by vfork and exec: a child borrows our memory until its exec has read the
 * program's name, which is shorter than a copy of our page tables; the rest of the execs runs side
 * by side. The child makes system calls only; to bind it to a node needs more, and a memory of its
 * own. Few ranks start by fork: we go on at once, and the system spreads them better.
 * A child that cannot become the program reports this through a pipe. A successful exec closes the
 * pipe, so "no such file" is not mistaken for a program that ran.
 *
 * Between fork and exec: signals as we found them (at a terminal SIGQUIT is ignored); SIGTERM if we
 * die, and a check whether we have died already; its descriptors; its CPU; exec. */
#include "launch/start.h"

#include "os/cpu.h"
#include "os/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

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

static _Noreturn void start_child(const struct start *s, const struct program *program, int rank,
                                  int out, int err)
{
    int bound = 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signals_in_child(s->signals);
    if (s->at_terminal)
        signal(SIGQUIT, SIG_IGN);        /* launch/requests */
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
    /* not execve: the shell runs a script without #! */
    execvpe(program->path, program->argv, program->envp);
    give_up(s, rank, START_EXEC, errno);
}

pid_t start_rank(struct start *s, struct program *program, int rank, int out, int err)
{
    program_for_rank(program, rank);
    /* vfork: the child leaves no function that the parent is in */
    pid_t pid = s->few || s->bind == JOB_BIND_NUMA ? fork() : vfork();
    if (pid == 0)
        start_child(s, program, rank, out, err);
    return pid < 0 ? -errno : pid;
}

int start_failed(struct start *s, struct start_failure *failure)
{
    ssize_t n = read(s->report[0], failure, sizeof *failure);
    if (n == (ssize_t)sizeof *failure)
        return 1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}
