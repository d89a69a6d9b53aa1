/* The page is mapped before the ranks are made, so that processes and threads find it at the same
 * address. */
#include "support/ranks.h"

#include "base/clock.h"
#include "group/comm.h"
#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 60, THREADS_MOST = 16 };

struct ranks_page *page;

static void page_renew(void)
{
    if (page)
        munmap((void *)page, sizeof *page);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    fflush(NULL);
}

int ranks_wrong(const char *file, int line, const char *what, tutti_comm *world)
{
    fprintf(stderr, "%s:%d: rank %d: not so: %s\n%s\n", file, line, tutti_rank(world), what,
            world ? tutti_explain(world) : "");
    return 1;
}

int ranks_differ(const char *file, int line, const char *what, long long got, long long expected,
                 tutti_comm *world)
{
    fprintf(stderr, "%s:%d: rank %d: %s is %lld, expected %lld\n%s\n", file, line,
            tutti_rank(world), what, got, expected, world ? tutti_explain(world) : "");
    return 1;
}

static int process_body(tutti_comm *world, void *arg)
{
    return (*(ranks_body **)arg)(world, tutti_rank(world));
}

int ranks_run(int size, ranks_body *body, unsigned doomed)
{
    int status[THREADS_MOST], wrong = 0;
    tutti_options o = { .timeout_ms = RANKS_LIFE_MS };
    page_renew();
    int said = tutti_spawn(size, process_body, &body, &o, status);
    if (said < 0) {
        fprintf(stderr, "tutti_spawn: %s\n", tutti_explain(NULL));
        return said;
    }
    for (int r = 0; r < size; r++) {
        bool killed = WIFSIGNALED(status[r]) && WTERMSIG(status[r]) == SIGKILL;
        if (doomed >> r & 1 ? killed : status[r] == 0)
            continue;
        fprintf(stderr, "rank %d ended with status 0x%x\n", r, (unsigned)status[r]);
        wrong++;
    }
    return wrong;
}

struct seat_of { pthread_t thread; int rank, size, result; const char *job; ranks_body *body; };

static void *thread_body(void *arg)
{
    struct seat_of *s = arg;
    tutti_comm *world;
    tutti_options o = { .job = s->job, .rank = s->rank, .size = s->size };
    int r = tutti_init(&world, &o);
    if (r < 0) {
        fprintf(stderr, "rank %d: tutti_init: %s\n", s->rank, tutti_explain(NULL));
        s->result = r;
        return NULL;
    }
    s->result = s->body(world, s->rank);
    r = tutti_finalize(world);
    if (r < 0) {
        fprintf(stderr, "rank %d: tutti_finalize: %d\n", s->rank, r);
        s->result = r;
    }
    return NULL;
}

int ranks_run_threads(int size, ranks_body *body)
{
    struct seat_of seats[THREADS_MOST];
    const char *job = ranks_job();
    int wrong = 0;
    page_renew();
    for (int r = 0; r < size; r++) {
        seats[r] = (struct seat_of){ .rank = r, .size = size, .job = job, .body = body };
        if (pthread_create(&seats[r].thread, NULL, thread_body, &seats[r]))
            abort();
    }
    for (int r = 0; r < size; r++) {
        pthread_join(seats[r].thread, NULL);
        if (seats[r].result)
            fprintf(stderr, "rank %d: %d\n", r, seats[r].result);
        wrong += seats[r].result != 0;
    }
    return wrong;
}

#if defined(TUTTI_TSAN)
enum { THREADED = 1 };
#else
enum { THREADED = 0 };
#endif

int ranks_run_either(int size, ranks_body *body)
{
    return THREADED ? ranks_run_threads(size, body) : ranks_run(size, body, 0);
}

void ranks_say(int word, uint32_t value)
{
    store_release32(&page->word[word], value);
    futex_wake(&page->word[word], INT_MAX);
}

uint32_t ranks_count(int word)
{
    uint32_t before = fetch_add32(&page->word[word], 1);
    futex_wake(&page->word[word], INT_MAX);
    return before;
}

int ranks_await(int word, uint32_t value)
{
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);;) {
        uint32_t now = load_acquire32(&page->word[word]);
        if (now >= value)
            return 0;
        if (clock_ns() > end)
            return -1;
        futex_wait(&page->word[word], now, 100000000);
    }
}

int ranks_sleeps_for_key(tutti_comm *world, int rank)
{
    const shared32 *word = &world->world->arena.seats[rank].waits_key;
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000); clock_ns() < end;
         sched_yield())
        if (load_acquire32(word))
            return 0;
    return -1;
}

void ranks_die(void)
{
    raise(SIGKILL);
    for (;;)
        pause();
}

int ranks_many(int normal, int sanitized)
{
    return getenv("TUTTI_TEST_SANITIZED") ? sanitized : normal;
}

const char *ranks_job(void)
{
    static char name[64];
    static int count;
    snprintf(name, sizeof name, "test-%d-%d", (int)getpid(), count++);
    return name;
}

bool ranks_explain(tutti_comm *comm, const char *what)
{
    if (strstr(tutti_explain(comm), what))
        return true;
    fprintf(stderr, "\"%s\" is not in: %s\n", what, tutti_explain(comm));
    return false;
}
