/* The tables are made of one list that all ranks have: no rank asks another where it is. The
 * errors of both communicators are returned: they are told by the program's own handler. */
#include "mpi/spread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TALKERS = 256 };                /* that introduce themselves to a leader */

static bool tables(struct spread *s, const int *hosts, int rank)
{
    size_t n = (size_t)s->size;
    s->host = calloc(n, sizeof *s->host);
    s->place = calloc(n, sizeof *s->place);
    s->order = calloc(n, sizeof *s->order);
    s->seats = calloc(n, sizeof *s->seats);
    s->first = calloc(n + 1, sizeof *s->first);
    s->number = calloc(n, sizeof *s->number);
    if (!s->host || !s->place || !s->order || !s->seats || !s->first || !s->number)
        return false;
    int *known = s->order;                           /* for now: the number of each host */
    for (int p = 0; p < s->size; p++) {
        int h = 0;
        while (h < s->hosts && known[h] != hosts[p])
            h++;
        if (h == s->hosts)
            known[s->hosts++] = hosts[p];
        s->host[p] = h;
        s->place[p] = s->number[h]++;
    }
    for (int h = 0; h < s->hosts; h++)
        s->first[h + 1] = s->first[h] + s->number[h];
    s->ordered = true;
    for (int p = 0; p < s->size; p++) {
        s->order[s->first[s->host[p]] + s->place[p]] = p;
        s->ordered &= s->first[s->host[p]] + s->place[p] == p;
    }
    s->mine = s->host[rank];
    s->leads = s->place[rank] == 0;
    return true;
}

/* A connection is made by the first message over it, and once a rank has died or a link is cut none
 * may come to be: Open MPI 5 then waits for its daemon, Intel MPI in MPI_Isend. So each rank that
 * may have a note for a leader says its host's name now; of a host with many ranks, some. */
static int talkers(const struct spread *s, int h)
{
    int n = s->hosts > 1 ? TALKERS / (s->hosts - 1) : 1;
    n = n < 2 ? 2 : n;
    return s->number[h] < n ? s->number[h] : n;
}

static int bytes_of(int place) { return place ? 0 : HOST_NAME; }

static bool introduce(struct spread *s, int rank)
{
    MPI_Request *requests = calloc((size_t)(s->hosts + s->size), sizeof *requests);
    int n = 0, e = !requests;
    memcpy(s->names[s->mine], s->name, HOST_NAME);
    for (int h = 0; !e && h < s->hosts; h++) {
        if (h == s->mine)
            continue;
        for (int i = 0; !e && s->leads && i < talkers(s, h); i++)
            e = below.Irecv(s->names[h], bytes_of(i), job.abi.type_byte, s->order[s->first[h] + i],
                            0, s->all, &requests[n++]);
        if (!e && s->place[rank] < talkers(s, s->mine))
            e = below.Isend(s->name, bytes_of(s->place[rank]), job.abi.type_byte,
                            s->order[s->first[h]], 0, s->all, &requests[n++]);
    }
    for (int done = 0; !e && !done;)
        e = below.Testall(n, requests, &done, MPI_STATUSES_IGNORE);
    free(requests);
    return !e;
}

/* The MPI's part. What it makes is freed by spread_free. */
static bool connect(struct spread *s, MPI_Comm comm, int rank)
{
    if (below.Comm_split(comm, 0, rank, &s->all)
        || below.Comm_set_errhandler(s->all, job.abi.errors_return)
        || below.Comm_split(s->all, s->leads ? 0 : MPI_UNDEFINED, rank, &s->leaders))
        return false;
    return (!s->leads
            || below.Comm_set_errhandler(s->leaders, job.abi.errors_return) == MPI_SUCCESS)
        && introduce(s, rank);
}

struct spread *spread_make(MPI_Comm comm, int rank, int size, const int *hosts, bool well)
{
    int can = 0, all = 0;
    struct spread *s = calloc(1, sizeof *s);
    if (s) {
        s->size = size;
        s->all = s->leaders = job.abi.no_comm;
        can = well && tables(s, hosts, rank);
        s->names = calloc(can ? (size_t)s->hosts : 1, sizeof *s->names);
        s->requests = calloc(can ? 3 * (size_t)s->hosts : 1, sizeof *s->requests);
        s->notes = s->requests ? s->requests + 2 * (size_t)s->hosts : NULL;
        can = can && s->names && s->requests;
        if (gethostname(s->name, sizeof s->name - 1) < 0 || !s->name[0])
            snprintf(s->name, sizeof s->name, "?");
    }
    if (below.Allreduce(&can, &all, 1, job.abi.type_int, job.abi.op_min, comm))
        all = 0;
    can = all && connect(s, comm, rank);
    if (all && below.Allreduce(&can, &all, 1, job.abi.type_int, job.abi.op_min, comm))
        all = 0;
    if (all)
        return s;
    if (s)
        spread_free(s, false);
    return NULL;
}

void spread_free(struct spread *s, bool ended)
{
    if (!ended && s->leaders != job.abi.no_comm)
        below.Comm_free(&s->leaders);
    if (!ended && s->all != job.abi.no_comm)
        below.Comm_free(&s->all);
    for (int i = 0; i < ROOMS && !s->broken.error; i++)      /* broken: it may be in use */
        free(s->room[i].at);
    free(s->host);
    free(s->place);
    free(s->order);
    free(s->seats);
    free(s->first);
    free(s->number);
    free(s->names);
    free(s->requests);
    free(s);
}

void spread_lost(const struct spread *s, char text[NOTE_TEXT], const char *who)
{
    const char *other = s->hosts == 2 ? s->names[!s->mine] : "";
    snprintf(text, NOTE_TEXT, "host %.*s: %s has lost the connection to %shost%s%.*s", HOST_NAME,
             s->name, who, *other ? "" : "another ", *other ? " " : "", HOST_NAME, other);
}

char *spread_room(struct spread *s, int number, size_t bytes)
{
    if (!s->room[number].at || s->room[number].bytes < bytes) {
        free(s->room[number].at);
        s->room[number].bytes = bytes < 64 ? 64 : bytes;
        s->room[number].at = malloc(s->room[number].bytes);
    }
    return s->room[number].at;
}
