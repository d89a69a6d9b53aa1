/* Job: the directories of this process's control group and of all above it, for whoever looks
 *      for a limit.
 * Owns: nothing.
 * Never: which limit. For the rooms of this floor. */
#ifndef TUTTI_OS_CGROUP_H
#define TUTTI_OS_CGROUP_H

/* Calls look for every directory that may hold files of `controller` ("cpu", "memory"), of version
   1 and of version 2 alike, from the group itself up to the root of each mount. root:
   "/sys/fs/cgroup"; text: what /proc/self/cgroup says. Directories need not exist (in a container
   the path is often the host's): look ignores what it cannot read. */
void cgroup_walk(const char *root, const char *text, const char *controller,
                 void (*look)(const char *dir, void *arg), void *arg);

/* The same with this machine's root and this process's text. */
void cgroup_walk_own(const char *controller, void (*look)(const char *dir, void *arg), void *arg);

/* 1 and *value: the number at the beginning of dir/name; 0 if there is none ("max", no such file).
   *rest, if not NULL: the second number, or -1. */
int cgroup_number(const char *dir, const char *name, long long *value, long long *rest);

#endif
