/* Job: what one leader of each host does with the others: six operations, an abort. Behind it an
 *      engine that exists; gloo's is leaders_gloo.cc.
 * Owns: the connection of its engine, and buffers that the engine may use for longer than an
 *       operation: one that failed is left to end by itself.
 * Never: knows ranks: hosts only. Gives the engine memory of the program. */
#ifndef TORCH_LEADERS_H
#define TORCH_LEADERS_H

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tutti.h"

namespace tutti {

/* pulse: called in each slice of a wait; throws what ends it. left: the time to the deadline. */
struct Patience {
    std::function<void()> pulse;
    std::chrono::milliseconds left;
};

/* All buffers are bytes of the host, made by at::empty or a part of such. What fails throws
 * std::exception with the engine's text. */
class Leaders {
public:
    virtual ~Leaders() = default;
    virtual int hosts() const = 0;
    virtual void all_gather(at::Tensor mine, at::Tensor all, const Patience &) = 0;
    virtual void broadcast(at::Tensor bytes, int root, const Patience &) = 0;
    /* of each host to each, in the order of hosts; the function that is returned waits for it */
    using Rest = std::function<void(const Patience &)>;
    virtual Rest start_all_to_all(at::Tensor send, const std::vector<int64_t> &sends,
                                  at::Tensor recv, const std::vector<int64_t> &recvs,
                                  const Patience &) = 0;
    void all_to_all(at::Tensor send, const std::vector<int64_t> &sends, at::Tensor recv,
                    const std::vector<int64_t> &recvs, const Patience &patience)
    {
        start_all_to_all(send, sends, recv, recvs, patience)(patience);
    }
    /* Of two hosts: starts to give these bytes to the other one for its own. */
    Rest start_swap(at::Tensor bytes, at::Tensor others, int mine, const Patience &);
    /* The three below have a fixed order of folding, host by host: the same bits in each run, and
     * by each way. weights: leaders_fold.h */
    virtual void all_reduce(at::Tensor bytes, size_t count, int mine, tutti_type, tutti_op,
                            const std::vector<int> &weights, const Patience &);
    /* blocks: the elements of each host; result: those of this one */
    virtual void reduce_scatter(at::Tensor bytes, const std::vector<size_t> &blocks, int mine,
                                at::Tensor result, tutti_type, tutti_op,
                                const std::vector<int> &weights, const Patience &);
    virtual void barrier(const Patience &);
    virtual void abort() = 0;           /* waits for nobody; afterwards only the destructor */
    /* a buffer of this leader, valid until the next call with this number */
    at::Tensor scratch(size_t number, size_t bytes);

protected:
    std::vector<at::Tensor> buffers;
};

/* Of two hosts: folds what the other one gave into these bytes, in the order of hosts. */
void fold_two(const at::Tensor &bytes, const at::Tensor &others, int mine, size_t count, tutti_type,
              tutti_op, const std::vector<int> &weights);

/* Messages between ranks of different hosts. */
class Messenger {
public:
    virtual ~Messenger() = default;
    /* Starts it. The function waits, as leaders do. */
    virtual std::function<void(const Patience &)> send(at::Tensor bytes, int to, int tag) = 0;
    virtual std::function<void(const Patience &)> recv(at::Tensor bytes, int from, int tag) = 0;
    virtual void abort() = 0;
};

std::unique_ptr<Leaders> leaders_of_gloo(c10::intrusive_ptr<c10d::Backend> gloo);
std::unique_ptr<Messenger> messenger_of_gloo(c10::intrusive_ptr<c10d::Backend> gloo);

}

#endif
