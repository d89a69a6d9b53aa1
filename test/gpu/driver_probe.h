/* Job: questions to the driver's room, with their answers in words kept for the case to look at.
 * Owns: the words.
 * Never: CUDA in the test's own process. */
#ifndef TUTTI_TEST_GPU_DRIVER_PROBE_H
#define TUTTI_TEST_GPU_DRIVER_PROBE_H

#include "child_case.h"
#include "gpu/driver.h"

#include <string.h>

extern char words[1024];                             /* of the last question */

int opens(const struct driver **driver);
int asks(const void *at, struct driver_pointer *p);

/* Loads a copy of the file, whose name goes as soon as it is loaded. */
void *load_copy(const char *file);

/* Loads a library that nobody else has, a new one each time. NULL: it could not. */
void *load_another(void);

/* A case: RESULT=errno is what driver_open says, the second time, too; SAY and SAY2 are in its
 * words. Pointers are the host's. */
int refused(void);

#define SAYS(what) YES(strstr(words, what) || (fprintf(stderr, "'%s' says nothing of '%s'\n", \
                                                       words, what), false))

#endif
