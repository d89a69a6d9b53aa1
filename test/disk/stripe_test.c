/* A rank's share of a file: that the shares are the file, that what is read is what is there, by
 * both ways, and what a stripe says of a file that ends too early, of descriptors that cannot be
 * read, and of one that takes no whole pages. */
#include "disk/stripe.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, BYTES = 5 * MIB + 777 };

static char path[64];
static char *memory;
static unsigned char content[BYTES];

static void test_shares(void **state)
{
    static const uint64_t sizes[] = {
        0, 1, 4095, 4096, 4097, 100000, 7 * MIB, 64 * MIB + 1, UINT64_C(1) << 40
    };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t ranks = 1; ranks < 20; ranks++) {
            uint64_t at = 0, most = 0;
            for (uint32_t me = 0; me < ranks; me++) {
                uint64_t from, to;
                stripe_share(sizes[i], ranks, me, &from, &to);
                assert_true(from == at && to >= from
                            && (from % STRIPE_PAGE == 0 || from == sizes[i]));
                most = to - from > most ? to - from : most;
                at = to;
            }
            assert_true(at == sizes[i]);
            assert_true(most <= sizes[i] / ranks + 2 * MIB);
        }
}

static struct stripe run(struct stripe_plan plan)
{
    struct stripe s;
    assert_int_equal(stripe_begin(&s, &plan), 0);
    while (!stripe_advance(&s))
        sched_yield();
    stripe_end(&s);
    return s;
}

static int open_it(int flags) { return open(path, flags | O_CLOEXEC); }

