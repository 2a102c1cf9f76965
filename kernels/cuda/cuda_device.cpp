// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_device.h"

#include <cstdio>
#include <utility>

#include "reference/contract/error.h"

namespace gradguard::cuda {
namespace {

int attribute(const Current& current, CUdevice device, CUdevice_attribute which) {
    int value = 0;
    current.call(current.driver().cuDeviceGetAttribute, &value, which, device);
    return value;
}

std::string device_name(const Current& current, const Context& context) {
    char name[256] = {};
    current.call(current.driver().cuDeviceGetName, static_cast<char*>(name), static_cast<int>(sizeof name - 1),
                 context.device());
    return context.driver().hardware() ? name : "virtual driver (" + std::string(name) + ")";
}

std::string hexadecimal(DeviceAddress address) {
    char text[2 + 16 + 1];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

}  // namespace

std::shared_ptr<CudaDevice> CudaDevice::open(const CudaDeviceOptions& options) {
    auto driver = options.driver ? options.driver : Driver::open(options.driver_library);
    auto context = options.context ? Context::of_caller(std::move(driver), options.context)
                                   : Context::of_device(std::move(driver), options.ordinal);
    return std::shared_ptr<CudaDevice>(new CudaDevice(std::move(context), options));
}

CudaDevice::CudaDevice(std::shared_ptr<Context> context, const CudaDeviceOptions& options)
    : context_(std::move(context)) {
    const Current current(context_, "open");
    const auto read = [&](CUdevice_attribute which) { return attribute(current, context_->device(), which); };
    properties_.name = device_name(current, *context_);
    properties_.max_threads_per_block = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    properties_.max_threads_in_x = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X));
    properties_.max_blocks_in_x = static_cast<std::uint32_t>(read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    properties_.max_shared_bytes_per_block =
        static_cast<std::uint64_t>(read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    capability_ = {read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                   read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
    if (!options.pool) return;
    if (read(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) {
        fail("open", properties_.name + " has no stream-ordered memory pools; the option pool = false uses cuMemAlloc");
    }
    pool_ = std::make_shared<MemoryPool>(context_, options.pool_keeps);
}

std::shared_ptr<Queue> CudaDevice::create_queue() {
    return std::make_shared<CudaQueue>(shared_from_this(), context_, Stream::create(context_, pool_));
}

std::shared_ptr<CudaQueue> CudaDevice::queue_over(CUstream stream) {
    return std::make_shared<CudaQueue>(shared_from_this(), context_, Stream::over(context_, pool_, stream));
}

Buffer CudaDevice::allocate(std::uint64_t bytes, Queue& queue) {
    const auto* ours = dynamic_cast<CudaQueue*>(&queue);
    if (ours == nullptr || ours->context() != context_) fail("allocate", "the queue belongs to another device");
    return ours->allocate(bytes);
}

std::shared_ptr<Module> CudaDevice::load_module(std::string_view name, std::string_view ptx) {
    return CudaModule::load(context_, capability_, name, ptx);
}

std::optional<std::string> CudaDevice::why_not_loadable(std::string_view ptx) const {
    return cuda::why_not_loadable(ptx, driver().version(), capability_);
}

Buffer CudaDevice::borrow(DeviceAddress address, std::uint64_t bytes) const {
    const auto refuse = [&](ErrorKind kind, const std::string& reason) {
        throw Error(kind, {.operand = "storage"}, "want device memory, got address " + hexadecimal(address) + reason);
    };
    const Current current(context_, "borrow");
    const auto& ask = current.driver().cuPointerGetAttribute;
    unsigned int type = 0;
    const CUresult known = ask.call(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (known == CUDA_ERROR_INVALID_VALUE) refuse(ErrorKind::kInvalidTensor, ", which the driver does not know");
    context_->check(known, ask.name, "borrow", {});
    if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) {
        refuse(ErrorKind::kInvalidTensor, " of host memory");
    }
    int ordinal = context_->device();
    if (type == CU_MEMORYTYPE_DEVICE) {
        current.call(ask, static_cast<void*>(&ordinal), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    }
    if (ordinal != context_->device()) {
        refuse(ErrorKind::kDifferentExecutionQueue,
               " on device " + std::to_string(ordinal) + " instead of " + std::to_string(context_->device()));
    }
    CUdeviceptr start = 0;
    std::size_t size = 0;
    current.call(ask, static_cast<void*>(&start), CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    current.call(ask, static_cast<void*>(&size), CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    if (bytes > size - (address - start)) {
        refuse(ErrorKind::kInvalidTensor, ": its allocation ends after " + std::to_string(size - (address - start)) +
                                              " bytes, want " + std::to_string(bytes));
    }
    return Buffer::borrowed(address, bytes);
}

}  // namespace gradguard::cuda
