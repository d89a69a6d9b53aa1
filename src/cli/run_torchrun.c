/* Whoever has a script with torchrun changes its first word. What says where the ranks meet has no
 * meaning here, and is no mistake: they meet in memory. What would change what the program does, or
 * what one sees of it, is refused with what to write instead. Cost: a table. */
#include "cli/run_torchrun.h"

#include "base/text.h"
#include "cli/verb.h"

#include <stddef.h>
#include <string.h>

enum way { NOTHING, NNODES, NODE_RANK, RUN_ID, PORT, GRACE, REFUSED };
enum { NAME_ROOM = 128, PORT_MOST = 65535, GRACE_MOST_S = 1000000 };

static const char sees[] =
    "all ranks' output comes out of this command line by line; --tag puts the rank before each "
    "line, and > FILE keeps it";
static const char alone[] =
    "it is torchrun's alone: start the program by torchrun, whose ranks know tutti, too";

static const struct { const char *name, *remedy; enum way way; } known[] = {
    { "standalone", NULL, NOTHING }, { "no-python", NULL, NOTHING }, { "nnodes", NULL, NNODES },
    { "node-rank", NULL, NODE_RANK }, { "rdzv-backend", NULL, NOTHING },
    { "rdzv-endpoint", NULL, NOTHING }, { "rdzv-id", NULL, RUN_ID },
    { "rdzv-conf", NULL, NOTHING }, { "master-addr", NULL, NOTHING },
    { "master-port", NULL, PORT }, { "monitor-interval", NULL, NOTHING },
    { "start-method", NULL, NOTHING }, { "role", NULL, NOTHING }, { "local-addr", NULL, NOTHING },
    { "module", "write the interpreter, too: tutti run -n 2 python3 -m MODULE", REFUSED },
    { "run-path", alone, REFUSED }, { "log-dir", sees, REFUSED }, { "redirects", sees, REFUSED },
    { "tee", sees, REFUSED }, { "local-ranks-filter", sees, REFUSED },
    { "numa-binding", "write --bind numa, or --bind core", REFUSED },
    { "virtual-local-rank", "set CUDA_VISIBLE_DEVICES by LOCAL_RANK in the program", REFUSED },
    { "shutdown-timeout", NULL, GRACE }, { "signals-to-handle", alone, REFUSED },
    { "event-log-handler", alone, REFUSED }, { "logs-specs", alone, REFUSED },
    { "duplicate-stdout-filters", sees, REFUSED }, { "duplicate-stderr-filters", sees, REFUSED },
};

static int take_number(const char *name, const char *value, int64_t most, int64_t *to)
{
    return text_parse_int(value, 0, most, to)
        ? verb_refuse("run", "--%s wants a number from 0 to %lld, not '%.40s'", name,
                      (long long)most, value)
        : 0;
}

static int take_nodes(const char *value)
{
    if (!strcmp(value, "1") || !strcmp(value, "1:1"))
        return 0;
    return verb_refuse("run",
                       "--nnodes is 1 here, not '%.40s': all ranks of a job share one machine",
                       value);
}

int run_torchrun(struct job *job, int option, const char *value, const char **silent)
{
    size_t i = (size_t)(option - OPT_TORCHRUN);
    const char *name = known[i].name;
    int64_t n = 0;
    int status;
    switch (known[i].way) {
    case NOTHING:
        *silent = name;
        return 0;
    case NNODES:
        return take_nodes(value);
    case NODE_RANK:
        return strcmp(value, "0") == 0
            ? 0
            : verb_refuse("run", "--node-rank is 0 here, not '%.40s': there is one machine", value);
    case RUN_ID:
        job->run_id = value;
        return strlen(value) < NAME_ROOM
            ? 0
            : verb_refuse("run", "--rdzv-id is longer than %d letters", NAME_ROOM - 1);
    case PORT:
        status = take_number(name, value, PORT_MOST, &n);
        job->master_port = (int)n;
        return status;
    case GRACE:
        status = take_number(name, value, GRACE_MOST_S, &n);
        job->grace_ms = n * 1000;
        return status;
    case REFUSED:
        break;
    }
    return verb_refuse("run", "--%s does not exist here: %s", name, known[i].remedy);
}
