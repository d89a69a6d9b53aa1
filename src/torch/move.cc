/* Operations that only move elements. They take any type of torch; a type for which the library has
 * no arithmetic is moved as bytes. Cost: that of a Side (tensors.cc). */
#include "torch/plan.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>

#include "torch/lists.h"

namespace tutti {

WorkPtr Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &o)
{
    if (tensors.size() > 1)
        return several_broadcast(tensors, o);
    Plan p(*this, "broadcast");
    int from = root(p.what, o.rootRank);
    check_root_tensor(p.what, o.rootTensor, tensors.size());
    single(p.what, "tensor", tensors.size());
    Side x = p.side(tensors, from == p.rank() ? Way::IN : Way::OUT);
    return p.go(c10d::OpType::BROADCAST, title("broadcast"), tensors, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_broadcast(site, x.data(), x.count(), x.type, from, c, k);
                });
}

/* All tensors of all ranks become equal to the root's tensor number rootTensor. */
WorkPtr Backend::several_broadcast(Tensors &tensors, const c10d::BroadcastOptions &o)
{
    Plan p(*this, "broadcast");
    int from = root(p.what, o.rootRank);
    check_root_tensor(p.what, o.rootTensor, tensors.size());
    check_alike(p.what, tensors, tensors[0]);
    size_t which = from == p.rank() ? (size_t)o.rootTensor : 0;
    Side x = p.side(tensors[which], from == p.rank() ? Way::IN : Way::OUT);
    for (size_t i = 0; i < tensors.size(); i++)
        if (i != which)
            p.flight.held.put_back(p.what, tensors[i], tensors[which]);
    return p.go(c10d::OpType::BROADCAST, title("broadcast"), tensors, x.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_broadcast(site, x.data(), x.count(), x.type, from, c, k);
                });
}

static void gather_to_all(Backend::Plan &p, Work &work, c10::ArrayRef<at::Tensor> row,
                          const at::Tensor &input, Async how)
{
    Side send = p.side(input, Way::IN), recv = p.side(row, Way::OUT);
    Side both = side_same(p.what, send, recv);
    p.start(work, both.device, how, [&](const char *site, const Road &c, const tutti_call *k) {
        return over_all_gather_v(site, send.data(), send.count(), recv.at.data(),
                                     recv.counts.data(), both.type, c, k);
    });
}

WorkPtr Backend::allgather(Lists &outputs, Tensors &inputs, const c10d::AllgatherOptions &o)
{
    Plan p(*this, "all_gather");
    if (inputs.empty())
        refuse(p.what, "requires non-empty input tensor list");
    if (outputs.size() != inputs.size())
        refuse(p.what,
               c10::str("requires input/output tensor lists to have the same length, not ",
                        inputs.size(), " and ", outputs.size()));
    for (size_t i = 0; i < outputs.size(); i++)
        if (outputs[i].size() != p.ranks() * inputs.size())
            refuse(p.what,
                   c10::str("invalid output tensor list at index ", i, ": expected ",
                            p.ranks() * inputs.size(), " tensors, not ", outputs[i].size()));
    if (inputs.size() > 1)
        return several_gathered(outputs, inputs, o);
    Tensors &row = row_of(p.what, "output", outputs, inputs[0], p.ranks(), p.rank());
    if (as_gloo)
        check_as_many(p.what, row, inputs[0]);
    return row_gathered(row, inputs, o);
}

/* Gets a tensor from each rank. Their sizes may differ, also in gloo's place. */
WorkPtr Backend::row_gathered(Tensors &row, Tensors &inputs, const c10d::AllgatherOptions &o)
{
    Plan p(*this, "all_gather");
    auto work = p.work(c10d::OpType::ALLGATHER, title("all_gather"), row, &inputs);
    gather_to_all(p, *work, row, inputs[0], async_of(o));
    return p.end(std::move(work), async_of(o));
}

/* Each output list has the tensors of rank 0, of rank 1, … */
WorkPtr Backend::several_gathered(Lists &outputs, Tensors &inputs, const c10d::AllgatherOptions &o)
{
    Plan p(*this, "all_gather");
    check_alike(p.what, inputs, inputs[0]);
    at::Tensor mine = at::stack(inputs);
    Tensors every;
    for (size_t r = 0; r < p.ranks(); r++)
        every.push_back(at::empty_like(mine));
    Tensors value;
    for (Tensors &row : outputs) {
        check_alike(p.what, row, inputs[0]);
        value.insert(value.end(), row.begin(), row.end());
        for (size_t i = 0; i < row.size(); i++)
            p.flight.held.put_back(p.what, row[i],
                                   every[i / inputs.size()][(int64_t)(i % inputs.size())]);
    }
    auto work = p.work(c10d::OpType::ALLGATHER, title("all_gather"), std::move(value), &inputs);
    work->rows = outputs.size();
    gather_to_all(p, *work, every, mine, async_of(o));
    return p.end(std::move(work), async_of(o));
}

