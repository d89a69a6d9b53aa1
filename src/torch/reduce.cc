/* Reductions, in place where torch's are in place. A list may have several tensors: torch once had
 * one for each device of a rank. They are folded here, and the first one is reduced over the comm.
 * A list of sparse tensors is added up. Cost: that of a Side (tensors.cc); for a sparse tensor
 * three all_gathers. */
#include "torch/plan.h"

#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>

#include <set>

#include "torch/lists.h"

namespace tutti {

WorkPtr Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &o)
{
    if (tensors.size() != 1)
        return several_reduced(tensors, o);
    if (tensors[0].is_sparse())
        return allreduce_sparse(tensors, o);
    Plan p(*this, "all_reduce");
    Side x = p.side(tensors, Way::BOTH);
    side_arithmetic(p.what, x, o.reduceOp);
    tutti_op op = op_of(p.what, o.reduceOp);
    p.flight.factor = factor_of(o.reduceOp, x);
    return p.go(c10d::OpType::ALLREDUCE, title("all_reduce"), tensors, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_reduce(site, x.data(), x.data(), x.count(), x.type, op, c,
                                               k);
                });
}

WorkPtr Backend::several_reduced(Tensors &tensors, const c10d::AllreduceOptions &o)
{
    const char *what = "all_reduce";
    if (tensors.empty())
        refuse(what, "requires non-empty tensor list");
    at::Tensor &first = tensors[0];
    if (first.is_sparse())
        return allreduce_sparse(tensors, o);
    check_alike(what, tensors, first);
    at::NoGradGuard without;
    Tensors one{ first };
    for (size_t i = 1; i < tensors.size(); i++) {
        switch ((c10d::ReduceOp::RedOpType)o.reduceOp) {
        case c10d::ReduceOp::SUM: at::add_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::PRODUCT: at::mul_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::MIN: at::minimum_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::MAX: at::maximum_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::BAND: at::bitwise_and_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::BOR: at::bitwise_or_out(first, first, tensors[i]); break;
        case c10d::ReduceOp::BXOR: at::bitwise_xor_out(first, first, tensors[i]); break;
        default:
            refuse(what,
                   "a list of several tensors: those of one rank are folded by SUM, PRODUCT, MIN, "
                   "MAX, BAND, BOR or BXOR alone");
        }
    }
    Plan p(*this, what);
    Side x = p.side(one, Way::BOTH);
    side_arithmetic(what, x, o.reduceOp);
    tutti_op op = op_of(what, o.reduceOp);
    for (size_t i = 1; i < tensors.size(); i++)
        p.flight.held.put_back(p.what, tensors[i], first);
    return p.go(c10d::OpType::ALLREDUCE, title("all_reduce"), tensors, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_reduce(site, x.data(), x.data(), x.count(), x.type, op, c,
                                               k);
                });
}

/* Every rank gets all indices and values, and adds them up in the order of ranks. All is done when
 * this returns, also for an asynchronous call: the second step depends on the result of the
 * first. */
WorkPtr Backend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &o)
{
    const char *what = "all_reduce";
    if (tensors.empty())
        refuse(what, "requires non-empty tensor list");
    check_alike(what, tensors, tensors[0]);
    if (o.reduceOp != c10d::ReduceOp::SUM)
        refuse(what,
               "unsupported reduction operation: sparse tensors are added (SUM); or make them "
               "dense, by to_dense()");
    if (!tensors[0].is_cpu() && !tensors[0].is_cuda())
        refuse(what, c10::str("unsupported device type ", tensors[0].device().type()));
    at::NoGradGuard without;
    shared();
    at::Tensor mine = tensors[0];
    for (size_t i = 1; i < tensors.size(); i++)
        mine = mine + tensors[i];
    mine = mine.coalesce();
    at::Tensor indices = mine._indices().contiguous(), values = mine._values().contiguous();
    std::vector<int64_t> said(mine.sizes().vec());
    said.insert(said.end(), { mine.sparse_dim(), values.size(0) });
    int64_t words = (int64_t)said.size();
    at::Tensor told = at::tensor(said, at::kLong);
    Tensors heard, all_indices, all_values;
    for (int r = 0; r < comm->size; r++)
        heard.push_back(at::empty_like(told));
    c10d::AllgatherOptions wait;
    wait.timeout = o.timeout;
    wait.asyncOp = false;
    Tensors in{ told };
    row_gathered(heard, in, wait);
    for (int r = 0; r < comm->size; r++) {
        const at::Tensor &other = heard[r];
        if (!other.slice(0, 0, words - 1).equal(told.slice(0, 0, words - 1)))
            refuse(what,
                   c10::str("Sparse dimensions do not match: sizes and sparse dimensions differ "
                            "between this rank and rank ",
                            r));
        int64_t n = other[words - 1].item<int64_t>();
        auto shape = values.sizes().vec();
        shape[0] = n;
        all_indices.push_back(at::empty({ indices.size(0), n }, indices.options()));
        all_values.push_back(at::empty(shape, values.options()));
    }
    in = { indices };
    row_gathered(all_indices, in, wait);
    in = { values };
    row_gathered(all_values, in, wait);
    at::Tensor sum = at::sparse_coo_tensor(at::cat(all_indices, 1), at::cat(all_values),
                                           mine.sizes(), mine.options())
                         .coalesce();
    for (at::Tensor &tensor : tensors)
        tensor.copy_(sum);
    auto work = c10::make_intrusive<Work>(comm, c10d::OpType::_ALLREDUCE_SPARSE,
                                          title("all_reduce"), tensors);
    work->end(Failure());
    return given(std::move(work));
}

/* Replaces each repeated tensor by a copy, which is written back: every entry of the list counts
 * with the value at the beginning. */
