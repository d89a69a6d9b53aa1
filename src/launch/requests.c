/* Ctrl-\ at a terminal reaches the ranks by itself, so where there is one they are started with
 * SIGQUIT ignored: the question ends nobody. A rank that has not said what it does at SIGUSR1 would
 * be ended by it, and nobody would know by what: it does not get it, and one line says so.
 * Cost: a look at all ranks, some 20 ms, in the launcher's loop. */
#include "launch/requests.h"

#include "base/system_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void requests_why(const struct job *job, struct relay *relay)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = job->why ? open_memstream(&text, &n) : NULL;
    if (!out)
        return;
    job->why(out, getpid());
    fclose(out);
    relay_say(relay, "tutti run: SIGQUIT asks why the ranks wait");
    relay_show(relay, text, n);
    free(text);
}

static void requests_pass(const struct children *children, struct relay *relay, int number)
{
    char said[256];
    struct text t = TEXT_IN(said);
    int *ranks = calloc((size_t)children->size, sizeof *ranks), n = 0;
    for (int r = 0; r < children->size; r++) {
        const struct child *c = &children->child[r];
        if (!c->started || c->ended)
            continue;
        if (process_takes(c->pid, number))
            kill(c->pid, number);
        else if (ranks)
            ranks[n++] = r;
    }
    text_clear(&t);
    text_add_ranks(&t, ranks, n);
    if (n)
        relay_say(relay, "tutti run: SIG%s was not passed on to rank%s %s: it would end what has "
                  "no handler for it", system_signal_name(number), n > 1 ? "s" : "", said);
    free(ranks);
}

void requests_answer(const struct job *job, const struct children *children, struct relay *relay,
                     const struct signals_news *news)
{
    if (news->number == SIGQUIT)
        requests_why(job, relay);
    else if (news->number == SIGUSR1 || news->number == SIGUSR2)
        requests_pass(children, relay, news->number);
    else if (!news->from_terminal)
        children_pass(children, news->number);
}
