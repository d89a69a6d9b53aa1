/* ctest: timeout=120 */
/* A kernel whose pages have 64 KiB, as some of arm64 have: the driver pins whole pages, each once,
 * so what is registered for one comm shares none with what is registered for another. Such a kernel
 * is played here: what asks for the size of a page, and for memory, is in this program. */
#include "case_device.h"
#include "host_compare.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE_PAGE = 64 << 10, COUNT = 70001, COMMS = 3, TIMES = 4, LIFE_S = 90 };

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { PLAYED = 1 };

void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
    size_t more = at || (flags & MAP_FIXED) ? 0 : LARGE_PAGE;
    size_t whole = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    if (!more)
        return (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
    long got = syscall(SYS_mmap, NULL, whole + more, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got < 0 && got > -4096)
        return MAP_FAILED;
    uintptr_t from = (uintptr_t)got, to = (from + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    if (to > from)
        syscall(SYS_munmap, from, to - from);
    syscall(SYS_munmap, to + whole, from + whole + more - (to + whole));
    return (void *)syscall(SYS_mmap, to, bytes, rights, flags | MAP_FIXED, fd, offset);
}

static long usual(int name) { return name == _SC_NPROCESSORS_ONLN ? 2 : -1; }

long sysconf(int name) { return name == _SC_PAGESIZE ? LARGE_PAGE : usual(name); }
#else
enum { PLAYED = 0 };
#endif

static int comms_beside_each_other(tutti_comm *world, int rank)
{
    tutti_comm *some[COMMS];
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, 0))
        return 1;
    for (int i = 0; i < TIMES; i++) {
        for (int k = 0; k < COMMS; k++)
            IS(tutti_comm_split(world, (rank + k) % 2, rank, &some[k]), 0);
        for (int k = 0; k < COMMS; k++)
            for (int n = 0; n < 3; n++)
                if (compare_run(some[k],
                                &(struct compared){ (enum compare_kind)(R_ALL_REDUCE + n),
                                                    n == 1 ? 300 : COUNT, false, ON_DEVICE, NULL,
                                                    n == 2 }))
                    return 1;
        for (int k = 0; k < COMMS; k++)
            IS(tutti_comm_free(some[k]), 0);
    }
    return compare_end(world);
}

/* Copies from or to what could not be registered end the process. */
static void no_page_is_shared(void **state)
{
    (void)state;
    if (!PLAYED)
        skip_because("a sanitizer has its own mmap: larger pages cannot be played");
    setenv("FAKE_CUDA_PAGE", "65536", 1);
    setenv("FAKE_CUDA_PINNED", "require", 1);
    setenv("TUTTI_ALGORITHM", "device:-inf=pinned", 1);
    assert_int_equal(ranks_run(4, comms_beside_each_other, 0), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("plays another kernel"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_page_is_shared) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
