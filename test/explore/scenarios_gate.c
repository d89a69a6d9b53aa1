/* Barriers, all_reduce by lines, and their failures. Two operations each, so that what one leaves
 * for the next is met. */
#include "explore/scenarios.h"

#include "watch/verdict.h"

#include <errno.h>

enum { CALLS = 2 };

/* Who was killed is named by everybody who failed, and as dead; and later calls say no more than
 * that the comm is broken. */
void check_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        const struct note *n = &note[p];
        bool failed = false;
        for (int k = 0; k < NOTES; k++) {
            if (!n->there[k] || explore_killed[p])
                continue;
            if (failed && n->result[k] != -ECANCELED)
                explore_wrong("rank %d: call %d after a failure gave %d", p, k, n->result[k]);
            if (!failed && n->result[k] < 0 && n->result[k] != -EOWNERDEAD)
                explore_wrong("rank %d: call %d gave %d", p, k, n->result[k]);
            failed |= n->result[k] < 0;
        }
        if (!failed)
            continue;
        uint32_t who = verdict_who(n->verdict);
        if (who >= EXPLORE_RANKS || !explore_killed[who] || verdict_why(n->verdict) != WHY_DIED)
            explore_wrong("rank %d failed because of rank %u, reason %d, who was not killed", p,
                          who, verdict_why(n->verdict));
        if (explore_arrived((int)who, n->verdict))
            explore_wrong("rank %d blames rank %u, which had done its part", p, who);
        bool listed = false;
        for (int i = 0; i < n->failed_count; i++) {
            listed |= n->failed[i] == (int)who;
            if (!explore_killed[n->failed[i]])
                explore_wrong("rank %d lists rank %d as failed, which lives", p, n->failed[i]);
        }
        if (!listed)
            explore_wrong("rank %d does not list rank %u, which was killed", p, who);
    }
}

void barriers(int rank, tutti_comm *world)
{
    bool failed = false;
    for (int k = 0; k < CALLS; k++) {
        int r = tutti_barrier_at("explore", world, NULL);
        explore_note(rank, k, r);
        failed |= r < 0;
    }
    if (failed)
        explore_failed(rank, world);
}

void inlines(int rank, tutti_comm *world)
{
    bool failed = false;
    for (int k = 0; k < CALLS; k++) {
        uint64_t x[2] = { 1u + (unsigned)rank + 10u * (unsigned)k, 100u * (unsigned)(rank + 1) },
                 n = (uint64_t)tutti_size(world);
        int r = tutti_all_reduce_at("explore", x, x, 2, TUTTI_U64, TUTTI_SUM, world, NULL);
        explore_note(rank, k, r);
        failed |= r < 0;
        if (r == 0 && (x[0] != n * (n + 1) / 2 + 10 * n * (unsigned)k || x[1] != 50 * n * (n + 1)))
            explore_wrong("torn payload: rank %d got %llu and %llu in call %d", rank,
                          (unsigned long long)x[0], (unsigned long long)x[1], k);
    }
    if (failed)
        explore_failed(rank, world);
}

#define FLAGS "barrier:-inf=flags"
#define CENTRAL "barrier:-inf=central"
#define EVENTS (KILL | STOP | SPURIOUS | TIMER)

void check_good(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < NOTES; k++)
            if (note[p].there[k] && note[p].result[k] != 0)
                explore_wrong("rank %d: call %d gave %d, and nobody died", p, k, note[p].result[k]);
}

