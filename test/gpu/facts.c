/* What a driver does where documents are silent: a line for each fact, for whoever compares the
 * machine's driver with the tests' one and with what src/gpu believes. Nothing is judged. What a
 * driver refuses, lacks or dies of is a line, too, so this never fails.
 *
 * <build>/test/gpu_facts: the driver that LD_LIBRARY_PATH chooses, device 0. Each group of facts is
 * a process of its own, or two, with a quarter of a minute. */
#include "facts.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LIFE_S = 15, MEBI = 1 << 20, STATUS_DIED = 128 };

CUcontext facts_context;
size_t facts_grain;

void fact(const char *format, ...)
{
    char line[400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "%s\n", line);
}

const char *facts_name(CUresult error)
{
    static _Thread_local char words[4][80];
    static _Thread_local int next;
    const char *name = NULL;
    char *to = words[next = (next + 1) % 4];
    if (error == 0)
        return "0";
    if (!cu.cuGetErrorName || cu.cuGetErrorName(error, &name) != 0 || !name)
        name = "?";
    snprintf(to, sizeof words[0], "%d %s", error, name);
    return to;
}

void *facts_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        fact("%s: the driver has no such function", name);
    return found;
}

double facts_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool facts_begin(void)
{
    CUmemAllocationProp prop = facts_prop();
    signal(SIGSEGV, SIG_DFL);
    alarm(LIFE_S);
    if (!case_cuda() || cu.cuCtxGetCurrent(&facts_context) != 0)
        return false;
    if (cu.cuMemGetAllocationGranularity(&facts_grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM))
        facts_grain = 2 * MEBI;
    return true;
}

CUmemAllocationProp facts_prop(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
}

CUresult facts_map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUresult error = cu.cuMemMap(at, bytes, 0, handle, 0);
    return error ? error : cu.cuMemSetAccess(at, bytes, &access, 1);
}

size_t facts_free_mib(void)
{
    typedef CUresult get_info(size_t *, size_t *);
    static get_info *info;
    size_t free_now = 0, all = 0;
    void *found = info ? NULL : facts_symbol("cuMemGetInfo_v2");
    if (found)
        memcpy(&info, &found, sizeof found);
    return info && info(&free_now, &all) == 0 ? free_now / MEBI : 0;
}

/* One attribute of a pointer, as text: relative to `base` where it is an address. */
static const char *attribute(char to[48], int which, CUdeviceptr at, CUdeviceptr base)
{
    unsigned long long value = 0;
    CUresult error = cu.cuPointerGetAttribute(&value, which, at);
    if (error)
        snprintf(to, 48, "(%d)", error);
    else if (base && value >= base && value - base < (1ull << 32))
        snprintf(to, 48, "base+%#llx", value - base);
    else
        snprintf(to, 48, "%#llx", value);
    return to;
}

enum { MAPPING_SIZE = 18, MAPPING_BASE = 19, MEMORY_BLOCK_ID = 20 };      /* CUDA 12.8 and newer */

void facts_pointer(const char *what, CUdeviceptr at, CUdeviceptr base)
{
    char t[8][48];
    CUdeviceptr start = 0;
    size_t bytes = 0;
    CUresult error = cu.cuMemGetAddressRange_v2(&start, &bytes, at);
    fact("%s: RANGE_START %s RANGE_SIZE %s BUFFER_ID %s MAPPED %s LEGACY_IPC %s MAPPING_BASE %s "
         "MAPPING_SIZE %s MEMORY_BLOCK_ID %s; cuMemGetAddressRange %s base%+lld, %#zx bytes",
         what, attribute(t[0], CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at, base),
         attribute(t[1], CU_POINTER_ATTRIBUTE_RANGE_SIZE, at, 0),
         attribute(t[2], CU_POINTER_ATTRIBUTE_BUFFER_ID, at, 0),
         attribute(t[3], CU_POINTER_ATTRIBUTE_MAPPED, at, 0),
         attribute(t[4], CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at, 0),
         attribute(t[5], MAPPING_BASE, at, base), attribute(t[6], MAPPING_SIZE, at, 0),
         attribute(t[7], MEMORY_BLOCK_ID, at, 0), facts_name(error),
         error ? 0 : (long long)(start - base), bytes);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct facts_group groups[] = {
    { "memory of cuMemCreate in a reservation", facts_vmm, NULL },
    { "memory of cuMemCreate that is released while a descriptor is open", facts_vmm_freed, NULL },
    { "memory of cuMemAlloc, lent", facts_lend, facts_borrow },
    { "the owner frees what is open", facts_goes, facts_stays },
    { "the owner is killed while it is read", facts_killed, facts_reads },
    { "the owner exits while it is read", facts_exits, facts_reads },
    { "memory of cuMemCreate, lent by a descriptor", facts_descriptor, facts_import },
    { "another thread's calls while a stream is captured", facts_capture, NULL },
    { "a blocking stream is captured", facts_capture_null, NULL },
    { "calls while a stream of the context waits for a word of the host", facts_held, NULL },
    { "a thread without a context", facts_thread, NULL },
    { "memory of a context that is not the primary one", facts_foreign_context, NULL },
    { "a copy past the mapped part of a reservation", facts_past_end, NULL },
};
enum { GROUPS = sizeof groups / sizeof groups[0] };

static void show(const char *name, int first, int second)
{
    printf("== %s\n%s", name, case_stderr());
    if (first || second)
        printf("   (ended with %d, %d%s)\n", first, second,
               first == STATUS_DIED + SIGALRM || second == STATUS_DIED + SIGALRM ? ": slow" : "");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *const none[] = { NULL };
    setenv("TUTTI_TEST_CUDA", "real", 1);            /* no hooks: any driver will do */
    for (const struct facts_group *g = groups; g < groups + GROUPS; g++) {
        int second = 0, first;
        if (argc > 1 && !strstr(g->name, argv[1]))
            continue;
        first = g->other ? case_pair(g->one, g->other, none, &second) : case_run(g->one, none);
        show(g->name, first, second);
    }
    return 0;
}
