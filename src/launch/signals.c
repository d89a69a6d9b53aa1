/* Signals are blocked and read from descriptors, not caught: one loop handles all of them in one
 * place, and nothing is ever interrupted. There are two descriptors, because the signals of writes
 * are many, come in order, and must be read apart. A signal that was ignored when we were started
 * (nohup, a background job of a script) stays ignored, here and in the ranks. */
#include "launch/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int passed_on[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGXCPU, SIGPWR
};

int signals_of_writes(void)
{
    return SIGRTMIN;
}

static bool was_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_begin(struct signals *s)
{
    struct sigaction plain = { .sa_handler = SIG_DFL }, ignore = { .sa_handler = SIG_IGN };
    sigset_t control, writes, both;
    sigemptyset(&control);
    sigaddset(&control, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        /* a question ends nobody, so it may always be asked */
        if (passed_on[i] == SIGQUIT || !was_ignored(passed_on[i]))
            sigaddset(&control, passed_on[i]);
    sigemptyset(&writes);
    sigaddset(&writes, signals_of_writes());
    sigaddset(&writes, SIGIO);           /* what the kernel sends instead when its queue is full */
    both = control;
    sigorset(&both, &control, &writes);
    sigprocmask(SIG_BLOCK, &both, &s->mask);
    sigaction(SIGCHLD, &plain, &s->child);
    sigaction(SIGPIPE, &ignore, &s->pipe);
    s->control = signalfd(-1, &control, SFD_CLOEXEC | SFD_NONBLOCK);
    s->writes = signalfd(-1, &writes, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->control < 0 || s->writes < 0) {
        int error = -errno;
        signals_end(s);
        return error;
    }
    return 0;
}

void signals_let_end(void)
{
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        if (signals_ends_job(passed_on[i]))
            sigaddset(&ending, passed_on[i]);
    sigprocmask(SIG_UNBLOCK, &ending, NULL);
}

static void drain(int fd)
{
    struct signalfd_siginfo info;
    while (fd >= 0 && read(fd, &info, sizeof info) > 0)
        ;
    if (fd >= 0)
        close(fd);
}

void signals_end(struct signals *s)
{
    drain(s->control);                   /* unread ones would act when unblocked */
    drain(s->writes);
    s->control = s->writes = -1;
    signals_in_child(s);
}

void signals_in_child(const struct signals *s)
{
    sigaction(SIGCHLD, &s->child, NULL);
    sigaction(SIGPIPE, &s->pipe, NULL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

bool signals_next(struct signals *s, struct signals_news *news)
{
    struct signalfd_siginfo info;
    if (read(s->control, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    news->number = (int)info.ssi_signo;
    news->from_terminal = info.ssi_code == SI_KERNEL;
    return true;
}

bool signals_ends_job(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGTERM;
}
