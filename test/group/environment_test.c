/* ctest: timeout=120 */
/* What launchers say, as tables of variables seen under the real ones, and under those that are
 * installed here. */
#include "group/environment.h"

#include "group/launcher.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char why_room[512];
static struct text why;
static struct launch_place place;
static int hydra;                                    /* is there a proxy among our ancestors? */

static const char *from_table(const char *name, void *arg)
{
    size_t n = strlen(name);
    for (const char *const *v = arg; *v; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
            return *v + n + 1;
    return NULL;
}

static int ancestor(const char *name, pid_t *pid, uint64_t *start)
{
    if (!hydra || strcmp(name, "hydra_pmi_proxy") != 0)
        return -ENOENT;
    *pid = 4711;
    *start = 99;
    return 0;
}

static int read_table(const char *const *variables, int local_only)
{
    struct launcher_ways ways = { from_table, (void *)(uintptr_t)variables, ancestor };
    why = TEXT_IN(why_room);
    text_clear(&why);
    return environment_read_from(&place, &ways, local_only, &why);
}

#define READ(local, ...) read_table((const char *const[]){ __VA_ARGS__, NULL }, local)

static void expect_place(const char *launcher, int rank, int size, int local_size, const char *job)
{
    if (why.used)
        print_error("%s\n", why_room);
    assert_string_equal(place.launcher, launcher);
    assert_int_equal(place.rank, rank);
    assert_int_equal(place.size, size);
    assert_int_equal(place.local_size, local_size);
    assert_string_equal(place.job, job);
    assert_int_equal(why.used, 0);
}

static void expect_why(const char *part)
{
    if (!strstr(why_room, part))
        print_error("it says \"%s\", not \"%s\"\n", why_room, part);
    assert_non_null(strstr(why_room, part));
}

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(READ(0, "HOME=/root"), 0);
    expect_place("alone", 0, 1, 1, "");
    assert_int_equal(READ(1, "RANK=", "WORLD_SIZE="), 0);      /* empty is not set */
    expect_place("alone", 0, 1, 1, "");
}

#define TORCH "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0"

static void test_torchrun(void **state)
{
    (void)state;
    assert_int_equal(READ(0, TORCH, "MASTER_ADDR=localhost", "MASTER_PORT=29500",
                          "TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_RESTART_COUNT=0"),
                     0);
    expect_place("torchrun", 3, 4, 4, "torch.none.0.localhost.29500");
    assert_int_equal(READ(0, TORCH, "MASTER_ADDR=localhost", "MASTER_PORT=29500",
                          "TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_RESTART_COUNT=1"),
                     0);
    expect_place("torchrun", 3, 4, 4, "torch.none.1.localhost.29500");
    assert_int_equal(READ(0, "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1"), 0);
    /* no word about local ranks: the meeting proves it */
    expect_place("torchrun", 0, 2, 0, "torch.1");
    assert_int_equal(READ(0, TORCH, "TUTTI_RUN_ID=77.5", "MASTER_ADDR=127.0.0.1",
                          "MASTER_PORT=1234"),
                     0);
    expect_place("tutti run", 3, 4, 4, "run.77.5.127.0.0.1.1234");
}

