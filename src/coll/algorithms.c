/* Each row is one algorithm: a collective, and how its bytes travel. What a rank gives to whom is the kind's (parts.h); how it travels is
 * one of four ways, each written once, for all kinds that can go by it:
 *
 *   line   inline payload: the bytes stand in the cache line of the arrival flag itself, so that a scalar moves the same lines as a
 *          barrier. line.c
 *   flat   eager copy: into the sender's own staging slot before it arrives; whoever takes reads it there, after one wait. Where the
 *          sender's buffer lies in the arena it is read in place. flat.c; of several buffers many.c
 *   ring   pipelined chunks through a queue of slots a rank, or straight from buffers in the arena. What moves blocks: ring_move.c.
 *          All_reduce and reduce are a reduce-scatter and an all-gather over it: ring_reduce.c. Slots, and who may write them: ring.c
 *   pull   single copy: as ring, but private memory of a peer is read where it lies, by process_vm_readv. cma.c
 *
 * All folds are in rank order, so that every way comes to the same bits. The barriers have two ways of their own:
 *
 *   flags    all-to-all notification: each rank stores its own flag and reads everybody's. barrier_flags.c
 *   central  the central sense-reversing barrier. barrier_central.c */
#include "coll/algorithms.h"

#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

/* What several rows say of themselves. */
#define FLAT_HELP "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
#define RING_HELP "rings of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
#define PAIRS_HELP "counts compared by pairs, then rings of chunks; 2 waits; any size"
#define PULL_HELP "private memory is read where it lies, written once; else as ring"

