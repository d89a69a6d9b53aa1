/* Pids are used again, so a process is known by pid and start time. Each answer comes from one read
 * of one small file if possible, so it is of one moment.
 * Cost: a look with a pidfd 6 us, nearly all for the read of .../status; without one 10 us.
 *
 * Pid namespaces: a pid of another namespace means another process here, so the namespace is
 * compared first. /proc may belong to another namespace than ours (unshare --pid without a mount of
 * its own): then /proc/self is not our pid, /proc/PID is useless, and only system calls are left.
 *
 * Our memory, descriptors and namespaces are read in /proc/thread-self. /proc/self is the main
 * thread, which has none of these if it has ended (pthread_exit) while others run. The main thread
 * itself takes that shorter way (PROCESS_OWN).
 *
 * Time namespaces: /proc shows start times by the reader's clock, which may be ahead or behind (a
 * container restored from a checkpoint). Times for peers are by the machine's clock. The difference
 * is looked up only if two times differ, for 2 us more, in a time namespace 10. */
#include "os/process.h"

#include "base/system_names.h"
#include "os/file.h"
#include "os/release.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NUMBER_OF_PIDFD_OPEN = 434,
    NS_ROOM = 64,
    PATH_ROOM = 80,
    STAT_ROOM = 1024,
    STATUS_ROOM = 4096,
    NAME_BYTES = 15,
    ANCESTORS = 4096
};

struct facts {
    char name[64];
    char state;
    int32_t parent;
    uint64_t cpu_ticks, start;
    int exit_code;
};

