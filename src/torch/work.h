/* Job: what an operation of a process group returns: wait, test, futures, results.
 * Owns: the operation's flight until its end, and then how it ended.
 * Never: a wait in its destructor: what is under way goes to the comm. */
#ifndef TORCH_WORK_H
#define TORCH_WORK_H

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "torch/comm.h"

namespace tutti {

class Work : public c10d::Work {
public:
    /* value: the result's tensors. title: the event's name in a profile. */
  Work(std::shared_ptr<Comm> comm, c10d::OpType type, const char *title,
       std::vector<at::Tensor> value, const std::vector<at::Tensor> *inputs = nullptr);
  ~Work() override;

  /* Both before anybody else sees the work: what is under way; and that there is no more, since
     * nothing else was to be done or it could not even begin. */
  void holds(std::unique_ptr<Flight> flight) { flights.push_back(std::move(flight)); }
  void end(Failure failure);
  size_t rows = 1; /* its future's value is so many lists */
  int64_t expected = -1; /* of a recv: how many elements have to come */

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void blockCurrentStream() override { wait(); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  float getDuration() const override;
  uint64_t getSequencenumber() const override { return number; }

  uint64_t number = 0;
  static void interrupt_all(); /* Ctrl-C: ends the futures that are not complete */

private:
    /* Whether it has ended; throws what a signal's handler raised. */
    bool settle(std::chrono::milliseconds timeout);
    bool stand_by(std::unique_lock<std::mutex> &lock, std::chrono::steady_clock::time_point until);
    int  take(int patience_ms, Failure *why);           /* by the one thread that waits */
    void close(Failure why);                            /* under the lock */
    bool failed() const { return failure.error != 0; }
    void tell_backward();
    std::chrono::milliseconds patience_of_future() const;
    void promise();
    c10::IValue value_of_future() const;
    void complete();

    const std::shared_ptr<Comm> comm;
    /* in the order in which they were started */
    c10::SmallVector<std::unique_ptr<Flight>, 1> flights;
    size_t passed = 0;                  /* of these have ended */
    std::vector<at::Tensor> value;
    bool waiting = false;               /* a thread is in the library's wait */
    Failure failure;
    int source = -1;
    /* what it came to; how it came to it */
    c10::intrusive_ptr<c10::ivalue::Future> future, outcome;
    /* a thread will complete them; whoever does so has said it */
    bool promised = false, future_told = false, outcome_told = false;
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now(), over;
};

/* Several works as one: the first failure is that of all. */
class Together : public c10d::Work {
public:
    Together(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);
    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override { wait(); }
    bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    void blockCurrentStream() override { wait(); }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
    const std::vector<c10::intrusive_ptr<c10d::Work>> works;
};

}

#endif
