/* Job: find the memory files of a name that processes have open, and say what the system knows of
 *      these processes, from outside.
 * Owns: the list it returns; no descriptor outlives a call.
 * Never: writes anywhere, maps foreign memory, sends a signal, knows what a file holds. */
#ifndef TUTTI_OS_PROC_FILES_H
#define TUTTI_OS_PROC_FILES_H

#include "base/text.h"

#include <stdbool.h>
#include <sys/types.h>

/* One file of one process. inner: the process's pid in its own pid namespace, -1: out of sight. fd:
   its descriptor there; -1: only mapped, at `from` … `to`. */
struct proc_file {
    uint64_t device, inode;
    pid_t pid;
    int32_t inner;
    int fd;
    uint64_t from, to;
};

/* processes: those that could be looked at. refused: those of this user that could not. */
struct proc_files { struct proc_file *at; size_t n, room, processes, refused; };

/* All memfds of this name that the caller may see, each once a process, ordered by file and pid.
   thorough: also those that a process has mapped without a descriptor. 0 or -errno. */
int  proc_files_find(struct proc_files *s, const char *name, bool thorough);
void proc_files_free(struct proc_files *s);
/* Does that process map that file? */
bool proc_maps_file(pid_t pid, uint64_t device, uint64_t inode);

/* Opens the file to read it, and checks that it is still the same one. A descriptor or -errno. */
int  proc_file_open(const struct proc_file *s);

/* The value of a variable of the environment that a process was started with. 0, -ENOENT, or that
   it cannot be read. */
int  proc_environment(pid_t pid, const char *name, char *value, size_t room);
/* CPU time of one thread so far; 0: not known. */
uint64_t proc_thread_cpu(pid_t pid, pid_t tid);
/* "in futex (futex_wait_queue)": the system call and the place in the kernel where that thread is;
   "" if the system does not say. */
void proc_thread_wchan(struct text *t, pid_t pid, pid_t tid);

#endif
