/* The collectives of even parts except all_reduce, which has a shorter path of its own. */
#define TUTTI_NO_SITES
#include "api/collective.h"
#include "os/caller.h"

int collective_device(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t number,
                      const tutti_call *call)
{
    CALLER_KEPT;
    struct device_call d;
    int r = device_check(comm, c, kind, number, call, &d);
    if (r == 0)
        r = run_collective(comm, c, kind, number, call);
    if (c->ways)                                     /* it was not run to its end */
        c->ways->end(c, r);
    return r;
}

int tutti_broadcast_at(const char *site, void *buf, size_t count, tutti_type type, int root,
                       tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, buf, buf, count, type, TUTTI_SUM, root);
    return collective(site, comm, &c, KIND_BROADCAST, call);
}

int tutti_reduce_at(const char *site, const void *send, void *recv, size_t count, tutti_type type,
                    tutti_op op, int root, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, root);
    return collective(site, comm, &c, KIND_REDUCE, call);
}

int tutti_reduce_scatter_at(const char *site, const void *send, void *recv, size_t recvcount,
                            tutti_type type, tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, recvcount, type, op, 0);
    return collective(site, comm, &c, KIND_REDUCE_SCATTER, call);
}

int tutti_all_gather_at(const char *site, const void *send, void *recv, size_t sendcount,
                        tutti_type type, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, sendcount, type, TUTTI_SUM, 0);
    return collective(site, comm, &c, KIND_ALL_GATHER, call);
}

int tutti_gather_at(const char *site, const void *send, void *recv, size_t sendcount,
                    tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, sendcount, type, TUTTI_SUM, root);
    return collective(site, comm, &c, KIND_GATHER, call);
}

int tutti_scatter_at(const char *site, const void *send, void *recv, size_t recvcount,
                     tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, recvcount, type, TUTTI_SUM, root);
    return collective(site, comm, &c, KIND_SCATTER, call);
}

int tutti_all_to_all_at(const char *site, const void *send, void *recv, size_t count,
                        tutti_type type, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, TUTTI_SUM, 0);
    return collective(site, comm, &c, KIND_ALL_TO_ALL, call);
}

int tutti_scan_at(const char *site, const void *send, void *recv, size_t count, tutti_type type,
                  tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, 0);
    return collective(site, comm, &c, KIND_SCAN, call);
}

int tutti_exscan_at(const char *site, const void *send, void *recv, size_t count, tutti_type type,
                    tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, 0);
    return collective(site, comm, &c, KIND_EXSCAN, call);
}

int tutti_same_at(const char *site, const void *ptr, size_t bytes, tutti_comm *comm,
                  const tutti_call *call)
{
    struct coll c;
    check_describe(&c, ptr, (void *)(uintptr_t)ptr, bytes, TUTTI_U8, TUTTI_SUM, 0);
    return collective(site, comm, &c, KIND_SAME, call);
}

int tutti_broadcast(void *buf, size_t count, tutti_type type, int root, tutti_comm *comm,
                    const tutti_call *call)
{
    return tutti_broadcast_at(NULL, buf, count, type, root, comm, call);
}

int tutti_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op, int root,
                 tutti_comm *comm, const tutti_call *call)
{
    return tutti_reduce_at(NULL, send, recv, count, type, op, root, comm, call);
}

int tutti_reduce_scatter(const void *send, void *recv, size_t recvcount, tutti_type type,
                         tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    return tutti_reduce_scatter_at(NULL, send, recv, recvcount, type, op, comm, call);
}

int tutti_all_gather(const void *send, void *recv, size_t sendcount, tutti_type type,
                     tutti_comm *comm, const tutti_call *call)
{
    return tutti_all_gather_at(NULL, send, recv, sendcount, type, comm, call);
}

int tutti_gather(const void *send, void *recv, size_t sendcount, tutti_type type, int root,
                 tutti_comm *comm, const tutti_call *call)
{
    return tutti_gather_at(NULL, send, recv, sendcount, type, root, comm, call);
}

int tutti_scatter(const void *send, void *recv, size_t recvcount, tutti_type type, int root,
                  tutti_comm *comm, const tutti_call *call)
{
    return tutti_scatter_at(NULL, send, recv, recvcount, type, root, comm, call);
}

int tutti_all_to_all(const void *send, void *recv, size_t count, tutti_type type, tutti_comm *comm,
                     const tutti_call *call)
{
    return tutti_all_to_all_at(NULL, send, recv, count, type, comm, call);
}

int tutti_scan(const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
               tutti_comm *comm, const tutti_call *call)
{
    return tutti_scan_at(NULL, send, recv, count, type, op, comm, call);
}

int tutti_exscan(const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
                 tutti_comm *comm, const tutti_call *call)
{
    return tutti_exscan_at(NULL, send, recv, count, type, op, comm, call);
}

int tutti_same(const void *ptr, size_t bytes, tutti_comm *comm, const tutti_call *call)
{
    return tutti_same_at(NULL, ptr, bytes, comm, call);
}
