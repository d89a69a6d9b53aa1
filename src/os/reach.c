/* The kernel copies page by page, out of the other process's memory into ours: one copy, where a stage in shared memory takes two. It ends
 * early where a page is missing, and at the most that one call may move. */
#include "os/reach.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

int reach_read(pid_t pid, void *to, uint64_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct iovec here = { (char *)to + done, bytes - done }, there = { (void *)(uintptr_t)(at + done), bytes - done };
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EFAULT;
        done += (size_t)n;
    }
    return 0;
}

int reach_own(const void *at, size_t bytes)
{
    char ends[2];
    struct iovec here = { ends, sizeof ends };
    struct iovec there[2] = { { (void *)(uintptr_t)at, 1 }, { (void *)((uintptr_t)at + bytes - 1), 1 } };
    if (bytes == 0)
        return 0;
    ssize_t n = process_vm_readv(getpid(), &here, 1, there, 2, 0);
    return n == 2 ? 0 : n < 0 ? -errno : -EFAULT;
}
