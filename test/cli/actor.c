/* A program for the scripts in this folder: plays a rank, or somebody at a terminal.
 *
 *   actor barrier              joins, meets the others in a barrier, says "rank R of N met"
 *   actor twice                the same, leaves, and once more in a second world
 *   actor turns N              N rounds in rank order, a line each: "ROUND RANK"
 *   actor scatter N            N rounds, in each of which one rank writes a line, never in the
 *                              order of ranks; the launcher is stopped meanwhile, for 300 ms, so
 *                              that it finds many of them at once
 *   actor lose RANK HOW        RANK ends by HOW (kill, abort, exit, _exit), the others meet its
 *                              absence and exit with 1, however long it takes: they ignore SIGTERM
 *   actor miss RANK HOW        as lose, but RANK ends when all others have begun the barrier
 *   actor shrink RANK HOW      as lose, but the others shrink, meet once more and exit with 0
 *   actor differ RANK HOW      three collectives and a message; then all but RANK all_reduce. It
 *                              calls last, by HOW: kind (a barrier), size, type, missing (nothing,
 *                              and sleeps). silent: RANK sleeps before it has called anything
 *   actor fat RANK             as lose RANK kill, but with 256 MiB to be given back first
 *   actor early RANK           RANK ends by exit(5) before it joins, the others try
 *   actor stall RANK HOW       all meet twice; then RANK says "stalled" and goes on by HOW: spin
 *                              (computes for ever), pause (sleeps), close (the same, and closes all
 *                              descriptors), recv (from rank 0, who sends nothing); the others wait
 *                              for it in a barrier. work: the same, but they wait for the barrier's
 *                              handle, with a deadline of an hour. meet: all go on to meet, for
 *                              ever. late: after 400 barriers and a few messages of RANK it sleeps
 *   actor print HOW            prints "first" and "second" by printf, and then waits for a signal
 *                              (wait) or kills itself (kill)
 *   actor tardy RANK N         N barriers, to each of which RANK comes when all others have come; a
 *                              RANK of -1: each in its turn. Then rank 0 says "tardy", all sleep
 *   actor count SIGNAL         says "ready", waits for the first SIGNAL, then a moment for more;
 *                              says "got NUMBER"
 *   actor terminal TEXT N KEY PROGRAM...   runs PROGRAM at a terminal of its own and types KEY (a
 *                              number) when it has shown TEXT N times, while PROGRAM's own process
 *                              is stopped for a moment (its children see the key first); shows its
 *                              output, exits as it does, 128 + signal if killed */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <tutti.h>
#include <unistd.h>

static int stop(const tutti_comm *comm)
{
    fprintf(stderr, "actor: %s\n", tutti_explain(comm));
    return 1;
}

static int play_barrier(void)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    printf("rank %d of %d met\n", tutti_rank(world), tutti_size(world));
    return tutti_finalize(world) < 0 ? stop(world) : 0;
}

static int play_turns(int rounds)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    for (int i = 0; i < rounds; i++) {
        if (tutti_turn_begin(world, NULL) < 0) return stop(world);
        dprintf(STDOUT_FILENO, "%d %d\n", i, tutti_rank(world));
        if (tutti_turn_end(world) < 0) return stop(world);
    }
    return tutti_finalize(world) < 0 ? stop(world) : 0;
}

/* Somebody else lets it go on: rank 0 itself may come to wait for it. */
static void stop_launcher(void)
{
    struct timespec moment = { 0, 300000000 };
    pid_t launcher = getppid();
    kill(launcher, SIGSTOP);
    if (fork() == 0) {
        nanosleep(&moment, NULL);
        kill(launcher, SIGCONT);
        _exit(0);
    }
}

static int play_scatter(int rounds)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world), size = tutti_size(world);
    if (rank == 0) stop_launcher();
    for (int i = 0; i < rounds; i++) {
        if (tutti_barrier(world, NULL) < 0) return stop(world);
        if (rank == (size - 1 - i % size) / (1 + i / size % 2)) dprintf(STDOUT_FILENO, "%d\n", i);
    }
    return tutti_finalize(world) < 0 ? stop(world) : 0;
}

static void end_by(const char *how)
{
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "_exit")) _exit(3);
    exit(3);
}

static int play_lose(int rank, const char *how, size_t memory)
{
    tutti_comm *world;
    signal(SIGTERM, SIG_IGN);
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    char *held = NULL;
    if (memory && tutti_rank(world) == rank) {
        held = malloc(memory);
        if (held) memset(held, rank + 1, memory);
    }
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_rank(world) == rank) end_by(how);
    int error = tutti_barrier(world, NULL);
    free(held);
    return error < 0 ? stop(world) : 0;
}

/* It ends when all others have begun a barrier. */
static int play_miss(int rank, const char *how)
{
    tutti_comm *world;
    tutti_work *work;
    char key[16], there;
    size_t length = sizeof there;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_rank(world) == rank) {
        for (int r = 0; r < tutti_size(world); r++) {
            snprintf(key, sizeof key, "%d", r);
            if (r != rank && tutti_get(key, &there, &length, world, NULL) < 0) return stop(world);
        }
        end_by(how);
    }
    if (tutti_barrier(world, &(tutti_call){ .work = &work }) < 0) return stop(world);
    snprintf(key, sizeof key, "%d", tutti_rank(world));
    if (tutti_set(key, "", 1, world) < 0 || tutti_wait(work, 0) < 0) return stop(world);
    return 0;
}

