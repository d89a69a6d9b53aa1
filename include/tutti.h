/* tutti: all together. Collectives for the processes ("ranks") of one machine.
 *
 * The ranks work through one piece of shared memory, the arena. This header is the whole core API.
 * It is plain C11 (and C++17). It has no inline functions. Programs link with -ltutti.
 *
 *     tutti_comm *world;
 *     if (tutti_init(&world, NULL) < 0) {
 *         fprintf(stderr, "%s\n", tutti_explain(NULL));
 *         return 1;
 *     }
 *     float x[2] = { 1, 2 };
 *     int error = tutti_all_reduce(x, x, 2, TUTTI_F32, TUTTI_SUM, world, NULL);
 *     if (error < 0)
 *         fprintf(stderr, "%s\n", tutti_explain(world));
 *     tutti_finalize(world);
 *
 * Words: a comm is a group of ranks that act together; the world is the comm of all ranks of a job.
 * An operation is one collective, once. A peer is another rank of the same comm.
 *
 * RESULTS
 *
 * Functions return 0 (or a non-negative result), or a negative errno. They do not touch errno.
 *     -EOWNERDEAD  a rank died or left
 *     -ETIMEDOUT   the deadline passed
 *     -EPROTO      the ranks called different things
 *     -ECANCELED   a rank aborted, or the comm is broken by an earlier failure
 *     -EDEADLK     a wait that can never end
 *     -EINVAL      a bad argument; nothing was touched
 *     -EBUSY       another thread is inside this comm, or work is under way (finalize, comm_free)
 *     -EAGAIN      not done yet
 *     -EINTR       the interrupt function said stop
 *     -EPERM       not yours to join or to end
 *     -ECHILD      the caller is a fork of a rank, not the rank; see tutti_spawn
 *     -EIO         a device failed, or the arena has been written over
 *     -EXDEV       the ranks are not on one host
 *     -ESHUTDOWN   the other side has closed the queue
 *     -EMSGSIZE, -ENOTSUP, -ENOMEM, and the system's own
 * tutti_explain has the reason in words: who, what and where.
 *
 * FAILURE
 *
 * A failure breaks the comm. Each rank's first call that meets it returns the cause. All later
 * calls of that rank on that comm return -ECANCELED. A death between operations is met by the next
 * call. tutti_comm_shrink makes a working comm of the survivors.
 *
 * Comms without the dead rank are unharmed. A comm's failure breaks neither its parent nor its
 * children.
 *
 * These functions work on a broken comm: agree, shrink, failed, explain, stats, rank, size, abort,
 * finalize, set_timeout, comm_free, tutti_free, unregister, handle, view; and wait and test of
 * handles.
 *
 * Some errors leave the comm whole:
 *  - an error that all ranks agree on and that has nothing to do with peers;
 *  - a bad argument. It is refused on that rank alone. Peers that wait for this rank read in their
 *    report that its last call was refused, and where.
 *
 * A rank may lack something for a call that others wait in: memory, a thread, a descriptor. Then
 * the call ends for all, at once. That rank gets -ENOMEM, -EAGAIN, and so on. The others get
 * -ECANCELED, and their reports have the reason. The comm has failed. Some functions return the
 * same error on all ranks instead; they say so.
 *
 * ALL OR NONE
 *
 * No rank gets 0 for a collective for which a living rank gets an error. Therefore every
 * collective waits until all ranks have arrived, also with count 0.
 *
 * WAITS THAT CAN NEVER END
 *
 * Ranks may wait for each other in a cycle, in whatever calls and comms. They get -EDEADLK within
 * two seconds. The report says who waits where for whom.
 *  - Of a collective all ranks get it, and its comm has failed.
 *  - once, first_begin, turn_begin (a turn counts as taken), send (the message was not sent), recv,
 *    probe and get fail alone. Their comm is whole.
 *
 * It is no cycle where somebody could still help:
 *  - a thread of these ranks that has called the library in this job, lives, and does not wait;
 *  - work under way, and its `done`;
 *  - a deadline that was given: to the call, to the comm (tutti_set_timeout) or in the options
 *    (TUTTI_TIMEOUT_MS). It ends the wait by itself; a collective ends for all. The default of 30
 *    minutes was given by nobody, and does not count.
 * comm_agree and comm_shrink end by their deadline alone.
 *
 * BUFFERS
 *
 * `count` counts elements of `type`; in all_to_all it counts them for each peer. Each function says
 * when it works in place. Any other overlap is -EINVAL. Buffers may be any memory, at any
 * alignment. Large buffers of tutti_alloc or tutti_register are read where they lie.
 *
 * Every reduction folds in rank order 0 … N-1. All ranks get identical bits, in every run.
 *
 * DEVICE BUFFERS
 *
 * The buffers of a collective may be CUDA device memory, or managed memory. The pointers alone
 * tell. One rank's buffers of one call lie on one device. send may be a device's and recv the
 * host's, or the reverse. Other ranks may use host buffers in the same operation.
 *
 * The call is ordered behind what call.stream had to do when it was called (NULL: the default
 * stream). The host does the ordering: no work of the call is left in that stream. When the call
 * returns 0 (with work: when tutti_wait does), the result is in place for every stream. The bits
 * are those of host buffers.
 *
 * Errors of these:
 *     -EINVAL  refused on this rank: a stream that is captured into a graph; buffers on two
 *              devices; buffers beyond their allocation; call.stream where all buffers are the
 *              host's; memory of the process that this one forked off from
 *     -EIO     a device failed. All ranks get it. The report names the device and the call of CUDA.
 *              Copies under way are waited for, up to a second.
 *
 * Host memory only: send, recv, the store, call.factor. CUDA is not touched before the first device
 * buffer, and is not needed to build. The device's primary context is kept until the last comm
 * that used it goes.
 *
 * THREADS
 *
 * One thread uses a comm at a time. A second thread inside gets -EBUSY. Different comms are
 * independent. Any thread may call these at any time: tutti_comm_abort (also a signal handler),
 * tutti_explain, tutti_failed, tutti_stats, tutti_rank, tutti_size, tutti_test.
 *
 * Ranks may be threads of one process. Each has a world of its own.
 *
 * A thread that is cancelled in a call is cancelled behind it (deferred cancellation). With
 * asynchronous cancellation no call may be made.
 *
 * CAVEATS: what can still go wrong, and what to do
 *
 *  - All ranks can write the arena. A rank with a wild pointer may write over it. Numbers, offsets
 *    and lengths that make no sense end the others' calls in -EIO. A payload, a key or a count
 *    that still makes sense is believed. A lock of the C library that was written over can hold up
 *    its users for 30 s, or crash them. A rank that writes over all its own words, also over what
 *    it has read of others' buffers, and then does nothing more, can let the others wait as long
 *    as it lives. Find the wild pointer. TUTTI_VERIFY=1 says which results differ.
 *  - A rank that is stopped (SIGSTOP, a debugger) is alive. The others wait until their deadline,
 *    or for ever if there is none. Set one. Time in which the waiter itself did not run (stopped,
 *    suspended, starved of its CPU) is not counted. On a machine that is overloaded many times
 *    over, deadlines come late.
 *  - Cycles of waits are found where they can be proved. They are not found through comm_agree and
 *    comm_shrink, where a thread that has called lives on and does something else, where more than
 *    8 threads of a rank have called, or where 256 waits hang together. There the deadline ends
 *    them.
 *  - Some deaths leave no mark in the kernel: memory reaped by the OOM killer first, an exec by
 *    another thread, a robust list replaced by another library. Such a death is noticed at the end
 *    of a waiting slice (up to 250 ms) where ranks share a pid namespace or /proc shows them.
 *    Without /proc, in another pid namespace, only the deadline ends the wait.
 *  - A rank that dies before it has reached the meeting is one that never comes. The others wait
 *    until the join deadline.
 *  - A thread that ends itself by a raw exit system call, past the C library, counts as a death of
 *    its rank.
 *  - Two threads may use one comm so that their calls overlap by less than a cache miss. That can
 *    slip past the -EBUSY check. Give each thread a comm.
 *  - Registered memory that is freed stays registered. The allocator hands it out again as memory
 *    that peers see and forked children share. Unregister first. Or use tutti_alloc, which has
 *    neither trap.
 *  - mlockall does not reach the arena, or all spans would become memory. To lock memory of
 *    tutti_alloc, use mlock on it.
 *  - Memory is promised when it is handed out. A cgroup limit that is lowered later kills whoever
 *    touches it, as with any memory.
 *  - A fork of a rank is not the rank (-ECHILD), and does not have the arena. Memory of
 *    tutti_alloc, tutti_load and tutti_view is not there in a child (SIGSEGV). It goes with the
 *    job's last rank. Copy what a worker process is to read. Registered memory is the program's
 *    own: a child shares it, and holds the arena's memory while it has it.
 *  - Another user who holds all eight meeting names of a job can stop it from starting. That works
 *    only where this user has no directory of its own (XDG_RUNTIME_DIR, HOME). TUTTI_MEET names
 *    one. A user who knocks without end costs the host CPU time while ranks join.
 *  - TUTTI_SITE strings must live for ever. Do not dlclose code that has called tutti through the
 *    macros. libtutti.so itself stays in the process, and may be loaded and closed at will. A
 *    plugin that holds libtutti.a must not be unloaded (link it with -z nodelete). */
