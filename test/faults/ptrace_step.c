/* A step costs two switches of processes, some 10 us; an event five steps. While it waits for the
 * child, this process sleeps on SIGCHLD with a bound, and where nothing comes it asks /proc whether
 * the child sleeps: only a system call can be slept in, so only there is it asked. */
#include "ptrace_step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { PAGE = 4096, LOOK_NS = 200000, LOOKS = 3, OP_SYSCALL = 0x050f };

/* The one instruction that is borrowed for system calls of ours. */
__asm__(".text\n.globl step_gadget\n.hidden step_gadget\nstep_gadget:\n    syscall\n    int3\n");
extern const char step_gadget[];

void step_mark(void) { __asm__ volatile("int3" ::: "memory"); }

static pid_t bounded;               /* by the process that walks alone, before the alarm is set */

static void out_of_time(int number)
{
    (void)number;
    kill(bounded, SIGKILL);
}

void step_bound(const struct step *s, unsigned seconds)
{
    alarm(0);
    bounded = s->process;
    alarm(seconds);
}

void step_prepare(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGALRM, &(struct sigaction){ .sa_handler = out_of_time }, NULL);
}

void step_child(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

char step_state(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : 0;
}

/* What waitpid gave of it, into status. False: it has been interrupted, or there is nothing yet. */
static bool waited(struct step *s, int flags)
{
    int status;
    pid_t got = waitpid(s->pid, &status, flags | __WALL);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    s->status = got < 0 ? -1 : status;
    s->over = got < 0 || WIFEXITED(status) || WIFSIGNALED(status);
    return true;
}

/* Its next stop or end. False: it sleeps, as some looks in a row have found. */
static bool next_stop(struct step *s, bool may_sleep)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (int found = 0;;) {
        if (waited(s, may_sleep ? WNOHANG : 0))
            return true;
        if (!may_sleep || sigtimedwait(&set, NULL, &(struct timespec){ 0, LOOK_NS }) >= 0)
            continue;
        found = step_state(s->pid) == 'S' ? found + 1 : 0;
        if (found >= LOOKS)
            return false;
    }
}

static bool resume(struct step *s, bool single)
{
    s->single = single;
    return ptrace(single ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, s->pid, NULL, NULL) == 0;
}

/* A system call of ours, at a stop that is not the entry of one. */
static long borrow(struct step *s, long number, uint64_t a, uint64_t b, uint64_t c)
{
    struct user_regs_struct saved, regs;
    if (ptrace(PTRACE_GETREGS, s->pid, NULL, &saved))
        return -ESRCH;
    regs = saved;
    regs.rip = (uint64_t)(uintptr_t)step_gadget;
    regs.rax = (uint64_t)number;
    regs.orig_rax = UINT64_MAX;
    regs.rdi = a;
    regs.rsi = b;
    regs.rdx = c;
    int stopped = s->status;
    if (ptrace(PTRACE_SETREGS, s->pid, NULL, &regs)
        || ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL))
        return -ESRCH;
    while (!waited(s, 0)) { }
    if (s->over)
        return -ESRCH;
    s->status = stopped;
    if (ptrace(PTRACE_GETREGS, s->pid, NULL, &regs))
        return -ESRCH;
    ptrace(PTRACE_SETREGS, s->pid, NULL, &saved);
    return (long)regs.rax;
}

static long protect(struct step *s, uint64_t at, uint64_t bytes, int how)
{
    return borrow(s, SYS_mprotect, at, bytes, (uint64_t)how);
}

bool step_shield(struct step *s, uint64_t base, uint64_t bytes)
{
    s->shielded = true;
    s->base = base;
    s->bytes = bytes;
    return !base || protect(s, base, bytes, PROT_READ) == 0;
}

bool step_unshield(struct step *s)
{
    bool was = s->shielded && s->base;
    s->shielded = false;
    /* Some of it may have been unmapped by now. */
    return !was || protect(s, s->base, s->bytes, PROT_READ | PROT_WRITE) != -ESRCH;
}

bool step_seize(struct step *s, pid_t pid)
{
    *s = (struct step){ .pid = pid, .process = pid };
    return ptrace(PTRACE_SEIZE, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
        == 0;
}

static pid_t other_thread(pid_t pid)
{
    char path[64];
    pid_t found = -1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (e->d_name[0] != '.' && atoi(e->d_name) != pid)
            found = atoi(e->d_name);
    if (dir)
        closedir(dir);
    return found;
}

/* It may stop in a system call, which begins again with the next instruction: whoever goes on must
 * reckon with its sleep. */
bool step_catch(struct step *s, pid_t pid, bool other)
{
    pid_t it = other ? other_thread(pid) : pid;
    if (it < 0 || !step_seize(s, it))
        return false;
    s->process = pid;
    if (ptrace(PTRACE_INTERRUPT, it, NULL, NULL))
        return false;
    while (!waited(s, 0)) { }
    s->caught = !s->over;
    return s->caught;
}

static int stop_signal(const struct step *s)
{
    return !s->over && WIFSTOPPED(s->status) ? WSTOPSIG(s->status) : 0;
}

static bool is_mark(const struct step *s)
{
    siginfo_t info;
    return stop_signal(s) == SIGTRAP && ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info) == 0
        && info.si_code == SI_KERNEL;
}

