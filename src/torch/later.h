/* Job: threads that complete futures: what hangs on a future is run there, and may be Python, may
 *      block, may call collectives.
 * Owns: those threads, and what waits for them.
 * Never: a wait of the caller's; a thread when the interpreter has gone. */
#ifndef TORCH_LATER_H
#define TORCH_LATER_H

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace tutti {

/* Runs it in a thread of its own, soon: as many threads as are busy at once. */
void later_run(std::function<void()> job);

/* What ends in the order in which it began, as the collectives of a comm do: one thread waits,
 * for the first, however many there are; while it is busy with what hangs on a future another one
 * may wait. */
class Line : public std::enable_shared_from_this<Line> {
public:
    struct Job { std::function<void()> wait, then; };   /* neither throws */
    void add(Job job);

private:
    void serve();
    std::mutex lock;
    std::deque<Job> jobs;
    bool led = false, called = false;   /* somebody waits; somebody is on the way. Under the lock */
};

/* At the end of the program, without the interpreter's lock: ends the threads once they have
 * nothing to do, or after so many seconds leaves them. Whether all have ended. Nothing is run
 * from then on. */
bool later_stop(double seconds);

/* The process is a fork: the threads are the parent's. */
void later_forked();

}

#endif
