/* A rank's children are its own business while it lives. When it ends, they are orphans. The
 * launcher is a subreaper and becomes their parent. It asks by a wait whether there are any: the
 * usual answer, no, costs one system call. Only then does it look for their numbers in /proc. Their
 * own children become ours in the same way when they end. */
#include "launch/orphans.h"

#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool orphans_any(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool orphans_begin(void)
{
    return !orphans_any() && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* The parent's number: the second word after the last bracket of the name. */
static pid_t parent_of(pid_t pid)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *close = file_read(path, stat, sizeof stat) > 0 ? strrchr(stat, ')') : NULL;
    return close && strlen(close) > 4 ? (pid_t)atoi(close + 4) : 0;
}

void orphans_signal(int number)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    pid_t self = getpid();
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && parent_of(pid) == self)
            kill(pid, number);
    }
    if (proc)
        closedir(proc);
}