#ifndef TUTTI_H
#define TUTTI_H
/* SPDX-License-Identifier: MIT */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Of one MAJOR, a program runs with every library that is not older
 * than its header. All processes of one job have the same library. */
#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 9
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION "0.9.0"

typedef struct tutti_comm tutti_comm;   /* one rank's hold on a group of ranks; the world is one */
typedef struct tutti_work tutti_work;   /* the handle of an operation under way */
typedef struct tutti_queue tutti_queue; /* one rank's end of a broadcast queue */

/* Element types.
 * C64: two f32. C128: two f64. BOOL: one byte, 0 or not 0.
 * F8E4M3: the OCP "FN" variant; it has no infinities, and overflow becomes NaN.
 * F8E5M2: has infinities. */
typedef enum {
    TUTTI_I8 = 0, TUTTI_U8 = 1, TUTTI_I16 = 2, TUTTI_U16 = 3,
    TUTTI_I32 = 4, TUTTI_U32 = 5, TUTTI_I64 = 6, TUTTI_U64 = 7,
    TUTTI_F16 = 8, TUTTI_BF16 = 9, TUTTI_F32 = 10, TUTTI_F64 = 11,
    TUTTI_BOOL = 12, TUTTI_C64 = 13, TUTTI_C128 = 14,
    TUTTI_F8E4M3 = 15, TUTTI_F8E5M2 = 16
} tutti_type;

/* Operations of reductions.
 * Integers  all. SUM and PROD wrap. AVG sums in 64 bits and truncates toward zero.
 * Floats    SUM, PROD, MIN, MAX, AVG, PREMUL_SUM. f16, bf16 and the 8-bit floats accumulate in
 *           f32; there is one rounding, at the end. In MIN and MAX a NaN wins, and -0 < +0. Every
 *           NaN result is the one positive quiet NaN of its type.
 * Complex   SUM, PROD, AVG, PREMUL_SUM.
 * BOOL      SUM = MAX = LOR, PROD = MIN = LAND, B* = L*; no AVG. Results are 0 or 1.
 * Every other pair is -EINVAL.
 * PREMUL_SUM multiplies each rank's contribution by that rank's call.factor first.
 * Numbers from TUTTI_OP_USER on come from tutti_op_create. */
typedef enum {
    TUTTI_SUM = 0, TUTTI_PROD = 1, TUTTI_MIN = 2, TUTTI_MAX = 3, TUTTI_AVG = 4,
    TUTTI_BAND = 5, TUTTI_BOR = 6, TUTTI_BXOR = 7,
    TUTTI_LAND = 8, TUTTI_LOR = 9, TUTTI_LXOR = 10, TUTTI_PREMUL_SUM = 11,
    TUTTI_OP_USER = 1024, TUTTI_OP_MAX = 0x7fffffff
} tutti_op;

/* tutti_call.flags. TUTTI_TRY: of queues alone; the call does not wait. */
enum { TUTTI_KEEP = 1, TUTTI_TRY = 2 };

/* tutti_queue_options.flags
 * TUTTI_QUEUE_REFUSE: put does not wait for room; it returns -EAGAIN.
 * TUTTI_QUEUE_GO_ON: put goes on without readers that die; else it returns -EOWNERDEAD. */
enum { TUTTI_QUEUE_REFUSE = 1, TUTTI_QUEUE_GO_ON = 2 };

/* tutti_options.flags */
enum {
    TUTTI_BIND_CORE = 1, TUTTI_BIND_NUMA = 2, TUTTI_NO_SPIN = 4, TUTTI_LOCAL = 8, TUTTI_AHEAD = 16,
    TUTTI_LEAVE = 32
};

/* The last argument of every collective. NULL: all defaults. A field that is 0 means its default.
 * Unknown flag bits and non-zero reserved fields are -EINVAL. */
typedef struct tutti_call {
    /* Deadline of this operation. 0: the comm's own. Negative: none. */
    int          timeout_ms;
    /* TUTTI_KEEP (needs work): the deadline breaks nothing, and concerns this rank alone. When it
     * has passed, tutti_wait and tutti_test return -ETIMEDOUT instead of -EAGAIN. The handle stays,
     * the buffers stay in use, and the operation goes on. */
    unsigned     flags;
    /* Not NULL: the operation is only started, and its handle is put here. */
    tutti_work **work;
    /* CUstream (cudaStream_t) of the device buffers; see DEVICE BUFFERS. */
    void        *stream;
    /* For TUTTI_PREMUL_SUM: one element of the type, this rank's own. */
    const void  *factor;
    /* With work: called once, by the thread that completes the operation; see tutti_wait. */
    void       (*done)(int error, void *arg);
    void        *done_arg;
    uint64_t     reserved[4];
} tutti_call;

/* What tutti_init and tutti_spawn can be told. A field that is 0 means: the variable
 * TUTTI_<FIELD> of the environment, else the launcher's value, else the default. */
typedef struct tutti_options {
    /* The name that ranks meet under. Default: from the launcher's environment. One that begins
     * with '/' is the path of a socket, which also ranks of another network namespace reach. */
    const char *job;
    /* size 0: both from the environment; without one: alone, rank 0 of 1. */
    int         rank, size;
    /* Deadline of every operation. 0: 30 minutes. Negative: none. */
    int         timeout_ms;
    /* Time for all ranks to arrive. 0: 60 s. */
    int         join_timeout_ms;
    /* A wait older than this prints the roll-call on stderr. 0: 30 s. Negative: never. */
    int         warn_ms;
    /* Longest spin before yielding or sleeping. 0: chosen by the library; none where ranks
     * outnumber CPUs. Deaths and deadlines are looked at every 2 ms of it. Messages spin 2 ms at
     * most. */
    unsigned    spin_us;
    /* TUTTI_BIND_CORE, TUTTI_BIND_NUMA: bind this rank. TUTTI_NO_SPIN: sleep at once.
     * TUTTI_LOCAL: the ranks of this host are a job of their own.
     * TUTTI_AHEAD: a comm takes 1 to 2 MiB of staging for this rank with its first collective of
     * 16 KiB and more, and not bit by bit as it pays: up to 1 ms that the next hundred give back.
     * At most 16 comms at a time do. And tutti_init loads a small library of glibc, behind which
     * calls see that CUDA is not there; so it may wait for what other threads are loading.
     * TUTTI_LEAVE: of two ranks, who only gives in a broadcast, reduce or gather does not wait for
     * the other one, as in MPI, where what it gives fits into its staging. If the operation fails
     * after that, its next collective on the comm returns the error: all or none is given up. */
    unsigned    flags;
    /* Address space of each rank's own memory in the arena. It is memory only as far as used. */
    size_t      span_bytes;
    /* Asked in every slice of a sleep (at most 250 ms). Not 0: the wait ends with -EINTR, and the
     * comm is aborted. An agree or shrink is ended for all instead. */
    int       (*interrupt)(void *arg);
    void       *interrupt_arg;
    /* Called by a thread that waits, again and again: between two offers of the CPU to others, and
     * at least every 2 ms of a sleep. For other communication of the program, which must go on
     * meanwhile. It calls nothing of this world. No wait of this rank is part of a cycle then: it
     * may end what others wait for. */
    void      (*progress)(void *arg);
    void       *progress_arg;
    uint64_t    reserved[4];
} tutti_options;

