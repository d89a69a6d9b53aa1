/* What the ranks of a trial do: join, come to the operation, and, those that are left, look at what
 * it gave and whether they can go on: the comm is broken as it should be, shrink gives one that
 * works, the store is whole, and everybody can leave. */
#include "trial_role.h"

#include "base/clock.h"
#include "group/comm.h"
#include "os/futex.h"
#include "support/store_check.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_NS = 20000000, JOIN_MS = 2 * TRIAL_PATIENCE_S * 1000, JOIN_KILLED_MS = 1000 };

int role_wrong(struct role *s, const char *format, ...)
{
    char *text = s->page->rank[s->rank].wrong;
    va_list args;
    if (text[0])
        return 1;
    va_start(args, format);
    vsnprintf(text, sizeof s->page->rank[0].wrong, format, args);
    va_end(args);
    return 1;
}

void role_raise(shared32 *word, uint32_t value)
{
    store_release32(word, value);
    futex_wake(word, INT_MAX);
}

bool role_awaits(shared32 *word, uint32_t value)
{
    for (uint64_t end = clock_ns() + PATIENCE_NS; load_acquire32(word) < value;) {
        uint32_t seen = load_acquire32(word);
        if (clock_ns() > end)
            return false;
        if (seen < value)
            futex_wait(word, seen, SLICE_NS);
    }
    return true;
}

void role_await(shared32 *word, uint32_t value)
{
    if (!role_awaits(word, value))
        _exit(9);
}

void role_come(struct role *s, enum trial_stage stage)
{
    role_raise(&s->page->rank[s->rank].stage, stage);
}

/* The first error, and what is said of it. */
static void note_error(struct role *s)
{
    struct trial_rank *mine = &s->page->rank[s->rank];
    if (mine->met_ns)
        return;
    mine->met_ns = clock_ns();
    snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(s->world));
}

static bool is_gone(const struct role *s, int rank)
{
    return rank == s->victim || rank + 1 == s->page->second
        || ((s->act->flags & (ACT_DEAD | ACT_BROKEN)) && rank == s->size - 1);
}

/* "ranks 0, 2 did not come": is it one of them? */
static bool lists_rank(const char *report, int rank)
{
    const char *list = strstr(report, "ranks ");
    for (list = list ? list + 5 : ""; *list && !(*list >= 'a' && *list <= 'z'); list++)
        if (*list == ' ' && list[1] == '0' + rank && (list[2] == ',' || list[2] == ' '))
            return true;
    return false;
}

/* In the headline, by its number or, where that is of another comm, by its process; or as dead in
 * its line of the table. */
static bool names_rank(const struct role *s, const char *report, int rank)
{
    char text[32], line[160];
    snprintf(text, sizeof text, "rank %d", rank);
    if (strstr(report, text) || lists_rank(report, rank))
        return true;
    snprintf(text, sizeof text, "(pid %d, ", s->page->rank[rank].pid);
    if (strstr(report, text))
        return true;
    snprintf(text, sizeof text, "\n  %-4d ", rank);
    const char *row = strstr(report, text);
    snprintf(line, sizeof line, "%.*s", row ? (int)strcspn(row + 1, "\n") : 0, row ? row + 1 : "");
    return strstr(line, " died") || strstr(line, " signal 9") || strstr(line, " left")
        || strstr(line, " freed");
}

static bool names_the_gone(const struct role *s, const char *report)
{
    for (int r = 0; r < s->size; r++)
        if (is_gone(s, r) && names_rank(s, report, r))
            return true;
    return false;
}

