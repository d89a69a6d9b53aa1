/* A rank of Gloo: peer_gloo STAGE RANK FOLDER. It has neither scans nor work under way; its
 * reduce_scatter is of another, older kind, made anew for each buffer, and is left out. */
#include "harness/member.h"
#include "peers/meet.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;

float *floats(char *at) { return reinterpret_cast<float *>(at); }
size_t count(const struct rank *r) { return r->bytes / sizeof(float); }
void add(void *to, const void *a, const void *b, size_t n) { gloo::sum<float>(to, a, b, n); }

template <typename Call> int answer(Call call)
{
    try {
        call();
        return 0;
    } catch (const std::exception &e) {
        fprintf(stderr, "%s\n", e.what());
        return -EIO;
    }
}

int barrier(struct rank *)
{
    return answer([] {
        gloo::BarrierOptions o(context);
        gloo::barrier(o);
    });
}

int all_reduce(struct rank *r)
{
    return answer([=] {
        gloo::AllreduceOptions o(context);
        o.setInput(floats(r->send), count(r));
        o.setOutput(floats(r->recv), count(r));
        o.setReduceFunction(add);
        gloo::allreduce(o);
    });
}

int broadcast(struct rank *r)
{
    return answer([=] {
        gloo::BroadcastOptions o(context);
        o.setOutput(floats(r->me == 0 ? r->send : r->recv), count(r));
        o.setRoot(0);
        gloo::broadcast(o);
    });
}

int reduce(struct rank *r)
{
    return answer([=] {
        gloo::ReduceOptions o(context);
        o.setInput(floats(r->send), count(r));
        o.setOutput(floats(r->recv), count(r));
        o.setReduceFunction(add);
        o.setRoot(0);
        gloo::reduce(o);
    });
}

int all_gather(struct rank *r)
{
    return answer([=] {
        gloo::AllgatherOptions o(context);
        o.setInput(floats(r->send), count(r));
        o.setOutput(floats(r->recv), count(r) * static_cast<size_t>(r->size));
        gloo::allgather(o);
    });
}

int gather(struct rank *r)
{
    return answer([=] {
        gloo::GatherOptions o(context);
        o.setInput(floats(r->send), count(r));
        if (r->me == 0)
            o.setOutput(floats(r->recv), count(r) * static_cast<size_t>(r->size));
        o.setRoot(0);
        gloo::gather(o);
    });
}

int scatter(struct rank *r)
{
    return answer([=] {
        gloo::ScatterOptions o(context);
        if (r->me == 0) {
            std::vector<float *> parts;
            for (int i = 0; i < r->size; i++)
                parts.push_back(floats(r->send) + static_cast<size_t>(i) * count(r));
            o.setInputs(parts, count(r));
        }
        o.setOutput(floats(r->recv), count(r));
        o.setRoot(0);
        gloo::scatter(o);
    });
}

int all_to_all(struct rank *r)
{
    return answer([=] {
        gloo::AlltoallOptions o(context);
        o.setInput(floats(r->send), count(r) * static_cast<size_t>(r->size));
        o.setOutput(floats(r->recv), count(r) * static_cast<size_t>(r->size));
        gloo::alltoall(o);
    });
}

}

int main(int argc, char **argv)
{
    struct stage *stage = argc == 4 ? member_join(argv[1]) : nullptr;
    if (!stage)
        return 2;
    int me = atoi(argv[2]);
    if (answer([=] { meet(&context, 1, me, member_ranks(stage), argv[3]); }) < 0
        || barrier(nullptr) < 0)
        return 1;
    member_first(stage, me);
    if (me == 0)
        member_version(stage,
                       (std::to_string(GLOO_VERSION_MAJOR) + "."
                        + std::to_string(GLOO_VERSION_MINOR) + "."
                        + std::to_string(GLOO_VERSION_PATCH))
                           .c_str());
    struct system gloo = {};
    gloo.run[OP_BARRIER] = barrier;
    gloo.run[OP_ALL_REDUCE] = all_reduce;
    gloo.run[OP_BROADCAST] = broadcast;
    gloo.run[OP_REDUCE] = reduce;
    gloo.run[OP_ALL_GATHER] = all_gather;
    gloo.run[OP_GATHER] = gather;
    gloo.run[OP_SCATTER] = scatter;
    gloo.run[OP_ALL_TO_ALL] = all_to_all;
    return member_serve(stage, me, &gloo);
}
