/* The lender clears the bits of dead ranks when it looks, so a loan is returned although its
 * borrower has died. */
#include "gpu/loan.h"

#include "group/seat.h"
#include "os/futex.h"
#include "watch/death.h"

#include <limits.h>

void loan_begin(struct loan *loan, uint64_t generation)
{
    store_release64(&loan->state, generation << 1);                  /* E72 release */
}

void loan_call_back(struct loan *loan, uint64_t generation)
{
    store_fence64(&loan->state, generation << 1 | 1);                /* E72 release, E72 fence */
}

bool loan_is_called_back(const struct loan *loan)
{
    return load_relaxed64(&loan->state) & 1;         /* relaxed: our own word, under the lock */
}

bool loan_is_held(const struct loan *loan, uint32_t rank)
{
    return load_acquire32(&loan->held[rank / 32]) >> rank % 32 & 1;      /* E73 acquire */
}

/* By the mark, which costs nothing, or by a look at the process (10 us): the kernel marks nothing
 * in a process that has replaced its list of robust locks. */
static bool gone(struct seat *seat)
{
    return death_of(seat) != GONE_NO || seat_use(seat) == SEAT_PAST;
}

bool loan_is_back(struct loan *loan, struct seat *seats, uint32_t size)
{
    for (uint32_t i = 0; i < RANKS_MAX / 32; i++) {
        uint32_t held = load_acquire32(&loan->held[i]);              /* E72 acquire, E73 acquire */
        for (uint32_t bit = 0; held && bit < 32; bit++) {
            uint32_t rank = 32 * i + bit;
            if (!(held >> bit & 1))
                continue;
            if (rank < size && !gone(&seats[rank]))
                return false;
            fetch_and32(&loan->held[i], ~(UINT32_C(1) << bit));
        }
    }
    return true;
}

/* ---- the borrower's side ---- */

bool loan_stands(const struct loan *loan, uint64_t generation)
{
    return load_acquire64(&loan->state) == generation << 1;          /* E72 acquire */
}

bool loan_take(struct loan *loan, uint32_t rank, uint64_t generation)
{
    fetch_or32(&loan->held[rank / 32], UINT32_C(1) << rank % 32);
    fence_full();                                                    /* E72 fence */
    if (loan_stands(loan, generation))
        return true;
    loan_return(loan, rank);
    return false;
}

void loan_return(struct loan *loan, uint32_t rank)
{
    fetch_and32(&loan->held[rank / 32], ~(UINT32_C(1) << rank % 32));       /* E73 release */
    fence_full();                                                    /* E72 fence */
    if (!(load_acquire64(&loan->state) & 1))                         /* E72 acquire */
        return;
    fetch_add32(&loan->returned, 1);                                 /* E73 release */
    futex_wake(&loan->returned, INT_MAX);
}
