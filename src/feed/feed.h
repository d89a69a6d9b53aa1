/* Job: a broadcast queue (tutti_queue): the messages of one rank to all others of a comm, in order,
 *      each once for each reader.
 * Owns: in the arena the words of arena/feed_words.h; in private memory what this rank has written
 *       or read so far, and what it holds.
 * Never: waits for a collective but to make the queue; copies a message in its reader before it is
 *        all there, where it is shown in place.
 *
 * The queue has a comm of its own: its slot gives verdict, names and reports, and keeps the ring
 * until the last rank lets go. Positions are bytes since the beginning and only grow. A record
 * begins at its position, modulo the ring. The writer clears the stamp behind a record before it
 * sets the record's own. So a reader finds at its position either 0 or a whole record, and a small
 * message takes a single line from the writer's cache. A writer that is killed in a record has not
 * set its stamp.
 *
 * A message of more than `whole` bytes comes in pieces, which each reader puts together in memory
 * of its own; from FEED_LENT_FROM on it is copied into a loan, if there is memory for one. A first
 * piece says that what came of the message before it was given up.
 *
 * A loan is memory of the writer's span for one message, whose record only says where it lies. It
 * is free again when all readers have gone past that record, as the record's own place is: so no
 * reader counts anything, and one that dies keeps nothing. The writer looks when it needs memory.
 *
 * The writer waits for the slowest reader alone: it can write only when that one has read on. Then
 * it looks again who is the slowest. So it watches one death at a time. All readers sleep on one
 * word, head; each says so by a word of its own, which a kill may leave set at worst for that
 * reader. Room stays for the record of the end, so a close never waits.
 *
 * A call goes in steps that never wait. A blocking call waits between two of them in its own
 * thread. One that is left under way as work (engine/feed_work) is a task: whoever holds the tasks'
 * lock makes its steps. A thread inside finds either no task, and then has the end for itself, or
 * queues its call behind them: only a thread inside adds a task.
 *
 * No wait here is part of a cycle (watch/cycle): a thread that has not called the library so far
 * may be the one that is to put or to get.
 *
 * E96 stamp: the writer writes a record, then its stamp (release); a reader loads the stamp
 *     (acquire), then the record.
 * E97 head: the writer has set a stamp, then head (release), full fence, then it looks at each
 *     reader's `asleep`. A reader loads head (acquire) and finds no stamp. It raises `asleep`, full
 *     fence, loads head (acquire) once more, and sleeps if it is the same.
 * E98 tail: a reader has read a record, then tail (release); the writer loads tail (acquire) and
 *     writes there again.
 * E99 awaited: the reader sets tail (release), full fence, then it looks at `awaited`. The writer
 *     raises that, full fence, loads tail once more (acquire), and sleeps.
 * E114 full: the writer has put all that there is room for, then `full` (release). A reader that
 *     holds messages loads `full` (acquire), then the stamp: without one there is nothing to read.
 *     `full` stays while the writer waits, and after a call that did not, until it finds room.
 * E100 closed: a thread sets `closed` (release), full fence, then it loads `inside` (acquire). A
 *     call sets `inside` (release), full fence, then it loads `closed` (acquire). */
#ifndef TUTTI_FEED_FEED_H
#define TUTTI_FEED_FEED_H

#include "arena/feed_words.h"
#include "base/tiny.h"
#include "group/comm.h"
#include "group/timed_wait.h"

enum {
    FEED_SIZE_MOST = 256,              /* ranks: a writer and 255 readers */
    FEED_ROOM = 8 << 20,
    FEED_ROOM_LEAST = TINY(4096, 4 * FEED_STEP),
    FEED_HOLDS = 64,                   /* messages that a reader holds in place at a time */
    FEED_LENT_FROM = 1 << 20           /* bytes of a message that is better lent than in pieces */
};
#define FEED_ROOM_MOST (UINT64_C(1) << 40)

struct feed_hold { uint64_t at; bool over; };

/* Memory for one message. OUT: the caller's. GIVEN: its put is under way. PUT: it is, and `end` is
 * that of its record. */
struct feed_loan {
    struct feed_loan *next;
    char *at;
    size_t room;
    uint64_t end;
    enum feed_loan_state { LOAN_IDLE, LOAN_OUT, LOAN_GIVEN, LOAN_PUT } state;
};

