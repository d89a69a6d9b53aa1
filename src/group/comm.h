/* Job: what a rank holds of a world and of each comm in it.
 * Owns: private memory only; in the arena its own member lines (watch/) and, under arena_lock, the
 *       directory of slots (directory.h).
 * Never: algorithms. */
#ifndef TUTTI_GROUP_COMM_H
#define TUTTI_GROUP_COMM_H

#include "arena/arena.h"
#include "arena/lent.h"
#include "arena/span.h"
#include "base/backoff.h"
#include "base/epochs.h"
#include "base/fresh.h"
#include "os/host_memory.h"
#include "watch/threads.h"
#include "watch/watch.h"

#include <pthread.h>
#include <tutti.h>

enum { REPORT_TEXT = 8192, SITE_CACHE = 16, SHAPES = 8, FAULTS_MAX = 8, OPS_MAX = 7168 };

struct progress;                       /* engine/: the world's progress thread */
struct pump;
struct queued;
struct algorithm;                      /* coll/ */
struct p2p;                            /* p2p/ */
struct rules;
struct loaded_file;                    /* disk/ */
struct tutti_queue;                    /* feed/ */
struct ipc_export;                     /* gpu/ */
struct proofs;                         /* gpu/ */

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
    struct kept host;                  /* the marker's descriptor: late ranks see that all met */
    const uint64_t *fork_word;         /* 1 in the process that joined, 0 in a forked child of it */
    void *fork_page;
    pthread_key_t thread_end;          /* set in a thread that has joined or called */
    pthread_mutex_t lock;
    struct tutti_comm *comms;          /* all open comms, the world's own last */
    struct tutti_comm *whole;          /* the comm of all ranks */
    int64_t timeout_ns, warn_ns;       /* defaults of its comms */
    uint64_t spin_ticks;               /* of one round of spinning, where ranks fit the CPUs */
    uint32_t spin_rounds;              /* each ends with a look at deaths and deadlines */
    uint32_t pause_ticks;              /* cost of one pause instruction */
    uint64_t yield_ticks;              /* longest time of yielding */
    uint64_t linger_ticks;             /* before a yield, where ranks share CPUs */
    uint64_t staged_less;              /* STAGED_LESS in ticks */
    unsigned flags;
    bool spin_given;
    int (*interrupt)(void *arg);
    void *interrupt_arg;
    struct wait_progress beside;       /* options.progress */
    struct wait_ways ways;             /* those of the kernel, or with it */
    struct process_id self;
    struct host_memory host_memory;    /* addresses known to be no device's: no driver is asked */
    shared64 *handles;                 /* [size] for watch/death */
    shared32 adrift;                   /* 1: the joining thread has ended */
    struct progress *progress;
    const struct pump *const *pumps;   /* what the progress thread advances; NULL ends the list */
    void *keys;                        /* order/: this rank's counts of keys, and what it runs */
    struct threads threads;            /* threads of this rank that call; changes under lock */
    struct rules *rules;               /* choice of algorithms, parsed from the arena's header */
    struct meanwhile meanwhile;        /* set together with `share` */
    struct loaded_file *loaded;        /* disk/: files loaded or with room here; under lock */
    /* device memory lent to peers, and peers' open here. Set once, under lock; NULL: none */
    struct ipc_export *share;
    struct proofs *proofs;             /* gpu/proof: set once, under lock; NULL: none */
    bool told_plain;                   /* gpu/streams: of unregistered memory; under lock */
    uint64_t pipelines_used;           /* operations of this rank that went through pipelines */
    struct drain *drains;              /* staging of closed comms that peers may read (stage.c) */
    shared32 ring_futex;               /* io_uring can wait for a futex: 0 unknown, 1 yes, 2 no */
    struct world *next;                /* in the process's list (api/world) */
};

struct fault { int kind; uint64_t nth; int action; int delay_ms; };        /* kind -1: any */

enum {
    EAGER_TURNS = 8192,
    EAGER_LARGEST = 256 << 10,
    EAGER_MOST = 2 << 20,
    AHEAD_MOST = 16,                   /* comms with a whole ring by TUTTI_AHEAD, at a time */
    EAGER_ENOUGH = EAGER_MOST / 2,
    EAGER_CHUNK = 16384
};
enum { PIPELINE_SLOTS = 12 };
/* memory of p2p/: peers read it as long as they hold the comm */
struct held { struct held *next; void *at; };

