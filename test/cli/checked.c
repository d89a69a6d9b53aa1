/* A program for memcheck_test.sh: correct, and with a bit of everything that the library does.
 *
 *   checked FILE         ends with 0, and frees all
 *   checked FILE leave   the same, but it ends with its world open
 *   checked FILE wrong   a mistake that memcheck finds: it branches on what was never written
 *
 * FILE: a name for a file of some bytes. Where a call fails, 1 and what tutti_explain says. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>

/* bytes: in the arrival's line, in a slot, in a pipeline */
enum { SMALL = 8, MIDDLE = 4096, LARGE = 1 << 17, FILE_BYTES = 50000 };

static tutti_comm *world;
static int rank, size;

static void must(int error, const char *what)
{
    if (error >= 0)
        return;
    fprintf(stderr, "checked: %s: %s: %s\n", what, tutti_strerror(error), tutti_explain(world));
    exit(1);
}

static void reduce_and_gather(size_t bytes)
{
    size_t n = bytes / sizeof(float), wrong = 0;
    float *mine = malloc(bytes), *all = malloc(bytes * (size_t)size);
    if (!mine || !all)
        exit(1);
    for (size_t i = 0; i < n; i++)
        mine[i] = (float)rank;
    must(tutti_all_gather(mine, all, n, TUTTI_F32, world, NULL), "all_gather");
    must(tutti_all_to_all(all, all, n, TUTTI_F32, world, NULL), "all_to_all");
    must(tutti_all_reduce(mine, mine, n, TUTTI_F32, TUTTI_SUM, world, NULL), "all_reduce");
    for (size_t i = 0; i < n; i++)
        wrong += mine[i] != (float)(size * (size - 1) / 2);
    must(tutti_broadcast(mine, n, TUTTI_F32, size - 1, world, NULL), "broadcast");
    must(wrong ? -1 : 0, "the sum");
    free(mine);
    free(all);
}

static void messages(size_t bytes)
{
    char *out = calloc(1, bytes), *in = malloc(bytes);
    tutti_message got;
    tutti_work *work;
    const tutti_call call = { .work = &work };
    if (!out || !in)
        exit(1);
    must(tutti_send(out, bytes, TUTTI_U8, (rank + 1) % size, 7, world, &call), "send");
    must(tutti_recv(in, bytes, TUTTI_U8, TUTTI_ANY, 7, &got, world, NULL), "recv");
    must(tutti_wait(work, 0), "wait");
    must(memcmp(in, out, got.count) ? -1 : 0, "the message");
    free(out);
    free(in);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void order_and_store(void)
{
    int64_t ticket;
    char value[16];
    size_t room = sizeof value;
    must(tutti_once("once", nothing, NULL, world, NULL), "once");
    must(tutti_turn_begin(world, NULL), "turn_begin");
    must(tutti_turn_end(world), "turn_end");
    must(tutti_add("tickets", 1, &ticket, world), "add");
    if (rank == 0)
        must(tutti_set("word", "value", sizeof "value", world), "set");
    must(tutti_get("word", value, &room, world, NULL), "get");
    must(strcmp(value, "value"), "the value");
}

static void memory_and_files(const char *path)
{
    uint64_t *shared = tutti_alloc(LARGE, world);
    char *bytes = calloc(1, FILE_BYTES);
    const void *data;
    size_t read;
    if (!shared || !bytes)
        exit(1);
    memset(shared, rank, LARGE);
    must(tutti_all_reduce(shared, shared, LARGE / sizeof *shared, TUTTI_U64, TUTTI_MAX, world,
                          NULL), "all_reduce of shared memory");
    must(tutti_save(path, bytes, FILE_BYTES, world, NULL), "save");
    must(tutti_load(path, &data, &read, world, NULL), "load");
    must(read != FILE_BYTES || memcmp(data, bytes, read) ? -1 : 0, "the file");
    must(tutti_free((void *)(uintptr_t)data, world), "free of the file");
    must(tutti_free(shared, world), "free");
    free(bytes);
}

static void comms_and_work(void)
{
    tutti_comm *half;
    tutti_work *work;
    const tutti_call call = { .work = &work };
    tutti_figures figures;
    must(tutti_comm_split(world, rank % 2, 0, &half), "split");
    must(tutti_barrier(half, &call), "a barrier under way");
    must(tutti_wait(work, 0), "wait");
    must(tutti_stats(half, &figures), "stats");
    must(tutti_comm_abort(half, "for a try"), "abort");
    must(tutti_barrier(half, NULL) == -ECANCELED ? 0 : -1, "a barrier of an aborted comm");
    must(tutti_comm_free(half), "free of a comm");
}

/* A barrier that is under way on all ranks but one, so that their other threads sleep for long. */
static tutti_comm *beside;
static tutti_work *under_way;

static void begin_beside(int late)
{
    const tutti_call call = { .work = &under_way };
    if ((rank == 0) == late)
        must(tutti_barrier(beside, &call), "a barrier beside");
}

int main(int argc, char **argv)
{
    int *never = malloc(sizeof *never);
    const char *how = argc > 2 ? argv[2] : "";
    if (argc < 2 || !never || tutti_init(&world, NULL) < 0) {
        fprintf(stderr, "checked: %s\n", tutti_explain(NULL));
        return 1;
    }
    rank = tutti_rank(world);
    size = tutti_size(world);
    must(tutti_barrier(world, NULL), "a barrier");
    must(tutti_comm_split(world, 0, rank, &beside), "split");
    begin_beside(0);
    for (int i = 0; i < 3; i++) {
        must(tutti_barrier(world, NULL), "barrier");
        reduce_and_gather((size_t[]){ SMALL, MIDDLE, LARGE }[i]);
        messages((size_t[]){ SMALL, MIDDLE, LARGE }[i]);
    }
    begin_beside(1);
    must(tutti_wait(under_way, 0), "wait for the barrier beside");
    must(tutti_comm_free(beside), "free of the comm beside");
    order_and_store();
    memory_and_files(argv[1]);
    comms_and_work();
    if (!strcmp(how, "wrong") && *never)
        puts("what was never written is not 0");
    free(never);
    if (strcmp(how, "leave"))
        must(tutti_finalize(world), "finalize");
    return 0;
}
