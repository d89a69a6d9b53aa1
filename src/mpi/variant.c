/* A variant: these sources, compiled for one ABI of MPI. The trampoline opens it and asks for its
 * functions; begin and end of the job hang on the MPI's own. */
#include "mpi/interposed.h"
#include "mpi/narrow.h"
#include "mpi/shield.h"
#include "mpi/through.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN tutti_mpi_opener tutti_mpi_open;

static void *library;
static void (*end_below)(int code, const char *format, ...);

/* Sizes of types may be asked only now. */
static int begin(int r)
{
    int integer = 0;
    if (r != MPI_SUCCESS)
        return r;
    elements_find(library);
    below.Type_size(job.abi.fortran_integer, &integer);
    job_begin(integer == 0 || integer == sizeof(int), link_copied, link_deleted);
    return r;
}

int through_init(int *argc, char ***argv)
{
    return begin(below.Init(argc, argv));
}

int through_init_thread(int *argc, char ***argv, int required, int *provided)
{
    return begin(below.Init_thread(argc, argv, required, provided));
}

/* Handlers of the program's own attributes run in the MPI's finalize, and may call collectives:
 * tutti goes after it. */
int through_finalize(void)
{
    job.ended = true;
    int r = below.Finalize();
    if (r == MPI_SUCCESS) {
        link_end();
        job_end();
        tally_print(job.rank);
    }
    return r;
}

/* MPICH looks first and turns its progress then. A program may count on a barrier to have turned
 * it: what others did before theirs is seen behind it. It is turned here, not in each barrier. */
static int win_test(MPI_Win win, int *flag)
{
    if (job.on)
        job_turn(NULL);
    return below.Win_test(win, flag);
}

/* The MPI ends the process: by itself, or for MPI_Abort. */
static void end(int code, const char *format, ...)
{
    char text[1024] = "";
    va_list list;
    va_start(list, format);
    if (format)
        vsnprintf(text, sizeof text, format, list);
    va_end(list);
    shield_last_word();
    if (format)
        end_below(code, "%s", text);
    else
        end_below(code, NULL);
}

int tutti_mpi_open(void *mpi, uintptr_t table[INTERPOSED_ALL], const char **why)
{
    *why = "it lacks a function or a constant that was expected";
    if (below_find(mpi) < 0 || abi_find(&job.abi, mpi) < 0)
        return -1;
    narrow_fill();
    library = mpi;
    table[AT_Init] = (uintptr_t)through_init;
    table[AT_Init_thread] = (uintptr_t)through_init_thread;
    table[AT_Finalize] = (uintptr_t)through_finalize;
    table[AT_Win_test] = (uintptr_t)win_test;
    *(void **)&end_below = dlsym(mpi, "ompi_rte_abort");
    if (end_below)
        table[AT_END] = (uintptr_t)end;
    table[AT_UNSENT] = (uintptr_t)shield_unsent;
    through_forms(table);
    through_fortran(mpi, table);
    return 0;
}