static void gather_whole(Backend::Plan &p, Work &work, at::Tensor &output, at::Tensor &input,
                         Async how)
{
    Side send = p.side(input, Way::IN), recv = p.side(output, Way::OUT);
    Side both = side_same(p.what, send, recv);
    if (send.count() * p.ranks() != recv.count())
        refuse(p.what,
               c10::str("the output has ", output.numel(), " elements; expected ", p.ranks(),
                        " times the input's ", input.numel()));
    p.start(work, both.device, how, [&](const char *site, const Road &c, const tutti_call *k) {
        return over_all_gather(site, send.data(), recv.data(), send.count(), both.type, c, k);
    });
}

WorkPtr Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::AllgatherOptions &o)
{
    Plan p(*this, "all_gather");
    auto work = p.work(c10d::OpType::_ALLGATHER_BASE, title("_allgather_base"), { output });
    gather_whole(p, *work, output, input, async_of(o));
    return p.end(std::move(work), async_of(o));
}

WorkPtr Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::AllgatherOptions &o)
{
    Plan p(*this, "allgather_into_tensor_coalesced");
    as_many(p.what, outputs.size(), inputs.size());
    auto work = p.work(c10d::OpType::COALESCED, title("all_gather"), outputs);
    for (size_t i = 0; i < outputs.size(); i++) {
        Plan q(*this, p.what);
        gather_whole(q, *work, outputs[i], inputs[i], async_of(o));
    }
    if (outputs.empty())
        work->end(Failure());
    return p.end(std::move(work), async_of(o));
}

/* Unlike the others it has one output list for each rank. */
WorkPtr Backend::allgather_coalesced(Lists &outputs, Tensors &inputs,
                                     const c10d::AllgatherOptions &o)
{
    Plan p(*this, "all_gather_coalesced");
    if (inputs.empty())
        refuse(p.what, "requires non-empty input tensor list");
    if (outputs.size() != p.ranks())
        refuse(p.what,
               c10::str("output lists should be equal to world size: there are ", outputs.size(),
                        " for ", p.ranks(), " ranks"));
    for (const Tensors &row : outputs) {
        if (row.size() != inputs.size())
            refuse(p.what,
                   c10::str("invalid output size: a list of ", row.size(), " tensors for ",
                            inputs.size(), " inputs"));
        for (size_t i = 0; i < row.size(); i++) {
            if (row[i].numel() != inputs[i].numel())
                refuse(p.what,
                       c10::str("invalid size of output tensor at index ", i, ": ", row[i].sizes(),
                                ", where the input has ", inputs[i].sizes()));
            if (row[i].scalar_type() != inputs[i].scalar_type())
                refuse(p.what,
                       c10::str("invalid tensor type at index ", i, ": ", row[i].scalar_type(),
                                ", where the input has ", inputs[i].scalar_type()));
        }
    }
    Tensors value;
    for (const Tensors &row : outputs)
        value.insert(value.end(), row.begin(), row.end());
    auto work = p.work(c10d::OpType::ALLGATHER_COALESCED, title("all_gather"), std::move(value),
                       &inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors row;
        for (const Tensors &theirs : outputs)
            row.push_back(theirs[i]);
        Plan q(*this, p.what);
        gather_to_all(q, *work, row, inputs[i], async_of(o));
    }
    return p.end(std::move(work), async_of(o));
}

WorkPtr Backend::gather(Lists &outputs, Tensors &inputs, const c10d::GatherOptions &o)
{
    Plan p(*this, "gather");
    int to = root(p.what, o.rootRank);
    single(p.what, "input tensor", inputs.size());
    if (to != p.rank() && !outputs.empty())
        refuse(p.what, c10::str("requires empty output on non-root: rank ", to, " is the root"));
    Tensors none,
        &row = to == p.rank() ? row_of(p.what, "output", outputs, inputs[0], p.ranks(), p.rank())
                              : none;
    Side send = p.side(inputs, Way::IN), recv = p.side(row, Way::OUT);
    Side both = side_same(p.what, send, recv);
    return p.go(c10d::OpType::GATHER, title("gather"), row, both.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    bool mine = !recv.at.empty();
                    return over_gather_v(site, send.data(), send.count(),
                                             mine ? recv.at.data() : nullptr,
                                             mine ? recv.counts.data() : nullptr, both.type, to, c,
                                             k);
                });
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE
/* output: used on the root only. */
WorkPtr Backend::gather_single(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &o)
{
    Plan p(*this, "gather_single");
    int to = root(p.what, o.rootRank);
    Side send = p.side(input, Way::IN);
    Tensors here = to == p.rank() ? Tensors{ output } : Tensors();
    Side recv = p.side(here, Way::OUT);
    Side both = side_same(p.what, send, recv);
    if (to == p.rank() && recv.count() != send.count() * p.ranks())
        refuse(p.what,
               c10::str("the output has ", output.numel(), " elements; expected ", p.ranks(),
                        " times the input's ", input.numel()));
    return p.go(c10d::OpType::GATHER, title("gather"), here, both.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_gather(site, send.data(), recv.data(), send.count(), both.type,
                                           to, c, k);
                });
}
#endif

