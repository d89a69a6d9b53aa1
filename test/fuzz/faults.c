/* The grammar of TUTTI_FAULT. What is accepted is a fault of this very rank that can strike. */
#include "fuzz.h"

#include "engine/fault.h"
#include "group/comm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tutti_comm comm;
    char room[160];
    struct feed feed = { data, size };
    memset((void *)&comm, 0, sizeof comm);
    comm.watch.size = 1 + feed_byte(&feed) % 4;
    comm.watch.me = feed_byte(&feed) % comm.watch.size;
    char *text = feed_text(&feed, feed.left), *rest = NULL;
    for (char *one = strtok_r(text, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest)) {
        struct text why = TEXT_IN(room);
        int before = comm.engine.fault_count;
        text_clear(&why);
        int r = fault_add(&comm, one, &why);
        FUZZ_MUST((r < 0) == (why.used > 0));
        FUZZ_MUST(comm.engine.fault_count <= FAULTS_MAX
                  && (r == 0 || comm.engine.fault_count == before));
    }
    for (int i = 0; i < comm.engine.fault_count; i++)
        FUZZ_MUST(comm.engine.faults[i].kind >= -1 && comm.engine.faults[i].kind < KIND_COUNT
                  && comm.engine.faults[i].nth > 0);
    free(text);
    return 0;
}
