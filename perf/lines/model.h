/* Job: says when an access to a cache line is done, who fetches it from where, and what it waited
 *      for: caches of many cores, in domains that share a last cache.
 * Owns: where each line is.
 * Never: what stands in a line, nor which access comes next.
 *
 * Accesses come in the order of their times. What is counted, and what is assumed: README.md. */
#ifndef PERF_LINES_MODEL_H
#define PERF_LINES_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORES_MOST = 256, DOMAINS_MOST = 32, RUN_AHEAD_MOST = 16 };
enum protocol { MESI, MOESI };

/* ns; where each default comes from: README.md */
struct costs {
    double hit;          /* in the core's own cache */
    double near, far;    /* a line from another core of the domain, from another domain */
    double queue;        /* for how long a request keeps others from the same line, at its home */
    double write_back;   /* MESI: a dirty line that another domain reads goes home first */
    double probe;        /* a write: for each further domain that has copies */
    double pause;        /* between two looks */
};
extern const struct costs costs_usual;

struct machine_model {
    int cores, domain;                     /* cores of a domain */
    enum protocol protocol;
    int run_ahead;       /* misses of a core under way at once, on loads it has foreseen; 1: none */
    struct costs costs;
};

/* How many transfers lead to a moment, one after the other. */
struct path { uint32_t near, far; };

struct core {
    double now;                            /* when its next access begins */
    double stored;                         /* when its last store is done; a fence waits for it */
    struct path path;                      /* behind `now` */
};

struct model;
/* NULL: no memory, or more cores than CORES_MOST. */
struct model *model_open(const struct machine_model *m);
void model_close(struct model *model);
struct core *model_core(struct model *model, int core);

/* Each moves the core's `now` on. news: the core has looked at this word again and again, and now
   it has another value: so it has waited for whoever wrote the line. */
void model_load(struct model *model, int core, const void *word);
void model_news(struct model *model, int core, const void *word);
void model_store(struct model *model, int core, const void *word);
void model_change(struct model *model, int core, const void *word);        /* read and write */
void model_fence(struct model *model, int core);
void model_own(struct model *model, int core, const void *word);           /* a hint: no wait */
void model_pause(struct model *model, int core);
/* An operation begins: loads will miss in the order of the one before the last, of the same
 * parity. */
void model_operation(struct model *model, int core);

/* All transfers so far, of all cores. */
struct path model_transfers(const struct model *model);

#endif
