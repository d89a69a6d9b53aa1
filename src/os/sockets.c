/* /proc/PID/net/unix has a line for each socket of that process's namespace. Every user may read
 * it; it shows no owner:
 *     Num: RefCount Protocol Flags Type St Inode Path
 * An abstract name begins with '@' there; flag 10000 means that it listens.
 * Cost: a microsecond a socket, two a process. */
#include "os/sockets.h"

#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTENS = 0x10000, NAMESPACES = 32 };

static uint64_t namespace_at(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

uint64_t sockets_namespace(pid_t pid)
{
    char path[64];
    struct text t = TEXT_IN(path);
    text_add(&t, "/proc/%d/ns/net", (int)pid);
    return namespace_at(path);
}

/* The abstract name in this line, if it listens; else NULL. Writes a 0 into the line. */
static char *listening_in(char *line)
{
    unsigned flags = 0;
    char *name = strchr(line, '@');
    if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & LISTENS))
        return NULL;
    name[strcspn(name, "\n")] = 0;
    return name + 1;
}

bool sockets_any(pid_t pid, bool (*is)(const char *name, void *arg), void *arg)
{
    char path[64], line[512];
    struct text t = TEXT_IN(path);
    text_add(&t, "/proc/%d/net/unix", (int)pid);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *name = listening_in(line);
        found = name && is(name, arg);
    }
    if (file)
        fclose(file);
    return found;
}

int sockets_elsewhere(pid_t *pids, int room)
{
    uint64_t seen[NAMESPACES] = { namespace_at("/proc/self/ns/net") };
    int known = 1, n = 0;
    DIR *proc = seen[0] ? opendir("/proc") : NULL;
    for (struct dirent *entry;
         proc && n < room && known < NAMESPACES && (entry = readdir(proc)) != NULL;) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        uint64_t its = pid > 0 ? sockets_namespace(pid) : 0;
        bool new = its != 0;
        for (int i = 0; i < known; i++)
            new &= seen[i] != its;
        if (!new)
            continue;
        seen[known++] = its;
        pids[n++] = pid;
    }
    if (proc)
        closedir(proc);
    return n;
}
