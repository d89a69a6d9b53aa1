/* open, read, close and no stdio: these calls run while a rank waits for a dead one, and must not
 * allocate or leave a descriptor to a child. The first read generates a file of /proc, so few reads
 * also give a consistent view. Cost: three system calls. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FIRST_NUMBER = 100 };

int file_read(const char *path, char *text, size_t room)
{
    size_t used = 0;
    int error = 0;
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    while (used + 1 < room) {
        ssize_t got = read(fd, text + used, room - 1 - used);
        if (got > 0)
            used += (size_t)got;
        else if (got == 0)
            break;
        else if (errno != EINTR) {
            error = -errno;
            break;
        }
    }
    close(fd);
    text[error ? 0 : used] = 0;
    return error ? error : (int)used;
}

int file_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* A number above the limit is -EINVAL in the kernel; a lower one may still be free. */
int file_copy_up(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    if (copy < 0 && (errno == EINVAL || errno == EMFILE))
        copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy >= 0 ? copy : errno == EINVAL ? -EMFILE : -errno;
}
