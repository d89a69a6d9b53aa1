/* tutti: all together. Collectives for the processes ("ranks") of one machine, through one shared arena.
 *
 * This header is the whole core API. It is plain C11 (and C++17), has no inline functions, and needs -ltutti.
 *
 *     tutti_comm *world;
 *     if (tutti_init(&world, NULL) < 0) { fprintf(stderr, "%s\n", tutti_explain(NULL)); return 1; }
 *     float x[2] = { 1, 2 };
 *     int error = tutti_all_reduce(x, x, 2, TUTTI_F32, TUTTI_SUM, world, NULL);
 *     if (error < 0) fprintf(stderr, "%s\n", tutti_explain(world));
 *     tutti_finalize(world);
 *
 * RESULTS. 0 (or a non-negative result) or a negative errno; errno itself is not touched. The kinds:
 *     -EOWNERDEAD  a rank died or left             -ETIMEDOUT  the deadline passed
 *     -EPROTO      the ranks called different things
 *     -ECANCELED   a rank aborted, or the comm is broken by an earlier failure
 *     -EDEADLK     a wait that can never end       -EINVAL     a bad argument, found before anything is touched
 *     -EBUSY       another thread is inside this comm, or (finalize, comm_free) work is under way
 *     -EAGAIN      not done yet                    -EINTR      the interrupt function said stop
 *     -EPERM       not yours to join or to end     -ECHILD     the caller is a fork of a rank, not the rank; see tutti_spawn
 *     -EIO         a device failed, or the arena has been written over
 *     -EXDEV       the ranks are not on one host   -EMSGSIZE, -ENOTSUP, -ENOMEM, and the system's own
 *
 * FAILURE. Each rank's first call that meets a failure of its comm returns the cause; all its later calls on that comm return
 * -ECANCELED; tutti_comm_shrink makes a working comm of the survivors. A death between operations is met by the next call. Comms
 * without the dead rank are unharmed. A comm's failure breaks neither its parent nor its children. These work on a broken comm:
 * agree, shrink, failed, explain, stats, rank, size, abort, finalize, set_timeout, comm_free, tutti_free, unregister, handle, view,
 * wait and test of handles. An error that all ranks agree on and that has nothing to do with peers leaves the comm whole. A bad
 * argument is refused on that rank alone; peers that wait for it read in their report that its last call was refused, and where.
 * What a rank lacks for a call that others wait in (memory, a thread, a descriptor) ends it for all, at once: there it is -ENOMEM, -EAGAIN …,
 * on the others -ECANCELED, with the reason in their reports, and the comm has failed; or, as each function says, the same error on all.
 *
 * WAITS THAT CAN NEVER END. Ranks that wait for each other in a cycle, in whatever calls and comms, get -EDEADLK within two
 * seconds, and the report says who waits where for whom. Of a collective all ranks get it, and its comm has failed; once,
 * first_begin, turn_begin (a turn taken), send (not sent), recv, probe and get fail alone, their comm is whole. It is no cycle
 * where somebody could still help: a thread of these ranks that has ever called the library in this job, lives and does not wait
 * itself; work under way and its `done`; a deadline that was given, to the call, the comm (tutti_set_timeout) or the options
 * (TUTTI_TIMEOUT_MS), which ends a wait by itself, a collective for all. The default of 30 minutes was given by nobody.
 * comm_agree and comm_shrink: only their deadline.
 *
 * ALL OR NONE holds for every collective: no rank gets 0 for an operation for which a living rank gets an error. Every collective
 * therefore waits until all ranks have arrived, also with count 0.
 *
 * BUFFERS. `count` counts elements of `type`; in all_to_all, per peer. In place as each function says; any other overlap is -EINVAL.
 * Buffers may be any memory, at any alignment; large ones are read where they lie if they are memory of tutti_alloc or
 * tutti_register. Every reduction folds in rank order 0 … N-1: all ranks get identical bits, in every run.
 *
 * DEVICE BUFFERS. The buffers of a collective may be CUDA device memory (or managed): each rank says so by its pointers alone, all on one
 * device in one call, send and recv apart if you like, beside ranks whose buffers are the host's. The call is ordered behind what call.stream
 * had to do when it was called (NULL: the default stream), by the rank's host: neither it nor work of it leaves anything in that stream. When
 * it returns 0 (work: when tutti_wait does) the result is in place for any stream; the bits are those of host buffers. -EINVAL, refused: a
 * stream that is captured into a graph, buffers on two devices or beyond their allocation, call.stream where all buffers are the host's,
 * memory of the process this one forked off from. -EIO: a device failed; all ranks get it, the report names the device and the call of CUDA.
 * After a failure copies that are under way are waited for, up to a second. Host memory only: send, recv, the store, call.factor. CUDA is not
 * touched before the first device buffer, and not needed to build; the device's primary context is kept until the last comm that used it goes.
 *
 * THREADS. A comm is used by one thread at a time; a second one inside gets -EBUSY. Different comms are independent.
 * tutti_comm_abort (also from a signal handler), tutti_explain, tutti_failed, tutti_stats, tutti_rank, tutti_size and tutti_test
 * may be called by any thread at any time. Ranks may also be threads of one process, each with a world of its own. A thread that is
 * cancelled in a call is cancelled behind it (deferred cancellation; with the asynchronous kind no call may be made).
 *
 * CAVEATS. What can still go wrong, and what to do.
 *  - The arena is memory that all ranks can write. Where a rank scribbles over it, numbers, offsets and lengths that make no sense end the
 *    others' calls in -EIO or -EPROTO; but a payload, a key, a count that still makes sense is believed; a lock of the C library that was
 *    written over can hold up its users for 30 s or crash them; and whoever writes over all its own words, also of what it has read of the
 *    others' buffers, and then does nothing more, can let them wait as long as it lives. Find the wild pointer; TUTTI_VERIFY=1 says which results differ.
 *  - A rank that is stopped (SIGSTOP, a debugger) is alive: the others wait until their deadline, or for ever if there is none. Set one. Time
 *    in which the waiter itself did not run (stopped, suspended, starved of its CPU) is not counted: on a machine that is overloaded many
 *    times over, deadlines come late.
 *  - Cycles of waits are found where they can be proved: not through comm_agree and comm_shrink, not where a thread that has
 *    called lives on and does something else, where more than 8 threads of a rank have called, or 256 waits hang together. There
 *    the deadline ends them.
 *  - A death that leaves no mark in the kernel (memory reaped by the OOM killer first, an exec by another thread, a robust list replaced by
 *    another library) is noticed at the end of a waiting slice (up to 250 ms, where ranks share a pid namespace or /proc shows them)
 *    instead of at once; without /proc, in another pid namespace, only by the deadline.
 *  - A rank that dies before it has reached the meeting is one that never comes: the others wait until the join deadline.
 *  - A thread that ends itself by a raw exit system call, past the C library, counts as a death of its rank.
 *  - A comm used by two threads whose calls overlap by less than a cache miss may slip past the -EBUSY check. Give each thread a comm.
 *  - Registered memory that is freed stays registered: the allocator hands it out again as memory that peers see and forked children
 *    share. Unregister first, or use tutti_alloc, which has neither trap.
 *  - mlockall does not reach the arena, or all spans would become memory: who wants memory of tutti_alloc locked says so of it (mlock).
 *  - Memory is promised when it is handed out; a cgroup limit lowered later kills whoever touches it, as any memory.
 *  - A fork of a rank is not the rank (-ECHILD), and does not have the arena: memory of tutti_alloc, tutti_load and tutti_view is not there in a
 *    child (SIGSEGV), and goes with the job's last rank, whoever lives on. Copy what a worker process is to read. Registered memory is the
 *    program's own: a child shares it, and holds the arena's memory while it has it.
 *  - Another user who holds all eight meeting names of a job can stop it from starting only where this user has no directory of its own
 *    (XDG_RUNTIME_DIR, HOME); TUTTI_MEET names one. One who knocks without end costs the host CPU time while ranks join.
 *  - TUTTI_SITE strings must live for ever: do not dlclose code that has called tutti through the macros. libtutti.so itself stays in the
 *    process and may be loaded and closed as often as one likes; a plugin that holds libtutti.a must not be unloaded (link it -z nodelete). */
