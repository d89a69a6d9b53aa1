/* Job: what a rank holds of a world and of each comm in it.
 * Owns: private memory only; in the arena its own member lines (watch/) and, under arena_lock, the
 *       directory of slots (directory.h).
 * Never: algorithms. */
#ifndef TUTTI_GROUP_COMM_H
#define TUTTI_GROUP_COMM_H

#include "arena/arena.h"
#include "arena/span.h"
#include "base/backoff.h"
#include "base/fresh.h"
#include "base/tuner.h"
#include "os/host_memory.h"
#include "watch/threads.h"
#include "watch/watch.h"

#include <pthread.h>
#include <tutti.h>

enum { REPORT_TEXT = 8192, SITE_CACHE = 16, SHAPES = 8, FAULTS_MAX = 8, OPS_MAX = 7168 };

struct progress;                       /* engine/: the world's progress thread */
struct pump;
struct tutti_work;
struct algorithm;                      /* coll/ */
struct p2p;                            /* p2p/ */
struct rules;
struct loaded_file;                    /* disk/ */
struct ipc_export;                     /* gpu/ */

/* A rank's hold on its world. Private to the process; `lock` guards the list of comms, the span's
 * books and the keys. */
struct world {
    struct arena arena;
    struct span *span;
    struct heap *heap;                 /* tutti_alloc, out of the span */
    struct registered *registered;     /* tutti_register, into the span */
    /* the second mapping of the arena, for tutti_view_readonly; 0: none yet. Set once,
     * under lock */
    shared64 readonly_base;
    int rank, size;
    struct kept host;                  /* what tells late comers that the world has met */
    const uint64_t *fork_word;         /* 1 in the process that joined, 0 in a forked child of it */
    void *fork_page;
    pthread_key_t thread_end;          /* set in a thread that has joined or called */
    pthread_mutex_t lock;
    struct tutti_comm *comms;          /* all open comms, the world's own last */
    struct tutti_comm *whole;          /* the comm of all ranks */
    int64_t timeout_ns, warn_ns;       /* defaults of its comms */
    uint64_t spin_ticks;               /* when ranks fit the CPUs: of one round … */
    /* … of so many, with a look at deaths and deadlines behind each */
    uint32_t spin_rounds;
    uint32_t pause_ticks;              /* what a pause of the CPU costs */
    uint64_t yield_ticks;              /* longest time of yielding */
    uint64_t staged_less;              /* STAGED_LESS in ticks */
    unsigned flags;
    bool spin_given;
    int (*interrupt)(void *arg);
    void *interrupt_arg;
    struct process_id self;
    /* memory of this process that is no device's: nobody need be asked about it */
    struct host_memory host_memory;
    shared64 *handles;                 /* [size] for watch/death */
    shared32 adrift;                   /* the joining thread has ended */
    struct progress *progress;
    const struct pump *const *pumps;   /* what the progress thread carries on; NULL ends the list */
    void *keys;                        /* order/: this rank's counts of keys, and what it runs */
    struct threads threads;            /* of this rank, that call; changes under lock */
    struct rules *rules;               /* which algorithm when, parsed from the arena's header */
    struct meanwhile meanwhile;        /* set by whoever makes `share` */
    /* disk/: files that this rank has loaded, or made room for; under lock */
    struct loaded_file *loaded;
    /* device memory lent to peers, and theirs that is open here; NULL: none yet. Set once,
     * under lock */
    struct ipc_export *share;
    uint64_t pipelines_used;           /* operations of this rank that went through pipelines */
    /* staging of closed comms that peers may still read (comm.c) */
    struct drain *drains;
    /* can rings of this kernel wait for a futex (api/uring)? 0 not asked yet, 1 yes, 2 no */
    shared32 ring_futex;
    struct world *next;                /* in the process's list (api/life) */
};

struct fault { int kind; uint64_t nth; int action; int delay_ms; };        /* kind -1: any */

enum {
    EAGER_TURNS = 8192,
    EAGER_MOST = 1 << 20,
    EAGER_ENOUGH = EAGER_MOST / 2,
    EAGER_CHUNK = 16384
};
enum { PIPELINE_SLOTS = 12 };
/* of p2p/: read by peers as long as they hold the comm */
struct held { struct held *next; void *at; };

