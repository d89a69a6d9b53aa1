/* Job: run threads that complete futures: a future's callbacks run there; they may be Python, may
 *      block, may call collectives.
 * Owns: those threads and their queued jobs.
 * Never: waits for the caller; starts a thread after later_stop(). */
#ifndef TORCH_LATER_H
#define TORCH_LATER_H

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace tutti {

/* Runs it soon, in a thread of its own: there are as many threads as jobs at once. */
void later_run(std::function<void()> job);

/* Jobs that end in the order in which they began, as the collectives of a comm do. One thread waits
 * for the first job, however many there are. While it runs a future's callbacks, another thread may
 * wait. */
class Line : public std::enable_shared_from_this<Line> {
public:
    struct Job { std::function<void()> wait, then; };   /* neither throws */
    void add(Job job);

private:
    void serve();
    std::mutex lock;
    std::deque<Job> jobs;
    bool led = false, called = false;   /* a thread waits; a thread will come. Under the lock */
};

/* At the end of the program, without the interpreter's lock: ends the threads when they are idle,
 * or leaves them after so many seconds. True: all have ended. Later calls of later_run() do
 * nothing. */
bool later_stop(double seconds);

/* This process is a fork: the threads are the parent's. */
void later_forked();

}

#endif
