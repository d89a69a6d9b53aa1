/* Processes are found by the memory that they have open, and a rank's process among these by its
 * pid in its own namespace and its start: a seat's pid alone is a number that anybody in the job
 * can write. Cost: 10 us for each process of the caller, 20 us a rank. */
#include "cli/jobs.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/proc_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 10000000 };           /* between the two looks; both together stay below 50 ms */
/* how long the processes found are good for; LONG: those of one job whose ranks are all there */
#define FIND_AGAIN_NS UINT64_C(1000000000)
#define FIND_AGAIN_LONG_NS UINT64_C(5000000000)

/* The processes that hold one arena: file[0 … n). */
struct holders { const struct proc_file *file; size_t n; uint64_t namespace; };

static bool jobs_match(const struct proc_file *h, const struct seat *seat, struct rank_process *a)
{
    /* the thread's number is of its own namespace */
    pid_t tid = h->inner == h->pid ? seat->id.tid : h->pid;
    struct process_id id = { .pid = h->pid, .tid = tid, .start = seat->id.start };
    if (h->inner != seat->id.pid)
        return false;
    const char *state = process_state(&id, &a->cpu_ns);
    if (!strcmp(state, "gone") && tid != h->pid) {
        id.tid = h->pid;
        state = process_state(&id, &a->cpu_ns);
    }
    if (!strcmp(state, "gone"))
        return false;
    a->pid = h->pid;
    a->tid = id.tid;
    a->state = state;
    if (seat->several)
        a->cpu_ns = proc_thread_cpu(a->pid, a->tid);
    a->read_ns = clock_ns();
    return true;
}

static void jobs_attend(const struct holders *h, const struct seat *seat, struct rank_process *a)
{
    uint32_t state = load_relaxed32(&seat->state);                   /* relaxed: a private copy */
    *a = (struct rank_process){ 0 };
    if (state == SEAT_EMPTY || seat->id.pid <= 0)
        return;
    for (size_t i = 0; i < h->n; i++)
        if (jobs_match(&h->file[i], seat, a))
            return;
    if (state == SEAT_LEFT || seat->id.pid_namespace != h->namespace)
        return;
    /* it may have closed its descriptor, and has the memory mapped */
    int alive = process_alive(&seat->id, -1), status;
    a->gone = alive == 0;
    if (alive == 0 && process_end(&seat->id, &status) > 0)
        a->end = (uint32_t)status << 1 | 1;
    if (alive == 1 && proc_maps_file(seat->id.pid, h->file->device, h->file->inode))
        jobs_match(&(struct proc_file){ .pid = seat->id.pid, .inner = seat->id.pid }, seat, a);
}

/* Which process of a launcher's job has not joined: its environment says whose it is. */
static void jobs_absent(const struct holders *h, const struct arena *arena,
                        struct rank_process *process)
{
    char world[64], inode[32];
    snprintf(inode, sizeof inode, ":%llu", (unsigned long long)h->file->inode);
    for (size_t i = 0; i < h->n; i++) {
        pid_t pid = h->file[i].pid;
        int64_t rank = -1;
        if (proc_environment(pid, "TUTTI_ARENA", world, sizeof world) < 0
            || !strchr(world, ':') || strcmp(strchr(world, ':'), inode) != 0
            || proc_environment(pid, "RANK", world, sizeof world) < 0
            || text_parse_int(world, 0, arena->header->size - 1, &rank) < 0)
            continue;
        struct rank_process *a = &process[rank];
        struct process_id id = { .pid = pid, .tid = pid };
        /* relaxed: a private copy */
        if (a->pid || load_relaxed32(&arena->seats[rank].state) != SEAT_EMPTY)
            continue;
        a->state = process_state(&id, &a->cpu_ns);
        a->pid = a->tid = pid;
        a->read_ns = clock_ns();
    }
}

/* A process that has not joined has said no name. */
static void jobs_programs(struct rank_states *m)
{
    for (uint32_t r = 0; r < m->size; r++) {
        struct rank_state *s = &m->rank[r];
        char name[32];
        struct text program = TEXT_IN(s->program);
        if (!s->process.pid || s->process.kernel || s->program[0])
            continue;
        process_name(s->process.pid, name, sizeof name);
        text_clear(&program);
        text_add_foreign(&program, name, sizeof name);
    }
}

static int jobs_open(const struct proc_file *file, size_t n)
{
    int fd = -ENOENT;
    for (size_t i = 0; i < n && fd < 0; i++)
        fd = proc_file_open(&file[i]);
    return fd < 0 && file->fd < 0 && fd != -ESTALE ? -EPERM : fd;
}

