/* ctest: timeout=60 labels=nosan */
/* Spans and heaps on a kernel whose pages have 16 or 64 KiB, as some of arm64 have: pieces begin
 * and end with a page, so none shares one with its neighbour; only whole pages are given back, and
 * all of them are. A range that has no whole huge page, which then is 32 or 512 MiB, is not cut by
 * an advice to make some. The kernel is played: what asks for the size of a page, and what is asked
 * to take pages back or is given advice, is in this program. */
#include "arena/heap.h"

#include "os/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES (UINT64_C(64) << 20)

static const long pages[] = { 4096, 16 << 10, 64 << 10 };
static long page = 4096;
static int  parts;                               /* parts of pages that were to be given back */

long sysconf(int name)
{
    if (name == _SC_PAGESIZE)
        return page;
    union { void *found; long (*call)(int); } real = { dlsym(RTLD_NEXT, "sysconf") };
    return real.call(name);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    parts += (mode & FALLOC_FL_PUNCH_HOLE) && (at % page || bytes % page);
    return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

enum { COLLAPSE = 25 };                          /* newer than the headers */
static size_t advised;                           /* bytes for which huge pages were asked */
static bool collapses;                           /* what the kernel knows */

int madvise(void *at, size_t bytes, int advice)
{
    if (advice != MADV_HUGEPAGE && advice != COLLAPSE)
        return (int)syscall(SYS_madvise, at, bytes, advice);
    if (advice == MADV_HUGEPAGE || collapses)
        advised += bytes;
    else
        errno = EINVAL;
    return advice == MADV_HUGEPAGE || collapses ? 0 : -1;
}

static void advice_is_for_whole_huge_pages(void **state)
{
    const size_t bytes = 40 << 20, huge[] = { 2 << 20, 32 << 20, 512 << 20 };
    (void)state;
    for (int i = 0; i < 6; i++) {
        size_t got;
        page = pages[i / 2];
        collapses = i % 2;
        if (page < (long)getauxval(AT_PAGESZ))
            continue;
        char *at = mmap(NULL, bytes + 64 * 1024, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        at += -(uintptr_t)at % (64 * 1024);
        size_t lead = -(uintptr_t)at % huge[i / 2],
               whole = lead < bytes ? (bytes - lead) / huge[i / 2] * huge[i / 2] : 0;
        advised = 0;
        assert_int_equal(memory_populate_huge(at, bytes, 0, &got), 0);
        assert_int_equal(advised, whole);
        munmap(at, bytes);
    }
}

static void pieces_are_whole_pages(void **state)
{
    char *base = (char *)(uintptr_t)(UINT64_C(1) << 40);
    (void)state;
    for (int i = 0; i < 3; i++) {
        page = pages[i];
        assert_int_equal(memory_page(), page);
        struct span *span = span_open(base, BYTES + 4096);
        struct span_piece piece;
        char *behind = base;
        int error;
        assert_non_null(span);
        for (size_t bytes = 1; bytes < (size_t)3 << 20; bytes = bytes * 3 + 1) {
            char *at = span_reserve(span, bytes, SPAN_CALLER, &error);
            assert_non_null(at);
            assert_int_equal((uintptr_t)at % (uintptr_t)page, 0);
            assert_true(at >= behind && span_find(span, at, &piece) && piece.at == at);
            assert_true(piece.bytes >= bytes && piece.bytes < bytes + (size_t)page);
            assert_int_equal(piece.bytes % (uint64_t)page, 0);
            behind = at + piece.bytes;
        }
        assert_null(span_reserve(span, BYTES + 4096, SPAN_CALLER, &error));
        span_close(span);
        span = span_open(base, BYTES + 4096);        /* less than a page at the end is none */
        assert_true(span_first(span, &piece));
        assert_int_equal(piece.bytes, (BYTES + 4096) / (uint64_t)page * (uint64_t)page);
        span_close(span);
    }
}

static uint64_t blocks(const struct arena *a)
{
    struct stat st;
    assert_int_equal(fstat(arena_fd(a), &st), 0);
    return (uint64_t)st.st_blocks;
}

/* Of small pieces one slab stays, of large ones nothing; a slab has room for as many as a page. */
static void whole_pages_go_back(void **state)
{
    enum { MANY = 3000 };
    static char *at[MANY];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char said[512];
    struct text why = TEXT_IN(said);
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct arena a;
        int error;
        page = pages[i];
        if (page < (long)getauxval(AT_PAGESZ))       /* smaller ones than there are go nowhere */
            continue;
        parts = 0;
        assert_int_equal(arena_create(&a, &(struct arena_plan){ .size = 2, .span_bytes = BYTES },
                                      &why), 0);
        struct span *span = span_open(arena_span(&a, 1), BYTES);
        struct heap *heap = span ? heap_open(span, &a, &lock) : NULL;
        assert_non_null(heap);
        uint64_t before = blocks(&a), slab = page > 16384 ? (uint64_t)page : 16384;
        for (int k = 0; k < MANY; k++)
            assert_non_null(at[k] = heap_alloc(heap, k % 100 ? 64 : 5000, &error));
        assert_true(blocks(&a) - before <= (MANY * 64 + 2 * slab + 30 * 2 * slab) / 512);
        for (int k = 0; k < MANY; k++)
            assert_int_equal(heap_free(heap, at[k]), 0);
        assert_int_equal(parts, 0);
        assert_true(blocks(&a) - before <= slab / 512);
        heap_close(heap);
        span_close(span);
        arena_detach(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_whole_pages), cmocka_unit_test(whole_pages_go_back),
        cmocka_unit_test(advice_is_for_whole_huge_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
