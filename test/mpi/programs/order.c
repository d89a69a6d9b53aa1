/* What a program may do around its collectives: each scene is correct MPI, and ends under any MPI.
 * The name of a scene is the argument; it prints "ok" by rank 0. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 24 };
#define WORLD MPI_COMM_WORLD
static int rank, size, wrong;

static void check(int right, int line)
{
    if (!right) {
        fprintf(stderr, "order.c:%d: rank %d: not so\n", line, rank);
        wrong = 1;
    }
}
#define CHECK(x) check(x, __LINE__)

static int sum(MPI_Comm comm)
{
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    return all;
}

/* A barrier stands between the end of an epoch and the only question for it. */
static void window(void)
{
    MPI_Win win;
    MPI_Group all, first, others;
    int x = 0, flag = 1;
    MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, WORLD, &win);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, (int[]){ 0 }, &first);
    MPI_Group_excl(all, 1, (int[]){ 0 }, &others);
    if (rank == 0) {
        MPI_Win_start(others, 0, win);
        MPI_Barrier(WORLD);
        MPI_Win_complete(win);
        MPI_Barrier(WORLD);
    } else {
        MPI_Win_post(first, 0, win);
        MPI_Barrier(WORLD);
        MPI_Barrier(WORLD);
        MPI_Win_test(win, &flag);
        CHECK(flag);
        if (!flag)
            MPI_Win_wait(win);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&first);
    MPI_Group_free(&others);
    MPI_Win_free(&win);
}

/* The peer's send needs turns of this rank's progress, while it waits in tutti: in the first
 * collective of a communicator, and in later ones. */
static void progress(void)
{
    MPI_Comm comm;
    char *b = calloc(LARGE, 1);
    MPI_Comm_dup(WORLD, &comm);
    for (int way = 0; way < 4; way++) {
        MPI_Comm in = way % 2 ? comm : WORLD;
        MPI_Request q = MPI_REQUEST_NULL;
        if (rank == 0)
            MPI_Irecv(b, LARGE, MPI_CHAR, 1, way, WORLD, &q);
        else if (rank == 1)
            MPI_Send(b, LARGE, MPI_CHAR, 0, way, WORLD);
        if (way < 2)
            MPI_Barrier(in);
        else
            CHECK(sum(in) == size);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        if (rank == 1)                               /* the other way round: the sender waits */
            MPI_Isend(b, LARGE, MPI_CHAR, 0, way, WORLD, &q);
        else if (rank == 0)
            MPI_Recv(b, LARGE, MPI_CHAR, 1, way, WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(in);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&comm);
    free(b);
    window();
}

/* Collectives under way of the MPI's own, before, around and behind those of tutti. */
static void nonblocking(void)
{
    int one = 1, all[8] = { 0 }, x = 7;
    MPI_Request q[4];
    MPI_Status status[4];
    for (int i = 0; i < 50; i++) {
        MPI_Iallreduce(&one, &all[0], 1, MPI_INT, MPI_SUM, WORLD, &q[0]);
        MPI_Barrier(WORLD);
        MPI_Ibarrier(WORLD, &q[1]);
        x = rank == i % size ? 100 + i : 0;
        MPI_Bcast(&x, 1, MPI_INT, i % size, WORLD);
        CHECK(x == 100 + i);
        MPI_Iallreduce(&one, &all[1], 1, MPI_INT, MPI_SUM, WORLD, &q[2]);
        CHECK(sum(WORLD) == size);
        MPI_Irecv(&all[2], 1, MPI_INT, (rank + size - 1) % size, 3, WORLD, &q[3]);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 3, WORLD);
        MPI_Waitall(4, q, status);
        CHECK(all[0] == size && all[1] == size && all[2] == (rank + size - 1) % size);
    }
}

static int copies, deletes;
static int copied(MPI_Comm c, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)c, (void)key, (void)extra;
    copies++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)extra, (void)value;
    deletes++;
    return MPI_SUCCESS;
}

