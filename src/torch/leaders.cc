/* Reductions between hosts are made of moves and a fold of our own. So their order is host 0, host
 * 1 and so on for every element, whatever the size and the way, and every type of the library has
 * them. Among two hosts, and of little, all get all; else each host folds its share, as engines do
 * it. Cost: for n bytes each host sends n among two, else 2n (hosts - 1) / hosts; two rounds. */
#include "torch/leaders.h"

#include <ATen/ops/empty.h>

#include <string.h>

#include "torch/leaders_fold.h"

namespace tutti {

static const size_t ALL_TO_ALL_FROM = 64 << 10;

at::Tensor Leaders::scratch(size_t which, size_t bytes)
{
    if (buffers.size() <= which)
        buffers.resize(which + 1);
    at::Tensor &b = buffers[which];
    if (!b.defined() || (size_t)b.numel() < bytes)
        b = at::empty({ (int64_t)bytes }, at::TensorOptions().dtype(at::kByte));
    return b.narrow(0, 0, (int64_t)bytes);
}

static std::vector<const void *> parts_of(const at::Tensor &all, int n, size_t step)
{
    std::vector<const void *> parts;
    for (int h = 0; h < n; h++)
        parts.push_back((const char *)all.const_data_ptr() + (size_t)h * step);
    return parts;
}

Leaders::Rest Leaders::start_swap(at::Tensor bytes, at::Tensor others, int mine,
                                  const Patience &patience)
{
    std::vector<int64_t> sizes(2, bytes.numel());
    sizes[(size_t)mine] = 0;
    return start_all_to_all(bytes, sizes, others, sizes, patience);
}

void fold_two(const at::Tensor &bytes, const at::Tensor &others, int mine, size_t count,
              tutti_type type, tutti_op op, const std::vector<int> &weights)
{
    std::vector<const void *> parts{ bytes.const_data_ptr(), others.const_data_ptr() };
    if (mine)
        std::swap(parts[0], parts[1]);
    fold_parts(bytes.mutable_data_ptr(), parts, count, type, op, weights);
}

void Leaders::all_reduce(at::Tensor bytes, size_t count, int mine_at, tutti_type type, tutti_op op,
                         const std::vector<int> &weights, const Patience &patience)
{
    size_t n = (size_t)hosts(), size = type_size(type), whole = count * size;
    if (n == 2) {
        at::Tensor others = scratch(2, whole);
        start_swap(bytes, others, mine_at, patience)(patience);
        return fold_two(bytes, others, mine_at, count, type, op, weights);
    }
    if (whole < ALL_TO_ALL_FROM) {
        at::Tensor all = scratch(2, n * whole);
        all_gather(bytes, all, patience);
        return fold_parts(bytes.mutable_data_ptr(), parts_of(all, (int)n, whole), count, type, op,
                          weights);
    }
    size_t share = (count + n - 1) / n;
    std::vector<size_t> blocks;
    for (size_t h = 0, at = 0; h < n; h++, at += share)
        blocks.push_back(at >= count ? 0 : std::min(share, count - at));
    at::Tensor padded = scratch(3, n * share * size);
    memcpy(padded.mutable_data_ptr(), bytes.const_data_ptr(), whole);
    at::Tensor got = scratch(2, n * share * size), mine = scratch(4, share * size);
    std::vector<int64_t> each(n, (int64_t)(share * size));
    all_to_all(padded, each, got, each, patience);
    fold_parts(mine.mutable_data_ptr(), parts_of(got, (int)n, share * size), share, type, op,
               weights);
    all_gather(mine, padded, patience);
    memcpy(bytes.mutable_data_ptr(), padded.const_data_ptr(), whole);
}

void Leaders::reduce_scatter(at::Tensor bytes, const std::vector<size_t> &blocks, int mine,
                             at::Tensor result, tutti_type type, tutti_op op,
                             const std::vector<int> &weights, const Patience &patience)
{
    size_t size = type_size(type), own = blocks[(size_t)mine] * size;
    std::vector<int64_t> sends;
    for (size_t b : blocks)
        sends.push_back((int64_t)(b * size));
    at::Tensor got = scratch(2, blocks.size() * own);
    all_to_all(bytes, sends, got, std::vector<int64_t>(blocks.size(), (int64_t)own), patience);
    fold_parts(result.mutable_data_ptr(), parts_of(got, (int)blocks.size(), own),
               blocks[(size_t)mine], type, op, weights);
}

void Leaders::barrier(const Patience &patience)
{
    at::Tensor one = scratch(5, 8);
    memset(one.mutable_data_ptr(), 0, 8);
    all_gather(one, scratch(6, 8 * (size_t)hosts()), patience);
}

}
