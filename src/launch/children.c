/* Any child that has ended is reaped, also one that is no rank: orphans of ranks become our
 * children (launch/orphans). A rank that has ended stays a zombie until it is reaped here. So its
 * number cannot become another process while we may still send it signals. */
#include "launch/children.h"

#include "arena/cause.h"
#include "os/futex.h"
#include "os/reap.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

int children_begin(struct children *children, int size, const struct arena *arena)
{
    *children = (struct children){ .size = size, .arena = arena };
    children->child = calloc((size_t)size, sizeof *children->child);
    return children->child ? 0 : -ENOMEM;
}

void children_end(struct children *children)
{
    free(children->child);
    children->child = NULL;
}

void children_add(struct children *children, int rank, pid_t pid)
{
    children->child[rank].pid = pid;
    children->child[rank].started = true;
    children->living++;
}

static void note(struct children *children, int rank, int status)
{
    struct child *c = &children->child[rank];
    bool ours = children->told && !c->dead_before;
    c->ended = true;
    c->status = ours ? status : cause_of(children->arena, status);
    c->turn = children->turns;
    c->ours = ours;
    children->living--;
    children->failed += status != 0;
    cause_note(children->arena, (uint32_t)rank, c->status);
    shared32 *state = &children->arena->join->state;
    /* E12 acquire: the others may still wait for it to come */
    if (load_acquire32(state) == JOIN_GATHERING)
        futex_wake(state, INT_MAX);
}

void children_reap(struct children *children)
{
    int status;
    pid_t pid;
    children->turns++;
    while ((pid = reap_look(-1, &status)) > 0) {
        for (int r = 0; r < children->size; r++)
            if (children->child[r].pid == pid && children->child[r].started
                && !children->child[r].ended) {
                note(children, r, status);
                break;
            }
        reap_take(pid);
    }
    /* No child is left: the other ranks have ended, too, and nobody can say how. */
    for (int r = 0; pid < 0 && r < children->size; r++)
        if (children->child[r].started && !children->child[r].ended)
            note(children, r, PROCESS_END_UNKNOWN);
}

void children_pass(const struct children *children, int number)
{
    for (int r = 0; r < children->size; r++)
        if (children->child[r].started && !children->child[r].ended)
            kill(children->child[r].pid, number);
}

/* A rank that was killed while it held much memory is dead long before it can be reaped. Its mark
 * shows the death before. */
static void note_dead(struct children *children)
{
    for (int r = 0; r < children->size; r++)
        if (!children->child[r].ended)
            /* E5 */
            children->child[r].dead_before = process_mark_died(
                load_acquire32(process_mark_word(&children->arena->seats[r].mark)));
}

void children_expect_end(struct children *children)
{
    if (!children->told)
        note_dead(children);
    children->told = true;
}

void children_tell(struct children *children, int number)
{
    children_expect_end(children);
    children_pass(children, number);
    if (number != SIGKILL)
        children_pass(children, SIGCONT);        /* a stopped rank could not end in order */
}
