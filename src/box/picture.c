/* The arena is read as an onlooker reads it, and the processes are looked at right after it, so
 * that both belong together. Cost: some 100 us, 50 us a rank, and the copying of 5 KiB a rank and
 * comm. */
#include "box/picture.h"

#include "arena/offsets.h"
#include "base/clock.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/proc_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int read_mapped(const struct arena_bytes *from, char *to, uint64_t at, uint64_t bytes)
{
    memcpy(to, (const char *)from->held + at, bytes);
    return 0;
}

static uint64_t machine_ns(uint64_t ns) { return ns - (uint64_t)process_clock_ahead(); }

static void look_at_rank(struct box_rank *r, const struct seat *seat)
{
    /* relaxed: a private copy */
    if (load_relaxed32(&seat->state) == SEAT_EMPTY || seat->id.pid <= 0)
        return;
    struct text state = TEXT_IN(r->state), kernel = TEXT_IN(r->kernel);
    uint64_t cpu_ns = 0;
    const char *word = process_state(&seat->id, &cpu_ns);
    int status;
    r->ended = load_relaxed32(&seat->status);                        /* relaxed: as above */
    if (!r->ended && process_end(&seat->id, &status) > 0)
        r->ended = (uint32_t)status << 1 | 1;
    r->gone = !strcmp(word, "gone");
    text_add(&state, "%s", word);
    if (r->gone || !strcmp(word, "out of sight"))
        return;
    r->pid = seat->id.pid;
    r->tid = seat->id.tid;
    r->cpu_ns = seat->several ? proc_thread_cpu(r->pid, r->tid) : cpu_ns;
    r->read_ns = machine_ns(clock_ns());
    proc_thread_wchan(&kernel, r->pid, r->tid);
}

int picture_of(struct picture *p, struct arena_copy *copy)
{
    struct timespec wall;
    struct clock_point now = clock_now();
    *p = (struct picture){ .copy = { .arena = { .fd = -1, .file = KEPT_NONE } } };
    p->ranks = calloc(copy->arena.header->size, sizeof *p->ranks);
    if (!p->ranks)
        return -ENOMEM;
    clock_gettime(CLOCK_REALTIME, &wall);
    p->copy = *copy;
    p->moment = (struct box_moment){
        .tick = now.tick, .ns = machine_ns(now.ns), .arena_bytes = copy->arena.header->bytes,
        .wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec,
        .uid = copy->arena.header->uid, .pid = (int32_t)getpid()
    };
    return 0;
}

int picture_take(struct picture *p, const struct arena *arena, struct text *why)
{
    struct arena_bytes from = { .read = read_mapped, .bytes = arena->bytes, .held = arena->base };
    struct arena_copy copy;
    int fd = arena_fd(arena), error = fd < 0 ? 0 : arena_bytes_of(&from, fd, why);
    *p = (struct picture){ .copy = { .arena = { .fd = -1, .file = KEPT_NONE } } };
    if (!error)
        error = arena_copy_from(&copy, &from, BOX_COMMS, why);
    if (error)
        return error;
    error = picture_of(p, &copy);
    if (error) {
        text_add(why, "there is no memory for it");
        arena_copy_drop(&copy);
        return error;
    }
    for (uint32_t r = 0; r < copy.arena.header->size; r++)
        look_at_rank(&p->ranks[r], &p->copy.arena.seats[r]);
    return 0;
}

void picture_drop(struct picture *p)
{
    arena_copy_drop(&p->copy);
    free(p->ranks);
    *p = (struct picture){ .copy = { .arena = { .fd = -1, .file = KEPT_NONE } } };
}

/* ---- the host and the settings ---- */

/* Those of a process's start; of this one if pid is 0. */
static void add_settings(struct text *t, pid_t pid)
{
    char path[64], *text = malloc(1 << 17);
    snprintf(path, sizeof path, pid ? "/proc/%d/environ" : "/proc/self/environ", (int)pid);
    int n = text ? file_read(path, text, 1 << 17) : -ENOMEM;
    for (const char *s = text; n > 0 && s < text + n; s += strlen(s) + 1) {
        if (strncmp(s, "TUTTI_", 6) != 0 || !strncmp(s, "TUTTI_ARENA=", 12))
            continue;
        text_add_foreign(t, s, 300);
        text_add(t, "\n");
    }
    free(text);
}

static void add_host(struct text *t, const struct picture *p)
{
    struct utsname host;
    char model[100];
    pid_t rank = 0;
    for (uint32_t r = p->copy.arena.header->size; p->moment.by == BOX_BY_ONLOOKER && r-- > 0;)
        rank = p->ranks[r].pid ? p->ranks[r].pid : rank;
    if (uname(&host) == 0)
        text_add(t, "host: %.64s, %.64s %.64s %.64s\n", host.nodename, host.sysname, host.release,
                 host.machine);
    cpu_model(model, sizeof model);
    text_add(t, "CPUs: %d, ", cpu_machine());
    text_add_foreign(t, model, sizeof model);
    text_add(t, "\ntutti: %s\n", arena_version());
    add_settings(t, rank);
}

int picture_develop(struct box_bytes *b, struct picture *p, const char *report)
{
    struct text host = { malloc(BOX_TEXT), BOX_TEXT, 0 };
    if (!host.at)
        return -ENOMEM;
    text_clear(&host);
    add_host(&host, p);
    struct box_contents c = { &p->copy, p->moment, p->ranks, host.at, report };
    int error = box_make(b, &c);
    free(host.at);
    return error;
}
