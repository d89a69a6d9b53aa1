/* The kernel copies page by page from the other process's memory into ours: one copy, where a stage
 * in shared memory takes two. A call ends early at a missing page, and at the most bytes of one
 * call. Cost: in vm_read.h. */
#include "os/vm_read.h"

#include "base/text.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* One system call reads from one process: its first bytes say which process it is. */
int vm_read_known(pid_t pid, struct vm_known known, void *to, uint64_t at, size_t bytes)
{
    char is[VM_KNOWN];
    for (size_t done = 0; done < bytes;) {
        struct iovec here[2] = { { is, known.bytes }, { (char *)to + done, bytes - done } };
        struct iovec there[2] = { { (void *)(uintptr_t)known.at, known.bytes },
                                  { (void *)(uintptr_t)(at + done), bytes - done } };
        bool asks = known.bytes > 0;
        ssize_t n = process_vm_readv(pid, asks ? here : here + 1, asks ? 2 : 1,
                                     asks ? there : there + 1, asks ? 2 : 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (asks
            && ((n < 0 && errno == EFAULT)
                || (n >= 0 && ((size_t)n < known.bytes || memcmp(is, known.known, known.bytes)))))
            return -ESRCH;
        if (n <= (ssize_t)known.bytes)
            return n < 0 ? -errno : -EFAULT;
        done += (size_t)n - known.bytes;
    }
    return 0;
}

int vm_read(pid_t pid, void *to, uint64_t at, size_t bytes)
{
    return vm_read_known(pid, (struct vm_known){ NULL, 0, 0 }, to, at, bytes);
}

/* Users, groups, PR_SET_DUMPABLE (may its memory be read) and capabilities. */
uint64_t vm_rights(void)
{
    struct { uid_t uid[3]; gid_t gid[3]; int dumpable; struct __user_cap_data_struct caps[2]; } now;
    struct __user_cap_header_struct of = { _LINUX_CAPABILITY_VERSION_3, 0 };
    memset(&now, 0, sizeof now);
    getresuid(&now.uid[0], &now.uid[1], &now.uid[2]);
    getresgid(&now.gid[0], &now.gid[1], &now.gid[2]);
    now.dumpable = prctl(PR_GET_DUMPABLE);
    syscall(SYS_capget, &of, now.caps);
    return text_hash(&now, sizeof now, 0);
}

int vm_own(const void *at, size_t bytes)
{
    char ends[2];
    struct iovec here = { ends, sizeof ends };
    struct iovec there[2] = { { (void *)(uintptr_t)at, 1 },
                              { (void *)((uintptr_t)at + bytes - 1), 1 } };
    if (bytes == 0)
        return 0;
    ssize_t n = process_vm_readv(getpid(), &here, 1, there, 2, 0);
    return n == 2 ? 0 : n < 0 ? -errno : -EFAULT;
}
