/* /proc/PID/fd names the target of each descriptor, so a memfd is found by its name and told apart
 * by device and inode; a pid that a file's content names is never believed. A process may have
 * closed the descriptor and keep the mapping: /proc/PID/maps shows that, and root alone opens it.
 * Cost: two system calls a process and one a descriptor: 10 us for a small process, 100 us for one
 * of 64 ranks, which have a descriptor for each peer. Maps cost 50 us more, so they are read only
 * when asked for. */
#include "os/proc_files.h"

#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    PROC_PATH = 96,
    PROC_LINE = 512,
    PROC_STATUS = 4096,
    PROC_FUTEX_WAITV = 449
};

static int proc_files_number(const char *s)
{
    char *end;
    if (*s < '0' || *s > '9')
        return -1;
    errno = 0;
    long n = strtol(s, &end, 10);
    return *end || errno || n > INT32_MAX ? -1 : (int)n;
}

/* "NSpid:\t4711\t12": from outer to inner namespaces; old kernels have no such line. */
static int32_t proc_files_inner(pid_t pid)
{
    char path[PROC_PATH], status[PROC_STATUS];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (file_read(path, status, sizeof status) <= 0)
        return -1;
    char *line = strstr(status, "\nNSpid:");
    if (!line)
        return pid;
    line++;
    line[strcspn(line, "\n")] = 0;
    const char *last = strrchr(line, '\t');
    return last ? proc_files_number(last + 1) : -1;
}

static int proc_files_add(struct proc_files *s, const struct proc_file *one)
{
    for (size_t i = s->n; i > 0 && s->at[i - 1].pid == one->pid; i--)
        if (s->at[i - 1].device == one->device && s->at[i - 1].inode == one->inode)
            return 0;
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 128;
        struct proc_file *at = realloc(s->at, room * sizeof *at);
        if (!at)
            return -ENOMEM;
        s->at = at;
        s->room = room;
    }
    s->at[s->n] = *one;
    s->at[s->n++].inner = proc_files_inner(one->pid);
    return 0;
}

/* target: "/memfd:NAME (deleted)". name: of a descriptor. */
static int proc_files_descriptor(struct proc_files *s, int dir, const char *name, pid_t pid,
                              const char *target)
{
    char link[64];
    struct stat st;
    size_t n = strlen(target);
    if (readlinkat(dir, name, link, sizeof link) != (ssize_t)n || memcmp(link, target, n) != 0
        || fstatat(dir, name, &st, 0) != 0)
        return 0;
    return proc_files_add(s, &(struct proc_file){ .device = st.st_dev, .inode = st.st_ino,
                          .pid = pid, .fd = proc_files_number(name) });
}

/* All of them: a process may be in several jobs. */
static int proc_files_descriptors(struct proc_files *s, DIR *dir, pid_t pid, const char *target)
{
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir)) != NULL;)
        r = proc_files_descriptor(s, dirfd(dir), e->d_name, pid, target);
    return r;
}

typedef bool proc_files_mapping(const struct proc_file *one, void *arg);

/* Calls `is` for each mapping of such a file, until it returns true. A line is "FROM-TO PERMISSIONS
   OFFSET MAJOR:MINOR INODE   NAME". */
static bool proc_files_each_mapping(pid_t pid, const char *target, proc_files_mapping *is,
                                    void *arg)
{
    char path[PROC_PATH], line[PROC_LINE];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        struct proc_file one = { .pid = pid, .fd = -1 };
        unsigned major, minor;
        char *name = strchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        if (!name || (target && strcmp(name, target) != 0)
            || sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %" SCNu64, &one.from, &one.to,
                      &major, &minor, &one.inode) != 5)
            continue;
        one.device = makedev(major, minor);
        found = is(&one, arg);
    }
    if (maps)
        fclose(maps);
    return found;
}

static bool proc_files_keep(const struct proc_file *one, void *arg)
{
    return proc_files_add(arg, one) < 0;
}

static bool proc_files_same(const struct proc_file *one, void *arg)
{
    const struct proc_file *wanted = arg;
    return one->device == wanted->device && one->inode == wanted->inode;
}

bool proc_maps_file(pid_t pid, uint64_t device, uint64_t inode)
{
    struct proc_file wanted = { .device = device, .inode = inode };
    return proc_files_each_mapping(pid, NULL, proc_files_same, &wanted);
}

static bool proc_files_is_ours(pid_t pid)
{
    char path[PROC_PATH], status[PROC_STATUS];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (file_read(path, status, sizeof status) <= 0)
        return false;
    const char *uid = strstr(status, "\nUid:");
    return uid && strtoul(uid + 5, NULL, 10) == getuid();
}

static int proc_files_process(struct proc_files *s, pid_t pid, const char *target, bool thorough)
{
    char path[PROC_PATH];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir) {
        if (errno == EACCES && proc_files_is_ours(pid))
            s->refused++;
        return 0;
    }
    size_t before = s->n;
    int r = proc_files_descriptors(s, dir, pid, target);
    closedir(dir);
    s->processes++;
    if (r == 0 && thorough && s->n == before)
        proc_files_each_mapping(pid, target, proc_files_keep, s);
    return r;
}

