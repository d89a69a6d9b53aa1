/* Job: what a tensor is to the library: an address, a count, a type, the stream of its device.
 * Owns: the copies of tensors that do not lie in one piece, until the end of their operation.
 * Never: a decision about ranks. */
#ifndef TORCH_TENSORS_H
#define TORCH_TENSORS_H

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "tutti.h"

namespace tutti {

/* what the operation does with a tensor: reads it, fills it, or both */
enum class Way { IN, OUT, BOTH };

/* What an operation has in use until its end. `back`: the caller's tensor and our copy of it, which
 * is written back at the end: on a device in the stream that was current at the beginning, behind
 * what that had to do with the tensor, whatever thread it is then. */
struct Held {
    c10::SmallVector<at::Tensor, 4> tensors;
    std::vector<std::pair<at::Tensor, at::Tensor>> back;
    std::optional<c10::Stream> stream;
    /* refuses what cannot be written */
    void put_back(const char *what, const at::Tensor &theirs, const at::Tensor &ours);
    void write_back();
};

/* Refuses, with the reason, a tensor whose elements are not all that it is, or do not lie
 * in memory. */
void check_kind(const char *what, const at::Tensor &);

/* A list of tensors as one side of a call: one type, one device. A tensor's elements are taken in
 * the order of its indices, whatever its strides: one that does not lie in one piece in that order,
 * or is a lazy conjugate, negative or zero, goes by a copy. So ranks may have different strides.
 * All tensors of all operations come by here. */
struct Side {
    c10::SmallVector<void *, 8> at;
    c10::SmallVector<size_t, 8> counts; /* of `type` */
    tutti_type type = TUTTI_U8;
    at::ScalarType scalar = at::kByte;
    c10::Device device{ c10::kCPU };

    Side(const char *what, c10::ArrayRef<at::Tensor> tensors, Way way, Held &held);
    size_t count() const { return counts.empty() ? 0 : counts[0]; }
    void *data() const { return at.empty() ? nullptr : at[0]; }
    size_t bytes() const;
};

/* Both sides of a call have one type and one device; which they are. */
const Side &side_same(const char *what, const Side &send, const Side &recv);


/* The number of an operation for this type. Refuses those that are none, with those that are. */
tutti_op op_of(const char *what, const c10d::ReduceOp &op);

/* Refuses a type that the library has no arithmetic for; half-complex numbers are halves. */
void side_arithmetic(const char *what, Side &side, const c10d::ReduceOp &op);

/* PREMUL_SUM's factor as one element of the type; undefined for every other operation. */
at::Tensor factor_of(const c10d::ReduceOp &op, const Side &side);

/* The native handle of the current stream of a CUDA device in this thread; null for the host. */
void *stream_of(c10::Device device);

}

#endif
