/* Open MPI ends the process itself where it has not written to a dead host all that it had: that
 * cannot be helped, as it holds locks then. Any thread that is in the MPI may be the one that meets
 * it; the call that has a last word is its own, else the last one that another thread began.
 *
 * Cost: a lock that hardly anybody else wants, twice a collective. */
#define TUTTI_NO_SITES
#include "mpi/shield.h"

#include "mpi/spread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct call { struct link *link; const char *function; };
static _Thread_local struct call mine;
static struct call last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct timespec last_word = { 0, 500000000 };

void shield_up(struct link *link, const char *function)
{
    if (mine.link)
        return;
    mine = (struct call){ link, function };
    pthread_mutex_lock(&lock);
    last = mine;
    pthread_mutex_unlock(&lock);
}

void shield_down(void)
{
    if (!mine.link)
        return;
    pthread_mutex_lock(&lock);
    if (last.link == mine.link)
        last.link = NULL;
    pthread_mutex_unlock(&lock);
    mine.link = NULL;
}

bool shield_unsent(void)
{
    if (mine.link)
        mine.link->spread->unsent = true;
    return mine.link != NULL;
}

/* The other ranks of the host end their calls, and have time to, as launchers end a job then. */
void shield_last_word(void)
{
    struct call call = mine;
    if (!call.link) {
        pthread_mutex_lock(&lock);
        call = last;
        pthread_mutex_unlock(&lock);
    }
    if (!call.link)
        return;
    struct link *link = call.link;
    struct spread *s = link->spread;
    int error = s->broken.error ? s->broken.error : -ECONNRESET;
    char who[64];
    snprintf(who, sizeof who, "rank %d " ENDED_BY_MPI ", which", link->rank);
    if (!s->broken.error)
        spread_lost(s, s->broken.text, who);
    s->broken.error = error;
    link->failed = true;
    fprintf(stderr, "tutti: %s on rank %d of %d: %s\n%s\n", call.function, link->rank, link->size,
            tutti_strerror(error), s->broken.text);
    tutti_comm_abort(link->tutti, s->broken.text);
    nanosleep(&last_word, NULL);
}
