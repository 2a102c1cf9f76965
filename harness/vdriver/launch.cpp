// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "harness/vdriver/export.h"
#include "harness/vdriver/functions.h"
#include "harness/vdriver/requests.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT
namespace vgpu = gradguard::vgpu;

namespace {

/// The argument block from pointers to the arguments, one for each parameter of the kernel.
std::vector<std::byte> gather(const vgpu::EntryInfo& entry, void** parameters) {
    std::vector<std::byte> block(entry.param_bytes);
    for (std::size_t i = 0; i < entry.params.size(); ++i) {
        const vgpu::ParamInfo& parameter = entry.params[i];
        require(parameters[i] != nullptr);
        std::memcpy(block.data() + parameter.offset_bytes, parameters[i], parameter.size_bytes);
    }
    return block;
}

/// The argument block as the program laid it out: {BUFFER_POINTER, p, BUFFER_SIZE, &size, END}.
std::vector<std::byte> take_buffer(const vgpu::EntryInfo& entry, void** extra) {
    const void* buffer = nullptr;
    const std::size_t* size = nullptr;
    for (; reinterpret_cast<std::uintptr_t>(*extra) != kLaunchParamEnd; extra += 2) {
        switch (reinterpret_cast<std::uintptr_t>(extra[0])) {
            case kLaunchParamBufferPointer:
                buffer = extra[1];
                break;
            case kLaunchParamBufferSize:
                size = static_cast<const std::size_t*>(extra[1]);
                break;
            default:
                fail(CUDA_ERROR_INVALID_VALUE);
        }
    }
    require(size != nullptr && (buffer != nullptr || *size == 0));
    // Padding at its end is no matter; too little is.
    require(*size >= entry.param_bytes);
    std::vector<std::byte> block(entry.param_bytes);
    if (!block.empty()) std::memcpy(block.data(), buffer, block.size());
    return block;
}

std::vector<std::byte> arguments_of(const vgpu::EntryInfo& entry, void** parameters, void** extra) {
    require(parameters == nullptr || extra == nullptr);
    if (extra != nullptr) return take_buffer(entry, extra);
    require(parameters != nullptr || entry.params.empty());
    return gather(entry, parameters);
}

std::string text(const vgpu::Dim3& d) {
    return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

/// Wrong dimensions are told at once, and in words to the record.
void check_dimensions(Driver& driver, const Function& kernel, const vgpu::LaunchConfig& config) {
    const auto refuse = [&](const std::string& why) {
        driver.record.refused("launch of " + kernel.entry->name + ": " + why);
        fail(CUDA_ERROR_INVALID_VALUE);
    };
    const vgpu::Limits& limits = driver.configuration.machine.limits;
    const auto exceeds = [](const vgpu::Dim3& d, const vgpu::Dim3& most) {
        return d.x > most.x || d.y > most.y || d.z > most.z;
    };
    const vgpu::Dim3& block = config.block;
    if (config.grid.count() == 0 || block.count() == 0) refuse("grid and block must not be empty");
    if (exceeds(config.grid, limits.max_grid))
        refuse("grid " + text(config.grid) + ", the limit is " + text(limits.max_grid));
    if (exceeds(block, limits.max_block)) refuse("block " + text(block) + ", the limit is " + text(limits.max_block));
    const int most = attribute_of(driver, kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (block.count() > static_cast<std::uint64_t>(most))
        refuse(std::to_string(block.count()) + " threads per block, the limit is " + std::to_string(most));
    const vgpu::Dim3& required = kernel.entry->required_block;
    if (required.count() != 0 && block != required)
        refuse("block " + text(block) + ", the kernel requires " + text(required));
    if (config.dynamic_shared_bytes > dynamic_shared_limit(driver, kernel)) {
        refuse(std::to_string(config.dynamic_shared_bytes) + " bytes of dynamic shared memory, the kernel may have " +
               std::to_string(dynamic_shared_limit(driver, kernel)) +
               " (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)");
    }
}

CUresult launch(const char* name, CUfunction handle, const vgpu::LaunchConfig& config, CUstream stream_handle,
                void** parameters, void** extra) {
    return call(name, Needs::kInit, [&](Driver& driver) {
        LaunchRequest request = launch_request(driver, handle, config, parameters, extra);
        submit(driver.stream(stream_handle), std::move(request));
    });
}

vgpu::LaunchConfig config_of(const CUlaunchConfig& config) {
    return {{config.gridDimX, config.gridDimY, config.gridDimZ},
            {config.blockDimX, config.blockDimY, config.blockDimZ},
            config.sharedMemBytes};
}

/// Attributes that change how a kernel is scheduled mean nothing here; clusters would change what it computes.
CUresult check_attributes(const CUlaunchConfig& config) {
    if (config.numAttrs != 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        const auto& cluster = attribute.value.clusterDim;
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
            std::uint64_t{cluster.x} * cluster.y * cluster.z > 1)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

}  // namespace

namespace gradguard::vdriver {

LaunchRequest launch_request(Driver& driver, CUfunction handle, const vgpu::LaunchConfig& config, void** parameters,
                             void** extra) {
    LaunchRequest request{function(driver, handle), config, {}};
    check_dimensions(driver, *request.kernel, config);
    request.arguments = arguments_of(*request.kernel->entry, parameters, extra);
    return request;
}

void submit(const StreamOf& stream, LaunchRequest request) {
    require(request.kernel->context == stream.context, CUDA_ERROR_INVALID_HANDLE);
    Context& context = *stream.context;
    // The module lives until the work is done, even when it is unloaded before (that waits).
    context.submit(stream.stream,
                   [&context, program = request.kernel->program, entry = request.kernel->entry, config = request.config,
                    block = std::move(request.arguments)] { context.launch(*program, *entry, config, block); });
}

}  // namespace gradguard::vdriver

GRADGUARD_DRIVER_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                    CUstream stream, void** parameters, void** extra) {
    return launch(__func__, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                  parameters, extra);
}

GRADGUARD_DRIVER_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                      void** extra) {
    if (config == nullptr) return initialized(__func__, [](Driver&) { return CUDA_ERROR_INVALID_VALUE; });
    if (const CUresult wrong = check_attributes(*config); wrong != CUDA_SUCCESS) {
        return initialized(__func__, [&](Driver& driver) {
            if (wrong == CUDA_ERROR_NOT_SUPPORTED) driver.record.not_supported("cuLaunchKernelEx with a cluster");
            return wrong;
        });
    }
    return launch(__func__, function, config_of(*config), config->hStream, parameters, extra);
}

/// All blocks of a virtual GPU get their turn, however many there are.
GRADGUARD_DRIVER_API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, CUstream stream, void** parameters) {
    return launch(__func__, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                  parameters, nullptr);
}
