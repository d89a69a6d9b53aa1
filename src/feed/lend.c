/* Loans. What readers have gone past is lent again, to a message of about that size; of what fits
 * none some is kept, and the rest goes back to the span. Cost: a look at all readers a loan; pages
 * only for a new one. */
#include "feed/feed.h"

#include "base/error.h"
#include "os/caller.h"

#include <errno.h>
#include <stdlib.h>

enum { IDLE_MOST = 4, PAGE = 4096 };

static bool loan_fits(const struct feed_loan *loan, size_t bytes)
{
    return loan->state == LOAN_IDLE && loan->room >= bytes && loan->room / 2 <= bytes + PAGE;
}

/* Takes back what all have read. NULL, or an idle one that fits. */
static struct feed_loan *loans_look(struct tutti_queue *q, size_t bytes)
{
    struct feed_loan *fits = NULL;
    for (struct feed_loan *loan = q->loans; loan; loan = loan->next) {
        if (loan->state == LOAN_PUT && loan->end <= q->least)
            loan->state = LOAN_IDLE;
        if (!fits && loan_fits(loan, bytes))
            fits = loan;
    }
    return fits;
}

/* Gives back to the span what is idle, but for `keep`. */
static void loans_trim(struct tutti_queue *q, int keep)
{
    struct feed_loan **link = &q->loans;
    while (*link) {
        struct feed_loan *loan = *link;
        if (loan->state != LOAN_IDLE || keep-- > 0) {
            link = &loan->next;
            continue;
        }
        *link = loan->next;
        comm_hold_end(q->comm, loan->at);
        free(loan);
    }
}

static struct feed_loan *loan_new(struct tutti_queue *q, size_t bytes, int *error)
{
    struct feed_loan *loan = malloc(sizeof *loan);
    size_t room = layout_round(bytes ? bytes : 1, PAGE);
    *error = -ENOMEM;
    if (!loan)
        return NULL;
    *loan = (struct feed_loan){ .next = q->loans, .room = room };
    loan->at = feed_memory(q, room, error);
    if (!loan->at && *error == -ENOSPC) {
        loans_trim(q, 0);
        loan->next = q->loans;
        loan->at = feed_memory(q, room, error);
    }
    if (!loan->at) {
        free(loan);
        return NULL;
    }
    return q->loans = loan;
}

int feed_loan_take(struct tutti_queue *q, size_t bytes, struct feed_loan **taken,
                   const struct feed_call *call)
{
    CALLER_KEPT;
    int r = feed_readers(q, call);
    if (r < 0)
        return r;
    struct feed_loan *loan = loans_look(q, bytes);
    if (!loan) {
        loans_trim(q, IDLE_MOST);
        loan = loan_new(q, bytes, &r);
    }
    if (!loan)
        return r;
    loan->state = LOAN_OUT;
    *taken = loan;
    return 0;
}

int feed_loan(struct tutti_queue *q, size_t bytes, void **block, const struct feed_call *call)
{
    struct feed_loan *loan;
    int r = feed_loan_take(q, bytes, &loan, call);
    if (r == 0)
        *block = loan->at;
    if (r != -ENOSPC && r != -ENOMEM)
        return r;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    feed_report(q, call, &t);
    text_add(&t, "no memory for a loan of ");
    text_add_bytes(&t, bytes);
    text_add(&t, ": %s\n", r == -ENOSPC ? "the span is full; raise TUTTI_SPAN_BYTES"
                                        : error_system(-r));
    comm_show(q->comm, &t);
    return r;
}

static struct feed_loan *loan_out(struct tutti_queue *q, const void *block)
{
    struct feed_loan *loan = q->loans;
    while (loan && (loan->at != block || loan->state != LOAN_OUT))
        loan = loan->next;
    return loan;
}

int feed_put_loan_of(struct tutti_queue *q, struct feed_put *put, const void *block, size_t bytes)
{
    struct feed_loan *loan = loan_out(q, block);
    if (!loan || bytes > loan->room)
        return loan ? -EMSGSIZE : -ENOENT;
    *put = (struct feed_put){ .loan = loan, .all = bytes };
    return 0;
}

int feed_loan_drop(struct tutti_queue *q, const void *block)
{
    struct feed_loan *loan = loan_out(q, block);
    if (!loan)
        return -ENOENT;
    loan->state = LOAN_IDLE;
    return 0;
}

void feed_loans_free(struct tutti_queue *q)
{
    while (q->loans) {
        struct feed_loan *loan = q->loans;
        q->loans = loan->next;
        free(loan);
    }
}
