/* fork, sockets, a pipe for stderr: checked here once, so that the tests are about their
 * own subject. */
#include "child_case.h"

#include "case_device.h"

#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct cuda_api cu;
struct cuda_more cu_more;
struct fake_hooks fake;
int peer = -1;

static char said[CASE_TEXT];

static void must(int condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    abort();
}

void cases_with(char **argv, const char *folder)
{
    char path[4096];
    const char *only = getenv("TUTTI_TEST_ONLY");
    if (only)
        cmocka_set_test_filter(only);
    if (case_real()) {
        /* held streams and ours are to have a queue each */
        must(setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1) == 0, "setenv");
        return;
    }
    snprintf(path, sizeof path, "%s/%s", TEST_BUILD, folder);
    const char *now = getenv("LD_LIBRARY_PATH");
    if (now && !strcmp(now, path))
        return;
    must(setenv("LD_LIBRARY_PATH", path, 1) == 0, "setenv");
    execv("/proc/self/exe", argv);
    must(0, "execv");
}

static pid_t start(case_body *body, const char *const *environment, int to_stderr, int socket,
                   int of_other)
{
    fflush(NULL);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; environment[i]; i++) {
        char name[64];
        const char *equals = strchr(environment[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - environment[i]), environment[i]);
        setenv(name, equals + 1, 1);
    }
    dup2(to_stderr, STDERR_FILENO);
    peer = socket;
    if (of_other >= 0)
        close(of_other);                        /* or we would not hear of the other one's end */
    exit(body());
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Reads until all writers have gone, or patience has. */
static bool gather(int fd)
{
    size_t used = 0;
    double end = now_s() + CASE_PATIENCE_S;
    for (;;) {
        struct pollfd p = { fd, POLLIN, 0 };
        char rest[256];
        if (now_s() > end)
            return false;
        if (poll(&p, 1, 1000) <= 0)
            continue;
        bool full = used == sizeof said - 1;
        ssize_t n = read(fd, full ? rest : said + used,
                         full ? sizeof rest : sizeof said - 1 - used);
        if (n <= 0)
            return true;
        used += full ? 0 : (size_t)n;
        said[used] = 0;
    }
}

static int reap(pid_t pid, bool in_time)
{
    int status = 0;
    if (!in_time)
        kill(pid, SIGKILL);
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int case_run(case_body *body, const char *const *environment)
{
    int ends[2];
    said[0] = 0;
    must(pipe(ends) == 0, "pipe");
    pid_t pid = start(body, environment, ends[1], -1, -1);
    close(ends[1]);
    bool in_time = gather(ends[0]);
    close(ends[0]);
    return reap(pid, in_time);
}

int case_pair(case_body *one, case_body *other, const char *const *environment,
              int *status_of_other)
{
    int ends[2], sockets[2];
    said[0] = 0;
    must(pipe(ends) == 0, "pipe");
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
    pid_t first = start(one, environment, ends[1], sockets[0], sockets[1]);
    pid_t second = start(other, environment, ends[1], sockets[1], sockets[0]);
    close(ends[1]);
    close(sockets[0]);
    close(sockets[1]);
    bool in_time = gather(ends[0]);
    close(ends[0]);
    *status_of_other = reap(second, in_time);
    return reap(first, in_time);
}

const char *case_stderr(void)
{
    return said;
}

int case_passes(case_body *body, const char *const *environment)
{
    int status = case_run(body, environment);
    if (status)
        fprintf(stderr, "ended with %d: %s", status, said);
    return status;
}

int case_pair_passes(case_body *one, case_body *other, const char *const *environment)
{
    int second, first = case_pair(one, other, environment, &second);
    if (first || second)
        fprintf(stderr, "ended with %d and %d: %s", first, second, said);
    return first ? first : second;
}

static void look_up_all(void *library)
{
    void *found;
#define BIND_(symbol, parameters) \
    found = dlsym(library, #symbol); \
    must(found != NULL, #symbol); \
    memcpy(&cu.symbol, &found, sizeof found);
    CUDA_ALL_SYMBOLS(BIND_)
#undef BIND_
#define BIND_(symbol, parameters) \
    found = dlsym(library, #symbol); \
    must(found != NULL, #symbol); \
    memcpy(&cu_more.symbol, &found, sizeof found);
    CUDA_MORE(BIND_)
    if (case_real())
        return;
#define BIND_HOOK_(type, name, parameters) \
    found = dlsym(library, #name); \
    must(found != NULL, #name); \
    memcpy(&fake.name, &found, sizeof found);
    FAKE_HOOKS(BIND_HOOK_)
}

bool case_cuda(void)
{
    CUcontext context;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    look_up_all(library);
    return cu.cuInit(0) == 0 && cu.cuDevicePrimaryCtxRetain(&context, 0) == 0
        && cu.cuCtxSetCurrent(context) == 0;
}

/* ---- to the other one: what one end waits for, the other's death ends ------------------------ */

bool tell(const void *bytes, size_t n)
{
    return send(peer, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

bool hear(void *bytes, size_t n)
{
    return recv(peer, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

bool tell_fd(int fd)
{
    char byte = 'f';
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec io = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(peer, &message, MSG_NOSIGNAL) == 1;
}

int hear_fd(void)
{
    char byte;
    int fd = -1;
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec io = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    if (recvmsg(peer, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}
