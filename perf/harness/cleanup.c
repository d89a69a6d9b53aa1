/* Launchers put their ranks into sessions of their own and die before them, so whoever starts one
 * makes itself a subreaper: whatever comes of it becomes its child in the end, and is found under
 * it in /proc. */
#include "harness/cleanup.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cleanup_tree(pid_t pid, pid_t tree[CLEANUP_MAX], int n)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    for (int from = n; f && n < CLEANUP_MAX && fscanf(f, "%d", &child) == 1; from = n) {
        tree[n++] = child;
        n = cleanup_tree(tree[from], tree, n);
    }
    if (f)
        fclose(f);
    return n;
}

void cleanup_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

void cleanup_kill(void)
{
    pid_t tree[CLEANUP_MAX];
    int n = cleanup_tree(getpid(), tree, 0);
    for (int i = 0; i < n; i++)
        kill(tree[i], SIGKILL);
}

void cleanup_end(void)
{
    struct timespec ms = { .tv_nsec = 1000000 };
    do {
        cleanup_kill();
        nanosleep(&ms, NULL);
        cleanup_reap();
    } while (waitpid(-1, NULL, WNOHANG) >= 0);
}

static int erase(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

void cleanup_erase(const char *folder)
{
    nftw(folder, erase, 8, FTW_DEPTH | FTW_PHYS);
}
