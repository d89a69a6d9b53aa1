/* Reductions between hosts are made of messages and a fold of our own. So their order is host 0,
 * host 1 and so on for every element, whatever the size and the way, and every type of the library
 * has them. Among two hosts, and of little, all get all; else each host folds its share, as engines
 * do it. Cost: for n bytes each host sends n among two, else 2n (hosts - 1) / hosts in two
 * exchanges; what is brief takes ceil(log2(hosts)) rounds. */
#include "torch/leaders.h"

#include <ATen/ops/empty.h>

#include <string.h>

#include <algorithm>

#include "torch/leaders_fold.h"

namespace tutti {

/* Up to so many bytes that a host would give, all get all: one exchange instead of two. */
static const size_t ALL_GET_ALL = 64 << 10;

enum { GOT, GOT_TOO, HEARD };          /* buffers; HEARD and those behind it: what is brief */

at::Tensor Leaders::scratch(size_t which, size_t bytes)
{
    if (buffers.size() <= which)
        buffers.resize(which + 1);
    at::Tensor &b = buffers[which];
    if (!b.defined() || (size_t)b.numel() < bytes)
        b = at::empty({ (int64_t)bytes }, at::TensorOptions().dtype(at::kByte));
    return b.narrow(0, 0, (int64_t)bytes);
}

static at::Tensor cut(const at::Tensor &t, size_t from, size_t bytes)
{
    return t.narrow(0, (int64_t)from, (int64_t)bytes);
}

/* Round by round each host has twice as many: its own, then those of the hosts behind it. */
void Leaders::all_gather_brief(const std::vector<Brief> &briefs, const Patience &patience)
{
    size_t n = (size_t)hosts(), me = (size_t)mine();
    std::vector<at::Tensor> heard;
    for (size_t i = 0; i < briefs.size(); i++) {
        heard.push_back(scratch(HEARD + i, n * briefs[i].bytes));
        copy_bytes(at_of(heard[i]), briefs[i].mine, briefs[i].bytes);
    }
    for (size_t have = 1; have < n; have *= 2) {
        size_t more = std::min(have, n - have);
        std::vector<Letter> give, get;
        for (size_t i = 0; i < briefs.size(); i++) {
            size_t bytes = briefs[i].bytes;
            give.push_back({ (int)((me + n - have) % n), briefs[i].tag,
                             cut(heard[i], 0, more * bytes) });
            get.push_back({ (int)((me + have) % n), briefs[i].tag,
                            cut(heard[i], have * bytes, more * bytes) });
        }
        exchange(give, get)(patience);
    }
    for (size_t i = 0; i < briefs.size(); i++)
        for (size_t k = 0; k < n; k++)
            copy_bytes(briefs[i].all + (me + k) % n * briefs[i].bytes,
                       at_of(heard[i]) + k * briefs[i].bytes, briefs[i].bytes);
}

void Leaders::all_gather(const at::Tensor &own, const at::Tensor &all, const Patience &patience)
{
    size_t n = (size_t)hosts(), me = (size_t)mine(), bytes = (size_t)own.numel();
    std::vector<Letter> give, get;
    for (size_t k = 1; k < n && bytes; k++) {
        give.push_back({ (int)((me + k) % n), TAG_DATA, own });
        get.push_back({ (int)((me + n - k) % n), TAG_DATA,
                        cut(all, (me + n - k) % n * bytes, bytes) });
    }
    Rest rest = exchange(give, get);
    copy_bytes(at_of(all) + me * bytes, at_of(own), bytes);
    rest(patience);
}

/* A binomial tree, by the numbers of hosts from the root on. */
void Leaders::broadcast(const at::Tensor &bytes, int root, const Patience &patience)
{
    int n = hosts(), me = (mine() + n - root) % n, step = 1;
    auto of = [&](int number) { return (number + root) % n; };
    while (step < n && !(me & step))
        step *= 2;
    if (me)
        exchange({}, { { of(me - step), TAG_DATA, bytes } })(patience);
    std::vector<Letter> give;
    for (step /= 2; step > 0; step /= 2)
        if (me + step < n)
            give.push_back({ of(me + step), TAG_DATA, bytes });
    exchange(give, {})(patience);
}

Rest Leaders::start_all_to_all(const at::Tensor &send, const std::vector<int64_t> &sends,
                               const at::Tensor &recv, const std::vector<int64_t> &recvs, int tag)
{
    size_t me = (size_t)mine(), from = 0, to = 0;
    std::vector<Letter> give, get;
    for (size_t h = 0; h < sends.size(); h++) {
        size_t out = (size_t)sends[h], in = (size_t)recvs[h];
        if (h == me)
            copy_bytes(at_of(recv) + to, at_of(send) + from, std::min(out, in));
        if (h != me && out)
            give.push_back({ (int)h, tag, cut(send, from, out) });
        if (h != me && in)
            get.push_back({ (int)h, tag, cut(recv, to, in) });
        from += out;
        to += in;
    }
    return exchange(give, get);
}

/* Where block h of so many elements begins. */
static size_t block_at(size_t count, size_t hosts, size_t h)
{
    return count / hosts * h + std::min(h, count % hosts);
}

Reduction Leaders::start_all_reduce(const Summands &s, int turn, int tag)
{
    size_t n = (size_t)hosts(), me = (size_t)mine(), size = type_size(s.type);
    bool whole = n == 2 || s.count * size * (n - 1) <= ALL_GET_ALL;
    auto first = [=](size_t h) { return whole ? 0 : block_at(s.count, n, h); };
    auto number = [=](size_t h) {
        return whole ? s.count : block_at(s.count, n, h + 1) - block_at(s.count, n, h);
    };
    size_t own = number(me);
    at::Tensor got = scratch(turn ? GOT_TOO : GOT, n * own * size);
    std::vector<const void *> parts;
    std::vector<Letter> give, get;
    for (size_t h = 0; h < n; h++) {
        parts.push_back(h == me ? at_of(s.bytes) + first(me) * size : at_of(got) + h * own * size);
        if (h != me && number(h))
            give.push_back({ (int)h, tag, cut(s.bytes, first(h) * size, number(h) * size) });
        if (h != me && own)
            get.push_back({ (int)h, tag, cut(got, h * own * size, own * size) });
    }
    Rest arrived = exchange(give, get);
    return { arrived, [=, this](const Patience &patience) {
        void *mine_at = whole ? s.out : at_of(s.bytes) + first(me) * size;
        fold_parts(mine_at, parts, own, s.type, s.op, *s.weights);
        if (whole)
            return;
        std::vector<Letter> shares, others;
        for (size_t h = 0; h < n; h++) {
            if (h != me && own)
                shares.push_back({ (int)h, tag + 1, cut(s.bytes, first(me) * size, own * size) });
            if (h != me && number(h))
                others.push_back({ (int)h, tag + 1,
                                   cut(s.bytes, first(h) * size, number(h) * size) });
        }
        exchange(shares, others)(patience);
        copy_bytes(s.out, at_of(s.bytes), s.count * size);
    } };
}

void Leaders::reduce_scatter(at::Tensor bytes, const std::vector<size_t> &blocks, at::Tensor result,
                             tutti_type type, tutti_op op, const std::vector<int> &weights,
                             const Patience &patience)
{
    size_t size = type_size(type), own = blocks[(size_t)mine()] * size;
    std::vector<int64_t> sends;
    for (size_t b : blocks)
        sends.push_back((int64_t)(b * size));
    at::Tensor got = scratch(GOT, blocks.size() * own);
    all_to_all(bytes, sends, got, std::vector<int64_t>(blocks.size(), (int64_t)own), patience);
    std::vector<const void *> parts;
    for (size_t h = 0; h < blocks.size(); h++)
        parts.push_back(at_of(got) + h * own);
    fold_parts(at_of(result), parts, blocks[(size_t)mine()], type, op, weights);
}

}