/* Figures of this rank since the comm began. Times in nanoseconds.
 * wait_ns: waiting for peers. fold_ns: folding and copying.
 * waits: operations in which this rank waited for another.
 * sleeps: how often it slept in the kernel.
 *
 * The others are of the comm's last collectives, as far as the ranks still know when each of them
 * came: `compared` of them, at most 127.
 * came_last: in which this rank was the last to come, and others waited for it.
 * late_median_ns, late_p99_ns: by how much, in these, since the middle one of the others came.
 * late_cost_ns: how long all others waited for it, taken together. */
typedef struct tutti_figures {
    uint64_t operations, bytes, wait_ns, fold_ns, waits, sleeps;
    uint64_t compared, came_last, late_median_ns, late_p99_ns, late_cost_ns;
    uint64_t reserved[5];
} tutti_figures;

/* ---- start and end ---- */

/* Joins the world: all ranks of the job. Blocks until all ranks have joined.
 *
 * The job is found by `tutti run`, torchrun (RANK, WORLD_SIZE …), Open MPI, MPICH (PMI), srun, or
 * by options (job, rank, size). Without any of these: alone, rank 0 of 1. options NULL: all
 * defaults. Each rank waits until its own join deadline. It may follow tutti_finalize (a new world
 * of the same job) and a tutti_init that failed. Ranks that come again, in the same or in a new
 * process, meet those that are there.
 *
 * Errors; *world is NULL then:
 *     -ETIMEDOUT   some did not come. tutti_explain(NULL) names who did not, who was refused, and
 *                  who waits elsewhere: another user, another network namespace
 *     -EOWNERDEAD  a rank died on the way
 *     -EXDEV       the launcher says that the ranks are on several hosts; TUTTI_LOCAL takes those
 *                  of this host
 *     -EPERM       another user's job
 *     -EPROTO      another size, or another build of the library
 *     -EEXIST      that rank has joined already, or is joining, as this or another process
 *     -EINVAL      options or environment
 *     -ENOMEM */
int  tutti_init(tutti_comm **world, const tutti_options *options);

/* Leaves the world and frees all its comms. Waits for nobody. Any thread may call it.
 *
 * Peers that wait for this rank, now or later, get -EOWNERDEAD ("left"). The comm must not be used
 * afterwards.
 *
 * Errors: -EBUSY  work is under way; nothing was done */
int  tutti_finalize(tutti_comm *world);

/* Forks `size` children, each a rank of one world, runs fn(world, arg) in each, and waits for all.
 *
 * A child leaves by _exit(value & 255), after fflush. A killed rank does not end the others.
 * options->timeout_ms > 0 limits the life of the whole job. Call it from one thread of a process
 * that is not inside a collective. Meanwhile SIGCHLD is not ignored in this process.
 *
 * status[r] (may be NULL): as waitpid gives it. Returns how many ranks did not exit with 0.
 *
 * Errors:
 *     -ETIMEDOUT  the life of the job was over; all ranks got SIGKILL
 *     -ECHILD     something else in the process has waited for a rank, so its end is not known
 *                 (its status is 0xffff)
 *     others      not all ranks could be started
 * Example:
 *     static int body(tutti_comm *world, void *arg)
 *     {
 *         return tutti_barrier(world, NULL) < 0;
 *     }
 *
 *     int failed = tutti_spawn(4, body, NULL, NULL, NULL); */
int  tutti_spawn(int size, int (*fn)(tutti_comm *world, void *arg), void *arg,
                 const tutti_options *options, int status[]);

/* Returns the version of the library that the program runs with, as TUTTI_VERSION is that of the
 * header that it was compiled with. */
const char *tutti_version(void);

/* ---- comms ---- */

/* This rank's number in comm, 0 … size-1; and the number of ranks. Any thread, broken comms too.
 * Errors: -EINVAL  comm is NULL */
int  tutti_rank(const tutti_comm *comm);
int  tutti_size(const tutti_comm *comm);

/* Divides parent: ranks with the same color >= 0 form a comm, ordered by (key, rank in parent).
 *
 * All ranks of parent call it. color < 0: take part, get NULL. All ranks succeed or none does. The
 * new comm inherits timeout and options.
 *
 * Errors: -ENOSPC  too many comms; and those of every collective */
int  tutti_comm_split(tutti_comm *parent, int color, int key, tutti_comm **comm);

/* Makes a comm of the listed ranks of parent, in that order.
 *
 * Those ranks alone call it, all with the same list. The n-th call with one list on one rank meets
 * the n-th on the others. A death, deadline or abort during it is an error on the listed ranks
 * alone. The parent stays whole.
 *
 * Errors, the same on all listed ranks, whenever they come:
 *     -ENOSPC      too many comms
 *     -ENOMEM …    one of them lacks something
 *     -EOWNERDEAD  a listed rank has died, or has freed the parent
 *     -ECANCELED   the parent has failed or is aborted (or the cause); nobody waits then
 * On this rank alone:
 *     -EINVAL      the caller is not in ranks, a rank is there twice, or out of range */
int  tutti_comm_create(tutti_comm *parent, const int ranks[], int size, tutti_comm **comm);

/* Makes a fresh comm of the ranks that are left of `broken`, in their old order.
 *
 * All living ranks call it, after any kind of failure, or after none. It blocks until they have
 * come. A rank that dies meanwhile is left out, too. All that get 0 get the same ranks. The new
 * comm inherits timeout and options. `broken` stays to be freed, or for agree and shrink again.
 * Work under way on `broken` ends first; its handles must still be waited for.
 *
 * Errors are the same on all ranks, but for -EINTR. It may be tried again.
 *     -ETIMEDOUT  a rank did not come within another rank's deadline; a latecomer gets it, too
 *     -EPROTO     others called tutti_comm_agree
 *     -ECANCELED  a rank was interrupted (that one gets -EINTR)
 *     -ENOSPC     too many comms
 *     -ENOMEM     one rank could not make it */
int  tutti_comm_shrink(tutti_comm *broken, tutti_comm **comm);

/* *flag becomes the bitwise AND of *flag over all living ranks of comm. Has everybody saved?
 *
 * It works on broken comms, too, and neither breaks nor mends one. It blocks until all living ranks
 * have come. The result is the same on all, and is 0 whoever died; a vote that was cast before the
 * death counts. It does not wait for work under way.
 *
 * Errors: as tutti_comm_shrink. *flag is left alone then.
 * Example:
 *     int saved = save() == 0;
 *     if (tutti_comm_agree(comm, &saved) == 0 && saved)
 *         remove_the_old_one(); */
int  tutti_comm_agree(tutti_comm *comm, int *flag);

