/* The extension tutti.torch._c10d: a Backend for a process group, and what the package asks about
 * it. Each function that waits releases the interpreter's lock. Cost: one call of pybind11. */
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include "torch/backend.h"
#include "torch/interrupt.h"
#include "torch/lazy.h"
#include "torch/site.h"

namespace py = pybind11;
using namespace tutti;

using Milliseconds = std::chrono::milliseconds;

static c10::intrusive_ptr<Backend> backend_made(std::shared_ptr<World> world,
                                                const std::vector<int> &ranks,
                                                const std::string &name, Milliseconds timeout)
{
    return c10::make_intrusive<Backend>(Comm::make(std::move(world), ranks, timeout), name,
                                        timeout);
}

/* ranks: of each host, in the group; here: this host's, in its world; engine, messages: of gloo,
 * engine is None but on a leader. */
static c10::intrusive_ptr<Backend> backend_across(
    std::shared_ptr<World> world, const std::vector<int> &here, const std::string &name,
    Milliseconds timeout, const std::vector<std::vector<int>> &ranks,
    const std::vector<std::string> &hosts, int rank,
    std::optional<c10::intrusive_ptr<c10d::Backend>> engine,
    c10::intrusive_ptr<c10d::Backend> messages, c10::intrusive_ptr<c10d::Store> store,
    const std::string &group)
{
    Hosted where(ranks, hosts, rank);
    auto board = std::make_shared<Board>(store, where.number(), where.mine);
    Across across{ group, where, engine ? leaders_of_gloo(*engine) : nullptr,
                   messenger_of_gloo(std::move(messages)), board };
    return c10::make_intrusive<Backend>(Comm::make(std::move(world), here, timeout,
                                                   std::move(across)),
                                        name, timeout);
}

static std::shared_ptr<World> world_joined(const std::string &job, int rank, int size,
                                           Milliseconds join_timeout)
{
    Joining how;
    how.job = job;
    how.rank = rank;
    how.size = size;
    how.join_timeout = join_timeout;
    return World::join(how);
}

/* job -> this process's rank, for each world it is in. */
static py::dict worlds_here()
{
    py::dict d;
    for (const auto &world : World::all())
        d[py::str(world->job)] = tutti_rank(world->whole);
    return d;
}

static std::shared_ptr<World> world_of(const std::string &job)
{
    for (const auto &world : World::all())
        if (world->job == job)
            return world;
    throw std::runtime_error("tutti: this process is in no world " + job + " any more");
}

static py::dict figures(const Backend &backend)
{
    tutti_figures f{};
    tutti_stats(backend.shared()->get(), &f);
    py::dict d;
    d["operations"] = f.operations;
    d["bytes"] = f.bytes;
    d["wait_ns"] = f.wait_ns;
    d["fold_ns"] = f.fold_ns;
    d["waits"] = f.waits;
    d["sleeps"] = f.sleeps;
    d["compared"] = f.compared;
    d["came_last"] = f.came_last;
    d["late_median_ns"] = f.late_median_ns;
    d["late_p99_ns"] = f.late_p99_ns;
    d["late_cost_ns"] = f.late_cost_ns;
    return d;
}

PYBIND11_MODULE(_c10d, m)
{
    using Release = py::call_guard<py::gil_scoped_release>;
    comm_setup();
    lazy_setup();
    py::class_<World, std::shared_ptr<World>>(m, "World");
    py::class_<Backend, c10d::Backend, c10::intrusive_ptr<Backend>>(m, "Backend")
        .def_property_readonly("members", [](const Backend &b) { return b.shared()->members; })
        .def_property_readonly("failed",
                               [](const Backend &b) {
                                   return failure_of(-EOWNERDEAD, b.shared()->get()).ranks;
                               })
        .def_property_readonly("explain",
                               [](const Backend &b) {
                                   return std::string(tutti_explain(b.shared()->get()));
                               })
        .def_property_readonly("options", [](Backend &b) { return b.getBackendOptions(); })
        .def("stats", &figures)
        .def("fault",
             [](const Backend &b, const std::string &what) {
                 return tutti_fault(b.shared()->get(), what.c_str());
             })
        .def(
            "break_off", [](const Backend &b, const std::string &why) { b.shared()->abort(why); },
            Release())
        .def("first_awaited", &Backend::first_awaited, Release())
        .def("first_done", &Backend::first_done, Release())
        .def(
            "_set_default_timeout", [](Backend &b, Milliseconds timeout) { b.setTimeout(timeout); },
            Release())
        .def(
            "monitored_barrier",
            [](Backend &b, std::optional<Milliseconds> timeout, bool all) {
                c10d::BarrierOptions o;
                o.timeout = timeout ? *timeout : c10d::kUnsetTimeout;
                b.monitoredBarrier(o, all);
            },
            py::arg("timeout") = py::none(), py::arg("wait_all_ranks") = false, Release());
    m.def("join", &world_joined, Release());
    m.def("worlds", &worlds_here);
    m.def("world", &world_of);
    m.def("make", &backend_made, Release());
    m.def("make_across", &backend_across, Release());
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    m.def("unmade", [](const std::string &name, Milliseconds timeout) {
        return c10::make_intrusive<Backend>(name, timeout);
    });
#endif
    m.def("setup",
          [](py::object error, py::object interrupted, py::object is_default,
             const std::vector<std::string> &folders) {
              failure_setup(std::move(error), std::move(interrupted));
              interrupt_setup(is_default.release().ptr());
              for (const std::string &folder : folders)
                  site_pass_over(folder.c_str());
          });
    m.def("site_check", &site_check);
    m.def("site_here", &site_here);
    m.def("leave", &comms_leave, Release());
    m.attr("key") = TUTTI_C10D_KEY;
}
