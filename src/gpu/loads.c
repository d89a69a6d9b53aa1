/* dl_iterate_phdr holds a lock that guards the list only. What is in the list is mapped, as those
 * who unwind a stack rely on.
 *
 * A mark must be ours alone: a reference to a library of the program's would keep it when the
 * program closes it, and a program that loads its new build then got the old one. In glibc since
 * 2.34 the marks are empty libraries, there for programs linked before. They are never closed, so
 * what loads_none reads stays.
 *
 * Between the miss and the mark another thread may load something. So the number is asked for once
 * more behind the mark: if it has grown by the mark alone, the library was not there when the mark
 * came, and from then on it can only come behind it. */
#include "gpu/loads.h"

#include "base/atomic.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

struct sought { const char *name; uint64_t known; struct loads answer; };

/* NULL: it has none. Some loaders leave the table of names at its offset in the library. */
static const char *soname(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *d = NULL;
    ElfW(Addr) names = 0, at = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            names = d->d_un.d_ptr;
        else if (d->d_tag == DT_SONAME)
            at = d->d_un.d_val;
    if (!names || !at)
        return NULL;
    return (const char *)(names < info->dlpi_addr ? names + info->dlpi_addr : names) + at;
}

static bool is_named(const struct dl_phdr_info *info, const char *name)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *own = soname(info);
    return (slash && strcmp(slash + 1, name) == 0) || (own && strcmp(own, name) == 0);
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sought *s = arg;
    (void)size;
    s->answer.number = info->dlpi_adds + 1;
    if (s->answer.number == s->known)
        return 1;
    s->answer.there = is_named(info, s->name);
    return s->answer.there;
}

struct loads loads_ask(const char *name, uint64_t known)
{
    struct sought s = { .name = name, .known = known };
    dl_iterate_phdr(look, &s);
    return s.answer;
}

#ifdef __GLIBC__

_Static_assert(sizeof ((struct link_map *)0)->l_next == sizeof(shared64), "it is read as one");

enum { SAME = 64 };                    /* a program that still loads its libraries gets no mark */
static const char *const marks[] = {
    "libutil.so.1", "libanl.so.1", "libBrokenLocale.so.1", "librt.so.1", "libdl.so.2"
};
enum { MARKS = sizeof marks / sizeof *marks };

static shared64 mark;                            /* the last one, a struct link_map; 0: none */
static shared32 ahead;                           /* 1: it was asked for ahead */
static int same, tried;                          /* of the only thread, and of the one ahead */

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

static void load_mark(uint64_t number)
{
    const struct link_map *map = next_mark();
    if (map && loads_ask("", number).number == number + 1)
        store_release64(&mark, (uintptr_t)map);                                /* E135 release */
}

void loads_missed(uint64_t number, bool again)
{
    same = again ? same + 1 : 0;
    if (same < SAME || tried == MARKS)
        return;
    same = 0;
    load_mark(number);
}

void loads_mark_ahead(const char *name)
{
    if (fetch_or32(&ahead, 1))
        return;
    struct loads has = loads_ask(name, 0);
    if (!has.there)
        load_mark(has.number);
}

#else

bool loads_none(void) { return false; }

void loads_missed(uint64_t number, bool again)
{
    (void)number;
    (void)again;
}

void loads_mark_ahead(const char *name) { (void)name; }

#endif
