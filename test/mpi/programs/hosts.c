/* Ranks on several hosts: what is large, and what goes wrong. Each rank writes what it was told to
 * a file of its own, FOLDER/RANK: a host that is cut off has no other way. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 500001 };
#ifdef OMPI_MAJOR_VERSION
#define OPEN_MPI_4 (OMPI_MAJOR_VERSION < 5)
#else
#define OPEN_MPI_4 0
#endif
#define WORLD MPI_COMM_WORLD
static int rank, size, wrong;
static const char *folder;

#define CHECK(x) \
    do { \
        if (!(x)) { \
            fprintf(stderr, "hosts.c:%d: rank %d: not so\n", __LINE__, rank); \
            wrong = 1; \
        } \
    } while (0)

static uint64_t hashed(const void *at, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)at)[i]) * UINT64_C(1099511628211);
    return h;
}

/* Hosts are namespaces of one machine, whose clock they share. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* It goes wrong now. */
static void began(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/began", folder);
    FILE *f = fopen(path, "w");
    fprintf(f, "%.6f", now());
    fclose(f);
}

/* What this rank was told is written down, and how long after it went wrong. */
static void told(const char *what, int r)
{
    char path[4096], whole[4096];
    int class = 0;
    double since = 0, at = now();
    snprintf(path, sizeof path, "%s/began", folder);
    FILE *b = fopen(path, "r");
    if (b && fscanf(b, "%lf", &since) == 1)
        since = at - since;
    if (b)
        fclose(b);
    MPI_Error_class(r, &class);
    snprintf(path, sizeof path, "%s/of.%d", folder, rank);
    snprintf(whole, sizeof whole, "%s/%d", folder, rank);
    FILE *f = fopen(path, "w");
    fprintf(f, "%s: %s\n", what, class == MPI_SUCCESS ? "nothing"
            : class == MPI_ERR_TRUNCATE               ? "MPI_ERR_TRUNCATE"
                                                      : "an error");
    if (b)
        fprintf(f, "after %.3f s\n", since);
    fclose(f);
    rename(path, whole);
}

/* Pieces of which the last one is odd; sums whose bits depend on the order of folding. */
static void large(void)
{
    double *a = malloc(LARGE * sizeof *a), *b = malloc(LARGE * sizeof *b);
    int *n = calloc((size_t)size * 2, sizeof *n), *at = n + size;
    for (int i = 0; i < LARGE; i++)
        a[i] = 1.0 / (1 + (i * 7 + rank * 13) % 1000);
    MPI_Allreduce(a, b, LARGE, MPI_DOUBLE, MPI_SUM, WORLD);
    uint64_t mine = hashed(b, LARGE * sizeof *b), all[2] = { 0, 0 };
    for (int i = 0; i < LARGE; i += 1 + i / 50) {
        double sum = 0;
        for (int p = 0; p < size; p++)
            sum += 1.0 / (1 + (i * 7 + p * 13) % 1000);
        CHECK(b[i] - sum < 1e-12 && sum - b[i] < 1e-12);
    }
    PMPI_Allreduce(&mine, &all[0], 1, MPI_UINT64_T, MPI_MIN, WORLD);
    PMPI_Allreduce(&mine, &all[1], 1, MPI_UINT64_T, MPI_MAX, WORLD);
    CHECK(all[0] == all[1]);
    for (int root = 0; root < size; root++) {
        memset(b, 0, LARGE * sizeof *b);
        MPI_Reduce(a, b, LARGE, MPI_DOUBLE, MPI_SUM, root, WORLD);
        CHECK(rank != root || hashed(b, LARGE * sizeof *b) == mine);
        for (int i = 0; i < LARGE; i++)
            b[i] = rank == root ? i + root : -1;
        MPI_Bcast(b, LARGE, MPI_DOUBLE, root, WORLD);
        for (int i = 0; i < LARGE; i += 777)
            CHECK(b[i] == i + root);
        CHECK(b[LARGE - 1] == LARGE - 1 + root);
    }
    for (int p = 0, end = 0; p < size; p++) {        /* uneven, the last takes the rest */
        n[p] = p == size - 1 ? LARGE - end : LARGE / (size + 1) - p;
        at[p] = end;
        end += n[p];
    }
    MPI_Reduce_scatter(a, b, n, MPI_DOUBLE, MPI_SUM, WORLD);
    memmove(b + at[rank], b, sizeof *b * (size_t)n[rank]);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, b, n, at, MPI_DOUBLE, WORLD);
    CHECK(hashed(b, LARGE * sizeof *b) == mine);
    MPI_Allreduce(MPI_IN_PLACE, a, LARGE, MPI_DOUBLE, MPI_SUM, WORLD);
    CHECK(hashed(a, LARGE * sizeof *a) == mine);
    if (rank == 0)
        printf("bits %016llx\n", (unsigned long long)mine);
    free(a);
    free(b);
    free(n);
}

