/* A rank of Gloo: rank_gloo PAGE RANK FOLDER. Gloo has no launcher. Contexts have its default
 * deadline, 30 s, unless the page asks for another. */
#include "faults/scenario.h"
#include "peers/meet.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>

namespace {

std::shared_ptr<gloo::rendezvous::Context> comms[3];

int failed(struct failure *why, const char *kind, const char *text)
{
    snprintf(why->kind, sizeof why->kind, "%s", kind);
    snprintf(why->text, sizeof why->text, "%s", text);
    return -1;
}

template <typename Call> int answer(struct failure *why, Call call)
{
    try {
        call();
        return 0;
    } catch (const gloo::IoException &e) {
        return failed(why, "IoException", e.what());
    } catch (const gloo::Exception &e) {
        return failed(why, "gloo::Exception", e.what());
    } catch (const std::exception &e) {
        return failed(why, "std::exception", e.what());
    }
}

void deadline(int ms)
{
    for (auto &comm : comms)
        if (comm)
            comm->setTimeout(std::chrono::milliseconds(ms));
}

int barrier(int comm, struct failure *why)
{
    return answer(why, [&] {
        gloo::BarrierOptions options(comms[comm]);
        gloo::barrier(options);
    });
}

template <typename T> void sum_up(T *data, size_t count)
{
    gloo::AllreduceOptions options(comms[0]);
    options.setOutput(data, count);
    options.setReduceFunction(
        [](void *to, const void *a, const void *b, size_t n) { gloo::sum<T>(to, a, b, n); });
    gloo::allreduce(options);
}

int all_reduce(void *data, size_t count, enum element type, struct failure *why)
{
    return answer(why, [&] {
        if (type == ELEMENT_FLOAT)
            sum_up(static_cast<float *>(data), count);
        else
            sum_up(static_cast<double *>(data), count);
    });
}

int broadcast(float *data, size_t count, int root, struct failure *why)
{
    return answer(why, [&] {
        gloo::BroadcastOptions options(comms[0]);
        options.setOutput(data, count);
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

}

int main(int argc, char **argv)
{
    static const struct peer peer = { deadline, barrier, all_reduce, broadcast };
    if (argc == 2 && !strcmp(argv[1], "--version"))
        return printf("Gloo %d.%d.%d\n", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH)
            < 0;
    struct page *page = argc == 4 ? page_map(argv[1], 0) : nullptr;
    if (!page)
        return 2;
    int me = atoi(argv[2]);
    struct failure why;
    if (answer(&why,
               [&] {
                   meet(comms, page->fault == CYCLE ? 3 : 1, me, static_cast<int>(page->ranks),
                        argv[3]);
               })
        < 0)
        scenario_unable(page, me, why.kind, why.text);
    scenario_play(page, me, &peer);
}