static void test_torchrun_wrong(void **state)
{
    (void)state;
    static const struct { const char *v[4]; const char *says; } bad[] = {
        { { "RANK=1" }, "RANK is set, but WORLD_SIZE is not" },
        { { "WORLD_SIZE=4" }, "WORLD_SIZE is set, but RANK is not" },
        { { "RANK=x", "WORLD_SIZE=4" }, "RANK=x: expected an integer between 0 and 3" },
        { { "RANK=4", "WORLD_SIZE=4" }, "RANK=4: expected an integer between 0 and 3" },
        { { "RANK=-1", "WORLD_SIZE=4" }, "RANK=-1" },
        { { "RANK=0", "WORLD_SIZE=0" }, "WORLD_SIZE=0" },
        { { "RANK=0", "WORLD_SIZE=99999999999" }, "WORLD_SIZE=99999999999" },
        { { "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3" }, "LOCAL_WORLD_SIZE=3" },
        { { "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=2" }, "LOCAL_RANK=2" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *v[5] = { bad[i].v[0], bad[i].v[1], bad[i].v[2], bad[i].v[3], NULL };
        assert_int_equal(read_table(v, 0), -EINVAL);
        expect_why(bad[i].says);
    }
}

#define TWO_HOSTS "RANK=6", "WORLD_SIZE=8", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=1", \
    "MASTER_PORT=5"

static void test_two_hosts(void **state)
{
    (void)state;
    assert_int_equal(READ(0, TWO_HOSTS), -EXDEV);
    expect_why("the job has 8 ranks, and torchrun says that 4 of them are on this host");
    assert_int_equal(READ(1, TWO_HOSTS), 0);
    expect_place("torchrun", 2, 4, 4, "torch.5.node1");
    assert_int_equal(place.global_rank, 6);
    assert_int_equal(place.global_size, 8);
    assert_int_equal(READ(1, "RANK=6", "WORLD_SIZE=8"), -EINVAL);
    expect_why("torchrun does not say how many they are");
    assert_int_equal(READ(1, "RANK=6", "WORLD_SIZE=8", "LOCAL_WORLD_SIZE=4"), -EINVAL);
    expect_why("which of them this is");
}

#define OMPI "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1", \
    "OMPI_COMM_WORLD_LOCAL_SIZE=2"

static void test_openmpi(void **state)
{
    (void)state;
    assert_int_equal(READ(0, OMPI, "OMPI_MCA_ess_base_jobid=714145793", "PMIX_NAMESPACE=714145793",
                          "PMIX_RANK=1"),
                     0);
    expect_place("Open MPI", 1, 2, 2, "ompi.714145793.714145793");
    assert_int_equal(READ(0, OMPI, "PMIX_NAMESPACE=prterun-host-5@1"), 0);
    expect_place("Open MPI", 1, 2, 2, "ompi.prterun-host-5@1");
    assert_int_equal(READ(0, "OMPI_COMM_WORLD_RANK=1"), -EINVAL);
    expect_why("OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not");
}

#define HYDRA "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", "PMI_FD=6"

static void test_pmi(void **state)
{
    (void)state;
    hydra = 1;
    assert_int_equal(READ(0, HYDRA), 0);
    expect_place("MPICH", 1, 2, 2, "pmi.hydra.4711.99");
    assert_int_equal(READ(0, HYDRA, "PMI_JOBID=12.0"), 0); /* a name of its own needs no ancestor */
    expect_place("MPICH", 1, 2, 2, "pmi.12.0");
    hydra = 0;
    assert_int_equal(READ(0, HYDRA), 0);
    expect_place("MPICH", 1, 2, 2, "pmi");
    assert_int_equal(READ(0, "PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALNRANKS=4"), -EXDEV);
    assert_int_equal(READ(1, "PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALNRANKS=4", "MPI_LOCALRANKID=1"),
                     0);
    expect_place("MPICH", 1, 4, 4, "pmi");
}

#define STEP "SLURM_JOB_ID=88", "SLURM_STEP_ID=0", "SLURM_PROCID=5", "SLURM_NTASKS=8", \
    "SLURM_LOCALID=1"

static void test_slurm(void **state)
{
    (void)state;
    assert_int_equal(READ(0, STEP, "SLURM_NNODES=1", "SLURM_NODEID=0"), 0);
    expect_place("Slurm", 5, 8, 8, "slurm.88.0");
    assert_int_equal(READ(0, STEP), 0);
    expect_place("Slurm", 5, 8, 0, "slurm.88.0");
    assert_int_equal(READ(0, STEP, "SLURM_NNODES=2", "SLURM_NODEID=1",
                          "SLURM_TASKS_PER_NODE=4(x2)"),
                     -EXDEV);
    expect_why("Slurm says that 4 of them");
    assert_int_equal(READ(1, STEP, "SLURM_NNODES=2", "SLURM_NODEID=1", "SLURM_TASKS_PER_NODE=9(x2)",
                          "SLURM_STEP_TASKS_PER_NODE=5,3"),
                     0);
    expect_place("Slurm", 1, 3, 3, "slurm.88.0.node1");
    assert_int_equal(place.global_rank, 5);
    assert_int_equal(READ(0, STEP, "SLURM_STEP_NUM_TASKS=6", "SLURM_NNODES=4",
                          "SLURM_STEP_NUM_NODES=1"),
                     0);
    expect_place("Slurm", 5, 6, 6, "slurm.88.0"); /* the step's own numbers, not the allocation's */
    assert_int_equal(READ(0, "SLURM_PROCID=0", "SLURM_STEPID=3", "SLURM_JOBID=88", "SLURM_NTASKS=2",
                          "SLURM_RESTART_COUNT=1"),
                     0);
    expect_place("Slurm", 0, 2, 0, "slurm.88.3.1");
    assert_int_equal(READ(0, "SLURM_PROCID=0", "SLURM_STEP_ID=3"), -EINVAL);
}

static void test_slurm_lists(void **state)
{
    (void)state;
    static const struct { const char *list; int node, local; } rows[] = {
        { "8", 0, 8 }, { "2(x3),1", 0, 2 }, { "2(x3),1", 2, 2 }, { "2(x3),1", 3, 1 },
        { "2(x3),1", 4, 0 }, { "", 0, 0 }, { "x", 0, 0 }, { "2(x3", 1, 0 },
        { "2(x", 0, 0 }, { "2,,3", 1, 0 }, { "3,4", 1, 4 },
        { "99999999999999999999", 0, 0 }, { "0", 0, 0 }, { "9", 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char list[64], node[64];
        snprintf(list, sizeof list, "SLURM_TASKS_PER_NODE=%s", rows[i].list);
        snprintf(node, sizeof node, "SLURM_NODEID=%d", rows[i].node);
        int r = READ(0, "SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=8",
                     list, node);
        assert_int_equal(r, rows[i].local && rows[i].local < 8 ? -EXDEV : 0);
        assert_int_equal(place.local_size, rows[i].local);
    }
}

/* Allocations without srun: batch scripts and interactive shells are one process, whatever
 * SLURM_NTASKS says. */
static void test_slurm_without_srun(void **state)
{
    (void)state;
    assert_int_equal(READ(0, "SLURM_JOB_ID=88", "SLURM_NTASKS=8", "SLURM_NNODES=1"), 0);
    expect_place("alone", 0, 1, 1, "");
    assert_int_equal(READ(0, "SLURM_JOB_ID=88", "SLURM_NTASKS=8", "SLURM_PROCID=0",
                          "SLURM_LOCALID=0"),
                     0);
    expect_place("alone", 0, 1, 1, "");
    assert_int_equal(READ(0, "SLURM_JOB_ID=88", "SLURM_NTASKS=8", "SLURM_PROCID=0",
                          "SLURM_STEP_ID=4294967291"),
                     0);
    expect_place("alone", 0, 1, 1, "");
}

static void test_nested(void **state)
{
    (void)state;
    assert_int_equal(READ(0, TORCH, OMPI, HYDRA, STEP, "MASTER_PORT=1"), 0);
    assert_string_equal(place.launcher, "torchrun");
    assert_int_equal(READ(0, OMPI, HYDRA, STEP), 0);
    assert_string_equal(place.launcher, "Open MPI");
    assert_int_equal(READ(0, HYDRA, STEP), 0);
    assert_string_equal(place.launcher, "MPICH");
    assert_int_equal(READ(0, "WORLD_SIZE=9", OMPI), 0);        /* half of one, all of another */
    assert_string_equal(place.launcher, "Open MPI");
    assert_int_equal(READ(0, "WORLD_SIZE=9", "PMI_RANK=1"), -EINVAL);
    expect_why("WORLD_SIZE is set, but RANK is not");
    /* srun with PMI: one launcher, two families of variables */
    assert_int_equal(READ(0, "PMI_RANK=5", "PMI_SIZE=8", STEP, "SLURM_NNODES=1"), 0);
    expect_place("MPICH", 5, 8, 8, "pmi.slurm.88.0");
}

/* The job's name where one variable is of `n` letters, the last of them `last`. */
static void job_of(char job[128], const char *variable, size_t n, char last)
{
    static char said[3000];
    const char *torch[] = { TORCH, said, NULL },
               *node[] = { "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", said,
                           NULL };
    const char *ompi[] = { OMPI, said, NULL }, *pmi[] = { "PMI_RANK=0", "PMI_SIZE=2", said, NULL };
    const char *srun[] = { "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=0", said, NULL };
    const char *const *all[] = {
        ['T'] = torch, ['M'] = torch, ['O'] = ompi, ['P'] = pmi, ['S'] = srun, ['G'] = node
    };
    size_t head = (size_t)snprintf(said, sizeof said, "%s=", variable);
    memset(said + head, 'n', n);
    said[head + n - 1] = last;
    said[head + n] = 0;
    assert_int_equal(read_table(all[(unsigned char)variable[0]], variable[0] == 'G'), 0);
    strcpy(job, place.job);
}

/* Names are told apart by all of their text, however long, whichever variable has it. */
static void test_long_job(void **state)
{
    static const char *const variables[] = {
        "TUTTI_RUN_ID", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR",
        "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PMI_KVSNAME", "SLURM_JOB_ID", "GROUP_RANK"
    };
    (void)state;
    for (size_t v = 0; v < sizeof variables / sizeof *variables; v++)
        for (size_t n = 1; n < 2500; n += n < 700 ? 1 : 100) {
            char first[128], other[128];
            job_of(first, variables[v], n, 'i');
            job_of(other, variables[v], n, 'j');
            if (!strcmp(first, other))
                fail_msg("two jobs whose %s differ in letter %zu are one: %s", variables[v], n,
                         first);
            assert_true(strlen(first) < sizeof place.job);
        }
    for (size_t n = 1; n < 2500; n += n < 700 ? 1 : 100) {
        char name[2500], first[128];
        memset(name, 'n', n);
        name[n] = 0;
        environment_set_job(&place, name);
        strcpy(first, place.job);
        name[n - 1] = 'j';
        environment_set_job(&place, name);
        assert_string_not_equal(first, place.job);
    }
}

/* ---- the real ones ---- */

static const char *real_getenv(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static int say(void)
{
    why = TEXT_IN(why_room);
    text_clear(&why);
    int r = environment_read(&place, real_getenv, NULL, 0, &why);
    printf("place %d %s %d %d %d %s\n", r, place.job, place.rank, place.size, place.local_size,
           place.launcher);
    return 0;
}

static void under(const char *run, const char *launcher)
{
    char self[PATH_MAX], command[PATH_MAX + 200], line[512], job[2][128], name[64];
    bool seen[2] = { false, false };
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    snprintf(command, sizeof command, "%s '%s' --say </dev/null 2>/dev/null", run, self);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int r, rank, size, local;
        char said[128];
        if (sscanf(line, "place %d %127s %d %d %d %63[^\n]", &r, said, &rank, &size, &local, name)
                != 6
            || rank < 0 || rank > 1)
            continue;
        assert_int_equal(r, 0);
        assert_int_equal(size, 2);
        assert_int_equal(local, 2);
        assert_string_equal(name, launcher);
        strcpy(job[rank], said);
        seen[rank] = true;
    }
    /* a launcher whose ranks end at once may die of SIGPIPE: what they said is what counts */
    pclose(f);
    assert_true(seen[0] && seen[1]);
    assert_string_equal(job[0], job[1]);
    assert_true(strlen(job[0]) > 6);                 /* it names this run, not only the launcher */
}

static bool installed(const char *command)
{
    char line[128];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", command);
    return system(line) == 0;
}

static void test_real_openmpi(void **state)
{
    (void)state;
    if (!installed("mpirun.openmpi"))
        skip_because("mpirun.openmpi is not installed");
    under("mpirun.openmpi --allow-run-as-root --oversubscribe -n 2", "Open MPI");
}

static void test_real_mpich(void **state)
{
    (void)state;
    if (!installed("mpirun.mpich"))
        skip_because("mpirun.mpich is not installed");
    under("mpirun.mpich -n 2", "MPICH");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--say") == 0)
        return say();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone), cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_torchrun_wrong), cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_openmpi), cmocka_unit_test(test_pmi), cmocka_unit_test(test_slurm),
        cmocka_unit_test(test_slurm_lists), cmocka_unit_test(test_slurm_without_srun),
        cmocka_unit_test(test_nested), cmocka_unit_test(test_long_job),
        cmocka_unit_test(test_real_openmpi), cmocka_unit_test(test_real_mpich),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
