/* As a room above would ask, once with a place for words and once without. */
#include "driver_probe.h"

#include <stdlib.h>

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