/* What rank 0 writes to the second host meets a leader that dies then; of scene `pipe`: it has gone
 * through, and the next write breaks; of scene `full`: nothing of it has gone. libtutti-mpi calls
 * this function for Open MPI, which reads what others have sent between two calls. */
static const char *writes;
static volatile bool broke;

static void ready_path(char path[4096])
{
    snprintf(path, 4096, "%s/ready", folder);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    char path[4096];
    struct pollfd end = { .fd = fd, .events = POLLRDHUP };
    if (!writes || !(flags & MSG_NOSIGNAL))
        return syscall(SYS_sendmsg, fd, m, flags);
    ready_path(path);
    fclose(fopen(path, "w"));
    if (!strcmp(writes, "full")) {
        errno = EAGAIN;
        return -1;
    }
    writes = NULL;
    poll(&end, 1, -1);
    end.events = 0;
    while (syscall(SYS_sendmsg, fd, m, flags) >= 0 || errno == ECONNRESET)
        poll(&end, 1, -1);
    int why = errno;
    fprintf(stderr, "rank 0 wrote to who had died: %s\n", strerror(why));
    broke = true;
    errno = why;
    return -1;
}

/* What this rank says is kept in a file: the launcher may be ended before it hands that on. */
static void kept(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/said.%d", folder, rank);
    dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
}

/* Rank 0 is about to call, or the leader to die. */
static void at_write(const char *how, bool dies)
{
    char path[4096];
    if (rank == 0)
        writes = how;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!strcmp(how, "pipe"))
        pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    ready_path(path);
    while (dies && access(path, F_OK) < 0)
        sched_yield();
}

/* Scene `pipe beside`: a message of a thread meets the broken pipe, while none is in a collective.
 * Open MPI 4 does not come back from its event loop after that, and rank 0 stays as it is. */
static void *sends(void *to)
{
    int x = 0, flag;
    MPI_Request sent;
    MPI_Isend(&x, 1, MPI_INT, *(int *)to, 8, WORLD, &sent);
    while (!broke)
        MPI_Iprobe(MPI_ANY_SOURCE, 9, WORLD, &flag, MPI_STATUS_IGNORE);
    return NULL;
}

/* Scene `end`: Open MPI ends rank 0 in a thread that is in no call, while another is in one. */
static void *ends(void *unused)
{
    char path[4096];
    void (*end)(int, const char *, ...);
    ready_path(path);
    while (access(path, F_OK) < 0)
        sched_yield();
    *(void **)&end = dlsym(RTLD_DEFAULT, "ompi_rte_abort");
    end(1, "by another thread");
    return unused;
}

static void at_end(void)
{
    pthread_t thread;
    at_write("full", false);
    if (rank == 0)
        CHECK(pthread_create(&thread, NULL, ends, NULL) == 0);
}

/* A connection of this process to the second host. */
static bool connected(int fd)
{
    struct sockaddr_in at;
    socklen_t n = sizeof at;
    return getpeername(fd, (struct sockaddr *)&at, &n) == 0 && at.sin_family == AF_INET
        && at.sin_addr.s_addr == inet_addr("10.77.0.2");
}

/* Scene `gone`: rank 0 sends to a leader when the MPI has seen that leader's end, and given a
 * connection up. */
static void until_gone(void)
{
    bool had[1024];
    char path[4096];
    int flag, given_up = 0;
    for (int fd = 0; fd < 1024; fd++)
        had[fd] = connected(fd);
    ready_path(path);
    fclose(fopen(path, "w"));
    while (!given_up) {
        PMPI_Iprobe(MPI_ANY_SOURCE, 9, WORLD, &flag, MPI_STATUS_IGNORE);
        for (int fd = 0; fd < 1024; fd++)
            given_up += had[fd] && !connected(fd);
    }
}