static int play_shrink(int rank, const char *how)
{
    tutti_comm *world, *left;
    signal(SIGTERM, SIG_IGN);
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_rank(world) == rank) end_by(how);
    if (tutti_barrier(world, NULL) == 0) return 1;
    if (tutti_comm_shrink(world, &left) < 0) return stop(world);
    if (tutti_barrier(left, NULL) < 0) return stop(left);
    return tutti_finalize(world) < 0 ? stop(world) : 0;
}

/* The mismatch breaks the comm, and who would call later is refused: so the others arrive by work,
 * and tell the rank that differs. */
static int differ_first(tutti_comm *world, int to, double *x)
{
    tutti_work *work;
    const tutti_call call = { .work = &work };
    if (tutti_all_reduce(x, x, 32, TUTTI_F32, TUTTI_SUM, world, &call) < 0
        || tutti_send(NULL, 0, TUTTI_I8, to, 8, world, NULL) < 0)
        return stop(world);
    return tutti_wait(work, -1) < 0 ? stop(world) : 0;
}

static int differ_last(tutti_comm *world, const char *how, double *x)
{
    for (int p = 1; p < tutti_size(world); p++)
        if (tutti_recv(NULL, 0, TUTTI_I8, TUTTI_ANY, 8, NULL, world, NULL) < 0) return stop(world);
    int r = !strcmp(how, "kind")   ? tutti_barrier(world, NULL)
        : !strcmp(how, "type") ? tutti_all_reduce(x, x, 32, TUTTI_F64, TUTTI_SUM, world, NULL)
                               : tutti_all_reduce(x, x, 64, TUTTI_F32, TUTTI_SUM, world, NULL);
    return r < 0 ? stop(world) : 0;
}

static int play_differ(int rank, const char *how)
{
    tutti_comm *world;
    double x[64] = { 0 };
    struct timespec hour = { 3600, 0 }, moment = { 0, 20000000 };
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int mine = tutti_rank(world) == rank, next = (tutti_rank(world) + 1) % tutti_size(world);
    if (mine && !strcmp(how, "silent")) nanosleep(&hour, NULL);
    if (mine) nanosleep(&moment, NULL);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_scan(x, x, 8, TUTTI_F64, TUTTI_SUM, world, NULL) < 0) return stop(world);
    if (tutti_broadcast(x, 16, TUTTI_F32, 0, world, NULL) < 0) return stop(world);
    if (tutti_send(x, 2, TUTTI_F32, next, 7, world, NULL) < 0) return stop(world);
    if (tutti_recv(x, 2, TUTTI_F32, TUTTI_ANY, 7, NULL, world, NULL) < 0) return stop(world);
    if (!strcmp(how, "missing")) {
        if (mine) nanosleep(&hour, NULL);
        return tutti_all_reduce(x, x, 32, TUTTI_F32, TUTTI_SUM, world, NULL) < 0 ? stop(world) : 0;
    }
    return mine ? differ_last(world, how, x) : differ_first(world, rank, x);
}

static int play_early(int rank)
{
    const char *mine = getenv("RANK");
    tutti_comm *world;
    if (mine && atoi(mine) == rank) exit(5);
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    return tutti_barrier(world, NULL) < 0 ? stop(world) : 0;
}

static int play_stall(int rank, const char *how)
{
    tutti_comm *world;
    float sum = 0, one = 1;
    uint64_t turns = 0;
    struct timespec hour = { 3600, 0 };
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_all_reduce(&one, &sum, 1, TUTTI_F32, TUTTI_SUM, world, NULL) < 0) return stop(world);
    for (int i = 0; !strcmp(how, "late") && i < 400; i++)
        if (tutti_barrier(world, NULL) < 0) return stop(world);
    if (tutti_rank(world) == rank) {
        dprintf(STDOUT_FILENO, "stalled\n");
        for (int i = 0; !strcmp(how, "late") && i < 20; i++)
            tutti_send(&one, 1, TUTTI_F32, 0, i, world, NULL);
        for (int fd = 3; !strcmp(how, "close") && fd < 1024; fd++)
            close(fd);
        if (!strcmp(how, "recv"))
            tutti_recv(&sum, 1, TUTTI_F32, 0, 7, NULL, world, NULL);
        for (; !strcmp(how, "spin") && getppid() != 1; turns++)
            if (turns == UINT64_MAX) return 1;
        if (strcmp(how, "meet") != 0) nanosleep(&hour, NULL);
    }
    if (!strcmp(how, "work")) {
        tutti_work *work;
        tutti_call call = { .work = &work, .timeout_ms = 3600000 };
        if (tutti_barrier(world, &call) < 0 || tutti_wait(work, -1) < 0) return stop(world);
    }
    do
        if (tutti_barrier(world, NULL) < 0) return stop(world);
    while (!strcmp(how, "meet"));
    return 0;
}

