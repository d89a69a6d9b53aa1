/* Job: describe a tensor to the library: an address, a count, a type, the stream of its device.
 * Owns: the copies of tensors that are not in one piece, until the end of their operation.
 * Never: decides by ranks. */
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

/* What an operation uses until its end. `back`: the caller's tensor, and our copy, which is written
 * back to it at the end. On a device this runs in the stream that was current at the beginning, so
 * after that stream's earlier work, whichever thread does it. */
struct Held {
    c10::SmallVector<at::Tensor, 4> tensors;
    std::vector<std::pair<at::Tensor, at::Tensor>> back;
    std::optional<c10::Stream> stream;
    /* refuses a tensor that cannot be written */
    void put_back(const char *what, const at::Tensor &theirs, const at::Tensor &ours);
    void write_back();
};

/* Refuses, with the reason, a tensor that has more than its elements, has another layout than
 * strided, or is on a device other than the CPU and CUDA. */
void check_kind(const char *what, const at::Tensor &);

/* The same tensors with copies on the host in place of those of CUDA, which are read behind what is
 * in the current stream; a result is written back at the end. */
std::vector<at::Tensor> on_host(const char *what, c10::ArrayRef<at::Tensor>, Way, Held &);

/* A list of tensors as one side of a call: one type, one device. A tensor's elements are taken in
 * the order of its indices. So ranks may have different strides. A tensor that is not in one piece
 * in that order, or is a lazy conjugate, negative or zero, is replaced by a copy. All tensors of
 * all operations pass through a Side. */
struct Side {
    c10::SmallVector<void *, 8> at;
    c10::SmallVector<size_t, 8> counts; /* in elements of `type` */
    tutti_type type = TUTTI_U8;
    at::ScalarType scalar = at::kByte;
    c10::Device device{ c10::kCPU };

    Side(const char *what, c10::ArrayRef<at::Tensor> tensors, Way way, Held &held);
    size_t count() const { return counts.empty() ? 0 : counts[0]; }
    void *data() const { return at.empty() ? nullptr : at[0]; }
    size_t bytes() const;
};

/* Checks that both sides of a call have one type and one device. Returns a side that has them. */
const Side &side_same(const char *what, const Side &send, const Side &recv);


/* The library's operation for torch's. Refuses an unknown one; the message lists the known ones. */
tutti_op op_of(const char *what, const c10d::ReduceOp &op);

/* Refuses a type for which the library has no arithmetic. Half-complex numbers become halves. */
void side_arithmetic(const char *what, Side &side, const c10d::ReduceOp &op);

/* PREMUL_SUM's factor as one element of the type; undefined for every other operation. */
at::Tensor factor_of(const c10d::ReduceOp &op, const Side &side);

/* The native handle of the current stream of a CUDA device in this thread; null for the host. */
void *stream_of(c10::Device device);

}

#endif
