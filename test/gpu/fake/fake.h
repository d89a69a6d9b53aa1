/* Job: what the parts of the tests' driver share: its objects and the one lock over them.
 * Owns: struct fake, all objects in it.
 * Never: known outside this folder; the code under test sees CUDA's symbols only.
 *
 * One lock, held by every call from its first line to its last, and one condition, signalled
 * whenever anything has ended. Workers hold it, too, but while they sleep and move bytes. Objects
 * are never given back to malloc, so that a use after the end is seen and said, and the worker of a
 * destroyed stream may still be waited for. */
#ifndef TUTTI_TEST_GPU_FAKE_H
#define TUTTI_TEST_GPU_FAKE_H

#include "fake/hooks.h"
#include "fake/ptx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#define FAKE_PROTOTYPE_(symbol, parameters) CUresult symbol parameters;
CUDA_ALL_SYMBOLS(FAKE_PROTOTYPE_)
CUDA_MORE(FAKE_PROTOTYPE_)
#define FAKE_HOOK_PROTOTYPE_(type, name, parameters) type name parameters;
FAKE_HOOKS(FAKE_HOOK_PROTOTYPE_)
#pragma GCC visibility pop

enum {
    DEVICES_MOST = 8, CONTEXTS_MOST = 16, STREAMS_MOST = 64, PEERS_MOST = 8, RANGES_MOST = 1024,
    PAGE = 4096, ALIGN = 512, CONTEXTS_DEEP = 16, GRANULE = 2 << 20, OPENS_MOST = 32,
    PENDING_MOST = 256, OP_RANGES = 68, DEPS_MOST = STREAMS_MOST + 2, CALLS_MOST = 128,
};

/* Who has seen what: operation seen[s] of stream s, and all before it, has ended before what this
 * belongs to begins. */
struct order {
    uint64_t seen[STREAMS_MOST];
    /* streams of other processes, by their events */
    struct { int pid; uint64_t seen[STREAMS_MOST]; } peer[PEERS_MOST];
};

/* The first bytes of every piece of memory, shared by all processes that map it. */
struct header {
    uint64_t magic, id, bytes;
    int owner, device;
    _Atomic int freed;
    struct { _Atomic int pid; _Atomic int count; } open[OPENS_MOST];
    struct pending {
        _Atomic int state;                           /* 0 free, 1 being written, 2 under way */
        int pid, stream, write;
        uint64_t op, begin, end;
    } pending[PENDING_MOST];
};
enum { HEADER_BYTES = 5 * PAGE };
_Static_assert(sizeof(struct header) <= HEADER_BYTES, "fits");

/* A piece of memory: a memfd, mapped here where the fake may touch it. */
struct memory {
    int fd;
    uint64_t id;
    size_t bytes;
    struct header *header;
    unsigned char *bytes_at;
    int refs, device;
    bool shareable;
};

struct access { int stream; uint64_t op; uint64_t begin, end; bool write; const char *call; };

enum range_kind { RANGE_FREE, RANGE_ALLOC, RANGE_OPENED, RANGE_RESERVED, RANGE_MAPPED, RANGE_HOST };

/* Addresses: [begin, end). In a reserved one, mapped ones lie. A registered piece of host memory
 * has `host`, and its own device addresses. */
struct range {
    enum range_kind kind;
    CUdeviceptr begin, end;
    struct memory *memory;
    size_t offset;                                   /* of begin in the memory */
    unsigned char *host;                             /* RANGE_HOST */
    struct CUctx_st *context;
    uint64_t id;                          /* of the buffer: never again the same in this process */
    bool readable, writable;              /* RANGE_MAPPED: cuMemSetAccess has said so */
    int opens, exporter;                  /* RANGE_OPENED */
    uint64_t exporter_begin, exporter_end;
    struct access *accesses;                /* not known to have ended by the host, newest last */
    int accesses_n, accesses_room;
};

struct CUctx_st {
    int device, retained, seat;
    CUresult error;
    const char *told;
    bool peer[DEVICES_MOST];
    struct CUstream_st *null;
    bool made;                              /* by cuCtxCreate; its place is not given out again */
    const int *draining;                    /* by its mark, the thread in context_drain */
};

enum op_kind { OP_COPY, OP_SET, OP_RECORD, OP_WAIT, OP_KERNEL, OP_WORD, OP_FAULT };

/* begin: an offset in the memory, or a host address. */
struct touch { struct range *range; uint64_t begin, end; bool write; struct pending *pending; };

struct event_share {
    _Atomic uint64_t recorded, done;
    _Atomic int users;
    struct order order;
    int pid, stream;
    uint64_t op;
};

struct op {
    struct op *next;
    enum op_kind kind;
    const char *call;
    uint64_t seq;
    struct { struct CUstream_st *stream; uint64_t seq; } dep[DEPS_MOST];
    int deps;
    struct event_share *share;      /* OP_WAIT on, OP_RECORD of an event that others have, too */
    uint64_t share_generation;
    struct touch touch[OP_RANGES];
    int touches;
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    unsigned char value;
    CUresult error;                                  /* OP_FAULT: what becomes of the context */
    struct ptx_launch *launch;
    struct CUevent_st *event;
    /* OP_WORD: the word, its value, and what the host knows when it has that */
    uint32_t *word, number;
    struct order *told;
    bool lies, hangs;                                /* FAKE_CUDA_LIES */
};

