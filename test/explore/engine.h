/* Job: the explorer's inside: actors that run one at a time, the points where another may go on, and how a choice is made there.
 * Owns: the state of the run, and the list of choices.
 * Never: what the ranks do (scenarios), how words behave (words.c), what the kernel does (kernel.c). */
#ifndef TUTTI_EXPLORE_ENGINE_H
#define TUTTI_EXPLORE_ENGINE_H

#include "base/atomic.h"
#include "explore/explore.h"
#include "group/comm.h"
#include "os/futex.h"

enum { ACTORS_MOST = 8, BUFFER_MOST = 64, SLEEP_WORDS = 16, HELD_MOST = 8, CHOICES_MOST = 1 << 16, STEPS_MOST = 20000, TIMES_MOST = 160, STOP_TIMES = 24 };

enum actor_state { ACTOR_READY, ACTOR_ASLEEP, ACTOR_LOCKED, ACTOR_DONE, ACTOR_DEAD };

struct buffered { void *word; uint64_t value; int bytes; enum explore_order order; };

struct actor {
    int rank;
    enum actor_state state;
    bool stopped;
    void *sp;                         /* where it goes on */
    char *stack;
    struct buffered buffer[BUFFER_MOST];
    int stores;                       /* in buffer, the oldest first */
    struct futex_word words[SLEEP_WORDS];
    int sleeps_on, slept;             /* how many words; what the sleep returns, -errno */
    uint64_t end, ticket;             /* when it ends by itself; in which order the sleepers came */
    pthread_mutex_t *wants, *held[HELD_MOST];
    int helds;
    uint64_t floor;                   /* writes up to here are known to it: engine.writes at its last acquire */
    struct tutti_comm *callback;      /* the thread's, of product code */
    int priority;
};

struct engine {
    const struct scenario *scenario;
    bool running;                     /* else accesses are plain ones: the world is being made */
    struct actor actor[ACTORS_MOST];
    int actors, now_on;               /* who runs */
    void *home;                       /* where the run came from */
    uint64_t now_ns, tickets, writes;
    int preempted, events, times;     /* spent in this run */
    int limit, limit_event;           /* how many preemptions: in all, in a run with an event */
    int deaths, stops;                /* ranks killed, stopped in this run */
    uint32_t steps;
    const char *wrong;                /* what was found in this run */
    char said[512];
    /* over all runs */
    uint64_t runs, all_steps, event_runs[EVENT_KINDS], deepest;
};
extern struct engine engine;

/* engine.c */
void engine_point(void);              /* before an action that others can see */
void engine_block(void);              /* the current actor cannot go on */
void engine_yield(void);
void engine_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool engine_run(void);                /* one run from the start; false: something is wrong */

/* choose.c: how a choice is made. `first`: what happens if nothing odd does. */
enum how { BY_SEARCH, BY_CHANCE, BY_REPLAY };
struct option { unsigned char kind, who; };
int  choose(const struct option *options, int n);
void choose_begin(void);              /* a run begins */
bool choose_next(void);               /* search: another schedule? */
void choose_search(void);             /* a search begins */
void choose_chance(uint64_t seed);
void choose_learned(void);            /* no run so far counts; from now on a seed stands for one schedule */
void choose_replay(const char *schedule);
void choose_print(char *text, size_t room);

/* words.c */
extern bool explore_trace;            /* a replay says what each does */
void words_trace(const char *what, const void *word, uint64_t value);
bool words_visible(const void *word, int actor, bool write);
void words_declare(const void *at, size_t bytes);            /* shared, though not all that read it come by here */
void words_begin(void);
bool words_learn(void);               /* makes what was seen to be shared visible; true: there was something new */
int  words_shared(void);
void words_drain(struct actor *a);
int  words_writer(const void *word);  /* who wrote it last in this run, -1 nobody */
void words_wrote(const void *word, int actor);
uint32_t words_kernel_load(const shared32 *word);

/* kernel.c */
void kernel_begin(void);
void kernel_kill(int rank);
int  kernel_wake(const shared32 *word, int n);
bool kernel_lock_free(const pthread_mutex_t *m);

/* pages.c: memory that is set back before each run */
void pages_open(void);
void pages_watch(void *at, size_t bytes);
void pages_freeze(void);
void pages_back(void);
size_t pages_hot(void);

/* world.c */
extern tutti_comm *explore_world[ACTORS_MOST];
extern int world_making;              /* which rank is being made */
void world_open(const struct scenario *s);

#endif
