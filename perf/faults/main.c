/* Faults, done to tutti and to its peers by the same program: what becomes of the ranks that are
 * not at fault?
 *
 * Two rounds. In the first each cell has the machine to itself, for six seconds, --repeat times:
 * answers that come have an undisturbed time. Those that have none by then are tried again, several
 * at once, up to the limit; they mostly spin or sleep until it has passed. */
#include "faults/table.h"

#include "cli/option.h"
#include "harness/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_MS = 6000 };
enum form { TERMINAL, MARKDOWN, CSV };

struct settings {
    struct found *found;
    enum form form;
    int jobs;
    bool quick, strict, texts;
    const char *systems, *faults, *tutti, *programs;
};

static const char usage[] =
    "usage: faults [OPTION...]\n"
    "\n"
    "Does faults to tutti, Open MPI, MPICH and Gloo, those of them that were\n"
    "found when this was built, and prints how each answers.\n"
    "\n"
    "  --systems LIST   tutti,openmpi,mpich,gloo and variants; --list shows all\n"
    "  --faults LIST    kill_barrier,stop ...; --list shows all\n"
    "  --ranks N        ranks of a job, 2 to 16; the last is at fault (3)\n"
    "  --limit S        seconds until a rank without an answer hangs (60)\n"
    "  --deadline MS    asked for where a system has deadlines (2000)\n"
    "  --repeat N       tries of each cell that has an answer in six seconds (1)\n"
    "  --jobs N         how many cells at once in the second round (4)\n"
    "  --markdown       print Markdown    --csv  print CSV\n"
    "  --texts          print what ranks and launchers said, too\n"
    "  --quick          tutti's own rows alone, deadline 300 ms\n"
    "  --strict         exit status 1 unless each of tutti's rows is an error that\n"
    "                   names the rank, or nothing left\n"
    "  --tutti PATH     the tutti command    --programs DIR  the rank programs\n";

static const char *called = "faults";

static _Noreturn void wrong(const char *what, const char *word)
{
    option_refuse(called, "%s: '%.60s'", what, word);
    exit(2);
}