static void jobs_attend_all(struct held_job *held, const struct proc_file *file, size_t n)
{
    struct stat st;
    struct holders h = { .file = file, .n = n };
    const struct arena *arena = &held->copy.arena;
    h.namespace = stat("/proc/thread-self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
    for (uint32_t r = 0; r < arena->header->size; r++)
        jobs_attend(&h, &arena->seats[r], &held->process[r]);
    /* relaxed: a private copy */
    if (load_relaxed32(&arena->join->state) == JOIN_GATHERING)
        jobs_absent(&h, arena, held->process);
    for (uint32_t r = arena->header->size; r-- > 0;)
        held->pid = held->process[r].pid ? held->process[r].pid : held->pid;
}

/* The arena of file[0 … n), one a process. 0 or -ENOMEM. */
static int jobs_take(struct held_job *held, const struct proc_file *file, size_t n)
{
    struct text why = TEXT_IN(held->why);
    struct stat st;
    *held = (struct held_job){ .pid = file->pid };
    int fd = jobs_open(file, n);
    if (fd == -ENOENT || fd == -ESRCH || fd == -ESTALE) {
        held->over = true;
        return 0;
    }
    if (fd < 0) {
        text_add(&why, "its memory cannot be opened: %s%s", error_system(fd),
                 file->fd < 0 ? " (its processes have closed the descriptor: root can look)" : "");
        return 0;
    }
    held->uid = fstat(fd, &st) == 0 ? st.st_uid : geteuid();
    int error = arena_copy_take(&held->copy, fd, &why);
    close(fd);
    if (error)
        return 0;
    held->process = calloc(held->copy.arena.header->size, sizeof *held->process);
    if (!held->process) {
        held_job_drop(held);
        return -ENOMEM;
    }
    held->now = clock_now();
    jobs_attend_all(held, file, n);
    return 0;
}

/* The job of a copy; the box becomes the job's. */
static int jobs_states(struct seen_job *job, struct held_job *held, uint64_t stuck_ns)
{
    *job = (struct seen_job){ .pid = held->pid, .uid = held->uid };
    memcpy(job->why, held->why, sizeof job->why);
    job->m.over = held->over;
    if (job->why[0] || held->over)
        return 0;
    int error = rank_states_fill(&job->m, &held->copy, held->process, held->now, stuck_ns);
    if (error)
        return error;
    jobs_programs(&job->m);
    blockers_find(&job->blockers, &held->copy, &job->m);
    job->box = held->box;
    held->box = (struct box){ .host = "", .report = "" };
    return 0;
}

static int jobs_read(struct seen_job *job, const struct proc_file *file, size_t n,
                     uint64_t stuck_ns)
{
    struct held_job held;
    int error = jobs_take(&held, file, n);
    if (error)
        return error;
    error = jobs_states(job, &held, stuck_ns);
    job->device = file->device;
    job->inode = file->inode;
    held_job_drop(&held);
    return error;
}

static int jobs_read_box(struct seen_jobs *j, const char *path, uint64_t stuck_ns)
{
    struct held_job held;
    *j = (struct seen_jobs){ .at = calloc(1, sizeof *j->at), .taken_ns = clock_ns() };
    int error = j->at ? held_job_unpack(&held, path) : -ENOMEM;
    if (!error) {
        error = jobs_states(j->at, &held, stuck_ns);
        j->at->path = path;
        j->n = 1;
        held_job_drop(&held);
    }
    if (error)
        jobs_drop(j);
    return error;
}

/* How many processes have the file of the i-th open. */
static size_t jobs_same(const struct proc_files *s, size_t i)
{
    const struct proc_file *file = &s->at[i];
    size_t n = 1;
    while (i + n < s->n && file[n].device == file->device && file[n].inode == file->inode)
        n++;
    return n;
}

static bool jobs_has_pid(const struct proc_file *file, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (file[i].pid == pid)
            return true;
    return false;
}

static bool jobs_wanted(const struct seen_job *job, bool by_pid, const char *only)
{
    if (!job->why[0] && job->m.over)
        return false;
    return !only || by_pid || (!job->why[0] && !strcmp(job->m.job, only));
}

static int jobs_read_all(struct seen_jobs *j, const struct proc_files *s, const char *only,
                         uint64_t stuck_ns)
{
    int64_t pid = -1;
    if (only)
        text_parse_int(only, 1, INT32_MAX, &pid);
    for (size_t i = 0, n; i < s->n; i += n) {
        const struct proc_file *file = &s->at[i];
        n = jobs_same(s, i);
        bool by_pid = pid > 0 && jobs_has_pid(file, n, (pid_t)pid);
        struct seen_job *job = &j->at[j->n];
        int error = jobs_read(job, file, n, stuck_ns);
        if (error)
            return error;
        if (jobs_wanted(job, by_pid, only))
            j->n++;
        else
            rank_states_drop(&job->m);
    }
    return 0;
}

static int jobs_find(struct proc_files *s)
{
    int error = proc_files_find(s, "tutti", false);
    if (error || s->n > 0)
        return error;
    proc_files_free(s);
    return proc_files_find(s, "tutti", true);
}

static int jobs_look_at(struct seen_jobs *j, const struct proc_files *s, const char *only,
                        uint64_t stuck_ns)
{
    *j = (struct seen_jobs){ .refused = s->refused, .taken_ns = clock_ns() };
    j->at = calloc(s->n + 1, sizeof *j->at);
    int error = j->at ? jobs_read_all(j, s, only, stuck_ns) : -ENOMEM;
    if (error)
        jobs_drop(j);
    return error;
}

/* Keeps the files of the jobs that were shown. */
static void jobs_narrow(struct proc_files *s, const struct seen_jobs *j)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < j->n; k++)
            if (s->at[i].device == j->at[k].device && s->at[i].inode == j->at[k].inode) {
                s->at[kept++] = s->at[i];
                break;
            }
    s->n = kept;
}

