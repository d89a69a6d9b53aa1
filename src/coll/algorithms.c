/* One table of all algorithms. A row is a collective and the way its bytes travel.
 *
 * parts.h says which rank gives what to which rank in a collective. The bytes travel by one of four
 * ways. Each way is written once, for all collectives that can use it:
 *
 *   inline     The payload stands in the cache line of the arrival flag. A scalar moves the same
 *              lines as a barrier. inline.c
 *   eager      The sender copies into its own staging slot before it arrives. Readers take it from
 *              there after one wait. A buffer in the arena is read in place. eager.c, many.c
 *   pipelined  Chunks go through a queue of slots for each rank, or straight from buffers in the
 *              arena. Slots, and who may write them: pipeline.c. Moving blocks: pipeline_move.c.
 *              all_reduce is a reduce-scatter and an all-gather: pipeline_reduce.c.
 *              Blocks that change hands between two ranks: pipeline_swap.c
 *   direct     As pipelined, but peers read private memory of a rank in place. cma.c
 *
 * All folds are in rank order, so all ways give the same bits. Barriers have two ways:
 *
 *   flags      Each rank stores its own flag and reads all others. barrier_flags.c
 *   central    Central sense-reversing barrier. barrier_central.c
 *
 * Sources. flags: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, IJPP 17
 * (1988). central: Mellor-Crummey and Scott, Algorithms for Scalable Synchronization on
 * Shared-Memory Multiprocessors, ACM TOCS 9 (1991). all_reduce by reduce-scatter and all-gather:
 * Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004; Thakur, Rabenseifner,
 * Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005). Chunk
 * queues in shared memory: Graham and Shipman, MPI Support for Multi-core Architectures,
 * EuroPVM/MPI 2008. Single copy by the kernel: Goglin and Moreaud, KNEM, JPDC 73 (2013), here with
 * process_vm_readv. */
#include "coll/algorithms.h"

#include "coll/eager.h"
#include "coll/inline.h"
#include "coll/pipeline.h"

/* Help texts of several rows. */
#define EAGER_HELP "packed in the giver's slot: 1 wait, 2 copies, up to 256 KiB a rank"
#define EAGER_EACH_HELP "packed in the giver's slot: 1 wait, 2 copies, up to 256 KiB a rank"
#define PIPELINE_HELP \
    "queues of chunks, or straight from buffers in the arena: written once, read once by each " \
    "who takes; any size"
#define PAIRS_HELP "counts compared by pairs, then queues of chunks; 2 waits; any size"
#define DIRECT_HELP "private memory is read where it lies, written once; else as pipelined"

