/* Job: find the addresses that are ordinary memory for the process's whole life: the program's
 *      variables, its heap, the stack of its first thread.
 * Owns: nothing.
 * Never: says anything about other memory; it may be ordinary, too. */
#ifndef TUTTI_OS_HOST_MEMORY_H
#define TUTTI_OS_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* most bytes of the heap; an address beyond is in a mapping */
#define GROUND_HEAP_MOST (UINT64_C(1) << 40)

/* a range that is not known is empty */
struct host_memory { uintptr_t data_from, data_to, heap_from, stack_from, stack_to; };

void host_memory_find(struct host_memory *ground);

static inline bool host_memory_fixed(const struct host_memory *ground, uintptr_t at)
{
    return at - ground->stack_from < ground->stack_to - ground->stack_from
        || at - ground->data_from < ground->data_to - ground->data_from;
}

/* glibc's note of where the heap ends. With other C libraries its address is NULL, and the heap is
 * not known. sbrk(0) reads no more, but a library that watches memory (UCX, in an MPI) replaces
 * sbrk and asks the system each time, 0.2 us. It keeps the note, as all must who move the end. */
extern char *__curbrk __attribute__((weak));

/* The heap's end is looked up, but only for an address within GROUND_HEAP_MOST. */
static inline bool host_memory_heap(const struct host_memory *ground, uintptr_t at)
{
    uintptr_t offset = at - ground->heap_from;
    return offset < GROUND_HEAP_MOST && ground->heap_from
        && offset < (uintptr_t)__curbrk - ground->heap_from;
}

/* True: host memory for sure. Some 2 ns, where the loader or a driver would cost more. */
static inline bool host_memory_has(const struct host_memory *ground, const void *at)
{
    return host_memory_fixed(ground, (uintptr_t)at) || host_memory_heap(ground, (uintptr_t)at);
}

#endif
