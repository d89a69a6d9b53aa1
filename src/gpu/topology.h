/* Job: say where devices are: by which NUMA node one is, and whether one is reached from another by
 *      PCIe across the host bridge. The product's rules and `tutti doctor` ask it alike.
 * Owns: nothing.
 * Never: gives a device work. */
#ifndef TUTTI_GPU_TOPOLOGY_H
#define TUTTI_GPU_TOPOLOGY_H

#include "gpu/driver.h"

/* The driver's answer, else the kernel's of the slot. -1: unknown, or the machine has one. */
int topology_node(const struct cuda_api *call, CUdevice device, const struct driver_device *about);

/* True: the reader reaches the owner by PCIe alone, across the host bridge. False: not so, or not
   known. */
bool topology_far(const struct cuda_api *call, CUdevice reader,
                  const struct driver_device *about_reader, CUdevice owner,
                  const struct driver_device *about_owner);

#endif
