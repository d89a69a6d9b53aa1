/* Line: up to 88 bytes travel in the arrival line itself, so a scalar all_reduce moves the same cache lines as a barrier, and everybody
 * folds everything from there. The lines stay as they are until the reader returns: their owner may not store the operation after the
 * next before we have arrived at the next. */
#include "coll/line.h"

const struct algorithm all_reduce_line = {
    "line", KIND_ALL_REDUCE, LINE_BYTES, coll_one_phase, line_put, line_fold, .help = "payload in the arrival line: the price of a barrier, up to 88 bytes"
};

/* The ranks' say on whether they can make an operation of the caller's: the largest errno. */
const struct algorithm op_create_line = {
    "line", KIND_OP_CREATE, LINE_BYTES, coll_one_phase, line_put, line_fold, .help = "an all_reduce of one number"
};
