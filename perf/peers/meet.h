/* Job: ranks of Gloo meet by files in a folder and talk by TCP over loopback, its transport for
 *      machines without InfiniBand.
 * Owns: nothing.
 * Never: an operation. */
#ifndef PERF_MEET_H
#define PERF_MEET_H

#include <memory>
#include <string>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

/* contexts[0 … count): each connects all ranks. Throws what Gloo throws. */
inline void meet(std::shared_ptr<gloo::rendezvous::Context> *contexts, int count, int me, int ranks,
                 const char *folder)
{
    gloo::transport::tcp::attr where;
    where.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore files(folder);
    for (int i = 0; i < count; i++) {
        gloo::rendezvous::PrefixStore store("comm" + std::to_string(i), files);
        contexts[i] = std::make_shared<gloo::rendezvous::Context>(me, ranks);
        contexts[i]->connectFullMesh(store, device);
    }
}

#endif