static Tensors each_once(const Tensors &tensors)
{
    Tensors own = tensors;
    std::set<const void *> seen;
    for (at::Tensor &t : own)
        if (t.defined() && t.numel() && t.has_storage() && !seen.insert(t.const_data_ptr()).second)
            t = t.clone(at::MemoryFormat::Contiguous);
    return own;
}

WorkPtr Backend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &o)
{
    Plan p(*this, "allreduce_coalesced");
    if (tensors.empty())
        refuse(p.what, "requires non-empty tensor list");
    for (const at::Tensor &t : tensors)
        if (t.layout() != tensors[0].layout())
            refuse(p.what, "invalid tensor layout at index 1: all tensors have the same");
    tutti_op op = op_of(p.what, o.reduceOp);
    auto work = p.work(c10d::OpType::ALLREDUCE_COALESCED, title("all_reduce"), tensors);
    Tensors own = each_once(tensors);
    Side x = p.side(own, Way::BOTH);
    side_arithmetic(p.what, x, o.reduceOp);
    for (size_t i = 0; i < own.size(); i++)
        if (!own[i].is_same(tensors[i]))
            p.flight.held.put_back(p.what, tensors[i], own[i]);
    if (op != TUTTI_PREMUL_SUM) {
        p.start(*work, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_reduce_many(site, x.at.data(), x.at.data(), x.counts.data(),
                                                    (int)x.at.size(), x.type, op, c, k);
                });
        return p.end(std::move(work), async_of(o));
    }
    for (size_t i = 0; i < own.size(); i++) {           /* one after another, each with a factor */
        Plan q(*this, p.what);
        Side y = q.side(own[i], Way::BOTH);
        side_arithmetic(q.what, y, o.reduceOp);
        if (!own[i].is_same(tensors[i]))
            q.flight.held.put_back(q.what, tensors[i], own[i]);
        q.flight.factor = factor_of(o.reduceOp, y);
        q.start(*work, y.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_reduce(site, y.data(), y.data(), y.count(), y.type, op, c,
                                               k);
                });
    }
    return p.end(std::move(work), async_of(o));
}

WorkPtr Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &o)
{
    Plan p(*this, "reduce");
    int to = root(p.what, o.rootRank);
    check_root_tensor(p.what, o.rootTensor, tensors.size());
    single(p.what, "tensor", tensors.size());
    Side x = p.side(tensors, to == p.rank() ? Way::BOTH : Way::IN);
    side_arithmetic(p.what, x, o.reduceOp);
    tutti_op op = op_of(p.what, o.reduceOp);
    p.flight.factor = factor_of(o.reduceOp, x);
    return p.go(c10d::OpType::REDUCE, title("reduce"), tensors, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_reduce(site, x.data(), to == p.rank() ? x.data() : nullptr,
                                           x.count(), x.type, op, to, c, k);
                });
}

WorkPtr Backend::reduce_scatter(Tensors &outputs, Lists &inputs,
                                const c10d::ReduceScatterOptions &o)
{
    Plan p(*this, "reduce_scatter");
    single(p.what, "output", outputs.size());
    Tensors &row = row_of(p.what, "input", inputs, outputs[0], p.ranks(), p.rank());
    Side send = p.side(row, Way::IN), recv = p.side(outputs, Way::OUT);
    Side both = side_same(p.what, send, recv);
    side_arithmetic(p.what, send, o.reduceOp);
    side_arithmetic(p.what, both, o.reduceOp);
    tutti_op op = op_of(p.what, o.reduceOp);
    p.flight.factor = factor_of(o.reduceOp, both);
    return p.go(c10d::OpType::REDUCE_SCATTER, title("reduce_scatter"), outputs, both.device,
                async_of(o), [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_reduce_scatter_v(site, send.at.data(), send.counts.data(),
                                                     recv.data(), both.type, op, c, k);
                });
}

/* Adds the operation to a Work that may hold several. */
static void scatter_reduced(Backend::Plan &p, Work &work, at::Tensor &output, at::Tensor &input,
                            const c10d::ReduceScatterOptions &o)
{
    Side send = p.side(input, Way::IN), recv = p.side(output, Way::OUT);
    Side both = side_same(p.what, send, recv);
    if (send.count() != recv.count() * p.ranks())
        refuse(p.what,
               c10::str("the input has ", input.numel(), " elements; expected ", p.ranks(),
                        " times the output's ", output.numel()));
    side_arithmetic(p.what, both, o.reduceOp);
    tutti_op op = op_of(p.what, o.reduceOp);
    p.flight.factor = factor_of(o.reduceOp, both);
    p.start(work, both.device, async_of(o),
            [&](const char *site, const Road &c, const tutti_call *k) {
                return over_reduce_scatter(site, send.data(), recv.data(), both.count(),
                                               both.type, op, c, k);
            });
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::ReduceScatterOptions &o)
{
    Plan p(*this, "reduce_scatter");
    auto work = p.work(c10d::OpType::_REDUCE_SCATTER_BASE, title("_reduce_scatter_base"),
                       { output });
    scatter_reduced(p, *work, output, input, o);
    return p.end(std::move(work), async_of(o));
}

WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::ReduceScatterOptions &o)
{
    Plan p(*this, "reduce_scatter_tensor_coalesced");
    as_many(p.what, outputs.size(), inputs.size());
    auto work = p.work(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED, title("reduce_scatter"),
                       outputs);
    for (size_t i = 0; i < outputs.size(); i++) {
        Plan q(*this, p.what);
        scatter_reduced(q, *work, outputs[i], inputs[i], o);
    }
    if (outputs.empty())
        work->end(Failure());
    return p.end(std::move(work), async_of(o));
}

}
