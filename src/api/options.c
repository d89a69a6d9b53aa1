/* An option that is not 0 goes before its environment variable, that before the launcher's value,
 * that before the default. */
#define TUTTI_NO_SITES
#include "api/world.h"

#include "base/error.h"
#include "base/knob.h"
#include "fold/fold.h"
#include "os/cpu.h"
#include "os/numa.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { JOIN_TIMEOUT_MS = 60 * 1000, WARN_MS = 30 * 1000 };

static const struct { const char *name; unsigned flag; } flags[] = {
    { "bind_core", TUTTI_BIND_CORE }, { "bind_numa", TUTTI_BIND_NUMA },
    { "no_spin", TUTTI_NO_SPIN }, { "local", TUTTI_LOCAL }, { "ahead", TUTTI_AHEAD },
    { "leave", TUTTI_LEAVE },
};
static const unsigned flags_all = TUTTI_BIND_CORE | TUTTI_BIND_NUMA | TUTTI_NO_SPIN | TUTTI_LOCAL
    | TUTTI_AHEAD | TUTTI_LEAVE;

static int options_int(enum knob_id id, int *field, int fallback, struct text *why)
{
    int64_t value;
    char said[256];
    if (*field)
        return 0;
    int r = knob_int(id, &value, said, sizeof said);
    if (r < 0) {
        text_add(why, "%s", said);
        return r;
    }
    *field = r == 0 ? fallback : value > INT_MAX ? INT_MAX : (int)value;
    return 0;
}

static int options_flags(unsigned *field, struct text *why)
{
    const char *list;
    int64_t number;
    if (*field || !knob_text(KNOB_FLAGS, &list))
        return 0;
    if (text_parse_int(list, 0, flags_all, &number) == 0) {
        *field = (unsigned)number;
        return 0;
    }
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ","), i;
        for (i = 0; i < sizeof flags / sizeof flags[0]; i++)
            if (strlen(flags[i].name) == n && !strncmp(s, flags[i].name, n))
                break;
        if (i == sizeof flags / sizeof flags[0]) {
            text_add(why,
                     "TUTTI_FLAGS=%.60s: expected bind_core, bind_numa, no_spin, local, ahead, "
                     "leave, separated by commas",
                     list);
            return -EINVAL;
        }
        *field |= flags[i].flag;
        s += n + (s[n] == ',');
    }
    return 0;
}

static int options_check(const tutti_options *o, struct text *why)
{
    if (o->flags & ~flags_all) {
        text_add(why, "unknown bits 0x%x in options.flags", o->flags & ~flags_all);
        return -EINVAL;
    }
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i]) {
            text_add(why, "options.reserved[%zu] is not 0: fill a tutti_options with zeros first",
                     i);
            return -EINVAL;
        }
    return 0;
}

int world_options(tutti_options *o, const tutti_options *given, struct text *why)
{
    char said[256];
    int64_t value;
    *o = given ? *given : (tutti_options){ 0 };
    int r = options_check(o, why);
    if (r == 0)
        r = options_flags(&o->flags, why);
    if (r == 0)
        r = options_int(KNOB_TIMEOUT_MS, &o->timeout_ms, 0, why);
    if (r == 0)
        r = options_int(KNOB_JOIN_TIMEOUT_MS, &o->join_timeout_ms, JOIN_TIMEOUT_MS, why);
    if (r == 0)
        r = options_int(KNOB_WARN_MS, &o->warn_ms, WARN_MS, why);
    int spin = (int)o->spin_us;
    if (r == 0 && (r = options_int(KNOB_SPIN_US, &spin, 0, why)) == 0)
        o->spin_us = (unsigned)spin;
    if (r == 0 && !o->size) {
        int rank = o->rank;
        r = options_int(KNOB_SIZE, &o->size, 0, why);
        if (r == 0)
            /* a wrong value is refused also if it is not used */
            r = options_int(KNOB_RANK, &rank, 0, why);
        if (r == 0 && o->size)
            o->rank = rank;
    }
    if (r == 0 && !o->job)
        knob_text(KNOB_JOB, &o->job);
    const char *isa;
    if (r == 0 && knob_text(KNOB_ISA, &isa) && !fold_find_isa(isa, TUTTI_F32, TUTTI_SUM)) {
        text_add(why,
                 "TUTTI_ISA=%.60s: expected plain, avx2, avx512 or neon, as far as this processor "
                 "has it",
                 isa);
        r = -EINVAL;
    }
    if (r == 0 && !o->span_bytes) {
        r = knob_int(KNOB_SPAN_BYTES, &value, said, sizeof said);
        if (r > 0)
            o->span_bytes = (size_t)value;
        else if (r < 0)
            text_add(why, "%s", said);
        r = r < 0 ? r : 0;
    }
    return r;
}

int world_bind(int rank, unsigned wanted, struct text *why)
{
    int r = 0;
    if (wanted & TUTTI_BIND_CORE)
        r = cpu_bind(rank);
    else if (wanted & TUTTI_BIND_NUMA)
        r = numa_bind(rank);
    if (r < 0)
        text_add(why, "cannot bind rank %d: %s", rank, error_text(r));
    return r < 0 ? r : 0;
}
