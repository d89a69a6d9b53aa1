/* The kernel, as far as the library under test calls it: the linker sends its calls here (--wrap).
 * Futexes, robust mutexes, the clock, the ends of threads. A sleep compares all its words and
 * queues at them in one step; the compare is a load like any other, and stores that are not out yet
 * stay so, so that nothing rests on a barrier that happens to be in the kernel. A wake of one wakes
 * who came first. A rank that is killed goes at once: its stores come out, its mutexes are marked,
 * and one sleeper at each is woken. */
#include "explore/engine.h"

#include "base/clock.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TID_FROM = 100000, FD_FROM = 100000, WAITV = 449 };

static struct actor *me(void) { return &engine.actor[engine.now_on]; }
static int my_rank(void) { return engine.running ? me()->rank : world_making; }

/* ---- futexes ---- */

static int wake_where(const shared32 *word, int n)
{
    int woken = 0;
    while (woken < n) {
        struct actor *first = NULL;
        for (int i = 0; i < engine.actors; i++) {
            struct actor *a = &engine.actor[i];
            bool here = false;
            for (int k = 0; a->state == ACTOR_ASLEEP && k < a->sleeps_on; k++)
                here |= a->words[k].word == word;
            if (here && (!first || a->ticket < first->ticket))
                first = a;
        }
        if (!first)
            break;
        first->state = ACTOR_READY;
        first->slept = 0;
        woken++;
    }
    return woken;
}

int kernel_wake(const shared32 *word, int n)
{
    if (!engine.running)
        return 0;
    words_visible(word, engine.now_on, false);
    engine_point(NULL);
    words_drain(me());
    words_trace("wakes", word, (uint64_t)n);
    int woken = wake_where(word, n);
    seen_heard(me(), (uint64_t)woken);
    return woken;
}

static int kernel_sleep(const struct futex_word *words, int n, uint64_t end)
{
    struct actor *a = me();
    engine_point(NULL);
    for (int i = 0; i < n; i++) {
        words_visible(words[i].word, engine.now_on, false);
        if (words_kernel_load(words[i].word) != words[i].seen) {
            errno = EAGAIN;
            return -1;
        }
    }
    a->floor = engine.writes;
    memcpy(a->words, words, (size_t)n * sizeof *words);
    a->sleeps_on = n;
    a->end = end;
    a->ticket = engine.tickets++;
    a->state = ACTOR_ASLEEP;
    words_trace("sleeps", words[0].word, words[0].seen);
    engine_block();
    a->sleeps_on = 0;
    seen_heard(a, (uint64_t)-a->slept);
    errno = a->slept ? -a->slept : 0;
    return a->slept ? -1 : 0;
}

/* Asleep on a word of its own. */
void explore_nap(uint64_t ns)
{
    static shared32 nothing;
    struct futex_word word = { &nothing, 0 };
    kernel_sleep(&word, 1, engine.now_ns + ns);
}

struct waited { uint64_t value, address; uint32_t flags, reserved; };
struct moment { int64_t seconds, ns; };

static uint32_t my_tid(void) { return (uint32_t)(TID_FROM + my_rank()); }

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long arg[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_gettid)
        return my_tid();
    if (number == SYS_futex && arg[1] == FUTEX_WAKE)
        return kernel_wake((const shared32 *)arg[0], (int)arg[2]);
    if (number == SYS_futex && engine.running) {
        const struct timespec *t = (const struct timespec *)arg[3];
        struct futex_word word = { (shared32 *)arg[0], (uint32_t)arg[2] };
        return kernel_sleep(&word, 1,
                            engine.now_ns + (uint64_t)t->tv_sec * 1000000000u
                                + (uint64_t)t->tv_nsec);
    }
    if (number == WAITV && engine.running) {
        const struct waited *waited = (const struct waited *)arg[0];
        const struct moment *until = (const struct moment *)arg[3];
        struct futex_word words[SLEEP_WORDS];
        for (long i = 0; i < arg[1] && i < SLEEP_WORDS; i++)
            words[i] = (struct futex_word){ (shared32 *)waited[i].address,
                                            (uint32_t)waited[i].value };
        return kernel_sleep(words, arg[1] < SLEEP_WORDS ? (int)arg[1] : SLEEP_WORDS,
                            (uint64_t)until->seconds * 1000000000u + (uint64_t)until->ns);
    }
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- mutexes ---- */