/* Breaks the comm on purpose. Operations under way and to come end with -ECANCELED on all ranks.
 * Their reports have the text `why` (up to 119 bytes).
 *
 * A rank passes an error of its own on in this way. Any thread, also a signal handler. Returns 0
 * also on a broken comm. */
int  tutti_comm_abort(tutti_comm *comm, const char *why);

/* Frees this rank's hold on comm. Local; works on a broken comm.
 *
 * Peers that later wait there for this rank get -EOWNERDEAD ("freed the comm").
 *
 * Errors:
 *     -EBUSY   work is under way
 *     -EINVAL  it is a world; tutti_finalize frees it */
int  tutti_comm_free(tutti_comm *comm);

/* Returns how many ranks of comm are known to be dead or gone. Any thread.
 *
 * ranks[0 … most-1] receives which: their ranks in comm, ascending. It may be NULL when most is
 * 0. */
int  tutti_failed(const tutti_comm *comm, int ranks[], int most);

/* Sets the deadline of this rank's later operations on comm, in milliseconds. 0: the world's own
 * default. Negative: none.
 *
 * A wait with a deadline that is given here ends by itself. It is part of no cycle. */
int  tutti_set_timeout(tutti_comm *comm, int timeout_ms);

/* ---- collectives ----
 * Every rank of comm calls them, in the same order. Errors of all: see RESULTS and FAILURE. */

/* Returns when all ranks have called it. */
int  tutti_barrier(tutti_comm *, const tutti_call *);

/* Copies buf[count] of root to buf[count] of all. */
int  tutti_broadcast(void *buf, size_t count, tutti_type, int root, tutti_comm *,
                     const tutti_call *);

/* recv[count] of root becomes the fold of all send[count].
 * recv may be NULL on other ranks. In place: send == recv (on root). */
int  tutti_reduce(const void *send, void *recv, size_t count, tutti_type, tutti_op, int root,
                  tutti_comm *, const tutti_call *);

/* recv[count] of every rank becomes the fold of all send[count], with the same bits everywhere.
 * In place: send == recv.
 * Example:
 *     float loss = compute();
 *     tutti_all_reduce(&loss, &loss, 1, TUTTI_F32, TUTTI_AVG, world, NULL); */
int  tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type, tutti_op,
                      tutti_comm *, const tutti_call *);

/* recv[recvcount] of rank p becomes the fold of block p of all ranks' send[size * recvcount].
 * In place: recv == send + rank * recvcount. */
int  tutti_reduce_scatter(const void *send, void *recv, size_t recvcount, tutti_type, tutti_op,
                          tutti_comm *, const tutti_call *);

/* On all ranks block p of recv[size * sendcount] becomes send[sendcount] of rank p.
 * In place: send == recv + rank * sendcount. */
int  tutti_all_gather(const void *send, void *recv, size_t sendcount, tutti_type, tutti_comm *,
                      const tutti_call *);

/* On root block p of recv[size * sendcount] becomes send[sendcount] of rank p.
 * recv may be NULL on other ranks. In place, on root: send == recv + root * sendcount. */
int  tutti_gather(const void *send, void *recv, size_t sendcount, tutti_type, int root,
                  tutti_comm *, const tutti_call *);

/* recv[recvcount] of rank p becomes block p of root's send[size * recvcount].
 * send may be NULL on other ranks. In place, on root: recv == send + root * recvcount. */
int  tutti_scatter(const void *send, void *recv, size_t recvcount, tutti_type, int root,
                   tutti_comm *, const tutti_call *);

/* Block p of recv[size * count] becomes block `rank` of rank p's send[size * count].
 * In place: send == recv. */
int  tutti_all_to_all(const void *send, void *recv, size_t count, tutti_type, tutti_comm *,
                      const tutti_call *);

/* recv[count] of rank r becomes the fold of send[count] of ranks 0 … r (AVG: their mean).
 * In place: send == recv. */
int  tutti_scan(const void *send, void *recv, size_t count, tutti_type, tutti_op, tutti_comm *,
                const tutti_call *);

/* recv[count] of rank r becomes the fold of send[count] of ranks 0 … r-1.
 * Rank 0's recv is left alone, and may be NULL. In place: send == recv. */
int  tutti_exscan(const void *send, void *recv, size_t count, tutti_type, tutti_op, tutti_comm *,
                  const tutti_call *);

/* recv[i][counts[i]] becomes the fold of all send[i][counts[i]], for i < buffers: several buffers,
 * one operation, one wait. For many small tensors.
 *
 * counts is the same on all ranks (else -EPROTO). In place: send[i] == recv[i]. */
int  tutti_all_reduce_many(const void *const send[], void *const recv[], const size_t counts[],
                           int buffers, tutti_type, tutti_op, tutti_comm *, const tutti_call *);

/* Returns 1 if all ranks hold the same bytes at ptr, 0 if not. It compares 128-bit digests.
 * bytes is the same on all ranks. With work, tutti_wait returns the 1 or 0. */
int  tutti_same(const void *ptr, size_t bytes, tutti_comm *, const tutti_call *);

/* The forms with a count for each rank: one pointer and one count per rank, so blocks may be
 * separate buffers, and uneven.
 *
 * The arrays are used during the call only, also with work. An array that this rank has no use for
 * may be NULL (gather_v: recv and counts on ranks other than root). all_gather_v and
 * reduce_scatter_v: counts is the same list on all ranks. The others: what p gives q must be what q
 * takes from p. Where they differ, all ranks get -EPROTO, and the report says which two. In place:
 * the send and recv pointers of a block are equal. */
int  tutti_all_gather_v(const void *send, size_t sendcount, void *const recv[],
                        const size_t counts[], tutti_type, tutti_comm *, const tutti_call *);
