/* Spinning helps only if every rank has a CPU of its own, so this number decides how the job waits.
 * The affinity mask says where a thread may run; a cgroup quota how much of that time it gets. A
 * container usually has the quota only.
 * Cost: one system call for the mask, some tens of small reads for the quota; once at start. */
#include "os/cpu.h"

#include "base/text.h"
#include "os/cgroup.h"
#include "os/file.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call needs room for every CPU the kernel was built for, 8,192 today. */
enum { MASK_WORDS = 512, PATH_ROOM = 96 };

static int read_mask(uint64_t mask[MASK_WORDS])
{
    memset(mask, 0, MASK_WORDS * sizeof mask[0]);
    long bytes = syscall(SYS_sched_getaffinity, 0, MASK_WORDS * sizeof mask[0], mask);
    return bytes < 0 ? -errno : 0;
}

int cpu_count_mask(const uint64_t *words, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += __builtin_popcountll(words[i]);
    return count;
}

int cpu_mask(uint64_t *words, int n)
{
    uint64_t mask[MASK_WORDS];
    if (n < 1)
        return -EINVAL;
    int error = read_mask(mask);
    if (error)
        return error;
    int shared = n < MASK_WORDS ? n : MASK_WORDS;
    memset(words, 0, (size_t)n * sizeof words[0]);
    memcpy(words, mask, (size_t)shared * sizeof words[0]);
    return cpu_count_mask(words, n);
}

static void look_quota(const char *dir, void *arg)
{
    int *least = arg;
    long long quota, period;
    if (!cgroup_number(dir, "cpu.max", &quota, &period)
        && !(cgroup_number(dir, "cpu.cfs_quota_us", &quota, NULL) && quota > 0
             && cgroup_number(dir, "cpu.cfs_period_us", &period, NULL)))
        return;
    if (quota <= 0 || period <= 0)
        return;
    long long cpus = quota / period + (quota % period != 0);
    if (cpus < *least)
        *least = (int)cpus;
}

enum { NO_QUOTA = 1 << 30 };

int cpu_quota_at(const char *root, const char *cgroup_text)
{
    int least = NO_QUOTA;
    cgroup_walk(root, cgroup_text, "cpu", look_quota, &least);
    return least == NO_QUOTA ? 0 : least;
}

int cpu_quota(void)
{
    int least = NO_QUOTA;
    cgroup_walk_own("cpu", look_quota, &least);
    return least == NO_QUOTA ? 0 : least;
}

int cpu_allowed(void)
{
    uint64_t mask[MASK_WORDS];
    int count = read_mask(mask) == 0 ? cpu_count_mask(mask, MASK_WORDS)
                                     : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int quota = cpu_quota();
    if (quota > 0 && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}

static int nth_cpu(const uint64_t *mask, int nth)
{
    for (int cpu = 0; cpu < MASK_WORDS * 64; cpu++)
        if ((mask[cpu / 64] >> (cpu % 64) & 1) && nth-- == 0)
            return cpu;
    return -ENOENT;
}

int cpu_here(void)
{
    return sched_getcpu();
}

int cpu_bind(int index)
{
    uint64_t mask[MASK_WORDS], one[MASK_WORDS] = { 0 };
    if (index < 0)
        return -EINVAL;
    int error = read_mask(mask);
    if (error)
        return error;
    int count = cpu_count_mask(mask, MASK_WORDS);
    int cpu = count > 0 ? nth_cpu(mask, index % count) : -ENOENT;
    if (cpu < 0)
        return cpu;
    one[cpu / 64] = (uint64_t)1 << (cpu % 64);
    return syscall(SYS_sched_setaffinity, 0, sizeof one, one) == 0 ? cpu : -errno;
}

/* "0-3,8\n": how many. */
static int count_list(const char *list)
{
    int count = 0;
    for (const char *at = list; *at >= '0' && *at <= '9'; at += *at == ',') {
        char *end;
        long from = strtol(at, &end, 10), to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        count += to >= from && to - from < MASK_WORDS * 64 ? (int)(to - from) + 1 : 0;
        at = end;
    }
    return count;
}

static int count_listed(const char *path)
{
    char list[4096];
    return file_read(path, list, sizeof list) > 0 ? count_list(list) : 0;
}

int cpu_machine(void)
{
    int count = count_listed("/sys/devices/system/cpu/online"), quota = cpu_quota();
    if (count < 1)
        count = (int)sysconf(_SC_NPROCESSORS_CONF);
    if (quota > 0 && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}

int cpu_siblings(void)
{
    int count = count_listed("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    return count > 0 ? count : 1;
}

/* The first of these keys in the beginning of /proc/cpuinfo: each architecture has its own. */
void cpu_model(char *name, size_t room)
{
    static const char *const keys[] = { "model name", "Model", "cpu model", "cpu", "CPU part" };
    char info[4096];
    struct text t = { name, room, 0 };
    text_clear(&t);
    file_read("/proc/cpuinfo", info, sizeof info);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (const char *line = info; *line; line += strcspn(line, "\n"), line += *line != 0) {
            size_t n = strlen(keys[k]),
                   blanks = strncmp(line, keys[k], n) ? 0 : strspn(line + n, " \t");
            if (strncmp(line, keys[k], n) || line[n + blanks] != ':')
                continue;
            const char *value = line + n + blanks + 1 + strspn(line + n + blanks + 1, " \t");
            text_add(&t, "%.*s", (int)strcspn(value, "\n"), value);
            return;
        }
    text_add(&t, "unknown processor");
}

static int cache_file(int index, const char *name, char *content, size_t room)
{
    char path_room[PATH_ROOM];
    struct text path = TEXT_IN(path_room);
    text_add(&path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    int got = file_read(path_room, content, room);
    content[strcspn(content, "\n")] = 0;
    return got;
}

#ifdef __GLIBC__
static size_t cache_by_libc(int level)
{
    static const int names[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                 _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE };
    long bytes = level >= 1 && level <= 4 ? sysconf(names[level - 1]) : 0;
    return bytes > 0 ? (size_t)bytes : 0;
}
#else
static size_t cache_by_libc(int level) { return (void)level, 0; }
#endif

/* Virtual machines often have no such directory, and the C library then asks the
 * processor itself. */
size_t cpu_cache_bytes(int level)
{
    char content[32];
    for (int index = 0; cache_file(index, "level", content, sizeof content) > 0; index++) {
        int64_t here;
        uint64_t bytes;
        if (text_parse_int(content, 1, 99, &here) != 0 || here != level)
            continue;
        if (cache_file(index, "type", content, sizeof content) <= 0
            || strcmp(content, "Instruction") == 0)
            continue;
        if (cache_file(index, "size", content, sizeof content) > 0
            && text_parse_bytes(content, &bytes) == 0)
            return (size_t)bytes;
    }
    return cache_by_libc(level);
}
