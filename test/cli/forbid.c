/* forbid CALL[,CALL...] PROGRAM [ARGUMENT...]: runs it where these system calls fail with EPERM, as
 * container profiles make them fail. "seal" is fcntl with F_ADD_SEALS alone. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS_MOST = 16, EACH = 5 };

/* From 424 on the numbers are the same on every architecture. */
static const struct call { const char *name; unsigned number, second; } calls[] = {
    { "memfd_create", SYS_memfd_create, 0 }, { "io_uring_setup", 425, 0 }, { "pidfd_open", 434, 0 },
    { "futex_waitv", 449, 0 }, { "cachestat", 451, 0 }, { "seal", SYS_fcntl, F_ADD_SEALS },
};

static const struct call *call_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!strcmp(calls[i].name, name))
            return &calls[i];
    fprintf(stderr, "forbid: unknown call %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
#define LOAD(what) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
#define IF(value, no) (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, no)
#define RETURN(value) (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value)
    struct sock_filter filter[EACH * CALLS_MOST + 1];
    unsigned short n = 0;
    if (argc < 3)
        return 2;
    for (char *s = strtok(argv[1], ","); s && n < EACH * CALLS_MOST; s = strtok(NULL, ",")) {
        const struct call *call = call_of(s);
        filter[n++] = LOAD(offsetof(struct seccomp_data, nr));
        filter[n++] = IF(call->number, call->second ? 3 : 1);
        if (call->second) {
            filter[n++] = LOAD(offsetof(struct seccomp_data, args[1]));
            filter[n++] = IF(call->second, 1);
        }
        filter[n++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
    }
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog program = { n, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;                                   /* no filters here */
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
