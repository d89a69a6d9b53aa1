/* The sentences of a report are built here and nowhere else, so that what a rank prints itself and
 * what another terminal shows of it can be searched for by the same words. Cost: some microseconds
 * a sentence, in reports alone. */
#include "watch/phrase.h"

#include "os/process.h"

#include <errno.h>
#include <string.h>

/* Enough to tell files apart. */
const char *phrase_short(const char *site)
{
    const char *end = strrchr(site, '/');
    if (!end)
        return site;
    while (end > site && end[-1] != '/')
        end--;
    return end;
}

void phrase_name(struct text *t, uint64_t descriptor, uint64_t count, uint64_t number)
{
    fingerprint_add(t, descriptor, count);
    if (kind_collective(fingerprint_kind(descriptor)) && number)
        text_add(t, " #%llu", (unsigned long long)number);
}

static void phrase_letter(struct text *t, const struct op_record *operation, enum kind kind)
{
    text_add(t, kind == KIND_SEND ? " to" : " from");
    if (operation->about)
        text_add(t, " %u", operation->about - 1);
    else
        text_add(t, " any");
    if (operation->tag)
        text_add(t, " tag %u", operation->tag - 1);
    else
        text_add(t, " tag any");
}

void phrase_call(struct text *t, const struct op_record *operation)
{
    enum kind kind = fingerprint_kind(operation->descriptor);
    if (!operation->became)
        text_add(t, "%s", kind_name(kind));
    else
        phrase_name(t, operation->descriptor, operation->count, operation->number);
    if (operation->became && (kind == KIND_SEND || kind == KIND_RECV || kind == KIND_PROBE))
        phrase_letter(t, operation, kind);
}

void phrase_operation(struct text *t, const struct op_record *operation)
{
    phrase_call(t, operation);
    if (operation->comm)
        text_add(t, " on %s", operation->comm);
    text_add(t, " at %s", phrase_short(operation->site));
}

void phrase_doing(struct text *t, const struct doing *doing)
{
    if (!doing->over && doing->stopped)
        text_add(t, "stopped, ");
    if (!doing->called) {
        text_add(t, doing->over ? ", had called nothing on this comm"
                                : "in its own code, has called nothing on this comm yet");
        return;
    }
    if (!doing->ended) {
        text_add(t, doing->over ? " in " : "");
        phrase_operation(t, &doing->operation);
        text_add(t, " for ");
        text_add_duration(t, doing->age_ns);
        return;
    }
    if (!doing->over) {
        text_add(t, "in its own code for ");
        text_add_duration(t, doing->age_ns);
    }
    text_add(t, ", last: ");
    phrase_operation(t, &doing->operation);
    if (doing->result == -EINVAL)
        text_add(t, ", which was refused (EINVAL)");
}

void phrase_death(struct text *t, uint32_t status)
{
    text_add(t, "died");
    if (status) {
        text_add(t, ", ");
        process_add_status(t, (int)(status >> 1));
    }
}

void phrase_left(struct text *t, uint32_t status, const char *program)
{
    text_add(t, "left");
    if (status <= 1)
        return;
    text_add(t, ", ");
    process_add_status(t, (int)(status >> 1));
    if (status == (1u << 9 | 1) && !strncmp(program, "python", 6))
        text_add(t, ": as after an uncaught exception");
}

void phrase_ranks(struct text *t, const int *ranks, int n)
{
    text_add(t, n == 1 ? "rank " : "ranks ");
    text_add_ranks(t, ranks, n);
}
