/* ctest: timeout=120 */
/* A disk that does not answer for as long as the test likes: what rank 1 saves lies in memory whose
 * pages come when a thread of the test puts them there (userfaultfd), so that the write of them
 * takes that long. Slow, too slow for the deadline, and of a rank that dies meanwhile. */
#include "support/leftovers.h"
#include "support/ranks.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, SLOW = 1, PAGE = 4096, BYTES = 3 * 64 * PAGE, DEADLINE_MS = 200 };
enum { ASKED, BACK, RELEASED };        /* words of the page */

static char folder[64], path[96];
static struct disk { int fd; bool dies; } disk;

/* -1: this system lets us not. */
static int faults_open(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void *serve(void *arg)
{
    struct uffd_msg asked;
    const struct disk *d = arg;
    bool first = true;
    while (read(d->fd, &asked, sizeof asked) == (ssize_t)sizeof asked) {
        if (first) {
            ranks_say(ASKED, 1);
            if (d->dies)
                ranks_die();
            ranks_await(RELEASED, 1);
            first = false;
        }
        struct uffdio_zeropage zero = {
            .range = { asked.arg.pagefault.address / PAGE * PAGE, PAGE }
        };
        ioctl(d->fd, UFFDIO_ZEROPAGE, &zero);
    }
    return NULL;
}

/* Zeros: of everybody but the slow one at once. */
static void *zeros(int rank)
{
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    if (rank != SLOW || at == MAP_FAILED)
        return at == MAP_FAILED ? NULL : at;
    struct uffdio_register all = {
        .range = { (uintptr_t)at, BYTES }, .mode = UFFDIO_REGISTER_MODE_MISSING
    };
    disk.fd = faults_open();
    if (disk.fd < 0 || ioctl(disk.fd, UFFDIO_REGISTER, &all) != 0
        || pthread_create(&thread, NULL, serve, &disk) != 0)
        return NULL;
    pthread_detach(thread);
    return at;
}

static off_t length(void)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static int slow(tutti_comm *world, int rank)
{
    void *data = zeros(rank);
    tutti_work *work;
    CHECK(data);
    CHECK_IS(tutti_save(path, data, BYTES, world, &(tutti_call){ .work = &work }), 0);
    if (rank == 0) {
        CHECK_IS(ranks_await(ASKED, 1), 0);
        CHECK_IS(tutti_test(work), -EAGAIN);
        CHECK_IS(length(), 4);
        ranks_say(RELEASED, 1);
    }
    CHECK_IS(tutti_wait(work, 0), 0);
    CHECK_IS(length(), BYTES);
    return 0;
}

static int too_slow(tutti_comm *world, int rank)
{
    void *data = zeros(rank);
    CHECK(data);
    int r = tutti_save(path, data, BYTES, world, &(tutti_call){ .timeout_ms = DEADLINE_MS });
    CHECK_IS(r, -ETIMEDOUT);
    /* Not always rank 1: whoever writes holds the file's lock, and others may wait for that. */
    CHECK(strstr(tutti_explain(world), "missing: rank")
          && strstr(tutti_explain(world), ", which waits for its disk\n"));
    CHECK_IS(length(), 4);
    CHECK_IS(ranks_count(BACK) >= RANKS, 0);
    CHECK_IS(ranks_await(BACK, RANKS), 0);  /* nobody is held up by it, not even its own rank … */
    if (rank == 0)
        ranks_say(RELEASED, 1);
    while (leftovers_of_save(folder))                   /* … and when it answers, nothing is left */
        sched_yield();
    return 0;
}

static int dies(tutti_comm *world, int rank)
{
    disk.dies = true;
    void *data = zeros(rank);
    CHECK(data);
    CHECK_IS(tutti_save(path, data, BYTES, world, NULL), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 1 "));
    CHECK_IS(length(), 4);
    return 0;
}

static void run(ranks_body *body, unsigned doomed)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("old\n", f);
    fclose(f);
    assert_int_equal(ranks_run(RANKS, body, doomed), 0);
    unlink(path);
}

static void test_a_slow_disk(void **state)
{
    (void)state;
    run(slow, 0);
}

static void test_a_deadline_names_the_disk(void **state)
{
    (void)state;
    run(too_slow, 0);
}

static void test_a_death_before_it_answers(void **state)
{
    (void)state;
    run(dies, 1u << SLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slow_disk), cmocka_unit_test(test_a_deadline_names_the_disk),
        cmocka_unit_test(test_a_death_before_it_answers),
    };
    int fd = faults_open();
    if (fd < 0) {
        printf("skipped: userfaultfd is refused: %s\n", strerror(errno));
        return 77;
    }
    close(fd);
    if (!mkdtemp(scratch_name(folder, sizeof folder, "slow")))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    setenv("TUTTI_URING", "0", 1);  /* a ring would have the rank itself wait for the memory */
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(folder) == 0 ? r : 1;
}
