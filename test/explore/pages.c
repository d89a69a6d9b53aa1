/* Memory as it was when the world had been made, before every run. All of it is made read-only
 * once; the first write to a page keeps a copy of it, and lets it be written from then on. So a run
 * costs a copy of the few dozen pages that runs ever touch, some microseconds, wherever they are.
 * What the library allocates comes from one stretch a rank (--wrap), whose end is set back
 * likewise: where something lies follows from what that rank has done, and no word of one is now
 * and then one of another's. */
#include "explore/engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HOT_MOST = 8192, REGIONS = 16 };
#define HEAP_BYTES ((size_t)16 << 20)   /* of a rank */

static struct { char *at; size_t bytes; } region[REGIONS];
static int regions;
static struct { char *at, *copy; } hot[HOT_MOST];
static size_t hots;
static char *copies, *heaps;
static size_t heap_used[ACTORS_MOST], heap_frozen[ACTORS_MOST];

static void pages_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    for (int i = 0; i < regions; i++)
        if (page >= region[i].at && page < region[i].at + region[i].bytes && hots < HOT_MOST) {
            for (size_t k = 0; k < hots; k++)
                if (hot[k].at == page)
                    goto bad;
            hot[hots].at = page;
            hot[hots].copy = copies + hots * PAGE;
            memcpy(hot[hots].copy, page, PAGE);
            if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
                goto bad;
            hots++;
            return;
        }
bad:
    fprintf(stderr, "explore: a fault at %p\n", info->si_addr);
    abort();                           /* which says by which schedule */
}

void pages_open(void)
{
    static char stack[65536];
    stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_sigaction = pages_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    copies = mmap(NULL, (size_t)HOT_MOST * PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copies == MAP_FAILED)
        abort();
}

void pages_watch(void *at, size_t bytes)
{
    if (regions == REGIONS)
        abort();
    region[regions].at = at;
    region[regions++].bytes = (bytes + PAGE - 1) / PAGE * PAGE;
}

void pages_freeze(void)
{
    pages_watch(heaps, ACTORS_MOST * HEAP_BYTES);
    memcpy(heap_frozen, heap_used, sizeof heap_used);
    for (int i = 0; i < regions; i++)
        if (mprotect(region[i].at, region[i].bytes, PROT_READ) != 0)
            abort();
}

void pages_back(void)
{
    for (size_t i = 0; i < hots; i++)
        memcpy(hot[i].at, hot[i].copy, PAGE);
    memcpy(heap_used, heap_frozen, sizeof heap_used);
}

size_t pages_hot(void) { return hots; }

/* ---- the library's heap ---- */

static void *take(size_t bytes, size_t align)
{
    int rank = engine.running ? engine.actor[engine.now_on].rank : world_making;
    if (!heaps) {
        heaps = mmap(NULL, ACTORS_MOST * HEAP_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (heaps == MAP_FAILED)
            abort();
    }
    char *heap = heaps + (size_t)rank * HEAP_BYTES;
    size_t at = (heap_used[rank] + sizeof(size_t) + align - 1) / align * align;
    if (bytes > HEAP_BYTES || at + bytes > HEAP_BYTES)
        return NULL;
    heap_used[rank] = at + bytes;
    memcpy(heap + at - sizeof bytes, &bytes, sizeof bytes);
    return heap + at;
}

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return take(bytes, 16); }

void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    void *at = take(n * bytes, 16);
    if (at && engine.running)
        memset(at, 0, n * bytes);      /* before the freeze all of it is new */
    return at;
}

int __wrap_posix_memalign(void **at, size_t align, size_t bytes);
int __wrap_posix_memalign(void **at, size_t align, size_t bytes)
{
    *at = take(bytes, align);
    return *at ? 0 : 12;
}

void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    size_t had = 0;
    void *at = take(bytes, 16);
    if (old)
        memcpy(&had, (char *)old - sizeof had, sizeof had);
    if (at && old)
        memcpy(at, old, had < bytes ? had : bytes);
    return at;
}

void __wrap_free(void *at);
void __wrap_free(void *at) { (void)at; }
