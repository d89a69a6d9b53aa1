/* The collectives with a root, and all_to_all. On the root's host a block goes by the leader, too.
 * Sizes that only one side knows travel before the data. Cost: a round of the leaders more for
 * gather, scatter and all_to_all; else that of hosts_collective.cc. */
#include "torch/step.h"

#include <errno.h>
#include <string.h>

#include "torch/leaders_fold.h"

namespace tutti {

/* From the leader to one rank of its host, or back. The others take part with nothing. */
static void pass_down(const Step &s, const void *from, void *to, size_t bytes, int place,
                      tutti_comm *local, size_t ranks, int me, bool last)
{
    std::vector<const void *> outs(ranks, from);
    std::vector<size_t> parts(ranks, 0);
    parts[(size_t)place] = bytes;
    tutti_call c = s.with(last);
    s.must(tutti_scatter_v_at(s.job.site, me ? nullptr : outs.data(), me ? nullptr : parts.data(),
                              to, me == place ? bytes : 0, TUTTI_U8, 0, local, &c));
}

static void pass_up(const Step &s, const void *from, void *to, size_t bytes, int place,
                    tutti_comm *local, size_t ranks, int me)
{
    std::vector<void *> into(ranks, to);
    std::vector<size_t> parts(ranks, 0);
    parts[(size_t)place] = bytes;
    tutti_call c = s.with();
    s.must(tutti_gather_v_at(s.job.site, from, me == place ? bytes : 0,
                             me ? nullptr : into.data(), me ? nullptr : parts.data(), TUTTI_U8, 0,
                             local, &c));
}

static void last_barrier(const Step &s, tutti_comm *local)
{
    tutti_call c = s.with(true);
    s.must(tutti_barrier_at(s.job.site, local, &c));
}

int Hosts::broadcast(const char *site, void *buf, size_t n, tutti_type type, int root,
                     const tutti_call *k)
{
    return put(site, k, [=, this](Step &s) {
        size_t bytes = n * type_size(type);
        bool near = where.host[(size_t)root] == where.mine, brief = bytes <= Step::INLINE_BYTES;
        s.same_root("broadcast", root);
        tutti_call c = s.with();
        if (near)
            s.must(tutti_broadcast_at(s.job.site, buf, n, type, where.place[(size_t)root], local,
                                      &c));
        if (s.leads()) {
            Descriptor d{ "broadcast", type, -1, root, (int64_t)n };
            int from = where.host[(size_t)root];
            const void *heard = s.meet(d, near ? buf : nullptr, brief ? bytes : 0).of(from);
            if (!brief) {
                at::Tensor whole = s.scratch(4, bytes);
                if (near)
                    memcpy(whole.mutable_data_ptr(), buf, bytes);
                s.across([&](Leaders &l, const Patience &p) { l.broadcast(whole, from, p); });
                heard = whole.const_data_ptr();
            }
            if (!near && bytes)
                memcpy(buf, heard, bytes);
        }
        if (near)
            return last_barrier(s, local);
        c = s.with(true);
        s.must(tutti_broadcast_at(s.job.site, buf, n, type, 0, local, &c));
    });
}

/* All leaders have the result, and all ranks: the root's own buffer is where it goes, the others
 * have one for it. */
int Hosts::reduce(const char *site, const void *send, void *recv, size_t n, tutti_type type,
                  tutti_op op, int root, const tutti_call *k)
{
    std::shared_ptr<char[]> kept;
    if (where.rank != root)
        kept.reset(new char[n * type_size(type) + 1]);
    void *to = where.rank == root ? recv : kept.get();
    return fold_all("reduce", root, kept, site, &send, &to, &n, 1, type, op, k);
}

int Hosts::gather(const char *site, const void *send, void *recv, size_t n, tutti_type t, int root,
                  const tutti_call *k)
{
    std::vector<void *> to;
    for (int r = 0; r < where.size(); r++)
        to.push_back((char *)recv + (size_t)r * n * type_size(t));
    std::vector<size_t> counts((size_t)where.size(), n);
    bool mine = where.rank == root;
    return gather_v(site, send, n, mine ? to.data() : nullptr, mine ? counts.data() : nullptr, t,
                    root, k);
}

/* A host's block: the number of bytes of each of its ranks, then the bytes. */
int Hosts::gather_v(const char *site, const void *send, size_t n, void *const recv[],
                    const size_t counts[], tutti_type type, int root, const tutti_call *k)
{
    bool is_root = where.rank == root;
    std::vector<void *> to(recv, recv + (is_root ? where.size() : 0));
    std::vector<size_t> count(counts, counts + (is_root ? where.size() : 0));
    return put(site, k, [=, this](Step &s) {
        size_t size = type_size(type), ranks = where.here().size();
        int at_host = where.host[(size_t)root], me = where.place[(size_t)where.rank];
        bool near = at_host == where.mine;
        s.same_root("gather", root);
        int64_t bytes = (int64_t)(n * size), incoming = 0;
        std::vector<int64_t> sizes(ranks);
        tutti_call c = s.with();
        s.must(tutti_all_gather_at(s.job.site, &bytes, sizes.data(), 8, TUTTI_U8, local, &c));
        at::Tensor block, all;
        std::vector<void *> into(ranks);
        std::vector<size_t> parts(ranks);
        size_t own = 8 * ranks;
        for (int64_t b : sizes)
            own += (size_t)b;
        if (s.leads()) {
            block = s.scratch(4, own);
            char *at = (char *)block.mutable_data_ptr();
            memcpy(at, sizes.data(), 8 * ranks);
            at += 8 * ranks;
            for (size_t i = 0; i < ranks; i++) {
                into[i] = at;
                parts[i] = (size_t)sizes[i];
                at += sizes[i];
            }
        }
        c = s.with();
        s.must(tutti_gather_v_at(s.job.site, send, (size_t)bytes, s.leads() ? into.data() : nullptr,
                                 s.leads() ? parts.data() : nullptr, TUTTI_U8, 0, local, &c));
        if (s.leads()) {
            s.meet({ "gather", type, -1, root, -1 });
            std::vector<int64_t> sends((size_t)where.number(), 0);
            sends[(size_t)at_host] = (int64_t)own;
            std::vector<int64_t> recvs = s.swap_sizes(sends);
            for (int64_t b : recvs)
                incoming += b;
            all = s.scratch(5, (size_t)incoming);
            s.across([&](Leaders &l, const Patience &p) {
                l.all_to_all(block, sends, all, recvs, p);
            });
        }
        if (!near)
            return last_barrier(s, local);
        c = s.with(true);
        s.must(tutti_broadcast_at(s.job.site, &incoming, 8, TUTTI_U8, 0, local, &c));
        std::unique_ptr<char[]> got(new char[is_root ? (size_t)incoming + 1 : 1]);
        pass_down(s, s.leads() ? all.const_data_ptr() : nullptr, got.get(), (size_t)incoming,
                  where.place[(size_t)root], local, ranks, me, true);
        if (!is_root)
            return;
        const char *at = got.get();
        for (const auto &theirs : where.ranks) {
            std::vector<int64_t> told(theirs.size());
            memcpy(told.data(), at, 8 * theirs.size());
            at += 8 * theirs.size();
            for (size_t i = 0; i < theirs.size(); i++) {
                size_t r = (size_t)theirs[i];
                if ((size_t)told[i] != count[r] * size)
                    throw Failed{ mismatched(
                        c10::str("gather at ", s.job.site, ": rank ", r, " gave ", told[i],
                                 " bytes; the root, rank ", root, ", expects ", count[r] * size)) };
                if (told[i])
                    memcpy(to[r], at, (size_t)told[i]);
                at += told[i];
            }
        }
    });
}

int Hosts::scatter_v(const char *site, const void *const send[], const size_t counts[], void *recv,
                     size_t n, tutti_type type, int root, const tutti_call *k)
{
    bool is_root = where.rank == root;
    std::vector<const void *> from(send, send + (is_root ? where.size() : 0));
    std::vector<size_t> count(counts, counts + (is_root ? where.size() : 0));
    return put(site, k, [=, this](Step &s) {
        size_t size = type_size(type), ranks = where.here().size();
        int at_host = where.host[(size_t)root], me = where.place[(size_t)where.rank];
        bool near = at_host == where.mine;
        s.same_root("scatter", root);
        /* to the leader: in order of hosts, the bytes of each rank, then all bytes */
        std::vector<int64_t> sizes((size_t)where.size());
        int64_t whole = 0;
        std::unique_ptr<char[]> packed;
        at::Tensor all, block;
        if (is_root) {
            for (size_t c : count)
                whole += (int64_t)(c * size);
            packed.reset(new char[(size_t)whole + 1]);
            char *at = packed.get();
            size_t i = 0;
            for (const auto &theirs : where.ranks)
                for (int r : theirs) {
                    sizes[i++] = (int64_t)(count[(size_t)r] * size);
                    if (count[(size_t)r])
                        memcpy(at, from[(size_t)r], count[(size_t)r] * size);
                    at += count[(size_t)r] * size;
                }
        }
        if (near) {
            tutti_call c = s.with();
            int at_place = where.place[(size_t)root];
            s.must(tutti_broadcast_at(s.job.site, sizes.data(), 8 * sizes.size(), TUTTI_U8,
                                      at_place, local, &c));
            whole = 0;
            for (int64_t b : sizes)
                whole += b;
            if (s.leads())
                all = s.scratch(4, (size_t)whole);
            pass_up(s, packed.get(), s.leads() ? all.mutable_data_ptr() : nullptr, (size_t)whole,
                    at_place, local, ranks, me);
        }
        int64_t mine = (int64_t)(n * size);
        std::vector<int64_t> wanted(ranks);
        tutti_call c = s.with();
        s.must(tutti_all_gather_at(s.job.site, &mine, wanted.data(), 8, TUTTI_U8, local, &c));
        std::vector<const void *> outs(ranks);
        std::vector<size_t> parts(ranks);
        if (s.leads()) {
            s.meet({ "scatter", type, -1, root, -1 });
            /* a host's block: the sizes of its ranks' parts, then the parts */
            at::Tensor blocks = s.scratch(6, near ? (size_t)whole + 8 * sizes.size() : 0);
            std::vector<int64_t> sends((size_t)where.number(), 0), recvs, told(ranks);
            const char *part = near ? (const char *)all.const_data_ptr() : nullptr;
            char *to = (char *)blocks.mutable_data_ptr();
            size_t i = 0;
            for (size_t h = 0; near && h < sends.size(); h++) {
                size_t there = where.ranks[h].size();
                int64_t bytes = 0;
                for (size_t j = 0; j < there; j++)
                    bytes += sizes[i + j];
                memcpy(to, &sizes[i], 8 * there);
                if (bytes)
                    memcpy(to + 8 * there, part, (size_t)bytes);
                sends[h] = bytes + (int64_t)(8 * there);
                to += sends[h];
                part += bytes;
                i += there;
            }
            recvs = s.swap_sizes(sends);
            block = s.scratch(5, (size_t)recvs[(size_t)at_host]);
            s.across([&](Leaders &l, const Patience &p) {
                l.all_to_all(blocks, sends, block, recvs, p);
            });
            memcpy(told.data(), block.const_data_ptr(), 8 * ranks);
            const char *at = (const char *)block.const_data_ptr() + 8 * ranks;
            for (size_t j = 0; j < ranks; j++) {
                if (told[j] != wanted[j])
                    throw Failed{ mismatched(
                        c10::str("scatter at ", s.job.site, ": the root, rank ", root, ", gave ",
                                 told[j], " bytes to rank ", where.here()[j], ", which expects ",
                                 wanted[j])) };
                outs[j] = at;
                parts[j] = (size_t)wanted[j];
                at += wanted[j];
            }
        }
        c = s.with(true);
        s.must(tutti_scatter_v_at(s.job.site, s.leads() ? outs.data() : nullptr,
                                  s.leads() ? parts.data() : nullptr, recv, (size_t)mine, TUTTI_U8,
                                  0, local, &c));
    });
}

/* Within the host directly; for other hosts by the leader, which sorts by host: for host h, of each
 * rank here to each rank there, first all sizes, then all bytes. */
int Hosts::all_to_all_v(const char *site, const void *const send[], const size_t sends[],
                        void *const recv[], const size_t recvs[], tutti_type type,
                        const tutti_call *k)
{
    std::vector<const void *> from(send, send + where.size());
    std::vector<void *> to(recv, recv + where.size());
    std::vector<size_t> out(sends, sends + where.size()), in(recvs, recvs + where.size());
    return put(site, k, [=, this](Step &s) {
        size_t size = type_size(type), ranks = where.here().size(), hosts = where.ranks.size();
        std::vector<const void *> near_from;
        std::vector<void *> near_to;
        std::vector<size_t> near_out, near_in;
        for (int r : where.here()) {
            near_from.push_back(from[(size_t)r]);
            near_to.push_back(to[(size_t)r]);
            near_out.push_back(out[(size_t)r]);
            near_in.push_back(in[(size_t)r]);
        }
        tutti_call c = s.with();
        s.must(tutti_all_to_all_v_at(s.job.site, near_from.data(), near_out.data(), near_to.data(),
                                     near_in.data(), type, local, &c));
        /* my bundle: the size for every rank of every host in order, then the bytes */
        size_t all_ranks = (size_t)where.size(), far = 0;
        std::vector<int64_t> sizes;
        for (size_t h = 0; h < hosts; h++)
            for (int r : where.ranks[h]) {
                sizes.push_back((int)h == where.mine ? 0 : (int64_t)(out[(size_t)r] * size));
                far += (size_t)sizes.back();
            }
        int64_t bundle = (int64_t)(8 * all_ranks + far);
        std::unique_ptr<char[]> mine(new char[(size_t)bundle]);
        memcpy(mine.get(), sizes.data(), 8 * all_ranks);
        char *at = mine.get() + 8 * all_ranks;
        for (size_t h = 0; h < hosts; h++)
            for (int r : where.ranks[h])
                if ((int)h != where.mine && out[(size_t)r]) {
                    memcpy(at, from[(size_t)r], out[(size_t)r] * size);
                    at += out[(size_t)r] * size;
                }
        std::vector<int64_t> bundles(ranks);
        c = s.with();
        s.must(tutti_all_gather_at(s.job.site, &bundle, bundles.data(), 8, TUTTI_U8, local, &c));
        std::vector<std::vector<char>> down(ranks);     /* for each rank here: sizes, then bytes */
        std::vector<void *> into(ranks);
        std::vector<size_t> parts(ranks);
        at::Tensor gathered;
        if (s.leads()) {
            size_t sum = 0;
            for (int64_t b : bundles)
                sum += (size_t)b;
            gathered = s.scratch(4, sum);
            char *up = (char *)gathered.mutable_data_ptr();
            for (size_t i = 0; i < ranks; i++) {
                into[i] = up;
                parts[i] = (size_t)bundles[i];
                up += bundles[i];
            }
        }
        c = s.with();
        s.must(tutti_gather_v_at(s.job.site, mine.get(), (size_t)bundle,
                                 s.leads() ? into.data() : nullptr,
                                 s.leads() ? parts.data() : nullptr, TUTTI_U8, 0, local, &c));
        std::vector<int64_t> lengths(ranks);
        if (s.leads()) {
            s.meet({ "all_to_all", type });
            s.exchange_bundles(into, down);
            for (size_t i = 0; i < ranks; i++)
                lengths[i] = (int64_t)down[i].size();
        }
        c = s.with(true);
        s.must(tutti_broadcast_at(s.job.site, lengths.data(), 8 * ranks, TUTTI_U8, 0, local, &c));
        size_t length = (size_t)lengths[(size_t)where.place[(size_t)where.rank]];
        std::unique_ptr<char[]> got(new char[length + 1]);
        std::vector<const void *> outs(ranks);
        for (size_t i = 0; i < ranks && s.leads(); i++) {
            outs[i] = down[i].data();
            parts[i] = down[i].size();
        }
        c = s.with(true);
        s.must(tutti_scatter_v_at(s.job.site, s.leads() ? outs.data() : nullptr,
                                  s.leads() ? parts.data() : nullptr, got.get(), length, TUTTI_U8,
                                  0, local, &c));
        std::vector<int64_t> told(all_ranks);
        memcpy(told.data(), got.get(), 8 * all_ranks);
        const char *data = got.get() + 8 * all_ranks;
        for (int r = 0; r < where.size(); r++) {
            if (where.host[(size_t)r] == where.mine)
                continue;
            if ((size_t)told[(size_t)r] != in[(size_t)r] * size)
                throw Failed{ mismatched(c10::str("all_to_all at ", s.job.site, ": rank ", r,
                                                  " gave ", told[(size_t)r], " bytes to rank ",
                                                  where.rank, ", which expects ",
                                                  in[(size_t)r] * size)) };
            if (told[(size_t)r])
                memcpy(to[(size_t)r], data, (size_t)told[(size_t)r]);
            data += told[(size_t)r];
        }
    });
}

/* bundles: of each rank here. down: for each rank here, the size from every rank of the group, in
 * the order of ranks, then the bytes in that order. */
void Step::exchange_bundles(const std::vector<void *> &bundles,
                            std::vector<std::vector<char>> &down) const
{
    const Hosted &where = hosts.where;
    size_t number = where.ranks.size(), here = bundles.size(), all_ranks = (size_t)where.size();
    std::vector<std::vector<char>> blocks(number);
    std::vector<std::vector<int64_t>> sizes(here, std::vector<int64_t>(all_ranks));
    std::vector<const char *> data(here);
    for (size_t i = 0; i < here; i++) {
        memcpy(sizes[i].data(), bundles[i], 8 * all_ranks);
        data[i] = (const char *)bundles[i] + 8 * all_ranks;
    }
    size_t first = 0;
    std::vector<int64_t> sends;
    for (size_t h = 0; h < number; h++) {
        size_t there = where.ranks[h].size();
        auto &block = blocks[h];
        if ((int)h != where.mine) {
            for (size_t i = 0; i < here; i++)
                block.insert(block.end(), (char *)&sizes[i][first],
                             (char *)(&sizes[i][first] + there));
            for (size_t i = 0; i < here; i++) {
                size_t bytes = 0;
                for (size_t j = 0; j < there; j++)
                    bytes += (size_t)sizes[i][first + j];
                block.insert(block.end(), data[i], data[i] + bytes);
                data[i] += bytes;
            }
        }
        sends.push_back((int64_t)block.size());
        first += there;
    }
    std::vector<int64_t> recvs = swap_sizes(sends);
    size_t out_bytes = 0, in_bytes = 0;
    for (size_t h = 0; h < number; h++) {
        out_bytes += (size_t)sends[h];
        in_bytes += (size_t)recvs[h];
    }
    at::Tensor out = scratch(5, out_bytes), in = scratch(6, in_bytes);
    char *at = (char *)out.mutable_data_ptr();
    for (auto &block : blocks) {
        if (!block.empty())
            memcpy(at, block.data(), block.size());
        at += block.size();
    }
    across([&](Leaders &l, const Patience &p) { l.all_to_all(out, sends, in, recvs, p); });
    /* from[rank]: its sizes for the ranks here, its bytes for them */
    struct From { std::vector<int64_t> sizes; const char *data = nullptr; };
    std::vector<From> from(all_ranks);
    const char *got = (const char *)in.const_data_ptr();
    for (size_t h = 0; h < number; h++) {
        if ((int)h == where.mine)
            continue;
        for (int r : where.ranks[h]) {
            from[(size_t)r].sizes.resize(here);
            memcpy(from[(size_t)r].sizes.data(), got, 8 * here);
            got += 8 * here;
        }
        for (int r : where.ranks[h]) {
            from[(size_t)r].data = got;
            for (int64_t b : from[(size_t)r].sizes)
                got += b;
        }
    }
    for (size_t i = 0; i < here; i++) {
        std::vector<char> &mine = down[i];
        for (size_t r = 0; r < all_ranks; r++) {
            int64_t b = from[r].data ? from[r].sizes[i] : 0;
            mine.insert(mine.end(), (char *)&b, (char *)(&b + 1));
        }
        for (size_t r = 0; r < all_ranks; r++)
            if (from[r].data) {
                mine.insert(mine.end(), from[r].data, from[r].data + from[r].sizes[i]);
                from[r].data += from[r].sizes[i];
            }
    }
}

}
