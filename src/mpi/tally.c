/* The line at the end, in one write, so that lines of several ranks stay whole. */
#include "mpi/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally tally;

static const char *const reasons[FELL_ALL] = {
    [FELL_OFF] = "not used in this job", [FELL_BETWEEN] = "inter-communicator",
    [FELL_ALONE] = "one rank", [FELL_HOSTS] = "ranks of several hosts",
    [FELL_OTHER_JOB] = "processes of another job", [FELL_ROOM] = "no comm could be made",
    [FELL_REDUCTION] = "type or operation", [FELL_SLOWER] = "the MPI tried, or faster",
    [FELL_ARGUMENT] = "an argument the MPI refuses",
};

void tally_print(int rank)
{
    const char *asked = getenv("TUTTI_MPI_STATS");
    char line[512], *at = line, *end = line + sizeof line;
    uint64_t fell = 0;
    if (!asked || !*asked || !strcmp(asked, "0"))
        return;
    for (int i = 0; i < FELL_ALL; i++)
        fell += load_relaxed64(&tally.fell[i]);              /* relaxed: as in tally_add */
    at += snprintf(at, (size_t)(end - at), "tutti: calls through %llu, fell through %llu (rank %d",
                   /* relaxed: as in tally_add */
                   (unsigned long long)load_relaxed64(&tally.through), (unsigned long long)fell,
                   rank);
    for (int i = 0; i < FELL_ALL; i++) {
        uint64_t n = load_relaxed64(&tally.fell[i]);         /* relaxed: as in tally_add */
        if (n && reasons[i])
            at += snprintf(at, (size_t)(end - at), "; %s: %llu", reasons[i],
                           (unsigned long long)n);
    }
    snprintf(at, (size_t)(end - at), ")\n");
    fputs(line, stderr);
}
