/* Messages of a group on several hosts: within a host by the library, between hosts by a messenger.
 * What precedes a message between hosts tells its size, so receives of one sender and tag go one
 * after another. Cost: two messages of the engine for one, a thread while it is under way, a copy
 * on each side. */
#include "torch/hosts.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include <ATen/ops/empty.h>

#include "torch/later.h"
#include "torch/leaders_fold.h"

namespace tutti {

using namespace std::chrono_literals;

int Hosts::put_inner(Handle job, const tutti_call *call, int r, tutti_work *inner)
{
    if (r < 0) {
        Failure f = failure_of(r, local);
        std::lock_guard<std::mutex> hold(lock);
        refused = f;
        return r;
    }
    job->inner = inner;
    return handed(job, call);
}

static at::Tensor bytes_of(size_t n)
{
    return at::empty({ (int64_t)n }, at::TensorOptions().dtype(at::kByte));
}

/* What precedes a message between hosts. */
struct Letter_head { uint64_t bytes, type; };

/* Waits in a thread of its own; what it uses may outlive the group. */
static void letters_await(const std::shared_ptr<Job> &job,
                          const std::vector<std::function<void(const Patience &)>> &waits)
{
    Failure f;
    try {
        for (const auto &wait : waits)
            wait(Patience{ [] {}, job->left() });
    } catch (const std::exception &error) {
        f.error = job->left() <= 1ms ? -ETIMEDOUT : -EOWNERDEAD;
        f.report = error.what();
    }
    job->finish(f);
}

int Hosts::send(const char *site, const void *buf, size_t n, tutti_type type, int to, int tag,
                const tutti_call *call)
{
    if (to < 0 || to >= where.size())
        return refuse_call(site, c10::str("send: there is no rank ", to));
    Handle made = job(site, call);
    if (where.host[(size_t)to] == where.mine) {
        tutti_work *inner = nullptr;
        tutti_call with = *call;
        with.work = &inner;
        int r = tutti_send_at(site, buf, n, type, where.place[(size_t)to], tag, local, &with);
        return put_inner(made, call, r, inner);
    }
    size_t size = n * type_size(type);
    at::Tensor head = bytes_of(sizeof(Letter_head)), letter = bytes_of(size);
    Letter_head said{ size, (uint64_t)type };
    memcpy(head.mutable_data_ptr(), &said, sizeof said);
    if (size)
        memcpy(letter.mutable_data_ptr(), buf, size);
    made->peer = to;
    try {
        auto a = messenger->send(head, to, tag);
        auto b = size ? messenger->send(letter, to, tag) : a;
        later_run([made, a, b, size] {
            letters_await(made, size ? std::vector{ a, b } : std::vector{ a });
        });
    } catch (const std::exception &error) {
        made->finish(Failure{ -EOWNERDEAD, error.what(), {} });
    }
    std::lock_guard<std::mutex> hold(lock);
    messages.push_back(made);
    return handed(made, call);
}

int Hosts::recv(const char *site, void *buf, size_t n, tutti_type type, int from, int tag,
                tutti_message *got, const tutti_call *call)
{
    if (from < 0 || from >= where.size())
        return refuse_call(site, from == TUTTI_ANY
                                     ? "recv from any rank: in a group of several hosts a receive "
                                       "names its sender"
                                     : c10::str("recv: there is no rank ", from));
    Handle made = job(site, call);
    if (where.host[(size_t)from] == where.mine) {
        tutti_work *inner = nullptr;
        tutti_call with = *call;
        with.work = &inner;
        made->got = got;
        int r = tutti_recv_at(site, buf, n, type, where.place[(size_t)from], tag, got, local,
                              &with);
        return put_inner(made, call, r, inner);
    }
    made->peer = from;
    std::pair<int, int> lane{ from, tag };
    made->body = [messenger = messenger, lane, buf, n, type, got](Job &job) {
        size_t room = n * type_size(type);
        at::Tensor head = bytes_of(sizeof(Letter_head));
        messenger->recv(head, lane.first, lane.second)(Patience{ [] {}, job.left() });
        Letter_head said;
        memcpy(&said, head.const_data_ptr(), sizeof said);
        at::Tensor letter = bytes_of(said.bytes);
        if (said.bytes)
            messenger->recv(letter, lane.first, lane.second)(Patience{ [] {}, job.left() });
        job.landed = [=] {
            if (letter.numel())
                memcpy(buf, letter.const_data_ptr(), std::min(room, (size_t)said.bytes));
            if (got)
                *got = tutti_message{ lane.first, lane.second, said.bytes / type_size(type) };
        };
        if (said.bytes > room || said.type != (uint64_t)type)
            throw Failed{ Failure{
                -EPROTO,
                c10::str("recv at ", job.site, ": rank ", lane.first, " sent ", said.bytes,
                         " bytes of type ", said.type, "; the receive is for ", room,
                         " of type ", (int)type),
                {} } };
    };
    {
        std::lock_guard<std::mutex> hold(lock);
        messages.push_back(made);
    }
    bool begin;
    {
        std::lock_guard<std::mutex> hold(lanes->lock);
        auto &waiting = lanes->of[lane];
        waiting.push_back(made);
        begin = waiting.size() == 1;
    }
    /* one after another: what precedes a message tells its size */
    if (begin)
        later_run([lanes = lanes, lane] {
            for (;;) {
                Handle next;
                {
                    std::lock_guard<std::mutex> hold(lanes->lock);
                    next = lanes->of[lane].front();
                }
                Failure f;
                try {
                    if (next->await(0ms) == false)
                        next->body(*next);
                } catch (const Failed &failed) {
                    f = failed.failure;
                } catch (const std::exception &error) {
                    f = Failure{ next->left() <= 1ms ? -ETIMEDOUT : -EOWNERDEAD, error.what(), {} };
                }
                next->finish(f);
                std::lock_guard<std::mutex> hold(lanes->lock);
                lanes->of[lane].pop_front();
                if (lanes->of[lane].empty()) {
                    lanes->of.erase(lane);
                    return;
                }
            }
        });
    return handed(made, call);
}

Failure Hosts::message_failure(Job &job, const Failure &seen)
{
    Failure f = cause();
    if (f.error)
        return f;
    if (seen.error == -EPROTO)
        return seen;
    int h = where.host[(size_t)job.peer];
    if (seen.error == -ETIMEDOUT) {
        f.error = -ETIMEDOUT;
        f.ranks = {};
        f.report = c10::str("a message at ", job.site, " with rank ", job.peer, " on ",
                            where.named(h), ": not done before its deadline (", seen.report, ")");
        return f;
    }
    return spread(blamed(job, seen), false);
}

}
