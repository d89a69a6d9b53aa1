/* Version 2 counts in memory.events, version 1 in memory.oom_control, both in the group of who was
 * killed: so the first directory that has one of them decides. The root of version 2 has neither;
 * there, and without control groups, the whole machine's number counts.
 * Cost: some 40 us; when an arena is made, and after a death by SIGKILL. */
#include "os/oom.h"

#include "base/text.h"
#include "os/cgroup.h"
#include "os/file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OOM_PATH = 4096, OOM_TEXT = 16384 };

struct oom_search { bool found; uint64_t kills; };

/* "oom_kill 3", at the beginning of a line */
static bool oom_number(const char *path, uint64_t *kills)
{
    char text[OOM_TEXT];
    if (file_read(path, text, sizeof text) <= 0)
        return false;
    for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, "oom_kill ", 9)) {
            *kills = strtoull(at + 9, NULL, 10);
            return true;
        }
    return false;
}

static void oom_look(const char *dir, void *arg)
{
    struct oom_search *search = arg;
    char room[OOM_PATH];
    static const char *const names[] = { "memory.events", "memory.oom_control" };
    for (int i = 0; i < 2 && !search->found; i++) {
        struct text path = TEXT_IN(room);
        text_clear(&path);
        text_add(&path, "%s/%s", dir, names[i]);
        search->found = oom_number(room, &search->kills);
    }
}

int oom_kills_in(const char *root, const char *text, uint64_t *kills)
{
    struct oom_search search = { false, 0 };
    cgroup_walk(root, text, "memory", oom_look, &search);
    *kills = search.kills;
    return search.found;
}

uint64_t oom_kills(void)
{
    struct oom_search search = { false, 0 };
    cgroup_walk_own("memory", oom_look, &search);
    if (!search.found)
        oom_number("/proc/vmstat", &search.kills);
    return search.kills;
}
