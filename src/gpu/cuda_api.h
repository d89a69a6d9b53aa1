/* Job: declare the part of CUDA's driver interface that we call: types, constants, the list of
 *      symbols with their parameters.
 * Owns: nothing.
 * Never: calls a function; includes a header of CUDA.
 *
 * There is no header of CUDA when we are built, so this is written from CUDA's documentation. Names
 * and numbers are CUDA's own, since the driver is asked for its symbols by these names. Drivers
 * since R470 (CUDA 11.4) have all symbols listed here. */
#ifndef TUTTI_GPU_CUDA_API_H
#define TUTTI_GPU_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;                                /* an enum in CUDA: same size, any value */
typedef int CUdevice;                                /* an ordinal among the visible devices */
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;                /* NULL: the context's legacy default stream */
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

typedef struct { unsigned char bytes[16]; } CUuuid;
typedef struct { unsigned char reserved[64]; } CUipcMemHandle;
typedef struct { unsigned char reserved[64]; } CUipcEventHandle;
typedef struct { int type, id; } CUmemLocation;
typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;
typedef struct {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    size_t srcXInBytes, srcY;
    int srcMemoryType;                               /* CU_MEMORYTYPE_ */
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch, dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

_Static_assert(sizeof(CUDA_MEMCPY2D) == 128 && sizeof(CUmemAllocationProp) == 32
                   && sizeof(CUmemAccessDesc) == 12 && sizeof(CUdeviceptr) == 8,
               "as the driver has them");

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_UNKNOWN = 999,
};

enum {                                               /* cuDeviceGetAttribute */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED = 125,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134,          /* since R535 (CUDA 12.2) */
};

enum { CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3 };   /* cuDeviceGetP2PAttribute */

enum {                                      /* cuPointerGetAttribute; behind each what it writes */
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,                /* CUcontext; NULL for memory of cuMemCreate */
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,            /* unsigned: CU_MEMORYTYPE_ */
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,         /* CUdeviceptr */
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,           /* void * */
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,              /* unsigned long long */
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,             /* unsigned (32 bits) */
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,         /* int */
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,    /* unsigned */
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,      /* CUdeviceptr */
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,            /* size_t */
    CU_POINTER_ATTRIBUTE_MAPPED = 13,                /* unsigned */
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,  /* 64 bits: CU_MEM_HANDLE_TYPE_ */
};

enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
};
enum {
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_READ_ONLY = 8
};
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
};
enum {                               /* cuThreadExchangeStreamCaptureMode: who may wait meanwhile */
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2
};
enum {
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4
};
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum {
    CU_COMPUTEMODE_DEFAULT = 0,
    CU_COMPUTEMODE_PROHIBITED = 2,
    CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
};
enum {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
};
enum { CU_MEM_ACCESS_FLAGS_PROT_READ = 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum { CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1 };

/* Two values of CUstream that are no pointers: the legacy default stream, like NULL; the calling
 * thread's own default stream. */
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

/* X(symbol, parameters): every symbol that we look up. _v2: the plain name has the parameters of an
 * older CUDA. */
#define CUDA_SYMBOLS(X) \
    X(cuInit, (unsigned flags)) \
    X(cuDriverGetVersion, (int *version)) \
    X(cuGetErrorName, (CUresult error, const char **name)) \
    X(cuGetErrorString, (CUresult error, const char **words)) \
    X(cuDeviceGetCount, (int *count)) \
    X(cuDeviceGet, (CUdevice *device, int ordinal)) \
    X(cuDeviceGetName, (char *name, int room, CUdevice device)) \
    X(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device)) \
    X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) \
    X(cuDeviceGetPCIBusId, (char *id, int room, CUdevice device)) \
    X(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) \
    X(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
    X(cuCtxGetCurrent, (CUcontext *context)) \
    X(cuCtxSetCurrent, (CUcontext context)) \
    X(cuCtxPushCurrent_v2, (CUcontext context)) \
    X(cuCtxPopCurrent_v2, (CUcontext *context)) \
    X(cuCtxGetDevice, (CUdevice *device)) \
    X(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) \
    X(cuCtxSynchronize, (void)) \
    X(cuMemAlloc_v2, (CUdeviceptr *at, size_t bytes)) \
    X(cuMemFree_v2, (CUdeviceptr at)) \
    X(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr at)) \
    X(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags)) \
    X(cuMemHostUnregister, (void *at)) \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *device, void *at, unsigned flags)) \
    X(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr at)) \
    X(cuPointerGetAttributes, (unsigned count, int *attributes, void **values, CUdeviceptr at)) \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream)) \
    X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, \
                          CUcontext from_context, size_t bytes, CUstream stream)) \
    X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)) \
    X(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) \
    X(cuStreamCreate, (CUstream *stream, unsigned flags)) \
    X(cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority)) \
    X(cuStreamDestroy_v2, (CUstream stream)) \
    X(cuStreamSynchronize, (CUstream stream)) \
    X(cuStreamQuery, (CUstream stream)) \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags)) \
    X(cuStreamIsCapturing, (CUstream stream, int *status)) \
    X(cuThreadExchangeStreamCaptureMode, (int *mode)) \
    X(cuStreamGetCtx, (CUstream stream, CUcontext *context)) \
    X(cuEventCreate, (CUevent *event, unsigned flags)) \
    X(cuEventDestroy_v2, (CUevent event)) \
    X(cuEventRecord, (CUevent event, CUstream stream)) \
    X(cuEventQuery, (CUevent event)) \
    X(cuEventSynchronize, (CUevent event)) \
    X(cuEventElapsedTime, (float *ms, CUevent begin, CUevent end)) \
    X(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr at)) \
    X(cuIpcOpenMemHandle_v2, (CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)) \
    X(cuIpcCloseMemHandle, (CUdeviceptr at)) \
    X(cuIpcGetEventHandle, (CUipcEventHandle *handle, CUevent event)) \
    X(cuIpcOpenEventHandle, (CUevent *event, CUipcEventHandle handle)) \
    X(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *prop, int option)) \
    X(cuMemCreate, (CUmemGenericAllocationHandle *handle, size_t bytes, \
                    const CUmemAllocationProp *prop, unsigned long long flags)) \
    X(cuMemRelease, (CUmemGenericAllocationHandle handle)) \
    X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *handle, void *at)) \
    X(cuMemExportToShareableHandle, (void *shareable, CUmemGenericAllocationHandle handle, \
                                     int type, unsigned long long flags)) \
    X(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle *handle, void *shareable, \
                                       int type)) \
    X(cuMemAddressReserve, (CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, \
                            unsigned long long flags)) \
    X(cuMemAddressFree, (CUdeviceptr at, size_t bytes)) \
    X(cuMemMap, (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
                 unsigned long long flags)) \
    X(cuMemUnmap, (CUdeviceptr at, size_t bytes)) \
    X(cuMemSetAccess, (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
    X(cuModuleLoadData, (CUmodule *module, const void *image)) \
    X(cuModuleLoadDataEx, (CUmodule *module, const void *image, unsigned n, int *options, \
                           void **values)) \
    X(cuModuleUnload, (CUmodule module)) \
    X(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
    X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
                       unsigned block_x, unsigned block_y, \
                       unsigned block_z, unsigned shared_bytes, CUstream stream, \
                           void **parameters, void **extra))

/* Likewise, of later drivers: NULL in the others. */
#define CUDA_LATER_SYMBOLS(X) \
    /* R384 (CUDA 8) */ \
    X(cuDeviceGetP2PAttribute, (int *value, int attribute, CUdevice reader, CUdevice owner)) \
    /* R515 (CUDA 11.7) */ \
    X(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags))

#define CUDA_ALL_SYMBOLS(X) CUDA_SYMBOLS(X) CUDA_LATER_SYMBOLS(X)

#define CUDA_FIELD_(symbol, parameters) CUresult (*symbol) parameters;
struct cuda_api { CUDA_ALL_SYMBOLS(CUDA_FIELD_) };   /* filled by gpu/driver */
#undef CUDA_FIELD_

#endif