/* Staging memory of this rank, lent to one comm. The first operation that needs it takes it. It
 * goes back when no peer reads it.
 * eager: a block for each parity of the operation's number. A slot begins where its block does.
 * ring: slots of EAGER_TURNS to EAGER_LARGEST bytes, of all operations, one behind the other, so a
 * line is written again late. A line written again soon is still in its readers' caches, and slow
 * to write (base/staged.h). Its pages come chunk by chunk, as the copies earn them (base/fresh.h).
 * It is used from EAGER_ENOUGH bytes on, and goes on growing up to ring_room. A block that is
 * larger than a small slot is then given back.
 * pipeline: may go to another comm, with its fields, between two operations of this one. But
 * `pipeline_busy` stays: only an operation of this comm changes it, under the world's lock. */
struct stage {
    char *eager[2], *ring, *pipeline;
    size_t eager_room[2];              /* addresses of the block */
    /* bytes of each, from its beginning, whose pages are there; of the pipeline: addresses */
    size_t eager_bytes[2], ring_bytes, pipeline_bytes;
    size_t ring_room;                  /* so many it has when it is whole; 0: there is no ring */
    size_t ring_at;                    /* where the next slot may begin */
    struct fresh fresh;
    size_t ring_last;                  /* where the last slot in it begins */
    bool asked, ahead;                 /* TUTTI_AHEAD: the ring was asked for, and came, whole */
    bool looked;                       /* the same: the other's ring has been mapped here */
    size_t pipeline_slot;              /* bytes of a slot of the pipeline */
    uint32_t pipeline_there[PIPELINE_SLOTS];     /* bytes of each slot whose pages are there */
    bool pipeline_whole;               /* all its pages are there */
    bool pipeline_busy;                /* an operation of this comm is in it */
    /* when it was last left: the comm's rounds; the world's pipelines_used */
    uint64_t pipeline_rounds, pipeline_used;
    struct held *held;
};

/* A KiB that goes through a block earns STAGED_LESS / STAGE_EARNS: about a sixth of what the ring
   would save. Measured, 2 ranks on a Zen 4, all_reduce of 64 KiB: 9.8 us with 512 KiB in all, 5.9
   us with 1 MiB, 3.9 us with 2 MiB, and hardly less with 4 MiB. So EAGER_MOST is 2 MiB. That is
   twice its second-level cache, out of which lines must have gone. Where that is smaller, so is the
   ring, whose first time round is the dear one: on a Zen 3 with 512 KiB, 110 broadcasts of 16, 32,
   64 KiB take 0.78, 0.69, 0.90 of the time near with 1 MiB in place of 2, 1,000 of them 0.94 to
   0.99; with 512 KiB 1,000 of 16 and 64 KiB 1.05 and 1.19 of that. One ring and not one for each
   parity: a program whose large operations all have the same parity, because each is followed by a
   small one, uses all of it, too. */
enum { STAGE_EARNS = 8 };

/* Kinds in which blocks change hands (coll/swap); doublings of sizes: eager, through pipelines. */
enum { SWAP_KINDS = 4, SWAP_EAGER_CLASSES = 6, SWAP_CLASSES = 3 };

/* coll/swap. All zeros: nothing has been tried. */
struct swap {
    char *mine;                        /* the block that this rank writes next: */
    char *own, *theirs;                /* its own or the other's. NULL: not known yet */
    size_t bytes;                      /* of `mine`, from its beginning, whose pages are there */
    uint64_t from;                     /* number of the first operation that may write there */
    /* rank 0's: by slots, by blocks that change hands. Rank 1: `off` alone, as rank 0 said last */
    struct epochs epochs[SWAP_KINDS][SWAP_EAGER_CLASSES];
};

/* coll/pipeline_swap: of a kind and a class of sizes. */
struct swap_class {
    struct epochs epochs;              /* rank 0's: by slots, by blocks that change hands */
    struct epochs lying;               /* the same of buffers in the arena: in place, by blocks */
    bool on;                           /* the next operation of the class goes so: both know it */
};

struct site_seen { const char *site; uint32_t number; };

enum { OWED_KINDS = 2, OWED_SIZES = 11 };            /* engine/owed */

/* What a rank does in a collective of even blocks: the same in all calls alike, so it is computed
   once (coll/parts.h). Branches on who gives what to whom are mispredicted after a wait: with them
   a collective of small blocks took twice as long as a barrier, without them as long as one. */
struct even {
    uint32_t gives;                    /* bytes that this rank gives in all; 0: nothing */
    uint32_t takes;                    /* bytes of each block that it takes; 0: it takes none */
    uint32_t first, end;               /* it takes from ranks first to end - 1 but itself */
    /* bytes: where its block begins in what a rank gives; from block to block in c->recv */
    uint32_t at, step;
    uint32_t keeps;                    /* bytes of its block for itself; 0: none, or it is folded */
};

