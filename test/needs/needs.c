/* needs WORD... -- COMMAND...: runs the command if this kernel does what the words name, else says
 * what it does not, and ends with 77 (skipped). A kernel is asked by what it does, since emulators
 * of kernels (qemu-user, gVisor) say 0 to what they leave out. What was set for a look is set in a
 * child. The words are in the line `ctest:` of a test (needs=WORD,WORD). */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, WRONG_USE = 2, POPULATE_WRITE = 23, ROOM = 1024 };

static long page(void) { return sysconf(_SC_PAGESIZE); }

static void *fresh(int flags, long pages)
{
    void *p = mmap(NULL, (size_t)(pages * page()), PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED) {
        perror("needs: mmap");
        exit(WRONG_USE);
    }
    return p;
}

/* What `look` says in a child; false if it is killed. */
static bool in_child(bool look(void *), void *arg)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(look(arg) ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)
        && WEXITSTATUS(status) == 0;
}

/* ---- a lock tells that its owner has died ---- */

static bool die_holding(void *mutex)
{
    pthread_mutex_lock(mutex);
    raise(SIGKILL);
    return false;
}

static bool robust(void)
{
    pthread_mutex_t *mutex = fresh(MAP_SHARED, 1);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    (void)in_child(die_holding, mutex);
    return pthread_mutex_trylock(mutex) == EOWNERDEAD;
}

/* ---- advice on memory ---- */

/* a system call finds no memory there */
static bool absent(void *p)
{
    unsigned char resident[1];
    return mincore(p, 1, resident) != 0 && errno == ENOMEM;
}

static bool zero(void *p) { return *(char *)p == 0; }

static bool forks(void)
{
    char *gone = fresh(MAP_PRIVATE, 1), *wiped = fresh(MAP_PRIVATE, 1);
    *wiped = 1;
    return madvise(gone, (size_t)page(), MADV_DONTFORK) == 0 && in_child(absent, gone)
        && madvise(wiped, (size_t)page(), MADV_WIPEONFORK) == 0 && in_child(zero, wiped);
}

static bool populate(void)
{
    unsigned char resident[1] = { 0 };
    void *p = fresh(MAP_PRIVATE, 1);
    if (madvise(p, (size_t)page(), POPULATE_WRITE) != 0)
        return errno == EINVAL;                          /* an older kernel, which says so */
    return mincore(p, (size_t)page(), resident) == 0 && (resident[0] & 1);
}

/* ---- limits, filters, other processes ---- */

static bool refuses(void *arg)
{
    (void)arg;
    struct rlimit limit = { 1 << 20, 1 << 20 };
    return setrlimit(RLIMIT_AS, &limit) == 0
        && mmap(NULL, 1 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static bool limit(void) { return in_child(refuses, NULL); }

static bool strict(void *arg)
{
    (void)arg;
    return prctl(PR_SET_SECCOMP, 1) == 0 ? (syscall(SYS_exit, 0), true) : false;
}

static bool seccomp(void) { return in_child(strict, NULL); }

static bool adopts(void *arg)
{
    (void)arg;
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

static bool orphans(void) { return in_child(adopts, NULL); }

static bool vm_read(void)
{
    int from = 1, to = 0;
    struct iovec local = { &to, sizeof to }, remote = { &from, sizeof from };
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof to && to == 1;
}

/* What tells a process from another one with its number: its pid namespace, a descriptor. */
static bool same_namespace(void *number)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == *(ino_t *)number;
}

static bool identity(void)
{
    struct stat st;
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && stat("/proc/self/ns/pid", &st) == 0 && in_child(same_namespace, &st.st_ino);
}

/* Another process's /proc: a child waits in a call that we know, and holds a page that we know. */
static bool proc(void)
{
    char path[64], line[ROOM];
    bool call = false, map = false;
    uint32_t *word = fresh(MAP_SHARED, 1);
    pid_t pid = fork();
    if (pid == 0) {
        while (!*(volatile uint32_t *)(word + 1))
            syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    for (int tries = 0; !call && tries < 1000; tries++) {
        FILE *file = fopen(path, "r");
        long number = -1;
        if (!file || fscanf(file, "%ld", &number) != 1)
            number = -1;
        if (file)
            fclose(file);
        call = number == SYS_futex;
        if (!call)
            sched_yield();
    }
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "r");
    unsigned long start, end;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%lx-%lx", &start, &end) == 2)
            map |= start == (uintptr_t)word && end == start + (uintptr_t)page();
    if (file)
        fclose(file);
    *(volatile uint32_t *)(word + 1) = 1;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return call && map;
}

/* What is ignored stays so in the program that comes next, and in the one after it (nohup). */
static bool ignores_still(void)
{
    struct sigaction is;
    return sigaction(SIGHUP, NULL, &is) == 0 && is.sa_handler == SIG_IGN;
}

static const char *myself, first[] = "--ignores", second[] = "--ignores-still";

static bool execs(void *arg)
{
    signal(SIGHUP, SIG_IGN);
    execl(myself, myself, first, (char *)NULL);
    return arg != NULL;
}

static bool ignored(void) { return in_child(execs, NULL); }

static const struct feature {
    const char *word, *lacks;
    bool (*is_there)(void);
} features[] = {
    { "robust", "leaves no mark in the lock of a process that died (robust lists)", robust },
    { "forks", "gives forks what was not for them (MADV_DONTFORK, MADV_WIPEONFORK)", forks },
    { "populate", "says it has fetched pages, and has not (MADV_POPULATE_WRITE)", populate },
    { "limit", "keeps no limit of address space (RLIMIT_AS)", limit },
    { "seccomp", "has no seccomp", seccomp },
    { "vm_read", "has no process_vm_readv", vm_read },
    { "orphans", "gives a process no orphans (PR_SET_CHILD_SUBREAPER)", orphans },
    { "identity", "has no pidfd, or no number of a pid namespace (/proc/self/ns/pid)", identity },
    { "proc", "does not say what another process is at (/proc/PID/syscall, maps)", proc },
    { "ignored", "does not pass ignored signals on to the next program (exec)", ignored },
};

static bool has(const char *word)
{
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (strcmp(features[i].word, word) == 0) {
            bool there = features[i].is_there();
            if (!there)
                printf("skipped: this kernel %s\n", features[i].lacks);
            return there;
        }
    fprintf(stderr, "needs: no feature is called %s\n", word);
    exit(WRONG_USE);
}

int main(int n, char **words)
{
    int at = 1;
    bool all = true;
    myself = words[0];
    if (n == 2 && strcmp(words[1], first) == 0)
        execl(myself, myself, second, (char *)NULL);
    if (n == 2 && strcmp(words[1], second) == 0)
        return !ignores_still();
    for (; at < n && strcmp(words[at], "--") != 0; at++)
        all &= has(words[at]);
    if (!all)
        return SKIPPED;
    if (at + 1 >= n)
        return 0;
    execvp(words[at + 1], words + at + 1);
    perror(words[at + 1]);
    return WRONG_USE;
}
