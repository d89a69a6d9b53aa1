/* fstat tells files, sockets and memory apart; from Linux 6.9 on also processes. Descriptors
 * without an inode of their own (eventfd, io_uring, older pidfds) share one inode: for these the
 * kernel's name of the kind and the number in /proc are compared. Without /proc they all look
 * alike, and count as unchanged; so does a descriptor that fstat may not look at. A reaped process
 * has no number any more: only the kind is compared.
 * Cost: in kept.h. */
#include "os/kept.h"

#include "base/text.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNKNOWN UINT64_MAX             /* the system does not say: counts as unchanged */

enum { PATH_ROOM = 64, KIND_ROOM = 64, INFO_ROOM = 1024 };

/* least: a smaller number is of no file that can be told from others. */
static const struct { const char *kind, *name; long long least; } numbered[] = {
    { "anon_inode:[pidfd]", "\nPid:", 1 },
    { "anon_inode:[eventfd]", "\neventfd-id:", 0 },
};

static uint64_t number_of(int fd, const char *kind)
{
    char path_room[PATH_ROOM], info[INFO_ROOM];
    struct text path = TEXT_IN(path_room);
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++) {
        if (strcmp(kind, numbered[i].kind))
            continue;
        text_add(&path, "/proc/thread-self/fdinfo/%d", fd);
        if (file_read(path_room, info, sizeof info) <= 0)
            return 0;
        const char *at = strstr(info, numbered[i].name);
        long long number = at ? strtoll(at + strlen(numbered[i].name), NULL, 10) : -1;
        return number >= numbered[i].least ? (uint64_t)number + 1 : 0;
    }
    return 0;
}

struct kept kept_of(int fd)
{
    char path_room[PATH_ROOM], kind[KIND_ROOM] = "";
    struct text path = TEXT_IN(path_room);
    struct stat st;
    if (fd < 0)
        return KEPT_NONE;
    if (fstat(fd, &st) != 0)
        return errno == EBADF ? KEPT_NONE : (struct kept){ fd, UNKNOWN, 0 };
    uint64_t number = 0;
    if ((st.st_mode & S_IFMT) == 0) {
        text_add(&path, "/proc/thread-self/fd/%d", fd);
        if (readlink(path_room, kind, sizeof kind - 1) > 0)
            number = number_of(fd, kind);
    }
    uint64_t words[] = { st.st_dev, st.st_ino, st.st_mode & S_IFMT };
    return (struct kept){
        fd, text_hash(kind, strlen(kind), text_hash((const char *)words, sizeof words, 0)), number
    };
}

bool kept_is(const struct kept *kept)
{
    if (kept->fd < 0)
        return false;
    struct kept now = kept_of(kept->fd);
    if (now.fd >= 0 && (now.file == UNKNOWN || kept->file == UNKNOWN))
        return true;
    return now.fd >= 0 && now.file == kept->file
        && (now.number == kept->number || !now.number || !kept->number);
}

int kept_fd(const struct kept *kept) { return kept_is(kept) ? kept->fd : -EBADF; }

void kept_close(struct kept *kept)
{
    if (kept_is(kept))
        close(kept->fd);
    *kept = KEPT_NONE;
}