/* A leader of the second host, or one who does not lead. */
static bool beside;                                  /* another thread sends to it before */
static void loss(const char *how)
{
    pthread_t thread;
    int victim = !strcmp(how, "follower") ? size - 1 : size / 2, r = MPI_SUCCESS;
    double *a = calloc(LARGE, sizeof *a);
    char path[4096];
    for (int i = 0; r == MPI_SUCCESS && i < 10000; i++) {
        if (i == 5 && (!strcmp(how, "pipe") || !strcmp(how, "full")))
            at_write(how, rank == victim);
        if (i == 5 && beside && rank == 0) {
            CHECK(pthread_create(&thread, NULL, sends, &victim) == 0);
            pthread_join(thread, NULL);
#if OPEN_MPI_4
            told("a write", MPI_ERR_OTHER);
            return;
#endif
        }
        if (i == 5 && !strcmp(how, "end"))
            at_end();
        if (i == 5 && !strcmp(how, "gone") && rank == 0)
            until_gone();
        ready_path(path);
        while (i == 5 && !strcmp(how, "gone") && rank == victim && access(path, F_OK) < 0)
            sched_yield();
        if (i == 5 && rank == victim)
            began();
        if (i == 5 && rank == victim && strcmp(how, "cut") && strcmp(how, "end"))
            raise(!strcmp(how, "stop") ? SIGSTOP : SIGKILL);
        if (i == 5 && rank == victim && !strcmp(how, "cut")) {
            snprintf(path, sizeof path, "%s/cut", folder);
            fclose(fopen(path, "w"));
        }
        r = MPI_Allreduce(MPI_IN_PLACE, a, i % 2 ? LARGE : 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
    sigset_t left;
    sigpending(&left);
    if (!strcmp(how, "pipe"))
        CHECK(sigismember(&left, SIGPIPE) == 0);
    told(wrong ? "a signal is left" : "Allreduce", wrong ? MPI_SUCCESS : r);
}

/* SIGPIPE is the program's own also in a call: one that comes to rank 0 runs its handler; one that
 * it holds back is held back still, and so is no other. */
static volatile sig_atomic_t pipes;
static void piped(int sig) { pipes += sig == SIGPIPE; }

static void signals(void)
{
    int pid = (int)getpid();
    double end = now() + 20;
    sigset_t pipe, before, after;
    MPI_Comm here;
    MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    PMPI_Bcast(&pid, 1, MPI_INT, 0, here);
    signal(SIGPIPE, piped);
    PMPI_Barrier(WORLD);
    for (int i = 0; i < 300; i++) {
        if (rank == 1)
            syscall(SYS_tgkill, pid, pid, SIGPIPE);
        MPI_Barrier(WORLD);
        while (rank == 0 && pipes <= i && now() < end)
            sched_yield();
    }
    CHECK(rank != 0 || pipes == 300);
    for (int held = 0; held < 2; held++) {
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &before);
        CHECK(sigismember(&before, SIGPIPE) == held);
        if (held)
            raise(SIGPIPE);
        MPI_Barrier(WORLD);
        pthread_sigmask(SIG_BLOCK, NULL, &after);
        CHECK(sigismember(&after, SIGPIPE) == 1);
        sigpending(&after);
        CHECK(sigismember(&after, SIGPIPE) == held);
    }
    signal(SIGPIPE, SIG_IGN);
    MPI_Comm_free(&here);
}

static void *loss_in_thread(void *how)
{
    loss(how);
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t thread;
    bool second = argc > 3 && !strcmp(argv[3], "thread");    /* the calls are another thread's */
    beside = argc > 3 && !strcmp(argv[3], "beside");
    if (second || beside)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    folder = argc > 2 ? argv[2] : "/";
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "large")) {
        signals();
        large();
        MPI_Barrier(WORLD);
        told(wrong ? "wrong" : "right", MPI_SUCCESS);
        MPI_Finalize();
        return wrong;
    }
    kept();
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(WORLD);
    if (!strncmp(argv[1], "mismatch", strlen("mismatch"))) {
        static int x[2000];
        int n = (rank < size / 2 ? 1 : 2) * (strcmp(argv[1], "mismatch") ? 1000 : 1);
        told("Allreduce", MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_INT, MPI_SUM, WORLD));
    } else if (second) {
        pthread_create(&thread, NULL, loss_in_thread, argv[1]);
        pthread_join(thread, NULL);
    } else
        loss(argv[1]);
    pause();                                         /* a launcher may end all when one ends */
}
