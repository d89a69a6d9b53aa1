/* explore run NAME | same NAME | missing BUG NAME | bug BUG NAME | replay NAME BUG WORDS LIMIT
 * SCHEDULE | seed NAME BUG SEED | list
 *
 * A search goes up in preemptions: first all schedules with none, then with one … so that what is
 * cut off by the time is the most intricate, and it can be said what was complete.
 * TUTTI_EXPLORE_SECONDS bounds a scenario; with TUTTI_PROVE nothing does, but for random schedules,
 * of which there is no end. */
#include "explore/engine.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LEARN_RUNS = 400,
    LEARN_EVERY = 20,
    SECONDS = 6,
    CHANCE_PROVE_SECONDS = 120,
    BUG_SECONDS = 20,
    CHANCE_RUNS_MOST = 100000000
};

enum explore_bug explore_bug;
static const char *const bug_names[] = {
    "none",
#define B(name) #name,
    EXPLORE_BUGS(B)
#undef B
};
static const char *const event_names[EVENT_KINDS] = {
    "", "", "kills", "stops", "spurious wakes", "ends of slices", "jumps of the clock"
};

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static double budget(double normal)
{
    const char *given = getenv("TUTTI_EXPLORE_SECONDS");
    return given ? atof(given) : getenv("TUTTI_PROVE") ? 1e9 : normal;
}

/* Which words are shared: a few hundred random runs show nearly all. What they find is
 * found again. */
static void learn(void)
{
    for (uint64_t seed = 1; seed <= LEARN_RUNS; seed++) {
        engine.limit = engine.limit_event = CHOICES_MOST;
        choose_chance(seed);
        engine_run();
        if (seed % LEARN_EVERY == 0)
            words_learn();
    }
    choose_learned();
    engine.runs = engine.cuts = engine.all_steps = engine.deepest = 0;
    memset(engine.event_runs, 0, sizeof engine.event_runs);
}

static void set_limit(const struct scenario *s, int limit)
{
    engine.limit = limit;
    engine.limit_event = limit < s->preemptions_event ? limit : s->preemptions_event;
}

static uint64_t round_began;

enum found { FOUND_NOTHING, FOUND_WRONG, FOUND_LATE };

static enum found search_at(const struct scenario *s, int limit, double end, bool stop)
{
    set_limit(s, limit);
    do {
        choose_search();
        same_again();
        /* what was run with fewer preemptions, or before all shared words were known, is
         * run again */
        round_began = engine.runs;
        do {
            if (!engine_run() && stop)
                return FOUND_WRONG;
            if (engine.runs % 64 == 0 && cpu_seconds() > end)
                return FOUND_LATE;
        } while (choose_next());
    } while (words_learn());
    return FOUND_NOTHING;
}

static void print_counts(const struct scenario *s)
{
    printf("%s: %llu interleavings (%llu runs, %llu of them cut where all that follows was known; "
           "%llu states), %llu steps (up to %llu in one), ",
           s->name, (unsigned long long)(engine.runs - round_began),
           (unsigned long long)engine.runs, (unsigned long long)engine.cuts,
           (unsigned long long)seen_states(), (unsigned long long)engine.all_steps,
           (unsigned long long)engine.deepest);
    printf("%d shared words, %zu pages set back, %.1f s CPU\n", words_shared(), pages_hot(),
           cpu_seconds());
    for (int e = EVENT_KILL; e < EVENT_KINDS; e++)
        if (engine.event_runs[e])
            printf("%s: with %llu %s\n", s->name, (unsigned long long)engine.event_runs[e],
                   event_names[e]);
}

static void print_wrong(const struct scenario *s)
{
    char schedule[4096];
    choose_print(schedule, sizeof schedule);
    printf("%s: WRONG: %s\n", s->name, engine.said);
    if (!s->chance)
        printf("%s: explore replay %s %s %d %d %s\n", s->name, s->name, bug_names[explore_bug],
               words_shared(), engine.limit, *schedule ? schedule : "-");
}

static int search(const struct scenario *s, double seconds)
{
    double end = cpu_seconds() + seconds;
    int complete = -1;
    enum found found = FOUND_NOTHING;
    for (int limit = 0; limit <= s->preemptions && found == FOUND_NOTHING; limit++) {
        found = search_at(s, limit, end, true);
        complete = found == FOUND_NOTHING ? limit : complete;
    }
    if (found == FOUND_WRONG)
        print_wrong(s);
    print_counts(s);
    if (found == FOUND_NOTHING)
        printf("%s: complete: all schedules with up to %d preemptions, with one event up to %d\n",
               s->name, s->preemptions, s->preemptions_event);
    else if (complete >= 0)
        printf("%s: complete up to %d preemptions; cut off by %s\n", s->name, complete,
               found == FOUND_LATE ? "time" : "the finding");
    return found == FOUND_WRONG;
}

