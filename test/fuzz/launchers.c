/* The variables of torchrun, Open MPI, MPICH and Slurm, and of what is nested in what:
 * lines NAME=VALUE. */
#include "fuzz.h"

#include "group/environment.h"
#include "group/launcher.h"

#include <errno.h>

enum { VARIABLES = 32 };

struct variables { const char *line[VARIABLES]; int n; };

static const char *lookup(const char *name, void *arg)
{
    const struct variables *v = arg;
    size_t n = strlen(name);
    for (int i = 0; i < v->n; i++)
        if (!strncmp(v->line[i], name, n) && v->line[i][n] == '=')
            return v->line[i] + n + 1;
    return NULL;
}

static unsigned ancestors;

static int ancestor(const char *name, pid_t *pid, uint64_t *start)
{
    if (!(ancestors >> (strlen(name) % 8) & 1))
        return -ENOENT;
    *pid = 4711;
    *start = UINT64_MAX;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct variables v = { .n = 0 };
    struct launch_place place;
    char room[300], *rest = NULL;
    ancestors = feed_byte(&feed);
    uint8_t how = feed_byte(&feed);
    struct text why = { room, how & 2 ? sizeof room : 24, 0 };
    char *text = feed_text(&feed, feed.left);
    for (char *line = strtok_r(text, "\n", &rest); line && v.n < VARIABLES;
         line = strtok_r(NULL, "\n", &rest))
        v.line[v.n++] = line;
    text_clear(&why);
    struct launcher_ways ways = { lookup, &v, ancestor };
    int r = environment_read_from(&place, &ways, how & 1, &why);
    if (r == 0) {
        FUZZ_MUST(place.size >= 1 && place.rank >= 0 && place.rank < place.size);
        FUZZ_MUST(place.global_size >= 1 && place.global_rank >= 0
                  && place.global_rank < place.global_size);
        FUZZ_MUST(place.local_size >= 0 && place.launcher
                  && memchr(place.job, 0, sizeof place.job));
    } else
        FUZZ_MUST(why.used > 0);
    free(text);
    return 0;
}
