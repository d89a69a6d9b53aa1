/* ctest: timeout=300 labels=faults,nosan serial needs=limit */
/* Memory that runs out or is poor: a cgroup whose limit one rank reaches, in its own memory, in
 * the arena, in the staging of an operation; /dev/shm and /tmp without room; and ranks that dump
 * core, large ones, of which nobody waits for the end. Not under AddressSanitizer, whose own
 * memory would count. */
#include "environment.h"

#include "base/clock.h"
#include "group/comm.h"
#include "os/file.h"
#include "os/memory.h"
#include "support/scratch.h"
#include "support/skip.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, VICTIM = 1, MIB = 1 << 20 };

/* ---- a memory cgroup of our own, below the one we are in ---- */

static struct { char path[512]; bool second; } group;
static tutti_comm *my_world;

static int group_write(const char *name, const char *value)
{
    char path[640];
    snprintf(path, sizeof path, "%s/%s", group.path, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? write(fd, value, strlen(value)) : -1;
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(value) ? 0 : -1;
}

static bool group_under(const char *mount, const char *own, const char *limit_file,
                        const char *limit)
{
    snprintf(group.path, sizeof group.path, "%s%s/env-%d", mount, own, (int)getpid());
    if (mkdir(group.path, 0755) != 0)
        return false;
    if (group_write(limit_file, limit) == 0)
        return true;
    rmdir(group.path);
    return false;
}

/* Version 1 or 2, wherever it can be made; else the test is skipped. Swap would only delay what
 * is to come. */
static void need_group(size_t mib)
{
    char line[512], limit[32];
    bool made = false;
    FILE *f = fopen("/proc/self/cgroup", "r");
    snprintf(limit, sizeof limit, "%zu", mib * MIB);
    while (!made && f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *path = strrchr(line, ':');
        if (!path)
            continue;
        const char *own = strcmp(++path, "/") ? path : "";
        if (strstr(line, ":memory:")) {
            made = group_under("/sys/fs/cgroup/memory", own, "memory.limit_in_bytes", limit);
            group.second = false;
        } else if (!strncmp(line, "0::", 3)) {
            made = group_under("/sys/fs/cgroup", own, "memory.max", limit);
            group.second = true;
        }
    }
    if (f)
        fclose(f);
    if (!made)
        skip_because("no memory cgroup can be made here");
    group_write(group.second ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
                group.second ? "0" : limit);
}

static void group_enter(void)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (group_write("cgroup.procs", pid) != 0)
        _exit(9);
}

/* How often the system killed somebody in it; the group goes. */
static long group_end(void)
{
    char path[640], text[4096];
    snprintf(path, sizeof path, "%s/%s", group.path,
             group.second ? "memory.events" : "memory.oom_control");
    const char *at = file_read(path, text, sizeof text) > 0 ? strstr(text, "oom_kill ") : NULL;
    long kills = at ? strtol(at + 9, NULL, 10) : -1;
    for (uint64_t end = clock_ns() + UINT64_C(20000000000);
         rmdir(group.path) != 0 && errno == EBUSY && clock_ns() < end;)
        sched_yield();
    return kills;
}

/* ---- its limit is reached ---- */

static void eats_memory(void)
{
    group_enter();
    for (;;) {
        char *some = malloc(MIB);
        if (some)
            memset(some, 1, MIB);
    }
}

/* Pages of the arena count for who touches them first. NULL would do as well; then there is nothing
 * left to wait for. */
static void eats_arena(void)
{
    group_enter();
    while (tutti_alloc(MIB, my_world)) { }
    raise(SIGKILL);
}

static void (*way)(void);

static int runs_out(tutti_comm *world, int rank, struct team *team)
{
    my_world = world;
    return env_life(world, rank, team, VICTIM, way);
}

static void runs_out_in(void (*how)(void))
{
    struct env_traces before;
    env_look(&before);
    need_group(24);
    way = how;
    env_starve_through(team_start(RANKS, runs_out, true), VICTIM, "signal 9");
    assert_int_equal(group_end(), 1);
    env_expect_nothing_new(&before);
}

