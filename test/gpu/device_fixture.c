/* Built by every case anew, after its fork. */
#include "device_fixture.h"

#include "gpu/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

unsigned char *host;
CUdeviceptr dev, dev2;
CUstream s1, s2;

CUfunction fixture_fold(tutti_type type, tutti_op op)
{
    static char room[PTX_ROOM];
    char name[PTX_NAME];
    struct text text = TEXT_IN(room), called = TEXT_IN(name);
    CUmodule module;
    CUfunction f = NULL;
    ptx_name(&called, type, op);
    if (ptx_fold(&text, type, op) != 0 || cu.cuModuleLoadData(&module, room) != 0
        || cu.cuModuleGetFunction(&f, module, name) != 0)
        return NULL;
    return f;
}

int fixture_begin(bool pinned)
{
    YES(case_cuda());
    host = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    YES(host != MAP_FAILED);
    if (pinned)
        OK(cu.cuMemHostRegister_v2(host, 2 * BYTES,
                                   CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cu.cuMemAlloc_v2(&dev, BYTES));
    OK(cu.cuMemAlloc_v2(&dev2, BYTES));
    OK(cu.cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING));
    OK(cu.cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING));
    return 0;
}

int fixture_export(CUdeviceptr at)
{
    CUipcMemHandle handle;
    OK(cu.cuIpcGetMemHandle(&handle, at));
    YES(tell(&handle, sizeof handle));
    return 0;
}

int fixture_import(CUdeviceptr *at)
{
    CUipcMemHandle handle;
    YES(hear(&handle, sizeof handle));
    OK(cu.cuIpcOpenMemHandle_v2(at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return 0;
}

int fixture_end(void)
{
    OK(cu.cuCtxSynchronize());
    OK(cu.cuStreamDestroy_v2(s1));
    OK(cu.cuStreamDestroy_v2(s2));
    OK(cu.cuMemFree_v2(dev));
    OK(cu.cuMemFree_v2(dev2));
    OK(cu.cuMemHostUnregister(host));
    return 0;
}

void finds(int status, const char *what)
{
    if (status != FAKE_MISUSE_STATUS || !strstr(case_stderr(), what))
        fail_msg("wanted '%s', got status %d: %s", what, status, case_stderr());
}

void finds_in_pair(const char *what, case_body *one, case_body *other, bool first,
                   const char *const *environment)
{
    int second, status = case_pair(one, other, environment, &second);
    finds(first ? status : second, what);
}