/* Staging memory of this rank, lent to one comm: taken at the first operation that needs it, given
 * back when nobody reads it. eager: a block for each parity of the operation's number. Slots of
 * EAGER_TURNS bytes and more take turns in it, since lines that come round too soon are still in
 * their readers' caches, and slow to write (base/staged.h): that takes EAGER_MOST, or at least half
 * of it, less is as good as nothing. `next` is a block of that size in the making, whose pages come
 * one chunk after the other as the copies earn them (base/fresh.h); from EAGER_ENOUGH on it takes
 * the place of the first, and grows on.
 * The pipeline may be lent on to another comm between two operations of this one; all but
 * `pipeline_busy`, which this comm's operation alone changes, under the world's lock. */
struct stage {
    char *eager[2], *next[2], *pipeline;
    size_t eager_room[2];              /* of addresses … */
    /* … and pages that are there; of the pipeline, addresses */
    size_t eager_bytes[2], next_bytes[2], pipeline_bytes;
    size_t eager_at[2];                /* of slots that take turns: where the next may begin */
    struct fresh fresh;
    /* what the pipeline is cut into; of each slot bytes from its beginning whose pages
     * are there … */
    size_t pipeline_slot;
    uint32_t pipeline_there[PIPELINE_SLOTS];
    bool pipeline_whole;               /* … or of all of it */
    bool pipeline_busy;                /* an operation of this comm is in it */
    /* the comm's rounds when it was last left; when that was, in the world's count */
    uint64_t pipeline_rounds, pipeline_used;
    struct held *held;
};

/* What a KiB earns that goes through a block which comes round too soon: an eighth of STAGED_LESS,
   a sixth or so of what it would have been spared. Measured, 2 ranks on a Zen 4, by blocks of 16 to
   256 KiB, of 512 KiB and of 1 MiB: broadcast of 16 KiB 2.0, 1.5, 0.9 us, all_reduce 2.7, 1.9, 1.2,
   of 64 KiB 9.8, 5.9, 3.9, all_gather 12, 7.2, 5.9. */
enum { STAGE_EARNS = 8 };

struct site_seen { const char *site; uint32_t number; };

/* What a rank does in a collective of even blocks: the same for all calls alike, so worked out
   once (coll/parts.h). How long a rank has waited is never the same, and what the processor
   foresees by what came before, it does not foresee after that: small blocks that were found by
   asking of each rank what it gives to whom took twice as long as a barrier, which they now do
   not. All in bytes. */
struct even {
    uint32_t gives;                    /* what this rank gives in all; 0: nothing */
    uint32_t takes;                    /* of each block that it takes; 0: it takes none … */
    uint32_t first, end;               /* … from ranks first to end - 1 but itself */
    /* where in what any rank gives its block begins; from block to block in c->recv */
    uint32_t at, step;
    /* its block for itself: 0, none; not where it is folded with those it takes */
    uint32_t keeps;
};

/* A call whose type, operation, count and root have passed the checks before, under its stamp; and
 * what was chosen for it. */
struct shape {
    uint64_t stamp;
    size_t width, bytes;
    const struct algorithm *algorithm;
    void (*fold)(void *dst, const void *const src[], int n, size_t count, int divisor);
    void (*scaled)(void *dst, const void *const src[], const void *const factor[], int n,
                   size_t count);
    /* fold/scalar.h, of a single element of several ranks by lines; NULL: none */
    uint64_t (*word)(uint64_t acc, uint64_t next, unsigned divisor);
    bool floats;                                     /* which floating-point modes change */
    struct even even;
};

/* A blocking call that has passed all checks: one like it, with the same buffers, passes
 * them, too. */
struct again {
    const void *send;
    void *recv;
    size_t count;
    tutti_type type;
    tutti_op op;
    int root;
    unsigned kind;
    /* there was none; ask whose memory it is; it is ordinary for good */
    enum { AGAIN_NEVER, AGAIN_ASK, AGAIN_FIXED } how;
    const struct shape *shape;  /* as long as nothing else takes its place: then there was none */
};

/* An operation of the caller's own (tutti_op_create). */
struct comm_op { void (*fn)(const void *in, void *inout, size_t count, tutti_type type); };

/* A rank's hold on a comm: group/'s own, and under its name a part for each floor above that keeps
   something here. What the fast path touches of a part stands first in it. */