static shared32 *lock_word(pthread_mutex_t *m) { return (shared32 *)(void *)&m->__data.__lock; }

static uint32_t lock_now(const pthread_mutex_t *m)
{
    uint32_t now;
    memcpy(&now, &m->__data.__lock, sizeof now);
    return now;
}

bool kernel_lock_free(const pthread_mutex_t *m) { return !(lock_now(m) & FUTEX_TID_MASK); }

/* 0, EBUSY, EOWNERDEAD. */
static int lock_try(pthread_mutex_t *m)
{
    uint32_t have = lock_now(m);
    bool was = engine.running;
    uint64_t seen = have, version = words_version(lock_word(m), 4);
    if (was)
        seen_heard(me(), version);
    if (have & FUTEX_TID_MASK)
        return EBUSY;
    if (was)
        words_drain(me());
    engine.running = false;            /* no second point */
    explore_swap(lock_word(m), &seen, (have & FUTEX_WAITERS) | my_tid(), 4);
    engine.running = was;
    if (was) {
        words_wrote(lock_word(m), engine.now_on);
        words_became(lock_word(m), 4, me()->heard);
        me()->floor = engine.writes;
        if (me()->helds < HELD_MOST)
            me()->held[me()->helds++] = m;
    }
    return have & FUTEX_OWNER_DIED ? EOWNERDEAD : 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    if (engine.running && words_visible(lock_word(m), engine.now_on, true))
        engine_point(NULL);
    return lock_try(m);
}

static int lock_until(pthread_mutex_t *m, uint64_t end)
{
    if (engine.running && words_visible(lock_word(m), engine.now_on, true))
        engine_point(NULL);
    for (;;) {
        int error = lock_try(m);
        if (error != EBUSY)
            return error;
        struct actor *a = me();
        words_drain(a);
        a->state = ACTOR_LOCKED;
        a->wants = m;
        a->end = end;
        a->slept = 0;
        engine_block();
        seen_heard(a, (uint64_t)-a->slept);
        if (a->state == ACTOR_READY && a->slept)
            return ETIMEDOUT;
        a->state = ACTOR_READY;
    }
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m) { return lock_until(m, UINT64_MAX); }

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at);
int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
    (void)clock;
    return lock_until(m, (uint64_t)at->tv_sec * 1000000000u + (uint64_t)at->tv_nsec);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (engine.running) {
        if (words_visible(lock_word(m), engine.now_on, true))
            engine_point(NULL);
        struct actor *a = me();
        words_drain(a);
        for (int i = 0; i < a->helds; i++)
            if (a->held[i] == m) {
                a->held[i] = a->held[--a->helds];
                break;
            }
        words_wrote(lock_word(m), engine.now_on);
        words_became(lock_word(m), 4, a->heard);
    }
    m->__data.__lock = 0;
    return 0;
}

int __wrap_pthread_mutex_consistent(pthread_mutex_t *m);
int __wrap_pthread_mutex_consistent(pthread_mutex_t *m)
{
    (void)m;
    return 0;
}

/* ---- threads: an actor that waits to be one ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*does)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*does)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*does)(void *), void *arg)
{
    if (!engine.running)
        return __real_pthread_create(thread, attributes, does, arg);
    for (int i = engine.scenario->ranks; i < engine.actors && engine.scenario->threads; i++) {
        struct actor *a = &engine.actor[i];
        if (a->rank != me()->rank || a->thread)
            continue;
        a->thread = does;
        a->thread_arg = arg;
        a->state = ACTOR_READY;
        seen_heard(a, me()->heard);
        return 0;
    }
    return EAGAIN;
}

/* ---- ends ---- */

