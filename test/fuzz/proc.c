/* What is read of /proc and of control groups: lines of maps, a process's stat, the list of groups,
 * files of limits. */
#include "os/maps.c"
#include "os/process.c"

#include "fuzz.h"
#include "os/cgroup.h"

#include <sys/mman.h>

static void try_maps(char *text)
{
    struct mapping m;
    if (parse(text, &m)) {
        what_else(&m, m.from);
        FUZZ_MUST(memchr(m.name, 0, sizeof m.name));
    }
}

static void try_stat(const char *text)
{
    struct facts facts = { .state = 0 };
    if (parse_facts(text, &facts) == 0) {
        FUZZ_MUST(memchr(facts.name, 0, sizeof facts.name));
        state_word(facts.state);
    }
}

static void look(const char *dir, void *arg)
{
    size_t *most = arg;
    FUZZ_MUST(!strncmp(dir, "/root", 5));
    for (const char *name = dir + 1; *name; name += *name == '/') {
        size_t len = strcspn(name, "/");
        /* "..x" and "cpu,.." are names like any other */
        FUZZ_MUST(len != 2 || memcmp(name, "..", 2) != 0);
        name += len;
    }
    *most += strlen(dir);
}

static void try_groups(const char *text)
{
    size_t sum = 0;
    cgroup_walk("/root", text, "cpu", look, &sum);
    FUZZ_MUST(sum > 0);
}

static void try_limit(const char *text)
{
    char name[24];
    long long value = 0, rest = 0;
    int fd = memfd_create("limit", MFD_CLOEXEC);
    FUZZ_MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(name, sizeof name, "%d", fd);
    cgroup_number("/proc/self/fd", name, &value, &rest);
    cgroup_number("/proc/self/fd", name, &value, NULL);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    uint8_t which = feed_byte(&feed);
    char *text = feed_text(&feed, feed.left);
    switch (which % 4) {
    case 0: try_maps(text); break;
    case 1: try_stat(text); break;
    case 2: try_groups(text); break;
    default: try_limit(text); break;
    }
    free(text);
    return 0;
}
