/* Job: one rank's part of an operation between hosts: its steps within the host, and the leader's
 *      among leaders.
 * Owns: nothing.
 * Never: goes on after a step has failed: it throws Failed. */
#ifndef TORCH_STEP_H
#define TORCH_STEP_H

#include "torch/hosts.h"

namespace tutti {

/* What all hosts must have called alike. -1: not compared. */
struct Descriptor {
    const char *what;
    int type = -1, op = -1, root = -1;
    int64_t count = -1;
};

struct Header;                          /* the same, as leaders tell each other */

/* What host h gave to a meeting. */
struct Heard {
    const char *at;
    size_t step;
    const char *of(int h) const { return at + (size_t)h * step; }
};

struct Folding;                         /* how a reduction is divided between host and leaders */

struct Step {
    Hosts &hosts;
    Job &job;
    const void *factor = nullptr;       /* of PREMUL_SUM */

    bool leads() const { return hosts.where.leads(); }
    /* A step of this host. last: its ranks may wait for the leader, which waits for other hosts and
     * has the better report. */
    tutti_call with(bool last = false) const;
    void must(int r) const
    {
        if (r < 0)
            throw Failed{ hosts.step_failure(job, r) };
    }
    /* A step among leaders: f(leaders, patience). */
    template <class F> void across(const F &f) const
    {
        int turn = 0;
        Patience patience{ [this, &turn] { hosts.pulse(job, turn++); }, job.left() };
        try {
            f(*hosts.leaders, patience);
        } catch (const Failed &) {
            throw;
        } catch (const std::exception &error) {
            Failure seen;
            seen.error = -EOWNERDEAD;
            seen.report = error.what();
            throw Failed{ hosts.blamed(job, seen) };
        }
    }
    /* The leaders compare what their hosts called; each gives up to INLINE_BYTES with it, as many
     * as the others; null: zeros. What is heard lasts until the next meeting. */
    static const size_t INLINE_BYTES = 896, WITHIN = 56;
    Heard meet(const Descriptor &, const void *payload = nullptr, size_t bytes = 0) const;
    /* of messages that are sent beside the meeting: no other call has it, nor tag + 1 */
    int tag_of(const Descriptor &) const;
    [[noreturn]] void tell_calls(const Header &mine) const;
    static const size_t CHUNK_BYTES = 1 << 20;
    void reduce_brief(const Descriptor &, const Folding &, const char *in, char *out,
                      size_t count) const;
    void reduce_chunks(const Descriptor &, const Folding &, const char *in, char *out,
                       size_t count) const;
    /* of each host to each, one number */
    std::vector<int64_t> swap_sizes(const std::vector<int64_t> &sizes) const;
    /* of all_to_all: what the ranks here give to other hosts, what comes back for each */
    void exchange_bundles(const std::vector<void *> &bundles,
                          std::vector<std::vector<char>> &down) const;
    at::Tensor scratch(size_t which, size_t bytes) const
    {
        return hosts.leaders->scratch(10 + which, bytes);
    }
    /* Of a rooted operation: the ranks of this host must mean the same root. */
    void same_root(const char *what, int root) const;
};

}

#endif