const struct scenario scenario_barrier_flags = {
    .name = "barrier_flags", .ranks = 2, .rules = FLAGS, .body = barriers,
    .check = check_good, .preemptions = 3
};
const struct scenario scenario_barrier_flags_tso = {
    .name = "barrier_flags_tso", .ranks = 2, .rules = FLAGS, .body = barriers, .check = check_good,
    .preemptions = 3, .memory = MEMORY_TSO
};
const struct scenario scenario_barrier_flags_yield = {
    .name = "barrier_flags_yield", .ranks = 2, .rules = FLAGS, .body = barriers,
    .check = check_death, .preemptions = 3, .preemptions_event = 1, .yields = 2, .events = KILL
};
const struct scenario scenario_barrier_flags_events = {
    .name = "barrier_flags_events", .ranks = 2, .rules = FLAGS, .body = barriers,
    .check = check_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_barrier_central = {
    .name = "barrier_central", .ranks = 2, .rules = CENTRAL, .body = barriers,
    .check = check_good, .preemptions = 3
};
const struct scenario scenario_barrier_central_tso = {
    .name = "barrier_central_tso", .ranks = 2, .rules = CENTRAL, .body = barriers,
    .check = check_good, .preemptions = 3, .memory = MEMORY_TSO
};
const struct scenario scenario_barrier_central_events = {
    .name = "barrier_central_events", .ranks = 2, .rules = CENTRAL, .body = barriers,
    .check = check_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_inline = {
    .name = "inline", .ranks = 2, .body = inlines, .check = check_good, .preemptions = 3
};
const struct scenario scenario_inline_tso = {
    .name = "inline_tso", .ranks = 2, .body = inlines, .check = check_good,
    .preemptions = 3, .memory = MEMORY_TSO
};
const struct scenario scenario_inline_weak = {
    .name = "inline_weak", .ranks = 2, .body = inlines, .check = check_good,
    .preemptions = 2, .memory = MEMORY_WEAK
};
const struct scenario scenario_inline_events = {
    .name = "inline_events", .ranks = 2, .body = inlines, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};

/* ---- a deadline: rank 0's passes at any step; rank 1 comes, sooner or later ---- */

static void check_deadline(void)
{
    for (int p = 0; p < 2; p++) {
        if (!note[p].there[0] || note[p].result[0] == 0)
            continue;
        if (note[p].result[0] != -ETIMEDOUT && note[p].result[0] != -EOWNERDEAD)
            explore_wrong("rank %d: %d", p, note[p].result[0]);
        uint32_t who = verdict_who(note[p].verdict);
        if (note[p].result[0] == -ETIMEDOUT && who != 1)
            explore_wrong("the deadline of rank 0 names rank %u", who);
        if (note[p].there[1] && note[p].result[1] != -ECANCELED)
            explore_wrong("rank %d: after the deadline %d", p, note[p].result[1]);
    }
    if (note[0].there[1] && note[1].there[1] && !explore_killed[0] && !explore_killed[1]
        && note[0].verdict != note[1].verdict)
        explore_wrong("two verdicts");
}

const struct scenario scenario_deadline = {
    .name = "deadline", .ranks = 2, .rules = FLAGS, .body = barriers, .check = check_deadline,
    .preemptions = 2, .preemptions_event = 2, .timeout_ms = { 1, 0 },
    .events = JUMP | TIMER | KILL | STOP
};

const struct scenario scenario_central_deadline = {
    .name = "central_deadline", .ranks = 2, .rules = CENTRAL, .body = barriers,
    .check = check_deadline, .preemptions = 1, .preemptions_event = 1, .timeout_ms = { 1, 0 },
    .events = JUMP | TIMER | KILL | STOP
};

/* ---- the verdict: each look at the clock finds the deadline passed, so that a rank that has to
 * wait gives up at once ---- */

void check_verdict(void)
{
    uint64_t first = 0;
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        const struct note *n = &note[p];
        bool failed = false;
        for (int k = 0; k < CALLS; k++) {
            if (!n->there[k] || explore_killed[p])
                continue;
            if (failed
                    ? n->result[k] != -ECANCELED
                    : n->result[k] < 0 && n->result[k] != -ETIMEDOUT && n->result[k] != -EOWNERDEAD)
                explore_wrong("rank %d: call %d gave %d", p, k, n->result[k]);
            failed |= n->result[k] < 0;
        }
        if (!failed)
            continue;
        uint32_t who = verdict_who(n->verdict), by = verdict_by(n->verdict);
        if (who == by || who >= EXPLORE_RANKS
            || (verdict_why(n->verdict) == WHY_DIED && !explore_killed[who]))
            explore_wrong("rank %d: rank %u gives rank %u as the reason, %d", p, by, who,
                          verdict_why(n->verdict));
        if (first && first != n->verdict)
            explore_wrong("two verdicts: %llx and %llx", (unsigned long long)first,
                          (unsigned long long)n->verdict);
        first = n->verdict;
    }
}

const struct scenario scenario_verdict = {
    .name = "verdict", .ranks = 2, .rules = FLAGS, .body = barriers, .check = check_verdict,
    .preemptions = 3, .timeout_ms = { 1, 1 }, .tick_ns = 1000000, .patience = PATIENCE_FIRST
};
const struct scenario scenario_verdict_events = {
    .name = "verdict_events", .ranks = 2, .rules = FLAGS, .body = barriers, .check = check_verdict,
    .preemptions = 1, .preemptions_event = 1, .timeout_ms = { 1, 1 }, .tick_ns = 1000000,
    .events = EVENTS, .patience = PATIENCE_FIRST
};
const struct scenario scenario_verdict4 = {
    .name = "verdict4", .ranks = 4, .rules = FLAGS, .body = barriers, .check = check_verdict,
    .timeout_ms = { 1, 2, 3, 0 }, .events = EVENTS | JUMP, .chance = true, .patience = PATIENCE_ALL
};

/* ---- an abort, by another thread of rank 0, at any step ---- */

void aborts(int rank, tutti_comm *world)
{
    (void)rank;
    tutti_comm_abort_at("explore", world, "enough");
}

void check_abort(void)
{
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < CALLS; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && note[p].result[k] != -ECANCELED)
                explore_wrong("rank %d: call %d gave %d after an abort", p, k, note[p].result[k]);
    for (int p = 0; p < 2; p++)
        if (note[p].verdict
            && (verdict_why(note[p].verdict) != WHY_ABORT || verdict_who(note[p].verdict) != 0))
            explore_wrong("rank %d blames rank %u for %d, rank 0 aborted", p,
                          verdict_who(note[p].verdict), verdict_why(note[p].verdict));
}

