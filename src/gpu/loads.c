/* A mark must be ours alone: a reference to a library of the program's would keep it when the
 * program closes it, and a program that loads its new build then got the old one. In glibc since
 * 2.34 the marks are empty libraries, there for programs linked before. They are never closed, so
 * what loads_none reads stays.
 *
 * Between the miss and the mark another thread may load something. So the count is read once more
 * behind the mark: if it has grown by the mark alone, the driver was not there when the mark came,
 * and from then on it can only come behind it. */
#include "gpu/loads.h"

#include "base/atomic.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

static int count(struct dl_phdr_info *info, size_t size, void *number)
{
    (void)size;
    *(uint64_t *)number = info->dlpi_adds + 1;
    return 1;
}

uint64_t loads_count(void)
{
    uint64_t number = 0;
    dl_iterate_phdr(count, &number);
    return number;
}

#ifdef __GLIBC__

_Static_assert(sizeof ((struct link_map *)0)->l_next == sizeof(shared64), "it is read as one");

enum { SAME = 64 };                    /* a program that still loads its libraries gets no mark */
static const char *const marks[] = {
    "libutil.so.1", "libanl.so.1", "libBrokenLocale.so.1", "librt.so.1", "libdl.so.2"
};
enum { MARKS = sizeof marks / sizeof *marks };

static shared64 mark;                            /* the last one, a struct link_map; 0: none */
static int same, tried;                          /* of loads_missed, one thread at a time */

bool loads_none(void)
{
    uint64_t at = load_acquire64(&mark);                                       /* E135 acquire */
    const struct link_map *last = (const struct link_map *)(uintptr_t)at;
    /* relaxed: a thread that uses what another one has loaded has met it since, so it sees it */
    return last && !load_relaxed64((const shared64 *)(const void *)&last->l_next);
}

/* NULL: there is none that nobody else has. */
static const struct link_map *next_mark(void)
{
    while (tried < MARKS) {
        const char *name = marks[tried++];
        void *map, *library;
        if (dlopen(name, RTLD_LAZY | RTLD_NOLOAD))
            continue;                  /* not closed: it may have become the last reference */
        library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
            return map;
    }
    return NULL;
}

void loads_missed(uint64_t number, bool again)
{
    same = again ? same + 1 : 0;
    if (same < SAME || tried == MARKS)
        return;
    same = 0;
    const struct link_map *map = next_mark();
    if (map && loads_count() == number + 1)
        store_release64(&mark, (uintptr_t)map);                                /* E135 release */
}

#else

bool loads_none(void) { return false; }

void loads_missed(uint64_t number, bool again)
{
    (void)number;
    (void)again;
}

#endif
