/* Job: bring ranks together that know a name only: one hosts the arena, the others get its
 *      descriptor.
 * Owns: the sockets of the meeting, while it lasts.
 * Never: works on after all have a seat.
 *
 * Candidates: eight names NAME.0 … NAME.7 in the abstract name space, which any user can bind, and
 * a ninth that no other user can: a path in a directory of this user, if there is one. If NAME
 * begins with '/', that path is the only candidate.
 * A rank joins the first candidate on which its own user listens. Else it binds the first free one
 * and is the host.
 * A rank whose deadline passes ends the meeting for all ranks in it. Each of the others looks again
 * until its own deadline. A rank that comes back while the meeting's socket is still there looks
 * again, too.
 * A name that can be neither joined nor bound for DOUBT_NS (bound without a listener, or a listener
 * that never answers) counts as another user's. So a stranger's names do not stop a job. */
#ifndef TUTTI_GROUP_MEET_H
#define TUTTI_GROUP_MEET_H

#include "group/assemble.h"
#include "group/join_request.h"
#include "group/seat.h"

enum { MEET_CANDIDATES = 8, MEET_NAMES, MEET_NAME = 108, MEET_TEXT = 1024 };
#define MEET_MAGIC UINT32_C(0x74757431)

/* The joiner's first message. Its layout never changes: two builds find by it that they differ. */
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
    uint64_t doubt_ns[MEET_NAMES];    /* since when it can be neither joined nor bound; 0: it can */
    char marker[MEET_NAME];           /* abstract also for a path: no file is left; "": none */
    char stranger[MEET_NAME];         /* a candidate that another user holds; "": none */
    uid_t stranger_uid;
    struct text *why;
};

/* Returns as join_world. */
int meet_world(struct meeting *m, int *host_fd);

/* host.c: serves on `listener`, bound to candidate `at`, until all have a seat, and closes it.
 * -EAGAIN: another host was first, look again. */
int meet_host(struct meeting *m, int listener, int at, int *host_fd);

/* restart_guard.c: 0. -EEXIST with a sentence: the job of this name is full, and a living process
   has this rank's seat. -EPERM: that cannot be found out. */
int meet_late(struct meeting *m);

/* Looks for processes that try to meet under this name elsewhere, and notes them. Nothing where the
 * name is a path. */
void meet_look_elsewhere(const struct meeting *m);

/* Connects to a candidate. A descriptor; -ECONNREFUSED: free; -EAGAIN: a listener that is busy;
 * -EPERM: another user's (noted). */
int meet_try(struct meeting *m, const char *name);

/* What the user can do about this error of the system, in brackets; "": nothing known. */
const char *meet_remedy(int error);

/* The end of a gathering as it counts for this rank: `end`, or -EAGAIN: another rank's deadline
   ended it and ours has not passed. If ours passes soon, waits for it and returns -ETIMEDOUT, with
   the list of the ranks that came. */
int meet_end(const struct meeting *m, int end);

/* Writes the sentence (for -EAGAIN remembers its facts) and gives the seat back. drop: also the
 * mapping and its descriptor; returns error. */
void meet_leave(struct meeting *m, int error);
int meet_drop(struct meeting *m, int error);

#endif
