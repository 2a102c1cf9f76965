// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_module.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace gradguard::cuda {
namespace {

constexpr char kOperation[] = "load_module";

/// cuModuleLoadDataEx passes numbers as pointers.
void* number(std::size_t value) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value)); }

}  // namespace

KernelResources CudaKernel::resources() const {
    const Current current(module_->context(), "resources", name_);
    KernelResources resources;
    const auto read = [&](CUfunction_attribute attribute, int& value) {
        current.call(current.driver().cuFuncGetAttribute, &value, attribute, function_);
    };
    read(CU_FUNC_ATTRIBUTE_NUM_REGS, resources.registers);
    read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, resources.local_bytes);
    read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, resources.shared_bytes);
    read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, resources.max_threads_per_block);
    read(CU_FUNC_ATTRIBUTE_PTX_VERSION, resources.ptx_version);
    read(CU_FUNC_ATTRIBUTE_BINARY_VERSION, resources.binary_version);
    return resources;
}

CudaModule::CudaModule(std::shared_ptr<Context> context, std::string name, CUmodule handle)
    : context_(std::move(context)), name_(std::move(name)), handle_(handle) {}

CudaModule::~CudaModule() { context_->release(context_->driver().functions().cuModuleUnload, handle_); }

std::shared_ptr<CudaModule> CudaModule::load(const std::shared_ptr<Context>& context, ComputeCapability device,
                                             std::string_view name, std::string_view ptx) {
    const std::string what = "module '" + std::string(name) + "'";
    if (const auto reason = why_not_loadable(ptx, context->driver().version(), device)) {
        fail(kOperation, what + ": " + *reason);
    }
    const Current current(context, kOperation);
    const std::string text(ptx);  // the driver takes text up to its NUL
    std::vector<char> log(8192);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), number(log.size())};
    CUmodule handle = nullptr;
    const auto& load = current.driver().cuModuleLoadDataEx;
    const CUresult result = load.call(&handle, text.c_str(), 2, options, values);
    if (result != CUDA_SUCCESS) {
        log.back() = '\0';
        const std::string messages = log.data();
        context->check(result, load.name, kOperation,
                       what + (messages.empty() ? "" : " (its compiler says: " + messages + ")"));
    }
    return std::shared_ptr<CudaModule>(new CudaModule(context, std::string(name), handle));
}

std::shared_ptr<const Kernel> CudaModule::kernel(std::string_view entry) {
    const std::string name(entry);
    const Current current(context_, kOperation, "entry '" + name + "' in module '" + name_ + "'");
    CUfunction function = nullptr;
    current.call(current.driver().cuModuleGetFunction, &function, handle_, name.c_str());
    return std::make_shared<CudaKernel>(shared_from_this(), function, name);
}

}  // namespace gradguard::cuda
