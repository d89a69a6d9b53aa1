/* unsent linked | opened LIBRARY | told NUMBER: prints what a message gets for each answer of UCX:
 * UCX linked with this program; opened out of sight of others; or behind src/mpi/unsent.c here,
 * whose teller says NUMBER and is counted. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TOLD
#include "mpi/unsent.h"
#else
static void unsent_told(uintptr_t fn) { (void)fn; }
#endif

__attribute__((weak))                            /* who opens an MPI is not linked with UCX */
void *ucp_tag_send_nbx(void *to, const void *at, size_t n, uint64_t tag, const void *how);

static bool tells;
static int asked;

static bool teller(void)
{
    asked++;
    return tells;
}

int main(int argc, char **argv)
{
    static const intptr_t answers[] = { 0, 1, 4096, -1, -80, -100, -101 };
    void *(*opened)(void *) = NULL;
    if (argc > 2 && !strcmp(argv[1], "opened")) {
        void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return 2;
        *(void **)&opened = dlsym(library, "mpi_send");
    }
    if (argc > 2 && !strcmp(argv[1], "told")) {
        tells = atoi(argv[2]);
        unsent_told((uintptr_t)teller);
    }
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        void *to = (void *)answers[i];
        printf("%ld ", (long)(intptr_t)(opened ? opened(to)
                                               : ucp_tag_send_nbx(to, NULL, 0, 0, NULL)));
    }
    printf("asked %d\n", asked);
    return 0;
}
