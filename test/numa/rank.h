/* Job: one rank of a placement job: makes memory of every kind and looks where it has come to lie.
 * Owns: its world.
 * Never: starts processes. */
#ifndef TUTTI_TEST_NUMA_RANK_H
#define TUTTI_TEST_NUMA_RANK_H

#define PLACEMENT_FILE_BYTES ((size_t)24 << 20)

/* bind: core, numa or none, as the launcher or the environment was told, or `asked`: unbound, but
   with a policy of its own, which is all its memory on one node; file: of PLACEMENT_FILE_BYTES. 0:
   all is where it belongs; else it has said what is not. */
int rank_run(const char *bind, const char *file);

#endif
