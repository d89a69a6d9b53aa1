/* Texts for stamps: only reports use them, so nothing here is on the path of an operation. */
#include "watch/fingerprint.h"

#include "fold/fold.h"

const struct kind_traits kind_table[KIND_COUNT] = {
    [KIND_NONE] = { "nothing yet", false, false, false, false, false, false },
    [KIND_BARRIER] = { "barrier", true, false, false, false, false, false },
    [KIND_BROADCAST] = { "broadcast", true, true, false, true, false, false },
    [KIND_REDUCE] = { "reduce", true, true, true, true, false, false },
    [KIND_ALL_REDUCE] = { "all_reduce", true, true, true, false, false, false },
    [KIND_ALL_REDUCE_MANY] = { "all_reduce_many", true, true, true, false, true, false },
    [KIND_REDUCE_SCATTER] = { "reduce_scatter", true, true, true, false, false, false },
    [KIND_ALL_GATHER] = { "all_gather", true, true, false, false, false, false },
    [KIND_GATHER] = { "gather", true, true, false, true, false, false },
    [KIND_SCATTER] = { "scatter", true, true, false, true, false, false },
    [KIND_ALL_TO_ALL] = { "all_to_all", true, true, false, false, false, false },
    [KIND_SCAN] = { "scan", true, true, true, false, false, false },
    [KIND_EXSCAN] = { "exscan", true, true, true, false, false, false },
    [KIND_REDUCE_SCATTER_V] = { "reduce_scatter_v", true, true, true, false, true, false },
    [KIND_ALL_GATHER_V] = { "all_gather_v", true, true, false, false, true, false },
    [KIND_GATHER_V] = { "gather_v", true, true, false, true, false, true },
    [KIND_SCATTER_V] = { "scatter_v", true, true, false, true, false, true },
    [KIND_ALL_TO_ALL_V] = { "all_to_all_v", true, true, false, false, false, true },
    [KIND_SAME] = { "same", true, false, false, false, false, false },
    [KIND_LOAD] = { "load", true, false, false, false, false, false },
    [KIND_SAVE] = { "save", true, false, false, false, false, false },
    [KIND_OP_CREATE] = { "op_create", true, false, false, false, false, false },
    [KIND_SPLIT] = { "comm_split", true, false, false, false, false, false },
    [KIND_SPLIT_END] = { "comm_split", true, false, false, false, false, false },
    [KIND_CREATE] = { "comm_create", true, false, false, false, false, false },
    [KIND_SHRINK] = { "comm_shrink", false, false, false, false, false, false },
    [KIND_AGREE] = { "comm_agree", false, false, false, false, false, false },
    [KIND_ONCE] = { "once", false, false, false, false, false, false },
    [KIND_FIRST_BEGIN] = { "first_begin", false, false, false, false, false, false },
    [KIND_FIRST_END] = { "first_end", false, false, false, false, false, false },
    [KIND_TURN_BEGIN] = { "turn_begin", false, false, false, false, false, false },
    [KIND_TURN_END] = { "turn_end", false, false, false, false, false, false },
    [KIND_SEND] = { "send", false, true, false, false, false, false },
    [KIND_RECV] = { "recv", false, true, false, false, false, false },
    [KIND_PROBE] = { "probe", false, false, false, false, false, false },
    [KIND_SET] = { "set", false, false, false, false, false, false },
    [KIND_GET] = { "get", false, false, false, false, false, false },
    [KIND_ADD] = { "add", false, false, false, false, false, false },
    [KIND_COMPARE_SET] = { "compare_set", false, false, false, false, false, false },
    [KIND_DELETE] = { "delete", false, false, false, false, false, false },
    [KIND_WAIT] = { "wait", false, false, false, false, false, false },
    [KIND_ABORT] = { "comm_abort", false, false, false, false, false, false },
    [KIND_FINALIZE] = { "finalize", false, false, false, false, false, false },
    [KIND_FREE] = { "comm_free", false, false, false, false, false, false },
    [KIND_QUEUE_CREATE] = { "queue_create", true, false, false, false, false, false },
    [KIND_QUEUE_PUT] = { "queue_put", false, false, false, false, false, false },
    [KIND_QUEUE_GET] = { "queue_get", false, false, false, false, false, false },
    [KIND_QUEUE_LOOK] = { "queue_look", false, false, false, false, false, false },
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
