/* ctest: needs=forks */
/* What an arena stands on: it cannot be cut, shows its name, shares its bytes, is there when
 * populated and gone when released. */
#include "os/memory.h"

#include "child.h"
#include "support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ADVICE_POPULATE_READ = 22, ADVICE_POPULATE_WRITE = 23 };

static const uint64_t size = (uint64_t)5 << 20;

static void test_a_memfd_of_ours(void **state)
{
    (void)state;
    char link[64], path[64];
    uint64_t bytes = 0;
    int fd = memory_create(size);
    assert_true(fd >= 100);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    assert_true(n > 0);
    link[n] = 0;
    assert_int_equal(strncmp(link, "/memfd:tutti", 12), 0);
    assert_int_equal(memory_check(fd, &bytes), 0);
    assert_int_equal(bytes, size);
    close(fd);
}

static void test_nobody_can_cut_or_unseal_it(void **state)
{
    (void)state;
    int fd = memory_create(size);
    assert_int_equal(ftruncate(fd, 4096), -1);
    assert_int_equal(ftruncate(fd, (off_t)(2 * size)), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    close(fd);
}

static void test_others_are_not_ours(void **state)
{
    (void)state;
    uint64_t bytes = 77;
    int plain = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(plain >= 0);
    assert_int_equal(ftruncate(plain, 4096), 0);
    assert_int_equal(memory_check(plain, &bytes), -EINVAL);
    assert_int_equal(fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
    assert_int_equal(memory_check(plain, &bytes), -EINVAL);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(memory_check(file, &bytes), -EINVAL);
    assert_int_equal(memory_check(-1, &bytes), -EINVAL);
    assert_int_equal(bytes, 77);
    close(plain);
    close(file);
}

static int unsealed(void *arg)
{
    uint64_t bytes = 0;
    int end;
    CHILD_CHECK(memory_seals());
    if (child_forbid(SYS_fcntl, 1, F_ADD_SEALS, *(int *)arg) != 0)
        return CHILD_SKIP;
    int fd = memory_create(size), program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHILD_CHECK(!memory_seals() && fd >= 0);
    CHILD_CHECK(memory_check(fd, &bytes) == 0 && bytes == size);
    CHILD_CHECK(program >= 0 && memory_check(program, &bytes) == -EINVAL);
    CHILD_CHECK(memory_check(-1, &bytes) == -EINVAL);
    char *at = memory_map(fd, size, &end);
    CHILD_CHECK(at && memory_populate(at, 100) == 0);
    return 0;
}

static void test_where_nothing_can_be_sealed(void **state)
{
    (void)state;
    int errors[] = { EPERM, EINVAL, ENOSYS };
    for (int i = 0; i < 3; i++) {
        int result = child_run(unsealed, &errors[i]);
        if (result == CHILD_SKIP)
            skip_because("no seccomp filter can be set here");
        assert_int_equal(result, 0);
    }
}

static void test_sizes_that_cannot_be(void **state)
{
    (void)state;
    assert_int_equal(memory_create(0), -EINVAL);
    assert_int_equal(memory_create(UINT64_MAX), -EFBIG);
}

static int under_file_limit(void *arg)
{
    (void)arg;
    struct rlimit limit = { 1 << 20, 1 << 20 };
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_CHECK(memory_create((1 << 20) + 1) == -EFBIG);
    CHILD_CHECK(memory_create(1 << 20) >= 0);
    return 0;
}

static int with_few_descriptors(void *arg)
{
    (void)arg;
    struct rlimit limit = { 64, 64 };
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = memory_create(4096);
    CHILD_CHECK(fd >= 0 && fd < 64);
    return 0;
}

static void test_limits_are_errors_and_not_signals(void **state)
{
    (void)state;
    assert_int_equal(child_run(under_file_limit, NULL), 0);
    assert_int_equal(child_run(with_few_descriptors, NULL), 0);
}

static void test_two_mappings_are_one_memory(void **state)
{
    (void)state;
    int error = -1, fd = memory_create(size);
    char *a = memory_map(fd, size, &error);
    assert_non_null(a);
    assert_int_equal(error, 0);
    char *b = memory_map_readonly(fd, size, &error);
    assert_non_null(b);
    assert_int_equal((uintptr_t)a % (2 << 20), 0);
    assert_int_equal((uintptr_t)b % (2 << 20), 0);
    a[0] = 'x';
    a[size - 1] = 'y';
    assert_int_equal(b[0], 'x');
    assert_int_equal(b[size - 1], 'y');
    /* the kernel writes, so a refusal is an error and no signal */
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(zero, b, 1), -1);
    assert_int_equal(errno, EFAULT);
    close(zero);
    memory_unmap(a, size);
    memory_unmap(b, size);
    memory_unmap(NULL, size);
    close(fd);
}

/* The neighbourhood reserved for alignment is given back: mapping and unmapping leaves the address
 * space as it was. */
static long address_space_kib(void)
{
    char line[200];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmSize:", 7) == 0)
            kib = strtol(line + 7, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

static void test_odd_sizes_leave_no_holes(void **state)
{
    (void)state;
    int error, fd = memory_create(size);
    address_space_kib();
    long before = address_space_kib();
    for (uint64_t bytes = 1; bytes <= 9000; bytes += 4499) {
        char *at = memory_map(fd, bytes, &error);
        assert_non_null(at);
        assert_int_equal(address_space_kib() - before,
                         (long)((bytes + memory_page() - 1) / memory_page() * memory_page()
                                / 1024));
        memory_unmap(at, bytes);
        assert_int_equal(address_space_kib(), before);
    }
    close(fd);
}

static void test_a_mapping_that_cannot_be(void **state)
{
    (void)state;
    int error = 0;
    assert_null(memory_map(-1, 4096, &error));
    assert_int_equal(error, -EBADF);
    assert_null(memory_map(0, 0, &error));
    assert_int_equal(error, -EINVAL);
    assert_null(memory_map(0, UINT64_MAX, &error));
    assert_int_equal(error, -EINVAL);
    assert_null(memory_map(0, (uint64_t)1 << 62, &error));
    assert_int_equal(error, -ENOMEM);
}

/* 1 or 0: "dd" (not in core dumps) among the flags of the mapping that holds at; -1: the kernel
 * does not say. */
static int not_dumped(const void *at)
{
    char line[4096];
    int result = -1, here = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            here = (uintptr_t)at >= low && (uintptr_t)at < high;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            result = strstr(line, " dd") != NULL;
    }
    if (f)
        fclose(f);
    return result;
}

static void test_only_a_chosen_stretch_is_dumped(void **state)
{
    (void)state;
    int error, fd = memory_create(size);
    char *at = memory_map(fd, size, &error);
    if (not_dumped(at) < 0)
        skip_because("this kernel does not show the flags of mappings (smaps)");
    size_t page = memory_page();
    memory_dump(at + page + 10, 20);
    assert_int_equal(not_dumped(at), 1);
    assert_int_equal(not_dumped(at + page), 0);
    assert_int_equal(not_dumped(at + 2 * page), 1);
    memory_unmap(at, size);
    close(fd);
}

static int present(char *at, size_t pages)
{
    unsigned char vec[4096];
    int n = 0;
    if (mincore(at, pages * memory_page(), vec) != 0)
        return -1;
    for (size_t i = 0; i < pages; i++)
        n += vec[i] & 1;
    return n;
}

static int populates(void *arg)
{
    (void)arg;
    int error, fd = memory_create(size);
    char *at = memory_map(fd, size, &error);
    size_t page = memory_page();
    CHILD_CHECK(at && present(at, 16) == 0);
    at[3 * page + 5] = 'k';
    /* from inside page 2 to inside page 5 */
    CHILD_CHECK(memory_populate(at + 2 * page + 100, 3 * page) == 0);
    CHILD_CHECK(present(at, 16) == 4);
    CHILD_CHECK(at[3 * page + 5] == 'k');
    CHILD_CHECK(memory_populate(at, 0) == 0);
    return 0;
}

static void test_populated_pages_are_there(void **state)
{
    (void)state;
    assert_int_equal(child_run(populates, NULL), 0);
}

/* Of reading the first byte of every second page. Without a sanitizer, whose shadow of them has
 * faults of its own. */
__attribute__((no_sanitize("address"))) static long faults_of(const volatile char *at, size_t pages,
                                                              size_t page, int *marked)
{
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    for (size_t i = 0; i < pages; i += 2)
        *marked += at[i * page] == 'k';
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    return after.ru_minflt - before.ru_minflt;
}

/* Pages that another mapping has made are read without a fault, and no more are made. */
static void test_looked_at_pages_have_no_faults(void **state)
{
    (void)state;
    int error, fd = memory_create(size);
    char *made = memory_map(fd, size, &error), *at = memory_map(fd, size, &error);
    size_t page = memory_page();
    int there = 0;
    assert_true(made && at);
    if (madvise(made, 0, ADVICE_POPULATE_READ) != 0)
        skip_because("the system has no MADV_POPULATE_READ");
    for (size_t i = 0; i < 64; i += 2)
        made[i * page] = 'k';
    memory_look(at, 64 * page);
    assert_int_equal(present(at, 64), 32);
    assert_int_equal(faults_of(at, 64, page, &there), 0);
    assert_int_equal(there, 32);
    memory_unmap(at, size);
    memory_unmap(made, size);
    close(fd);
}

static int populates_by_touch(void *arg)
{
    if (child_forbid(SYS_madvise, 2, ADVICE_POPULATE_WRITE, EINVAL) != 0)
        return CHILD_SKIP;
    return populates(arg);
}

static void test_old_kernels_are_touched(void **state)
{
    (void)state;
    int result = child_run(populates_by_touch, NULL);
    if (result == CHILD_SKIP)
        skip_because("no seccomp filter can be set here");
    assert_int_equal(result, 0);
}

static void test_populate_says_what_is_wrong(void **state)
{
    (void)state;
    int error, fd = memory_create(size);
    char *at = memory_map_readonly(fd, size, &error);
    assert_non_null(at);
    if (madvise(at, 0, ADVICE_POPULATE_WRITE) != 0)
        skip_because("this kernel knows no MADV_POPULATE_WRITE");
    assert_true(memory_populate(at, 4096) < 0);
    memory_unmap(at, size);
    assert_int_equal(memory_populate(at, 4096), -ENOMEM);
    close(fd);
}

static void test_released_pages_are_zero_and_gone(void **state)
{
    (void)state;
    int error, fd = memory_create(size);
    size_t page = memory_page();
    char *at = memory_map(fd, size, &error);
    struct stat full, less;
    memset(at, 7, 8 * page);
    assert_int_equal(fstat(fd, &full), 0);
    assert_int_equal(memory_release(fd, at, at + page, 4 * page), 0);
    assert_int_equal(fstat(fd, &less), 0);
    assert_int_equal((full.st_blocks - less.st_blocks) * 512, 4 * page);
    assert_int_equal(at[page - 1], 7);
    for (size_t i = page; i < 5 * page; i++)
        assert_int_equal(at[i], 0);
    assert_int_equal(at[5 * page], 7);
    assert_int_equal(memory_release(fd, at + page, at, page), -EINVAL);
    assert_int_equal(memory_release(fd, at, at, 0), 0);
    assert_int_equal(at[0], 7);
    memory_unmap(at, size);
    close(fd);
}

static int reads_fork_page(void *arg)
{
    return (int)*(uint32_t *)arg;
}

static void test_a_fork_finds_its_page_empty(void **state)
{
    (void)state;
    uint32_t *page = memory_fork_page();
    if (!page)
        skip_because("this kernel knows no MADV_WIPEONFORK");
    assert_int_equal(*page, 1);
    assert_int_equal(child_run(reads_fork_page, page), 0);
    assert_int_equal(*page, 1);
    munmap(page, memory_page());
}

static void test_the_machine_has_memory(void **state)
{
    (void)state;
    struct sysinfo info;
    assert_int_equal(sysinfo(&info), 0);
    assert_in_range(memory_total(), 1 << 20, (uint64_t)info.totalram * info.mem_unit);
}

/* Pages of the memfd in the place of private ones, and private ones again. */
static void test_over_what_is_mapped(void **state)
{
    (void)state;
    size_t page = memory_page();
    int error, fd = memory_create(size);
    char *all = memory_map(fd, size, &error);
    char *at = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 1, 5 * page);
    strcpy(all + 2 * page, "from the memfd");
    assert_int_equal(memory_map_over(fd, all, 2 * page, at + page, page), 0);
    assert_string_equal(at + page, "from the memfd");
    at[page] = 'F';
    assert_int_equal(all[2 * page], 'F');
    assert_true(at[page - 1] == 1 && at[2 * page] == 1);
    assert_int_equal(memory_private_over(at + page, page), 0);
    assert_int_equal(at[page], 0);
    at[page] = 2;
    assert_int_equal(all[2 * page], 'F');
    assert_true(at[page - 1] == 1 && at[2 * page] == 1);
    assert_int_equal(memory_map_over(-1, NULL, 0, at, page), -EBADF);
    close(fd);                                       /* without it: by the mapping */
    assert_int_equal(memory_map_over(-1, all, 2 * page, at + page, page), 0);
    assert_string_equal(at + page, "From the memfd");
    assert_int_equal(memory_release(-1, all, all + 2 * page, page), 0);
    assert_true(at[page] == 0 && all[2 * page] == 0);
    munmap(at, 5 * page);
    memory_unmap(all, size);
    close(fd);
}

/* Whatever the system makes of the wish, all of it is there, and what is said of it is
 * what is so. */
static void test_huge_pages_are_a_wish(void **state)
{
    (void)state;
    uint64_t bytes = (uint64_t)8 << 20;
    size_t page = memory_page();
    int error, fd = memory_create(bytes);
    char *at = memory_map(fd, bytes, &error);
    size_t huge = 1;
    struct stat st;
    assert_int_equal(memory_populate_huge(at + page, (size_t)bytes - 3 * page, 0, &huge), 0);
    printf("%zu of 4 MiB in huge pages\n", huge >> 20);
    assert_true(huge == 0 || huge == (size_t)2 << 20 || huge == (size_t)4 << 20);
    assert_int_equal(memory_huge(at, (size_t)bytes), huge);
    /* the last is not whole */
    if (memory_scans())                              /* smaps tells of whole mappings only */
        assert_int_equal(memory_huge(at + ((size_t)6 << 20), (size_t)2 << 20), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true((uint64_t)st.st_blocks * 512 >= bytes - 3 * page);
    memset(at, 1, (size_t)bytes);
    assert_int_equal(memory_populate_huge(at, page, 0, &huge), 0);
    assert_int_equal(huge, 0);
    memory_unmap(at, bytes);
    close(fd);
}

/* The same where the kernel cannot be asked for one stretch: by smaps. */
static void test_huge_pages_by_smaps(void **state)
{
    (void)state;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    uint64_t bytes = (uint64_t)8 << 20;
    int error, status, fd = memory_create(bytes);
    char *at = memory_map(fd, bytes, &error);
    size_t huge;
    assert_int_equal(memory_populate_huge(at, (size_t)bytes, 0, &huge), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        memset(at, 1, (size_t)bytes);           /* a child maps shared memory when it touches it */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        _exit(memory_huge(at, (size_t)bytes) == huge ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 77));
    memory_unmap(at, bytes);
    close(fd);
}

static void test_what_is_available(void **state)
{
    (void)state;
    assert_in_range(memory_available(), 1 << 20, memory_total() + (UINT64_C(1) << 44));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_memfd_of_ours),
        cmocka_unit_test(test_nobody_can_cut_or_unseal_it),
        cmocka_unit_test(test_others_are_not_ours),
        cmocka_unit_test(test_where_nothing_can_be_sealed),
        cmocka_unit_test(test_sizes_that_cannot_be),
        cmocka_unit_test(test_limits_are_errors_and_not_signals),
        cmocka_unit_test(test_two_mappings_are_one_memory),
        cmocka_unit_test(test_odd_sizes_leave_no_holes),
        cmocka_unit_test(test_a_mapping_that_cannot_be),
        cmocka_unit_test(test_only_a_chosen_stretch_is_dumped),
        cmocka_unit_test(test_populated_pages_are_there),
        cmocka_unit_test(test_looked_at_pages_have_no_faults),
        cmocka_unit_test(test_old_kernels_are_touched),
        cmocka_unit_test(test_populate_says_what_is_wrong),
        cmocka_unit_test(test_released_pages_are_zero_and_gone),
        cmocka_unit_test(test_a_fork_finds_its_page_empty),
        cmocka_unit_test(test_the_machine_has_memory),
        cmocka_unit_test(test_over_what_is_mapped),
        cmocka_unit_test(test_huge_pages_are_a_wish),
        cmocka_unit_test(test_huge_pages_by_smaps),
        cmocka_unit_test(test_what_is_available),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