static int by_chance(const struct scenario *s, double seconds)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : clock_ns() / 1000 % 1000000000 * 1000;
    if (explore_bug && !given)
        seed = 1;                      /* what is found once is found always */
    double end = cpu_seconds() + (seconds > 1e8 ? CHANCE_PROVE_SECONDS : seconds);
    engine.limit = engine.limit_event = CHOICES_MOST;
    printf("%s: TUTTI_TEST_SEED=%llu\n", s->name, (unsigned long long)seed);
    for (uint64_t i = 0; i < CHANCE_RUNS_MOST && (i % 64 || cpu_seconds() < end); i++) {
        choose_chance(seed + i);
        if (engine_run())
            continue;
        print_wrong(s);
        printf("%s: explore seed %s %s %llu\n", s->name, s->name, bug_names[explore_bug],
               (unsigned long long)(seed + i));
        print_counts(s);
        return 1;
    }
    print_counts(s);
    return 0;
}

static enum explore_bug bug_of(const char *name)
{
    for (int i = 0; i < BUG_COUNT; i++)
        if (!strcmp(name, bug_names[i]))
            return (enum explore_bug)i;
    fprintf(stderr, "explore: no bug \"%s\"\n", name);
    exit(2);
}

static const struct scenario *open_scenario(const char *name)
{
    const struct scenario *s = explore_find(name);
    if (!s) {
        fprintf(stderr, "explore: no scenario \"%s\"\n", name);
        exit(2);
    }
    engine.scenario = s;
    world_open(s);
    learn();
    return s;
}

static int explore(const char *name)
{
    const struct scenario *s = open_scenario(name);
    double seconds = explore_bug ? BUG_SECONDS : budget(s->chance ? 0.5 : SECONDS);
    return s->chance ? by_chance(s, seconds) : search(s, seconds);
}

static int same(const char *name)
{
    const struct scenario *s = open_scenario(name);
    for (int which = 0; which < 2; which++) {
        seen_switch(which == 0);
        same_into(which);
        for (int limit = 0; limit <= s->preemptions; limit++)
            if (search_at(s, limit, cpu_seconds() + 1e9, true) != FOUND_NOTHING) {
                print_wrong(s);
                return 1;
            }
        print_counts(s);
    }
    size_t missing = same_missing();
    printf("%s: all schedules end in %zu states, those that were searched in %zu; %zu are "
           "missing\n",
           name, same_found(0), same_found(1), missing);
    return missing > 0;
}

static int replay(const char *name, int words, int limit, const char *schedule)
{
    const struct scenario *s = open_scenario(name);
    for (int p = 0; p <= s->preemptions && words_shared() < words; p++)
        search_at(s, p, 1e9, false);
    set_limit(s, limit);
    choose_replay(schedule);
    explore_trace = true;
    bool good = engine_run();
    printf("%s: %s\n", name, good ? "nothing wrong" : engine.said);
    return !good;
}

static int seeded(const char *name, uint64_t seed)
{
    open_scenario(name);
    engine.limit = engine.limit_event = CHOICES_MOST;
    choose_chance(seed);
    explore_trace = true;
    bool good = engine_run();
    printf("%s: %s\n", name, good ? "nothing wrong" : engine.said);
    return !good;
}

static void list(void)
{
    for (int i = 0; explore_scenarios[i]; i++)
        printf("%s\n", explore_scenarios[i]->name);
}

static void aborted(int number)
{
    print_wrong(engine.scenario);
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv)
{
    int result = 2;
    seen_switch(getenv("TUTTI_EXPLORE_ALL") != NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, aborted);
    if (argc == 2 && !strcmp(argv[1], "list")) {
        list();
        result = 0;
    } else if (argc == 3 && !strcmp(argv[1], "run"))
        result = explore(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "same"))
        result = same(argv[2]);
    else if (argc == 4 && !strcmp(argv[1], "missing")) {
        explore_bug = bug_of(argv[2]);
        result = !same(argv[3]);
    } else if (argc == 4 && !strcmp(argv[1], "bug")) {
        explore_bug = bug_of(argv[2]);
        result = !explore(argv[3]);
        printf("%s: the seeded bug was %s\n", argv[2], result ? "NOT FOUND" : "found");
    } else if (argc == 7 && !strcmp(argv[1], "replay")) {
        explore_bug = bug_of(argv[3]);
        result = replay(argv[2], atoi(argv[4]), atoi(argv[5]), argv[6]);
    } else if (argc == 5 && !strcmp(argv[1], "seed")) {
        explore_bug = bug_of(argv[3]);
        result = seeded(argv[2], strtoull(argv[4], NULL, 0));
    } else
        fprintf(stderr,
                "usage: explore run NAME | same NAME | missing BUG NAME | bug BUG NAME\n"
                "       explore replay NAME BUG WORDS LIMIT SCHEDULE | seed NAME BUG SEED | "
                "list\n");
    fflush(stdout);
    _exit(result);                    /* the worlds stay: their leaving is no part of this */
}
