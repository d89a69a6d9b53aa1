/* tutti doctor --tune: finds which thresholds are better here than the built-in ones, and writes
 * the file with them for later jobs. Each team gets the same share of the time: teams that fit the
 * CPUs, then a crowded one. The file is written beside its place and then renamed: a job that
 * starts meanwhile finds the old one or the new one. */
#include "cli/doctor_tune.h"

#include "base/clock.h"
#include "base/error.h"
#include "coll/select.h"
#include "coll/tuning_file.h"
#include "os/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CROWD = 4, CROWD_MOST = 256 };

/* ---- the file -------------------------------------------------------------------------------- */

/* Makes every missing folder above the file. */
static int make_folders(const char *path)
{
    char folder[TUNED_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *s = strchr(folder + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return -errno;
        *s = '/';
    }
    return 0;
}

static int write_whole(int fd, const char *s)
{
    for (size_t n = strlen(s); n > 0;) {
        ssize_t done = write(fd, s, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        s += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

static int write_file(const char *path, const char *text)
{
    char beside[TUNED_PATH + 32];
    snprintf(beside, sizeof beside, "%s.%d.new", path, (int)getpid());
    int error = make_folders(path);
    int fd = error ? error : open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return error ? error : -errno;
    error = write_whole(fd, text);
    if (close(fd) != 0 && !error)
        error = -errno;
    if (!error && rename(beside, path) != 0)
        error = -errno;
    if (error)
        unlink(beside);
    return error;
}

static void make_file(char *file, size_t room, const char *rules)
{
    char machine[TUNED_MACHINE], date[32];
    struct text t = { file, room, 0 };
    time_t now = time(NULL);
    struct tm tm;
    tuning_file_machine(machine);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime_r(&now, &tm));
    text_clear(&t);
    text_add(&t,
             TUNED_HEAD "%s\n"
                        "# measured by tutti doctor --tune on %s; delete this file to go by what "
                        "is built in\n",
             machine, date);
    for (const char *s = rules; *s; s += strcspn(s, ";"), s += *s != 0)
        text_add(&t, "%.*s\n", (int)strcspn(s, ";"), s);
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void say_change(const struct tune_change *c)
{
    char said[300], name[40];
    struct text t = TEXT_IN(said);
    snprintf(name, sizeof name, "%s%s", kind_name(c->kind), c->crowded ? "/crowded" : "");
    text_clear(&t);
    text_add(&t, "%-23s %zu B to ", name, c->from);
    text_add_bytes(&t, c->to);
    text_add(&t, " by %s, where %s is built in: %.2f x as fast (%.2f to %.2f) at ", c->name,
             c->instead, c->gain, c->low, c->high);
    text_add_bytes(&t, c->at);
    text_add(&t, " with %d ranks", c->ranks);
    doctor_say(26, "  %s", said);
}

static void say_rules(const char *rules)
{
    for (const char *s = rules; *s; s += strcspn(s, ";"), s += *s != 0)
        doctor_say(4, "  %.*s", (int)strcspn(s, ";"), s);
}

static void keep(struct doctor *d, const char *path, const char *rules)
{
    char file[TUNED_FILE];
    make_file(file, sizeof file, rules);
    int error = write_file(path, file);
    if (error)
        doctor_wrong(d, "name another place by TUTTI_TUNED=PATH", "%s cannot be written: %s", path,
                     error_system(-error));
    else
        doctor_say(4, "written to %s; jobs that start from now on go by it", path);
}

/* ---- teams ----------------------------------------------------------------------------------- */

/* Teams of two ranks, of as many as CPUs, and a crowd. Returns their number. share: of the time. */
static int choose_teams(struct tune_team *teams, double share[TUNE_TEAMS])
{
    int cpus = cpu_allowed(), n = 0, crowd = cpus * CROWD < CROWD_MOST ? cpus * CROWD : CROWD_MOST;
    if (cpus >= 2)
        teams[n++].ranks = 2;
    if (cpus > 2)
        teams[n++].ranks = cpus < RANKS_MAX ? cpus : RANKS_MAX;
    if (crowd > cpus) {
        teams[n].ranks = crowd;
        teams[n++].crowded = true;
    }
    for (int i = 0; i < n; i++)
        share[i] = 1.0 / n;
    return n;
}

static int measure_all(struct doctor *d, struct tune_team *teams, int seconds)
{
    char said[1000];
    struct text why = TEXT_IN(said);
    double share[TUNE_TEAMS], done = 0;
    int n = choose_teams(teams, share);
    text_clear(&why);
    for (int i = 0; i < n; i++, done += share[i - 1]) {
        const struct tune_effort effort = { clock_ns() + (uint64_t)(share[i] * seconds * 1e9), done,
                                            share[i] };
        doctor_say(4, "measuring with %d ranks%s", teams[i].ranks,
                   teams[i].crowded ? ", crowded" : "");
        fflush(stdout);
        int r = tune_measure(&teams[i], &effort, &why);
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%*s\r", DOCTOR_COLUMNS - 1, "");
        if (r < 0) {
            doctor_wrong(d,
                         "tutti doctor says what this machine lacks, or which setting is in the "
                         "way",
                         "%s", said);
            return r;
        }
    }
    return n;
}

/* Returns the number of changes. It is 0, too, if there is no memory. */
static int decide(const struct tune_team *teams, int n, struct tune_change changes[TUNE_CHANGES])
{
    char ignored[100];
    struct text why = TEXT_IN(ignored);
    struct rules *rules = malloc(sizeof *rules);
    text_clear(&why);
    int found = rules && select_parse(rules, NULL, &why) == 0
        ? tune_decide(rules, teams, n, changes)
        : 0;
    free(rules);
    return found;
}

int doctor_tune(int seconds, bool dry)
{
    struct doctor d = { .wrong = 0 };
    struct tune_change changes[TUNE_CHANGES];
    char path[TUNED_PATH], rules[TUNED_RULES + 1];
    struct text t = TEXT_IN(rules);
    if (!tuning_file_path(path) && !dry) {
        doctor_wrong(&d, "unset TUTTI_TUNED, or set it to a path; or --dry-run",
                     "there is no place for a file of rules");
        return doctor_end(&d);
    }
    struct tune_team *teams = mmap(NULL, TUNE_TEAMS * sizeof *teams, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (teams == MAP_FAILED) {
        doctor_wrong(&d, "see tutti doctor", "no memory to share with ranks: %s", strerror(errno));
        return doctor_end(&d);
    }
    int n = measure_all(&d, teams, seconds), found = n > 0 ? decide(teams, n, changes) : 0;
    munmap(teams, TUNE_TEAMS * sizeof *teams);
    if (n < 0)
        return doctor_end(&d);
    for (int i = 0; i < found; i++)
        say_change(&changes[i]);
    if (!found)
        doctor_say(2, "  nothing is clearly faster here than what is built in");
    tune_write_rules(changes, found, &t);
    if (t.room - t.used < 80)
        doctor_say(4,
                   "  there is no room for more than %d bytes of rules: some of these may be left "
                   "out",
                   TUNED_RULES);
    if (dry) {
        doctor_say(2, found ? "rules, not written:" : "no rules, and nothing written");
        say_rules(rules);
    } else
        keep(&d, path, rules);
    return d.wrong ? doctor_end(&d) : fflush(stdout) != 0;
}