const struct algorithm algorithm_table[] = {
    /* The ranks' say on whether they can make an operation of the caller's: the largest errno. No rule chooses it. */
    [ALGORITHM_OP_CREATE] = { .name = "line", .kind = KIND_OP_CREATE, .most = LINE_BYTES,
      .advance = coll_one_phase, .before = line_put, .after = line_fold,
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
    { .name = "line", .kind = KIND_BROADCAST, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take,
      .help = "payload in the root's arrival line: up to 88 bytes" },
    { .name = "flat", .kind = KIND_BROADCAST, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take,
      .help = "through the root's slot: 1 wait, 2 copies, up to 64 KiB" },
    { .name = "ring", .kind = KIND_BROADCAST, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = "the root's ring of chunks: written once, read once by each; any size" },
    { .name = "pull", .kind = KIND_BROADCAST, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },

    /* Reduce: as all_reduce, but only the root folds, or copies the result out. All wait for all, so that all or none holds. */
    { .name = "line", .kind = KIND_REDUCE, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put, .after = line_fold_at_root,
      .help = "payload in the arrival line, the root folds: up to 88 bytes" },
    { .name = "flat", .kind = KIND_REDUCE, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_to_root, .after = flat_fold_at_root,
      .help = "a slot a rank, the root folds all: 1 wait, up to 64 KiB" },
    { .name = "ring", .kind = KIND_REDUCE, .most = SIZE_MAX, .advance = ring_reduce_advance,
      .help = "rings of chunks: each rank folds 1/N of it, the root collects; any size" },
    { .name = "pull", .kind = KIND_REDUCE, .most = SIZE_MAX, .advance = ring_reduce_advance,
      .pulls = true, .help = PULL_HELP },

    /* All_reduce. By flat one wait, one copy in, N reads: the fastest for what fits the caches; above that the ring does less
     * work per rank. The lines stay as they are until the reader returns: their owner may not store the operation after the
     * next before we have arrived at the next. */
    [ALGORITHM_ALL_REDUCE_LINE] = { .name = "line", .kind = KIND_ALL_REDUCE, .most = LINE_BYTES,
      .advance = coll_one_phase, .before = line_put, .after = line_fold,
      .help = "payload in the arrival line: the price of a barrier, up to 88 bytes" },
    [ALGORITHM_ALL_REDUCE_FLAT] = { .name = "flat", .kind = KIND_ALL_REDUCE, .most = FLAT_BYTES,
      .advance = coll_one_phase, .before = flat_put, .after = flat_fold,
      .help = "a slot a rank, everybody folds all: 1 wait, N reads, up to 64 KiB" },
    { .name = "ring", .kind = KIND_ALL_REDUCE, .most = SIZE_MAX, .advance = ring_all_reduce_advance,
      .help = "rings of chunks: each rank folds 1/N of it; pipelined, any size" },
    { .name = "pull", .kind = KIND_ALL_REDUCE, .most = SIZE_MAX, .advance = ring_all_reduce_advance,
      .pulls = true, .help = PULL_HELP },

    /* All_reduce of several buffers: they are one vector. The counts are the same list on all ranks, by fingerprint. */
    { .name = "flat", .kind = KIND_ALL_REDUCE_MANY, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = many_flat_before, .after = many_flat_after,
      .help = "all buffers in a slot a rank, everybody folds all: 1 wait, up to 64 KiB in all" },
    { .name = "ring", .kind = KIND_ALL_REDUCE_MANY, .most = SIZE_MAX, .advance = ring_all_reduce_advance,
      .help = "rings of chunks over all buffers: each rank folds 1/N of it; any size" },
    { .name = "pull", .kind = KIND_ALL_REDUCE_MANY, .most = SIZE_MAX, .advance = ring_all_reduce_advance,
      .pulls = true, .help = PULL_HELP },

    /* Reduce_scatter: rank p folds block p of everybody's buffer, in rank order. The counts of the _v form are the same list
     * on all ranks, by fingerprint, so every rank knows where its blocks begin. */
    { .name = "line", .kind = KIND_REDUCE_SCATTER, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take_folded,
      .help = "all blocks in the arrival line, up to 88 bytes a rank: the price of a barrier" },
    { .name = "flat", .kind = KIND_REDUCE_SCATTER, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take_folded,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank" },
    { .name = "ring", .kind = KIND_REDUCE_SCATTER, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = "rings of chunks, each rank folds its own block; any size" },
    { .name = "pull", .kind = KIND_REDUCE_SCATTER, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "flat", .kind = KIND_REDUCE_SCATTER_V, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_lists, .after = flat_take_lists,
      .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank" },
    { .name = "ring", .kind = KIND_REDUCE_SCATTER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = "rings of chunks, each rank folds its own block; any size" },
    { .name = "pull", .kind = KIND_REDUCE_SCATTER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },

    /* All_gather: each rank gives one block to all. The counts of the _v form are the same list on all ranks, by fingerprint. */
    { .name = "line", .kind = KIND_ALL_GATHER, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take,
      .help = "a block in the arrival line, up to 88 bytes: the price of a barrier" },
    { .name = "flat", .kind = KIND_ALL_GATHER, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take, .help = FLAT_HELP },
    { .name = "ring", .kind = KIND_ALL_GATHER, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = RING_HELP },
    { .name = "pull", .kind = KIND_ALL_GATHER, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "flat", .kind = KIND_ALL_GATHER_V, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_lists, .after = flat_take_lists, .help = FLAT_HELP },
    { .name = "ring", .kind = KIND_ALL_GATHER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = RING_HELP },
    { .name = "pull", .kind = KIND_ALL_GATHER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },

    /* Gather: each rank gives one block to the root. All wait for all, so that all or none holds. */
    { .name = "line", .kind = KIND_GATHER, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take,
      .help = "a block in the arrival line, the root reads: up to 88 bytes" },
    { .name = "flat", .kind = KIND_GATHER, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take, .help = FLAT_HELP },
    { .name = "ring", .kind = KIND_GATHER, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = RING_HELP },
    { .name = "pull", .kind = KIND_GATHER, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "ring", .kind = KIND_GATHER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = PAIRS_HELP },
    { .name = "pull", .kind = KIND_GATHER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = "counts compared by pairs; then " PULL_HELP },

    /* Scatter: the root gives a block to each rank. All wait for all, so that all or none holds. */
    { .name = "line", .kind = KIND_SCATTER, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take,
      .help = "all blocks in the root's arrival line, up to 88 bytes" },
    { .name = "flat", .kind = KIND_SCATTER, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take, .help = FLAT_HELP },
    { .name = "ring", .kind = KIND_SCATTER, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = RING_HELP },
    { .name = "pull", .kind = KIND_SCATTER, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "ring", .kind = KIND_SCATTER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = PAIRS_HELP },
    { .name = "pull", .kind = KIND_SCATTER_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = "counts compared by pairs; then " PULL_HELP },

    /* All_to_all: each rank gives a block to each rank. */
    { .name = "line", .kind = KIND_ALL_TO_ALL, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take,
      .help = "all blocks in the arrival line, up to 88 bytes a rank" },
    { .name = "flat", .kind = KIND_ALL_TO_ALL, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take, .help = FLAT_HELP },
    { .name = "ring", .kind = KIND_ALL_TO_ALL, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = RING_HELP },
    { .name = "pull", .kind = KIND_ALL_TO_ALL, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "ring", .kind = KIND_ALL_TO_ALL_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = PAIRS_HELP },
    { .name = "pull", .kind = KIND_ALL_TO_ALL_V, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = "counts compared by pairs; then " PULL_HELP },

    /* Scan and exscan: rank r folds the blocks of ranks 0 … r, or … r - 1, in that order. Each folds for itself:
     * N (N + 1) / 2 reads of a block in all; passing partial results on would read less and round halves more than once. */
    { .name = "line", .kind = KIND_SCAN, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "flat", .kind = KIND_SCAN, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB" },
    { .name = "ring", .kind = KIND_SCAN, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = "rings of chunks, each folds those of the lower ranks; any size" },
    { .name = "pull", .kind = KIND_SCAN, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },
    { .name = "line", .kind = KIND_EXSCAN, .most = LINE_BYTES, .advance = coll_one_phase,
      .before = line_put_parts, .after = line_take_folded,
      .help = "payload in the arrival line: up to 88 bytes" },
    { .name = "flat", .kind = KIND_EXSCAN, .most = FLAT_BYTES, .advance = coll_one_phase,
      .before = flat_put_parts, .after = flat_take_folded,
      .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB" },
    { .name = "ring", .kind = KIND_EXSCAN, .most = SIZE_MAX, .advance = ring_move_advance,
      .help = "rings of chunks, each folds those of the lower ranks; any size" },
    { .name = "pull", .kind = KIND_EXSCAN, .most = SIZE_MAX, .advance = ring_move_advance,
      .pulls = true, .help = PULL_HELP },

    /* Same: do all ranks hold the same bytes? */
    { .name = "line", .kind = KIND_SAME, .most = SIZE_MAX, .advance = coll_one_phase,
      .before = same_before, .after = same_after,
      .help = "a digest of 128 bits in the arrival line: the price of a barrier and of reading the bytes" },
    { .name = NULL }
};
