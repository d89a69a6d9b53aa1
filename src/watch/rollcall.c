/* Each rank builds its own report, after a failure, from the arrival lines (which stay unchanged
 * until this rank returns), the journals and /proc. Cost: some microseconds a rank, and up to 10 ms
 * of waiting for the cause of a death; only after a failure. */
#include "watch/rollcall.h"

#include "arena/cause.h"
#include "base/clock.h"
#include "os/say.h"
#include "watch/alike.h"
#include "watch/cycle.h"
#include "watch/death.h"
#include "watch/journal.h"
#include "watch/phrase.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROWS_MAX = 40, STATUS_LOOKS = 40, STATUS_LOOK_NS = 250000 };

/* tick 0: the record has not been written yet. */
static uint64_t rollcall_age(const struct watch *w, uint64_t tick)
{
    if (!tick)
        return 0;
    struct clock_point now = clock_now();
    uint64_t then = clock_tick_ns(tick, w->arena->header->origin, now);
    return now.ns > then ? now.ns - then : 0;
}

static void rollcall_name(struct text *t, const struct watch *w, uint64_t stamp, uint64_t count,
                          uint64_t seq)
{
    phrase_name(t, stamp, count, seq ? seq - w->arena->header->first_seq : 0);
}

static struct op_record rollcall_record(const struct watch *w, const struct record *r)
{
    /* relaxed: a hint for people */
    uint64_t seq = load_relaxed64(&r->seq);
    return (struct op_record){
        .became = seq, .number = seq ? seq - w->arena->header->first_seq : 0,
        /* relaxed: as above */
        .descriptor = load_relaxed64(&r->descriptor), .count = load_relaxed64(&r->count),
        .about = load_relaxed32(&r->about), .tag = load_relaxed32(&r->tag),
        .site = arena_site_text(w->arena, record_site(r))
    };
}

static void rollcall_operation(struct text *t, const struct watch *w, const struct record *r)
{
    struct op_record operation = rollcall_record(w, r);
    phrase_operation(t, &operation);
}

static enum gone rollcall_gone(const struct watch *w, uint32_t p)
{
    /* relaxed: sticky, and all who write it say the same */
    return load_relaxed8(&w->lost[p]) ? (enum gone)load_relaxed8(&w->lost[p])
                                      : death_of(w->seats[p]);
}

/* How the dead rank ended, by its parent or the system: its wait status << 1 | 1; 0: not known
 * (yet). */
static uint32_t rollcall_status(const struct watch *w, const struct seat *seat)
{
    int status;
    uint32_t noted = load_acquire32(&seat->status), found = 0;
    if (!noted && process_end(&seat->id, &status) > 0)
        found = (uint32_t)cause_of(w->arena, status) << 1 | 1;
    /* its parent, who knows more, may have written it between the two */
    noted = noted ? noted : load_acquire32(&seat->status);
    return noted ? noted : found;
}

/* A death is known before its cause: the mark is set while the process still ends. Waits for the
 * cause, some milliseconds at most. */
static uint32_t rollcall_await_status(struct watch *w, uint32_t p)
{
    struct seat *seat = w->seats[p];
    uint32_t status = rollcall_status(w, seat);
    for (int i = 0; i < STATUS_LOOKS && !status && rollcall_gone(w, p) == GONE_DIED; i++) {
        w->ways->sleep(w->ways->arg, &(struct futex_word){ &seat->status, 0 }, 1, STATUS_LOOK_NS);
        status = rollcall_status(w, seat);
    }
    return status;
}

static bool rollcall_lives(const struct process_id *id)
{
    struct process_id process = { .pid = id->pid, .start = id->start,
                                  .pid_namespace = id->pid_namespace };
    return process_alive(&process, -1) == 1;
}

static void rollcall_end_by(struct text *t, struct watch *w, uint32_t p, uint32_t status)
{
    uint32_t quit = load_acquire32(&w->members[p].quit);             /* E7 acquire */
    const struct seat *seat = w->seats[p];
    enum gone gone = rollcall_gone(w, p);
    if (gone == GONE_DIED) {
        phrase_death(t, status);
        if (!status && rollcall_lives(&seat->id)) {
            char name[32];
            process_name(seat->id.pid, name, sizeof name);
            /* no name: it has just gone, or this rank has no descriptor to see whether it has */
            if (strcmp(name, "?"))
                text_add(t,
                         ", but its process goes on as %s: it called exec, or ended that thread "
                         "alone", name);
        }
    } else if (quit & QUIT_FREED)
        text_add(t, "freed the comm");
    else if (gone == GONE_LEFT || (quit & QUIT_LEFT))
        phrase_left(t, status, w->seats[p]->program);
    else if (quit & QUIT_ALONE)
        text_add(t, "has met a failure of the comm and takes part no more");
}

