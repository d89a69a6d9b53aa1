/* ctest: timeout=180 */
/* CUDA's driver as it is found, or not found, and what it says of pointers. Each case is a process,
 * since both are for good; those that need another library, or none, are this program begun anew
 * with the case's name. */
#include "case_device.h"
#include "driver_probe.h"
#include "device_fixture.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_loaded(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

/* ---- nobody has it --------------------------------------------------------------------------- */

static int host_only(void)
{
    struct driver_pointer p;
    int local = 0;
    void *heap = malloc(1000),
         *mapped = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const void *pointers[] = {
        &local, heap, mapped, words, "text", NULL, (void *)(uintptr_t)-1, (void *)0x7f0000000000
    };
    for (int round = 0; round < 100; round++)
        for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
            OK(asks(pointers[i], &p));
            IS(p.memory, DRIVER_HOST);
            IS(p.device, -1);
        }
    IS(driver_loaded(), 0);
    /* Another library comes and goes: the loader's count changes, the answer does not. */
    void *other = dlopen("libm.so.6", RTLD_NOW);
    OK(asks(&local, &p));
    IS(p.memory, DRIVER_HOST);
    if (other)
        dlclose(other);
    IS(is_loaded(), 0);
    free(heap);
    return 0;
}

static void host_programs_never_load_it(void **state)
{
    (void)state;
    PASSES(host_only, NULL);
}

/* ---- it is there ----------------------------------------------------------------------------- */

static int opened(void)
{
    const struct driver *first = NULL, *again = NULL;
    struct driver_device d;
    IS(is_loaded(), 0);
    OK(opens(&first));
    OK(opens(&again));
    YES(first && first == again);
    IS(first->devices, 2);
    IS(first->version, 12080);
    OK(driver_device(first, 1, &d, NULL));
    IS(strcmp(d.name, "Fake GPU A"), 0);
    IS(strcmp(d.bus, "0000:10:00.0"), 0);
    IS(d.uuid.bytes[15], 0);
    IS(d.major * 10 + d.minor, 90);
    struct text why = TEXT_IN(words);
    text_clear(&why);
    IS(driver_device(first, 2, &d, &why), -ENODEV);
    SAYS("cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal");
    return 0;
}

static pthread_barrier_t barrier;

static void *opens_in_thread(void *arg)
{
    const struct driver **driver = arg;
    pthread_barrier_wait(&barrier);
    return driver_open(driver, NULL) == 0 ? arg : NULL;
}

static int opened_by_many(void)
{
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    const struct driver *driver[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&thread[i], NULL, opens_in_thread, &driver[i]));
    for (int i = 0; i < THREADS; i++) {
        void *ok;
        pthread_join(thread[i], &ok);
        YES(ok);
        YES(driver[i] == driver[0]);
    }
    YES(case_cuda());
    IS(fake.fakeCalls(), 3 + 3);        /* cuInit, version, count: once; and what case_cuda does */
    return 0;
}

static int pointers(void)
{
    struct driver_pointer p;
    CUcontext first, second;
    CUdeviceptr far;
    const struct driver *driver;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuCtxGetCurrent(&first));
    OK(asks((void *)(uintptr_t)(dev + 100), &p));
    IS(p.memory, DRIVER_DEVICE);
    IS(p.device, 0);
    YES(p.context == first);
    IS(p.address, dev + 100);
    IS(p.base, dev);
    IS(p.bytes, BYTES);
    YES(p.ipc && !p.descriptor && p.buffer);
    uint64_t buffer = p.buffer;
    OK(asks((void *)(uintptr_t)dev2, &p));
    YES(p.buffer != buffer);
    OK(asks(host + 10, &p));
    IS(p.memory, DRIVER_PINNED);
    YES(p.address && p.address != (uintptr_t)host + 10);
    YES(!p.ipc);
    OK(asks(&p, &p));
    IS(p.memory, DRIVER_HOST);
    IS(p.device, -1);
    OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
    OK(cu.cuCtxSetCurrent(second));
    OK(cu.cuMemAlloc_v2(&far, 100));
    OK(cu.cuCtxSetCurrent(NULL));                    /* the question needs no context */
    OK(asks((void *)(uintptr_t)(far + 99), &p));
    IS(p.memory, DRIVER_DEVICE);
    IS(p.device, 1);
    YES(p.context == second);
    OK(asks((void *)(uintptr_t)(far + 100), &p));    /* nobody's: no memory is there */
    IS(p.memory, DRIVER_HOST);
    OK(opens(&driver));                              /* the same library, whoever loaded it */
    IS(driver->devices, 2);
    OK(cu.cuCtxSetCurrent(first));
    return fixture_end();
}

static int created(void)
{
    struct driver_pointer p;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUdeviceptr at;
    size_t grain = 2 << 20;
    YES(case_cuda());
    OK(cu.cuMemCreate(&h, grain, &prop, 0));
    OK(cu.cuMemAddressReserve(&at, grain, 0, 0, 0));
    OK(cu.cuMemMap(at, grain, 0, h, 0));
    OK(asks((void *)(uintptr_t)(at + 5), &p));
    IS(p.memory, DRIVER_DEVICE);
    YES(p.context == NULL && p.descriptor && !p.ipc);
    IS(p.base, at);
    return 0;
}

