/* Every operation is started as work and then awaited, also one that the caller waits for at once.
 * So no thread holds the door while it waits, a blocked recv does not delay another thread's send,
 * and collectives run in the order of their calls. A blocking call of the library would save 0.3 us
 * of the 5 us that a call of torch takes, but it would delay other threads.
 *
 * A comm that has failed answers -ECANCELED to every later call. A program needs to see what broke
 * the comm, in whichever call it notices. So the first cause is kept, and every later failure
 * reports it.
 *
 * The library calls `asked()` in every slice of a sleep. In the main thread it runs Python's signal
 * handlers. */
#include "torch/comm.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "torch/site.h"

namespace py = pybind11;

namespace tutti {

/* for operations under way when a group is left: its peers may be about to arrive */
static const int GRACE_MS = 2000;

static const char DEATH_TOLD[] = "told by a message: rank ";    /* part of an abort's text */

static uint64_t generation;             /* +1 in each fork: older objects are the parent's */
static std::mutex *open_lock = new std::mutex;
static std::vector<std::weak_ptr<Comm>> *open_comms = new std::vector<std::weak_ptr<Comm>>;
static std::vector<std::weak_ptr<World>> *open_worlds = new std::vector<std::weak_ptr<World>>;
static thread_local std::exception_ptr raised; /* by a signal handler, in a wait of this thread */

uint64_t forks() { return generation; }

static void fork_child()
{
    generation++;
    open_lock = new std::mutex;
    open_comms = new std::vector<std::weak_ptr<Comm>>;
    open_worlds = new std::vector<std::weak_ptr<World>>;
    later_forked();
}

void comm_setup() { pthread_atfork(nullptr, nullptr, fork_child); }

int milliseconds(std::chrono::milliseconds ms)
{
    int64_t n = ms.count();
    return n <= 0 ? 0 : n > INT_MAX ? INT_MAX : (int)n;
}

int group_limit(std::chrono::milliseconds ms)
{
    return ms == kBackendDefaultTimeout ? 0 : milliseconds(ms);
}

std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds ms)
{
    using Clock = std::chrono::steady_clock;
    auto now = Clock::now();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max()
                                                                      - now);
    return ms < left ? now + ms : Clock::time_point::max();
}

/* Python runs signal handlers in the main thread only. */
static int asked(void *)
{
    if (gettid() != getpid() || !python_runs())
        return 0;
    py::gil_scoped_acquire lock;
    if (!PyErr_Occurred() && PyErr_CheckSignals() == 0)
        return 0;
    raised = exception_set();
    return 1;
}

static void throw_raised()
{
    if (!raised)
        return;
    std::exception_ptr it = raised;
    raised = nullptr;
    std::rethrow_exception(it);
}

/* ---- world ---- */

World::World(const Joining &j) : job(j.job)
{
    tutti_options options{};
    options.job = j.job.c_str();
    options.rank = j.rank;
    options.size = j.size;
    options.join_timeout_ms = milliseconds(j.join_timeout);
    options.interrupt = asked;
    int r = tutti_init(&whole, &options);
    if (r >= 0)
        return;
    throw_raised();
    fail(failure_of(r, nullptr));
}

World::~World()
{
    if (born == generation)
        tutti_finalize(whole);
}

std::shared_ptr<World> World::join(const Joining &j)
{
    auto world = std::make_shared<World>(j);
    std::lock_guard<std::mutex> hold(*open_lock);
    open_worlds->push_back(world);
    return world;
}

std::vector<std::shared_ptr<World>> World::all()
{
    std::lock_guard<std::mutex> hold(*open_lock);
    std::vector<std::shared_ptr<World>> worlds;
    for (const auto &it : *open_worlds)
        if (auto world = it.lock())
            worlds.push_back(std::move(world));
    open_worlds->assign(worlds.begin(), worlds.end());
    return worlds;
}

/* ---- life ---- */

Comm::Comm(std::shared_ptr<World> w, tutti_comm *c, std::vector<int> m, std::unique_ptr<Hosts> h)
    : rank(h ? h->where.rank : tutti_rank(c)), size(h ? h->where.size() : tutti_size(c)),
      world(std::move(w)), members(std::move(m)), comm(c), hosts(std::move(h))
{
}

static std::shared_ptr<Comm> opened(std::shared_ptr<Comm> made, std::chrono::milliseconds timeout)
{
    made->set_timeout(timeout);
    std::lock_guard<std::mutex> hold(*open_lock);
    open_comms->erase(std::remove_if(open_comms->begin(), open_comms->end(),
                                     [](const auto &it) { return it.expired(); }),
                      open_comms->end());
    open_comms->push_back(made);
    return made;
}

static tutti_comm *comm_made(const std::shared_ptr<World> &world, const std::vector<int> &ranks,
                             std::chrono::milliseconds timeout)
{
    tutti_comm *made = nullptr;
    int r;
    {
        std::lock_guard<std::mutex> hold(world->making);
        tutti_set_timeout(world->whole, group_limit(timeout));
        r = tutti_comm_create_at(site_here(), world->whole, ranks.data(), (int)ranks.size(), &made);
    }
    if (r < 0) {
        throw_raised();
        fail(failure_of(r, world->whole));
    }
    return made;
}

