/* Messages and barriers. Messages use host memory: a tensor of a device is sent from a copy on the
 * host.
 *
 * monitored_barrier must leave the group whole when ranks are missing. A barrier of the library
 * does not. So it is made of messages: a deadline fails only the message. Every rank sends to rank
 * 0. Rank 0 waits for each, then sends the result to all ranks, also to late ones. A message
 * carries the number of its barrier. So rank 0 drops what a late rank sends for an earlier barrier.
 * Cost: two messages for each rank but rank 0. */
#include "torch/plan.h"

#include <limits.h>

#include "torch/lists.h"

namespace tutti {

static const int MONITOR_TAG = INT_MAX, FIRST_TAG = INT_MAX - 1;       /* of our own messages */
static const Async AT_ONCE = { true, c10d::kUnsetTimeout };

static void check_tag(const char *what, int tag)
{
    if (tag < 0)
        refuse(what, c10::str("Tag must be nonnegative, not ", tag));
    if (tag >= FIRST_TAG)
        refuse(what,
               c10::str("tag ", tag, " is the group's own: give one from 0 to ", FIRST_TAG - 1));
}

WorkPtr Backend::send(Tensors &tensors, int to, int tag)
{
    Plan p(*this, "send");
    single(p.what, "tensor", tensors.size());
    check_tag(p.what, tag);
    at::Tensor here = tensors[0].is_cuda() ? tensors[0].cpu() : tensors[0];
    Side x = p.side(here, Way::IN);
    p.flight.message = true;
    return p.go(c10d::OpType::SEND, title("send"), tensors, x.device, AT_ONCE,
                [&](const char *site, const Road &c, const tutti_call *k) {
                    return over_send(site, x.data(), x.count(), x.type, to, tag, c, k);
                });
}

WorkPtr Backend::receive(Tensors &tensors, int from, int tag, c10d::OpType type)
{
    Plan p(*this, "recv");
    single(p.what, "tensor", tensors.size());
    check_tag(p.what, tag);
    at::Tensor here = tensors[0];
    if (here.is_cuda()) {
        here = at::empty(here.sizes(), here.options().device(at::kCPU));
        p.flight.held.put_back(p.what, tensors[0], here);
    }
    Side x = p.side(here, Way::OUT);
    p.flight.message = true;
    auto work = p.work(type, title(from == TUTTI_ANY ? "recvAnySource" : "recv"), tensors);
    work->expected = (int64_t)x.count();
    p.start(*work, x.device, AT_ONCE, [&](const char *site, const Road &c, const tutti_call *k) {
        return over_recv(site, x.data(), x.count(), x.type, from, tag, &p.landed->got, c, k);
    });
    return given(std::move(work));
}

WorkPtr Backend::recv(Tensors &tensors, int from, int tag)
{
    root("recv", from);
    return receive(tensors, from, tag, c10d::OpType::RECV);
}

WorkPtr Backend::recvAnysource(Tensors &tensors, int tag)
{
    return receive(tensors, TUTTI_ANY, tag, c10d::OpType::RECVANYSOURCE);
}

WorkPtr Backend::barrier(const c10d::BarrierOptions &o)
{
    Plan p(*this, "barrier");
    return p.go(c10d::OpType::BARRIER, title("barrier"), {}, c10::Device(c10::kCPU), async_of(o),
                [](const char *site, const Road &c, const tutti_call *k) {
                    return over_barrier(site, c, k);
                });
}

/* ---- monitored_barrier ---- */

namespace {

struct Word { uint64_t number; int64_t late; };     /* late: how many ranks did not come */

/* Sends or receives one message of the barrier and waits for it. The library's result: 0,
 * -ETIMEDOUT, … */
template <class Call>
int exchange(Comm &comm, std::chrono::milliseconds timeout, const Call &call, Failure *why)
{
    Flight flight;
    flight.message = true;
    tutti_call with{};
    with.timeout_ms = timeout == c10d::kUnsetTimeout ? 0 : std::max(1, milliseconds(timeout));
    *why = Failure();
    if (comm.start(flight, with, why, call))
        comm.await(flight, 0, why);
    return why->error;
}

int hear(Comm &comm, int from, int tag, Word *word, std::chrono::milliseconds timeout, Failure *why)
{
    return exchange(comm, timeout, [=](const char *site, const Road &c, const tutti_call *k) {
        return over_recv(site, word, sizeof *word, TUTTI_U8, from, tag, nullptr, c, k);
    }, why);
}

int tell(Comm &comm, int to, int tag, const Word *word, std::chrono::milliseconds timeout,
         Failure *why)
{
    return exchange(comm, timeout, [=](const char *site, const Road &c, const tutti_call *k) {
        return over_send(site, word, sizeof *word, TUTTI_U8, to, tag, c, k);
    }, why);
}

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point end)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
}