void check_abort_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < CALLS; k++) {
            int r = note[p].there[k] && !explore_killed[p] ? note[p].result[k] : 0;
            if (r != 0 && r != -ECANCELED && !(r == -EOWNERDEAD && explore_any_killed()))
                explore_wrong("rank %d: call %d gave %d after an abort", p, k, r);
        }
}

/* ---- rank 1 leaves after its first barrier ---- */

static void leaves(int rank, tutti_comm *world)
{
    explore_note(rank, 0, tutti_barrier_at("explore", world, NULL));
    if (rank == 1) {
        tutti_finalize(world);
        return;
    }
    explore_note(rank, 1, tutti_barrier_at("explore", world, NULL));
    explore_note(rank, 2, tutti_barrier_at("explore", world, NULL));
    explore_failed(rank, world);
}

static void check_leave(void)
{
    if (!note[0].there[2] || explore_killed[0])
        return;
    bool whole = note[0].result[0] == 0, died = explore_killed[1];
    if ((!whole && !(died && note[0].result[0] == -EOWNERDEAD))
        || (whole && note[0].result[1] != -EOWNERDEAD) || note[0].result[2] != -ECANCELED)
        explore_wrong("rank 0: %d, %d, %d, and rank 1 left", note[0].result[0], note[0].result[1],
                      note[0].result[2]);
    enum why why = verdict_why(note[0].verdict);
    if (verdict_who(note[0].verdict) != 1 || (why != WHY_LEFT && !(died && why == WHY_DIED))
        || note[0].failed_count != 1)
        explore_wrong("rank 0 says of rank %u: %d", verdict_who(note[0].verdict), why);
}

const struct scenario scenario_leave = {
    .name = "leave", .ranks = 2, .rules = FLAGS, .body = leaves, .check = check_leave,
    .preemptions = 3, .patience = PATIENCE_FIRST
};
const struct scenario scenario_leave_events = {
    .name = "leave_events", .ranks = 2, .rules = FLAGS, .body = leaves, .check = check_leave,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS, .patience = PATIENCE_FIRST
};

const struct scenario scenario_abort_events = {
    .name = "abort_events", .ranks = 2, .helpers = 1, .rules = FLAGS, .body = barriers,
    .helper = aborts, .check = check_abort_death, .preemptions = 1, .preemptions_event = 1,
    .events = EVENTS, .patience = PATIENCE_FIRST
};
const struct scenario scenario_abort = {
    .name = "abort", .ranks = 2, .helpers = 1, .rules = FLAGS, .body = barriers, .helper = aborts,
    .check = check_abort, .preemptions = 3, .patience = PATIENCE_FIRST
};

const struct scenario scenario_central_abort = {
    .name = "central_abort", .ranks = 2, .helpers = 1, .rules = CENTRAL, .body = barriers,
    .helper = aborts, .check = check_abort, .preemptions = 3, .patience = PATIENCE_FIRST
};

/* Deadlines and an abort: one verdict, whichever. */
static void check_verdict_abort(void)
{
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < CALLS; k++) {
            int r = note[p].there[k] ? note[p].result[k] : 0;
            if (r != 0 && r != -ECANCELED && r != -ETIMEDOUT)
                explore_wrong("rank %d: call %d gave %d", p, k, r);
        }
    if (note[0].verdict && note[1].verdict && note[0].verdict != note[1].verdict)
        explore_wrong("two verdicts: %llx and %llx", (unsigned long long)note[0].verdict,
                      (unsigned long long)note[1].verdict);
}

