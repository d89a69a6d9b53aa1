/* The two cheap phases of a wait, before a sleep in the kernel.
 *
 * A spin costs a core but nothing else, and sees a peer's store after one cache miss. It is right
 * while ranks fit the CPUs and a peer is a few microseconds late. A yield gives the CPU to the
 * awaited rank if ranks outnumber CPUs. Measured with 8 ranks on 2 CPUs: a barrier of yielding
 * ranks takes a tenth of one whose ranks sleep, and a hundredth of one whose ranks spin. Both
 * phases are bounded, in number and in time, so that a rank that waits long sleeps in the end,
 * where it also notices deaths. */
#include "sync/wait.h"

#include "base/clock.h"

#include <sched.h>

/* Spins between two looks at the ends: no measurable cost. And the most looks, whatever the counter
 * says: a tenth of a second and more. */
enum { LOOK_EVERY = 256, LOOKS_MOST = 1 << 16 };

static bool wait_ended(struct wait_ends ends)
{
    /* relaxed: only says that the slow path is worth it; the slow path loads again with acquire */
    return load_relaxed64(ends.verdict) != 0 || load_relaxed32(ends.news) != 0;
}

int wait_spin(const shared64 *word, uint64_t value, struct wait_ends ends,
              struct wait_budget budget, const struct wait_ways *ways)
{
    if (budget.spin_ticks) {
        uint64_t began = 0;
        for (int looks = 0; looks < LOOKS_MOST; looks++) {
            for (int i = 0; i < LOOK_EVERY; i++) {
                if (load_acquire64(word) >= value)
                    return 1;
                cpu_pause();
            }
            if (wait_ended(ends))
                return 0;
            uint64_t now = clock_tick();
            if (!began)
                began = now;
            else if (now - began > budget.spin_ticks)
                break;
        }
    }
    uint64_t began = budget.yields && budget.yield_ticks ? clock_tick() : 0;
    for (uint32_t i = 0; i < budget.yields; i++) {
        if (load_acquire64(word) >= value)
            return 1;
        if (wait_ended(ends) || (began && clock_tick() - began > budget.yield_ticks))
            return load_acquire64(word) >= value;
        ways->yield(ways->arg);
    }
    return load_acquire64(word) >= value;
}

static uint64_t kernel_now(void *arg)
{
    (void)arg;
    return clock_ns();
}

static int kernel_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg;
    return n == 1 ? futex_wait(words[0].word, words[0].seen, ns) : futex_wait_any(words, n, ns);
}

static int kernel_wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    return futex_wake(word, n);
}

static void kernel_yield(void *arg)
{
    (void)arg;
    sched_yield();
}

const struct wait_ways wait_ways_kernel = {
    kernel_now, kernel_sleep, kernel_wake, kernel_yield, NULL
};