/* A call whose type, operation, count and root have passed the checks, known by its fingerprint;
 * and what was chosen for it. */
struct shape {
    uint64_t stamp;                    /* the fingerprint */
    size_t width, bytes;
    const struct algorithm *algorithm;
    void (*fold)(void *dst, const void *const src[], int n, size_t count, int divisor);
    void (*scaled)(void *dst, const void *const src[], const void *const factor[], int n,
                   size_t count);
    /* fold/scalar.h: the fold of a single element, by lines; NULL: none */
    uint64_t (*word)(uint64_t acc, uint64_t next, unsigned divisor);
    bool floats;                                     /* floating-point modes change its result */
    struct even even;
};

/* A blocking call that has passed all checks. A call alike, with the same buffers, passes them. */
struct again {
    const void *send;
    void *recv;
    size_t count;
    tutti_type type;
    tutti_op op;
    int root;
    unsigned kind;
    /* no such call | ask each time whether the buffers are a device's | they can never be */
    enum { AGAIN_NEVER, AGAIN_ASK, AGAIN_FIXED } how;
    const struct shape *shape;  /* another shape in its place sets `how` to AGAIN_NEVER */
};

/* An operation of the caller's own (tutti_op_create). */
struct comm_op { void (*fn)(const void *in, void *inout, size_t count, tutti_type type); };

/* A rank's hold on a comm: group/'s own fields, and a part for each floor above, under its name.
   The fields of a part that the fast path touches stand first in it. */
struct tutti_comm {
    struct watch watch;                /* first: everything the fast path touches */
    uint64_t seq;                      /* number of the last operation begun here */
    const uint64_t *fork_word;
    struct {
        struct backoff backoff[2];     /* arrival to first look: of barriers; of calls with data */
        shared64 caller;               /* threads_self of the last caller; relaxed */
        shared32 busy;                 /* a thread is inside: plain loads and stores */
        uint64_t calls[KIND_COUNT];    /* begun here, of each kind */
        shared32 attended;             /* threads that spin and pump the queue; no other need to */
        pthread_mutex_t queue_lock;    /* the queue of work, and advancing it */
        struct queued *queue, *queue_tail;
        uint32_t deadlines;            /* works in the queue whose given deadline ends its head */
        bool pumping;                  /* the thread that pumps is in a `done`, without the lock */
        struct fault faults[FAULTS_MAX];
        int fault_count;
        struct owed {                  /* engine/owed: what this rank has left before its end */
            bool on;
            tutti_type type;
            tutti_op oper;
            int root;
            unsigned kind;
            uint32_t site;
            size_t count, bytes;
            uint64_t descriptor;
        } owed;
        /* the same: cycles before the first look for one that leaves, times OWED_STEP, by kind and
         * doubling of bytes */
        uint16_t owed_delay[OWED_KINDS][OWED_SIZES];
        struct site_seen sites[SITE_CACHE];      /* of calls, by address */
    } engine;
    struct {
        const struct algorithm *gate;  /* its barrier, the gate of all one-phase algorithms */
        bool devices;                  /* an operation had device memory (pipeline.h) */
        struct prefetch {              /* coll/eager: between 2 ranks */
            const char *theirs[2];     /* by parity: the other's last slot; NULL: none */
            size_t first[2];           /* in this rank's slot, by parity … */
            size_t written[2];         /* … bytes of it to be fetched; 0: none */
            uint32_t calm;             /* operations in a row in which the other came soon */
            uint32_t way;              /* a look that finds it there takes as many ticks */
        } prefetch;
        uint64_t centrals;             /* operations through the central gate so far */
        uint64_t rounds;               /* rounds through the pipelines so far */
        struct tuner streams[2][TUNER_CLASSES];  /* coll/nontemporal: [with a root] */
        struct stream_try { uint32_t n; bool on; } /* operations of this try so far, and its way */
            stream_tries[2][TUNER_CLASSES];
        struct {                       /* coll/zero_copy; results: [plain or streaming stores] */
            struct tuner sends[TUNER_CLASSES], results[2][TUNER_CLASSES];
        } zero_copy;
        struct tuner staged;           /* copies into the staging */
        struct tuner beside;           /* the same with the block that the rank keeps */
        struct swap swap;
        struct {                       /* coll/pipeline_swap */
            char *own, *theirs;        /* this rank's blocks, the other's; NULL: not yet */
            uint64_t rounds;           /* so far, by blocks */
            struct swap_class classes[SWAP_KINDS][SWAP_CLASSES];
        } pipeline_swap;
        struct tuner folded;           /* folds into it: whole, or by blocks */
        struct tuner folds_streamed;   /* folds into it: by plain or streaming stores */
        struct tuner folds_shared[TUNER_CLASSES];    /* folds into what peers read: as `folded` */
        struct {                       /* coll/cma */
            int said;                  /* may its ranks read each other's memory? */
            uint64_t rights;           /* of this rank, when `said` was found out */
            char *window;              /* peers' data copied here to be folded; NULL: none yet */
        } cma;
    } coll;
    struct {
        struct again again;            /* the last all_reduce that took the fast path */
        struct again again_parts;      /* the last other collective of even parts */
        struct shape shapes[SHAPES];
        struct comm_op *ops;           /* [ops_room], by number; fn NULL: none */
        uint32_t ops_made, ops_room;   /* ops_made: the next number; begins again at OPS_MAX */
    } api;
    struct {
        struct device_streams *streams;          /* gpu/streams */
        void (*close)(struct tutti_comm *comm);  /* closes the streams; before memory is freed */
        struct card *cards;         /* [2] in the span, by parity: what it lends; NULL: none yet */
        /* in place not all could do an operation: from then on, all offer their staging, too */
        bool stages;
        bool no_place;              /* this rank could not open what it was lent, and never will */
    } gpu;
    struct {
        uint64_t turns;                /* turns that this rank has begun */
        bool in_turn;
    } order;
    struct tutti_queue *feed;          /* the queue that this comm is of; NULL: of none */
    struct p2p *p2p;                   /* NULL until the first use. Set under the world's lock */
    shared32 aborting;                 /* comm_abort calls running on this handle */
    bool crowded;                      /* this comm has more ranks than there are CPUs */
    struct world *world;
    struct tutti_comm *next;
    uint64_t birth;
    uint64_t splits;
    /* by list: how often comm_create was called; the number of the last comm made */
    struct creation { uint64_t list, n, made; } *creations;
    size_t creations_used;
    struct stage stage;
    uint64_t agreements;               /* number of the last one this rank has come to (agree.h) */
    /* scratch of an agreement beside work under way: the work's thread uses the watch's own */
    struct { uint32_t *seen; uint8_t *gone; shared8 *lost; } aside;
    char name[32];
    pthread_mutex_t report_lock;       /* the innermost of all locks */
    shared64 numbered;                 /* number of the last operation that may need a report */
    shared64 reported;                 /* `numbered` when the report was last shown */
    char report[REPORT_TEXT];          /* comm_show writes it whole, comm_read takes it whole */
};

