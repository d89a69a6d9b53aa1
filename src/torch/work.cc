/* torch can ask for the end of an operation in four ways: wait(), polling, a future, a stream. All
 * lead to settle(). There one thread waits in the library, and other threads wait for that one. The
 * library frees its handle when it reports the end. The work keeps the result, and every wait()
 * reports it again.
 *
 * A future's wait() raises nothing, and its callbacks may be Python, block, or call collectives. So
 * a thread of later.h completes a future, never a thread of the library. A plain wait() needs no
 * such thread. Collectives of a comm end in order, so one thread waits for all of them. A message
 * may end at any time, so each has a thread of its own.
 *
 * No thread asks for the interpreter's lock while it holds the lock of a work: the thread that has
 * the first may wait for the second. Cost: a thread for a future that is not complete yet. */
#include "torch/work.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <errno.h>

#include <set>

#include "torch/interrupt.h"

namespace tutti {

static std::mutex *pending_lock = new std::mutex;
/* the works whose futures are still to be completed; the job that completes one holds the work */
static std::set<Work *> *pending = new std::set<Work *>;

Work::Work(std::shared_ptr<Comm> c, c10d::OpType type, const char *title,
           std::vector<at::Tensor> tensors, const std::vector<at::Tensor> *inputs)
    : c10d::Work(c->rank, type, title,
                 title ? std::optional<std::vector<at::Tensor>>(inputs ? *inputs : tensors)
                       : std::nullopt),
      comm(std::move(c)), value(std::move(tensors))
{
}

Work::~Work()
{
    for (auto &flight : flights)
        if (comm->is_fork())
            flight.release();           /* the parent owns it */
        else if (flight && flight->work)
            comm->leave(std::move(flight));
}

/* ---- the end ---- */

void Work::close(Failure why)
{
    failure = std::move(why);
    completed_ = true;
    over = std::chrono::steady_clock::now();
    if (recordFunctionEndCallback_) {
        recordFunctionEndCallback_();
        recordFunctionEndCallback_ = nullptr;
    }
    cv_.notify_all();
}

void Work::end(Failure why)
{
    std::lock_guard<std::mutex> hold(mutex_);
    if (flights.size() == passed)
        return close(std::move(why));
    failure = std::move(why);           /* the part that has begun ends first */
}

/* Waits while another thread is in the library's wait. False: the time is over. The main thread
 * runs signal handlers meanwhile. */
bool Work::stand_by(std::unique_lock<std::mutex> &lock, std::chrono::steady_clock::time_point until)
{
    while (waiting && !completed_) {
        auto now = std::chrono::steady_clock::now();
        if (now >= until)
            return false;
        cv_.wait_until(lock, std::min(until, now + std::chrono::milliseconds(100)));
        if (!waiting || completed_)
            break;
        lock.unlock();
        signals_look();
        lock.lock();
    }
    return true;
}

/* 0 or -EAGAIN. *why: of the first part that failed. */
int Work::take(int patience_ms, Failure *why)
{
    for (; passed < flights.size(); passed++) {
        Flight &flight = *flights[passed];
        Failure f;
        int r = comm->await(flight, patience_ms, &f);
        if (r == -EAGAIN)
            return r;
        if (r >= 0 && expected >= 0) {
            source = flight.got.from;
            if ((int64_t)flight.got.count != expected) {
                f.error = -EPROTO;
                f.report = c10::str("recv at ", flight.site, ": rank ", source, " sent ",
                                    flight.got.count, " elements; the tensor has ", expected);
            }
        }
        if (f.error && !why->error)
            *why = std::move(f);
    }
    return 0;
}

bool Work::settle(std::chrono::milliseconds timeout)
{
    comm->check_fork();             /* before the lock: a parent's thread may have held it */
    auto until = timeout == kNoTimeout ? std::chrono::steady_clock::time_point::max()
                                       : deadline_after(timeout);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!completed_) {
        if (waiting) {
            if (!stand_by(lock, until))
                return false;
            continue;
        }
        waiting = true;
        Failure why = failure;
        lock.unlock();
        std::exception_ptr raised;
        int r = -EAGAIN;
        try {
            r = take(timeout == kNoTimeout ? 0 : std::max(1, milliseconds(timeout)), &why);
        } catch (...) {
            raised = std::current_exception();
            /* the part has ended all the same */
            passed += passed < flights.size() && !flights[passed]->work;
            if (!why.error)
                why = comm->failed(-ECANCELED, false);
        }
        lock.lock();
        waiting = false;
        if (passed == flights.size())
            close(std::move(why));
        else
            cv_.notify_all();
        if (raised)
            std::rethrow_exception(raised);
        if (r == -EAGAIN && timeout != kNoTimeout)
            return completed_;
    }
    return true;
}

