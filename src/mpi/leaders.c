/* A failure has one origin. The rank that meets it sends a note to the leader of each other host,
 * and breaks the comm of its own. A leader that waits for others looks for notes, and at the ranks
 * of its host. So a rank that dies, or a host that calls something else, is told everywhere, as
 * long as the MPI below carries messages between those that live; most launchers end a job before.
 *
 * Cost: a look at the ranks of the host and for notes each 64 tests; each 50 ms one that takes 1
 * ms, which sees that the host's comm was broken. */
#define TUTTI_NO_SITES
#include "mpi/leaders.h"

#include "mpi/shield.h"
#include "mpi/spread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_DATA = 1, TAG_NOTE = 2, LOOK = 64 };
static const int64_t LONG_LOOK = 50000000, LAST_WORD = 500000000, NOTE_COMES = 100000000;  /* ns */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- failures ---- */

/* What was seen is asked for by its source: MPICH 5.0.2 over UCX waits for ever for a message of
 * any source that has come. -1: the MPI refuses. */
static int note_from(struct spread *s, int from, struct mishap *n)
{
    int flag = 0;
    MPI_Status status;
    if (below.Iprobe(from, TAG_NOTE, s->all, &flag, &status))
        return -1;
    return flag && below.Recv(n, (int)sizeof *n, job.abi.type_byte, abi_source(&status), TAG_NOTE,
                              s->all, &status) == MPI_SUCCESS;
}

/* Open MPI with fault tolerance refuses any source once a rank has died; the others are asked one
 * by one. */
static bool note_heard(struct spread *s, struct mishap *n)
{
    int heard = note_from(s, MPI_ANY_SOURCE, n);
    for (int p = 0; heard < 0 && p < s->size; p++)
        if (s->host[p] != s->mine && note_from(s, p, n) > 0)
            heard = 1;
    return heard > 0;
}

/* The note lasts as long as the process: what is not sent by the end of the time may go later. A
 * connection that there was not yet is made by turns of the MPI's progress. */
static void note_send(struct spread *s, int64_t time)
{
    struct mishap *lasting = malloc(sizeof *lasting);
    int n = 0, sent = 0;
    if (!lasting)
        return;
    *lasting = s->broken;
    for (int h = 0; h < s->hosts; h++)
        if (h != s->mine
            && below.Isend(lasting, (int)sizeof *lasting, job.abi.type_byte, s->order[s->first[h]],
                           TAG_NOTE, s->all, &s->notes[n]) == MPI_SUCCESS)
            n++;
    for (int64_t end = now() + time; !sent && now() < end; sched_yield())
        if (below.Testall(n, s->notes, &sent, MPI_STATUSES_IGNORE))
            return;
}

/* All ranks of the host learn it with their next call, or in the one that they wait in. */
static int told(struct link *link, const struct mishap *n)
{
    if (!link->spread->broken.error)
        link->spread->broken = *n;
    tutti_comm_abort(link->tutti, link->spread->broken.text);
    return link->spread->broken.error;
}

/* A deadline is the same everywhere: leaders tell each other of it, to find out who is silent. */
static int spread_out(struct link *link, int error, const char *text)
{
    struct spread *s = link->spread;
    struct mishap n = { .error = error, .host = s->mine };
    if (s->broken.error)
        return s->broken.error;
    snprintf(n.text, sizeof n.text, "%s", text);
    s->broken = n;
    if (s->leads || error != -ETIMEDOUT)
        note_send(s, LAST_WORD);
    return told(link, &n);
}

/* A rank of the communicator on this host that has died, by its number; -1: none. One that has
 * freed the communicator may be done with all that was called on it. */
static int dead_rank(const struct spread *s)
{
    int n = tutti_failed(job.world, NULL, 0), found = -1;
    int *gone = n > 0 ? calloc((size_t)n, sizeof *gone) : NULL;
    if (gone)
        tutti_failed(job.world, gone, n);
    for (int i = 0; gone && i < n; i++)
        for (int k = 0; k < s->number[s->mine] && found < 0; k++)
            found = s->seats[k] == gone[i] ? s->order[s->first[s->mine] + k] : found;
    free(gone);
    return found;
}

/* Whom the MPI ends can tell its host alone. The next rank of the host tells the others, before the
 * launcher ends it, too. */
