/* Job: tensors that are not what their bytes say come to this backend as they are, through
 *      torch's dispatcher.
 * Owns: the kernels of torch's own operations for such tensors.
 * Never: what becomes of them: that is tensors.cc's. */
#ifndef TORCH_LAZY_H
#define TORCH_LAZY_H

namespace tutti {

/* Once a process, when torch's operations are there. */
void lazy_setup();

}

#endif
