/* Job: register host memory with CUDA, so that a GPU's copy engines reach it by themselves: ranges
 *      of the arena, and bounce memory of our own.
 * Owns: the process's table of registered ranges. CUDA accepts each only once, and ranks that are
 *       threads share them.
 * Never: knows the content, copies.
 *
 * A range that CUDA does not register stays as it is: copies still work, only slower. Who asked for
 * it tells the program (streams.c). */
#ifndef TUTTI_GPU_STAGING_H
#define TUTTI_GPU_STAGING_H

#include "gpu/context.h"

struct pin;                                          /* a registered range; its users share it */

/* Registers [at, at + bytes), whole pages, or shares the range if it is registered. `number`
   identifies the memory there. The pages at an address may be exchanged between two uses, and a
   range with another number is registered anew. A range that overlaps this one without being equal
   was given back by its owner, and is unregistered. Within gpu_enter. 0, -ENOMEM (no memory for the
   table), -EIO. 0 with *why: it could not be registered. */
int staging_pin(struct gpu *gpu, void *at, size_t bytes, uint64_t number, struct pin **pin,
                struct text *why);
bool staging_registered(const struct pin *pin);
bool staging_is(const struct pin *pin, const void *at, size_t bytes, uint64_t number);
/* No copy is under way there any more. NULL: does nothing. */
void staging_unpin(struct pin *pin);

/* Memory of our own. Up to BOUNCE_PINNED_MOST bytes it is registered. */
struct bounce { char *at; size_t bytes; struct pin *pin; };
enum { BOUNCE_PINNED_MOST = 16 << 20 };              /* larger than this: plain memory */
/* Makes room for at least that many bytes; the old content is lost. Within gpu_enter. 0, -ENOMEM,
 * -EIO. */
int  staging_bounce(struct gpu *gpu, struct bounce *bounce, size_t bytes, struct text *why);
/* The device's address of it. 0; -ENOTSUP: it has none; -EIO. Within gpu_enter. */
int  staging_seen(struct gpu *gpu, const struct bounce *bounce, CUdeviceptr *at, struct text *why);
void staging_bounce_free(struct bounce *bounce);

#endif
