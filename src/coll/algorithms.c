/* One table of all algorithms. A row is a collective and the way its bytes travel.
 *
 * What a rank gives to whom is the collective's (parts.h). The way is one of four. Each is written
 * once, for all collectives that can go by it:
 *
 *   inline     The payload stands in the cache line of the arrival flag. A scalar moves the same
 *              lines as a barrier. inline.c
 *   eager      The sender copies into its own staging slot before it arrives. Readers take it from
 *              there after one wait. What lies in the arena is read in place. eager.c, many.c
 *   pipelined  Chunks go through a queue of slots for each rank, or straight from buffers in the
 *              arena. Slots, and who may write them: pipeline.c. Moving blocks: pipeline_move.c.
 *              all_reduce is a reduce-scatter and an all-gather: pipeline_reduce.c
 *   direct     As pipelined, but a peer's private memory is read where it lies. cma.c
 *
 * All folds are in rank order, so that all ways give the same bits. Barriers have two ways:
 *
 *   flags      Each rank stores its own flag and reads everybody's. barrier_flags.c
 *   central    Central sense-reversing barrier. barrier_central.c
 *
 * Sources. flags: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, IJPP 17
 * (1988). central: Mellor-Crummey and Scott, Algorithms for Scalable Synchronization on
 * Shared-Memory Multiprocessors, ACM TOCS 9 (1991). all_reduce by reduce-scatter and all-gather: Rabenseifner, Optimization of
 * Collective Reduction Operations, ICCS 2004; Thakur, Rabenseifner, Gropp, Optimization of
 * Collective Communication Operations in MPICH, IJHPCA 19 (2005). Chunk queues in shared memory:
 * Graham and Shipman, MPI Support for Multi-core Architectures, EuroPVM/MPI 2008. Single copy by
 * the kernel: Goglin and Moreaud, KNEM, JPDC 73 (2013), here with process_vm_readv. */
#include "coll/algorithms.h"

#include "coll/eager.h"
#include "coll/inline.h"
#include "coll/pipeline.h"

/* What several rows say of themselves. */
#define EAGER_HELP "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
#define PIPELINE_HELP "pipelines of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
#define PAIRS_HELP "counts compared by pairs, then pipelines of chunks; 2 waits; any size"
#define DIRECT_HELP "private memory is read where it lies, written once; else as pipeline"

