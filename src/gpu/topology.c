/* NVLink carries native atomics, and PCIe does not: so the driver is asked for these. */
#include "gpu/topology.h"

#include "os/pci.h"

int topology_node(const struct cuda_api *call, CUdevice device, const struct driver_device *about)
{
    int node = -1;
    return call->cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device)
        ? pci_node(about->bus)
        : node;
}

bool topology_far(const struct cuda_api *call, CUdevice reader,
                  const struct driver_device *about_reader, CUdevice owner,
                  const struct driver_device *about_owner)
{
    int atomics = 0;
    return call->cuDeviceGetP2PAttribute
        && !call->cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                          reader, owner)
        && !atomics && pci_across_host(about_reader->bus, about_owner->bus) == 1;
}
