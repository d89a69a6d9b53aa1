/* By the release's first two numbers. A system that has only the kernel's name (gVisor) tells a
 * version that it has chosen, and is taken at its word. */
#include "os/release.h"

#include <stdio.h>
#include <sys/utsname.h>

bool release_since(unsigned major, unsigned minor, bool unknown)
{
    struct utsname name;
    unsigned of = 0, at = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &of, &at) != 2)
        return unknown;
    return of > major || (of == major && at >= minor);
}
