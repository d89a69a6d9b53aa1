/* Where PCI devices are, by links of the kernel's tree that stand here. */
#include "os/pci.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *one, *other;

/* In place of the C library's. */
ssize_t readlink(const char *path, char *to, size_t room)
{
    const char *link = !strcmp(path, "/sys/bus/pci/devices/0000:0a:00.0") ? one
        : !strcmp(path, "/sys/bus/pci/devices/0000:b1:00.0") ? other
        : NULL;
    if (!link)
        return -1;
    size_t n = strlen(link) < room ? strlen(link) : room;
    memcpy(to, link, n);
    return (ssize_t)n;
}

#define ROOT "../../../devices/pci0000:00/"

static void host_bridges(void **state)
{
    static const struct { const char *one, *other; int across; } all[] = {
        { ROOT "0000:00:01.0/0000:0a:00.0", ROOT "0000:00:02.0/0000:b1:00.0", 1 },
        { ROOT "0000:00:01.0/0000:0a:00.0", "../../../devices/pci0000:80/0000:80:01.0/b1", 1 },
        { ROOT "0000:00:01.0/0000:0a:00.0", "../../../devices/pci0000:0/0000:00:01.0/b1", 1 },
        { ROOT "0000:00:01.0/0000:0a:00.0", ROOT "0000:00:01.1/0000:b1:00.0", 1 },
        { ROOT "0000:0a:00.0", ROOT "0000:b1:00.0", 1 },
        { ROOT "0000:00:01.0/0000:02:00.0/0000:0a:00.0", ROOT "0000:00:01.0/0000:b1:00.0", 0 },
        { "../../../devices/LNX/pci0000:00/0000:00:01.0/0000:0a:00.0",
          ROOT "0000:00:01.0/0000:b1:00.0", 0 },
        { ROOT "0000:00:01.0/0000:0a:00.0", "somewhere", -1 },
        { ROOT "0000:00:01.0/0000:0a:00.0", NULL, -1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        one = all[i].one;
        other = all[i].other;
        int got = pci_across_host("0000:0A:00.0", "0000:B1:00.0");
        if (got != all[i].across)
            fail_msg("%s and %s: %d", one, other ? other : "nothing", got);
    }
}

static void nodes(void **state)
{
    (void)state;
    assert_int_equal(pci_node("ffff:ff:1f.7"), -1);          /* no such device */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(host_bridges), cmocka_unit_test(nodes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