/* Opens this rank's handle on a slot, and populates its own member. mine: its rank there. NULL:
 * *error. */
struct tutti_comm *comm_open(struct world *world, struct slot *slot, uint32_t mine, int *error);
struct directory_key;
/* directory_find_or_make. Before it says that all slots are in use it asks the system who of the
 * world is gone. */
int comm_slot(struct world *world, const struct directory_key *key, struct slot **slot);
/* Any thread, at any time, also in a signal handler: no lock, no memory. why: NULL or empty: no
 * reason is given. */
void comm_abort(struct tutti_comm *comm, const char *why);
/* Waits for comm_abort calls of other threads: each is a few stores long. */
void comm_aborted(struct tutti_comm *comm);
/* Takes the comm off the list and frees it. Its staging goes back to the span when no peer can read
 * it any more. */
void comm_close(struct tutti_comm *comm);
/* Of comm_close, under the world's lock: the world keeps the comm's staging while peers read it. */
void stage_close(struct tutti_comm *comm);
/* Forgets the staging that is still kept; the span is closed after it. */
void comm_close_world(struct world *world);

/* The bytes of a whole ring, where the second-level cache has so many; 0: unknown. */
size_t comm_ring_room(size_t second);
static inline bool comm_ring_whole(const struct stage *s)
{
    return s->ring_room && s->ring_bytes >= s->ring_room;
}
/* The ring is whole, and has been earned: one that was bought ahead is so later. */
static inline bool comm_stage_paid(const struct tutti_comm *comm)
{
    const struct stage *s = &comm->stage;
    return comm_ring_whole(s)
        && (!s->ahead || fresh_may(&s->fresh, EAGER_MOST / 4096));
}
/* Between two ranks: maps the other's ring here, which lies around `slot`, where it was asked for
   whole, too. Once. */
