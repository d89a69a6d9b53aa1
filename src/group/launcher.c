/* The readers of torchrun (and of `tutti run`, which sets the same variables), Open MPI and PMI. A
 * reader puts every variable of its launcher into the job's name: two jobs of one user that share
 * some of them differ in others. Cost: a getenv for each variable.
 *   torchrun   RANK, WORLD_SIZE; TORCHELASTIC_RUN_ID is often "none", then the master's address
 *              tells jobs apart
 *   Open MPI   OMPI_COMM_WORLD_*; the job's number under one of three names, by version
 *   PMI        PMI_RANK, PMI_SIZE; MPICH's Hydra names no job, so the name is the pid of the one
 *              process that all local ranks descend from */
#include "group/launcher.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

const char *launcher_get(const struct launcher_ways *ways, const char *name)
{
    const char *value = ways->lookup(name, ways->arg);
    return value && *value ? value : NULL;
}

int launcher_int(const struct launcher_ways *ways, const char *name, int low, int high, int *value,
                 struct text *why)
{
    const char *said = launcher_get(ways, name);
    int64_t v;
    if (!said)
        return 0;
    if (text_parse_int(said, low, high, &v) < 0) {
        text_add(why, "%s=%.60s: expected an integer between %d and %d", name, said, low, high);
        return -EINVAL;
    }
    *value = (int)v;
    return 1;
}

void launcher_begin(struct launched *l, const char *launcher)
{
    memset(l, 0, sizeof *l);
    l->launcher = launcher;
    l->local_rank = -1;
    l->job = TEXT_IN(l->room);
}

void launcher_add(struct launched *l, const char *part)
{
    if (!part)
        return;
    if (l->job.used)
        text_add(&l->job, ".");
    text_add_name(&l->job, part, LAUNCHER_PART);
}

void launcher_add_variable(struct launched *l, const struct launcher_ways *ways, const char *name)
{
    launcher_add(l, launcher_get(ways, name));
}

int launcher_pair(struct launched *l, const struct launcher_ways *ways, const char *rank,
                  const char *size, struct text *why)
{
    bool has_rank = launcher_get(ways, rank) != NULL, has_size = launcher_get(ways, size) != NULL;
    if (!has_rank && !has_size)
        return 0;
    if (!has_rank || !has_size) {
        text_add(why, "%s is set, but %s is not", has_rank ? rank : size, has_rank ? size : rank);
        return -ENODATA;
    }
    if (launcher_int(ways, size, 1, INT_MAX, &l->size, why) < 0
        || launcher_int(ways, rank, 0, l->size - 1, &l->rank, why) < 0)
        return -EINVAL;
    return 1;
}

int launcher_local(struct launched *l, const struct launcher_ways *ways, const char *rank,
                   const char *size, struct text *why)
{
    if (launcher_int(ways, size, 1, l->size, &l->local_size, why) < 0)
        return -EINVAL;
    int most = l->local_size ? l->local_size : l->size;
    return launcher_int(ways, rank, 0, most - 1, &l->local_rank, why) < 0 ? -EINVAL : 0;
}

int launcher_torch(struct launched *l, const struct launcher_ways *ways, struct text *why)
{
    const char *run = launcher_get(ways, "TUTTI_RUN_ID");
    launcher_begin(l, run ? "tutti run" : "torchrun");
    int found = launcher_pair(l, ways, "RANK", "WORLD_SIZE", why);
    if (found != 1)
        return found;
    if (launcher_local(l, ways, "LOCAL_RANK", "LOCAL_WORLD_SIZE", why) < 0)
        return -EINVAL;
    l->node = launcher_get(ways, "GROUP_RANK");
    launcher_add(l, run ? "run" : "torch");
    launcher_add(l, run);
    launcher_add_variable(l, ways, "TORCHELASTIC_RUN_ID");
    launcher_add_variable(l, ways, "TORCHELASTIC_RESTART_COUNT");
    launcher_add_variable(l, ways, "MASTER_ADDR");
    launcher_add_variable(l, ways, "MASTER_PORT");
    return 1;
}

int launcher_openmpi(struct launched *l, const struct launcher_ways *ways, struct text *why)
{
    launcher_begin(l, "Open MPI");
    int found = launcher_pair(l, ways, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", why);
    if (found != 1)
        return found;
    if (launcher_local(l, ways, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", why)
        < 0)
        return -EINVAL;
    launcher_add(l, "ompi");
    launcher_add_variable(l, ways, "OMPI_MCA_ess_base_jobid");
    launcher_add_variable(l, ways, "OMPI_MCA_orte_ess_jobid");
    launcher_add_variable(l, ways, "PMIX_NAMESPACE");
    return 1;
}

/* srun with PMI sets both families of variables; Slurm's say more. Under another launcher inside an
   allocation Slurm's rank and size differ from PMI's: then Slurm's variables are ignored. */
static void ask_slurm_too(struct launched *l, const struct launcher_ways *ways)
{
    char ignored[256];
    struct text why = TEXT_IN(ignored);
    struct launched slurm;
    if (launcher_slurm(&slurm, ways, &why) != 1 || slurm.rank != l->rank || slurm.size != l->size)
        return;
    if (!l->local_size) {
        l->local_size = slurm.local_size;
        l->local_rank = slurm.local_rank;
    }
    l->node = slurm.node;
    launcher_add(l, slurm.room);
}

static void add_proxy(struct launched *l, const struct launcher_ways *ways)
{
    pid_t pid;
    uint64_t start;
    char part[64];
    struct text t = TEXT_IN(part);
    if (ways->ancestor("hydra_pmi_proxy", &pid, &start) < 0)
        return;
    text_add(&t, "hydra.%d.%llu", (int)pid, (unsigned long long)start);
    launcher_add(l, part);
}

int launcher_pmi(struct launched *l, const struct launcher_ways *ways, struct text *why)
{
    launcher_begin(l, "MPICH");
    int found = launcher_pair(l, ways, "PMI_RANK", "PMI_SIZE", why);
    if (found != 1)
        return found;
    if (launcher_local(l, ways, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", why) < 0)
        return -EINVAL;
    launcher_add(l, "pmi");
    size_t anonymous = l->job.used;
    launcher_add_variable(l, ways, "PMI_JOBID");
    launcher_add_variable(l, ways, "PMI_KVSNAME");
    launcher_add_variable(l, ways, "PMIX_NAMESPACE");
    ask_slurm_too(l, ways);
    if (l->job.used == anonymous)
        add_proxy(l, ways);
    return 1;
}