const struct algorithm algorithm_table[] = {
    /* The ranks agree whether each can make an operation of the caller's: the result is the largest
     * errno. No rule chooses this row. */
    [ALGORITHM_OP_CREATE] = { .name = "inline",
                              .kind = KIND_OP_CREATE,
                              .most = INLINE_BYTES,
                              .advance = coll_one_phase,
                              .before = inline_put,
                              .after = inline_fold,
                              .help = "an all_reduce of one number" },

    /* Barrier. Its choice is also the gate of every one-phase row. */
    [ALGORITHM_BARRIER_FLAGS] = { .name = "flags",
                                  .kind = KIND_BARRIER,
                                  .most = SIZE_MAX,
                                  .advance = barrier_flags_advance,
                                  .before = coll_nothing,
                                  .after = coll_nothing,
                                  .help =
                                      "one line a rank, read by all: 1 hop, N-1 line transfers" },
    { .name = "central",
      .kind = KIND_BARRIER,
      .most = SIZE_MAX,
      .advance = barrier_central_advance,
      .before = coll_nothing,
      .after = coll_nothing,
      .help = "one counter, one sense word: N atomic adds, for more ranks than CPUs" },

    /* Broadcast. Small: the root's arrival carries the payload or its place. Large: C(k) asks for
     * the arrival of all ranks and for the root's last chunk. After that no rank needs the root. */
    { .name = "inline",
      .kind = KIND_BROADCAST,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take,
      .help = "payload in the root's arrival line: up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_BROADCAST,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take,
      .help = "through the root's slot: 1 wait, 2 copies, up to 256 KiB" },
    { .name = "pipelined",
      .kind = KIND_BROADCAST,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "the root's queue of chunks: written once, read once by each; any size" },
    { .name = "direct",
      .kind = KIND_BROADCAST,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* Reduce: as all_reduce, but only the root folds, or copies the result out. All ranks wait for
     * all, so that all or none holds. */
    { .name = "inline",
      .kind = KIND_REDUCE,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put,
      .after = inline_fold_at_root,
      .help = "payload in the arrival line, the root folds: up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_REDUCE,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_to_root,
      .after = eager_fold_at_root,
      .help = "a slot a rank, the root folds all: 1 wait, up to 256 KiB" },
    { .name = "pipelined",
      .kind = KIND_REDUCE,
      .most = SIZE_MAX,
      .advance = pipeline_reduce_advance,
      .help = "queues of chunks: each rank folds 1/N of it, the root collects; any size" },
    { .name = "direct",
      .kind = KIND_REDUCE,
      .most = SIZE_MAX,
      .advance = pipeline_reduce_advance,
      .direct = true,
      .help = DIRECT_HELP },
    /* Its result is written once, and no sum goes through a slot. It wins between two ranks, where
     * the root would fold half of it anyway. */
    { .name = "rooted",
      .kind = KIND_REDUCE,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "queues of chunks, the root folds all of it; any size" },

    /* All_reduce. Eager takes one wait, one copy in and N reads: it is the fastest for sizes that
     * fit the caches. Above that the pipeline does less work per rank. The lines stay unchanged
     * until the reader returns: their owner may store the operation after the next only when we
     * have arrived at the next. */
    [ALGORITHM_ALL_REDUCE_INLINE] = { .name = "inline",
                                      .kind = KIND_ALL_REDUCE,
                                      .most = INLINE_BYTES,
                                      .advance = coll_one_phase,
                                      .before = inline_put,
                                      .after = inline_fold,
                                      .help = "payload in the arrival line: the price of a "
                                              "barrier, up to 88 bytes" },
    [ALGORITHM_ALL_REDUCE_EAGER] = { .name = "eager",
                                     .kind = KIND_ALL_REDUCE,
                                     .most = EAGER_TWO_BYTES,
                                     .advance = coll_one_phase,
                                     .before = eager_put,
                                     .after = eager_fold,
                                     .help = "a slot a rank, everybody folds all: 1 wait, N reads, "
                                             "up to 256 KiB" },
    { .name = "pipelined",
      .kind = KIND_ALL_REDUCE,
      .most = SIZE_MAX,
      .advance = pipeline_all_reduce_advance,
      .help = "queues of chunks: each rank folds 1/N of it; pipelined, any size" },
    { .name = "direct",
      .kind = KIND_ALL_REDUCE,
      .most = SIZE_MAX,
      .advance = pipeline_all_reduce_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* All_reduce of several buffers: they count as one vector. All ranks have the same list of
     * counts, by fingerprint. */
    { .name = "eager",
      .kind = KIND_ALL_REDUCE_MANY,
      .most = EAGER_BYTES,
      .advance = coll_one_phase,
      .before = many_eager_before,
      .after = many_eager_after,
      .help = "all buffers in a slot a rank, everybody folds all: 1 wait, up to 64 KiB in all" },
    { .name = "pipelined",
      .kind = KIND_ALL_REDUCE_MANY,
      .most = SIZE_MAX,
      .advance = pipeline_all_reduce_advance,
      .help = "queues of chunks over all buffers: each rank folds 1/N of it; any size" },
    { .name = "direct",
      .kind = KIND_ALL_REDUCE_MANY,
      .most = SIZE_MAX,
      .advance = pipeline_all_reduce_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* Reduce_scatter: rank p folds block p of the buffers of all ranks, in rank order. In the _v
     * form all ranks have the same list of counts, by fingerprint, so each rank can compute where
     * its blocks begin. */
    { .name = "inline",
      .kind = KIND_REDUCE_SCATTER,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take_folded,
      .help = "all blocks in the arrival line, up to 88 bytes a rank: the price of a barrier" },
    { .name = "eager",
      .kind = KIND_REDUCE_SCATTER,
      .most = EAGER_EACH_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take_folded,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 256 KiB a "
              "rank" },
    { .name = "pipelined",
      .kind = KIND_REDUCE_SCATTER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "queues of chunks, each rank folds its own block; any size" },
    { .name = "direct",
      .kind = KIND_REDUCE_SCATTER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "eager",
      .kind = KIND_REDUCE_SCATTER_V,
      .most = EAGER_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_lists,
      .after = eager_take_lists,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a "
              "rank" },
    { .name = "pipelined",
      .kind = KIND_REDUCE_SCATTER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "queues of chunks, each rank folds its own block; any size" },
    { .name = "direct",
      .kind = KIND_REDUCE_SCATTER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* All_gather: each rank gives one block to all. In the _v form all ranks have the same list of
     * counts, by fingerprint. */
    { .name = "inline",
      .kind = KIND_ALL_GATHER,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take,
      .help = "a block in the arrival line, up to 88 bytes: the price of a barrier" },
    { .name = "eager",
      .kind = KIND_ALL_GATHER,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take,
      .help = EAGER_HELP },
    { .name = "pipelined",
      .kind = KIND_ALL_GATHER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct",
      .kind = KIND_ALL_GATHER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "eager",
      .kind = KIND_ALL_GATHER_V,
      .most = EAGER_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_lists,
      .after = eager_take_lists,
      .help = "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank" },
    { .name = "pipelined",
      .kind = KIND_ALL_GATHER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct",
      .kind = KIND_ALL_GATHER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* Gather: each rank gives one block to the root. All ranks wait for all, so that all or none
     * holds. */
    { .name = "inline",
      .kind = KIND_GATHER,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take,
      .help = "a block in the arrival line, the root reads: up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_GATHER,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take,
      .help = EAGER_HELP },
    { .name = "pipelined",
      .kind = KIND_GATHER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct",
      .kind = KIND_GATHER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "pipelined",
      .kind = KIND_GATHER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct",
      .kind = KIND_GATHER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = "counts compared by pairs; then " DIRECT_HELP },

    /* Scatter: the root gives a block to each rank. All ranks wait for all, so that all or none
       holds. */
    { .name = "inline",
      .kind = KIND_SCATTER,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take,
      .help = "all blocks in the root's arrival line, up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_SCATTER,
      .most = EAGER_EACH_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take,
      .help = EAGER_EACH_HELP },
    { .name = "pipelined",
      .kind = KIND_SCATTER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct",
      .kind = KIND_SCATTER,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "pipelined",
      .kind = KIND_SCATTER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct",
      .kind = KIND_SCATTER_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = "counts compared by pairs; then " DIRECT_HELP },

    /* All_to_all: each rank gives a block to each rank. */
    { .name = "inline",
      .kind = KIND_ALL_TO_ALL,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take,
      .help = "all blocks in the arrival line, up to 88 bytes a rank" },
    { .name = "eager",
      .kind = KIND_ALL_TO_ALL,
      .most = EAGER_EACH_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take,
      .help = EAGER_EACH_HELP },
    { .name = "pipelined",
      .kind = KIND_ALL_TO_ALL,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PIPELINE_HELP },
    { .name = "direct",
      .kind = KIND_ALL_TO_ALL,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "pipelined",
      .kind = KIND_ALL_TO_ALL_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = PAIRS_HELP },
    { .name = "direct",
      .kind = KIND_ALL_TO_ALL_V,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = "counts compared by pairs; then " DIRECT_HELP },

    /* Scan and exscan: rank r folds the blocks of ranks 0 … r, or … r - 1, in that order. Each
     * rank folds for itself: N (N + 1) / 2 reads of a block in all. A chain of partial results
     * would read less, but round half-precision values more than once. */
    { .name = "inline",
      .kind = KIND_SCAN,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_SCAN,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 256 KiB" },
    { .name = "pipelined",
      .kind = KIND_SCAN,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "queues of chunks, each folds those of the lower ranks; any size" },
    { .name = "direct",
      .kind = KIND_SCAN,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },
    { .name = "inline",
      .kind = KIND_EXSCAN,
      .most = INLINE_BYTES,
      .advance = coll_one_phase,
      .before = inline_put_parts,
      .after = inline_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "eager",
      .kind = KIND_EXSCAN,
      .most = EAGER_TWO_BYTES,
      .advance = coll_one_phase,
      .before = eager_put_parts,
      .after = eager_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 256 KiB" },
    { .name = "pipelined",
      .kind = KIND_EXSCAN,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .help = "queues of chunks, each folds those of the lower ranks; any size" },
    { .name = "direct",
      .kind = KIND_EXSCAN,
      .most = SIZE_MAX,
      .advance = pipeline_move_advance,
      .direct = true,
      .help = DIRECT_HELP },

    /* Same: do all ranks hold the same bytes? */
    { .name = "inline",
      .kind = KIND_SAME,
      .most = SIZE_MAX,
      .advance = coll_one_phase,
      .before = same_before,
      .after = same_after,
      .help = "a digest of 128 bits in the arrival line: the price of a barrier and of reading the "
              "bytes" },
    { .name = NULL }
};

const char *algorithm_name(uint32_t number)
{
    size_t rows = sizeof algorithm_table / sizeof *algorithm_table - 1;
    return number && number <= rows ? algorithm_table[number - 1].name : "?";
}