static void mark_died(pthread_mutex_t *m)
{
    uint32_t was = lock_now(m), now = (was & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
    memcpy(&m->__data.__lock, &now, sizeof now);
    words_became(lock_word(m), 4, seen_mix(words_version(lock_word(m), 4), FUTEX_OWNER_DIED));
    engine.writes++;
    if (was & FUTEX_WAITERS)
        wake_where(lock_word(m), 1);
}

shared32 *kernel_mark(int rank)
{
    return lock_word(&explore_world[rank]->world->arena.seats[rank].mark.mutex);
}

void kernel_kill(int rank)
{
    explore_killed[rank] = true;
    for (int i = 0; i < engine.actors; i++) {
        struct actor *a = &engine.actor[i];
        if (a->rank != rank || a->state == ACTOR_DONE)
            continue;
        words_drain(a);
        a->state = ACTOR_DEAD;
        for (int k = 0; k < a->helds; k++)
            mark_died(a->held[k]);
    }
    mark_died(&explore_world[rank]->world->arena.seats[rank].mark.mutex);
}

/* ---- what is asked about processes ---- */

static int rank_of(const struct process_id *id) { return id->tid - TID_FROM; }
static bool is_dead(int rank)
{
    if (rank < 0 || rank >= EXPLORE_RANKS)
        return false;
    if (engine.running) {
        if (engine.scenario->events & KILL)
            engine_point(kernel_mark(rank));
        seen_heard(me(), explore_killed[rank]);
    }
    return explore_killed[rank];
}

int __wrap_process_alive(const struct process_id *id, int pidfd);
int __wrap_process_alive(const struct process_id *id, int pidfd)
{
    (void)pidfd;
    return !is_dead(rank_of(id));
}

int __wrap_process_pidfd(const struct process_id *id);
int __wrap_process_pidfd(const struct process_id *id) { return FD_FROM + rank_of(id); }

int __wrap_process_end(const struct process_id *id, int *status);
int __wrap_process_end(const struct process_id *id, int *status)
{
    *status = 9;
    return is_dead(rank_of(id));
}

const char *__wrap_process_state(const struct process_id *id, uint64_t *cpu_ns);
const char *__wrap_process_state(const struct process_id *id, uint64_t *cpu_ns)
{
    if (cpu_ns)
        *cpu_ns = 0;
    return is_dead(rank_of(id)) ? "gone" : "running";
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    (void)timeout;
    (void)n;
    fds->revents = is_dead(fds->fd - FD_FROM) ? POLLIN : 0;
    return fds->revents != 0;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) { return engine.running || fd >= FD_FROM ? 0 : __real_close(fd); }

/* ---- time ---- */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!engine.running)
        return __real_clock_gettime(clock, t);
    engine.now_ns += engine.scenario->tick_ns;
    seen_heard(me(), engine.now_ns);
    *t = (struct timespec){ (time_t)(engine.now_ns / 1000000000u),
                            (long)(engine.now_ns % 1000000000u) };
    return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (engine.running)
        engine_yield();
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left;
    engine.now_ns += (uint64_t)t->tv_nsec;
    return __wrap_sched_yield();
}

/* ---- pages: they are there, and stay ---- */

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) { return engine.running ? 0 : __real_munmap(at, bytes); }

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);

int __wrap_madvise(void *at, size_t bytes, int advice)
{
    return engine.running ? 0 : __real_madvise(at, bytes, advice);
}

int __real_fallocate(int fd, int mode, off_t at, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t at, off_t bytes);

int __wrap_fallocate(int fd, int mode, off_t at, off_t bytes)
{
    return engine.running ? 0 : __real_fallocate(fd, mode, at, bytes);
}

/* ---- reports look at everybody's words, and decide nothing by them: no points there ---- */

struct text;
void __real_rollcall_failure(struct text *t, struct watch *w, const struct op *op);
void __wrap_rollcall_failure(struct text *t, struct watch *w, const struct op *op);
void __wrap_rollcall_failure(struct text *t, struct watch *w, const struct op *op)
{
    bool was = engine.running;
    engine.running = false;
    __real_rollcall_failure(t, w, op);
    engine.running = was;
}

void __real_rollcall_table(struct text *t, struct watch *w, const struct claim *claim);
void __wrap_rollcall_table(struct text *t, struct watch *w, const struct claim *claim);
void __wrap_rollcall_table(struct text *t, struct watch *w, const struct claim *claim)
{
    bool was = engine.running;
    engine.running = false;
    __real_rollcall_table(t, w, claim);
    engine.running = was;
}

void __real_rollcall_rank(struct text *t, struct watch *w, uint32_t p);
void __wrap_rollcall_rank(struct text *t, struct watch *w, uint32_t p);
void __wrap_rollcall_rank(struct text *t, struct watch *w, uint32_t p)
{
    bool was = engine.running;
    engine.running = false;
    __real_rollcall_rank(t, w, p);
    engine.running = was;
}
