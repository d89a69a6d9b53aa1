/* An arena as somebody hands it over, with anything in its header and in its seats: it is refused
 * by a sentence, or all of it can be used. */
#include "fuzz.h"

#include "arena/offsets.h"
#include "group/assemble.h"
#include "group/seat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 3 };

static int fd = -1;
static char *base;
static uint64_t first_pages;
static char *good;
static char why_room[512];
static struct text why = { why_room, sizeof why_room, 0 };

/* The creator has detached: each attach maps anew, as a stranger's would. We write through a
 * mapping of our own. */
static void open_once(void)
{
    const struct arena_plan plan = {
        .size = SIZE, .job = "fuzz", .span_bytes = 16 << 20, .rules = "", .store_bytes = 2 << 20
    };
    struct arena a;
    if (!good) {
        FUZZ_MUST(arena_create(&a, &plan, &why) == 0);
        fd = fcntl(a.fd, F_DUPFD_CLOEXEC, 100);
        first_pages = a.header->sites_at;
        arena_detach(&a);
        base = mmap(NULL, first_pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        good = malloc(first_pages);
        FUZZ_MUST(base != MAP_FAILED && good);
        memcpy(good, base, first_pages);
    }
    memcpy(base, good, first_pages);
}

static void use(struct arena *a)
{
    unsigned sum = 0;
    struct assembly g = { .arena = a, .rank = 0, .timeout_ms = 10, .end_ns = 1 };
    FUZZ_MUST(a->header->size == SIZE);
    for (uint32_t i = 0; i < SIZE; i++) {
        sum += (unsigned char)*arena_span(a, i);
        text_clear(&why);
        seat_say_taken(a, i, &why);
        seat_add_who(&a->seats[i], &why);
        sum += (unsigned)seat_use(&a->seats[i]);
    }
    FUZZ_MUST(arena_span(a, SIZE) == NULL && arena_slot(a, a->header->slots) == NULL);
    sum += (unsigned char)((char *)a->store)[a->header->store_bytes - 1];
    sum += load_acquire32(&arena_slot(a, a->header->slots - 1)->state);
    int end = assemble_wait(&g);
    assemble_explain(&g, -ETIMEDOUT, &why);
    assemble_explain(&g, -EOWNERDEAD, &why);
    FUZZ_MUST(end != ASSEMBLE_GOING || sum + 1 > 0);
    FUZZ_MUST(memchr(a->header->job, 0, sizeof a->header->job)
              && memchr(a->header->rules, 0, RULES_TEXT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct arena a;
    open_once();
    uint8_t where = feed_byte(&feed);
    if (where & 1)
        feed_scribble(&feed, base, sizeof(struct arena_header));
    else if (where & 2)                              /* what is in front of the lock */
        feed_scribble(&feed, base + PLACES_JOIN, offsetof(struct arena_join, lock));
    else
        feed_scribble(&feed, base + PLACES_SEATS + sizeof(struct process_mark),
                      SIZE * sizeof(struct seat) - sizeof(struct process_mark));
    text_clear(&why);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    int r = where & 4 ? arena_attach_readonly(&a, copy, &why) : arena_attach(&a, copy, &why);
    if (r == 0 && !(where & 4))
        use(&a);
    if (r == 0)
        arena_detach(&a);
    else {
        FUZZ_MUST((r == -EINVAL || r == -EPROTO) && why.used > 10);
        close(copy);
    }
    return 0;
}
