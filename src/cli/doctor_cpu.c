/* The CPUs for the ranks of a job started here, and what follows from their number: ranks with a
 * CPU each spin, others do not. Cost: some small files of /proc and /sys. */
#include "cli/doctor.h"

#include "base/error.h"
#include "base/text.h"
#include "fold/fold.h"
#include "os/cpu.h"
#include "os/numa.h"

#include <string.h>

enum { LEVELS = 4, CPUS_SHOWN = 4096, MASK_WORDS = 512 };

static void say_caches(void)
{
    char said[120];
    struct text t = TEXT_IN(said);
    text_clear(&t);
    for (int level = 1; level <= LEVELS; level++) {
        size_t bytes = cpu_cache_bytes(level);
        if (!bytes)
            continue;
        text_add(&t, "%sL%d ", t.used ? ", " : "", level);
        text_add_bytes(&t, bytes);
    }
    doctor_say(4, "  caches of CPU 0: %s", t.used ? said : "not known");
}

static void say_nodes(void)
{
    static int cpus[CPUS_SHOWN];
    struct numa_facts facts;
    int n;
    for (int i = 0; (n = numa_look(i, &facts, cpus, CPUS_SHOWN)) > 0; i++) {
        char said[400];
        struct text t = TEXT_IN(said);
        text_clear(&t);
        text_add(&t, "CPU%s ", n == 1 ? "" : "s");
        text_add_ranks(&t, cpus, n < CPUS_SHOWN ? n : CPUS_SHOWN);
        if (facts.bytes) {
            text_add(&t, "; ");
            text_add_bytes(&t, facts.bytes);
            text_add(&t, ", ");
            text_add_bytes(&t, facts.free);
            text_add(&t, " free");
        }
        doctor_say(4, "  NUMA node %d: %s", facts.node, said);
    }
    if (!numa_several())
        return;
    int error = numa_policy_try();
    if (error)
        doctor_say(4,
                   "  memory cannot be placed on nodes: %s; it lies where it is touched first, "
                   "mostly near its rank if that is bound; let the "
                   "seccomp profile of the container allow mbind and get_mempolicy",
                   error_system(-error));
    else
        doctor_say(4,
                   "  a rank bound to one node has its memory there; what all share lies on the "
                   "nodes in turn");
}

void doctor_cpu(void)
{
    char model[100];
    uint64_t mask[MASK_WORDS];
    int allowed = cpu_allowed(), mine = cpu_mask(mask, MASK_WORDS), quota = cpu_quota(),
        siblings = cpu_siblings();
    cpu_model(model, sizeof model);
    doctor_say(4, "CPUs: %d, %s", allowed, model);
    doctor_say(4, "  affinity: %d; quota of the control group: %s%.0d%s", mine > 0 ? mine : allowed,
               quota ? "" : "none", quota,
               quota == 0 || quota >= mine ? "" : ", and that many are counted");
    doctor_say(4,
               "  up to %d rank%s: each spins for its turn, then sleeps; more: crowded, they yield "
               "instead of spinning, and go by rules of "
               "their own",
               allowed, allowed == 1 ? "" : "s");
    doctor_say(4, "  threads of a core: %d%s", siblings,
               siblings > 1 && allowed > 1 ? "; ranks that compute run best one a core" : "");
    say_caches();
    say_nodes();
    doctor_say(4, "  reductions are folded by %s instructions", fold_isa());
    if (quota > 0 && quota < mine)
        doctor_say(4,
                   "  ranks that use up the quota are all stopped for the rest of a period, often "
                   "100 ms: CPUs of their own (--cpuset-cpus) "
                   "serve them better");
}
