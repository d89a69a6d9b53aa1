/* Whoever comes first does the next operation: the thread that waits for it, or the group's own. So
 * a blocking call costs no second thread, and an asynchronous one goes on without its caller. Cost:
 * a wake of that thread for each asynchronous call. */
#include "torch/hosts.h"

#include <errno.h>

#include <algorithm>

namespace tutti {

using namespace std::chrono_literals;
using Ms = std::chrono::milliseconds;

static const Ms DEFAULT_LIMIT = 30min, FOREVER = 24h * 365;

/* ---- places ---- */

Hosted::Hosted(std::vector<std::vector<int>> r, std::vector<std::string> n, int me)
    : ranks(std::move(r)), names(std::move(n)), rank(me)
{
    size_t size = 0;
    for (const auto &one : ranks)
        size += one.size();
    host.resize(size);
    place.resize(size);
    for (size_t h = 0; h < ranks.size(); h++)
        for (size_t i = 0; i < ranks[h].size(); i++) {
            host[(size_t)ranks[h][i]] = (int)h;
            place[(size_t)ranks[h][i]] = (int)i;
        }
    mine = host[(size_t)me];
}

std::string Hosted::named(int h) const
{
    std::string list;
    for (int r : ranks[(size_t)h])
        list += (list.empty() ? "" : ", ") + std::to_string(r);
    return c10::str("host ", names[(size_t)h], ranks[(size_t)h].size() > 1 ? " (ranks " : " (rank ",
                    list, ")");
}

/* ---- one job ---- */

void Job::finish(Failure f)
{
    std::lock_guard<std::mutex> hold(lock);
    if (done)
        return;
    if (!f.error && landed)
        landed();
    failure = std::move(f);
    done = true;
    over.notify_all();
}

bool Job::await(Ms most)
{
    std::unique_lock<std::mutex> hold(lock);
    return over.wait_for(hold, most, [&] { return done; });
}

Failure Job::ended()
{
    std::lock_guard<std::mutex> hold(lock);
    return failure;
}

Ms Job::left() const
{
    return std::max(Ms(1), std::chrono::duration_cast<Ms>(deadline
                                                          - std::chrono::steady_clock::now()));
}

/* ---- life ---- */

Hosts::Hosts(Hosted w, const std::string &name, tutti_comm *wh, tutti_comm *l,
             std::unique_ptr<Leaders> led, std::unique_ptr<Messenger> m, std::shared_ptr<Board> b)
    : where(std::move(w)), whole(wh), local(l), leaders(std::move(led)), messenger(std::move(m)),
      board(std::move(b)), lanes(std::make_shared<Lanes>()), key("torch-hosts/" + name),
      server([this] { serve(); })
{
}

Hosts::~Hosts()
{
    {
        std::lock_guard<std::mutex> hold(lock);
        stopping = true;
        changed.notify_all();
    }
    server.join();
}

void Hosts::serve()
{
    std::unique_lock<std::mutex> hold(lock);
    for (;;) {
        changed.wait(hold, [&] { return stopping || (!running && !queue.empty()); });
        if (running || queue.empty())
            return;
        running = true;
        Handle job = queue.front();
        hold.unlock();
        run(job);
        hold.lock();
    }
}

/* Called by the thread that has set `running`. */
void Hosts::run(const Handle &job)
{
    Failure f = cause();
    if (!f.error) {
        try {
            job->body(*job);
        } catch (const Failed &failed) {
            f = spread(failed.failure, false);
        } catch (const std::exception &error) {
            f.error = -ENOMEM;
            f.report = c10::str("at ", job->site, ": ", error.what());
            f = spread(f, true);
        }
    }
    job->body = nullptr;
    job->finish(f);
    std::lock_guard<std::mutex> hold(lock);
    queue.pop_front();
    running = false;
    if (!queue.empty())
        changed.notify_all();
}

bool Hosts::helped(const Handle &job, int (*asked)(void *))
{
    {
        std::lock_guard<std::mutex> hold(lock);
        if (running || queue.empty() || queue.front() != job)
            return false;
        running = true;
    }
    job->asked = asked;
    run(job);
    return true;
}

/* ---- start and wait ---- */

Hosts::Handle Hosts::job(const char *site, const tutti_call *call)
{
    auto made = std::make_shared<Job>();
    made->site = site;
    int ms = call->timeout_ms ? call->timeout_ms : timeout_ms.load();
    made->deadline = Clock::now() + (ms < 0 ? Ms(FOREVER) : ms ? Ms(ms) : Ms(DEFAULT_LIMIT));
    return made;
}

int Hosts::handed(const Handle &job, const tutti_call *call)
{
    *call->work = reinterpret_cast<tutti_work *>(new Handle(job));
    return 0;
}

int Hosts::refuse_call(const char *site, const std::string &why)
{
    std::lock_guard<std::mutex> hold(lock);
    refused.error = -EINVAL;
    refused.report = c10::str("at ", site, ": ", why);
    return -EINVAL;
}

Failure Hosts::cause()
{
    std::lock_guard<std::mutex> hold(lock);
    return first;
}

Failure Hosts::refusal()
{
    std::lock_guard<std::mutex> hold(lock);
    return refused;
}

int Hosts::wait(tutti_work *work, int patience_ms, int (*asked)(void *), Failure *failure)
{
    auto *handle = reinterpret_cast<Handle *>(work);
    Handle job = *handle;
    auto until = patience_ms > 0 ? Clock::now() + Ms(patience_ms) : Clock::time_point::max();
    if (job->inner) {
        int r = tutti_wait_at(job->site, job->inner, patience_ms);
        if (r == -EAGAIN)
            return r;
        if (r < 0 && (r != -ECANCELED || heard_locally(failure) < 0)) {
            *failure = failure_of(r, local);
            for (int &rank : failure->ranks)
                rank = where.here()[(size_t)rank];
        } else if (r >= 0 && job->got)
            job->got->from = where.here()[(size_t)job->got->from];
        delete handle;
        return r < 0 ? failure->error : r;
    }
    bool interrupted = false;
    while (!job->await(0ms)) {
        if (patience_ms <= 0 && job->peer < 0 && helped(job, asked))
            break;
        Ms slice = std::min(Ms(50), std::chrono::duration_cast<Ms>(until - Clock::now()));
        if (slice.count() <= 0 && patience_ms > 0)
            return -EAGAIN;
        if (!job->await(std::max(slice, Ms(1))) && !interrupted && asked(nullptr)) {
            interrupted = true;
            abort("interrupted");
        }
    }
    *failure = job->ended();
    if (failure->error && job->peer >= 0)
        *failure = message_failure(*job, *failure);
    delete handle;
    return failure->error;
}

void Hosts::go_on()
{
    std::lock_guard<std::mutex> hold(lock);
    if (!running && !queue.empty())
        changed.notify_all();
}

bool Hosts::is_over(const tutti_work *work)
{
    const Handle &job = *reinterpret_cast<const Handle *>(work);
    return job->inner ? tutti_test(job->inner) != -EAGAIN : job->await(0ms);
}

}
