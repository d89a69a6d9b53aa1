/* libtutti-mpi.so, to be preloaded into anything. It holds no symbol of any MPI, so a launcher or a
 * shell takes no harm from it. A call is handed to the variant for the MPI that is loaded by then,
 * which the first call looks for; its functions stand in a table from then on. Where there is no
 * variant, or more than one MPI, the table holds the functions of the MPI below.
 *
 * All arguments are integers or pointers. On the processors that tutti is for, either has a
 * register or a stack place of its own, of 64 bits, and is handed on as it came. Cost of a call: a
 * load and a jump. State of the process: the table.
 *
 * E92 variant: who has looked for it stores each entry of the table (release); a call loads its
 *     entry (acquire). */
#include "base/atomic.h"
#include "mpi/interposed.h"
#include "mpi/pipes.h"
#include "mpi/unsent.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int way(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                uintptr_t, uintptr_t, uintptr_t);

static shared64 table[INTERPOSED_ALL];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define NAME_C(name, n) "MPI_" #name,
#define NAME_FORTRAN(name, NAME, n) "mpi_" #name "_",
static const char *const names[INTERPOSED_ALL] = {
    INTERPOSED(NAME_C) INTERPOSED_COUNTS(NAME_C) "ompi_rte_abort", "",
    INTERPOSED_FORTRAN(NAME_FORTRAN)
};

/* Which MPI has which library. MPICH and Intel MPI have one for each of two ABIs. */
static const struct { const char *soname, *variant, *fortran; } known[] = {
    { "libmpi.so.40", "openmpi", "libmpi_mpifh.so.40" },
    { "libmpich.so.12", "mpich", "libmpichfort.so.12" },
    { "libmpi.so.12", "mpich", "libmpifort.so.12" },
    { "libmpi_abi.so.1", "mpi5", "libmpifort_abi.so.1" },
};
enum { KNOWN = sizeof known / sizeof known[0] };

/* The only MPI that is loaded: its place in `known`. -1: none; -2: several. */
static int find(void **mpi)
{
    int found = -1;
    for (int i = 0; i < KNOWN; i++) {
        void *handle = dlopen(known[i].soname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && found >= 0)
            return -2;
        if (handle) {
            found = i;
            *mpi = handle;
        }
    }
    return found;
}

static void *variant_of(const char *name, const char **why)
{
    Dl_info here;
    char path[PATH_MAX];
    if (!dladdr(table, &here) || !here.dli_fname)
        return NULL;
    const char *slash = strrchr(here.dli_fname, '/');
    int n = snprintf(path, sizeof path, "%.*slibtutti-mpi-%s.so",
                     slash ? (int)(slash + 1 - here.dli_fname) : 0, here.dli_fname, name);
    void *variant = n > 0 && n < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!variant)
        *why = dlerror();
    return variant;
}

/* The function below: of the library that would have been called without us, else of the MPI's. */
static void *below(enum interposed which, void *mpi, void *fortran)
{
    void *fn = dlsym(RTLD_NEXT, names[which]);
    if (!fn)
        fn = which < INTERPOSED_C ? mpi ? dlsym(mpi, names[which]) : NULL
            : fortran             ? dlsym(fortran, names[which])
                                  : NULL;
    return fn;
}

static void resolve(void)
{
    void *mpi = NULL, *fortran = NULL;
    uintptr_t found[INTERPOSED_ALL] = { 0 };
    const char *why = "no variant of libtutti-mpi for it";
    int which = find(&mpi);
    if (which >= 0) {
        fortran = dlopen(known[which].fortran, RTLD_LAZY | RTLD_NOLOAD);
        void *variant = variant_of(known[which].variant, &why);
        tutti_mpi_opener *open = NULL;
        if (dlsym(mpi, names[AT_END]))                                   /* Open MPI */
            pipes_wanted();
        if (variant)
            *(void **)&open = dlsym(variant, "tutti_mpi_open");
        if (!open || open(mpi, found, &why) < 0)
            fprintf(stderr, "tutti: MPI calls go to %s as they are: %s\n", known[which].soname,
                    why ? why : "?");
        unsent_told(found[AT_UNSENT]);
    } else if (which == -2)
        fprintf(stderr, "tutti: MPI calls go to the MPI as they are: more than one MPI is "
                "loaded\n");
    for (int i = 0; i < INTERPOSED_ALL; i++) {
        uintptr_t fn = found[i] ? found[i]
                                : (uintptr_t)below((enum interposed)i, mpi, fortran);
        store_release64(&table[i], fn);                                  /* E92 release */
    }
}

static __attribute__((noinline)) way *way_first(enum interposed which)
{
    pthread_once(&once, resolve);
    uintptr_t fn = (uintptr_t)load_acquire64(&table[which]);             /* E92 acquire */
    if (!fn) {
        fprintf(stderr, "tutti: %s: no MPI is loaded that has it\n", names[which]);
        abort();
    }
    return (way *)fn;
}

static inline way *way_of(enum interposed which)
{
    uintptr_t fn = (uintptr_t)load_acquire64(&table[which]);             /* E92 acquire */
    return fn ? (way *)fn : way_first(which);
}

#define WORDS uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, \
    uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j
#define SHOWN __attribute__((visibility("default")))

#define TRAMPOLINE(name, n) \
    SHOWN int MPI_##name(WORDS); \
    SHOWN int MPI_##name(WORDS) { return way_of(AT_##name)(a, b, c, d, e, f, g, h, i, j); }
INTERPOSED(TRAMPOLINE)
INTERPOSED_COUNTS(TRAMPOLINE)

/* It has any number of arguments; here they have ten. */
SHOWN int ompi_rte_abort(WORDS);
SHOWN int ompi_rte_abort(WORDS) { return way_of(AT_END)(a, b, c, d, e, f, g, h, i, j); }

/* Compilers of Fortran have four customs for a name; the modules of Open MPI call a fifth. */
#define ALSO(name, own) SHOWN int name(WORDS) __attribute__((alias(own)));
#define TRAMPOLINE_FORTRAN(name, NAME, n) \
    SHOWN int mpi_##name##_(WORDS); \
    SHOWN int mpi_##name##_(WORDS) \
    { \
        return way_of(AT_FORTRAN_##NAME)(a, b, c, d, e, f, g, h, i, j); \
    } \
    ALSO(mpi_##name, "mpi_" #name "_") ALSO(mpi_##name##__, "mpi_" #name "_") \
    ALSO(MPI_##NAME, "mpi_" #name "_") ALSO(ompi_##name##_f, "mpi_" #name "_")
INTERPOSED_FORTRAN(TRAMPOLINE_FORTRAN)
