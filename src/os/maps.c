/* PROCMAP_QUERY (Linux 6.11) answers for one address, in a microsecond. On older kernels the table
 * is read as text up to the wanted line: 0.2 ms for 1,000 mappings.
 * A stack that grows is found by mprotect with PROT_GROWSDOWN, which only such a mapping accepts;
 * on a readable and writable mapping it changes nothing. pthread_getattr_np gives the calling
 * thread's own stack. Stacks of other threads look like other memory. */
#include "os/maps.h"

#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Newer than the headers we are built with. */
struct query {
    uint64_t size, flags, at, from, to, is, page, offset, inode;
    uint32_t major, minor, name_size, id_size;
    uint64_t name_at, id_at;
};
#define QUERY _IOWR('f', 17, struct query)
enum { IS_READABLE = 1, IS_WRITABLE = 2, IS_EXECUTABLE = 4, IS_SHARED = 8, COVERING_OR_NEXT = 16 };

static void name_it(struct mapping *m, const char *name)
{
    struct text t = TEXT_IN(m->name);
    text_clear(&t);
    text_add(&t, "%s", name);
}

/* -ENOENT is kept for "no such mapping". */
static int open_table(void)
{
    int fd = open(PROCESS_OWN("maps"), O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : errno == ENOENT ? -ENOSYS : -errno;
}

static int by_query(uintptr_t at, struct mapping *m)
{
    char name[4096] = { 0 };                         /* memcheck does not know who writes there */
    struct query q = {
        .size = sizeof q, .flags = COVERING_OR_NEXT, .at = at, .name_size = sizeof name,
        .name_at = (uint64_t)(uintptr_t)name
    };
    int fd = open_table();
    if (fd < 0)
        return fd;
    int error = ioctl(fd, QUERY, &q) == 0 ? 0 : -errno;
    close(fd);
    if (error)
        return error;
    *m = (struct mapping){
        .from = q.from, .to = q.to, .readable = q.is & IS_READABLE, .writable = q.is & IS_WRITABLE,
        .executable = q.is & IS_EXECUTABLE, .shared = q.is & IS_SHARED, .file = q.inode != 0
    };
    name_it(m, q.name_size ? name : "");
    return 0;
}

bool maps_asks(void)
{
    struct mapping m;
    return by_query((uintptr_t)&m, &m) == 0;
}

/* from-to rwxp offset device inode name */
static bool parse(char *line, struct mapping *m)
{
    char *at = line;
    uintptr_t from = strtoull(at, &at, 16);
    if (*at++ != '-')
        return false;
    uintptr_t to = strtoull(at, &at, 16);
    if (*at++ != ' ' || strlen(at) < 5)
        return false;
    *m = (struct mapping){
        .from = from, .to = to, .readable = at[0] == 'r', .writable = at[1] == 'w',
        .executable = at[2] == 'x', .shared = at[3] == 's'
    };
    at += 5;
    at += strcspn(at, " ");                          /* the offset */
    at += strspn(at, " ");
    at += strcspn(at, " ");                          /* the device */
    m->file = strtoull(at, &at, 10) != 0;
    at += strspn(at, " ");
    name_it(m, at);
    return true;
}

int maps_at_by_text(uintptr_t at, struct mapping *m)
{
    char text[8192];
    size_t used = 0;
    ssize_t got;
    int fd = open_table();
    if (fd < 0)
        return fd;
    while ((got = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        char *line = text, *end;
        used += (size_t)got;
        text[used] = 0;
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            if (parse(line, m) && m->to > at) {
                close(fd);
                return 0;
            }
        }
        used -= (size_t)(line - text);
        memmove(text, line, used);
    }
    int error = got < 0 ? -errno : -ENOENT;
    close(fd);
    return error;
}

int maps_at(uintptr_t at, struct mapping *m)
{
    int error = by_query(at, m);
    return error == 0 || error == -ENOENT ? error : maps_at_by_text(at, m);
}

/* The first thread's stack has a name; for it pthread_getattr_np would read the whole table of
 * mappings, milliseconds where there are many. */
static bool on_own_stack(uintptr_t from, uintptr_t to)
{
    pthread_attr_t attributes;
    struct mapping here;
    void *stack;
    size_t bytes;
    if (maps_at((uintptr_t)&here, &here) == 0 && strcmp(here.name, "[stack]") == 0)
        return false;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    bool found = pthread_attr_getstack(&attributes, &stack, &bytes) == 0
        && from < (uintptr_t)stack + bytes && to > (uintptr_t)stack;
    pthread_attr_destroy(&attributes);
    return found;
}

static bool grows_down(uintptr_t at)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return mprotect((void *)(at / page * page), page, PROT_READ | PROT_WRITE | PROT_GROWSDOWN) == 0;
}

/* Why the mapping is no ordinary memory at `at`; NULL: it is. */
static const char *what_else(const struct mapping *m, uintptr_t at)
{
    if (m->from > at)
        return "nothing is mapped";
    if (m->shared)
        return "there is a shared mapping";
    if (m->file)
        return "a file is mapped";
    if (strcmp(m->name, "[stack]") == 0)
        return "there is the stack";
    if (m->name[0] == '[' && strcmp(m->name, "[heap]") != 0 && strncmp(m->name, "[anon", 5) != 0)
        return "there is the kernel's";
    if (!m->readable || !m->writable)
        return "the memory is not readable and writable";
    if (m->executable)
        return "there is code";
    return grows_down(at) ? "there is a stack" : NULL;
}

int maps_ordinary(const void *ptr, size_t bytes, struct text *why)
{
    uintptr_t at = (uintptr_t)ptr, end = at + bytes;
    if (on_own_stack(at, end)) {
        text_add(why, "it lies on this thread's stack");
        return -EINVAL;
    }
    while (at < end) {
        struct mapping m;
        int error = maps_at(at, &m);
        if (error == -ENOENT)
            m = (struct mapping){ .from = UINTPTR_MAX };
        else if (error) {
            text_add(why, "/proc/self/maps, which says what kind of memory it is, cannot be read");
            return error;
        }
        const char *wrong = what_else(&m, at);
        if (wrong) {
            text_add(why, "at 0x%llx %s%s%s", (unsigned long long)at, wrong,
                     m.from <= at && m.name[0] ? ": " : "", m.from <= at ? m.name : "");
            return -EINVAL;
        }
        at = m.to;
    }
    return 0;
}
