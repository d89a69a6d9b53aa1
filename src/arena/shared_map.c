/* A list, since a process has an arena or two. A mapping is known by the memfd's device and inode
 * and by the arena's birth, because the kernel may use an inode number again. The lock is also
 * taken around fork: so a child never finds it locked by a thread that it does not have. A child
 * inherits mappings and table; a mapping not for forks is in neither.
 * Cost: two system calls per take; a map only for the first. */
#include "arena/shared_map.h"

#include "arena/layout.h"
#include "os/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct shared_map {
    struct shared_map *next;
    void *base;
    uint64_t bytes;
    dev_t device;
    ino_t inode;
    int readonly, references;
    bool not_for_forks;
};

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct shared_map *first;
} table = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL };

static void table_lock(void) { pthread_mutex_lock(&table.lock); }
static void table_unlock(void) { pthread_mutex_unlock(&table.lock); }

static void table_in_child(void)
{
    for (struct shared_map **at = &table.first; *at;) {
        struct shared_map *m = *at;
        if (m->not_for_forks) {
            *at = m->next;
            free(m);
        } else
            at = &m->next;
    }
    table_unlock();
}

static void table_at_fork(void) { pthread_atfork(table_lock, table_unlock, table_in_child); }

static uint64_t birth_of(int fd)
{
    uint64_t birth = 0;
    if (pread(fd, &birth, sizeof birth, offsetof(struct arena_header, birth))
        != (ssize_t)sizeof birth)
        return 0;
    return birth;
}

/* Only its creator knows an arena before its birth, so no other rank asks for it. */
static bool is_birth(const struct shared_map *m, uint64_t birth)
{
    const struct arena_header *header = m->base;
    return load_acquire64(&header->layout_hash) != 0 && header->birth == birth;    /* E10 acquire */
}

static struct shared_map *table_find(const struct stat *st, uint64_t birth, int readonly)
{
    for (struct shared_map *m = table.first; m; m = m->next)
        if (m->device == st->st_dev && m->inode == st->st_ino && m->readonly == readonly
            && is_birth(m, birth))
            return m;
    return NULL;
}

static void *table_add(int fd, uint64_t bytes, int readonly, const struct stat *st, int *error)
{
    struct shared_map *m = malloc(sizeof *m);
    if (!m) {
        *error = -ENOMEM;
        return NULL;
    }
    void *base = readonly ? memory_map_readonly(fd, bytes, error) : memory_map(fd, bytes, error);
    if (!base) {
        free(m);
        return NULL;
    }
    *m = (struct shared_map){
        table.first, base, bytes, st->st_dev, st->st_ino, readonly, 1, false
    };
    table.first = m;
    return base;
}

void *shared_map_take(int fd, uint64_t bytes, int readonly, int *error)
{
    struct stat st;
    void *base;
    *error = 0;
    pthread_once(&table.once, table_at_fork);
    if (fstat(fd, &st) != 0) {
        *error = -errno;
        return NULL;
    }
    uint64_t birth = birth_of(fd);
    table_lock();
    struct shared_map *m = table_find(&st, birth, readonly);
    if (m) {
        m->references++;
        base = m->base;
    } else
        base = table_add(fd, bytes, readonly, &st, error);
    table_unlock();
    return base;
}

void shared_map_not_for_forks(void *base)
{
    table_lock();
    for (struct shared_map *m = table.first; m; m = m->next)
        if (m->base == base) {
            memory_not_for_forks(m->base, m->bytes);
            m->not_for_forks = true;
        }
    table_unlock();
}

void shared_map_give(void *base)
{
    table_lock();
    for (struct shared_map **at = &table.first; *at; at = &(*at)->next) {
        struct shared_map *m = *at;
        if (m->base != base)
            continue;
        if (--m->references == 0) {
            *at = m->next;
            memory_unmap(m->base, m->bytes);
            free(m);
        }
        break;
    }
    table_unlock();
}