/* The comm of those that are left works, and so does the store. */
static int goes_on(struct role *s, tutti_comm *comm)
{
    char key[32];
    int one = 1, sum = 0, failed[TRIAL_MOST], n = tutti_size(comm), left = 0, r;
    for (int p = 0; p < s->size; p++)
        left += !is_gone(s, p);
    s->page->rank[s->rank].members = n;
    if (n != left)
        return role_wrong(s, "shrink gave a comm of %d, %d are left", n, left);
    int known = tutti_failed(s->world, failed, TRIAL_MOST);
    bool named = false;
    for (int i = 0; i < known && i < TRIAL_MOST; i++)
        named |= failed[i] == s->victim;
    if (known != s->size - left || !named)
        return role_wrong(s, "tutti_failed says %d", known);
    if ((r = tutti_all_reduce(&one, &sum, 1, TUTTI_I32, TUTTI_SUM, comm, NULL)) || sum != n)
        return role_wrong(s, "all_reduce of the survivors: %d, sum %d", r, sum);
    snprintf(key, sizeof key, "after.%d", tutti_rank(comm));
    if ((r = tutti_set(key, &n, sizeof n, comm)))
        return role_wrong(s, "set of the survivors: %d", r);
    for (int p = 0; p < n; p++) {
        size_t bytes = sizeof sum;
        snprintf(key, sizeof key, "after.%d", p);
        if ((r = tutti_get(key, &sum, &bytes, comm, NULL)) || sum != n)
            return role_wrong(s, "get of the survivors: %d", r);
    }
    if ((r = tutti_barrier(comm, NULL)))
        return role_wrong(s, "barrier of the survivors: %d", r);
    if (tutti_rank(comm) == 0 && !store_whole(&s->world->world->arena))
        return role_wrong(s, "the store is not whole");
    if ((r = tutti_barrier(comm, NULL)) || (r = tutti_comm_free(comm)))
        return role_wrong(s, "the end of the survivors' comm: %d", r);
    return 0;
}

/* One that is still there may be killed at any moment of this: what fails by it ends in another
 * shrink, and in the end it holds. */
static int goes_on_twice(struct role *s, tutti_comm *comm)
{
    for (int tries = 0; tries < 3; tries++) {
        int one = 1, sum = 0, n = tutti_size(comm);
        int r = tutti_all_reduce(&one, &sum, 1, TUTTI_I32, TUTTI_SUM, comm, NULL);
        if (r == 0 && (sum != n || n < s->size - 2 || n > s->size - 1))
            return role_wrong(s, "all_reduce of the survivors: %d of %d", sum, n);
        if (r == 0)
            r = tutti_add("after", 1, NULL, comm);
        if (r == 0)
            r = tutti_barrier(comm, NULL);
        if (r == 0 && tutti_rank(comm) == 0 && !store_whole(&s->world->world->arena))
            return role_wrong(s, "the store is not whole");
        if (r == 0)
            r = tutti_barrier(comm, NULL);
        tutti_comm *next = NULL;
        if (r && r != -EOWNERDEAD)
            return role_wrong(s, "the comm of the survivors: %d (%s)", r, tutti_explain(comm));
        if (r && (r = tutti_comm_shrink(comm, &next)))
            return role_wrong(s, "shrink of the survivors: %d (%s)", r, tutti_explain(comm));
        s->page->rank[s->rank].members = n;
        if ((r = tutti_comm_free(comm)))
            return role_wrong(s, "the end of the survivors' comm: %d", r);
        if (!next)
            return 0;
        comm = next;
    }
    return role_wrong(s, "the survivors find no comm that works");
}

static int then(struct role *s, int gave)
{
    struct trial_rank *mine = &s->page->rank[s->rank];
    unsigned flags = s->act->flags;
    /* comm_create returns what its parent failed of, when another rank has met that before: then
     * this rank has met it, too. */
    bool parent = gave < 0 && strstr(tutti_explain(s->world), "world has failed");
    bool broken = (flags & ACT_BROKEN) || (gave < 0 && (flags & ACT_BREAKS)) || parent;
    tutti_comm *comm = NULL;
    for (int i = 0; i < 2; i++) {
        int r = mine->then[i] = tutti_barrier(s->world, NULL);
        if (r < 0)
            note_error(s);
        if (r != (broken ? -ECANCELED : -EOWNERDEAD))
            return role_wrong(s, "%s barrier afterwards: %d (%s)", i ? "the second" : "the", r,
                              tutti_explain(s->world));
        broken = true;
    }
    if (!(flags & ACT_BROKEN) && (gave == -EOWNERDEAD || mine->then[0] == -EOWNERDEAD)
        && !names_the_gone(s, mine->report))
        return role_wrong(s, "the report names somebody else");
    int r = tutti_comm_shrink(s->world, &comm);
    if (r)
        return role_wrong(s, "shrink: %d (%s)", r, tutti_explain(s->world));
    if ((r = flags & ACT_TWO ? goes_on_twice(s, comm) : goes_on(s, comm)))
        return r;
    role_come(s, STAGE_SHRUNK);
    if (s->act->check && s->act->check(s, gave))
        return role_wrong(s, "what it left is not right");
    return (r = tutti_finalize(s->world)) ? role_wrong(s, "finalize: %d", r) : 0;
}