void rollcall_end(struct text *t, struct watch *w, uint32_t p)
{
    rollcall_end_by(t, w, p, rollcall_status(w, w->seats[p]));
}

void rollcall_rank(struct text *t, struct watch *w, uint32_t p)
{
    struct member *m = &w->members[p];
    const struct record *r = journal_hand(m);
    size_t before = t->used;
    rollcall_end(t, w, p);
    bool over = t->used != before;
    /* relaxed: a hint for people */
    uint64_t ended = load_relaxed64(&r->ended), began = load_relaxed64(&r->began);
    struct doing doing = {
        .over = over, .stopped = !over && !strcmp(process_state(&w->seats[p]->id, NULL), "stopped"),
        /* relaxed: as above */
        .called = load_relaxed64(&m->head), .ended = ended,
        .age_ns = rollcall_age(w, record_last_tick(began, ended)),
        .operation = rollcall_record(w, r),
        .result = record_ended_result(ended)
    };
    phrase_doing(t, &doing);
}

/* ---- the table: narrow columns first, in line with each other; then the long one ---- */

static const char rollcall_columns[] = "  rank pid     state    CPU      for      doing\n";
enum { WIDE_PID = 8, WIDE_STATE = 9, WIDE_TIME = 9 };

__attribute__((format(printf, 3, 4)))
static void rollcall_cell(struct text *t, int width, const char *format, ...)
{
    char cell[64];
    va_list args;
    va_start(args, format);
    vsnprintf(cell, sizeof cell, format, args);
    va_end(args);
    text_add_padded(t, cell, width);
}

static void rollcall_time(struct text *t, uint64_t ns)
{
    char cell[64];
    struct text time = TEXT_IN(cell);
    text_clear(&time);
    text_add_duration(&time, ns);
    /* from a minute on: the larger unit alone, "4 min", "26 h" */
    char *unit = time.used >= WIDE_TIME ? strchr(cell, ' ') : NULL, *rest = NULL;
    if (unit && (rest = strchr(unit + 1, ' ')) != NULL)
        *rest = 0;
    text_add_padded(t, cell, WIDE_TIME);
}

static void rollcall_state(struct text *t, struct watch *w, uint32_t p)
{
    const struct seat *seat = w->seats[p];
    uint32_t quit = load_acquire32(&w->members[p].quit);             /* E7 acquire */
    enum gone gone = rollcall_gone(w, p);
    uint64_t cpu = 0;
    if (gone == GONE_DIED) {
        uint32_t status = rollcall_status(w, seat);
        int how = (int)(status >> 1);
        if (how & PROCESS_END_OOM)
            rollcall_cell(t, WIDE_STATE, "OOM kill");
        else if (status && WIFSIGNALED(how))
            rollcall_cell(t, WIDE_STATE, "signal %d", WTERMSIG(how));
        else if (status && WIFEXITED(how))
            rollcall_cell(t, WIDE_STATE, "exit %d", WEXITSTATUS(how));
        else
            rollcall_cell(t, WIDE_STATE, "died");
        rollcall_cell(t, WIDE_TIME, "-");
        return;
    }
    if (gone == GONE_LEFT || (quit & (QUIT_LEFT | QUIT_FREED))) {
        rollcall_cell(t, WIDE_STATE, quit & QUIT_FREED ? "freed" : "left");
        rollcall_cell(t, WIDE_TIME, "-");
        return;
    }
    const char *state = process_state(&seat->id, &cpu);
    if (p == w->me)
        state = "(here)";
    else if (!strcmp(state, "in the kernel"))
        state = "kernel";
    else if (!strcmp(state, "out of sight"))
        state = "unseen";
    rollcall_cell(t, WIDE_STATE, "%s", state);
    if (cpu)
        rollcall_time(t, cpu);
    else
        rollcall_cell(t, WIDE_TIME, "-");
}

static void rollcall_doing(struct text *t, struct watch *w, uint32_t p)
{
    struct member *m = &w->members[p];
    const struct record *r = journal_hand(m);
    if (load_relaxed64(&m->head) == 0) {                            /* relaxed: a hint for people */
        rollcall_cell(t, WIDE_TIME, "-");
        text_add(t, "no call on this comm yet\n");
        return;
    }
    /* relaxed: as above */
    uint64_t ended = load_relaxed64(&r->ended), began = load_relaxed64(&r->began);
    rollcall_time(t, rollcall_age(w, record_last_tick(began, ended)));
    text_add(t, ended ? "after " : "in ");
    rollcall_operation(t, w, r);
    if (ended && record_ended_result(ended) == -EINVAL)
        text_add(t, ", REFUSED (EINVAL)");
    text_add(t, "\n");
}

