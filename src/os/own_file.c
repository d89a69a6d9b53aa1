/* The loader knows which file an address is of. Of a program it knows only the name that it was
 * started by, so for that /proc is asked. Cost: some system calls, for reports alone. */
#include "os/own_file.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void program_file(struct text *t, pid_t pid)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof path);
    text_add(t, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : "?");
}

void own_file(struct text *t)
{
    static const char here[] = "";
    Dl_info about;
    const char *last = dladdr(here, &about) && about.dli_fname ? about.dli_fname : "";
    const char *slash = strrchr(last, '/');
    if (strstr(slash ? slash : last, ".so"))
        text_add(t, "%s", last);
    else
        program_file(t, getpid());
}