static void note_for_ended(struct link *link)
{
    struct spread *s = link->spread;
    const char *said = tutti_explain(link->tutti), *ended = strstr(said, ENDED_BY_MPI);
    if (!ended || s->place[link->rank] != 1)
        return;
    snprintf(s->broken.text, sizeof s->broken.text, "host %.*s: rank %d %.*s", HOST_NAME, s->name,
             s->order[s->first[s->mine]], (int)strcspn(ended, "\n"), ended);
    note_send(s, LAST_WORD / 4);
    s->broken.text[0] = '\0';                        /* tutti's own report says more */
}

int leaders_fail(struct link *link, const char *function, int error)
{
    struct spread *s = link->spread;
    struct mishap heard;
    char text[NOTE_TEXT];
    int dead = error == -EOWNERDEAD ? dead_rank(s) : -1;
    shield_up(link, function);
    if (s->broken.error)
        return s->broken.error;
    if (s->leads && note_heard(s, &heard))
        return told(link, &heard);
    if (error == -ECANCELED) {                       /* it was broken by one who has told all */
        s->broken = (struct mishap){ .error = error, .host = s->mine };
        note_for_ended(link);
        return error;
    }
    if (dead >= 0)
        snprintf(text, sizeof text, "host %.*s: rank %d died; others wait in %s",
                 HOST_NAME, s->name, dead, function);
    else {
        const char *said = tutti_explain(link->tutti);
        snprintf(text, sizeof text, "host %.*s, there numbered from 0: %s: %s: %.*s",
                 HOST_NAME, s->name, function,
                 tutti_strerror(error), (int)strcspn(said, "\n"), said);
    }
    return spread_out(link, error, text);
}

/* The time is up: who says nothing now is to blame. */
static int overdue(struct link *link, const char *function)
{
    struct spread *s = link->spread;
    struct mishap n = { .error = -ETIMEDOUT, .host = s->mine };
    char silent[NOTE_TEXT / 2] = "";
    bool *lives = calloc((size_t)s->hosts, sizeof *lives);
    snprintf(n.text, sizeof n.text, "host %.*s: %s: no answer before the deadline", HOST_NAME,
             s->name, function);
    s->broken = n;
    note_send(s, LAST_WORD);
    for (int64_t end = now() + LAST_WORD; lives && now() < end; sched_yield())
        if (note_heard(s, &n)) {
            if (n.host >= 0 && n.host < s->hosts)
                lives[n.host] = true;
            if (n.error != -ETIMEDOUT)               /* that one knows */
                s->broken = n;
        }
    for (int h = 0; lives && h < s->hosts; h++) {
        size_t at = strlen(silent);
        if (h != s->mine && !lives[h])
            snprintf(silent + at, sizeof silent - at, "%s%.*s (rank %d)", at ? ", " : "",
                     HOST_NAME, s->names[h], s->order[s->first[h]]);
    }
    if (silent[0] && s->broken.error == -ETIMEDOUT)
        snprintf(s->broken.text, sizeof s->broken.text, "%s: no answer from host %s before the "
                 "deadline: it, its leader or the link to it stands still", function, silent);
    free(lives);
    return told(link, &s->broken);
}

/* ---- waits ---- */

static int lost(struct link *link)
{
    char text[NOTE_TEXT];
    spread_lost(link->spread, text, "the MPI");
    return spread_out(link, -ECONNRESET, text);
}

static int waited(struct link *link, const char *function, int64_t began, int64_t *looked)
{
    static const tutti_call brief = { .timeout_ms = 1 };
    struct mishap n;
    int64_t t = now();
    char any;
    size_t room = 1;
    if (note_heard(link->spread, &n))
        return told(link, &n);
    if (dead_rank(link->spread) >= 0)
        return leaders_fail(link, function, -EOWNERDEAD);
    if (link->spread->unsent && t - began > NOTE_COMES)    /* nobody has said why */
        return lost(link);
    if (job.timeout_ms > 0 && t - began > (int64_t)job.timeout_ms * 1000000)
        return overdue(link, function);
    if (t - *looked < LONG_LOOK)
        return 0;
    *looked = t;
    int r = tutti_get_at(function, "mpi-none", &any, &room, link->tutti, &brief);
    return r == -ECANCELED ? leaders_fail(link, function, r) : 0;
}

/* What is left under way after a failure ends by itself. */
int leaders_wait(struct link *link, const char *function)
{
    struct spread *s = link->spread;
    int64_t began = now(), looked = began;
    int flag = 0, e = 0;
    for (unsigned turn = 1; e == 0 && !flag; turn++) {
        if (below.Testall(s->under_way, s->requests, &flag, MPI_STATUSES_IGNORE))
            e = lost(link);
        else if (!flag && turn % LOOK == 0) {
            e = waited(link, function, began, &looked);
            sched_yield();
        }
    }
    return e;
}

