/* What is in a box is checked as if it came from a live arena: anybody may have made it. Its
 * processes are as its writer saw them, and none of them is looked for here. Cost: 2 ms a MiB. */
#include "cli/held_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool held_job_is_box(const char *word)
{
    size_t n = strlen(word);
    return strchr(word, '/') || (n > 4 && !strcmp(word + n - 4, ".box"));
}

/* What process_state says; any other text is none of it. */
static const char *held_state(const char state[16])
{
    static const char *const words[] = {
        "running", "sleeping", "stopped", "zombie", "in the kernel", "gone", "out of sight"
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strncmp(state, words[i], 16))
            return words[i];
    return NULL;
}

static void held_unpack_ranks(struct held_job *held)
{
    const struct arena_header *h = held->copy.arena.header;
    for (uint32_t r = 0; r < h->size && r < held->box.size; r++) {
        const struct box_rank *b = &held->box.ranks[r];
        struct seat *seat = &held->copy.arena.seats[r];
        /* relaxed: a private copy. How a rank ended that was dead by then may have come later */
        if (process_mark_died(load_relaxed32(process_mark_word(&seat->mark))) && b->ended)
            store_relaxed32(&seat->status, b->ended);                /* relaxed: as above */
        held->process[r] = (struct rank_process){
            .pid = b->pid > 0 ? b->pid : 0, .tid = b->tid, .state = held_state(b->state),
            .cpu_ns = b->cpu_ns, .read_ns = b->read_ns, .gone = b->gone == 1,
            .kernel = memchr(b->kernel, 0, sizeof b->kernel) ? b->kernel : ""
        };
    }
}

int held_job_unpack(struct held_job *held, const char *path)
{
    struct text why = TEXT_IN(held->why);
    *held = (struct held_job){ .pid = 0 };
    if (box_read(&held->box, path, &why) != 0)
        return 0;
    const struct arena_bytes from = box_arena(&held->box);
    if (arena_copy_from(&held->copy, &from, ARENA_COPY_MOST, &why) != 0) {
        box_drop(&held->box);
        return 0;
    }
    held->uid = held->box.moment->uid;
    held->copy.left_out += held->box.moment->left_out;
    /* the copy's origin is of this process's clock */
    held->now = (struct clock_point){
        held->box.moment->tick, held->box.moment->ns + (uint64_t)process_clock_ahead()
    };
    held->process = calloc(held->copy.arena.header->size, sizeof *held->process);
    if (!held->process) {
        held_job_drop(held);
        return -ENOMEM;
    }
    held_unpack_ranks(held);
    return 0;
}

void held_job_drop(struct held_job *held)
{
    if (held->copy.arena.base)
        arena_copy_drop(&held->copy);
    box_drop(&held->box);
    free(held->process);
    held->process = NULL;
}
