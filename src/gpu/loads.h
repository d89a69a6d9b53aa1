/* Job: whether a library is loaded, out of the loader's list; and see by two loads of memory that
 *      nothing has been loaded since it was last missed.
 * Owns: references to a few small libraries of glibc that nothing else had loaded; for good.
 * Never: keeps a library of the program's. Takes the loader's big lock, as dlopen and dlsym do, but
 *        for a mark: a thread holds that while the constructors of a library run, and these may
 *        wait for other threads, or fork.
 *
 * The loader puts what it loads at the end of its list, and never in between. So a mark is loaded,
 * a small library of which only we know: while it is the last one in the list, nothing has come
 * since. A library that has come moves the question to the loader, and later to a new mark.
 *
 * E135 mark: the loader has made the mark, then its address is stored (release). A thread that asks
 *     loads it (acquire), then reads what follows the mark in the list. */
#ifndef TUTTI_GPU_LOADS_H
#define TUTTI_GPU_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/* number: the loader's number of loads, plus 1.
   there: a library of that name is in its list; it may not be ready yet. */
struct loads { uint64_t number; bool there; };

/* Looks through the list only if the loader's number is not `known`. name: a library's file name or
   its DT_SONAME. */
struct loads loads_ask(const char *name, uint64_t known);

/* True: what was missed is still not there. False: loads_ask must be called, as always where the
   loader is not glibc's. Any thread; some 2 ns. */
bool loads_none(void);

/* Missed at this number; `again`: as the last time. After some of these in a row a mark is loaded,
   so only while the process has one thread. */
void loads_missed(uint64_t number, bool again);

/* A mark at once, the first time, if no library of that name is there. May wait for what other
   threads are loading. */
void loads_mark_ahead(const char *name);

#endif
