/* Job: begin a loan for its lender, call it back, see it returned; take and return it for a
 *      borrower.
 * Owns: the words of the loan (layout.h): the lender its state, each borrower its bit.
 * Never: chooses what is lent (ipc_export.h); opens or closes it (ipc_import.h).
 *
 * The lender's functions run under its lock, and the borrower's under that of its openings.
 * ipc_export.h defines the edges. */
#ifndef TUTTI_GPU_LOAN_H
#define TUTTI_GPU_LOAN_H

#include "arena/layout.h"
#include "arena/lent.h"

/* From here on peers may open what is lent. */
void loan_begin(struct loan *loan, uint64_t generation);
/* From here on nobody opens it. */
void loan_call_back(struct loan *loan, uint64_t generation);
bool loan_is_called_back(const struct loan *loan);
/* True: nobody has it open. A rank that is gone does not count. */
bool loan_is_back(struct loan *loan, struct seat *seats, uint32_t size);
/* True: that rank has it open. */
bool loan_is_held(const struct loan *loan, uint32_t rank);
/* For a borrower in seat `rank`. loan_stands: the loan of that generation has not been called back.
 * loan_take: the same, and from here on the lender waits for its return. */
bool loan_stands(const struct loan *loan, uint64_t generation);
bool loan_take(struct loan *loan, uint32_t rank, uint64_t generation);
void loan_return(struct loan *loan, uint32_t rank);

#endif
