/* load and save: checked like the arguments of every collective. All ranks together check the file
 * itself (disk/). */
#define TUTTI_NO_SITES
#include "disk/disk.h"

#include "api/check.h"
#include "engine/guard.h"
#include "engine/run.h"
#include "os/caller.h"

/* r: 0, and c->disk is described; or the error of that. */
static int disk(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t number,
                const tutti_call *call, int r)
{
    if (r < 0)
        r = guard_fail(comm, kind, number, r, "no memory for the call");
    if (r == 0)
        r = run_collective(comm, c, kind, number, call);
    if (c->ways)                                     /* it was not run to its end */
        c->ways->end(c, r);
    return guard_leave(comm, r);
}

static int disk_enter(const char *site, struct tutti_comm *comm, struct coll *c, enum kind kind,
                      const char *path, size_t bytes, const tutti_call *call, uint32_t *number)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    *number = guard_site(comm, site);
    check_describe(c, NULL, NULL, bytes, TUTTI_U8, TUTTI_SUM, 0);
    r = guard_call(comm, kind, *number, call);
    if (r == 0 && call && call->stream)
        r = guard_refuse(comm, kind, *number,
                         "call.stream is for device buffers; a file goes to and from host memory");
    if (r == 0 && (!path || !*path))
        r = guard_refuse(comm, kind, *number, "the path is %s", path ? "empty" : "NULL");
    return r < 0 ? guard_leave(comm, r) : 0;
}

int tutti_load_at(const char *site, const char *path, const void **data, size_t *bytes,
                  tutti_comm *comm, const tutti_call *call)
{
    CALLER_KEPT;
    struct coll c;
    uint32_t number;
    int r = disk_enter(site, comm, &c, KIND_LOAD, path, 0, call, &number);
    if (r < 0)
        return r;
    if (!data || !bytes)
        return guard_leave(comm,
                           guard_refuse(comm, KIND_LOAD, number,
                                        "%s is NULL; give the address of a %s",
                                        data ? "bytes" : "data", data ? "size_t" : "pointer"));
    *data = NULL;
    *bytes = 0;
    return disk(comm, &c, KIND_LOAD, number, call, disk_load(&c, comm, path, data, bytes));
}

int tutti_save_at(const char *site, const char *path, const void *data, size_t bytes,
                  tutti_comm *comm, const tutti_call *call)
{
    CALLER_KEPT;
    struct coll c;
    uint32_t number;
    int r = disk_enter(site, comm, &c, KIND_SAVE, path, bytes, call, &number);
    if (r < 0)
        return r;
    if (!data && bytes)
        return guard_leave(comm, guard_refuse(comm, KIND_SAVE, number, "the data are NULL"));
    if (bytes >> 44)
        return guard_leave(comm,
                           guard_refuse(comm, KIND_SAVE, number,
                                        "%zu bytes are more than a file of 16 TiB", bytes));
    return disk(comm, &c, KIND_SAVE, number, call, disk_save(&c, comm, path, data, bytes));
}

int tutti_load(const char *path, const void **data, size_t *bytes, tutti_comm *comm,
               const tutti_call *call)
{
    return tutti_load_at(NULL, path, data, bytes, comm, call);
}

int tutti_save(const char *path, const void *data, size_t bytes, tutti_comm *comm,
               const tutti_call *call)
{
    return tutti_save_at(NULL, path, data, bytes, comm, call);
}
