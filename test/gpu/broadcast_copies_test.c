/* ctest: timeout=120 */
/* What a broadcast out of host memory costs: the root, a rank without CUDA, brings its data into
 * the arena once, and each other rank's device takes them from there, straight out of the root's
 * slots, each byte once. Counted by the tests' driver, which knows of every copy how long it is and
 * where it begins. Beside it, what the same costs from a device. */
#include "case_device.h"
#include "host_compare.h"

#include "coll/coll.h"
#include "coll/pipeline.h"
#include "gpu/driver.h"
#include "gpu/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, ROOT = 1, MOST = 3000001, TIMES = 2 };
enum { W_RING };                    /* words of the page: where the root's slots lie, in lines */
enum source { LOADED, OF_ARENA, SOURCES };

/* of f32: inline, inline, eager, pipelined of a round, pipeline of several slots each */
static const size_t sizes[] = { 1, 3, 5000, 100003, MOST };
static enum source source;

static float value(size_t i, size_t round) { return (float)((i * 7 + round * 131) % 65521); }

/* As a program does it that has read its model: out of a file into a buffer. */
static int load(float *buffer, size_t n, size_t round)
{
    FILE *file = tmpfile();
    YES(file);
    for (size_t i = 0; i < n; i++)
        buffer[i] = value(i, round);
    YES(fwrite(buffer, sizeof *buffer, n, file) == n && fflush(file) == 0);
    memset(buffer, 0xee, n * sizeof *buffer);
    IS(pread(fileno(file), buffer, n * sizeof *buffer, 0), (ssize_t)(n * sizeof *buffer));
    fclose(file);
    return 0;
}

/* What the driver has counted of this rank since the last look, of an operation of so
 * many bytes. */
static int judge(tutti_comm *world, size_t bytes, bool pipeline, const char *slots, uint64_t rounds)
{
    struct fake_copied in = fake.fakeCopied("cuMemcpyHtoDAsync_v2"),
                       out = fake.fakeCopied("cuMemcpyDtoHAsync_v2");
    struct fake_copied over = fake.fakeCopied("cuMemcpyDtoDAsync_v2"),
                       rows = fake.fakeCopied("cuMemcpy2DAsync_v2");
    /* a short copy in one row would go by the compute engine, and wait for a time slice */
    YES(!in.copies || in.bytes / in.copies >= STREAM_ROWS_BELOW);
    YES(!rows.copies || rows.bytes / rows.copies < STREAM_ROWS_BELOW);
    in.from = !in.from || (rows.from && rows.from < in.from) ? rows.from : in.from;
    in.to = rows.to > in.to ? rows.to : in.to;
    in.copies += rows.copies;
    in.bytes += rows.bytes;
    IS(in.bytes, bytes);
    IS(out.copies + over.copies, 0);
    if (!pipeline)
        return 0;
    IS(in.copies, rounds);                           /* a round, a slot of the root's, a copy */
    if (slots) {
        YES(in.from >= slots);
        YES(in.to <= slots
                + PIPELINE_DEPTH
                    * pipeline_device_slot_bytes(RANKS, world->world->arena.header->span_bytes));
    }
    return 0;
}

static int round_of(tutti_comm *world, int rank, float *buffer, size_t n, size_t nth)
{
    struct member *root = &world->watch.members[ROOT];
    uint64_t produced = load_acquire64(&root->produced);
    bool pipeline = n * sizeof(float) > EAGER_BYTES;
    if (rank == ROOT && load(buffer, n, nth))
        return 1;
    if (rank != ROOT) {
        memset(fake.fakePeek(compare_in), 0xee, (n + 1) * sizeof(float));
        fake.fakeCopied("cuMemcpyHtoDAsync_v2");
        fake.fakeCopied("cuMemcpy2DAsync_v2");
    }
    IS(tutti_barrier(world, NULL), 0);
    IS(tutti_broadcast(rank == ROOT ? buffer : (void *)(uintptr_t)compare_in, n, TUTTI_F32, ROOT,
                       world, NULL),
       0);
    /* What the root has said it put into its slots: what all others took. None says anything of an
     * operation that goes by line or eager. */
    uint64_t rounds = load_acquire64(&root->produced) - produced;
    IS(rounds > 0, pipeline);
    if (rank == ROOT) {
        for (size_t i = 0; i < n; i++)
            YES(buffer[i] == value(i, nth));
        if (pipeline)
            ranks_say(W_RING,
                      (uint32_t)((uint64_t)(world->stage.pipeline - world->world->arena.base)
                                 / 64));
    } else {
        const float *got = fake.fakePeek(compare_in);
        for (size_t i = 0; i < n; i++)
            YES(got[i] == value(i, nth));
    }
    IS(tutti_barrier(world, NULL), 0);
    char *slots = pipeline && nth
        ? world->world->arena.base + (uint64_t)load_acquire32(&page->word[W_RING]) * 64
        : NULL;
    return rank == ROOT ? 0 : judge(world, n * sizeof(float), pipeline && nth, slots, rounds);
}

static int from_host(tutti_comm *world, int rank)
{
    float *buffer = NULL;
    size_t bytes = MOST * sizeof(float);
    if (compare_begin(world, MOST / RANKS + 1, rank == ROOT ? -1 : 0))
        return 1;
    if (rank == ROOT)
        buffer = source == OF_ARENA ? tutti_alloc(bytes, world) : malloc(bytes);
    YES(rank != ROOT || buffer);
    /* The first operation with a device of a comm goes by the geometry of the host: nth 0. */
    int wrong = round_of(world, rank, buffer, MOST, 0);
    for (size_t nth = 1; nth <= TIMES && !wrong; nth++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && !wrong; s++)
            wrong = round_of(world, rank, buffer, sizes[s], nth);
    YES(!wrong);
    YES(rank != ROOT || !driver_loaded());           /* no driver is there, let alone asked */
    if (source == OF_ARENA && rank == ROOT)
        IS(tutti_free(buffer, world), 0);
    else
        free(buffer);
    return compare_end(world);
}

static void test_host_root(void **state)
{
    (void)state;
    static const char *const rules[] = { NULL, "device:-inf=pinned", "device:-inf=peers" };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        for (source = 0; source < SOURCES; source++) {
            if (rules[i])
                setenv("TUTTI_ALGORITHM", rules[i], 1);
            if (ranks_run(RANKS, from_host, 0))
                fail_msg("%s, source %d", rules[i] ? rules[i] : "by default", (int)source);
            unsetenv("TUTTI_ALGORITHM");
        }
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("counts what it copies"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    setenv("FAKE_CUDA_DELAY_US", "20", 1);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_host_root) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
