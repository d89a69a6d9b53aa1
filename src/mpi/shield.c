/* Open MPI writes to its sockets by writev, and leaves SIGPIPE as it is: the second write after the
 * reader's death would end this process, too, and nobody would have told it why. Where it has not
 * written all it had, it ends the process itself: that cannot be helped, as it holds locks then.
 *
 * Cost: three system calls a collective. */
#define TUTTI_NO_SITES
#include "mpi/shield.h"

#include "mpi/spread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static _Thread_local struct { struct link *link; const char *function; bool blocked; } shield;
static const struct timespec at_once = { 0, 0 }, last_word = { 0, 500000000 };

static sigset_t pipes(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void shield_up(struct link *link, const char *function)
{
    sigset_t set = pipes(), before;
    if (shield.link)
        return;
    shield.link = link;
    shield.function = function;
    pthread_sigmask(SIG_BLOCK, &set, &before);
    shield.blocked = sigismember(&before, SIGPIPE) == 1;
}

/* A broken pipe has been seen by the MPI; its signal is taken. */
void shield_down(void)
{
    sigset_t set = pipes();
    if (!shield.link)
        return;
    shield.link = NULL;
    if (shield.blocked)
        return;
    while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* The other ranks of the host end their calls, and have time to, as launchers end a job then. */
void shield_last_word(void)
{
    struct link *link = shield.link;
    if (!link)
        return;
    struct spread *s = link->spread;
    int error = s->broken.error ? s->broken.error : -ECONNRESET;
    char who[64];
    snprintf(who, sizeof who, "rank %d is ended by the MPI, which", link->rank);
    if (!s->broken.error)
        spread_lost(s, s->broken.text, who);
    s->broken.error = error;
    link->failed = true;
    fprintf(stderr, "tutti: %s on rank %d of %d: %s\n%s\n", shield.function, link->rank,
            link->size, tutti_strerror(error), s->broken.text);
    tutti_comm_abort(link->tutti, s->broken.text);
    nanosleep(&last_word, NULL);
}
