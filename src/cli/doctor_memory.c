/* How much memory an arena can have, in which pages, and how many ranks this shell's limits allow:
 * found by making arenas. Cost: 32 MiB for a moment, and some arenas. */
#include "cli/doctor.h"

#include "arena/arena.h"
#include "base/text.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/memory.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TRIED = 32 << 20, DESCRIPTORS_BESIDES = 160 }; /* `tutti run`: two a rank, and these */

static void say_amount(void)
{
    char said[160];
    struct text t = TEXT_IN(said);
    uint64_t limit = memory_limit();
    text_clear(&t);
    text_add_bytes(&t, memory_total());
    text_add(&t, ", ");
    text_add_bytes(&t, memory_available());
    text_add(&t, " to be had now; limit of the control group: ");
    if (limit)
        text_add_bytes(&t, limit);
    else
        text_add(&t, "none");
    doctor_say(4, "memory: %s", said);
}

/* The chosen word of a list "always within_size advise [never] deny force". */
static void chosen_word(const char *path, char *word, size_t room)
{
    char list[200];
    struct text t = { word, room, 0 };
    text_clear(&t);
    const char *at = file_read(path, list, sizeof list) > 0 ? strchr(list, '[') : NULL;
    text_add(&t, "%.*s", at ? (int)strcspn(at + 1, "]\n") : 9, at ? at + 1 : "not known");
}

/* Tries huge pages as tutti_alloc gets them from the arena. */
static void say_huge(void)
{
    char setting[40], said[100];
    struct text t = TEXT_IN(said);
    bool roomy = memory_available() > 4 * (uint64_t)TRIED;
    int error = 0, fd = roomy ? memory_create(TRIED) : -1;
    void *at = fd >= 0 ? memory_map(fd, TRIED, &error) : NULL;
    size_t huge = 0;
    text_clear(&t);
    chosen_word("/sys/kernel/mm/transparent_hugepage/shmem_enabled", setting, sizeof setting);
    if (at && memory_populate_huge(at, TRIED, 0, &huge) == 0) {
        text_add_bytes(&t, huge);
        text_add(&t, " of 32 MiB came in them");
    } else
        text_add(&t, roomy ? "none could be had" : "not tried, there is too little memory");
    if (at)
        memory_unmap(at, TRIED);
    if (fd >= 0)
        close(fd);
    doctor_say(4, "  huge pages of shared memory: shmem_enabled is %s; %s%s", setting, said,
               huge || !at ? ""
                           : "; to have them: echo advise > "
                             "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

static void add_limit(struct text *t, const char *name, unsigned which, bool bytes)
{
    struct rlimit limit;
    text_add(t, "%s%s ", t->used ? ", " : "", name);
    if (getrlimit(which, &limit) != 0)
        text_add(t, "not known");
    else if (limit.rlim_cur == RLIM_INFINITY)
        text_add(t, "none");
    else if (bytes)
        text_add_bytes(t, limit.rlim_cur);
    else
        text_add(t, "%llu", (unsigned long long)limit.rlim_cur);
}

static void say_limits(void)
{
    char said[300], overcommit[20];
    struct text t = TEXT_IN(said);
    text_clear(&t);
    add_limit(&t, "descriptors (ulimit -n)", RLIMIT_NOFILE, false);
    add_limit(&t, "processes (-u)", RLIMIT_NPROC, false);
    add_limit(&t, "address space (-v)", RLIMIT_AS, true);
    add_limit(&t, "file size (-f)", RLIMIT_FSIZE, true);
    add_limit(&t, "locked memory (-l)", RLIMIT_MEMLOCK, true);
    file_read("/proc/sys/vm/overcommit_memory", overcommit, sizeof overcommit);
    overcommit[strcspn(overcommit, "\n")] = 0;
    doctor_say(4, "  limits: %s; vm.overcommit_memory %s", said,
               overcommit[0] ? overcommit : "not known");
}

static bool makes_arena(int ranks, struct text *why)
{
    struct arena arena;
    const struct arena_plan plan = { .size = ranks, .job = "doctor", .rules = "" };
    text_clear(why);
    if (arena_create(&arena, &plan, why) < 0)
        return false;
    arena_detach(&arena);
    return true;
}

/* By the hard limit, because `tutti run` raises the soft one to it. */
static int ranks_by_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY
        || limit.rlim_max >= 2 * RANKS_MAX + DESCRIPTORS_BESIDES)
        return RANKS_MAX;
    return limit.rlim_max > DESCRIPTORS_BESIDES ? (int)(limit.rlim_max - DESCRIPTORS_BESIDES) / 2
                                                : 0;
}

void doctor_memory(struct doctor *d)
{
    char said[400];
    struct text why = TEXT_IN(said);
    int ranks = RANKS_MAX, descriptors = ranks_by_descriptors(), cpus = cpu_allowed();
    say_amount();
    say_huge();
    say_limits();
    while (ranks > 0 && !makes_arena(ranks, &why))
        ranks /= 2;
    if (ranks == 0)
        doctor_wrong(d,
                     "see the limits above, and the control group's; without an arena there is no "
                     "job",
                     "%s", said);
    else
        doctor_say(4, "  ranks: these limits allow %d (the most there can be: %d)",
                   ranks < descriptors ? ranks : descriptors, RANKS_MAX);
    if (descriptors < cpus)
        doctor_wrong(d, "raise the hard limit: ulimit -Hn, or LimitNOFILE of the service",
                     "the limit on descriptors allows tutti run %d ranks, and there are %d CPUs",
                     descriptors, cpus);
    else if (ranks > 0 && ranks < cpus)
        doctor_wrong(d, "raise ulimit -v",
                     "there is address space for %d ranks, and there are %d CPUs", ranks, cpus);
}
