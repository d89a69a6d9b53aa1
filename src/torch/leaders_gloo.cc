/* torch's gloo, by its c10d::Backend: its own headers are not in the wheel. It is used for messages
 * alone: a thread that sends writes to the socket itself, where a collective of gloo's is handed
 * from thread to thread. It has no abort: what hangs ends by gloo's own deadline. So an engine that
 * failed is left behind, and never destroyed: its destructor might wait.
 * Cost: a wake for each wait; while there are operations, one each 50 ms for the slices. */
#include "torch/leaders.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tutti {

using namespace std::chrono_literals;

namespace {

const std::chrono::milliseconds LONG = 24h, SLICE = 50ms;

/* Of gloo's own: later than the deadline here, which has the better report. */
std::chrono::milliseconds gloo_limit(const Patience &p) { return std::min(p.left, LONG) + 5s; }

/* A wait of gloo's that ends by a time breaks its connections; one that is ended by another thread
 * does not, and may be begun again. So a thread ends each that is long, as often as a slice. */
class Slices {
public:
    Slices() : thread([this] { run(); }) {}
    ~Slices()
    {
        {
            std::lock_guard<std::mutex> hold(lock);
            stop = true;
            changed.notify_all();
        }
        thread.join();
    }

    void wait(const c10::intrusive_ptr<c10d::Work> &work, const Patience &patience)
    {
        begin(work);
        try {
            while (!work->wait(gloo_limit(patience)))
                patience.pulse();
        } catch (...) {
            begin({});
            throw;
        }
        begin({});
    }

private:
    static const int IDLE = 20;         /* slices without a wait, until the thread sleeps */

    void begin(c10::intrusive_ptr<c10d::Work> work)
    {
        std::lock_guard<std::mutex> hold(lock);
        if (!current && asleep)
            changed.notify_all();
        count += !current;
        current = std::move(work);
    }

    void run()
    {
        uint64_t seen = 0;
        int idle = 0;
        std::unique_lock<std::mutex> hold(lock);
        while (!stop) {
            changed.wait_for(hold, SLICE, [this] { return stop; });
            if (current && count == seen)
                current->abort();
            idle = current || count != seen ? 0 : idle + 1;
            seen = count;
            if (idle < IDLE)
                continue;
            asleep = true;
            changed.wait(hold, [&] { return stop || count != seen; });
            asleep = false;
            idle = 0;
        }
    }

    std::mutex lock;
    std::condition_variable changed;
    c10::intrusive_ptr<c10d::Work> current;
    uint64_t count = 0;                 /* of waits */
    bool stop = false, asleep = false;
    std::thread thread;
};

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
        : size(g->getSize()), me(g->getRank()), gloo(std::move(g))
    {
    }
    int hosts() const override { return size; }
    int mine() const override { return me; }

    Rest exchange(const std::vector<Letter> &give, const std::vector<Letter> &get) override
    {
        std::vector<c10::intrusive_ptr<c10d::Work>> works;
        for (const Letter &it : get) {
            std::vector<at::Tensor> one{ it.bytes };
            works.push_back(gloo->recv(one, it.host, it.tag));
        }
        for (const Letter &it : give) {
            std::vector<at::Tensor> one{ it.bytes };
            works.push_back(gloo->send(one, it.host, it.tag));
        }
        return [this, works = std::move(works)](const Patience &patience) {
            for (const auto &work : works)
                slices.wait(work, patience);
        };
    }

    void abort() override { gloo.abort(); }

private:
    const int size, me;
    Engine gloo;
    Slices slices;
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
