/* Job: say whether the kernel is of a version or newer, for what no call tells.
 * Owns: nothing.
 * Never: is asked what a call can be asked. */
#ifndef TUTTI_OS_RELEASE_H
#define TUTTI_OS_RELEASE_H

#include <stdbool.h>

/* unknown: the answer where it does not say what version it is. Some 0.2 us. */
bool release_since(unsigned major, unsigned minor, bool unknown);

#endif