std::shared_ptr<Comm> Comm::make(std::shared_ptr<World> world, const std::vector<int> &ranks,
                                 std::chrono::milliseconds timeout)
{
    tutti_comm *made = comm_made(world, ranks, timeout);
    return opened(std::make_shared<Comm>(std::move(world), made, ranks), timeout);
}

std::shared_ptr<Comm> Comm::make(std::shared_ptr<World> world, const std::vector<int> &ranks,
                                 std::chrono::milliseconds timeout, Across a)
{
    tutti_comm *made = comm_made(world, ranks, timeout);
    auto hosts = std::make_unique<Hosts>(std::move(a.where), a.name, world->whole, made,
                                         std::move(a.leaders), std::move(a.messenger),
                                         std::move(a.board));
    return opened(std::make_shared<Comm>(std::move(world), made, ranks, std::move(hosts)), timeout);
}

std::shared_ptr<Comm> Comm::create(const std::vector<int> &ranks)
{
    check();
    if (hosts)
        refuse("split, shrink", "not of a group on several hosts: make one by new_group");
    std::vector<int> theirs;
    for (int r : ranks)
        theirs.push_back(members.at(r));
    return make(world, theirs, limit);
}

/* Waits for each flight until `until`, then ends the rest. Returns how many it had to end. */
static int see_off(const Road &road, std::vector<std::unique_ptr<Flight>> &flights,
                   std::chrono::steady_clock::time_point until)
{
    Failure ignored;
    int late = 0;
    for (auto &flight : flights) {
        auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
                        until - std::chrono::steady_clock::now())
                        .count();
        int r = road_wait(road, flight->site, flight->work, late || rest < 1 ? 1 : (int)rest,
                          asked, &ignored);
        if (r == -EAGAIN) {
            if (!late++)
                road_abort(road, site_here(),
                           "the process group was left with this operation under way");
            r = road_wait(road, flight->site, flight->work, -1, asked, &ignored);
        }
        if (r >= 0 && python_runs())
            flight->held.write_back();
        raised = nullptr;
    }
    if (late)
        fprintf(stderr,
                "tutti: rank %d: %d operation%s under way when a process group was left, and ended "
                "there: wait for each Work before\n",
                tutti_rank(road.comm), late, late == 1 ? " was" : "s were");
    flights.clear();
    return late;
}

static std::chrono::steady_clock::time_point moment()
{
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(GRACE_MS);
}

Comm::~Comm()
{
    if (is_fork()) {
        for (auto &flight : left)
            flight.release();       /* the parent waits for it; its memory stays */
        new std::shared_ptr<Hosts>(std::move(hosts));   /* its thread is the parent's */
        return;
    }
    reap();
    if (left.empty()) {
        hosts.reset();
        tutti_comm_free(comm);
        return;
    }
    auto rest = std::make_shared<std::vector<std::unique_ptr<Flight>>>(std::move(left));
    auto whole = std::make_shared<std::shared_ptr<Hosts>>(std::move(hosts));
    later_run([comm = comm, whole, world = world, rest] {
        see_off(Road{ comm, whole->get() }, *rest, moment());
        whole->reset();
        tutti_comm_free(comm);
    });
}

static std::vector<std::shared_ptr<Comm>> comms_now()
{
    std::lock_guard<std::mutex> hold(*open_lock);
    std::vector<std::shared_ptr<Comm>> all;
    for (const auto &it : *open_comms)
        if (auto comm = it.lock())
            all.push_back(std::move(comm));
    return all;
}

bool comms_leave()
{
    auto until = moment();
    int late = 0;
    for (auto &comm : comms_now())
        late += comm->see_off_left(until);
    if (!later_stop(
            std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count())) {
        late++;
        for (auto &comm : comms_now())
            comm->abort("the program has ended");
        later_stop(2);
    }
    return !late;
}

int Comm::see_off_left(std::chrono::steady_clock::time_point until)
{
    std::vector<std::unique_ptr<Flight>> rest;
    {
        std::lock_guard<std::mutex> hold(left_lock);
        rest.swap(left);
        left_count = 0;
    }
    return see_off(road(), rest, until);
}

void Comm::check() const
{
    const bool forked = is_fork();
    if (!forked && !is_closed)
        return;
    Failure f;
    f.error = forked ? -ECHILD : -EINVAL;
    f.report = forked ? "this process is a fork of a rank, not the rank: its process groups are "
                        "the parent's; make ranks by torch.multiprocessing with spawn"
                      : "this process group was destroyed or shut down: it can be used no more";
    fail(f);
}

/* ---- operations ---- */

/* the library has no report for these errors */
static bool is_out_of_place(int error)
{
    return error == -EBUSY || error == -ECHILD || error == -EAGAIN;
}

static bool breaks(int error, bool message)
{
    if (is_out_of_place(error) || error == -EINVAL)
        return false;
    return !message || error == -EOWNERDEAD || error == -ECANCELED || error == -EINTR;
}

