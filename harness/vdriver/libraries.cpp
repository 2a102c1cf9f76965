// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "harness/vdriver/export.h"
#include "harness/vdriver/functions.h"
#include "harness/vdriver/image.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

CUlibrary add_library(Driver& driver, std::shared_ptr<const gradguard::vgpu::Module> program) {
    const auto library = std::make_shared<Library>();
    library->program = std::move(program);
    return driver.libraries.add(library);
}

CUkernel kernel_of(Driver& driver, CUlibrary handle, const std::string& name) {
    Library& library = *driver.libraries.get(handle);
    if (const auto known = library.kernels.find(name); known != library.kernels.end()) return known->second;
    require(library.program->find(name) != nullptr, CUDA_ERROR_NOT_FOUND);
    const auto kernel = std::make_shared<Kernel>();
    kernel->library = handle;
    kernel->name = name;
    return library.kernels[name] = driver.kernels.add(kernel);
}

/// The library's module in the current context.
CUmodule module_of(Driver& driver, CUlibrary handle) {
    const std::shared_ptr<Context> context = driver.current();
    Library& library = *driver.libraries.get(handle);
    CUmodule& module = library.modules[context.get()];
    if (module == nullptr) {
        module = add_module(driver, context, library.program);
        driver.modules.get(module)->library = handle;
    }
    return module;
}

/// A kernel as a function of no context, for its attributes.
Function detached(Driver& driver, const Kernel& kernel) {
    Function result;
    result.program = driver.libraries.get(kernel.library)->program;
    result.entry = result.program->find(kernel.name);
    result.max_dynamic_shared = kernel.max_dynamic_shared.value_or(0);
    return result;
}

}  // namespace

GRADGUARD_DRIVER_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                                       unsigned count, int*, void**, unsigned) {
    return initialized(__func__, [&](Driver& driver) {
        require(library != nullptr && code != nullptr);
        *library = add_library(driver, load_image(driver, code, jit_options(count, options, values)));
    });
}

GRADGUARD_DRIVER_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned, int*,
                                           void**, unsigned) {
    return initialized(__func__, [&](Driver& driver) {
        require(library != nullptr && path != nullptr);
        const char* const slash = std::strrchr(path, '/');
        *library = add_library(driver, load_file(driver, path, slash == nullptr ? path : slash + 1));
    });
}

GRADGUARD_DRIVER_API cuLibraryUnload(CUlibrary handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Library> library = driver.libraries.get(handle);
        for (const auto& [context, module] : library->modules) remove_module(driver, module);
        driver.kernels.erase_if([&](const Kernel& kernel) { return kernel.library == handle; });
        driver.libraries.erase(handle);
    });
}

GRADGUARD_DRIVER_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
    return initialized(__func__, [&](Driver& driver) {
        require(kernel != nullptr && name != nullptr);
        *kernel = kernel_of(driver, handle, name);
    });
}

GRADGUARD_DRIVER_API cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(count != nullptr);
        *count = static_cast<unsigned>(driver.libraries.get(handle)->program->entries().size());
    });
}

GRADGUARD_DRIVER_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(kernels != nullptr);
        const auto entries = driver.libraries.get(handle)->program->entries();
        for (unsigned i = 0; i < count && i < entries.size(); ++i)
            kernels[i] = kernel_of(driver, handle, entries[i].name);
    });
}

GRADGUARD_DRIVER_API cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(module != nullptr);
        *module = module_of(driver, handle);
    });
}

GRADGUARD_DRIVER_API cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
    return initialized(__func__, [&](Driver& driver) {
        require(name != nullptr && (address != nullptr || bytes != nullptr));
        module_of(driver, handle);
        const Memory variable = driver.current()->variable(*driver.libraries.get(handle)->program, name);
        if (address != nullptr) *address = variable.address;
        if (bytes != nullptr) *bytes = variable.bytes;
    });
}

GRADGUARD_DRIVER_API cuLibraryGetManaged(CUdeviceptr*, std::size_t*, CUlibrary handle, const char*) {
    return initialized(__func__, [&](Driver& driver) {
        driver.libraries.get(handle);
        return CUDA_ERROR_NOT_FOUND;  // PTX with managed variables is not loaded
    });
}

GRADGUARD_DRIVER_API cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
    return initialized(__func__, [&](Driver& driver) {
        require(result != nullptr);
        *result = function_of_kernel(driver, kernel);
    });
}

GRADGUARD_DRIVER_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
    return initialized(__func__, [&](Driver& driver) {
        require(library != nullptr);
        *library = driver.kernels.get(kernel)->library;
    });
}

GRADGUARD_DRIVER_API cuKernelGetName(const char** name, CUkernel kernel) {
    return initialized(__func__, [&](Driver& driver) {
        require(name != nullptr);
        *name = driver.kernels.get(kernel)->name.c_str();
    });
}

GRADGUARD_DRIVER_API cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    return initialized(__func__, [&](Driver& driver) {
        require(offset != nullptr);
        const auto& params = detached(driver, *driver.kernels.get(kernel)).entry->params;
        require(index < params.size());
        *offset = params[index].offset_bytes;
        if (bytes != nullptr) *bytes = params[index].size_bytes;
    });
}

GRADGUARD_DRIVER_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                          CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        require(device == 0, CUDA_ERROR_INVALID_DEVICE);
        *value = attribute_of(driver, detached(driver, *driver.kernels.get(handle)), attribute);
    });
}

GRADGUARD_DRIVER_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(device == 0, CUDA_ERROR_INVALID_DEVICE);
        Kernel& kernel = *driver.kernels.get(handle);
        Function function = detached(driver, kernel);
        set_attribute(driver, function, attribute, value);
        if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) kernel.max_dynamic_shared = value;
    });
}

GRADGUARD_DRIVER_API cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(device == 0, CUDA_ERROR_INVALID_DEVICE);
        driver.kernels.get(kernel);
        require(config >= 0 && config <= 3);
    });
}
