/* A device's link in /sys names all bridges above it, from the host's down:
 * ../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0. Two that meet below the host bridge have
 * the first bridge behind it in common. In a virtual machine devices often stand at the host bridge
 * itself, whatever the real machine has.
 * Cost: a system call a device; of the node, three. */
#include "os/pci.h"

#include "base/text.h"
#include "os/file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 512 };
#define DEVICES "/sys/bus/pci/devices/"

static void path_of(char *path, size_t room, const char *address, const char *file)
{
    struct text t = { path, room, 0 };
    text_clear(&t);
    text_add(&t, "%s%s%s", DEVICES, address, file);
    for (char *c = path + sizeof DEVICES - 1; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

int pci_node(const char *address)
{
    char path[128], said[16];
    path_of(path, sizeof path, address, "/numa_node");
    return file_read(path, said, sizeof said) > 0 ? atoi(said) : -1;
}

/* The part of the link from "pci" on. NULL: unknown. */
static const char *link_of(const char *address, char link[PATH_ROOM])
{
    char path[128];
    path_of(path, sizeof path, address, "");
    ssize_t n = readlink(path, link, PATH_ROOM - 1);
    link[n > 0 ? n : 0] = 0;
    const char *from = strstr(link, "/pci");
    return from ? from + 1 : NULL;
}

int pci_across_host(const char *one, const char *other)
{
    char links[2][PATH_ROOM];
    const char *a = link_of(one, links[0]), *b = link_of(other, links[1]);
    if (!a || !b)
        return -1;
    size_t host = strcspn(a, "/");
    if (strncmp(a, b, host + 1) != 0 || a[host] != '/')
        return 1;
    size_t bridge = strcspn(a + host + 1, "/");
    return strncmp(a + host + 1, b + host + 1, bridge + 1) != 0;
}