static int play_print(const char *how)
{
    printf("first\n");
    printf("second\n");
    if (!strcmp(how, "kill")) raise(SIGKILL);
    for (pid_t parent = getppid(); getppid() == parent;)
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    return 0;
}

/* The others leave the barrier under way, and tell the late one that they have arrived. */
static int play_tardy(int who, int rounds)
{
    tutti_comm *world;
    if (tutti_init(&world, NULL) < 0) return stop(NULL);
    int rank = tutti_rank(world), size = tutti_size(world);
    for (int i = 0; i < rounds; i++) {
        int late = who < 0 ? i % size : who;
        tutti_work *work;
        const tutti_call call = { .work = &work };
        if (rank != late) {
            if (tutti_barrier(world, &call) < 0) return stop(world);
            if (tutti_send(NULL, 0, TUTTI_I8, late, i, world, NULL) < 0) return stop(world);
            if (tutti_wait(work, -1) < 0) return stop(world);
            continue;
        }
        for (int p = 0; p < size; p++)
            if (p != rank && tutti_recv(NULL, 0, TUTTI_I8, p, i, NULL, world, NULL) < 0)
                return stop(world);
        if (tutti_barrier(world, NULL) < 0) return stop(world);
    }
    if (rank == 0) dprintf(STDOUT_FILENO, "tardy\n");
    nanosleep(&(struct timespec){ 3600, 0 }, NULL);
    return 0;
}

static int play_count(int number)
{
    sigset_t set;
    struct timespec ever = { 60, 0 }, moment = { 0, 400000000 };
    int count = 0;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    dprintf(STDOUT_FILENO, "ready\n");
    while (sigtimedwait(&set, NULL, count ? &moment : &ever) == number)
        count++;
    dprintf(STDOUT_FILENO, "got %d\n", count);
    return 0;
}

/* ---- at a terminal ---- */

static _Noreturn void terminal_child(const char *name, char **argv)
{
    setsid();
    int fd = open(name, O_RDWR);         /* the first terminal of a new session is its own */
    if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0) _exit(99);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    if (fd > 2) close(fd);
    execvp(argv[0], argv);
    _exit(98);
}

static int shown(const char *all, const char *text)
{
    int n = 0;
    for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static int play_terminal(const char *text, int times, char key, char **argv)
{
    static char all[65536];
    size_t used = 0;
    int status, typed = 0, terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0) {
        perror("actor: no terminal");
        return 77;
    }
    char name[64];
    snprintf(name, sizeof name, "%s", ptsname(terminal));
    pid_t pid = fork();
    if (pid == 0) {
        close(terminal);
        terminal_child(name, argv);
    }
    struct timespec moment = { 0, 200000000 };
    /* Ends with EIO when nobody has the terminal open any more. */
    for (ssize_t n;
         used < sizeof all - 1 && (n = read(terminal, all + used, sizeof all - 1 - used)) > 0;) {
        if (write(STDOUT_FILENO, all + used, (size_t)n) < 0) break;
        used += (size_t)n;
        if (!typed && shown(all, text) >= times) {
            kill(pid, SIGSTOP);
            typed = write(terminal, &key, 1) == 1;
            nanosleep(&moment, NULL);
            kill(pid, SIGCONT);
        }
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "barrier")) return play_barrier();
    if (!strcmp(what, "twice")) return play_barrier() || play_barrier();
    if (!strcmp(what, "turns") && argc > 2) return play_turns(atoi(argv[2]));
    if (!strcmp(what, "scatter") && argc > 2) return play_scatter(atoi(argv[2]));
    if (!strcmp(what, "lose") && argc > 3) return play_lose(atoi(argv[2]), argv[3], 0);
    if (!strcmp(what, "miss") && argc > 3) return play_miss(atoi(argv[2]), argv[3]);
    if (!strcmp(what, "shrink") && argc > 3) return play_shrink(atoi(argv[2]), argv[3]);
    if (!strcmp(what, "differ") && argc > 3) return play_differ(atoi(argv[2]), argv[3]);
    if (!strcmp(what, "stall") && argc > 3) return play_stall(atoi(argv[2]), argv[3]);
    if (!strcmp(what, "tardy") && argc > 3) return play_tardy(atoi(argv[2]), atoi(argv[3]));
    if (!strcmp(what, "fat") && argc > 2)
        return play_lose(atoi(argv[2]), "kill", (size_t)256 << 20);
    if (!strcmp(what, "early") && argc > 2) return play_early(atoi(argv[2]));
    if (!strcmp(what, "print") && argc > 2) return play_print(argv[2]);
    if (!strcmp(what, "count") && argc > 2) return play_count(atoi(argv[2]));
    if (!strcmp(what, "terminal") && argc > 5)
        return play_terminal(argv[2], atoi(argv[3]), (char)atoi(argv[4]), argv + 5);
    fprintf(stderr, "actor: what is '%s'?\n", what);
    return 99;
}
