/* A seat goes one way: EMPTY, TAKEN by CAS (one rank, one seat), JOINED when it is filled, LEFT. It
 * never becomes empty again, so a reader that sees it used can rely on that.
 * The rank takes the mark right after the CAS. If it is killed between the two, the seat has no
 * mark: its connection, its launcher's status or the deadline shows the death.
 * Cost: a CAS and a lock; before them some 100 us for /proc and the cgroup files, once per rank. */
#include "group/seat.h"

#include "os/cpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void seat_card(struct seat_card *card, int several)
{
    memset(card, 0, sizeof *card);
    process_self(&card->id);
    if (cpu_mask(card->cpu_mask, RANKS_MAX / 64) < 0)
        memset(card->cpu_mask, 0, sizeof card->cpu_mask);
    card->quota = (uint32_t)cpu_quota();
    card->several = several != 0;
    process_name(getpid(), card->program, sizeof card->program);
}

static void seat_fill(struct seat *seat, const struct seat_card *card)
{
    seat->id = card->id;
    seat->several = card->several;
    seat->quota = card->quota;
    memcpy(seat->cpu_mask, card->cpu_mask, sizeof seat->cpu_mask);
    memcpy(seat->program, card->program, sizeof seat->program);
}

int seat_take(const struct arena *arena, uint32_t rank, const struct seat_card *card,
              struct text *why)
{
    struct seat *seat = &arena->seats[rank];
    uint32_t empty = SEAT_EMPTY;
    if (!swap_if32(&seat->state, &empty, SEAT_TAKEN)) {
        seat_say_taken(arena, rank, why);
        return -EEXIST;
    }
    int error = process_mark_hold(&seat->mark);
    if (error) {
        text_add(why, "the mark of rank %u cannot be held: the arena is damaged", rank);
        store_release32(&seat->state, SEAT_LEFT);              /* E11 release */
        return -EIO;
    }
    seat_fill(seat, card);
    store_release32(&seat->state, SEAT_JOINED);                /* E11 release */
    return 0;
}

void seat_leave(struct arena *arena, int rank)
{
    struct seat *seat = &arena->seats[rank];
    store_release32(&seat->state, SEAT_LEFT);                  /* E11 release */
    process_mark_leave(&seat->mark);
}

/* True: the process lives. In SEAT_ADRIFT its joining thread has ended, so the first thread counts.
 * */
static bool process_there(const struct seat *seat, uint32_t state)
{
    struct process_id id = seat->id;
    if (state == SEAT_ADRIFT)
        id.tid = id.pid;
    return process_alive(&id, -1) != 0;
}

enum seat_use seat_use(struct seat *seat)
{
    uint32_t state = load_acquire32(&seat->state);             /* E11 acquire */
    /* E11 acquire: a status means that the process has ended, in any state */
    if (state == SEAT_LEFT || load_acquire32(&seat->status))
        return SEAT_PAST;
    if (state == SEAT_EMPTY)
        return SEAT_UNUSED;
    uint32_t word = load_acquire32(process_mark_word(&seat->mark));      /* E5 acquire */
    if (process_mark_died(word) && state != SEAT_ADRIFT)
        return SEAT_PAST;
    if (state == SEAT_TAKEN)
        return SEAT_LIVE;
    if (state == SEAT_JOINED && !process_mark_held(word))
        return SEAT_PAST;
    return process_there(seat, state) ? SEAT_LIVE : SEAT_PAST;
}

void seat_add_who(struct seat *seat, struct text *t)
{
    uint32_t state = load_acquire32(&seat->state);             /* E11 acquire */
    if (state == SEAT_EMPTY || state == SEAT_TAKEN || seat->id.pid == 0)
        return;
    text_add(t, " (pid %d, %.*s)", (int)seat->id.pid, (int)sizeof seat->program, seat->program);
}

void seat_say_taken(const struct arena *arena, uint32_t rank, struct text *why)
{
    struct seat *seat = &arena->seats[rank];
    uint32_t state = load_acquire32(&seat->state);             /* E11 acquire */
    const char *what = state == SEAT_TAKEN ? "is joining already"
        : state == SEAT_LEFT ? "has joined and left"
        : "has joined already";
    text_add(why, "rank %u %s", rank, what);
    seat_add_who(seat, why);
}
