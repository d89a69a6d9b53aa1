/* The lender clears the bits of dead ranks when it looks, so a loan is returned although its
 * borrower has died. A wait is cut into slices, to see deaths. */
#include "gpu/loan.h"

#include "base/clock.h"
#include "os/futex.h"
#include "watch/death.h"

enum { SLICE_NS = 5000000 };

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

bool loan_is_back(struct loan *loan, struct seat *seats, uint32_t size)
{
    for (uint32_t i = 0; i < RANKS_MAX / 32; i++) {
        uint32_t held = load_acquire32(&loan->held[i]);              /* E72 acquire, E73 acquire */
        for (uint32_t bit = 0; held && bit < 32; bit++) {
            uint32_t rank = 32 * i + bit;
            if (!(held >> bit & 1))
                continue;
            if (rank < size && death_of(&seats[rank]) == GONE_NO)
                return false;
            fetch_and32(&loan->held[i], ~(UINT32_C(1) << bit));
        }
    }
    return true;
}

bool loan_await(struct loan *loan, struct seat *seats, uint32_t size,
                struct ipc_import *handles, uint64_t deadline)
{
    for (;;) {
        uint32_t seen = load_acquire32(&loan->returned);             /* E73 acquire */
        if (loan_is_back(loan, seats, size))
            return true;
        uint64_t now = clock_ns();
        if (now >= deadline)
            return false;
        ipc_import_sweep(handles);
        futex_wait(&loan->returned, seen, deadline - now < SLICE_NS ? deadline - now : SLICE_NS);
    }
}
