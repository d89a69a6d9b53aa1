/* ctest: timeout=300 labels=tsan */
/* tutti_load and tutti_save as programs use them: files of many sizes there and back, by io_uring
 * and by threads, as work, on a part of the ranks; and what is wrong with a file or its folder: one
 * error, the same on all ranks, and the comm goes on. */
#include "os/transfer.h"
#include "support/leftovers.h"
#include "support/ranks.h"
#include "support/skip.h"
#include "support/team.h"
#include "support/scratch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static char folder[64];

/* liburing maps its rings past the C library, so that ThreadSanitizer takes two rings that
   come to lie at one address, one after the other, for one that two threads write: there the
   threads of os/transfer do it all, which is what it can check. */
#if defined(TUTTI_TSAN)
static const char *const usual_way = "0";
#else
static const char *const usual_way = "1";
#endif

static const char *file(const char *name)
{
    static _Thread_local char path[4][192];
    static _Thread_local int which;
    which = (which + 1) % 4;
    snprintf(path[which], sizeof path[which], "%s/%s", folder, name);
    return path[which];
}

static unsigned char byte_at(uint64_t i, uint64_t salt)
{
    return (unsigned char)((i * 0x9e3779b1u + salt) >> 13);
}

static bool right(const unsigned char *at, size_t bytes, uint64_t salt)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != byte_at(i, salt))
            return false;
    return true;
}

static void fill(unsigned char *at, size_t bytes, uint64_t salt)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = byte_at(i, salt);
}

static int make(const char *path, size_t bytes, uint64_t salt)
{
    unsigned char block[4096];
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    for (size_t at = 0; at < bytes; at += sizeof block) {
        size_t some = bytes - at < sizeof block ? bytes - at : sizeof block;
        for (size_t i = 0; i < some; i++)
            block[i] = byte_at(at + i, salt);
        fwrite(block, 1, some, f);
    }
    return fclose(f);
}

/* ---- there and back ---- */

static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 12289, 100000, 3 * MIB + 17, 9 * MIB };
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static int body_sizes(tutti_comm *world, int rank)
{
    for (int i = 0; i < SIZES; i++) {
        const void *data;
        size_t bytes = 77;
        char name[32];
        unsigned char *mine = malloc(sizes[i] + 1);
        CHECK(mine);
        fill(mine, sizes[i], (uint64_t)i);
        snprintf(name, sizeof name, "size %d", i);
        CHECK_IS(tutti_save(file(name), mine, sizes[i], world, NULL), 0);
        CHECK_IS(tutti_load(file(name), &data, &bytes, world, NULL), 0);
        CHECK_IS(bytes, sizes[i]);
        CHECK(data && right(data, bytes, (uint64_t)i));
        struct stat st;
        CHECK_IS(stat(file(name), &st), 0);
        CHECK_IS(st.st_size, sizes[i]);
        CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
        CHECK_IS(tutti_free((void *)(uintptr_t)data, world), -EINVAL);
        free(mine);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        CHECK_IS(leftovers_of_save(folder), 0);
    return 0;
}

static void test_sizes(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size += 2)
        assert_int_equal(ranks_run_either(size, body_sizes), 0);
}

static void test_by_threads(void **state)
{
    const char *why;
    (void)state;
    setenv("TUTTI_URING", "0", 1);
    assert_string_equal(transfer_way(&why), "threads");
    assert_string_equal(why, "TUTTI_URING=0");
    assert_int_equal(ranks_run_either(3, body_sizes), 0);
    setenv("TUTTI_URING", usual_way, 1);
}

/* Older kernels (5.10) end the call that reserves the room of a file in memory for a signal, or for
 * work of their own, and undo it. Played here: every second call is ended, and each for so much
 * that a signal would come meanwhile. */
static bool interrupted;

int posix_fallocate(int fd, off_t at, off_t bytes)
{
    static int calls;
    if (interrupted && (calls++ % 2 == 0 || bytes > 6 * MIB))
        return EINTR;
    union { void *found; int (*call)(int, off_t, off_t); } real = {
        dlsym(RTLD_NEXT, "posix_fallocate")
    };
    return real.call(fd, at, bytes);
}

static int body_interrupted(tutti_comm *world, int rank)
{
    enum { BYTES = 9 * MIB + 5 };
    unsigned char *mine = malloc(BYTES);
    const void *data;
    size_t bytes;
    (void)rank;
    CHECK(mine);
    fill(mine, BYTES, 5);
    CHECK_IS(tutti_save(file("interrupted"), mine, BYTES, world,
                        &(tutti_call){ .timeout_ms = 20000 }),
             0);
    CHECK_IS(tutti_load(file("interrupted"), &data, &bytes, world, NULL), 0);
    CHECK(bytes == BYTES && right(data, bytes, 5));
    free(mine);
    return 0;
}

