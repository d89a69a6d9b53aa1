/* For builds without liburing: no ring can be made, so transfers use threads. Cost: none. */
#include "os/uring.h"

#include <errno.h>

struct uring *uring_open(unsigned depth, int *error)
{
    (void)depth;
    *error = -ENOSYS;
    return NULL;
}

bool uring_knows(int request)
{
    (void)request;
    return false;
}

int uring_give(struct uring *ring, const struct transfer_piece *piece, unsigned tag)
{
    (void)ring, (void)piece, (void)tag;
    return -ENOSYS;
}

int uring_take(struct uring *ring, struct transfer_end *end)
{
    (void)ring, (void)end;
    return 0;
}

int uring_event(struct uring *ring, int event)
{
    (void)ring, (void)event;
    return -ENOSYS;
}

void uring_wait(struct uring *ring) { (void)ring; }
void uring_close(struct uring *ring) { (void)ring; }
