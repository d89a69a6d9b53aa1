/* The settings of the environment: the launcher, and TUTTI_*. With a wrong value the first rank
 * would fail, which is late; a name that nobody reads would cause no error at all. */
#include "cli/doctor.h"

#include "engine/fault.h"
#include "api/world.h"
#include "base/guess.h"
#include "base/knob.h"
#include "base/text.h"
#include "fold/fold.h"
#include "group/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that `tutti run` sets for its ranks and that are not in the table of settings. */
static const char *const others[] = { "TUTTI_RUN_ID", "TUTTI_RESTART" };

static const char *look_up(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

/* All other options are given, so that only the flags come from the environment. */
static int read_flags(unsigned *flags, struct text *why)
{
    tutti_options given = { .job = "-",
                            .size = 1,
                            .timeout_ms = 1,
                            .join_timeout_ms = 1,
                            .warn_ms = 1,
                            .spin_us = 1,
                            .span_bytes = 65536 },
                  all;
    int r = world_options(&all, &given, why);
    *flags = r < 0 ? 0 : all.flags;
    return r;
}

/* TUTTI_RANK and TUTTI_SIZE count more than any launcher. True: they are set. */
static bool say_own(struct doctor *d, const struct launch_place *place)
{
    char ignored[8];
    int64_t rank = 0, size = 0;
    const char *job = place->job;
    if (knob_int(KNOB_SIZE, &size, ignored, sizeof ignored) != 1)
        return false;
    knob_int(KNOB_RANK, &rank, ignored, sizeof ignored);
    knob_text(KNOB_JOB, &job);
    doctor_say(2, "launcher: TUTTI_RANK and TUTTI_SIZE; this is rank %d of %d, job %s", (int)rank,
               (int)size, *job ? job : "without a name");
    if (!*job)
        doctor_wrong(d, "set TUTTI_JOB, alike for all ranks",
                     "TUTTI_SIZE is set, and nothing names the job the ranks meet under");
    if (rank >= size)
        doctor_wrong(d, "give the ranks numbers from 0 on",
                     "TUTTI_RANK=%d is no rank of TUTTI_SIZE=%d", (int)rank, (int)size);
    return true;
}

void doctor_launcher(struct doctor *d)
{
    char said[512];
    struct text why = TEXT_IN(said);
    struct launch_place place;
    unsigned flags;
    text_clear(&why);
    read_flags(&flags, &why);                        /* doctor_settings reports wrong flags */
    text_clear(&why);
    int error = environment_read(&place, look_up, NULL, (flags & TUTTI_LOCAL) != 0, &why);
    if (error < 0) {
        doctor_say(2, "launcher: not clear");
        doctor_wrong(d,
                     error == -EXDEV ? "TUTTI_FLAGS=local makes a world of this host's ranks"
                                     : "start the program by one launcher: tutti run, torchrun, "
                                       "Open MPI, MPICH, srun",
                     "%s", said);
    } else if (!say_own(d, &place)) {
        if (!strcmp(place.launcher, "alone"))
            doctor_say(2,
                       "launcher: none; a program started here is rank 0 of 1 (tutti run -n N "
                       "starts N)");
        else
            doctor_say(2, "launcher: %s; this is rank %d of %d, job %s", place.launcher, place.rank,
                       place.size, place.job);
    }
    doctor_say(2,
               "  looked for, the first wins: TUTTI_SIZE, tutti run and torchrun, Open MPI, MPICH, "
               "Slurm");
}

/* ---- each setting ---------------------------------------------------------------------------- */

static int check_faults(const char *list, struct text *why)
{
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    char copy[512], *rest = NULL;
    int r = comm ? 0 : -ENOMEM;
    snprintf(copy, sizeof copy, "%s", list);
    if (comm)
        comm->watch.size = RANKS_MAX;
    for (char *s = comm ? strtok_r(copy, ",", &rest) : NULL; s && r == 0;
         s = strtok_r(NULL, ",", &rest))
        r = fault_add(comm, s, why);
    free(comm);
    return r;
}

/* 0, or negative with the reason. The rules and their file are checked in doctor_rules.c. */
static int check(enum knob_id id, const char *value, struct text *why)
{
    char said[256];
    unsigned flags;
    int64_t number;
    if (knob_row(id)->kind != KNOB_TEXT) {
        int r = knob_int(id, &number, said, sizeof said);
        if (r < 0)
            text_add(why, "%s", said);
        return r;
    }
    if (id == KNOB_FLAGS)
        return read_flags(&flags, why);
    if (id == KNOB_FAULT) {
        text_add(why, "TUTTI_FAULT: ");
        return check_faults(value, why);
    }
    if (id == KNOB_ISA && !fold_find_isa(value, TUTTI_F32, TUTTI_SUM)) {
        text_add(why,
                 "TUTTI_ISA=%.60s: expected plain, avx2, avx512 or neon, as far as this processor "
                 "has it",
                 value);
        return -EINVAL;
    }
    return 0;
}

static void say_known(struct doctor *d, enum knob_id id, const char *value)
{
    char said[512], remedy[200];
    struct text why = TEXT_IN(said);
    const struct knob *row = knob_row(id);
    text_clear(&why);
    if (check(id, value, &why) >= 0) {
        doctor_say(4, "  %s=%.200s (%s)", row->name, value, row->help);
        return;
    }
    snprintf(remedy, sizeof remedy, "%s; unset it for the default%s%s", row->help,
             row->fallback[0] ? ": " : "", row->fallback);
    doctor_wrong(d, remedy, "%s", said);
}

static void say_unknown(struct doctor *d, const char *name, size_t n)
{
    char copy[80], remedy[200] = "unset it; man 7 tutti lists the settings";
    size_t best = 4;
    snprintf(copy, sizeof copy, "%.*s", (int)n, name);
    for (int id = 0; id < KNOB_COUNT; id++) {
        const char *other = knob_row((enum knob_id)id)->name;
        size_t far = guess_distance(copy, other);
        if (far < best || !strncmp(other, copy, strlen(copy))) {
            best = far < best ? far : best;
            snprintf(remedy, sizeof remedy, "did you mean %s? else unset it", other);
        }
    }
    doctor_wrong(d, remedy, "%s is no setting of tutti: nobody reads it", copy);
}

static int known(const char *name, size_t n)
{
    for (int id = 0; id < KNOB_COUNT; id++) {
        const char *other = knob_row((enum knob_id)id)->name;
        if (strlen(other) == n && !strncmp(other, name, n))
            return id;
    }
    return -1;
}

static bool is_other(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i]) == n && !strncmp(others[i], name, n))
            return true;
    return false;
}

void doctor_settings(struct doctor *d)
{
    int set = 0;
    for (char **e = environ; *e; e++)
        set += !strncmp(*e, "TUTTI_", 6);
    doctor_say(2, "settings: %s",
               set ? "of the environment" : "none in the environment, all as built in");
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        int id = known(*e, n);
        if (strncmp(*e, "TUTTI_", 6) != 0 || is_other(*e, n))
            continue;
        if (id < 0)
            say_unknown(d, *e, n);
        else if ((*e)[n] && (*e)[n + 1])
            say_known(d, (enum knob_id)id, *e + n + 1);
    }
}
