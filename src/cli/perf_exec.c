/* The measuring programs are beside the command in a build tree, and below libexec in an
 * installation. Both may have been moved. So the search starts from the command's own folder. */
#include "cli/perf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 2 * PATH_MAX };

int perf_exec(const char *program, char **args)
{
    static const char *const where[] = { "perf", TUTTI_TO_LIBEXEC "/tutti" };
    char here[ROOM / 2], path[ROOM];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    here[n > 0 ? n : 0] = 0;
    char *slash = strrchr(here, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", here, where[i], program);
        if (access(path, X_OK) != 0)
            continue;
        execv(path, args);
        fprintf(stderr, "tutti perf: %s: %s\n", path, strerror(errno));
        return 1;
    }
    fprintf(stderr,
            "tutti perf: the measuring program '%s' is not here; build with -DTUTTI_PERF=ON, and "
            "install all of it\n",
            program);
    return 1;
}
