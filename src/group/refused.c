/* A few places in the arena: notes are for people, who look for one cause. A rank that is refused
 * again and again fills one place. Cost: a scan of REFUSALS places. */
#include "group/refused.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* E82 acquire */
static bool is_ready(const struct join_refusal *r) { return load_acquire32(&r->ready) == 1; }

void refused_note(const struct arena *arena, int rank, int error, const char *format, ...)
{
    char text[REFUSAL_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct join_refusal *all = arena->join->refusals;
    for (int i = 0; i < REFUSALS; i++) {
        uint32_t none = 0;
        if (is_ready(&all[i]) && all[i].rank == rank && all[i].error == error)
            return;
        if (!swap_if32(&all[i].claim, &none, 1))
            continue;
        all[i].rank = rank;
        all[i].error = error;
        memcpy(all[i].text, text, sizeof text);
        store_release32(&all[i].ready, 1);                           /* E82 release */
        return;
    }
}

void refused_size(const struct arena *arena, int rank, int pid, int size)
{
    refused_note(arena, rank, -EPROTO, "rank %d (pid %d), which says that there are %d ranks", rank,
                 pid, size);
}

void refused_second(const struct arena *arena, int rank, int pid)
{
    refused_note(arena, rank, -EEXIST, "a second rank %d (pid %d)", rank, pid);
}

static bool is_kept(const struct refused *kept, int rank, int error)
{
    for (int i = 0; i < kept->n; i++)
        if (kept->one[i].rank == rank && kept->one[i].error == error)
            return true;
    return false;
}

void refused_keep(struct refused *kept, const struct arena *arena)
{
    for (int i = 0; i < REFUSALS && kept->n < REFUSALS; i++) {
        const struct join_refusal *r = &arena->join->refusals[i];
        if (!is_ready(r) || is_kept(kept, r->rank, r->error))
            continue;
        struct text t = TEXT_IN(kept->one[kept->n].text);
        text_clear(&t);
        text_add(&t, "%.*s", REFUSAL_TEXT - 1, r->text);
        kept->one[kept->n].rank = r->rank;
        kept->one[kept->n++].error = r->error;
    }
}

void refused_carry(const struct refused *kept, const struct arena *arena)
{
    for (int i = 0; i < kept->n; i++)
        refused_note(arena, kept->one[i].rank, kept->one[i].error, "%s", kept->one[i].text);
}

/* True: the refused rank has come since, so its note is void. A second rank (-EEXIST) still counts.
 * */
static bool has_come(const struct arena *arena, int rank, int error)
{
    return arena && error != -EEXIST && rank >= 0 && (uint32_t)rank < arena->header->size
        && load_acquire32(&arena->seats[rank].state) != SEAT_EMPTY;  /* E11 acquire */
}

/* True: a note of group/elsewhere. */
static bool is_elsewhere(int error) { return error == -EXDEV || error == -EACCES; }

static void explain(const struct refused *kept, const struct arena *arena, bool elsewhere,
                    struct text *why)
{
    const char *before = elsewhere ? "; elsewhere meet under this name: " : "; refused: ";
    for (int i = 0; i < kept->n; i++) {
        if (is_elsewhere(kept->one[i].error) != elsewhere
            || has_come(arena, kept->one[i].rank, kept->one[i].error))
            continue;
        text_add(why, "%s%s", before, kept->one[i].text);
        before = ", ";
    }
}

void refused_explain(const struct refused *kept, const struct arena *arena, struct text *why)
{
    explain(kept, arena, false, why);
    explain(kept, arena, true, why);
}
