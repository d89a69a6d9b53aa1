/* What a host of a meeting is sent by whoever connects: greetings of other builds, of nobody, with
 * descriptors, and more of it afterwards. */
#include "group/host.c"

#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>

enum { SIZE = 3 };

static struct arena arena;
static struct join_request request = { .size = SIZE };
static char why_room[256];
static struct text why = { why_room, sizeof why_room, 0 };
static struct meeting meeting = {
    .request = &request, .arena = &arena,
    .gather = { .arena = &arena, .end_ns = UINT64_MAX }, .why = &why
};

static void open_once(void)
{
    const struct arena_plan plan = {
        .size = SIZE, .job = "fuzz", .span_bytes = 16 << 20, .rules = "", .store_bytes = 2 << 20
    };
    if (!arena.base)
        FUZZ_MUST(arena_create(&arena, &plan, &why) == 0);
    store_release32(&arena.join->state, JOIN_GATHERING);
    store_release32(&arena.join->failed_rank, 0);
    for (int i = 0; i < SIZE; i++)
        store_release32(&arena.seats[i].state, i ? SEAT_EMPTY : SEAT_JOINED);
}

/* The greeting, of which the input may leave what is hard to guess as it ought to be. */
static void make_hello(struct feed *feed, struct meet_hello *hello, uint8_t right)
{
    struct text version = TEXT_IN(hello->version);
    feed_bytes(feed, hello, sizeof *hello);
    if (right & 1)
        hello->magic = MEET_MAGIC, hello->bytes = sizeof *hello;
    if (right & 2) {
        hello->layout_hash = layout_hash();
        text_clear(&version);
        text_add(&version, "%s", arena_version());
    }
    if (right & 4)
        hello->size = SIZE;
    if (right & 8)
        hello->rank %= SIZE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct meet_hello hello = { 0 };
    struct meet_answer answer;
    struct guest guests[2] = { { .fd = -1 }, { .fd = -1 } };
    int ends[2], passed = -1;
    open_once();
    uint8_t right = feed_byte(&feed), how = feed_byte(&feed);
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    struct host h = {
        .m = &meeting, .listener = -1, .room = 2, .guests = 1, .guest = guests,
        .end = how & 1 ? -EOWNERDEAD : ASSEMBLE_GOING
    };
    guests[0] = (struct guest){ ends[0], -1, 1, false, clock_ns() };
    store_release32(&arena.seats[1].state, how >> 1 & 3);
    make_hello(&feed, &hello, right);
    size_t n = right & 16 ? sizeof hello : 1 + feed_byte(&feed) % sizeof hello;
    handover_send(ends[1], &hello, n, how & 8 ? 2 : -1, 0);
    greet(&h, &guests[0]);
    int got = handover_recv(ends[1], &answer, sizeof answer, &passed, 0);
    FUZZ_MUST(got == (int)sizeof answer && answer.magic == MEET_MAGIC
              && memchr(answer.text, 0, sizeof answer.text));
    FUZZ_MUST((answer.status == 0) == (passed >= 0) && (answer.status == 0 || answer.text[0]));
    if (passed >= 0) {
        FUZZ_MUST(n == sizeof hello && hello.layout_hash == layout_hash() && hello.rank >= 0
                  && hello.rank < SIZE && guests[0].rank == hello.rank);
        close(passed);
    }
    while (feed.left) {
        char bytes[256];
        size_t more = 1 + feed_byte(&feed) % sizeof bytes;
        feed_bytes(&feed, bytes, more);
        handover_send(ends[1], bytes, more, how & 16 ? 2 : -1, 0);
        swallow(&guests[0]);
    }
    close(ends[1]);
    if (guests[0].rank >= 0)
        swallow(&guests[0]);
    sweep(&h);
    if (h.guests)
        close(ends[0]);
    return 0;
}
