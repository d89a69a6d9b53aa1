/* Each collective that libtutti-mpi stands in front of, by its name and by the MPI's profiling name
 * with the same arguments: the buffers must be the same afterwards, to the last byte, gaps and what
 * lies around included. Ranks describe one signature by different types, and call different forms
 * of one function. Numbers are small whole ones, so every order of folding gives the same. Ends
 * with the number of calls compared. */
#include "either.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 4, COUNTS = 5, BYTES = 1 << 20, AROUND = 64 };
static int rank, size, root, calls, wrong;
static MPI_Comm comm;
static char *sent, *got, *wanted;          /* what is given; into, by tutti and by the MPI */
static const int counts[COUNTS] = { 0, 1, 7, 333, 4000 };

static uint64_t state;
static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

/* The same on all ranks from here on; each has other data. */
static void fill(int salt)
{
    for (size_t i = 0; i < BYTES / sizeof(int); i++) {
        ((int *)sent)[i] = (int)((i * 7 + (size_t)rank * 3 + (size_t)salt) % 11);
        ((int *)got)[i] = ((int *)wanted)[i] = (int)((i * 5 + (size_t)rank + (size_t)salt) % 13);
    }
}

static void compare(const char *what, int type, int count, int here)
{
    calls++;
    if (memcmp(got, wanted, BYTES)) {
        size_t i = 0;
        while (got[i] == wanted[i])
            i++;
        fprintf(stderr, "%s: rank %d of %d, type %d, count %d, %s: byte %zu differs\n", what, rank,
                size, type, count, here ? "in place" : "apart", i);
        wrong++;
    }
}

/* Signature: `n` times six ints, by types that differ in how they lie. *times: how often. */
static MPI_Datatype made[TYPES];
static MPI_Datatype type_of(int which, int n, int *times)
{
    static const int per[TYPES] = { 6, 3, 1, 1 };
    *times = n * per[which];
    return made[which];
}

static void make_types(void)
{
    int lengths[2] = { 2, 4 }, order[3] = { 4, 2, 0 }, pairs[3] = { 2, 2, 2 };
    MPI_Aint places[2] = { 0, 12 };
    MPI_Datatype parts[2] = { MPI_INT, MPI_INT }, gaps;
    made[0] = MPI_INT;
    MPI_Type_contiguous(2, MPI_INT, &made[1]);
    MPI_Type_create_struct(2, lengths, places, parts, &gaps);        /* a hole of four bytes */
    MPI_Type_create_resized(gaps, 0, 32, &made[2]);
    MPI_Type_free(&gaps);
    MPI_Type_indexed(3, pairs, order, MPI_INT, &made[3]);            /* no hole, another order */
    for (int i = 1; i < TYPES; i++)
        MPI_Type_commit(&made[i]);
}

