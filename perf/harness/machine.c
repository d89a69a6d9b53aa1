/* Read from /proc and uname at every run: a figure without its machine is worth nothing. */
#include "harness/machine.h"

#include "os/cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

static void cpu_name(char *to, size_t room)
{
    char line[256];
    snprintf(to, room, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(to, room, "%s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
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
    snprintf(m->build, sizeof m->build, "%.80s", "C compiler " __VERSION__);
    strftime(m->date, sizeof m->date, "%Y-%m-%d %H:%M", localtime_r(&now, &tm));
}