/* ---- asking ---- */

bool Work::wait(std::chrono::milliseconds timeout)
{
    if (!settle(timeout)) {
        Failure late;
        late.error = -ETIMEDOUT;
        late.report = c10::str("not done within ", timeout.count(),
                               " ms, the patience of this wait: Operation timed out! It goes on: "
                               "wait() again");
        fail(late);
    }
    if (failed())
        fail(failure);
    if (c10d::allow_inflight_collective_as_graph_input())
        c10d::Work::synchronize();
    return true;
}

void Work::synchronize() { wait(); }

bool Work::isCompleted()
{
    comm->check_fork();
    std::unique_lock<std::mutex> lock(mutex_);
    if (completed_ || waiting)
        return completed_;
    for (size_t i = passed; i < flights.size(); i++)
        if (!comm->is_over(*flights[i]))
            return false;
    lock.unlock();
    return settle(std::chrono::milliseconds(1));
}

bool Work::isSuccess() const
{
    std::lock_guard<std::mutex> hold(mutex_);
    return !failed();
}

std::exception_ptr Work::exception() const
{
    Failure why;
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (!completed_ || !failed())
            return nullptr;
        why = failure;
    }
    return failure_exception(why);
}

std::vector<at::Tensor> Work::result()
{
    wait();
    return value;
}

int Work::sourceRank() const
{
    const_cast<Work *>(this)->wait();
    return source;
}

float Work::getDuration() const
{
    std::lock_guard<std::mutex> hold(mutex_);
    auto end = completed_ ? over : std::chrono::steady_clock::now();
    return std::chrono::duration<float, std::milli>(end - began).count();
}

void Work::abort() { comm->abort("Work.abort() was called"); }

/* ---- futures ---- */

/* an operation of at most this size is awaited for BRIEF before a thread is given to it */
static const size_t BRIEF_BYTES = 256 << 10;
static const std::chrono::milliseconds BRIEF{ 1 }, NONE{ -1 };

static c10d::WorkResult outcome_of(const Failure &failure)
{
    return !failure.error ? c10d::WorkResult::SUCCESS
        : failure.error == -ETIMEDOUT ? c10d::WorkResult::TIMEOUT
        : c10d::WorkResult::COMM_ERROR;
}

static std::vector<c10::Device> devices_of(const std::vector<at::Tensor> &tensors)
{
    std::vector<c10::Device> devices;
    for (const at::Tensor &t : tensors)
        if (t.is_cuda())
            devices.push_back(t.device());
    return devices;
}

/* A callback of a future may be Python, and torch makes a plain RuntimeError of what it raises. So
 * if a future is taken in a backward pass, the end of that pass, where the reducer waits for all
 * futures, waits for the work first: that raises the operation's own error. */
void Work::tell_backward()
{
    if (torch::autograd::get_current_graph_task_id() == -1)
        return;
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (completed_ && !failed())
            return;
    }
    auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
    torch::autograd::Engine::get_default_engine().queue_callback([self] { self->wait(); });
}

/* A small operation has mostly ended soon after its start, and a thread costs more than it.
 *
 * A hook of DDP in Python may call collectives in a callback of a future (PowerSGD). In a thread of
 * ours these would run before or after those of the next bucket by chance, on each rank in another
 * order. So in a backward pass Python gets the future of a collective after its end. Its callbacks
 * then run at once, on all ranks in the same order. The reducer itself asks without the
 * interpreter's lock, and does not wait here. */
std::chrono::milliseconds Work::patience_of_future() const
{
    bool message = false, brief = flights.size() == 1;
    for (const auto &flight : flights)
        message = message || flight->message;
    for (const at::Tensor &tensor : value)
        brief = brief && tensor.nbytes() <= BRIEF_BYTES && tensor.is_cpu();
    if (message)
        return NONE;
    if (torch::autograd::get_current_graph_task_id() != -1 && python_runs() && PyGILState_Check())
        return kNoTimeout;
    return brief ? BRIEF : NONE;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (future)
            return future;
    }
    auto patience = patience_of_future();
    if (patience != NONE) {
        std::optional<pybind11::gil_scoped_release> released;
        if (python_runs() && PyGILState_Check())
            released.emplace();
        /* it throws what a signal handler raises: so no future is left that nobody completes */
        settle(patience);
    }
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (!future)
            future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(
                                                                  c10::TensorType::get()),
                                                              devices_of(value));
    }
    tell_backward();
    promise();
    return future;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFutureResult()
{
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (outcome)
            return outcome;
        outcome = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
    }
    promise();
    return outcome;
}

