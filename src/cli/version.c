/* tutti version: of the library, which is linked into the command, so the two cannot differ, and
 * the commit that they were built from. */
#include "cli/verb.h"

#include <stdio.h>
#include <string.h>
#include <tutti.h>

#ifndef TUTTI_COMMIT                    /* a variant that a test builds */
#define TUTTI_COMMIT ""
#endif

int verb_version(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        printf("usage: tutti version\n");
    else if (argc > 1)
        return verb_refuse("version", "there is nothing to say about '%.40s'", argv[1]);
    else
        printf("tutti %s%s\n", tutti_version(), TUTTI_COMMIT);
    return fflush(stdout) == 0 ? 0 : 1;
}