static int part_of(size_t bytes, size_t from)
{
    return (int)(bytes - from < PIECE ? bytes - from : PIECE);
}

/* Of a pair both count the same pieces; from piece number `from` on, one for each host. */
static int start(struct link *link, const struct far_bytes give[], const struct far_bytes get[],
                 size_t from)
{
    struct spread *s = link->spread;
    int r = 0;
    s->under_way = 0;
    for (int i = 1; r == 0 && i < s->hosts; i++) {
        int h = (s->mine + s->hosts - i) % s->hosts;
        if (get[h].bytes > from)
            r = below.Irecv(get[h].at + from, part_of(get[h].bytes, from), job.abi.type_byte, h,
                            TAG_DATA, s->leaders, &s->requests[s->under_way++]);
    }
    for (int i = 1; r == 0 && i < s->hosts; i++) {
        int h = (s->mine + i) % s->hosts;
        if (give[h].bytes > from)
            r = below.Isend(give[h].at + from, part_of(give[h].bytes, from), job.abi.type_byte, h,
                            TAG_DATA, s->leaders, &s->requests[s->under_way++]);
    }
    return r ? lost(link) : 0;
}

int leaders_start(struct link *link, const struct far_bytes give[], const struct far_bytes get[])
{
    return start(link, give, get, 0);
}

int leaders_exchange(struct link *link, const char *function, const struct far_bytes give[],
                     const struct far_bytes get[])
{
    size_t most = 0;
    int e = 0;
    for (int h = 0; h < link->spread->hosts; h++)
        if (h != link->spread->mine) {
            most = give[h].bytes > most ? give[h].bytes : most;
            most = get[h].bytes > most ? get[h].bytes : most;
        }
    for (size_t from = 0; e == 0 && from < most; from += PIECE) {
        e = start(link, give, get, from);
        e = e ? e : leaders_wait(link, function);
    }
    return e;
}

int leaders_start_bcast(struct link *link, void *at, size_t bytes, int host)
{
    struct spread *s = link->spread;
    s->under_way = 1;
    return below.Ibcast(at, (int)bytes, job.abi.type_byte, host, s->leaders, s->requests)
        ? lost(link) : 0;
}

/* ---- meeting ---- */

struct header { char function[40]; int type, op, root, unused; uint64_t count; };

static void say_header(char *text, size_t room, const struct header *h)
{
    snprintf(text, room, "%.*s of %llu (type %d, operation %d, root %d)",
             (int)sizeof h->function, h->function, (unsigned long long)h->count, h->type, h->op,
             h->root);
}

static int mismatched(struct link *link, const char *heard, int other)
{
    struct spread *s = link->spread;
    struct mishap n = { .error = -EPROTO, .host = s->mine };
    struct header h[2];
    char text[2][96];
    for (int i = 0; i < 2; i++) {
        memcpy(&h[i], heard + (size_t)(i ? other : 0) * MET, sizeof h[i]);
        say_header(text[i], sizeof text[i], &h[i]);
    }
    snprintf(n.text, sizeof n.text, "host %.16s: %s; host %.16s: %s", s->names[0], text[0],
             s->names[other], text[1]);
    return told(link, &n);                           /* every leader sees it by itself */
}

int leaders_meet(struct link *link, const struct descriptor *d, const void *bytes, size_t n,
                 char **all)
{
    struct spread *s = link->spread;
    struct header h;
    char *heard = spread_room(s, 0, (size_t)(s->hosts + 1) * MET);
    if (!heard)
        return leaders_fail(link, d->function, -ENOMEM);
    char *mine = heard + (size_t)s->hosts * MET;
    memset(&h, 0, sizeof h);
    snprintf(h.function, sizeof h.function, "%s", d->function);
    h.type = d->type;
    h.op = d->op;
    h.root = d->root;
    h.count = d->count;
    memcpy(mine, &h, sizeof h);
    if (n)
        memcpy(mine + HEADER, bytes, n);
    s->under_way = 1;
    int e = below.Iallgather(mine, MET, job.abi.type_byte, heard, MET, job.abi.type_byte,
                             s->leaders, s->requests) ? lost(link) : 0;
    e = e ? e : leaders_wait(link, d->function);
    for (int i = 1; e == 0 && i < s->hosts; i++)
        if (memcmp(heard, heard + (size_t)i * MET, sizeof h))
            e = mismatched(link, heard, i);
    *all = heard;
    return e;
}
