/* Job: what one leader of each host does with the others: moves, and reductions made of them; an
 *      abort. Behind it an engine that exists and sends messages; gloo's is leaders_gloo.cc.
 * Owns: the connection of its engine, and buffers that the engine may use for longer than an
 *       operation: one that failed is left to end by itself.
 * Never: knows ranks: hosts only. Gives the engine memory of the program. */
#ifndef TORCH_LEADERS_H
#define TORCH_LEADERS_H

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <string.h>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tutti.h"

namespace tutti {

/* pulse: called in each slice of a wait; throws what ends it. left: the time to the deadline. */
struct Patience {
    std::function<void()> pulse;
    std::chrono::milliseconds left;
};

/* Bytes to a host or from it. Those of one tag keep their order; both sides know their number. */
struct Letter { int host, tag; at::Tensor bytes; };

inline char *at_of(const at::Tensor &t) { return (char *)t.mutable_data_ptr(); }

inline void copy_bytes(void *to, const void *from, size_t n)
{
    if (n && to != from)
        memcpy(to, from, n);
}

/* Waits for what has been started. */
using Rest = std::function<void(const Patience &)>;

/* A reduction under way: arrived() waits for what the others gave; then finish() makes the
 * result. */
struct Reduction { Rest arrived, finish; };

/* What is reduced. out: of the program, where the result goes. weights: leaders_fold.h */
struct Summands {
    at::Tensor bytes;                   /* of this host; they are written over */
    size_t count;
    void *out;
    tutti_type type;
    tutti_op op;
    const std::vector<int> *weights;
};

/* All buffers are bytes of the host, made by at::empty or a part of such. What fails throws
 * std::exception with the engine's text. */
class Leaders {
public:
    virtual ~Leaders() = default;
    virtual int hosts() const = 0;
    virtual int mine() const = 0;       /* this host */
    virtual Rest exchange(const std::vector<Letter> &give, const std::vector<Letter> &get) = 0;
    virtual void abort() = 0;           /* waits for nobody; afterwards only the destructor */

    /* The rest is made of exchange(). Tags below TAGS are of operations that all hosts are known to
     * do; one that is started before that is known has a tag of its own, even, from TAGS on. */
    enum { TAG_MEET, TAG_CALLS, TAG_DATA, TAGS = 16 };

    /* So many bytes of each host to all, in the order of hosts: few of them, since a host passes on
     * what it has heard. In ceil(log2(hosts)) rounds, all of the list at once. */
    struct Brief { const void *mine; char *all; size_t bytes; int tag; };
    void all_gather_brief(const std::vector<Brief> &, const Patience &);

    void all_gather(const at::Tensor &mine, const at::Tensor &all, const Patience &);
    void broadcast(const at::Tensor &bytes, int root, const Patience &);
    /* of each host to each, in the order of hosts */
    Rest start_all_to_all(const at::Tensor &send, const std::vector<int64_t> &sends,
                          const at::Tensor &recv, const std::vector<int64_t> &recvs, int tag);
    void all_to_all(const at::Tensor &send, const std::vector<int64_t> &sends,
                    const at::Tensor &recv, const std::vector<int64_t> &recvs,
                    const Patience &patience)
    {
        start_all_to_all(send, sends, recv, recvs, TAG_DATA)(patience);
    }
    /* The two below have a fixed order of folding, host by host: the same bits in each run, and
     * by each way. turn: 0 or 1; two may be under way, one of each. */
    Reduction start_all_reduce(const Summands &, int turn, int tag);
    /* blocks: the elements of each host; result: those of this one */
    void reduce_scatter(at::Tensor bytes, const std::vector<size_t> &blocks, at::Tensor result,
                        tutti_type, tutti_op, const std::vector<int> &weights, const Patience &);
    /* a buffer of this leader, valid until the next call with this number */
    at::Tensor scratch(size_t number, size_t bytes);

private:
    std::vector<at::Tensor> buffers;
};

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
