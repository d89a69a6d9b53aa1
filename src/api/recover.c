/* For a comm that broke: its ranks can still agree on a flag, and those that are left can go on. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "engine/queue.h"
#include "group/agree.h"
#include "os/caller.h"

int tutti_comm_agree_at(const char *site, tutti_comm *comm, int *flag)
{
    CALLER_KEPT;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    if (!flag)
        return guard_leave(comm,
                           guard_refuse(comm, KIND_AGREE, number,
                                        "flag is NULL; give the address of this rank's flag"));
    r = guard_operation(comm, KIND_AGREE, number);
    return guard_leave(comm, r == 0 ? comm_agree(comm, number, flag) : r);
}

/* Work under way ends first: on a broken comm it fails, and its handles hold the result. */
int tutti_comm_shrink_at(const char *site, tutti_comm *broken, tutti_comm **comm)
{
    CALLER_KEPT;
    int r = guard_enter(broken);
    if (r < 0)
        return r;
    uint32_t number = guard_site(broken, site);
    if (!comm)
        return guard_leave(broken,
                           guard_refuse(broken, KIND_SHRINK, number,
                                        "comm is NULL; give the address of a tutti_comm *"));
    *comm = NULL;
    r = guard_operation(broken, KIND_SHRINK, number);
    if (r == 0)
        r = queue_drain(broken, KIND_SHRINK, number);
    if (r == 0 || r == -ECANCELED)
        r = comm_shrink(broken, number, comm);
    return guard_leave(broken, r);
}

int tutti_comm_agree(tutti_comm *comm, int *flag) { return tutti_comm_agree_at(NULL, comm, flag); }

int tutti_comm_shrink(tutti_comm *broken, tutti_comm **comm)
{
    return tutti_comm_shrink_at(NULL, broken, comm);
}
