/* Only predefined types without gaps are known to be dense; the MPI packs all others. In the MPIs
 * of one machine a packed element is its bytes, in the order of the type's map, and no more. Not
 * every MPI packs more at a time than an int counts: large buffers go in several pieces. */
#include "mpi/pack.h"

#include "mpi/elements.h"
#include "mpi/mpi_job.h"

#include <errno.h>
#include <stdlib.h>

enum { PIECE = 1 << 30 };
static char nothing[64];

bool layout_of(MPI_Datatype type, MPI_Comm comm, struct layout *layout)
{
    const struct element *e = element_of(type);
    MPI_Count size = 0;
    MPI_Aint lower = 0, extent = 0;
    if (e) {
        *layout = (struct layout){ type, comm, e->size, e->size, true };
        return true;
    }
    if (type == job.abi.no_type || below.Type_size_x(type, &size) || size < 0
        || below.Type_get_extent(type, &lower, &extent))
        return false;
    *layout = (struct layout){ type, comm, (size_t)size, (size_t)extent, false };
    return true;
}

int pack_room(struct packed *p, const struct layout *layout, const void *buf, size_t count)
{
    *p = (struct packed){ layout, (void *)(uintptr_t)buf, count, NULL, count * layout->size,
                          false };
    if (!p->bytes)
        p->at = nothing;
    else if (layout->dense)
        p->at = p->buf;
    else {
        p->at = malloc(p->bytes);
        p->own = true;
    }
    return p->at ? 0 : -ENOMEM;
}

/* How many elements one call may take. */
static size_t piece_of(const struct layout *l)
{
    return l->size < PIECE ? PIECE / (l->size ? l->size : 1) : 1;
}

/* MPI_BOTTOM is NULL, which MPICH's MPI_Pack refuses. So such a type is moved down by some bytes,
 * and the address up by as many. */
enum { UP = 64 };

static int move_down(MPI_Datatype *type)
{
    const int one = 1;
    const MPI_Aint down = -UP;
    return below.Type_create_hindexed(1, &one, &down, *type, type) || below.Type_commit(type);
}

static int pack_pieces(struct packed *p, size_t from, size_t n, bool in)
{
    const struct layout *l = p->layout;
    size_t most = piece_of(l);
    MPI_Datatype type = l->type;
    bool bottom = p->own && n && !p->buf;
    uintptr_t base = bottom ? UP : (uintptr_t)p->buf;
    int r = bottom ? move_down(&type) : 0;
    for (size_t i = from; r == 0 && p->own && i < from + n; i += most) {
        size_t m = from + n - i < most ? from + n - i : most;
        MPI_Count at = 0, bytes = (MPI_Count)(m * l->size);
        void *element = (void *)(base + i * l->extent);
        r = in ? below.Pack_c(element, (int)m, type, p->at + i * l->size, bytes, &at, l->comm)
               : below.Unpack_c(p->at + i * l->size, bytes, &at, element, (int)m, type, l->comm);
        r |= at != bytes;
    }
    if (bottom)
        below.Type_free(&type);
    return r ? -EIO : 0;
}

int pack_in(struct packed *p, size_t from, size_t n)
{
    return pack_pieces(p, from, n, true);
}

int pack_out(struct packed *p, size_t from, size_t n)
{
    return pack_pieces(p, from, n, false);
}

void pack_free(struct packed *p)
{
    if (p->own)
        free(p->at);
}