int  tutti_gather_v(const void *send, size_t sendcount, void *const recv[], const size_t counts[],
                    tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_scatter_v(const void *const send[], const size_t counts[], void *recv, size_t recvcount,
                     tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_reduce_scatter_v(const void *const send[], const size_t counts[], void *recv, tutti_type,
                            tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_to_all_v(const void *const send[], const size_t sendcounts[], void *const recv[],
                        const size_t recvcounts[], tutti_type, tutti_comm *, const tutti_call *);

/* Makes an operation of one's own for reductions on this comm: inout[i] = in[i] ∘ inout[i].
 *
 * `in` comes from the lower ranks. The order is the ranks', whether fn is commutative or not. fn
 * gets stretches of at most 4096 bytes, 64-byte aligned, at default floating-point modes. It runs
 * on the caller's or on the progress thread. It calls nothing of tutti on this comm (-EDEADLK).
 * All ranks make it, in the same order; the call waits for them.
 *
 * Errors: -ENOSPC  none of 7168 numbers is free on all ranks */
int  tutti_op_create(void (*fn)(const void *in, void *inout, size_t count, tutti_type),
                     int commutative, tutti_op *op, tutti_comm *);

/* Frees an operation of one's own, on this rank alone.
 * Errors: -EBUSY  work is under way */
int  tutti_op_free(tutti_op *op, tutti_comm *);

/* ---- point to point ----
 * Messages are independent of the collectives of the same comm. None of these is a barrier. */

/* For recv and probe, as rank: whoever sends; as tag: whatever tag. */
#define TUTTI_ANY (-1)

typedef struct tutti_message { int from, tag; size_t count; } tutti_message;

/* Sends buf[count] to rank `to` of comm. A tutti_recv there with that sender and tag gets it.
 *
 * tag: 0 or more. Messages from one rank to one other do not overtake each other. A message of up
 * to 64 KiB does not wait for the receiver while the queue between the two has room (4 MiB, 7,000
 * messages); also to oneself. A larger one returns when it is on its way out of buf, and may wait
 * for its tutti_recv. What was sent is received even if the sender leaves or dies meanwhile. With
 * call->work: buf is in use until the work has ended.
 *
 * Errors:
 *     -EOWNERDEAD  the receiver is dead or gone; this is the failure of the comm on this rank
 *     -ETIMEDOUT   the message was not sent; this call alone fails
 *     -EDEADLK     a large message to oneself that no tutti_recv of this rank waits for; at once
 *                  where no deadline was given
 *     -ENOSPC      it needs room in this rank's span, which is full */
int  tutti_send(const void *buf, size_t count, tutti_type, int to, int tag, tutti_comm *,
                const tutti_call *);

/* Waits for a message from rank `from` (or TUTTI_ANY) with this tag (or TUTTI_ANY), and puts it
 * into buf.
 *
 * buf has room for count elements; fewer may come. *got (may be NULL): who sent it, its tag, how
 * many elements came. Receives take messages in the order in which they were called (posted).
 *
 * Errors:
 *     -EPROTO      the message's type is another one
 *     -EMSGSIZE    the message is longer than buf
 *     -EOWNERDEAD  the rank waited for is dead or gone and has sent no such message; from
 *                  TUTTI_ANY: any rank is. This is the failure of the comm on this rank. A rank
 *                  that has met a death in a send, a receive or a turn takes part in none of them
 *                  any more, and counts here as gone.
 *     -ETIMEDOUT   this call alone fails
 * -EPROTO and -EMSGSIZE concern this rank alone. The message is lost, the comm stays whole, the
 * report names both calls.
 * Example:
 *     float x[100];
 *     tutti_message got;
 *     tutti_recv(x, 100, TUTTI_F32, TUTTI_ANY, TUTTI_ANY, &got, world, NULL); */
int  tutti_recv(void *buf, size_t count, tutti_type, int from, int tag, tutti_message *got,
                tutti_comm *, const tutti_call *);

/* Waits until a message is there that tutti_recv would take, and leaves it there. got->count: how
 * many elements it has, of the type that its sender gave.
 * Errors: as tutti_recv. */
int  tutti_probe(int from, int tag, tutti_message *got, tutti_comm *, const tutti_call *);

/* ---- work ----
 * An operation that was started by tutti_call.work. */

/* Waits for the operation, returns its result, and frees the handle.
 *
 * timeout_ms is the patience of this call only. 0: as long as the operation's own deadline.
 * Negative: until it ends. Collectives of a comm complete in the order in which they were started,
 * and so do calls of a queue's end; sends and receives as their messages go. `done`, if given, has
 * run before tutti_wait reports the end. `done` must not block, and may call tutti_test only
 * (anything else on this comm is -EDEADLK).
 *
 * Errors: those of the operation, and
 *     -EAGAIN     timeout_ms has passed; the handle is not freed
 *     -ETIMEDOUT  with TUTTI_KEEP: the handle is not freed */
int  tutti_wait(tutti_work *work, int timeout_ms);

/* Returns -EAGAIN while the operation is under way, then its result. Never frees. Any thread. */
int  tutti_test(tutti_work *work);

/* ---- order ----
 * None of these is a barrier. None can hang because a rank does not call it. */

/* Runs fn(arg) on the first rank that calls this key. The others pass when it has ended.
 *
 * It happens once in the life of comm; later callers pass at once. fn returns 0, or an error (not
 * 0). The error goes to that rank alone, and the next waiting rank takes over. So it does if the
 * runner dies. key: up to 255 bytes. A wait for a living runner has no deadline unless call gives
 * one; it fails this call alone.
 *
 * Errors: -EDEADLK  the runner waits for ranks that wait for the key */
int  tutti_once(const char *key, int (*fn)(void *arg), void *arg, tutti_comm *, const tutti_call *);

/* "The first one prepares, the others use it", for code that is not a function.
 *
 * Returns 1: you go first, call tutti_first_end when done. Returns 0: the first one is done. Each
 * rank counts its own calls of a key. The n-th call of one rank meets the n-th of the others, so it
 * works in loops.
 *
 * Errors: -EDEADLK  a second first_begin before first_end
 * Example:
 *     int first = tutti_first_begin("dataset", world, NULL);
 *     if (first == 1)
 *         tutti_first_end("dataset", prepare(), world);
 *     use(); */
int  tutti_first_begin(const char *key, tutti_comm *, const tutti_call *);

/* Ends the first one's part. error not 0: it failed, the next rank goes first; this returns error.
 * Errors: -EPERM  this rank is not the first */
int  tutti_first_end(const char *key, int error, tutti_comm *);

/* The code between begin and end runs on rank 0, then on 1, 2 …; all ranks call it.
 *
 * Errors; a turn_begin that fails counts as taken:
 *     -EOWNERDEAD  the rank waited for died; this breaks the comm
 *     -ETIMEDOUT   this call alone fails */
int  tutti_turn_begin(tutti_comm *, const tutti_call *);
int  tutti_turn_end(tutti_comm *);

/* Returns a seed for this rank. The seeds of all ranks give independent streams, fixed by
 * (base, rank) alone (splitmix64 of both). */
uint64_t tutti_seed(uint64_t base, const tutti_comm *);

/* ---- queues ----
 * A broadcast queue: what its one writer puts, each reader gets, in order, each message once. For
 * work that one process hands to all others at its own pace. Messages are bytes of any length.
 *
 * A queue is memory of the writer's span: a ring of options.room bytes. A message of up to a
 * quarter of it is shown where it lies. A longer one goes through in pieces, or, from 1 MiB on,
 * through memory beside the ring, if the span has room. Readers that are ahead
 * poll as long as messages come within some 50 us, and sleep otherwise. A put wakes all sleepers by
 * one system call, and makes none if nobody sleeps.
 *
 * Only what call->timeout_ms > 0 asks for is a deadline. With TUTTI_TRY a call returns -EAGAIN
 * where it would wait. A put that has failed was put for nobody. A queue works on after a failed
 * call. One thread at a time is inside an end; a second one gets -EBUSY. Any thread may call close,
 * release and stats. Cycles of ranks that wait are not looked for here: a thread that has called
 * nothing so far may be the one that is to put or to get.
 *
 * With call->work a put, get or look is only started. What it was given stays in use until
 * tutti_wait, except the lists of put_v. Those of an end take effect in the order in which they
 * were started, and end in that order, unless a deadline passes. A call without work waits until it
 * is its turn behind them. What never waits cannot be started (TUTTI_TRY, a put with
 * TUTTI_QUEUE_REFUSE). The interrupt function ends the one that tutti_wait waits for.
 *
 * Processes that are not ranks of one world make a world for the queue alone: each calls tutti_init
 * with options job, rank and size, then tutti_queue_create. A process may be in many worlds.
 *
 * Death: readers get all that the writer had put, then -EOWNERDEAD. A message that was not put
 * whole is never seen. A rank that is stopped is no death: the writer waits, without end and
 * without CPU time, unless a deadline was given. tutti_finalize frees the queues of its world.
 *
 * Errors of put, get, look:
 *     -EOWNERDEAD  the writer, or a reader, is dead or has left without a close
 *     -ESHUTDOWN   the writer has closed and all is read; for put: all readers have closed
 *     -ECANCELED   this end is closed, or the queue's comm is aborted
 *     -EAGAIN      with TUTTI_TRY, and of put with TUTTI_QUEUE_REFUSE
 *     -ETIMEDOUT   the deadline passed
 *     -EINTR       the interrupt function said stop; the queue stays whole
 *     -EIO         the arena has been written over */

/* Options of tutti_queue_create, the same on all ranks. A field that is 0 means its default. */
typedef struct tutti_queue_options {
    size_t   room;                      /* bytes; made a power of two, 4 KiB at least. 0: 8 MiB */
    unsigned flags;                     /* TUTTI_QUEUE_REFUSE, TUTTI_QUEUE_GO_ON */
    uint64_t reserved[4];
} tutti_queue_options;

/* A message that a reader looks at. hold: the library's. */
typedef struct tutti_queue_message {
    const void *data;
    size_t      bytes;
    uint64_t    hold;
} tutti_queue_message;

/* Figures of this end of a queue. wakes: system calls to wake the others. behind: bytes of the ring
 * that the slowest reader, or this one, has not read. held: messages looked at and not released.
 * lost: readers that died, and the queue went on. */
typedef struct tutti_queue_figures {
    uint64_t messages, bytes, waits, sleeps, wakes, behind, room, held, lost;
    uint64_t reserved[5];
} tutti_queue_figures;

/* Makes a queue of all ranks of comm: rank `writer` puts, the others get. A collective on comm.
 *
 * options NULL: all defaults. At most 256 ranks. The queue has a comm of its own: it is independent
 * of what becomes of comm, and of other calls.
 *
 * Errors, the same on all ranks:
 *     -EPROTO  another writer, or other options, on some rank
 *     -ENOSPC  too many comms, or the writer's span is full
 *     -ENOMEM
 * Example:
 *     tutti_queue *steps;
 *     int error = tutti_queue_create(world, 0, NULL, &steps);
 *     char step[64];
 *     size_t n = sizeof step;
 *     if (error == 0 && rank == 0)
 *         error = tutti_queue_put(steps, "step 1", 6, NULL);
 *     else if (error == 0)
 *         error = tutti_queue_get(steps, step, &n, NULL);
 *     if (error < 0)
 *         fprintf(stderr, "%s\n", tutti_strerror(error)); */
int  tutti_queue_create(tutti_comm *, int writer, const tutti_queue_options *options,
                        tutti_queue **queue);

/* Puts data[bytes] as one message. Waits while the queue is full. The writer's. */
int  tutti_queue_put(tutti_queue *, const void *data, size_t bytes, const tutti_call *);

/* Puts several buffers, one behind the other, as one message: part[i][bytes[i]], for i < parts. */
int  tutti_queue_put_v(tutti_queue *, const void *const part[], const size_t bytes[], int parts,
                       const tutti_call *);

/* Lends memory for one message, which readers are shown where it lies, however large it is. The
 * writer's.
 *
 * *block: `bytes` of the writer's span, for the caller to fill in. tutti_queue_put_loan puts the
 * first `bytes` of it as a message; from then on it belongs to the queue, and is lent again when
 * the last reader has gone past that message, or has died. If the put fails, the caller still has
 * it. tutti_queue_drop_loan gives it back unused. A reader that looks at such a message holds it as
 * any other: its loan is not lent again, and its place in the ring is not written.
 *
 * Errors, besides those of put:
 *     -ENOSPC  the writer's span is full; nothing is waited for
 *     -ENOMEM
 * Example:
 *     tutti_queue *rows;
 *     tutti_queue_message row;
 *     void *block = NULL;
 *     int error = tutti_queue_create(world, 0, NULL, &rows);
 *     if (error == 0 && rank == 0)
 *         error = tutti_queue_loan(rows, 65536, &block);
 *     if (block) {
 *         memset(block, 1, 65536);
 *         error = tutti_queue_put_loan(rows, block, 65536, NULL);
 *     }
 *     if (error == 0 && rank == 1) {
 *         error = tutti_queue_look(rows, &row, NULL);
 *         tutti_queue_release(rows, &row);
 *     }
 *     if (error < 0)
 *         fprintf(stderr, "%s\n", tutti_strerror(error)); */
int  tutti_queue_loan(tutti_queue *, size_t bytes, void **block);
int  tutti_queue_put_loan(tutti_queue *, void *block, size_t bytes, const tutti_call *);
int  tutti_queue_drop_loan(tutti_queue *, void *block);

/* Waits for the next message and copies it. A reader's.
 *
 * *bytes: the room, then the length.
 *
 * Errors:
 *     -EMSGSIZE  the room is too small; *bytes is set, and the message stays the next one */
int  tutti_queue_get(tutti_queue *, void *buf, size_t *bytes, const tutti_call *);

/* Waits for the next message and shows it, where it lies if it can. A reader's.
 *
 * message->data[bytes] can be read until tutti_queue_release. Messages may be released in any
 * order. The writer gets no further than options.room bytes beyond the oldest message that is held
 * in the ring. What is kept long is better copied. A reader that holds 64 messages, or much of the
 * ring, is shown copies (message->hold is 0).
 *
 * Errors:
 *     -EDEADLK  also of get: the writer waits for room that this reader holds. Release the oldest.
 *               Another thread may just be doing that; then call again */
int  tutti_queue_look(tutti_queue *, tutti_queue_message *message, const tutti_call *);
int  tutti_queue_release(tutti_queue *, tutti_queue_message *message);

/* Ends this rank's part. Any thread, any number of times; not a signal handler.
 *
 * A call under way here, work too, returns -ECANCELED, as all later ones do. Of the writer: the
 * readers get what was put, then -ESHUTDOWN. Of a reader: the writer goes on without it. What was
 * looked at stays until it is released. */
int  tutti_queue_close(tutti_queue *);

/* Closes, and frees this rank's end. No call may be under way, nor a tutti_wait for work of this
 * end; that work ends, and its handles stay for tutti_wait. What was looked at is not valid any
 * more. */
int  tutti_queue_free(tutti_queue *);

/* The comm of the queue's ranks, numbered as in the comm that it was made on: for tutti_explain,
 * rank, size, failed, abort. */
tutti_comm *tutti_queue_comm(const tutti_queue *);

/* Fills *figures with those of this end. Any thread. */
int  tutti_queue_stats(const tutti_queue *, tutti_queue_figures *figures);

/* ---- store ----
 * Keys and values that the whole job shares: one table for all ranks, whatever comm is given. The
 * comm lends its deadline, its reports, and its end (-ECANCELED once it is broken).
 *
 * Keys are strings of 1 to 255 bytes. Values are up to 1 MiB of bytes. There is room for 64 MiB, or
 * TUTTI_STORE_BYTES. It is memory only as far as used, and is used again when values are replaced
 * or deleted. Each call takes effect at one moment for all ranks. A rank that is killed in a call
 * leaves the old value or the new one. No call needs another rank's part. Only tutti_get waits.
 * All work beside operations that are under way.
 *
 * Errors of all:
 *     -EINVAL     a bad argument
 *     -EMSGSIZE   a longer key or value
 *     -ECANCELED  the comm is broken
 *     -ETIMEDOUT  a stopped rank has held the table for 30 s */

/* key is value[len] from now on, whatever it was.
 * Errors: -ENOMEM  the store is full, or the system; the old value stays */
int  tutti_set(const char *key, const void *value, size_t len, tutti_comm *);

/* Waits until key is there, and copies its value.
 *
 * *len: the room, then the length. value may be NULL where *len is 0. A number made by tutti_add is
 * 8 bytes, an int64_t. The deadline is call->timeout_ms, or the comm's.
 *
 * Errors fail this call alone:
 *     -EMSGSIZE    the room is too small; *len is set
 *     -ETIMEDOUT   the deadline passed
 *     -EOWNERDEAD  the key is missing, and all other ranks of the job are dead or have left
 *     -EINVAL      call->work
 * Example:
 *     char address[64];
 *     size_t n = sizeof address;
 *     if (rank == 0)
 *         tutti_set("address", mine, strlen(mine) + 1, world);
 *     int error = tutti_get("address", address, &n, world, NULL); */
int  tutti_get(const char *key, void *value, size_t *len, tutti_comm *, const tutti_call *);

/* Adds delta to a number, which starts at 0 where the key is missing. It wraps.
 *
 * *now (may be NULL): what the number has become. No two callers see the same, so
 * tutti_add(key, 1, &ticket, comm) numbers them.
 *
 * Errors:
 *     -EINVAL  the value was not made by tutti_add
 *     -ENOMEM  as tutti_set */
int  tutti_add(const char *key, int64_t delta, int64_t *now, tutti_comm *);

/* If key is expected[expected_len], it becomes desired[desired_len].
 *
 * expected_len 0: only if key is missing. Returns 1: done; 0: it was something else. A number made
 * by tutti_add compares as its 8 bytes, and is plain bytes when replaced.
 *
 * Errors: -ENOMEM  as tutti_set */
int  tutti_compare_set(const char *key, const void *expected, size_t expected_len,
                       const void *desired, size_t desired_len, tutti_comm *);

/* Deletes key.
 * Errors: -ENOENT  there is no such key */
int  tutti_delete(const char *key, tutti_comm *);

/* ---- memory ----
 * Memory in the arena, where every rank can reach it. Collectives take it where it lies, without a
 * copy. All of this is local: no other rank takes part, and nothing waits. Any thread may call it
 * at any time, also while another thread is inside the comm. `comm` is any comm of the world. Each
 * rank has a span of its own (options.span_bytes).
 *
 * NUMA: the span of a rank that may run on one node only lies there, whoever touches a page first.
 * Bind before tutti_init, or let it do so (TUTTI_BIND_CORE, TUTTI_BIND_NUMA, tutti run --bind). A
 * memory policy of the calling thread (set_mempolicy, numactl) becomes the span's instead. Where a
 * rank may run on several nodes, a page lies where it is touched first. */

/* Returns memory of this rank's span, 64-byte aligned and not cleared.
 *
 * Its pages are there when it returns, so nothing is short later. From 4 MiB on they are huge
 * pages, if the system has them. It stays until tutti_free. What a rank leaves behind (finalize,
 * death) stays readable for its peers.
 *
 * NULL: the reason is in tutti_explain (the span is full, no memory, the comm is broken).
 * Example:
 *     float *x = tutti_alloc(n * sizeof *x, world);
 *     if (!x)
 *         fprintf(stderr, "%s\n", tutti_explain(world)); */
void *tutti_alloc(size_t bytes, tutti_comm *);

/* Gives back what this rank had from tutti_alloc by any comm of the world.
 *
 * Its pages go back to the system. A peer that still has a view of it reads zeros, or what is
 * allocated there next.
 *
 * Errors: -EINVAL  anything else: freed before, a view of a peer's memory, registered memory */
int  tutti_free(void *ptr, tutti_comm *);

/* Makes existing memory part of the arena, at the same address. tutti_alloc is the first choice: it
 * copies nothing.
 *
 * The whole pages of [ptr, ptr + bytes) are copied into this rank's span, and that is mapped in
 * their place. All pointers stay valid. Head and tail that share a page with other memory stay
 * private; of less than a page nothing is shared. Nobody may touch the memory during the call.
 *
 * Errors; all is as it was:
 *     -EINVAL     a file, shared memory, a stack, code, not writable, a hole, memory of the arena,
 *                 memory that is registered already
 *     -ENOSPC     more than 4096 ranges, or the span is full
 *     -ENOMEM
 *     -ECANCELED  the comm is broken
 *
 * While it is registered:
 *  - Unregister before free, realloc, munmap or mremap of it. An allocator that gets shared pages
 *    back hands them out, and calloc takes them for clean (after MADV_DONTNEED they keep their
 *    bytes). tutti_unregister would map over whoever has the addresses then.
 *  - A forked child shares it: the parent and its peers read what the child writes. Do not register
 *    what such a child writes. A child that lives on holds the arena's memory by it.
 *  - What was said of it by mlock or madvise (huge pages, DONTFORK, DONTDUMP) no longer holds, nor
 *    after tutti_unregister.
 *  - Memory that a device driver has pinned (CUDA) must not be registered, nor pinned while it is.
 *    The device would go on using the old pages. The library cannot see that.
 *  - Stacks of other threads look like other memory. Register none. */
int  tutti_register(void *ptr, size_t bytes, tutti_comm *);

/* Makes registered memory private again, with the same contents. tutti_finalize does so for all
 * that is left.
 *
 * ptr: as given to tutti_register. Peers' views of it read zeros from then on.
 *
 * Errors:
 *     -EINVAL  ptr was not given to tutti_register
 *     -EBUSY   work is under way on a comm of this world
 *     -ENOMEM  no private pages for all of it; the rest stays registered and valid, try again */
int  tutti_unregister(void *ptr, tutti_comm *);

/* *handle becomes a name for arena memory that means the same to all ranks of the job.
 *
 * ptr: anywhere inside memory of tutti_alloc or tutti_view, or in the whole pages of registered
 * memory. Send the handle to a peer as you like.
 *
 * Errors: -EINVAL  ptr is not such memory */
int  tutti_handle(const void *ptr, uint64_t *handle, tutti_comm *);

/* Returns the memory of a handle in this process.
 *
 * It is the same bytes for every rank: ranks that write at the same time must agree who does. Valid
 * until tutti_finalize of this rank, also after the end of the rank that owns the memory. When the
 * owner frees or unregisters it, it reads as zeros, or as what is allocated there next.
 *
 * NULL: not a handle of this job (tutti_explain). */
void *tutti_view(uint64_t handle, tutti_comm *);

/* As tutti_view, to read only: writing through it is SIGSEGV. The first call maps the whole arena
 * once more. */
const void *tutti_view_readonly(uint64_t handle, tutti_comm *);

/* ---- files ----
 * Every rank of comm calls these, in the same order as its collectives. They go through io_uring,
 * or through threads where the system forbids that (TUTTI_URING=0 chooses threads).
 *
 * As work: path is copied; data and bytes are used until tutti_wait. tutti_stats counts the bytes
 * that this rank has read or written so far.
 *
 * Errors that the file, the disk or its room is to blame for are the same on all ranks, and the
 * comm goes on. tutti_explain names the rank, the path and the place.
 *     -ENOENT, -EACCES, -EISDIR
 *     -EINVAL  no regular file
 *     -ESTALE  not the same file for all ranks
 *     -EIO     also: the file became shorter while it was read
 *     -ENOSPC, -ENOMEM …
 * A death, a deadline, an abort are errors of the operation like any other. What the disk has been
 * asked for by then is waited for, for a second. What it has not answered by that time goes on: a
 * save reads the caller's data until then, and the process may end late. */

/* Reads a file, once per host: each rank reads a share, and all get the same memory.
 *
 * *data[*bytes] can only be read. It is at the same place for every rank of a process. An empty
 * file has an address, too. Reading goes past the page cache where that does not hold the file.
 * Each rank gives the memory back by tutti_free; the last one frees it. It lies in the span of rank
 * 0, and stays readable when that ends. Its pages are spread over the NUMA nodes that the ranks may
 * run on. */
int  tutti_load(const char *path, const void **data, size_t *bytes, tutti_comm *,
                const tutti_call *);

/* Writes the same bytes of all ranks to a file: each rank writes a share.
 *
 * bytes is the same on all ranks (else -EPROTO). Contents are not compared. Until all is on the
 * disk (fsync) the path leads to the old file, from then on to the new one (rename); also when
 * ranks or the machine die at any point. A file that is there keeps its mode. A link is followed.
 * If all ranks die at once, a file .tutti-save-* may stay beside it. */
int  tutti_save(const char *path, const void *data, size_t bytes, tutti_comm *, const tutti_call *);

/* ---- errors and figures ---- */

/* The kind of an error in one sentence. The text lives for ever. */
const char *tutti_strerror(int error);

/* The last failure of this rank on comm, in words and with its table; "" if there was none.
 * Valid until this thread asks again. comm NULL: of tutti_init and tutti_spawn in this thread. */
const char *tutti_explain(const tutti_comm *comm);

/* Fills *figures with this rank's. Any thread, broken comms too. Reads what all ranks noted of
 * their last collectives: some ten microseconds a rank.
 *
 * Errors: -ENOMEM  only the figures of this rank alone are filled in */
int  tutti_stats(const tutti_comm *comm, tutti_figures *figures);

/* Plans a fault, for tests: "RANK:OPERATION#N:kill|stop|delay=MS|abort".
 *
 * RANK: in this comm. OPERATION: the function's name without tutti_, or *. N: the N-th such call on
 * this comm, from 1. The fault strikes after the arguments are checked, before the arrival. On
 * other ranks nothing happens, and it returns 0. TUTTI_FAULT in the environment does the same on
 * the world (several faults, separated by commas). */
int  tutti_fault(tutti_comm *comm, const char *what);

/* ---- call sites ----
 * Reports say who called what, at which file and line. The macros below hand the site in. A call
 * through a pointer, or with TUTTI_NO_SITES defined, shows "?". Bindings call the _at forms with
 * strings of their own that live for ever. */
int  tutti_finalize_at(const char *site, tutti_comm *);
int  tutti_comm_split_at(const char *site, tutti_comm *, int color, int key, tutti_comm **);
int  tutti_comm_create_at(const char *site, tutti_comm *, const int ranks[], int size, tutti_comm
                          **);
int  tutti_comm_shrink_at(const char *site, tutti_comm *broken, tutti_comm **comm);
int  tutti_comm_agree_at(const char *site, tutti_comm *, int *flag);
int  tutti_comm_abort_at(const char *site, tutti_comm *, const char *why);
int  tutti_barrier_at(const char *site, tutti_comm *, const tutti_call *);
int  tutti_broadcast_at(const char *site, void *, size_t, tutti_type, int root, tutti_comm *, const
                        tutti_call *);
int  tutti_reduce_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, int root,
                     tutti_comm *, const tutti_call *);
int  tutti_all_reduce_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op,
                         tutti_comm *, const tutti_call *);
int  tutti_all_reduce_many_at(const char *site, const void *const send[], void *const recv[], const
                              size_t counts[], int buffers, tutti_type, tutti_op, tutti_comm *,
                              const tutti_call *);
int  tutti_reduce_scatter_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op,
                             tutti_comm *, const tutti_call *);
