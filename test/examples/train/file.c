/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(fd, data + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -errno;
        if (got == 0) return -EIO;      /* it has become shorter since fstat */
        done += (size_t)got;
    }
    return 0;
}

static int write_all(int fd, const char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, data + done, bytes - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return -errno;
        done += (size_t)put;
    }
    return 0;
}

static int read_open(int fd, void **data, size_t *bytes)
{
    struct stat about;
    if (fstat(fd, &about) < 0) return -errno;
    if (S_ISDIR(about.st_mode)) return -EISDIR;
    size_t size = (size_t)about.st_size;
    char *memory = malloc(size ? size : 1);
    if (!memory) return -ENOMEM;
    int error = read_all(fd, memory, size);
    if (error < 0) {
        free(memory);
        return error;
    }
    *data = memory;
    *bytes = size;
    return 0;
}

int file_read(const char *path, void **data, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    int error = read_open(fd, data, bytes);
    close(fd);
    return error;
}

int file_replace(const char *path, const struct iovec parts[], int count)
{
    char temporary[PATH_MAX];
    /* The pid keeps two jobs apart that share a directory. */
    int length = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) return -ENAMETOOLONG;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return -errno;
    int error = 0;
    for (int i = 0; i < count && error == 0; i++)
        error = write_all(fd, parts[i].iov_base, parts[i].iov_len);
    if (close(fd) < 0 && error == 0) error = -errno;
    if (error == 0 && rename(temporary, path) < 0) error = -errno;
    if (error < 0) unlink(temporary);
    return error;
}

void file_remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        /* refused for "." and "..", as it should be */
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(path);
}
