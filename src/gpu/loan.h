/* Job: begin a loan for its lender, call it back, see it returned.
 * Owns: the words of the loan, except the borrowers' bits (layout.h).
 * Never: chooses what is lent (ipc_export.h); acts for borrowers (ipc_import.h).
 *
 * All except loan_await run under the lender's lock. ipc_export.h defines the edges. */
#ifndef TUTTI_GPU_LOAN_H
#define TUTTI_GPU_LOAN_H

#include "gpu/ipc_import.h"

/* From here on peers may open what is lent. */
void loan_begin(struct loan *loan, uint64_t generation);
/* From here on nobody opens it. */
void loan_call_back(struct loan *loan, uint64_t generation);
bool loan_is_called_back(const struct loan *loan);
/* True: nobody has it open. A rank that is gone does not count. */
bool loan_is_back(struct loan *loan, struct seat *seats, uint32_t size);
/* True: that rank has it open. */
bool loan_is_held(const struct loan *loan, uint32_t rank);
/* Sleeps until the loan, which was called back, is returned, or the time is over. Not under the
 * lock: those who return the loan may need it. */
bool loan_await(struct loan *loan, struct seat *seats, uint32_t size,
                struct ipc_import *handles, uint64_t deadline);

#endif
