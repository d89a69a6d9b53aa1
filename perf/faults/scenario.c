/* The rank at fault is the last one. Every rank first takes part in a barrier and an all_reduce
 * without faults, so connections stand and a system that does not work is not mistaken for one that
 * fails well. What comes back from a call with success is compared element by element with what the
 * ranks that are not at fault meant.
 *
 * A rank that has its answer stays until all have theirs; one with an error gives the others
 * grace_ms and then exits, as programs do: how a system spreads an error by one rank's end is seen,
 * and told apart. */
#include "faults/scenario.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 1000, LESS = 500, LARGE = 4 << 20 };      /* elements; LARGE floats are 16 MiB */

static struct slot *mine;                                /* for the two handlers below */

static void broken(int sig)
{
    page_store(&mine->broke, (uint32_t)sig);
    raise(sig);                                          /* the default action: SA_RESETHAND */
}

static void ended_by_system(void)
{
    if (page_load(&mine->ending) == UNDER_WAY)
        page_store(&mine->broke, BROKE_EXIT);
}

static void mark_ends(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE };
    struct sigaction action = {
        .sa_handler = broken, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)
    };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    atexit(ended_by_system);
}

static void begin(struct slot *s)
{
    s->began = page_now();
    page_store(&s->inside, s->inside + 1);
}

static void end(struct slot *s)
{
    page_store(&s->inside, s->inside + 1);
    s->ended = page_now();
}

static _Noreturn void leave(struct page *page, struct slot *s, int error, const struct failure *why)
{
    if (error)
        s->failure = *why;
    page_store(&s->ending, error ? FAILED : RETURNED);
    for (int64_t until = s->ended + (int64_t)page->grace_ms * 1000000; !page_load(&page->over);) {
        if (error && page_now() > until)
            exit(1);
        page_nap(2);
    }
    _exit(0);
}

static void fill(void *data, size_t count, enum element type, int rank)
{
    for (size_t i = 0; i < count; i++) {
        if (type == ELEMENT_FLOAT)
            ((float *)data)[i] = (float)(rank + 1);
        else
            ((double *)data)[i] = rank + 1;
    }
}

static uint32_t differ(const void *data, size_t count, enum element type, double expected)
{
    uint32_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double x = type == ELEMENT_FLOAT ? (double)((const float *)data)[i]
                                         : ((const double *)data)[i];
        wrong += !(x >= expected && x <= expected);
    }
    return wrong;
}

static double total(const struct page *page)
{
    return page->ranks * (page->ranks + 1) / 2.0;
}

static _Noreturn void compute(void)
{
    for (uint64_t x = 1;; x = x * 6364136223846793005u + 1)
        __asm__ volatile("" : : "r"(x));
}

/* Until all but the one at fault are in their call, and have had time to fall asleep in it. */
static void await_others(struct page *page)
{
    for (int r = 0; r < page_culprit(page); r++)
        while (!(page_load(&page->slot[r].inside) & 1))
            page_nap(1);
    page_nap(200);
}

static void warm_up(struct page *page, int me, const struct peer *peer, void *data)
{
    struct slot *s = &page->slot[me];
    struct failure why = { "", "" };
    int error = peer->barrier(0, &why);
    fill(data, SMALL, ELEMENT_FLOAT, me);
    error = error ? error : peer->all_reduce(data, SMALL, ELEMENT_FLOAT, &why);
    if (error || differ(data, SMALL, ELEMENT_FLOAT, total(page)))
        scenario_unable(page, me, "warm-up", error ? why.text : "a wrong sum");
    mark_ends();
    page_store(&s->pid, (uint32_t)getpid());
    for (uint32_t r = 0; r < page->ranks; r++)
        while (!page_load(&page->slot[r].pid))
            page_nap(1);
    if (page->timeout_ms && peer->deadline)
        peer->deadline((int)page->timeout_ms);
}

static _Noreturn void reduce(struct page *page, int me, const struct peer *peer, void *data,
                             size_t count, enum element type, int again)
{
    struct slot *s = &page->slot[me];
    struct failure why = { "", "" };
    int error;
    s->of = (uint32_t)count;
    do {
        fill(data, count, type, me);
        begin(s);
        error = peer->all_reduce(data, count, type, &why);
        end(s);
        s->wrong = error ? 0 : differ(data, count, type, total(page));
    } while (again && !error && !s->wrong);
    leave(page, s, error, &why);
}

static _Noreturn void meet(struct page *page, int me, const struct peer *peer, int first,
                           int second)
{
    struct slot *s = &page->slot[me];
    struct failure why = { "", "" };
    begin(s);
    int error = peer->barrier(first, &why);
    error = error || second == first ? error : peer->barrier(second, &why);
    end(s);
    leave(page, s, error, &why);
}

static _Noreturn void spread(struct page *page, int me, const struct peer *peer, float *data,
                             int root)
{
    struct slot *s = &page->slot[me];
    struct failure why = { "", "" };
    fill(data, SMALL, ELEMENT_FLOAT, me);
    begin(s);
    int error = peer->broadcast(data, SMALL, root, &why);
    end(s);
    s->of = SMALL;
    s->wrong = error ? 0 : differ(data, SMALL, ELEMENT_FLOAT, 1);  /* rank 0's, by the most votes */
    leave(page, s, error, &why);
}

void scenario_play(struct page *page, int me, const struct peer *peer)
{
    int culprit = me == page_culprit(page);
    void *data = malloc(LARGE * sizeof(float));
    if (!data)
        scenario_unable(page, me, "memory", "none");
    mine = &page->slot[me];
    warm_up(page, me, peer, data);
    switch ((enum fault)page->fault) {
    case KILL_BARRIER: case DEADLINE: case STOP:
        if (culprit)
            compute();
        meet(page, me, peer, 0, 0);
    case KILL_REDUCE: case WIPE:
        reduce(page, me, peer, data, LARGE, ELEMENT_FLOAT, 1);
    case LEAVE:
        if (!culprit)
            meet(page, me, peer, 0, 0);
        await_others(page);
        mine->began = page_now();
        exit(0);
    case CYCLE:
        meet(page, me, peer, culprit ? 2 : 1, culprit ? 1 : 2);
    case CALLS:
        if (culprit)
            meet(page, me, peer, 0, 0);
        reduce(page, me, peer, data, SMALL, ELEMENT_FLOAT, 0);
    case COUNTS:
        reduce(page, me, peer, data, culprit ? LESS : SMALL, ELEMENT_FLOAT, 0);
    case TYPES:
        reduce(page, me, peer, data, SMALL, culprit ? ELEMENT_FLOAT : ELEMENT_DOUBLE, 0);
    case ROOT:
        spread(page, me, peer, data, culprit ? me : 0);
    case FAULTS:
        break;
    }
    scenario_unable(page, me, "fault", "there is no such fault");
}

void scenario_unable(struct page *page, int me, const char *kind, const char *text)
{
    struct failure *f = &page->slot[me].failure;
    snprintf(f->kind, sizeof f->kind, "%s", kind);
    snprintf(f->text, sizeof f->text, "%s", text);
    page_store(&page->slot[me].ending, FAILED);
    fprintf(stderr, "%s: %s\n", kind, text);
    exit(3);
}
