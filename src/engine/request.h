/* Job: run sends and receives under way as work: their handles, and their pump.
 * Owns: the handles; p2p.works.
 * Never: moves messages (p2p/). */
#ifndef TUTTI_ENGINE_REQUEST_H
#define TUTTI_ENGINE_REQUEST_H

#include "engine/progress.h"
#include "p2p/p2p.h"
#include "watch/journal.h"

/* With call->work: starts it and leaves the handle. Without, while others are under way: runs it to
 * its end, behind them. post is copied. */
int request_start(struct tutti_comm *comm, const struct post *post, const tutti_call *call);

extern const struct pump request_pump;               /* for the progress thread */

/* Records the call in the journal, as the current operation. */
void request_journal(struct watch *w, const struct post *post, uint64_t tick);
static inline void request_journal_note(struct watch *w, enum kind kind, const struct note *note,
                                        size_t count, uint64_t tick)
{
    /* This number belongs to no collective: reports find collectives by number. */
    const struct journal_entry e = {
        .seq = UINT64_MAX, .descriptor = fingerprint_make(kind, note->type, 0, 0, count),
        .count = count, .how = record_how(note->site, 0), .tick = tick, .letter = true,
        .about = (uint32_t)(note->peer + 1), .tag = (uint32_t)note->tag + 1
    };
    journal_enter(w, &e);
}

#endif