struct tutti_queue {
    struct tutti_comm *comm;           /* of its own */
    struct feed_head *head;
    char *ring;
    uint64_t room, whole, piece;       /* bytes: of the ring; most of a record; of a piece */
    uint32_t writer;
    unsigned flags;
    shared32 inside;                   /* 1: a thread is in a call */
    shared32 works;                    /* tasks under way */
    shared32 closed;                   /* 1: calls end with -ECANCELED */
    shared32 lost;                     /* readers that died, and the queue went on */
    uint64_t at;                       /* written, or read, up to here */
    struct wait_pace pace;
    int (*interrupt)(void *arg);
    void *interrupt_arg;
    struct timed_wait wait;            /* of the call under way, or the first task, if it waits */
    bool waits;
    uint64_t since;                    /* the tick since when it waits now; 0: it does not */
    shared64 messages, bytes, waited, sleeps, wakes;         /* figures, of this thread */
    /* the writer's */
    uint64_t least;                    /* no reader is behind this */
    uint64_t clear;                    /* from `at` to here all stamps are 0 */
    uint32_t about;                    /* the reader waited for; of the thread that closes, too */
    uint32_t left;                     /* readers that have not closed, and live */
    uint32_t full;                     /* 1 + the reader whose `full` is set; 0: none */
    bool *away;                        /* [size]: those that have, or are dead; and the writer */
    struct feed_loan *loans;
    /* the reader's */
    char *part;                        /* a message that comes in pieces, or has come */
    uint64_t part_bytes, part_got;
    pthread_mutex_t lock;              /* holds, and `at` while there are some */
    shared32 holds;                    /* how many */
    uint64_t first;                    /* the oldest hold; they are numbered from 1 */
    struct feed_hold hold[FEED_HOLDS];
    struct {                           /* engine/feed_work */
        pthread_mutex_t lock;
        struct feed_task *first, **last;         /* under way, in order */
        struct feed_task *ended, **ended_last;   /* to be told */
        shared32 attended;             /* threads that spin and make the steps */
        uint64_t looked_ns;            /* when the first one's wait was last seen to move */
        uint64_t seen;                 /* what the word it waits for was then */
        bool calling;                  /* a thread is in a `done`, without the lock */
        bool used;
    } engine;
};

/* What a call was given. */
struct feed_call {
    enum kind kind;
    uint32_t site;
    int64_t timeout_ns;                /* < 0: none */
    bool once;                         /* does not wait */
    bool behind;                       /* it is a task */
};

/* A message to put: parts, or what lies in a loan. */
struct feed_put {
    const void *const *part;           /* what is left to copy: from here on, `done` bytes gone */
    const size_t *bytes;
    size_t done;
    uint64_t all, left;                /* bytes; left: to put into records */
    struct feed_loan *loan;
    bool begun, own;                   /* own: the loan is the put's */
};

/* Where the next message goes: message, or buf. *bytes: the room, then the length. */
struct feed_get { void *buf; size_t *bytes; tutti_queue_message *message; };

struct feed_task {
    struct feed_task *next;
    struct feed_call call;
    uint64_t began_ns;
    struct feed_put put;
    struct feed_get get;
};

/* The queue of all ranks of parent, a collective on it. start: the first position, a multiple of
 * FEED_STEP. 0, or the same error on all ranks, with the report on parent. */
int  feed_create(struct tutti_comm *parent, uint32_t site, uint32_t writer, uint64_t room,
                 unsigned flags, uint64_t start, struct tutti_queue **queue);
/* 0: this thread is inside. -EBUSY: another one is. -ECANCELED: closed. */
int  feed_enter(struct tutti_queue *q);
void feed_waited(struct tutti_queue *q, int result);         /* feed_leave, of a call that waited */
/* The same as feed_leave, after a call behind tasks. */
static inline int feed_out(struct tutti_queue *q, int result)
{
    store_release32(&q->inside, 0);                                  /* E100 release */
    return result;
}

static inline int feed_leave(struct tutti_queue *q, int result)
{
    if (q->waits)
        feed_waited(q, result);
    return feed_out(q, result);
}