const struct algorithm algorithm_table[] = {
    /* The ranks' say on whether they can make an operation of the caller's: the largest errno. No rule chooses it. */
    [ALGORITHM_OP_CREATE] = { .name = "inline", .kind = KIND_OP_CREATE, .most = INLINE_BYTES,
      .advance = coll_one_phase, .before = inline_put, .after = inline_fold,
      .help = "an all_reduce of one number" },

    /* Barrier. Its choice is also the gate of every row of one phase. */
    [ALGORITHM_BARRIER_FLAGS] = { .name = "flags", .kind = KIND_BARRIER, .most = SIZE_MAX,
      .advance = barrier_flags_advance, .before = coll_nothing, .after = coll_nothing,
      .help = "one line a rank, read by all: 1 hop, N-1 line transfers" },
    { .name = "central", .kind = KIND_BARRIER, .most = SIZE_MAX, .advance = barrier_central_advance,
      .before = coll_nothing, .after = coll_nothing,
      .help = "one counter, one sense word: N atomic adds, for more ranks than CPUs" },

    /* Broadcast. Small: the root's arrival carries it, or says where it lies. Large: C(k) asks for everybody's arrival
     * and for the root's last chunk: from then on it needs no root. */
    { .name = "inline", .kind = KIND_BROADCAST, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take,
      .help = "payload in the root's arrival line: up to 88 bytes" },
    { .name = "eager", .kind = KIND_BROADCAST, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take,
      .help = "through the root's slot: 1 wait, 2 copies, up to 64 KiB" },
    { .name = "pipelined", .kind = KIND_BROADCAST, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = "the root's pipeline of chunks: written once, read once by each; any size" },
    { .name = "direct", .kind = KIND_BROADCAST, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },

    /* Reduce: as all_reduce, but only the root folds, or copies the result out. All wait for all, so that all or none holds. */
    { .name = "inline", .kind = KIND_REDUCE, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put, .after = inline_fold_at_root,
      .help = "payload in the arrival line, the root folds: up to 88 bytes" },
    { .name = "eager", .kind = KIND_REDUCE, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_to_root, .after = eager_fold_at_root,
      .help = "a slot a rank, the root folds all: 1 wait, up to 64 KiB" },
    { .name = "pipelined", .kind = KIND_REDUCE, .most = SIZE_MAX, .advance = pipeline_reduce_advance,
      .help = "pipelines of chunks: each rank folds 1/N of it, the root collects; any size" },
    { .name = "direct", .kind = KIND_REDUCE, .most = SIZE_MAX, .advance = pipeline_reduce_advance,
      .direct = true, .help = DIRECT_HELP },

    /* All_reduce. By eager one wait, one copy in, N reads: the fastest for what fits the caches; above that the pipeline does less
     * work per rank. The lines stay as they are until the reader returns: their owner may not store the operation after the
     * next before we have arrived at the next. */
    [ALGORITHM_ALL_REDUCE_INLINE] = { .name = "inline", .kind = KIND_ALL_REDUCE, .most = INLINE_BYTES,
      .advance = coll_one_phase, .before = inline_put, .after = inline_fold,
      .help = "payload in the arrival line: the price of a barrier, up to 88 bytes" },
    [ALGORITHM_ALL_REDUCE_EAGER] = { .name = "eager", .kind = KIND_ALL_REDUCE, .most = EAGER_BYTES,
      .advance = coll_one_phase, .before = eager_put, .after = eager_fold,
      .help = "a slot a rank, everybody folds all: 1 wait, N reads, up to 64 KiB" },
    { .name = "pipelined", .kind = KIND_ALL_REDUCE, .most = SIZE_MAX, .advance = pipeline_all_reduce_advance,
      .help = "pipelines of chunks: each rank folds 1/N of it; pipelined, any size" },
    { .name = "direct", .kind = KIND_ALL_REDUCE, .most = SIZE_MAX, .advance = pipeline_all_reduce_advance,
      .direct = true, .help = DIRECT_HELP },

    /* All_reduce of several buffers: they are one vector. The counts are the same list on all ranks, by fingerprint. */
    { .name = "eager", .kind = KIND_ALL_REDUCE_MANY, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = many_eager_before, .after = many_eager_after,
      .help = "all buffers in a slot a rank, everybody folds all: 1 wait, up to 64 KiB in all" },
    { .name = "pipelined", .kind = KIND_ALL_REDUCE_MANY, .most = SIZE_MAX, .advance = pipeline_all_reduce_advance,
      .help = "pipelines of chunks over all buffers: each rank folds 1/N of it; any size" },
    { .name = "direct", .kind = KIND_ALL_REDUCE_MANY, .most = SIZE_MAX, .advance = pipeline_all_reduce_advance,
      .direct = true, .help = DIRECT_HELP },

    /* Reduce_scatter: rank p folds block p of everybody's buffer, in rank order. The counts of the _v form are the same list
     * on all ranks, by fingerprint, so every rank knows where its blocks begin. */
    { .name = "inline", .kind = KIND_REDUCE_SCATTER, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take_folded,
      .help = "all blocks in the arrival line, up to 88 bytes a rank: the price of a barrier" },
    { .name = "eager", .kind = KIND_REDUCE_SCATTER, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take_folded,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank" },
    { .name = "pipelined", .kind = KIND_REDUCE_SCATTER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = "pipelines of chunks, each rank folds its own block; any size" },
    { .name = "direct", .kind = KIND_REDUCE_SCATTER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "eager", .kind = KIND_REDUCE_SCATTER_V, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_lists, .after = eager_take_lists,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank" },
    { .name = "pipelined", .kind = KIND_REDUCE_SCATTER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = "pipelines of chunks, each rank folds its own block; any size" },
    { .name = "direct", .kind = KIND_REDUCE_SCATTER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },

    /* All_gather: each rank gives one block to all. The counts of the _v form are the same list on all ranks, by fingerprint. */
    { .name = "inline", .kind = KIND_ALL_GATHER, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take,
      .help = "a block in the arrival line, up to 88 bytes: the price of a barrier" },
    { .name = "eager", .kind = KIND_ALL_GATHER, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take, .help = EAGER_HELP },
    { .name = "pipelined", .kind = KIND_ALL_GATHER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct", .kind = KIND_ALL_GATHER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "eager", .kind = KIND_ALL_GATHER_V, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_lists, .after = eager_take_lists, .help = EAGER_HELP },
    { .name = "pipelined", .kind = KIND_ALL_GATHER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct", .kind = KIND_ALL_GATHER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },

    /* Gather: each rank gives one block to the root. All wait for all, so that all or none holds. */
    { .name = "inline", .kind = KIND_GATHER, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take,
      .help = "a block in the arrival line, the root reads: up to 88 bytes" },
    { .name = "eager", .kind = KIND_GATHER, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take, .help = EAGER_HELP },
    { .name = "pipelined", .kind = KIND_GATHER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct", .kind = KIND_GATHER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "pipelined", .kind = KIND_GATHER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct", .kind = KIND_GATHER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = "counts compared by pairs; then " DIRECT_HELP },

    /* Scatter: the root gives a block to each rank. All wait for all, so that all or none holds. */
    { .name = "inline", .kind = KIND_SCATTER, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take,
      .help = "all blocks in the root's arrival line, up to 88 bytes" },
    { .name = "eager", .kind = KIND_SCATTER, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take, .help = EAGER_HELP },
    { .name = "pipelined", .kind = KIND_SCATTER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct", .kind = KIND_SCATTER, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "pipelined", .kind = KIND_SCATTER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct", .kind = KIND_SCATTER_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = "counts compared by pairs; then " DIRECT_HELP },

    /* All_to_all: each rank gives a block to each rank. */
    { .name = "inline", .kind = KIND_ALL_TO_ALL, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take,
      .help = "all blocks in the arrival line, up to 88 bytes a rank" },
    { .name = "eager", .kind = KIND_ALL_TO_ALL, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take, .help = EAGER_HELP },
    { .name = "pipelined", .kind = KIND_ALL_TO_ALL, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct", .kind = KIND_ALL_TO_ALL, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "pipelined", .kind = KIND_ALL_TO_ALL_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct", .kind = KIND_ALL_TO_ALL_V, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = "counts compared by pairs; then " DIRECT_HELP },

    /* Scan and exscan: rank r folds the blocks of ranks 0 … r, or … r - 1, in that order. Each folds for itself:
     * N (N + 1) / 2 reads of a block in all; passing partial results on would read less and round halves more than once. */
    { .name = "inline", .kind = KIND_SCAN, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "eager", .kind = KIND_SCAN, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB" },
    { .name = "pipelined", .kind = KIND_SCAN, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = "pipelines of chunks, each folds those of the lower ranks; any size" },
    { .name = "direct", .kind = KIND_SCAN, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },
    { .name = "inline", .kind = KIND_EXSCAN, .most = INLINE_BYTES, .advance = coll_one_phase,
      .before = inline_put_parts, .after = inline_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "eager", .kind = KIND_EXSCAN, .most = EAGER_BYTES, .advance = coll_one_phase,
      .before = eager_put_parts, .after = eager_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB" },
    { .name = "pipelined", .kind = KIND_EXSCAN, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .help = "pipelines of chunks, each folds those of the lower ranks; any size" },
    { .name = "direct", .kind = KIND_EXSCAN, .most = SIZE_MAX, .advance = pipeline_move_advance,
      .direct = true, .help = DIRECT_HELP },

    /* Same: do all ranks hold the same bytes? */
    { .name = "inline", .kind = KIND_SAME, .most = SIZE_MAX, .advance = coll_one_phase,
      .before = same_before, .after = same_after,
      .help = "a digest of 128 bits in the arrival line: the price of a barrier and of reading the bytes" },
    { .name = NULL }
};
