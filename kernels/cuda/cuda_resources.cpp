// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_resources.h"

#include <utility>

namespace gradguard::cuda {

Event::Event(std::shared_ptr<Context> context, const std::string& operation, bool timed)
    : context_(std::move(context)) {
    const Current current(context_, operation);
    current.call(current.driver().cuEventCreate, &handle_, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}

Event::~Event() { context_->release(context_->driver().functions().cuEventDestroy_v2, handle_); }

void Event::record(const Current& current, CUstream stream) const {
    current.call(current.driver().cuEventRecord, handle_, stream);
}

void Event::wait(const Current& current) const { current.call(current.driver().cuEventSynchronize, handle_); }

bool Event::reached() const { return context_->driver().functions().cuEventQuery.call(handle_) == CUDA_SUCCESS; }

void Event::settle() const noexcept { context_->release(context_->driver().functions().cuEventSynchronize, handle_); }

PinnedMemory::PinnedMemory(std::shared_ptr<Context> context, std::size_t bytes, const std::string& operation)
    : context_(std::move(context)), bytes_(bytes) {
    const Current current(context_, operation, std::to_string(bytes) + " bytes");
    current.call(current.driver().cuMemHostAlloc, &memory_, bytes, kMemHostAllocPortable);
}

PinnedMemory::~PinnedMemory() { context_->release(context_->driver().functions().cuMemFreeHost, memory_); }

MemoryPool::MemoryPool(std::shared_ptr<Context> context, std::uint64_t keep) : context_(std::move(context)) {
    const Current current(context_, "open");
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, context_->device()};
    current.call(current.driver().cuMemPoolCreate, &handle_, static_cast<const CUmemPoolProps*>(&properties));
    try {
        current.call(current.driver().cuMemPoolSetAttribute, handle_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                     static_cast<void*>(&keep));
    } catch (const std::exception&) {
        context_->release(current.driver().cuMemPoolDestroy, handle_);
        throw;
    }
}

MemoryPool::~MemoryPool() { context_->release(context_->driver().functions().cuMemPoolDestroy, handle_); }

/// What the last owner of a buffer does. std::get_deleter tells a buffer of ours by it.
struct Stream::Free {
    std::shared_ptr<Stream> stream;
    void operator()(void* address) const noexcept { stream->free(reinterpret_cast<CUdeviceptr>(address)); }
};

Stream::Stream(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool, CUstream handle, bool owned)
    : context_(std::move(context)), pool_(std::move(pool)), handle_(handle), owned_(owned) {}

std::shared_ptr<Stream> Stream::create(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool) {
    const Current current(context, "create_queue");
    CUstream handle = nullptr;
    current.call(current.driver().cuStreamCreate, &handle, static_cast<unsigned int>(CU_STREAM_NON_BLOCKING));
    return std::shared_ptr<Stream>(new Stream(std::move(context), std::move(pool), handle, true));
}

std::shared_ptr<Stream> Stream::over(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool,
                                     CUstream stream) {
    const Current current(context, "create_queue");
    CUcontext owner = nullptr;
    current.call(current.driver().cuStreamGetCtx, stream, &owner);
    if (owner != context->handle()) fail("create_queue", "the stream belongs to another context than the device");
    return std::shared_ptr<Stream>(new Stream(std::move(context), std::move(pool), stream, false));
}

Buffer Stream::allocate(const std::shared_ptr<Stream>& self, std::uint64_t bytes) const {
    const Current current(context_, "allocate", std::to_string(bytes) + " bytes");
    CUdeviceptr address = 0;
    if (pool_ != nullptr) {
        current.call(current.driver().cuMemAllocFromPoolAsync, &address, bytes, pool_->handle(), handle_);
    } else {
        current.call(current.driver().cuMemAlloc_v2, &address, bytes);
    }
    return {std::shared_ptr<void>(reinterpret_cast<void*>(address), Free{self}), address, bytes};
}

bool Stream::frees(const Buffer& buffer) const {
    const auto* by = std::get_deleter<Free>(buffer.owner);
    return by != nullptr && by->stream.get() == this;
}

void Stream::free(CUdeviceptr address) noexcept {
    const DriverFunctions& driver = context_->driver().functions();
    const std::lock_guard lock(mutex_);
    if (open_ && pool_ != nullptr) {
        context_->release(driver.cuMemFreeAsync, address, handle_);
        return;
    }
    // cuMemFree waits for nothing by itself where memory comes from a pool, and is not said to wait where it does not.
    if (open_) context_->release(driver.cuStreamSynchronize, handle_);
    context_->release(driver.cuMemFree_v2, address);
}

void Stream::close() noexcept {
    const DriverFunctions& driver = context_->driver().functions();
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    context_->release(driver.cuStreamSynchronize, handle_);
    if (owned_) context_->release(driver.cuStreamDestroy_v2, handle_);
    open_ = false;
}

}  // namespace gradguard::cuda