static void test_interrupted(void **state)
{
    (void)state;
    interrupted = true;
    assert_int_equal(ranks_run_either(2, body_interrupted), 0);
    interrupted = false;
}

/* Past the cache: what was written and synced is dropped from it, and read from the disk. */
static int body_cold(tutti_comm *world, int rank)
{
    const void *data;
    size_t bytes;
    for (int i = 0; i < 3; i++) {
        size_t size = (size_t)(i + 5) * MIB + (size_t)i * 1000;
        if (rank == 0) {
            CHECK_IS(make(file("cold"), size, 5), 0);
            int fd = open(file("cold"), O_RDONLY);
            CHECK(fd >= 0);
            CHECK_IS(fdatasync(fd), 0);
            CHECK_IS(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
            if (i == 2)                              /* half of it is there again */
                CHECK(pread(fd, (char[4096]){ 0 }, 4096, 4 * MIB) == 4096);
            close(fd);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_load(file("cold"), &data, &bytes, world, NULL), 0);
        CHECK_IS(bytes, size);
        CHECK(right(data, bytes, 5));
        CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
    }
    return 0;
}

static void test_past_the_cache(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_cold), 0);
}

/* The same memory for all; given back by all, it is there for others: a hundred times what the
 * span holds. */
static int body_memory(tutti_comm *world, int rank)
{
    const void *data, *kept;
    size_t bytes;
    uint64_t handle = 0;
    if (rank == 0)
        CHECK_IS(make(file("memory"), 4 * MIB, 9), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_load(file("memory"), &kept, &bytes, world, NULL), 0);
    CHECK_IS(tutti_handle(kept, &handle, world), 0);
    uint64_t first = handle;
    CHECK_IS(tutti_broadcast(&first, 1, TUTTI_U64, 0, world, NULL), 0);
    CHECK(first == handle);
    for (int i = 0; i < 20; i++) {
        CHECK_IS(tutti_load(file("memory"), &data, &bytes, world, NULL), 0);
        CHECK(data != kept);
        CHECK(right(data, bytes, 9));
        CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    CHECK(right(kept, bytes, 9));
    CHECK_IS(tutti_free((void *)(uintptr_t)kept, world), 0);
    return 0;
}

static void test_memory_comes_back(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    assert_int_equal(ranks_run_either(3, body_memory), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

static int body_work(tutti_comm *world, int rank)
{
    const void *data[3];
    size_t bytes[3];
    tutti_work *work[4];
    unsigned char *mine = malloc(MIB);
    float one = 1, sum = 0;
    tutti_comm *part;
    CHECK(mine);
    fill(mine, MIB, 3);
    if (rank == 0)
        CHECK_IS(make(file("work"), 2 * MIB, 4), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_load(file("work"), &data[0], &bytes[0], world,
                        &(tutti_call){ .work = &work[0] }),
             0);
    CHECK_IS(tutti_save(file("work out"), mine, MIB, world, &(tutti_call){ .work = &work[1] }), 0);
    CHECK_IS(tutti_load(file("work out"), &data[1], &bytes[1], world,
                        &(tutti_call){ .work = &work[2] }),
             0);
    CHECK_IS(tutti_load(file("no such"), &data[2], &bytes[2], world,
                        &(tutti_call){ .work = &work[3] }),
             0);
    CHECK_IS(tutti_all_reduce(&one, &sum, 1, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    CHECK(sum == (float)tutti_size(world));
    CHECK_IS(tutti_wait(work[3], 0), -ENOENT);
    CHECK_IS(tutti_wait(work[0], 0), 0);
    CHECK_IS(tutti_wait(work[1], 0), 0);
    CHECK_IS(tutti_wait(work[2], 0), 0);
    CHECK_IS(bytes[0], 2 * MIB);
    CHECK(right(data[0], bytes[0], 4));
    CHECK_IS(bytes[1], MIB);
    CHECK(right(data[1], bytes[1], 3));
    tutti_figures figures;
    CHECK_IS(tutti_stats(world, &figures), 0);
    CHECK(figures.bytes > 0);
    /* a part of the ranks, each with a file of its own */
    CHECK_IS(tutti_comm_split(world, rank > 0, 0, &part), 0);
    CHECK_IS(tutti_load(file(rank > 0 ? "work" : "work out"), &data[2], &bytes[2], part, NULL), 0);
    CHECK(right(data[2], bytes[2], rank > 0 ? 4 : 3));
    CHECK_IS(tutti_comm_free(part), 0);
    for (int i = 0; i < 3; i++)
        CHECK_IS(tutti_free((void *)(uintptr_t)data[i], world), 0);
    free(mine);
    return 0;
}

static void test_as_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_work), 0);
}

/* ---- what is wrong ---- */

/* That error and that sentence on this rank, nothing handed out; then the comm still works. */
static int refused(tutti_comm *world, const char *path, int error, const char *sentence)
{
    const void *data = path;
    size_t bytes = 7;
    CHECK_IS(tutti_load(path, &data, &bytes, world, NULL), error);
    CHECK(ranks_explain(world, sentence));
    CHECK(data == NULL && bytes == 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int body_bad_files(tutti_comm *world, int rank)
{
    char sentence[256];
    const void *data;
    size_t bytes;
    if (rank == 0) {
        CHECK_IS(mkfifo(file("fifo"), 0600), 0);
        CHECK_IS(make(file("a"), 10000, 1), 0);
        CHECK_IS(make(file("b"), 10000, 1), 0);
        CHECK_IS(symlink("nothing", file("link")), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    snprintf(sentence, sizeof sentence, "load of \"%s\"", file("none"));
    CHECK_IS(refused(world, file("none"), -ENOENT, sentence), 0);
    CHECK_IS(refused(world, file("none"), -ENOENT,
                     "on rank 0: cannot be opened: No such file or directory"),
             0);
    CHECK_IS(refused(world, file("link"), -ENOENT, "cannot be opened"), 0);
    CHECK_IS(refused(world, folder, -EISDIR, "Is a directory"), 0);
    CHECK_IS(refused(world, file("fifo"), -EINVAL, "is no regular file"), 0);
    CHECK_IS(refused(world, "/dev/null", -EINVAL, "is no regular file"), 0);
    CHECK_IS(refused(world, file(rank == 1 ? "b" : "a"), -ESTALE,
                     "on rank 1: is another file there than for rank 0"),
             0);
    CHECK_IS(refused(world, file(rank == 2 ? "none" : "a"), -ENOENT, "on rank 2: cannot be opened"),
             0);
    CHECK_IS(tutti_load(NULL, &data, &bytes, world, NULL), -EINVAL);
    CHECK(ranks_explain(world, "the path is NULL"));
    CHECK_IS(tutti_load("", &data, &bytes, world, NULL), -EINVAL);
    CHECK_IS(tutti_load(file("a"), NULL, &bytes, world, NULL), -EINVAL);
    CHECK(ranks_explain(world, "data is NULL"));
    CHECK_IS(tutti_load(file("a"), &data, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_save(file("a"), NULL, 1, world, NULL), -EINVAL);
    /* all of that has cost nothing */
    CHECK_IS(tutti_load(file("a"), &data, &bytes, world, NULL), 0);
    CHECK(right(data, bytes, 1));
    CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
    return 0;
}

static void test_bad_files(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_bad_files), 0);
}

/* Longer when it was opened than when it is read: as for a file that is cut off meanwhile.
   /proc files say 0 and have more, sparse files have holes; what is asked for here is that
   nothing is invented. */
static int body_holes(tutti_comm *world, int rank)
{
    const void *data;
    size_t bytes;
    if (rank == 0) {
        int fd = open(file("holes"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(fd >= 0);
        CHECK_IS(ftruncate(fd, 3 * MIB), 0);
        CHECK(pwrite(fd, "x", 1, 2 * MIB) == 1);
        close(fd);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_load(file("holes"), &data, &bytes, world, NULL), 0);
    const char *at = data;
    for (size_t i = 0; i < bytes; i++)
        CHECK(at[i] == (i == 2 * MIB ? 'x' : 0));
    CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
    return 0;
}

static void test_holes(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_holes), 0);
}

static int body_bad_folders(tutti_comm *world, int rank)
{
    static const unsigned char bytes[20000];
    if (rank == 0) {
        CHECK_IS(mkdir(file("folder"), 0700), 0);
        CHECK_IS(mkfifo(file("pipe"), 0600), 0);
        CHECK_IS(make(file("old"), 500, 2), 0);
        CHECK_IS(chmod(file("old"), 0640), 0);
        CHECK_IS(symlink("old", file("to old")), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_save(file("none/x"), bytes, sizeof bytes, world, NULL), -ENOENT);
    CHECK(ranks_explain(world, "no new file can be made beside it: No such file or directory"));
    CHECK_IS(tutti_save(file("folder"), bytes, sizeof bytes, world, NULL), -EISDIR);
    CHECK_IS(tutti_save(file("pipe"), bytes, sizeof bytes, world, NULL), -EINVAL);
    CHECK(ranks_explain(world, "is no regular file"));
    CHECK_IS(tutti_save(file("to old"), bytes, sizeof bytes, world, NULL), 0);
    struct stat st;
    CHECK_IS(lstat(file("to old"), &st), 0);
    CHECK(S_ISLNK(st.st_mode));
    CHECK_IS(lstat(file("old"), &st), 0);
    CHECK_IS(st.st_size, sizeof bytes);
    CHECK_IS(st.st_mode & 07777, 0640);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        CHECK_IS(leftovers_of_save(folder), 0);
    return 0;
}

static void test_bad_folders(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_bad_folders), 0);
}

/* Each rank stands in a folder of its own: rank 0's is where a name leads to, and what another one
 * reads there is another file. */
static int body_own_folders(tutti_comm *world, int rank)
{
    static unsigned char bytes[50000];
    const void *data;
    char own[16];
    size_t n;
    snprintf(own, sizeof own, "own %d", rank);
    CHECK_IS(mkdir(file(own), 0700), 0);
    CHECK_IS(chdir(file(own)), 0);
    CHECK_IS(tutti_save("x", bytes, sizeof bytes, world, NULL), 0);
    CHECK_IS(access("x", F_OK), rank == 0 ? 0 : -1);
    CHECK_IS(leftovers_of_save("."), 0);
    CHECK_IS(tutti_load("x", &data, &n, world, NULL), -ENOENT);
    CHECK(ranks_explain(world, "on rank 1: cannot be opened: No such file or directory"));
    if (rank)
        CHECK_IS(make("x", 10, 1), 0);
    CHECK_IS(tutti_load("x", &data, &n, world, NULL), -ESTALE);
    CHECK(ranks_explain(world, "on rank 1: is another file there than for rank 0"));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Of processes: threads have one such folder. */
static void test_own_folders(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_own_folders, 0), 0);
}

/* Different counts are different calls. */
static int body_counts(tutti_comm *world, int rank)
{
    static const unsigned char bytes[100];
    CHECK_IS(tutti_save(file("counts"), bytes, rank ? 100 : 99, world, NULL), -EPROTO);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static void test_other_counts(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_counts), 0);
    assert_int_equal(leftovers_of_save(folder), 0);
}

/* A disk of 1 MiB, then one that cannot be written to. */
static int body_small_disk(tutti_comm *world, int rank)
{
    unsigned char *bytes = calloc(1, 4 * MIB);
    const void *data;
    size_t n;
    CHECK(bytes);
    CHECK_IS(tutti_save(file("disk/f"), bytes, 100000, world, NULL), 0);
    CHECK_IS(tutti_save(file("disk/f"), bytes, 4 * MIB, world, NULL), -ENOSPC);
    CHECK(ranks_explain(world, "there is no room for its bytes: No space left on device"));
    CHECK_IS(tutti_load(file("disk/f"), &data, &n, world, NULL), 0);
    CHECK_IS(n, 100000);
    CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        CHECK_IS(mount(NULL, file("disk"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_save(file("disk/f"), bytes, 100, world, NULL), -EROFS);
    CHECK(ranks_explain(world, "no new file can be made beside it: Read-only file system"));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    free(bytes);
    return 0;
}

static void test_full_and_read_only(void **state)
{
    (void)state;
    assert_int_equal(mkdir(file("disk"), 0700), 0);
    if (mount("none", file("disk"), "tmpfs", 0, "size=1M") < 0)
        skip_because("no file system can be mounted here (%s)", strerror(errno));
    int wrong = ranks_run(3, body_small_disk, 0);
    umount(file("disk"));
    assert_int_equal(wrong, 0);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(scratch_name(folder, sizeof folder, "disk")) ? 0 : -1;
}

static int drop_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_by_threads),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_past_the_cache), cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_as_work), cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_holes), cmocka_unit_test(test_bad_folders),
        cmocka_unit_test(test_other_counts), cmocka_unit_test(test_full_and_read_only),
        cmocka_unit_test(test_own_folders),
    };
    setenv("TUTTI_URING", usual_way, 1);
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
