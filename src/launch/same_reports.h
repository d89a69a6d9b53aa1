/* Job: find reports of ranks that say the same, so that one is shown, and who else has it.
 * Owns: nothing shared.
 * Never: reads or writes descriptors; drops what no other rank has said. */
#ifndef TUTTI_LAUNCH_SAME_REPORTS_H
#define TUTTI_LAUNCH_SAME_REPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a rank has begun to say on stderr and may turn out to be a report: from Python, a
   traceback, which comes in pieces. */
struct report_hold { char *text; size_t used, room; uint64_t since_ns; bool newline; };

struct report_said;
struct same_reports {
    struct report_said *said;
    int n, size;
    uint64_t due_ns;                  /* to tell of those that were dropped; UINT64_MAX: never */
};

void same_reports_begin(struct same_reports *s, int size);
void same_reports_end(struct same_reports *s);

/* A rank has written these bytes to stderr. Returns what is to be shown now, *n bytes, valid until
   the next call with this hold; *n may become 0. */
const char *same_reports_take(struct same_reports *s, struct report_hold *hold, int rank,
                              const char *bytes, size_t *n);
/* What is still held is to be shown: it is old, or the rank has ended. */
const char *same_reports_release(struct report_hold *hold, size_t *n);
/* When that will be so. UINT64_MAX: nothing is held. */
uint64_t same_reports_due(const struct report_hold *hold);

/* The next sentence about reports that were dropped; false: there is none. */
bool same_reports_tell(struct same_reports *s, char *room, size_t bytes);

#endif
