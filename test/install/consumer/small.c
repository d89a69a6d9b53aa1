/* What a stranger would write first, built against the installed library. */
#include <stdio.h>
#include <tutti.h>

static int rank_main(tutti_comm *world, void *arg)
{
    (void)arg;
    int sum = tutti_rank(world) + 1;
    int error = tutti_all_reduce(&sum, &sum, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
    if (error != 0)
        fprintf(stderr, "%s\n", tutti_explain(world));
    return error == 0 && sum == 3 ? 0 : 1;
}

int main(void)
{
    int failed = tutti_spawn(2, rank_main, NULL, NULL, NULL);
    if (failed < 0)
        fprintf(stderr, "%s\n", tutti_explain(NULL));
    printf("tutti %s: %d of 2 ranks failed\n", tutti_version(), failed);
    return failed != 0;
}