/* The writer's, as comm_hold. */
void *feed_memory(struct tutti_queue *q, size_t bytes, int *error);
/* Any thread. Ends the call under way, and by end_works the tasks. */
void feed_close(struct tutti_queue *q, void (*end_works)(struct tutti_queue *q));
/* Any thread. */
void feed_figures(const struct tutti_queue *q, tutti_queue_figures *figures);
/* The queue that this comm is of, if any, goes; before comm_close. No task is under way, and the
 * progress thread has left it. */
void feed_forget(struct tutti_comm *comm);

/* A step: 0: done. FEED_WAITS: *wait says for what. -errno: over. */
enum { FEED_WAITS = 1 };
/* For a word of rank `peer`, which was `seen` when nothing was found. spin: a word that becomes at
   least `value` when there is something. */
struct feed_wait { shared64 *word; shared32 *sleeps; uint64_t seen; uint32_t peer;
                   const shared64 *spin; uint64_t value; const char *what; };
int  feed_step(struct tutti_queue *q, struct feed_task *task, struct feed_wait *wait);

/* put.c */
int  feed_put(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call);
int  feed_put_step(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
                   struct feed_wait *wait);
/* Of a put that fails otherwise than by a step, too. */
void feed_put_fails(struct tutti_queue *q, struct feed_put *put, int result);
void feed_end(struct tutti_queue *q);                /* of a close */
/* Looks at who reads and who is dead, and how far all have read: q->least. */
int  feed_readers(struct tutti_queue *q, const struct feed_call *call);

/* lend.c */
int  feed_loan(struct tutti_queue *q, size_t bytes, void **block, const struct feed_call *call);
/* The same; -ENOSPC, -ENOMEM without a report. */
int  feed_loan_take(struct tutti_queue *q, size_t bytes, struct feed_loan **taken,
                    const struct feed_call *call);
/* For feed_put. -ENOENT: no loan begins there. -EMSGSIZE: it is smaller. */
int  feed_put_loan_of(struct tutti_queue *q, struct feed_put *put, const void *block, size_t bytes);
int  feed_loan_drop(struct tutti_queue *q, const void *block);
void feed_loans_free(struct tutti_queue *q);         /* the books only */

/* get.c */
int  feed_get(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call);
int  feed_get_step(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call,
                   struct feed_wait *wait);
void feed_release(struct tutti_queue *q, tutti_queue_message *message);
void feed_away(struct tutti_queue *q);               /* of a close */

/* ---- shared by put.c and get.c ---- */

static inline struct feed_record *feed_record_at(const struct tutti_queue *q, uint64_t at)
{
    return (struct feed_record *)(void *)(q->ring + (at & (q->room - 1)));
}

static inline uint64_t feed_record_bytes(uint64_t bytes)
{
    return layout_round(FEED_RECORD + bytes, FEED_STEP);
}

/* One turn of a wait in the calling thread: it spins as far as that pays, then sleeps once. 0: look
   again. -errno: the call ends; the report is written. */
int  feed_wait(struct tutti_queue *q, const struct feed_call *call, const struct feed_wait *wait);
/* A short look for a word that is 0 until then, where that has paid so far. */
enum { FEED_GLANCES = TINY(256, 1) };
bool feed_glance(struct tutti_queue *q, const shared64 *word);
void feed_wake(struct tutti_queue *q, shared64 *word);
/* What was waited for has come. */
void feed_came_late(struct tutti_queue *q);
static inline void feed_came(struct tutti_queue *q)
{
    if (q->since)
        feed_came_late(q);
}
/* Begins the report of a failure: "queue_get on comm 2, called by rank 1 at a.c:3: ". */
void feed_report(struct tutti_queue *q, const struct feed_call *call, struct text *t);
/* The deadline of a call has passed. wait NULL: others were before it. Returns -ETIMEDOUT. */
int  feed_late(struct tutti_queue *q, const struct feed_call *call, const struct feed_wait *wait);
/* The other side is dead or gone. Returns -EOWNERDEAD. */
int  feed_gone(struct tutti_queue *q, const struct feed_call *call, uint32_t peer);
/* What stands in the arena cannot be true. Returns -EIO. */
int  feed_damaged(struct tutti_queue *q, const struct feed_call *call);
static inline void feed_count(shared64 *figure, uint64_t more)
{
    /* relaxed: a figure for people */
    store_relaxed64(figure, load_relaxed64(figure) + more);
}

#endif
