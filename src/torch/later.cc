/* Each job under way has a thread, because a callback of its future may block it, even by waiting
 * for another future. Idle threads are used again. They are detached and counted: a std::thread
 * that exists at the end of the process would end it by abort(). Cost: a thread for each job that
 * is under way at once. */
#include "torch/later.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <thread>
#include <vector>

namespace tutti {

struct Thread {
    std::condition_variable wake;
    std::function<void()> job;
    bool stop = false;
};

/* Never destroyed: threads may live longer than objects that static destructors remove. */
static struct Pool {
    std::mutex lock;
    std::condition_variable ended;
    std::vector<Thread *> idle;
    int alive = 0, busy = 0;
    bool stopping = false;
} *pool = new Pool;

static void thread_loop(Thread *me)
{
    std::unique_lock<std::mutex> lock(pool->lock);
    for (;;) {
        me->wake.wait(lock, [me] { return me->job || me->stop; });
        if (!me->job)
            break;
        std::function<void()> job = std::move(me->job);
        me->job = nullptr;
        lock.unlock();
        job();
        job = nullptr;                  /* it may hold Python objects: not under the lock */
        lock.lock();
        pool->busy--;
        pool->idle.push_back(me);
        if (pool->stopping)
            me->stop = true;
        pool->ended.notify_all();
    }
    pool->idle.erase(std::find(pool->idle.begin(), pool->idle.end(), me));
    pool->alive--;
    pool->ended.notify_all();
    lock.unlock();
    delete me;
}

void later_run(std::function<void()> job)
{
    std::unique_lock<std::mutex> lock(pool->lock);
    if (pool->stopping)
        return;
    if (pool->idle.empty()) {
        auto *thread = new Thread;
        pool->alive++;
        try {
            std::thread(thread_loop, thread).detach();
        } catch (...) {
            pool->alive--;
            delete thread;
            throw;
        }
        pool->idle.push_back(thread);
    }
    Thread *thread = pool->idle.back();
    pool->idle.pop_back();
    thread->job = std::move(job);
    pool->busy++;
    thread->wake.notify_one();
}

bool later_stop(double seconds)
{
    std::unique_lock<std::mutex> lock(pool->lock);
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    bool done = pool->ended.wait_until(lock, end, [] { return pool->busy == 0; });
    pool->stopping = true;
    for (Thread *thread : pool->idle) {
        thread->stop = true;
        thread->wake.notify_one();
    }
    return pool->ended.wait_until(lock, end + std::chrono::seconds(1), [] {
        return pool->alive == pool->busy;
    }) && done;
}

void later_forked()
{
    pool = new Pool;                /* the parent's lock may have been held at the fork */
}

void Line::add(Job job)
{
    bool call;
    {
        std::lock_guard<std::mutex> hold(lock);
        jobs.push_back(std::move(job));
        call = !led && !called;
        called |= call;
    }
    if (call)
        later_run([self = shared_from_this()] { self->serve(); });
}

void Line::serve()
{
    std::unique_lock<std::mutex> hold(lock);
    called = false;
    while (!led && !jobs.empty()) {
        led = true;
        Job job = std::move(jobs.front());
        jobs.pop_front();
        hold.unlock();
        job.wait();
        hold.lock();
        led = false;
        bool call = !jobs.empty() && !called;
        called |= call;
        hold.unlock();
        if (call)
            later_run([self = shared_from_this()] { self->serve(); });
        job.then();
        job = Job();
        hold.lock();
    }
}

}
