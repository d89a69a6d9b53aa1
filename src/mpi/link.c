/* A comm is made by the first collective of its communicator, in which all its ranks are. Whether
 * there is to be one is decided by its group alone, which all of them see alike.
 *
 * Where one thread of a rank is in the MPI at a time, comms are made of the host's world: all ranks
 * make them in the same order. Otherwise two threads may make two comms of the same ranks in any
 * order, and wait for each other: each communicator then gets a world of its own, which its rank 0
 * names. A thread of its own joins it, while the caller turns the MPI's progress.
 *
 * Found again by a table of the last ones, then by the attribute. Cost: some ten instructions. */
#define TUTTI_NO_SITES
#include "mpi/link.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* E93 known: who makes a link stores it (release); a call loads it (acquire). */
enum { KNOWN = 64 };
static shared64 known[KNOWN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *all;

static shared64 *known_at(MPI_Comm comm)
{
    return &known[(uint64_t)(uintptr_t)comm * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static void link_free(struct link *link)
{
    uint64_t seen = (uintptr_t)link;
    swap_if64(known_at(link->comm), &seen, 0);
    pthread_mutex_lock(&lock);
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    pthread_mutex_unlock(&lock);
    if (link->tutti && link->own_world)
        tutti_finalize(link->tutti);
    else if (link->tutti && link->tutti != job.world)
        tutti_comm_free(link->tutti);
    if (link->spread)
        spread_free(link->spread, job.ended);
    free(link);
}

int link_copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

int link_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    link_free(value);
    return MPI_SUCCESS;
}

void link_end(void)
{
    while (all)
        link_free(all);
}

/* Where each rank of the communicator is: its place in the world of its host, and a number of that
 * host. 0, or why not. */
static enum fell members(const struct link *link, int *seats, int *hosts)
{
    MPI_Group group;
    enum fell fell = FELL_NOT;
    int *numbers = calloc((size_t)link->size, sizeof *numbers);
    if (!numbers || below.Comm_group(link->comm, &group)) {
        free(numbers);
        return FELL_ROOM;
    }
    for (int p = 0; p < link->size; p++)
        numbers[p] = p;
    below.Group_translate_ranks(group, link->size, numbers, job.group, seats);
    below.Group_free(&group);
    free(numbers);
    for (int p = 0; p < link->size; p++) {
        if (seats[p] == MPI_UNDEFINED)
            return FELL_OTHER_JOB;
        hosts[p] = job.host[seats[p]];
        seats[p] = job.place[seats[p]];
        fell = hosts[p] != hosts[0] ? FELL_HOSTS : fell;
    }
    return fell;
}

struct joining { tutti_options options; tutti_comm *world; char why[256]; shared32 over; };

/* E95 joined: the thread that joins says so (release) when it has; the caller sees it (acquire). */
static void *join_world(void *arg)
{
    struct joining *j = arg;
    if (tutti_init(&j->world, &j->options) < 0)
        snprintf(j->why, sizeof j->why, "%s", tutti_explain(NULL));
    store_release32(&j->over, 1);                                        /* E95 release */
    return NULL;
}

static void link_unmade(const struct link *link, const char *why)
{
    fprintf(stderr, "tutti: rank %d of a communicator of %d: its calls go to the MPI: %s\n",
            link->rank, link->size, why);
}

/* A world of the ranks of this communicator, `rank` of `size`. */
static tutti_comm *world_of(const struct link *link, MPI_Comm comm, int rank, int size)
{
    char name[64] = "";
    pthread_t thread;
    int well, together = 0;
    struct joining j = { .world = NULL, .why = "no thread could be started" };
    job_name(name);
    if (below.Bcast(name, sizeof name, job.abi.type_byte, 0, comm))
        return NULL;
    j.options = job_options(name, rank, size);
    if (pthread_create(&thread, NULL, join_world, &j) == 0) {
        while (!load_acquire32(&j.over)) {                               /* E95 acquire */
            job_turn(NULL);
            nanosleep(&(struct timespec){ 0, 50000 }, NULL);
        }
        pthread_join(thread, NULL);
    }
    well = j.world != NULL;
    if (!well)
        link_unmade(link, j.why);
    if (below.Allreduce(&well, &together, 1, job.abi.type_int, job.abi.op_min, comm))
        together = 0;
    if (together || !well)
        return j.world;
    tutti_finalize(j.world);
    return NULL;
}

/* Of the ranks on this host, whose places in its world are seats[n]. */
static void connect_here(struct link *link, const int *seats, int n, int rank)
{
    MPI_Comm here = link->comm;
    bool part = n < link->size;
    if (!job.threads) {
        if (tutti_comm_create(job.world, seats, n, &link->tutti) < 0)
            link_unmade(link, tutti_explain(job.world));
        return;
    }
    if (part && below.Comm_split(link->comm, job.host[job.rank], link->rank, &here))
        return;
    link->tutti = world_of(link, here, rank, n);
    link->own_world = true;
    if (part)
        below.Comm_free(&here);
}

static void connect_hosts(struct link *link, int *seats, const int *hosts)
{
    int n = 0, rank = 0;
    for (int p = 0; p < link->size; p++)
        if (hosts[p] == hosts[link->rank]) {
            rank = p == link->rank ? n : rank;
            seats[n++] = seats[p];
        }
    /* job.threads: also the ranks of a host without a world take part in what the MPI does */
    if (job.world || job.threads)
        connect_here(link, seats, n, rank);
    link->spread = spread_make(link->comm, link->rank, link->size, hosts,
                               job.world && link->tutti);
    if (link->spread)
        memcpy(link->spread->seats, seats, (size_t)n * sizeof *seats);
}

/* Makes the comm. All ranks come to the same end. */
static void link_connect(struct link *link)
{
    int between = 0, *seats = calloc((size_t)link->size * 2, sizeof *seats);
    int *hosts = seats ? seats + link->size : NULL;
    below.Comm_test_inter(link->comm, &between);
    link->fell = between ? FELL_BETWEEN : link->size == 1 ? FELL_ALONE
        : !seats                                          ? FELL_ROOM
                                                          : members(link, seats, hosts);
    if (!link->fell && !job.world)
        link->fell = FELL_OFF;
    if (link->fell == FELL_HOSTS)
        connect_hosts(link, seats, hosts);
    else if (!link->fell && link->comm == job.abi.world)
        link->tutti = job.world;
    else if (!link->fell)
        connect_here(link, seats, link->size, link->rank);
    free(seats);
    if (!link->tutti && !link->fell)
        link->fell = FELL_ROOM;
    link->contest.two = link->size == 2;
    link->contest.calm = link->contest.two && job.contests == CONTESTS_LATER;
    link->contest.least = link->fell || !job.contests ? 0 : link->contest.two ? CONTEST_LEAST : 1;
}

/* Errors of the MPI below are the program's: the call itself will meet them. */
static struct link *link_make(MPI_Comm comm)
{
    struct link *link = NULL;
    int found = 0;
    if (below.Comm_get_attr(comm, job.keyval, &link, &found))
        return NULL;
    if (!found) {
        link = calloc(1, sizeof *link);
        if (!link || below.Comm_rank(comm, &link->rank) || below.Comm_size(comm, &link->size)) {
            free(link);
            return NULL;
        }
        link->comm = comm;
        link_connect(link);
        pthread_mutex_lock(&lock);
        link->next = all;
        link->at = &all;
        if (all)
            all->at = &link->next;
        all = link;
        pthread_mutex_unlock(&lock);
        below.Comm_set_attr(comm, job.keyval, link);
    }
    store_release64(known_at(comm), (uintptr_t)link);                    /* E93 release */
    return link;
}

struct link *link_of(MPI_Comm comm)
{
    struct link *link = (struct link *)(uintptr_t)load_acquire64(known_at(comm));  /* E93 acquire */
    if (link && link->comm == comm)
        return link;
    return job.on && comm != job.abi.no_comm ? link_make(comm) : NULL;
}

static int class_of(int error)
{
    switch (error) {
    case -EINVAL:
        return MPI_ERR_ARG;
    case -ENOMEM:
        return MPI_ERR_NO_MEM;
    case -EPROTO:
        return MPI_ERR_TRUNCATE;
    default:
        return MPI_ERR_OTHER;
    }
}

int link_raise(struct link *link, const char *function, int error)
{
    const char *text = link->spread ? link->spread->broken.text : "";
    int class = class_of(error);
    if (!link->failed)
        fprintf(stderr, "tutti: %s on rank %d of %d: %s\n%s\n", function, link->rank, link->size,
                tutti_strerror(error), *text ? text : tutti_explain(link->tutti));
    link->failed = true;
    below.Comm_call_errhandler(link->comm, class);
    return class;
}
