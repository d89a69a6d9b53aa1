/* A program for hang_test.sh: each way to be stuck that a C program can have, by its name.
 *
 *   hang WAY     all ranks meet, and then stand still for as long as their parent lives
 *
 * The last rank is the one at fault. Deadlines of an hour keep circles from being found. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti.h>
#include <unistd.h>

enum { HOUR_MS = 3600000, LARGE = 4 << 20 };

static const tutti_call hour = { .timeout_ms = HOUR_MS };
static tutti_comm *world;
static int rank, size;
static float large[LARGE / sizeof(float)];

static void sleep_on(void)
{
    for (pid_t parent = getppid(); getppid() == parent;)
        nanosleep(&(struct timespec){ 3600, 0 }, NULL);
    exit(1);
}

static void compute(void)
{
    unsigned long turns = 0;
    for (pid_t parent = getppid(); ++turns % (1 << 16) || getppid() == parent;)
        __asm__ __volatile__("" : : : "memory");
    exit(1);
}

/* Until somebody writes: as from a disk that does not answer. */
static void read_on(void)
{
    char byte;
    const char *path = getenv("HANG_FIFO");
    int fd = open(path ? path : "", O_RDWR);
    if (fd < 0 || read(fd, &byte, 1) != 1) perror("hang: fifo");
}

static void hang_missing(void)
{
    if (rank == 2) compute();
    tutti_barrier(world, NULL);
}

static void hang_stopped(void)
{
    if (rank == 2) raise(SIGSTOP);
    tutti_barrier(world, NULL);
}

static void hang_call(void)
{
    float x = 1;
    if (rank == 2) {
        read_on();
        tutti_recv(&x, 1, TUTTI_F32, 0, 7, NULL, world, &hour);
    }
    tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, &hour);
}

static void hang_comm(void)
{
    tutti_comm *pair;
    if (rank >= 2 && tutti_comm_create(world, (int[]){ 2, 3 }, 2, &pair) < 0) exit(1);
    if (rank == 3) sleep_on();
    if (rank == 2) {
        read_on();
        tutti_barrier(pair, NULL);
    }
    tutti_barrier(world, NULL);
}

static void hang_crossed(void)
{
    tutti_comm *other;
    if (tutti_comm_split(world, 0, rank, &other) < 0) exit(1);
    if (rank == 1) read_on();
    tutti_barrier(rank == 0 ? world : other, &hour);
    tutti_barrier(rank == 0 ? other : world, &hour);
}

static void hang_read(void)
{
    if (rank == 2) read_on();
    tutti_barrier(world, NULL);
}

static void hang_message(void)
{
    if (rank == 0) tutti_send(large, LARGE / sizeof(float), TUTTI_F32, 2, 7, world, NULL);
    sleep_on();
}

static void hang_turn(void)
{
    if (rank == 0) sleep_on();
    tutti_turn_begin(world, NULL);
}

static void hang_key(void)
{
    char value[8];
    size_t room = sizeof value;
    if (rank < 2) sleep_on();
    tutti_get("epoch/7", value, &room, world, NULL);
}

static void hang_deadline(void)
{
    if (rank == 2) sleep_on();
    tutti_barrier(world, &hour);
}

/* The others have their error, and stay: as a program that only logs it. */
static void hang_dead(void)
{
    signal(SIGTERM, SIG_IGN);
    if (rank == 2) raise(SIGKILL);
    tutti_barrier(world, NULL);
    sleep_on();
}

/* Not a hang: what ps_test.sh looks at, a comm that has failed under ranks that go on. */
static void hang_mismatch(void)
{
    float x = 1;
    if (rank == 2) tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL);
    else tutti_barrier(world, NULL);
    sleep_on();
}

/* The same, but all agree that it has failed. */
static void hang_agreed(void)
{
    float x = 1;
    int flag = 1;
    if (rank == 2) tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL);
    else tutti_barrier(world, NULL);
    if (tutti_comm_agree(world, &flag) < 0) exit(1);
    sleep_on();
}

static void hang_aborted(void)
{
    tutti_comm *other;
    if (tutti_comm_split(world, 0, rank, &other) < 0) exit(1);
    if (rank == 2) tutti_comm_abort(other, "enough");
    else tutti_barrier(other, NULL);
    sleep_on();
}

static const struct { const char *name; void (*go)(void); } ways[] = {
    { "missing", hang_missing }, { "call", hang_call }, { "comm", hang_comm },
    { "crossed", hang_crossed }, { "stopped", hang_stopped }, { "read", hang_read },
    { "message", hang_message }, { "turn", hang_turn }, { "key", hang_key },
    { "deadline", hang_deadline }, { "dead", hang_dead }, { "mismatch", hang_mismatch },
    { "agreed", hang_agreed }, { "aborted", hang_aborted },
};

int main(int argc, char **argv)
{
    const char *mine = getenv("RANK");
    if (argc == 2 && !strcmp(argv[1], "join") && mine && !strcmp(mine, "2")) sleep_on();
    if (tutti_init(&world, NULL) < 0) {
        fprintf(stderr, "hang: %s\n", tutti_explain(NULL));
        return 1;
    }
    rank = tutti_rank(world), size = tutti_size(world);
    tutti_barrier(world, NULL);
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof ways[0]; i++)
        if (!strcmp(argv[1], ways[i].name)) {
            ways[i].go();
            fprintf(stderr, "hang: rank %d of %d: %s\n", rank, size, tutti_explain(world));
            return 1;
        }
    return 99;
}
