/* Job: take an operation of a process group from its tensors to its Work: the first and last steps
 *      that all operations share.
 * Owns: the flight until the start.
 * Never: depends on the kind of operation. */
#ifndef TORCH_PLAN_H
#define TORCH_PLAN_H

#include "torch/backend.h"

namespace tutti {

struct Backend::Plan {
    Backend &group;
    const char *const what;             /* torch's name of it, for error messages */
    Flight flight;
    Flight *landed = nullptr;           /* its place after the start */

    Plan(Backend &g, const char *w) : group(g), what(w)
    {
        if (!g.comm)
            g.shared();
    }

    Side side(c10::ArrayRef<at::Tensor> tensors, Way way)
    {
        if (!group.comm->spans_hosts())
            return Side(what, tensors, way, flight.held);
        /* the leaders' engine moves memory of the host alone */
        return Side(what, on_host(what, tensors, way, flight.held), way, flight.held);
    }
    int rank() const { return group.comm->rank; }
    size_t ranks() const { return (size_t)group.comm->size; }

    tutti_call call_of(c10::Device device, Async how)
    {
        tutti_call with{};
        with.timeout_ms = group.comm->deadline_ms(how.timeout == c10d::kUnsetTimeout
                                                      ? 0
                                                      : milliseconds(how.timeout),
                                                  &flight);
        with.stream = stream_of(device);
        with.factor = flight.factor.defined() ? flight.factor.const_data_ptr() : nullptr;
        return with;
    }

    /* call(site, comm, &call) is the library's function. If the library refuses the call, this
     * throws. Another failure becomes the end of the Work. */
    template <class Call> void start(Work &work, c10::Device device, Async how, const Call &call)
    {
        tutti_call with = call_of(device, how);
        auto heap = std::make_unique<Flight>(std::move(flight));
        landed = heap.get();
        Failure why;
        if (group.comm->start(*heap, with, &why, call)) {
            work.holds(std::move(heap));
            if (how.async || group.coalescing)
                group.comm->go_on();
        } else if (why.error == -EINVAL) {
            fail(why);
        } else {
            work.end(std::move(why));
        }
    }

    /* inputs: for a profile, if they are not the value. */
    c10::intrusive_ptr<Work> work(c10d::OpType type, const char *title, Tensors value,
                                  const Tensors *inputs = nullptr) const
    {
        auto made = c10::make_intrusive<Work>(group.comm, type, title, std::move(value), inputs);
        made->number = group.comm->started();
        return made;
    }

    WorkPtr end(c10::intrusive_ptr<Work> work, Async how) const
    {
        if (!how.async)
            work->wait();
        return group.given(std::move(work));
    }

    template <class Call>
    WorkPtr go(c10d::OpType type, const char *title, c10::ArrayRef<at::Tensor> value,
               c10::Device device, Async how, const Call &call)
    {
        if (!how.async && !title && !group.coalescing) {        /* nobody needs a Work */
            Failure why;
            if (group.comm->start(flight, call_of(device, how), &why, call))
                group.comm->await(flight, 0, &why);
            if (why.error)
                fail(why);
            return group.over;
        }
        auto made = work(type, title, value.vec());
        start(*made, device, how, call);
        return end(std::move(made), how);
    }
};

}

#endif
