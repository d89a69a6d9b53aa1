/* ctest: timeout=300 labels=tsan */
/* Memory that becomes part of the arena where it is, and private again: no byte changes,
 * neighbours are not touched, what is not ordinary memory is refused, and a failure half-way
 * leaves all as it was. */
#include "arena/registered.h"

#include "os/maps.h"
#include "os/memory.h"
#include "support/skip.h"
#include "support/team.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE memory_page()
#define SPAN (UINT64_C(256) << 20)

static char why_room[512];
static struct text why;
static struct arena a;
static struct span *span;
static struct registered *registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    if (arena_create(&a, &(struct arena_plan){ .size = 1, .span_bytes = SPAN }, &why) != 0)
        return -1;
    span = span_open(arena_span(&a, 0), SPAN);
    registered = registered_open(span, &a, &lock);
    return registered ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    registered_close(registered);
    span_close(span);
    arena_detach(&a);
    return 0;
}

static uint64_t blocks(void)
{
    struct stat st;
    assert_int_equal(fstat(a.fd, &st), 0);
    return (uint64_t)st.st_blocks;
}

static int in(void *at, size_t bytes)
{
    text_clear(&why);
    why.used = 0;
    return registered_in(registered, at, bytes, &why);
}

static int out(void *at)
{
    text_clear(&why);
    why.used = 0;
    return registered_out(registered, at, &why);
}

static void refused(void *at, size_t bytes, const char *words)
{
    int r = in(at, bytes);
    if (r != -EINVAL || !strstr(why_room, words))
        fail_msg("%d (%s), expected -EINVAL with '%s'", r, why_room, words);
    assert_int_equal(out(at), -EINVAL);
}

static char *fresh(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

/* The same bytes over and over, by a period that is prime to pages and chunks. */
enum { PERIOD = 65521 };
static char tile[PERIOD];

static unsigned char given(size_t i) { return (unsigned char)tile[i % PERIOD]; }

static void fill(char *at, size_t bytes)
{
    for (size_t i = 0; i < PERIOD; i++)
        tile[i] = (char)(i * 13 + i / 251 + 1);
    for (size_t i = 0; i < bytes; i += PERIOD)
        memcpy(at + i, tile, bytes - i < PERIOD ? bytes - i : PERIOD);
}

static bool as_filled(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += PERIOD)
        if (memcmp(at + i, tile, bytes - i < PERIOD ? bytes - i : PERIOD) != 0)
            return false;
    return true;
}

static bool shared(const void *at)
{
    struct mapping m;
    assert_int_equal(maps_at((uintptr_t)at, &m), 0);
    return m.from <= (uintptr_t)at && m.shared;
}

/* The buffer inside a larger one, with head and tail that share pages with strangers. */
static void round_trip(char *whole, size_t all, size_t head, size_t bytes)
{
    uint64_t before = blocks(), at = 0;
    size_t lo = 0, hi = 0;
    fill(whole, all);
    assert_int_equal(in(whole + head, bytes), 0);
    assert_true(as_filled(whole, all));
    uintptr_t from = (uintptr_t)(whole + head), first = (from + PAGE - 1) / PAGE * PAGE,
              last = (from + bytes) / PAGE * PAGE;
    if (first < last) {
        assert_true(registered_find(registered, whole + head, bytes, &at, &lo, &hi));
        assert_int_equal(lo, first - from);
        assert_int_equal(hi, last - from);
        assert_true(memcmp(a.base + at, whole + head + lo, hi - lo) == 0);
        a.base[at] = 99;            /* a peer writes, the caller sees it; and the other way round */
        assert_int_equal(whole[head + lo], 99);
        whole[head + hi - 1] = 77;
        assert_int_equal(a.base[at + (hi - lo) - 1], 77);
        whole[head + lo] = (char)given(head + lo);
        whole[head + hi - 1] = (char)given(head + hi - 1);
        assert_true(shared((void *)first) && blocks() >= before + (last - first) / 512);
    } else
        assert_false(registered_find(registered, whole + head, bytes, &at, &lo, &hi));
    if (head % PAGE)
        assert_false(shared(whole + head - 1));
    assert_int_equal(out(whole + head), 0);
    assert_false(registered_find(registered, whole + head, bytes, &at, &lo, &hi));
    assert_true(as_filled(whole, all));
    assert_false(shared(whole + head));
    assert_int_equal(blocks(), before);
    assert_int_equal(out(whole + head), -EINVAL);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const size_t heads[] = { 0, 1, 16, 4095, 4096 },
                        sizes[] = { 1, 100, 4095, 4096, 4097, 8191, 8192, 100000 };
    size_t all = ADOPT_CHUNK + 5 * PAGE;
    char *whole = fresh(all);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            round_trip(whole, 150000, heads[i], sizes[k]);
    round_trip(whole, all, 0, ADOPT_CHUNK);
    round_trip(whole, all, 4096, ADOPT_CHUNK + 1);
    round_trip(whole, all, 16, ADOPT_CHUNK + 2 * PAGE);
    munmap(whole, all);
}

