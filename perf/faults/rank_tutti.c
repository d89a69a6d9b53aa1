/* A rank of tutti: rank_tutti PAGE, by `tutti run`. */
#include "faults/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>

static tutti_comm *comms[3];
static tutti_call call;

static const char *kind_of(int error)
{
    static const struct { int error; const char *name; } names[] = {
        { -EOWNERDEAD, "EOWNERDEAD" }, { -EPROTO, "EPROTO" }, { -ETIMEDOUT, "ETIMEDOUT" },
        { -EDEADLK, "EDEADLK" }, { -ECANCELED, "ECANCELED" }, { -EINVAL, "EINVAL" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return tutti_strerror(error);
}

static int answer(int error, int comm, struct failure *why)
{
    if (error >= 0)
        return 0;
    snprintf(why->kind, sizeof why->kind, "%s", kind_of(error));
    snprintf(why->text, sizeof why->text, "%s", tutti_explain(comms[comm]));
    return -1;
}

static void deadline(int ms)
{
    call.timeout_ms = ms;
}

static int barrier(int comm, struct failure *why)
{
    return answer(tutti_barrier(comms[comm], &call), comm, why);
}

static int all_reduce(void *data, size_t count, enum element type, struct failure *why)
{
    return answer(tutti_all_reduce(data, data, count, type == ELEMENT_FLOAT ? TUTTI_F32 : TUTTI_F64,
                                   TUTTI_SUM, comms[0], &call),
                  0, why);
}

static int broadcast(float *data, size_t count, int root, struct failure *why)
{
    return answer(tutti_broadcast(data, count, TUTTI_F32, root, comms[0], &call), 0, why);
}

int main(int argc, char **argv)
{
    static const struct peer peer = { deadline, barrier, all_reduce, broadcast };
    if (argc == 2 && !strcmp(argv[1], "--version"))
        return printf("tutti %s\n", tutti_version()) < 0;
    struct page *page = argc == 2 ? page_map(argv[1], 0) : NULL;
    if (!page)
        return 2;
    int error = tutti_init(&comms[0], NULL);
    if (error < 0) {
        fprintf(stderr, "%s\n", tutti_explain(NULL));
        return 2;
    }
    int me = tutti_rank(comms[0]);
    for (int i = 1; page->fault == CYCLE && i < 3 && error == 0; i++)
        error = tutti_comm_split(comms[0], 0, me, &comms[i]);
    if (error < 0)
        scenario_unable(page, me, "tutti_comm_split", tutti_explain(comms[0]));
    scenario_play(page, me, &peer);
}
