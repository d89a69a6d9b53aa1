/* Prints the text of a kernel, for people and for ptxas:
 *     ptx_print f32 sum           to stdout
 *     ptx_print --module          all of them as one module, to stdout
 *     ptx_print --all DIRECTORY   all of them, into DIRECTORY/<kernel>.ptx, and their paths
 *                                 to stdout */
#include "fold/fold.h"
#include "gpu/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char room[PTX_ROOM];

static int write_all(const char *folder)
{
    for (int type = 0; type <= TUTTI_F8E5M2; type++)
        for (int op = 0; op <= TUTTI_PREMUL_SUM; op++) {
            struct text text = TEXT_IN(room);
            char name[PTX_NAME], path[4096];
            struct text called = TEXT_IN(name);
            int error = ptx_fold(&text, (tutti_type)type, (tutti_op)op);
            if (error)
                continue;
            ptx_name(&called, (tutti_type)type, (tutti_op)op);
            snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
            FILE *file = fopen(path, "w");
            if (!file || fputs(room, file) < 0 || fclose(file) != 0) {
                perror(path);
                return 1;
            }
            puts(path);
        }
    return 0;
}

static int write_module(void)
{
    struct text text = TEXT_IN(room);
    text_clear(&text);
    ptx_module(&text);
    fputs(room, stdout);
    for (int type = 0; type <= TUTTI_F8E5M2; type++)
        for (int op = 0; op <= TUTTI_PREMUL_SUM; op++) {
            text_clear(&text);
            if (ptx_kernel(&text, (tutti_type)type, (tutti_op)op) == 0)
                fputs(room, stdout);
        }
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    struct text text = TEXT_IN(room);
    if (argc == 2 && strcmp(argv[1], "--module") == 0)
        return write_module();
    if (argc != 3) {
        fprintf(stderr, "ptx_print TYPE OPERATION, ptx_print --module, or ptx_print --all "
                        "DIRECTORY\n");
        return 2;
    }
    if (strcmp(argv[1], "--all") == 0)
        return write_all(argv[2]);
    for (int type = 0; type <= TUTTI_F8E5M2; type++)
        for (int op = 0; op <= TUTTI_PREMUL_SUM; op++)
            if (!strcmp(argv[1], fold_type_name((tutti_type)type))
                && !strcmp(argv[2], fold_op_name((tutti_op)op))
                && ptx_fold(&text, (tutti_type)type, (tutti_op)op) == 0)
                return fputs(room, stdout) < 0;
    fprintf(stderr, "no such kernel\n");
    return 1;
}
