/* Job: from what the ranks of a cell have come to, say in a few words how the system
 *      answered the fault.
 * Owns: nothing.
 * Never: looks at a process, or prefers a system: it counts. */
#ifndef FAULTS_VERDICT_H
#define FAULTS_VERDICT_H

#include "faults/page.h"

#include <stdbool.h>

/* How every rank that lives came away, best first; MIXED: not all in the same way. */
enum answer {
    NAMED, NAMELESS, ENDED, SUCCESS, CRASHED, HANGS, SILENT, MIXED, CLEAN, LITTER, NOT_RUN, ANSWERS
};

struct outcome {
    enum answer answer;
    bool concluded;  /* before the limit */
    double ms;       /* from the fault to the last rank's answer, or to its end; 0: there is none */
    char words[600];
    char said[8000];             /* by the ranks and by the launcher */
};

/* What became of a rank, besides what stands in the page. */
struct fate { bool gone; int64_t gone_at; };

/* Those that can be asked: with some faults the one at fault cannot. */
static inline bool concerned(enum fault fault, int rank, int culprit)
{
    bool mute = fault == KILL_BARRIER || fault == KILL_REDUCE || fault == LEAVE || fault == DEADLINE
        || fault == STOP;
    return !(mute && rank == culprit);
}

/* fault_at: when it struck, 0: when the last concerned rank called. launcher: there is one. log:
 * what it and the library printed. */
void verdict(struct outcome *o, const struct page *page, const struct fate fates[],
             int64_t fault_at, bool launcher, const char *log);

/* Does the text name that rank ("rank 2", "Rank=2", "ranks 0, 2")? */
bool names_rank(const char *text, int rank);

const char *answer_name(enum answer answer);

#endif
