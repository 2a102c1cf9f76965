// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "harness/vdriver/driver_abi_wide.h"

// The virtual driver as a program sees it: a library that is loaded, and functions that are looked up by name.

/// Functions of the driver API that the tests call and driver_abi.h does not list.
#define GRADGUARD_TESTED_FUNCTIONS(X)                                                                                  \
    X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                                            \
    X(cuDeviceTotalMem_v2, (std::size_t * bytes, CUdevice device))                                                     \
    X(cuDeviceGetPCIBusId, (char* id, int length, CUdevice device))                                                    \
    X(cuDeviceGetByPCIBusId, (CUdevice * device, const char* id))                                                      \
    X(cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer))                                               \
    X(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device))                                               \
    X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned* flags, int* active))                                     \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                                   \
    X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))                                                \
    X(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams * parameters, unsigned flags, CUdevice device))          \
    X(cuCtxDestroy_v2, (CUcontext context))                                                                            \
    X(cuCtxSetCurrent, (CUcontext context))                                                                            \
    X(cuCtxGetCurrent, (CUcontext * context))                                                                          \
    X(cuCtxSynchronize, ())                                                                                            \
    X(cuCtxGetFlags, (unsigned* flags))                                                                                \
    X(cuCtxGetLimit, (std::size_t * value, int limit))                                                                 \
    X(cuCtxSetLimit, (int limit, std::size_t value))                                                                   \
    X(cuCtxGetApiVersion, (CUcontext context, unsigned* version))                                                      \
    X(cuCtxGetStreamPriorityRange, (int* least, int* greatest))                                                        \
    X(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))                                   \
    X(cuStreamGetPriority, (CUstream stream, int* priority))                                                           \
    X(cuStreamGetFlags, (CUstream stream, unsigned* flags))                                                            \
    X(cuStreamQuery, (CUstream stream))                                                                                \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                             \
    X(cuStreamIsCapturing, (CUstream stream, int* status))                                                             \
    X(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void* data, unsigned flags))                   \
    X(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data))                                              \
    X(cuModuleLoad, (CUmodule * module, const char* path))                                                             \
    X(cuModuleLoadData, (CUmodule * module, const void* image))                                                        \
    X(cuModuleLoadFatBinary, (CUmodule * module, const void* image))                                                   \
    X(cuModuleGetGlobal_v2, (CUdeviceptr * address, std::size_t * bytes, CUmodule module, const char* name))           \
    X(cuLibraryLoadData, (CUlibrary * library, const void* code, CUjit_option* options, void** values, unsigned count, \
                          int* library_options, void** library_values, unsigned library_count))                        \
    X(cuLibraryUnload, (CUlibrary library))                                                                            \
    X(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char* name))                                    \
    X(cuLibraryGetKernelCount, (unsigned* count, CUlibrary library))                                                   \
    X(cuLibraryGetModule, (CUmodule * module, CUlibrary library))                                                      \
    X(cuKernelGetFunction, (CUfunction * function, CUkernel kernel))                                                   \
    X(cuKernelGetAttribute, (int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device))            \
    X(cuKernelSetAttribute, (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device))             \
    X(cuLinkCreate_v2, (unsigned count, CUjit_option* options, void** values, CUlinkState* state))                     \
    X(cuLinkAddData_v2, (CUlinkState state, int type, void* data, std::size_t size, const char* name, unsigned count,  \
                         CUjit_option* options, void** values))                                                        \
    X(cuLinkAddFile_v2,                                                                                                \
      (CUlinkState state, int type, const char* path, unsigned count, CUjit_option* options, void** values))           \
    X(cuLinkComplete, (CUlinkState state, void** image, std::size_t* size))                                            \
    X(cuLinkDestroy, (CUlinkState state))                                                                              \
    X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                            \
    X(cuFuncGetModule, (CUmodule * module, CUfunction function))                                                       \
    X(cuFuncGetName, (const char** name, CUfunction function))                                                         \
    X(cuFuncGetParamInfo, (CUfunction function, std::size_t index, std::size_t * offset, std::size_t * bytes))         \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                                     \
      (int* blocks, CUfunction function, int block_size, std::size_t dynamic_shared))                                  \
    X(cuOccupancyMaxPotentialBlockSize, (int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,     \
                                         std::size_t dynamic_shared, int limit))                                       \
    X(cuOccupancyAvailableDynamicSMemPerBlock, (std::size_t * bytes, CUfunction function, int blocks, int block_size)) \
    X(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))          \
    X(cuLaunchCooperativeKernel,                                                                                       \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,     \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters))                                   \
    X(cuMemGetInfo_v2, (std::size_t * available, std::size_t * total))                                                 \
    X(cuMemAllocPitch_v2,                                                                                              \
      (CUdeviceptr * address, std::size_t * pitch, std::size_t width, std::size_t height, unsigned element_bytes))     \
    X(cuMemGetAddressRange_v2, (CUdeviceptr * base, std::size_t * bytes, CUdeviceptr address))                         \
    X(cuMemAllocHost_v2, (void** memory, std::size_t bytes))                                                           \
    X(cuMemHostRegister_v2, (void* memory, std::size_t bytes, unsigned flags))                                         \
    X(cuMemHostUnregister, (void* memory))                                                                             \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void* memory, unsigned flags))                             \
    X(cuMemHostGetFlags, (unsigned* flags, void* memory))                                                              \
    X(cuMemAllocManaged, (CUdeviceptr * address, std::size_t bytes, unsigned flags))                                   \
    X(cuMemAllocAsync, (CUdeviceptr * address, std::size_t bytes, CUstream stream))                                    \
    X(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                          \
    X(cuMemPoolTrimTo, (CUmemoryPool pool, std::size_t bytes))                                                         \
    X(cuMemcpy, (CUdeviceptr target, CUdeviceptr source, std::size_t bytes))                                           \
    X(cuMemcpyAsync, (CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream))                     \
    X(cuMemcpyHtoD_v2, (CUdeviceptr target, const void* source, std::size_t bytes))                                    \
    X(cuMemcpyDtoH_v2, (void* target, CUdeviceptr source, std::size_t bytes))                                          \
    X(cuMemcpyDtoD_v2, (CUdeviceptr target, CUdeviceptr source, std::size_t bytes))                                    \
    X(cuMemcpyPeer,                                                                                                    \
      (CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context, std::size_t bytes)) \
    X(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* copy))                                                                      \
    X(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* copy))                                                             \
    X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream))                                                \
    X(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* copy))                                                                      \
    X(cuMemsetD8_v2, (CUdeviceptr address, unsigned char value, std::size_t count))                                    \
    X(cuMemsetD16_v2, (CUdeviceptr address, unsigned short value, std::size_t count))                                  \
    X(cuMemsetD32_v2, (CUdeviceptr address, unsigned value, std::size_t count))                                        \
    X(cuMemsetD32Async, (CUdeviceptr address, unsigned value, std::size_t count, CUstream stream))                     \
    X(cuMemsetD2D32_v2,                                                                                                \
      (CUdeviceptr address, std::size_t pitch, unsigned value, std::size_t width, std::size_t height))                 \
    X(cuPointerGetAttributes, (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address))   \
    X(cuGetExportTable, (const void** table, const CUuuid* id))                                                        \
    X(cuProfilerStart, ())                                                                                             \
    X(cuGraphCreate, (CUgraph * graph, unsigned flags))                                                                \
    X(cuGraphDestroy, (CUgraph graph))                                                                                 \
    X(cuGraphAddMemcpyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, std::size_t count,           \
                             const CUDA_MEMCPY3D* copy, CUcontext context))                                            \
    X(cuGraphAddMemsetNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, std::size_t count,           \
                             const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context))                                   \
    X(cuGraphAddEmptyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, std::size_t count))           \
    X(cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, std::size_t * count))                                      \
    X(cuGraphExecMemcpyNodeSetParams,                                                                                  \
      (CUgraphExec graph, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context))                             \
    X(cuGraphExecDestroy, (CUgraphExec graph))                                                                         \
    X(cuGraphLaunch, (CUgraphExec graph, CUstream stream))