int role_join(struct role *s)
{
    tutti_options o = {
        .job = s->job, .rank = s->rank, .size = s->size, .warn_ms = -1, .flags = TUTTI_NO_SPIN,
        .span_bytes = 16 << 20,
        .join_timeout_ms = s->act->flags & ACT_JOINS ? JOIN_KILLED_MS : JOIN_MS
    };
    int r = tutti_init(&s->world, &o);
    if (r < 0 || s->rank != 0)
        return r;
    s->page->control = s->world->world->arena.header->spans_at;
    s->page->all = s->world->world->arena.bytes;
    return r;
}

static int act_run(struct role *s)
{
    if (s->act->flags & ACT_JOINS)
        return role_join(s);
    return s->rank == s->victim || !s->act->peer ? s->act->victim(s) : s->act->peer(s);
}

static int prepare(struct role *s)
{
    unsigned flags = s->act->flags;
    int r = 0;
    if (!(flags & ACT_JOINS))
        r = role_join(s);
    if (r < 0)
        return role_wrong(s, "the job does not start: %d (%s)", r, tutti_explain(NULL));
    if (s->act->prepare && (r = s->act->prepare(s)))
        return role_wrong(s, "before the operation: %d (%s)", r,
                          s->world ? tutti_explain(s->world) : "");
    if ((flags & (ACT_DEAD | ACT_BROKEN)) && s->rank == s->size - 1) {
        role_come(s, STAGE_READY);
        raise(SIGKILL);
    }
    if ((flags & ACT_BROKEN) && (r = tutti_barrier(s->world, NULL)) != -EOWNERDEAD)
        return role_wrong(s, "before the operation: %d", r);
    return 0;
}

static int victim_run(struct role *s)
{
    role_await(&s->page->seized, 1);
    role_await(&s->page->go, 1);
    if (s->act->flags & ACT_PROGRESS) {
        act_run(s);                         /* it begins, and leaves the rest to the other thread */
        for (;;)
            pause();
    }
    step_mark();
    act_run(s);
    step_mark();
    return 0;
}

int role_run(struct role *s)
{
    struct trial_rank *mine = &s->page->rank[s->rank];
    mine->pid = (int)getpid();
    bool ready = !prepare(s);
    if (s->world)
        mine->base = (uint64_t)(uintptr_t)s->world->world->arena.base;
    role_come(s, STAGE_READY);
    if (!ready)
        return 1;
    if (s->rank == s->victim)
        return victim_run(s);
    role_await(&s->page->released, 1);
    role_come(s, STAGE_IN);
    mine->gave = act_run(s);
    if (mine->gave < 0 && s->world) {
        note_error(s);
        mine->cause = s->world->watch.failed;
    }
    role_come(s, STAGE_OUT);
    bool allowed = mine->gave >= 0;
    for (int i = 0; i < TRIAL_ERRORS; i++)
        allowed |= mine->gave == s->act->allowed[i];
    if (!allowed)
        return role_wrong(s, "it gave %d (%s)", mine->gave, tutti_explain(s->world));
    if ((s->act->flags & ACT_JOINS) && mine->gave < 0) {
        mine->met_ns = mine->gave == -EOWNERDEAD ? clock_ns() : 0;
        snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(NULL));
        /* A host is known by its process alone, and one that is led so slowly that it answers
         * nobody in time, not at all. */
        bool said = names_the_gone(s, mine->report) || strstr(mine->report, "hosts the meeting")
            || strstr(mine->report, "found nobody to meet");
        return said ? 0 : role_wrong(s, "the report names somebody else");
    }
    return then(s, mine->gave);
}