static bool in_list(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (!strncmp(at, word, n) && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

static bool known(const char *word)
{
    bool is = false;
    for (int s = 0; s < peer_system_count; s++)
        is |= !strcmp(peer_systems[s].key, word);
    for (int f = 0; f < FAULTS; f++)
        is |= !strcmp(fault_names[f].key, word);
    return is;
}

static void check_list(const char *list)
{
    char word[64];
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (!known(word))
            wrong("no such system or fault; --list shows all", word);
        at += n;
    }
}

static int number(const char *word, int least, int most)
{
    char *end;
    long n = strtol(word, &end, 10);
    if (end == word || *end || n < least || n > most)
        wrong("not a number in its range", word);
    return (int)n;
}

static _Noreturn void list_all(void)
{
    for (int s = 0; s < peer_system_count; s++)
        printf("%-18s%s\n", peer_systems[s].key, peer_systems[s].name);
    printf("\n");
    for (int f = 0; f < FAULTS; f++)
        printf("%-18s%s\n", fault_names[f].key, fault_names[f].title);
    exit(0);
}

static void options(struct settings *o, int argc, char **argv)
{
    static const struct option known_options[] = {
        { "systems", 1, NULL, 's' }, { "faults", 1, NULL, 'f' }, { "ranks", 1, NULL, 'n' },
        { "limit", 1, NULL, 'l' }, { "deadline", 1, NULL, 'd' }, { "jobs", 1, NULL, 'j' },
        { "repeat", 1, NULL, 'r' }, { "markdown", 0, NULL, 'm' }, { "csv", 0, NULL, 'c' },
        { "texts", 0, NULL, 'x' }, { "quick", 0, NULL, 'q' }, { "strict", 0, NULL, 'S' },
        { "tutti", 1, NULL, 't' }, { "programs", 1, NULL, 'p' }, { "list", 0, NULL, 'L' },
        { "help", 0, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    called = !strncmp(argv[0], "tutti ", 6) ? argv[0] : called;
    const struct option_words words = { called, ":hn:", known_options, argc, argv };
    for (int c; (c = option_next(&words)) != OPTION_END;) {
        switch (c) {
        case 's': check_list(o->systems = optarg); break;
        case 'f': check_list(o->faults = optarg); break;
        case 'n': o->found->ranks = number(optarg, 2, FAULT_RANKS_MAX); break;
        case 'l': o->found->limit_s = number(optarg, 1, 86400); break;
        case 'd': o->found->timeout_ms = number(optarg, 1, 3600000); break;
        case 'j': o->jobs = number(optarg, 1, 64); break;
        case 'r': o->found->repeat = number(optarg, 1, TRIES_MAX); break;
        case 'm': o->form = MARKDOWN; break;
        case 'c': o->form = CSV; break;
        case 'x': o->texts = true; break;
        case 'q': o->quick = true; break;
        case 'S': o->strict = true; break;
        case 't': o->tutti = optarg; break;
        case 'p': o->programs = optarg; break;
        case 'L': list_all();
        case 'h': printf("%s", usage); exit(0);
        default: exit(2);
        }
    }
    if (optind < argc)
        wrong("it takes no words", argv[optind]);
    if (o->quick) {
        o->systems = o->systems ? o->systems : "tutti";
        o->found->timeout_ms = 300;
    }
}

static void choose(struct settings *o)
{
    struct found *f = o->found;
    for (int s = 0; s < peer_system_count; s++) {
        const struct peer_system *p = &peer_systems[s];
        if (o->systems && !in_list(o->systems, p->key))
            continue;
        if (!system_version(p, o->programs, f->versions[s], sizeof f->versions[s])) {
            fprintf(stderr,
                    "faults: %s is left out: it was not found when this was built, or its launcher "
                    "is not there\n",
                    p->name);
            f->versions[s][0] = 0;
            continue;
        }
        for (int fault = 0; fault < FAULTS; fault++) {
            f->cells[s][fault] = (struct cell){
                p, (enum fault)fault, f->ranks, f->timeout_ms, f->grace_ms, FIRST_MS, o->programs
            };
            f->wanted[s][fault] = (!o->faults || in_list(o->faults, fault_names[fault].key))
                && (!p->of || p->only >> fault & 1);
        }
    }
}

static void progress(const struct cell *c, int done, int all, int round)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kround %d: %d of %d done, %s %s", round, done, all, c->system->key,
                fault_names[c->fault].key);
}

static void run_round(struct found *f, int jobs, int limit_ms, int round)
{
    int all = 0, done = 0, running = 0;
    bool todo[SYSTEMS_MAX][FAULTS];
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++)
            all += todo[s][fault] = f->wanted[s][fault] && !outcome_at(f, s, fault)->concluded;
    for (int s = 0; s < peer_system_count; s++) {
        for (int fault = 0; fault < FAULTS; fault++) {
            struct cell *c = &f->cells[s][fault];
            if (!todo[s][fault])
                continue;
            if (running == jobs && waitpid(-1, NULL, 0) > 0)
                running--, done++;
            progress(c, done, all, round);
            c->limit_ms = limit_ms;
            running += cell_start(c, outcome_at(f, s, fault)) > 0;
            for (int again = 1; round == 1 && again < f->repeat && waitpid(-1, NULL, 0) > 0;
                 again++) {
                running--;
                if (!outcome_at(f, s, fault)->concluded)
                    break;
                tries_add(&f->tries[s][fault], outcome_at(f, s, fault));
                running += cell_start(c, outcome_at(f, s, fault)) > 0;
            }
        }
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++)
            if (todo[s][fault]
                && (outcome_at(f, s, fault)->concluded || limit_ms == f->limit_s * 1000))
                tries_add(&f->tries[s][fault], outcome_at(f, s, fault));
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

static int judge(const struct found *f)
{
    int broken = 0;
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++) {
            const struct outcome *o = outcome_at(f, s, fault);
            if (!f->wanted[s][fault] || strcmp(peer_systems[s].key, "tutti")
                || o->answer == (fault == WIPE ? CLEAN : NAMED))
                continue;
            fprintf(stderr, "faults: promise not kept: %s: %s\n%s", fault_names[fault].title,
                    o->words, o->said);
            broken = 1;
        }
    return broken;
}

int main(int argc, char **argv)
{
    static struct found found = {
        .repeat = 1, .ranks = 3, .limit_s = 60, .timeout_ms = 2000,
        .grace_ms = 2000, .load = "unknown"
    };
    char programs[1100];
    double load;
    snprintf(programs, sizeof programs, "%sranks", foreign_folder());
    struct settings o = {
        .found = &found, .jobs = 4, .tutti = foreign_tutti(), .programs = programs
    };
    options(&o, argc, argv);
    system_tutti(o.tutti);
    found.outcomes = mmap(NULL, sizeof(struct outcome) * SYSTEMS_MAX * FAULTS,
                          PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found.outcomes == MAP_FAILED)
        wrong("memory", "none");
    if (getloadavg(&load, 1) == 1)
        snprintf(found.load, sizeof found.load, "%.1f", load);
    if (access("/proc/thread-self/children", R_OK) != 0) {
        printf("skipped: this kernel does not tell who a process's children are "
               "(CONFIG_PROC_CHILDREN)\n");
        return 77;
    }
    choose(&o);
    run_round(&found, 1, found.limit_s * 1000 < FIRST_MS ? found.limit_s * 1000 : FIRST_MS, 1);
    if (found.limit_s * 1000 > FIRST_MS)
        run_round(&found, o.jobs, found.limit_s * 1000, 2);
    for (int s = 0; s < peer_system_count; s++)
        for (int fault = 0; fault < FAULTS; fault++)
            if (found.wanted[s][fault])
                tries_sum_up(&found.tries[s][fault], outcome_at(&found, s, fault));
    if (o.form == MARKDOWN)
        table_markdown(&found);
    else if (o.form == CSV)
        table_csv(&found);
    else
        table_terminal(&found, o.texts);
    return o.strict ? judge(&found) : 0;
}
