// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/driver_abi.h"

// What other people's programs use of the driver's C ABI and kernels/cuda does not. Names and numbers are those of
// cuda.h (CUDA 13.0); tests/vdriver/driver_abi_wide_test.cpp compares each with that header where it is installed.
// Enumerations of which only numbers matter here are ints.

namespace gradguard::cuda {

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUlinkState = struct CUlinkState_st*;
using CUarray = struct CUarray_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* data);
using CUhostFn = void (*)(void* data);
using CUoccupancyB2DSize = std::size_t (*)(int block_size);

/// X(name, number): the enumerators of cuda.h that the virtual driver knows, apart from driver_abi.h.
#define GRADGUARD_CUDA_WIDE_NUMBERS(X)                            \
    X(CU_CTX_SCHED_MASK, 7)                                       \
    X(CU_CTX_MAP_HOST, 8)                                         \
    X(CU_CTX_FLAGS_MASK, 0xFF)                                    \
    X(CU_COMPUTEMODE_DEFAULT, 0)                                  \
    X(CU_LIMIT_STACK_SIZE, 0)                                     \
    X(CU_LIMIT_PRINTF_FIFO_SIZE, 1)                               \
    X(CU_LIMIT_MALLOC_HEAP_SIZE, 2)                               \
    X(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3)                         \
    X(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4)               \
    X(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 5)                       \
    X(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 6)                       \
    X(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 7)                         \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)         \
    X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)      \
    X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)    \
    X(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 15) \
    X(CU_JIT_INPUT_CUBIN, 0)                                      \
    X(CU_JIT_INPUT_PTX, 1)                                        \
    X(CU_JIT_INPUT_FATBINARY, 2)                                  \
    X(CU_JIT_INPUT_OBJECT, 3)                                     \
    X(CU_JIT_INPUT_LIBRARY, 4)                                    \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                     \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                       \
    X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6)                        \
    X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                          \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                         \
    X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10)        \
    X(CU_POINTER_ATTRIBUTE_MAPPED, 13)                            \
    X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14)              \
    X(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 15)        \
    X(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16)                      \
    X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)                    \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                               \
    X(CU_MEMHOSTALLOC_WRITECOMBINED, 4)                           \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                             \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)                            \
    X(CU_MEMHOSTREGISTER_IOMEMORY, 4)                             \
    X(CU_MEMHOSTREGISTER_READ_ONLY, 8)                            \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                    \
    X(CU_MEM_ATTACH_HOST, 2)                                      \
    X(CU_MEM_ATTACH_SINGLE, 4)                                    \
    X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)         \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)               \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)       \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                    \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                       \
    X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                        \
    X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)                           \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                      \
    X(CU_EVENT_INTERPROCESS, 4)                                   \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                           \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                         \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                   \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                             \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                    \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)              \
    X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1)                       \
    X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2)           \
    X(CU_MEM_ADVISE_SET_READ_MOSTLY, 1)                           \
    X(CU_MEM_ADVISE_UNSET_ACCESSED_BY, 6)

#define GRADGUARD_CUDA_WIDE_NUMBER(name, number) inline constexpr int name = number;
GRADGUARD_CUDA_WIDE_NUMBERS(GRADGUARD_CUDA_WIDE_NUMBER)
#undef GRADGUARD_CUDA_WIDE_NUMBER

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h, which are handles there.
inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;

struct CUuuid {
    char bytes[16];
};

struct CUDA_MEMCPY2D {
    std::size_t srcXInBytes;
    std::size_t srcY;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    std::size_t srcPitch;
    std::size_t dstXInBytes;
    std::size_t dstY;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    std::size_t dstPitch;
    std::size_t WidthInBytes;
    std::size_t Height;
};

struct CUDA_MEMCPY3D {
    std::size_t srcXInBytes;
    std::size_t srcY;
    std::size_t srcZ;
    std::size_t srcLOD;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0;
    std::size_t srcPitch;
    std::size_t srcHeight;
    std::size_t dstXInBytes;
    std::size_t dstY;
    std::size_t dstZ;
    std::size_t dstLOD;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    std::size_t dstPitch;
    std::size_t dstHeight;
    std::size_t WidthInBytes;
    std::size_t Height;
    std::size_t Depth;
};

union CUlaunchAttributeValue {
    char pad[64];
    int cooperative;
    struct {
        unsigned int x;
        unsigned int y;
        unsigned int z;
    } clusterDim;
};

struct CUlaunchAttribute {
    int id;
    char pad[4];
    CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute* attrs;
    unsigned int numAttrs;
};

struct CUDA_KERNEL_NODE_PARAMS_v1 {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void** kernelParams;
    void** extra;
};

struct CUDA_KERNEL_NODE_PARAMS_v2 {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void** kernelParams;
    void** extra;
    CUkernel kern;
    CUcontext ctx;
};

struct CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr dst;
    std::size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    std::size_t width;
    std::size_t height;
};

struct CUDA_HOST_NODE_PARAMS {
    CUhostFn fn;
    void* userData;
};

struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};

struct CUctxCreateParams {
    void* execAffinityParams;
    int numExecAffinityParams;
    void* cigParams;
};

}  // namespace gradguard::cuda