/// The same, in forms that the header of CUDA 13 no longer declares.
#define GRADGUARD_TESTED_OLD_FUNCTIONS(X)                                                                             \
    X(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device))                                         \
    X(cuMemAdvise, (CUdeviceptr address, std::size_t bytes, int advice, CUdevice device))                             \
    X(cuMemPrefetchAsync, (CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream))                 \
    X(cuGetProcAddress, (const char* name, void** function, int version, std::uint64_t flags))                        \
    X(cuGraphAddKernelNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, std::size_t count,          \
                             const CUDA_KERNEL_NODE_PARAMS_v1* parameters))                                           \
    X(cuGraphExecKernelNodeSetParams,                                                                                 \
      (CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters))                            \
    X(cuGraphAddDependencies, (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count))     \
    X(cuGraphInstantiate_v2, (CUgraphExec * result, CUgraph graph, CUgraphNode * wrong, char* log, std::size_t size)) \
    X(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z))                                                \
    X(cuParamSetSize, (CUfunction function, unsigned bytes))                                                          \
    X(cuParamSeti, (CUfunction function, int offset, unsigned value))                                                 \
    X(cuParamSetv, (CUfunction function, int offset, void* value, unsigned bytes))                                    \
    X(cuLaunchGrid, (CUfunction function, int width, int height))                                                     \
    X(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream))                               \
    X(cuCtxAttach, (CUcontext * context, unsigned flags))                                                             \
    X(cuCtxDetach, (CUcontext context))

