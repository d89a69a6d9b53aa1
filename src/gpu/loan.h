/* Job: one loan as its lender sees it: begun, called back, returned.
 * Owns: the words of the loan but for the borrowers' bits (layout.h).
 * Never: what is lent (ipc_export.h), the borrowers' side (ipc_import.h).
 *
 * All but loan_await under the lender's lock. The edges are those of ipc_export.h. */
#ifndef TUTTI_GPU_LOAN_H
#define TUTTI_GPU_LOAN_H

#include "gpu/ipc_import.h"

/* What is lent may be opened from here on. */
void loan_begin(struct loan *loan, uint64_t generation);
/* Nobody opens it any more. */
void loan_call_back(struct loan *loan, uint64_t generation);
bool loan_is_called_back(const struct loan *loan);
/* Has nobody it open? Who is gone has not. */
bool loan_is_back(struct loan *loan, struct seat *seats, uint32_t size);
/* Sleeps until the loan, which has been called back, is returned, or the time is over. Without the
 * lock: those who return it may want it. */
bool loan_await(struct loan *loan, struct seat *seats, uint32_t size,
                struct ipc_import *handles, uint64_t deadline);

#endif
