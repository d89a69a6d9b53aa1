/* Half of what the kernel calls available: the other half is for arenas, for what the buffers'
 * owners do beside, and for being wrong. A machine that swaps measures its disk. */
#include "reports/memory_budget.h"

#include <stdio.h>

enum { ROTATED_MOST = 32 << 20 };

static size_t available(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (size_t)kib << 10;
}

size_t budget_pool(const struct ask_sizes *s, int ranks, size_t most)
{
    size_t pool = 0;
    for (int k = 0; k < s->count; k++)
        for (size_t bytes = 4; bytes <= most; bytes *= 4) {
            size_t room = operation_room(s->operations[k], ranks, bytes)
                * (bytes > ROTATED_MOST ? 1 : 2);
            pool = room > pool ? room : pool;
        }
    return pool;
}

size_t budget_most(const struct question *p, const struct ask_sizes *s, int jobs)
{
    size_t most = 4;
    while (most * 4 <= s->most
           && budget_pool(s, p->ranks, most * 4) * 2 * (size_t)p->ranks * (size_t)jobs
               <= available() / 2)
        most *= 4;
    if (most * 4 <= s->most)
        report_remark(p->report, false,
                      "%d ranks%s%s: messages above %zu bytes are left out, for there are %zu MiB "
                      "of memory",
                      p->ranks, s->count == 1 ? ", " : "",
                      s->count == 1 ? operations[s->operations[0]].name : "", most,
                      available() >> 20);
    return most;
}
