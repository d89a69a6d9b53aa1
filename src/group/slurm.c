/* Slurm's variables are in every shell of an allocation; only under srun they describe ranks. srun
 * sets an ordinary step number. A batch script has none, or, as the shell of salloc, one of the
 * reserved numbers at the top of 32 bits. srun's size of the step is in SLURM_STEP_*, which wins
 * over the allocation's. Cost: a getenv for each variable. */
#include "group/launcher.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STEP_RESERVED INT64_C(0xfffffff0)

static const char *either(const struct launcher_ways *ways, const char *name, const char *older)
{
    const char *value = launcher_get(ways, name);
    return value ? value : launcher_get(ways, older);
}

static bool under_srun(const struct launcher_ways *ways)
{
    const char *step = either(ways, "SLURM_STEP_ID", "SLURM_STEPID");
    int64_t number;
    if (!step || !launcher_get(ways, "SLURM_PROCID"))
        return false;
    return text_parse_int(step, 0, INT64_MAX, &number) == 0 && number < STEP_RESERVED;
}

/* The node's number of tasks in a list as "4(x2),3": tasks per node in node order, with repeats. 0:
 * the text is no such list. */
static int tasks_of_node(const char *list, int node)
{
    while (isdigit((unsigned char)*list)) {
        char *end;
        long tasks = strtol(list, &end, 10), repeat = 1;
        if (strncmp(end, "(x", 2) == 0) {
            repeat = strtol(end + 2, &end, 10);
            if (*end++ != ')')
                return 0;
        }
        if (repeat < 1 || repeat > INT_MAX)
            return 0;
        if (node < repeat)
            return tasks > 0 && tasks <= INT_MAX ? (int)tasks : 0;
        node -= (int)repeat;
        if (*end != ',')
            return 0;
        list = end + 1;
    }
    return 0;
}

static int local_tasks(const struct launched *l, const struct launcher_ways *ways)
{
    char ignored[128];
    struct text why = TEXT_IN(ignored);
    int node, nodes = 0;
    if (!launcher_get(ways, "SLURM_STEP_NUM_NODES"))
        launcher_int(ways, "SLURM_NNODES", 1, INT_MAX, &nodes, &why);
    else
        launcher_int(ways, "SLURM_STEP_NUM_NODES", 1, INT_MAX, &nodes, &why);
    if (nodes == 1)
        return l->size;
    const char *list = either(ways, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
    if (!list || launcher_int(ways, "SLURM_NODEID", 0, INT_MAX - 1, &node, &why) != 1)
        return 0;
    int tasks = tasks_of_node(list, node);
    return tasks <= l->size ? tasks : 0;
}

int launcher_slurm(struct launched *l, const struct launcher_ways *ways, struct text *why)
{
    launcher_begin(l, "Slurm");
    if (!under_srun(ways))
        return 0;
    const char *size = launcher_get(ways, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS"
                                                                  : "SLURM_NTASKS";
    int found = launcher_pair(l, ways, "SLURM_PROCID", size, why);
    if (found != 1)
        return found;
    l->local_size = local_tasks(l, ways);
    int most = l->local_size ? l->local_size : l->size;
    if (launcher_int(ways, "SLURM_LOCALID", 0, most - 1, &l->local_rank, why) < 0)
        return -EINVAL;
    l->node = launcher_get(ways, "SLURM_NODEID");
    launcher_add(l, "slurm");
    launcher_add(l, either(ways, "SLURM_JOB_ID", "SLURM_JOBID"));
    launcher_add(l, either(ways, "SLURM_STEP_ID", "SLURM_STEPID"));
    launcher_add_variable(l, ways, "SLURM_RESTART_COUNT");
    return 1;
}
