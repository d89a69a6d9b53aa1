/* The collectives of a group on several hosts. Each ends with a step of the host in which all its
 * ranks take part: so on one host all succeed or all fail. A host may have ended an operation
 * well that fails on another; its next one fails.
 *
 * What the leader gives to the engine lies in the leader's own buffers, since an engine that hangs
 * may use them for longer than the program keeps its own. Cost: on the leader a copy more; the ways
 * that move single blocks (gather, scatter, all_to_all) pass each byte through two leaders. */
#include "torch/step.h"

#include "torch/leaders_fold.h"

namespace tutti {

template <class T> static std::vector<T> copied(const T *from, int n)
{
    return from ? std::vector<T>(from, from + n) : std::vector<T>();
}

/* memory of this rank within an operation */
struct Room {
    std::unique_ptr<char[]> at;
    explicit Room(size_t n) : at(new char[n ? n : 1]) {}
};

/* ---- all ranks alike ---- */

int Hosts::put(const char *site, const tutti_call *call, std::function<void(Step &)> body)
{
    Handle made = job(site, call);
    const void *factor = call->factor;
    made->body = [this, factor, body = std::move(body)](Job &it) {
        Step step{ *this, it };
        step.factor = factor;
        body(step);
    };
    std::lock_guard<std::mutex> hold(lock);
    made->number = ++numbered;
    queue.push_back(made);
    return handed(made, call);
}

int Hosts::barrier(const char *site, const tutti_call *k)
{
    return put(site, k, [this](Step &s) {
        tutti_call c = s.with();
        s.must(tutti_barrier_at(s.job.site, local, &c));
        if (s.leads())
            s.meet({ "barrier" });
        c = s.with(true);
        s.must(tutti_barrier_at(s.job.site, local, &c));
    });
}

/* How a reduction is divided between host and leaders. */
struct Folding {
    tutti_type type;
    tutti_op here, across;
    bool divide;                        /* by the number of ranks, at the end */
    bool wide;                          /* integers whose mean is of sums of 64 bits */
    std::vector<int> weights;
};

static bool is_integer(tutti_type t) { return t <= TUTTI_U64; }

static Folding folding_of(tutti_type type, tutti_op op, const Hosted &where)
{
    Folding f{ type, op, op, false, false, {} };
    for (const auto &ranks : where.ranks)
        f.weights.push_back((int)ranks.size());
    if (op == TUTTI_PREMUL_SUM)
        f.across = TUTTI_SUM;
    if (op != TUTTI_AVG)
        return f;
    bool small = type == TUTTI_F16 || type == TUTTI_BF16 || type == TUTTI_F8E4M3
        || type == TUTTI_F8E5M2;
    if (small)
        return f;                       /* means of means: a sum may be too large for the type */
    f.here = f.across = TUTTI_SUM;
    f.divide = true;
    f.wide = is_integer(type);
    if (f.wide)
        f.type = type <= TUTTI_U64 && type % 2 == 0 ? TUTTI_I64 : TUTTI_U64;
    return f;
}

/* Divides floating-point numbers. */
static void divide(void *at, size_t count, tutti_type type, int ranks)
{
    if (type == TUTTI_C64 || type == TUTTI_C128) {
        count *= 2;
        type = type == TUTTI_C64 ? TUTTI_F32 : TUTTI_F64;
    }
    if (type == TUTTI_F32)
        for (size_t i = 0; i < count; i++)
            ((float *)at)[i] /= (float)ranks;
    else
        for (size_t i = 0; i < count; i++)
            ((double *)at)[i] /= (double)ranks;
}

/* A reduction in chunks: while the leaders exchange one, each host hands out the one before it and
 * reduces the next. The first exchange begins beside the comparison. */
void Step::reduce_chunks(const Descriptor &d, const Folding &f, const char *in, char *out,
                         size_t count) const
{
    const size_t size = type_size(f.type), chunk = CHUNK_BYTES / size;
    const int tag = tag_of(d);
    at::Tensor sums[2];
    auto length = [&](size_t k) { return std::min(chunk, count - k * chunk); };
    auto reduce_here = [&](size_t k) {
        if (leads())
            sums[k % 2] = scratch(4 + k % 2, length(k) * size);
        tutti_call c = with(true);
        c.factor = factor;
        must(tutti_reduce_at(job.site, in + k * chunk * size,
                             leads() ? at_of(sums[k % 2]) : nullptr, length(k), f.type, f.here, 0,
                             hosts.local, &c));
    };
    auto start = [&](size_t k) {
        Reduction made;
        across([&](Leaders &l, const Patience &) {
            made = l.start_all_reduce({ sums[k % 2], length(k), out + k * chunk * size, f.type,
                                        f.across, &f.weights }, (int)(k % 2), tag);
        });
        return made;
    };
    const size_t chunks = (count + chunk - 1) / chunk;
    Reduction now, next;
    reduce_here(0);
    if (leads()) {
        next = start(0);
        meet(d);
    }
    if (chunks > 1)
        reduce_here(1);
    for (size_t k = 0; k < chunks; k++) {
        char *at = out + k * chunk * size;
        if (leads()) {
            now = std::move(next);
            across([&](Leaders &, const Patience &p) { now.arrived(p); });
            if (k + 1 < chunks)
                next = start(k + 1);
            across([&](Leaders &, const Patience &p) { now.finish(p); });
            if (f.divide && !f.wide)
                divide(at, length(k), f.type, hosts.where.size());
        }
        tutti_call c = with(true);
        must(tutti_broadcast_at(job.site, at, length(k), f.type, 0, hosts.local, &c));
        if (k + 2 < chunks)
            reduce_here(k + 2);
    }
}

/* All of it comes with the comparison. */
void Step::reduce_brief(const Descriptor &d, const Folding &f, const char *in, char *out,
                        size_t count) const
{
    const size_t bytes = count * type_size(f.type);
    char sum[INLINE_BYTES];
    tutti_call c = with();
    c.factor = factor;
    must(tutti_reduce_at(job.site, in, leads() ? sum : nullptr, count, f.type, f.here, 0,
                         hosts.local, &c));
    if (leads()) {
        Heard all = meet(d, sum, bytes);
        std::vector<const void *> parts;
        for (int h = 0; h < hosts.where.number(); h++)
            parts.push_back(all.of(h));
        fold_parts(out, parts, count, f.type, f.across, f.weights);
        if (f.divide && !f.wide)
            divide(out, count, f.type, hosts.where.size());
    }
    c = with(true);
    must(tutti_broadcast_at(job.site, out, count, f.type, 0, hosts.local, &c));
}

int Hosts::all_reduce_many(const char *site, const void *const send[], void *const recv[],
                           const size_t counts[], int n, tutti_type type, tutti_op op,
                           const tutti_call *k)
{
    return fold_all("all_reduce", -1, nullptr, site, send, recv, counts, n, type, op, k);
}

/* kept: memory that lasts as long as the operation */
int Hosts::fold_all(const char *what, int root, std::shared_ptr<char[]> kept, const char *site,
                    const void *const send[], void *const recv[], const size_t counts[], int n,
                    tutti_type type, tutti_op op, const tutti_call *k)
{
    auto from = copied(send, n);
    auto to = copied(recv, n);
    auto count = copied(counts, n);
    return put(site, k, [=, this](Step &s) {
        (void)kept;
        if (root >= 0)
            s.same_root(what, root);
        Folding f = folding_of(type, op, where);
        size_t size = type_size(type), whole = 0, wide = type_size(f.type);
        for (size_t c : count)
            whole += c;
        bool plain = n == 1 && !f.wide;
        Room mine(plain ? 0 : whole * wide);
        char *at = mine.at.get();
        for (int i = 0; i < n && !plain; i++) {
            if (f.wide)
                widen(at, from[(size_t)i], count[(size_t)i], type);
            else
                copy_bytes(at, from[(size_t)i], count[(size_t)i] * size);
            at += count[(size_t)i] * wide;
        }
        const char *in = plain ? (const char *)from[0] : mine.at.get();
        char *out = plain ? (char *)to[0] : mine.at.get();
        Descriptor d{ what, type, op, root, (int64_t)whole };
        if (whole * wide <= Step::INLINE_BYTES)
            s.reduce_brief(d, f, in, out, whole);
        else
            s.reduce_chunks(d, f, in, out, whole);
        for (int i = 0; i < n && !plain; i++) {
            if (f.wide)
                narrow(to[(size_t)i], out, count[(size_t)i], type, where.size());
            else
                copy_bytes(to[(size_t)i], out, count[(size_t)i] * size);
            out += count[(size_t)i] * wide;
        }
    });
}

int Hosts::reduce_scatter(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                          tutti_op op, const tutti_call *k)
{
    std::vector<const void *> from;
    for (int r = 0; r < where.size(); r++)
        from.push_back((const char *)send + (size_t)r * n * type_size(t));
    std::vector<size_t> counts((size_t)where.size(), n);
    return reduce_scatter_v(site, from.data(), counts.data(), recv, t, op, k);
}

int Hosts::reduce_scatter_v(const char *site, const void *const send[], const size_t counts[],
                            void *recv, tutti_type type, tutti_op op, const tutti_call *k)
{
    auto from = copied(send, where.size());
    auto count = copied(counts, where.size());
    return put(site, k, [=, this](Step &s) {
        Folding f = folding_of(type, op, where);
        size_t size = type_size(type), wide = type_size(f.type), whole = 0;
        std::vector<size_t> blocks;
        for (const auto &ranks : where.ranks) {
            blocks.push_back(0);
            for (int r : ranks)
                blocks.back() += count[(size_t)r];
            whole += blocks.back();
        }
        Room mine(whole * wide);
        char *at = mine.at.get();
        for (const auto &ranks : where.ranks)
            for (int r : ranks) {
                if (f.wide)
                    widen(at, from[(size_t)r], count[(size_t)r], type);
                else
                    copy_bytes(at, from[(size_t)r], count[(size_t)r] * size);
                at += count[(size_t)r] * wide;
            }
        tutti_call c = s.with();
        c.factor = s.factor;
        at::Tensor sum, result;
        if (s.leads())
            sum = s.scratch(4, whole * wide);
        s.must(tutti_reduce_at(s.job.site, mine.at.get(), s.leads() ? at_of(sum) : nullptr, whole,
                               f.type, f.here, 0, local, &c));
        size_t own = blocks[(size_t)where.mine];
        std::vector<const void *> outs;
        std::vector<size_t> parts;
        if (s.leads()) {
            result = s.scratch(5, own * wide);
            s.meet({ "reduce_scatter", type, op, -1, (int64_t)whole });
            s.across([&](Leaders &l, const Patience &p) {
                l.reduce_scatter(sum, blocks, result, f.type, f.across, f.weights, p);
            });
            if (f.divide && !f.wide)
                divide(at_of(result), own, f.type, where.size());
            if (f.wide) {
                at::Tensor sums = result;
                result = s.scratch(6, own * size);
                narrow(at_of(result), at_of(sums), own, type, where.size());
            }
            char *part = at_of(result);
            for (int r : where.here()) {
                outs.push_back(part);
                parts.push_back(count[(size_t)r]);
                part += count[(size_t)r] * size;
            }
        }
        c = s.with(true);
        s.must(tutti_scatter_v_at(s.job.site, s.leads() ? outs.data() : nullptr,
                                  s.leads() ? parts.data() : nullptr, recv,
                                  count[(size_t)where.rank], type, 0, local, &c));
    });
}

int Hosts::all_gather(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                      const tutti_call *k)
{
    std::vector<void *> to;
    for (int r = 0; r < where.size(); r++)
        to.push_back((char *)recv + (size_t)r * n * type_size(t));
    std::vector<size_t> counts((size_t)where.size(), n);
    return all_gather_v(site, send, n, to.data(), counts.data(), t, k);
}

int Hosts::all_gather_v(const char *site, const void *send, size_t n, void *const recv[],
                        const size_t counts[], tutti_type type, const tutti_call *k)
{
    auto to = copied(recv, where.size());
    auto count = copied(counts, where.size());
    return put(site, k, [=, this](Step &s) {
        size_t size = type_size(type), most = 0, sum = 0;
        for (const auto &ranks : where.ranks) {
            size_t block = 0;
            for (int r : ranks)
                block += count[(size_t)r] * size;
            most = std::max(most, block);
            sum += block;
        }
        size_t all_bytes = most * (size_t)where.number();
        bool brief = most <= Step::INLINE_BYTES;
        tutti_call c = s.with();
        at::Tensor mine, all;
        std::vector<void *> into;
        std::vector<size_t> parts;
        if (s.leads()) {
            mine = s.scratch(4, most);
            all = s.scratch(5, all_bytes);
            char *at = at_of(mine);
            for (int r : where.here()) {
                into.push_back(at);
                parts.push_back(count[(size_t)r]);
                at += count[(size_t)r] * size;
            }
        }
        s.must(tutti_gather_v_at(s.job.site, send, n, s.leads() ? into.data() : nullptr,
                                 s.leads() ? parts.data() : nullptr, type, 0, local, &c));
        if (s.leads()) {
            Descriptor d{ "all_gather", type, -1, -1, (int64_t)sum };
            if (brief) {
                Heard heard = s.meet(d, at_of(mine), most);
                for (int h = 0; h < where.number(); h++)
                    copy_bytes(at_of(all) + (size_t)h * most, heard.of(h), most);
            } else {
                s.meet(d);
                s.across([&](Leaders &l, const Patience &p) { l.all_gather(mine, all, p); });
            }
        }
        Room here(s.leads() ? 0 : all_bytes);
        char *got = s.leads() ? at_of(all) : here.at.get();
        c = s.with(true);
        s.must(tutti_broadcast_at(s.job.site, got, all_bytes, TUTTI_U8, 0, local, &c));
        for (int h = 0; h < where.number(); h++) {
            const char *at = got + (size_t)h * most;
            for (int r : where.ranks[(size_t)h]) {
                copy_bytes(to[(size_t)r], at, count[(size_t)r] * size);
                at += count[(size_t)r] * size;
            }
        }
    });
}

}