/* Communicators come and go, many of them, with attributes; handles are used again. */
static void comms(void)
{
    int key, found, n = 0;
    int *value;
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_set_attr(WORLD, key, &n);
    for (int i = 0; i < 100; i++) {
        MPI_Comm dup, half, low = MPI_COMM_NULL;
        MPI_Group group, first;
        MPI_Comm_dup(WORLD, &dup);
        MPI_Comm_split(dup, rank % 2, rank, &half);
        MPI_Comm_group(WORLD, &group);
        MPI_Group_incl(group, 2, (int[]){ 1, 0 }, &first);
        MPI_Comm_create(WORLD, first, &low);
        CHECK(sum(dup) == size);
        CHECK(sum(half) == (size + 1 - rank % 2) / 2);
        if (low != MPI_COMM_NULL) {
            int me = rank, from = -1;
            MPI_Scan(&me, &from, 1, MPI_INT, MPI_MAX, low);          /* rank 1 is first there */
            CHECK(from == 1);
            MPI_Comm_free(&low);
        }
        MPI_Comm_get_attr(dup, key, &value, &found);
        CHECK(found && value == &n);
        MPI_Comm_free(&dup);
        CHECK(sum(half) == (size + 1 - rank % 2) / 2);
        MPI_Comm_free(&half);
        MPI_Group_free(&first);
        MPI_Group_free(&group);
    }
    CHECK(copies == 100 && deletes == 100);
    MPI_Comm_delete_attr(WORLD, key);
    MPI_Comm_free_keyval(&key);
}

/* Two threads make the first collectives of their communicators, in any order. */
static void *thread(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    long bad = 0;
    for (int i = 0; i < 200; i++)
        bad += sum(comm) != size;
    return (void *)bad;
}

static void threads(void)
{
    for (int i = 0; i < 5; i++) {
        pthread_t t[3];
        MPI_Comm c[3];
        void *bad;
        for (int k = 0; k < 3; k++)
            MPI_Comm_dup(WORLD, &c[k]);
        for (int k = 0; k < 3; k++)                  /* another order on each rank */
            pthread_create(&t[k], NULL, thread, &c[(k + rank) % 3]);
        for (int k = 0; k < 3; k++) {
            pthread_join(t[k], &bad);
            CHECK(!bad);
        }
        for (int k = 0; k < 3; k++)
            MPI_Comm_free(&c[k]);
    }
}

/* An attribute's end inside MPI_Finalize is a collective. */
static int last(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)extra, (void)value;
    CHECK(sum(WORLD) == size);
    if (rank == 0 && !wrong)
        puts("ok");
    fflush(stdout);
    return MPI_SUCCESS;
}

static void finalize(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    CHECK(sum(WORLD) == size);
}

/* What falls through works beside what goes through. */
static void own(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += 2 * ((int *)in)[i];
}

static void falls(void)
{
    struct { double x; int at; } mine = { rank, rank }, best;
    long double ld = 1, lds = 0;
    MPI_Comm half, between;
    MPI_Op op;
    int one = 1, all = 0;
    MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, WORLD);
    CHECK(best.at == size - 1);
    MPI_Allreduce(&ld, &lds, 1, MPI_LONG_DOUBLE, MPI_SUM, WORLD);
    CHECK(lds == size);
    MPI_Op_create(own, 1, &op);
    MPI_Allreduce(&one, &all, 1, MPI_INT, op, WORLD);
    CHECK(all >= size);
    MPI_Op_free(&op);
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, WORLD, 1 - rank % 2, 9, &between);
    MPI_Barrier(between);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, between);
    CHECK(all == (size + rank % 2) / 2);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* Who only gives may be done before the others have begun, and may free the communicator. */