#ifndef TUTTI_H
#define TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_comm tutti_comm;   /* one rank's hold on a group of ranks; the world is one */
typedef struct tutti_work tutti_work;   /* an operation under way */

/* Element types. C64: two f32; C128: two f64; BOOL: one byte, 0 or not 0. F8E4M3 is the OCP "FN" variant (no infinities, overflow becomes
 * NaN), F8E5M2 has infinities. */
typedef enum {
    TUTTI_I8 = 0, TUTTI_U8 = 1, TUTTI_I16 = 2, TUTTI_U16 = 3, TUTTI_I32 = 4, TUTTI_U32 = 5, TUTTI_I64 = 6, TUTTI_U64 = 7,
    TUTTI_F16 = 8, TUTTI_BF16 = 9, TUTTI_F32 = 10, TUTTI_F64 = 11, TUTTI_BOOL = 12, TUTTI_C64 = 13, TUTTI_C128 = 14,
    TUTTI_F8E4M3 = 15, TUTTI_F8E5M2 = 16
} tutti_type;

/* Operations of reductions. Integers: all; SUM and PROD wrap; AVG sums in 64 bits and truncates toward zero. Floats: SUM, PROD,
 * MIN, MAX, AVG, PREMUL_SUM; f16, bf16 and the 8-bit floats accumulate in f32; one rounding, at the end; in MIN and MAX a NaN wins and
 * -0 < +0; every NaN result is the one positive quiet NaN of its type. Complex: SUM, PROD, AVG, PREMUL_SUM. BOOL: SUM = MAX = LOR,
 * PROD = MIN = LAND, B* = L*, no AVG; results are 0 or 1. Every other pair is -EINVAL, with the reason in tutti_explain.
 * PREMUL_SUM multiplies each rank's contribution by that rank's call.factor first. From TUTTI_OP_USER on: tutti_op_create. */
typedef enum {
    TUTTI_SUM = 0, TUTTI_PROD = 1, TUTTI_MIN = 2, TUTTI_MAX = 3, TUTTI_AVG = 4, TUTTI_BAND = 5, TUTTI_BOR = 6, TUTTI_BXOR = 7,
    TUTTI_LAND = 8, TUTTI_LOR = 9, TUTTI_LXOR = 10, TUTTI_PREMUL_SUM = 11,
    TUTTI_OP_USER = 1024, TUTTI_OP_MAX = 0x7fffffff
} tutti_op;

enum { TUTTI_KEEP = 1 };                                                                   /* tutti_call.flags */
enum { TUTTI_BIND_CORE = 1, TUTTI_BIND_NUMA = 2, TUTTI_NO_SPIN = 4, TUTTI_LOCAL = 8 };     /* tutti_options.flags */

/* The last argument of every collective; NULL: the defaults. Zero means the default, field by field.
 * Unknown flag bits and non-zero reserved fields are -EINVAL.
 * TUTTI_KEEP (needs work): the deadline is news for this rank alone and breaks nothing. When it has passed, tutti_wait and
 * tutti_test return -ETIMEDOUT instead of -EAGAIN; the handle stays, the buffers stay in use, and the operation goes on. */