/* What an allocator gave, its neighbours on the same pages in use. */
static void test_allocated(void **state)
{
    (void)state;
    size_t bytes = 300000;
    char *small[3], *large = malloc(3 * bytes);
    for (int i = 0; i < 3; i++) {
        small[i] = malloc(20000);
        memset(small[i], i, 20000);
    }
    round_trip(large, 3 * bytes, bytes + 13, bytes);
    if (!team_sanitized()) {   /* theirs come from one great mapping with its own books behind it */
        fill(small[1], 20000);
        assert_int_equal(in(small[1], 20000), 0);
        for (size_t k = 0; k < 20000; k++)
            assert_true(small[0][k] == 0 && small[2][k] == 2);
        assert_true(as_filled(small[1], 20000));
        memset(small[1], 5, 20000);
        assert_int_equal(out(small[1]), 0);
        for (size_t k = 0; k < 20000; k++)
            assert_true(small[0][k] == 0 && small[1][k] == 5 && small[2][k] == 2);
    }
    for (int i = 0; i < 3; i++)
        free(small[i]);
    free(large);
}

static int mappings(void)
{
    struct mapping m;
    int n = 0;
    for (uintptr_t at = 0; maps_at(at, &m) == 0; at = m.to)
        n++;
    return n;
}

/* Some 100 MiB: many chunks, which become one mapping; and one again on the way back. */
static void test_huge(void **state)
{
    (void)state;
    size_t bytes = (size_t)(team_sanitized() ? 20 : 120) << 20;
    char *whole = fresh(bytes + 2 * PAGE);
    int before = mappings();
    fill(whole, bytes + 2 * PAGE);
    assert_int_equal(in(whole + 8, bytes + PAGE), 0);
    int during = mappings();
    /* the range is cut out of its mapping; and where the kernel makes huge pages only by an advice,
       which stays, that has two ends in the arena's */
    int ends = memory_collapses() ? 0 : 2;
    if (during > before + ends + 2)
        fail_msg("%d mappings, %d before, and at most %d more", during, before, ends + 2);
    assert_true(as_filled(whole, bytes + 2 * PAGE));
    assert_int_equal(out(whole + 8), 0);
    assert_true(mappings() <= before + ends);
    assert_true(as_filled(whole, bytes + 2 * PAGE));
    munmap(whole, bytes + 2 * PAGE);
}

static char in_data[3 * 4096] = { 1 };
static const char in_text[3 * 4096] = { 1 };

static void *on_a_thread(void *arg)
{
    char local[20000];
    (void)arg;
    memset(local, 1, sizeof local);
    return (void *)(intptr_t)(in(local, sizeof local) == -EINVAL && strstr(why_room, "stack"));
}

/* /proc tells memory with code from other memory; qemu-user's does not. */
static bool code_is_told(const char *at)
{
    char line[512], mode[5];
    unsigned long from, to;
    bool told = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && from <= (uintptr_t)at
            && (uintptr_t)at < to)
            told = mode[2] == 'x';
    fclose(maps);
    return told;
}