static void rooted(void)
{
    for (int i = 0; i < 60; i++) {
        MPI_Comm comm;
        int root = i % size, x[3] = { -1, -1, -1 }, all[3] = { 0 };
        double part = 1.0 / (3 + 7 * rank + i), whole = 0, same = 0;
        MPI_Request q = MPI_REQUEST_NULL;
        MPI_Comm_dup(WORLD, &comm);
        for (int k = 0; k < 3; k++)
            x[k] = rank == root ? i + k : -1;
        MPI_Irecv(&all[2], 1, MPI_INT, (rank + 1) % size, i, WORLD, &q);
        MPI_Bcast(x, 1 + i % 3, MPI_INT, root, comm);
        MPI_Reduce(x, all, 1, MPI_INT, MPI_SUM, size - 1 - root, comm);
        MPI_Reduce(&part, &whole, 1, MPI_DOUBLE, MPI_SUM, root, comm);
        if (i % 2) {                                 /* tutti folds by rank, whatever the call */
            MPI_Allreduce(&part, &same, 1, MPI_DOUBLE, MPI_SUM, comm);
            CHECK(rank != root || whole == same);
        }
        MPI_Comm_free(&comm);
        MPI_Send(&i, 1, MPI_INT, (rank + size - 1) % size, i, WORLD);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        CHECK(x[0] == i && x[i % 3] == i + i % 3 && all[2] == i);
        CHECK(rank != size - 1 - root || all[0] == size * i);
    }
}

