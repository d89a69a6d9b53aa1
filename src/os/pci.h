/* Job: say by the kernel's tree of devices where PCI devices are.
 * Owns: nothing.
 * Never: knows what devices they are. Their addresses are the kernel's, as 0000:0a:00.0, in letters
 *        of either case. */
#ifndef TUTTI_OS_PCI_H
#define TUTTI_OS_PCI_H

/* The NUMA node of the device's slot; -1: unknown, or the machine has one. */
int pci_node(const char *address);

/* 1: what goes from one device to the other crosses the host bridge. 0: they meet below it, at a
 * switch. -1: unknown. */
int pci_across_host(const char *one, const char *other);

#endif
