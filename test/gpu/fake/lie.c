/* Memory of another device that can be opened and does not give what is in it: as between GPUs on
 * PCIe under an IOMMU or a switch with ACS, or in a virtual machine.
 * FAKE_CUDA_LIES=reader>owner:how,... numbers of GPUs of the machine; how: copy, kernel, both,
 * hang. What is read is zeroes. */
#include "fake/fake.h"

#include <stdlib.h>
#include <string.h>

int lie_of(const struct CUctx_st *context, const struct range *range)
{
    const char *s = getenv("FAKE_CUDA_LIES");
    int reader = fake.physical[context->device];
    if (!s || !range->memory || range->memory->device == reader)
        return 0;
    while (s && *s) {
        char *end;
        long from = strtol(s, &end, 10), to = *end == '>' ? strtol(end + 1, &end, 10) : -1;
        if (from == reader && to == range->memory->device && *end == ':')
            return !strncmp(end, ":copy", 5) ? LIE_COPY
                : !strncmp(end, ":kernel", 7) ? LIE_KERNEL
                : !strncmp(end, ":both", 5)   ? LIE_COPY | LIE_KERNEL
                                              : LIE_HANG;
        s = strchr(end, ',');
        s = s ? s + 1 : NULL;
    }
    return 0;
}
