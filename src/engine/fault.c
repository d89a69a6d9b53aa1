/* Calls are counted from the comm's beginning (one private increment a call), so that N means the
 * same whenever the fault is set. A fault strikes after the arguments are checked and before the
 * arrival. */
#include "engine/fault.h"


#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum action { FAULT_KILL, FAULT_STOP, FAULT_DELAY, FAULT_ABORT };

static int fault_kind(const char *name)
{
    if (!strcmp(name, "*"))
        return -1;
    for (int k = KIND_NONE + 1; k < KIND_COUNT; k++)
        if (!strcmp(kind_name((enum kind)k), name))
            return k;
    return -2;
}

static int fault_action(const char *s, struct fault *fault)
{
    int64_t ms;
    if (!strcmp(s, "kill"))
        fault->action = FAULT_KILL;
    else if (!strcmp(s, "stop"))
        fault->action = FAULT_STOP;
    else if (!strcmp(s, "abort"))
        fault->action = FAULT_ABORT;
    else if (!strncmp(s, "delay=", 6) && text_parse_int(s + 6, 0, 3600000, &ms) == 0) {
        fault->action = FAULT_DELAY;
        fault->delay_ms = (int)ms;
    } else
        return -EINVAL;
    return 0;
}

int fault_add(struct tutti_comm *comm, const char *what, struct text *why)
{
    char copy[128];
    int64_t rank = 0, nth = 0;
    struct fault fault = { 0 };
    size_t before = why->used;
    if (!what || strlen(what) >= sizeof copy) {
        text_add(why, "expected RANK:OPERATION#N:kill|stop|delay=MS|abort");
        return -EINVAL;
    }
    strcpy(copy, what);
    char *name = strchr(copy, ':'), *number = name ? strchr(name, '#') : NULL,
         *action = number ? strchr(number, ':') : NULL;
    if (!action) {
        text_add(why,
                 "\"%s\": expected RANK:OPERATION#N:kill|stop|delay=MS|abort, as in "
                 "1:barrier#3:kill",
                 what);
        return -EINVAL;
    }
    *name++ = *number++ = *action++ = 0;
    fault.kind = fault_kind(name);
    if (text_parse_int(copy, 0, (int64_t)comm->watch.size - 1, &rank) < 0)
        text_add(why, "\"%s\": no rank of this comm; there are 0 to %u", copy,
                 comm->watch.size - 1);
    else if (fault.kind == -2)
        text_add(why, "\"%s\": no operation; give a function's name without tutti_, or *", name);
    else if (text_parse_int(number, 1, INT64_MAX, &nth) < 0)
        text_add(why, "\"%s\": expected the number of a call, from 1", number);
    else if (fault_action(action, &fault) < 0)
        text_add(why, "\"%s\": expected kill, stop, delay=MS or abort", action);
    if (why->used != before)
        return -EINVAL;
    if ((uint32_t)rank != comm->watch.me)
        return 0;
    if (comm->engine.fault_count == FAULTS_MAX) {
        text_add(why, "more than %d faults on one comm", FAULTS_MAX);
        return -ENOSPC;
    }
    fault.nth = (uint64_t)nth;
    comm->engine.faults[comm->engine.fault_count++] = fault;
    fetch_or32(&comm->watch.attention, ATTENTION_FAULT);
    return 0;
}

static void fault_delay(int ms)
{
    struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) < 0 && errno == EINTR) { }
}

void fault_strike(struct tutti_comm *comm, enum kind kind)
{
    uint64_t all = 0;
    for (int i = 0; i < KIND_COUNT; i++)
        all += comm->engine.calls[i];
    for (int i = 0; i < comm->engine.fault_count; i++) {
        const struct fault *f = &comm->engine.faults[i];
        if (f->kind == -1 ? f->nth != all
                          : f->kind != (int)kind || f->nth != comm->engine.calls[kind])
            continue;
        if (f->action == FAULT_KILL)
            kill(getpid(), SIGKILL);
        else if (f->action == FAULT_STOP)
            kill(getpid(), SIGSTOP);
        else if (f->action == FAULT_DELAY)
            fault_delay(f->delay_ms);
        else
            comm_abort(comm, "a fault on purpose");
    }
}
