/* Job: let tensors whose bytes are not their values pass torch's dispatcher unchanged to this
 *      backend.
 * Owns: the kernels of torch's own operations for such tensors.
 * Never: decides how they are treated (tensors.cc). */
#ifndef TORCH_LAZY_H
#define TORCH_LAZY_H

namespace tutti {

/* Call it once in a process, after torch has registered its operations. */
void lazy_setup();

}

#endif
