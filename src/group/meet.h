/* Job: ranks that know nothing but a name come together: one hosts the arena, the others are handed
 *      its descriptor.
 * Owns: the sockets of the meeting, while it lasts.
 * Never: what happens once all sit.
 *
 * Names: eight candidates NAME.0 … NAME.7 in the abstract name space, which is first come, first
 * served for every user, and a ninth where nobody else can come: a path in a directory of this
 * user's, if there is one. Or, where NAME begins with '/', that path alone. A rank looks at all
 * candidates and joins the first that its own user listens on; else it binds the first free one and
 * is the host. A rank whose deadline passes ends the meeting for all who sit; each of the others
 * looks again, until its own deadline. Whoever has been in a meeting that still has its socket
 * looks again, too.
 * A name that is neither ours nor can be had for DOUBT (bound, and not listened on; or listened on,
 * and never answered) is taken for another user's: who holds names keeps no job from its start. */
#ifndef TUTTI_GROUP_MEET_H
#define TUTTI_GROUP_MEET_H

#include "group/assemble.h"
#include "group/join_request.h"
#include "group/seat.h"

enum { MEET_CANDIDATES = 8, MEET_NAMES, MEET_NAME = 108, MEET_TEXT = 1024 };
#define MEET_MAGIC UINT32_C(0x74757431)

/* The joiner's first message. Its shape outlives versions: it is how two builds tell each other
 * that they are two. */
struct meet_hello {
    uint32_t magic, bytes;
    uint64_t layout_hash;
    int32_t rank, size, pid, spare;
    char version[32];
};

/* The host's answer: status 0 comes with the arena's descriptor, anything else with a sentence. */
struct meet_answer {
    uint32_t magic;
    int32_t status;
    int32_t host_rank, spare;
    char text[MEET_TEXT];
};

struct meeting {
    const struct join_request *request;
    struct arena *arena;
    struct assembly gather;
    struct seat_card card;
    int candidates;
    char name[MEET_NAMES][MEET_NAME];
    /* since when a candidate could be neither joined nor bound, 0: it could */
    uint64_t doubt_ns[MEET_NAMES];
    /* abstract, for paths, too: nothing is left on disk. "": none */
    char marker[MEET_NAME];
    char stranger[MEET_NAME];         /* a candidate that another user holds, "" if none */
    uid_t stranger_uid;
    struct text *why;
};

/* Returns as join_world. */
int meet_world(struct meeting *m, int *host_fd);

/* host.c: serves on `listener`, bound to candidate `at`, until all sit; closes it. -EAGAIN: another
 * host was first, look again. */
int meet_host(struct meeting *m, int listener, int at, int *host_fd);

/* late.c: -EEXIST with a sentence if the job of this name is full and this rank's seat is held by a
   living process; -EPERM if that cannot be found out; else 0. */
int meet_late(struct meeting *m);

/* Looks for those who try to meet under this name elsewhere, and notes them, if the name is such
 * that somebody could. */
void meet_look_elsewhere(const struct meeting *m);

/* Connects to a candidate. A descriptor; -ECONNREFUSED free, -EAGAIN somebody is there but busy,
 * -EPERM another user's (noted). */
int meet_try(struct meeting *m, const char *name);

/* What helps against this error of the system, in brackets; "" if nothing is known. */
const char *meet_remedy(int error);

/* What the end of a gathering means to this rank: itself, or -EAGAIN, another rank's deadline
   ended it and our own is not over. Where it is nearly over that is waited for, so that who came
   is known. */
int meet_end(const struct meeting *m, int end);

/* The sentence is written, or for -EAGAIN remembered what it would say, and the seat given back;
 * drop: the mapping and its descriptor, too. Returns error. */
void meet_leave(struct meeting *m, int error);
int meet_drop(struct meeting *m, int error);

#endif
