/* Any process can ask for the status of an ended child until it is reaped (process_end); afterwards
 * only the parent knows it. On a busy machine milliseconds may pass between a waitpid() and the
 * note of its result. In two steps there is no time in which the status cannot be found.
 * Cost: one system call for each step. */
#include "os/reap.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

pid_t reap_look(pid_t pid, int *status)
{
    siginfo_t info = { .si_pid = 0 };
    if (waitid(pid < 0 ? P_ALL : P_PID, pid < 0 ? 0 : (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT)
        < 0)
        return -1;
    if (info.si_pid > 0)
        *status = info.si_code == CLD_EXITED
            ? (info.si_status & 255) << 8
            : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    return info.si_pid;
}

void reap_take(pid_t pid)
{
    while (waitpid(pid, NULL, WNOHANG) < 0 && errno == EINTR) { }
}

bool reap_begin(struct sigaction *found)
{
    sigaction(SIGCHLD, NULL, found);
    if (found->sa_handler != SIG_IGN && !(found->sa_flags & SA_NOCLDWAIT))
        return false;
    struct sigaction kept = *found;
    kept.sa_flags &= ~SA_NOCLDWAIT;
    if (!(kept.sa_flags & SA_SIGINFO) && kept.sa_handler == SIG_IGN)
        kept.sa_handler = SIG_DFL;
    return sigaction(SIGCHLD, &kept, NULL) == 0;
}
