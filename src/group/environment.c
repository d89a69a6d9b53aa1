/* Launchers nest: mpirun is called in a shell of srun, torchrun in a batch script. So the readers
 * are asked in a fixed order, the innermost launcher first. The first one whose variables are
 * complete wins. Half a pair is an error only if no other reader has a whole one.
 * Nothing is guessed: if no launcher says how many ranks are local, the meeting shows it.
 * Cost: a getenv for each variable, once. */
#include "group/environment.h"

#include "group/launcher.h"
#include "os/process.h"

#include <errno.h>
#include <string.h>

static launcher_reader *const readers[] = { launcher_torch, launcher_openmpi, launcher_pmi,
                                            launcher_slurm };

/* 1 found, 0 none, or an error. */
static int find(struct launched *l, const struct launcher_ways *ways, struct text *why)
{
    char half[256];
    struct text first_half = TEXT_IN(half);
    text_clear(&first_half);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        char room[256];
        struct text one = TEXT_IN(room);
        text_clear(&one);
        int found = readers[i](l, ways, &one);
        if (found == -EINVAL)
            text_add(why, "%s", room);
        if (found == 1 || found == -EINVAL)
            return found;
        if (found == -ENODATA && first_half.used == 0)
            text_add(&first_half, "%s", room);
    }
    text_add(why, "%s", half);
    return first_half.used ? -EINVAL : 0;
}

void environment_set_job(struct launch_place *place, const char *name)
{
    struct text job = TEXT_IN(place->job);
    text_clear(&job);
    text_add_name(&job, name, sizeof place->job - 1);
}

static void set_job(struct launch_place *place, const struct launched *l, const char *node)
{
    char whole[sizeof l->room + LAUNCHER_PART + 16];
    struct text t = TEXT_IN(whole);
    text_add(&t, "%s", l->room);
    if (node) {
        text_add(&t, ".node");
        text_add_name(&t, node, LAUNCHER_PART);
    }
    environment_set_job(place, whole);
}

static int make_local(struct launch_place *place, const struct launched *l, struct text *why)
{
    if (l->local_size == 0 || l->local_rank < 0) {
        text_add(why,
                 "a world of this host's ranks was asked for (TUTTI_LOCAL), but %s does not say %s",
                 l->launcher, l->local_size == 0 ? "how many they are" : "which of them this is");
        return -EINVAL;
    }
    place->rank = l->local_rank;
    place->size = l->local_size;
    set_job(place, l, l->node);
    return 0;
}

int environment_read_from(struct launch_place *place, const struct launcher_ways *ways,
                          int local_only, struct text *why)
{
    struct launched l;
    *place = (struct launch_place){
        .launcher = "alone", .rank = 0, .size = 1, .local_size = 1,
        .global_rank = 0, .global_size = 1
    };
    int found = find(&l, ways, why);
    if (found <= 0)
        return found;
    place->launcher = l.launcher;
    place->rank = place->global_rank = l.rank;
    place->size = place->global_size = l.size;
    place->local_size = l.local_size;
    set_job(place, &l, NULL);
    if (local_only)
        return make_local(place, &l, why);
    if (l.local_size && l.local_size < l.size) {
        text_add(why,
                 "the job has %d ranks, and %s says that %d of them are on this host: tutti is for "
                 "the ranks of one machine "
                 "(TUTTI_LOCAL makes a world of this host's)",
                 l.size, l.launcher, l.local_size);
        return -EXDEV;
    }
    return 0;
}

int environment_read(struct launch_place *place, const char *(*lookup)(const char *name, void *arg),
                     void *arg, int local_only, struct text *why)
{
    struct launcher_ways ways = { lookup, arg, process_ancestor };
    return environment_read_from(place, &ways, local_only, why);
}
