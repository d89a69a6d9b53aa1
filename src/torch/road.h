/* Job: the library's operations, each by the road of its group: the library itself where all ranks
 *      share this host, or Hosts where they are on several.
 * Owns: nothing.
 * Never: knows how an operation goes between hosts (hosts_collective.cc). */
#ifndef TORCH_ROAD_H
#define TORCH_ROAD_H

#include <errno.h>

#include "torch/hosts.h"

namespace tutti {

/* hosts: null where all ranks share this host. comm: of the ranks of this host. */
struct Road { tutti_comm *comm; Hosts *hosts; };

inline bool road_busy(const Road &r, const tutti_work *work)
{
    return r.hosts ? !r.hosts->is_over(work) : tutti_test((tutti_work *)work) == -EAGAIN;
}

/* As tutti_wait. asked: as tutti_options.interrupt. *failure: of several hosts alone; else the
 * comm's report is the library's. */
inline int road_wait(const Road &r, const char *site, tutti_work *work, int patience_ms,
                     int (*asked)(void *), Failure *failure)
{
    return r.hosts ? r.hosts->wait(work, patience_ms, asked, failure)
                   : tutti_wait_at(site, work, patience_ms);
}

inline void road_abort(const Road &r, const char *site, const char *why)
{
    if (r.hosts)
        r.hosts->abort(why);
    else
        tutti_comm_abort_at(site, r.comm, why);
}

inline int over_barrier(const char *site, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->barrier(site, k) : tutti_barrier_at(site, r.comm, k);
}

inline int over_broadcast(const char *site, void *buf, size_t n, tutti_type t, int root,
                          const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->broadcast(site, buf, n, t, root, k)
                   : tutti_broadcast_at(site, buf, n, t, root, r.comm, k);
}

inline int over_reduce(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                       tutti_op op, int root, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->reduce(site, send, recv, n, t, op, root, k)
                   : tutti_reduce_at(site, send, recv, n, t, op, root, r.comm, k);
}

inline int over_all_reduce(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                           tutti_op op, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->all_reduce_many(site, &send, &recv, &n, 1, t, op, k)
                   : tutti_all_reduce_at(site, send, recv, n, t, op, r.comm, k);
}

inline int over_all_reduce_many(const char *site, const void *const send[], void *const recv[],
                                const size_t counts[], int n, tutti_type t, tutti_op op,
                                const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->all_reduce_many(site, send, recv, counts, n, t, op, k)
                   : tutti_all_reduce_many_at(site, send, recv, counts, n, t, op, r.comm, k);
}

inline int over_reduce_scatter(const char *site, const void *send, void *recv, size_t n,
                               tutti_type t, tutti_op op, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->reduce_scatter(site, send, recv, n, t, op, k)
                   : tutti_reduce_scatter_at(site, send, recv, n, t, op, r.comm, k);
}

inline int over_reduce_scatter_v(const char *site, const void *const send[], const size_t counts[],
                                 void *recv, tutti_type t, tutti_op op, const Road &r,
                                 const tutti_call *k)
{
    return r.hosts ? r.hosts->reduce_scatter_v(site, send, counts, recv, t, op, k)
                   : tutti_reduce_scatter_v_at(site, send, counts, recv, t, op, r.comm, k);
}

inline int over_all_gather(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                           const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->all_gather(site, send, recv, n, t, k)
                   : tutti_all_gather_at(site, send, recv, n, t, r.comm, k);
}

inline int over_all_gather_v(const char *site, const void *send, size_t n, void *const recv[],
                             const size_t counts[], tutti_type t, const Road &r,
                             const tutti_call *k)
{
    return r.hosts ? r.hosts->all_gather_v(site, send, n, recv, counts, t, k)
                   : tutti_all_gather_v_at(site, send, n, recv, counts, t, r.comm, k);
}

inline int over_gather(const char *site, const void *send, void *recv, size_t n, tutti_type t,
                       int root, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->gather(site, send, recv, n, t, root, k)
                   : tutti_gather_at(site, send, recv, n, t, root, r.comm, k);
}

inline int over_gather_v(const char *site, const void *send, size_t n, void *const recv[],
                         const size_t counts[], tutti_type t, int root, const Road &r,
                         const tutti_call *k)
{
    return r.hosts ? r.hosts->gather_v(site, send, n, recv, counts, t, root, k)
                   : tutti_gather_v_at(site, send, n, recv, counts, t, root, r.comm, k);
}

inline int over_scatter_v(const char *site, const void *const send[], const size_t counts[],
                          void *recv, size_t n, tutti_type t, int root, const Road &r,
                          const tutti_call *k)
{
    return r.hosts ? r.hosts->scatter_v(site, send, counts, recv, n, t, root, k)
                   : tutti_scatter_v_at(site, send, counts, recv, n, t, root, r.comm, k);
}

inline int over_all_to_all_v(const char *site, const void *const send[], const size_t sends[],
                             void *const recv[], const size_t recvs[], tutti_type t, const Road &r,
                             const tutti_call *k)
{
    return r.hosts ? r.hosts->all_to_all_v(site, send, sends, recv, recvs, t, k)
                   : tutti_all_to_all_v_at(site, send, sends, recv, recvs, t, r.comm, k);
}

inline int over_send(const char *site, const void *buf, size_t n, tutti_type t, int to, int tag,
                     const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->send(site, buf, n, t, to, tag, k)
                   : tutti_send_at(site, buf, n, t, to, tag, r.comm, k);
}

inline int over_recv(const char *site, void *buf, size_t n, tutti_type t, int from, int tag,
                     tutti_message *got, const Road &r, const tutti_call *k)
{
    return r.hosts ? r.hosts->recv(site, buf, n, t, from, tag, got, k)
                   : tutti_recv_at(site, buf, n, t, from, tag, got, r.comm, k);
}

}

#endif