static uint64_t number(const char *s)
{
    uint64_t v = 0;
    for (; *s >= '0' && *s <= '9'; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    return v;
}

/* PID (NAME) STATE PARENT …: the name may hold blanks and brackets, so the fields are counted from
 * its last ')'. */
static int parse_facts(const char *stat, struct facts *facts)
{
    const char *open = strchr(stat, '('), *close = strrchr(stat, ')');
    if (!open || !close || close < open || close[1] != ' ')
        return -EIO;
    size_t len = (size_t)(close - open - 1);
    if (len >= sizeof facts->name)
        len = sizeof facts->name - 1;
    memcpy(facts->name, open + 1, len);
    facts->name[len] = 0;
    facts->cpu_ticks = 0;
    facts->exit_code = (int)number(strrchr(stat, ' ') + 1);      /* field 52, the last */
    const char *at = close + 2;
    for (int field = 3; at; field++) {
        switch (field) {
        case 3: facts->state = *at; break;
        case 4: facts->parent = (int32_t)number(at); break;
        case 14: case 15: facts->cpu_ticks += number(at); break;
        case 22: facts->start = number(at); return 0;
        default: break;
        }
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return -EIO;
}

static int read_facts(const char *path, struct facts *facts)
{
    char stat[STAT_ROOM];
    int got = file_read(path, stat, sizeof stat);
    return got < 0 ? got : parse_facts(stat, facts);
}

/* An emulator of another processor (qemu-user) answers questions about ourselves from its own
 * memory, after a fork with our parent's start. A path that it does not know goes to the kernel. */
static int process_facts(pid_t pid, struct facts *facts)
{
    char room[PATH_ROOM];
    struct text path = TEXT_IN(room);
    text_add(&path, "/proc/./%d/stat", (int)pid);
    return read_facts(room, facts);
}

static int32_t thread_of(const struct process_id *id)
{
    return id->tid > 0 ? id->tid : id->pid;
}

bool process_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

static uint64_t own_namespace(void)
{
    struct stat st;
    return stat(PROCESS_OWN("ns/pid"), &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* An unknown namespace counts as another one: the pid may mean another process here, or none, and a
 * living process would count as dead. */
static bool elsewhere(const struct process_id *id)
{
    if (id->pid_namespace == 0)
        return false;
    uint64_t own = own_namespace();
    return own == 0 || own != id->pid_namespace;
}

/* True: /proc is of our pid namespace. */
static bool proc_is_ours(void)
{
    char self[24];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = 0;
    return number(self) == (uint64_t)getpid();
}

/* If a process has made a time namespace without being in it, the file is about its children. */
static bool offsets_are_ours(void)
{
    char own[NS_ROOM], children[NS_ROOM];
    ssize_t n = readlink("/proc/thread-self/ns/time", own, sizeof own),
            m = readlink("/proc/thread-self/ns/time_for_children", children, sizeof children);
    return n == m && (n <= 0 || memcmp(own, children, (size_t)n) == 0);
}

struct ahead { int64_t seconds, ns; };

/* The machine's own time namespace, whose clocks are the machine's, has this number on every
 * kernel: one look, and mostly the only one. */
static bool no_time_namespace(void)
{
    static const char first[] = "time:[4026531834]";
    char own[NS_ROOM];
    return readlink(PROCESS_OWN("ns/time"), own, sizeof own) == (ssize_t)sizeof first - 1
        && memcmp(own, first, sizeof first - 1) == 0;
}

/* How far our clock of that name is ahead of the machine's. False: unknown. A line is "boottime
   SECONDS NANOSECONDS"; seconds may be negative. Before Linux 5.6 there is no such file, and one
   clock. */
static bool clock_ahead(const char *clock, struct ahead *ahead)
{
    char offsets[STAT_ROOM];
    *ahead = (struct ahead){ 0, 0 };
    if (no_time_namespace()
        || file_read("/proc/self/timens_offsets", offsets, sizeof offsets) <= 0)
        return true;
    const char *line = strstr(offsets, clock);
    char *behind;
    if (!line || !offsets_are_ours())
        return false;
    ahead->seconds = strtoll(line + strlen(clock), &behind, 10);
    ahead->ns = strtoll(behind, NULL, 10);
    return true;
}

/* Start times in /proc are of our clock on newer kernels, of the machine's up to Linux 5.10. Our
 * own start tells which clock: it lies between that one's beginning and now. If both can be, the
 * version tells. */
static bool starts_are_shifted(int64_t start, int64_t now, int64_t ahead)
{
    bool ours = start >= ahead && start <= now, machines = start <= now - ahead;
    return ours && (!machines || release_since(5, 11, true));
}

static bool ticks_ahead(int64_t *ticks)
{
    struct ahead ahead;
    struct facts ours;
    struct timespec now;
    long rate = sysconf(_SC_CLK_TCK);
    *ticks = 0;
    if (rate <= 0 || !clock_ahead("boottime", &ahead))
        return false;
    int64_t all = ahead.seconds * rate + ahead.ns / (1000000000 / rate);
    if (all == 0)
        return true;
    if (read_facts("/proc/./self/stat", &ours) != 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return false;
    if (starts_are_shifted((int64_t)ours.start, now.tv_sec * rate + rate, all))
        *ticks = all;
    return true;
}

int64_t process_clock_ahead(void)
{
    struct ahead ahead;
    return clock_ahead("monotonic", &ahead) ? ahead.seconds * 1000000000 + ahead.ns : 0;
}

/* A start time of /proc in ticks of the machine's clock; 0: unknown. */
static uint64_t start_told(uint64_t shown)
{
    int64_t ahead;
    return shown && ticks_ahead(&ahead) ? shown - (uint64_t)ahead : 0;
}

/* True: the time in /proc and the told one can be the same; a conversion loses parts of a tick. */
static bool is_start(uint64_t shown, uint64_t told)
{
    int64_t ahead;
    if (told == 0 || shown == told || !ticks_ahead(&ahead))
        return true;
    uint64_t start = shown - (uint64_t)ahead;
    return start == told || (ahead != 0 && start - told + 1 <= 2);
}

int process_self(struct process_id *id)
{
    struct facts facts = { 0 };
    int error = read_facts("/proc/./self/stat", &facts);
    uint64_t namespace = own_namespace();
    *id = (struct process_id){ getpid(), (pid_t)syscall(SYS_gettid), start_told(facts.start),
                               namespace ? namespace : PROCESS_NAMESPACE_UNKNOWN };
    return error;
}

/* By .../status of the thread: true if it is a zombie, dead, or its process writes a core file. */
static bool past_running(const struct process_id *id)
{
    char room[PATH_ROOM], status[STATUS_ROOM];
    struct text path = TEXT_IN(room);
    text_add(&path, "/proc/%d/task/%d/status", (int)id->pid, (int)thread_of(id));
    if (file_read(room, status, sizeof status) <= 0)
        return false;
    const char *state = strstr(status, "\nState:\t");
    return (state && strchr("ZXx", state[8])) || strstr(status, "\nCoreDumping:\t1\n") != NULL;
}

static bool readable(int pidfd)
{
    struct pollfd p = { pidfd, POLLIN, 0 };
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP | POLLNVAL)) == POLLIN;
}

/* EPERM also means that the process exists. */
static bool thread_there(const struct process_id *id)
{
    return syscall(SYS_tgkill, id->pid, thread_of(id), 0) == 0 || errno != ESRCH;
}

/* A pidfd never means another process, so with one start time and namespace are not checked. */
int process_alive(const struct process_id *id, int pidfd)
{
    if (pidfd >= 0 && readable(pidfd))
        return 0;
    if (pidfd < 0 && elsewhere(id))
        return -EXDEV;
    if (!thread_there(id))
        return 0;
    if (pidfd < 0) {
        struct facts facts;
        if (!proc_is_ours())
            return 1;
        int error = process_facts(id->pid, &facts);
        if (error == -ENOENT || error == -ESRCH)
            return thread_there(id);          /* hidden from us (hidepid) or gone meanwhile */
        if (!error && !is_start(facts.start, id->start))
            return 0;
    }
    return past_running(id) && proc_is_ours() ? 0 : 1;
}

int process_pidfd(const struct process_id *id)
{
    if (elsewhere(id))
        return -EXDEV;
    int fd = (int)syscall(NUMBER_OF_PIDFD_OPEN, id->pid, 0);
    if (fd < 0)
        return -errno;
    struct facts facts;
    bool other = proc_is_ours() && process_facts(id->pid, &facts) == 0
        && !is_start(facts.start, id->start);
    if (other) {
        close(fd);
        return -ESRCH;
    }
    return file_move_up(fd);
}

/* The process's CPU clock counts nanoseconds; /proc counts ticks of 10 ms. */
static uint64_t cpu_time(pid_t pid, uint64_t ticks)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    long rate = sysconf(_SC_CLK_TCK);
    return rate > 0 ? ticks * (1000000000u / (uint64_t)rate) : 0;
}

static const char *state_word(char state)
{
    switch (state) {
    case 'R': return "running";
    case 'S': case 'I': return "sleeping";
    case 'T': case 't': return "stopped";
    case 'Z': return "zombie";
    case 'X': case 'x': return "gone";
    default: return "in the kernel";
    }
}

/* The state is that of the rank's thread, the CPU time that of its whole process: others may
 * compute for it. */
const char *process_state(const struct process_id *id, uint64_t *cpu_ns)
{
    struct facts process, thread;
    char room[PATH_ROOM];
    struct text path = TEXT_IN(room);
    if (cpu_ns)
        *cpu_ns = 0;
    if (elsewhere(id) || !proc_is_ours())
        return "out of sight";
    if (process_facts(id->pid, &process) != 0 || !is_start(process.start, id->start))
        return "gone";
    if (cpu_ns)
        *cpu_ns = cpu_time(id->pid, process.cpu_ticks);
    text_add(&path, "/proc/%d/task/%d/stat", (int)id->pid, (int)thread_of(id));
    if (read_facts(room, &thread) != 0)
        return "gone";
    return state_word(thread.state);
}

/* The kernel writes the exit code before it frees memory and marks. Before that the code is 0, as
 * for an exit with 0: then only the zombie state shows the end. A stopped process has the code of
 * its stop. */
int process_end(const struct process_id *id, int *status)
{
    struct facts facts;
    if (elsewhere(id) || !proc_is_ours() || process_facts(id->pid, &facts) != 0
        || !is_start(facts.start, id->start))
        return 0;
    bool over = strchr("ZXx", facts.state) != NULL;
    if (!over && (facts.exit_code == 0 || strchr("Tt", facts.state)))
        return 0;
    *status = facts.exit_code;
    return 1;
}

/* The masks of .../status: bit 0 is signal 1. */
bool process_takes(pid_t pid, int number)
{
    static const char *const masks[] = { "\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t" };
    char room[PATH_ROOM], status[STATUS_ROOM];
    struct text path = TEXT_IN(room);
    text_add(&path, "/proc/%d/status", (int)pid);
    if (file_read(room, status, sizeof status) <= 0)
        return false;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const char *mask = strstr(status, masks[i]);
        if (mask && strtoull(mask + strlen(masks[i]), NULL, 16) >> (number - 1) & 1)
            return true;
    }
    return false;
}

void process_name(pid_t pid, char *name, size_t room)
{
    char path_room[PATH_ROOM], comm[64];
    struct text path = TEXT_IN(path_room);
    struct text out = { name, room, 0 };
    text_clear(&out);
    if (pid == getpid() && process_main_thread() && prctl(PR_GET_NAME, comm) == 0) {
        text_add(&out, "%s", comm);
        return;
    }
    text_add(&path, "/proc/%d/comm", (int)pid);
    if (file_read(path_room, comm, sizeof comm) <= 0)
        text_add(&out, "?");
    else
        text_add(&out, "%.*s", (int)strcspn(comm, "\n"), comm);
}

int process_ancestor(const char *name, pid_t *pid, uint64_t *start)
{
    struct facts facts;
    if (!proc_is_ours())
        return -ENOENT;
    pid_t at = getppid();
    for (int i = 0; i < ANCESTORS && at > 0; i++) {
        if (process_facts(at, &facts) != 0)
            return -ENOENT;
        if (strncmp(facts.name, name, NAME_BYTES) == 0) {
            *pid = at;
            *start = start_told(facts.start);
            return 0;
        }
        at = facts.parent;
    }
    return -ENOENT;
}

static void add_signal(struct text *t, const char *what, int signal)
{
    const char *name = system_signal_name(signal);
    text_add(t, "%s by signal %d", what, signal);
    if (name)
        text_add(t, " (SIG%s)", name);
}

void process_add_status(struct text *t, int status)
{
    if (status == PROCESS_END_UNKNOWN)
        text_add(t, "an end that could not be read");
    else if (WIFEXITED(status))
        text_add(t, "exit status %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) {
        add_signal(t, "killed", WTERMSIG(status));
        if (status & PROCESS_END_OOM)
            text_add(t, " by the kernel: out of memory");
        if (WCOREDUMP(status))
            text_add(t, ", core dumped");
    } else if (WIFSTOPPED(status))
        add_signal(t, "stopped", WSTOPSIG(status));
    else
        text_add(t, "status 0x%x", (unsigned)status);
}
