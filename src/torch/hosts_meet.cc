/* What the leaders of an operation compare before or beside its data: so hosts that call different
 * things are told, and nobody takes one's bytes for another's.
 * Cost: 64 bytes of each host, which a host passes on; up to 56 bytes of data are in them. */
#include "torch/step.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

namespace tutti {

/* For a leader to find who is to blame. Whom it then has not told asks in its place. */
static const int GRACE_MS_OF_LEADER = 350;

tutti_call Step::with(bool last) const
{
    tutti_call call{};
    auto ms = std::min(job.left() + std::chrono::milliseconds(last ? GRACE_MS_OF_LEADER : 0),
                       std::chrono::milliseconds(INT_MAX));
    call.timeout_ms = (int)ms.count();
    return call;
}

/* What the leaders compare. Of it a digest goes over the link; all of it only if they differ. */
struct Header {
    char what[24], site[64];
    int32_t type, op, root, spare;
    int64_t count;
};

namespace {

struct Brief {
    uint64_t call;
    char bytes[Step::WITHIN];
};

/* The site is not of it: hosts may call from different lines. */
uint64_t digest_of(const Header &h)
{
    uint64_t sum = 0xcbf29ce484222325;
    auto add = [&](const void *at, size_t n) {
        for (size_t i = 0; i < n; i++)
            sum = (sum ^ ((const unsigned char *)at)[i]) * 0x100000001b3;
    };
    add(h.what, sizeof h.what);
    add(&h.type, sizeof h.type + sizeof h.op + sizeof h.root);
    add(&h.count, sizeof h.count);
    return sum ^ sum >> 29;
}

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

}

static Header header_of(const Descriptor &d, const char *site)
{
    Header h;
    memset(&h, 0, sizeof h);
    snprintf(h.what, sizeof h.what, "%s", d.what);
    snprintf(h.site, sizeof h.site, "%s", site);
    h.type = d.type;
    h.op = d.op;
    h.root = d.root;
    h.count = d.count;
    return h;
}

int Step::tag_of(const Descriptor &d) const
{
    const uint32_t tag = (uint32_t)digest_of(header_of(d, job.site)) & 0x7ffffffe;
    return (int)(tag < Leaders::TAGS ? tag + Leaders::TAGS : tag);
}

/* All leaders have seen that what they called is not the same: what it is. */
void Step::tell_calls(const Header &mine) const
{
    size_t n = (size_t)hosts.where.number();
    std::vector<Header> all(n);
    across([&](Leaders &l, const Patience &p) {
        l.all_gather_brief({ { &mine, (char *)all.data(), sizeof mine, Leaders::TAG_CALLS } }, p);
    });
    size_t other = 1;
    while (other < n - 1 && digest_of(all[other]) == digest_of(all[0]))
        other++;
    throw Failed{ hosts.mismatched(
        c10::str("the hosts called different things: ", hosts.where.named(0), ": ",
                 call_text(all[0]), "; ", hosts.where.named((int)other), ": ",
                 call_text(all[other]))) };
}

Heard Step::meet(const Descriptor &d, const void *payload, size_t bytes) const
{
    size_t n = (size_t)hosts.where.number();
    bool within = bytes <= WITHIN;
    at::Tensor all = scratch(0, n * sizeof(Brief)), kept = scratch(1, (n + 1) * bytes + 1);
    Header header = header_of(d, job.site);
    Brief mine{ digest_of(header), {} };
    if (within)
        copy_bytes(mine.bytes, payload, payload ? bytes : 0);
    else if (payload)
        memcpy(at_of(kept) + n * bytes, payload, bytes);
    std::vector<Leaders::Brief> briefs{ { &mine, at_of(all), sizeof mine, Leaders::TAG_MEET } };
    if (!within)
        briefs.push_back({ at_of(kept) + n * bytes, at_of(kept), bytes, tag_of(d) });
    across([&](Leaders &l, const Patience &p) { l.all_gather_brief(briefs, p); });
    const Brief *heard = (const Brief *)at_of(all);
    for (size_t i = 1; i < n; i++)
        if (heard[i].call != heard[0].call)
            tell_calls(header);
    return within ? Heard{ heard->bytes, sizeof(Brief) } : Heard{ at_of(kept), bytes };
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

}
