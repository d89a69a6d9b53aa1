/* Job: device memory for the oracle's cases: where it comes from, which stream brings the data,
 *      what is seen of it when the call has ended.
 * Owns: this rank's contexts, streams and memory of its world, from the first case with any on.
 * Never: CUDA before that; what data mean (support/oracle.h). */
#ifndef TUTTI_TEST_GPU_ORACLE_DEVICE_H
#define TUTTI_TEST_GPU_ORACLE_DEVICE_H

#include "support/oracle.h"

/* For operations on this comm. */
const struct oracle_device *oracle_device_of(tutti_comm *world, tutti_comm *comm);
/* How many of the operations so far read the peers' memory where it lies. */
uint64_t oracle_device_pulled(void);
/* All goes; then the world has been left. False: it has been said what is wrong. */
bool oracle_device_end(tutti_comm *world);

#endif