std::string listed(const std::vector<int> &ranks)
{
    std::string text;
    for (int r : ranks)
        text += (text.empty() ? "" : ", ") + std::to_string(r);
    return text;
}

[[noreturn]] void late(const std::string &text, const std::vector<int> &missing)
{
    Failure f;
    f.error = -ETIMEDOUT;
    f.report = text;
    f.ranks = missing;
    fail(f);
}

std::string failed(const std::vector<int> &ranks, bool all)
{
    return c10::str("[Rank 0]: ", all ? "Ranks " : "Rank ",
                    all ? listed(ranks) : std::to_string(ranks[0]),
                    " failed to pass monitoredBarrier");
}

/* On rank 0: the ranks that did not come in time. If all missing ranks are to be named, each rank
 * may use the whole time. A rank that has died or left cannot come. */
std::vector<int> missing_of(Comm &comm, uint64_t number, std::chrono::milliseconds limit, bool all)
{
    std::vector<int> missing;
    auto end = deadline_after(limit);
    for (int r = 1; r < comm.size; r++) {
        Word word{ 0, 0 };
        Failure why;
        int error = 0;
        auto until = all
            ? std::max(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(1))
            : end;
        while (word.number < number && error == 0)
            error = hear(comm, r, MONITOR_TAG, &word, left_until(until), &why);
        if (error == -ETIMEDOUT)
            missing.push_back(r);
        else if (error == -EOWNERDEAD) {
            missing.push_back(r);
            why.report = failed(missing, all) + "\n" + why.report;
            fail(why);
        } else if (error)
            fail(why);
        if (!missing.empty() && !all)
            break;
    }
    return missing;
}

}

void Backend::monitoredBarrier(const c10d::BarrierOptions &o, bool wait_all_ranks)
{
    shared();
    std::chrono::milliseconds limit = o.timeout == c10d::kUnsetTimeout ? options->timeout
                                                                       : o.timeout;
    const uint64_t number = ++monitored;
    Failure why;
    Word word{ number, 0 };
    if (comm->rank != 0) {
        std::string said = c10::str("Rank ", comm->rank,
                                    " successfully reached monitoredBarrier, but received errors "
                                    "while waiting for send/recv from "
                                    "rank 0. Please check rank 0 logs for faulty rank.");
        int error = tell(*comm, 0, MONITOR_TAG, &word, options->timeout, &why);
        for (word.number = 0; error == 0 && word.number < number;)
            error = hear(*comm, 0, MONITOR_TAG, &word, options->timeout, &why);
        if (error) {
            why.report = said + "\n" + why.report;
            fail(why);
        }
        if (word.late)
            late(said, {});
        return;
    }
    if (limit.count() <= 0)
        late(c10::str("Rank 0 timed out in monitoredBarrier after ", limit.count(),
                      " ms.\n"
                      " No ranks successfully processed in monitoredBarrier."),
             {});
    std::vector<int> missing = missing_of(*comm, number, limit, wait_all_ranks);
    word.late = (int64_t)missing.size();
    for (int r = 1; r < comm->size; r++)
        tell(*comm, r, MONITOR_TAG, &word, std::max(limit, std::chrono::milliseconds(1000)), &why);
    if (missing.empty())
        return;
    late(c10::str(failed(missing, wait_all_ranks), " in ", limit.count(), " ms"), missing);
}

/* ---- one first ---- */

void Backend::first_awaited()
{
    shared();
    const uint64_t number = ++firsts;
    Word word{ 0, 0 };
    Failure why;
    while (word.number < number)
        if (hear(*comm, 0, FIRST_TAG, &word, c10d::kUnsetTimeout, &why))
            fail(why);
}

void Backend::first_done()
{
    shared();
    Word word{ ++firsts, 0 };
    Failure why;
    for (int r = 1; r < comm->size; r++)
        if (tell(*comm, r, FIRST_TAG, &word, c10d::kUnsetTimeout, &why))
            fail(why);
}

}