bool step_to_mark(struct step *s)
{
    for (;;) {
        while (!waited(s, 0)) { }
        if (s->over)
            return false;
        if (is_mark(s))
            return true;
        ptrace(PTRACE_CONT, s->pid, NULL,
               (void *)(intptr_t)(stop_signal(s) == SIGTRAP ? 0 : stop_signal(s)));
    }
}

static enum stepped ended(struct step *s)
{
    if (!s->over)
        s->fault = stop_signal(s);
    return STEP_GONE;
}

/* Calls that change nothing for others. Closing is one of them where the process has no sockets, as
 * all but those that join. */
static bool is_private(const struct step *s, uint64_t number)
{
    static const short numbers[] = {
        SYS_read, SYS_pread64, SYS_open, SYS_openat, SYS_newfstatat, SYS_fstat, SYS_lseek,
        SYS_getdents64, SYS_readlink, SYS_readlinkat, SYS_brk, SYS_clock_gettime,
        SYS_getpid, SYS_gettid, SYS_sched_yield, SYS_rt_sigprocmask, SYS_pidfd_open,
        SYS_poll, SYS_mprotect, SYS_close
    };
    for (size_t i = 0; !s->keeps_all && i < sizeof numbers / sizeof numbers[0]; i++)
        if (number == (uint64_t)numbers[i])
            return true;
    return false;
}

/* One instruction is let through to what is shielded: the pages that it asks for, one after the
 * other. A repeated string instruction is one instruction here, and may store to any number of
 * pages, side by side. */
static enum stepped let_through(struct step *s)
{
    struct user_regs_struct before, now;
    uint64_t open = 0, end = 0;
    ptrace(PTRACE_GETREGS, s->pid, NULL, &before);
    for (;;) {
        siginfo_t info;
        if (s->over || (stop_signal(s) != SIGSEGV && stop_signal(s) != SIGTRAP))
            return ended(s);
        if (stop_signal(s) == SIGSEGV) {
            ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info);
            uint64_t at = (uint64_t)(uintptr_t)info.si_addr / PAGE * PAGE;
            if (at - s->base >= s->bytes || at - open < end - open || !s->base)
                return ended(s);
            open = !end || at < open ? at : open;
            end = at + PAGE > end ? at + PAGE : end;
            protect(s, at, PAGE, PROT_READ | PROT_WRITE);
        } else {
            ptrace(PTRACE_GETREGS, s->pid, NULL, &now);
            if (now.rip != before.rip)
                break;
        }
        if (!resume(s, true) || !next_stop(s, false))
            return ended(s);
    }
    if (end)
        protect(s, open, end - open, PROT_READ);
    return STEP_ON;
}

enum stepped step_instruction(struct step *s)
{
    struct user_regs_struct regs;
    bool call = s->asleep || s->caught;
    s->caught = false;
    if (!s->asleep) {
        if (ptrace(PTRACE_GETREGS, s->pid, NULL, &regs))
            return ended(s);
        errno = 0;
        call |= (ptrace(PTRACE_PEEKTEXT, s->pid, (void *)(uintptr_t)regs.rip, NULL) & 0xffff)
            == OP_SYSCALL;
        s->event = call && !is_private(s, regs.rax);
        if (!resume(s, true))
            return ended(s);
    }
    s->asleep = !next_stop(s, call);
    if (s->asleep)
        return STEP_ASLEEP;
    if (stop_signal(s) == SIGSEGV && s->shielded) {
        s->event = true;
        return let_through(s);
    }
    /* The end of a call that it slept in when it was told to go on to the next event. */
    if (stop_signal(s) == (SIGTRAP | 0x80))
        return STEP_ON;
    if (s->over || stop_signal(s) != SIGTRAP)
        return ended(s);
    return is_mark(s) ? STEP_MARK : STEP_ON;
}

/* At the entry of an madvise of shielded pages, which the kernel would find read-only: ours comes
 * before it, and then it comes again. */
