/* tutti doctor: what this machine has for us, and if not, why not. A driver may hang, so this
 * process never calls it. It starts itself again as a second process, which writes a line before
 * each question to the driver. If no next line comes in time, this process ends the second one.
 * Cost: one process more. */
#include "cli/doctor.h"
#include "cli/doctor_tune.h"
#include "cli/option.h"
#include "cli/verb.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 45, SECONDS_MOST = 3600 };          /* of the measurement */
enum { PATIENCE_MS = 20000, GRACE_MS = 1000, PULSE_ROOM = 256 };

static const char help[] =
    "usage: tutti doctor [--timeout TIME]\n"
    "       tutti doctor --gpu [--json] [--timeout TIME]\n"
    "       tutti doctor --tune [--dry-run] [--seconds N]\n"
    "\n"
    "Prints what this machine and this environment have for the ranks of a job\n"
    "started here: the kernel, CPUs, memory and its limits, files, the launcher,\n"
    "settings, the rules by which algorithms are chosen; which GPUs they can use,\n"
    "or why there is none; and for each GPU by which roads collectives on its\n"
    "memory can go:\n"
    "\n"
    "  pinned    by copies through the arena, folded on the CPU\n"
    "  kernels   folded on the GPU; leader and peers need them\n"
    "  leader    ranks on this GPU: one of them folds what all have shared\n"
    "  peers     ranks on several GPUs: each folds its part out of all others\n"
    "\n"
    "What is missing comes with what is done without it, what is wrong with what\n"
    "to do about it. It is found out by trying, in processes that end with the\n"
    "command. No GPU is no fault: buffers of the host need none.\n"
    "\n"
    "--gpu lets each GPU read each other one's memory, by a copy and by a kernel,\n"
    "and prints which pairs read what is there and how fast, and of the others why\n"
    "not and what to change; and on which NUMA node each GPU is.\n"
    "\n"
    "--tune measures, with ranks of its own, where another algorithm is clearly\n"
    "faster here than the one that is built in, and writes that to a file which\n"
    "jobs of this user on this machine go by from then on. Let the machine be\n"
    "idle meanwhile.\n"
    "\n"
    "  --timeout TIME   how long a driver may take over one question, as 30s or\n"
    "                   2min; default: 20s; one reading of --gpu has a quarter of\n"
    "                   it, 5 s at most\n"
    "  --gpu            only the GPUs, in pairs\n"
    "  --json           with --gpu: as JSON\n"
    "  --tune           measure, and write ~/.config/tutti/rules, or the file that\n"
    "                   TUTTI_TUNED names\n"
    "  --dry-run        measure, and write nothing\n"
    "  --seconds N      how long to measure, 1 to 3600; default: 45\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 0 if nothing is wrong, also without a GPU or with a road that\n"
    "this machine has not; 1 if something is wrong, which the last line counts;\n"
    "2 for a wrong command line.\n";

/* ---- what all three share -------------------------------------------------------------------- */

void doctor_pulse(const char *format, ...)
{
    char line[PULSE_ROOM];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    n = n > (int)sizeof line - 2 ? (int)sizeof line - 2 : n;
    line[n++] = '\n';
    fflush(stdout);                         /* the output so far must be out before this may hang */
    ssize_t written = write(DOCTOR_PULSE_FD, line, (size_t)n);
    (void)written;                          /* the first process is gone: so will this be soon */
}

bool doctor_read(int fd, void *into, size_t n)
{
    char *at = into;
    while (n) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

bool doctor_orphan(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() != parent;
}

int doctor_start(pid_t *pid, const char *option, const char *value, const int (*map)[2], int maps)
{
    char name[] = "tutti", verb[] = "doctor", first[16], second[16];
    char *argv[] = { name, verb, first, value ? second : NULL, NULL };
    const char *program = access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe"
                                                              : program_invocation_name;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    snprintf(first, sizeof first, "%s", option);
    snprintf(second, sizeof second, "%s", value ? value : "");
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return -error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return -error;
    }
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    for (int i = 0; i < maps && !error; i++)
        error = posix_spawn_file_actions_adddup2(&actions, map[i][0], map[i][1]);
    if (!error)
        error = posix_spawnp(pid, program, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

/* ---- the first: listens ---------------------------------------------------------------------- */

/* line: the last whole line read so far. part: the rest. */
struct pulse { char line[PULSE_ROOM], part[PULSE_ROOM]; size_t used; };

static void take_bytes(struct pulse *p, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\n') {
            p->part[p->used] = 0;
            memcpy(p->line, p->part, sizeof p->line);
            p->used = 0;
        } else if (p->used < sizeof p->part - 1) {
            p->part[p->used++] = bytes[i];
        }
}

/* True: the process has closed its end, by ending. False: `ms` have passed without a byte. */
static bool listen_to(int fd, struct pulse *pulse, int64_t ms)
{
    char bytes[512];
    struct pollfd on = { .fd = fd, .events = POLLIN };
    for (;;) {
        int ready = poll(&on, 1, ms > INT32_MAX || ms < 0 ? -1 : (int)ms);
        if (ready == 0)
            return false;
        ssize_t n = ready > 0 ? read(fd, bytes, sizeof bytes) : -1;
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0)
            take_bytes(pulse, bytes, (size_t)n);
    }
}

/* Waits for the end of a process, which may hang in the driver, too. SIGCHLD is blocked, so it can
 * be waited for. False: it has not ended. */
static bool reap(pid_t pid, int *status, int64_t ms)
{
    sigset_t child;
    struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t gone = waitpid(pid, status, WNOHANG);
        if (gone != 0)
            return gone == pid;
        if (sigtimedwait(&child, NULL, &wait) < 0 && errno == EAGAIN)
            return waitpid(pid, status, WNOHANG) == pid;
    }
}

