/* cmocka gives a setup no argument, so the job is a global of the test's process. */
#include "join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

struct joiners joiners;
char job_name[96];

int join_setup(void **state)
{
    (void)state;
    joiners_open(&joiners);
    joiners_name(job_name, "join");
    return 0;
}

int join_teardown(void **state)
{
    (void)state;
    joiners_close(&joiners);
    return 0;
}

void start_rank(int slot, int rank, int size)
{
    struct join_request r = joiners_request(job_name, rank, size);
    joiners_start(&joiners, slot, &r);
}

struct joiners_report *expect_report(int slot, int error)
{
    struct joiners_report *r = joiners_wait(&joiners, slot);
    assert_non_null(r);
    if (r->error != error)
        print_error("slot %d: %d %s\n", slot, r->error, r->why);
    assert_int_equal(r->error, error);
    assert_int_equal(r->why[0] != 0, error != 0);
    return r;
}

void expect_text(int slot, int error, const char *part)
{
    struct joiners_report *r = expect_report(slot, error);
    if (!strstr(r->why, part))
        print_error("slot %d says \"%s\", not \"%s\"\n", slot, r->why, part);
    assert_non_null(strstr(r->why, part));
}
