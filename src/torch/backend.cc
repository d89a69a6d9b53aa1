/* The parts of a process group that are not operations. Each group is made from the world that the
 * default group has joined, and holds that world. So a shrunk or split group stays usable when its
 * parent group, or the default group, is destroyed. */
#include "torch/backend.h"

#include <ATen/record_function.h>

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace tutti {

namespace {

struct Over : Work {
    using Work::Work;
    bool wait(std::chrono::milliseconds) override { return true; }
};

}

static WorkPtr over_work(const std::shared_ptr<Comm> &comm)
{
    auto work = c10::make_intrusive<Over>(comm, c10d::OpType::UNKNOWN, nullptr, Tensors());
    work->end(Failure());
    return work;
}

Backend::Backend(std::shared_ptr<Comm> c, std::string n, std::chrono::milliseconds timeout)
    : c10d::Backend(c->rank, c->size), comm(std::move(c)), name(std::move(n)),
      as_gloo(name == "gloo"), options(c10::make_intrusive<OptionsOfOurs>(name, timeout)),
      over(over_work(comm))
{
}

Backend::~Backend() = default;

const char *Backend::title(const char *operation) const
{
    static std::mutex lock;
    static std::set<std::string> titles;
    if (!at::hasCallbacks())
        return nullptr;
    std::lock_guard<std::mutex> hold(lock);
    return titles.insert(name + ":" + operation).first->c_str();
}

WorkPtr Backend::given(WorkPtr work)
{
    if (coalescing) {
        std::lock_guard<std::mutex> hold(coalescing_lock);
        coalesced.push_back(work);
    }
    return work;
}

int Backend::root(const char *what, int64_t rank) const
{
    if (rank < 0 || rank >= comm->size)
        refuse(what, c10::str("invalid root rank: ", rank, "; there are 0 to ", comm->size - 1));
    return (int)rank;
}

void Backend::startCoalescing()
{
    std::lock_guard<std::mutex> hold(coalescing_lock);
    coalescing = true;
    coalesced.clear();
}

WorkPtr Backend::endCoalescing()
{
    std::lock_guard<std::mutex> hold(coalescing_lock);
    coalescing = false;
    std::vector<WorkPtr> works;
    works.swap(coalesced);
    return c10::make_intrusive<Together>(comm->rank, std::move(works));
}

std::shared_ptr<Comm> Backend::shared() const
{
    if (!comm)
        refuse("process group",
               "its ranks are not known yet: call reconfigure() with everybody's handle first");
    return comm;
}

void Backend::setTimeout(std::chrono::milliseconds timeout)
{
    if (comm)
        comm->set_timeout(timeout);
    options->timeout = timeout;
}

c10d::ErrorType Backend::getError()
{
    int error = comm ? comm->error() : 0;
    return !error ? c10d::ErrorType::SUCCESS
        : error == -ETIMEDOUT ? c10d::ErrorType::TIMEOUT
        : c10d::ErrorType::COMM_ERROR;
}

void Backend::abort()
{
    if (comm)
        comm->abort("the process group was aborted");
}

void Backend::shutdown()
{
    if (comm)
        comm->close();
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store> &,
                                                 const std::vector<int> &ranks,
                                                 const c10::intrusive_ptr<Options> &given)
{
    shared();
    if (std::find(ranks.begin(), ranks.end(), comm->rank) == ranks.end())
        return nullptr;
    for (int r : ranks)
        if (r < 0 || r >= comm->size)
            refuse("split",
                   c10::str("rank ", r, " is none of this group's: there are 0 to ",
                            comm->size - 1));
    auto child = c10::make_intrusive<Backend>(comm->create(ranks), name,
                                              given ? given->timeout : options->timeout);
    child->setTimeout(child->options->timeout);
    return child;
}

/* The ranks that stay make a comm from the world. No failure of a group breaks the world, whether
 * the other ranks are dead, hang, or were told to leave. */
c10::intrusive_ptr<c10d::Backend> Backend::shrink(const std::vector<int64_t> &ranks_to_exclude,
                                                  int flags,
                                                  const c10::intrusive_ptr<Options> &given)
{
    const int ABORT = 1;                /* torch.distributed.SHRINK_ABORT */
    std::vector<int> stay;
    for (int r = 0; r < shared()->size; r++)
        if (std::find(ranks_to_exclude.begin(), ranks_to_exclude.end(), r)
            == ranks_to_exclude.end())
            stay.push_back(r);
    if (flags & ABORT)
        comm->abort("the process group was shrunk with SHRINK_ABORT");
    auto made = c10::make_intrusive<Backend>(comm->create(stay), name,
                                             given ? given->timeout : options->timeout);
    made->setTimeout(made->options->timeout);
    return made;
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE

/* A handle that no other backend of this host has or had. */
static std::string handle_made()
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        refuse("process group", "the system gives no random numbers");
    char text[64];
    snprintf(text, sizeof text, "tutti-%d-%016llx%016llx", getpid(), (unsigned long long)random[0],
             (unsigned long long)random[1]);
    return text;
}

Backend::Backend(std::string n, std::chrono::milliseconds timeout)
    : c10d::Backend(0, 1), name(std::move(n)), as_gloo(false),
      options(c10::make_intrusive<OptionsOfOurs>(name, timeout)), handle(handle_made())
{
}

/* The name under which they meet, made from what all of them have: the handles and the number. */
static std::string job_of(std::vector<std::string> handles, int64_t number)
{
    std::sort(handles.begin(), handles.end());
    uint64_t a = 0xcbf29ce484222325, b = 0x9e3779b97f4a7c15;
    for (const std::string &handle : handles)
        for (unsigned char c : handle + "/") {
            a = (a ^ c) * 0x100000001b3;
            b = (b ^ a) * 0xff51afd7ed558ccd;
        }
    char text[96];
    snprintf(text, sizeof text, "torch-again-%lld-%016llx%016llx", (long long)number,
             (unsigned long long)a, (unsigned long long)b);
    return text;
}

WorkPtr Backend::reconfigure(const c10d::ReconfigureOptions &o)
{
    std::vector<std::string> handles;
    if (std::holds_alternative<std::vector<std::string>>(o.handles))
        handles = std::get<std::vector<std::string>>(o.handles);
    else {
        const auto &set = std::get<std::unordered_set<std::string>>(o.handles);
        handles.assign(set.begin(), set.end());
        std::sort(handles.begin(), handles.end());      /* all ranks need the same order */
    }
    auto mine = std::find(handles.begin(), handles.end(), handle);
    if (mine == handles.end())
        refuse("reconfigure", "this group's own handle is not among those given");
    Joining how;
    how.job = job_of(handles, o.uuid);
    how.rank = (int)(mine - handles.begin());
    how.size = (int)handles.size();
    how.join_timeout = o.timeout ? *o.timeout : options->timeout;
    if (comm)
        comm->close();
    auto world = World::join(how);
    std::vector<int> all(handles.size());
    for (size_t i = 0; i < all.size(); i++)
        all[i] = (int)i;
    comm = Comm::make(world, all, options->timeout);
    rank_ = comm->rank;
    size_ = comm->size;
    over = over_work(comm);
    return over;
}

void Backend::addEphemeralTimeout(const std::chrono::milliseconds &more) { shared()->extend(more); }

#endif

}
