/* Huge pages for shared memory are off by default on most systems. MADV_COLLAPSE (Linux 6.1) makes
 * them on request with any setting. It needs one present page in each of them, so one small page is
 * touched first; the rest of the huge page is zeroed.
 * Cost: 64 MiB in 6 ms, the fastest way to populate: page by page takes 20 ms, and to collapse
 * present pages 170 ms (it copies).
 * Without MADV_COLLAPSE there is only MADV_HUGEPAGE. The kernel is asked afterwards which pages are
 * huge. */
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Newer than the headers we are built with. */
enum { COLLAPSE = 25 };

struct scan_region { uint64_t start, end, categories; };
struct scan_arg {
    uint64_t size, flags, start, end, loop_end, regions, regions_length, most_pages, inverted, mask,
        any_of, return_mask;
};
#define SCAN _IOWR('f', 16, struct scan_arg)
#define SCAN_HUGE (UINT64_C(1) << 6)

/* PAGEMAP_SCAN (6.7): bytes mapped as huge pages in the stretch; -1: not known here. */
static int64_t scan(char *at, size_t bytes)
{
    struct scan_region region[16] = { { 0, 0, 0 } };   /* memcheck does not know who writes there */
    struct scan_arg arg = {
        .size = sizeof arg, .start = (uint64_t)(uintptr_t)at,
        .end = (uint64_t)(uintptr_t)(at + bytes), .regions = (uint64_t)(uintptr_t)region,
        .regions_length = 16, .mask = SCAN_HUGE, .return_mask = SCAN_HUGE
    };
    int fd = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    int64_t found = fd < 0 ? -1 : 0;
    while (found >= 0 && arg.start < arg.end) {
        int n = ioctl(fd, SCAN, &arg);
        if (n < 0)
            found = -1;
        for (int i = 0; i < n; i++)
            found += (int64_t)(region[i].end - region[i].start);
        if (n >= 0 && arg.loop_end <= arg.start)
            break;
        arg.start = arg.loop_end;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* By smaps, for all mappings that the range touches: too much if they reach beyond it. */
static size_t smaps(char *at, size_t bytes)
{
    char line[512];
    unsigned long from, to, kib;
    size_t found = 0;
    bool inside = false;
    FILE *f = fopen("/proc/thread-self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from < (uintptr_t)(at + bytes) && to > (uintptr_t)at;
        else if (inside && sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
            found += (size_t)kib * 1024;
    }
    if (f)
        fclose(f);
    return found < bytes ? found : bytes;
}

/* An empty range is refused only if the kernel does not know the advice. */
bool memory_collapses(void) { return madvise(NULL, 0, COLLAPSE) == 0; }
bool memory_scans(void) { return scan(NULL, memory_page()) >= 0; }

size_t memory_huge(void *at, size_t bytes)
{
    int64_t found = bytes ? scan(at, bytes) : 0;
    return found >= 0 ? (size_t)found : smaps(at, bytes);
}

/* A huge page is what one table of pages maps: 2 MiB where pages have 4 KiB, 32 MiB of 16 KiB, 512
 * MiB of 64 KiB. A range without a whole one gets no advice: that would only split its mapping. */
static size_t huge_page(void) { return memory_page() / sizeof(uint64_t) * memory_page(); }

/* A huge page is made on the node of the small one that was there before it. Where small pages lie
 * on the nodes in turn they do so by their number, and the first of each 512 would, for most
 * numbers of nodes, always be on the same few. So one is taken whose number leaves the same rest as
 * `number` by 480, and by what divides that: 2, 3, 4, 5, 6, 8, 10, 12, 16, 32 nodes. */
static size_t host_copy_page_of(uint64_t number, size_t page)
{
    const uint64_t turn = 480, small = memory_page(), pages = page / small;
    return pages < turn ? 0 : (size_t)(number % turn * (turn - (pages - 1) % turn) % turn * small);
}

int memory_populate_huge(void *at, size_t bytes, uint64_t number, size_t *huge)
{
    const size_t page = huge_page();
    uintptr_t from = ((uintptr_t)at + page - 1) / page * page,
              to = ((uintptr_t)at + bytes) / page * page;
    *huge = 0;
    if (from < to) {
        char *start = (char *)at + (from - (uintptr_t)at);
        int error = 0;
        for (size_t i = 0; i < to - from && !error; i += page)
            error = memory_populate(start + i + host_copy_page_of(number + i / page, page), 1);
        if (error)
            return error;
        if (madvise(start, to - from, COLLAPSE) != 0 && errno == EINVAL)
            madvise(start, to - from, MADV_HUGEPAGE);
    }
    int error = memory_populate(at, bytes);
    if (error == 0 && from < to)
        *huge = memory_huge(at, bytes);
    return error;
}
