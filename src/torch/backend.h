/* Job: implement torch's process group on a comm: each operation of torch by the library's calls.
 * Owns: its hold on the comm; the works of a coalescing block.
 * Never: uses a tensor's memory after its operation has ended. */
#ifndef TORCH_BACKEND_H
#define TORCH_BACKEND_H

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "torch/work.h"

namespace tutti {

using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/* the fields that every options struct of torch has */
struct Async { bool async; std::chrono::milliseconds timeout; };
template <class Options> Async async_of(const Options &o) { return { o.asyncOp, o.timeout }; }

/* By these options a backend, or its wrapper, is recognised as one of this folder. */
struct OptionsOfOurs : c10d::Backend::Options { using Options::Options; };

class Backend : public c10d::Backend {
public:
    /* name: what get_backend_name() returns; "gloo" if it replaces gloo. */
    Backend(std::shared_ptr<Comm> comm, std::string name, std::chrono::milliseconds timeout);
    ~Backend() override;

    /* ---- reductions (reduce.cc) ---- */
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &) override;
    WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &) override;
    WorkPtr reduce_scatter(Tensors &outputs, Lists &inputs,
                           const c10d::ReduceScatterOptions &) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &) override;

    /* ---- moves (move.cc) ---- */
    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &) override;
    WorkPtr allgather(Lists &outputs, Tensors &inputs, const c10d::AllgatherOptions &) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &) override;
    WorkPtr allgather_coalesced(Lists &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &) override;
    WorkPtr gather(Lists &outputs, Tensors &inputs, const c10d::GatherOptions &) override;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    WorkPtr gather_single(at::Tensor &output, at::Tensor &input,
                          const c10d::GatherOptions &) override;
#endif
    WorkPtr scatter(Tensors &outputs, Lists &inputs, const c10d::ScatterOptions &) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_splits, std::vector<int64_t> &input_splits,
                          const c10d::AllToAllOptions &) override;

    /* ---- messages and barriers (message.cc) ---- */
    WorkPtr send(Tensors &tensors, int to, int tag) override;
    WorkPtr recv(Tensors &tensors, int from, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions &) override;
    void    monitoredBarrier(const c10d::BarrierOptions &, bool wait_all_ranks) override;
    /* rank 0 runs first; the other ranks wait in first_awaited() until it calls first_done() */
    void    first_awaited();
    void    first_done();
    void    startCoalescing() override;
    WorkPtr endCoalescing() override;

    /* ---- life (backend.cc) ---- */
    const std::string getBackendName() const override { return name; }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options; }
    void setTimeout(std::chrono::milliseconds) override;
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override { return comm ? comm->started() : 0; }
    void enableCollectivesTiming() override {}          /* each work measures its time anyway */
    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;
    bool supportsSplitting() const override { return true; }
    bool supportsShrinking() const override { return true; }
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &,
                                            const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<Options> &) override;
    c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t> &ranks_to_exclude,
                                             int flags,
                                             const c10::intrusive_ptr<Options> &) override;
#ifdef C10D_BACKEND_HAS_HOOKS
    void registerAbortHook(int64_t id, c10d::AbortHook hook) override
    {
        shared()->hooks->add(id, std::move(hook));
    }
    void unregisterAbortHook(int64_t id) override { shared()->hooks->remove(id); }
#endif
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    /* A group that gets its ranks later: the ranks that have exchanged their handles make its comm,
     * and may make it again. */
    Backend(std::string name, std::chrono::milliseconds timeout);
    bool supportsReconfigure() const override { return true; }
    c10d::ReconfigureHandle get_reconfigure_handle() const override { return handle; }
    WorkPtr reconfigure(const c10d::ReconfigureOptions &) override;
    void addEphemeralTimeout(const std::chrono::milliseconds &) override;
#endif
    std::shared_ptr<Comm> shared() const;       /* refuses if there is no comm yet */

    struct Plan;                        /* an operation before its start (plan.h) */

private:
    friend struct Plan;
    /* "tutti:all_reduce", an event's name in a profile; never freed */
    const char *title(const char *operation) const;
    WorkPtr given(WorkPtr work);        /* returns it; a coalescing block keeps it, too */
    int root(const char *what, int64_t rank) const;
    WorkPtr several_reduced(Tensors &tensors, const c10d::AllreduceOptions &);
    WorkPtr several_broadcast(Tensors &tensors, const c10d::BroadcastOptions &);
    WorkPtr row_gathered(Tensors &row, Tensors &inputs, const c10d::AllgatherOptions &);
    WorkPtr several_gathered(Lists &outputs, Tensors &inputs, const c10d::AllgatherOptions &);
    WorkPtr receive(Tensors &tensors, int from, int tag, c10d::OpType type);

    std::shared_ptr<Comm> comm;         /* null until reconfigure() */
    const std::string name;
    const bool as_gloo;     /* also refuses what gloo refuses: programs and tests expect that */
    const c10::intrusive_ptr<c10d::Backend::Options> options;
    WorkPtr over;               /* one for all operations that have been waited for */
    std::mutex coalescing_lock;
    std::atomic<bool> coalescing{ false };
    std::vector<WorkPtr> coalesced;
    std::atomic<uint64_t> monitored{ 0 }, firsts{ 0 };
    const std::string handle;
};

}

#endif
