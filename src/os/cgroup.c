/* A limit holds for a group and all groups under it, so the smallest one on the whole path counts.
 * Versions 1 and 2 differ in their mount points and file names only: the walk passes each
 * directory, the callback knows the file names. A controller belongs to one hierarchy: where a line
 * of version 1 names it, version 2 does not have it.
 * Cost: an open for each file name and directory, most of them failing; each rank pays it at its
 * start. */
#include "os/cgroup.h"

#include "base/text.h"
#include "os/file.h"
#include "os/process.h"

#include <stdbool.h>
#include <string.h>

enum { PATH_ROOM = 1024, TEXT_ROOM = 8192 };

/* True: a component is "..". A name that only begins with ".." does not count. */
static bool climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
        if (at[3] == '/' || !at[3])
            return true;
    return false;
}

/* dir = mount + path, then one component less at a time, the mount itself last. */
static void loop_up(const char *mount, const char *path, size_t path_len,
                    void (*look)(const char *, void *), void *arg)
{
    char room[PATH_ROOM];
    struct text dir = TEXT_IN(room);
    text_add(&dir, "%s", mount);
    size_t mount_len = dir.used;
    text_add(&dir, "%.*s", (int)path_len, path);
    /* Longer than the buffer, or outside the namespace's root ("/../x"): nothing below the mount
     * can be named. */
    if (dir.used + 1 >= dir.room || climbs(room + mount_len))
        dir.used = mount_len;
    while (dir.used > mount_len) {
        room[dir.used] = 0;
        if (room[dir.used - 1] != '/')
            look(room, arg);
        do
            dir.used--;
        while (dir.used > mount_len && room[dir.used] != '/');
    }
    room[mount_len] = 0;
    look(room, arg);
}

static int lists(const char *names, size_t len, const char *wanted)
{
    size_t wanted_len = strlen(wanted);
    for (size_t i = 0; i < len;) {
        size_t end = i;
        while (end < len && names[end] != ',')
            end++;
        if (end - i == wanted_len && memcmp(names + i, wanted, wanted_len) == 0)
            return 1;
        i = end + 1;
    }
    return 0;
}

static void loop_mount(const char *root, const char *name, size_t name_len, const char *path,
                       size_t path_len, void (*look)(const char *, void *), void *arg)
{
    char room[PATH_ROOM];
    struct text mount = TEXT_IN(room);
    text_add(&mount, "%s%s%.*s", root, name_len ? "/" : "", (int)name_len, name);
    loop_up(room, path, path_len, look, arg);
}

/* A line is NUMBER:CONTROLLERS:PATH; version 2 has number 0 and no controllers. True: it is the
 * controller's, in this version. */
static bool loop_line(const char *root, const char *line, size_t len, int version,
                      const char *controller, void (*look)(const char *, void *), void *arg)
{
    const char *names = memchr(line, ':', len);
    if (!names)
        return false;
    names++;
    const char *path = memchr(names, ':', len - (size_t)(names - line));
    if (!path || memchr(names, '/', (size_t)(path - names)))         /* a name is one directory's */
        return false;
    size_t names_len = (size_t)(path - names);
    path++;
    size_t path_len = len - (size_t)(path - line);
    if (version == 2 && names_len == 0) {
        loop_mount(root, "", 0, path, path_len, look, arg);
        loop_mount(root, "unified", 7, path, path_len, look, arg);
        return true;
    }
    if (version == 2 || !lists(names, names_len, controller))
        return false;
    loop_mount(root, controller, strlen(controller), path, path_len, look, arg);
    if (names_len != strlen(controller))
        loop_mount(root, names, names_len, path, path_len, look, arg);
    return true;
}

void cgroup_walk(const char *root, const char *text, const char *controller,
                 void (*look)(const char *dir, void *arg), void *arg)
{
    bool found = false;
    for (int version = 1; version <= 2 && !found; version++)
        for (const char *line = text; *line;) {
            size_t len = strcspn(line, "\n");
            found |= loop_line(root, line, len, version, controller, look, arg);
            line += len + (line[len] == '\n');
        }
    if (found)
        return;
    /* no line at all (a hidden /proc): the mounted group is still a limit */
    look(root, arg);
    loop_mount(root, controller, strlen(controller), "", 0, look, arg);
}

void cgroup_walk_own(const char *controller, void (*look)(const char *dir, void *arg), void *arg)
{
    char text[TEXT_ROOM];
    file_read(PROCESS_OWN("cgroup"), text, sizeof text);
    cgroup_walk("/sys/fs/cgroup", text, controller, look, arg);
}

/* Takes the first blank-separated word off *at. */
static int take_number(char **at, long long *value)
{
    char *word = *at;
    size_t len = strcspn(word, " \n");
    *at = word + len + (word[len] != 0);
    word[len] = 0;
    int64_t v;
    if (text_parse_int(word, INT64_MIN, INT64_MAX, &v) != 0)
        return 0;
    *value = v;
    return 1;
}

int cgroup_number(const char *dir, const char *name, long long *value, long long *rest)
{
    char room[PATH_ROOM], content[128];
    struct text path = TEXT_IN(room);
    text_add(&path, "%s/%s", dir, name);
    if (file_read(room, content, sizeof content) <= 0)
        return 0;
    char *at = content;
    if (!take_number(&at, value))
        return 0;
    if (rest && !take_number(&at, rest))
        *rest = -1;
    return 1;
}
