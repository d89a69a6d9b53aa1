/* Job: which addresses are this process's own ordinary memory for as long as it lives, whatever is
 *      loaded into it later: the program's variables, its heap, the stack of its first thread.
 * Owns: nothing.
 * Never: says what memory beside these is; it may be ordinary, too. */
#ifndef TUTTI_OS_HOST_MEMORY_H
#define TUTTI_OS_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/* from its start; beyond lie mappings, whose address alone then says so */
#define GROUND_HEAP_MOST (UINT64_C(1) << 40)

/* a range that is not known is empty */
struct host_memory { uintptr_t data_from, data_to, heap_from, stack_from, stack_to; };

void host_memory_find(struct host_memory *ground);

static inline bool host_memory_fixed(const struct host_memory *ground, uintptr_t at)
{
    return at - ground->stack_from < ground->stack_to - ground->stack_from
        || at - ground->data_from < ground->data_to - ground->data_from;
}

/* The heap ends where the system says that it ends by now: a call, so what lies far from where it
 * begins is not worth it. */
static inline bool host_memory_heap(const struct host_memory *ground, uintptr_t at)
{
    uintptr_t offset = at - ground->heap_from;
    return offset < GROUND_HEAP_MOST && ground->heap_from
        && offset < (uintptr_t)sbrk(0) - ground->heap_from;
}

/* Some 2 ns: for those who would otherwise ask the loader or a driver. */
static inline bool host_memory_has(const struct host_memory *ground, const void *at)
{
    return host_memory_fixed(ground, (uintptr_t)at) || host_memory_heap(ground, (uintptr_t)at);
}

#endif