namespace gradguard::cuda {
#define GRADGUARD_CUDA_FUNCTION(name, parameters) using Fn_##name = CUresult parameters;
GRADGUARD_TESTED_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
GRADGUARD_TESTED_OLD_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
#undef GRADGUARD_CUDA_FUNCTION

/// Every function by its name, and those of harness/vdriver/control.h.
struct Api {
#define GRADGUARD_CUDA_FUNCTION(name, parameters) Fn_##name* name;
    GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
    GRADGUARD_TESTED_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
    GRADGUARD_TESTED_OLD_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
#undef GRADGUARD_CUDA_FUNCTION
    int (*configure)(const char*);
    std::size_t (*report)(char*, std::size_t);
    void (*fail_call)(std::uint64_t, int);
    std::uint64_t (*calls)();
    void (*reset)();

    nlohmann::json parsed_report() const {
        std::string text(report(nullptr, 0) + 1, '\0');
        report(text.data(), text.size());
        return nlohmann::json::parse(text.c_str());
    }
};

inline void* loaded_library() {
    static void* const library = dlopen(GRADGUARD_VDRIVER, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return library;
}

template <class Function>
void look_up(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(loaded_library(), name));
    if (function == nullptr) throw std::runtime_error(std::string("the library lacks ") + name);
}

inline const Api& api() {
    static const Api all = [] {
        Api result{};
#define GRADGUARD_CUDA_FUNCTION(name, parameters) look_up(result.name, #name);
        GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
        GRADGUARD_TESTED_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
        GRADGUARD_TESTED_OLD_FUNCTIONS(GRADGUARD_CUDA_FUNCTION)
#undef GRADGUARD_CUDA_FUNCTION
        look_up(result.configure, "gradguard_vdriver_configure");
        look_up(result.report, "gradguard_vdriver_report");
        look_up(result.fail_call, "gradguard_vdriver_fail_call");
        look_up(result.calls, "gradguard_vdriver_calls");
        look_up(result.reset, "gradguard_vdriver_reset");
        return result;
    }();
    return all;
}

}  // namespace gradguard::cuda