Failure Comm::failed(int error, bool message)
{
    return broke(!hosts ? failure_of(error, comm)
                     : error == -EINVAL ? hosts->refusal()
                     : hosts->cause(),
                 error, message);
}

/* what became of the comm by this failure of an operation; error: its number */
Failure Comm::broke(Failure f, int error, bool message)
{
    f.error = error;
    if (is_out_of_place(error))
        f.report = tutti_strerror(error);
    if (!breaks(error, message))
        return f;
    bool aborted = f.report.find(" aborted: ") != std::string::npos
        && f.report.find(DEATH_TOLD) == std::string::npos;
    if (!hosts && error == -ECANCELED && !f.ranks.empty() && !aborted)
        f.error = error = -EOWNERDEAD; /* another operation or rank met the death first */
    bool first;
    {
        std::lock_guard<std::mutex> hold(cause_lock);
        first = !cause.error;
        if (first)
            cause = f;
        else if (error == -ECANCELED || error == -EOWNERDEAD) {
            f.error = cause.error;
            f.report = cause.report;
        }
        broken = true;
    }
    /* the library reports a death that a message met to its two ranks only; the others wait */
    if (first && message && error == -EOWNERDEAD)
        road_abort(road(), site_here(),
                   c10::str(DEATH_TOLD, f.ranks.empty() ? -1 : f.ranks[0], " died or left")
                       .c_str());
    if (first)
        hooks->run();
    return f;
}

int Comm::error()
{
    std::lock_guard<std::mutex> hold(cause_lock);
    return cause.error;
}

bool Comm::is_over(const Flight &flight) const
{
    return is_fork() || !road_busy(road(), flight.work);
}

int Comm::await(Flight &flight, int patience_ms, Failure *failure)
{
    check_fork();
    Failure met;
    int r = road_wait(road(), flight.site, flight.work, patience_ms, asked, &met);
    if (r == -EAGAIN) {
        throw_raised();
        return r;
    }
    flight.work = nullptr;
    if (flight.extends)
        *flight.extends = true;
    if (r < 0)
        *failure = hosts ? broke(met, r, flight.message) : failed(r, flight.message);
    else
        flight.held.write_back();
    flight.held = Held();
    flight.factor = at::Tensor();
    reap();
    throw_raised();
    return r;
}

void Comm::leave(std::unique_ptr<Flight> flight)
{
    std::lock_guard<std::mutex> hold(left_lock);
    left.push_back(std::move(flight));
    left_count++;
}

/* Writes back all that has ended by now. A program that dropped a Work may wait for a later
 * operation and then read the first one's result. */
void Comm::reap()
{
    if (!left_count)
        return;
    std::vector<std::unique_ptr<Flight>> over;
    {
        std::lock_guard<std::mutex> hold(left_lock);
        for (auto &flight : left)
            if (!road_busy(road(), flight->work))
                over.push_back(std::move(flight));
        left.erase(std::remove(left.begin(), left.end(), nullptr), left.end());
        left_count = left.size();
    }
    Failure ignored;
    for (auto &flight : over)
        if (road_wait(road(), flight->site, flight->work, -1, asked, &ignored) >= 0)
            flight->held.write_back();
}

void Comm::abort(const std::string &why)
{
    if (is_fork())
        return;
    hooks->run();
    road_abort(road(), site_here(), why.c_str());
}

void Hooks::add(int64_t id, std::function<void()> hook)
{
    std::lock_guard<std::mutex> hold(lock);
    hooks[id] = std::move(hook);
}

void Hooks::remove(int64_t id)
{
    std::lock_guard<std::mutex> hold(lock);
    hooks.erase(id);
}

/* Each hook runs once, because its event happens once. */
void Hooks::run()
{
    std::map<int64_t, std::function<void()>> all;
    {
        std::lock_guard<std::mutex> hold(lock);
        all.swap(hooks);
    }
    for (auto &[id, hook] : all) {
        try {
            hook();
        } catch (const std::exception &error) {
            fprintf(stderr, "tutti: an abort hook raised: %s\n", error.what());
        }
    }
}

void Comm::extend(std::chrono::milliseconds more)
{
    std::lock_guard<std::mutex> hold(door);
    extensions.push_back({ more, std::make_shared<std::atomic<bool>>(false), false });
    extended = true;
}

int Comm::deadline_ms(int given, Flight *flight)
{
    if (!extended)
        return given;
    std::lock_guard<std::mutex> hold(door);
    extensions.erase(std::remove_if(extensions.begin(), extensions.end(),
                                    [](const Extension &it) { return it.over->load(); }),
                     extensions.end());
    extended = !extensions.empty();
    auto sum = std::chrono::milliseconds(given ? given : milliseconds(limit));
    for (Extension &it : extensions) {
        sum += it.more;
        if (!it.given)
            flight->extends = it.over;
        it.given = true;
    }
    return extensions.empty() || sum.count() == 0 ? given : milliseconds(sum);
}

void Comm::set_timeout(std::chrono::milliseconds timeout)
{
    std::lock_guard<std::mutex> hold(door);
    limit = timeout;
    tutti_set_timeout(comm, group_limit(timeout));
    if (hosts)
        hosts->set_timeout(group_limit(timeout));
}

}
