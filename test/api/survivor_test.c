/* ctest: needs=robust */
/* Without a launcher one survivor writes the black box: when it leaves, once for all, not if the
 * program has handled the failure, and instead of one that died over it. */
#include "group/comm.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, LOST = 2 };
enum deed { JUST_LEAVE, SHRINK, AGREE, WRITER_DIED, LAUNCHER, ALL_WELL };

static char folder[64];
static shared32 *looked;

static int boxes(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' || !strncmp(e->d_name, ".tutti", 6);
    if (d)
        closedir(d);
    return n;
}

static int removes(const char *name, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(name);
}

/* What the rank does with a failure. 0: as it should. */
static int after(tutti_comm *world, enum deed deed)
{
    tutti_comm *left = NULL;
    int yes = 1;
    if (deed == AGREE)
        return tutti_comm_agree(world, &yes) == 0 ? 0 : 4;
    if (deed != SHRINK)
        return 0;
    return tutti_comm_shrink(world, &left) == 0 && tutti_barrier(left, NULL) == 0 ? 0 : 5;
}

static int rank(tutti_comm *world, void *arg)
{
    enum deed deed = *(enum deed *)arg;
    shared32 *boxed = &world->world->arena.join->boxed;
    if (tutti_barrier(world, NULL) < 0)
        return 1;
    if (deed == ALL_WELL)
        return 0;
    if (tutti_rank(world) == LOST)
        raise(SIGKILL);
    if (tutti_barrier(world, NULL) != -EOWNERDEAD)
        return 2;
    /* nobody leaves before rank 0 has looked */
    if (tutti_rank(world) == 0) {
        if (boxes() != 0)
            return 3;                                /* an error has waited for a box */
        if (deed == WRITER_DIED)
            store_relaxed32(boxed, LOST + 1);        /* relaxed: `looked` comes after it */
        if (deed == LAUNCHER)
            store_relaxed32(boxed, BOXED_BY_LAUNCHER);           /* relaxed: as above */
        store_release32(looked, 1);
    }
    while (load_acquire32(looked) == 0)
        sched_yield();
    return after(world, deed);
}

static int run(enum deed deed)
{
    int status[RANKS];
    assert_non_null(mkdtemp(scratch_name(folder, sizeof folder, "survivor")));
    setenv("TUTTI_BOX", folder, 1);
    looked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(looked != MAP_FAILED);
    tutti_spawn(RANKS, rank, &deed, NULL, status);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(status[r], r == LOST && deed != ALL_WELL ? SIGKILL : 0);
    munmap((void *)looked, 4096);
    int n = boxes();
    nftw(folder, removes, 8, FTW_DEPTH | FTW_PHYS);
    return n;
}

static void by_one(void **state) { (void)state; assert_int_equal(run(JUST_LEAVE), 1); }
static void not_if_well(void **state) { (void)state; assert_int_equal(run(ALL_WELL), 0); }
static void not_if_shrunk(void **state) { (void)state; assert_int_equal(run(SHRINK), 0); }
static void not_if_agreed(void **state) { (void)state; assert_int_equal(run(AGREE), 0); }
static void after_a_dead_writer(void **state)
{
    (void)state;
    assert_int_equal(run(WRITER_DIED), 1);
}
static void not_beside_a_launcher(void **state)
{
    (void)state;
    assert_int_equal(run(LAUNCHER), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_one), cmocka_unit_test(not_if_well), cmocka_unit_test(not_if_shrunk),
        cmocka_unit_test(not_if_agreed), cmocka_unit_test(after_a_dead_writer),
        cmocka_unit_test(not_beside_a_launcher)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