void comm_stage_look(struct tutti_comm *comm, const char *slot);
/* A contribution of so many bytes pays for pages of the ring, whichever way it goes. */
void comm_stage_earn(struct tutti_comm *comm, size_t bytes);
/* The eager slot of operation seq, which has begun: at least `bytes`, populated. 0, -ENOMEM,
   -ENOSPC. It holds nothing of operation seq - 1, which peers may still read. From those before all
   ranks have returned (coll/eager.c). used: the next one may begin behind that many bytes. soon: it
   may be one of a few slots ago, else of as many as there is room for. */
int comm_stage_eager(struct tutti_comm *comm, uint64_t seq, size_t bytes, size_t used, bool soon,
                     char **slot);
static inline int comm_eager_slot(struct tutti_comm *comm, uint64_t seq, size_t bytes, char **slot)
{
    if (bytes >= EAGER_TURNS || bytes > comm->stage.eager_bytes[seq & 1])
        return comm_stage_eager(comm, seq, bytes, bytes, false, slot);
    *slot = comm->stage.eager[seq & 1];
    return 0;
}
struct pipeline_need {
    size_t bytes;                 /* of the pipeline, with what lies behind its slots */
    size_t slot, used;            /* bytes of a slot; bytes used of it, from its beginning */
    uint32_t depth, first;        /* slots, at most PIPELINE_SLOTS; the first that is used */
    uint64_t rounds;              /* slots used; UINT64_MAX: all, and what lies behind them */
};
/* Gives the comm a pipeline, populated as far as needed, until comm_pipeline_leave; after a failure
 * for good. 0, -ENOMEM, -ENOSPC. */
int  comm_stage_pipeline(struct tutti_comm *comm, const struct pipeline_need *need);
void comm_pipeline_leave(struct tutti_comm *comm);
/* A device may write into the pipeline at any time from now on: no comm gets it again. */
void comm_pipeline_lose(struct tutti_comm *comm);

/* Memory for sends and receives, 4096-aligned, kept until every peer has let go of the comm. NULL:
 * *error, without a report. */
void *comm_hold(struct tutti_comm *comm, size_t bytes, int *error);
/* The same without pages: comm_touch comes before its use. */
void *comm_hold_bare(struct tutti_comm *comm, size_t bytes, int *error);
/* Gives it back early: the caller knows that no peer reads it any more. */
void  comm_hold_end(struct tutti_comm *comm, void *at);
/* Populates such memory. f learns what the pages cost. 0 or -ENOMEM. */
int   comm_touch(void *at, size_t bytes, struct fresh *f);
/* What `bytes` earn by going through a block too small, towards a larger one (base/fresh.h). */
static inline uint64_t comm_earns(const struct tutti_comm *comm, size_t bytes)
{
    return bytes * comm->world->staged_less / (STAGE_EARNS * 1024);
}

/* Replaces the report. Several threads may fail at once on a comm while others read: each composes
   its text in a buffer of its own. */
void comm_show(struct tutti_comm *comm, const struct text *t);
/* Copies the report. Returns `numbered` as it was then: the report is of no older operation. */
uint64_t comm_read(const struct tutti_comm *comm, char into[static REPORT_TEXT]);
/* Why a comm, or what belongs to one, could not be made: the system's sentence, but -ENOSPC is that
 * there are too many comms, and -EIO that somebody has written over the arena. Immortal. */
const char *comm_reason(int error);
__attribute__((format(printf, 2, 3))) void comm_explain(struct tutti_comm *comm, const char *format,
                                                        ...);

/* Explains how op ended by `result`, which is negative. False: it cannot, and the report is as it
 * was. True by a verdict, a stop, or DAMAGED. */
bool comm_explain_end(struct tutti_comm *comm, const struct op *op, int result);

/* This rank cannot take part for a reason of its own: fails the comm, and peers hear the reason at
 * once. A reason given before stands. */
void comm_give_up(struct tutti_comm *comm, const char *reason);

/* The comm whose callback this thread runs now, or NULL. Calls on that comm return -EDEADLK. */
extern _Thread_local struct tutti_comm *comm_callback;
struct tutti_comm *comm_callback_begin(struct tutti_comm *comm);
void comm_callback_end(struct tutti_comm *comm, struct tutti_comm *outer);
/* For makers of comms: takes the parent's timeout; gives up a made comm. Its slot can be made anew
 * when all members have given it up. */
void comm_inherit(struct tutti_comm *comm, const struct tutti_comm *parent);
void comm_drop(struct tutti_comm *comm);

/* tutti_comm_split and _create, without the checks of arguments (api/). */
int comm_split(struct tutti_comm *parent, uint32_t site, int color, int key,
               struct tutti_comm **comm);
int comm_create(struct tutti_comm *parent, uint32_t site, const int *ranks, int size,
                struct tutti_comm **comm);

#endif
