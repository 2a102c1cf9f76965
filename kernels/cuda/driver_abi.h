// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The C ABI of the CUDA driver as far as this project uses it, declared anew, so that nothing here needs a CUDA toolkit
// to be built. Names and numbers are those of cuda.h (CUDA 13.0; all of them older); tests/cuda/driver_abi_test.cpp
// compares each with that header where it is installed. Functions have the names under which libcuda.so.1 exports them:
// `cuMemAlloc_v2` is what a program that includes cuda.h calls cuMemAlloc.

/// X(name, number) for every code that a driver call returns.
#define GRADGUARD_CUDA_RESULTS(X)                     \
    X(CUDA_SUCCESS, 0)                                \
    X(CUDA_ERROR_INVALID_VALUE, 1)                    \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                  \
    X(CUDA_ERROR_DEINITIALIZED, 4)                    \
    X(CUDA_ERROR_PROFILER_DISABLED, 5)                \
    X(CUDA_ERROR_PROFILER_NOT_INITIALIZED, 6)         \
    X(CUDA_ERROR_PROFILER_ALREADY_STARTED, 7)         \
    X(CUDA_ERROR_PROFILER_ALREADY_STOPPED, 8)         \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                    \
    X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)      \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)              \
    X(CUDA_ERROR_NO_DEVICE, 100)                      \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                 \
    X(CUDA_ERROR_DEVICE_NOT_LICENSED, 102)            \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                  \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                \
    X(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, 202)        \
    X(CUDA_ERROR_MAP_FAILED, 205)                     \
    X(CUDA_ERROR_UNMAP_FAILED, 206)                   \
    X(CUDA_ERROR_ARRAY_IS_MAPPED, 207)                \
    X(CUDA_ERROR_ALREADY_MAPPED, 208)                 \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)              \
    X(CUDA_ERROR_ALREADY_ACQUIRED, 210)               \
    X(CUDA_ERROR_NOT_MAPPED, 211)                     \
    X(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, 212)            \
    X(CUDA_ERROR_NOT_MAPPED_AS_POINTER, 213)          \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)              \
    X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215)              \
    X(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, 216)         \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)        \
    X(CUDA_ERROR_INVALID_PTX, 218)                    \
    X(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, 219)       \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)           \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)         \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)        \
    X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)       \
    X(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, 224)      \
    X(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225)       \
    X(CUDA_ERROR_CONTAINED, 226)                      \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                 \
    X(CUDA_ERROR_FILE_NOT_FOUND, 301)                 \
    X(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302) \
    X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303)      \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)               \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                 \
    X(CUDA_ERROR_ILLEGAL_STATE, 401)                  \
    X(CUDA_ERROR_LOSSY_QUERY, 402)                    \
    X(CUDA_ERROR_NOT_FOUND, 500)                      \
    X(CUDA_ERROR_NOT_READY, 600)                      \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)        \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                 \
    X(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703)  \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)    \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)        \
    X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708)         \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)           \
    X(CUDA_ERROR_ASSERT, 710)                         \
    X(CUDA_ERROR_TOO_MANY_PEERS, 711)                 \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)     \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)           \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)            \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)             \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)          \
    X(CUDA_ERROR_INVALID_PC, 718)                     \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                  \
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)   \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)             \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                  \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                  \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)               \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)         \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
    X(CUDA_ERROR_MPS_CONNECTION_FAILED, 805)          \
    X(CUDA_ERROR_MPS_RPC_FAILURE, 806)                \
    X(CUDA_ERROR_MPS_SERVER_NOT_READY, 807)           \
    X(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)        \
    X(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809)    \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)          \
    X(CUDA_ERROR_CDP_NOT_SUPPORTED, 811)              \
    X(CUDA_ERROR_CDP_VERSION_MISMATCH, 812)           \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)     \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)     \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)           \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)       \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)        \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)       \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)        \
    X(CUDA_ERROR_CAPTURED_EVENT, 907)                 \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)    \
    X(CUDA_ERROR_TIMEOUT, 909)                        \
    X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)      \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911)                \
    X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912)           \
    X(CUDA_ERROR_FUNCTION_NOT_LOADED, 913)            \
    X(CUDA_ERROR_INVALID_RESOURCE_TYPE, 914)          \
    X(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915) \
    X(CUDA_ERROR_KEY_ROTATION, 916)                   \
    X(CUDA_ERROR_UNKNOWN, 999)