/* A rank that waits for a message of the root turns the MPI's progress. */
static void rooted_progress(void)
{
    char *b = calloc(LARGE, 1);
    int x = 1, all = 0;
    for (int way = 0; way < 2; way++) {
        MPI_Request q = MPI_REQUEST_NULL;
        if (rank == 0)
            MPI_Irecv(b, LARGE, MPI_CHAR, 1, way, WORLD, &q);
        else if (rank == 1)
            MPI_Send(b, LARGE, MPI_CHAR, 0, way, WORLD);
        if (way)
            MPI_Bcast(&x, 1, MPI_INT, 1, WORLD);
        else
            MPI_Reduce(&x, &all, 1, MPI_INT, MPI_SUM, 0, WORLD);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    CHECK(rank || all == size);
    free(b);
}

/* Two ranks try tutti and the MPI by turns, and agree on the faster, however long each of them sees
 * its calls take: rank 1 is always late. */
enum { ROUNDS = 40, FIELD = 3000 };
static void contest(void)
{
    static int x[FIELD], y[2 * FIELD];
    for (int n = 10; n <= FIELD; n *= 10)
        for (int i = 0; i < ROUNDS; i++) {
            int root = i % size;
            for (int k = 0; k < n; k++)
                x[k] = i + k + rank;
            for (volatile int k = 0; rank == 1 && k < 20000; k++)
                continue;
            MPI_Allreduce(x, y, n, MPI_INT, MPI_SUM, WORLD);
            CHECK(y[n - 1] == 2 * (i + n - 1) + 1);
            MPI_Reduce(x, y, n, MPI_INT, MPI_SUM, root, WORLD);
            CHECK(rank != root || y[n / 2] == 2 * (i + n / 2) + 1);
            MPI_Allgather(x, n, MPI_INT, y, n, MPI_INT, WORLD);
            CHECK(y[0] == i && y[2 * n - 1] == i + n);
            MPI_Alltoall(x, n / 2, MPI_INT, y, n / 2, MPI_INT, WORLD);
            CHECK(y[0] == i + rank * (n / 2) && y[n - 1] == i + rank * (n / 2) + n / 2);
            MPI_Reduce_scatter_block(x, y, n / 2, MPI_INT, MPI_SUM, WORLD);
            CHECK(y[0] == 2 * (i + rank * (n / 2)) + 1);
            MPI_Bcast(x, n, MPI_INT, root, WORLD);
            CHECK(x[0] == i + root && x[n - 1] == i + n - 1 + root);
        }
}

/* The ranks disagree on the count: an error of MPI, on all of them; at the root, which does not
 * wait for the others, in its next call. */
static void mismatch(void)
{
    int x[2] = { 0 }, class = 0;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    int r = MPI_Bcast(x, rank == 0 ? 1 : 2, MPI_INT, 0, WORLD);
    if (rank == 0 && r == MPI_SUCCESS)
        r = MPI_Barrier(WORLD);
    CHECK(r != MPI_SUCCESS);
    MPI_Error_class(r, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
}

/* The same of a few bytes among three, which the root gives without waiting: the others' error, and
 * of all in the next call. */
static void few_mismatch(int count, MPI_Op op)
{
    int x[3] = { 0 }, y[3], r;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    if (rank == 0 || op == MPI_OP_NULL)
        r = MPI_Bcast(x, rank == 0 ? 2 : count, MPI_INT, 0, WORLD);
    else
        r = MPI_Reduce(x, y, count, MPI_INT, op, rank, WORLD);
    CHECK(rank == 0 || r != MPI_SUCCESS);
    CHECK(MPI_Barrier(WORLD) != MPI_SUCCESS);
}

static void mismatch_longer(void) { few_mismatch(1, MPI_OP_NULL); }
static void mismatch_shorter(void) { few_mismatch(3, MPI_OP_NULL); }
static void mismatch_other(void) { few_mismatch(2, MPI_SUM); }

/* Errors that MPI finds are the MPI's. */
static int handled;
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled = *code;
}

static void errors(void)
{
    int x = 0, class = 0;
    MPI_Errhandler h;
    MPI_Comm_create_errhandler(handler, &h);
    MPI_Comm_set_errhandler(WORLD, h);
    int r = MPI_Bcast(&x, 1, MPI_INT, size + 3, WORLD);
    MPI_Error_class(r, &class);
    CHECK(class == MPI_ERR_ROOT && handled == r);
    CHECK(sum(WORLD) == size);
    MPI_Errhandler_free(&h);
}

static int barrier(void) { return MPI_Barrier(WORLD); }

static int trial_field[FIELD], trial_fields[4 * FIELD];
static int gathered(void)
{
    return MPI_Allgather(trial_field, FIELD, MPI_INT, trial_fields, FIELD, MPI_INT, WORLD);
}

/* After so many calls the last rank dies. In the next one the others are told, or ended by the
 * launcher. */
static void death_in(int (*call)(void), int calls)
{
    int class = 0;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < calls; i++)
        call();
    if (rank == size - 1)
        raise(SIGKILL);
    int r = call();
    MPI_Error_class(r, &class);
    printf("rank %d was told: %s\n", rank, r == MPI_SUCCESS ? "nothing" : "an error");
    fflush(stdout);
    _exit(class == MPI_SUCCESS ? 3 : 0);
}

static void death(void) { death_in(barrier, 1); }

/* In the trial the ninth call of its size is the first one of the MPI. */
enum { BEFORE_MPI = 8 };

static void trial_death(void) { death_in(gathered, BEFORE_MPI); }

/* There the ranks are in different collectives: an error on all of them. */
static void trial_mismatch(void)
{
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < BEFORE_MPI; i++) {
        CHECK(gathered() == MPI_SUCCESS);
        MPI_Bcast(trial_field, FIELD, MPI_INT, 0, WORLD);
    }
    int r = rank == 0 ? MPI_Bcast(trial_field, FIELD, MPI_INT, 0, WORLD) : gathered();
    CHECK(r != MPI_SUCCESS);
}

enum { FEW = 48, MANY = 256, BLOCK = 64 << 10 };

/* Blocks that no malloc maps one by one; whether freed ones stay the program's. A collective
 * before and after they are freed, or none. */