static void drop_from_cache(void)
{
    int fd = open_it(O_RDONLY);
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void read_back(bool cached)
{
    int fd = open_it(O_RDONLY), direct = open_it(O_RDONLY | O_DIRECT);
    for (uint32_t ranks = 1; ranks < 5; ranks++) {
        memset(memory, 0xee, BYTES);
        for (uint32_t me = 0; me < ranks; me++) {
            struct stripe_plan plan = { kept_of(fd), kept_of(direct), false, memory, 0, 0 };
            stripe_share(BYTES, ranks, me, &plan.from, &plan.to);
            if (!cached)
                drop_from_cache();
            struct stripe s = run(plan);
            assert_int_equal(s.error, 0);
            assert_int_equal(s.moved, plan.to - plan.from);
        }
        assert_memory_equal(memory, content, BYTES);
    }
    close(fd);
    if (direct >= 0)
        close(direct);
}

static void test_reads(void **state)
{
    (void)state;
    read_back(true);
    read_back(false);
    setenv("TUTTI_URING", "0", 1);
    read_back(true);
    read_back(false);
    unsetenv("TUTTI_URING");
}

static void write_out(void)
{
    char other[80];
    snprintf(other, sizeof other, "%s.out", path);
    int fd = open(other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (uint32_t me = 0; me < 3; me++) {
        struct stripe_plan plan = { kept_of(fd), KEPT_NONE, true, (char *)content, 0, 0 };
        stripe_share(BYTES, 3, me, &plan.from, &plan.to);
        struct stripe s;
        assert_int_equal(stripe_begin(&s, &plan), 0);
        while (!stripe_advance(&s))
            sched_yield();
        stripe_sync(&s, &plan.file);
        while (!stripe_advance(&s))
            sched_yield();
        assert_int_equal(s.error, 0);
        stripe_end(&s);
    }
    assert_int_equal(pread(fd, memory, BYTES, 0), BYTES);
    assert_memory_equal(memory, content, BYTES);
    close(fd);
    unlink(other);
}

static void test_writes(void **state)
{
    (void)state;
    write_out();
    setenv("TUTTI_URING", "0", 1);
    write_out();
    unsetenv("TUTTI_URING");
}

/* The plan believes in more bytes than there are. */
static void ends_early(void)
{
    int fd = open_it(O_RDONLY), direct = open_it(O_RDONLY | O_DIRECT);
    for (int i = 0; i < 2; i++) {
        struct stripe s = run((struct stripe_plan){ kept_of(fd), kept_of(i ? direct : -1), false,
                                                    memory, 0, BYTES + 2 * MIB });
        assert_true(s.ended && s.error == -EIO && s.error_at >= BYTES);
        assert_memory_equal(memory, content, BYTES / MIB * MIB);
    }
    close(fd);
    close(direct);
}

static void test_a_file_that_ends_early(void **state)
{
    (void)state;
    ends_early();
    setenv("TUTTI_URING", "0", 1);
    ends_early();
    unsetenv("TUTTI_URING");
}

/* The first error stands, with its place; what was under way is over when the stripe is. */
static void test_errors(void **state)
{
    (void)state;
    int wrong = open_it(O_WRONLY), fd = open_it(O_RDONLY);
    struct stripe s = run(
        (struct stripe_plan){ kept_of(wrong), KEPT_NONE, false, memory, MIB, BYTES });
    assert_true(s.error == -EBADF && s.error_at >= MIB && s.busy == 0 && s.moved == 0);
    s = run((struct stripe_plan){ kept_of(fd), KEPT_NONE, true, memory, 0, BYTES });
    assert_true(s.error == -EBADF && s.busy == 0);
    struct stripe sync;
    assert_int_equal(stripe_begin(&sync,
                                  &(struct stripe_plan){ kept_of(fd), KEPT_NONE, true, memory, 0,
                                                         0 }),
                     0);
    assert_true(stripe_advance(&sync));
    stripe_sync(&sync, &KEPT_NONE);
    while (!stripe_advance(&sync))
        sched_yield();
    assert_int_equal(sync.error, -EBADF);
    stripe_end(&sync);
    close(wrong);
    close(fd);
}

/* The program closes the descriptor while the file is read or written, and opens another file
   under its number: an error, and nothing of the other file is in the result, nor anything of
   ours in it. */
static void is_replaced(bool write)
{
    char other[80];
    snprintf(other, sizeof other, "%s.other", path);
    int fd = open_it(O_RDWR), another = open(other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    static const char theirs[4096] = "theirs";
    assert_int_equal(pwrite(another, theirs, sizeof theirs, 0), sizeof theirs);
    assert_int_equal(ftruncate(another, BYTES), 0);
    struct stripe s;
    assert_int_equal(stripe_begin(&s,
                                  &(struct stripe_plan){ kept_of(fd), KEPT_NONE, write, memory, 0,
                                                         BYTES }),
                     0);
    assert_int_equal(dup3(another, fd, O_CLOEXEC), fd);
    while (!stripe_advance(&s))
        sched_yield();
    assert_int_equal(s.error, -EBADF);
    assert_int_equal(s.moved, 0);
    stripe_end(&s);
    char is[sizeof theirs];
    assert_int_equal(pread(another, is, sizeof is, 0), sizeof is);
    assert_memory_equal(is, theirs, sizeof is);
    close(fd);
    close(another);
    unlink(other);
}

static void test_replaced(void **state)
{
    (void)state;
    is_replaced(false);
    is_replaced(true);
    setenv("TUTTI_URING", "0", 1);
    is_replaced(false);
    is_replaced(true);
    unsetenv("TUTTI_URING");
}

/* A descriptor for whole pages that takes something else: the file comes through the cache. Memory
   that begins within a page is what O_DIRECT refuses. */
static void test_pages_refused(void **state)
{
    (void)state;
    int fd = open_it(O_RDONLY), direct = open_it(O_RDONLY | O_DIRECT);
    drop_from_cache();
    struct stripe s;
    assert_int_equal(stripe_begin(&s,
                                  &(struct stripe_plan){ kept_of(fd), kept_of(direct), false,
                                                         memory + 1, 0, BYTES }),
                     0);
    while (!stripe_advance(&s))
        sched_yield();
    if (s.error == 0)                           /* else it is memory_populate that wants pages */
        assert_memory_equal(memory + 1, content, BYTES);
    stripe_end(&s);
    close(fd);
    close(direct);
}

/* Ended in the middle: nothing is written into the memory afterwards. */
static void test_end_waits(void **state)
{
    (void)state;
    int fd = open_it(O_RDONLY), direct = open_it(O_RDONLY | O_DIRECT);
    for (int i = 0; i < 20; i++) {
        struct stripe s;
        drop_from_cache();
        assert_int_equal(stripe_begin(&s,
                                      &(struct stripe_plan){ kept_of(fd), kept_of(direct), false,
                                                             memory, 0, BYTES }),
                         0);
        stripe_advance(&s);
        stripe_end(&s);
        memset(memory, 0, BYTES);
        sched_yield();
        for (size_t at = 0; at < BYTES; at++)
            assert_int_equal(memory[at], 0);
    }
    close(fd);
    close(direct);
}

static int make(void **state)
{
    (void)state;
    int fd = mkstemp(scratch_name(path, sizeof path, "stripe"));
    for (size_t i = 0; i < BYTES; i++)
        content[i] = (unsigned char)(i * 2654435761u >> 11);
    memory = mmap(NULL, BYTES + 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool wrote = fd >= 0 && write(fd, content, BYTES) == BYTES;
    close(fd);
    return wrote && memory != MAP_FAILED ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares), cmocka_unit_test(test_reads), cmocka_unit_test(test_writes),
        cmocka_unit_test(test_a_file_that_ends_early), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_pages_refused),
        cmocka_unit_test(test_end_waits),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