/* No rank is to come any more, and each one's process has been found, or has ended. */
static bool jobs_complete(const struct seen_jobs *j)
{
    for (size_t i = 0; i < j->n; i++)
        for (uint32_t r = 0; r < j->at[i].m.size; r++) {
            const struct rank_state *s = &j->at[i].m.rank[r];
            if (s->condition == RANK_ABSENT || s->condition == RANK_UNSEEN)
                return false;
        }
    return j->n > 0;
}

int jobs_look(struct seen_jobs *j, struct known_jobs *k, const char *only, uint64_t stuck_ns)
{
    uint64_t now = clock_ns();
    if (only && held_job_is_box(only))
        return jobs_read_box(j, only, stuck_ns);
    if (k->files.n && now - k->found_ns < k->good_ns) {
        int error = jobs_look_at(j, &k->files, only, stuck_ns);
        if (error || j->n)
            return error;
        jobs_drop(j);                                /* it has ended, or has other processes */
    }
    proc_files_free(&k->files);
    int error = jobs_find(&k->files);
    if (!error)
        error = jobs_look_at(j, &k->files, only, stuck_ns);
    if (!error && only)
        jobs_narrow(&k->files, j);
    k->found_ns = now;
    k->good_ns = !error && only && jobs_complete(j) ? FIND_AGAIN_LONG_NS : FIND_AGAIN_NS;
    return error;
}

/* ---- one job, to be kept ---- */

static bool jobs_named(const struct held_job *held, const char *name)
{
    char room[STATE_JOB];
    struct text job = TEXT_IN(room);
    if (held->why[0] || held->over)
        return false;
    text_clear(&job);
    text_add_foreign(&job, held->copy.arena.header->job, sizeof held->copy.arena.header->job);
    return !strcmp(room, name);
}

int jobs_hold(struct held_job *held, const char *only)
{
    struct proc_files s;
    int64_t pid = -1;
    if (held_job_is_box(only))
        return held_job_unpack(held, only) == 0 ? 1 : -ENOMEM;
    text_parse_int(only, 1, INT32_MAX, &pid);
    int error = jobs_find(&s), found = 0;
    for (size_t i = 0, n; !error && !found && i < s.n; i += n) {
        n = jobs_same(&s, i);
        error = jobs_take(held, &s.at[i], n);
        found = !error && !held->over
            && ((pid > 0 && jobs_has_pid(&s.at[i], n, (pid_t)pid)) || jobs_named(held, only));
        if (!error && !found)
            held_job_drop(held);
    }
    proc_files_free(&s);
    return error ? error : found;
}

void jobs_drop(struct seen_jobs *j)
{
    for (size_t i = 0; i < j->n; i++) {
        rank_states_drop(&j->at[i].m);
        box_drop(&j->at[i].box);
    }
    free(j->at);
    *j = (struct seen_jobs){ 0 };
}

void jobs_compare(struct seen_jobs *j, const struct seen_jobs *before)
{
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < before->n; k++)
            if (j->at[i].device == before->at[k].device && j->at[i].inode == before->at[k].inode
                && !j->at[i].why[0] && !before->at[k].why[0])
                rank_states_compare(&j->at[i].m, &before->at[k].m);
}

/* The second look is at the processes of the first: to find them is most of the cost. */
int jobs_look_twice(struct seen_jobs *j, const char *only, uint64_t stuck_ns)
{
    struct seen_jobs first;
    struct proc_files s;
    if (only && held_job_is_box(only))
        return jobs_read_box(j, only, stuck_ns);
    int error = jobs_find(&s);
    if (!error)
        error = jobs_look_at(&first, &s, only, stuck_ns);
    if (!error && first.n == 0)
        *j = first;
    else if (!error) {
        nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
        error = jobs_look_at(j, &s, only, stuck_ns);
        if (!error)
            jobs_compare(j, &first);
        jobs_drop(&first);
    }
    proc_files_free(&s);
    return error;
}
