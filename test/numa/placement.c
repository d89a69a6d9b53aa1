/* The program behind the tests here: `placement jobs FILE` runs a job with each way of binding,
 * each of four ranks that look where their memory lies; FILE is made first. As the first process of
 * a machine (/init DOCTOR) it sets up what is missing there, does the same, lets DOCTOR, the
 * command tutti, say what it sees, and switches the machine off. */
#include "pages.h"
#include "rank.h"

#include "launch/supervisor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 4, SKIPPED = 77, NEEDS_KIB = 200 << 10 };

static bool run_job(char *self, const char *bind, enum job_bind how, char *file)
{
    char word[8];
    snprintf(word, sizeof word, "%s", bind);
    char *argv[] = { self, (char[]){ "rank" }, word, file, NULL };
    struct job job = {
        .size = RANKS, .bind = how, .timeout_ms = 300000, .grace_ms = 5000, .argv = argv
    };
    bool fine = supervisor_run(&job) == 0;
    printf("%s: --bind %s\n", fine ? "fine" : "WRONG", bind);
    fflush(stdout);
    return fine;
}

/* The ranks bind themselves, by what the environment says in the place of options.flags. */
static bool run_by_flags(char *self, char *file)
{
    setenv("TUTTI_FLAGS", "bind_core", 1);
    printf("by TUTTI_FLAGS\n");
    bool fine = run_job(self, "core", JOB_BIND_NONE, file);
    setenv("TUTTI_FLAGS", "bind_numa", 1);
    fine &= run_job(self, "numa", JOB_BIND_NONE, file);
    unsetenv("TUTTI_FLAGS");
    return fine;
}

/* With the launcher itself on the last node: all memory of the job is there. */
static bool run_on_one_node(char *self, char *file, uint64_t nodes)
{
    cpu_set_t all, here;
    int node = 63 - __builtin_clzll(nodes);
    sched_getaffinity(0, sizeof all, &all);
    pages_node_cpus(node, &here);
    CPU_AND(&here, &here, &all);
    sched_setaffinity(0, sizeof here, &here);
    printf("all ranks on node %d\n", node);
    bool fine = run_job(self, "none", JOB_BIND_NONE, file);
    sched_setaffinity(0, sizeof all, &all);
    return fine;
}

static void make_file(const char *path)
{
    char *data = malloc(PLACEMENT_FILE_BYTES);
    FILE *f = fopen(path, "we");
    memset(data, 7, PLACEMENT_FILE_BYTES);
    if (!f || fwrite(data, 1, PLACEMENT_FILE_BYTES, f) != PLACEMENT_FILE_BYTES || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
    free(data);
}

/* A node that is full has its memory elsewhere, which is no fault; and where the questions are
 * forbidden nothing can be said. */
static int look_ahead(uint64_t nodes)
{
    static _Alignas(PAGE) char page[PAGE];
    uint64_t none;
    int node, error;
    for (int i = 0; i < NODES; i++)
        if ((nodes >> i & 1) && pages_free_kib(i) && pages_free_kib(i) < NEEDS_KIB) {
            printf("skipped: node %d has less than %d MiB free\n", i, NEEDS_KIB >> 10);
            return SKIPPED;
        }
    page[0] = 1;
    error = pages_look(page, PAGE, &node);
    if (error < 0 || pages_policy(NULL, &none) < 0) {
        printf("skipped: move_pages and get_mempolicy are not to be had here (a container's "
               "profile?)\n");
        return SKIPPED;
    }
    return 0;
}

static int run_jobs(char *self, char *file)
{
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    uint64_t nodes = pages_nodes_of(&all);
    int skipped = look_ahead(nodes);
    if (skipped)
        return skipped;
    printf("nodes: %d\n", __builtin_popcountll(nodes));
    make_file(file);
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
    bool fine = run_job(self, "numa", JOB_BIND_NUMA, file);
    fine &= run_job(self, "core", JOB_BIND_CORE, file);
    fine &= run_job(self, "none", JOB_BIND_NONE, file);
    fine &= run_by_flags(self, file);
    fine &= run_job(self, "asked", JOB_BIND_NONE, file);
    if (__builtin_popcountll(nodes) > 1)
        fine &= run_on_one_node(self, file, nodes);
    unlink(file);
    printf("%s\n", fine ? "all memory is where it belongs" : "WRONG");
    return fine ? 0 : 1;
}

/* The C library asks /sys and /proc early: so once more from the beginning, with both there. */
static int boot(char *self, char *doctor)
{
    static const char *const kinds[][2] = { { "proc", "/proc" },
                                            { "sysfs", "/sys" },
                                            { "devtmpfs", "/dev" } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        mkdir(kinds[i][1], 0755);
        mount(kinds[i][0], kinds[i][1], kinds[i][0], 0, NULL);
    }
    setenv("PATH", "/", 1);
    execl(self, self, "guest", doctor, (char *)NULL);
    return 1;
}

static int guest(char *self, char *doctor)
{
    struct job job = {
        .size = 1, .timeout_ms = 60000, .argv = (char *[]){ doctor, (char[]){ "doctor" }, NULL }
    };
    supervisor_run(&job);
    run_jobs(self, (char[]){ "/file" });
    fflush(stdout);
    sync();
    return reboot(RB_POWER_OFF);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getpid() == 1)
        return boot(argv[0], argv[1]);
    if (argc == 3 && !strcmp(argv[1], "guest") && getpid() == 1)
        return guest(argv[0], argv[2]);
    if (argc == 3 && !strcmp(argv[1], "jobs"))
        return run_jobs(argv[0], argv[2]);
    if (argc == 4 && !strcmp(argv[1], "rank"))
        return rank_run(argv[2], argv[3]);
    fprintf(stderr, "usage: %s jobs FILE\n", argv[0]);
    return 2;
}