/* Somebody has loaded it and not begun: we do not begin it by asking. */
static int loaded_only(void)
{
    struct driver_pointer p;
    int local = 0;
    OK(asks(&local, &p));
    IS(driver_loaded(), 0);
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    YES(library);
    IS(driver_loaded(), 1);
    OK(asks(&local, &p));
    IS(p.memory, DRIVER_HOST);
    dlclose(library);                                /* we hold it: what we have looked up stays */
    OK(asks(&local, &p));
    YES(case_cuda());
    IS(fake.fakeCalls(), 2 + 3);                     /* ours were refused: not begun */
    return 0;
}

static int pointer_error(void)
{
    struct driver_pointer p;
    const char *want = getenv("WANT");
    YES(case_cuda());
    int error = asks(words, &p);
    IS(p.memory, DRIVER_HOST);
    if (!*want)
        return error;
    IS(error, -EIO);
    SAYS(want);
    return 0;
}

static void it_answers(void **state)
{
    (void)state;
    PASSES(opened, "FAKE_CUDA_DEVICES=2", "CUDA_VISIBLE_DEVICES=1,0", NULL);
    PASSES(opened_by_many, NULL);
    PASSES(pointers, "FAKE_CUDA_DEVICES=2", NULL);
    PASSES(created, NULL);
    PASSES(loaded_only, NULL);
    PASSES(pointer_error, "FAKE_CUDA_FAIL=cuPointerGetAttributes:1:1", "WANT=", NULL);
    PASSES(pointer_error, "FAKE_CUDA_FAIL=cuPointerGetAttributes:1:3", "WANT=", NULL);
    PASSES(pointer_error, "FAKE_CUDA_FAIL=cuPointerGetAttributes:1:4", "WANT=", NULL);
    PASSES(pointer_error, "FAKE_CUDA_FAIL=cuPointerGetAttributes:1:34", "WANT=", NULL);
    PASSES(pointer_error, "FAKE_CUDA_FAIL=cuPointerGetAttributes:1:999",
           "WANT=cuPointerGetAttributes: CUDA_ERROR_UNKNOWN (999): unknown error", NULL);
}

/* ---- it is not there, or no good ------------------------------------------------------------- */

#define REFUSED(error, say, say2, ...) \
    do { \
        char result_[32]; \
        snprintf(result_, sizeof result_, "RESULT=%d", error); \
        PASSES(refused, result_, "SAY=" say, "SAY2=" say2, __VA_ARGS__); \
    } while (0)

static void says_why_not(void **state)
{
    (void)state;
    REFUSED(ENODEV, "no GPU: stub library", "not a driver", "FAKE_CUDA_STUB=1", NULL);
    REFUSED(ENODEV, "no GPU: stub library", "", "FAKE_CUDA_FAIL=cuInit:*:34", NULL);
    REFUSED(ENODEV, "no GPU: ", "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected",
            "FAKE_CUDA_DEVICES=0", NULL);
    REFUSED(ENODEV, "no GPU: ", "CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES=", NULL);
    REFUSED(EIO, "cuInit: CUDA_ERROR_UNKNOWN (999): unknown error", "",
            "FAKE_CUDA_FAIL=cuInit:1:999", NULL);
    REFUSED(EIO, "cuInit: CUDA_ERROR_OPERATING_SYSTEM (304)", "", "FAKE_CUDA_FAIL=cuInit:1:304",
            NULL);
    REFUSED(ENODEV, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "",
            "FAKE_CUDA_FAIL=cuInit:1:803", NULL);
    REFUSED(EBUSY, "cuInit: CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "", "FAKE_CUDA_FAIL=cuInit:1:46",
            NULL);
    REFUSED(EIO, "cuInit: CUDA's error (888)", "", "FAKE_CUDA_FAIL=cuInit:1:888", NULL);
    REFUSED(EIO, "cuDriverGetVersion: CUDA_ERROR_UNKNOWN (999)", "",
            "FAKE_CUDA_FAIL=cuDriverGetVersion:1:999", NULL);
    REFUSED(EIO, "cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999)", "",
            "FAKE_CUDA_FAIL=cuDeviceGetCount:1:999", NULL);
}

/* Begins this program anew with another folder in LD_LIBRARY_PATH, to do what `name` says. */
static int anew(const char *folder, const char *name)
{
    setenv("LD_LIBRARY_PATH", folder, 1);
    char *argv[] = { (char[]){ "driver_test" }, strdup(name), NULL };
    execv("/proc/self/exe", argv);
    return 1;
}

static char scratch[64];

static int with_old(void) { return anew(TEST_BUILD "/fake_cuda_old", "refused"); }
static int with_old_pointers(void) { return anew(TEST_BUILD "/fake_cuda_old", "old_pointers"); }
static int with_scratch(void) { return anew(scratch, "refused"); }

