#include "watch/virtual_clock.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>

struct virtual_clock time_here = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER
};

static struct sleeper sleepers[TIME_SLEEPERS];
static struct wait_ways ways[TIME_SLEEPERS];

void time_open(uint64_t now, int running)
{
    time_here.now = now;
    time_here.running = running;
}

uint64_t time_now(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&time_here.lock);
    uint64_t now = time_here.now;
    pthread_mutex_unlock(&time_here.lock);
    return now;
}

static bool sleeper_is_woken(const struct sleeper *s)
{
    for (int i = 0; i < s->n; i++)
        if (load_acquire32(s->words[i].word) != s->words[i].seen)
            return true;
    return time_here.now >= s->until;
}

/* All of them sleep, and none has been woken: on to the first who wakes by itself. */
static void time_goes_on(void)
{
    uint64_t first = UINT64_MAX;
    if (time_here.running > 0)
        return;
    for (int i = 0; i < TIME_SLEEPERS; i++) {
        const struct sleeper *s = time_here.asleep[i];
        if (s && sleeper_is_woken(s))
            return;
        first = s && s->until < first ? s->until : first;
    }
    if (first != UINT64_MAX)
        time_here.now = first;
    pthread_cond_broadcast(&time_here.moved);
}

static int sleep_by_it(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    struct sleeper *s = arg;
    int number = (int)(s - sleepers);
    pthread_mutex_lock(&time_here.lock);
    *s = (struct sleeper){ words, n, time_here.now + ns };
    if (time_here.falls_asleep)
        time_here.falls_asleep(number);
    time_here.asleep[number] = s;
    time_here.running--;
    while (!sleeper_is_woken(s)) {
        time_goes_on();
        if (!sleeper_is_woken(s))
            pthread_cond_wait(&time_here.moved, &time_here.lock);
    }
    time_here.running++;
    time_here.asleep[number] = NULL;
    bool woken = time_here.now < s->until;
    pthread_mutex_unlock(&time_here.lock);
    return woken ? 0 : -ETIMEDOUT;
}

int time_sleep(int sleeper, uint64_t ns) { return sleep_by_it(&sleepers[sleeper], NULL, 0, ns); }

static int wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    futex_wake(word, n);
    pthread_mutex_lock(&time_here.lock);
    pthread_cond_broadcast(&time_here.moved);
    pthread_mutex_unlock(&time_here.lock);
    return 0;
}

static void yield(void *arg)
{
    (void)arg;
    sched_yield();
}

void time_leave_locked(void)
{
    time_here.running--;
    time_goes_on();
}

void time_leave(void)
{
    pthread_mutex_lock(&time_here.lock);
    time_leave_locked();
    pthread_mutex_unlock(&time_here.lock);
}

struct wait_ways *time_ways(int sleeper)
{
    ways[sleeper] = (struct wait_ways){ time_now, sleep_by_it, wake, yield, &sleepers[sleeper] };
    return &ways[sleeper];
}
