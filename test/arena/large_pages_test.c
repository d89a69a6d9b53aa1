/* ctest: timeout=60 labels=nosan */
/* The books of a span on a kernel whose pages have 16 or 64 KiB, as some of arm64 have: pieces
 * begin and end with a page, so none shares one with its neighbour. The kernel is played: what asks
 * for the size of a page is in this program. Books only: no page is touched. */
#include "arena/span.h"

#include "os/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES (UINT64_C(64) << 20)

static long page = 4096;

long sysconf(int name) { return name == _SC_PAGESIZE ? page : -1; }

static void pieces_are_whole_pages(void **state)
{
    static const long pages[] = { 4096, 16 << 10, 64 << 10 };
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pieces_are_whole_pages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
