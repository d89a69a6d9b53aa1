/* forbid CALL[,CALL...] PROGRAM [ARGUMENT...]: runs it where these system calls fail with EPERM, as
 * container profiles make them fail. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS_MOST = 16 };

/* From 424 on the numbers are the same on every architecture. */
static const struct { const char *name; unsigned number; } calls[] = {
    { "memfd_create", SYS_memfd_create }, { "io_uring_setup", 425 }, { "pidfd_open", 434 },
    { "futex_waitv", 449 }, { "cachestat", 451 },
};

static unsigned number_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!strcmp(calls[i].name, name))
            return calls[i].number;
    fprintf(stderr, "forbid: unknown call %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    struct sock_filter filter[2 * CALLS_MOST + 2];
    unsigned short n = 0;
    if (argc < 3)
        return 2;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, nr));
    for (char *s = strtok(argv[1], ","); s && n < 2 * CALLS_MOST; s = strtok(NULL, ",")) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(s), 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { n, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;                                   /* no filters here */
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