static void rollcall_row(struct text *t, struct watch *w, uint32_t p)
{
    text_add(t, "  %-4u ", p);
    rollcall_cell(t, WIDE_PID, "%d", w->seats[p]->id.pid);
    rollcall_state(t, w, p);
    rollcall_doing(t, w, p);
}

/* odd: the rank is gone or missing; such rows come before all others. */
struct rank_row { uint32_t rank, company; bool odd; };

static int rollcall_order(const void *left, const void *right)
{
    const struct rank_row *a = left, *b = right;
    if (a->odd != b->odd)
        return a->odd ? -1 : 1;
    if (a->company != b->company)
        return a->company < b->company ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

void rollcall_table(struct text *t, struct watch *w, const struct claim *claim)
{
    struct rank_row *rows = calloc(w->size, sizeof *rows);
    for (uint32_t p = 0; rows && p < w->size; p++)
        rows[p] = (struct rank_row){ p, claim ? alike_company(w, claim, p) : 0,
                                     claim && !alike_there(w, claim, p) };
    if (rows && claim)
        qsort(rows, w->size, sizeof *rows, rollcall_order);
    text_add(t, "%s", rollcall_columns);
    for (uint32_t i = 0; i < w->size && i < ROWS_MAX; i++)
        rollcall_row(t, w, rows ? rows[i].rank : i);
    if (w->size > ROWS_MAX)
        text_add(t, "  … and %u more ranks\n", w->size - ROWS_MAX);
    free(rows);
}

/* ---- the headline: who, what, where ---- */

/* "rank 3", "ranks 0, 4-7": the ranks that are missing; if all have come by now, the rank that the
   verdict names. */
static void rollcall_missing(struct text *t, const struct watch *w, const struct claim *c,
                             uint32_t named)
{
    int *ranks = calloc(w->size, sizeof *ranks), n = 0;
    for (uint32_t p = 0; ranks && p < w->size; p++)
        if (!alike_there(w, c, p))
            ranks[n++] = (int)p;
    if (n)
        phrase_ranks(t, ranks, n);
    else
        text_add(t, "rank %u", named);
    free(ranks);
}

/* ", which waits for …": what a rank waits for that is no other rank. "": nothing, or unknown.
   Its disk: it has come and has not done its part. Its device: it has come with device memory, and
   its result is not in place; before that, only the rank itself can tell. */
static const char *rollcall_slow(const struct watch *w, const struct op *op, uint32_t p)
{
    enum kind kind = fingerprint_kind(op->claim.descriptor);
    bool disk = kind == KIND_LOAD || kind == KIND_SAVE;
    /* an operation that never waited has no wait */
    if (p == w->me && op->began && op->polls && op->wait.own)
        return disk ? ", which waits for its disk" : ", which waits for its device";
    if (disk)
        return alike_there(w, &op->claim, p) ? ", which waits for its disk" : "";
    return alike_there(w, &op->claim, p) && watch_device(w, p, op->claim.seq)
        && load_acquire64(&w->members[p].placed) < op->claim.seq     /* E70 acquire */
        ? ", which waits for its device" : "";
}

static void rollcall_here(struct text *t, const struct watch *w, const struct op *op)
{
    rollcall_name(t, w, op->claim.descriptor, op->claim.count, op->claim.seq);
    text_add(t, " on %s", w->name);
}

static void rollcall_called_here(struct text *t, const struct watch *w, const struct op *op)
{
    text_add(t, "  called here, by rank %u of %u, at %s\n", w->me, w->size,
             arena_site_text(w->arena, op->site));
}

/* Where p called operation seq, by its journal: the arrival line has no room for it. */
static uint32_t rollcall_site(const struct watch *w, uint32_t p, uint64_t seq)
{
    const struct member *m = &w->members[p];
    uint64_t head = load_acquire64(&m->head);                       /* E94 acquire */
    for (uint64_t back = 0; back < JOURNAL_RECORDS && back < head; back++) {
        const struct record *r = &m->journal[(head - back) % JOURNAL_RECORDS];
        if (load_relaxed64(&r->seq) == seq)                         /* relaxed: after E94 */
            return record_site(r);
    }
    return 0;
}

/* One line for each different call; the one of the fewest ranks first. */
static void rollcall_parties(struct text *t, const struct watch *w, const struct claim *c)
{
    int *ranks = calloc(w->size, sizeof *ranks);
    for (uint32_t company = 1; ranks && company <= w->size; company++)
        for (uint32_t p = 0; p < w->size; p++) {
            if (!alike_there(w, c, p) || alike_company(w, c, p) != company)
                continue;
            int n = 0;
            for (uint32_t q = 0; q < w->size; q++)
                if (alike_there(w, c, q) && alike(w, c, p, q))
                    ranks[n++] = (int)q;
            if (ranks[0] != (int)p)
                continue;
            const struct arrival *a = watch_arrival(w, p, c->seq);
            text_add(t, "  ");
            phrase_ranks(t, ranks, n);
            text_add(t, ": ");
            /* relaxed: after E1 */
            fingerprint_add(t, load_relaxed64(&a->descriptor), alike_count(a));
            text_add(t, " at %s\n",
                     phrase_short(arena_site_text(w->arena, rollcall_site(w, p, c->seq))));
        }
    free(ranks);
}

/* who, by: as the verdict names them; this rank if the name is out of range. */
static void rollcall_headline(struct text *t, struct watch *w, const struct op *op, uint32_t who,
                              uint32_t by)
{
    const struct seat *seat = w->seats[who];
    switch (verdict_why(w->failed)) {
    case WHY_DIED:
    case WHY_LEFT:
    case WHY_FREED:
        text_add(t, "rank %u (pid %d, %.*s) ", who, seat->id.pid, (int)sizeof seat->program - 1,
                 seat->program);
        size_t before = t->used;
        rollcall_end_by(t, w, who, rollcall_await_status(w, who));
        if (t->used == before)
            text_add(t, "is gone");
        text_add(t, "\n  without it no rank can finish ");
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_DEADLINE:
        text_add(t, "the deadline ");
        if (by == w->me && op->timeout_ns >= 0) {
            text_add(t, "of ");
            text_add_duration(t, (uint64_t)op->timeout_ns);
            text_add(t, " ");
        }
        text_add(t, "of rank %u passed in ", by);
        rollcall_here(t, w, op);
        text_add(t, "\n  missing: ");
        rollcall_missing(t, w, &op->claim, who);
        text_add(t, "%s\n", rollcall_slow(w, op, who));
        break;
    case WHY_MISMATCH:
        text_add(t, "the ranks called different things as operation #%llu on %s\n",
                 (unsigned long long)(op->claim.seq - w->arena->header->first_seq), w->name);
        /* equal by descriptor; one of them found another difference, and said which */
        if (alike_all(w, &op->claim))
            text_add(t, "  %.*s\n", ABORT_TEXT - 1, w->members[by].why);
        rollcall_parties(t, w, &op->claim);
        break;
    case WHY_ABORT:
        text_add(t, "rank %u aborted: %.*s\n  this ended ", who, ABORT_TEXT - 1,
                 w->members[who].why);
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_DEVICE:
        text_add(t, "the device of rank %u failed: %.*s\n  this ended ", who, ABORT_TEXT - 1,
                 w->members[who].why);
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_BEYOND:
        text_add(t, "%.*s\n  this ended ", ABORT_TEXT - 1, w->members[who].why);
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_INTERRUPT:
        text_add(t, "rank %u was interrupted\n  this ended ", who);
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_DEADLOCK:
        text_add(t, "a wait that can never end, by ranks of the world:\n");
        cycle_tell(w, by, t);
        text_add(t, "  this ended ");
        rollcall_here(t, w, op);
        text_add(t, "\n");
        break;
    case WHY_NONE:
        break;
    }
}

void rollcall_failure(struct text *t, struct watch *w, const struct op *op)
{
    uint32_t who = verdict_who(w->failed), by = verdict_by(w->failed);
    text_clear(t);
    rollcall_headline(t, w, op, who < w->size ? who : w->me, by < w->size ? by : w->me);
    rollcall_called_here(t, w, op);
    rollcall_table(t, w, &op->claim);
}

void rollcall_warn(const struct op *op, uint64_t waited_ns)
{
    struct watch *w = op->watch;
    for (uint32_t p = 0; p < w->me; p++)
        if (alike_there(w, &op->claim, p))
            return;
    char buffer[8192];
    struct text t = TEXT_IN(buffer);
    text_add(&t, "tutti: rank %u has waited ", w->me);
    text_add_duration(&t, waited_ns);
    text_add(&t, " in ");
    rollcall_here(&t, w, op);
    text_add(&t, "\n  missing: ");
    rollcall_missing(&t, w, &op->claim, op->wait.owner >= 0 ? (uint32_t)op->wait.owner : w->me);
    text_add(&t, "\n");
    rollcall_called_here(&t, w, op);
    rollcall_table(&t, w, &op->claim);
    say(buffer, t.used);
}