/* MPI_ in either form into got, PMPI_ into wanted. */
#define BOTH(name, type, count, here, ...) \
    do { \
        char *to = got; \
        (void)to; \
        either_##name(__VA_ARGS__); \
        to = wanted; \
        PMPI_##name(__VA_ARGS__); \
        compare("MPI_" #name, type, count, here); \
    } while (0)

static void move(int count)
{
    int here = (int)draw(2), salt = (int)draw(1000), a, b;
    int out = ((int)draw(TYPES) + rank) % TYPES, in = ((int)draw(TYPES) + 2 * rank) % TYPES;
    MPI_Datatype give = type_of(out, count, &a), get = type_of(in, count, &b);
    const void *from = here ? MPI_IN_PLACE : sent + AROUND;
#define TO (to + AROUND)
    fill(salt);
    BOTH(Bcast, in, count, 0, TO, b, get, root, comm);
    fill(salt + 1);
    BOTH(Allgather, in, count, here, from, a, give, TO, b, get, comm);
    fill(salt + 2);
    BOTH(Alltoall, in, count, here, from, a, give, TO, b, get, comm);
    fill(salt + 3);
    int mine = here && rank == root;
    BOTH(Gather, in, count, here, mine ? from : sent + AROUND, a, give, rank == root ? TO : NULL, b,
         get, root, comm);
    fill(salt + 4);
    BOTH(Scatter, in, count, here, rank == root ? sent + AROUND : NULL, a, give,
         mine ? MPI_IN_PLACE : (void *)TO, b, get, root, comm);
}

/* Uneven: rank p has (count + p) % 50 of them, blocks apart from each other. */
static void move_uneven(int count)
{
    int here = (int)draw(2), salt = (int)draw(1000), out = (int)draw(TYPES), in = (int)draw(TYPES);
    int *n = calloc((size_t)size * 6, sizeof *n), *at = n + size, *m = at + size, *to_at = m + size;
    int *all = to_at + size, *all_at = all + size, per, end = 0;
    MPI_Datatype give = type_of(out, 1, &per);
    for (int p = 0; p < size; p++) {                 /* p gives q as much as both are far apart */
        n[p] = (count + p + rank) % 50 * per;
        at[p] = end + 3;
        end = at[p] + n[p];
    }
    MPI_Datatype get = type_of(in, 1, &per);
    end = 0;
    for (int p = 0; p < size; p++) {
        m[p] = (count + p + rank) % 50 * per;
        to_at[p] = end + 2;
        end = to_at[p] + m[p];
    }
    fill(salt);
    BOTH(Alltoallv, in, count, here, here ? MPI_IN_PLACE : sent, n, at, give, TO, m, to_at, get,
         comm);
    end = 0;
    for (int p = 0; p < size; p++) {
        all[p] = (count + p) % 50 * per;
        all_at[p] = end + 1;
        end = all_at[p] + all[p];
    }
    int own, mine = here && rank == root;
    give = type_of(out, (count + rank) % 50, &own);
    fill(salt + 1);
    BOTH(Allgatherv, in, count, here, here ? MPI_IN_PLACE : sent, own, give, TO, all, all_at, get,
         comm);
    fill(salt + 2);
    BOTH(Gatherv, in, count, here, mine ? MPI_IN_PLACE : sent, own, give, TO, all, all_at, get,
         root, comm);
    fill(salt + 3);
    BOTH(Scatterv, in, count, here, sent, all, all_at, get, mine ? MPI_IN_PLACE : (void *)TO, own,
         give, root, comm);
    free(n);
}

static void fold(int count)
{
    static const struct { MPI_Datatype type; int bytes, floats; } kinds[] = {
        { MPI_INT, 4, 0 }, { MPI_UNSIGNED_CHAR, 1, 0 }, { MPI_SHORT, 2, 0 }, { MPI_LONG, 8, 0 },
        { MPI_INT64_T, 8, 0 }, { MPI_DOUBLE, 8, 1 }, { MPI_FLOAT, 4, 1 }, { MPI_INTEGER, 4, 0 },
    };
    const MPI_Op ops[] = {
        MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,
        MPI_LXOR
    };
    unsigned k = draw(sizeof kinds / sizeof kinds[0]);
    MPI_Op op = ops[draw(kinds[k].floats ? 4 : 10)];
    MPI_Datatype type = kinds[k].type;
    int here = (int)draw(2), salt = (int)draw(1000), *n = calloc((size_t)size, sizeof *n);
    const void *from = here ? MPI_IN_PLACE : sent + AROUND;
    for (int f = 0; f < 6; f++) {
        fill(salt + f);
        if (kinds[k].floats)                         /* whole numbers; 0 to 3 for products */
            for (int i = 0; i < BYTES / 8; i++) {
                double x = (double)((i + rank + salt) % 4);
                if (kinds[k].bytes == 8)
                    ((double *)sent)[i] = ((double *)got)[i] = ((double *)wanted)[i] = x;
                else
                    ((float *)sent)[i] = ((float *)got)[i] = ((float *)wanted)[i] = (float)x;
            }
        for (int p = 0; p < size; p++)
            n[p] = f == 4 ? (count + p) % 40 : count % 100;
        int mine = here && rank == root;
        if (f == 0)
            BOTH(Allreduce, (int)k, count, here, from, TO, count, type, op, comm);
        if (f == 1) {                                /* MPICH 4.0 itself dies of it in place */
            if (mine)
                memcpy(sent, wanted, BYTES);
            either_Reduce(mine && size > 1 ? from : sent + AROUND,
                          rank == root ? got + AROUND : NULL, count, type, op, root, comm);
            PMPI_Reduce(sent + AROUND, rank == root ? wanted + AROUND : NULL, count, type, op, root,
                        comm);
            compare("MPI_Reduce", (int)k, count, here);
        }
        if (f == 2)
            BOTH(Scan, (int)k, count, here, from, TO, count, type, op, comm);
        if (f == 3)
            BOTH(Exscan, (int)k, count, here, from, TO, count, type, op, comm);
        if (f == 4 && !here)                         /* in place the rest is anything */
            BOTH(Reduce_scatter, (int)k, count, here, from, TO, n, type, op, comm);
        if (f == 5 && !here)
            BOTH(Reduce_scatter_block, (int)k, count, here, from, TO, count % 100, type, op, comm);
    }
    free(n);
}

/* In place, the result at the begin is what counts. */
static void fold_in_place(int count)
{
    int *n = calloc((size_t)size, sizeof *n);
    for (int f = 0; f < 2; f++) {
        fill((int)draw(1000));
        for (int p = 0; p < size; p++)
            n[p] = f ? (count + p) % 40 : count % 100;
        for (int side = 0; side < 2; side++) {
            char *to = side ? wanted : got;
            if (f && side)
                PMPI_Reduce_scatter(MPI_IN_PLACE, to, n, MPI_INT, MPI_SUM, comm);
            else if (f)
                either_Reduce_scatter(MPI_IN_PLACE, to, n, MPI_INT, MPI_SUM, comm);
            else if (side)
                PMPI_Reduce_scatter_block(MPI_IN_PLACE, to, n[0], MPI_INT, MPI_SUM, comm);
            else
                either_Reduce_scatter_block(MPI_IN_PLACE, to, n[0], MPI_INT, MPI_SUM, comm);
            memset(to + 4 * n[rank], 0, (size_t)(BYTES - 4 * n[rank]));
        }
        compare("reduce_scatter in place", f, count, 1);
    }
    free(n);
}

/* An absolute address, from MPI_BOTTOM. */
static void bottom(void)
{
    MPI_Aint at;
    MPI_Datatype there;
    for (int side = 0; side < 2; side++) {
        char *to = side ? wanted : got;
        if (!side)
            fill(5);
        MPI_Get_address(to + AROUND, &at);
        MPI_Type_create_hindexed(1, (int[]){ 24 }, &at, MPI_INT, &there);
        MPI_Type_commit(&there);
        if (side)
            PMPI_Bcast(MPI_BOTTOM, 1, there, root, comm);
        else
            either_Bcast(MPI_BOTTOM, 1, there, root, comm);
        MPI_Type_free(&there);
    }
    compare("MPI_BOTTOM", 0, 24, 0);
}

static int few;                            /* fewer calls, on one communicator */

static void all_on(MPI_Comm on)
{
    comm = on;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    state = 12345;
    for (int c = 0; c < COUNTS; c++)
        for (int again = 0; again < (few ? 1 : 4); again++) {
            root = (int)draw((unsigned)size);
            MPI_Barrier(comm);
            move(counts[c] / size);
            move_uneven(counts[c]);
            fold(counts[c]);
            fold_in_place(counts[c]);
        }
    bottom();
}

int main(int argc, char **argv)
{
    MPI_Comm made_of[4];
    int me, flag, provided;
    bool threads = argc > 1 && !strcmp(argv[1], "threads");
    /* again and again on one: the fifth call of a kind and size is the first of the MPI's trial */
    bool tried = argc > 1 && !strcmp(argv[1], "tried");
    few = argc > 1 && !strcmp(argv[1], "few");
    if (threads)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    sent = malloc(BYTES);
    got = malloc(BYTES);
    wanted = malloc(BYTES);
    make_types();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (!few) {
        if (!tried)
            all_on(MPI_COMM_WORLD);
        all_on(MPI_COMM_SELF);
    }
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &made_of[0]);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &made_of[1]);
    MPI_Comm_split(made_of[0], 0, -me, &made_of[2]);             /* the other way round */
    MPI_Comm_idup(made_of[2], &made_of[3], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = few ? 3 : 0; i < 4 + tried; i++)
        all_on(made_of[tried ? 0 : i]);
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&made_of[i]);
    MPI_Initialized(&flag);
    for (int i = 1; i < TYPES; i++)
        MPI_Type_free(&made[i]);
    int sum[2] = { calls, wrong }, total[2];
    PMPI_Allreduce(sum, total, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("%d compared, %d wrong\n", total[0], total[1]);
    if (few && argc > 2) {                           /* a sign that it is over, in a folder */
        char path[4096];
        MPI_Barrier(MPI_COMM_WORLD);
        snprintf(path, sizeof path, "%s/%d", argv[2], me);
        fclose(fopen(path, "w"));
    }
    MPI_Finalize();
    return total[1] != 0;
}