int  tutti_all_gather_at(const char *site, const void *, void *, size_t, tutti_type, tutti_comm *,
                         const tutti_call *);
int  tutti_gather_at(const char *site, const void *, void *, size_t, tutti_type, int root,
                     tutti_comm *, const tutti_call *);
int  tutti_scatter_at(const char *site, const void *, void *, size_t, tutti_type, int root,
                      tutti_comm *, const tutti_call *);
int  tutti_all_to_all_at(const char *site, const void *, void *, size_t, tutti_type, tutti_comm *,
                         const tutti_call *);
int  tutti_scan_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op, tutti_comm
                   *, const tutti_call *);
int  tutti_exscan_at(const char *site, const void *, void *, size_t, tutti_type, tutti_op,
                     tutti_comm *, const tutti_call *);
int  tutti_all_gather_v_at(const char *site, const void *, size_t, void *const recv[], const size_t
                           counts[], tutti_type, tutti_comm *, const tutti_call *);
int  tutti_gather_v_at(const char *site, const void *, size_t, void *const recv[], const size_t
                       counts[], tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_scatter_v_at(const char *site, const void *const send[], const size_t counts[], void *,
                        size_t, tutti_type, int root, tutti_comm *, const tutti_call *);
int  tutti_reduce_scatter_v_at(const char *site, const void *const send[], const size_t counts[],
                               void *, tutti_type, tutti_op, tutti_comm *, const tutti_call *);
int  tutti_all_to_all_v_at(const char *site, const void *const send[], const size_t sendcounts[],
                           void *const recv[], const size_t recvcounts[], tutti_type, tutti_comm *,
                           const tutti_call *);
int  tutti_op_create_at(const char *site, void (*fn)(const void *, void *, size_t, tutti_type), int
                        commutative, tutti_op *, tutti_comm *);
int  tutti_op_free_at(const char *site, tutti_op *, tutti_comm *);
int  tutti_same_at(const char *site, const void *ptr, size_t bytes, tutti_comm *, const tutti_call
                   *);
int  tutti_load_at(const char *site, const char *path, const void **data, size_t *bytes, tutti_comm
                   *, const tutti_call *);
int  tutti_save_at(const char *site, const char *path, const void *data, size_t bytes, tutti_comm *,
                   const tutti_call *);
int  tutti_send_at(const char *site, const void *, size_t, tutti_type, int to, int tag, tutti_comm
                   *, const tutti_call *);
int  tutti_recv_at(const char *site, void *, size_t, tutti_type, int from, int tag, tutti_message
                   *got, tutti_comm *, const tutti_call *);
int  tutti_probe_at(const char *site, int from, int tag, tutti_message *got, tutti_comm *, const
                    tutti_call *);
int  tutti_wait_at(const char *site, tutti_work *, int timeout_ms);
int  tutti_once_at(const char *site, const char *key, int (*fn)(void *), void *arg, tutti_comm *,
                   const tutti_call *);
int  tutti_first_begin_at(const char *site, const char *key, tutti_comm *, const tutti_call *);
int  tutti_first_end_at(const char *site, const char *key, int error, tutti_comm *);
int  tutti_turn_begin_at(const char *site, tutti_comm *, const tutti_call *);
int  tutti_turn_end_at(const char *site, tutti_comm *);
uint64_t tutti_seed_at(const char *site, uint64_t base, const tutti_comm *);
int  tutti_set_at(const char *site, const char *key, const void *value, size_t len, tutti_comm *);
int  tutti_get_at(const char *site, const char *key, void *value, size_t *len, tutti_comm *, const
                  tutti_call *);
int  tutti_add_at(const char *site, const char *key, int64_t delta, int64_t *now, tutti_comm *);
int  tutti_compare_set_at(const char *site, const char *key, const void *expected, size_t
                          expected_len, const void *desired, size_t desired_len, tutti_comm *);
int  tutti_delete_at(const char *site, const char *key, tutti_comm *);

int  tutti_queue_create_at(const char *site, tutti_comm *, int writer, const tutti_queue_options *,
                           tutti_queue **);
int  tutti_queue_put_at(const char *site, tutti_queue *, const void *, size_t, const tutti_call *);
int  tutti_queue_put_v_at(const char *site, tutti_queue *, const void *const part[], const size_t
                          bytes[], int parts, const tutti_call *);
int  tutti_queue_loan_at(const char *site, tutti_queue *, size_t, void **);
int  tutti_queue_put_loan_at(const char *site, tutti_queue *, void *, size_t, const tutti_call *);
int  tutti_queue_drop_loan_at(const char *site, tutti_queue *, void *);
int  tutti_queue_get_at(const char *site, tutti_queue *, void *, size_t *, const tutti_call *);
int  tutti_queue_look_at(const char *site, tutti_queue *, tutti_queue_message *, const tutti_call
                         *);

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
#define tutti_queue_create(...) tutti_queue_create_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_put(...)   tutti_queue_put_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_put_v(...) tutti_queue_put_v_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_loan(...)  tutti_queue_loan_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_put_loan(...)  tutti_queue_put_loan_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_drop_loan(...) tutti_queue_drop_loan_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_get(...)   tutti_queue_get_at(TUTTI_SITE, __VA_ARGS__)
#define tutti_queue_look(...)  tutti_queue_look_at(TUTTI_SITE, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
