/* Job: see by two loads of memory that nothing has been loaded since the driver was last missed.
 * Owns: references to a few small libraries of glibc that nothing else had loaded; for good.
 * Never: looks for the driver; keeps a library of the program's.
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

/* True: the driver was missed, and nothing has been loaded since. False: the loader must be asked,
   as always where it is not glibc's. Any thread; some 2 ns. */
bool loads_none(void);

/* The loader's number of loads, plus 1; 0: it does not say. */
uint64_t loads_count(void);

/* The driver was missed when the loader's number was `count`; `again`: for the same number as the
   last time. After some of these in a row a mark is loaded. One thread at a time. */
void loads_missed(uint64_t count, bool again);

#endif
