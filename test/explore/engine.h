/* Job: the explorer's inside: actors that run one at a time, the points where another may go on,
 *      and how a choice is made there.
 * Owns: the state of the run, and the list of choices.
 * Never: what the ranks do (scenarios), how words behave (words.c), what the kernel
 *        does (kernel.c). */
#ifndef TUTTI_EXPLORE_ENGINE_H
#define TUTTI_EXPLORE_ENGINE_H

#include "base/atomic.h"
#include "explore/bugs.h"
#include "explore/explore.h"
#include "group/comm.h"
#include "os/futex.h"

enum {
    ACTORS_MOST = 8,
    BUFFER_MOST = 64,
    SLEEP_WORDS = 16,
    HELD_MOST = 8,
    CHOICES_MOST = 1 << 16,
    STEPS_MOST = 20000,
    TIMES_MOST = 160,
    STOP_TIMES = 24
};

enum actor_state { ACTOR_READY, ACTOR_ASLEEP, ACTOR_LOCKED, ACTOR_DONE, ACTOR_DEAD };

/* by: which store it was, see seen.c */
struct buffered { void *word; uint64_t value, by; int bytes; };

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
    /* writes up to here are known to it: engine.writes at its last acquire */
    uint64_t floor;
    struct tutti_comm *callback;      /* the thread's, of product code */
    int priority;
    void *(*thread)(void *);          /* made by pthread_create: what it does; it never ends */
    void *thread_arg;
    uint64_t heard;    /* all that it has done and learned in this run, as one number: see seen.c */
};

struct engine {
    const struct scenario *scenario;
    bool running;                     /* else accesses are plain ones: the world is being made */
    struct actor actor[ACTORS_MOST];
    int actors, now_on;               /* who runs */
    const void *word;                 /* what it is about to do: see engine_point */
    void *home;                       /* where the run came from */
    uint64_t now_ns, tickets, writes;
    int preempted, events, times;     /* spent in this run */
    int limit, limit_event;           /* how many preemptions: in all, in a run with an event */
    int deaths, stops;                /* ranks killed, stopped in this run */
    uint32_t steps;
    bool cut;                         /* the run has come to a state that was met before */
    const char *wrong;                /* what was found in this run */
    char said[512];
    /* over all runs */
    uint64_t runs, cuts, all_steps, event_runs[EVENT_KINDS], deepest;
};
extern struct engine engine;

/* engine.c */
/* before an action that others can see, on this word; NULL: on more than one */
void engine_point(const void *word);
void engine_block(void);              /* the current actor cannot go on */
void engine_yield(void);
void engine_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool engine_run(void);                /* one run from the start; false: something is wrong */

void engine_go_home(void);            /* the run is over */

/* events.c */
struct option { unsigned char kind, who; };
bool event_alive(const struct actor *a);
/* is there, for so many preemptions, in a run with an event? */
bool event_room_for(int more, bool event);
int  option_add(struct option *o, int n, int kind, int who); /* how many there are then */
int  event_options(struct option *o, int n);
struct option event_pick(const struct option *o, int n, bool ready, bool yields);
void event_happen(struct option o);
void event_late(struct actor *a);     /* its sleep ends by itself */
bool event_in_sleep(void);            /* all sleep: before the time goes on, one may die */
void event_on_return(const void *word);

/* choose.c: how a choice is made. The first option: what happens if nothing odd does. */
enum how { BY_SEARCH, BY_CHANCE, BY_REPLAY };
int  choose(const struct option *options, int n);
void choose_begin(void);      /* a run begins */
bool choose_next(void);       /* search: another schedule? */
bool choose_new(void);        /* search: is the next choice one that no run has come to? */
void choose_search(void);     /* a search begins */
void choose_chance(uint64_t seed);
void choose_learned(void);    /* no run so far counts; from now on a seed stands for one schedule */
void choose_replay(const char *schedule);
void choose_print(char *text, size_t room);

/* words.c */
extern bool explore_trace;            /* a replay says what each does */
void words_trace(const char *what, const void *word, uint64_t value);
bool words_visible(const void *word, int actor, bool write);
/* shared, though not all that read it come by here */
void words_declare(const void *at, size_t bytes);
void words_begin(void);
/* makes what was seen to be shared visible; true: there was something new */
bool words_learn(void);
int  words_shared(void);
void words_drain(struct actor *a);
int  words_writer(const void *word);  /* who wrote it last in this run, -1 nobody */
void words_wrote(const void *word, int actor);
uint32_t words_kernel_load(const shared32 *word);

uint64_t words_version(const void *word, int bytes);         /* by which store it has what it has */
void words_became(const void *word, int bytes, uint64_t by);

/* seen.c: no state is searched twice */
void seen_forget(void);               /* a search begins */
void seen_begin(void);                /* a run begins */
void seen_heard(struct actor *a, uint64_t what);
void seen_memory(uint64_t was, uint64_t is);            /* one word's part of what all memory is */
uint64_t seen_mix(uint64_t a, uint64_t b);
bool seen_before(bool ready, bool yields);
uint64_t seen_states(void);
uint64_t seen_words(void);            /* which store each word is of, as one number */
bool seen_off(void);                  /* everything is searched, known or not */
void seen_switch(bool off);

/* same.c: what the ranks come to, in a whole search (0), and in one that leaves out what is
 * known (1) */
void same_into(int which);            /* from now on; -1: nowhere */
void same_again(void);                /* a search begins */
void same_outcome(void);              /* of the run that has just ended */
size_t same_found(int which);
size_t same_missing(void);            /* how many of 0 are not in 1 */

/* kernel.c */
void kernel_kill(int rank);
int  kernel_wake(const shared32 *word, int n);
bool kernel_lock_free(const pthread_mutex_t *m);
shared32 *kernel_mark(int rank);      /* the word that says that it lives */

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
