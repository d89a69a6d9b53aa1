/* A descriptor is sent for each operation until the receiver has opened the memory, since it keeps
 * none. That takes 5 us for each peer. Descriptors that came and were not used stand in a ring, so
 * a peer that sends for ever fills no table. */
#include "gpu/descriptors.h"

#include "os/handover.h"
#include "os/kept.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARCELS = 64, ASSEMBLE_MOST = 1024 };

struct descriptor_parcel { uint64_t buffer; uint32_t owner; struct kept file; };
struct message { uint64_t birth, buffer; uint32_t owner, spare; };

struct descriptors {
    pthread_mutex_t lock;
    uint64_t birth;
    uint32_t mine, next;
    struct kept box;                                 /* no fd: none */
    struct descriptor_parcel parcels[PARCELS];
};

static void name_of(uint64_t birth, uint32_t rank, char *name, size_t room)
{
    struct text t = { name, room, 0 };
    text_clear(&t);
    text_add(&t, "tutti-gpu-%016llx-%u", (unsigned long long)birth, rank);
}

struct descriptors *descriptors_new(uint64_t birth, uint32_t mine)
{
    char name[64];
    struct descriptors *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->birth = birth;
    d->mine = mine;
    for (int i = 0; i < PARCELS; i++)
        d->parcels[i].file = KEPT_NONE;
    name_of(birth, mine, name, sizeof name);
    d->box = kept_of(handover_box(name));
    return d;
}

static void drop(struct descriptor_parcel *p)
{
    kept_close(&p->file);
}

void descriptors_free(struct descriptors *d)
{
    if (!d)
        return;
    for (int i = 0; i < PARCELS; i++)
        drop(&d->parcels[i]);
    kept_close(&d->box);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

int descriptors_put(struct descriptors *d, uint32_t to, uint64_t buffer, int fd)
{
    char name[64];
    name_of(d->birth, to, name, sizeof name);
    int way = handover_into(name);
    if (way < 0)
        return way;
    struct message m = { .birth = d->birth, .buffer = buffer, .owner = d->mine };
    int r = handover_send(way, &m, sizeof m, fd, 0);
    handover_close(way, NULL);
    return r;
}

static struct descriptor_parcel *find(struct descriptors *d, uint32_t owner, uint64_t buffer)
{
    for (int i = 0; i < PARCELS; i++)
        if (kept_is(&d->parcels[i].file) && d->parcels[i].owner == owner
            && d->parcels[i].buffer == buffer)
            return &d->parcels[i];
    return NULL;
}

static void keep(struct descriptors *d, const struct message *m, int fd)
{
    struct descriptor_parcel *p = find(d, m->owner, m->buffer);
    if (!p)
        p = &d->parcels[d->next++ % PARCELS];
    drop(p);
    *p = (struct descriptor_parcel){ m->buffer, m->owner, kept_of(fd) };
}

/* Bounded: a peer that sends for ever does not hold this rank up. */
void descriptors_gather(struct descriptors *d)
{
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < ASSEMBLE_MOST && kept_is(&d->box); i++) {
        struct message m;
        int fd, got = handover_recv(d->box.fd, &m, sizeof m, &fd, 0);
        if (got == -EAGAIN)
            break;
        if (got == sizeof m && m.birth == d->birth && fd >= 0)
            keep(d, &m, fd);
        else if (fd >= 0)
            close(fd);
    }
    pthread_mutex_unlock(&d->lock);
}

int descriptors_take(struct descriptors *d, uint32_t owner, uint64_t buffer)
{
    pthread_mutex_lock(&d->lock);
    struct descriptor_parcel *p = find(d, owner, buffer);
    int fd = p ? p->file.fd : -1;
    if (p)
        p->file = KEPT_NONE;
    pthread_mutex_unlock(&d->lock);
    return fd;
}
