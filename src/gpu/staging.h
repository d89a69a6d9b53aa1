/* Job: host memory that a GPU's copy engines reach by themselves: stretches of the arena registered
 *      with CUDA, and bounce memory of our own.
 * Owns: the process's table of registered stretches: CUDA wants each once, and ranks that are
 *       threads share them.
 * Never: what lies there, copies. A stretch that CUDA will not register is left as it is: copies
 *        work all the same, only slower. */
#ifndef TUTTI_GPU_STAGING_H
#define TUTTI_GPU_STAGING_H

#include "gpu/context.h"

struct pin;                                          /* one user's share in a registered stretch */

/* Registers [at, at + bytes), whole pages, or shares in what is. `number` says which memory lies
   there: the pages under an address may be exchanged between two uses, and a stretch with another
   number is registered anew. A stretch that overlaps this one without being it is one whose owner
   has given it back: it is let go. Within gpu_enter. 0, -ENOMEM (no memory for the books), -EIO. */
int staging_pin(struct gpu *gpu, void *at, size_t bytes, uint64_t number, struct pin **pin,
                struct text *why);
bool staging_is(const struct pin *pin, const void *at, size_t bytes, uint64_t number);
/* No copy is under way there any more. NULL: nothing. */
void staging_unpin(struct pin *pin);

/* Memory of our own, registered while there is not too much of it. */
struct bounce { char *at; size_t bytes; struct pin *pin; };
enum { BOUNCE_PINNED_MOST = 16 << 20 };              /* larger than this: plain memory */
/* At least that many bytes; what was there is lost. Within gpu_enter. 0, -ENOMEM, -EIO. */
int  staging_bounce(struct gpu *gpu, struct bounce *bounce, size_t bytes, struct text *why);
void staging_bounce_free(struct bounce *bounce);

#endif
