/* torch's gloo, by its c10d::Backend: its own headers are not in the wheel. It has no abort: an
 * operation that hangs ends by gloo's own deadline. So what failed is left behind with all it uses,
 * and never destroyed: its destructor would wait. Cost: a callback and a wake for each
 * operation. */
#include "torch/leaders.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace tutti {

using namespace std::chrono_literals;

namespace {

struct Bell {
    std::mutex lock;
    std::condition_variable rung;
    bool done = false;
};

const std::chrono::milliseconds LONG = 24h, SLICE = 50ms;

/* Of gloo's own: later than the deadline here, which has the better report. */
std::chrono::milliseconds gloo_limit(const Patience &p) { return std::min(p.left, LONG) + 5s; }

void finish_gloo(const c10::intrusive_ptr<c10d::Work> &work, const Patience &patience)
{
    auto bell = std::make_shared<Bell>();
    work->getFuture()->addCallback([bell](c10::ivalue::Future &) {
        std::lock_guard<std::mutex> hold(bell->lock);
        bell->done = true;
        bell->rung.notify_all();
    });
    for (;;) {
        {
            std::unique_lock<std::mutex> hold(bell->lock);
            if (bell->rung.wait_for(hold, std::min(SLICE, std::max(patience.left, 1ms)),
                                    [&] { return bell->done; }))
                break;
        }
        patience.pulse();
    }
    work->wait();
}

/* An engine that is left behind once it has been aborted. */
class Engine {
public:
    explicit Engine(c10::intrusive_ptr<c10d::Backend> b) : backend(std::move(b)) {}
    ~Engine()
    {
        if (aborted)
            new c10::intrusive_ptr<c10d::Backend>(std::move(backend));
    }
    void abort() { aborted = true; }
    c10d::Backend *operator->() const
    {
        if (aborted)
            throw std::runtime_error("the group has failed");
        return backend.get();
    }

private:
    c10::intrusive_ptr<c10d::Backend> backend;
    std::atomic<bool> aborted{ false };
};

class Gloo_leaders : public Leaders {
public:
    explicit Gloo_leaders(c10::intrusive_ptr<c10d::Backend> g)
        : size(g->getSize()), gloo(std::move(g))
    {
    }
    int hosts() const override { return size; }

    void all_gather(at::Tensor mine, at::Tensor all, const Patience &patience) override
    {
        c10d::AllgatherOptions o;
        o.timeout = gloo_limit(patience);
        finish_gloo(gloo->_allgather_base(all, mine, o), patience);
    }

    void broadcast(at::Tensor bytes, int root, const Patience &patience) override
    {
        c10d::BroadcastOptions o;
        o.timeout = gloo_limit(patience);
        o.rootRank = root;
        std::vector<at::Tensor> one{ bytes };
        finish_gloo(gloo->broadcast(one, o), patience);
    }

    Rest start_all_to_all(at::Tensor send, const std::vector<int64_t> &sends, at::Tensor recv,
                          const std::vector<int64_t> &recvs, const Patience &patience) override
    {
        c10d::AllToAllOptions o;
        o.timeout = gloo_limit(patience);
        std::vector<int64_t> in = sends, out = recvs;
        auto work = gloo->alltoall_base(recv, send, out, in, o);
        return [work](const Patience &p) { finish_gloo(work, p); };
    }

    void abort() override { gloo.abort(); }

private:
    const int size;
    Engine gloo;
};

/* gloo's messages have no futures: a thread waits in them, for as long as gloo's deadline says. */
class Gloo_messenger : public Messenger {
public:
    explicit Gloo_messenger(c10::intrusive_ptr<c10d::Backend> g) : gloo(std::move(g)) {}

    std::function<void(const Patience &)> send(at::Tensor bytes, int to, int tag) override
    {
        std::vector<at::Tensor> one{ bytes };
        return waiting(gloo->send(one, to, tag));
    }
    std::function<void(const Patience &)> recv(at::Tensor bytes, int from, int tag) override
    {
        std::vector<at::Tensor> one{ bytes };
        return waiting(gloo->recv(one, from, tag));
    }
    void abort() override { gloo.abort(); }

private:
    static std::function<void(const Patience &)> waiting(c10::intrusive_ptr<c10d::Work> work)
    {
        return [work](const Patience &patience) { work->wait(std::min(patience.left, LONG)); };
    }
    Engine gloo;
};

}

std::unique_ptr<Leaders> leaders_of_gloo(c10::intrusive_ptr<c10d::Backend> gloo)
{
    return std::make_unique<Gloo_leaders>(std::move(gloo));
}

std::unique_ptr<Messenger> messenger_of_gloo(c10::intrusive_ptr<c10d::Backend> gloo)
{
    return std::make_unique<Gloo_messenger>(std::move(gloo));
}

}
