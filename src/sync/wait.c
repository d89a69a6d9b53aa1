/* The two cheap phases of a wait, before a sleep in the kernel, and what is learned of them.
 *
 * A spin costs a core but nothing else, and sees a peer's store after one cache miss. It is right
 * while ranks fit the CPUs and a peer is a few microseconds late. A yield gives the CPU to the
 * awaited rank if ranks outnumber CPUs. Measured with 8 ranks on 2 CPUs: a barrier of yielding
 * ranks takes a tenth of one whose ranks sleep, and a hundredth of one whose ranks spin. Both
 * phases are bounded, in number and in time, so that a rank that waits long sleeps in the end,
 * where it also notices deaths. A yield in vain costs two switches, some 2 us, so a rank may look
 * on before it. Measured with 4 ranks on 2 CPUs: 2 switches a barrier, not 3, in 0.72 of the time.
 *
 * If ranks are late by milliseconds again and again, yields only burn time: 80 of them 100 us. So
 * each long sleep after them halves their number, four times at most, and each short sleep
 * doubles it. Measured, 8 ranks on 2 CPUs, Linux 6.18: barriers back to back need 1 yield. */
#include "sync/wait.h"

#include "base/clock.h"
#include "base/probe.h"
#include "os/checked.h"

#include <sched.h>

/* Spins between two looks at the clock and the ends: some 1 to 3 us, as a pause takes 15 to 45 ns.
 * And the most looks, whatever the counter says: a tenth of a second and more. */
enum { LOOK_EVERY = 64, LOOKS_MOST = 1 << 18 };

/* ns: pieces of a sleep between which other communication has its turn */
enum { PIECE_FIRST = 20000, PIECE_MOST = 2000000 };

/* ns: asleep for less, a rank would have done better to yield on; for more, not to yield at all. In
 * between it may be that other programs had the CPUs. */
enum { SOON = 1000000, LATE = 10000000, HALVINGS_MOST = 4, HALVINGS_LONG = 3,
       HALVINGS_SPIN = 2 };

uint32_t wait_yields(const struct wait_budget *budget)
{
    /* relaxed: a bound, right at any value that it ever had */
    return budget->yields >> load_relaxed8(&budget->halvings);
}

void wait_slept(struct wait_budget *budget, uint64_t took)
{
    /* relaxed: a step lost to another thread comes with the next sleep */
    uint8_t halvings = load_relaxed8(&budget->halvings);
    if (took < SOON && halvings > 0)
        /* relaxed: as above */
        store_relaxed8(&budget->halvings, (uint8_t)(halvings - 1));
    else if (took >= LATE && halvings < HALVINGS_MOST)
        /* relaxed: as above */
        store_relaxed8(&budget->halvings, (uint8_t)(halvings + 1));
}

bool wait_long_lately(const struct wait_budget *budget)
{
    /* relaxed: a hint, right at any value that it ever had */
    return load_relaxed8(&budget->halvings) >= HALVINGS_LONG;
}

struct wait_budget wait_learned_budget(const struct wait_budget *budget)
{
    /* relaxed: a bound, right at any value that it ever had */
    uint8_t halvings = load_relaxed8(&budget->halvings);
    return (struct wait_budget){
        .spin_ticks = budget->spin_ticks >> (halvings < HALVINGS_SPIN ? halvings : HALVINGS_SPIN),
        .yields = wait_yields(budget),
        .yield_ticks = budget->yield_ticks, .spin_rounds = budget->spin_rounds
    };
}

struct wait_budget wait_pace_budget(const struct wait_pace *pace, const struct wait_budget *budget)
{
    struct wait_budget now = { 0 };
    if (!pace->credit)
        return now;
    now.spin_ticks = budget->spin_ticks < pace->soon ? budget->spin_ticks : pace->soon;
    now.yields = now.spin_ticks ? 0 : wait_yields(budget);
    now.yield_ticks = pace->soon;
    return now;
}

