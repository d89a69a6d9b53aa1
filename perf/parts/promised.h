/* Job: the library's barrier compiled once more, for each of its promises without what that one costs, and without all of them.
 * Owns: nothing: each is src/api/barrier.c under another name, and works on any comm.
 * Never: called from a program that means its barriers: one without `alive` waits for the dead for ever. */
#ifndef PERF_PROMISED_H
#define PERF_PROMISED_H

#include <tutti.h>

/* By their names in src/base/promised.h. `nothing` is left out of the first: the whole barrier, compiled and linked as the others are. */
int promised_without_nothing_at(const char *site, tutti_comm *comm, const tutti_call *call);
int promised_without_fingerprint_at(const char *site, tutti_comm *comm, const tutti_call *call);
int promised_without_journal_at(const char *site, tutti_comm *comm, const tutti_call *call);
int promised_without_verdict_at(const char *site, tutti_comm *comm, const tutti_call *call);
int promised_without_alive_at(const char *site, tutti_comm *comm, const tutti_call *call);
int promised_without_all_at(const char *site, tutti_comm *comm, const tutti_call *call);

#endif