/// X(name, parameters) for every function of the driver that kernels/cuda calls; all return CUresult.
#define GRADGUARD_CUDA_FUNCTIONS(X)                                                                                 \
    X(cuInit, (unsigned int flags))                                                                                 \
    X(cuDriverGetVersion, (int* version))                                                                           \
    X(cuGetErrorName, (CUresult error, const char** name))                                                          \
    X(cuGetErrorString, (CUresult error, const char** text))                                                        \
    X(cuDeviceGetCount, (int* count))                                                                               \
    X(cuDeviceGet, (CUdevice * device, int ordinal))                                                                \
    X(cuDeviceGetName, (char* name, int length, CUdevice device))                                                   \
    X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))                            \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                             \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                              \
    X(cuCtxPushCurrent_v2, (CUcontext context))                                                                     \
    X(cuCtxPopCurrent_v2, (CUcontext * context))                                                                    \
    X(cuCtxGetDevice, (CUdevice * device))                                                                          \
    X(cuStreamCreate, (CUstream * stream, unsigned int flags))                                                      \
    X(cuStreamDestroy_v2, (CUstream stream))                                                                        \
    X(cuStreamSynchronize, (CUstream stream))                                                                       \
    X(cuStreamGetCtx, (CUstream stream, CUcontext * context))                                                       \
    X(cuEventCreate, (CUevent * event, unsigned int flags))                                                         \
    X(cuEventRecord, (CUevent event, CUstream stream))                                                              \
    X(cuEventQuery, (CUevent event))                                                                                \
    X(cuEventSynchronize, (CUevent event))                                                                          \
    X(cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end))                                        \
    X(cuEventDestroy_v2, (CUevent event))                                                                           \
    X(cuModuleLoadDataEx,                                                                                           \
      (CUmodule * module, const void* image, unsigned int count, CUjit_option* options, void** values))             \
    X(cuModuleUnload, (CUmodule module))                                                                            \
    X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))                              \
    X(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction function))                        \
    X(cuLaunchKernel, (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,          \
                       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, \
                       CUstream stream, void** parameters, void** extra))                                           \
    X(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps* properties))                                     \
    X(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                       \
    X(cuMemPoolDestroy, (CUmemoryPool pool))                                                                        \
    X(cuMemAllocFromPoolAsync, (CUdeviceptr * address, std::size_t bytes, CUmemoryPool pool, CUstream stream))      \
    X(cuMemFreeAsync, (CUdeviceptr address, CUstream stream))                                                       \
    X(cuMemAlloc_v2, (CUdeviceptr * address, std::size_t bytes))                                                    \
    X(cuMemFree_v2, (CUdeviceptr address))                                                                          \
    X(cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned int flags))                                       \
    X(cuMemFreeHost, (void* memory))                                                                                \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr target, const void* source, std::size_t bytes, CUstream stream))           \
    X(cuMemcpyDtoHAsync_v2, (void* target, CUdeviceptr source, std::size_t bytes, CUstream stream))                 \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream))           \
    X(cuPointerGetAttribute, (void* value, CUpointer_attribute attribute, CUdeviceptr address))

namespace gradguard::cuda {

enum CUresult : int {
#define GRADGUARD_CUDA_RESULT(name, number) name = number,
    GRADGUARD_CUDA_RESULTS(GRADGUARD_CUDA_RESULT)
#undef GRADGUARD_CUDA_RESULT
};

using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

enum CUdevice_attribute : int {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

enum CUfunction_attribute : int {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
};

/// Values are passed as void*: a pointer for a buffer, the number itself for a size.
enum CUjit_option : int {
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

enum CUpointer_attribute : int {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,        ///< value: CUmemorytype (unsigned int)
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,     ///< value: int
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,  ///< value: CUdeviceptr
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,        ///< value: size_t
};

enum CUmemorytype : unsigned int {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4,
};

enum CUstream_flags : unsigned int { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum CUevent_flags : unsigned int { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
/// CU_MEMHOSTALLOC_PORTABLE of cuda.h: pinned for every context, not only the current one.
inline constexpr unsigned int kMemHostAllocPortable = 1;

/// CU_LAUNCH_PARAM_END, _BUFFER_POINTER and _BUFFER_SIZE of cuda.h, which are void* there.
inline constexpr std::uintptr_t kLaunchParamEnd = 0;
inline constexpr std::uintptr_t kLaunchParamBufferPointer = 1;
inline constexpr std::uintptr_t kLaunchParamBufferSize = 2;

enum CUmemPool_attribute : int { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };  ///< value: u64
enum CUmemAllocationType : int { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemAllocationHandleType : int { CU_MEM_HANDLE_TYPE_NONE = 0 };
enum CUmemLocationType : int { CU_MEM_LOCATION_TYPE_DEVICE = 1 };

struct CUmemLocation {
    CUmemLocationType type;
    int id;  ///< Device ordinal.
};

struct CUmemPoolProps {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void* win32SecurityAttributes;
    std::size_t maxSize;  ///< 0: the system's.
    unsigned short usage;
    unsigned char reserved[54];
};

// Function types: Fn_cuInit is CUresult(unsigned int), and so on.
#define GRADGUARD_CUDA_FUNCTION(name, parameters) using Fn_##name = CUresult parameters;
GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
#undef GRADGUARD_CUDA_FUNCTION

}  // namespace gradguard::cuda