WorkPtr Backend::scatter(Tensors &outputs, Lists &inputs, const c10d::ScatterOptions &o)
{
    Plan p(*this, "scatter");
    int from = root(p.what, o.rootRank);
    single(p.what, "output tensor", outputs.size());
    if (from != p.rank() && !inputs.empty())
        refuse(p.what, c10::str("requires empty input on non-root: rank ", from, " is the root"));
    Tensors none,
        &row = from == p.rank() ? row_of(p.what, "input", inputs, outputs[0], p.ranks(), p.rank())
                                : none;
    Side send = p.side(row, Way::IN), recv = p.side(outputs, Way::OUT);
    Side both = side_same(p.what, send, recv);
    return p.go(c10d::OpType::SCATTER, title("scatter"), outputs, both.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    bool mine = !send.at.empty();
                    return over_scatter_v(site, mine ? send.at.data() : nullptr,
                                              mine ? send.counts.data() : nullptr, recv.data(),
                                              recv.count(), both.type, from, c, k);
                });
}

WorkPtr Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &o)
{
    Plan p(*this, "all_to_all");
    if (outputs.size() != p.ranks() || inputs.size() != p.ranks())
        refuse(p.what,
               c10::str("lists of ", outputs.size(), " and ", inputs.size(),
                        " tensors; expected one for each of ", p.ranks(), " ranks"));
    Side send = p.side(inputs, Way::IN), recv = p.side(outputs, Way::OUT);
    Side both = side_same(p.what, send, recv);
    return p.go(c10d::OpType::ALLTOALL, title("all_to_all"), outputs, both.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_to_all_v(site, send.at.data(), send.counts.data(),
                                                 recv.at.data(), recv.counts.data(), both.type, c,
                                                 k);
                });
}

/* Replaces the whole tensor by its pieces along the first axis. No sizes: equal pieces. */
static void split_up(const char *what, const char *which, Side &side, const at::Tensor &tensor,
                     const std::vector<int64_t> &sizes, size_t ranks)
{
    int64_t edge = tensor.dim() ? tensor.size(0) : 0, sum = 0;
    if (sizes.empty() && edge % (int64_t)ranks)
        refuse(what,
               c10::str("the first axis of the ", which, " has ", edge,
                        " elements, which cannot be divided among ", ranks,
                        " ranks: give split sizes (Tensor's dim 0 does not divide equally across "
                        "group size)"));
    for (int64_t n : sizes) {
        if (n < 0)
            refuse(what, c10::str("a split size of the ", which, " is negative: ", n));
        sum += n;
    }
    if (!sizes.empty() && (sizes.size() != ranks || sum != edge))
        refuse(what,
               c10::str("the split sizes of the ", which, " are to be ", ranks,
                        " numbers whose sum is ", edge, ", its first axis; there are ",
                        sizes.size(), " with ", sum,
                        " (Split sizes doesn't match total dim 0 size)"));
    size_t row = edge ? side.count() / (size_t)edge : 0,
           step = side.count() ? side.bytes() / side.count() : 0;
    char *at = (char *)side.data();
    side.at.clear();
    side.counts.clear();
    for (size_t i = 0; i < ranks; i++) {
        size_t n = row * (size_t)(sizes.empty() ? edge / (int64_t)ranks : sizes[i]);
        side.at.push_back(at);
        side.counts.push_back(n);
        at += n * step;
    }
}

WorkPtr Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                               std::vector<int64_t> &output_splits,
                               std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &o)
{
    Plan p(*this, "all_to_all_single");
    if (as_gloo && !(input.is_contiguous() && output.is_contiguous()))
        refuse(p.what, "Tensors must be contiguous: their parts are rows of memory");
    Side send = p.side(input, Way::IN), recv = p.side(output, Way::OUT);
    Side both = side_same(p.what, send, recv);
    split_up(p.what, "input", send, input, input_splits, p.ranks());
    split_up(p.what, "output", recv, output, output_splits, p.ranks());
    return p.go(c10d::OpType::ALLTOALL_BASE, title("all_to_all"), output, both.device, async_of(o),
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_all_to_all_v(site, send.at.data(), send.counts.data(),
                                                 recv.at.data(), recv.counts.data(), both.type, c,
                                                 k);
                });
}

}
