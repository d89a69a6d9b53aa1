/* Texts and figures about what happened. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "engine/fault.h"
#include "api/world.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/caller.h"
#include "watch/journal.h"

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
    figures->came_last = load_relaxed64(&f[FIGURE_CAME_LAST]);               /* relaxed: as above */
    figures->sleeps = load_relaxed64(&f[FIGURE_SLEEPS]);                     /* relaxed: as above */
    return 0;
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