static int proc_files_order(const void *left, const void *right)
{
    const struct proc_file *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int proc_files_find(struct proc_files *s, const char *name, bool thorough)
{
    char target[64];
    *s = (struct proc_files){ 0 };
    snprintf(target, sizeof target, "/memfd:%s (deleted)", name);
    DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(proc)) != NULL;) {
        int pid = proc_files_number(e->d_name);
        if (pid > 0)
            r = proc_files_process(s, pid, target, thorough);
    }
    closedir(proc);
    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, proc_files_order);
    return r;
}

void proc_files_free(struct proc_files *s)
{
    free(s->at);
    *s = (struct proc_files){ 0 };
}

int proc_file_open(const struct proc_file *s)
{
    char path[PROC_PATH];
    struct stat st;
    if (s->fd >= 0)
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)s->pid, s->fd);
    else
        snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)s->pid,
                 s->from, s->to);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) != 0 || st.st_dev != s->device || st.st_ino != s->inode
        || !S_ISREG(st.st_mode)) {
        close(fd);
        return -ESTALE;
    }
    return fd;
}

int proc_environment(pid_t pid, const char *name, char *value, size_t room)
{
    char path[PROC_PATH];
    size_t bytes = strlen(name), used = 0, most = 256 * 1024;
    ssize_t n = 1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC), r = fd < 0 ? -errno : -ENOENT;
    char *all = fd < 0 ? NULL : malloc(most);
    while (all && n > 0 && used < most - 1 && (n = read(fd, all + used, most - 1 - used)) > 0)
        used += (size_t)n;
    if (fd >= 0)
        close(fd);
    if (all)
        all[used] = 0;
    for (const char *at = all; all && at < all + used; at += strlen(at) + 1)
        if (!strncmp(at, name, bytes) && at[bytes] == '=') {
            snprintf(value, room, "%s", at + bytes + 1);
            r = 0;
            break;
        }
    free(all);
    return r;
}

uint64_t proc_thread_cpu(pid_t pid, pid_t tid)
{
    char path[PROC_PATH], times[128];
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    return file_read(path, times, sizeof times) > 0 ? strtoull(times, NULL, 10) : 0;
}

static const char *proc_files_call_name(long number)
{
    static const struct { long number; const char *name; } names[] = {
        { SYS_read, "read" }, { SYS_write, "write" }, { SYS_futex, "futex" },
        { SYS_ppoll, "ppoll" }, { SYS_pselect6, "pselect6" }, { SYS_epoll_pwait, "epoll_pwait" },
        { SYS_nanosleep, "nanosleep" }, { SYS_clock_nanosleep, "clock_nanosleep" },
        { SYS_wait4, "wait4" }, { SYS_waitid, "waitid" }, { SYS_recvfrom, "recvfrom" },
        { SYS_recvmsg, "recvmsg" }, { SYS_sendto, "sendto" }, { SYS_sendmsg, "sendmsg" },
        { SYS_connect, "connect" }, { SYS_accept4, "accept4" }, { SYS_fsync, "fsync" },
        { SYS_fdatasync, "fdatasync" }, { SYS_openat, "openat" }, { SYS_close, "close" },
        { SYS_pread64, "pread64" }, { SYS_pwrite64, "pwrite64" }, { SYS_ioctl, "ioctl" },
        { SYS_fcntl, "fcntl" }, { SYS_flock, "flock" }, { SYS_munmap, "munmap" },
        { SYS_madvise, "madvise" }, { SYS_rt_sigsuspend, "rt_sigsuspend" },
        { SYS_rt_sigtimedwait, "rt_sigtimedwait" }, { PROC_FUTEX_WAITV, "futex_waitv" },
#ifdef SYS_poll
        { SYS_poll, "poll" }, { SYS_select, "select" }, { SYS_epoll_wait, "epoll_wait" },
        { SYS_pause, "pause" }, { SYS_open, "open" },
#endif
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    return NULL;
}

/* .../syscall is "running"; or a number and its arguments; or "-1 …": in the kernel, in no call */
void proc_thread_wchan(struct text *t, pid_t pid, pid_t tid)
{
    char path[PROC_PATH], call[256], place[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    int known = file_read(path, call, sizeof call) > 0 && call[0] >= '0' && call[0] <= '9';
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    bool asleep = file_read(path, place, sizeof place) > 0 && strcmp(place, "0") != 0;
    if (known) {
        long number = strtol(call, NULL, 10);
        const char *name = proc_files_call_name(number);
        if (name)
            text_add(t, "in %s", name);
        else
            text_add(t, "in system call %ld", number);
    }
    if (asleep)
        text_add(t, known ? " (%s)" : "in the kernel (%s)", place);
}