typedef struct tutti_call {
    int          timeout_ms;            /* 0 the comm's own; negative: none */
    unsigned     flags;                 /* TUTTI_KEEP */
    tutti_work **work;                  /* not NULL: start only, and leave the handle here */
    void        *stream;                /* CUstream (cudaStream_t) of the device buffers; see there */
    const void  *factor;                /* TUTTI_PREMUL_SUM: one element of the type, this rank's own */
    void       (*done)(int error, void *arg);   /* with work: called once, by the thread that completes it; see tutti_wait */
    void        *done_arg;
    uint64_t     reserved[4];
} tutti_call;

/* What tutti_init and tutti_spawn can be told. Zero means: the environment twin TUTTI_<FIELD>, else the launcher's, else the default. */
typedef struct tutti_options {
    const char *job;                    /* the name ranks meet under; default: from the launcher's environment */
    int         rank, size;             /* size 0: from the environment; no environment: alone, rank 0 of 1 */
    int         timeout_ms;             /* deadline of every operation; 0: 30 minutes; negative: none */
    int         join_timeout_ms;        /* for all ranks to arrive; 0: 60 s */
    int         warn_ms;                /* a wait older than this prints the roll-call on stderr; 0: 30 s; negative: never */
    unsigned    spin_us;                /* longest spin before yielding or sleeping; 0: chosen, none when ranks outnumber CPUs. Deaths and
                                           deadlines are looked at every 2 ms of it; messages spin 2 ms at most */
    unsigned    flags;                  /* TUTTI_BIND_CORE, TUTTI_BIND_NUMA, TUTTI_NO_SPIN, TUTTI_LOCAL */
    size_t      span_bytes;             /* address space of each rank's own memory in the arena, touched only as used */
    int       (*interrupt)(void *arg);  /* asked in every slice of a sleep (<= 250 ms): not 0 ends the wait with -EINTR and aborts the comm
                                           (an agree or shrink is ended for all instead) */
    void       *interrupt_arg;
    uint64_t    reserved[6];
} tutti_options;

/* Figures of this rank, since the comm began. Times in nanoseconds; wait_ns: waiting for peers; fold_ns: folding and copying;
 * came_last: operations in which nobody had to be waited for; sleeps: times it slept in the kernel. */
typedef struct tutti_figures { uint64_t operations, bytes, wait_ns, fold_ns, came_last, sleeps, reserved[10]; } tutti_figures;

/* ---- life ---- */

/* Joins the world: all ranks of the job, found by `tutti run`, torchrun (RANK, WORLD_SIZE …), Open MPI, MPICH (PMI), srun, or by
 * options (job, rank, size). Without any of these: alone, rank 0 of 1. Blocks until all ranks have joined or the join deadline, each
 * rank until its own. May follow tutti_finalize (a new world of the same job) and a tutti_init that failed: ranks that come again, in the
 * same or in a new process, meet those that are there. options NULL: all defaults.
 * Errors: -ETIMEDOUT (tutti_explain(NULL) names who did not come, who was refused, and who waits elsewhere: another user, another network
 * namespace), -EOWNERDEAD (one died on the way), -EXDEV (the launcher says the ranks are on several hosts; TUTTI_LOCAL: this host's ranks),
 * -EPERM (another user's job), -EPROTO (another size or another build of the library), -EEXIST (that rank has joined already, or is joining,
 * as this or another process), -EINVAL (options or environment), -ENOMEM. On error *world is NULL. */
int  tutti_init(tutti_comm **world, const tutti_options *options);

/* Leaves the world and frees all its comms. Waits for nobody. Peers that wait for this rank, now or later, get -EOWNERDEAD ("left").
 * Any thread may call it. -EBUSY with work under way (nothing is done then). The comm must not be used afterwards. */
int  tutti_finalize(tutti_comm *world);

/* Forks `size` children, each a rank of one world, and runs fn(world, arg) in each; a child leaves by _exit(value & 255) after
 * fflush. Waits for all. A killed rank does not end the others. Returns how many ranks did not exit with 0, or a negative error if
 * not all could be started; status[r] (may be NULL) as waitpid gives it. options->timeout_ms > 0 limits the life of the whole job:
 * then SIGKILL to all and -ETIMEDOUT. Call it from one thread of a process that is itself not inside a collective. Meanwhile
 * SIGCHLD is not ignored in it. -ECHILD: something else in the process has waited for a rank, whose end is not known (status 0xffff).
 *     static int body(tutti_comm *world, void *arg) { return tutti_barrier(world, NULL) ? 1 : 0; }
 *     int failed = tutti_spawn(4, body, NULL, NULL, NULL); */
int  tutti_spawn(int size, int (*fn)(tutti_comm *world, void *arg), void *arg, const tutti_options *options, int status[]);

/* The library's version, "0.1.0". */
const char *tutti_version(void);

/* ---- comms ---- */

/* This rank's number in comm, 0 … size-1; the number of ranks. Any thread, broken comms too. -EINVAL for NULL. */
int  tutti_rank(const tutti_comm *comm);
int  tutti_size(const tutti_comm *comm);

/* Divides parent: ranks with the same color >= 0 form a comm, ordered by (key, rank in parent). color < 0: take part, get NULL.
 * A collective over parent: all or none. The new comm inherits timeout and options. Errors besides the usual: -ENOSPC (too many comms). */
int  tutti_comm_split(tutti_comm *parent, int color, int key, tutti_comm **comm);

/* Makes a comm of the listed ranks of parent, in that order; called by those ranks alone, with the same list. Matched by the list
 * and its how-many-th creation on this parent. A death, deadline or abort during it is an error on the listed ranks alone; the
 * parent stays whole. So is what one of them lacks (-ENOSPC, too many comms; -ENOMEM …), the same on all of them, whenever they come. Where the
 * parent has failed or is aborted, nobody waits: the cause, or -ECANCELED; where a listed rank has freed it, -EOWNERDEAD. -EINVAL: the caller is not in ranks, a rank twice, a rank out of range. */
