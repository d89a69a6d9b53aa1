/* Waits for work under way, whoever made it. */
#define TUTTI_NO_SITES
#include "engine/work.h"

#include "os/caller.h"

#include <errno.h>

int tutti_wait_at(const char *site, tutti_work *work, int timeout_ms)
{
    CALLER_KEPT;
    (void)site;
    return work ? work_wait(work, timeout_ms) : -EINVAL;
}

int tutti_wait(tutti_work *work, int timeout_ms) { return tutti_wait_at(NULL, work, timeout_ms); }

int tutti_test(tutti_work *work)
{
    CALLER_KEPT;
    return work ? work_test(work) : -EINVAL;
}
