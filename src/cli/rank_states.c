/* A rank has a record in each of its comms. It is shown by the one in which it waits, or else by
 * the last one that ended: so each comm is looked at once, and the better record wins.
 * Cost: a microsecond a rank and comm. */
#include "cli/rank_states.h"

#include "fold/fold.h"
#include "group/agree.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *rank_condition_name(enum rank_condition condition)
{
    static const char *const names[RANK_CONDITIONS] = {
        [RANK_RUNNING] = "running", [RANK_SLEEPING] = "sleeping",
        [RANK_KERNEL] = "in the kernel", [RANK_LEAVING] = "leaving", [RANK_LEFT] = "left",
        [RANK_UNSEEN] = "out of sight", [RANK_ABSENT] = "not there yet",
        [RANK_STOPPED] = "stopped", [RANK_DEAD] = "dead"
    };
    return (unsigned)condition < RANK_CONDITIONS ? names[condition] : "?";
}

const char *job_status_name(enum job_status status)
{
    static const char *const names[] = { "fine", "stuck", "dead", "failed" };
    return (unsigned)status < 4 ? names[status] : "?";
}

/* ---- one rank ---- */

static enum rank_condition rank_condition_of(const struct seat *seat, const struct rank_process *p)
{
    /* relaxed: a private copy, in all of this file */
    uint32_t state = load_relaxed32(&seat->state);
    uint32_t word = load_relaxed32(process_mark_word((struct process_mark *)&seat->mark));
    if (state == SEAT_EMPTY)
        return RANK_ABSENT;
    if (state == SEAT_LEFT)
        return RANK_LEFT;
    if ((process_mark_died(word) && state != SEAT_ADRIFT) || p->gone)
        return RANK_DEAD;
    if (!p->pid || !p->state || !strcmp(p->state, "out of sight"))
        return RANK_UNSEEN;
    if (!strcmp(p->state, "stopped"))
        return RANK_STOPPED;
    if (!strcmp(p->state, "running"))
        return RANK_RUNNING;
    /* the thread that joined has ended, its process goes on */
    bool adrift = state == SEAT_ADRIFT && !strcmp(p->state, "zombie");
    return adrift || !strcmp(p->state, "sleeping") ? RANK_SLEEPING : RANK_KERNEL;
}

struct scene { const struct arena_copy *g; struct clock_point now; };

static uint64_t rank_states_age(const struct scene *s, uint64_t tick)
{
    uint64_t then = clock_tick_ns(tick, s->g->arena.header->origin, s->now);
    return tick && s->now.ns > then ? s->now.ns - then : 0;
}

/* A wait before work under way, that before what has ended; then the later one. */
static bool rank_states_better(const struct rank_state *old, bool ended, bool work, uint64_t age)
{
    int was = old->doing.ended ? 0 : old->work ? 1 : 2, is = ended ? 0 : work ? 1 : 2;
    return !old->doing.called || is > was || (is == was && age < old->doing.age_ns);
}

static void rank_states_texts(struct rank_state *s, const struct arena *arena,
                              const struct slot *slot, uint32_t site)
{
    struct text text = TEXT_IN(s->site), comm = TEXT_IN(s->comm);
    text_clear(&text);
    text_clear(&comm);
    text_add_foreign(&text, arena_site_text(arena, site), SITE_TEXT);
    if (slot->parent)
        text_add(&comm, "comm %llu", (unsigned long long)slot->birth);
}

