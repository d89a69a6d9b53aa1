/* ctest: timeout=300 labels=large,nosan serial
 * More than 2^32 bytes in one operation: counts that do not fit 32 bits, nor the fingerprint. Needs
 * some 9 GiB; where there is less it is skipped. In place, so that a rank has one vector; the
 * vector is the same few pages' worth of numbers over and over, and is looked at in whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/ranks.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 2, PERIOD = 65521 };     /* a prime: whatever lands in the wrong place differs */

#define COUNT ((UINT64_C(1) << 32) + 4097 * 5 + 3)

/* What the system can hand out now, and what this cgroup may have: bytes. */
static uint64_t available(void)
{
    uint64_t have = 0, kib;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            have = kib * 1024;
    if (f)
        fclose(f);
    uint64_t most, used;
    FILE *limit = fopen("/sys/fs/cgroup/memory.max", "re"),
         *now = fopen("/sys/fs/cgroup/memory.current", "re");
    if (limit && now && fscanf(limit, "%" SCNu64, &most) == 1
        && fscanf(now, "%" SCNu64, &used) == 1)
        have = most <= used ? 0 : most - used < have ? most - used : have;
    if (limit)
        fclose(limit);
    if (now)
        fclose(now);
    return have;
}

static unsigned char given(size_t i, int rank)
{
    return (unsigned char)(i * 7 + (size_t)rank * 31 + i / 251);
}

static void fill(unsigned char *to, const unsigned char *tile)
{
    for (size_t at = 0; at < COUNT; at += PERIOD)
        memcpy(to + at, tile, COUNT - at < PERIOD ? COUNT - at : PERIOD);
}

static int differs(const unsigned char *is, const unsigned char *tile)
{
    for (size_t at = 0; at < COUNT; at += PERIOD)
        if (memcmp(is + at, tile, COUNT - at < PERIOD ? COUNT - at : PERIOD) != 0) {
            fprintf(stderr, "wrong between %zu and %zu\n", at, at + PERIOD);
            return 1;
        }
    return 0;
}

static int body(tutti_comm *world, int rank)
{
    static unsigned char tile[PERIOD], sum[PERIOD];
    unsigned char *v = mmap(NULL, COUNT, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(v != MAP_FAILED);
    madvise(v, COUNT, MADV_HUGEPAGE);       /* a wish: most of the time goes into the first touch */
    for (size_t i = 0; i < PERIOD; i++) {
        tile[i] = given(i, rank);
        sum[i] = (unsigned char)(given(i, 0) + given(i, 1));
    }
    fill(v, tile);
    CHECK_IS(tutti_all_reduce(v, v, COUNT, TUTTI_U8, TUTTI_SUM, world, NULL), 0);
    CHECK_IS(differs(v, sum), 0);
    if (rank == 1)
        fill(v, tile);
    CHECK_IS(tutti_broadcast(v, COUNT, TUTTI_U8, 1, world, NULL), 0);
    for (size_t i = 0; i < PERIOD; i++)
        tile[i] = given(i, 1);
    CHECK_IS(differs(v, tile), 0);
    /* Counts that differ beyond 32 bits only are not the same. The vectors are large enough
     * for both. */
    size_t mine = (UINT64_C(1) << 32) + (rank ? 5 : 1), other = 5;
    CHECK(tutti_all_reduce(v, v, rank ? mine : other, TUTTI_U8, TUTTI_SUM, world, NULL) < 0);
    CHECK(strstr(tutti_explain(world), "4294967301")
          && strstr(tutti_explain(world), "different things"));
    munmap(v, COUNT);
    return 0;
}

static void beyond_32_bits(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(SIZE, body, 0), 0);
}

int main(void)
{
    uint64_t need = SIZE * COUNT + (UINT64_C(1) << 30), have = available();
    if (have < need) {
        printf("skipped: needs %" PRIu64 " MiB of memory, there are %" PRIu64 "\n", need >> 20,
               have >> 20);
        return 77;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(beyond_32_bits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