int  tutti_comm_create(tutti_comm *parent, const int ranks[], int size, tutti_comm **comm);

/* A fresh comm of the ranks that are left of `broken`, in their old order. All of them call it, after any kind of failure, or none;
 * blocks until all living ranks have come. A rank that dies meanwhile is left out, too: all that get 0 get the same ranks. With nobody
 * gone it gives a comm of all. The new comm inherits timeout and options; `broken` stays to be freed, or for agree and shrink again.
 * Work under way on `broken` ends first; its handles still are to be waited for. A failure is the same on all (but -EINTR): -ETIMEDOUT (one
 * did not come within a rank's deadline; a latecomer gets it, too), -EPROTO (others called comm_agree), -ECANCELED (one was
 * interrupted: -EINTR there), -ENOSPC, -ENOMEM (one could not make it). Then it may be tried again. */
int  tutti_comm_shrink(tutti_comm *broken, tutti_comm **comm);

/* Bitwise AND of *flag over all living ranks of comm, the same on all, broken comm or not: has everybody saved? Blocks until all living
 * ranks have come; 0 whoever died (a vote cast before counts). Does not stand behind work under way, and neither breaks nor mends
 * the comm. Errors as of tutti_comm_shrink; *flag is left alone then.
 *     int saved = save() == 0;
 *     if (tutti_comm_agree(comm, &saved) == 0 && saved) remove_the_old_one(); */
int  tutti_comm_agree(tutti_comm *comm, int *flag);

/* Breaks the comm on purpose: operations under way and to come end with -ECANCELED on all ranks, with this text (up to 119 bytes).
 * Also how a rank passes an error of its own on. Any thread, also a signal handler; 0 also on a broken comm. */
int  tutti_comm_abort(tutti_comm *comm, const char *why);

/* Frees this rank's hold; local, legal on a broken comm. -EBUSY with work under way; -EINVAL for a world (tutti_finalize frees it).
 * Peers that later wait there for this rank get -EOWNERDEAD ("freed the comm"). */
int  tutti_comm_free(tutti_comm *comm);

/* How many ranks of comm are known dead or gone; ranks[0 … most-1] receives which (ranks in comm, ascending). ranks may be NULL
 * when most is 0. Any thread. */
int  tutti_failed(const tutti_comm *comm, int ranks[], int most);

/* The deadline of this rank's later operations on comm, milliseconds; 0: the world's own default; negative: none. Waits with
 * one that is given here, like that of a call, end by themselves: they are part of no cycle. */
int  tutti_set_timeout(tutti_comm *comm, int timeout_ms);

/* ---- collectives: every rank of comm calls them, in the same order ---- */

/* Returns when all ranks have called it. */
int  tutti_barrier(tutti_comm *, const tutti_call *);

/* buf[count] of root to buf[count] of all. */
int  tutti_broadcast(void *buf, size_t count, tutti_type, int root, tutti_comm *, const tutti_call *);

/* recv[count] of root becomes the fold of all send[count]; recv may be NULL on other ranks. In place: send == recv (on root). */
int  tutti_reduce(const void *send, void *recv, size_t count, tutti_type, tutti_op, int root, tutti_comm *, const tutti_call *);

/* recv[count] of every rank becomes the fold of all send[count], the same bits everywhere. In place: send == recv.
 *     float loss = …; tutti_all_reduce(&loss, &loss, 1, TUTTI_F32, TUTTI_AVG, world, NULL); */
