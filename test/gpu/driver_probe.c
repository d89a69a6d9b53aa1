/* As a room above would ask, once with a place for words and once without. */
#include "driver_probe.h"

#include "support/scratch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

char words[1024];

int opens(const struct driver **driver)
{
    struct text why = TEXT_IN(words);
    text_clear(&why);
    return driver_open(driver, &why);
}

int asks(const void *at, struct driver_pointer *p)
{
    struct text why = TEXT_IN(words);
    text_clear(&why);
    return driver_pointer(at, p, &why);
}

void *load_copy(const char *file)
{
    char path[512];
    void *library = NULL;
    int from = open(file, O_RDONLY);
    int to = mkstemp(scratch_name(path, sizeof path, "load"));
    if (from >= 0 && to >= 0 && sendfile(to, from, NULL, 1 << 24) > 0)
        library = dlopen(path, RTLD_NOW);
    if (to >= 0)
        unlink(path);
    close(from);
    close(to);
    return library;
}

/* One of glibc's own. */
void *load_another(void)
{
    void *map, *real = dlopen("libanl.so.1", RTLD_LAZY);
    if (!real || dlinfo(real, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    return load_copy(((struct link_map *)map)->l_name);
}

int refused(void)
{
    const struct driver *driver;
    struct driver_pointer p;
    for (int i = 0; i < 2; i++) {
        IS(opens(&driver), -atoi(getenv("RESULT")));
        SAYS(getenv("SAY"));
        SAYS(getenv("SAY2"));
        OK(asks(words, &p));
        IS(p.memory, DRIVER_HOST);
    }
    IS(driver_open(&driver, NULL), -atoi(getenv("RESULT")));
    return 0;
}
