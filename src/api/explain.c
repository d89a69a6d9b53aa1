/* Texts and figures about what happened. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "engine/fault.h"
#include "api/world.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/caller.h"
#include "watch/journal.h"
#include "watch/lateness.h"

#include <string.h>

const char *tutti_version(void) { return TUTTI_VERSION; }
const char *tutti_strerror(int error) { return error_text(error); }

const char *tutti_explain(const tutti_comm *comm)
{
    CALLER_KEPT;
    static _Thread_local char report[REPORT_TEXT];
    if (!comm)
        return world_report;
    if (*comm->fork_word == 1)
        guard_aside(comm);
    comm_read(comm, report);
    return report;
}

static uint64_t stats_ns(const struct tutti_comm *comm, uint64_t ticks)
{
    struct clock_point origin = comm->world->arena.header->origin, now = clock_now();
    return now.tick > origin.tick ? (uint64_t)((double)ticks * (double)(now.ns - origin.ns)
                                               / (double)(now.tick - origin.tick))
                                  : 0;
}

static int stats_late(const tutti_comm *comm, tutti_figures *figures)
{
    const struct arena *arena = &comm->world->arena;
    const struct arena_header *header = arena->header;
    uint64_t at = (uint64_t)((const char *)comm->watch.slot - arena->base) - header->slots_at;
    struct lateness l = { 0 };
    struct history h;
    int r = history_read(&h, arena, (uint32_t)(at / header->slot_bytes), clock_now());
    if (r < 0)
        return r == -ENOMEM ? r : 0;                 /* somebody has written over the slot */
    r = lateness_add(&l, &h);
    lateness_sort(&l);
    struct late_rank own = lateness_of(&l, comm->watch.me);
    figures->compared = l.compared;
    figures->came_last = own.last;
    figures->late_median_ns = own.median_ns;
    figures->late_p99_ns = own.p99_ns;
    figures->late_cost_ns = own.cost_ns;
    lateness_drop(&l);
    history_drop(&h);
    return r;
}

int tutti_stats(const tutti_comm *comm, tutti_figures *figures)
{
    CALLER_KEPT;
    if (!comm || !figures)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    guard_aside(comm);
    const shared64 *f = comm->watch.mine->figures;
    *figures = (tutti_figures){ 0 };
    figures->operations = load_relaxed64(&f[FIGURE_OPERATIONS]);  /* relaxed: a figure for people */
    figures->bytes = load_relaxed64(&f[FIGURE_BYTES]);            /* relaxed: as above */
    /* relaxed: as above */
    figures->wait_ns = stats_ns(comm, load_relaxed64(&f[FIGURE_WAIT_TICKS]));
    /* relaxed: as above */
    figures->fold_ns = stats_ns(comm, load_relaxed64(&f[FIGURE_FOLD_TICKS]));
    figures->waits = load_relaxed64(&f[FIGURE_WAITS]);                       /* relaxed: as above */
    figures->sleeps = load_relaxed64(&f[FIGURE_SLEEPS]);                     /* relaxed: as above */
    return stats_late(comm, figures);
}

int tutti_fault(tutti_comm *comm, const char *what)
{
    CALLER_KEPT;
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    guard_aside(comm);
    char said[256];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    int r = fault_add(comm, what, &why);
    if (r < 0)
        comm_explain(comm, "fault: %s", said);
    return r;
}
