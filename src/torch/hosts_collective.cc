/* The collectives of a group on several hosts. Each ends with a step of the host in which all its
 * ranks take part: so on one host all succeed or all fail. A host may have ended an operation
 * well that fails on another; its next one fails.
 *
 * What the leader gives to the engine lies in the leader's own buffers, since an engine that hangs
 * may use them for longer than the program keeps its own. Cost: on the leader a copy more; the ways
 * that move single blocks (gather, scatter, all_to_all) pass each byte through two leaders. */
#include "torch/step.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "torch/leaders_fold.h"

namespace tutti {

/* ---- steps ---- */

static const int GRACE_MS_OF_LEADER = 900;     /* as long as it takes to find who is to blame */

tutti_call Step::with(bool last) const
{
    tutti_call call{};
    auto ms = std::min(job.left() + std::chrono::milliseconds(last ? GRACE_MS_OF_LEADER : 0),
                       std::chrono::milliseconds(INT_MAX));
    call.timeout_ms = (int)ms.count();
    return call;
}

namespace {

/* As it goes over the link. */
struct Header {
    char what[24], site[64];
    int32_t type, op, root, spare;
    int64_t count;
};
static_assert(sizeof(Header) <= Step::INLINE_STEP - Step::INLINE_BYTES);

std::string call_text(const Header &h)
{
    std::string text = h.what;
    if (h.count >= 0)
        text += c10::str(" of ", h.count, " elements");
    if (h.type >= 0)
        text += c10::str(", type ", h.type);
    if (h.op >= 0)
        text += c10::str(", operation ", h.op);
    if (h.root >= 0)
        text += c10::str(", root ", h.root);
    return text + " at " + h.site;
}

bool alike(const Header &a, const Header &b)
{
    return strcmp(a.what, b.what) == 0 && a.type == b.type && a.op == b.op && a.root == b.root
        && a.count == b.count;
}

template <class T> std::vector<T> copied(const T *from, int n)
{
    return from ? std::vector<T>(from, from + n) : std::vector<T>();
}

char *at_of(const at::Tensor &t) { return (char *)t.mutable_data_ptr(); }

void copy_bytes(void *to, const void *from, size_t n)
{
    if (n && to != from)
        memcpy(to, from, n);
}

/* memory of this rank within an operation */
struct Room {
    std::unique_ptr<char[]> at;
    explicit Room(size_t n) : at(new char[n ? n : 1]) {}
};

}

const char *Step::meet(const Descriptor &d, const void *payload, size_t bytes) const
{
    size_t n = (size_t)hosts.where.number();
    at::Tensor mine = scratch(0, INLINE_STEP), all = scratch(1, n * INLINE_STEP);
    memset(at_of(mine), 0, INLINE_STEP);
    auto *h = (Header *)at_of(mine);
    snprintf(h->what, sizeof h->what, "%s", d.what);
    snprintf(h->site, sizeof h->site, "%s", job.site);
    h->type = d.type;
    h->op = d.op;
    h->root = d.root;
    h->count = d.count;
    copy_bytes(at_of(mine) + INLINE_STEP - INLINE_BYTES, payload, bytes);
    across([&](Leaders &leaders, const Patience &p) { leaders.all_gather(mine, all, p); });
    auto header = [&](size_t i) { return (const Header *)(at_of(all) + i * INLINE_STEP); };
    for (size_t i = 1; i < n; i++)
        if (!alike(*header(0), *header(i)))
            throw Failed{ hosts.mismatched(
                c10::str("the hosts called different things: ", hosts.where.named(0), ": ",
                         call_text(*header(0)), "; ", hosts.where.named((int)i), ": ",
                         call_text(*header(i)))) };
    return at_of(all) + INLINE_STEP - INLINE_BYTES;
}

std::vector<int64_t> Step::swap_sizes(const std::vector<int64_t> &sizes) const
{
    size_t n = sizes.size();
    at::Tensor in = scratch(2, n * 8), out = scratch(3, n * 8);
    memcpy(at_of(in), sizes.data(), n * 8);
    std::vector<int64_t> each(n, 8), got(n);
    across([&](Leaders &leaders, const Patience &p) {
        leaders.all_to_all(in, each, out, each, p);
    });
    memcpy(got.data(), at_of(out), n * 8);
    return got;
}

void Step::same_root(const char *what, int root) const
{
    struct { char what[24]; int root; } mine{};
    snprintf(mine.what, sizeof mine.what, "%s", what);
    mine.root = root;
    tutti_call c = with();
    must(tutti_same_at(job.site, &mine, sizeof mine, hosts.local, &c));
}

Failure Hosts::mismatched(const std::string &report)
{
    Failure f;
    f.error = -EPROTO;
    f.report = report;
    return spread(f, true);
}

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
    queue.push_back(made);
    changed.notify_all();
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

/* An all_reduce of two hosts in chunks: while the leaders exchange one, each host reduces the
 * next. */
void Step::reduce_chunks(const Descriptor &d, const Folding &f, const char *in, char *out,
                         size_t count) const
{
    const size_t size = type_size(f.type), chunk = CHUNK_BYTES / size;
    const Hosted &where = hosts.where;
    at::Tensor sums[2];
    Leaders::Rest rest;
    if (leads())
        meet(d);
    auto reduce_here = [&](size_t k) {
        size_t at = k * chunk, n = std::min(chunk, count - at);
        if (leads())
            sums[k % 2] = scratch(4 + k % 2, n * size);
        tutti_call c = with(true);
        c.factor = factor;
        must(tutti_reduce_at(job.site, in + at * size, leads() ? at_of(sums[k % 2]) : nullptr, n,
                             f.type, f.here, 0, hosts.local, &c));
    };
    reduce_here(0);
    for (size_t k = 0, at = 0; at < count; k++, at += chunk) {
        size_t n = std::min(chunk, count - at);
        const at::Tensor &sum = sums[k % 2];
        at::Tensor others;
        if (leads()) {
            others = scratch(6, n * size);
            across([&](Leaders &l, const Patience &p) {
                rest = l.start_swap(sum, others, where.mine, p);
            });
        }
        if (at + chunk < count)
            reduce_here(k + 1);
        if (leads()) {
            across([&](Leaders &, const Patience &p) { rest(p); });
            fold_two(sum, others, where.mine, n, f.type, f.across, f.weights);
            if (f.divide)
                divide(at_of(sum), n, f.type, where.size());
        }
        tutti_call c = with(true);
        must(tutti_broadcast_at(job.site, leads() ? at_of(sum) : out + at * size, n, f.type, 0,
                                hosts.local, &c));
        if (leads())
            copy_bytes(out + at * size, at_of(sum), n * size);
    }
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
        const void *in = plain ? from[0] : mine.at.get();
        void *out = plain ? to[0] : mine.at.get();
        Descriptor d{ what, type, op, root, (int64_t)whole };
        if (plain && where.number() == 2 && whole * wide > Step::CHUNK_BYTES)
            return s.reduce_chunks(d, f, (const char *)in, (char *)out, whole);
        tutti_call c = s.with();
        c.factor = s.factor;
        at::Tensor sum;
        if (s.leads())
            sum = s.scratch(4, whole * wide);
        s.must(tutti_reduce_at(s.job.site, in, s.leads() ? at_of(sum) : nullptr, whole, f.type,
                               f.here, 0, local, &c));
        if (s.leads()) {
            if (whole * wide <= Step::INLINE_BYTES) {
                const char *all = s.meet(d, at_of(sum), whole * wide);
                std::vector<const void *> parts;
                for (int h = 0; h < where.number(); h++)
                    parts.push_back(all + (size_t)h * Step::INLINE_STEP);
                fold_parts(at_of(sum), parts, whole, f.type, f.across, f.weights);
            } else {
                s.meet(d);
                s.across([&](Leaders &l, const Patience &p) {
                    l.all_reduce(sum, whole, where.mine, f.type, f.across, f.weights, p);
                });
            }
            if (f.divide && !f.wide)
                divide(at_of(sum), whole, f.type, where.size());
        }
        c = s.with(true);
        s.must(tutti_broadcast_at(s.job.site, s.leads() ? at_of(sum) : out, whole, f.type, 0, local,
                                  &c));
        const char *result = s.leads() ? at_of(sum) : (char *)out;
        if (plain) {
            copy_bytes(out, result, whole * wide);
            return;
        }
        for (int i = 0; i < n; i++) {
            if (f.wide)
                narrow(to[(size_t)i], result, count[(size_t)i], type, where.size());
            else
                copy_bytes(to[(size_t)i], result, count[(size_t)i] * size);
            result += count[(size_t)i] * wide;
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
                l.reduce_scatter(sum, blocks, where.mine, result, f.type, f.across, f.weights, p);
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
                const char *heard = s.meet(d, at_of(mine), most);
                for (int h = 0; h < where.number(); h++)
                    copy_bytes(at_of(all) + (size_t)h * most,
                               heard + (size_t)h * Step::INLINE_STEP, most);
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
