/* Job: what torch's own process groups check of lists of tensors, and the words they refuse by:
 *      programs, and torch's tests, know an error by these.
 * Owns: nothing.
 * Never: a tensor's memory. */
#ifndef TORCH_LISTS_H
#define TORCH_LISTS_H

#include "torch/backend.h"

namespace tutti {

/* The tensors of one list have one layout, type, device and shape. */
void check_alike(const char *what, const Tensors &tensors, const at::Tensor &first);

/* Each has mine's type and as many elements. */
void check_as_many(const char *what, const Tensors &tensors, const at::Tensor &mine);

void check_root_tensor(const char *what, int64_t which, size_t tensors);

/* torch's lists have a tensor for each device of this process, of which there is one. */
void single(const char *what, const char *side, size_t n);

void as_many(const char *what, size_t outputs, size_t inputs);

/* The tensors for all ranks out of a list of lists; the one for this rank goes with `mine`. */
Tensors &row_of(const char *what, const char *side, Lists &lists, const at::Tensor &mine,
                size_t ranks, int rank);
}

#endif
