// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/functions.h"

#include <algorithm>

#include "harness/vdriver/device_attributes.h"
#include "harness/vdriver/export.h"
#include "harness/vdriver/image.h"
#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

/// Virtual registers are no figure of a GPU; this one lets programs plan for full occupancy.
constexpr int kRegisters = 32;

const vgpu::ast::Entry& syntax_of(const Function& function) {
    const auto index = static_cast<std::size_t>(function.entry - function.program->entries().data());
    return function.program->syntax().entries[index];
}

int constant_bytes(const vgpu::Module& program) {
    std::uint64_t bytes = 0;
    for (const vgpu::ast::Variable& variable : program.syntax().variables) {
        if (variable.space == vgpu::Space::Constant) bytes += variable.bytes;
    }
    return static_cast<int>(bytes);
}

}  // namespace

CUmodule add_module(Driver& driver, const std::shared_ptr<Context>& context,
                    std::shared_ptr<const vgpu::Module> program) {
    const auto module = std::make_shared<Module>();
    module->context = context;
    module->program = std::move(program);
    return driver.modules.add(module);
}

void remove_module(Driver& driver, CUmodule handle) {
    const std::shared_ptr<Module> module = driver.modules.get(handle);
    if (!module->context->queues().failed()) module->context->queues().run_all();
    driver.functions.erase_if([&](const Function& function) { return function.module == handle; });
    module->context->unload(*module->program);
    driver.modules.erase(handle);
}

std::shared_ptr<const vgpu::Module> load_file(Driver& driver, const char* path, const std::string& name) {
    const std::string image = read_file(path);
    try {
        return load_program(driver, ptx_of_image(image.data(), image.size()), name, {});
    } catch (const Failure& failure) {
        if (failure.code == CUDA_ERROR_NO_BINARY_FOR_GPU) driver.record.refused(name + ": " + failure.what());
        throw;
    }
}

CUfunction function_of(Driver& driver, CUmodule handle, std::string_view name) {
    const std::shared_ptr<Module> module = driver.modules.get(handle);
    if (const auto known = module->functions.find(name); known != module->functions.end()) return known->second;
    const auto function = std::make_shared<Function>();
    function->context = module->context;
    function->module = handle;
    function->program = module->program;
    function->entry = module->program->find(name);
    require(function->entry != nullptr, CUDA_ERROR_NOT_FOUND);
    const int static_shared = static_cast<int>(function->entry->static_shared_bytes);
    function->max_dynamic_shared = std::max(0, shared_bytes_by_default(driver.configuration) - static_shared);
    return module->functions[std::string(name)] = driver.functions.add(function);
}

CUfunction function_of_kernel(Driver& driver, CUkernel handle) {
    const std::shared_ptr<Kernel> kernel = driver.kernels.get(handle);
    const std::shared_ptr<Context> context = driver.current();
    Library& library = *driver.libraries.get(kernel->library);
    CUmodule& module = library.modules[context.get()];
    if (module == nullptr) {
        module = add_module(driver, context, library.program);
        driver.modules.get(module)->library = kernel->library;
    }
    const CUfunction result = function_of(driver, module, kernel->name);
    if (kernel->max_dynamic_shared) driver.functions.get(result)->max_dynamic_shared = *kernel->max_dynamic_shared;
    return result;
}

std::shared_ptr<Function> function(Driver& driver, CUfunction handle) {
    if (std::shared_ptr<Function> known = driver.functions.find(handle)) return known;
    const auto kernel = reinterpret_cast<CUkernel>(handle);
    require(driver.kernels.find(kernel) != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return driver.functions.get(function_of_kernel(driver, kernel));
}

std::uint32_t dynamic_shared_limit(const Driver&, const Function& function) {
    return static_cast<std::uint32_t>(function.max_dynamic_shared);
}

int attribute_of(const Driver& driver, const Function& function, int attribute) {
    const vgpu::EntryInfo& entry = *function.entry;
    const auto limit = static_cast<std::uint64_t>(driver.configuration.machine.limits.max_threads_per_block);
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return static_cast<int>(entry.max_threads == 0 ? limit : std::min<std::uint64_t>(limit, entry.max_threads));
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            return static_cast<int>(entry.static_shared_bytes);
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            return constant_bytes(*function.program);
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            return static_cast<int>(syntax_of(function).local_bytes);
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            return kRegisters;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            return static_cast<int>(function.program->syntax().target);
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            return 10 * driver.configuration.capability_major + driver.configuration.capability_minor;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return function.max_dynamic_shared;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return function.carveout;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            return function.non_portable_cluster ? 1 : 0;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            return function.cluster_policy;
        default:
            // The cache mode and the cluster's size: nothing that PTX of a module sets.
            require(attribute >= CU_FUNC_ATTRIBUTE_CACHE_MODE_CA &&
                    attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
            return 0;
    }
}

void set_attribute(const Driver& driver, Function& function, int attribute, int value) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
            const int most = shared_bytes_at_most(driver.configuration);
            require(value >= 0 && value <= most - static_cast<int>(function.entry->static_shared_bytes));
            function.max_dynamic_shared = value;
            return;
        }
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            require(value >= -1 && value <= 100);
            function.carveout = value;
            return;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            function.non_portable_cluster = value != 0;
            return;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            require(value >= 0 && value <= 2);
            function.cluster_policy = value;
            return;
        default:
            fail(CUDA_ERROR_INVALID_VALUE);  // the others are read only
    }
}

}  // namespace gradguard::vdriver

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

GRADGUARD_DRIVER_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        *value = attribute_of(driver, *function(driver, handle), attribute);
    });
}

GRADGUARD_DRIVER_API cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    return initialized(__func__,
                       [&](Driver& driver) { set_attribute(driver, *function(driver, handle), attribute, value); });
}

GRADGUARD_DRIVER_API cuFuncSetCacheConfig(CUfunction handle, int config) {
    return initialized(__func__, [&](Driver& driver) {
        function(driver, handle);
        require(config >= 0 && config <= 3);
    });
}

GRADGUARD_DRIVER_API cuFuncSetSharedMemConfig(CUfunction handle, int config) {
    return initialized(__func__, [&](Driver& driver) {
        function(driver, handle);
        require(config >= 0 && config <= 2);
    });
}

GRADGUARD_DRIVER_API cuFuncGetModule(CUmodule* module, CUfunction handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(module != nullptr);
        *module = function(driver, handle)->module;
    });
}

GRADGUARD_DRIVER_API cuFuncGetName(const char** name, CUfunction handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(name != nullptr);
        *name = function(driver, handle)->entry->name.c_str();
    });
}

GRADGUARD_DRIVER_API cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return initialized(__func__, [&](Driver& driver) {
        require(offset != nullptr);
        const auto& params = function(driver, handle)->entry->params;
        require(index < params.size());
        *offset = params[index].offset_bytes;
        if (bytes != nullptr) *bytes = params[index].size_bytes;
    });
}

GRADGUARD_DRIVER_API cuFuncIsLoaded(int* state, CUfunction handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(state != nullptr);
        function(driver, handle);
        *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
    });
}

GRADGUARD_DRIVER_API cuFuncLoad(CUfunction handle) {
    return initialized(__func__, [&](Driver& driver) { function(driver, handle); });
}
