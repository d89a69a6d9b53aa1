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

/* The ranks disagree on the count: an error of MPI, on all of them. */
static void mismatch(void)
{
    int x[2] = { 0 }, class = 0;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    int r = MPI_Bcast(x, rank == 0 ? 1 : 2, MPI_INT, 0, WORLD);
    CHECK(r != MPI_SUCCESS);
    MPI_Error_class(r, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
}

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

/* The last rank dies; the others are told, or ended by the launcher. */
static void death(void)
{
    int class = 0;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(WORLD);
    if (rank == size - 1)
        raise(SIGKILL);
    int r = MPI_Barrier(WORLD);
    MPI_Error_class(r, &class);
    printf("rank %d was told: %s\n", rank, r == MPI_SUCCESS ? "nothing" : "an error");
    fflush(stdout);
    _exit(class == MPI_SUCCESS ? 3 : 0);
}

static const struct { const char *name; void (*play)(void); } scenes[] = {
    { "progress", progress }, { "nonblocking", nonblocking }, { "comms", comms },
    { "threads", threads }, { "finalize", finalize }, { "falls", falls },
    { "mismatch", mismatch }, { "errors", errors }, { "death", death },
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
    if (argc > 1 && !strcmp(argv[1], "mismatch")) {
        /* All have printed: a launcher may end the others when one ends without MPI_Finalize. */
        for (int p = 0; p < size; p++)
            MPI_Sendrecv(&rank, 1, MPI_INT, p, 1, &level, 1, MPI_INT, p, 1, WORLD,
                         MPI_STATUS_IGNORE);
        _exit(wrong);                                /* the communicator is broken for good */
    }
    MPI_Finalize();
    return wrong;
}
