/* Texts for stamps: only reports use them, so nothing here is on the path of an operation. */
#include "watch/fingerprint.h"

#include "fold/fold.h"

const struct kind_traits kind_table[KIND_COUNT] = {
    [KIND_NONE] = { .name = "nothing yet" },
    [KIND_BARRIER] = { .name = "barrier", .collective = true },
    [KIND_BROADCAST] = { .name = "broadcast", .collective = true, .data = true, .rooted = true },
    [KIND_REDUCE] = { .name = "reduce", .collective = true, .data = true, .reduces = true,
                      .rooted = true },
    [KIND_ALL_REDUCE] = { .name = "all_reduce", .collective = true, .data = true, .reduces = true },
    [KIND_ALL_REDUCE_MANY] = { .name = "all_reduce_many", .collective = true, .data = true,
                               .reduces = true, .lists = true },
    [KIND_REDUCE_SCATTER] = { .name = "reduce_scatter", .collective = true, .data = true,
                              .reduces = true },
    [KIND_ALL_GATHER] = { .name = "all_gather", .collective = true, .data = true },
    [KIND_GATHER] = { .name = "gather", .collective = true, .data = true, .rooted = true },
    [KIND_SCATTER] = { .name = "scatter", .collective = true, .data = true, .rooted = true },
    [KIND_ALL_TO_ALL] = { .name = "all_to_all", .collective = true, .data = true },
    [KIND_SCAN] = { .name = "scan", .collective = true, .data = true, .reduces = true },
    [KIND_EXSCAN] = { .name = "exscan", .collective = true, .data = true, .reduces = true },
    [KIND_REDUCE_SCATTER_V] = { .name = "reduce_scatter_v", .collective = true, .data = true,
                                .reduces = true, .lists = true },
    [KIND_ALL_GATHER_V] = { .name = "all_gather_v", .collective = true, .data = true,
                            .lists = true },
    [KIND_GATHER_V] = { .name = "gather_v", .collective = true, .data = true, .rooted = true,
                        .pairs = true },
    [KIND_SCATTER_V] = { .name = "scatter_v", .collective = true, .data = true, .rooted = true,
                         .pairs = true },
    [KIND_ALL_TO_ALL_V] = { .name = "all_to_all_v", .collective = true, .data = true,
                            .pairs = true },
    [KIND_SAME] = { .name = "same", .collective = true },
    [KIND_LOAD] = { .name = "load", .collective = true },
    [KIND_SAVE] = { .name = "save", .collective = true },
    [KIND_OP_CREATE] = { .name = "op_create", .collective = true },
    [KIND_SPLIT] = { .name = "comm_split", .collective = true },
    [KIND_SPLIT_END] = { .name = "comm_split", .collective = true },
    [KIND_CREATE] = { .name = "comm_create", .collective = true },
    [KIND_SHRINK] = { .name = "comm_shrink" },
    [KIND_AGREE] = { .name = "comm_agree" },
    [KIND_ONCE] = { .name = "once" },
    [KIND_FIRST_BEGIN] = { .name = "first_begin" },
    [KIND_FIRST_END] = { .name = "first_end" },
    [KIND_TURN_BEGIN] = { .name = "turn_begin" },
    [KIND_TURN_END] = { .name = "turn_end" },
    [KIND_SEND] = { .name = "send", .data = true },
    [KIND_RECV] = { .name = "recv", .data = true },
    [KIND_PROBE] = { .name = "probe" },
    [KIND_SET] = { .name = "set" },
    [KIND_GET] = { .name = "get" },
    [KIND_ADD] = { .name = "add" },
    [KIND_COMPARE_SET] = { .name = "compare_set" },
    [KIND_DELETE] = { .name = "delete" },
    [KIND_WAIT] = { .name = "wait" },
    [KIND_ABORT] = { .name = "comm_abort" },
    [KIND_FINALIZE] = { .name = "finalize" },
    [KIND_FREE] = { .name = "comm_free" },
    [KIND_QUEUE_CREATE] = { .name = "queue_create", .collective = true },
    [KIND_QUEUE_PUT] = { .name = "queue_put" },
    [KIND_QUEUE_GET] = { .name = "queue_get" },
    [KIND_QUEUE_LOOK] = { .name = "queue_look" },
};

const char *kind_name(enum kind kind)
{
    return (unsigned)kind < KIND_COUNT ? kind_table[kind].name : "?";
}

bool kind_collective(enum kind kind)
{
    return (unsigned)kind < KIND_COUNT && kind_table[kind].collective;
}

bool kind_data(enum kind kind)
{
    return (unsigned)kind < KIND_COUNT && kind_table[kind].data && !kind_table[kind].lists
        && !kind_table[kind].pairs;
}

bool kind_reduces(enum kind kind)
{
    return (unsigned)kind < KIND_COUNT && kind_table[kind].reduces;
}

void fingerprint_add(struct text *t, uint64_t stamp, uint64_t count)
{
    enum kind kind = fingerprint_kind(stamp);
    text_add(t, "%s", kind_name(kind));
    if ((unsigned)kind >= KIND_COUNT || !kind_table[kind].data)
        return;
    text_add(t, " %s", fold_type_name((tutti_type)fingerprint_type(stamp)));
    if (kind_table[kind].reduces)
        text_add(t, " %s", fold_op_name((tutti_op)fingerprint_op(stamp)));
    if (kind_table[kind].lists)
        text_add(t, " of counts #%07llx", (unsigned long long)(stamp & (STAMP_HASHED - 1)));
    else if (!kind_table[kind].pairs)
        text_add(t, " %llu",
                 (unsigned long long)(fingerprint_hashed(stamp) ? count
                                                                : stamp & (STAMP_HASHED - 1)));
    if (kind_table[kind].rooted)
        text_add(t, " root %d", fingerprint_root(stamp));
}
