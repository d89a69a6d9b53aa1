/* A file is written under a name that begins with a dot, and renamed when it is whole. It is not
 * synced: nobody should wait for a disk because a job has failed, and a box that a crash of the
 * machine cuts short is refused by its sum. */
#include "box/keep.h"

#include "base/error.h"
#include "base/knob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BESIDE ".tutti-box-"          /* how the name of an unfinished file begins */
enum { NAMES_MOST = 99, JOB_MOST = 64, BESIDE_SECONDS = 3600 };

bool keep_wanted(struct keep *k, bool by_default)
{
    const char *said = NULL, *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct text t = TEXT_IN(k->folder);
    text_clear(&t);
    k->state = false;
    if (knob_text(KNOB_BOX, &said)) {
        if (!strcmp(said, "none"))
            return false;
        text_add(&t, "%s", said);
    } else if (by_default && state && *state == '/')
        text_add(&t, "%s/tutti", state);
    else if (by_default && home && *home == '/')
        text_add(&t, "%s/.local/state/tutti", home);
    k->state = !said;
    return t.used > 0 && t.used + NAME_MAX < t.room;
}

/* The folder and those above it, as private as a state folder is. */
static int make_folder(const char *path)
{
    char part[KEEP_PATH];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char was = *at;
        *at = 0;
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return errno == EROFS && access(part, X_OK) == 0 ? 0 : -errno;
        *at = was;
        if (!was)
            return 0;
    }
}

static int write_all(int fd, const struct box_bytes *b)
{
    for (size_t done = 0; done < b->n;) {
        ssize_t put = write(fd, b->at + done, b->n - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        done += (size_t)put;
    }
    return 0;
}

/* A new file beside its place; its name in the folder goes to `name`. */
static int write_beside(int folder, const struct box_bytes *b, char name[NAME_MAX])
{
    int fd = -1, error = 0;
    for (int i = 0; i < NAMES_MOST && fd < 0 && !error; i++) {
        snprintf(name, NAME_MAX, BESIDE "%d-%d", (int)getpid(), i);
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        error = fd < 0 && errno != EEXIST ? -errno : 0;
    }
    if (fd < 0)
        return error ? error : -EEXIST;
    error = write_all(fd, b);
    if (close(fd) != 0 && !error)
        error = -errno;
    if (error)
        unlinkat(folder, name, 0);
    return error;
}

/* The first free one of name.box, name-2.box, …: two jobs may fail in one second. */
static int rename_free(int folder, const char *from, const char *name, char free_name[NAME_MAX])
{
    struct text t = { free_name, NAME_MAX, 0 };
    for (int i = 1; i <= NAMES_MOST; i++) {
        text_clear(&t);
        text_add(&t, "%s", name);
        if (i > 1)
            text_add(&t, "-%d", i);
        text_add(&t, ".box");
        if (syscall(SYS_renameat2, folder, from, folder, free_name, RENAME_NOREPLACE) == 0)
            return 0;
        /* a file system without such a rename */
        if (errno == EINVAL && faccessat(folder, free_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return renameat(folder, from, folder, free_name) == 0 ? 0 : -errno;
        if (errno != EEXIST && errno != EINVAL)
            return -errno;
    }
    return -EEXIST;
}

static void add_job(struct text *t, const char *job)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char name[JOB_MOST + 1];
    size_t n = 0;
    for (; n < JOB_MOST && job[n]; n++)
        name[n] = strchr(plain, job[n]) ? job[n] : '_';
    name[n] = 0;
    text_add(t, "%s", n ? name : "job");
}

/* ---- not too many ---- */

struct old { char name[NAME_MAX + 1]; struct timespec when; };
struct olds { struct old *at; size_t n, room; };

static int by_age(const void *left, const void *right)
{
    const struct old *a = left, *b = right;
    if (a->when.tv_sec != b->when.tv_sec)
        return a->when.tv_sec < b->when.tv_sec ? -1 : 1;
    if (a->when.tv_nsec != b->when.tv_nsec)
        return a->when.tv_nsec < b->when.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool is_box(const char *name)
{
    size_t n = strlen(name);
    return !strncmp(name, "tutti-", 6) && n > 4 && !strcmp(name + n - 4, ".box");
}

static void add_old(struct olds *o, const char *name, const struct stat *st)
{
    if (o->n == o->room) {
        struct old *more = realloc(o->at, (o->room + 64) * sizeof *more);
        if (!more)
            return;
        o->at = more;
        o->room += 64;
    }
    struct old *old = &o->at[o->n++];
    snprintf(old->name, sizeof old->name, "%s", name);
    old->when = st->st_mtim;
}

/* The oldest go, and what a writer that was killed has left. */
static void keep_few(int folder)
{
    struct olds o = { 0 };
    struct stat st;
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        bool beside = !strncmp(e->d_name, BESIDE, sizeof BESIDE - 1);
        if ((!beside && !is_box(e->d_name))
            || fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (!beside)
            add_old(&o, e->d_name, &st);
        else if (time(NULL) - st.st_mtim.tv_sec > BESIDE_SECONDS)
            unlinkat(folder, e->d_name, 0);
    }
    closedir(d);
    if (o.n > KEEP_MOST) {
        qsort(o.at, o.n, sizeof *o.at, by_age);
        for (size_t i = 0; i < o.n - KEEP_MOST; i++)
            unlinkat(folder, o.at[i].name, 0);
    }
    free(o.at);
}

/* ---- the two ways ---- */

static int failed(struct text *why, const char *path, int error)
{
    text_add(why, "%.300s: %s", path, error_system(error));
    return error;
}

int keep_box(const struct keep *k, const char *job, uint64_t wall_ns, const struct box_bytes *b,
             struct text *path, struct text *why)
{
    char beside[NAME_MAX], room[NAME_MAX], name[NAME_MAX];
    struct text t = TEXT_IN(room);
    struct tm utc;
    time_t seconds = (time_t)(wall_ns / 1000000000);
    int error = make_folder(k->folder);
    int folder = error ? error : open(k->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return failed(why, k->folder, error ? error : -errno);
    text_clear(&t);
    text_add(&t, "tutti-");
    add_job(&t, job);
    gmtime_r(&seconds, &utc);
    text_add(&t, "-%04d%02d%02dT%02d%02d%02dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
             utc.tm_hour, utc.tm_min, utc.tm_sec);
    error = write_beside(folder, b, beside);
    if (!error) {
        error = rename_free(folder, beside, room, name);
        if (error)
            unlinkat(folder, beside, 0);
    }
    if (!error && k->state)
        keep_few(folder);
    close(folder);
    if (error)
        return failed(why, k->folder, error);
    text_add(path, "%s/%s", k->folder, name);
    return 0;
}

int keep_file(const char *file, const struct box_bytes *b, struct text *why)
{
    char beside[NAME_MAX], folder_name[KEEP_PATH];
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    snprintf(folder_name, sizeof folder_name, "%.*s", slash ? (int)(slash - file) + 1 : 1,
             slash ? file : ".");
    int folder = open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = folder < 0 ? -errno : !*name ? -EISDIR : write_beside(folder, b, beside);
    if (!error && renameat(folder, beside, folder, name) != 0) {
        error = -errno;
        unlinkat(folder, beside, 0);
    }
    if (folder >= 0)
        close(folder);
    return error ? failed(why, file, error) : 0;
}
