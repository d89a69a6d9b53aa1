/* ctest: timeout=100 */
/* Ranks that wait where others cannot come to them: as another user, in another network namespace.
 * Whoever times out says so. */
#include "join_fixture.h"
#include "os/handover.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char tail[96];

static int setup(void **state)
{
    (void)state;
    joiners_open(&joiners);
    joiners_name(tail, "elsewhere");
    snprintf(job_name, sizeof job_name, "tutti.%u.%.60s", (unsigned)getuid(), tail);
    return 0;
}

static void start(int rank, int timeout_ms)
{
    struct join_request r = joiners_request(job_name, rank, 3);
    r.timeout_ms = timeout_ms;
    joiners_start(&joiners, rank, &r);
}

static const char *report(int rank)
{
    struct joiners_report *r = joiners_wait(&joiners, rank);
    assert_non_null(r);
    assert_int_equal(r->error, -ETIMEDOUT);
    return r->why;
}

static int listen_as(unsigned uid, const char *of)
{
    char name[108];
    snprintf(name, sizeof name, "tutti.%u.%.60s.0", uid, of);
    int fd = handover_listen(name);
    assert_true(fd >= 0);
    return fd;
}

static void test_nobody(void **state)
{
    (void)state;
    int other_job = listen_as(12345, "of another job"), longer = -1;
    char more[96];
    snprintf(more, sizeof more, "%.60s.1", tail);
    longer = listen_as(12345, more);
    start(0, 100);
    assert_null(strstr(report(0), "elsewhere"));
    close(other_job);
    close(longer);
}

/* Told by its name, which holds the user's number. */
static void test_another_user(void **state)
{
    (void)state;
    char said[128];
    int fd = listen_as(12345, tail);
    snprintf(said, sizeof said, "; elsewhere meet under this name: user 12345, who is not user %u",
             (unsigned)getuid());
    start(1, 60000);
    assert_true(joiners_sits(&joiners, 1, 1));
    start(0, 100);
    const char *why = report(0);
    assert_non_null(strstr(why, "rank 2 did not come"));
    assert_non_null(strstr(why, said));
    close(fd);
}

/* Two ranks of one job, in two namespaces, each in its own meeting. The last test: this process
 * does not come back. */
static void test_another_namespace(void **state)
{
    (void)state;
    start(1, 60000);
    assert_true(joiners_sits(&joiners, 1, 1));
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        skip_because("no network namespace can be had");
    start(0, 100);
    const char *why = report(0);
    assert_non_null(strstr(why, "ranks 1, 2 did not come"));
    assert_non_null(strstr(why,
                           "; elsewhere meet under this name: somebody in another network "
                           "namespace, that of pid "));
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, setup, join_teardown)
    const struct CMUnitTest tests[] = { OF(test_nobody), OF(test_another_user),
                                        OF(test_another_namespace) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