/* pairs: what is printed of pairs, "text" or "json"; NULL: of roads. */
static int hangs(pid_t pid, const struct pulse *pulse, int64_t ms, const char *pairs)
{
    char words[40];
    int status;
    struct text time = TEXT_IN(words);
    text_add_duration(&time, (uint64_t)ms * 1000000);
    if (pairs && !strcmp(pairs, "json"))
        printf("{\"gpus\": [], \"pairs\": [], \"reason\": \"the driver hangs: no answer for %s, "
               "asked for %s\", \"wrong\": 1}\n",
               words, pulse->line[0] ? pulse->line : "its beginning");
    else
        printf("GPU: the driver hangs: no answer for %s, asked for %s\n"
               "  its process is ended; --timeout gives it longer\n",
               words, pulse->line[0] ? pulse->line : "its beginning");
    fflush(stdout);
    kill(pid, SIGKILL);
    reap(pid, &status, GRACE_MS);               /* one that hangs in the kernel does not die */
    return 1;
}

static int watch_over(int64_t ms, const char *pairs)
{
    int fds[2], status = 0;
    pid_t pid;
    sigset_t child;
    struct pulse pulse = { .used = 0 };
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int error = pipe2(fds, O_CLOEXEC) == 0 ? 0 : -errno;
    if (!error) {
        const int map[][2] = { { fds[1], DOCTOR_PULSE_FD } };
        char value[40];
        snprintf(value, sizeof value, "%s %lld", pairs ? pairs : "", (long long)ms);
        /* dup2 onto itself would keep the close-on-exec flag: the new process would start without
         * its pipe */
        int moved = fds[1] == DOCTOR_PULSE_FD ? fcntl(fds[1], F_SETFD, 0) : 0;
        error = moved < 0
            ? -errno
            : doctor_start(&pid, pairs ? DOCTOR_PAIRS : DOCTOR_ASK, pairs ? value : NULL, map, 1);
        close(fds[1]);
    }
    if (error < 0) {
        fprintf(stderr, "tutti doctor: cannot start another process: %s\n", strerror(-error));
        return 1;
    }
    bool ended = listen_to(fds[0], &pulse, ms) && reap(pid, &status, ms);
    close(fds[0]);
    if (!ended)
        return hangs(pid, &pulse, ms, pairs);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    printf("GPU: the driver has ended our process by signal %d, asked for %s\n", WTERMSIG(status),
           pulse.line);
    return 1;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {
    { "timeout", required_argument, NULL, 't' }, { "tune", no_argument, NULL, 'u' },
    { "dry-run", no_argument, NULL, 'd' }, { "seconds", required_argument, NULL, 's' },
    { "gpu", no_argument, NULL, 'g' }, { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
};

struct wishes { int64_t timeout_ms, seconds; bool tune, dry, timed, gpu, json, help; };

static int take_timeout(struct wishes *w, const char *s)
{
    bool bare = *s && strspn(s, "0123456789") == strlen(s);
    if (!bare && text_parse_duration_ms(s, &w->timeout_ms) == 0 && w->timeout_ms != 0)
        return 0;
    return verb_refuse("doctor",
                       "--timeout wants a time with its unit, as 30s or 5min, not '%.40s'", s);
}

static int take_seconds(struct wishes *w, const char *s)
{
    w->timed = true;
    if (text_parse_int(s, 1, SECONDS_MOST, &w->seconds) == 0)
        return 0;
    return verb_refuse("doctor", "--seconds wants a number from 1 to %d, not '%.40s'", SECONDS_MOST,
                       s);
}

static int take_option(struct wishes *w, int option)
{
    switch (option) {
    case 't': return take_timeout(w, optarg);
    case 's': return take_seconds(w, optarg);
    case 'u': w->tune = true; return 0;
    case 'd': w->dry = true; return 0;
    case 'g': w->gpu = true; return 0;
    case 'j': w->json = true; return 0;
    default: w->help = true; return 0;
    }
}

int verb_doctor(int argc, char **argv)
{
    struct wishes w = { .timeout_ms = PATIENCE_MS, .seconds = SECONDS };
    struct doctor d = { .wrong = 0 };
    if (argc == 2 && !strcmp(argv[1], DOCTOR_ASK))
        return doctor_ask();
    if (argc == 3 && !strcmp(argv[1], DOCTOR_OPEN))
        return doctor_open(atoi(argv[2]));
    if (argc == 3 && !strcmp(argv[1], DOCTOR_PAIRS))
        return doctor_pairs(argv[2]);
    if (argc == 3 && !strcmp(argv[1], DOCTOR_READ))
        return doctor_reader(atoi(argv[2]));
    const struct option_words words = { "tutti doctor", ":h", options, argc, argv };
    for (int option; (option = option_next(&words)) != OPTION_END;) {
        int status = option == OPTION_REFUSED ? VERB_USAGE : take_option(&w, option);
        if (status)
            return status;
    }
    if (w.help) {
        fputs(help, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (optind < argc)
        return verb_refuse("doctor", "it takes no arguments, as '%.40s'", argv[optind]);
    if (!w.tune && (w.dry || w.timed))
        return verb_refuse("doctor", "%s goes with --tune", w.dry ? "--dry-run" : "--seconds");
    if (w.json && !w.gpu)
        return verb_refuse("doctor", "--json goes with --gpu");
    if (w.gpu && w.tune)
        return verb_refuse("doctor", "--gpu and --tune are two commands");
    if (w.gpu)
        return watch_over(w.timeout_ms, w.json ? "json" : "text");
    if (w.tune)
        return doctor_tune((int)w.seconds, w.dry);
    doctor_host(&d);
    d.wrong += watch_over(w.timeout_ms, NULL);
    return doctor_end(&d);
}
