/* The library sees only addresses. So all that a tensor may be besides dense memory is treated
 * here: strides, lazy conjugates and negatives, layouts, devices, types. The guard that torch
 * registers for a device gives its stream. So no header of CUDA is needed, and one build fits both
 * kinds of torch. Cost: for a dense tensor its checks; for another one a copy in, a copy out, or
 * both. */
#include "torch/tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "torch/failure.h"

namespace tutti {

static const int NO_TYPE = -1;

static int type_number(at::ScalarType scalar)
{
    switch (scalar) {
    case at::kChar: return TUTTI_I8;
    case at::kByte: return TUTTI_U8;
    case at::kShort: return TUTTI_I16;
    case at::kUInt16: return TUTTI_U16;
    case at::kInt: return TUTTI_I32;
    case at::kUInt32: return TUTTI_U32;
    case at::kLong: return TUTTI_I64;
    case at::kUInt64: return TUTTI_U64;
    case at::kHalf: return TUTTI_F16;
    case at::kBFloat16: return TUTTI_BF16;
    case at::kFloat: return TUTTI_F32;
    case at::kDouble: return TUTTI_F64;
    case at::kBool: return TUTTI_BOOL;
    case at::kComplexFloat: return TUTTI_C64;
    case at::kComplexDouble: return TUTTI_C128;
    case at::kFloat8_e4m3fn: return TUTTI_F8E4M3;
    case at::kFloat8_e5m2: return TUTTI_F8E5M2;
    default: return NO_TYPE;
    }
}

static bool lies_plainly(const at::Tensor &t)
{
    return !t.is_conj() && !t.is_neg() && !t._is_zerotensor() && t.is_contiguous();
}

void check_kind(const char *what, const at::Tensor &t)
{
    if (!t.defined())
        refuse(what, "a tensor is undefined");
    if (t.is_nested())
        refuse(what,
               "a tensor is nested: its edges would stay behind: give its values() and its "
               "offsets(), each by itself");
    if (t.is_quantized())
        refuse(what,
               "a tensor is quantized: its scale and zero point would stay behind: give its "
               "int_repr(), and them beside it");
    if (t.layout() != c10::kStrided)
        refuse(what,
               c10::str("unsupported layout ", t.layout(), ": give a dense tensor, by to_dense()",
                        t.is_sparse() ? "; all_reduce with SUM takes sparse ones, too" : ""));
    if (!t.is_cpu() && !t.is_cuda())
        refuse(what,
               c10::str("unsupported device type ", t.device().type(),
                        ": give tensors of the CPU or of CUDA"));
}

/* True: two elements share memory. Mostly the strides show it: each stride is larger than the reach
 * of all smaller ones. If not, every place is checked. */
static bool overlaps_itself(const at::Tensor &t)
{
    std::vector<std::pair<int64_t, int64_t>> axes;      /* stride, edge */
    for (int64_t i = 0; i < t.dim(); i++)
        if (t.size(i) > 1)
            axes.emplace_back(t.stride(i), t.size(i));
    std::sort(axes.begin(), axes.end());
    int64_t reach = 0;
    bool clear = true;
    for (auto &[stride, edge] : axes) {
        clear = clear && stride > reach;
        reach += stride * (edge - 1);
    }
    if (clear || t.numel() < 2)
        return false;
    if (reach + 1 < t.numel())
        return true;
    std::vector<bool> taken((size_t)reach + 1);
    std::vector<int64_t> index(axes.size());
    for (int64_t at = 0;;) {
        if (taken[(size_t)at])
            return true;
        taken[(size_t)at] = true;
        size_t i = 0;
        for (; i < axes.size() && ++index[i] == axes[i].second; i++) {
            at -= axes[i].first * (index[i] - 1);
            index[i] = 0;
        }
        if (i == axes.size())
            return false;
        at += axes[i].first;
    }
}

static at::Tensor plain_copy(const at::Tensor &t)
{
    at::Tensor copy =
        (t._is_zerotensor() ? t.clone() : t).resolve_conj().resolve_neg().contiguous();
    return copy.is_alias_of(t) ? copy.clone(at::MemoryFormat::Contiguous) : copy;
}

/* The copy that replaces a tensor whose elements are not in plain order in memory. */
static at::Tensor stand_in(const char *what, const at::Tensor &t, Way way, Held &held)
{
    if (way == Way::IN)
        return plain_copy(t);
    at::Tensor copy = way == Way::BOTH
        ? plain_copy(t)
        : at::empty(t.sizes(), t.options().memory_format(at::MemoryFormat::Contiguous));
    held.put_back(what, t, copy);
    return copy;
}

/* The library refuses results that share memory, but it sees only the copies. So if there are
 * copies, the tensors are checked here: a dense one, in any order, by its whole range, another one
 * by its first byte. */
static void check_apart(const char *what, c10::ArrayRef<at::Tensor> tensors)
{
    std::vector<std::pair<const char *, const char *>> all;
    for (const at::Tensor &t : tensors)
        if (t.numel()) {
            const char *begin = (const char *)t.const_data_ptr();
            all.emplace_back(begin, begin + (t.is_non_overlapping_and_dense() ? t.nbytes() : 1));
        }
    std::sort(all.begin(), all.end());
    for (size_t i = 1; i < all.size(); i++)
        if (all[i].first < all[i - 1].second)
            refuse(what, "two result tensors share memory: give each its own");
}

Side::Side(const char *what, c10::ArrayRef<at::Tensor> tensors, Way way, Held &held)
{
    bool first = true, copied = false;
    for (const at::Tensor &given : tensors) {
        check_kind(what, given);
        bool plain = lies_plainly(given);
        at::Tensor t = plain ? given : stand_in(what, given, way, held);
        copied = copied || !plain;
        if (first) {
            scalar = t.scalar_type();
            device = t.device();
            int number = type_number(scalar);
            type = number == NO_TYPE ? TUTTI_U8 : (tutti_type)number;
        } else if (t.scalar_type() != scalar)
            refuse(what,
                   c10::str("invalid tensor type: tensors must all have the same type; there are ",
                            scalar, " and ", t.scalar_type()));
        else if (t.device() != device)
            refuse(what,
                   c10::str("invalid tensor device: tensors must all be on the same device; there "
                            "are ",
                            device, " and ", t.device()));
        first = false;
        at.push_back(!t.numel() ? nullptr
                         : way == Way::IN ? const_cast<void *>(t.const_data_ptr())
                         : t.mutable_data_ptr());
        if (t.numel() && !at.back())
            refuse(what,
                   "a tensor has no memory: it is a fake one, or its storage was resized to "
                   "nothing");
        counts.push_back((size_t)t.numel()
                         * (type_number(scalar) == NO_TYPE ? t.element_size() : 1));
        held.tensors.push_back(std::move(t));
    }
    if (copied && way != Way::IN && tensors.size() > 1)
        check_apart(what, tensors);
}

size_t Side::bytes() const
{
    size_t sum = 0;
    for (size_t n : counts)
        sum += n;
    return sum * (type_number(scalar) == NO_TYPE ? 1 : c10::elementSize(scalar));
}

const Side &side_same(const char *what, const Side &send, const Side &recv)
{
    if (send.at.empty())
        return recv;
    if (recv.at.empty())
        return send;
    if (send.scalar != recv.scalar)
        refuse(what,
               c10::str("invalid tensor type: the input is of ", send.scalar, ", the output of ",
                        recv.scalar, ": give the same type"));
    if (send.device != recv.device)
        refuse(what,
               c10::str("invalid tensor device: the input is on ", send.device, ", the output on ",
                        recv.device, ": give the same device"));
    return recv;
}

std::vector<at::Tensor> on_host(const char *what, c10::ArrayRef<at::Tensor> tensors, Way way,
                                Held &held)
{
    std::vector<at::Tensor> here = tensors.vec();
    for (const at::Tensor &t : here)    /* what is not alike is refused by Side */
        if (!t.defined() || !t.is_cuda() || t.device() != here[0].device())
            return here;
    if (way != Way::IN)
        check_apart(what, tensors);
    for (at::Tensor &t : here) {
        at::Tensor theirs = t;
        check_kind(what, theirs);
        /* in plain order: else Side has a copy of it, written back behind this one */
        t = way == Way::OUT ? at::empty(theirs.sizes(), theirs.options().device(at::kCPU))
                            : theirs.cpu();
        t = lies_plainly(t) ? t : plain_copy(t);
        if (way != Way::IN)
            held.put_back(what, theirs, t);
    }
    return here;
}

void Held::put_back(const char *what, const at::Tensor &theirs, const at::Tensor &ours)
{
    check_kind(what, theirs);
    if (theirs._is_zerotensor())
        refuse(what, "a result tensor is a lazy zero, which has no memory: give a clone() of it");
    if (overlaps_itself(theirs))
        refuse(what,
               "a result tensor has several elements in one place (it is expanded, or its strides "
               "overlap): give one with memory for "
               "each element");
    back.emplace_back(theirs, ours);
    if (theirs.is_cuda() && !stream)
        stream = c10::impl::VirtualGuardImpl(theirs.device().type()).getStream(theirs.device());
}

void Held::write_back()
{
    if (back.empty())
        return;
    at::NoGradGuard without;
    std::optional<c10::StreamGuard> there;
    if (stream)
        there.emplace(*stream);
    for (auto &[theirs, ours] : back) {
        /* the waiting thread may not be in the inference mode in which the program made it */
        std::optional<c10::InferenceMode> inside;
        if (theirs.is_inference())
            inside.emplace();
        theirs.copy_(ours);
    }
    if (stream)
        c10::impl::VirtualGuardImpl(stream->device_type()).synchronizeStream(*stream);
    back.clear();
}

tutti_op op_of(const char *what, const c10d::ReduceOp &op)
{
    switch ((c10d::ReduceOp::RedOpType)op) {
    case c10d::ReduceOp::SUM: return TUTTI_SUM;
    case c10d::ReduceOp::AVG: return TUTTI_AVG;
    case c10d::ReduceOp::PRODUCT: return TUTTI_PROD;
    case c10d::ReduceOp::MIN: return TUTTI_MIN;
    case c10d::ReduceOp::MAX: return TUTTI_MAX;
    case c10d::ReduceOp::BAND: return TUTTI_BAND;
    case c10d::ReduceOp::BOR: return TUTTI_BOR;
    case c10d::ReduceOp::BXOR: return TUTTI_BXOR;
    case c10d::ReduceOp::PREMUL_SUM: return TUTTI_PREMUL_SUM;
    default:
        refuse(what,
               "unknown ReduceOp: expected SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR or "
               "PREMUL_SUM");
    }
}

static bool is_bitwise(c10d::ReduceOp::RedOpType op)
{
    return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
}

void side_arithmetic(const char *what, Side &side, const c10d::ReduceOp &op)
{
    auto kind = (c10d::ReduceOp::RedOpType)op;
    if (is_bitwise(kind) && !c10::isIntegralType(side.scalar, true))
        refuse(what,
               c10::str("Cannot use ReduceOp.",
                        kind == c10d::ReduceOp::BAND ? "BAND"
                            : kind == c10d::ReduceOp::BOR ? "BOR"
                            : "BXOR",
                        " with non-integral dtype"));
    if (type_number(side.scalar) != NO_TYPE || side.at.empty())
        return;
    if (side.scalar != at::kComplexHalf
        || (kind != c10d::ReduceOp::SUM && kind != c10d::ReduceOp::AVG))
        refuse(what,
               c10::str("Invalid scalar type: there is no arithmetic for ", side.scalar,
                        ": integers, bool, float16, bfloat16, float32, float64, complex, "
                        "float8_e4m3fn and float8_e5m2 have one"));
    side.type = TUTTI_F16;
    for (size_t &n : side.counts)
        n /= 2;                         /* they were bytes; a number has two halves */
}

at::Tensor factor_of(const c10d::ReduceOp &op, const Side &side)
{
    if (op != c10d::ReduceOp::PREMUL_SUM)
        return at::Tensor();
    auto *given = dynamic_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());
    if (!given)
        refuse("PREMUL_SUM",
               "the factor is missing: make the operation by "
               "torch.distributed._make_nccl_premul_sum(factor)");
    at::Tensor said = given->tensor_factor.defined()
        ? given->tensor_factor.detach().reshape({ 1 }).to(at::kCPU)
        : at::full({ 1 }, given->double_factor, at::TensorOptions().dtype(at::kDouble));
    at::Tensor made = said.to(at::kCPU, side.scalar, false, true).contiguous();
    if (c10::isIntegralType(side.scalar, false) && !made.to(said.scalar_type()).equal(said))
        refuse("PREMUL_SUM",
               c10::str("the factor is no integer that fits into ", side.scalar,
                        ", as the tensor's elements are"));
    return made;
}

void *stream_of(c10::Device device)
{
    if (!device.is_cuda())
        return nullptr;
    c10::impl::VirtualGuardImpl guard(device.type());
    return guard.getStreamNativeHandle(guard.getStream(device));
}

}