struct tutti_comm {
    struct watch watch;                /* first: everything the fast path touches */
    uint64_t seq;                      /* number of the last operation begun here */
    const uint64_t *fork_word;
    struct {
        struct backoff backoff[2];     /* from arrival to first look: barriers; what carries data */
        shared64 caller;               /* threads_self of the last that called; relaxed */
        shared32 busy;                 /* a thread is inside: plain loads and stores */
        uint64_t calls[KIND_COUNT];    /* begun here, of each kind */
        shared32 attended;             /* threads that spin and pump the queue: nobody else need */
        pthread_mutex_t queue_lock;    /* the queue of work, and advancing it */
        struct tutti_work *queue, *queue_tail;
        uint32_t deadlines;            /* in the queue, that were given and end its head */
        bool pumping;                  /* who advances the queue has left the lock to call `done` */
        struct fault faults[FAULTS_MAX];
        int fault_count;
        struct site_seen sites[SITE_CACHE];      /* of calls, by address */
    } engine;
    struct {
        const struct algorithm *gate;  /* its barrier, the gate of all one-phase algorithms */
        bool devices;                  /* there was an operation with device memory (pipeline.h) */
        uint64_t centrals;             /* operations that went through the central gate */
        uint64_t rounds;               /* rounds that went through the pipelines */
        struct tuner streams[TUNER_CLASSES];     /* coll/stream */
        struct {                       /* coll/zero_copy; results: by which stores */
            struct tuner sends[TUNER_CLASSES], results[2][TUNER_CLASSES];
        } zero_copy;
        struct tuner staged;           /* copies into the staging */
        struct tuner folded;           /* folds into it, by blocks … */
        struct tuner folds_streamed;   /* … and by which stores */
        struct {                       /* coll/cma */
            int said;                  /* may its ranks read each other's memory? */
            uint64_t rights;           /* of this rank, when that was found out */
            char *window;              /* what is folded out of then; NULL: none yet */
        } cma;
    } coll;
    struct {
        struct again again;            /* the last all_reduce that took the fast path */
        struct again again_parts;      /* the last other collective of even parts */
        struct shape shapes[SHAPES];
        struct comm_op *ops;           /* [ops_room], by number; fn NULL: none */
        uint32_t ops_made, ops_room;   /* the next number: one after another, OPS_MAX in a circle */
    } api;
    struct {
        struct device_streams *streams;          /* its ways to devices (gpu/streams) … */
        void (*close)(struct tutti_comm *comm);  /* … and who closes them before its memory goes */
        struct card *cards;         /* [2] in the span, by parity: what it lends; NULL: none yet */
    } gpu;
    struct {
        uint64_t turns;                /* of this rank, begun */
        bool in_turn;
    } order;
    struct p2p *p2p;                   /* NULL until the first use. Set under the world's lock */
    shared32 aborting;                 /* comm_abort calls running on this handle */
    bool crowded;                      /* this comm has more ranks than there are CPUs */
    struct world *world;
    struct tutti_comm *next;
    uint64_t birth;
    uint64_t splits;
    struct creation { uint64_t list, n, made; } *creations;  /* how often each was asked for */
    size_t creations_used;
    struct stage stage;
    uint64_t agreements;               /* number of the last one this rank has come to (agree.h) */
    /* as the watch's, beside work */
    struct { uint32_t *seen; uint8_t *gone; shared8 *lost; } aside;
    char name[32];
    pthread_mutex_t report_lock;       /* the innermost of all */
    shared64 numbered;                 /* given last to an operation that may lack something */
    shared64 reported;                 /* `numbered` when the report was last shown */
    char report[REPORT_TEXT];          /* comm_show writes it whole, comm_read takes it whole */
};

/* Opens this rank's handle on a slot; `mine` is its rank there. Member pages of its own are
 * populated. NULL: *error. */
struct tutti_comm *comm_open(struct world *world, struct slot *slot, uint32_t mine, int *error);
/* By any thread, at any time, in a signal handler, too: no lock, no memory. why: NULL or empty,
 * none is given. */
void comm_abort(struct tutti_comm *comm, const char *why);
/* Waits for comm_abort calls of other threads: they are a few stores long. */
void comm_aborted(struct tutti_comm *comm);
/* Takes it off the list and frees it; its staging goes back to the span's books as soon as no peer
 * can read it any more. */
