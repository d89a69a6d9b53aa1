/* What a rank that meets a host is handed: answers, and descriptors that are an arena, a damaged
 * one, or none at all. */
#include <poll.h>

/* Nobody comes while this waits, and the deadline has passed: so nothing is waited for, and a
 * hundred times as many inputs are tried. */
static int poll_now(struct pollfd *p, nfds_t n, int ms)
{
    (void)ms;
    return poll(p, n, 0);
}
#define poll poll_now
#include "group/meet.c"
#undef poll

#include "fuzz.h"
#include "os/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { SIZE = 2 };

static struct arena made;
static struct arena_header good;
static char why_room[256];
static struct text why = { why_room, sizeof why_room, 0 };

static void open_once(void)
{
    const struct arena_plan plan = {
        .size = SIZE, .job = "fuzz", .span_bytes = 16 << 20, .rules = "", .store_bytes = 2 << 20
    };
    if (!made.base) {
        FUZZ_MUST(arena_create(&made, &plan, &why) == 0);
        memcpy((void *)&good, made.header, sizeof good);
    }
    memcpy((void *)made.header, &good, sizeof good);
    store_release32(&made.join->state, JOIN_GATHERING);
    store_release32(&made.join->failed_rank, 0);
    store_release32(&made.join->joined, 0);
    for (int i = 0; i < SIZE; i++)
        store_release32(&made.seats[i].state, SEAT_EMPTY);
}

static int descriptor(uint8_t which)
{
    int ends[2];
    switch (which % 6) {
    case 0: return -1;
    case 1: return memfd_create("empty", MFD_CLOEXEC);
    case 2: return memory_create(4096);
    case 3:
        FUZZ_MUST(pipe(ends) == 0);
        close(ends[1]);
        return ends[0];
    default: return fcntl(made.fd, F_DUPFD_CLOEXEC, 100);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct meet_answer answer = { 0 };
    struct arena arena = { .fd = -1 };
    int ends[2];
    open_once();
    uint8_t right = feed_byte(&feed), which = feed_byte(&feed);
    struct join_request request = {
        .name = "fuzz", .rank = right >> 4 & 1, .size = SIZE + (right >> 5 & 1)
    };
    struct meeting meeting = { .request = &request, .arena = &arena, .why = &why,
                               .gather = { .arena = &arena, .rank = (uint32_t)request.rank,
                                           .end_ns = 1 } };
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    feed_bytes(&feed, &answer, sizeof answer < feed.left ? 300 : feed.left < 300 ? feed.left : 300);
    if (right & 1)
        answer.magic = MEET_MAGIC;
    if (right & 2)
        answer.status = 0;
    if (right & 4)
        answer.host_rank = 0;
    if (right & 64)
        memset(answer.text, 'x', sizeof answer.text);
    size_t n = right & 8 ? sizeof answer : 1 + feed_half(&feed) % sizeof answer;
    int fd = descriptor(which);
    if (which & 128)                                 /* its header is damaged */
        feed_scribble(&feed, made.header, sizeof *made.header);
    handover_send(ends[1], &answer, n, fd, 0);
    if (fd >= 0)
        close(fd);
    if (right & 128)
        close(ends[1]);
    text_clear(&why);
    /* The deadline has passed, so the world that this rank has come to fails at once. */
    int r = join_host(&meeting, ends[0]);
    FUZZ_MUST(r != 0 && (r == -EAGAIN || why.used > 0));
    FUZZ_MUST(arena.base == NULL && arena.fd < 0);
    close(ends[0]);
    if (!(right & 128))
        close(ends[1]);
    return 0;
}
