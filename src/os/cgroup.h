/* Job: walk the directories of this process's control group and of all groups above it, where
 *      limits are found.
 * Owns: nothing.
 * Never: knows the limits. For the rooms of this floor. */
#ifndef TUTTI_OS_CGROUP_H
#define TUTTI_OS_CGROUP_H

/* Calls look for each directory that may hold files of `controller` ("cpu", "memory"), in versions
   1 or 2, from the group up to the root of each mount. root: "/sys/fs/cgroup". text: content of
   /proc/self/cgroup. A directory may not exist (in a container the path is often the host's): look
   ignores files that it cannot read. */
void cgroup_walk(const char *root, const char *text, const char *controller,
                 void (*look)(const char *dir, void *arg), void *arg);

/* The same with this machine's root and this process's text. */
void cgroup_walk_own(const char *controller, void (*look)(const char *dir, void *arg), void *arg);

/* 1 and *value: the number at the beginning of dir/name; 0 if there is none ("max", no such file).
   *rest, if not NULL: the second number, or -1. */
int cgroup_number(const char *dir, const char *name, long long *value, long long *rest);

#endif