/* A new future has no callbacks yet. So if the operation has ended, completes the future here. */
void Work::promise()
{
    std::unique_lock<std::mutex> lock(mutex_);
    if (completed_) {
        lock.unlock();
        return complete();
    }
    if (promised)
        return;
    promised = true;
    lock.unlock();
    signals_hook(interrupt_all);
    {
        std::lock_guard<std::mutex> hold(*pending_lock);
        pending->insert(this);
    }
    auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
    auto settled = [self] {
        try {
            self->settle(kNoTimeout);
        } catch (...) {                 /* a fork, or Python ends: the future reports it */
        }
    };
    auto then = [self] { self->complete(); };
    if (flights.size() == 1 && flights[0]->message)
        later_run([settled, then] { settled(), then(); });
    else
        comm->line->add({ settled, then });
}

c10::IValue Work::value_of_future() const
{
    if (rows == 1)
        return value;
    c10::List<c10::List<at::Tensor>> lists;
    for (size_t i = 0; i < value.size(); i += value.size() / rows)
        lists.push_back(
            c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(value).slice(i, value.size() / rows)));
    return lists;
}

/* Completes each future once, in whichever thread comes first: the one that waited, or Ctrl-C's. */
void Work::complete()
{
    c10::intrusive_ptr<c10::ivalue::Future> a, b;
    Failure why;
    {
        std::lock_guard<std::mutex> hold(*pending_lock);
        pending->erase(this);
    }
    {
        std::lock_guard<std::mutex> hold(mutex_);
        a = future_told ? nullptr : future;
        b = outcome_told ? nullptr : outcome;
        future_told |= (bool)a;
        outcome_told |= (bool)b;
        why = failure;
    }
    try {
        if (b)
            b->markCompleted(c10::IValue((int64_t)outcome_of(why)));
        if (a && why.error)
            a->setError(failure_exception(why));
        else if (a)
            a->markCompleted(value_of_future());
    } catch (const std::exception &error) {             /* of a callback */
        TORCH_WARN("tutti: what hangs on a future raised: ", error.what());
    }
}

void Work::interrupt_all()
{
    std::vector<c10::intrusive_ptr<Work>> all;
    {
        std::lock_guard<std::mutex> hold(*pending_lock);
        for (Work *work : *pending)
            all.push_back(c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(work));
    }
    for (auto &work : all) {
        c10::intrusive_ptr<c10::ivalue::Future> theirs;
        {
            std::lock_guard<std::mutex> hold(work->mutex_);
            theirs = work->future_told ? nullptr : work->future;
            work->future_told |= (bool)theirs;
        }
        if (theirs)
            theirs->setError(interrupt_exception());
        work->comm->abort("interrupted by SIGINT");
    }
}

/* ---- several ---- */

Together::Together(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> w)
    : c10d::Work(rank, c10d::OpType::COALESCED), works(std::move(w))
{
}

bool Together::isCompleted()
{
    for (auto &work : works)
        if (!work->isCompleted())
            return false;
    return true;
}

bool Together::isSuccess() const
{
    for (auto &work : works)
        if (!work->isSuccess())
            return false;
    return true;
}

std::exception_ptr Together::exception() const
{
    for (auto &work : works)
        if (auto error = work->exception())
            return error;
    return nullptr;
}

std::vector<at::Tensor> Together::result()
{
    std::vector<at::Tensor> all;
    for (auto &work : works)
        for (auto &tensor : work->result())
            all.push_back(tensor);
    return all;
}

bool Together::wait(std::chrono::milliseconds timeout)
{
    std::exception_ptr first;
    for (auto &work : works) {
        try {
            work->wait(timeout);
        } catch (...) {
            if (!first)
                first = std::current_exception();
        }
    }
    if (first)
        std::rethrow_exception(first);
    return true;
}

c10::intrusive_ptr<c10::ivalue::Future> Together::getFuture()
{
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
        c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
    for (auto &work : works)
        futures.push_back(work->getFuture());
    return c10::collectAll(futures)->then(
        [](c10::ivalue::Future &all) {
            std::vector<at::Tensor> tensors;
            for (const c10::IValue &future : all.value().toListRef())
                for (const c10::IValue &tensor : future.toFuture()->value().toListRef())
                    tensors.push_back(tensor.toTensor());
            return c10::IValue(tensors);
        },
        c10::ListType::create(c10::TensorType::get()));
}

}