static void out_of_private_memory(void **state)
{
    (void)state;
    runs_out_in(eats_memory);
}

static void out_of_memory_in_the_arena(void **state)
{
    (void)state;
    runs_out_in(eats_arena);
}

/* A larger piece is asked for first: no memory is an answer then, and nobody dies. */
static int asks_first(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    if (rank == VICTIM) {
        group_enter();
        mine->number[0] = tutti_alloc((size_t)64 * MIB, world) == NULL;
        team_note(team, rank, world);
    }
    mine->error[0] = env_course(world);
    return 0;
}

static void a_large_piece_is_refused(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    need_group(48);
    struct team *team = team_start(RANKS, asks_first, true);
    assert_int_equal(team_end(team), 0);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(team->status[r], 0);
        assert_int_equal(team->rank[r].error[0], 0);
    }
    assert_int_equal(team->rank[VICTIM].number[0], 1);
    if (!strstr(team->rank[VICTIM].report, "memory"))
        fail_msg("%s", team->rank[VICTIM].report);
    team_free(team);
    assert_int_equal(group_end(), 0);
    env_expect_nothing_new(&before);
}

/* Larger and larger operations: at some point the staging does not fit. It is that of the victim
   alone, whose death or error ends the same operation for all. */
enum { GROWING = 22 };

static int grows(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    size_t most = (size_t)1 << GROWING;
    int32_t *x = malloc(most * sizeof *x), *y = malloc(most * sizeof *y);
    if (!x || !y)
        return 9;
    for (size_t i = 0; i < most; i++)
        x[i] = y[i] = (int32_t)i;
    if (rank == VICTIM)
        group_enter();
    for (int step = 0; step <= GROWING && mine->error[0] == 0; step++) {
        mine->error[0] = tutti_all_reduce(x, y, (size_t)1 << step, TUTTI_I32, TUTTI_SUM, world,
                                          NULL);
        for (size_t i = 0; mine->error[0] == 0 && i < (size_t)1 << step; i++)
            mine->wrong += y[i] != (int32_t)i * RANKS;
        mine->operation += mine->error[0] == 0;
    }
    team_note(team, rank, world);
    team_say(team, rank, ENV_BACK);
    team_hear(team, rank, ENV_END);
    return 0;
}

static void out_of_memory_in_an_operation(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    need_group(1);
    struct team *team = team_start(RANKS, grows, true);
    for (int r = 0; r < RANKS; r++)
        if (r != VICTIM)
            assert_int_equal(team_await(team, r, ENV_BACK), 0);
    for (int r = 0; r < RANKS; r++)
        team_tell(team, r, ENV_END);
    assert_int_equal(team_end(team), 0);
    bool killed = WIFSIGNALED(team->status[VICTIM]) && WTERMSIG(team->status[VICTIM]) == SIGKILL;
    assert_true(killed || (team->status[VICTIM] == 0 && team->rank[VICTIM].error[0] == -ENOMEM));
    for (int r = 0; r < RANKS; r++) {
        const struct team_rank *rank = &team->rank[r];
        if (r == VICTIM)
            continue;
        assert_int_equal(rank->error[0], killed ? -EOWNERDEAD : -ECANCELED);
        assert_non_null(strstr(rank->report, "rank 1"));
        assert_non_null(strstr(rank->report, killed ? "signal 9" : "memory"));
        assert_int_equal(rank->operation, team->rank[0].operation);
        assert_int_equal(rank->wrong, 0);
    }
    team_free(team);
    assert_int_equal(group_end(), killed);
    env_expect_nothing_new(&before);
}

/* ---- no room in /dev/shm, nothing to be written in /tmp ---- */

/* For this process alone; in a chroot, whose root is no mount, that cannot be. */
static bool little_room(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") == 0
        && mount("tmpfs", "/tmp", "tmpfs", MS_RDONLY, "size=4k") == 0;
}

static int lives_in_little_room(tutti_comm *world, int rank, struct team *team)
{
    (void)world;
    tutti_comm *own = NULL;
    const tutti_options options = { .job = getenv("ENV_JOB"), .rank = rank, .size = team->size };
    if (!little_room())
        return 77;
    team->rank[rank].error[ENV_INIT] = tutti_init(&own, &options);
    return env_life(own, rank, team, VICTIM, env_killed);
}

