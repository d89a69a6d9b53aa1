/* The loader knows which file an address is of. It is asked for its list: dladdr would wait for
 * whatever another thread loads. Of a program it knows only the name that it was started by, so for
 * that /proc is asked. Cost: some system calls, for reports alone. */
#include "os/own_file.h"

#include <limits.h>
#include <link.h>
#include <stdint.h>
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

static const char here[] = "";

static int holds_here(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = (uintptr_t)here - info->dlpi_addr - p->p_vaddr;
        if (p->p_type == PT_LOAD && at < p->p_memsz)
            *(const char **)name = info->dlpi_name;
    }
    return *(const char **)name != NULL;
}

void own_file(struct text *t)
{
    const char *name = NULL;
    dl_iterate_phdr(holds_here, &name);
    const char *slash = name ? strrchr(name, '/') : NULL;
    if (name && strstr(slash ? slash : name, ".so"))
        text_add(t, "%s", name);
    else
        program_file(t, getpid());
}
