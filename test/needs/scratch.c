/* scratch COMMAND...: runs it with TMPDIR naming a folder of its own in /tmp (or in TMPDIR), and
 * removes that with all that is left in it, however the command ends. Who is killed itself, as by
 * the time limit of a test, leaves its folder to the next one: a folder whose lock can be had has
 * no owner any more. Ends as the command does. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_ROOM = 512, DESCRIPTORS = 16, NOT_RUN = 127, MADE = 01777 };

static const char head[] = "tutti-scratch.", tail[] = "XXXXXX";

static int remove_one(const char *path, const struct stat *is, int kind, struct FTW *at)
{
    (void)is;
    (void)at;
    if (kind == FTW_DP || kind == FTW_DNR)
        (void)rmdir(path);
    else
        (void)unlink(path);
    return 0;
}

/* Not beyond a mount, nor through a link. */
static void remove_all(const char *path)
{
    (void)nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The folder, locked, if it is this user's, has that mode, and nobody has it; else -1. */
static int take(const char *path, mode_t mode)
{
    struct stat here, there;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &here) == 0 && here.st_uid == geteuid() && (here.st_mode & 07777) == mode
        && flock(fd, LOCK_EX | LOCK_NB) == 0
        && lstat(path, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        return fd;
    close(fd);
    return -1;
}

static void sweep(const char *parent)
{
    DIR *directory = opendir(parent);
    struct dirent *entry;
    char path[PATH_ROOM];
    while (directory && (entry = readdir(directory))) {
        if (strncmp(entry->d_name, head, sizeof head - 1) != 0
            || strlen(entry->d_name) != sizeof head - 1 + sizeof tail - 1
            || snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= (int)sizeof path)
            continue;
        int fd = take(path, MADE);
        if (fd < 0)
            continue;
        remove_all(path);
        close(fd);
    }
    if (directory)
        closedir(directory);
}

/* A new folder, locked; another process's sweep may have taken it before the lock was ours. */
static int make(char *path, size_t room, const char *parent)
{
    for (int tries = 0; tries < 100; tries++) {
        if (snprintf(path, room, "%s/%s%s", parent, head, tail) >= (int)room || !mkdtemp(path))
            return -1;
        int fd = take(path, 0700);
        if (fd >= 0 && fchmod(fd, MADE) == 0)
            return fd;
    }
    return -1;
}

static void end_by(int signal)
{
    struct sigaction usual = { .sa_handler = SIG_DFL };
    prctl(PR_SET_DUMPABLE, 0);                       /* the command has left its core already */
    sigaction(signal, &usual, NULL);
    raise(signal);
}

int main(int n, char **words)
{
    const char *given = getenv("TMPDIR"), *parent = given && *given ? given : "/tmp";
    char folder[PATH_ROOM];
    int status = 0;
    if (n < 2) {
        fprintf(stderr, "scratch: no command\n");
        return NOT_RUN;
    }
    sweep(parent);
    if (make(folder, sizeof folder, parent) < 0) {
        fprintf(stderr, "scratch: no folder in %s: %s\n", parent, strerror(errno));
        return NOT_RUN;
    }
    pid_t child = fork();
    if (child == 0) {
        setenv("TMPDIR", folder, 1);
        execvp(words[1], words + 1);
        perror(words[1]);
        _exit(NOT_RUN);
    }
    signal(SIGINT, SIG_IGN);                         /* the terminal's: the command has it, too */
    signal(SIGQUIT, SIG_IGN);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    remove_all(folder);
    if (child < 0) {
        fprintf(stderr, "scratch: no process\n");
        return NOT_RUN;
    }
    if (WIFSIGNALED(status))
        end_by(WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}