static void rank_states_member(struct rank_state *s, const struct scene *scene, uint32_t index,
                          struct slot *slot, uint32_t p)
{
    const struct arena *arena = &scene->g->arena;
    const struct member *m = arena_member(slot, p);
    const struct record *r = journal_hand(m);
    /* relaxed: as above */
    uint64_t ended = load_relaxed64(&r->ended), began = load_relaxed64(&r->began);
    uint64_t seq = load_relaxed64(&r->seq), head = load_relaxed64(&m->head);
    const shared64 *figures = m->figures;
    /* relaxed: as above */
    s->operations += load_relaxed64(&figures[FIGURE_OPERATIONS]);
    s->bytes += load_relaxed64(&figures[FIGURE_BYTES]);
    s->wait_ns += load_relaxed64(&figures[FIGURE_WAIT_TICKS]);
    s->sleeps += load_relaxed64(&figures[FIGURE_SLEEPS]);
    /* relaxed: as above */
    s->pace = s->pace * 31 + head * 7 + ended + load_relaxed64(&m->produced) * 3
        + load_relaxed64(&m->folded) + load_relaxed64(&m->consumed) * 5 + load_relaxed64(&m->turns)
        + load_relaxed64(&m->given) + load_relaxed64(&m->placed) + load_relaxed64(&m->ended);
    uint64_t age = rank_states_age(scene, record_last_tick(began, ended));
    /* relaxed: as above */
    bool work = !ended && seq && seq != UINT64_MAX && load_relaxed64(&m->queued) >= seq
        && load_relaxed64(&m->waited) < seq;                         /* relaxed: as above */
    if (!head || (load_relaxed32(&m->quit) & QUIT_OVER) || !rank_states_better(s, ended, work, age))
        return;
    rank_states_texts(s, arena, slot, record_site(r));
    struct text key = TEXT_IN(s->key);
    text_clear(&key);
    if (!ended)
        text_add_foreign(&key, m->awaited, AWAITED_TEXT);
    s->left_ns = ended ? 0 : m->left;
    s->slot = index;
    s->member = p;
    s->seq = seq;
    s->work = work;
    s->doing.called = true;
    s->doing.ended = ended;
    s->doing.age_ns = age;
    s->doing.result = record_ended_result(ended);
    s->doing.operation = (struct op_record){
        .became = seq, .number = seq ? seq - arena->header->first_seq : 0,
        /* relaxed: as above */
        .descriptor = load_relaxed64(&r->descriptor), .count = load_relaxed64(&r->count),
        .about = load_relaxed32(&r->about), .tag = load_relaxed32(&r->tag)
    };
}

static void rank_states_seat(struct rank_state *s, const struct seat *seat,
                             const struct rank_process *process)
{
    struct text program = TEXT_IN(s->program);
    text_clear(&program);
    text_add_foreign(&program, seat->program, sizeof seat->program);
    s->process = *process;
    s->condition = rank_condition_of(seat, process);
    s->percent = -1;
    s->status = load_relaxed32(&seat->status);                       /* relaxed: as above */
    s->status = s->status ? s->status : process->end;
}

/* ---- the job ---- */

/* False: p's last call on the comm is not the operation that v has failed. */
static bool rank_states_failed_in(struct slot *slot, uint32_t p, uint64_t v,
                                  struct op_record *call)
{
    const struct record *r = journal_hand(arena_member(slot, p));
    uint64_t seq = load_relaxed64(&r->seq);                          /* relaxed: as above */
    *call = (struct op_record){
        /* relaxed: as above */
        .descriptor = load_relaxed64(&r->descriptor), .count = load_relaxed64(&r->count)
    };
    return seq && seq != UINT64_MAX && verdict_after(v, seq) == 0;
}

/* The ranks that did not call what more than half of them called: " (rank 2)". The verdict's own
 * name is of a rank that differs from the one that looked first: it may be either side. Source of
 * the vote: Boyer and Moore, MJRTY, 1981. */
static void rank_states_minority(struct text *t, const struct scene *scene, struct slot *slot,
                                 uint64_t v)
{
    uint32_t size = arena_slot_size(&scene->g->arena, slot), votes = 0, alike = 0;
    struct op_record most = { 0 }, call;
    int others = 0, *ranks = calloc(size, sizeof *ranks);
    for (uint32_t p = 0; ranks && p < size; p++) {
        if (!rank_states_failed_in(slot, p, v, &call))
            continue;
        if (votes == 0)
            most = call;
        votes += call.descriptor == most.descriptor && call.count == most.count ? 1 : -1u;
    }
    for (uint32_t p = 0; ranks && p < size; p++) {
        if (!rank_states_failed_in(slot, p, v, &call))
            continue;
        if (call.descriptor == most.descriptor && call.count == most.count)
            alike++;
        else
            ranks[others++] = (int)arena_slot_rank(&scene->g->arena, slot, p);
    }
    if (others && alike > size / 2) {
        text_add(t, " (");
        phrase_ranks(t, ranks, others);
        text_add(t, ")");
    }
    free(ranks);
}

/* By that word alone: whoever has met it says so for all. */
static void rank_states_verdict(struct rank_states *m, const struct scene *scene, struct slot *slot)
{
    static const char *const how[16] = {
        [WHY_DIED] = "a rank died", [WHY_LEFT] = "a rank left",
        [WHY_DEADLINE] = "a deadline passed", [WHY_MISMATCH] = "the ranks called different things",
        [WHY_ABORT] = "a rank aborted", [WHY_FREED] = "a rank freed it",
        [WHY_DEADLOCK] = "a wait that can never end", [WHY_INTERRUPT] = "a rank was interrupted",
        [WHY_DEVICE] = "a device failed", [WHY_BEYOND] = "it could not be made"
    };
    uint64_t v = load_relaxed64(&slot->verdict);                     /* relaxed: as above */
    if (verdict_state(v) != VERDICT_CONFIRMED || m->failed[0])
        return;
    struct text t = TEXT_IN(m->failed);
    const char *why = how[verdict_why(v) & 15];
    if (slot->parent)
        text_add(&t, "comm %llu has failed: ", (unsigned long long)slot->birth);
    else
        text_add(&t, "world has failed: ");
    text_add(&t, "%s", why ? why : "?");
    if (verdict_why(v) == WHY_MISMATCH)
        rank_states_minority(&t, scene, slot, v);
    else if (verdict_names(v))
        text_add(&t, " (rank %u)", verdict_who(v));
}

