/* tutti_init: finds this process's rank, then meets, joins, opens. */
#define TUTTI_NO_SITES
#include "api/world.h"

#include "base/error.h"
#include "base/knob.h"
#include "coll/select.h"
#include "coll/tuning_file.h"
#include "gpu/driver.h"
#include "group/environment.h"
#include "group/join.h"
#include "group/seat.h"
#include "os/caller.h"
#include "os/file.h"
#include "os/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Thread_local char world_report[2048];

static const char *init_getenv(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

static int init_place(struct launch_place *place, const tutti_options *o, struct text *why)
{
    int local = (o->flags & TUTTI_LOCAL) != 0;
    int r = environment_read(place, init_getenv, NULL, local, why);
    bool launcher = r == 0 && strcmp(place->launcher, "alone") != 0;
    if (!o->size) {
        if (r == 0 && o->job)
            environment_set_job(place, o->job);
        return r;
    }
    /* The options give rank and size; a launcher, if there is one, may still name the job. */
    if (!o->job && !launcher) {
        text_clear(why);
        text_add(why,
                 "options.size is %d but nothing names the job the ranks meet under: give "
                 "options.job",
                 o->size);
        return -EINVAL;
    }
    text_clear(why);
    if (o->size < 1 || o->size > RANKS_MAX || o->rank < 0 || o->rank >= o->size) {
        text_add(why, "rank %d of size %d: expected a size from 1 to %d and a rank below it",
                 o->rank, o->size, RANKS_MAX);
        return -EINVAL;
    }
    place->launcher = "options";
    place->rank = o->rank;
    place->size = o->size;
    if (o->job)
        environment_set_job(place, o->job);
    return 0;
}

/* The arena that `tutti run` handed down, "FD:INODE". -1: there is none, or the descriptor is
 * another file by now. *handed: the number in the variable. */
static int init_handed_down(const struct launch_place *place, int *handed)
{
    const char *said;
    char *colon, *end;
    struct stat st;
    if (strcmp(place->launcher, "tutti run") || !knob_text(KNOB_ARENA, &said))
        return -1;
    int fd = (int)strtol(said, &colon, 10);
    unsigned long long inode = *colon == ':' ? strtoull(colon + 1, &end, 10) : 0;
    if (*colon != ':' || colon == said || end == colon + 1)
        return -1;
    if (fstat(fd, &st) < 0 || st.st_ino != inode)
        return -1;
    *handed = fd;
    return file_copy_up(fd);
}

int world_plan(struct arena_plan *plan, int size, const char *job, const tutti_options *o,
               struct text *why)
{
    static const char none[] = "";
    const char *text = none;
    char said[256];
    int64_t first = 0, verify = 0, store = 0;
    knob_text(KNOB_ALGORITHM, &text);
    int r = select_check(text, why);
    if (r < 0)
        return r;
    if (knob_int(KNOB_FIRST_SEQ, &first, said, sizeof said) < 0
        || knob_int(KNOB_VERIFY, &verify, said, sizeof said) < 0
        || knob_int(KNOB_STORE_BYTES, &store, said, sizeof said) < 0) {
        text_add(why, "%s", said);
        return -EINVAL;
    }
    *plan = (struct arena_plan){
        size, job, o->span_bytes, text, (uint64_t)first, (uint64_t)store, (int)verify
    };
    return 0;
}

/* Alone: makes an arena for one rank and joins it as one that was handed down. */
static int init_alone(struct join_request *request, struct text *why)
{
    struct arena arena;
    char rules[RULES_TEXT];
    struct arena_plan plan = request->plan;
    tuning_file_lay(plan.rules, rules);
    plan.rules = rules;
    int r = arena_create(&arena, &plan, why);
    if (r < 0)
        return r;
    request->fd = file_copy_up(arena.fd);
    r = request->fd < 0 ? request->fd : 0;
    if (r < 0)
        text_add(why, "no file descriptor is free for the arena (raise ulimit -n, or close some)");
    arena_detach(&arena);
    return r;
}

/* The caller frees it. NULL: no memory. */
static char *init_name(const struct launch_place *place, const tutti_options *o)
{
    const char *path;
    char *name = NULL;
    if (o->job && o->job[0] == '/')
        return strdup(o->job);
    if (knob_text(KNOB_MEET, &path))
        return strdup(path);
    int r = asprintf(&name, "tutti.%u.%.32s.%016llx", (unsigned)getuid(), place->job,
                     (unsigned long long)text_hash(place->job, strlen(place->job), 0));
    return r < 0 ? NULL : name;
}

static int init_join(struct arena *arena, struct launch_place *place, const tutti_options *o,
                     int *host_fd, struct text *why)
{
    struct join_request request = {
        .fd = -1, .rank = place->rank, .size = place->size,
        .timeout_ms = o->join_timeout_ms, .lay = tuning_file_lay
    };
    int r = world_plan(&request.plan, place->size, place->job, o, why);
    if (r < 0)
        return r;
    int handed = -1;
    request.fd = init_handed_down(place, &handed);
    if (request.fd < 0 && !strcmp(place->launcher, "alone"))
        r = init_alone(&request, why);
    if (r < 0)
        return r;
    char *name = strcmp(place->launcher, "alone") ? init_name(place, o) : NULL;
    if (!name && request.fd < 0)
        return -ENOMEM;
    request.name = name;
    r = join_world(arena, &request, host_fd, why);
    bool inherited = request.fd >= 0 && r == 0 && arena->fd == request.fd;
    if (request.fd >= 0 && !inherited)
        close(request.fd);
    if (inherited && handed >= 0)
        /* every program started here would inherit it, and keep the arena */
        close(handed);
    free(name);
    return r;
}

static int init_steps(tutti_comm **world, const tutti_options *options, struct text *why)
{
    struct launch_place place = { 0 };
    struct arena arena;
    tutti_options o;
    int host_fd = -1;
    int r = world_options(&o, options, why);
    if (r == 0)
        r = init_place(&place, &o, why);
    if (r == 0)
        r = world_bind(place.rank, o.flags, why);
    if (r == 0)
        r = init_join(&arena, &place, &o, &host_fd, why);
    if (r < 0)
        return r;
    r = world_begin(world, &arena, place.rank, host_fd, &o, 0, why);
    if (r == 0 && o.flags & TUTTI_AHEAD)
        driver_ahead();
    if (r < 0) {
        seat_leave(&arena, place.rank);
        arena_detach(&arena);
        if (host_fd >= 0)
            close(host_fd);
    }
    return r;
}

int tutti_init(tutti_comm **world, const tutti_options *options)
{
    lines_here();
    CALLER_KEPT;
    struct text why = TEXT_IN(world_report);
    text_clear(&why);
    if (!world) {
        text_add(&why, "tutti_init: world is NULL; give the address of a tutti_comm *");
        return -EINVAL;
    }
    *world = NULL;
    int r = init_steps(world, options, &why);
    if (r < 0 && !why.used)
        text_add(&why, "tutti_init: %s", error_text(r));
    return r;
}
