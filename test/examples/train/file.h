/* SPDX-License-Identifier: MIT */
/* Job: whole files in and out, so that nobody ever sees half of one.
 * Never: knows what is in them. */
#ifndef TRAIN_FILE_H
#define TRAIN_FILE_H

#include <stddef.h>
#include <sys/uio.h>

/* Reads all of path into fresh memory, which the caller frees. 0 or a negative errno. */
int file_read(const char *path, void **data, size_t *bytes);

/* Writes the parts to a temporary name beside path and renames it: readers find the old file or the
 * whole new one. 0 or a negative errno. */
int file_replace(const char *path, const struct iovec parts[], int count);

/* Removes a directory and the files in it (no directories below). */
void file_remove_directory(const char *path);

#endif
