/* tutti ps --save: a black box of a job that goes on. */
#include "cli/ps.h"

#include "base/error.h"
#include "box/keep.h"
#include "box/picture.h"
#include "os/proc_files.h"

#include <stdlib.h>
#include <string.h>

static void save_rank(struct box_rank *to, const struct rank_process *from)
{
    struct text state = TEXT_IN(to->state), kernel = TEXT_IN(to->kernel);
    to->gone = from->gone;
    text_add(&state, "%s", from->state ? from->state : "");
    if (!from->pid)
        return;
    to->pid = from->pid;
    to->tid = from->tid;
    to->cpu_ns = from->cpu_ns;
    to->read_ns = from->read_ns - (uint64_t)process_clock_ahead();
    proc_thread_wchan(&kernel, from->pid, from->tid);
}

/* The copy becomes the picture's. */
static int save(struct held_job *held, const char *file, struct text *path, struct text *why)
{
    struct picture p;
    struct box_bytes b = { 0 };
    struct keep k = { .state = false };
    int error = picture_of(&p, &held->copy);
    if (error)
        return error;
    held->copy = (struct arena_copy){ .arena = { .fd = -1, .file = KEPT_NONE } };
    p.moment.by = BOX_BY_ONLOOKER;
    p.moment.tick = held->now.tick;
    p.moment.ns = held->now.ns - (uint64_t)process_clock_ahead();
    for (uint32_t r = 0; r < p.copy.arena.header->size; r++)
        save_rank(&p.ranks[r], &held->process[r]);
    error = picture_develop(&b, &p, "");
    if (!error && file) {
        error = keep_file(file, &b, why);
        text_add(path, "%s", file);
    } else if (!error) {
        if (!keep_wanted(&k, false))
            strcpy(k.folder, ".");
        error = keep_box(&k, p.copy.arena.header->job, p.moment.wall_ns, &b, path, why);
    }
    free(b.at);
    picture_drop(&p);
    return error;
}

int ps_save(const char *job, const char *file)
{
    char why_room[512], path_room[KEEP_PATH + 300];
    struct text why = TEXT_IN(why_room), path = TEXT_IN(path_room);
    struct held_job held;
    text_clear(&why);
    text_clear(&path);
    int found = jobs_hold(&held, job);
    if (found < 0)
        return ps_failed("ps", found);
    if (!found)
        return ps_no_job("ps", job);
    int error = held.why[0] ? 0 : save(&held, file, &path, &why);
    bool unread = held.why[0];
    if (unread || error) {
        char line[4 * sizeof held.why];
        struct text t = TEXT_IN(line);
        text_clear(&t);
        text_add_foreign(&t, unread ? held.why : why.used ? why_room : error_system(error), 500);
        fprintf(stderr, "tutti ps: no black box was written: %s\n", line);
    }
    held_job_drop(&held);
    if (unread || error)
        return unread ? LOOK_UNREADABLE : LOOK_FAILED;
    printf("%s\n", path_room);
    return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
}
