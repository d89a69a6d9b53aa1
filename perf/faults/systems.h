/* Job: which systems there are, how each is started, and what the faults are called.
 * Owns: the two tables.
 * Never: runs anything but "PROGRAM --version". */
#ifndef FAULTS_SYSTEMS_H
#define FAULTS_SYSTEMS_H

#include "faults/cell.h"

enum { SYSTEMS_MAX = 16 };
extern const struct peer_system peer_systems[];
extern const int peer_system_count;

struct fault_name { const char *key, *title; };
extern const struct fault_name fault_names[FAULTS];

/* What its rank program says of its version; false: it is not built, or its launcher is not
 * installed. tutti: the path of the command. */
bool system_version(const struct peer_system *s, const char *programs, char *to, size_t room);

/* The command that starts tutti's ranks; before anything else. */
void system_tutti(const char *path);

#endif