const struct scenario scenario_verdict_abort = {
    .name = "verdict_abort", .ranks = 2, .helpers = 1, .rules = FLAGS, .body = barriers,
    .helper = aborts, .check = check_verdict_abort, .preemptions = 2, .timeout_ms = { 1, 1 },
    .tick_ns = 1000000, .patience = PATIENCE_FIRST
};

/* ---- three ranks: 0 has a deadline, 1 waits, 2 stays away or comes late; one of them may be
 * killed ---- */

static void one_barrier(int rank, tutti_comm *world)
{
    if (rank == 2)
        return;
    int r = tutti_barrier_at("explore", world, NULL);
    explore_note(rank, 0, r);
    explore_shared[rank] = r == -ETIMEDOUT ? explore_now() : 0;
    explore_note(rank, 1, tutti_barrier_at("explore", world, NULL));
    explore_failed(rank, world);
}

static void check_three(void)
{
    /* Past its first slice a sleeper is woken by a verdict, at once. */
    if (explore_shared[0] && explore_shared[1] && explore_shared[0] != explore_shared[1])
        explore_wrong("rank 1 hears of the verdict %d us later",
                      (int)(explore_shared[1] - explore_shared[0]) / 1000);
    for (int p = 0; p < 3; p++) {
        if (!note[p].there[1] || explore_killed[p])
            continue;
        if (note[p].result[0] != -ETIMEDOUT && note[p].result[0] != -EOWNERDEAD
            && note[p].result[0] != 0)
            explore_wrong("rank %d: %d", p, note[p].result[0]);
        if (note[p].result[0] < 0 && note[p].result[1] != -ECANCELED)
            explore_wrong("rank %d: after the failure %d", p, note[p].result[1]);
        uint32_t who = verdict_who(note[p].verdict);
        if (note[p].result[0] == -EOWNERDEAD && (who >= EXPLORE_RANKS || !explore_killed[who]))
            explore_wrong("rank %d says that rank %u died", p, who);
        if (note[p].result[0] == -ETIMEDOUT && who == verdict_by(note[p].verdict))
            explore_wrong("rank %d: the deadline of rank %u names itself", p, who);
    }
}

const struct scenario scenario_verdict3 = {
    .name = "verdict3", .ranks = 3, .rules = FLAGS, .body = one_barrier, .check = check_three,
    .preemptions = 1, .preemptions_event = 1, .timeout_ms = { 3, 400, 0 }, .events = KILL,
    .patience = PATIENCE_ALL
};

static void three_barriers(int rank, tutti_comm *world)
{
    explore_note(rank, 0, tutti_barrier_at("explore", world, NULL));
    explore_note(rank, 1, tutti_barrier_at("explore", world, NULL));
    if (note[rank].result[0] < 0)
        explore_failed(rank, world);
}

static void check_late(void)
{
    for (int p = 0; p < 3; p++)
        if (note[p].there[0] && note[p].result[0] < 0 && note[p].result[0] != -ETIMEDOUT)
            explore_wrong("rank %d: %d", p, note[p].result[0]);
}

const struct scenario scenario_verdict3_late = {
    .name = "verdict3_late", .ranks = 3, .rules = FLAGS, .body = three_barriers,
    .check = check_late, .preemptions = 1, .preemptions_event = 1,
    .timeout_ms = { 1, 0, 0 }, .events = JUMP
};

/* ---- three ranks, of which one or two die: before they wait, or while they sleep and the last one
 * comes ---- */

static void gate_once(int rank, tutti_comm *world)
{
    explore_note(rank, 0, tutti_barrier_at("explore", world, NULL));
    if (note[rank].result[0] < 0)
        explore_failed(rank, world);
}

static void gate_late(int rank, tutti_comm *world)
{
    if (rank == 2)
        explore_nap(20000000);
    gate_once(rank, world);
}

const struct scenario scenario_kill3 = {
    .name = "kill3", .ranks = 3, .rules = FLAGS, .body = gate_once, .check = check_death,
    .preemptions = 1, .preemptions_event = 1, .events = KILL
};
const struct scenario scenario_late3 = {
    .name = "late3", .ranks = 3, .rules = FLAGS, .body = gate_late, .check = check_death,
    .preemptions = 1, .preemptions_event = 0, .events = KILL, .events_most = 2,
    .patience = PATIENCE_FIRST
};
