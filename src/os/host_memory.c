/* The kernel sets the three ranges: a program's data stays where it was loaded, the heap grows and
 * shrinks at its end only, and a stack keeps the pages it has. No other memory is ever placed
 * there, so they are found once; a forked child has them at the same addresses. Stacks of other
 * threads are mappings that come and go: they are left out.
 * Cost: three looks into the table of mappings, once. */
#include "os/host_memory.h"

#include "os/maps.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>

/* The program's headers: their real address minus the address in them is the load offset. */
static void find_data(struct host_memory *ground)
{
    /* an address, by the kernel's word */
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)(uintptr_t)getauxval(AT_PHDR);
    unsigned long n = getauxval(AT_PHNUM);
    uintptr_t moved = 0;
    bool placed = false;
    for (unsigned long i = 0; headers && i < n; i++)
        if (headers[i].p_type == PT_PHDR) {
            moved = (uintptr_t)headers - headers[i].p_vaddr;
            placed = true;
        }
    for (unsigned long i = 0; placed && i < n; i++)
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W)) {
            ground->data_from = moved + headers[i].p_vaddr;
            ground->data_to = ground->data_from + headers[i].p_memsz;
        }
}

static bool find(uintptr_t at, const char *name, struct mapping *m)
{
    return maps_at(at, m) == 0 && m->from <= at && strcmp(m->name, name) == 0;
}

void host_memory_find(struct host_memory *ground)
{
    struct mapping m;
    *ground = (struct host_memory){ 0 };
    find_data(ground);
    if (&__curbrk && find((uintptr_t)__curbrk - 1, "[heap]", &m))
        ground->heap_from = m.from;
    /* 16 bytes that the kernel puts there */
    if (find((uintptr_t)getauxval(AT_RANDOM), "[stack]", &m)) {
        ground->stack_from = m.from;
        ground->stack_to = m.to;
    }
}
