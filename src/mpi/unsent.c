/* MPICH over UCX sends by ucp_tag_send_nbx. Where that cannot send, as the connection has ended,
 * MPICH 5.0.2 writes to a request that there is none of: SIGSEGV at 0x110, without a word, in
 * whichever function of the MPI sends to a rank that has died. In a collective of several hosts
 * such a message counts as sent: that collective tells it. Any other call gets what UCX says.
 *
 * Cost: of a message of UCX a load, a call and a comparison. */
#include "mpi/unsent.h"

#include "base/atomic.h"

#include <dlfcn.h>
#include <stddef.h>

typedef void *sender(void *to, const void *at, size_t n, uint64_t tag, const void *how);
enum { ERRORS = 100, UNSUPPORTED = 22 };       /* of UCX, negative, as pointers */

static shared64 teller, sender_below;

void unsent_told(uintptr_t fn)
{
    store_relaxed64(&teller, fn);              /* relaxed: before the MPI's init */
}

/* An MPI that was opened has its UCX out of sight. */
static sender *find(void)
{
    uint64_t fn = load_relaxed64(&sender_below);       /* relaxed: all who look find the same */
    if (fn)
        return (sender *)(uintptr_t)fn;
    fn = (uintptr_t)dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    if (!fn) {
        void *ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        fn = ucx ? (uintptr_t)dlsym(ucx, "ucp_tag_send_nbx") : 0;
    }
    store_relaxed64(&sender_below, fn);                /* relaxed: as above */
    return (sender *)(uintptr_t)fn;
}

__attribute__((visibility("default"))) sender ucp_tag_send_nbx;

void *ucp_tag_send_nbx(void *to, const void *at, size_t n, uint64_t tag, const void *how)
{
    sender *send = find();
    void *r = send ? send(to, at, n, tag, how) : (void *)(intptr_t)-UNSUPPORTED;
    if ((uintptr_t)r < (uintptr_t)-ERRORS)
        return r;
    uint64_t fn = load_relaxed64(&teller);             /* relaxed: stored before the MPI's init */
    return fn && ((bool (*)(void))(uintptr_t)fn)() ? NULL : r;
}