static void no_room_in_dev_shm(void **state)
{
    (void)state;
    struct env_traces before;
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(little_room() ? 0 : 1);
    waitpid(pid, &status, 0);
    if (status)
        skip_because("/dev/shm and /tmp cannot be mounted anew for one process here");
    env_look(&before);
    setenv("ENV_JOB", env_job(), 1);
    env_see_through(team_start_named(RANKS, lives_in_little_room, true), VICTIM, "signal 9");
    env_expect_nothing_new(&before);
}

/* ---- cores ---- */

static struct { char directory[64]; size_t mib; } scene;

/* Cores must go to files, to where the rank is. */
static void need_cores(void)
{
    struct rlimit core;
    char pattern[256] = "|";
    file_read("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max == 0 || pattern[0] == '|'
        || strchr(pattern, '/'))
        skip_because("cores are not written to files of the current directory here");
    scratch_name(scene.directory, sizeof scene.directory, "core");
    assert_non_null(mkdtemp(scene.directory));
}

/* The one file there, and no more. */
static int open_core(void)
{
    int fd = -1;
    DIR *directory = opendir(scene.directory);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
    if (directory)
        closedir(directory);
    return fd;
}

static void remove_cores(void)
{
    DIR *directory = opendir(scene.directory);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    assert_int_equal(rmdir(scene.directory), 0);
}

/* How many bytes of [from, from + bytes) are in the core; -1: it is none. */
static int64_t dumped(int fd, uint64_t from, uint64_t bytes)
{
    Elf64_Ehdr head;
    int64_t sum = 0;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_CORE)
        return -1;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr p;
        if (pread(fd, &p, sizeof p, (off_t)(head.e_phoff + i * sizeof p)) != (ssize_t)sizeof p
            || p.p_type != PT_LOAD)
            continue;
        uint64_t lo = p.p_vaddr > from ? p.p_vaddr : from, end = p.p_vaddr + p.p_filesz,
                 hi = end < from + bytes ? end : from + bytes;
        sum += hi > lo ? (int64_t)(hi - lo) : 0;
    }
    return sum;
}

static bool dumping(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return file_read(path, text, sizeof text) > 0 && strstr(text, "\nCoreDumping:\t1\n");
}

static int dumps_core(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[0] = tutti_barrier(world, NULL);
    if (rank == VICTIM) {
        size_t bytes = scene.mib * MIB;
        char *arena = tutti_alloc((size_t)8 * MIB, world), *private = malloc(bytes);
        struct rlimit core;
        if (!arena || !private || chdir(scene.directory) != 0)
            return 9;
        memset(arena, 1, (size_t)8 * MIB);
        memset(private, 1, bytes);
        mine->number[0] = (uintptr_t)arena;
        mine->number[1] = (uintptr_t)private;
        mine->number[2] = (uintptr_t)world->world->arena.base;
        mine->number[3] = (uintptr_t)arena_span(&world->world->arena, 0);
        mine->number[4] = world->world->arena.header->span_bytes * (uint64_t)team->size;
        getrlimit(RLIMIT_CORE, &core);
        core.rlim_cur = core.rlim_max;
        if (scene.mib < 64 && core.rlim_max > (rlim_t)64 * MIB)
            core.rlim_cur = (rlim_t)64 * MIB;  /* a core with the spans in it would fill the disk */
        setrlimit(RLIMIT_CORE, &core);
        team_say(team, rank, ENV_READY);
        team_hear(team, rank, ENV_START);
        abort();
    }
    mine->error[0] = tutti_barrier(world, NULL);
    mine->number[0] = dumping(team_pid(team, VICTIM));
    team_note(team, rank, world);
    team_say(team, rank, ENV_BACK);
    team_hear(team, rank, ENV_END);
    return 0;
}

/* Returns how long the victim took to end, ns, with all survivors back and the core in
 * the directory. */
