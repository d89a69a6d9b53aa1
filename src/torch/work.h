/* Job: implement what an operation of a process group returns: wait, test, futures, results.
 * Owns: the operation's flight until its end; then its result.
 * Never: waits in its destructor: the comm takes over what is still under way. */
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

  /* Both are called before anybody else sees the work. holds(): takes a flight. end(): there will
     * be no more flights, because nothing else is to be done or the next could not begin. */
  void holds(std::unique_ptr<Flight> flight) { flights.push_back(std::move(flight)); }
  void end(Failure failure);
  size_t rows = 1; /* number of lists in the value of its future */
  int64_t expected = -1; /* of a recv: the number of elements that must come */

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
    /* True: it has ended. Throws what a signal handler raised. */
    bool settle(std::chrono::milliseconds timeout);
    bool stand_by(std::unique_lock<std::mutex> &lock, std::chrono::steady_clock::time_point until);
    int  take(int patience_ms, Failure *why);           /* called by the one waiting thread */
    void close(Failure why);                            /* under the lock */
    bool failed() const { return failure.error != 0; }
    void tell_backward();
    std::chrono::milliseconds patience_of_future() const;
    void promise();
    c10::IValue value_of_future() const;
    void complete();

    const std::shared_ptr<Comm> comm;
    /* in the order of their starts */
    c10::SmallVector<std::unique_ptr<Flight>, 1> flights;
    size_t passed = 0;                  /* so many flights have ended */
    std::vector<at::Tensor> value;
    bool waiting = false;               /* a thread is in the library's wait */
    Failure failure;
    int source = -1;
    /* future: the value; outcome: a WorkResult */
    c10::intrusive_ptr<c10::ivalue::Future> future, outcome;
    /* a thread will complete them; the thread that completes one has set its flag */
    bool promised = false, future_told = false, outcome_told = false;
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now(), over;
};

/* Several works as one. The first failure is the failure of all. */
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