static int freed_stay(int n, int collectives)
{
    static char *blocks[MANY];
    for (int b = 0; b < n; b++) {
        blocks[b] = malloc(BLOCK);
        memset(blocks[b], 1, BLOCK);
    }
    char *end = sbrk(0);
    CHECK(end > blocks[n - 1]);
    if (collectives)
        CHECK(sum(WORLD) == size);
    for (int b = n - 1; b >= 0; b--)
        free(blocks[b]);
    int stay = sbrk(0) == (void *)end;
    if (collectives)
        CHECK(sum(WORLD) == size);
    return stay;
}

/* What the library keeps of its first calls, it has then: else it would lie at the heap's end. */
static void warm(void)
{
    enum { CALLS = 4 };
    for (int call = 0; call < CALLS; call++)
        CHECK(sum(WORLD) == size);
}

/* The end of the heap goes down and up around each call: at last it stays. */
static int learnt(int n)
{
    enum { STEPS = 40 };
    warm();
    CHECK(!freed_stay(n, 0));
    for (int step = 0; step < STEPS; step++)
        freed_stay(n, 1);
    return freed_stay(n, 0);
}
static void heap(void) { CHECK(learnt(FEW)); }
static void heap_bounded(void) { CHECK(!learnt(FEW)); }

/* It goes down once, as at the end of a phase: glibc's bound stands. */
static void heap_once(void)
{
    enum { CALLS = 1000 };
    warm();
    for (int phase = 0; phase < 2; phase++) {
        freed_stay(FEW, 1);
        for (int call = 0; call < CALLS; call++)
            CHECK(sum(WORLD) == size);
    }
    CHECK(!freed_stay(FEW, 0));
}

/* Two times 6 MiB lie free further down, more than any block that glibc would map. */
static void heap_holes(void)
{
    enum { HOLE = 96 };
    char *freed[2][HOLE], *kept[2];
    for (int h = 0; h < 2; h++) {
        for (int b = 0; b < HOLE; b++)
            freed[h][b] = malloc(BLOCK);
        kept[h] = malloc(BLOCK);
        memset(kept[h], h, BLOCK);
    }
    for (int h = 0; h < 2; h++)
        for (int b = 0; b < HOLE; b++)
            free(freed[h][b]);
    CHECK(learnt(MANY));
    CHECK(kept[0][1] + kept[1][1] == 1);
    free(kept[0]);
    free(kept[1]);
}

static const struct { const char *name; void (*play)(void); } scenes[] = {
    { "progress", progress }, { "nonblocking", nonblocking }, { "comms", comms },
    { "threads", threads }, { "finalize", finalize }, { "falls", falls },
    { "contest", contest }, { "rooted", rooted }, { "rooted_progress", rooted_progress },
    { "mismatch", mismatch }, { "mismatch_longer", mismatch_longer },
    { "mismatch_shorter", mismatch_shorter },
    { "mismatch_other", mismatch_other }, { "errors", errors }, { "death", death },
    { "trial_death", trial_death }, { "trial_mismatch", trial_mismatch },
    { "heap", heap }, { "heap_bounded", heap_bounded }, { "heap_once", heap_once },
    { "heap_holes", heap_holes },
};

int main(int argc, char **argv)
{
    int level = 0, many = argc > 1 && (!strcmp(argv[1], "threads") || argc > 2);
    MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        if (argc > 1 && !strcmp(argv[1], scenes[i].name))
            scenes[i].play();
    if (rank == 0 && !wrong && argc > 1 && strcmp(argv[1], "finalize"))
        puts("ok");
    fflush(stdout);
    if (argc > 1 && !strncmp(argv[1], "mismatch", strlen("mismatch"))) {
        /* All have printed: a launcher may end the others when one ends without MPI_Finalize. */
        for (int p = 0; p < size; p++)
            MPI_Sendrecv(&rank, 1, MPI_INT, p, 1, &level, 1, MPI_INT, p, 1, WORLD,
                         MPI_STATUS_IGNORE);
        _exit(wrong);                                /* the communicator is broken for good */
    }
    MPI_Finalize();
    return wrong;
}