static uint64_t dump(struct team **dumped_team)
{
    struct team *team = *dumped_team = team_start(RANKS, dumps_core, true);
    assert_int_equal(team_await(team, VICTIM, ENV_READY), 0);
    int process = process_pidfd(&(struct process_id){ .pid = team_pid(team, VICTIM) });
    uint64_t began = clock_ns();
    team_tell(team, VICTIM, ENV_START);
    struct pollfd over = { process, POLLIN, 0 };
    if (process >= 0 && poll(&over, 1, 120000) != 1)
        fail_msg("no end of the core");
    uint64_t took = clock_ns() - began;
    if (process >= 0)
        close(process);
    for (int r = 0; r < RANKS; r++)
        if (r != VICTIM)
            assert_int_equal(team_await(team, r, ENV_BACK), 0);
    for (int r = 0; r < RANKS; r++)
        team_tell(team, r, ENV_END);
    assert_int_equal(team_end(team), 0);
    assert_true(WIFSIGNALED(team->status[VICTIM]) && WTERMSIG(team->status[VICTIM]) == SIGABRT);
    for (int r = 0; r < RANKS; r++) {
        const struct team_rank *rank = &team->rank[r];
        if (r == VICTIM)
            continue;
        assert_int_equal(rank->error[0], -EOWNERDEAD);
        assert_non_null(strstr(rank->report, "SIGABRT"));
        assert_int_equal(rank->failed_count, 1);
        assert_int_equal(rank->failed[0], VICTIM);
    }
    return took;
}

/* In a core are the rank's own memory and the control pages of the arena, which say what everybody
 * did, and nothing of the spans. */
static void a_core_has_no_spans(void **state)
{
    (void)state;
    struct env_traces before;
    struct team *team;
    need_cores();
    env_look(&before);
    scene.mib = 4;
    dump(&team);
    bool written = WCOREDUMP(team->status[VICTIM]);
    const struct team_rank *victim = &team->rank[VICTIM];
    int fd = written ? open_core() : -1;
    if (written) {
        assert_true(fd >= 0);
        assert_int_equal(dumped(fd, victim->number[1], 4 * MIB), 4 * MIB);
        assert_int_equal(dumped(fd, victim->number[2], 4096), 4096);
        assert_int_equal(dumped(fd, victim->number[3], victim->number[4]), 0);
        assert_true(victim->number[0] > victim->number[3]
                    && victim->number[0] < victim->number[3] + victim->number[4]);
        close(fd);
    }
    remove_cores();
    team_free(team);
    env_expect_nothing_new(&before);
    if (!written)
        skip_because("no core was written");
}

/* Nobody waits until a large core is written: at their return the others see the victim still
   at it. Where it is written too quickly there is nothing to see, so a quick one proves nothing
   and is said. */
static void a_large_core_is_not_waited_for(void **state)
{
    (void)state;
    struct env_traces before;
    struct team *team;
    const uint64_t slow = UINT64_C(2000000000);
    need_cores();
    env_look(&before);
    scene.mib = getenv("TUTTI_PROVE") ? 2048 : 512;
    if (memory_available() / MIB < 4 * scene.mib)
        scene.mib = memory_available() / MIB / 4;
    uint64_t took = dump(&team);
    int seen = 0;
    for (int r = 0; r < RANKS; r++)
        seen += r != VICTIM && team->rank[r].number[0];
    bool written = WCOREDUMP(team->status[VICTIM]);
    print_message("a core of %zu MiB%s, in %.1f s; %d of %d were back before its end\n", scene.mib,
                  written ? "" : " was not written", (double)took / 1e9, seen, RANKS - 1);
    remove_cores();
    team_free(team);
    env_expect_nothing_new(&before);
    if (written && took > slow)
        assert_int_equal(seen, RANKS - 1);
}

int main(void)
{
    env_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_private_memory), cmocka_unit_test(out_of_memory_in_the_arena),
        cmocka_unit_test(a_large_piece_is_refused), cmocka_unit_test(out_of_memory_in_an_operation),
        cmocka_unit_test(no_room_in_dev_shm), cmocka_unit_test(a_core_has_no_spans),
        cmocka_unit_test(a_large_core_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