static bool detour(struct step *s, struct user_regs_struct *call)
{
    struct user_regs_struct ours = *call;
    ours.orig_rax = SYS_mprotect;
    ours.rdi = s->base;
    ours.rsi = s->bytes;
    ours.rdx = PROT_READ | PROT_WRITE;
    ptrace(PTRACE_SETREGS, s->pid, NULL, &ours);
    if (!resume(s, false) || !next_stop(s, false) || stop_signal(s) != (SIGTRAP | 0x80))
        return false;
    ours = *call;
    ours.rip -= 2;
    ours.rax = call->orig_rax;
    ours.orig_rax = UINT64_MAX;
    ptrace(PTRACE_SETREGS, s->pid, NULL, &ours);
    return resume(s, false) && next_stop(s, false) && stop_signal(s) == (SIGTRAP | 0x80);
}

/* STEP_ON; the event flag says whether it counts. */
static enum stepped call_ended(struct step *s)
{
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, s->pid, NULL, &regs);
    s->event = !is_private(s, regs.orig_rax);
    if (regs.orig_rax == SYS_mmap && !s->base && s->bytes && (regs.r10 & MAP_SHARED)
        && (regs.rdx & PROT_WRITE) && (int)regs.r8 >= 0 && regs.rsi >= s->bytes
        && (int64_t)regs.rax > 0) {
        s->base = regs.rax;
        protect(s, s->base, s->bytes, PROT_READ);
    }
    return STEP_ON;
}

/* From the entry of a system call, or from sleeping in it, to its end. */
static enum stepped through_call(struct step *s, bool entered)
{
    struct user_regs_struct regs;
    bool opened = false;
    if (entered) {
        ptrace(PTRACE_GETREGS, s->pid, NULL, &regs);
        if (regs.orig_rax == SYS_munmap && s->base && regs.rdi == s->base)
            s->base = s->bytes = 0;
        if (regs.orig_rax == SYS_madvise && s->base && regs.rdi < s->base + s->bytes
            && regs.rdi + regs.rsi > s->base) {
            opened = true;
            if (!detour(s, &regs))
                return ended(s);
        }
        if (!resume(s, false))
            return ended(s);
    }
    s->asleep = !next_stop(s, !opened);
    if (s->asleep)
        return STEP_ASLEEP;
    if (s->over || stop_signal(s) != (SIGTRAP | 0x80))
        return ended(s);
    if (opened)
        protect(s, s->base, s->bytes, PROT_READ);
    return call_ended(s);
}

static enum stepped any_event(struct step *s)
{
    s->event = true;
    if (s->asleep)
        return through_call(s, false);
    if (!resume(s, false))
        return ended(s);
    next_stop(s, false);
    if (s->over)
        return ended(s);
    if (stop_signal(s) == (SIGTRAP | 0x80))
        return through_call(s, true);
    if (stop_signal(s) == SIGSEGV)
        return let_through(s);
    return is_mark(s) ? STEP_MARK : ended(s);
}

enum stepped step_event(struct step *s)
{
    enum stepped now;
    do
        now = any_event(s);
    while (now == STEP_ON && !s->event);
    return now;
}

void step_kill(struct step *s)
{
    if (!s->over && s->asleep && s->shielded && ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL) == 0) {
        while (!waited(s, 0)) { }
        s->asleep = false;
    }
    if (!s->over && !s->asleep)
        step_unshield(s);
    if (s->over && s->process == s->pid)             /* its number may be somebody else's by now */
        return;
    kill(s->process, SIGKILL);
    while (!s->over)
        waited(s, 0);
    if (s->process != s->pid)
        while (waitpid(s->process, &s->status, __WALL) < 0 && errno == EINTR) { }
}

#else

void step_mark(void) { }
void step_prepare(void) { }
void step_bound(const struct step *s, unsigned seconds) { (void)s; (void)seconds; }
void step_child(void) { }
bool step_seize(struct step *s, pid_t pid) { (void)s; (void)pid; errno = ENOSYS; return false; }

bool step_catch(struct step *s, pid_t pid, bool other)
{
    (void)s;
    (void)pid;
    (void)other;
    errno = ENOSYS;
    return false;
}

bool step_to_mark(struct step *s) { (void)s; return false; }

bool step_shield(struct step *s, uint64_t base, uint64_t bytes)
{
    (void)s;
    (void)base;
    (void)bytes;
    return false;
}

bool step_unshield(struct step *s) { (void)s; return false; }
enum stepped step_instruction(struct step *s) { (void)s; return STEP_GONE; }
enum stepped step_event(struct step *s) { (void)s; return STEP_GONE; }
char step_state(pid_t pid) { (void)pid; return 0; }
void step_kill(struct step *s) { (void)s; }

#endif