/* The program has met the failure: who is left has agreed on this comm, and a rank has called
 * nothing on it since. */
static bool rank_states_handled(const struct scene *scene, struct slot *slot)
{
    uint32_t size = arena_slot_size(&scene->g->arena, slot);
    for (uint32_t p = 0; p < size && agree_was_reached(slot); p++) {
        const struct record *r = journal_hand(arena_member(slot, p));
        /* relaxed: as above */
        enum kind kind = fingerprint_kind(load_relaxed64(&r->descriptor));
        if (load_relaxed64(&r->ended) && (kind == KIND_AGREE || kind == KIND_SHRINK))
            return true;
    }
    return false;
}

static void rank_states_slot(struct rank_states *m, const struct scene *scene, uint32_t index)
{
    const struct arena *arena = &scene->g->arena;
    struct slot *slot = arena_slot(arena, index);
    if (load_relaxed32(&slot->state) != SLOT_USED)                   /* relaxed: as above */
        return;
    uint32_t size = arena_slot_size(arena, slot), here = 0;
    m->comms++;
    for (uint32_t p = 0; p < size; p++) {
        uint32_t rank = arena_slot_rank(arena, slot, p);
        if (rank == RANK_NOBODY)
            continue;
        rank_states_member(&m->rank[rank], scene, index, slot, p);
        /* relaxed: as above */
        here += !(load_relaxed32(&arena_member(slot, p)->quit) & (QUIT_OVER | QUIT_FREED));
    }
    if (here && !rank_states_handled(scene, slot))
        rank_states_verdict(m, scene, slot);
}

static void rank_states_judge(struct rank_states *m, uint64_t stuck_ns)
{
    bool dead = false;
    m->over = !m->gathering;
    for (uint32_t r = 0; r < m->size; r++) {
        struct rank_state *s = &m->rank[r];
        enum kind kind = fingerprint_kind(s->doing.operation.descriptor);
        s->doing.operation.site = s->site;
        s->doing.operation.comm = s->comm[0] ? s->comm : NULL;
        s->doing.over = s->condition == RANK_DEAD || s->condition == RANK_LEFT;
        s->doing.stopped = s->condition == RANK_STOPPED;
        s->meets = m->gathering && !s->doing.called && !s->doing.over
            && s->condition != RANK_ABSENT;
        if (rank_state_waits(s) && kind == KIND_FINALIZE && s->condition < RANK_LEAVING)
            s->condition = RANK_LEAVING;
        dead |= s->condition == RANK_DEAD;
        if (s->condition != RANK_DEAD && s->condition != RANK_LEFT)
            m->over = false;
        if (rank_state_waits(s) && s->doing.age_ns > m->oldest_ns)
            m->oldest_ns = s->doing.age_ns;
    }
    if (m->gathering && m->age_ns > m->oldest_ns)
        m->oldest_ns = m->age_ns;
    m->status = m->failed[0] ? JOB_FAILED
        : dead ? JOB_DEAD
        : m->oldest_ns >= stuck_ns ? JOB_STUCK
                                   : JOB_FINE;
}

int rank_states_fill(struct rank_states *m, const struct arena_copy *g,
                     const struct rank_process *process, struct clock_point now, uint64_t stuck_ns)
{
    const struct arena_header *h = g->arena.header;
    struct scene scene = { g, now };
    *m = (struct rank_states){ .size = h->size, .birth = h->birth, .left_out = g->left_out };
    m->rank = calloc(h->size, sizeof *m->rank);
    if (!m->rank)
        return -ENOMEM;
    struct text job = TEXT_IN(m->job), version = TEXT_IN(m->version);
    text_add_foreign(&job, h->job, sizeof h->job);
    text_add_foreign(&version, h->version, sizeof h->version);
    m->age_ns = now.ns > h->origin.ns ? now.ns - h->origin.ns : 0;
    m->gathering = load_relaxed32(&g->arena.join->state) == JOIN_GATHERING;  /* relaxed: as above */
    for (uint32_t r = 0; r < m->size; r++) {
        m->rank[r].rank = r;
        rank_states_seat(&m->rank[r], &g->arena.seats[r], &process[r]);
    }
    for (uint32_t i = 0; i < g->comms; i++)
        rank_states_slot(m, &scene, i);
    double rate = clock_rate(h->origin, now);
    for (uint32_t r = 0; r < m->size; r++) {
        double wait_ns = (double)m->rank[r].wait_ns / rate;
        m->rank[r].wait_ns = wait_ns < 1e18 ? (uint64_t)wait_ns : 0;         /* damage */
    }
    rank_states_judge(m, stuck_ns);
    return 0;
}

