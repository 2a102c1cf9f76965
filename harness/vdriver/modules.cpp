// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "harness/vdriver/export.h"
#include "harness/vdriver/functions.h"
#include "harness/vdriver/image.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

CUresult load(const char* function, CUmodule* module, const void* image, unsigned count, const CUjit_option* options,
              void** values) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        require(module != nullptr && image != nullptr);
        *module = add_module(driver, context, load_image(driver, image, jit_options(count, options, values)));
    });
}

const char* name_of_file(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

}  // namespace

GRADGUARD_DRIVER_API cuModuleLoad(CUmodule* module, const char* path) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        require(module != nullptr && path != nullptr);
        *module = add_module(driver, context, load_file(driver, path, name_of_file(path)));
    });
}

GRADGUARD_DRIVER_API cuModuleLoadData(CUmodule* module, const void* image) {
    return load(__func__, module, image, 0, nullptr, nullptr);
}

GRADGUARD_DRIVER_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                        void** values) {
    return load(__func__, module, image, count, options, values);
}

GRADGUARD_DRIVER_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return load(__func__, module, image, 0, nullptr, nullptr);
}

GRADGUARD_DRIVER_API cuModuleUnload(CUmodule handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Module> module = driver.modules.get(handle);
        module->context->check();
        require(module->library == nullptr, CUDA_ERROR_NOT_PERMITTED);
        remove_module(driver, handle);
    });
}

GRADGUARD_DRIVER_API cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
    return initialized(__func__, [&](Driver& driver) {
        require(function != nullptr && name != nullptr && *name != 0);
        const std::shared_ptr<Module> module = driver.modules.get(handle);
        module->context->check();
        *function = function_of(driver, handle, name);
    });
}

GRADGUARD_DRIVER_API cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(count != nullptr);
        *count = static_cast<unsigned>(driver.modules.get(handle)->program->entries().size());
    });
}

GRADGUARD_DRIVER_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(functions != nullptr);
        const auto entries = driver.modules.get(handle)->program->entries();
        for (unsigned i = 0; i < count && i < entries.size(); ++i)
            functions[i] = function_of(driver, handle, entries[i].name);
    });
}

GRADGUARD_DRIVER_API cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
    return initialized(__func__, [&](Driver& driver) {
        require(name != nullptr && (address != nullptr || bytes != nullptr));
        const std::shared_ptr<Module> module = driver.modules.get(handle);
        module->context->check();
        const Memory variable = module->context->variable(*module->program, name);
        if (address != nullptr) *address = variable.address;
        if (bytes != nullptr) *bytes = variable.bytes;
    });
}

GRADGUARD_DRIVER_API cuModuleGetLoadingMode(int* mode) {
    return initialized(__func__, [&](Driver&) {
        require(mode != nullptr);
        *mode = 1;  // CU_MODULE_EAGER_LOADING
    });
}

GRADGUARD_DRIVER_API cuModuleGetTexRef(void**, CUmodule, const char*) {
    return initialized(__func__, [](Driver&) { return CUDA_ERROR_NOT_FOUND; });  // no module here has any
}

GRADGUARD_DRIVER_API cuModuleGetSurfRef(void**, CUmodule, const char*) {
    return initialized(__func__, [](Driver&) { return CUDA_ERROR_NOT_FOUND; });
}
