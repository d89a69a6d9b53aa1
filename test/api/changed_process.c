/* The victim and the others are forked, and join by a name: so a change before the join is a
 * rank's own. */
#include "changed_process.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE = 300000 };

const char changed_pulls[] = "all_reduce:-inf=direct;all_gather:-inf=direct;broadcast:-inf=direct";
struct changed changed;

/* ---- the course: 0, or the line of what went wrong ---- */

static int large_ones(tutti_comm *world, int rank, float *x, float *y)
{
    for (size_t i = 0; i < LARGE; i++)
        x[i] = (float)(rank + 1);
    OR_LINE(tutti_all_reduce(x, x, LARGE, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    for (size_t i = 0; i < LARGE; i++)
        OR_LINE(x[i] == 6);
    for (size_t i = 0; i < LARGE; i++)
        x[i] = (float)rank;
    OR_LINE(tutti_all_gather(x, y, LARGE, TUTTI_F32, world, NULL) == 0);
    for (size_t i = 0; i < (size_t)RANKS * LARGE; i++)
        OR_LINE(y[i] == (float)(i / LARGE));
    OR_LINE(tutti_broadcast(x, LARGE, TUTTI_F32, 1, world, NULL) == 0);
    OR_LINE(x[0] == 1 && x[LARGE - 1] == 1);
    if (rank == 0)
        OR_LINE(tutti_send(y, LARGE, TUTTI_F32, 2, 5, world, NULL) == 0);
    if (rank == 2) {
        memset(x, 1, LARGE * sizeof *x);
        OR_LINE(tutti_recv(x, LARGE, TUTTI_F32, 0, 5, NULL, world, NULL) == 0);
        OR_LINE(x[0] == 0 && x[LARGE - 1] == 0);
    }
    return 0;
}

static int memory_ones(tutti_comm *world, int rank, float *x, float *y)
{
    float *mine = tutti_alloc(LARGE * sizeof *mine, world);
    uint64_t handle;
    OR_LINE(mine);
    for (size_t i = 0; i < LARGE; i++)
        mine[i] = 1;
    OR_LINE(tutti_handle(mine, &handle, world) == 0);
    const float *seen = tutti_view(handle, world);
    OR_LINE(seen && seen[LARGE - 1] == 1);
    OR_LINE(tutti_all_reduce(mine, x, LARGE, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    OR_LINE(x[LARGE - 1] == RANKS);
    OR_LINE(tutti_free(mine, world) == 0);
    y[LARGE] = (float)rank;
    OR_LINE(tutti_register(y, 2 * LARGE * sizeof *y, world) == 0);
    OR_LINE(y[LARGE] == (float)rank);
    OR_LINE(tutti_unregister(y, world) == 0);
    OR_LINE(y[LARGE] == (float)rank);
    return 0;
}

static int file_ones(tutti_comm *world, float *x)
{
    char path[100];
    const void *data;
    size_t bytes;
    snprintf(path, sizeof path, "%s/saved", changed.folder);
    OR_LINE(tutti_broadcast(x, LARGE, TUTTI_F32, 0, world, NULL) == 0);
    OR_LINE(tutti_save(path, x, LARGE * sizeof *x, world, NULL) == 0);
    OR_LINE(tutti_load(path, &data, &bytes, world, NULL) == 0);
    OR_LINE(bytes == LARGE * sizeof *x && !memcmp(data, x, bytes));
    OR_LINE(tutti_free((void *)(uintptr_t)data, world) == 0);
    return 0;
}

int changed_course(tutti_comm *world, int rank)
{
    float *x = malloc(LARGE * sizeof *x), *y = malloc((size_t)RANKS * LARGE * sizeof *y),
          small[SMALL];
    tutti_comm *part;
    tutti_work *work;
    char key[16];
    int64_t ticket;
    OR_LINE(x && y);
    for (int i = 0; i < SMALL; i++)
        small[i] = 1;
    OR_LINE(tutti_barrier(world, NULL) == 0);
    OR_LINE(tutti_all_reduce(small, small, SMALL, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    OR_LINE(small[SMALL - 1] == RANKS);
    OR_LINE(tutti_comm_split(world, 0, 0, &part) == 0);
    OR_LINE(tutti_all_reduce(small, small, SMALL, TUTTI_F32, TUTTI_SUM, part,
                             &(tutti_call){ .work = &work })
            == 0);
    OR_LINE(tutti_wait(work, 0) == 0);
    OR_LINE(small[0] == RANKS * RANKS);
    OR_LINE(tutti_comm_free(part) == 0);
    int r = large_ones(world, rank, x, y);
    if (!r)
        r = memory_ones(world, rank, x, y);
    if (!r && !changed.change.no_files)
        r = file_ones(world, x);
    free(x);
    free(y);
    snprintf(key, sizeof key, "key%d", rank);
    OR_LINE(tutti_set(key, key, sizeof key, world) == 0);
    OR_LINE(tutti_add("ticket", 1, &ticket, world) == 0);
    return r;
}

/* ---- the ranks ---- */

static int life(tutti_comm *none, int rank, struct team *team)
{
    (void)none;
    tutti_comm *world;
    const tutti_options options = { .job = changed.job, .rank = rank, .size = team->size };
    if (changed.change.before && changed.change.before(rank))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0) {
        snprintf(team->rank[rank].report, TEAM_TEXT, "%s", tutti_explain(NULL));
        fprintf(stderr, "rank %d: tutti_init: %d %s\n", rank, r, tutti_explain(NULL));
        return 3;
    }
    if (changed_course(world, rank))
        return 4;
    if (changed.change.after && changed.change.after(world, rank, team))
        return 5;
    if (changed_course(world, rank))
        return 6;
    OR_LINE(tutti_barrier(world, NULL) == 0);
    if (rank == VICTIM)
        raise(SIGKILL);
    team->rank[rank].error[0] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    OR_LINE(tutti_finalize(world) == 0);
    return changed.change.last ? changed.change.last(rank) : 0;
}

void changed_through(struct change change, const char *rule, void (*ended)(struct team *team))
{
    static int count;
    changed.change = change;
    snprintf(changed.job, sizeof changed.job, "acts-%d-%d", (int)getpid(), count++);
    if (rule)
        setenv("TUTTI_ALGORITHM", rule, 1);
    struct team *team = team_start_named(RANKS, life, true);
    unsetenv("TUTTI_ALGORITHM");
    int hung = team_end(team);
    for (int r = 0; r < RANKS; r++) {
        int wanted = r == VICTIM ? SIGKILL : 0;
        if (hung || team->status[r] != wanted
            || (r != VICTIM && team->rank[r].error[0] != -EOWNERDEAD)) {
            fail_msg("rank %d ended with status 0x%x, hears of the death by %d%s\n%s\n%s", r,
                     (unsigned)team->status[r], team->rank[r].error[0], hung ? "; it hangs" : "",
                     team->rank[r].report, team_stderr(team));
        }
    }
    if (ended)
        ended(team);
    team_free(team);
}

int changed_begin(void **state)
{
    (void)state;
    scratch_name(changed.folder, sizeof changed.folder, "acts");
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
    return mkdtemp(changed.folder) && chmod(changed.folder, 0777) == 0 ? 0 : -1;
}

int changed_end(void **state)
{
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/saved", changed.folder);
    unlink(path);
    return rmdir(changed.folder);
}