/* One function is missing, and it is not this one: pointers are told all the same, to a program
 * that uses CUDA without us. */
static int old_pointers(void)
{
    struct driver_pointer p;
    CUcontext context;
    CUdeviceptr at;
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
    YES(library && !dlsym(library, "cuDeviceGetUuid_v2"));
#define FETCH(symbol) \
    found = dlsym(library, #symbol); \
    YES(found); \
    memcpy(&cu.symbol, &found, sizeof found)
    FETCH(cuInit);
    FETCH(cuDevicePrimaryCtxRetain);
    FETCH(cuCtxSetCurrent);
    FETCH(cuMemAlloc_v2);
    OK(cu.cuInit(0));
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxSetCurrent(context));
    OK(cu.cuMemAlloc_v2(&at, 100));
    OK(asks((void *)(uintptr_t)at, &p));
    IS(p.memory, DRIVER_DEVICE);
    OK(asks(words, &p));
    IS(p.memory, DRIVER_HOST);
    return 0;
}

/* As the empty folder shows, if a real driver is installed. */
static bool a_driver_is_installed(void)
{
    return case_run(with_scratch,
                    (const char *const[]){ "RESULT=19",
                                           "SAY=no CUDA driver: there is no libcuda.so.1",
                                           "SAY2=", NULL })
        != 0;
}

static void needs_the_whole_library(void **state)
{
    (void)state;
    char path[128];
    PASSES(with_old, "RESULT=38", "SAY=the CUDA driver is too old: it has no cuDeviceGetUuid_v2",
           "SAY2=R470", NULL);
    PASSES(with_old_pointers, NULL);
    assert_non_null(mkdtemp(scratch_name(scratch, sizeof scratch, "driver")));
    bool installed = a_driver_is_installed();
    char first[512];
    snprintf(first, sizeof first, "%s", case_stderr());
    snprintf(path, sizeof path, "%s/libcuda.so.1", scratch);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is not a library, but it has the name of one, and is longer than the header of an "
          "ELF file would be\n",
          file);
    fclose(file);
    PASSES(with_scratch, "RESULT=19",
           "SAY=no CUDA driver: libcuda.so.1 cannot be loaded:", "SAY2=invalid ELF header", NULL);
    unlink(path);
    rmdir(scratch);
    void *real = installed ? dlopen("/usr/lib/x86_64-linux-gnu/libcuda.so.1", RTLD_LAZY) : NULL;
    if (installed && real)
        print_message("a real driver is installed: nothing can be said of a machine without one\n");
    else if (installed)
        fail_msg("%s", first);
}

static int count_down;

static void *all_but_one(void *library, const char *symbol)
{
    (void)library;
    (void)symbol;
    return count_down-- == 0 ? NULL : &count_down;
}

static void each_symbol_is_needed(void **state)
{
    static const char *const names[] = {
#define NAME_(symbol, parameters) #symbol,
        CUDA_SYMBOLS(NAME_)
    };
    static const char *const later[] = {
        CUDA_LATER_SYMBOLS(NAME_)
    };
    enum { SYMBOLS = sizeof names / sizeof names[0] };
    struct cuda_api api;
    (void)state;
    enum { LATER = sizeof later / sizeof later[0] };
    assert_int_equal(sizeof api, (SYMBOLS + LATER) * sizeof(void *));
    for (int i = 0; i < SYMBOLS; i++) {
        count_down = i;
        const char *missing = driver_bind(&api, all_but_one, NULL);
        assert_non_null(missing);
        assert_string_equal(missing, names[i]);
    }
    count_down = SYMBOLS;
    assert_null(driver_bind(&api, all_but_one, NULL));
    static const unsigned char nothing[sizeof(void *)];
    for (size_t i = 0; i < SYMBOLS; i++)
        assert_memory_not_equal((unsigned char *)&api + i * sizeof(void *), nothing,
                                sizeof nothing);
}

static void errors_have_numbers(void **state)
{
    (void)state;
    assert_int_equal(driver_error(CUDA_SUCCESS), 0);
    assert_int_equal(driver_error(CUDA_ERROR_OUT_OF_MEMORY), -ENOMEM);
    assert_int_equal(driver_error(CUDA_ERROR_ALREADY_MAPPED), -EEXIST);
    assert_int_equal(driver_error(CUDA_ERROR_ILLEGAL_ADDRESS), -EIO);
    assert_int_equal(driver_error(-5), -EIO);
    for (int e = 1; e < 1000; e++)
        assert_true(driver_error(e) < 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return !strcmp(argv[1], "old_pointers") ? old_pointers() : refused();
    if (case_needs_fake("counts its calls and fails at a chosen one"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_programs_never_load_it),
        cmocka_unit_test(it_answers),
        cmocka_unit_test(says_why_not),
        cmocka_unit_test(needs_the_whole_library),
        cmocka_unit_test(each_symbol_is_needed),
        cmocka_unit_test(errors_have_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