bool wait_turn(struct wait_turns *turns, const struct wait_budget *budget,
               const struct wait_ways *ways)
{
    uint64_t now = clock_tick();
    if (!turns->began)
        turns->began = now;
    uint64_t passed = now - turns->began;
    if (passed < budget->spin_ticks) {
        cpu_pause();
        return true;
    }
    if (turns->yields >= wait_yields(budget)
        || (budget->yield_ticks && passed - budget->spin_ticks >= budget->yield_ticks))
        return false;
    turns->yields++;
    ways->yield(ways->arg);
    return true;
}

static bool wait_ended(struct wait_ends ends)
{
    /* relaxed: only says that the slow path is worth it; the slow path loads again with acquire */
    return load_relaxed64(ends.verdict) != 0 || load_relaxed32(ends.news) != 0;
}

/* Who has looked on in vain so often waits for somebody who is late. */
enum { LINGERS_MOST = 4 };

static bool wait_linger(const shared64 *word, uint64_t value, const struct wait_linger *linger)
{
    uint64_t began = clock_tick();
    do {
        if (load_acquire64(word) >= value)
            return true;
        cpu_pause();
    } while (clock_tick() - began < linger->ticks);
    return false;
}

int wait_spin(const shared64 *word, uint64_t value, struct wait_ends ends,
              const struct wait_budget *budget, const struct wait_ways *ways)
{
    return wait_spin_or_linger(word, value, ends, budget, ways, &(struct wait_linger){ 0 });
}

int wait_spin_or_linger(const shared64 *word, uint64_t value, struct wait_ends ends,
                        const struct wait_budget *budget, const struct wait_ways *ways,
                        const struct wait_linger *linger)
{
    int lingers = linger->ticks ? LINGERS_MOST : 0;
    if (budget->spin_ticks) {
        uint64_t began = clock_tick();
        for (int looks = 0; looks < LOOKS_MOST; looks++) {
            for (int i = 0; i < LOOK_EVERY; i++) {
                if (load_acquire64(word) >= value)
                    return 1;
                cpu_pause();
            }
            if (wait_ended(ends))
                return 0;
            if (clock_tick() - began > budget->spin_ticks)
                break;
        }
    }
    uint32_t yields = wait_yields(budget);
    uint64_t began = yields && budget->yield_ticks ? clock_tick() : 0;
    for (uint32_t i = 0; i < yields; i++) {
        if (load_acquire64(word) >= value)
            return 1;
        if (wait_ended(ends) || (began && clock_tick() - began > budget->yield_ticks))
            return load_acquire64(word) >= value;
        if (lingers && linger->may(linger->arg)) {
            lingers--;
            if (wait_linger(word, value, linger))
                return 1;
        }
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
    PROBE2(sleep, n, ns);
    int r = n == 1 ? futex_wait(words[0].word, words[0].seen, ns) : futex_wait_any(words, n, ns);
    PROBE1(wake, r);
    return r;
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

static void progress_yield(void *arg)
{
    const struct wait_progress *progress = arg;
    progress->run(progress->arg);
    sched_yield();
}

/* Short sleeps first: what is waited for may need a few turns of the other communication, one soon
 * after the other. Later the rank costs some 1,000 ns every 2 ms. */
static int progress_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    const struct wait_progress *progress = arg;
    uint64_t end = clock_ns() + ns, now;
    int r = -ETIMEDOUT;
    for (uint64_t piece = PIECE_FIRST; r == -ETIMEDOUT && (now = clock_ns()) < end; piece *= 2) {
        piece = piece < PIECE_MOST ? piece : PIECE_MOST;
        progress->run(progress->arg);
        r = kernel_sleep(NULL, words, n, end - now < piece ? end - now : piece);
    }
    return r;
}

/* memcheck complains of each futex_waitv, which its older releases do not know. */
static int checked_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    return n == 1 ? kernel_sleep(arg, words, n, ns) : -ENOSYS;
}

struct wait_ways wait_ways_with(struct wait_progress *progress)
{
    struct wait_ways ways = wait_ways_kernel;
    if (!progress->run) {
        ways.sleep = checked_by_memcheck() ? checked_sleep : kernel_sleep;
        return ways;
    }
    return (struct wait_ways){ kernel_now, progress_sleep, kernel_wake, progress_yield, progress };
}
