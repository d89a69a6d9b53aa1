/* Read from /proc and uname at every run: a figure without its machine is worth nothing. */
#include "harness/machine.h"

#include "os/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <tutti.h>

#ifndef TUTTI_COMMIT                    /* the command is not built */
#define TUTTI_COMMIT ""
#endif

/* With family and model, where there are any: a hypervisor may call several of them by one name. */
static void cpu_name(char *to, size_t room)
{
    char line[256], name[64] = "unknown processor";
    int family = -1, model = -1;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && line[0] != '\n') {   /* the first processor's */
        sscanf(line, "cpu family : %d", &family);
        sscanf(line, "model : %d", &model);
        sscanf(line, "model name : %63[^\n]", name);
    }
    if (f)
        fclose(f);
    if (family >= 0 && model >= 0)
        snprintf(to, room, "%s (family %d, model %d)", name, family, model);
    else
        snprintf(to, room, "%s", name);
}

/* user nice system idle iowait irq softirq steal: all but idle and iowait is somebody's work, or
 * time that a hypervisor gave to others. */
static void add_times(const char *stat, const uint64_t *cpus, int n, double sign, double *work,
                      double *all)
{
    for (const char *line = stat; line; line = strchr(line, '\n')) {
        unsigned cpu;
        unsigned long long t[8] = { 0 };
        line += *line == '\n';
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
                   &t[3], &t[4], &t[5], &t[6], &t[7]) < 5
            || cpu / 64 >= (unsigned)n || !(cpus[cpu / 64] >> cpu % 64 & 1))
            continue;
        for (int i = 0; i < 8; i++) {
            *all += sign * (double)t[i];
            *work += i == 3 || i == 4 ? 0 : sign * (double)t[i];
        }
    }
}

double machine_busy_between(const char *before, const char *after, const uint64_t *cpus, int n)
{
    double work = 0, all = 0;
    add_times(before, cpus, n, -1, &work, &all);
    add_times(after, cpus, n, 1, &work, &all);
    return all > 0 && work > 0 ? work / all : 0;
}

static void read_stat(char *to, size_t room)
{
    FILE *f = fopen("/proc/stat", "r");
    size_t n = f ? fread(to, 1, room - 1, f) : 0;
    to[n] = 0;
    if (f)
        fclose(f);
}

double machine_busy(void)
{
    enum { WORDS = 16, ROOM = 256 << 10 };
    uint64_t cpus[WORDS] = { 0 };
    struct timespec pause = { 0, 200000000 };
    char *before = malloc(ROOM), *after = malloc(ROOM);
    double busy = 0;
    if (before && after && cpu_mask(cpus, WORDS) > 0) {
        read_stat(before, ROOM);
        nanosleep(&pause, NULL);
        read_stat(after, ROOM);
        busy = machine_busy_between(before, after, cpus, WORDS);
    }
    free(before);
    free(after);
    return busy;
}

void machine_describe(struct machine *m)
{
    struct utsname u;
    time_t now = time(NULL);
    struct tm tm;
    memset(m, 0, sizeof *m);
    cpu_name(m->cpu, sizeof m->cpu);
    m->cpus = cpu_allowed();
    if (uname(&u) == 0)
        snprintf(m->system, sizeof m->system, "%.40s %.60s %.40s", u.sysname, u.release, u.machine);
    snprintf(m->version, sizeof m->version, "tutti %s%s", tutti_version(), TUTTI_COMMIT);
    snprintf(m->build, sizeof m->build, "%.80s", "C compiler " __VERSION__);
    strftime(m->date, sizeof m->date, "%Y-%m-%d %H:%M", localtime_r(&now, &tm));
}
