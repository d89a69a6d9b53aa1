/* Job: the fixture of the tests of joining: one job, whose name is new for each test; what its
 * ranks report is asserted.
 * Owns: the joiners of the test that runs, and the name of their job.
 * Never: how a rank joins (joiners). */
#ifndef TUTTI_TEST_GROUP_JOIN_FIXTURE_H
#define TUTTI_TEST_GROUP_JOIN_FIXTURE_H

#include "joiners.h"

extern struct joiners joiners;
extern char job_name[96];

/* For cmocka_unit_test_setup_teardown. */
int join_setup(void **state);
int join_teardown(void **state);

/* A child in `slot` joins the job as this rank of `size`. */
void start_rank(int slot, int rank, int size);

/* Waits for the report of the child in `slot`: this error, with a sentence; or 0, without one. */
struct joiners_report *expect_report(int slot, int error);
/* The same, and the sentence has `part` in it. */
void expect_text(int slot, int error, const char *part);

#endif