static void test_refusals(void **state)
{
    (void)state;
    char local[20000], name[128];
    memset(local, 1, sizeof local);
    char *one = fresh(16 * PAGE);
    refused(NULL, 100, "NULL");
    refused(one, 0, "0 bytes");
    refused(one, SIZE_MAX, "beyond the end");
    refused(local, sizeof local, "stack");
    refused(in_data, sizeof in_data, "file");
    refused((void *)(uintptr_t)in_text, sizeof in_text, "file");
    refused(arena_span(&a, 0), 8192, "in the arena already");
    refused(a.base + a.bytes - 1, 8192, "in the arena already");

    int fd = mkstemp(scratch_name(name, sizeof name, "registered"));
    assert_true(fd >= 0 && ftruncate(fd, 1 << 16) == 0 && unlink(name) == 0);
    char *file = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    refused(file, 1 << 16, "file");
    munmap(file, 1 << 16);
    file = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    refused(file, 1 << 16, "shared");
    munmap(file, 1 << 16);
    close(fd);
    char *sharing = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    refused(sharing, 1 << 16, "shared");
    munmap(sharing, 1 << 16);
    char *growing = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    if (mprotect(growing, 1 << 16, PROT_READ | PROT_WRITE | PROT_GROWSDOWN) == 0)
        refused(growing, 1 << 16, "stack");
    else                                             /* as qemu-user does */
        print_message("this kernel does not say what grows: not looked at\n");
    munmap(growing, 1 << 16);

    assert_int_equal(mprotect(one + 4 * PAGE, PAGE, PROT_READ), 0);
    refused(one, 16 * PAGE, "readable and writable");
    assert_int_equal(mprotect(one + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    if (code_is_told(one + 4 * PAGE))
        refused(one, 16 * PAGE, "code");
    else
        print_message("this kernel does not say where code is: not looked at\n");
    assert_int_equal(mprotect(one + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);

    fill(one, 16 * PAGE);
    assert_int_equal(in(one + 4 * PAGE, 4 * PAGE), 0);
    refused(one, 16 * PAGE, "registered already");
    refused(one + 5 * PAGE, 10, "registered already");
    refused(one + PAGE, 3 * PAGE + 1, "registered already");
    assert_int_equal(in(one + 8 * PAGE, PAGE), 0);   /* a neighbour is not an overlap */
    assert_int_equal(in(one + 10, 4 * PAGE - 10), 0);
    assert_int_equal(out(one + 4 * PAGE + 1), -EINVAL);
    registered_all_out(registered);
    assert_true(as_filled(one, 16 * PAGE));
    assert_false(shared(one + 8 * PAGE));

    munmap(one + 8 * PAGE, PAGE);
    refused(one, 16 * PAGE, "nothing is mapped");
    assert_true(as_filled(one, 8 * PAGE));
    munmap(one, 16 * PAGE);

    pthread_t thread;
    void *said;
    assert_int_equal(pthread_create(&thread, NULL, on_a_thread, NULL), 0);
    pthread_join(thread, &said);
    assert_non_null(said);
}

/* Less than a page shares nothing, and is remembered. */
static void test_less_than_a_page(void **state)
{
    (void)state;
    uint64_t before = blocks(), at;
    size_t lo, hi;
    char *whole = fresh(2 * PAGE);
    assert_int_equal(in(whole + 100, PAGE), 0);
    assert_int_equal(blocks(), before);
    assert_false(registered_find(registered, whole + 100, PAGE, &at, &lo, &hi));
    refused(whole + 200, 10, "registered already");
    assert_int_equal(out(whole + 100), 0);
    munmap(whole, 2 * PAGE);
}

static void test_most_ranges(void **state)
{
    (void)state;
    char *whole = fresh((size_t)(ADOPT_MOST + 1) * 2 * PAGE);
    uint64_t at, before = blocks();
    size_t lo, hi;
    for (size_t i = 0; i <= ADOPT_MOST; i++)
        whole[i * 2 * PAGE] = (char)i;
    for (size_t i = 0; i < ADOPT_MOST; i++) {
        size_t k = i * 1597 % ADOPT_MOST;            /* not in their order */
        assert_int_equal(in(whole + k * 2 * PAGE, PAGE), 0);
    }
    assert_int_equal(in(whole + (size_t)ADOPT_MOST * 2 * PAGE, PAGE), -ENOSPC);
    assert_non_null(strstr(why_room, "4096"));
    assert_int_equal(blocks(), before + ADOPT_MOST * PAGE / 512);
    for (size_t i = 0; i < ADOPT_MOST; i++) {
        assert_true(registered_find(registered, whole + i * 2 * PAGE + 5, 3, &at, &lo, &hi)
                    && lo == 0 && hi == 3);
        assert_int_equal(a.base[at - 5], (char)i);
    }
    /* Of a buffer over several ranges, the longest stretch. */
    assert_true(registered_find(registered, whole + PAGE / 2, 3 * PAGE, &at, &lo, &hi));
    assert_true(lo == 3 * PAGE / 2 && hi == 5 * PAGE / 2);
    assert_int_equal(out(whole + 2 * PAGE), 0);
    assert_int_equal(in(whole + (size_t)ADOPT_MOST * 2 * PAGE, PAGE), 0);
    registered_all_out(registered);
    assert_int_equal(blocks(), before);
    for (size_t i = 0; i <= ADOPT_MOST; i++)
        assert_true(whole[i * 2 * PAGE] == (char)i
                    && !registered_find(registered, whole + i * 2 * PAGE, 1, &at, &lo, &hi));
    munmap(whole, (size_t)(ADOPT_MOST + 1) * 2 * PAGE);
}

static void test_span_full(void **state)
{
    (void)state;
    int error;
    char *whole = fresh(64 * PAGE);
    fill(whole, 64 * PAGE);
    assert_non_null(span_reserve(span, SPAN - 32 * PAGE, SPAN_CALLER, &error));
    assert_int_equal(in(whole, 64 * PAGE), -ENOSPC);
    assert_non_null(strstr(why_room, "TUTTI_SPAN_BYTES"));
    assert_true(as_filled(whole, 64 * PAGE));
    assert_false(shared(whole));
    assert_int_equal(out(whole), -EINVAL);
    assert_int_equal(in(whole, 32 * PAGE), 0);
    assert_int_equal(out(whole), 0);
    munmap(whole, 64 * PAGE);
}

/* In a child: a system call on one address fails from now on. */
static void fail_at(long call, const void *at, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(uintptr_t)at, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

#define SAY(condition) \
    do { if (!(condition)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
                                     why_room); _exit(1); } } while (0)

static void in_child(void (*body)(char *whole, size_t bytes))
{
    size_t bytes = 3 * (size_t)ADOPT_CHUNK, room = bytes + ADOPT_CHUNK;
    char *first = fresh(room), *whole = first + ADOPT_CHUNK - (uintptr_t)first % ADOPT_CHUNK;
    int status;
    fill(whole, bytes);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(whole, bytes);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    munmap(first, room);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip_because("no seccomp filter can be set here");
    assert_int_equal(status, 0);
}

/* Where in the arena the memory comes to lie when it begins on a multiple of 2 MiB and nothing is
 * there yet. */
static char *place(void)
{
    char *at = arena_span(&a, 0);
    return at + (MEMORY_HUGE_PAGE - (uintptr_t)at % MEMORY_HUGE_PAGE) % MEMORY_HUGE_PAGE;
}

static void gone_back(char *whole, size_t bytes, uint64_t before)
{
    SAY(as_filled(whole, bytes));
    for (size_t at = 0; at < bytes; at += ADOPT_CHUNK)
        SAY(!shared(whole + at));
    SAY(blocks() == before);
    SAY(out(whole) == -EINVAL);
    struct span_piece piece;
    SAY(span_first(span, &piece) && piece.use == SPAN_FREE && piece.bytes == SPAN);
}

/* No pages in the arena for the second chunk. */
static void no_pages(char *whole, size_t bytes)
{
    uint64_t before = blocks();
    fail_at(SYS_madvise, place() + ADOPT_CHUNK, ENOMEM);
    SAY(in(whole, bytes) == -ENOMEM);
    gone_back(whole, bytes, before);
}

/* No mapping for the third. */
static void no_mapping(char *whole, size_t bytes)
{
    uint64_t before = blocks();
    fail_at(SYS_mmap, whole + 2 * (size_t)ADOPT_CHUNK, ENOMEM);
    SAY(in(whole, bytes) == -ENOMEM);
    gone_back(whole, bytes, before);
}

/* No private pages on the way back: what is left stays valid and registered, and comes back when
 * there are some. */
static void no_way_back(char *whole, size_t bytes)
{
    uint64_t at;
    size_t lo, hi;
    SAY(in(whole, bytes) == 0);
    fail_at(SYS_madvise, whole + ADOPT_CHUNK, ENOMEM);
    SAY(out(whole) == -ENOMEM && strstr(why_room, "16777216"));
    SAY(as_filled(whole, bytes));
    SAY(!shared(whole) && shared(whole + ADOPT_CHUNK) && shared(whole + 2 * (size_t)ADOPT_CHUNK));
    SAY(registered_find(registered, whole, bytes, &at, &lo, &hi) && lo == ADOPT_CHUNK
        && hi == bytes);
    SAY(memcmp(a.base + at, whole + lo, hi - lo) == 0);
    SAY(out(whole) == -ENOMEM);
    registered_all_out(registered);
    SAY(as_filled(whole, bytes));
}

/* Neither there nor back. */
static void stuck(char *whole, size_t bytes)
{
    fail_at(SYS_madvise, place() + ADOPT_CHUNK, ENOMEM);
    fail_at(SYS_mmap, whole, ENOMEM);                /* it fails at once: nothing is shared yet */
    SAY(in(whole, bytes) == -ENOMEM);
    SAY(as_filled(whole, bytes) && !shared(whole) && out(whole) == -EINVAL);
}

static void stuck_half_way(char *whole, size_t bytes)
{
    fail_at(SYS_madvise, place() + ADOPT_CHUNK, ENOMEM);
    fail_at(SYS_madvise, whole, ENOMEM);
    SAY(in(whole, bytes) == -ENOMEM && strstr(why_room, "stays so, and valid"));
    SAY(as_filled(whole, bytes) && shared(whole) && !shared(whole + ADOPT_CHUNK));
    SAY(out(whole) == -ENOMEM);
    SAY(as_filled(whole, bytes));
}

static void test_failures(void **state)
{
    (void)state;
    in_child(no_pages);
    in_child(no_mapping);
    in_child(no_way_back);
    in_child(stuck);
    in_child(stuck_half_way);
}

/* Large ranges have huge pages on both sides wherever tutti_alloc has them, at whatever address
 * they begin. */
static void test_huge_pages(void **state)
{
    (void)state;
    const size_t bytes = 24 << 20;
    size_t lo, hi, huge;
    uint64_t at;
    int error;
    char *other = span_reserve(span, bytes, SPAN_STAGING, &error), *first = fresh(bytes + PAGE);
    assert_int_equal(memory_populate_huge(other, bytes, 0, &huge), 0);
    span_give(span, other);
    memory_release(a.fd, a.base, other, bytes);
    if (huge < bytes)
        skip_because("the system gave huge pages for %zu of %zu bytes", huge, bytes);
    for (char *whole = first; whole <= first + PAGE; whole += PAGE) {
        fill(whole, bytes);
        assert_int_equal(in(whole, bytes), 0);
        assert_true(registered_find(registered, whole, bytes, &at, &lo, &hi) && lo == 0
                    && hi == bytes);
        huge = memory_huge(whole, bytes);
        assert_true(huge >= MEMORY_HUGE_PAGE && huge == memory_huge(a.base + at, bytes));
        assert_true(as_filled(whole, bytes));
        assert_int_equal(out(whole), 0);
        assert_true(as_filled(whole, bytes));
    }
    munmap(first, bytes + PAGE);
}

/* Random ranges in and out of one buffer, against a map of its pages; its bytes change all the time
 * and must never differ. */
static void test_model(void **state)
{
    (void)state;
    enum { PAGES = 64, STEPS = 3000 };
    static char mirror[PAGES * 4096];
    char *whole = fresh(sizeof mirror);
    uint64_t seed = team_seed(), at, before = blocks();
    struct { size_t from, bytes; } held[PAGES];
    size_t n = 0, lo, hi;
    for (int step = 0; step < STEPS; step++) {
        size_t from = (size_t)(team_random(&seed) % (sizeof mirror - 1)),
               bytes = 1 + (size_t)(team_random(&seed) % (8 * PAGE));
        bytes = from + bytes > sizeof mirror ? sizeof mirror - from : bytes;
        bool clash = false;
        for (size_t i = 0; i < n; i++)
            clash |= from < held[i].from + held[i].bytes && held[i].from < from + bytes;
        if (n < PAGES && team_random(&seed) % 2) {
            assert_int_equal(in(whole + from, bytes), clash ? -EINVAL : 0);
            if (!clash)
                held[n].from = from, held[n++].bytes = bytes;
        } else if (n > 0) {
            size_t i = (size_t)(team_random(&seed) % n);
            assert_int_equal(out(whole + held[i].from), 0);
            held[i] = held[--n];
        }
        for (int k = 0; k < 20; k++) {
            size_t i = (size_t)(team_random(&seed) % sizeof mirror);
            mirror[i] = whole[i] = (char)team_random(&seed);
        }
        if (n > 0) {                                 /* and by way of the arena */
            size_t i = (size_t)(team_random(&seed) % n);
            if (registered_find(registered, whole + held[i].from, held[i].bytes, &at, &lo, &hi))
                mirror[held[i].from + lo] = a.base[at] = (char)team_random(&seed);
        }
        /* cmocka's own way looks byte by byte */
        assert_true(memcmp(whole, mirror, sizeof mirror) == 0);
    }
    registered_all_out(registered);
    assert_memory_equal(whole, mirror, sizeof mirror);
    assert_int_equal(blocks(), before);
    munmap(whole, sizeof mirror);
}

/* Threads that register their own memory, and look for each other's. */
static char *of_threads[4];

static void *thread_body(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg, lo, hi;
    uint64_t at;
    char said[256];
    for (int i = 0; i < team_many("TUTTI_TEST_LOOPS", 1000, 200); i++) {
        struct text t = TEXT_IN(said);
        char *mine = of_threads[me] + (size_t)(i % 3) * 100;
        memset(of_threads[me], i, 8 * PAGE);
        if (registered_in(registered, mine, 5 * PAGE, &t) != 0
            || !registered_find(registered, mine, 5 * PAGE, &at, &lo, &hi))
            return (void *)"refused";
        if (a.base[at] != (char)i || mine[lo] != (char)i)
            return (void *)"bytes";
        registered_find(registered, of_threads[(me + 1) % 4], 8 * PAGE, &at, &lo, &hi);
        if (registered_out(registered, mine, &t) != 0)
            return (void *)"refused";
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    void *said;
    for (size_t i = 0; i < 4; i++)
        of_threads[i] = fresh(8 * PAGE);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_body, (void *)i), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(thread[i], &said);
        assert_null(said);
        munmap(of_threads[i], 8 * PAGE);
    }
}

/* Two threads unregister the same memory: one does, the other is told. */
static void *race_body(void *at)
{
    char said[256];
    struct text t = TEXT_IN(said);
    return (void *)(intptr_t)registered_out(registered, at, &t);
}

static void test_race_out(void **state)
{
    (void)state;
    size_t bytes = 100 * PAGE;
    char *whole = fresh(bytes);
    fill(whole, bytes);
    for (int i = 0; i < team_many("TUTTI_TEST_LOOPS", 300, 50); i++) {
        pthread_t thread;
        void *other;
        assert_int_equal(in(whole, bytes), 0);
        assert_int_equal(pthread_create(&thread, NULL, race_body, whole), 0);
        int mine = out(whole);
        pthread_join(thread, &other);
        assert_int_equal(mine + (int)(intptr_t)other, -EINVAL);
        assert_true(as_filled(whole, bytes) && !shared(whole));
    }
    munmap(whole, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trips, setup, teardown),
        cmocka_unit_test_setup_teardown(test_allocated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_less_than_a_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_most_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_span_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_race_out, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