struct CUstream_st {
    uint64_t magic;
    int id, priority;                                /* lower numbers go first */
    unsigned flags;
    bool destroyed, hold;
    int capture, capture_mode;
    const int *capturer;            /* its thread's mode; NULL: a test says that it is captured */
    struct CUctx_st *context;
    uint64_t enqueued, done, random;
    struct op *first, **last;
    pthread_t worker;
    struct order order;                              /* of its newest operation */
};

struct CUevent_st {
    uint64_t magic;
    unsigned flags;
    bool destroyed, imported, recorded;
    struct CUctx_st *context;
    struct CUstream_st *stream;                      /* of the newest record in this process */
    uint64_t seq, time_ns;
    struct order order;
    struct event_share *share;                       /* CU_EVENT_INTERPROCESS */
    int share_fd;
    uint64_t generation;
};

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int pid;                                    /* that called cuInit; another one is its fork */
    bool ready;
    int devices;
    int physical[DEVICES_MOST];
    struct CUctx_st context[DEVICES_MOST], other[CONTEXTS_MOST];    /* primary; a program's own */
    struct CUstream_st *stream[STREAMS_MOST];
    int streams;
    _Atomic int misuses;                             /* workers report without the lock, too */
    struct range range[RANGES_MOST];
    uint64_t ids, calls;
    struct order host;                      /* what all threads of the host together have seen */
    unsigned delay_us;
    uint64_t seed;
    bool report_only, pinned_only, no_poison, drain, drain_loads;
    bool crowd;                                      /* fakeCrowd */
    unsigned grid, unaligned;                        /* fakeGrid, fakeUnaligned */
    uintptr_t page;                                  /* of the host's kernel */
};

extern struct fake fake;

/* ---- fake_cuda.c, fake/enter.c: every call begins with ENTER; it holds the lock until
 * it returns */
extern _Thread_local const char *fake_entered;      /* the call that this thread is in, for words */
CUresult fake_enter(const char *call, bool *held);
void fake_leave(bool *held);
#define ENTER \
    __attribute__((cleanup(fake_leave))) bool held_ = false; \
    do { \
        CUresult refused_ = fake_enter(__func__, &held_); \
        if (refused_) \
            return refused_; \
    } while (0)

/* What was done wrong, on one line; the process ends with FAKE_MISUSE_STATUS, or goes on
 * under FAKE_CUDA_MISUSE=report. */
__attribute__((format(printf, 2, 3))) void fake_misuse(const char *kind, const char *format, ...);
bool fake_sticky(CUresult error);
bool fake_process_lives(int pid);
/* 201, or what the context died of; work: a call that asks for more of it */
CUresult context_current(struct CUctx_st **context, bool work);
CUresult context_check(struct CUctx_st *context, bool work);
/* the same of a call that gives something back, or succeeds all the same: nobody need heed
 * its error */
CUresult context_seen(struct CUctx_st **context);
void context_poison(struct CUctx_st *context, CUresult error);
void fake_end_check(void);

/* ---- fake/memory.c, fake/register.c */
struct memory *memory_make(size_t bytes, int device);
struct memory *memory_adopt(int fd);              /* takes the descriptor; NULL: not one of ours */
void memory_drop(struct memory *memory);          /* one reference less */
struct range *range_take(enum range_kind kind, size_t bytes, size_t align);
void range_give(struct range *range);
struct range *range_of(CUdeviceptr at);                 /* the innermost: mapped before reserved */
/* registered memory that holds all of it */
struct range *range_of_host(const void *at, size_t bytes);
bool address_is_ours(CUdeviceptr at);
unsigned char *range_see(const struct range *range, CUdeviceptr at);
/* waits for all that is under way in it in this process */
CUresult range_idle(struct range *range, const char *call);

/* ---- fake/order.c */
void order_join(struct order *into, const struct order *other);
/* checks against others, then remembers */
void order_touch(struct CUstream_st *stream, struct op *op, struct touch *touch);
void order_done(struct op *op);
bool order_busy(const struct range *range, uint64_t begin, uint64_t end, bool write);
void order_export(struct event_share *share, struct CUstream_st *stream, const struct op *op);
void order_import(struct order *order, const struct event_share *share);
void share_wake(struct event_share *share);

/* ---- fake/lie.c: does a read of this memory by a device lie, by that means? */
enum { LIE_COPY = 1, LIE_KERNEL = 2, LIE_HANG = 4 };
int lie_of(const struct CUctx_st *context, const struct range *range);

/* ---- fake/capture.c. 0, or the error of a call that a capture forbids */
CUresult capture_allows(const char *call);
CUresult capture_beside(const struct CUctx_st *context, bool ends);

/* ---- fake/stream.c */
CUresult stream_of(CUstream handle, bool work, struct CUstream_st **stream);
struct op *op_new(enum op_kind kind, const char *call);
void op_touch(struct op *op, struct range *range, uint64_t begin, uint64_t bytes, bool write);
void stream_enqueue(struct CUstream_st *stream, struct op *op);
/* the host does, and has then seen it */
CUresult stream_wait(struct CUstream_st *stream, uint64_t seq);
/* Unless FAKE_CUDA_DRAIN=0: waits for all under way in the context. The host is not taken to
 * have seen it, since nothing promises it. Other threads that give work to the context wait for the
 * end of that, in context_await. */
void context_drain(struct CUctx_st *context);
/* waits until no stream will write a word into it any more */
void words_await(const struct range *range);
void context_await(const struct CUctx_st *context);
struct CUstream_st *stream_make(struct CUctx_st *context, unsigned flags, int priority);
void host_saw(struct CUstream_st *stream, uint64_t seq);

uint64_t fake_now(void);
uint64_t fake_random(uint64_t *state);

#endif