void rank_states_drop(struct rank_states *m)
{
    free(m->rank);
    *m = (struct rank_states){ 0 };
}

void rank_states_compare(struct rank_states *m, const struct rank_states *before)
{
    if (before->birth != m->birth || before->size != m->size)
        return;
    for (uint32_t r = 0; r < m->size; r++) {
        struct rank_state *s = &m->rank[r];
        const struct rank_process *is = &s->process, *was = &before->rank[r].process;
        s->moved = s->pace != before->rank[r].pace;
        if (is->pid && is->pid == was->pid && is->cpu_ns >= was->cpu_ns
            && is->read_ns > was->read_ns) {
            uint64_t passed = is->read_ns - was->read_ns;
            uint64_t percent = (is->cpu_ns - was->cpu_ns) / (passed / 100 + 1);
            s->percent = percent < 1000000 ? (int)percent : -1;
        }
    }
}

/* ---- classes ---- */

static bool rank_states_odd(const struct rank_state *s) { return s->condition >= RANK_UNSEEN; }

static bool rank_states_alike(const struct rank_state *a, const struct rank_state *b)
{
    const struct op_record *x = &a->doing.operation, *y = &b->doing.operation;
    bool lively = a->condition < RANK_LEAVING && b->condition < RANK_LEAVING;
    return (lively || a->condition == b->condition) && a->status == b->status
        && a->doing.called == b->doing.called && a->doing.ended == b->doing.ended
        && a->work == b->work && a->slot == b->slot && a->seq == b->seq
        && x->descriptor == y->descriptor && x->count == y->count && x->about == y->about
        && x->tag == y->tag && a->doing.result == b->doing.result && !strcmp(a->site, b->site);
}

struct crowd { int first, n; bool odd; };

static int crowd_order(const void *left, const void *right)
{
    const struct crowd *a = left, *b = right;
    if (a->odd != b->odd)
        return a->odd ? -1 : 1;
    return a->n != b->n ? (a->n > b->n ? -1 : 1) : a->first < b->first ? -1 : 1;
}

int rank_states_classes(const struct rank_states *m, struct classes *c)
{
    int size = (int)m->size, n = 0, at = 0;
    struct crowd *crowd = calloc(m->size, sizeof *crowd);
    int *of = calloc(m->size, sizeof *of);
    *c = (struct classes){
        .begin = calloc(m->size + 1, sizeof *c->begin), .ranks = calloc(m->size, sizeof *c->ranks)
    };
    if (!crowd || !of || !c->begin || !c->ranks) {
        free(crowd);
        free(of);
        classes_drop(c);
        return -ENOMEM;
    }
    for (int r = 0; r < size; r++) {
        int k = 0;
        while (k < n && !rank_states_alike(&m->rank[crowd[k].first], &m->rank[r]))
            k++;
        if (k == n)
            crowd[n++] = (struct crowd){ r, 0, rank_states_odd(&m->rank[r]) };
        crowd[k].n++;
        of[r] = crowd[k].first;
    }
    qsort(crowd, (size_t)n, sizeof *crowd, crowd_order);
    for (int k = 0; k < n; k++) {
        c->begin[k] = at;
        for (int r = crowd[k].first; r < size; r++)
            if (of[r] == crowd[k].first)
                c->ranks[at++] = r;
    }
    c->begin[n] = at;
    c->n = n;
    free(crowd);
    free(of);
    return 0;
}

void classes_drop(struct classes *c)
{
    free(c->begin);
    free(c->ranks);
    *c = (struct classes){ 0 };
}

void rank_states_add_state(struct text *t, const struct rank_state *s)
{
    if (s->condition == RANK_ABSENT) {
        text_add(t, "has not joined");
        return;
    }
    if (s->meets) {
        text_add(t, "%shas joined, waits for the others", s->doing.stopped ? "stopped, " : "");
        return;
    }
    if (s->condition == RANK_DEAD)
        phrase_death(t, s->status);
    else if (s->condition == RANK_LEFT)
        phrase_left(t, s->status, s->program);
    phrase_doing(t, &s->doing);
    if (s->key[0])
        text_add(t, ", for key \"%s\"", s->key);
    if (s->work)
        text_add(t, ", as work");
}