void comm_close(struct tutti_comm *comm);
/* stage.c, for comm_close, under the world's lock: the comm's staging waits in the world for the
 * end of its readers. */
void stage_close(struct tutti_comm *comm);
/* the last of it, when the span is closed with its books */
void comm_close_world(struct world *world);

/* Staging for an operation: at least that many bytes, populated. 0, -ENOMEM, -ENOSPC. The eager
   slot is that of operation seq, which has begun: what its block holds, and the block, were
   operation seq - 2's, from which everybody has returned (coll/eager.c). */
int comm_stage_eager(struct tutti_comm *comm, uint64_t seq, size_t bytes, char **slot);
static inline int comm_eager_slot(struct tutti_comm *comm, uint64_t seq, size_t bytes, char **slot)
{
    if (bytes >= EAGER_TURNS || bytes > comm->stage.eager_bytes[seq & 1])
        return comm_stage_eager(comm, seq, bytes, slot);
    *slot = comm->stage.eager[seq & 1];
    return 0;
}
/* A pipeline, populated as far as it is needed. It stays this comm's until comm_pipeline_leave,
 * when its rounds are counted; after a failure for good. */
struct pipeline_need {
    size_t bytes;                 /* of the pipeline, with what lies behind its slots */
    size_t slot, used;            /* of each slot, and from its beginning what is used of it */
    uint32_t depth, first;        /* slots, at most PIPELINE_SLOTS; the first that is used */
    uint64_t rounds;              /* how many in turn; UINT64_MAX: all, and what lies behind them */
};
int  comm_stage_pipeline(struct tutti_comm *comm, const struct pipeline_need *need);
void comm_pipeline_leave(struct tutti_comm *comm);
/* a device may write into it at any time from now on: nobody gets it again */
void comm_pipeline_lose(struct tutti_comm *comm);

/* The same for sends and receives, 4096-aligned: kept until every peer has let go of the comm.
 * NULL: *error, and nothing is reported. */
void *comm_hold(struct tutti_comm *comm, size_t bytes, int *error);
/* its pages are not there: comm_touch, before it is used */
void *comm_hold_bare(struct tutti_comm *comm, size_t bytes, int *error);
/* Pages of such memory: 0 or -ENOMEM; f learns what they cost. */
int   comm_touch(void *at, size_t bytes, struct fresh *f);
/* What bytes earn that go through a block which comes round too soon, where a larger one would
 * not (base/fresh.h). */
static inline uint64_t comm_earns(const struct tutti_comm *comm, size_t bytes)
{
    return bytes * comm->world->staged_less / (STAGE_EARNS * 1024);
}

/* The report. Several threads may fail at once on a comm, and others read meanwhile: each composes
   in a room of its own, and shows it whole. */
void comm_show(struct tutti_comm *comm, const struct text *t);
/* the comm's seq when it was shown: no older operation's */
uint64_t comm_read(const struct tutti_comm *comm, char into[static REPORT_TEXT]);
__attribute__((format(printf, 2, 3))) void comm_explain(struct tutti_comm *comm, const char *format,
                                                        ...);

/* This rank cannot take part, for a reason that only it knows: its peers hear it at once, and the
 * comm has failed. A reason given before stands. */
void comm_give_up(struct tutti_comm *comm, const char *reason);

/* The comm whose callback this thread is running now, or NULL. Its calls on that comm
 * are -EDEADLK. */
extern _Thread_local struct tutti_comm *comm_callback;
struct tutti_comm *comm_callback_begin(struct tutti_comm *comm);
void comm_callback_end(struct tutti_comm *comm, struct tutti_comm *outer);
/* For makers of comms: timeout and the like as the parent's; giving a made one up again (its slot
 * can be made anew once all have). */
void comm_inherit(struct tutti_comm *comm, const struct tutti_comm *parent);
void comm_drop(struct tutti_comm *comm);

/* split and create, all but the checks of arguments (api/). */
int comm_split(struct tutti_comm *parent, uint32_t site, int color, int key,
               struct tutti_comm **comm);
int comm_create(struct tutti_comm *parent, uint32_t site, const int *ranks, int size,
                struct tutti_comm **comm);

#endif
