/* Job: make an arena, map one, find things in it by number.
 * Owns: the header and the directories at birth; afterwards nothing.
 * Never: knows seats in use or operations.
 *
 * Edges: E10 born: the creator fills header and seats, then stores layout_hash (release); a joiner
 *        loads it (acquire), then reads.
 *        E13 site: the filler writes the text, then its hash (release); a reader loads the hash
 *            (acquire), then the text. */
#ifndef TUTTI_ARENA_ARENA_H
#define TUTTI_ARENA_ARENA_H

#include "arena/layout.h"
#include "base/text.h"
#include "os/kept.h"

struct arena {
    char *base;
    uint64_t bytes;
    int fd;                     /* valid while it is made and joined; later use arena_fd */
    int readonly;
    struct kept file;                 /* the file behind fd */
    /* a private copy: a peer that writes over the shared header changes nothing here */
    struct arena_header *header;
    struct arena_join *join;
    struct seat *seats;
    struct site *sites;
    struct key *keys;
    struct store *store;
};

struct arena_plan {
    int size;
    const char *job;
    uint64_t span_bytes;
    const char *rules;
    uint64_t first_seq, store_bytes;
    int verify;
};

/* The arena's descriptor, or -EBADF: the program has closed it. */
static inline int arena_fd(const struct arena *arena) { return kept_fd(&arena->file); }

/* Creates and maps an arena. Its control pages (header, join, seats, the store's first) are
   populated. 0 or -errno with a sentence in why. span_bytes 0: a quarter of RAM a rank, at most 1
   TiB in all, halved until it maps, at least 16 MiB. store_bytes 0: 64 MiB, less if addresses are
   short. */
int arena_create(struct arena *arena, const struct arena_plan *plan, struct text *why);

/* Maps a peer's arena after checks (seals, magic, layout hash, version, offsets). Takes over fd on
   success only. -EPROTO: another build of the library. -EINVAL: not an arena. */
int arena_attach(struct arena *arena, int fd, struct text *why);
/* The same for tools that only read. */
int arena_attach_readonly(struct arena *arena, int fd, struct text *why);
void arena_detach(struct arena *arena);                                     /* unmaps and closes */

struct slot *arena_slot(const struct arena *arena, uint32_t index);
/* Number of its members; 0: the slot was written over. */
uint32_t arena_slot_size(const struct arena *arena, const struct slot *slot);
#define RANK_NOBODY UINT32_MAX
/* The world rank of member p; RANK_NOBODY: the slot was written over. */
uint32_t arena_slot_rank(const struct arena *arena, const struct slot *slot, uint32_t p);
struct member *arena_member(struct slot *slot, uint32_t rank);      /* the rank-th member's lines */
/* first byte of that rank's own memory */
char *arena_span(const struct arena *arena, uint32_t world_rank);

/* True: these two ranks are of one process. */
static inline bool arena_one_process(const struct arena *arena, uint32_t one, uint32_t other)
{
    const struct process_id *a = &arena->seats[one].id, *b = &arena->seats[other].id;
    return a->pid == b->pid && a->start == b->start && a->pid_namespace == b->pid_namespace;
}

/* The number of a call site; a new one is added. 0 ("?"): the table is full, or site is NULL. A
   long site keeps its tail. In one process a text has one number. */
uint32_t arena_site(const struct arena *arena, const char *site);
/* "?" for 0 and for unknown numbers */
const char *arena_site_text(const struct arena *arena, uint32_t number);

/* Robust lock over the directories. 0, -ETIMEDOUT, -errno. After a holder's death nothing needs
 * repair: one last store makes each change valid. */
int  arena_lock(const struct arena *arena, uint64_t timeout_ns);
void arena_unlock(const struct arena *arena);

#endif
