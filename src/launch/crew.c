/* Children are waited for by number and any other child is reaped in passing: orphans of ranks come to us (launch/strays).
 * A rank that has ended stays a zombie until it is reaped here, so its number cannot come to mean another process while
 * we may still send it signals. */
#include "launch/crew.h"

#include "os/futex.h"
#include "os/reap.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

int crew_begin(struct crew *crew, int size, const struct arena *arena)
{
    *crew = (struct crew){ .size = size, .arena = arena };
    crew->hands = calloc((size_t)size, sizeof *crew->hands);
    return crew->hands ? 0 : -ENOMEM;
}

void crew_end(struct crew *crew)
{
    free(crew->hands);
    crew->hands = NULL;
}

void crew_add(struct crew *crew, int rank, pid_t pid)
{
    crew->hands[rank].pid = pid;
    crew->hands[rank].started = true;
    crew->living++;
}

static void note(struct crew *crew, int rank, int status)
{
    struct hand *h = &crew->hands[rank];
    h->ended = true;
    h->status = status;
    h->turn = crew->turns;
    h->ours = crew->told && !h->dead_before;
    crew->living--;
    crew->failed += status != 0;
    store_release32(&crew->arena->seats[rank].status, (uint32_t)status << 1 | 1);
    shared32 *state = &crew->arena->join->state;
    if (load_acquire32(state) == JOIN_GATHERING)             /* E12 acquire: the others may still wait for it to come */
        futex_wake(state, INT_MAX);
}

void crew_reap(struct crew *crew)
{
    int status;
    pid_t pid;
    crew->turns++;
    while ((pid = reap_look(-1, &status)) > 0) {
        for (int r = 0; r < crew->size; r++)
            if (crew->hands[r].pid == pid && crew->hands[r].started && !crew->hands[r].ended) {
                note(crew, r, status);
                break;
            }
        reap_take(pid);
    }
    for (int r = 0; pid < 0 && r < crew->size; r++)          /* no child is left: those we know of have ended, nobody knows how */
        if (crew->hands[r].started && !crew->hands[r].ended)
            note(crew, r, PROCESS_END_UNKNOWN);
}

void crew_pass(const struct crew *crew, int number)
{
    for (int r = 0; r < crew->size; r++)
        if (crew->hands[r].started && !crew->hands[r].ended)
            kill(crew->hands[r].pid, number);
}

/* A rank that was killed while it held much memory is dead long before it can be reaped; its mark knows. */
static void note_dead(struct crew *crew)
{
    for (int r = 0; r < crew->size; r++)
        if (!crew->hands[r].ended)
            crew->hands[r].dead_before =
                process_mark_died(load_acquire32(process_mark_word(&crew->arena->seats[r].mark)));   /* E5 */
}

void crew_expect_end(struct crew *crew)
{
    if (!crew->told)
        note_dead(crew);
    crew->told = true;
}

void crew_tell(struct crew *crew, int number)
{
    crew_expect_end(crew);
    crew_pass(crew, number);
    if (number != SIGKILL)
        crew_pass(crew, SIGCONT);        /* a stopped rank could not end in order */
}
