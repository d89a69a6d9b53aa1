/* What a rank written in Python needs of the harness: turns, alignment and stamps are those of
 * everybody else; only the operation itself is a call back into Python, one for each operation.
 * That costs about a microsecond, which a program in Python pays, too. */
#include "harness/member.h"

#include <errno.h>

typedef int (*python_call)(int op, int work, void *send, void *recv, size_t bytes);
static python_call call;

static int once(struct rank *r)
{
    return call((int)r->op, r->work, r->send, r->recv, r->bytes) == 0 ? 0 : -EIO;
}

int peer_ranks(struct stage *stage);
int peer_ranks(struct stage *stage) { return member_ranks(stage); }

struct stage *peer_join(const char *path);
struct stage *peer_join(const char *path) { return member_join(path); }

void peer_first(struct stage *stage, int me);
void peer_first(struct stage *stage, int me) { member_first(stage, me); }

void peer_version(struct stage *stage, const char *version);
void peer_version(struct stage *stage, const char *version) { member_version(stage, version); }

const char *peer_operation(int op);
const char *peer_operation(int op) { return op > OP_NONE && op < OPS ? operations[op].name : NULL; }

/* can, can_start: a bit for each operation, by its number. */
int peer_serve(struct stage *stage, int me, unsigned can, unsigned can_start, python_call python);
int peer_serve(struct stage *stage, int me, unsigned can, unsigned can_start, python_call python)
{
    struct system system = { { NULL }, { NULL } };
    call = python;
    for (int op = 0; op < OPS; op++) {
        system.run[op] = can >> op & 1 ? once : NULL;
        system.start[op] = can_start >> op & 1 ? once : NULL;
    }
    return member_serve(stage, me, &system);
}
