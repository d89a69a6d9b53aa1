/* SPDX-License-Identifier: MIT */
/* Shows: how a unit test runs several ranks, kills one of them, and looks at the others.
 * tutti_spawn forks the ranks and waits for them, so this is started as any test is:
 *
 *     fork_test
 *
 * Rank 1 of three is killed, once inside a barrier (by tutti_fault), once between two barriers (by
 * its own hand). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tutti.h>

enum { RANKS = 3, VICTIM = 1 };

/* Ranks that have left count as well, and the other survivor may have left by now. */
static int victim_is_named(const tutti_comm *world)
{
    int gone[RANKS], count = tutti_failed(world, gone, RANKS);
    for (int i = 0; i < count; i++)
        if (gone[i] == VICTIM) return 1;
    return 0;
}

/* What a survivor expects. A rank's return value becomes its exit code: each step has its own. */
static int survive(tutti_comm *world)
{
    if (tutti_barrier(world, NULL) != -EOWNERDEAD) return 12;       /* the cause, once … */
    if (tutti_barrier(world, NULL) != -ECANCELED) return 13;  /* … and from then on: it is broken */
    return victim_is_named(world) ? 0 : 14;
}

static int killed_inside(tutti_comm *world, void *unused)
{
    (void)unused;
    /* all ranks call it, it strikes rank 1 */
    if (tutti_fault(world, "1:barrier#2:kill") != 0) return 10;
    if (tutti_barrier(world, NULL) != 0) return 11;
    return survive(world);
}

static int killed_between(tutti_comm *world, void *unused)
{
    (void)unused;
    if (tutti_barrier(world, NULL) != 0) return 11;
    if (tutti_rank(world) == VICTIM) raise(SIGKILL);
    return survive(world);
}

static int run(const char *name, int (*body)(tutti_comm *, void *))
{
    /* for the whole of it: a hang fails the test */
    const tutti_options options = { .timeout_ms = 20000 };
    int status[RANKS], wrong = 0;
    int failed = tutti_spawn(RANKS, body, NULL, &options, status);
    if (failed < 0) {
        fprintf(stderr, "%s: %s\n", name, tutti_explain(NULL));
        return 1;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int right = rank == VICTIM ? WIFSIGNALED(status[rank]) && WTERMSIG(status[rank]) == SIGKILL
                                   : WIFEXITED(status[rank]) && WEXITSTATUS(status[rank]) == 0;
        if (right) continue;
        fprintf(stderr, "%s: rank %d: unexpected status 0x%x\n", name, rank,
                (unsigned)status[rank]);
        wrong = 1;
    }
    printf("%s: %s\n", name, wrong ? "failed" : "passed");
    return wrong || failed != 1;
}

int main(void)
{
    int wrong = run("killed inside a barrier", killed_inside);
    wrong += run("killed between barriers", killed_between);
    return wrong ? 1 : 0;
}