int  tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* recv[recvcount] of rank p becomes the fold of block p of all ranks' send[size * recvcount]. In place: recv == send + rank * recvcount. */
int  tutti_reduce_scatter(const void *send, void *recv, size_t recvcount, tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* Block p of recv[size * sendcount] becomes send[sendcount] of rank p, on all ranks. In place: send == recv + rank * sendcount. */
int  tutti_all_gather(const void *send, void *recv, size_t sendcount, tutti_type, tutti_comm *, const tutti_call *);

/* The same, on root alone; recv may be NULL on other ranks. */
int  tutti_gather(const void *send, void *recv, size_t sendcount, tutti_type, int root, tutti_comm *, const tutti_call *);

/* recv[recvcount] of rank p becomes block p of root's send[size * recvcount]; send may be NULL on other ranks.
 * In place, on root: recv == send + root * recvcount. */
int  tutti_scatter(const void *send, void *recv, size_t recvcount, tutti_type, int root, tutti_comm *, const tutti_call *);

/* Block p of recv[size * count] becomes block `rank` of rank p's send[size * count]. In place: send == recv. */
int  tutti_all_to_all(const void *send, void *recv, size_t count, tutti_type, tutti_comm *, const tutti_call *);

/* recv[count] of rank r becomes the fold of send[count] of ranks 0 … r (AVG: their mean). In place: send == recv. */
int  tutti_scan(const void *send, void *recv, size_t count, tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* The same of ranks 0 … r-1; rank 0's recv is left alone, and may be NULL. */
int  tutti_exscan(const void *send, void *recv, size_t count, tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* Several buffers, one operation: recv[i][counts[i]] becomes the fold of all send[i][counts[i]], for i < buffers. The counts are the
 * same on all ranks (else -EPROTO). One wait for all of them: for many small tensors. In place: send[i] == recv[i]. */
int  tutti_all_reduce_many(const void *const send[], void *const recv[], const size_t counts[], int buffers,
                           tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* 1 if all ranks hold the same bytes at ptr, 0 if not (by 128-bit digests). `bytes` is the same on all. With work it is the result. */
int  tutti_same(const void *ptr, size_t bytes, tutti_comm *, const tutti_call *);

/* The general forms: one pointer and one count per rank, so separate buffers and uneven counts alike. The arrays are used during the
 * call only, also with work; where this rank has no use for one (gather_v: recv and counts beside the root) it may be NULL.
 * all_gather_v, reduce_scatter_v: `counts` is the same list on all ranks; the others: what p gives q must be what q takes from p.
 * Where they differ, all ranks get -EPROTO, and the report says which two. In place: send and recv pointers of a block are equal. */
int  tutti_all_gather_v(const void *send, size_t sendcount, void *const recv[], const size_t counts[], tutti_type, tutti_comm *, const tutti_call *);
int  tutti_gather_v(const void *send, size_t sendcount, void *const recv[], const size_t counts[], tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_scatter_v(const void *const send[], const size_t counts[], void *recv, size_t recvcount, tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_reduce_scatter_v(const void *const send[], const size_t counts[], void *recv, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_to_all_v(const void *const send[], const size_t sendcounts[], void *const recv[], const size_t recvcounts[],
                        tutti_type, tutti_comm *, const tutti_call *);

/* An operation of one's own for reductions on this comm: inout[i] = in[i] ∘ inout[i], `in` coming from the lower ranks; applied in rank
 * order whether commutative or not. fn gets stretches of at most 4096 bytes, 64-byte aligned, at default floating-point modes, on the
 * caller's or the progress thread; it calls nothing of tutti on this comm (-EDEADLK). Made by all ranks, in the same order (it waits for
 * them); -ENOSPC: none of 7168 is free on all ranks. Freed by each rank for itself, with no work under way (-EBUSY). */
int  tutti_op_create(void (*fn)(const void *in, void *inout, size_t count, tutti_type), int commutative, tutti_op *op, tutti_comm *);
int  tutti_op_free(tutti_op *op, tutti_comm *);
/* ---- point to point: no barrier, and independent of the collectives of the same comm ---- */

#define TUTTI_ANY (-1)                  /* recv, probe: whoever sends; whatever tag */
typedef struct tutti_message { int from, tag; size_t count; } tutti_message;

/* buf[count] to rank `to` of comm, where a tutti_recv of the same type with that sender and tag gets it. tag: 0 or more. Messages from one
 * rank to one other do not overtake each other. Up to 64 KiB are sent without waiting for the receiver while the queue between the
 * two has room (4 MiB, 7,000 messages), also to oneself; a larger one returns when it is on its way out of buf: it may wait for its
 * tutti_recv. A dead or gone receiver: -EOWNERDEAD, also the failure of the comm on this rank. A deadline fails this call alone: the
 * message was not sent (-ETIMEDOUT). What was sent is received even if the sender leaves or dies meanwhile.
 * -EDEADLK: a large one to oneself that no tutti_recv of this rank waits for, at once where no deadline was given. With
 * call->work: buf is in use until the work has ended. -ENOSPC: it needs room in this rank's span, which is full. */
int  tutti_send(const void *buf, size_t count, tutti_type, int to, int tag, tutti_comm *, const tutti_call *);

/* Waits for a message from rank `from` (or TUTTI_ANY) with this tag (or TUTTI_ANY) and puts it into buf, which has room for count elements.
 * *got (may be NULL): who sent it, its tag, how many elements came; fewer than count are fine. Receives take messages in the order in
 * which they were called (posted). The message's type is not this one: -EPROTO; it is longer: -EMSGSIZE; both are this rank's own
 * error, the message is lost, comm stays whole, the report names both calls. The rank waited for is dead or gone and has sent no such
 * message: -EOWNERDEAD, also the failure of the comm on this rank; from TUTTI_ANY: likewise if any rank is. A rank that has met a
 * death in a send, a receive or a turn takes part in none of them any more, and counts here as gone. A deadline fails this call alone.
 *     float x[100]; tutti_message got;
 *     tutti_recv(x, 100, TUTTI_F32, TUTTI_ANY, TUTTI_ANY, &got, world, NULL); */
int  tutti_recv(void *buf, size_t count, tutti_type, int from, int tag, tutti_message *got, tutti_comm *, const tutti_call *);

/* Waits until such a message is there, and leaves it there. got->count is its length in bytes. Errors as tutti_recv. */
int  tutti_probe(int from, int tag, tutti_message *got, tutti_comm *, const tutti_call *);

/* ---- work: an operation started by tutti_call.work ---- */

/* Waits for the operation; frees the handle unless it returns -EAGAIN (or -ETIMEDOUT of TUTTI_KEEP). timeout_ms is only this
 * call's patience: -EAGAIN when it passes. 0: as long as the operation's own deadline; negative: until it ends. Collectives of a comm
 * complete in the order they were started; sends and receives as their messages go. `done`, if given, has run before tutti_wait
 * reports the end; it must not block and may call tutti_test only (anything else on this comm: -EDEADLK). */
int  tutti_wait(tutti_work *work, int timeout_ms);

/* -EAGAIN while under way, then the result; never frees; any thread. */
int  tutti_test(tutti_work *work);

/* ---- order: none of these is a barrier, so none can hang because a rank does not call it ---- */

/* Runs fn(arg) on the first rank that calls this key; ranks that call meanwhile wait for its end; later ones pass at once; done for
 * the life of comm. fn returns 0, or an error (not 0): it goes to that rank alone, and the next waiting rank takes over; likewise
 * if the runner dies. key: up to 255 bytes. A wait on a living runner has no deadline unless call gives one; it fails this call alone.
 * -EDEADLK: the runner waits for ranks that wait for the key. */
int  tutti_once(const char *key, int (*fn)(void *arg), void *arg, tutti_comm *, const tutti_call *);

/* "First one prepares, the others use it", for code that is not a function. 1: you go first, call tutti_first_end when done;
 * 0: the first one is done. Each rank counts its own calls of a key; the n-th of one meets the n-th of the others, so it works in loops.
 *     int first = tutti_first_begin("dataset", world, NULL);
 *     if (first == 1) tutti_first_end("dataset", prepare(), world);
 *     use();
 * A second first_begin before first_end: -EDEADLK. */
int  tutti_first_begin(const char *key, tutti_comm *, const tutti_call *);
/* Ends it. error not 0: failed, the next waiting rank goes first; returns that error. -EPERM: this rank is not the first. */
int  tutti_first_end(const char *key, int error, tutti_comm *);

/* Rank order: the code between begin and end runs on rank 0, then 1, 2 …; all ranks call it. The death of the rank waited for is
 * -EOWNERDEAD and breaks the comm; a deadline fails this call alone. A turn_begin that fails counts as taken. */
int  tutti_turn_begin(tutti_comm *, const tutti_call *);
int  tutti_turn_end(tutti_comm *);

/* A seed per rank: independent streams, fixed by (base, rank) alone (splitmix64 of both). */
uint64_t tutti_seed(uint64_t base, const tutti_comm *);

/* ---- store: keys and values shared by the whole job ----
 * One table for all ranks, whatever comm is given: the comm lends its deadline, its reports, and its end (-ECANCELED once it is broken).
 * Keys: strings of 1 to 255 bytes. Values: up to 1 MiB of bytes; longer ones are -EMSGSIZE. Room: 64 MiB, or TUTTI_STORE_BYTES; touched
 * only as used, used again when values are replaced or deleted. Each call takes effect at one moment for all ranks; a rank that is
 * killed in it leaves the old value or the new one. None needs another rank's part; only tutti_get waits. Works beside operations left
 * under way. Errors of all: -EINVAL, -EMSGSIZE, -ECANCELED; -ETIMEDOUT where a stopped rank has held the table for 30 s. */

/* key is value[len] from now on, whatever it was. -ENOMEM: the store is full (or the system); the old value stays. */
int  tutti_set(const char *key, const void *value, size_t len, tutti_comm *);

/* Waits until key is there; copies its value. *len: the room, then the length. Too small: -EMSGSIZE with *len set (value may be NULL where
 * *len is 0). A number made by tutti_add is 8 bytes, an int64_t. Deadline: call->timeout_ms, or the comm's; -ETIMEDOUT fails this call
 * alone. -EOWNERDEAD: the key is missing and all other ranks of the job are dead or have left; this call alone. call->work: -EINVAL.
 *     char address[64]; size_t n = sizeof address;
 *     if (rank == 0) tutti_set("address", mine, strlen(mine) + 1, world);
 *     int error = tutti_get("address", address, &n, world, NULL); */
int  tutti_get(const char *key, void *value, size_t *len, tutti_comm *, const tutti_call *);

/* Adds to a number, which starts at 0 where the key is missing; wraps. *now (may be NULL) is what it has become: no two callers see the
 * same, so tutti_add(key, 1, &ticket, comm) numbers them. -EINVAL: the value was not made by tutti_add. -ENOMEM as in tutti_set. */
int  tutti_add(const char *key, int64_t delta, int64_t *now, tutti_comm *);

/* If key is expected[expected_len], it is desired[desired_len] from now on. expected_len 0: only if key is missing. 1: done; 0: it was
 * something else. -ENOMEM as in tutti_set. A number made by tutti_add compares as its 8 bytes, and is plain bytes when replaced. */
int  tutti_compare_set(const char *key, const void *expected, size_t expected_len, const void *desired, size_t desired_len, tutti_comm *);

/* 0, or -ENOENT: there is no such key. */
int  tutti_delete(const char *key, tutti_comm *);
/* ---- memory: in the arena, where every rank can reach it. All of it is local: no other rank takes part, nothing waits, any thread may
 * call it at any time, also while another is inside the comm. Each rank has a span of its own (options.span_bytes). Collectives take
 * such memory where it lies, without a copy. `comm` is any comm of the world. ---- */

/* On a machine of several NUMA nodes the span of a rank that may run on one node only lies there, whoever touches a page first: bind before
 * tutti_init, or let it (TUTTI_BIND_CORE, TUTTI_BIND_NUMA, tutti run --bind). A memory policy that the calling thread has by then
 * (set_mempolicy, numactl) becomes the span's instead. Of a rank that may run on several, a page lies where it is touched first. */

/* Memory of this rank's span, 64-byte aligned; not cleared. Its pages are there when it returns: NULL and no later surprise. From 4 MiB
 * on in huge pages, if the system has them. NULL: the reason is in tutti_explain (the span is full, no memory, the comm is broken).
 * It stays until tutti_free; what a rank leaves behind (finalize, death) stays readable for its peers.
 *     float *x = tutti_alloc(n * sizeof *x, world);
 *     if (!x) fprintf(stderr, "%s\n", tutti_explain(world)); */
void *tutti_alloc(size_t bytes, tutti_comm *);

/* Gives back what this rank had from tutti_alloc by any comm of the world; its pages go back to the system. A peer that still has a view
 * of it reads zeros, or what is allocated there next. -EINVAL: anything else (freed before, a view of a peer's memory, registered memory). */
int  tutti_free(void *ptr, tutti_comm *);

/* Makes existing memory part of the arena, at the same address: the whole pages of [ptr, ptr + bytes) are copied into this rank's span,
 * and that is mapped in their place, so all pointers stay valid. Head and tail that share a page with strangers stay private; of less than
 * a page nothing is shared. Nobody may touch the memory during the call. tutti_alloc is the first choice: it copies nothing.
 * Errors, with the reason in tutti_explain: -EINVAL (a file, shared memory, a stack, code, not writable, a hole, memory of the arena,
 * memory registered already), -ENOSPC (more than 4096 ranges, or the span is full), -ENOMEM, -ECANCELED; then all is as it was.
 * While it is registered:
 *  - Unregister before free, realloc, munmap or mremap of it: an allocator that gets shared pages back hands them out, and calloc
 *    takes them for clean (after MADV_DONTNEED they keep their bytes); tutti_unregister would map over whoever has the addresses then.
 *  - A forked child shares it: what the child writes, the parent and its peers read. Do not register what such a child writes. A child that
 *    lives on holds the arena's memory by it.
 *  - What was said of it by mlock or madvise (huge pages, DONTFORK, DONTDUMP) no longer holds, nor after tutti_unregister.
 *  - Memory that a device driver has pinned (CUDA) must not be registered, nor pinned while it is: the device goes on using the old
 *    pages. That cannot be told here.
 *  - Stacks of other threads cannot be told from other memory: register none. */
int  tutti_register(void *ptr, size_t bytes, tutti_comm *);

/* Makes it private memory again, with the same contents; tutti_finalize does that for all that is left. Peers' views of it read zeros from
 * then on. ptr as given to tutti_register, which -EINVAL says it was not. -EBUSY: work is under way on a comm of this world.
 * -ENOMEM: no private pages for all of it; the rest stays registered and valid, try again. */
int  tutti_unregister(void *ptr, tutti_comm *);

/* A name for arena memory that means the same to all ranks of the job: ptr anywhere inside memory of tutti_alloc, of tutti_view, or in
 * the whole pages of registered memory. Send it to a peer as you like. -EINVAL: ptr is not such memory. */
int  tutti_handle(const void *ptr, uint64_t *handle, tutti_comm *);

/* The memory of a handle in this process; the same bytes for every rank, so ranks that write at the same time must agree who does.
 * Valid until tutti_finalize of this rank, also after the end of the rank that owns the memory; when the owner frees or unregisters it,
 * it reads as zeros, or as what is allocated there next. NULL: not a handle of this job (tutti_explain). */
void *tutti_view(uint64_t handle, tutti_comm *);

/* The same to read only: writing through it is SIGSEGV. The first call maps the whole arena once more. */
const void *tutti_view_readonly(uint64_t handle, tutti_comm *);

/* ---- files: every rank of comm calls these, in the same order as its collectives ----
 * Through io_uring, or through threads where the system forbids that (TUTTI_URING=0 chooses them). What the file, the disk or its room is to
 * blame for is the result, the same on all ranks, and the comm goes on: -ENOENT, -EACCES, -EISDIR, -EINVAL (no regular file), -ESTALE (not
 * the same file for all ranks), -EIO (also: it became shorter while it was read), -ENOSPC, -ENOMEM …; tutti_explain names the rank, the path
 * and the place. A death, a deadline, an abort are errors of the operation like any other; what the disk has been asked for by then is
 * waited for, for a second; what it has not answered by that time stays its affair: of a save it reads the caller's data until then, and the
 * process may end late. As work: path is copied, data and bytes are used until tutti_wait. How far it is: tutti_stats counts the bytes that this rank has read or written so far. */

/* The bytes of a file, once per host: each rank reads a share of it, past the page cache where that does not hold it, and all get the same
 * memory, which can only be read: *data[*bytes], the same place for every rank of a process; an empty file has an address, too. Each rank
 * gives it back by tutti_free; the last one's frees it. It lies in the span of rank 0, and stays readable when that ends;
 * its pages are spread over the NUMA nodes that the ranks may run on. */
int  tutti_load(const char *path, const void **data, size_t *bytes, tutti_comm *, const tutti_call *);

/* The same bytes of all ranks (else -EPROTO for another count; contents are not compared) to a file: each writes a share. Until all is on the
 * disk (fsync) the path leads to the old file, from then on to the new one (rename): also when ranks or the machine die at any point. A file
 * that is there keeps its mode; a link is followed. For ranks that die all at once a file .tutti-save-* may stay beside it. */
int  tutti_save(const char *path, const void *data, size_t bytes, tutti_comm *, const tutti_call *);

/* ---- errors and figures ---- */

/* The kind of an error in one sentence; immortal. */
const char *tutti_strerror(int error);

/* The last failure of this rank on comm, in words and with its table; "" if none. Valid until this thread asks again.
 * NULL: of tutti_init and tutti_spawn in this thread. */
const char *tutti_explain(const tutti_comm *comm);

int  tutti_stats(const tutti_comm *comm, tutti_figures *figures);

/* For tests: "RANK:OPERATION#N:kill|stop|delay=MS|abort". RANK in this comm; OPERATION the function's name without tutti_, or *;
 * N its N-th such call on this comm, from 1. It strikes after the arguments are checked, before the arrival. On other ranks nothing
 * happens and it returns 0. Also TUTTI_FAULT in the environment (several, separated by commas, on the world). */
int  tutti_fault(tutti_comm *comm, const char *what);

/* ---- call sites ----
 * Reports say who called what, at which file and line. The macros below hand the site in; a call through a pointer, or with
 * TUTTI_NO_SITES defined, shows "?". Bindings call the _at forms with strings of their own that live for ever. */
int  tutti_finalize_at(const char *site, tutti_comm *);
int  tutti_comm_split_at(const char *site, tutti_comm *, int color, int key, tutti_comm **);
int  tutti_comm_create_at(const char *site, tutti_comm *, const int ranks[], int size, tutti_comm **);
int  tutti_comm_shrink_at(const char *site, tutti_comm *broken, tutti_comm **comm);
int  tutti_comm_agree_at(const char *site, tutti_comm *, int *flag);
int  tutti_comm_abort_at(const char *site, tutti_comm *, const char *why);
int  tutti_barrier_at(const char *site, tutti_comm *, const tutti_call *);
int  tutti_broadcast_at(const char *site, void *, size_t, tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_reduce_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, int root, tutti_comm *, const tutti_call *);
int  tutti_all_reduce_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_reduce_many_at(const char *site, const void *const send[], void *const recv[], const size_t counts[], int buffers,
                              tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_reduce_scatter_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_gather_at(const char *site, const void *, void *, size_t, tutti_type, tutti_comm *, const tutti_call *);
int  tutti_gather_at(const char *site, const void *, void *, size_t, tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_scatter_at(const char *site, const void *, void *, size_t, tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_all_to_all_at(const char *site, const void *, void *, size_t, tutti_type, tutti_comm *, const tutti_call *);
int  tutti_scan_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_exscan_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_gather_v_at(const char *site, const void *, size_t, void *const recv[], const size_t counts[], tutti_type, tutti_comm *, const tutti_call *);
int  tutti_gather_v_at(const char *site, const void *, size_t, void *const recv[], const size_t counts[], tutti_type, int root,
                       tutti_comm *, const tutti_call *);
int  tutti_scatter_v_at(const char *site, const void *const send[], const size_t counts[], void *, size_t, tutti_type, int root,
                        tutti_comm *, const tutti_call *);
int  tutti_reduce_scatter_v_at(const char *site, const void *const send[], const size_t counts[], void *, tutti_type, tutti_op,
                               tutti_comm *, const tutti_call *);
int  tutti_all_to_all_v_at(const char *site, const void *const send[], const size_t sendcounts[], void *const recv[], const size_t recvcounts[],
                           tutti_type, tutti_comm *, const tutti_call *);
int  tutti_op_create_at(const char *site, void (*fn)(const void *, void *, size_t, tutti_type), int commutative, tutti_op *, tutti_comm *);
int  tutti_op_free_at(const char *site, tutti_op *, tutti_comm *);
int  tutti_same_at(const char *site, const void *ptr, size_t bytes, tutti_comm *, const tutti_call *);
int  tutti_load_at(const char *site, const char *path, const void **data, size_t *bytes, tutti_comm *, const tutti_call *);
int  tutti_save_at(const char *site, const char *path, const void *data, size_t bytes, tutti_comm *, const tutti_call *);
int  tutti_send_at(const char *site, const void *, size_t, tutti_type, int to, int tag, tutti_comm *, const tutti_call *);
int  tutti_recv_at(const char *site, void *, size_t, tutti_type, int from, int tag, tutti_message *got, tutti_comm *, const tutti_call *);
int  tutti_probe_at(const char *site, int from, int tag, tutti_message *got, tutti_comm *, const tutti_call *);
int  tutti_wait_at(const char *site, tutti_work *, int timeout_ms);
int  tutti_once_at(const char *site, const char *key, int (*fn)(void *), void *arg, tutti_comm *, const tutti_call *);
int  tutti_first_begin_at(const char *site, const char *key, tutti_comm *, const tutti_call *);
int  tutti_first_end_at(const char *site, const char *key, int error, tutti_comm *);
int  tutti_turn_begin_at(const char *site, tutti_comm *, const tutti_call *);
int  tutti_turn_end_at(const char *site, tutti_comm *);
uint64_t tutti_seed_at(const char *site, uint64_t base, const tutti_comm *);
int  tutti_set_at(const char *site, const char *key, const void *value, size_t len, tutti_comm *);
int  tutti_get_at(const char *site, const char *key, void *value, size_t *len, tutti_comm *, const tutti_call *);
int  tutti_add_at(const char *site, const char *key, int64_t delta, int64_t *now, tutti_comm *);
int  tutti_compare_set_at(const char *site, const char *key, const void *expected, size_t expected_len, const void *desired,
                          size_t desired_len, tutti_comm *);
int  tutti_delete_at(const char *site, const char *key, tutti_comm *);

#define TUTTI_LINE_TEXT(line) #line
#define TUTTI_LINE(line) TUTTI_LINE_TEXT(line)
#define TUTTI_SITE __FILE__ ":" TUTTI_LINE(__LINE__)

#ifndef TUTTI_NO_SITES
#define tutti_finalize(...)    tutti_finalize_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_comm_split(...)  tutti_comm_split_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_comm_create(...) tutti_comm_create_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_comm_shrink(...) tutti_comm_shrink_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_comm_agree(...)  tutti_comm_agree_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_comm_abort(...)  tutti_comm_abort_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_barrier(...)     tutti_barrier_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_broadcast(...)   tutti_broadcast_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_reduce(...)      tutti_reduce_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_reduce(...)  tutti_all_reduce_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_reduce_many(...) tutti_all_reduce_many_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_reduce_scatter(...) tutti_reduce_scatter_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_gather(...)   tutti_all_gather_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_gather(...)       tutti_gather_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_scatter(...)      tutti_scatter_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_to_all(...)   tutti_all_to_all_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_scan(...)         tutti_scan_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_exscan(...)       tutti_exscan_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_gather_v(...) tutti_all_gather_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_gather_v(...)     tutti_gather_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_scatter_v(...)    tutti_scatter_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_reduce_scatter_v(...) tutti_reduce_scatter_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_all_to_all_v(...) tutti_all_to_all_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_op_create(...)    tutti_op_create_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_op_free(...)      tutti_op_free_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_same(...)         tutti_same_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_load(...)         tutti_load_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_save(...)         tutti_save_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_send(...)        tutti_send_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_recv(...)        tutti_recv_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_probe(...)       tutti_probe_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_wait(...)        tutti_wait_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_once(...)        tutti_once_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_first_begin(...) tutti_first_begin_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_first_end(...)   tutti_first_end_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_turn_begin(...)  tutti_turn_begin_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_turn_end(...)    tutti_turn_end_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_seed(...)        tutti_seed_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_set(...)         tutti_set_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_get(...)         tutti_get_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_add(...)         tutti_add_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_compare_set(...) tutti_compare_set_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_delete(...)      tutti_delete_at(TUTTI_SITE, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
