/* The vectors are made once. From rank to rank only four small texts in them change, so that
 * nothing stands between one fork and the next. PATH is searched here, not by each rank. So a
 * missing program is found before anything is started, and N ranks do not each try every folder.
 * Cost: a copy of the environment's pointers. */
#include "launch/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Variables that we set, and those of another launcher that would contradict them: a torch store of
 * an agent that is not there, a rank that an outer job gave this launcher. */
static const char *const replaced[] = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "TUTTI_ARENA", "TUTTI_RUN_ID", "TUTTI_RESTART", "TUTTI_RANK", "TUTTI_SIZE",
    "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
    "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",
};

/* By these a program lets its output go line by line. What the user has set stays, also to
 * nothing. */
static const char *const lines[][2] = { { "TUTTI_LINES", "1" }, { "PYTHONUNBUFFERED", "1" } };

extern char **environ;

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++) {
        size_t n = strlen(replaced[i]);
        if (!strncmp(variable, replaced[i], n) && variable[n] == '=')
            return true;
    }
    return false;
}

static int look_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return access(path, X_OK) == 0 ? 0 : -errno;
}

int program_find(char *path, size_t room, const char *name)
{
    const char *dirs = getenv("PATH");
    int found = -ENOENT;
    if (!*name || strlen(name) >= room)
        return *name ? -ENAMETOOLONG : -ENOENT;
    if (strchr(name, '/')) {
        snprintf(path, room, "%s", name);
        return look_at(path);
    }
    for (const char *dir = dirs ? dirs : "/bin:/usr/bin";; ) {
        size_t n = strcspn(dir, ":");
        if (n + strlen(name) + 2 <= room) {
            /* an empty entry is the current folder */
            snprintf(path, room, "%.*s%s%s", (int)n, dir, n ? "/" : "./", name);
            int r = look_at(path);
            if (r == 0)
                return 0;
            if (r == -EACCES)
                found = r;               /* there is one, unless a later folder has a better one */
        }
        if (!dir[n])
            return found;
        dir += n + 1;
    }
}

/* A port that was free a moment ago. Only scripts that open a store of their own use it; the ranks
 * of tutti need none. */
static unsigned free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    unsigned port = 29500;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return port;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0
        && getsockname(fd, (struct sockaddr *)&at, &len) == 0)
        port = ntohs(at.sin_port);
    close(fd);
    return port;
}

static size_t length(char *const *vector)
{
    size_t n = 0;
    while (vector && vector[n])
        n++;
    return n;
}

static char **arguments_of(size_t n)
{
    char **room = calloc(n + 2, sizeof *room);
    return room ? room + 1 : NULL;
}

static int make_arguments(struct program *p, const struct job *job)
{
    size_t n = length(job->argv);
    p->argv = arguments_of(n + 1);
    if (!p->argv)
        return -ENOMEM;
    memcpy(p->argv, job->argv, n * sizeof *p->argv);
    if (job->local_rank_arg)
        p->argv[n] = p->argument;
    return 0;
}

static int make_environment(struct program *p, const struct job *job,
                            const struct program_world *world)
{
    size_t n = length(environ), room = sizeof p->own / sizeof p->own[0] + 4, own = 0;
    p->envp = calloc(n + room, sizeof *p->envp);
    if (!p->envp)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; environ && environ[i]; i++)
        if (!is_replaced(environ[i]))
            p->envp[n++] = environ[i];
    snprintf(p->own[own++], sizeof p->own[0], "WORLD_SIZE=%d", job->size);
    snprintf(p->own[own++], sizeof p->own[0], "LOCAL_WORLD_SIZE=%d", job->size);
    snprintf(p->own[own++], sizeof p->own[0], "MASTER_ADDR=127.0.0.1");
    snprintf(p->own[own++], sizeof p->own[0], "MASTER_PORT=%u",
             job->master_port ? (unsigned)job->master_port : free_port());
    snprintf(p->own[own++], sizeof p->own[0], "TUTTI_ARENA=%d:%llu", world->arena_fd, world->inode);
    snprintf(p->own[own++], sizeof p->own[0], "TUTTI_RUN_ID=%s", world->job);
    snprintf(p->own[own++], sizeof p->own[0], "TUTTI_RESTART=%lld", (long long)world->attempt);
    snprintf(p->own[own++], sizeof p->own[0], "TORCHELASTIC_RESTART_COUNT=%lld",
             (long long)world->attempt);
    /* by this programs know torchrun */
    snprintf(p->own[own++], sizeof p->own[0], "TORCHELASTIC_RUN_ID=%.150s",
             job->run_id ? job->run_id : world->job);
    snprintf(p->own[own++], sizeof p->own[0], "TORCHELASTIC_MAX_RESTARTS=%lld",
             (long long)job->restarts);
    snprintf(p->own[own++], sizeof p->own[0], "GROUP_RANK=0");
    snprintf(p->own[own++], sizeof p->own[0], "GROUP_WORLD_SIZE=1");
    snprintf(p->own[own++], sizeof p->own[0], "ROLE_NAME=default");
    snprintf(p->own[own++], sizeof p->own[0], "ROLE_WORLD_SIZE=%d", job->size);
    for (size_t i = 0; job_gathers(job) && i < sizeof lines / sizeof lines[0]; i++)
        if (!getenv(lines[i][0]))
            snprintf(p->own[own++], sizeof p->own[0], "%s=%s", lines[i][0], lines[i][1]);
    for (size_t i = 0; i < own; i++)
        p->envp[n++] = p->own[i];
    p->envp[n++] = p->rank;
    p->envp[n++] = p->local_rank;
    p->envp[n++] = p->role_rank;
    return 0;
}

int program_make(struct program *p, const struct job *job, const struct program_world *world)
{
    p->argv = p->envp = NULL;
    int r = make_arguments(p, job);
    if (r == 0)
        r = make_environment(p, job, world);
    if (r < 0)
        program_free(p);
    return r;
}

void program_for_rank(struct program *p, int rank)
{
    snprintf(p->rank, sizeof p->rank, "RANK=%d", rank);
    snprintf(p->local_rank, sizeof p->local_rank, "LOCAL_RANK=%d", rank);
    snprintf(p->role_rank, sizeof p->role_rank, "ROLE_RANK=%d", rank);
    snprintf(p->argument, sizeof p->argument, "--local_rank=%d", rank);
}

/* What lies in the one program lies in the other, at the same place. */
static void vector_copy(struct program *to, const struct program *from, char **copy,
                        char *const *vector, size_t n)
{
    for (size_t i = 0; i <= n; i++) {
        uintptr_t place = (uintptr_t)vector[i] - (uintptr_t)from;
        copy[i] = place < sizeof *from ? (char *)to + place : vector[i];
    }
}

int program_copy(struct program *copy, const struct program *from, int rank)
{
    size_t arguments = length(from->argv), variables = length(from->envp);
    *copy = *from;
    copy->argv = arguments_of(arguments);
    copy->envp = calloc(variables + 1, sizeof *copy->envp);
    if (!copy->argv || !copy->envp) {
        program_free(copy);
        return -ENOMEM;
    }
    vector_copy(copy, from, copy->argv, from->argv, arguments);
    vector_copy(copy, from, copy->envp, from->envp, variables);
    program_for_rank(copy, rank);
    return 0;
}

void program_free(struct program *p)
{
    free(p->argv ? p->argv - 1 : NULL);
    free(p->envp);
    p->argv = p->envp = NULL;
}
