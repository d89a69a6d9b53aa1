/* Job: check lists of tensors as torch's own process groups do, and refuse in their words:
 *      programs, and torch's tests, recognise an error by these words.
 * Owns: nothing.
 * Never: touches a tensor's memory. */
#ifndef TORCH_LISTS_H
#define TORCH_LISTS_H

#include "torch/backend.h"

namespace tutti {

/* All tensors of a list must have one layout, type, device and shape. */
void check_alike(const char *what, const Tensors &tensors, const at::Tensor &first);

/* Each tensor must have mine's type and number of elements. */
void check_as_many(const char *what, const Tensors &tensors, const at::Tensor &mine);

void check_root_tensor(const char *what, int64_t which, size_t tensors);

/* torch's lists have a tensor for each device of this process. A process has one device. */
void single(const char *what, const char *side, size_t n);

void as_many(const char *what, size_t outputs, size_t inputs);

/* Returns the tensors for all ranks from a list of lists. The one for this rank must fit `mine`. */
Tensors &row_of(const char *what, const char *side, Lists &lists, const at::Tensor &mine,
                size_t ranks, int rank);
}

#endif
